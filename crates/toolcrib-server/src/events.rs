//! Who may publish, read and acknowledge which events: one place for the door, for built-in tools and for
//! whatever else asks.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Notify;
use toolcrib_bus::{
    Bus, BusError, ConsumerName, Delivery, Draft, Filter, Follow, NameError, Outcome, Pattern,
    Settled, Start, Wish,
};

use crate::{
    access::{Caller, Rights},
    gateway::Gateway,
};

/// More than this are not handed out at once.
pub(crate) const MAX_AT_ONCE: usize = 100;

/// Nobody waits longer than this in one request.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(30);

/// Why something about events was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// There is nowhere to keep them.
    #[error(
        "there is no event bus here: the folder `.toolcrib` of the workspace cannot be written"
    )]
    NoBus,
    /// Not for this caller.
    #[error("events named `{}` are not for your group", .0.escape_debug())]
    Hidden(String),
    /// It makes no sense.
    #[error("{0}")]
    Invalid(String),
    /// The bus says no.
    #[error("{0}")]
    Bus(#[from] BusError),
}

impl From<NameError> for Refused {
    fn from(error: NameError) -> Self {
        Self::Invalid(error.to_string())
    }
}

/// An event was taken.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Emitted {
    pub(crate) id: String,
    pub(crate) sequence: u64,
    /// It had been sent before.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) again: bool,
}

/// What somebody who reads wants.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    /// Which; a durable consumer keeps to what it said before where nothing is said.
    pub(crate) asked: Option<Vec<Pattern>>,
    /// Where to begin.
    pub(crate) start: Option<Start>,
    /// At most so many at once, or in hand at the same time.
    pub(crate) max: usize,
    /// How long to wait for some.
    pub(crate) wait: Duration,
    /// What is not acknowledged after so long comes again.
    pub(crate) patience: Duration,
    /// And after so many times no more.
    pub(crate) attempts: u32,
}

impl Default for Wanted {
    fn default() -> Self {
        Self {
            asked: None,
            start: None,
            max: 10,
            wait: Duration::ZERO,
            patience: Duration::from_secs(30),
            attempts: 5,
        }
    }
}

impl Wanted {
    pub(crate) fn wish(&self, consumer: ConsumerName) -> Wish {
        Wish {
            filter: self.asked.clone().map(|asked| Filter { asked, allowed: None }),
            start: self.start.unwrap_or(Start::First),
            max: self.max.min(MAX_AT_ONCE),
            patience: self.patience,
            attempts: self.attempts,
            ..Wish::new(consumer)
        }
    }
}

impl Gateway {
    pub(crate) fn bus(&self) -> Result<&Arc<dyn Bus>, Refused> {
        self.settings().bus.as_ref().ok_or(Refused::NoBus)
    }

    /// Which events a caller may have, just now.
    pub(crate) fn rights(&self, caller: &Caller) -> Rights {
        self.snapshot().events(caller)
    }

    /// Appends an event, whoever sends it.
    pub(crate) async fn append(&self, draft: Draft) -> Result<Emitted, Refused> {
        let receipt = self.bus()?.append(draft.event()?).await?;
        Ok(Emitted { id: receipt.id, sequence: receipt.seq, again: receipt.again })
    }

    /// Appends an event that a caller sends.
    pub(crate) async fn publish(
        &self,
        caller: &Caller,
        mut draft: Draft,
    ) -> Result<Emitted, Refused> {
        if !self.rights(caller).allow(&draft.name) {
            return Err(Refused::Hidden(draft.name));
        }
        draft.group = Some(caller.group.to_string());
        draft.source.get_or_insert_with(|| format!("/groups/{}", caller.group));
        self.append(draft).await
    }

    /// Reads events from somewhere on. Whoever reads must still ask of each whether it is for them.
    pub(crate) async fn follow_events(&self, wanted: &Wanted) -> Result<Box<dyn Follow>, Refused> {
        let filter = Filter { asked: wanted.asked.clone().unwrap_or_default(), allowed: None };
        let start = wanted.start.unwrap_or(Start::New);
        Ok(self.bus()?.follow(filter, start).await?)
    }

    /// The name of a caller's consumer.
    pub(crate) fn consumer(caller: &Caller, name: &str) -> Result<ConsumerName, Refused> {
        // Whoever runs the gateway names all of them in full.
        if let (true, Some((owner, name))) = (caller.is_operator(), name.rsplit_once('/')) {
            return Ok(ConsumerName::new(owner, name)?);
        }
        Ok(ConsumerName::new(&caller.group, name)?)
    }

