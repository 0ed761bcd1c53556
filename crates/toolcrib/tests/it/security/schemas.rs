//! Schemas and documents that lead elsewhere, multiply, or never end.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolcrib_catalogue::{Checked, Json, Look, OnFault, SchemaFault, Tool};
use toolcrib_testkit::{Act, Plan};

use super::{
    definitions::{listing, tool},
    evil::Canary,
    is_full, logging, told,
};
use crate::{
    guarded::{Client, calls},
    kit::{Folder, entry, within},
    serving::Serving,
};

fn with(name: &str, schema: &Value) -> Value {
    json!({ "name": name, "description": "Looks something up.", "inputSchema": schema })
}

#[test]
fn e08_nothing_that_a_schema_points_to_is_fetched_by_anybody() {
    let canary = Canary::new();
    let properties = |to: &str| json!({ "type": "object", "properties": { "a": { "$ref": to } } });
    let url = canary.url("/schema.json");
    let mut promise = tool("promise", "Promises.");
    promise["outputSchema"] = properties(&url);
    let definitions = [
        with("http", &properties(&url)),
        with("file", &properties("file:///etc/passwd")),
        with("relative", &properties("other.json#/a")),
        with("dynamic", &json!({ "type": "object", "$dynamicRef": url })),
        with("dialect", &json!({ "type": "object", "$schema": url })),
        with(
            "based",
            &json!({ "$id": url, "type": "object", "properties": { "a": { "$ref": "b.json" } } }),
        ),
        promise,
        tool("plain", "Adds two numbers."),
    ];
    let folder = listing(Plan::legacy(), &definitions);
    let serving = logging(&folder);
    let client = Client::new(&serving, None);
    assert_eq!(client.names(), ["mcp__s__plain", "mcp__s__promise"]);
    // Nor is a client led there.
    let listed = client.answer("tools/list", &json!({})).body;
    assert!(!listed.contains(&url), "{listed}");
    for name in ["http", "file", "relative", "dynamic", "dialect", "based"] {
        let answer = client.call(&format!("mcp__s__{name}"), &json!({ "a": 1 }));
        let unknown = format!("Unknown tool: mcp__s__{name}");
        assert_eq!(answer["error"]["message"], unknown.as_str(), "{answer}");
    }
    assert_eq!(calls(&folder.file("notes")), 0);
    told(&folder, "schema", 7);
    let log = fs::read_to_string(folder.file("log")).unwrap();
    assert!(log.contains("nothing is ever fetched") && !log.contains("root:"), "{log}");
    canary.assert_alone();
}

/// `$defs` that each name the one below twice.
fn doubling(levels: usize) -> Value {
    let mut defs = json!({ "d0": { "type": "string" } });
    for level in 1..=levels {
        let below = json!({ "$ref": format!("#/$defs/d{}", level - 1) });
        defs[format!("d{level}")] = json!({ "allOf": [below, below] });
    }
    let top = json!({ "$ref": format!("#/$defs/d{levels}") });
    json!({ "type": "object", "properties": { "a": top }, "$defs": defs })
}

/// `$defs` that each lead to the next.
fn chain(length: usize) -> Value {
    let next = |it| (format!("d{it}"), json!({ "$ref": format!("#/$defs/d{}", it + 1) }));
    let mut defs: serde_json::Map<String, Value> = (0..length).map(next).collect();
    defs.insert(format!("d{length}"), json!({ "type": "string" }));
    json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/d0" } }, "$defs": defs })
}

