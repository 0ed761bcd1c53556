//! What servers ask of clients, and what they say unasked, through a gateway.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use serde_json::{Value, json};
use toolcrib::{
    catalogue::{Answering, CallContext, CallError, Json, Listener, Source},
    sources::mcp::{Client, ClientOptions, ServerConfig, Transport},
};
use toolcrib_testkit::{Act, Plan, Running};

use crate::{
    kit::{Folder, at, entry, soon},
    serving::Serving,
};

/// Somebody who answers every question with the same, and notes what it heard.
#[derive(Debug, Default)]
struct Person {
    answer: Value,
    after: Duration,
    heard: Mutex<Vec<String>>,
}

impl Listener for Person {
    fn notified(&self, method: &str, params: Option<Json>) {
        self.heard.lock().push(format!("{method} {}", params.unwrap()));
    }

    fn asked(&self, method: &str, params: Option<Json>) -> Option<Answering> {
        self.heard.lock().push(format!("asked {method} {}", params.unwrap()));
        let (answer, after) = (Json::of(&self.answer).unwrap(), self.after);
        Some(Box::pin(async move {
            tokio::time::sleep(after).await;
            Ok(answer)
        }))
    }
}

const ELICIT: (&str, &str) = (
    "elicitation/create",
    r#"{"message":"Your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}"#,
);

