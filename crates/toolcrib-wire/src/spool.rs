//! Files for what is too large to be kept in memory.
//!
//! There is one for a message, however many parts of it are large: there may be hundreds of those, and few
//! files may be open. They have no names: each is unlinked as soon as it is there, so that nothing of it is
//! left however we end, and it goes away with the last who has it. A part lies there as it was written, escapes and all, so
//! that it can be put back exactly; what it says is made of that where it is read ([`said`]).

mod said;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read},
    ops::Range,
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
    /// How much is gathered before it is written.
    pub(crate) step: usize,
}

/// What is taken where nobody says otherwise.
const LIMIT: usize = 256 * 1024 * 1024;

/// Nobody notices so much memory.
const FROM: usize = 8 * 1024 * 1024;

/// A file is not worth its while for less.
const PART: usize = 64 * 1024;

/// More than this at a time is not written any faster.
const STEP: usize = 256 * 1024;

impl Spool {
    /// In this folder, messages of up to 256 MiB.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), limit: LIMIT, from: FROM, part: PART, step: STEP }
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
    /// Where in the text of the result the part of `content` begins that it belongs to; of a structure, where
    /// its stand-in does.
    pub within: usize,
    /// How many bytes [`SpooledPart::open`] reads of it.
    pub size: u64,
    /// Where it stands in the file.
    written: Range<u64>,
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
        if self.size == self.written.end - self.written.start {
            return Box::new(written);
        }
        Box::new(Said::new(written))
    }

    /// Reads it from its beginning as it was written: a string with its escapes, but without its quotes.
    pub fn open_raw(&self) -> impl Read + Send + use<> {
        self.reading()
    }

    fn reading(&self) -> Reading {
        let Range { start: at, end } = self.written;
        Reading { file: Arc::clone(&self.file), at, end }
    }
}

#[derive(Debug)]
struct Reading {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let room = buffer.len().min(left);
        let size = self.file.read_at(&mut buffer[..room], self.at)?;
        if size == 0 && 0 < room {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.at += size as u64;
        Ok(size)
    }
}

/// What is left of a part in the text of the result, and where: see [`SpooledPart`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct StandIn {
    pub(crate) place: Place,
    pub(crate) at: usize,
    pub(crate) within: usize,
}

/// The file of a message, and the part of it that is being put aside.
#[derive(Debug)]
pub(crate) struct Writing {
    file: Arc<File>,
    step: usize,
    /// What is yet to be written of the part.
    gathered: Vec<u8>,
    /// Where the part begins in the file.
    begin: u64,
    /// How much of the file is written.
    written: u64,
}

impl Writing {
    pub(crate) fn begin(spool: &Spool) -> io::Result<Self> {
        nameless(&spool.folder).map(|file| Self::on(file, spool.step))
    }

    /// On a file that is empty.
    pub(crate) fn on(file: File, step: usize) -> Self {
        let gathered = Vec::with_capacity(step);
        Self { file: Arc::new(file), step, gathered, begin: 0, written: 0 }
    }

    /// More of the part. Where that fails, nothing of the part is lost: see [`Writing::take_back`].
    pub(crate) fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.gathered.extend_from_slice(bytes);
        if self.gathered.len() < self.step {
            return Ok(());
        }
        self.flush()
    }

    /// Everything of the part has come, and says so much. What is put next is another part. Where this
    /// fails, nothing of the part is lost, either.
    pub(crate) fn end(&mut self, stand_in: StandIn, size: u64) -> io::Result<SpooledPart> {
        self.flush()?;
        let written = self.begin..self.written;
        self.begin = self.written;
        let StandIn { place, at, within } = stand_in;
        Ok(SpooledPart { place, at, within, size, written, file: Arc::clone(&self.file) })
    }

    /// How much of the part has come.
    fn size(&self) -> usize {
        let written = usize::try_from(self.written - self.begin).unwrap_or(usize::MAX);
        written.saturating_add(self.gathered.len())
    }

    /// Appends what has come of the part to `text`, if that is then no longer than `limit`, and forgets it.
    /// What was put aside before stays.
    pub(crate) fn take_back(&mut self, text: &mut Vec<u8>, limit: usize) -> io::Result<()> {
        let begin = text.len();
        // Looked at first: it may be far more than there is memory for.
        if limit.saturating_sub(begin) < self.size() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        text.resize(begin + self.size() - self.gathered.len(), 0);
        if let Err(error) = self.file.read_exact_at(&mut text[begin..], self.begin) {
            text.truncate(begin);
            return Err(error);
        }
        text.append(&mut self.gathered);
        self.written = self.begin;
        // Only to make room on the disk.
        self.file.set_len(self.begin).ok();
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all_at(&self.gathered, self.written)?;
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

    const STAND_IN: StandIn = StandIn { place: Place::Structure, at: 7, within: 7 };

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("spool-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn read(part: &SpooledPart) -> String {
        let mut found = String::new();
        part.open().read_to_string(&mut found).unwrap();
        found
    }

    #[test]
    fn a_file_has_no_name_and_is_read_from_its_beginning_every_time() {
        let folder = folder("names");
        fs::write(folder.join(format!("{}-0.part", std::process::id())), "left behind").unwrap();
        let mut writing = Writing::begin(&Spool::new(&folder)).unwrap();
        assert_eq!(writing.file.metadata().unwrap().mode() & 0o777, 0o600);
        assert_eq!(writing.file.metadata().unwrap().nlink(), 0);
        writing.put(b"one, ").unwrap();
        writing.put(&b"two".repeat(STEP)).unwrap();
        writing.put(b".").unwrap();
        let expected = format!("one, {}.", "two".repeat(STEP));
        let part = writing.end(STAND_IN, expected.len() as u64).unwrap();
        writing.put(b"another").unwrap();
        let another = writing.end(STAND_IN, 7).unwrap();
        fs::remove_dir_all(&folder).unwrap();
        for _ in 0..2 {
            assert!(read(&part) == expected);
            assert_eq!(read(&another), "another");
        }
        assert_eq!(
            Writing::begin(&Spool::new(&folder)).unwrap_err().kind(),
            io::ErrorKind::NotFound
        );
    }

    #[test]
    fn a_part_is_taken_back_whole_and_those_before_it_stay() {
        let folder = folder("back");
        let mut writing = Writing::begin(&Spool::new(&folder)).unwrap();
        writing.put(b"first").unwrap();
        let first = writing.end(STAND_IN, 5).unwrap();
        let large = b"0123456789".repeat(STEP / 10 + 1);
        for end in [&b""[..], b"more"] {
            writing.put(&large).unwrap();
            writing.put(end).unwrap();
            assert_eq!(writing.size(), large.len() + end.len());
            let mut text = b"{".to_vec();
            let size = 1 + large.len() + end.len();
            let error = writing.take_back(&mut text, size - 1).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
            assert!(text == b"{" && text.capacity() < 100);
            writing.take_back(&mut text, size).unwrap();
            assert!(text == [b"{", &large[..], end].concat());
            assert_eq!((writing.size(), read(&first).as_str()), (0, "first"));
        }
        // Somebody cut it off: rather nothing than too little.
        writing.put(&large).unwrap();
        writing.file.set_len(4).unwrap();
        let mut text = b"{".to_vec();
        assert!(writing.take_back(&mut text, usize::MAX).is_err());
        assert_eq!(text, b"{");
        assert!(first.open().read_to_string(&mut String::new()).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
