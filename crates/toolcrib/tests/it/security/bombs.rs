//! Messages that are made to hurt whoever reads them, or to be read in two ways.

use std::{
    io::{BufReader, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use super::{framing::memory, is_full};
use crate::{
    guarded::calls,
    kit::{Folder, entry},
    serving::Serving,
};

const TEXT: &str =
    r#"{"type":"object","properties":{"v":{"type":"string","pattern":"^[^\\u0000]*$"}}}"#;
const BOUNDED: &str =
    r#"{"type":"object","properties":{"v":{"type":"integer","maximum":9007199254740992}}}"#;

/// A gateway over one server that gives back what it gets, and notes it.
struct World {
    serving: Serving,
    session: String,
    folder: Folder,
}

impl World {
    fn start() -> Self {
        Self::with(Plan::legacy())
    }

    fn with(plan: Plan) -> Self {
        let folder = Folder::new();
        let plan =
            plan.tool("mirror", Act::Mirror).tool("echo", Act::Echo).tool("hidden", Act::Echo);
        let plan = plan.tool_with("text", TEXT, Act::Echo).tool_with("bounded", BOUNDED, Act::Echo);
        let plan = plan.notes(folder.file("notes"));
        folder.write("mcp.json", json!({ "mcpServers": { "s": entry(&plan) } }).to_string());
        folder.write("network.yaml", "external_access: { excluded_tools: ['*__hidden'] }\n");
        let serving = Serving::start(folder.path());
        let session = serving.session(&[], "2025-11-25");
        Self { serving, session, folder }
    }

    /// Posts these bytes; the status, and the answer.
    fn post(&self, body: &[u8]) -> (u16, String) {
        self.post_in(&self.session, body)
    }

    fn post_in(&self, session: &str, body: &[u8]) -> (u16, String) {
        let mut socket = TcpStream::connect(&self.serving.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/json\r\n\
             Mcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n",
            self.serving.address,
            body.len()
        );
        socket.write_all(&[head.as_bytes(), body].concat()).unwrap();
        let mut heard = String::new();
        BufReader::new(socket).read_to_string(&mut heard).unwrap();
        let status = heard.split(' ').nth(1).unwrap().parse().unwrap();
        (status, heard.split_once("\r\n\r\n").unwrap().1.to_owned())
    }

    /// Posts a text that is refused with this code, before anybody hears of it.
    #[track_caller]
    fn refused(&self, body: &[u8], status: u16, code: i64) {
        let before = self.calls();
        let (found, text) = self.post(body);
        let shown = String::from_utf8_lossy(&body[..body.len().min(300)]);
        let answer: Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{shown}: {text}"));
        assert_eq!((found, &answer["error"]["code"]), (status, &json!(code)), "{shown}: {text}");
        assert!(text.len() < 1_000, "{shown}: {text}");
        assert_eq!(self.calls(), before, "{shown}");
    }

    fn calls(&self) -> usize {
        calls(&self.folder.file("notes"))
    }
}

/// A call with these arguments, as text.
fn call(tool: &str, arguments: &str) -> Vec<u8> {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"mcp__s__{tool}","arguments":{arguments}}}}}"#
    )
    .into_bytes()
}

fn lists(depth: usize) -> String {
    format!("{}{}", "[".repeat(depth), "]".repeat(depth))
}

