//! How a connection begins: finding out which era a server speaks, and shaking hands where that is
//! still done.
//!
//! A server is first asked `server/discover`. One that knows it is modern; whatever else it answers, it
//! is legacy and gets `initialize`. A server that stays silent may be slow to start or may swallow what
//! it does not know, so it gets both, and what it answers first counts.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::{
    board::{Answer, Board},
    client::{Aside, Greeting, Link, Options, Target},
    error::{ConnectError, RequestError},
    frame::{self, Id, push_string},
    http::{Endpoint, Http},
    legacy_sse::SseLink,
    modern::UNSUPPORTED_VERSION,
    revision::{Era, META_SERVER, Revision, with_meta},
    stdio::Pipe,
    streamable::{About, Streamable},
};

const DISCOVER: u64 = 1;
const INITIALIZE: u64 = 2;
const DISCOVER_AGAIN: u64 = 3;

/// How long a server may think about `server/discover` before it gets `initialize` too.
const PROBE: Duration = Duration::from_secs(4);

pub(crate) async fn connect(
    target: &Target,
    options: &Options,
) -> Result<(Link, Greeting), ConnectError> {
    match target {
        Target::Command(command) => {
            let pipe = Pipe::start(command, options)?;
            let greeting = match timeout(options.handshake, greet_pipe(&pipe, options)).await {
                Ok(greeting) => greeting?,
                Err(_) => {
                    let cause = pipe.last_words.after(&silence(options.handshake));
                    return Err(ConnectError::TimedOut { cause });
                }
            };
            Ok((Link::Pipe(pipe), greeting))
        }
        Target::Streamable(endpoint) => {
            within(options, Box::pin(streamable(endpoint, options))).await
        }
        Target::Sse(endpoint) => within(options, Box::pin(sse(endpoint, options))).await,
        Target::Url(endpoint) => within(options, Box::pin(either(endpoint, options))).await,
    }
}

async fn within(
    options: &Options,
    connecting: impl Future<Output = Result<(Link, Greeting), ConnectError>>,
) -> Result<(Link, Greeting), ConnectError> {
    match timeout(options.handshake, connecting).await {
        Ok(connected) => connected,
        Err(_) => Err(ConnectError::TimedOut { cause: silence(options.handshake) }),
    }
}

fn silence(after: Duration) -> String {
    format!("it was not ready within {} s", after.as_secs_f64())
}

/// Streamable HTTP, or else HTTP+SSE.
async fn either(endpoint: &Endpoint, options: &Options) -> Result<(Link, Greeting), ConnectError> {
    match streamable(endpoint, options).await {
        Err(ConnectError::Request(RequestError::Http { status: 400 | 404 | 405, .. })) => {
            sse(endpoint, options).await
        }
        connected => connected,
    }
}

/// What a server turned out to be.
enum Found<T> {
    Modern(Greeting),
    /// With whatever came along with its answer.
    Legacy(Greeting, T),
}

/// Asks a server `server/discover` and, where it does not know that or stays silent, `initialize`. While
/// both are open, a yes to either counts, and a no only once both are answered.
async fn greet<T>(
    discover: impl Future<Output = Answer>,
    initialize: impl Future<Output = (Answer, T)>,
    options: &Options,
) -> Result<Found<T>, ConnectError> {
    let probe = tokio::time::sleep(PROBE.min(options.handshake / 3));
    tokio::pin!(discover, initialize, probe);
    let probing = options.era != Some(Era::Legacy);
    let (mut discovering, mut initializing) = (probing, !probing);
    let mut refused: Option<ConnectError> = None;
    loop {
        tokio::select! {
            biased;
            answer = &mut discover, if discovering => {
                discovering = false;
                match answer {
                    Ok(answered) => {
                        if let Some(greeting) = modern(&answered.result) {
                            return Ok(Found::Modern(greeting));
                        }
                    }
                    Err(RequestError::Lost { cause } | RequestError::NotSent { cause }) => {
                        return Err(ConnectError::Ended { cause, on_probe: true });
                    }
                    Err(error) if is_final(&error) => return Err(error.into()),
                    // Whatever else it said: it is not modern.
                    Err(_) => {}
                }
                if let Some(refused) = refused.take() {
                    return Err(refused);
                }
                initializing = true;
            }
            (answer, extra) = &mut initialize, if initializing => {
                initializing = false;
                match legacy(answer, probing) {
                    Ok(greeting) => return Ok(Found::Legacy(greeting, extra)),
                    Err(error @ ConnectError::Request(RequestError::Rpc(_) | RequestError::Http { .. }))
                        if discovering =>
                    {
                        refused = Some(error);
                    }
                    Err(error) => return Err(error),
                }
            }
            () = &mut probe, if !initializing && refused.is_none() => initializing = true,
        }
    }
}

