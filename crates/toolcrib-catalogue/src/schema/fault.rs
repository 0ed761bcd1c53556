//! What can be wrong with a schema, and what follows from it.

use super::guard::{MAX_BYTES, MAX_CHAIN, MAX_DEPTH, MAX_PATTERNS, MAX_SUBSCHEMAS, MAX_WORK};

/// Why a schema is not used for checking.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaFault {
    /// It is not JSON as we read it.
    #[error("the schema cannot be read: {0}")]
    Unreadable(String),
    /// Its text is too long.
    #[error(
        "the schema has {0} bytes; at most {MAX_BYTES} are allowed: move examples and long texts out of it"
    )]
    TooLarge(usize),
    /// Its schemas are nested too deep.
    #[error(
        "at `#{0}` the schema is nested deeper than {MAX_DEPTH} schemas: move the inner ones to `$defs`"
    )]
    TooDeep(String),
    /// It holds too many schemas.
    #[error(
        "the schema holds more than {MAX_SUBSCHEMAS} schemas: split the tool, or leave out definitions that nothing uses"
    )]
    TooMany,
    /// Checking one value would mean too many steps.
    #[error(
        "at `#{0}` checking one value may take more than {MAX_WORK} steps, since references multiply: let each definition be named once on the way to another"
    )]
    TooMuchWork(String),
    /// References lead to references, too often.
    #[error(
        "at `#{0}` begins a chain of more than {MAX_CHAIN} schemas for one and the same value: let references lead to their goal directly"
    )]
    Chain(String),
    /// References lead back to where they began, about the same value.
    #[error(
        "at `#{0}` references go round in a circle without looking at anything: nothing could ever be checked"
    )]
    Loop(String),
    /// It points to another document.
    #[error(
        "at `#{at}` the schema refers to `{uri}`, which is not a part of it; nothing is ever fetched: copy it into `$defs`"
    )]
    Remote {
        /// Where.
        at: String,
        /// To what.
        uri: String,
    },
    /// `$schema` names a dialect that would have to be fetched.
    #[error(
        "at `#{at}` `$schema` is `{uri}`, which is not known here, and nothing is ever fetched: use `https://json-schema.org/draft/2020-12/schema` or leave it out"
    )]
    RemoteDialect {
        /// Where.
        at: String,
        /// What it names.
        uri: String,
    },
    /// It points to something that it does not hold.
    #[error("at `#{at}` there is a reference to `{reference}`, and the schema has no such place")]
    Unresolved {
        /// Where.
        at: String,
        /// To what.
        reference: String,
    },
    /// A pattern that cannot be run in linear time.
    #[error(
        "at `#{at}` the pattern `{pattern}` cannot be run in linear time ({why}): write it without look-around, back-references and large repetitions"
    )]
    Pattern {
        /// Where.
        at: String,
        /// The pattern, or how it begins.
        pattern: String,
        /// What is wrong with it.
        why: String,
    },
    /// Too many patterns to keep ready.
    #[error("the schema holds more than {MAX_PATTERNS} patterns")]
    TooManyPatterns,
    /// A keyword holds something that it may not hold.
    #[error("at `#{at}` the schema is not well formed: {why}")]
    Malformed {
        /// Where.
        at: String,
        /// Why.
        why: String,
    },
}

impl SchemaFault {
    /// Whether the schema is too much for whoever reads it, and not merely wrong.
    pub fn is_heavy(&self) -> bool {
        matches!(
            self,
            Self::TooLarge(_)
                | Self::TooDeep(_)
                | Self::TooMany
                | Self::TooMuchWork(_)
                | Self::Chain(_)
                | Self::Loop(_)
                | Self::TooManyPatterns
        )
    }

    /// Whether something would have to be fetched to use the schema.
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote { .. } | Self::RemoteDialect { .. })
    }
}

/// What becomes of a tool or an event whose schema is at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFault {
    /// Served without checks, whatever the fault: the payload of an event.
    Permit,
    /// Served without checks, but refused where something would have to be fetched: a tool.
    #[default]
    RefuseRemote,
    /// Refused.
    Refuse,
}

/// What is quoted of a schema in a fault: its beginning, and nothing that a terminal would act on.
pub(crate) fn quoted(text: &str) -> String {
    let shown = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let mut told: String = text.chars().take(120).map(shown).collect();
    if told.len() < text.len() && text.chars().nth(120).is_some() {
        told.push('…');
    }
    told
}
