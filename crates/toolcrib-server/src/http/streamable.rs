//! `/mcp`: each message is a POST. The answer is JSON; a stream where something may come before it.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use toolcrib_wire::{Era, Fields, Frame, Id, Revision, RpcError, frame::response, json, modern};

use super::{Door, Refused, answer::Call, body::Body, not_allowed, plain, typed};
use crate::{
    access::Caller,
    changes::Wanted,
    dispatch::{self, Asked},
    gateway::ROOTS_CHANGED,
    guard::repeats::RepeatKey,
    reading::turned_down,
    session::Session,
    spans::{Came, Trace},
    stdio::{cancelled_id, null_response, refusal},
    words::{INVALID_REQUEST, PARSE_ERROR},
};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const IDEMPOTENCY: &str = "idempotency-key";

/// More messages than this do not make a batch.
const MAX_BATCH: usize = 100;

impl Door {
    pub(super) async fn streamable(
        self: &Arc<Self>,
        caller: Caller,
        headers: &Fields,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        let modern = headers.text(VERSION).is_some_and(|it| Revision::V2026_07_28.as_str() <= it);
        match head.method {
            Method::POST if !accepts(headers) => plain(
                StatusCode::NOT_ACCEPTABLE,
                "answers are application/json or text/event-stream\n",
            ),
            Method::POST => {
                let body = match self.read(headers, body).await {
                    Ok(body) => body,
                    Err(refused) => return *refused,
                };
                self.post(caller, headers, body).await
            }
            // The modern era has neither streams of their own nor sessions to end.
            _ if modern => not_allowed("POST"),
            Method::GET => self.listen(&caller, headers),
            Method::DELETE => match headers.text(SESSION) {
                Some(id) if self.sessions.close(id, &caller) => plain(StatusCode::OK, ""),
                Some(_) => unknown_session(),
                None => plain(StatusCode::BAD_REQUEST, "Mcp-Session-Id is needed\n"),
            },
            _ => not_allowed("GET, POST, DELETE"),
        }
    }

    pub(super) async fn post(
        self: &Arc<Self>,
        caller: Caller,
        headers: &Fields,
        body: Bytes,
    ) -> Response<Body> {
        if body.trim_ascii_start().first() == Some(&b'[') {
            // Rare, and large: not a part of what every call carries along.
            return Box::pin(self.batch(caller, headers, &body)).await;
        }
        match Frame::read(&body) {
            Ok(Frame::Request { id, method, mut params }) => {
                if method == "tools/call"
                    && let Some(key) = headers.get(IDEMPOTENCY)
                {
                    match RepeatKey::of_header(key) {
                        Ok(key) => params = params.map(|it| key.among(&it)),
                        Err(cause) => {
                            let error = dispatch::invalid(cause);
                            let (gateway, params) = (&self.gateway, params.as_ref());
                            turned_down(gateway, &caller, &method, params, &error).await;
                            let text = response(&id, Err(&error));
                            return json_response(StatusCode::BAD_REQUEST, text);
                        }
                    }
                }
                if modern::is_modern(headers, &method, params.as_ref()) {
                    return self.modern(caller, headers, id, method, params).await;
                }
                self.legacy(caller, headers, id, method, params).await
            }
            Ok(Frame::Notification { method, params }) => {
                if !modern::is_modern(headers, &method, params.as_ref()) {
                    let session = match self.session(&caller, headers) {
                        Ok(session) => session,
                        Err(refused) => return *refused,
                    };
                    self.notified(&session, &method, params.as_ref());
                }
                plain(StatusCode::ACCEPTED, "")
            }
            Ok(Frame::Response { id, answer }) => match self.session(&caller, headers) {
                Ok(session) => {
                    session.visit.answered(id.as_ref(), answer);
                    plain(StatusCode::ACCEPTED, "")
                }
                Err(refused) => *refused,
            },
            Err(error) => {
                let answer = refusal(&error.fault);
                let text = match &error.id {
                    Some(id) => response(id, Err(&answer)),
                    None => null_response(&answer),
                };
                json_response(StatusCode::BAD_REQUEST, text)
            }
        }
    }

    /// A legacy client tells something.
    fn notified(&self, session: &Session, method: &str, params: Option<&Bytes>) {
        match method {
            "notifications/cancelled" => {
                if let Some(id) = cancelled_id(params) {
                    session.in_flight.cancel(&id);
                }
            }
            ROOTS_CHANGED => self.gateway.tell(ROOTS_CHANGED, &session.visit),
            _ => {}
        }
    }

