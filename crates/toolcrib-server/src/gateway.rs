//! The gateway: sources on one side, callers on the other, and a snapshot between them.

mod building;
mod looking;
mod ready;
mod slots;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::{ArcSwap, Guard};
use parking_lot::Mutex;
use serde_json::json;
use tokio::{
    sync::{Semaphore, watch},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolcrib_bus::Bus;
use toolcrib_catalogue::{
    CallContext, Catalogue, Json, Listener, NameStyle, Offers, Origin, Source, SourceState,
    ToolFilter, Visitor, lock::Way,
};

use toolcrib_context::{Recorder, artifacts::Store};
use toolcrib_wire::{Era, RpcError, text::Masker};

use self::building::versions;
use crate::{
    access::{Access, Caller},
    console::Console,
    dispatch::{self, Asked},
    events::Holding,
    finding::Finding,
    guard::{
        Looking, audit::Audit, cache::Cache, ids::CallIds, limits::Limit, repeats::Repeats,
        rules::Rules,
    },
    keeping,
    metrics::Metrics,
    recording::Recording,
    slot::{Slot, Slots},
    snapshot::Snapshot,
    spans::{Trace, TraceSettings, Tracer},
    visit::{Here, LEVELS, Out, Visit},
    watching::Watching,
};

pub(crate) use ready::Missing;

/// A gateway.
#[derive(Debug)]
pub struct Gateway {
    slots: ArcSwap<Slots>,
    next_slot: AtomicU64,
    snapshot: ArcSwap<Snapshot>,
    /// The versions of the sources that the snapshot was built from.
    built: Mutex<Vec<(u64, u64)>>,
    /// Held while one is built, so that an older one never takes the place of a newer one.
    building: Mutex<()>,
    /// One at a time builds: others wait for their turn, which takes no thread.
    turn: Semaphore,
    /// Counts the snapshots.
    changes: watch::Sender<u64>,
    settings: Settings,
    instructions: ArcSwap<Option<String>>,
    /// The clients that are here just now.
    visits: Mutex<HashMap<u64, Weak<Visit>>>,
    next_key: AtomicU64,
    begin: Instant,
    pub(crate) watching: Watching,
    /// What consumers of events have in hand.
    pub(crate) held: Holding,
    /// How tools are found.
    pub(crate) finding: Finding,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
    /// What tools and calls are held to.
    rules: ArcSwap<Rules>,
    /// What is known of definitions. Held while a snapshot is built.
    looking: Mutex<Looking>,
    /// What calls are called.
    pub(crate) ids: CallIds,
    /// Results that are kept for a while.
    pub(crate) cache: Arc<Cache>,
    /// Calls that are made once.
    pub(crate) repeats: Arc<Repeats>,
    /// Who makes spans, where traces are sent.
    pub(crate) tracer: Option<Arc<Tracer>>,
    /// What is counted.
    pub(crate) metrics: Arc<Metrics>,
    /// Whether every source has been ready, or has failed, once.
    settled: AtomicBool,
    /// What is kept for those who look.
    pub(crate) console: Console,
    /// Gone when we close: whoever still calls has it.
    recording: Mutex<Option<Arc<Recording>>>,
}

/// A source, and how its tools are taken. One without a source only holds its place among the names.
#[derive(Debug, Clone)]
pub struct Input {
    /// Where the tools come from.
    pub source: Option<Arc<dyn Source>>,
    /// What that is called.
    pub origin: Origin,
    /// How they are named.
    pub style: NameStyle,
    /// Which are taken.
    pub filter: ToolFilter,
    /// Without it the gateway is not ready.
    pub required: bool,
    /// How it is started or reached, where that may be pinned.
    pub way: Option<Way>,
    /// How often it may be called.
    pub limit: Limit,
}

/// How long after the start servers of which nothing is known are waited for.
const FIRST_LISTS: Duration = Duration::from_secs(3);

/// A client says that its folders are others now.
pub(crate) const ROOTS_CHANGED: &str = "notifications/roots/list_changed";

/// How long servers get to hear how much they are to log.
const LEVEL: Duration = Duration::from_secs(2);

/// How long clients get to let go once everything has ended.
const CLOSING: Duration = Duration::from_secs(3);

/// What a gateway says of itself.
#[derive(Debug, Default)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What agents should know.
    pub instructions: Option<String>,
    /// Where events go.
    pub bus: Option<Arc<dyn Bus>>,
    /// Where large results are kept.
    pub store: Option<Store>,
    /// Where calls are recorded.
    pub recorder: Option<(Recorder, Masker)>,
    /// What tools and calls are held to.
    pub rules: Rules,
    /// Where every call is recorded, and whatever matters to security.
    pub audit: Option<Arc<Audit>>,
    /// Where traces go.
    pub traces: Option<TraceSettings>,
}

