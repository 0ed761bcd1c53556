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

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use toolcrib_wire::{Id, Revision};

use crate::{access::Caller, snapshot::Lists};

/// A session nobody has used for so long is forgotten.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// More sessions than this are not opened.
const MAX_SESSIONS: usize = 100_000;

/// More requests than this are not answered at the same time in one session.
const MAX_IN_FLIGHT: usize = 256;

/// All sessions.
#[derive(Debug)]
pub(crate) struct Sessions {
    open: Mutex<HashMap<String, Arc<Session>>>,
    begin: Instant,
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) caller: Caller,
    pub(crate) revision: Revision,
    /// Ends with the session.
    pub(crate) ended: CancellationToken,
    pub(crate) in_flight: InFlight,
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
    pub(crate) fn open(&self, caller: Caller, revision: Revision, seen: Lists) -> Option<String> {
        let id = random_id()?;
        let now = self.now();
        let session = Session {
            caller,
            revision,
            ended: CancellationToken::new(),
            in_flight: InFlight::default(),
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
        (session.caller == *caller).then_some(session)
    }

    /// Ends a session.
    pub(crate) fn close(&self, id: &str, caller: &Caller) -> bool {
        let known = self.get(id, caller).is_some();
        if known && let Some(session) = self.open.lock().remove(id) {
            session.ended.cancel();
        }
        known
    }

    /// Ends the sessions that `keep` does not want, and those nobody uses.
    pub(crate) fn sweep(&self, keep: impl Fn(&Caller) -> bool) {
        let mut open = self.open.lock();
        forget_idle(&mut open, self.now());
        open.retain(|_, it| {
            keep(&it.caller) || {
                it.ended.cancel();
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
            it.ended.cancel();
            return false;
        }
        true
    });
}

impl Session {
    /// Begins to listen; whoever listened before is told to stop.
    pub(crate) fn listen(&self) -> CancellationToken {
        let new = self.ended.child_token();
        std::mem::replace(&mut *self.listening.lock(), new.clone()).cancel();
        new
    }
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
