//! The folder: two files for each artifact, `ID.data` with the content as it is and `ID.json` with what is known
//! of it.
//!
//! Both are written under other names, synced to the disk and then renamed, the content first; the folder is synced
//! last. So an `ID.json` stands for something whole, also after a crash, and `finish` returns when it is on the
//! disk. What a crash left half is removed when the store is opened. Names of groups and tools are in the JSON, never in
//! a path. The files do not change once they are there: whoever only reads needs no lock.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Write},
    os::unix::fs::{MetadataExt, OpenOptionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::{
    ArtifactId, Piece, PieceError, ReadLimits, Selector, Shape, Writer, describe,
    found::{Damage, Found, read_meta, set_aside},
    index::Index,
    piece::read_piece,
};
use crate::ArtifactRef;

/// The longest label, name or handle that is kept.
const MAX_WORD: usize = 1000;

/// How much a store holds, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all together.
    pub quota_bytes: u64,
    /// Bytes of one owner.
    pub owner_quota_bytes: u64,
    /// Bytes of one artifact.
    pub max_bytes: u64,
    /// How many there may be.
    pub max_count: usize,
    /// How many of one owner.
    pub owner_max_count: usize,
    /// How long each is kept.
    pub keep: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            quota_bytes: 2 << 30,
            owner_quota_bytes: 1 << 30,
            max_bytes: 512 << 20,
            max_count: 50_000,
            owner_max_count: 25_000,
            keep: Duration::from_secs(7 * 24 * 3600),
        }
    }
}

/// What is known of something before it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct New {
    /// The group that it belongs to.
    pub owner: String,
    /// The tool that it came from.
    pub tool: String,
    /// The id of the call that it came from. Those of one call do not push each other out.
    pub call: String,
    /// The handle that an envelope has for it.
    pub handle: String,
    /// What people call it.
    pub label: String,
    /// What it is, such as `application/json`.
    pub media_type: String,
    /// How long to keep it, where that is less than the store's own limit.
    pub keep: Option<Duration>,
}

/// Something that is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Artifact {
    /// What to ask for it by.
    pub id: ArtifactId,
    /// The group that it belongs to.
    pub owner: String,
    /// The tool that it came from.
    #[serde(default)]
    pub tool: String,
    /// The id of the call that it came from.
    #[serde(default)]
    pub call: String,
    /// The handle that an envelope has for it.
    #[serde(default)]
    pub handle: String,
    /// What people call it.
    #[serde(default)]
    pub label: String,
    /// What it is.
    pub media_type: String,
    /// How large it is.
    pub size_bytes: u64,
    /// SHA-256 of its bytes, in hex.
    pub content_hash: String,
    /// When it was stored, in milliseconds since 1970.
    pub created: u64,
    /// When it goes.
    pub expires: u64,
}

impl Artifact {
    /// How resources name it: `toolcrib://artifact/ID`.
    pub fn uri(&self) -> String {
        super::artifact_uri(&self.id, None)
    }

    /// As an envelope speaks of it.
    pub fn reference(&self) -> ArtifactRef {
        ArtifactRef {
            handle: self.handle.clone(),
            media_type: self.media_type.clone(),
            size_bytes: self.size_bytes,
            label: self.label.clone(),
            content_hash: Some(self.content_hash.clone()),
        }
    }
}

/// Why something cannot be stored, found or removed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is larger than one may be.
    #[error("an artifact may have {limit} bytes at most; this one has more")]
    TooLarge {
        /// How many.
        limit: u64,
    },
    /// There is no room for it that its owner could make.
    #[error("{}", of.said(*quota, *size))]
    Full {
        /// How large it is.
        size: u64,
        /// How much there may be.
        quota: u64,
        /// Of what.
        of: Quota,
    },
    /// The store was opened for looking only.
    #[error("this store is open for reading only")]
    ReadOnly,
    /// The disk would not.
    #[error("cannot keep it: {0}")]
    Io(#[source] io::Error),
}

/// What there is too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quota {
    /// Bytes of all together.
    Bytes,
    /// Bytes of one group.
    GroupBytes,
    /// How many there are.
    Count,
    /// How many one group has.
    GroupCount,
    /// Bytes that are on their way at once.
    Writing,
}

