//! Clients that nobody here wrote list and call Python tools, over HTTP and over standard input.

use std::{path::PathBuf, process::Command};

use serde_json::{Value, json};

use super::{copy, repository, workspace};
use crate::{kit::run, real::installed, serving::Serving};

fn gateway(folder: &std::path::Path) -> Vec<String> {
    let workspace = folder.to_str().unwrap();
    [env!("CARGO_BIN_EXE_toolcrib"), "serve", "--stdio", workspace].map(str::to_owned).to_vec()
}

fn ask(script: &str, tools: &PathBuf, words: &[String]) -> Value {
    let mut command = Command::new(tools.join("venv/bin/python"));
    command.env("TOOLS", tools).arg(repository("tests/clients").join(script)).args(words);
    let run = run(&mut command);
    assert_eq!(run.code, 0, "{script} {words:?}\n{}", run.transcript());
    run.json()
}

#[test]
fn the_official_python_client_lists_and_calls_the_zoo() {
    let Some(tools) = installed() else { return };
    let folder = copy("tests/python/zoo");
    // What a client checks results against is what the signatures say.
    folder.write("network.yaml", "python: { schema: full }\n");
    let serving = Serving::start(folder.path());
    for mode in ["legacy", "modern"] {
        let seen = ask("zoo.py", &tools, &[mode.to_owned(), serving.url("/mcp")]);
        assert_eq!(seen["wrong"], json!([]), "{mode}");
        assert!(240 < seen["calls"].as_u64().unwrap(), "{seen}");
    }
    drop(serving);
    let words = [vec!["stdio".to_owned()], gateway(folder.path())].concat();
    let seen = ask("zoo.py", &tools, &words);
    assert_eq!(seen["wrong"], json!([]));
    assert!(150 < seen["tools"].as_u64().unwrap());
}

#[test]
fn the_inspector_lists_and_calls_python_tools() {
    let Some(tools) = installed() else { return };
    let folder = workspace(
        "@tool\ndef greet(name: str) -> str:\n    return f'Hello, {name}'\n\
         @tool\nasync def later() -> dict:\n    return {'n': 1}\n\
         @tool\ndef fails() -> str:\n    raise ValueError('no')\n",
    );
    let expected = json!({ "tools": 3, "called": {
        "greet": [false, "Hello, World", null],
        "later": [false, "{\"n\": 1}", { "n": 1 }],
        "fails": [true, "Invalid input: no", null],
    } });
    let serving = Serving::start(folder.path());
    assert_eq!(ask("zoo_inspector.py", &tools, &[serving.url("/mcp")]), expected);
    drop(serving);
    assert_eq!(ask("zoo_inspector.py", &tools, &gateway(folder.path())), expected);
}

#[test]
fn a_tool_asks_the_user_of_a_client() {
    let Some(tools) = installed() else { return };
    let folder = workspace(
        "@tool\nasync def ask_async(ctx: Context) -> str:\n    \
         answer = await ctx.ask('Who?', {'type': 'object', 'properties': {'name': {'type': 'string'}}})\n    \
         return f'{answer.action} {answer.content}'\n\
         @tool\ndef ask_plain(ctx: Context) -> str:\n    answer = ctx.ask('Who?', {'type': 'object', 'properties': {'name': {'type': 'string'}}})\n    \
         return f'{answer.action} {answer.content}'\n",
    );
    let serving = Serving::start(folder.path());
    let seen = ask("asks.py", &tools, &[serving.url("/mcp")]);
    assert_eq!(
        seen,
        json!({
            "ask_async": [false, "accept {'name': 'Ada'}"],
            "ask_plain": [false, "accept {'name': 'Ada'}"],
        })
    );
}
