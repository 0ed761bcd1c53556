//! Spans are what happened, hang together, and hold no secrets.

use std::{io::Write, process::Stdio};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use super::{
    call, call_with,
    collector::{Collector, Manner, Seen},
    metrics,
};
use crate::{
    kit::{Folder, entry},
    python::Caller,
    real::installed,
    serving::Serving,
};

const TRACE: &str = "0af7651916cd43dd8448eb211c80319c";
const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// A gateway that sends its spans to a collector, over a server that ends calls in every way.
pub(super) fn folder(collector: &str) -> Folder {
    let folder = Folder::new();
    let number = r#"{"type":"object","properties":{"n":{"type":"integer"}}}"#;
    let plan = Plan::legacy()
        .tool("echo", Act::Echo)
        .tool("fail", Act::Fail)
        .tool("error", Act::Error(-32050))
        .tool("hang", Act::Hang)
        .tool_with("number", number, Act::Echo)
        .notes(folder.file("notes"));
    let mut server = entry(&plan);
    server["timeout"] = json!("500ms");
    folder.write("mcp.json", json!({ "mcpServers": { "s": server } }).to_string());
    let headers = "{ x-collector-key: '${COLLECTOR_KEY}' }";
    let rules =
        format!("telemetry: {{ otlp: '{collector}', service: crib, headers: {headers} }}\n");
    folder.write("network.yaml", rules);
    folder
}

pub(super) const KEY: [(&str, &str); 1] = [("COLLECTOR_KEY", "SECRET_KEY_OF_THE_COLLECTOR")];

/// `_meta` of the calls of a tool that reached the server.
pub(super) fn reached(folder: &Folder) -> Vec<Value> {
    let notes = std::fs::read_to_string(folder.file("notes")).unwrap();
    let notes = notes.lines().map(|it| serde_json::from_str::<Value>(it).unwrap());
    let calls = notes.filter(|it| it["method"] == "tools/call");
    calls.map(|it| it["params"]["_meta"].clone()).collect()
}

fn pair(spans: &[Seen]) -> (&Seen, &Seen) {
    let server = spans.iter().find(|it| it.is_server()).unwrap();
    (server, spans.iter().find(|it| !it.is_server()).unwrap())
}

