//! Who watches which resource. A source hears of the first who does and of the last who no longer does.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use toolcrib_catalogue::{CallContext, CallError, Json, Visitor};
use toolcrib_wire::{
    Id,
    frame::notification,
    json::{member, members},
    revision::META_SUBSCRIPTION,
};

use crate::{access::Caller, gateway::Gateway, slot::Slot, visit::Out};

/// More resources than this are not watched by one client.
pub(crate) const MAX_WATCHED: usize = 1_000;

/// Who watches what: by the key of the source and URI.
#[derive(Debug, Default)]
pub(crate) struct Watching {
    by_resource: Mutex<HashMap<(u64, String), Vec<Watcher>>>,
}

/// Somebody who watches a resource.
#[derive(Debug, Clone)]
pub(crate) struct Watcher {
    /// A visit, or a subscription of the modern era.
    pub(crate) key: u64,
    pub(crate) caller: Caller,
    pub(crate) out: Out,
    /// The id of the subscription, in the modern era.
    pub(crate) subscription: Option<Id>,
}

impl Gateway {
    /// Somebody watches a resource from now on.
    pub(crate) async fn watch(
        &self,
        slot: &Slot,
        uri: &str,
        watcher: Watcher,
        visitor: Option<Arc<dyn Visitor>>,
    ) -> Result<(), CallError> {
        let gone = || CallError::Unavailable { cause: "its server is gone".to_owned() };
        let from = slot.source().ok_or_else(gone)?;
        let context = CallContext { repeatable: true, visitor, ..CallContext::default() };
        let params = Json::of(&serde_json::json!({ "uri": uri })).ok().ok_or_else(gone)?;
        let _turn = slot.turn.lock().await;
        // One that is not shared knows its visitors itself, and tells each.
        let own = !from.is_shared() && context.visitor.is_some();
        let place = (slot.key, uri.to_owned());
        if own || !self.watching.by_resource.lock().contains_key(&place) {
            from.request("resources/subscribe", params, context).await?;
        }
        if !own {
            let mut all = self.watching.by_resource.lock();
            let watchers = all.entry(place).or_default();
            watchers.retain(|it| it.key != watcher.key);
            watchers.push(watcher);
        }
        Ok(())
    }

    /// Somebody watches a resource no longer.
    pub(crate) async fn unwatch(
        &self,
        slot: u64,
        uri: &str,
        key: u64,
        visitor: Option<Arc<dyn Visitor>>,
    ) -> Result<(), CallError> {
        let Some(slot) = self.slot(slot) else { return Ok(()) };
        let Some(from) = slot.source() else { return Ok(()) };
        let context = CallContext { repeatable: true, visitor, ..CallContext::default() };
        let _turn = slot.turn.lock().await;
        let last = self.watching.forget(slot.key, uri, key);
        let own = !from.is_shared() && context.visitor.is_some();
        if !last && !own {
            return Ok(());
        }
        let Ok(params) = Json::of(&serde_json::json!({ "uri": uri })) else { return Ok(()) };
        from.request("resources/unsubscribe", params, context).await.map(|_| ())
    }

    /// Somebody watches these resources no longer; nobody waits until the sources know.
    pub(crate) fn unwatch_later(
        self: &Arc<Self>,
        key: u64,
        all: Vec<(u64, String)>,
        visitor: Option<Arc<dyn Visitor>>,
    ) {
        if all.is_empty() {
            return;
        }
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            for (slot, uri) in all {
                this.unwatch(slot, &uri, key, visitor.clone()).await.ok();
            }
        });
    }

    /// A resource has changed: tells everybody who watches it and still may.
    pub(crate) fn updated(&self, slot: &Slot, params: &Json) {
        let text = params.as_bytes();
        let uri = member(text, "uri");
        let uri: Option<String> = uri.and_then(|at| serde_json::from_slice(&text[at]).ok());
        let Some(uri) = uri else { return };
        let watchers = self.watching.by_resource.lock().get(&(slot.key, uri.clone())).cloned();
        let snapshot = self.snapshot();
        let Some(place) = snapshot.place_of(slot.key) else { return };
        for watcher in watchers.unwrap_or_default() {
            if snapshot.resource(&watcher.caller, &uri) != Some(place) {
                continue;
            }
            let params = tagged(text, watcher.subscription.as_ref());
            let note = notification("notifications/resources/updated", Some(&params));
            watcher.out.say(note, false);
        }
    }
}

/// The params of a note as they came, but for `_meta`: which subscription it belongs to is told anew.
fn tagged(params: &[u8], subscription: Option<&Id>) -> Vec<u8> {
    let mut text = match subscription {
        Some(id) => format!(r#"{{"_meta":{{"{META_SUBSCRIPTION}":{id}}}"#),
        None => "{".to_owned(),
    }
    .into_bytes();
    for (key, at) in members(params).into_iter().filter(|(key, _)| key != "_meta") {
        if 1 < text.len() {
            text.push(b',');
        }
        text.extend_from_slice(serde_json::Value::from(&*key).to_string().as_bytes());
        text.push(b':');
        text.extend_from_slice(&params[at]);
    }
    text.push(b'}');
    text
}

impl Watching {
    /// What is watched of a source.
    pub(crate) fn of(&self, slot: u64) -> Vec<String> {
        let all = self.by_resource.lock();
        all.keys().filter(|it| it.0 == slot).map(|it| it.1.clone()).collect()
    }

    /// Forgets who watches what of a source that is gone.
    pub(crate) fn forget_all(&self, slot: u64) {
        self.by_resource.lock().retain(|it, _| it.0 != slot);
    }

    /// Forgets who watches; returns whether nobody does any more who did.
    fn forget(&self, source: u64, uri: &str, key: u64) -> bool {
        let mut all = self.by_resource.lock();
        let place = (source, uri.to_owned());
        let Some(watchers) = all.get_mut(&place) else { return false };
        watchers.retain(|it| it.key != key);
        let nobody = watchers.is_empty();
        if nobody {
            all.remove(&place);
        }
        nobody
    }
}
