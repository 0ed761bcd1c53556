//! The search view: a short list, and ways to find, describe and call the rest.

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry, soon},
    python::Caller,
    serving::Serving,
};

const SCHEMA: &str = r#"{"type":"object","properties":{"city":{"type":"string","description":"Where the weather is wanted"}},"required":["city"]}"#;

const EXACT: &str = r#"{"content":[{"type":"text","text":"x","vendor":1.10}],"structuredContent":{"n":18446744073709551616},"isError":false,"_meta":{"k":1e400}}"#;

/// Two servers, and groups that see them in different ways.
fn workspace() -> Folder {
    let weather = Plan::legacy()
        .tool_with("get_weather_forecast", SCHEMA, Act::Echo)
        .tool("exact", Act::Result(EXACT.to_owned()))
        .read_only_tool("list_storm_warnings", Act::Echo);
    let vault = Plan::legacy().tool("open_vault_door", Act::Echo).tool("say", Act::Say(3));
    let folder = Folder::workspace(&json!({ "weather": entry(&weather), "vault": entry(&vault) }));
    folder.write(
        "network.yaml",
        "external_access:\n  groups:\n    all: { auth_token: all-token }\n    finder:\n      auth_token: finder-token\n      view: search\n      \
         excluded_tools: ['mcp__vault__open*']\n      pinned_tools: ['*__exact', '*__open_vault_door']\n    \
         auto: { auth_token: auto-token, view: auto }\n",
    );
    folder
}

fn ready(serving: &Serving) -> bool {
    serving.get("/readyz", &[("Authorization", "Bearer all-token")]).status == 200
}

fn names(found: &Value) -> Vec<&str> {
    let tools = found["structuredContent"]["tools"].as_array().unwrap();
    tools.iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[test]
fn a_group_that_searches_lists_little_and_finds_what_it_may_call() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    soon("it is ready", || ready(&serving));
    let mut finder = Caller::with(&serving, "finder-token");
    let listed = ["call_tool", "describe_tools", "mcp__weather__exact", "search_tools"];
    assert_eq!(finder.tools(), listed);
    let mut all = Caller::with(&serving, "all-token");
    assert_eq!(all.tools().len(), 5);
    assert!(all.tools().iter().all(|it| it.starts_with("mcp__")));

    let list = finder.ask("tools/list", &json!({}));
    let search = &list["result"]["tools"][3]["description"];
    assert!(
        search.as_str().unwrap().ends_with("There are tools of: weather (3), vault (1)."),
        "{search}"
    );

    let found = finder.call("search_tools", &json!({ "query": "weather in a city" }));
    assert_eq!(names(&found)[0], "mcp__weather__get_weather_forecast", "{found}");
    let found = finder.call("search_tools", &json!({ "query": "storm warnings" }));
    assert_eq!(found["structuredContent"]["tools"][0]["tags"], json!(["read-only"]));
    let line = found["content"][0]["text"].as_str().unwrap().lines().next().unwrap();
    assert!(line.starts_with("mcp__weather__list_storm_warnings") && line.ends_with("[read-only]"));

    let described = finder.text("describe_tools", &json!({ "names": names(&found) }));
    let described: Value = serde_json::from_str(described.lines().next().unwrap()).unwrap();
    assert_eq!(described["name"], "mcp__weather__list_storm_warnings");
    assert!(described["inputSchema"].is_object());
}

/// What is hidden cannot be found, described or called, and looks like what does not exist.
#[test]
fn what_is_hidden_is_as_unknown_as_what_does_not_exist() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    soon("it is ready", || ready(&serving));
    let mut finder = Caller::with(&serving, "finder-token");
    let found = finder.call("search_tools", &json!({ "query": "open vault door", "top": 20 }));
    assert!(!names(&found).contains(&"mcp__vault__open_vault_door"), "{found}");
    assert_eq!(found["structuredContent"]["total"], 4);
    for tool in ["mcp__vault__open_vault_door", "mcp__vault__open_vault_gate"] {
        let said = |text: String| text.replace(tool, "X");
        let expected = "There is no tool `X`. Find one with search_tools.";
        assert_eq!(said(finder.error("describe_tools", &json!({ "names": [tool] }))), expected);
        assert_eq!(said(finder.error("call_tool", &json!({ "name": tool }))), expected);
        let refused = finder.ask("tools/call", &json!({ "name": tool, "arguments": {} }));
        assert_eq!(refused["error"]["code"], -32602);
    }
    let slip = finder.error("call_tool", &json!({ "name": "mcp__weather__exakt" }));
    assert!(slip.ends_with("Did you mean `mcp__weather__exact`?"), "{slip}");
    // Nor are the tools of the view there for those who have another.
    let mut all = Caller::with(&serving, "all-token");
    let refused =
        all.ask("tools/call", &json!({ "name": "search_tools", "arguments": { "query": "x" } }));
    assert_eq!(refused["error"]["code"], -32602);
}

