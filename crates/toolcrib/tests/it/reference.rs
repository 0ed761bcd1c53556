//! The reference, and the schemas for editors, say what the code goes by; and the code goes by what they say.

mod network;
mod mcp;
mod files;

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde_json::{Value, json};
use toolcrib::server::{self, Who, endpoints};

use crate::{
    kit::{Folder, toolcrib},
    serving::Serving,
};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The schema that a command prints.
fn schema(which: &str) -> Value {
    toolcrib(&root(), &["schema", which]).json()
}

/// What a value does not fit in a schema, one fault a line.
fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    validator.iter_errors(value).map(|it| format!("{}: {it}", it.instance_path())).collect()
}

/// Compares a file with what it should be; with `TOOLCRIB_BLESS` it is made so.
fn compare(file: &str, expected: &str, stale: &mut Vec<String>) {
    let path = root().join(file);
    if fs::read_to_string(&path).unwrap_or_default() == expected {
        return;
    }
    if std::env::var_os("TOOLCRIB_BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, expected).unwrap();
    } else {
        stale.push(file.to_owned());
    }
}

#[test]
fn the_reference_is_what_the_code_says() {
    let folder = Folder::new();
    let run = toolcrib(folder.path(), &["reference", "made"]);
    assert_eq!(run.code, 0, "{}", run.transcript());
    let mut stale = Vec::new();
    let mut made = Vec::new();
    for entry in fs::read_dir(folder.file("made")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let text = fs::read_to_string(folder.file("made").join(&name)).unwrap();
        compare(&format!("docs/reference/{name}"), &text, &mut stale);
        made.push(name);
    }
    assert_eq!(made.len(), 5);
    for which in ["network", "mcp"] {
        let text = toolcrib(&root(), &["schema", which]).out;
        compare(&format!("docs/schema/{which}.schema.json"), &text, &mut stale);
    }
    assert!(stale.is_empty(), "stale: {stale:?}; TOOLCRIB_BLESS=1 makes them anew");
    for entry in fs::read_dir(root().join("docs/reference")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(made.contains(&name), "docs/reference/{name} is made from nothing");
    }
}

/// Whatever is listed answers, to whom it says; whatever is not is not there.
#[test]
fn every_endpoint_of_the_reference_is_there_and_no_other() {
    let folder = Folder::workspace(&json!({}));
    folder.write(
        "network.yaml",
        "external_access: { auth_token: t, groups: { boss: { auth_token: b, operator: true } } }",
    );
    let serving = Serving::start(folder.path());
    let boss = ("Authorization", "Bearer b");
    let guest = ("Authorization", "Bearer t");
    // A stream never ends, so only heads are read; a body is left out, and that is told.
    let status = |method: &str, path: &str, headers: &[(&str, &str)]| {
        let more = [
            ("Content-Length", "0"),
            ("Content-Type", "application/json"),
            ("Accept", "text/event-stream, application/json"),
        ];
        let headers: Vec<_> = headers.iter().copied().chain(more).collect();
        serving.head(method, path, &headers).0
    };
    for it in endpoints() {
        let (method, path) = (it.method, it.path);
        let seen = status(method, path, &[boss]);
        assert!(![401, 403, 405].contains(&seen), "{method} {path}: {seen}");
        // A session, a consumer or a tool that there is not is not found either; that is said in other words.
        if seen == 404 {
            let words = serving.request(method, path, &[boss], "").body;
            assert_ne!(words, "not found\n", "{method} {path}");
        }
        let without = status(method, path, &[]);
        assert_eq!(without == 401, it.who != Who::Public, "{method} {path}: {without}");
        let as_guest = status(method, path, &[guest]);
        assert_eq!(as_guest == 403, it.who == Who::Operators, "{method} {path}: {as_guest}");
    }
    let listed = |path: &str| endpoints().iter().any(|it| it.path == path);
    let others =
        ["/mcp/", "/metrics", "/events/all", "/api/run", "/admin", "/console/", "/.env", "/ws"];
    for path in others.into_iter().filter(|it| !listed(it)) {
        for method in ["GET", "POST", "PUT", "DELETE"] {
            assert_eq!(status(method, path, &[boss]), 404, "{method} {path}");
        }
    }
    for path in ["/mcp", "/sse", "/messages", "/events", "/events/ack", "/api/me", "/api/pack"] {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            let known = endpoints().iter().any(|it| it.path == path && it.method == method);
            assert_eq!(status(method, path, &[boss]) == 405, !known, "{method} {path}");
        }
    }
}

/// All Rust files of a crate, without their tests.
fn sources(name: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("crates").join(name).join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|it| it != "tests.rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("\n#[cfg(test)]").next().unwrap().to_owned();
                found.push((path.display().to_string(), code));
            }
        }
    }
    found
}

/// What follows a mark in a text, as long as it consists of such characters.
fn after<'a>(text: &'a str, mark: &str, fits: impl Fn(char) -> bool) -> Vec<&'a str> {
    let parts = text.split(mark).skip(1);
    parts.map(|it| &it[..it.find(|c| !fits(c)).unwrap_or(it.len())]).collect()
}

#[test]
fn every_code_and_word_of_the_code_is_in_the_reference() {
    let known: Vec<&str> = server::META_KEYS.iter().map(|it| it.0).collect();
    let codes: Vec<String> = server::RPC_CODES.iter().map(|it| it.0.to_string()).collect();
    let (mut keys, mut numbers) = (0, 0);
    for name in ["toolcrib-server", "toolcrib-wire"] {
        for (file, code) in sources(name) {
            for number in after(&code, "-32", |it| it.is_ascii_digit()) {
                let number = format!("-32{number}");
                // Ranges of the specification, by which errors of others are sorted.
                let range = code.contains(&format!("{number}..="))
                    || code.contains(&format!("..={number}"));
                assert!(number.len() != 6 || range || codes.contains(&number), "{file}: {number}");
                numbers += 1;
            }
            for key in after(&code, "\"toolcrib/", |it| it.is_ascii_alphanumeric()) {
                let key = format!("toolcrib/{key}");
                // What a caller sends, and the mark that all of ours have.
                let theirs = ["toolcrib/idempotencyKey", "toolcrib/"].contains(&key.as_str());
                assert!(theirs || known.contains(&key.as_str()), "{file}: {key}");
                keys += 1;
            }
            if !file.ends_with("words.rs") {
                let literal = after(&code, "\"toolcrib/code\": ", |it| it != ' ' && it != '\n');
                assert!(literal.iter().all(|it| it.starts_with("words::")), "{file}: {literal:?}");
            }
        }
    }
    assert!(5 < keys && 9 < numbers, "{keys} {numbers}");
    // Whoever looks for calls that ended so finds the word.
    for (word, _) in server::OUTCOMES {
        let folder = Folder::workspace(&json!({}));
        let run = toolcrib(folder.path(), &["audit", "show", "--outcome", word]);
        assert!(!run.err.contains("invalid value"), "{}", run.transcript());
    }
}
