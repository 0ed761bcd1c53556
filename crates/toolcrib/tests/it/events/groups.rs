//! Who may have which events: by HTTP, by tools, and by nothing else.

use serde_json::{Value, json};

use super::{Stream, TASKS};
use crate::{kit::Folder, serving::Serving};

const GROUPS: &str = "
external_access:
  groups:
    worker: { auth_token: worker-token, exposed_tools: ['*', events_poll, events_ack, events_publish], exposed_events: ['task.*'] }
    caller: { auth_token: caller-token, exposed_tools: [delegate_task] }
    other: { auth_token: other-token, exposed_tools: [] }
    nobody: { auth_token: nobody-token, exposed_tools: ['*'], exposed_events: [] }
";

struct As<'a>(&'a Serving, String);

impl As<'_> {
    fn headers(&self) -> [(&str, &str); 1] {
        [("Authorization", self.1.as_str())]
    }

    fn publish(&self, name: &str) -> u16 {
        let body = json!({ "type": name, "group": "admin", "data": 1 }).to_string();
        self.0.request("POST", "/events", &self.headers(), &body).status
    }

    fn page(&self) -> Vec<String> {
        let headers = [self.headers()[0], ("Accept", "application/json")];
        let page = self.0.get("/events?from=first", &headers).json();
        let names = page["events"].as_array().unwrap().iter();
        names.map(|it| it["type"].as_str().unwrap().to_owned()).collect()
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        let session = self.0.session(&self.headers(), "2025-11-25");
        let headers = [self.headers()[0], ("Mcp-Session-Id", session.as_str())];
        let params = json!({ "name": tool, "arguments": arguments });
        self.0
            .post(
                &headers,
                &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params }),
            )
            .json()
    }

    fn tools(&self) -> Vec<String> {
        let session = self.0.session(&self.headers(), "2025-11-25");
        let headers = [self.headers()[0], ("Mcp-Session-Id", session.as_str())];
        let answer =
            self.0.post(&headers, &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }));
        let tools = answer.json()["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }
}

fn serving() -> (Folder, Serving) {
    let folder = Folder::new();
    folder.write("events/tasks.yaml", TASKS);
    folder.write("network.yaml", GROUPS);
    let serving = Serving::start(folder.path());
    (folder, serving)
}

#[test]
fn a_group_reads_and_publishes_what_it_may_and_nothing_else() {
    let (_folder, serving) = serving();
    let by = |group: &str| As(&serving, format!("Bearer {group}-token"));
    assert_eq!(serving.get("/events", &[]).status, 401);
    assert_eq!(serving.request("POST", "/events", &[], "{}").status, 401);
    assert_eq!(serving.request("POST", "/events/ack", &[], "{}").status, 401);
    assert_eq!(
        (by("worker").publish("task.done"), by("worker").publish("secret.made")),
        (201, 403)
    );
    // Without a list, the events of the tools that it may call.
    assert_eq!(
        (by("caller").publish("task.delegate"), by("caller").publish("task.done")),
        (201, 403)
    );
    assert_eq!(
        (by("other").publish("task.delegate"), by("nobody").publish("task.delegate")),
        (403, 403)
    );
    assert_eq!(by("worker").page(), ["task.done", "task.delegate"]);
    assert_eq!(by("caller").page(), ["task.delegate"]);
    assert_eq!(by("other").page(), [""; 0]);
    // Nobody can say that it is of another group.
    let headers = [("Authorization", "Bearer worker-token"), ("Accept", "application/json")];
    let page = serving.get("/events?from=first", &headers).json();
    assert_eq!(
        (&page["events"][0]["group"], &page["events"][1]["group"]),
        (&json!("worker"), &json!("caller"))
    );
}

#[test]
fn a_consumer_is_its_groups_own() {
    let (_folder, serving) = serving();
    let by = |group: &str| As(&serving, format!("Bearer {group}-token"));
    by("caller").publish("task.delegate");
    let mut stream = Stream::open(&serving, "consumer=w", &by("caller").headers());
    assert_eq!(stream.next().unwrap().id, 1);
    // Another group's consumer of the same name is another, and cannot settle for it.
    let ack = json!({ "consumer": "w", "sequences": [1] }).to_string();
    let foreign = serving.request("POST", "/events/ack", &by("worker").headers(), &ack);
    assert_eq!(foreign.json(), json!({ "settled": [], "unknown": [1] }));
    let full = json!({ "consumer": "caller/w", "sequences": [1] }).to_string();
    assert_eq!(serving.request("POST", "/events/ack", &by("worker").headers(), &full).status, 400);
    let listed = serving.get("/events/consumers", &by("worker").headers()).json();
    assert_eq!(listed["consumers"], json!([]));
    let own = serving.request("POST", "/events/ack", &by("caller").headers(), &ack);
    assert_eq!(own.json(), json!({ "settled": [1], "unknown": [] }));
    // What a group may not read its consumer passes over.
    by("worker").publish("task.done");
    by("caller").publish("task.delegate");
    assert_eq!(stream.next().unwrap().id, 3);
}

