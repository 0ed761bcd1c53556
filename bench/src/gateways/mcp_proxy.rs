//! The crate `mcp-proxy`: a gateway in Rust on tower-mcp.
//!
//! Set up by its configuration file with a bearer token; its audit log stays off, as it is by default.

use std::{net::SocketAddr, process::Command, time::Duration};

use super::{Programs, Way};
use crate::{
    failure::Failure,
    process::{Folder, Process, Work, free_port, listens},
    request::TOKEN,
    site::{ECHO, FEW},
    stdio,
};

/// To a server over HTTP.
pub(crate) fn http(programs: &Programs, upstream: SocketAddr, path: &str) -> Result<Way, Failure> {
    let backend = format!("transport = \"http\"\nurl = \"http://{upstream}{path}\"\n");
    start(programs, "http", &backend, Work::Tree)
}

/// To a server on a pipe, which is its child and not its work.
pub(crate) fn pipe(programs: &Programs) -> Result<Way, Failure> {
    let (program, word) = (programs.itself.display(), stdio::WORD);
    let backend = format!("transport = \"stdio\"\ncommand = '{program}'\nargs = [\"{word}\"]\n");
    start(programs, "stdio", &backend, Work::Itself)
}

fn start(programs: &Programs, name: &str, backend: &str, work: Work) -> Result<Way, Failure> {
    let program = programs.tools.join("bin/mcp-proxy");
    if !program.exists() {
        return Err(Failure::new("not installed (cargo install mcp-proxy)"));
    }
    let folder = Folder::new(&format!("mcp-proxy-{name}"))?;
    let address = free_port()?;
    let port = address.port();
    let config = format!(
        "[proxy]\nname = \"bench\"\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n\n\
         [auth]\ntype = \"bearer\"\ntokens = [\"{TOKEN}\"]\n\n[[backends]]\nname = \"bench\"\n{backend}\n\
         [observability]\nlog_level = \"error\"\n"
    );
    folder.write("config.toml", config)?;
    let mut command = Command::new(program);
    command.arg("--config").arg(folder.path().join("config.toml"));
    let mut process = Process::start(&mut command, folder)?;
    process.wait(Duration::from_secs(20), |_| listens(address).then_some(()))?;
    process.count(work)?;
    let way = Way::http(address, "/", FEW);
    Ok(Way { tool: format!("bench/{ECHO}"), ..way }.of(process))
}
