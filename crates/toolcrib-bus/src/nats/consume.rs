//! Durable consumers: each is one of JetStream, which several gateways share. NATS knows what is out and
//! when it comes again; here is what NATS does not do: our filters, a bound on attempts, dead letters.

use std::{
    collections::HashMap,
    sync::Arc,
    time::{Duration, Instant},
};

use async_nats::jetstream::{AckKind, ErrorCode, Message, stream::ConsumerErrorKind};
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use super::{
    bounded::{Bounded, Key},
    consumer::{self, Known, MAX_CONSUMERS, MAX_PENDING, NAME, nanos, stored},
    dead::{self, Lost},
    link::{ANSWER, Link, Live},
    message::Arrived,
    subject::durable,
};
use crate::{BusError, ConsumerName, ConsumerState, Delivery, Outcome, Settled, Wish};

/// So long one question waits at NATS; whoever waits longer asks again.
const SLICE: Duration = Duration::from_secs(5);

/// So many deliveries are remembered.
const REMEMBERED: usize = 65_536;

/// So many outcomes are on their way to NATS at a time.
const SETTLING: usize = 64;

/// A delivery that can be settled here.
#[derive(Debug, Clone)]
struct Ticket {
    reply: String,
    /// Which consumer of that name it was, and the place of the message.
    born: u64,
    place: u64,
    /// How often it was delivered, and how often of that it counted.
    delivered: u64,
    attempt: u64,
}

/// Where deliveries are handed out and taken back.
pub(crate) struct Desk {
    link: Arc<Link>,
    tracker: TaskTracker,
    known: Mutex<HashMap<String, Known>>,
    out: Mutex<Bounded<Ticket>>,
    /// NATS may forget after a crash what it was told just before; we do not.
    done: Mutex<Bounded<()>>,
    /// So often these were given back unseen.
    unseen: Mutex<Bounded<u64>>,
}

impl Desk {
    pub(crate) fn new(link: Arc<Link>, tracker: TaskTracker) -> Self {
        Self {
            link,
            tracker,
            known: Mutex::default(),
            out: Mutex::new(Bounded::new(REMEMBERED)),
            done: Mutex::new(Bounded::new(REMEMBERED)),
            unseen: Mutex::new(Bounded::new(REMEMBERED)),
        }
    }

    /// Takes a consumer's next events. A task of its own does it: what comes when nobody waits any more
    /// goes back at once.
    pub(crate) async fn fetch(
        self: &Arc<Self>,
        wish: &Wish,
        wait: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        let (reply, answer) = oneshot::channel();
        let (desk, asked) = (Arc::clone(self), wish.clone());
        self.tracker.spawn(async move {
            let mut reply = reply;
            let fetched = desk.fetch_within(&asked, wait, &mut reply).await;
            if let Err(Ok(deliveries)) = reply.send(fetched) {
                desk.give_back(&asked.consumer, &deliveries).await;
            }
        });
        let mut fetching = Fetching { desk: self, consumer: &wish.consumer, answer };
        (&mut fetching.answer).await.unwrap_or(Err(BusError::Closed))
    }

