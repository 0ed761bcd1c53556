//! Results that are kept for a while, where the workspace asks for it.
//!
//! What is kept belongs to a group: the key holds its name, that of the tool, the hash of the tool's
//! definition and the arguments, whatever the order of their keys. Equal calls that come while one runs
//! wait for it and get what it got. If it is given up, the next of them takes its place; if it fails,
//! they all go their own way, since a failure may be that caller's alone and waiting in line for a server
//! that is down would add up its timeouts.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::watch;
use toolcrib_catalogue::lock::{self, ToolHash};
use toolcrib_wire::Era;

use crate::access::Pattern;

/// What is kept, and how much.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheSettings {
    /// How many bytes in all.
    pub size: usize,
    /// Of which tools.
    pub tools: Vec<(Pattern, CacheRule)>,
}

/// How results of a tool are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheRule {
    /// How long.
    pub ttl: Duration,
    /// How large one may be.
    pub size: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { size: 64 << 20, tools: Vec::new() }
    }
}

impl CacheSettings {
    /// How results of a tool are kept: by the rule that says most of it.
    pub(crate) fn of_tool(&self, name: &str) -> Option<CacheRule> {
        let fits = self.tools.iter().filter(|(it, _)| it.matches(name));
        fits.max_by_key(|(it, _)| (!it.0.contains('*'), it.0.len())).map(|(_, it)| *it)
    }
}

/// What is kept just now.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    slots: HashMap<Key, Slot>,
    /// Which were used when, the longest ago first.
    used: BTreeMap<u64, Key>,
    /// Counts up with every use.
    clock: u64,
    bytes: usize,
    /// Counts up when everything is thrown away: what was running then is not kept.
    era: u64,
}

/// What a result is the result of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

#[derive(Debug)]
enum Slot {
    Running(watch::Receiver<Told>),
    Kept { result: Bytes, since: Instant, until: Instant, used: u64 },
}

/// What those who wait are told.
#[derive(Debug, Clone)]
enum Told {
    Nothing,
    Result(Bytes),
    Failed,
}

/// What there is of a call.
#[derive(Debug)]
pub(crate) enum Found {
    /// The result, and how old it is.
    Hit(Bytes, Duration),
    /// The result of an equal call that ran meanwhile.
    Joined(Bytes),
    /// Nothing; others wait for whoever got this.
    Lead(Lead),
    /// Nothing, and nobody waits.
    Alone,
}

/// The right to make a call that others may wait for.
#[derive(Debug)]
pub(crate) struct Lead {
    cache: Arc<Cache>,
    key: Key,
    era: u64,
    tell: watch::Sender<Told>,
    settled: bool,
}

/// What an entry takes besides its result.
const OVERHEAD: usize = 256;

impl Found {
    /// In a word, for the record.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Hit(..) => "hit",
            Self::Joined(_) => "joined",
            Self::Lead(_) | Self::Alone => "miss",
        }
    }
}

impl Key {
    /// The key of a call; none where the arguments cannot be compared.
    pub(crate) fn new(
        group: &str,
        tool: &str,
        hash: &ToolHash,
        arguments: &[u8],
        meta: &[u8],
        (era, limit): (Era, Option<usize>),
    ) -> Option<Self> {
        let arguments = lock::digest(std::str::from_utf8(arguments).ok()?)?;
        let meta = lock::digest(std::str::from_utf8(meta).ok()?)?;
        let mut hasher = blake3::Hasher::new();
        for text in [group, tool] {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        hasher.update(hash.as_bytes()).update(arguments.as_bytes()).update(meta.as_bytes());
        // Results look otherwise in each era, and where less is too large.
        let limit = limit.map_or(u64::MAX, |it| it as u64);
        hasher.update(&[u8::from(era == Era::Modern)]).update(&limit.to_le_bytes());
        Some(Self(*hasher.finalize().as_bytes()))
    }
}

impl Cache {
    /// What there is of a call, or the right to make it. Waits while another makes it.
    pub(crate) async fn find(self: &Arc<Self>, key: Key) -> Found {
        loop {
            let mut told = match self.look(key, Instant::now()) {
                Ok(found) => return found,
                Err(running) => running,
            };
            // Where the one who called is gone without a word, the next one calls.
            let Ok(said) = told.wait_for(|it| !matches!(it, Told::Nothing)).await else { continue };
            match &*said {
                Told::Result(result) => return Found::Joined(result.clone()),
                Told::Failed => return Found::Alone,
                Told::Nothing => {}
            }
        }
    }

