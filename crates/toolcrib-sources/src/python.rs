//! Python functions in `tools/`, and mods written in Python.
//!
//! They run in processes of the workspace's own Python, never in ours: a tool that crashes, hangs or eats
//! memory takes its process with it and nothing else. Our side of the pipe stands here, theirs in the
//! package under `python/`, which is part of the binary.

mod package;
mod interpreter;
mod frames;
mod process;
mod call;
mod places;
mod worker;
mod many;
mod generation;
mod loading;
mod dependencies;
mod engine;
mod calling;
mod port;
mod watching;

use std::{path::PathBuf, time::Duration};

pub use dependencies::prepare;
pub use engine::{Python, PythonSource, Summary};
use toolcrib_catalogue::{Json, Problem};
use toolcrib_wire::text::Masker;

/// How Python tools are run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The folder that holds `tools/` and `mods/`.
    pub workspace: PathBuf,
    /// Where our package and compiled modules are put.
    pub home: PathBuf,
    /// Interpreters to try, the first that is there.
    pub interpreters: Vec<PathBuf>,
    /// How many calls of plain functions run at once.
    pub workers: usize,
    /// What schemas say.
    pub schema: SchemaMode,
    /// How much memory a process may have.
    pub memory: Option<u64>,
    /// How much CPU time a call of a plain function may use.
    pub cpu: Option<Duration>,
    /// How long a call may take, where the tool does not say.
    pub timeout: Duration,
    /// Whether tools reach only what they need.
    pub sandbox: Sandbox,
    /// The largest result.
    pub max_result: usize,
    /// The whole environment of the processes.
    pub env: Vec<(String, String)>,
    /// The mods, in their order.
    pub mods: Vec<ModSettings>,
    /// Knows what must not be told.
    pub masker: Masker,
    /// What an installer sees besides.
    pub install_env: Vec<(String, String)>,
    /// What is wrong with the settings themselves.
    pub problems: Vec<Problem>,
}

/// What tools are kept from, by the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sandbox {
    /// Nothing.
    #[default]
    Off,
    /// Files that they do not need, and the network. Where the kernel cannot do both, no tool is run.
    On,
    /// Files that they do not need; the network only where the kernel can do that too.
    Files,
}

/// What schemas say of parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SchemaMode {
    /// The seed's table: a type and a description.
    #[default]
    Seed,
    /// Everything the signature tells.
    Full,
}

/// A mod that is switched on.
#[derive(Debug, Clone)]
pub struct ModSettings {
    /// The name of its module.
    pub name: String,
    /// What it is given.
    pub config: Json,
}

impl Settings {
    /// The usual settings for a workspace.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        let workspace = workspace.into();
        Self {
            home: workspace.join(".toolcrib").join("python"),
            workspace,
            interpreters: vec![PathBuf::from("python3")],
            workers: 2,
            schema: SchemaMode::Seed,
            sandbox: Sandbox::Off,
            memory: Some(1 << 30),
            cpu: None,
            timeout: Duration::from_secs(30),
            max_result: 100_000_000,
            env: Vec::new(),
            mods: Vec::new(),
            masker: Masker::default(),
            install_env: Vec::new(),
            problems: Vec::new(),
        }
    }

    /// The Python that runs the tools, and its version; or why there is none, and what to do about it.
    pub async fn interpreter(&self) -> Result<(PathBuf, String), (String, String)> {
        match interpreter::find(&self.interpreters, &self.env).await {
            Ok(found) => Ok((found.path, found.version)),
            Err(none) => Err((none.cause, none.hint)),
        }
    }
}
