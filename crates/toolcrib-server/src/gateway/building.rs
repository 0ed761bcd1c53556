//! How the snapshot is built: of what the sources list, under the rules in force.

use std::sync::Arc;

use toolcrib_catalogue::{
    Catalogue, Listing, Offers, Problem, Settings as Naming, SourceState, ToolFilter,
};

use super::{Gateway, Input};
use crate::{access::Access, built_in, snapshot::Snapshot};

impl Gateway {
    /// Builds the catalogue anew, and says what is wrong.
    pub fn rebuild(&self) -> Vec<Problem> {
        self.rebuild_with(None)
    }

    /// Builds catalogue and views anew, under these rules or those in force; they change in one moment.
    fn rebuild_with(&self, access: Option<Access>) -> Vec<Problem> {
        let mut built = self.built.lock();
        *built = self.versions();
        let listing = |input: &Input| Listing {
            origin: input.origin.clone(),
            style: input.style,
            filter: input.filter.clone(),
            tools: input.source.as_ref().map(|it| it.tools()).unwrap_or_default(),
        };
        let listings: Vec<Listing> = self.inputs.iter().map(listing).collect();
        let (catalogue, mut problems) = match Catalogue::build(&listings, &Naming::default()) {
            Ok(built) => built,
            Err(conflict) => {
                tracing::error!("{conflict}");
                return vec![Problem::new("tools", conflict.to_string())];
            }
        };
        let offers: Vec<Offers> = self
            .inputs
            .iter()
            .map(|it| it.source.as_ref().map(|it| it.offers()).unwrap_or_default())
            .collect();
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
        let labels = self.labels.clone();
        let snapshot = Snapshot::new(catalogue, prompts, offers, labels, Arc::clone(&access));
        let ready = self.inputs.iter().flat_map(|it| &it.source);
        if ready.clone().all(|it| it.state() != SourceState::Connecting) {
            for name in snapshot.names().into_iter().filter(|it| built_in::is_reserved(it)) {
                let message = format!("the name `{name}` is reserved; nobody sees this tool");
                problems.push(Problem::new("tools", message).hint("call it otherwise"));
            }
            for slip in access.unmatched(&[&snapshot.names()[..], &built_in::NAMES].concat()) {
                let message = format!("`{slip}` is the name of no tool");
                problems.push(Problem::new("network.yaml: external_access", message));
            }
        }
        self.tell_costs(&snapshot);
        self.snapshot.store(Arc::new(snapshot));
        self.changes.send_modify(|it| *it += 1);
        problems
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

    /// Lets other people in from now on, and tells them this. Says what is wrong.
    pub fn set_access(&self, access: Access, instructions: Option<String>) -> Vec<Problem> {
        self.instructions.store(Arc::new(instructions));
        self.rebuild_with(Some(access))
    }
}
