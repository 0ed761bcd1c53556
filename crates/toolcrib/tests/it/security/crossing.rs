//! B8 and B10 to B12: what belongs to one client never reaches another.

use std::time::Duration;

use serde_json::{Value, json};

use super::{A, B, Old, World, call, modern_body, modern_headers, request};
use crate::{
    relay::Events,
    serving::{Line, Serving},
};

type Token = (&'static str, &'static str);

fn listen(serving: &Serving, (name, token): Token, session: &str) -> Events {
    Events::open(serving, "GET", &format!("{name}: {token}\r\nMcp-Session-Id: {session}"), "")
}

/// A subscription of the modern era with the id 1, after it was acknowledged.
fn subscribe(serving: &Serving, (name, token): Token, wanted: &Value) -> Events {
    let mut headers = format!("{name}: {token}");
    for (name, value) in modern_headers("subscriptions/listen") {
        headers.push_str(&format!("\r\n{name}: {value}"));
    }
    let body = modern_body("subscriptions/listen", json!({ "notifications": wanted }));
    let mut events = Events::open(serving, "POST", &headers, &body.to_string());
    let acknowledged = events.next().unwrap().1;
    assert_eq!(acknowledged["params"]["notifications"], *wanted, "{acknowledged}");
    events
}

#[test]
fn b08_a_session_is_of_no_use_to_another() {
    let world = World::start();
    let session = world.session(A);
    let mut listening = listen(&world.serving, A, &session);
    let mut old = Old::open(&world.serving, A);
    let kept = ("Mcp-Session-Id", session.as_str());
    let adm = ("Authorization", "Bearer SECRET_TOKEN_ADM");
    let path = old.path.clone();
    let list = request(7, "tools/list", json!({}));
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let reply = json!({ "jsonrpc": "2.0", "id": 1, "result": {} });
    for body in [&call(7, "mcp__both__say"), &list, &cancel, &reply, &json!([list])] {
        for (token, expected) in [(&[B][..], 404), (&[adm], 404), (&[], 401)] {
            let answer = world.serving.post(&[token, &[kept]].concat(), body);
            assert_eq!(answer.status, expected, "{body} {token:?}");
            let answer = world.serving.request("POST", &path, token, &body.to_string());
            assert_eq!(answer.status, expected, "{body} {token:?}");
        }
    }
    for (token, expected) in [(&[B][..], 404), (&[], 401)] {
        for place in [&[][..], &[("Last-Event-ID", "0-0")], &[("Last-Event-ID", "1-0")]] {
            let answer =
                world.serving.request("GET", "/mcp", &[token, &[kept], place].concat(), "");
            assert_eq!(answer.status, expected, "{place:?}");
        }
        let answer = world.serving.request("DELETE", "/mcp", &[token, &[kept]].concat(), "");
        assert_eq!(answer.status, expected);
    }
    assert_eq!(world.calls(), 0);
    // The first that is heard on the streams is what their owner does now.
    let hello = request(9, "ping", json!({}));
    assert_eq!(world.serving.request("POST", &path, &[A], &hello.to_string()).status, 202);
    let heard: Value = serde_json::from_str(&old.next().unwrap()).unwrap();
    assert_eq!(heard, json!({ "jsonrpc": "2.0", "id": 9, "result": {} }));
    assert_eq!(world.ask(A, &session, &call(1, "mcp__a__add")).status, 200);
    assert_eq!(listening.next().unwrap().1["method"], "notifications/tools/list_changed");
}

