//! What a server was asked for once and is to go on doing: which resources it watches, and how much it
//! logs. A new connection says it again.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, timeout_at},
};
use tokio_util::sync::CancellationToken;
use toolcrib_catalogue::{CallContext, CallError, Json};
use toolcrib_wire::{Ask, Era, Inbox, Peer, json};

use super::connection::Shared;

/// More resources of one server than this are not watched.
const MAX_WATCHED: usize = 1_000;

/// What one server is to go on doing.
#[derive(Debug, Default)]
pub(super) struct Wishes {
    level: Mutex<Option<Json>>,
    /// The resources, and what ends the watching where the server is modern.
    watched: Mutex<BTreeMap<String, CancellationToken>>,
}

impl Shared {
    /// Watches a resource from now on.
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        params: &Json,
        context: &CallContext,
    ) -> Result<Json, CallError> {
        let peer = self.ready_peer(self.patience()).await?;
        let uri = uri_of(params)?;
        let end = CancellationToken::new();
        {
            let mut watched = self.wishes.watched.lock();
            if MAX_WATCHED <= watched.len() {
                let cause = format!("more than {MAX_WATCHED} of its resources are watched");
                return Err(CallError::Unavailable { cause });
            }
            if let Some(before) = watched.insert(uri.clone(), end.clone()) {
                before.cancel();
            }
        }
        let answer = match peer.greeting().revision.era() {
            Era::Legacy => self.request("resources/subscribe", params, context).await,
            Era::Modern => self.watch(&peer, &uri, end).await,
        };
        if answer.is_err() {
            self.forget_wish(&uri);
        }
        answer
    }

    /// Watches a resource no longer.
    pub(super) async fn unsubscribe(
        &self,
        params: &Json,
        context: &CallContext,
    ) -> Result<Json, CallError> {
        self.forget_wish(&uri_of(params)?);
        let peer = self.ready_peer(self.patience()).await?;
        match peer.greeting().revision.era() {
            Era::Legacy => self.request("resources/unsubscribe", params, context).await,
            Era::Modern => Ok(Json::empty_object()),
        }
    }

    fn forget_wish(&self, uri: &str) {
        if let Some(end) = self.wishes.watched.lock().remove(uri) {
            end.cancel();
        }
    }

    /// Logs this much from now on. A modern server is told with each request, not once.
    pub(super) async fn set_level(
        &self,
        params: &Json,
        context: &CallContext,
    ) -> Result<Json, CallError> {
        *self.wishes.level.lock() = Some(params.clone());
        match self.peer.load_full() {
            Some(peer) if logs(&peer) => self.request("logging/setLevel", params, context).await,
            _ => Ok(Json::empty_object()),
        }
    }

    /// Says all wishes to a new connection.
    pub(super) fn wish_again(self: &Arc<Self>, peer: &Arc<Peer>) {
        let level = self.wishes.level.lock().clone();
        let watched: Vec<_> = self.wishes.watched.lock().clone().into_iter().collect();
        if level.is_none() && watched.is_empty() {
            return;
        }
        let (this, peer) = (Arc::clone(self), Arc::clone(peer));
        self.tasks.spawn(async move {
            let context = CallContext::default();
            if let Some(level) = level.filter(|_| logs(&peer)) {
                this.request("logging/setLevel", &level, &context).await.ok();
            }
            for (uri, end) in watched {
                let params = Json::of(&serde_json::json!({ "uri": uri }));
                let Ok(params) = params else { continue };
                let answer = match peer.greeting().revision.era() {
                    Era::Legacy => this.request("resources/subscribe", &params, &context).await,
                    Era::Modern => this.watch(&peer, &uri, end).await,
                };
                if let Err(error) = answer {
                    tracing::warn!(server = this.config.name, uri, %error, "no longer watched");
                }
                // It may have changed while nobody watched.
                this.own.notified("notifications/resources/updated", Some(&params.into_bytes()));
            }
        });
    }

    /// Watches a resource of a modern server: a request that stays open. Returns once the server says
    /// that it watches.
    async fn watch(
        self: &Arc<Self>,
        peer: &Arc<Peer>,
        uri: &str,
        end: CancellationToken,
    ) -> Result<Json, CallError> {
        let params = serde_json::json!({ "notifications": { "resourceSubscriptions": [uri] } });
        let params = params.to_string();
        let begun = Arc::new(Begun::default());
        let (stop, peer, listener) = (self.stop.clone(), Arc::clone(peer), Arc::clone(&begun));
        self.tasks.spawn(async move {
            let watching = async {
                loop {
                    let ask = Ask {
                        method: "subscriptions/listen",
                        params: Some(params.as_bytes()),
                        listener: Some(Arc::clone(&listener) as Arc<dyn Inbox>),
                        ..Ask::default()
                    };
                    let ended = peer.request(ask).await;
                    *listener.answer.lock() = Some(Err(match ended {
                        Ok(_) => "it ended the subscription".to_owned(),
                        Err(error) => error.to_string(),
                    }));
                    listener.known.notify_one();
                    sleep(Duration::from_secs(1)).await;
                }
            };
            tokio::select! {
                () = watching => {}
                () = end.cancelled() => {}
                () = stop.cancelled() => {}
                _ = peer.closed() => {}
            }
        });
        let deadline = Instant::now() + self.config.timeout;
        if timeout_at(deadline, begun.known.notified()).await.is_err() {
            return Err(CallError::TimedOut { after: self.config.timeout, sent: true });
        }
        let answer = begun.answer.lock().take();
        let cause = match answer {
            Some(Ok(honoured)) if honoured.iter().any(|it| it == uri) => {
                return Ok(Json::empty_object());
            }
            Some(Err(cause)) => cause,
            _ => "it does not watch that resource".to_owned(),
        };
        let cause = format!("server `{}`: {}", self.config.name, self.masker.mask(&cause));
        Err(CallError::Malformed { cause })
    }
}

/// Hears whether a modern server watches what it was asked to.
#[derive(Debug, Default)]
struct Begun {
    answer: Mutex<Option<Result<Vec<String>, String>>>,
    known: Notify,
}

impl Inbox for Begun {
    fn notified(&self, method: &str, params: Option<&Bytes>) {
        if method != "notifications/subscriptions/acknowledged" {
            return;
        }
        let params: serde_json::Value =
            params.and_then(|it| serde_json::from_slice(it).ok()).unwrap_or_default();
        let honoured = &params["notifications"]["resourceSubscriptions"];
        let honoured = serde_json::from_value(honoured.clone()).unwrap_or_default();
        *self.answer.lock() = Some(Ok(honoured));
        self.known.notify_one();
    }
}

/// Whether a server can be told once how much to log.
fn logs(peer: &Peer) -> bool {
    let greeting = peer.greeting();
    greeting.revision.era() == Era::Legacy
        && json::member(&greeting.capabilities, "logging").is_some()
}

fn uri_of(params: &Json) -> Result<String, CallError> {
    let at = json::member(params.as_bytes(), "uri");
    let uri = at.and_then(|at| serde_json::from_slice(&params.as_bytes()[at]).ok());
    uri.ok_or_else(|| CallError::Malformed { cause: "`uri` must be a string".to_owned() })
}
