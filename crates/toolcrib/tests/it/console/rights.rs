//! Who sees and does what at `/api`.

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry},
    serving::{Answer, Serving},
};

pub(crate) const A: (&str, &str) = ("Authorization", "Bearer SECRET_TOKEN_A");
pub(crate) const B: (&str, &str) = ("Authorization", "Bearer SECRET_TOKEN_B");
pub(crate) const BOSS: (&str, &str) = ("Authorization", "Bearer SECRET_TOKEN_BOSS");

/// A workspace with two groups that see a server each, and one of operators.
pub(crate) fn folder() -> Folder {
    let plan = Plan::legacy().tool("echo", Act::Echo).tool("other", Act::Echo);
    let folder = Folder::workspace(&json!({ "a": entry(&plan), "b": entry(&plan) }));
    folder.write(
        "network.yaml",
        "
external_access:
  default_agent_group: guest
  groups:
    guest: { operator: true, exposed_tools: [] }
    a: { auth_token: SECRET_TOKEN_A, exposed_tools: ['mcp__a__*'] }
    b: { auth_token: SECRET_TOKEN_B, exposed_tools: ['mcp__b__*'] }
    boss: { auth_token: SECRET_TOKEN_BOSS, operator: true, exposed_events: ['*'] }
",
    );
    folder
}