/// Fifty clients of two groups that all count their requests from 0. Half of them call one shared
/// server, the others one of their group: a legacy one, and a modern one.
#[test]
fn b10_equal_ids_of_many_clients_are_not_confused() {
    let world = World::start();
    std::thread::scope(|scope| {
        for client in 0..50 {
            let world = &world;
            scope.spawn(move || {
                let (token, own) = if client % 2 == 0 { (A, "a") } else { (B, "b") };
                let server = if client % 4 < 2 { "both" } else { own };
                let name = format!("mcp__{server}__echo");
                let session = world.session(token);
                let with = [token, ("Mcp-Session-Id", session.as_str())];
                let mut line = Line::open(&world.serving);
                for id in 0..1000 {
                    let nonce = format!("{client}-{id}");
                    let params = json!({ "name": name, "arguments": { "nonce": nonce } });
                    let body = request(id, "tools/call", params).to_string();
                    let answer = line.post_with(&with, &body).json();
                    assert_eq!(answer["id"], id);
                    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
                    assert_eq!(text, format!(r#"{{"nonce":"{nonce}"}}"#));
                }
            });
        }
    });
    assert_eq!(world.calls(), 50_000);
}

#[test]
fn b11_equal_tokens_of_progress_and_ids_of_subscriptions_do_not_cross() {
    const SAME: &str = "same";
    let access = super::ACCESS.replace("'mcp__both__*'", "'mcp__both__*', 'mcp__x__*'");
    let world = World::start_with(&access);
    let serving = &world.serving;
    let progress = |token: Token, mark: &str| {
        let session = world.session(token);
        let params = json!({ "name": "mcp__both__say", "arguments": { "mark": mark },
            "_meta": { "progressToken": SAME } });
        let body = request(1, "tools/call", params).to_string();
        let headers = format!("{}: {}\r\nMcp-Session-Id: {session}", token.0, token.1);
        let mut events = Events::open(serving, "POST", &headers, &body);
        let mut steps = Vec::new();
        while let Some((_, message)) = events.next() {
            if message["method"] == "notifications/progress" {
                assert_eq!(message["params"]["progressToken"], SAME);
                steps.push(message["params"]["progress"].as_u64().unwrap());
            } else if message.get("id").is_some() {
                assert!(message.to_string().contains(mark), "{message}");
            }
        }
        steps
    };
    let silent = |token: Token| {
        let session = world.session(token);
        let params = json!({ "name": "mcp__both__slow", "_meta": { "progressToken": SAME } });
        let answer = world.ask(token, &session, &request(1, "tools/call", params));
        assert!(answer.body.contains(r#""isError":false"#), "{answer:?}");
        assert!(!answer.body.contains("notifications/progress"), "{answer:?}");
    };
    std::thread::scope(|scope| {
        let tokens = [A, B].into_iter().cycle().take(10);
        let all: Vec<_> = tokens
            .enumerate()
            .map(|(at, token)| {
                scope.spawn(move || silent(token));
                scope.spawn(move || progress(token, &format!("mark-{at}")))
            })
            .collect();
        for one in all {
            let steps = one.join().unwrap();
            // The last may be missing, where the server's answer overtakes it. One of another's would
            // stand there twice.
            assert!(steps.windows(2).all(|it| it[0] < it[1]) && !steps.is_empty(), "{steps:?}");
        }
    });
    subscriptions(&world);
}

/// Three clients whose subscriptions have the same id, and each of which wants something else.
fn subscriptions(world: &World) {
    let serving = &world.serving;
    let mut watches = subscribe(serving, A, &json!({ "resourceSubscriptions": ["test://one"] }));
    let mut lists = subscribe(serving, B, &json!({ "toolsListChanged": true }));
    let mut both = subscribe(
        serving,
        A,
        &json!({ "toolsListChanged": true,
        "resourceSubscriptions": ["test://one"] }),
    );
    let (a, b) = (world.session(A), world.session(B));
    let mut legacy = listen(serving, B, &b);
    let touch = || assert_eq!(world.ask(A, &a, &call(1, "mcp__x__touch")).status, 200);
    let heard = |events: &mut Events, what: &str| {
        let (_, message) = events.next().unwrap();
        assert_eq!(message["method"], format!("notifications/{what}"), "{message}");
        let id = message["params"]["_meta"].get("io.modelcontextprotocol/subscriptionId").cloned();
        assert!(id.is_none_or(|it| it == 1), "{message}");
    };
    touch();
    heard(&mut watches, "resources/updated");
    heard(&mut both, "resources/updated");
    // A change of the tools of group b, which group a does not see.
    assert_eq!(world.ask(B, &b, &call(1, "mcp__b__add")).status, 200);
    heard(&mut lists, "tools/list_changed");
    heard(&mut legacy, "tools/list_changed");
    // A change of group a's; and one more of what was first.
    assert_eq!(world.ask(A, &a, &call(1, "mcp__a__add")).status, 200);
    heard(&mut both, "tools/list_changed");
    touch();
    heard(&mut watches, "resources/updated");
    heard(&mut both, "resources/updated");
    // Whoever watched nothing has heard of none of that: what comes next is its own.
    let own = request(2, "resources/subscribe", json!({ "uri": "test://one" }));
    assert_eq!(world.ask(B, &b, &own).json()["result"], json!({}));
    touch();
    heard(&mut legacy, "resources/updated");
}

#[test]
fn b12_nobody_takes_back_what_another_asked() {
    let world = World::start();
    let (a, b) = (world.session(A), world.session(B));
    let old = Old::open(&world.serving, B);
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 7, "reason": "no" } });
    let modern = modern_body("notifications/cancelled", json!({ "requestId": 7 }));
    let mut modern = modern;
    modern.as_object_mut().unwrap().remove("id");
    let slow = call(7, "mcp__both__slow");
    let params = json!({ "name": "mcp__both__slow", "arguments": {} });
    let mut also = modern_body("tools/call", params);
    also["id"] = json!(7);
    std::thread::scope(|scope| {
        let legacy = scope.spawn(|| world.ask(A, &a, &slow).json());
        let newer = scope.spawn(|| {
            let [version, method] = modern_headers("tools/call");
            let headers = [A, version, method, ("Mcp-Name", "mcp__both__slow")];
            world.serving.post(&headers, &also).json()
        });
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(world.ask(B, &b, &cancel).status, 202);
        assert_eq!(world.ask(B, &a, &cancel).status, 404);
        let (posted, to) = (cancel.to_string(), old.path.as_str());
        assert_eq!(world.serving.request("POST", to, &[B], &posted).status, 202);
        for token in [A, B] {
            let headers = [&[token][..], &modern_headers("notifications/cancelled")].concat();
            assert_eq!(world.serving.post(&headers, &modern).status, 202);
        }
        for answer in [legacy.join().unwrap(), newer.join().unwrap()] {
            assert_eq!(answer["id"], 7);
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
    });
    // Whoever asked, can.
    std::thread::scope(|scope| {
        let call = scope.spawn(|| world.ask(A, &a, &slow).json());
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(world.ask(A, &a, &cancel).status, 202);
        let answer = call.join().unwrap();
        assert_eq!(answer["error"]["code"], -32800, "{answer}");
    });
}
