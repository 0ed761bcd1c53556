//! The gateway under callers and servers that mean it no good, or are merely careless.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::json;
use toolcrib::sources::mcp::Transport;
use toolcrib_testkit::{Act, Plan, Running};

use crate::{
    kit::{Folder, at, client, entry, soon},
    serving::{GROUPS, Line, Serving, two_servers},
};

const ANALYST: (&str, &str) = ("Authorization", "Bearer analyst-token");
const MAIN: [(&str, &str); 1] = [("MAIN_TOKEN", "main-token")];

/// A line end in the arguments must not become a message of its own to a server that reads lines. Row F8
/// of the security list.
#[test]
fn no_message_can_be_hidden_in_the_white_space_of_another() {
    let folder = Folder::new();
    let notes = folder.file("notes");
    let plan = Plan::legacy().tool("open", Act::Echo).tool("hidden", Act::Echo).notes(&notes);
    folder.write("mcp.json", json!({ "mcpServers": { "a": entry(&plan) } }).to_string());
    folder.write("network.yaml", "external_access: { excluded_tools: ['*hidden'] }");
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let mut line = Line::open(&serving);
    let smuggled = r#"{"jsonrpc":"2.0","id":99,"method":"tools/call","params":{"name":"hidden"}}"#;
    for end in ["\n", "\r\n", "\r"] {
        let body = format!(
            r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"mcp__a__open","arguments":{{"a":[{end}{smuggled}{end}]}}}}}}"#
        );
        let answer = line.post(&session, &body).json();
        assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("hidden"));
    }
    for noted in fs::read_to_string(&notes).unwrap().lines() {
        assert!(!noted.starts_with(r#"{"jsonrpc":"2.0","id":99"#), "{noted}");
    }
}

/// And the other way: a server that writes its JSON over several lines is not cut off after the first.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_over_several_lines_arrives_whole_on_every_stream() {
    let pretty = "{\n  \"content\": [\n    { \"type\": \"text\", \"text\": \"a\\nb\" }\n  ]\n}";
    let plan = Plan::legacy().tool("t", Act::Result(pretty.to_owned()));
    let running = Running::http(plan.tool("says", Act::Say(1))).await;
    let folder = Folder::workspace(&json!({ "a": { "url": running.url } }));
    let serving = Serving::start(folder.path());
    let old = client(at("s", Transport::Sse, &serving.url("/sse")));
    assert_eq!(old.call_tool("s", "mcp__a__t", None).await.unwrap().text(), "a\nb");
    old.close().await;
    let session = serving.session(&[], "2025-11-25");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "mcp__a__says", "_meta": { "progressToken": "t" } } });
    let with = [("Mcp-Session-Id", session.as_str())];
    let stream = serving.post(&with, &body).body;
    let data: Vec<&str> = stream.lines().filter(|it| it.starts_with("data: {")).collect();
    assert_eq!(data.len(), 3, "{stream}");
    for text in data {
        assert!(serde_json::from_str::<serde_json::Value>(&text[6..]).is_ok(), "{stream}");
    }
}

#[test]
fn a_file_that_is_being_written_does_not_open_the_door() {
    let folder = two_servers();
    folder.write("network.yaml", GROUPS);
    let serving = Serving::start_with(folder.path(), &MAIN);
    for text in ["", "\n", "external_access: {}", "external_access: [", "listen: 127.0.0.1:1"] {
        folder.write("network.yaml", text);
        serving.signal("-HUP");
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(serving.get("/readyz", &[]).status, 401, "{text:?}");
        assert_eq!(serving.get("/readyz", &[ANALYST]).status, 200, "{text:?}");
    }
    fs::remove_file(folder.file("network.yaml")).unwrap();
    serving.signal("-HUP");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(serving.get("/readyz", &[]).status, 401);
}

#[test]
fn other_groups_come_and_go_and_a_session_stays() {
    let folder = two_servers();
    let beta = "    beta: { auth_token: beta-token }\n    analyst:";
    folder.write("network.yaml", GROUPS.replace("    analyst:", beta));
    let serving = Serving::start_with(folder.path(), &MAIN);
    let session = serving.session(&[ANALYST], "2025-11-25");
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    let with = [ANALYST, ("Mcp-Session-Id", session.as_str())];
    let before = serving.post(&with, &list);
    assert_eq!(before.status, 200);
    let alpha = "    aaa: { auth_token: alpha-token }\n    analyst:";
    folder.write("network.yaml", GROUPS.replace("    analyst:", alpha));
    serving.signal("-HUP");
    let beta = [("Authorization", "Bearer beta-token")];
    soon("the new rules hold", || serving.get("/readyz", &beta).status == 401);
    assert_eq!(serving.post(&with, &list).body, before.body);
}

