//! The commands, one file each, and how they end.

mod init;
mod import;
mod connect;
mod doctor;
mod token;
mod manual;
mod schema;
mod reference;
mod serve;
mod relay;
mod tools;
mod call;
mod check;
mod lock;
mod why;
mod search;
mod new;
mod reach;
mod events;
mod keeping;
mod operating;
mod status;
mod pack;
mod artifact;
mod audit;

use std::{path::Path, process::ExitCode, sync::Arc};

use toolcrib::{Network, OpenError, Workspace, environment};
use toolcrib_bus::Bus;
use toolcrib_catalogue::{Conflict, Problem};
use toolcrib_server::{Access, Caller};
use toolcrib_sources::mcp::Lists;

use crate::{
    cli::{Command, New},
    terminal,
};

/// Every exit code, and what it means.
pub(crate) const EXIT_CODES: [(u8, &str); 3] = [
    (0, "done"),
    (SAID_NO, "the tool or the check said no, or nothing was found"),
    (UNUSABLE, "wrong usage, or a workspace that cannot be read"),
];

const SAID_NO: u8 = 1;
const UNUSABLE: u8 = 2;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    message: String,
    hint: Option<String>,
}

impl Failure {
    /// The tool or the check said no.
    pub(crate) fn said_no(message: impl Into<String>) -> Self {
        Self { code: SAID_NO, message: message.into(), hint: None }
    }

    /// What was typed, or what is in the workspace, cannot be understood.
    pub(crate) fn unusable(message: impl Into<String>) -> Self {
        Self { code: UNUSABLE, message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }

    /// Tells it, and gives the exit code.
    pub(crate) fn tell(&self) -> ExitCode {
        terminal::complain(&terminal::clean(&self.message), self.hint.as_deref());
        ExitCode::from(self.code)
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let hint = error.hint();
        let message = match &error {
            OpenError::Unreadable(Problem { subject, message, .. }) => {
                format!("{subject}: {message}")
            }
            _ => error.to_string(),
        };
        Self::unusable(message).hint(hint)
    }
}

impl From<Conflict> for Failure {
    fn from(conflict: Conflict) -> Self {
        Self::unusable(conflict.to_string())
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::unusable(format!("cannot write: {error}"))
    }
}

/// Does what was typed.
pub(crate) async fn run(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Serve { workspace, listen, stdio, group } => {
            let (listen, group) = (listen.as_deref(), group.as_deref());
            serve::run(serve::Asked { folder: &workspace, listen, stdio, group }).await
        }
        Command::Init(asked) => init::run(&asked),
        Command::Import(asked) => import::run(&asked),
        Command::Connect(asked) => connect::run(&asked),
        Command::Doctor(asked) => doctor::run(&asked).await,
        Command::Token { what } => token::run(what),
        Command::Completions { shell } => manual::completions(shell),
        Command::Man { folder } => manual::pages(&folder),
        Command::Schema { file } => schema::run(file),
        Command::Reference { folder } => reference::run(&folder),
        Command::Tools { workspace, group, json } => {
            let workspace = open(&workspace)?;
            let seen = group.map(|it| Seen::by(&workspace, &it)).transpose()?;
            tools::run(&workspace, seen.as_ref(), json).await
        }
        Command::Call { name, arguments, args, timeout, workspace, json } => {
            let asked = call::Asked::read(&name, &arguments, args.as_deref(), timeout)?;
            call::run(&open(&workspace)?, &asked, json).await
        }
        Command::Check { workspace, json, hints } => {
            check::run(&open(&workspace)?, json, hints).await
        }
        Command::Lock { workspace, check, json } => {
            lock::run(&open(&workspace)?, lock::Asked { check, as_json: json }).await
        }
        Command::Audit { what } => audit::run(what).await,
        Command::Why { call: Some(call), workspace, .. } => audit::tell(&open(&workspace)?, &call),
        Command::Why { name, group, workspace, call: None } => {
            let workspace = open(&workspace)?;
            let seen = group.map(|it| Seen::by(&workspace, &it)).transpose()?;
            why::run(&workspace, seen.as_ref(), &name.unwrap_or_default()).await
        }
        Command::Search { query, top, group, workspace, json } => {
            let workspace = open(&workspace)?;
            let seen = group.map(|it| Seen::by(&workspace, &it)).transpose()?;
            let asked = search::Asked { query: query.join(" "), top: top.into(), as_json: json };
            search::run(&workspace, seen.as_ref(), &asked).await
        }
        Command::Events { what } => events::run(what).await,
        Command::Status { workspace, at, json } => status::run(&workspace, &at, json).await,
        Command::Servers { what } => status::servers(what).await,
        Command::Pack(asked) => pack::run(&asked),
        Command::Artifact { what } => artifact::run(what),
        Command::New { what: New::Tool { name, workspace } } => new::tool(&workspace, &name),
    }
}

/// What a group of `network.yaml` sees.
pub(crate) struct Seen {
    access: Access,
    caller: Caller,
    pub(crate) group: String,
}

impl Seen {
    fn by(workspace: &Workspace, group: &str) -> Result<Self, Failure> {
        let network = Network::read(&workspace.folder, &environment)?;
        let access = Access::new(&network.access);
        let caller = access.local(Some(group));
        let caller = caller.ok_or_else(|| serve::unknown_group(Some(group), &access))?;
        Ok(Self { access, caller, group: group.to_owned() })
    }

    /// Why the group does not see a tool; nothing where it does.
    pub(crate) fn objection(&self, tool: &str) -> Option<String> {
        self.access.objection(&self.caller.group, tool)
    }
}

/// Who only looks emits nothing.
fn unused() -> Result<Arc<dyn Bus>, String> {
    Err("no event is emitted here".to_owned())
}

fn open(path: &Path) -> Result<Workspace, Failure> {
    let workspace = Workspace::open(path, &environment, Lists::Tools)?;
    // A file that cannot be read is among the problems, and its tokens are unknown.
    if let Ok(network) = Network::read(&workspace.folder, &environment) {
        terminal::hide(workspace.masker(&network));
    }
    Ok(workspace)
}
