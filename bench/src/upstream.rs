//! The server that all ways lead to: MCP over streamable HTTP, both eras, and as little else as possible.
//!
//! It lives on a thread of its own and answers in JSON. How many tools it has stands in the path:
//! `/1000/mcp` is a server with a thousand.

use std::{
    array,
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
use tokio::task::JoinSet;

use crate::{
    failure::Failure,
    site::{Answer, FEW, Site},
};

/// How many tools a server may have.
pub(crate) const SIZES: [usize; 3] = [FEW, 1_000, 10_000];

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

/// The path of a server with so many tools.
pub(crate) fn path(tools: usize) -> String {
    format!("/{tools}/mcp")
}

async fn serve(listener: TcpListener) {
    let Ok(listener) = tokio::net::TcpListener::from_std(listener) else { return };
    let site = Arc::new(Site::new(&SIZES));
    let mut connections = JoinSet::new();
    while let Ok((socket, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        socket.set_nodelay(true).ok();
        let site = Arc::clone(&site);
        let service = service_fn(move |request| {
            let site = Arc::clone(&site);
            async move { Ok::<_, Infallible>(answer(&site, request).await) }
        });
        connections.spawn(http1::Builder::new().serve_connection(TokioIo::new(socket), service));
    }
}

async fn answer(site: &Site, request: Request<Incoming>) -> Response<Pieces> {
    if request.method() != Method::POST {
        return empty(StatusCode::METHOD_NOT_ALLOWED);
    }
    let tools = request.uri().path().split('/').nth(1).and_then(|it| it.parse().ok());
    let Ok(body) = request.into_body().collect().await else {
        return empty(StatusCode::BAD_REQUEST);
    };
    match site.answer(&body.to_bytes(), tools.unwrap_or(FEW)) {
        Answer::Silence => empty(StatusCode::ACCEPTED),
        Answer::Unreadable => empty(StatusCode::BAD_REQUEST),
        Answer::Message(pieces) => response(pieces),
        Answer::Session(pieces) => {
            let mut response = response(pieces);
            let session = HeaderValue::from_static("the-only-one");
            response.headers_mut().insert("mcp-session-id", session);
            response
        }
    }
}

/// A result that is on its way in pieces, so that what is long is not copied.
fn response(pieces: [Bytes; 3]) -> Response<Pieces> {
    let mut response = Response::new(Pieces::new(pieces));
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
