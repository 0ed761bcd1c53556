//! Traces: a span for each call and read that comes in, one for each request that goes to a server for it, and an
//! exporter that sends them to whoever collects such things (OpenTelemetry, OTLP over HTTP as JSON).
//!
//! Nothing here is on the way of a call where nobody asked for traces. Where somebody did, a call makes its spans and
//! puts them into a queue; a task of its own sends them. A collector that is slow, or gone, costs spans and never a
//! call. Spans go to others: they hold names, outcomes and times, and never arguments, results or what errors say.

mod context;
mod meta;
mod otlp;
mod export;
mod span;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::{sync::mpsc, task::AbortHandle};
use tokio_util::task::TaskTracker;
use toolcrib_wire::{Endpoint, text::Masker};

pub(crate) use self::{
    context::Context,
    meta::{Came, Trace, carrying},
    span::Span,
};
use self::{export::Exporter, span::Finished};

/// So many spans wait to be sent; those that come then are dropped, and counted.
const QUEUE: usize = 4_096;

/// How long what is left may take to be sent when the gateway closes.
const LAST: Duration = Duration::from_secs(3);

/// How much of a text goes into a span.
const LONGEST: usize = 256;

/// Where spans go, and which.
#[derive(Clone)]
pub struct TraceSettings {
    /// The collector's address for traces.
    pub endpoint: Endpoint,
    /// Which share of the traces that begin here is sent. One that began elsewhere is sent if it is sent there.
    pub sample: f64,
    /// What we are called.
    pub service: String,
    /// Secrets that must not go out.
    pub masker: Masker,
}

impl TraceSettings {
    /// The same, with these secrets kept back too.
    #[must_use]
    pub fn hiding(self, masker: Masker) -> Self {
        Self { masker: self.masker.and(masker), ..self }
    }
}

impl fmt::Debug for TraceSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TraceSettings").field("service", &self.service).finish_non_exhaustive()
    }
}

/// Makes spans, and sees that they are sent.
#[derive(Debug)]
pub(crate) struct Tracer {
    sample: f64,
    masker: ArcSwap<Masker>,
    /// Gone when we close.
    queue: Mutex<Option<mpsc::Sender<Finished>>>,
    /// The one task that sends. It ends after all others, whose spans it has to send.
    tasks: TaskTracker,
    sending: AbortHandle,
    pub(crate) counts: Arc<Counts>,
}

/// What became of spans.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// They were taken by the collector.
    pub(crate) sent: AtomicU64,
    /// There was no room for them.
    pub(crate) dropped: AtomicU64,
    /// They were not taken, for whatever reason.
    pub(crate) failed: AtomicU64,
    /// They wait.
    pub(crate) waiting: AtomicU64,
}

impl Tracer {
    /// Begins to send. Nothing where the collector cannot even be tried, which is told.
    pub(crate) fn start(settings: TraceSettings, version: &str) -> Option<Arc<Self>> {
        let TraceSettings { endpoint, sample, service, masker } = settings;
        let counts = Arc::<Counts>::default();
        let exporter = Exporter::new(&endpoint, &service, version, Arc::clone(&counts));
        let exporter = match exporter {
            Ok(exporter) => exporter,
            Err(error) => {
                tracing::warn!(%error, "traces are not sent");
                return None;
            }
        };
        let (queue, waiting) = mpsc::channel(QUEUE);
        let tasks = TaskTracker::new();
        let sending = tasks.spawn(exporter.run(waiting)).abort_handle();
        let (queue, masker) = (Mutex::new(Some(queue)), ArcSwap::from_pointee(masker));
        Some(Arc::new(Self { sample, masker, queue, tasks, sending, counts }))
    }

    /// Takes these secrets out too from now on.
    pub(crate) fn set_masker(&self, masker: &Masker) {
        self.masker.rcu(|known| Masker::clone(known).and(masker.clone()));
    }

    /// A text that may be anything, as it may go out.
    pub(crate) fn mask(&self, text: &str) -> String {
        self.masker.load().mask(text).chars().take(LONGEST).collect()
    }

    /// A span is over.
    fn take(&self, span: Finished) {
        let queue = self.queue.lock().clone();
        self.counts.waiting.fetch_add(1, Relaxed);
        if queue.is_none_or(|it| it.try_send(span).is_err()) {
            self.counts.waiting.fetch_sub(1, Relaxed);
            self.counts.dropped.fetch_add(1, Relaxed);
        }
    }

    /// Sends what is left, and ends.
    pub(crate) async fn close(&self) {
        drop(self.queue.lock().take());
        self.tasks.close();
        if tokio::time::timeout(LAST, self.tasks.wait()).await.is_err() {
            self.sending.abort();
            tracing::warn!("the last spans were not sent in time");
        }
    }
}
