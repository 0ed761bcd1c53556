//! The one thread that changes the file. What gathers while the disk is busy is one transaction, and
//! nobody is answered before it is on disk.
//!
//! When the disk is full, those who asked hear so, and the next try may go well. When it failed in any
//! other way nothing of the file in memory can be trusted: it is let go, and nobody is answered well until
//! a new one has brought everything that was ever answered to a safe place.

use std::{
    collections::VecDeque,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use parking_lot::{Condvar, Mutex};
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::{Semaphore, oneshot};

use crate::{
    BusError, Record,
    embedded::Synchronous,
    store::{self, OpenError},
    tail::Tail,
};

/// More than this is not one transaction.
const MAX_JOBS: usize = 512;

/// More jobs than this do not wait.
const MAX_WAITING: usize = 4096;

/// Nobody is made to wait longer than this for others to come along.
const MAX_LINGER: Duration = Duration::from_millis(2);

/// How long after a failure the file is opened anew: at first, and at most.
const REOPEN: Duration = Duration::from_millis(50);
const REOPEN_AT_MOST: Duration = Duration::from_secs(2);

/// How often things are put in order where nobody asks for anything.
const IDLE: Duration = Duration::from_secs(30);

/// What is to be done in a transaction.
pub(crate) struct Scene<'a> {
    pub(crate) change: &'a Transaction<'a>,
    /// The place of the last event.
    pub(crate) last: u64,
    /// Milliseconds by a clock that never jumps.
    pub(crate) clock: u64,
    /// What was appended.
    pub(crate) appended: Vec<Arc<Record>>,
    /// There is more to put in order.
    pub(crate) more: bool,
}

/// Puts things in order.
pub(crate) type Sweep = Box<dyn FnMut(&mut Scene<'_>) -> rusqlite::Result<()> + Send>;

/// Something to do, and somebody who waits for it.
trait Job: Send {
    /// Does it. An error spoils the whole transaction.
    fn run(&mut self, scene: &mut Scene<'_>) -> rusqlite::Result<()>;

    /// Says how it ended.
    fn answer(self: Box<Self>, ended: Result<(), BusError>);
}

struct Asked<F, T> {
    work: Option<F>,
    found: Option<Result<T, BusError>>,
    reply: oneshot::Sender<Result<T, BusError>>,
    /// What becomes of the answer where nobody waits for it any more.
    lost: Option<Box<dyn FnOnce(T) + Send>>,
}

impl<F, T> Job for Asked<F, T>
where
    F: FnOnce(&mut Scene<'_>) -> rusqlite::Result<Result<T, BusError>> + Send,
    T: Send,
{
    fn run(&mut self, scene: &mut Scene<'_>) -> rusqlite::Result<()> {
        if let Some(work) = self.work.take() {
            self.found = Some(work(scene)?);
        }
        Ok(())
    }

    fn answer(self: Box<Self>, ended: Result<(), BusError>) {
        let answer = match (ended, self.found) {
            (Ok(()), Some(found)) => found,
            (Ok(()), None) => Err(BusError::Closed),
            (Err(error), _) => Err(error),
        };
        // Whoever asked may be gone; what was done stays done.
        if let (Err(Ok(found)), Some(lost)) = (self.reply.send(answer), self.lost) {
            lost(found);
        }
    }
}

/// Where jobs wait.
pub(crate) struct Queue {
    waiting: Mutex<Waiting>,
    ready: Condvar,
    room: Semaphore,
}

#[derive(Default)]
struct Waiting {
    jobs: VecDeque<Box<dyn Job>>,
    /// With so many the writer begins; waking it for each of them would cost more than they do.
    expected: usize,
    closed: bool,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self { waiting: Mutex::default(), ready: Condvar::new(), room: Semaphore::new(MAX_WAITING) }
    }

    /// Has something done, and waits until it is on disk.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Scene<'_>) -> rusqlite::Result<Result<T, BusError>> + Send + 'static,
    ) -> Result<T, BusError> {
        let _room = self.room.acquire().await.map_err(|_closed| BusError::Closed)?;
        let answer = self.submit(work, None)?;
        answer.await.unwrap_or(Err(BusError::Closed))
    }

    /// Has something done; `lost` hears what it brought where nobody waits for it any more.
    pub(crate) fn submit<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Scene<'_>) -> rusqlite::Result<Result<T, BusError>> + Send + 'static,
        lost: Option<Box<dyn FnOnce(T) + Send>>,
    ) -> Result<oneshot::Receiver<Result<T, BusError>>, BusError> {
        let (reply, answer) = oneshot::channel();
        let count = {
            let mut waiting = self.waiting.lock();
            if waiting.closed {
                return Err(BusError::Closed);
            }
            waiting.jobs.push_back(Box::new(Asked { work: Some(work), found: None, reply, lost }));
            (waiting.jobs.len(), waiting.expected)
        };
        if count.0 == 1 || count.0 == count.1 {
            self.ready.notify_one();
        }
        Ok(answer)
    }

    pub(crate) fn close(&self) {
        self.waiting.lock().closed = true;
        self.ready.notify_one();
    }

    /// Waits for jobs, a little longer where more are likely to come at once. Nothing when it is closed
    /// and all is done.
    fn gather(
        &self,
        expected: usize,
        linger: Duration,
        patience: Duration,
    ) -> Option<Vec<Box<dyn Job>>> {
        let mut waiting = self.waiting.lock();
        let end = Instant::now() + patience;
        while waiting.jobs.is_empty() {
            if waiting.closed {
                return None;
            }
            if self.ready.wait_until(&mut waiting, end).timed_out() {
                return Some(Vec::new());
            }
        }
        let end = Instant::now() + linger;
        waiting.expected = expected;
        while waiting.jobs.len() < expected && !waiting.closed {
            if self.ready.wait_until(&mut waiting, end).timed_out() {
                break;
            }
        }
        let count = waiting.jobs.len().min(MAX_JOBS);
        Some(waiting.jobs.drain(..count).collect())
    }
}

