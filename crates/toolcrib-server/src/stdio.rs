//! The door on standard input and output, and conversations in which answers come back on one stream.
//!
//! A [`Conversation`] also serves the old HTTP+SSE transport: there, too, requests come one by one and
//! answers go out on a stream, in whatever order they are ready.

use std::{
    pin::pin,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use serde_json::json;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    sync::Semaphore,
};
use tokio_util::{sync::CancellationToken, task::AbortOnDropHandle};
use toolcrib_catalogue::{Listener, Visitor};
use toolcrib_wire::{
    Era, Frame, FrameFault, Id, RpcError,
    frame::{INTERNAL_ERROR, notification, one_line, response},
    json, modern,
    revision::META_VERSION,
    standard_input, standard_output,
};

use crate::{
    access::Caller,
    changes::{SeenLists, Wanted, listen_ended, subscribed},
    dispatch::{self, Asked},
    gateway::{Gateway, ROOTS_CHANGED},
    queue::{Sender, queue},
    session::InFlight,
    spans::{Came, Trace},
    visit::{Asker, Here, Out, Visit},
    words::{INVALID_REQUEST, PARSE_ERROR},
};

/// How many messages may wait to be written.
const QUEUE: usize = 256;

/// How many requests of one client are answered at the same time.
const ROOM: usize = 1_024;

/// More messages than this do not make a batch.
const MAX_BATCH: usize = 100;

/// How long a client may not read before it is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// So much is written at a time, so that it shows whether a client reads at all.
const PART: usize = 64 * 1024;

/// How long requests get to be answered when we are told to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// How long the last lines may take to be written.
const LAST_LINES: Duration = Duration::from_secs(2);

/// The longest message that is read.
const MAX_LINE: usize = 4 * 1024 * 1024;

/// One client that talks on one stream.
#[derive(Debug)]
pub(crate) struct Conversation {
    gateway: Arc<Gateway>,
    caller: Caller,
    out: Sender<Bytes>,
    /// How often something could be written. Without it, whoever writes sees itself to a client that
    /// does not read.
    written: Option<Arc<AtomicU64>>,
    in_flight: InFlight,
    visit: Arc<Visit>,
    /// Set once a legacy client has shaken hands: from then on it hears of changes.
    greeted: OnceLock<()>,
    pub(crate) ended: CancellationToken,
    /// For requests that are being answered; more are not taken.
    room: Arc<Semaphore>,
}

impl Conversation {
    pub(crate) fn new(
        gateway: Arc<Gateway>,
        caller: Caller,
        out: Sender<Bytes>,
        written: Option<Arc<AtomicU64>>,
    ) -> Arc<Self> {
        let (in_flight, greeted) = (InFlight::default(), OnceLock::new());
        let room = Arc::new(Semaphore::new(ROOM));
        let visit = gateway.visit(caller.clone(), Out::Queue(out.clone()));
        let ended = visit.ended.clone();
        Arc::new(Self { gateway, caller, out, written, in_flight, visit, greeted, ended, room })
    }

    /// Whether a further request would be answered.
    pub(crate) fn has_room(&self) -> bool {
        0 < self.room.available_permits()
    }

    /// Takes one message, or a batch of them; the answer goes out when it is ready.
    pub(crate) async fn take(self: &Arc<Self>, text: &Bytes) {
        let batch = text.trim_ascii_start().first() == Some(&b'[');
        if !batch || json::scan(text, |_, _| ()).is_err() {
            self.take_one(text).await;
            return;
        }
        let parts = json::members(text);
        if parts.is_empty() || MAX_BATCH < parts.len() {
            let fault = FrameFault::Envelope("a batch has 1 to 100 messages");
            self.say(null_response(&refusal(&fault))).await;
            return;
        }
        // Each element is answered by itself, which a client cannot tell from a batch.
        for (_, range) in parts {
            self.take_one(&text.slice(range)).await;
        }
    }

    async fn take_one(self: &Arc<Self>, text: &Bytes) {
        match Frame::read(text) {
            Ok(Frame::Request { id, method, params }) => {
                // Refused rather than left waiting: what comes after it may be an answer of the client,
                // without which nothing here would end.
                let Ok(room) = Arc::clone(&self.room).try_acquire_owned() else {
                    let message = "too many requests wait".to_owned();
                    let error = RpcError { code: INTERNAL_ERROR, message, data: None };
                    self.say(response(&id, Err(&error))).await;
                    return;
                };
                let this = Arc::clone(self);
                self.gateway.tasks.spawn(async move {
                    tokio::select! {
                        () = this.ended.cancelled() => {}
                        () = this.answer(id, &method, params) => {}
                    }
                    drop(room);
                });
            }
            Ok(Frame::Notification { method, params }) => self.notified(&method, params.as_ref()),
            Ok(Frame::Response { id, answer }) => self.visit.answered(id.as_ref(), answer),
            Err(error) => {
                let answer = refusal(&error.fault);
                let text = match &error.id {
                    Some(id) => response(id, Err(&answer)),
                    None => null_response(&answer),
                };
                self.say(text).await;
            }
        }
    }

