//! B1, B2, B9, B15 and B16: who is let in, and for how long.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

use super::{A, ACCESS, B, Old, World, call, is_full, modern_body, modern_headers, request};
use crate::{
    kit::soon,
    relay::Events,
    serving::{Line, Serving},
};

#[test]
fn b01_without_a_good_token_there_is_nothing_to_be_learned() {
    let world = World::start();
    let session = world.session(A);
    let list = request(1, "tools/list", json!({}));
    let kept = ("Mcp-Session-Id", session.as_str());
    let token = |value| ("Authorization", value);
    for bad in [
        &[][..],
        &[token("")],
        &[token("Bearer")],
        &[token("Bearer ")],
        &[token("\u{7f}garbage")],
        &[token("Bearer SECRET_TOKEN_")],
        &[token("Bearer SECRET_TOKEN_AA")],
        &[token("Bearer secret_token_a")],
        &[token("Bearer SECRET_TOKEN_A SECRET_TOKEN_A")],
        &[token("SECRET_TOKEN_A")],
        &[token("Basic U0VDUkVUX1RPS0VOX0E=")],
        &[token("Digest SECRET_TOKEN_A")],
        &[A, A],
        &[A, B],
        &[A, token("Bearer wrong")],
        &[("X-Authorization", "Bearer SECRET_TOKEN_A")],
        &[("Cookie", "Authorization=Bearer SECRET_TOKEN_A")],
    ] {
        let answer = world.serving.post(&[bad, &[kept]].concat(), &list);
        // A control character is no header at all.
        let expected = if bad == [token("\u{7f}garbage")] { 400 } else { 401 };
        assert_eq!(answer.status, expected, "{bad:?}");
        assert!(!answer.body.contains("mcp__") && !answer.body.contains("SECRET"), "{answer:?}");
        if expected == 401 {
            assert_eq!(answer.header("www-authenticate").unwrap(), "Bearer", "{bad:?}");
        }
    }
    let huge = format!("Bearer {}", "x".repeat(1024 * 1024));
    let (status, _) = world.serving.head("POST", "/mcp", &[token(&huge)]);
    assert_eq!(status, 431);
    assert!(world.ask(A, &session, &list).body.contains("mcp__a__echo"));
}

/// Tokens that differ from a good one in the first or in the last byte are refused alike; how long it
/// takes is looked at only where the machine is idle.
#[test]
fn b02_how_wrong_a_token_is_does_not_show() {
    let world = World::start();
    let count = if is_full() { 5_000 } else { 100 };
    let mut lines = [Line::open(&world.serving), Line::open(&world.serving)];
    let tokens = ["Bearer XECRET_TOKEN_A", "Bearer SECRET_TOKEN_X"];
    let mut times = [Vec::new(), Vec::new()];
    let mut answers = BTreeSet::new();
    let body = request(1, "tools/list", json!({})).to_string();
    for _ in 0..count {
        for (at, token) in tokens.iter().enumerate() {
            let begin = Instant::now();
            let answer = lines[at].post_with(&[("Authorization", token)], &body);
            times[at].push(begin.elapsed());
            answers.insert((answer.status, answer.body));
        }
    }
    // 401, and 429 when it becomes too much: the same for both.
    assert!(answers.iter().all(|(status, _)| matches!(status, 401 | 429)), "{answers:?}");
    assert!(answers.len() <= 2, "{answers:?}");
    let [first, last] = times.map(|mut it| {
        it.sort();
        it[it.len() / 2]
    });
    println!("medians: {first:?} and {last:?}");
    assert!(!is_full() || first.abs_diff(last) < Duration::from_micros(5), "{first:?}, {last:?}");
    // Only digests are kept, and they are compared in constant time.
    let source = include_str!("../../../../toolcrib-server/src/access.rs");
    let kept = source.split("struct Token {").nth(1).unwrap().split('}').next().unwrap();
    let kept: Vec<&str> = kept.lines().map(str::trim).filter(|it| !it.is_empty()).collect();
    assert_eq!(kept, ["digest: [u8; 32],", "group: usize,"]);
    let identify = source.split("pub fn identify").nth(1).unwrap().split("pub fn").next().unwrap();
    assert!(identify.contains("ct_eq(&digest)") && !identify.contains("=="), "{identify}");
}

