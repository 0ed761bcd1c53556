//! One gateway owns a workspace; others go through it, and take over when it ends. What servers listed is
//! remembered from run to run.

use std::{
    io::{BufRead, BufReader, Lines, Write},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Fault, Plan};

use crate::{
    kit::{Folder, entry, soon, toolcrib},
    serving::Serving,
};

/// A client's own gateway, on standard input and output.
struct Local {
    child: Child,
    input: ChildStdin,
    output: Lines<BufReader<ChildStdout>>,
    next: u32,
    /// What was said besides answers.
    heard: Vec<String>,
}

impl Local {
    fn start(folder: &Folder, more: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
            .args(["serve", "--stdio"])
            .args(more)
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output).lines(), next: 1, heard: Vec::new() }
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// The next answer.
    fn answer(&mut self) -> Value {
        loop {
            let line = self.output.next().expect("it ended").unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            if message.get("id").is_some() {
                return message;
            }
            self.heard.push(line);
        }
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let answer = self.answer();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn greet(&mut self) {
        let greeted = self.ask(
            "initialize",
            &json!({ "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" } }),
        );
        assert_eq!(greeted["result"]["serverInfo"]["name"], "toolcrib");
        self.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    fn call(&mut self, tool: &str) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": tool }));
        answer["result"]["content"][0]["text"].clone()
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn counting() -> Folder {
    let plan = Plan::legacy().tool("count", Act::Count).tool("hang", Act::Hang);
    let plan = plan.tool("big", Act::Big(5_000_000));
    Folder::workspace(&json!({ "a": entry(&plan) }))
}

#[test]
fn clients_of_one_workspace_share_its_servers_and_survive_the_owner() {
    let folder = counting();
    let (mut first, mut second) = (Local::start(&folder, &[]), None);
    first.greet();
    assert_eq!(first.call("mcp__a__count"), "1");
    let second = second.insert(Local::start(&folder, &[]));
    second.greet();
    assert_eq!(second.call("mcp__a__count"), "2");
    assert_eq!(first.call("mcp__a__count"), "3");
    // The owner goes away in the middle of a call: the call fails, the client lives on.
    let hang = json!({ "jsonrpc": "2.0", "id": "hung", "method": "tools/call",
        "params": { "name": "mcp__a__hang" } });
    second.say(&hang);
    std::thread::sleep(Duration::from_millis(300));
    drop(first);
    let lost = second.answer();
    assert_eq!((&lost["id"], &lost["error"]["code"]), (&json!("hung"), &json!(-32603)), "{lost}");
    assert_eq!(second.call("mcp__a__count"), "1");
    // Whoever comes now goes through the second.
    let mut third = Local::start(&folder, &[]);
    third.greet();
    assert_eq!(third.call("mcp__a__count"), "2");
}

#[test]
fn a_client_on_standard_input_goes_through_a_gateway_that_listens() {
    let folder = counting();
    folder.write(
        "network.yaml",
        "external_access: { groups: { few: { exposed_tools: ['*hang'] } } }\n",
    );
    let serving = Serving::start(folder.path());
    let mut everything = Local::start(&folder, &[]);
    everything.greet();
    let mut few = Local::start(&folder, &["--group", "few"]);
    few.greet();
    let names = |local: &mut Local| {
        let listed = local.ask("tools/list", &json!({}));
        let tools = listed["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&mut everything), ["mcp__a__big", "mcp__a__count", "mcp__a__hang"]);
    assert_eq!(names(&mut few), ["mcp__a__hang"]);
    let refused = Local::start(&folder, &["--group", "nobody"]);
    let mut refused = refused;
    assert!(refused.output.next().is_none());
    assert_eq!(refused.child.wait().unwrap().code(), Some(2));
    drop(serving);
    assert_eq!(names(&mut few), ["mcp__a__hang"]);
}

/// Large answers, lines that are too long, and a client that sends faster than it is answered.
#[test]
fn a_relay_carries_whatever_comes_and_never_stands_still() {
    let folder = counting();
    let serving = Serving::start(folder.path());
    let mut local = Local::start(&folder, &[]);
    local.greet();
    assert_eq!(local.call("mcp__a__big").as_str().unwrap().len(), 5_000_000);
    writeln!(local.input, "{}", "x".repeat(5_000_000)).unwrap();
    assert_eq!(local.answer()["error"]["code"], -32700);
    let count = 800;
    let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }).to_string();
    let input = std::os::fd::AsFd::as_fd(&local.input).try_clone_to_owned().unwrap();
    let mut input = std::fs::File::from(input);
    let writer = std::thread::spawn(move || {
        for id in 0..count {
            writeln!(input, "{}", list.replace("\"id\":1", &format!("\"id\":\"l{id}\""))).unwrap();
        }
    });
    let mut seen = std::collections::HashSet::new();
    for _ in 0..count {
        assert!(seen.insert(local.answer()["id"].as_str().unwrap().to_owned()));
    }
    writer.join().unwrap();
    drop(serving);
}

#[test]
fn a_second_owner_is_refused() {
    let folder = counting();
    let serving = Serving::start(folder.path());
    let run = toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(run.code, 2, "{}", run.transcript());
    let process = format!("(process {})", serving.child.id());
    assert!(
        run.err.contains("another gateway serves") && run.err.contains(&process),
        "{}",
        run.err
    );
    assert!(run.err.contains("end that one first"), "{}", run.err);
    // Whoever only looks is not in the way.
    assert_eq!(toolcrib(folder.path(), &["tools"]).code, 0);
    drop(serving);
    Serving::start(folder.path());
}

#[test]
fn what_a_server_listed_is_there_before_the_server_is() {
    let plan = Plan::legacy()
        .fault(Fault::SlowStart(2_500))
        .tool("add", Act::Add("added".to_owned()))
        .tool("echo", Act::Echo);
    let folder = Folder::workspace(&json!({ "slow": entry(&plan) }));
    {
        let mut local = Local::start(&folder, &[]);
        local.greet();
        // Nothing is known of the server yet, so the first list waits for it.
        let listed = local.ask("tools/list", &json!({}));
        assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 2, "{listed}");
        local.call("mcp__slow__add");
        let kept = folder.file(".toolcrib/lists.json");
        soon("what it lists is kept", || {
            std::fs::read_to_string(&kept).is_ok_and(|it| it.contains("\"added\""))
        });
    }
    let mut local = Local::start(&folder, &[]);
    local.greet();
    // Three: the server itself has forgotten the third, so this is not from it.
    let listed = local.ask("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 3, "{listed}");
    // A call waits until the server is there; by then the list is another, and the client is told.
    assert_eq!(local.call("mcp__slow__echo"), "{}");
    for _ in 0..200 {
        if local.heard.concat().contains("notifications/tools/list_changed") {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        local.ask("ping", &json!({}));
    }
    let told = local.heard.concat();
    assert!(told.contains("notifications/tools/list_changed"), "{told}");
    let listed = local.ask("tools/list", &json!({}));
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 2, "{listed}");
    let ignored = std::fs::read_to_string(folder.file(".toolcrib/.gitignore")).unwrap();
    assert_eq!(ignored, "*\n");
}