    async fn answer(self: &Arc<Self>, id: Id, method: &str, params: Option<Bytes>) {
        if method == "initialize" {
            let answer = dispatch::initialize(&self.gateway, params.as_ref());
            if answer.is_ok() {
                self.visit.greeted(params.as_ref());
            }
            let answer = answer.as_ref().map(|(result, _)| &**result);
            self.say(response(&id, answer)).await;
            return;
        }
        let era = if is_modern(params.as_ref()) { Era::Modern } else { Era::Legacy };
        if era == Era::Modern
            && let Err(error) = modern::check_meta(params.as_ref())
        {
            self.say(response(&id, Err(&error))).await;
            return;
        }
        if method == "subscriptions/listen" && era == Era::Modern {
            self.listen(&id, Wanted::read(params.as_ref())).await;
            return;
        }
        let Some(flight) = self.in_flight.begin(&id) else {
            self.say(response(&id, Err(&in_use()))).await;
            return;
        };
        let out = Out::Queue(self.out.clone());
        let asker = match era {
            Era::Modern => Asker::modern(out, params.as_ref()),
            Era::Legacy => Asker::legacy(out, Arc::clone(&self.visit)),
        };
        let transport = if self.written.is_some() { "pipe" } else { "tcp" };
        let tracer = self.gateway.tracer.as_ref();
        let trace = tracer.map(|_| Trace::of(Came::over(transport, &id))).unwrap_or_default();
        let asked = Asked {
            caller: self.caller.clone(),
            era,
            method,
            params,
            listener: Some(Arc::new(asker) as Arc<dyn Listener>),
            visit: Some(Arc::clone(&self.visit)),
            depth: 0,
            attempt: None,
            trace,
        };
        let answer = tokio::select! {
            answer = dispatch::answer(&self.gateway, asked) => answer,
            // A request that was taken back is not answered.
            () = flight.cancelled.cancelled() => return,
        };
        self.say(response(&id, answer.as_deref())).await;
    }

    fn notified(self: &Arc<Self>, method: &str, params: Option<&Bytes>) {
        match method {
            "notifications/cancelled" => {
                if let Some(id) = cancelled_id(params) {
                    self.in_flight.cancel(&id);
                }
            }
            "notifications/roots/list_changed" => {
                self.gateway.tell(ROOTS_CHANGED, &self.visit);
            }
            "notifications/initialized" if self.greeted.set(()).is_ok() => {
                let this = Arc::clone(self);
                self.gateway.tasks.spawn(async move {
                    tokio::select! {
                        () = this.ended.cancelled() => {}
                        () = this.gateway.stop.cancelled() => {}
                        () = this.tell_changes() => {}
                    }
                });
            }
            _ => {}
        }
    }

    /// Tells a legacy client whenever its lists change.
    async fn tell_changes(&self) {
        let mut lists = SeenLists::new(&self.gateway, &self.caller);
        loop {
            let changed = lists.changed().await;
            if changed.is_empty() {
                return;
            }
            for method in changed {
                self.say(notification(method, None)).await;
            }
        }
    }

    /// Tells a modern client whenever its lists change, until it takes the request back.
    async fn listen(&self, id: &Id, mut wanted: Wanted) {
        let Some(flight) = self.in_flight.begin(id) else {
            self.say(response(id, Err(&in_use()))).await;
            return;
        };
        let mut lists = SeenLists::new(&self.gateway, &self.caller);
        let out = Out::Queue(self.out.clone());
        let visitor = Some(Arc::new(Here(Arc::clone(&self.visit))) as Arc<dyn Visitor>);
        let _watched = wanted.watch(&self.gateway, &self.caller, id, &out, visitor).await;
        self.say(wanted.acknowledged(id)).await;
        let told = async {
            loop {
                let changed = lists.changed().await;
                if changed.is_empty() {
                    return;
                }
                for method in changed.into_iter().filter(|it| wanted.wants(it)) {
                    self.say(subscribed(id, method)).await;
                }
            }
        };
        tokio::select! {
            () = told => {}
            () = flight.cancelled.cancelled() => return,
            () = self.gateway.stop.cancelled() => {}
        }
        self.say(response(id, Ok(listen_ended(id).as_bytes()))).await;
    }

    async fn say(&self, text: Bytes) {
        // Nearly always there is room.
        if self.out.has_room(text.len()) && self.out.try_send(text.clone()).is_ok() {
            return;
        }
        let sent = self.out.send(text);
        tokio::pin!(sent);
        let Some(written) = &self.written else {
            sent.await.ok();
            return;
        };
        // A client that is gone hears nothing, and one that does not read is gone; one that is slow is not.
        loop {
            let before = written.load(Ordering::Relaxed);
            if tokio::time::timeout(PATIENCE, &mut sent).await.is_ok() {
                return;
            }
            if before == written.load(Ordering::Relaxed) {
                self.ended.cancel();
                return;
            }
        }
    }
}