fn nots(depth: usize) -> String {
    format!("{}{{}}{}", r#"{"not":"#.repeat(depth), "}".repeat(depth))
}

/// Such tools are served with a schema that takes anything, or not at all, as the workspace wants it.
#[track_caller]
fn check_refused(definitions: &[Value]) {
    for (rule, served) in [("permit", true), ("refuse", false)] {
        let all = [definitions, &[tool("plain", "Adds two numbers.")]].concat();
        let folder = listing(Plan::legacy(), &all);
        folder.write("network.yaml", format!("validation: {{ schemas: {rule} }}\n"));
        let begin = Instant::now();
        let serving = Serving::start(folder.path());
        let client = Client::new(&serving, None);
        assert_eq!(client.text("mcp__s__plain", &json!({})), "{}");
        println!("{rule}: up and called after {:?}", begin.elapsed());
        let tools = client.tools();
        for definition in definitions {
            let name = format!("mcp__s__{}", definition["name"].as_str().unwrap());
            let found = tools.iter().find(|it| it["name"] == name.as_str());
            assert_eq!(found.is_some(), served, "{rule}: {name}");
            let begin = Instant::now();
            let answer = client.call(&name, &json!({ "a": "x" }));
            assert!(!is_full() || begin.elapsed() < Duration::from_millis(50), "{name}");
            assert_eq!(answer["result"]["isError"] == false, served, "{rule}: {answer}");
            if let Some(found) = found {
                assert_eq!(found["inputSchema"], json!({ "type": "object" }), "{name}");
            }
        }
        told(&folder, "schema", definitions.len());
    }
}

/// The look at a definition with this schema, which may take so much processor time.
#[track_caller]
fn looked(schema: &Value, most: Duration) -> Look {
    let given = |schema: &Value| {
        let given = Json::parse(with("x", schema).to_string()).unwrap();
        Arc::new(Tool::read(given).unwrap())
    };
    // What is made ready once for all looks is no part of this one.
    Look::at(&given(&json!({ "type": "object" })), OnFault::RefuseRemote);
    within(most, || Look::at(&given(schema), OnFault::RefuseRemote))
}

/// Holds a value against a schema, which may take so much processor time; says by which keyword it was refused.
#[track_caller]
fn checked(schema: &Value, value: &Value, most: Duration) -> Option<&'static str> {
    let Checked::Strict(validator) = looked(schema, Duration::from_millis(50)).input else {
        panic!("it is not checked: {schema}")
    };
    let value = Json::parse(value.to_string()).unwrap();
    let faults = within(most, || validator.check(&value)).err()?;
    Some(faults.list()[0].keyword)
}

#[test]
fn e09_definitions_that_multiply_are_seen_before_they_are_used() {
    for levels in [28, 40] {
        let look = looked(&doubling(levels), Duration::from_millis(50));
        assert!(look.input.fault().is_some_and(SchemaFault::is_heavy), "{levels}: {look:?}");
    }
    check_refused(&[with("d40", &doubling(40)), with("d28", &doubling(28))]);
}

#[test]
fn e10_long_chains_and_deep_nesting_harm_nobody() {
    let long = chain(50_000);
    assert!(1_000_000 < long.to_string().len());
    let deep: Value = serde_json::from_str(&nots(100)).unwrap();
    check_refused(&[with("long", &long), with("shorter", &chain(1_500)), with("deep", &deep)]);
}

