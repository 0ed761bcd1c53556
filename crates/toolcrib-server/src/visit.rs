//! A client that stays for a while: what it can be asked, what it wants to hear, and what it has not
//! answered yet.

use std::{
    collections::{BTreeSet, HashMap},
    fmt,
    sync::{
        Arc, LazyLock, OnceLock, Weak,
        atomic::{AtomicU8, AtomicU64, Ordering},
    },
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use toolcrib_catalogue::{Answering, BoxFuture, CallError, Json, Listener, Visitor};
use toolcrib_wire::{
    Id, RpcError,
    frame::{INTERNAL_ERROR, notification, request},
    json::{self, Rare},
    revision::META_LOG_LEVEL,
};

use crate::{
    access::Caller, gateway::Gateway, queue::Sender, session::random_bits, stream::Stream,
};

/// More questions than this are not put to one client at the same time.
const MAX_QUESTIONS: usize = 64;

/// Log levels, the least severe first.
pub(crate) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

/// The level of a client that has not said which it wants: whatever comes.
const UNSAID: u8 = u8::MAX;

/// One client.
pub(crate) struct Visit {
    key: u64,
    pub(crate) caller: Caller,
    gateway: Weak<Gateway>,
    /// Ends with the visit.
    pub(crate) ended: CancellationToken,
    /// What it said in its handshake that it can do.
    can: OnceLock<Can>,
    level: AtomicU8,
    questions: Mutex<HashMap<Id, oneshot::Sender<Result<Bytes, RpcError>>>>,
    next: AtomicU64,
    stop: CancellationToken,
    /// Where it hears what belongs to none of its requests.
    own: Out,
    /// The resources it watches, and whose they are.
    pub(crate) watched: Mutex<BTreeSet<(u64, String)>>,
}

#[derive(Debug, Clone)]
struct Can {
    sample: bool,
    elicit: bool,
    show_roots: bool,
    /// In its own words.
    said: Json,
}

/// Where messages to a client go.
#[derive(Debug, Clone)]
pub(crate) enum Out {
    /// One stream for everything.
    Queue(Sender<Bytes>),
    /// One of several streams of events.
    Stream(Arc<Stream>),
    /// Nowhere: the client takes nothing but the answer.
    Nowhere,
}

impl Out {
    /// Says something; what is not `needed` may be left out. Returns whether it is on its way.
    pub(crate) fn say(&self, text: Bytes, needed: bool) -> bool {
        let said = match self {
            Self::Queue(queue) => queue.try_send(text).is_ok(),
            Self::Stream(stream) => stream.say(text, needed),
            Self::Nowhere => false,
        };
        if !said {
            tracing::debug!("a message was left out: the client is slow or gone");
        }
        said
    }
}

impl Visit {
    pub(crate) fn new(key: u64, gateway: &Arc<Gateway>, caller: Caller, own: Out) -> Self {
        Self {
            key,
            caller,
            gateway: Arc::downgrade(gateway),
            ended: CancellationToken::new(),
            can: OnceLock::new(),
            level: AtomicU8::new(UNSAID),
            questions: Mutex::default(),
            // Nobody takes the answer to an old question for one to a new, whoever asked before us.
            next: AtomicU64::new(1 + (random_bits() >> 16)),
            stop: gateway.stop.clone(),
            own,
            watched: Mutex::default(),
        }
    }

    /// The client says in `initialize` what it can do. The first word counts.
    pub(crate) fn greeted(&self, params: Option<&Bytes>) {
        let said = params.and_then(|it| Some(&it[json::member(it, "capabilities")?]));
        // A copy: it must not keep the whole message in memory.
        let said = said.filter(|it| it.first() == Some(&b'{')).unwrap_or(b"{}");
        let said = Json::from_scanned(Bytes::copy_from_slice(said));
        let has = |what: &str| json::member(said.as_bytes(), what).is_some();
        let can = Can {
            sample: has("sampling"),
            elicit: has("elicitation"),
            show_roots: has("roots"),
            said,
        };
        self.can.set(can).ok();
    }

    /// The client says how much it wants to hear.
    pub(crate) fn set_level(&self, level: u8) {
        self.level.store(level, Ordering::Relaxed);
    }

    /// How much it wants to hear, if it has said so.
    pub(crate) fn level(&self) -> Option<u8> {
        Some(self.level.load(Ordering::Relaxed)).filter(|it| *it != UNSAID)
    }

    /// Where it hears what belongs to none of its requests.
    pub(crate) fn own(&self) -> &Out {
        &self.own
    }

    /// The client answers a question.
    pub(crate) fn answered(&self, id: Option<&Id>, answer: Result<Bytes, RpcError>) {
        let answer = answer.and_then(|it| match it.first() {
            Some(b'{') => Ok(it),
            _ => {
                let message = "the client's answer is not an object".to_owned();
                Err(RpcError { code: INTERNAL_ERROR, message, data: None })
            }
        });
        let waiting = id.and_then(|it| self.questions.lock().remove(it));
        if let Some(waiting) = waiting {
            // Whoever asked may be gone by now.
            waiting.send(answer).ok();
        }
    }

    /// Puts a question to the client, if it is one it can answer.
    fn ask(self: &Arc<Self>, method: &str, params: Option<&Json>, out: &Out) -> Option<Answering> {
        let can = self.can.get()?;
        let able = match method {
            "sampling/createMessage" => can.sample,
            "elicitation/create" => can.elicit,
            "roots/list" => can.show_roots,
            _ => false,
        };
        if !able {
            return None;
        }
        let id = Id::number(self.next.fetch_add(1, Ordering::Relaxed));
        let (sender, receiver) = oneshot::channel();
        {
            let mut questions = self.questions.lock();
            if MAX_QUESTIONS <= questions.len() {
                return None;
            }
            questions.insert(id.clone(), sender);
        }
        let open =
            Question { visit: Arc::clone(self), id: id.clone(), out: out.clone(), answered: false };
        if !out.say(request(&id, method, params.map(Json::as_bytes)), true) {
            open.close();
            return None;
        }
        let (ended, stop) = (self.ended.clone(), self.stop.clone());
        Some(Box::pin(async move {
            let answer = tokio::select! {
                answer = receiver => answer.ok(),
                () = ended.cancelled() => None,
                // No answer could come in any more.
                () = stop.cancelled() => None,
            };
            open.close();
            match answer {
                Some(Ok(answer)) => Ok(Json::from_scanned(answer)),
                Some(Err(RpcError { code, message, data })) => {
                    Err(CallError::Rpc { code, message, data: data.map(Json::from_scanned) })
                }
                None => Err(CallError::Lost { cause: "the client is gone".to_owned() }),
            }
        }))
    }
}

/// A question without an answer; if it goes away like that, the client hears of it.
struct Question {
    visit: Arc<Visit>,
    id: Id,
    out: Out,
    answered: bool,
}

impl Question {
    /// It is answered, or was never asked.
    fn close(mut self) {
        self.answered = true;
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.visit.questions.lock().remove(&self.id);
        if !self.answered {
            let params = format!(r#"{{"requestId":{}}}"#, self.id);
            let note = notification("notifications/cancelled", Some(params.as_bytes()));
            // The stream it was asked on may be over.
            if !self.out.say(note.clone(), false) {
                self.visit.own.say(note, false);
            }
        }
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        self.ended.cancel();
        if let Some(gateway) = self.gateway.upgrade() {
            gateway.left(self.key, &std::mem::take(&mut *self.watched.lock()));
        }
    }
}

impl fmt::Debug for Visit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visit").field("key", &self.key).field("caller", &self.caller).finish()
    }
}

