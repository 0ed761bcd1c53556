//! The HTTP client under both HTTP transports: one pool of connections per server, no redirects, every
//! body bounded.

use std::{borrow::Cow, convert::Infallible, error::Error, fs, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::{
    board::Board,
    client::Aside,
    error::{ConnectError, RequestError},
    pool::{Body, Failed, IDLE, Pool, Response},
    sift::{Message, SiftError, Sifting},
    spool::Spool,
    sse,
    text::plain,
};

/// A server that is reached over HTTP.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// Where it is.
    pub url: Uri,
    /// What goes along with every request; values that are secrets are marked sensitive.
    pub headers: HeaderMap,
    /// A file of certificates to trust besides the system's.
    pub ca: Option<std::path::PathBuf>,
    /// How long an HTTP+SSE stream may be silent before it counts as dead.
    pub read_timeout: Option<Duration>,
}

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How much of a refusal's body is read for its reason.
const MAX_REFUSAL: usize = 64 * 1024;

/// What a request says of itself: a name and a value, which must be fit for a header.
pub(crate) type Field<'a> = (&'a str, &'a [u8]);

/// A client for one server.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    pool: Pool,
    pub(crate) url: Uri,
    /// What every request says, as it is written.
    usual: Written,
    pub(crate) max_frame: usize,
    spool: Option<Arc<Spool>>,
    pub(crate) read_timeout: Option<Duration>,
}

