//! The audit record, rows H2 to H6 of the security reference: against a running gateway, its files and its disk.

mod broken;
mod strict;
mod told;

use std::{
    collections::BTreeMap,
    fs,
    io::Write,
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    guarded::Client,
    kit::{Folder, entry, soon, toolcrib},
    serving::Serving,
};

const RULES: &str = "
limits: { tools: { mcp__s__few: 1/h } }
external_access:
  auth_token: SECRET_TOKEN_MAIN
  groups:
    a: { auth_token: SECRET_TOKEN_A, excluded_tools: ['*__hidden'] }
";

const NUMBER: &str = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;

fn workspace(rules: &str) -> Folder {
    let plan = Plan::legacy().tool("echo", Act::Echo).tool("fail", Act::Fail);
    let plan = plan.tool("error", Act::Error(-32050)).tool("hidden", Act::Echo);
    let plan = plan.tool_with("number", NUMBER, Act::Echo).tool("few", Act::Echo);
    let mut slow = entry(&Plan::legacy().tool("hang", Act::Hang));
    slow["timeout"] = json!(1);
    let folder = Folder::workspace(&json!({
        "s": entry(&plan.tool("hang", Act::Hang)), "slow": slow,
    }));
    folder.write("network.yaml", rules);
    folder
}

fn lines(folder: &Path) -> Vec<String> {
    let Ok(found) = fs::read_dir(folder.join(".toolcrib/audit")) else { return Vec::new() };
    let mut files: Vec<PathBuf> = found.map(|it| it.unwrap().path()).collect();
    files.retain(|it| it.extension().is_some_and(|it| it == "jsonl"));
    files.sort();
    let text: String = files.iter().map(|it| fs::read_to_string(it).unwrap()).collect();
    text.lines().map(str::to_owned).collect()
}

pub(crate) fn records(folder: &Path) -> Vec<Value> {
    let read = |it: &String| serde_json::from_str(it).unwrap_or_else(|_| panic!("{it}"));
    lines(folder).iter().map(read).collect()
}

fn calls(folder: &Path) -> Vec<Value> {
    records(folder).into_iter().filter(|it| it["call"].is_string()).collect()
}

/// The records of so many calls, when they are there.
#[track_caller]
fn recorded(folder: &Path, count: usize) -> Vec<Value> {
    soon("they are on record", || count <= calls(folder).len());
    // One too many would come as soon.
    std::thread::sleep(Duration::from_millis(50));
    let found = calls(folder);
    assert_eq!(found.len(), count);
    found
}

fn verified(folder: &Path) -> Value {
    let run = toolcrib(folder, &["audit", "verify", "--json"]);
    let found = run.json();
    assert_eq!(run.code == 0, found["good"] == true, "{}", run.transcript());
    found
}

