//! The adapter: namespaces, tools, results, sessions.
//!
//! Where the original dies of a Python error, ours must say something sensible; where it loses something, ours
//! must keep it. Each such difference is a class, and all else in the row must be as the original has it.

use base64::{Engine, prelude::BASE64_STANDARD};
use serde_json::{Map, Value, json};
use toolcrib_context::{
    Binaries, SelectableItem, SessionError, SessionLimits, fingerprint, infer_namespace,
    load_mcp_session_jsonl, mcp_result_to_envelope, mcp_tool_to_selectable, read_session,
};

use super::Verdict;

/// What a row comes to.
pub(super) fn verdict(row: &Value) -> Verdict {
    let input = &row["input"];
    match row["group"].as_str().unwrap() {
        "namespace" => same(&infer_namespace(input.as_str().unwrap()).into(), &row["output"]),
        "hash8" => {
            let schema = input[1].as_object().cloned().unwrap_or_default();
            same(&fingerprint(input[0].as_str().unwrap(), &schema).into(), &row["output"])
        }
        "tool" => tool(row),
        "result" => result(row),
        _ => session(row),
    }
}

fn same(ours: &Value, original: &Value) -> Verdict {
    if ours == original { Verdict::Pass } else { Verdict::Other(ours.to_string()) }
}

/// Whether the original let an error of Python's escape instead of one of its own.
fn died(row: &Value) -> bool {
    row["error"]["code"].is_null()
}

fn held(what: bool, ours: impl std::fmt::Debug) -> Result<(), String> {
    if what { Ok(()) } else { Err(format!("{ours:?}")) }
}

fn tool(row: &Value) -> Verdict {
    let definition = &row["input"];
    let ours = mcp_tool_to_selectable(definition);
    match (row.get("output"), ours) {
        (Some(original), Ok(item)) => same(&shown(&item), &without_extras(original)),
        (Some(_), Err(error)) if !definition["name"].is_string() => {
            Verdict::Class("names-are-texts", held(error.to_string().contains("name"), error))
        }
        (Some(_), Err(error)) => Verdict::Other(error.to_string()),
        (None, Err(_)) => Verdict::Pass,
        (None, Ok(item)) => {
            let class = if died(row) { "no-python-errors" } else { "every-tool-is-taken" };
            Verdict::Class(class, held(is_sensible(definition, &item), item))
        }
    }
}

/// The members of the original, under its id: with a version, or with the fingerprint.
fn shown(item: &SelectableItem) -> Value {
    json!({
        "id": item.full_id(), "kind": item.kind, "name": item.name, "description": item.description,
        "tags": item.tags, "namespace": item.namespace, "args_schema": item.args_schema,
        "output_schema": item.output_schema, "side_effects": item.side_effects,
        "cost_hint": item.cost_hint.to_string(), "metadata": item.metadata,
    })
}

fn without_extras(original: &Value) -> Value {
    let mut original = original.as_object().unwrap().clone();
    assert_eq!(original.remove("examples"), Some(json!([])));
    assert_eq!(original.remove("constraints"), Some(json!({})));
    let cost = original["cost_hint"].as_f64().unwrap();
    original.insert("cost_hint".to_owned(), cost.to_string().into());
    Value::Object(original)
}

/// All that can be used of the definition is there; the rest counts as absent.
fn is_sensible(definition: &Value, item: &SelectableItem) -> bool {
    let name = definition["name"].as_str().unwrap();
    let (namespace, own) = item.id.split_once(':').unwrap();
    let object = |key: &str| definition[key].as_object().cloned().unwrap_or_default();
    let mut claims = object("annotations");
    claims.remove("costHint");
    item.name == name
        && namespace == infer_namespace(name)
        && !own.is_empty()
        && name.ends_with(own)
        && item.description == definition["description"].as_str().unwrap_or_default()
        && item.args_schema == object("inputSchema")
        && item.metadata == claims
        && item.tags.contains(&"mcp".to_owned())
}

fn result(row: &Value) -> Verdict {
    let (input, tool) = (&row["input"]["result"], row["input"]["tool_name"].as_str().unwrap());
    let (envelope, binaries, full_text) = mcp_result_to_envelope(input, tool);
    let Some(original) = row.get("output") else {
        let texts = plain_texts(&input["content"]);
        let sensible = texts.iter().all(|it| full_text.contains(it))
            && full_text.starts_with(&envelope.summary)
            && (envelope.status == toolcrib_context::Status::Error) == (input["isError"] == true)
            && envelope.artifacts.len() == binaries.len();
        return Verdict::Class("no-python-errors", held(sensible && died(row), envelope));
    };
    let order: Vec<&String> = binaries.keys().collect();
    let mut ours = json!({ "envelope": envelope, "binaries": shown_binaries(&binaries),
        "binaries_order": order, "full_text": full_text });
    for artifact in ours["envelope"]["artifacts"].as_array_mut().unwrap() {
        assert_eq!(artifact.as_object_mut().unwrap().remove("content_hash"), Some(Value::Null));
    }
    if ours == *original {
        return Verdict::Pass;
    }
    let shown = ours.to_string();
    let classes = [
        kept_blobs(&mut ours, original, input),
        flagged(&mut ours, input),
        absent_texts(&mut ours, original),
    ];
    match classes.into_iter().flatten().next() {
        Some(class) if ours == *original => Verdict::Class(class, Ok(())),
        _ => Verdict::Other(shown),
    }
}

