//! Whether the arguments of a call fit, before anything runs.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use serde_json::{Value, json};
use toolcrib_catalogue::{Checked, Faults, Json, Look};
use toolcrib_wire::json::members;

/// Larger arguments are checked elsewhere, so that nobody waits for it who did not send them.
const SMALL: usize = 64 * 1024;

/// Holds the arguments, which stand there in `params`, against the tool's schema. What comes back are the params to send: the same,
/// or with what was harmlessly wrong put right, where the group wants that.
pub(crate) async fn checked(
    look: &Arc<Look>,
    params: Bytes,
    at: Option<Range<usize>>,
    repairs: bool,
) -> Result<Bytes, Faults> {
    if params.len() <= SMALL {
        return check(look, params, at, repairs);
    }
    let look = Arc::clone(look);
    let kept = params.clone();
    let checked = tokio::task::spawn_blocking(move || check(&look, params, at, repairs)).await;
    // A check cannot panic; if it did, the tool's own checks would be the next to look.
    checked.unwrap_or(Ok(kept))
}

fn check(
    look: &Look,
    params: Bytes,
    at: Option<Range<usize>>,
    repairs: bool,
) -> Result<Bytes, Faults> {
    let Checked::Strict(validator) = &look.input else { return Ok(params) };
    let at = at.filter(|at| params[at.clone()].first() == Some(&b'{'));
    let arguments = match &at {
        Some(at) => Json::from_scanned(params.slice(at.clone())),
        None => Json::empty_object(),
    };
    let faults = match validator.check(&arguments) {
        Ok(()) => return Ok(params),
        Err(faults) => faults,
    };
    // Many clients say `null` where they mean nothing, and the official tests take that for right.
    if let Some(rest) = without_nulls(&arguments)
        && validator.check(&rest).is_ok()
    {
        return Ok(params);
    }
    let repaired = repairs.then(|| validator.repair(&arguments)).flatten();
    let (Some((repaired, said)), Some(at)) = (repaired, at) else { return Err(faults) };
    tracing::debug!(repairs = said.join("; "), "arguments were repaired");
    Ok([&params[..at.start], repaired.as_bytes(), &params[at.end..]].concat().into())
}

/// The arguments without those that are `null`, if there are any.
fn without_nulls(arguments: &Json) -> Option<Json> {
    let text = arguments.as_bytes();
    let all = members(text);
    let given = |at: &Range<usize>| &text[at.clone()] != b"null";
    if all.iter().all(|(_, at)| given(at)) {
        return None;
    }
    let mut rest = b"{".to_vec();
    for (key, at) in all.into_iter().filter(|(_, at)| given(at)) {
        if rest.len() > 1 {
            rest.push(b',');
        }
        rest.extend_from_slice(Value::from(&*key).to_string().as_bytes());
        rest.push(b':');
        rest.extend_from_slice(&text[at]);
    }
    rest.push(b'}');
    Some(Json::from_scanned(rest.into()))
}

/// The result of a call whose arguments do not fit: every fault, so that the next call can be right.
pub(crate) fn refusal(tool: &str, faults: &Faults) -> Bytes {
    let list = faults.list().iter().map(|it| {
        let mut fault = json!({
            "path": it.path,
            "keyword": it.keyword,
            "expected": it.expected,
            "found": it.found,
        });
        if let Some(nearest) = &it.nearest {
            fault["nearest"] = json!(nearest);
        }
        fault
    });
    let list: Vec<_> = list.collect();
    let text = format!("{faults}. Nothing was done; call `{tool}` again with arguments that fit.");
    let result = json!({
        "content": [{ "type": "text", "text": text }],
        "isError": true,
        "_meta": { "toolcrib/blame": "caller", "toolcrib/faults": list },
    });
    result.to_string().into()
}
