//! What is counted while the gateway runs, and how it is told to whoever asks at `/metrics`.
//!
//! A call counts at its end, in a few atomic numbers of its tool, which it finds by a pointer in the snapshot: nothing is
//! hashed, locked or allocated on its way. What there is to label follows from what is configured and listed, never from
//! who calls: a name that is no tool's counts under one that no tool can have.

mod meter;
mod page;
mod figures;
mod statuses;

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use parking_lot::Mutex;

use self::statuses::Statuses;
pub(crate) use self::{
    figures::{MEDIA_TYPE, SessionCounts, tell},
    meter::{Meter, Outcome, SourceMeter},
};
use crate::{built_in, guard::Story};

/// What a name that is no tool's counts under.
const UNKNOWN: &str = "(unknown)";

/// The server of tools that are part of the gateway.
const OWN: &str = "(gateway)";

/// Of how many tools that are gone it is remembered how often they were called.
const MOST_GONE: usize = 10_000;

/// The rules that may refuse one call too many.
const LIMITS: [(&str, &str); 5] = [
    ("limits of the gateway", "gateway"),
    ("limits of the group", "group"),
    ("limits of the tool", "tool"),
    ("limits of the server", "server"),
    ("idempotency", "idempotency"),
];

/// What a tool is known by here.
type ServerAndTool = (Arc<str>, Arc<str>);

/// Everything that is counted.
#[derive(Debug)]
pub(crate) struct Metrics {
    /// Of each tool, by server and public name. Locked when a snapshot is built, and by whoever asks.
    tools: Mutex<HashMap<ServerAndTool, Arc<Meter>>>,
    /// Of each source, by what it is called.
    sources: Mutex<HashMap<Arc<str>, Arc<SourceMeter>>>,
    built_in: [Arc<Meter>; built_in::NAMES.len()],
    unknown: Arc<Meter>,
    nowhere: Arc<SourceMeter>,
    limited: [AtomicU64; LIMITS.len()],
    /// Calls that are being answered.
    running: AtomicU64,
    /// Calls that were refused because they could not be recorded.
    unrecorded: AtomicU64,
    pub(crate) statuses: Statuses,
}

/// What the tools and sources of one snapshot count in, in their order.
#[derive(Debug, Default)]
pub(crate) struct Meters {
    tools: Vec<Arc<Meter>>,
    sources: Vec<Arc<SourceMeter>>,
}

impl Meters {
    pub(crate) fn tool(&self, at: usize) -> Option<&Arc<Meter>> {
        self.tools.get(at)
    }

    pub(crate) fn source(&self, at: usize) -> Option<&Arc<SourceMeter>> {
        self.sources.get(at)
    }
}

impl Default for Metrics {
    fn default() -> Self {
        let own = |name: &str| Arc::new(Meter::new(name.into(), OWN.into()));
        Self {
            tools: Mutex::default(),
            sources: Mutex::default(),
            built_in: built_in::NAMES.map(own),
            unknown: Arc::new(Meter::new(UNKNOWN.into(), "".into())),
            nowhere: Arc::new(SourceMeter::new("".into())),
            limited: Default::default(),
            running: AtomicU64::new(0),
            unrecorded: AtomicU64::new(0),
            statuses: Statuses::default(),
        }
    }
}

impl Metrics {
    /// What these tools, each with the place of its source, and these sources count in: what they counted in before.
    pub(crate) fn meters<'a>(
        &self,
        tools: impl Iterator<Item = (&'a str, usize)>,
        labels: &[Arc<str>],
    ) -> Meters {
        let mut known = self.sources.lock();
        let source = |label: &Arc<str>| {
            let meter = known.entry(Arc::clone(label));
            Arc::clone(meter.or_insert_with(|| Arc::new(SourceMeter::new(Arc::clone(label)))))
        };
        let sources = labels.iter().map(source).collect();
        drop(known);
        let mut known = self.tools.lock();
        let tool = |(name, source): (&str, usize)| {
            let server = labels.get(source).cloned().unwrap_or_else(|| "".into());
            let key = (server, Arc::from(name));
            let new = || Arc::new(Meter::new(Arc::clone(&key.1), Arc::clone(&key.0)));
            Arc::clone(known.entry(key.clone()).or_insert_with(new))
        };
        let tools: Vec<Arc<Meter>> = tools.map(tool).collect();
        // A tool that is gone for a moment counts on when it is back; one that was never called has nothing to keep.
        // Those of the snapshot in force have two who hold them, or three.
        known.retain(|_, it| 1 < Arc::strong_count(it) || it.is_used());
        let most = tools.len() + MOST_GONE;
        if most < known.len() {
            known.retain(|_, it| 1 < Arc::strong_count(it));
        }
        Meters { tools, sources }
    }

    /// What a tool that is part of the gateway counts in.
    pub(crate) fn of_built_in(&self, name: &str) -> Option<&Arc<Meter>> {
        let at = built_in::NAMES.iter().position(|it| *it == name)?;
        self.built_in.get(at)
    }

    /// A call has ended.
    fn ended(&self, story: &Story, method: Option<&str>, took: Duration) {
        let outcome = story.outcome();
        if outcome == Outcome::Limited
            && let Some(at) = LIMITS.iter().position(|(rule, _)| Some(*rule) == story.rule)
        {
            self.limited[at].fetch_add(1, Relaxed);
        }
        match method {
            Some(method) => story.served.as_ref().unwrap_or(&self.nowhere).read(method, outcome),
            None => {
                let meter = story.meter.as_ref().unwrap_or(&self.unknown);
                meter.called(outcome, story.blame, story.cache, took);
            }
        }
    }
}

/// A call that is being answered, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Counting(Arc<Metrics>);

impl Counting {
    pub(crate) fn begin(metrics: &Arc<Metrics>) -> Self {
        metrics.running.fetch_add(1, Relaxed);
        Self(Arc::clone(metrics))
    }

    /// It has ended.
    pub(crate) fn ended(&self, story: &Story, method: Option<&str>, took: Duration) {
        self.0.ended(story, method, took);
    }

    /// It cannot be recorded, and so was not made.
    pub(crate) fn unrecorded(&self) {
        self.0.unrecorded.fetch_add(1, Relaxed);
    }
}

impl Drop for Counting {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(meter: &Meter) {
        meter.called(Outcome::Ok, None, None, Duration::from_millis(3));
    }

    #[test]
    fn a_tool_counts_on_over_snapshots_and_while_it_is_gone() {
        let metrics = Metrics::default();
        let labels: [Arc<str>; 2] = ["a".into(), "b".into()];
        let first = metrics.meters([("x", 0), ("y", 1)].into_iter(), &labels);
        call(&first.tools[0]);
        let again = metrics.meters([("x", 0)].into_iter(), &labels);
        assert!(Arc::ptr_eq(&first.tools[0], &again.tools[0]));
        drop((first, again));
        // `y` was never called: nothing is kept of it.
        drop(metrics.meters([].into_iter(), &labels));
        assert_eq!(metrics.tools.lock().len(), 1);
        let back = metrics.meters([("x", 0), ("x", 1)].into_iter(), &labels);
        assert!(back.tools[0].is_used() && !back.tools[1].is_used());
    }
}
