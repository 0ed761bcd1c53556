//! `format`: email addresses, dates, addresses of all kinds.
//!
//! What each of them means is left to the `jsonschema` crate, which follows the RFCs and passes the
//! official tests; here it gets a schema that says nothing but the format.

use std::sync::OnceLock;

use hashbrown::HashMap;
use serde_json::{Value, json};

use crate::schema::Dialect;

const NAMES: [&str; 18] = [
    "date",
    "date-time",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "uri-template",
    "iri",
    "iri-reference",
    "uuid",
    "json-pointer",
    "relative-json-pointer",
];

/// One format, ready to be asked.
#[derive(Clone, Copy)]
pub(crate) struct Format {
    pub(crate) name: &'static str,
    check: Option<&'static jsonschema::Validator>,
}

impl Format {
    /// `None` for a format that nobody knows in `dialect`: it then says nothing.
    pub(crate) fn named(name: &str, dialect: Dialect) -> Option<Self> {
        static OLD: OnceLock<HashMap<&'static str, jsonschema::Validator>> = OnceLock::new();
        static NEW: OnceLock<HashMap<&'static str, jsonschema::Validator>> = OnceLock::new();
        if name == "regex" {
            return Some(Self { name: "regex", check: None });
        }
        let known = if dialect <= Dialect::Draft7 {
            OLD.get_or_init(|| all(jsonschema::Draft::Draft7))
        } else {
            NEW.get_or_init(|| all(jsonschema::Draft::Draft202012))
        };
        let (name, check) = known.get_key_value(name)?;
        Some(Self { name, check: Some(check) })
    }

    /// The longest text that can be of it, where there is one: what reads host names takes its time.
    fn longest(self) -> usize {
        match self.name {
            "hostname" | "idn-hostname" | "email" | "idn-email" => 2048,
            "regex" => 16 * 1024,
            _ => usize::MAX,
        }
    }

    /// Steps that looking at a text takes.
    pub(crate) fn cost(self, text: &str) -> usize {
        match text.len() {
            long if self.longest() < long => 1,
            length if self.longest() == usize::MAX => length / 4,
            length => length * 4,
        }
    }

    pub(crate) fn fits(self, text: &str) -> bool {
        if self.longest() < text.len() {
            return false;
        }
        match self.check {
            Some(check) => check.is_valid(&Value::String(text.to_owned())),
            // Only its grammar is looked at: nothing that a caller sends is ever compiled.
            None => jsonschema_regex::is_valid_ecma_regex(text),
        }
    }

    /// What a person would call it.
    pub(crate) fn told(self) -> String {
        let said = match self.name {
            "date" => "a date like 2026-01-31",
            "date-time" => "a date and time like 2026-01-31T09:30:00Z",
            "time" => "a time like 09:30:00Z",
            "duration" => "a duration like P1DT2H",
            "email" | "idn-email" => "an email address",
            "hostname" | "idn-hostname" => "a host name",
            "ipv4" => "an IPv4 address",
            "ipv6" => "an IPv6 address",
            "uri" | "iri" => "a whole URI like https://example.com/a",
            "uuid" => "a UUID",
            "regex" => "a regular expression",
            other => return format!("of the format {other}"),
        };
        said.to_owned()
    }
}

fn all(draft: jsonschema::Draft) -> HashMap<&'static str, jsonschema::Validator> {
    let old = draft == jsonschema::Draft::Draft7;
    let exists = |name: &str| !(old && matches!(name, "uuid" | "duration"));
    let build = |name: &'static str| {
        let options = jsonschema::options().with_draft(draft).should_validate_formats(true);
        options.build(&json!({ "format": name })).ok().map(|it| (name, it))
    };
    NAMES.into_iter().filter(|it| exists(it)).filter_map(build).collect()
}
