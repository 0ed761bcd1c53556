//! Envelopes of any result, sessions of any bytes.

use std::collections::HashSet;

use serde_json::{Value, json};
use toolcrib_context::{
    SessionLimits, mcp_result_to_envelope, mcp_tool_to_selectable, read_session, unique_ids,
    write_line,
};

use super::fuzz;

const WORDS: &[&str] = &[
    "content",
    "structuredContent",
    "isError",
    "type",
    "text",
    "image",
    "audio",
    "resource",
    "resource_link",
    "data",
    "mimeType",
    "uri",
    "name",
    "blob",
    "annotations",
    "audience",
    "priority",
    "part_index",
    "YWJj",
    "YQ==",
    "k: v",
    "a:b\n",
];

#[test]
fn fuzz_envelopes() {
    let seeds = [
        json!({ "content": [{ "type": "text", "text": "line: one\nline: two\u{2028}three" }], "isError": false }),
        json!({ "content": [
            { "type": "image", "data": "iVBORw0K", "mimeType": "image/png", "annotations": { "audience": ["user"] } },
            { "type": "audio", "data": "UklGRg==" },
            { "type": "resource", "resource": { "uri": "file:///a", "text": "a: b", "blob": "AAEC" } },
            { "type": "resource_link", "uri": "https://x/y", "name": "Y" },
        ] }),
        json!({ "structuredContent": { "z": 1, "a": [1, "x", { "k": "it's" }], "f": 1.5e300, "u": "é😀" } }),
        json!({ "content": [{ "type": "text", "text": "word ".repeat(200) }, { "text": "k: v\n".repeat(40) }] }),
    ];
    let seeds: Vec<Vec<u8>> = seeds.iter().map(|it| serde_json::to_vec(it).unwrap()).collect();
    fuzz("envelopes", &seeds, WORDS, |bytes| {
        let result = serde_json::from_slice(bytes).unwrap_or_else(|_| {
            let text = String::from_utf8_lossy(bytes);
            json!({ "content": [{ "text": text }, { "type": "image", "data": text }], "structuredContent": { text.clone(): text } })
        });
        check_envelope(&result);
    });
}

fn check_envelope(result: &Value) {
    let (envelope, binaries, text) = mcp_result_to_envelope(result, "t");
    assert!(envelope.summary.chars().count() <= 500);
    assert!(text.starts_with(&envelope.summary));
    assert!(text.len() == envelope.summary.len() || envelope.summary.chars().count() == 500);
    assert!(envelope.facts.len() <= 20);
    for fact in &envelope.facts {
        assert!(
            fact.contains(':') && fact.chars().count() < 200 && text.contains(fact),
            "{fact:?}"
        );
    }
    let handles: Vec<&String> = envelope.artifacts.iter().map(|it| &it.handle).collect();
    assert!(binaries.keys().eq(handles), "{:?}", binaries.keys());
    for (artifact, binary) in envelope.artifacts.iter().zip(binaries.values()) {
        assert_eq!(artifact.size_bytes, binary.bytes.len() as u64);
        assert!(!artifact.media_type.is_empty() && !artifact.label.is_empty());
    }
    // What is kept of a structure is the structure.
    if let Some(kept) = binaries.get("mcp:t:structured_content") {
        let kept: Value = serde_json::from_slice(&kept.bytes).unwrap();
        assert_eq!(alike(&kept), alike(&result["structuredContent"]));
    }
    for flagged in
        envelope.provenance.get("not_base64").into_iter().flat_map(|it| it.as_array().unwrap())
    {
        assert!(binaries.contains_key(flagged.as_str().unwrap()));
    }
    // Any value may also stand in a list of tools.
    let tools =
        [result, &result["content"], &json!({ "name": envelope.summary, "inputSchema": result })];
    let tools: Vec<_> = tools.into_iter().flat_map(mcp_tool_to_selectable).collect();
    let ids: HashSet<String> =
        unique_ids(&[tools.clone(), tools.clone()].concat()).into_iter().collect();
    assert_eq!(ids.len(), tools.len() * 2);
}

/// A value with its numbers as floats where they are fractions: `1.50` and `1.5` are one number.
fn alike(value: &Value) -> String {
    match value {
        Value::Number(it) if it.as_str().contains(['.', 'e', 'E']) => format!("{:?}", it.as_f64()),
        Value::Number(it) if it.as_str() == "-0" => "0".to_owned(),
        Value::Array(list) => list.iter().map(|it| alike(it) + ",").collect(),
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            members.sort_by_key(|(key, _)| *key);
            members.iter().map(|(key, it)| format!("{key:?}:{},", alike(it))).collect()
        }
        other => other.to_string(),
    }
}

const SESSION_WORDS: &[&str] = &[
    "id",
    "type",
    "text",
    "content",
    "parent_id",
    "token_estimate",
    "sensitivity",
    "artifact_ref",
    "metadata",
    "timestamp",
    "tool_name",
    "args",
    "handle",
    "user_turn",
    "tool_call",
    "tool_result",
    "retrieved_doc",
    "restricted",
    "12",
    "size_bytes",
];

#[test]
fn fuzz_sessions() {
    let session = concat!(
        r#"{"id": "u1", "type": "user_turn", "text": "Search for open invoices", "timestamp": "2026-01-15T10:00:00Z"}"#,
        "\n",
        r#"{"id": "tc1", "type": "tool_call", "tool_name": "f", "args": {"a": [1]}, "text": "f(a=[1])", "parent_id": "u1"}"#,
        "\n",
        r#"{"id": 7, "type": "tool_result", "content": ["x"], "parent_id": "tc1", "metadata": {"k": 1}, "token_estimate": "12"}"#,
        "\n",
        r#"{"type": "retrieved_doc", "text": "x", "sensitivity": "restricted", "artifact_ref": {"handle": "h"}, "metadata": [["a", 1]]}"#,
    );
    let seeds: Vec<Vec<u8>> =
        session.lines().chain([session]).map(|it| it.as_bytes().to_vec()).collect();
    let limits = SessionLimits { line_bytes: 8000, bytes: 30_000, items: 40 };
    fuzz("sessions", &seeds, SESSION_WORDS, |bytes| match read_session(bytes, &limits) {
        Err(error) => {
            let said = error.to_string();
            let line =
                said.split(|it: char| !it.is_ascii_digit()).find_map(|it| it.parse::<usize>().ok());
            assert!(line.is_some_and(|it| 0 < it), "{said}");
        }
        Ok(items) => {
            assert!(items.len() <= limits.items);
            let mut file = Vec::new();
            for item in &items {
                write_line(&mut file, item).unwrap();
            }
            assert_eq!(read_session(&*file, &SessionLimits::default()).unwrap(), items);
        }
    });
}
