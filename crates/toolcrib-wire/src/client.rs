//! A connection to a server, with everything about transports and eras settled.

use std::{
    borrow::Cow,
    fmt,
    pin::{Pin, pin},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    board::{Answer, Board, Ending, Listener},
    error::{ConnectError, RequestError},
    frame::{self, Id, METHOD_NOT_FOUND, RpcError},
    handshake,
    http::Endpoint,
    json::{self, Rare},
    legacy_sse::SseLink,
    mirror::{self, Mirrored},
    reaper::Reaper,
    revision::{Era, Identity, Revision, with_meta},
    spool::{Spool, Spooled},
    stdio::{Pipe, ServerCommand},
    streamable::{About, Streamable},
    text::Masker,
};

/// Where a server is.
#[derive(Debug, Clone)]
pub enum Target {
    /// A program to start.
    Command(ServerCommand),
    /// An address that speaks streamable HTTP.
    Streamable(Endpoint),
    /// An address that speaks HTTP+SSE.
    Sse(Endpoint),
    /// An address that speaks one of the two.
    Url(Endpoint),
}

/// How to connect.
#[derive(Debug, Clone)]
pub struct Options {
    /// What the server is called, for the log.
    pub name: String,
    /// Who we say that we are.
    pub identity: Identity,
    /// What we say in a handshake that we can do: an object.
    pub capabilities: Bytes,
    /// How long it may take until the server is ready.
    pub handshake: Duration,
    /// The largest message that is taken.
    pub max_frame: usize,
    /// What the server is known to speak, so that nobody has to ask again.
    pub era: Option<Era>,
    /// Who hears what the server says of its own accord.
    pub inbox: Arc<dyn Inbox>,
    /// Who ends child processes if we cannot.
    pub reaper: Arc<Reaper>,
    /// What shutdown waits for.
    pub tasks: TaskTracker,
    /// What must not stand in the log or in an error.
    pub masker: Masker,
    /// Where large parts of results are put; nowhere, where nothing is said.
    pub spool: Option<Spool>,
}

/// Hears what a server says, of its own accord or while it answers a request. Must not block.
pub trait Inbox: Send + Sync + fmt::Debug {
    /// A notification came.
    fn notified(&self, method: &str, params: Option<&Bytes>);

    /// The server asks something. Nothing where nobody here can answer that.
    fn asked(&self, _method: &str, _params: Option<&Bytes>) -> Option<Reply> {
        None
    }

    /// The server answered what nobody waits for, or asked what nobody can be asked.
    fn strayed(&self) {}
}

/// The answer to a question of a server, when it comes. Dropped where nobody waits for it any more.
pub type Reply = Pin<Box<dyn Future<Output = Result<Bytes, RpcError>> + Send>>;

/// A request.
#[derive(Debug, Clone, Default)]
pub struct Ask<'a> {
    /// What is asked.
    pub method: &'a str,
    /// With what: a scanned object.
    pub params: Option<&'a [u8]>,
    /// When an answer comes too late.
    pub deadline: Option<Instant>,
    /// Who hears how it goes on, and answers what the server asks meanwhile.
    pub listener: Option<Arc<dyn Inbox>>,
    /// Whose request this is, if not our own: where a server does not say which request a question
    /// belongs to, it can only be answered while all requests are of one client.
    pub client: Option<u64>,
    /// What `_meta` says to a modern server besides what is there already, such as what the client can do.
    pub meta: &'a [(&'static str, Bytes)],
    /// Arguments of a call that a modern HTTP server wants in headers too.
    pub mirrored: &'a [Mirrored],
    /// Whether large parts of the answer are to be put aside, where there is a place for them.
    pub aside: Aside,
}

/// Whether somebody deals with what is put aside of a large answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Aside {
    /// Then it goes into a file while it comes.
    Wanted,
    /// Then it is kept whole, in memory.
    #[default]
    Unwanted,
}

/// The answer to a request.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The result.
    pub result: Bytes,
    /// What was put aside of it; in the result there stands `""` or `null` in its place.
    pub aside: Option<Arc<Spooled>>,
}

impl From<Bytes> for Answered {
    fn from(result: Bytes) -> Self {
        Self { result, aside: None }
    }
}

/// What a server told of itself.
#[derive(Debug, Clone)]
pub struct Greeting {
    /// What we agreed on.
    pub revision: Revision,
    /// What it calls itself. For display only: it proves nothing.
    pub server_name: String,
    /// Its version.
    pub server_version: String,
    /// What it wants a model to know.
    pub instructions: Option<String>,
    /// Its capabilities, as it sent them.
    pub capabilities: Bytes,
    /// Whether it tells when its tools change.
    pub tools_change: bool,
    /// Whether it tells when some list of its changes.
    pub lists_change: bool,
}

/// A connection to a server.
#[derive(Debug, Clone)]
pub struct Peer {
    core: Arc<Core>,
}

