//! The bus that needs nothing else: one file, one thread that writes, and what it wrote last in memory.

use std::{
    ops::RangeInclusive,
    path::{Path, PathBuf},
    sync::Arc,
    thread::JoinHandle,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use crate::{
    Bus, BusError, BusState, ConsumerName, ConsumerState, DeadLetter, Delivery, Event, Filter,
    Follow, Outcome, Receipt, Record, Settled, Start, Wish,
    bus::BoxFuture,
    consumers::{self, Fetched},
    event::now_ms,
    follower::{Follower, Readers},
    store::{self, OpenError},
    tail::Tail,
    writer::{Health, Queue, Scene, Sweep, Writer, checkpoint},
};

/// So long somebody who does not wait is looked for among events that are not theirs.
const LOOKING: Duration = Duration::from_secs(1);

/// Consumers are kept so long at least, however short events are.
const CONSUMERS_MS: u64 = 24 * 3_600_000;

/// How a bus keeps its events.
#[derive(Debug, Clone)]
pub struct Settings {
    /// So long.
    pub retain: Duration,
    /// And so many bytes of them at most.
    pub max_size: u64,
    /// The largest event, envelope and all.
    pub max_event: usize,
    /// So many pages of the write-ahead log are brought into the file at a time.
    pub checkpoint: u32,
    /// For tests that show what it is good for.
    #[doc(hidden)]
    pub synchronous: Synchronous,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            retain: Duration::from_secs(30 * 24 * 3600),
            max_size: 1 << 30,
            max_event: 1 << 20,
            checkpoint: 2000,
            synchronous: Synchronous::Full,
        }
    }
}

/// When the disk is waited for.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronous {
    /// With every transaction.
    Full,
    /// Now and then. What was answered can be lost.
    Normal,
}

/// A bus in one file.
pub struct Embedded {
    path: PathBuf,
    settings: Settings,
    queue: Arc<Queue>,
    tail: Arc<Tail>,
    health: Arc<Health>,
    readers: Arc<Readers>,
    /// Something that was out can be had again.
    released: Arc<Notify>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl std::fmt::Debug for Embedded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Embedded").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Embedded {
    /// Opens the file, or makes it. Nobody else may write to it.
    pub fn open(path: &Path, settings: Settings) -> Result<Self, BusError> {
        let sweep = sweep(&settings, |_| Ok(u64::MAX >> 1));
        Self::open_with(path, settings, sweep, |_| Ok(())).map(|(bus, ())| bus)
    }

    /// Opens the file as one whose events go on to somewhere else: none is removed before it has gone.
    #[cfg(feature = "nats")]
    pub(crate) fn open_outbox(
        path: &Path,
        settings: Settings,
    ) -> Result<(Self, crate::outbox::Marks), BusError> {
        let sweep = sweep(&settings, crate::outbox::gone);
        Self::open_with(path, settings, sweep, crate::outbox::read)
    }

    /// Has these numbers kept; the answer comes when they are on disk.
    #[cfg(feature = "nats")]
    pub(crate) fn set_marks(
        &self,
        marks: Vec<(&'static str, u64)>,
    ) -> Result<oneshot::Receiver<Result<(), BusError>>, BusError> {
        let work = move |scene: &mut Scene<'_>| {
            for (name, value) in &marks {
                store::set_mark(scene.change, name, *value)?;
            }
            Ok(Ok(()))
        };
        self.queue.submit(work, None)
    }