/// The texts of `content`, however it is written.
fn plain_texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(it) => vec![it.clone()],
        Value::Array(parts) => parts.iter().flat_map(plain_texts).collect(),
        Value::Object(part) => match part.get("text") {
            Some(Value::Number(it)) => vec![it.to_string()],
            text => text.map(plain_texts).unwrap_or_default(),
        },
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

fn shown_binaries(binaries: &Binaries) -> Value {
    let shown = binaries.iter().map(|(handle, it)| {
        let bytes = json!({ "b64": BASE64_STANDARD.encode(&it.bytes) });
        let shown = json!({ "bytes": bytes, "media_type": it.media_type, "label": it.label });
        (handle.clone(), shown)
    });
    Value::Object(shown.collect())
}

/// What is not base64 is named, and was kept as it came.
fn flagged(ours: &mut Value, input: &Value) -> Option<&'static str> {
    let provenance = ours["envelope"]["provenance"].as_object_mut()?;
    let handles = provenance.remove("not_base64")?;
    for handle in handles.as_array().unwrap() {
        let handle = handle.as_str().unwrap();
        let index: usize = handle.rsplit(':').next().unwrap().parse().unwrap_or(usize::MAX);
        let data = match &input["content"][index]["data"] {
            Value::Null => continue,
            Value::String(data) => data.clone(),
            other => other.to_string(),
        };
        assert_eq!(ours["binaries"][handle]["bytes"]["b64"], BASE64_STANDARD.encode(data));
    }
    Some("bad-base64-is-flagged")
}

/// The original keeps nothing of a blob. What it has is put in the place of ours, once that is seen to be the blob.
fn kept_blobs(ours: &mut Value, original: &Value, input: &Value) -> Option<&'static str> {
    let mut class = None;
    for (index, part) in input["content"].as_array()?.iter().enumerate() {
        let Some(blob) = part["resource"]["blob"].as_str().filter(|it| !it.is_empty()) else {
            continue;
        };
        let text = part["resource"]["text"].as_str().is_some_and(|it| !it.is_empty());
        let end = format!(":resource:{index}{}", if text { ":blob" } else { "" });
        let artifacts = ours["envelope"]["artifacts"].as_array().unwrap();
        let at = artifacts.iter().position(|it| it["handle"].as_str().unwrap().ends_with(&end))?;
        let handle = artifacts[at]["handle"].as_str().unwrap().to_owned();
        let kept = ours["binaries"][&handle]["bytes"]["b64"].as_str().unwrap();
        assert!([blob, &BASE64_STANDARD.encode(blob)].contains(&kept), "{kept} of {blob}");
        if text {
            ours["envelope"]["artifacts"].as_array_mut().unwrap().remove(at);
            ours["binaries"].as_object_mut().unwrap().remove(&handle);
            ours["binaries_order"].as_array_mut().unwrap().retain(|it| *it != handle);
        } else {
            ours["binaries"][&handle]["bytes"] = original["binaries"][&handle]["bytes"].clone();
            ours["envelope"]["artifacts"][at]["size_bytes"] =
                original["envelope"]["artifacts"][at]["size_bytes"].clone();
        }
        class = Some("blobs-are-kept");
    }
    class
}

/// A media type or a label that is `null`, empty or no text counts as absent.
fn absent_texts(ours: &mut Value, original: &Value) -> Option<&'static str> {
    let mut class = None;
    let mut put = |ours: &mut Value, original: &Value| {
        for key in ["media_type", "label"] {
            let says_nothing = original[key].as_str().is_none_or(str::is_empty);
            if says_nothing && ours[key].as_str().is_some_and(|it| !it.is_empty()) {
                ours[key] = original[key].clone();
                class = Some("nothing-is-no-text");
            }
        }
    };
    let artifacts = ours["envelope"]["artifacts"].as_array_mut().unwrap();
    for (artifact, original) in
        artifacts.iter_mut().zip(original["envelope"]["artifacts"].as_array()?)
    {
        put(artifact, original);
    }
    for (handle, binary) in ours["binaries"].as_object_mut().unwrap() {
        put(binary, &original["binaries"][handle]);
    }
    class
}

