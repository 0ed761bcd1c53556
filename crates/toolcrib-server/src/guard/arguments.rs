//! Whether the arguments of a call fit, before anything runs.

use std::{ops::Range, sync::Arc};

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::task::JoinError;
use toolcrib_catalogue::{Checked, Faults, Json, Look, Validator};
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
    finished(tokio::task::spawn_blocking(move || check(&look, params, at, repairs)).await)
}

/// What a check elsewhere found. One that did not come to its end, which none should do, lets nothing through.
fn finished(checked: Result<Result<Bytes, Faults>, JoinError>) -> Result<Bytes, Faults> {
    checked.unwrap_or_else(|ended| {
        tracing::error!("a check of arguments did not come to its end: {ended}");
        Err(Faults::unknown())
    })
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
    if let Some(rest) = without_nulls(&arguments, validator)
        && validator.check(&rest).is_ok()
    {
        return Ok(params);
    }
    let repaired = repairs.then(|| validator.repair(&arguments)).flatten();
    let (Some((repaired, said)), Some(at)) = (repaired, at) else { return Err(faults) };
    tracing::debug!(repairs = said.join("; "), "arguments were repaired");
    Ok([&params[..at.start], repaired.as_bytes(), &params[at.end..]].concat().into())
}

/// The arguments without those that are `null`, if there are any. What the schema does not name stays: it would reach the
/// tool, which nobody has said may have it. What is required stays out, and is missed then.
fn without_nulls(arguments: &Json, validator: &Validator) -> Option<Json> {
    let text = arguments.as_bytes();
    let all = members(text);
    let given =
        |key: &str, at: &Range<usize>| &text[at.clone()] != b"null" || !validator.declares(key);
    if all.iter().all(|(key, at)| given(key, at)) {
        return None;
    }
    let mut rest = b"{".to_vec();
    for (key, at) in all.into_iter().filter(|(key, at)| given(key, at)) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r##"{"type":"object","properties":{"query":{"type":"string"}},"required":["query"],
        "allOf":[{"$ref":"#/$defs/page"}],"unevaluatedProperties":false,
        "$defs":{"page":{"properties":{"limit":{"type":"integer"}}}}}"##;

    fn checked_by(schema: &str, arguments: &str) -> Result<Bytes, Faults> {
        let raw = format!(r#"{{"name":"find","inputSchema":{schema}}}"#);
        let tool = toolcrib_catalogue::Tool::read(Json::parse(raw).unwrap()).unwrap();
        let look = Look::at(&Arc::new(tool), toolcrib_catalogue::OnFault::Refuse);
        assert!(matches!(look.input, Checked::Strict(_)), "{:?}", look.input);
        let params = Bytes::from(arguments.to_owned());
        let all = 0..params.len();
        check(&look, params, Some(all), false)
    }

    #[test]
    fn nothing_may_be_said_of_what_is_named_and_need_not_be_there() {
        for fits in [r#"{"query":"a","limit":null}"#, r#"{"limit":null,"query":"a"}"#] {
            assert_eq!(checked_by(SCHEMA, fits).unwrap(), fits);
        }
        for misfit in [
            r#"{"query":"a","evil":null}"#,
            r#"{"query":"a","limit":null,"evil":null}"#,
            r#"{"query":null}"#,
            r#"{"query":"a","Limit":null}"#,
        ] {
            assert!(checked_by(SCHEMA, misfit).is_err(), "{misfit}");
        }
    }

    #[tokio::test]
    async fn a_check_that_falls_lets_nothing_through() {
        let fell = tokio::task::spawn_blocking(|| panic!("on purpose")).await;
        let faults = finished(fell).unwrap_err();
        let said = "The arguments do not fit: the check itself failed, and nothing is let through unchecked";
        assert_eq!((faults.to_string(), faults.discreet()), (said.to_owned(), said.to_owned()));
        assert_eq!(faults.list()[0].keyword, "check");
    }
}
