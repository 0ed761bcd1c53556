//! Calls with an idempotency key.

use std::{io::Write, net::TcpStream, time::Duration};

use serde_json::{Value, json};

use super::{World, text};
use crate::{
    kit::{Folder, soon},
    serving::Serving,
};

const TWO: &str =
    "external_access: { groups: { a: { auth_token: token-a }, b: { auth_token: token-b } } }\n";

fn keyed(tool: &str, arguments: &Value, key: &str) -> Value {
    json!({ "name": tool, "arguments": arguments, "_meta": { "toolcrib/idempotencyKey": key } })
}

#[test]
fn a_repeated_call_gets_the_first_outcome() {
    let world = World::new(TWO);
    let (mut a, mut b) = (world.client("token-a"), world.client("token-b"));
    let params = keyed("mcp__s__count", &json!({ "x": 1, "y": 2 }), "k");
    let first = a.answer(&[], &params).json()["result"].clone();
    let again = keyed("mcp__s__count", &json!({ "y": 2, "x": 1 }), "k");
    assert_eq!(a.answer(&[], &again).json()["result"], first);
    // The header means the same.
    let bare = json!({ "name": "mcp__s__count", "arguments": { "x": 1, "y": 2 } });
    assert_eq!(a.answer(&[("Idempotency-Key", "\"k\"")], &bare).json()["result"], first);
    assert_eq!(world.reached("count"), 1);
    let other = a.answer(&[("Idempotency-Key", "k")], &json!({ "name": "mcp__s__count" }));
    let other = &other.json()["result"];
    assert!(text(other).contains("was used for another call"), "{other}");
    // A key is its sender's own.
    assert_ne!(b.answer(&[], &params).json()["result"], first);
    assert_eq!(world.reached("count"), 2);
    // What the server answered counts, also where it is an error.
    for _ in 0..2 {
        let answer = a.answer(&[], &keyed("mcp__s__error", &json!({}), "e")).json();
        assert_eq!(answer["error"]["code"], -32050, "{answer}");
    }
    assert_eq!(world.reached("error"), 1);
    let bad = a.answer(&[("Idempotency-Key", &"x".repeat(300))], &bare);
    assert_eq!((bad.status, &bad.json()["error"]["code"]), (400, &json!(-32602)));
}

/// What is repeated reaches no server, and still is held to the rate of its group.
#[test]
fn repetitions_count_for_their_group() {
    let groups = "external_access: { groups: { a: { auth_token: token-a, rate: 3/h } } }\n";
    let world = World::new(groups);
    let mut a = world.client("token-a");
    let params = keyed("mcp__s__count", &json!({}), "k");
    let first = a.answer(&[], &params).json()["result"].clone();
    assert_ne!(first["isError"], true, "{first}");
    for _ in 0..2 {
        assert_eq!(a.answer(&[], &params).json()["result"], first);
    }
    // Neither what is repeated, nor the same key for something else.
    for params in [&params, &keyed("mcp__s__count", &json!({ "n": 1 }), "k")] {
        let answer = a.answer(&[], params);
        let result = answer.json()["result"].clone();
        assert!(text(&result).contains("group `a` may call tools 3 times an hour"), "{result}");
        assert_eq!(result["_meta"]["toolcrib/code"], "rate_limited", "{result}");
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
    }
    assert_eq!(world.reached("count"), 1);
}

#[test]
fn a_call_that_was_refused_leaves_its_key_free() {
    let world =
        World::new(&format!("limits: {{ tools: {{ '*__slow': {{ concurrent: 1 }} }} }}\n{TWO}"));
    let (mut a, mut b) = (world.client("token-a"), world.client("token-b"));
    std::thread::scope(|scope| {
        scope.spawn(|| a.call("mcp__s__slow", &json!({})));
        soon("it runs", || world.reached("slow") == 1);
        let params = keyed("mcp__s__slow", &json!({}), "k");
        let refused = b.answer(&[], &params).json();
        assert!(text(&refused["result"]).contains("1 call running at a time"), "{refused}");
        soon("it is made", || b.answer(&[], &params).json()["result"]["isError"] != true);
    });
    assert_eq!(world.reached("slow"), 2);
}

