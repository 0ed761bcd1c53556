//! What consumers could not deal with. It lies in a stream of its own, under a subject for each consumer;
//! what is revived goes back into the stream of events, under a subject that only its consumer reads.

use std::sync::Arc;

use async_nats::{
    HeaderMap,
    jetstream::{
        consumer::{AckPolicy, DeliverPolicy, pull},
        message::PublishMessage,
    },
};
use futures_util::StreamExt;

use super::{
    link::{ANSWER, Link, Live},
    message::{self, numbers, text},
    subject::{self, AGAIN, DEAD, durable, escape, unescape},
};
use crate::{BusError, ConsumerName, DeadLetter, Record};

/// The longest reason.
const MAX_REASON: usize = 500;

/// So many are looked at in one go.
const PAGE: usize = 256;

/// What is given up.
pub(crate) struct Lost<'a> {
    pub(crate) consumer: &'a str,
    /// Which consumer of that name it is.
    pub(crate) born: u64,
    /// The place of the message, and that of the event.
    pub(crate) place: u64,
    pub(crate) seq: u64,
    pub(crate) attempts: u64,
    pub(crate) reason: &'a str,
}

/// Puts an event to the dead letters. Twice is as good as once.
pub(crate) async fn bury(live: &Live, lost: &Lost<'_>) -> Result<(), String> {
    live.dead().await?;
    let durable = durable(lost.consumer);
    let mut headers = HeaderMap::new();
    let reason: String = lost.reason.chars().take(MAX_REASON).collect();
    headers.insert(message::ID, format!("{durable}:{}:{}", lost.born, lost.place));
    headers.insert(message::DEAD, format!("{} {}", lost.seq, lost.attempts));
    headers.insert(message::REASON, escape(&reason));
    // What is no longer kept is given up all the same.
    let kept = live.stream.get_raw_message(lost.place).await.ok();
    let payload = kept.as_ref().map(|it| it.payload.clone()).unwrap_or_default();
    if let Some(kept) = &kept {
        let carried = [message::OUTBOX, message::NAME, message::EVENT];
        for name in carried {
            if let Some(value) = kept.headers.get(name) {
                headers.insert(name, value.clone());
            }
        }
        if let Some(name) = subject::name(&kept.subject) {
            headers.insert(message::NAME, escape(&name));
        }
        if let (None, Some(id)) = (kept.headers.get(message::EVENT), kept.headers.get(message::ID))
        {
            headers.insert(message::EVENT, id.clone());
        }
    }
    publish(live, format!("{DEAD}{durable}"), payload, headers).await
}

async fn publish(
    live: &Live,
    subject: String,
    payload: bytes::Bytes,
    headers: HeaderMap,
) -> Result<(), String> {
    let publish = PublishMessage::build().payload(payload).headers(headers);
    let sent = live.js.send_publish(subject, publish).await.map_err(|it| it.to_string())?;
    sent.await.map(drop).map_err(|error| error.to_string())
}

/// One of them, with its place among them.
struct Found {
    at: u64,
    headers: HeaderMap,
    payload: bytes::Bytes,
    letter: DeadLetter,
}

