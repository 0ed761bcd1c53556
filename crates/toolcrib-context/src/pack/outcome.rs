//! What a build gives: the prompt, its figures, and of each item why it is in or out.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::{ItemKind, Phase, ResultEnvelope, Sensitivity};

/// A prompt under a budget, and how it came about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ContextPack {
    /// The prompt.
    pub prompt: String,
    /// What it is for.
    pub phase: Phase,
    /// Its figures.
    pub stats: BuildStats,
    /// Of each candidate why it is in or out, in the order of the session. No text of theirs is here.
    pub items: Vec<ItemVerdict>,
    /// Of each result that was too large to be shown what it came to.
    pub envelopes: Vec<ResultEnvelope>,
}

/// The figures of a build.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct BuildStats {
    /// How many tokens the prompt is, labels and all.
    pub tokens: u64,
    /// How many it might have been.
    pub budget: u64,
    /// Who counted.
    pub counter: String,
    /// How many tokens the items of each kind take.
    pub tokens_per_section: BTreeMap<ItemKind, u64>,
    /// What memory, header and footer take.
    pub header_footer_tokens: u64,
    /// How many items were considered.
    pub total_candidates: usize,
    /// How many are in.
    pub included_count: usize,
    /// How many are not.
    pub dropped_count: usize,
    /// How many are out for each reason.
    pub dropped_reasons: BTreeMap<DropReason, usize>,
    /// How many of the candidates are there only because others follow from them.
    pub dependency_closures: usize,
}

/// Why one item is in or out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ItemVerdict {
    /// The item.
    pub id: String,
    /// What it is.
    pub kind: ItemKind,
    /// How far it may be shown.
    pub sensitivity: Sensitivity,
    /// What speaks for it; nothing is known of what was too sensitive to be looked at.
    pub score: Option<f64>,
    /// How many tokens it takes in the prompt, label and all, or would.
    pub tokens: u64,
    /// Whether it is in.
    pub included: bool,
    /// Why not.
    pub reason: Option<DropReason>,
    /// Whether its kind is not for this phase, and it is here because another item follows from it.
    pub from_closure: bool,
}

/// Why an item is out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DropReason {
    /// It is too sensitive.
    Sensitivity,
    /// It says what another item says that is newer or matters more.
    Dedup,
    /// There are enough of its kind.
    KindLimit,
    /// There is no room for it and for what it cannot be without.
    Budget,
    /// The other half of its call may not be shown.
    Apart,
}

impl DropReason {
    /// In a word, as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sensitivity => "sensitivity",
            Self::Dedup => "dedup",
            Self::KindLimit => "kind_limit",
            Self::Budget => "budget",
            Self::Apart => "apart",
        }
    }
}

/// Why there is no pack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PackError {
    /// Header and footer alone are too much.
    #[error(
        "header and footer take {needed} tokens, and the budget is {budget}; raise the budget or shorten them"
    )]
    Header {
        /// What they take.
        needed: u64,
        /// What there is.
        budget: u64,
    },
    /// Something would be left out that must not be.
    #[error(
        "{count} items do not fit into {budget} tokens, and nothing may be left out; raise the budget or let the rest be dropped"
    )]
    Overflow {
        /// How many items.
        count: usize,
        /// What there is.
        budget: u64,
    },
}
