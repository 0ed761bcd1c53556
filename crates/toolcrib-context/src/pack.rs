//! From a session to a prompt under a token budget.
//!
//! Items are judged once, when they come in: how sensitive they are, whether they are too large to be shown
//! whole, which words they have, what they cost. A build then only chooses:
//!
//! 1. candidates: items of the kinds that the phase is about, and whatever those follow from;
//! 2. what is too sensitive goes;
//! 3. the rest is scored: by how new it is, how much about the question, of which kind, how short;
//! 4. near-duplicates go;
//! 5. the best are taken, as long as the *rendered* prompt stays within the budget;
//! 6. what was taken is rendered in the order of the session.
//!
//! A call and its results are in or out together, and bring the question they follow from.

mod options;
mod outcome;
mod kept;
mod ingest;
mod score;
mod dedup;
mod select;
mod render;
mod memory;
mod build;
#[cfg(test)]
mod tests;

use hashbrown::HashMap;

pub use ingest::{IngestError, ToolResult};
pub use kept::KeptArtifacts;
pub use options::{
    AboveFloor, Budgets, BuildOptions, Classifier, ManagerOptions, Overflow, Redaction, Scoring,
    Secrets, UnknownRedaction,
};
pub use outcome::{BuildStats, ContextPack, DropReason, ItemVerdict, PackError};

use crate::{ContextItem, Phase, ResultEnvelope, Sensitivity, words::Lexicon};
use render::Cost;

/// Takes the items of a session, and makes prompts of them.
///
/// ```
/// use toolcrib_context::{ContextItem, ContextManager, ItemKind, Phase};
///
/// let mut manager = ContextManager::default();
/// manager.ingest(ContextItem::new("u1", ItemKind::UserTurn, "Search for open invoices"))?;
/// manager.ingest(ContextItem {
///     parent_id: Some("u1".to_owned()),
///     ..ContextItem::new("tc1", ItemKind::ToolCall, "invoices.search(status='open')")
/// })?;
///
/// let pack = manager.build_sync(Phase::Answer, "invoice status")?;
/// assert_eq!(pack.prompt, "[USER]\nSearch for open invoices\n\n[TOOL CALL]\ninvoices.search(status='open')");
/// assert!(pack.stats.tokens <= 6000);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Default)]
pub struct ContextManager {
    options: ManagerOptions,
    entries: Vec<Entry>,
    by_id: HashMap<String, usize>,
    lexicon: Lexicon,
    artifacts: KeptArtifacts,
    facts: Vec<Fact>,
    episodes: Vec<Episode>,
}

/// An item as it is shown, and what was found out about it when it came in.
#[derive(Debug)]
struct Entry {
    item: ContextItem,
    /// Whether it may be shown at all.
    hidden: bool,
    /// How it stands in a prompt is known in advance, and so is what that costs.
    cost: Cost,
    words: Vec<u32>,
    /// What to ask for the rest of it, or for what came with it.
    handles: Vec<String>,
    /// Hashes of what came with it: two pictures are not the same for having no words both.
    attachments: Vec<String>,
    envelope: Option<ResultEnvelope>,
}

#[derive(Debug)]
struct Fact {
    id: String,
    key: String,
    value: String,
    sensitivity: Sensitivity,
}

#[derive(Debug)]
struct Episode {
    summary: String,
    sensitivity: Sensitivity,
}

impl ContextManager {
    /// One that judges as usual.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that judges by these options.
    pub fn with(options: ManagerOptions) -> Self {
        Self { options, ..Self::default() }
    }

    /// The items, in the order they came, as they are shown.
    pub fn items(&self) -> impl Iterator<Item = &ContextItem> {
        self.entries.iter().map(|it| &it.item)
    }

    /// Whole results that are too large to be shown, and what came with results.
    pub fn artifacts(&self) -> &KeptArtifacts {
        &self.artifacts
    }

    /// Something to remember beyond the session. It is shown before the items, one line for each.
    pub fn remember_fact(&mut self, key: &str, value: &str, sensitivity: Sensitivity) {
        let id = format!("fact:{key}:{}", self.facts.len() + 1);
        let (key, value) = (key.to_owned(), value.to_owned());
        self.facts.push(Fact { id, key, value, sensitivity });
    }

    /// What happened in an earlier session, in a line. The latest three are shown.
    pub fn remember_episode(&mut self, summary: &str, sensitivity: Sensitivity) {
        self.episodes.push(Episode { summary: summary.to_owned(), sensitivity });
    }

    /// The prompt for a phase and a question. There is nothing to wait for: it is [`build_sync`](Self::build_sync)
    /// for callers that want a future.
    ///
    /// # Errors
    /// As for [`build_with`](Self::build_with).
    #[expect(clippy::unused_async, reason = "the seed has both, and callers await one of them")]
    pub async fn build(&self, phase: Phase, query: &str) -> Result<ContextPack, PackError> {
        self.build_sync(phase, query)
    }

    /// The prompt for a phase and a question.
    ///
    /// # Errors
    /// As for [`build_with`](Self::build_with).
    pub fn build_sync(&self, phase: Phase, query: &str) -> Result<ContextPack, PackError> {
        self.build_with(phase, query, &BuildOptions::default())
    }

    /// The prompt for a phase and a question, with a budget, tags, a header or a footer of its own.
    ///
    /// # Errors
    /// Header and footer alone do not fit, or nothing may be left out and something would be.
    pub fn build_with(
        &self,
        phase: Phase,
        query: &str,
        options: &BuildOptions,
    ) -> Result<ContextPack, PackError> {
        build::build(self, phase, query, options)
    }
}
