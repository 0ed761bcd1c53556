//! The door on a port: `/mcp` (streamable HTTP, both eras), `/sse` and `/messages` (HTTP+SSE), `/events`,
//! `/healthz`, `/readyz` and `/metrics`; the console at `/`, and what it asks for at `/api`.
//!
//! Before anything is read, two questions: is the request meant for us (Host, Origin), and who sends it
//! (Authorization). Only `/healthz` and the files of the
//! console are open to everybody.

mod body;
mod patient;
mod steady;
mod tls;
mod routes;
mod strict;
mod lane;
mod throttle;
mod streamable;
mod answer;
mod old;
mod events;
mod watched;

use std::{
    collections::HashMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{ALLOW, CONTENT_TYPE, HOST, RETRY_AFTER, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS},
    uri::Authority,
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    runtime::Handle,
};
use toolcrib_wire::Fields;

pub(crate) use self::{
    body::{Body, events},
    events::decoded,
};
use self::{
    lane::{Head, Lane, Next},
    old::OldSession,
    patient::Patient,
    steady::Steady,
    strict::Strict,
    throttle::Throttle,
};
pub use self::{
    routes::{Endpoint, Who, endpoints},
    tls::Tls,
};
use crate::{
    access::{Caller, Denied},
    console,
    gateway::Gateway,
    session::Sessions,
};

/// How the door is set up.
#[derive(Debug, Clone)]
pub struct HttpSettings {
    /// What clients may call us, besides the address we listen on: `tools.example.com`.
    pub hosts: Vec<String>,
    /// The largest request body.
    pub max_body: usize,
    /// Whether TLS is spoken, and with what.
    pub tls: Option<Tls>,
    /// Runtimes that serve connections too, in turns with the one that accepts them. A connection stays where it is
    /// put; what is begun by its calls may stay there as well, so they have to outlive the gateway.
    pub hands: Vec<Handle>,
}

impl Default for HttpSettings {
    fn default() -> Self {
        Self { hosts: Vec::new(), max_body: 4 * 1024 * 1024, tls: None, hands: Vec::new() }
    }
}

/// A door on a port.
#[derive(Debug)]
pub struct Door {
    gateway: Arc<Gateway>,
    settings: HttpSettings,
    /// `host:port` by which we may be addressed.
    authorities: Vec<String>,
    sessions: Sessions,
    old: Mutex<HashMap<String, Arc<OldSession>>>,
    throttle: Throttle,
}

/// An answer that says no.
type Refused = Box<Response<Body>>;

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest head of a request.
const MAX_HEAD: usize = 64 * 1024;

/// How long calls in flight get to end when the door closes.
const DRAIN: Duration = Duration::from_secs(30);

impl Door {
    /// A door for a gateway, at this address.
    pub fn new(gateway: Arc<Gateway>, settings: HttpSettings, address: SocketAddr) -> Arc<Self> {
        let port = address.port();
        let mut authorities = vec![address.to_string()];
        if address.ip().is_loopback() || address.ip().is_unspecified() {
            let local = ["127.0.0.1", "localhost", "[::1]"];
            authorities.extend(local.map(|it| format!("{it}:{port}")));
        }
        authorities.extend(settings.hosts.iter().map(|it| it.to_ascii_lowercase()));
        let (sessions, old) = (Sessions::default(), Mutex::default());
        let throttle = Throttle::default();
        Arc::new(Self { gateway, settings, authorities, sessions, old, throttle })
    }

    /// Lets clients in until the gateway is stopped; then lets those inside end what they began.
    pub async fn serve(self: &Arc<Self>, listener: TcpListener) {
        let graceful = GracefulShutdown::new();
        let mut sweep = tokio::time::interval(Duration::from_secs(5));
        let mut turns = self.turns();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = sweep.tick() => {
                    self.sweep();
                    continue;
                }
                () = self.gateway.stop.cancelled() => break,
            };
            let (socket, peer) = match accepted {
                Ok((socket, peer)) => (socket, peer.ip()),
                Err(error) => {
                    // Out of descriptors, most likely: wait rather than spin.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            // Without this an answer that is a stream waits 40 ms for an acknowledgement.
            socket.set_nodelay(true).ok();
            let (this, watcher) = (Arc::clone(self), graceful.watcher());
            let (Some(hand), Ok(socket)) = (turns.next(), socket.into_std()) else { continue };
            let admitted = async move {
                // A socket belongs to the runtime that it is made in.
                let Ok(socket) = TcpStream::from_std(socket) else { return };
                this.admit(socket, peer, watcher).await;
            };
            self.gateway.tasks.spawn_on(admitted, &hand);
        }
        drop(listener);
        if tokio::time::timeout(DRAIN, graceful.shutdown()).await.is_err() {
            tracing::warn!("some calls did not end in time");
        }
    }