    /// The session of a legacy request.
    pub(super) fn session(
        &self,
        caller: &Caller,
        headers: &Fields,
    ) -> Result<Arc<Session>, Refused> {
        if let Some(version) = headers.text(VERSION)
            && Revision::parse(version).is_none()
        {
            let text = "this MCP-Protocol-Version is not spoken here\n";
            return Err(Box::new(plain(StatusCode::BAD_REQUEST, text)));
        }
        let Some(id) = headers.text(SESSION) else {
            let text = "Mcp-Session-Id is needed: begin with `initialize`\n";
            return Err(Box::new(plain(StatusCode::BAD_REQUEST, text)));
        };
        self.sessions.get(id, caller).ok_or_else(|| Box::new(unknown_session()))
    }

    async fn legacy(
        self: &Arc<Self>,
        caller: Caller,
        headers: &Fields,
        id: Id,
        method: String,
        params: Option<Bytes>,
    ) -> Response<Body> {
        if method == "initialize" {
            return self.initialize(caller, &id, params.as_ref());
        }
        let session = match self.session(&caller, headers) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        if session.in_flight.is_taken(&id) {
            return busy(&id);
        }
        let lists = method.ends_with("/list").then(|| self.gateway.snapshot().lists(&caller));
        let seen = Arc::clone(&session);
        let streams = accepts_stream(headers);
        let trace = self.traced(&id, headers, session.revision.as_str());
        let call = Call { caller, session: Some(session), id, method, params, streams, trace };
        let answer = self.respond(call).await;
        if let Some(lists) = lists {
            *seen.seen.lock() = lists;
        }
        answer
    }