#[test]
fn built_in_tools_are_there_for_those_who_name_them() {
    let (_folder, serving) = serving();
    let by = |group: &str| As(&serving, format!("Bearer {group}-token"));
    assert_eq!(
        by("worker").tools(),
        ["delegate_task", "events_ack", "events_poll", "events_publish"]
    );
    assert_eq!(by("nobody").tools(), ["delegate_task"]);
    let hidden = by("nobody").call("events_poll", &json!({}));
    assert_eq!(
        (&hidden["error"]["code"], &hidden["error"]["message"]),
        (&json!(-32602), &json!("Unknown tool: events_poll"))
    );
    let worker = by("worker");
    let result = worker
        .call("events_publish", &json!({ "name": "task.run", "data": { "n": 1.50 } }))["result"]
        .clone();
    assert!(
        result["content"][0]["text"].as_str().unwrap().starts_with("Event emitted: task.run (id "),
        "{result}"
    );
    let refused =
        worker.call("events_publish", &json!({ "name": "secret.made", "data": 1 }))["result"]
            .clone();
    assert_eq!(refused["isError"], true);
    assert_eq!(refused["content"][0]["text"], "events named `secret.made` are not for your group");
    let polled = worker.call("events_poll", &json!({ "match": ["task.*"] }))["result"].clone();
    let event = &polled["structuredContent"]["events"][0];
    assert_eq!(
        (&event["type"], event["data"]["n"].to_string().as_str()),
        (&json!("task.run"), "1.5")
    );
    let acked =
        worker.call("events_ack", &json!({ "sequences": [event["sequence"]] }))["result"].clone();
    assert_eq!(acked["structuredContent"], json!({ "settled": [1], "unknown": [] }));
    let none = worker.call("events_poll", &json!({ "wait_seconds": 0.1 }))["result"].clone();
    assert_eq!(
        (&none["content"][0]["text"], &none["structuredContent"]["events"]),
        (&json!("No events wait."), &json!([]))
    );
    for (tool, arguments) in [
        ("events_poll", json!({ "max": 0 })),
        ("events_poll", json!({ "consumer": "a b" })),
        ("events_poll", json!({ "wait_seconds": 1000 })),
        ("events_poll", json!({ "mach": [] })),
        ("events_ack", json!({})),
        ("events_ack", json!({ "sequences": [1], "outcome": "maybe" })),
        ("events_publish", json!({ "name": "task.run" })),
        ("events_publish", json!({ "name": "", "data": 1 })),
    ] {
        let result = worker.call(tool, &arguments)["result"].clone();
        assert_eq!(result["isError"], true, "{tool} {arguments} {result}");
    }
}

/// A tool whose event has a part that a call fills in gives rights to one word there, not to all below.
#[test]
fn what_a_call_fills_in_is_one_word_of_the_rights_too() {
    let folder = Folder::new();
    folder.write(
        "events/orders.yaml",
        "asyncapi: 3.0.0\ninfo: {title: a, version: '1'}\nchannels: {c: {address: 'orders.{id}'}, d: {address: '{topic}'}}\n\
         operations: {order: {action: send, channel: {$ref: '#/channels/c'}, x-agent-tool: {enabled: true}}, any: {action: send, channel: {$ref: '#/channels/d'}, x-agent-tool: {enabled: true}}}\n",
    );
    folder.write(
        "network.yaml",
        "external_access: { groups: { caller: { auth_token: caller-token } } }\n",
    );
    let serving = Serving::start(folder.path());
    let by = As(&serving, "Bearer caller-token".to_owned());
    let called = by.call("order", &json!({ "id": "7" }));
    assert!(called.to_string().contains("Event emitted: orders.7"), "{called}");
    assert_eq!((by.publish("orders.8"), by.publish("word")), (201, 201));
    assert_eq!((by.publish("orders.8.refund"), by.publish("payroll.salary")), (403, 403));
    assert_eq!(by.page(), ["orders.7", "orders.8", "word"]);
}

/// A reload takes away what was given, also from those who are reading.
#[test]
fn rights_that_are_taken_away_are_gone_at_once() {
    let (folder, serving) = serving();
    let by = |group: &str| As(&serving, format!("Bearer {group}-token"));
    let mut stream = Stream::open(&serving, "match=*", &by("worker").headers());
    by("worker").publish("task.one");
    assert_eq!(stream.next().unwrap().event["type"], "task.one");
    folder.write("network.yaml", GROUPS.replace("['task.*']", "['mail.*']"));
    serving.signal("-HUP");
    crate::kit::soon("the new rules", || by("worker").publish("task.two") == 403);
    by("caller").publish("task.delegate");
    assert_eq!(by("worker").publish("mail.sent"), 201);
    // Whatever was published before the rules changed was theirs to see.
    let told = || stream.next().unwrap().event["type"].clone();
    let next = std::iter::repeat_with(told).find(|it| it != "task.two");
    assert_eq!(next.unwrap(), "mail.sent");
}
