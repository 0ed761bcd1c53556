//! What a caller sends is the caller's: faults are quoted to whoever made them, and to nobody else.

use std::{fs, path::Path};

use serde_json::json;
use toolcrib_testkit::{Act, Plan};

use super::Client;
use crate::{
    kit::{Folder, entry, soon},
    serving::Serving,
};

/// Everything that stands in the files of a folder.
fn written(folder: &Path) -> String {
    let mut text = String::new();
    for found in fs::read_dir(folder).into_iter().flatten() {
        let path = found.unwrap().path();
        if path.is_dir() {
            text.push_str(&written(&path));
        } else {
            text.push_str(&String::from_utf8_lossy(&fs::read(path).unwrap_or_default()));
        }
    }
    text
}

#[test]
fn values_that_do_not_fit_are_quoted_to_the_caller_alone() {
    let folder = Folder::new();
    let listed = json!([
        { "name": "login", "inputSchema": { "type": "object", "additionalProperties": false, "properties": {
            "password": { "type": "string", "pattern": "^[A-Z]{3}-" },
            "mode": { "enum": ["correct-horse-1"] } } } },
        { "name": "tell", "inputSchema": { "type": "object" }, "outputSchema": {
            "type": "object", "properties": { "password": { "type": "integer" } } } },
    ]);
    let listed = folder.write("listed.json", listed.to_string());
    let result =
        r#"{"content":[],"structuredContent":{"password":"tr0ubador-of-the-server"}}"#.to_owned();
    let plan = Plan::legacy().tool("login", Act::Echo).tool("tell", Act::Result(result));
    let plan = plan.listed(listed);
    folder.write("mcp.json", json!({ "mcpServers": { "s": entry(&plan) } }).to_string());
    folder.write(
        "network.yaml",
        "audit: { mode: on, arguments: on, results: on }\nsessions: on\nvalidation: { results: strict }\n",
    );
    let log = folder.file("log");
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["-v", "serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path());
    let serving = Serving::run(command.stderr(fs::File::create(&log).unwrap()));
    let client = Client::new(&serving, None);
    let sent =
        json!({ "password": "hunter2-of-ada", "mode": "correct-horse-2", "hunter3-of-ada": 1 });
    let said = client.text("mcp__s__login", &sent);
    for quoted in ["hunter2-of-ada", "correct-horse-2", "hunter3-of-ada"] {
        assert!(said.contains(quoted), "{said}");
    }
    let answer = client.call("mcp__s__tell", &json!({}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    soon("both are on record", || {
        let text = written(&folder.file(".toolcrib"));
        text.matches(r#""outcome":"#).count() == 2 && text.contains("tell")
    });
    drop(client);
    drop(serving);
    let kept = written(&folder.file(".toolcrib")) + &fs::read_to_string(log).unwrap();
    // Arguments are recorded where that is asked for, without what stands under a name that sounds secret.
    for secret in ["hunter2", "tr0ubador", "did you mean", ", found"] {
        let at = kept.find(secret).map(|at| &kept[at.saturating_sub(300)..at + 20]);
        assert_eq!(at, None, "{secret}");
    }
    // What was asked for is told, so that somebody can see what went wrong.
    assert!(kept.contains("`password` must match ^[A-Z]{3}- (pattern)"), "{kept}");
    assert!(kept.contains("there is something unknown in the arguments"), "{kept}");
}