#[derive(Debug)]
struct Core {
    link: Link,
    greeting: Greeting,
    /// What every request carries in `_meta`.
    meta: Vec<(&'static str, Bytes)>,
    next_id: AtomicU64,
    stop: CancellationToken,
    tasks: TaskTracker,
}

#[derive(Debug)]
pub(crate) enum Link {
    Pipe(Pipe),
    Streamable(Streamable),
    Sse(SseLink),
}

/// Ids below this one are the handshake's.
const FIRST_ID: u64 = 10;

impl Peer {
    /// Connects to a server and finds out what it speaks.
    pub async fn connect(target: &Target, options: &Options) -> Result<Self, ConnectError> {
        let (link, greeting) = handshake::connect(target, options).await?;
        let meta = match greeting.revision.era() {
            Era::Modern => options.identity.modern_meta(),
            Era::Legacy => Vec::new(),
        };
        let core = Core {
            link,
            greeting,
            meta,
            next_id: AtomicU64::new(FIRST_ID),
            stop: CancellationToken::new(),
            tasks: options.tasks.clone(),
        };
        let peer = Self { core: Arc::new(core) };
        peer.listen(&options.inbox);
        Ok(peer)
    }

    /// What the server told of itself.
    pub fn greeting(&self) -> &Greeting {
        &self.core.greeting
    }

    /// Sends a request and waits for its result. If the answer comes too late, or the future is
    /// dropped, the server is told that nobody waits any more.
    ///
    /// Progress that the caller asked for with a token goes to `listener`, under the caller's token;
    /// towards the server it has one of our own, since two callers may choose the same.
    pub async fn request(&self, ask: Ask<'_>) -> Result<Answered, RequestError> {
        let Ask { method, params, deadline, listener, client, meta, mirrored, aside } = ask;
        let begin = Instant::now();
        let id = self.core.next_id.fetch_add(1, Ordering::Relaxed);
        let mut unanswered = Unanswered { core: &self.core, id, sent: false, done: false };
        let own_token = unanswered.listen(params, listener, client);
        let params = own_token.as_deref().or(params);
        let answered = {
            // Here, and not where it is waited for: whoever takes it over would hold it twice.
            let answer = pin!(unanswered.ask(method, params, meta, mirrored, aside));
            match deadline {
                None => Some(answer.await),
                Some(deadline) => self.within(id, deadline, begin, answer).await,
            }
        };
        unanswered.done = answered.is_some();
        answered.unwrap_or_else(|| {
            // What it was given; not what a busy machine made of that.
            let given = deadline.map(|it| it.saturating_duration_since(begin));
            let after = given.unwrap_or_else(|| begin.elapsed());
            Err(RequestError::TimedOut { after, sent: unanswered.sent })
        })
    }

    /// Waits for an answer until it comes too late. While the server itself waits for somebody's answer,
    /// the clock stands still: people take longer than machines.
    async fn within(
        &self,
        id: u64,
        deadline: Instant,
        begin: Instant,
        mut answer: Pin<&mut impl Future<Output = Answer>>,
    ) -> Option<Answer> {
        let period = deadline.saturating_duration_since(begin).max(Duration::from_millis(1));
        let mut deadline = deadline;
        loop {
            match tokio::time::timeout_at(deadline, answer.as_mut()).await {
                Ok(answer) => return Some(answer),
                Err(_) if self.core.link.board().is_asked(id) => deadline += period,
                Err(_) => return None,
            }
        }
    }

    /// Tells the server something, if it can be told just now.
    pub fn tell(&self, method: &'static str, params: Option<&[u8]>) {
        let note = frame::notification(method, params);
        match &self.core.link {
            Link::Pipe(link) => link.try_send(note),
            Link::Sse(link) => link.send_later(note),
            Link::Streamable(link) => link.send_later(method, note),
        }
    }

    /// Whether the server may want arguments in headers: a modern one over HTTP.
    pub fn mirrors(&self) -> bool {
        !self.core.meta.is_empty() && matches!(self.core.link, Link::Streamable(_))
    }

    /// Resolves when the connection is gone.
    pub async fn closed(&self) -> Ending {
        self.core.link.board().closed().await
    }

    /// Ends the connection, and the server if it is a child process.
    pub fn close(&self) {
        self.core.close();
    }

