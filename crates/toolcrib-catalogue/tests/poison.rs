//! How many poisoned definitions are found, and how many good ones are taken for poisoned.
//!
//! `tests/poison/bad.json` and `good.json` have parts. The rules were made with parts 1 to 4 at
//! hand; part 5 was written before the rules of today and is held out: it alone says what to expect
//! of poison that nobody here has seen. So only its sums are printed, never which of it was found.
//! `tests/poison/README.md` has the story. To `good.json` the definitions of the real servers that
//! `./scripts/test` installs are added where there are any.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test that prints its figures")]

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use serde::Deserialize;
use serde_json::{Value, json};
use toolcrib_catalogue::{
    Json, Tool, lint,
    poison::{Finding, Verdict, inspect, inspect_all, score},
};

/// The part that no rule was made for.
const HELD_OUT: u8 = 5;
/// Parts, and how many of each have been found: fewer is a step back.
const LEAST: [(u8, usize); 5] = [(1, 60), (2, 66), (3, 49), (4, 29), (5, 23)];

#[derive(Deserialize)]
struct Bad {
    part: u8,
    kinds: Vec<String>,
    server: String,
    #[serde(default)]
    beside: Vec<Good>,
    tool: Value,
}

#[derive(Deserialize)]
struct Good {
    #[serde(default)]
    part: u8,
    server: String,
    tool: Value,
}

fn corpus<T: for<'a> Deserialize<'a>>(name: &str) -> Vec<T> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/poison").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn tool(value: &Value) -> Tool {
    Tool::read(Json::of(value).unwrap()).unwrap()
}

fn kind(finding: &Finding) -> String {
    serde_json::to_value(finding.kind).unwrap().as_str().unwrap().to_owned()
}

/// Everything found in one bad definition, alone and beside others.
fn findings(bad: &Bad) -> Vec<Finding> {
    let own = tool(&bad.tool);
    let others: Vec<Tool> = bad.beside.iter().map(|it| tool(&it.tool)).collect();
    let mut all: Vec<(&str, &Tool)> =
        bad.beside.iter().zip(&others).map(|(it, tool)| (&*it.server, tool)).collect();
    all.push((&bad.server, &own));
    let across = inspect_all(&all).into_iter().filter(|it| it.0 == others.len()).map(|it| it.1);
    inspect(&own).into_iter().chain(across).collect()
}

#[test]
fn poison_is_found() {
    let bad: Vec<Bad> = corpus("bad.json");
    assert!(bad.len() >= 100, "{}", bad.len());
    let mut table: BTreeMap<(String, u8), (usize, usize, usize)> = BTreeMap::new();
    let mut parts: BTreeMap<u8, (usize, usize)> = BTreeMap::new();
    for it in &bad {
        let found = findings(it);
        let caught = Verdict::of(&found) != Verdict::Clean;
        let named = it.kinds.iter().all(|kind_| found.iter().any(|it| kind(it) == *kind_));
        if it.part != HELD_OUT && (!caught || !named) {
            let shown: Vec<String> = found
                .iter()
                .map(|it| format!("{} {:.2} {}", kind(it), it.score, it.reason))
                .collect();
            let what = if caught { "other kind" } else { "MISSED" };
            println!("{what} (part {}): {} {:?} {shown:#?}", it.part, it.tool["name"], it.kinds);
        }
        for kind in &it.kinds {
            let row = table.entry((kind.clone(), it.part)).or_default();
            *row = (row.0 + 1, row.1 + usize::from(caught), row.2 + usize::from(named));
        }
        let part = parts.entry(it.part).or_default();
        *part = (part.0 + 1, part.1 + usize::from(caught));
    }
    println!("{:<14} part  all  found  by that kind", "kind");
    for ((kind, part), (all, caught, named)) in &table {
        println!("{kind:<14} {part:>4} {all:>4} {caught:>6} {named:>13}");
    }
    for (part, (all, caught)) in &parts {
        let recall = share(*caught, *all);
        let how = if *part == HELD_OUT { "held out" } else { "tuned on" };
        println!("part {part} ({how}): {caught} of {all}, recall {recall:.3}");
        let least = LEAST.iter().find(|it| it.0 == *part).unwrap().1;
        assert!(*caught >= least, "part {part}: {caught} found, {least} before");
    }
    let (all, caught) = parts.values().fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1));
    println!("all parts, mostly tuned on: {caught} of {all}, recall {:.3}", share(caught, all));
    assert!(share(caught, all) >= 0.9);
}

fn share(part: usize, whole: usize) -> f64 {
    f64::from(u32::try_from(part).unwrap()) / f64::from(u32::try_from(whole.max(1)).unwrap())
}

