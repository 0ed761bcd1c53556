//! What is counted is what happened.

use serde_json::json;
use toolcrib_testkit::{Act, Plan};

use super::{call, metrics};
use crate::{
    kit::{Folder, entry, soon},
    serving::Serving,
};

const CALLS: &str = "toolcrib_calls_total";

/// A gateway over a server whose tools end in every way.
fn folder() -> Folder {
    let number = r#"{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}"#;
    let plan = Plan::legacy()
        .tool("echo", Act::Echo)
        .tool("fail", Act::Fail)
        .tool("error", Act::Error(-32050))
        .tool("hang", Act::Hang)
        .tool("count", Act::Count)
        .tool("few", Act::Echo)
        .tool("add", Act::Add("late".to_owned()))
        .tool_with("number", number, Act::Echo);
    let mut server = entry(&plan);
    server["timeout"] = json!("500ms");
    let folder = Folder::workspace(&json!({ "s": server }));
    folder.write(
        "network.yaml",
        "
limits: { tools: { mcp__s__few: { rate: 1/h } } }
cache: { tools: { mcp__s__count: { ttl: 1h } } }
",
    );
    folder
}

#[test]
fn every_call_counts_once_as_what_it_was() {
    let folder = folder();
    let serving = Serving::start(folder.path());
    let go = |tool: &str| call(&serving, &[], &format!("mcp__s__{tool}"), &json!({}));
    for _ in 0..3 {
        assert_eq!(go("echo").status, 200);
    }
    for tool in ["fail", "error", "hang", "number", "count", "count", "few", "few", "nothing"] {
        go(tool);
    }
    go("password=hunter2hunter2");
    let page = metrics(&serving, &[]);
    let of = |tool: &str, outcome: &str| {
        let tool = format!("mcp__s__{tool}");
        page.sum(CALLS, &[("server", "s"), ("tool", &tool), ("outcome", outcome)])
    };
    assert_eq!((of("echo", "ok"), of("fail", "tool_error")), (3.0, 1.0));
    assert_eq!((of("error", "upstream_error"), of("hang", "timeout")), (1.0, 1.0));
    assert_eq!((of("number", "invalid_arguments"), of("count", "ok")), (1.0, 2.0));
    assert_eq!((of("few", "ok"), of("few", "limited")), (1.0, 1.0));
    // Names that are no tool's are all one.
    let unknown = [("server", ""), ("tool", "(unknown)"), ("outcome", "unknown_tool")];
    assert_eq!(page.sum(CALLS, &unknown), 2.0);
    assert_eq!(page.sum(CALLS, &[]), 13.0);
    let failures = |blame: &str| page.sum("toolcrib_call_failures_total", &[("blame", blame)]);
    assert_eq!((failures("caller"), failures("gateway")), (4.0, 0.0));
    assert_eq!(failures("upstream"), 3.0);
    let cache = |result: &str| page.sum("toolcrib_cache_results_total", &[("result", result)]);
    assert_eq!((cache("hit"), cache("miss")), (1.0, 1.0));
    assert_eq!(page.sum("toolcrib_cache_entries", &[]), 1.0);
    assert_eq!(page.sum("toolcrib_limited_total", &[("by", "tool")]), 1.0);
    assert_eq!(page.sum("toolcrib_limited_total", &[]), 1.0);
    let took = |suffix: &str, tool: &str| {
        page.sum(&format!("toolcrib_call_duration_seconds_{suffix}"), &[("tool", tool)])
    };
    assert_eq!(took("count", "mcp__s__echo"), 3.0);
    assert!((0.5..5.0).contains(&took("sum", "mcp__s__hang")), "{page:?}");
    // What never reached the server is not among its requests: echo, fail, error, hang, count and few once each.
    let asked = page.sum("toolcrib_source_request_duration_seconds_count", &[("server", "s")]);
    assert_eq!(asked, 8.0);
    assert_eq!(page.sum("toolcrib_calls_running", &[]), 0.0);
}