/// A visit as a source sees it.
#[derive(Debug, Clone)]
pub(crate) struct Here(pub(crate) Arc<Visit>);

impl Listener for Here {
    fn notified(&self, method: &str, params: Option<Json>) {
        let wanted = Some(self.0.level().unwrap_or(0));
        if is_wanted(method, params.as_ref(), wanted) {
            self.0.own.say(notification(method, params.as_ref().map(Json::as_bytes)), false);
        }
    }

    fn asked(&self, method: &str, params: Option<Json>) -> Option<Answering> {
        self.0.ask(method, params.as_ref(), &self.0.own)
    }
}

impl Visitor for Here {
    fn key(&self) -> u64 {
        self.0.key
    }

    fn ended(&self) -> BoxFuture<'static, ()> {
        Box::pin(self.0.ended.clone().cancelled_owned())
    }

    fn has_roots(&self) -> bool {
        self.0.can.get().is_some_and(|it| it.show_roots)
    }

    fn level(&self) -> Option<&'static str> {
        self.0.level().map(|it| LEVELS[usize::from(it)])
    }

    fn capabilities(&self) -> Option<Json> {
        self.0.can.get().map(|it| it.said.clone())
    }
}

static LOG_LEVEL: LazyLock<Rare> = LazyLock::new(|| Rare::new(META_LOG_LEVEL));

