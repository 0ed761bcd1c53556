//! NATS, and what befalls it. Whatever that is: what was answered arrives, once, in order, and nobody waits.

mod faults;
mod gateway;
mod outbox;
mod sharing;

use std::{
    collections::BTreeSet,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use async_nats::jetstream::stream;
use toolcrib_bus::{Bus, BusError, Nats, NatsSettings, Record, Wish};

use super::{
    broker::Broker,
    suite::{event, number, read, wish},
};
use crate::kit::Folder;

const LONG: Duration = Duration::from_secs(60);

fn open(folder: &Folder, settings: NatsSettings) -> Arc<Nats> {
    open_at(&folder.file("events.db"), settings)
}

fn open_at(path: &Path, settings: NatsSettings) -> Arc<Nats> {
    Arc::new(Nats::open(path, settings).unwrap())
}

/// Waits until the state is such.
async fn until(bus: &Nats, what: &str, is_so: impl Fn(Option<&str>) -> bool) {
    let begin = Instant::now();
    loop {
        let state = bus.state();
        if is_so(state.waiting.as_deref()) {
            return;
        }
        assert!(begin.elapsed() < LONG, "not in time: {what}: {state:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// All that is in the stream, as NATS itself has it: subject, message id, and payload.
async fn stored(broker: &Broker, count: u64) -> Vec<(String, String, String)> {
    let jetstream = broker.jetstream().await;
    let begin = Instant::now();
    let stream = loop {
        let found = jetstream.get_stream("TOOLCRIB").await;
        match found {
            Ok(found) if count <= found.cached_info().state.messages => break found,
            found => assert!(begin.elapsed() < LONG, "{count} expected: {found:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    // What would be too many comes a little later.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let state = stream.get_info().await.unwrap().state;
    assert_eq!(state.messages, count, "as many as were sent");
    let mut found = Vec::new();
    for place in state.first_sequence..=state.last_sequence {
        let message = stream.get_raw_message(place).await.unwrap();
        let id = message.headers.get("Nats-Msg-Id").unwrap().to_string();
        let payload = String::from_utf8(message.payload.to_vec()).unwrap();
        found.push((message.subject.to_string(), id, payload));
    }
    found
}

/// A stream that somebody made before us.
async fn made(broker: &Broker, config: stream::Config) {
    let subjects = vec!["toolcrib.events.>".to_owned(), "toolcrib.again.>".to_owned()];
    let subjects = if config.subjects.is_empty() { subjects } else { config.subjects };
    let config = stream::Config { name: "TOOLCRIB".to_owned(), subjects, ..config };
    broker.jetstream().await.create_stream(config).await.unwrap();
}

fn numbers(records: &[Arc<Record>]) -> Vec<usize> {
    records.iter().map(|it| number(it)).collect()
}

/// Sends events at the same time; the numbers, in the order in which they were appended.
async fn send(bus: &Nats, name: &str, range: std::ops::Range<usize>) -> Vec<usize> {
    let sending = range.map(|n| async move { (bus.append(event(name, n)).await.unwrap().seq, n) });
    let mut sent = futures_util::future::join_all(sending).await;
    sent.sort_unstable();
    sent.into_iter().map(|(_, n)| n).collect()
}

fn assert_once(records: &[Arc<Record>], count: usize) {
    let ids: BTreeSet<_> = records.iter().map(|it| &it.id).collect();
    let all: BTreeSet<_> = records.iter().map(|it| number(it)).collect();
    assert_eq!((records.len(), ids.len(), all.len()), (count, count, count));
}
