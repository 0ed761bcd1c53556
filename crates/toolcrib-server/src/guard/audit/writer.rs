//! The one thread that writes records, and where they wait for it.
//!
//! Whoever has something to record puts a line together in a buffer that all share; the writer takes the whole
//! buffer, gives each line its place in the chain, and writes them at once. What it has written is kept until it is
//! synced: a disk that failed to sync may have forgotten it and will not say so again, so then everything since the
//! last sync is written once more.
//!
//! While nothing can be written calls are refused. Nothing is dropped: what happened already waits.

use std::{
    fs::File,
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::{Notify, oneshot};
use toolcrib_bus::{now_ms, rfc3339};

use super::{
    Keeping,
    chain::{Head, Place, link},
    flood::Floods,
    record::EventRecord,
    recover::{Recovered, open_segment},
};

/// With so many records waiting, new calls wait too.
pub(crate) const MOST_WAITING: usize = 10_000;

/// A record counts once more for each so many bytes.
const WEIGHT: usize = 8192;

/// How long records gather where nobody waits for them to be written.
const GATHER: Duration = Duration::from_millis(5);

/// How often what was written is synced where nobody waits for it, and the head record written.
const SYNC: Duration = Duration::from_secs(1);

/// With so much unsynced it is done at once.
const MOST_UNSYNCED: usize = 4 << 20;

/// How long after a failure it is tried again.
const AGAIN: Duration = Duration::from_millis(250);

/// How often files that are too old are looked for.
const SWEEP: Duration = Duration::from_secs(3600);

const DAY_MS: u64 = 86_400_000;

/// Where records wait.
#[derive(Debug)]
pub(crate) struct Shared {
    pending: Mutex<Pending>,
    wake: Condvar,
    /// How many records are not written yet; large ones count more than once.
    waiting: AtomicUsize,
    room: Notify,
    broken: AtomicBool,
    cause: Mutex<String>,
    /// How many calls were refused since it broke.
    refused: AtomicU64,
    /// How many records were written since the start.
    written: AtomicU64,
}

/// What is counted of the record.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) written: u64,
    pub(crate) waiting: u64,
    pub(crate) writable: bool,
}

#[derive(Debug, Default)]
struct Pending {
    lines: Vec<u8>,
    weight: usize,
    waiters: Vec<oneshot::Sender<()>>,
    stamp: Stamp,
    floods: Floods,
    closed: bool,
}

/// The time as it is written; most of it stays the same for a second.
#[derive(Debug, Default)]
struct Stamp {
    second: u64,
    text: Vec<u8>,
}

impl Stamp {
    fn at(&mut self, ms: u64) -> &[u8] {
        if self.second != ms / 1000 || self.text.is_empty() {
            self.second = ms / 1000;
            self.text = rfc3339(ms).into_bytes();
        }
        let digit = |it: u64| b'0' + u8::try_from(it % 10).unwrap_or_default();
        if let [.., hundreds, tens, ones, _] = self.text.as_mut_slice() {
            let ms = ms % 1000;
            (*hundreds, *tens, *ones) = (digit(ms / 100), digit(ms / 10), digit(ms));
        }
        &self.text
    }
}

/// Records cannot be written just now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("calls are refused while the audit record cannot be written: {0}")]
pub(crate) struct Unwritable(pub(crate) String);

