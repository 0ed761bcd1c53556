//! Servers that nobody here wrote, through the `toolcrib` binary, all at once.
//!
//! `./scripts/test` installs them into `.tools` and says so with `TOOLCRIB_TOOLS`. Where that is not
//! set, the test says aloud that it did not run.

use std::{
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::{Value, json};

use crate::kit::{Folder, Run, not_run, toolcrib};

/// Where the servers are installed.
pub(crate) fn installed() -> Option<PathBuf> {
    let folder = std::env::var_os("TOOLCRIB_TOOLS").map(PathBuf::from);
    if folder.is_none() {
        not_run("no real servers; ./scripts/test installs them and sets TOOLCRIB_TOOLS");
    }
    folder
}

fn everything(tools: &Path) -> PathBuf {
    tools.join("node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// A server that listens on a port; it ends with the test.
struct Listening(Child);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Starts the everything server over HTTP and waits until it listens.
fn listening(tools: &Path, transport: &str, port: u16) -> Listening {
    let mut child = Command::new("node")
        .arg(everything(tools))
        .arg(transport)
        .env("PORT", port.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (out, err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    let (ready, told) = std::sync::mpsc::channel();
    let watch = |stream: Box<dyn std::io::Read + Send>| {
        let ready = ready.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                if line.contains("port") {
                    ready.send(()).ok();
                }
            }
        });
    };
    watch(Box::new(out));
    watch(Box::new(err));
    told.recv_timeout(std::time::Duration::from_secs(30)).unwrap();
    Listening(child)
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn workspace(tools: &Path, http: u16, sse: u16) -> Folder {
    let folder = Folder::new();
    let filesystem =
        tools.join("node_modules/@modelcontextprotocol/server-filesystem/dist/index.js");
    let python = |name: &str| tools.join("venv/bin").join(name);
    folder.write("shelf/note.txt", "a note\n");
    let repository = folder.file("repository");
    assert!(Command::new("git").args(["init", "-q"]).arg(&repository).status().unwrap().success());
    let servers = json!({
        "everything": { "command": "node", "args": [everything(tools)] },
        "by-http": { "type": "http", "url": format!("http://127.0.0.1:{http}/mcp") },
        "by-sse": { "type": "sse", "url": format!("http://127.0.0.1:{sse}/sse") },
        "files": { "command": "node", "args": [filesystem, folder.file("shelf")] },
        "time": { "command": python("mcp-server-time"), "args": ["--local-timezone", "Europe/Berlin"] },
        "git": { "command": python("mcp-server-git"), "args": ["--repository", repository] },
        "missing": { "command": "no-such-program-here" },
        "hangs": { "command": "sleep", "args": ["600"], "handshake_timeout": "8s" },
    });
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    folder
}

#[test]
fn real_servers_are_listed_and_called_and_bad_ones_are_reported() {
    let Some(tools) = installed() else { return };
    let (http, sse) = (free_port(), free_port());
    let _http = listening(&tools, "streamableHttp", http);
    let _sse = listening(&tools, "sse", sse);
    let folder = workspace(&tools, http, sse);
    let run = |args: &[&str]| toolcrib(folder.path(), args);

    let report = run(&["check", "--json"]);
    assert_eq!(report.code, 1, "{}", report.transcript());
    let report = report.json();
    let state = |name: &str| {
        let servers = report["servers"].as_array().unwrap();
        servers.iter().find(|it| it["name"] == name).unwrap()["state"].clone()
    };
    for name in ["everything", "by-http", "by-sse", "files", "time", "git"] {
        assert_eq!(state(name), "ready", "{name}: {report:#}");
    }
    assert_eq!(state("missing"), "failed");
    assert_eq!(state("hangs"), "failed");
    let problems = report["problems"].as_array().unwrap();
    let grave = problems.iter().filter(|it| it["severity"] != "hint").count();
    assert_eq!(grave, 2, "{report:#}");

    let listed = run(&["tools", "--json"]).json();
    let names: Vec<&str> =
        listed.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert!(40 < names.len(), "{names:?}");
    assert!(names.is_sorted());

    for server in ["everything", "by_http", "by_sse"] {
        let called = run(&["call", &format!("mcp__{server}__echo"), "message=grüß dich"]);
        assert_eq!(called.out, "Echo: grüß dich\n", "{server}: {}", called.transcript());
        let sum = run(&["call", &format!("mcp__{server}__get_sum"), "a=2", "b=40"]);
        assert!(sum.out.contains("42"), "{server}: {}", sum.transcript());
    }
    let image = run(&["call", "mcp__everything__get_tiny_image"]);
    assert!(image.out.contains("[image, image/png, "), "{}", image.transcript());
    let structured = result(&run(&[
        "call",
        "mcp__everything__get_structured_content",
        "location=Chicago",
        "--json",
    ]));
    assert!(structured["structuredContent"].is_object(), "{structured}");
    let note = folder.file("shelf/note.txt");
    let read = run(&["call", "mcp__files__read_text_file", &format!("path={}", note.display())]);
    assert!(read.out.starts_with("a note"), "{}", read.transcript());
    let refused = run(&["call", "mcp__files__read_text_file", "path=/etc/passwd"]);
    assert_eq!(refused.code, 1, "{}", refused.transcript());
    let time = run(&["call", "mcp__time__get_current_time", "timezone=Europe/Berlin"]);
    assert!(time.out.contains("Europe/Berlin"), "{}", time.transcript());
    let repository = format!("repo_path={}", folder.file("repository").display());
    let status = run(&["call", "mcp__git__git_status", &repository]);
    assert!(status.out.contains("No commits yet"), "{}", status.transcript());
}

fn result(run: &Run) -> Value {
    assert_eq!(run.code, 0, "{}", run.transcript());
    run.json()
}
