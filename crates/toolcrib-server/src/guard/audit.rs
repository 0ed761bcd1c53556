//! The audit record: one line of JSON for every call, however it ended, and for every event that matters to
//! security. Lines hang together by hashes (`chain`); one thread writes them (`writer`).
//!
//! What cannot be recorded is not done: while nothing can be written calls are refused before they run. In `strict`
//! nobody hears the answer to a call before its record is on disk.

mod record;
mod events;
mod flood;
mod chain;
mod recover;
mod writer;
mod sweep;
mod read;
mod recent;
mod verify;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use toolcrib_wire::text::Masker;

pub use self::{
    read::{Records, find_call},
    verify::{Broken, Verified, verify},
};
pub(crate) use self::{
    recent::{Tail, Told, recent_calls},
    record::{CallRecord, EventRecord, Payload},
    writer::{Figures, Unwritable},
};
use self::{
    record::MOST_PAYLOAD,
    recover::{Gap, recover},
    writer::{Shared, Writer},
};

use crate::words;

/// How calls are recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// Whether an answer waits for its record.
    pub mode: AuditMode,
    /// How long records are kept.
    pub retain: Duration,
    /// How many bytes of them; the oldest go first.
    pub max_size: u64,
    /// Whether arguments are written, without secrets.
    pub arguments: Shown,
    /// Whether results are.
    pub results: Shown,
}

/// When records are on disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditMode {
    /// Soon: within a second.
    On,
    /// Before the answer.
    Strict,
}

/// What is written of arguments and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    /// How large they are, and a digest.
    Digest,
    /// The text too, without secrets.
    Masked,
}

impl Default for AuditSettings {
    fn default() -> Self {
        Self {
            mode: AuditMode::On,
            retain: Duration::from_secs(90 * 86_400),
            max_size: 1 << 30,
            arguments: Shown::Digest,
            results: Shown::Digest,
        }
    }
}

/// How files are kept.
#[derive(Debug, Clone)]
struct Keeping {
    strict: bool,
    retain: Duration,
    /// When another file is begun.
    largest: u64,
    /// How much is kept.
    most: u64,
}

/// When another file is begun.
const LARGEST: u64 = 16 << 20;

/// Outcomes of calls that were refused before anything ran. They cost a caller nothing, and so must cost us little.
const REFUSED: [&str; 5] = [
    words::UNKNOWN_TOOL,
    words::INVALID_ARGUMENTS,
    words::LIMITED,
    words::HELD,
    words::EXPELLED_NOW,
];

/// How long an answer waits for a record that cannot be written.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where calls are recorded.
#[derive(Debug)]
pub struct Audit {
    shared: Arc<Shared>,
    folder: PathBuf,
    settings: AuditSettings,
    /// Makes digests say nothing to others.
    key: Key,
    masker: ArcSwap<Masker>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Key([u8; 32]);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("****")
    }
}

/// A record that is on its way; in `strict` it is to be waited for.
#[derive(Debug)]
#[must_use]
pub(crate) struct Receipt(Option<oneshot::Receiver<()>>);

impl Audit {
    /// Opens the records in a folder, with the key in a file beside it; both are made where there are none.
    pub fn open(
        folder: &Path,
        key: &Path,
        settings: AuditSettings,
        masker: Masker,
    ) -> io::Result<Self> {
        let (strict, retain) = (settings.mode == AuditMode::Strict, settings.retain);
        let most = settings.max_size;
        // There have to be files that can go.
        let keeping = Keeping { strict, retain, largest: LARGEST.min(most / 8), most };
        Self::start(folder, key, settings, keeping, masker)
    }

    fn start(
        folder: &Path,
        key: &Path,
        settings: AuditSettings,
        keeping: Keeping,
        masker: Masker,
    ) -> io::Result<Self> {
        // The key is made last: where there is one, there were records.
        let had_key = key.exists();
        let recovered = recover(folder)?;
        let key = read_key(key)?;
        let mut gaps = recovered.gaps.clone();
        if had_key && gaps.is_empty() && recovered.next.seq == 1 {
            gaps.push(Gap::new("cut", "all records were gone, and `audit.key` was there still"));
        }
        let shared = Arc::new(Shared::new());
        let folder = PathBuf::from(folder);
        let writer = Writer::new(Arc::clone(&shared), folder.clone(), keeping, recovered);
        let thread = std::thread::Builder::new().name("audit".to_owned());
        let thread = thread.spawn(move || writer.run())?;
        let (masker, thread) = (ArcSwap::from_pointee(masker), Mutex::new(Some(thread)));
        let audit = Self { shared, folder, settings, key, masker, thread };
        for Gap { kind, cause } in gaps {
            tracing::warn!(kind, "audit: {cause}");
            let (subject, cause) = (Some(kind), Some(cause.as_str()));
            audit.event("gap", &EventRecord { subject, cause, ..EventRecord::default() });
        }
        audit.event("start", &EventRecord::default());
        Ok(audit)
    }

