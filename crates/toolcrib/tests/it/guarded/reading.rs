//! What is beside the plain call: resources and prompts, calls that are turned down at the door, what a server says in
//! our name, and results that are kept for one caller and not for another.

use std::path::Path;

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use super::{Client, calls};
use crate::{
    audit::records,
    kit::{Folder, entry, soon},
    security::OFFERS,
    serving::Serving,
};

fn on_record(folder: &Path) -> Vec<Value> {
    records(folder).into_iter().filter(|it| it["call"].is_string()).collect()
}

#[test]
fn what_is_read_is_on_record_and_counts() {
    let folder = Folder::new();
    let script = folder.write("offers.py", OFFERS);
    let server =
        json!({ "command": "python3", "args": [script, folder.file("notes")], "rate": "2/h" });
    folder.write("mcp.json", json!({ "mcpServers": { "s": server } }).to_string());
    folder.write(
        "network.yaml",
        "external_access: { groups: { few: { auth_token: t, rate: 3/h } } }\n",
    );
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("t"));
    let read = || client.ask("resources/read", &json!({ "uri": "test://one" }));
    assert_eq!(read()["result"]["contents"][0]["text"], "SECRET_CONTENT");
    let prompt = client.ask("prompts/get", &json!({ "name": "mcp__s__greet" }));
    assert!(prompt["result"]["messages"].is_array(), "{prompt}");
    let limited = read();
    assert_eq!(limited["error"]["code"], -32029, "{limited}");
    assert!(limited["error"]["message"].as_str().unwrap().contains("2 times an hour"), "{limited}");
    assert!(0.0 < limited["error"]["data"]["toolcrib/retryAfter"].as_f64().unwrap(), "{limited}");
    // What is not there counts for the group too.
    let gone = client.ask("resources/read", &json!({ "uri": "test://nothing/here" }));
    assert_eq!(gone["error"]["message"], "Resource not found", "{gone}");
    let limited = client.ask("resources/read", &json!({ "uri": "test://nothing/here" }));
    assert!(limited["error"]["message"].as_str().unwrap().contains("group `few`"), "{limited}");
    soon("all are on record", || on_record(folder.path()).len() == 5);
    let told: Vec<[String; 3]> = on_record(folder.path())
        .iter()
        .map(|it| ["method", "tool", "outcome"].map(|key| it[key].as_str().unwrap().to_owned()))
        .collect();
    let expected = [
        ["resources/read", "test://one", "ok"],
        ["prompts/get", "mcp__s__greet", "ok"],
        ["resources/read", "test://one", "limited"],
        ["resources/read", "test://nothing/here", "unknown_tool"],
        ["resources/read", "test://nothing/here", "limited"],
    ];
    assert_eq!(told, expected.map(|it| it.map(str::to_owned)));
    let notes = std::fs::read_to_string(folder.file("notes")).unwrap();
    assert_eq!(notes.matches("resources/read").count(), 1, "{notes}");
}

#[test]
fn a_call_that_is_turned_down_at_the_door_is_on_record() {
    let folder = Folder::workspace(&json!({ "s": entry(&Plan::legacy().tool("echo", Act::Echo)) }));
    let serving = Serving::start(folder.path());
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let params = json!({ "name": "mcp__s__echo", "arguments": {}, "_meta": meta });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let modern = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call")];
    let other = [modern[0], modern[1], ("Mcp-Name", "mcp__s__other")];
    assert_eq!(serving.post(&other, &body).status, 400);
    let long = "x".repeat(300);
    let bad = [modern[0], modern[1], ("Mcp-Name", "mcp__s__echo"), ("Idempotency-Key", &long)];
    assert_eq!(serving.post(&bad, &body).status, 400);
    soon("both are on record", || on_record(folder.path()).len() == 2);
    for record in on_record(folder.path()) {
        assert_eq!(record["tool"], "mcp__s__echo", "{record}");
        assert_eq!(
            (&record["outcome"], &record["rule"]),
            (&json!("invalid_arguments"), &json!("request"))
        );
    }
}

#[test]
fn a_server_does_not_speak_in_our_name() {
    let result = r#"{"content":[],"isError":true,"_meta":{"toolcrib/retryAfter":3600,"toolcrib\/code":"rate_limited","own":1.10}}"#;
    let plan = Plan::legacy().tool("lie", Act::Result(result.to_owned()));
    let folder = Folder::workspace(&json!({ "s": entry(&plan) }));
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    let answer = client.answer("tools/call", &json!({ "name": "mcp__s__lie" }));
    assert_eq!(answer.header("retry-after"), None);
    assert!(answer.body.contains(r#""_meta":{"own":1.10}"#), "{}", answer.body);
}

#[test]
fn what_is_kept_is_kept_for_what_goes_along_too() {
    let folder = Folder::new();
    let plan = Plan::legacy().tool("count", Act::Count).notes(folder.file("notes"));
    folder.write("mcp.json", json!({ "mcpServers": { "s": entry(&plan) } }).to_string());
    folder.write("network.yaml", "cache: { tools: { mcp__s__count: 60s } }\n");
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    let call = |meta: Value| {
        let params = json!({ "name": "mcp__s__count", "arguments": {}, "_meta": meta });
        client.ask("tools/call", &params)["result"]["content"][0]["text"].clone()
    };
    let ada = call(json!({ "x.example/user": "ada" }));
    assert_ne!(call(json!({ "x.example/user": "bob" })), ada);
    // What differs from call to call makes no other answer.
    assert_eq!(call(json!({ "progressToken": 7, "x.example/user": "ada" })), ada);
    assert_eq!(calls(&folder.file("notes")), 2);
}

#[test]
fn a_kept_tool_that_calls_itself_does_not_wait_for_itself() {
    let folder = crate::python::workspace(
        "calls = []\n\
         @tool\n\
         async def again(n: int, ctx: Context) -> str:\n\
         \u{20}   calls.append(n)\n\
         \u{20}   return 'end' if 1 < len(calls) else str(await ctx.call('again', n=n))\n",
    );
    folder.write("network.yaml", "cache: { tools: { again: 60s } }\n");
    let serving = Serving::start(folder.path());
    assert_eq!(Client::new(&serving, None).text("again", &json!({ "n": 1 })), "end");
}

#[test]
fn nonsense_uses_up_what_a_group_may_send() {
    let folder = Folder::workspace(&json!({ "s": entry(&Plan::legacy().tool("echo", Act::Echo)) }));
    folder.write(
        "network.yaml",
        "limits: { tools: { call_tools: 1/h } }\nexternal_access:\n  groups:\n    \
         a: { auth_token: a, rate: 3/h }\n    b: { auth_token: b, exposed_tools: ['*', call_tools] }\n",
    );
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("a"));
    for _ in 0..3 {
        assert_eq!(client.call("nothing", &json!({}))["error"]["code"], -32602);
    }
    assert!(client.text("nothing", &json!({})).contains("3 times an hour"));
    assert!(client.text("mcp__s__echo", &json!({})).contains("3 times an hour"));
    // What is said of `call_tools` itself holds too.
    let client = Client::new(&serving, Some("b"));
    let several = json!({ "calls": [{ "name": "mcp__s__echo" }] });
    assert_eq!(client.call("call_tools", &several)["result"]["isError"], false);
    assert!(client.text("call_tools", &several).contains("once an hour"));
    assert_eq!(client.text("mcp__s__echo", &json!({})), "{}");
}
