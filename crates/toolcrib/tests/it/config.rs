//! Malformed `mcp.json` files, each with what is said of it.

use std::os::unix::fs::symlink;

use toolcrib::sources::mcp::{Lookup, load_mcp_config, read_mcp_config};

use crate::kit::Folder;

/// What is wrong, by kind: the text of the file.
const MALFORMED: &[(&str, &str)] = &[
    ("empty file", ""),
    ("only spaces", " \n\t "),
    ("no JSON", "not json"),
    ("cut off", r#"{"mcpServers": {"a": {"command": "x""#),
    ("cut off in a string", r#"{"mcpServers": {"a": {"command": "x"#),
    ("single quotes", "{'mcpServers': {}}"),
    ("two documents", r#"{"mcpServers": {}} {"mcpServers": {}}"#),
    ("bad escape", r#"{"mcpServers": {"a": {"command": "C:\Users"}}}"#),
    ("lone surrogate", r#"{"mcpServers": {"a": {"command": "\ud800"}}}"#),
    ("control character", "{\"mcpServers\": {\"a\": {\"command\": \"x\ny\"}}}"),
    ("bad number", r#"{"mcpServers": {"a": {"command": "x", "timeout": 01}}}"#),
    ("comment never closed", r#"{"mcpServers": {} /* open"#),
    ("two commas", r#"{"mcpServers": {"a": {"command": "x"},,}}"#),
    ("root is a list", "[]"),
    ("root is null", "null"),
    ("root is a string", r#""mcpServers""#),
    ("no mcpServers", "{}"),
    ("servers at the top", r#"{"git": {"command": "x"}}"#),
    ("mcpServers misspelt", r#"{"mcpservers": {"a": {"command": "x"}}}"#),
    ("mcpServers is null", r#"{"mcpServers": null}"#),
    ("mcpServers is a list", r#"{"mcpServers": [{"command": "x"}]}"#),
    ("mcpServers twice", r#"{"mcpServers": {}, "mcpServers": {}}"#),
    ("mcpServers and servers", r#"{"mcpServers": {}, "servers": {}}"#),
    ("inputs", r#"{"servers": {}, "inputs": []}"#),
    ("a server is a string", r#"{"mcpServers": {"a": "npx", "b": {"command": "x"}}}"#),
    ("a server is null", r#"{"mcpServers": {"a": null}}"#),
    (
        "two servers of one name",
        r#"{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}, "b": {"command": "z"}}}"#,
    ),
    ("a server without a name", r#"{"mcpServers": {"": {"command": "x"}}}"#),
    ("a control character in a name", r#"{"mcpServers": {"a\n": {"command": "x"}}}"#),
    ("unknown transport", r#"{"mcpServers": {"a": {"transport": "websocket", "url": "ws://h"}}}"#),
    ("empty transport", r#"{"mcpServers": {"a": {"transport": "", "command": "x"}}}"#),
    ("upper-case transport", r#"{"mcpServers": {"a": {"type": "STDIO", "command": "x"}}}"#),
    ("transport is a list", r#"{"mcpServers": {"a": {"transport": ["sse"], "url": "http://h"}}}"#),
    (
        "type and transport differ",
        r#"{"mcpServers": {"a": {"type": "sse", "transport": "http", "url": "http://h"}}}"#,
    ),
    ("command is a list", r#"{"mcpServers": {"a": {"command": ["npx", "-y"]}}}"#),
    ("command is a number", r#"{"mcpServers": {"a": {"command": 7}}}"#),
    ("command twice", r#"{"mcpServers": {"a": {"command": "x", "command": "y"}}}"#),
    ("command and url", r#"{"mcpServers": {"a": {"command": "x", "url": "http://h"}}}"#),
    ("args is a string", r#"{"mcpServers": {"a": {"command": "x", "args": "-m mod"}}}"#),
    ("args holds an object", r#"{"mcpServers": {"a": {"command": "x", "args": ["a", {}]}}}"#),
    ("args holds null", r#"{"mcpServers": {"a": {"command": "x", "args": [null]}}}"#),
    ("args holds a zero byte", r#"{"mcpServers": {"a": {"command": "x", "args": ["\u0000"]}}}"#),
    ("env is a list", r#"{"mcpServers": {"a": {"command": "x", "env": ["A=1"]}}}"#),
    (
        "env loads code",
        r#"{"mcpServers": {"a": {"command": "x", "env": {"LD_PRELOAD": "hunter22.so"}},
            "b": {"command": "x", "env": {"NODE_OPTIONS": "-r x"}, "allow_dangerous_env": true}}}"#,
    ),
    ("env holds a list", r#"{"mcpServers": {"a": {"command": "x", "env": {"A": [1]}}}}"#),
    (
        "env has a key twice",
        r#"{"mcpServers": {"a": {"command": "x", "env": {"A": "1", "A": "2"}}}}"#,
    ),
    ("env has a bad key", r#"{"mcpServers": {"a": {"command": "x", "env": {"A=B": "1"}}}}"#),
    ("url without a scheme", r#"{"mcpServers": {"a": {"url": "example.org/mcp"}}}"#),
    ("url of another scheme", r#"{"mcpServers": {"a": {"url": "ftp://example.org"}}}"#),
    ("url that is none", r#"{"mcpServers": {"a": {"url": "http://exa mple"}}}"#),
    ("url with a password", r#"{"mcpServers": {"a": {"url": "https://me:hunter22@example.org"}}}"#),
    ("headers is a string", r#"{"mcpServers": {"a": {"url": "http://h", "headers": "A: b"}}}"#),
    (
        "a header with a line end",
        r#"{"mcpServers": {"a": {"url": "http://h", "headers": {"A": "b\r\nC: d"}}}}"#,
    ),
    (
        "a header with a bad name",
        r#"{"mcpServers": {"a": {"url": "http://h", "headers": {"A b": "c"}}}}"#,
    ),
    ("timeout is a word", r#"{"mcpServers": {"a": {"command": "x", "timeout": "soon"}}}"#),
    ("timeout is negative", r#"{"mcpServers": {"a": {"command": "x", "timeout": -5}}}"#),
    ("timeout is nothing", r#"{"mcpServers": {"a": {"command": "x", "handshake_timeout": 0}}}"#),
    ("timeout is for ever", r#"{"mcpServers": {"a": {"command": "x", "timeout": 1e300}}}"#),
    ("timeout is NaN", r#"{"mcpServers": {"a": {"command": "x", "timeout": "NaN"}}}"#),
    ("disabled is a string", r#"{"mcpServers": {"a": {"command": "x", "disabled": "true"}}}"#),
    ("include is a string", r#"{"mcpServers": {"a": {"command": "x", "include": "read"}}}"#),
    ("names is unknown", r#"{"mcpServers": {"a": {"command": "x", "names": "short"}}}"#),
    (
        "isolation is unknown",
        r#"{"mcpServers": {"a": {"command": "x", "isolation": "container"}}}"#,
    ),
    ("rate is no rate", r#"{"mcpServers": {"a": {"command": "x", "rate": "10 a day"}}}"#),
    ("rate is nothing", r#"{"mcpServers": {"a": {"command": "x", "rate": "0/s"}}}"#),
    ("key misspelt", r#"{"mcpServers": {"a": {"command": "x", "arg": ["y"]}}}"#),
    ("key unknown", r#"{"mcpServers": {"a": {"command": "x", "colour": "red"}}}"#),
    (
        "unset variable",
        r#"{"mcpServers": {"a": {"command": "${NO_SUCH}", "env": {"K": "${SECRET}"}}}}"#,
    ),
    (
        "a secret beside a fault",
        r#"{"mcpServers": {"a": {"command": "x", "timeout": "${SECRET}", "transport": "${SECRET}"}}}"#,
    ),
    (
        "line and column",
        "{\n  // comment\n  \"mcpServers\": {\n    \"é\": { \"command\": 1 }\n  }\n}",
    ),
];

/// Files that are no text files at all.
fn written(folder: &Folder) -> Vec<(&'static str, std::path::PathBuf)> {
    let deep = format!(r#"{{"mcpServers": {}{}}}"#, "[".repeat(5000), "]".repeat(5000));
    let fifo = folder.file("fifo");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let link = folder.file("loop");
    symlink(&link, &link).unwrap();
    vec![
        ("not there", folder.file("none")),
        ("a folder", folder.path().to_owned()),
        ("a pipe", fifo),
        ("a link to itself", link),
        ("a device", "/dev/zero".into()),
        ("not UTF-8", folder.write("latin", b"{\"mcpServers\": {\"caf\xe9\": {}}}")),
        ("UTF-16", folder.write("utf16", b"\xff\xfe{\0}\0")),
        ("nested too deep", folder.write("deep", deep)),
        ("too large", folder.write("large", vec![b' '; 9 * 1024 * 1024])),
    ]
}

#[test]
fn every_fault_is_told_with_its_place_and_no_secret() {
    let folder = Folder::new();
    let env = |name: &str| (name == "SECRET").then(|| "hunter22-hunter22".to_owned());
    let mut report = String::new();
    for &(kind, text) in MALFORMED {
        let file = folder.write("mcp.json", text);
        report.push_str(&format!("\n{kind}\n{}", said(&file, &env)));
    }
    for (kind, file) in written(&folder) {
        report.push_str(&format!("\n{kind}\n{}", said(&file, &env)));
    }
    let report = report.replace(&*folder.path().to_string_lossy(), "FOLDER");
    assert!(!report.contains("hunter22"), "{report}");
    insta::assert_snapshot!(report);
}

/// Everything the reader says of a file, and how the seed's function ends.
fn said(file: &std::path::Path, env: Lookup<'_>) -> String {
    let mut text = String::new();
    match read_mcp_config(file, env) {
        Ok(config) => {
            for fault in &config.faults {
                text.push_str(&format!("  {fault}\n"));
            }
            let names: Vec<&str> = config.servers.iter().map(|it| it.name.as_str()).collect();
            let (ready, broken) =
                (names.join(" "), config.broken.join(" ").escape_debug().to_string());
            text.push_str(&format!("  usable [{ready}], broken [{broken}]"));
        }
        Err(error) => text.push_str(&format!("  {error}")),
    }
    let loads = load_mcp_config(file, env).is_ok();
    text.push_str(if loads { ", loads\n" } else { ", is an error\n" });
    text
}

#[test]
fn what_the_common_clients_write_is_understood() {
    let folder = Folder::new();
    let file = folder.write("mcp.json", r#"{
        // VS Code, Cursor, Claude Desktop, Windsurf, Gemini
        "servers": {
            "a": { "type": "stdio", "command": "npx", "args": ["-y", "x"], "autoApprove": [], },
            "b": { "type": "http", "url": "https://h/mcp", "headers": { "A": "${env:TOKEN}" } },
            "c": { "type": "streamable-http", "url": "http://h" },
            "d": { "serverUrl": "https://h/sse" },
            "e": { "httpUrl": "https://h/mcp", "timeout": 5000.5, "includeTools": ["x"] },
            "f": { "transport": "sse", "url": "https://h", "sse_read_timeout": "5m", "session_timeout": 7 },
            "g": { "command": "x", "enabled": false, "cwd": "sub", "cache_tools": true },
            /* ours */
            "h": { "command": "x", "names": "bare", "isolation": "session", "rate": "10/s", "required": true,
                   "trust_hints": true, "timeout": "500ms", "ca": "ca.pem" },
        },
    }"#);
    let config = read_mcp_config(&file, &|name| (name == "TOKEN").then(|| "t".into())).unwrap();
    assert_eq!(config.faults, []);
    insta::assert_debug_snapshot!(config.servers);
}
