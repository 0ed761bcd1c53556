//! The sources of a snapshot, by their places in it.

use std::sync::Arc;

use super::Snapshot;
use crate::slot::Slot;

impl Snapshot {
    /// What a source is called.
    pub(crate) fn label(&self, source: usize) -> Option<Arc<str>> {
        self.slots.get(source).map(|it| Arc::clone(&it.label))
    }

    /// A source, in its place.
    pub(crate) fn slot(&self, source: usize) -> Option<&Arc<Slot>> {
        self.slots.get(source)
    }

    /// All sources.
    pub(crate) fn slots(&self) -> &[Arc<Slot>] {
        &self.slots
    }

    /// Where the source of this key stands.
    pub(crate) fn place_of(&self, key: u64) -> Option<usize> {
        self.slots.iter().position(|it| it.key == key)
    }

    /// The server or mod that a source is; empty for tools of the workspace's own.
    pub(crate) fn server(&self, source: usize) -> Arc<str> {
        let own = |it: &Arc<str>| matches!(&**it, "tools/" | "events/");
        self.label(source).filter(|it| !own(it)).unwrap_or_default()
    }
}
