//! Connections over time: death and return, retries, several servers at once, the seed's loaders.

use std::{
    fs,
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::json;
use toolcrib::{
    catalogue::{
        CallContext, ClientError, Convert, Source, SourceState, ToolFilter, ToolServer,
        load_tools_from_client,
    },
    sources::mcp::{Connection, ExecutionError, Retry, call_tool_with_retry},
};
use toolcrib_testkit::{Act, Fault, Plan};

use crate::kit::{Folder, client, stdio, text};

#[tokio::test]
async fn a_dead_server_fails_fast_its_tools_stay_listed_and_it_comes_back_by_itself() {
    let folder = Folder::new();
    let once = Act::CrashOnce(folder.file("crashed"));
    let client = client(stdio("s", &Plan::legacy().tool("once", once)));
    let connection = client.connect("s").await.unwrap();
    let context = || CallContext { retries: Some(0), ..CallContext::default() };
    connection.call("once", None, context()).await.unwrap_err();
    connection.changed_since(connection.version()).await;
    assert_eq!(connection.tools().len(), 1);
    let begin = Instant::now();
    if let Err(error) = connection.call("once", None, context()).await {
        assert!(
            error.to_string().starts_with("server `s` is down: it exited with code 7"),
            "{error}"
        );
        assert!(!error.may_have_run());
        assert!(begin.elapsed() < Duration::from_millis(100));
    }
    let back = async {
        while connection.state() != SourceState::Ready {
            connection.changed_since(connection.version()).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(5), back).await.unwrap();
    assert_eq!(connection.call("once", None, context()).await.unwrap().text(), "{}");
    client.close().await;
}

/// How often a tool was called, by the server's own notes.
fn calls(notes: &std::path::Path) -> usize {
    fs::read_to_string(notes).unwrap().matches("tools/call").count()
}

/// Row D16 of the security list.
#[tokio::test]
async fn a_call_that_may_have_run_is_repeated_only_where_hints_are_trusted() {
    let folder = Folder::new();
    for (trusted, read_only, expected) in [(false, true, 1), (true, false, 1), (true, true, 2)] {
        let unique = format!("{trusted}-{read_only}");
        let (notes, crashed) =
            (folder.file(&format!("n-{unique}")), folder.file(&format!("c-{unique}")));
        let plan = Plan::legacy().notes(&notes);
        let act = Act::CrashOnce(crashed);
        let plan = if read_only { plan.read_only_tool("t", act) } else { plan.tool("t", act) };
        let mut config = stdio("s", &plan);
        config.trust_hints = trusted;
        let client = client(config);
        let connection = client.connect("s").await.unwrap();
        let outcome = ToolServer::call_tool(&*connection, "t", None).await;
        assert_eq!(outcome.is_ok(), expected == 2, "{unique}");
        assert_eq!(calls(&notes), expected, "{unique}");
        client.close().await;
    }
}

#[tokio::test]
async fn the_explicit_retry_of_the_seed_reconnects_and_repeats() {
    let folder = Folder::new();
    let act = Act::CrashOnce(folder.file("crashed"));
    let client = client(stdio("s", &Plan::legacy().tool("t", act).tool("e", Act::Error(-32602))));
    let retry = Retry { backoff_base: Duration::from_millis(10), ..Retry::default() };
    let outcome = call_tool_with_retry(&client, "s", "t", None, &retry).await.unwrap();
    assert_eq!(outcome.text(), "{}");
    let refused = call_tool_with_retry(&client, "s", "e", None, &retry).await.unwrap_err();
    insta::assert_snapshot!(refused, @"MCP tool 'e' on 's' failed: no (code -32602)");
    let unknown = call_tool_with_retry(&client, "x", "e", None, &retry).await.unwrap_err();
    let expected = ExecutionError::Client(ClientError::UnknownServer("x".to_owned()));
    assert_eq!(unknown, expected);
    client.close().await;
}

#[tokio::test]
async fn there_is_a_deadline_for_all_attempts_together() {
    let client = client(stdio("s", &Plan::legacy().tool("hang", Act::Hang)));
    client.connect("s").await.unwrap();
    let retry = Retry {
        max_retries: 100,
        timeout: Some(Duration::from_millis(100)),
        backoff_base: Duration::from_millis(50),
        total: Some(Duration::from_millis(800)),
    };
    let begin = Instant::now();
    let error = call_tool_with_retry(&client, "s", "hang", None, &retry).await.unwrap_err();
    assert!(begin.elapsed() < Duration::from_millis(1200));
    let ExecutionError::Exhausted { attempts, cause, .. } = error else { panic!("{error}") };
    assert!((2..=5).contains(&attempts), "{attempts}");
    assert_eq!(cause, "no answer within 100 ms");
    client.close().await;
}

#[tokio::test]
async fn one_bad_server_does_not_hide_the_others() {
    let good = stdio("good", &Plan::legacy().tool("echo", Act::Echo));
    let client = client(good);
    client
        .add_server(stdio("bad", &Plan::legacy().fault(Fault::ExitAtOnce("no".to_owned()))))
        .unwrap();
    let mut hangs = stdio("hangs", &Plan::legacy().fault(Fault::Mute));
    hangs.handshake_timeout = Duration::from_millis(500);
    client.add_server(hangs).unwrap();
    let begin = Instant::now();
    let connected = client.connect_all().await;
    assert!(begin.elapsed() < Duration::from_secs(3), "they were not started at the same time");
    let ready: Vec<bool> = connected.iter().map(|(_, it)| it.is_ok()).collect();
    assert_eq!(ready, [true, false, false]);
    client.close().await;
}

#[tokio::test]
async fn the_seeds_loaders_work_on_a_real_client() {
    let client =
        client(stdio("my-server", &Plan::legacy().tool("echo", Act::Echo).tool("no", Act::Fail)));
    let all = load_tools_from_client(&client, &Convert::default()).await.unwrap();
    assert_eq!(all[0].name(), "mcp__my_server__echo");
    let output = all[0].execute(&json!({ "a": 1 })).await.unwrap();
    assert_eq!(output.text, r#"{"a":1}"#);
    let error = all[1].execute(&json!({})).await.unwrap_err().to_string();
    assert_eq!(error, "MCP tool 'no' returned error: it did not work");
    let filter = ToolFilter { exclude: ["echo".to_owned()].into(), ..ToolFilter::default() };
    let convert = Convert { filter, ..Convert::default() };
    let some = load_tools_from_client(&client, &convert).await.unwrap();
    assert_eq!(some.len(), 1);
    client.close().await;
}

#[tokio::test]
async fn connecting_at_the_same_time_starts_one_server() {
    let folder = Folder::new();
    let notes = folder.file("notes");
    let client =
        Arc::new(client(stdio("s", &Plan::legacy().tool("echo", Act::Echo).notes(&notes))));
    let connects = (0..20).map(|_| {
        let client = Arc::clone(&client);
        tokio::spawn(async move { text(&client, "echo").await })
    });
    for call in connects.collect::<Vec<_>>() {
        assert_eq!(call.await.unwrap(), "{}");
    }
    assert_eq!(fs::read_to_string(&notes).unwrap().matches("\"initialize\"").count(), 1);
    client.close().await;
}

#[tokio::test]
async fn a_removed_connection_is_made_anew() {
    let client = client(stdio("s", &Plan::legacy().tool("echo", Act::Echo)));
    let first: Arc<Connection> = client.connect("s").await.unwrap();
    client.disconnect("s");
    assert_eq!(text(&client, "echo").await, "{}");
    assert_eq!(first.settled().await, SourceState::Closed);
    client.close().await;
}

#[tokio::test]
async fn a_list_is_kept_where_the_server_tells_of_changes() {
    let folder = Folder::new();
    let notes = folder.file("notes");
    let client = client(stdio("s", &Plan::legacy().tool("echo", Act::Echo).notes(&notes)));
    for _ in 0..5 {
        assert_eq!(client.list_tools("s").await.unwrap().len(), 1);
    }
    client.close().await;
    assert_eq!(fs::read_to_string(&notes).unwrap().matches("tools/list").count(), 1);
}
