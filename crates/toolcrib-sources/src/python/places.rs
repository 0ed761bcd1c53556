//! How many calls run at once, and how many may wait.

use std::sync::{
    Arc,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};

use toolcrib_catalogue::Workers;

use super::generation::Failed;

/// How many calls of async tools run at once.
const MANY: usize = 32;

/// How many calls may wait for a place.
const WAITING: usize = 256;

/// The places.
#[derive(Debug)]
pub(super) struct Places {
    alone: Arc<Semaphore>,
    many: Arc<Semaphore>,
    workers: usize,
    waiting: AtomicUsize,
    /// How many processes for one call at a time there are.
    alive: AtomicUsize,
    /// How many processes of either kind were started, and how many of them were lost.
    starts: AtomicU64,
    losses: AtomicU64,
}

impl Places {
    pub(super) fn new(workers: usize) -> Self {
        let (alone, many) = (Semaphore::new(workers).into(), Semaphore::new(MANY).into());
        Self {
            alone,
            many,
            workers,
            waiting: AtomicUsize::new(0),
            alive: AtomicUsize::new(0),
            starts: AtomicU64::new(0),
            losses: AtomicU64::new(0),
        }
    }

    /// A place for a call that has a process for itself.
    pub(super) async fn take(&self, deadline: Instant) -> Result<OwnedSemaphorePermit, Failed> {
        self.wait(&self.alone, deadline, WAITING).await
    }

    /// A place for a call of an async tool.
    pub(super) async fn take_among_many(
        &self,
        deadline: Instant,
    ) -> Result<OwnedSemaphorePermit, Failed> {
        self.wait(&self.many, deadline, WAITING).await
    }

    /// How many calls have a process for themselves just now.
    pub(super) fn in_use(&self) -> usize {
        self.workers.saturating_sub(self.alone.available_permits())
    }

    /// Counts a process for as long as what is returned lives.
    pub(super) fn alive(self: &Arc<Self>) -> Alive {
        self.alive.fetch_add(1, Ordering::AcqRel);
        self.started();
        Alive(Arc::clone(self))
    }

    /// A process was started.
    pub(super) fn started(&self) {
        self.starts.fetch_add(1, Ordering::Relaxed);
    }

    /// A process ended by itself, or had to be ended in the middle of a call.
    pub(super) fn lost(&self) {
        self.losses.fetch_add(1, Ordering::Relaxed);
    }

    /// What was counted, with so many processes for many calls at a time.
    pub(super) fn tally(&self, many: u64) -> Workers {
        let count = |it: &AtomicUsize| it.load(Ordering::Relaxed) as u64;
        Workers {
            alive: count(&self.alive) + many,
            starts: self.starts.load(Ordering::Relaxed),
            losses: self.losses.load(Ordering::Relaxed),
            waiting: count(&self.waiting),
        }
    }

    /// Whether one more process may be started for a call: calls that wait for others keep theirs.
    pub(super) fn has_room(&self) -> bool {
        self.alive.load(Ordering::Acquire) < 4 * self.workers + 8
    }

    async fn wait(
        &self,
        places: &Arc<Semaphore>,
        deadline: Instant,
        most: usize,
    ) -> Result<OwnedSemaphorePermit, Failed> {
        if let Ok(place) = Arc::clone(places).try_acquire_owned() {
            return Ok(place);
        }
        let Some(_waiting) = Waiting::begin(&self.waiting, most) else {
            let cause = format!(
                "busy: {most} calls wait for a Python process; try again later, or raise `python: workers`"
            );
            return Err(Failed::Unavailable(cause));
        };
        match timeout_at(deadline, Arc::clone(places).acquire_owned()).await {
            Ok(Ok(place)) => Ok(place),
            _ => Err(Failed::Unavailable("busy: no Python process became free in time".to_owned())),
        }
    }
}

/// One process.
#[derive(Debug)]
pub(super) struct Alive(Arc<Places>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.alive.fetch_sub(1, Ordering::AcqRel);
    }
}

/// One that waits.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn begin(count: &'a AtomicUsize, most: usize) -> Option<Self> {
        if most <= count.fetch_add(1, Ordering::AcqRel) {
            count.fetch_sub(1, Ordering::AcqRel);
            return None;
        }
        Some(Self(count))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn who_finds_no_place_waits_and_too_many_are_turned_away() {
        let places = Arc::new(Places::new(1));
        let soon = Instant::now() + std::time::Duration::from_secs(1);
        let held = places.take(soon).await.unwrap();
        assert_eq!(places.in_use(), 1);
        let late = places.take(soon).await.unwrap_err();
        assert!(matches!(late, Failed::Unavailable(cause) if cause.contains("in time")));
        let busy = Waiting::begin(&places.waiting, 0);
        assert!(busy.is_none());
        drop(held);
        assert!(places.take(Instant::now()).await.is_ok());
    }
}
