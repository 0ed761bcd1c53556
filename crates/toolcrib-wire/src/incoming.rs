//! What a server sends, and whom it concerns: who waits for an answer, who hears of progress, whom the
//! server asks.

use std::{pin::Pin, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio_util::sync::CancellationToken;

use crate::{
    board::{Answer, Board, Whose},
    client::{Inbox, Reply},
    error::RequestError,
    frame::{self, Frame, FrameError, INTERNAL_ERROR, Id, METHOD_NOT_FOUND, RpcError},
    json,
    revision::META_SUBSCRIPTION,
    sift::Message,
};

/// How long somebody may think about a question of a server.
const THINKING: Duration = Duration::from_secs(15 * 60);

/// What one message of a stream is to somebody who waits for request `id`.
pub(crate) enum Returned {
    Answer(Answer),
    Other,
}

/// Whether a message is the answer to request `id`.
pub(crate) fn returned(message: &Message, id: u64) -> Returned {
    if is_batch(&message.text) {
        let mut parts = batch(&message.text).into_iter().map(|it| returned(&it.into(), id));
        return parts.find(|it| matches!(it, Returned::Answer(_))).unwrap_or(Returned::Other);
    }
    match message.read() {
        Ok(Frame::Response { id: Some(it), answer }) if it.as_number() == Some(id) => {
            Returned::Answer(message.answer(answer))
        }
        Ok(Frame::Response { id: None, answer: Err(error) }) => {
            Returned::Answer(Err(RequestError::Rpc(error)))
        }
        Ok(_) => Returned::Other,
        Err(error) if error.id.as_ref().and_then(Id::as_number) == Some(id) => {
            Returned::Answer(Err(RequestError::Malformed { cause: error.to_string() }))
        }
        Err(_) => Returned::Other,
    }
}

/// Whether a text is a batch, as servers of 2025-03-26 may send them.
fn is_batch(text: &Bytes) -> bool {
    text.trim_ascii_start().first() == Some(&b'[') && json::scan(text, |_, _| ()).is_ok()
}

/// The messages of a batch. A batch in a batch is none.
fn batch(text: &Bytes) -> Vec<Bytes> {
    let parts = json::members(text).into_iter().map(|(_, range)| text.slice(range));
    parts.filter(|it| it.first() == Some(&b'{')).collect()
}

/// What goes back to a server, now or when it is known.
pub(crate) type Later = Pin<Box<dyn Future<Output = Bytes> + Send>>;

/// Hands a message to whom it concerns. `stream` is the request on whose stream it came, where requests
/// have streams of their own. Returns what to answer, if the server asked something.
pub(crate) fn receive(
    message: &Message,
    stream: Option<u64>,
    board: &Arc<Board>,
    inbox: &dyn Inbox,
) -> Result<Vec<Later>, FrameError> {
    if is_batch(&message.text) {
        let parts = batch(&message.text).into_iter();
        let replies = parts.filter_map(|it| receive(&it.into(), stream, board, inbox).ok());
        return Ok(replies.flatten().collect());
    }
    let number = |id: Option<&Id>| id.and_then(Id::as_number);
    match message.read() {
        Ok(Frame::Response { id, answer }) => {
            let known = number(id.as_ref());
            if !known.is_some_and(|id| board.answer(id, message.answer(answer))) {
                inbox.strayed();
            }
            Ok(Vec::new())
        }
        Ok(Frame::Notification { method, params }) => {
            notified(&method, params.as_ref(), stream, board, inbox);
            Ok(Vec::new())
        }
        Ok(Frame::Request { id, method, params }) => {
            Ok(vec![asked(id, &method, params.as_ref(), stream, board, inbox)])
        }
        Err(error) => {
            if let Some(id) = number(error.id.as_ref()) {
                board.answer(id, Err(RequestError::Malformed { cause: error.to_string() }));
            }
            Err(error)
        }
    }
}

fn notified(
    method: &str,
    params: Option<&Bytes>,
    stream: Option<u64>,
    board: &Board,
    inbox: &dyn Inbox,
) {
    match method {
        "notifications/progress" => progress(params, board),
        "notifications/cancelled" => {
            let id = params.and_then(|it| Some(it.slice(json::member(it, "requestId")?)));
            if let Some(id) = id.and_then(|it| Id::read(&it)) {
                board.take_back(&id);
            }
        }
        // What is said while a request is answered is for whoever asked it.
        "notifications/message" | "notifications/elicitation/complete" => {
            match board.whose(stream) {
                Whose::Of(_, listener) => listener.notified(method, params),
                Whose::Nobodys => inbox.notified(method, params),
                Whose::Unclear => {
                    tracing::debug!(method, "left out: several clients could be meant");
                }
            }
        }
        "notifications/subscriptions/acknowledged" => {
            if let Some(listener) = params.and_then(subscription).and_then(|id| board.listener(id))
            {
                listener.notified(method, params);
            }
        }
        _ => inbox.notified(method, params),
    }
}

/// Which of our requests a note of a subscription belongs to.
fn subscription(params: &Bytes) -> Option<u64> {
    let meta = &params[json::member(params, "_meta")?];
    let id = json::member(meta, META_SUBSCRIPTION)?;
    Id::read(&meta[id])?.as_number()
}

/// Hands progress to who asked for it, under its own token.
fn progress(params: Option<&Bytes>, board: &Board) {
    let Some(params) = params else { return };
    let token = json::member(params, "progressToken");
    let id = token.clone().and_then(|it| serde_json::from_slice(&params[it]).ok());
    if let (Some(at), Some((token, inbox))) = (token, id.and_then(|id| board.progress(id))) {
        let told = [&params[..at.start], &token, &params[at.end..]].concat();
        inbox.notified("notifications/progress", Some(&told.into()));
    }
}

/// The answer to a question of a server.
fn asked(
    id: Id,
    method: &str,
    params: Option<&Bytes>,
    stream: Option<u64>,
    board: &Arc<Board>,
    inbox: &dyn Inbox,
) -> Later {
    if method == "ping" {
        return now(frame::response(&id, Ok(b"{}")));
    }
    let whose = board.whose(stream);
    let of = match &whose {
        Whose::Of(of, _) => Some(*of),
        Whose::Nobodys => None,
        Whose::Unclear => {
            let message =
                format!("several clients are calling, and any could be meant by `{method}`");
            inbox.strayed();
            return now(refused(&id, INTERNAL_ERROR, message));
        }
    };
    let Some(taken_back) = board.ask(&id, of) else {
        let message = "too many questions are open, or the id is in use".to_owned();
        inbox.strayed();
        return now(refused(&id, INTERNAL_ERROR, message));
    };
    let reply = match whose {
        Whose::Of(_, listener) => listener.asked(method, params),
        _ => inbox.asked(method, params),
    };
    let Some(reply) = reply else {
        board.answered(&id);
        let message = format!("no client answers `{method}` just now");
        inbox.strayed();
        return now(refused(&id, METHOD_NOT_FOUND, message));
    };
    Box::pin(answer(id, reply, taken_back, Arc::clone(board)))
}

async fn answer(id: Id, reply: Reply, taken_back: CancellationToken, board: Arc<Board>) -> Bytes {
    let gone =
        |message: &str| RpcError { code: INTERNAL_ERROR, message: message.to_owned(), data: None };
    let answer = tokio::select! {
        answer = reply => answer,
        () = taken_back.cancelled() => Err(gone("the request that this belongs to has ended")),
        _ = board.closed() => Err(gone("the connection has ended")),
        () = tokio::time::sleep(THINKING) => Err(gone("nobody answered in time")),
    };
    board.answered(&id);
    frame::response(&id, answer.as_deref())
}

fn now(text: Bytes) -> Later {
    Box::pin(std::future::ready(text))
}

fn refused(id: &Id, code: i64, message: String) -> Bytes {
    frame::response(id, Err(&RpcError { code, message, data: None }))
}
