//! A million calls with everything on: tokens, checks, limits, pins, audit, cache, calls that are made once.

use std::time::Instant;

use serde_json::json;
use toolcrib_testkit::{Act, Plan};

use super::{Held, full};
use crate::{
    kit::{Folder, entry, toolcrib},
    serving::{Line, Serving},
};

const SCHEMA: &str = r#"{"type":"object","properties":{"n":{"type":"integer","minimum":0},"kind":{"enum":["a","b"]}},"required":["n"],"additionalProperties":false}"#;

const NETWORK: &str = "
pins: hold
poison: hide
validation: { arguments: on, results: strict }
audit: { mode: on, arguments: on }
limits: { rate: 1000000/s, concurrent: 1000, tools: { '*__few': 1/h } }
cache: { size: 1MB, tools: { '*__kept': 60s } }
external_access:
  groups:
    a: { auth_token: token-a, rate: 1000000/s, repairs: on }
";

/// How many clients call at a time, each on a connection of its own.
const CLIENTS: usize = 4;

/// So many different calls are remembered, by the cache and by their keys: they are all there after the first tenth.
const DIFFERENT: usize = 40;

fn workspace() -> Folder {
    let plan = Plan::legacy()
        .tool_with("plain", SCHEMA, Act::Echo)
        .tool_with("kept", SCHEMA, Act::Echo)
        .tool_with("once", SCHEMA, Act::Echo)
        .tool("few", Act::Echo);
    let folder = Folder::workspace(&json!({ "s": entry(&plan) }));
    folder.write("network.yaml", NETWORK);
    let locked = toolcrib(folder.path(), &["lock"]);
    assert_eq!(locked.code, 0, "{}", locked.transcript());
    folder
}

/// The call number `n` of a client: what is sent, and what must be in the answer.
fn call(n: usize) -> (String, &'static str) {
    let number = n / 10 % DIFFERENT;
    let (tool, arguments, expected) = match n % 10 {
        // Most are answered out of the cache, which is the shortest way.
        0..=4 => ("kept", json!({ "n": number }), "content"),
        5 | 6 => ("plain", json!({ "n": n, "kind": "a" }), "content"),
        7 => ("once", json!({ "n": number }), "content"),
        8 => ("plain", json!({ "n": -1, "kind": "c" }), "The arguments do not fit"),
        _ => ("few", json!({}), "content"),
    };
    let mut params = json!({ "name": format!("mcp__s__{tool}"), "arguments": arguments });
    if tool == "once" {
        params["_meta"] = json!({ "toolcrib/idempotencyKey": format!("key-{number}") });
    }
    let body = json!({ "jsonrpc": "2.0", "id": n, "method": "tools/call", "params": params });
    (body.to_string(), expected)
}

/// Makes so many calls from `first` on.
fn make(line: &mut Line, session: &str, first: usize, count: usize) {
    let headers = [("Mcp-Session-Id", session), ("Authorization", "Bearer token-a")];
    for n in first..first + count {
        let (body, expected) = call(n);
        let answer = line.post_with(&headers, &body);
        assert!(answer.status == 200 && answer.body.contains(expected), "{body}: {answer:?}");
    }
}

#[test]
fn a_million_calls_leave_nothing_behind() {
    let all = if full() { 1_000_000 } else { 20_000 };
    let folder = workspace();
    let mut serving = Serving::start(folder.path());
    let token = [("Authorization", "Bearer token-a")];
    let mut clients: Vec<(Line, String)> = (0..CLIENTS)
        .map(|_| (Line::open(&serving), serving.session(&token, "2025-11-25")))
        .collect();
    let (tenth, begin) = (all / 10 / CLIENTS, Instant::now());
    let mut held = Vec::new();
    for round in 0..10 {
        std::thread::scope(|scope| {
            for (line, session) in &mut clients {
                scope.spawn(move || make(line, session, round * tenth, tenth));
            }
        });
        held.push(Held::by(&serving));
    }
    let took = begin.elapsed();
    let each = took.as_micros() / all as u128;
    println!("{all} calls in {took:?}, {each} µs each: {held:#?}");
    let (first, last) = (held[0], held[9]);
    // Two steps of the allocator.
    assert!(last.kilobytes <= first.kilobytes + 8.0 * 1024.0, "{held:#?}");
    assert!(last.descriptors <= first.descriptors + 2, "{held:#?}");
    assert!(last.threads <= first.threads + 2, "{held:#?}");
    drop(clients);
    serving.signal("-TERM");
    serving.child.wait().unwrap();
    // Each is on record, and the record is whole.
    let verified = toolcrib(folder.path(), &["audit", "verify", "--json"]).json();
    assert_eq!(verified["good"], true, "{verified}");
    // That it began and ended, and each call that was made; of those that were refused, one in five, many are summed up.
    let records = verified["records"].as_u64().unwrap();
    let all = all as u64;
    assert!((all / 10 * 8 + 3..=all + 2).contains(&records), "{verified}");
}
