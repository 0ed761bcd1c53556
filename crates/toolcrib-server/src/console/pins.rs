//! What is not as it was accepted, as a difference somebody can read, and accepting it.
//!
//! Whoever accepts accepts what the page showed: each change has a stamp, and where the server has changed its mind
//! in between the stamp no longer fits.

use std::sync::Arc;

use http::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_catalogue::{
    Tool,
    lock::{Change, ChangeKind, Lock, Now, Place, SourcePins, ToolPin, compare, hash},
    poison, suspicions,
};

use super::{Asked, Fault, ok, servers::is_listed};
use crate::{gateway::Gateway, guard::rules::Rules, http::Body};

/// Of how many tools that are new all at once the definitions are shown.
const MOST_DEFINITIONS: usize = 200;

/// What is to be accepted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Accept {
    source: String,
    #[serde(default)]
    tool: Option<String>,
    stamp: String,
}

/// A source as it is now.
struct Listed {
    place: Place,
    way: Option<toolcrib_catalogue::lock::Way>,
    tools: Option<Arc<[Arc<Tool>]>>,
}

impl Listed {
    fn now(&self) -> Now<'_> {
        Now { place: self.place.clone(), way: self.way.clone(), tools: self.tools.as_deref() }
    }

    fn tool(&self, name: &str) -> Option<&Tool> {
        self.tools.iter().flat_map(|it| it.iter()).find(|it| it.name == name).map(|it| &**it)
    }

    /// What changes whenever the server does.
    fn stamp(&self, tool: Option<&str>) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.place.as_str().as_bytes());
        if let Some(way) = &self.way {
            hasher.update(way.hash().as_bytes());
        }
        let all = self.tools.iter().flat_map(|it| it.iter());
        for it in all.filter(|it| tool.is_none_or(|tool| it.name == tool)) {
            hasher.update(it.name.as_bytes()).update(hash(it).as_bytes());
        }
        hasher.finalize().to_hex()[..32].to_owned()
    }
}

/// All servers. Whoever edits the workspace's own tools is who would have to accept them.
fn listed(gateway: &Gateway) -> Vec<Listed> {
    let slots = gateway.slots();
    let servers = slots.iter().map(|it| (Place::of(&it.input.origin), &it.input));
    let servers = servers.filter(|(place, _)| place.as_str().starts_with("server:"));
    servers
        .map(|(place, input)| {
            let source = input.source.as_ref().filter(|it| is_listed(&***it));
            Listed { place, way: input.way.clone(), tools: source.map(|it| it.tools()) }
        })
        .collect()
}

/// What is not as it was accepted.
pub(super) async fn list(gateway: &Arc<Gateway>) -> Result<Response<Body>, Fault> {
    let this = Arc::clone(gateway);
    let compared = gateway.tasks.spawn_blocking(move || {
        let rules = Arc::clone(&this.rules());
        let listed = listed(&this);
        let now: Vec<Now<'_>> = listed.iter().map(Listed::now).collect();
        let lock = rules.lock.clone().unwrap_or_default();
        let changes = compare(&lock, &now);
        let shown: Vec<Value> = changes.iter().map(|it| shown(it, &lock, &listed)).collect();
        json!({ "pins": word(&rules), "locked": rules.lock.is_some(), "changes": shown })
    });
    let told = compared.await.map_err(|_ended| Fault::unavailable("it could not be compared"))?;
    Ok(ok(&told))
}

fn word(rules: &Rules) -> String {
    format!("{:?}", rules.pins).to_lowercase()
}

fn shown(change: &Change, lock: &Lock, listed: &[Listed]) -> Value {
    let source = listed.iter().find(|it| it.place == change.place);
    let tool = change.tool.as_deref();
    let pin = tool.and_then(|it| lock.source(&change.place)?.tools.get(it));
    let now = source.zip(tool).and_then(|(source, tool)| source.tool(tool)).map(ToolPin::new);
    let unpinned = change.kind == ChangeKind::Unpinned;
    let asked = source.is_none_or(|it| !unpinned || it.tools.is_some());
    let mut told = json!(change);
    told["text"] = json!(change.to_string());
    told["stamp"] = json!(source.map_or_else(|| "gone".to_owned(), |it| it.stamp(tool)));
    told["definition_before"] = json!(pin.and_then(|it| it.definition.as_deref()));
    told["definition_now"] = json!(now.as_ref().and_then(|it| it.definition.as_deref()));
    told["acceptable"] = json!(asked);
    told["flag"] = json!(source.zip(tool).and_then(|(source, tool)| flag(source.tool(tool)?)));
    if unpinned {
        let all = source.iter().flat_map(|it| it.tools.iter().flat_map(|it| it.iter()));
        told["tools"] = all.enumerate().map(|(at, it)| of_unpinned(at, it)).collect();
    }
    told
}