/// How the writer is.
#[derive(Debug, Default)]
pub(crate) struct Health(Mutex<Option<String>>);

impl Health {
    pub(crate) fn failing(&self) -> Option<String> {
        self.0.lock().clone()
    }

    fn set(&self, cause: Option<String>) {
        let mut now = self.0.lock();
        match (&*now, &cause) {
            (None, Some(cause)) => tracing::error!(%cause, "events cannot be written"),
            (Some(_), None) => tracing::info!("events can be written again"),
            _ => {}
        }
        *now = cause;
    }
}

/// The thread.
pub(crate) struct Writer {
    pub(crate) path: PathBuf,
    pub(crate) synchronous: Synchronous,
    pub(crate) queue: Arc<Queue>,
    pub(crate) tail: Arc<Tail>,
    pub(crate) health: Arc<Health>,
    /// So many pages of the log are brought into the file at a time.
    pub(crate) checkpoint: u32,
    /// Puts things in order now and then.
    pub(crate) sweep: Sweep,
    pub(crate) begin: Instant,
    /// When that was; nothing where more is to be done.
    pub(crate) swept: Option<Instant>,
    pub(crate) pages: u32,
    /// How many came together the last time, and how long the disk took.
    pub(crate) together: usize,
    pub(crate) took: Duration,
}

impl Writer {
    /// Runs until the queue is closed.
    pub(crate) fn run(mut self, connection: Connection) {
        let mut connection = Some(connection);
        let (mut failed, mut pause) = (Instant::now(), REOPEN);
        loop {
            let failing = self.health.failing().is_some();
            let patience = if failing { pause } else { IDLE };
            let linger = (self.took / 4).min(MAX_LINGER);
            let Some(jobs) = self.queue.gather(self.together, linger, patience) else { break };
            if connection.is_none() && pause <= failed.elapsed() {
                connection = self.reopen();
                failed = Instant::now();
                pause = (pause * 2).min(REOPEN_AT_MOST);
            }
            let Some(open) = &mut connection else {
                let cause = self.health.failing().unwrap_or_default();
                refuse(jobs, &BusError::Unavailable(cause));
                continue;
            };
            // Where the disk was full and nobody asks, we look ourselves.
            let look = failing && jobs.is_empty();
            let mut good = self.work(open, jobs);
            if good && (look || self.swept.is_none_or(|it| IDLE <= it.elapsed())) {
                good = self.put_in_order(open);
            }
            if good {
                pause = REOPEN;
            } else {
                connection = None;
                failed = Instant::now();
            }
        }
        if let Some(connection) = connection {
            checkpoint(&connection, "TRUNCATE").ok();
        }
        self.tail.close();
    }

