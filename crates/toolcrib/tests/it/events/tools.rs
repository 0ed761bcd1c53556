//! Event tools as agents call them.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Stream, TASKS, publish, task, workspace};
use crate::{
    kit::{Folder, soon},
    python::Caller,
    serving::Serving,
};

#[test]
fn the_operation_of_the_guide_is_a_tool_and_calling_it_emits_its_event() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let listed = caller.ask("tools/list", &json!({}))["result"]["tools"].clone();
    assert_eq!(listed.as_array().unwrap().len(), 1);
    assert_eq!(listed[0]["name"], "delegate_task");
    assert_eq!(listed[0]["description"], "Delegate a task to a worker agent");
    assert_eq!(
        listed[0]["inputSchema"],
        json!({
            "type": "object",
            "required": ["task_id", "task_type", "instructions"],
            "properties": {
                "task_id": { "type": "string", "description": "Unique identifier for the task" },
                "task_type": { "type": "string", "enum": ["download", "analyze", "convert"] },
                "instructions": { "type": "string", "description": "Detailed instructions" },
            },
        })
    );
    let mut stream = Stream::open(&serving, "match=task.*", &[]);
    let params = json!({
        "name": "delegate_task", "arguments": task("t1"),
        "_meta": { "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" },
    });
    let result = caller.ask("tools/call", &params)["result"].clone();
    assert_eq!(result["isError"], false, "{result}");
    let text = result["content"][0]["text"].as_str().unwrap();
    let told = stream.next().unwrap();
    let id = told.event["id"].as_str().unwrap();
    assert_eq!(text, format!("Event emitted: task.delegate (id {id}, sequence 1)"));
    assert_eq!(
        result["structuredContent"],
        json!({ "event": "task.delegate", "id": id, "sequence": 1 })
    );
    let event = &told.event;
    assert_eq!((told.id, &event["sequence"]), (1, &json!("1")));
    assert_eq!((&event["specversion"], &event["type"]), (&json!("1.0"), &json!("task.delegate")));
    assert_eq!((&event["group"], &event["tool"]), (&json!("guest"), &json!("delegate_task")));
    assert_eq!(event["traceparent"], "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    assert_eq!(event["data"], task("t1"));
    assert!(event["time"].as_str().unwrap().ends_with('Z'), "{event}");
}

#[test]
fn j01_what_does_not_fit_is_refused_before_anything_is_appended() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let error = caller.error("delegate_task", &json!({ "task_type": "upload", "task_id": 7 }));
    for part in ["instructions", "required", "`task_type`", "download", "`task_id`"] {
        assert!(error.contains(part), "{part}: {error}");
    }
    let error = caller.error("delegate_task", &json!({}));
    assert!(error.contains("required"), "{error}");
    let huge =
        json!({ "task_id": "x".repeat(2 << 20), "task_type": "download", "instructions": "" });
    let error = caller.error("delegate_task", &huge);
    assert!(error.starts_with("The event was not emitted: the event has"), "{error}");
    assert_eq!(caller.text("delegate_task", &task("good")).split("sequence ").nth(1), Some("1)"));
}

