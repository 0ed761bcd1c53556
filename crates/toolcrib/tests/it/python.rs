//! Tools written in Python, before real gateways and real interpreters.

mod calls;
mod faults;
mod reload;
mod mods;
mod interpreters;
mod endurance;
mod clients;
mod siege;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};

use crate::{
    kit::Folder,
    serving::{Line, Serving},
};

/// A folder of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)
}

/// A copy of a folder of the repository.
pub(crate) fn copy(path: &str) -> Folder {
    let folder = Folder::new();
    copy_into(&repository(path), folder.path());
    folder
}

fn copy_into(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if name == "__pycache__" || name == ".toolcrib" || name == "tmp" {
            continue;
        }
        if path.is_dir() {
            fs::create_dir_all(to.join(&name)).unwrap();
            copy_into(&path, &to.join(&name));
        } else {
            fs::copy(&path, to.join(&name)).unwrap();
        }
    }
}

/// A workspace with one file of tools.
pub(crate) fn workspace(text: &str) -> Folder {
    let folder = Folder::new();
    folder.write("tools/t.py", format!("from toolcrib import *\n{text}"));
    folder
}

/// A legacy client on one connection.
pub(crate) struct Caller {
    line: Line,
    session: String,
    token: Option<String>,
    next: u64,
}

impl Caller {
    pub(crate) fn new(serving: &Serving) -> Self {
        let session = serving.session(&[], "2025-11-25");
        Self { line: Line::open(serving), session, token: None, next: 10 }
    }

    /// One who has a token.
    pub(crate) fn with(serving: &Serving, token: &str) -> Self {
        let token = format!("Bearer {token}");
        let session = serving.session(&[("Authorization", &token)], "2025-11-25");
        Self { line: Line::open(serving), session, token: Some(token), next: 10 }
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.next += 1;
        let body = json!({ "jsonrpc": "2.0", "id": self.next, "method": method, "params": params });
        // Nothing but the answer: what is said before it is heard elsewhere.
        let mut headers =
            vec![("Mcp-Session-Id", self.session.as_str()), ("Accept", "application/json")];
        headers.extend(self.token.as_deref().map(|it| ("Authorization", it)));
        let answer = self.line.post_with(&headers, &body.to_string());
        serde_json::from_str(&answer.body).unwrap_or_else(|_| panic!("no JSON: {answer:?}"))
    }

    /// The result of a call.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }));
        assert!(answer["result"].is_object(), "{tool}: {answer}");
        answer["result"].clone()
    }

    /// The text of a result that is none of an error.
    pub(crate) fn text(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    /// The text of a result that is one of an error.
    pub(crate) fn error(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    pub(crate) fn tools(&mut self) -> Vec<String> {
        let answer = self.ask("tools/list", &json!({}));
        let tools = answer["result"]["tools"].as_array().unwrap().clone();
        tools.iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The processes that a gateway has started, and theirs.
pub(crate) fn descendants(id: u32) -> Vec<u32> {
    let children = |id: u32| -> Vec<u32> {
        let tasks = fs::read_dir(format!("/proc/{id}/task")).into_iter().flatten().flatten();
        tasks
            .flat_map(|it| {
                let text = fs::read_to_string(it.path().join("children")).unwrap_or_default();
                text.split_whitespace().filter_map(|it| it.parse().ok()).collect::<Vec<u32>>()
            })
            .collect()
    };
    let mut found = children(id);
    let mut at = 0;
    while let Some(&next) = found.get(at) {
        found.extend(children(next));
        at += 1;
    }
    found
}
