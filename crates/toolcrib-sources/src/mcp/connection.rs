//! One server, kept alive.
//!
//! A connection is in one of four states: on its way, ready, failed, closed. One task moves it between
//! them: it connects, asks for the tools, notices death at once, and tries again after a pause that
//! grows. Callers read the state and the current peer; they never wait for that task's lock, since it
//! has none.

use std::{sync::Arc, time::Duration};

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until, timeout_at},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolcrib_catalogue::{CallContext, CallError, ClientError, Json, Outcome, SourceState, Tool};
use toolcrib_wire::{
    Ask, ConnectError, Era, Greeting, Inbox, Mirrored, Options, Peer, Reaper, RequestError, json,
    text::Masker,
};

use super::{
    backoff::Backoff,
    client::ClientOptions,
    config::ServerConfig,
    listing::{self, Listed},
    port::Heard,
};

/// A connection to one server of an `mcp.json`.
#[derive(Clone)]
pub struct Connection {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) config: ServerConfig,
    options: ClientOptions,
    masker: Masker,
    pub(super) state: watch::Sender<Versioned>,
    peer: ArcSwapOption<Peer>,
    pub(super) listed: ArcSwap<Listed>,
    /// Somebody wants the next try now.
    hurry: Notify,
    /// The server says that its tools have changed.
    changed: Arc<Changed>,
    stop: CancellationToken,
    tasks: TaskTracker,
    reaper: Arc<Reaper>,
}

#[derive(Debug, Clone)]
pub(super) struct Versioned {
    pub(super) state: SourceState,
    pub(super) version: u64,
}

/// No call takes longer than this, whatever anybody says.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Lists are not asked for more often than this, however often a server says that they changed.
const REFRESH: Duration = Duration::from_secs(1);

/// Hears of changed tools.
#[derive(Debug, Default)]
struct Changed(Notify);

impl Inbox for Changed {
    fn notified(&self, method: &str, _params: Option<&Bytes>) {
        let lists = ["tools", "prompts", "resources"];
        let list =
            method.strip_prefix("notifications/").and_then(|it| it.strip_suffix("/list_changed"));
        if list.is_some_and(|it| lists.contains(&it)) {
            self.0.notify_one();
        }
    }
}

impl Connection {
    /// Begins to connect.
    pub(crate) fn start(
        config: ServerConfig,
        options: ClientOptions,
        reaper: Arc<Reaper>,
        tasks: &TaskTracker,
    ) -> Self {
        let masker = config.masker();
        let state = Versioned { state: SourceState::Connecting, version: 0 };
        let shared = Arc::new(Shared {
            config,
            options,
            masker,
            state: watch::Sender::new(state),
            peer: ArcSwapOption::empty(),
            listed: ArcSwap::default(),
            hurry: Notify::new(),
            changed: Arc::default(),
            stop: CancellationToken::new(),
            tasks: tasks.clone(),
            reaper,
        });
        let task = Arc::clone(&shared);
        tasks.spawn(async move { task.run().await });
        Self { shared }
    }

    /// Its configuration.
    pub fn config(&self) -> &ServerConfig {
        &self.shared.config
    }

    /// What the server told of itself, while it is ready.
    pub fn greeting(&self) -> Option<Greeting> {
        self.shared.peer.load().as_ref().map(|it| it.greeting().clone())
    }

    /// Waits until the connection is no longer on its way, and says where it has come to.
    pub async fn settled(&self) -> SourceState {
        let mut state = self.shared.state.subscribe();
        let settled = state.wait_for(|it| it.state != SourceState::Connecting).await;
        settled.map_or(SourceState::Closed, |it| it.state.clone())
    }

    /// Tries again now, if the connection has failed.
    pub fn hurry(&self) {
        let failed = |it: &Versioned| matches!(it.state, SourceState::Failed { .. });
        self.shared.state.send_if_modified(|it| {
            let was_failed = failed(it);
            if was_failed {
                it.state = SourceState::Connecting;
                self.shared.hurry.notify_one();
            }
            was_failed
        });
    }