#[test]
fn b09_session_ids_are_128_bits_of_chance() {
    const COUNT: usize = 10_000;
    let world = World::start();
    let body = request(
        1,
        "initialize",
        json!({ "protocolVersion": "2025-11-25",
        "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } }),
    )
    .to_string();
    let mut line = Line::open(&world.serving);
    let mut ids: Vec<String> = Vec::new();
    for _ in 0..COUNT {
        ids.push(line.post_with(&[A], &body).header("mcp-session-id").unwrap());
    }
    check_ids(&ids, 0.05);
    let old: Vec<Old> = (0..100).map(|_| Old::open(&world.serving, A)).collect();
    let prefix = "/messages?session=";
    let old: Vec<String> = old.iter().map(|it| it.path.replace(prefix, "")).collect();
    check_ids(&old, 0.3);
}

/// Each bit is set about half of the time, and an id says nothing of the next.
pub(super) fn check_ids(ids: &[String], slack: f64) {
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "some are equal");
    let numbers: Vec<u128> = ids
        .iter()
        .map(|id| {
            assert_eq!(id.len(), 32, "{id}");
            u128::from_str_radix(id, 16).unwrap()
        })
        .collect();
    let fair = |count: usize, of: usize, what: &str| {
        let share =
            f64::from(u32::try_from(count).unwrap()) / f64::from(u32::try_from(of).unwrap());
        assert!((share - 0.5).abs() < slack, "{what}: {share}");
    };
    for bit in 0..128 {
        let set = numbers.iter().filter(|it| **it >> bit & 1 == 1).count();
        fair(set, numbers.len(), &format!("bit {bit}"));
    }
    let pairs = numbers.windows(2);
    fair(pairs.clone().filter(|it| it[0] < it[1]).count(), pairs.len(), "order");
    let changed: u32 = pairs.clone().map(|it| (it[0] ^ it[1]).count_ones()).sum();
    fair(usize::try_from(changed).unwrap(), 128 * pairs.len(), "changed bits");
}

#[test]
fn b15_a_token_that_is_removed_ends_what_was_begun_with_it() {
    let world = World::start();
    let (session, others) = (world.session(A), world.session(B));
    let (name, token) = A;
    let kept = format!("{name}: {token}\r\nMcp-Session-Id: {session}");
    let listening = Events::open(&world.serving, "GET", &kept, "");
    let modern = modern_headers("subscriptions/listen");
    let modern: String =
        modern.iter().map(|(name, value)| format!("\r\n{name}: {value}")).collect();
    let wanted = json!({ "notifications": { "toolsListChanged": true } });
    let wanted = modern_body("subscriptions/listen", wanted).to_string();
    let subscribed =
        Events::open(&world.serving, "POST", &format!("{name}: {token}{modern}"), &wanted);
    let params = json!({ "name": "mcp__both__long", "_meta": { "progressToken": 1 } });
    let long = request(5, "tools/call", params);
    let mut old = Old::open(&world.serving, A);
    let others_old = Old::open(&world.serving, B);
    world.folder.write("network.yaml", ACCESS.replace("SECRET_TOKEN_A,", "SECRET_TOKEN_NEW,"));
    let calling = Events::open(&world.serving, "POST", &kept, &long.to_string());
    world.serving.signal("-HUP");
    let begin = Instant::now();
    for (what, mut events) in
        [("call", calling), ("listening", listening), ("subscribed", subscribed)]
    {
        while let Some((_, message)) = events.next() {
            assert_eq!(message.get("result"), None, "{what}: {message}");
        }
        assert!(begin.elapsed() < Duration::from_secs(5), "{what}: {:?}", begin.elapsed());
    }
    while old.next().is_some() {}
    assert!(begin.elapsed() < Duration::from_secs(5), "old: {:?}", begin.elapsed());
    let list = request(1, "tools/list", json!({}));
    assert_eq!(world.ask(A, &session, &list).status, 401);
    assert_eq!(world.serving.request("POST", &old.path, &[A], &list.to_string()).status, 401);
    assert_eq!(world.modern(A, "tools/list", json!({})).status, 401);
    // The new token leads into the same group, but not into what another opened.
    let new = ("Authorization", "Bearer SECRET_TOKEN_NEW");
    soon("the session is gone", || world.ask(new, &session, &list).status == 404);
    assert_eq!(world.modern(new, "tools/list", json!({})).status, 200);
    // Others notice nothing.
    assert_eq!(world.ask(B, &others, &list).status, 200);
    let taken = world.serving.request("POST", &others_old.path, &[B], &list.to_string());
    assert_eq!(taken.status, 202);
}

#[test]
fn b16_whoever_tries_tokens_is_slowed_down_and_nobody_else() {
    const SECONDS: u32 = 10;
    const RATE: u32 = 200;
    let world = World::start();
    let session = world.session(B);
    let body = call(1, "mcp__b__echo").to_string();
    let guess = |line: &mut Line, at: u32| {
        let token = format!("Bearer SECRET_TOKEN_{at}");
        line.post_with(&[("Authorization", &token)], &body)
    };
    let begin = Instant::now();
    let (refused, slowed) = std::thread::scope(|scope| {
        let guessing = scope.spawn(|| {
            let mut line = Line::open(&world.serving);
            let (mut refused, mut slowed) = (0, 0);
            for at in 0..SECONDS * RATE {
                let due = begin + Duration::from_secs(1) * at / RATE;
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
                let answer = guess(&mut line, at);
                match answer.status {
                    401 => refused += 1,
                    429 => {
                        slowed += 1;
                        assert!(answer.header("retry-after").is_some(), "{answer:?}");
                    }
                    _ => panic!("{answer:?}"),
                }
                assert!(!answer.body.contains("mcp__"), "{answer:?}");
            }
            (refused, slowed)
        });
        let mut line = Line::open(&world.serving);
        while !guessing.is_finished() {
            let with = [B, ("Mcp-Session-Id", session.as_str())];
            assert_eq!(line.post_with(&with, &body).status, 200);
            std::thread::sleep(Duration::from_millis(50));
        }
        guessing.join().unwrap()
    });
    println!("{refused} were refused, {slowed} were told to wait");
    assert!(1 < refused, "the first are refused as wrong");
    assert!(refused + slowed == SECONDS * RATE && refused < slowed, "{refused} {slowed}");
    many_peers(&world.serving);
}

/// Peers are remembered, but not without end.
fn many_peers(serving: &Serving) {
    let (address, id) = (serving.address.parse().unwrap(), serving.child.id());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let before = super::framing::memory(id);
    let mut answers = BTreeSet::new();
    for at in 0..6_000_u32 {
        let [_, x, y, z] = at.to_be_bytes();
        answers.insert(runtime.block_on(guess_from([127, 1 + x, y, z], address)));
    }
    let grown = super::framing::memory(id).saturating_sub(before);
    assert!(grown < 4 * 1024 * 1024, "{grown} bytes more");
    assert!(answers.is_subset(&[401, 429].into()), "{answers:?}");
    assert_eq!(serving.get("/readyz", &[B]).status, 200);
}

/// The status of an answer to a wrong token that comes from this address of the machine.
async fn guess_from(peer: [u8; 4], address: SocketAddr) -> u16 {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::from((peer, 0))).unwrap();
    let mut socket = socket.connect(address).await.unwrap();
    let head = format!(
        "GET /readyz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nAuthorization: Bearer wrong\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut heard = String::new();
    socket.read_to_string(&mut heard).await.unwrap();
    heard.split(' ').nth(1).unwrap().parse().unwrap()
}
