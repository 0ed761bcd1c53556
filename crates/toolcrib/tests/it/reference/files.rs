//! Files that we show to others fit the schemas that we give to their editors.

use std::{fs, path::PathBuf};

use serde_json::Value;
use toolcrib::sources::mcp::plain_json;

use super::{faults, root, schema};
use crate::readme::{blocks, pages};

fn yaml(text: &str) -> Value {
    let options = serde_saphyr::options! { strict_booleans: true };
    serde_saphyr::from_str_with_options(text, options)
        .unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// JSON as people write it.
fn json(text: &str) -> Value {
    let plain = plain_json(text.as_bytes()).unwrap_or_else(|error| panic!("{text}\n{error}"));
    serde_json::from_slice(&plain).unwrap()
}

/// Files of these names that are in the repository, but for those of others.
fn found(names: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders =
        vec![root().join("examples"), root().join("packaging"), root().join("crates/toolcrib/src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|it| names.iter().any(|name| it == *name)) {
                found.push(path);
            }
        }
    }
    found
}

#[test]
fn examples_and_what_init_writes_fit_the_schemas() {
    let (network, mcp) = (schema("network"), schema("mcp"));
    let all = found(&["network.yaml", "mcp.json"]);
    assert!(4 < all.len(), "{all:?}");
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        let seen = match path.extension().is_some_and(|it| it == "json") {
            true => faults(&mcp, &json(&text)),
            false => faults(&network, &yaml(&text)),
        };
        assert_eq!(seen, [""; 0], "{}", path.display());
    }
}

/// A manifest carries both files inside.
#[test]
fn files_within_the_manifest_fit_the_schemas() {
    let text = fs::read_to_string(root().join("packaging/kubernetes.yaml")).unwrap();
    let parts: Vec<Value> = text.split("\n---\n").map(yaml).collect();
    let data = parts.iter().find_map(|it| it["data"].as_object()).unwrap();
    let file = |name: &str| data[name].as_str().unwrap();
    assert_eq!(faults(&schema("network"), &yaml(file("network.yaml"))), [""; 0]);
    assert_eq!(faults(&schema("mcp"), &json(file("mcp.json"))), [""; 0]);
}

/// Whatever looks like one of the two files on a page is one.
#[test]
fn what_the_pages_show_fits_the_schemas() {
    let (network, mcp) = (schema("network"), schema("mcp"));
    let (mut files, mut servers) = (0, 0);
    for page in pages() {
        let markdown = fs::read_to_string(root().join(&page)).unwrap();
        for block in blocks(&markdown) {
            match block.language.as_str() {
                // Other documents in YAML begin with what they are.
                "yaml"
                    if !["asyncapi:", "scrape_configs:"]
                        .iter()
                        .any(|it| block.text.contains(it)) =>
                {
                    assert_eq!(
                        faults(&network, &yaml(&block.text)),
                        [""; 0],
                        "{page}: {}",
                        block.text
                    );
                    files += 1;
                }
                "json" | "jsonc" if block.text.contains("\"mcpServers\"") => {
                    assert_eq!(faults(&mcp, &json(&block.text)), [""; 0], "{page}: {}", block.text);
                    servers += 1;
                }
                _ => {}
            }
        }
    }
    assert!(9 < files && 2 < servers, "{files} {servers}");
}
