//! Sessions of the legacy era, and the requests that are still being answered in them.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolcrib_wire::{Id, Revision};

use crate::{
    access::Caller,
    gateway::Gateway,
    snapshot::Lists,
    stream::{Keeping, Stream},
    visit::{Out, Visit},
};

/// A session nobody has used for so long is forgotten.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// More sessions than this are not opened.
const MAX_SESSIONS: usize = 100_000;

/// More requests than this are not answered at the same time in one session.
const MAX_IN_FLIGHT: usize = 1_024;

/// So many streams of one session can be taken up again.
const MAX_KEPT: usize = 32;

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
    begin: Instant,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) visit: Arc<Visit>,
    pub(crate) revision: Revision,
    pub(crate) in_flight: InFlight,
    /// What belongs to none of its requests.
    pub(crate) own: Arc<Stream>,
    /// The streams of its requests, while they can be taken up again.
    streams: Mutex<Vec<Arc<Stream>>>,
    next_stream: AtomicU64,
    /// What the client last saw of its lists, so that it hears of what changed while it did not listen.
    pub(crate) seen: Mutex<Lists>,
    /// The stream on which it listens. A new one takes the place of the old.
    listening: Mutex<CancellationToken>,
    used: AtomicU64,
}

/// The requests that are being answered.
#[derive(Debug, Default)]
pub(crate) struct InFlight(Mutex<HashMap<Id, CancellationToken>>);

impl Default for Sessions {
    fn default() -> Self {
        Self { open: Mutex::default(), begin: Instant::now() }
    }
}

impl Sessions {
    /// Opens a session; none where there are too many.
    pub(crate) fn open(
        &self,
        gateway: &Arc<Gateway>,
        caller: Caller,
        revision: Revision,
        params: Option<&Bytes>,
    ) -> Option<String> {
        let id = random_id()?;
        let now = self.now();
        let seen = gateway.snapshot().lists(&caller);
        let own = Arc::new(Stream::new(0, keeping(revision)));
        let visit = gateway.visit(caller, Out::Stream(Arc::clone(&own)));
        visit.greeted(params);
        let session = Session {
            visit,
            revision,
            in_flight: InFlight::default(),
            own,
            streams: Mutex::default(),
            next_stream: AtomicU64::new(1),
            seen: Mutex::new(seen),
            listening: Mutex::default(),
            used: AtomicU64::new(now),
        };
        let mut open = self.open.lock();
        if MAX_SESSIONS <= open.len() {
            forget_idle(&mut open, now);
        }
        if MAX_SESSIONS <= open.len() {
            return None;
        }
        open.insert(id.clone(), Arc::new(session));
        Some(id)
    }

    /// The session with this id, if it is the caller's.
    pub(crate) fn get(&self, id: &str, caller: &Caller) -> Option<Arc<Session>> {
        let session = self.open.lock().get(id).cloned()?;
        session.used.store(self.now(), Ordering::Relaxed);
        (session.visit.caller == *caller).then_some(session)
    }

    /// Ends a session.
    pub(crate) fn close(&self, id: &str, caller: &Caller) -> bool {
        let known = self.get(id, caller).is_some();
        if known && let Some(session) = self.open.lock().remove(id) {
            session.visit.ended.cancel();
        }
        known
    }

    /// Ends the sessions that `keep` does not want, and those nobody uses.
    pub(crate) fn sweep(&self, keep: impl Fn(&Caller) -> bool) {
        let mut open = self.open.lock();
        forget_idle(&mut open, self.now());
        open.retain(|_, it| {
            it.streams.lock().retain(|it| !it.is_over());
            keep(&it.visit.caller) || {
                it.visit.ended.cancel();
                false
            }
        });
    }

    pub(crate) fn count(&self) -> usize {
        self.open.lock().len()
    }

    fn now(&self) -> u64 {
        self.begin.elapsed().as_secs()
    }
}

fn forget_idle(open: &mut HashMap<String, Arc<Session>>, now: u64) {
    open.retain(|_, it| {
        let idle = IDLE.as_secs() < now.saturating_sub(it.used.load(Ordering::Relaxed));
        // One with an open stream is held by it and counts as used.
        if idle && Arc::strong_count(it) == 1 {
            it.visit.ended.cancel();
            return false;
        }
        true
    });
}

impl Session {
    /// Begins to listen; whoever listened before is told to stop.
    pub(crate) fn listen(&self) -> CancellationToken {
        let new = self.visit.ended.child_token();
        std::mem::replace(&mut *self.listening.lock(), new.clone()).cancel();
        new
    }
}

impl Session {
    /// A stream for the answer to one request.
    pub(crate) fn stream(&self) -> Stream {
        let id = self.next_stream.fetch_add(1, Ordering::Relaxed);
        Stream::new(id, keeping(self.revision))
    }

    /// Keeps a stream, so that it can be taken up again.
    pub(crate) fn keep(&self, stream: &Arc<Stream>) {
        let mut streams = self.streams.lock();
        // The oldest that is over goes first; one that still runs can be taken up as long as it does.
        if MAX_KEPT <= streams.len() {
            let over = streams.iter().position(|it| it.is_finished()).unwrap_or(0);
            streams.remove(over);
        }
        streams.push(Arc::clone(stream));
    }

    /// The stream of one of its requests.
    pub(crate) fn kept(&self, id: u64) -> Option<Arc<Stream>> {
        self.streams.lock().iter().find(|it| it.id() == id).cloned()
    }
}

/// Since 2025-11-25 a stream may begin with an event that holds no message; clients before may choke.
fn keeping(revision: Revision) -> Keeping {
    Keeping::Numbered { begin: Revision::V2025_11_25 <= revision }
}

impl InFlight {
    /// Notes a request; the guard forgets it. None where the id is taken or there are too many.
    pub(crate) fn begin(&self, id: &Id) -> Option<Flight<'_>> {
        let mut requests = self.0.lock();
        if MAX_IN_FLIGHT <= requests.len() || requests.contains_key(id) {
            return None;
        }
        let cancelled = CancellationToken::new();
        requests.insert(id.clone(), cancelled.clone());
        Some(Flight { all: self, id: id.clone(), cancelled })
    }

    /// Whether no request of this id can begin.
    pub(crate) fn is_taken(&self, id: &Id) -> bool {
        let requests = self.0.lock();
        MAX_IN_FLIGHT <= requests.len() || requests.contains_key(id)
    }

    /// The caller takes a request back.
    pub(crate) fn cancel(&self, id: &Id) {
        if let Some(cancelled) = self.0.lock().get(id) {
            cancelled.cancel();
        }
    }
}

/// A request that is being answered.
#[derive(Debug)]
pub(crate) struct Flight<'a> {
    all: &'a InFlight,
    id: Id,
    pub(crate) cancelled: CancellationToken,
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        self.all.0.lock().remove(&self.id);
    }
}

/// 64 random bits; none where the system has none.
pub(crate) fn random_bits() -> u64 {
    let mut bytes = [0_u8; 8];
    getrandom::fill(&mut bytes).ok();
    u64::from_le_bytes(bytes)
}

/// 128 random bits.
pub(crate) fn random_id() -> Option<String> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes).ok()?;
    let mut id = String::with_capacity(32);
    for byte in bytes {
        write!(id, "{byte:02x}").ok()?;
    }
    Some(id)
}