#[test]
fn a_stream_of_a_removed_token_ends() {
    let folder = two_servers();
    folder.write("network.yaml", GROUPS);
    let serving = Serving::start_with(folder.path(), &MAIN);
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen",
        "params": { "_meta": meta, "notifications": { "toolsListChanged": true } } })
    .to_string();
    let mut socket = TcpStream::connect(&serving.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(8))).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer analyst-token\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: subscriptions/listen\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        serving.address,
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    folder.write("network.yaml", GROUPS.replace("analyst-token", "another-token"));
    serving.signal("-HUP");
    let mut stream = String::new();
    socket.read_to_string(&mut stream).expect("the stream ends");
    assert!(stream.contains("notifications/subscriptions/acknowledged"), "{stream}");
}

#[test]
fn a_client_that_does_not_read_does_not_keep_the_gateway_alive() {
    let folder = Folder::workspace(&json!({
        "a": entry(&Plan::legacy().tool("big", Act::Big(30_000_000))),
    }));
    let mut serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "mcp__a__big" } }).to_string();
    let mut socket = TcpStream::connect(&serving.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        serving.address,
        body.len()
    );
    socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_secs(2));
    serving.signal("-TERM");
    std::thread::sleep(Duration::from_millis(500));
    // Whoever says it twice does not want to wait.
    serving.signal("-TERM");
    let begin = Instant::now();
    serving.child.wait().unwrap();
    assert!(begin.elapsed() < Duration::from_secs(10));
    drop(socket);
}

#[test]
fn an_id_in_use_is_refused_also_where_progress_is_wanted() {
    let folder = two_servers();
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let with = [("Mcp-Session-Id", session.as_str())];
    let call = |id: u32| {
        json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "mcp__a__hang", "_meta": { "progressToken": 1 } } })
    };
    let mut first = TcpStream::connect(&serving.address).unwrap();
    let body = call(5).to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        serving.address,
        body.len()
    );
    first.write_all(format!("{head}{body}").as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    let second = serving.post(&with, &call(5));
    assert_eq!(second.json()["error"]["code"], -32600, "{second:?}");
    drop(first);
}

#[test]
fn a_change_while_nobody_listened_is_told_when_somebody_does() {
    let folder = Folder::workspace(&json!({
        "a": entry(&Plan::legacy().tool("add", Act::Add("late".to_owned()))),
    }));
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let with = [("Mcp-Session-Id", session.as_str())];
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" });
    assert!(!serving.post(&with, &list).body.contains("late"));
    let add = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "mcp__a__add" } });
    serving.post(&with, &add);
    let other = serving.session(&[], "2025-11-25");
    let others = [("Mcp-Session-Id", other.as_str())];
    soon("the tool is there", || serving.post(&others, &list).body.contains("late"));
    let mut socket = TcpStream::connect(&serving.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n",
        serving.address
    );
    socket.write_all(head.as_bytes()).unwrap();
    let mut heard = String::new();
    let mut buffer = [0; 1024];
    while !heard.contains("notifications/tools/list_changed") {
        let read = socket.read(&mut buffer).expect("it is told");
        heard.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
}

#[test]
fn an_old_client_that_only_asks_is_told_to_wait() {
    let folder = two_servers();
    let serving = Serving::start(folder.path());
    let mut stream = TcpStream::connect(&serving.address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let head = format!("GET /sse HTTP/1.1\r\nHost: {}\r\n\r\n", serving.address);
    stream.write_all(head.as_bytes()).unwrap();
    let mut heard = String::new();
    let mut buffer = [0; 1024];
    while !heard.contains("/messages?session=") || !heard.ends_with("\n\r\n") {
        let read = stream.read(&mut buffer).unwrap();
        heard.push_str(&String::from_utf8_lossy(&buffer[..read]));
    }
    let path = heard.split("data: ").nth(1).unwrap().split('\n').next().unwrap().to_owned();
    let mut answers = std::collections::BTreeMap::new();
    for id in 0..1_100 {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": "mcp__a__hang" } });
        let status = serving.request("POST", &path, &[], &body.to_string()).status;
        *answers.entry(status).or_insert(0) += 1;
    }
    assert_eq!(answers, [(202, 1_024), (503, 76)].into());
}
