//! A call that is sound is made: out of the cache, or within the limits by its source.

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use serde_json::json;
use toolcrib_catalogue::{Blame, CallError, Entry};
use toolcrib_wire::json::{Rare, member, members};

use super::{ask, failed, own, promised, unknown};
use crate::{
    built_in,
    dispatch::{Asked, rpc},
    gateway::Gateway,
    guard::{
        Ended, Standing, Story,
        cache::{CacheRule, Found, Key, Lead},
        limits::{Asks, Limited, Permit},
        repeats::{Ending, META_KEY, RepeatKey},
        results::{self, Shape},
    },
    keeping::Large,
    snapshot::Snapshot,
    words,
};

/// Where a result says how long to wait.
pub(crate) const RETRY_AFTER: &str = "toolcrib/retryAfter";

/// How much is said of a name that may be anything.
const MOST_NAME: usize = 200;

/// No refusal is larger.
const MOST_REFUSED: usize = 2048;

/// What is to be made.
pub(super) struct Making {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) name: String,
    pub(super) params: Bytes,
    /// What the call is called.
    pub(super) id: String,
    /// The key under which it is made once, and a name for what it does.
    pub(super) once: Option<(RepeatKey, Arc<str>)>,
}

/// How it went.
pub(super) struct Made {
    pub(super) ending: Ending,
    /// Whether anything may have been done: then that is how it ended, for good.
    pub(super) done: bool,
}

/// Makes a call.
pub(super) async fn make(
    gateway: &Arc<Gateway>,
    asked: &Asked<'_>,
    making: &Making,
    story: &mut Story,
) -> Made {
    let Making { snapshot, name, .. } = making;
    if snapshot.has_built_in(&asked.caller, name) {
        return make_own(gateway, asked, making, story).await;
    }
    let found = snapshot.tool(&asked.caller, name).zip(snapshot.standing(name));
    let Some((entry, standing)) = found else {
        return Made { ending: Err(unknown(name)), done: false };
    };
    let limit = snapshot.limit(&asked.caller, name).filter(|_| asked.depth == 0);
    let found = kept(gateway, asked, making, (entry, standing), limit).await;
    story.cache = found.as_ref().map(|(found, _)| found.word());
    let lead = match found {
        Some((Found::Hit(result, age), _)) => return had(result, age.as_secs(), story),
        Some((Found::Joined(result), _)) => return had(result, 0, story),
        Some((Found::Lead(lead), rule)) => Some((lead, rule)),
        Some((Found::Alone, _)) | None => None,
    };
    let permit = match admit(asked, making, Some(entry.listing), story) {
        Ok(permit) => permit,
        Err(result) => return Made { ending: Ok(own(result, asked.era)), done: false },
    };
    let once = making.once.as_ref().map(|(_, name)| Arc::clone(name));
    let params = making.params.clone();
    let retried = Arc::clone(&story.retried);
    let to = (&**snapshot, entry);
    let asking = ask(gateway, asked, to, params, limit.is_some(), once, retried);
    let (result, aside) = match asking.await {
        Ok((result, aside)) => (results::plain(result), aside),
        Err(error) => {
            if let Some((lead, _)) = lead {
                lead.fail();
            }
            return Made::failed(asked, name, error, story);
        }
    };
    drop(permit);
    let shape = Shape::of(&result);
    story.ended_with(shape.is_error);
    let result = match aside {
        None => promised(gateway.rules().results, name, standing, &shape, result),
        Some(_) => result,
    };
    let is_open = shape.is_open;
    let fits = aside.is_none() && limit.is_none_or(|it| result.len() <= it);
    if let Some((lead, rule)) = lead {
        settle(lead, rule, &result, fits && !is_open, gateway.rules().cache.size);
    }
    if fits || (aside.is_none() && is_open) {
        return Made { ending: Ok(result), done: !is_open };
    }
    let result = put_aside(gateway, asked, making, result, aside, limit).await;
    story.keeps(&result);
    Made { ending: Ok(result), done: true }
}

