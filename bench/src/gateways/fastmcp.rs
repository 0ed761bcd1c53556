//! PyPI's `fastmcp`: a proxy made by its own `create_proxy`, served by its own HTTP server.

use std::{net::SocketAddr, process::Command, time::Duration};

use serde_json::{Value, json};

use super::{Programs, Way};
use crate::{
    failure::Failure,
    process::{Folder, Process, Work, free_port, listens},
    site::FEW,
    stdio,
};

/// Tokens would need its own provider of them; without one it has less to do.
const SCRIPT: &str = r#"import json, sys
from fastmcp.server import create_proxy

target, port = json.loads(sys.argv[1]), int(sys.argv[2])
proxy = create_proxy(target, name="bench")
proxy.run(transport="http", host="127.0.0.1", port=port, show_banner=False, log_level="ERROR")
"#;

/// To a server over HTTP.
pub(crate) fn http(programs: &Programs, upstream: SocketAddr, path: &str) -> Result<Way, Failure> {
    start(programs, "http", &json!(format!("http://{upstream}{path}")), Work::Tree)
}

/// To a server on a pipe.
pub(crate) fn pipe(programs: &Programs) -> Result<Way, Failure> {
    let server = json!({ "command": programs.itself, "args": [stdio::WORD] });
    start(programs, "stdio", &json!({ "mcpServers": { "bench": server } }), Work::Itself)
}

fn start(programs: &Programs, name: &str, target: &Value, work: Work) -> Result<Way, Failure> {
    let pythons = ["fastmcp/bin/python", "../venv/bin/python"].map(|it| programs.tools.join(it));
    let Some(python) = pythons.into_iter().find(|it| it.exists()) else {
        return Err(Failure::new("not installed (pip install fastmcp)"));
    };
    let folder = Folder::new(&format!("fastmcp-{name}"))?;
    let address = free_port()?;
    folder.write("proxy.py", SCRIPT)?;
    let mut command = Command::new(python);
    command
        .arg(folder.path().join("proxy.py"))
        .arg(target.to_string())
        .arg(address.port().to_string());
    let mut process = Process::start(&mut command, folder)?;
    process.wait(Duration::from_secs(60), |_| listens(address).then_some(()))?;
    process.count(work)?;
    Ok(Way::http(address, "/mcp", FEW).of(process))
}
