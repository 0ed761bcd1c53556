//! Reading records. A file may be anything by now: huge lines, no text, no JSON. Nothing here holds more than one
//! line, and no line longer than our own ever are.

use std::{
    collections::VecDeque,
    fs::{self, File},
    io::{self, BufRead, BufReader, Seek, SeekFrom},
    ops::ControlFlow,
    path::{Path, PathBuf},
};

use serde_json::Value;

use super::chain::{MOST_LINE, segments};

/// The lines of a file.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    from: R,
    line: Vec<u8>,
    /// How many bytes all lines so far took.
    taken: u64,
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
        Self { from, line: Vec::new(), taken: 0 }
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
            self.taken += used as u64;
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

/// The records of a folder, one after the other, and those that are added later.
#[derive(Debug)]
pub struct Records {
    folder: PathBuf,
    /// The file that is being read, and how far.
    file: u64,
    at: u64,
}

impl Records {
    /// All that are there.
    pub fn all(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), file: 0, at: 0 }
    }

    /// The last so many of those that are wanted, as they are written, and what comes after them.
    pub fn last(
        folder: &Path,
        most: usize,
        wanted: impl Fn(&Value) -> bool,
    ) -> io::Result<(Vec<(String, Value)>, Self)> {
        let (mut found, mut rest) = (VecDeque::new(), Self::all(folder));
        for (number, path) in files(folder)?.into_iter().rev() {
            let mut of_file = VecDeque::new();
            let end = read(&path, 0, &mut |line, record| {
                if wanted(&record) {
                    of_file.push_back((line.to_owned(), record));
                }
                if most < of_file.len() {
                    of_file.pop_front();
                }
                ControlFlow::Continue(())
            })?;
            if rest.file == 0 {
                (rest.file, rest.at) = (number, end);
            }
            while let Some(it) = of_file.pop_back().filter(|_| found.len() < most) {
                found.push_front(it);
            }
            if most <= found.len() {
                break;
            }
        }
        Ok((found.into(), rest))
    }

    /// Goes through what was not gone through yet: each record as it is written, and what it says. A line that is
    /// no record is passed over; `audit verify` tells of it.
    pub fn each(&mut self, mut show: impl FnMut(&str, Value) -> ControlFlow<()>) -> io::Result<()> {
        for (number, path) in files(&self.folder)? {
            if number < self.file {
                continue;
            }
            if self.file < number {
                (self.file, self.at) = (number, 0);
            }
            let mut over = false;
            self.at = read(&path, self.at, &mut |line, record| {
                let next = show(line, record);
                over = next.is_break();
                next
            })?;
            if over {
                break;
            }
        }
        Ok(())
    }
}

/// The files of records; none where there is no folder.
fn files(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    match segments(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        found => found,
    }
}

/// Reads a file from a place on; says how far. A line that is still being written is left for the next time.
fn read(
    path: &Path,
    from: u64,
    show: &mut impl FnMut(&str, Value) -> ControlFlow<()>,
) -> io::Result<u64> {
    let mut lines = Lines::open(path)?;
    lines.from.seek(SeekFrom::Start(from))?;
    let mut at = from;
    loop {
        let shown = match lines.next()? {
            Next::Half(_) | Next::End => return Ok(at),
            Next::TooLong => ControlFlow::Continue(()),
            Next::Line(line) => {
                let line = std::str::from_utf8(line).unwrap_or_default();
                match serde_json::from_str(line) {
                    Ok(record) => show(line, record),
                    Err(_not_one) => ControlFlow::Continue(()),
                }
            }
        };
        at = from + lines.taken;
        if shown.is_break() {
            return Ok(at);
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
    for (_, path) in files(folder)?.iter().rev() {
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

    /// Three files; the last line of the last is still being written.
    #[test]
    fn records_are_gone_through_once_and_those_that_come_too() {
        let folder = std::env::temp_dir().join(format!("toolcrib-records-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let write = |number: u64, text: &str| {
            fs::write(folder.join(super::super::chain::segment_name(number)), text).unwrap();
        };
        write(3, "{\"n\":1}\n{\"n\":2}\n");
        write(4, "no record\n{\"n\":3}\n");
        write(5, "{\"n\":4}\n{\"n\":");
        let numbers = |records: &mut Records, most: usize| {
            let mut found = Vec::new();
            let show = |_: &str, it: Value| {
                found.push(it["n"].as_u64().unwrap());
                if found.len() < most { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            };
            records.each(show).unwrap();
            found
        };
        let mut all = Records::all(&folder);
        assert_eq!(numbers(&mut all, 1), [1]);
        assert_eq!(numbers(&mut all, 9), [2, 3, 4]);
        let odd = |it: &Value| it["n"].as_u64().unwrap() % 2 == 1;
        let (last, mut rest) = Records::last(&folder, 9, odd).unwrap();
        assert_eq!(
            last.iter().map(|it| it.0.as_str()).collect::<Vec<_>>(),
            ["{\"n\":1}", "{\"n\":3}"]
        );
        assert_eq!(Records::last(&folder, 2, |_| true).unwrap().0[0].1["n"], 3);
        write(5, "{\"n\":4}\n{\"n\":5}\n");
        write(6, "{\"n\":6}\n");
        assert_eq!((numbers(&mut all, 9), numbers(&mut rest, 9)), (vec![5, 6], vec![5, 6]));
        assert_eq!(numbers(&mut all, 9), [0; 0]);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!(numbers(&mut Records::all(&folder), 9), [0; 0]);
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