impl Shared {
    pub(crate) fn new() -> Self {
        Self {
            pending: Mutex::default(),
            wake: Condvar::new(),
            waiting: AtomicUsize::new(0),
            room: Notify::new(),
            broken: AtomicBool::new(false),
            cause: Mutex::default(),
            refused: AtomicU64::new(0),
            written: AtomicU64::new(0),
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        Figures {
            written: self.written.load(Ordering::Relaxed),
            waiting: self.waiting.load(Ordering::Relaxed) as u64,
            writable: !self.broken.load(Ordering::Relaxed),
        }
    }

    /// Why nothing can be written just now.
    pub(crate) fn broken_by(&self) -> Option<String> {
        self.broken.load(Ordering::Relaxed).then(|| self.cause.lock().clone())
    }

    /// Waits until there is room for one more call.
    pub(crate) async fn admit(&self) -> Result<(), Unwritable> {
        loop {
            if self.broken.load(Ordering::Relaxed) {
                self.refused.fetch_add(1, Ordering::Relaxed);
                return Err(Unwritable(self.cause.lock().clone()));
            }
            if self.waiting.load(Ordering::Relaxed) < MOST_WAITING {
                return Ok(());
            }
            let room = self.room.notified();
            // It may have come between the two.
            if MOST_WAITING <= self.waiting.load(Ordering::Relaxed)
                && !self.broken.load(Ordering::Relaxed)
            {
                room.await;
            }
        }
    }

    /// Adds a record; `waits` gets to know when it is on disk.
    pub(crate) fn put(
        &self,
        waits: Option<oneshot::Sender<()>>,
        write: impl FnOnce(&[u8], &mut Vec<u8>),
    ) {
        let mut pending = self.pending.lock();
        let urgent = waits.is_some();
        pending.waiters.extend(waits);
        let first = self.add(&mut pending, now_ms(), write);
        drop(pending);
        if first || urgent {
            self.wake.notify_one();
        }
    }

    /// Adds a record, and says whether it is the only one.
    fn add(
        &self,
        pending: &mut Pending,
        now: u64,
        write: impl FnOnce(&[u8], &mut Vec<u8>),
    ) -> bool {
        let Pending { lines, stamp, weight, .. } = pending;
        let before = lines.len();
        write(stamp.at(now), lines);
        lines.push(b'\n');
        let more = 1 + (lines.len() - before) / WEIGHT;
        *weight += more;
        self.waiting.fetch_add(more, Ordering::Relaxed);
        before == 0
    }

    /// Adds an event, or where there are too many of its kind counts it.
    pub(crate) fn event(&self, kind: &'static str, record: &EventRecord<'_>) {
        let now = now_ms();
        let mut pending = self.pending.lock();
        let full = MOST_WAITING <= self.waiting.load(Ordering::Relaxed);
        if pending.floods.is_one_more(kind, now / 1000, full) {
            let first = self.add(&mut pending, now, |ts, out| record.write(ts, out));
            drop(pending);
            if first {
                self.wake.notify_one();
            }
        }
    }

    /// Whether one more refused call of a caller gets a record; where not, it is counted.
    pub(crate) fn tells_refusal(&self, who: &str, group: &str) -> bool {
        let second = now_ms() / 1000;
        let mut pending = self.pending.lock();
        let told = pending.floods.is_one_more_of(who, group, second);
        drop(pending);
        // The writer may sleep for long, and has to tell of this one some day.
        if told == Err(1) {
            self.wake.notify_one();
        }
        told.is_ok()
    }

    /// Adds what was only counted.
    fn tell_floods(&self, all: bool) {
        let now = now_ms();
        let mut pending = self.pending.lock();
        for (who, group, times) in pending.floods.take_refusals(now / 1000, all) {
            let cause = Some("more refused calls than are told one by one");
            let (who, group) = (Some(who.as_str()), Some(group.as_str()));
            let event = "calls_refused";
            let times = Some(times);
            let record = EventRecord { event, who, group, cause, times, ..EventRecord::default() };
            self.add(&mut pending, now, |ts, out| record.write(ts, out));
        }
        for (event, times) in pending.floods.take(now / 1000, all) {
            let cause = Some("more than are told one by one");
            let record = EventRecord { event, times: Some(times), cause, ..EventRecord::default() };
            self.add(&mut pending, now, |ts, out| record.write(ts, out));
        }
    }

    /// Nothing more comes.
    pub(crate) fn close(&self) {
        self.pending.lock().closed = true;
        self.wake.notify_one();
    }

    fn fail(&self, error: &io::Error) {
        *self.cause.lock() = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "the disk is full".to_owned()
            }
            _ => error.to_string(),
        };
        if !self.broken.swap(true, Ordering::Relaxed) {
            tracing::error!(%error, "the audit record cannot be written; calls are refused");
        }
        self.room.notify_waiters();
    }

    /// It works again.
    fn mend(&self) {
        if !self.broken.swap(false, Ordering::Relaxed) {
            return;
        }
        let refused = self.refused.swap(0, Ordering::Relaxed);
        tracing::warn!(refused, "the audit record can be written again");
        let cause = self.cause.lock().clone();
        let record = EventRecord {
            event: "refused",
            subject: Some("audit"),
            cause: Some(&cause),
            times: Some(refused),
            ..EventRecord::default()
        };
        self.put(None, |ts, out| record.write(ts, out));
    }
}

