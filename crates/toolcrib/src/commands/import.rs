//! `toolcrib import`: the servers that other clients know, taken over into `mcp.json`.
//!
//! Nothing of theirs is changed. What stands in `mcp.json` stays as it is; a server of a name that is there already is
//! left out and told, for only a person can say which of the two is meant.

mod gathering;
mod meaning;
mod report;
mod secrets;

use std::{
    fs::OpenOptions,
    io::Write,
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::{Map, Value};
use toolcrib::{Network, environment};
use toolcrib_catalogue::Problem;

pub(super) use self::meaning::is_toolcrib;
use self::{
    gathering::{Looked, Raw, files_of_project, files_of_user, gather},
    meaning::meant,
    secrets::{Variable, Variables},
};
use super::Failure;
use crate::{
    cli::Import,
    clients::{self, Client, Folders, Form, read_text, replace},
    terminal,
};

/// The word for the files of the folder in which somebody stands.
const PROJECT: &str = "project";

/// What an import would do.
pub(super) struct Plan {
    taken: Vec<Taken>,
    left: Vec<Left>,
    variables: Vec<Variable>,
    problems: Vec<Problem>,
    /// Files of the folder that nobody asked for.
    unread: Vec<PathBuf>,
    /// The `mcp.json` that it goes into, and its text afterwards.
    file: PathBuf,
    text: String,
}

/// A server that is taken over.
struct Taken {
    name: String,
    from: String,
    file: String,
    entry: Map<String, Value>,
    changes: Vec<String>,
}

/// A server that is not.
struct Left {
    name: String,
    from: String,
    file: String,
    why: String,
}

pub(crate) fn run(asked: &Import) -> Result<ExitCode, Failure> {
    let folders = folders()?;
    let plan = plan(&asked.workspace, asked.from.as_deref(), &folders)?;
    if !asked.json {
        terminal::warn(&plan.problems);
        terminal::print(&report::found(&plan, &folders))?;
    }
    let wanted = !plan.taken.is_empty() && !asked.dry_run && (asked.yes || agreed(asked, &plan));
    if wanted {
        // Values first: an entry without its secret would be of no use.
        if let Some(file) = &asked.env_file {
            write_values(file, &plan.variables)?;
        }
        plan.write()?;
    }
    terminal::print(&if asked.json {
        report::listed(&plan, wanted)
    } else {
        report::done(&plan, wanted, asked)
    })?;
    Ok(ExitCode::SUCCESS)
}

/// How many servers of how many clients could be taken, for whoever just made a workspace.
pub(super) fn glance(workspace: &Path) -> Option<(usize, String)> {
    let folders = Folders::here(&environment)?;
    let plan = plan(workspace, None, &folders).ok()?;
    let mut from: Vec<&str> = Vec::new();
    for taken in &plan.taken {
        let client = taken.from.split(',').next().unwrap_or_default();
        if !from.contains(&client) {
            from.push(client);
        }
    }
    (!plan.taken.is_empty()).then(|| (plan.taken.len(), from.join(", ")))
}

/// Where the files of clients are.
pub(super) fn folders() -> Result<Folders, Failure> {
    Folders::here(&environment).ok_or_else(|| {
        let hint = "set HOME, or name a file: --from FILE";
        Failure::unusable("there is no home folder").hint(Some(hint.to_owned()))
    })
}

/// Whether somebody says yes. What is taken will be run, so where nobody can be asked nothing is.
fn agreed(asked: &Import, plan: &Plan) -> bool {
    let question = format!("Take {}?", super::check::count(plan.taken.len(), "server"));
    !asked.json && terminal::ask(&question) == Some(true)
}

/// What would be taken from where.
fn plan(workspace: &Path, from: Option<&str>, folders: &Folders) -> Result<Plan, Failure> {
    if !workspace.is_dir() {
        let message = format!("there is no folder `{}`", workspace.display());
        let hint = "`toolcrib init` makes a workspace";
        return Err(Failure::unusable(message).hint(Some(hint.to_owned())));
    }
    let looked = looked(from, folders)?;
    let (found, problems) = gather(&looked, folders);
    if let (Some(_), [.., problem], true) = (from, problems.as_slice(), found.is_empty()) {
        let message = format!("{}: {}", problem.subject, problem.message);
        return Err(Failure::unusable(message).hint(problem.hint.clone()));
    }
    let unread = match from {
        None => files_of_project(&std::env::current_dir()?),
        Some(_) => Vec::new(),
    };
    let unread = unread.into_iter().map(|it| it.file).filter(|it| it.is_file());
    let unread = unread.filter(|it| !looked.iter().any(|looked| same_file(&looked.file, it)));
    let mut merging = Merging::into(workspace, folders)?;
    for raw in found {
        merging.add(&raw);
    }
    let Merging { taken, left, variables, file, text, .. } = merging;
    let unread = unread.collect();
    Ok(Plan { taken, left, variables: variables.all, problems, unread, file, text })
}

/// The files that were asked for, or all of the person's own. Those of the folder are taken only when somebody says
/// so: a repository that was just cloned may have some, and what stands in them is run.
fn looked(from: Option<&str>, folders: &Folders) -> Result<Vec<Looked>, Failure> {
    let Some(from) = from else {
        return Ok(Client::ALL.iter().flat_map(|it| files_of_user(*it, folders)).collect());
    };
    if let Some(client) = Client::read(from) {
        return Ok(files_of_user(client, folders));
    }
    if from == PROJECT {
        return Ok(files_of_project(&std::env::current_dir()?));
    }
    let file = PathBuf::from(from);
    if !file.exists() {
        let known: Vec<&str> = Client::ALL.iter().map(|it| it.word()).collect();
        let message = format!("`{from}` is neither a client nor a file");
        let hint =
            format!("clients: {}; or {PROJECT}, for the files of this folder", known.join(", "));
        return Err(Failure::unusable(message).hint(Some(hint)));
    }
    Ok(vec![Looked { client: None, file, project: None }])
}

fn same_file(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// What has been decided so far.
struct Merging<'a> {
    folders: &'a Folders,
    /// Where we listen ourselves, if that is known.
    own_port: Option<u16>,
    key: &'static str,
    there: Map<String, Value>,
    taken: Vec<Taken>,
    left: Vec<Left>,
    variables: Variables<'a>,
    file: PathBuf,
    text: String,
}

impl<'a> Merging<'a> {
    fn into(workspace: &Path, folders: &'a Folders) -> Result<Self, Failure> {
        let file = workspace.join("mcp.json");
        let refuse = |cause: String| {
            let hint = "put it right first; `toolcrib check` says more".to_owned();
            Failure::unusable(format!("`{}`: {cause}", file.display())).hint(Some(hint))
        };
        let text = read_text(&file).map_err(|error| refuse(error.to_string()))?;
        let text = text.unwrap_or_default();
        let root = clients::read(&text, Form::Json).map_err(|error| refuse(error.to_string()))?;
        let key = match root.get("mcpServers").is_none() && root.get("servers").is_some() {
            true => "servers",
            false => "mcpServers",
        };
        let there = match root.get(key) {
            None if root.is_object() => Map::new(),
            Some(Value::Object(there)) => there.clone(),
            _ => return Err(refuse(format!("`{key}` in it is no object"))),
        };
        let own_port = Network::read(workspace, &environment).ok().map(|it| it.listen.port());
        let (taken, left) = (Vec::new(), Vec::new());
        let variables = Variables::new(&environment);
        Ok(Self { folders, own_port, key, there, taken, left, variables, file, text })
    }

    fn add(&mut self, raw: &Raw) {
        let file = self.folders.shown(&raw.file);
        let whose = raw.client.map_or_else(|| file.clone(), |it| it.label().to_owned());
        let from = match &raw.project {
            Some(project) => format!("{whose}, {}", self.folders.shown(project)),
            None => whose,
        };
        if let Err(why) = self.take(raw, &from, &file) {
            self.left.push(Left { name: raw.name.clone(), from, file, why });
        }
    }

    fn take(&mut self, raw: &Raw, from: &str, file: &str) -> Result<(), String> {
        let meant = meant(raw, self.folders)?;
        if self.is_ours(&meant.entry) {
            return Err("it is this gateway".to_owned());
        }
        let mut entry = meant.entry;
        let mut variables = self.variables.clone();
        let mut changes = variables.hide(&raw.name, file, &mut entry);
        changes.extend(meant.changes);
        if let Some(before) = self.taken.iter().find(|it| it.name == raw.name) {
            // Two secrets would have got two names.
            let same = entry == before.entry && variables.all.len() == self.variables.all.len();
            return Err(match same {
                true => format!("it is the same as that of {}", before.from),
                false => {
                    format!("{} has another one of this name; rename one of them", before.from)
                }
            });
        }
        if let Some(there) = self.there.get(&raw.name) {
            let same = there.as_object() == Some(&entry);
            return Err(match same {
                true => "mcp.json has it already".to_owned(),
                false => "mcp.json has another one of this name; rename one of them".to_owned(),
            });
        }
        let put = clients::put(&self.text, Form::Json, self.key, &raw.name, &entry);
        self.text = put.map_err(|error| error.to_string())?;
        self.variables = variables;
        let (name, from, file) = (raw.name.clone(), from.to_owned(), file.to_owned());
        self.taken.push(Taken { name, from, file, entry, changes });
        Ok(())
    }

    /// Whether this is the address at which we listen.
    fn is_ours(&self, entry: &Map<String, Value>) -> bool {
        let url = entry.get("url").and_then(Value::as_str).unwrap_or_default();
        let Ok(url) = url.parse::<http::Uri>() else { return false };
        let here = url.host().is_some_and(toolcrib_sources::mcp::is_this_machine);
        here && url.port_u16().is_some() && url.port_u16() == self.own_port
    }
}

impl Plan {
    fn write(&self) -> Result<(), Failure> {
        replace(&self.file, &self.text)
            .map_err(|error| Failure::unusable(format!("`{}`: {error}", self.file.display())))
    }
}

/// Writes what variables are to be set to: one a line, as shells and systemd read it.
fn write_values(file: &Path, variables: &[Variable]) -> Result<(), Failure> {
    let line = |it: &Variable| format!("{}={}\n", it.name, terminal::word(&it.value));
    let text: String = variables.iter().map(line).collect();
    let fail = |error: std::io::Error| {
        let hint = "nothing was written; name a file that is not there yet".to_owned();
        Failure::unusable(format!("`{}`: {error}", file.display())).hint(Some(hint))
    };
    let new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file);
    new.and_then(|mut it| it.write_all(text.as_bytes())).map_err(fail)
}
