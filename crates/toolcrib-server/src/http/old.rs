//! `/sse` and `/messages`: HTTP+SSE, as 2024-11-05 had it. A stream that begins with an address, and
//! messages posted to that address, whose answers come on the stream.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use hyper::body::Incoming;
use tokio_util::sync::CancellationToken;
use toolcrib_wire::{Fields, Frame};

use super::{
    Door,
    body::{Body, events},
    plain,
};
use crate::{
    access::{Access, Caller},
    queue::queue,
    session::random_id,
    stdio::Conversation,
    stream::Event,
};

const QUEUE: usize = 64;

/// More old clients than this are not let in.
const MAX_OLD: usize = 10_000;

/// One old client.
#[derive(Debug)]
pub(crate) struct OldSession {
    caller: Caller,
    conversation: Arc<Conversation>,
    ended: CancellationToken,
}

impl OldSession {
    /// Whether its stream is open and its token good; if not, it ends.
    pub(super) fn is_open(&self, access: &Access) -> bool {
        if !access.still_good(&self.caller) {
            self.ended.cancel();
        }
        !self.ended.is_cancelled()
    }
}

impl Door {
    pub(super) fn open_old(self: &Arc<Self>, caller: Caller) -> Response<Body> {
        let Some(id) = random_id().filter(|_| self.old.lock().len() < MAX_OLD) else {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "too many sessions\n");
        };
        // What waits, waits in one place: the second queue is no more than a hand to the body.
        let (sender, receiver) = queue(1);
        let (out, mut outgoing) = queue::<Bytes>(QUEUE);
        let gateway = Arc::clone(&self.gateway);
        let conversation = Conversation::new(gateway, caller.clone(), out, None);
        let ended = conversation.ended.clone();
        let session =
            Arc::new(OldSession { caller: caller.clone(), conversation, ended: ended.clone() });
        self.old.lock().insert(id.clone(), session);
        let this = Arc::clone(self);
        self.gateway.tasks.spawn(async move {
            let first = Event::Endpoint(format!("/messages?session={id}"));
            sender.send(first).await.ok();
            loop {
                let event = tokio::select! {
                    text = outgoing.recv() => match text {
                        Some(text) => Event::Message(text),
                        None => break,
                    },
                    () = tokio::time::sleep(std::time::Duration::from_secs(15)) => Event::KeepAlive,
                    () = sender.closed() => break,
                    () = ended.cancelled() => break,
                    () = this.gateway.expelled(&caller) => break,
                    () = this.gateway.stop.cancelled() => break,
                };
                let sent = tokio::select! {
                    sent = sender.send(event) => sent.is_ok(),
                    () = ended.cancelled() => false,
                    () = this.gateway.expelled(&caller) => false,
                    () = this.gateway.stop.cancelled() => false,
                };
                if !sent {
                    break;
                }
            }
            ended.cancel();
            this.old.lock().remove(&id);
        });
        events(receiver)
    }

    pub(super) async fn take_old(
        self: &Arc<Self>,
        caller: Caller,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let query = request.uri().query().unwrap_or_default();
        let id = query.split('&').find_map(|it| it.strip_prefix("session="));
        let session = id.and_then(|id| self.old.lock().get(id).cloned());
        let Some(session) = session.filter(|it| it.caller == caller) else {
            return plain(StatusCode::NOT_FOUND, "there is no such session\n");
        };
        let (head, body) = request.into_parts();
        match self.read(&Fields::from(&head.headers), body).await {
            // Answers of the client and what it takes back always get in.
            Ok(body) if !session.conversation.has_room() && asks(&body) => {
                plain(StatusCode::SERVICE_UNAVAILABLE, "too many requests wait\n")
            }
            Ok(body) => {
                session.conversation.take(&body).await;
                plain(StatusCode::ACCEPTED, "accepted\n")
            }
            Err(refused) => *refused,
        }
    }
}

/// Whether a message is a request, or several.
fn asks(body: &Bytes) -> bool {
    !matches!(Frame::read(body), Ok(Frame::Notification { .. } | Frame::Response { .. }))
}