    async fn fetch_within(
        &self,
        wish: &Wish,
        wait: Duration,
        reply: &mut oneshot::Sender<Result<Vec<Delivery>, BusError>>,
    ) -> Result<Vec<Delivery>, BusError> {
        let end = Instant::now() + wait;
        let mut failures = 0;
        if wish.max == 0 {
            let live = self.link.live().await?;
            self.known(&live, wish).await?;
        }
        while !reply.is_closed() && 0 < wish.max {
            let live = self.link.live().await?;
            let slice = end.saturating_duration_since(Instant::now()).min(SLICE);
            match self.pull(&live, wish, slice).await {
                Ok(deliveries) if !deliveries.is_empty() => return Ok(deliveries),
                Ok(_) if end <= Instant::now() => break,
                Ok(_) => {}
                Err(error @ (BusError::Refused(_) | BusError::Closed)) => return Err(error),
                Err(error) => {
                    self.known.lock().remove(wish.consumer.as_str());
                    // Where the stream itself is gone, this has it made anew.
                    live.ends().await.ok();
                    failures += 1;
                    // A connection that broke may be followed by one that works.
                    if 2 < failures {
                        return Err(error);
                    }
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
            }
        }
        Ok(Vec::new())
    }

    /// The consumer, as it is wished.
    async fn known(&self, live: &Arc<Live>, wish: &Wish) -> Result<Known, BusError> {
        let name = wish.consumer.as_str();
        let there = self.known.lock().get(name).filter(|it| it.is_as(wish, live)).cloned();
        if let Some(known) = there {
            return Ok(known);
        }
        let known = consumer::ensure(&self.link, live, wish).await?;
        let mut all = self.known.lock();
        if MAX_CONSUMERS < all.len() {
            all.clear();
        }
        all.insert(name.to_owned(), known.clone());
        Ok(known)
    }

    async fn pull(
        &self,
        live: &Arc<Live>,
        wish: &Wish,
        slice: Duration,
    ) -> Result<Vec<Delivery>, BusError> {
        let failed = |cause: String| self.link.failed("fetching events", cause);
        let known = self.known(live, wish).await?;
        let mut fetch = known.consumer.fetch().max_messages(wish.max.min(MAX_PENDING));
        if Duration::from_millis(1) <= slice {
            fetch = fetch.expires(slice);
        }
        let mut page = fetch.messages().await.map_err(|error| failed(error.to_string()))?;
        let mut deliveries = Vec::new();
        loop {
            let next = tokio::select! {
                biased;
                next = tokio::time::timeout(slice + ANSWER, page.next()) => next,
                () = live.gone.cancelled() => Ok(Some(Err(live.why_gone().into()))),
                () = self.link.closed.cancelled() => return Err(BusError::Closed),
            };
            match next {
                Ok(Some(Ok(message))) => {
                    let taken = self.take(live, &known, wish, &message).await;
                    deliveries.extend(taken);
                }
                Ok(None) => return Ok(deliveries),
                Ok(Some(Err(_))) | Err(_) if !deliveries.is_empty() => return Ok(deliveries),
                Ok(Some(Err(error))) => return Err(failed(error.to_string())),
                Err(_late) => return Err(failed("it did not answer".to_owned())),
            }
        }
    }

    /// Looks at what was delivered: to be handed out, or to be settled at once.
    async fn take(
        &self,
        live: &Live,
        known: &Known,
        wish: &Wish,
        message: &Message,
    ) -> Option<Delivery> {
        let name = wish.consumer.as_str();
        let arrived = Arrived::read(message)?;
        let key = Key { consumer: name.to_owned(), born: known.born, place: arrived.place };
        if self.done.lock().get(&key).is_some() {
            message.ack().await.ok();
            return None;
        }
        let unseen = self.unseen.lock().get(&key).copied().unwrap_or_default();
        let delivered = arrived.delivered;
        let attempt = delivered.saturating_sub(unseen).max(1);
        let lost = |reason| Lost {
            consumer: name,
            born: known.born,
            place: arrived.place,
            seq: arrived.seq,
            attempts: attempt - 1,
            reason,
        };
        let Some(record) = arrived.record else {
            self.give_up(live, message, &lost("it is no event")).await;
            return None;
        };
        if !known.filter.matches(&record.name) {
            message.ack().await.ok();
            return None;
        }
        if u64::from(wish.attempts) < attempt {
            let reason = format!("not settled after {} deliveries", attempt - 1);
            self.give_up(live, message, &lost(&reason)).await;
            return None;
        }
        let reply = message.reply.as_ref()?.to_string();
        let ticket = Ticket { reply, born: known.born, place: arrived.place, delivered, attempt };
        self.out.lock().insert(self.key(name, arrived.seq), ticket);
        let attempt = u32::try_from(attempt).unwrap_or(u32::MAX);
        Some(Delivery { record: Arc::new(record), attempt })
    }

    /// Where this fails the event comes again, and is given up then.
    async fn give_up(&self, live: &Live, message: &Message, lost: &Lost<'_>) {
        match dead::bury(live, lost).await {
            Ok(()) => drop(message.ack_with(AckKind::Term).await),
            Err(cause) => tracing::warn!(%cause, lost.seq, "an event could not be given up"),
        }
    }

    fn key(&self, consumer: &str, place: u64) -> Key {
        Key { consumer: consumer.to_owned(), born: 0, place }
    }

    /// Says what became of deliveries.
    pub(crate) async fn settle(
        &self,
        consumer: &ConsumerName,
        outcomes: Vec<(u64, Outcome)>,
    ) -> Result<Settled, BusError> {
        let mut settled = Settled::default();
        let mut asked = Vec::with_capacity(outcomes.len());
        for (seq, outcome) in outcomes {
            match self.out.lock().get(&self.key(consumer.as_str(), seq)).cloned() {
                Some(ticket) => asked.push((seq, outcome, ticket)),
                None => settled.unknown.push(seq),
            }
        }
        if asked.is_empty() {
            return Ok(settled);
        }
        let live = self.link.live().await?;
        // Dead letters lie in the order in which they come.
        let dead = asked.iter().any(|(_, outcome, _)| matches!(outcome, Outcome::Dead(_)));
        let at_once = if dead { 1 } else { SETTLING };
        let each = asked.into_iter().map(|(seq, outcome, ticket)| {
            let live = &live;
            async move { (seq, self.one(live, consumer.as_str(), seq, &outcome, &ticket).await) }
        });
        let mut each = futures_util::stream::iter(each).buffered(at_once);
        let mut failure = None;
        while let Some((seq, done)) = each.next().await {
            match done {
                Ok(true) => settled.settled.push(seq),
                Ok(false) => settled.unknown.push(seq),
                Err(cause) => failure = Some(cause),
            }
        }
        match failure {
            Some(cause) => Err(self.link.failed("settling events", cause)),
            None => Ok(settled),
        }
    }

    async fn one(
        &self,
        live: &Live,
        consumer: &str,
        seq: u64,
        outcome: &Outcome,
        ticket: &Ticket,
    ) -> Result<bool, String> {
        let (born, place) = (ticket.born, ticket.place);
        let key = Key { consumer: consumer.to_owned(), born, place };
        let kind = match outcome {
            Outcome::Done => AckKind::Ack,
            Outcome::Again(delay) => AckKind::Nak(Some(*delay).filter(|it| !it.is_zero())),
            Outcome::Unseen => {
                // The next time has the number that this one had.
                let unseen = ticket.delivered + 1 - ticket.attempt;
                self.unseen.lock().insert(key.clone(), unseen);
                AckKind::Nak(None)
            }
            Outcome::Dead(reason) => {
                let attempts = ticket.attempt;
                dead::bury(live, &Lost { consumer, born, place, seq, attempts, reason }).await?;
                AckKind::Term
            }
        };
        // NATS confirms it, so it knows.
        let told = live.client.request(ticket.reply.clone(), kind.into());
        match told.await {
            Ok(_) => {}
            Err(error) if error.kind() == async_nats::RequestErrorKind::NoResponders => {
                // The consumer is gone, or the whole stream, which is made anew then.
                live.ends().await.ok();
                self.out.lock().remove(&self.key(consumer, seq));
                return Ok(false);
            }
            Err(error) => return Err(error.to_string()),
        }
        if matches!(outcome, Outcome::Done | Outcome::Dead(_)) {
            self.done.lock().insert(key, ());
            self.out.lock().remove(&self.key(consumer, seq));
        }
        Ok(true)
    }

    /// Nobody took these.
    async fn give_back(&self, consumer: &ConsumerName, deliveries: &[Delivery]) {
        let outcomes = deliveries.iter().map(|it| (it.record.seq, Outcome::Unseen)).collect();
        if let Err(error) = self.settle(consumer, outcomes).await {
            tracing::debug!(%error, "events that nobody took come again later");
        }
    }

    /// The consumers.
    pub(crate) async fn all(&self) -> Result<Vec<ConsumerState>, BusError> {
        let live = self.link.live().await?;
        let failed = |cause: String| self.link.failed("listing consumers", cause);
        let (first, last) = live.ends().await.map_err(failed)?;
        let dead: HashMap<String, u64> =
            dead::counts(&live).await.map_err(failed)?.into_iter().collect();
        let mut found = Vec::new();
        let mut infos = live.stream.consumers();
        while let Some(info) = infos.next().await {
            let info = info.map_err(|error| failed(error.to_string()))?;
            let Some(name) = info.config.metadata.get(NAME) else { continue };
            let Some((filter, _)) = stored(&info.config, name) else { continue };
            let delivered = info.delivered.stream_sequence;
            let cursor = if info.num_pending == 0 { last } else { delivered };
            let seen = [info.delivered.last_active, info.ack_floor.last_active, Some(info.created)];
            let seen = seen.iter().flatten().map(nanos).max().unwrap_or_default() / 1_000_000;
            found.push(ConsumerState {
                name: name.clone(),
                filter,
                cursor,
                behind: info.num_pending,
                pending: info.num_ack_pending as u64,
                dead: dead.get(&info.name).copied().unwrap_or_default(),
                missed: first.saturating_sub(cursor + 1),
                seen,
            });
        }
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(found)
    }

    /// Removes a consumer and what it had.
    pub(crate) async fn forget(&self, consumer: &ConsumerName) -> Result<bool, BusError> {
        let live = self.link.live().await?;
        let failed = |cause: String| self.link.failed("removing the consumer", cause);
        let durable = durable(consumer.as_str());
        self.known.lock().remove(consumer.as_str());
        self.out.lock().forget(consumer.as_str());
        let there = match live.stream.delete_consumer(&durable).await {
            Ok(_) => true,
            Err(error) => match error.kind() {
                ConsumerErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::CONSUMER_NOT_FOUND =>
                {
                    false
                }
                _ => return Err(failed(error.to_string())),
            },
        };
        dead::forget(&live, &durable).await.map_err(failed)?;
        Ok(there)
    }
}

/// Deliveries that are on their way to somebody who may not wait for them.
struct Fetching<'a> {
    desk: &'a Arc<Desk>,
    consumer: &'a ConsumerName,
    answer: oneshot::Receiver<Result<Vec<Delivery>, BusError>>,
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        self.answer.close();
        if let Ok(Ok(deliveries)) = self.answer.try_recv() {
            let (desk, consumer) = (Arc::clone(self.desk), self.consumer.clone());
            self.desk.tracker.spawn(async move { desk.give_back(&consumer, &deliveries).await });
        }
    }
}
