//! The gateway: sources on one side, callers on the other, and a snapshot between them.

use std::{sync::Arc, time::Duration};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolcrib_catalogue::{
    Catalogue, Listing, NameStyle, Offers, Origin, Problem, Settings as Naming, Source,
    SourceState, ToolFilter,
};

use crate::{
    access::{Access, Caller},
    snapshot::Snapshot,
};

/// A gateway.
#[derive(Debug)]
pub struct Gateway {
    inputs: Vec<Input>,
    snapshot: ArcSwap<Snapshot>,
    /// The versions of the sources that the snapshot was built from. Held while one is built, so that
    /// an older one never takes the place of a newer one.
    built: Mutex<Vec<u64>>,
    /// Counts the snapshots.
    changes: watch::Sender<u64>,
    settings: Settings,
    instructions: ArcSwap<Option<String>>,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
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
}

/// How long clients get to let go once everything has ended.
const CLOSING: Duration = Duration::from_secs(3);

/// What a gateway says of itself.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What agents should know.
    pub instructions: Option<String>,
}

impl Gateway {
    /// A gateway over these sources, which keeps its catalogue current until it is stopped.
    pub fn start(inputs: Vec<Input>, access: Access, settings: Settings) -> Arc<Self> {
        let offers = vec![Offers::default(); inputs.len()];
        let empty =
            Snapshot::new(Catalogue::default(), Catalogue::default(), offers, Arc::new(access));
        let gateway = Arc::new(Self {
            inputs,
            snapshot: ArcSwap::from_pointee(empty),
            built: Mutex::default(),
            changes: watch::Sender::new(0),
            instructions: ArcSwap::from_pointee(settings.instructions.clone()),
            settings,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        gateway.rebuild();
        for input in &gateway.inputs {
            if let Some(source) = input.source.clone() {
                let this = Arc::clone(&gateway);
                gateway.tasks.spawn(async move {
                    tokio::select! {
                        () = this.stop.cancelled() => {}
                        () = this.follow(&*source) => {}
                    }
                });
            }
        }
        gateway
    }

    /// Builds the catalogue anew whenever a source changes. Never returns.
    async fn follow(&self, source: &dyn Source) {
        loop {
            let version = source.version();
            self.rebuild();
            source.changed_since(version).await;
        }
    }

    /// Builds the catalogue anew, and says what is wrong.
    pub fn rebuild(&self) -> Vec<Problem> {
        self.rebuild_with(None)
    }

    /// Builds catalogue and views anew, under these rules or those in force; they change in one moment.
    fn rebuild_with(&self, access: Option<Access>) -> Vec<Problem> {
        let mut built = self.built.lock();
        *built = self.versions();
        let listing = |input: &Input| Listing {
            origin: input.origin.clone(),
            style: input.style,
            filter: input.filter.clone(),
            tools: input.source.as_ref().map(|it| it.tools()).unwrap_or_default(),
        };
        let listings: Vec<Listing> = self.inputs.iter().map(listing).collect();
        let (catalogue, mut problems) = match Catalogue::build(&listings, &Naming::default()) {
            Ok(built) => built,
            Err(conflict) => {
                tracing::error!("{conflict}");
                return vec![Problem::new("tools", conflict.to_string())];
            }
        };
        let offers: Vec<Offers> = self
            .inputs
            .iter()
            .map(|it| it.source.as_ref().map(|it| it.offers()).unwrap_or_default())
            .collect();
        let prompts: Vec<Listing> = listings
            .into_iter()
            .zip(&offers)
            .map(|(listing, offer)| Listing {
                tools: Arc::clone(&offer.prompts),
                filter: ToolFilter::default(),
                ..listing
            })
            .collect();
        // Prompts are named as tools are, and clash as they do.
        let prompts = match Catalogue::build(&prompts, &Naming::default()) {
            Ok((prompts, clashes)) => {
                problems.extend(clashes);
                prompts
            }
            Err(conflict) => {
                problems.push(Problem::new("prompts", conflict.to_string()));
                Catalogue::default()
            }
        };
        let access = access.map_or_else(|| self.access(), Arc::new);
        let snapshot = Snapshot::new(catalogue, prompts, offers, Arc::clone(&access));
        let ready = self.inputs.iter().flat_map(|it| &it.source);
        if ready.clone().all(|it| it.state() != SourceState::Connecting) {
            for slip in access.unmatched(&snapshot.names()) {
                let message = format!("`{slip}` is the name of no tool");
                problems.push(Problem::new("network.yaml: external_access", message));
            }
        }
        self.snapshot.store(Arc::new(snapshot));
        self.changes.send_modify(|it| *it += 1);
        problems
    }

    /// Lets other people in from now on, and tells them this. Says what is wrong.
    pub fn set_access(&self, access: Access, instructions: Option<String>) -> Vec<Problem> {
        self.instructions.store(Arc::new(instructions));
        self.rebuild_with(Some(access))
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

    /// Whether every source is ready or has failed, and is listed as it is now.
    pub fn is_settled(&self) -> bool {
        let mut sources = self.inputs.iter().flat_map(|it| &it.source);
        sources.all(|it| it.state() != SourceState::Connecting)
            && *self.built.lock() == self.versions()
    }

    fn versions(&self) -> Vec<u64> {
        self.inputs.iter().flat_map(|it| &it.source).map(|it| it.version()).collect()
    }

    /// How many tools there are.
    pub fn count(&self) -> usize {
        self.snapshot.load().count()
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
        if tokio::time::timeout(CLOSING, self.tasks.wait()).await.is_err() {
            tracing::warn!("some clients did not let go in time");
        }
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(crate) fn source(&self, listing: usize) -> Option<&Arc<dyn Source>> {
        self.inputs.get(listing)?.source.as_ref()
    }

    /// Counts up with every snapshot.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}
