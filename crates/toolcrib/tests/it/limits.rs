//! Rate and concurrency limits, the cache, calls that are made once, and several calls in one request:
//! against a running gateway and a server that notes what reaches it.

mod once;
mod pages;
mod several;

use std::{
    io::Write,
    net::TcpStream,
    path::PathBuf,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::{
    kit::{Folder, entry, soon},
    serving::{Answer, Line, Serving},
};

/// A gateway over one server, `s`, which notes what it gets.
pub(crate) struct World {
    pub(crate) folder: Folder,
    pub(crate) serving: Serving,
    notes: PathBuf,
}

impl World {
    pub(crate) fn new(network: &str) -> Self {
        Self::with(network, |_| {})
    }

    /// Where the entry in `mcp.json` is changed.
    pub(crate) fn with(network: &str, change: impl Fn(&mut Value)) -> Self {
        let folder = Folder::new();
        let notes = folder.file("notes");
        let plan = Plan::legacy()
            .tool("count", Act::Count)
            .tool("echo", Act::Echo)
            .tool("fail", Act::Fail)
            .tool("error", Act::Error(-32050))
            .tool("slow", Act::Sleep(700))
            .tool("hang", Act::Hang)
            .tool("large", Act::Big(3_000))
            .notes(&notes);
        let mut server = entry(&plan);
        change(&mut server);
        folder.write("mcp.json", json!({ "mcpServers": { "s": server } }).to_string());
        folder.write("network.yaml", network);
        let serving = Serving::start(folder.path());
        Self { folder, serving, notes }
    }

    /// How many calls of a tool have reached the server.
    pub(crate) fn reached(&self, tool: &str) -> usize {
        let notes = std::fs::read_to_string(&self.notes).unwrap();
        let call = |it: &&str| it.contains("tools/call") && it.contains(&format!("\"{tool}\""));
        notes.lines().filter(call).count()
    }

    pub(crate) fn client(&self, token: &str) -> Client {
        let headers = [("Authorization", format!("Bearer {token}"))];
        let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
        let session = self.serving.session(&headers, "2025-11-25");
        Client { line: Line::open(&self.serving), session, token: token.to_owned() }
    }
}

/// One client, on one connection.
pub(crate) struct Client {
    line: Line,
    session: String,
    token: String,
}

impl Client {
    pub(crate) fn answer(&mut self, headers: &[(&str, &str)], params: &Value) -> Answer {
        let body = json!({ "jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": params });
        let token = format!("Bearer {}", self.token);
        let own = [("Mcp-Session-Id", self.session.as_str()), ("Authorization", token.as_str())];
        self.line.post_with(&[&own[..], headers].concat(), &body.to_string())
    }

    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.answer(&[], &json!({ "name": tool, "arguments": arguments }));
        assert_eq!(answer.status, 200);
        answer.json()["result"].clone()
    }
}

pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

const GROUPS: &str = "
external_access:
  groups:
    a: { auth_token: token-a, rate: 10/s burst 20 }
    b: { auth_token: token-b }
    c: { auth_token: token-c, concurrent: 1 }
";

/// Rows I1 and I2 of the security list.
#[test]
fn a_group_gets_its_rate_and_no_more_and_what_is_refused_reaches_nobody() {
    let world = World::new(GROUPS);
    let (mut a, mut b) = (world.client("token-a"), world.client("token-b"));
    let full = std::env::var_os("TOOLCRIB_FULL").is_some();
    let time = Duration::from_secs(if full { 10 } else { 3 });
    let (begin, mut accepted, mut refused) = (Instant::now(), 0_u32, None);
    while begin.elapsed() < time {
        let answer = a.answer(&[], &json!({ "name": "mcp__s__count" }));
        let result = &answer.json()["result"];
        if result["isError"] == true {
            refused = Some(answer);
        } else {
            accepted += 1;
        }
    }
    let expected = 20.0 + 10.0 * begin.elapsed().as_secs_f64();
    assert!((f64::from(accepted) - expected).abs() <= 2.0, "{accepted}, not {expected}");
    let refused = refused.unwrap();
    let result = refused.json()["result"].clone();
    assert!(
        text(&result).contains("group `a` may call tools 10 times a second. Try again in 0.1 s"),
        "{result}"
    );
    let wait = result["_meta"]["toolcrib/retryAfter"].as_f64().unwrap();
    assert!(0.0 < wait && wait <= 0.1, "{wait}");
    assert_eq!(result["_meta"]["toolcrib/blame"], "caller");
    assert_eq!((refused.status, refused.header("retry-after").as_deref()), (200, Some("1")));
    assert_eq!(world.reached("count"), usize::try_from(accepted).unwrap());
    // Another group notices nothing.
    assert!((0..50).all(|_| b.call("mcp__s__count", &json!({}))["isError"] != true));
}