    fn open_with<T>(
        path: &Path,
        settings: Settings,
        sweep: Sweep,
        look: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<(Self, T), BusError> {
        let unusable =
            |cause: String| BusError::Unavailable(format!("`{}`: {cause}", path.display()));
        let opened = store::open(path, settings.synchronous).and_then(|it| {
            // A process before us may have ended because its disk failed. What it could not sync we see all
            // the same, until the power is cut: it goes where it can be synced, before more comes on top.
            if checkpoint(&it, "TRUNCATE")? {
                return Err(OpenError::InUse);
            }
            let (first, last) = store::ends(&it)?;
            consumers::give_all_back(&it)?;
            let found = look(&it)?;
            Ok((it, first, last, found))
        });
        let (connection, first, last, found) =
            opened.map_err(|error| unusable(error.to_string()))?;
        let tail = Arc::new(Tail::new(first, last));
        let (queue, health) = (Arc::new(Queue::new()), Arc::new(Health::default()));
        let writer = Writer {
            path: path.to_owned(),
            synchronous: settings.synchronous,
            queue: Arc::clone(&queue),
            tail: Arc::clone(&tail),
            health: Arc::clone(&health),
            checkpoint: settings.checkpoint,
            sweep,
            begin: Instant::now(),
            swept: None,
            pages: 0,
            together: 1,
            took: Duration::ZERO,
        };
        let thread = std::thread::Builder::new().name("events".to_owned());
        let thread = thread.spawn(move || writer.run(connection));
        let thread = thread.map_err(|error| unusable(error.to_string()))?;
        let bus = Self {
            path: path.to_owned(),
            settings,
            queue,
            tail,
            health,
            readers: Arc::new(Readers::new(path.to_owned())),
            released: Arc::default(),
            thread: Mutex::new(Some(thread)),
        };
        Ok((bus, found))
    }

    async fn fetch_within(&self, wish: &Wish, wait: Duration) -> Result<Vec<Delivery>, BusError> {
        let begin = tokio::time::Instant::now();
        let end = begin + wait;
        let mut ends = self.tail.watch();
        loop {
            let released = self.released.notified();
            ends.mark_unchanged();
            let (fetched, due) = self.fetch_now(wish).await?;
            // Whoever wants none only wants to be known from now on.
            if !fetched.deliveries.is_empty() || wish.max == 0 {
                return Ok(fetched.deliveries);
            }
            let now = tokio::time::Instant::now();
            if fetched.more && now < end.max(begin + LOOKING) {
                continue;
            }
            if end <= now {
                return Ok(Vec::new());
            }
            let until = due.map_or(end, |due| end.min(now + due));
            tokio::select! {
                changed = ends.wait_for(|it| it.closed || fetched.cursor < it.last) => {
                    if changed.map_err(|_closed| BusError::Closed)?.closed {
                        return Err(BusError::Closed);
                    }
                }
                () = released => {}
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    async fn fetch_now(&self, wish: &Wish) -> Result<(Fetched, Option<Duration>), BusError> {
        let asked = wish.clone();
        let work = move |scene: &mut Scene<'_>| {
            let clock = scene.clock;
            let found = consumers::fetch(scene.change, &asked, clock)?;
            Ok(found.map(|it| {
                let due = it.due.map(|due| Duration::from_millis(due.saturating_sub(clock) + 1));
                (it, due)
            }))
        };
        let (queue, released) = (Arc::clone(&self.queue), Arc::clone(&self.released));
        let consumer = wish.consumer.clone();
        let back = move |(it, _): (Fetched, Option<Duration>)| {
            give_back(&queue, &released, consumer, &it.deliveries);
        };
        let answer = self.queue.submit(work, Some(Box::new(back.clone())))?;
        Fetching { answer, back: Some(back) }.taken().await
    }
}

/// Deliveries that are on their way to somebody who may not wait for them.
struct Fetching<T, B: FnOnce(T)> {
    answer: oneshot::Receiver<Result<T, BusError>>,
    back: Option<B>,
}

impl<T, B: FnOnce(T)> Fetching<T, B> {
    async fn taken(mut self) -> Result<T, BusError> {
        (&mut self.answer).await.unwrap_or(Err(BusError::Closed))
    }
}

impl<T, B: FnOnce(T)> Drop for Fetching<T, B> {
    fn drop(&mut self) {
        self.answer.close();
        if let (Ok(Ok(found)), Some(back)) = (self.answer.try_recv(), self.back.take()) {
            back(found);
        }
    }
}

/// Nobody took these.
fn give_back(
    queue: &Queue,
    released: &Arc<Notify>,
    consumer: ConsumerName,
    deliveries: &[Delivery],
) {
    if deliveries.is_empty() {
        return;
    }
    let outcomes: Vec<_> = deliveries.iter().map(|it| (it.record.seq, Outcome::Unseen)).collect();
    let released = Arc::clone(released);
    let work = move |scene: &mut Scene<'_>| {
        let settled = consumers::settle(scene.change, &consumer, &outcomes, scene.clock)?;
        released.notify_waiters();
        Ok(Ok(settled))
    };
    drop(queue.submit(work, None));
}

/// Removes what is older than it may be, up to a place, and consumers that nobody uses.
fn sweep(
    settings: &Settings,
    upto: impl Fn(&rusqlite::Connection) -> rusqlite::Result<u64> + Send + 'static,
) -> Sweep {
    let retain = u64::try_from(settings.retain.as_millis()).unwrap_or(u64::MAX);
    let max_size = settings.max_size;
    Box::new(move |scene| {
        let before = now_ms().saturating_sub(retain);
        let upto = upto(scene.change)?;
        let (gone, more) = store::retain(scene.change, before, max_size, upto)?;
        scene.more = more;
        let idle = before.min(now_ms().saturating_sub(CONSUMERS_MS));
        let idle = consumers::forget_idle(scene.change, idle)?;
        if 0 < gone + idle {
            tracing::info!(events = gone, consumers = idle, "what is too old was removed");
        }
        Ok(())
    })
}

impl Bus for Embedded {
    fn append(&self, event: Event) -> BoxFuture<'_, Result<Receipt, BusError>> {
        Box::pin(async move {
            let (size, most) = (event.text().len(), self.settings.max_event);
            if most < size {
                return Err(BusError::TooLarge { size, most });
            }
            let work = move |scene: &mut Scene<'_>| {
                let seq = scene.last + 1;
                let receipt = store::append(scene.change, &event, seq)?;
                if receipt.as_ref().is_ok_and(|it| !it.again) {
                    scene.last = seq;
                    let Event { name, id, at, text, .. } = event;
                    scene.appended.push(Arc::new(Record { seq, name, id, at, text }));
                }
                Ok(receipt)
            };
            self.queue.ask(work).await
        })
    }

