//! Who sees and does what at `/api`.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::Command,
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry, soon},
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
    soon("calls are on record", || {
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
    assert_eq!(operates(&[("X-Forwarded-Proto", "https")]), false);
    assert_eq!(operates(&[("Host", "tools.example.com")]), false);
    // nginx, unless it is told otherwise.
    let old = format!("GET /api/me HTTP/1.0\r\nHost: {}", serving.address);
    assert_eq!(serving.send(&old, "").json()["operator"], false);
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

/// A proxy may hand on what looks exactly like a request from here.
#[test]
fn behind_a_proxy_that_is_declared_nobody_is_local() {
    let plan = Plan::legacy().tool("echo", Act::Echo);
    let folder = Folder::workspace(&json!({ "a": entry(&plan) }));
    folder.write("network.yaml", "behind_proxy: true\n");
    let serving = Serving::start(folder.path());
    assert_eq!(serving.get("/api/me", &[]).json()["operator"], false);
    assert_eq!(serving.get("/api/problems", &[]).status, 403);
    let body = r#"{"name":"a"}"#;
    assert_eq!(serving.request("POST", "/api/servers/restart", &[], body).status, 403);
    // Whoever runs it still does, by the private socket.
    let status = crate::kit::toolcrib(folder.path(), &["status", "--json"]).json();
    assert_eq!(status["operator"], true);
    // It counts from the moment it is written.
    folder.write("network.yaml", "behind_proxy: false\n");
    soon("it is read again", || serving.get("/api/me", &[]).json()["operator"] == true);
    folder.write("network.yaml", "behind_proxy: true # again\n");
    soon("and again", || serving.get("/api/me", &[]).json()["operator"] == false);
}

#[test]
fn a_proxy_that_is_not_declared_is_warned_of() {
    let plan = Plan::legacy().tool("echo", Act::Echo);
    let folder = Folder::workspace(&json!({ "a": entry(&plan) }));
    let said = |rules: &str| {
        folder.write("network.yaml", rules);
        let err = std::fs::File::create(folder.file("err")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path()).stderr(err);
        drop(Serving::run(&mut command));
        std::fs::read_to_string(folder.file("err")).unwrap()
    };
    let warning = "whoever a proxy lets in may do what operators may";
    assert!(said("hosts: [tools.example.com]\n").contains(warning));
    assert!(!said("hosts: [tools.example.com]\nbehind_proxy: true\n").contains(warning));
    assert!(!said("listen: 127.0.0.1:8700\n").contains(warning));
    let token = "external_access: { auth_token: SECRET_TOKEN_A1 }\n";
    assert!(!said(&format!("hosts: [tools.example.com]\n{token}")).contains(warning));
}

#[test]
fn whoever_operates_no_more_sees_no_more_calls_of_others() {
    let folder = folder();
    let serving = Serving::start(folder.path());
    let mut socket = TcpStream::connect(&serving.address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let head =
        format!("GET /api/live HTTP/1.1\r\nHost: {}\r\n{}: {}", serving.address, BOSS.0, BOSS.1);
    socket.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
    let mut lines = BufReader::new(socket).lines().map_while(Result::ok);
    let mut until = |text: &str| {
        let mut seen = String::new();
        while !seen.contains(text) {
            seen.push_str(&lines.next().expect("the stream goes on"));
        }
        seen
    };
    until("watching");
    call(&serving, A, "mcp__a__echo");
    until("mcp__a__echo");
    let rules = std::fs::read_to_string(folder.file("network.yaml")).unwrap();
    folder.write(
        "network.yaml",
        rules.replace("SECRET_TOKEN_BOSS, operator: true", "SECRET_TOKEN_BOSS"),
    );
    soon("it is read", || serving.get("/api/me", &[BOSS]).json()["operator"] == false);
    call(&serving, B, "mcp__b__echo");
    calls(&serving, B, 1);
    // Its own calls still come, so the stream is there; those of others do not.
    call(&serving, BOSS, "mcp__b__other");
    let seen = until("mcp__b__other");
    assert!(!seen.contains("mcp__b__echo"), "{seen}");
}

#[test]
fn how_many_tools_a_server_has_is_for_operators() {
    let folder = folder();
    let rules = std::fs::read_to_string(folder.file("network.yaml")).unwrap();
    folder.write("network.yaml", rules.replace("mcp__a__*", "mcp__a__echo"));
    let serving = Serving::start(folder.path());
    let row = |who| serving.get("/api/servers", &[who]).json()["servers"][0].clone();
    assert_eq!((&row(A)["tools"], &row(A)["listed"]), (&json!(1), &Value::Null));
    assert_eq!(row(BOSS)["listed"], 2);
}

/// One token cannot take the places of all.
#[test]
fn one_caller_has_a_share_of_the_streams() {
    let folder = folder();
    let serving = Serving::start(folder.path());
    let watch = |who: (&str, &str)| {
        let mut socket = TcpStream::connect(&serving.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let head =
            format!("GET /api/live HTTP/1.1\r\nHost: {}\r\n{}: {}", serving.address, who.0, who.1);
        socket.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
        let mut line = String::new();
        let mut reader = BufReader::new(socket);
        reader.read_line(&mut line).unwrap();
        (line.split(' ').nth(1).unwrap().to_owned(), reader)
    };
    let held: Vec<_> = (0..8).map(|_| watch(A)).collect();
    assert!(held.iter().all(|(status, _)| status == "200"));
    assert_eq!(watch(A).0, "429");
    assert_eq!(watch(B).0, "200");
    drop(held);
    soon("there is room again", || watch(A).0 == "200");
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
