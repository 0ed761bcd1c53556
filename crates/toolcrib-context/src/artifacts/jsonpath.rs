//! JSONPath (RFC 9535): what a path says.
//!
//! How it is read stands in `parse`, what it finds in `eval`. A path that leads to one place at most (`$.a.b[3]`) is
//! *singular*; the singular beginning of any path is walked on the file, without holding what lies beside it.

mod parse;
mod eval;
mod compare;
mod pattern;

use std::fmt;

pub(super) use eval::{Eval, Flow, Place, Spent, Stop};

/// A path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Query {
    /// From the root of the document, not from the value that a filter looks at.
    pub(super) absolute: bool,
    pub(super) segments: Vec<Segment>,
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Segment {
    /// Not of the value alone but of everything in it, too.
    pub(super) descend: bool,
    pub(super) selectors: Vec<Pick>,
}

/// Which children.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Pick {
    Name(String),
    Index(i64),
    All,
    Slice { start: Option<i64>, end: Option<i64>, step: i64 },
    Filter(Test),
}

/// What a filter asks.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    Any(Vec<Self>),
    All(Vec<Self>),
    Not(Box<Self>),
    Exists(Query),
    Compare(Operand, Relation, Operand),
    /// The text matches the pattern, as a whole or somewhere.
    Matches {
        text: Operand,
        pattern: Operand,
        whole: bool,
    },
}

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Operand {
    /// JSON as it is written.
    Literal(String),
    /// A singular path.
    Value(Query),
    /// How long the value of an operand is.
    Length(Box<Self>),
    /// How many a path finds.
    Count(Query),
    /// What a path finds if that is one.
    Only(Query),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why a path cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the path cannot be read at character {at}: {what}")]
pub(super) struct BadPath {
    at: usize,
    what: String,
}

/// One step of a singular path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    Name(String),
    Index(i64),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "[{index}]"),
            Self::Name(name) => {
                let plain = |it: char| it.is_ascii_alphanumeric() || it == '_' || !it.is_ascii();
                let simple =
                    name.chars().all(plain) && !name.starts_with(|it: char| it.is_ascii_digit());
                if simple && !name.is_empty() {
                    return write!(f, ".{name}");
                }
                let quoted = serde_json::Value::from(name.as_str()).to_string();
                write!(f, "[{quoted}]")
            }
        }
    }
}

/// A singular path as one writes it.
pub(super) fn written(steps: &[Step]) -> String {
    steps.iter().fold("$".to_owned(), |path, step| path + &step.to_string())
}

impl Query {
    pub(super) fn parse(text: &str) -> Result<Self, BadPath> {
        parse::parse(text)
    }

    /// The singular beginning, and the rest.
    pub(super) fn split(&self) -> (Vec<Step>, &[Segment]) {
        let steps: Vec<Step> = self.segments.iter().map_while(Segment::step).collect();
        let rest = &self.segments[steps.len()..];
        (steps, rest)
    }

    pub(super) fn is_singular(&self) -> bool {
        self.segments.iter().all(|it| it.step().is_some())
    }
}

impl Segment {
    fn step(&self) -> Option<Step> {
        match (self.descend, self.selectors.as_slice()) {
            (false, [Pick::Name(name)]) => Some(Step::Name(name.clone())),
            (false, [Pick::Index(index)]) => Some(Step::Index(*index)),
            _ => None,
        }
    }

    /// What each child is asked alone, where that can be: then they need not be held together.
    pub(super) fn one_by_one(&self) -> Option<&Pick> {
        match (self.descend, self.selectors.as_slice()) {
            (false, [pick @ Pick::All]) => Some(pick),
            (false, [pick @ Pick::Slice { start, end, step: 1.. }])
                if [start, end].iter().all(|it| it.is_none_or(|it| 0 <= it)) =>
            {
                Some(pick)
            }
            (false, [pick @ Pick::Filter(test)]) if !test.asks_root() => Some(pick),
            _ => None,
        }
    }

    fn asks_root(&self) -> bool {
        let asks = |it: &Pick| matches!(it, Pick::Filter(test) if test.asks_root());
        self.selectors.iter().any(asks)
    }
}

/// Whether any of these looks at the document from its root.
pub(super) fn ask_root(segments: &[Segment]) -> bool {
    segments.iter().any(Segment::asks_root)
}

impl Test {
    fn asks_root(&self) -> bool {
        match self {
            Self::Any(tests) | Self::All(tests) => tests.iter().any(Self::asks_root),
            Self::Not(test) => test.asks_root(),
            Self::Exists(query) => query.asks_root(),
            Self::Compare(left, _, right) => left.asks_root() || right.asks_root(),
            Self::Matches { text, pattern, .. } => text.asks_root() || pattern.asks_root(),
        }
    }
}

impl Query {
    fn asks_root(&self) -> bool {
        self.absolute || ask_root(&self.segments)
    }
}

impl Operand {
    fn asks_root(&self) -> bool {
        match self {
            Self::Literal(_) => false,
            Self::Value(query) | Self::Count(query) | Self::Only(query) => query.asks_root(),
            Self::Length(operand) => operand.asks_root(),
        }
    }
}