    /// Asks the server for its tools now.
    pub async fn refresh(&self) -> Result<Arc<[Arc<Tool>]>, CallError> {
        let deadline = self.shared.patience();
        let peer = self.shared.ready_peer(deadline).await?;
        let listed =
            listing::list(&peer, &self.shared.config.name, deadline, self.shared.options.lists)
                .await;
        let listed = listed.map_err(|error| self.shared.call_error(error))?;
        let tools = Arc::clone(&listed.tools);
        self.shared.store(listed);
        Ok(tools)
    }

    /// Ends the connection, and the server if it is a child process.
    pub fn close(&self) {
        self.shared.stop.cancel();
    }

    /// Calls a tool by the server's own name for it.
    pub async fn call(
        &self,
        tool: &str,
        arguments: Option<&Json>,
        context: CallContext,
    ) -> Result<Outcome, CallError> {
        let mut params = br#"{"name":"#.to_vec();
        let name = Json::of(&tool).unwrap_or_else(|_| Json::empty_object());
        params.extend_from_slice(name.as_bytes());
        if let Some(arguments) = arguments {
            params.extend_from_slice(br#","arguments":"#);
            params.extend_from_slice(arguments.as_bytes());
        }
        params.push(b'}');
        let repeatable = context.repeatable || self.shared.is_safe(tool);
        let context = CallContext { repeatable, ..context };
        let result =
            self.shared.request("tools/call", &Json::from_scanned(params.into()), &context).await?;
        Outcome::read(result).map_err(|fault| CallError::Malformed { cause: fault.to_string() })
    }
}

impl Shared {
    async fn run(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.keep_alive() => {}
        }
        if let Some(peer) = self.peer.swap(None) {
            peer.close();
        }
        self.enter(SourceState::Closed);
    }

