//! The first five minutes, as transcripts, with made-up home folders.

mod init;
mod import;
mod connect;
mod doctor;
mod token;
mod manual;
mod packaging;
mod pages;
mod newcomer;

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, Stdio},
};

use crate::kit::{Folder, Run, run};

/// Somebody's home folder, and a folder in it to work in.
struct Home {
    folder: Folder,
}

impl Home {
    fn new() -> Self {
        let home = Self { folder: Folder::new() };
        fs::create_dir(home.folder.file("work")).unwrap();
        home
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file, named as seen from the home folder.
    fn write(&self, name: &str, text: &str) {
        self.folder.write(name, text);
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.folder.file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn has(&self, name: &str) -> bool {
        self.folder.file(name).exists()
    }

    /// `toolcrib` as this person runs it, in `work`.
    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(args);
        self.at_home(&mut command);
        command
    }

    fn at_home(&self, command: &mut Command) {
        command.current_dir(self.folder.file("work")).env("HOME", self.path());
        for other in
            ["XDG_CONFIG_HOME", "APPDATA", "LOCALAPPDATA", "CODEX_HOME", "CLAUDE_CONFIG_DIR"]
        {
            command.env_remove(other);
        }
    }

    fn run(&self, args: &[&str]) -> Run {
        run(&mut self.command(args))
    }

    /// What this person sees, without what differs from machine to machine.
    #[track_caller]
    fn see(&self, args: &[&str]) -> String {
        self.plain(&self.run(args).transcript())
    }

    fn plain(&self, text: &str) -> String {
        let home = self.path().canonicalize().unwrap();
        text.replace(env!("CARGO_BIN_EXE_toolcrib"), "BIN/toolcrib")
            .replace(&*home.to_string_lossy(), "~")
            .replace(&*self.path().to_string_lossy(), "~")
    }

    /// The same on a terminal, where these keys are pressed, until a line holds `end`; then Ctrl-C is.
    fn see_on_a_terminal(&self, args: &str, keys: &str, end: &str) -> String {
        let command = format!("{} {args}", env!("CARGO_BIN_EXE_toolcrib"));
        let mut script = Command::new("script");
        script.args(["-qefc", &command, "/dev/null"]);
        self.at_home(&mut script);
        script.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = script.spawn().unwrap();
        let shown = press(&mut child, keys, end);
        child.wait().unwrap();
        self.plain(&anstream_free(&shown))
    }
}

fn press(child: &mut Child, keys: &str, end: &str) -> String {
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(keys.as_bytes()).unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut shown = String::new();
    while 0 < out.read_line(&mut shown).unwrap() {
        if shown.lines().last().is_some_and(|it| it.contains(end)) {
            stdin.write_all(b"\x03").unwrap();
        }
    }
    shown
}

/// Text without what only colours it.
fn anstream_free(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = after.split_once(|c: char| c.is_ascii_alphabetic()).map_or("", |(_, rest)| rest);
    }
    plain.push_str(rest);
    plain.replace('\r', "")
}