/// Deeper than anybody reads JSON: from a server, a document, a mod.
#[test]
fn e10_what_is_nested_a_thousand_times_takes_only_itself_along() {
    let folder = Folder::new();
    let deep = format!(r#"[{{"name":"deep","inputSchema":{}}}]"#, nots(1_000));
    let line = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{{"tools":{deep}}}}}"#);
    let script = folder.write("deep.py", DEEP.replace("LINE", &format!("{line:?}")));
    let good = Plan::legacy().tool("echo", Act::Echo);
    let servers =
        json!({ "deep": { "command": "python3", "args": [script] }, "good": entry(&good) });
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    let document = |name: &str, payload: &str| {
        format!(
            r##"{{"asyncapi":"3.0.0","info":{{"title":"t","version":"1"}},"channels":{{"c":{{"address":"a.{name}",
            "messages":{{"m":{{"payload":{payload}}}}}}}}},"operations":{{"{name}":{{"action":"send",
            "channel":{{"$ref":"#/channels/c"}},"x-agent-tool":{{"enabled":true}}}}}}}}"##
        )
    };
    folder.write("events/deep.json", document("deep_event", &nots(1_000)));
    folder.write("events/deep.yaml", document("deep_yaml", &nots(1_000)));
    folder.write("events/good.json", document("good_event", r#"{"type":"object"}"#));
    folder.write("mods/deep.py", MOD);
    folder.write("tools/good.py", "from toolcrib import tool\n\n@tool\ndef good_tool(a: str = 'x') -> str:\n    \"\"\"Gives back.\"\"\"\n    return a\n");
    folder.write("network.yaml", "mods: [mods.deep]\n");
    let serving = logging(&folder);
    let client = Client::new(&serving, None);
    let names = client.names();
    for name in ["mcp__good__echo", "good_event", "good_tool"] {
        assert!(names.contains(&name.to_owned()), "{name}: {names:?}");
        let answer = client.call(name, &json!({}));
        assert_eq!(answer["result"]["isError"], false, "{name}: {answer}");
    }
    assert!(!names.iter().any(|it| it == "deep_event" || it == "deep_yaml"), "{names:?}");
    let log = fs::read_to_string(folder.file("log")).unwrap();
    for told in ["events/deep.json", "events/deep.yaml", "nested deeper than 127"] {
        assert!(log.contains(told), "{told}: {log}");
    }
    // Whatever became of the mod's tool, a call of it ends.
    client.call("deep_mod", &json!({ "a": 1 }));
    assert_eq!(client.text("mcp__good__echo", &json!({})), "{}");
}

const DEEP: &str = r#"
import json, sys
line = LINE
for text in sys.stdin:
    m = json.loads(text)
    if m.get("method") == "initialize":
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "result": {"protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}}, "serverInfo": {"name": "deep", "version": "1"}}}), flush=True)
    elif m.get("method") == "tools/list":
        print(line.replace("$ID", str(m["id"])), flush=True)
    elif "id" in m:
        print(json.dumps({"jsonrpc": "2.0", "id": m["id"], "error": {"code": -32601, "message": "no"}}), flush=True)
"#;

const MOD: &str = "
from openagents.models.tool import AgentTool

def deep():
    schema = {}
    for _ in range(1000):
        schema = {'not': schema}
    return schema

class Deep:
    def __init__(self, config):
        pass

    def get_tools(self):
        async def run(**arguments):
            return 'ran'
        return [AgentTool(name='deep_mod', description='Is deep.', input_schema=deep(), func=run)]
";

#[test]
fn e11_references_in_a_circle_end_and_trees_are_checked() {
    let node = json!({ "type": "object", "additionalProperties": false, "properties": {
        "next": { "$ref": "#/$defs/node" }, "v": { "type": "integer" } } });
    let tree = json!({ "type": "object", "$ref": "#/$defs/node", "$defs": { "node": node } });
    let round = |a: &str, b: &str| {
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/a" } },
            "$defs": { "a": { "$ref": a }, "b": { "$ref": b } } })
    };
    let definitions = [
        with("tree", &tree),
        with("own", &round("#/$defs/a", "#/$defs/b")),
        with("pair", &round("#/$defs/b", "#/$defs/a")),
        with("root", &json!({ "$ref": "#" })),
    ];
    let folder = listing(Plan::legacy(), &definitions);
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    for name in ["own", "pair", "root"] {
        let begin = Instant::now();
        let answer = client.call(&format!("mcp__s__{name}"), &json!({ "a": { "a": {} } }));
        assert_eq!(answer["result"]["isError"], false, "{name}: {answer}");
        assert!(!is_full() || begin.elapsed() < Duration::from_millis(50), "{name}");
    }
    let nested =
        |last: Value| (0..100).fold(json!({ "v": last }), |inner, _| json!({ "next": inner }));
    let ten = Duration::from_millis(10);
    for schema in
        [round("#/$defs/a", "#/$defs/b"), round("#/$defs/b", "#/$defs/a"), json!({ "$ref": "#" })]
    {
        assert!(looked(&schema, ten).input.fault().is_some(), "{schema}");
    }
    assert_eq!(checked(&tree, &nested(json!(1)), ten), None);
    assert_eq!(checked(&tree, &nested(json!("x")), ten), Some("type"));
    let before = calls(&folder.file("notes"));
    let answer = client.call("mcp__s__tree", &nested(json!(1)));
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    let answer = client.call("mcp__s__tree", &nested(json!("x")));
    assert_eq!(answer["result"]["_meta"]["toolcrib/faults"][0]["keyword"], "type", "{answer}");
    assert_eq!(calls(&folder.file("notes")), before + 1);
}