    /// Where the records are.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// What is counted of the record.
    pub(crate) fn figures(&self) -> Figures {
        self.shared.figures()
    }

    /// Why nothing can be recorded just now.
    pub(crate) fn broken(&self) -> Option<String> {
        self.shared.broken_by()
    }

    /// What makes marks of callers say nothing to others.
    pub(crate) fn salt(&self) -> &[u8; 32] {
        &self.key.0
    }

    /// Asks, before a call runs, whether it can be recorded; waits where too many records wait.
    pub(crate) async fn admit(&self) -> Result<(), Unwritable> {
        self.shared.admit().await
    }

    /// Records a call that has ended.
    pub(crate) fn call(&self, record: &CallRecord<'_>) -> Receipt {
        if REFUSED.contains(&record.outcome) && !self.shared.tells_refusal(record.who, record.group)
        {
            return Receipt(None);
        }
        let strict = self.settings.mode == AuditMode::Strict;
        let (sender, receiver) = if strict {
            let (sender, receiver) = oneshot::channel();
            (Some(sender), Some(receiver))
        } else {
            (None, None)
        };
        self.shared.put(sender, |ts, out| record.write(ts, out));
        Receipt(receiver)
    }

    /// Records something else.
    pub(crate) fn event(&self, event: &'static str, record: &EventRecord<'_>) {
        self.shared.event(event, &EventRecord { event, ..*record });
    }

    /// What is said of arguments: their size, and a digest that only we can make.
    pub(crate) fn digest(&self, bytes: &[u8]) -> Payload<'static> {
        let hash = blake3::keyed_hash(&self.key.0, bytes);
        let digest = hash.as_bytes().first_chunk().copied();
        Payload { bytes: bytes.len(), digest, masked: None }
    }

    /// The text of arguments without secrets, where it is to be written.
    pub(crate) fn arguments(&self, bytes: &[u8]) -> Option<String> {
        self.shown(self.settings.arguments, bytes)
    }

    /// The text of a result without secrets, where it is to be written.
    pub(crate) fn result(&self, bytes: &[u8]) -> Option<String> {
        self.shown(self.settings.results, bytes)
    }

    fn shown(&self, shown: Shown, bytes: &[u8]) -> Option<String> {
        if shown == Shown::Digest {
            return None;
        }
        let (masker, read) = (self.masker.load(), bytes.len().min(2 * MOST_PAYLOAD));
        let mut text = masker.mask_json(&String::from_utf8_lossy(&bytes[..read])).into_owned();
        // A secret that goes over the end is cut, and not known any more.
        let whole = if read < bytes.len() { masker.margin() } else { 0 };
        let end = text.floor_char_boundary(text.len().saturating_sub(whole).min(MOST_PAYLOAD));
        text.truncate(end);
        Some(text)
    }

    /// A text without secrets.
    pub(crate) fn mask(&self, text: &str) -> String {
        self.masker.load().mask(text).into_owned()
    }

    /// Takes these secrets out too from now on.
    pub(crate) fn set_masker(&self, masker: &Masker) {
        self.masker.rcu(|known| Masker::clone(known).and(masker.clone()));
    }

    /// Writes what waits, and ends.
    pub(crate) fn close(&self) {
        let Some(thread) = self.thread.lock().take() else { return };
        self.event("stop", &EventRecord::default());
        self.shared.close();
        if thread.join().is_err() {
            tracing::error!("the audit record was not ended well");
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        self.close();
    }
}

impl Receipt {
    /// Waits until the record is on disk, where the answer has to.
    pub(crate) async fn safe(self) -> Result<(), Unwritable> {
        let Some(receiver) = self.0 else { return Ok(()) };
        match tokio::time::timeout(PATIENCE, receiver).await {
            Ok(Ok(())) => Ok(()),
            _ => Err(Unwritable("its record is not on disk".to_owned())),
        }
    }
}

/// The key of a workspace; one is made where there is none.
fn read_key(path: &Path) -> io::Result<Key> {
    let bad =
        || io::Error::other(format!("`{}` is no key; remove it to have one made", path.display()));
    let mut options = OpenOptions::new();
    match options.write(true).create_new(true).mode(0o600).open(path) {
        Ok(mut file) => {
            let mut key = [0; 32];
            getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
            let written = file.write_all(&key).and_then(|()| file.sync_all());
            if let Err(error) = written {
                fs::remove_file(path).ok();
                return Err(error);
            }
            Ok(Key(key))
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            if !fs::symlink_metadata(path)?.is_file() {
                return Err(bad());
            }
            let mut bytes = Vec::new();
            File::open(path)?.take(33).read_to_end(&mut bytes)?;
            bytes.try_into().map(Key).map_err(|_other_length| bad())
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
