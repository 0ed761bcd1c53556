//! The port: what a bus does, whatever it stands on.

use std::{fmt, future::Future, ops::RangeInclusive, pin::Pin, sync::Arc, time::Duration};

use crate::{ConsumerName, Event, Filter, Pattern, Record};

/// A future that the port returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Events go in at one end and come out, in order, at many others.
pub trait Bus: Send + Sync + fmt::Debug {
    /// Appends an event. The answer comes when it is on disk.
    fn append(&self, event: Event) -> BoxFuture<'_, Result<Receipt, BusError>>;

    /// Reads events from somewhere on, and those that come. Nothing is remembered of who reads.
    fn follow(
        &self,
        filter: Filter,
        start: Start,
    ) -> BoxFuture<'_, Result<Box<dyn Follow>, BusError>>;

    /// Takes the next events of a durable consumer; it is made where there is none of the name. Waits for
    /// some so long. What is not settled in time is delivered again.
    fn fetch<'a>(
        &'a self,
        wish: &'a Wish,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, BusError>>;

    /// Says what became of events that were delivered. The answer comes when that is on disk.
    fn settle<'a>(
        &'a self,
        consumer: &'a ConsumerName,
        outcomes: Vec<(u64, Outcome)>,
    ) -> BoxFuture<'a, Result<Settled, BusError>>;

    /// The durable consumers.
    fn consumers(&self) -> BoxFuture<'_, Result<Vec<ConsumerState>, BusError>>;

    /// What a consumer could not deal with, oldest first.
    fn dead<'a>(
        &'a self,
        consumer: &'a ConsumerName,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, BusError>>;

    /// Delivers those again; returns how many.
    fn revive<'a>(&'a self, consumer: &'a ConsumerName) -> BoxFuture<'a, Result<usize, BusError>>;

    /// Removes a consumer and what it had; returns whether there was one.
    fn forget<'a>(&'a self, consumer: &'a ConsumerName) -> BoxFuture<'a, Result<bool, BusError>>;

    /// How it is, just now.
    fn state(&self) -> BusState;

    /// Ends it. What was answered is on disk; what was not fails.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// Somebody who reads.
pub trait Follow: Send + fmt::Debug {
    /// What comes next, as soon as there is something. May be dropped and asked again.
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, BusError>>;
}

/// What somebody who reads gets.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// The events, in order.
    pub records: Vec<Arc<Record>>,
    /// Everything up to here has been looked at.
    pub passed: u64,
    /// So many that were asked for are no longer kept.
    pub missed: u64,
    /// These were found damaged on disk and left out.
    pub damaged: Vec<RangeInclusive<u64>>,
}

/// An event was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// Its place.
    pub seq: u64,
    /// Its id.
    pub id: String,
    /// It was there before: the same event, sent twice.
    pub again: bool,
}

/// Where somebody begins to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// At the oldest that is kept.
    First,
    /// At this one.
    At(u64),
    /// At what comes from now on.
    New,
}

/// What a consumer asks for.
#[derive(Debug, Clone)]
pub struct Wish {
    /// Who.
    pub consumer: ConsumerName,
    /// Which; nothing leaves it as it was.
    pub filter: Option<Filter>,
    /// Which of those it may have just now, where there are rules at all; what it may not is passed over.
    pub allowed: Option<Vec<Pattern>>,
    /// Where a new consumer begins.
    pub start: Start,
    /// At most so many at once; with none, it is only made where there is none of the name.
    pub max: usize,
    /// What is not settled after so long is delivered again.
    pub patience: Duration,
    /// What was delivered so often and not settled goes to the dead letters.
    pub attempts: u32,
}

impl Wish {
    /// A consumer's wish, with what most want: all that is kept, half a minute, five attempts.
    pub fn new(consumer: ConsumerName) -> Self {
        Self {
            consumer,
            filter: None,
            allowed: None,
            start: Start::First,
            max: 16,
            patience: Duration::from_secs(30),
            attempts: 5,
        }
    }
}

impl Wish {
    /// Whether events of this name may be had.
    pub(crate) fn allows(&self, name: &str) -> bool {
        self.allowed.as_ref().is_none_or(|it| it.iter().any(|it| it.matches(name)))
    }
}

/// An event that was given to a consumer.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The event.
    pub record: Arc<Record>,
    /// How often it has been delivered, this time counted.
    pub attempt: u32,
}

/// What became of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Done. It never comes again.
    Done,
    /// Not done; it comes again after so long.
    Again(Duration),
    /// Given back unseen, as when whoever fetched it went away: it comes again at once, and this time
    /// was no attempt.
    Unseen,
    /// It cannot be done, for this reason: to the dead letters.
    Dead(String),
}

/// Which outcomes counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settled {
    /// These did.
    pub settled: Vec<u64>,
    /// These were not waiting to be settled: done before, or never delivered.
    pub unknown: Vec<u64>,
}

/// A durable consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConsumerState {
    /// `owner/name`.
    pub name: String,
    /// What it asks for.
    pub filter: Filter,
    /// Everything up to here has been delivered or was not asked for.
    pub cursor: u64,
    /// So many events have come since.
    pub behind: u64,
    /// Delivered and not settled.
    pub pending: u64,
    /// Given up.
    pub dead: u64,
    /// No longer kept when it would have been their turn.
    pub missed: u64,
    /// When it was last heard of, in milliseconds since 1970.
    pub seen: u64,
}

/// An event that a consumer could not deal with.
#[derive(Debug, Clone)]
pub struct DeadLetter {
    /// The event; nothing where it is no longer kept, or damaged.
    pub record: Option<Arc<Record>>,
    /// Its place.
    pub seq: u64,
    /// How often it was delivered.
    pub attempts: u32,
    /// Why.
    pub reason: String,
    /// When it was given up, in milliseconds since 1970.
    pub at: u64,
}

/// How a bus is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BusState {
    /// Why nothing can be appended just now.
    pub failing: Option<String>,
    /// Why what is appended does not go on to where others read it; it is kept and goes later.
    pub waiting: Option<String>,
    /// The place of the last event.
    pub last: u64,
}

/// Why the bus did not do something.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BusError {
    /// What was asked makes no sense. Trying again would not help.
    #[error("{0}")]
    Refused(String),
    /// The event is too large.
    #[error("the event has {size} bytes; the most is {most}")]
    TooLarge {
        /// Its size.
        size: usize,
        /// The most.
        most: usize,
    },
    /// Another event has this id.
    #[error("another event has the id `{0}`")]
    IdTaken(String),
    /// The disk, or the broker, says no. Nothing was kept.
    #[error("{0}")]
    Unavailable(String),
    /// It was closed.
    #[error("the event bus is closed")]
    Closed,
}

impl BusError {
    /// Whether the same might go well later.
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::Closed)
    }
}
