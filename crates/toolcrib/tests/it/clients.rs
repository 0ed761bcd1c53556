//! Clients that nobody here wrote, through a gateway before real servers.

use std::{path::Path, process::Command};

use serde_json::{Value, json};

use crate::{
    kit::{Folder, run},
    real::installed,
    serving::Serving,
};

fn workspace(tools: &Path) -> Folder {
    let everything =
        tools.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    let almanac =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/workspace/servers/almanac.py");
    Folder::workspace(&json!({
        "everything": { "command": "node", "args": [everything] },
        "almanac": { "command": "python3", "args": [almanac] },
        "time": { "command": tools.join("venv/bin/mcp-server-time") },
        "missing": { "command": "no-such-program-here" },
    }))
}

#[test]
fn the_official_python_client_lists_and_calls_in_every_mode() {
    let Some(tools) = installed() else { return };
    let folder = workspace(&tools);
    let serving = Serving::start(folder.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/python_client.py");
    let python = |args: &[&str]| -> Value {
        let mut command = Command::new(tools.join("venv/bin/python"));
        let run = run(command.arg(&script).args(args));
        assert_eq!(run.code, 0, "{args:?}\n{}", run.transcript());
        run.json()
    };
    let (mcp, sse) = (serving.url("/mcp"), serving.url("/sse"));
    let binary = env!("CARGO_BIN_EXE_toolcrib");
    let workspace = folder.path().to_str().unwrap();
    for args in [
        &["auto", &mcp][..],
        &["legacy", &mcp],
        &["2026-07-28", &mcp],
        &["sse", &sse],
        &["stdio", binary, "serve", "--stdio", workspace],
    ] {
        let seen = python(args);
        let tools = seen["tools"].as_u64().unwrap();
        assert!(3 <= tools, "{args:?}: {seen}");
        assert_eq!(seen["echo"], "Echo: hi", "{args:?}");
        assert_eq!(seen["moon"]["phase"], "full moon", "{args:?}");
        assert_eq!(seen["bad"], json!([true, "Invalid input: 'to' is required"]), "{args:?}");
        assert_eq!(seen["progress"], json!([1.0, 2.0]), "{args:?}");
        let prompt = json!("mcp__everything__args_prompt");
        assert!(seen["prompts"].as_array().unwrap().contains(&prompt), "{args:?}: {seen}");
        assert_eq!(seen["prompt"], "What's weather in Oslo?", "{args:?}");
        assert!(1 <= seen["resources"].as_u64().unwrap(), "{args:?}");
        assert_eq!(seen["read"], true, "{args:?}");
        assert_eq!(seen["templates"], 2, "{args:?}");
        assert!(seen["dynamic"].as_str().unwrap().starts_with("Resource 1"), "{args:?}");
        assert_eq!(seen["unknown"], "Unknown tool: mcp__almanac__nothing", "{args:?}");
    }
}
