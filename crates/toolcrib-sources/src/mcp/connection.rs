//! One server, kept alive.
//!
//! A connection is in one of four states: on its way, ready, failed, closed. One task moves it between
//! them: it connects, asks for the tools, notices death at once, and tries again after a pause that
//! grows. Callers read the state and the current peer; they never wait for that task's lock, since it
//! has none.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, sleep, sleep_until},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolcrib_catalogue::{
    CallContext, CallError, ClientError, Json, Listener, Outcome, SourceState, Tool, Visitor,
};
use toolcrib_wire::{
    ConnectError, Era, Greeting, Inbox, Options, Peer, Reaper, Reply, modern::unfinished,
    text::Masker,
};

use super::{
    backoff::Backoff,
    bar::Bar,
    calling::LONGEST,
    client::ClientOptions,
    config::ServerConfig,
    listing::{self, Listed},
    port::Heard,
    wishes::Wishes,
};

/// A connection to one server of an `mcp.json`.
#[derive(Clone)]
pub struct Connection {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) config: ServerConfig,
    pub(super) options: ClientOptions,
    pub(super) masker: Masker,
    pub(super) state: watch::Sender<Versioned>,
    pub(super) peer: ArcSwapOption<Peer>,
    pub(super) listed: ArcSwap<Listed>,
    /// Whether that is what the server said, now or the last time.
    pub(super) has_listed: AtomicBool,
    /// Somebody wants the next try now.
    hurry: Notify,
    /// Whether it may be started at all.
    pub(super) bar: Arc<Bar>,
    /// Counts how often somebody wanted the server started anew.
    pub(super) anew: watch::Sender<u64>,
    pub(super) own: Arc<Own>,
    pub(super) wishes: Wishes,
    /// How often it came to be ready, and how often it then ended by itself.
    pub(super) connects: AtomicU64,
    pub(super) losses: AtomicU64,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
    reaper: Arc<Reaper>,
}

#[derive(Debug, Clone)]
pub(super) struct Versioned {
    pub(super) state: SourceState,
    pub(super) version: u64,
}

/// Lists are not asked for more often than this, however often a server says that they changed.
const REFRESH: Duration = Duration::from_secs(1);

/// Hears what the server says of its own accord.
#[derive(Debug, Default)]
pub(super) struct Own {
    /// Some list has changed.
    changed: Notify,
    /// Who hears all else.
    pub(super) listener: Mutex<Option<Arc<dyn Listener>>>,
    /// How often it answered what nobody waited for, or asked what nobody could be asked.
    pub(super) strays: AtomicU64,
}

impl Own {
    fn heard(&self) -> Option<Heard> {
        self.listener.lock().clone().map(Heard)
    }
}

impl Inbox for Own {
    fn notified(&self, method: &str, params: Option<&Bytes>) {
        let lists = ["tools", "prompts", "resources"];
        let list =
            method.strip_prefix("notifications/").and_then(|it| it.strip_suffix("/list_changed"));
        if list.is_some_and(|it| lists.contains(&it)) {
            self.changed.notify_one();
        } else if let Some(heard) = self.heard() {
            heard.notified(method, params);
        }
    }

    fn asked(&self, method: &str, params: Option<&Bytes>) -> Option<Reply> {
        self.heard()?.asked(method, params)
    }

    fn strayed(&self) {
        self.strays.fetch_add(1, Ordering::Relaxed);
    }
}