    fn follow(
        &self,
        filter: Filter,
        start: Start,
    ) -> BoxFuture<'_, Result<Box<dyn Follow>, BusError>> {
        let ends = self.tail.watch();
        let now = self.tail.ends();
        let cursor = match start {
            Start::First => now.first.saturating_sub(1),
            Start::At(seq) => seq.saturating_sub(1).min(now.last),
            Start::New => now.last,
        };
        let (tail, readers) = (Arc::clone(&self.tail), Arc::clone(&self.readers));
        let follower = Follower { tail, readers, ends, filter, cursor };
        Box::pin(async move { Ok(Box::new(follower) as Box<dyn Follow>) })
    }

    fn fetch<'a>(
        &'a self,
        wish: &'a Wish,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, BusError>> {
        Box::pin(self.fetch_within(wish, wait))
    }

    fn settle<'a>(
        &'a self,
        consumer: &'a ConsumerName,
        outcomes: Vec<(u64, Outcome)>,
    ) -> BoxFuture<'a, Result<Settled, BusError>> {
        let consumer = consumer.clone();
        Box::pin(async move {
            let settled = self.queue.ask(move |scene| {
                consumers::settle(scene.change, &consumer, &outcomes, scene.clock).map(Ok)
            });
            let settled = settled.await?;
            self.released.notify_waiters();
            Ok(settled)
        })
    }

    fn consumers(&self) -> BoxFuture<'_, Result<Vec<ConsumerState>, BusError>> {
        Box::pin(self.readers.read(consumers::all))
    }

    fn dead<'a>(
        &'a self,
        consumer: &'a ConsumerName,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, BusError>> {
        let consumer = consumer.clone();
        Box::pin(self.readers.read(move |it| consumers::dead(it, &consumer, limit)))
    }

    fn revive<'a>(&'a self, consumer: &'a ConsumerName) -> BoxFuture<'a, Result<usize, BusError>> {
        let consumer = consumer.clone();
        Box::pin(async move {
            let work =
                move |scene: &mut Scene<'_>| consumers::revive(scene.change, &consumer).map(Ok);
            let count = self.queue.ask(work).await?;
            self.released.notify_waiters();
            Ok(count)
        })
    }

    fn forget<'a>(&'a self, consumer: &'a ConsumerName) -> BoxFuture<'a, Result<bool, BusError>> {
        let consumer = consumer.clone();
        Box::pin(self.queue.ask(move |scene| consumers::forget(scene.change, &consumer).map(Ok)))
    }

    fn state(&self) -> BusState {
        BusState { failing: self.health.failing(), waiting: None, last: self.tail.ends().last }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.readers.close();
            self.queue.close();
            let thread = self.thread.lock().take();
            if let Some(thread) = thread {
                tokio::task::spawn_blocking(move || thread.join()).await.ok();
            }
        })
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.queue.close();
    }
}

