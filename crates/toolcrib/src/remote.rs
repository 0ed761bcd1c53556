//! The bus of a workspace that another process serves, by the private socket that it left there.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{
    Method, Request, Response, StatusCode,
    header::{ACCEPT, CONTENT_TYPE, HOST},
};
use http_body_util::{BodyExt, Full, Limited};
use hyper::{body::Incoming, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
};
use toolcrib_bus::{
    Batch, BoxFuture, Bus, BusError, BusState, ConsumerName, ConsumerState, DeadLetter, Delivery,
    Event, Filter, Follow, Outcome, Pattern, Receipt, Record, Settled, Start, Wish,
};
use toolcrib_server::Hello;
use toolcrib_wire::sse::Reader;

use crate::data::Owner;

/// The longest answer.
const MAX_ANSWER: usize = 256 << 20;

/// The longest event.
const MAX_EVENT: usize = 128 << 20;

/// How long the owner may take to let us in, and to answer what is not waited for.
const PATIENCE: Duration = Duration::from_secs(10);

/// The bus of whoever owns the workspace.
#[derive(Debug)]
pub struct Remote {
    owner: Owner,
    last: AtomicU64,
}

impl Remote {
    /// The bus of this owner, if it lets us in.
    pub async fn connect(owner: Owner) -> Result<Self, BusError> {
        let this = Self::of(owner);
        this.consumers().await?;
        Ok(this)
    }

    /// The way to this owner, whether or not it lets us in.
    pub(crate) fn of(owner: Owner) -> Self {
        Self { owner, last: AtomicU64::new(0) }
    }

    async fn line(&self) -> Result<Line, BusError> {
        let greeted = tokio::time::timeout(PATIENCE, self.greet()).await;
        let stream = greeted.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into()));
        let stream = stream.map_err(|error| {
            BusError::Unavailable(format!(
                "the gateway that owns this workspace does not answer: {error}"
            ))
        })?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| lost(&error))?;
        Ok(Line { sender, connection: Some(Box::pin(connection)) })
    }

    async fn greet(&self) -> std::io::Result<UnixStream> {
        let mut stream = self.owner.connect().await?;
        let hello = serde_json::to_string(&Hello { http: true, ..Hello::default() })?;
        stream.write_all(format!("{hello}\n").as_bytes()).await?;
        // Byte by byte: what comes after the line is HTTP.
        let mut line = Vec::new();
        while !line.ends_with(b"\n") && line.len() < 4096 {
            line.push(stream.read_u8().await?);
        }
        let answer: Hello = serde_json::from_slice(&line)?;
        if answer.http {
            Ok(stream)
        } else {
            Err(std::io::Error::other("it is of another version"))
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: String,
        wait: Duration,
    ) -> Result<Bytes, BusError> {
        let (status, body) = self.answer(method, path, body, wait).await?;
        if status.is_success() { Ok(body) } else { Err(refusal(status, &body)) }
    }

    /// What the owner answers, whatever it is.
    pub(crate) async fn answer(
        &self,
        method: Method,
        path: &str,
        body: String,
        wait: Duration,
    ) -> Result<(StatusCode, Bytes), BusError> {
        let answering = async {
            let mut line = self.line().await?;
            let response = line.send(request(method, path, "application/json", body)?).await?;
            Ok((response.status(), line.read(response).await?))
        };
        let answered = tokio::time::timeout(PATIENCE + wait, answering).await;
        answered.unwrap_or_else(|_| {
            Err(BusError::Unavailable(
                "the gateway that owns this workspace does not answer".to_owned(),
            ))
        })
    }
}

fn request(
    method: Method,
    path: &str,
    accept: &str,
    body: String,
) -> Result<Request<Full<Bytes>>, BusError> {
    Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, "toolcrib")
        .header(ACCEPT, accept)
        .header(CONTENT_TYPE, "application/json")
        .body(Full::new(body.into()))
        .map_err(|error| BusError::Refused(error.to_string()))
}

fn refusal(status: StatusCode, body: &Bytes) -> BusError {
    let said = String::from_utf8_lossy(body).trim().to_owned();
    match status {
        StatusCode::SERVICE_UNAVAILABLE => BusError::Unavailable(said),
        _ => BusError::Refused(said),
    }
}

fn lost(error: &hyper::Error) -> BusError {
    BusError::Unavailable(format!("the gateway that owns this workspace is gone: {error}"))
}

fn unreadable(error: &serde_json::Error) -> BusError {
    BusError::Unavailable(format!("the gateway answers in a way that is not understood: {error}"))
}

type Connection = Pin<Box<http1::Connection<TokioIo<UnixStream>, Full<Bytes>>>>;

/// A connection that whoever waits for an answer drives.
struct Line {
    sender: http1::SendRequest<Full<Bytes>>,
    connection: Option<Connection>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Line")
    }
}

impl Line {
    async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, BusError> {
        let sending = self.sender.send_request(request);
        drive(&mut self.connection, sending).await.map_err(|error| lost(&error))
    }

