//! Who is looking, and the tools they may call: as a list, one by one, by search, and at what price.

use std::sync::Arc;

use http::Response;
use serde_json::{Value, json};
use toolcrib_catalogue::Entry;

use super::{Asked, Fault, ok, room::Kind, whole};
use crate::{
    access::Caller,
    built_in,
    gateway::Gateway,
    http::Body,
    shape::ViewStyle,
    snapshot::{Price, Snapshot},
};

/// How much of a description a list shows.
const MOST_SHOWN: usize = 240;

/// How many hits a search shows.
const MOST_HITS: usize = 50;

/// The longest question.
const MOST_ASKED: usize = 2000;

/// Who is looking, and what there is to look at.
pub(super) fn me(gateway: &Arc<Gateway>, asked: &Asked) -> Value {
    let access = gateway.access();
    let settings = gateway.settings();
    let groups: Vec<&str> = match asked.operates {
        true => access.group_names().collect(),
        false => vec![&asked.caller.group],
    };
    json!({
        "group": &*asked.caller.group, "operator": asked.operates, "groups": groups,
        "tokens": access.has_tokens(), "version": settings.version,
        "calls": gateway.audit().is_some(), "events": settings.bus.is_some(),
        "artifacts": settings.store.is_some(), "sessions": gateway.recording().is_some(),
    })
}

/// The tools that the caller may call, or those of a group, for an operator.
pub(super) async fn tools(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Response<Body>, Fault> {
    gateway.first_lists().await;
    let snapshot = gateway.snapshot();
    let caller = of_group(gateway, asked)?;
    let own = snapshot.built_ins(&caller).iter().map(|name| {
        let definition: Value =
            serde_json::from_str(built_in::definition(name)).unwrap_or_default();
        json!({
            "name": name, "source": "toolcrib", "title": definition["title"],
            "description": definition["description"], "claims": definition["annotations"],
        })
    });
    let listed = snapshot.visible(&caller).map(|it| shown(&snapshot, it));
    let tools: Vec<Value> = own.chain(listed).collect();
    Ok(ok(&json!({ "group": &*caller.group, "tools": tools })))
}

/// The caller, or somebody of the group that an operator asks for.
fn of_group(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Caller, Fault> {
    match asked.get("group") {
        Some(group) if *group != *asked.caller.group => {
            let other = gateway.access().local(Some(group)).filter(|_| asked.operates);
            other.ok_or_else(|| Fault::unknown("there is no such group, or it is not yours to see"))
        }
        _ => Ok(asked.caller.clone()),
    }
}

fn shown(snapshot: &Snapshot, entry: &Entry) -> Value {
    let tool = &entry.tool;
    let mut line = json!({
        "name": &*entry.name, "source": snapshot.label(entry.listing).as_deref(), "title": tool.title,
        "description": cut(tool.description.as_deref().unwrap_or_default()),
        "claims": tool.annotations,
    });
    if let Some(flag) = flag(snapshot, &entry.name) {
        line["flag"] = json!(flag);
    }
    line
}

/// What is suspicious about a definition.
fn flag(snapshot: &Snapshot, name: &str) -> Option<String> {
    let problem = snapshot.standing(name)?.look.suspicions(name)?;
    Some(problem.message)
}

fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(MOST_SHOWN).collect();
    if shown.len() < text.len() {
        shown.push('…');
    }
    shown
}

/// One tool, with its whole definition.
pub(super) async fn tool(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Response<Body>, Fault> {
    gateway.first_lists().await;
    let name = asked.need("name")?;
    let snapshot = gateway.snapshot();
    let caller = of_group(gateway, asked)?;
    let definition = snapshot.definition(&caller, name);
    let definition = definition.ok_or_else(|| Fault::unknown("there is no such tool"))?;
    let Some(entry) = snapshot.tool(&caller, name) else {
        return Ok(defined(&definition, &json!({ "source": "toolcrib" })));
    };
    let look = snapshot.standing(name).map(|it| Arc::clone(&it.look));
    let mut told = json!({
        "source": snapshot.label(entry.listing).as_deref(), "original": entry.tool.name,
        "flag": flag(&snapshot, name),
        "faults": look.map(|it| it.problems("its definition")).unwrap_or_default(),
        "stored_over": snapshot.limit(&caller, name),
    });
    if asked.operates {
        let access = gateway.access();
        let sees = |group: &&str| {
            let caller = access.local(Some(group));
            caller.is_some_and(|it| snapshot.tool(&it, name).is_some())
        };
        told["groups"] = access.group_names().filter(sees).collect();
    }
    Ok(defined(&definition, &told))
}

/// A definition as it goes out, to the last digit, and what else there is to tell.
fn defined(definition: &str, told: &Value) -> Response<Body> {
    let told = told.to_string();
    whole(format!(r#"{{"definition":{definition},{}"#, told.trim_start_matches('{')))
}

/// What an agent of the caller's group would find.
pub(super) async fn search(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Response<Body>, Fault> {
    let query = asked.need("q")?;
    let top = asked.number("top", MOST_HITS, 5)?;
    if query.trim().is_empty() || MOST_ASKED < query.len() {
        return Err(Fault::wrong(format!("`q` is a few words, {MOST_ASKED} bytes at most")));
    }
    let caller = of_group(gateway, asked)?;
    gateway.first_lists().await;
    let _place = gateway.console.room.enter(Kind::Searching, &asked.caller).await?;
    let snapshot = gateway.snapshot();
    let hits = gateway.search(&snapshot, &caller, query.to_owned(), top).await;
    let found: Vec<Value> = hits
        .iter()
        .filter_map(|hit| {
            let mut line = shown(&snapshot, snapshot.tool(&caller, &hit.key)?);
            line["score"] = json!(hit.score);
            line["also"] = json!(hit.also.iter().map(|it| &**it).collect::<Vec<_>>());
            Some(line)
        })
        .collect();
    let total = snapshot.visible(&caller).count();
    Ok(ok(&json!({ "tools": found, "total": total })))
}

/// What lists cost the models of each group.
pub(super) async fn costs(gateway: &Arc<Gateway>, asked: &Asked) -> Result<Response<Body>, Fault> {
    let snapshot = gateway.snapshot();
    let access = gateway.access();
    let groups: Vec<String> = match asked.operates {
        true => access.group_names().map(str::to_owned).collect(),
        false => vec![asked.caller.group.to_string()],
    };
    let place = gateway.console.room.enter(Kind::Counting, &asked.caller).await?;
    let counted = gateway.tasks.spawn_blocking(move || {
        let _place = place;
        let priced = |name: String| Some(priced(&snapshot.price(&name)?, &name));
        groups.into_iter().filter_map(priced).collect::<Vec<_>>()
    });
    let groups = counted.await.map_err(|_ended| Fault::unavailable("it could not be counted"))?;
    Ok(ok(&json!({ "groups": groups })))
}

fn priced(price: &Price, group: &str) -> Value {
    let view = match price.style {
        ViewStyle::All => "all",
        ViewStyle::Search => "search",
        ViewStyle::Auto => "auto",
    };
    json!({
        "group": group, "view": view, "tools": price.tools, "shown": price.shown,
        "all": price.all, "search": price.few, "searching": price.searching,
    })
}
