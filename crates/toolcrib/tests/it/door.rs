//! The doors of `toolcrib serve`, by hand: who is let in, and what malformed requests get.

use std::{
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Fault, Plan};

use crate::{
    kit::{Folder, entry, soon},
    serving::{GROUPS, Serving, two_servers},
};

fn call(name: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": { "name": name } })
}

#[test]
fn the_seeds_table_of_answers_to_tokens() {
    let folder = two_servers();
    folder.write("network.yaml", GROUPS);
    let serving = Serving::start_with(folder.path(), &[("MAIN_TOKEN", "main-token")]);
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    for path in ["/mcp", "/sse", "/messages", "/readyz", "/anything"] {
        for header in [None, Some("Bearer wrong"), Some("Bearer "), Some("Basic bWFpbi10b2tlbg==")]
        {
            let headers: Vec<(&str, &str)> =
                header.map(|it| ("Authorization", it)).into_iter().collect();
            let answer = serving.request("POST", path, &headers, &list.to_string());
            assert_eq!(answer.status, 401, "{path} {header:?}");
            assert_eq!(answer.header("www-authenticate").unwrap(), "Bearer");
            assert!(!answer.body.contains("mcp__"), "{answer:?}");
        }
    }
    let twice = [("Authorization", "Bearer main-token"), ("Authorization", "Bearer main-token")];
    assert_eq!(serving.post(&twice, &list).status, 401);
    let query = serving.request("POST", "/mcp?token=main-token", &[], &list.to_string());
    assert_eq!(query.status, 401);
    assert_eq!(serving.get("/healthz", &[]).status, 200);
    let good = [("Authorization", "bearer main-token")];
    assert_eq!(serving.get("/readyz", &good).status, 200);
    assert!(!serving.session(&good, "2025-11-25").is_empty());
}

#[test]
fn a_session_belongs_to_who_opened_it_and_a_removed_token_ends_it() {
    let folder = two_servers();
    folder.write("network.yaml", GROUPS);
    let serving = Serving::start_with(folder.path(), &[("MAIN_TOKEN", "main-token")]);
    let analyst = ("Authorization", "Bearer analyst-token");
    let session = serving.session(&[analyst], "2025-11-25");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let with = |token| [("Authorization", token), ("Mcp-Session-Id", session.as_str())];
    assert_eq!(serving.post(&with("Bearer analyst-token"), &list).status, 200);
    assert_eq!(serving.post(&with("Bearer main-token"), &list).status, 404);
    folder.write("network.yaml", GROUPS.replace("analyst-token", "another-token"));
    serving.signal("-HUP");
    soon("the old token is refused", || {
        serving.post(&with("Bearer analyst-token"), &list).status == 401
    });
    assert_eq!(serving.get("/readyz", &[("Authorization", "Bearer another-token")]).status, 200);
}

