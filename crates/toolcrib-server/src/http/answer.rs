//! The answer to one request on `/mcp`: JSON where nothing comes before it, else a stream that ends with
//! it. And the streams on which clients hear what belongs to no request.

use std::sync::Arc;

use bytes::Bytes;
use http::{Response, StatusCode};
use toolcrib_catalogue::Listener;
use toolcrib_wire::{
    Era, Fields, Id, RpcError,
    frame::{METHOD_NOT_FOUND, notification, response, response_pieces},
};

use super::{
    Door,
    body::{Body, events},
    streamable::{busy, unknown_session},
    typed,
};
use crate::{
    access::Caller,
    calling::making,
    changes::{SeenLists, Wanted, listen_ended, subscribed},
    dispatch::{self, Asked},
    session::Session,
    spans::Trace,
    stream::{KEEP_ALIVE, Keeping, Stream},
    visit::{Asker, Out},
};

/// One request.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) caller: Caller,
    /// In the legacy era.
    pub(super) session: Option<Arc<Session>>,
    pub(super) id: Id,
    pub(super) method: String,
    pub(super) params: Option<Bytes>,
    /// Whether the client takes a stream.
    pub(super) streams: bool,
    pub(super) trace: Trace,
}

/// How a request ended.
enum Ended {
    Answered(Id, Result<Bytes, RpcError>),
    /// The client took it back.
    Cancelled(Id),
    /// The session is over, or the client is no longer let in.
    Expelled,
    /// Its id is in use.
    Busy(Id),
}

impl Door {
    /// Answers a request. What the answer looks like shows when the first thing is there to be said.
    pub(super) async fn respond(self: &Arc<Self>, call: Call) -> Response<Body> {
        let (session, streams) = (call.session.clone(), call.streams);
        let stream = match &session {
            Some(session) => session.stream(),
            None => Stream::new(0, Keeping::Unread),
        };
        let stream = Arc::new(stream);
        let out = if streams { Out::Stream(Arc::clone(&stream)) } else { Out::Nowhere };
        let mut work = Box::pin(Arc::clone(self).work(call, out));
        let ended = tokio::select! {
            biased;
            ended = &mut work => Some(ended),
            () = stream.spoken() => None,
            // Whoever stands between may think that the connection is dead.
            () = tokio::time::sleep(KEEP_ALIVE), if streams => None,
        };
        let ended = match ended {
            Some(ended) if !stream.has_spoken() => return whole(ended, session.is_none()),
            ended => ended,
        };
        if let Some(session) = &session {
            session.keep(&stream);
        }
        let receiver = stream.read(None);
        self.gateway.tasks.spawn(async move {
            let ended = match ended {
                Some(ended) => Some(ended),
                None => tokio::select! {
                    ended = work => Some(ended),
                    () = stream.abandoned() => None,
                },
            };
            // When there is room: what was said before may be all that can wait.
            stream.end(ended.and_then(Ended::last_word)).await;
        });
        events(receiver)
    }

    async fn work(self: Arc<Self>, call: Call, out: Out) -> Ended {
        let Call { caller, session, id, method, params, trace, .. } = call;
        let Some(session) = session else {
            let listener = Arc::new(Asker::modern(out, params.as_ref())) as Arc<dyn Listener>;
            let asked = Asked {
                caller: caller.clone(),
                era: Era::Modern,
                method: &method,
                params,
                listener: Some(listener),
                visit: None,
                depth: 0,
                attempt: None,
                trace,
            };
            return tokio::select! {
                answer = dispatch::answer(&self.gateway, asked) => Ended::Answered(id, answer),
                () = self.gateway.expelled(&caller) => Ended::Expelled,
            };
        };
        let Some(flight) = session.in_flight.begin(&id) else { return Ended::Busy(id) };
        let visit = Arc::clone(&session.visit);
        let listener = Arc::new(Asker::legacy(out, Arc::clone(&visit))) as Arc<dyn Listener>;
        let asked = Asked {
            caller: caller.clone(),
            era: Era::Legacy,
            method: &method,
            params,
            listener: Some(listener),
            visit: Some(visit),
            depth: 0,
            attempt: None,
            trace,
        };
        tokio::select! {
            answer = dispatch::answer(&self.gateway, asked) => Ended::Answered(id, answer),
            () = flight.cancelled.cancelled() => Ended::Cancelled(id),
            () = session.visit.ended.cancelled() => Ended::Expelled,
            () = self.gateway.expelled(&caller) => Ended::Expelled,
        }
    }