impl Connection {
    /// Begins to connect. What is known of the server is shown until it has listed anew.
    pub(crate) fn start(
        config: ServerConfig,
        options: ClientOptions,
        reaper: Arc<Reaper>,
        tasks: &TaskTracker,
        known: Option<Listed>,
        bar: Arc<Bar>,
    ) -> Self {
        let masker = config.masker();
        let state = Versioned { state: SourceState::Connecting, version: 0 };
        let shared = Arc::new(Shared {
            config,
            options,
            masker,
            state: watch::Sender::new(state),
            peer: ArcSwapOption::empty(),
            has_listed: AtomicBool::new(known.is_some()),
            listed: ArcSwap::from_pointee(known.unwrap_or_default()),
            hurry: Notify::new(),
            bar,
            anew: watch::Sender::new(0),
            own: Arc::default(),
            wishes: Wishes::default(),
            connects: AtomicU64::new(0),
            losses: AtomicU64::new(0),
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

    /// Ends the server, if it runs, and starts it anew; calls that it has not answered fail.
    pub fn restart(&self) {
        // First, so that it never says so of a server that is up again already.
        self.shared.state.send_if_modified(|it| {
            let open = it.state != SourceState::Closed;
            if open {
                (it.state, it.version) = (SourceState::Connecting, it.version + 1);
            }
            open
        });
        self.shared.anew.send_modify(|it| *it += 1);
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

    /// From now on the connection belongs to one visitor, who may have folders to show that the server
    /// asked for when nobody was there yet.
    pub(super) fn welcome(&self, visitor: &Arc<dyn Visitor>) {
        *self.shared.own.listener.lock() = Some(Arc::clone(visitor) as Arc<dyn Listener>);
        if visitor.has_roots() {
            self.tell_now("notifications/roots/list_changed");
        }
        let level = visitor.level().map(|it| Json::of(&serde_json::json!({ "level": it })));
        if let Some(Ok(level)) = level {
            let shared = Arc::clone(&self.shared);
            self.shared.tasks.spawn(async move {
                shared.set_level(&level, &CallContext::default()).await.ok();
            });
        }
    }

    /// Tells the server something, if it is there.
    pub(super) fn tell_now(&self, method: &'static str) {
        if let Some(peer) = &*self.shared.peer.load()
            && peer.greeting().revision.era() == Era::Legacy
        {
            peer.tell(method, None);
        }
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
        if let Some(kind) = unfinished(result.as_bytes()) {
            let (server, kind) = (&self.shared.config.name, kind.escape_debug());
            let cause =
                format!("server `{server}` answered `{kind}`, which nobody here can act on");
            return Err(CallError::Malformed { cause });
        }
        Outcome::read(result).map_err(|fault| CallError::Malformed { cause: fault.to_string() })
    }
}

impl Shared {
    async fn run(self: &Arc<Self>) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.keep_alive() => {}
        }
        if let Some(peer) = self.peer.swap(None) {
            peer.close();
        }
        self.enter(SourceState::Closed);
    }

    async fn keep_alive(self: &Arc<Self>) {
        let mut backoff = Backoff::default();
        let mut era = None;
        let mut anew = self.anew.subscribe();
        loop {
            self.allowed().await;
            anew.borrow_and_update();
            let connected = tokio::select! {
                connected = self.connect(era) => connected,
                _ = anew.changed() => continue,
            };
            let pause = match connected {
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
                    let again = self.live(&peer.0, &mut anew).await;
                    backoff.worked_for(begin.elapsed());
                    // A session that ends as soon as it began will do so again.
                    let worked = Duration::from_secs(1) < begin.elapsed();
                    match again {
                        Again::Asked => continue,
                        Again::AtOnce if worked => continue,
                        Again::AtOnce | Again::Later => backoff.next_pause(),
                    }
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                () = self.hurry.notified() => {}
                _ = anew.changed() => {}
            }
        }
    }

    /// Waits until the server may be started. Whoever asks for it meanwhile hears why it is not.
    async fn allowed(&self) {
        while let Some(cause) = self.bar.cause() {
            let cure = "if that is what you want, accept it with `toolcrib lock`";
            self.fail(&cause, Some(cure.to_owned()));
            tokio::select! {
                () = self.bar.lifted() => self.enter(SourceState::Connecting),
                () = self.hurry.notified() => {}
            }
        }
    }

    async fn connect(&self, era: Option<Era>) -> Result<Arc<Peer>, ConnectError> {
        let options = Options {
            name: self.config.name.clone(),
            identity: self.options.identity.clone(),
            capabilities: Bytes::from_static(self.options.capabilities()),
            handshake: self.config.handshake_timeout,
            max_frame: self.options.max_frame,
            era,
            inbox: Arc::clone(&self.own) as Arc<dyn Inbox>,
            reaper: Arc::clone(&self.reaper),
            tasks: self.tasks.clone(),
            masker: self.masker.clone(),
            spool: self.options.spool.clone(),
        };
        let target = self.config.target(&self.options.inherited);
        let ended =
            |error: ClientError| ConnectError::Ended { cause: error.to_string(), on_probe: false };
        Peer::connect(&target.map_err(ended)?, &options).await.map(Arc::new)
    }

    /// From the first list of tools to the end of the connection.
    async fn live(self: &Arc<Self>, peer: &Arc<Peer>, anew: &mut watch::Receiver<u64>) -> Again {
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
        self.connects.fetch_add(1, Ordering::Relaxed);
        self.enter(SourceState::Ready);
        self.wish_again(peer);
        let ending = tokio::select! {
            ending = peer.closed() => ending,
            () = self.follow_changes(peer) => peer.closed().await,
            cause = self.bar.closed() => {
                self.peer.store(None);
                self.fail(&cause, None);
                return Again::Later;
            }
            _ = anew.changed() => {
                self.peer.store(None);
                self.enter(SourceState::Connecting);
                return Again::Asked;
            }
        };
        self.peer.store(None);
        self.losses.fetch_add(1, Ordering::Relaxed);
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
            self.own.changed.notified().await;
            let begin = Instant::now();
            let deadline = self.patience();
            match listing::list(peer, &self.config.name, deadline, self.options.lists).await {
                Ok(listed) => self.store(listed),
                Err(error) => {
                    let server = &self.config.name;
                    tracing::warn!(server, %error, "its tools changed, and it does not list them");
                    self.own.changed.notify_one();
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
        self.has_listed.store(true, Ordering::Relaxed);
        self.state.send_modify(|it| it.version += 1);
    }

    fn fail(&self, cause: &str, hint: Option<String>) {
        let cause = self.masker.mask(cause).into_owned();
        tracing::warn!(server = self.config.name, "{cause}");
        self.enter(SourceState::Failed { cause, hint });
    }

    pub(super) fn enter(&self, state: SourceState) {
        self.state.send_modify(|it| {
            it.state = state;
            it.version += 1;
        });
    }
}

/// A peer that is closed when nobody needs it any more.
struct Closing(Arc<Peer>);

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// When to connect again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Again {
    /// Somebody wants it so.
    Asked,
    AtOnce,
    Later,
}
