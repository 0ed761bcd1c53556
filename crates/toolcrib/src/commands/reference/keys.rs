//! The page of a file of the workspace, from its schema.

use std::fmt::Write;

use serde_json::Value;
use toolcrib::{INLINE, RATE, SHORT_TIME, SIZE, TIME};

use super::{MADE, code, table};

/// What a page says before its keys.
pub(super) struct About {
    pub(super) title: &'static str,
    pub(super) text: &'static str,
}

pub(super) fn page(about: &About, schema: &Value) -> String {
    let About { title, text } = about;
    let times = "A *time* is a number of seconds, or has a unit: `500ms`, `30s`, `2m`, `12h`, and where it may be longer than a \
                 day `7d`, `2w`. A *size* is a number of bytes, or has a unit: `16KB`, `1GB` (1 KB is 1024 bytes). A *rate* is \
                 calls per second, minute or hour: `10/s`, `100/m`, `10/s burst 20`. What takes *keys* has a section below.";
    let mut page = format!("{MADE}\n# {title}\n\n{text}\n\n{times}\n");
    section("", schema, &mut page);
    page
}

/// An object: its keys, and then those of the objects in it.
fn section(place: &str, schema: &Value, page: &mut String) {
    let Some(properties) = schema["properties"].as_object() else { return };
    let title = if place.is_empty() { "The file" } else { place };
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let is_required = |key: &str| required.iter().any(|it| it == key);
    let rows = properties.iter().map(|(key, it)| {
        let default = match &it["default"] {
            Value::Null if is_required(key) => "must be there".to_owned(),
            Value::Null => String::new(),
            Value::String(text) => code(text),
            other => code(other),
        };
        let about = it["description"].as_str().unwrap_or_default().replace('\n', " ");
        vec![code(key), takes(it), default, about]
    });
    let keys = table(&["key", "takes", "default", "means"], rows);
    // Other names for what was told are told as such.
    if page.contains(&keys) {
        write!(page, "\n## {title}\n\nThe same keys as above.\n").ok();
        return;
    }
    write!(page, "\n## {title}\n\n{keys}").ok();
    for (key, schema) in properties {
        let place = if place.is_empty() { key.clone() } else { format!("{place}: {key}") };
        for (more, inside) in objects(schema) {
            section(&format!("{place}{more}"), inside, page);
        }
    }
}

/// The objects with keys of their own that may stand at a key, and what stands between.
fn objects(schema: &Value) -> Vec<(&'static str, &Value)> {
    let mut found = Vec::new();
    if !schema.is_object() {
        return found;
    }
    if schema["properties"].is_object() {
        found.push(("", schema));
    }
    let within = [(": NAME", &schema["additionalProperties"]), (": each", &schema["items"])];
    for (more, inside) in within {
        found.extend(objects(inside).into_iter().map(|(_, it)| (more, it)));
    }
    let choices = schema["anyOf"].as_array().into_iter().flatten();
    found.extend(choices.flat_map(objects));
    found
}

/// What may stand at a key, in words.
fn takes(schema: &Value) -> String {
    if let Some(words) = schema["enum"].as_array() {
        let words = words.iter().filter_map(Value::as_str);
        return words.map(code).collect::<Vec<_>>().join(", ");
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let mut words: Vec<String> =
            choices.iter().map(takes).filter(|it| !it.is_empty()).collect();
        words.dedup();
        return words.join(", or ");
    }
    let patterns = [
        (SHORT_TIME, "time"),
        (TIME, "time"),
        (SIZE, "size"),
        (INLINE, "size, `everything`"),
        (RATE, "rate"),
    ];
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    if let Some((_, word)) = patterns.iter().find(|(it, _)| pattern.starts_with(it)) {
        return (*word).to_owned();
    }
    // A text out of a variable, which goes without saying.
    if pattern.starts_with("\\$") {
        return String::new();
    }
    match kind(schema) {
        "array" => match takes(&schema["items"]).as_str() {
            "text" | "" => "list of texts".to_owned(),
            "keys" => "list, each with keys".to_owned(),
            other => format!("list: {other}"),
        },
        "object" => object(schema),
        "string" => "text".to_owned(),
        "boolean" => "`true`, `false`".to_owned(),
        "integer" | "number" => number(schema),
        _ => String::new(),
    }
}

fn object(schema: &Value) -> String {
    if schema["properties"].is_object() {
        return "keys".to_owned();
    }
    match takes(&schema["additionalProperties"]).as_str() {
        "" => "anything".to_owned(),
        "text" => "texts, by name".to_owned(),
        other => format!("by name: {other}"),
    }
}

fn number(schema: &Value) -> String {
    match (schema["minimum"].as_i64(), schema["maximum"].as_i64()) {
        (Some(least), Some(most)) => format!("number from {least} to {most}"),
        _ => "number".to_owned(),
    }
}

/// The first type that is not nothing.
fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(word) if word != "null" => word,
        Value::Array(words) => {
            let mut words = words.iter().filter_map(Value::as_str);
            words.find(|it| *it != "null").unwrap_or_default()
        }
        _ => "",
    }
}
