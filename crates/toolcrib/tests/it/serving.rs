//! A running gateway, and raw HTTP to talk to it with.

use std::{
    io::{BufRead, BufReader, Write},
    net::TcpStream,
    path::Path,
    process::{Child, ChildStdout, Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use crate::kit::{Folder, entry};

/// A gateway that runs while this lives.
pub(crate) struct Serving {
    pub(crate) child: Child,
    pub(crate) address: String,
    // If nobody reads what it says, it would stop saying it.
    _out: BufReader<ChildStdout>,
}

impl Serving {
    pub(crate) fn start(folder: &Path) -> Self {
        Self::start_with(folder, &[])
    }

    pub(crate) fn start_with(folder: &Path, env: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(["serve", "--listen", "127.0.0.1:0"]).envs(env.iter().copied());
        Self::run(command.current_dir(folder).stderr(Stdio::null()))
    }

    /// Runs a command that becomes a gateway.
    pub(crate) fn run(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut said = String::new();
        // The last line comes when every server is up or has failed.
        while !said.contains("servers") {
            assert_ne!(out.read_line(&mut said).unwrap(), 0, "it ended: {said}");
        }
        let address = said.split("://").nth(1).unwrap().split("/mcp").next().unwrap();
        Self { child, address: address.to_owned(), _out: out }
    }

    /// One that runs already.
    pub(crate) fn already(child: Child, address: String, out: BufReader<ChildStdout>) -> Self {
        Self { child, address, _out: out }
    }

    pub(crate) fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &id]).status().unwrap().success());
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// One request, with exactly these headers.
    pub(crate) fn send(&self, head: &str, body: &str) -> Answer {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
        Answer::read(&mut BufReader::new(socket))
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut head = format!("{method} {path} HTTP/1.1\r\nConnection: close");
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            head.push_str(&format!("\r\nHost: {}", self.address));
        }
        for (name, value) in headers {
            head.push_str(&format!("\r\n{name}: {value}"));
        }
        if !body.is_empty() {
            head.push_str(&format!("\r\nContent-Length: {}", body.len()));
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                head.push_str("\r\nContent-Type: application/json");
            }
        }
        self.send(&head, body)
    }

    /// The status and the head of an answer that may never end.
    pub(crate) fn head(&self, method: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut socket = TcpStream::connect(&self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut head = format!("{method} {path} HTTP/1.1\r\nHost: {}", self.address);
        for (name, value) in headers {
            head.push_str(&format!("\r\n{name}: {value}"));
        }
        socket.write_all(format!("{head}\r\n\r\n").as_bytes()).unwrap();
        let mut reader = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap() != 0 {}
        (head.split(' ').nth(1).unwrap().parse().unwrap(), head)
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.request("GET", path, headers, "")
    }

    pub(crate) fn post(&self, headers: &[(&str, &str)], body: &Value) -> Answer {
        self.request("POST", "/mcp", headers, &body.to_string())
    }

    /// Opens a legacy session; returns its id.
    pub(crate) fn session(&self, headers: &[(&str, &str)], revision: &str) -> String {
        let params = json!({ "protocolVersion": revision, "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" } });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params });
        let answer = self.post(headers, &body);
        assert_eq!(answer.json()["result"]["protocolVersion"], revision);
        answer.header("mcp-session-id").unwrap()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A connection that stays open, for many requests.
pub(crate) struct Line {
    socket: TcpStream,
    reader: BufReader<TcpStream>,
    host: String,
}

impl Line {
    pub(crate) fn open(serving: &Serving) -> Self {
        Self::to(&serving.address)
    }

    /// A connection to a gateway at this address.
    pub(crate) fn to(address: &str) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_nodelay(true).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let reader = BufReader::new(socket.try_clone().unwrap());
        Self { socket, reader, host: address.to_owned() }
    }

    /// Waits so long for an answer.
    pub(crate) fn patience(&self, time: Duration) {
        self.socket.set_read_timeout(Some(time)).unwrap();
    }

    pub(crate) fn post(&mut self, session: &str, body: &str) -> Answer {
        self.post_with(&[("Mcp-Session-Id", session)], body)
    }

    pub(crate) fn post_with(&mut self, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n",
            self.host,
            body.len()
        );
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        self.socket.write_all(format!("{head}\r\n{body}").as_bytes()).unwrap();
        Answer::read(&mut self.reader)
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Answer {
    fn read(reader: &mut impl BufRead) -> Self {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).unwrap() == 0 {
                break;
            }
        }
        let mut body = Vec::new();
        let length = head.to_lowercase().lines().find_map(|it| {
            it.strip_prefix("content-length: ").map(|it| it.parse::<usize>().unwrap())
        });
        match length {
            Some(length) => {
                body.resize(length, 0);
                reader.read_exact(&mut body).unwrap();
            }
            None => drop(reader.read_to_end(&mut body)),
        }
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        Self { status, head, body: String::from_utf8_lossy(&body).into_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        let line =
            self.head.lines().find(|it| it.to_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':').unwrap().1.trim().to_owned())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

pub(crate) fn two_servers() -> Folder {
    Folder::workspace(&json!({
        "a": entry(&Plan::legacy().tool("echo", Act::Echo).tool("hang", Act::Hang).tool("crash", Act::Crash)),
        "b": entry(&Plan::modern().tool("echo", Act::Echo).tool("secret", Act::Echo)),
    }))
}

pub(crate) const GROUPS: &str = "
external_access:
  default_agent_group: guest
  auth_token_env: MAIN_TOKEN
  instruction: Be brief.
  excluded_tools: ['*__hang']
  groups:
    analyst:
      auth_token: analyst-token
      exposed_tools: ['mcp__b__*']
      excluded_tools: [mcp__b__secret]
";
