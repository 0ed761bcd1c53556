//! The answer to one request, whatever door it came through.
//!
//! Errors are said in two ways. What only a person can mend, or a client has to know (an unknown tool,
//! an error of the upstream itself), is a JSON-RPC error. What a model can act on (the server is down,
//! it took too long) is a result with `isError`.

use std::{
    borrow::Cow,
    ops::Range,
    sync::{Arc, LazyLock},
    time::Duration,
};

use bytes::Bytes;
use serde_json::{Value, json};
use toolcrib_catalogue::{CallContext, CallError, ClientError, Json, Listener, Visitor};
use toolcrib_wire::{
    Era, Revision, RpcError,
    frame::{INTERNAL_ERROR, METHOD_NOT_FOUND, push_name},
    json::{Rare, member, string},
    modern::unfinished,
    revision::META_SERVER,
    spelt,
};

use crate::{
    access::Caller,
    calling,
    gateway::Gateway,
    going::Going,
    others::FromWithin,
    reading, rounds,
    slot::Slot,
    snapshot::{Lists, Snapshot},
    spans::Trace,
    visit::{Here, LEVELS, Visit, level_of},
    watching::{MAX_WATCHED, Watcher},
    words::{CANCELLED, INVALID_PARAMS, RESOURCE_NOT_FOUND},
};

/// How long a client may keep a list without asking again. It is told of changes if it listens.
const LIST_TTL_MS: u64 = 5_000;

pub(crate) static TRACE_PARENT: LazyLock<Rare> = LazyLock::new(|| Rare::new("traceparent"));
pub(crate) static TRACE_STATE: LazyLock<Rare> = LazyLock::new(|| Rare::new("tracestate"));

/// One request.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) caller: Caller,
    pub(crate) era: Era,
    pub(crate) method: &'a str,
    pub(crate) params: Option<Bytes>,
    /// Who hears how it goes on.
    pub(crate) listener: Option<Arc<dyn Listener>>,
    /// The client, if it is one that stays.
    pub(crate) visit: Option<Arc<Visit>>,
    /// How many tools have called each other up to here.
    pub(crate) depth: u32,
    /// How long it may take, where that is said.
    pub(crate) attempt: Option<Duration>,
    /// What is carried along for those who trace it.
    pub(crate) trace: Trace,
}

impl Asked<'_> {
    /// What goes along with the request.
    pub(crate) fn context(&self) -> CallContext {
        let visitor = self.visit.clone().map(|it| Arc::new(Here(it)) as Arc<dyn Visitor>);
        let (listener, attempt) = (self.listener.clone(), self.attempt);
        CallContext { listener, visitor, attempt, ..CallContext::default() }
    }
}

impl Asked<'_> {
    /// A call that may outlive whoever made it.
    pub(crate) fn owned(self) -> Asked<'static> {
        let Self { caller, era, params, listener, visit, depth, attempt, trace, .. } = self;
        Asked { method: "tools/call", caller, era, params, listener, visit, depth, attempt, trace }
    }

    /// The tools that the one that is called with these params may call.
    pub(crate) fn others(&self, gateway: &Arc<Gateway>, tool: &str, params: &[u8]) -> FromWithin {
        FromWithin {
            tool: tool.to_owned(),
            trace: trace(params),
            gateway: Arc::downgrade(gateway),
            caller: self.caller.clone(),
            listener: self.listener.clone(),
            visit: self.visit.clone(),
            depth: self.depth,
        }
    }
}