    /// Asks a modern server to tell us when its tools change. A legacy one does so unasked.
    fn listen(&self, inbox: &Arc<dyn Inbox>) {
        let core = &self.core;
        if core.greeting.revision.era() == Era::Legacy {
            if let Link::Streamable(link) = &core.link {
                link.listen();
            }
            return;
        }
        if !core.greeting.lists_change {
            return;
        }
        let (weak, stop, inbox) = (Arc::downgrade(core), core.stop.clone(), Arc::clone(inbox));
        core.tasks.spawn(async move {
            let listening = async {
                while let Some(core) = weak.upgrade() {
                    if core.link.board().ending().is_some() {
                        return;
                    }
                    let params = br#"{"notifications":{"toolsListChanged":true,"promptsListChanged":true,"resourcesListChanged":true}}"#;
                    let peer = Self { core };
                    let ended = peer
                        .request(Ask {
                            method: "subscriptions/listen",
                            params: Some(params),
                            ..Ask::default()
                        })
                        .await;
                    match ended {
                        Err(RequestError::Rpc(error)) if error.code == METHOD_NOT_FOUND => return,
                        Err(RequestError::Http { status: 400..=405 | 501, .. }) => return,
                        _ => {}
                    }
                    drop(peer);
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    // Something may have been said while nobody listened.
                    inbox.notified("notifications/tools/list_changed", None);
                }
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = listening => {}
            }
        });
    }
}

impl Core {
    fn close(&self) {
        if self.stop.is_cancelled() {
            return;
        }
        self.stop.cancel();
        match &self.link {
            Link::Pipe(link) => link.close(),
            Link::Streamable(link) => link.close(),
            Link::Sse(link) => link.close(),
        }
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        self.close();
    }
}

impl Link {
    pub(crate) fn board(&self) -> &Board {
        match self {
            Self::Pipe(link) => &link.board,
            Self::Streamable(link) => &link.board,
            Self::Sse(link) => &link.board,
        }
    }
}

/// A request without an answer; if it goes away like that, the server hears of it.
struct Unanswered<'a> {
    core: &'a Core,
    id: u64,
    sent: bool,
    done: bool,
}

impl Unanswered<'_> {
    /// Notes who listens, and puts our own token for progress in the place of the caller's, if there
    /// is one.
    fn listen(
        &self,
        params: Option<&[u8]>,
        inbox: Option<Arc<dyn Inbox>>,
        client: Option<u64>,
    ) -> Option<Bytes> {
        if inbox.is_none() && client.is_none() {
            return None;
        }
        let at = params.filter(|_| inbox.is_some()).and_then(|it| PROGRESS_TOKEN.in_meta(it));
        let token = at.clone().zip(params).map(|(at, it)| Bytes::copy_from_slice(&it[at]));
        self.core.link.board().listen(self.id, Listener { token, inbox, client });
        let (params, at) = (params?, at?);
        let own = self.id.to_string();
        Some([&params[..at.start], own.as_bytes(), &params[at.end..]].concat().into())
    }

    async fn ask(
        &mut self,
        method: &str,
        params: Option<&[u8]>,
        meta: &[(&'static str, Bytes)],
        mirrored: &[Mirrored],
        aside: Aside,
    ) -> Answer {
        // What is said first stays: of the request, of its client, of us.
        let ours = self.core.meta.as_slice();
        let said = (!ours.is_empty() && !meta.is_empty()).then(|| with_meta(params, meta));
        let params = said.as_deref().or(params);
        let all = (!ours.is_empty()).then(|| with_meta(params, ours));
        let params = all.as_deref().or(params);
        let frame = frame::request(&Id::number(self.id), method, params);
        self.sent = true;
        match &self.core.link {
            Link::Pipe(link) => link.request(self.id, frame, aside).await,
            Link::Sse(link) => link.request(self.id, frame, aside).await,
            Link::Streamable(link) => {
                let modern = !self.core.meta.is_empty();
                let name = params.filter(|_| modern).and_then(|it| name_of(method, it));
                let arguments = params.filter(|_| !mirrored.is_empty()).and_then(arguments_of);
                let mirrored = arguments.map(|it| mirror::headers(mirrored, &it));
                let mirrored = mirrored.as_deref().unwrap_or_default();
                let about = About { method, name: name.as_deref(), mirrored, aside };
                link.request(self.id, about, frame).await.0
            }
        }
    }
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        let left = self.sent && !self.done;
        // On a stream that all share, the server may still speak of what nobody waits for.
        if left && !matches!(self.core.link, Link::Streamable(_)) {
            self.core.link.board().leave(self.id);
        }
        self.core.link.board().forget(self.id);
        if !left {
            return;
        }
        let params = format!(r#"{{"requestId":{},"reason":"nobody waits any more"}}"#, self.id);
        let method = "notifications/cancelled";
        let note = frame::notification(method, Some(params.as_bytes()));
        match &self.core.link {
            Link::Pipe(link) => link.try_send(note),
            Link::Sse(link) => link.send_later(note),
            // In the modern era, closing the stream says it.
            Link::Streamable(_) if !self.core.meta.is_empty() => {}
            Link::Streamable(link) => link.send_later(method, note),
        }
    }
}

/// The token for progress in the `_meta` of some params.
static PROGRESS_TOKEN: LazyLock<Rare> = LazyLock::new(|| Rare::new("progressToken"));

/// The arguments of a call.
fn arguments_of(params: &[u8]) -> Option<serde_json::Value> {
    serde_json::from_slice(&params[json::member(params, "arguments")?]).ok()
}

/// What a modern request says of itself in `Mcp-Name`.
fn name_of<'a>(method: &str, params: &'a [u8]) -> Option<Cow<'a, str>> {
    let key = match method {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        _ => return None,
    };
    json::string(&params[json::member(params, key)?])
}