fn session(row: &Value) -> Verdict {
    let bytes = match &row["input"] {
        Value::String(text) => Some(text.clone().into_bytes()),
        coded => coded["b64"].as_str().map(|it| BASE64_STANDARD.decode(it).unwrap()),
    };
    let read = |bytes: &[u8]| read_session(bytes, &SessionLimits::default());
    let ours = match &bytes {
        Some(bytes) => read(bytes),
        None => load_mcp_session_jsonl("there/is/no/such/file.jsonl"),
    };
    let text = String::from_utf8_lossy(bytes.as_deref().unwrap_or_default()).into_owned();
    let ours = ours.map(|it| serde_json::to_value(it).unwrap());
    match (row.get("output"), ours) {
        (None, Err(_)) => Verdict::Pass,
        (Some(original), Ok(ours)) if ours == *original => Verdict::Pass,
        (Some(original), Ok(ours)) => more_was_kept(&text, &ours, original),
        (Some(_), Err(error)) => refused(&text, &error),
        (None, Ok(ours)) => {
            let items = ours.as_array().unwrap();
            if let Some(rest) = text.strip_prefix('\u{feff}') {
                let same = serde_json::to_value(read(rest.as_bytes()).unwrap()).unwrap() == ours;
                return Verdict::Class("no-mark-is-needed", held(same && !items.is_empty(), ours));
            }
            let separators = ['\u{85}', '\u{2028}', '\u{2029}'];
            if text.contains(separators) {
                let kept = items.iter().any(|it| it.to_string().contains(separators));
                return Verdict::Class("separators-are-text", held(kept, ours));
            }
            Verdict::Other(ours.to_string())
        }
    }
}

/// Ours reads no sense into what has none, where the original overlooks it.
fn refused(text: &str, error: &SessionError) -> Verdict {
    let labels = ["sensitivity", "artifact_ref"];
    match error {
        SessionError::NotJson { .. } => {
            let python = text.contains("NaN") || text.contains("Infinity");
            Verdict::Class("nan-is-not-json", held(python, error))
        }
        SessionError::BadMember { member, .. } if labels.contains(member) => {
            Verdict::Class("labels-are-kept", Ok(()))
        }
        _ => Verdict::Other(error.to_string()),
    }
}

/// What a line says and the original drops is there; all else is as the original has it.
fn more_was_kept(text: &str, ours: &Value, original: &Value) -> Verdict {
    let lines = text.split(['\n', '\r']).filter(|it| !it.trim().is_empty());
    let lines: Vec<Map<String, Value>> =
        lines.map(|it| serde_json::from_str(it).unwrap()).collect();
    let (items, originals) = (ours.as_array().unwrap(), original.as_array().unwrap());
    if lines.len() != items.len() || items.len() != originals.len() {
        return Verdict::Other(ours.to_string());
    }
    let mut class = None;
    for ((line, ours), original) in lines.iter().zip(items).zip(originals) {
        let (found, expected) = expected(line, ours, original);
        if *ours != expected {
            return Verdict::Other(ours.to_string());
        }
        class = class.or(found);
    }
    class.map_or_else(|| Verdict::Other(ours.to_string()), |it| Verdict::Class(it, Ok(())))
}

/// What ours makes of a line, from what the original makes of it.
fn expected(
    line: &Map<String, Value>,
    ours: &Value,
    original: &Value,
) -> (Option<&'static str>, Value) {
    let (mut class, mut item) = (None, original.clone());
    for key in ["id", "parent_id"] {
        if !item[key].is_string() && !item[key].is_null() {
            item[key] = item[key].to_string().into();
            class = Some("ids-are-texts");
        }
    }
    if item["id"].is_null() && ours["id"].as_str().unwrap().starts_with("mcp-line-") {
        item["id"] = ours["id"].clone();
        class = Some("ids-are-texts");
    }
    if item["token_estimate"].as_i64().is_some_and(|it| it < 0) {
        item["token_estimate"] = 0.into();
        class = Some("counts-are-not-negative");
    }
    if line.get("type") == Some(&"retrieved_doc".into()) {
        item["kind"] = "retrieved_doc".into();
        class = Some("kinds-are-kept");
    }
    if let Some(label) = line.get("sensitivity").filter(|it| !it.is_null()) {
        item["sensitivity"] = label.clone();
        class = Some("labels-are-kept");
    }
    if let Some(reference) = line.get("artifact_ref").and_then(Value::as_object) {
        let usual = json!({ "media_type": "application/octet-stream", "size_bytes": 0, "label": "", "content_hash": null });
        let mut whole = usual.as_object().unwrap().clone();
        whole.extend(reference.clone());
        item["artifact_ref"] = Value::Object(whole);
        class = Some("labels-are-kept");
    }
    let fields = [
        "id",
        "type",
        "text",
        "content",
        "token_estimate",
        "sensitivity",
        "metadata",
        "parent_id",
        "artifact_ref",
    ];
    let unknown = line.iter().filter(|(key, _)| !fields.contains(&key.as_str()));
    let metadata = item["metadata"].as_object_mut().unwrap();
    for (key, value) in unknown {
        metadata.entry(key).or_insert_with(|| value.clone());
        class = Some("members-are-kept");
    }
    (class, item)
}
