//! The README is true: every command in it runs, and prints what it says.
//!
//! A block marked `console` is a transcript: lines with `$` are run, and what follows must be what
//! comes out. A block marked `sh` is run and must succeed, unless `<!-- not run: … -->` stands
//! above it.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use crate::kit::{Folder, run};

pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) text: String,
    pub(crate) skipped: bool,
    /// The name of the file that it shows, if it says so.
    pub(crate) file: Option<String>,
}

pub(crate) fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let (mut open, mut above): (Option<Block>, &str) = (None, "");
    for line in markdown.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(""), block @ Some(_)) => blocks.extend(block.take()),
            (Some(language), None) => {
                let skipped = above.starts_with("<!-- not run:");
                let file = above.strip_prefix("<!-- file: ").and_then(|it| it.strip_suffix(" -->"));
                let (language, text) = (language.to_owned(), String::new());
                open = Some(Block { language, text, skipped, file: file.map(str::to_owned) });
                above = "";
            }
            (_, Some(block)) => block.text.push_str(&format!("{line}\n")),
            (_, None) if !line.trim().is_empty() => above = line,
            _ => {}
        }
    }
    blocks
}

/// Runs a command line as a user in the repository would, with the binary that was just built.
fn shell(command: &str) -> crate::kit::Run {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let binary = env!("CARGO_BIN_EXE_toolcrib");
    let command = command.replace("cargo run --release -- ", "toolcrib ");
    let folder = Folder::new();
    // `toolcrib` is on the path of somebody who installed it.
    std::os::unix::fs::symlink(binary, folder.file("toolcrib")).unwrap();
    let path = std::env::var("PATH").unwrap();
    run(Command::new("bash")
        .args(["-euo", "pipefail", "-c", &command])
        .env("PATH", format!("{}:{path}", folder.path().display()))
        .current_dir(root))
}

#[test]
fn every_command_in_the_readme_runs_and_prints_what_it_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut ran = 0;
    for file in [
        "README.md",
        "docs/mcp-json.md",
        "docs/network-yaml.md",
        "docs/commands.md",
        "docs/python-tools.md",
        "docs/events.md",
        "docs/context.md",
        "docs/search.md",
        "examples/guide/README.md",
    ] {
        let markdown = fs::read_to_string(root.join(file)).unwrap();
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
    assert!(5 <= ran, "only {ran} commands");
}

/// A gateway is run on a free port, until it has said all that the README says.
fn serving(file: &str, text: &str) -> usize {
    let (command, expected) = text.trim_start_matches("$ ").split_once('\n').unwrap();
    let command = command.split(" -- ").nth(1).unwrap_or(command);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut child = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(command.split_whitespace().skip_while(|it| *it == "toolcrib"))
        .args(["--listen", "127.0.0.1:0"])
        .current_dir(root)
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
