//! Going on where the last run ended, however it did.
//!
//! Half a line at the end is what a crash leaves: it is put aside, and said. A chain that ends before its head
//! record was cut: that is said too, by a record that leaves the missing numbers out, so that it is found for as
//! long as the files are kept.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use super::{
    chain::{First, Hash, Head, MOST_LINE, NONE, Place, link, segment_name, segments},
    read::{Lines, Next},
};

/// Where to go on.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) head: Head,
    /// What the next record says.
    pub(crate) next: Place,
    pub(crate) number: u64,
    pub(crate) file: File,
    pub(crate) size: u64,
    /// What is to be said of how the last run ended.
    pub(crate) gaps: Vec<Gap>,
}

/// Something that is missing, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gap {
    /// `torn` is what a crash leaves; anything else is somebody's doing, or a disk's.
    pub(crate) kind: &'static str,
    pub(crate) cause: String,
}

/// How all of it ends.
enum End {
    Nothing,
    Damaged,
    At(Place, Hash),
}

/// How a file of records ends.
struct Ending {
    /// The last whole line.
    line: Option<Vec<u8>>,
    /// Where the whole lines end, and where the file does.
    whole: u64,
    size: u64,
}

/// Opens the records of a folder, which is made where there is none.
pub(crate) fn recover(folder: &Path) -> io::Result<Recovered> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    let found = segments(folder)?;
    let mut gaps = Vec::new();
    let head = match Head::read(folder) {
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            gaps.push(Gap::new("head", "the head record could not be read"));
            None
        }
        head => head?,
    };
    let end = end(&found, &mut gaps)?;
    let head = match head {
        Some(head) => head,
        None if found.is_empty() && gaps.is_empty() => Head::new(),
        None => {
            if !gaps.iter().any(|it| it.kind == "head") {
                gaps.push(Gap::new("head", "the head record was gone"));
            }
            beginning(&found, &end)?
        }
    };
    let (seq, prev) = match end {
        End::At(place, hash) if head.seq <= place.seq => {
            if place.seq == head.seq && hash != head.hash {
                gaps.push(Gap::new("changed", format!("record {} was changed", place.seq)));
            }
            (place.seq, hash)
        }
        End::Damaged => (head.seq, head.hash),
        End::Nothing if head.seq == 0 => (0, NONE),
        End::Nothing | End::At(..) => {
            let from = if let End::At(place, _) = end { place.seq + 1 } else { head.first.seq };
            let cause = format!("the end was cut off: records {from} to {} are gone", head.seq);
            gaps.push(Gap::new("cut", cause));
            (head.seq, head.hash)
        }
    };
    let number = found.last().map_or(head.file.max(1), |(it, _)| (*it).max(head.file));
    let (file, size) = open_segment(folder, number)?;
    // What another run wrote and did not sync would be built on, and might be gone after all.
    file.sync_all()?;
    head.write(folder)?;
    File::open(folder)?.sync_all()?;
    Ok(Recovered { head, next: Place { seq: seq + 1, prev }, number, file, size, gaps })
}

/// The last record, and its hash. Half a line after it is put aside.
fn end(found: &[(u64, PathBuf)], gaps: &mut Vec<Gap>) -> io::Result<End> {
    for (number, path) in found.iter().rev() {
        let ending = ending(path)?;
        if ending.whole < ending.size {
            put_aside(path, &ending)?;
            let torn = ending.size - ending.whole;
            let name = segment_name(*number);
            gaps.push(Gap::new(
                "torn",
                format!("half a line was put aside: {torn} bytes of {name}"),
            ));
        }
        let Some(line) = ending.line else { continue };
        let Some(place) = Place::read(&line) else {
            let cause = format!("the last line of {} is no record", segment_name(*number));
            gaps.push(Gap::new("changed", cause));
            return Ok(End::Damaged);
        };
        return Ok(End::At(place, link(&place.prev, &line)));
    }
    Ok(End::Nothing)
}

impl Gap {
    pub(crate) fn new(kind: &'static str, cause: impl Into<String>) -> Self {
        Self { kind, cause: cause.into() }
    }
}

fn ending(path: &Path) -> io::Result<Ending> {
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::Error::other(format!("`{}` is no file", path.display())));
    }
    let mut file = File::open(path)?;
    let size = file.metadata()?.len();
    // The last line, and half a line after it.
    let from = size.saturating_sub(2 * MOST_LINE as u64 + 2);
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(size - from).read_to_end(&mut bytes)?;
    let Some(last) = bytes.iter().rposition(|it| *it == b'\n') else {
        // Nothing whole: at the beginning of a file that is a torn line, else it is no file of ours.
        let whole = if from == 0 { 0 } else { size };
        let line = (from != 0).then(Vec::new);
        return Ok(Ending { line, whole, size });
    };
    let begin = bytes[..last].iter().rposition(|it| *it == b'\n').map_or(0, |it| it + 1);
    let whole = from + last as u64 + 1;
    Ok(Ending { line: Some(bytes[begin..last].to_vec()), whole, size })
}

fn put_aside(path: &Path, ending: &Ending) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let aside = path.with_extension("torn");
    let mut torn = options.append(true).create(true).mode(0o600).open(aside)?;
    let mut file = OpenOptions::new().read(true).write(true).open(path)?;
    file.seek(SeekFrom::Start(ending.whole))?;
    io::copy(&mut (&mut file).take(ending.size - ending.whole), &mut torn)?;
    torn.sync_all()?;
    file.set_len(ending.whole)?;
    file.sync_all()
}

/// Where the chain begins, where no head record says so.
fn beginning(found: &[(u64, PathBuf)], end: &End) -> io::Result<Head> {
    let mut head = Head::new();
    if let Some((number, path)) = found.first() {
        let mut lines = Lines::open(path)?;
        let place = match lines.next()? {
            Next::Line(line) => Place::read(line),
            _ => None,
        };
        let place = place.unwrap_or(Place { seq: 1, prev: NONE });
        head.first = First { file: *number, seq: place.seq, prev: place.prev };
    }
    if let End::At(place, hash) = end {
        (head.seq, head.hash) = (place.seq, *hash);
    }
    head.file = found.last().map_or(1, |(number, _)| *number);
    Ok(head)
}

/// Opens a file of records to add to it.
pub(crate) fn open_segment(folder: &Path, number: u64) -> io::Result<(File, u64)> {
    let path = folder.join(segment_name(number));
    if fs::symlink_metadata(&path).is_ok_and(|it| !it.is_file()) {
        return Err(io::Error::other(format!("`{}` is no file", path.display())));
    }
    let mut options = OpenOptions::new();
    let file = options.append(true).create(true).mode(0o600).open(path)?;
    let size = file.metadata()?.len();
    Ok((file, size))
}
