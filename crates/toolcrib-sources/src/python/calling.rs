//! A call, from the params of `tools/call` to a result that can be handed on.

use std::{
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolcrib_catalogue::{CallContext, CallError, ClientError, Json, Validator};
use toolcrib_wire::json::member;

use super::{
    call::{Call, mask_values},
    engine::Engine,
    generation::Failed,
};

/// The longest that a call may be given.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

impl Engine {
    pub(super) async fn call(
        &self,
        params: &Json,
        context: CallContext,
    ) -> Result<Json, CallError> {
        let text = params.as_bytes();
        let name: Option<String> =
            member(text, "name").and_then(|at| serde_json::from_slice(&text[at]).ok());
        let name = name.unwrap_or_default();
        let refused = |cause: String| CallError::Client(ClientError::Refused(cause));
        let Some(generation) = self.current.load_full() else {
            let failure = self.listed.load().failure.clone();
            let cause = failure.map_or_else(|| format!("there is no tool `{name}`"), |it| it.cause);
            return Err(CallError::Unavailable { cause });
        };
        let tool = generation.tools.get(&name);
        let tool = tool.ok_or_else(|| refused(format!("there is no tool `{name}`")))?;
        let limit = self.limit(tool.timeout, &context);
        let begin = Instant::now();
        let mut again = tool.repeatable;
        loop {
            let id = self.next_call.fetch_add(1, Ordering::Relaxed);
            let call = Call::new(id, &tool.name, params, context.clone(), &self.settings);
            match generation.run(tool, call, limit.saturating_sub(begin.elapsed())).await {
                Ok(result) => return Ok(self.masked(fitting(result, tool.output.as_deref()))),
                Err(Failed::Lost(cause)) if again => {
                    tracing::debug!(tool = &*tool.name, cause, "trying again");
                    again = false;
                }
                Err(failed) => return Err(self.told(failed.into_error(limit))),
            }
        }
    }

    fn limit(&self, own: Option<Duration>, context: &CallContext) -> Duration {
        // Who calls with a time of his own means it.
        let limit = context.attempt.or(own).unwrap_or(self.settings.timeout).min(LONGEST);
        let left = context.deadline.map(|it| it.saturating_duration_since(Instant::now()));
        left.map_or(limit, |left| left.min(limit))
    }

    /// A result that says it failed may quote what it was given.
    fn masked(&self, result: Json) -> Json {
        let said = |text: &[u8]| memchr::memmem::find(result.as_bytes(), text).is_some();
        if !said(br#""isError": true"#) && !said(br#""isError":true"#) {
            return result;
        }
        let Some(mut value) = result.get::<Value>() else { return result };
        for part in value["content"].as_array_mut().into_iter().flatten() {
            mask_values(&mut part["text"], &self.settings.masker);
        }
        Json::of(&value).unwrap_or(result)
    }

    fn told(&self, error: CallError) -> CallError {
        let mask = |cause: String| self.settings.masker.mask(&cause).into_owned();
        match error {
            CallError::Unavailable { cause } => CallError::Unavailable { cause: mask(cause) },
            CallError::Lost { cause } => {
                CallError::Lost { cause: mask(format!("its Python process is gone: {cause}")) }
            }
            error => error,
        }
    }
}

/// A result that is what its tool promised; else one that says what is wrong with it.
fn fitting(result: Json, output: Option<&Validator>) -> Json {
    let Some(output) = output else { return result };
    let Some(value) = result.get::<Value>().filter(|it| it["isError"] != true) else {
        return result;
    };
    let faults = match value.get("structuredContent") {
        Some(structured) => output.faults(structured),
        None => vec!["it has no structure".to_owned()],
    };
    if faults.is_empty() {
        return result;
    }
    let text = format!("Error: the result does not fit the output schema: {}", faults.join("; "));
    let failed = json!({ "content": [{ "type": "text", "text": text }], "isError": true });
    Json::of(&failed).unwrap_or(result)
}
