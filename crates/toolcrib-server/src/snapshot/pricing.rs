//! What somebody who looks at a snapshot wants to know, and nobody who calls.

use toolcrib_catalogue::Problem;

use super::{Snapshot, View, built_in::SEARCH_VIEW, cost};
use crate::{
    access::{Caller, Rights},
    guard::Held,
    shape::ViewStyle,
};

/// What lists cost the models of a group, in tokens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Price {
    /// What is configured.
    pub(crate) style: ViewStyle,
    /// How many tools the group may call.
    pub(crate) tools: usize,
    /// What the list costs that the group gets.
    pub(crate) shown: usize,
    /// What the list of all would cost.
    pub(crate) all: usize,
    /// What the list of those would cost that find the others.
    pub(crate) few: usize,
    /// What a task would cost with that, searches and all.
    pub(crate) searching: usize,
}

impl Snapshot {
    /// The tools of the gateway itself that a caller may use.
    pub(crate) fn built_ins(&self, caller: &Caller) -> &[&'static str] {
        self.view(caller).map(|it| it.built_in.as_slice()).unwrap_or_default()
    }

    /// The tools of a source that nobody is served with, and why.
    pub(crate) fn held_of(&self, source: usize) -> impl Iterator<Item = (&str, &Held)> {
        let all = self.tools.entries().iter().zip(&self.standings);
        let own = all.filter(move |(entry, _)| entry.listing == source);
        own.filter_map(|(entry, standing)| Some((&*entry.name, standing.held.as_ref()?)))
    }

    /// What is suspicious about definitions.
    pub(crate) fn suspicions(&self) -> Vec<Problem> {
        let all = self.tools.entries().iter().zip(&self.standings);
        all.filter_map(|(entry, it)| it.look.suspicions(&format!("tool {}", entry.name))).collect()
    }

    /// What lists cost a group.
    pub(crate) fn price(&self, name: &str) -> Option<Price> {
        let group = self.access.place(name)?;
        let view = self.views.get(group)?;
        let named = |it: &&'static str| self.access.names(group, it);
        let plain: Vec<&str> = view.built_in.iter().copied().filter(named).collect();
        let added = SEARCH_VIEW.into_iter().filter(|it| self.access.spares(group, it));
        let mut search: Vec<&str> = plain.iter().copied().chain(added).collect();
        search.sort_unstable();
        search.dedup();
        let all = view.with(plain).list_all(self);
        let few = view.with(search).list_few(self, group);
        let tools = view.visible.iter().filter(|it| **it).count();
        Some(Price {
            style: self.access.view(group),
            tools,
            shown: cost::of_list(&view.lists.tools),
            all: cost::of_list(&all),
            few: cost::of_list(&few),
            searching: cost::of_searching(&few, &all, tools),
        })
    }
}

impl View {
    /// The same, with these tools of ours.
    fn with(&self, built_in: Vec<&'static str>) -> Self {
        Self {
            visible: self.visible.clone(),
            sources: Vec::new(),
            events: Rights::All,
            built_in,
            limits: self.limits.clone(),
            costs: None,
            lists: super::Lists::default(),
        }
    }
}
