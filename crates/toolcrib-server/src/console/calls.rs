//! Calls: those that were made, the story of one, and those that are made while somebody watches. All of it comes
//! from the audit record, which has no secrets in it and which a call writes anyway: nobody pays for being watched.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::Response;
use serde_json::{Value, json};

use super::{Asked, Fault, ok, whole};
use crate::{
    access::Caller,
    gateway::Gateway,
    guard::audit::{Tail, Told, find_call, recent_calls},
    http::{Body, events},
    queue::{Sender, queue},
    stream::{Event, KEEP_ALIVE},
};

/// How many calls are shown at once.
const MOST_CALLS: usize = 2_000;

/// How often those who watch are told.
const BEAT: Duration = Duration::from_millis(250);

/// How much of the record is read in a beat.
const MOST_READ: u64 = 1 << 20;

/// How many messages wait for a page that is slow.
const QUEUE: usize = 4;

/// Where the records are.
fn folder(gateway: &Gateway) -> Result<PathBuf, Fault> {
    let audit = gateway.audit().map(|it| it.folder().to_owned());
    audit.ok_or_else(|| {
        Fault::unavailable("calls are not on record here: take `audit: off` out of network.yaml")
    })
}

/// Whether this is for whoever asks.
fn is_for(asked: &Asked, group: Option<&str>) -> bool {
    asked.operates || group == Some(&*asked.caller.group)
}

/// The newest calls, oldest first.
pub(super) async fn list(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Response<Body>, Fault> {
    let folder = folder(gateway)?;
    let most = asked.number("limit", MOST_CALLS, 500)?;
    let (operates, own) = (asked.operates, Arc::clone(&asked.caller.group));
    let tool = asked.get("tool").map(str::to_owned);
    let wanted = move |it: &Told<'_>| {
        (operates || it.group.as_deref() == Some(&*own))
            && tool.as_deref().is_none_or(|tool| it.tool.as_deref() == Some(tool))
    };
    let read = gateway.tasks.spawn_blocking(move || recent_calls(&folder, most, wanted)).await;
    let lines = match read {
        Ok(Ok(lines)) => lines,
        Ok(Err(error)) => return Err(unreadable(&error)),
        Err(_ended) => return Err(Fault::unavailable("the record could not be read")),
    };
    Ok(whole(format!(r#"{{"calls":[{}]}}"#, lines.join(","))))
}

fn unreadable(error: &std::io::Error) -> Fault {
    Fault::unavailable(format!("the audit record cannot be read: {error}"))
}

/// The story of one call.
pub(super) async fn story(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Response<Body>, Fault> {
    let (folder, id) = (folder(gateway)?, asked.need("id")?.to_owned());
    let read = gateway.tasks.spawn_blocking(move || find_call(&folder, &id)).await;
    let found = match read {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return Err(unreadable(&error)),
        Err(_ended) => return Err(Fault::unavailable("the record could not be read")),
    };
    let record = found.filter(|it| is_for(asked, it["group"].as_str()));
    let record = record.ok_or_else(|| Fault::unknown("there is no such call on record"))?;
    let checks = checks(gateway, &record);
    Ok(ok(&json!({ "record": record, "checks": checks })))
}

/// What every call goes through, in order, and where this one came to an end.
fn checks(gateway: &Gateway, record: &Value) -> Vec<Value> {
    let rules = gateway.rules();
    let steps = [
        ("request", "the request makes sense", true),
        ("access", "the group may call this tool", true),
        ("pins", "the definition is what was accepted", true),
        ("arguments", "the arguments fit the schema", rules.arguments),
        ("limits", "there is room for the call", true),
    ];
    let decided = record["rule"].as_str();
    let at = decided.and_then(|rule| steps.iter().position(|(name, ..)| rule.starts_with(name)));
    let step = |(place, (name, about, on)): (usize, &(&str, &str, bool))| {
        let outcome = match at {
            Some(at) if at == place => "refused",
            Some(at) if at < place => "not reached",
            _ if !on => "off",
            _ => "passed",
        };
        json!({ "check": name, "about": about, "outcome": outcome })
    };
    steps.iter().enumerate().map(step).collect()
}

/// A stream of what happens: calls that end, and that the catalogue has changed.
pub(super) fn live(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Response<Body>, Fault> {
    let room = Arc::clone(&gateway.console.room).try_acquire_owned();
    let room = room.map_err(|_full| Fault::unavailable("too many watch already"))?;
    let (sender, receiver) = queue(QUEUE);
    let (this, caller, operates) = (Arc::clone(gateway), asked.caller.clone(), asked.operates);
    gateway.tasks.spawn(async move {
        tokio::select! {
            _ = watch(&this, &caller, operates, &sender) => {}
            () = sender.closed() => {}
            () = this.expelled(&caller) => {}
            () = this.stop.cancelled() => {}
        }
        drop(room);
    });
    Ok(events(receiver))
}

/// Tells what happens, until nobody listens any more.
async fn watch(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    operates: bool,
    sender: &Sender<Event>,
) -> Option<()> {
    let mut changes = gateway.changes();
    let mut tail = None;
    if let Ok(folder) = folder(gateway) {
        tail = gateway.tasks.spawn_blocking(move || Tail::at_end(&folder).ok()).await.ok()?;
    }
    sender.send(said(&json!({ "watching": tail.is_some() }).to_string())).await.ok()?;
    let mut quiet = tokio::time::Instant::now();
    loop {
        tokio::time::sleep(BEAT).await;
        let before = quiet;
        if changes.has_changed().unwrap_or_default() {
            let number = *changes.borrow_and_update();
            sender.send(said(&json!({ "catalogue": number }).to_string())).await.ok()?;
            quiet = tokio::time::Instant::now();
        }
        if let Some(mut it) = tail.take() {
            let own = Arc::clone(&caller.group);
            let read = move || {
                let wanted = |told: &Told<'_>| operates || told.group.as_deref() == Some(&*own);
                let found = it.more(MOST_READ, wanted);
                (it, found)
            };
            let (it, found) = gateway.tasks.spawn_blocking(read).await.ok()?;
            tail = Some(it);
            if let Ok((lines, passed)) = found
                && (!lines.is_empty() || 0 < passed)
            {
                let text = format!(r#"{{"calls":[{}],"passed":{passed}}}"#, lines.join(","));
                sender.send(said(&text)).await.ok()?;
                quiet = tokio::time::Instant::now();
            }
        }
        if before == quiet && KEEP_ALIVE < quiet.elapsed() {
            sender.send(Event::KeepAlive).await.ok()?;
            quiet = tokio::time::Instant::now();
        }
    }
}

fn said(text: &str) -> Event {
    Event::Message(text.to_owned().into())
}
