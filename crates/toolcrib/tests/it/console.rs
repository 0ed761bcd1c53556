//! The console, in a real browser before a real gateway. The scripts are in `tests/console`; what they need,
//! `./scripts/test` installs.

pub(crate) mod rights;
mod doing;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry, not_run, run},
    real::installed,
    serving::Serving,
};

/// The browser that is installed beside the tests, or the one that the system has.
fn chromium(tools: &Path) -> Option<(PathBuf, String)> {
    let own = tools.join("chromium/usr/lib/chromium/chromium");
    if own.exists() {
        let libraries = tools.join("chromium/usr/lib/x86_64-linux-gnu");
        let more = libraries.join("pulseaudio");
        return Some((own, format!("{}:{}", libraries.display(), more.display())));
    }
    let path = std::env::var_os("PATH")?;
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let all = folders.iter().flat_map(|folder| names.map(|it| folder.join(it)));
    all.into_iter().find(|it| it.is_file()).map(|it| (it, String::new()))
}

/// Runs a script in the browser, before this gateway. Where `SHOTS` names a folder, pictures are left there: those
/// of the documentation are made so.
#[track_caller]
pub(crate) fn browse(script: &str, serving: &Serving, given: &Value) {
    let Some(tools) = installed() else { return };
    let Some((chromium, libraries)) = chromium(&tools) else {
        not_run("no Chromium; ./scripts/test installs it");
        return;
    };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/console");
    let mut command = Command::new("node");
    command.arg(scripts.join(script)).arg(serving.url("")).arg(given.to_string());
    command.env("TOOLS", &tools).env("CHROMIUM", chromium).env("LD_LIBRARY_PATH", libraries);
    let run = run(&mut command);
    assert_eq!(run.code, 0, "{script}\n{}", run.transcript());
}

/// A schema with everything that a form can ask for.
const SHAPE: &str = r##"{"type":"object","required":["title","count"],"properties":{
  "title":{"type":"string","minLength":3,"maxLength":40,"description":"What it is called"},
  "count":{"type":"integer","minimum":1,"maximum":10},
  "level":{"enum":["low","high"]},
  "ratio":{"type":"number","default":0.50},
  "where":{"type":"object","properties":{"city":{"type":"string"},"street":{"$ref":"#/$defs/street"}}},
  "tags":{"type":"array","items":{"type":"string"},"maxItems":3},
  "target":{"oneOf":[{"title":"by name","type":"object","properties":{"name":{"type":"string"}},"required":["name"]},
    {"title":"by number","type":"object","properties":{"number":{"type":"integer"}},"required":["number"]}]}},
  "$defs":{"street":{"type":"string"}}}"##;

/// What a form must not decide by itself.
const UNSET: &str = r#"{"type":"object","required":["sure"],"properties":{
  "sure":{"type":"boolean"},"note":{"type":"string"},"more":{"type":"object"}}}"#;

/// A result with parts of every kind.
fn parts() -> String {
    let dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let content = json!([
        { "type": "text", "text": "plain words" },
        { "type": "image", "data": dot, "mimeType": "image/png" },
        { "type": "audio", "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=", "mimeType": "audio/wav" },
        { "type": "resource", "resource": { "uri": "file:///notes.txt", "mimeType": "text/plain", "text": "remember the milk" } },
        { "type": "resource_link", "uri": "file:///elsewhere", "name": "elsewhere" },
    ]);
    let rows = json!({ "rows": [{ "city": "Oslo", "people": 709_037 }, { "city": "Bergen", "people": 291_940 }] });
    json!({ "content": content, "structuredContent": rows, "isError": false }).to_string()
}

