//! One call of a tool: who answers it, what is recorded of it, and what of its result is passed on.
//!
//! It goes through: is there such a tool and is it what was accepted, do the arguments fit (here); was it
//! made before (`once`); is the result kept, is there room for the call (`making`).

pub(crate) mod making;
mod once;

use std::{
    ops::Range,
    sync::{Arc, atomic::AtomicU32},
};

use bytes::Bytes;
use serde_json::json;
use toolcrib_catalogue::{Blame, CallContext, CallError, ClientError, Entry, Json, Visitor};
use toolcrib_wire::{
    Era, RpcError,
    json::{member, string},
};

use crate::{
    built_in,
    dispatch::{Asked, complete, exact, invalid, replaced, usable},
    gateway::Gateway,
    going::Going,
    guard::{
        Ended, Standing, arguments,
        results::{self, Shape},
        rules::ResultRule,
        telling::Telling,
    },
    rounds,
    snapshot::Snapshot,
    visit::Here,
    words,
};
pub(crate) use making::RETRY_AFTER;
use making::{Making, admit_alone, count_refused};

/// How much of a name is said again.
const MOST_NAME: usize = 200;

/// What is to be called, once it is known who answers.
struct Called {
    name: String,
    params: Bytes,
    /// Where the arguments stand in them.
    arguments: Option<Range<usize>>,
    /// Whether it was asked for by way of `call_tool`.
    through: bool,
}

/// Answers a call. Whatever becomes of it is told afterwards.
pub(crate) async fn call(gateway: &Arc<Gateway>, mut asked: Asked<'_>) -> Result<Bytes, RpcError> {
    let mut telling = Telling::begin(gateway, &mut asked);
    let era = asked.era;
    if let Err(error) = telling.admit().await {
        return Ok(own(unrecorded(&error.to_string(), "Nothing was done."), era));
    }
    let answer = begun(gateway, asked, &mut telling).await;
    told(telling, answer, era).await
}

/// The answer of a call that has ended, once that is told.
async fn told(
    telling: Telling,
    answer: Result<Bytes, RpcError>,
    era: Era,
) -> Result<Bytes, RpcError> {
    telling.end(answer).await.unwrap_or_else(|error| {
        Ok(own(unrecorded(&error.to_string(), "It may have been done nevertheless."), era))
    })
}

async fn begun(
    gateway: &Arc<Gateway>,
    asked: Asked<'_>,
    telling: &mut Telling,
) -> Result<Bytes, RpcError> {
    let params = asked.params.clone().unwrap_or_else(|| Bytes::from_static(b"{}"));
    let [name, arguments, ..] = exact(&params)?;
    let name = name.ok_or_else(|| invalid("`name` is required"))?;
    let name = string(&params[name]).ok_or_else(|| invalid("`name` must be a string"))?;
    let name = name.into_owned();
    // Whatever becomes of it now, it is told what was called.
    telling.calls(&name, &params, arguments.clone());
    let snapshot = gateway.snapshot();
    // One call may make many; each is asked anew whether it may be made.
    if snapshot.access.has_expelled(&asked.caller) {
        telling.story.refused("access", Ended::Expelled, Blame::Caller);
        return Err(expelled());
    }
    let is_object = |at: Range<usize>| matches!(params[at].first(), Some(b'{' | b'n'));
    if !arguments.clone().is_none_or(is_object) {
        return Err(invalid("`arguments` must be an object"));
    }
    let mut called = Called { name, params, arguments, through: false };
    let mut permit = None;
    if called.name == built_in::CALL_TOOL && snapshot.has_built_in(&asked.caller, &called.name) {
        telling.story.meter = gateway.metrics.of_built_in(&called.name).cloned();
        match admit_alone(&snapshot, &called.name, &mut telling.story) {
            Ok(admitted) => permit = Some(admitted),
            Err(refusal) => return Ok(own(refusal, asked.era)),
        }
        match built_in::search::inner(&called.params) {
            Ok((name, params)) => {
                let arguments = member(&params, "arguments");
                telling.calls(&name, &params, arguments.clone());
                telling.story.meter = None;
                called = Called { name, params, arguments, through: true };
            }
            Err(cause) => return Ok(own(built_in::refusal(&cause), asked.era)),
        }
    }
    // What tools call among each other no model sees.
    let recording = gateway.recording().filter(|_| asked.depth == 0);
    let record = recording.map(|it| {
        let visit = asked.visit.clone().map(|it| Here(it).key());
        it.call(&asked.caller, visit, &called.name, &called.params, &telling.id)
    });
    let answer = answer(gateway, asked, snapshot, called, telling).await;
    drop(permit);
    match (&record, &answer, &telling.story.cause) {
        (Some(record), _, Some(cause)) => record.failed(cause),
        (Some(record), Ok(result), None) => record.ended(result),
        (Some(record), Err(error), None) => record.failed(&error.message),
        (None, _, _) => {}
    }
    answer
}

