//! Threads that serve connections beside the main runtime, each a runtime of its own.
//!
//! A connection stays with the thread that got it: no work is stolen, nobody wakes another thread to help, and a socket
//! wakes the thread that waits for it. Two threads of one runtime did all of that, and took 33.6 µs of CPU time for a
//! call where one took 24.5; one and a hand take 25.

use tokio::runtime::{Builder, Handle, Runtime};

/// As many as half of the cores; the main runtime has the other half.
pub(super) struct Hands(Vec<Runtime>);

impl Hands {
    pub(super) fn start() -> Self {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let start = |at| {
            let mut runtime = Builder::new_multi_thread();
            runtime.worker_threads(1).thread_name(format!("hand-{at}")).enable_all().build()
        };
        let started: Result<_, _> = (0..cores / 2).map(start).collect();
        Self(started.unwrap_or_else(|error| {
            tracing::warn!(%error, "cannot start more threads: one serves all connections");
            Vec::new()
        }))
    }

    pub(super) fn handles(&self) -> Vec<Handle> {
        self.0.iter().map(|it| it.handle().clone()).collect()
    }
}

impl Drop for Hands {
    /// Whatever still runs has been told to end; nobody waits for it twice.
    fn drop(&mut self) {
        for runtime in self.0.drain(..) {
            runtime.shutdown_background();
        }
    }
}
