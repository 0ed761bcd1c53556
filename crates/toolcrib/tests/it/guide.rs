//! The guide's example servers, in three languages behind a gateway: one list of calls, and one answer to each.
//!
//! `tests/guide/calls.json` has good, missing, wrong and hostile arguments. A call that names `faults` must be answered
//! by the gateway, and the server must not hear of it: each server writes down every call that reaches it. What is
//! `unseen_by` a server is taken out by its SDK, so that the server alone cannot refuse it.

// The same file is the example `guide_mod`.
#[path = "../../../../examples/guide-servers/rust/guide_mod.rs"]
mod guide_mod;

use std::{
    any::Any,
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Map, Value, json};
use toolcrib::{
    catalogue::{Json, Tool, lint},
    server::{Door, HttpSettings},
};

use crate::{
    kit::{Folder, toolcrib},
    real::installed,
    serving::{Line, Serving},
};
use guide_mod::{GuideMod, Place};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// What `api_call` calls: a small HTTP server on this machine.
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

/// A gateway before one of the servers.
struct World {
    // Ends before its folder goes away.
    _running: Box<dyn Any>,
    address: String,
    /// What stands before the name of a tool.
    prefix: &'static str,
    folder: Folder,
    api: Loopback,
}

/// The entry of an `mcp.json` for a server of the examples.
fn entry(language: &str, tools: &Path, folder: &Folder, api: &str) -> Value {
    let env = json!({ "GUIDE_DATA": repository("examples/guide-servers/data"), "GUIDE_API": api,
        "GUIDE_LOG": folder.file("log"), "GUIDE_API_KEY": "not-to-be-seen" });
    if language == "python" {
        let server = repository("examples/guide-servers/python/server.py");
        return json!({ "command": tools.join("venv/bin/python"), "args": [server], "env": env });
    }
    // Node looks for packages beside the file, where a user's `npm install` puts them.
    let text = fs::read(repository("examples/guide-servers/typescript/server.mjs")).unwrap();
    let server = folder.write("typescript/server.mjs", text);
    let packages = folder.file("typescript/node_modules");
    std::os::unix::fs::symlink(tools.join("node_modules"), packages).unwrap();
    json!({ "command": "node", "args": [server], "env": env })
}

impl World {
    /// A server made with an SDK, behind `toolcrib serve`.
    fn sdk(language: &'static str, tools: &Path, network: &str) -> Self {
        let (folder, api) = (Folder::new(), Loopback::start());
        let servers = json!({ language: entry(language, tools, &folder, &api.1) });
        folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
        folder.write("network.yaml", network);
        let serving = Serving::start(folder.path());
        let prefix = if language == "python" { "mcp__python__" } else { "mcp__typescript__" };
        let address = serving.address.clone();
        Self { address, prefix, folder, api, _running: Box::new(serving) }
    }

    /// The mod in Rust, in a gateway as an embedder starts it, behind a real port.
    fn rust() -> Self {
        let (folder, api) = (Folder::new(), Loopback::start());
        let place = Place {
            data: repository("examples/guide-servers/data"),
            api: Some(api.1.clone()),
            log: Some(folder.file("log")),
        };
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let address = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let gateway = guide_mod::gateway(&GuideMod::new(place));
            let door = Door::new(gateway, HttpSettings::default(), address);
            runtime.spawn(async move { door.serve(listener).await });
            address.to_string()
        });
        Self { address, prefix: "", folder, api, _running: Box::new(runtime) }
    }

    /// How many calls have reached the server.
    fn reached(&self) -> usize {
        let log = fs::read_to_string(self.folder.file("log")).unwrap_or_default();
        log.lines().filter(|it| it.starts_with("call ")).count()
    }

    fn session(&self) -> String {
        let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let answer = Line::to(&self.address).post_with(&[], &body.to_string());
        answer.header("mcp-session-id").unwrap()
    }

    /// One request, with these parameters as text: not all of them are JSON that could be written anew.
    fn ask(&self, session: &str, method: &str, params: &str) -> Value {
        let body = format!(r#"{{"jsonrpc":"2.0","id":7,"method":"{method}","params":{params}}}"#);
        Line::to(&self.address).post(session, &body).json()
    }

    /// The tools as a client sees them, by the names that their server gave them.
    fn tools(&self) -> Vec<Value> {
        let listed = self.ask(&self.session(), "tools/list", "{}");
        let mut tools = listed["result"]["tools"].as_array().unwrap().clone();
        for tool in &mut tools {
            tool["name"] = tool["name"].as_str().unwrap().strip_prefix(self.prefix).unwrap().into();
        }
        tools
    }
}

