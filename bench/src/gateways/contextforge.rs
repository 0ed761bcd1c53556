//! PyPI's `mcp-contextforge-gateway`: a registry of servers with a database, here SQLite.
//!
//! Set up as its quick start has it: it is started, given a token that is made with its secret, and told of the
//! server by its API.

use std::{
    fs,
    net::SocketAddr,
    process::{Command, Stdio},
    time::Duration,
};

use serde::Deserialize;

use super::{Programs, Way};
use crate::{
    failure::Failure,
    process::{Folder, Process, Work, free_port, listens},
    site::FEW,
};

/// Tells the gateway of the server, and says what our tool is called there.
const SCRIPT: &str = include_str!("contextforge.py");

/// Long enough for its taste.
const SECRET: &str = "a-secret-of-the-benchmark-that-is-long-enough";
const PASSWORD: &str = "Bench-Mark-2026!";

/// What the script found out.
#[derive(Deserialize)]
struct Registered {
    token: String,
    tool: String,
}

pub(crate) fn http(programs: &Programs, upstream: SocketAddr, path: &str) -> Result<Way, Failure> {
    let bin = programs.tools.join("contextforge/bin");
    if !bin.join("mcpgateway").exists() {
        return Err(Failure::new("not installed (pip install mcp-contextforge-gateway)"));
    }
    let folder = Folder::new("contextforge")?;
    let address = free_port()?;
    let port = address.port().to_string();
    let mut command = Command::new(bin.join("mcpgateway"));
    command.args(["--host", "127.0.0.1", "--port", &port]).current_dir(folder.path());
    command.envs(environment(&folder));
    let mut process = Process::start(&mut command, folder)?;
    process.wait(Duration::from_secs(120), |_| listens(address).then_some(()))?;
    process.count(Work::Tree)?;
    process.folder.write("register.py", SCRIPT)?;
    let mut register = Command::new(bin.join("python"));
    register.arg(process.folder.path().join("register.py"));
    register.args([format!("http://{address}"), format!("http://{upstream}{path}")]);
    register.current_dir(process.folder.path()).envs(environment(&process.folder));
    let Registered { token, tool } = run(&mut register, &process.folder)?;
    let way = Way::http(address, "/mcp", FEW);
    Ok(Way { token: Some(token), tool, ..way }.of(process))
}

/// Its documented settings; it refuses to talk to this machine's own address unless told that it may.
fn environment(folder: &Folder) -> Vec<(&'static str, String)> {
    let database = format!("sqlite:///{}", folder.path().join("mcp.db").display());
    let fixed = [
        ("JWT_SECRET_KEY", SECRET),
        ("AUTH_ENCRYPTION_SECRET", SECRET),
        ("BASIC_AUTH_PASSWORD", PASSWORD),
        ("PLATFORM_ADMIN_EMAIL", "admin@example.com"),
        ("PLATFORM_ADMIN_PASSWORD", PASSWORD),
        ("DEFAULT_USER_PASSWORD", PASSWORD),
        ("MCPGATEWAY_UI_ENABLED", "false"),
        ("MCPGATEWAY_ADMIN_API_ENABLED", "false"),
        ("SSRF_ALLOW_LOCALHOST", "true"),
        ("SSRF_ALLOW_PRIVATE_NETWORKS", "true"),
        // 120 calls a minute, otherwise.
        ("RATE_LIMITING_ENABLED", "false"),
        ("LOG_LEVEL", "ERROR"),
        ("CACHE_TYPE", "memory"),
    ];
    let fixed = fixed.map(|(name, value)| (name, value.to_owned()));
    fixed.into_iter().chain([("DATABASE_URL", database)]).collect()
}

fn run(command: &mut Command, folder: &Folder) -> Result<Registered, Failure> {
    let log = folder.path().join("register.log");
    let out = command.stdin(Stdio::null()).stderr(fs::File::create(&log)?).output()?;
    if let Ok(registered) = serde_json::from_slice(&out.stdout) {
        return Ok(registered);
    }
    let said = fs::read_to_string(&log).unwrap_or_default();
    let last = said.trim().lines().last().unwrap_or("it says nothing").to_owned();
    Err(Failure::new(format!("it cannot be told of the server: {last}")))
}
