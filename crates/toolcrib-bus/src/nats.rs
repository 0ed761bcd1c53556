//! The bus that several gateways share: NATS JetStream, with the file of the embedded bus before it.
//!
//! An event is appended to the file, and that is the answer; nobody ever waits for NATS. From there it goes
//! on to a stream, in order (`forward`), where everybody reads it: followers and consumers, of this gateway
//! and of others. So the place in a [`Receipt`] is the place in this gateway's file, and the place of a
//! [`crate::Record`] that was read is its place in the stream, which is the same for all gateways. Places in
//! the stream rise, with gaps where something was removed, or delivered again.
//!
//! In reading order: `subject` and `message` say what an event looks like there; `login` and `link` make the
//! connection; `forward` is the way in, `follow` and `consume` are the ways out, and `dead` is where that
//! goes which nobody could deal with.

mod subject;
mod message;
mod login;
mod link;
mod forward;
mod follow;
mod bounded;
mod dead;
mod consumer;
mod consume;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use tokio_util::task::TaskTracker;

pub use login::Login;

use crate::{
    Bus, BusError, BusState, ConsumerName, ConsumerState, DeadLetter, Delivery, Embedded, Event,
    Filter, Follow, Outcome, Receipt, Settings, Settled, Start, Wish,
    bus::BoxFuture,
    nats::{
        consume::Desk,
        follow::Follower,
        forward::{Forwarder, Progress},
        link::{Link, Plan},
        login::Place,
    },
    rfc3339,
};

/// NATS takes messages of this size where nobody says otherwise.
const MAX_PAYLOAD: usize = 1 << 20;

/// Where NATS is, and how much is kept.
#[derive(Clone)]
pub struct NatsSettings {
    /// `nats://host:4222` or `tls://host:4222`; several servers of one cluster with commas between them.
    pub url: String,
    /// Who we are there.
    pub login: Login,
    /// A file of certificates to trust instead of the system's. TLS is required then.
    pub ca: Option<PathBuf>,
    /// The stream. It is made where there is none, and taken as it is else.
    pub stream: String,
    /// How many servers of a cluster keep a stream that is made.
    pub replicas: usize,
    /// More events than this do not wait for NATS.
    pub max_outbox: u64,
    /// How the file keeps them; a stream that is made keeps them as long, and as much.
    pub store: Settings,
}

impl NatsSettings {
    /// What most want.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            login: Login::Anonymous,
            ca: None,
            stream: "TOOLCRIB".to_owned(),
            replicas: 1,
            max_outbox: 1_000_000,
            store: Settings::default(),
        }
    }
}

impl std::fmt::Debug for NatsSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = Place::read(&self.url, &self.login);
        f.debug_struct("NatsSettings")
            .field("url", &place.map_or_else(|_| "****".to_owned(), |it| format!("{it:?}")))
            .field("login", &self.login)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

/// A bus that others share.
pub struct Nats {
    store: Arc<Embedded>,
    link: Arc<Link>,
    desk: Arc<Desk>,
    progress: Arc<Progress>,
    tracker: TaskTracker,
    max_outbox: u64,
    max_size: u64,
    max_event: usize,
}

impl std::fmt::Debug for Nats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (store, place) = (&self.store, &self.link.plan.place);
        f.debug_struct("Nats").field("store", store).field("at", place).finish_non_exhaustive()
    }
}

