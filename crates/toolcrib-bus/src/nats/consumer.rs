//! A durable consumer as NATS keeps it: found, made, or changed to what is wished.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use async_nats::jetstream::{
    consumer::{self, AckPolicy, Consumer, DeliverPolicy, pull},
    context::ConsumerInfoErrorKind,
};

use super::{
    link::{Link, Live},
    subject::{AGAIN, durable, subjects},
};
use crate::{BusError, Filter, Start, Wish};

/// More events than this are not out with one consumer at a time.
pub(crate) const MAX_PENDING: usize = 1000;

/// More consumers than this, readers among them, are not made.
pub(crate) const MAX_CONSUMERS: usize = 2000;

/// The longest name that NATS takes.
const MAX_NAME: usize = 240;

/// What we call a consumer, and what it asks for, beside what NATS knows of it.
pub(crate) const NAME: &str = "toolcrib-name";
const FILTER: &str = "toolcrib-filter";

/// Which of those that had its name over time a consumer is. When NATS made it would say the same, but a
/// server of 2.10 changes its mind about that when it restarts.
const BORN: &str = "toolcrib-born";

/// A consumer that was used here.
#[derive(Clone)]
pub(crate) struct Known {
    pub(crate) consumer: Arc<Consumer<pull::Config>>,
    pub(crate) filter: Filter,
    patience: Duration,
    /// Which it is: another of the same name begins anew.
    pub(crate) born: u64,
    live: Weak<Live>,
}

impl Known {
    /// Whether it is as it is wished, and of this connection.
    pub(crate) fn is_as(&self, wish: &Wish, live: &Arc<Live>) -> bool {
        self.patience == wish.patience
            && wish.filter.as_ref().is_none_or(|filter| *filter == self.filter)
            && std::ptr::eq(self.live.as_ptr(), Arc::as_ptr(live))
    }
}

/// Finds the consumer, or makes it, and has it as it is wished.
pub(crate) async fn ensure(link: &Link, live: &Arc<Live>, wish: &Wish) -> Result<Known, BusError> {
    let name = wish.consumer.as_str();
    let failed = |cause: String| link.failed("finding the consumer", cause);
    let durable = durable(name);
    if MAX_NAME < durable.len() {
        return Err(BusError::Refused(format!("the name `{name}` is too long for NATS")));
    }
    let info = match live.stream.consumer_info(&durable).await {
        Ok(info) => adapt(live, info, wish).await.map_err(failed)?,
        Err(error) if error.kind() == ConsumerInfoErrorKind::NotFound => {
            make(link, live, &durable, wish).await?
        }
        Err(error) => return Err(failed(error.to_string())),
    };
    let Some((filter, born)) = stored(&info.config, name) else {
        return Err(BusError::Refused(format!(
            "the consumer `{durable}` on NATS is somebody else's"
        )));
    };
    let consumer = live.stream.get_consumer::<pull::Config>(&durable).await;
    let consumer = Arc::new(consumer.map_err(|error| failed(error.to_string()))?);
    Ok(Known { consumer, filter, patience: wish.patience, born, live: Arc::downgrade(live) })
}

async fn make(
    link: &Link,
    live: &Live,
    durable: &str,
    wish: &Wish,
) -> Result<consumer::Info, BusError> {
    let failed = |cause: String| link.failed("making the consumer", cause);
    let state = live.stream.get_info().await;
    let state = state.map_err(|error| failed(error.to_string()))?.state;
    if MAX_CONSUMERS <= state.consumer_count {
        return Err(BusError::Refused(format!("there are {MAX_CONSUMERS} consumers already")));
    }
    let next = state.last_sequence + 1;
    let start = |start_sequence| DeliverPolicy::ByStartSequence { start_sequence };
    let deliver_policy = match wish.start {
        Start::First => DeliverPolicy::All,
        Start::At(seq) => start(seq.clamp(1, next)),
        Start::New => start(next),
    };
    let filter = wish.filter.clone().unwrap_or_default();
    let name = wish.consumer.as_str();
    let written = serde_json::to_string(&filter).unwrap_or_default();
    let born = uuid::Uuid::now_v7().as_u64_pair().1;
    let config = pull::Config {
        durable_name: Some(durable.to_owned()),
        deliver_policy,
        ack_policy: AckPolicy::Explicit,
        ack_wait: wish.patience.max(Duration::from_millis(1)),
        max_deliver: -1,
        filter_subjects: wanted(live, &filter, durable),
        max_ack_pending: i64::try_from(MAX_PENDING).unwrap_or(i64::MAX),
        inactive_threshold: link.plan.retain,
        metadata: [(NAME, name.to_owned()), (FILTER, written), (BORN, born.to_string())]
            .map(|(key, value)| (key.to_owned(), value))
            .into(),
        ..pull::Config::default()
    };
    match live.stream.create_consumer_strict(config).await {
        Ok(made) => Ok(made.cached_info().clone()),
        // Another gateway was faster.
        Err(error) => match live.stream.consumer_info(durable).await {
            Ok(info) => adapt(live, info, wish).await.map_err(failed),
            Err(_) => Err(failed(error.to_string())),
        },
    }
}

/// Changes what is wished otherwise.
async fn adapt(live: &Live, info: consumer::Info, wish: &Wish) -> Result<consumer::Info, String> {
    let Some((now, _)) = stored(&info.config, wish.consumer.as_str()) else { return Ok(info) };
    let filter = wish.filter.as_ref().filter(|it| **it != now);
    let patience = wish.patience.max(Duration::from_millis(1));
    if filter.is_none() && info.config.ack_wait == patience {
        return Ok(info);
    }
    let mut config = info.config.clone();
    config.ack_wait = patience;
    if let Some(filter) = filter {
        config.filter_subject = String::new();
        config.filter_subjects = wanted(live, filter, &info.name);
        let written = serde_json::to_string(filter).unwrap_or_default();
        config.metadata.insert(FILTER.to_owned(), written);
    }
    let updated = live.stream.update_consumer(config).await;
    updated.map(|it| it.cached_info().clone()).map_err(|error| error.to_string())
}

/// What a consumer of ours asks for, and which it is; nothing where it is not ours.
pub(crate) fn stored(config: &consumer::Config, name: &str) -> Option<(Filter, u64)> {
    let metadata = &config.metadata;
    metadata.get(NAME).filter(|it| *it == name)?;
    Some((serde_json::from_str(metadata.get(FILTER)?).ok()?, metadata.get(BORN)?.parse().ok()?))
}

/// The subjects of what a consumer asks for, and of what is to be delivered to it again.
fn wanted(live: &Live, filter: &Filter, durable: &str) -> Vec<String> {
    let mut wanted = subjects(filter);
    if live.revives {
        wanted.push(format!("{AGAIN}{durable}"));
    }
    wanted
}

/// Nanoseconds since 1970.
pub(crate) fn nanos(time: &async_nats::datetime::DateTime) -> u64 {
    u64::try_from(time.unix_timestamp_nanos()).unwrap_or_default()
}