/// Makes a call of a tool that is part of the gateway.
async fn make_own(
    gateway: &Arc<Gateway>,
    asked: &Asked<'_>,
    making: &Making,
    story: &mut Story,
) -> Made {
    let Making { name, params, once, .. } = making;
    let mut settled = true;
    let result = if name == built_in::CALL_TOOLS {
        let permit = match admit_alone(&making.snapshot, name, story) {
            Ok(permit) => permit,
            Err(result) => return Made { ending: Ok(own(result, asked.era)), done: false },
        };
        let key = once.as_ref().map(|(key, _)| key);
        let result;
        (result, settled) = built_in::several::call(gateway, asked, params, key).await;
        drop(permit);
        result
    } else {
        let permit = match admit(asked, making, None, story) {
            Ok(permit) => permit,
            Err(result) => return Made { ending: Ok(own(result, asked.era)), done: false },
        };
        let once = once.as_ref().map(|(_, name)| &**name);
        let result = built_in::call(gateway, &asked.caller, name, params, once).await;
        drop(permit);
        result
    };
    story.answered(&result);
    let done = settled && story.ended == Ended::Well;
    let limit = making.snapshot.limit_of_several(&asked.caller, name);
    let result = match limit.filter(|it| asked.depth == 0 && *it < result.len()) {
        Some(_) => {
            let result = own(result, asked.era);
            let kept = put_aside(gateway, asked, making, result, None, limit).await;
            story.keeps(&kept);
            kept
        }
        None => own(result, asked.era),
    };
    Made { ending: Ok(result), done }
}

/// What is kept of a call, or the right to make it; nothing where results of the tool are not kept.
async fn kept(
    gateway: &Arc<Gateway>,
    asked: &Asked<'_>,
    making: &Making,
    (entry, standing): (&Entry, &Standing),
    limit: Option<usize>,
) -> Option<(Found, CacheRule)> {
    let rule = making.snapshot.caching(&making.name)?;
    // A server that each client has for itself may answer each otherwise.
    making.snapshot.slot(entry.listing)?.source().filter(|it| it.is_shared())?;
    let params = &making.params;
    // What answers a question of the server belongs to the call before.
    let plain = |key: &str| matches!(key, "name" | "arguments" | "_meta");
    if !members(params).iter().all(|(key, _)| plain(key)) {
        return None;
    }
    let arguments = member(params, "arguments").map_or(&b"{}"[..], |at| &params[at]);
    let arguments = if arguments == b"null" { b"{}" } else { arguments };
    let (shape, meta) = ((asked.era, limit), told_on(params));
    let (group, name) = (&asked.caller.group, &making.name);
    let key = Key::new(group, name, &standing.look.hash, arguments, &meta, shape)?;
    let found = match asked.depth {
        0 => gateway.cache.find(key).await,
        _ => gateway.cache.find_now(key),
    };
    Some((found, rule))
}

/// What a server hears besides the arguments, and may answer by: `_meta` without what differs from call to call.
fn told_on(params: &[u8]) -> Vec<u8> {
    const PASSING: [&str; 5] = ["progressToken", "traceparent", "tracestate", "baggage", META_KEY];
    let mut text = b"{".to_vec();
    let meta = member(params, "_meta").map(|at| &params[at]).unwrap_or_default();
    for (key, at) in members(meta).into_iter().filter(|(key, _)| !PASSING.contains(&&**key)) {
        text.extend_from_slice(if text.len() == 1 { b"" } else { b"," });
        text.extend_from_slice(serde_json::Value::from(&*key).to_string().as_bytes());
        text.push(b':');
        text.extend_from_slice(&meta[at]);
    }
    text.push(b'}');
    text
}

/// Tells those who wait for the same what there is.
fn settle(lead: Lead, rule: CacheRule, result: &Bytes, fits: bool, room: usize) {
    let failed = member(result, "isError").is_some_and(|at| &result[at] == b"true");
    if fits && !failed {
        lead.keep(result, rule, room);
    } else {
        lead.fail();
    }
}

/// A result that was there already.
fn had(result: Bytes, age: u64, story: &mut Story) -> Made {
    story.answered(&result);
    let how = story.cache.unwrap_or("hit");
    Made { ending: Ok(aged(result, how, age)), done: true }
}

