//! Streamable HTTP: each message is a POST; the answer is JSON, or a stream that ends with it.

use std::{borrow::Cow, sync::Arc, time::Duration};

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    board::{Answer, Board},
    client::{Aside, Inbox},
    error::RequestError,
    http::{Asides, Field, Http, drain, is_event_stream, refusal},
    incoming::{Later, Returned, receive, returned},
    pool::Response,
    revision::Revision,
    sift::Message,
};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";
const LAST_EVENT: &str = "last-event-id";

/// A connection to a streamable HTTP server.
#[derive(Debug, Clone)]
pub(crate) struct Streamable {
    pub(crate) http: Http,
    pub(crate) board: Arc<Board>,
    pub(crate) inbox: Arc<dyn Inbox>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// What was negotiated; nothing while negotiating.
    pub(crate) revision: Option<Revision>,
    pub(crate) session: Option<HeaderValue>,
}

/// What a message says of itself in headers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct About<'a> {
    pub(crate) method: &'a str,
    pub(crate) name: Option<&'a str>,
    /// Arguments that stand in headers too.
    pub(crate) mirrored: &'a [(HeaderName, HeaderValue)],
    /// Whether somebody deals with what is put aside of the answer.
    pub(crate) aside: Aside,
}

impl Streamable {
    /// Posts a request and returns its answer, and the session that came with it.
    pub(crate) async fn request(
        &self,
        id: u64,
        about: About<'_>,
        frame: Bytes,
    ) -> (Answer, Option<HeaderValue>) {
        let asked = self.ask(id, about, &frame);
        tokio::select! {
            answered = asked => answered,
            () = self.stop.cancelled() => {
                let cause = "it was shut down".to_owned();
                (Err(RequestError::Lost { cause }), None)
            }
        }
    }

    async fn ask(&self, id: u64, about: About<'_>, frame: &[u8]) -> (Answer, Option<HeaderValue>) {
        let response = match self.post(about, frame).await {
            Ok(response) => response,
            Err(error) => {
                if let RequestError::Unreachable { cause } = &error {
                    self.board.close(cause);
                }
                return (Err(error), None);
            }
        };
        let session = response.fields.get(SESSION).and_then(|it| HeaderValue::from_bytes(it).ok());
        (self.answer(id, response, about.aside).await, session)
    }

    async fn post(&self, about: About<'_>, frame: &[u8]) -> Result<Response, RequestError> {
        let name = about.name.map(safe);
        let fields = self.fields(Some(about), name.as_deref());
        self.http.post(&self.http.url, frame, &fields).await
    }

    async fn answer(&self, id: u64, response: Response, aside: Aside) -> Answer {
        if response.status.as_u16() == 404 && self.session.is_some() {
            self.board.close_stale();
            return Err(RequestError::Stale);
        }
        if !response.status.is_success() {
            return Err(rpc_refusal(Box::pin(refusal(response)).await));
        }
        if is_event_stream(&response) {
            // Large: not a part of what every call carries along.
            return Box::pin(self.answer_in_stream(id, response, aside)).await;
        }
        if !response.fields.has_media_type("application/json") {
            let cause = "its answer is neither JSON nor an event stream".to_owned();
            return Err(RequestError::Malformed { cause });
        }
        let body = self.http.read_body(response, aside).await?;
        match returned(&body, id) {
            Returned::Answer(answer) => answer,
            Returned::Other => {
                let cause = "it answered another question".to_owned();
                Err(RequestError::Malformed { cause })
            }
        }
    }

    /// Reads a stream until the answer comes. Where it breaks off, a session can take it up again.
    async fn answer_in_stream(&self, id: u64, response: Response, aside: Aside) -> Answer {
        let mut events = self.http.read_events(response, Asides::Of(aside));
        let mut last_id: Option<String> = None;
        let mut pause = Duration::from_secs(1);
        loop {
            let ended = loop {
                let (event, message) = match events.next().await {
                    Ok(Some(told)) => told,
                    Ok(None) => break "the stream ended before the answer".to_owned(),
                    Err(RequestError::Lost { cause }) => break cause,
                    Err(error) => return Err(error),
                };
                last_id = event.id.or(last_id);
                pause = event.retry.map_or(pause, clamp);
                if message.text.is_empty() {
                    continue;
                }
                if let Returned::Answer(answer) = returned(&message, id) {
                    events.leave();
                    return answer;
                }
                self.take(&message, Some(id));
            };
            let (Some(last), Some(_)) = (&last_id, &self.session) else {
                return Err(RequestError::Lost { cause: ended });
            };
            tokio::time::sleep(pause).await;
            let mut fields = self.fields(None, None);
            fields.push((LAST_EVENT, last.as_bytes()));
            let resumed = self.http.events(&self.http.url, &fields, Asides::Of(aside)).await;
            events = resumed.ok().ok_or(RequestError::Lost { cause: ended })?;
        }
    }

    /// Posts a message that has no answer.
    pub(crate) async fn send(&self, about: About<'_>, frame: Bytes) -> Result<(), RequestError> {
        let response = self.post(about, &frame).await?;
        if !response.status.is_success() {
            return Err(refusal(response).await);
        }
        drain(response.body).await;
        Ok(())
    }

    /// Posts a message that nobody waits for.
    pub(crate) fn send_later(&self, method: &'static str, frame: Bytes) {
        let this = self.clone();
        self.tasks.spawn(async move {
            let sent = this.send(About { method, ..About::default() }, frame);
            if let Ok(Err(error)) = tokio::time::timeout(Duration::from_secs(5), sent).await {
                tracing::debug!(%error, "a note to a server was lost");
            }
        });
    }

