//! Lists that are too much: for a terminal, for memory, for patience.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use super::{
    definitions::{listing, tool},
    evil::{noted, on_stdio},
    framing::memory,
    is_full, logging,
};
use crate::{
    guarded::Client,
    kit::{Folder, entry, soon, toolcrib},
    relay::Events,
    serving::Serving,
};

/// What a terminal would act on.
const ESCAPES: &str = "\u{1b}[2J\u{1b}]8;;http://x\u{7}link\u{9b}31m";

/// All text that the gateway wrote below a folder, its log too.
fn written(folder: &Folder) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = vec![folder.file(".toolcrib"), folder.file("log")];
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|it| it.unwrap().path()));
        } else if let Ok(text) = fs::read_to_string(&path) {
            found.push((path.display().to_string(), text));
        }
    }
    found
}

#[test]
fn d11_nothing_that_a_terminal_acts_on_gets_into_a_log() {
    let text = json!({ "content": [{ "type": "text", "text": ESCAPES }] }).to_string();
    let words = serde_json::to_string(ESCAPES).unwrap();
    let error =
        format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":{{"code":-32050,"message":{words}}}}}"#);
    let plan = Plan::legacy().tool("say", Act::Result(text)).tool("fail", Act::Line(error));
    let plan =
        plan.tool("shout", Act::Stderr(format!("shouted {ESCAPES}"))).tool("crash", Act::Crash);
    let names = ["say", "fail", "shout", "crash"];
    let mut definitions: Vec<Value> = names.iter().map(|it| tool(it, "Speaks.")).collect();
    definitions.push(tool(&format!("odd{ESCAPES}"), &format!("Odd. {ESCAPES}")));
    let folder = listing(plan, &definitions);
    folder.write("network.yaml", "audit: { arguments: on, results: on }\nsessions: on\n");
    let serving = logging(&folder);
    let client = Client::new(&serving, None);
    for name in names {
        client.call(&format!("mcp__s__{name}"), &json!({ "text": ESCAPES, ESCAPES: 1 }));
    }
    client.call(ESCAPES, &json!({}));
    let heard = || fs::read_to_string(folder.file("log")).unwrap().contains(r"shouted \u{1b}[2J");
    soon("what was shouted is logged", heard);
    soon("all is on record", || {
        let calls =
            crate::audit::records(folder.path()).into_iter().filter(|it| it["call"].is_string());
        calls.count() == 5
    });
    let raw = |it: char| matches!(it, '\u{1b}' | '\u{9b}' | '\u{7}');
    let all = written(&folder);
    for kind in ["log", "audit-000001.jsonl", "sessions"] {
        assert!(all.iter().any(|(path, _)| path.contains(kind)), "{kind}");
    }
    for (path, text) in all {
        // What servers listed is kept as they said it, and JSON.
        let kept = path.ends_with("lists.json");
        assert!(kept || !text.contains(raw), "{path}: {text:?}");
    }
    for command in [&["check"][..], &["tools"]] {
        let run = toolcrib(folder.path(), command);
        assert!(!run.out.contains(raw) && !run.err.contains(raw), "{command:?}: {:?}", run.out);
    }
}

