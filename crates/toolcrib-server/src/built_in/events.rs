//! The tools that take, acknowledge and publish events.

use std::time::Duration;

use bytes::Bytes;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json, value::RawValue};
use toolcrib_bus::{Delivery, Draft, Outcome, Pattern, Start};

use super::Done;
use crate::{
    access::Caller,
    events::{MAX_AT_ONCE, MAX_WAIT, Refused, Wanted},
    gateway::Gateway,
};

pub(super) const POLL: &str = r#"{"name":"events_poll","title":"Poll events","description":"Take the next events that wait for you. Acknowledge each with events_ack once you have dealt with it; what is not acknowledged within 30 seconds comes again. Every consumer name has a queue of its own that survives restarts.","inputSchema":{"type":"object","properties":{"consumer":{"type":"string","pattern":"^[A-Za-z0-9_.-]{1,64}$","default":"default","description":"The name of your queue"},"match":{"type":"array","items":{"type":"string"},"description":"Names of events, such as task.* ; a new queue without it gets all that your group may read"},"from":{"type":"string","enum":["first","new"],"default":"first","description":"Where a new queue begins: at the oldest event kept, or at what comes from now on"},"max":{"type":"integer","minimum":1,"maximum":100,"default":10},"wait_seconds":{"type":"number","minimum":0,"maximum":30,"default":0,"description":"How long to wait where nothing is there yet"}},"additionalProperties":false},"outputSchema":{"type":"object","properties":{"events":{"type":"array","items":{"type":"object"}},"has_more":{"type":"boolean","description":"Whether more may wait"}},"required":["events"]},"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":false,"openWorldHint":false}}"#;

pub(super) const ACK: &str = r#"{"name":"events_ack","title":"Acknowledge events","description":"Say that events from events_poll are dealt with, so that they never come again; or give them back.","inputSchema":{"type":"object","properties":{"sequences":{"type":"array","items":{"type":["integer","string"]},"minItems":1,"maxItems":1000,"description":"The `sequence` of each event"},"consumer":{"type":"string","pattern":"^[A-Za-z0-9_.-]{1,64}$","default":"default"},"outcome":{"type":"string","enum":["done","retry","dead"],"default":"done","description":"done: never again. retry: deliver it again. dead: it cannot be dealt with; set it aside"},"delay_seconds":{"type":"number","minimum":0,"maximum":86400,"default":0,"description":"With retry: after how long"},"reason":{"type":"string","description":"With dead: why"}},"required":["sequences"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"settled":{"type":"array","items":{"type":"integer"}},"unknown":{"type":"array","items":{"type":"integer"}}},"required":["settled","unknown"]},"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}"#;

pub(super) const PUBLISH: &str = r#"{"name":"events_publish","title":"Publish an event","description":"Append an event to the bus. The answer comes when it is safe on disk. To reply to an event, set correlation_id to its id.","inputSchema":{"type":"object","properties":{"name":{"type":"string","minLength":1,"maxLength":255,"description":"Words with dots between them, such as task.done"},"data":{"description":"What it says: any JSON"},"id":{"type":"string","minLength":1,"maxLength":255,"description":"Sending the same id again sends nothing twice"},"subject":{"type":"string","description":"What it is about"},"correlation_id":{"type":"string","description":"The id of the event that this one answers"}},"required":["name","data"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"id":{"type":"string"},"sequence":{"type":"integer"},"again":{"type":"boolean"}},"required":["id","sequence"]},"annotations":{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":false,"openWorldHint":true}}"#;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Poll {
    #[serde(default = "default_consumer")]
    consumer: String,
    #[serde(default, rename = "match")]
    asked: Option<Patterns>,
    from: Option<String>,
    #[serde(alias = "limit")]
    max: Option<usize>,
    wait_seconds: Option<f64>,
}

