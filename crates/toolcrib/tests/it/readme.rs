//! The README is true: every command in it runs, and prints what it says.
//!
//! A block marked `console` is a transcript: lines with `$` are run, and what follows must be what
//! comes out. A block marked `sh` is run and must succeed, unless `<!-- not run: … -->` stands
//! above it. What stands under `<!-- client: … -->` is for a program that nobody here wrote (`clients`). Whatever is
//! not run is at least well-formed (`sound`).

mod clients;
mod sound;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use crate::kit::{Folder, run};

/// A piece of code on a page.
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
    /// It cannot be run here, or is run by a test of its own.
    pub(crate) skipped: bool,
    /// The name of the file that it shows, if it says so.
    pub(crate) file: Option<String>,
    /// Whose it is: a client that nobody here wrote.
    pub(crate) client: Option<String>,
}

pub(crate) fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut open, mut above): (Option<(usize, Block)>, &str) = (None, "");
    for line in markdown.lines() {
        let inner = line.trim_start();
        match (inner.strip_prefix("```"), &mut open) {
            (Some(""), block @ Some(_)) => blocks.extend(block.take().map(|it| it.1)),
            (Some(language), None) => {
                let said = |what: &str| {
                    let said =
                        above.strip_prefix("<!-- ")?.strip_prefix(what)?.strip_prefix(": ")?;
                    said.strip_suffix(" -->").map(str::to_owned)
                };
                let (client, skipped) = (said("client"), said("not run").is_some());
                let skipped = skipped || client.is_some();
                let (language, text) = (language.to_owned(), String::new());
                let block = Block { language, text, skipped, file: said("file"), client };
                open = Some((line.len() - inner.len(), block));
                above = "";
            }
            // In a list a block stands further to the right.
            (_, Some((indent, block))) => {
                block.text.push_str(&format!("{}\n", line.get(*indent..).unwrap_or_default()));
            }
            (_, None) if !line.trim().is_empty() => above = line,
            _ => {}
        }
    }
    blocks
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every page that somebody reads who uses it.
pub(crate) fn pages() -> Vec<String> {
    let mut pages = vec!["README.md".to_owned()];
    for folder in ["docs", "docs/reference", "examples/guide", "examples/guide-servers"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if name.ends_with(".md") {
                pages.push(format!("{folder}/{name}"));
            }
        }
    }
    pages.sort();
    assert!(25 < pages.len(), "{pages:?}");
    pages
}

/// Pages that somebody follows at home; a test of theirs runs them.
pub(crate) const FOLLOWED: [&str; 3] =
    ["docs/first-steps.md", "docs/import-and-connect.md", "docs/running.md"];

/// Runs a command line as a user in the repository would, with the binary that was just built.
fn shell(command: &str) -> crate::kit::Run {
    let binary = env!("CARGO_BIN_EXE_toolcrib");
    let command = command.replace("cargo run --release -- ", "toolcrib ");
    let folder = Folder::new();
    // `toolcrib` is on the path of somebody who installed it.
    std::os::unix::fs::symlink(binary, folder.file("toolcrib")).unwrap();
    let path = std::env::var("PATH").unwrap();
    run(Command::new("bash")
        .args(["-euo", "pipefail", "-c", &command])
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .current_dir(root()))
}

#[test]
fn every_command_in_the_readme_runs_and_prints_what_it_says() {
    let mut ran = 0;
    for file in pages().iter().filter(|it| !FOLLOWED.contains(&it.as_str())) {
        let markdown = fs::read_to_string(root().join(file)).unwrap();
        for block in blocks(&markdown).iter().filter(|it| !it.skipped) {
            match block.language.as_str() {
                "sh" => {
                    let run = shell(&block.text);
                    assert_eq!(run.code, 0, "{file}: {}\n{}", block.text, run.transcript());
                    ran += 1;
                }
                "console" if block.text.contains(" serve ") => ran += serving(file, &block.text),
                "console" => ran += transcript(file, &block.text),
                _ => {}
            }
        }
    }
    assert!(15 <= ran, "only {ran} commands");
}

/// A gateway is run on a free port, until it has said all that the README says.
fn serving(file: &str, text: &str) -> usize {
    let (command, expected) = text.trim_start_matches("$ ").split_once('\n').unwrap();
    let command = command.split(" -- ").nth(1).unwrap_or(command);
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(command.split_whitespace().skip_while(|it| *it == "toolcrib"))
        .args(["--listen", "127.0.0.1:0"])
        .current_dir(root())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let shown: Vec<String> = lines.take(expected.lines().count()).map(Result::unwrap).collect();
    child.kill().unwrap();
    child.wait().unwrap();
    let shown = shown.join("\n");
    let address = shown.split("http://").nth(1).unwrap().split('/').next().unwrap();
    assert_eq!(shown.replace(address, "127.0.0.1:8700"), expected.trim_end(), "{file}: {command}");
    1
}

fn transcript(file: &str, text: &str) -> usize {
    let mut count = 0;
    for part in text.split("$ ").skip(1) {
        let (command, expected) = part.split_once('\n').unwrap();
        let run = shell(command);
        let shown = any_python(&(run.out + &run.err));
        assert_eq!(shown.trim_end(), expected.trim_end(), "{file}: {command}");
        count += 1;
    }
    count
}

/// `Python 3.11.7` reads `Python 3.x` in a text for everybody.
pub(crate) fn any_python(text: &str) -> String {
    let mut parts = text.split("Python 3.");
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|it: char| it.is_ascii_digit() || it == '.');
        shown.push_str(&format!("Python 3.x{rest}"));
    }
    shown
}