/// What was found when a whole file was read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verified {
    /// So many events are as they were written.
    pub events: u64,
    /// The oldest that is kept, and the last.
    pub first: u64,
    /// The last there is.
    pub last: u64,
    /// These are not as they were written, or gone.
    pub damaged: Vec<RangeInclusive<u64>>,
    /// What SQLite finds wrong with the file.
    pub faults: Vec<String>,
}

impl Verified {
    /// Reads a whole file, which may be in use.
    pub fn of(path: &Path) -> Result<Self, BusError> {
        let unusable =
            |cause: String| BusError::Unavailable(format!("`{}`: {cause}", path.display()));
        let connection = store::open_to_read(path).map_err(|error| unusable(error.to_string()))?;
        let mut found = Self::default();
        let read = |connection: &rusqlite::Connection, found: &mut Self| {
            let mut query = connection.prepare("PRAGMA integrity_check(20)")?;
            let faults = query.query_map([], |row| row.get::<_, String>(0))?;
            for fault in faults {
                found.faults.extend(Some(fault?).filter(|it| it != "ok"));
            }
            found.faults.extend(store::faults(connection)?);
            (found.first, found.last) = store::ends(connection)?;
            let mut after = found.first.saturating_sub(1);
            loop {
                let (page, _) = store::page(connection, after, 1000)?;
                found.events += page.records.len() as u64;
                found.damaged.extend(page.damaged);
                if page.passed <= after {
                    return Ok::<_, rusqlite::Error>(());
                }
                after = page.passed;
            }
        };
        if let Err(error) = read(&connection, &mut found) {
            found.faults.push(store::said(&error));
        }
        Ok(found)
    }

    /// Whether nothing is wrong.
    pub fn is_good(&self) -> bool {
        self.damaged.is_empty() && self.faults.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draft;

    fn file(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("bus-{}-{name}", std::process::id()));
        std::fs::remove_dir_all(&folder).ok();
        std::fs::create_dir_all(&folder).unwrap();
        folder.join("events.db")
    }

    async fn append(bus: &Embedded, count: usize, size: usize) {
        for n in 0..count {
            let data = format!("\"{n}{}\"", "x".repeat(size));
            bus.append(Draft::new("a.b", data).event().unwrap()).await.unwrap();
        }
    }

    async fn kept(bus: &Embedded) -> Vec<u64> {
        let last = bus.state().last;
        let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
        let mut found = Vec::new();
        while found.last() != Some(&last) {
            found.extend(follower.next().await.unwrap().records.iter().map(|it| it.seq));
        }
        found
    }

