//! Finding tools: one index per group, of what the group may call and nothing else, so that what is hidden
//! leaves no trace in what is found, or in how well it fits.

use std::{
    collections::HashMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;
use toolcrib_catalogue::Tool;
use toolcrib_context::search::{Document, Hit, Index};

use crate::{access::Caller, gateway::Gateway, snapshot::Snapshot};

/// The indexes of those groups that have searched.
#[derive(Debug, Default)]
pub(crate) struct Finding(Mutex<HashMap<Arc<str>, Arc<Mutex<Indexed>>>>);

/// The index of a group, and what is in it.
#[derive(Debug, Default)]
struct Indexed {
    index: Index,
    known: HashMap<Arc<str>, Arc<Tool>>,
    /// The snapshot that it was brought up to.
    of: Weak<Snapshot>,
}

impl Finding {
    fn group(&self, snapshot: &Snapshot, caller: &Caller) -> Arc<Mutex<Indexed>> {
        let mut all = self.0.lock();
        // Groups come and go with the access rules.
        all.retain(|name, _| snapshot.access.place(name).is_some() || *name == caller.group);
        Arc::clone(all.entry(Arc::clone(&caller.group)).or_default())
    }
}

impl Indexed {
    /// Takes in what has come, and lets go of what has gone.
    fn follow(&mut self, snapshot: &Arc<Snapshot>, caller: &Caller) {
        if Weak::as_ptr(&self.of) == Arc::as_ptr(snapshot) {
            return;
        }
        let mut before = std::mem::take(&mut self.known);
        for entry in snapshot.visible(caller) {
            let old = before.remove_entry(&*entry.name);
            let same = old.as_ref().is_some_and(|(_, tool)| Arc::ptr_eq(tool, &entry.tool));
            let key = old.map_or_else(|| Arc::from(&*entry.name), |(key, _)| key);
            if !same {
                let server = snapshot.server(entry.listing);
                self.index.set(Arc::clone(&key), &Document::of(&entry.tool, &server));
            }
            self.known.insert(key, Arc::clone(&entry.tool));
        }
        for name in before.keys() {
            self.index.remove(name);
        }
        self.of = Arc::downgrade(snapshot);
    }
}

impl Gateway {
    /// The tools that fit best among those that a caller may call.
    pub(crate) async fn search(
        self: &Arc<Self>,
        snapshot: &Arc<Snapshot>,
        caller: &Caller,
        query: String,
        top: usize,
    ) -> Vec<Hit> {
        let indexed = self.finding.group(snapshot, caller);
        let (snapshot, caller) = (Arc::clone(snapshot), caller.clone());
        // The first search of a group reads every tool it has.
        let found = self.tasks.spawn_blocking(move || {
            let mut indexed = indexed.lock();
            indexed.follow(&snapshot, &caller);
            indexed.index.search(&query, top)
        });
        found.await.unwrap_or_default()
    }
}
