//! The server that all ways lead to: MCP over streamable HTTP, both eras, and as little else as possible.
//!
//! It lives on a thread of its own and answers in JSON. It believes whatever it is asked: checking is the
//! client's part here, and the gateway's.

use std::{
    array,
    borrow::Cow,
    convert::Infallible,
    net::{SocketAddr, TcpListener},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    thread,
};

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Frame, Incoming, SizeHint},
    header::{CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{json, value::RawValue};
use tokio::task::JoinSet;
use toolcrib_wire::{Revision, revision::META_SERVER};

use crate::failure::Failure;

/// The tool that every call is for.
pub(crate) const ECHO: &str = "echo";

/// The tool that toolcrib is told to hide.
pub(crate) const FORBIDDEN: &str = "forbidden";

/// How many tools there are, without the forbidden one.
pub(crate) const TOOLS: usize = 10_000;

/// The answers that are the same for everybody.
struct Site {
    discovered: Bytes,
    initialized: Bytes,
    list: Bytes,
}

/// Starts the server. It ends with this program.
pub(crate) fn start() -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    thread::Builder::new().name("upstream".to_owned()).spawn(move || {
        runtime.block_on(serve(listener));
    })?;
    Ok(address)
}

async fn serve(listener: TcpListener) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let site = Arc::new(Site::new());
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        socket.set_nodelay(true).ok();
        let site = Arc::clone(&site);
        let service = service_fn(move |request| {
            let site = Arc::clone(&site);
            async move { Ok::<_, Infallible>(site.answer(request).await) }
        });
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
    }
}

#[derive(Deserialize)]
struct Asked<'a> {
    /// A notification has none.
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    /// What to say, as JSON.
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

impl Site {
    fn new() -> Self {
        let server = json!({ "name": "bench", "version": "1" });
        let discovered = json!({
            "resultType": "complete",
            "supportedVersions": [Revision::V2026_07_28.as_str()],
            "capabilities": { "tools": {} },
            "ttlMs": 0,
            "cacheScope": "public",
            "_meta": { META_SERVER: server },
        });
        let initialized = json!({
            "protocolVersion": Revision::LAST_LEGACY.as_str(),
            "capabilities": { "tools": {} },
            "serverInfo": server,
        });
        let numbered = (1..TOOLS).map(|it| format!("tool_{it:05}"));
        let names = [ECHO, FORBIDDEN].map(str::to_owned).into_iter().chain(numbered);
        let tools: Vec<_> = names.map(|it| definition(&it)).collect();
        let list = json!({
            "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "public",
        });
        let [discovered, initialized, list] =
            [discovered, initialized, list].map(|it| Bytes::from(it.to_string()));
        Self { discovered, initialized, list }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<Pieces> {
        if request.method() != Method::POST {
            return empty(StatusCode::METHOD_NOT_ALLOWED);
        }
        let Ok(body) = request.into_body().collect().await else {
            return empty(StatusCode::BAD_REQUEST);
        };
        let body = body.to_bytes();
        let Ok(asked) = serde_json::from_slice::<Asked<'_>>(&body) else {
            return empty(StatusCode::BAD_REQUEST);
        };
        let Some(id) = asked.id else { return empty(StatusCode::ACCEPTED) };
        match &*asked.method {
            "tools/call" => response(id, echo(asked.params.as_ref())),
            "tools/list" => response(id, self.list.clone()),
            "server/discover" => response(id, self.discovered.clone()),
            "initialize" => {
                let mut answer = response(id, self.initialized.clone());
                let session = HeaderValue::from_static("the-only-one");
                answer.headers_mut().insert("mcp-session-id", session);
                answer
            }
            _ => empty(StatusCode::NOT_FOUND),
        }
    }
}

/// A tool of ordinary size.
fn definition(name: &str) -> serde_json::Value {
    json!({
        "name": name,
        "title": "Says it again",
        "description": format!("{name} gives back the text that it is given, as it was given."),
        "inputSchema": {
            "type": "object",
            "properties": { "text": { "type": "string", "description": "What is to be said" } },
            "required": ["text"],
        },
        "annotations": { "readOnlyHint": true },
    })
}

/// The result of a call: the text it came with.
fn echo(params: Option<&Params<'_>>) -> Bytes {
    let text = params.and_then(|it| it.arguments.as_ref()?.text).map_or(r#""""#, RawValue::get);
    let before = r#"{"resultType":"complete","content":[{"type":"text","text":"#;
    [before, text, r#"}],"isError":false}"#].concat().into()
}

/// A result that is on its way in pieces, so that a long list is not copied.
fn response(id: &RawValue, result: Bytes) -> Response<Pieces> {
    let begin = [r#"{"jsonrpc":"2.0","id":"#, id.get(), r#","result":"#].concat();
    let mut response = Response::new(Pieces::new([begin.into(), result, Bytes::from_static(b"}")]));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

fn empty(status: StatusCode) -> Response<Pieces> {
    let mut response = Response::new(Pieces::new([const { Bytes::new() }; 3]));
    *response.status_mut() = status;
    response
}

/// A body whose length is known.
struct Pieces {
    left: u64,
    pieces: array::IntoIter<Bytes, 3>,
}

impl Pieces {
    fn new(pieces: [Bytes; 3]) -> Self {
        let left = pieces.iter().map(|it| it.len() as u64).sum();
        Self { left, pieces: pieces.into_iter() }
    }
}

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = self.pieces.next();
        self.left -= next.as_ref().map_or(0, |it| it.len() as u64);
        Poll::Ready(next.map(|it| Ok(Frame::data(it))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
