//! Brings events from the file to NATS, in their order.
//!
//! Up to [`LINE`] events are on their way at a time, on one connection, which keeps their order. One that
//! fails stops the line: what was sent is waited for, and everything from that one on is sent again.
//! JetStream knows for some minutes what it has; whatever we do not know for longer than that, after a
//! crash or an outage, is looked up in the stream before anything is sent.

use std::{
    collections::{HashSet, VecDeque},
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use async_nats::jetstream::{
    consumer::{AckPolicy, DeliverPolicy, pull},
    context::PublishErrorKind,
    message::PublishMessage,
};
use futures_util::StreamExt;
use tokio::{sync::oneshot, time::Instant};

use super::{
    link::{ANSWER, AROUND, Link, Live},
    message, subject,
};
use crate::{
    Bus, BusError, Embedded, Filter, Record, Start,
    outbox::{BORN, FORWARDED, Marks, PLACE},
};

/// So many events are on their way at a time.
const LINE: usize = 64;

/// The first pause after a failure, and the longest.
const PAUSE: Duration = Duration::from_millis(100);
const MAX_PAUSE: Duration = Duration::from_secs(2);

/// How far we have come is written down so often.
const SAVE: Duration = Duration::from_millis(200);

/// So many messages are looked at in one go.
const LOOK: usize = 1000;

/// So far back is looked for what a stream has that lost its end.
const LOOK_BACK: u64 = 100_000;

/// What others want to know of it.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Everything up to here has gone.
    pub(crate) forwarded: AtomicU64,
    /// So many bytes wait.
    pub(crate) bytes: AtomicI64,
    /// The last place of the stream that is known.
    pub(crate) last: AtomicU64,
    /// The largest event that NATS takes.
    pub(crate) most: AtomicUsize,
}

/// What an event takes of the outbox.
pub(crate) fn size(text: &str) -> i64 {
    i64::try_from(text.len() + 128).unwrap_or(i64::MAX)
}

/// Why events do not go on.
enum Stop {
    /// The bus was closed.
    Closed,
    /// The connection is of no more use.
    Lost(String),
    /// NATS says no. It may say yes later.
    Stalled(String),
}

type Ack = Pin<Box<dyn Future<Output = Result<u64, Stop>> + Send>>;

struct Sent {
    record: Arc<Record>,
    ack: Ack,
}

pub(crate) struct Forwarder {
    pub(crate) store: Arc<Embedded>,
    pub(crate) link: Arc<Link>,
    pub(crate) progress: Arc<Progress>,
    pub(crate) marks: Marks,
    /// Of what has not gone by our count, these are in the stream.
    pub(crate) there: HashSet<u64>,
    pub(crate) saved: Marks,
    pub(crate) saving: Option<oneshot::Receiver<Result<(), BusError>>>,
    pub(crate) save_at: Instant,
}

impl Forwarder {
    /// Runs until the bus is closed.
    pub(crate) async fn run(mut self) {
        let mut pause = PAUSE;
        loop {
            let begin = Instant::now();
            match self.session().await {
                Stop::Closed => break,
                Stop::Lost(why) | Stop::Stalled(why) => self.link.down(why),
            }
            // What worked for a while is tried again at once.
            pause =
                if MAX_PAUSE * 2 < begin.elapsed() { PAUSE } else { (pause * 2).min(MAX_PAUSE) };
            if self.rest(pause).await {
                break;
            }
        }
        self.link.down("the event bus is closed".to_owned());
        self.save(true).await;
    }

    /// Waits; whether the bus was closed meanwhile.
    async fn rest(&self, pause: Duration) -> bool {
        let jitter = u32::from(uuid::Uuid::now_v7().as_bytes()[15]);
        let pause = pause * (256 + jitter) / 512;
        tokio::time::timeout(pause, self.link.closed.cancelled()).await.is_ok()
    }

    /// One connection, from its beginning to its end.
    async fn session(&mut self) -> Stop {
        let link = Arc::clone(&self.link);
        let connected = tokio::select! {
            biased;
            () = link.closed.cancelled() => return Stop::Closed,
            connected = link.plan.connect() => connected,
        };
        let live = match connected {
            Ok(live) => Arc::new(live),
            Err(why) => return Stop::Stalled(why),
        };
        let _end = live.gone.clone().drop_guard();
        let most = live.client.max_payload().saturating_sub(AROUND);
        self.progress.most.store(most, Ordering::Relaxed);
        link.up(Arc::clone(&live));
        let mut pause = PAUSE;
        loop {
            let looked = tokio::select! {
                biased;
                () = link.closed.cancelled() => return Stop::Closed,
                () = live.gone.cancelled() => return Stop::Lost(live.why_gone()),
                looked = self.look(&live) => looked,
            };
            let stop = match looked {
                Ok(()) => self.pump(&live).await,
                Err(why) => Stop::Lost(format!("NATS did not say what it has: {why}")),
            };
            let Stop::Stalled(why) = stop else { return stop };
            link.stalls(why);
            pause = (pause * 2).min(MAX_PAUSE);
            if self.rest(pause).await {
                return Stop::Closed;
            }
        }
    }

