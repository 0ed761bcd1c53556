//! I5 and I6: clients that send next to nothing, and clients that do not read.

use std::{
    fs,
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    process::Command,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use serde_json::json;
use toolcrib_testkit::{Act, Plan};

use super::{evil::on_stdio, framing::memory, is_full};
use crate::{
    kit::{Folder, entry},
    serving::{Line, Serving},
};

/// How many files a process may have open from now on.
fn raise(id: u32, files: usize) {
    let given = format!("--nofile={files}:{files}");
    let raised = Command::new("prlimit").args(["--pid", &id.to_string(), &given]).status();
    assert!(raised.is_ok_and(|it| it.success()), "the full run needs {files} open files");
}

/// Whether the other side has closed; what it says before that is passed over.
fn is_closed(socket: &mut TcpStream) -> bool {
    let mut buffer = [0; 1024];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() != ErrorKind::WouldBlock,
        }
    }
}

/// Five thousand in the full run, where the others' times are looked at too.
#[test]
fn i05_who_sends_next_to_nothing_is_sent_away_and_others_are_served() {
    let count = if is_full() { 5_000 } else { 240 };
    let folder = Folder::workspace(&json!({ "a": entry(&Plan::legacy().tool("echo", Act::Echo)) }));
    let serving = Serving::start(folder.path());
    if is_full() {
        raise(serving.child.id(), 12_000);
        raise(std::process::id(), 12_000);
    }
    let host = &serving.address;
    let begins = [
        String::new(),
        "P".to_owned(),
        format!("POST /mcp HTTP/1.1\r\nHost: {host}\r\nX-Slow: "),
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
        ),
    ];
    let session = serving.session(&[], "2025-11-25");
    let body = super::call(1, "mcp__a__echo").to_string();
    let over = AtomicBool::new(false);
    let (slowest, left, mut times) = std::thread::scope(|scope| {
        let good = scope.spawn(|| {
            let (mut line, mut times) = (Line::open(&serving), Vec::new());
            while !over.load(Ordering::Relaxed) {
                let begin = Instant::now();
                assert_eq!(line.post(&session, &body).status, 200);
                times.push(begin.elapsed());
                std::thread::sleep(Duration::from_millis(10));
            }
            times
        });
        let mut open: Vec<(TcpStream, Instant)> = (0..count)
            .map(|at| {
                let mut socket = TcpStream::connect(host).unwrap();
                socket.set_nonblocking(true).unwrap();
                socket.write_all(begins[at % begins.len()].as_bytes()).unwrap();
                (socket, Instant::now())
            })
            .collect();
        let (mut slowest, mut said) = (Duration::ZERO, Instant::now());
        // Whoever is still there then stays: the other thread must hear of the end before that is told.
        while !open.is_empty() && slowest < Duration::from_secs(40) {
            std::thread::sleep(Duration::from_millis(100));
            if Duration::from_secs(8) < said.elapsed() {
                said = Instant::now();
                // One more byte keeps nobody alive. Whoever is closed will not take it.
                open.iter_mut().for_each(|(socket, _)| drop(socket.write(b"x")));
            }
            open.retain_mut(|(socket, since)| {
                let closed = is_closed(socket);
                slowest = slowest.max(since.elapsed());
                !closed
            });
        }
        over.store(true, Ordering::Relaxed);
        (slowest, open.len(), good.join().unwrap())
    });
    assert_eq!(left, 0, "so many stay open");
    times.sort();
    let most = times[times.len() * 99 / 100];
    println!(
        "{count} were closed within {slowest:?}; 99 % of {} calls within {most:?}",
        times.len()
    );
    assert!(!is_full() || slowest < Duration::from_secs(12), "{slowest:?}");
    assert!(!is_full() || most < Duration::from_millis(100), "{most:?}");
}

/// The sockets that a process has open.
fn sockets(id: u32) -> usize {
    let files = fs::read_dir(format!("/proc/{id}/fd")).unwrap().flatten();
    let links = files.filter_map(|it| fs::read_link(it.path()).ok());
    links.filter(|it| it.to_string_lossy().starts_with("socket:")).count()
}

/// Ways on which messages come to a client.
#[derive(Debug, Clone, Copy)]
enum Way {
    Legacy,
    Modern,
    Old,
}

/// A call whose answer is a stream of so many messages of so many bytes.
fn flood(serving: &Serving, bytes: usize, count: usize) -> TcpStream {
    flood_on(serving, Way::Legacy, bytes, count)
}