    /// The stream on which a legacy client hears what belongs to no request, or one of a request that
    /// it takes up again.
    pub(super) fn listen(self: &Arc<Self>, caller: &Caller, headers: &Fields) -> Response<Body> {
        let session = match self.session(caller, headers) {
            Ok(session) => session,
            Err(refused) => return *refused,
        };
        let place = headers.text("last-event-id").and_then(Stream::place);
        if let Some((id, seen)) = place.filter(|(id, _)| *id != session.own.id()) {
            return match session.kept(id) {
                Some(stream) => events(stream.read(Some(seen))),
                None => events(Stream::ended()),
            };
        }
        let replaced = session.listen();
        let receiver = session.own.read(place.map(|(_, seen)| seen));
        let (this, caller) = (Arc::clone(self), caller.clone());
        self.gateway.tasks.spawn(async move {
            let own = &session.own;
            let note = |method: &str| Some(notification(method, None));
            let seen = session.seen.lock().clone();
            let lists = SeenLists::since(&this.gateway, &caller, seen);
            tokio::select! {
                // Somebody else reads now.
                () = replaced.cancelled() => {
                    if !session.visit.ended.is_cancelled() {
                        return;
                    }
                }
                () = this.gateway.stop.cancelled() => {}
                () = this.gateway.expelled(&caller) => {}
                () = tell(lists, own, note) => {}
                () = own.abandoned() => {}
            }
            own.cut();
            *session.seen.lock() = this.gateway.snapshot().lists(&caller);
        });
        events(receiver)
    }

    /// The stream on which a modern client hears of changes.
    pub(super) async fn subscribe(
        self: &Arc<Self>,
        caller: Caller,
        id: Id,
        mut wanted: Wanted,
    ) -> Response<Body> {
        let stream = Arc::new(Stream::new(0, Keeping::Unread));
        let out = Out::Stream(Arc::clone(&stream));
        let gateway = Arc::clone(&self.gateway);
        let watched = wanted.watch(&gateway, &caller, &id, &out, None).await;
        stream.say(wanted.acknowledged(&id), true);
        let receiver = stream.read(None);
        self.gateway.tasks.spawn(async move {
            let lists = SeenLists::new(&gateway, &caller);
            let note = |method: &str| wanted.wants(method).then(|| subscribed(&id, method));
            let end = tokio::select! {
                () = tell(lists, &stream, note) => None,
                () = stream.abandoned() => None,
                () = gateway.expelled(&caller) => None,
                () = gateway.stop.cancelled() => Some(listen_ended(&id)),
            };
            drop(watched);
            stream.finish(end.map(|it| response(&id, Ok(it.as_bytes()))));
        });
        events(receiver)
    }
}

impl Ended {
    /// What is said on a stream at last. A request that was taken back is not answered there.
    fn last_word(self) -> Option<Bytes> {
        match self {
            Self::Answered(id, answer) => Some(response(&id, answer.as_deref())),
            Self::Cancelled(_) | Self::Expelled | Self::Busy(_) => None,
        }
    }
}

/// The answer to a request on which nothing was said before.
fn whole(ended: Ended, modern: bool) -> Response<Body> {
    let (id, answer) = match ended {
        Ended::Answered(id, answer) => (id, answer),
        Ended::Cancelled(id) => (id, Err(dispatch::cancelled())),
        Ended::Expelled => return unknown_session(),
        Ended::Busy(id) => return busy(&id),
    };
    let status = match &answer {
        Err(RpcError { code: METHOD_NOT_FOUND, .. }) if modern => StatusCode::NOT_FOUND,
        Err(RpcError { code: -32022..=-32020, .. }) if modern => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    };
    let wait = answer.as_ref().ok().and_then(|it| making::wait(it));
    let body = match answer {
        Ok(result) => Body::Whole(response_pieces(&id, result)),
        Err(error) => Body::whole(response(&id, Err(&error))),
    };
    let mut response = typed(status, "application/json", body);
    if let Some(wait) = wait {
        response.headers_mut().insert(http::header::RETRY_AFTER, wait.into());
    }
    response
}

/// Says on a stream which of a caller's lists change.
async fn tell(mut lists: SeenLists<'_>, stream: &Stream, note: impl Fn(&str) -> Option<Bytes>) {
    loop {
        let changed = lists.changed().await;
        if changed.is_empty() {
            return;
        }
        for text in changed.into_iter().filter_map(&note) {
            stream.say(text, true);
        }
    }
}
