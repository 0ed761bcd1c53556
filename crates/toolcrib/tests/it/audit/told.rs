//! What a record tells of results that were there before and of calls whose client left; and how records are shown.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::{Command, Stdio},
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use super::{RULES, calls, lines, recorded, workspace};
use crate::{
    guarded::{Client, calls as reached},
    kit::{Folder, entry, soon, toolcrib},
    serving::Serving,
};

/// A workspace with a server whose results are kept; it notes what it is asked.
fn keeping() -> Folder {
    let folder = Folder::new();
    let plan = Plan::legacy().tool("echo", Act::Echo).tool("slow", Act::Sleep(1500));
    let plan = plan.tool("fail", Act::Fail).tool("plain", Act::Echo).notes(folder.file("notes"));
    folder.write("mcp.json", json!({ "mcpServers": { "s": entry(&plan) } }).to_string());
    let network = "cache: { tools: { mcp__s__echo: 60s, mcp__s__slow: 60s, mcp__s__fail: 60s } }\n";
    folder.write("network.yaml", network);
    folder
}

fn word(record: &Value) -> (&str, &str) {
    (record["outcome"].as_str().unwrap(), record["cache"].as_str().unwrap_or("-"))
}

#[test]
fn a_record_says_whether_the_result_was_there() {
    let folder = keeping();
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    for (tool, times) in [("echo", 2), ("fail", 2), ("plain", 1), ("nowhere", 1)] {
        (0..times).for_each(|_| drop(client.call(&format!("mcp__s__{tool}"), &json!({}))));
    }
    let found = recorded(folder.path(), 6);
    let words: Vec<_> = found.iter().map(word).collect();
    let expected = [
        ("ok", "miss"),
        ("ok", "hit"),
        ("tool_error", "miss"),
        ("tool_error", "miss"),
        ("ok", "-"),
        ("unknown_tool", "-"),
    ];
    assert_eq!(words, expected);
    let before = reached(&folder.file("notes"));
    let joined = std::thread::scope(|scope| {
        scope.spawn(|| Client::new(&serving, None).call("mcp__s__slow", &json!({})));
        soon("it runs", || reached(&folder.file("notes")) == before + 1);
        client.call("mcp__s__slow", &json!({}))
    });
    assert_eq!(joined["result"]["_meta"]["toolcrib/cache"], "joined", "{joined}");
    let found = recorded(folder.path(), 8);
    let mut words: Vec<_> = found[6..].iter().map(word).collect();
    words.sort_unstable();
    assert_eq!(words, [("ok", "joined"), ("ok", "miss")]);
    assert_eq!(reached(&folder.file("notes")), before + 1);
}

