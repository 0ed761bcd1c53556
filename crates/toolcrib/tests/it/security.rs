//! The security tests: black-box tests against a running gateway, named by the rows of a list with groups
//! A to J. `security/README.md` says which test shows which row, and `index` holds that table to the code.
//!
//! Outcomes are asserted always. Times that a row names are asserted only where `TOOLCRIB_FULL` is set: they
//! need a machine that does nothing else.

mod edge;
mod framing;
mod tokens;
mod groups;
mod crossing;
mod evil;
mod deputy;
mod children;
mod configured;
mod artifacts;
mod slow;
mod events;
mod definitions;
mod lists;
mod bombs;
mod schemas;
mod streams;
mod masking;
mod console;
mod flood;
mod index;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    process::Command,
    sync::mpsc,
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry},
    serving::{Answer, Serving},
};

/// The tokens of groups a and b.
const A: (&str, &str) = ("Authorization", "Bearer SECRET_TOKEN_A");
const B: (&str, &str) = ("Authorization", "Bearer SECRET_TOKEN_B");

const ACCESS: &str = "
external_access:
  default_agent_group: guest
  auth_token: SECRET_TOKEN_ADM
  groups:
    a: { auth_token: SECRET_TOKEN_A, exposed_tools: ['mcp__a__*', 'mcp__both__*'] }
    b: { auth_token: SECRET_TOKEN_B, exposed_tools: ['mcp__b__*', 'mcp__both__*'] }
";

/// Where anything is answered at all.
const ROUTES: [&str; 15] = [
    "/mcp",
    "/sse",
    "/messages",
    "/healthz",
    "/readyz",
    "/metrics",
    "/events",
    "/events/ack",
    "/events/consumers",
    "/events/dead",
    "/",
    "/console/app.js",
    "/api",
    "/api/me",
    "/api/tools",
];

/// A gateway with two groups; a server for each, and one for both. What reaches a server is noted.
struct World {
    folder: Folder,
    serving: Serving,
    _watchdog: mpsc::Sender<()>,
}

/// So long a gateway lives. A stream that should end, and does not, ends then. In the full run some have much to do.
fn life() -> Duration {
    Duration::from_secs(if is_full() { 3_600 } else { 180 })
}

impl World {
    fn start() -> Self {
        Self::start_with(ACCESS)
    }

    fn start_with(access: &str) -> Self {
        let folder = Self::folder();
        folder.write("network.yaml", access);
        let serving = Serving::start(folder.path());
        let (watchdog, watched) = mpsc::channel();
        let id = serving.child.id().to_string();
        std::thread::spawn(move || {
            if watched.recv_timeout(life()) == Err(mpsc::RecvTimeoutError::Timeout) {
                Command::new("kill").args(["-KILL", &id]).status().unwrap();
            }
        });
        Self { folder, serving, _watchdog: watchdog }
    }

    fn folder() -> Folder {
        let folder = Folder::new();
        let notes = folder.file("notes");
        let own = |plan: Plan| {
            let plan = plan.tool("echo", Act::Echo).tool("other", Act::Echo);
            entry(&plan.tool("add", Act::Add("late".to_owned())).notes(&notes))
        };
        let both = Plan::legacy().tool("slow", Act::Sleep(1500)).tool("say", Act::Say(8));
        // Twenty seconds, if nobody stops it.
        let both = both.tool("long", Act::Say(1_000));
        let both = both.tool("echo", Act::Echo).notes(&notes);
        let script = folder.write("offers.py", OFFERS);
        let notes = notes.to_string_lossy();
        let servers = json!({
            "a": own(Plan::legacy()),
            "b": own(Plan::modern()),
            "both": entry(&both),
            "x": { "command": "python3", "args": [script.to_string_lossy(), notes] },
        });
        folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
        folder
    }

    /// How often a server was asked this.
    fn asked(&self, method: &str) -> usize {
        let notes = fs::read_to_string(self.folder.file("notes")).unwrap_or_default();
        let asked = |line: &&str| serde_json::from_str::<Value>(line).unwrap()["method"] == method;
        notes.lines().filter(asked).count()
    }

    /// How many calls reached a server.
    fn calls(&self) -> usize {
        self.asked("tools/call")
    }

    /// A session of the legacy era.
    fn session(&self, token: (&'static str, &'static str)) -> String {
        self.serving.session(&[token], "2025-11-25")
    }

    /// A request in a session.
    fn ask(&self, token: (&str, &str), session: &str, body: &Value) -> Answer {
        self.serving.post(&[token, ("Mcp-Session-Id", session)], body)
    }

