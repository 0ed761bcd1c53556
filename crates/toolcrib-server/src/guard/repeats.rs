//! Calls that come a second time under the same key do nothing, and get what the first one got.
//!
//! A key is its sender's own: two callers may choose the same one. It stands for one tool with one set of
//! arguments. Whatever the first call ended with counts, failures included, once it may have done
//! something; a call that was refused before it was made leaves its key free. All of this is kept in
//! memory, for a day and within bounds. What must hold over a restart has a name of its own ([`once`]),
//! by which the bus knows an event again.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;
use toolcrib_catalogue::lock::ToolHash;
use toolcrib_wire::{
    RpcError,
    json::{Rare, member},
};

use crate::access::Caller;

/// Where a key stands among the params of a request.
pub(crate) const META_KEY: &str = "toolcrib/idempotencyKey";

/// How long an outcome is remembered.
const KEPT: Duration = Duration::from_secs(86_400);

/// Of how many keys of one caller.
const MAX_KEYS: usize = 10_000;

/// And how many bytes.
const MAX_BYTES: usize = 16 << 20;

/// A larger outcome is not remembered, only that there was one.
const MAX_OUTCOME: usize = 1 << 20;

/// How many calls of one caller may run; they go on when nobody waits for them any more.
const MAX_RUNNING: usize = 128;

/// And of all callers.
const MAX_RUNNING_IN_ALL: usize = 1_024;

/// And how large what they were called with may be together.
const MAX_RUNNING_BYTES: usize = 64 << 20;

/// What a key and its place take besides the outcome.
const OVERHEAD: usize = 512;

/// The longest key.
const MAX_KEY: usize = 255;

/// A key as a caller gives it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RepeatKey(Arc<str>);

/// What a call ended with.
pub(crate) type Ending = Result<Bytes, RpcError>;

/// What is remembered of all callers.
#[derive(Debug, Default)]
pub(crate) struct Repeats(Mutex<All>);

#[derive(Debug, Default)]
struct All {
    callers: HashMap<[u8; 32], Own>,
    running: usize,
    /// What those were called with.
    bytes: usize,
}

/// What is remembered of one caller.
#[derive(Debug, Default)]
struct Own {
    known: HashMap<RepeatKey, Entry>,
    /// By when they came.
    order: BTreeMap<u64, RepeatKey>,
    /// Counts up with every one that comes.
    next: u64,
    bytes: usize,
    running: usize,
}

#[derive(Debug)]
struct Entry {
    /// The tool and its arguments.
    what: [u8; 32],
    number: u64,
    since: Instant,
    state: State,
}

#[derive(Debug)]
enum State {
    Running(watch::Receiver<Option<Arc<Kept>>>),
    Ended(Arc<Kept>),
}

#[derive(Debug)]
enum Kept {
    Whole(Ending),
    /// It was too large.
    Gone,
}

/// What is known of a call with a key.
#[derive(Debug)]
pub(crate) enum Known {
    /// Nothing: it is to be made.
    First(Claim),
    /// How it ended.
    Ended(Ending),
    /// It was made, and what came of it was too large to be remembered.
    Gone,
    /// The key stands for another call.
    Other,
    /// Too many calls with keys run.
    Full,
}

/// The right to make the call that a key stands for. Who drops it leaves the key free.
#[derive(Debug)]
pub(crate) struct Claim {
    repeats: Arc<Repeats>,
    caller: [u8; 32],
    key: RepeatKey,
    tell: watch::Sender<Option<Arc<Kept>>>,
    settled: bool,
    /// How large what it was called with is.
    size: usize,
}