/// Answers a request: with a result, or with an error object.
pub(crate) async fn answer(gateway: &Arc<Gateway>, asked: Asked<'_>) -> Result<Bytes, RpcError> {
    match (asked.method, asked.era) {
        ("ping", Era::Legacy) => Ok(Bytes::from_static(b"{}")),
        ("server/discover", Era::Modern) => Ok(discover(gateway)),
        ("tools/list", _) => list(gateway, &asked, |it| &it.tools).await,
        ("prompts/list", _) => list(gateway, &asked, |it| &it.prompts).await,
        ("resources/list", _) => list(gateway, &asked, |it| &it.resources).await,
        ("resources/templates/list", _) => list(gateway, &asked, |it| &it.templates).await,
        ("tools/call", _) => calling::call(gateway, asked).await,
        ("prompts/get" | "resources/read", _) => reading::read(gateway, asked).await,
        ("completion/complete", _) => complete_argument(gateway, asked).await,
        ("logging/setLevel", Era::Legacy) => set_level(gateway, asked).await,
        ("resources/subscribe", Era::Legacy) => subscribe(gateway, asked).await,
        ("resources/unsubscribe", Era::Legacy) => unsubscribe(gateway, asked).await,
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

pub(crate) fn invalid(message: impl Into<String>) -> RpcError {
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
        "capabilities": capabilities(),
        "serverInfo": { "name": settings.name, "version": settings.version },
    });
    if let Some(instructions) = &*gateway.instructions() {
        result["instructions"] = json!(instructions);
    }
    Ok((result.to_string().into(), revision))
}

/// What we offer: whatever some server offers may come along later.
fn capabilities() -> Value {
    let changes = json!({ "listChanged": true });
    let resources = json!({ "subscribe": true, "listChanged": true });
    json!({
        "tools": changes, "prompts": changes, "resources": resources,
        "completions": {}, "logging": {},
    })
}