/// A call whose client goes away before the answer.
fn give_up(serving: &Serving) {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let params = json!({ "name": "mcp__s__hang", "arguments": {}, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let body = body.to_string();
    let mut socket = TcpStream::connect(&serving.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Authorization: Bearer SECRET_TOKEN_A\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: mcp__s__hang\r\n\r\n{body}",
        serving.address,
        body.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(200));
}

/// H3.
#[test]
fn h03_every_call_is_on_record_once_and_says_how_it_ended() {
    let folder = workspace(RULES);
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
    let plain = json!({});
    for (tool, count) in [
        ("mcp__s__echo", 599),
        ("mcp__s__fail", 100),
        ("mcp__s__error", 100),
        ("mcp__s__nowhere", 50),
        ("mcp__s__hidden", 50),
        ("mcp__s__number", 45),
        ("mcp__s__few", 41),
        ("mcp__slow__hang", 5),
    ] {
        (0..count).for_each(|_| drop(client.call(tool, &plain)));
    }
    (0..10).for_each(|_| give_up(&serving));
    let found = recorded(folder.path(), 1000);
    let mut outcomes: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for it in &found {
        let key = (it["tool"].as_str().unwrap(), it["outcome"].as_str().unwrap());
        *outcomes.entry(key).or_default() += 1;
    }
    let expected = [
        (("mcp__s__echo", "ok"), 599),
        (("mcp__s__error", "upstream_error"), 100),
        (("mcp__s__fail", "tool_error"), 100),
        (("mcp__s__few", "limited"), 40),
        (("mcp__s__few", "ok"), 1),
        (("mcp__s__hang", "cancelled"), 10),
        (("mcp__s__hidden", "unknown_tool"), 50),
        (("mcp__s__nowhere", "unknown_tool"), 50),
        (("mcp__s__number", "invalid_arguments"), 45),
        (("mcp__slow__hang", "timeout"), 5),
    ];
    assert_eq!(outcomes, expected.into_iter().collect());
    let ids: std::collections::HashSet<&str> =
        found.iter().map(|it| it["call"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 1000);
    serving.signal("-TERM");
    soon("it has ended", || records(folder.path()).last().unwrap()["event"] == "stop");
    assert_eq!(verified(folder.path())["good"], true);
}

/// H2.
#[test]
fn h02_whatever_arguments_hold_a_call_is_one_line() {
    let folder = workspace(&format!("{RULES}\naudit: {{ arguments: on, results: on }}"));
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
    let hostile = [
        "a\nb\r\n\u{1b}[2J\u{0}\u{2028}\u{202e}",
        "\"}\n{\"seq\":1,\"prev\":\"0\",\"call\":\"forged\",\"outcome\":\"ok\"}\n",
        "SECRET_TOKEN_MAIN",
    ];
    for it in hostile {
        client.call("mcp__s__echo", &json!({ "text": it, it: it }));
        client.call(it, &json!({}));
    }
    let found = recorded(folder.path(), 6);
    assert!(found[2]["arguments"]["bytes"].as_u64().unwrap() > 100);
    for line in lines(folder.path()) {
        assert!(line.chars().all(|c| !c.is_control() && c != '\u{2028}' && c != '\u{202e}'));
        assert!(!line.contains("SECRET_TOKEN"), "{line}");
    }
    let told = found[0]["arguments"]["text"].as_str().unwrap();
    assert!(told.contains("[2J"), "{told}");
    assert_eq!(found[3]["tool"], hostile[1]);
    assert_eq!(verified(folder.path())["good"], true);
}

/// H6.
#[test]
fn h06_a_record_says_who_what_and_how_and_no_token() {
    let folder = workspace(&format!("{RULES}\nresults: {{ inline_up_to: 1KB }}"));
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let large = json!({ "text": "x".repeat(5000) });
    let params = json!({ "name": "mcp__s__echo", "arguments": large,
        "_meta": { "traceparent": trace } });
    client.answer("tools/call", &params);
    client.call("mcp__s__echo", &large);
    let main = Client::new(&serving, Some("SECRET_TOKEN_MAIN"));
    main.call("mcp__s__error", &json!({}));
    let found = recorded(folder.path(), 3);
    let it = &found[0];
    for key in ["ts", "seq", "prev", "definition"] {
        assert!(!it[key].is_null(), "{key}: {it}");
    }
    assert_eq!((&it["group"], &it["client"]), (&json!("a"), &json!("127.0.0.1")));
    assert_eq!((&it["tool"], &it["source"]), (&json!("mcp__s__echo"), &json!("s")));
    assert_eq!((&it["outcome"], &it["trace"]), (&json!("ok"), &json!(trace)));
    assert_eq!(it["arguments"]["bytes"], large.to_string().len());
    assert_eq!(it["arguments"]["digest"], found[1]["arguments"]["digest"]);
    assert_ne!(it["arguments"]["digest"], found[2]["arguments"]["digest"]);
    assert!(it["ms"].is_number() && it["result"]["bytes"].as_u64().unwrap() < 5000);
    let artifact = it["artifacts"][0].as_str().unwrap();
    assert_eq!(toolcrib(folder.path(), &["artifact", "read", artifact]).code, 0);
    let it = &found[2];
    assert_eq!((&it["code"], &it["group"]), (&json!(-32050), &json!("guest")));
    assert_eq!(it["blame"], "upstream");
    assert_ne!(it["who"], found[0]["who"]);
    assert!(found[0]["who"].as_str().unwrap().starts_with("token:"), "{}", found[0]);
    assert!(!lines(folder.path()).concat().contains("SECRET"));
}

#[test]
fn who_is_turned_away_and_what_is_reloaded_is_on_record() {
    let folder = workspace(RULES);
    let serving = Serving::start(folder.path());
    let wrong = ("Authorization", "Bearer SECRET_WRONG");
    assert_eq!(serving.post(&[wrong], &json!({})).status, 401);
    assert_eq!(serving.post(&[("Host", "evil.example")], &json!({})).status, 403);
    for _ in 0..80 {
        serving.post(&[wrong], &json!({}));
    }
    folder.write("network.yaml", RULES.replace("SECRET_TOKEN_A", "SECRET_TOKEN_B"));
    serving.signal("-HUP");
    let has = |what: &str| records(folder.path()).iter().filter(|it| it["event"] == what).count();
    soon("it was read again", || has("token") == 2);
    folder.write("network.yaml", "external_access: [");
    serving.signal("-HUP");
    soon("it was not read again", || has("reload") == 2);
    let all = records(folder.path());
    let event = |what: &str| all.iter().find(|it| it["event"] == what).unwrap();
    assert_eq!(event("unauthorized")["subject"], "/mcp");
    assert_eq!(event("unauthorized")["client"], "127.0.0.1");
    assert_eq!(event("forbidden")["client"], "127.0.0.1");
    assert!(0 < has("too_many"));
    assert_eq!(
        (&event("token")["subject"], &event("token")["group"]),
        (&json!("removed"), &json!("a"))
    );
    assert_eq!(all[0]["event"], "start");
    assert!(!lines(folder.path()).concat().contains("SECRET"));
}

#[test]
fn the_story_of_a_call_is_told_and_its_id_stands_in_the_error() {
    let folder = workspace(RULES);
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
    let answer = client.call("mcp__s__number", &json!({ "n": "x" }));
    let id = answer["result"]["_meta"]["toolcrib/call"].as_str().unwrap().to_owned();
    let record = recorded(folder.path(), 1).remove(0);
    assert_eq!(record["call"], id.as_str());
    let told = toolcrib(folder.path(), &["why", "--call", &id]).transcript();
    let told = told.replace(&id, "ID").replace(record["ts"].as_str().unwrap(), "TIME");
    let told = told.replace(&format!("{} ms", record["ms"]), "MS ms");
    let told = told.replace(record["who"].as_str().unwrap(), "token:WHO");
    let told = told.replace(record["arguments"]["digest"].as_str().unwrap(), "DIGEST");
    let told = told.replace(&format!("{} of the", record["seq"]), "SEQ of the");
    let told = told.replace(&format!("{} bytes\n", record["result"]["bytes"]), "SIZE bytes\n");
    let definition = &record["definition"].as_str().unwrap()[..16];
    insta::assert_snapshot!(told.replace(definition, "HASH"), @"
    exit 0
    out call ID ended: invalid_arguments
    out   when      ended TIME, after MS ms
    out   who       token:WHO in group a, from 127.0.0.1
    out   tool      mcp__s__number of s (definition HASH…)
    out   sent      9 bytes of arguments, digest DIGEST
    out   checked   request, access, pins let it through; `arguments` decided
    out   outcome   the arguments did not fit, nothing ran; the caller's doing
    out   cause     The arguments do not fit: `n` must be an integer (type)
    out   result    SIZE bytes
    out   record    SEQ of the audit record
    out   do        `toolcrib tools --json` shows what the tool takes
    ");
    let unknown = toolcrib(folder.path(), &["why", "--call", "ffff"]);
    assert_eq!(unknown.code, 1);
    assert!(unknown.err.contains("there is no call `ffff` on record"), "{}", unknown.err);
}
