//! `/readyz` and `/metrics`: what those ask for who watch the gateway rather than use it.

use std::sync::Arc;

use http::{
    HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, CACHE_CONTROL},
};
use serde_json::{Value, json};
use toolcrib_wire::Fields;

use super::{Door, body::Body, is_local, not_allowed, plain, typed};
use crate::{
    access::Caller,
    gateway::Missing,
    metrics::{MEDIA_TYPE, SessionCounts, tell},
};

impl Door {
    /// Whether somebody may read `/metrics` whoever it is: with a token for that, or because all may.
    pub(super) fn may_scrape(&self, fields: &Fields) -> bool {
        let mut values = fields.all("authorization");
        let first = values.next();
        values.next().is_none() && self.gateway.access().lets_scrape(first)
    }

    /// Answers `/metrics` to somebody who was let in, if that is an operator.
    pub(super) async fn metrics_for<B>(
        self: &Arc<Self>,
        caller: &Caller,
        request: &Request<B>,
    ) -> Response<Body> {
        let local = is_local(caller, request.version(), request.headers());
        if self.gateway.access().operates(caller, local) {
            return self.metrics(request.method()).await;
        }
        let text = "this is for operators: a group with `operator: true` in network.yaml, or the token that \
                    `metrics: token_env` names there\n";
        plain(StatusCode::FORBIDDEN, text)
    }

    /// What was counted.
    pub(super) async fn metrics(self: &Arc<Self>, method: &Method) -> Response<Body> {
        if method != Method::GET {
            return not_allowed("GET");
        }
        let (streamable, sse) = (self.sessions.count(), self.old.lock().len());
        let text = tell(&self.gateway, SessionCounts { streamable, sse }).await;
        let mut response = typed(StatusCode::OK, MEDIA_TYPE, Body::whole(text));
        response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }

    /// Whether calls can be made just now, and what is missing where not. Which server it is and why it does not
    /// work is told to operators.
    pub(super) fn readiness<B>(&self, caller: &Caller, request: &Request<B>) -> Response<Body> {
        let headers = request.headers();
        let local = is_local(caller, request.version(), headers);
        let operates = self.gateway.access().operates(caller, local);
        let missing: Vec<String> =
            self.gateway.missing().iter().map(|it| told(it, operates)).collect();
        let mut missing = missing;
        missing.dedup();
        let status = match missing.is_empty() {
            true => StatusCode::OK,
            false => StatusCode::SERVICE_UNAVAILABLE,
        };
        let accept = headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
        if accept.contains("application/json") {
            let text = json!({ "ready": missing.is_empty(), "missing": Value::from(missing) });
            return typed(status, "application/json", Body::whole(text.to_string()));
        }
        let text = match missing.is_empty() {
            true => "ready\n".to_owned(),
            false => missing.join("\n") + "\n",
        };
        plain(status, &text)
    }
}

/// What is missing, in words.
fn told(missing: &Missing, operates: bool) -> String {
    match missing {
        Missing::Open => "the gateway is stopping".to_owned(),
        Missing::Record(cause) if operates => {
            format!("the audit record cannot be written: {cause}")
        }
        Missing::Record(_) => "the audit record cannot be written".to_owned(),
        Missing::Started(server) if operates => format!("`{server}` is still starting"),
        Missing::Started(_) => "servers are still starting".to_owned(),
        Missing::Catalogue => "the catalogue is being built".to_owned(),
        Missing::Required(server, cause) if operates => {
            format!("`{server}` is required and is down: {cause}")
        }
        Missing::Required(..) => "a server that is required is down".to_owned(),
    }
}