#[test]
fn whoever_lost_the_connection_comes_back_for_the_outcome() {
    let world = World::new(TWO);
    let mut a = world.client("token-a");
    let params = keyed("mcp__s__slow", &json!({}), "k");
    let body = json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params });
    let body = body.to_string();
    let mut other = TcpStream::connect(&world.serving.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer token-a\r\nMcp-Session-Id: {}\r\n\
         Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        world.serving.address,
        a.session,
        body.len()
    );
    other.write_all(head.as_bytes()).unwrap();
    soon("the call runs", || world.reached("slow") == 1);
    drop(other);
    std::thread::sleep(Duration::from_millis(100));
    let result = a.answer(&[], &params).json()["result"].clone();
    assert_ne!(result["isError"], true, "{result}");
    assert_eq!(world.reached("slow"), 1);
}

const ORDER: &str = "asyncapi: 3.0.0\ninfo: {title: a, version: '1'}\nchannels: {c: {address: orders.new}}\n\
     operations: {order: {action: send, channel: {$ref: '#/channels/c'}, x-agent-tool: {enabled: true}}}\n";

/// How many events there are.
fn events(serving: &Serving) -> usize {
    let headers = [("Accept", "application/json"), ("Authorization", "Bearer token-a")];
    let page = serving.get("/events?from=first", &headers);
    page.body.matches("orders.new").count().min(page.body.matches("\"type\"").count())
}

#[test]
fn one_key_is_one_event_also_at_the_same_time_and_after_a_restart() {
    let folder = Folder::new();
    folder.write("events/orders.yaml", ORDER);
    folder.write("network.yaml", TWO);
    let call = |serving: &Serving, item: u32| {
        let params = keyed("order", &json!({ "item": item }), "order-7");
        let token = [("Authorization", "Bearer token-a")];
        let session = serving.session(&token, "2025-11-25");
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let answer = serving.post(&[token[0], ("Mcp-Session-Id", session.as_str())], &body);
        answer.json()["result"].clone()
    };
    let serving = Serving::start(folder.path());
    let ids: Vec<Value> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..4).map(|_| scope.spawn(|| call(&serving, 1))).collect();
        let results = calls.into_iter().map(|it| it.join().unwrap());
        results.map(|it| it["structuredContent"]["id"].clone()).collect()
    });
    assert!(ids[0].is_string() && ids.iter().all(|it| *it == ids[0]), "{ids:?}");
    assert_eq!(events(&serving), 1);
    drop(serving);
    let serving = Serving::start(folder.path());
    assert_eq!(call(&serving, 1)["structuredContent"]["id"], ids[0]);
    // Nobody remembers the call, and still it is not another event.
    let other = Serving::start_anew(serving, &folder);
    assert_eq!(call(&other, 2)["isError"], true);
    assert_eq!(events(&other), 1);
}

impl Serving {
    fn start_anew(self, folder: &Folder) -> Self {
        drop(self);
        Self::start(folder.path())
    }
}

/// One of several was refused: sent again, it is made, and the others are not.
#[test]
fn what_was_refused_among_several_is_made_when_the_whole_is_repeated() {
    let network = "limits: { tools: { '*__slow': { concurrent: 1 } } }\n\
                   external_access: { groups: { a: { auth_token: token-a, exposed_tools: ['*', call_tools] } } }\n";
    let world = World::new(network);
    let mut a = world.client("token-a");
    let calls = json!({ "parallel": 2, "calls": [
        { "name": "mcp__s__slow", "arguments": { "n": 1 } }, { "name": "mcp__s__slow", "arguments": { "n": 2 } } ] });
    let mut made = || {
        let result = a.answer(&[], &keyed("call_tools", &calls, "k")).json()["result"].clone();
        let outcomes = result["structuredContent"]["outcomes"].as_array().unwrap().clone();
        outcomes.iter().filter(|it| it["result"]["isError"] != true).count()
    };
    assert_eq!(made(), 1);
    assert_eq!(made(), 2);
    assert_eq!(made(), 2);
    assert_eq!(world.reached("slow"), 2);
}

#[test]
fn a_key_in_a_header_is_of_one_call_and_not_of_a_batch() {
    let world = World::new(TWO);
    let headers = [("Authorization", "Bearer token-a"), ("Idempotency-Key", "k")];
    let session = world.serving.session(&headers[..1], "2025-03-26");
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "mcp__s__count" } });
    let headers = [headers[0], headers[1], ("Mcp-Session-Id", session.as_str())];
    let answer = world.serving.post(&headers, &json!([call]));
    assert_eq!(answer.status, 400);
    assert!(answer.body.contains("stands for one call"), "{}", answer.body);
    assert_eq!(world.reached("count"), 0);
}
