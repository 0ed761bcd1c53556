//! Traces go through: from clients to servers, from tools to the tools that they call, from servers to clients.

use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib::{
    catalogue::{Answering, CallContext, Json, Listener, Source},
    sources::mcp::{Client, ClientOptions, Transport},
};
use toolcrib_testkit::{Act, Plan};

use super::{
    call, call_with,
    collector::{Collector, Manner},
    traces::{KEY, folder, reached},
};
use crate::{
    kit::{Folder, at, entry},
    python::Caller,
    serving::Serving,
};

const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

#[test]
fn what_the_transport_says_counts_where_the_message_says_nothing() {
    let collector = Collector::start(Manner::Takes);
    let folder = folder(&collector.url);
    let serving = Serving::start_with(folder.path(), &KEY);
    let headers = [("traceparent", PARENT), ("tracestate", "vendor=1")];
    call(&serving, &headers, "mcp__s__echo", &json!({}));
    let other = PARENT.replace("0af7", "1bf7");
    call_with(&serving, &headers, "mcp__s__echo", &json!({}), json!({ "traceparent": other }));
    // What is no trace is none, and a new one begins.
    call(&serving, &[("traceparent", "password=hunter2")], "mcp__s__echo", &json!({}));
    serving.signal("-TERM");
    let spans = collector.spans(6);
    let servers: Vec<_> = spans.iter().filter(|it| it.is_server()).collect();
    assert_eq!(servers[0].text("parentSpanId"), "b7ad6b7169203331");
    assert_eq!(servers[0].text("traceState"), "vendor=1");
    assert_eq!(servers[1].text("traceId"), &other[3..35]);
    assert_eq!(servers[2].text("parentSpanId"), "");
    let reached = reached(&folder);
    assert_eq!(reached[0]["tracestate"], "vendor=1");
    assert!(reached[0]["traceparent"].as_str().unwrap().contains(&PARENT[3..35]));
    assert!(reached[1]["traceparent"].as_str().unwrap().contains(&other[3..35]));
}

#[test]
fn a_session_is_told_apart_by_a_name_that_opens_no_door() {
    let collector = Collector::start(Manner::Takes);
    let folder = folder(&collector.url);
    let serving = Serving::start_with(folder.path(), &KEY);
    let session = serving.session(&[], "2025-11-25");
    let headers = [("Mcp-Session-Id", session.as_str())];
    let body = json!({ "jsonrpc": "2.0", "id": "seven", "method": "tools/call",
        "params": { "name": "mcp__s__echo", "arguments": {} } });
    assert_eq!(serving.post(&headers, &body).status, 200);
    serving.signal("-TERM");
    let spans = collector.spans(2);
    let server = spans.iter().find(|it| it.is_server()).unwrap();
    assert_eq!(server.get("mcp.session.id").len(), 32);
    assert_eq!(server.get("jsonrpc.request.id"), "seven");
    assert_eq!(server.get("mcp.protocol.version"), "2025-11-25");
    assert!(!collector.requests()[0].1.contains(&session));
}

#[test]
fn where_nobody_traces_everything_passes_as_it_was_sent() {
    let folder = folder("off");
    let env = [KEY[0], ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")];
    let serving = Serving::start_with(folder.path(), &env);
    let meta = json!({ "traceparent": PARENT, "tracestate": "vendor=1" });
    call_with(&serving, &[], "mcp__s__echo", &json!({}), meta);
    call(&serving, &[("traceparent", PARENT)], "mcp__s__echo", &json!({}));
    let reached = reached(&folder);
    assert_eq!(reached[0]["traceparent"], PARENT);
    assert_eq!(reached[0]["tracestate"], "vendor=1");
    assert_eq!(reached[1].get("traceparent"), None, "{reached:?}");
    let page = super::metrics(&serving, &[]);
    assert!(!page.has("toolcrib_spans_total"));
}

#[test]
fn the_variables_of_opentelemetry_are_enough() {
    let collector = Collector::start(Manner::Takes);
    let folder = folder("off");
    folder.write("network.yaml", "");
    let env = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=a%20b"),
        ("OTEL_SERVICE_NAME", "by-variable"),
    ];
    let serving = Serving::start_with(folder.path(), &env);
    call(&serving, &[], "mcp__s__echo", &json!({}));
    serving.signal("-TERM");
    collector.spans(2);
    let (head, body) = &collector.requests()[0];
    assert!(head.contains("x-key: a b\r\n"), "{head}");
    assert!(body.contains("by-variable"), "{body}");
}

