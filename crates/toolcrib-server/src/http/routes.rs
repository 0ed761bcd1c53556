//! Which routes the door has, and who may use them. What is not in this table does not exist; the reference is made
//! from it.

use crate::console;

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// Everybody, with a token or without.
    Public,
    /// Everybody who is let in; they get what their group may have.
    Admitted,
    /// Operators: a group with `operator: true`, and whoever is on this machine where there are no tokens.
    Operators,
}

/// Something that can be asked for over HTTP.
#[derive(Debug, Clone, Copy)]
pub struct Endpoint {
    /// How: `GET`.
    pub method: &'static str,
    /// Where: `/mcp`.
    pub path: &'static str,
    /// By whom.
    pub who: Who,
    /// What one gets.
    pub about: &'static str,
}

const fn all(method: &'static str, path: &'static str, about: &'static str) -> Endpoint {
    Endpoint { method, path, who: Who::Admitted, about }
}

const fn open(path: &'static str, about: &'static str) -> Endpoint {
    Endpoint { method: "GET", path, who: Who::Public, about }
}

/// What there is besides `/api`.
const ENDPOINTS: [Endpoint; 17] = [
    all("POST", "/mcp", "one message of MCP, streamable HTTP in every revision"),
    all(
        "GET",
        "/mcp",
        "the stream of a session, for what comes unasked (revisions before 2026-07-28)",
    ),
    all("DELETE", "/mcp", "ends a session (revisions before 2026-07-28)"),
    all("GET", "/sse", "the stream of a client of HTTP+SSE, the transport of 2024-11-05"),
    all("POST", "/messages", "what such a client says; the stream names the address"),
    all(
        "GET",
        "/events",
        "events by `match` and `from`, as a stream of server-sent events or, with `Accept: application/json`, in one answer; for a `consumer` that acknowledges",
    ),
    all("POST", "/events", "publishes an event, a CloudEvent in JSON"),
    all("POST", "/events/ack", "acknowledges what a consumer was given"),
    all(
        "GET",
        "/events/consumers",
        "the durable consumers of your group, and how far behind they are",
    ),
    all("DELETE", "/events/consumers", "removes the one that `consumer` names"),
    all("GET", "/events/dead", "what `consumer` gave up"),
    all("POST", "/events/dead", "delivers what `consumer` gave up again"),
    all(
        "GET",
        "/readyz",
        "200 when calls can be made; else 503, and what is missing, in words or as JSON where that is accepted",
    ),
    Endpoint {
        method: "GET",
        path: "/metrics",
        who: Who::Operators,
        about: "figures for Prometheus; also with the token of `metrics: { token_env }`, which is good for nothing else",
    },
    open("/healthz", "200 while the process answers"),
    open("/", "the console"),
    open("/console/app.js", "a file of the console; the others are beside it"),
];

/// Everything that can be asked for.
pub fn endpoints() -> Vec<Endpoint> {
    ENDPOINTS.into_iter().chain(console::endpoints()).collect()
}

/// Whether there is something at a path, by whatever method.
pub(super) fn is_known(path: &str) -> bool {
    ENDPOINTS.iter().any(|it| it.path == path) || super::is_api(path)
}
