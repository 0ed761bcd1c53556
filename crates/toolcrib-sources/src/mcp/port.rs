//! A connection seen through the ports of the catalogue.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use toolcrib_catalogue::{
    BoxFuture, CallContext, CallError, CallTool, Json, Listener, Offers, Outcome, Problem, Source,
    SourceState, Tally, Tool, ToolServer,
};
use toolcrib_wire::{
    Inbox, Reply, RpcError,
    frame::INTERNAL_ERROR,
    json::{member, string},
};

use super::connection::Connection;

/// Hands on what the wire hears.
#[derive(Debug)]
pub(super) struct Heard(pub(super) Arc<dyn Listener>);

impl Inbox for Heard {
    fn notified(&self, method: &str, params: Option<&Bytes>) {
        self.0.notified(method, params.cloned().map(Json::from_scanned));
    }

    fn asked(&self, method: &str, params: Option<&Bytes>) -> Option<Reply> {
        let answering = self.0.asked(method, params.cloned().map(Json::from_scanned))?;
        Some(Box::pin(async move {
            match answering.await {
                Ok(answer) => Ok(answer.into_bytes()),
                Err(CallError::Rpc { code, message, data }) => {
                    Err(RpcError { code, message, data: data.map(Json::into_bytes) })
                }
                Err(error) => {
                    let message = error.to_string();
                    Err(RpcError { code: INTERNAL_ERROR, message, data: None })
                }
            }
        }))
    }
}

impl Source for Connection {
    fn label(&self) -> &str {
        &self.shared.config.name
    }

    fn state(&self) -> SourceState {
        self.shared.state.borrow().state.clone()
    }

    fn tools(&self) -> Arc<[Arc<Tool>]> {
        Arc::clone(&self.shared.listed.load().tools)
    }

    fn offers(&self) -> Offers {
        self.shared.listed.load().offers.clone()
    }

    fn has_listed(&self) -> bool {
        self.shared.has_listed.load(Ordering::Relaxed)
    }

    fn problems(&self) -> Vec<Problem> {
        self.shared.listed.load().problems.clone()
    }

    fn version(&self) -> u64 {
        self.shared.state.borrow().version
    }

    fn tally(&self) -> Tally {
        let count = |it: &AtomicU64| it.load(Ordering::Relaxed);
        let (connects, losses) = (count(&self.shared.connects), count(&self.shared.losses));
        Tally { connects, losses, strays: count(&self.shared.own.strays), workers: None }
    }

    fn changed_since(&self, version: u64) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut state = self.shared.state.subscribe();
            drop(state.wait_for(|it| it.version != version).await);
        })
    }

    fn listen(&self, listener: Arc<dyn Listener>) {
        *self.shared.own.listener.lock() = Some(listener);
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Json,
        mut context: CallContext,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        Box::pin(async move {
            if method == "tools/call" && !context.repeatable && self.shared.config.trust_hints {
                let name = member(params.as_bytes(), "name").map(|at| &params.as_bytes()[at]);
                let name = name.and_then(string).unwrap_or_default();
                context.repeatable = self.shared.is_safe(&name);
            }
            match method {
                "resources/subscribe" => self.shared.subscribe(&params, &context).await,
                "resources/unsubscribe" => self.shared.unsubscribe(&params, &context).await,
                "logging/setLevel" => self.shared.set_level(&params, &context).await,
                _ => self.shared.request(method, &params, &context).await,
            }
        })
    }
}

impl ToolServer for Connection {
    fn name(&self) -> &str {
        &self.shared.config.name
    }

    /// All tools. What was listed before will do if the server tells of changes, or if the
    /// configuration says so.
    async fn list_tools(&self) -> Result<Vec<Arc<Tool>>, CallError> {
        let deadline = self.shared.patience();
        let peer = self.shared.ready_peer(deadline).await?;
        let fresh = self.shared.config.cache_tools || peer.greeting().tools_change;
        let tools = if fresh { self.tools() } else { self.refresh().await? };
        Ok(tools.to_vec())
    }

    async fn call_tool(&self, tool: &str, arguments: Option<Json>) -> Result<Outcome, CallError> {
        self.call(tool, arguments.as_ref(), CallContext::default()).await
    }
}

impl CallTool for Connection {
    /// One attempt: whoever calls through this decides on the next.
    async fn call_tool(
        &self,
        _server: &str,
        tool: &str,
        arguments: Option<Json>,
    ) -> Result<Outcome, CallError> {
        let once = CallContext { retries: Some(0), ..CallContext::default() };
        self.call(tool, arguments.as_ref(), once).await
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("server", &self.shared.config.name)
            .field("state", &self.shared.state.borrow().state)
            .finish_non_exhaustive()
    }
}
