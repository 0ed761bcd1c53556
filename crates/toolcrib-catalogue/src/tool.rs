//! A tool, as its source describes it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::Json;

/// The definition of one tool. What we act on is read out; everything else stays in [`Tool::raw`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// What its source calls it. Clients see another name, see [`crate::Entry::name`].
    pub name: String,
    /// A name for people.
    pub title: Option<String>,
    /// What it does.
    pub description: Option<String>,
    /// The schema of its arguments, if that is an object.
    pub input_schema: Option<Json>,
    /// What arguments are held against, where the source knows more of that than `input_schema` says.
    pub checks: Option<Json>,
    /// The schema of its structured result, if that is an object.
    pub output_schema: Option<Json>,
    /// What its source claims of it.
    pub annotations: Annotations,
    /// The definition as it was given.
    pub raw: Json,
}

/// What a source claims of a tool. Claims, not facts: they never decide access.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Annotations {
    /// It changes nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    /// It may destroy something.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub destructive_hint: Option<bool>,
    /// Doing it twice is doing it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
    /// It reaches the world outside.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_world_hint: Option<bool>,
}

/// Why something in a list of tools is not a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ToolFault {
    /// Tools are objects.
    #[error("a tool must be an object")]
    NotAnObject,
    /// Tools have names.
    #[error("a tool needs a `name` that is a non-empty string")]
    NoName,
}

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    name: Option<&'a RawValue>,
    #[serde(borrow)]
    title: Option<&'a RawValue>,
    #[serde(borrow)]
    description: Option<&'a RawValue>,
    #[serde(borrow, rename = "inputSchema")]
    input_schema: Option<&'a RawValue>,
    #[serde(borrow, rename = "outputSchema")]
    output_schema: Option<&'a RawValue>,
    #[serde(borrow)]
    annotations: Option<&'a RawValue>,
}

impl Tool {
    /// Reads a definition. Only a missing name makes it unusable; another member of the wrong type
    /// counts as absent and still stands in [`Tool::raw`].
    ///
    /// ```
    /// use toolcrib_catalogue::{Json, Tool};
    ///
    /// let tool = Tool::read(Json::parse(r#"{"name": "search", "icons": []}"#)?)?;
    /// assert_eq!(tool.name, "search");
    /// assert_eq!(tool.description, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(raw: Json) -> Result<Self, ToolFault> {
        if !raw.is_object() {
            return Err(ToolFault::NotAnObject);
        }
        let written: Written<'_> = raw.read().ok().ok_or(ToolFault::NoName)?;
        let name = written.name.and_then(text).filter(|it| !it.is_empty());
        let object = |it: &RawValue| Some(raw.piece(it)).filter(Json::is_object);
        Ok(Self {
            name: name.ok_or(ToolFault::NoName)?,
            title: written.title.and_then(text),
            description: written.description.and_then(text),
            input_schema: written.input_schema.and_then(object),
            checks: None,
            output_schema: written.output_schema.and_then(object),
            annotations: written
                .annotations
                .and_then(|it| serde_json::from_str(it.get()).ok())
                .unwrap_or_default(),
            raw,
        })
    }
}

fn text(raw: &RawValue) -> Option<String> {
    serde_json::from_str(raw.get()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        let read = Tool::read(Json::parse(raw.to_owned()).unwrap());
        let shown = match read {
            Ok(it) => format!("{} {:?} {:?}", it.name, it.description, it.input_schema),
            Err(fault) => fault.to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn only_a_missing_name_makes_a_tool_unusable() {
        check(r#"{"name":"a","description":"d","inputSchema":{}}"#, r#"a Some("d") Some({})"#);
        check(r#"{"name":"a","description":7,"inputSchema":[1]}"#, "a None None");
        check(r#"{"name":""}"#, "a tool needs a `name` that is a non-empty string");
        check(r#"{"name":null}"#, "a tool needs a `name` that is a non-empty string");
        check("7", "a tool must be an object");
    }

    #[test]
    fn annotations_of_the_wrong_type_count_as_absent() {
        let raw = r#"{"name":"a","annotations":{"readOnlyHint":"yes"}}"#;
        let tool = Tool::read(Json::parse(raw).unwrap()).unwrap();
        assert_eq!(tool.annotations, Annotations::default());
        assert_eq!(tool.raw.as_str(), raw);
    }
}