    async fn keep_alive(&self) {
        let mut backoff = Backoff::default();
        let mut era = None;
        loop {
            let pause = match self.connect(era).await {
                Err(ConnectError::Ended { on_probe: true, .. }) if era.is_none() => {
                    era = Some(Era::Legacy);
                    continue;
                }
                Err(error) => {
                    era = None;
                    self.fail(&error.to_string(), error.hint());
                    backoff.next_pause()
                }
                Ok(peer) => {
                    era = Some(peer.greeting().revision.era());
                    let begin = Instant::now();
                    // Also where this is dropped half-way: a server must not outlive its connection.
                    let peer = Closing(peer);
                    let again = self.live(&peer.0).await;
                    backoff.worked_for(begin.elapsed());
                    // A session that ends as soon as it began will do so again.
                    let worked = Duration::from_secs(1) < begin.elapsed();
                    if again == Again::AtOnce && worked { continue } else { backoff.next_pause() }
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = self.hurry.notified() => {}
            }
        }
    }

    async fn connect(&self, era: Option<Era>) -> Result<Arc<Peer>, ConnectError> {
        let options = Options {
            name: self.config.name.clone(),
            identity: self.options.identity.clone(),
            handshake: self.config.handshake_timeout,
            max_frame: self.options.max_frame,
            era,
            inbox: Arc::clone(&self.changed) as Arc<dyn Inbox>,
            reaper: Arc::clone(&self.reaper),
            tasks: self.tasks.clone(),
            masker: self.masker.clone(),
        };
        let target = self.config.target(&self.options.inherited);
        let ended =
            |error: ClientError| ConnectError::Ended { cause: error.to_string(), on_probe: false };
        Peer::connect(&target.map_err(ended)?, &options).await.map(Arc::new)
    }

    /// From the first list of tools to the end of the connection.
    async fn live(&self, peer: &Arc<Peer>) -> Again {
        let deadline = self.patience();
        match listing::list(peer, &self.config.name, deadline, self.options.lists).await {
            Ok(listed) => self.store(listed),
            Err(error) => {
                let hint = ConnectError::from(error.clone()).hint();
                self.fail(&format!("it does not list its tools: {error}"), hint);
                return Again::Later;
            }
        }
        self.peer.store(Some(Arc::clone(peer)));
        self.enter(SourceState::Ready);
        let ending = tokio::select! {
            ending = peer.closed() => ending,
            () = self.follow_changes(peer) => peer.closed().await,
        };
        self.peer.store(None);
        if ending.stale {
            self.enter(SourceState::Connecting);
            return Again::AtOnce;
        }
        self.fail(&ending.cause, None);
        Again::Later
    }

    /// Asks for the tools again whenever they have changed. Never returns.
    async fn follow_changes(&self, peer: &Peer) {
        loop {
            self.changed.0.notified().await;
            let begin = Instant::now();
            let deadline = self.patience();
            match listing::list(peer, &self.config.name, deadline, self.options.lists).await {
                Ok(listed) => self.store(listed),
                Err(error) => {
                    let server = &self.config.name;
                    tracing::warn!(server, %error, "its tools changed, and it does not list them");
                    self.changed.0.notify_one();
                }
            }
            sleep_until(begin + REFRESH).await;
        }
    }

    /// Until when a list is waited for.
    pub(super) fn patience(&self) -> Instant {
        Instant::now() + self.config.handshake_timeout.min(LONGEST)
    }

    fn store(&self, listed: Listed) {
        self.listed.store(Arc::new(listed));
        self.state.send_modify(|it| it.version += 1);
    }

    fn fail(&self, cause: &str, hint: Option<String>) {
        let cause = self.masker.mask(cause).into_owned();
        tracing::warn!(server = self.config.name, "{cause}");
        self.enter(SourceState::Failed { cause, hint });
    }

    fn enter(&self, state: SourceState) {
        self.state.send_modify(|it| {
            it.state = state;
            it.version += 1;
        });
    }

    /// The current peer. While the connection is on its way this waits; where it has failed, it does
    /// not.
    pub(super) async fn ready_peer(&self, deadline: Instant) -> Result<Arc<Peer>, CallError> {
        if let Some(peer) = self.peer.load_full() {
            return Ok(peer);
        }
        let begin = Instant::now();
        let mut state = self.state.subscribe();
        loop {
            let now = state.borrow_and_update().state.clone();
            let server = &self.config.name;
            let cause = match now {
                SourceState::Ready | SourceState::Connecting => {
                    if let Some(peer) = self.peer.load_full() {
                        return Ok(peer);
                    }
                    match timeout_at(deadline, state.changed()).await {
                        Ok(Ok(())) => continue,
                        Ok(Err(_)) => format!("server `{server}` is gone"),
                        Err(_) => {
                            let after = begin.elapsed();
                            return Err(CallError::TimedOut { after, sent: false });
                        }
                    }
                }
                SourceState::Failed { cause, .. } => format!("server `{server}` is down: {cause}"),
                SourceState::Closed => format!("server `{server}` was shut down"),
            };
            return Err(CallError::Unavailable { cause });
        }
    }

    /// Sends a request, again where that is safe.
    pub(super) async fn request(
        &self,
        method: &str,
        params: &Json,
        context: &CallContext,
    ) -> Result<Json, CallError> {
        let begin = Instant::now();
        let policy = &self.options.calls;
        let retries = context.retries.unwrap_or(policy.retries);
        let one_attempt = context.attempt.unwrap_or(self.config.timeout).min(LONGEST);
        // What one attempt may take, all of them together may take too.
        let total = policy.total.max(one_attempt).min(LONGEST);
        let end = context.deadline.map_or(begin + total, Instant::from_std);
        let listener = context.listener.clone().map(|it| Arc::new(Heard(it)) as Arc<dyn Inbox>);
        let mut stale = false;
        for attempt in 0.. {
            let deadline = end.min(Instant::now() + one_attempt);
            let peer = self.ready_peer(deadline).await?;
            let listed = self.listed.load();
            let ask = Ask {
                method,
                params: Some(params.as_bytes()),
                deadline: Some(deadline),
                listener: listener.clone(),
                mirrored: wanted_in_headers(&listed, method, params),
            };
            let error = match peer.request(ask).await {
                Ok(result) => return complete(&self.config.name, result),
                // It was not even looked at: a new session, and once more.
                Err(RequestError::Stale) if !stale => {
                    stale = true;
                    self.forget(&peer);
                    continue;
                }
                Err(error) => self.call_error(error),
            };
            let safe = context.repeatable || !error.may_have_run();
            let pause = policy.backoff_base.saturating_mul(1 << attempt.min(16));
            let time = Instant::now() + pause < end;
            if retries <= attempt || !error.is_transient() || !safe || !time {
                return Err(error);
            }
            tracing::debug!(server = self.config.name, %error, attempt, "trying again");
            sleep(pause).await;
        }
        Err(CallError::Unavailable { cause: "no attempt was made".to_owned() })
    }

    /// Takes a peer whose session is gone out of use, if nobody has done so yet.
    fn forget(&self, peer: &Arc<Peer>) {
        let current = self.peer.compare_and_swap(peer, None);
        if current.as_ref().is_some_and(|it| Arc::ptr_eq(it, peer)) {
            self.enter(SourceState::Connecting);
        }
    }

    /// Whether we were told to believe that doing it twice does no harm.
    fn is_safe(&self, tool: &str) -> bool {
        self.config.trust_hints
            && self.listed.load().tools.iter().any(|it| {
                let hints = it.annotations;
                it.name == tool
                    && (hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true))
            })
    }