impl Nats {
    /// Opens the file, or makes it, and begins to look for NATS, which need not be there. Must be called
    /// where tasks can be started.
    pub fn open(path: &Path, settings: NatsSettings) -> Result<Self, BusError> {
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|error| BusError::Refused(format!("no tasks can be started: {error}")))?;
        let NatsSettings { url, login, ca, stream, replicas, max_outbox, store } = settings;
        let place = Place::read(&url, &login)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        if stream.is_empty() || 200 < stream.len() || !stream.chars().all(plain) {
            return Err(BusError::Refused(format!(
                "`{}` is no name of a stream: letters, digits, `-` and `_`",
                stream.escape_debug()
            )));
        }
        let (retain, max_size, max_event) = (store.retain, store.max_size, store.max_event);
        let (store, marks) = Embedded::open_outbox(path, store)?;
        let store = Arc::new(store);
        let link = Arc::new(Link::new(Plan { place, ca, stream, replicas, retain, max_size }));
        let progress = Arc::new(Progress {
            forwarded: AtomicU64::new(marks.forwarded),
            bytes: AtomicI64::new(i64::try_from(marks.bytes).unwrap_or(i64::MAX)),
            last: AtomicU64::new(marks.place),
            most: AtomicUsize::new(MAX_PAYLOAD - link::AROUND),
        });
        let tracker = TaskTracker::new();
        let forwarder = Forwarder {
            store: Arc::clone(&store),
            link: Arc::clone(&link),
            progress: Arc::clone(&progress),
            marks,
            there: HashSet::new(),
            saved: marks,
            saving: None,
            save_at: tokio::time::Instant::now(),
        };
        tracker.spawn_on(forwarder.run(), &runtime);
        let desk = Arc::new(Desk::new(Arc::clone(&link), tracker.clone()));
        Ok(Self { store, link, desk, progress, tracker, max_outbox, max_size, max_event })
    }

    /// Whether there is room for one more.
    fn check_room(&self) -> Result<(), BusError> {
        let forwarded = self.progress.forwarded.load(Ordering::Relaxed);
        let waiting = self.store.state().last.saturating_sub(forwarded);
        let bytes = u64::try_from(self.progress.bytes.load(Ordering::Relaxed)).unwrap_or_default();
        if waiting < self.max_outbox && bytes < self.max_size {
            return Ok(());
        }
        let cause = match self.link.waiting() {
            Some((why, since)) => {
                format!("NATS has not been reachable since {}: {why}", rfc3339(since))
            }
            None => "NATS is slower than what comes; try again".to_owned(),
        };
        Err(BusError::Unavailable(format!(
            "the outbox is full: {waiting} events with {bytes} bytes wait. {cause}"
        )))
    }

    async fn begin(&self, filter: Filter, start: Start) -> Result<Box<dyn Follow>, BusError> {
        let live = self.link.live().await?;
        let ends = live.ends().await;
        let (first, last) = ends.map_err(|cause| self.link.failed("following events", cause))?;
        self.progress.last.fetch_max(last, Ordering::Relaxed);
        let cursor = match start {
            Start::First => first.saturating_sub(1),
            Start::At(seq) => seq.saturating_sub(1).min(last),
            Start::New => last,
        };
        Ok(Box::new(Follower::new(Arc::clone(&self.link), filter, cursor, live.born)))
    }
}

impl Bus for Nats {
    fn append(&self, event: Event) -> BoxFuture<'_, Result<Receipt, BusError>> {
        Box::pin(async move {
            let size = event.text().len();
            let most = self.max_event.min(self.progress.most.load(Ordering::Relaxed));
            if most < size {
                return Err(BusError::TooLarge { size, most });
            }
            self.check_room()?;
            let bytes = forward::size(event.text());
            // Counted before it is there: it may have gone on before we hear that it is.
            self.progress.bytes.fetch_add(bytes, Ordering::Relaxed);
            let appended = self.store.append(event).await;
            if appended.as_ref().is_ok_and(|it| !it.again) {
                return appended;
            }
            self.progress.bytes.fetch_sub(bytes, Ordering::Relaxed);
            appended
        })
    }

    fn follow(
        &self,
        filter: Filter,
        start: Start,
    ) -> BoxFuture<'_, Result<Box<dyn Follow>, BusError>> {
        Box::pin(self.begin(filter, start))
    }

    fn fetch<'a>(
        &'a self,
        wish: &'a Wish,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, BusError>> {
        Box::pin(self.desk.fetch(wish, wait))
    }

    fn settle<'a>(
        &'a self,
        consumer: &'a ConsumerName,
        outcomes: Vec<(u64, Outcome)>,
    ) -> BoxFuture<'a, Result<Settled, BusError>> {
        Box::pin(self.desk.settle(consumer, outcomes))
    }

    fn consumers(&self) -> BoxFuture<'_, Result<Vec<ConsumerState>, BusError>> {
        Box::pin(self.desk.all())
    }

    fn dead<'a>(
        &'a self,
        consumer: &'a ConsumerName,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, BusError>> {
        Box::pin(dead::all(&self.link, consumer, limit))
    }

    fn revive<'a>(&'a self, consumer: &'a ConsumerName) -> BoxFuture<'a, Result<usize, BusError>> {
        Box::pin(dead::revive(&self.link, consumer))
    }

    fn forget<'a>(&'a self, consumer: &'a ConsumerName) -> BoxFuture<'a, Result<bool, BusError>> {
        Box::pin(self.desk.forget(consumer))
    }

    fn state(&self) -> BusState {
        BusState {
            failing: self.store.state().failing,
            waiting: self.link.waiting().map(|(why, _)| why),
            last: self.progress.last.load(Ordering::Relaxed),
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.link.closed.cancel();
            self.tracker.close();
            self.tracker.wait().await;
            self.store.close().await;
        })
    }
}

impl Drop for Nats {
    fn drop(&mut self) {
        self.link.closed.cancel();
        self.tracker.close();
    }
}
