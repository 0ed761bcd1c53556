//! `/readyz` says what is missing: to operators in full, to everybody else in words that name nothing.

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Fault, Plan};

use crate::{
    kit::{Folder, entry, soon},
    serving::Serving,
};

const GUEST: (&str, &str) = ("Authorization", "Bearer SECRET_TOKEN_GUEST");
const BOSS: (&str, &str) = ("Authorization", "Bearer SECRET_TOKEN_BOSS");
const JSON: (&str, &str) = ("Accept", "application/json");

fn rules() -> &'static str {
    "
external_access:
  groups:
    guest: { auth_token: SECRET_TOKEN_GUEST }
    boss: { auth_token: SECRET_TOKEN_BOSS, operator: true }
"
}

#[test]
fn a_server_that_is_required_and_down_is_named_to_operators_alone() {
    let folder = Folder::workspace(&json!({
        "a": entry(&Plan::legacy().tool("echo", Act::Echo)),
        "needed": { "command": "no-such-program-here", "required": true },
        "other": { "command": "no-such-program-either" },
    }));
    folder.write("network.yaml", rules());
    let serving = Serving::start(folder.path());
    let guest = serving.get("/readyz", &[GUEST]);
    assert_eq!((guest.status, guest.body.as_str()), (503, "a server that is required is down\n"));
    let boss = serving.get("/readyz", &[BOSS, JSON]);
    assert_eq!(boss.status, 503);
    let told = boss.json();
    assert_eq!(told["ready"], false);
    let missing: Vec<&str> =
        told["missing"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(missing.len(), 1, "{missing:?}");
    assert!(missing[0].starts_with("`needed` is required and is down: "), "{missing:?}");
    assert_eq!(serving.get("/healthz", &[]).status, 200);
}

#[test]
fn servers_are_waited_for_once_and_one_that_comes_back_harms_nobody() {
    let folder = Folder::new();
    let slow = Plan::legacy().tool("echo", Act::Echo).tool("crash", Act::Crash);
    let slow = slow.fault(Fault::SlowStart(1_500));
    folder.write("mcp.json", json!({ "mcpServers": { "slow": entry(&slow) } }).to_string());
    folder.write("network.yaml", rules());
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    command.args(["serve", "--listen", &port.to_string()]).current_dir(folder.path());
    let mut early = None;
    let serving = std::thread::scope(|scope| {
        let serving = scope.spawn(|| Serving::run(command.stderr(std::process::Stdio::null())));
        soon("it listens", || std::net::TcpStream::connect(port).is_ok());
        early = Some(ask(&port.to_string()));
        serving.join().unwrap()
    });
    assert!(early.unwrap().contains("`slow` is still starting"));
    soon("all are up", || serving.get("/readyz", &[GUEST]).status == 200);
    assert_eq!(
        serving.get("/readyz", &[GUEST, JSON]).json(),
        json!({ "ready": true, "missing": [] })
    );
    super::call(&serving, &[GUEST], "mcp__slow__crash", &json!({}));
    for _ in 0..20 {
        assert_eq!(serving.get("/readyz", &[GUEST]).status, 200);
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

/// What `/readyz` says at an address, before anybody knows that there is a gateway.
fn ask(address: &str) -> String {
    use std::io::{Read, Write};
    let mut socket = std::net::TcpStream::connect(address).unwrap();
    let (name, value) = BOSS;
    let head = format!("GET /readyz HTTP/1.1\r\nHost: {address}\r\n{name}: {value}\r\n");
    socket.write_all(format!("{head}Connection: close\r\n\r\n").as_bytes()).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    text
}
