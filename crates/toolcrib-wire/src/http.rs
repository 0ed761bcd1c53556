//! The HTTP client under both HTTP transports: one pool of connections per server, no redirects, every
//! body bounded.

use std::{borrow::Cow, convert::Infallible, error::Error, fs, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri,
    header::{ACCEPT, CONTENT_TYPE, HOST, LOCATION, RETRY_AFTER, USER_AGENT, WWW_AUTHENTICATE},
};
use http_body_util::{BodyExt, Full};
use hyper::body::Body;
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::connect::HttpConnector;
use rustls::{
    ClientConfig, RootCertStore,
    pki_types::{CertificateDer, pem::PemObject},
};

use crate::{
    error::{ConnectError, RequestError},
    pool::{Driven, Failed, IDLE, Pool},
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

/// A client for one server.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    pool: Pool,
    pub(crate) url: Uri,
    host: HeaderValue,
    headers: HeaderMap,
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
        let (url, headers) = (endpoint.url.clone(), endpoint.headers.clone());
        let (host, read_timeout) = (host(&url), endpoint.read_timeout);
        Ok(Self { pool, url, host, headers, max_frame, spool, read_timeout })
    }

    /// Posts one message.
    pub(crate) async fn post(
        &self,
        url: &Uri,
        body: Bytes,
        mut headers: HeaderMap,
    ) -> Result<Response<Driven>, RequestError> {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let accept = HeaderValue::from_static("application/json, text/event-stream");
        headers.insert(ACCEPT, accept);
        self.send(Method::POST, url, headers, body).await
    }

    /// Opens a stream of events.
    pub(crate) async fn events(
        &self,
        url: &Uri,
        mut headers: HeaderMap,
    ) -> Result<Events, RequestError> {
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let response = self.send(Method::GET, url, headers, Bytes::new()).await?;
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        if !is_event_stream(&response) {
            return Err(RequestError::Malformed { cause: "it sent no event stream".to_owned() });
        }
        Ok(self.read_events(response))
    }

    /// Closes connections that are no longer used, for as long as it is polled.
    pub(crate) async fn keep_tidy(&self) -> Infallible {
        loop {
            tokio::time::sleep(IDLE).await;
            self.pool.sweep();
        }
    }

    pub(crate) async fn delete(&self, url: &Uri, extra: HeaderMap) -> Result<(), RequestError> {
        self.send(Method::DELETE, url, extra, Bytes::new()).await.map(drop)
    }

    /// The events of a response that is a stream.
    pub(crate) fn read_events(&self, response: Response<Driven>) -> Events {
        let reader = sse::Reader::new(self.max_frame);
        let (body, spool) =
            (response.into_body(), self.spool.clone().map(|it| (it, self.max_frame)));
        Events { body, reader, spool, sifting: None, read_timeout: self.read_timeout }
    }

    /// The body of a response, if it is not too large.
    pub(crate) async fn read_body(
        &self,
        response: Response<Driven>,
    ) -> Result<Message, RequestError> {
        let mut body = response.into_body();
        let Some(spool) = &self.spool else {
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

    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Uri,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response<Driven>, RequestError> {
        // Nearly always the server's own address.
        let ours = std::ptr::eq(url, &self.url);
        headers.insert(HOST, if ours { self.host.clone() } else { host(url) });
        headers.insert(USER_AGENT, HeaderValue::from_static("toolcrib"));
        for (name, value) in &self.headers {
            headers.insert(name, value.clone());
        }
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = url.path_and_query().cloned().map_or_else(Uri::default, Uri::from);
        *request.headers_mut() = headers;
        let told =
            |error: &(dyn Error + 'static)| format!("{}: {}", authority(url), root_cause(error));
        self.pool.request(url, request).await.map_err(|failed| match failed {
            Failed::Connect(error) => RequestError::Unreachable { cause: told(&*error) },
            Failed::Lost(error) => RequestError::Lost { cause: told(&error) },
        })
    }
}

/// A stream of events from a server.
#[derive(Debug)]
pub(crate) struct Events {
    body: Driven,
    reader: sse::Reader,
    /// Where large parts go, and how much of an event stays in memory.
    spool: Option<(Arc<Spool>, usize)>,
    /// The event that is being sifted.
    sifting: Option<Sifting>,
    read_timeout: Option<Duration>,
}

impl Events {
    /// The next event, and the message that is its data; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Result<Option<(sse::Event, Message)>, RequestError> {
        let malformed = |error: sse::TooLarge| RequestError::Malformed { cause: error.to_string() };
        let large = self.spool.as_ref().map_or(usize::MAX, |(spool, _)| spool.from);
        loop {
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
                Some(limit) => tokio::time::timeout(limit, self.body.frame()).await,
                None => Ok(self.body.frame().await),
            };
            let Ok(next) = next else {
                let cause = "its event stream was silent for too long".to_owned();
                return Err(RequestError::Lost { cause });
            };
            match next {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    if let Some(bytes) = frame.data_ref() {
                        self.reader.feed(bytes);
                    }
                }
                Some(Err(error)) => {
                    return Err(RequestError::Lost { cause: root_cause(&error) });
                }
            }
        }
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
pub(crate) async fn drain(body: Driven) {
    let rest = collect(body, MAX_REFUSAL);
    drop(tokio::time::timeout(Duration::from_millis(200), rest).await);
}

/// Whether the server answers with a stream of events.
pub(crate) fn is_event_stream(response: &Response<Driven>) -> bool {
    has_media_type(response, "text/event-stream")
}

pub(crate) fn has_media_type(response: &Response<Driven>, expected: &str) -> bool {
    let value = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let media_type = value.and_then(|it| it.split(';').next()).unwrap_or_default();
    media_type.trim().eq_ignore_ascii_case(expected)
}

/// What a response that is not a success means.
pub(crate) async fn refusal(response: Response<Driven>) -> RequestError {
    let status = response.status();
    let text = |name: HeaderName| {
        let value = response.headers().get(name)?;
        Some(plain(value.as_bytes()))
    };
    if status.is_redirection() {
        let to = text(LOCATION).and_then(|it| it.parse::<Uri>().ok());
        let to = to.map_or_else(
            || "nowhere".to_owned(),
            |it| if it.host().is_some() { authority(&it) } else { it.path().to_owned() },
        );
        return RequestError::Redirected { to };
    }
    if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
        let oauth = text(WWW_AUTHENTICATE).is_some_and(|it| it.contains("resource_metadata"));
        return RequestError::Unauthorized { status: status.as_u16(), oauth };
    }
    let retry_after = text(RETRY_AFTER).and_then(|it| it.trim().parse().ok());
    let body = collect(response.into_body(), MAX_REFUSAL).await.unwrap_or_default();
    RequestError::Http { status: status.as_u16(), retry_after, body }
}

fn too_large(limit: usize) -> RequestError {
    let cause = format!("its answer is larger than the limit of {limit} bytes");
    RequestError::Malformed { cause }
}

pub(crate) async fn collect(mut body: Driven, limit: usize) -> Result<Bytes, RequestError> {
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

async fn next_piece(body: &mut Driven) -> Result<Option<Bytes>, RequestError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| RequestError::Lost { cause: root_cause(&error) })?;
        if let Ok(data) = frame.into_data() {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

async fn gather(body: &mut Driven, limit: usize) -> Result<Gathered, RequestError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if limit < announced {
        return Ok(Gathered::Begun([Bytes::new(), Bytes::new()]));
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
            rest.reserve(announced.max(first.len() + data.len()));
            rest.extend_from_slice(&first);
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