fn asking() -> Plan {
    let ask = |(method, params): (&str, &str)| Act::Ask(method.to_owned(), params.to_owned());
    Plan::legacy()
        .tool("elicit", ask(ELICIT))
        .tool("sample", ask(("sampling/createMessage", r#"{"messages":[],"maxTokens":5}"#)))
        .tool("roots", ask(("roots/list", "{}")))
        .tool("strange", ask(("strange/ask", "{}")))
        .tool("say", Act::Say(3))
        .tool("count", Act::Count)
        .tool("hang", Act::Hang)
}

/// A client that lets servers ask.
fn relaying(config: ServerConfig) -> Client {
    let options =
        ClientOptions { relays: true, ..ClientOptions::with_environment(&toolcrib::environment) };
    let client = Client::new(options);
    client.add_server(config).unwrap();
    client
}

async fn call(client: &Client, tool: &str, person: &Arc<Person>) -> Result<String, CallError> {
    let params = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": "p" } });
    let context = CallContext {
        listener: Some(Arc::clone(person) as Arc<dyn Listener>),
        ..CallContext::default()
    };
    let connection = client.connect("s").await.unwrap();
    let result = connection.request("tools/call", Json::of(&params).unwrap(), context).await?;
    let result: Value = serde_json::from_slice(result.as_bytes()).unwrap();
    Ok(result["content"][0]["text"].as_str().unwrap().to_owned())
}

/// Every way in, and every way to a server.
#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_asked_and_its_answer_goes_back() {
    let http = Running::http(asking()).await;
    let sse = Running::sse(asking()).await;
    let folder = Folder::workspace(&json!({
        "pipe": entry(&asking()),
        "http": { "type": "http", "url": http.url },
        "sse": { "type": "sse", "url": sse.url },
    }));
    let serving = Serving::start(folder.path());
    let client = relaying(at("s", Transport::Sse, &serving.url("/sse")));
    let answer = json!({ "action": "accept", "content": { "name": "Ada" } });
    for server in ["pipe", "http", "sse"] {
        let person = Arc::new(Person { answer: answer.clone(), ..Person::default() });
        for (tool, method) in [
            ("elicit", "elicitation/create"),
            ("sample", "sampling/createMessage"),
            ("roots", "roots/list"),
        ] {
            let name = format!("mcp__{server}__{tool}");
            let said = call(&client, &name, &person).await.unwrap();
            assert_eq!(said, answer.to_string(), "{name}");
            let heard = std::mem::take(&mut *person.heard.lock());
            assert!(heard[0].starts_with(&format!("asked {method} ")), "{name} {heard:?}");
        }
        // What no client can be asked is refused before it reaches one.
        let said = call(&client, &format!("mcp__{server}__strange"), &person).await.unwrap();
        assert_eq!(said, r#""-32601 no client answers `strange/ask` just now""#, "{server}");
        assert!(person.heard.lock().is_empty(), "{server}");
    }
    client.close().await;
}

#[test]
fn a_client_on_standard_input_is_asked_too() {
    let folder = Folder::workspace(&json!({ "a": entry(&asking()) }));
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(["serve", "--stdio"])
        .current_dir(folder.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    // The list is empty until the server is up, and then it is said to have changed.
    let mut said = || loop {
        let said: Value = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
        if said["method"] != "notifications/tools/list_changed" {
            break said;
        }
    };
    let mut say = |message: Value| writeln!(input, "{message}").unwrap();
    say(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": { "sampling": {} },
        "clientInfo": { "name": "test", "version": "1" } } }));
    assert_eq!(said()["result"]["protocolVersion"], "2025-06-18");
    say(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    let mut answer = json!(null);
    for id in 2..200 {
        say(json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": "mcp__a__sample" } }));
        answer = said();
        if answer.get("error").is_none() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(answer["method"], "sampling/createMessage", "{answer}");
    let model = json!({ "role": "assistant", "content": { "type": "text", "text": "42" } });
    say(json!({ "jsonrpc": "2.0", "id": answer["id"], "result": model }));
    let result = said();
    assert_eq!(result["result"]["content"][0]["text"], model.to_string(), "{result}");
    drop(input);
    child.wait().unwrap();
}

/// A person takes longer than the server's time limit.
#[tokio::test(flavor = "multi_thread")]
async fn the_clock_stands_still_while_somebody_thinks() {
    let mut server = entry(&asking());
    server["timeout"] = json!(0.5);
    let folder = Folder::workspace(&json!({ "a": server }));
    let serving = Serving::start(folder.path());
    let client = relaying(at("s", Transport::Sse, &serving.url("/sse")));
    let answer = json!({ "action": "decline" });
    let after = Duration::from_millis(1800);
    let person = Arc::new(Person { answer: answer.clone(), after, ..Person::default() });
    // Nor does our own client give up meanwhile.
    let context = CallContext {
        listener: Some(Arc::clone(&person) as Arc<dyn Listener>),
        attempt: Some(Duration::from_millis(700)),
        ..CallContext::default()
    };
    let connection = client.connect("s").await.unwrap();
    let params = Json::of(&json!({ "name": "mcp__a__elicit" })).unwrap();
    let result = connection.request("tools/call", params, context).await.unwrap();
    assert!(result.to_string().contains("decline"), "{result}");
    let hung = call(&client, "mcp__a__hang", &person).await.unwrap();
    assert!(hung.contains("no answer within 500 ms"), "{hung}");
    client.close().await;
}

/// A session by hand, that says what the client can do.
pub(crate) fn session(serving: &Serving, capabilities: &Value) -> String {
    let params = json!({ "protocolVersion": "2025-11-25", "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" } });
    let body = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    serving.post(&[], &body).header("mcp-session-id").unwrap()
}

/// A stream of events by hand.
pub(crate) struct Events(BufReader<TcpStream>);

impl Events {
    pub(crate) fn open(serving: &Serving, method: &str, headers: &str, body: &str) -> Self {
        let mut socket = TcpStream::connect(&serving.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let host = &serving.address;
        let length = body.len();
        let head = format!(
            "{method} /mcp HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n{headers}\r\n\r\n"
        );
        socket.write_all(format!("{head}{body}").as_bytes()).unwrap();
        let mut reader = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert_ne!(reader.read_line(&mut head).unwrap(), 0, "{head}");
        }
        assert!(head.contains("text/event-stream"), "{head}");
        Self(reader)
    }

    /// What has come, until nothing comes for so long.
    pub(crate) fn until_silent(&mut self, time: Duration) -> String {
        self.0.get_ref().set_read_timeout(Some(time)).unwrap();
        let mut text = String::new();
        while self.0.read_line(&mut text).is_ok_and(|read| read != 0) {}
        text
    }

    pub(crate) fn call(serving: &Serving, session: &str, id: u32, tool: &str) -> Self {
        let body = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": { "name": tool, "arguments": { "prompt": "Hi", "message": "Hi" },
                "_meta": { "progressToken": "same" } } });
        Self::open(serving, "POST", &format!("Mcp-Session-Id: {session}"), &body.to_string())
    }

    /// The next event: its id, and its message.
    pub(crate) fn next(&mut self) -> Option<(Option<String>, Value)> {
        let mut id = None;
        loop {
            let mut line = String::new();
            if self.0.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(it) = line.strip_prefix("id: ") {
                id = Some(it.trim().to_owned());
            }
            if let Some(data) = line.strip_prefix("data: ").filter(|it| it.starts_with('{')) {
                return Some((id, serde_json::from_str(data).unwrap()));
            }
        }
    }
}