impl Quota {
    fn said(self, quota: u64, size: u64) -> String {
        let bytes = format!("and {size} more would not fit");
        match self {
            Self::Bytes => format!("the store holds {quota} bytes at most, {bytes}"),
            Self::GroupBytes => format!("a group may store {quota} bytes at most, {bytes}"),
            Self::Count => format!("the store holds {quota} artifacts at most"),
            Self::GroupCount => format!("a group may store {quota} artifacts at most"),
            Self::Writing => format!("{quota} bytes at most are stored at once, {bytes}"),
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        // A `Writer` is an `io::Write`, and has to say what it means in an error of that kind.
        error.downcast().unwrap_or_else(Self::Io)
    }
}

/// Stored results.
#[derive(Debug, Clone)]
pub struct Store {
    pub(super) shared: Arc<Shared>,
}

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) folder: PathBuf,
    pub(super) limits: Limits,
    pub(super) index: Mutex<Index>,
    writable: bool,
    /// When expired ones were last taken away.
    swept: Mutex<Option<Instant>>,
}

impl Store {
    /// Opens the store in a folder, which is made where there is none. Nobody else may have it open for writing:
    /// what looks half-written is removed. Also gives what was wrong and what was done about it.
    pub fn open(folder: &Path, limits: Limits) -> io::Result<(Self, Vec<String>)> {
        make_folder(folder)?;
        let (store, mut said) = Self::read_folder(folder, limits, true)?;
        let gone = store.sweep(SystemTime::now());
        if 0 < gone {
            said.push(format!("{gone} expired and removed"));
        }
        Ok((store, said))
    }

    /// Opens a store for looking only, also while another process writes to it. Nothing is changed.
    pub fn look(folder: &Path) -> io::Result<(Self, Vec<String>)> {
        Self::read_folder(folder, Limits::default(), false)
    }

    fn read_folder(
        folder: &Path,
        limits: Limits,
        writable: bool,
    ) -> io::Result<(Self, Vec<String>)> {
        let mut found = Found::default();
        for entry in fs::read_dir(folder)? {
            found.sort_in(&entry?);
        }
        let mut index = Index::default();
        let mut said = Vec::new();
        for id in &found.metas {
            match read_meta(folder, id) {
                Ok(artifact) => index.adopt(artifact),
                // Another process has just removed it, or a crash took the content: nothing to keep.
                Err(Damage::Gone) if !writable => {}
                Err(damage) => said.push(set_aside(folder, id, &damage, writable)),
            }
        }
        let orphans = found.datas.iter().filter(|id| !found.metas.contains(id));
        if writable {
            let orphans = orphans.map(|id| format!("{id}.data"));
            for name in found.parts.iter().cloned().chain(orphans) {
                let done =
                    if fs::remove_file(folder.join(&name)).is_ok() { "removed" } else { "left" };
                said.push(format!("`{name}` was not finished: {done}"));
            }
        }
        said.extend(found.foreign.iter().map(|it| format!("`{it}` is not ours: left alone")));
        let index = Mutex::new(index);
        let shared =
            Shared { folder: folder.to_owned(), limits, index, writable, swept: Mutex::default() };
        Ok((Self { shared: Arc::new(shared) }, said))
    }

    /// Begins to store something of which the size need not be known.
    pub fn begin(&self, new: New) -> Result<Writer, StoreError> {
        if !self.shared.writable {
            return Err(StoreError::ReadOnly);
        }
        let id = ArtifactId::random()?;
        let created = millis(SystemTime::now());
        let keep = new.keep.map_or(self.shared.limits.keep, |it| it.min(self.shared.limits.keep));
        let keep = u64::try_from(keep.as_millis()).unwrap_or(u64::MAX);
        let artifact = Artifact {
            id,
            owner: new.owner,
            tool: word(new.tool),
            call: word(new.call),
            handle: word(new.handle),
            label: word(new.label),
            media_type: word(new.media_type),
            size_bytes: 0,
            content_hash: String::new(),
            created,
            expires: created.saturating_add(keep),
        };
        Writer::new(Arc::clone(&self.shared), artifact)
    }

    /// Stores bytes.
    pub fn put(&self, new: New, bytes: &[u8]) -> Result<Artifact, StoreError> {
        if self.shared.limits.max_bytes < bytes.len() as u64 {
            return Err(StoreError::TooLarge { limit: self.shared.limits.max_bytes });
        }
        let mut writer = self.begin(new)?;
        writer.write_all(bytes)?;
        writer.finish()
    }

    /// What has this id and belongs to `owner`, or to anybody where none is named. What has expired is not found.
    pub fn find(&self, owner: Option<&str>, id: &ArtifactId) -> Option<Artifact> {
        let now = millis(SystemTime::now());
        let index = self.shared.index.lock();
        let found = index.get(id).filter(|it| now < it.expires);
        found.filter(|it| owner.is_none_or(|owner| owner == it.owner)).cloned()
    }

