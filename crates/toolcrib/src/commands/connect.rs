//! `toolcrib connect CLIENT`: writes this gateway into the client's list of servers, and takes it out again.
//!
//! The text that the file had before is kept beside it. Taking out restores that text where nothing else has changed
//! since; else it removes the entry and leaves the rest alone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::{Map, Value, json};
use toolcrib::{Network, Workspace, environment};
use toolcrib_server::Access;
use toolcrib_sources::mcp::Lists;

use super::{Failure, import, serve};
use crate::{
    cli::Connect,
    clients::{self, Client, EditError, Folders, backup_of, read_text, remove, replace},
    terminal::{self, BOLD, DIM, styled, word},
};

pub(crate) fn run(asked: &Connect) -> Result<ExitCode, Failure> {
    let folders = import::folders()?;
    let file = asked.file.clone().unwrap_or_else(|| folders.used_by(asked.client));
    let place = Place { client: asked.client, name: &asked.name, file, folders: &folders };
    let said = if asked.undo {
        place.take_out(asked.dry_run)?
    } else {
        let entry = entry(asked)?;
        place.put_in(&entry, asked.dry_run)?
    };
    terminal::print(&said)?;
    Ok(ExitCode::SUCCESS)
}

/// Where an entry goes.
struct Place<'a> {
    client: Client,
    name: &'a str,
    file: PathBuf,
    folders: &'a Folders,
}

impl Place<'_> {
    fn put_in(&self, entry: &Map<String, Value>, dry_run: bool) -> Result<String, Failure> {
        let (form, key) = (self.client.form(), self.client.key());
        let before = self.read()?;
        let text = before.clone().unwrap_or_default();
        let there = clients::get(&text, form, key, self.name).map_err(|it| self.refuse(&it))?;
        let shown = self.shown(&self.file);
        if there.as_ref().and_then(Value::as_object) == Some(entry) {
            return Ok(format!("{shown} has it already\n"));
        }
        if there.as_ref().is_some_and(|it| !is_ours(self.name, it)) {
            let message = format!("{shown} has another server named `{}`", self.name);
            let hint = "nothing was written; choose another name: --name NAME";
            return Err(Failure::unusable(message).hint(Some(hint.to_owned())));
        }
        let new =
            clients::put(&text, form, key, self.name, entry).map_err(|it| self.refuse(&it))?;
        if dry_run {
            let alone = clients::put("", form, key, self.name, entry);
            let alone = alone.map_err(|it| self.refuse(&it))?;
            return Ok(format!("nothing was written; this would go into {shown}:\n{alone}"));
        }
        let mut said = String::new();
        // What was there before us, not before an entry of ours that is only brought up to date.
        let kept = before.filter(|_| there.is_none());
        if let Some(before) = kept {
            self.keep(&before)?;
            let backup = self.shown(&backup_of(&self.file));
            said = styled(DIM, &format!("as it was before: {backup}\n"));
        }
        self.write(&new)?;
        let (name, label) = (self.name, self.client.label());
        let done = format!("wrote `{name}` into {}\n", styled(BOLD, &shown));
        let undo = self.undo();
        let next = format!("start {label} anew to see it; `{undo}` takes it out again\n");
        Ok([done, said, next].concat())
    }

    fn take_out(&self, dry_run: bool) -> Result<String, Failure> {
        let (form, key) = (self.client.form(), self.client.key());
        let shown = self.shown(&self.file);
        let text = self.read()?.unwrap_or_default();
        let there = clients::get(&text, form, key, self.name).map_err(|it| self.refuse(&it))?;
        let Some(there) = there else {
            return Ok(format!("there is no `{}` in {shown}\n", self.name));
        };
        let ours = there.as_object().filter(|_| is_ours(self.name, &there));
        let Some(entry) = ours else {
            let message = format!("`{}` in {shown} is not toolcrib", self.name);
            let hint = "nothing was written; take it out by hand if you do not want it";
            return Err(Failure::unusable(message).hint(Some(hint.to_owned())));
        };
        let backup = backup_of(&self.file);
        let before = read_text(&backup).unwrap_or_default();
        let start = before.clone().unwrap_or_default();
        let put = |start: &str| clients::put(start, form, key, self.name, entry).ok();
        let clean = matches!(clients::get(&start, form, key, self.name), Ok(None));
        // The file is what we made of the one before.
        let untouched = clean && put(&start).as_deref() == Some(&*text);
        let prefix = if dry_run { "nothing was written; otherwise: " } else { "" };
        match (before, untouched) {
            (Some(before), true) => {
                if !dry_run {
                    self.write(&before)?;
                    remove(&backup)?;
                }
                Ok(format!("{prefix}{shown} is as it was before\n"))
            }
            (None, true) => {
                if !dry_run {
                    remove(&self.file)?;
                }
                Ok(format!("{prefix}removed {shown}, in which nothing else stood\n"))
            }
            (before, false) => {
                let without = clients::take(&text, form, key, self.name);
                let without = without.map_err(|it| self.refuse(&it))?.unwrap_or(text);
                if !dry_run {
                    self.write(&without)?;
                    before.map(|_| remove(&backup)).transpose()?;
                }
                Ok(format!(
                    "{prefix}took `{}` out of {shown}; the rest stays as it is\n",
                    self.name
                ))
            }
        }
    }

    fn read(&self) -> Result<Option<String>, Failure> {
        read_text(&self.file).map_err(|error| self.refuse(&error))
    }

    /// Keeps a text beside the file, for the same eyes only.
    fn keep(&self, text: &str) -> Result<(), Failure> {
        let backup = backup_of(&self.file);
        replace(&backup, text).map_err(|error| self.refuse(&error))?;
        let rights = fs::metadata(&self.file).map(|it| it.permissions());
        rights.and_then(|it| fs::set_permissions(&backup, it)).map_err(|error| self.refuse(&error))
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        replace(&self.file, text).map_err(|error| self.refuse(&error))
    }

    fn refuse(&self, cause: &(impl Cause + ?Sized)) -> Failure {
        let hint = cause.cure().to_owned();
        let message = format!("{}: {cause}", self.shown(&self.file));
        Failure::unusable(message).hint(Some(hint))
    }

    fn shown(&self, path: &Path) -> String {
        self.folders.shown(path)
    }

    /// What one types to undo it.
    fn undo(&self) -> String {
        let name = match self.name {
            "toolcrib" => String::new(),
            name => format!(" --name {}", word(name)),
        };
        format!("toolcrib connect {}{name} --undo", self.client.word())
    }
}

