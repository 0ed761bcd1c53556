//! What those see who watch a running gateway: `/metrics`, `/readyz`, traces, and the dashboard over them.

mod page;
mod metrics;
mod sources;
mod rights;
mod ready;
mod dashboard;
pub(crate) mod collector;
mod traces;
mod carried;
mod hostile;

use serde_json::{Value, json};

use crate::serving::{Answer, Serving};
use page::Page;

/// What is counted, as somebody sees it who may.
#[track_caller]
fn metrics(serving: &Serving, headers: &[(&str, &str)]) -> Page {
    let answer = serving.get("/metrics", headers);
    assert_eq!(answer.status, 200, "{answer:?}");
    let kind = answer.header("content-type").unwrap();
    assert_eq!(kind, "text/plain; version=0.0.4; charset=utf-8");
    Page::read(&answer.body)
}

/// A call of the modern era, with this beside what every one says in `_meta`.
pub(crate) fn call(
    serving: &Serving,
    headers: &[(&str, &str)],
    tool: &str,
    given: &Value,
) -> Answer {
    call_with(serving, headers, tool, given, json!({}))
}

fn call_with(
    serving: &Serving,
    headers: &[(&str, &str)],
    tool: &str,
    arguments: &Value,
    mut meta: Value,
) -> Answer {
    meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let own =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params });
    serving.post(&[&own[..], headers].concat(), &body)
}