impl RepeatKey {
    /// Reads a key: short, and nothing that cannot be shown.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        if text.is_empty() || MAX_KEY < text.len() || text.chars().any(char::is_control) {
            return Err(format!(
                "an idempotency key has 1 to {MAX_KEY} bytes, all of them printable"
            ));
        }
        Ok(Self(text.into()))
    }

    /// The key that a header gives. Some write it in quotes, as its draft standard says.
    pub(crate) fn of_header(value: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(value).unwrap_or_default().trim();
        let inner = text.strip_prefix('"').and_then(|it| it.strip_suffix('"'));
        Self::read(inner.unwrap_or(text))
    }

    /// The key among the params of a request, if there is one.
    pub(crate) fn of_params(params: &[u8]) -> Result<Option<Self>, String> {
        static KEY: LazyLock<Rare> = LazyLock::new(|| Rare::new(META_KEY));
        let Some(key) = KEY.in_meta(params).map(|at| &params[at]) else { return Ok(None) };
        match serde_json::from_slice::<String>(key) {
            Ok(key) => Self::read(&key).map(Some),
            Err(_) => Err(format!("`{META_KEY}` must be a string")),
        }
    }

    /// The params of a request with this key among them. One that they have already stays: whoever wrote
    /// it meant this call, and a header may be a proxy's.
    pub(crate) fn among(&self, params: &Bytes) -> Bytes {
        let meta = member(params, "_meta").filter(|at| params[at.clone()].first() == Some(&b'{'));
        let Some(first) = params.iter().position(|it| *it == b'{') else { return params.clone() };
        let key = serde_json::json!({ META_KEY: &*self.0 }).to_string();
        let (at, text) = match &meta {
            Some(meta) if member(&params[meta.clone()], META_KEY).is_some() => {
                return params.clone();
            }
            Some(meta) => (meta.start, key[1..key.len() - 1].to_owned()),
            // Whatever else stands there is for others to complain of.
            None if member(params, "_meta").is_some() => return params.clone(),
            None => (first, format!(r#""_meta":{key}"#)),
        };
        let (before, rest) = params.split_at(at + 1);
        let comma: &[u8] = if rest.trim_ascii_start().first() == Some(&b'}') { b"" } else { b"," };
        [before, text.as_bytes(), comma, rest].concat().into()
    }

    /// The key of one of several calls that come under this one.
    pub(crate) fn inner(&self, number: usize) -> Self {
        let hash = blake3::hash(self.0.as_bytes()).to_hex();
        Self(format!("{:.40}.{number}", hash.as_str()).into())
    }

    /// The key as it was given.
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A name for what a call does that is the same whenever it is repeated, also after a restart. It says
/// next to nothing of the caller's token: others see it, and could try tokens against it.
pub(crate) fn once(caller: &Caller, key: &RepeatKey, tool: &str) -> Arc<str> {
    let mut hasher = blake3::Hasher::new_derive_key("toolcrib idempotency key");
    let principal = caller.principal();
    for part in [&principal[..2], caller.group.as_bytes(), key.0.as_bytes(), tool.as_bytes()] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex()[..32].into()
}

/// What a key stands for.
pub(crate) fn what(tool: &str, arguments: &ToolHash) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new();
    hasher.update(arguments.as_bytes()).update(tool.as_bytes());
    *hasher.finalize().as_bytes()
}

impl Repeats {
    /// What is known of a call, or the right to make it. Waits while it is made. `size` is that of its params.
    pub(crate) async fn find(
        self: &Arc<Self>,
        caller: &Caller,
        key: &RepeatKey,
        (what, size): ([u8; 32], usize),
    ) -> Known {
        loop {
            let found = self.look(caller.principal(), key, (what, size), Instant::now());
            let mut running = match found {
                Ok(known) => return known,
                Err(running) => running,
            };
            // Where it was not made after all, the next one makes it.
            if let Ok(kept) = running.wait_for(Option::is_some).await
                && let Some(kept) = &*kept
            {
                return Known::of(kept);
            }
        }
    }

    /// Whether it is known how a call ended.
    pub(crate) fn has_ended(&self, caller: &Caller, key: &RepeatKey) -> bool {
        let all = self.0.lock();
        let own = all.callers.get(&caller.principal());
        let entry = own.and_then(|it| it.known.get(key));
        entry.is_some_and(|it| matches!(it.state, State::Ended(_)))
    }

    fn look(
        self: &Arc<Self>,
        caller: [u8; 32],
        key: &RepeatKey,
        (what, size): ([u8; 32], usize),
        now: Instant,
    ) -> Result<Known, watch::Receiver<Option<Arc<Kept>>>> {
        let mut all = self.0.lock();
        let All { callers, running, bytes } = &mut *all;
        if !callers.contains_key(&caller) {
            // Tokens come and go.
            callers.retain(|_, own| own.forget(now, 0));
        }
        let own = callers.entry(caller).or_default();
        own.forget(now, OVERHEAD);
        match own.known.get(key) {
            Some(entry) if entry.what != what => return Ok(Known::Other),
            Some(Entry { state: State::Ended(kept), .. }) => return Ok(Known::of(kept)),
            Some(Entry { state: State::Running(running), .. }) => return Err(running.clone()),
            None => {}
        }
        // One that is larger than all may be together runs alone.
        let large = 0 < *bytes && MAX_RUNNING_BYTES < *bytes + size;
        if large || MAX_RUNNING <= own.running || MAX_RUNNING_IN_ALL <= *running {
            return Ok(Known::Full);
        }
        own.running += 1;
        *running += 1;
        *bytes += size;
        let (tell, told) = watch::channel(None);
        own.next += 1;
        let (number, state) = (own.next, State::Running(told));
        own.order.insert(number, key.clone());
        own.known.insert(key.clone(), Entry { what, number, since: now, state });
        own.bytes += OVERHEAD;
        let (repeats, key) = (Arc::clone(self), key.clone());
        Ok(Known::First(Claim { repeats, caller, key, tell, settled: false, size }))
    }
}

impl Known {
    fn of(kept: &Kept) -> Self {
        match kept {
            Kept::Whole(ending) => Self::Ended(ending.clone()),
            Kept::Gone => Self::Gone,
        }
    }
}

impl Own {
    /// Makes room for so much more; returns whether anything is left. What runs stays: its callers are
    /// answered first, and how many there can be is bounded elsewhere.
    fn forget(&mut self, now: Instant, more: usize) -> bool {
        loop {
            let full = MAX_KEYS <= self.known.len() || MAX_BYTES < self.bytes + more;
            let ended = |key: &&RepeatKey| {
                let entry = self.known.get(*key);
                entry.is_none_or(|it| matches!(it.state, State::Ended(_)))
            };
            let Some(oldest) = self.order.values().find(ended).cloned() else { break };
            let since = self.known.get(&oldest).map(|it| it.since);
            let old = since.is_none_or(|it| KEPT <= now.saturating_duration_since(it));
            if !full && !old {
                break;
            }
            self.remove(&oldest);
        }
        !self.known.is_empty()
    }

    fn remove(&mut self, key: &RepeatKey) {
        if let Some(entry) = self.known.remove(key) {
            self.order.remove(&entry.number);
            self.bytes -= OVERHEAD + entry.size();
        }
    }
}

impl Entry {
    fn size(&self) -> usize {
        match &self.state {
            State::Ended(kept) => kept.size(),
            State::Running(_) => 0,
        }
    }
}

impl Kept {
    fn of(ending: &Ending) -> Self {
        let kept = match ending {
            // Not with the buffer that it came in.
            Ok(result) => Self::Whole(Ok(Bytes::copy_from_slice(result))),
            Err(RpcError { code, message, data }) => {
                let data = data.as_deref().map(Bytes::copy_from_slice);
                Self::Whole(Err(RpcError { code: *code, message: message.clone(), data }))
            }
        };
        if MAX_OUTCOME < kept.size() { Self::Gone } else { kept }
    }

    fn size(&self) -> usize {
        match self {
            Self::Whole(Ok(result)) => result.len(),
            Self::Whole(Err(error)) => {
                error.message.len() + error.data.as_ref().map_or(0, Bytes::len)
            }
            Self::Gone => 0,
        }
    }
}

impl Claim {
    /// The call was made: this is what whoever repeats it gets.
    pub(crate) fn settle(mut self, ending: &Ending) {
        self.settled = true;
        let kept = Arc::new(Kept::of(ending));
        self.tell.send_replace(Some(Arc::clone(&kept)));
        let mut all = self.repeats.0.lock();
        let Some(own) = all.callers.get_mut(&self.caller) else { return };
        own.forget(Instant::now(), kept.size());
        if let Some(entry) = own.known.get_mut(&self.key) {
            own.bytes += kept.size();
            entry.state = State::Ended(kept);
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut all = self.repeats.0.lock();
        all.running -= 1;
        all.bytes -= self.size;
        if let Some(own) = all.callers.get_mut(&self.caller) {
            own.running -= 1;
            if !self.settled {
                own.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