    async fn read(&mut self, response: Response<Incoming>) -> Result<Bytes, BusError> {
        let body = Limited::new(response.into_body(), MAX_ANSWER).collect();
        let body = drive(&mut self.connection, body).await;
        Ok(body.map_err(|error| BusError::Unavailable(error.to_string()))?.to_bytes())
    }
}

/// Waits for something that needs the connection to be driven meanwhile.
async fn drive<C: Future, T>(
    connection: &mut Option<Pin<Box<C>>>,
    wanted: impl Future<Output = T>,
) -> T {
    let mut wanted = std::pin::pin!(wanted);
    if let Some(driving) = connection {
        tokio::select! {
            biased;
            found = &mut wanted => return found,
            _ = driving => {}
        }
    }
    *connection = None;
    wanted.await
}

/// Events as they come.
#[derive(Debug)]
struct Following {
    line: Line,
    body: Incoming,
    reader: Reader,
}

impl Follow for Following {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, BusError>> {
        Box::pin(async move {
            loop {
                let event = self.reader.next_event();
                let event = event.map_err(|error| BusError::Unavailable(error.to_string()))?;
                match event {
                    Some(event) if event.event == "gap" => {
                        let note: Value = serde_json::from_slice(&event.data).unwrap_or_default();
                        let missed = note["missed"].as_u64().unwrap_or_default();
                        return Ok(Batch { missed, ..Batch::default() });
                    }
                    Some(event) => {
                        let text = std::str::from_utf8(&event.data).unwrap_or_default();
                        let Some(record) = record(text) else { continue };
                        let (passed, records) = (record.seq, vec![Arc::new(record)]);
                        return Ok(Batch { records, passed, ..Batch::default() });
                    }
                    None => {}
                }
                let frame = drive(&mut self.line.connection, self.body.frame()).await;
                match frame {
                    Some(Ok(frame)) => {
                        if let Some(bytes) = frame.data_ref() {
                            self.reader.feed(bytes);
                        }
                    }
                    Some(Err(error)) => return Err(lost(&error)),
                    None => return Err(BusError::Closed),
                }
            }
        })
    }
}

/// What we read of a CloudEvent; the rest stays as it is.
#[derive(Deserialize)]
struct Envelope {
    sequence: String,
    id: String,
    #[serde(rename = "type")]
    name: String,
}

