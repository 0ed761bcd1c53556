//! F1 and F7 to F12: servers and tools that run on this machine. F2 and F3 are in `processes.rs`.

use std::{
    fs::{self, File},
    os::unix::fs::symlink,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use super::{
    evil::{noted, on_stdio},
    framing::memory,
    is_full, modern_body, modern_headers,
};
use crate::{
    kit::{Folder, entry, soon, toolcrib},
    python::Caller,
    relay::Events,
    serving::{Line, Serving},
};

fn gateway(folder: &Folder, servers: &Value) -> Serving {
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["-v", "serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path());
    Serving::run(command.stderr(File::create(folder.file("log")).unwrap()))
}

#[test]
fn f01_a_command_is_a_program_and_no_shell_reads_it() {
    let folder = Folder::new();
    let pwn = folder.file("pwn").to_string_lossy().into_owned();
    let mut servers = json!({ "good": entry(&Plan::legacy().tool("echo", Act::Echo)) });
    let lines = [
        format!("echo hi; touch {pwn}"),
        format!("touch {pwn}"),
        format!("$(touch {pwn})"),
        format!("`touch {pwn}`"),
        format!("true && touch {pwn}"),
        format!("| touch {pwn}"),
        format!("sh -c 'touch {pwn}'"),
        format!("echo\ntouch {pwn}"),
    ];
    for (at, line) in lines.iter().enumerate() {
        servers[format!("bad{at}")] = json!({ "command": line });
    }
    let serving = gateway(&folder, &servers);
    assert_eq!(Caller::new(&serving).tools(), ["mcp__good__echo"]);
    drop(serving);
    let checked = toolcrib(folder.path(), &["check", "--json"]);
    assert_eq!(checked.code, 1, "{}", checked.transcript());
    for at in 0..lines.len() {
        assert!(checked.out.contains(&format!("bad{at}")), "{}", checked.transcript());
    }
    assert!(!folder.file("pwn").exists(), "a shell has read it");
}

/// A gateway that was given nothing but the three files itself: what whoever starts it leaves open is not
/// its own.
fn gateway_of_three_files(folder: &Folder, servers: &Value) -> Serving {
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    let mut command = Command::new("python3");
    let clean = "import os, sys; os.closerange(3, 4096); os.execv(sys.argv[1], sys.argv[1:])";
    command.args(["-c", clean, env!("CARGO_BIN_EXE_toolcrib")]);
    command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path());
    Serving::run(command.stderr(Stdio::null()))
}

/// While the gateway holds sockets, files and the pipes of other servers.
#[test]
fn f07_a_server_is_born_with_three_files_open() {
    let folder = Folder::new();
    folder.write("network.yaml", "results: { inline_up_to: 1KB }\nsessions: on\n");
    folder.write("events/tasks.yaml", crate::events::TASKS);
    let one = on_stdio(&folder, json!({}));
    let crashing = Plan::legacy().tool("crash", Act::Crash).tool("big", Act::Big(5_000));
    let serving = gateway_of_three_files(
        &folder,
        &json!({ "one": one, "two": one, "three": one, "other": entry(&crashing) }),
    );
    let mut caller = Caller::new(&serving);
    let lines: Vec<Line> = (0..20).map(|_| Line::open(&serving)).collect();
    caller.text("mcp__other__big", &json!({}));
    let look = |caller: &mut Caller| {
        for name in ["one", "two", "three"] {
            let found = caller.text(&format!("mcp__{name}__fds"), &json!({}));
            let found: serde_json::Map<String, Value> = serde_json::from_str(&found).unwrap();
            assert_eq!(found.keys().collect::<Vec<_>>(), ["0", "1", "2"], "{found:?}");
        }
    };
    look(&mut caller);
    // One that is started while all of that is open.
    for id in crate::python::descendants(serving.child.id()) {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        if String::from_utf8_lossy(&line).contains("evil.py") {
            Command::new("kill").args(["-KILL", &id.to_string()]).status().unwrap();
        }
    }
    soon("they are back", || {
        caller.call("mcp__one__fds", &json!({}))["isError"] == false
            && caller.call("mcp__two__fds", &json!({}))["isError"] == false
            && caller.call("mcp__three__fds", &json!({}))["isError"] == false
    });
    look(&mut caller);
    drop(lines);
}

/// The white space between tokens is a matter of `siege.rs`; this is about what stands in texts.
#[test]
fn f08_no_argument_is_a_message_of_its_own() {
    let folder = Folder::new();
    let servers = json!({ "old": on_stdio(&folder, json!({})),
        "new": on_stdio(&folder, json!({ "modern": true })) });
    let serving = gateway(&folder, &servers);
    let session = serving.session(&[], "2025-11-25");
    let mut line = Line::open(&serving);
    let hidden = r#"{\"jsonrpc\":\"2.0\",\"id\":99,\"method\":\"tools/call\",\"params\":{\"name\":\"swell\"}}"#;
    let before = noted(&folder).len();
    let mut sent = 0;
    for end in ["\\n", "\\r\\n", "\\u000a", "\u{2028}", "\u{2029}", "\u{85}", "\\u2028", "\\u0000"]
    {
        for server in ["old", "new"] {
            let body = format!(
                r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"mcp__{server}__echo","arguments":{{"a":"{end}{hidden}{end}","{end}{hidden}":1}}}}}}"#
            );
            let answer = line.post(&session, &body).json();
            sent += 1;
            let text = answer["result"]["content"][0]["text"].as_str().unwrap();
            let got: Value = serde_json::from_str(text).unwrap();
            let meant: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(got, meant["params"]["arguments"], "to the letter");
        }
    }
    let noted = noted(&folder);
    assert_eq!(noted.len() - before, sent, "one message each");
    for it in &noted[before..] {
        let it = it.as_str().unwrap();
        assert_eq!(it.matches(['\n', '\r']).count(), 1, "{it:?}");
        assert_eq!(serde_json::from_str::<Value>(it).unwrap()["params"]["name"], "echo");
    }
}

