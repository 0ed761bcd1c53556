//! Pieces of plain text, and of bytes.
//!
//! Text keeps its line ends as they are, so that the pieces of a whole, one after the other, are the whole. A
//! character is never cut in two. What is not UTF-8 is shown as `�`, and that is said.

use std::io::{self, Read, SeekFrom};

use super::{
    Content, Piece, PieceError, ReadLimits, Selector,
    format::{is_named_text, reads_as_text},
    piece::{Body, Unit},
    selector::Range,
};

const LOSSY: &str = "some bytes are not UTF-8 and are shown as �; `bytes` gives them as they are";

/// How much is read at once.
pub(super) const CHUNK: usize = 64 * 1024;

/// Bytes as text.
pub(super) struct Shown {
    pub(super) text: String,
    /// How many of the bytes are in it.
    pub(super) used: usize,
    pub(super) lossy: bool,
}

impl Shown {
    /// As many of `bytes` as fit into `max_chars` and `max_bytes`. Where more bytes follow them, a character that
    /// has only begun is left for the next piece.
    pub(super) fn of(bytes: &[u8], max_chars: u64, max_bytes: usize, more: bool) -> Self {
        let mut shown = Self { text: String::new(), used: 0, lossy: false };
        let mut chars = 0;
        for chunk in bytes.utf8_chunks() {
            for c in chunk.valid().chars() {
                if max_chars <= chars || max_bytes < shown.text.len() + c.len_utf8() {
                    return shown;
                }
                shown.text.push(c);
                shown.used += c.len_utf8();
                chars += 1;
            }
            let invalid = chunk.invalid();
            let last = shown.used + invalid.len() == bytes.len();
            let begun = more && last && 0 < shown.used && has_begun(invalid);
            let full = max_chars <= chars || max_bytes < shown.text.len() + '�'.len_utf8();
            if invalid.is_empty() || begun || full {
                return shown;
            }
            shown.text.push('�');
            shown.used += invalid.len();
            shown.lossy = true;
            chars += 1;
        }
        shown
    }

    pub(super) fn note(&self) -> Option<&'static str> {
        self.lossy.then_some(LOSSY)
    }
}

