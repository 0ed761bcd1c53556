//! Lines that match a regular expression, with their numbers.
//!
//! The expression is matched in time that is linear in the text, whatever it is. A line of any length is looked
//! through in stretches; what is shown of a long one is what stands around the match, with its place.

use std::{
    collections::VecDeque,
    io::{BufRead, BufReader, SeekFrom},
};

use regex::bytes::{Regex, RegexBuilder};

use super::{
    Content, Piece, PieceError, ReadLimits, Selector,
    piece::Unit,
    text::{CHUNK, Shown},
};

/// The largest automaton that an expression may become.
const MAX_REGEX: usize = 2 << 20;

/// How much of a line is looked at together.
const STRETCH: usize = 64 * 1024;

/// How much of a stretch is looked at again with the next, so that nothing is missed at the border.
const OVERLAP: usize = 1024;

/// How much is shown on either side of a match in a long line.
const AROUND: usize = 200;

/// How many lines around a match can be asked for.
const MAX_CONTEXT: u64 = 20;

pub(super) struct Asked<'a> {
    pub(super) pattern: &'a str,
    pub(super) ignore_case: bool,
    pub(super) context: u64,
    pub(super) from: u64,
}

pub(super) fn read(
    content: &mut dyn Content,
    asked: &Asked<'_>,
    limits: &ReadLimits,
) -> Result<Piece, PieceError> {
    let regex = RegexBuilder::new(asked.pattern)
        .case_insensitive(asked.ignore_case)
        .size_limit(MAX_REGEX)
        .dfa_size_limit(MAX_REGEX)
        .build()
        .map_err(|error| PieceError::Asked(format!("`grep`: {error}")))?;
    content.seek(SeekFrom::Start(0))?;
    let mut stretches = Stretches::new(content);
    let mut page = Page::new(asked, limits);
    while stretches.next()? {
        page.look(&regex, &stretches);
    }
    Ok(page.finish(asked))
}

/// Lines, the long ones in several stretches.
struct Stretches<'a> {
    reader: BufReader<&'a mut dyn Content>,
    bytes: Vec<u8>,
    line: u64,
    /// Where in the whole the stretch begins.
    at: u64,
    /// Bytes at the beginning that were looked at before.
    again: usize,
    /// The line goes on behind the stretch.
    open: bool,
}

impl<'a> Stretches<'a> {
    fn new(content: &'a mut dyn Content) -> Self {
        let reader = BufReader::with_capacity(CHUNK, content);
        Self { reader, bytes: Vec::new(), line: 0, at: 0, again: 0, open: false }
    }

    fn next(&mut self) -> std::io::Result<bool> {
        if self.open {
            self.again = OVERLAP.min(self.bytes.len());
            self.at += (self.bytes.len() - self.again) as u64;
            self.bytes.drain(..self.bytes.len() - self.again);
        } else {
            self.line += u64::from(!self.bytes.is_empty());
            self.at += self.bytes.len() as u64;
            self.bytes.clear();
            self.again = 0;
        }
        let before = self.bytes.len();
        loop {
            let buffer = self.reader.fill_buf()?;
            let room = STRETCH - self.bytes.len();
            let end = memchr::memchr(b'\n', &buffer[..buffer.len().min(room)]);
            let taken = end.map_or(buffer.len().min(room), |it| it + 1);
            self.bytes.extend_from_slice(&buffer[..taken]);
            self.reader.consume(taken);
            self.open = end.is_none() && 0 < taken;
            if end.is_some() || taken == 0 || self.bytes.len() == STRETCH {
                return Ok(before < self.bytes.len());
            }
        }
    }

    /// The text, without its line end.
    fn text(&self) -> &[u8] {
        let text = self.bytes.strip_suffix(b"\n").unwrap_or(&self.bytes);
        text.strip_suffix(b"\r").unwrap_or(text)
    }

    fn is_long(&self) -> bool {
        self.open || 0 < self.again || 2 * AROUND + 100 < self.bytes.len()
    }
}

struct Page {
    text: String,
    max: usize,
    context: usize,
    from: u64,
    /// How many matching lines there were.
    seen: u64,
    shown: u64,
    full: bool,
    /// The line that was shown last, and how many behind it are still to be.
    last: Option<u64>,
    behind: usize,
    before: VecDeque<(u64, String)>,
    /// The line of the last match: each counts once.
    matched: Option<u64>,
    lossy: bool,
    long: bool,
}