/// A value of the list, with what is too long to be written there.
fn expand(value: &Value) -> Value {
    match value {
        Value::Object(members) => match (members.get("$repeat"), members.get("$nest")) {
            (Some(repeat), _) => {
                let times = usize::try_from(repeat[1].as_u64().unwrap()).unwrap();
                repeat[0].as_str().unwrap().repeat(times).into()
            }
            (_, Some(deep)) => {
                (0..deep.as_u64().unwrap()).fold(json!(1), |inner, _| json!([inner]))
            }
            _ => members
                .iter()
                .map(|(key, it)| (key.clone(), expand(it)))
                .collect::<Map<_, _>>()
                .into(),
        },
        Value::Array(items) => items.iter().map(expand).collect(),
        other => other.clone(),
    }
}

/// The parameters of a call, as text.
fn params(world: &World, call: &Value) -> String {
    let name = json!(format!("{}{}", world.prefix, call["tool"].as_str().unwrap()));
    let arguments = match (call.get("raw"), call.get("arguments")) {
        (Some(raw), _) => {
            let deep = format!("{}1{}", "[".repeat(5000), "]".repeat(5000));
            raw.as_str().unwrap().replace("${DEEP}", &deep)
        }
        (None, Some(arguments)) => expand(arguments).to_string().replace("${API}", &world.api.1),
        (None, None) => return format!(r#"{{"name":{name}}}"#),
    };
    format!(r#"{{"name":{name},"arguments":{arguments}}}"#)
}

/// Whether two values are alike; 85 and 85.0 are.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let has =
                |(key, it): (&String, &Value)| b.get(key).is_some_and(|other| alike(it, other));
            a.len() == b.len() && a.iter().all(has)
        }
        _ => a == b,
    }
}

/// Who holds arguments against the schema.
#[derive(Clone, Copy, PartialEq)]
enum Checks {
    Gateway,
    Server,
}

/// What is wrong with an answer.
fn fault(call: &Value, answer: &Value, checks: Checks) -> Option<String> {
    if let Some(code) = call.get("error") {
        let other = answer["error"]["code"] != *code;
        return other.then(|| format!("it is not an error {code}"));
    }
    let result = &answer["result"];
    let refused = call.get("faults").is_some();
    let is_error = refused || call["isError"] == true;
    if result["isError"] != is_error {
        return Some(format!("isError is not {is_error}"));
    }
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    if refused && checks == Checks::Server {
        return (!text.starts_with("Invalid input: ") && !text.starts_with("Error: "))
            .then(|| "it does not say what is wrong".to_owned());
    }
    if call["text"].as_str().is_some_and(|it| it != text) {
        return Some(format!("the text is not {}", call["text"]));
    }
    if call["contains"].as_str().is_some_and(|it| !text.contains(it)) {
        return Some(format!("the text lacks {}", call["contains"]));
    }
    let found = &result["structuredContent"];
    if call.get("structured").is_some_and(|it| !alike(it, found)) {
        return Some(format!("the structure is not {}", call["structured"]));
    }
    let keywords = |it: &Value| -> Vec<String> {
        let one = |it: &Value| it.as_str().or(it["keyword"].as_str()).unwrap().to_owned();
        let mut all: Vec<String> = it.as_array().into_iter().flatten().map(one).collect();
        all.sort();
        all
    };
    let (told, meant) = (&result["_meta"]["toolcrib/faults"], &call["faults"]);
    (refused && keywords(told) != keywords(meant)).then(|| format!("the faults are not {meant}"))
}

