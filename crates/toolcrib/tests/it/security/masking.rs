//! Secrets in calls, in what servers say, and in what falls over.

use std::{
    env, fs,
    io::{BufRead, BufReader, Read},
    net::TcpStream,
    process::{Command, Stdio},
    sync::Arc,
};

use serde_json::{Value, json};
use toolcrib::{
    catalogue::{NameStyle, Origin, ToolFilter},
    server::{Access, AccessSettings, Door, Gateway, HttpSettings, Input, Settings},
    sources::mods::{AgentTool, Mod, ModSource},
    wire::text::Masker,
};
use toolcrib_testkit::{Act, Plan};

use crate::{
    guarded::Client,
    kit::{Folder, entry, soon, toolcrib},
    observability::collector::{Collector, Manner},
    serving::Serving,
};

const RULES: &str = "
audit: { arguments: on, results: on }
sessions: on
external_access:
  groups:
    a: { auth_token: SECRET_TOKEN_A }
";

/// What the server knows and should keep to itself.
const KEY: &str = "SECRET_OF_THE_SERVER_0";

/// A workspace whose one server has a secret of its own, and speaks of it.
pub(super) fn workspace() -> Folder {
    let error = json!({ "code": -32050, "message": format!("refused: key={KEY}\n  at /srv/app.py:7"),
        "data": { "trace": [format!("File \"/srv/app.py\", API_KEY={KEY}")], "hint": "try again" } });
    let line = format!(r#"{{"jsonrpc":"2.0","id":$ID,"error":{error}}}"#);
    let plan = Plan::legacy().tool("echo", Act::Echo).tool("fail", Act::Line(line));
    let plan =
        plan.tool("shout", Act::Stderr(format!("heard: key {KEY}, password=SECRET_SHOUTED_1")));
    let said = json!({ "content": [{ "type": "text", "text": format!("my key is {KEY}") }],
        "structuredContent": { "password": "SECRET_STRUCTURED_2" } });
    let plan = plan.tool("tell", Act::Result(said.to_string())).tool("crash", Act::Crash);
    let mut server = entry(&plan);
    server["env"] = json!({ "API_KEY": KEY });
    let folder = Folder::workspace(&json!({ "s": server }));
    folder.write("network.yaml", RULES);
    folder
}

/// Secrets where people put them.
pub(super) fn arguments() -> Value {
    json!({
        "password": "SECRET_PASSWORD_3",
        "api_key": "SECRET_API_KEY_4",
        "nested": { "authorization": "Bearer SECRET_BEARER_5", "list": [{ "access_token": "SECRET_IN_LIST_6" }] },
        "url": "https://user:SECRET_USERINFO_7@example.com/path",
        "packed": r#"{"clientSecret":"SECRET_PACKED_8"}"#,
        "note": KEY,
        "plain": "nothing to hide",
    })
}

/// Everything below `.toolcrib` that is text.
fn kept(folder: &Folder) -> String {
    let (mut text, mut open) = (String::new(), vec![folder.file(".toolcrib")]);
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(path).unwrap().map(|it| it.unwrap().path()));
        } else {
            text.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap_or_default()));
        }
    }
    text
}

