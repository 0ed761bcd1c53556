//! What strings say, out of how they are written, in pieces. All of it has been checked when it came.

use std::io::{self, Read};

use super::Reading;

/// How much is read at a time.
const STEP: usize = 64 * 1024;

/// The longest escape: two units that are one character.
const LONGEST: usize = 12;

/// How long what a string says is.
#[derive(Debug, Default)]
pub(crate) struct Length {
    escape: Escape,
    pub(crate) size: u64,
}

impl Length {
    /// With the next piece of how it is written.
    pub(crate) fn add(&mut self, mut written: &[u8]) {
        while let Ok(Some(next)) = self.escape.next(&mut written) {
            self.size += match next {
                Next::Run(run) => run.len() as u64,
                Next::Char(c) => c.len_utf8() as u64,
            };
        }
    }
}

/// Reads what a string says.
#[derive(Debug)]
pub(super) struct Said {
    written: Reading,
    piece: Vec<u8>,
    /// How much of the piece has been read.
    at: usize,
    escape: Escape,
    /// The rest of a character for which there was no room.
    rest: Vec<u8>,
}

impl Said {
    pub(super) fn new(written: Reading) -> Self {
        let (escape, rest) = (Escape::default(), Vec::new());
        Self { written, piece: Vec::new(), at: 0, escape, rest }
    }

    /// Reads the next piece; false at the end.
    fn refill(&mut self) -> io::Result<bool> {
        self.at = 0;
        self.piece.resize(STEP, 0);
        let read = self.written.read(&mut self.piece);
        self.piece.truncate(*read.as_ref().unwrap_or(&0));
        if read? == 0 && !self.escape.begun.is_empty() {
            return Err(damaged());
        }
        Ok(!self.piece.is_empty())
    }
}

impl Read for Said {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            let room = &mut buffer[filled..];
            if !self.rest.is_empty() {
                let size = self.rest.len().min(room.len());
                room[..size].copy_from_slice(&self.rest[..size]);
                self.rest.drain(..size);
                filled += size;
                continue;
            }
            if self.at == self.piece.len() {
                // What there is goes first: an error that follows must not take it along.
                if 0 < filled || !self.refill()? {
                    break;
                }
                continue;
            }
            let left = &self.piece[self.at..];
            let begin = &left[..left.len().min(room.len())];
            let mut after = begin;
            let next = self.escape.next(&mut after)?;
            self.at += begin.len() - after.len();
            match next {
                Some(Next::Run(run)) => {
                    room[..run.len()].copy_from_slice(run);
                    filled += run.len();
                }
                Some(Next::Char(c)) => {
                    self.rest.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                }
                None => {}
            }
        }
        Ok(filled)
    }
}

/// What comes next of what is said.
enum Next<'a> {
    /// This, as it is written.
    Run(&'a [u8]),
    /// What an escape stands for.
    Char(char),
}

/// The beginning of an escape whose rest has not come.
#[derive(Debug, Default)]
struct Escape {
    begun: Vec<u8>,
}

impl Escape {
    /// Takes the next off what is written; nothing where that ends first.
    fn next<'a>(&mut self, written: &mut &'a [u8]) -> io::Result<Option<Next<'a>>> {
        while let [first, rest @ ..] = *written {
            if self.begun.is_empty() && *first != b'\\' {
                let run = memchr::memchr(b'\\', written).unwrap_or(written.len());
                let (run, rest) = written.split_at(run);
                *written = rest;
                return Ok(Some(Next::Run(run)));
            }
            self.begun.push(*first);
            *written = rest;
            if let Some(said) = escaped(&self.begun) {
                self.begun.clear();
                return Ok(Some(Next::Char(said)));
            }
            if LONGEST <= self.begun.len() {
                return Err(damaged());
            }
        }
        Ok(None)
    }
}

fn damaged() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "what was put aside is damaged")
}

/// The character that an escape stands for, if it is whole.
fn escaped(escape: &[u8]) -> Option<char> {
    let unit = |digits: &[u8]| {
        let add = |sum: u32, it: &u8| Some(sum * 16 + char::from(*it).to_digit(16)?);
        digits.iter().try_fold(0, add)
    };
    Some(match *escape {
        [b'\\', b'u'] => return None,
        [b'\\', b'b'] => '\u{8}',
        [b'\\', b'f'] => '\u{c}',
        [b'\\', b'n'] => '\n',
        [b'\\', b'r'] => '\r',
        [b'\\', b't'] => '\t',
        [b'\\', itself] => char::from(itself),
        // Half of a pair is no character, and the other half follows.
        [b'\\', b'u', ref unit_ @ ..] if unit_.len() == 4 => char::from_u32(unit(unit_)?)?,
        [b'\\', b'u', a, b, c, d, b'\\', b'u', e, f, g, h] => {
            let (high, low) = (unit(&[a, b, c, d])?, unit(&[e, f, g, h])?);
            char::from_u32(0x10000 + ((high & 0x3ff) << 10) + (low & 0x3ff))?
        }
        _ => return None,
    })
}