/// A result that says how it was there and how old it is, in seconds, where it says nothing about itself otherwise.
fn aged(result: Bytes, how: &str, age: u64) -> Bytes {
    let end = result.iter().rposition(|it| *it == b'}').unwrap_or_default();
    if end == 0 || member(&result, "_meta").is_some() {
        return result;
    }
    let comma = if members(&result).is_empty() { "" } else { "," };
    let meta = format!(r#"{comma}"_meta":{{"toolcrib/cache":"{how}","toolcrib/age":{age}}}}}"#);
    [&result[..end], meta.as_bytes()].concat().into()
}

/// Counts a call that is not made, since it is refused for what it is or was made before: whoever sends nonsense uses up
/// what the group may send.
pub(super) fn count_refused(
    asked: &Asked<'_>,
    snapshot: &Snapshot,
    name: &str,
    story: &mut Story,
) -> Result<(), Bytes> {
    let group = (asked.depth == 0).then_some(&*asked.caller.group);
    let admitted = snapshot.limits.admit(Asks { group, tool: "", source: None });
    admitted.map(drop).map_err(|limited| limited_by(name, &limited, story))
}

/// Counts a call of a tool that makes others, which are counted for themselves: what is said of it alone.
pub(super) fn admit_alone(
    snapshot: &Snapshot,
    name: &str,
    story: &mut Story,
) -> Result<Permit, Bytes> {
    let admitted = snapshot.limits.admit(Asks { group: None, tool: name, source: None });
    admitted.map_err(|limited| limited_by(name, &limited, story))
}

fn limited_by(name: &str, limited: &Limited, story: &mut Story) -> Bytes {
    story.refused(limited.by.kind(), Ended::Limited, Blame::Caller);
    let shown: String = name.chars().take(MOST_NAME).collect();
    refusal(&shown, limited)
}

/// Lets a call in, or says in a result why not.
fn admit(
    asked: &Asked<'_>,
    making: &Making,
    source: Option<usize>,
    story: &mut Story,
) -> Result<Permit, Bytes> {
    let group = (asked.depth == 0).then_some(&*asked.caller.group);
    let asks = Asks { group, tool: &making.name, source };
    let admitted = making.snapshot.limits.admit(asks);
    admitted.map_err(|limited| limited_by(&making.name, &limited, story))
}

/// The result of a call that was not let in. It is a result and not a status, also over HTTP: of an
/// answer with 429 clients show their model nothing.
fn refusal(name: &str, limited: &Limited) -> Bytes {
    let seconds = limited.wait.as_millis().max(1) as f64 / 1000.0;
    later(&limited.told(name), seconds)
}

/// The result of a call for which there is no room now.
pub(super) fn busy(text: &str) -> Bytes {
    later(text, 1.0)
}

fn later(text: &str, seconds: f64) -> Bytes {
    let result = json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
        "_meta": {
            "toolcrib/blame": "caller",
            "toolcrib/code": words::RATE_LIMITED,
            RETRY_AFTER: seconds,
        },
    });
    result.to_string().into()
}

/// The seconds to wait that a result speaks of, where a call was not let in: rounded up, for a header.
pub(crate) fn wait(result: &[u8]) -> Option<u64> {
    static WAIT: LazyLock<Rare> = LazyLock::new(|| Rare::new(RETRY_AFTER));
    let result = Some(result).filter(|it| it.len() < MOST_REFUSED)?;
    let seconds: f64 = serde_json::from_slice(&result[WAIT.in_meta(result)?]).ok()?;
    (0.0..1e9).contains(&seconds).then_some(seconds.ceil() as u64)
}

/// Keeps what is too large for the caller, and says where.
async fn put_aside(
    gateway: &Arc<Gateway>,
    asked: &Asked<'_>,
    making: &Making,
    result: Bytes,
    aside: Option<toolcrib_catalogue::Json>,
    limit: Option<usize>,
) -> Bytes {
    let Some(limit) = limit else { return result };
    let (group, era) = (Arc::clone(&asked.caller.group), asked.era);
    let call = making.id.clone();
    let large = Large { tool: making.name.clone(), group, call, limit, era };
    let kept = gateway.keep(large, result, aside).await;
    kept.unwrap_or_else(|error| own(failed(&making.name, &error), era))
}

impl Made {
    fn failed(asked: &Asked<'_>, name: &str, error: CallError, story: &mut Story) -> Self {
        story.failed(&error);
        let done = error.may_have_run();
        let ending = match error {
            error @ CallError::Rpc { .. } => Err(rpc(error)),
            error => Ok(own(failed(name, &error), asked.era)),
        };
        Self { ending, done }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_says_how_old_it_is_and_is_the_same_otherwise() {
        let aged = |text: &'static str| {
            String::from_utf8(aged(Bytes::from_static(text.as_bytes()), "hit", 7).to_vec()).unwrap()
        };
        let meta = r#""_meta":{"toolcrib/cache":"hit","toolcrib/age":7}}"#;
        assert_eq!(aged(r#"{"content":[ {} ] }"#), format!(r#"{{"content":[ {{}} ] ,{meta}"#));
        assert_eq!(aged("{}"), format!("{{{meta}"));
        assert_eq!(aged(r#"{"_meta":{"a":1.0}}"#), r#"{"_meta":{"a":1.0}}"#);
    }
}