impl Page {
    fn new(asked: &Asked<'_>, limits: &ReadLimits) -> Self {
        Self {
            text: String::new(),
            max: limits.max_bytes,
            context: asked.context.min(MAX_CONTEXT) as usize,
            from: asked.from,
            seen: 0,
            shown: 0,
            full: false,
            last: None,
            behind: 0,
            before: VecDeque::new(),
            matched: None,
            lossy: false,
            long: false,
        }
    }

    fn look(&mut self, regex: &Regex, stretch: &Stretches<'_>) {
        let text = stretch.text();
        let found = regex.find_iter(text).find(|it| stretch.again == 0 || stretch.again < it.end());
        let again = self.matched == Some(stretch.line);
        match found {
            Some(found) if !again => {
                self.matched = Some(stretch.line);
                self.seen += 1;
                if self.from < self.seen && !self.full {
                    let line = self.line(stretch, found.start(), found.end());
                    self.show(stretch.line, &line);
                }
            }
            _ if again && 0 < stretch.again => {}
            _ => self.pass(stretch),
        }
    }

    /// A line as it is shown; of a long one what stands around the match.
    fn line(&mut self, stretch: &Stretches<'_>, start: usize, end: usize) -> String {
        let text = stretch.text();
        if !stretch.is_long() {
            let shown = Shown::of(text, u64::MAX, usize::MAX, false);
            self.lossy |= shown.lossy;
            return shown.text;
        }
        self.long = true;
        let boundary = |mut at: usize| {
            while 0 < at && at < text.len() && text[at] & 0xC0 == 0x80 {
                at -= 1;
            }
            at
        };
        let from = boundary(start.saturating_sub(AROUND));
        let to = boundary((end.min(start + AROUND) + AROUND).min(text.len()));
        let shown = Shown::of(&text[from..to], u64::MAX, usize::MAX, false);
        self.lossy |= shown.lossy;
        format!("(byte {}) …{}…", stretch.at + from as u64, shown.text)
    }

    /// Shows a line that matches, and those before it.
    fn show(&mut self, number: u64, line: &str) {
        let mut lines = String::new();
        let first = self.before.front().map_or(number, |(it, _)| *it);
        if 0 < self.context && self.last.is_some_and(|last| last + 1 < first) {
            lines.push_str("--\n");
        }
        for (number, line) in self.before.drain(..) {
            lines.push_str(&format!("{number}- {line}\n"));
        }
        lines.push_str(&format!("{number}: {line}\n"));
        if self.max < self.text.len() + lines.len() {
            if 0 < self.shown {
                self.full = true;
                return;
            }
            lines.truncate(lines.floor_char_boundary(self.max));
        }
        self.text.push_str(&lines);
        self.shown += 1;
        self.last = Some(number);
        self.behind = self.context;
    }

    /// A line that does not match: perhaps it stands beside one that does.
    fn pass(&mut self, stretch: &Stretches<'_>) {
        if self.context == 0 || self.full || 0 < stretch.again {
            return;
        }
        let text = stretch.text();
        let shown = Shown::of(&text[..text.len().min(2 * AROUND)], u64::MAX, usize::MAX, true);
        let cut = if shown.used < text.len() { "…" } else { "" };
        let line = format!("{}{cut}", shown.text);
        if 0 < self.behind && self.text.len() + line.len() + 24 < self.max {
            self.behind -= 1;
            self.text.push_str(&format!("{}- {line}\n", stretch.line));
            self.last = Some(stretch.line);
            return;
        }
        self.before.push_back((stretch.line, line));
        if self.context < self.before.len() {
            self.before.pop_front();
        }
    }

    fn finish(self, asked: &Asked<'_>) -> Piece {
        let from = self.from.min(self.seen);
        let to = from + self.shown;
        let next = Selector::Grep {
            pattern: asked.pattern.to_owned(),
            ignore_case: asked.ignore_case,
            context: asked.context,
            from: to,
        };
        let long = self.long.then_some("of long lines only what stands around the first match is shown; `head` with `offset` reads on from a byte");
        let lossy = self.lossy.then_some("some bytes are not UTF-8 and are shown as �");
        Piece::text(self.text, "text/plain", Unit::Matches)
            .place(from, to, Some(self.seen))
            .next((to < self.seen).then_some(next))
            .note(long)
            .note(lossy)
    }
}