    /// What belongs to `owner`, or everything, newest first.
    pub fn list(&self, owner: Option<&str>) -> Vec<Artifact> {
        let now = millis(SystemTime::now());
        let index = self.shared.index.lock();
        let theirs = |it: &&Artifact| owner.is_none_or(|owner| owner == it.owner);
        let mut list: Vec<Artifact> =
            index.iter().filter(|it| now < it.expires).filter(theirs).cloned().collect();
        drop(index);
        list.sort_by(|a, b| (b.created, &b.id).cmp(&(a.created, &a.id)));
        list
    }

    /// How many bytes are stored.
    pub fn used_bytes(&self) -> u64 {
        self.shared.index.lock().used()
    }

    /// Removes one; says whether there was one.
    pub fn remove(&self, id: &ArtifactId) -> Result<bool, StoreError> {
        if !self.shared.writable {
            return Err(StoreError::ReadOnly);
        }
        let found = self.shared.index.lock().remove(id);
        if found.is_some() {
            self.shared.erase(id)?;
        }
        Ok(found.is_some())
    }

    /// Removes several, such as the parts of a result that could not be stored whole. What cannot be removed now is
    /// tried again when the store is opened next.
    pub fn forget(&self, ids: &[ArtifactId]) {
        if !self.shared.writable {
            return;
        }
        for id in ids {
            let found = self.shared.index.lock().remove(id);
            if found.is_some() {
                self.shared.erase(id).ok();
            }
        }
    }

    /// Removes what has expired at `now`; says how many.
    pub fn sweep(&self, now: SystemTime) -> usize {
        if self.shared.writable { self.shared.sweep(now) } else { 0 }
    }

    /// The content, to be read in whatever way. A file that is not the one that was written, such as a link that
    /// somebody has put in its place, is not opened.
    pub fn content(&self, artifact: &Artifact) -> io::Result<File> {
        let no_links = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        let flags = no_links.bits().cast_signed();
        let path = self.shared.data(&artifact.id);
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
        let found = file.metadata()?;
        if found.is_file() && found.nlink() == 1 && found.len() == artifact.size_bytes {
            return Ok(file);
        }
        Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "the stored content is not what was written",
        ))
    }

    /// What it is, how much of it, and what is in it.
    pub fn describe(&self, artifact: &Artifact) -> io::Result<Shape> {
        describe(&mut self.content(artifact)?, &artifact.media_type)
    }

    /// A piece of it.
    pub fn read(
        &self,
        artifact: &Artifact,
        selector: &Selector,
        limits: &ReadLimits,
    ) -> Result<Piece, PieceError> {
        let mut content = self.content(artifact)?;
        read_piece(&mut content, &artifact.media_type, selector, limits)
    }
}

/// So many, or one of a hundred, go at a time.
const SWEPT: usize = 100;

/// How long whoever stores something leaves it at that: else a clock that jumped would take a hundred with every
/// result.
const BETWEEN: Duration = Duration::from_secs(60);

impl Shared {
    pub(super) fn data(&self, id: &ArtifactId) -> PathBuf {
        self.folder.join(format!("{id}.data"))
    }

    pub(super) fn meta(&self, id: &ArtifactId) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    /// Takes away what has expired, unless that was done a moment ago.
    pub(super) fn sweep_in_passing(&self) {
        let due = self.swept.lock().is_none_or(|it| BETWEEN < it.elapsed());
        if due {
            self.sweep(SystemTime::now());
        }
    }

    pub(super) fn sweep(&self, now: SystemTime) -> usize {
        *self.swept.lock() = Some(Instant::now());
        let mut index = self.index.lock();
        // A clock that jumps must not take everything at once; what has expired is not found meanwhile.
        let most = (index.iter().count() / 100).max(SWEPT);
        let expired = index.take_expired(millis(now), most);
        drop(index);
        for id in &expired {
            // What cannot be removed now is tried again when the store is opened next.
            self.erase(id).ok();
        }
        expired.len()
    }

    /// Makes the folder again that somebody has removed, and forgets what was in it.
    pub(super) fn make_again(&self) -> io::Result<()> {
        make_folder(&self.folder)?;
        let mut index = self.index.lock();
        let all: Vec<ArtifactId> = index.iter().map(|it| it.id.clone()).collect();
        for id in all {
            if matches!(fs::exists(self.data(&id)), Ok(false)) {
                index.remove(&id);
            }
        }
        Ok(())
    }

    /// Takes the files away. What is known of it first: content alone is cleaned up at the next start.
    pub(super) fn erase(&self, id: &ArtifactId) -> io::Result<()> {
        let gone = |path: &Path| match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        };
        gone(&self.meta(id)).and(gone(&self.data(id)))
    }
}

fn make_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Milliseconds since 1970.
pub(super) fn millis(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// At most so much of a name: a server may send any.
fn word(mut text: String) -> String {
    if MAX_WORD < text.len() {
        text.truncate(text.floor_char_boundary(MAX_WORD));
    }
    text
}
