//! The patterns of the guides, and the zoo of signatures: every tool is listed and called.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use super::{Caller, copy, repository};
use crate::{
    kit::{Folder, toolcrib},
    serving::Serving,
};

/// A small HTTP server on this machine.
struct Loopback(Child, String);

impl Loopback {
    fn start() -> Self {
        let script = repository("tests/python/loopback.py");
        let mut child = Command::new("python3").arg(script).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Self(child, address.trim().to_owned())
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Goes through a list of calls. Returns how many were made.
fn go_through(file: &str, serving: &Serving, loopback: &str) -> usize {
    let text = fs::read_to_string(repository(file)).unwrap().replace("${LOOPBACK}", loopback);
    let calls: Vec<Value> = serde_json::from_str(&text).unwrap();
    let mut caller = Caller::new(serving);
    let known = caller.tools();
    let (mut made, mut wrong) = (0, Vec::new());
    for call in &calls {
        let (tool, expect) = (call["tool"].as_str().unwrap(), &call["expect"]);
        let newer = call.get("python").is_some() || call["needs"] == "pydantic";
        if newer && !known.iter().any(|it| it == tool) {
            continue;
        }
        made += 1;
        let answer =
            caller.ask("tools/call", &json!({ "name": tool, "arguments": call["arguments"] }));
        if let Some(fault) = fault(&answer, expect) {
            wrong.push(format!("{tool} {}: {fault}: {answer}", call["arguments"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{made} of {} calls of {file}", calls.len());
    made
}

fn fault(answer: &Value, expect: &Value) -> Option<String> {
    if expect["hidden"] == true || expect["absent"] == true {
        let unknown = answer["error"]["code"] == -32602;
        return (!unknown).then(|| "it is there".to_owned());
    }
    let result = &answer["result"];
    let is_error = expect["isError"].as_bool().unwrap_or(false);
    if result["isError"] != is_error {
        return Some(format!("isError is not {is_error}"));
    }
    let parts = result["content"].as_array().cloned().unwrap_or_default();
    let texts: Vec<&str> = parts.iter().filter_map(|it| it["text"].as_str()).collect();
    let text = texts.join("\n");
    if let Some(whole) = expect["text"].as_str()
        && whole != text
    {
        return Some(format!("the text is not {whole:?}"));
    }
    let pieces = match &expect["text_contains"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if let Some(piece) = pieces.iter().find(|it| !text.contains(**it)) {
        return Some(format!("the text lacks {piece:?}"));
    }
    if let Some(structured) = expect.get("structured")
        && *structured != result["structuredContent"]
    {
        return Some(format!("the structure is not {structured}"));
    }
    let wanted = expect["parts"].as_array().cloned().unwrap_or_default();
    let has = |(at, part): (usize, &Value)| holds(&parts[at], part);
    (wanted.len() > parts.len() || !wanted.iter().enumerate().all(has))
        .then(|| "the parts differ".to_owned())
}

/// Whether `found` has at least the members of `wanted`.
fn holds(found: &Value, wanted: &Value) -> bool {
    match wanted {
        Value::Object(members) => members.iter().all(|(key, value)| holds(&found[key], value)),
        other => found == other,
    }
}

#[test]
fn every_pattern_of_the_guides_works() {
    let (folder, loopback) = (copy("examples/guide"), Loopback::start());
    let serving = Serving::start(folder.path());
    assert!(100 < go_through("tests/python/guide_calls.json", &serving, &loopback.1));
}

#[test]
fn every_signature_of_the_zoo_can_be_called_under_every_python() {
    for (version, path) in super::interpreters::installed() {
        let folder = copy("tests/python/zoo");
        let mode = if version.ends_with(['1', '3']) { "full" } else { "seed" };
        let settings = json!({ "python": { "interpreter": path, "schema": mode } });
        folder.write("network.yaml", settings.to_string());
        let serving = Serving::start(folder.path());
        assert!(240 < go_through("tests/python/zoo_calls.json", &serving, ""));
    }
}

/// What `toolcrib tools` says of each tool of the zoo.
fn schemas(mode: &str) -> BTreeMap<String, Value> {
    let folder: Folder = copy("tests/python/zoo");
    folder.write("network.yaml", format!("python: {{ schema: {mode} }}\n"));
    let tools = toolcrib(folder.path(), &["tools", "--json"]).json();
    tools
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let said = json!({ "description": it["description"], "input": it["inputSchema"],
                "output": it["outputSchema"] });
            (it["name"].as_str().unwrap().to_owned(), said)
        })
        .collect()
}

/// Some tools of the zoo need a newer Python, or pydantic; those that are there must be as they were.
#[test]
fn the_schemas_of_the_zoo_are_as_they_were() {
    for mode in ["seed", "full"] {
        let file = repository(&format!("tests/python/zoo_schemas.{mode}.json"));
        let found = schemas(mode);
        if std::env::var_os("TOOLCRIB_BLESS").is_some() {
            fs::write(&file, format!("{:#}\n", json!(found))).unwrap();
        }
        let text = fs::read_to_string(&file).unwrap();
        let known: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
        assert!(150 < found.len());
        let changed: Vec<String> = found
            .iter()
            .filter(|(name, said)| known.get(*name) != Some(said))
            .map(|(name, said)| format!("{name}: {said}\n was {:?}", known.get(name)))
            .collect();
        assert!(changed.is_empty(), "{mode}: {}", changed.join("\n"));
        let absent: Vec<&String> = known.keys().filter(|it| !found.contains_key(*it)).collect();
        println!("{mode}: {} compared, not here: {absent:?}", found.len());
    }
}

#[test]
fn the_seeds_example_yields_the_seeds_schema() {
    let folder = super::workspace(
        "from typing import List, Optional\n@tool\nasync def create_task(\n    title: str,\n    \
         priority: int = 1,\n    tags: Optional[List[str]] = None\n) -> dict:\n    \
         \"\"\"Create a new task.\"\"\"\n    return {}\n",
    );
    let tools = toolcrib(folder.path(), &["tools", "--json"]).json();
    let expected = r#"{"type":"object","properties":{"title":{"type":"string"},"priority":{"type":"integer"},"tags":{"type":"array"}},"required":["title"]}"#;
    assert_eq!(tools[0]["inputSchema"].to_string(), expected);
    folder.write("network.yaml", "python: { schema: full }\n");
    let tools = toolcrib(folder.path(), &["tools", "--json"]).json();
    assert_eq!(tools[0]["inputSchema"]["properties"]["tags"]["items"], json!({ "type": "string" }));
}

#[test]
fn a_tool_asks_calls_logs_and_reports() {
    let folder = super::workspace(
        "@tool\nasync def outer(ctx: Context, depth: int = 0) -> dict:\n    ctx.info('working')\n    \
         ctx.progress(1, 2, 'half')\n    inner = await ctx.call('inner', word='x')\n    \
         return {'inner': inner, 'group': ctx.group}\n\
         @tool\ndef inner(word: str) -> str:\n    return word * 2\n\
         @tool\ndef deeper(ctx: Context) -> str:\n    return ctx.call('deeper')\n\
         @tool\nasync def hidden(ctx: Context) -> str:\n    return await ctx.call('secret_tool')\n\
         @tool\ndef secret_tool() -> str:\n    return 'seen'\n",
    );
    folder.write("network.yaml", "external_access: { excluded_tools: [secret_tool] }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let result = caller.call("outer", &json!({}));
    assert_eq!(result["structuredContent"], json!({ "inner": "xx", "group": "guest" }));
    assert!(caller.error("deeper", &json!({})).contains("more than 8 deep"));
    assert!(caller.error("hidden", &json!({})).contains("Unknown tool"), "rules hold inside too");
}

#[test]
fn new_tool_writes_a_tool_that_works_and_a_test_that_passes() {
    let folder = Folder::new();
    let run = toolcrib(folder.path(), &["new", "tool", "greet"]);
    assert_eq!(
        run.out,
        "wrote tools/greet.py and tests/test_greet.py\ntry it: toolcrib call greet name=World\n"
    );
    let run = toolcrib(folder.path(), &["call", "greet", "name=World"]);
    assert_eq!(run.out, "Hello, World!\n", "{}", run.transcript());
    let beside = std::path::Path::new(env!("CARGO_BIN_EXE_toolcrib")).parent().unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut tests = Command::new("python3");
    tests.args(["-m", "unittest", "discover", "tests"]).current_dir(folder.path());
    let run = crate::kit::run(tests.env("PATH", format!("{}:{path}", beside.display())));
    assert_eq!(run.code, 0, "{}", run.transcript());
    assert!(run.err.contains("Ran 2 tests"), "{}", run.err);
    let again = toolcrib(folder.path(), &["new", "tool", "greet"]);
    assert_eq!(again.code, 2);
    assert!(again.err.contains("nothing was written"), "{}", again.err);
    for odd in ["", "Greet", "../x", "class", "2nd"] {
        assert_eq!(toolcrib(folder.path(), &["new", "tool", odd]).code, 2, "{odd}");
    }
}

#[test]
fn a_result_that_does_not_fit_its_output_schema_is_told() {
    let folder = super::workspace(
        "SCHEMA = {'type': 'object', 'properties': {'n': {'type': 'integer'}}, 'required': ['n']}\n\
         @tool(output_schema=SCHEMA)\ndef fits(n) -> dict:\n    return {'n': n}\n\
         @tool(output_schema={'type': 'nonsense'})\ndef odd() -> dict:\n    return {}\n",
    );
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    assert_eq!(caller.call("fits", &json!({ "n": 1 }))["structuredContent"], json!({ "n": 1 }));
    let said = caller.error("fits", &json!({ "n": "x" }));
    assert_eq!(
        said,
        "Error: the result does not fit the output schema: /n: must be an integer (type), found \"x\""
    );
    caller.text("odd", &json!({}));
    let check = toolcrib(folder.path(), &["check", "--json"]).json();
    assert!(check["problems"][0]["message"].as_str().unwrap().contains("odd: its output schema"));
}

#[test]
fn progress_and_logs_reach_the_client_before_the_answer() {
    let folder = super::workspace(
        "@tool\nasync def steps():\n    yield Progress(1, 3, 'one')\n    yield Progress(2, 3)\n    yield 'done'\n\
         @tool\ndef plain(ctx: Context) -> str:\n    ctx.progress(1)\n    ctx.warning('careful')\n    return 'done'\n",
    );
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let heard = |tool: &str| -> Vec<Value> {
        let call = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call",
            "params": { "name": tool, "arguments": {}, "_meta": { "progressToken": "t" } } });
        let headers = [
            ("Mcp-Session-Id", session.as_str()),
            ("Accept", "application/json, text/event-stream"),
        ];
        let body = serving.post(&headers, &call).body;
        let lines = body.lines().filter_map(|it| it.strip_prefix("data: "));
        lines.filter_map(|it| serde_json::from_str(it).ok()).collect()
    };
    let steps = heard("steps");
    let progress: Vec<&Value> = steps
        .iter()
        .filter(|it| it["method"] == "notifications/progress")
        .map(|it| &it["params"])
        .collect();
    assert_eq!(
        progress,
        [
            &json!({ "progressToken": "t", "progress": 1, "total": 3, "message": "one" }),
            &json!({ "progressToken": "t", "progress": 2, "total": 3 }),
        ]
    );
    assert_eq!(steps.last().unwrap()["result"]["content"][0]["text"], "done");
    let plain = heard("plain");
    assert_eq!(plain[0]["params"]["progress"], 1);
    assert_eq!(
        plain[1]["params"],
        json!({ "level": "warning", "logger": "plain", "data": "careful" })
    );
}