/// Why a file is left alone.
trait Cause: std::fmt::Display {
    fn cure(&self) -> &'static str;
}

impl Cause for EditError {
    fn cure(&self) -> &'static str {
        "nothing was written; put the file right and try again"
    }
}

impl Cause for std::io::Error {
    fn cure(&self) -> &'static str {
        "nothing was written; may you read and write this file? --file FILE names another"
    }
}

/// Whether an entry is one that we wrote. An address says nothing of who is there; its name must do.
fn is_ours(name: &str, entry: &Value) -> bool {
    let Some(entry) = entry.as_object() else { return false };
    let addressed = ["url", "serverUrl"].iter().any(|it| entry.contains_key(*it));
    import::is_toolcrib(entry) || (addressed && name == "toolcrib")
}

/// The entry that a client wants.
fn entry(asked: &Connect) -> Result<Map<String, Value>, Failure> {
    let entry = match &asked.url {
        Some(url) => address(asked, url)?,
        None => process(asked)?,
    };
    Ok(entry.as_object().cloned().unwrap_or_default())
}

/// The client starts us, and speaks to us on standard input and output.
fn process(asked: &Connect) -> Result<Value, Failure> {
    let folder = asked.workspace.as_deref().unwrap_or(Path::new("."));
    let workspace = Workspace::open(folder, &environment, Lists::Tools)?;
    let mut args =
        vec!["serve".to_owned(), "--stdio".to_owned(), workspace.folder.display().to_string()];
    if let Some(group) = &asked.group {
        let access = Access::new(&Network::read(&workspace.folder, &environment)?.access);
        access.local(Some(group)).ok_or_else(|| serve::unknown_group(Some(group), &access))?;
        args.extend(["--group".to_owned(), group.clone()]);
    }
    // A client that is started from a menu does not look where a shell would.
    let program = std::env::current_exe()?.display().to_string();
    Ok(match asked.client {
        Client::ClaudeCode | Client::VsCode => {
            json!({ "type": "stdio", "command": program, "args": args })
        }
        Client::Zed => json!({ "source": "custom", "command": program, "args": args }),
        Client::ClaudeDesktop | Client::Cursor | Client::Windsurf | Client::Codex => {
            json!({ "command": program, "args": args })
        }
    })
}

/// We run already, and the client comes to us.
fn address(asked: &Connect, url: &str) -> Result<Value, Failure> {
    let refuse =
        |message: String, hint: &str| Err(Failure::unusable(message).hint(Some(hint.to_owned())));
    let read = url.parse::<http::Uri>().ok();
    let whole = |it: &http::Uri| {
        matches!(it.scheme_str(), Some("http" | "https"))
            && it.host().is_some_and(|it| !it.is_empty())
    };
    if !read.as_ref().is_some_and(whole) {
        let shown = terminal::clean(url);
        return refuse(format!("`{shown}` is no address"), "such as http://127.0.0.1:8700/mcp");
    }
    let (client, label) = (asked.client, asked.client.label());
    let token = asked.token_env.as_deref();
    if token.is_some_and(|it| {
        it.is_empty() || !it.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    }) {
        return refuse(
            "--token-env is not the name of a variable".to_owned(),
            "such as TOOLCRIB_TOKEN",
        );
    }
    let bearer =
        |open: &str| token.map(|it| json!({ "Authorization": format!("Bearer {open}{it}}}") }));
    let with = |mut entry: Value, headers: Option<Value>| {
        if let Some(headers) = headers {
            entry["headers"] = headers;
        }
        entry
    };
    Ok(match (client, token) {
        (Client::ClaudeDesktop, _) => {
            let hint = "leave out --url: it starts `toolcrib serve --stdio`, which goes through a gateway that runs already";
            return refuse(format!("{label} takes no addresses in its file"), hint);
        }
        (Client::Zed, Some(_)) => {
            let hint = "leave out --url, or write the header into its file by hand";
            return refuse(format!("{label} reads no variables in its file"), hint);
        }
        (Client::ClaudeCode, _) => with(json!({ "type": "http", "url": url }), bearer("${")),
        (Client::VsCode, _) => with(json!({ "type": "http", "url": url }), bearer("${env:")),
        (Client::Cursor, _) => with(json!({ "url": url }), bearer("${env:")),
        (Client::Windsurf, _) => with(json!({ "serverUrl": url }), bearer("${env:")),
        (Client::Zed, None) | (Client::Codex, None) => json!({ "url": url }),
        (Client::Codex, Some(token)) => json!({ "url": url, "bearer_token_env_var": token }),
    })
}
