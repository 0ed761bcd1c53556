//! How a manager judges items, and what one build asks for.

use std::{collections::BTreeMap, str::FromStr};

use crate::{Counter, ItemKind, Phase, Sensitivity};

/// How a [`ContextManager`](crate::ContextManager) judges what it is given.
#[derive(Debug, Clone)]
pub struct ManagerOptions {
    /// How tokens are counted.
    pub counter: Counter,
    /// How many tokens a prompt may be.
    pub budgets: Budgets,
    /// What speaks for an item.
    pub scoring: Scoring,
    /// What speaks for an item in one phase, where that is not as in the others.
    pub scoring_in: BTreeMap<Phase, Scoring>,
    /// How many items of one kind a prompt may have, where that is not 50.
    pub most_of_kind: BTreeMap<ItemKind, usize>,
    /// Items of this label or above are not shown as they are.
    pub floor: Sensitivity,
    /// What becomes of them.
    pub above_floor: AboveFloor,
    /// Who raises labels by what is in a text.
    pub classifier: Classifier,
    /// What becomes of secrets in texts that are shown.
    pub secrets: Secrets,
    /// Results of more characters than this are kept aside, and their beginning is shown.
    pub inline_up_to: usize,
    /// What to do when the budget does not hold everything.
    pub overflow: Overflow,
}

impl Default for ManagerOptions {
    fn default() -> Self {
        Self {
            counter: Counter::default(),
            budgets: Budgets::default(),
            scoring: Scoring::default(),
            scoring_in: BTreeMap::new(),
            most_of_kind: BTreeMap::new(),
            floor: Sensitivity::Confidential,
            above_floor: AboveFloor::Drop,
            classifier: Classifier::None,
            secrets: Secrets::Show,
            inline_up_to: 2000,
            overflow: Overflow::Drop,
        }
    }
}

/// How many tokens a prompt may be, by what it is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budgets {
    /// To choose a tool.
    pub route: u64,
    /// To write its arguments.
    pub call: u64,
    /// To read its result.
    pub interpret: u64,
    /// To answer the user.
    pub answer: u64,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { route: 2000, call: 3000, interpret: 4000, answer: 6000 }
    }
}

impl Budgets {
    /// That of one phase.
    pub fn of(&self, phase: Phase) -> u64 {
        match phase {
            Phase::Route => self.route,
            Phase::Call => self.call,
            Phase::Interpret => self.interpret,
            Phase::Answer => self.answer,
        }
    }
}

/// What speaks for an item, and how much.
#[derive(Debug, Clone, PartialEq)]
pub struct Scoring {
    /// That it is new.
    pub recency: f64,
    /// That it is about what is asked.
    pub similarity: f64,
    /// That it is of a kind that matters.
    pub kind: f64,
    /// That it is short.
    pub brevity: f64,
    /// How much a kind matters, where that is not as usual.
    pub kinds: BTreeMap<ItemKind, f64>,
    /// From which share of common words on two texts are near-duplicates.
    pub duplicate: f64,
}

impl Default for Scoring {
    fn default() -> Self {
        Self {
            recency: 0.3,
            similarity: 0.25,
            kind: 0.35,
            brevity: 0.1,
            kinds: BTreeMap::new(),
            duplicate: 0.85,
        }
    }
}

impl Scoring {
    /// How much a kind matters, from 0 to 1.
    pub fn of_kind(&self, kind: ItemKind) -> f64 {
        self.kinds.get(&kind).copied().unwrap_or(match kind {
            ItemKind::Policy => 1.0,
            ItemKind::PlanState => 0.9,
            ItemKind::UserTurn => 0.85,
            ItemKind::AgentMsg => 0.7,
            ItemKind::ToolCall => 0.6,
            ItemKind::ToolResult => 0.55,
            ItemKind::MemoryFact => 0.5,
            ItemKind::RetrievedDoc => 0.45,
            ItemKind::DocSnippet => 0.4,
        })
    }
}

/// What becomes of an item that is too sensitive to be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AboveFloor {
    /// It is left out.
    Drop,
    /// It is shown as these leave it, one after the other; masked, if none is named.
    Redact(Vec<Redaction>),
}

/// A way to make a text fit to be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Redaction {
    /// Nothing but the label is left.
    Mask,
    /// Secrets that show by their shape go, the rest stays.
    Secret,
}

/// There is no redaction of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no redaction `{name}`; there are `mask` and `secret`")]
pub struct UnknownRedaction {
    /// What was asked for.
    pub name: String,
}

impl FromStr for Redaction {
    type Err = UnknownRedaction;

    fn from_str(name: &str) -> Result<Self, UnknownRedaction> {
        match name {
            "mask" => Ok(Self::Mask),
            "secret" => Ok(Self::Secret),
            _ => Err(UnknownRedaction { name: name.to_owned() }),
        }
    }
}

/// Who looks for what is sensitive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Classifier {
    /// Nobody: the labels are what they are.
    None,
    /// [`detect_sensitivity`](crate::detect_sensitivity). It raises labels and never lowers one.
    ByShape,
}

/// What becomes of secrets in texts that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Secrets {
    /// They stay.
    Show,
    /// They are masked; what is kept aside stays as it was.
    Scrub,
}

/// What to do when the budget does not hold everything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overflow {
    /// Leave the rest out; the pack says what.
    Drop,
    /// Give no pack, if anything of these kinds would be left out; of any kind, if none is named.
    Refuse(Vec<ItemKind>),
}

/// What one build asks for beyond its phase and question.
#[derive(Debug, Clone, Default)]
pub struct BuildOptions {
    /// How many tokens, if not as many as the phase has.
    pub budget: Option<u64>,
    /// Tags that speak for an item which has them.
    pub query_tags: Vec<String>,
    /// What stands before everything else but memory.
    pub header: String,
    /// What stands after everything.
    pub footer: String,
}