/// The same on another way. What is returned is where its messages come.
fn flood_on(serving: &Serving, way: Way, bytes: usize, count: usize) -> TcpStream {
    let params = json!({ "name": "mcp__evil__flood", "_meta": { "progressToken": 1 },
        "arguments": { "bytes": bytes, "count": count } });
    let mut request = super::request(1, "tools/call", params);
    let mut headers = "Accept: application/json, text/event-stream\r\n".to_owned();
    match way {
        Way::Legacy => {
            let session = serving.session(&[], "2025-11-25");
            headers.push_str(&format!("Mcp-Session-Id: {session}\r\n"));
        }
        Way::Modern => {
            for (name, value) in super::modern_headers("tools/call") {
                headers.push_str(&format!("{name}: {value}\r\n"));
            }
            headers.push_str("Mcp-Name: mcp__evil__flood\r\n");
            let meta = &mut request["params"]["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        }
        Way::Old => {
            let old = super::Old::open(serving, ("X-Nothing", "1"));
            let sent = serving.request("POST", &old.path, &[], &request.to_string());
            assert_eq!(sent.status, 202, "{sent:?}");
            return old.reader.into_inner();
        }
    }
    let body = request.to_string();
    let mut socket = TcpStream::connect(&serving.address).unwrap();
    let (host, length) = (&serving.address, body.len());
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    );
    socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
    socket
}

/// Reads until the answer is there; returns how many bytes of messages came before it.
fn read_to_the_answer(mut reader: TcpStream) -> usize {
    reader.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let (mut heard, mut buffer, mut messages) = (Vec::new(), vec![0; 65536], 0);
    while !String::from_utf8_lossy(&heard).contains("flooded") {
        let read = reader.read(&mut buffer).unwrap();
        assert_ne!(read, 0, "it ended");
        messages += buffer[..read].iter().filter(|it| **it == b'z').count();
        heard = [&heard[heard.len().saturating_sub(100)..], &buffer[..read]].concat();
    }
    messages
}

/// 64 MB of messages for a client that does not read.
#[test]
fn i06_who_does_not_read_costs_little_and_is_sent_away() {
    const MIB: u64 = 1024 * 1024;
    let (bytes, count) = (16_000, 2_000);
    let folder = Folder::new();
    let server = on_stdio(&folder, json!({}));
    folder.write("mcp.json", json!({ "mcpServers": { "evil": server } }).to_string());
    let serving = Serving::start(folder.path());
    let id = serving.child.id();
    // One who reads: what a flood costs anyway.
    read_to_the_answer(flood(&serving, bytes, count));
    std::thread::sleep(Duration::from_millis(500));
    let (before, open, begin) = (memory(id), sockets(id), Instant::now());
    let mut silent = flood(&serving, bytes, count);
    let mut most = 0;
    while begin.elapsed() < Duration::from_secs(8) || open < sockets(id) {
        most = most.max(memory(id).saturating_sub(before));
        assert!(begin.elapsed() < Duration::from_secs(60), "it stays open");
        std::thread::sleep(Duration::from_millis(50));
    }
    let took = begin.elapsed();
    println!("{most} bytes more, closed after {took:?}");
    // The allocator takes memory by steps of 4 MB.
    assert!(most < 8 * MIB, "{most} bytes wait for who does not read");
    assert!(!is_full() || took < Duration::from_secs(40), "{took:?}");
    let mut rest = Vec::new();
    silent.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    silent.read_to_end(&mut rest).ok();
    assert!(!String::from_utf8_lossy(&rest).contains("flooded"), "it was cut off");
    // And others are served.
    read_to_the_answer(flood(&serving, 10, 10));
}

/// Messages of which 64, as many as may wait, are 13 MB; on each way.
#[test]
fn i06_large_messages_wait_by_their_bytes_and_one_alone_gets_through() {
    const MIB: u64 = 1024 * 1024;
    const WAYS: [Way; 3] = [Way::Legacy, Way::Modern, Way::Old];
    let (bytes, count) = (200_000, 70);
    let folder = Folder::new();
    let server = on_stdio(&folder, json!({}));
    folder.write("mcp.json", json!({ "mcpServers": { "evil": server } }).to_string());
    let serving = Serving::start(folder.path());
    let id = serving.child.id();
    for way in WAYS {
        read_to_the_answer(flood_on(&serving, way, bytes, count));
        // Three times as large as what may wait.
        let heard = read_to_the_answer(flood_on(&serving, way, 3 * 1024 * 1024, 1));
        assert!(3 * 1024 * 1024 <= heard, "{way:?}: {heard} bytes");
    }
    std::thread::sleep(Duration::from_millis(500));
    let (before, open, begin) = (memory(id), sockets(id), Instant::now());
    let mut silent: Vec<TcpStream> =
        WAYS.iter().cycle().take(6).map(|it| flood_on(&serving, *it, bytes, count)).collect();
    let mut most = 0;
    while begin.elapsed() < Duration::from_secs(8) || open < sockets(id) {
        most = most.max(memory(id).saturating_sub(before));
        assert!(begin.elapsed() < Duration::from_secs(100), "some stay open");
        std::thread::sleep(Duration::from_millis(50));
    }
    println!("{most} bytes more for {} clients, closed after {:?}", silent.len(), begin.elapsed());
    // 2 MiB each, and what the allocator takes at a time.
    assert!(most < 20 * MIB, "{most} bytes wait for who does not read");
    for socket in &mut silent {
        let mut rest = Vec::new();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        socket.read_to_end(&mut rest).ok();
        assert!(!String::from_utf8_lossy(&rest).contains("flooded"), "it was cut off");
    }
    read_to_the_answer(flood(&serving, 10, 10));
}
