//! Which sources there are, and how they come and go while the gateway runs.

use std::sync::{Arc, Weak, atomic::Ordering};

use serde_json::json;
use toolcrib_catalogue::{CallContext, Json, Listener, Problem, Source};

use super::{Gateway, Input};
use crate::{
    slot::{Left, Slot, Slots},
    visit::LEVELS,
};

impl Gateway {
    /// The slots, in the order in which names are given.
    pub(crate) fn slots(&self) -> Slots {
        Slots::clone(&self.slots.load())
    }

    /// The slot of this key, as it is now.
    pub(crate) fn slot(&self, key: u64) -> Option<Arc<Slot>> {
        self.slots.load().iter().find(|it| it.key == key).cloned()
    }

    /// Takes these sources from now on. Calls in flight end at the sources at which they began; what was taken out
    /// is returned, to be ended when nobody uses it any more. Says what is wrong.
    pub fn set_inputs(self: &Arc<Self>, inputs: Vec<Input>) -> (Vec<Left>, Vec<Problem>) {
        let before = self.slots();
        let new_key = || self.next_slot.fetch_add(1, Ordering::Relaxed);
        let now: Slots = inputs.into_iter().map(|it| Slot::of(&before, it, new_key)).collect();
        let is_in = |slot: &Arc<Slot>, all: &Slots| all.iter().any(|it| Arc::ptr_eq(it, slot));
        self.slots.store(Arc::new(Slots::clone(&now)));
        self.cache.clear();
        let problems = self.rebuild();
        for slot in now.iter().filter(|it| !is_in(it, &before)) {
            self.attach(slot);
            self.say_again(slot);
        }
        let mut left = Vec::new();
        for slot in before.iter().filter(|it| !is_in(it, &now)) {
            slot.gone.cancel();
            if !now.iter().any(|it| it.key == slot.key) {
                self.watching.forget_all(slot.key);
            }
            // One whose rules alone have changed goes on under them.
            let goes_on = now.iter().any(|it| it.input.has_source_of(&slot.input));
            if slot.source().is_some() && !goes_on {
                left.push(Left::of(slot));
            }
        }
        (left, problems)
    }

    /// Hears what a source says, and follows its changes, as long as it is there.
    pub(super) fn attach(self: &Arc<Self>, slot: &Arc<Slot>) {
        let Some(source) = slot.source().cloned() else { return };
        let (gateway, weak) = (Arc::downgrade(self), Arc::downgrade(slot));
        source.listen(Arc::new(Heard { gateway, slot: Weak::clone(&weak) }));
        let (this, gone) = (Arc::clone(self), slot.gone.clone());
        self.tasks.spawn(async move {
            tokio::select! {
                () = this.stop.cancelled() => {}
                () = gone.cancelled() => {}
                () = this.follow(&weak, &*source) => {}
            }
        });
    }

    /// Builds the catalogue anew whenever a source changes. Never returns while it is there.
    async fn follow(self: &Arc<Self>, slot: &Weak<Slot>, source: &dyn Source) {
        loop {
            let version = source.version();
            match slot.upgrade() {
                Some(slot) => slot.since.note(&source.state()),
                None => return,
            }
            self.catch_up().await;
            source.changed_since(version).await;
        }
    }

    /// Tells a new source what clients wanted of the one before it: what they watch, and how much is logged.
    fn say_again(self: &Arc<Self>, slot: &Arc<Slot>) {
        let Some(source) = slot.source().cloned() else { return };
        let watched = self.watching.of(slot.key);
        let watched = watched.into_iter().map(|it| ("resources/subscribe", json!({ "uri": it })));
        let level = self.here().iter().filter_map(|it| it.level()).min();
        let level =
            level.map(|it| ("logging/setLevel", json!({ "level": LEVELS[usize::from(it)] })));
        let wishes: Vec<_> = watched.chain(level).collect();
        if wishes.is_empty() {
            return;
        }
        self.spawn(async move {
            for (method, params) in wishes {
                let Ok(params) = Json::of(&params) else { continue };
                let context = CallContext { repeatable: true, ..CallContext::default() };
                if let Err(error) = source.request(method, params, context).await {
                    tracing::debug!(source = source.label(), method, %error, "a wish is not heard");
                }
            }
        });
    }
}

/// Hears what one source says of its own accord.
#[derive(Debug)]
struct Heard {
    gateway: Weak<Gateway>,
    slot: Weak<Slot>,
}

impl Listener for Heard {
    fn notified(&self, method: &str, params: Option<Json>) {
        let Some((gateway, slot)) = self.gateway.upgrade().zip(self.slot.upgrade()) else { return };
        match (method, params) {
            ("notifications/resources/updated", Some(params)) => {
                gateway.updated(&slot, &params);
            }
            ("notifications/message" | "notifications/elicitation/complete", params) => {
                gateway.say_to_the_only_one(&slot, method, params);
            }
            _ => {}
        }
    }
}