/// Sends a call with a key, and goes away when it runs.
fn send_and_leave(serving: &Serving, folder: &Folder, tool: &str) {
    let session = serving.session(&[], "2025-11-25");
    let params = json!({ "name": tool, "arguments": {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let body = body.to_string();
    let before = reached(&folder.file("notes"));
    let mut socket = TcpStream::connect(&serving.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nMcp-Session-Id: {session}\r\nIdempotency-Key: {tool}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        serving.address,
        body.len()
    );
    socket.write_all(head.as_bytes()).unwrap();
    soon("it runs", || reached(&folder.file("notes")) == before + 1);
}

#[test]
fn a_call_with_a_key_is_on_record_once_with_how_it_ended_whoever_waited() {
    for mode in ["on", "strict"] {
        let folder = Folder::new();
        let plan = Plan::legacy().tool("slow", Act::Sleep(700)).notes(folder.file("notes"));
        folder.write("mcp.json", json!({ "mcpServers": { "s": entry(&plan) } }).to_string());
        folder.write("network.yaml", format!("audit: {mode}\n"));
        let serving = Serving::start(folder.path());
        send_and_leave(&serving, &folder, "mcp__s__slow");
        let found = recorded(folder.path(), 1);
        assert_eq!(word(&found[0]), ("ok", "-"), "{}", found[0]);
        assert!(700.0 <= found[0]["ms"].as_f64().unwrap(), "{}", found[0]);
        assert_eq!(found[0]["source"], "s");
        // Whoever comes back is told of once more, as somebody who got what was there.
        let key = json!({ "toolcrib/idempotencyKey": "mcp__s__slow" });
        let params = json!({ "name": "mcp__s__slow", "arguments": {}, "_meta": key });
        let client = Client::new(&serving, None);
        assert_eq!(client.ask("tools/call", &params)["result"]["isError"], false);
        let found = recorded(folder.path(), 2);
        assert_eq!(word(&found[1]), ("ok", "repeat"));
        assert_eq!(reached(&folder.file("notes")), 1);
    }
}

/// What `show` prints with these arguments, as records.
fn shown(folder: &Folder, args: &[&str]) -> Vec<Value> {
    let run = toolcrib(folder.path(), &[&["audit", "show", "--json"], args].concat());
    assert_eq!(run.code, 0, "{}", run.transcript());
    run.out.lines().map(|it| serde_json::from_str(it).unwrap()).collect()
}

#[test]
fn records_are_shown_all_or_those_that_are_asked_for() {
    let folder = workspace(RULES);
    let none = toolcrib(folder.path(), &["audit", "show"]);
    assert_eq!(none.code, 1, "{}", none.transcript());
    assert!(none.err.contains("there is no audit record here"), "{}", none.err);
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
    for tool in ["echo", "number", "few", "few", "fail", "\u{1b}[2Jnowhere"] {
        client.call(&format!("mcp__s__{tool}"), &json!({}));
    }
    Client::new(&serving, Some("SECRET_TOKEN_MAIN")).call("mcp__s__echo", &json!({}));
    let all = recorded(folder.path(), 7);
    let count = |args: &[&str]| shown(&folder, args).len();
    // With the event of the start.
    assert_eq!((count(&[]), lines(folder.path()).len()), (8, 8));
    assert_eq!(shown(&folder, &["--tool", "mcp__s__*"]), all);
    assert_eq!(count(&["--tool", "mcp__s__few"]), 2);
    assert_eq!(count(&["--tool", "mcp__s__few", "--outcome", "limited"]), 1);
    assert_eq!(count(&["--outcome", "limited", "--outcome", "tool_error"]), 2);
    assert_eq!((count(&["--group", "a"]), count(&["--group", "guest"])), (6, 1));
    assert_eq!((count(&["--since", "1h"]), count(&["--since", "2999-01-01"])), (8, 0));
    let since = all[3]["ts"].as_str().unwrap();
    assert!(shown(&folder, &["--since", since]).contains(&all[3]));
    assert_eq!(shown(&folder, &["-n", "2"]), &all[5..]);
    assert_eq!(shown(&folder, &["-n", "1", "--outcome", "ok"]), &all[6..]);
    let run = toolcrib(folder.path(), &["audit", "show", "--tool", "mcp__s__number"]);
    let id = all[1]["call"].as_str().unwrap();
    assert!(run.out.contains("invalid_arguments mcp__s__number a token:"), "{}", run.transcript());
    assert!(run.out.contains(id) && run.out.contains("`n` is missing (required)"), "{}", run.out);
    let every = toolcrib(folder.path(), &["audit", "show"]);
    assert!(!every.out.contains('\u{1b}'), "{}", every.out);
    assert_eq!(every.out.lines().count(), 8);
    for args in [["--since", "soon"], ["--outcome", "fine"], ["-n", "-1"]] {
        let run = toolcrib(folder.path(), &["audit", "show", args[0], args[1]]);
        assert_eq!(run.code, 2, "{}", run.transcript());
    }
}

#[test]
fn the_tail_goes_on_with_what_comes() {
    let folder = workspace(RULES);
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["audit", "tail", "--tool", "*", "--count", "3", "--json"]);
    // Before there is anything at all.
    let mut tail = command.current_dir(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(tail.stdout.take().unwrap()).lines();
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
    for tool in ["mcp__s__echo", "mcp__s__fail", "mcp__s__few"] {
        client.call(tool, &json!({}));
        let line: Value = serde_json::from_str(&out.next().unwrap().unwrap()).unwrap();
        assert_eq!(line["tool"], tool);
    }
    assert!(tail.wait().unwrap().success() && out.next().is_none());
    let run = toolcrib(folder.path(), &["audit", "tail", "-n", "2", "--count", "2", "--json"]);
    let tools: Vec<Value> = run.out.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    assert_eq!(tools, calls(folder.path())[1..]);
}

/// What is refused before anything is looked up is told by the name that was called.
#[test]
fn a_call_that_is_refused_early_is_on_record_under_its_name() {
    let folder =
        workspace(&RULES.replace(
            "excluded_tools: ['*__hidden']",
            "excluded_tools: ['*__hidden'], view: search",
        ));
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
    let list = client.ask("tools/call", &json!({ "name": "mcp__s__echo", "arguments": [1] }));
    assert_eq!(list["error"]["code"], -32602, "{list}");
    for inner in [json!({ "name": 7 }), json!({ "name": "mcp__s__echo", "arguments": "x" })] {
        let answer = client.call("call_tool", &inner);
        assert_eq!(answer["result"]["isError"], true, "{answer}");
    }
    let good = json!({ "name": "mcp__s__echo", "arguments": { "n": 1 } });
    assert_eq!(client.text("call_tool", &good), r#"{"n":1}"#);
    let found = recorded(folder.path(), 4);
    let told: Vec<_> = found.iter().map(|it| (&it["tool"], &it["outcome"])).collect();
    let expected = [
        ("mcp__s__echo", "invalid_arguments"),
        ("call_tool", "invalid_arguments"),
        ("call_tool", "invalid_arguments"),
        ("mcp__s__echo", "ok"),
    ];
    let expected = expected.map(|(tool, outcome)| (json!(tool), json!(outcome)));
    assert_eq!(told, expected.iter().map(|(tool, outcome)| (tool, outcome)).collect::<Vec<_>>());
    assert_eq!(found[0]["arguments"]["bytes"], 3, "{}", found[0]);
}

/// A call that was repeated says how often.
#[test]
fn a_record_says_how_often_a_call_was_repeated() {
    let folder = Folder::new();
    let crash = Act::CrashOnce(folder.file("crashed"));
    let plan = Plan::legacy().read_only_tool("fragile", crash).tool("echo", Act::Echo);
    let mut server = entry(&plan.notes(folder.file("notes")));
    server["trust_hints"] = json!(true);
    folder.write("mcp.json", json!({ "mcpServers": { "s": server } }).to_string());
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    assert_eq!(client.text("mcp__s__fragile", &json!({})), "{}");
    client.text("mcp__s__echo", &json!({}));
    assert_eq!(reached(&folder.file("notes")), 3);
    let found = recorded(folder.path(), 2);
    let told = |it: &Value| (it["tool"].clone(), it["outcome"].clone(), it["retries"].clone());
    assert_eq!(told(&found[0]), (json!("mcp__s__fragile"), json!("ok"), json!(1)));
    // Where there is nothing to tell, nothing is told.
    assert!(matches!(found[1]["retries"].as_u64(), None | Some(0)), "{}", found[1]);
}
