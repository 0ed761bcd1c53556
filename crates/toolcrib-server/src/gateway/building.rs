//! How the snapshot is built: of what the sources list, under the rules in force.

use std::sync::Arc;

use toolcrib_catalogue::{
    Catalogue, Listing, Offers, Problem, Settings as Naming, SourceState, ToolFilter,
    lock::{Lock, Pins},
    poison,
};

use toolcrib_wire::text::Masker;

use super::{Gateway, Input};
use crate::{
    access::Access,
    built_in,
    guard::{Noticed, limits::Limits, rules::Rules},
    slot::{Slot, Slots},
    snapshot::Snapshot,
};

impl Gateway {
    /// Builds the catalogue anew, and says what is wrong.
    pub fn rebuild(&self) -> Vec<Problem> {
        self.rebuild_with(None)
    }

    /// Builds the catalogue anew where it is behind its sources. Many new definitions take a second to look at, so
    /// that is done where nobody waits for anything else.
    pub(super) async fn catch_up(self: &Arc<Self>) {
        let Ok(_turn) = self.turn.acquire().await else { return };
        if *self.built.lock() == versions(&self.slots()) {
            return;
        }
        let this = Arc::clone(self);
        self.tasks.spawn_blocking(move || drop(this.rebuild())).await.ok();
    }

    /// Builds catalogue and views anew, under these rules or those in force; they change in one moment.
    fn rebuild_with(&self, access: Option<Access>) -> Vec<Problem> {
        let _building = self.building.lock();
        // Before anything is asked: what changes meanwhile makes us build once more.
        let slots = self.slots();
        let versions = versions(&slots);
        let mut listings: Vec<Listing> = slots.iter().map(|it| listing(it)).collect();
        let mut looking = self.looking.lock();
        let ways: Vec<_> = slots.iter().map(|it| it.input.way.as_ref()).collect();
        looking.follow(&slots);
        self.tell_noticed(&looking.look(&mut listings, &ways, &self.rules()));
        let (catalogue, mut problems) = match Catalogue::build(&listings, &Naming::default()) {
            Ok(built) => built,
            Err(conflict) => {
                tracing::error!("{conflict}");
                *self.built.lock() = versions;
                return vec![Problem::new("tools", conflict.to_string())];
            }
        };
        self.tell_noticed(&looking.clashes(&catalogue, &listings));
        let standings = looking.in_order(&catalogue);
        drop(looking);
        let offers = |it: &Arc<Slot>| it.source().map(|it| it.offers()).unwrap_or_default();
        let offers: Vec<Offers> = slots.iter().map(offers).collect();
        let prompts: Vec<Listing> = listings
            .into_iter()
            .zip(&offers)
            .map(|(listing, offer)| Listing {
                tools: Arc::clone(&offer.prompts),
                filter: ToolFilter::default(),
                ..listing
            })
            .collect();
        // Prompts are named as tools are, and clash as they do.
        let prompts = match Catalogue::build(&prompts, &Naming::default()) {
            Ok((prompts, clashes)) => {
                problems.extend(clashes);
                prompts
            }
            Err(conflict) => {
                problems.push(Problem::new("prompts", conflict.to_string()));
                Catalogue::default()
            }
        };
        let access = access.map_or_else(|| self.access(), Arc::new);
        let known = (catalogue, standings);
        let sources = Slots::clone(&slots);
        let snapshot = Snapshot::new(known, prompts, offers, sources, Arc::clone(&access));
        let limits = self.limits(&snapshot, &slots);
        let snapshot = snapshot.guarded(limits, &self.rules().cache).metered(&self.metrics);
        let mut sources = slots.iter().filter_map(|it| it.source());
        if sources.all(|it| it.state() != SourceState::Connecting) {
            for name in snapshot.names().into_iter().filter(|it| built_in::is_reserved(it)) {
                let message = format!("the name `{name}` is reserved; nobody sees this tool");
                problems.push(Problem::new("tools", message).hint("call it otherwise"));
            }
            let names = [&snapshot.names()[..], &built_in::NAMES].concat();
            for (section, slip) in self.rules().unmatched(&names) {
                let message = format!("`{slip}` is the name of no tool");
                problems.push(Problem::new(format!("network.yaml: {section}: tools"), message));
            }
            for slip in access.unmatched(&names) {
                let message = format!("`{slip}` is the name of no tool");
                problems.push(Problem::new("network.yaml: external_access", message));
            }
        }
        self.tell_costs(&snapshot);
        self.snapshot.store(Arc::new(snapshot));
        *self.built.lock() = versions;
        self.changes.send_modify(|it| *it += 1);
        self.console.problems.lock().clone_from(&problems);
        problems
    }

