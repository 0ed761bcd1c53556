//! A small real world for a test: a folder, servers, and the `toolcrib` binary.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::atomic::{AtomicU32, Ordering},
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use toolcrib::sources::mcp::{Client, ClientOptions, Filled, ServerConfig, Transport};
use toolcrib_testkit::Plan;

/// A folder that goes away with the test.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let unique = format!("it-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) -> PathBuf {
        let file = self.file(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, text).unwrap();
        file
    }

    /// A workspace with these servers.
    pub(crate) fn workspace(servers: &Value) -> Self {
        let folder = Self::new();
        // One value a line: places in it do not depend on how long a path is.
        folder.write("mcp.json", format!("{:#}", json!({ "mcpServers": servers })));
        folder
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// The entry of an `mcp.json` that runs a plan as a child process.
pub(crate) fn entry(plan: &Plan) -> Value {
    let (program, argument) = plan.command();
    json!({ "command": program, "args": [argument] })
}

/// The configuration of a server that runs a plan as a child process.
pub(crate) fn stdio(name: &str, plan: &Plan) -> ServerConfig {
    let (program, argument) = plan.command();
    let mut config = ServerConfig::new(name, Transport::Stdio);
    config.command = Some(Filled::literal(program.to_string_lossy()));
    config.args = vec![Filled::literal(argument)];
    config
}

/// The configuration of a server at an address.
pub(crate) fn at(name: &str, transport: Transport, url: &str) -> ServerConfig {
    let mut config = ServerConfig::new(name, transport);
    config.url = Some(Filled::literal(url));
    config
}

/// A client of one server.
pub(crate) fn client(config: ServerConfig) -> Client {
    let client = Client::new(ClientOptions::with_environment(&toolcrib::environment));
    client.add_server(config).unwrap();
    client
}

/// The text that a tool of server `s` answers.
pub(crate) async fn text(client: &Client, tool: &str) -> String {
    match client.call_tool("s", tool, None).await {
        Ok(outcome) => outcome.text(),
        Err(error) => panic!("{error}"),
    }
}

/// What a run of `toolcrib` gave.
pub(crate) struct Run {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `toolcrib` in a folder.
pub(crate) fn toolcrib(folder: &Path, args: &[&str]) -> Run {
    run(Command::new(env!("CARGO_BIN_EXE_toolcrib")).args(args).current_dir(folder))
}

pub(crate) fn run(command: &mut Command) -> Run {
    let Output { status, stdout, stderr } = command.output().unwrap();
    Run {
        code: status.code().unwrap_or(-1),
        out: String::from_utf8(stdout).unwrap(),
        err: String::from_utf8(stderr).unwrap(),
    }
}

impl Run {
    /// The run as a transcript.
    pub(crate) fn transcript(&self) -> String {
        let mut text = format!("exit {}\n", self.code);
        for (name, stream) in [("out", &self.out), ("err", &self.err)] {
            for line in stream.lines() {
                text.push_str(&format!("{name} {line}\n"));
            }
        }
        text
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{}", self.transcript()))
    }
}

/// Waits until something is so, which it must be soon.
#[track_caller]
pub(crate) fn soon(what: &str, mut is_so: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !is_so() {
        assert!(begin.elapsed() < Duration::from_secs(10), "not in time: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Says that something is not shown here, for what this machine lacks; a full run leaves nothing out.
#[track_caller]
pub(crate) fn not_run(what: &str) {
    println!("NOT RUN: {what}");
    assert!(std::env::var_os("TOOLCRIB_FULL").is_none(), "a full run leaves nothing out: {what}");
}

/// Does something, and holds it to so much processor time of its thread: that hardly depends on what else runs.
#[track_caller]
pub(crate) fn within<T>(most: Duration, act: impl FnOnce() -> T) -> T {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
    };
    let begin = now();
    let done = act();
    let took = now() - begin;
    assert!(took <= most, "{took:?} of processor time, at most {most:?}");
    done
}
