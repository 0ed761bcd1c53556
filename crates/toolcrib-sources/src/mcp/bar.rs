//! What keeps a server from being started: it is not the one that was accepted. Whoever accepts it lifts the bar.

use tokio::sync::watch;

/// Why a server must not be started, while it must not.
#[derive(Debug)]
pub(crate) struct Bar(watch::Sender<Option<String>>);

impl Default for Bar {
    fn default() -> Self {
        Self(watch::Sender::new(None))
    }
}

impl Bar {
    /// Keeps the server from being started, or lets it.
    pub(super) fn set(&self, cause: Option<String>) {
        self.0.send_if_modified(|known| {
            let differs = *known != cause;
            *known = cause;
            differs
        });
    }

    /// Why it must not be started.
    pub(super) fn cause(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Waits until it may be started.
    pub(super) async fn lifted(&self) {
        self.0.subscribe().wait_for(Option::is_none).await.ok();
    }

    /// Waits until it must not be there any more, and says why.
    pub(super) async fn closed(&self) -> String {
        let mut causes = self.0.subscribe();
        let cause = causes.wait_for(Option::is_some).await;
        cause.ok().and_then(|it| it.clone()).unwrap_or_default()
    }
}
