//! Somebody who reads the stream from a place on, whatever becomes of the connection meanwhile.
//!
//! What was seen last is known here and not to NATS: behind it a new reader begins, wherever the old one
//! was, so nothing is left out and nothing comes twice.

use std::{
    collections::{HashSet, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use async_nats::jetstream::{
    Message,
    consumer::{AckPolicy, Consumer, DeliverPolicy, pull},
};
use futures_util::{FutureExt, StreamExt};

use super::{
    link::{ANSWER, Link, Live},
    message::Arrived,
    subject,
};
use crate::{Batch, BusError, Filter, Follow, Record, bus::BoxFuture};

/// So many events at a time, and so many bytes of them.
const PAGE: usize = 256;
const PAGE_BYTES: usize = 8 * 1024 * 1024;

/// So long a question waits at NATS for something to come.
const PATIENCE: Duration = Duration::from_secs(20);

/// So many events are known again where the stream lost its end and gets it anew.
const KNOWN: usize = 1024;

/// The pause after something failed.
const PAUSE: Duration = Duration::from_millis(200);

/// A reader that NATS keeps for us; it goes away by itself.
struct Reader {
    live: Arc<Live>,
    consumer: Consumer<pull::Config>,
    /// What was asked for and has not come yet.
    page: Option<pull::Batch>,
    /// NATS numbers what it gives us: what is missing shows.
    count: u64,
}

pub(crate) struct Follower {
    link: Arc<Link>,
    filter: Filter,
    /// The last that was looked at.
    cursor: u64,
    /// The stream it was in.
    born: u64,
    /// So many are gone and were not told of yet.
    missed: u64,
    /// The last that came, by their ids.
    recent: VecDeque<u64>,
    /// These come a second time.
    repeats: HashSet<u64>,
    reader: Option<Reader>,
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follower").field("cursor", &self.cursor).finish_non_exhaustive()
    }
}

impl Follow for Follower {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, BusError>> {
        Box::pin(self.read())
    }
}

impl Follower {
    pub(crate) fn new(link: Arc<Link>, filter: Filter, cursor: u64, born: u64) -> Self {
        Self {
            link,
            filter,
            cursor,
            born,
            missed: 0,
            recent: VecDeque::new(),
            repeats: HashSet::new(),
            reader: None,
        }
    }

    /// Everything that has come is kept in `self` before anything is waited for: whoever drops this loses
    /// nothing.
    async fn read(&mut self) -> Result<Batch, BusError> {
        let closed = self.link.closed.clone();
        loop {
            let read = tokio::select! {
                biased;
                () = closed.cancelled() => return Err(BusError::Closed),
                read = self.read_some() => read,
            };
            match read {
                Ok(batch)
                    if batch.records.is_empty()
                        && batch.missed == 0
                        && batch.damaged.is_empty() => {}
                Ok(batch) => return Ok(batch),
                Err(BusError::Closed) => return Err(BusError::Closed),
                Err(error) => {
                    tracing::debug!(%error, "a follower begins anew");
                    self.reader = None;
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn read_some(&mut self) -> Result<Batch, BusError> {
        let link = Arc::clone(&self.link);
        let failed = |cause: String| link.failed("reading events", cause);
        if self.reader.as_ref().is_none_or(|it| it.live.gone.is_cancelled()) {
            let live = link.some_day().await?;
            self.reader = None;
            self.reader = Some(self.begin(live).await.map_err(failed)?);
        }
        if 0 < self.missed {
            let missed = std::mem::take(&mut self.missed);
            return Ok(Batch { passed: self.cursor, missed, ..Batch::default() });
        }
        let Some(reader) = &mut self.reader else { return Ok(Batch::default()) };
        let first = reader.next().await.map_err(failed)?;
        let mut batch = Batch { passed: self.cursor, ..Batch::default() };
        let mut message = first;
        while let Some(arrived) = message {
            if let Err(cause) = self.take(&arrived, &mut batch) {
                // What was taken before that counts, and is behind us: it must not go with the error.
                self.reader = None;
                tracing::debug!(%cause, "a follower begins anew");
                break;
            }
            if PAGE <= batch.records.len() {
                break;
            }
            let Some(page) = self.reader.as_mut().and_then(|it| it.page.as_mut()) else { break };
            message = match page.next().now_or_never() {
                Some(Some(Ok(message))) => Some(message),
                Some(_ended) => {
                    self.reader.as_mut().map(|it| it.page.take());
                    None
                }
                None => None,
            };
        }
        Ok(batch)
    }

    /// Has NATS read for us from behind the last that we have seen.
    async fn begin(&mut self, live: Arc<Live>) -> Result<Reader, String> {
        let (first, last) = live.ends().await?;
        if live.born != self.born {
            tracing::warn!(cursor = self.cursor, "the stream on NATS is a new one");
            (self.born, self.cursor) = (live.born, first.saturating_sub(1));
        } else if last < self.cursor {
            // It lost its end, as with a disk that was not waited for. Whoever sent that sends it again.
            tracing::warn!(cursor = self.cursor, last, "the stream on NATS lost its end");
            self.cursor = last;
            self.repeats = self.recent.iter().copied().collect();
        } else if self.cursor + 1 < first {
            self.missed += first - self.cursor - 1;
            self.cursor = first - 1;
        }
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: self.cursor + 1 },
            ack_policy: AckPolicy::None,
            filter_subjects: subject::subjects(&self.filter),
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: PATIENCE * 3,
            ..pull::Config::default()
        };
        let consumer = live.stream.create_consumer(config).await.map_err(|it| it.to_string())?;
        Ok(Reader { live, consumer, page: None, count: 0 })
    }

    fn take(&mut self, message: &Message, batch: &mut Batch) -> Result<(), String> {
        let Some(reader) = &mut self.reader else { return Ok(()) };
        let count = message.info().map_err(|error| error.to_string())?.consumer_sequence;
        let Some(arrived) = Arrived::read(message) else { return Ok(()) };
        if count != reader.count + 1 {
            return Err("something was left out on the way".to_owned());
        }
        reader.count = count;
        if arrived.place <= self.cursor {
            return Ok(());
        }
        self.cursor = arrived.place;
        batch.passed = arrived.place;
        match arrived.record {
            Some(record) if self.filter.matches(&record.name) => {
                let known = known_by(&record.id);
                if self.repeats.remove(&known) {
                    return Ok(());
                }
                self.recent.push_back(known);
                if KNOWN < self.recent.len() {
                    self.recent.pop_front();
                }
                batch.records.push(Arc::<Record>::new(record));
            }
            Some(_) => {}
            None => {
                tracing::warn!(place = arrived.place, "what others put on NATS is no event");
                batch.damaged.push(arrived.place..=arrived.place);
            }
        }
        Ok(())
    }
}

fn known_by(id: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    hasher.finish()
}

impl Reader {
    /// The next message; nothing where none came for a while.
    async fn next(&mut self) -> Result<Option<Message>, String> {
        if self.page.is_none() {
            let fetch = self.consumer.fetch().max_messages(PAGE).max_bytes(PAGE_BYTES);
            let asked = fetch.expires(PATIENCE).messages().await;
            self.page = Some(asked.map_err(|error| error.to_string())?);
        }
        let Some(page) = &mut self.page else { return Ok(None) };
        let waited = tokio::select! {
            biased;
            waited = tokio::time::timeout(PATIENCE + ANSWER, page.next()) => waited,
            () = self.live.gone.cancelled() => return Err(self.live.why_gone()),
        };
        match waited {
            Ok(Some(Ok(message))) => Ok(Some(message)),
            Ok(None) => {
                self.page = None;
                Ok(None)
            }
            Ok(Some(Err(error))) => Err(error.to_string()),
            Err(_late) => Err("NATS does not answer".to_owned()),
        }
    }
}