    /// Old events go, places go on, and a consumer hears how many it missed.
    #[tokio::test]
    async fn what_is_too_old_goes_and_is_counted() {
        let path = file("age");
        let bus = Embedded::open(&path, Settings::default()).unwrap();
        append(&bus, 5, 10).await;
        let wish = Wish { max: 2, ..Wish::new(ConsumerName::new("g", "c").unwrap()) };
        assert_eq!(bus.fetch(&wish, Duration::ZERO).await.unwrap().len(), 2);
        bus.close().await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let settings = Settings { retain: Duration::from_millis(250), ..Settings::default() };
        let bus = Embedded::open(&path, settings).unwrap();
        append(&bus, 1, 10).await;
        // It is swept after the answer.
        bus.settle(&wish.consumer, Vec::new()).await.unwrap();
        while bus.tail.ends().first != 6 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(kept(&bus).await, [6]);
        let state = bus.consumers().await.unwrap();
        // Two had been delivered and were not settled, three were never delivered.
        assert!(state.is_empty() || (state[0].missed, state[0].pending) == (5, 0), "{state:?}");
        bus.close().await;
        let bus = Embedded::open(&path, Settings::default()).unwrap();
        append(&bus, 1, 10).await;
        assert_eq!(bus.state().last, 7);
        bus.close().await;
    }

    #[tokio::test]
    async fn what_is_too_much_goes_and_the_newest_stays() {
        let path = file("size");
        let bus = Embedded::open(&path, Settings::default()).unwrap();
        append(&bus, 300, 10_000).await;
        bus.close().await;
        let settings = Settings { max_size: 1 << 20, ..Settings::default() };
        let bus = Embedded::open(&path, settings).unwrap();
        append(&bus, 1, 10).await;
        while bus.tail.ends().first == 1 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let kept = kept(&bus).await;
        assert!((30..150).contains(&kept.len()), "{}", kept.len());
        assert_eq!(kept.last(), Some(&301));
        let mut early = bus.follow(Filter::all(), Start::At(1)).await.unwrap();
        assert_eq!(early.next().await.unwrap().missed, kept[0] - 1);
        bus.close().await;
    }

    /// Somebody asks, and goes away before the answer: what it would have got is there for the next.
    #[tokio::test]
    async fn a_fetch_that_nobody_waits_for_gives_back() {
        let bus = Embedded::open(&file("dropped"), Settings::default()).unwrap();
        append(&bus, 3, 10).await;
        let wish = Wish::new(ConsumerName::new("g", "c").unwrap());
        for _ in 0..20 {
            let fetch = bus.fetch(&wish, Duration::from_secs(5));
            if let Ok(Ok(got)) = tokio::time::timeout(Duration::from_micros(50), fetch).await {
                let all = got.iter().map(|it| (it.record.seq, Outcome::Unseen)).collect();
                bus.settle(&wish.consumer, all).await.unwrap();
            }
            let got = bus.fetch(&wish, Duration::from_secs(5)).await.unwrap();
            let (first, times) = (got[0].record.seq, got[0].attempt);
            let all: Vec<_> = got.iter().map(|it| (it.record.seq, Outcome::Unseen)).collect();
            bus.settle(&wish.consumer, all).await.unwrap();
            assert_eq!((first, times), (1, 1));
        }
        bus.close().await;
    }

    /// With as much out as may be, whoever waits waits, and does not keep the writer busy.
    #[tokio::test]
    async fn a_consumer_that_settles_nothing_waits() {
        let bus = Arc::new(Embedded::open(&file("full"), Settings::default()).unwrap());
        let mut appending = tokio::task::JoinSet::new();
        for _ in 0..1_100 {
            let bus = Arc::clone(&bus);
            appending.spawn(async move { append(&bus, 1, 1).await });
        }
        while appending.join_next().await.is_some() {}
        let wish = Wish { max: 2_000, ..Wish::new(ConsumerName::new("g", "c").unwrap()) };
        let first = bus.fetch(&wish, Duration::ZERO).await.unwrap();
        assert_eq!(first.len(), 1_000);
        let begin = Instant::now();
        assert_eq!(bus.fetch(&wish, Duration::from_millis(200)).await.unwrap().len(), 0);
        assert!(Duration::from_millis(200) <= begin.elapsed());
        bus.settle(&wish.consumer, vec![(1, Outcome::Done)]).await.unwrap();
        let next = bus.fetch(&wish, Duration::from_secs(5)).await.unwrap();
        assert_eq!(next.iter().map(|it| it.record.seq).collect::<Vec<_>>(), [1_001]);
        bus.close().await;
    }
}
