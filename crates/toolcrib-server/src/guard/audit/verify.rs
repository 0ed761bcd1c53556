//! Whether the records in a folder are those that were written: each follows from the one before, and the last is
//! the one that the head record names.

use std::{
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
};

use serde::{Serialize, de::IgnoredAny};

use super::{
    chain::{Hash, Head, Place, hex, link, segment_name, segments},
    read::{Lines, Next},
};

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verified {
    /// How many records are good.
    pub records: u64,
    /// In how many files.
    pub files: usize,
    /// The first that is kept.
    pub first: u64,
    /// The last that is good.
    pub last: u64,
    /// Its hash: who keeps it elsewhere will know if all of it is written anew.
    pub hash: String,
    /// The first place at which it is not as it was written.
    pub broken: Option<Broken>,
    /// What is worth knowing, and no fault.
    pub notes: Vec<String>,
}

/// A place at which the chain breaks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Broken {
    /// The record.
    pub seq: u64,
    /// The file.
    pub file: String,
    /// Its line, from 1; 0 where none is meant.
    pub line: u64,
    /// What is wrong.
    pub cause: String,
}

/// Reads everything and says whether it is as it was written.
pub fn verify(folder: &Path) -> io::Result<Verified> {
    let found = match segments(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        found => found?,
    };
    let head = match Head::read(folder) {
        Ok(head) => head,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            return Ok(headless("the head record cannot be read"));
        }
        Err(error) => return Err(error),
    };
    let Some(head) = head else {
        // The key is made after the first head record, and stays.
        if found.is_empty() && folder.with_extension("key").exists() {
            return Ok(headless("all records are gone, and `audit.key` is there still"));
        }
        if found.is_empty() {
            let note = "nothing has been recorded".to_owned();
            return Ok(Verified { notes: vec![note], ..nothing() });
        }
        return Ok(headless("the head record is gone"));
    };
    Walk::new(head).over(found)
}

fn nothing() -> Verified {
    let (hash, notes) = (String::new(), Vec::new());
    Verified { records: 0, files: 0, first: 0, last: 0, hash, broken: None, notes }
}

fn headless(cause: &str) -> Verified {
    let file = "head.json".to_owned();
    let broken = Some(Broken { seq: 0, file, line: 0, cause: cause.to_owned() });
    Verified { broken, ..nothing() }
}

/// Goes from record to record.
struct Walk {
    head: Head,
    /// What the next record must say.
    next: Place,
    records: u64,
    file: u64,
    line: u64,
    /// The file and the line of the record before.
    before: (u64, u64),
    /// Whether a record says that those before the first were let go.
    retained: bool,
    notes: Vec<String>,
}

impl Walk {
    fn new(head: Head) -> Self {
        let next = Place { seq: head.first.seq, prev: head.first.prev };
        let file = head.first.file;
        let (before, retained, notes) = ((file, 0), false, Vec::new());
        Self { head, next, records: 0, file, line: 0, before, retained, notes }
    }

    fn over(mut self, found: Vec<(u64, PathBuf)>) -> io::Result<Verified> {
        let (first, start) = (self.head.first.seq, self.head.first.file);
        let found: Vec<_> = found.into_iter().filter(|(number, _)| start <= *number).collect();
        let (mut broken, files) = (None, found.len());
        for (at, (number, path)) in found.iter().enumerate() {
            let expected = start + at as u64;
            if *number != expected {
                self.file = expected;
                self.line = 0;
                broken = Some(self.fault("the file is gone"));
                break;
            }
            self.file = *number;
            broken = self.file(path, at + 1 == files)?;
            if broken.is_some() {
                break;
            }
        }
        if self.retained {
            self.notes.push(format!("older records than {first} were let go by `retain`"));
        }
        if broken.is_none() && 1 < first && !self.retained {
            let cause = format!(
                "the beginning is gone: no record says that those before {first} were let go"
            );
            broken = Some(Broken { seq: first, file: segment_name(start), line: 1, cause });
        }
        let last = self.next.seq - 1;
        if broken.is_none() && last < self.head.seq {
            let (next, to) = (self.next.seq, self.head.seq);
            broken =
                Some(self.fault(format!("the end is cut off: records {next} to {to} are gone")));
        }
        let (records, notes) = (self.records, self.notes);
        let hash = hex(&self.next.prev);
        Ok(Verified { records, files, first, last, hash, broken, notes })
    }

