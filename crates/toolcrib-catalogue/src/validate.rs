//! Values against schemas: what a caller sends to a tool, and what a tool gives back.
//!
//! A schema is read once, behind a guard (`schema::guard`), and becomes a list of rules; a value is
//! read from the text that is sent on, and walks the rules under a budget. The walk is ours and not
//! the `jsonschema` crate's, which may take exponential time where a schema is about itself, cannot
//! be stopped, and tells faults in words for programmers. What is well formed as a schema, and what
//! an email address is, that crate still decides.

use std::fmt;

use serde_json::Value;

use crate::{
    Json,
    schema::{OnFault, SchemaFault},
};
use faults::{Path, Sink};
use given::{Given, Unreadable};
use plan::Plan;
use run::Run;

pub(crate) mod given;
pub(crate) mod number;
pub(crate) mod plan;
mod format;
mod dialect;
mod compile;
mod run;
mod objects;
mod told;
mod faults;
mod repair;

#[cfg(test)]
mod tests;

pub use faults::{Fault, Faults};

const ARGUMENTS: &str = "arguments";
const RESULT: &str = "result";

/// Whether `format` is checked, or only says something to people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Formats {
    /// A text that is not of its format does not fit.
    #[default]
    Asserted,
    /// Formats are not looked at.
    Annotated,
}

/// A schema that values can be held against. It never looks at anything outside of itself.
pub struct Validator(Plan);

/// A schema after the guard.
#[derive(Debug)]
pub enum Checked {
    /// Values are held against it.
    Strict(Validator),
    /// Values are not checked.
    Permissive(SchemaFault),
    /// Whatever the schema belongs to is not served.
    Refused(SchemaFault),
}

impl Checked {
    /// Reads a schema, and decides what becomes of one that is at fault.
    ///
    /// ```
    /// use toolcrib_catalogue::{Checked, Formats, Json, OnFault};
    ///
    /// let remote = Json::parse(r#"{"$ref":"https://example.com/a.json"}"#)?;
    /// let tool = Checked::read(&remote, Formats::Asserted, OnFault::RefuseRemote);
    /// assert!(matches!(tool, Checked::Refused(_)));
    /// let event = Checked::read(&remote, Formats::Asserted, OnFault::Permit);
    /// assert!(matches!(event, Checked::Permissive(_)));
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn read(schema: &Json, formats: Formats, on_fault: OnFault) -> Self {
        match (Validator::read(schema, formats), on_fault) {
            (Ok(validator), _) => Self::Strict(validator),
            (Err(fault), OnFault::Refuse) => Self::Refused(fault),
            (Err(fault), OnFault::RefuseRemote) if fault.is_remote() => Self::Refused(fault),
            (Err(fault), OnFault::RefuseRemote | OnFault::Permit) => Self::Permissive(fault),
        }
    }

    /// What is wrong with the schema, if anything.
    pub fn fault(&self) -> Option<&SchemaFault> {
        match self {
            Self::Strict(_) => None,
            Self::Permissive(fault) | Self::Refused(fault) => Some(fault),
        }
    }
}

impl Validator {
    /// Reads a schema, written in 2020-12 where it does not say otherwise.
    ///
    /// ```
    /// use toolcrib_catalogue::{Formats, Json, Validator};
    ///
    /// let schema = Json::parse(r#"{"properties":{"limit":{"type":"integer","maximum":100}},"required":["query"]}"#)?;
    /// let validator = Validator::read(&schema, Formats::Asserted)?;
    /// let faults = validator.check(&Json::parse(r#"{"limit":500}"#)?).unwrap_err();
    /// assert_eq!(
    ///     faults.to_string(),
    ///     "The arguments do not fit: `query` is missing (required); `limit` must be at most 100 (maximum), found 500"
    /// );
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(schema: &Json, formats: Formats) -> Result<Self, SchemaFault> {
        compile::compile(schema.as_str(), formats).map(Self)
    }

    /// Reads a schema whose formats are not looked at.
    pub fn new(schema: &Json) -> Result<Self, String> {
        Self::read(schema, Formats::Annotated).map_err(|fault| fault.to_string())
    }

    /// Patterns of the schema that are not checked, since they cannot be run in linear time.
    pub fn unchecked(&self) -> &[SchemaFault] {
        &self.0.unchecked
    }

    /// Whether the schema names this property of the value itself, in any of its parts.
    ///
    /// ```
    /// use toolcrib_catalogue::{Formats, Json, Validator};
    ///
    /// let schema = Json::parse(r#"{"allOf":[{"properties":{"limit":{}}}],"additionalProperties":{}}"#)?;
    /// let validator = Validator::read(&schema, Formats::Asserted)?;
    /// assert!(validator.declares("limit") && !validator.declares("offset"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn declares(&self, name: &str) -> bool {
        let mut seen = vec![false; self.0.rules.len()];
        let mut open = vec![0];
        while let Some(id) = open.pop() {
            let rule = self.0.rule(id);
            if std::mem::replace(&mut seen[id as usize], true) {
                continue;
            }
            if rule.objects.as_ref().is_some_and(|it| it.properties.contains_key(name)) {
                return true;
            }
            open.extend(rule.beside());
        }
        false
    }

    /// Holds the arguments of a call against the schema, as they are sent on.
    pub fn check(&self, arguments: &Json) -> Result<(), Faults> {
        self.check_text(arguments.as_str(), ARGUMENTS)
    }

    /// Holds the structured content of a result against the schema.
    pub fn check_output(&self, content: &Json) -> Result<(), Faults> {
        self.check_text(content.as_str(), RESULT)
    }

    fn check_text(&self, text: &str, subject: &'static str) -> Result<(), Faults> {
        match Given::parse(text) {
            Ok(value) => self.check_given(&value, subject),
            Err(Unreadable::TooMuch) => {
                Err(Faults::single(subject, "budget", Unreadable::TooMuch.to_string()))
            }
            Err(fault) => Err(Faults::single(subject, "json", fault.to_string())),
        }
    }

    fn check_given(&self, value: &Given<'_>, subject: &'static str) -> Result<(), Faults> {
        let mut run = Run::new(&self.0);
        let fits = run.eval(0, value, &Path::ROOT, &mut Sink::quiet(), None);
        if run.exhausted {
            return Err(Faults::single(
                subject,
                "budget",
                "it is too much to be checked".to_owned(),
            ));
        }
        if fits {
            return Ok(());
        }
        let mut sink = Sink::loud();
        Run::new(&self.0).eval(0, value, &Path::ROOT, &mut sink, None);
        if sink.faults.is_empty() {
            let said = "it does not fit the schema, and is too large to say where".to_owned();
            return Err(Faults::single(subject, "json", said));
        }
        Err(Faults { subject, list: sink.faults, more: sink.more, exhausted: false })
    }

    /// Whether nothing is wrong with a value.
    pub fn fits(&self, value: &Value) -> bool {
        let mut run = Run::new(&self.0);
        run.eval(0, &Given::of(value), &Path::ROOT, &mut Sink::quiet(), None) && !run.exhausted
    }

    /// What is wrong with a value: where, and why. Nothing where nothing is.
    pub fn faults(&self, value: &Value) -> Vec<String> {
        match self.check_given(&Given::of(value), RESULT) {
            Ok(()) => Vec::new(),
            Err(faults) => faults.list.iter().map(Fault::placed).collect(),
        }
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validator")
    }
}
