//! Connections to one server, kept for the next request.
//!
//! A connection has no task of its own: whoever waits for an answer drives it. So a call is one task from
//! the client's socket to the server's and back, and nobody has to be woken in between.

use std::{
    collections::VecDeque,
    error::Error,
    fmt,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, Waker},
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body_util::Full;
use hyper::{
    body::{Body, Frame, Incoming, SizeHint},
    client::conn::{
        TrySendError,
        http1::{self, SendRequest},
    },
};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tower_service::Service;

/// A connection that nobody has used for so long is not used again.
pub(crate) const IDLE: Duration = Duration::from_secs(30);

/// How many connections wait for the next request; one more is closed.
const MAX_IDLE: usize = 256;

type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;
type Connection = Pin<Box<http1::Connection<Stream, Full<Bytes>>>>;
type Message = Request<Full<Bytes>>;
type Home = Arc<Mutex<VecDeque<(Line, Instant)>>>;

/// The connections to one server.
#[derive(Clone)]
pub(crate) struct Pool {
    connector: HttpsConnector<HttpConnector>,
    /// The one used last stands last, and is taken first.
    idle: Home,
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The server could not be reached.
    Connect(Box<dyn Error + Send + Sync>),
    /// It could, and then was lost.
    Lost(hyper::Error),
}

impl Pool {
    pub(crate) fn new(connector: HttpsConnector<HttpConnector>) -> Self {
        Self { connector, idle: Home::default() }
    }

    /// Sends a request. One that was not even written, since its connection had gone, is sent again.
    pub(crate) async fn request(
        &self,
        to: &Uri,
        mut request: Message,
    ) -> Result<Response<Driven>, Failed> {
        loop {
            let (mut line, used) = match self.take() {
                Some(line) => (line, true),
                // Rare, and large: not a part of what every call carries along.
                None => (Box::pin(self.open(to)).await?, false),
            };
            match line.send(request).await {
                Ok(response) => {
                    let home = Arc::clone(&self.idle);
                    return Ok(response.map(|body| Driven { body, line: Some(line), home }));
                }
                Err(mut error) => match error.take_message().filter(|_| used) {
                    Some(unsent) => request = unsent,
                    None => return Err(Failed::Lost(error.into_error())),
                },
            }
        }
    }

    /// Closes what nobody has used for long.
    pub(crate) fn sweep(&self) {
        let mut idle = self.idle.lock();
        let old = idle.iter().take_while(|(_, since)| IDLE <= since.elapsed()).count();
        idle.drain(..old);
    }

    fn take(&self) -> Option<Line> {
        loop {
            let (mut line, since) = self.idle.lock().pop_back()?;
            if since.elapsed() < IDLE && line.is_ready() {
                return Some(line);
            }
        }
    }

    async fn open(&self, to: &Uri) -> Result<Line, Failed> {
        let stream = self.connector.clone().call(to.clone()).await.map_err(Failed::Connect)?;
        let (sender, connection) = http1::handshake(stream).await.map_err(Failed::Lost)?;
        Ok(Line { sender, connection: Some(Box::pin(connection)) })
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("idle", &self.idle.lock().len()).finish_non_exhaustive()
    }
}

/// One connection.
struct Line {
    sender: SendRequest<Full<Bytes>>,
    /// Gone when it has ended, so that nobody waits for what it would have brought.
    connection: Option<Connection>,
}

impl Line {
    async fn send(
        &mut self,
        request: Message,
    ) -> Result<Response<Incoming>, TrySendError<Message>> {
        let mut sending = pin!(self.sender.try_send_request(request));
        let connection = &mut self.connection;
        std::future::poll_fn(|context| {
            drive(connection, context);
            // It is looked at whenever the connection has got on, and need not wake us for that.
            sending.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        })
        .await
    }

    /// Whether a request can be sent. Nobody is to be woken by what is found out here.
    fn is_ready(&mut self) -> bool {
        drive(&mut self.connection, &mut Context::from_waker(Waker::noop()));
        self.connection.is_some() && self.sender.is_ready()
    }
}

fn drive(connection: &mut Option<Connection>, context: &mut Context<'_>) {
    let ended = connection.as_mut().is_some_and(|it| it.as_mut().poll(context).is_ready());
    if ended {
        *connection = None;
    }
}

/// The body of a response. Its connection goes back when all of it was read.
pub(crate) struct Driven {
    body: Incoming,
    line: Option<Line>,
    home: Home,
}

impl Driven {
    fn give_back(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        if !line.is_ready() {
            return;
        }
        let mut home = self.home.lock();
        home.push_back((line, Instant::now()));
        if MAX_IDLE < home.len() {
            home.pop_front();
        }
    }
}

impl Drop for Driven {
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.give_back();
        }
    }
}

impl fmt::Debug for Driven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driven").field("body", &self.body).finish_non_exhaustive()
    }
}

impl Body for Driven {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let this = &mut *self;
        let mut frame = Poll::Pending;
        // That somebody looks is what lets the connection read on: look, drive, look again.
        for waker in [Waker::noop(), context.waker()] {
            if let Some(line) = &mut this.line {
                drive(&mut line.connection, context);
            }
            frame = Pin::new(&mut this.body).poll_frame(&mut Context::from_waker(waker));
            if frame.is_ready() {
                break;
            }
        }
        if matches!(frame, Poll::Ready(None)) || (frame.is_ready() && this.body.is_end_stream()) {
            this.give_back();
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
