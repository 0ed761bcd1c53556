//! Edits are followed: a document that is saved is served a moment later.

use std::{sync::Arc, time::Duration};

use notify::{Event, EventKind, RecursiveMode, Watcher, recommended_watcher};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::{EventSource, files::FOLDER};

/// An editor writes a file in several steps.
const SETTLE: Duration = Duration::from_millis(100);

/// Where nobody tells us of changes, we look as often as this.
const LOOK: Duration = Duration::from_secs(1);

/// Changes can be missed, and files that are referred to may lie anywhere in the workspace.
const LOOK_ANYWAY: Duration = Duration::from_secs(5);

impl EventSource {
    /// Reads anew whenever a file that matters has changed. Never returns.
    pub async fn follow_edits(self: &Arc<Self>) {
        let changed = Arc::new(Notify::new());
        let telling = Arc::clone(&changed);
        let watcher = recommended_watcher(move |event: notify::Result<Event>| {
            if !matches!(event, Ok(Event { kind: EventKind::Access(_), .. })) {
                telling.notify_one();
            }
        });
        let mut watcher = watcher.ok();
        let mut seen = None;
        loop {
            let mut told = watcher.is_some();
            if let Some(watcher) = &mut watcher {
                told &= watcher.watch(self.workspace(), RecursiveMode::NonRecursive).is_ok();
                let folder = self.workspace().join(FOLDER);
                told &=
                    !folder.is_dir() || watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok();
            }
            let this = Arc::clone(self);
            let before = seen.take();
            let looked = tokio::task::spawn_blocking(move || {
                // Looked at before they are read: an edit that comes meanwhile shows the next time.
                let found = this.fingerprint();
                if before.as_ref() != Some(&found) {
                    this.reload();
                }
                found
            });
            let Ok(found) = looked.await else { return };
            seen = Some(found);
            timeout(if told { LOOK_ANYWAY } else { LOOK }, changed.notified()).await.ok();
            sleep(SETTLE).await;
        }
    }
}
