//! `/mcp`: each message is a POST. The answer is JSON; a stream where something may come before it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio::sync::mpsc;
use toolcrib_catalogue::{Json, Listener};
use toolcrib_wire::{
    Era, Frame, Id, Revision, RpcError,
    frame::{METHOD_NOT_FOUND, notification, response},
    json, modern,
};

use super::{
    Door, Refused,
    body::{Body, Event, events},
    not_allowed, plain, typed,
};
use crate::{
    access::Caller,
    dispatch::{self, Asked},
    session::Session,
    stdio::{SeenLists, Wanted, cancelled_id, listen_ended, null_response, refusal, subscribed},
};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// How many messages may wait for a slow reader.
const QUEUE: usize = 64;

/// How often a silent stream says that it is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// More messages than this do not make a batch.
const MAX_BATCH: usize = 100;

impl Door {
    pub(super) async fn streamable(
        self: &Arc<Self>,
        caller: Caller,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let headers = request.headers().clone();
        let modern = headers.get(VERSION).and_then(|it| it.to_str().ok());
        let modern = modern.is_some_and(|it| Revision::V2026_07_28.as_str() <= it);
        match *request.method() {
            Method::POST if !accepts(&headers) => plain(
                StatusCode::NOT_ACCEPTABLE,
                "answers are application/json or text/event-stream\n",
            ),
            Method::POST => {
                let body = match self.read(request).await {
                    Ok(body) => body,
                    Err(refused) => return *refused,
                };
                self.post(caller, &headers, body).await
            }
            // The modern era has neither streams of their own nor sessions to end.
            _ if modern => not_allowed("POST"),
            Method::GET => self.listen(&caller, &headers),
            Method::DELETE => match header(&headers, SESSION) {
                Some(id) if self.sessions.close(id, &caller) => plain(StatusCode::OK, ""),
                Some(_) => unknown_session(),
                None => plain(StatusCode::BAD_REQUEST, "Mcp-Session-Id is needed\n"),
            },
            _ => not_allowed("GET, POST, DELETE"),
        }
    }

