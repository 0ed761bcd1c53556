//! C1 to C4 and C8: nobody uses the gateway to reach others, or to learn what was said to it.

use std::{
    collections::BTreeSet,
    fs::{self, File},
    process::Command,
};

use base64::{Engine, engine::general_purpose::STANDARD as BASE64};
use serde_json::{Value, json};

use super::{
    A, call,
    evil::{Canary, Evil, noted},
    request,
};
use crate::{
    kit::Folder,
    python::Caller,
    serving::{Answer, Serving},
};

const ACCESS: &str = "external_access: { groups: { a: { auth_token: SECRET_TOKEN_A } } }\n";

/// Goes along with every request to a server, and nowhere else.
const OWN: &str = "Bearer SECRET_UPSTREAM";

/// A gateway of these servers, which logs all it can into the file `log`.
fn gateway(folder: &Folder, servers: &Value) -> Serving {
    folder.write("network.yaml", ACCESS);
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["-vv", "serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path());
    Serving::run(command.stderr(File::create(folder.file("log")).unwrap()))
}

fn server(url: &str, kind: &str) -> Value {
    let headers = json!({ "Authorization": OWN, "X-Own": "configured" });
    let mut server = json!({ "url": url, "headers": headers, "handshake_timeout": "5s" });
    if !kind.is_empty() {
        server["type"] = json!(kind);
    }
    server
}

#[track_caller]
fn assert_nothing_logged(folder: &Folder) {
    let log = fs::read_to_string(folder.file("log")).unwrap();
    assert!(!log.contains("SECRET"), "{log}");
}

/// The names of headers that a server may see: those of HTTP, of MCP, and what is configured.
const SEEN: [&str; 12] = [
    "accept",
    "authorization",
    "content-length",
    "content-type",
    "host",
    "last-event-id",
    "mcp-method",
    "mcp-name",
    "mcp-protocol-version",
    "mcp-session-id",
    "user-agent",
    "x-own",
];

#[test]
fn c01_a_server_sees_what_is_configured_and_nothing_of_the_client() {
    let folder = Folder::new();
    let evil = Evil::http(&folder);
    let serving = gateway(
        &folder,
        &json!({
            "legacy": server(&evil.url("/mcp"), "http"),
            "modern": server(&evil.url("/modern"), "http"),
            "old": server(&evil.url("/sse"), "sse"),
        }),
    );
    let session = serving.session(&[A], "2025-11-25");
    let with = [
        A,
        ("Mcp-Session-Id", session.as_str()),
        ("Cookie", "id=SECRET_COOKIE"),
        ("Proxy-Authorization", "Basic SECRET_PROXY"),
        ("X-Api-Key", "SECRET_KEY"),
        ("X-Forwarded-For", "SECRET_PEER"),
        ("X-Own", "SECRET_OTHER"),
        ("Forwarded", "for=SECRET_PEER"),
        ("Referer", "http://SECRET_PAGE/"),
    ];
    for name in ["legacy", "modern", "old"] {
        let answer = serving.post(&with, &call(1, &format!("mcp__{name}__headers"))).json();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    let noted = noted(&folder);
    assert_eq!(noted.iter().filter(|it| it.to_string().contains("tools/call")).count(), 3);
    for it in &noted {
        let head = it["head"].as_str().unwrap();
        let said = it.to_string().replace("SECRET_UPSTREAM", "");
        assert!(!said.contains("SECRET") && !said.contains(&session), "{said}");
        assert!(head.contains(OWN) && head.contains("configured"), "{head}");
        let names: BTreeSet<String> = head
            .split("\r\n")
            .skip(1)
            .map(|it| it.split(':').next().unwrap().to_ascii_lowercase())
            .collect();
        let more: Vec<&String> = names.iter().filter(|it| !SEEN.contains(&it.as_str())).collect();
        assert!(more.is_empty(), "{more:?}: {head}");
    }
    assert_nothing_logged(&folder);
}

/// Calls a tool of each server, all of which lead elsewhere.
fn all_lead_elsewhere(serving: &Serving, names: &[String]) {
    let session = serving.session(&[A], "2025-11-25");
    let ask =
        |body: &Value| -> Answer { serving.post(&[A, ("Mcp-Session-Id", session.as_str())], body) };
    let list = ask(&request(1, "tools/list", json!({}))).body;
    for name in names {
        let answer = ask(&call(1, &format!("mcp__{name}__headers")));
        assert!(!answer.body.contains("SECRET"), "{answer:?}");
        if list.contains(&format!("mcp__{name}__headers")) {
            assert_eq!(answer.json()["result"]["isError"], true, "{name} {answer:?}");
            assert!(answer.body.contains("redirects to 127.0.0.1:"), "{name} {answer:?}");
        } else {
            assert_eq!(answer.json()["error"]["code"], -32602, "{name} {answer:?}");
        }
    }
}

#[test]
fn c02_a_redirect_is_not_followed_whenever_it_comes() {
    let folder = Folder::new();
    let (evil, canary) = (Evil::http(&folder), Canary::new());
    let mut servers = json!({});
    for status in [301, 302, 303, 307, 308] {
        for (when, kind) in [("all", "http"), ("all", "sse"), ("all", ""), ("call", "http")] {
            let to = canary.url("/mcp");
            let url = evil.url(&format!("/redirect/{status}/{when}?to={to}"));
            servers[format!("r{status}{when}{kind}")] = server(&url, kind);
        }
    }
    let names: Vec<String> = servers.as_object().unwrap().keys().cloned().collect();
    let serving = gateway(&folder, &servers);
    all_lead_elsewhere(&serving, &names);
    // Those that redirect only calls were there to be called.
    let calls = noted(&folder).iter().filter(|it| it.to_string().contains("tools/call")).count();
    assert_eq!(calls, 5);
    canary.assert_alone();
    assert_nothing_logged(&folder);
}

#[test]
fn c03_from_https_nobody_is_led_to_http() {
    let folder = Folder::new();
    let (evil, canary) = (Evil::https(&folder), Canary::new());
    let mut servers = json!({});
    for (name, to) in [("other", canary.url("/mcp")), ("same", evil.url("/mcp"))] {
        for when in ["all", "call"] {
            let url = evil.url(&format!("/redirect/307/{when}?to={to}"));
            let mut server = server(&url.replace("http:", "https:"), "http");
            // Only the first: what it leads to is a part of it.
            server["url"] =
                json!(server["url"].as_str().unwrap().replace("?to=https:", "?to=http:"));
            server["ca"] = json!("cert.pem");
            servers[format!("{name}{when}")] = server;
        }
    }
    let names: Vec<String> = servers.as_object().unwrap().keys().cloned().collect();
    let serving = gateway(&folder, &servers);
    all_lead_elsewhere(&serving, &names);
    let calls = noted(&folder).iter().filter(|it| it.to_string().contains("tools/call")).count();
    assert_eq!(calls, 2, "TLS was spoken, and nothing was sent twice");
    canary.assert_alone();
    assert_nothing_logged(&folder);
}

#[test]
fn c04_an_old_server_leads_our_messages_nowhere_else() {
    let folder = Folder::new();
    let (evil, canary) = (Evil::http(&folder), Canary::new());
    let (own, other) = (evil.port, canary.port);
    let foreign = [
        format!("http://127.0.0.1:{other}/messages"),
        format!("http://localhost:{other}/messages"),
        format!("http://localhost:{own}/messages?key=0"),
        format!("https://127.0.0.1:{own}/messages?key=0"),
        format!("http://127.0.0.1:{own}%40127.0.0.1:{other}/messages"),
        format!("http://me%40127.0.0.1:{own}/messages"),
        format!("//127.0.0.1:{other}/messages"),
        format!("\\\\127.0.0.1:{other}/messages"),
        "file:///etc/passwd".to_owned(),
        "http://".to_owned(),
    ];
    let mut servers = json!({});
    for (at, to) in foreign.iter().enumerate() {
        servers[format!("first{at}")] = server(&evil.url(&format!("/sse?endpoint={to}")), "sse");
    }
    let then = &foreign[0];
    servers["second"] = server(&evil.url(&format!("/sse?then={then}&then=/nowhere")), "sse");
    let serving = gateway(&folder, &servers);
    let mut caller = Caller::with(&serving, "SECRET_TOKEN_A");
    assert_eq!(caller.tools(), ["mcp__second__headers", "mcp__second__param"]);
    // The second address is not taken: messages go on to the first.
    for _ in 0..3 {
        caller.text("mcp__second__headers", &json!({}));
    }
    let noted = noted(&folder);
    let posts = noted.iter().map(|it| it["head"].as_str().unwrap());
    let posts: Vec<&str> = posts.filter(|it| it.starts_with("POST")).collect();
    assert!(!posts.iter().any(|it| it.starts_with("POST /nowhere")), "{posts:?}");
    assert!(3 <= posts.iter().filter(|it| it.starts_with("POST /messages?key=")).count());
    canary.assert_alone();
    assert_nothing_logged(&folder);
}

#[test]
fn c08_an_argument_in_a_header_stays_one_header() {
    let folder = Folder::new();
    let evil = Evil::http(&folder);
    let serving = gateway(&folder, &json!({ "m": server(&evil.url("/modern"), "http") }));
    let mut caller = Caller::with(&serving, "SECRET_TOKEN_A");
    let values = [
        "us-west1",
        "a\r\nX-Evil: 1",
        "a\nX-Evil: 1\n\n{}",
        "a\r\n\r\nPOST /evil HTTP/1.1\r\nHost: x\r\n\r\n",
        "\rX-Evil: 1",
        "é",
        "a\u{0}b",
        "\u{7f}",
        "\u{2028}",
        " a ",
        "\t",
        "",
        "=?base64?YQ==?=",
        "=?base64?",
        "😀",
    ];
    for value in values {
        caller.text("mcp__m__param", &json!({ "region": value }));
        let noted = noted(&folder);
        let last = noted.last().unwrap();
        let head = last["head"].as_str().unwrap();
        let body: Value = serde_json::from_str(last["body"].as_str().unwrap()).unwrap();
        assert_eq!(body["params"]["arguments"]["region"], value, "{last}");
        assert!(!head.to_lowercase().contains("\nx-evil") && head.starts_with("POST /modern "));
        let lines = head.split("\r\n").filter_map(|it| it.split_once(": "));
        let mut said = lines.filter(|(name, _)| name.eq_ignore_ascii_case("mcp-param-region"));
        let (Some((_, shown)), None) = (said.next(), said.next()) else { panic!("{head}") };
        assert!(shown.bytes().all(|it| matches!(it, 0x20..=0x7e)), "{shown:?}");
        let meant = match shown.strip_prefix("=?base64?").and_then(|it| it.strip_suffix("?=")) {
            Some(coded) => String::from_utf8(BASE64.decode(coded).unwrap()).unwrap(),
            None => shown.to_owned(),
        };
        assert_eq!(meant, value, "{head}");
    }
    // What reached the server is what was sent, and no more.
    let calls = noted(&folder).iter().filter(|it| it.to_string().contains("tools/call")).count();
    assert_eq!(calls, values.len());
}
