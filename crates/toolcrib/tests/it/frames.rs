//! Every kind of frame that the gateway sends, to clients and to servers, held against the official schemas
//! of its revision.
//!
//! The schemas are not ours to carry: they are read from `$TOOLCRIB_DATA` (by default `../shared`).

use std::{collections::HashMap, fs, path::PathBuf};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry, soon},
    real::installed,
    relay::{Events, reply},
    serving::Serving,
};

const REVISIONS: [&str; 5] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"];

/// The schemas of one revision.
struct Schema {
    revision: &'static str,
    whole: Value,
}

impl Schema {
    fn all() -> Option<Vec<Self>> {
        let folder = std::env::var_os("TOOLCRIB_DATA").map(PathBuf::from);
        let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
        let folder = folder.unwrap_or(beside).join("data/mcp-schema");
        if !folder.is_dir() {
            println!("NOT RUN: there are no schemas in {}", folder.display());
            return None;
        }
        let read = |revision| {
            let text = fs::read_to_string(folder.join(revision).join("schema.json")).unwrap();
            Self { revision, whole: serde_json::from_str(&text).unwrap() }
        };
        Some(REVISIONS.into_iter().map(read).collect())
    }

    fn of<'a>(all: &'a [Self], revision: &str) -> &'a Self {
        all.iter().find(|it| it.revision == revision).unwrap()
    }

    /// Holds a value against one definition.
    #[track_caller]
    fn hold(&self, definition: &str, value: &Value) {
        let mut schema = self.whole.clone();
        let place = if schema.get("$defs").is_some() { "$defs" } else { "definitions" };
        assert!(schema[place].get(definition).is_some(), "{}: no {definition}", self.revision);
        schema["$ref"] = json!(format!("#/{place}/{definition}"));
        let validator = jsonschema::validator_for(&schema).unwrap();
        let faults: Vec<String> = validator
            .iter_errors(value)
            .map(|it| format!("{}: {it}", it.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{} {definition}\n{value:#}\n{faults:#?}", self.revision);
    }

    /// Holds a message of the gateway against the schema; `asked` is the method of what it answers.
    #[track_caller]
    fn message(&self, side: &str, asked: Option<&str>, message: &Value) {
        self.hold("JSONRPCMessage", message);
        if message.get("method").is_some() {
            let kind = if message.get("id").is_some() { "Request" } else { "Notification" };
            self.hold(&format!("{side}{kind}"), message);
        } else if let Some(result) = message.get("result") {
            match asked {
                Some(method) => self.hold(self.result_of(method), result),
                None => self.hold(&format!("{side}Result"), result),
            }
        } else {
            let modern = "2025-11-25" <= self.revision;
            self.hold(if modern { "JSONRPCErrorResponse" } else { "JSONRPCError" }, message);
        }
    }

    fn result_of(&self, method: &str) -> &'static str {
        match method {
            "initialize" => "InitializeResult",
            "server/discover" => "DiscoverResult",
            "tools/list" => "ListToolsResult",
            "tools/call" => "CallToolResult",
            "prompts/list" => "ListPromptsResult",
            "prompts/get" => "GetPromptResult",
            "resources/list" => "ListResourcesResult",
            "resources/templates/list" => "ListResourceTemplatesResult",
            "resources/read" => "ReadResourceResult",
            "completion/complete" => "CompleteResult",
            _ => "EmptyResult",
        }
    }
}

/// What a client of any era asks.
fn questions() -> Vec<(&'static str, Value)> {
    let prompt = json!({ "type": "ref/prompt", "name": "test_prompt_with_arguments" });
    vec![
        ("tools/list", json!({})),
        ("prompts/list", json!({})),
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("tools/call", json!({ "name": "test_simple_text", "arguments": {} })),
        ("tools/call", json!({ "name": "test_image_content" })),
        ("tools/call", json!({ "name": "test_audio_content" })),
        ("tools/call", json!({ "name": "test_embedded_resource" })),
        ("tools/call", json!({ "name": "test_error_handling" })),
        ("tools/call", json!({ "name": "no_such_tool" })),
        ("prompts/get", json!({ "name": "test_simple_prompt" })),
        ("prompts/get", json!({ "name": "no_such_prompt" })),
        ("resources/read", json!({ "uri": "test://static-text" })),
        ("resources/read", json!({ "uri": "test://static-binary" })),
        ("resources/read", json!({ "uri": "test://nothing" })),
        (
            "completion/complete",
            json!({ "ref": prompt, "argument": { "name": "arg1", "value": "" } }),
        ),
        ("no/such/method", json!({})),
    ]
}

/// The fixture of the conformance suite, which offers everything there is.
fn fixture(tools: &std::path::Path, era: &str) -> Folder {
    let script =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/fixture.py");
    let folder = Folder::workspace(&json!({
        "fixture": { "command": tools.join("venv/bin/python"), "args": [script, "stdio", "--era", era] },
    }));
    folder.write("network.yaml", "names: { upstream: bare }\n");
    folder
}

#[test]
fn what_legacy_clients_get() {
    let (Some(schemas), Some(tools)) = (Schema::all(), installed()) else { return };
    let folder = fixture(&tools, "legacy");
    let serving = Serving::start(folder.path());
    // Audio came with 2025-03-26, elicitation with 2025-06-18.
    for revision in &REVISIONS[..4] {
        let schema = Schema::of(&schemas, revision);
        let params = json!({ "protocolVersion": revision,
            "capabilities": { "elicitation": {}, "sampling": {}, "roots": {} },
            "clientInfo": { "name": "test", "version": "1" } });
        let ask = |session: Option<&str>, method: &str, params: &Value| {
            let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let headers: Vec<_> = session.map(|it| ("Mcp-Session-Id", it)).into_iter().collect();
            let answer = serving.post(&headers, &body);
            schema.message("Server", Some(method), &answer.json());
            answer
        };
        let session = ask(None, "initialize", &params).header("mcp-session-id").unwrap();
        let newer =
            |params: &Value| *revision == "2024-11-05" && params["name"] == "test_audio_content";
        for (method, params) in questions().into_iter().filter(|(_, it)| !newer(it)) {
            ask(Some(&session), method, &params);
        }
        ask(Some(&session), "ping", &json!({}));
        ask(Some(&session), "logging/setLevel", &json!({ "level": "debug" }));
        ask(Some(&session), "logging/setLevel", &json!({ "level": "loud" }));
        let watched = json!({ "uri": "test://watched-resource" });
        ask(Some(&session), "resources/subscribe", &watched);
        ask(Some(&session), "resources/unsubscribe", &watched);
        let mut talks = vec!["test_tool_with_logging", "test_tool_with_progress", "test_sampling"];
        if "2025-06-18" <= *revision {
            talks.push("test_elicitation");
        }
        for tool in talks {
            let mut events = Events::call(&serving, &session, 7, tool);
            while let Some((_, message)) = events.next() {
                schema.message("Server", Some("tools/call"), &message);
                if message.get("method").is_some() && message.get("id").is_some() {
                    let model = json!({ "action": "accept", "content": { "type": "text", "text": "x" },
                        "role": "assistant", "model": "m" });
                    reply(&serving, &session, &message["id"], &model);
                }
            }
        }
        for malformed in ["{", r#"{"jsonrpc":"1.0","id":3,"method":"ping"}"#, r#"{"a":1,"a":1}"#] {
            let answer =
                serving.request("POST", "/mcp", &[("Mcp-Session-Id", &session)], malformed);
            // An error that answers nobody has no id, which only the newest schemas can say.
            let mut answer = answer.json();
            if answer["id"].is_null() {
                answer["id"] = json!(0);
            }
            schema.message("Server", None, &answer);
        }
    }
}

#[test]
fn what_modern_clients_get() {
    let (Some(schemas), Some(tools)) = (Schema::all(), installed()) else { return };
    let folder = fixture(&tools, "modern");
    let serving = Serving::start(folder.path());
    let schema = Schema::of(&schemas, "2026-07-28");
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {}, "sampling": {} },
        "io.modelcontextprotocol/logLevel": "debug",
    });
    let with_meta = |params: &Value, token: bool| {
        let mut params = params.clone();
        params["_meta"] = meta.clone();
        if token {
            params["_meta"]["progressToken"] = json!("t");
        }
        params
    };
    let name = |params: &Value| {
        let name = params.get("name").or(params.get("uri"));
        name.and_then(Value::as_str).unwrap_or("none").to_owned()
    };
    let ask = |method: &str, params: &Value| {
        let params = with_meta(params, false);
        let body = json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params });
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
            ("Mcp-Name", &name(&params)),
        ];
        let answer = serving.post(&headers, &body).json();
        match answer["result"]["resultType"].as_str() {
            Some("input_required") => schema.hold("InputRequiredResult", &answer["result"]),
            _ => schema.message("Server", Some(method), &answer),
        }
    };
    ask("server/discover", &json!({}));
    for (method, params) in questions() {
        ask(method, &params);
    }
    ask("tools/call", &json!({ "name": "test_input_required_result_elicitation" }));
    ask("ping", &json!({}));
    let stream = |method: &str, params: &Value| {
        let body = json!({ "jsonrpc": "2.0", "id": 4, "method": method, "params": params });
        let headers = format!(
            "MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\nMcp-Name: {}",
            name(params)
        );
        Events::open(&serving, "POST", &headers, &body.to_string())
    };
    for tool in ["test_logging_tool", "test_tool_with_progress"] {
        let mut events = stream("tools/call", &with_meta(&json!({ "name": tool }), true));
        while let Some((_, message)) = events.next() {
            schema.message("Server", Some("tools/call"), &message);
        }
    }
    let wanted = json!({ "notifications": { "toolsListChanged": true, "promptsListChanged": true,
        "resourceSubscriptions": ["test://watched-resource"] } });
    let mut events = stream("subscriptions/listen", &with_meta(&wanted, false));
    let (_, first) = events.next().unwrap();
    schema.message("Server", None, &first);
    let honoured = &first["params"]["notifications"];
    assert_eq!(honoured, &wanted["notifications"], "{first}");
    ask("tools/call", &json!({ "name": "test_trigger_tool_change" }));
    schema.message("Server", None, &events.next().unwrap().1);
}

