//! Files for what is too large to be kept in memory.
//!
//! They have no names: each is unlinked as soon as it is there, so that nothing of it is left however we
//! end, and it goes away with the last who has it. A part lies there as it was written, escapes and all, so
//! that it can be put back exactly; what it says is made of that where it is read ([`said`]).

mod said;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

pub(crate) use said::Length;
use said::Said;

/// Where large parts of results go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spool {
    /// A folder that exists, on a disk with room.
    pub folder: PathBuf,
    /// The largest message that is taken, what is put aside of it included. What is kept in memory of it
    /// is bounded as all messages are.
    pub limit: usize,
    /// Messages up to this size take the usual way.
    pub(crate) from: usize,
    /// Parts up to this size stay where they are.
    pub(crate) part: usize,
}

/// What is taken where nobody says otherwise.
const LIMIT: usize = 256 * 1024 * 1024;

/// Nobody notices so much memory.
const FROM: usize = 8 * 1024 * 1024;

/// A file is not worth its while for less.
const PART: usize = 64 * 1024;

/// How much is gathered before it is written.
const STEP: usize = 256 * 1024;

impl Spool {
    /// In this folder, messages of up to 256 MiB.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), limit: LIMIT, from: FROM, part: PART }
    }
}

/// Parts of a result that were put aside, in the order in which they stood in it.
#[derive(Debug, Default)]
pub struct Spooled {
    /// The parts.
    pub parts: Vec<SpooledPart>,
}

/// A part of a result that was put aside.
#[derive(Debug)]
pub struct SpooledPart {
    /// What it is of the result.
    pub place: Place,
    /// Where in the text of the result its stand-in begins: `""`, or `null`.
    pub at: usize,
    /// How many bytes can be read of it.
    pub size: u64,
    /// How much is written of it.
    written: u64,
    file: Arc<File>,
}

/// Which part of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A string in the part of `content` that stands here, counted from 0.
    Content(usize, Field),
    /// The whole of `structuredContent`.
    Structure,
}

/// Which string of a part of `content`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `text`.
    Text,
    /// `data`.
    Data,
    /// `resource.text`.
    ResourceText,
    /// `resource.blob`.
    ResourceBlob,
}

impl SpooledPart {
    /// Reads it from its beginning: a string as what it says, without quotes and escapes; a structure as
    /// the JSON that it is.
    pub fn open(&self) -> Box<dyn Read + Send> {
        let written = self.reading();
        // An escape is always longer than what it stands for.
        if self.size == self.written {
            return Box::new(written);
        }
        Box::new(Said::new(written))
    }

    /// Reads it from its beginning as it was written: a string with its escapes, but without its quotes.
    pub fn open_raw(&self) -> impl Read + Send + use<> {
        self.reading()
    }

    fn reading(&self) -> Reading {
        Reading { file: Arc::clone(&self.file), at: 0 }
    }
}

#[derive(Debug)]
struct Reading {
    file: Arc<File>,
    at: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = self.file.read_at(buffer, self.at)?;
        self.at += size as u64;
        Ok(size)
    }
}

/// A part that is being put aside.
#[derive(Debug)]
pub(crate) struct Writing {
    file: File,
    gathered: Vec<u8>,
    written: u64,
}

impl Writing {
    pub(crate) fn begin(folder: &Path) -> io::Result<Self> {
        let file = nameless(folder)?;
        Ok(Self { file, gathered: Vec::with_capacity(STEP), written: 0 })
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() < STEP {
            return Ok(());
        }
        self.flush()
    }

    /// Everything of it has come, and says so much.
    pub(crate) fn end(mut self, place: Place, at: usize, size: u64) -> io::Result<SpooledPart> {
        self.flush()?;
        let (written, file) = (self.written, Arc::new(self.file));
        Ok(SpooledPart { place, at, size, written, file })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.gathered)?;
        self.written += self.gathered.len() as u64;
        self.gathered.clear();
        Ok(())
    }
}

/// A new file that only we can open, and that has lost its name.
fn nameless(folder: &Path) -> io::Result<File> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{}-{number}.part", std::process::id()));
        let mut options = OpenOptions::new();
        match options.read(true).write(true).create_new(true).mode(0o600).open(&path) {
            Ok(file) => {
                fs::remove_file(&path)?;
                return Ok(file);
            }
            // A process that had our number ended between these two lines.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn a_file_has_no_name_and_is_read_from_its_beginning_every_time() {
        let folder = std::env::temp_dir().join(format!("spool-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(format!("{}-0.part", std::process::id())), "left behind").unwrap();
        let mut writing = Writing::begin(&folder).unwrap();
        assert_eq!(writing.file.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(writing.file.metadata().unwrap().nlink(), 0);
        writing.put(b"one, ").unwrap();
        writing.put(&b"two".repeat(STEP)).unwrap();
        writing.put(b".").unwrap();
        let expected = format!("one, {}.", "two".repeat(STEP));
        let part = writing.end(Place::Structure, 7, expected.len() as u64).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        let (mut one, mut other) = (part.open(), part.open());
        for reader in [&mut one, &mut other] {
            let mut found = String::new();
            reader.read_to_string(&mut found).unwrap();
            assert!(found == expected);
        }
        assert_eq!(part.size, expected.len() as u64);
        assert_eq!(Writing::begin(&folder).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
