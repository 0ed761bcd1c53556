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
use tokio::{
    net::TcpStream,
    runtime::{Handle, Id},
};
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
/// One for each runtime that has sent something: there are as many as the gateway has hands, and one.
type Homes = Arc<Mutex<Vec<Home>>>;

/// The connections to one server.
#[derive(Clone)]
pub(crate) struct Pool {
    connector: HttpsConnector<HttpConnector>,
    homes: Homes,
}

/// Where the connections of one runtime wait. A socket wakes the runtime that opened it; whoever used it on another
/// would be woken from thread to thread.
struct Home {
    runtime: Id,
    /// The one used last stands last, and is taken first.
    idle: VecDeque<Idle>,
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
        Self { connector, homes: Homes::default() }
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
        let runtime = Handle::current().id();
        loop {
            let (mut line, used) = match self.take(runtime) {
                Some(line) => (line, true),
                // Rare, and large: not a part of what every call carries along.
                None => (Box::pin(self.open(to)).await?, false),
            };
            match line.ask(&first, rest).await {
                Ok(head) => {
                    let (homes, line) = (Arc::clone(&self.homes), Some(line));
                    let (framing, stays) = (head.framing, head.stays);
                    let body = Body { framing, stays, line, runtime, homes };
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
        for Home { idle, .. } in self.homes.lock().iter_mut() {
            let old = idle.iter().take_while(|it| IDLE <= it.since.elapsed()).count();
            idle.drain(..old);
        }
    }

    fn take(&self, runtime: Id) -> Option<Held> {
        loop {
            let idle =
                self.homes.lock().iter_mut().find(|it| it.runtime == runtime)?.idle.pop_back();
            let Idle { mut line, mut left, since } = idle?;
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
        let idle: usize = self.homes.lock().iter().map(|it| it.idle.len()).sum();
        f.debug_struct("Pool").field("idle", &idle).finish_non_exhaustive()
    }
}

/// The body of a response. Its connection goes back when all of it was read; where it is dropped before that, the
/// connection is closed, which tells the server that nobody waits any more.
pub(crate) struct Body {
    framing: Framing,
    stays: bool,
    line: Option<Held>,
    runtime: Id,
    homes: Homes,
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
        let idle = Idle { line, left, since: Instant::now() };
        let mut homes = self.homes.lock();
        let Some(home) = homes.iter_mut().find(|it| it.runtime == self.runtime) else {
            homes.push(Home { runtime: self.runtime, idle: VecDeque::from([idle]) });
            return;
        };
        home.idle.push_back(idle);
        if MAX_IDLE < home.idle.len() {
            home.idle.pop_front();
        }
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body").field("framing", &self.framing).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use hyper_rustls::HttpsConnectorBuilder;
    use rustls::{ClientConfig, RootCertStore};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
    };

    use super::*;

    fn pool() -> Pool {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let connector = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
        Pool::new(connector.enable_http1().build())
    }

    #[expect(clippy::disallowed_methods, reason = "it ends with the test")]
    fn spawn(work: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(work);
    }

    /// A server that gives each request of a connection one of these answers, and then closes it. Returns its address,
    /// and how many connections it has had.
    async fn server(answers: &'static [&'static str]) -> (Uri, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let count = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&count);
        let serving = async move {
            loop {
                let (mut socket, _) = listener.accept().await.unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
                spawn(async move {
                    for answer in answers {
                        socket.read_exact(&mut [0; 3]).await.ok();
                        socket.write_all(answer.as_bytes()).await.ok();
                    }
                });
            }
        };
        spawn(serving);
        (uri, count)
    }

    async fn ask(pool: &Pool, uri: &Uri) -> Response {
        pool.request(uri, b"ask".to_vec(), b"").await.unwrap()
    }

    /// Looks at the connection that would be taken first.
    fn last<T>(pool: &Pool, look: impl FnOnce(&mut Idle) -> T) -> Option<T> {
        pool.homes.lock().first_mut()?.idle.back_mut().map(look)
    }

    const WHOLE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    const STREAM: &str =
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";

    #[tokio::test]
    async fn a_connection_is_used_again_once_its_answer_is_read() {
        let (uri, count) = server(&[WHOLE, WHOLE, WHOLE]).await;
        let pool = pool();
        for _ in 0..3 {
            assert_eq!(ask(&pool, &uri).await.body.exactly(2).await.unwrap(), "ok");
        }
        assert_eq!(count.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn what_is_left_of_a_stream_is_passed_over_and_what_is_dropped_is_closed() {
        let (uri, count) = server(&[STREAM, STREAM, STREAM]).await;
        let pool = pool();
        for _ in 0..2 {
            let mut response = ask(&pool, &uri).await;
            assert_eq!(response.body.piece().await.unwrap().unwrap(), "ok");
            response.body.leave();
        }
        assert_eq!(count.load(Ordering::Relaxed), 1);
        drop(ask(&pool, &uri).await);
        assert!(last(&pool, |_| ()).is_none(), "whoever did not wait is heard to be gone");
    }

    /// The server closes after each answer: the next request needs a connection of its own, and gets one.
    #[tokio::test]
    async fn a_connection_that_has_gone_is_not_used() {
        let (uri, count) = server(&[WHOLE]).await;
        let pool = pool();
        for at in 1..=5 {
            assert_eq!(ask(&pool, &uri).await.body.exactly(2).await.unwrap(), "ok");
            // Until the end has come.
            while last(&pool, |it| it.line.is_quiet()) == Some(true) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(count.load(Ordering::Relaxed), at);
        }
    }

    #[tokio::test]
    async fn a_connection_stays_with_the_runtime_that_opened_it() {
        let (uri, count) = server(&[WHOLE; 4]).await;
        let pool = pool();
        let mut hand = tokio::runtime::Builder::new_multi_thread();
        let hand = hand.worker_threads(1).enable_all().build().unwrap();
        let mut counts = Vec::new();
        for _ in 0..2 {
            assert_eq!(ask(&pool, &uri).await.body.exactly(2).await.unwrap(), "ok");
            counts.push(count.load(Ordering::Relaxed));
            let (pool, uri) = (pool.clone(), uri.clone());
            let there = async move { ask(&pool, &uri).await.body.exactly(2).await.unwrap() };
            assert_eq!(hand.spawn(there).await.unwrap(), "ok");
            counts.push(count.load(Ordering::Relaxed));
        }
        hand.shutdown_background();
        assert_eq!(counts, [1, 2, 2, 2], "one for each, used twice");
    }
}
