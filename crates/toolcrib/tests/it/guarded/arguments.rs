//! Arguments are checked before anything runs, and what is said of them is enough to mend them.

use std::{fs::File, process::Command};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use super::{Client, calls};
use crate::{
    kit::{Folder, entry, toolcrib},
    serving::Serving,
};

const SCHEMA: &str = r#"{"type":"object","properties":{
    "query":{"type":"string","minLength":1,"maxLength":20},
    "limit":{"type":"integer","minimum":1,"maximum":100},
    "order":{"enum":["newest","oldest"]},
    "mail":{"type":"string","format":"email"},
    "filter":{"type":"object","properties":{"from":{"type":"string","format":"date"}},"required":["from"]},
    "tags":{"type":"array","items":{"type":"string"},"uniqueItems":true}
},"required":["query"],"additionalProperties":false}"#;

struct World {
    serving: Serving,
    folder: Folder,
}

impl World {
    fn start(act: Act, network: &str) -> Self {
        let folder = Folder::new();
        let plan = Plan::legacy().tool_with("find", SCHEMA, act).notes(folder.file("notes"));
        let servers = json!({ "mcpServers": { "s": entry(&plan) } });
        folder.write("mcp.json", servers.to_string());
        folder.write("network.yaml", network);
        Self { serving: Serving::start(folder.path()), folder }
    }

    fn client(&self) -> Client<'_> {
        Client::new(&self.serving, None)
    }

    fn calls(&self) -> usize {
        calls(&self.folder.file("notes"))
    }
}

#[track_caller]
fn check(client: &Client<'_>, arguments: &Value, expected: &str) {
    let answer = client.call("mcp__s__find", arguments);
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    let said =
        text.strip_suffix(". Nothing was done; call `mcp__s__find` again with arguments that fit.");
    assert_eq!(said, Some(expected));
}

