//! `toolcrib init`: a workspace to start from, which `toolcrib serve` runs at once.
//!
//! Whatever is there already stays as it is. A folder `tools/` or `events/` that somebody else filled gets nothing
//! added: what lies in there would be served beside it.

use std::{
    fs,
    io::{self, Write},
    path::Path,
    process::ExitCode,
};

use super::{Failure, import, new};
use crate::{
    cli::{Import, Init},
    terminal::{self, BOLD, DIM, GREEN, styled},
};

/// A file of a new workspace.
struct Part {
    path: &'static str,
    what: &'static str,
    text: String,
}

fn parts() -> [Part; 4] {
    let part = |path, what, text: &str| Part { path, what, text: text.to_owned() };
    let hello = new::TOOL.replace("NAME", "hello");
    [
        part("mcp.json", "the MCP servers you use", include_str!("init/mcp.json")),
        part("network.yaml", "where it listens, who may ask", include_str!("init/network.yaml")),
        part("tools/hello.py", "a tool in Python", &hello),
        part("events/note.yaml", "an event, which is a tool too", include_str!("init/note.yaml")),
    ]
}

pub(crate) fn run(asked: &Init) -> Result<ExitCode, Failure> {
    terminal::print(&make(&asked.folder)?)?;
    let servers = servers(asked)?;
    terminal::print(&next(&asked.folder))?;
    terminal::print(&servers)?;
    Ok(ExitCode::SUCCESS)
}

/// Takes the servers of other clients, if somebody says so; else says that there are some.
fn servers(asked: &Init) -> Result<String, Failure> {
    let Some((number, clients)) = import::glance(&asked.folder) else { return Ok(String::new()) };
    let found =
        format!("{} of {}", super::check::count(number, "server"), terminal::clean(&clients));
    if asked.yes || terminal::ask(&format!("Take {found}?")) == Some(true) {
        let workspace = asked.folder.clone();
        let all = Import {
            from: None,
            dry_run: false,
            env_file: None,
            yes: true,
            json: false,
            workspace,
        };
        import::run(&all)?;
        return Ok(String::new());
    }
    let option = match asked.folder == Path::new(".") {
        true => String::new(),
        false => format!(" -w {}", terminal::word(&asked.folder.to_string_lossy())),
    };
    Ok(format!("found {found}: `toolcrib import{option}` takes over what you want\n"))
}

/// Offers somebody whose folder is empty to make a workspace of it. Whether there is one now.
pub(crate) fn offer(folder: &Path) -> Result<bool, Failure> {
    let question = format!("There is no workspace in `{}` yet. Make one?", folder.display());
    if terminal::ask(&question) != Some(true) {
        return Ok(false);
    }
    terminal::print(&make(folder)?)?;
    Ok(true)
}

/// Makes what is not there, and says what it did.
fn make(folder: &Path) -> Result<String, Failure> {
    if folder.exists() && !folder.is_dir() {
        let message = format!("`{}` is no folder", folder.display());
        return Err(Failure::unusable(message).hint(Some("name another one".to_owned())));
    }
    let parts = parts();
    let shown: Vec<String> = parts.iter().map(|it| shown(folder, it.path)).collect();
    let width = shown.iter().map(String::len).max().unwrap_or_default();
    let mut text = String::new();
    for (part, shown) in parts.iter().zip(shown) {
        let made = write(folder, part).map_err(|error| {
            let hint = "is there room, and may you write there?".to_owned();
            Failure::unusable(format!("`{shown}`: {error}")).hint(Some(hint))
        })?;
        text.push_str(&match made {
            Made::New => {
                let name = styled(BOLD, &format!("{shown:width$}"));
                format!("{}  {name}  {}\n", styled(GREEN, "made"), part.what)
            }
            Made::Kept(what) => {
                let said = format!("{shown:width$}  {what}");
                format!("{}\n", styled(DIM, &format!("kept  {said}")))
            }
        });
    }
    Ok(text)
}

enum Made {
    New,
    /// There is one already, or a folder that is not ours to fill.
    Kept(&'static str),
}

fn write(folder: &Path, part: &Part) -> io::Result<Made> {
    let path = folder.join(part.path);
    let parent = path.parent().unwrap_or(folder);
    if path.symlink_metadata().is_ok() {
        return Ok(Made::Kept("it is there already"));
    }
    if parent != folder && parent.symlink_metadata().is_ok() {
        return Ok(Made::Kept("not made, since its folder is there already"));
    }
    fs::create_dir_all(parent)?;
    match fs::File::create_new(&path) {
        Ok(mut file) => file.write_all(part.text.as_bytes()).map(|()| Made::New),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(Made::Kept("it is there already"))
        }
        Err(error) => Err(error),
    }
}

/// What to type now.
fn next(folder: &Path) -> String {
    let here = folder == Path::new(".");
    let name = terminal::word(&folder.to_string_lossy());
    let (option, argument) = match here {
        true => (String::new(), String::new()),
        false => (format!(" -w {name}"), format!(" {name}")),
    };
    let line = |what: &str, command: &str| format!("{what}  {}\n", styled(BOLD, command));
    let mut text = "\n".to_owned();
    if folder.join("tools/hello.py").is_file() {
        text.push_str(&line("try it:", &format!("toolcrib call{option} hello name=World")));
    }
    text.push_str(&line("run it:", &format!("toolcrib serve{argument}")));
    text
}

/// A file of a folder, as a person would write it.
fn shown(folder: &Path, name: &str) -> String {
    let path = folder.join(name);
    path.strip_prefix(".").unwrap_or(&path).display().to_string()
}
