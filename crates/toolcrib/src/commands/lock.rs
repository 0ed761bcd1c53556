//! `toolcrib lock`: accept the tools of all servers as they are now, or say what is not as it was accepted.

use std::{path::Path, process::ExitCode, sync::Arc};

use serde_json::json;
use toolcrib::{LOCK_FILE, Network, Workspace, read_lock, write_lock};
use toolcrib_catalogue::{
    Look, OnFault, Origin, Problem, Source, SourceState, Tool,
    lock::{Change, ChangeKind, Lock, Now, Pins, Place, compare},
};
use toolcrib_server::{Gateway, Rules};
use toolcrib_sources::mcp::Connection;

use super::{
    Failure,
    check::count,
    serve::{self, Current, Edits},
};
use crate::terminal::{self, GREEN, YELLOW, styled};

/// What was asked for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Only say what differs.
    pub(crate) check: bool,
    pub(crate) as_json: bool,
}

/// A server as it is now.
struct Server {
    place: Place,
    name: String,
    /// Its tools; nothing where it cannot be asked.
    tools: Option<Arc<[Arc<Tool>]>>,
    cause: Option<String>,
}

pub(crate) async fn run(workspace: &Workspace, asked: Asked) -> Result<ExitCode, Failure> {
    let (before, damage) = read_lock(&workspace.folder);
    if !asked.check {
        show_ways(workspace, before.as_ref(), asked.as_json);
        workspace.bar(Pins::Off, None);
    }
    let servers = workspace.start(&workspace.server_names());
    terminal::wait_for(&servers).await;
    let servers: Vec<Server> = servers.iter().map(Server::of).collect();
    workspace.close().await;
    let now = now(workspace, &servers);
    let old = before.clone().unwrap_or_default();
    let changes = compare(&old, &now);
    let told = told(&changes, before.is_some());
    let failed = servers.iter().filter(|it| it.cause.is_some()).count();
    if asked.check {
        if before.is_none() {
            let none = Failure::said_no(format!("there is no {LOCK_FILE}"));
            return Err(none.hint(Some("accept the tools as they are with `toolcrib lock`".into())));
        }
        let clean = told.is_empty() && damage.is_empty();
        report(asked, &told, &damage, &servers, None)?;
        return Ok(if clean && failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let new = accepted(&old, &now);
    let differs = before.as_ref() != Some(&new) || !damage.is_empty();
    if differs {
        write_lock(&workspace.folder, &new)
            .map_err(|error| Failure::unusable(format!("{LOCK_FILE}: {error}")))?;
    }
    report(asked, &told, &[], &servers, Some((&new, differs)))?;
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Says what will be run that was not accepted yet, before it is.
fn show_ways(workspace: &Workspace, before: Option<&Lock>, as_json: bool) {
    let Some(before) = before.filter(|_| !as_json) else { return };
    let others = compare(before, &now(workspace, &[]));
    let others = others.iter().filter(|it| it.kind == ChangeKind::ChangedWay);
    let others: Vec<Problem> = others.map(|it| Problem::new("starting", it.to_string())).collect();
    terminal::warn(&others);
}

impl Server {
    fn of(connection: &Arc<Connection>) -> Self {
        let name = connection.label().to_owned();
        let (tools, cause) = match connection.state() {
            SourceState::Ready => (Some(connection.tools()), None),
            SourceState::Failed { cause, .. } => (None, Some(cause)),
            _ => (None, Some("it did not come up in time".to_owned())),
        };
        Self { place: Place::of(&Origin::Upstream(name.clone())), name, tools, cause }
    }
}

/// Every server of the file: those that were asked, and those that are off or broken.
fn now<'a>(workspace: &Workspace, servers: &'a [Server]) -> Vec<Now<'a>> {
    let now = |(name, way)| {
        let place = Place::of(&Origin::Upstream(name));
        let tools = servers.iter().find(|it| it.place == place).and_then(|it| it.tools.as_deref());
        Now { place, way, tools }
    };
    workspace.ways().into_iter().map(now).collect()
}

/// The lock in which everything that could be asked is accepted. Of what could not, what was accepted stays.
fn accepted(old: &Lock, now: &[Now<'_>]) -> Lock {
    let mut new = Lock::default();
    for it in now {
        match (it.tools, old.source(&it.place)) {
            (Some(tools), _) => {
                new.pin(it.place.clone(), it.way.clone(), tools.iter().map(|it| &**it));
            }
            (None, Some(pins)) => new.keep(it.place.clone(), pins.clone()),
            (None, None) => {}
        }
    }
    new
}

/// What of all that differs is told. Without a lock everything is new, which says nothing.
fn told(changes: &[Change], has_lock: bool) -> Vec<&Change> {
    changes.iter().filter(|it| has_lock || it.kind != ChangeKind::Unpinned).collect()
}

fn report(
    asked: Asked,
    changes: &[&Change],
    damage: &[Problem],
    servers: &[Server],
    written: Option<(&Lock, bool)>,
) -> Result<(), Failure> {
    let failed = servers.iter().filter_map(|it| Some((&it.name, it.cause.as_ref()?)));
    let failed: Vec<Problem> = failed
        .map(|(name, cause)| {
            let subject = format!("server `{name}`");
            Problem::new(subject, format!("{cause}; what was accepted of it stays"))
        })
        .collect();
    let problems = [damage, &failed].concat();
    if asked.as_json {
        let report = json!({
            "changes": changes,
            "problems": problems,
            "written": written.is_some_and(|(_, differs)| differs),
        });
        return Ok(terminal::print(&format!("{report:#}\n"))?);
    }
    let mut text = terminal::problems(&problems);
    for change in changes {
        let mark = styled(YELLOW, "changed");
        text.push_str(&format!("{mark}  {}\n", terminal::clean(&change.to_string())));
    }
    text.push_str(&terminal::problems(&suspicions(changes, servers, written)));
    text.push_str(&match written {
        Some((lock, true)) => {
            let tools: usize = lock.sources().map(|(_, it)| it.tools.len()).sum();
            let servers = lock.sources().count();
            let done = styled(GREEN, "accepted");
            let (tools, servers) = (count(tools, "tool"), count(servers, "server"));
            format!("{done}  {tools} of {servers}, in {LOCK_FILE}\n")
        }
        Some((_, false)) => format!("nothing has changed since {LOCK_FILE} was written\n"),
        None if changes.is_empty() && damage.is_empty() => {
            format!("everything is as {LOCK_FILE} says\n")
        }
        None => "if that is what you want, accept it with `toolcrib lock`\n".to_owned(),
    });
    Ok(terminal::print(&text)?)
}

/// What somebody who accepts should have seen: what is suspicious about tools that are new or changed.
fn suspicions(
    changes: &[&Change],
    servers: &[Server],
    written: Option<(&Lock, bool)>,
) -> Vec<Problem> {
    let concerns = |place: &Place, tool: &str| {
        let is = |it: &&Change| it.place == *place && it.tool.as_deref() == Some(tool);
        changes.iter().copied().any(|it| is(&it))
            || (changes.is_empty() && written.is_some_and(|(_, differs)| differs))
    };
    let mut found = Vec::new();
    for server in servers {
        for tool in server.tools.iter().flat_map(|it| it.iter()) {
            if concerns(&server.place, &tool.name) {
                let subject = format!("server `{}`: tool `{}`", server.name, tool.name);
                found.extend(Look::at(tool, OnFault::Permit).suspicions(&subject));
            }
        }
    }
    found
}

/// What tools and calls are held to, with what was accepted. Says what is wrong with the lock.
pub(crate) fn rules(network: &Network, folder: &Path) -> Rules {
    let (lock, problems) = read_lock(folder);
    terminal::warn(&problems);
    Rules { lock, ..network.rules.clone() }
}

/// Takes note of what is accepted while a gateway runs. Never returns.
pub(crate) async fn follow(gateway: &Arc<Gateway>, current: &Current) {
    let folder = &current.workspace().folder.clone();
    let mut edits = Edits::of(folder, &[LOCK_FILE]);
    loop {
        edits.next().await;
        let (lock, mut problems) = read_lock(folder);
        current.workspace().bar(gateway.pins(), lock.as_ref());
        problems.extend(serve::apart(gateway, |gateway| gateway.accept(lock)).await);
        tracing::info!("{LOCK_FILE} was read again");
        terminal::warn(&problems);
    }
}
