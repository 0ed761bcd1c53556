//! Calls: those that were made, the story of one, and those that are made while somebody watches. All of it comes
//! from the audit record, which has no secrets in it and which a call writes anyway: nobody pays for being watched.

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::Response;
use serde_json::{Value, json};

use super::{Asked, Fault, ok, room::Kind, whole};
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
    let place = gateway.console.room.enter(Kind::Reading, &asked.caller).await?;
    let read = move || {
        let _place = place;
        recent_calls(&folder, most, wanted)
    };
    let read = gateway.tasks.spawn_blocking(read).await;
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
    let place = gateway.console.room.enter(Kind::Reading, &asked.caller).await?;
    let read = move || {
        let _place = place;
        find_call(&folder, &id)
    };
    let read = gateway.tasks.spawn_blocking(read).await;
    let found = match read {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => return Err(unreadable(&error)),
        Err(_ended) => return Err(Fault::unavailable("the record could not be read")),
    };
    let record = found.filter(|it| is_for(asked, it["group"].as_str()));
    let record = record.ok_or_else(|| Fault::unknown("there is no such call on record"))?;
    let checks = checks(&record);
    Ok(ok(&json!({ "record": record, "checks": checks })))
}

/// A check that calls come to.
#[derive(Debug)]
struct Check {
    /// The word with which the record names it.
    word: &'static str,
    about: &'static str,
    /// Whether nobody can switch it off, so that whatever came past it was checked.
    always: bool,
    /// Whether it is for what reads as well: that has no definition and no arguments to hold against anything.
    reads: bool,
}

const fn check(word: &'static str, about: &'static str, always: bool, reads: bool) -> Check {
    Check { word, about, always, reads }
}

/// All of them, in the order in which calls come to them.
const CHECKS: [Check; 6] = [
    check("request", "the request makes sense", true, true),
    check("access", "the group may have it", true, true),
    check("pins", "the definition is what was accepted", false, false),
    check("arguments", "the arguments fit the schema", false, false),
    check("idempotency", "its key stands for this call alone", false, false),
    check("limits", "there is room for the call", false, true),
];

/// What a call went through, and where it came to an end. Only what the record shows is said: which rules were in force
/// then, nobody wrote down.
fn checks(record: &Value) -> Vec<Value> {
    let is_call = record["method"].is_null();
    let all: Vec<&Check> = CHECKS.iter().filter(|it| is_call || it.reads).collect();
    let rule = record["rule"].as_str();
    let at = rule.and_then(|rule| all.iter().position(|it| rule.starts_with(it.word)));
    // Whoever went away may have gone before any check; what is refused is held to limits first, wherever it ends.
    let gone = at.is_none() && record["outcome"] == "cancelled";
    let early = at == Some(all.len() - 1) && record["source"].is_null();
    let told = |(place, check): (usize, &&Check)| {
        let outcome = match at {
            Some(at) if at == place => "refused",
            Some(at) if at < place => "not reached",
            _ if gone || early => "not known",
            _ if check.always => "passed",
            _ => "not refused",
        };
        json!({ "check": check.word, "about": check.about, "outcome": outcome })
    };
    all.iter().enumerate().map(told).collect()
}

/// A stream of what happens: calls that end, and that the catalogue has changed.
pub(super) fn live(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Response<Body>, Fault> {
    let room = &gateway.console.room;
    let place = room.take(Kind::Watching, &asked.caller);
    let place = place.ok_or_else(|| room.full(Kind::Watching, &asked.caller))?;
    let (sender, receiver) = queue(QUEUE);
    let (this, caller, local) = (Arc::clone(gateway), asked.caller.clone(), asked.local);
    gateway.tasks.spawn(async move {
        tokio::select! {
            _ = watch(&this, &caller, local, &sender) => {}
            () = sender.closed() => {}
            () = this.expelled(&caller) => {}
            () = this.stop.cancelled() => {}
        }
        drop(place);
    });
    Ok(events(receiver))
}

/// Tells what happens, until nobody listens any more.
async fn watch(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    local: bool,
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
            // Asked each time: a right that is taken away is gone, also for whoever looks already.
            let operates = gateway.access().operates(caller, local);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn outcomes(record: &Value) -> String {
        let all = checks(record).into_iter();
        let word = |it: Value| format!("{}: {}", it["check"], it["outcome"]).replace('"', "");
        all.map(word).collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_story_says_what_the_record_shows_and_no_more() {
        let ok = json!({ "outcome": "ok", "source": "s" });
        insta::assert_snapshot!(outcomes(&ok), @"request: passed, access: passed, pins: not refused, arguments: not refused, idempotency: not refused, limits: not refused");
        let twice = json!({ "outcome": "invalid_arguments", "source": "s", "rule": "idempotency" });
        insta::assert_snapshot!(outcomes(&twice), @"request: passed, access: passed, pins: not refused, arguments: not refused, idempotency: refused, limits: not reached");
        let gone = json!({ "outcome": "cancelled" });
        insta::assert_snapshot!(outcomes(&gone), @"request: not known, access: not known, pins: not known, arguments: not known, idempotency: not known, limits: not known");
        let read =
            json!({ "outcome": "unknown_tool", "method": "resources/read", "rule": "access" });
        insta::assert_snapshot!(outcomes(&read), @"request: passed, access: refused, limits: not reached");
        let flood = json!({ "outcome": "limited", "rule": "limits of the group" });
        insta::assert_snapshot!(outcomes(&flood), @"request: not known, access: not known, pins: not known, arguments: not known, idempotency: not known, limits: refused");
    }
}