/// A tool of a server of which nothing was accepted yet: whoever accepts it accepts all of them.
fn of_unpinned(at: usize, tool: &Tool) -> Value {
    let definition = (at < MOST_DEFINITIONS).then(|| ToolPin::new(tool).definition);
    json!({ "name": tool.name, "flag": flag(tool), "definition": definition.flatten().as_deref() })
}

/// What is suspicious about a definition, as `toolcrib lock` says it.
fn flag(tool: &Tool) -> Option<String> {
    suspicions(&poison::inspect(tool), &tool.name).map(|it| it.message)
}

/// Accepts a change that was shown.
pub(super) async fn accept(gateway: &Arc<Gateway>, asked: Asked) -> Result<Response<Body>, Fault> {
    let wanted: Accept = asked.body()?;
    let this = Arc::clone(gateway);
    let accepting = gateway.tasks.spawn_blocking(move || accepted(&this, &asked, &wanted));
    accepting.await.map_err(|_ended| Fault::unavailable("it could not be accepted"))?
}

fn accepted(
    gateway: &Arc<Gateway>,
    asked: &Asked,
    wanted: &Accept,
) -> Result<Response<Body>, Fault> {
    let operator = gateway.console.operator()?;
    let _one_at_a_time = gateway.console.accepting.lock();
    let listed = listed(gateway);
    let mut lock = operator.read_lock().unwrap_or_default();
    if lock.is_torn() {
        let message = "toolcrib.lock is damaged: restore it, or write it anew with `toolcrib lock`";
        return Err(Fault::unavailable(message));
    }
    let now: Vec<Now<'_>> = listed.iter().map(Listed::now).collect();
    let tool = wanted.tool.as_deref();
    let changes = compare(&lock, &now);
    let is_it = |it: &&Change| it.place.as_str() == wanted.source && it.tool.as_deref() == tool;
    let change = changes.iter().find(is_it);
    let change = change.ok_or_else(|| Fault::stale("it is as it was accepted already"))?;
    let source = listed.iter().find(|it| it.place == change.place);
    let stamp = source.map_or_else(|| "gone".to_owned(), |it| it.stamp(tool));
    if stamp != wanted.stamp {
        return Err(Fault::stale("it has changed since it was shown: look at it again"));
    }
    take(&mut lock, change, source)?;
    operator
        .write_lock(&lock)
        .map_err(|error| Fault::unavailable(format!("toolcrib.lock cannot be written: {error}")))?;
    gateway.accept(Some(lock));
    let subject = [Some(wanted.source.as_str()), tool].into_iter().flatten();
    gateway.did(&asked.caller, "accept", &subject.collect::<Vec<_>>().join(" "));
    Ok(ok(&json!({ "accepted": wanted.source, "tool": tool })))
}

/// Takes one change into the lock.
fn take(lock: &mut Lock, change: &Change, source: Option<&Listed>) -> Result<(), Fault> {
    let place = change.place.clone();
    let mut pins = lock.source(&place).cloned().unwrap_or_else(SourcePins::default);
    let gone = || Fault::stale("it is no longer there");
    match (change.kind, change.tool.as_deref(), source) {
        (ChangeKind::GoneSource, ..) => {
            lock.unpin(&place);
            return Ok(());
        }
        (ChangeKind::Unpinned, _, Some(source)) => {
            let tools = source.tools.as_deref();
            let tools = tools.ok_or_else(|| Fault::stale("the server cannot be asked just now"))?;
            lock.pin(place, source.way.clone(), tools.iter().map(|it| &**it));
            return Ok(());
        }
        (ChangeKind::ChangedWay, _, Some(source)) => pins.way.clone_from(&source.way),
        (ChangeKind::GoneTool, Some(tool), _) => drop(pins.tools.remove(tool)),
        (ChangeKind::NewTool | ChangeKind::ChangedTool, Some(name), Some(source)) => {
            let tool = source.tool(name).ok_or_else(gone)?;
            pins.tools.insert(name.to_owned(), ToolPin::new(tool));
        }
        _ => return Err(gone()),
    }
    lock.keep(place, pins);
    Ok(())
}
