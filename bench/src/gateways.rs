//! Whatever can stand between a client and a server, each with its set-up.
//!
//! Those that others made are set up as their own documentation has it, with as little in the way as they allow;
//! what an option was chosen for stands beside it.

pub(crate) mod nginx;
pub(crate) mod toolcrib;
pub(crate) mod mcp_proxy;
pub(crate) mod fastmcp;
pub(crate) mod contextforge;
pub(crate) mod npm_proxy;

use std::{net::SocketAddr, path::PathBuf, rc::Rc};

use crate::{
    pipe::Program,
    process::Process,
    request::{TOKEN, Target},
    site::ECHO,
};

/// A way to get an answer.
#[derive(Debug, Clone)]
pub(crate) struct Way {
    pub(crate) door: Door,
    pub(crate) token: Option<String>,
    /// What the tool is called there.
    pub(crate) tool: String,
    /// How many tools it has to list, and which it has to hide.
    pub(crate) tools: usize,
    pub(crate) hidden: Option<&'static str>,
    /// Who stands between.
    pub(crate) process: Option<Rc<Process>>,
}

/// How one gets in.
#[derive(Debug, Clone)]
pub(crate) enum Door {
    Http(SocketAddr, String),
    Pipe(Program),
    /// A file that any HTTP client can read, and what is in it.
    File(SocketAddr, String, Rc<Vec<u8>>),
}

/// Where programs are.
#[derive(Debug, Clone)]
pub(crate) struct Programs {
    pub(crate) nginx: PathBuf,
    pub(crate) toolcrib: PathBuf,
    /// The folder that `scripts/bench` installs into.
    pub(crate) tools: PathBuf,
    /// This program, which is a stdio server too.
    pub(crate) itself: PathBuf,
}

impl Way {
    /// By HTTP, with our token; everything else as the server itself has it.
    pub(crate) fn http(address: SocketAddr, path: impl Into<String>, tools: usize) -> Self {
        Self {
            door: Door::Http(address, path.into()),
            token: Some(TOKEN.to_owned()),
            tool: ECHO.to_owned(),
            tools: tools + 1,
            hidden: None,
            process: None,
        }
    }

    pub(crate) fn of(self, process: Process) -> Self {
        Self { process: Some(Rc::new(process)), ..self }
    }

    /// Where requests go.
    pub(crate) fn target(&self) -> Target<'_> {
        match &self.door {
            Door::Http(address, path) | Door::File(address, path, _) => {
                Target::Http(*address, path)
            }
            Door::Pipe(_) => Target::Pipe,
        }
    }
}
