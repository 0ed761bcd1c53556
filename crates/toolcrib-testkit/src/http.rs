//! A fake server on a port: streamable HTTP, and HTTP+SSE.

use std::{
    collections::HashMap,
    convert::Infallible,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Frame as BodyFrame, Incoming},
    header::{AUTHORIZATION, CONTENT_TYPE, LOCATION},
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::{net::TcpListener, sync::mpsc, task::JoinHandle};

use crate::{
    fake::{Fake, Reaction},
    plan::{Fault, Plan, Speaks},
};

/// A fake server on a port of this machine. It ends when this is dropped.
#[derive(Debug)]
pub struct Running {
    /// Where it is.
    pub url: String,
    /// How often it was asked.
    requests: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Running {
    /// Runs a plan over streamable HTTP.
    pub async fn http(plan: Plan) -> Self {
        Self::start(plan, "/mcp").await
    }

    /// Runs a plan over HTTP+SSE.
    pub async fn sse(plan: Plan) -> Self {
        Self::start(plan, "/sse").await
    }

    /// How many HTTP requests came.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::Relaxed)
    }

    async fn start(plan: Plan, path: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}{path}", listener.local_addr().unwrap());
        let requests = Arc::new(AtomicUsize::new(0));
        let site = Arc::new(Site {
            fake: Fake::new(plan),
            streams: Mutex::default(),
            sessions: Mutex::default(),
            next: AtomicUsize::new(1),
            requests: Arc::clone(&requests),
        });
        #[expect(clippy::disallowed_methods, reason = "it ends with the handle")]
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                socket.set_nodelay(true).unwrap();
                let site = Arc::clone(&site);
                connections.spawn(async move {
                    let service = service_fn(move |request| {
                        let site = Arc::clone(&site);
                        async move { Ok::<_, Infallible>(site.serve(request).await) }
                    });
                    let builder = hyper::server::conn::http1::Builder::new();
                    builder.serve_connection(TokioIo::new(socket), service).await.ok();
                });
            }
        });
        Self { url, requests, task }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Site {
    fake: Arc<Fake>,
    /// What goes to each open stream, by session.
    streams: Mutex<HashMap<String, mpsc::Sender<Result<Bytes, io::Error>>>>,
    /// How many requests each session has made.
    sessions: Mutex<HashMap<String, usize>>,
    next: AtomicUsize,
    requests: Arc<AtomicUsize>,
}

impl Site {
    async fn serve(&self, request: Request<Incoming>) -> Response<Bodies> {
        self.requests.fetch_add(1, Ordering::Relaxed);
        for fault in &self.fake.plan.faults {
            match fault {
                Fault::Redirect(to) => {
                    let moved = Response::builder().status(307).header(LOCATION, to);
                    return moved.body(Bodies::whole("")).unwrap();
                }
                Fault::Token(token) => {
                    let given = request.headers().get(AUTHORIZATION);
                    if given.is_none_or(|it| it.as_bytes() != format!("Bearer {token}").as_bytes())
                    {
                        let refused = Response::builder().status(401);
                        let refused = refused.header("www-authenticate", "Bearer");
                        return refused.body(Bodies::whole("")).unwrap();
                    }
                }
                Fault::Mute => std::future::pending().await,
                _ => {}
            }
        }
        match (request.method(), request.uri().path()) {
            (&Method::POST, "/mcp") => self.streamable(request).await,
            (&Method::GET, "/mcp") if self.fake.plan.has(&Fault::NobodyListens) => {
                status(StatusCode::NOT_FOUND)
            }
            (&Method::GET, "/mcp") => self.listen(&request),
            (&Method::DELETE, "/mcp") => status(StatusCode::OK),
            (&Method::GET, "/sse") => self.open(),
            (&Method::POST, "/messages") => self.message(request).await,
            _ => status(StatusCode::NOT_FOUND),
        }
    }

