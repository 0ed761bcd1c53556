//! A call with a key is made once. Whoever sends it again gets what came of it.
//!
//! It goes on when its client goes away: a connection that broke is why calls are sent again. What is told of it is how
//! it ended, whoever waited.

use std::sync::Arc;

use serde_json::json;
use toolcrib_catalogue::{Blame, lock};
use toolcrib_wire::{Era, RpcError, json::member};

use super::{
    making::{Made, Making, count_refused, make},
    own, told,
};
use crate::{
    dispatch::{Asked, complete, invalid},
    gateway::Gateway,
    guard::{
        Ended, Story,
        repeats::{self, Claim, Ending, Known, RepeatKey},
        telling::Telling,
    },
    words,
};

/// Makes a call; where it has a key, unless that was done before.
pub(super) async fn make_once(
    gateway: &Arc<Gateway>,
    asked: Asked<'_>,
    mut making: Making,
    telling: &mut Telling,
) -> Ending {
    let story = &mut telling.story;
    // What tools call among each other has no key: only the call that they are part of is repeated.
    let key = match asked.depth {
        0 => RepeatKey::of_params(&making.params).map_err(invalid)?,
        _ => None,
    };
    let Some(key) = key else { return make(gateway, &asked, &making, story).await.ending };
    let params = &making.params;
    let arguments = member(params, "arguments").map_or(&b"{}"[..], |at| &params[at]);
    let arguments = std::str::from_utf8(arguments).ok().and_then(lock::digest);
    let arguments = arguments.ok_or_else(|| invalid("`arguments` are nested too deep"))?;
    let what = repeats::what(&making.name, &arguments);
    let size = making.params.len();
    let known = gateway.repeats.find(&asked.caller, &key, (what, size)).await;
    let claim = match known {
        Known::First(claim) => claim,
        known => {
            // It costs no server anything, and still whoever sends it again and again keeps us busy.
            if let Err(refusal) = count_refused(&asked, &making.snapshot, &making.name, story) {
                return Ok(own(refusal, asked.era));
            }
            return again(known, &making.name, asked.era, story);
        }
    };
    making.once = Some((key.clone(), repeats::once(&asked.caller, &key, &making.name)));
    make_apart(gateway, asked.owned(), making, claim, telling).await
}

/// Makes a call that goes on whoever waits for it.
async fn make_apart(
    gateway: &Arc<Gateway>,
    asked: Asked<'static>,
    making: Making,
    claim: Claim,
    telling: &mut Telling,
) -> Ending {
    let this = Arc::clone(gateway);
    let mut telling = telling.hand_over();
    let call = gateway.tasks.spawn(async move {
        let Made { ending, done } = make(&this, &asked, &making, &mut telling.story).await;
        if done {
            claim.settle(&ending);
        }
        told(telling, ending, asked.era).await
    });
    call.await.unwrap_or_else(|_ended| {
        let message = "the call was not made to its end".to_owned();
        Err(RpcError { code: toolcrib_wire::frame::INTERNAL_ERROR, message, data: None })
    })
}

/// What is said of a call whose key is known.
fn again(known: Known, name: &str, era: Era, story: &mut Story) -> Ending {
    let refusal = |text: String| {
        let result = json!({
            "content": [{ "type": "text", "text": text }],
            "isError": true,
            "_meta": { "toolcrib/blame": "caller", "toolcrib/code": words::IDEMPOTENCY_KEY },
        });
        Ok(own(result.to_string().into(), era))
    };
    match known {
        Known::Ended(ending) => {
            story.cache = Some("repeat");
            match &ending {
                Ok(result) => story.answered(result),
                Err(error) => (story.ended, story.code) = (Ended::Failed, Some(error.code)),
            }
            ending.map(|it| if era == Era::Modern { complete(it) } else { it })
        }
        Known::Gone => {
            story.cache = Some("repeat");
            story.ended = Ended::Well;
            refusal(format!(
                "`{name}` was called before with this idempotency key, and is not called again. \
                 What it answered then was too large to be remembered."
            ))
        }
        Known::Full => {
            story.refused("idempotency", Ended::Limited, Blame::Caller);
            let text = format!(
                "`{name}` was not called: too many calls with idempotency keys run already. Such calls go on \
                 when nobody waits for them; wait for some to end, or call without a key."
            );
            Ok(own(super::making::busy(&text), era))
        }
        Known::Other | Known::First(_) => {
            story.refused("idempotency", Ended::InvalidArguments, Blame::Caller);
            refusal(format!(
                "`{name}` was not called: this idempotency key was used for another call. \
                 A key stands for one tool with one set of arguments; use a new one."
            ))
        }
    }
}