/// Who sent one request: hears how it goes on, and can be asked meanwhile.
#[derive(Debug)]
pub(crate) struct Asker {
    pub(crate) out: Out,
    /// Who can be asked. Nobody in the modern era, which has other ways.
    pub(crate) visit: Option<Arc<Visit>>,
    /// How much a modern request wants to hear.
    pub(crate) level: Option<u8>,
}

impl Asker {
    /// Whoever sent a request of the modern era.
    pub(crate) fn modern(out: Out, params: Option<&Bytes>) -> Self {
        let level = params.and_then(|it| level_of(&it[LOG_LEVEL.in_meta(it)?]));
        Self { out, visit: None, level }
    }

    /// Whoever sent a request of the legacy era.
    pub(crate) fn legacy(out: Out, visit: Arc<Visit>) -> Self {
        Self { out, visit: Some(visit), level: None }
    }
}

impl Listener for Asker {
    fn notified(&self, method: &str, params: Option<Json>) {
        let wanted = match &self.visit {
            Some(visit) => Some(visit.level().unwrap_or(0)),
            None => self.level,
        };
        if is_wanted(method, params.as_ref(), wanted) {
            self.out.say(notification(method, params.as_ref().map(Json::as_bytes)), false);
        }
    }

    fn asked(&self, method: &str, params: Option<Json>) -> Option<Answering> {
        self.visit.as_ref()?.ask(method, params.as_ref(), &self.out)
    }
}

/// Whether somebody who wants log messages of this level wants this one. All else is wanted.
fn is_wanted(method: &str, params: Option<&Json>, level: Option<u8>) -> bool {
    if method != "notifications/message" {
        return true;
    }
    let Some(wanted) = level else { return false };
    let params = params.map(Json::as_bytes).unwrap_or_default();
    let said = json::member(params, "level").and_then(|at| level_of(&params[at]));
    said.is_none_or(|it| wanted <= it)
}

/// The place of a level, given as JSON, among the levels.
pub(crate) fn level_of(text: &[u8]) -> Option<u8> {
    let name: String = serde_json::from_slice(text).ok()?;
    let at = LEVELS.iter().position(|it| *it == name)?;
    u8::try_from(at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_messages_are_measured_and_all_else_goes_through() {
        let said = |level: &str| Json::parse(format!(r#"{{"level":"{level}"}}"#)).unwrap();
        let wanted = |level: &str, by| is_wanted("notifications/message", Some(&said(level)), by);
        assert!(wanted("error", Some(4)) && wanted("alert", Some(4)));
        assert!(!wanted("warning", Some(4)) && !wanted("emergency", None));
        assert!(wanted("strange", Some(7)));
        assert!(is_wanted("notifications/progress", None, None));
    }
}
