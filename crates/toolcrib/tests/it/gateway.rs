//! `toolcrib serve` as clients know it: our own client, over every transport and in both eras.

use std::{fs, time::Duration};

use proptest::prelude::*;
use serde_json::json;
use toolcrib::{
    catalogue::{CallContext, CallError, Json, Listener, Source},
    sources::mcp::{Client, Filled, ServerConfig, Transport},
};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, at, client, entry, soon},
    serving::{GROUPS, Line, Serving, two_servers},
};

/// Clients of a gateway, over every transport.
fn clients(serving: &Serving, token: Option<&str>) -> Vec<(&'static str, Client)> {
    let with_token = |mut config: ServerConfig| {
        if let Some(token) = token {
            let header = Filled::literal(format!("Bearer {token}"));
            config.headers = vec![("Authorization".to_owned(), header)];
        }
        client(config)
    };
    vec![
        ("http", with_token(at("s", Transport::StreamableHttp, &serving.url("/mcp")))),
        ("sse", with_token(at("s", Transport::Sse, &serving.url("/sse")))),
    ]
}

#[tokio::test]
async fn clients_list_and_call_over_every_transport() {
    let folder = two_servers();
    let serving = Serving::start(folder.path());
    let mut stdio = ServerConfig::new("s", Transport::Stdio);
    stdio.command = Some(Filled::literal(env!("CARGO_BIN_EXE_toolcrib")));
    let args = ["serve", "--stdio", folder.path().to_str().unwrap()];
    stdio.args = args.map(Filled::literal).to_vec();
    let mut all = clients(&serving, None);
    all.push(("stdio", client(stdio)));
    for (over, client) in &all {
        soon_listed(client).await;
        let tools = client.list_tools("s").await.unwrap();
        let names: Vec<&str> = tools.iter().map(|it| it.name.as_str()).collect();
        let expected =
            ["mcp__a__crash", "mcp__a__echo", "mcp__a__hang", "mcp__b__echo", "mcp__b__secret"];
        assert_eq!(names, expected, "{over}");
        let arguments = r#"{"n": 18446744073709551616,"é":1.10}"#;
        for tool in ["mcp__a__echo", "mcp__b__echo"] {
            let arguments = Json::parse(arguments).unwrap();
            let outcome = client.call_tool("s", tool, Some(arguments)).await.unwrap();
            // The fake writes its arguments anew, but keeps their digits.
            assert_eq!(outcome.text(), r#"{"n":18446744073709551616,"é":1.10}"#, "{over}");
        }
        client.close().await;
    }
}

/// A gateway on standard input answers before its servers are up; wait until they are.
async fn soon_listed(client: &Client) {
    for _ in 0..100 {
        if client.connect("s").await.unwrap().refresh().await.unwrap().len() == 5 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the tools did not come");
}

#[derive(Debug, Default)]
struct Heard(parking_lot::Mutex<Vec<String>>);

impl Listener for Heard {
    fn notified(&self, method: &str, params: Option<Json>) {
        self.0.lock().push(format!("{method} {}", params.unwrap()));
    }
}

/// A server that reports progress under the token it was given.
const PROGRESS: &str = r#"
import json, sys
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        say({"id": m["id"], "result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
             "serverInfo": {"name": "p", "version": "1"}}})
    elif m.get("method") == "tools/list":
        say({"id": m["id"], "result": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}})
    elif m.get("method") == "tools/call":
        token = m["params"].get("_meta", {}).get("progressToken")
        for n in (1, 2):
            say({"method": "notifications/progress", "params": {"progressToken": token, "progress": n, "vendor": 1}})
        say({"id": m["id"], "result": {"content": [{"type": "text", "text": json.dumps(token)}]}})
    elif "id" in m:
        say({"id": m["id"], "error": {"code": -32601, "message": "no"}})
"#;