#[test]
fn only_our_own_name_and_origin_are_served() {
    let folder = two_servers();
    let serving = Serving::start(folder.path());
    let port = serving.address.split(':').nth(1).unwrap();
    let local = format!("localhost:{port}");
    for path in ["/mcp", "/sse", "/messages", "/healthz", "/readyz", "/"] {
        let bad = ["evil.example", "127.0.0.1", "localhost.evil.example:7777", "127.1", ""];
        for host in bad {
            let answer = serving.get(path, &[("Host", host)]);
            assert!(matches!(answer.status, 400 | 403), "{path} {host}: {answer:?}");
        }
        let foreign = format!("http://{}.evil.example", serving.address);
        for origin in ["http://evil.example", "null", "http://127.0.0.1:1", foreign.as_str()] {
            let answer = serving.get(path, &[("Origin", origin)]);
            assert_eq!(answer.status, 403, "{path} {origin}");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    assert_eq!(serving.get("/healthz", &[("Host", &local)]).status, 200);
    let own = format!("http://{local}");
    assert_eq!(serving.get("/healthz", &[("Origin", &own)]).status, 200);
}

#[test]
fn malformed_requests_get_the_right_answer() {
    let folder = two_servers();
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let with = [("Mcp-Session-Id", session.as_str())];
    let code = |body: &str| {
        let answer = serving.request("POST", "/mcp", &with, body);
        (answer.status, answer.json()["error"]["code"].as_i64().unwrap_or(0))
    };
    assert_eq!(code("{"), (400, -32700));
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"ping"}"#), (400, -32700));
    assert_eq!(code(r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#), (400, -32600));
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#), (400, -32600));
    assert_eq!(code(r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#), (400, -32600));
    assert_eq!(code(r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#), (200, -32601));
    let params = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"#;
    for bad in ["{}", r#"{"name":7}"#, r#"{"name":"mcp__a__echo","arguments":[1]}"#] {
        assert_eq!(code(&format!("{params}{bad}}}")), (200, -32602), "{bad}");
    }
    let text = serving.request("POST", "/mcp", &[("Content-Type", "text/plain")], "{}");
    assert_eq!(text.status, 415);
    let large = format!(r#"{{"x":"{}"}}"#, "x".repeat(5_000_000));
    assert_eq!(serving.request("POST", "/mcp", &with, &large).status, 413);
    assert_eq!(serving.request("PUT", "/mcp", &with, "").status, 405);
    let html = [with[0], ("Accept", "text/html")];
    assert_eq!(serving.post(&html, &call("mcp__a__echo")).status, 406);
    let none = serving.post(&[], &call("mcp__a__echo"));
    assert_eq!(none.status, 400);
    let stale = serving.post(&[("Mcp-Session-Id", "00")], &call("mcp__a__echo"));
    assert_eq!(stale.status, 404);
    let unknown = [with[0], ("MCP-Protocol-Version", "1999-01-01")];
    assert_eq!(serving.post(&unknown, &call("mcp__a__echo")).status, 400);
    assert_eq!(serving.request("DELETE", "/mcp", &with, "").status, 200);
    assert_eq!(serving.request("DELETE", "/mcp", &with, "").status, 404);
}

#[test]
fn a_batch_is_answered_where_the_revision_has_batches() {
    let folder = two_servers();
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-03-26");
    let with = [("Mcp-Session-Id", session.as_str())];
    let body = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/whatever" },
        { "jsonrpc": "2.0", "id": "x", "method": "no/such" },
    ]);
    let answer = serving.post(&with, &body).json();
    assert_eq!(answer[0], json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    assert_eq!((&answer[1]["id"], &answer[1]["error"]["code"]), (&json!("x"), &json!(-32601)));
    assert_eq!(answer.as_array().unwrap().len(), 2);
}

#[test]
fn a_modern_request_is_held_to_its_headers() {
    let folder = two_servers();
    let serving = Serving::start(folder.path());
    let meta = |version: &str| {
        json!({ "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {} })
    };
    let body = |method: &str, version: &str| {
        json!({ "jsonrpc": "2.0", "id": 1, "method": method,
                "params": { "name": "mcp__b__echo", "_meta": meta(version) } })
    };
    let headers = |version, method, name| {
        [("MCP-Protocol-Version", version), ("Mcp-Method", method), ("Mcp-Name", name)]
    };
    let good = headers("2026-07-28", "tools/call", "mcp__b__echo");
    let answer = serving.post(&good, &body("tools/call", "2026-07-28"));
    assert_eq!(answer.json()["result"]["resultType"], "complete", "{answer:?}");
    let other = headers("2026-07-28", "tools/call", "mcp__a__echo");
    let answer = serving.post(&other, &body("tools/call", "2026-07-28"));
    assert_eq!((answer.status, answer.json()["error"]["code"].as_i64()), (400, Some(-32020)));
    let newer = headers("2099-01-01", "tools/call", "mcp__b__echo");
    let answer = serving.post(&newer, &body("tools/call", "2099-01-01"));
    assert_eq!((answer.status, answer.json()["error"]["code"].as_i64()), (400, Some(-32022)));
    assert_eq!(answer.json()["error"]["data"]["requested"], "2099-01-01");
    for method in ["ping", "initialized", "logging/setLevel", "no/such"] {
        let answer = serving.post(&headers("2026-07-28", method, "-"), &body(method, "2026-07-28"));
        assert_eq!((answer.status, answer.json()["error"]["code"].as_i64()), (404, Some(-32601)));
    }
    let version = [("MCP-Protocol-Version", "2026-07-28")];
    assert_eq!(serving.get("/mcp", &version).status, 405);
    assert_eq!(serving.request("DELETE", "/mcp", &version, "").status, 405);
    let list =
        serving.post(&headers("2026-07-28", "tools/list", "-"), &body("tools/list", "2026-07-28"));
    let list = list.json();
    assert_eq!(list["result"]["cacheScope"], "public");
    assert!(list["result"]["ttlMs"].is_u64());
}

#[test]
fn lists_are_the_same_bytes_from_start_to_start() {
    let folder = two_servers();
    let list = || {
        let serving = Serving::start(folder.path());
        let session = serving.session(&[], "2025-11-25");
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
        serving.post(&[("Mcp-Session-Id", session.as_str())], &body).body
    };
    assert_eq!(list(), list());
}

#[test]
fn sigterm_lets_calls_in_flight_end() {
    let folder =
        Folder::workspace(&json!({ "a": entry(&Plan::legacy().tool("slow", Act::Sleep(1500))) }));
    let mut serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let with = [("Mcp-Session-Id", session.as_str())];
    let answer = std::thread::scope(|scope| {
        let call = scope.spawn(|| serving.post(&with, &call("mcp__a__slow")));
        std::thread::sleep(Duration::from_millis(500));
        serving.signal("-TERM");
        call.join().unwrap()
    });
    assert_eq!(answer.json()["result"]["isError"], false, "{answer:?}");
    assert!(serving.child.wait().unwrap().success());
}

#[test]
fn sigterm_lets_calls_in_flight_end_on_a_pipe_too() {
    let folder =
        Folder::workspace(&json!({ "a": entry(&Plan::legacy().tool("slow", Act::Sleep(1500))) }));
    let mut hand = Hand::start(folder.path(), &[]);
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    hand.say(&hello.to_string());
    hand.hear();
    hand.say(&call("mcp__a__slow").to_string());
    std::thread::sleep(Duration::from_millis(700));
    let id = hand.child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    let answer = hand.hear();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(hand.child.wait().unwrap().success());
}

#[test]
fn a_start_that_would_leave_the_door_open_is_refused() {
    let folder = two_servers();
    let refused = |network: &str, args: &[&str]| {
        folder.write("network.yaml", network);
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        let run = crate::kit::run(command.arg("serve").args(args).current_dir(folder.path()));
        assert_eq!(run.code, 2, "{}", run.transcript());
        assert!(!run.err.contains("hunter22"), "{}", run.err);
        run.err
    };
    let mut report = String::new();
    for (network, args) in [
        ("", &["--listen", "0.0.0.0:0"][..]),
        ("external_access: { auth_token: hunter22 }", &["--listen", "0.0.0.0:0"]),
        ("external_access: { auth_token: '' }", &[]),
        ("external_access: { auth_token_env: NO_SUCH_VARIABLE_HERE }", &[]),
        ("external_access: { groups: { a: { auth_token_env: NO_SUCH_VARIABLE_HERE } } }", &[]),
        ("external_access: { auth_token: hunter22, groups: { a: { auth_token: hunter22 } } }", &[]),
        ("external_access: { auth_token: [hunter22] }", &[]),
        ("external_access: { auth_token: hunter22, anonymous: hunter22 }", &[]),
        ("external_access:\n  auth_token: 'hunter22'\n  hunter22", &[]),
        ("external_access: { exposed_tools: all }", &[]),
        ("listen: somewhere", &[]),
        ("names: { upstream: short }", &[]),
        ("a: b: c", &[]),
        ("external_access: {}\nexternal_access: {}", &[]),
        ("", &["--stdio", "--group", "nobody"]),
    ] {
        report.push_str(&format!("{network} {args:?}\n{}\n", refused(network, args)));
    }
    insta::assert_snapshot!(report);
}

#[test]
fn what_is_refused_is_refused_before_anything_runs() {
    let folder = Folder::new();
    let notes = folder.file("notes");
    let plan = Plan::legacy().tool("echo", Act::Echo).notes(&notes);
    folder.write("mcp.json", json!({ "mcpServers": { "a": entry(&plan) } }).to_string());
    for args in [&["serve", "--listen", "0.0.0.0:0"][..], &["serve", "--stdio", "--group", "x"]] {
        assert_eq!(crate::kit::toolcrib(folder.path(), args).code, 2);
    }
    assert!(!notes.exists(), "a server was started");
}

/// A client on standard input and output, by hand.
struct Hand {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Hand {
    fn start(folder: &Path, args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
            .args(["serve", "--stdio"])
            .args(args)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output) }
    }

    fn say(&mut self, text: &str) {
        self.input.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    fn hear(&mut self) -> Value {
        let mut line = String::new();
        assert_ne!(self.output.read_line(&mut line).unwrap(), 0, "it ended");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"))
    }
}

#[test]
fn standard_output_holds_nothing_but_messages_and_the_end_of_input_ends_it() {
    let folder = Folder::workspace(&json!({
        "a": entry(&Plan::legacy().tool("mess", Act::Garbage(5)).tool("hang", Act::Hang)),
        "bad": { "command": "no-such-program-here" },
        "exits": entry(&Plan::legacy().fault(Fault::ExitAtOnce("words".to_owned()))),
    }));
    let mut hand = Hand::start(folder.path(), &[]);
    hand.say("not a message");
    assert_eq!(hand.hear()["error"]["code"], -32700);
    hand.say(r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2099-01-01","capabilities":{}}}"#);
    assert_eq!(hand.hear()["result"]["protocolVersion"], "2025-11-25");
    hand.say(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"mcp__a__hang"}}"#);
    hand.say(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
    loop {
        let heard = hand.hear();
        if heard["id"] == 3 {
            break;
        }
        // The tools may not have come yet; then the call is refused.
        assert_eq!(heard["id"], 2, "{heard}");
    }
    drop(hand.input);
    let status = hand.child.wait().unwrap();
    assert!(status.success());
}

#[test]
fn a_gateway_without_a_server_it_needs_is_not_ready() {
    let folder = Folder::workspace(&json!({
        "a": entry(&Plan::legacy().tool("echo", Act::Echo)),
        "needed": { "command": "no-such-program-here", "required": true },
    }));
    let serving = Serving::start(folder.path());
    let answer = serving.get("/readyz", &[]);
    assert_eq!(answer.status, 503);
    assert!(answer.body.starts_with("`needed` is required and is down: "), "{answer:?}");
    assert_eq!(serving.get("/healthz", &[]).status, 200);
}