impl Http {
    pub(crate) fn new(
        endpoint: &Endpoint,
        max_frame: usize,
        spool: Option<Spool>,
    ) -> Result<Self, ConnectError> {
        let secure = endpoint.url.scheme_str() == Some("https");
        let roots = if secure { trusted(endpoint)? } else { RootCertStore::empty() };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| ConnectError::Tls { cause: error.to_string() })?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let pool = Pool::new(connector);
        let spool = spool.filter(|it| it.from < max_frame).map(Arc::new);
        let (url, read_timeout) = (endpoint.url.clone(), endpoint.read_timeout);
        let usual = Written::of(&url, &endpoint.headers);
        Ok(Self { pool, url, usual, max_frame, spool, read_timeout })
    }

    /// Posts one message.
    pub(crate) async fn post(
        &self,
        url: &Uri,
        body: &[u8],
        fields: &[Field<'_>],
    ) -> Result<Response, RequestError> {
        let ours = [
            ("content-type", &b"application/json"[..]),
            ("accept", b"application/json, text/event-stream"),
        ];
        self.send("POST", url, [&ours, fields], body).await
    }

    /// Opens a stream of events.
    pub(crate) async fn events(
        &self,
        url: &Uri,
        fields: &[Field<'_>],
        asides: Asides,
    ) -> Result<Events, RequestError> {
        let ours = [("accept", &b"text/event-stream"[..])];
        let response = self.send("GET", url, [&ours, fields], b"").await?;
        if !response.status.is_success() {
            return Err(refusal(response).await);
        }
        if !is_event_stream(&response) {
            return Err(RequestError::Malformed { cause: "it sent no event stream".to_owned() });
        }
        Ok(self.read_events(response, asides))
    }

    /// Closes connections that are no longer used, for as long as it is polled.
    pub(crate) async fn keep_tidy(&self) -> Infallible {
        loop {
            tokio::time::sleep(IDLE).await;
            self.pool.sweep();
        }
    }

    pub(crate) async fn delete(&self, url: &Uri, fields: &[Field<'_>]) -> Result<(), RequestError> {
        self.send("DELETE", url, [fields, &[]], b"").await.map(drop)
    }

    /// The events of a response that is a stream.
    pub(crate) fn read_events(&self, response: Response, asides: Asides) -> Events {
        let reader = sse::Reader::new(self.max_frame);
        let (body, spool) = (response.body, self.spool.clone().map(|it| (it, self.max_frame)));
        let read_timeout = self.read_timeout;
        Events { body, reader, spool, asides, sifting: None, read_timeout }
    }

    /// The body of a response, if it is not too large. What is large is put aside where that is wanted.
    pub(crate) async fn read_body(
        &self,
        response: Response,
        aside: Aside,
    ) -> Result<Message, RequestError> {
        let mut body = response.body;
        let spool = self.spool.as_ref().filter(|_| aside == Aside::Wanted);
        let Some(spool) = spool else {
            return collect(body, self.max_frame).await.map(Message::from);
        };
        let begun = match gather(&mut body, spool.from).await? {
            Gathered::Whole(text) => return Ok(text.into()),
            Gathered::Begun(pieces) => pieces,
        };
        // Rare, and large: not a part of what every call carries along.
        Box::pin(async {
            let mut sifting = Sifting::new(spool, self.max_frame);
            for piece in begun {
                sifting = sifting.feed(piece).await?;
            }
            while let Some(piece) = next_piece(&mut body).await? {
                sifting = sifting.feed(piece).await?;
            }
            Ok(sifting.finish().await?)
        })
        .await
    }

    /// Sends a request. What is configured for the server wins over what we would say.
    pub(crate) async fn send(
        &self,
        method: &str,
        url: &Uri,
        fields: [&[Field<'_>]; 2],
        body: &[u8],
    ) -> Result<Response, RequestError> {
        let path = url.path_and_query().map_or("/", |it| it.as_str());
        let mut head = Vec::with_capacity(512 + self.usual.text.len() + body.len().min(16 * 1024));
        for word in [method, " ", path, " HTTP/1.1\r\n"] {
            head.extend_from_slice(word.as_bytes());
        }
        head.extend_from_slice(&self.usual.text);
        for &(name, value) in fields.into_iter().flatten() {
            if !self.usual.says(name) {
                push_field(&mut head, name, value);
            }
        }
        if method == "POST" {
            push_field(&mut head, "content-length", body.len().to_string().as_bytes());
        }
        head.extend_from_slice(b"\r\n");
        let told =
            |error: &(dyn Error + 'static)| format!("{}: {}", authority(url), root_cause(error));
        self.pool.request(url, head, body).await.map_err(|failed| match failed {
            Failed::Connect(error) => RequestError::Unreachable { cause: told(&*error) },
            Failed::Lost(error) => RequestError::Lost { cause: told(&error) },
        })
    }
}

/// What every request to a server says: to whom it goes, who we are, and what is configured.
#[derive(Debug, Clone)]
struct Written {
    text: Arc<[u8]>,
    /// What is configured, where that is something that we would say ourselves.
    ours: Arc<[HeaderName]>,
}

/// What we say ourselves unless it is configured otherwise.
const OURS: [&str; 6] =
    ["content-type", "accept", "mcp-protocol-version", "mcp-session-id", "mcp-method", "mcp-name"];

impl Written {
    fn of(url: &Uri, configured: &HeaderMap) -> Self {
        let mut text = Vec::new();
        for (name, value) in
            [("host", host(url)), ("user-agent", HeaderValue::from_static("toolcrib"))]
        {
            if !configured.contains_key(name) {
                push_field(&mut text, name, value.as_bytes());
            }
        }
        // How long a body is, and how it is sent, is not a matter of configuration.
        let framing = ["content-length", "transfer-encoding", "connection"];
        let told = configured.iter().filter(|(name, _)| !framing.contains(&name.as_str()));
        told.for_each(|(name, value)| push_field(&mut text, name.as_str(), value.as_bytes()));
        let ours = configured
            .keys()
            .filter(|it| OURS.contains(&it.as_str()) || it.as_str().starts_with("mcp-"));
        Self { text: text.into(), ours: ours.cloned().collect() }
    }

    fn says(&self, name: &str) -> bool {
        self.ours.iter().any(|it| it.as_str() == name)
    }
}

/// Adds a field. One that a header cannot hold would be something else, and is left out.
fn push_field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    if value.iter().all(|it| matches!(it, b'\t' | b' '..=b'~' | 0x80..)) {
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(b": ");
        head.extend_from_slice(value);
        head.extend_from_slice(b"\r\n");
    }
}

/// For whom a stream of events is read.
#[derive(Debug, Clone)]
pub(crate) enum Asides {
    /// For one request.
    Of(Aside),
    /// For all requests of a connection.
    All(Arc<Board>),
}

impl Asides {
    /// How large an event is of which parts are put aside; `most` is how large one may be that is kept.
    fn from(&self, spool: &Spool, most: usize) -> usize {
        match self {
            Self::Of(Aside::Wanted) => spool.from,
            // It is refused, and with it only the request that this stream is of.
            Self::Of(Aside::Unwanted) => usize::MAX,
            Self::All(board) if board.wants_aside() => spool.from,
            // Others would go with the stream, so it is brought to its end.
            Self::All(_) => most,
        }
    }
}

/// A stream of events from a server.
#[derive(Debug)]
pub(crate) struct Events {
    body: Body,
    reader: sse::Reader,
    /// Where large parts go, and how much of an event stays in memory.
    spool: Option<(Arc<Spool>, usize)>,
    asides: Asides,
    /// The event that is being sifted.
    sifting: Option<Sifting>,
    read_timeout: Option<Duration>,
}

impl Events {
    /// The next event, and the message that is its data; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<(sse::Event, Message)>, RequestError> {
        let malformed = |error: sse::TooLarge| RequestError::Malformed { cause: error.to_string() };
        loop {
            let spool = self.spool.as_ref();
            let large = spool.map_or(usize::MAX, |(spool, most)| self.asides.from(spool, *most));
            match self.reader.next_part(large).map_err(malformed)? {
                Some(sse::Part::Event(event)) => {
                    let message = match self.sifting.take() {
                        None => event.data.clone().into(),
                        Some(sifting) => Box::pin(sifting.end(event.data.clone())).await?,
                    };
                    return Ok(Some((event, message)));
                }
                Some(sse::Part::Data(piece)) => {
                    Box::pin(self.sift(piece)).await?;
                    continue;
                }
                None => {}
            }
            // Whatever comes, a mere sign of life too, shows that the stream is not dead.
            let next = match self.read_timeout {
                Some(limit) => tokio::time::timeout(limit, next_piece(&mut self.body)).await,
                None => Ok(next_piece(&mut self.body).await),
            };
            let Ok(next) = next else {
                let cause = "its event stream was silent for too long".to_owned();
                return Err(RequestError::Lost { cause });
            };
            match next? {
                None => return Ok(None),
                Some(bytes) => self.reader.feed(&bytes),
            }
        }
    }

    /// All that was wanted has come: its connection can be used again.
    pub(crate) fn leave(mut self) {
        self.body.leave();
    }

    /// Takes a piece of the data of an event that is large.
    async fn sift(&mut self, piece: Bytes) -> Result<(), RequestError> {
        let Some((spool, max_frame)) = &self.spool else { return Ok(()) };
        let sifting = self.sifting.take().unwrap_or_else(|| Sifting::new(spool, *max_frame));
        self.sifting = Some(sifting.feed(piece).await?);
        Ok(())
    }
}

impl From<SiftError> for RequestError {
    fn from(error: SiftError) -> Self {
        match error {
            SiftError::TooLarge { limit } => too_large(limit),
            SiftError::Dropped(_) => Self::Lost { cause: error.to_string() },
        }
    }
}

/// Reads the rest of a body that says nothing, so that the connection can be used again; but not for
/// long, and not much of it.
pub(crate) async fn drain(body: Body) {
    let rest = collect(body, MAX_REFUSAL);
    drop(tokio::time::timeout(Duration::from_millis(200), rest).await);
}

/// Whether the server answers with a stream of events.
pub(crate) fn is_event_stream(response: &Response) -> bool {
    response.fields.has_media_type("text/event-stream")
}

/// What a response that is not a success means.
pub(crate) async fn refusal(response: Response) -> RequestError {
    let status = response.status;
    let text = |name: &str| response.fields.get(name).map(plain);
    if status.is_redirection() {
        let to = text("location").and_then(|it| it.parse::<Uri>().ok());
        let to = to.map_or_else(
            || "nowhere".to_owned(),
            |it| if it.host().is_some() { authority(&it) } else { it.path().to_owned() },
        );
        return RequestError::Redirected { to };
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let oauth = text("www-authenticate").is_some_and(|it| it.contains("resource_metadata"));
        return RequestError::Unauthorized { status: status.as_u16(), oauth };
    }
    let retry_after = text("retry-after").and_then(|it| it.trim().parse().ok());
    let body = collect(response.body, MAX_REFUSAL).await.unwrap_or_default();
    RequestError::Http { status: status.as_u16(), retry_after, body }
}

fn too_large(limit: usize) -> RequestError {
    let cause = format!("its answer is larger than the limit of {limit} bytes");
    RequestError::Malformed { cause }
}

pub(crate) async fn collect(mut body: Body, limit: usize) -> Result<Bytes, RequestError> {
    match gather(&mut body, limit).await? {
        Gathered::Whole(text) => Ok(text),
        Gathered::Begun(_) => Err(too_large(limit)),
    }
}

/// A body, or as much of it as shows that it is larger than a limit.
enum Gathered {
    Whole(Bytes),
    Begun([Bytes; 2]),
}

async fn next_piece(body: &mut Body) -> Result<Option<Bytes>, RequestError> {
    body.piece().await.map_err(|error| lost(&error))
}

fn lost(error: &std::io::Error) -> RequestError {
    RequestError::Lost { cause: root_cause(error) }
}

async fn gather(body: &mut Body, limit: usize) -> Result<Gathered, RequestError> {
    if let Some(length) = body.length() {
        return match usize::try_from(length).ok().filter(|it| *it <= limit) {
            Some(length) => {
                body.exactly(length).await.map(Gathered::Whole).map_err(|error| lost(&error))
            }
            None => Ok(Gathered::Begun([Bytes::new(), Bytes::new()])),
        };
    }
    let mut first = Bytes::new();
    let mut rest = Vec::new();
    while let Some(data) = next_piece(body).await? {
        if limit < first.len().max(rest.len()) + data.len() {
            let begun = if rest.is_empty() { first } else { rest.into() };
            return Ok(Gathered::Begun([begun, data]));
        }
        // A small answer comes in one piece, and is not copied.
        if first.is_empty() && rest.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&data);
    }
    Ok(Gathered::Whole(if rest.is_empty() { first } else { rest.into() }))
}

/// The certificates to trust: the system's, and those of `ca`.
fn trusted(endpoint: &Endpoint) -> Result<RootCertStore, ConnectError> {
    let mut roots = RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if let Some(path) = &endpoint.ca {
        let fail = |cause: String| ConnectError::Ca { path: path.display().to_string(), cause };
        let text = fs::read(path).map_err(|error| fail(error.to_string()))?;
        let certificates = CertificateDer::pem_slice_iter(&text).collect::<Result<Vec<_>, _>>();
        let certificates = certificates.map_err(|error| fail(error.to_string()))?;
        if certificates.is_empty() {
            return Err(fail("no certificate in it".to_owned()));
        }
        roots.add_parsable_certificates(certificates);
    }
    Ok(roots)
}

/// `host:port` of an address: never its user, its path or its query, which may hold secrets.
pub(crate) fn authority(url: &Uri) -> String {
    let host = url.host().unwrap_or("?");
    match url.port_u16() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    }
}

/// What a request says of where it goes: never the user and the password that stand in an address.
fn host(url: &Uri) -> HeaderValue {
    let usual = match url.scheme_str() {
        Some("https") => 443,
        _ => 80,
    };
    let name = url.host().unwrap_or_default();
    let text = match url.port_u16().filter(|port| *port != usual) {
        Some(port) => Cow::Owned(format!("{name}:{port}")),
        None => Cow::Borrowed(name),
    };
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

/// The innermost cause, which says more than "client error (Connect)".
fn root_cause(error: &(dyn Error + 'static)) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    plain(innermost.to_string().as_bytes())
}