    /// Who serves the next connection, without end: each thread of the runtime we are in, and each hand.
    fn turns(&self) -> impl Iterator<Item = Handle> {
        let own = Handle::current();
        let threads = own.metrics().num_workers();
        std::iter::repeat_n(own, threads).chain(self.settings.hands.iter().cloned()).cycle()
    }

    /// Shakes hands with a client, where TLS is spoken, and answers its requests.
    async fn admit(self: Arc<Self>, socket: TcpStream, peer: IpAddr, watcher: Watcher) {
        let socket = Patient::new(socket);
        let Some(acceptor) = self.settings.tls.as_ref().map(Tls::acceptor) else {
            return self.talk(socket, peer, watcher).await;
        };
        let shaken = tokio::time::timeout(HEAD_TIMEOUT, acceptor.accept(socket)).await;
        if let Ok(Ok(stream)) = shaken {
            self.talk(stream, peer, watcher).await;
        }
    }

    /// Answers the requests of one connection.
    async fn talk<S>(self: &Arc<Self>, stream: S, peer: IpAddr, watcher: Watcher)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Some((before, stream)) = self.talk_in_lane(stream, peer).await else { return };
        let this = Arc::clone(self);
        let service = service_fn(move |request| {
            let this = Arc::clone(&this);
            async move { Ok::<_, std::convert::Infallible>(this.attend(peer, request).await) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD_TIMEOUT)
            .max_buf_size(MAX_HEAD)
            .max_header_size(MAX_HEAD)
            .serve_connection(TokioIo::new(Strict::new(before, stream)), service);
        // How a connection ended is its client's business.
        Steady::new(watcher.watch(connection)).await.ok();
    }

    /// Answers plain messages, until something else comes: then the connection is returned, for hyper.
    async fn talk_in_lane<S>(self: &Arc<Self>, stream: S, peer: IpAddr) -> Option<(Bytes, S)>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let mut lane = Lane::new(stream);
        let mut stop = std::pin::pin!(self.gateway.stop.cancelled());
        loop {
            let (head, caller) = match lane.next(stop.as_mut()).await {
                Next::Head(head) => match self.passes(&head) {
                    Some(caller) => (head, caller.at(peer)),
                    None => return Some(lane.into_rest()),
                },
                Next::Other => return Some(lane.into_rest()),
                Next::Closed => {
                    lane.close().await;
                    return None;
                }
            };
            let response = match lane.body(&head).await {
                Some(body) => lane.unless_gone(self.post(caller, &head.fields, body)).await?,
                None => {
                    lane.answer(late(), true).await.ok();
                    return None;
                }
            };
            self.note(peer, "/mcp", response.status());
            let last = self.gateway.stop.is_cancelled();
            if !lane.answer(response, last).await.unwrap_or(false) {
                lane.close().await;
                return None;
            }
        }
    }

    /// Whoever sends a message of which nothing is to be refused before it is read.
    fn passes(&self, head: &Head) -> Option<Caller> {
        let Head { fields, length, .. } = head;
        let sound = *length <= self.settings.max_body
            && self.check_address(fields, None).is_ok()
            && streamable::accepts(fields)
            && is_json(fields);
        self.identify(fields).ok().filter(|_| sound)
    }

    /// How many sessions are open.
    pub fn sessions(&self) -> usize {
        self.sessions.count() + self.old.lock().len()
    }

    /// Ends sessions that nobody uses, and those of tokens that are no longer good.
    fn sweep(&self) {
        let access = self.gateway.access();
        self.sessions.sweep(|caller| access.still_good(caller));
        self.old.lock().retain(|_, it| it.is_open(&access));
    }

