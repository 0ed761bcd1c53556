//! The connection to NATS. One task makes it and gives it up (`forward`); everybody else takes the one
//! there is, or waits a little for one.
//!
//! The client would connect again by itself, and send what had gathered meanwhile, whatever became of
//! what was sent just before the connection broke: events would change places. So a client of ours has
//! one connection in its life, and what it had not sent goes away with it.

use std::{
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_nats::{
    Client, ConnectErrorKind, ConnectOptions, Event,
    jetstream::{self, ErrorCode, context::GetStreamErrorKind, stream},
};
use parking_lot::Mutex;
use tokio::sync::{OnceCell, watch};
use tokio_util::sync::CancellationToken;

use super::{
    login::Place,
    subject::{AGAIN, DEAD, EVENTS},
};
use crate::{BusError, now_ms, rfc3339};

/// So long NATS may take for an answer.
pub(crate) const ANSWER: Duration = Duration::from_secs(5);

/// So long it may take to connect, looking up its name apart.
const CONNECT: Duration = Duration::from_secs(4);

/// So much of what NATS takes at most goes to what stands around an event.
pub(crate) const AROUND: usize = 8 * 1024;

/// Every stream of ours knows for so long what it was given, longer than the network keeps what was sent.
const KNOWN: Duration = Duration::from_secs(300);

/// What a stream of ours is to be.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) place: Place,
    pub(crate) ca: Option<PathBuf>,
    pub(crate) stream: String,
    pub(crate) replicas: usize,
    pub(crate) retain: Duration,
    pub(crate) max_size: u64,
}

/// A connection, and the stream behind it.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) client: Client,
    pub(crate) js: jetstream::Context,
    pub(crate) stream: stream::Stream,
    /// When the stream was made: another of the same name counts anew.
    pub(crate) born: u64,
    /// It takes what is to be delivered again.
    pub(crate) revives: bool,
    plan: Plan,
    dead: OnceCell<stream::Stream>,
    /// What NATS said last that was not well.
    said: Arc<Mutex<Option<String>>>,
    /// The connection is gone.
    pub(crate) gone: CancellationToken,
}

impl Drop for Live {
    fn drop(&mut self) {
        self.gone.cancel();
    }
}

/// How the link is, just now.
#[derive(Debug, Default, Clone)]
struct Now {
    live: Option<Arc<Live>>,
    why: Option<String>,
    /// Since when, in milliseconds since 1970.
    since: u64,
}

/// What everybody has in common.
#[derive(Debug)]
pub(crate) struct Link {
    now: watch::Sender<Now>,
    pub(crate) plan: Plan,
    pub(crate) closed: CancellationToken,
}

impl Link {
    pub(crate) fn new(plan: Plan) -> Self {
        let why = Some(format!("NATS at {:?} has not been reached yet", plan.place));
        let now = watch::Sender::new(Now { live: None, why, since: now_ms() });
        Self { now, plan, closed: CancellationToken::new() }
    }

    /// There is a connection.
    pub(crate) fn up(&self, live: Arc<Live>) {
        self.now.send_modify(|it| it.live = Some(live));
    }

    /// Events go on.
    pub(crate) fn flows(&self) {
        self.now.send_if_modified(|it| {
            if it.why.take().is_some() {
                tracing::info!("events go on to NATS");
                return true;
            }
            false
        });
    }

    /// Events do not go on, for this reason.
    pub(crate) fn stalls(&self, why: String) {
        self.now.send_if_modified(|it| {
            if it.why.is_none() && !self.closed.is_cancelled() {
                tracing::warn!(%why, "events do not go on to NATS; they are kept");
            }
            if it.why.is_none() {
                it.since = now_ms();
            }
            it.why.replace(why) != it.why
        });
    }

    /// There is no connection, for this reason.
    pub(crate) fn down(&self, why: String) {
        self.now.send_modify(|it| it.live = None);
        self.stalls(why);
    }

    /// Why events do not go on, and since when.
    pub(crate) fn waiting(&self) -> Option<(String, u64)> {
        let now = self.now.borrow();
        now.why.clone().map(|why| (why, now.since))
    }

    /// The connection; waits for one no longer than for an answer.
    pub(crate) async fn live(&self) -> Result<Arc<Live>, BusError> {
        match tokio::time::timeout(ANSWER, self.some_day()).await {
            Ok(found) => found,
            Err(_late) => Err(self.away()),
        }
    }