#[test]
fn a_place_is_free_again_when_its_client_goes_away() {
    let world = World::new(GROUPS);
    let mut c = world.client("token-c");
    let session = c.session.clone();
    let body = r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"mcp__s__hang"}}"#;
    let mut other = TcpStream::connect(&world.serving.address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer token-c\r\nMcp-Session-Id: {session}\r\n\
         Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        world.serving.address,
        body.len()
    );
    other.write_all(head.as_bytes()).unwrap();
    soon("the call runs", || world.reached("hang") == 1);
    let refused = c.call("mcp__s__echo", &json!({}));
    assert!(text(&refused).contains("group `c` may have 1 call running at a time"), "{refused}");
    drop(other);
    let mut free = || c.call("mcp__s__echo", &json!({}))["isError"] != true;
    soon("a free place", &mut free);
}

#[test]
fn tools_and_servers_have_limits_of_their_own_and_a_reload_changes_them() {
    let rules = |rate: &str| format!("limits: {{ tools: {{ '*__echo': {rate} }} }}\n{GROUPS}");
    let world = World::with(&rules("2/h"), |server| server["rate"] = json!("5/h burst 5"));
    let (mut a, mut b) = (world.client("token-a"), world.client("token-b"));
    let echo = |client: &mut Client| {
        let result = client.call("mcp__s__echo", &json!({}));
        (result["isError"] == true).then(|| text(&result).to_owned())
    };
    assert_eq!([echo(&mut a), echo(&mut b)], [None, None]);
    let told = echo(&mut b).unwrap();
    assert!(told.contains("`mcp__s__echo` may be called 2 times an hour"), "{told}");
    // What was refused is not counted: three of five are left to the server.
    let mut count = || b.call("mcp__s__count", &json!({}))["isError"] != true;
    assert_eq!([count(), count(), count(), count()], [true, true, true, false]);
    world.folder.write("network.yaml", rules("9/h"));
    world.serving.signal("-HUP");
    soon("the new rule", || {
        echo(&mut a).is_some_and(|it| it.contains("the server `s` may be called 5 times an hour"))
    });
    assert_eq!((world.reached("echo"), world.reached("count")), (2, 3));
}

const CACHE: &str = "
cache: { tools: { '*__count': 60s, '*__fail': 60s, '*__slow': 60s, '*__large': { ttl: 60s, size: 2KB } } }
external_access:
  groups: { a: { auth_token: token-a }, b: { auth_token: token-b } }
";

#[test]
fn a_kept_result_is_of_one_group_and_one_set_of_arguments() {
    let world = World::new(CACHE);
    let (mut a, mut b) = (world.client("token-a"), world.client("token-b"));
    let (one, two) = (json!({ "x": 1, "y": 2 }), json!({ "y": 2, "x": 1 }));
    let first = a.call("mcp__s__count", &one);
    let again = a.call("mcp__s__count", &two);
    assert_eq!(
        (&again["content"], &again["_meta"]["toolcrib/cache"]),
        (&first["content"], &json!("hit"))
    );
    assert_eq!(first["_meta"], Value::Null);
    let others = [b.call("mcp__s__count", &one), a.call("mcp__s__count", &json!({}))];
    assert!(
        others.iter().all(|it| it["_meta"] == Value::Null && it["content"] != first["content"])
    );
    assert_eq!(world.reached("count"), 3);
    // What belongs to a request is not part of what is asked.
    let params =
        json!({ "name": "mcp__s__count", "arguments": one, "_meta": { "progressToken": 7 } });
    assert_eq!(a.answer(&[], &params).json()["result"]["content"], first["content"]);
    for tool in ["fail", "large"] {
        for _ in 0..2 {
            a.call(&format!("mcp__s__{tool}"), &json!({}));
        }
        assert_eq!(world.reached(tool), 2, "{tool}");
    }
    world.serving.signal("-HUP");
    soon("nothing is kept", || a.call("mcp__s__count", &one)["content"] != first["content"]);
}

#[test]
fn equal_calls_at_the_same_time_are_one() {
    let world = World::new(CACHE);
    let mut clients: Vec<Client> = (0..6).map(|_| world.client("token-a")).collect();
    std::thread::scope(|scope| {
        for client in &mut clients {
            scope.spawn(|| {
                let result = client.call("mcp__s__slow", &json!({ "a": 1 }));
                assert_ne!(result["isError"], true, "{result}");
            });
        }
    });
    assert_eq!(world.reached("slow"), 1);
}

#[test]
fn a_slip_of_the_pen_is_told_and_a_limit_that_makes_no_sense_refuses_the_start() {
    let folder = Folder::workspace(&json!({ "s": entry(&Plan::legacy().tool("echo", Act::Echo)) }));
    folder.write("network.yaml", "limits: { rates: 1/s }\n");
    let run = crate::kit::toolcrib(folder.path(), &["check"]);
    assert!(
        run.out.contains("did you mean `rate`?") || run.err.contains("did you mean `rate`?"),
        "{}",
        run.transcript()
    );
    folder.write("network.yaml", "external_access: { groups: { a: { rate: 10 per s } } }\n");
    let run = crate::kit::toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(run.code, 2);
    assert!(run.err.contains("groups: a: rate: it is a rate such as 10/s"), "{}", run.transcript());
}