fn discover(gateway: &Gateway) -> Bytes {
    let mut result = json!({
        "resultType": "complete",
        "supportedVersions": [Revision::V2026_07_28.as_str()],
        "capabilities": capabilities(),
        "ttlMs": LIST_TTL_MS,
        "cacheScope": scope(gateway),
        "_meta": meta(gateway),
    });
    if let Some(instructions) = &*gateway.instructions() {
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
pub(crate) fn scope(gateway: &Gateway) -> &'static str {
    if gateway.access().has_tokens() { "private" } else { "public" }
}

async fn list(
    gateway: &Gateway,
    asked: &Asked<'_>,
    which: impl Fn(&Lists) -> &Bytes,
) -> Result<Bytes, RpcError> {
    let params = asked.params.as_deref().unwrap_or(b"{}");
    if member(params, "cursor").is_some_and(|it| &params[it] != b"null") {
        return Err(invalid("Invalid cursor: the list has one page"));
    }
    gateway.first_lists().await;
    let lists = gateway.snapshot().lists(&asked.caller);
    let list = which(&lists);
    let mut text = Vec::with_capacity(list.len() + 256);
    text.push(b'{');
    if asked.era == Era::Legacy {
        text.extend_from_slice(list);
        text.push(b'}');
        return Ok(text.into());
    }
    text.extend_from_slice(br#""resultType":"complete","#);
    text.extend_from_slice(list);
    // While servers come up, what is listed now is not what will be listed in a moment.
    let ttl = if gateway.is_settled() { LIST_TTL_MS } else { 0 };
    let rest = json!({
        "ttlMs": ttl, "cacheScope": scope(gateway), "_meta": meta(gateway),
    });
    text.push(b',');
    text.extend_from_slice(&rest.to_string().as_bytes()[1..]);
    Ok(text.into())
}

/// A client says how much it wants to hear of what servers log.
async fn set_level(gateway: &Gateway, asked: Asked<'_>) -> Result<Bytes, RpcError> {
    let params = asked.params.as_deref().unwrap_or(b"{}");
    let level = member(params, "level").and_then(|at| level_of(&params[at]));
    let level = level.ok_or_else(|| invalid(format!("`level` must be one of {LEVELS:?}")))?;
    if let Some(visit) = &asked.visit {
        gateway.set_level(visit, level).await;
    }
    Ok(Bytes::from_static(b"{}"))
}

/// A client watches a resource from now on.
async fn subscribe(gateway: &Gateway, asked: Asked<'_>) -> Result<Bytes, RpcError> {
    let (slot, uri) = watchable(gateway, &asked)?;
    let Some(visit) = asked.visit.clone() else { return Err(unknown_method(asked.method)) };
    if MAX_WATCHED <= visit.watched.lock().len() {
        return Err(invalid(format!("more than {MAX_WATCHED} resources cannot be watched")));
    }
    let here = Here(Arc::clone(&visit));
    let (key, out, caller) = (here.key(), visit.own().clone(), asked.caller);
    let watcher = Watcher { key, caller, out, subscription: None };
    gateway.watch(&slot, &uri, watcher, Some(Arc::new(here))).await.map_err(rpc)?;
    visit.watched.lock().insert((slot.key, uri));
    Ok(Bytes::from_static(b"{}"))
}

/// A client watches a resource no longer.
async fn unsubscribe(gateway: &Gateway, asked: Asked<'_>) -> Result<Bytes, RpcError> {
    let (slot, uri) = watchable(gateway, &asked)?;
    let Some(visit) = asked.visit else { return Err(unknown_method(asked.method)) };
    let here = Here(Arc::clone(&visit));
    visit.watched.lock().remove(&(slot.key, uri.clone()));
    gateway.unwatch(slot.key, &uri, here.key(), Some(Arc::new(here))).await.map_err(rpc)?;
    Ok(Bytes::from_static(b"{}"))
}

/// The resource that a legacy client names, and whose it is.
fn watchable(gateway: &Gateway, asked: &Asked<'_>) -> Result<(Arc<Slot>, String), RpcError> {
    let params = asked.params.clone().unwrap_or_else(|| Bytes::from_static(b"{}"));
    let (uri, _) = string_in(&params, "uri")?;
    let snapshot = gateway.snapshot();
    let source = snapshot.resource(&asked.caller, &uri);
    match source.and_then(|it| snapshot.slot(it)) {
        Some(slot) => Ok((Arc::clone(slot), uri)),
        None => Err(not_found(asked.era, &uri)),
    }
}

pub(crate) fn not_found(era: Era, uri: &str) -> RpcError {
    RpcError {
        code: if era == Era::Modern { INVALID_PARAMS } else { RESOURCE_NOT_FOUND },
        message: "Resource not found".to_owned(),
        data: Some(json!({ "uri": uri }).to_string().into()),
    }
}

/// An error of a source as a client hears it, where there is no result to say it in.
pub(crate) fn rpc(error: CallError) -> RpcError {
    match error {
        CallError::Rpc { code, message, data } => {
            RpcError { code, message, data: data.map(Json::into_bytes) }
        }
        error => RpcError { code: INTERNAL_ERROR, message: error.to_string(), data: None },
    }
}

async fn complete_argument(gateway: &Gateway, asked: Asked<'_>) -> Result<Bytes, RpcError> {
    let params = asked.params.clone().unwrap_or_else(|| Bytes::from_static(b"{}"));
    exact(&params)?;
    let reference = member(&params, "ref").ok_or_else(|| invalid("`ref` is required"))?;
    let inside = params.slice(reference.clone());
    let (kind, _) = string_in(&inside, "type")?;
    let snapshot = gateway.snapshot();
    if kind == "ref/resource" {
        let (uri, _) = string_in(&inside, "uri")?;
        let source = snapshot.resource(&asked.caller, &uri);
        let source =
            source.ok_or_else(|| invalid(format!("Unknown resource: {}", uri.escape_debug())))?;
        return hand_on((gateway, &snapshot), source, asked, params).await;
    }
    let (name, at) = string_in(&inside, "name")?;
    let entry = snapshot.prompt(&asked.caller, &name);
    let entry = entry.ok_or_else(|| invalid(format!("Unknown prompt: {}", name.escape_debug())))?;
    let at = at.start + reference.start..at.end + reference.start;
    let params = replaced(&params, &at, &entry.tool.name);
    hand_on((gateway, &snapshot), entry.listing, asked, params).await
}

/// Hands a request that only reads to a source, and its answer back.
async fn hand_on(
    within: (&Gateway, &Snapshot),
    source: usize,
    asked: Asked<'_>,
    params: Bytes,
) -> Result<Bytes, RpcError> {
    hand_on_to(within, source, asked, params).await.map_err(rpc)
}

/// The same, with the source's own error.
pub(crate) async fn hand_on_to(
    (gateway, snapshot): (&Gateway, &Snapshot),
    at: usize,
    asked: Asked<'_>,
    params: Bytes,
) -> Result<Bytes, CallError> {
    let gone = || CallError::Client(ClientError::Refused("its source is gone".to_owned()));
    let slot = snapshot.slot(at).ok_or_else(gone)?;
    slot.note(asked.visit.as_ref());
    let source = slot.source().ok_or_else(gone)?;
    let context = CallContext { repeatable: true, ..asked.context() };
    let (going, params) = Going::begin((gateway, snapshot), &asked, at, None, params);
    let params = Json::from_scanned(params);
    let result = rounds::request(source, asked.method, params, context, asked.era).await;
    going.ended(&result);
    result.and_then(|it| usable(it, asked.era))
}

/// A result as a client of this era can use it.
pub(crate) fn usable(result: Json, era: Era) -> Result<Bytes, CallError> {
    let cause = if !result.is_object() {
        "the server's answer is not an object".to_owned()
    } else if era == Era::Modern {
        return Ok(complete(result.into_bytes()));
    } else if let Some(kind) = unfinished(result.as_bytes()) {
        // A modern server asks by its result, which only a modern client can answer.
        let kind = kind.escape_debug();
        format!("the server answered `{kind}`, which a client of this revision cannot act on")
    } else {
        return Ok(result.into_bytes());
    };
    Err(CallError::Malformed { cause })
}

/// `params` with another string in this place.
pub(crate) fn replaced(params: &Bytes, at: &Range<usize>, text: &str) -> Bytes {
    let mut whole = Vec::with_capacity(params.len() + text.len() + 2);
    whole.extend_from_slice(&params[..at.start]);
    push_name(&mut whole, text);
    whole.extend_from_slice(&params[at.end..]);
    whole.into()
}

/// The trace that a request belongs to: `traceparent` and `tracestate`, as its `_meta` has them.
pub(crate) fn trace(params: &[u8]) -> Vec<(&'static str, String)> {
    let text = |key: &Rare| key.in_meta(params).and_then(|at| string(&params[at]));
    let keys = [("traceparent", &*TRACE_PARENT), ("tracestate", &*TRACE_STATE)];
    keys.into_iter().filter_map(|(key, rare)| Some((key, text(rare)?.into_owned()))).collect()
}

/// Where `name`, `arguments` and other params stand. Refuses those of which a server that reads keys carelessly would
/// understand something else.
pub(crate) fn exact(params: &[u8]) -> Result<[Option<Range<usize>>; 6], RpcError> {
    let found = spelt(params, ["name", "arguments", "_meta", "uri", "ref", "argument"]);
    found.map_err(|key| invalid(format!("`{}` is no key here: write it small", key.escape_debug())))
}

/// A string among the params, and where it stands.
pub(crate) fn string_in(params: &Bytes, key: &str) -> Result<(String, Range<usize>), RpcError> {
    exact(params)?;
    let at = member(params, key).ok_or_else(|| invalid(format!("`{key}` is required")))?;
    let text = string(&params[at.clone()]).map(Cow::into_owned);
    Ok((text.ok_or_else(|| invalid(format!("`{key}` must be a string")))?, at))
}

/// A result as the modern era wants it: one that says of what kind it is.
pub(crate) fn complete(result: Bytes) -> Bytes {
    if member(&result, "resultType").is_some() || result.first() != Some(&b'{') {
        return result;
    }
    let rest = result[1..].trim_ascii_start();
    let comma: &[u8] = if rest == b"}" { b"" } else { b"," };
    [br#"{"resultType":"complete""#, comma, rest].concat().into()
}