/// Numbers of any length and the order of keys reach whoever reads.
#[test]
fn what_an_agent_says_arrives_to_the_letter() {
    let folder = Folder::new();
    folder.write(
        "events/any.yaml",
        "asyncapi: 3.0.0\ninfo: {title: a, version: '1'}\nchannels: {c: {address: any.thing}}\n\
         operations: {anything: {action: send, channel: {$ref: '#/channels/c'}, x-agent-tool: {enabled: true}}}\n",
    );
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let arguments = r#"{"z":1.10,"a":123456789012345678901234567890,"nested":{"k":"\u00e9"}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"name":"anything","arguments":{arguments}}}}}"#
    );
    let headers = [("Mcp-Session-Id", session.as_str())];
    assert_eq!(serving.request("POST", "/mcp", &headers, &body).status, 200);
    let page = serving.get("/events?from=first", &[("Accept", "application/json")]);
    assert!(page.body.contains(&format!(r#""data":{arguments}}}"#)), "{}", page.body);
}

#[test]
fn an_edit_is_served_a_moment_later_and_a_broken_one_is_told() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    assert_eq!(caller.tools(), ["delegate_task"]);
    folder.write("events/task_coordination.yaml", TASKS.replace("delegate_task", "hand_over"));
    let mut caller = std::cell::RefCell::new(caller);
    soon("the new name", || caller.borrow_mut().tools() == ["hand_over"]);
    // One that is broken just now stays as it was.
    folder.write("events/task_coordination.yaml", "asyncapi: [");
    folder.write("events/more.yaml", TASKS.replace("delegate_task", "another"));
    soon("another comes along", || caller.borrow_mut().tools() == ["another", "hand_over"]);
    caller.get_mut().text("hand_over", &task("t"));
    std::fs::remove_file(folder.file("events/more.yaml")).unwrap();
    folder.write("events/task_coordination.yaml", TASKS);
    soon("it is back", || caller.borrow_mut().tools() == ["delegate_task"]);
    caller.get_mut().text("delegate_task", &task("t"));
    std::fs::remove_file(folder.file("events/task_coordination.yaml")).unwrap();
    soon("nothing is left", || caller.borrow_mut().tools().is_empty());
}

/// An operation with a reply: whoever answers, answers by the id of the event.
const ASKS: &str = r##"
asyncapi: '3.0.0'
info: {title: Prices, version: '1'}
channels:
  ask: {address: price.ask, messages: {m: {payload: {type: object, properties: {item: {type: string}}, required: [item]}}}}
  answer: {address: price.answer, messages: {m: {payload: {type: object, properties: {price: {type: number}}, required: [price]}}}}
operations:
  askPrice:
    action: send
    channel: {$ref: '#/channels/ask'}
    reply: {channel: {$ref: '#/channels/answer'}}
    x-agent-tool: {enabled: true, name: ask_price, wait: WAIT}
"##;

#[test]
fn a_tool_waits_for_the_reply_to_its_event() {
    let folder = Folder::new();
    folder.write("events/prices.yaml", ASKS.replace("WAIT", "10s"));
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let tool = caller.ask("tools/list", &json!({}))["result"]["tools"][0].clone();
    assert_eq!(tool["outputSchema"]["required"], json!(["price"]), "{tool}");
    let answerer = std::thread::scope(|scope| {
        let answering = scope.spawn(|| {
            let mut stream = Stream::open(&serving, "match=price.ask&from=first", &[]);
            let asked = stream.next().unwrap();
            // Somebody else's answer, and then ours.
            publish(&serving, "price.answer", &json!({ "price": 1 }));
            let reply = json!({ "type": "price.answer", "correlationid": asked.event["id"], "data": { "price": 9.90 } });
            let text = reply.to_string().replace("9.9}", "9.90}");
            assert_eq!(serving.request("POST", "/events", &[], &text).status, 201);
            asked.event["id"].as_str().unwrap().to_owned()
        });
        let result = caller.call("ask_price", &json!({ "item": "nail" }));
        assert_eq!(result["structuredContent"]["price"].to_string(), "9.90", "{result}");
        assert_eq!(result["isError"], false);
        assert!(
            result["content"][0]["text"].as_str().unwrap().starts_with("Event emitted: price.ask")
        );
        answering.join().unwrap()
    });
    assert!(!answerer.is_empty());
}

#[test]
fn a_reply_that_does_not_come_or_does_not_fit_is_told_as_it_is() {
    let folder = Folder::new();
    folder.write("events/prices.yaml", ASKS.replace("WAIT", "500ms"));
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let begin = Instant::now();
    let error = caller.error("ask_price", &json!({ "item": "nail" }));
    assert!(
        error.contains("nobody answered within 500 ms") && error.starts_with("Event emitted"),
        "{error}"
    );
    assert!(begin.elapsed() < Duration::from_secs(5));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut stream = Stream::open(&serving, "match=price.ask&from=new", &[]);
            let asked = stream.next().unwrap();
            let reply = json!({ "type": "price.answer", "correlationid": asked.event["id"], "data": { "price": "dear" } });
            serving.request("POST", "/events", &[], &reply.to_string());
        });
        std::thread::sleep(Duration::from_millis(300));
        let error = caller.error("ask_price", &json!({ "item": "nail" }));
        assert!(error.contains("not as its schema says") && error.contains("/price"), "{error}");
    });
}

#[test]
fn a_python_tool_emits() {
    let folder = workspace();
    folder.write(
        "tools/shout.py",
        "from toolcrib import tool, Context\n\n@tool\nasync def shout(text: str, ctx: Context) -> dict:\n    \
         \"\"\"Shout.\"\"\"\n    return await ctx.emit('shout.made', {'text': text})\n\n\
         @tool\ndef mutter(name: str, ctx: Context) -> str:\n    \"\"\"Mutter.\"\"\"\n    \
         return str(ctx.emit(name, None)['sequence'])\n",
    );
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let result = caller.call("shout", &json!({ "text": "hello" }));
    assert_eq!(result["structuredContent"]["sequence"], 1, "{result}");
    assert_eq!(caller.text("mutter", &json!({ "name": "mutter.made" })), "2");
    let error = caller.error("mutter", &json!({ "name": "not a name" }));
    assert!(error.contains("must not hold"), "{error}");
    let page = serving.get("/events?from=first", &[("Accept", "application/json")]).json();
    let event = &page["events"][0];
    assert_eq!(
        (&event["type"], &event["tool"], &event["group"]),
        (&json!("shout.made"), &json!("shout"), &json!("guest"))
    );
    assert_eq!(
        (&event["data"]["text"], &page["events"][1]["data"]),
        (&json!("hello"), &Value::Null)
    );
}

/// Two tools of one name: only their author can say which is meant.
#[test]
fn a_name_that_is_defined_twice_refuses_the_start() {
    let folder = workspace();
    folder.write("tools/d.py", "from toolcrib import tool\n\n@tool\ndef delegate_task() -> str:\n    \"\"\"x\"\"\"\n    return ''\n");
    let run = crate::kit::toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(run.code, 2, "{}", run.transcript());
    assert!(
        run.err.contains(
            "Tool name conflict: 'delegate_task' is defined in both 'workspace' and 'event'. Tool names must be unique."
        ),
        "{}",
        run.transcript()
    );
}