/// One, or several.
#[derive(Deserialize)]
#[serde(untagged)]
enum Patterns {
    One(String),
    Several(Vec<String>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ack {
    #[serde(default = "default_consumer")]
    consumer: String,
    sequences: Vec<Sequence>,
    outcome: Option<String>,
    delay_seconds: Option<f64>,
    reason: Option<String>,
}

/// A place, as a number or as the text that the envelope has.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Sequence {
    Number(u64),
    Text(String),
}

impl Sequence {
    pub(crate) fn number(&self) -> Result<u64, Refused> {
        match self {
            Self::Number(it) => Ok(*it),
            Self::Text(text) => text.parse().map_err(|_not_one| {
                Refused::Invalid(format!("`{}` is no sequence", text.escape_debug()))
            }),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Publish {
    name: String,
    data: Box<RawValue>,
    id: Option<String>,
    subject: Option<String>,
    correlation_id: Option<String>,
}

fn default_consumer() -> String {
    "default".to_owned()
}

fn read<T: DeserializeOwned>(arguments: &[u8]) -> Result<T, Refused> {
    super::read(arguments).map_err(Refused::Invalid)
}

/// Seconds within bounds.
fn seconds(value: Option<f64>, most: Duration, what: &str) -> Result<Duration, Refused> {
    let value = value.unwrap_or_default();
    if !(0.0..=most.as_secs_f64()).contains(&value) {
        let most = most.as_secs();
        return Err(Refused::Invalid(format!("`{what}` must be between 0 and {most}")));
    }
    Ok(Duration::from_secs_f64(value))
}

pub(super) async fn poll(
    gateway: &Gateway,
    caller: &Caller,
    arguments: &[u8],
) -> Result<Done, Refused> {
    let Poll { consumer, asked, from, max, wait_seconds } = read(arguments)?;
    let start = match from.as_deref() {
        None | Some("first") => Start::First,
        Some("new") => Start::New,
        Some(_) => return Err(Refused::Invalid("`from` must be first or new".to_owned())),
    };
    if max.is_some_and(|it| !(1..=MAX_AT_ONCE).contains(&it)) {
        return Err(Refused::Invalid(format!("`max` must be between 1 and {MAX_AT_ONCE}")));
    }
    let asked = asked.map(|it| match it {
        Patterns::One(one) => vec![one],
        Patterns::Several(several) => several,
    });
    let asked = asked.map(|it| it.into_iter().map(Pattern::new).collect()).transpose()?;
    let wanted = Wanted {
        asked,
        start: Some(start),
        max: max.unwrap_or(10),
        wait: seconds(wait_seconds, MAX_WAIT, "wait_seconds")?,
        ..Wanted::default()
    };
    let wish = wanted.wish(Gateway::consumer(caller, &consumer)?);
    let found = gateway.fetch(caller, &wish, wanted.wait).await?;
    let text = match found.len() {
        0 => "No events wait.".to_owned(),
        1 => format!("1 event: {}", delivered(&found)),
        n => format!("{n} events: {}", delivered(&found)),
    };
    let (events, has_more) = (delivered(&found), found.len() == wanted.max);
    let structure = format!(r#"{{"events":{events},"has_more":{has_more}}}"#);
    Ok(Done { text, structure: Some(structure) })
}

/// Events as a list of JSON.
pub(crate) fn delivered(found: &[Delivery]) -> String {
    let events: Vec<String> = found.iter().map(|it| it.record.cloud_event()).collect();
    format!("[{}]", events.join(","))
}

pub(super) async fn ack(
    gateway: &Gateway,
    caller: &Caller,
    arguments: &[u8],
) -> Result<Done, Refused> {
    let structure = acknowledge(gateway, caller, arguments).await?;
    let count = structure["settled"].as_array().map_or(0, Vec::len);
    let text = match structure["unknown"].as_array().filter(|it| !it.is_empty()) {
        None => format!("{count} settled."),
        Some(_) => {
            format!("{count} settled; these were not waiting for it: {}.", structure["unknown"])
        }
    };
    Ok(Done { text, structure: Some(structure.to_string()) })
}

/// Notes what became of events, and says of which that counted.
pub(crate) async fn acknowledge(
    gateway: &Gateway,
    caller: &Caller,
    arguments: &[u8],
) -> Result<Value, Refused> {
    let Ack { consumer, sequences, outcome, delay_seconds, reason } = read(arguments)?;
    if sequences.is_empty() || 1000 < sequences.len() {
        return Err(Refused::Invalid("`sequences` must name 1 to 1000 events".to_owned()));
    }
    let delay = seconds(delay_seconds, Duration::from_secs(86_400), "delay_seconds")?;
    let outcome = match outcome.as_deref() {
        None | Some("done") => Outcome::Done,
        Some("retry") => Outcome::Again(delay),
        Some("dead") => Outcome::Dead(reason.unwrap_or_else(|| "given up".to_owned())),
        Some(_) => {
            return Err(Refused::Invalid("`outcome` must be done, retry or dead".to_owned()));
        }
    };
    let outcomes = sequences.iter().map(|it| Ok((it.number()?, outcome.clone())));
    let outcomes = outcomes.collect::<Result<_, Refused>>()?;
    let settled = gateway.settle(&Gateway::consumer(caller, &consumer)?, outcomes).await?;
    Ok(json!({ "settled": settled.settled, "unknown": settled.unknown }))
}

pub(super) async fn publish(
    gateway: &Gateway,
    caller: &Caller,
    arguments: &[u8],
    params: &Bytes,
    once: Option<&str>,
) -> Result<Done, Refused> {
    let Publish { name, data, id, subject, correlation_id } = read(arguments)?;
    let mut draft = Draft::new(&name, data.get()).with("tool", "events_publish");
    (draft.id, draft.subject) = (id.or_else(|| once.map(str::to_owned)), subject);
    if let Some(id) = correlation_id {
        draft = draft.with("correlationid", id);
    }
    for (key, value) in crate::dispatch::trace(params) {
        draft = draft.with(key, value);
    }
    let emitted = gateway.publish(caller, draft).await?;
    let text = format!("Event emitted: {name} (id {}, sequence {})", emitted.id, emitted.sequence);
    Ok(Done { text, structure: Some(json!(emitted).to_string()) })
}
