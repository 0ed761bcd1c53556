//! What clients hear of lists that change and of resources they watch.

use std::sync::Arc;

use bytes::Bytes;
use toolcrib_catalogue::Visitor;
use toolcrib_wire::{Id, frame::notification, revision::META_SUBSCRIPTION};

use crate::{
    access::Caller,
    gateway::Gateway,
    snapshot::Lists,
    visit::Out,
    watching::{MAX_WATCHED, Watcher},
};

/// Knows which lists a caller saw last.
#[derive(Debug)]
pub(crate) struct SeenLists<'a> {
    gateway: &'a Gateway,
    caller: &'a Caller,
    changes: tokio::sync::watch::Receiver<u64>,
    seen: Lists,
}

impl<'a> SeenLists<'a> {
    pub(crate) fn new(gateway: &'a Gateway, caller: &'a Caller) -> Self {
        let changes = gateway.changes();
        let seen = gateway.snapshot().lists(caller);
        Self { gateway, caller, changes, seen }
    }

    /// For somebody who saw these lists, perhaps a while ago.
    pub(crate) fn since(gateway: &'a Gateway, caller: &'a Caller, seen: Lists) -> Self {
        let mut changes = gateway.changes();
        // Look at once.
        changes.mark_changed();
        Self { gateway, caller, changes, seen }
    }

    /// Waits until some of the caller's lists are others, and names what to say of it; nothing when
    /// the gateway is gone.
    pub(crate) async fn changed(&mut self) -> Vec<&'static str> {
        loop {
            if self.changes.changed().await.is_err() {
                return Vec::new();
            }
            let now = self.gateway.snapshot().lists(self.caller);
            let before = std::mem::replace(&mut self.seen, now.clone());
            let mut changed = Vec::new();
            if now.tools != before.tools {
                changed.push(TOOLS_CHANGED);
            }
            if now.prompts != before.prompts {
                changed.push(PROMPTS_CHANGED);
            }
            if now.resources != before.resources || now.templates != before.templates {
                changed.push(RESOURCES_CHANGED);
            }
            if !changed.is_empty() {
                return changed;
            }
        }
    }
}

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";
const PROMPTS_CHANGED: &str = "notifications/prompts/list_changed";
const RESOURCES_CHANGED: &str = "notifications/resources/list_changed";

/// What a modern client wants to hear of.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    lists: Vec<(&'static str, &'static str)>,
    resources: Vec<String>,
}

impl Wanted {
    pub(crate) fn read(params: Option<&Bytes>) -> Self {
        let all = [
            ("toolsListChanged", TOOLS_CHANGED),
            ("promptsListChanged", PROMPTS_CHANGED),
            ("resourcesListChanged", RESOURCES_CHANGED),
        ];
        let params: serde_json::Value =
            params.and_then(|it| serde_json::from_slice(it).ok()).unwrap_or_default();
        let wants = |key: &str| params["notifications"][key] == true;
        let lists = all.into_iter().filter(|(key, _)| wants(key)).collect();
        let resources = params["notifications"]["resourceSubscriptions"].as_array();
        let uris = resources.into_iter().flatten().filter_map(|it| it.as_str());
        let resources = uris.take(MAX_WATCHED).map(str::to_owned).collect();
        Self { lists, resources }
    }

    pub(crate) fn wants(&self, method: &str) -> bool {
        self.lists.iter().any(|(_, it)| *it == method)
    }

    /// Watches the resources, and wants no longer what cannot be watched. They are watched until the
    /// guard goes away.
    pub(crate) async fn watch(
        &mut self,
        gateway: &Arc<Gateway>,
        caller: &Caller,
        id: &Id,
        out: &Out,
        visitor: Option<Arc<dyn Visitor>>,
    ) -> Watched {
        let key = gateway.next_key();
        let mut watched = Watched { gateway: Arc::clone(gateway), key, all: Vec::new(), visitor };
        for uri in std::mem::take(&mut self.resources) {
            let snapshot = gateway.snapshot();
            let source = snapshot.resource(caller, &uri);
            let Some(slot) = source.and_then(|it| snapshot.slot(it)) else { continue };
            let (caller, out) = (caller.clone(), out.clone());
            let watcher = Watcher { key, caller, out, subscription: Some(id.clone()) };
            let visitor = watched.visitor.clone();
            match gateway.watch(slot, &uri, watcher, visitor).await {
                Ok(()) => {
                    watched.all.push((slot.key, uri.clone()));
                    self.resources.push(uri);
                }
                Err(error) => tracing::debug!(uri, %error, "a resource cannot be watched"),
            }
        }
        watched
    }

    /// The first word on the stream: what will be told.
    pub(crate) fn acknowledged(&self, id: &Id) -> Bytes {
        let honoured: serde_json::Map<String, serde_json::Value> =
            self.lists.iter().map(|(key, _)| ((*key).to_owned(), true.into())).collect();
        let mut honoured = serde_json::Value::Object(honoured);
        if !self.resources.is_empty() {
            honoured["resourceSubscriptions"] = self.resources.as_slice().into();
        }
        let params =
            format!(r#"{{"_meta":{{"{META_SUBSCRIPTION}":{id}}},"notifications":{honoured}}}"#);
        notification("notifications/subscriptions/acknowledged", Some(params.as_bytes()))
    }
}

/// Resources that are watched as long as this is held.
#[derive(Debug)]
pub(crate) struct Watched {
    gateway: Arc<Gateway>,
    key: u64,
    all: Vec<(u64, String)>,
    visitor: Option<Arc<dyn Visitor>>,
}

impl Drop for Watched {
    fn drop(&mut self) {
        let all = std::mem::take(&mut self.all);
        self.gateway.unwatch_later(self.key, all, self.visitor.take());
    }
}

/// A note to a subscription.
pub(crate) fn subscribed(id: &Id, method: &str) -> Bytes {
    let params = format!(r#"{{"_meta":{{"{META_SUBSCRIPTION}":{id}}}}}"#);
    notification(method, Some(params.as_bytes()))
}

pub(crate) fn listen_ended(id: &Id) -> String {
    format!(r#"{{"resultType":"complete","_meta":{{"{META_SUBSCRIPTION}":{id}}}}}"#)
}