#[test]
fn e12_no_pattern_takes_more_than_linear_time() {
    let patterns = [
        ("back", r"^(a+)+\1$"),
        ("ahead", r"^(?=(a+)+$)b"),
        ("behind", r"(?<=a+)b$"),
        ("large", "((a{1,1000}){1,1000}){1,1000}"),
        ("usual", "^(a+)+$"),
    ];
    let definition = |(name, pattern): &(&str, &str)| {
        with(
            name,
            &json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": pattern } } }),
        )
    };
    let definitions: Vec<Value> = patterns.iter().map(definition).collect();
    let folder = listing(Plan::legacy(), &definitions);
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    let text = format!("{}!", "a".repeat(30_000));
    for (name, _) in patterns {
        let begin = Instant::now();
        let answer = client.call(&format!("mcp__s__{name}"), &json!({ "a": text }));
        let time = begin.elapsed();
        println!("{name}: {time:?}");
        assert!(time < Duration::from_secs(5), "{name}: {time:?}");
        assert!(!is_full() || time < Duration::from_millis(100), "{name}: {time:?}");
        // What can be run in linear time is held against; the rest is the server's business.
        assert_eq!(answer["result"]["isError"], name == "usual", "{name}: {answer}");
    }
    told(&folder, "schema", 4);
}

#[test]
fn e13_a_check_that_takes_too_long_is_given_up_and_nothing_runs() {
    let schema = json!({ "type": "object", "properties": {
        "a": { "type": "string", "pattern": "(x?y?z?[a-q]?){1,150}$" } } });
    let folder = listing(Plan::legacy(), &[with("heavy", &schema), tool("plain", "Adds.")]);
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    // 4 MiB is given up in time, and what is just not given up is checked in time.
    let checked = |bytes: usize| {
        let text = &"abcxyz".repeat(bytes / 6 + 1)[..bytes];
        checked(&schema, &json!({ "a": text }), Duration::from_millis(100))
    };
    assert_eq!(checked(4 << 20), Some("budget"));
    assert_eq!(checked(16_000), Some("budget"));
    assert_ne!(checked(15_000), Some("budget"));
    // As much of it as a request may carry.
    let text = "abcxyz".repeat(600_000);
    let begin = Instant::now();
    let answer = client.call("mcp__s__heavy", &json!({ "a": text }));
    let time = begin.elapsed();
    println!("given up after {time:?}");
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["_meta"]["toolcrib/faults"][0]["keyword"], "budget", "{answer}");
    assert!(!is_full() || time < Duration::from_millis(250), "{time:?}");
    assert_eq!(calls(&folder.file("notes")), 0);
    assert_eq!(client.text("mcp__s__plain", &json!({})), "{}");
}

fn document(payload: &str, channel: &str) -> String {
    format!(
        "asyncapi: 3.0.0\ninfo: {{title: t, version: '1'}}\nchannels:\n  c: {{address: a.b, messages: {{m: {{payload: {payload}}}}}}}\n\
         operations:\n  o: {{action: send, channel: {{$ref: '{channel}'}}, x-agent-tool: {{enabled: true, name: NAME}}}}\n"
    )
}

