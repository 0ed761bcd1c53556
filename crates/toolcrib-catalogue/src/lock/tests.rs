//! Whole files, whole changes, and what holds of all of them.

mod changes;
mod damage;
mod properties;
mod running;

use std::sync::Arc;

use super::*;
use crate::{Json, Origin};

fn server(name: &str) -> Place {
    Place::of(&Origin::Upstream(name.to_owned()))
}

fn tool(raw: &str) -> Arc<Tool> {
    Arc::new(Tool::read(Json::parse(raw.to_owned()).unwrap()).unwrap())
}

/// A lock with one of everything that is written in a way of its own.
fn lock() -> Lock {
    let git = [
        tool(
            r#"{
                "name": "commit", "title": "Commit",
                "description": "Records changes.\n\nArgs:\n  message: what was done\n",
                "inputSchema": {
                    "type": "object", "required": ["message"],
                    "properties": {
                        "message": {"type": "string", "minLength": 1, "description": "What was done"},
                        "all files": {"type": "boolean", "default": false}
                    }
                },
                "annotations": {"readOnlyHint": false, "title": "Commit"},
                "execution": {"taskSupport": "forbidden"}
            }"#,
        ),
        tool(r#"{"name": "status"}"#),
        tool(
            r#"{"name": "näme\u200b", "description": "hid\u200bden \udb40\udc41", "inputSchema": {}}"#,
        ),
    ];
    let way = Way::process("uvx", ["mcp-server-git", "--token", "abc"]).variables(["GIT_TOKEN"]);
    let far = Way::address("streamable_http", "https://mcp.example/v1?key=abc").headers(["X-Key"]);
    let long = format!(r#"{{"name":"long","description":"{}"}}"#, "x".repeat(MAX_KEPT));
    let mut lock = Lock::default();
    lock.pin(server("git"), Some(way), git.iter().map(|it| &**it));
    lock.pin(server("far away"), Some(far), [&*tool(&long)]);
    lock.pin(Place::of(&Origin::Workspace), None, []);
    lock
}

#[test]
fn a_lock_file() {
    insta::assert_snapshot!(lock().write());
}

#[test]
fn a_lock_is_read_as_it_was_written() {
    let (read, problems) = Lock::read(&lock().write());
    assert_eq!(problems, []);
    assert_eq!(read, lock());
    let windows = format!("\u{feff}{}", lock().write().replace('\n', "\r\n"));
    assert_eq!(Lock::read(&windows), (lock(), vec![]));
}

/// The hash is the plain BLAKE3 of a text that anybody can make.
#[test]
fn the_hash_is_that_of_the_canonical_form() {
    let given = r#" {"name":"a" , "x":1, "inputSchema":{"z":[1.0, 1e2,-0],"a\/":"\u00e9\n\u0007"}, "_meta":null} "#;
    let expected = "{\"_meta\":null,\"inputSchema\":{\"a/\":\"é\\n\\u0007\",\"z\":[1.0,1e2,-0]},\"name\":\"a\",\"x\":1}";
    assert_eq!(canonical::definition(&tool(given)).as_deref(), Some(expected));
    assert_eq!(hash(&tool(given)).to_string(), blake3::hash(expected.as_bytes()).to_hex().as_str());
}

/// What `serde_json::Value` would take for the same thing is not the same thing.
#[test]
fn no_two_definitions_share_a_hash_by_a_trick() {
    let schemas = [
        "7",
        "7.0",
        r#"{"$serde_json::private::Number":"7"}"#,
        r#"{"a":1,"a":2}"#,
        r#"{"a":2,"a":1}"#,
        r#"{"a":2}"#,
        r#""7""#,
        "[7]",
        "[[7]]",
    ];
    let mut seen = std::collections::HashSet::new();
    for schema in schemas {
        let tool = tool(&format!(r#"{{"name":"a","inputSchema":{{"default":{schema}}}}}"#));
        assert!(seen.insert(hash(&tool)), "{schema}");
        let mut lock = Lock::default();
        lock.pin(server("a"), None, [&*tool]);
        assert_eq!(Lock::read(&lock.write()), (lock, vec![]));
    }
}

#[test]
fn a_definition_that_is_too_deep_is_pinned_as_it_was_given() {
    let deep = |levels: usize| {
        let schema = format!("{}{}", r#"{"items":"#.repeat(levels), "1") + &"}".repeat(levels);
        Tool::read(Json::from_scanned(format!(r#"{{"name":"a","inputSchema":{schema}}}"#).into()))
    };
    for levels in [100, 2_000] {
        let (one, other) = (deep(levels).unwrap(), deep(levels + 1).unwrap());
        assert_ne!(hash(&one), hash(&other));
        let mut lock = Lock::default();
        lock.pin(server("a"), None, [&one]);
        assert_eq!(Lock::read(&lock.write()), (lock.clone(), vec![]));
        let other = [Arc::new(other)];
        let now = [Now { place: server("a"), way: None, tools: Some(&other) }];
        assert_eq!(compare(&lock, &now).len(), 1);
    }
}

/// A first review of 1,000 tools is some 10,000 short lines, and a change is a few.
#[test]
fn a_thousand_tools_can_be_reviewed() {
    let text = |changed: usize| {
        let mut lock = Lock::default();
        let tools: Vec<_> = (0..1000)
            .map(|it| {
                let most = if it == changed { 1000 } else { 100 };
                tool(&format!(
                    r#"{{"name":"find_{it}","description":"Finds things.\nThey are sorted.",
                    "inputSchema":{{"type":"object","required":["query"],"properties":{{
                    "query":{{"type":"string","description":"What to look for"}},
                    "limit":{{"type":"integer","minimum":1,"maximum":{most}}}}}}},
                    "annotations":{{"readOnlyHint":true}}}}"#
                ))
            })
            .collect();
        lock.pin(server("big"), None, tools.iter().map(|it| &**it));
        lock.write()
    };
    let (before, now) = (text(usize::MAX), text(7));
    let differ = before.lines().zip(now.lines()).filter(|(one, other)| one != other).count();
    assert_eq!(differ, 2, "the head line and the argument");
    assert!(before.lines().count() < 9_000, "{}", before.lines().count());
    assert!(before.len() < 500_000, "{}", before.len());
}
