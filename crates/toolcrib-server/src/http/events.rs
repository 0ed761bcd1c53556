//! `/events`: events over HTTP, for whoever is no MCP client. Reading is a stream of server-sent events, or
//! one answer in JSON; a durable consumer acknowledges what it was given.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, StatusCode, header::RETRY_AFTER};
use hyper::body::Incoming;
use serde_json::{Value, json, value::RawValue};
use toolcrib_bus::{
    Batch, BusError, ConsumerName, ConsumerState, DeadLetter, Draft, Filter, Pattern, Start, Wish,
};
use toolcrib_wire::{Fields, json::scan};

use super::{
    Door,
    body::{Body, events},
    not_allowed, plain,
    streamable::json_response,
};
use crate::{
    access::Caller,
    built_in::events::{self as built_in, delivered},
    events::{Held, MAX_AT_ONCE, MAX_WAIT, Refused, Wanted},
    gateway::Gateway,
    queue::{Sender, queue},
    stream::{Event, KEEP_ALIVE},
};

/// How many events wait for a slow reader. Few, since each may be large; whoever is slow holds up nobody.
const QUEUE: usize = 4;

/// How many dead letters are shown.
const MAX_DEAD: usize = 1000;

impl Door {
    pub(super) async fn events(
        self: &Arc<Self>,
        caller: Caller,
        request: Request<Incoming>,
    ) -> Response<Body> {
        let (head, body) = request.into_parts();
        let query = match Query::read(head.uri.query().unwrap_or_default()) {
            Ok(query) => query,
            Err(refused) => return refuse(&refused),
        };
        let done = match (head.uri.path(), &head.method) {
            ("/events", &Method::GET) => {
                self.read_events(caller, query, &Fields::from(&head.headers)).await
            }
            ("/events", &Method::POST) => match self.read(&Fields::from(&head.headers), body).await
            {
                Ok(body) => self.publish(&caller, &body).await,
                Err(refused) => return *refused,
            },
            ("/events/ack", &Method::POST) => {
                match self.read(&Fields::from(&head.headers), body).await {
                    Ok(body) => self.acknowledge(&caller, &body).await,
                    Err(refused) => return *refused,
                }
            }
            ("/events/consumers", &Method::GET) => self.consumers(&caller).await,
            ("/events/consumers", &Method::DELETE) => self.forget(&caller, &query).await,
            ("/events/dead", &Method::GET) => self.dead(&caller, &query).await,
            ("/events/dead", &Method::POST) => self.revive(&caller, &query).await,
            ("/events" | "/events/dead", _) => return not_allowed("GET, POST"),
            ("/events/consumers", _) => return not_allowed("GET, DELETE"),
            ("/events/ack", _) => return not_allowed("POST"),
            _ => return plain(StatusCode::NOT_FOUND, "not found\n"),
        };
        done.unwrap_or_else(|refused| refuse(&refused))
    }

    async fn publish(&self, caller: &Caller, body: &Bytes) -> Result<Response<Body>, Refused> {
        let text = strict(body)?;
        let mut draft = Draft::read(text)?;
        // Which tool an event came from is for us to say.
        if !caller.is_operator() {
            draft.more.remove("tool");
        }
        let emitted = self.gateway.publish(caller, draft).await?;
        let status = if emitted.again { StatusCode::OK } else { StatusCode::CREATED };
        Ok(json_response(status, json!(emitted).to_string().into()))
    }

    async fn acknowledge(&self, caller: &Caller, body: &Bytes) -> Result<Response<Body>, Refused> {
        strict(body)?;
        let structure = built_in::acknowledge(&self.gateway, caller, body).await?;
        Ok(json_response(StatusCode::OK, structure.to_string().into()))
    }

