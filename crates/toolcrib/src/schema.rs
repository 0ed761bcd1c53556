//! What may stand in `network.yaml`, as a JSON Schema: for editors, and for the reference.
//!
//! It is made from the types that read the file, so it knows exactly their keys. What a type cannot say (that a text is
//! a time, or one of three words) the functions here say; tests hold every word, default and example against the reader.

use schemars::{JsonSchema, Schema, SchemaGenerator, generate::SchemaSettings, json_schema};
use serde_json::{Map, Value};

/// A time: `30s`, `12h`, `7d`; a bare number is seconds.
pub const TIME: &str = "^ *[0-9.]+ *(ms|s|m|h|d|w)? *$";

/// A time of at most a day.
pub const SHORT_TIME: &str = "^[0-9.]+ *(ms|s|m|h)?$";

/// An amount of bytes: `16KB`, `1GB`; a bare number is bytes.
pub const SIZE: &str = "^ *[0-9.]+ *([kKmMgG]?[bB])? *$";

/// An amount of bytes, or everything.
pub const INLINE: &str = "^ *([0-9.]+ *([kKmMgG]?[bB])?|everything) *$";

/// Calls in a time: `10/s`, `100/m burst 20`.
pub const RATE: &str = "^ *[0-9]+ */ *[smh] *(burst *[0-9]+ *)?$";

/// The schema of a file that is read as a `T`.
pub(crate) fn schema_of<T: JsonSchema>(title: &str, about: &str) -> Value {
    // Editors know this draft best; and where nothing is referred to, what stands beside a `$ref` cannot be passed over.
    let mut settings = SchemaSettings::draft07();
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    let mut whole = Map::new();
    // Whoever opens the file reads first what it is.
    whole.insert("$schema".to_owned(), schema["$schema"].take());
    whole.insert("title".to_owned(), title.into());
    whole.insert("description".to_owned(), about.into());
    let rest = schema.as_object_mut().map(std::mem::take).unwrap_or_default();
    whole.extend(
        rest.into_iter()
            .filter(|(key, _)| !["$schema", "title", "description"].contains(&key.as_str())),
    );
    whole.into()
}

/// Takes out what only Rust knows of, and says defaults as they would be written (`usual`).
fn tidy(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(tidy);
            members.retain(|key, value| key != "default" || !(value.is_null() || is_empty(value)));
            if members.get("type").is_some() {
                members.remove("format");
            }
            if let Some(usual) = members.remove("usual") {
                members.insert("default".to_owned(), usual);
            }
            flatten(members);
        }
        Value::Array(items) => items.iter_mut().for_each(tidy),
        _ => {}
    }
}

/// A default that says nothing.
fn is_empty(value: &Value) -> bool {
    value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty)
}

/// One choice instead of a choice among choices.
fn flatten(members: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = members.get_mut("anyOf") else { return };
    let inner = |it: Value| match it {
        Value::Object(mut only) if only.len() == 1 && only.contains_key("anyOf") => {
            match only.remove("anyOf") {
                Some(Value::Array(inside)) => inside,
                other => other.into_iter().collect(),
            }
        }
        other => vec![other],
    };
    *choices = std::mem::take(choices).into_iter().flat_map(inner).collect();
}

/// Lets an object have keys that are passed over without a word.
pub(crate) fn passed_over(schema: &mut Schema, keys: &[&str]) {
    let properties = schema.ensure_object().entry("properties");
    let Some(properties) = properties.or_insert(Value::Object(Map::new())).as_object_mut() else {
        return;
    };
    for key in keys {
        let about = json_schema!({ "description": "Passed over: toolcrib has no use for it." });
        properties.insert((*key).to_owned(), about.to_value());
    }
}

pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "number", "null"], "pattern": TIME, "minimum": 0 })
}

pub(crate) fn short_time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "number", "null"], "pattern": SHORT_TIME, "exclusiveMinimum": 0 })
}

pub(crate) fn size(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "number", "null"], "pattern": SIZE, "minimum": 0 })
}

pub(crate) fn inline(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "number", "null"], "pattern": INLINE, "minimum": 1024 })
}

pub(crate) fn inlines(_: &mut SchemaGenerator) -> Schema {
    let inline = json_schema!({ "type": ["string", "number"], "pattern": INLINE, "minimum": 1024 });
    json_schema!({ "type": "object", "additionalProperties": inline })
}

pub(crate) fn rate(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "null"], "pattern": RATE })
}

pub(crate) fn calls(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["integer", "null"], "minimum": 1 })
}

pub(crate) fn on_off(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["on", "off", true, false, null] })
}

pub(crate) fn off_warn_strict(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["off", "warn", "strict", false, null] })
}

pub(crate) fn off_warn_hold(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["off", "warn", "hold", false, null] })
}

pub(crate) fn off_warn_hide(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["off", "warn", "hide", false, null] })
}

pub(crate) fn permit_refuse(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["permit", "refuse", null] })
}

pub(crate) fn on_strict_off(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["on", "strict", "off", true, false] })
}

pub(crate) fn view(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["all", "search", "auto", null] })
}

pub(crate) fn name_style(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["prefixed", "bare", null] })
}

pub(crate) fn seed_full(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "enum": ["seed", "full", null] })
}