#[test]
fn e01_depth_is_bounded_in_both_directions() {
    let line = |inside: &str| {
        Act::Line(format!(
            r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"content":[],"structuredContent":{{"v":{inside}}}}}}}"#
        ))
    };
    // Three containers are around what is nested.
    let plan = Plan::legacy().tool("deep", line(&lists(124))).tool("deeper", line(&lists(125)));
    let world = World::with(plan.tool("abyss", line(&"[".repeat(100_000))));
    let (status, text) = world.post(&call("mirror", &format!(r#"{{"v":{}}}"#, lists(124))));
    assert!(status == 200 && text.contains(&lists(124)), "{text}");
    let begin = Instant::now();
    for inside in [lists(125), lists(100_000), "[".repeat(100_000), "{\"a\":".repeat(100_000)] {
        world.refused(&call("mirror", &format!(r#"{{"v":{inside}}}"#)), 400, -32700);
    }
    assert!(!is_full() || begin.elapsed() < Duration::from_millis(200), "{:?}", begin.elapsed());
    let (_, text) = world.post(&call("deep", "{}"));
    assert!(text.contains(&lists(124)), "{text}");
    for tool in ["deeper", "abyss"] {
        let (status, text) = world.post(&call(tool, "{}"));
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &answer["result"]["isError"]), (200, &json!(true)), "{text}");
        assert!(text.contains("nested deeper than 127") && text.len() < 2_000, "{text}");
        assert_eq!(answer["result"]["_meta"]["toolcrib/blame"], "upstream", "{text}");
    }
    assert_eq!(world.post(&call("echo", "{}")).0, 200);
}

#[test]
fn e02_a_body_that_does_not_end_is_cut_off_while_it_comes() {
    let world = World::start();
    let send = |encoding: &str, chunk: &[u8]| {
        let mut socket = TcpStream::connect(&world.serving.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{encoding}\r\n\r\n",
            world.serving.address
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut reader = socket.try_clone().unwrap();
        let heard = std::thread::spawn(move || {
            let mut heard = vec![0; 64];
            let read = reader.read(&mut heard).unwrap_or(0);
            String::from_utf8_lossy(&heard[..read]).into_owned()
        });
        let sent = (0..100).take_while(|_| socket.write_all(chunk).is_ok()).count();
        (heard.join().unwrap(), sent)
    };
    let million = "[".repeat(1_000_000);
    let chunk = format!("{:x}\r\n{million}\r\n", million.len());
    let round = || {
        for (encoding, chunk) in
            [("Content-Length: 100000000", &million), ("Transfer-Encoding: chunked", &chunk)]
        {
            let (heard, sent) = send(encoding, chunk.as_bytes());
            assert!(heard.starts_with("HTTP/1.1 413 "), "{encoding}: {heard:?} after {sent} MB");
            assert!(sent < 100, "{encoding}: it was heard out");
        }
    };
    (0..3).for_each(|_| round());
    let before = memory(world.serving.child.id());
    (0..10).for_each(|_| round());
    let grown = memory(world.serving.child.id()).saturating_sub(before);
    println!("{grown} bytes more");
    assert!(grown < 8 << 20, "{grown} bytes more");
    assert_eq!(world.post(&call("echo", "{}")).0, 200);
}

#[test]
fn e03_a_key_that_stands_twice_reaches_nobody() {
    let world = World::start();
    for body in [
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"mcp__s__echo"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp__s__echo","name":"hidden"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"mcp__s__echo","nam\u0065":"hidden"}}"#,
        r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"mcp__s__echo"}}"#,
    ] {
        world.refused(body.as_bytes(), 400, -32700);
    }
    for arguments in [r#"{"a":1,"a":2}"#, r#"{"b":[{"a":1,"\u0061":2}]}"#, r#"{"é":1,"\u00e9":2}"#]
    {
        world.refused(&call("echo", arguments), 400, -32700);
    }
}

#[test]
fn e04_keys_are_exact_and_what_resembles_ours_goes_no_further() {
    let world = World::start();
    let with = |members: &str| format!(r#"{{"jsonrpc":"2.0","id":1,{members}}}"#).into_bytes();
    let params = r#"{"name":"mcp__s__echo","arguments":{}}"#;
    world.refused(&with(&format!(r#""Method":"tools/call","params":{params}"#)), 400, -32600);
    // Without params there is no name.
    for odd in ["Params", "param\u{17f}", "param\\u017f"] {
        world.refused(&with(&format!(r#""method":"tools/call","{odd}":{params}"#)), 200, -32602);
    }
    // Beside the right ones, what another reader may take for them.
    for odd in [
        r#""Name":"hidden""#,
        r#""NAME":"hidden""#,
        r#""\u004eame":"hidden""#,
        r#""Arguments":{"a":1}"#,
        "\"argument\u{17f}\":{\"a\":1}",
        r#""_Meta":{}"#,
    ] {
        let params = format!(r#"{{"name":"mcp__s__echo",{odd}}}"#);
        world.refused(&with(&format!(r#""method":"tools/call","params":{params}"#)), 200, -32602);
    }
    // What nobody takes for ours is nobody's business, and what goes on says `name` once.
    let params = r#"{"name":"mcp__s__echo","names":"x","arguments":{"Name":1}}"#;
    let (status, text) = world.post(&with(&format!(r#""method":"tools/call","params":{params}"#)));
    assert!(status == 200 && text.contains(r#"{\"Name\":1}"#), "{text}");
    let odd = r#""Jsonrpc":"1.0","Id":7,"Method":"ping","method":"tools/call""#;
    assert_eq!(world.post(&with(&format!(r#"{odd},"params":{params}"#))).0, 200);
    let notes = std::fs::read_to_string(world.folder.file("notes")).unwrap();
    assert!(!notes.contains("Method") && !notes.contains("Jsonrpc"), "{notes}");
    assert_eq!(world.calls(), 2);
}

#[test]
fn e05_numbers_arrive_digit_for_digit() {
    let world = World::start();
    let long = "1".repeat(1 << 20);
    let numbers =
        ["1e309", "-1E+400", "18446744073709551616", "9007199254740993", "1e-400", "0.10"];
    for number in numbers.into_iter().chain([long.as_str()]) {
        let (status, text) = world.post(&call("mirror", &format!(r#"{{"v":{number}}}"#)));
        let shown = &text[..text.len().min(200)];
        assert_eq!(status, 200, "{shown}");
        let expected = format!(r#""structuredContent":{{"v":{number}}}"#);
        assert!(text.contains(&expected), "{shown}");
    }
    let before = world.calls();
    // Whoever wants bounds says so in the schema.
    for number in ["1e309", "18446744073709551616", "9007199254740993", "1e-400", &long] {
        let (_, text) = world.post(&call("bounded", &format!(r#"{{"v":{number}}}"#)));
        let answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["result"]["_meta"]["toolcrib/blame"], "caller", "{answer}");
        assert!(text.len() < 2_000);
    }
    assert_eq!(world.calls(), before);
    for number in ["01", "+1", "1.", ".5", "1e", "0x10", "NaN", "Infinity", "-"] {
        world.refused(&call("mirror", &format!(r#"{{"v":{number}}}"#)), 400, -32700);
    }
}

#[test]
fn e06_bytes_that_are_no_text_get_a_defined_error() {
    let world = World::start();
    let good = call("echo", r#"{"v":"x"}"#);
    let with = |inside: &[u8]| {
        let at = good.iter().rposition(|it| *it == b'x').unwrap();
        [&good[..at], inside, &good[at + 1..]].concat()
    };
    for inside in [
        &b"\xff"[..],
        b"\xc3",
        b"\xed\xa0\x80",
        b"\xc0\xaf",
        b"\xf5\x80\x80\x80",
        b"\\ud800",
        b"\\udc00x",
        b"\\ud800\\ud800",
        b"\0",
        b"\n",
        b"\\x",
    ] {
        world.refused(&with(inside), 400, -32700);
    }
    for (before, after) in
        [(&b"\xef\xbb\xbf"[..], &b""[..]), (b"", b"x"), (b"", b"{}"), (b"", b"\0")]
    {
        world.refused(&[before, &good, after].concat(), 400, -32700);
    }
    // A NUL that is written out is text like any other, unless the schema says otherwise.
    let (status, text) = world.post(&with(b"\\u0000"));
    assert!(status == 200 && text.contains(r#"\\u0000"#), "{text}");
    let before = world.calls();
    let (_, text) = world.post(&call("text", r#"{"v":"a\u0000b"}"#));
    assert!(text.contains("pattern") && text.contains(r#""isError":true"#), "{text}");
    assert_eq!(world.calls(), before);
}

#[test]
fn e07_large_batches_and_odd_ids_are_refused() {
    let world = World::start();
    let ping = |id: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
    let batch = format!("[{}]", vec![ping("1"); 10_000].join(","));
    for revision in ["2025-03-26", "2025-11-25"] {
        let session = world.serving.session(&[], revision);
        let (status, text) = world.post_in(&session, batch.as_bytes());
        assert!(status == 400 && text.contains("-32600") && text.len() < 1_000, "{text}");
    }
    let long = format!("\"{}\"", "x".repeat(1 << 20));
    let too_long = format!("\"{}\"", "x".repeat(255));
    for id in ["null", "1.5", "1e3", "{}", "[1]", "true", &long, &too_long] {
        world.refused(ping(id).as_bytes(), 400, -32600);
    }
    let longest = format!("\"{}\"", "x".repeat(254));
    for id in ["0", "-7", "\"\"", "18446744073709551616", &longest] {
        let (status, text) = world.post(ping(id).as_bytes());
        assert!(status == 200 && text.contains(&format!(r#""id":{id},"#)), "{text}");
    }
}