    /// Does jobs as one transaction. False where the file cannot be trusted any more.
    fn work(&mut self, connection: &mut Connection, mut jobs: Vec<Box<dyn Job>>) -> bool {
        if jobs.is_empty() {
            return true;
        }
        let begin = Instant::now();
        let done =
            self.transact(connection, |scene| jobs.iter_mut().try_for_each(|it| it.run(scene)));
        match done {
            Ok(appended) => {
                self.health.set(None);
                // As good as counting: a transaction changes a few pages besides those it fills.
                let bytes: usize = appended.iter().map(|it| it.text.len()).sum();
                self.pages +=
                    4 + u32::try_from(jobs.len() / 8 + bytes / 3000).unwrap_or(u32::MAX / 2);
                self.took = begin.elapsed();
                self.together = jobs.len();
                self.tail.push(appended);
                jobs.into_iter().for_each(|it| it.answer(Ok(())));
                self.bring_in(connection)
            }
            Err(error) => {
                let cause = store::said(&error);
                self.health.set(Some(cause.clone()));
                refuse(jobs, &BusError::Unavailable(cause));
                // What SQLite never saw says nothing of the disk.
                store::is_full(&error) || error.sqlite_error_code().is_none()
            }
        }
    }

    fn transact(
        &mut self,
        connection: &mut Connection,
        work: impl FnOnce(&mut Scene<'_>) -> rusqlite::Result<()>,
    ) -> rusqlite::Result<Vec<Arc<Record>>> {
        let clock = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let last = self.tail.ends().last;
        let mut scene = Scene { change: &change, last, clock, appended: Vec::new(), more: false };
        work(&mut scene)?;
        let (appended, last) = (scene.appended, scene.last);
        if !appended.is_empty() {
            // Told twice: a page that was damaged must not make the log look shorter than it is.
            store::set_last(&change, last)?;
        }
        change.commit()?;
        Ok(appended)
    }

    /// Removes what is no longer kept.
    fn put_in_order(&mut self, connection: &mut Connection) -> bool {
        let mut sweep = std::mem::replace(&mut self.sweep, Box::new(|_| Ok(())));
        let mut more = false;
        let swept = self.transact(connection, |scene| {
            store::set_mark(scene.change, "swept", scene.clock)?;
            sweep(scene)?;
            more = scene.more;
            Ok(())
        });
        self.swept = (!more).then(Instant::now);
        self.sweep = sweep;
        let first = swept.and_then(|_| store::ends(connection)).map(|(first, _)| first);
        match first {
            Ok(first) => {
                self.health.set(None);
                self.tail.cut(first);
                true
            }
            Err(error) => {
                self.health.set(Some(store::said(&error)));
                tracing::warn!(cause = store::said(&error), "old events could not be removed");
                store::is_full(&error)
            }
        }
    }

    /// Brings the log into the file once it has grown. What failed there was answered well before, and is
    /// safe in the log; but the log must not grow on.
    fn bring_in(&mut self, connection: &Connection) -> bool {
        if self.pages < self.checkpoint {
            return true;
        }
        match checkpoint(connection, "PASSIVE") {
            Ok(left) => {
                // Somebody who reads may hold it up; no need to try again with every transaction.
                self.pages = if left { self.checkpoint / 2 } else { 0 };
                true
            }
            Err(error) => {
                tracing::error!(
                    cause = store::said(&error),
                    "the event log could not be brought in"
                );
                store::is_full(&error)
            }
        }
    }

    /// Opens the file anew. All that was ever answered is in the file before it counts as open: a disk that
    /// failed to write its log may say the next time that it did, without having done it.
    fn reopen(&self) -> Option<Connection> {
        let opened = store::open(&self.path, self.synchronous).and_then(|it| {
            if checkpoint(&it, "TRUNCATE")? {
                return Err(OpenError::InUse);
            }
            let (first, last) = store::ends(&it)?;
            Ok((it, first, last))
        });
        match opened {
            Ok((connection, first, last)) => {
                self.health.set(None);
                // A transaction that failed may have come to rest on disk all the same: nobody was told of
                // it, but it is there, and its places are taken.
                self.tail.reset(first, last);
                Some(connection)
            }
            Err(error) => {
                tracing::debug!(%error, "the event store stays closed");
                None
            }
        }
    }
}

fn refuse(jobs: Vec<Box<dyn Job>>, error: &BusError) {
    jobs.into_iter().for_each(|it| it.answer(Err(error.clone())));
}

/// Brings the log into the file; whether something was left.
pub(crate) fn checkpoint(connection: &Connection, way: &str) -> rusqlite::Result<bool> {
    connection.query_row(&format!("PRAGMA wal_checkpoint({way})"), [], |row| {
        let (busy, log, done): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(busy != 0 || done < log)
    })
}