#[test]
fn a_call_is_a_span_and_the_request_to_its_server_one_below() {
    let collector = Collector::start(Manner::Takes);
    let folder = folder(&collector.url);
    let serving = Serving::start_with(folder.path(), &KEY);
    let meta = json!({ "traceparent": PARENT, "tracestate": "vendor=1", "other": 1.5 });
    let answer = call_with(&serving, &[], "mcp__s__echo", &json!({ "q": "QUERY_TEXT" }), meta);
    assert_eq!(answer.status, 200);
    serving.signal("-TERM");
    let spans = collector.spans(2);
    let (server, client) = pair(&spans);
    assert_eq!((server.text("traceId"), client.text("traceId")), (TRACE, TRACE));
    assert_eq!(server.text("parentSpanId"), "b7ad6b7169203331");
    assert_eq!(client.text("parentSpanId"), server.text("spanId"));
    assert_eq!(server.text("name"), "tools/call mcp__s__echo");
    assert_eq!((client.text("name"), &client.it["kind"]), ("tools/call echo", &json!(3)));
    for (key, value) in [
        ("mcp.method.name", "tools/call"),
        ("gen_ai.operation.name", "execute_tool"),
        ("gen_ai.tool.name", "mcp__s__echo"),
        ("jsonrpc.request.id", "7"),
        ("mcp.protocol.version", "2026-07-28"),
        ("network.transport", "tcp"),
        ("client.address", "127.0.0.1"),
        ("toolcrib.server", "s"),
        ("toolcrib.outcome", "ok"),
        ("error.type", ""),
    ] {
        assert_eq!(server.get(key), value, "{key}: {server:?}");
    }
    assert_eq!((client.get("gen_ai.tool.name"), client.get("toolcrib.server")), ("echo", "s"));
    assert_eq!((&server.it["status"], &client.it["status"]), (&json!({}), &json!({})));
    let nanos = |it: &Seen, key: &str| it.text(key).parse::<u64>().unwrap();
    assert!(nanos(server, "startTimeUnixNano") <= nanos(client, "startTimeUnixNano"));
    assert!(nanos(client, "startTimeUnixNano") < nanos(client, "endTimeUnixNano"));
    // The server hears whose call it is, and all else as it was sent.
    let meta = &reached(&folder)[0];
    assert_eq!(meta["traceparent"], client.traceparent());
    assert_eq!((&meta["tracestate"], &meta["other"]), (&json!("vendor=1"), &json!(1.5)));
    let (head, body) = &collector.requests()[0];
    assert!(head.starts_with("POST /v1/traces HTTP/1.1\r\n"), "{head}");
    assert!(head.to_lowercase().contains("content-type: application/json\r\n"), "{head}");
    assert!(head.contains("x-collector-key: SECRET_KEY_OF_THE_COLLECTOR"), "{head}");
    assert!(body.contains(r#"{"key":"service.name","value":{"stringValue":"crib"}}"#), "{body}");
    assert!(!body.contains("QUERY_TEXT"), "{body}");
}

#[test]
fn a_span_says_how_a_call_ended_and_no_more_than_that() {
    let collector = Collector::start(Manner::Takes);
    let folder = folder(&collector.url);
    let serving = Serving::start_with(folder.path(), &KEY);
    let go = |tool: &str, given: &Value| call(&serving, &[], tool, given).status;
    go("mcp__s__fail", &json!({ "q": "QUERY_TEXT" }));
    go("mcp__s__error", &json!({}));
    go("mcp__s__hang", &json!({}));
    go("mcp__s__number", &json!({ "n": "QUERY_TEXT" }));
    go("none ghp_0123456789abcdefghijklmnopqrstuvwxyz", &json!({}));
    go("SECRET_KEY_OF_THE_COLLECTOR", &json!({}));
    serving.signal("-TERM");
    let spans = collector.spans(9);
    let of = |name: &str, server: bool| {
        let found = spans.iter().find(|it| it.text("name") == name && it.is_server() == server);
        found.unwrap_or_else(|| panic!("{name}: {spans:#?}"))
    };
    let failed = json!({ "code": 2 });
    for (tool, outcome, error, status) in [
        ("fail", "tool_error", "tool_error", ""),
        ("error", "upstream_error", "-32050", "-32050"),
        ("hang", "timeout", "timeout", ""),
        ("number", "invalid_arguments", "invalid_arguments", ""),
    ] {
        let span = of(&format!("tools/call mcp__s__{tool}"), true);
        let found = (span.get("toolcrib.outcome"), span.get("error.type"));
        assert_eq!(found, (outcome, error), "{span:?}");
        assert_eq!(span.get("rpc.response.status_code"), status, "{span:?}");
        assert_eq!(span.it["status"], failed);
        if tool != "number" {
            let span = of(&format!("tools/call {tool}"), false);
            assert_eq!((span.get("error.type"), &span.it["status"]), (error, &failed));
        }
    }
    // What is no tool stands in no name of a span, and without secrets beside it.
    let unknown: Vec<&Seen> = spans.iter().filter(|it| it.text("name") == "tools/call").collect();
    assert_eq!(unknown.len(), 2, "{spans:#?}");
    for span in unknown {
        assert_eq!(span.get("toolcrib.outcome"), "unknown_tool");
        assert!(span.get("gen_ai.tool.name").contains("****"), "{span:?}");
    }
    for (_, body) in collector.requests() {
        for secret in ["QUERY_TEXT", "0123456789abcdef", "SECRET_KEY"] {
            assert!(!body.contains(secret), "{secret}: {body}");
        }
    }
}

#[test]
fn a_trace_that_nobody_keeps_is_not_sent_and_a_share_of_the_others_is() {
    let collector = Collector::start(Manner::Takes);
    let folder = folder(&collector.url);
    let rules = std::fs::read_to_string(folder.file("network.yaml")).unwrap();
    folder.write("network.yaml", rules.replace("service:", "sample: 0, service:"));
    let serving = Serving::start_with(folder.path(), &KEY);
    let quiet = PARENT.replace("-01", "-00");
    let meta = |text: &str| json!({ "traceparent": text });
    call_with(&serving, &[], "mcp__s__echo", &json!({}), meta(&quiet));
    call(&serving, &[], "mcp__s__echo", &json!({}));
    // One that is kept elsewhere is kept here, whatever our share.
    call_with(&serving, &[], "mcp__s__echo", &json!({}), meta(PARENT));
    serving.signal("-TERM");
    collector.spans(2);
    let reached = reached(&folder);
    assert_eq!(reached[0]["traceparent"], quiet);
    assert!(reached[1]["traceparent"].as_str().unwrap().ends_with("-00"), "{reached:?}");
}

/// What we send is what the protobuf definitions of OpenTelemetry have, as their own library reads it.
#[test]
fn what_is_sent_is_read_by_the_official_definitions() {
    let Some(tools) = installed() else { return };
    let collector = Collector::start(Manner::Takes);
    let folder = folder(&collector.url);
    let serving = Serving::start_with(folder.path(), &KEY);
    let header = [("traceparent", PARENT), ("tracestate", "vendor=1")];
    call(&serving, &header, "mcp__s__echo", &json!({}));
    call(&serving, &[], "mcp__s__error", &json!({}));
    serving.signal("-TERM");
    collector.spans(4);
    let script = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/otlp/read.py");
    for (_, body) in collector.requests() {
        let mut child = std::process::Command::new(tools.join("venv/bin/python"))
            .arg(&script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
        let output = child.wait_with_output().unwrap();
        let read = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{body}");
        assert!(read.contains("SPAN_KIND_SERVER tools/call mcp__s__echo vendor=1"), "{read}");
        assert!(read.contains("SPAN_KIND_CLIENT tools/call error"), "{read}");
    }
}

#[test]
fn what_was_sent_shows_among_what_is_counted() {
    let collector = Collector::start(Manner::Takes);
    let folder = folder(&collector.url);
    let serving = Serving::start_with(folder.path(), &KEY);
    call(&serving, &[], "mcp__s__echo", &json!({}));
    assert_eq!(metrics(&serving, &[]).sum("toolcrib_span_queue", &[]), 2.0);
    // A span waits for others, but not for long.
    collector.spans(2);
    crate::kit::soon("they are counted", || {
        let page = metrics(&serving, &[]);
        page.sum("toolcrib_spans_total", &[("result", "sent")]) == 2.0
            && page.sum("toolcrib_spans_total", &[]) == 2.0
            && page.sum("toolcrib_span_queue", &[]) == 0.0
    });
}

#[test]
fn what_is_read_is_a_span_and_counts() {
    let Some(tools) = installed() else { return };
    let server = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
    let folder = Folder::workspace(
        &json!({ "e": { "command": "node", "args": [tools.join(server), "stdio"] } }),
    );
    let collector = Collector::start(Manner::Takes);
    folder.write("network.yaml", format!("telemetry: {{ otlp: '{}' }}\n", collector.url));
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let prompts = caller.ask("prompts/list", &json!({}))["result"]["prompts"].clone();
    let plain = |it: &&Value| it["arguments"].as_array().is_none_or(Vec::is_empty);
    let prompt = prompts.as_array().unwrap().iter().find(plain).unwrap()["name"].clone();
    let resources = caller.ask("resources/list", &json!({}))["result"]["resources"].clone();
    let uri = resources[0]["uri"].clone();
    let got = caller.ask("prompts/get", &json!({ "name": prompt }));
    assert!(got["result"]["messages"].is_array(), "{got}");
    let read = caller.ask("resources/read", &json!({ "uri": uri }));
    assert!(read["result"]["contents"].is_array(), "{read}");
    let page = metrics(&serving, &[]);
    for method in ["prompts/get", "resources/read"] {
        let labels = [("server", "e"), ("method", method), ("outcome", "ok")];
        assert_eq!(page.sum("toolcrib_reads_total", &labels), 1.0, "{method}");
    }
    serving.signal("-TERM");
    let spans = collector.spans(4);
    let (prompt, uri) = (prompt.as_str().unwrap(), uri.as_str().unwrap());
    let of = |method: &str, server: bool| {
        let fits = |it: &&Seen| it.get("mcp.method.name") == method && it.is_server() == server;
        spans.iter().find(fits).unwrap_or_else(|| panic!("{method}: {spans:#?}"))
    };
    let (server, client) = (of("prompts/get", true), of("prompts/get", false));
    assert_eq!(server.text("name"), format!("prompts/get {prompt}"));
    assert_eq!(server.get("gen_ai.prompt.name"), prompt);
    let own = client.get("gen_ai.prompt.name");
    assert_eq!((own, client.text("name")), ("simple-prompt", "prompts/get simple-prompt"));
    assert_eq!(server.get("gen_ai.operation.name"), "");
    let (server, client) = (of("resources/read", true), of("resources/read", false));
    assert_eq!((server.text("name"), server.get("mcp.resource.uri")), ("resources/read", uri));
    assert_eq!(client.text("parentSpanId"), server.text("spanId"));
}
