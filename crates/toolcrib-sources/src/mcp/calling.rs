//! Requests through a connection: which peer takes them, when they are sent again, and what their errors
//! mean.

use std::{
    borrow::Cow,
    io,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep, timeout_at},
};
use toolcrib_catalogue::{CallContext, CallError, ClientError, Json, SourceState, Visitor};
use toolcrib_wire::{
    Answered, Aside, Ask, Inbox, Mirrored, Peer, RequestError, json,
    revision::{META_CAPABILITIES, META_LOG_LEVEL},
};

use super::{aside, connection::Shared, listing::Listed, port::Heard};

/// No call takes longer than this, whatever anybody says.
pub(super) const LONGEST: Duration = Duration::from_secs(86_400);

impl Shared {
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
        // Two who do not stay are never the same.
        let client = context.visitor.as_ref().map_or_else(nobody_else, |it| it.key());
        let meta = context.visitor.as_ref().map(|it| said_for(&**it)).unwrap_or_default();
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
                client: Some(client),
                meta: &meta,
                mirrored: wanted_in_headers(&listed, method, params),
                aside: if context.takes_aside { Aside::Wanted } else { Aside::Unwanted },
            };
            let error = match peer.request(ask).await {
                Ok(answered) => return self.result(answered, context).await,
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
            if let Some(retried) = &context.retried {
                retried.fetch_add(1, Ordering::Relaxed);
            }
            sleep(pause).await;
        }
        Err(CallError::Unavailable { cause: "no attempt was made".to_owned() })
    }

    /// A result as its caller takes it: whole, unless it deals with what was put aside.
    async fn result(&self, answered: Answered, context: &CallContext) -> Result<Json, CallError> {
        let result = Json::from_scanned(answered.result);
        let Some(aside) = answered.aside else { return Ok(result) };
        let result = result.with_aside(aside::put(aside));
        if context.takes_aside {
            return Ok(result);
        }
        let limit = self.options.max_frame;
        let whole = spawn_blocking(move || result.inflate(limit)).await;
        whole.unwrap_or_else(|error| Err(error.into())).map_err(|error| {
            let cause = format!("server `{}`: {error}", self.config.name);
            match error.kind() {
                io::ErrorKind::FileTooLarge => CallError::Malformed { cause },
                _ => CallError::Storage { cause },
            }
        })
    }

    /// Takes a peer whose session is gone out of use, if nobody has done so yet.
    fn forget(&self, peer: &Arc<Peer>) {
        let current = self.peer.compare_and_swap(peer, None);
        if current.as_ref().is_some_and(|it| Arc::ptr_eq(it, peer)) {
            self.enter(SourceState::Connecting);
        }
    }

    /// Whether we were told to believe that doing it twice does no harm.
    pub(super) fn is_safe(&self, tool: &str) -> bool {
        self.config.trust_hints
            && self.listed.load().tools.iter().any(|it| {
                let hints = it.annotations;
                it.name == tool
                    && (hints.read_only_hint == Some(true) || hints.idempotent_hint == Some(true))
            })
    }

    /// What comes with an error, without secrets of ours; else as it is, since clients act on it.
    fn masked(&self, data: Bytes) -> Json {
        let masked = match self.masker.mask_known(&String::from_utf8_lossy(&data)) {
            Cow::Borrowed(_) => None,
            Cow::Owned(masked) => Some(masked),
        };
        let Some(masked) = masked else { return Json::from_scanned(data) };
        // A secret may have stood where only a number can.
        let nothing = || Json::from_scanned(Bytes::from_static(b"\"****\""));
        Json::parse(masked).unwrap_or_else(|_| nothing())
    }

    pub(super) fn call_error(&self, error: RequestError) -> CallError {
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
            RequestError::NoRoom { .. } => CallError::Storage { cause: said(&error) },
            RequestError::TimedOut { after, sent } => CallError::TimedOut { after, sent },
            RequestError::Rpc(rpc) => CallError::Rpc {
                code: rpc.code,
                message: self.masker.mask(&rpc.message).into_owned(),
                data: rpc.data.map(|it| self.masked(it)),
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

/// What a modern server has to hear with each request of a visitor that said it once.
fn said_for(visitor: &dyn Visitor) -> Vec<(&'static str, Bytes)> {
    let capabilities = visitor.capabilities().map(|it| (META_CAPABILITIES, it.into_bytes()));
    let level = visitor.level().map(|it| (META_LOG_LEVEL, format!("\"{it}\"").into()));
    capabilities.into_iter().chain(level).collect()
}

/// A number that no visitor has.
fn nobody_else() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1 << 63);
    NEXT.fetch_add(1, Ordering::Relaxed)
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