#[tokio::test]
async fn progress_reaches_who_asked_under_their_own_token() {
    let folder = Folder::new();
    let script = folder.write("progress.py", PROGRESS);
    let servers = json!({ "p": { "command": "python3", "args": [script] } });
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    let serving = Serving::start(folder.path());
    for (over, client) in clients(&serving, None) {
        let connection = client.connect("s").await.unwrap();
        let heard = std::sync::Arc::new(Heard::default());
        let params = r#"{"name":"mcp__p__work","_meta":{"progressToken":"mine"}}"#;
        let context = CallContext {
            listener: Some(std::sync::Arc::clone(&heard) as _),
            ..Default::default()
        };
        let result = connection.request("tools/call", Json::parse(params).unwrap(), context).await;
        let result = result.unwrap().to_string();
        assert!(!result.contains("mine"), "{over}: the server saw the caller's token: {result}");
        let heard = heard.0.lock().clone();
        assert_eq!(heard.len(), 2, "{over}: {heard:?}");
        let expected =
            r#"notifications/progress {"progressToken": "mine", "progress": 1, "vendor": 1}"#;
        assert_eq!(heard[0], expected, "{over}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_tool_of_a_dead_server_answers_with_its_cause() {
    let folder = Folder::workspace(&json!({
        "dead": entry(&Plan::legacy().tool("echo", Act::Crash)),
        "well": entry(&Plan::legacy().tool("echo", Act::Echo)),
    }));
    let serving = Serving::start(folder.path());
    for (over, client) in clients(&serving, None) {
        let outcome = client.call_tool("s", "mcp__dead__echo", None).await.unwrap();
        assert!(outcome.is_error, "{over}");
        let text = outcome.text();
        assert!(
            text.contains("it exited with code 7") || text.contains("is down"),
            "{over}: {text}"
        );
        assert!(outcome.raw.as_str().contains(r#""toolcrib/blame":"upstream""#), "{over}");
        let well = client.call_tool("s", "mcp__well__echo", None).await.unwrap();
        assert_eq!(well.text(), "{}", "{over}");
        let unknown = client.call_tool("s", "mcp__well__nothing", None).await.unwrap_err();
        assert!(matches!(unknown, CallError::Rpc { code: -32602, .. }), "{over}: {unknown}");
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_taken_back_is_taken_back_upstream() {
    let folder = Folder::new();
    let notes = folder.file("notes");
    let plan = Plan::legacy().tool("hang", Act::Hang).notes(&notes);
    folder.write("mcp.json", json!({ "mcpServers": { "a": entry(&plan) } }).to_string());
    let serving = Serving::start(folder.path());
    for (number, (over, client)) in clients(&serving, None).into_iter().enumerate() {
        client.connect("s").await.unwrap();
        let call = client.call_tool("s", "mcp__a__hang", None);
        assert!(tokio::time::timeout(Duration::from_millis(300), call).await.is_err());
        soon(over, || {
            let notes = fs::read_to_string(&notes).unwrap();
            number < notes.matches("notifications/cancelled").count()
        });
        client.close().await;
    }
}

#[tokio::test]
async fn a_change_of_the_list_is_told_to_all() {
    let folder = Folder::workspace(&json!({
        "a": entry(&Plan::legacy().tool("add", Act::Add("late".to_owned()))),
    }));
    let serving = Serving::start(folder.path());
    let all = clients(&serving, None);
    let mut connections = Vec::new();
    for (_, client) in &all {
        connections.push(client.connect("s").await.unwrap());
    }
    tokio::time::sleep(Duration::from_millis(300)).await;
    let versions: Vec<u64> = connections.iter().map(|it| it.version()).collect();
    all[0].1.call_tool("s", "mcp__a__add", None).await.unwrap();
    for (connection, version) in connections.iter().zip(versions) {
        let changed = connection.changed_since(version);
        tokio::time::timeout(Duration::from_secs(5), changed).await.unwrap();
        let names: Vec<String> = connection.tools().iter().map(|it| it.name.clone()).collect();
        assert_eq!(names, ["mcp__a__add", "mcp__a__late"]);
    }
    for (_, client) in &all {
        client.close().await;
    }
}

#[tokio::test]
async fn a_token_leads_to_a_group_and_the_group_decides() {
    let folder = two_servers();
    folder.write("network.yaml", GROUPS);
    let serving = Serving::start_with(folder.path(), &[("MAIN_TOKEN", "main-token")]);
    let expected: [(&str, &[&str]); 2] = [
        ("main-token", &["mcp__a__crash", "mcp__a__echo", "mcp__b__echo", "mcp__b__secret"]),
        ("analyst-token", &["mcp__b__echo"]),
    ];
    for (token, expected) in expected {
        for (over, client) in clients(&serving, Some(token)) {
            let tools = client.list_tools("s").await.unwrap();
            let names: Vec<&str> = tools.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(names, expected, "{over}");
            let greeting = client.connect("s").await.unwrap().greeting().unwrap();
            assert_eq!(greeting.instructions.as_deref(), Some("Be brief."), "{over}");
            client.close().await;
        }
    }
    let (_, analyst) = clients(&serving, Some("analyst-token")).remove(0);
    // A name that is hidden answers exactly as one that does not exist.
    let error = |name: &'static str| {
        let analyst = &analyst;
        async move { analyst.call_tool("s", name, None).await.unwrap_err().to_string() }
    };
    assert_eq!(error("mcp__b__secret").await, "Unknown tool: mcp__b__secret (code -32602)");
    assert_eq!(error("mcp__b__nothing").await, "Unknown tool: mcp__b__nothing (code -32602)");
    analyst.close().await;
}

/// Fifty clients that all count their requests from 0, and call one shared server at the same time.
#[test]
fn no_answer_ever_reaches_another_client() {
    let folder = Folder::workspace(&json!({
        "a": entry(&Plan::legacy().tool("echo", Act::Echo)),
        "b": entry(&Plan::modern().tool("echo", Act::Echo)),
    }));
    let serving = Serving::start(folder.path());
    std::thread::scope(|scope| {
        for client in 0..50 {
            let serving = &serving;
            scope.spawn(move || {
                let session = serving.session(&[], "2025-11-25");
                let mut line = Line::open(serving);
                let server = if client % 2 == 0 { "a" } else { "b" };
                for id in 0..1000 {
                    let nonce = format!("{client}-{id}");
                    let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
                        "name": format!("mcp__{server}__echo"), "arguments": { "nonce": nonce } } });
                    let answer = line.post(&session, &body.to_string()).json();
                    assert_eq!(answer["id"], id);
                    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
                    assert_eq!(text, format!(r#"{{"nonce":"{nonce}"}}"#));
                }
            });
        }
    });
}

#[tokio::test]
async fn tls_is_spoken_and_a_certificate_of_ones_own_is_trusted_if_it_is_named() {
    let folder = two_servers();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let certificate = folder.write("cert.pem", made.cert.pem());
    folder.write("key.pem", made.signing_key.serialize_pem());
    folder.write("network.yaml", "tls: { cert: cert.pem, key: key.pem }\n");
    let serving = Serving::start(folder.path());
    let url = serving.url("/mcp").replace("http:", "https:");
    let mut config = at("s", Transport::StreamableHttp, &url);
    let stranger = client(config.clone());
    let error = stranger.connect("s").await.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    stranger.close().await;
    config.ca = Some(Filled::literal(certificate.to_string_lossy()));
    let friend = client(config.clone());
    assert_eq!(friend.list_tools("s").await.unwrap().len(), 5);
    friend.close().await;
    config.url = Some(Filled::literal(serving.url("/mcp")));
    let plain = client(config);
    plain.connect("s").await.unwrap_err();
    plain.close().await;
    drop(serving);
    folder.write("cert.pem", "no certificate");
    let run = crate::kit::toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(run.code, 2);
    assert_eq!(run.err, "error: network.yaml: tls: there is no certificate in it\n");
}

/// JSON of every kind: deep, odd numbers, unknown fields, any text.
fn any_json() -> impl Strategy<Value = String> {
    let text = any::<String>().prop_map(|it| serde_json::to_string(&it).unwrap());
    let number = prop_oneof![
        Just("1e400".to_owned()),
        Just("-0.0".to_owned()),
        Just("1.10".to_owned()),
        Just("123456789012345678901234567890.000000000000001e-7".to_owned()),
        any::<i64>().prop_map(|it| it.to_string()),
        any::<f64>()
            .prop_filter("JSON has no infinity", |it| it.is_finite())
            .prop_map(|it| format!("{it:e}")),
    ];
    let escaped = Just(r#""\u00e9\ud83d\ude00\/\b\n\u0000""#.to_owned());
    let word = prop_oneof![Just("null"), Just("true"), Just("false")].prop_map(str::to_owned);
    let leaf = prop_oneof![text, number, escaped, word];
    leaf.prop_recursive(24, 64, 6, |inner| {
        let key = "[a-z_\u{e9}-\u{ff}]{1,6}";
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6)
                .prop_map(|it| format!("[{}]", it.join(" ,\n"))),
            prop::collection::btree_map(key, inner, 0..6).prop_map(|it| {
                let members: Vec<String> =
                    it.iter().map(|(key, value)| format!("\"{key}\" :\t{value}")).collect();
                format!("{{ {} }}", members.join(", "))
            }),
        ]
    })
}

/// The tokens of a JSON text: whitespace between them is nobody's business.
fn tokens(text: &str) -> String {
    let mut inside = false;
    let mut escaped = false;
    let kept = |c: &char| {
        let keep = inside || !c.is_ascii_whitespace();
        match (inside, escaped, *c) {
            (true, true, _) => escaped = false,
            (true, false, '\\') => escaped = true,
            (_, false, '"') => inside = !inside,
            _ => {}
        }
        keep
    };
    text.chars().filter(kept).collect()
}

/// What a client sends reaches the server, and what the server answers the client, token for token.
#[test]
fn whatever_goes_through_comes_out_as_it_went_in() {
    let notes = Folder::new();
    let file = notes.file("notes");
    let servers = json!({
        "old": entry(&Plan::legacy().tool("mirror", Act::Mirror).notes(&file)),
        "new": entry(&Plan::modern().tool("mirror", Act::Mirror)),
    });
    let folder = Folder::workspace(&servers);
    let serving = Serving::start(folder.path());
    let session = serving.session(&[], "2025-11-25");
    let line = parking_lot::Mutex::new(Line::open(&serving));
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(300)
    });
    let result = runner.run(&any_json(), |value| {
        for server in ["old", "new"] {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"x-unknown":{value},"name":"mcp__{server}__mirror","arguments":{{"v":{value}}}}}}}"#
            );
            let answer = line.lock().post(&session, &body).body;
            let result = answer.split_once(r#""result":"#).map(|(_, it)| it).unwrap_or(&answer);
            let expected = format!(r#"{{"content":[],"structuredContent":{{"v":{value}}},"x-more":{value}"#);
            prop_assert!(
                tokens(result).replace(r#""resultType":"complete","#, "").starts_with(&tokens(&expected)),
                "{server}\n{expected}\n{answer}"
            );
        }
        Ok(())
    });
    result.unwrap();
    // The server saw them as they were sent, unknown params too.
    let noted = fs::read_to_string(&file).unwrap();
    assert!(noted.lines().filter(|it| it.contains("x-unknown")).count() >= 300);
}