/// Reads what a consumer could not deal with, oldest first.
async fn read(live: &Live, consumer: &str, limit: usize) -> Result<Vec<Found>, String> {
    let durable = durable(consumer);
    let config = pull::Config {
        deliver_policy: DeliverPolicy::All,
        ack_policy: AckPolicy::None,
        filter_subject: format!("{DEAD}{durable}"),
        memory_storage: true,
        num_replicas: 1,
        inactive_threshold: ANSWER * 6,
        ..pull::Config::default()
    };
    let stream = live.dead().await?;
    let reader = stream.create_consumer(config).await.map_err(|error| error.to_string())?;
    let mut left = reader.cached_info().num_pending;
    let mut found = Vec::new();
    while 0 < left && found.len() < limit {
        let fetch = reader.fetch().max_messages(PAGE.min(limit - found.len())).expires(ANSWER);
        let mut page = fetch.messages().await.map_err(|error| error.to_string())?;
        let before = left;
        while let Some(message) = page.next().await {
            let message = message.map_err(|error| error.to_string())?;
            let info = message.info().map_err(|error| error.to_string())?;
            left = info.pending;
            let at = u64::try_from(info.published.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
            let headers = message.headers.clone().unwrap_or_default();
            let payload = message.payload.clone();
            if let Some(letter) = letter(&headers, &payload, at) {
                found.push(Found { at: info.stream_sequence, headers, payload, letter });
            }
        }
        if left == before {
            return Err("NATS stopped in the middle".to_owned());
        }
    }
    stream.delete_consumer(&reader.cached_info().name).await.ok();
    Ok(found)
}

fn letter(headers: &HeaderMap, payload: &[u8], at: u64) -> Option<DeadLetter> {
    let headers = Some(headers);
    let [seq, attempts] = numbers::<2>(headers, message::DEAD)?;
    let name = text(headers, message::NAME).and_then(unescape);
    let record = name.and_then(|name| message::record(name, seq, at, headers, payload));
    Some(DeadLetter {
        record: record.map(Arc::<Record>::new),
        seq,
        attempts: u32::try_from(attempts).unwrap_or(u32::MAX),
        reason: text(headers, message::REASON).and_then(unescape).unwrap_or_default(),
        at,
    })
}

/// What a consumer could not deal with, oldest first.
pub(crate) async fn all(
    link: &Link,
    consumer: &ConsumerName,
    limit: usize,
) -> Result<Vec<DeadLetter>, BusError> {
    let live = link.live().await?;
    let found = read(&live, consumer.as_str(), limit).await;
    let found = found.map_err(|cause| link.failed("reading dead letters", cause))?;
    Ok(found.into_iter().map(|it| it.letter).collect())
}

/// Delivers them again; how many.
pub(crate) async fn revive(link: &Link, consumer: &ConsumerName) -> Result<usize, BusError> {
    let live = link.live().await?;
    if !live.revives {
        return Err(BusError::Refused(format!(
            "the stream `{}` on NATS does not take `{AGAIN}>`; add that to its subjects",
            link.plan.stream
        )));
    }
    let revived = revive_all(&live, consumer.as_str()).await;
    revived.map_err(|cause| link.failed("reviving dead letters", cause))
}

async fn revive_all(live: &Live, consumer: &str) -> Result<usize, String> {
    let durable = durable(consumer);
    let dead = live.dead().await?;
    let mut count = 0;
    loop {
        let page = read(live, consumer, PAGE).await?;
        if page.is_empty() {
            return Ok(count);
        }
        for Found { at, mut headers, payload, letter } in page {
            if letter.record.is_some() {
                // Whoever does this twice, being interrupted, has it delivered once.
                let born = u64::try_from(dead.cached_info().created.unix_timestamp_nanos());
                let id = format!("again:{durable}:{}:{at}", born.unwrap_or_default());
                headers.insert(message::ID, id);
                headers.insert(message::PLACE, letter.seq.to_string());
                publish(live, format!("{AGAIN}{durable}"), payload, headers).await?;
                count += 1;
            }
            dead.delete_message(at).await.map_err(|error| error.to_string())?;
        }
    }
}

/// How many each consumer has, by the names that NATS knows them under.
pub(crate) async fn counts(live: &Live) -> Result<Vec<(String, u64)>, String> {
    let dead = live.dead().await?;
    let info = dead.info_with_subjects(format!("{DEAD}>")).await;
    let mut info = info.map_err(|error| error.to_string())?;
    let mut found = Vec::new();
    while let Some(row) = info.next().await {
        let (subject, count) = row.map_err(|error| error.to_string())?;
        if let Some(durable) = subject.strip_prefix(DEAD) {
            found.push((durable.to_owned(), count as u64));
        }
    }
    Ok(found)
}

/// Removes all that is kept for a consumer.
pub(crate) async fn forget(live: &Live, durable: &str) -> Result<(), String> {
    let dead = live.dead().await?;
    let purged = dead.purge().filter(format!("{DEAD}{durable}")).await;
    purged.map_err(|error| error.to_string())?;
    let purged = live.stream.purge().filter(format!("{AGAIN}{durable}")).await;
    purged.map(drop).map_err(|error| error.to_string())
}