/// A tool of ours that calls another, which emits an event: one trace from end to end.
#[test]
fn a_tool_that_calls_another_is_in_the_same_trace() {
    let collector = Collector::start(Manner::Takes);
    let folder = folder(&collector.url);
    folder.write(
        "tools/outer.py",
        "from toolcrib import tool, Context\n\n\
         @tool\nasync def outer(ctx: Context) -> str:\n    await ctx.call('mcp__s__echo', q=1)\n    \
         await ctx.emit('outer.done', {'n': 1})\n    return 'done'\n",
    );
    let serving = Serving::start_with(folder.path(), &KEY);
    let mut caller = Caller::new(&serving);
    assert_eq!(caller.text("outer", &json!({})), "done");
    let events = serving.get("/events?from=first&wait=0", &[("Accept", "application/json")]);
    serving.signal("-TERM");
    let spans = collector.spans(4);
    let named = |name: &str| {
        let found = spans.iter().find(|it| it.text("name") == name && it.is_server());
        found.unwrap_or_else(|| panic!("{name}: {spans:#?}"))
    };
    let (outer, inner) = (named("tools/call outer"), named("tools/call mcp__s__echo"));
    let request = spans
        .iter()
        .find(|it| !it.is_server() && it.text("parentSpanId") == outer.text("spanId"))
        .unwrap();
    assert_eq!(inner.text("parentSpanId"), request.text("spanId"));
    let last = spans.iter().find(|it| it.text("name") == "tools/call echo").unwrap();
    assert_eq!(last.text("parentSpanId"), inner.text("spanId"));
    assert!(spans.iter().all(|it| it.text("traceId") == outer.text("traceId")));
    assert!(events.body.contains(&request.traceparent()), "{events:?}");
}

/// Somebody who is asked, and notes what.
#[derive(Debug, Default)]
struct Asked(Mutex<Vec<Value>>);

impl Listener for Asked {
    fn notified(&self, _method: &str, _params: Option<Json>) {}

    fn asked(&self, method: &str, params: Option<Json>) -> Option<Answering> {
        let params: Value = serde_json::from_slice(params?.as_bytes()).unwrap();
        self.0.lock().push(json!({ "method": method, "params": params }));
        let answer = Json::of(&json!({ "action": "decline" })).unwrap();
        Some(Box::pin(async move { Ok(answer) }))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_asks_of_a_client_keeps_its_trace() {
    let ask = |method: &str| {
        let params = json!({ "message": "?", "messages": [], "maxTokens": 1,
            "requestedSchema": { "type": "object", "properties": {} },
            "_meta": { "traceparent": PARENT, "tracestate": "vendor=1" } });
        Act::Ask(method.to_owned(), params.to_string())
    };
    let plan = Plan::legacy()
        .tool("sample", ask("sampling/createMessage"))
        .tool("elicit", ask("elicitation/create"));
    let collector = Collector::start(Manner::Takes);
    let folder = Folder::workspace(&json!({ "s": entry(&plan) }));
    folder.write("network.yaml", format!("telemetry: {{ otlp: '{}' }}\n", collector.url));
    let serving = Serving::start(folder.path());
    let options =
        ClientOptions { relays: true, ..ClientOptions::with_environment(&toolcrib::environment) };
    let client = Client::new(options);
    client.add_server(at("g", Transport::Sse, &serving.url("/sse"))).unwrap();
    let asked = Arc::new(Asked::default());
    let connection = client.connect("g").await.unwrap();
    for tool in ["mcp__s__sample", "mcp__s__elicit"] {
        let params = Json::of(&json!({ "name": tool, "arguments": {} })).unwrap();
        let listener = Some(Arc::clone(&asked) as Arc<dyn Listener>);
        let context = CallContext { listener, ..CallContext::default() };
        connection.request("tools/call", params, context).await.unwrap();
    }
    client.close().await;
    let heard = asked.0.lock();
    assert_eq!(heard.len(), 2, "{heard:?}");
    for question in heard.iter() {
        let meta = &question["params"]["_meta"];
        assert_eq!(meta["traceparent"], PARENT, "{question}");
        assert_eq!(meta["tracestate"], "vendor=1", "{question}");
    }
}
