//! Who reads events and how far they have come, and letting one of them read again. Events themselves are read and
//! published at `/events`, by the page as by everybody.

use std::sync::Arc;

use http::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_bus::{BusError, ConsumerName, ConsumerState, Start, Wish, rfc3339};

use super::{Asked, Fault, ok};
use crate::{gateway::Gateway, http::Body};

/// Who is to read again, and from where.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Replay {
    /// `group/name`.
    consumer: String,
    /// The first event that it gets again; the oldest that is kept where nothing is said.
    #[serde(default)]
    from: Option<u64>,
}

/// Durable consumers: those of the group, or all of them.
pub(super) async fn consumers(
    gateway: &Arc<Gateway>,
    asked: &Asked,
) -> Result<Response<Body>, Fault> {
    let bus = gateway.bus().map_err(|it| Fault::unavailable(it.to_string()))?;
    let all = bus.consumers().await.map_err(|it| failed(&it))?;
    let own = |it: &&ConsumerState| {
        asked.operates || ConsumerName::parts(&it.name).0 == &*asked.caller.group
    };
    let shown: Vec<Value> = all.iter().filter(own).map(row).collect();
    Ok(ok(&json!({ "consumers": shown, "last": bus.state().last })))
}

fn row(it: &ConsumerState) -> Value {
    json!({
        "name": it.name, "match": it.filter.asked, "cursor": it.cursor, "behind": it.behind,
        "pending": it.pending, "dead": it.dead, "missed": it.missed, "seen": rfc3339(it.seen),
    })
}

fn failed(error: &BusError) -> Fault {
    Fault::unavailable(error.to_string())
}

/// Lets a consumer read again from somewhere on. It is made anew: what it had in hand is forgotten.
pub(super) async fn replay(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Response<Body>, Fault> {
    let Replay { consumer, from } = asked.body()?;
    let bus = gateway.bus().map_err(|it| Fault::unavailable(it.to_string()))?;
    let all = bus.consumers().await.map_err(|it| failed(&it))?;
    let known = all.into_iter().find(|it| it.name == consumer);
    let known = known.ok_or_else(|| Fault::unknown("there is no such consumer"))?;
    let (owner, name) = ConsumerName::parts(&known.name);
    let name = ConsumerName::new(owner, name).map_err(|it| Fault::wrong(it.to_string()))?;
    let start = from.map_or(Start::First, Start::At);
    let wish = Wish { filter: Some(known.filter), start, max: 0, ..Wish::new(name.clone()) };
    bus.forget(&name).await.map_err(|it| failed(&it))?;
    bus.fetch(&wish, std::time::Duration::ZERO).await.map_err(|it| {
        let lost = format!("{it}; the consumer begins anew when it next reads");
        Fault::unavailable(lost)
    })?;
    gateway.did(&asked.caller, "replay", &consumer);
    Ok(ok(&json!({ "consumer": consumer, "from": from })))
}