    /// Finds out which events the stream has that we do not know of.
    async fn look(&mut self, live: &Live) -> Result<(), String> {
        let (first, last) = live.ends().await?;
        self.progress.last.store(last, Ordering::Relaxed);
        let known = self.marks.born;
        if known != live.born {
            // Another stream of the same name. What the old one had was delivered, or went with it.
            if known != 0 {
                tracing::warn!(stream = self.link.plan.stream, "the stream on NATS is a new one");
            }
            (self.marks.born, self.marks.place) = (live.born, 0);
        }
        self.there.clear();
        let lost = last < self.marks.place;
        let after = if lost { last.saturating_sub(LOOK_BACK) } else { self.marks.place };
        let mut ours = Vec::new();
        if after < last {
            ours = self.ours(live, after.max(first.saturating_sub(1))).await?;
        }
        if lost {
            // It lost its end, which it had confirmed: a disk that was not waited for. We still have that.
            let kept = ours.iter().max().copied().unwrap_or(self.marks.forwarded);
            let events = self.marks.forwarded.saturating_sub(kept);
            tracing::error!(events, "NATS lost events that it had; what is ours is sent again");
            self.marks.place = last;
            self.go_back(kept.min(self.marks.forwarded));
        }
        let forwarded = self.marks.forwarded;
        self.there.extend(ours.into_iter().filter(|seq| forwarded < *seq));
        Ok(())
    }

