//! The pages for beginners are true: their commands are typed one after the other, by somebody in a home of their own.
//!
//! As in the README, a `console` block is a transcript and a `sh` block must succeed. A block under `<!-- file: NAME -->`
//! is a file that this person has.

use std::{
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Command, Stdio},
};

use super::Home;
use crate::{
    kit::run,
    readme::{FOLLOWED, any_python, blocks},
};

struct Reader {
    home: Home,
    page: &'static str,
}

impl Reader {
    /// Types a line.
    fn shell(&self, line: &str) -> crate::kit::Run {
        let mut bash = Command::new("bash");
        self.home.at_home(&mut bash);
        let path = std::env::var("PATH").unwrap();
        bash.env("PATH", format!("{}:{path}", self.home.folder.file("bin").display()));
        run(bash.args(["-euo", "pipefail", "-c", line]))
    }

    fn transcript(&self, text: &str) -> usize {
        let mut typed = 0;
        for part in format!("\n{text}").split("\n$ ").skip(1) {
            let (line, expected) = part.split_once('\n').unwrap_or((part, ""));
            let shown = if line.contains(" serve ") {
                self.serve(line, expected.trim_end().lines().count())
            } else {
                let run = self.shell(line);
                run.out + &run.err
            };
            let shown = any_python(&self.home.plain(&shown));
            assert_eq!(shown.trim_end(), expected.trim_end(), "{}: {line}", self.page);
            typed += 1;
        }
        typed
    }

    /// Runs a gateway on a free port until it has said so many lines.
    fn serve(&self, line: &str, lines: usize) -> String {
        let args: Vec<&str> = line.split(' ').skip(1).collect();
        let mut command = self.home.command(&args);
        command.args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let shown: Vec<String> = out.lines().take(lines).map(Result::unwrap).collect();
        child.kill().unwrap();
        child.wait().unwrap();
        let shown = shown.join("\n");
        let address = shown.split("http://").nth(1).unwrap().split('/').next().unwrap();
        shown.replace(address, "127.0.0.1:8700")
    }
}

/// Follows a page, and says how many commands it had.
fn follow(page: &'static str) -> usize {
    assert!(FOLLOWED.contains(&page), "{page}");
    let home = Home::new();
    fs::create_dir(home.folder.file("bin")).unwrap();
    let binary = env!("CARGO_BIN_EXE_toolcrib");
    std::os::unix::fs::symlink(binary, home.folder.file("bin/toolcrib")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let markdown = fs::read_to_string(root.join(page)).unwrap();
    let reader = Reader { home, page };
    let mut typed = 0;
    for block in blocks(&markdown).iter().filter(|it| !it.skipped) {
        if let Some(name) = &block.file {
            reader.home.write(name, &block.text);
            continue;
        }
        match block.language.as_str() {
            "console" => typed += reader.transcript(&block.text),
            "sh" => {
                let run = reader.shell(&block.text);
                assert_eq!(run.code, 0, "{page}: {}\n{}", block.text, run.transcript());
                typed += 1;
            }
            _ => {}
        }
    }
    typed
}

#[test]
fn a_beginner_who_follows_the_tutorial_sees_what_it_says() {
    assert!(7 < follow("docs/first-steps.md"));
}

#[test]
fn whoever_takes_over_servers_sees_what_the_page_says() {
    assert!(4 < follow("docs/import-and-connect.md"));
}

#[test]
fn whoever_runs_it_sees_what_the_page_says() {
    assert!(0 < follow("docs/running.md"));
}