    /// The limits for what there is now; those that stay go on counting.
    fn limits(&self, snapshot: &Snapshot, slots: &Slots) -> Limits {
        let limit = |it: &Arc<Slot>| (Arc::clone(&it.label), it.input.limit);
        let sources: Vec<_> = slots.iter().map(limit).collect();
        let names = snapshot.names().into_iter().chain(built_in::NAMES);
        Limits::build(&self.rules().limits, names, &sources, &self.snapshot.load().limits)
    }

    /// Says what was found out about definitions.
    fn tell_noticed(&self, noticed: &[Noticed]) {
        for it in noticed {
            let (source, tool) = (it.place.as_str(), poison::visible(&it.tool));
            let outcome = if it.held { "held back" } else { "served nevertheless" };
            tracing::warn!(source, tool, outcome, "{}", it.message);
            if let Some(audit) = self.audit() {
                audit.noticed(it);
            }
        }
    }

    /// Holds tools and calls to other rules from now on. Says what is wrong.
    pub fn set_rules(&self, rules: Rules) -> Vec<Problem> {
        self.looking.lock().forget();
        self.rules.store(Arc::new(rules));
        self.cache.clear();
        self.rebuild()
    }

    /// Takes other definitions for accepted from now on. Says what is wrong.
    pub fn accept(&self, lock: Option<Lock>) -> Vec<Problem> {
        let rules = Rules::clone(&self.rules());
        self.set_rules(Rules { lock, ..rules })
    }

    /// What becomes of what is not as it was accepted.
    pub fn pins(&self) -> Pins {
        self.rules().pins
    }

    /// Says of groups with `view: auto` which list they get, when that changes.
    fn tell_costs(&self, snapshot: &Snapshot) {
        let before = self.snapshot.load();
        let searched = |it: &Snapshot, name: &str| {
            it.costs().iter().any(|(group, all, few)| *group == name && few < all)
        };
        for (group, all, few) in snapshot.costs() {
            if searched(snapshot, group) != searched(&before, group) {
                let shown = if few < all { "the search" } else { "all tools" };
                tracing::info!(group, all, searching = few, "in tokens: the list shows {shown}");
            }
        }
    }

    /// Takes other secrets out of what is recorded from now on, besides those it knew.
    pub fn set_masker(&self, masker: &Masker) {
        if let Some(recording) = self.recording() {
            recording.set_masker(masker);
        }
        if let Some(audit) = &self.settings.audit {
            audit.set_masker(masker);
        }
        if let Some(tracer) = &self.tracer {
            tracer.set_masker(masker);
        }
    }

    /// Lets other people in from now on, and tells them this. Says what is wrong.
    pub fn set_access(&self, access: Access, instructions: Option<String>) -> Vec<Problem> {
        self.cache.clear();
        self.instructions.store(Arc::new(instructions));
        if let Some(audit) = self.audit() {
            audit.reloaded(&self.access(), &access);
        }
        self.rebuild_with(Some(access))
    }
}

/// Which versions of its sources a catalogue is of.
pub(super) fn versions(slots: &[Arc<Slot>]) -> Vec<(u64, u64)> {
    slots.iter().filter_map(|it| Some((it.key, it.source()?.version()))).collect()
}

/// What a source lists, and how it is taken.
fn listing(slot: &Slot) -> Listing {
    let Input { origin, style, filter, .. } = &slot.input;
    Listing {
        origin: origin.clone(),
        style: *style,
        filter: filter.clone(),
        tools: slot.source().map(|it| it.tools()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests;
