//! The servers of other clients, as their files have them.

use std::path::{Path, PathBuf};

use serde_json::Value;
use toolcrib_catalogue::Problem;

use crate::clients::{Client, Folders, Form, read, read_text};

/// A server in somebody's file.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    pub(super) name: String,
    /// Whose file it is, if that is known.
    pub(super) client: Option<Client>,
    pub(super) file: PathBuf,
    /// The folder it belongs to, if it does not belong to the person.
    pub(super) project: Option<PathBuf>,
    pub(super) value: Value,
}

/// A file to look into.
#[derive(Debug, Clone)]
pub(super) struct Looked {
    pub(super) client: Option<Client>,
    pub(super) file: PathBuf,
    pub(super) project: Option<PathBuf>,
}

/// The files of a person in which a client may have servers.
pub(super) fn files_of_user(client: Client, folders: &Folders) -> Vec<Looked> {
    let looked = |file| Looked { client: Some(client), file, project: None };
    folders.of_user(client).into_iter().map(looked).collect()
}

/// The files of a folder in which clients may have servers.
pub(super) fn files_of_project(project: &Path) -> Vec<Looked> {
    let all = Client::ALL.iter().filter_map(|it| Some((*it, Folders::of_project(*it, project)?)));
    let looked =
        |(client, file)| Looked { client: Some(client), file, project: Some(project.to_owned()) };
    all.map(looked).collect()
}

/// What is found in these files, and which of them cannot be read. A file that is not there is no fault.
pub(super) fn gather(looked: &[Looked], folders: &Folders) -> (Vec<Raw>, Vec<Problem>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let mut seen: Vec<PathBuf> = Vec::new();
    for looked in looked {
        // One file may be a person's and a folder's, where somebody works at home.
        let real = looked.file.canonicalize().unwrap_or_else(|_| looked.file.clone());
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        let text = match read_text(&looked.file) {
            Ok(Some(text)) => text,
            Ok(None) => continue,
            Err(error) => {
                problems.push(skipped(looked, folders, &error.to_string()));
                continue;
            }
        };
        match read(&text, form(looked)) {
            Ok(root) => found.extend(servers(&root, looked)),
            Err(error) => problems.push(skipped(looked, folders, &error.to_string())),
        }
    }
    (found, problems)
}

fn skipped(looked: &Looked, folders: &Folders, cause: &str) -> Problem {
    let problem = Problem::new(folders.shown(&looked.file), format!("{cause}; it is skipped"));
    problem.hint("put it right and import again; the other files are read")
}

fn form(looked: &Looked) -> Form {
    match looked.client {
        Some(client) => client.form(),
        None if looked.file.extension().is_some_and(|it| it == "toml") => Form::Toml,
        None => Form::Json,
    }
}

/// All servers that stand in a file, under whatever key clients write them.
fn servers(root: &Value, looked: &Looked) -> Vec<Raw> {
    let Looked { client, file, project } = looked;
    let list = |value: Option<&Value>, project: Option<PathBuf>| -> Vec<Raw> {
        let members = value.and_then(Value::as_object).into_iter().flatten();
        let raw = |(name, value): (&String, &Value)| Raw {
            name: name.clone(),
            client: *client,
            file: file.clone(),
            project: project.clone(),
            value: value.clone(),
        };
        members.map(raw).collect()
    };
    let keys: &[&str] = match client {
        Some(client) => &[client.key()],
        // A file of which nobody said whose it is.
        None => &["mcpServers", "servers", "context_servers", "mcp_servers"],
    };
    let mut found: Vec<Raw> =
        keys.iter().flat_map(|key| list(root.get(key), project.clone())).collect();
    // VS Code once had them among its settings.
    if matches!(client, None | Some(Client::VsCode)) {
        found.extend(list(root.pointer("/mcp/servers"), project.clone()));
    }
    // Claude Code has those of each folder in the same file.
    if matches!(client, None | Some(Client::ClaudeCode)) {
        let projects = root.get("projects").and_then(Value::as_object).into_iter().flatten();
        for (folder, about) in projects {
            found.extend(list(about.get("mcpServers"), Some(PathBuf::from(folder))));
        }
    }
    found
}
