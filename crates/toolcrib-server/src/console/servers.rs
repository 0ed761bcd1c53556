//! How the gateway and its sources are, what is wrong, and starting a source anew.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};
use toolcrib_bus::{now_ms, rfc3339};
use toolcrib_catalogue::{Problem, Source, SourceState, lock::Place};

use super::{Asked, Fault, Named, ok};
use crate::{
    gateway::{Gateway, Input},
    guard::Held,
    http::Body,
    slot::Slot,
    snapshot::Snapshot,
};

/// The sources that somebody may see.
pub(super) fn list(gateway: &Arc<Gateway>, asked: &Asked) -> Value {
    json!({ "servers": rows(gateway, asked) })
}

fn rows(gateway: &Arc<Gateway>, asked: &Asked) -> Vec<Value> {
    let snapshot = gateway.snapshot();
    let seen = |at: usize| asked.operates || snapshot.shows(&asked.caller, at);
    let slots = snapshot.slots().iter().enumerate();
    let slots = slots.filter(|(at, it)| seen(*at) && is_there(&it.input));
    slots.map(|(at, slot)| row(&snapshot, asked, at, slot)).collect()
}

fn row(snapshot: &Snapshot, asked: &Asked, at: usize, slot: &Slot) -> Value {
    let Slot { input, label, since, .. } = slot;
    let (place, name) = (Place::of(&input.origin), &**label);
    let tools = snapshot.visible(&asked.caller).filter(|it| it.listing == at).count();
    let Some(source) = &input.source else {
        return json!({
            "name": name, "place": place.as_str(), "state": "off", "tools": 0,
            "cause": "it is disabled in mcp.json, or its entry there cannot be used",
        });
    };
    let state = source.state();
    let mut row = since.tell(&state);
    row["name"] = json!(name);
    row["place"] = json!(place.as_str());
    row["tools"] = json!(tools);
    row["required"] = json!(input.required);
    row["isolated"] = json!(!source.is_shared());
    if let SourceState::Failed { cause, hint } = state {
        (row["cause"], row["hint"]) = (json!(cause), json!(hint));
    }
    if asked.operates {
        row["listed"] = json!(source.tools().len());
        row["restart"] = json!(can_restart(input));
        row["held"] = held(snapshot, at);
        row["problems"] = json!(source.problems());
    }
    row
}

/// A folder of the workspace that is not there, or empty, is looked at all the same, for somebody may fill it.
fn is_there(input: &Input) -> bool {
    let empty = |it: &Arc<dyn Source>| it.tools().is_empty() && it.problems().is_empty();
    is_server(input) || !input.source.as_ref().is_none_or(empty)
}

fn is_server(input: &Input) -> bool {
    Place::of(&input.origin).as_str().starts_with("server:")
}

/// Only what runs apart from us can be started anew.
fn can_restart(input: &Input) -> bool {
    input.source.is_some() && is_server(input)
}

/// The tools of a source that nobody is served with.
fn held(snapshot: &Snapshot, at: usize) -> Value {
    let held = snapshot.held_of(at).map(|(name, held)| match held {
        Held::Back(cause) => json!({ "tool": name, "cause": cause, "shown": false }),
        Held::Away(cause) => json!({ "tool": name, "cause": cause, "hidden": true }),
    });
    held.collect()
}

/// How everything is, in a few figures.
pub(super) fn status(gateway: &Arc<Gateway>, asked: &Asked) -> Value {
    let rows = rows(gateway, asked);
    let snapshot = gateway.snapshot();
    let settings = gateway.settings();
    let count = |word: &str| rows.iter().filter(|it| it["state"] == word).count();
    let mut told = json!({
        "name": settings.name, "version": settings.version,
        "since": rfc3339(gateway.console.begin),
        "uptime_s": now_ms().saturating_sub(gateway.console.begin) / 1000,
        "ready": gateway.is_ready(), "group": &*asked.caller.group, "operator": asked.operates,
        "tools": snapshot.visible(&asked.caller).count(),
        "servers": {
            "ready": count("ready"), "connecting": count("connecting"),
            "failed": count("failed"), "off": count("off"),
        },
        "sources": rows,
    });
    if asked.operates {
        told["clients"] = json!(gateway.clients());
        told["problems"] = json!(all_problems(gateway));
    }
    told
}

/// Everything that is wrong, and what to do about it.
pub(super) fn problems(gateway: &Gateway) -> Result<Response<Body>, Fault> {
    Ok(ok(&json!({ "problems": all_problems(gateway) })))
}

fn all_problems(gateway: &Gateway) -> Vec<Problem> {
    let mut all = match gateway.console.operator() {
        Ok(operator) => operator.problems(),
        Err(_) => Vec::new(),
    };
    let failed = |input: &Input| match input.source.as_ref().map(|it| it.state()) {
        Some(SourceState::Failed { cause, hint }) => {
            Some(Problem { hint, ..Problem::new(input.origin.subject(), cause) })
        }
        _ => None,
    };
    let slots = gateway.slots();
    all.extend(slots.iter().filter_map(|it| failed(&it.input)));
    let listed = slots.iter().filter_map(|it| it.source());
    all.extend(listed.flat_map(|it| it.problems()));
    all.extend(gateway.console.problems.lock().iter().cloned());
    all.extend(gateway.snapshot().suspicions());
    let mut seen = Vec::new();
    for problem in all {
        if !seen.contains(&problem) {
            seen.push(problem);
        }
    }
    seen.sort_by_key(|it| it.severity);
    seen
}

/// Starts a source anew.
pub(super) fn restart(gateway: &Gateway, asked: &Asked) -> Result<Response<Body>, Fault> {
    let Named { name } = asked.body()?;
    let slots = gateway.slots();
    let found = slots.iter().find(|it| can_restart(&it.input) && *it.label == *name);
    let unknown =
        || Fault::unknown(format!("there is no server `{}` that runs", name.escape_debug()));
    let slot = found.ok_or_else(unknown)?;
    if !gateway.console.operator()?.restart(&name) {
        return Err(unknown());
    }
    // It may be up again before anybody has looked.
    if let Some(source) = slot.source() {
        slot.since.note(&source.state());
    }
    gateway.did(&asked.caller, "restart", &name);
    Ok(ok(&json!({ "restarted": name })))
}

/// Whether a source can be asked for its tools.
pub(super) fn is_listed(source: &dyn Source) -> bool {
    source.state() == SourceState::Ready
}