pub(crate) fn reply(serving: &Serving, session: &str, id: &Value, result: &Value) {
    let body = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    let answer = serving.post(&[("Mcp-Session-Id", session)], &body);
    assert_eq!(answer.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_clients_are_asked_on_their_own_streams_and_on_a_shared_one_neither() {
    let http = Running::http(asking()).await;
    let folder = Folder::workspace(
        &json!({ "pipe": entry(&asking()), "http": { "type": "http", "url": http.url } }),
    );
    let serving = Serving::start(folder.path());
    let able = json!({ "elicitation": {} });
    let (ada, bob) = (session(&serving, &able), session(&serving, &able));
    let mut adas = Events::call(&serving, &ada, 1, "mcp__http__elicit");
    let mut bobs = Events::call(&serving, &bob, 1, "mcp__http__elicit");
    let (_, to_ada) = adas.next().unwrap();
    let (_, to_bob) = bobs.next().unwrap();
    assert_eq!(to_ada["method"], "elicitation/create");
    // Whoever answers with another's session answers nothing: equal ids are different questions.
    reply(&serving, &bob, &to_bob["id"], &json!({ "action": "accept", "content": "bob" }));
    reply(&serving, &ada, &to_ada["id"], &json!({ "action": "accept", "content": "ada" }));
    let text = |events: &mut Events| events.next().unwrap().1["result"]["content"][0].to_string();
    assert!(text(&mut adas).contains("ada") && text(&mut bobs).contains("bob"));
    // On a pipe nobody can tell whom the server means.
    let mut adas = Events::call(&serving, &ada, 2, "mcp__pipe__elicit");
    assert_eq!(adas.next().unwrap().1["method"], "elicitation/create");
    let said = call_whole(&serving, &bob, "mcp__pipe__elicit");
    assert!(said.contains("several clients are calling"), "{said}");
    // Who cannot be asked is not, and the server hears it.
    let mute = session(&serving, &json!({ "sampling": {} }));
    let said = call_whole(&serving, &mute, "mcp__http__elicit");
    assert!(said.contains("-32601 no client answers `elicitation/create` just now"), "{said}");
}

fn call_whole(serving: &Serving, session: &str, tool: &str) -> String {
    let body =
        json!({ "jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": { "name": tool } });
    serving.post(&[("Mcp-Session-Id", session)], &body).body
}

/// A call that is taken back takes its question along, on both sides.
#[test]
fn a_question_ends_with_its_call() {
    let notes = Folder::new();
    let file = notes.file("notes");
    let folder = Folder::workspace(&json!({ "a": entry(&asking().notes(&file)) }));
    let serving = Serving::start(folder.path());
    let session = session(&serving, &json!({ "elicitation": {} }));
    let mut events = Events::call(&serving, &session, 5, "mcp__a__elicit");
    let asked = events.next().unwrap().1;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 5 } });
    serving.post(&[("Mcp-Session-Id", &session)], &cancel);
    // The client hears of it too, on the stream of the call or, where that is over already, on its own.
    let told = events.next().unwrap_or_else(|| {
        let own = format!("Mcp-Session-Id: {session}");
        Events::open(&serving, "GET", &own, "").next().unwrap()
    });
    let told = told.1;
    assert_eq!(told["method"], "notifications/cancelled", "{told}");
    assert_eq!(told["params"]["requestId"], asked["id"]);
    soon("the server hears of it", || {
        let notes = std::fs::read_to_string(&file).unwrap();
        notes.contains("the request that this belongs to has ended")
            && notes.contains("notifications/cancelled")
    });
}