/// A server with a tool of every kind, and how it describes them.
fn kit(folder: &Folder) -> Plan {
    let any = r#"{"type":"object"}"#;
    let tool = |name: &str, about: &str, claims: &str, schema: &str| {
        format!(
            r#"{{"name":"{name}","description":"{about}","annotations":{claims},"inputSchema":{schema}}}"#
        )
    };
    let list = [
        tool("shape", "Takes arguments of every shape", r#"{"readOnlyHint":true}"#, SHAPE),
        tool("parts", "Gives parts of every kind", "{}", any),
        tool("fail", "Always fails", r#"{"destructiveHint":true}"#, any),
        tool("long", "Takes its time, and says how far it is", "{}", any),
        tool("rows", "Gives a table that is too large", "{}", any),
        tool("unset", "Takes what was not said", "{}", UNSET),
    ];
    let listed = folder.write("listed.json", format!("[{}]", list.join(",").replace('\n', " ")));
    Plan::legacy()
        .tool("shape", Act::Echo)
        .tool("parts", Act::Result(parts()))
        .tool("fail", Act::Fail)
        .tool("long", Act::Say(1_000))
        .tool("rows", Act::Rows(20_000))
        .tool("unset", Act::Echo)
        .listed(listed)
}

/// A workspace with these servers.
fn workspace(servers: impl FnOnce(&Folder) -> Value) -> Folder {
    let folder = Folder::new();
    let servers = servers(&folder);
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    folder
}

#[test]
fn tools_are_found_tried_and_taken_back() {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"] });
    let question = json!({ "method": "elicitation/create",
        "params": { "mode": "form", "message": "Who are you?", "requestedSchema": schema } });
    let asks = json!({ "resultType": "input_required", "inputRequests": { "who": question }, "requestState": "s1" });
    let folder = workspace(|it| {
        let asker =
            Plan::modern().tool("asks", Act::Result(asks.to_string())).notes(it.file("notes"));
        json!({ "kit": entry(&kit(it)), "asker": entry(&asker) })
    });
    let serving = Serving::start(folder.path());
    browse("tools.mjs", &serving, &json!({}));
    // The answer went along with what the server wanted back.
    let notes = fs::read_to_string(folder.file("notes")).unwrap();
    let calls: Vec<Value> = notes.lines().map(|it| serde_json::from_str(it).unwrap()).collect();
    let calls: Vec<&Value> = calls.iter().filter(|it| it["method"] == "tools/call").collect();
    if let [_, second] = calls[..] {
        let answer = json!({ "who": { "action": "accept", "content": { "name": "Ada" } } });
        assert_eq!(second["params"]["inputResponses"], answer);
        assert_eq!(second["params"]["requestState"], "s1");
    } else {
        assert!(installed().is_none(), "{calls:?}");
    }
}

#[test]
fn calls_servers_events_and_context_are_shown_as_they_are() {
    let folder = workspace(
        |it| json!({ "kit": entry(&kit(it)), "broken": { "command": "no-such-program-here" } }),
    );
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in fs::read_dir(examples.join("tasks/events")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        folder.write(&format!("events/{name}"), fs::read(path).unwrap());
    }
    folder.write("network.yaml", "results: { inline_up_to: 2KB }\n");
    let serving = Serving::start(folder.path());
    let session = fs::read_to_string(examples.join("data/mcp_session.jsonl")).unwrap();
    let given = json!({ "session": session, "listed": folder.file("listed.json") });
    browse("pages.mjs", &serving, &given);
}

#[test]
fn a_token_lets_one_in_and_a_group_sees_what_it_may() {
    let folder = rights::folder();
    let serving = Serving::start(folder.path());
    browse("login.mjs", &serving, &json!({}));
}

#[test]
fn whoever_is_let_in_without_a_token_may_still_log_in() {
    let folder = rights::folder();
    let rules = fs::read_to_string(folder.file("network.yaml")).unwrap();
    folder.write("network.yaml", rules.replace("groups:", "anonymous: true\n  groups:"));
    let serving = Serving::start(folder.path());
    browse("anonymous.mjs", &serving, &json!({}));
}

#[test]
fn every_page_can_be_read_by_everybody_on_every_screen() {
    let folder = workspace(
        |it| json!({ "kit": entry(&kit(it)), "broken": { "command": "no-such-program-here" } }),
    );
    let serving = Serving::start(folder.path());
    for tool in ["mcp__kit__unset", "mcp__kit__fail", "mcp__kit__fail"] {
        rights::call(&serving, ("X-None", "x"), tool);
    }
    let event = json!({ "type": "note.taken", "data": { "text": "milk" } }).to_string();
    assert_eq!(serving.request("POST", "/events", &[], &event).status, 201);
    rights::calls(&serving, ("X-None", "x"), 3);
    browse("everywhere.mjs", &serving, &json!({ "tool": "mcp__kit__shape" }));
}

/// Those of the console are made by `SHOTS=docs/images`, see CONTRIBUTING.md.
#[test]
fn every_picture_in_the_documents_is_there_and_light() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let docs = fs::read_dir(root.join("docs")).unwrap().map(|it| it.unwrap().path());
    let mut shown = 0;
    for page in docs
        .chain([root.join("README.md")])
        .filter(|it| it.extension().is_some_and(|it| it == "md"))
    {
        let text = fs::read_to_string(&page).unwrap();
        for part in text.split("![").skip(1) {
            let Some(link) = part.split_once("](").and_then(|(_, it)| it.split_once(')')) else {
                continue;
            };
            let file = page.parent().unwrap().join(link.0);
            let size = fs::metadata(&file)
                .unwrap_or_else(|error| panic!("{}: {error}", file.display()))
                .len();
            assert!(size < 150_000, "{}: {size} bytes", file.display());
            shown += 1;
        }
    }
    assert!(3 < shown, "{shown}");
}

#[test]
fn five_thousand_tools_are_few_to_the_page() {
    let folder = workspace(|folder| {
        let tool = |it: usize| {
            json!({ "name": format!("tool_{it:04}"), "inputSchema": { "type": "object" },
                "description": format!("Does what is number {it} on the list of things to do") })
        };
        let list: Vec<Value> = (0..5_000).map(tool).collect();
        let listed = folder.write("many.json", Value::from(list).to_string());
        json!({ "many": entry(&Plan::legacy().listed(listed)) })
    });
    let serving = Serving::start(folder.path());
    browse("many.mjs", &serving, &json!({}));
}

#[test]
fn the_page_is_light() {
    let folder = workspace(|it| json!({ "kit": entry(&kit(it)) }));
    let serving = Serving::start(folder.path());
    browse("weight.mjs", &serving, &json!({}));
}