#[test]
fn h01_secrets_show_neither_in_logs_nor_on_record() {
    for format in ["text", "json"] {
        let folder = workspace();
        let log = folder.file("log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(["-vv", "--log-format", format, "serve", "--listen", "127.0.0.1:0"]);
        command.current_dir(folder.path()).stderr(fs::File::create(&log).unwrap());
        let serving = Serving::run(&mut command);
        let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
        for name in ["echo", "fail", "shout", "tell", "crash", "none_such"] {
            client.call(&format!("mcp__s__{name}"), &arguments());
        }
        // As the name of a tool, as a token that is wrong, and in an address.
        client.call(KEY, &json!({}));
        let wrong = ("Authorization", "Bearer SECRET_WRONG_9");
        assert_eq!(serving.post(&[wrong], &json!({})).status, 401);
        assert_eq!(serving.get(&format!("/{KEY}?token=SECRET_TOKEN_A"), &[]).status, 401);
        let calls = || {
            let all = crate::audit::records(folder.path());
            all.into_iter().filter(|it| it["call"].is_string()).collect::<Vec<_>>()
        };
        soon("all is on record", || calls().len() == 7);
        soon("what was shouted is logged", || {
            fs::read_to_string(&log).unwrap().contains("heard: key")
        });
        soon("a session is recorded", || kept(&folder).contains("tool_call"));
        let first = calls().remove(0);
        // The record holds what was no secret, and a mark of the rest.
        assert!(
            first["arguments"]["text"].as_str().unwrap().contains("nothing to hide"),
            "{first}"
        );
        assert_eq!(first["arguments"]["digest"].as_str().unwrap().len(), 32, "{first}");
        let story = toolcrib(folder.path(), &["why", "--call", first["call"].as_str().unwrap()]);
        assert_eq!(story.code, 0, "{}", story.transcript());
        serving.signal("-TERM");
        soon("it has ended", || told_end(&folder));
        for (what, text) in [
            ("log", fs::read_to_string(&log).unwrap()),
            ("kept", kept(&folder)),
            ("story", story.transcript()),
        ] {
            let at = text
                .find("SECRET_")
                .map(|at| text[at.saturating_sub(300)..].chars().take(600).collect::<String>());
            assert_eq!(at, None, "{format}: {what}");
        }
    }
}

/// What is counted goes to whoever watches, and spans to somebody else's program.
#[test]
fn h01_secrets_show_neither_in_metrics_nor_in_spans() {
    let folder = workspace();
    let collector = Collector::start(Manner::Takes);
    let rules = RULES.replace("SECRET_TOKEN_A }", "SECRET_TOKEN_A, operator: true }");
    let telemetry = format!("telemetry: {{ otlp: '{}' }}\n", collector.url);
    folder.write("network.yaml", rules + &telemetry);
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
    for name in ["echo", "fail", "tell", "crash", "none_such"] {
        client.call(&format!("mcp__s__{name}"), &arguments());
    }
    client.call(KEY, &json!({}));
    client.call("none password=SECRET_IN_NAME_10", &json!({}));
    let own = ("Authorization", "Bearer SECRET_TOKEN_A");
    let metrics = serving.get("/metrics", &[own]).body;
    let ready = serving.get("/readyz", &[own]).body;
    assert!(metrics.contains("tool=\"mcp__s__fail\""), "{metrics}");
    serving.signal("-TERM");
    let spans = collector.spans(7 + 4);
    let sent: String = collector.requests().into_iter().map(|(_, body)| body).collect();
    assert!(spans.iter().any(|it| it.text("name") == "tools/call mcp__s__fail"), "{sent}");
    for text in [metrics, ready, sent] {
        assert!(!text.contains("SECRET_"), "{text}");
        assert!(!text.contains("nothing to hide"), "{text}");
    }
}

fn told_end(folder: &Folder) -> bool {
    crate::audit::records(folder.path()).last().unwrap()["event"] == "stop"
}

#[test]
fn h07_an_error_of_a_server_says_what_it_says_but_for_secrets() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
    let answer = client.call("mcp__s__fail", &json!({}));
    assert_eq!(answer["error"]["code"], -32050, "{answer}");
    assert_eq!(answer["error"]["data"]["hint"], "try again", "{answer}");
    assert!(
        answer["error"]["message"].as_str().unwrap().starts_with("refused: key=****"),
        "{answer}"
    );
    assert!(!answer.to_string().contains("SECRET"), "{answer}");
    // What it says on standard error goes to the log only.
    let answer = client.call("mcp__s__shout", &json!({}));
    assert!(!answer.to_string().contains("heard:"), "{answer}");
    // A crash tells its cause, in short.
    let answer = client.call("mcp__s__crash", &json!({})).to_string();
    assert!(!answer.contains("SECRET") && answer.len() < 3_000, "{answer}");
}

#[derive(Debug)]
struct Falls;

impl Mod for Falls {
    fn name(&self) -> &str {
        "falls"
    }

    fn get_tools(&self) -> Vec<AgentTool> {
        let fall = |it: Value| async move {
            assert!(it.get("fall").is_none(), "it fell over {KEY} \u{1b}[2J");
            Ok::<_, String>("it stands")
        };
        vec![AgentTool::new("fall", "Falls over.", fall)]
    }
}

/// A gateway in a process of its own, with a tool that panics. Not a test by itself.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "it is run by another"]
async fn falling() {
    let masker = Masker::new([KEY.to_owned()]);
    toolcrib::tell_panics(move |what| eprintln!("told: {}", masker.mask(what)));
    let input = Input {
        source: Some(Arc::new(ModSource::new(&Falls))),
        origin: Origin::Mod("falls".to_owned()),
        style: NameStyle::Prefixed,
        filter: ToolFilter::default(),
        required: false,
        way: None,
        limit: Default::default(),
    };
    let access = AccessSettings { default_group: "guest".to_owned(), ..Default::default() };
    let gateway = Gateway::start(vec![input], Access::new(&access), Settings::default());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    println!("servers at http://{address}/mcp");
    Door::new(gateway, HttpSettings::default(), address).serve(listener).await;
}

#[test]
fn h08_what_falls_over_takes_nothing_along_and_tells_no_secret() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["security::masking::falling", "--exact", "--ignored", "--nocapture"]);
    let mut serving = Serving::run(command.stderr(Stdio::piped()));
    let client = Client::new(&serving, None);
    assert_eq!(client.text("fall", &json!({})), "it stands");
    for _ in 0..3 {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": { "name": "fall", "arguments": { "fall": true } } });
        // Nobody answers: its connection ends.
        let mut socket = TcpStream::connect(&serving.address).unwrap();
        let session = serving.session(&[], "2025-11-25");
        let (host, body) = (&serving.address, body.to_string());
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {host}\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        std::io::Write::write_all(&mut socket, head.as_bytes()).unwrap();
        let mut heard = String::new();
        socket.read_to_string(&mut heard).ok();
        assert!(!heard.contains(KEY), "{heard}");
        assert_eq!(client.text("fall", &json!({})), "it stands");
    }
    let stderr = serving.child.stderr.take().unwrap();
    serving.child.kill().unwrap();
    let said: Vec<String> = BufReader::new(stderr).lines().map(|it| it.unwrap()).collect();
    let told: Vec<&String> =
        said.iter().filter(|it| it.starts_with("told: something fell over at ")).collect();
    assert_eq!(told.len(), 3, "{said:#?}");
    assert!(told[0].ends_with(r"it fell over **** \u{1b}[2J"), "{said:#?}");
    assert!(!said.concat().contains(KEY), "{said:#?}");
}
