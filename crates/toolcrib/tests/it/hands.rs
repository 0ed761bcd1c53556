//! Runtimes beside the main one serve connections too, and a connection stays where it is put.

use std::{collections::HashSet, fs, sync::Arc, thread};

use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use toolcrib::{
    catalogue::{NameStyle, Origin, ToolFilter},
    server::{Access, AccessSettings, Door, Gateway, HttpSettings, Input, Settings},
    sources::mods::{AgentTool, Mod, ModSource},
};

use crate::{
    kit::soon,
    serving::{Line, Serving, two_servers},
};

/// Says by which thread it was called.
#[derive(Debug)]
struct Tells;

impl Mod for Tells {
    fn name(&self) -> &str {
        "tells"
    }

    fn get_tools(&self) -> Vec<AgentTool> {
        let tell = |_: Value| async {
            Ok::<_, String>(thread::current().name().unwrap_or("none").to_owned())
        };
        vec![AgentTool::new("thread", "Tells its thread.", tell)]
    }
}

fn runtime(name: &str) -> Runtime {
    Builder::new_multi_thread().worker_threads(1).thread_name(name).enable_all().build().unwrap()
}

fn gateway() -> Arc<Gateway> {
    let input = Input {
        source: Some(Arc::new(ModSource::new(&Tells))),
        origin: Origin::Mod("tells".to_owned()),
        style: NameStyle::Prefixed,
        filter: ToolFilter::default(),
        required: false,
        way: None,
        limit: Default::default(),
    };
    let access = AccessSettings { default_group: "guest".to_owned(), ..Default::default() };
    Gateway::start(vec![input], Access::new(&access), Settings::default())
}

#[test]
fn connections_are_dealt_out_in_turns_and_stay() {
    let (main, hand) = (runtime("main-thread"), runtime("other-thread"));
    let settings = HttpSettings { hands: vec![hand.handle().clone()], ..Default::default() };
    let address = main.block_on(async {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let door = Door::new(gateway(), settings, address);
        main.spawn(async move { door.serve(listener).await });
        address.to_string()
    });
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let open = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "thread" } });
    let call = call.to_string();
    let mut lines: Vec<Line> = (0..4).map(|_| Line::to(&address)).collect();
    let session = lines[0].post_with(&[], &open.to_string()).header("mcp-session-id").unwrap();
    // One session, whichever thread it is asked on.
    let mut ask = |line: usize| {
        let answer = lines[line].post(&session, &call).json();
        answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{answer}"))
            .to_owned()
    };
    for _ in 0..3 {
        let told: Vec<String> = (0..4).map(&mut ask).collect();
        assert_eq!(told, ["main-thread", "other-thread", "main-thread", "other-thread"]);
    }
    main.shutdown_background();
    hand.shutdown_background();
}

/// The names of a process's threads.
fn threads(process: u32) -> HashSet<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    let name =
        |it: std::io::Result<fs::DirEntry>| fs::read_to_string(it.unwrap().path().join("comm"));
    tasks.filter_map(|it| name(it).ok()).map(|it| it.trim().to_owned()).collect()
}

#[test]
fn half_of_the_cores_are_hands_and_all_ends_with_the_gateway() {
    let folder = two_servers();
    let mut serving = Serving::start(folder.path());
    let hands = thread::available_parallelism().unwrap().get() / 2;
    let expected: HashSet<String> = (0..hands).map(|at| format!("hand-{at}")).collect();
    let found = threads(serving.child.id());
    assert!(expected.is_subset(&found), "{found:?}");
    // Each has a connection that it waits for.
    let mut lines: Vec<Line> = (0..=2 * hands).map(|_| Line::open(&serving)).collect();
    let session = serving.session(&[], "2025-11-25");
    let call = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": { "name": "mcp__a__echo", "arguments": { "text": "x" } } });
    for line in &mut lines {
        let answer = line.post(&session, &call.to_string());
        assert!(answer.json()["result"]["content"].is_array(), "{answer:?}");
    }
    serving.signal("-TERM");
    soon("it has ended", || serving.child.try_wait().unwrap().is_some());
    assert!(serving.child.wait().unwrap().success());
}
