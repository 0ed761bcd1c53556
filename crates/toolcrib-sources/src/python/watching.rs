//! Edits are followed: a file that is saved is served a moment later.

use std::{sync::Arc, time::Duration};

use notify::{Event, EventKind, RecursiveMode, Watcher, recommended_watcher};
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};

use super::{
    engine::Engine,
    loading::{Fingerprint, fingerprint},
};

/// An editor writes a file in several steps.
const SETTLE: Duration = Duration::from_millis(100);

/// Where nobody tells us of changes, we look as often as this.
const LOOK: Duration = Duration::from_secs(1);

/// Where Python itself could not be had, it is looked for again.
const TRY_AGAIN: Duration = Duration::from_secs(2);

/// Changes can be missed; now and then we look all the same.
const LOOK_ANYWAY: Duration = Duration::from_secs(30);

/// Loads anew whenever a file that matters has changed. Never returns.
pub(super) async fn follow(engine: &Arc<Engine>, mut seen: Fingerprint, mut worked: bool) {
    let folder = &engine.settings.workspace;
    let changed = Arc::new(Notify::new());
    let telling = Arc::clone(&changed);
    let watcher = recommended_watcher(move |event: notify::Result<Event>| {
        if !matches!(event, Ok(Event { kind: EventKind::Access(_), .. })) {
            telling.notify_one();
        }
    });
    let mut watcher =
        watcher.inspect_err(|error| tracing::debug!(%error, "nobody tells of edits")).ok();
    let mut again = false;
    loop {
        let mut told = watcher.is_some();
        if let Some(watcher) = &mut watcher {
            // A folder that was not there before may be there now; one that is watched already stays so.
            told &= watcher.watch(folder, RecursiveMode::NonRecursive).is_ok();
            for part in ["tools", "mods"] {
                let part = folder.join(part);
                told &= !part.is_dir() || watcher.watch(&part, RecursiveMode::Recursive).is_ok();
            }
        }
        // Looked at after it is watched: nothing falls between the two.
        let looked = folder.clone();
        let found = tokio::task::spawn_blocking(move || fingerprint(&looked)).await;
        let Ok(found) = found else { return };
        if found != seen || again {
            seen = found;
            worked = engine.load().await;
        }
        again = !worked;
        let patience = match (told, worked) {
            (false, _) => LOOK,
            (true, false) => TRY_AGAIN,
            (true, true) => LOOK_ANYWAY,
        };
        timeout(patience, changed.notified()).await.ok();
        sleep(SETTLE).await;
    }
}
