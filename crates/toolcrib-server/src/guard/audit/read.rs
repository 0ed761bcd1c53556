//! Reading records. A file may be anything by now: huge lines, no text, no JSON. Nothing here holds more than one
//! line, and no line longer than our own ever are.

use std::{
    fs::{self, File},
    io::{self, BufRead, BufReader},
    path::Path,
};

use serde_json::Value;

use super::chain::{MOST_LINE, segments};

/// The lines of a file.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    from: R,
    line: Vec<u8>,
}

/// What comes next in a file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next<'a> {
    /// A line, without its end.
    Line(&'a [u8]),
    /// The file ends before the line does.
    Half(&'a [u8]),
    /// A line that is too long to be ours.
    TooLong,
    End,
}

impl Lines<BufReader<File>> {
    /// The lines of a file, which must be one: a pipe of that name would keep us waiting.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        if !fs::symlink_metadata(path)?.is_file() {
            return Err(io::Error::other("it is no file"));
        }
        Ok(Self::new(BufReader::with_capacity(1 << 16, File::open(path)?)))
    }
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(from: R) -> Self {
        Self { from, line: Vec::new() }
    }

    pub(crate) fn next(&mut self) -> io::Result<Next<'_>> {
        self.line.clear();
        let mut long = false;
        loop {
            let piece = match self.from.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                piece => piece?,
            };
            let end = piece.iter().position(|it| *it == b'\n');
            let taken = end.unwrap_or(piece.len());
            long |= MOST_LINE < self.line.len() + taken;
            if !long {
                self.line.extend_from_slice(&piece[..taken]);
            }
            let (over, used) = (piece.is_empty(), taken + usize::from(end.is_some()));
            self.from.consume(used);
            if end.is_none() && !over {
                continue;
            }
            return Ok(match (end.is_some(), long) {
                (_, true) => Next::TooLong,
                (true, false) => Next::Line(&self.line),
                (false, false) if self.line.is_empty() => Next::End,
                (false, false) => Next::Half(&self.line),
            });
        }
    }
}

/// The record of a call, if there is one: the newest files are looked through first.
pub fn find_call(folder: &Path, id: &str) -> io::Result<Option<Value>> {
    let sane = id.len() <= 128 && id.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-');
    if id.is_empty() || !sane {
        return Ok(None);
    }
    let wanted = format!("\"call\":\"{id}\"");
    let found = match segments(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found?,
    };
    for (_, path) in found.iter().rev() {
        let mut lines = Lines::open(path)?;
        loop {
            let line = match lines.next()? {
                Next::Line(line) => line,
                Next::TooLong => continue,
                Next::Half(_) | Next::End => break,
            };
            let Ok(line) = std::str::from_utf8(line) else { continue };
            if !line.contains(&wanted) {
                continue;
            }
            // The words may stand in a text of another record.
            let value: Option<Value> = serde_json::from_str(line).ok();
            if let Some(value) = value.filter(|it| it["call"] == id) {
                return Ok(Some(value));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: &[Next<'_>]) {
        // A small buffer, so that lines go over its end.
        let mut lines = Lines::new(BufReader::with_capacity(7, bytes));
        for it in expected {
            assert_eq!(lines.next().unwrap(), *it);
        }
        assert_eq!(lines.next().unwrap(), Next::End);
    }

    #[test]
    fn lines_half_lines_and_none() {
        check(b"", &[]);
        check(
            b"a\n\nlonger than seven\n",
            &[Next::Line(b"a"), Next::Line(b""), Next::Line(b"longer than seven")],
        );
        check(b"a\nhalf of a line", &[Next::Line(b"a"), Next::Half(b"half of a line")]);
    }

    #[test]
    fn a_line_without_end_is_not_kept() {
        let mut bytes = vec![b'x'; MOST_LINE + 1];
        check(&bytes, &[Next::TooLong]);
        bytes.extend_from_slice(b"\nafter\n");
        check(&bytes, &[Next::TooLong, Next::Line(b"after")]);
        let just = [vec![b'x'; MOST_LINE], b"\n".to_vec()].concat();
        check(&just, &[Next::Line(&just[..MOST_LINE])]);
    }
}
