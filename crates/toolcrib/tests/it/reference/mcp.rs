//! `mcp.json`: what the schema says of each key, the reader does.

use serde_json::{Value, json};
use toolcrib::sources::mcp::{Config, read_mcp_config};

use super::{faults, schema};
use crate::kit::Folder;

fn read(file: &Value) -> Config {
    let folder = Folder::new();
    let path = folder.write("mcp.json", file.to_string());
    read_mcp_config(&path, &|name| (name == "SET").then(|| "stdio".to_owned())).unwrap()
}

fn told(config: &Config) -> String {
    config.faults.iter().map(|it| format!("{it}\n")).collect()
}

/// A file with a server that has this key besides what it needs.
fn with(key: &str, value: Option<&Value>) -> Value {
    let url = ["url", "serverUrl", "httpUrl", "headers", "ca", "sse_read_timeout"].contains(&key);
    let mut server =
        if url { json!({ "url": "https://example.com/mcp" }) } else { json!({ "command": "x" }) };
    if ["serverUrl", "httpUrl"].contains(&key) {
        server = json!({});
    }
    if let Some(value) = value {
        server[key] = value.clone();
    }
    json!({ "mcpServers": { "s": server } })
}

/// Something that a key takes.
fn good(key: &str, schema: &Value) -> Vec<Value> {
    if let Some(words) = schema["anyOf"][0]["enum"].as_array() {
        return words
            .iter()
            .filter(|it| key == "names" || key == "isolation" || *it == "stdio")
            .cloned()
            .collect();
    }
    let pattern = schema["pattern"].as_str().unwrap_or_default();
    vec![match (schema["type"][0].as_str().unwrap_or("string"), pattern) {
        ("array", _) => json!(["a", 1, true]),
        ("object", _) => json!({ "A": "b", "C": 1 }),
        ("boolean", _) => json!(true),
        ("integer", _) => json!(4),
        (_, it) if it.contains("burst") => json!("10/s burst 20"),
        (_, it) if it.contains("ms") => json!("500ms"),
        _ if key.ends_with("rl") => json!("https://example.com/other"),
        _ => json!("x"),
    }]
}

#[test]
fn keys_of_the_schema_are_known_to_the_reader_and_others_are_not() {
    let schema = schema("mcp");
    let server = &schema["properties"]["mcpServers"]["additionalProperties"];
    let keys = server["properties"].as_object().unwrap();
    assert!(30 < keys.len());
    for (key, inside) in keys {
        assert!(inside["description"].is_string(), "{key}");
        for value in good(key, inside) {
            let file = with(key, Some(&value));
            assert_eq!(faults(&schema, &file), [""; 0], "{key}: {value}");
            let config = read(&file);
            assert_eq!(told(&config), "", "{key}: {value}");
            assert_eq!(config.servers.len(), 1, "{key}");
        }
        if inside["type"].is_array() {
            let bad = if inside["type"][0] == "object" { json!([]) } else { json!({}) };
            let file = with(key, Some(&bad));
            assert!(!faults(&schema, &file).is_empty(), "{key}");
            assert!(read(&file).servers.is_empty(), "{key}");
        }
        if !inside["default"].is_null() {
            let written = [with(key, Some(&inside["default"])), with(key, None)];
            let [a, b] = written.map(|it| format!("{:?}", read(&it)));
            assert_eq!(a, b, "{key}");
        }
    }
    for file in [with("comand", Some(&json!("x"))), json!({ "mcpServers": {}, "severs": {} })] {
        assert!(!faults(&schema, &file).is_empty(), "{file}");
        assert!(told(&read(&file)).contains("unknown key"), "{file}");
    }
    // What VS Code asks its user for is told, and what an editor needs is not.
    let file = json!({ "$schema": "mcp.schema.json", "servers": {} });
    assert_eq!((faults(&schema, &file), told(&read(&file))), (Vec::new(), String::new()));
}

#[test]
fn words_of_the_schema_are_those_that_the_reader_takes() {
    let schema = schema("mcp");
    let server = &schema["properties"]["mcpServers"]["additionalProperties"];
    let mut tried = 0;
    for (key, inside) in server["properties"].as_object().unwrap() {
        for word in inside["anyOf"][0]["enum"].as_array().into_iter().flatten() {
            let addressed = key == "type" || key == "transport";
            let way = if addressed && word != "stdio" { "url" } else { "command" };
            let file =
                json!({ "mcpServers": { "s": { way: "https://example.com/mcp", key: word } } });
            assert_eq!(faults(&schema, &file), [""; 0], "{file}");
            assert_eq!(told(&read(&file)), "", "{file}");
            tried += 1;
        }
        if inside["anyOf"].is_array() {
            let file = json!({ "mcpServers": { "s": { "command": "x", key: "nonsense" } } });
            assert!(!faults(&schema, &file).is_empty(), "{key}");
            assert_eq!(read(&file).servers.len(), 0, "{key}");
        }
    }
    assert!(12 < tried, "only {tried} words");
}

#[test]
fn what_cannot_be_used_is_flagged() {
    let schema = schema("mcp");
    let bad = [
        json!({}),
        json!([]),
        json!({ "mcpServers": [] }),
        json!({ "mcpServers": {}, "servers": {} }),
        json!({ "mcpServers": { "s": "npx" } }),
        json!({ "mcpServers": { "s": { "command": "x", "url": "https://example.com" } } }),
        json!({ "mcpServers": { "s": { "command": "x", "args": "a b" } } }),
        json!({ "mcpServers": { "s": { "command": "x", "rate": "often" } } }),
        json!({ "mcpServers": { "s": { "command": "x", "timeout": "soon" } } }),
        json!({ "mcpServers": { "s": { "command": "x", "concurrent": 0 } } }),
    ];
    for file in bad {
        assert!(!faults(&schema, &file).is_empty(), "{file}");
        assert!(!told(&read(&file)).is_empty(), "{file}");
    }
    // Variables are filled in later, so whatever has one may be right.
    let file = json!({ "mcpServers": { "s": { "command": "${SET}", "type": "${SET}", "timeout": "${SET:-30s}" } } });
    assert_eq!(faults(&schema, &file), [""; 0]);
}
