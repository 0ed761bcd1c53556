//! A11, A13 and A14: requests that two readers could read in two ways, that are too large, or that are
//! not HTTP/1.1 at all. All by hand, on a socket.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

use super::{A, World, call, is_full};
use crate::serving::{Line, Serving};

/// Sends bytes, and returns all that comes back until the other side closes.
#[track_caller]
fn exchange(serving: &Serving, bytes: &[u8]) -> String {
    let mut socket = TcpStream::connect(&serving.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    // It may close before it has read everything.
    socket.write_all(bytes).ok();
    let mut heard = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match socket.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => heard.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
            Err(error) => panic!("it stays open: {error}, {}", String::from_utf8_lossy(&heard)),
        }
    }
    String::from_utf8_lossy(&heard).into_owned()
}

fn status(answer: &str) -> u16 {
    answer.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0)
}

/// A request that is not quite one, with another right behind it.
#[test]
fn a11_a_request_of_two_readings_is_refused_and_what_follows_is_not_read() {
    let world = World::start();
    let session = world.session(A);
    let body = call(1, "mcp__a__echo").to_string();
    let (host, (name, token), length) = (&world.serving.address, A, body.len());
    let next = format!("GET /healthz HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {host}\r\n{name}: {token}\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\n"
    );
    let chunks = format!("{length:x}\r\n{body}\r\n0\r\n\r\n");
    let both = chunks.len();
    let bare = head.replace("\r\n", "\n");
    let short = length - 1;
    for (what, text) in [
        (
            "both, the length first",
            format!("Content-Length: {both}\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"),
        ),
        (
            "both, the length last",
            format!("Transfer-Encoding: chunked\r\nContent-Length: {both}\r\n\r\n{chunks}"),
        ),
        (
            "two lengths",
            format!("Content-Length: {length}\r\nContent-Length: {short}\r\n\r\n{body}"),
        ),
        (
            "one length twice",
            format!("Content-Length: {length}\r\nContent-Length: {length}\r\n\r\n{body}"),
        ),
        ("a list of lengths", format!("Content-Length: {length}, {length}\r\n\r\n{body}")),
        ("a signed length", format!("Content-Length: +{length}\r\n\r\n{body}")),
        ("a space before the colon", format!("Content-Length : {length}\r\n\r\n{body}")),
        ("an unknown encoding", format!("Transfer-Encoding: xchunked\r\n\r\n{chunks}")),
        ("a folded line", format!("X-Folded: a\r\n b\r\nContent-Length: {length}\r\n\r\n{body}")),
        ("a line that ends with LF", format!("X-Bare: a\nContent-Length: {length}\r\n\r\n{body}")),
        ("a head that ends with LF", format!("Content-Length: {length}\r\n\n{body}")),
        ("a CR of its own", format!("X-Bare: a\rb\r\nContent-Length: {length}\r\n\r\n{body}")),
    ] {
        let heard = exchange(&world.serving, format!("{head}{text}{next}").as_bytes());
        assert_eq!(status(&heard), 400, "{what}: {heard}");
        assert_eq!(heard.matches("HTTP/1.1").count(), 1, "{what}: {heard}");
    }
    let heard = exchange(
        &world.serving,
        format!("{bare}Content-Length: {length}\n\n{body}{next}").as_bytes(),
    );
    assert_eq!((status(&heard), heard.matches("HTTP/1.1").count()), (400, 1), "all LF: {heard}");
    assert_eq!(world.calls(), 0);
    // The same in a way that has one reading, also in pieces, and the second of two.
    let last = next.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let sized = format!("{head}Content-Length: {length}\r\n\r\n{body}");
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n{chunks}");
    let heard = exchange(&world.serving, format!("{sized}{chunked}{sized}{last}").as_bytes());
    assert_eq!(heard.matches("HTTP/1.1 200").count(), 4, "{heard}");
    assert_eq!(world.calls(), 3);
    let bad = head.replace("Content-Type", "X-Bare: a\nContent-Type");
    let heard = exchange(&world.serving, format!("{sized}{bad}\r\n{next}").as_bytes());
    assert_eq!(heard.matches("HTTP/1.1").count(), 2, "{heard}");
    assert_eq!((status(&heard), heard.contains("HTTP/1.1 400")), (200, true), "{heard}");
}

