//! J2 to J4 and J6: events that somebody would like to be other events. J1 and J5 are in `events`.

use serde_json::{Value, json};

use crate::{events::TASKS, kit::Folder, python::Caller, serving::Serving};

/// Events that take anything, one whose name has a part that a call fills in, and one of another group.
const DOCUMENT: &str = "
asyncapi: 3.0.0
info: {title: a, version: '1'}
channels: {c: {address: any.thing}, d: {address: 'orders.{id}.made'}}
operations:
  anything: {action: send, channel: {$ref: '#/channels/c'}, x-agent-tool: {enabled: true}}
  order: {action: send, channel: {$ref: '#/channels/d'}, x-agent-tool: {enabled: true}}
";

const ACCESS: &str = "
external_access:
  groups:
    a: { auth_token: SECRET_TOKEN_A, exposed_tools: [anything, order] }
    b: { auth_token: SECRET_TOKEN_B, exposed_tools: [delegate_task] }
    all: { auth_token: SECRET_TOKEN_ALL, exposed_events: ['*'] }
";

fn workspace(bus: &str) -> Folder {
    let folder = Folder::new();
    folder.write("events/any.yaml", DOCUMENT);
    folder.write("events/tasks.yaml", TASKS);
    folder.write("network.yaml", format!("{ACCESS}{bus}"));
    folder
}

/// All events there are.
fn page(serving: &Serving) -> Vec<Value> {
    let headers = [("Authorization", "Bearer SECRET_TOKEN_ALL"), ("Accept", "application/json")];
    let page = serving.get("/events?from=first&max=100", &headers).json();
    page["events"].as_array().unwrap().clone()
}

/// What a caller would like to have decided.
fn forged() -> Value {
    json!({ "id": "mine", "type": "other.event", "source": "/other", "group": "b", "principal": "b",
        "tool": "delegate_task", "sequence": "99", "subject": "toolcrib.events.b", "specversion": "0.1",
        "Nats-Msg-Id": "mine", "Nats-Expected-Stream": "OTHER", "Nats-Expected-Last-Sequence": "7" })
}

const FORGED_HEADERS: [(&str, &str); 4] = [
    ("Authorization", "Bearer SECRET_TOKEN_A"),
    ("Nats-Msg-Id", "mine"),
    ("Nats-Expected-Stream", "OTHER"),
    ("ce-id", "mine"),
];

/// Emits what is forged; by a tool, and by HTTP.
fn emit(serving: &Serving) {
    let session = serving.session(&FORGED_HEADERS[..1], "2025-11-25");
    let params = json!({ "name": "anything", "arguments": forged(), "_meta": forged() });
    let body = super::request(2, "tools/call", params);
    let kept = ("Mcp-Session-Id", session.as_str());
    let answer = serving.post(&[&FORGED_HEADERS[..], &[kept]].concat(), &body).json();
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let body =
        json!({ "type": "any.thing", "group": "b", "sequence": "99", "data": 2 }).to_string();
    let answer = serving.request("POST", "/events", &FORGED_HEADERS, &body);
    assert_eq!(answer.status, 201, "{answer:?}");
    for key in ["Nats-Msg-Id", "Nats-Expected-Stream", "nats-msg-id"] {
        let body = json!({ "type": "any.thing", key: "mine", "data": 3 }).to_string();
        let answer = serving.request("POST", "/events", &FORGED_HEADERS, &body);
        assert_eq!(answer.status, 400, "{key} {answer:?}");
    }
}

#[track_caller]
fn check(events: &[Value]) {
    assert_eq!(events.len(), 2, "{events:?}");
    for (at, event) in events.iter().enumerate() {
        assert_eq!(
            (&event["type"], &event["group"]),
            (&json!("any.thing"), &json!("a")),
            "{event}"
        );
        assert_eq!(event["sequence"], (at + 1).to_string(), "{event}");
        assert_ne!(event["id"], "mine");
        assert_eq!((event.get("subject"), event.get("principal")), (None, None), "{event}");
        assert!(!event.as_object().unwrap().keys().any(|it| it.to_lowercase().contains("nats")));
    }
    // What was said is kept as what was said.
    assert_eq!((&events[0]["data"], &events[1]["data"]), (&forged(), &json!(2)));
    assert_eq!((&events[0]["tool"], events[1].get("tool")), (&json!("anything"), None));
}

#[test]
fn j02_a_caller_decides_what_an_event_says_and_not_what_it_is() {
    let folder = workspace("");
    let serving = Serving::start(folder.path());
    emit(&serving);
    check(&page(&serving));
    // The name of a tool is ours to say as well.
    let body = json!({ "type": "any.thing", "tool": "order", "data": 1 }).to_string();
    let answer = serving.request("POST", "/events", &FORGED_HEADERS, &body);
    let last = page(&serving).pop().unwrap();
    assert!(answer.status == 400 || last.get("tool").is_none(), "{answer:?} {last}");
}

