//! Results too large for memory: put aside while they come, over every transport, and whole for whoever
//! does not ask for less.

mod process;

use std::{
    fs,
    io::Read,
    path::Path,
    time::{Duration, Instant},
};

use serde_json::json;
use toolcrib::{
    catalogue::{AsideField, AsidePlace, Blame, CallContext, CallError, Json, Source},
    sources::mcp::{Client, ClientOptions, ServerConfig, Spool, Transport},
};
use toolcrib_testkit::{Act, Fault, Plan, Running, rows};

use crate::kit::{Folder, at, soon, stdio, text};

/// More than is kept in memory.
const LARGE: usize = 12_000_000;

fn client(config: ServerConfig, spool: Spool) -> Client {
    client_with(config, spool, 100_000_000)
}

/// A client that keeps no more than this of a message in memory.
fn client_with(config: ServerConfig, spool: Spool, max_frame: usize) -> Client {
    let options = ClientOptions::with_environment(&toolcrib::environment);
    let client = Client::new(ClientOptions { spool: Some(spool), max_frame, ..options });
    client.add_server(config).unwrap();
    client
}

/// Calls a tool of server `s` as somebody who deals with what was put aside.
async fn call(client: &Client, tool: &str) -> Result<Json, CallError> {
    let context = CallContext { takes_aside: true, retries: Some(0), ..CallContext::default() };
    request(client, tool, context).await
}

async fn request(client: &Client, tool: &str, context: CallContext) -> Result<Json, CallError> {
    let params = Json::of(&json!({ "name": tool })).unwrap();
    client.connection("s").unwrap().request("tools/call", params, context).await
}

/// A plan over every transport. Whoever runs must be kept.
async fn everywhere(plan: &Plan) -> (Vec<ServerConfig>, Vec<Running>) {
    let (config, running) = over_http(plan).await;
    ([vec![stdio("s", plan)], config].concat(), running)
}

async fn over_http(plan: &Plan) -> (Vec<ServerConfig>, Vec<Running>) {
    let json = Running::http(plan.clone()).await;
    let stream = Running::http(plan.clone().fault(Fault::Streams)).await;
    let sse = Running::sse(plan.clone()).await;
    let configs = vec![
        at("s", Transport::StreamableHttp, &json.url),
        at("s", Transport::StreamableHttp, &stream.url),
        at("s", Transport::Sse, &sse.url),
    ];
    (configs, vec![json, stream, sse])
}

/// How many files of a folder this process has open, and that have no names any more.
fn open_files(folder: &Path) -> usize {
    let folder = folder.canonicalize().unwrap();
    let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
    let open = open.filter_map(|it| fs::read_link(it.path()).ok());
    open.filter(|it| it.starts_with(&folder)).count()
}

fn read(result: &Json, part: usize) -> String {
    let mut text = String::new();
    result.aside().unwrap().open(part).unwrap().read_to_string(&mut text).unwrap();
    text
}

#[tokio::test]
async fn large_parts_are_put_aside_for_whoever_deals_with_them() {
    let folder = Folder::new();
    let plan = Plan::legacy()
        .tool("big", Act::Big(LARGE))
        .tool("rows", Act::Rows(LARGE))
        .tool("small", Act::Big(5_000_000));
    let (configs, _running) = everywhere(&plan).await;
    for config in configs {
        let client = client(config, Spool::new(folder.path()));
        let result = call(&client, "big").await.unwrap();
        let said = r#"{"content":[{"type":"text","text":""}],"isError":false}"#;
        assert_eq!(result.as_str(), said);
        let parts = result.aside().unwrap().parts().to_vec();
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].place, AsidePlace::Content(0, AsideField::Text));
        assert_eq!(parts[0].size, LARGE as u64);
        let (one, other) = (read(&result, 0), read(&result, 0));
        assert!(one == "x".repeat(LARGE) && one == other);
        drop(result);

        let result = call(&client, "rows").await.unwrap();
        assert_eq!(result.as_str(), r#"{"content":[],"structuredContent":null}"#);
        assert!(read(&result, 0) == rows(LARGE));
        let copy = result.clone();
        drop(result);
        assert_eq!(open_files(folder.path()), 1);
        drop(copy);
        assert_eq!(open_files(folder.path()), 0);

        let result = call(&client, "small").await.unwrap();
        assert!(result.aside().is_none() && 5_000_000 < result.as_str().len());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
        client.close().await;
    }
}

