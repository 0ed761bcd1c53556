//! The tool that makes several calls in one request. Each of them is a call like any other: it is checked,
//! counted, recorded and answered for itself, and one that fails does not stop the others.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use toolcrib_catalogue::BoxFuture;
use toolcrib_wire::{Era, RpcError, json::member};

use super::{CALL_TOOL, CALL_TOOLS, read, refusal, result};
use crate::{
    calling,
    dispatch::Asked,
    gateway::Gateway,
    guard::repeats::{META_KEY, RepeatKey},
    others::Quiet,
};

pub(super) const CALL: &str = r#"{"name":"call_tools","title":"Call several tools","description":"Make several calls in one request. Answers all outcomes in the order of the calls; one that fails does not stop the others.","inputSchema":{"type":"object","properties":{"calls":{"type":"array","minItems":1,"maxItems":50,"items":{"type":"object","properties":{"name":{"type":"string","description":"The tool"},"arguments":{"type":"object","description":"What the tool takes"}},"required":["name"],"additionalProperties":false},"description":"The calls"},"parallel":{"type":"integer","minimum":1,"maximum":16,"default":1,"description":"How many run at a time; with 1 each begins when the one before has ended"}},"required":["calls"],"additionalProperties":false},"outputSchema":{"type":"object","properties":{"outcomes":{"type":"array","items":{"type":"object","properties":{"name":{"type":"string"},"result":{"type":"object","description":"What the tool answered; isError says whether it failed"},"error":{"type":"object","description":"Why there is no answer"}},"required":["name"]}}},"required":["outcomes"]},"annotations":{"readOnlyHint":false,"openWorldHint":true}}"#;

/// More calls than this do not go in one request: it is in the schema too.
const MOST_CALLS: usize = 50;

/// More do not run at a time.
const MOST_AT_A_TIME: usize = 16;

/// How much of a name or of an error is said again.
const MOST_SAID: usize = 200;

