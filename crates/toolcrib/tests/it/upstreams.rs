//! Servers as they are and as they should not be: every fault to order, over the transports on which
//! it can happen, in both eras.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::json;
use toolcrib::{
    catalogue::{CallError, Json, Source, SourceState},
    sources::mcp::{Client, Transport},
};
use toolcrib_testkit::{Act, Fault, Plan, Running};

use crate::kit::{Folder, at, client, stdio, text};

/// One server, over every transport that its era has.
struct Everywhere {
    clients: Vec<(&'static str, Client)>,
    // They run while this lives.
    _servers: Vec<Running>,
}

impl Everywhere {
    async fn start(plan: &Plan) -> Self {
        let http = Running::http(plan.clone()).await;
        let streams = Running::http(plan.clone().fault(Fault::Streams)).await;
        let mut clients = vec![
            ("stdio", client(stdio("s", plan))),
            ("http", client(at("s", Transport::StreamableHttp, &http.url))),
            ("http with streams", client(at("s", Transport::StreamableHttp, &streams.url))),
            ("an address", client(at("s", Transport::Url, &http.url))),
        ];
        let mut servers = vec![http, streams];
        if plan.speaks == toolcrib_testkit::Speaks::Legacy {
            let sse = Running::sse(plan.clone()).await;
            clients.push(("sse", client(at("s", Transport::Sse, &sse.url))));
            clients.push(("an old address", client(at("s", Transport::Url, &sse.url))));
            servers.push(sse);
        }
        Self { clients, _servers: servers }
    }
}

fn both_eras() -> [Plan; 2] {
    [Plan::legacy(), Plan::modern()]
}

#[tokio::test]
async fn every_transport_lists_and_calls_in_both_eras() {
    for plan in both_eras() {
        let revision = if plan.speaks == toolcrib_testkit::Speaks::Modern {
            "2026-07-28"
        } else {
            "2025-11-25"
        };
        let world = Everywhere::start(&plan.tool("echo", Act::Echo).tool("b", Act::Fail)).await;
        for (over, client) in &world.clients {
            let tools = client.list_tools("s").await.unwrap_or_else(|it| panic!("{over}: {it}"));
            let names: Vec<&str> = tools.iter().map(|it| it.name.as_str()).collect();
            assert_eq!(names, ["echo", "b"], "{over}");
            let arguments = Json::parse(r#"{"n":18446744073709551616,"é":"\u0000"}"#).unwrap();
            let outcome = client.call_tool("s", "echo", Some(arguments)).await.unwrap();
            assert!(!outcome.is_error, "{over}");
            assert!(client.call_tool("s", "b", None).await.unwrap().is_error, "{over}");
            let connection = client.connect("s").await.unwrap();
            assert_eq!(connection.greeting().unwrap().revision.as_str(), revision, "{over}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn every_legacy_revision_is_spoken() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let world =
            Everywhere::start(&Plan::legacy().revision(revision).tool("echo", Act::Echo)).await;
        for (over, client) in &world.clients {
            let connection = client.connect("s").await.unwrap();
            assert_eq!(connection.greeting().unwrap().revision.as_str(), revision, "{over}");
            assert_eq!(text(client, "echo").await, "{}", "{over}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn a_revision_nobody_knows_is_said() {
    let client = client(stdio("s", &Plan::legacy().revision("1999-01-01")));
    let error = client.connect("s").await.unwrap_err().to_string();
    insta::assert_snapshot!(error, @"Failed to connect to server 's': it speaks protocol revision `1999-01-01`, which toolcrib does not");
    client.close().await;
}

#[tokio::test]
async fn a_result_goes_through_to_the_letter() {
    let result = r#"{"content":[{"type":"text","text":"a","vendor":{"z":1,"a":1e400}},{"type":"hologram","n":0.10}],"structuredContent":{"big":18446744073709551616},"_meta":{"x":-0},"resultType":"complete"}"#;
    for plan in both_eras() {
        let world = Everywhere::start(&plan.tool("t", Act::Result(result.to_owned()))).await;
        for (over, client) in &world.clients {
            let outcome = client.call_tool("s", "t", None).await.unwrap();
            assert_eq!(outcome.raw.as_str(), result, "{over}");
            assert_eq!(outcome.structured.unwrap().as_str(), r#"{"big":18446744073709551616}"#);
            client.close().await;
        }
    }
}

#[tokio::test]
async fn what_readers_disagree_on_never_comes_through() {
    let line =
        r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[],"isError":true,"isError":false}}"#;
    let world = Everywhere::start(&Plan::legacy().tool("t", Act::Line(line.to_owned()))).await;
    for (over, client) in &world.clients {
        let error = client.call_tool("s", "t", None).await.unwrap_err();
        assert!(matches!(error, CallError::Malformed { .. }), "{over}: {error}");
        assert!(error.to_string().contains("duplicate key `isError`"), "{over}: {error}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_crash_in_a_call_is_told_at_once_with_its_cause_and_the_server_comes_back() {
    for plan in both_eras() {
        let world =
            Everywhere::start(&plan.tool("crash", Act::Crash).tool("echo", Act::Echo)).await;
        for (over, client) in &world.clients {
            client.connect("s").await.unwrap();
            let begin = Instant::now();
            let error = client.call_tool("s", "crash", None).await.unwrap_err();
            assert!(matches!(error, CallError::Lost { .. }), "{over}: {error}");
            assert!(error.may_have_run() && error.is_transient(), "{over}");
            assert!("server `s`: ".len() < error.to_string().len(), "{over}: {error}");
            assert!(begin.elapsed() < Duration::from_secs(2), "{over}");
            client.connect("s").await.unwrap();
            assert_eq!(text(client, "echo").await, "{}", "{over}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn the_cause_holds_the_exit_code_and_the_last_words_but_no_secret() {
    let plan = Plan::legacy()
        .fault(Fault::ExitAtOnce("no \u{1b}[1mkey\u{1b}[0m hunter22-secret for you".to_owned()));
    let mut config = stdio("s", &plan);
    config.env =
        vec![("API_KEY".to_owned(), toolcrib::sources::mcp::Filled::literal("hunter22-secret"))];
    let client = client(config);
    let error = client.connect("s").await.unwrap_err().to_string();
    insta::assert_snapshot!(error, @r"Failed to connect to server 's': it exited with code 0; it last said: no \u{1b}[1mkey\u{1b}[0m **** for you");
    client.close().await;
}

#[tokio::test]
async fn half_a_frame_is_no_answer() {
    for plan in both_eras() {
        let world = Everywhere::start(&plan.tool("half", Act::HalfFrame)).await;
        for (over, client) in &world.clients {
            client.connect("s").await.unwrap();
            let error = client.call_tool("s", "half", None).await.unwrap_err();
            assert!(matches!(error, CallError::Lost { .. }), "{over}: {error:?}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn a_hang_ends_at_the_timeout_and_the_server_hears_of_it() {
    let folder = Folder::new();
    for (number, plan) in both_eras().into_iter().enumerate() {
        let notes = folder.file(&format!("notes-{number}"));
        let plan = plan.tool("hang", Act::Hang).tool("echo", Act::Echo).notes(&notes);
        let mut config = stdio("s", &plan);
        config.timeout = Duration::from_millis(300);
        let client = client(config);
        client.connect("s").await.unwrap();
        let error = client.call_tool("s", "hang", None).await.unwrap_err();
        assert!(matches!(error, CallError::TimedOut { sent: true, .. }), "{error}");
        assert_eq!(text(&client, "echo").await, "{}");
        client.close().await;
        let notes = fs::read_to_string(&notes).unwrap();
        let asked: Vec<&str> = notes.lines().filter(|it| it.contains("\"hang\"")).collect();
        assert_eq!(asked.len(), 1, "it was asked more than once");
        let id = asked[0].split("\"id\":").nth(1).unwrap().split(',').next().unwrap();
        let cancelled =
            format!(r#""method":"notifications/cancelled","params":{{"requestId":{id},"#);
        assert!(notes.contains(&cancelled), "{notes}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_call_is_cancelled_over_http_too() {
    let folder = Folder::new();
    let notes = folder.file("notes");
    let running = Running::http(Plan::legacy().tool("hang", Act::Hang).notes(&notes)).await;
    let client = client(at("s", Transport::StreamableHttp, &running.url));
    client.connect("s").await.unwrap();
    let call = client.call_tool("s", "hang", None);
    assert!(tokio::time::timeout(Duration::from_millis(200), call).await.is_err());
    crate::kit::soon("the server hears of it", || {
        fs::read_to_string(&notes).unwrap().contains("notifications/cancelled")
    });
    client.close().await;
}

#[tokio::test]
async fn a_server_that_never_speaks_is_given_up_in_time() {
    let running = Running::http(Plan::legacy().fault(Fault::Mute)).await;
    let configs = [
        stdio("s", &Plan::legacy().fault(Fault::Mute)),
        at("s", Transport::StreamableHttp, &running.url),
        at("s", Transport::Sse, &running.url),
    ];
    for mut config in configs {
        config.handshake_timeout = Duration::from_millis(600);
        let client = client(config);
        let begin = Instant::now();
        let error = client.connect("s").await.unwrap_err();
        assert!(error.to_string().contains("it was not ready within 0.6 s"), "{error}");
        assert!(begin.elapsed() < Duration::from_secs(3));
        client.close().await;
    }
}

#[tokio::test]
async fn a_slow_start_is_waited_for() {
    for plan in both_eras() {
        // Longer than it is asked only for the newest revision: both questions wait for it then.
        let mut config = stdio("s", &plan.fault(Fault::SlowStart(800)).tool("echo", Act::Echo));
        config.handshake_timeout = Duration::from_secs(2);
        for _ in 0..4 {
            let client = client(config.clone());
            client.connect("s").await.unwrap();
            assert_eq!(text(&client, "echo").await, "{}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn a_server_that_dies_of_what_it_does_not_know_is_asked_in_the_old_way() {
    let plan = Plan::legacy().tool("echo", Act::Echo);
    for fault in [Fault::DiesOfUnknown, Fault::DiesAfterUnknown, Fault::SwallowsUnknown] {
        let mut config = stdio("s", &plan.clone().fault(fault));
        config.handshake_timeout = Duration::from_secs(3);
        let client = client(config);
        assert_eq!(text(&client, "echo").await, "{}");
        client.close().await;
    }
}

#[tokio::test]
async fn garbage_on_stdout_is_skipped() {
    let client = client(stdio("s", &Plan::legacy().tool("mess", Act::Garbage(1000))));
    for _ in 0..3 {
        assert_eq!(text(&client, "mess").await, "{}");
    }
    client.close().await;
}

#[tokio::test]
async fn a_large_result_comes_whole_and_one_over_the_limit_is_an_error() {
    let plan = Plan::legacy()
        .tool("big", Act::Big(99_000_000))
        .tool("bigger", Act::Big(101_000_000))
        .tool("echo", Act::Echo);
    let world = Everywhere::start(&plan).await;
    for (over, client) in &world.clients {
        assert_eq!(text(client, "big").await.len(), 99_000_000, "{over}");
        let error = client.call_tool("s", "bigger", None).await.unwrap_err().to_string();
        assert!(error.contains("limit"), "{over}: {error}");
        client.connect("s").await.unwrap();
        assert_eq!(text(client, "echo").await, "{}", "{over}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_list_that_changes_is_asked_for_again() {
    for plan in both_eras() {
        let world = Everywhere::start(&plan.tool("add", Act::Add("late".to_owned()))).await;
        for (over, client) in &world.clients {
            let connection = client.connect("s").await.unwrap();
            // A modern server first has to hear that we listen; a stream has to be open.
            tokio::time::sleep(Duration::from_millis(200)).await;
            let version = connection.version();
            client.call_tool("s", "add", None).await.unwrap();
            let changed = connection.changed_since(version);
            let changed = tokio::time::timeout(Duration::from_secs(5), changed).await;
            assert!(changed.is_ok(), "{over}: nothing changed");
            let names: Vec<String> = connection.tools().iter().map(|it| it.name.clone()).collect();
            assert_eq!(names[..2], ["add", "late"], "{over}");
            client.close().await;
        }
    }
}

#[tokio::test]
async fn all_pages_of_a_long_list_are_read() {
    for mut plan in both_eras() {
        for number in 0..5000 {
            plan = plan.tool(&format!("tool-{number}"), Act::Echo);
        }
        // As an argument this plan would be too long, so no child process here.
        let running = Running::http(plan.pages_of(50)).await;
        let client = client(at("s", Transport::StreamableHttp, &running.url));
        assert_eq!(client.list_tools("s").await.unwrap().len(), 5000);
        client.close().await;
    }
}

#[tokio::test]
async fn a_list_that_goes_round_in_a_circle_ends() {
    let client = client(stdio("s", &Plan::legacy().tool("a", Act::Echo).fault(Fault::EndlessList)));
    let connection = client.connect("s").await.unwrap();
    insta::assert_snapshot!(connection.problems()[0], @"server s: its list of tools goes round in a circle; what came twice is left out");
    client.close().await;
}

#[tokio::test]
async fn a_server_that_fails_after_the_handshake_says_why() {
    let world = Everywhere::start(&Plan::legacy().fault(Fault::NoList)).await;
    for (over, client) in &world.clients {
        let error = client.connect("s").await.unwrap_err().to_string();
        let expected = "Failed to connect to server 's': it does not list its tools: the list is lost (code -32603)";
        assert_eq!(error, expected, "{over}");
        client.close().await;
    }
}

#[tokio::test]
async fn a_stale_session_is_renewed_and_nobody_notices() {
    let plan = Plan::legacy().fault(Fault::Forgetful(4)).tool("echo", Act::Echo);
    let running = Running::http(plan).await;
    let client = client(at("s", Transport::StreamableHttp, &running.url));
    for number in 0..12 {
        assert_eq!(text(&client, "echo").await, "{}", "call {number}");
    }
    client.close().await;
}

#[tokio::test]
async fn a_redirect_is_not_followed_and_the_other_host_hears_nothing() {
    let other = Running::http(Plan::legacy()).await;
    let running = Running::http(Plan::legacy().fault(Fault::Redirect(other.url.clone()))).await;
    for transport in [Transport::StreamableHttp, Transport::Sse, Transport::Url] {
        let client = client(at("s", transport, &running.url));
        let error = client.connect("s").await.unwrap_err().to_string();
        assert!(error.contains("it redirects to 127.0.0.1:"), "{error}");
        assert!(error.contains("which is not followed"), "{error}");
        client.close().await;
    }
    assert_eq!(other.requests(), 0);
}

#[tokio::test]
async fn an_old_server_cannot_send_our_messages_to_another_host() {
    let other = Running::sse(Plan::legacy()).await;
    let endpoint = other.url.replace("/sse", "/messages");
    let running = Running::sse(Plan::legacy().fault(Fault::Endpoint(endpoint))).await;
    let client = client(at("s", Transport::Sse, &running.url));
    let error = client.connect("s").await.unwrap_err().to_string();
    assert!(error.contains("it wants its messages sent to another host"), "{error}");
    client.close().await;
    assert_eq!(other.requests(), 0);
}

#[tokio::test]
async fn a_server_that_wants_a_token_is_a_problem_with_a_cure() {
    let plan = Plan::legacy().fault(Fault::Token("t0ken-t0ken".to_owned())).tool("echo", Act::Echo);
    let running = Running::http(plan).await;
    let without = client(at("s", Transport::StreamableHttp, &running.url));
    let connection = without.connection("s").unwrap();
    let SourceState::Failed { cause, hint } = connection.settled().await else { panic!() };
    insta::assert_snapshot!(format!("{cause}\n{}", hint.unwrap()), @r#"
    it refused access (HTTP 401)
    put what the server wants in `headers`: {"Authorization": "Bearer ${TOKEN}"}
    "#);
    without.close().await;

    let mut config = at("s", Transport::StreamableHttp, &running.url);
    let env = |_: &str| Some("t0ken-t0ken".to_owned());
    let header = toolcrib::sources::mcp::Filled::new("Bearer ${TOKEN}", &env);
    config.headers = vec![("Authorization".to_owned(), header)];
    let with = client(config);
    assert_eq!(text(&with, "echo").await, "{}");
    with.close().await;
}

#[tokio::test]
async fn a_modern_request_says_in_its_headers_what_it_is() {
    let good =
        r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}"#;
    let bad = r#"{"type":"object","properties":{"r":{"type":"number","x-mcp-header":"R"}}}"#;
    let plan = Plan::modern().tool("é h", Act::Headers).tool_with("mirror", good, Act::Headers);
    let running = Running::http(plan.tool_with("bad", bad, Act::Echo)).await;
    let client = client(at("s", Transport::StreamableHttp, &running.url));
    let headers: serde_json::Value = serde_json::from_str(&text(&client, "é h").await).unwrap();
    assert_eq!(headers["mcp-method"], "tools/call");
    assert_eq!(headers["mcp-name"], "=?base64?w6kgaA==?=");
    assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
    assert_eq!(headers["mcp-session-id"], json!(null));
    let arguments = Json::parse(r#"{"region":"us-west1"}"#).unwrap();
    let outcome = client.call_tool("s", "mirror", Some(arguments)).await.unwrap();
    let headers: serde_json::Value = serde_json::from_str(&outcome.text()).unwrap();
    assert_eq!(headers["mcp-param-region"], "us-west1");
    let connection = client.connect("s").await.unwrap();
    assert_eq!(connection.tools().len(), 2);
    insta::assert_snapshot!(connection.problems()[0], @"server s: tool bad: `x-mcp-header` stands at an argument that is no string, integer or boolean; it is left out");
    client.close().await;
}
