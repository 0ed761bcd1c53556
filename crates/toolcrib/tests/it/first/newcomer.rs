//! A newcomer has the README and the finished build, and nothing else: types the one command, sees what the README says,
//! opens the page, and calls a tool on it. With what a person types and clicks, that is to take less than a minute.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

use crate::{console::browse, kit::Folder, readme::blocks, serving::Serving};

/// How fast somebody types who does not type much, in characters a second.
const TYPING: usize = 3;

/// What is typed in the browser: a date.
const TYPED: &str = "2026-11-24";

#[test]
fn the_one_command_of_the_readme_and_a_tool_called_from_the_console() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let first = blocks(&readme).into_iter().find(|it| it.language == "console").unwrap();
    let (line, expected) = first.text.trim_end().split_once('\n').unwrap();
    let line = line.strip_prefix("$ ").unwrap();
    assert!(line.starts_with("cargo run --release -- serve "), "{line}");
    let folder = cloned(&root);
    let begin = Instant::now();
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(line.split(' ').skip_while(|it| *it != "serve")).args(["--listen", "127.0.0.1:0"]);
    command.current_dir(folder.path()).stdout(Stdio::piped()).stderr(Stdio::null());
    let (serving, shown) = Serving::watched(&mut command);
    let shown = shown.replace(&serving.address, "127.0.0.1:8700");
    assert_eq!(shown.trim_end(), expected, "the README says something else");
    // The page is where the output says it is.
    let page = shown.lines().find_map(|it| it.trim().strip_prefix("console ")).unwrap().trim();
    let path = page.strip_prefix("http://127.0.0.1:8700").unwrap();
    let answer = serving.get(path, &[]);
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("<!doctype html>") || answer.body.contains("<!DOCTYPE html>"));
    browse("first.mjs", &serving, &json!({ "date": TYPED }));
    let typing = (line.len() + page.len() + TYPED.len()) / TYPING;
    let all = begin.elapsed() + Duration::from_secs(typing as u64);
    assert!(all < Duration::from_secs(60), "{all:?}, {typing} s of it typing");
}

/// What `git clone` would give of the example: a copy, since others serve the original at the same time.
fn cloned(root: &Path) -> Folder {
    let folder = Folder::new();
    for name in ["mcp.json", "servers/almanac.py"] {
        let path = format!("examples/workspace/{name}");
        folder.write(&path, fs::read(root.join(&path)).unwrap());
    }
    folder
}

impl Serving {
    /// Runs a command that becomes a gateway; also what it said until its servers were up.
    fn watched(command: &mut Command) -> (Self, String) {
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        while !said.contains("  servers ") {
            assert_ne!(out.read_line(&mut said).unwrap(), 0, "it ended: {said}");
        }
        let address = said.split("://").nth(1).unwrap().split("/mcp").next().unwrap().to_owned();
        (Self::already(child, address, out), said)
    }
}