#[test]
fn a_call_through_call_tool_is_the_call_itself() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    soon("it is ready", || ready(&serving));
    let mut finder = Caller::with(&serving, "finder-token");
    let asked = |name: &str, arguments: Value| {
        json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call",
            "params": { "name": name, "arguments": arguments, "_meta": { "progressToken": "p" } } })
    };
    let token = [("Authorization", "Bearer finder-token")];
    let session = serving.session(&token, "2025-11-25");
    let headers = [token[0], ("Mcp-Session-Id", &*session)];
    let exact = "mcp__weather__exact";
    let through = serving.post(&headers, &asked("call_tool", json!({ "name": exact }))).body;
    let direct = serving.post(&headers, &asked(exact, json!({}))).body;
    assert_eq!(through, direct);
    assert!(through.contains(EXACT), "{through}");
    // Progress belongs to the request, whatever it goes through.
    let say = asked("call_tool", json!({ "name": "mcp__vault__say", "arguments": { "a": 1 } }));
    let streamed = [headers[0], headers[1], ("Accept", "application/json, text/event-stream")];
    let said = serving.post(&streamed, &say).body;
    assert_eq!(said.matches("notifications/progress").count(), 3, "{said}");
    assert!(said.contains(r#"\"a\":1"#), "{said}");
    let wrong = finder.error("call_tool", &json!({ "name": exact, "city": "Ulm" }));
    assert_eq!(wrong, "what the tool takes belongs into `arguments`, also `city`");
    assert!(finder.error("call_tool", &json!({ "name": "call_tool" })).contains("itself"));
    assert!(finder.error("search_tools", &json!({ "query": " " })).contains("a few words"));
    assert!(finder.error("search_tools", &json!({ "query": "x", "top": 99 })).contains("1 and 20"));
    let found = finder.text("search_tools", &json!({ "query": "qwertyuiop" }));
    assert_eq!(found, "None of the 4 tools fits. Say it in other words.");
}

/// Few tools are listed; many, which cost more than searching for them, are searched for.
#[test]
fn auto_shows_whichever_costs_less() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    soon("it is ready", || ready(&serving));
    assert_eq!(Caller::with(&serving, "auto-token").tools().len(), 5);
    drop(serving);
    let schema = format!(
        r#"{{"type":"object","properties":{{"text":{{"type":"string","description":"{}"}}}}}}"#,
        "What it takes. ".repeat(25)
    );
    let mut many = Plan::legacy();
    for number in 0..200 {
        many = many.tool_with(&format!("tool_{number}"), &schema, Act::Echo);
    }
    let folder = Folder::workspace(&json!({ "many": entry(&many) }));
    folder.write("network.yaml", "external_access: { view: auto }\n");
    let serving = Serving::start(folder.path());
    soon("it is ready", || ready(&serving));
    let mut caller = Caller::new(&serving);
    assert_eq!(caller.tools(), ["call_tool", "describe_tools", "search_tools"]);
    assert_eq!(
        caller.text(
            "call_tool",
            &json!({ "name": "mcp__many__tool_7", "arguments": { "text": "x" } })
        ),
        r#"{"text":"x"}"#
    );
    // What is called by its name need not have been found.
    assert_eq!(caller.text("mcp__many__tool_199", &json!({ "text": "x" })), r#"{"text":"x"}"#);
}

/// The index follows the catalogue.
#[test]
fn what_comes_later_is_found_and_what_goes_is_not() {
    let folder = Folder::workspace(&json!({
        "s": entry(&Plan::legacy().tool("grow", Act::Add("harvest_turnips".to_owned()))),
    }));
    folder.write("network.yaml", "external_access:\n  view: search\n");
    folder.write("tools/t.py", "from toolcrib import tool\n\n@tool\ndef peel_potatoes() -> str:\n    \"\"\"Peel potatoes.\"\"\"\n    return 'peeled'\n");
    let serving = Serving::start(folder.path());
    soon("it is ready", || ready(&serving));
    let mut caller = Caller::new(&serving);
    let mut first = |query: &str| {
        let found = caller.call("search_tools", &json!({ "query": query }));
        names(&found).first().map(|it| (*it).to_owned())
    };
    assert_eq!(first("turnips"), None);
    assert_eq!(first("potato").as_deref(), Some("peel_potatoes"));
    Caller::new(&serving).call("mcp__s__grow", &json!({}));
    soon("it is found", || first("turnips").as_deref() == Some("mcp__s__harvest_turnips"));
    std::fs::remove_file(folder.file("tools/t.py")).unwrap();
    soon("it is gone", || first("potato").is_none());
}
