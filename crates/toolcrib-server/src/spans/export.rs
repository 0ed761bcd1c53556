//! The task that sends spans: in batches, a few times where it goes wrong, and never for ever.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, header::CONTENT_TYPE};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout, timeout_at},
};
use toolcrib_wire::{ConnectError, Endpoint, Hook, RequestError};

use super::{
    Counts,
    otlp::{Sender, request},
    span::Finished,
};
use crate::session::random_id;

/// So many spans go at once.
const BATCH: usize = 512;

/// A span waits no longer than this for others.
const GATHER: Duration = Duration::from_secs(5);

/// How long the collector may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// How often a batch is tried.
const ATTEMPTS: u32 = 4;

/// The longest pause between two attempts.
const LONGEST: Duration = Duration::from_secs(30);

pub(super) struct Exporter {
    hook: Hook,
    sender: Sender,
    counts: Arc<Counts>,
    /// Whether it was told that the collector does not take anything.
    told: bool,
}

/// How it went.
enum Sent {
    Taken,
    /// It may be taken later; after so long, where the collector says so.
    Later(String, Option<Duration>),
    /// It never will be.
    Refused(String),
}

impl Exporter {
    pub(super) fn new(
        endpoint: &Endpoint,
        service: &str,
        version: &str,
        counts: Arc<Counts>,
    ) -> Result<Self, ConnectError> {
        let (service, version) = (service.to_owned(), version.to_owned());
        let sender = Sender { service, version, instance: random_id().unwrap_or_default() };
        Ok(Self { hook: Hook::new(endpoint)?, sender, counts, told: false })
    }

    /// Sends until nothing more comes.
    pub(super) async fn run(mut self, mut waiting: mpsc::Receiver<Finished>) {
        let mut batch = Vec::with_capacity(BATCH);
        while let Some(first) = waiting.recv().await {
            batch.push(first);
            let end = Instant::now() + GATHER;
            while batch.len() < BATCH {
                let room = BATCH - batch.len();
                match timeout_at(end, waiting.recv_many(&mut batch, room)).await {
                    Ok(0) | Err(_) => break,
                    Ok(_) => {}
                }
            }
            let body = request(&self.sender, &batch);
            let taken = self.send(body, &waiting).await;
            let count = batch.len() as u64;
            let counted = if taken { &self.counts.sent } else { &self.counts.failed };
            counted.fetch_add(count, Relaxed);
            self.counts.waiting.fetch_sub(count, Relaxed);
            batch.clear();
        }
    }

    /// Sends a batch, again where that may help; when the gateway closes, once.
    async fn send(&mut self, body: Bytes, waiting: &mpsc::Receiver<Finished>) -> bool {
        let mut cause = String::new();
        for attempt in 0..ATTEMPTS {
            let wait = match self.post(body.clone()).await {
                Sent::Taken => {
                    self.went_well();
                    return true;
                }
                Sent::Refused(why) => {
                    cause = why;
                    break;
                }
                Sent::Later(why, wait) => {
                    cause = why;
                    wait.unwrap_or_else(|| Duration::from_secs(1 << attempt))
                }
            };
            if waiting.is_closed() || attempt + 1 == ATTEMPTS {
                break;
            }
            sleep(wait.min(LONGEST)).await;
        }
        self.went_wrong(&cause);
        false
    }

    async fn post(&self, body: Bytes) -> Sent {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        match timeout(PATIENCE, self.hook.post(body, headers)).await {
            Ok(Ok(())) => Sent::Taken,
            Ok(Err(RequestError::Http { status: 429 | 502..=504, retry_after, .. })) => {
                let wait = retry_after.map(Duration::from_secs);
                Sent::Later("it is busy".to_owned(), wait)
            }
            // What it says may be anything: only the status is told.
            Ok(Err(RequestError::Http { status, .. })) => {
                Sent::Refused(format!("it answers HTTP {status}"))
            }
            Ok(Err(error @ (RequestError::Unreachable { .. } | RequestError::Lost { .. }))) => {
                Sent::Later(error.to_string(), None)
            }
            Ok(Err(error)) => Sent::Refused(error.to_string()),
            Err(_) => Sent::Later(format!("no answer within {} s", PATIENCE.as_secs()), None),
        }
    }

    /// A collector that is away is told of once, and then only that it is back.
    fn went_wrong(&mut self, cause: &str) {
        if !std::mem::replace(&mut self.told, true) {
            tracing::warn!(cause, "the collector takes no traces; they are dropped meanwhile");
        }
    }

    fn went_well(&mut self) {
        if std::mem::take(&mut self.told) {
            tracing::info!("the collector takes traces again");
        }
    }
}