#[tokio::test]
async fn anybody_else_gets_results_whole() {
    let folder = Folder::new();
    let plan = Plan::modern().tool("big", Act::Big(LARGE)).tool("rows", Act::Rows(LARGE));
    let (mut configs, _running) = everywhere(&plan).await;
    // HTTP+SSE is of another era.
    configs.pop();
    for config in configs {
        let client = client(config, Spool::new(folder.path()));
        assert!(text(&client, "big").await == "x".repeat(LARGE));
        let outcome = client.call_tool("s", "rows", None).await.unwrap();
        assert!(outcome.structured.unwrap().as_str() == rows(LARGE));
        assert_eq!(open_files(folder.path()), 0);
        client.close().await;
    }
}

#[tokio::test]
async fn what_is_put_back_is_what_came_to_the_byte() {
    let folder = Folder::new();
    let text = r#"\/ \u00e9 é \u0041 \ud83d\uDE00 \"\\ \n "#.repeat(LARGE / 40);
    let result = format!(
        r#"{{ "content": [ {{"type":"text","text":"{text}"}} ] ,"structuredContent" : {{"t": "{text}" }}}}"#
    );
    let line = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#);
    let (configs, _running) = over_http(&Plan::legacy().tool("odd", Act::Line(line))).await;
    for config in configs {
        let client = client(config, Spool::new(folder.path()));
        let whole = request(&client, "odd", CallContext::default()).await.unwrap();
        assert!(whole.as_str() == result);
        let parted = call(&client, "odd").await.unwrap();
        assert_eq!(parted.aside().unwrap().parts().len(), 2);
        let said: String = serde_json::from_str(&format!("\"{text}\"")).unwrap();
        assert!(read(&parted, 0) == said);
        assert!(read(&parted, 1) == format!(r#"{{"t": "{text}" }}"#));
        client.close().await;
    }
}

/// Of a kind that nobody knows, what was put aside can be anywhere in a part: it can be had whole.
#[tokio::test]
async fn one_part_is_had_whole() {
    let folder = Folder::new();
    let large = r"\/ \u00e9 ".repeat(LARGE / 20);
    let parts = [
        r#"{"type":"text","text":"small"}"#.to_owned(),
        format!(r#"{{ "type":"new","data":"{large}", "text": "{large}" ,"x":[1]}}"#),
        format!(r#"{{"type":"new","resource":{{"uri":"a:b","blob":"{large}"}}}}"#),
    ];
    let result = format!(r#"{{"content":[ {} ]}}"#, parts.join(" , "));
    let line = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#);
    let (configs, _running) = over_http(&Plan::legacy().tool("new", Act::Line(line))).await;
    for config in configs {
        let client = client(config, Spool::new(folder.path()));
        let result = call(&client, "new").await.unwrap();
        assert_eq!(result.aside().unwrap().parts().len(), 3);
        for (number, expected) in parts.iter().enumerate() {
            let mut found = Vec::new();
            result.write_part(number, &mut found).unwrap();
            assert!(found == expected.as_bytes(), "{number}");
        }
        assert!(result.write_part(3, &mut Vec::new()).is_err());
        client.close().await;
    }
}

#[tokio::test]
async fn what_is_put_back_is_bounded_as_all_messages_are() {
    let folder = Folder::new();
    let (configs, _running) = everywhere(&Plan::legacy().tool("big", Act::Big(LARGE))).await;
    for config in configs {
        let client = client_with(config, Spool::new(folder.path()), 10_000_000);
        assert!(call(&client, "big").await.is_ok());
        let error = client.call_tool("s", "big", None).await.unwrap_err();
        assert!(matches!(error, CallError::Malformed { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("larger than the limit of 10000000 bytes"), "{error}");
        // That one alone: the server is there as before.
        assert!(call(&client, "big").await.is_ok());
        client.close().await;
    }
}

#[tokio::test]
async fn more_than_may_be_put_aside_is_refused() {
    let folder = Folder::new();
    let plan = Plan::legacy().tool("big", Act::Big(LARGE)).tool("echo", Act::Echo);
    let (configs, _running) = everywhere(&plan).await;
    for config in configs {
        let mut spool = Spool::new(folder.path());
        spool.limit = LARGE - 1_000_000;
        let client = client(config, spool);
        let error = call(&client, "big").await.unwrap_err().to_string();
        assert!(error.contains("11000000 bytes"), "{error}");
        soon("nothing is left open", || open_files(folder.path()) == 0);
        client.close().await;
    }
}

#[tokio::test]
async fn what_cannot_be_put_aside_stays_in_memory() {
    let folder = Folder::new();
    let plan = Plan::legacy().tool("big", Act::Big(LARGE)).tool("rows", Act::Rows(LARGE));
    let (configs, _running) = everywhere(&plan).await;
    for config in configs {
        let client = client(config, Spool::new(folder.file("gone")));
        let (big, rows_) =
            (call(&client, "big").await.unwrap(), call(&client, "rows").await.unwrap());
        assert!(big.aside().is_none() && rows_.aside().is_none());
        assert!(big.as_str().contains(&"x".repeat(LARGE)));
        assert!(rows_.as_str().contains(&rows(LARGE)));
        assert!(text(&client, "big").await == "x".repeat(LARGE));
        client.close().await;
    }
}

/// Where there is no room in memory, either, that call fails and says why, and the next one works.
#[tokio::test]
async fn without_a_place_the_call_fails_and_the_connection_lives() {
    let folder = Folder::new();
    let plan = Plan::legacy().tool("big", Act::Big(LARGE)).tool("echo", Act::Echo);
    let (configs, _running) = everywhere(&plan).await;
    for config in configs {
        let client = client_with(config, Spool::new(folder.file("gone")), 10_000_000);
        for _ in 0..2 {
            let error = call(&client, "big").await.unwrap_err();
            assert_eq!(error.blame(), Blame::Gateway);
            assert_eq!(
                error.to_string(),
                "server `s`: its answer is large, and cannot be put aside: No such file or directory (os error 2)"
            );
            assert_eq!(text(&client, "echo").await, "{}");
        }
        fs::create_dir(folder.file("gone")).unwrap();
        assert!(call(&client, "big").await.is_ok());
        fs::remove_dir(folder.file("gone")).unwrap();
        client.close().await;
    }
}

#[tokio::test]
async fn a_large_message_that_is_none_fails_its_call_at_once() {
    let folder = Folder::new();
    let begin = r#"{"jsonrpc":"2.0","id":$ID,"result":{"content":[{"type":"text","text":""#;
    let large = format!("{begin}{}", "x".repeat(LARGE));
    let bad = |end: &str| Act::Line(format!("{large}{end}"));
    let plan = Plan::legacy()
        .tool("twice", bad(r#"","text":"more"}]}}"#))
        .tool("escape", bad(r#"\ud800"}]}}"#))
        .tool("cut", bad(r#""}]"#))
        .tool("result", bad(r#""}]},"result":{}}"#))
        .tool("echo", Act::Echo);
    let (configs, _running) = over_http(&plan).await;
    for config in configs {
        let client = client(config, Spool::new(folder.path()));
        for (tool, expected) in [
            ("twice", "duplicate key `text`"),
            ("escape", "bad escape in a string"),
            ("cut", "unexpected end"),
            ("result", "duplicate key `result`"),
        ] {
            let error = call(&client, tool).await.unwrap_err();
            assert!(matches!(error, CallError::Malformed { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
            assert_eq!(text(&client, "echo").await, "{}");
            assert_eq!(open_files(folder.path()), 0);
        }
        client.close().await;
    }
}

/// Several at a time, on one stream: each gets its own.
#[tokio::test]
async fn large_results_do_not_get_mixed_up() {
    let folder = Folder::new();
    let plan = Plan::legacy()
        .tool("big", Act::Big(LARGE))
        .tool("rows", Act::Rows(LARGE))
        .tool("echo", Act::Echo);
    let (configs, _running) = everywhere(&plan).await;
    for config in configs {
        let client = client(config, Spool::new(folder.path()));
        client.connect("s").await.unwrap();
        let (rows_, echo, big, whole) = tokio::join!(
            call(&client, "rows"),
            text(&client, "echo"),
            call(&client, "big"),
            text(&client, "big"),
        );
        assert!(read(&rows_.unwrap(), 0) == rows(LARGE));
        assert_eq!(echo, "{}");
        assert!(read(&big.unwrap(), 0) == whole);
        client.close().await;
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_half_way_leaves_nothing_behind() {
    let folder = Folder::new();
    let plan = Plan::legacy().tool("stall", Act::Stall(LARGE));
    let (configs, _running) = everywhere(&plan).await;
    for (number, config) in configs.into_iter().enumerate() {
        let client = client(config, Spool::new(folder.path()));
        client.connect("s").await.unwrap();
        let context = CallContext {
            takes_aside: true,
            retries: Some(0),
            attempt: Some(Duration::from_secs(3)),
            ..CallContext::default()
        };
        let begun = Instant::now();
        let seen = async {
            while open_files(folder.path()) == 0 {
                assert!(begun.elapsed() < Duration::from_secs(3), "nothing was put aside");
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            fs::read_dir(folder.path()).unwrap().count()
        };
        let (answer, names) = tokio::join!(request(&client, "stall", context), seen);
        assert!(matches!(answer, Err(CallError::TimedOut { sent: true, .. })), "{answer:?}");
        assert_eq!(names, 0);
        // A stream that all share has to be read on; one of its own ends with the call.
        if matches!(number, 1 | 2) {
            soon("it is given up", || open_files(folder.path()) == 0);
        }
        client.close().await;
        soon("nothing is left open", || open_files(folder.path()) == 0);
    }
}