#[test]
fn a_tool_counts_on_when_the_catalogue_is_built_anew() {
    let folder = folder();
    let serving = Serving::start(folder.path());
    let go = |tool: &str| call(&serving, &[], &format!("mcp__s__{tool}"), &json!({})).status;
    go("echo");
    let before = metrics(&serving, &[]);
    go("add");
    let builds = "toolcrib_catalogue_builds_total";
    soon("the catalogue is built anew", || {
        let page = metrics(&serving, &[]);
        before.sum(builds, &[]) < page.sum(builds, &[]) && page.sum("toolcrib_tools", &[]) == 9.0
    });
    go("echo");
    let page = metrics(&serving, &[]);
    assert_eq!(page.sum(CALLS, &[("tool", "mcp__s__echo"), ("outcome", "ok")]), 2.0);
}

#[test]
fn calls_that_run_that_are_given_up_and_that_are_made_by_others_count() {
    let folder = folder();
    folder.write(
        "network.yaml",
        "external_access: { view: search, exposed_tools: ['*', call_tools] }\n",
    );
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let headers = [("Mcp-Session-Id", session.as_str())];
    let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call",
        "params": { "name": "mcp__s__hang", "arguments": {} } });
    std::thread::scope(|scope| {
        let running = scope.spawn(|| serving.post(&headers, &body));
        soon("it runs", || metrics(&serving, &[]).sum("toolcrib_calls_running", &[]) == 1.0);
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": { "requestId": 5 } });
        assert_eq!(serving.post(&headers, &cancel).status, 202);
        assert_eq!(running.join().unwrap().status, 200);
    });
    let several = json!({ "calls": [
        { "name": "mcp__s__echo", "arguments": {} }, { "name": "mcp__s__fail", "arguments": {} },
    ] });
    call(&serving, &[], "call_tools", &several);
    let one = json!({ "name": "mcp__s__echo", "arguments": {} });
    call(&serving, &[], "call_tool", &one);
    let page = metrics(&serving, &[]);
    let of = |tool: &str, outcome: &str| page.sum(CALLS, &[("tool", tool), ("outcome", outcome)]);
    assert_eq!(of("mcp__s__hang", "cancelled"), 1.0, "{page:?}");
    assert_eq!(of("mcp__s__echo", "ok"), 2.0, "{page:?}");
    assert_eq!(of("mcp__s__fail", "tool_error"), 1.0);
    assert_eq!(page.sum(CALLS, &[("tool", "call_tools"), ("server", "(gateway)")]), 1.0);
    assert_eq!(page.sum(CALLS, &[("tool", "call_tool")]), 0.0);
    assert_eq!(page.sum("toolcrib_calls_running", &[]), 0.0);
}

#[test]
fn what_clients_do_at_the_door_counts() {
    let folder = folder();
    let serving = Serving::start(folder.path());
    serving.session(&[], "2025-11-25");
    serving.session(&[], "2025-06-18");
    assert_eq!(serving.get("/nothing", &[]).status, 404);
    assert_eq!(serving.get("/api/me", &[("Host", "evil.example")]).status, 403);
    let read = |method: &str, params: serde_json::Value| {
        let session = serving.session(&[], "2025-11-25");
        let body = json!({ "jsonrpc": "2.0", "id": 3, "method": method, "params": params });
        serving.post(&[("Mcp-Session-Id", session.as_str())], &body)
    };
    read("prompts/get", json!({ "name": "none" }));
    read("resources/read", json!({ "uri": "file:///none" }));
    let page = metrics(&serving, &[]);
    assert_eq!(page.sum("toolcrib_sessions", &[("transport", "streamable")]), 4.0);
    assert_eq!(page.sum("toolcrib_clients", &[]), 4.0);
    let status = |code: &str| page.sum("toolcrib_http_responses_total", &[("status", code)]);
    assert_eq!((status("404"), status("403"), status("401")), (1.0, 1.0, 0.0));
    assert!(4.0 <= status("200"));
    let reads = |method: &str| {
        page.sum("toolcrib_reads_total", &[("method", method), ("outcome", "unknown_tool")])
    };
    assert_eq!((reads("prompts/get"), reads("resources/read")), (1.0, 1.0));
    assert_eq!(page.sum(CALLS, &[]), 0.0);
    assert_eq!(page.sum("toolcrib_ready", &[]), 1.0);
    assert_eq!(page.sum("toolcrib_build_info", &[]), 1.0);
    assert!(1e6 < page.sum("process_resident_memory_bytes", &[]));
    assert!(1.7e9 < page.sum("process_start_time_seconds", &[]));
    assert!(3.0 < page.sum("process_open_fds", &[]));
}