async fn answer(
    gateway: &Arc<Gateway>,
    asked: Asked<'_>,
    mut snapshot: Arc<Snapshot>,
    called: Called,
    telling: &mut Telling,
) -> Result<Bytes, RpcError> {
    let Called { name, params, arguments, through } = called;
    let (era, id, story) = (asked.era, telling.id.clone(), &mut telling.story);
    if snapshot.has_built_in(&asked.caller, &name) {
        story.meter = gateway.metrics.of_built_in(&name).cloned();
        let making = Making { snapshot, name, params, id, once: None };
        return once::make_once(gateway, asked, making, telling).await;
    }
    if snapshot.tool(&asked.caller, &name).is_none() {
        gateway.first_lists().await;
        snapshot = gateway.snapshot();
    }
    let found = snapshot.tool(&asked.caller, &name).zip(snapshot.standing(&name));
    let Some((entry, standing)) = found else {
        if let Some(cause) = snapshot.held(&asked.caller, &name) {
            story.meter = snapshot.meter(&name).cloned();
            story.refused("pins", Ended::Held, Blame::Upstream);
            return Ok(own(held_back(&name, cause), era));
        }
        if let Err(refusal) = count_refused(&asked, &snapshot, &name, story) {
            return Ok(own(refusal, era));
        }
        story.refused("access", Ended::UnknownTool, Blame::Caller);
        // What is said of a long name is cut, and a secret in it would not be known any more.
        story.cause = (MOST_NAME < name.len()).then(|| "Unknown tool".to_owned());
        if through {
            let cause = built_in::search::unknown(&snapshot, &asked.caller, &name);
            return Ok(own(built_in::refusal(&cause), era));
        }
        return Err(unknown(&name));
    };
    story.source = snapshot.label(entry.listing);
    story.definition = Some(standing.look.hash);
    story.meter = snapshot.meter(&name).cloned();
    let rules = Arc::clone(&gateway.rules());
    let repairs = snapshot.repairs(&asked.caller);
    let params = match rules.arguments {
        true => arguments::checked(&standing.look, params, arguments, repairs).await,
        false => Ok(params),
    };
    let params = match params {
        Ok(params) => params,
        Err(faults) => {
            if let Err(refusal) = count_refused(&asked, &snapshot, &name, story) {
                return Ok(own(refusal, era));
            }
            story.refused("arguments", Ended::InvalidArguments, Blame::Caller);
            story.cause = Some(faults.discreet());
            return Ok(own(arguments::refusal(&name, &faults), era));
        }
    };
    let making = Making { snapshot, name, params, id, once: None };
    once::make_once(gateway, asked, making, telling).await
}

