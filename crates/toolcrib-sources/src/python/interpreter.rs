//! Which Python runs the tools.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use serde::Deserialize;
use tokio::{process::Command, time::timeout};

/// A Python that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Interpreter {
    /// Itself, never a shim that looks for it anew at each start.
    pub(super) path: PathBuf,
    /// `3.11.7`.
    pub(super) version: String,
}

/// Why there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NoPython {
    pub(super) cause: String,
    pub(super) hint: String,
}

#[derive(Deserialize)]
struct Told {
    path: PathBuf,
    version: (u32, u32, u32),
}

const QUESTION: &str = "import json, sys; print(json.dumps({'path': sys.executable, 'version': list(sys.version_info[:3])}))";

/// The oldest that will do.
const OLDEST: (u32, u32, u32) = (3, 9, 0);

/// A shim may look through many folders before it starts anything.
const PATIENCE: Duration = Duration::from_secs(20);

/// Asks each of `candidates` in turn what it is; the first that answers and is new enough will do.
pub(super) async fn find(
    candidates: &[PathBuf],
    env: &[(String, String)],
) -> Result<Interpreter, NoPython> {
    let mut causes = Vec::new();
    for candidate in candidates {
        match ask(candidate, env).await {
            Ok(told) if OLDEST <= told.version => {
                let (major, minor, patch) = told.version;
                let version = format!("{major}.{minor}.{patch}");
                return Ok(Interpreter { path: told.path, version });
            }
            Ok(told) => {
                let (major, minor, _) = told.version;
                causes.push(format!("`{}` is Python {major}.{minor}", candidate.display()));
            }
            Err(cause) => causes.push(format!("`{}`: {cause}", candidate.display())),
        }
    }
    Err(NoPython {
        cause: format!("no Python 3.9 or newer was found ({})", causes.join("; ")),
        hint: "install Python, or name one: `python: { interpreter: /path/to/python3 }` in network.yaml"
            .to_owned(),
    })
}

async fn ask(candidate: &Path, env: &[(String, String)]) -> Result<Told, String> {
    let mut command = Command::new(candidate);
    command.args(["-I", "-c", QUESTION]).env_clear().envs(env.iter().cloned());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = match timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) => output,
        Ok(Err(error)) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err("not there".to_owned());
        }
        Ok(Err(error)) => return Err(error.to_string()),
        Err(_) => return Err("it does not answer".to_owned()),
    };
    let text = output.stdout.trim_ascii();
    serde_json::from_slice(text).map_err(|_not_python| {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().next().unwrap_or("it says nothing");
        toolcrib_wire::text::plain(first.as_bytes())
    })
}