/// Whether these are the first bytes of a character.
fn has_begun(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

/// How large the whole is; the reader stands at `at` afterwards.
fn size(content: &mut dyn Content, at: u64) -> io::Result<u64> {
    let size = content.seek(SeekFrom::End(0))?;
    content.seek(SeekFrom::Start(at))?;
    Ok(size)
}

/// Up to `count` bytes from where the reader stands.
fn take(content: &mut dyn Content, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(count.min(CHUNK));
    content.take(count as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

const NO_TEXT: &str = "this is not text: its bytes are given as they are";

/// What text is called: the whole of something what that is called, a part of it plain.
fn text_type(media_type: &str, whole: bool) -> &str {
    let keeps = media_type.starts_with("text/") || (whole && !media_type.is_empty());
    if keeps { media_type } else { "text/plain" }
}

pub(super) fn head(
    content: &mut dyn Content,
    media_type: &str,
    chars: u64,
    offset: u64,
    limits: &ReadLimits,
) -> Result<Piece, PieceError> {
    let size = size(content, 0)?;
    let offset = offset.min(size);
    if !reads_as_text(content, media_type)? {
        return head_bytes(content, media_type, chars, offset, limits);
    }
    content.seek(SeekFrom::Start(offset))?;
    let wanted = usize::try_from(chars.saturating_mul(4)).unwrap_or(usize::MAX);
    let bytes = take(content, wanted.min(limits.max_bytes))?;
    let more = offset + (bytes.len() as u64) < size;
    let shown = Shown::of(&bytes, chars, limits.max_bytes, more);
    // It began like text.
    if shown.lossy && !media_type.is_empty() && !is_named_text(media_type) {
        return head_bytes(content, media_type, chars, offset, limits);
    }
    let to = offset + shown.used as u64;
    let next = Selector::Head { chars, offset: to };
    let note = shown.note();
    let kind = text_type(media_type, offset == 0 && to == size);
    Ok(Piece::text(shown.text, kind, Unit::Bytes)
        .place(offset, to, Some(size))
        .next((to < size && offset < to).then_some(next))
        .note(note))
}

/// The same of what is no text.
fn head_bytes(
    content: &mut dyn Content,
    media_type: &str,
    count: u64,
    offset: u64,
    limits: &ReadLimits,
) -> Result<Piece, PieceError> {
    let range = Range::new(offset, offset.saturating_add(count));
    let piece = bytes(content, media_type, range, limits)?;
    let more = piece.from < piece.to && piece.total.is_some_and(|it| piece.to < it);
    let next = Selector::Head { chars: count, offset: piece.to };
    Ok(piece.next(more.then_some(next)).note(Some(NO_TEXT)))
}

pub(super) fn tail(
    content: &mut dyn Content,
    media_type: &str,
    chars: u64,
    limits: &ReadLimits,
) -> Result<Piece, PieceError> {
    let size = size(content, 0)?;
    let wanted = usize::try_from(chars.saturating_mul(4)).unwrap_or(usize::MAX);
    let count = (wanted.min(limits.max_bytes) as u64).min(size);
    content.seek(SeekFrom::Start(size - count))?;
    let bytes = take(content, count as usize)?;
    // Not from the middle of a character.
    let inside = if count < size {
        bytes.iter().take(3).take_while(|it| **it & 0xC0 == 0x80).count()
    } else {
        0
    };
    let whole = Shown::of(&bytes[inside..], u64::MAX, usize::MAX, false);
    let mut text = whole.text.as_str();
    let many = text.chars().count() as u64;
    if chars < many {
        let at = text.char_indices().nth((many - chars) as usize).map_or(text.len(), |(at, _)| at);
        text = &text[at..];
    }
    if limits.max_bytes < text.len() {
        text = &text[text.ceil_char_boundary(text.len() - limits.max_bytes)..];
    }
    let cut = (text.chars().count() as u64) < chars && count < size;
    let from = if whole.lossy { size - count } else { size - text.len() as u64 };
    let note = cut.then(|| {
        format!("fewer than {chars} characters: a piece has {} bytes at most", limits.max_bytes)
    });
    let kind = text_type(media_type, from == 0 && !whole.lossy);
    Ok(Piece::text(text.to_owned(), kind, Unit::Bytes)
        .place(from, size, Some(size))
        .note(note)
        .note(whole.note()))
}

pub(super) fn bytes(
    content: &mut dyn Content,
    media_type: &str,
    range: Range,
    limits: &ReadLimits,
) -> Result<Piece, PieceError> {
    let size = size(content, 0)?;
    let (from, end) = range.resolve(Some(size));
    content.seek(SeekFrom::Start(from))?;
    // A blob travels as base64.
    let most = (limits.max_bytes / 4 * 3).max(1) as u64;
    let bytes = take(content, (end - from).min(most) as usize)?;
    let to = from + bytes.len() as u64;
    let next = Selector::Bytes { range: Range::new(to, end) };
    let mut piece = Piece::text(String::new(), media_type, Unit::Bytes)
        .place(from, to, Some(size))
        .next((to < end && from < to).then_some(next));
    piece.body = Body::Bytes(bytes);
    Ok(piece)
}

pub(super) fn lines(
    content: &mut dyn Content,
    media_type: &str,
    range: Range,
    skip: u64,
    limits: &ReadLimits,
) -> Result<Piece, PieceError> {
    let size = size(content, 0)?;
    // Counting to the end costs little, and tells a reader how far it is.
    let (total, _) = scan(content, 0, u64::MAX)?;
    let (start, end) = range.resolve(Some(total));
    let (_, begin) = scan(content, 0, start)?;
    let begin = begin.saturating_add(skip).min(size);
    content.seek(SeekFrom::Start(begin))?;
    let mut taken = take(content, limits.max_bytes)?;
    let more = begin + (taken.len() as u64) < size;
    let ends = memchr::memchr_iter(b'\n', &taken);
    let whole =
        match ends.take(usize::try_from(end - start).unwrap_or(usize::MAX)).enumerate().last() {
            Some((count, at)) if more || count as u64 + 1 == end - start => Some(at + 1),
            _ => None,
        };
    taken.truncate(if start == end { 0 } else { whole.unwrap_or(taken.len()) });
    let shown = Shown::of(&taken, u64::MAX, limits.max_bytes, more);
    let used = &taken[..shown.used];
    let behind = memchr::memrchr(b'\n', used).map_or(0, |it| it + 1);
    let complete = behind == used.len() || begin + used.len() as u64 == size;
    let passed = memchr::memchr_iter(b'\n', used).count() as u64;
    let to = (start + passed + u64::from(complete && behind < used.len())).min(total);
    let inside = (used.len() - behind) as u64 + if passed == 0 { skip } else { 0 };
    let skip = if complete { 0 } else { inside };
    let next = Selector::Lines { range: Range::new(to, end), skip };
    let (note, more) = (shown.note(), to < end && !used.is_empty());
    let split =
        (0 < skip).then(|| format!("line {to} is longer than a piece and goes on in the next"));
    let all = begin == 0 && used.len() as u64 == size && !shown.lossy;
    Ok(Piece::text(shown.text, text_type(media_type, all), Unit::Lines)
        .place(start, to, Some(total))
        .next(more.then_some(next))
        .note(split)
        .note(note))
}

/// Goes over so many lines from a byte on; says how many there were and where the next one begins.
pub(super) fn scan(content: &mut dyn Content, from: u64, lines: u64) -> io::Result<(u64, u64)> {
    content.seek(SeekFrom::Start(from))?;
    let mut buffer = vec![0; CHUNK];
    let (mut passed, mut at, mut open) = (0, from, false);
    while passed < lines {
        let read = content.read(&mut buffer)?;
        if read == 0 {
            return Ok((passed + u64::from(open), at));
        }
        let chunk = &buffer[..read];
        for end in memchr::memchr_iter(b'\n', chunk) {
            passed += 1;
            if passed == lines {
                return Ok((passed, at + end as u64 + 1));
            }
        }
        open = chunk.last() != Some(&b'\n');
        at += read as u64;
    }
    Ok((passed, at))
}
