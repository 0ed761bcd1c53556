//! Clients that nobody here wrote, through a gateway before real servers.
//!
//! The scripts in `tests/clients` do the same with each client, as far as it can, and print what they saw.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::{Value, json};

use crate::{
    kit::{Folder, run},
    real::installed,
    serving::Serving,
};

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients")
}

pub(crate) fn workspace(tools: &Path) -> Folder {
    let everything =
        tools.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let almanac =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workspace/servers/almanac.py");
    let python = tools.join("venv/bin/python");
    Folder::workspace(&json!({
        "everything": { "command": "node", "args": [everything] },
        "almanac": { "command": "python3", "args": [almanac] },
        "time": { "command": tools.join("venv/bin/mcp-server-time") },
        "asker": { "command": python, "args": [scripts().join("asker.py")] },
        "missing": { "command": "no-such-program-here" },
    }))
}

/// What a client sees of those servers, whoever it is.
fn expected() -> Value {
    let prompts = ["args", "completable", "resource", "simple"];
    json!({
        "echo": "Echo: hi",
        "moon": { "date": "2026-11-24", "phase": "full moon", "age_days": 14.8, "lit": 1 },
        "prompts": prompts.map(|it| format!("mcp__everything__{it}_prompt")),
        "prompt": "What's weather in Oslo?",
        "resources": 7,
        "read": true,
        "templates": 2,
        "dynamic": "Resource 1",
        "progress": [1, 2],
        "cancelled": true,
        "after_cancel": "Echo: still here",
        "elicited": "Hello, Ada",
        "sampled": "blue",
        "roots": "file:///srv/work",
        "logged": ["one", "two", "three"],
        "unknown": "Unknown tool: mcp__almanac__nothing",
    })
}

/// Runs a script in these modes, over HTTP, HTTP+SSE and standard input; `cannot` is what its client cannot
/// do or does not show.
fn check(script: &str, modes: &[&str], cannot: &[&str]) {
    let Some(tools) = installed() else { return };
    let folder = workspace(&tools);
    let serving = Serving::start(folder.path());
    let node = Path::new(script).extension().is_some_and(|it| it == "mjs");
    let program = if node { PathBuf::from("node") } else { tools.join("venv/bin/python") };
    for mode in modes {
        let target: Vec<String> = match *mode {
            "stdio" => {
                let workspace = folder.path().to_str().unwrap();
                let gateway = env!("CARGO_BIN_EXE_toolcrib");
                [gateway, "serve", "--stdio", workspace].map(str::to_owned).to_vec()
            }
            "sse" => vec![serving.url("/sse")],
            _ => vec![serving.url("/mcp")],
        };
        let mut command = Command::new(&program);
        command.env("TOOLS", &tools).arg(scripts().join(script)).arg(mode).args(target);
        let run = run(&mut command);
        assert_eq!(run.code, 0, "{script} {mode}\n{}", run.transcript());
        let seen = run.json();
        assert!(20 <= seen["tools"].as_u64().unwrap(), "{script} {mode}: {seen}");
        for (key, value) in expected().as_object().unwrap() {
            let value = if cannot.contains(&key.as_str()) { &Value::Null } else { value };
            assert_eq!(&seen[key], value, "{script} {mode}: {key}");
        }
    }
}

#[test]
fn the_official_python_client() {
    check("python.py", &["auto", "legacy", "modern", "sse", "stdio"], &[]);
}

#[test]
fn fastmcp() {
    check("fastmcp_client.py", &["legacy", "modern", "sse", "stdio"], &[]);
}

#[test]
fn the_first_typescript_client() {
    check("sdk1.mjs", &["legacy", "sse", "stdio"], &[]);
}

#[test]
fn the_second_typescript_client() {
    check("sdk2.mjs", &["legacy", "modern", "sse", "stdio"], &[]);
}

#[test]
fn the_command_line_of_the_inspector() {
    check("inspector.py", &["legacy", "modern"], &["progress", "sampled", "unknown"]);
}
