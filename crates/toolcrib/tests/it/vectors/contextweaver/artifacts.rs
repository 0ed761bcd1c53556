//! Looking into artifacts: the pieces that selectors give, and the views that are offered.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use toolcrib_context::{
    ArtifactRef, DrilldownError,
    artifacts::{ArtifactId, Limits, New, Store},
    drilldown, generate_views,
};

use super::Verdict;
use crate::kit::Folder;

/// What a row comes to.
pub(super) fn verdict(row: &Value) -> Verdict {
    match (row["group"].as_str().unwrap(), row["fn"].as_str().unwrap()) {
        ("views", _) => views(row),
        (_, name) if name.ends_with(":missing") => missing(row),
        _ => piece(row),
    }
}

fn same(ours: &Value, original: &Value) -> Verdict {
    if ours == original { Verdict::Pass } else { Verdict::Other(ours.to_string()) }
}

/// Bytes are given as text, or in base64.
fn bytes(value: &Value) -> Vec<u8> {
    match value["b64"].as_str() {
        Some(text) => BASE64_STANDARD.decode(text).unwrap(),
        None => value.as_str().unwrap().as_bytes().to_vec(),
    }
}

fn piece(row: &Value) -> Verdict {
    let content = bytes(&row["input"]["content"]);
    let content = String::from_utf8_lossy(&content);
    let ours = match row["input"]["selector"].as_object() {
        Some(selector) => drilldown(&content, selector),
        None => Err(DrilldownError::Value("type", "a member of an object")),
    };
    match (ours, row["error"]["code"].as_str()) {
        (Ok(ours), None) if row.get("output").is_some() => same(&ours.into(), &row["output"]),
        (Err(DrilldownError::Unknown(_)), Some("CW_ERROR")) => Verdict::Pass,
        // The original dies of an error of Python's: a typed one, or a text.
        (_, None) if row.get("output").is_none() => Verdict::Class("no-python-errors", Ok(())),
        (ours, _) => Verdict::Other(format!("{ours:?}")),
    }
}

/// An id that nothing is stored under, be it one of ours or not.
fn missing(row: &Value) -> Verdict {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
    let there = store.put(New::default(), b"x").unwrap();
    assert_eq!(store.find(None, &there.id), Some(there.clone()));
    let asked = row["input"]["handle"].as_str().unwrap().parse::<ArtifactId>().ok();
    let found = asked.and_then(|id| store.find(None, &id));
    let other = store.find(None, &ArtifactId::random().unwrap());
    let none = found.is_none() && other.is_none();
    if none && row["error"]["code"] == "CW_ARTIFACT_NOT_FOUND" {
        Verdict::Pass
    } else {
        Verdict::Other(format!("{found:?} {other:?}"))
    }
}

fn views(row: &Value) -> Verdict {
    let content = bytes(&row["input"]["bytes"]);
    let media_type = row["input"]["media_type"].as_str().unwrap().to_owned();
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
    let handle = row["input"]["handle"].as_str().unwrap_or("h").to_owned();
    let stored = store.put(New { handle, media_type, ..New::default() }, &content).unwrap();
    let reference: ArtifactRef = stored.reference();
    same(&json!(generate_views(&reference, &content)), &row["output"])
}
