//! `sessions: on`: what clients call, as lines that can be packed.

use std::fs;

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry, soon},
    python::Caller,
    serving::Serving,
};

fn workspace(sessions: &str) -> Folder {
    let mut server = entry(&Plan::legacy().tool("echo", Act::Echo).tool("fail", Act::Fail));
    server["env"] = json!({ "API_KEY": "key-of-the-server" });
    let folder = Folder::workspace(&json!({ "s": server }));
    folder.write(
        "network.yaml",
        format!("external_access:\n  auth_token: token-of-everybody\n{sessions}\n"),
    );
    folder
}

fn lines(folder: &Folder) -> Vec<Vec<Value>> {
    let Ok(files) = fs::read_dir(folder.file(".toolcrib/sessions")) else { return Vec::new() };
    let mut files: Vec<_> = files.map(|it| it.unwrap().path()).collect();
    files.sort();
    let read = |text: String| text.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    files.iter().map(|it| read(fs::read_to_string(it).unwrap())).collect()
}

#[test]
fn calls_and_results_are_recorded_for_each_client_without_secrets() {
    let folder = workspace("sessions: on");
    let serving = Serving::start(folder.path());
    let mut one = Caller::with(&serving, "token-of-everybody");
    let said =
        json!({ "text": "it is key-of-the-server", "n": 1.10, "deep": ["token-of-everybody"] });
    one.call("mcp__s__echo", &said);
    one.error("mcp__s__fail", &json!({}));
    one.ask("tools/call", &json!({ "name": "nothing" }));
    let mut other = Caller::with(&serving, "token-of-everybody");
    other.call("mcp__s__echo", &json!({ "who": "other" }));
    soon("all is written", || lines(&folder).iter().map(Vec::len).sum::<usize>() == 8);
    let files = lines(&folder);
    assert_eq!(files.iter().map(Vec::len).collect::<Vec<_>>(), [6, 2]);
    let [call, result, _, failed, _, refused] = &files[0][..] else { panic!("{files:?}") };
    assert_eq!(call["type"], "tool_call");
    assert_eq!(call["tool_name"], "mcp__s__echo");
    assert_eq!(call["args"], json!({ "text": "it is ****", "n": 1.10, "deep": ["****"] }));
    assert_eq!(call["metadata"]["group"], "guest");
    let text = call["text"].as_str().unwrap();
    assert!(text.starts_with("mcp__s__echo(") && text.contains("n=1.1"), "{text}");
    assert_eq!((&result["type"], &result["parent_id"]), (&json!("tool_result"), &call["id"]));
    assert!(result["text"].as_str().unwrap().contains("it is ****"), "{result}");
    assert_eq!([&result["metadata"]["is_error"], &failed["metadata"]["is_error"]], [false, true]);
    assert_eq!(refused["text"], "Unknown tool: nothing");
    // Nowhere in any file.
    for file in fs::read_dir(folder.file(".toolcrib/sessions")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        assert!(!text.contains("key-of-the-server") && !text.contains("token-of-everybody"));
    }
    // What is recorded can be read as a session.
    let file = fs::read_dir(folder.file(".toolcrib/sessions")).unwrap().next().unwrap().unwrap();
    let items = toolcrib::context::load_mcp_session_jsonl(file.path()).unwrap();
    assert_eq!(items[1].parent_id.as_ref(), Some(&items[0].id));
}

#[test]
fn nothing_is_recorded_unless_it_is_asked_for() {
    for sessions in ["", "sessions: off", "sessions: false"] {
        let folder = workspace(sessions);
        let serving = Serving::start(folder.path());
        Caller::with(&serving, "token-of-everybody").call("mcp__s__echo", &json!({}));
        drop(serving);
        assert!(!folder.file(".toolcrib/sessions").exists(), "{sessions}");
    }
    let folder = workspace("sessions: maybe");
    let run = crate::kit::toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("sessions: `maybe` is none of on, off"), "{}", run.err);
}