/// A definition that should be let be, with its part (0 for a real server's) and its server.
type Listed = (u8, String, Tool);

/// The share of tools that are taken for poisoned, alone or beside each other.
#[track_caller]
fn check_good(what: &str, tools: &[Listed]) {
    let all: Vec<(&str, &Tool)> = tools.iter().map(|(_, server, tool)| (&**server, tool)).collect();
    let mut found: Vec<Vec<Finding>> = all.iter().map(|it| inspect(it.1)).collect();
    for (at, finding) in inspect_all(&all) {
        found[at].push(finding);
    }
    let mut parts: BTreeMap<u8, (usize, usize)> = BTreeMap::new();
    for ((part, server, tool), found) in tools.iter().zip(&found) {
        let alarm = Verdict::of(found) != Verdict::Clean;
        let sum = parts.entry(*part).or_default();
        *sum = (sum.0 + 1, sum.1 + usize::from(alarm));
        if *part == HELD_OUT {
            continue;
        }
        if alarm {
            println!("ALARM {:.2} {server} {}: {found:#?}", score(found), tool.name);
        } else if !found.is_empty() {
            println!("hint  {:.2} {server} {}: {}", score(found), tool.name, found[0].reason);
        }
    }
    for (part, (all, alarms)) in &parts {
        println!("{what}, part {part}: {alarms} alarms of {all}");
    }
    let alarms: usize = parts.values().map(|it| it.1).sum();
    println!("{what}: {alarms} alarms of {}, {:.3}", tools.len(), share(alarms, tools.len()));
    assert!(share(alarms, tools.len()) <= 0.05, "{what}");
}

#[test]
fn good_definitions_are_let_be() {
    let good: Vec<Good> = corpus("good.json");
    assert!(good.len() >= 300, "{}", good.len());
    let tools: Vec<Listed> =
        good.iter().map(|it| (it.part, it.server.clone(), tool(&it.tool))).collect();
    check_good("good definitions", &tools);
}

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "where the real servers are is said by the environment"
)]
fn real_definitions_are_let_be() {
    let Some(installed) = std::env::var_os("TOOLCRIB_TOOLS").map(PathBuf::from) else {
        println!("NOT RUN: no real servers; ./scripts/test installs them and sets TOOLCRIB_TOOLS");
        assert!(std::env::var_os("TOOLCRIB_FULL").is_none(), "a full run leaves nothing out");
        return;
    };
    let node = |name: &str| {
        let script =
            installed.join(format!("node_modules/@modelcontextprotocol/{name}/dist/index.js"));
        vec!["node".into(), script]
    };
    let python = |name: &str| installed.join("venv/bin").join(name);
    let mut files = node("server-filesystem");
    files.push(std::env::temp_dir());
    let servers: [(&str, Vec<PathBuf>); 4] = [
        ("everything", node("server-everything")),
        ("files", files),
        ("time", vec![python("mcp-server-time")]),
        ("git", vec![python("mcp-server-git")]),
    ];
    let mut tools = Vec::new();
    for (server, command) in servers {
        let listed = list(&command);
        assert!(!listed.is_empty(), "{server}");
        tools.extend(listed.iter().map(|it| (0, server.to_owned(), tool(it))));
    }
    check_good("real definitions", &tools);
}

/// The tools of a server that speaks on its standard streams.
fn list(command: &[PathBuf]) -> Vec<Value> {
    let mut server = Command::new(&command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let (mut to, from) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } });
    writeln!(
        to,
        "{}",
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })
    )
    .unwrap();
    let mut tools = Vec::new();
    for line in BufReader::new(from).lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        if message["id"] == 1 && message.get("method").is_none() {
            writeln!(to, "{}", json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))
                .unwrap();
            writeln!(to, "{}", json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" }))
                .unwrap();
        } else if message["id"] == 2 {
            tools = message["result"]["tools"].as_array().cloned().unwrap_or_default();
            break;
        }
    }
    drop(to);
    server.kill().ok();
    server.wait().unwrap();
    tools
}

#[test]
fn few_good_definitions_get_hints_on_their_names() {
    let good: Vec<Good> = corpus("good.json");
    let mut with = 0;
    for it in &good {
        let hints = lint::hints(&tool(&it.tool), lint::Schema::ByHand);
        let names: Vec<&lint::Hint> = hints.iter().filter(|it| it.place == "name").collect();
        with += usize::from(!names.is_empty());
        for hint in names {
            println!("{}: {} {:?}", it.tool["name"], hint.message, hint.better);
        }
    }
    println!("hints on names: {with} of {}", good.len());
    assert!(share(with, good.len()) <= 0.05);
}