    async fn streamable(&self, request: Request<Incoming>) -> Response<Bodies> {
        let headers = shown(&request);
        let session = headers["mcp-session-id"].as_str().map(ToOwned::to_owned);
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let text = String::from_utf8_lossy(&body).into_owned();
        let begins = text.contains("\"initialize\"");
        if text.contains("tools/list") && self.fake.plan.has(&Fault::LockedList) {
            return status(StatusCode::UNAUTHORIZED);
        }
        if self.fake.plan.speaks == Speaks::Legacy
            && !begins
            && let Some(refusal) = self.refused(session.as_deref())
        {
            return refusal;
        }
        let (aside, mut notes) = mpsc::channel::<Bytes>(64);
        let (fake, calls) = (Arc::clone(&self.fake), text.contains("tools/call"));
        let mut work = Box::pin(async move { fake.take(&body, &headers, &aside).await });
        let reaction = tokio::select! {
            biased;
            reaction = &mut work => reaction,
            Some(first) = notes.recv(), if calls => return streamed(work, first, notes),
        };
        drop(work);
        let stream = self.fake.plan.has(&Fault::Streams) || text.contains("subscriptions/listen");
        let answer = match reaction {
            Reaction::Nothing => return status(StatusCode::ACCEPTED),
            Reaction::Send(answer) => answer,
            Reaction::SendRaw(answer) => answer.into(),
            Reaction::SendAndEnd(half) => return broken(half.into()),
            Reaction::Begin(begin) => return self.stalled(begin, stream),
            Reaction::Silence if stream => {
                let (sender, response) = events(None);
                self.streams.lock().insert("listen".to_owned(), sender.clone());
                while let Ok(note) = notes.try_recv() {
                    sender.send(Ok(event(&note))).await.ok();
                }
                return response;
            }
            Reaction::Silence => std::future::pending().await,
        };
        while let Ok(note) = notes.try_recv() {
            let streams: Vec<_> = self.streams.lock().values().cloned().collect();
            for stream in streams {
                stream.send(Ok(event(&note))).await.ok();
            }
        }
        let unknown = text.contains("server/discover") && self.fake.plan.speaks == Speaks::Legacy;
        let status = if unknown { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        let builder = Response::builder().status(status);
        let builder =
            if begins { builder.header("mcp-session-id", self.session()) } else { builder };
        if stream {
            let text = [b"id: 1\nretry: 10\ndata:\n\n", &*event(&answer)].concat();
            let builder = builder.header(CONTENT_TYPE, "text/event-stream; charset=utf-8");
            return builder.body(Bodies::whole(text)).unwrap();
        }
        builder.header(CONTENT_TYPE, "application/json").body(Bodies::whole(answer)).unwrap()
    }

    /// A response that does not go on.
    fn stalled(&self, begin: Vec<u8>, stream: bool) -> Response<Bodies> {
        let (sender, receiver) = mpsc::channel(2);
        let (media, text) = match stream {
            true => ("text/event-stream", [b"data: ", begin.as_slice()].concat()),
            false => ("application/json", begin),
        };
        sender.try_send(Ok(text.into())).unwrap();
        self.streams.lock().insert("stalled".to_owned(), sender);
        Response::builder().header(CONTENT_TYPE, media).body(Bodies::Stream(receiver)).unwrap()
    }

    /// Why a request of a session is refused, if it is.
    fn refused(&self, session: Option<&str>) -> Option<Response<Bodies>> {
        let Some(session) = session else { return Some(status(StatusCode::BAD_REQUEST)) };
        let limit = self.fake.plan.faults.iter().find_map(|it| match it {
            Fault::Forgetful(limit) => Some(*limit),
            _ => None,
        });
        let mut sessions = self.sessions.lock();
        let known = sessions.get_mut(session);
        let used = known.map(|used| {
            *used += 1;
            *used
        });
        match used {
            Some(used) if limit.is_none_or(|limit| used <= limit) => None,
            _ => Some(status(StatusCode::NOT_FOUND)),
        }
    }

    fn session(&self) -> String {
        let id = format!("s{}", self.next.fetch_add(1, Ordering::Relaxed));
        self.sessions.lock().insert(id.clone(), 0);
        id
    }

    fn listen(&self, request: &Request<Incoming>) -> Response<Bodies> {
        let session = shown(request)["mcp-session-id"].as_str().unwrap_or("none").to_owned();
        let (sender, response) = events(None);
        self.streams.lock().insert(session, sender);
        response
    }

    /// The stream of an HTTP+SSE client.
    fn open(&self) -> Response<Bodies> {
        let session = self.session();
        let ordered = self.fake.plan.faults.iter().find_map(|it| match it {
            Fault::Endpoint(to) => Some(to.clone()),
            _ => None,
        });
        let to = ordered.unwrap_or_else(|| format!("/messages?session={session}"));
        let (sender, response) = events(Some(format!("event: endpoint\ndata: {to}\n\n")));
        if self.fake.plan.has(&Fault::Stalls) {
            let alive = sender.clone();
            #[expect(clippy::disallowed_methods, reason = "it ends with its stream")]
            tokio::spawn(async move {
                while alive.send(Ok(Bytes::from_static(b": alive\n\n"))).await.is_ok() {
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            });
        }
        self.streams.lock().insert(session, sender);
        response
    }

    async fn message(&self, request: Request<Incoming>) -> Response<Bodies> {
        let headers = shown(&request);
        let query = request.uri().query().unwrap_or_default().to_owned();
        let session = query.trim_start_matches("session=");
        let body = request.into_body().collect().await.unwrap().to_bytes();
        let stream = self.streams.lock().get(session).cloned();
        let Some(stream) = stream else { return status(StatusCode::NOT_FOUND) };
        let (aside, mut notes) = mpsc::channel::<Bytes>(64);
        let (fake, session) = (Arc::clone(&self.fake), session.to_owned());
        let mut work = Box::pin(async move { fake.take(&body, &headers, &aside).await });
        let reaction = loop {
            tokio::select! {
                biased;
                reaction = &mut work => break reaction,
                Some(note) = notes.recv() => drop(stream.send(Ok(event(&note))).await),
            }
        };
        drop(work);
        match reaction {
            Reaction::Nothing | Reaction::Silence => {}
            Reaction::Send(answer) => drop(stream.send(Ok(event(&answer))).await),
            Reaction::SendRaw(answer) => drop(stream.send(Ok(event(&answer))).await),
            Reaction::Begin(begin) => {
                stream.send(Ok([b"data: ", begin.as_slice()].concat().into())).await.ok();
            }
            Reaction::SendAndEnd(half) => {
                stream.send(Ok([b"data: ", half.as_slice()].concat().into())).await.ok();
                stream.send(Err(io::Error::other("crash"))).await.ok();
                self.streams.lock().remove(&session);
            }
        }
        while let Ok(note) = notes.try_recv() {
            stream.send(Ok(event(&note))).await.ok();
        }
        status(StatusCode::ACCEPTED)
    }
}

fn shown(request: &Request<Incoming>) -> Value {
    let pair = |(name, value): (&hyper::header::HeaderName, &hyper::header::HeaderValue)| {
        (name.to_string(), json!(String::from_utf8_lossy(value.as_bytes())))
    };
    Value::Object(request.headers().iter().map(pair).collect())
}

fn status(status: StatusCode) -> Response<Bodies> {
    Response::builder().status(status).body(Bodies::whole("")).unwrap()
}

fn event(text: &[u8]) -> Bytes {
    // A message may hold line ends only where it is no message.
    let lines: Vec<Vec<u8>> =
        text.split(|&b| b == b'\n').map(|line| [b"data: ", line, b"\n"].concat()).collect();
    [lines.concat(), b"\n".to_vec()].concat().into()
}

/// A stream of what is said before the answer, and the answer.
fn streamed(
    work: Pin<Box<impl Future<Output = Reaction> + Send + 'static>>,
    first: Bytes,
    mut notes: mpsc::Receiver<Bytes>,
) -> Response<Bodies> {
    let (sender, response) = events(None);
    #[expect(clippy::disallowed_methods, reason = "it ends with its stream")]
    tokio::spawn(async move {
        let mut work = work;
        sender.send(Ok(event(&first))).await.ok();
        let answer = loop {
            tokio::select! {
                reaction = &mut work => break reaction,
                Some(note) = notes.recv() => drop(sender.send(Ok(event(&note))).await),
                () = sender.closed() => return,
            }
        };
        while let Ok(note) = notes.try_recv() {
            sender.send(Ok(event(&note))).await.ok();
        }
        if let Reaction::Send(answer) = answer {
            sender.send(Ok(event(&answer))).await.ok();
        }
    });
    response
}

/// An event stream, and what feeds it.
fn events(first: Option<String>) -> (mpsc::Sender<Result<Bytes, io::Error>>, Response<Bodies>) {
    let (sender, receiver) = mpsc::channel(64);
    if let Some(first) = first {
        sender.try_send(Ok(first.into())).unwrap();
    }
    let response = Response::builder().header(CONTENT_TYPE, "text/event-stream");
    (sender, response.body(Bodies::Stream(receiver)).unwrap())
}

/// A response that breaks off.
fn broken(half: Bytes) -> Response<Bodies> {
    let (sender, receiver) = mpsc::channel(2);
    sender.try_send(Ok(half)).unwrap();
    sender.try_send(Err(io::Error::other("crash"))).unwrap();
    let response = Response::builder().header(CONTENT_TYPE, "application/json");
    response.body(Bodies::Stream(receiver)).unwrap()
}

enum Bodies {
    Whole(Option<Bytes>),
    Stream(mpsc::Receiver<Result<Bytes, io::Error>>),
}

impl Bodies {
    fn whole(text: impl Into<Bytes>) -> Self {
        Self::Whole(Some(text.into()))
    }
}

impl Body for Bodies {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<BodyFrame<Bytes>, io::Error>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|it| Ok(BodyFrame::data(it)))),
            Self::Stream(receiver) => {
                receiver.poll_recv(context).map(|it| it.map(|it| it.map(BodyFrame::data)))
            }
        }
    }
}
