//! A modern server asks by its result: `input_required`. A modern client answers by sending the request
//! again with what was asked for. For a legacy client we do that: it is asked as it knows to be asked, and
//! the request goes to the server once more with its answers.

use std::sync::Arc;

use serde_json::Value;
use toolcrib_catalogue::{CallContext, CallError, Json, Source};
use toolcrib_wire::{
    Era,
    json::{member, members},
    modern::unfinished,
};

/// More often than this a server does not ask before it answers.
const MAX_ROUNDS: usize = 10;

/// Sends a request, and for a legacy client answers what the server asks by its results.
pub(crate) async fn request(
    source: &Arc<dyn Source>,
    method: &str,
    params: Json,
    context: CallContext,
    era: Era,
) -> Result<Json, CallError> {
    if era == Era::Modern {
        return source.request(method, params, context).await;
    }
    let mut sent = params.clone();
    for _ in 0..MAX_ROUNDS {
        let result = source.request(method, sent, context.clone()).await?;
        if unfinished(result.as_bytes()).as_deref() != Some("input_required") {
            return Ok(result);
        }
        let answers = answers(result.as_bytes(), &context).await?;
        let state = member(result.as_bytes(), "requestState").map(|at| &result.as_bytes()[at]);
        sent = again(params.as_bytes(), &answers, state);
    }
    Err(CallError::Malformed { cause: format!("the server asked more than {MAX_ROUNDS} times") })
}

/// What the client answers to all that a result asks: the members of `inputResponses`.
async fn answers(result: &[u8], context: &CallContext) -> Result<Vec<u8>, CallError> {
    let asked = member(result, "inputRequests").map(|at| &result[at]).unwrap_or(b"{}");
    let mut answers = Vec::new();
    for (key, at) in members(asked) {
        let question = &asked[at];
        let method = member(question, "method").map(|at| &question[at]).unwrap_or_default();
        let method: String = serde_json::from_slice(method).unwrap_or_default();
        let params = member(question, "params").map(|at| question[at].to_vec());
        let params = params.map(|it| Json::from_scanned(it.into()));
        let reply = context.listener.as_ref().and_then(|it| it.asked(&method, params));
        let Some(reply) = reply else {
            let method = method.escape_debug();
            let cause = format!("the server asks `{method}`, which the client cannot answer");
            return Err(CallError::Malformed { cause });
        };
        let reply = reply.await?;
        if !answers.is_empty() {
            answers.push(b',');
        }
        answers.extend_from_slice(Value::from(&*key).to_string().as_bytes());
        answers.push(b':');
        answers.extend_from_slice(reply.as_bytes());
    }
    Ok(answers)
}

/// The request once more, with the answers and the server's own note of where it was.
fn again(params: &[u8], answers: &[u8], state: Option<&[u8]>) -> Json {
    let mut text = br#"{"inputResponses":{"#.to_vec();
    text.extend_from_slice(answers);
    text.push(b'}');
    if let Some(state) = state {
        text.extend_from_slice(br#","requestState":"#);
        text.extend_from_slice(state);
    }
    for (key, at) in members(params) {
        if matches!(&*key, "inputResponses" | "requestState") {
            continue;
        }
        text.push(b',');
        text.extend_from_slice(Value::from(&*key).to_string().as_bytes());
        text.push(b':');
        text.extend_from_slice(&params[at]);
    }
    text.push(b'}');
    Json::from_scanned(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_goes_again_with_answers_and_state() {
        let found = again(br#"{"name":"a","requestState":1}"#, br#""k":{}"#, Some(b"\"s\""));
        let expected = r#"{"inputResponses":{"k":{}},"requestState":"s","name":"a"}"#;
        assert_eq!(found.to_string(), expected);
    }
}