/// More than this is not answered at once, all counted. Where `inline_up_to` is set it is much less.
const MOST_ANSWERED: usize = 16 << 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Several {
    calls: Vec<One>,
    parallel: Option<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct One {
    name: String,
    arguments: Option<Box<RawValue>>,
}

/// Makes all calls, and says what came of each; and whether that is how they ended for good. Some that were refused
/// may be made when the whole is sent again.
pub(crate) async fn call(
    gateway: &Arc<Gateway>,
    asked: &Asked<'_>,
    params: &Bytes,
    key: Option<&RepeatKey>,
) -> (Bytes, bool) {
    let (result, count) = match make(gateway, asked, params, key).await {
        Ok(made) => made,
        Err(refusal) => return (refusal, false),
    };
    let has_ended =
        |key: &RepeatKey, number| gateway.repeats.has_ended(&asked.caller, &key.inner(number));
    let settled = key.is_none_or(|key| (0..count).all(|number| has_ended(key, number)));
    (result, settled)
}

/// Makes all calls; says what came of each, and how many there were.
async fn make(
    gateway: &Arc<Gateway>,
    asked: &Asked<'_>,
    params: &Bytes,
    key: Option<&RepeatKey>,
) -> Result<(Bytes, usize), Bytes> {
    let arguments = member(params, "arguments").map_or(&b"{}"[..], |at| &params[at]);
    let Several { calls, parallel } = match read(arguments) {
        Ok(several) => several,
        Err(cause) => return Err(refusal(&cause)),
    };
    let parallel = parallel.unwrap_or(1);
    if calls.is_empty() || MOST_CALLS < calls.len() {
        return Err(refusal(&format!("`calls` must be 1 to {MOST_CALLS} calls")));
    }
    if !(1..=MOST_AT_A_TIME).contains(&parallel) {
        return Err(refusal(&format!("`parallel` must be between 1 and {MOST_AT_A_TIME}")));
    }
    if calls.iter().any(One::is_nested) {
        return Err(refusal("`call_tools` does not call itself; nothing was called"));
    }
    let made = calls.iter().enumerate().map(|(number, one)| {
        let key = key.map(|it| it.inner(number));
        one.call(gateway, asked, key.as_ref())
    });
    let made: Vec<_> = made.collect();
    let mut outcomes = stream::iter(made).buffered(parallel).enumerate();
    let mut text = r#"{"outcomes":["#.to_owned();
    let mut room = MOST_ANSWERED;
    while let Some((number, ending)) = outcomes.next().await {
        let outcome = calls[number].outcome(&ending, room);
        room = room.saturating_sub(cost(&outcome));
        text.push_str(if number == 0 { "" } else { "," });
        text.push_str(&outcome);
    }
    text.push_str("]}");
    Ok((result(&text, Some(&text)), calls.len()))
}

/// What a piece takes of an answer that says everything twice: as it is, and as a text, with escapes.
fn cost(text: &str) -> usize {
    let escaped = |it: u8| match it {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 2,
        0..b' ' => 6,
        _ => 1,
    };
    text.len() + text.bytes().map(escaped).sum::<usize>() + 2
}

/// The beginning of a text that may be anything.
fn short(text: &str) -> String {
    text.chars().take(MOST_SAID).collect()
}

impl One {
    /// Whether it would make several calls itself.
    fn is_nested(&self) -> bool {
        let inner = || {
            let arguments = self.arguments.as_ref()?.get().as_bytes();
            let name = &arguments[member(arguments, "name")?];
            serde_json::from_slice::<String>(name).ok()
        };
        self.name == CALL_TOOLS
            || (self.name == CALL_TOOL && inner().as_deref() == Some(CALL_TOOLS))
    }

    fn call(
        &self,
        gateway: &Arc<Gateway>,
        asked: &Asked<'_>,
        key: Option<&RepeatKey>,
    ) -> BoxFuture<'static, Result<Bytes, RpcError>> {
        let name = Value::from(self.name.as_str());
        let arguments = self.arguments.as_ref().map_or("{}", |it| it.get());
        let meta = key.map(|it| format!(r#","_meta":{}"#, json!({ META_KEY: it.as_str() })));
        let meta = meta.unwrap_or_default();
        let params = format!(r#"{{"name":{name},"arguments":{arguments}{meta}}}"#);
        let asked = Asked {
            caller: asked.caller.clone(),
            // A result is then complete: who asks by it is asked by us.
            era: Era::Legacy,
            method: "tools/call",
            params: Some(params.into()),
            listener: asked.listener.clone().map(Quiet::before),
            visit: asked.visit.clone(),
            depth: asked.depth,
            attempt: asked.attempt,
            trace: asked.trace.inner(),
        };
        let gateway = Arc::clone(gateway);
        Box::pin(async move { calling::call(&gateway, asked).await })
    }

    /// What came of it, unless that is more than there is room for.
    fn outcome(&self, ending: &Result<Bytes, RpcError>, room: usize) -> String {
        let name = Value::from(short(&self.name));
        match ending {
            Ok(result) => match std::str::from_utf8(result) {
                Ok(result) if result.len() <= room && cost(result) <= room => {
                    format!(r#"{{"name":{name},"result":{result}}}"#)
                }
                _ => {
                    let size = result.len();
                    let text = format!(
                        "The call was made. Its result has {size} bytes, which is too much beside \
                         the others; call the tool alone to see it."
                    );
                    let text = refusal(&text);
                    format!(r#"{{"name":{name},"result":{}}}"#, String::from_utf8_lossy(&text))
                }
            },
            Err(RpcError { code, message, data }) => {
                let fits = message.len() <= room && cost(message) <= room;
                let message = Value::from(if fits { message.clone() } else { short(message) });
                let data = data.as_deref().map(String::from_utf8_lossy);
                let data = data.filter(|it| fits && it.len() <= room && cost(it) <= room);
                let data = data.map(|it| format!(r#","data":{it}"#)).unwrap_or_default();
                format!(r#"{{"name":{name},"error":{{"code":{code},"message":{message}{data}}}}}"#)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, arguments: &str) -> One {
        let arguments = RawValue::from_string(arguments.to_owned()).ok();
        One { name: name.to_owned(), arguments }
    }

    #[test]
    fn calls_are_not_nested() {
        assert!(one("call_tools", "{}").is_nested());
        assert!(one("call_tool", r#"{"name":"call\u005ftools"}"#).is_nested());
        assert!(!one("call_tool", r#"{"name":"x"}"#).is_nested());
        assert!(!one("x", r#"{"name":"call_tools"}"#).is_nested());
    }

    #[test]
    fn an_outcome_is_a_result_or_an_error() {
        let one = one("a\"b", "{}");
        let result = Ok(Bytes::from_static(br#"{"n":1.10}"#));
        assert_eq!(one.outcome(&result, 100), r#"{"name":"a\"b","result":{"n":1.10}}"#);
        assert!(one.outcome(&result, 5).contains("has 10 bytes"));
        let data = Some(Bytes::from_static(b"[1]"));
        let error = Err(RpcError { code: -1, message: "no".to_owned(), data });
        let expected = r#"{"name":"a\"b","error":{"code":-1,"message":"no","data":[1]}}"#;
        assert_eq!(one.outcome(&error, 100), expected);
        let long = Err(RpcError { code: -1, message: "\u{1}".repeat(5_000), data: None });
        assert!(one.outcome(&long, 30_000).len() < 2_000, "it is said twice, with escapes");
        assert_eq!(cost("a\"\u{1}"), 3 + 9 + 2);
    }
}
