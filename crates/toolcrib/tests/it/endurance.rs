//! Many clients, for a while: nothing grows that should not. The counts are large only in the full run
//! (`TOOLCRIB_FULL`).

mod calls;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    time::Duration,
};

use serde_json::json;
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry},
    serving::{Line, Serving},
};

fn full() -> bool {
    std::env::var_os("TOOLCRIB_FULL").is_some()
}

/// What a process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    kilobytes: f64,
    descriptors: usize,
    threads: usize,
}

impl Held {
    fn by(serving: &Serving) -> Self {
        let process = format!("/proc/{}", serving.child.id());
        let status = fs::read_to_string(format!("{process}/status")).unwrap();
        let number = |name: &str| {
            let line = status.lines().find(|it| it.starts_with(name)).unwrap();
            line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap()
        };
        Self {
            kilobytes: number("RssAnon:"),
            descriptors: fs::read_dir(format!("{process}/fd")).unwrap().count(),
            threads: fs::read_dir(format!("{process}/task")).unwrap().count(),
        }
    }
}

/// A client without manners: it comes, calls, and is gone, with its stream open and no word of farewell.
fn visit(serving: &Serving, kind: usize) {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "mcp__a__echo", "arguments": { "x": 1 } } });
    match kind {
        // Modern, and gone in the middle of a call.
        0 => {
            let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
                "io.modelcontextprotocol/clientCapabilities": {} });
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
                "params": { "name": "mcp__a__hang", "_meta": meta } })
            .to_string();
            let mut socket = TcpStream::connect(&serving.address).unwrap();
            let head = format!(
                "POST /mcp HTTP/1.1\r\nHost: {}\r\nMCP-Protocol-Version: 2026-07-28\r\nMcp-Method: tools/call\r\nMcp-Name: mcp__a__hang\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                serving.address,
                body.len()
            );
            socket.write_all(head.as_bytes()).unwrap();
        }
        // HTTP+SSE, and gone with the stream open.
        1 => {
            let mut socket = TcpStream::connect(&serving.address).unwrap();
            let head = format!("GET /sse HTTP/1.1\r\nHost: {}\r\n\r\n", serving.address);
            socket.write_all(head.as_bytes()).unwrap();
            let mut line = String::new();
            BufReader::new(socket).read_line(&mut line).unwrap();
        }
        // Legacy: a session that is ended in good order.
        _ => {
            let session = serving.session(&[], "2025-11-25");
            let mut line = Line::open(serving);
            assert!(line.post(&session, &body.to_string()).body.contains("\"result\""));
            let ended = serving.request("DELETE", "/mcp", &[("Mcp-Session-Id", &session)], "");
            assert_eq!(ended.status, 200);
        }
    }
}

#[test]
fn clients_that_come_and_go_leave_nothing_behind() {
    let plan = Plan::legacy().tool("echo", Act::Echo).tool("hang", Act::Hang);
    let folder = Folder::workspace(&json!({ "a": entry(&plan) }));
    let serving = Serving::start(folder.path());
    let clients = if full() { 1_000 } else { 150 };
    let mut rounds = Vec::new();
    for _ in 0..5 {
        (0..clients).for_each(|it| visit(&serving, it % 3));
        // What is gone is noticed soon.
        std::thread::sleep(Duration::from_millis(1_500));
        rounds.push(Held::by(&serving));
    }
    println!("{rounds:#?}");
    let (second, fifth) = (rounds[1], rounds[4]);
    let within = |before: f64, after: f64| after <= before * 1.05;
    assert!(within(second.descriptors as f64 + 2.0, fifth.descriptors as f64), "{rounds:#?}");
    assert!(fifth.threads <= second.threads + 1, "{rounds:#?}");
    // A few pages may come and go; with few clients they would be more than the rest.
    assert!(within(second.kilobytes + 256.0, fifth.kilobytes), "{rounds:#?}");
}

/// Sessions that nobody uses cost little, and the gateway answers as before.
#[test]
fn idle_sessions_cost_little() {
    let folder = Folder::workspace(&json!({ "a": entry(&Plan::legacy().tool("echo", Act::Echo)) }));
    let serving = Serving::start(folder.path());
    // The allocator takes memory by steps of 4 MB: few sessions would seem to cost all of one.
    let count = if full() { 10_000 } else { 3_000 };
    let before = Held::by(&serving);
    let mut line = Line::open(&serving);
    let initialize = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } } })
    .to_string();
    let sessions: Vec<String> =
        (0..count).map(|_| line.post("", &initialize).header("mcp-session-id").unwrap()).collect();
    let after = Held::by(&serving);
    let each = (after.kilobytes - before.kilobytes) * 1024.0 / f64::from(count);
    println!("{each:.0} bytes a session; {before:?} {after:?}");
    assert!(each < 4096.0, "{each} bytes a session");
    assert!(after.descriptors <= before.descriptors + 2);
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "mcp__a__echo" } });
    for session in sessions.iter().step_by(97) {
        assert!(line.post(session, &call.to_string()).body.contains("\"result\""));
    }
}