#[test]
fn every_fault_is_named_with_its_place_and_what_was_expected() {
    let world = World::start(Act::Echo, "");
    let client = world.client();
    check(&client, &json!({}), "The arguments do not fit: `query` is missing (required)");
    check(
        &client,
        &json!({ "query": "", "limit": 500, "order": "newst", "mail": "x", "filter": {}, "tags": ["a", "a"] }),
        "The arguments do not fit: `query` must have at least 1 character (minLength), found 0 characters; \
         `limit` must be at most 100 (maximum), found 500; \
         `order` must be one of \"newest\", \"oldest\" (enum), found \"newst\", did you mean \"newest\"?; \
         `mail` must be an email address (format), found \"x\"; \
         `filter.from` is missing (required); \
         `tags` must have no two equal items (uniqueItems), found [0] and [1] alike",
    );
    check(
        &client,
        &json!({ "query": "a", "limt": 3 }),
        "The arguments do not fit: there is no `limt`, did you mean `limit`?",
    );
    check(
        &client,
        &json!({ "query": null }),
        "The arguments do not fit: `query` must be a string (type), found null",
    );
    // Nothing is something where nobody named it.
    check(
        &client,
        &json!({ "query": "a", "evil": null }),
        "The arguments do not fit: there is no `evil`, only `filter`, `limit`, `mail`, `order`, `query`, `tags`",
    );
    assert_eq!(world.calls(), 0, "nothing may reach the server");
    // What need not be said may be said to be nothing, and goes on as it was said.
    let nothing = json!({ "query": "a", "limit": null });
    assert_eq!(client.text("mcp__s__find", &nothing), r#"{"query":"a","limit":null}"#);
    assert_eq!(
        client.text("mcp__s__find", &json!({ "query": "a", "limit": 3 })),
        r#"{"query":"a","limit":3}"#
    );
    assert_eq!(world.calls(), 2);
}

#[test]
fn faults_are_told_to_programs_too() {
    let world = World::start(Act::Echo, "");
    let answer = world.client().call("mcp__s__find", &json!({ "query": 7 }));
    let expected = json!({
        "toolcrib/blame": "caller",
        "toolcrib/faults": [{ "path": "/query", "keyword": "type", "expected": "be a string", "found": "7" }],
    });
    let meta = &answer["result"]["_meta"];
    assert_eq!(meta["toolcrib/faults"], expected["toolcrib/faults"]);
    assert_eq!(meta["toolcrib/blame"], "caller");
}

#[test]
fn harmless_repairs_are_made_for_groups_that_want_them() {
    let arguments = json!({ "query": "a", "limit": "5", "filter": r#"{"from":"2026-01-31"}"# });
    let groups = "external_access:\n  default_agent_group: strict\n  groups:\n    strict: {}\n    easy:\n      auth_token: easy-token-1234\n      repairs: on\n  anonymous: true\n";
    let world = World::start(Act::Echo, groups);
    let strict = world.client();
    assert_eq!(strict.call("mcp__s__find", &arguments)["result"]["isError"], true);
    assert_eq!(world.calls(), 0);
    let easy = Client::new(&world.serving, Some("easy-token-1234"));
    assert_eq!(
        easy.text("mcp__s__find", &arguments),
        r#"{"query":"a","limit":5,"filter":{"from":"2026-01-31"}}"#
    );
    // What is wrong in earnest is not guessed at.
    assert_eq!(
        easy.call("mcp__s__find", &json!({ "query": "a", "limit": "five" }))["result"]["isError"],
        true
    );
    assert_eq!(world.calls(), 1);
}

#[test]
fn the_check_can_be_switched_off() {
    let world = World::start(Act::Echo, "validation: { arguments: off }\n");
    assert_eq!(world.client().text("mcp__s__find", &json!({ "nonsense": 1 })), r#"{"nonsense":1}"#);
}

#[test]
fn the_command_line_checks_as_the_gateway_does() {
    let folder = Folder::new();
    let plan = Plan::legacy().tool_with("find", SCHEMA, Act::Echo).notes(folder.file("notes"));
    folder.write("mcp.json", json!({ "mcpServers": { "s": entry(&plan) } }).to_string());
    let run = toolcrib(folder.path(), &["call", "mcp__s__find", "limit=3"]);
    insta::assert_snapshot!(run.transcript(), @"
    exit 1
    err error: mcp__s__find: The arguments do not fit: `query` is missing (required)
    err  hint: nothing was called; `toolcrib tools --json` shows what the tool takes
    ");
    assert_eq!(calls(&folder.file("notes")), 0);
}

/// A server whose one tool promises `{"n": integer}`.
fn promising(act: Act, network: &str) -> World {
    let folder = Folder::new();
    let definition = json!([{ "name": "count", "inputSchema": { "type": "object" }, "outputSchema": {
        "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } }]);
    let listed = folder.write("listed.json", definition.to_string());
    let plan = Plan::legacy().tool("count", act).listed(listed);
    folder.write("mcp.json", json!({ "mcpServers": { "s": entry(&plan) } }).to_string());
    folder.write("network.yaml", network);
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path());
    let log = File::create(folder.file("log")).unwrap();
    World { serving: Serving::run(command.stderr(log)), folder }
}

#[test]
fn structured_results_are_held_against_what_was_promised_and_never_dropped() {
    let given = r#"{"content":[{"type":"text","text":"many"}],"structuredContent":{"n":"many"},"more":1.10}"#;
    for (rule, is_error) in [("off", false), ("warn", false), ("strict", true)] {
        let network = format!("validation: {{ results: {rule} }}\n");
        let world = promising(Act::Result(given.to_owned()), &network);
        let body = world.client().answer("tools/call", &json!({ "name": "mcp__s__count" })).body;
        assert!(body.contains(r#""structuredContent":{"n":"many"}"#), "{body}");
        assert!(body.contains(r#""more":1.10"#) && body.contains(r#""text":"many""#), "{body}");
        assert_eq!(body.contains(r#""isError":true"#), is_error, "{rule}: {body}");
        let said = "The result does not fit: `n` must be an integer (type). It follows as it is.";
        assert_eq!(body.contains(said), is_error, "{rule}: {body}");
        // Whoever runs the gateway hears of it once, and not of each result.
        world.client().answer("tools/call", &json!({ "name": "mcp__s__count" }));
        let log = std::fs::read_to_string(world.folder.file("log")).unwrap();
        let told = log.lines().filter(|it| it.contains("The result does not fit: `n` must be"));
        let told: Vec<&str> = told.collect();
        assert_eq!(told.len(), usize::from(rule != "off"), "{rule}: {log}");
        assert!(told.iter().all(|it| it.contains("mcp__s__count")), "{log}");
    }
    let good = r#"{"content":[],"structuredContent":{"n":3}}"#;
    let world = promising(Act::Result(good.to_owned()), "validation: { results: strict }\n");
    let body = world.client().answer("tools/call", &json!({ "name": "mcp__s__count" })).body;
    assert!(body.contains(good), "{body}");
}

#[test]
fn a_word_that_says_nothing_refuses_the_start() {
    let folder = Folder::workspace(&json!({}));
    folder.write("network.yaml", "validation: { results: perhaps }\n");
    let run = toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    insta::assert_snapshot!(run.transcript(), @"
    exit 2
    err error: network.yaml: validation: results: `perhaps` is none of off, warn, strict
    ");
}