    /// The places, in our file, of the events that the stream has behind a place of its own.
    async fn ours(&self, live: &Live, after: u64) -> Result<Vec<u64>, String> {
        let config = pull::Config {
            deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: after + 1 },
            ack_policy: AckPolicy::None,
            filter_subject: format!("{}>", subject::EVENTS),
            headers_only: true,
            memory_storage: true,
            num_replicas: 1,
            inactive_threshold: ANSWER * 6,
            ..pull::Config::default()
        };
        let consumer = live.stream.create_consumer(config).await.map_err(|it| it.to_string())?;
        let mut left = consumer.cached_info().num_pending;
        let mut ours = Vec::new();
        while 0 < left {
            let fetch = consumer.fetch().max_messages(LOOK).expires(ANSWER);
            let mut page = fetch.messages().await.map_err(|error| error.to_string())?;
            let mut some = false;
            while let Some(message) = page.next().await {
                let message = message.map_err(|error| error.to_string())?;
                some = true;
                left = message.info().map_or(0, |it| it.pending);
                match message::outbox(message.headers.as_ref()) {
                    Some((origin, seq, _)) if origin == self.marks.origin => ours.push(seq),
                    _ => {}
                }
            }
            if !some {
                return Err("it stopped in the middle".to_owned());
            }
        }
        live.stream.delete_consumer(&consumer.cached_info().name).await.ok();
        Ok(ours)
    }

    /// Sends events until something fails.
    async fn pump(&mut self, live: &Live) -> Stop {
        let start = Start::At(self.marks.forwarded + 1);
        let mut source = match self.store.follow(Filter::all(), start).await {
            Ok(source) => source,
            Err(_closed) => return Stop::Closed,
        };
        let mut line: VecDeque<Sent> = VecDeque::with_capacity(LINE);
        let mut next: VecDeque<Arc<Record>> = VecDeque::new();
        let closed = self.link.closed.clone();
        self.link.flows();
        loop {
            while line.len() < LINE
                && let Some(record) = next.pop_front()
            {
                match self.send(live, record).await {
                    Ok(sent) => line.push_back(sent),
                    Err(stop) => return self.settle_line(live, line, stop).await,
                }
            }
            let front = std::future::poll_fn(|cx| match line.front_mut() {
                Some(sent) => sent.ack.as_mut().poll(cx),
                None => std::task::Poll::Pending,
            });
            tokio::select! {
                biased;
                () = closed.cancelled() => return self.settle_line(live, line, Stop::Closed).await,
                () = live.gone.cancelled() => return Stop::Lost(live.why_gone()),
                acked = front => {
                    let record = line.pop_front().map(|it| it.record);
                    match (acked, record) {
                        (Ok(place), Some(record)) => self.gone(&record, place),
                        (Err(stop), _) => return self.settle_line(live, line, stop).await,
                        _ => {}
                    }
                    self.save(false).await;
                }
                batch = source.next(), if next.is_empty() => match batch {
                    Ok(batch) => {
                        next.extend(batch.records);
                        if next.is_empty() && line.is_empty() {
                            // Damaged, or removed long ago: they cannot go.
                            self.pass(batch.passed);
                        }
                    }
                    Err(BusError::Closed) => return Stop::Closed,
                    Err(error) => return Stop::Stalled(format!("the events cannot be read: {error}")),
                },
                () = tokio::time::sleep_until(self.save_at), if self.marks != self.saved => {
                    self.save(false).await;
                }
            }
        }
    }

    async fn send(&mut self, live: &Live, record: Arc<Record>) -> Result<Sent, Stop> {
        if self.there.contains(&record.seq) {
            return Ok(Sent { record, ack: Box::pin(std::future::ready(Ok(0))) });
        }
        let most = live.client.max_payload().saturating_sub(AROUND);
        if most < record.text.len() {
            return Err(Stop::Stalled(format!(
                "event {} has {} bytes, and NATS takes {most}; raise its `max_payload`",
                record.seq,
                record.text.len()
            )));
        }
        let stream = &self.link.plan.stream;
        let publish = PublishMessage::build()
            .payload(bytes::Bytes::from(record.text.clone()))
            .headers(message::headers(stream, self.marks.origin, &record));
        let subject = subject::subject(&record.name);
        let sending = live.js.send_publish(subject, publish).await;
        let acked = sending.map_err(|error| stopped(&error))?;
        let ack = async move {
            match tokio::time::timeout(ANSWER, acked.into_future()).await {
                Ok(Ok(ack)) => Ok(ack.sequence),
                Ok(Err(error)) => Err(stopped(&error)),
                Err(_late) => Err(Stop::Lost("NATS does not answer".to_owned())),
            }
        };
        Ok(Sent { record, ack: Box::pin(ack) })
    }

    /// Something failed, or we are to end: hears what became of the others that were sent. What follows one
    /// that failed is in the stream all the same, which the next look shows.
    async fn settle_line(&mut self, live: &Live, line: VecDeque<Sent>, stop: Stop) -> Stop {
        let mut whole = matches!(stop, Stop::Closed);
        let end = Instant::now() + if whole { Duration::from_secs(1) } else { ANSWER };
        for sent in line {
            let waited = tokio::select! {
                biased;
                () = live.gone.cancelled() => return if whole { stop } else { Stop::Lost(live.why_gone()) },
                waited = tokio::time::timeout_at(end, sent.ack) => waited,
            };
            match waited {
                Ok(Ok(place)) if whole => self.gone(&sent.record, place),
                Ok(Ok(_) | Err(Stop::Stalled(_))) => whole = false,
                Ok(Err(lost)) => return if matches!(stop, Stop::Closed) { stop } else { lost },
                Err(_late) => {
                    let late = Stop::Lost("NATS does not answer".to_owned());
                    return if matches!(stop, Stop::Closed) { stop } else { late };
                }
            }
        }
        stop
    }

    /// An event is in the stream.
    fn gone(&mut self, record: &Record, place: u64) {
        self.there.remove(&record.seq);
        self.marks.forwarded = record.seq;
        // While some are there that came later, they must be found again from the same place.
        if self.there.is_empty() {
            self.marks.place = self.marks.place.max(place);
        }
        self.progress.last.fetch_max(place, Ordering::Relaxed);
        self.progress.bytes.fetch_sub(size(&record.text), Ordering::Relaxed);
        self.progress.forwarded.store(record.seq, Ordering::Relaxed);
    }

    /// There is nothing to send up to a place.
    fn pass(&mut self, seq: u64) {
        self.marks.forwarded = self.marks.forwarded.max(seq);
        self.progress.forwarded.store(self.marks.forwarded, Ordering::Relaxed);
    }

    /// Events up to a place have gone, and no others.
    fn go_back(&mut self, seq: u64) {
        self.marks.forwarded = seq;
        self.progress.forwarded.store(seq, Ordering::Relaxed);
    }

    /// Has written down how far we have come, if it is time; waits for it only at the end.
    async fn save(&mut self, wait: bool) {
        if let Some(saving) = &mut self.saving {
            if !wait && matches!(saving.try_recv(), Err(oneshot::error::TryRecvError::Empty)) {
                self.save_at = Instant::now() + SAVE;
                return;
            }
            self.saving = None;
        }
        if self.marks == self.saved || (!wait && Instant::now() < self.save_at) {
            return;
        }
        let Marks { forwarded, place, born, .. } = self.marks;
        self.save_at = Instant::now() + SAVE;
        if let Ok(saving) =
            self.store.set_marks(vec![(FORWARDED, forwarded), (PLACE, place), (BORN, born)])
        {
            self.saved = self.marks;
            if wait {
                saving.await.ok();
            } else {
                self.saving = Some(saving);
            }
        }
    }
}

/// What an error means for the line.
fn stopped(error: &async_nats::jetstream::context::PublishError) -> Stop {
    match error.kind() {
        PublishErrorKind::StreamNotFound => Stop::Lost("the stream on NATS is gone".to_owned()),
        PublishErrorKind::TimedOut => Stop::Lost("NATS does not answer".to_owned()),
        PublishErrorKind::BrokenPipe => Stop::Lost("the connection to NATS broke".to_owned()),
        _ => Stop::Stalled(format!("NATS refuses an event: {error}")),
    }
}
