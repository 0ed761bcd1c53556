//! toolcrib: with everything on, and with everything off that a key can switch off.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};

use super::{Door, Programs, Way};
use crate::{
    failure::Failure,
    pipe::Program,
    process::{Folder, Process, Work},
    request::TOKEN,
    site::FORBIDDEN,
    stdio,
};

/// How much a gateway does besides forwarding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    /// A token, a filter, validation, limits, pins with a `toolcrib.lock`, poison, audit.
    All,
    /// Nothing that a key can switch off.
    None,
}

/// How long a gateway may take to have all its servers.
const PATIENCE: Duration = Duration::from_secs(60);

/// A gateway over HTTP to these servers.
pub(crate) fn serve(
    program: &Path,
    name: &str,
    servers: &Value,
    care: Care,
) -> Result<(Process, SocketAddr), Failure> {
    let folder = workspace(program, name, servers, care)?;
    let mut process = Process::start(&mut command(program, folder.path()), folder)?;
    let address = process.wait(PATIENCE, |folder| ready(&said(folder)))?;
    process.count(Work::Itself)?;
    Ok((process, address))
}

/// The way through a gateway with so many tools.
pub(crate) fn way(address: SocketAddr, tools: usize, care: Care) -> Way {
    let way = Way::http(address, "/mcp", tools);
    match care {
        Care::All => Way { tools, hidden: Some(FORBIDDEN), ..way },
        Care::None => Way { token: None, ..way },
    }
}

/// A gateway on standard input and output. Its folder has to stay.
pub(crate) fn pipe(programs: &Programs) -> Result<(Way, Folder), Failure> {
    let folder = workspace(&programs.toolcrib, "pipe", &by_pipe(&programs.itself), Care::All)?;
    let args = vec!["serve".to_owned(), folder.path().display().to_string(), "--stdio".to_owned()];
    let program = Program { path: programs.toolcrib.clone(), args };
    let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
    let way = way(nowhere, crate::site::FEW, Care::All);
    Ok((Way { door: Door::Pipe(program), ..way }, folder))
}

/// A server over HTTP, whose tools keep their names.
pub(crate) fn by_http(upstream: SocketAddr, path: &str) -> Value {
    json!({ "bench": { "url": format!("http://{upstream}{path}"), "names": "bare" } })
}

/// A server on a pipe.
pub(crate) fn by_pipe(itself: &Path) -> Value {
    json!({ "bench": { "command": itself, "args": [stdio::WORD], "names": "bare" } })
}

/// The command that serves a workspace.
pub(crate) fn command(program: &Path, folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("serve").arg(folder).args(["--listen", "127.0.0.1:0"]);
    command
}

/// Writes a workspace, and accepts its tools as they are.
pub(crate) fn workspace(
    program: &Path,
    name: &str,
    servers: &Value,
    care: Care,
) -> Result<Folder, Failure> {
    let folder = Folder::new(&format!("toolcrib-{name}"))?;
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string())?;
    // JSON is YAML too.
    folder.write("network.yaml", network(care).to_string())?;
    if care == Care::All {
        let locked = Command::new(program)
            .arg("lock")
            .arg(folder.path())
            .stdin(Stdio::null())
            .output()
            .map_err(|error| Failure::from(error).at(&program.display().to_string()))?;
        if !locked.status.success() {
            let said = String::from_utf8_lossy(&locked.stderr).into_owned();
            return Err(Failure::new(format!("toolcrib lock: {said}")));
        }
    }
    Ok(folder)
}

/// Limits that are counted and never reached: what a refusal costs is not what we want to know.
fn network(care: Care) -> Value {
    match care {
        Care::All => json!({
            "external_access": {
                "auth_token": TOKEN,
                "excluded_tools": [FORBIDDEN],
            },
            "limits": {
                "rate": "1000000/s",
                "concurrent": 10_000,
                "tools": { "*": { "rate": "1000000/s", "concurrent": 10_000 } },
            },
        }),
        Care::None => json!({
            "validation": { "arguments": "off", "results": "off" },
            "pins": "off",
            "poison": "off",
            "audit": "off",
        }),
    }
}

/// What a gateway has said so far.
pub(crate) fn said(folder: &Folder) -> String {
    fs::read_to_string(folder.path().join("out.log")).unwrap_or_default()
}

/// The address, once it is told.
pub(crate) fn listening(banner: &str) -> Option<SocketAddr> {
    // A line that is still being written may lack the end of its port.
    let whole = &banner[..banner.rfind('\n')?];
    whole.lines().find_map(|line| {
        let url = line.trim().strip_prefix("address")?.trim();
        url.strip_prefix("http://")?.strip_suffix("/mcp")?.parse().ok()
    })
}

/// The address, once all servers are there.
fn ready(banner: &str) -> Option<SocketAddr> {
    let is_ready = |line: &str| {
        let mut words = line.split_whitespace();
        let (Some("servers"), Some(ready), Some("of"), Some(all)) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return false;
        };
        ready == all && line.contains(" ready")
    };
    banner.lines().any(is_ready).then(|| listening(banner)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_banner_tells_the_address_and_when_the_servers_are_ready() {
        let banner = "toolcrib serves x\n  address   http://127.0.0.1:8700/mcp\n";
        assert_eq!(listening(banner).unwrap().port(), 8700);
        assert_eq!(listening("  address   http://127.0.0.1:87"), None);
        assert_eq!(ready(banner), None);
        let with = |text: &str| ready(&format!("{banner}  servers   {text}, 3 tools (a 3)\n"));
        assert_eq!(with("9 of 10 ready"), None);
        assert_eq!(with("10 of 10 ready").unwrap().port(), 8700);
    }
}