async fn greet_pipe(pipe: &Pipe, options: &Options) -> Result<Greeting, ConnectError> {
    let discover = twice(|id| pipe.request(id, discover_frame(id, options), Aside::Unwanted));
    let initialize =
        async { (pipe.request(INITIALIZE, initialize_frame(options), Aside::Unwanted).await, ()) };
    match greet(discover, initialize, options).await? {
        Found::Modern(greeting) => Ok(greeting),
        Found::Legacy(greeting, ()) => {
            pipe.send(initialized_frame()).await?;
            Ok(greeting)
        }
    }
}

async fn sse(endpoint: &Endpoint, options: &Options) -> Result<(Link, Greeting), ConnectError> {
    let http = Http::new(endpoint, options.max_frame, options.spool.clone())?;
    let link = SseLink::open(http, Arc::clone(&options.inbox), &options.tasks).await?;
    // A handshake that fails must not leave its stream behind.
    let unless_done = link.stop.clone().drop_guard();
    let answer = link.request(INITIALIZE, initialize_frame(options), Aside::Unwanted).await;
    let greeting = legacy(answer, false)?;
    link.send(initialized_frame()).await?;
    unless_done.disarm();
    Ok((Link::Sse(link), greeting))
}

async fn streamable(
    endpoint: &Endpoint,
    options: &Options,
) -> Result<(Link, Greeting), ConnectError> {
    let mut link = Streamable {
        http: Http::new(endpoint, options.max_frame, options.spool.clone())?,
        board: Arc::new(Board::default()),
        inbox: Arc::clone(&options.inbox),
        tasks: options.tasks.clone(),
        stop: CancellationToken::new(),
        revision: Some(Revision::V2026_07_28),
        session: None,
    };
    let old = Streamable { revision: None, ..link.clone() };
    let about = |method| About { method, ..About::default() };
    let asked = &link;
    let discover = twice(|id| async move {
        asked.request(id, about("server/discover"), discover_frame(id, options)).await.0
    });
    let initialize = old.request(INITIALIZE, about("initialize"), initialize_frame(options));
    let (greeting, session) = match greet(discover, initialize, options).await? {
        Found::Modern(greeting) => {
            link.keep_tidy();
            return Ok((Link::Streamable(link), greeting));
        }
        Found::Legacy(greeting, session) => (greeting, session),
    };
    link.session = session;
    // 2024-11-05 did not know the header, and a server of that time may stumble over it.
    link.revision = Some(greeting.revision).filter(|&it| it != Revision::V2024_11_05);
    link.send(about("notifications/initialized"), initialized_frame()).await?;
    link.keep_tidy();
    Ok((Link::Streamable(link), greeting))
}

/// Whether asking in another way would change nothing.
fn is_final(error: &RequestError) -> bool {
    matches!(
        error,
        RequestError::Unreachable { .. }
            | RequestError::Redirected { .. }
            | RequestError::Unauthorized { .. }
    )
}

/// Asks, and once more where a server refuses our revision and in the same breath says that it speaks it.
async fn twice<F: Future<Output = Answer>>(ask: impl Fn(u64) -> F) -> Answer {
    let answer = ask(DISCOVER).await;
    let Err(RequestError::Rpc(error)) = &answer else { return answer };
    let data: serde_json::Value =
        error.data.as_ref().and_then(|it| serde_json::from_slice(it).ok()).unwrap_or_default();
    let supported = data["supported"].as_array().into_iter().flatten();
    let ours = { supported }.any(|it| it == Revision::V2026_07_28.as_str());
    if error.code == UNSUPPORTED_VERSION && ours { ask(DISCOVER_AGAIN).await } else { answer }
}

fn discover_frame(id: u64, options: &Options) -> Bytes {
    let params = with_meta(None, &options.identity.modern_meta());
    frame::request(&Id::number(id), "server/discover", Some(&params))
}

