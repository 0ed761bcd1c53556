//! npm's `mcp-proxy`: puts one stdio server on HTTP. It has no other kind of upstream.

use std::{process::Command, time::Duration};

use super::{Programs, Way};
use crate::{
    failure::Failure,
    process::{Folder, Process, Work, free_port, listens},
    site::FEW,
    stdio,
};

pub(crate) fn pipe(programs: &Programs) -> Result<Way, Failure> {
    let program = programs.tools.join("npm/node_modules/.bin/mcp-proxy");
    if !program.exists() {
        return Err(Failure::new("not installed (npm install mcp-proxy)"));
    }
    let address = free_port()?;
    let mut command = Command::new(program);
    command
        .args(["--host", "127.0.0.1", "--port", &address.port().to_string()])
        .args(["--server", "stream", "--upstreamProtocol", "auto", "--"])
        .arg(&programs.itself)
        .arg(stdio::WORD);
    let mut process = Process::start(&mut command, Folder::new("npm-proxy")?)?;
    process.wait(Duration::from_secs(30), |_| listens(address).then_some(()))?;
    process.count(Work::Itself)?;
    Ok(Way::http(address, "/mcp", FEW).of(process))
}