    async fn consumers(&self, caller: &Caller) -> Result<Response<Body>, Refused> {
        let bus = self.gateway.bus()?;
        let (all, last) = (bus.consumers().await?, bus.state().last);
        let own = |it: &&ConsumerState| {
            caller.is_operator() || ConsumerName::parts(&it.name).0 == &*caller.group
        };
        let shown: Vec<Value> = all.iter().filter(own).map(|it| consumer(it, caller)).collect();
        Ok(json_response(
            StatusCode::OK,
            json!({ "consumers": shown, "last": last }).to_string().into(),
        ))
    }

    async fn forget(&self, caller: &Caller, query: &Query) -> Result<Response<Body>, Refused> {
        let consumer = query.named(caller)?;
        let forgotten = self.gateway.bus()?.forget(&consumer).await?;
        Ok(json_response(StatusCode::OK, json!({ "forgotten": forgotten }).to_string().into()))
    }

    async fn dead(&self, caller: &Caller, query: &Query) -> Result<Response<Body>, Refused> {
        let consumer = query.named(caller)?;
        let letters = self.gateway.bus()?.dead(&consumer, MAX_DEAD).await?;
        let rights = self.gateway.rights(caller);
        let shown: Vec<String> = letters
            .iter()
            .filter(|it| it.record.as_ref().is_none_or(|it| rights.allow(&it.name)))
            .map(letter)
            .collect();
        let text = format!(r#"{{"dead":[{}]}}"#, shown.join(","));
        Ok(json_response(StatusCode::OK, text.into()))
    }

    async fn revive(&self, caller: &Caller, query: &Query) -> Result<Response<Body>, Refused> {
        let count = self.gateway.bus()?.revive(&query.named(caller)?).await?;
        Ok(json_response(StatusCode::OK, json!({ "revived": count }).to_string().into()))
    }

    async fn read_events(
        self: &Arc<Self>,
        caller: Caller,
        query: Query,
        headers: &Fields,
    ) -> Result<Response<Body>, Refused> {
        let mut wanted = query.wanted;
        // Whoever comes back says what it saw last.
        if let Some(seen) = headers.text("last-event-id").and_then(|it| it.parse::<u64>().ok()) {
            wanted.start = Some(Start::At(seen.saturating_add(1)));
        }
        let accept = headers.text("accept").unwrap_or_default();
        let whole = accept.contains("application/json") && !accept.contains("text/event-stream");
        match (query.consumer, whole) {
            (Some(name), true) => {
                let wish = wanted.wish(Gateway::consumer(&caller, &name)?);
                // Nobody who waits keeps the gateway from ending.
                let found = tokio::select! {
                    found = self.gateway.fetch(&caller, &wish, wanted.wait) => found?,
                    () = self.gateway.stop.cancelled() => Vec::new(),
                };
                let text = format!(r#"{{"events":{}}}"#, delivered(&found));
                Ok(json_response(StatusCode::OK, text.into()))
            }
            (Some(name), false) => {
                let consumer = Gateway::consumer(&caller, &name)?;
                // Whatever is wrong with it is said before the stream begins.
                let known = Wish { max: 0, ..wanted.wish(consumer.clone()) };
                self.gateway.bus()?.fetch(&known, Duration::ZERO).await?;
                Ok(self.deliver(caller, consumer, wanted))
            }
            (None, true) => self.page(&caller, &wanted).await,
            (None, false) => self.follow(caller, wanted).await,
        }
    }

    /// What there is from somewhere on, in one answer, and where to go on.
    async fn page(&self, caller: &Caller, wanted: &Wanted) -> Result<Response<Body>, Refused> {
        let start = Some(wanted.start.unwrap_or(Start::First));
        // Everything is looked at here, so that there is an end to looking.
        let all = Wanted { start, asked: None, ..wanted.clone() };
        let filter = Filter { asked: wanted.asked.clone().unwrap_or_default(), allowed: None };
        let last = self.gateway.bus()?.state().last;
        let mut follower = self.gateway.follow_events(&all).await?;
        let end = tokio::time::Instant::now() + wanted.wait;
        let (mut texts, mut next, mut missed) = (Vec::new(), None, 0);
        while texts.len() < wanted.max {
            let behind = next.is_none_or(|next| next <= last) && 0 < last;
            let patience = if behind && texts.is_empty() { end.max(end_of_looking()) } else { end };
            let patience = if texts.is_empty() || behind { patience } else { break };
            let batch = tokio::select! {
                batch = tokio::time::timeout_at(patience, follower.next()) => batch,
                () = self.gateway.stop.cancelled() => break,
            };
            let Ok(batch) = batch else { break };
            let (batch, rights) = (batch?, self.gateway.rights(caller));
            (next, missed) = (Some(batch.passed + 1), missed + batch.missed);
            for record in &batch.records {
                if filter.matches(&record.name) && rights.allow(&record.name) {
                    if texts.len() == wanted.max {
                        next = Some(record.seq);
                        break;
                    }
                    texts.push(record.cloud_event());
                }
            }
        }
        let rest = json!({ "next": next, "missed": missed }).to_string();
        let text = format!(r#"{{"events":[{}],{}"#, texts.join(","), &rest[1..]);
        Ok(json_response(StatusCode::OK, text.into()))
    }

    /// A stream of what comes.
    async fn follow(
        self: &Arc<Self>,
        caller: Caller,
        wanted: Wanted,
    ) -> Result<Response<Body>, Refused> {
        let last = self.gateway.bus()?.state().last;
        let mut follower = self.gateway.follow_events(&wanted).await?;
        let (sender, receiver) = queue(QUEUE);
        let gateway = Arc::clone(&self.gateway);
        self.gateway.tasks.spawn(async move {
            let reading = async {
                // So that whoever loses the connection before anything came resumes in the right place.
                if matches!(wanted.start, None | Some(Start::New)) {
                    sender.send(Event::At(last)).await.ok()?;
                }
                loop {
                    match tokio::time::timeout(KEEP_ALIVE, follower.next()).await {
                        Err(_) => sender.send(Event::KeepAlive).await.ok()?,
                        Ok(Err(_)) => return None::<()>,
                        Ok(Ok(batch)) => pass_on(&gateway, &caller, batch, &sender).await?,
                    }
                }
            };
            until_gone(&gateway, &caller, &sender, reading).await;
        });
        Ok(events(receiver))
    }

    /// A stream of what a durable consumer is given.
    fn deliver(
        self: &Arc<Self>,
        caller: Caller,
        consumer: ConsumerName,
        wanted: Wanted,
    ) -> Response<Body> {
        let (sender, receiver) = queue(QUEUE);
        let gateway = Arc::clone(&self.gateway);
        let held = gateway.held.hold(&consumer, wanted.patience);
        self.gateway.tasks.spawn(async move {
            let giving = give(&gateway, &caller, &consumer, &wanted, &held, &sender);
            until_gone(&gateway, &caller, &sender, giving).await;
            gateway.give_back(&consumer, &held).await;
        });
        events(receiver)
    }
}

/// How long what is there already may take.
fn end_of_looking() -> tokio::time::Instant {
    tokio::time::Instant::now() + Duration::from_secs(1)
}

/// Does something while its client is there and let in.
async fn until_gone(
    gateway: &Gateway,
    caller: &Caller,
    sender: &Sender<Event>,
    work: impl Future<Output = Option<()>>,
) {
    tokio::select! {
        _ = work => {}
        () = sender.closed() => {}
        () = gateway.expelled(caller) => {}
        () = gateway.stop.cancelled() => {}
    }
}

/// Hands on what was read. Nothing where nobody reads any more.
async fn pass_on(
    gateway: &Gateway,
    caller: &Caller,
    batch: Batch,
    sender: &Sender<Event>,
) -> Option<()> {
    if 0 < batch.missed || !batch.damaged.is_empty() {
        let damaged: Vec<String> =
            batch.damaged.iter().map(|it| format!("{}-{}", it.start(), it.end())).collect();
        let note = json!({ "missed": batch.missed, "damaged": damaged }).to_string();
        sender.send(Event::Gap(note)).await.ok()?;
    }
    for record in batch.records {
        if gateway.rights(caller).allow(&record.name) {
            sender.send(Event::Cloud(record.seq, record.cloud_event())).await.ok()?;
        }
    }
    Some(())
}

/// Gives a consumer its events, so many that it never has more than it wants in hand.
async fn give(
    gateway: &Gateway,
    caller: &Caller,
    consumer: &ConsumerName,
    wanted: &Wanted,
    held: &Held,
    sender: &Sender<Event>,
) -> Option<()> {
    let mut wish = wanted.wish(consumer.clone());
    loop {
        wish.max = held.room(wanted.max).await;
        match gateway.fetch(caller, &wish, KEEP_ALIVE).await {
            Ok(found) if found.is_empty() => sender.send(Event::KeepAlive).await.ok()?,
            Ok(found) => {
                found.iter().for_each(|it| held.take(it.record.seq));
                for it in found {
                    let event = Event::Cloud(it.record.seq, it.record.cloud_event());
                    sender.send(event).await.ok()?;
                }
            }
            Err(refused) => {
                tracing::debug!(%refused, consumer = consumer.as_str(), "a consumer is cut off");
                return None;
            }
        }
    }
}

/// The body, if it has one meaning only.
fn strict(body: &Bytes) -> Result<&str, Refused> {
    scan(body, |_, _| ()).map_err(|error| Refused::Invalid(error.to_string()))?;
    std::str::from_utf8(body).map_err(|error| Refused::Invalid(error.to_string()))
}

fn consumer(state: &ConsumerState, caller: &Caller) -> Value {
    let name = if caller.is_operator() { &state.name } else { ConsumerName::parts(&state.name).1 };
    json!({
        "name": name, "match": state.filter.asked, "cursor": state.cursor, "behind": state.behind,
        "pending": state.pending, "dead": state.dead, "missed": state.missed,
        "seen": toolcrib_bus::rfc3339(state.seen), "seen_ms": state.seen,
    })
}

fn letter(letter: &DeadLetter) -> String {
    let event = letter.record.as_ref().map(|it| it.cloud_event());
    let event = event.and_then(|it| RawValue::from_string(it).ok());
    let head = json!({
        "sequence": letter.seq, "attempts": letter.attempts, "reason": letter.reason,
        "time": toolcrib_bus::rfc3339(letter.at), "time_ms": letter.at,
    });
    let head = head.to_string();
    let event = event.map_or_else(|| "null".to_owned(), |it| it.get().to_owned());
    format!(r#"{},"event":{event}}}"#, head.trim_end_matches('}'))
}

fn refuse(refused: &Refused) -> Response<Body> {
    let status = match refused {
        Refused::Hidden(_) => StatusCode::FORBIDDEN,
        Refused::Invalid(_) | Refused::Bus(BusError::Refused(_)) => StatusCode::BAD_REQUEST,
        Refused::Bus(BusError::TooLarge { .. }) => StatusCode::PAYLOAD_TOO_LARGE,
        Refused::Bus(BusError::IdTaken(_)) => StatusCode::CONFLICT,
        Refused::NoBus | Refused::Bus(BusError::Unavailable(_) | BusError::Closed) => {
            StatusCode::SERVICE_UNAVAILABLE
        }
    };
    let mut response = plain(status, &format!("{refused}\n"));
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response
}

/// What stands behind the `?`.
#[derive(Debug, Default)]
struct Query {
    consumer: Option<String>,
    wanted: Wanted,
}

impl Query {
    fn read(text: &str) -> Result<Self, Refused> {
        let mut query = Self::default();
        query.wanted.max = 16;
        for pair in text.split('&').filter(|it| !it.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let value = decoded(value)?;
            let wrong = |must: &str| Refused::Invalid(format!("`{key}` must be {must}"));
            let wanted = &mut query.wanted;
            match key {
                "match" => {
                    let list = wanted.asked.get_or_insert_default();
                    for pattern in value.split(',').filter(|it| !it.is_empty()) {
                        list.push(Pattern::new(pattern)?);
                    }
                }
                "consumer" => query.consumer = Some(value),
                "from" => {
                    let must = "a number, first or new";
                    wanted.start = Some(start(&value).ok_or_else(|| wrong(must))?);
                }
                "max" => {
                    let max = value.parse().ok().filter(|it| (1..=MAX_AT_ONCE).contains(it));
                    wanted.max = max.ok_or_else(|| wrong("between 1 and 100"))?;
                }
                "wait" => {
                    let wait = time(&value).filter(|it| *it <= MAX_WAIT);
                    wanted.wait = wait.ok_or_else(|| wrong("a time up to 30s"))?;
                }
                "patience" => {
                    let range = Duration::from_millis(100)..=Duration::from_secs(3600);
                    let patience = time(&value).filter(|it| range.contains(it));
                    wanted.patience = patience.ok_or_else(|| wrong("a time from 100ms to 1h"))?;
                }
                "attempts" => {
                    let attempts = value.parse().ok().filter(|it| (1..=1000).contains(it));
                    wanted.attempts = attempts.ok_or_else(|| wrong("between 1 and 1000"))?;
                }
                // A name that is slightly wrong must not mean everything.
                _ => return Err(Refused::Invalid(format!("unknown key `{}`", key.escape_debug()))),
            }
        }
        Ok(query)
    }

    /// The consumer that is named.
    fn named(&self, caller: &Caller) -> Result<ConsumerName, Refused> {
        let name = self.consumer.as_deref();
        let name = name.ok_or_else(|| Refused::Invalid("`consumer` is required".to_owned()))?;
        Gateway::consumer(caller, name)
    }
}

fn start(text: &str) -> Option<Start> {
    match text {
        "first" => Some(Start::First),
        "new" => Some(Start::New),
        number => number.parse().ok().map(Start::At),
    }
}

/// `500ms`, `10s`, `2m`, `1h`; a bare number is seconds.
fn time(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "" | "s" => Some(Duration::from_secs(number)),
        "m" => Some(Duration::from_secs(number.checked_mul(60)?)),
        "h" => Some(Duration::from_secs(number.checked_mul(3600)?)),
        _ => None,
    }
}

/// A value with its escapes taken out.
pub(crate) fn decoded(text: &str) -> Result<String, Refused> {
    let wrong = || Refused::Invalid("the address has a broken % in it".to_owned());
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let mut digit = || char::from(rest.next()?).to_digit(16);
                let (high, low) = (digit().ok_or_else(wrong)?, digit().ok_or_else(wrong)?);
                u8::try_from(high * 16 + low).unwrap_or_default()
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_not_text| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_says_what_is_wanted() {
        let query =
            "match=task.*,a%2Fb&match=x&from=7&consumer=mail&max=3&wait=2s&patience=1m&attempts=9";
        let query = Query::read(query).unwrap();
        let asked: Vec<String> =
            query.wanted.asked.unwrap().iter().map(|it| it.as_str().to_owned()).collect();
        assert_eq!(asked, ["task.*", "a/b", "x"]);
        assert_eq!(query.wanted.start, Some(Start::At(7)));
        assert_eq!(query.consumer.as_deref(), Some("mail"));
        assert_eq!((query.wanted.max, query.wanted.wait.as_secs()), (3, 2));
        assert_eq!((query.wanted.patience.as_secs(), query.wanted.attempts), (60, 9));
    }

    #[test]
    fn a_query_that_means_nothing_is_refused() {
        for bad in [
            "from=yesterday",
            "max=0",
            "max=101",
            "wait=1h",
            "wait=x",
            "patience=1ms",
            "attempts=0",
            "mach=task.*",
            "match=%zz",
            "match=%",
            "match=%ff",
            "match=a+b",
        ] {
            assert!(Query::read(bad).is_err(), "{bad}");
        }
        assert!(Query::read("").is_ok() && Query::read("&&").is_ok());
    }
}