    /// The same, at once: where another makes it, nobody waits. A call that others are part of must not, since it may
    /// be part of the one it would wait for.
    pub(crate) fn find_now(self: &Arc<Self>, key: Key) -> Found {
        self.look(key, Instant::now()).unwrap_or(Found::Alone)
    }

    fn look(self: &Arc<Self>, key: Key, now: Instant) -> Result<Found, watch::Receiver<Told>> {
        let mut state = self.0.lock();
        match state.slots.get(&key) {
            Some(Slot::Kept { result, since, until, .. }) if now < *until => {
                let found = Found::Hit(result.clone(), now.saturating_duration_since(*since));
                state.touch(key);
                return Ok(found);
            }
            Some(Slot::Running(told)) => return Err(told.clone()),
            Some(Slot::Kept { .. }) => state.remove(&key),
            None => {}
        }
        let (tell, told) = watch::channel(Told::Nothing);
        state.slots.insert(key, Slot::Running(told));
        let (cache, era) = (Arc::clone(self), state.era);
        Ok(Found::Lead(Lead { cache, key, era, tell, settled: false }))
    }

    /// Throws everything away.
    pub(crate) fn clear(&self) {
        let mut state = self.0.lock();
        let State { era, clock, .. } = *state;
        *state = State { era: era + 1, clock, ..State::default() };
    }

    /// How many bytes are kept.
    #[cfg(test)]
    fn bytes(&self) -> usize {
        self.0.lock().bytes
    }
}

impl State {
    fn touch(&mut self, key: Key) {
        self.clock += 1;
        let now = self.clock;
        if let Some(Slot::Kept { used, .. }) = self.slots.get_mut(&key) {
            self.used.remove(used);
            *used = now;
            self.used.insert(now, key);
        }
    }

    fn remove(&mut self, key: &Key) {
        if let Some(Slot::Kept { result, used, .. }) = self.slots.remove(key) {
            self.used.remove(&used);
            self.bytes -= result.len() + OVERHEAD;
        }
    }

    fn keep(&mut self, key: Key, result: Bytes, (since, until): (Instant, Instant), room: usize) {
        self.remove(&key);
        self.bytes += result.len() + OVERHEAD;
        self.clock += 1;
        let used = self.clock;
        self.used.insert(used, key);
        self.slots.insert(key, Slot::Kept { result, since, until, used });
        while room < self.bytes {
            let Some((_, oldest)) = self.used.first_key_value() else { break };
            let oldest = *oldest;
            self.remove(&oldest);
        }
    }
}

impl Cache {
    /// How many results are kept, and how large they are together.
    pub(crate) fn size(&self) -> (usize, usize) {
        let state = self.0.lock();
        (state.used.len(), state.bytes)
    }
}

impl Lead {
    /// The call brought a result that may be kept: whoever waits gets it, and whoever comes in time.
    pub(crate) fn keep(self, result: &Bytes, rule: CacheRule, room: usize) {
        self.keep_at(result, rule, room, Instant::now());
    }

    fn keep_at(mut self, result: &Bytes, rule: CacheRule, room: usize, now: Instant) {
        self.settled = true;
        self.tell.send_replace(Told::Result(result.clone()));
        let mut state = self.cache.0.lock();
        if state.era != self.era {
            return;
        }
        let fits = result.len() <= rule.size && result.len() + OVERHEAD <= room;
        match now.checked_add(rule.ttl).filter(|_| fits) {
            // What it is a piece of, such as the buffer it came in, must not stay with it.
            Some(until) => {
                let result = Bytes::copy_from_slice(result);
                state.keep(self.key, result, (now, until), room);
            }
            None => state.remove(&self.key),
        }
    }

    /// The call brought nothing that others could use.
    pub(crate) fn fail(mut self) {
        self.settled = true;
        self.tell.send_replace(Told::Failed);
        let mut state = self.cache.0.lock();
        if state.era == self.era {
            state.remove(&self.key);
        }
    }
}

impl Drop for Lead {
    fn drop(&mut self) {
        if !self.settled {
            let mut state = self.cache.0.lock();
            if state.era == self.era {
                state.remove(&self.key);
            }
        }
    }
}

#[cfg(test)]
mod tests;
