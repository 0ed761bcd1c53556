//! The answer to one request, whatever door it came through.
//!
//! Errors are said in two ways. What only a person can mend, or a client has to know (an unknown tool,
//! an error of the upstream itself), is a JSON-RPC error. What a model can act on (the server is down,
//! it took too long) is a result with `isError`.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use toolcrib_catalogue::{Blame, CallContext, CallError, Json, Listener};
use toolcrib_wire::{
    Era, Revision, RpcError, frame::METHOD_NOT_FOUND, json, json::member, revision::META_SERVER,
};

use crate::{access::Caller, gateway::Gateway};

/// The params are not what the method takes.
pub(crate) const INVALID_PARAMS: i64 = -32602;

/// The caller took the request back.
const CANCELLED: i64 = -32800;

/// How long a client may keep a list without asking again. It is told of changes if it listens.
const LIST_TTL_MS: u64 = 5_000;

/// One request.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) caller: Caller,
    pub(crate) era: Era,
    pub(crate) method: &'a str,
    pub(crate) params: Option<Bytes>,
    /// Who hears of progress.
    pub(crate) listener: Option<Arc<dyn Listener>>,
}

/// Answers a request: with a result, or with an error object.
pub(crate) async fn answer(gateway: &Gateway, asked: Asked<'_>) -> Result<Bytes, RpcError> {
    match (asked.method, asked.era) {
        ("ping", Era::Legacy) => Ok(Bytes::from_static(b"{}")),
        ("server/discover", Era::Modern) => Ok(discover(gateway)),
        ("tools/list", era) => list(gateway, &asked, era),
        ("tools/call", _) => call(gateway, asked).await,
        (method, _) => Err(unknown_method(method)),
    }
}

pub(crate) fn unknown_method(method: &str) -> RpcError {
    let message = format!("Method not found: {}", method.escape_debug());
    RpcError { code: METHOD_NOT_FOUND, message, data: None }
}

pub(crate) fn cancelled() -> RpcError {
    RpcError { code: CANCELLED, message: "Request cancelled".to_owned(), data: None }
}

fn invalid(message: impl Into<String>) -> RpcError {
    RpcError { code: INVALID_PARAMS, message: message.into(), data: None }
}

/// The result of `initialize`, and the revision it settles on.
pub(crate) fn initialize(
    gateway: &Gateway,
    params: Option<&Bytes>,
) -> Result<(Bytes, Revision), RpcError> {
    let params: Value = params
        .and_then(|it| serde_json::from_slice(it).ok())
        .ok_or_else(|| invalid("`initialize` needs params"))?;
    let wanted = params["protocolVersion"].as_str();
    let wanted = wanted.ok_or_else(|| invalid("`protocolVersion` must be a string"))?;
    let known = Revision::parse(wanted).filter(|it| it.era() == Era::Legacy);
    let revision = known.unwrap_or(Revision::LAST_LEGACY);
    let settings = gateway.settings();
    let mut result = json!({
        "protocolVersion": revision.as_str(),
        "capabilities": { "tools": { "listChanged": true } },
        "serverInfo": { "name": settings.name, "version": settings.version },
    });
    if let Some(instructions) = &settings.instructions {
        result["instructions"] = json!(instructions);
    }
    Ok((result.to_string().into(), revision))
}

fn discover(gateway: &Gateway) -> Bytes {
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [Revision::V2026_07_28.as_str()],
        "capabilities": { "tools": { "listChanged": true } },
        "ttlMs": LIST_TTL_MS,
        "cacheScope": scope(gateway),
        "_meta": meta(gateway),
    });
    if let Some(instructions) = &gateway.settings().instructions {
        result["instructions"] = json!(instructions);
    }
    result.to_string().into()
}

/// Who answers, in the modern era.
fn meta(gateway: &Gateway) -> Value {
    let settings = gateway.settings();
    json!({ META_SERVER: { "name": settings.name, "version": settings.version } })
}

/// Whether an answer is the same for everybody.
fn scope(gateway: &Gateway) -> &'static str {
    if gateway.access().has_tokens() { "private" } else { "public" }
}

fn list(gateway: &Gateway, asked: &Asked<'_>, era: Era) -> Result<Bytes, RpcError> {
    let params = asked.params.as_deref().unwrap_or(b"{}");
    if member(params, "cursor").is_some_and(|it| &params[it] != b"null") {
        return Err(invalid("Invalid cursor: the list has one page"));
    }
    let snapshot = gateway.snapshot();
    let tools = snapshot.view(asked.caller.group).map(|it| it.tools.clone()).unwrap_or_default();
    let mut text = Vec::with_capacity(tools.len() + 256);
    text.push(b'{');
    if era == Era::Modern {
        text.extend_from_slice(br#""resultType":"complete","#);
    }
    text.extend_from_slice(if tools.is_empty() { br#""tools":[]"# } else { &tools });
    if era == Era::Modern {
        let rest = json!({
            "ttlMs": LIST_TTL_MS, "cacheScope": scope(gateway), "_meta": meta(gateway),
        });
        text.push(b',');
        text.extend_from_slice(&rest.to_string().as_bytes()[1..]);
    } else {
        text.push(b'}');
    }
    Ok(text.into())
}

async fn call(gateway: &Gateway, asked: Asked<'_>) -> Result<Bytes, RpcError> {
    let params = asked.params.unwrap_or_else(|| Bytes::from_static(b"{}"));
    let (name, at) = name_in(&params)?;
    if let Some(arguments) = member(&params, "arguments")
        && !matches!(params[arguments].first(), Some(b'{' | b'n'))
    {
        return Err(invalid("`arguments` must be an object"));
    }
    let snapshot = gateway.snapshot();
    let entry = snapshot.find(asked.caller.group, &name);
    let entry = entry.ok_or_else(|| invalid(format!("Unknown tool: {}", name.escape_debug())))?;
    let source = gateway.source(entry.listing);
    let source = source.ok_or_else(|| invalid(format!("Unknown tool: {}", name.escape_debug())))?;
    let own_name = Value::from(entry.tool.name.as_str()).to_string();
    let params = [&params[..at.start], own_name.as_bytes(), &params[at.end..]].concat();
    let context = CallContext { listener: asked.listener, ..CallContext::default() };
    let result = source.request("tools/call", Json::from_scanned(params.into()), context).await;
    let result = match result {
        Ok(result) => result.into_bytes(),
        Err(CallError::Rpc { code, message, data }) => {
            return Err(RpcError { code, message, data: data.map(Json::into_bytes) });
        }
        Err(error) => failed(&name, &error),
    };
    Ok(if asked.era == Era::Modern { complete(result) } else { result })
}

/// The `name` in the params of a call, and where it stands.
fn name_in(params: &Bytes) -> Result<(String, std::ops::Range<usize>), RpcError> {
    let found = json::members(params).into_iter().find(|(key, _)| key == "name");
    let (_, at) = found.ok_or_else(|| invalid("`name` is required"))?;
    let name = serde_json::from_slice(&params[at.clone()]).ok();
    Ok((name.ok_or_else(|| invalid("`name` must be a string"))?, at))
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

/// A result as the modern era wants it: one that says of what kind it is.
fn complete(result: Bytes) -> Bytes {
    if member(&result, "resultType").is_some() || result.first() != Some(&b'{') {
        return result;
    }
    let rest = result[1..].trim_ascii_start();
    let comma: &[u8] = if rest == b"}" { b"" } else { b"," };
    [br#"{"resultType":"complete""#, comma, rest].concat().into()
}