fn initialize_frame(options: &Options) -> Bytes {
    let mut params = br#"{"protocolVersion":"#.to_vec();
    push_string(&mut params, &Revision::LAST_LEGACY.as_str());
    params.extend_from_slice(br#","capabilities":"#);
    params.extend_from_slice(&options.capabilities);
    params.extend_from_slice(br#","clientInfo":"#);
    params.extend_from_slice(&options.identity.json());
    params.push(b'}');
    frame::request(&Id::number(INITIALIZE), "initialize", Some(&params))
}

fn initialized_frame() -> Bytes {
    frame::notification("notifications/initialized", None)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovered<'a> {
    #[serde(default)]
    supported_versions: Vec<String>,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
    #[serde(borrow, rename = "_meta")]
    meta: Option<&'a RawValue>,
}

/// The greeting in a result of `server/discover`, if its server is modern.
fn modern(result: &Bytes) -> Option<Greeting> {
    let discovered: Discovered<'_> = serde_json::from_slice(result).ok()?;
    let versions = &discovered.supported_versions;
    let revision = versions.iter().filter_map(|it| Revision::parse(it)).max()?;
    if revision.era() == Era::Legacy {
        return None;
    }
    let meta: Option<serde_json::Value> =
        discovered.meta.and_then(|it| serde_json::from_str(it.get()).ok());
    let info = meta.and_then(|it| Some(Implementation::read(it.get(META_SERVER)?)));
    Some(greeting(
        revision,
        info.unwrap_or_default(),
        discovered.instructions,
        discovered.capabilities,
        result,
    ))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Initialized<'a> {
    protocol_version: String,
    #[serde(borrow)]
    capabilities: Option<&'a RawValue>,
    #[serde(borrow)]
    server_info: Option<&'a RawValue>,
    #[serde(borrow)]
    instructions: Option<&'a RawValue>,
}

#[derive(Default)]
struct Implementation {
    name: String,
    version: String,
}

impl Implementation {
    /// Reads what a server says of itself; what is not text counts as unsaid.
    fn read(raw: &serde_json::Value) -> Self {
        let text = |key: &str| raw[key].as_str().unwrap_or_default().to_owned();
        Self { name: text("name"), version: text("version") }
    }
}

/// The greeting in an answer to `initialize`. A server that was `probed` and has ended may have died of
/// that.
fn legacy(answer: Answer, probed: bool) -> Result<Greeting, ConnectError> {
    let result = match answer {
        Ok(answered) => answered.result,
        Err(RequestError::Lost { cause } | RequestError::NotSent { cause }) => {
            return Err(ConnectError::Ended { cause, on_probe: probed });
        }
        Err(error) => return Err(error.into()),
    };
    let said: Initialized<'_> = serde_json::from_slice(&result).map_err(|error| {
        RequestError::Malformed { cause: format!("its answer to `initialize` is none: {error}") }
    })?;
    let revision = Revision::parse(&said.protocol_version).filter(|it| it.era() == Era::Legacy);
    let Some(revision) = revision else {
        return Err(ConnectError::Version { offered: said.protocol_version });
    };
    let info = said.server_info.and_then(|it| serde_json::from_str(it.get()).ok());
    let info = info.map(|it| Implementation::read(&it)).unwrap_or_default();
    Ok(greeting(revision, info, said.instructions, said.capabilities, &result))
}

fn greeting(
    revision: Revision,
    info: Implementation,
    instructions: Option<&RawValue>,
    capabilities: Option<&RawValue>,
    result: &Bytes,
) -> Greeting {
    let instructions = instructions.and_then(|it| serde_json::from_str(it.get()).ok());
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct Capabilities {
        tools: List,
        prompts: List,
        resources: List,
    }
    #[derive(Deserialize, Default)]
    #[serde(default, rename_all = "camelCase")]
    struct List {
        list_changed: bool,
    }
    let known: Option<Capabilities> =
        capabilities.and_then(|it| serde_json::from_str(it.get()).ok());
    let Capabilities { tools, prompts, resources } = known.unwrap_or_default();
    let raw = capabilities.map(|it| result.slice_ref(it.get().as_bytes()));
    Greeting {
        revision,
        server_name: info.name,
        server_version: info.version,
        instructions,
        capabilities: raw.unwrap_or_else(|| Bytes::from_static(b"{}")),
        tools_change: tools.list_changed,
        lists_change: tools.list_changed || prompts.list_changed || resources.list_changed,
    }
}
