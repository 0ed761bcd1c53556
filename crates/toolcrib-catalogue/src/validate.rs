//! Values against schemas.

use std::fmt;

use serde_json::Value;

use crate::Json;

/// How many faults are told.
const TOLD: usize = 5;

/// A schema that values can be held against. It never looks at anything outside of itself.
pub struct Validator(jsonschema::Validator);

impl Validator {
    /// Reads a schema.
    ///
    /// ```
    /// use toolcrib_catalogue::{Json, Validator};
    ///
    /// let schema = Json::parse(r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#)?;
    /// let validator = Validator::new(&schema)?;
    /// assert_eq!(validator.faults(&serde_json::json!({ "n": 1 })), Vec::<String>::new());
    /// assert_eq!(validator.faults(&serde_json::json!({ "n": "x" })), ["/n: \"x\" is not of type \"integer\""]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(schema: &Json) -> Result<Self, String> {
        let schema: Value = schema.get().ok_or("it is not JSON")?;
        let read = jsonschema::options().build(&schema);
        read.map(Self).map_err(|error| {
            let place = error.instance_path().as_str();
            if place.is_empty() { error.to_string() } else { format!("{place}: {error}") }
        })
    }

    /// Whether nothing is wrong with a value.
    pub fn fits(&self, value: &Value) -> bool {
        self.0.is_valid(value)
    }

    /// What is wrong with a value: where, and why. Nothing where nothing is.
    pub fn faults(&self, value: &Value) -> Vec<String> {
        let told = |error: jsonschema::ValidationError<'_>| {
            let place = error.instance_path().to_string();
            let mut text = error.to_string();
            // A fault may quote the whole value.
            if let Some((end, _)) = text.char_indices().nth(200) {
                text.truncate(end);
                text.push('…');
            }
            if place.is_empty() { text } else { format!("{place}: {text}") }
        };
        self.0.iter_errors(value).take(TOLD).map(told).collect()
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Validator")
    }
}
