//! A request that reads: a prompt, or a resource. It is told of and counted as a call is, since it makes a server work
//! as a call does, and brings as much of what is there to whoever asks.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use toolcrib_catalogue::Blame;
use toolcrib_wire::{Era, RpcError, frame::INTERNAL_ERROR, json::members, modern::unfinished};

use crate::{
    access::Caller,
    built_in::{self, artifact::Refusal},
    calling::{RETRY_AFTER, expelled},
    dispatch::{Asked, hand_on_to, invalid, not_found, replaced, rpc, scope, string_in},
    gateway::Gateway,
    guard::{Ended, limits::Asks, limits::Permit, telling::Telling},
    snapshot::Snapshot,
    spans::Trace,
    words::{RESOURCE_NOT_FOUND, TOO_OFTEN},
};

/// Answers a request that reads. Whatever becomes of it is told afterwards.
pub(crate) async fn read(gateway: &Arc<Gateway>, mut asked: Asked<'_>) -> Result<Bytes, RpcError> {
    let mut telling = Telling::begin(gateway, &mut asked);
    let is_prompt = asked.method == "prompts/get";
    telling.method = Some(if is_prompt { "prompts/get" } else { "resources/read" });
    let unrecorded = |cause: String| RpcError { code: INTERNAL_ERROR, message: cause, data: None };
    telling.admit().await.map_err(|it| unrecorded(it.to_string()))?;
    let answer = match is_prompt {
        true => get_prompt(gateway, asked, &mut telling).await,
        false => read_resource(gateway, asked, &mut telling).await,
    };
    let told = telling.end(answer).await;
    told.unwrap_or_else(|error| Err(unrecorded(error.to_string())))
}

/// Tells of a call that was turned down before anybody looked what it calls.
pub(crate) async fn turned_down(
    gateway: &Arc<Gateway>,
    caller: &Caller,
    method: &str,
    params: Option<&Bytes>,
    error: &RpcError,
) {
    if method != "tools/call" {
        return;
    }
    let mut asked = Asked {
        caller: caller.clone(),
        era: Era::Modern,
        method,
        params: params.cloned(),
        listener: None,
        visit: None,
        depth: 0,
        attempt: None,
        trace: Trace::default(),
    };
    let mut telling = Telling::begin(gateway, &mut asked);
    if telling.admit().await.is_ok() {
        if let Some(params) = params
            && let Ok((name, _)) = string_in(params, "name")
        {
            telling.calls(&name, params, None);
        }
        // Nothing was done; where that cannot be recorded, the answer is the same.
        telling.end(Err(error.clone())).await.ok();
    }
}

async fn get_prompt(
    gateway: &Arc<Gateway>,
    asked: Asked<'_>,
    telling: &mut Telling,
) -> Result<Bytes, RpcError> {
    let params = asked.params.clone().unwrap_or_else(|| Bytes::from_static(b"{}"));
    let (name, at) = string_in(&params, "name")?;
    telling.calls(&name, &params, None);
    let snapshot = gateway.snapshot();
    let entry = snapshot.prompt(&asked.caller, &name);
    let permit = admit(&asked, &snapshot, entry.map(|it| it.listing), &name, telling)?;
    let Some(entry) = entry else {
        telling.story.refused("access", Ended::UnknownTool, Blame::Caller);
        return Err(invalid(format!("Unknown prompt: {}", name.escape_debug())));
    };
    let params = replaced(&params, &at, &entry.tool.name);
    let answer = from_source((gateway, &snapshot), entry.listing, asked, params, telling).await;
    drop(permit);
    answer
}