/// Asks the tool's source: what it answers, and with what of it put aside.
async fn ask(
    gateway: &Arc<Gateway>,
    asked: &Asked<'_>,
    (snapshot, entry): (&Snapshot, &Entry),
    params: Bytes,
    is_limited: bool,
    once: Option<Arc<str>>,
    retried: Arc<AtomicU32>,
) -> Result<(Bytes, Option<Json>), CallError> {
    let gone = || CallError::Client(ClientError::Refused("its source is gone".to_owned()));
    let slot = snapshot.slot(entry.listing).ok_or_else(gone)?;
    slot.note(asked.visit.as_ref());
    let source = slot.source().ok_or_else(gone)?;
    let at = member(&params, "name").ok_or_else(gone)?;
    let params = replaced(&params, &at, &entry.tool.name);
    let target = Some(&*entry.tool.name);
    let (going, params) = Going::begin((gateway, snapshot), asked, entry.listing, target, params);
    let mut context = CallContext { once, retried: Some(retried), ..asked.context() };
    if source.calls_others() {
        context.group = Some(Arc::clone(&asked.caller.group));
        context.others = Some(Arc::new(asked.others(gateway, &entry.name, &params)));
    }
    // A program that calls gets what it called for, however large.
    context.takes_aside = is_limited && gateway.settings().store.is_some();
    let params = Json::from_scanned(params);
    let result = rounds::request(source, "tools/call", params, context, asked.era).await;
    going.ended(&result);
    let result = result?;
    let aside = Some(&result).filter(|it| it.aside().is_some()).cloned();
    Ok((usable(result, asked.era)?, aside))
}

/// The result, held against what its tool promises.
fn promised(
    rule: ResultRule,
    name: &str,
    standing: &Standing,
    shape: &Shape,
    result: Bytes,
) -> Bytes {
    if rule == ResultRule::Off || shape.is_open {
        return result;
    }
    let Some(fault) = results::fault(&standing.look, shape, &result) else { return result };
    if standing.is_first_misfit() {
        tracing::warn!(tool = name, "{fault}");
    }
    if rule == ResultRule::Strict { results::marked(&result, &fault) } else { result }
}

/// The result of a call of a tool that is not what was accepted.
fn held_back(name: &str, cause: &str) -> Bytes {
    let text = format!(
        "The tool `{name}` is held back (definition_changed): {cause}. Nothing was done. \
         Whoever runs this gateway can accept it with `toolcrib lock`."
    );
    let result = json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
        "_meta": { "toolcrib/blame": "upstream", "toolcrib/code": words::DEFINITION_CHANGED },
    });
    result.to_string().into()
}

/// The result of a call of which there can be no record.
fn unrecorded(cause: &str, done: &str) -> Bytes {
    let result = json!({
        "content": [{ "type": "text", "text": format!("{cause}. {done}") }],
        "isError": true,
        "_meta": { "toolcrib/blame": "gateway", "toolcrib/code": words::AUDIT_UNAVAILABLE },
    });
    result.to_string().into()
}

/// There is no such tool. A name of megabytes is not said again.
fn unknown(name: &str) -> RpcError {
    let shown: String = name.chars().take(MOST_NAME).collect();
    invalid(format!("Unknown tool: {}", shown.escape_debug()))
}

/// The caller's right was taken away meanwhile.
pub(crate) fn expelled() -> RpcError {
    let message = "The token is no longer good here: nothing was done".to_owned();
    RpcError { code: words::EXPELLED, message, data: None }
}

/// A result of our own, as the era wants it.
fn own(result: Bytes, era: Era) -> Bytes {
    if era == Era::Modern { complete(result) } else { result }
}

/// The result of a call that brought none: whose fault it was, in words a model can act on.
fn failed(name: &str, error: &CallError) -> Bytes {
    let blame = words::blame(error.blame());
    let again = if error.is_transient() && !error.may_have_run() {
        " Nothing was done; trying again later may help."
    } else if error.may_have_run() {
        " It may have been done nevertheless."
    } else {
        ""
    };
    let text = format!("The tool `{name}` gave no result: {error}.{again}");
    let result = json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
        "_meta": { "toolcrib/blame": blame },
    });
    result.to_string().into()
}