#[test]
fn f09_a_server_that_answers_and_asks_at_will_reaches_nobody() {
    let folder = Folder::new();
    let serving = gateway(&folder, &json!({ "evil": on_stdio(&folder, json!({})) }));
    let mut caller = Caller::new(&serving);
    let session = serving.session(&[], "2025-11-25");
    let mut listening = Events::open(&serving, "GET", &format!("Mcp-Session-Id: {session}"), "");
    for round in 0..5 {
        assert_eq!(caller.text("mcp__evil__noise", &json!({})), "the answer", "{round}");
        // Ids that were answered before they were given, twice, and too late.
        for n in 0..4 {
            let text = caller.text("mcp__evil__echo", &json!({ "n": n }));
            assert_eq!(text, format!(r#"{{"n": {n}}}"#));
        }
        std::thread::sleep(Duration::from_millis(300));
    }
    // Each of its questions was refused: this client cannot be asked anything.
    let replies: Vec<Value> = noted(&folder)
        .iter()
        .map(|it| serde_json::from_str::<Value>(it.as_str().unwrap()).unwrap())
        .filter(|it| it.get("method").is_none())
        .collect();
    assert_eq!(replies.len(), 5 * 6, "{replies:?}");
    // And each is counted, as is each answer that nobody waited for.
    let page = serving.get("/metrics", &[]).body;
    let counted = page
        .lines()
        .find_map(|it| it.strip_prefix("toolcrib_server_strays_total{server=\"evil\"} "));
    assert!(5 * 6 < counted.unwrap().parse::<usize>().unwrap(), "{counted:?}");
    assert!(replies.iter().all(|it| it["error"]["code"].is_i64()), "{replies:?}");
    // Nor did anybody else hear of it.
    let heard = listening.until_silent(Duration::from_millis(300));
    assert!(!heard.contains("jsonrpc"), "{heard}");
    let log = fs::read_to_string(folder.file("log")).unwrap();
    assert!(!log.contains("SECRET"), "{log}");
}

/// A server that asks by its results is not asked again for ever; a modern client decides that for itself.
#[test]
fn f09_a_server_that_only_asks_is_given_up() {
    let folder = Folder::new();
    let server = on_stdio(&folder, json!({ "modern": true }));
    let serving = gateway(&folder, &json!({ "evil": server }));
    let asked = || noted(&folder).iter().filter(|it| it.to_string().contains("tools/call")).count();
    // A legacy client that answers whatever it is asked.
    let session = crate::relay::session(&serving, &json!({ "elicitation": {} }));
    let mut events = Events::call(&serving, &session, 7, "mcp__evil__ask");
    let said = loop {
        let (_, message) = events.next().unwrap();
        if message["method"] != "elicitation/create" {
            break message.to_string();
        }
        let answer = json!({ "action": "accept", "content": {} });
        crate::relay::reply(&serving, &session, &message["id"], &answer);
    };
    assert!(said.contains("the server asked more than"), "{said}");
    assert!((2..=10).contains(&asked()), "{} times", asked());
    let before = asked();
    let [version, method] = modern_headers("tools/call");
    let body = modern_body("tools/call", json!({ "name": "mcp__evil__ask" }));
    let answer = serving.post(&[version, method, ("Mcp-Name", "mcp__evil__ask")], &body);
    assert!(answer.body.contains("elicitation"), "{answer:?}");
    assert_eq!(asked(), before + 1);
}

/// A gigabyte in the full run.
#[test]
fn f10_what_a_server_shouts_fills_neither_memory_nor_disk() {
    const MIB: u64 = 1024 * 1024;
    let (lines, endless) = if is_full() { (1024, 128) } else { (24, 8) };
    let folder = Folder::new();
    let server = on_stdio(&folder, json!({}));
    let mut server = server;
    server["timeout"] = json!("300s");
    let serving = gateway(&folder, &json!({ "evil": server }));
    let session = serving.session(&[], "2025-11-25");
    let mut line = Line::open(&serving);
    line.patience(Duration::from_secs(300));
    let mut say = |tool: &str, megabytes: u32| {
        let params = json!({ "name": tool, "arguments": { "megabytes": megabytes } });
        let body = super::request(1, "tools/call", params).to_string();
        let answer = line.post(&session, &body).json();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    };
    say("mcp__evil__shout", 1);
    let before = memory(serving.child.id());
    say("mcp__evil__shout", lines);
    say("mcp__evil__scream", endless);
    let grown = memory(serving.child.id()).saturating_sub(before);
    assert!(grown < 16 * MIB, "{grown} bytes more");
    let log = || fs::read_to_string(folder.file("log")).unwrap();
    let written = log().len() as u64;
    println!("{written} bytes of log, {grown} bytes of memory");
    assert!(written < MIB, "{written} bytes of log");
    assert!(log().contains("SHOUT"), "some of it is to be seen");
    soon("it is said that there was more", || log().contains("left out"));
    say("mcp__evil__echo", 1);
}

#[test]
fn f12_only_files_of_the_folder_are_tools_and_nobody_waits_for_a_pipe() {
    let (folder, outside) = (Folder::new(), Folder::new());
    let tool = |name: &str| {
        format!(
            "from toolcrib import tool\n\n@tool\ndef {name}() -> str:\n    \"\"\"Say.\"\"\"\n    return '{name}'\n"
        )
    };
    folder.write("tools/good.py", tool("good"));
    folder.write("tools/a;touch pwn;b.py", tool("odd"));
    folder.write("tools/$(touch pwn).py", tool("odder"));
    // Packages that import each other, and themselves.
    folder.write("tools/one/__init__.py", "from two import *\nimport one\n");
    folder.write("tools/two/__init__.py", "from one import *\nimport two\n");
    folder.write("tools/_cycle.py", "import _cycle\n");
    outside.write("out.py", tool("stolen"));
    let secret = outside.write("secret", "SECRET_OUTSIDE = (\n");
    symlink("/etc", folder.file("tools/etc")).unwrap();
    symlink("/etc/passwd", folder.file("tools/passwd.py")).unwrap();
    symlink(&secret, folder.file("tools/secret.py")).unwrap();
    symlink(outside.file("out.py"), folder.file("tools/out.py")).unwrap();
    symlink(outside.path(), folder.file("tools/away")).unwrap();
    symlink("/dev/zero", folder.file("tools/zero.py")).unwrap();
    symlink("loop.py", folder.file("tools/loop.py")).unwrap();
    fs::create_dir(folder.file("tools/folder.py")).unwrap();
    let pipe = Command::new("mkfifo").arg(folder.file("tools/pipe.py")).status();
    assert!(pipe.unwrap().success());
    let serving = gateway(&folder, &json!({}));
    let mut caller = Caller::new(&serving);
    assert_eq!(caller.tools(), ["good", "odd", "odder"]);
    assert_eq!(caller.text("odd", &json!({})), "odd");
    drop(serving);
    let checked = toolcrib(folder.path(), &["check"]);
    let said =
        format!("{}{}", checked.transcript(), fs::read_to_string(folder.file("log")).unwrap());
    assert!(!said.contains("root:") && !said.contains("SECRET"), "{said}");
    for it in ["passwd", "secret", "out"] {
        let told = format!("tools/{it}.py: it is outside of the workspace");
        assert!(checked.out.contains(&told), "{}", checked.transcript());
    }
    assert!(!folder.file("pwn").exists() && !folder.file("tools/pwn").exists());
}
