//! Connections to one server, kept for the next request.
//!
//! A connection has no task of its own: whoever waits for an answer drives it. So a call is one task from
//! the client's socket to the server's and back, and nobody has to be woken in between.

use std::{
    collections::VecDeque,
    error::Error,
    fmt, io,
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http::{StatusCode, Uri};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tower_service::Service;

use crate::{
    Fields,
    line::{Framing, Line, SendError},
};

/// A connection that nobody has used for so long is not used again.
pub(crate) const IDLE: Duration = Duration::from_secs(30);

/// How many connections wait for the next request; one more is closed.
const MAX_IDLE: usize = 256;

/// A body that is no longer goes out together with its head.
const SMALL: usize = 16 * 1024;

/// In a box: what encrypts is large, and a call hands its connection on a few times.
type Held = Box<Line<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>>;
type Home = Arc<Mutex<VecDeque<Idle>>>;

/// The connections to one server.
#[derive(Clone)]
pub(crate) struct Pool {
    connector: HttpsConnector<HttpConnector>,
    /// The one used last stands last, and is taken first.
    idle: Home,
}

/// A connection that nobody uses, and what was left of its last answer.
struct Idle {
    line: Held,
    left: Framing,
    since: Instant,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) fields: Fields,
    pub(crate) body: Body,
}

/// Why there is no response.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The server could not be reached.
    Connect(Box<dyn Error + Send + Sync>),
    /// It could, and then was lost.
    Lost(io::Error),
}

impl Pool {
    pub(crate) fn new(connector: HttpsConnector<HttpConnector>) -> Self {
        Self { connector, idle: Home::default() }
    }

    /// Sends a request, whose head ends with an empty line. One that was not even written, since its connection had
    /// gone, is sent again.
    pub(crate) async fn request(
        &self,
        to: &Uri,
        head: Vec<u8>,
        body: &[u8],
    ) -> Result<Response, Failed> {
        let (mut first, mut rest) = (head, body);
        if rest.len() <= SMALL {
            first.extend_from_slice(std::mem::take(&mut rest));
        }
        loop {
            let (mut line, used) = match self.take() {
                Some(line) => (line, true),
                // Rare, and large: not a part of what every call carries along.
                None => (Box::pin(self.open(to)).await?, false),
            };
            match line.ask(&first, rest).await {
                Ok(head) => {
                    let home = Arc::clone(&self.idle);
                    let body =
                        Body { framing: head.framing, stays: head.stays, line: Some(line), home };
                    return Ok(Response { status: head.status, fields: head.fields, body });
                }
                Err(SendError::Unsent(_)) if used => {}
                Err(SendError::Unsent(error) | SendError::Lost(error)) => {
                    return Err(Failed::Lost(error));
                }
            }
        }
    }

    /// Closes what nobody has used for long.
    pub(crate) fn sweep(&self) {
        let mut idle = self.idle.lock();
        let old = idle.iter().take_while(|it| IDLE <= it.since.elapsed()).count();
        idle.drain(..old);
    }

    fn take(&self) -> Option<Held> {
        loop {
            let Idle { mut line, mut left, since } = self.idle.lock().pop_back()?;
            if since.elapsed() < IDLE && line.has_ended(&mut left) && line.is_quiet() {
                return Some(line);
            }
        }
    }

    async fn open(&self, to: &Uri) -> Result<Held, Failed> {
        let stream = self.connector.clone().call(to.clone()).await.map_err(Failed::Connect)?;
        Ok(Box::new(Line::new(TokioIo::new(stream))))
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("idle", &self.idle.lock().len()).finish_non_exhaustive()
    }
}

/// The body of a response. Its connection goes back when all of it was read; where it is dropped before that, the
/// connection is closed, which tells the server that nobody waits any more.
pub(crate) struct Body {
    framing: Framing,
    stays: bool,
    line: Option<Held>,
    home: Home,
}

impl Body {
    /// How much is still to come, where that was said.
    pub(crate) fn length(&self) -> Option<u64> {
        match self.framing {
            Framing::Length(length) => Some(length),
            Framing::Chunks(_) | Framing::Close => None,
        }
    }

    /// The next piece; nothing at the end.
    pub(crate) async fn piece(&mut self) -> io::Result<Option<Bytes>> {
        let Some(line) = &mut self.line else { return Ok(None) };
        let piece = line.piece(&mut self.framing).await?;
        if piece.is_none() || self.length() == Some(0) {
            self.leave();
        }
        Ok(piece)
    }

    /// All of a body of which it is known how long it is, in one buffer.
    pub(crate) async fn exactly(&mut self, length: usize) -> io::Result<Bytes> {
        let Some(line) = &mut self.line else { return Ok(Bytes::new()) };
        let whole = line.exactly(length).await?;
        self.framing = Framing::Length(0);
        self.leave();
        Ok(whole)
    }

    /// What is left of it says nothing, and ends by itself: the connection goes back.
    pub(crate) fn leave(&mut self) {
        let Some(mut line) = self.line.take().filter(|_| self.stays) else { return };
        let left = std::mem::replace(&mut self.framing, Framing::Length(0));
        if matches!(left, Framing::Length(0)) {
            line.rest_if_empty();
        }
        let mut home = self.home.lock();
        home.push_back(Idle { line, left, since: Instant::now() });
        if MAX_IDLE < home.len() {
            home.pop_front();
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("framing", &self.framing).finish_non_exhaustive()
    }
}