/// An event as the bus has it, from the text that goes out.
fn record(text: &str) -> Option<Record> {
    let Envelope { sequence, id, name } = serde_json::from_str(text).ok()?;
    let rest = text.strip_prefix(&format!(r#"{{"sequence":"{sequence}","#))?;
    Some(Record { seq: sequence.parse().ok()?, name, id, at: 0, text: format!("{{{rest}") })
}

fn escaped(text: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~*".contains(&b);
    let one = |b: u8| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") };
    text.bytes().map(one).collect()
}

fn asked(filter: &Filter) -> String {
    filter.asked.iter().map(|it| format!("&match={}", escaped(it.as_str()))).collect()
}

fn from(start: Start) -> String {
    match start {
        Start::First => "&from=first".to_owned(),
        Start::New => "&from=new".to_owned(),
        Start::At(seq) => format!("&from={seq}"),
    }
}

#[derive(Deserialize)]
struct Emitted {
    id: String,
    sequence: u64,
    #[serde(default)]
    again: bool,
}

#[derive(Deserialize)]
struct Events {
    events: Vec<Box<RawValue>>,
}

#[derive(Deserialize)]
struct Consumers {
    consumers: Vec<Consumer>,
    #[serde(default)]
    last: u64,
}

#[derive(Deserialize)]
struct Consumer {
    name: String,
    #[serde(rename = "match")]
    asked: Vec<Pattern>,
    cursor: u64,
    behind: u64,
    pending: u64,
    dead: u64,
    missed: u64,
    seen_ms: u64,
}

#[derive(Deserialize)]
struct Letters {
    dead: Vec<Letter>,
}

#[derive(Deserialize)]
struct Letter {
    sequence: u64,
    attempts: u32,
    reason: String,
    time_ms: u64,
    event: Option<Box<RawValue>>,
}

impl Bus for Remote {
    fn append(&self, event: Event) -> BoxFuture<'_, Result<Receipt, BusError>> {
        Box::pin(async move {
            let answer = self.ask(Method::POST, "/events", event.text().to_owned(), Duration::ZERO);
            let Emitted { id, sequence, again } =
                serde_json::from_slice(&answer.await?).map_err(|error| unreadable(&error))?;
            Ok(Receipt { id, seq: sequence, again })
        })
    }

    fn follow(
        &self,
        filter: Filter,
        start: Start,
    ) -> BoxFuture<'_, Result<Box<dyn Follow>, BusError>> {
        Box::pin(async move {
            let path = format!("/events?{}{}", from(start), asked(&filter));
            let mut line = self.line().await?;
            let response =
                line.send(request(Method::GET, &path, "text/event-stream", String::new())?).await?;
            let status = response.status();
            if !status.is_success() {
                return Err(refusal(status, &line.read(response).await?));
            }
            let (body, reader) = (response.into_body(), Reader::new(MAX_EVENT));
            Ok(Box::new(Following { line, body, reader }) as Box<dyn Follow>)
        })
    }

    fn fetch<'a>(
        &'a self,
        wish: &'a Wish,
        wait: Duration,
    ) -> BoxFuture<'a, Result<Vec<Delivery>, BusError>> {
        Box::pin(async move {
            let wait = wait.min(Duration::from_secs(30));
            let path = format!(
                "/events?consumer={}&max={}&wait={}ms&patience={}ms&attempts={}{}{}",
                escaped(wish.consumer.as_str()),
                wish.max.clamp(1, 100),
                wait.as_millis(),
                wish.patience.as_millis(),
                wish.attempts,
                from(wish.start),
                wish.filter.as_ref().map(asked).unwrap_or_default(),
            );
            let answer = self.ask(Method::GET, &path, String::new(), wait).await?;
            let Events { events } =
                serde_json::from_slice(&answer).map_err(|error| unreadable(&error))?;
            let found = events.iter().filter_map(|it| record(it.get()));
            Ok(found.map(|it| Delivery { record: Arc::new(it), attempt: 1 }).collect())
        })
    }

    fn settle<'a>(
        &'a self,
        consumer: &'a ConsumerName,
        outcomes: Vec<(u64, Outcome)>,
    ) -> BoxFuture<'a, Result<Settled, BusError>> {
        Box::pin(async move {
            let mut all = Settled::default();
            for (seq, outcome) in outcomes {
                let mut body = json!({ "consumer": consumer.as_str(), "sequences": [seq] });
                match outcome {
                    Outcome::Done => {}
                    Outcome::Again(delay) => {
                        body["outcome"] = json!("retry");
                        body["delay_seconds"] = json!(delay.as_secs_f64());
                    }
                    Outcome::Unseen => body["outcome"] = json!("retry"),
                    Outcome::Dead(reason) => {
                        body["outcome"] = json!("dead");
                        body["reason"] = json!(reason);
                    }
                }
                let answer =
                    self.ask(Method::POST, "/events/ack", body.to_string(), Duration::ZERO);
                let answer: Value =
                    serde_json::from_slice(&answer.await?).map_err(|error| unreadable(&error))?;
                let known = answer["settled"].as_array().is_some_and(|it| !it.is_empty());
                if known { all.settled.push(seq) } else { all.unknown.push(seq) }
            }
            Ok(all)
        })
    }

    fn consumers(&self) -> BoxFuture<'_, Result<Vec<ConsumerState>, BusError>> {
        Box::pin(async move {
            let answer = self.ask(Method::GET, "/events/consumers", String::new(), Duration::ZERO);
            let found: Consumers =
                serde_json::from_slice(&answer.await?).map_err(|error| unreadable(&error))?;
            self.last.store(found.last, Ordering::Relaxed);
            let state = |it: Consumer| ConsumerState {
                name: it.name,
                filter: Filter { asked: it.asked, allowed: None },
                cursor: it.cursor,
                behind: it.behind,
                pending: it.pending,
                dead: it.dead,
                missed: it.missed,
                seen: it.seen_ms,
            };
            Ok(found.consumers.into_iter().map(state).collect())
        })
    }

    fn dead<'a>(
        &'a self,
        consumer: &'a ConsumerName,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<DeadLetter>, BusError>> {
        Box::pin(async move {
            let path = format!("/events/dead?consumer={}", escaped(consumer.as_str()));
            let answer = self.ask(Method::GET, &path, String::new(), Duration::ZERO).await?;
            let Letters { dead } =
                serde_json::from_slice(&answer).map_err(|error| unreadable(&error))?;
            let letter = |it: Letter| DeadLetter {
                record: it.event.and_then(|it| record(it.get())).map(Arc::new),
                seq: it.sequence,
                attempts: it.attempts,
                reason: it.reason,
                at: it.time_ms,
            };
            Ok(dead.into_iter().take(limit).map(letter).collect())
        })
    }

    fn revive<'a>(&'a self, consumer: &'a ConsumerName) -> BoxFuture<'a, Result<usize, BusError>> {
        Box::pin(async move {
            let path = format!("/events/dead?consumer={}", escaped(consumer.as_str()));
            let answer = self.ask(Method::POST, &path, String::new(), Duration::ZERO).await?;
            let answer: Value =
                serde_json::from_slice(&answer).map_err(|error| unreadable(&error))?;
            Ok(answer["revived"]
                .as_u64()
                .and_then(|it| usize::try_from(it).ok())
                .unwrap_or_default())
        })
    }

    fn forget<'a>(&'a self, consumer: &'a ConsumerName) -> BoxFuture<'a, Result<bool, BusError>> {
        Box::pin(async move {
            let path = format!("/events/consumers?consumer={}", escaped(consumer.as_str()));
            let answer = self.ask(Method::DELETE, &path, String::new(), Duration::ZERO).await?;
            let answer: Value =
                serde_json::from_slice(&answer).map_err(|error| unreadable(&error))?;
            Ok(answer["forgotten"].as_bool().unwrap_or_default())
        })
    }

    fn state(&self) -> BusState {
        BusState { last: self.last.load(Ordering::Relaxed), ..BusState::default() }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