    fn initialize(&self, caller: Caller, id: &Id, params: Option<&Bytes>) -> Response<Body> {
        let (result, revision) = match dispatch::initialize(&self.gateway, params) {
            Ok(initialized) => initialized,
            Err(error) => {
                return json_response(StatusCode::BAD_REQUEST, response(id, Err(&error)));
            }
        };
        let session = self.sessions.open(&self.gateway, caller, revision, params);
        let Some(session) = session else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "too many sessions\n");
        };
        let mut answer = json_response(StatusCode::OK, response(id, Ok(&result)));
        if let Ok(value) = HeaderValue::try_from(session) {
            answer.headers_mut().insert(SESSION, value);
        }
        answer
    }

    async fn modern(
        self: &Arc<Self>,
        caller: Caller,
        headers: &Fields,
        id: Id,
        method: String,
        params: Option<Bytes>,
    ) -> Response<Body> {
        if let Err(error) = modern::check(headers, &method, params.as_ref()) {
            turned_down(&self.gateway, &caller, &method, params.as_ref(), &error).await;
            return json_response(StatusCode::BAD_REQUEST, response(&id, Err(&error)));
        }
        if method == "subscriptions/listen" {
            return self.subscribe(caller, id, Wanted::read(params.as_ref())).await;
        }
        if let Err(error) = self.check_mirrored(&caller, headers, &method, params.as_ref()) {
            turned_down(&self.gateway, &caller, &method, params.as_ref(), &error).await;
            return json_response(StatusCode::BAD_REQUEST, response(&id, Err(&error)));
        }
        let streams = accepts_stream(headers);
        let trace = self.traced(&id, headers, Revision::V2026_07_28.as_str());
        self.respond(Call { caller, session: None, id, method, params, streams, trace }).await
    }

    /// What a request carries along for those who trace it.
    fn traced(&self, id: &Id, headers: &Fields, revision: &'static str) -> Trace {
        let traces = self.gateway.tracer.is_some();
        let trace = traces.then(|| Trace::of(Came::over_http(id, headers, revision)));
        trace.unwrap_or_default()
    }

    /// Whether headers say what the arguments say, where the tool wants that.
    fn check_mirrored(
        &self,
        caller: &Caller,
        headers: &Fields,
        method: &str,
        params: Option<&Bytes>,
    ) -> Result<(), RpcError> {
        let (Some(params), "tools/call") = (params, method) else { return Ok(()) };
        let snapshot = self.gateway.snapshot();
        match snapshot.mirrored(caller, params) {
            Some(mirrored) => modern::check_mirrored(headers, mirrored, params),
            None => Ok(()),
        }
    }

    /// Several messages at once, which 2025-03-26 allows and nobody else.
    async fn batch(
        self: &Arc<Self>,
        caller: Caller,
        headers: &Fields,
        body: &Bytes,
    ) -> Response<Body> {
        let refuse = |code: i64, message: &str| {
            let error = RpcError { code, message: message.to_owned(), data: None };
            json_response(StatusCode::BAD_REQUEST, null_response(&error))
        };
        if let Err(error) = json::scan(body, |_, _| ()) {
            return refuse(PARSE_ERROR, &format!("not a JSON message: {error}"));
        }
        let session = match self.session(&caller, headers) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        let parts = json::members(body);
        if session.revision != Revision::V2025_03_26 || parts.is_empty() || MAX_BATCH < parts.len()
        {
            return refuse(INVALID_REQUEST, "no batch is taken here");
        }
        if headers.get(IDEMPOTENCY).is_some() {
            let cause = "Idempotency-Key stands for one call and not for a batch: give each its own, as \
                         `_meta[\"toolcrib/idempotencyKey\"]`";
            return refuse(INVALID_REQUEST, cause);
        }
        let mut answers: Vec<Bytes> = Vec::new();
        for (_, range) in parts {
            match Frame::read(&body.slice(range)) {
                Ok(Frame::Request { id, method, params }) => {
                    let asked = Asked {
                        caller: caller.clone(),
                        era: Era::Legacy,
                        method: &method,
                        params,
                        listener: None,
                        visit: Some(Arc::clone(&session.visit)),
                        depth: 0,
                        attempt: None,
                        trace: self.traced(&id, headers, session.revision.as_str()),
                    };
                    let answer = tokio::select! {
                        answer = dispatch::answer(&self.gateway, asked) => answer,
                        () = session.visit.ended.cancelled() => return unknown_session(),
                        () = self.gateway.expelled(&caller) => return unknown_session(),
                    };
                    answers.push(response(&id, answer.as_deref()));
                }
                Ok(Frame::Notification { method, params }) => {
                    self.notified(&session, &method, params.as_ref());
                }
                Ok(Frame::Response { id, answer }) => session.visit.answered(id.as_ref(), answer),
                Err(error) => {
                    let answer = refusal(&error.fault);
                    answers.push(match &error.id {
                        Some(id) => response(id, Err(&answer)),
                        None => null_response(&answer),
                    });
                }
            }
        }
        if answers.is_empty() {
            return plain(StatusCode::ACCEPTED, "");
        }
        let text = [b"[", answers.join(&b","[..]).as_slice(), b"]"].concat();
        json_response(StatusCode::OK, text.into())
    }
}

/// Whether a client takes a stream.
fn accepts_stream(headers: &Fields) -> bool {
    headers.get("accept").is_none() || takes(headers, STREAMS)
}

/// Whether a client takes what we send. One that says nothing takes anything.
pub(super) fn accepts(headers: &Fields) -> bool {
    let json = ["application/json", "application/*"];
    headers.get("accept").is_none() || takes(headers, STREAMS) || takes(headers, &json)
}

/// What a client says that takes a stream.
const STREAMS: &[&str] = &["text/event-stream", "text/*", "*/*"];

/// What nearly every client says.
const USUAL: &[u8] = b"application/json, text/event-stream";

fn takes(headers: &Fields, ours: &[&str]) -> bool {
    if headers.get("accept").is_some_and(|it| it == USUAL) {
        return true;
    }
    let types = headers.all("accept").flat_map(|it| it.split(|it| *it == b','));
    { types }.any(|it| {
        let media_type = it.split(|it| *it == b';').next().unwrap_or_default().trim_ascii();
        ours.iter().any(|ours| media_type.eq_ignore_ascii_case(ours.as_bytes()))
    })
}

pub(super) fn unknown_session() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "there is no such session: begin anew with `initialize`\n")
}

pub(super) fn busy(id: &Id) -> Response<Body> {
    let message = "the id is in use, or too many requests wait".to_owned();
    let error = RpcError { code: INVALID_REQUEST, message, data: None };
    json_response(StatusCode::OK, response(id, Err(&error)))
}

pub(super) fn json_response(status: StatusCode, text: Bytes) -> Response<Body> {
    typed(status, "application/json", Body::whole(text))
}
