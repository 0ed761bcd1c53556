//! Who waits for which answer.

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;

use crate::{
    client::{Answered, Aside, Inbox},
    error::RequestError,
    frame::Id,
};

pub(crate) type Answer = Result<Answered, RequestError>;

/// The requests of one connection that have no answer yet, and whether any can still come.
#[derive(Debug)]
pub(crate) struct Board {
    state: Mutex<State>,
    closed: CancellationToken,
    /// For answers to the server that are under way; more are not given.
    pub(crate) replies: Arc<Semaphore>,
}

/// More answers to one server than this are not under way at the same time: open questions, and as many
/// more.
const MAX_REPLIES: usize = 2 * MAX_QUESTIONS;

impl Default for Board {
    fn default() -> Self {
        let replies = Arc::new(Semaphore::new(MAX_REPLIES));
        Self { state: Mutex::default(), closed: CancellationToken::new(), replies }
    }
}

#[derive(Debug, Default)]
struct State {
    waiting: HashMap<u64, Waiting>,
    listening: HashMap<u64, Listener>,
    questions: HashMap<Id, Question>,
    /// Requests that were taken back and that the server has not answered: it may still speak of them.
    left: HashMap<u64, u64>,
    ending: Option<Ending>,
}

/// Somebody who waits for an answer.
#[derive(Debug)]
struct Waiting {
    sender: oneshot::Sender<Answer>,
    aside: Aside,
}

/// Who wants to hear how a request goes on, and by which token for progress it knows the request.
#[derive(Debug, Clone)]
pub(crate) struct Listener {
    pub(crate) token: Option<Bytes>,
    /// Nobody, where only it matters whose request it is.
    pub(crate) inbox: Option<Arc<dyn Inbox>>,
    /// Whose request it is; nobody's where it is our own.
    pub(crate) client: Option<u64>,
}

/// Something that the server has asked and nobody has answered yet.
#[derive(Debug)]
struct Question {
    /// The request that it belongs to.
    of: Option<u64>,
    taken_back: CancellationToken,
}

/// Whom something that a server says concerns.
#[derive(Debug)]
pub(crate) enum Whose {
    /// Whoever sent this request.
    Of(u64, Arc<dyn Inbox>),
    /// Nobody has a request open.
    Nobodys,
    /// Several have.
    Unclear,
}

/// Of more requests than this that were taken back nobody keeps count.
const MAX_LEFT: usize = 1_024;