#[test]
fn a_client_hears_as_much_of_the_log_as_it_wants() {
    let notes = Folder::new();
    let file = notes.file("notes");
    let folder = Folder::workspace(&json!({ "a": entry(&asking().notes(&file)) }));
    let serving = Serving::start(folder.path());
    let session = session(&serving, &json!({}));
    let heard = |session: &str| {
        let mut events = Events::call(&serving, session, 1, "mcp__a__say");
        let mut heard = Vec::new();
        while let Some((_, message)) = events.next() {
            heard.push(message["method"].as_str().unwrap_or("answer").to_owned());
        }
        heard
    };
    let (log, progress) = ("notifications/message", "notifications/progress");
    let everything = [log, progress, log, progress, log, progress, "answer"];
    assert_eq!(heard(&session), everything);
    let level = |level: &str| {
        let body = json!({ "jsonrpc": "2.0", "id": 2, "method": "logging/setLevel",
            "params": { "level": level } });
        serving.post(&[("Mcp-Session-Id", &session)], &body).json()
    };
    assert_eq!(level("error")["result"], json!({}));
    assert_eq!(heard(&session), [progress, progress, progress, "answer"]);
    assert_eq!(level("loud")["error"]["code"], -32602);
    let told = std::fs::read_to_string(&file).unwrap();
    assert!(told.contains(r#""method":"logging/setLevel","params":{"level":"error"}"#), "{told}");
}

/// The connection breaks in the middle of a call; the client comes back and misses nothing.
#[test]
fn a_broken_stream_is_taken_up_again() {
    let folder = Folder::workspace(&json!({ "a": entry(&asking()) }));
    let serving = Serving::start(folder.path());
    let session = session(&serving, &json!({ "elicitation": {} }));
    let mut events = Events::call(&serving, &session, 7, "mcp__a__elicit");
    let (last, asked) = events.next().unwrap();
    drop(events);
    reply(&serving, &session, &asked["id"], &json!({ "action": "cancel" }));
    let back = format!("Mcp-Session-Id: {session}\r\nLast-Event-ID: {}", last.unwrap());
    let mut events = Events::open(&serving, "GET", &back, "");
    let (_, answer) = events.next().unwrap();
    assert_eq!(answer["id"], 7);
    assert!(answer["result"].to_string().contains("cancel"), "{answer}");
    assert!(events.next().is_none());
    // Another's session does not lead there, nor does a stream that never was.
    let other = session_of(&serving);
    for (session, place) in [(&other, "1-1"), (&session, "99-1")] {
        let wrong = format!("Mcp-Session-Id: {session}\r\nLast-Event-ID: {place}");
        assert!(Events::open(&serving, "GET", &wrong, "").next().is_none(), "{place}");
    }
}

fn session_of(serving: &Serving) -> String {
    session(serving, &json!({}))
}

#[test]
fn each_session_has_its_own_server_where_that_is_wanted() {
    let mut own = entry(&asking());
    own["isolation"] = json!("session");
    let folder = Folder::workspace(&json!({ "own": own, "all": entry(&asking()) }));
    let serving = Serving::start(folder.path());
    let (ada, bob) = (session_of(&serving), session_of(&serving));
    let count = |session: &str, server: &str| {
        let said = call_whole(&serving, session, &format!("mcp__{server}__count"));
        let said: Value = serde_json::from_str(&said).unwrap();
        said["result"]["content"][0]["text"].as_str().unwrap().to_owned()
    };
    assert_eq!(["1", "2"], [count(&ada, "own"), count(&ada, "own")].as_slice());
    assert_eq!(count(&bob, "own"), "1");
    assert_eq!(["1", "2"], [count(&ada, "all"), count(&bob, "all")].as_slice());
    let children = || {
        let id = serving.child.id();
        let listed = Command::new("pgrep")
            .args(["-P", &id.to_string(), "-f", "fake-upstream"])
            .output()
            .unwrap();
        String::from_utf8(listed.stdout).unwrap().lines().count()
    };
    // One for all, one that lists, one to spare, and one for each of two.
    soon("the spare is there", || children() == 5);
    let gone = serving.request("DELETE", "/mcp", &[("Mcp-Session-Id", &ada)], "");
    assert_eq!(gone.status, 200);
    soon("the server of a session ends with it", || children() == 4);
    assert_eq!(count(&bob, "own"), "2");
}

/// A modern server asks by its result; a client that cannot be asked is told so, a modern one gets it whole.
#[test]
fn a_question_in_a_result_reaches_only_who_can_answer_it() {
    let question = r#"{"resultType":"input_required","inputRequests":{"n":{"method":"elicitation/create","params":{}}},"requestState":"s"}"#;
    let plan = Plan::modern().tool("ask", Act::Result(question.to_owned()));
    let folder = Folder::workspace(&json!({ "a": entry(&plan) }));
    let serving = Serving::start(folder.path());
    let said = call_whole(&serving, &session_of(&serving), "mcp__a__ask");
    assert!(said.contains("asks `elicitation/create`, which the client cannot answer"), "{said}");
    let params = json!({ "name": "mcp__a__ask", "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": { "elicitation": {} } } });
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let headers = [
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "mcp__a__ask"),
    ];
    let said = serving.post(&headers, &body).body;
    assert_eq!(said, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{question}}}"#));
}