    /// The connection, whenever there is one.
    pub(crate) async fn some_day(&self) -> Result<Arc<Live>, BusError> {
        let mut now = self.now.subscribe();
        let there = now.wait_for(|it| it.live.as_ref().is_some_and(|it| !it.gone.is_cancelled()));
        tokio::select! {
            biased;
            () = self.closed.cancelled() => Err(BusError::Closed),
            found = there => match found.map(|it| it.live.clone()) {
                Ok(Some(live)) => Ok(live),
                _ => Err(BusError::Closed),
            },
        }
    }

    /// What is said where NATS is needed and is not there.
    pub(crate) fn away(&self) -> BusError {
        BusError::Unavailable(match self.waiting() {
            Some((why, since)) => format!("{why}; so it is since {}", rfc3339(since)),
            None => format!("NATS at {:?} did not answer; try again", self.plan.place),
        })
    }

    /// What is said where NATS was asked and did not do it.
    pub(crate) fn failed(&self, what: &str, cause: impl std::fmt::Display) -> BusError {
        if self.closed.is_cancelled() {
            return BusError::Closed;
        }
        BusError::Unavailable(format!("NATS at {:?}: {what}: {cause}; try again", self.plan.place))
    }
}

impl Plan {
    /// Connects, and finds the stream or makes it.
    pub(crate) async fn connect(&self) -> Result<Live, String> {
        let gone = CancellationToken::new();
        let said: Arc<Mutex<Option<String>>> = Arc::default();
        let once = Arc::new(AtomicBool::new(false));
        let options = self.options(&gone, &said, &once)?;
        let servers: Vec<async_nats::ServerAddr> =
            self.place.servers.iter().filter_map(|it| it.parse().ok()).collect();
        let connecting = tokio::time::timeout(CONNECT * 2, options.connect(servers)).await;
        let client = match connecting {
            Ok(Ok(client)) => client,
            Ok(Err(error)) => return Err(self.unreachable(&error)),
            Err(_late) => return Err(format!("NATS at {:?} does not answer", self.place)),
        };
        once.store(true, Ordering::Relaxed);
        let version = client.server_info().version;
        if !client.is_server_compatible(2, 10, 0) {
            return Err(format!("NATS at {:?} is {version}; 2.10 or later is needed", self.place));
        }
        let js = jetstream::context::ContextBuilder::new()
            .timeout(ANSWER)
            .max_ack_inflight(1024)
            .build(client.clone());
        let stream = self.stream(&js).await?;
        let info = stream.cached_info();
        let takes = |prefix: &str| takes(&info.config.subjects, prefix);
        if !takes(EVENTS) {
            return Err(format!(
                "the stream `{}` on NATS does not take `{EVENTS}>`; add that to its subjects",
                self.stream
            ));
        }
        if info.config.retention != stream::RetentionPolicy::Limits || info.config.no_ack {
            return Err(format!(
                "the stream `{}` on NATS must keep what was read and confirm what it takes: \
                 retention `limits`, and acknowledgements",
                self.stream
            ));
        }
        let born = born(info);
        let (revives, plan) = (takes(AGAIN), self.clone());
        Ok(Live { client, js, born, revives, plan, dead: OnceCell::new(), said, gone, stream })
    }

    fn options(
        &self,
        gone: &CancellationToken,
        said: &Arc<Mutex<Option<String>>>,
        once: &Arc<AtomicBool>,
    ) -> Result<ConnectOptions, String> {
        let proof = self.place.proof()?;
        let (gone, said, once) = (gone.clone(), Arc::clone(said), Arc::clone(once));
        let options = ConnectOptions::with_auth_callback(move |nonce| {
            // One connection in a client's life.
            let answer = match once.load(Ordering::Relaxed) {
                true => Err("the connection is gone".to_owned()),
                false => proof.answer(&nonce),
            };
            std::future::ready(answer.map_err(async_nats::AuthError::new))
        });
        let mut options = options
            .name("toolcrib")
            .connection_timeout(CONNECT)
            .request_timeout(Some(ANSWER))
            .ping_interval(ANSWER)
            .ignore_discovered_servers()
            .max_reconnects(self.place.servers.len())
            .event_callback(move |event| {
                match event {
                    Event::Disconnected | Event::Closed => gone.cancel(),
                    Event::ServerError(error) => *said.lock() = Some(error.to_string()),
                    _ => {}
                }
                std::future::ready(())
            });
        if let Some(ca) = &self.ca {
            options = options.add_root_certificates(ca.clone()).require_tls(true);
        }
        Ok(options)
    }