/// More questions of one server than this are not open at the same time.
const MAX_QUESTIONS: usize = 64;

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
    pub(crate) fn wait_for(
        &self,
        id: u64,
        aside: Aside,
    ) -> Result<oneshot::Receiver<Answer>, String> {
        let mut state = self.state.lock();
        if let Some(ending) = &state.ending {
            return Err(ending.cause.clone());
        }
        let (sender, receiver) = oneshot::channel();
        state.waiting.insert(id, Waiting { sender, aside });
        Ok(receiver)
    }

    /// Whether anybody waits who deals with what is put aside of a large answer.
    pub(crate) fn wants_aside(&self) -> bool {
        self.state.lock().waiting.values().any(|it| it.aside == Aside::Wanted)
    }

    /// Somebody wants to hear how request `id` goes on.
    pub(crate) fn listen(&self, id: u64, listener: Listener) {
        self.state.lock().listening.insert(id, listener);
    }

    /// Who asked to hear of the progress of request `id`, and by which token.
    pub(crate) fn progress(&self, id: u64) -> Option<(Bytes, Arc<dyn Inbox>)> {
        let state = self.state.lock();
        let listener = state.listening.get(&id)?;
        Some((listener.token.clone()?, listener.inbox.clone()?))
    }

    /// Who listens to request `id`.
    pub(crate) fn listener(&self, id: u64) -> Option<Arc<dyn Inbox>> {
        self.state.lock().listening.get(&id).and_then(|it| it.inbox.clone())
    }

    /// Whom something concerns that came on the stream of a request, or on one that all share. In that
    /// case it must not reach one client when another may be meant.
    pub(crate) fn whose(&self, stream: Option<u64>) -> Whose {
        let state = self.state.lock();
        let of = |(id, it): (&u64, &Listener)| Some(Whose::Of(*id, it.inbox.clone()?));
        if let Some(found) = stream.and_then(|id| state.listening.get_key_value(&id)) {
            return of(found).unwrap_or(Whose::Unclear);
        }
        let open = state.listening.values().filter_map(|it| it.client);
        let mut clients = open.chain(state.left.values().copied());
        let Some(first) = clients.next() else { return Whose::Nobodys };
        if MAX_LEFT <= state.left.len() || clients.any(|it| it != first) {
            return Whose::Unclear;
        }
        let mut own = state.listening.iter().filter(|(_, it)| it.client == Some(first));
        own.find_map(of).unwrap_or(Whose::Unclear)
    }

    /// The server asks something; the token is cancelled when it no longer wants to know, or the request
    /// that it belongs to has ended. None where too much is open.
    pub(crate) fn ask(&self, id: &Id, of: Option<u64>) -> Option<CancellationToken> {
        let mut state = self.state.lock();
        let over = of.is_some_and(|it| !state.listening.contains_key(&it));
        if over || MAX_QUESTIONS <= state.questions.len() || state.questions.contains_key(id) {
            return None;
        }
        let taken_back = CancellationToken::new();
        let question = Question { of, taken_back: taken_back.clone() };
        state.questions.insert(id.clone(), question);
        Some(taken_back)
    }

    /// A question has its answer.
    pub(crate) fn answered(&self, id: &Id) {
        self.state.lock().questions.remove(id);
    }

    /// The server takes a question back.
    pub(crate) fn take_back(&self, id: &Id) {
        if let Some(question) = self.state.lock().questions.get(id) {
            question.taken_back.cancel();
        }
    }

    /// Whether the server waits for an answer before it answers request `id`.
    pub(crate) fn is_asked(&self, id: u64) -> bool {
        self.state.lock().questions.values().any(|it| it.of == Some(id))
    }

    /// Nobody waits for request `id` any more.
    pub(crate) fn forget(&self, id: u64) {
        let mut state = self.state.lock();
        state.waiting.remove(&id);
        state.listening.remove(&id);
        for question in state.questions.values().filter(|it| it.of == Some(id)) {
            question.taken_back.cancel();
        }
    }

    /// Request `id` is taken back, on a stream on which the server may still speak of it.
    pub(crate) fn leave(&self, id: u64) {
        let mut state = self.state.lock();
        let client = state.listening.get(&id).and_then(|it| it.client);
        if let Some(client) = client.filter(|_| state.left.len() < MAX_LEFT) {
            state.left.insert(id, client);
        }
    }

    /// Hands an answer to whoever waits for it; late and unasked ones fall on the floor. Returns whether somebody did.
    pub(crate) fn answer(&self, id: u64, answer: Answer) -> bool {
        let waiting = {
            let mut state = self.state.lock();
            state.left.remove(&id);
            state.waiting.remove(&id)
        };
        // The receiver may have gone away in this moment; then nobody wants the answer.
        waiting.is_some_and(|it| it.sender.send(answer).is_ok())
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
        for Waiting { sender, .. } in waiting.into_values() {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Deaf;

    impl Inbox for Deaf {
        fn notified(&self, _method: &str, _params: Option<&Bytes>) {}
    }

    fn listen(board: &Board, id: u64, client: Option<u64>, hears: bool) {
        let inbox = hears.then(|| Arc::new(Deaf) as Arc<dyn Inbox>);
        board.listen(id, Listener { token: None, inbox, client });
    }

    #[track_caller]
    fn check(board: &Board, stream: Option<u64>, expected: &str) {
        let found = match board.whose(stream) {
            Whose::Of(id, _) => id.to_string(),
            Whose::Nobodys => "nobody's".to_owned(),
            Whose::Unclear => "unclear".to_owned(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn what_a_server_says_reaches_only_whom_it_must_mean() {
        let board = Board::default();
        check(&board, None, "nobody's");
        listen(&board, 1, None, true);
        check(&board, None, "nobody's");
        listen(&board, 2, Some(7), true);
        check(&board, None, "2");
        // A request of another counts, also where nobody listens to it.
        listen(&board, 3, Some(8), false);
        check(&board, None, "unclear");
        check(&board, Some(2), "2");
        // So does one that was taken back, until the server has answered it.
        board.leave(3);
        board.forget(3);
        check(&board, None, "unclear");
        board.answer(3, Ok(Bytes::new().into()));
        check(&board, None, "2");
    }

    #[test]
    fn a_question_ends_with_its_request_and_none_begins_after() {
        let board = Board::default();
        listen(&board, 2, Some(7), true);
        let open = board.ask(&Id::number(1), Some(2)).unwrap();
        assert!(board.ask(&Id::number(1), Some(2)).is_none() && board.is_asked(2));
        board.forget(2);
        assert!(open.is_cancelled());
        assert!(board.ask(&Id::number(3), Some(2)).is_none());
    }
}