    /// Posts the answer to a question of the server when it is known.
    fn answer_later(&self, answer: Later) {
        let Ok(room) = Arc::clone(&self.board.replies).try_acquire_owned() else {
            tracing::debug!("a question was left without an answer: too many are under way");
            return;
        };
        let this = self.clone();
        self.tasks.spawn(async move {
            let answered = async {
                let about = About { method: "response", ..About::default() };
                let sent = this.send(about, answer.await);
                if let Ok(Err(error)) = tokio::time::timeout(Duration::from_secs(5), sent).await {
                    tracing::debug!(%error, "an answer to a server was lost");
                }
            };
            tokio::select! {
                () = answered => {}
                () = this.stop.cancelled() => {}
            }
            drop(room);
        });
    }

    /// Closes connections that are no longer used, for as long as this one lasts.
    pub(crate) fn keep_tidy(&self) {
        let this = self.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = this.stop.cancelled() => {}
                _ = this.board.closed() => {}
                never = this.http.keep_tidy() => match never {},
            }
        });
    }

    /// Listens to what the server says of its own accord, for as long as the session lasts.
    pub(crate) fn listen(&self) {
        let this = self.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = this.stop.cancelled() => {}
                _ = this.board.closed() => {}
                () = this.listen_on() => {}
            }
        });
    }

    async fn listen_on(&self) {
        let mut last: Option<String> = None;
        let mut pause = Duration::from_secs(1);
        loop {
            let mut fields = self.fields(None, None);
            fields.extend(last.as_ref().map(|it| (LAST_EVENT, it.as_bytes())));
            match self.http.events(&self.http.url, &fields, Asides::Of(Aside::Unwanted)).await {
                Ok(mut events) => {
                    while let Ok(Some((event, message))) = events.next().await {
                        last = event.id.or(last);
                        pause = event.retry.map_or(pause, clamp);
                        if !message.text.is_empty() {
                            self.take(&message, None);
                        }
                    }
                }
                // Many servers have nothing to say of their own accord, and no other word for it.
                Err(RequestError::Http { status: 400..=405 | 501, .. }) => return,
                Err(RequestError::Unauthorized { .. } | RequestError::Malformed { .. }) => return,
                Err(RequestError::Unreachable { cause }) => self.board.close(&cause),
                Err(error) => {
                    tracing::debug!(%error, "a server does not let us listen just now");
                    pause = (pause * 2).min(Duration::from_secs(60));
                }
            }
            tokio::time::sleep(pause).await;
            // Something may have been said while nobody listened.
            self.inbox.notified("notifications/tools/list_changed", None);
        }
    }

    /// Takes a message that is not the awaited answer.
    fn take(&self, message: &Message, stream: Option<u64>) {
        match receive(message, stream, &self.board, &*self.inbox) {
            Ok(answers) => answers.into_iter().for_each(|it| self.answer_later(it)),
            Err(error) => tracing::warn!(%error, "not a message in a stream"),
        }
    }

    /// Ends the session.
    pub(crate) fn close(&self) {
        self.stop.cancel();
        self.board.close("it was shut down");
        if self.session.is_some() {
            let this = self.clone();
            self.tasks.spawn(async move {
                let fields = this.fields(None, None);
                let delete = this.http.delete(&this.http.url, &fields);
                drop(tokio::time::timeout(Duration::from_secs(2), delete).await);
            });
        }
    }

    /// What a message says in headers, `name` as it may stand in one.
    fn fields<'a>(&'a self, about: Option<About<'a>>, name: Option<&'a str>) -> Vec<Field<'a>> {
        let mut fields = Vec::with_capacity(6);
        if let Some(revision) = self.revision {
            fields.push((VERSION, revision.as_str().as_bytes()));
        }
        if let Some(session) = &self.session {
            fields.push((SESSION, session.as_bytes()));
        }
        let modern = self.revision == Some(Revision::V2026_07_28);
        if let Some(about) = about.filter(|_| modern) {
            fields.push((METHOD, about.method.as_bytes()));
            fields.extend(name.map(|it| (NAME, it.as_bytes())));
            let mirrored = about.mirrored.iter();
            fields.extend(mirrored.map(|(name, value)| (name.as_str(), value.as_bytes())));
        }
        fields
    }
}

/// A refusal whose body is a JSON-RPC error is that error.
fn rpc_refusal(error: RequestError) -> RequestError {
    let RequestError::Http { body, .. } = &error else { return error };
    match crate::Frame::read(body) {
        Ok(crate::Frame::Response { answer: Err(rpc), .. }) => RequestError::Rpc(rpc),
        _ => error,
    }
}

fn clamp(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds.clamp(10, 60_000))
}

/// A value as it may stand in a header: itself if that is plain ASCII, else its base64 form.
pub(crate) fn safe(value: &str) -> Cow<'_, str> {
    let visible = value.bytes().all(|b| matches!(b, 0x20..=0x7e));
    if visible && value.trim() == value && !value.starts_with("=?base64?") && !value.is_empty() {
        return value.into();
    }
    format!("=?base64?{}?=", STANDARD.encode(value)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_header_can_hold_is_sent_in_base64() {
        assert_eq!(safe("search"), "search");
        assert_eq!(safe("a\r\nX: 1"), "=?base64?YQ0KWDogMQ==?=");
        assert_eq!(safe(" é"), "=?base64?IMOp?=");
        assert_eq!(safe("=?base64?x?="), "=?base64?PT9iYXNlNjQ/eD89?=");
    }
}