    /// A request of the modern era, with the headers it needs.
    fn modern(&self, token: (&str, &str), method: &str, params: Value) -> Answer {
        let name = params["name"].as_str().or(params["uri"].as_str()).unwrap_or("-").to_owned();
        let [version, said] = modern_headers(method);
        let body = modern_body(method, params);
        self.serving.post(&[token, version, said, ("Mcp-Name", &name)], &body)
    }
}

fn modern_headers(method: &str) -> [(&str, &str); 2] {
    [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)]
}

fn modern_body(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({ "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {} });
    json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
}

fn request(id: u32, method: &str, params: Value) -> Value {
    let mut request = json!({ "jsonrpc": "2.0", "id": id, "method": method });
    request["params"] = params;
    request
}

fn call(id: u32, tool: &str) -> Value {
    request(id, "tools/call", json!({ "name": tool, "arguments": {} }))
}

/// A gateway that logs all there is to log, into `log` of its folder.
fn logging(folder: &Folder) -> Serving {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["-vv", "serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path());
    Serving::run(command.stderr(fs::File::create(folder.file("log")).unwrap()))
}

/// What is on record of an event of this kind: so many, soon.
#[track_caller]
pub(crate) fn told(folder: &Folder, event: &str, count: usize) -> Vec<Value> {
    let find = || {
        let all = crate::audit::records(folder.path()).into_iter();
        all.filter(|it| it["event"] == event).collect::<Vec<_>>()
    };
    crate::kit::soon("it is on record", || count <= find().len());
    // One too many would come as soon.
    std::thread::sleep(Duration::from_millis(50));
    let found = find();
    assert_eq!(found.len(), count, "{found:#?}");
    found
}

/// Whether this is a long run on a machine that does nothing else.
fn is_full() -> bool {
    std::env::var_os("TOOLCRIB_FULL").is_some()
}

/// The stream of an HTTP+SSE client, and where it sends its messages.
struct Old {
    reader: BufReader<TcpStream>,
    path: String,
}

impl Old {
    fn open(serving: &Serving, token: (&str, &str)) -> Self {
        let mut socket = TcpStream::connect(&serving.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let (host, (name, value)) = (&serving.address, token);
        let head = format!(
            "GET /sse HTTP/1.1\r\nConnection: close\r\nHost: {host}\r\n{name}: {value}\r\n\r\n"
        );
        socket.write_all(head.as_bytes()).unwrap();
        let mut old = Self { reader: BufReader::new(socket), path: String::new() };
        old.path = old.next().unwrap();
        assert!(old.path.starts_with("/messages?session="), "{}", old.path);
        old
    }

    /// What the next event says; nothing when the stream is over.
    fn next(&mut self) -> Option<String> {
        let mut line = String::new();
        while self.reader.read_line(&mut line).unwrap() != 0 {
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(data.trim_end().to_owned());
            }
            line.clear();
        }
        None
    }
}

/// A server with tools, prompts, resources and completion, which notes what it is asked.
pub(crate) const OFFERS: &str = r#"
import json, sys
def say(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
text = {"content": [{"type": "text", "text": "done"}], "isError": False}
answers = {
    "initialize": {"protocolVersion": "2025-06-18", "serverInfo": {"name": "x", "version": "1"}, "capabilities": {
        "tools": {}, "prompts": {}, "completions": {}, "resources": {"subscribe": True}}},
    "tools/list": {"tools": [{"name": it, "inputSchema": {"type": "object"}} for it in ["read", "touch"]]},
    "prompts/list": {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]},
    "resources/list": {"resources": [{"uri": "test://one", "name": "one"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "test://any/{n}", "name": "any"}]},
    "prompts/get": {"messages": []},
    "resources/read": {"contents": [{"uri": "test://one", "text": "SECRET_CONTENT"}]},
    "completion/complete": {"completion": {"values": ["SECRET_VALUE"]}},
    "resources/subscribe": {}, "resources/unsubscribe": {},
    "tools/call": text,
}
with open(sys.argv[1], "a", buffering=1) as notes:
    for line in sys.stdin:
        notes.write(line)
        m = json.loads(line)
        method = m.get("method")
        if method == "tools/call" and m["params"]["name"] == "touch":
            say({"method": "notifications/resources/updated", "params": {"uri": "test://one"}})
        if "id" not in m:
            continue
        if method in answers:
            say({"id": m["id"], "result": answers[method]})
        else:
            say({"id": m["id"], "error": {"code": -32601, "message": "no"}})
"#;
