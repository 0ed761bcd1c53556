//! Servers that are not quite wrong, or wrong in small ways.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use serde_json::json;
use toolcrib::{
    catalogue::{CallError, SourceState},
    sources::mcp::Transport,
};
use toolcrib_testkit::{Act, Fault, Plan, Running};

use crate::kit::{Folder, at, client, entry, run, stdio, text};

#[tokio::test]
async fn a_server_that_has_nothing_to_say_of_its_own_accord_is_left_alone() {
    let running =
        Running::http(Plan::legacy().fault(Fault::NobodyListens).tool("echo", Act::Echo)).await;
    let client = client(at("s", Transport::StreamableHttp, &running.url));
    for _ in 0..5 {
        assert_eq!(text(&client, "echo").await, "{}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // Discover, initialize, initialized, list, listen, and the calls.
    assert_eq!(running.requests(), 10);
    client.close().await;
    assert_eq!(running.requests(), 11, "one DELETE");
}

#[tokio::test]
async fn a_failed_handshake_over_sse_leaves_nothing_behind() {
    let running = Running::sse(Plan::legacy().fault(Fault::Stalls)).await;
    let mut config = at("s", Transport::Sse, &running.url);
    config.handshake_timeout = Duration::from_millis(300);
    let client = client(config);
    client.connect("s").await.unwrap_err();
    let begin = Instant::now();
    client.close().await;
    assert!(begin.elapsed() < Duration::from_secs(3), "something was waited for");
}

#[tokio::test]
async fn signs_of_life_keep_a_stream_alive() {
    let plan = Plan::legacy().tool("slow", Act::Sleep(1200));
    let running = Running::sse(plan).await;
    let mut config = at("s", Transport::Sse, &running.url);
    config.sse_read_timeout = Some(Duration::from_millis(500));
    let silent = client(config.clone());
    silent.connect("s").await.unwrap();
    let error = silent.call_tool("s", "slow", None).await.unwrap_err().to_string();
    assert!(error.contains("silent for too long"), "{error}");
    silent.close().await;
}

#[tokio::test]
async fn a_batch_of_answers_is_understood() {
    let line = r#"[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":"in a batch"}]}}]"#;
    let plan = Plan::legacy().revision("2025-03-26").tool("t", Act::Line(line.to_owned()));
    let (http, sse) = (Running::http(plan.clone()).await, Running::sse(plan.clone()).await);
    for config in [
        stdio("s", &plan),
        at("s", Transport::StreamableHttp, &http.url),
        at("s", Transport::Sse, &sse.url),
    ] {
        let client = client(config);
        assert_eq!(text(&client, "t").await, "in a batch");
        client.close().await;
    }
}

#[tokio::test]
async fn a_question_is_not_taken_for_a_result() {
    let result =
        r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create"}}}"#;
    let client = client(stdio("s", &Plan::modern().tool("t", Act::Result(result.to_owned()))));
    let error = client.call_tool("s", "t", None).await.unwrap_err();
    assert!(matches!(error, CallError::Malformed { .. }), "{error}");
    insta::assert_snapshot!(error, @"server `s` answered `input_required`, which nobody here can act on");
    client.close().await;
}

#[tokio::test]
async fn a_list_behind_a_lock_comes_with_a_cure() {
    let running = Running::http(Plan::legacy().fault(Fault::LockedList)).await;
    let client = client(at("s", Transport::StreamableHttp, &running.url));
    let connection = client.connection("s").unwrap();
    let SourceState::Failed { cause, hint } = connection.settled().await else { panic!() };
    assert_eq!(cause, "it does not list its tools: it refused access (HTTP 401)");
    assert!(hint.unwrap().contains("`headers`"));
    client.close().await;
}

/// Answers until it is asked to go deaf; then it lives on without listening.
const DEAF: &str = r#"
import json, os, sys, time
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        say({"id": m["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": None, "version": None}}})
    elif m.get("method") == "tools/list":
        say({"id": m["id"], "result": {"tools": [{"name": "deaf"}]}})
    elif m.get("method") == "tools/call":
        os.close(0)
        say({"id": m["id"], "result": {"content": []}})
        time.sleep(60)
    elif "id" in m:
        say({"id": m["id"], "error": {"code": -32601, "message": "no"}})
"#;

#[tokio::test]
async fn a_server_that_no_longer_listens_is_noticed() {
    let folder = Folder::new();
    let script = folder.write("deaf.py", DEAF);
    let mut config = toolcrib::sources::mcp::ServerConfig::new("s", Transport::Stdio);
    config.command = Some(toolcrib::sources::mcp::Filled::literal("python3"));
    config.args = vec![toolcrib::sources::mcp::Filled::literal(script.to_string_lossy())];
    let client = client(config);
    let connection = client.connect("s").await.unwrap();
    client.call_tool("s", "deaf", None).await.unwrap();
    let begin = Instant::now();
    let error = client.call_tool("s", "deaf", None).await.unwrap_err().to_string();
    assert!(error.contains("it closed its input"), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(5));
    drop(connection);
    client.close().await;
}

#[test]
fn no_value_of_a_variable_is_ever_shown() {
    let garbage = Act::Line("not a message: hunter22-hunter22".to_owned());
    let talks = Act::Stderr("key is\nline-one-secret\nline-two-secret".to_owned());
    let server = |extra: serde_json::Value| {
        let mut server =
            entry(&Plan::legacy().tool("garbage", garbage.clone()).tool("talks", talks.clone()));
        server["timeout"] = json!("300ms");
        for (key, value) in extra.as_object().unwrap() {
            server[key] = value.clone();
        }
        server
    };
    let folder = Folder::workspace(&json!({
        "cwd": server(json!({ "cwd": "/nope/${SEC}" })),
        "ca": { "url": "https://127.0.0.1:1/", "ca": "/nope/${SEC}.pem" },
        "include": server(json!({ "include": ["${SEC}", "garbage", "talks"], "env": { "S": "${SEC}" } })),
        "multi": server(json!({ "env": { "PEM": "${PEM}" } })),
    }));
    let toolcrib = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(args).current_dir(folder.path());
        command.env("SEC", "hunter22-hunter22").env("PEM", "line-one-secret\nline-two-secret");
        run(&mut command)
    };
    for args in [
        &["-vv", "check"][..],
        &["-vv", "check", "--json"],
        &["-v", "call", "mcp__include__garbage"],
        &["-v", "call", "mcp__multi__talks"],
    ] {
        let run = toolcrib(args);
        let said = run.transcript();
        assert!(!said.contains("hunter22") && !said.contains("-secret"), "{args:?}\n{said}");
    }
}
