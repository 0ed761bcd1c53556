//! Callers in numbers: one that floods, and many that are not known.

use std::{
    net::Ipv4Addr,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpSocket,
};

use super::{A, B, World, call, framing::memory, is_full};
use crate::serving::Line;

const LIMITED: &str = "
external_access:
  default_agent_group: guest
  auth_token: SECRET_TOKEN_ADM
  groups:
    a: { auth_token: SECRET_TOKEN_A, exposed_tools: ['mcp__a__*', 'mcp__both__*'], rate: 50/s burst 50 }
    b: { auth_token: SECRET_TOKEN_B, exposed_tools: ['mcp__b__*', 'mcp__both__*'] }
";

/// Ten calls a second of group b; the time that 99 of 100 took at most.
fn calm(world: &World, session: &str, time: Duration) -> Duration {
    let mut line = Line::open(&world.serving);
    let begin = Instant::now();
    let mut times = Vec::new();
    while begin.elapsed() < time {
        let one = Instant::now();
        let answer = line
            .post_with(&[B, ("Mcp-Session-Id", session)], &call(1, "mcp__both__echo").to_string());
        times.push(one.elapsed());
        assert_eq!(
            (answer.status, &answer.json()["result"]["isError"]),
            (200, &json!(false)),
            "{answer:?}"
        );
        std::thread::sleep(Duration::from_millis(100).saturating_sub(one.elapsed()));
    }
    times.sort();
    times[(times.len() * 99 / 100).min(times.len() - 1)]
}

#[test]
fn i03_one_that_floods_is_held_to_its_limit_and_others_notice_nothing() {
    let world = World::start_with(LIMITED);
    let time = Duration::from_secs(if is_full() { 20 } else { 2 });
    let [a, b] = [A, B].map(|it| world.session(it));
    let alone = calm(&world, &b, time);
    let before = world.calls();
    let (over, sent, let_in) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let begin = Instant::now();
    let flooded = std::thread::scope(|scope| {
        for at in 0..4 {
            let (over, sent, let_in, world, a) = (&over, &sent, &let_in, &world, &a);
            scope.spawn(move || {
                let mut line = Line::open(&world.serving);
                let body = call(2 + at, "mcp__a__echo").to_string();
                while !over.load(Ordering::Relaxed) {
                    let answer = line.post_with(&[A, ("Mcp-Session-Id", a.as_str())], &body);
                    let answer = answer.json();
                    let is_error = answer["result"]["isError"].as_bool();
                    let is_error = is_error.unwrap_or_else(|| panic!("{answer}"));
                    sent.fetch_add(1, Ordering::Relaxed);
                    let_in.fetch_add(usize::from(!is_error), Ordering::Relaxed);
                    // Some thousands a second: more would cost the others the time of this client.
                    std::thread::sleep(Duration::from_micros(500));
                }
            });
        }
        let flooded = calm(&world, &b, time);
        over.store(true, Ordering::Relaxed);
        flooded
    });
    let seconds = begin.elapsed().as_secs_f64();
    let (sent, let_in) = (sent.into_inner(), let_in.into_inner());
    println!(
        "{sent} calls in {seconds:.1} s, {let_in} let in; 99 % within {alone:?} alone, {flooded:?} flooded"
    );
    assert!((let_in as f64) <= 50.0 + 50.0 * seconds + 2.0, "{let_in} in {seconds} s");
    assert!(let_in < sent, "it was no flood: {sent} calls");
    // What was refused reached no server.
    let calm_calls = (seconds * 10.0).ceil() as usize + 1;
    assert!(world.calls() - before <= let_in + calm_calls, "{}", world.calls() - before);
    assert!(
        !is_full() || flooded <= 2 * alone.max(Duration::from_millis(5)),
        "{alone:?}, {flooded:?}"
    );
}

/// The status of a request with a wrong token, from an address of this machine.
async fn knock(to: std::net::SocketAddr, from: Ipv4Addr, token: &str) -> u16 {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind((from, 0).into()).unwrap();
    let mut socket = socket.connect(to).await.unwrap();
    let head = format!(
        "GET /readyz HTTP/1.1\r\nHost: {to}\r\nConnection: close\r\nAuthorization: {token}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut heard = String::new();
    socket.read_to_string(&mut heard).await.unwrap();
    heard.split(' ').nth(1).unwrap().parse().unwrap()
}

/// All of 127.0.0.0/8 is this machine.
#[tokio::test(flavor = "multi_thread")]
async fn i04_peers_without_number_cost_little_and_keep_nobody_out() {
    let world = World::start();
    let to: std::net::SocketAddr = world.serving.address.parse().unwrap();
    let count: u32 = if is_full() { 200_000 } else { 6_000 };
    let peer = |at: u32| Ipv4Addr::from(0x7f01_0000 + at);
    for at in 0..200 {
        knock(to, peer(at), "Bearer wrong").await;
    }
    let before = memory(world.serving.child.id());
    let mut at = 200;
    while at < count {
        let all = (at..at + 50)
            .map(|it| async move { knock(to, peer(it), &format!("Bearer {it}")).await });
        for status in futures_util::future::join_all(all).await {
            assert!(matches!(status, 401 | 429), "{status}");
        }
        at += 50;
    }
    let grown = memory(world.serving.child.id()).saturating_sub(before);
    println!("{count} peers, {grown} bytes more");
    assert!(grown < 32 << 20, "{grown} bytes more");
    // A good token is good, also where nobody was heard of yet.
    for from in [peer(3), peer(count + 7)] {
        assert_eq!(knock(to, from, A.1).await, 200);
    }
}

#[test]
fn i04_where_a_request_says_it_comes_from_does_not_count() {
    let world = World::start();
    let before = memory(world.serving.child.id());
    let count: u32 = if is_full() { 1_000_000 } else { 5_000 };
    let mut line = Line::open(&world.serving);
    let mut statuses = std::collections::BTreeMap::new();
    for at in 0..count {
        let (peer, token) = (Ipv4Addr::from(0x0a00_0000 + at).to_string(), format!("Bearer {at}"));
        let forwarded = format!("for={peer}");
        let headers = [
            ("Authorization", token.as_str()),
            ("X-Forwarded-For", &peer),
            ("X-Real-IP", &peer),
            ("Forwarded", &forwarded),
        ];
        *statuses.entry(line.post_with(&headers, "{}").status).or_insert(0_u32) += 1;
    }
    let grown = memory(world.serving.child.id()).saturating_sub(before);
    println!("{statuses:?}, {grown} bytes more");
    // All came from one peer: some were wrong, and the rest too many.
    assert_eq!(statuses.keys().copied().collect::<Vec<_>>(), [401, 429]);
    assert!(statuses[&401] < statuses[&429], "{statuses:?}");
    assert!(grown < 32 << 20, "{grown} bytes more");
    let all = crate::audit::records(world.folder.path());
    let clients = all.iter().filter_map(|it| it["client"].as_str());
    assert!(
        clients.clone().count() > 0 && clients.into_iter().all(|it| it == "127.0.0.1"),
        "{all:?}"
    );
    let good = world.serving.post(&[A], &Value::Null);
    assert_ne!(good.status, 401, "{good:?}");
}