async fn read_resource(
    gateway: &Arc<Gateway>,
    asked: Asked<'_>,
    telling: &mut Telling,
) -> Result<Bytes, RpcError> {
    let params = asked.params.clone().unwrap_or_else(|| Bytes::from_static(b"{}"));
    let (uri, _) = string_in(&params, "uri")?;
    telling.calls(&uri, &params, None);
    let (era, snapshot) = (asked.era, gateway.snapshot());
    let source = snapshot.resource(&asked.caller, &uri);
    let permit = admit(&asked, &snapshot, source, &uri, telling)?;
    let unknown = |telling: &mut Telling| {
        telling.story.refused("access", Ended::UnknownTool, Blame::Caller);
        not_found(era, &uri)
    };
    if let Some(read) = built_in::artifact::resource(gateway, &asked.caller, &uri).await {
        let text = read.map_err(|refusal| match refusal {
            Refusal::Unknown => unknown(telling),
            Refusal::Asked(cause) => invalid(cause),
        })?;
        telling.story.answered(&text);
        return Ok(if era == Era::Modern { cacheable(&text, "private") } else { text });
    }
    let source = source.ok_or_else(|| unknown(telling))?;
    let answer = from_source((gateway, &snapshot), source, asked, params, telling).await;
    drop(permit);
    match answer {
        Ok(result) if era == Era::Modern && unfinished(&result).is_none() => {
            Ok(cacheable(&result, scope(gateway)))
        }
        Err(error) if era == Era::Modern && error.code == RESOURCE_NOT_FOUND => {
            Err(not_found(era, &uri))
        }
        answer => answer,
    }
}

/// Lets a request in that the limits of its group and its server allow. One for what is not there counts too.
fn admit(
    asked: &Asked<'_>,
    snapshot: &Snapshot,
    source: Option<usize>,
    name: &str,
    telling: &mut Telling,
) -> Result<Permit, RpcError> {
    if snapshot.access.has_expelled(&asked.caller) {
        telling.story.refused("access", Ended::Expelled, Blame::Caller);
        return Err(expelled());
    }
    telling.story.source = source.and_then(|it| snapshot.label(it));
    telling.story.served = source.and_then(|it| snapshot.source_meter(it)).cloned();
    let group = (asked.depth == 0).then_some(&*asked.caller.group);
    snapshot.limits.admit(Asks { group, tool: "", source }).map_err(|limited| {
        telling.story.refused(limited.by.kind(), Ended::Limited, Blame::Caller);
        let data = json!({ RETRY_AFTER: limited.wait.as_millis().max(1) as f64 / 1000.0 });
        let shown: String = name.chars().take(200).collect();
        let message = limited.told(&shown);
        RpcError { code: TOO_OFTEN, message, data: Some(data.to_string().into()) }
    })
}

async fn from_source(
    within: (&Gateway, &Snapshot),
    source: usize,
    asked: Asked<'_>,
    params: Bytes,
    telling: &mut Telling,
) -> Result<Bytes, RpcError> {
    match hand_on_to(within, source, asked, params).await {
        Ok(result) => {
            telling.story.answered(&result);
            Ok(result)
        }
        Err(error) => {
            telling.story.failed(&error);
            Err(rpc(error))
        }
    }
}

/// A result that says how long, and by whom, it may be kept, as the modern era wants of what was read.
/// What a group may read is not for everybody, whatever the server says.
fn cacheable(result: &Bytes, scope: &str) -> Bytes {
    let mut text = br#"{"resultType":"complete""#.to_vec();
    let mut ttl = Bytes::from_static(b"0");
    let mut said = None;
    for (key, at) in members(result) {
        match &*key {
            "resultType" => {}
            "ttlMs" => ttl = result.slice(at),
            "cacheScope" => said = Some(result.slice(at)),
            _ => {
                text.push(b',');
                text.extend_from_slice(Value::from(&*key).to_string().as_bytes());
                text.push(b':');
                text.extend_from_slice(&result[at]);
            }
        }
    }
    let public = scope == "public" && said.as_deref() == Some(br#""public""#);
    let scope = if public { "public" } else { "private" };
    text.extend_from_slice(br#","ttlMs":"#);
    text.extend_from_slice(&ttl);
    text.extend_from_slice(format!(r#","cacheScope":"{scope}"}}"#).as_bytes());
    text.into()
}