/// The same where events go to NATS: its headers are ours alone.
#[cfg(feature = "nats")]
#[tokio::test(flavor = "multi_thread")]
async fn j02_what_goes_to_nats_has_our_headers_and_subject() {
    let Some(broker) = crate::events::broker::Broker::start() else { return };
    let folder = workspace(&format!("bus: {{ url: 'nats://127.0.0.1:{}' }}\n", broker.port));
    let serving = Serving::start(folder.path());
    tokio::task::block_in_place(|| emit(&serving));
    let begin = std::time::Instant::now();
    let stream = loop {
        let found = broker.jetstream().await.get_stream("TOOLCRIB").await;
        match found {
            Ok(found) if 2 <= found.cached_info().state.messages => break found,
            found => assert!(begin.elapsed().as_secs() < 60, "{found:?}"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    };
    let mut events = Vec::new();
    for place in 1..=2 {
        let message = stream.get_raw_message(place).await.unwrap();
        let mut event: Value = serde_json::from_slice(&message.payload).unwrap();
        let header = |name: &str| message.headers.get(name).map(ToString::to_string);
        assert_ne!(header("Nats-Msg-Id").as_deref(), Some("mine"));
        assert!(header("Nats-Msg-Id").unwrap().contains(event["id"].as_str().unwrap()));
        assert!(header("Nats-Expected-Stream").is_none_or(|it| it == "TOOLCRIB"));
        assert_eq!(header("Nats-Expected-Last-Sequence"), None);
        assert_eq!(message.subject.to_string(), "toolcrib.events.any.thing");
        event["sequence"] = json!(place.to_string());
        events.push(event);
    }
    check(&events);
}

#[test]
fn j03_what_fills_in_a_name_is_one_word_of_it() {
    let folder = workspace("");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::with(&serving, "SECRET_TOKEN_A");
    let long = "x".repeat(1024);
    for bad in [
        "*",
        ">",
        "a.b",
        ".",
        "..",
        "a.",
        " ",
        "a b",
        "a\r\nb",
        "\n",
        "\t",
        "",
        "{id}",
        "a/b",
        "a*",
        "a>b",
        "\u{0}",
        "\u{a0}",
        "\u{2028}",
        "\u{200b}a",
        &long,
    ] {
        let said = caller.error("order", &json!({ "id": bad }));
        assert!(!said.contains("Event emitted"), "{bad:?}: {said}");
    }
    for bad in [json!(null), json!(["a"]), json!({ "a": 1 })] {
        caller.error("order", &json!({ "id": bad }));
    }
    assert!(page(&serving).is_empty());
    for good in ["7", "a-b_c", "größe", "$x", "%2e"] {
        caller.text("order", &json!({ "id": good }));
        let last = page(&serving).pop().unwrap();
        assert_eq!(last["type"], format!("orders.{good}.made"));
    }
}

#[test]
fn j04_one_key_is_one_event_however_often_it_is_sent() {
    let folder = workspace("");
    let serving = Serving::start(folder.path());
    let send = |serving: &Serving, id: &str| {
        let body = json!({ "type": "any.thing", "id": id, "data": { "n": 1 } }).to_string();
        let answer = serving.request("POST", "/events", &FORGED_HEADERS[..1], &body);
        (answer.status, answer.json()["sequence"].as_u64().unwrap())
    };
    for round in 0..5 {
        let id = format!("key-{round}");
        let answers: Vec<(u16, u64)> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..16).map(|_| scope.spawn(|| send(&serving, &id))).collect();
            all.into_iter().map(|it| it.join().unwrap()).collect()
        });
        assert_eq!(answers.iter().filter(|it| it.0 == 201).count(), 1, "{answers:?}");
        assert!(answers.iter().all(|it| it.1 == answers[0].1), "{answers:?}");
    }
    // After a kill, which is what dropping it is.
    drop(serving);
    let serving = Serving::start(folder.path());
    for round in 0..5 {
        assert_eq!(send(&serving, &format!("key-{round}")).0, 200);
    }
    let events = page(&serving);
    assert_eq!(events.len(), 5, "{events:?}");
}

#[test]
fn j06_a_tool_that_emits_for_another_group_is_unknown() {
    let folder = workspace("");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::with(&serving, "SECRET_TOKEN_A");
    let task = json!({ "task_id": "1", "task_type": "download", "instructions": "go" });
    let hidden = caller.ask("tools/call", &json!({ "name": "delegate_task", "arguments": task }));
    let missing = caller.ask("tools/call", &json!({ "name": "delegate_tusk", "arguments": task }));
    assert_eq!(hidden["error"]["code"], -32602, "{hidden}");
    assert_eq!(hidden["error"]["message"], "Unknown tool: delegate_task");
    let (mut one, other) = (hidden["error"].clone(), missing["error"].clone());
    one["message"] = json!(one["message"].as_str().unwrap().replace("task", "tusk"));
    assert_eq!(one, other);
    // Nor by the door for those who are no MCP clients.
    let body = json!({ "type": "task.delegate", "data": task }).to_string();
    let answer = serving.request("POST", "/events", &FORGED_HEADERS[..1], &body);
    assert_eq!(answer.status, 403, "{answer:?}");
    assert!(page(&serving).is_empty());
    Caller::with(&serving, "SECRET_TOKEN_B").text("delegate_task", &task);
    assert_eq!(page(&serving).len(), 1);
}