    fn call_error(&self, error: RequestError) -> CallError {
        let server = &self.config.name;
        let said = |error: &RequestError| {
            format!("server `{server}`: {}", self.masker.mask(&error.to_string()))
        };
        match error {
            RequestError::NotSent { .. }
            | RequestError::Unreachable { .. }
            | RequestError::Stale
            | RequestError::Http { status: 429 | 503, .. } => {
                CallError::Unavailable { cause: said(&error) }
            }
            RequestError::Lost { .. } | RequestError::Http { status: 500.., .. } => {
                CallError::Lost { cause: said(&error) }
            }
            RequestError::TimedOut { after, sent } => CallError::TimedOut { after, sent },
            RequestError::Rpc(rpc) => CallError::Rpc {
                code: rpc.code,
                message: self.masker.mask(&rpc.message).into_owned(),
                data: rpc.data.map(Json::from_scanned),
            },
            RequestError::Malformed { .. } | RequestError::Http { .. } => {
                CallError::Malformed { cause: said(&error) }
            }
            RequestError::Unauthorized { .. } | RequestError::Redirected { .. } => {
                let (server, cause) = (server.clone(), error.to_string());
                ClientError::Connect { server, cause }.into()
            }
        }
    }
}

/// A peer that is closed when nobody needs it any more.
struct Closing(Arc<Peer>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// A result that is one. A modern server may answer with a question instead, which only a caller who
/// said that it can answer questions should get.
fn complete(server: &str, result: Bytes) -> Result<Json, CallError> {
    let kind = result_type(&result);
    match kind.as_deref() {
        None | Some("complete") => Ok(Json::from_scanned(result)),
        Some(kind) => {
            let kind = kind.escape_debug();
            let cause =
                format!("server `{server}` answered `{kind}`, which nobody here can act on");
            Err(CallError::Malformed { cause })
        }
    }
}

/// The `resultType` of a result. Most have none, and are not read for that.
fn result_type(result: &Bytes) -> Option<String> {
    memchr::memmem::find(result, b"\"resultType\"")?;
    let at = json::member(result, "resultType")?;
    Some(serde_json::from_slice(&result[at]).unwrap_or_default())
}

/// What the server wants to see in headers of this call.
fn wanted_in_headers<'a>(listed: &'a Listed, method: &str, params: &Json) -> &'a [Mirrored] {
    if listed.mirrored.is_empty() || method != "tools/call" {
        return &[];
    }
    let name = json::member(params.as_bytes(), "name").map(|at| &params.as_bytes()[at]);
    let name: Option<String> = name.and_then(|it| serde_json::from_slice(it).ok());
    name.and_then(|it| listed.mirrored.get(&it)).map(Vec::as_slice).unwrap_or_default()
}

/// When to connect again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    AtOnce,
    Later,
}
