//! How lists are written: definitions as their sources gave them, but for names and what clients choke on.

use bytes::Bytes;
use serde_json::Value;
use toolcrib_catalogue::{Entry, Json, Resource};
use toolcrib_wire::json;

/// `"name":[…]`.
pub(super) fn list<T>(
    name: &str,
    items: impl Iterator<Item = T>,
    push: impl Fn(&mut Vec<u8>, T),
) -> Bytes {
    let mut text = format!("\"{name}\":[").into_bytes();
    let begin = text.len();
    for item in items {
        if begin < text.len() {
            text.push(b',');
        }
        push(&mut text, item);
    }
    text.push(b']');
    text.into()
}

pub(super) fn push_raw(text: &mut Vec<u8>, resource: &Resource) {
    text.extend_from_slice(resource.raw.as_bytes());
}

/// Appends the definition of a prompt, under its public name.
pub(super) fn push_named(text: &mut Vec<u8>, entry: &Entry) {
    let raw = entry.tool.raw.as_bytes();
    let Some(at) = json::member(raw, "name") else { return };
    text.extend_from_slice(&raw[..at.start]);
    push_json(text, &entry.name);
    text.extend_from_slice(&raw[at.end..]);
}

/// Appends the definition of a tool as its source gave it, under its public name. Two things are
/// mended, since clients choke on them: a missing or unusable `inputSchema`, and one without a type. Where a
/// result may be kept instead of sent, no structure is promised: clients refuse one that lacks it.
pub(super) fn push_tool(text: &mut Vec<u8>, entry: &Entry, whole: bool) {
    let raw = entry.tool.raw.as_bytes();
    text.push(b'{');
    let mut has_schema = false;
    for (key, range) in json::members(raw) {
        if !whole && key == "outputSchema" {
            continue;
        }
        if text.last() != Some(&b'{') {
            text.push(b',');
        }
        push_json(text, &key);
        text.push(b':');
        match &*key {
            "name" => push_json(text, &entry.name),
            "inputSchema" => {
                has_schema = true;
                push_schema(text, entry.tool.input_schema.as_ref());
            }
            _ => text.extend_from_slice(&raw[range]),
        }
    }
    if !has_schema {
        text.extend_from_slice(br#","inputSchema":"#);
        push_schema(text, None);
    }
    text.push(b'}');
}

fn push_schema(text: &mut Vec<u8>, schema: Option<&Json>) {
    let Some(schema) = schema else {
        text.extend_from_slice(br#"{"type":"object"}"#);
        return;
    };
    let raw = schema.as_bytes();
    if json::member(raw, "type").is_some() {
        text.extend_from_slice(raw);
        return;
    }
    text.extend_from_slice(br#"{"type":"object""#);
    let rest = raw[1..].trim_ascii_start();
    text.extend_from_slice(if rest == b"}" { b"" } else { b"," });
    text.extend_from_slice(rest);
}

fn push_json(text: &mut Vec<u8>, value: &str) {
    text.extend_from_slice(Value::from(value).to_string().as_bytes());
}