    /// Goes through one file.
    fn file(&mut self, path: &Path, is_last: bool) -> io::Result<Option<Broken>> {
        self.line = 0;
        let mut lines = match Lines::open(path) {
            Ok(lines) => lines,
            Err(error) => return Ok(Some(self.fault(format!("the file: {error}")))),
        };
        loop {
            self.line += 1;
            let line = match lines.next()? {
                Next::End => return Ok(None),
                Next::TooLong => return Ok(Some(self.fault("the line is none of ours: too long"))),
                Next::Half(_) if is_last && self.head.seq < self.next.seq => {
                    let note = "half a line at the end: the gateway ended while it wrote, or writes just now";
                    self.notes.push(note.to_owned());
                    return Ok(None);
                }
                Next::Half(_) => return Ok(Some(self.fault("half of the line is gone"))),
                Next::Line(line) => line,
            };
            let Some(place) = read(line) else {
                return Ok(Some(self.fault("the line is no record")));
            };
            if place.seq != self.next.seq {
                return Ok(Some(self.out_of_order(place.seq)));
            }
            let hash = link(&place.prev, line);
            if place.prev != self.next.prev {
                return self.torn_apart(hash, &mut lines).map(Some);
            }
            if place.seq == self.head.seq && hash != self.head.hash {
                return Ok(Some(
                    self.fault("the record is not the one that the head record names"),
                ));
            }
            if let Some(cause) = lost(line) {
                return Ok(Some(self.fault(cause)));
            }
            self.retained |= 1 < self.head.first.seq && lets_go(line, &self.head.first.prev);
            self.before = (self.file, self.line);
            self.next = Place { seq: place.seq + 1, prev: hash };
            self.records += 1;
        }
    }

    fn out_of_order(&self, found: u64) -> Broken {
        match self.next.seq {
            next if found < next => self.fault(format!("record {found} stands here once more")),
            next if found == next + 1 => self.fault("the record is gone"),
            next => self.fault(format!("records {next} to {} are gone", found - 1)),
        }
    }

    /// A record does not follow from the one before. If what comes after follows from it, the one before was
    /// changed; else it was itself.
    fn torn_apart(&self, hash: Hash, lines: &mut Lines<BufReader<File>>) -> io::Result<Broken> {
        let headed = self.next.seq == self.head.seq && hash == self.head.hash;
        let followed = match lines.next()? {
            Next::Line(line) => Place::read(line).is_some_and(|it| it.prev == hash),
            _ => false,
        };
        let is_first = self.records == 0;
        if !is_first && (headed || followed) {
            let (file, line) = self.before;
            let cause = "the record was changed".to_owned();
            return Ok(Broken { seq: self.next.seq - 1, file: segment_name(file), line, cause });
        }
        Ok(self.fault("the record was changed, or does not belong here"))
    }

    fn fault(&self, cause: impl Into<String>) -> Broken {
        let file = segment_name(self.file);
        Broken { seq: self.next.seq, file, line: self.line, cause: cause.into() }
    }
}

/// What a record of a gap says was missing when the gateway started, if that is more than half a line.
/// No text in a record can look like it: a quote in a text has a backslash before it.
fn lost(line: &[u8]) -> Option<&'static str> {
    let line = std::str::from_utf8(line).ok()?;
    let (_, rest) = line.split_once(r#","event":"gap","subject":""#)?;
    let (kind, _) = rest.split_once('"')?;
    match kind {
        "head" => Some(
            "the head record was gone when the gateway started: what was there before is not certain",
        ),
        "changed" => Some("a record had been changed when the gateway started"),
        "cut" => Some("records were gone when the gateway started"),
        _ => None,
    }
}

/// Whether a record says that everything up to the record of this hash was let go.
fn lets_go(line: &[u8], last: &Hash) -> bool {
    let said = format!(r#","event":"retain","before":"{}""#, hex(last));
    std::str::from_utf8(line).is_ok_and(|it| it.contains(&said))
}

/// Where a line says that it stands, if it is a record.
fn read(line: &[u8]) -> Option<Place> {
    let place = Place::read(line)?;
    let text = std::str::from_utf8(line).ok()?;
    serde_json::from_str::<IgnoredAny>(text).ok()?;
    Some(place)
}
