//! Child processes: what they get, and that none of them outlives us.

use std::{
    fs,
    process::{Command, Stdio},
};

use serde_json::json;
use toolcrib_testkit::{Act, Fault, Plan};

use crate::kit::{Folder, client, entry, run, soon, stdio, text};

/// The processes whose command line holds `mark`.
fn processes_with(mark: &str) -> Vec<u32> {
    let ours = std::process::id();
    fs::read_dir("/proc")
        .unwrap()
        .filter_map(|it| it.unwrap().file_name().to_str()?.parse().ok())
        .filter(|&id: &u32| id != ours)
        .filter(|id| {
            let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
            String::from_utf8_lossy(&line).contains(mark)
        })
        .collect()
}

fn is_alive(id: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    !status.is_empty() && !status.contains("State:\tZ")
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_ends_a_stubborn_server_and_what_it_started() {
    let plan = Plan::legacy().fault(Fault::Stubborn).tool("family", Act::Family);
    let client = client(stdio("s", &plan));
    let family = text(&client, "family").await;
    let family: Vec<&str> = family.split(' ').collect();
    assert!(family.iter().all(|it| is_alive(it)));
    client.close().await;
    soon("all have ended", || !family.iter().any(|it| is_alive(it)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_is_dropped_leaves_nobody_behind() {
    let plan = Plan::legacy().tool("family", Act::Family);
    let client = client(stdio("s", &plan));
    let family = text(&client, "family").await;
    drop(client);
    soon("all have ended", || !family.split(' ').any(is_alive));
}

/// Like `npx`: a shell that starts the server and does not want to go away.
#[test]
fn our_own_sudden_death_ends_servers_and_their_children() {
    let folder = Folder::new();
    let notes = folder.file("notes");
    let mark = notes.to_string_lossy().into_owned();
    let plan = Plan::legacy().tool("hang", Act::Hang).fault(Fault::Stubborn).notes(&notes);
    let (program, argument) = plan.command();
    let script = r#"trap '' TERM HUP; "$0" "$1" & wait; wait"#;
    // A shell gives a background process no input, so the wrapper hands it over.
    let script = script.replace("& wait", "<&3 & wait");
    let script = format!("exec 3<&0; {script}");
    let args = json!(["-c", script, program, argument]);
    folder.write(
        "mcp.json",
        json!({ "mcpServers": { "s": { "command": "sh", "args": args } } }).to_string(),
    );
    let mut toolcrib = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(["call", "mcp__s__hang"])
        .current_dir(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    soon("the tool is called", || {
        fs::read_to_string(&notes).is_ok_and(|it| it.contains("tools/call"))
    });
    assert!(2 <= processes_with(&mark).len(), "a shell and the server");
    toolcrib.kill().unwrap();
    toolcrib.wait().unwrap();
    soon("nobody is left", || processes_with(&mark).is_empty());
}

#[test]
fn f03_a_server_sees_no_environment_but_what_it_is_given() {
    let mut server = entry(&Plan::legacy().tool("env", Act::Env));
    server["env"] = json!({ "GIVEN": "${SECRET_ENV}", "PORT": 3000 });
    let folder = Folder::workspace(&json!({ "s": server }));
    let run = run(Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(["call", "mcp__s__env"])
        .env("SECRET_ENV", "hunter22")
        .env("LD_LIBRARY_PATH", "/nowhere")
        .current_dir(folder.path()));
    let allowed = [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TERM",
        "LANG",
        "LC_ALL",
        "LC_CTYPE",
        "TZ",
        "TMPDIR",
        "XDG_RUNTIME_DIR",
        "GIVEN",
        "PORT",
    ];
    for line in run.out.lines() {
        let name = line.split('=').next().unwrap();
        assert!(allowed.contains(&name), "{name}\n{}", run.transcript());
    }
    assert!(run.out.contains("GIVEN=hunter22\n") && run.out.contains("PORT=3000\n"), "{}", run.out);
}

#[test]
fn what_a_server_says_on_stderr_is_logged_without_secrets_and_without_escapes() {
    let words = "\u{1b}[31mtoken hunter22-hunter22 is bad".to_owned();
    let mut server = entry(&Plan::legacy().tool("talk", Act::Stderr(words)));
    server["env"] = json!({ "T": "${SECRET_ENV}" });
    let folder = Folder::workspace(&json!({ "s": server }));
    for format in ["text", "json"] {
        let run = run(Command::new(env!("CARGO_BIN_EXE_toolcrib"))
            .args(["-v", "--log-format", format, "call", "mcp__s__talk"])
            .env("SECRET_ENV", "hunter22-hunter22")
            .current_dir(folder.path()));
        assert_eq!(run.out, "{}\n", "{}", run.transcript());
        assert!(run.err.contains("token **** is bad"), "{}", run.err);
        assert!(!run.err.contains("hunter22") && !run.err.contains('\u{1b}'), "{}", run.err);
    }
}

#[test]
fn f02_arguments_reach_the_server_as_they_are() {
    let folder = Folder::new();
    let program = folder.write("argv.py", ARGV);
    let args = ["$(id)", ";", "a b", "%PATH%", "line\nend", "${UNSET}|"];
    let mut given = vec![json!(program)];
    given.extend(args.map(|it| json!(it)));
    folder.write(
        "mcp.json",
        json!({ "mcpServers": { "s": { "command": "python3", "args": given } } }).to_string(),
    );
    let run = crate::kit::toolcrib(folder.path(), &["call", "mcp__s__argv"]);
    let got: Vec<String> = serde_json::from_str(&run.out).unwrap();
    assert_eq!(got, ["$(id)", ";", "a b", "%PATH%", "line\nend", "|"]);
}

const ARGV: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {
        "initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                       "serverInfo": {"name": "argv", "version": "1"}},
        "tools/list": {"tools": [{"name": "argv", "inputSchema": {"type": "object"}}]},
        "tools/call": {"content": [{"type": "text", "text": json.dumps(sys.argv[1:])}]},
    }.get(message["method"])
    reply = {"result": result} if result else {"error": {"code": -32601, "message": "no"}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)
"#;