    /// Answers the requests of whoever runs the gateway, on a private connection.
    pub(crate) async fn talk_to_operator<S>(self: &Arc<Self>, stream: S)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let this = Arc::clone(self);
        let service = service_fn(move |request: Request<Incoming>| {
            let this = Arc::clone(&this);
            async move {
                let caller = this.gateway.access().operator();
                Ok::<_, std::convert::Infallible>(match request.uri().path() {
                    path if path.starts_with("/events") => this.events(caller, request).await,
                    path if is_api(path) => Box::pin(this.api(caller, request)).await,
                    _ => plain(StatusCode::NOT_FOUND, "not found\n"),
                })
            }
        });
        let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        tokio::select! {
            ended = connection => ended.unwrap_or_default(),
            () = self.gateway.stop.cancelled() => {}
        }
    }

    /// Answers a request; whoever is turned away is on record.
    async fn attend(self: &Arc<Self>, peer: IpAddr, request: Request<Incoming>) -> Response<Body> {
        let uri = request.uri().clone();
        let response = self.answer(peer, request).await;
        self.note(peer, uri.path(), response.status());
        response
    }

    /// Counts an answer; whoever was turned away is on record.
    fn note(&self, peer: IpAddr, path: &str, status: StatusCode) {
        self.gateway.metrics.statuses.count(status);
        let event = match status {
            StatusCode::UNAUTHORIZED => "unauthorized",
            StatusCode::FORBIDDEN => "forbidden",
            StatusCode::TOO_MANY_REQUESTS => "too_many",
            _ => return,
        };
        if let Some(audit) = self.gateway.audit() {
            audit.turned_away(event, peer, path);
        }
    }

    async fn answer(self: &Arc<Self>, peer: IpAddr, request: Request<Incoming>) -> Response<Body> {
        let uri = request.uri().clone();
        let path = uri.path();
        let fields = Fields::from(request.headers());
        if let Err(refused) = self.check_address(&fields, uri.authority()) {
            return *refused;
        }
        if path == "/healthz" {
            return plain(StatusCode::OK, "ok\n");
        }
        if console::is_file(path) {
            return console::serve(request.method(), path, request.headers());
        }
        if path == "/metrics" && self.may_scrape(&fields) {
            return Box::pin(self.metrics(request.method())).await;
        }
        let caller = match self.identify(&fields) {
            Ok(caller) => caller.at(peer),
            Err(Denied::UnknownToken) if self.throttle.is_too_much(peer, Instant::now()) => {
                return too_many();
            }
            Err(denied) => return unauthorized(denied),
        };
        match path {
            // `CONNECT host:port`: somebody takes us for a proxy.
            "" => not_allowed("GET, POST, DELETE"),
            _ if !routes::is_known(path) => plain(StatusCode::NOT_FOUND, "not found\n"),
            "/mcp" => self.streamable(caller, &fields, request).await,
            _ if path == "/events" || path.starts_with("/events/") => {
                self.events(caller, request).await
            }
            // Apart, so that a call carries nothing of it along.
            _ if is_api(path) => Box::pin(self.api(caller, request)).await,
            "/sse" if request.method() == Method::GET => self.open_old(caller),
            "/messages" if request.method() == Method::POST => self.take_old(caller, request).await,
            "/sse" => not_allowed("GET"),
            "/messages" => not_allowed("POST"),
            "/readyz" => self.readiness(&caller, &request),
            "/metrics" => Box::pin(self.metrics_for(&caller, &request)).await,
            _ => plain(StatusCode::NOT_FOUND, "not found\n"),
        }
    }

    /// Answers what the console asks for.
    async fn api(&self, caller: Caller, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body = match head.method {
            Method::POST => match self.read(&Fields::from(&head.headers), body).await {
                Ok(body) => body,
                Err(refused) => return *refused,
            },
            _ => Bytes::new(),
        };
        let local = is_local(&caller, head.version, &head.headers);
        let (method, uri, headers) = (&head.method, &head.uri, &head.headers);
        let caught = console::Caught { method, uri, headers, body, local };
        console::answer(&self.gateway, caller, caught).await
    }

    /// A page of another site must not reach us through a visitor's browser.
    fn check_address(&self, fields: &Fields, target: Option<&Authority>) -> Result<(), Refused> {
        let refuse = |what: &str| Err(Box::new(plain(StatusCode::FORBIDDEN, &format!("{what}\n"))));
        let mut hosts = fields.all("host");
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return refuse("one Host is needed");
        };
        if !self.is_us(host) || target.is_some_and(|it| !self.is_us(it.as_str().as_bytes())) {
            return refuse("this Host is not served here");
        }
        for origin in fields.all("origin") {
            let origin = str::from_utf8(origin).unwrap_or_default().to_ascii_lowercase();
            let stripped =
                origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
            if !stripped.is_some_and(|it| self.is_us(it.as_bytes())) {
                return refuse("this Origin is not let in");
            }
        }
        Ok(())
    }

    fn is_us(&self, authority: &[u8]) -> bool {
        self.authorities.iter().any(|it| it.as_bytes().eq_ignore_ascii_case(authority))
    }

    fn identify(&self, fields: &Fields) -> Result<Caller, Denied> {
        let mut values = fields.all("authorization");
        let access = self.gateway.access();
        match (values.next(), values.next()) {
            (Some(_), Some(_)) if access.has_tokens() => Err(Denied::UnknownToken),
            (value, _) => access.identify(value),
        }
    }

    /// The body of a request that says it is JSON.
    async fn read(&self, fields: &Fields, body: Incoming) -> Result<Bytes, Refused> {
        if !is_json(fields) {
            let text = "the body must be application/json\n";
            return Err(Box::new(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)));
        }
        let limited = Limited::new(body, self.settings.max_body);
        match tokio::time::timeout(HEAD_TIMEOUT, limited.collect()).await {
            Ok(Ok(body)) => Ok(body.to_bytes()),
            Ok(Err(error)) if error.is::<LengthLimitError>() => {
                let text = format!("the body is larger than {} bytes\n", self.settings.max_body);
                Err(Box::new(plain(StatusCode::PAYLOAD_TOO_LARGE, &text)))
            }
            Ok(Err(_)) => Err(Box::new(plain(StatusCode::BAD_REQUEST, "the body is broken\n"))),
            Err(_) => Err(Box::new(late())),
        }
    }
}