pub(crate) fn in_use() -> RpcError {
    let message = "the id is in use, or too many requests wait".to_owned();
    RpcError { code: INVALID_REQUEST, message, data: None }
}

/// Whether a request says of itself that it is modern.
pub(crate) fn is_modern(params: Option<&Bytes>) -> bool {
    let Some(params) = params else { return false };
    let meta = json::member(params, "_meta").map(|it| params.slice(it));
    meta.is_some_and(|it| json::member(&it, META_VERSION).is_some())
}

/// Which request a `notifications/cancelled` means.
pub(crate) fn cancelled_id(params: Option<&Bytes>) -> Option<Id> {
    let params = params?;
    let id = json::member(params, "requestId")?;
    Id::read(&params[id])
}

/// What to answer to something that is no message.
pub(crate) fn refusal(fault: &FrameFault) -> RpcError {
    let code = match fault {
        FrameFault::Json(_) => PARSE_ERROR,
        FrameFault::Envelope(_) => INVALID_REQUEST,
    };
    RpcError { code, message: fault.to_string(), data: None }
}

/// An error that answers nobody in particular.
pub(crate) fn null_response(error: &RpcError) -> Bytes {
    let error = json!({ "code": error.code, "message": error.message });
    json!({ "jsonrpc": "2.0", "id": null, "error": error }).to_string().into()
}

/// Serves one client on standard input and output until the input ends.
pub async fn serve_stdio(gateway: &Arc<Gateway>, caller: Caller) {
    let this = Arc::clone(gateway);
    // Beside those whom it asks and is asked by, and not on the thread that waits for all to end.
    let serving = gateway.tasks.spawn(async move {
        serve_lines(&this, caller, standard_input(), standard_output()).await;
    });
    AbortOnDropHandle::new(serving).await.ok();
}

/// Serves one client that sends and gets a message a line, until its lines end.
pub async fn serve_lines(
    gateway: &Arc<Gateway>,
    caller: Caller,
    input: impl AsyncRead + Unpin,
    mut output: impl AsyncWrite + Unpin + Send + 'static,
) {
    let (out, mut outgoing) = queue::<Bytes>(QUEUE);
    let written = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&written);
    let writer = gateway.tasks.spawn(async move {
        while let Some(text) = outgoing.recv().await {
            let line = [&*one_line(text), b"\n"].concat();
            for part in line.chunks(PART) {
                if output.write_all(part).await.is_err() {
                    return;
                }
                counted.fetch_add(1, Ordering::Relaxed);
            }
            if output.flush().await.is_err() {
                return;
            }
        }
    });
    let conversation = Conversation::new(Arc::clone(gateway), caller, out, Some(written));
    let ended = conversation.ended.clone();
    let mut input = BufReader::new(input);
    let mut over = pin!(async {
        tokio::select! {
            () = gateway.stop.cancelled() => {}
            () = ended.cancelled() => {}
        }
    });
    loop {
        let mut line = Vec::new();
        let read = tokio::select! {
            read = read_line(&mut input, &mut line) => read,
            () = &mut over => break,
        };
        match read {
            Ok(0) | Err(_) => break,
            Ok(_) if line.trim_ascii().is_empty() => {}
            Ok(_) => {
                let line = line.into();
                tokio::select! {
                    () = conversation.take(&line) => {}
                    () = &mut over => break,
                }
            }
        }
    }
    // Whoever closes the input no longer waits for answers. Where we are told to stop, somebody does.
    if gateway.stop.is_cancelled() {
        let all = u32::try_from(ROOM).unwrap_or(u32::MAX);
        drop(tokio::time::timeout(DRAIN, conversation.room.acquire_many(all)).await);
    }
    ended.cancel();
    drop(conversation);
    // Whoever still holds its end, such as a server that is being told, is not waited for long.
    drop(tokio::time::timeout(LAST_LINES, writer).await);
}

/// Reads a line, and of one that is too long only so much that it is refused.
pub async fn read_line(
    input: &mut (impl AsyncBufRead + Unpin),
    line: &mut Vec<u8>,
) -> std::io::Result<usize> {
    let mut total = 0;
    loop {
        let buffer = input.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(total);
        }
        let end = memchr::memchr(b'\n', buffer).map(|at| at + 1);
        let taken = end.unwrap_or(buffer.len());
        if line.len() <= MAX_LINE {
            line.extend_from_slice(&buffer[..taken]);
        } else if end.is_some() {
            line.push(b'\n');
        }
        input.consume(taken);
        total += taken;
        if end.is_some() {
            return Ok(total);
        }
    }
}