/// Clients of the modern era have no session: whoever comes with one token is one client.
#[test]
fn clients_without_a_session_are_told_apart_by_who_they_are() {
    let folder = workspace("sessions: { keep: 1d, quota: 10MB }");
    let serving = Serving::start(folder.path());
    let params = json!({ "name": "mcp__s__echo", "arguments": {}, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = [
        ("Authorization", "Bearer token-of-everybody"),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "mcp__s__echo"),
    ];
    for _ in 0..3 {
        let answer = serving.post(&headers, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    soon("all is written", || lines(&folder).iter().map(Vec::len).sum::<usize>() == 6);
    assert_eq!(lines(&folder).len(), 1);
}

/// Wherever a secret stands in what is called or answered, the record does not have it.
#[test]
fn secrets_do_not_hide_in_keys_names_or_escapes() {
    let awkward = "s3cr\"et\\value";
    let structure =
        json!({ "content": [], "structuredContent": { "found": awkward }, "isError": false });
    let plan =
        Plan::legacy().tool("echo", Act::Echo).tool("leak", Act::Result(structure.to_string()));
    let mut server = entry(&plan);
    server["env"] = json!({ "API_TOKEN": awkward });
    let folder = Folder::workspace(&json!({ "s": server }));
    let network = |token: &str| {
        format!(
            "external_access:\n  auth_token: first-token\n  groups: {{ more: {{ auth_token: {token} }} }}\n\
             bus:\n  webhooks:\n    - {{ url: 'http://127.0.0.1:9/', secret: signing-secret, headers: {{ X-Key: header-secret }} }}\n\
             sessions: on\n"
        )
    };
    folder.write("network.yaml", network("second-token"));
    let serving = Serving::start(folder.path());
    let mut caller = Caller::with(&serving, "first-token");
    caller.call(
        "mcp__s__echo",
        &json!({ "second-token": 1, "deep": { "header-secret": ["signing-secret"] } }),
    );
    caller.call("mcp__s__echo", &json!({ "json": json!({ "k": awkward }).to_string() }));
    caller.call("mcp__s__leak", &json!({}));
    caller.ask("tools/call", &json!({ "name": "first-token", "arguments": {} }));
    folder.write("network.yaml", network("third-token"));
    serving.signal("-HUP");
    soon("the new token is good", || {
        serving.get("/readyz", &[("Authorization", "Bearer third-token")]).status == 200
    });
    caller.call("mcp__s__echo", &json!({ "text": "third-token and second-token" }));
    caller.ask("tools/call", &json!({ "name": "x".repeat(100_000), "arguments": {} }));
    soon("all is written", || lines(&folder).iter().map(Vec::len).sum::<usize>() == 12);
    for file in fs::read_dir(folder.file(".toolcrib/sessions")).unwrap() {
        let text = fs::read_to_string(file.unwrap().path()).unwrap();
        for secret in [
            "first-token",
            "second-token",
            "third-token",
            "header-secret",
            "signing-secret",
            "s3cr",
        ] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        assert!(text.lines().all(|it| it.len() < 2000), "{text}");
    }
}

/// A call that is taken back is on record with what became of it.
#[test]
fn a_cancelled_call_has_a_result_too() {
    let folder = Folder::workspace(&json!({ "s": entry(&Plan::legacy().tool("hang", Act::Hang)) }));
    folder.write("network.yaml", "sessions: on\n");
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
        "params": { "name": "mcp__s__hang", "arguments": {} } });
    let address = serving.url("").replace("http://", "");
    let mut socket = std::net::TcpStream::connect(&address).unwrap();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: application/json\r\nMcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n{body}",
        body.to_string().len()
    );
    std::io::Write::write_all(&mut socket, request.as_bytes()).unwrap();
    soon("it is called", || lines(&folder).iter().map(Vec::len).sum::<usize>() == 1);
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 7 } });
    serving.post(&[("Mcp-Session-Id", &session)], &cancel);
    soon("it has ended", || lines(&folder).iter().map(Vec::len).sum::<usize>() == 2);
    assert_eq!(lines(&folder)[0][1]["text"], "the call was cancelled");
}
