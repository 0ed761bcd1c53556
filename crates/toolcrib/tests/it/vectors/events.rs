//! Seed 003's event tools, against what the original gave: which tools there are, and which events calls
//! stand for. How often the official schema of AsyncAPI is not met is ours alone, and not compared.

use std::{path::Path, sync::Arc};

use serde_json::{Value, json};
use toolcrib::{
    catalogue::{Catalogue, Json, Listing, NameStyle, Origin, Settings, Tool, ToolFilter},
    events::Embedded,
    sources::{
        asyncapi::{EventTool, Loaded, load},
        collector::{EventToolLoader, NetworkToolCollector},
    },
};

use super::{
    Verdict,
    tools::{folder, loader, wait},
};

pub(crate) fn event(row: &Value) -> Verdict {
    let (folder, output) = (folder(row), &row["output"]);
    let loaded = load(folder.path());
    let mut tools: Vec<Value> = loaded.tools.iter().map(|it| shown(it)).collect();
    let calls = output["calls"].as_array().unwrap();
    let found: Vec<Value> = calls.iter().map(|it| called(&loaded, it)).collect();
    let official = |it: &str| it.starts_with("not as AsyncAPI");
    let problems = loaded.problems.iter().filter(|it| !official(&it.message)).count();
    let mut originals: Vec<Value> =
        output["tools"].as_array().unwrap().iter().map(original).collect();
    for list in [&mut tools, &mut originals] {
        list.sort_by_key(|it| (it["name"].to_string(), it["operation"].to_string()));
    }
    let found = json!({ "tools": tools, "calls": found, "problems": problems });
    let expected = json!({
        "tools": originals,
        "calls": calls.iter().map(emitted).collect::<Vec<_>>(),
        "problems": output["log_warnings_and_errors"].as_array().unwrap().len(),
    });
    if found == expected { Verdict::Pass } else { Verdict::Other(found.to_string()) }
}

fn shown(it: &EventTool) -> Value {
    json!({
        "name": it.name, "description": it.description, "input_schema": it.input_schema,
        "address": it.address, "operation": it.operation, "file": it.file,
    })
}

fn original(it: &Value) -> Value {
    let event = &it["event"];
    let file = event["source_file"].as_str().unwrap().trim_start_matches("<WS>/");
    json!({
        "name": it["name"], "description": it["description"], "input_schema": it["input_schema"],
        "address": event["event_address"], "operation": event["operation_id"], "file": file,
    })
}

fn called(loaded: &Loaded, call: &Value) -> Value {
    let Some(tool) = loaded.tools.iter().find(|it| it.name == call["tool"].as_str().unwrap())
    else {
        return json!("no such tool");
    };
    match tool.emission(&Json::of(&call["arguments"]).unwrap()) {
        Ok(it) => json!({ "event": it.name, "payload": it.data.get::<Value>() }),
        Err(_) => json!("refused"),
    }
}

fn emitted(call: &Value) -> Value {
    match call["emitted"].as_array().unwrap().as_slice() {
        [it] => json!({ "event": it["event_name"], "payload": it["payload"] }),
        _ => json!("refused"),
    }
}

/// A tool in `tools/` and one in `events/` with one name.
pub(crate) fn conflict(row: &Value) -> Verdict {
    let folder = folder(row);
    let loader = loader(&folder);
    let found = wait(async {
        let bus = Embedded::open(&folder.file("events.db"), Default::default()).unwrap();
        let events = EventToolLoader::new(folder.path(), Arc::new(bus));
        let mut collector =
            NetworkToolCollector::new(Vec::new(), loader.clone()).with_events(events);
        let collected = collector.collect_all_tools().await;
        loader.close().await;
        collected.err().map(|it| format!("ValueError: {it}")).unwrap_or_default()
    });
    if found == row["output"]["raised"] { Verdict::Pass } else { Verdict::Other(found) }
}

fn listing(origin: Origin, tools: &[Value]) -> Listing {
    let tool = |it: &Value| Arc::new(Tool::read(Json::of(it).unwrap()).unwrap());
    let tools = tools.iter().map(tool).collect();
    Listing { origin, style: NameStyle::Prefixed, filter: ToolFilter::default(), tools }
}

/// Ids are never the same twice.
pub(crate) fn steady(text: &str) -> String {
    let mut rest = text;
    let mut steady = String::new();
    // As our own ids look: a time, and something random.
    while let Some(at) = rest.find("01a") {
        let id = rest.get(at..at + 36).filter(|it| it.matches('-').count() == 4);
        steady.push_str(&rest[..at]);
        steady.push_str(if id.is_some() { "ID" } else { "01a" });
        rest = &rest[at + if id.is_some() { 36 } else { 3 }..];
    }
    steady + rest
}

/// Which names a pattern stands for.
pub(crate) fn patterns(row: &Value) -> Verdict {
    let rows = row["output"].as_array().unwrap();
    let found: Vec<Value> = rows
        .iter()
        .map(|it| {
            let (pattern, event) = (it["pattern"].as_str().unwrap(), it["event"].as_str().unwrap());
            let matches = toolcrib::events::Pattern::new(pattern).unwrap().matches(event);
            json!({ "pattern": pattern, "event": event, "matches": matches })
        })
        .collect();
    let found = Value::from(found);
    if found == row["output"] { Verdict::Pass } else { Verdict::Other(found.to_string()) }
}

/// What an event says of which nothing is said.
pub(crate) fn envelope(row: &Value) -> Verdict {
    let name = row["output"]["event_name"].as_str().unwrap();
    let mut draft = toolcrib::events::Draft::new(name, "{}");
    draft.id = Some("1".to_owned());
    draft.time = Some("1970-01-01T00:00:00Z".to_owned());
    let found: Value = serde_json::from_str(draft.event().unwrap().text()).unwrap();
    if found == row["output"] { Verdict::Pass } else { Verdict::Other(found.to_string()) }
}

/// The loader keeps two tools of one name, as the original's does; whoever merges them refuses.
#[test]
fn two_events_of_one_name_are_a_conflict() {
    let folder = crate::kit::Folder::new();
    let operation = "{channel: {$ref: '#/channels/c'}, x-agent-tool: {enabled: true, name: same}}";
    let text = format!(
        "asyncapi: 3.0.0\nchannels: {{c: {{address: a.b}}}}\noperations: {{a: {operation}, b: {operation}}}\n"
    );
    folder.write("events/a.yaml", text);
    let events: Vec<Value> = load(folder.path()).tools.iter().map(|it| shown(it)).collect();
    assert_eq!(events.len(), 2);
    let refused = Catalogue::build(&[listing(Origin::Events, &events)], &Settings::default());
    let sentence = refused.err().unwrap().to_string();
    assert_eq!(
        sentence,
        "Tool name conflict: 'same' is defined in both 'event' and 'event'. Tool names must be unique."
    );
    assert!(Path::new(events[0]["file"].as_str().unwrap()).ends_with("a.yaml"));
}
