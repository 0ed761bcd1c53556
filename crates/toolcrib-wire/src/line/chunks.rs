//! A body in chunks: a size, so many bytes, a line end, and again; a size of nothing ends it.

use std::io;

use bytes::{Buf, BytesMut};

/// The longest line before a chunk, and after the last one.
const MAX_LINE: usize = 4 * 1024;

/// The most lines after the last one.
const MAX_TRAILERS: u8 = 32;

/// How far a body has been read.
#[derive(Debug, Default)]
pub(crate) enum Chunks {
    /// The next is the size of a chunk.
    #[default]
    Size,
    /// So much of a chunk is to come.
    Data(u64),
    /// After the last chunk; so many lines came since.
    Trailer(u8),
    End,
}

/// What to do next.
pub(crate) enum Step<'a> {
    /// So many bytes of data come.
    Data(&'a mut u64),
    /// More has to be read before that is known.
    More,
    /// That was all.
    End,
}

impl Chunks {
    pub(crate) fn step(&mut self, got: &mut BytesMut) -> io::Result<Step<'_>> {
        if matches!(self, Self::Data(0)) {
            match &**got {
                [b'\r', b'\n', ..] => got.advance(2),
                [] | [b'\r'] => return Ok(Step::More),
                _ => return Err(broken()),
            }
            *self = Self::Size;
        }
        while let Self::Size | Self::Trailer(_) = self {
            let Some(line) = line(got)? else { return Ok(Step::More) };
            *self = match self {
                Self::Size => match size(&line)? {
                    0 => Self::Trailer(0),
                    size => Self::Data(size),
                },
                Self::Trailer(_) if line.is_empty() => Self::End,
                Self::Trailer(MAX_TRAILERS) => return Err(broken()),
                Self::Trailer(lines) => Self::Trailer(*lines + 1),
                Self::Data(_) | Self::End => break,
            };
        }
        Ok(match self {
            Self::Data(left) => Step::Data(left),
            _ => Step::End,
        })
    }
}

/// A line without its end, once it is there.
fn line(got: &mut BytesMut) -> io::Result<Option<BytesMut>> {
    let Some(end) = memchr::memchr(b'\n', got) else {
        return if MAX_LINE < got.len() { Err(broken()) } else { Ok(None) };
    };
    let mut line = got.split_to(end + 1);
    line.truncate(end);
    if line.last() == Some(&b'\r') {
        line.truncate(end - 1);
    }
    if MAX_LINE < line.len() { Err(broken()) } else { Ok(Some(line)) }
}

fn size(line: &[u8]) -> io::Result<u64> {
    let digits = line.split(|it| *it == b';').next().unwrap_or_default().trim_ascii();
    let sound = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let text = str::from_utf8(digits).ok().filter(|_| sound);
    text.and_then(|it| u64::from_str_radix(it, 16).ok()).ok_or_else(broken)
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its answer comes in chunks that are none")
}
