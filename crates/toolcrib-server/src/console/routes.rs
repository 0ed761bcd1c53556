//! `/api`: which routes there are, and who may use them. The table is the only way in: what is not in it does not
//! exist, and what it keeps for operators is refused to everybody else before anything looks at the request.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header::CACHE_CONTROL};
use serde_json::{Value, json};

use super::{
    Asked, Fault, RESOURCE_POLICY, calls, catalogue, events, keeping, ok, pins, read_query, servers,
};
use crate::{
    access::Caller,
    gateway::Gateway,
    http::{Body, Endpoint, Who, not_allowed},
};

const fn get(path: &'static str, who: Who, about: &'static str) -> Endpoint {
    Endpoint { method: "GET", path, who, about }
}

const fn post(path: &'static str, who: Who, about: &'static str) -> Endpoint {
    Endpoint { method: "POST", path, who, about }
}

const ROUTES: [Endpoint; 21] = [
    get("/api", Who::Admitted, "these routes"),
    get("/api/me", Who::Admitted, "who is looking, and what there is to look at"),
    get("/api/status", Who::Admitted, "how everything is; `toolcrib status` prints it"),
    get(
        "/api/tools",
        Who::Admitted,
        "tools you may call; `group` of another group is for operators",
    ),
    get("/api/tool", Who::Admitted, "the one that `name` names, with its definition"),
    get("/api/search", Who::Admitted, "what an agent would find for `q`, `top` at most"),
    get("/api/costs", Who::Admitted, "what lists cost in tokens, by group and view"),
    get(
        "/api/calls",
        Who::Admitted,
        "calls on record, `limit` at most, of one `tool`; those of other groups are for operators",
    ),
    get("/api/call", Who::Admitted, "the story of the one with this `id`"),
    get(
        "/api/live",
        Who::Admitted,
        "a stream: `{\"calls\": […]}` as they end, `{\"catalogue\": N}` when it has changed",
    ),
    get("/api/servers", Who::Admitted, "how sources are, and since when"),
    post(
        "/api/servers/restart",
        Who::Operators,
        "ends a server and starts it anew: `{\"name\": \"git\"}`",
    ),
    get("/api/problems", Who::Operators, "everything that is wrong"),
    get("/api/pins", Who::Operators, "what is not as it was accepted, each with a `stamp`"),
    post(
        "/api/pins/accept",
        Who::Operators,
        "accepts it: `{\"source\": \"server:git\", \"tool\": \"push\", \"stamp\": \"…\"}`; refused where it has changed since it was shown",
    ),
    get("/api/consumers", Who::Admitted, "durable consumers"),
    post(
        "/api/consumers/replay",
        Who::Operators,
        "`{\"consumer\": \"guest/worker\", \"from\": 17}`; from the oldest where `from` is left out",
    ),
    get("/api/artifacts", Who::Admitted, "what is stored for your group"),
    get("/api/artifact", Who::Admitted, "the one with this `id`, as a file"),
    get("/api/sessions", Who::Operators, "sessions that were recorded"),
    post(
        "/api/pack",
        Who::Admitted,
        "makes a prompt: `{\"text\": \"…\", \"phase\": \"answer\", \"query\": \"…\", \"budget\": 800}`, or `session` for an operator",
    ),
];

/// What can be asked for.
pub(crate) fn endpoints() -> [Endpoint; 21] {
    ROUTES
}

/// A request of the page whose body, if it has one, has been read.
#[derive(Debug)]
pub(crate) struct Caught<'a> {
    pub(crate) method: &'a Method,
    pub(crate) uri: &'a http::Uri,
    pub(crate) headers: &'a HeaderMap,
    pub(crate) body: bytes::Bytes,
    /// Whether it came straight from a program of this machine.
    pub(crate) local: bool,
}

/// Answers a request of the page.
pub(crate) async fn answer(
    gateway: &Arc<Gateway>,
    caller: Caller,
    caught: Caught<'_>,
) -> Response<Body> {
    let path = caught.uri.path();
    let Some(route) = ROUTES.iter().find(|it| it.path == path) else {
        return Fault::unknown("there is no such route; /api lists them").response();
    };
    if route.method != caught.method.as_str() {
        return not_allowed(route.method);
    }
    // A page of another site may make a browser ask; it must not make it do.
    let site = caught.headers.get("sec-fetch-site").and_then(|it| it.to_str().ok());
    if !matches!(site, None | Some("same-origin" | "none")) {
        return Fault::new(StatusCode::FORBIDDEN, "another site asks").response();
    }
    let operates = gateway.access().operates(&caller, caught.local);
    if route.who == Who::Operators && !operates {
        let message = "this is for operators: a group with `operator: true` in network.yaml";
        return Fault::new(StatusCode::FORBIDDEN, message).response();
    }
    let query = match read_query(caught.uri.query().unwrap_or_default()) {
        Ok(query) => query,
        Err(fault) => return fault.response(),
    };
    let asked = Asked { caller, local: caught.local, operates, query, body: caught.body };
    let mut response = done(gateway, path, asked).await.unwrap_or_else(|it| it.response());
    let headers = response.headers_mut();
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(RESOURCE_POLICY, HeaderValue::from_static("same-origin"));
    response
}

async fn done(gateway: &Arc<Gateway>, path: &str, asked: Asked) -> Result<Response<Body>, Fault> {
    match path {
        "/api" => Ok(ok(&table())),
        "/api/me" => Ok(ok(&catalogue::me(gateway, &asked))),
        "/api/status" => Ok(ok(&servers::status(gateway, &asked))),
        "/api/tools" => catalogue::tools(gateway, &asked).await,
        "/api/tool" => catalogue::tool(gateway, &asked).await,
        "/api/search" => catalogue::search(gateway, &asked).await,
        "/api/costs" => catalogue::costs(gateway, &asked).await,
        "/api/calls" => calls::list(gateway, &asked).await,
        "/api/call" => calls::story(gateway, &asked).await,
        "/api/live" => calls::live(gateway, &asked),
        "/api/servers" => Ok(ok(&servers::list(gateway, &asked))),
        "/api/servers/restart" => servers::restart(gateway, &asked),
        "/api/problems" => servers::problems(gateway),
        "/api/pins" => pins::list(gateway).await,
        "/api/pins/accept" => pins::accept(gateway, asked).await,
        "/api/consumers" => events::consumers(gateway, &asked).await,
        "/api/consumers/replay" => events::replay(gateway, &asked).await,
        "/api/artifacts" => keeping::list(gateway, &asked).await,
        "/api/artifact" => keeping::content(gateway, &asked).await,
        "/api/sessions" => keeping::sessions(gateway).await,
        "/api/pack" => keeping::pack(gateway, asked).await,
        _ => Err(Fault::unknown("there is no such route")),
    }
}

fn table() -> Value {
    let row = |it: &Endpoint| json!({ "method": it.method, "path": it.path, "operator": it.who == Who::Operators });
    json!({ "routes": ROUTES.iter().map(row).collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_changes_something_is_for_operators_but_for_what_only_counts() {
        for route in ROUTES {
            let harmless = route.method == "GET" || route.path == "/api/pack";
            assert!(harmless || route.who == Who::Operators, "{route:?}");
        }
    }
}