    fn unreachable(&self, error: &async_nats::ConnectError) -> String {
        let place = &self.place;
        match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                format!("NATS at {place:?} refuses our credentials")
            }
            ConnectErrorKind::TimedOut => format!("NATS at {place:?} does not answer"),
            ConnectErrorKind::Dns => format!("the name of NATS at {place:?} is not known"),
            _ => format!("NATS at {place:?} cannot be reached: {error}"),
        }
    }

    async fn stream(&self, js: &jetstream::Context) -> Result<stream::Stream, String> {
        let subjects = vec![format!("{EVENTS}>"), format!("{AGAIN}>")];
        self.ensure(js, &self.stream, subjects).await
    }

    /// Finds a stream, and takes it as it is; or makes it.
    async fn ensure(
        &self,
        js: &jetstream::Context,
        name: &str,
        subjects: Vec<String>,
    ) -> Result<stream::Stream, String> {
        let failed = |cause: String| format!("the stream `{name}` on NATS: {cause}");
        match js.get_stream(name).await {
            Ok(stream) => return Ok(stream),
            Err(error) if is_missing(&error) => {}
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error)
                    if error.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED
                        || error.error_code() == ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT =>
                {
                    return Err(format!(
                        "NATS at {:?} runs without JetStream; start it with `-js`",
                        self.place
                    ));
                }
                _ => return Err(failed(error.to_string())),
            },
        }
        let config = stream::Config {
            name: name.to_owned(),
            subjects,
            description: Some("events of toolcrib".to_owned()),
            max_age: self.retain,
            max_bytes: i64::try_from(self.max_size).unwrap_or(i64::MAX),
            storage: stream::StorageType::File,
            discard: stream::DiscardPolicy::Old,
            num_replicas: self.replicas.max(1),
            duplicate_window: if self.retain.is_zero() { KNOWN } else { KNOWN.min(self.retain) },
            allow_direct: true,
            ..stream::Config::default()
        };
        // Another gateway may be doing the same.
        js.get_or_create_stream(config).await.map_err(|error| failed(error.to_string()))
    }
}

impl Live {
    /// Why the connection is gone.
    pub(crate) fn why_gone(&self) -> String {
        let place = &self.plan.place;
        match self.said.lock().take() {
            Some(said) => format!("NATS at {place:?} ended it: {said}"),
            None => format!("the connection to NATS at {place:?} broke"),
        }
    }

    /// The stream of what was given up; made when it is needed first.
    pub(crate) async fn dead(&self) -> Result<&stream::Stream, String> {
        let make = || async {
            let name = format!("{}_DEAD", self.plan.stream);
            self.plan.ensure(&self.js, &name, vec![format!("{DEAD}>")]).await
        };
        self.dead.get_or_try_init(make).await
    }

    /// The oldest that is kept, and the last there is. A stream that is gone, or another now, ends the
    /// connection: the next one begins with a stream that is there.
    pub(crate) async fn ends(&self) -> Result<(u64, u64), String> {
        let stream = match self.js.get_stream(&self.plan.stream).await {
            Ok(stream) => stream,
            Err(error) => {
                if is_missing(&error) {
                    *self.said.lock() = Some("the stream is gone".to_owned());
                    self.gone.cancel();
                }
                return Err(error.to_string());
            }
        };
        let info = stream.cached_info();
        if born(info) != self.born {
            *self.said.lock() = Some("the stream is another".to_owned());
            self.gone.cancel();
            return Err("the stream is another".to_owned());
        }
        let (state, last) = (&info.state, info.state.last_sequence);
        Ok(if state.messages == 0 { (last + 1, last) } else { (state.first_sequence, last) })
    }
}

/// When a stream was made.
fn born(info: &stream::Info) -> u64 {
    u64::try_from(info.created.unix_timestamp_nanos()).unwrap_or_default()
}

fn is_missing(error: &jetstream::context::GetStreamError) -> bool {
    matches!(error.kind(), GetStreamErrorKind::JetStream(error)
        if error.error_code() == ErrorCode::STREAM_NOT_FOUND)
}

fn takes(subjects: &[String], prefix: &str) -> bool {
    let (whole, root) = (format!("{prefix}>"), "toolcrib.>");
    subjects.iter().any(|it| *it == whole || it == root || it == ">")
}