impl Input {
    /// Whether both have the same source behind them.
    pub(crate) fn has_source_of(&self, other: &Self) -> bool {
        match (&self.source, &other.source) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether tools are taken from both in the same way.
    pub(crate) fn is_like(&self, other: &Self) -> bool {
        let Self { source: _, origin, style, filter, required, way, limit } = self;
        (origin, style, filter) == (&other.origin, &other.style, &other.filter)
            && (required, way, limit) == (&other.required, &other.way, &other.limit)
    }
}

impl Gateway {
    /// A gateway over these sources, which keeps its catalogue current until it is stopped.
    pub fn start(inputs: Vec<Input>, access: Access, mut settings: Settings) -> Arc<Self> {
        let recorder = settings.recorder.take();
        let next_slot = AtomicU64::new(0);
        let new_key = || next_slot.fetch_add(1, Ordering::Relaxed);
        let slots: Slots = inputs.into_iter().map(|it| Slot::of(&[], it, new_key)).collect();
        let offers = vec![Offers::default(); slots.len()];
        let none = Catalogue::default;
        let known = (none(), Vec::new());
        let empty = Snapshot::new(known, none(), offers, Slots::clone(&slots), Arc::new(access));
        let gateway = Arc::new(Self {
            visits: Mutex::default(),
            next_key: AtomicU64::new(1),
            begin: Instant::now(),
            watching: Watching::default(),
            held: Holding::default(),
            finding: Finding::default(),
            console: Console::new(),
            slots: ArcSwap::from_pointee(Slots::clone(&slots)),
            next_slot,
            snapshot: ArcSwap::from_pointee(empty),
            built: Mutex::default(),
            building: Mutex::default(),
            turn: Semaphore::new(1),
            changes: watch::Sender::new(0),
            instructions: ArcSwap::from_pointee(settings.instructions.clone()),
            rules: ArcSwap::from_pointee(std::mem::take(&mut settings.rules)),
            looking: Mutex::default(),
            ids: CallIds::default(),
            cache: Arc::default(),
            repeats: Arc::default(),
            tracer: settings.traces.take().and_then(|it| Tracer::start(it, &settings.version)),
            metrics: Arc::default(),
            settled: AtomicBool::new(false),
            settings,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
            recording: Mutex::default(),
        });
        if let Some(store) = gateway.settings.store.clone() {
            gateway.spawn(async move { keeping::sweep(store).await });
        }
        if let Some((recorder, masker)) = recorder {
            *gateway.recording.lock() = Some(Recording::start(&gateway, recorder, masker));
        }
        gateway.rebuild();
        for slot in slots.iter() {
            gateway.attach(slot);
        }
        gateway
    }

    /// Calls a tool as this caller would, within a time if one is given, and returns its result.
    pub async fn call(
        self: &Arc<Self>,
        caller: Caller,
        params: Json,
        listener: Option<Arc<dyn Listener>>,
        attempt: Option<Duration>,
    ) -> Result<Json, RpcError> {
        let asked = Asked {
            caller,
            era: Era::Legacy,
            method: "tools/call",
            params: Some(params.into_bytes()),
            listener,
            visit: None,
            depth: 0,
            attempt,
            trace: Trace::default(),
        };
        dispatch::answer(self, asked).await.map(Json::from_scanned)
    }

    /// Who may see what, just now.
    pub fn access(&self) -> Arc<Access> {
        Arc::clone(&self.snapshot.load().access)
    }

    /// What agents should know.
    pub(crate) fn instructions(&self) -> Arc<Option<String>> {
        self.instructions.load_full()
    }

