//! Who waits for which answer.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use crate::{client::Inbox, error::RequestError};

pub(crate) type Answer = Result<Bytes, RequestError>;

/// The requests of one connection that have no answer yet, and whether any can still come.
#[derive(Debug, Default)]
pub(crate) struct Board {
    state: Mutex<State>,
    closed: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<u64, oneshot::Sender<Answer>>,
    listening: HashMap<u64, Listener>,
    ending: Option<Ending>,
}

/// Who wants to hear how a request goes on, and by which token it knows the request.
#[derive(Debug, Clone)]
pub(crate) struct Listener {
    pub(crate) token: Bytes,
    pub(crate) inbox: Arc<dyn Inbox>,
}

/// How a connection ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ending {
    /// Why; never empty.
    pub cause: String,
    /// The server is well, and only forgot our session: a new one will do.
    pub stale: bool,
}

impl Board {
    /// Waits for the answer to request `id`. Fails with the cause where the connection is gone.
    pub(crate) fn wait_for(&self, id: u64) -> Result<oneshot::Receiver<Answer>, String> {
        let mut state = self.state.lock();
        if let Some(ending) = &state.ending {
            return Err(ending.cause.clone());
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.insert(id, sender);
        Ok(receiver)
    }

    /// Somebody wants to hear how request `id` goes on.
    pub(crate) fn listen(&self, id: u64, listener: Listener) {
        self.state.lock().listening.insert(id, listener);
    }

    /// Who wants to hear how request `id` goes on.
    pub(crate) fn listener(&self, id: u64) -> Option<Listener> {
        self.state.lock().listening.get(&id).cloned()
    }

    /// Nobody waits for request `id` any more.
    pub(crate) fn forget(&self, id: u64) {
        let mut state = self.state.lock();
        state.waiting.remove(&id);
        state.listening.remove(&id);
    }

    /// Hands an answer to whoever waits for it; late and unasked ones fall on the floor.
    pub(crate) fn answer(&self, id: u64, answer: Answer) {
        let waiting = self.state.lock().waiting.remove(&id);
        if let Some(sender) = waiting {
            // The receiver may have gone away in this moment; then nobody wants the answer.
            sender.send(answer).ok();
        }
    }

    /// No answer can come any more. The first cause counts.
    pub(crate) fn close(&self, cause: &str) {
        self.end(&Ending { cause: cause.to_owned(), stale: false });
    }

    /// The server has forgotten our session.
    pub(crate) fn close_stale(&self) {
        self.end(&Ending { cause: "it no longer knows the session".to_owned(), stale: true });
    }

    fn end(&self, ending: &Ending) {
        let waiting = {
            let mut state = self.state.lock();
            state.ending.get_or_insert_with(|| ending.clone());
            std::mem::take(&mut state.waiting)
        };
        for sender in waiting.into_values() {
            sender.send(Err(RequestError::Lost { cause: ending.cause.clone() })).ok();
        }
        self.closed.cancel();
    }

    /// Resolves when no answer can come any more.
    pub(crate) async fn closed(&self) -> Ending {
        self.closed.cancelled().await;
        self.ending().unwrap_or_default()
    }

    /// How the connection ended, if it did.
    pub(crate) fn ending(&self) -> Option<Ending> {
        self.state.lock().ending.clone()
    }
}
