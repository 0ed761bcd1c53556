//! The bus of a workspace: the one of the gateway that serves it, or its file where none does.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::sync::OnceCell;
use toolcrib::{Claim, Data, Network, Owner, Remote, environment};
use toolcrib_bus::{
    BoxFuture, Bus, BusError, BusState, ConsumerName, ConsumerState, DeadLetter, Delivery, Event,
    Filter, Follow, Outcome, Receipt, Settled, Start, Wish,
};

use super::Failure;

/// How long a gateway may take to start, or another command to end.
const STARTING: Duration = Duration::from_secs(15);

/// How often it is looked for.
pub(crate) const LOOK: Duration = Duration::from_millis(100);

/// The bus of a workspace, whoever has it.
#[derive(Debug)]
pub(crate) struct Reached {
    bus: Arc<dyn Bus>,
    /// Ours until we let go.
    data: Option<Data>,
}

impl Reached {
    pub(crate) async fn of(folder: &Path) -> Result<Self, Failure> {
        let begin = Instant::now();
        loop {
            match Data::claim(folder) {
                Claim::Ours(data) => {
                    let network = Network::read(folder, &environment)?;
                    let bus = network.bus.open(&data.file("events.db"))?;
                    return Ok(Self { bus, data: Some(data) });
                }
                Claim::Taken(_) => match Remote::connect(Owner::of(folder)).await {
                    Ok(remote) => return Ok(Self { bus: Arc::new(remote), data: None }),
                    // It may just be starting; or it is another command, and soon done.
                    Err(error) if STARTING < begin.elapsed() => return Err(error.into()),
                    Err(_) => tokio::time::sleep(LOOK).await,
                },
                Claim::Unusable(cause) => {
                    return Err(Failure::unusable(format!("events cannot be kept: {cause}")));
                }
            }
        }
    }

    pub(crate) fn bus(&self) -> &Arc<dyn Bus> {
        &self.bus
    }

    /// Whether nobody else has it.
    pub(crate) fn is_ours(&self) -> bool {
        self.data.is_some()
    }

    pub(crate) async fn close(self) {
        self.bus.close().await;
        drop(self.data);
    }
}

/// The bus of a workspace, reached when it is first needed: most tools emit nothing.
#[derive(Debug)]
pub(crate) struct Later {
    folder: PathBuf,
    reached: OnceCell<Result<Reached, BusError>>,
}

impl Later {
    pub(crate) fn new(folder: &Path) -> Self {
        Self { folder: folder.to_owned(), reached: OnceCell::new() }
    }

    async fn bus(&self) -> Result<&Arc<dyn Bus>, BusError> {
        let reach = || async {
            Reached::of(&self.folder)
                .await
                .map_err(|failure| BusError::Unavailable(failure.message))
        };
        self.reached.get_or_init(reach).await.as_ref().map(Reached::bus).map_err(Clone::clone)
    }
}

impl Bus for Later {
    fn append(&self, event: Event) -> BoxFuture<'_, Result<Receipt, BusError>> {
        Box::pin(async move { self.bus().await?.append(event).await })
    }

    fn follow(
        &self,
        filter: Filter,
        start: Start,
    ) -> BoxFuture<'_, Result<Box<dyn Follow>, BusError>> {
        Box::pin(async move { self.bus().await?.follow(filter, start).await })
    }

    fn fetch<'a>(
        &'a self,
        wish: &'a Wish,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, BusError>> {
        Box::pin(async move { self.bus().await?.fetch(wish, wait).await })
    }

    fn settle<'a>(
        &'a self,
        consumer: &'a ConsumerName,
        outcomes: Vec<(u64, Outcome)>,
    ) -> BoxFuture<'a, Result<Settled, BusError>> {
        Box::pin(async move { self.bus().await?.settle(consumer, outcomes).await })
    }

    fn consumers(&self) -> BoxFuture<'_, Result<Vec<ConsumerState>, BusError>> {
        Box::pin(async move { self.bus().await?.consumers().await })
    }

    fn dead<'a>(
        &'a self,
        consumer: &'a ConsumerName,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, BusError>> {
        Box::pin(async move { self.bus().await?.dead(consumer, limit).await })
    }

    fn revive<'a>(&'a self, consumer: &'a ConsumerName) -> BoxFuture<'a, Result<usize, BusError>> {
        Box::pin(async move { self.bus().await?.revive(consumer).await })
    }

    fn forget<'a>(&'a self, consumer: &'a ConsumerName) -> BoxFuture<'a, Result<bool, BusError>> {
        Box::pin(async move { self.bus().await?.forget(consumer).await })
    }

    fn state(&self) -> BusState {
        let reached = self.reached.get().and_then(|it| it.as_ref().ok());
        reached.map(|it| it.bus.state()).unwrap_or_default()
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Some(Ok(reached)) = self.reached.get() {
                reached.bus.close().await;
            }
        })
    }
}