    /// Takes a consumer's next events. What is not for the caller is passed over.
    pub(crate) async fn fetch(
        &self,
        caller: &Caller,
        wish: &Wish,
        wait: Duration,
    ) -> Result<Vec<Delivery>, Refused> {
        let bus = self.bus()?;
        let end = tokio::time::Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(tokio::time::Instant::now());
            let rights = self.rights(caller);
            let wish = Wish { allowed: rights.patterns(), ..wish.clone() };
            let mut found = bus.fetch(&wish, left).await?;
            // Once more, and to the letter: the rules may have changed while it waited.
            let rights = self.rights(caller);
            let hidden: Vec<_> = found
                .extract_if(.., |it| !rights.allow(&it.record.name))
                .map(|it| (it.record.seq, Outcome::Done))
                .collect();
            let none = found.is_empty() && !hidden.is_empty();
            if !hidden.is_empty() {
                bus.settle(&wish.consumer, hidden).await?;
            }
            if !none || left.is_zero() {
                return Ok(found);
            }
        }
    }

    /// Notes what became of events that a consumer had.
    pub(crate) async fn settle(
        &self,
        consumer: &ConsumerName,
        outcomes: Vec<(u64, Outcome)>,
    ) -> Result<Settled, Refused> {
        let all: Vec<u64> = outcomes.iter().map(|(seq, _)| *seq).collect();
        let settled = self.bus()?.settle(consumer, outcomes).await?;
        self.held.let_go(consumer, &all);
        Ok(settled)
    }

    /// Gives back what a consumer had in hand when it went away. They are dealt with in order, so it was
    /// the first that it went away over: only that counts as an attempt.
    pub(crate) async fn give_back(&self, consumer: &ConsumerName, held: &Held) {
        let left = held.in_hand();
        let outcome = |first: bool| {
            if first { Outcome::Again(Duration::ZERO) } else { Outcome::Unseen }
        };
        let outcomes: Vec<_> =
            left.iter().enumerate().map(|(at, seq)| (*seq, outcome(at == 0))).collect();
        if let (false, Ok(bus)) = (outcomes.is_empty(), self.bus())
            && let Err(error) = bus.settle(consumer, outcomes).await
        {
            tracing::debug!(%error, "events of a consumer that went away come again later");
        }
    }
}

/// What consumers that are connected have in hand.
#[derive(Debug, Default)]
pub(crate) struct Holding(Mutex<HashMap<String, Vec<Weak<Held>>>>);

impl Holding {
    /// A consumer connects.
    pub(crate) fn hold(&self, consumer: &ConsumerName, patience: Duration) -> Arc<Held> {
        let held = Arc::new(Held { out: Mutex::default(), freed: Notify::new(), patience });
        let mut all = self.0.lock();
        let list = all.entry(consumer.as_str().to_owned()).or_default();
        list.retain(|it| 0 < it.strong_count());
        list.push(Arc::downgrade(&held));
        all.retain(|_, list| list.iter().any(|it| 0 < it.strong_count()));
        held
    }

    fn let_go(&self, consumer: &ConsumerName, seqs: &[u64]) {
        let all = self.0.lock();
        let list = all.get(consumer.as_str()).into_iter().flatten();
        for held in list.filter_map(Weak::upgrade) {
            let mut out = held.out.lock();
            for seq in seqs {
                out.remove(seq);
            }
            held.freed.notify_one();
        }
    }
}

/// What one connection of a consumer has in hand.
#[derive(Debug)]
pub(crate) struct Held {
    out: Mutex<BTreeMap<u64, Instant>>,
    freed: Notify,
    patience: Duration,
}

impl Held {
    pub(crate) fn take(&self, seq: u64) {
        self.out.lock().insert(seq, Instant::now());
    }

    /// What it has and has not had for too long: that may be with another already.
    pub(crate) fn in_hand(&self) -> Vec<u64> {
        let mut out = self.out.lock();
        out.retain(|_, since| since.elapsed() < self.patience);
        out.keys().copied().collect()
    }

    /// Waits until fewer than so many are in hand; returns how many more may be.
    pub(crate) async fn room(&self, max: usize) -> usize {
        loop {
            let freed = self.freed.notified();
            let count = self.in_hand().len();
            if count < max {
                return max - count;
            }
            // Nobody says when something has been in hand for too long.
            tokio::time::timeout(Duration::from_secs(1), freed).await.ok();
        }
    }
}
