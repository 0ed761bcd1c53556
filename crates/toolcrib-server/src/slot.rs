//! A source in its place: how its tools are taken, and what is known of it while it is there.
//!
//! The list of slots changes as a whole, and a snapshot holds the list it was built from: a call ends at the source at
//! which it began, whatever is edited meanwhile. A slot that nobody holds any more is one whose source nobody uses.

use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

use tokio_util::sync::CancellationToken;
use toolcrib_catalogue::{Origin, Source, Visitor};

use crate::{
    console::Since,
    gateway::Input,
    visit::{Here, Visit},
};

/// Nobody has asked a source anything, or several have.
const NOBODY: u64 = 0;
const SEVERAL: u64 = u64::MAX;

/// All of them, in the order in which names are given.
pub(crate) type Slots = Arc<[Arc<Slot>]>;

/// One of them.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) input: Input,
    /// What it is called.
    pub(crate) label: Arc<str>,
    /// Belongs to the name, whichever source stands behind it. No other name has it.
    pub(crate) key: u64,
    /// Who has asked the source something: nobody, one visit, or several.
    asked: AtomicU64,
    /// Held while the source is told who watches, so that it hears of coming and going in the right order.
    pub(crate) turn: tokio::sync::Mutex<()>,
    /// How it is, and since when.
    pub(crate) since: Since,
    /// Another one has taken its place, or none.
    pub(crate) gone: CancellationToken,
}

impl Slot {
    /// The slot for `input`: the one it has already, or a new one. `key` makes keys.
    pub(crate) fn of(before: &[Arc<Self>], input: Input, key: impl FnOnce() -> u64) -> Arc<Self> {
        let old = before.iter().find(|it| it.input.origin == input.origin);
        let same = old.filter(|it| it.input.has_source_of(&input));
        if let Some(same) = same.filter(|it| it.input.is_like(&input)) {
            return Arc::clone(same);
        }
        Arc::new(Self {
            label: label(&input.origin),
            key: old.map_or_else(key, |it| it.key),
            asked: AtomicU64::new(same.map_or(NOBODY, |it| it.asked.load(Ordering::Relaxed))),
            since: same.map_or_else(Since::default, |it| it.since.clone()),
            turn: tokio::sync::Mutex::default(),
            gone: CancellationToken::new(),
            input,
        })
    }

    pub(crate) fn source(&self) -> Option<&Arc<dyn Source>> {
        self.input.source.as_ref()
    }

    /// Notes who asks the source something.
    pub(crate) fn note(&self, visit: Option<&Arc<Visit>>) {
        let who = visit.map_or(SEVERAL, |it| Here(Arc::clone(it)).key());
        let before = self.asked.load(Ordering::Relaxed);
        if before != who && before != SEVERAL {
            let now = if before == NOBODY { who } else { SEVERAL };
            self.asked.store(now, Ordering::Relaxed);
        }
    }

    /// Whether nobody but this visit has asked the source anything.
    pub(crate) fn is_of(&self, visit: &Here) -> bool {
        [NOBODY, visit.key()].contains(&self.asked.load(Ordering::Relaxed))
    }
}

/// A source that was taken out, for whoever ends it.
#[derive(Debug, Clone)]
pub struct Left {
    /// What it was called.
    pub label: Arc<str>,
    slot: Weak<Slot>,
}

impl Left {
    pub(crate) fn of(slot: &Arc<Slot>) -> Self {
        Self { label: Arc::clone(&slot.label), slot: Arc::downgrade(slot) }
    }

    /// Whether some call may still need it.
    pub fn is_used(&self) -> bool {
        0 < self.slot.strong_count()
    }
}

/// What a source is called where somebody looks for its tools.
fn label(origin: &Origin) -> Arc<str> {
    match origin {
        Origin::Upstream(name) | Origin::Mod(name) => name.as_str().into(),
        Origin::Workspace | Origin::Events => origin.subject().into(),
    }
}

/// Slots of servers that are called so, and have nothing.
#[cfg(test)]
pub(crate) fn of_servers(names: &[&str]) -> Slots {
    use toolcrib_catalogue::{NameStyle, ToolFilter};

    let slot = |(at, name): (usize, &&str)| {
        let input = Input {
            source: None,
            origin: Origin::Upstream((*name).to_owned()),
            style: NameStyle::Prefixed,
            filter: ToolFilter::default(),
            required: false,
            way: None,
            limit: crate::Limit::default(),
        };
        Slot::of(&[], input, || at as u64)
    };
    names.iter().enumerate().map(slot).collect()
}
