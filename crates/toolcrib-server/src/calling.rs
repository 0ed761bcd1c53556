//! One call of a tool: who answers it, what is recorded of it, and what of its result is passed on.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use toolcrib_catalogue::{Blame, CallError, Json, Visitor};
use toolcrib_context::artifacts::ArtifactId;
use toolcrib_wire::{Era, RpcError, json::member, modern::unfinished};

use crate::{
    built_in,
    dispatch::{Asked, complete, invalid, replaced, rpc, string_in, usable},
    gateway::Gateway,
    keeping::Large,
    recording::Call,
    rounds,
    snapshot::Snapshot,
    visit::Here,
};

/// What is to be called, once it is known who answers.
struct Called {
    name: String,
    params: Bytes,
    /// Whether it was asked for by way of `call_tool`.
    through: bool,
}

/// Answers a call.
pub(crate) async fn call(gateway: &Arc<Gateway>, asked: Asked<'_>) -> Result<Bytes, RpcError> {
    let params = asked.params.clone().unwrap_or_else(|| Bytes::from_static(b"{}"));
    let (name, _) = string_in(&params, "name")?;
    if let Some(arguments) = member(&params, "arguments")
        && !matches!(params[arguments].first(), Some(b'{' | b'n'))
    {
        return Err(invalid("`arguments` must be an object"));
    }
    let snapshot = gateway.snapshot();
    let mut called = Called { name, params, through: false };
    if called.name == built_in::CALL_TOOL && snapshot.has_built_in(&asked.caller, &called.name) {
        match built_in::search::inner(&called.params) {
            Ok((name, params)) => called = Called { name, params, through: true },
            Err(cause) => return Ok(own(built_in::refusal(&cause), asked.era)),
        }
    }
    // What tools call among each other no model sees.
    let recording = gateway.recording().filter(|_| asked.depth == 0);
    let record = recording.map(|it| {
        let visit = asked.visit.clone().map(|it| Here(it).key());
        it.call(&asked.caller, visit, &called.name, &called.params)
    });
    let answer = answer(gateway, asked, snapshot, called, record.as_ref()).await;
    match (&record, &answer) {
        (Some(record), Ok(result)) => record.ended(result),
        (Some(record), Err(error)) => record.failed(&error.message),
        (None, _) => {}
    }
    answer
}

async fn answer(
    gateway: &Arc<Gateway>,
    asked: Asked<'_>,
    mut snapshot: Arc<Snapshot>,
    called: Called,
    record: Option<&Call>,
) -> Result<Bytes, RpcError> {
    let Called { name, params, through } = called;
    if snapshot.has_built_in(&asked.caller, &name) {
        let result = built_in::call(gateway, &asked.caller, &name, &params).await;
        return Ok(own(result, asked.era));
    }
    if snapshot.tool(&asked.caller, &name).is_none() {
        gateway.first_lists().await;
        snapshot = gateway.snapshot();
    }
    let Some(entry) = snapshot.tool(&asked.caller, &name) else {
        if through {
            let cause = built_in::search::unknown(&snapshot, &asked.caller, &name);
            return Ok(own(built_in::refusal(&cause), asked.era));
        }
        return Err(unknown(&name));
    };
    gateway.note(entry.listing, asked.visit.as_ref());
    let source = gateway.source(entry.listing);
    let source = source.ok_or_else(|| unknown(&name))?;
    let (_, at) = string_in(&params, "name")?;
    let params = replaced(&params, &at, &entry.tool.name);
    let mut context = asked.context();
    if source.calls_others() {
        context.group = Some(Arc::clone(&asked.caller.group));
        context.others = Some(Arc::new(asked.others(gateway, &name)));
    }
    // A program that calls gets what it called for, however large.
    let limit = snapshot.limit(&asked.caller, &name).filter(|_| asked.depth == 0);
    context.takes_aside = limit.is_some() && gateway.settings().store.is_some();
    let params = Json::from_scanned(params);
    let result = rounds::request(source, "tools/call", params, context, asked.era).await;
    let aside = result.as_ref().ok().filter(|it| it.aside().is_some()).cloned();
    let result = match result.and_then(|it| usable(it, asked.era)) {
        Err(error @ CallError::Rpc { .. }) => return Err(rpc(error)),
        Err(error) => return Ok(own(failed(&name, &error), asked.era)),
        Ok(result) => result,
    };
    let Some(limit) = limit else { return Ok(result) };
    if aside.is_none() && (result.len() <= limit || unfinished(&result).is_some()) {
        return Ok(result);
    }
    let call = record.map_or_else(unnamed, |it| it.id.clone());
    let (group, era) = (Arc::clone(&asked.caller.group), asked.era);
    let large = Large { tool: name.clone(), group, call, limit, era };
    let kept = gateway.keep(large, result, aside).await;
    Ok(kept.unwrap_or_else(|error| own(failed(&name, &error), era)))
}

/// A name for a call that is not recorded: what is kept of it belongs together.
fn unnamed() -> String {
    ArtifactId::random().map(String::from).unwrap_or_default()
}

/// There is no such tool. A name of megabytes is not said again.
fn unknown(name: &str) -> RpcError {
    let shown: String = name.chars().take(200).collect();
    invalid(format!("Unknown tool: {}", shown.escape_debug()))
}

/// A result of our own, as the era wants it.
fn own(result: Bytes, era: Era) -> Bytes {
    if era == Era::Modern { complete(result) } else { result }
}

/// The result of a call that brought none: whose fault it was, in words a model can act on.
fn failed(name: &str, error: &CallError) -> Bytes {
    let blame = match error.blame() {
        Blame::Caller => "caller",
        Blame::Upstream => "upstream",
        Blame::Gateway => "gateway",
    };
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