/// What only the writer has.
#[derive(Debug)]
pub(crate) struct Writer {
    shared: Arc<Shared>,
    pub(super) folder: PathBuf,
    pub(super) keeping: Keeping,
    pub(super) head: Head,
    next: Place,
    pub(super) number: u64,
    file: File,
    /// The day, since 1970, of the file's first record.
    day: u64,
    /// How much of the file is surely on disk.
    synced: u64,
    /// What comes after that, and how much of it was written.
    tail: Vec<u8>,
    written: usize,
    /// A write or a sync failed: what comes after `synced` is written once more.
    suspect: bool,
    /// Records that have no place yet.
    pub(super) batch: Vec<u8>,
    weight: usize,
    waiters: Vec<oneshot::Sender<()>>,
    synced_at: Instant,
    swept_at: Option<Instant>,
}

impl Writer {
    pub(crate) fn new(
        shared: Arc<Shared>,
        folder: PathBuf,
        keeping: Keeping,
        from: Recovered,
    ) -> Self {
        let Recovered { head, next, number, file, size, .. } = from;
        let modified = file.metadata().and_then(|it| it.modified()).ok();
        let since = modified.and_then(|it| it.duration_since(SystemTime::UNIX_EPOCH).ok());
        let day = since.map_or_else(now_ms, |it| u64::try_from(it.as_millis()).unwrap_or(0));
        Self {
            day: if size == 0 { now_ms() / DAY_MS } else { day / DAY_MS },
            synced: size,
            tail: Vec::new(),
            written: 0,
            suspect: false,
            batch: Vec::new(),
            weight: 0,
            waiters: Vec::new(),
            synced_at: Instant::now(),
            swept_at: None,
            shared,
            folder,
            keeping,
            head,
            next,
            number,
            file,
        }
    }

    /// Writes until nothing more comes.
    pub(crate) fn run(mut self) {
        loop {
            let closed = self.take();
            while let Err(error) = self.commit(closed) {
                self.suspect = true;
                self.shared.fail(&error);
                if self.shared.pending.lock().closed {
                    tracing::error!(%error, "the last audit records could not be written");
                    return;
                }
                std::thread::sleep(AGAIN);
            }
            self.shared.mend();
            if closed && self.shared.pending.lock().lines.is_empty() {
                return;
            }
        }
    }

    /// Takes what waits, or waits for it. Returns whether nothing more comes.
    fn take(&mut self) -> bool {
        let strict = self.keeping.strict;
        let mut pending = self.shared.pending.lock();
        if pending.lines.is_empty() && !pending.closed {
            let due = if self.tail.is_empty() && self.is_headed() && pending.floods.is_calm() {
                Instant::now() + SWEEP
            } else {
                self.synced_at + SYNC
            };
            self.shared.wake.wait_until(&mut pending, due);
        }
        if !strict && !pending.closed && !pending.lines.is_empty() {
            drop(pending);
            std::thread::sleep(GATHER);
            pending = self.shared.pending.lock();
        }
        let closed = pending.closed;
        drop(pending);
        self.shared.tell_floods(closed);
        let mut pending = self.shared.pending.lock();
        std::mem::swap(&mut pending.lines, &mut self.batch);
        self.weight += std::mem::take(&mut pending.weight);
        self.waiters.append(&mut pending.waiters);
        closed
    }