/// What servers get, noted by servers of every revision.
#[test]
fn what_servers_get() {
    let Some(schemas) = Schema::all() else { return };
    for revision in REVISIONS {
        let schema = Schema::of(&schemas, revision);
        let notes = Folder::new();
        let file = notes.file("notes");
        let plan = match revision {
            "2026-07-28" => Plan::modern(),
            _ => Plan::legacy().revision(revision),
        };
        let ask = Act::Ask("roots/list".to_owned(), "{}".to_owned());
        let plan = plan.tool("echo", Act::Echo).tool("hang", Act::Hang).tool("ask", ask);
        let folder = Folder::workspace(&json!({ "a": entry(&plan.notes(&file)) }));
        let serving = Serving::start(folder.path());
        let session = serving.session(&[], "2025-11-25");
        let post = |body: &Value| serving.post(&[("Mcp-Session-Id", &session)], body);
        let call = |id: u32, tool: &str| {
            json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": { "name": tool,
                "arguments": { "x": 1 }, "_meta": { "progressToken": id } } })
        };
        post(&call(1, "mcp__a__echo"));
        post(&json!({ "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel",
            "params": { "level": "info" } }));
        // Asked for roots, a client that has none lets the server hear an error.
        if revision != "2026-07-28" {
            post(&call(3, "mcp__a__ask"));
        }
        std::thread::scope(|scope| {
            scope.spawn(|| post(&call(4, "mcp__a__hang")));
            let hangs = || fs::read_to_string(&file).unwrap().contains(r#""name":"hang""#);
            soon("the call hangs", hangs);
            post(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
                "params": { "requestId": 4 } }));
        });
        let cancelled = || fs::read_to_string(&file).unwrap().contains("notifications/cancelled");
        soon("the server hears of it", cancelled);
        let mut kinds: HashMap<String, usize> = HashMap::new();
        for line in fs::read_to_string(&file).unwrap().lines() {
            let message: Value = serde_json::from_str(line).unwrap();
            let method = message["method"].as_str().unwrap_or("answer").to_owned();
            *kinds.entry(method.clone()).or_default() += 1;
            // The question of which era it is belongs to the newest revision.
            let probe = method == "server/discover";
            let schema = if probe { Schema::of(&schemas, "2026-07-28") } else { schema };
            schema.message("Client", None, &message);
        }
        assert!(5 <= kinds.len(), "{revision}: {kinds:?}");
    }
}