#[test]
fn d12_too_many_tools_and_too_large_ones_are_left_out_and_the_rest_works() {
    let mut definitions = vec![tool("long", &"x".repeat(1 << 20)), tool("heavy", "Weighs.")];
    let properties: serde_json::Map<String, Value> =
        (0..100_000).map(|it| (format!("property-{it}"), json!({ "type": "string" }))).collect();
    definitions[1]["inputSchema"]["properties"] = Value::Object(properties);
    definitions.extend((0..30_000).map(|it| tool(&format!("t{it}"), "One of many.")));
    let size = json!(definitions[1]).to_string().len();
    assert!(size > 3_000_000, "{size}");
    let folder = listing(Plan::legacy(), &definitions);
    let plan = entry(&Plan::legacy().tool("echo", Act::Echo));
    let text = fs::read_to_string(folder.file("mcp.json")).unwrap();
    let mut config: Value = serde_json::from_str(&text).unwrap();
    config["mcpServers"]["other"] = plan;
    folder.write("mcp.json", config.to_string());
    let begin = Instant::now();
    let serving = logging(&folder);
    let client = Client::new(&serving, None);
    let tools = client.tools();
    let grown = memory(serving.child.id());
    println!("{} tools after {:?}, {} MB in all", tools.len(), begin.elapsed(), grown >> 20);
    let found = |name: &str| tools.iter().find(|it| it["name"] == name);
    // The cap, less the one that is too long, and one of the other server.
    assert_eq!(tools.len(), 20_000);
    assert!(found("mcp__s__long").is_none() && found("mcp__s__t19998").is_none());
    let heavy = found("mcp__s__heavy").unwrap();
    assert_eq!(heavy["inputSchema"], json!({ "type": "object" }));
    for name in ["mcp__s__t0", "mcp__s__t19997", "mcp__s__heavy", "mcp__other__echo"] {
        assert_eq!(client.text(name, &json!({ "n": 1 })), r#"{"n":1}"#, "{name}");
    }
    let log = fs::read_to_string(folder.file("log")).unwrap();
    assert!(log.contains("it lists more than 20000 tools; the rest is left out"), "{log}");
    assert!(log.contains("its description has 1048576 bytes"), "{log}");
    assert!(log.contains("at most 262144 are allowed"), "{log}");
    assert!(grown < 256 << 20, "{} MB", grown >> 20);
}

#[test]
fn d14_a_list_without_end_is_given_up() {
    for (pages, most, told) in [
        ("endless", 2_001, "its list of tools has more than 2000 pages; the rest is left out"),
        ("circle", 4, "its list of tools goes round in a circle; what came twice is left out"),
    ] {
        let folder = Folder::new();
        let evil = on_stdio(&folder, json!({ "pages": pages }));
        let other = entry(&Plan::legacy().tool("echo", Act::Echo));
        folder.write(
            "mcp.json",
            json!({ "mcpServers": { "evil": evil, "other": other } }).to_string(),
        );
        let serving = logging(&folder);
        let client = Client::new(&serving, None);
        assert_eq!(client.text("mcp__other__echo", &json!({})), "{}");
        assert!(client.names().contains(&"mcp__evil__t2".to_owned()));
        let log = fs::read_to_string(folder.file("log")).unwrap();
        assert!(log.contains(told), "{log}");
        assert!(lists(&folder) <= most, "{}", lists(&folder));
    }
}

/// How often the hostile server was asked for its list.
fn lists(folder: &Folder) -> usize {
    let asked = |it: &&Value| it.as_str().is_some_and(|it| it.contains(r#""tools/list""#));
    noted(folder).iter().filter(asked).count()
}

#[test]
fn d15_a_server_that_always_changes_is_asked_once_a_second_and_told_of_as_often() {
    let seconds = if is_full() { 10 } else { 3 };
    let folder = Folder::new();
    let evil = on_stdio(&folder, json!({ "fickle": true }));
    folder.write("mcp.json", json!({ "mcpServers": { "evil": evil } }).to_string());
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    let session = serving.session(&[], "2025-11-25");
    let mut stream = Events::open(&serving, "GET", &format!("Mcp-Session-Id: {session}"), "");
    let before = lists(&folder);
    let begin = Instant::now();
    assert_eq!(client.text("mcp__evil__fickle", &json!({ "seconds": seconds })), "fickle");
    // One at the beginning of each second, and one for what came last.
    let most = usize::try_from(begin.elapsed().as_secs()).unwrap() + 2;
    let heard = stream.until_silent(Duration::from_millis(2_500));
    let asked = lists(&folder) - before;
    let told = heard.matches("notifications/tools/list_changed").count();
    println!("{asked} lists and {told} notes, at most {most}");
    assert!((2..=most).contains(&asked), "{asked} lists, at most {most}");
    assert!((2..=most).contains(&told), "{told} notes, at most {most}");
}