fn late() -> Response<Body> {
    plain(StatusCode::REQUEST_TIMEOUT, "the body took too long\n")
}

/// Whether a request says that its body is JSON.
fn is_json(fields: &Fields) -> bool {
    ["application/json", "application/cloudevents+json"].iter().any(|it| fields.has_media_type(it))
}

/// What the console asks for.
fn is_api(path: &str) -> bool {
    path == "/api" || path.starts_with("/api/")
}

/// Whether a request comes straight from a program of this machine, as far as can be told: what a proxy hands on
/// comes from this machine too, and may look the same. So a proxy is to be declared (`behind_proxy`, see `Access`);
/// this finds those that were not, where they give themselves away.
fn is_local(caller: &Caller, version: Version, headers: &HeaderMap) -> bool {
    let told = |name: &str| {
        ["forwarded", "via", "x-real-ip", "x-client-ip", "true-client-ip", "cf-connecting-ip"]
            .contains(&name)
            || name.starts_with("x-forwarded-")
            || name.starts_with("x-original-")
    };
    // No browser speaks it any more; nginx does to whom it hands on, unless it is told otherwise.
    let handed_on = version == Version::HTTP_10 || headers.keys().any(|it| told(it.as_str()));
    let host = headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(name, _)| name);
    caller.address.is_some_and(|it| it.to_canonical().is_loopback())
        && ["127.0.0.1", "localhost", "[::1]"].iter().any(|it| host.eq_ignore_ascii_case(it))
        && !handed_on
}

fn unauthorized(denied: Denied) -> Response<Body> {
    let text = match denied {
        Denied::NoToken => "a token is needed: Authorization: Bearer TOKEN\n",
        Denied::UnknownToken => "nobody has this token\n",
    };
    let mut response = plain(StatusCode::UNAUTHORIZED, text);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn too_many() -> Response<Body> {
    let mut response = plain(StatusCode::TOO_MANY_REQUESTS, "too many wrong tokens: wait\n");
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    response
}

pub(crate) fn not_allowed(allow: &'static str) -> Response<Body> {
    let mut response = plain(StatusCode::METHOD_NOT_ALLOWED, "method not allowed\n");
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allow));
    response
}

fn plain(status: StatusCode, text: &str) -> Response<Body> {
    typed(status, "text/plain; charset=utf-8", Body::whole(text.to_owned()))
}

pub(crate) fn typed(status: StatusCode, media_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
