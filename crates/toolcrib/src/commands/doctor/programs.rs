//! Programs: ourselves, Python, and those that servers are.

use std::{
    collections::HashMap,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{process::Command, time::timeout};
use toolcrib::{Workspace, environment};
use toolcrib_sources::{
    mcp::{ClientOptions, Filled, ServerConfig, Transport},
    python,
};

use super::Line;

/// Programs that tell their version, and do nothing else when asked for it. Whatever else is a server may take the
/// question for an order to start.
const TELL: [&str; 14] = [
    "node", "npm", "npx", "bun", "bunx", "deno", "pnpm", "yarn", "python", "python3", "uv", "uvx",
    "pipx", "docker",
];

/// How long a program may think about its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// Which `toolcrib` this is, and whether a shell finds the same.
pub(super) fn ourselves() -> Vec<Line> {
    let version = env!("CARGO_PKG_VERSION");
    let Ok(own) = std::env::current_exe() else { return Vec::new() };
    let line = Line::ok("toolcrib", format!("{version}, {}", own.display()));
    let found = environment("PATH").and_then(|it| on_path("toolcrib", &it));
    let other = found.filter(|it| it.canonicalize().ok() != own.canonicalize().ok());
    let other = other.map(|it| {
        let message = format!("a shell would run another one: {}", it.display());
        Line::warning("toolcrib", message).cure("remove the one that you do not want")
    });
    [line].into_iter().chain(other).collect()
}

/// The Python of the workspace.
pub(super) async fn python(settings: &python::Settings) -> Line {
    let needed = python::Python::is_needed(settings);
    match settings.interpreter().await {
        Ok((path, version)) => Line::ok("python", format!("{version}, {}", path.display())),
        Err((cause, hint)) if needed => Line::error("python", cause).cure(hint),
        Err((cause, hint)) => {
            Line::warning("python", format!("{cause}; no tool needs it yet")).cure(hint)
        }
    }
}

/// Whether the program of every server is there.
pub(super) async fn servers(workspace: &Workspace) -> Vec<Line> {
    let inherited = ClientOptions::with_environment(&environment).inherited;
    let mut versions = HashMap::new();
    let mut lines = Vec::new();
    for server in workspace.configs() {
        let subject = format!("server {}", server.name);
        if server.transport != Transport::Stdio {
            let message = "it has an address; `toolcrib check` goes there";
            lines.push(Line::ok(&subject, message));
            continue;
        }
        lines.push(match program(server) {
            Ok(path) => {
                let version = version(&path, &inherited, &mut versions).await;
                Line::ok(&subject, format!("{}{version}", path.display()))
            }
            Err(line) => Line { subject, ..line },
        });
    }
    lines
}

/// The file that would be run.
fn program(server: &ServerConfig) -> Result<PathBuf, Line> {
    let value = |it: &Option<Filled>| it.as_ref().map(|it| it.value().to_owned());
    let command = value(&server.command).unwrap_or_default();
    let written = server.command.as_ref().map(ToString::to_string).unwrap_or_default();
    let missing =
        |cure: &str| Line::error("", format!("there is no program `{written}`")).cure(cure);
    if command.is_empty() {
        return Err(missing("set the variable that names it"));
    }
    if command.contains('/') {
        let folder = value(&server.cwd).unwrap_or_default();
        let path = Path::new(&folder).join(&command);
        return match is_program(&path) {
            true => Ok(path),
            false if path.is_file() => {
                let cure = format!("chmod +x {}", crate::terminal::word(&written));
                Err(Line::error("", format!("`{written}` may not be run")).cure(cure))
            }
            false => Err(missing("write the path of a program that is there")),
        };
    }
    let own = server.env.iter().find(|(name, _)| name == "PATH");
    let path = own.map(|(_, it)| it.value().to_owned()).or_else(|| environment("PATH"));
    on_path(&command, &path.unwrap_or_default())
        .ok_or_else(|| missing("install it, or write its whole path"))
}

fn on_path(command: &str, path: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|it| it.join(command)).find(|it| is_program(it))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
}

/// `, version 22.1.0`, of programs that can be asked.
async fn version(
    path: &Path,
    env: &[(String, String)],
    known: &mut HashMap<PathBuf, String>,
) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if !TELL.contains(&&*name) {
        return String::new();
    }
    if let Some(known) = known.get(path) {
        return known.clone();
    }
    let mut command = Command::new(path);
    command.arg("--version").env_clear().envs(env.iter().cloned());
    command.stdin(Stdio::null()).kill_on_drop(true);
    let said = match timeout(PATIENCE, command.output()).await {
        Ok(Ok(output)) if output.status.success() => {
            let text = if output.stdout.is_empty() { output.stderr } else { output.stdout };
            let text = String::from_utf8_lossy(&text).lines().next().unwrap_or_default().to_owned();
            format!(", {}", text.chars().take(60).collect::<String>())
        }
        _ => ", which does not tell its version".to_owned(),
    };
    known.insert(path.to_owned(), said.clone());
    said
}