/// Makes all calls of the list, and says which went otherwise.
fn go_through(world: &World, checks: Checks) {
    let list = fs::read_to_string(repository("tests/guide/calls.json")).unwrap();
    let calls: Vec<Value> = serde_json::from_str(&list).unwrap();
    let (session, mut wrong) = (world.session(), Vec::new());
    for call in &calls {
        let unseen = call["unseen_by"].as_str().is_some_and(|it| world.prefix.contains(it));
        if unseen && checks == Checks::Server {
            continue;
        }
        let before = world.reached();
        let answer = world.ask(&session, "tools/call", &params(world, call));
        let stopped = call.get("error").is_some()
            || (call.get("faults").is_some() && checks == Checks::Gateway);
        let reached = world.reached() - before;
        let where_to = (reached != usize::from(!stopped))
            .then(|| format!("{reached} calls reached the server"));
        if let Some(fault) = fault(call, &answer, checks).or(where_to) {
            let mut said = answer.to_string();
            said.truncate(said.floor_char_boundary(800));
            wrong.push(format!("{call}\n  {fault}: {said}"));
        }
    }
    println!("{} calls, {} otherwise", calls.len(), wrong.len());
    assert!(170 < calls.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn the_mod_in_rust_answers_every_call_as_it_should() {
    go_through(&World::rust(), Checks::Gateway);
}

#[test]
fn the_server_made_with_the_python_sdk_answers_every_call_as_it_should() {
    let Some(tools) = installed() else { return };
    go_through(&World::sdk("python", &tools, ""), Checks::Gateway);
}

#[test]
fn the_server_made_with_the_typescript_sdk_answers_every_call_as_it_should() {
    let Some(tools) = installed() else { return };
    go_through(&World::sdk("typescript", &tools, ""), Checks::Gateway);
}

/// The servers do not rely on the gateway; and a gateway that did not check would be noticed above.
#[test]
fn without_the_gateways_checks_the_servers_refuse_the_same_calls() {
    let Some(tools) = installed() else { return };
    for language in ["python", "typescript"] {
        let network = "validation: { arguments: off }\n";
        go_through(&World::sdk(language, &tools, network), Checks::Server);
    }
}

/// What a schema demands, without the words.
fn demands(schema: &Value) -> Value {
    let Value::Object(members) = schema else { return schema.clone() };
    let mut kept = Map::new();
    for (key, value) in members {
        match key.as_str() {
            "description" | "title" | "$schema" => {}
            // How wide a number is in Rust is no demand of JSON Schema.
            "format" if !matches!(value.as_str(), Some("email" | "uri")) => {}
            // What demands nothing may be said or not.
            "required" if *value == json!([]) => {}
            "properties" if *value == json!({}) => {}
            "additionalProperties" if *value == json!(true) => {}
            "properties" => {
                let each = value.as_object().unwrap().iter();
                let each = each.map(|(name, it)| (name.clone(), demands(it)));
                kept.insert(key.clone(), each.collect::<Map<_, _>>().into());
            }
            "items" => drop(kept.insert(key.clone(), demands(value))),
            _ => drop(kept.insert(key.clone(), value.clone())),
        }
    }
    kept.into()
}

#[test]
fn the_three_define_the_same_tools() {
    let Some(installed) = installed() else { return };
    let rust = World::rust().tools();
    assert_eq!(rust.len(), 17);
    for language in ["python", "typescript"] {
        let other = World::sdk(language, &installed, "").tools();
        assert_eq!(rust.len(), other.len(), "{language}");
        for (ours, theirs) in rust.iter().zip(&other) {
            let name = &ours["name"];
            for member in ["name", "description", "annotations"] {
                assert_eq!(ours[member], theirs[member], "{language}: {name}");
            }
            let (ours, theirs) = (demands(&ours["inputSchema"]), demands(&theirs["inputSchema"]));
            assert!(alike(&ours, &theirs), "{language}: {name}\n{ours:#}\n{theirs:#}");
        }
    }
}

#[test]
fn check_has_nothing_to_say_of_them() {
    for tool in World::rust().tools() {
        let tool = Tool::read(Json::of(&tool).unwrap()).unwrap();
        assert_eq!(lint::hints(&tool, lint::Schema::ByHand), [], "{}", tool.name);
    }
    let Some(tools) = installed() else { return };
    let folder = Folder::new();
    let entry = |language| entry(language, &tools, &folder, "");
    let servers = json!({ "python": entry("python"), "typescript": entry("typescript") });
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    let report = toolcrib(folder.path(), &["check", "--json"]);
    assert_eq!(report.code, 0, "{}", report.transcript());
    let report = report.json();
    assert_eq!((&report["problems"], &report["tools"]), (&json!([]), &json!(34)), "{report:#}");
}