#[test]
fn e16_words_of_yaml_stay_words_and_a_number_is_no_text() {
    let folder = Folder::new();
    let payload =
        "{type: object, properties: {a: {enum: [no, yes, on, off, y, 1:30, ~x, '1_000']}}}";
    folder.write("events/a.yaml", document(payload, "#/channels/c").replace("NAME", "words"));
    // Where a text is meant, what is a number to YAML must be quoted.
    let plain = document("{type: object}", "#/channels/c").replace("NAME", "number");
    for (at, text) in ["1_000", "0o17", "017", "1e3", "true"].into_iter().enumerate() {
        let text = plain.replace("address: a.b", &format!("address: {text}"));
        folder.write(&format!("events/number-{at}.yaml"), text);
    }
    let serving = logging(&folder);
    let client = Client::new(&serving, None);
    let tools = client.tools();
    assert_eq!(tools.len(), 1, "{tools:?}");
    let found = &tools[0]["inputSchema"]["properties"]["a"]["enum"];
    assert_eq!(found, &json!(["no", "yes", "on", "off", "y", "1:30", "~x", "1_000"]));
    let log = fs::read_to_string(folder.file("log")).unwrap();
    assert!((0..5).all(|at| log.contains(&format!("events/number-{at}.yaml"))), "{log}");
    // A token that looks like a number is the text that it is, or refuses the start.
    for token in ["1_000_000", "0o17171717", "12345678", "no"] {
        let folder = Folder::workspace(&json!({}));
        folder.write("network.yaml", format!("external_access: {{ auth_token: {token} }}\n"));
        let serving = Serving::start(folder.path());
        let bearer = format!("Bearer {token}");
        assert_eq!(serving.get("/readyz", &[("Authorization", &bearer)]).status, 200, "{token}");
        for other in ["Bearer 1000000", "Bearer 4072207", "Bearer false"] {
            assert_eq!(serving.get("/readyz", &[("Authorization", other)]).status, 401, "{token}");
        }
    }
}

#[test]
fn e17_a_document_refers_to_nothing_outside_of_the_workspace() {
    let canary = Canary::new();
    let folder = Folder::new();
    let web = canary.url("/a.yaml");
    let targets =
        ["../../../../../../../etc/passwd", "file:///etc/passwd", "/etc/passwd", web.as_str()];
    for (at, target) in targets.iter().enumerate() {
        let channel = document("{type: object}", &format!("{target}#/root"))
            .replace("NAME", &format!("c{at}"));
        folder.write(&format!("events/channel-{at}.yaml"), channel);
        let payload = document(&format!("{{$ref: '{target}'}}"), "#/channels/c");
        folder.write(
            &format!("events/payload-{at}.yaml"),
            payload.replace("NAME", &format!("p{at}")),
        );
    }
    folder.write(
        "events/good.yaml",
        document("{type: object}", "#/channels/c").replace("NAME", "good"),
    );
    let serving = logging(&folder);
    let client = Client::new(&serving, None);
    let listed = client.answer("tools/list", &json!({})).body;
    let log = fs::read_to_string(folder.file("log")).unwrap();
    for text in [&listed, &log] {
        assert!(!text.contains("root:"), "{text}");
    }
    let names = client.names();
    assert!(names.contains(&"good".to_owned()), "{names:?}");
    assert!(!names.iter().any(|it| it.starts_with('c')), "{names:?}");
    // A payload that leads elsewhere becomes one that takes anything, and leads nobody there.
    for (at, target) in targets.iter().enumerate() {
        assert!(!listed.contains(target), "{target}: {listed}");
        let answer = client.call(&format!("p{at}"), &json!({ "any": ["thing", at] }));
        assert_eq!(answer["result"]["isError"], false, "{target}: {answer}");
    }
    for at in 0..targets.len() {
        for kind in ["channel", "payload"] {
            assert!(log.contains(&format!("events/{kind}-{at}.yaml")), "{kind} {at}: {log}");
        }
    }
    canary.assert_alone();
}