    /// Resolves when somebody who was let in would be let in no more.
    pub(crate) async fn expelled(&self, caller: &Caller) {
        let mut changes = self.changes();
        while self.access().still_good(caller) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// A client comes to stay for a while.
    pub(crate) fn visit(self: &Arc<Self>, caller: Caller, own: Out) -> Arc<Visit> {
        let key = self.next_key();
        let visit = Arc::new(Visit::new(key, self, caller, own));
        self.visits.lock().insert(key, Arc::downgrade(&visit));
        visit
    }

    /// A client has left.
    pub(crate) fn left(self: &Arc<Self>, key: u64, watched: &BTreeSet<(u64, String)>) {
        self.visits.lock().remove(&key);
        self.unwatch_later(key, watched.iter().cloned().collect(), None);
    }

    /// Tells every source something on behalf of a client.
    pub(crate) fn tell(&self, method: &'static str, visit: &Arc<Visit>) {
        for source in self.slots.load().iter().filter_map(|it| it.source()) {
            source.tell(method, &Here(Arc::clone(visit)));
        }
    }

    /// A number that nothing else here has.
    pub(crate) fn next_key(&self) -> u64 {
        self.next_key.fetch_add(1, Ordering::Relaxed)
    }

    fn here(&self) -> Vec<Arc<Visit>> {
        self.visits.lock().values().filter_map(Weak::upgrade).collect()
    }

    /// A client wants to hear so much of what servers log. Servers that all share are told what the most
    /// curious client wants.
    pub(crate) async fn set_level(&self, visit: &Arc<Visit>, level: u8) {
        visit.set_level(level);
        let most = self.here().iter().filter_map(|it| it.level()).min().unwrap_or(level);
        let mut told = Vec::new();
        for source in self.slots().iter().filter_map(|it| it.source().cloned()) {
            let level = if source.is_shared() { most } else { level };
            let params = Json::of(&json!({ "level": LEVELS[usize::from(level)] }));
            let Ok(params) = params else { continue };
            let visitor = Arc::new(Here(Arc::clone(visit))) as Arc<dyn Visitor>;
            let context = CallContext { visitor: Some(visitor), ..CallContext::default() };
            told.push(self.tasks.spawn(async move {
                if let Err(error) = source.request("logging/setLevel", params, context).await {
                    tracing::debug!(source = source.label(), %error, "its log level stays");
                }
            }));
        }
        // A server that is slow to hear it does not keep the client waiting.
        let all = async {
            for it in told {
                it.await.ok();
            }
        };
        drop(tokio::time::timeout(LEVEL, all).await);
    }

    /// Some source says something of its own accord that could be for anybody.
    fn say_to_the_only_one(&self, slot: &Slot, method: &str, params: Option<Json>) {
        let snapshot = self.snapshot();
        let Some(at) = snapshot.place_of(slot.key) else { return };
        let mut here = self.here();
        here.retain(|it| snapshot.shows(&it.caller, at));
        // With more than one it could be of what another did.
        if let [visit] = here.as_slice() {
            let visit = Here(Arc::clone(visit));
            if slot.is_of(&visit) {
                visit.notified(method, params);
            }
        }
    }

    /// Waits a moment, soon after the start, for servers of which nothing is known yet: whoever asks
    /// once and never again should not hear that there is nothing.
    pub(crate) async fn first_lists(&self) {
        let unknown = || {
            let slots = self.slots.load();
            let mut sources = slots.iter().filter_map(|it| it.source());
            sources.any(|it| it.state() == SourceState::Connecting && !it.has_listed())
        };
        let end = self.begin + FIRST_LISTS;
        let behind = || unknown() || *self.built.lock() != versions(&self.slots.load());
        if end <= Instant::now() || !behind() {
            return;
        }
        let mut changes = self.changes();
        let listed = async { while behind() && changes.changed().await.is_ok() {} };
        drop(tokio::time::timeout_at(end, listed).await);
    }

    /// Whether every source is ready or has failed, and is listed as it is now.
    pub fn is_settled(&self) -> bool {
        let slots = self.slots.load();
        let mut sources = slots.iter().filter_map(|it| it.source());
        sources.all(|it| it.state() != SourceState::Connecting)
            && *self.built.lock() == versions(&slots)
    }

    /// How many tools there are.
    pub fn count(&self) -> usize {
        self.snapshot.load().count()
    }

    /// Does something until the gateway stops.
    pub fn spawn(self: &Arc<Self>, work: impl Future<Output = ()> + Send + 'static) {
        let stop = self.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = work => {}
                () = stop.cancelled() => {}
            }
        });
    }

    /// Lets nobody in any more.
    pub fn stop(&self) {
        self.stop.cancel();
    }

    /// Resolves when nobody is let in any more.
    pub async fn stopped(&self) {
        self.stop.cancelled().await;
    }

    /// Stops, and waits until calls in flight have ended.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.recording.lock().take();
        if tokio::time::timeout(CLOSING, self.tasks.wait()).await.is_err() {
            tracing::warn!("some clients did not let go in time");
        }
        if let Some(tracer) = &self.tracer {
            tracer.close().await;
        }
        // The end of the record is the last that is written.
        if let Some(audit) = self.settings.audit.clone() {
            tokio::task::spawn_blocking(move || audit.close()).await.ok();
        }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// What tools and calls are held to.
    pub(crate) fn rules(&self) -> Guard<Arc<Rules>> {
        self.rules.load()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Where every call is recorded.
    pub(crate) fn audit(&self) -> Option<&Arc<Audit>> {
        self.settings.audit.as_ref()
    }

    pub(crate) fn recording(&self) -> Option<Arc<Recording>> {
        self.recording.lock().clone()
    }

    /// Counts up with every snapshot.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