pub(super) fn call(serving: &Serving, who: (&str, &str), tool: &str) -> Answer {
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    let params = json!({ "name": tool, "arguments": {}, "_meta": meta });
    let headers = [
        who,
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    serving.post(&headers, &body)
}

/// The calls on record that somebody sees, once there are so many.
#[track_caller]
pub(super) fn calls(serving: &Serving, who: (&str, &str), count: usize) -> Vec<Value> {
    let mut found = Vec::new();
    crate::kit::soon("calls are on record", || {
        found = serving.get("/api/calls", &[who]).json()["calls"].as_array().unwrap().clone();
        count <= found.len()
    });
    assert_eq!(found.len(), count, "{found:?}");
    found
}

#[test]
fn everybody_sees_their_own_tools_calls_and_servers() {
    let folder = folder();
    let serving = Serving::start(folder.path());
    let get = |path: &str, who| serving.get(path, &[who]).json();
    let names = |value: &Value, key: &str| -> Vec<String> {
        let list = value[key].as_array().unwrap().iter();
        list.map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    let own = |who| names(&get("/api/tools", who), "tools");
    assert_eq!(own(A), ["mcp__a__echo", "mcp__a__other"]);
    assert_eq!(names(&get("/api/servers", A), "servers"), ["a"]);
    assert_eq!(names(&get("/api/servers", BOSS), "servers"), ["a", "b"]);
    // Only an operator sees as others do.
    assert_eq!(serving.get("/api/tools?group=b", &[A]).status, 404);
    assert!(names(&get("/api/tools?group=b", BOSS), "tools").contains(&"mcp__b__echo".to_owned()));
    assert_eq!(serving.get("/api/tool?name=mcp__b__echo", &[A]).status, 404);
    assert_eq!(serving.get("/api/tool?name=nothing", &[A]).status, 404);
    let told = get("/api/tool?name=mcp__b__echo", BOSS);
    assert_eq!(told["groups"], json!(["b", "boss"]));
    let found = names(&get("/api/search?q=echo", A), "tools");
    assert_eq!(found[0], "mcp__a__echo");
    assert!(found.iter().all(|it| it.starts_with("mcp__a__")), "{found:?}");
    assert_eq!(get("/api/costs", A)["groups"].as_array().unwrap().len(), 1);
    assert_eq!(get("/api/costs", BOSS)["groups"].as_array().unwrap().len(), 4);
    call(&serving, A, "mcp__a__echo");
    call(&serving, B, "mcp__b__echo");
    let all = calls(&serving, BOSS, 2);
    assert_eq!(calls(&serving, A, 1)[0]["tool"], "mcp__a__echo");
    let of_b = all.iter().find(|it| it["group"] == "b").unwrap();
    let path = format!("/api/call?id={}", of_b["call"].as_str().unwrap());
    assert_eq!(serving.get(&path, &[A]).status, 404);
    assert_eq!(get(&path, B)["record"]["tool"], "mcp__b__echo");
    assert_eq!(get(&path, BOSS)["record"]["tool"], "mcp__b__echo");
}

#[test]
fn whoever_has_no_token_is_no_operator_where_there_are_some() {
    let folder = folder();
    let rules = std::fs::read_to_string(folder.file("network.yaml")).unwrap();
    folder.write("network.yaml", rules.replace("groups:", "anonymous: true\n  groups:"));
    let serving = Serving::start(folder.path());
    // Without a token one is in `guest`, which is a group of operators.
    let me = serving.get("/api/me", &[]).json();
    assert_eq!((&me["group"], &me["operator"]), (&json!("guest"), &json!(false)));
    assert_eq!(serving.get("/api/problems", &[]).status, 403);
    assert_eq!(serving.get("/api/me", &[BOSS]).json()["operator"], true);
}

#[test]
fn without_tokens_whoever_is_on_this_machine_operates_and_nobody_through_a_proxy() {
    let plan = Plan::legacy().tool("echo", Act::Echo);
    let folder = Folder::workspace(&json!({ "a": entry(&plan) }));
    folder.write("network.yaml", "hosts: [tools.example.com]\n");
    let serving = Serving::start(folder.path());
    let operates =
        |headers: &[(&str, &str)]| serving.get("/api/me", headers).json()["operator"].clone();
    assert_eq!(operates(&[]), true);
    assert_eq!(operates(&[("X-Forwarded-For", "203.0.113.9")]), false);
    assert_eq!(operates(&[("Forwarded", "for=203.0.113.9")]), false);
    assert_eq!(operates(&[("Host", "tools.example.com")]), false);
    assert_eq!(serving.get("/api/problems", &[("Via", "1.1 x")]).status, 403);
    // A page of another site that makes a browser ask gets nothing.
    let site = |word: &str| serving.get("/api/me", &[("Sec-Fetch-Site", word)]).status;
    assert_eq!(
        [site("same-origin"), site("none"), site("cross-site"), site("same-site")],
        [200, 200, 403, 403]
    );
    let answer = serving.get("/api/me", &[]);
    assert_eq!(answer.header("cross-origin-resource-policy").as_deref(), Some("same-origin"));
    assert_eq!(answer.header("cache-control").as_deref(), Some("no-store"));
}

#[test]
fn bad_questions_are_refused_with_a_reason() {
    let folder = folder();
    let serving = Serving::start(folder.path());
    let get = |path: &str| serving.get(path, &[BOSS]);
    for (path, status) in [
        ("/api/calls?limit=0", 400),
        ("/api/calls?limit=999999", 400),
        ("/api/call", 400),
        ("/api/call?id=%zz", 400),
        ("/api/call?id=../../x", 404),
        ("/api/search?q=", 400),
        ("/api/search?q=x&top=1000", 400),
        ("/api/artifact?id=../../../etc/passwd", 404),
        ("/api/artifact?id=0", 404),
        ("/api/nothing", 404),
        ("/api/", 404),
    ] {
        let answer = get(path);
        assert_eq!(answer.status, status, "{path}: {answer:?}");
        assert!(answer.json()["error"].is_string(), "{path}: {answer:?}");
    }
    let long = format!("/api/search?q={}", "x".repeat(3000));
    assert_eq!(get(&long).status, 400);
    let post = |path: &str, body: &str| serving.request("POST", path, &[BOSS], body);
    for (path, body, status) in [
        ("/api/servers/restart", "{}", 400),
        ("/api/servers/restart", r#"{"name":"a","command":"sh"}"#, 400),
        ("/api/servers/restart", r#"{"name":"tools/"}"#, 404),
        ("/api/servers/restart", r#"{"name":"../a"}"#, 404),
        ("/api/pins/accept", r#"{"source":"server:a"}"#, 400),
        ("/api/pins/accept", r#"{"source":"server:nothing","stamp":"x"}"#, 409),
        ("/api/consumers/replay", r#"{"consumer":"a/nobody"}"#, 404),
        ("/api/pack", r#"{"text":"not json"}"#, 400),
        ("/api/pack", r#"{"text":"{}","session":"x"}"#, 400),
        ("/api/pack", r#"{"session":"../../mcp.json"}"#, 404),
        ("/api/pack", r#"{"text":"","phase":"nap"}"#, 400),
        ("/api/pack", "[", 400),
    ] {
        let answer = post(path, body);
        assert_eq!(answer.status, status, "{path} {body}: {answer:?}");
    }
    assert_eq!(serving.request("POST", "/api/me", &[BOSS], "{}").status, 405);
    assert_eq!(serving.request("DELETE", "/api/calls", &[BOSS], "").status, 405);
}