/// The memory that a process holds, in bytes.
pub(super) fn memory(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[test]
fn a13_a_head_that_is_too_large_is_refused_and_costs_nothing() {
    let world = World::start();
    let (host, (name, token)) = (&world.serving.address, A);
    let own = format!("Host: {host}\r\n{name}: {token}\r\n");
    let many: String = (0..1000).map(|at| format!("X-{at}: {at}\r\n")).collect();
    let long = format!("X-Long: {}\r\n", "x".repeat(64 * 1024));
    let query = "x".repeat(100 * 1024);
    let heads = [
        format!("GET /readyz HTTP/1.1\r\n{own}{many}\r\n"),
        format!("GET /readyz HTTP/1.1\r\n{own}{long}\r\n"),
        format!("GET /readyz?{query} HTTP/1.1\r\n{own}\r\n"),
    ];
    let round = || {
        for head in &heads {
            let heard = exchange(&world.serving, head.as_bytes());
            assert!(matches!(status(&heard), 414 | 431), "{heard}");
        }
    };
    // What a process takes for itself once is not what a request costs.
    (0..20).for_each(|_| round());
    let before = memory(world.serving.child.id());
    (0..100).for_each(|_| round());
    let grown = memory(world.serving.child.id()).saturating_sub(before);
    // The allocator takes memory by steps of 4 MB; what came in is over 20 MB.
    assert!(grown < 6 * 1024 * 1024, "{grown} bytes more");
    assert_eq!(world.serving.get("/readyz", &[A]).status, 200);
}

/// One frame of HTTP/2.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// What floods a server that speaks HTTP/2: streams reset as soon as they are opened, a head that
/// never ends, and data without any.
fn floods() -> [(&'static str, Vec<u8>); 3] {
    const COUNT: u32 = 2_000;
    let preface = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), &frame(4, 0, 0, &[])].concat();
    // `GET / http` out of the static table.
    let get = [0x82, 0x84, 0x86];
    let streams = (0..COUNT).map(|it| 2 * it + 1);
    let resets =
        streams.flat_map(|it| [frame(1, 5, it, &get), frame(3, 0, it, &[0, 0, 0, 8])].concat());
    let opened = |flags: u8| frame(1, flags, 1, &get);
    let endless = (0..COUNT).flat_map(|_| frame(9, 0, 1, b"\x00\x01a\x01b"));
    let empty = (0..COUNT).flat_map(|_| frame(0, 0, 1, &[]));
    [
        ("rapid reset", [preface.clone(), resets.collect()].concat()),
        ("continuation", [preface.clone(), opened(0), endless.collect()].concat()),
        ("empty data", [preface, opened(4), empty.collect()].concat()),
    ]
}

/// We speak HTTP/1.1 only: whoever comes with HTTP/2 is sent away before the first frame is read.
#[test]
fn a14_floods_of_http_2_end_at_the_door_and_others_are_served() {
    let world = World::start();
    let session = world.session(A);
    let with = [A, ("Mcp-Session-Id", session.as_str())];
    let body = call(1, "mcp__a__echo").to_string();
    let mut line = Line::open(&world.serving);
    let mut calls = |count: usize, time: Duration| {
        let begin = Instant::now();
        let mut times = Vec::new();
        while times.len() < count || begin.elapsed() < time {
            let begin = Instant::now();
            assert_eq!(line.post_with(&with, &body).status, 200);
            times.push(begin.elapsed());
        }
        times.sort();
        times[times.len() * 99 / 100]
    };
    // Rounds with and without a flood, one after the other: what else the machine does hits both.
    let (rounds, time) = if is_full() { (10, Duration::from_secs(1)) } else { (1, Duration::ZERO) };
    for (what, flood) in floods() {
        let begin = Instant::now();
        let heard = exchange(&world.serving, &flood);
        assert!(begin.elapsed() < Duration::from_secs(2), "{what}: it was heard out");
        assert!(!heard.contains(" 200 ") && !heard.contains(" 101 "), "{what}: {heard}");
        let (mut alone, mut flooded) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            alone.push(calls(100, time));
            let over = AtomicBool::new(false);
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !over.load(Ordering::Relaxed) {
                        exchange(&world.serving, &flood);
                        // Some hundred thousand frames a second; more would cost the others the time of this client.
                        std::thread::sleep(Duration::from_millis(5));
                    }
                });
                flooded.push(calls(100, time));
                over.store(true, Ordering::Relaxed);
            });
        }
        let [alone, flooded] = [alone, flooded].map(|mut it| {
            it.sort();
            it[it.len() / 2]
        });
        println!("{what}: 99 % of calls within {alone:?} alone, {flooded:?} flooded");
        assert!(!is_full() || flooded <= 2 * alone, "{what}: {alone:?}, flooded {flooded:?}");
    }
    // Nor does a client get there by asking.
    let upgrade =
        [A, ("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"), ("HTTP2-Settings", "")];
    assert_eq!(world.serving.head("GET", "/readyz", &upgrade).0, 200);
}
