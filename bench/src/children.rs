//! The two processes between client and server: how they are set up, and what CPU time they use.

use std::{
    fs,
    io::{BufRead, BufReader},
    net::{SocketAddr, TcpListener, TcpStream},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread::sleep,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::json;

use crate::{failure::Failure, request::TOKEN, upstream::FORBIDDEN};

/// A process of ours, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    /// The processes that do the work.
    workers: Vec<u32>,
    pub(crate) address: SocketAddr,
}

/// A folder that goes away when this is dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

/// How long a process may take to begin, or to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// What `/proc` counts in; Linux has told user space no other number for decades.
const TICK: Duration = Duration::from_millis(10);

impl Process {
    /// nginx as a plain forwarder with one worker.
    pub(crate) fn nginx(program: &Path, upstream: SocketAddr) -> Result<(Self, Folder), Failure> {
        let folder = Folder::new("nginx")?;
        let address = free_port()?;
        let (config, log) = (folder.0.join("nginx.conf"), folder.0.join("error.log"));
        fs::write(&config, nginx_config(&folder.0, address, upstream))?;
        let child = Command::new(program)
            .args(["-p".as_ref(), folder.0.as_os_str(), "-c".as_ref(), config.as_os_str()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .spawn()
            .map_err(|error| Failure::from(error).at(&program.display().to_string()))?;
        let mut this = Self { child, workers: Vec::new(), address };
        this.wait_for_workers().map_err(|failure| {
            let said = fs::read_to_string(&log).unwrap_or_default();
            Failure::new(format!("{failure}\n{said}"))
        })?;
        Ok((this, folder))
    }

    fn wait_for_workers(&mut self) -> Result<(), Failure> {
        let begin = Instant::now();
        while begin.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait()? {
                return Err(Failure::new(format!("nginx ended at once: {status}")));
            }
            self.workers = children_of(self.child.id())?;
            if !self.workers.is_empty() && TcpStream::connect(self.address).is_ok() {
                return Ok(());
            }
            sleep(Duration::from_millis(20));
        }
        Err(Failure::new("nginx does not begin"))
    }

    /// toolcrib with a token and a filter.
    pub(crate) fn toolcrib(
        program: &Path,
        upstream: SocketAddr,
    ) -> Result<(Self, Folder), Failure> {
        let folder = Folder::new("toolcrib")?;
        let servers =
            json!({ "bench": { "url": format!("http://{upstream}/mcp"), "names": "bare" } });
        fs::write(folder.0.join("mcp.json"), json!({ "mcpServers": servers }).to_string())?;
        let access = json!({ "auth_token": TOKEN, "excluded_tools": [FORBIDDEN] });
        // JSON is YAML too.
        fs::write(folder.0.join("network.yaml"), json!({ "external_access": access }).to_string())?;
        let mut child = Command::new(program)
            .arg("serve")
            .arg(&folder.0)
            .args(["--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| Failure::from(error).at(&program.display().to_string()))?;
        let out = child.stdout.take().ok_or_else(|| Failure::new("toolcrib has no output"))?;
        let workers = vec![child.id()];
        // Before anything can go wrong: so that it ends with us.
        let mut this = Self { child, workers, address: SocketAddr::from(([127, 0, 0, 1], 0)) };
        this.address = read_banner(BufReader::new(out))?;
        Ok((this, folder))
    }

    /// The CPU time that it has used so far.
    pub(crate) fn cpu(&self) -> Result<Duration, Failure> {
        self.workers.iter().map(|it| Ok(Stat::read(*it)?.cpu)).sum()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let id = i32::try_from(self.child.id()).unwrap_or_default();
        // Politely: a master that is killed leaves its workers behind.
        if 0 < id && kill(Pid::from_raw(id), Signal::SIGTERM).is_ok() {
            let begin = Instant::now();
            while begin.elapsed() < PATIENCE && matches!(self.child.try_wait(), Ok(None)) {
                sleep(Duration::from_millis(10));
            }
        }
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Folder {
    fn new(name: &str) -> Result<Self, Failure> {
        let name = format!("toolcrib-bench-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path)?;
        // Where root starts nginx, its worker is somebody else and has to get in.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// As its documentation has it for a proxy that keeps connections; what is not said here is its default.
/// The limits on requests a connection are raised: we do not measure how connections are made.
fn nginx_config(folder: &Path, address: SocketAddr, upstream: SocketAddr) -> String {
    let folder = folder.display();
    format!(
        r#"
worker_processes 1;
daemon off;
pid {folder}/pid;
error_log stderr;
events {{ worker_connections 1024; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream bench {{
    server {upstream};
    keepalive 128;
    keepalive_requests 1000000000;
  }}
  server {{
    listen {address};
    location / {{
      proxy_pass http://bench;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }}
  }}
}}
"#
    )
}

/// A port that was free a moment ago: nginx does not take whichever is.
fn free_port() -> Result<SocketAddr, Failure> {
    Ok(TcpListener::bind("127.0.0.1:0")?.local_addr()?)
}

/// Waits until toolcrib says that its server is ready, and gives its address.
fn read_banner(out: impl BufRead) -> Result<SocketAddr, Failure> {
    let mut address = None;
    for line in out.lines() {
        let line = line?;
        let url = line.trim().strip_prefix("address").map(str::trim);
        let authority = url.and_then(|it| it.strip_prefix("http://")?.strip_suffix("/mcp"));
        address = authority.and_then(|it| it.parse().ok()).or(address);
        if let (Some(address), true) = (address, line.contains("1 of 1 ready")) {
            return Ok(address);
        }
        if line.contains("0 of 1 ready") {
            return Err(Failure::new(format!("toolcrib does not reach the server: {line}")));
        }
    }
    Err(Failure::new("toolcrib ended at once"))
}

/// What we want of `/proc/PID/stat`.
#[derive(Debug, PartialEq)]
struct Stat {
    parent: u32,
    cpu: Duration,
}

impl Stat {
    fn read(process: u32) -> Result<Self, Failure> {
        let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
        Self::parse(&text).ok_or_else(|| Failure::new(format!("/proc/{process}/stat: {text}")))
    }

    fn parse(text: &str) -> Option<Self> {
        // The name may hold spaces and parentheses; nothing after it does.
        let (_, rest) = text.rsplit_once(") ")?;
        let fields: Vec<&str> = rest.split(' ').collect();
        let ticks = |at: usize| fields.get(at)?.parse::<u32>().ok();
        Some(Self { parent: ticks(1)?, cpu: TICK * (ticks(11)? + ticks(12)?) })
    }
}

fn children_of(parent: u32) -> Result<Vec<u32>, Failure> {
    let names = fs::read_dir("/proc")?.filter_map(|it| it.ok()?.file_name().into_string().ok());
    let processes = names.filter_map(|it| it.parse::<u32>().ok());
    // One that has just ended has no parent any more.
    let is_child = |it: &u32| Stat::read(*it).is_ok_and(|it| it.parent == parent);
    Ok(processes.filter(is_child).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_proc_is_read() {
        let text = "31 (a b) c) S 7 31 31 0 -1 4194560 500 0 0 0 12 30 0 0 20 0 1 0 5 6\n";
        let expected = Stat { parent: 7, cpu: Duration::from_millis(420) };
        assert_eq!(Stat::parse(text), Some(expected));
    }

    #[test]
    fn the_banner_tells_the_address_once_the_server_is_ready() {
        let banner = "toolcrib serves x\n  address   http://127.0.0.1:8700/mcp\n";
        assert!(read_banner(banner.as_bytes()).is_err());
        let ready = format!("{banner}  servers   1 of 1 ready, 3 tools (a 3)\n");
        assert_eq!(read_banner(ready.as_bytes()).unwrap().port(), 8700);
    }
}