    async fn post(
        self: &Arc<Self>,
        caller: Caller,
        headers: &HeaderMap,
        body: Bytes,
    ) -> Response<Body> {
        if body.trim_ascii_start().first() == Some(&b'[') {
            return self.batch(caller, headers, &body).await;
        }
        match Frame::read(&body) {
            Ok(Frame::Request { id, method, params }) => {
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
                    if method == "notifications/cancelled"
                        && let Some(id) = cancelled_id(params.as_ref())
                    {
                        session.in_flight.cancel(&id);
                    }
                }
                plain(StatusCode::ACCEPTED, "")
            }
            Ok(Frame::Response { .. }) => match self.session(&caller, headers) {
                Ok(_) => plain(StatusCode::ACCEPTED, ""),
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

    /// The session of a legacy request.
    fn session(&self, caller: &Caller, headers: &HeaderMap) -> Result<Arc<Session>, Refused> {
        if let Some(version) = header(headers, VERSION)
            && Revision::parse(version).is_none()
        {
            let text = "this MCP-Protocol-Version is not spoken here\n";
            return Err(Box::new(plain(StatusCode::BAD_REQUEST, text)));
        }
        let Some(id) = header(headers, SESSION) else {
            let text = "Mcp-Session-Id is needed: begin with `initialize`\n";
            return Err(Box::new(plain(StatusCode::BAD_REQUEST, text)));
        };
        self.sessions.get(id, caller).ok_or_else(|| Box::new(unknown_session()))
    }

    async fn legacy(
        self: &Arc<Self>,
        caller: Caller,
        headers: &HeaderMap,
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
        if streams(&method, params.as_ref()) {
            return self.stream(caller, Era::Legacy, Some(session), id, method, params);
        }
        let Some(flight) = session.in_flight.begin(&id) else { return busy(&id) };
        let lists = method.ends_with("/list").then(|| self.gateway.snapshot().lists(&caller));
        let asked = Asked { caller, era: Era::Legacy, method: &method, params, listener: None };
        let answer = tokio::select! {
            answer = dispatch::answer(&self.gateway, asked) => answer,
            () = flight.cancelled.cancelled() => Err(dispatch::cancelled()),
            () = session.ended.cancelled() => return unknown_session(),
        };
        if let Some(lists) = lists {
            *session.seen.lock() = lists;
        }
        json_response(StatusCode::OK, response(&id, answer.as_deref()))
    }

    fn initialize(&self, caller: Caller, id: &Id, params: Option<&Bytes>) -> Response<Body> {
        let (result, revision) = match dispatch::initialize(&self.gateway, params) {
            Ok(initialized) => initialized,
            Err(error) => {
                return json_response(StatusCode::BAD_REQUEST, response(id, Err(&error)));
            }
        };
        let seen = self.gateway.snapshot().lists(&caller);
        let Some(session) = self.sessions.open(caller, revision, seen) else {
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
        headers: &HeaderMap,
        id: Id,
        method: String,
        params: Option<Bytes>,
    ) -> Response<Body> {
        if let Err(error) = modern::check(headers, &method, params.as_ref()) {
            return json_response(StatusCode::BAD_REQUEST, response(&id, Err(&error)));
        }
        if method == "subscriptions/listen" {
            return self.subscribe(caller, id, Wanted::read(params.as_ref()));
        }
        if streams(&method, params.as_ref()) {
            return self.stream(caller, Era::Modern, None, id, method, params);
        }
        let asked = Asked { caller, era: Era::Modern, method: &method, params, listener: None };
        let answer = dispatch::answer(&self.gateway, asked).await;
        let status = match &answer {
            Err(RpcError { code: METHOD_NOT_FOUND, .. }) => StatusCode::NOT_FOUND,
            Err(RpcError { code: -32022..=-32020, .. }) => StatusCode::BAD_REQUEST,
            _ => StatusCode::OK,
        };
        json_response(status, response(&id, answer.as_deref()))
    }

    /// Answers with a stream: progress first, then the answer.
    fn stream(
        self: &Arc<Self>,
        caller: Caller,
        era: Era,
        session: Option<Arc<Session>>,
        id: Id,
        method: String,
        params: Option<Bytes>,
    ) -> Response<Body> {
        if let Some(session) = &session
            && session.in_flight.is_taken(&id)
        {
            return busy(&id);
        }
        let (sender, receiver) = mpsc::channel(QUEUE);
        let this = Arc::clone(self);
        self.gateway.tasks.spawn(async move {
            let flight = session.as_ref().and_then(|it| it.in_flight.begin(&id));
            let cancelled = flight.as_ref().map(|it| it.cancelled.clone()).unwrap_or_default();
            let ended = session.as_ref().map(|it| it.ended.clone()).unwrap_or_default();
            let listener = Some(Arc::new(ToStream(sender.clone())) as Arc<dyn Listener>);
            let asked = Asked { caller: caller.clone(), era, method: &method, params, listener };
            let answer = tokio::select! {
                answer = dispatch::answer(&this.gateway, asked) => answer,
                () = cancelled.cancelled() => return,
                () = ended.cancelled() => return,
                () = this.gateway.expelled(&caller) => return,
                () = keep_alive(&sender) => return,
            };
            sender.send(Event::Message(response(&id, answer.as_deref()))).await.ok();
        });
        events(receiver)
    }

    /// The stream on which a legacy client hears of changes.
    fn listen(self: &Arc<Self>, caller: &Caller, headers: &HeaderMap) -> Response<Body> {
        let session = match self.session(caller, headers) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        let (sender, receiver) = mpsc::channel(QUEUE);
        let (this, caller) = (Arc::clone(self), caller.clone());
        let replaced = session.listen();
        self.gateway.tasks.spawn(async move {
            let note = |method: &str| Some(notification(method, None));
            let seen = session.seen.lock().clone();
            let lists = SeenLists::since(&this.gateway, &caller, seen);
            tokio::select! {
                () = replaced.cancelled() => {}
                () = this.gateway.stop.cancelled() => {}
                () = this.gateway.expelled(&caller) => {}
                () = tell(lists, &sender, note) => {}
                () = keep_alive(&sender) => {}
            }
            *session.seen.lock() = this.gateway.snapshot().lists(&caller);
        });
        events(receiver)
    }

    /// The stream on which a modern client hears of changes.
    fn subscribe(self: &Arc<Self>, caller: Caller, id: Id, wanted: Wanted) -> Response<Body> {
        let (sender, receiver) = mpsc::channel(QUEUE);
        let this = Arc::clone(self);
        self.gateway.tasks.spawn(async move {
            let lists = SeenLists::new(&this.gateway, &caller);
            sender.send(Event::Message(wanted.acknowledged(&id))).await.ok();
            let note = |method: &str| wanted.wants(method).then(|| subscribed(&id, method));
            tokio::select! {
                () = tell(lists, &sender, note) => {}
                () = keep_alive(&sender) => {}
                () = this.gateway.expelled(&caller) => {}
                () = this.gateway.stop.cancelled() => {
                    let end = response(&id, Ok(listen_ended(&id).as_bytes()));
                    // Who does not read will see the end of the stream.
                    sender.try_send(Event::Message(end)).ok();
                }
            }
        });
        events(receiver)
    }

    /// Several messages at once, which 2025-03-26 allows and nobody else.
    async fn batch(
        self: &Arc<Self>,
        caller: Caller,
        headers: &HeaderMap,
        body: &Bytes,
    ) -> Response<Body> {
        let refuse = |code: i64, message: &str| {
            let error = RpcError { code, message: message.to_owned(), data: None };
            json_response(StatusCode::BAD_REQUEST, null_response(&error))
        };
        if let Err(error) = json::scan(body, |_, _| ()) {
            return refuse(-32700, &format!("not a JSON message: {error}"));
        }
        let session = match self.session(&caller, headers) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        let parts = json::members(body);
        if session.revision != Revision::V2025_03_26 || parts.is_empty() || MAX_BATCH < parts.len()
        {
            return refuse(-32600, "no batch is taken here");
        }
        let mut answers: Vec<Bytes> = Vec::new();
        for (_, range) in parts {
            match Frame::read(&body.slice(range)) {
                Ok(Frame::Request { id, method, params }) => {
                    let caller = caller.clone();
                    let asked =
                        Asked { caller, era: Era::Legacy, method: &method, params, listener: None };
                    let answer = dispatch::answer(&self.gateway, asked).await;
                    answers.push(response(&id, answer.as_deref()));
                }
                Ok(_) => {}
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

/// Says on a stream which of a caller's lists change, until nobody reads it.
async fn tell(
    mut lists: SeenLists<'_>,
    sender: &mpsc::Sender<Event>,
    note: impl Fn(&str) -> Option<Bytes>,
) {
    loop {
        let changed = lists.changed().await;
        if changed.is_empty() {
            return;
        }
        for text in changed.into_iter().filter_map(&note) {
            if sender.send(Event::Message(text)).await.is_err() {
                return;
            }
        }
    }
}

/// Shows now and then that a stream is alive, until nobody reads it.
async fn keep_alive(sender: &mpsc::Sender<Event>) {
    loop {
        tokio::select! {
            () = tokio::time::sleep(KEEP_ALIVE) => {
                if sender.send(Event::KeepAlive).await.is_err() {
                    return;
                }
            }
            () = sender.closed() => return,
        }
    }
}

/// Hands progress on to a stream; what does not fit is left out, as progress may be.
#[derive(Debug)]
struct ToStream(mpsc::Sender<Event>);

impl Listener for ToStream {
    fn notified(&self, method: &str, params: Option<Json>) {
        let text = notification(method, params.as_ref().map(Json::as_bytes));
        if self.0.try_send(Event::Message(text)).is_err() {
            tracing::debug!("progress was left out: the client is slow or gone");
        }
    }
}

/// Whether something may come before the answer: the caller asks to hear of progress, and of something
/// that can take a while.
fn streams(method: &str, params: Option<&Bytes>) -> bool {
    if !matches!(method, "tools/call" | "prompts/get" | "resources/read") {
        return false;
    }
    let Some(params) = params else { return false };
    let meta = json::member(params, "_meta").map(|it| params.slice(it));
    meta.is_some_and(|it| json::member(&it, "progressToken").is_some())
}

/// Whether a client takes what we send. One that says nothing takes anything.
fn accepts(headers: &HeaderMap) -> bool {
    let ours = ["application/json", "text/event-stream", "application/*", "text/*", "*/*"];
    let mut values = headers.get_all(http::header::ACCEPT).iter().peekable();
    if values.peek().is_none() {
        return true;
    }
    values.filter_map(|it| it.to_str().ok()).flat_map(|it| it.split(',')).any(|it| {
        let media_type = it.split(';').next().unwrap_or_default().trim();
        ours.iter().any(|ours| media_type.eq_ignore_ascii_case(ours))
    })
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|it| it.to_str().ok())
}

fn unknown_session() -> Response<Body> {
    plain(StatusCode::NOT_FOUND, "there is no such session: begin anew with `initialize`\n")
}

fn busy(id: &Id) -> Response<Body> {
    let message = "the id is in use, or too many requests wait".to_owned();
    let error = RpcError { code: -32600, message, data: None };
    json_response(StatusCode::OK, response(id, Err(&error)))
}

fn json_response(status: StatusCode, text: Bytes) -> Response<Body> {
    typed(status, "application/json", Body::whole(text))
}