    fn is_headed(&self) -> bool {
        self.head.seq + 1 == self.next.seq
    }

    /// Brings what was taken to the disk.
    fn commit(&mut self, closed: bool) -> io::Result<()> {
        if !self.batch.is_empty() {
            let full = self.keeping.largest <= self.synced + self.tail.len() as u64;
            if 0 < self.synced + self.tail.len() as u64 && (full || now_ms() / DAY_MS != self.day) {
                self.rotate()?;
            }
            self.chain();
        }
        let due = self.synced_at + SYNC <= Instant::now();
        let many = MOST_UNSYNCED <= self.tail.len();
        let sync = self.suspect || closed || due || many || !self.waiters.is_empty();
        self.flush(sync)?;
        // Not before: what they wait for may only just have got its place.
        for waiter in self.waiters.drain(..) {
            // Whoever waited may be gone.
            waiter.send(()).ok();
        }
        let waiting = std::mem::take(&mut self.weight);
        if 0 < waiting {
            self.shared.waiting.fetch_sub(waiting, Ordering::Relaxed);
            self.shared.room.notify_waiters();
        }
        if (due || closed) && self.tail.is_empty() && !self.is_headed() {
            self.write_head()?;
        }
        if due {
            self.synced_at = Instant::now();
        }
        if self.swept_at.is_none_or(|it| SWEEP <= it.elapsed()) {
            self.swept_at = Some(Instant::now());
            if let Err(error) = self.sweep() {
                tracing::warn!(%error, "old audit files stay");
            }
        }
        Ok(())
    }

    /// Gives every record its place.
    pub(super) fn chain(&mut self) {
        let before = self.next.seq;
        let mut from = 0;
        for end in memchr::memchr_iter(b'\n', &self.batch) {
            let line = &self.batch[from..=end];
            from = end + 1;
            let begin = self.tail.len();
            self.next.write(&mut self.tail);
            self.tail.extend_from_slice(line);
            let hash = link(&self.next.prev, &self.tail[begin..self.tail.len() - 1]);
            self.next = Place { seq: self.next.seq + 1, prev: hash };
        }
        self.shared.written.fetch_add(self.next.seq - before, Ordering::Relaxed);
        self.batch.clear();
        self.batch.shrink_to(MOST_UNSYNCED);
    }

    pub(super) fn flush(&mut self, sync: bool) -> io::Result<()> {
        if self.suspect {
            self.file.set_len(self.synced)?;
            self.written = 0;
        }
        // The file is open for appending only; half of a write that failed is cut off before the next.
        self.suspect = true;
        self.file.write_all(&self.tail[self.written..])?;
        self.written = self.tail.len();
        if sync {
            self.file.sync_data()?;
            self.synced += self.tail.len() as u64;
            self.tail.clear();
            self.tail.shrink_to(MOST_UNSYNCED);
            self.written = 0;
        }
        self.suspect = false;
        Ok(())
    }

    pub(super) fn write_head(&mut self) -> io::Result<()> {
        let first = self.head.first.clone();
        let Place { seq, prev } = self.next;
        let head = Head { seq: seq - 1, hash: prev, file: self.number, first };
        head.write(&self.folder)?;
        self.head = head;
        Ok(())
    }

    /// Begins another file.
    fn rotate(&mut self) -> io::Result<()> {
        self.flush(true)?;
        self.write_head()?;
        let (file, size) = open_segment(&self.folder, self.number + 1)?;
        if 0 < size {
            return Err(io::Error::other("the next audit file is there already"));
        }
        File::open(&self.folder)?.sync_all()?;
        (self.file, self.synced, self.day) = (file, 0, now_ms() / DAY_MS);
        self.number += 1;
        self.swept_at = None;
        Ok(())
    }
}
