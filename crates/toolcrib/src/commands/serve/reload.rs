//! Files that are edited while a gateway runs take effect, and what would be wrong is told and left.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime},
};

use parking_lot::{Mutex, RwLock};
use toolcrib::{Network, OpenError, Own, TOKENS_FILE, Workspace, environment};
use toolcrib_catalogue::{Problem, Source, SourceState};
use toolcrib_server::{Access, Gateway, Input, Left, Tls};
use toolcrib_sources::{mcp::Connection, python::Python};

use super::{super::lock, apart};
use crate::terminal;

/// How often files are looked at.
const POLL: Duration = Duration::from_millis(500);

/// How often somebody looks whether a server that was taken out is still needed, and how long at the most it is kept
/// for calls that do not end.
const LOOK: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(600);

/// Files, and how they were when they were last looked at.
#[derive(Debug)]
pub(crate) struct Edits {
    paths: Vec<PathBuf>,
    known: Vec<Option<(SystemTime, u64)>>,
}

impl Edits {
    /// From now on.
    pub(crate) fn of<T: AsRef<Path>>(folder: &Path, names: &[T]) -> Self {
        let paths: Vec<PathBuf> = names.iter().map(|it| folder.join(it)).collect();
        let known = paths.iter().map(|it| stamp(it)).collect();
        Self { paths, known }
    }

    /// Resolves when one of them is not as it was, and has come to rest: an editor may be half-way.
    pub(crate) async fn next(&mut self) {
        let mut moving = false;
        loop {
            tokio::time::sleep(POLL).await;
            let now: Vec<_> = self.paths.iter().map(|it| stamp(it)).collect();
            let moved = now != self.known;
            self.known = now;
            if moving && !moved {
                return;
            }
            moving |= moved;
        }
    }
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let found = std::fs::metadata(path).ok()?;
    Some((found.modified().ok()?, found.len()))
}

/// The files of the workspace as they were last read and understood.
#[derive(Debug)]
pub(crate) struct Current {
    workspace: RwLock<Arc<Workspace>>,
    network: Mutex<Network>,
    own: RwLock<Own>,
}

impl Current {
    pub(crate) fn new(workspace: Workspace, network: Network, own: &Own) -> Arc<Self> {
        let workspace = RwLock::new(Arc::new(workspace));
        let (network, own) = (Mutex::new(network), RwLock::new(own.clone()));
        Arc::new(Self { workspace, network, own })
    }

    /// The tools of the workspace's own.
    pub(crate) fn own(&self) -> Own {
        self.own.read().clone()
    }

    pub(crate) fn workspace(&self) -> Arc<Workspace> {
        Arc::clone(&self.workspace.read())
    }
}

/// What reads the files again.
#[derive(Debug)]
pub(super) struct Reloading {
    pub(super) current: Arc<Current>,
    pub(super) gateway: Arc<Gateway>,
    /// Where the gateway listens, where it does.
    pub(super) address: Option<SocketAddr>,
    /// What the door shows to whoever connects, where it speaks TLS.
    tls: OnceLock<Tls>,
    /// One at a time reads.
    turn: tokio::sync::Mutex<()>,
}

impl Reloading {
    pub(super) fn new(
        current: &Arc<Current>,
        gateway: &Arc<Gateway>,
        address: Option<SocketAddr>,
    ) -> Arc<Self> {
        let (current, gateway) = (Arc::clone(current), Arc::clone(gateway));
        let (tls, turn) = (OnceLock::new(), tokio::sync::Mutex::default());
        Arc::new(Self { current, gateway, address, tls, turn })
    }

    /// Renews these certificates when their files are others.
    pub(super) fn keep_current(&self, tls: &Tls) {
        drop(self.tls.set(tls.clone()));
    }

    /// Heeds edits of `mcp.json` and `network.yaml`, and tokens that are made and taken back. Never returns.
    pub(super) async fn follow(&self) {
        let workspace = self.current.workspace();
        let mut files = ["network.yaml", TOKENS_FILE, workspace.file()].map(PathBuf::from).to_vec();
        files.extend(self.current.network.lock().tls.clone().into_iter().flat_map(<[_; 2]>::from));
        let mut edits = Edits::of(&workspace.folder, &files);
        drop(workspace);
        loop {
            edits.next().await;
            self.read_again().await;
        }
    }

    /// Tells what is wrong with edits of what is written in Python, all of which changes together.
    pub(super) fn tell_edits(&self, own: &Own) {
        let source = own.python.as_ref().and_then(|it| it.sources().first().cloned());
        if let Some(source) = source {
            let own = own.clone();
            self.gateway.spawn(async move { super::tell_edits(&own, &*source).await });
        }
    }

    /// Reads everything again. What is wrong with one file keeps none of the others from taking effect.
    pub(super) async fn read_again(&self) {
        let _turn = self.turn.lock().await;
        let before = self.current.network.lock().clone();
        if let Err(why) = self.read_network().await {
            self.gateway.reload_refused(&why);
            terminal::complain(&format!("{why}; access stays as it was"), None);
        }
        if let Err(conflict) = self.read_python(&before).await {
            self.gateway.reload_refused(&conflict);
            let hint = "mend it, and save network.yaml once more";
            let told = format!("network.yaml: {conflict}; Python is run as it was");
            terminal::complain(&told, Some(hint));
        }
        if let Err(problem) = self.read_servers().await {
            self.gateway.reload_refused(&problem.to_string());
            let told =
                format!("{}: {}; servers stay as they were", problem.subject, problem.message);
            terminal::complain(&told, problem.hint.as_deref());
        }
        if let Err(why) = self.read_certificates() {
            terminal::complain(&format!("{why}; certificates stay as they were"), None);
        }
    }

    /// Reads the certificates again: they are renewed more often than gateways are started.
    fn read_certificates(&self) -> Result<(), String> {
        let Some(tls) = self.tls.get() else { return Ok(()) };
        let Some(files) = self.current.network.lock().tls.clone() else { return Ok(()) };
        let (certificates, key) = read_pair(&files)?;
        tls.renew(&certificates, &key).map_err(|cause| format!("network.yaml: tls: {cause}"))
    }

    /// Reads `network.yaml` again. What would open the door is refused: an editor may just be writing.
    async fn read_network(&self) -> Result<(), String> {
        let (workspace, gateway) = (self.current.workspace(), &self.gateway);
        let network =
            Network::read(&workspace.folder, &environment).map_err(|it| it.to_string())?;
        if !network.present && workspace.had_network {
            return Err("network.yaml is gone or empty".to_owned());
        }
        let access = Access::new(&network.access);
        if gateway.access().has_tokens() && !access.has_tokens() {
            let why = "network.yaml no longer sets a token; restart to let everybody in";
            return Err(why.to_owned());
        }
        let public = self.address.is_some_and(|it| !it.ip().is_loopback());
        if public && !network.behind_proxy && network.tls.is_none() {
            return Err("network.yaml no longer says who encrypts".to_owned());
        }
        let masker = workspace.masker(&network);
        terminal::hide(masker.clone());
        gateway.set_masker(&masker);
        let rules = lock::rules(&network, &workspace.folder);
        workspace.bar(rules.pins, rules.lock.as_ref());
        let (instructions, told) = (network.instructions.clone(), network.problems.clone());
        let waiting = network.waits_for_start(&self.current.network.lock());
        *self.current.network.lock() = network;
        let problems = apart(gateway, move |gateway| {
            // Who may ask goes first: a right that is taken away is gone at once.
            let problems = gateway.set_access(access, instructions);
            gateway.set_rules(rules);
            problems
        });
        let problems = problems.await;
        terminal::warn(&[told, waiting, problems].concat());
        Ok(())
    }

    /// Runs Python tools and mods anew, where `network.yaml` has them run otherwise than it `had`.
    async fn read_python(&self, had: &Network) -> Result<(), String> {
        let network = self.current.network.lock().clone();
        if network.runs_python_like(had) {
            return Ok(());
        }
        let (workspace, old) = (self.current.workspace(), self.current.own());
        let python = workspace.run_python(network.python, true, &terminal::installing).await;
        terminal::installed();
        terminal::wait_for_python(python.as_ref()).await;
        let own = Own { python, ..old.clone() };
        // Two tools of our own with one name: only their author can say which is meant.
        if let Err(conflict) = workspace.catalogue(&[], &own) {
            if let Some(python) = own.python {
                python.close().await;
            }
            return Err(conflict.to_string());
        }
        *self.current.own.write() = own.clone();
        let gone = self.set_inputs(workspace.inputs(&workspace.connections(), &own), &[]).await;
        terminal::remark("network.yaml: tools in Python are run anew");
        self.tell_edits(&own);
        if let Some(python) = old.python {
            self.gateway.spawn(retire_python(python, gone));
        }
        Ok(())
    }

    /// Gives the gateway these sources, and tells what is wrong; returns those that are taken out.
    async fn set_inputs(&self, inputs: Vec<Input>, told: &[Problem]) -> Vec<Left> {
        let gateway = Arc::clone(&self.gateway);
        let set = tokio::task::spawn_blocking(move || gateway.set_inputs(inputs)).await;
        let (gone, problems) = set.unwrap_or_default();
        terminal::warn(&[told, &problems].concat());
        gone
    }

    /// Reads `mcp.json` again: servers come, go and change, and nobody's call is broken off.
    async fn read_servers(&self) -> Result<(), Problem> {
        let (before, network) = (self.current.workspace(), self.current.network.lock().clone());
        let running = before.connections();
        let (now, left) = before.again(&network, &environment).map_err(OpenError::problem)?;
        let masker = now.masker(&network);
        terminal::hide(masker.clone());
        self.gateway.set_masker(&masker);
        let rules = lock::rules(&network, &now.folder);
        now.bar(rules.pins, rules.lock.as_ref());
        let connections = now.start(&now.server_names());
        let is_new = |it: &&Arc<Connection>| !running.iter().any(|old| Arc::ptr_eq(old, it));
        let new: Vec<_> = connections.iter().filter(is_new).cloned().collect();
        let inputs = now.inputs(&connections, &self.current.own());
        let told: Vec<Problem> = [now.problems.as_slice(), &now.warnings].concat();
        let told = told.into_iter().filter(|it| !before.problems.contains(it));
        let told: Vec<_> = told.filter(|it| !before.warnings.contains(it)).collect();
        *self.current.workspace.write() = Arc::new(now);
        let gone = self.set_inputs(inputs, &told).await;
        if !left.is_empty() || !new.is_empty() {
            let said = said(&running, &new, &left);
            tracing::info!("mcp.json was read again: {said}");
            terminal::remark(&format!("mcp.json: {said}"));
            self.gateway.reloaded(&format!("mcp.json: {said}"));
        }
        self.gateway.spawn(retire(left, gone));
        self.gateway.spawn(tell_failures(new));
        Ok(())
    }
}

/// The bytes of a certificate and of its key.
pub(super) fn read_pair((cert, key): &(PathBuf, PathBuf)) -> Result<(Vec<u8>, Vec<u8>), String> {
    let read = |path: &PathBuf| {
        std::fs::read(path)
            .map_err(|error| format!("network.yaml: tls: `{}`: {error}", path.display()))
    };
    Ok((read(cert)?, read(key)?))
}

/// What has become of servers, in a few words.
fn said(old: &[Arc<Connection>], new: &[Arc<Connection>], left: &[Arc<Connection>]) -> String {
    let names = |all: Vec<&str>| all.join(", ");
    let is_new = |name: &str| new.iter().any(|it| it.label() == name);
    let was = |name: &str| old.iter().any(|it| it.label() == name);
    let added = new.iter().map(|it| it.label()).filter(|it| !was(it)).collect();
    let changed = new.iter().map(|it| it.label()).filter(|it| was(it)).collect();
    let removed = left.iter().map(|it| it.label()).filter(|it| !is_new(it)).collect();
    let parts = [("new", added), ("started anew", changed), ("taken out", removed)];
    let parts = parts.into_iter().filter(|(_, it): &(_, Vec<&str>)| !it.is_empty());
    parts.map(|(word, it)| format!("{word}: {}", names(it))).collect::<Vec<_>>().join("; ")
}

/// Connections that are closed however this ends.
struct Retiring(Vec<Arc<Connection>>);

impl Drop for Retiring {
    fn drop(&mut self) {
        self.0.iter().for_each(|it| it.close());
    }
}

/// Ends servers that were taken out, each as soon as no call needs it any more.
async fn retire(left: Vec<Arc<Connection>>, gone: Vec<Left>) {
    let mut retiring = Retiring(left);
    let begin = tokio::time::Instant::now();
    while !retiring.0.is_empty() && begin.elapsed() < LONGEST {
        let is_used = |it: &Arc<Connection>| {
            gone.iter().any(|left| *left.label == *it.label() && left.is_used())
        };
        let (used, idle) = retiring.0.drain(..).partition(is_used);
        retiring.0 = used;
        drop(Retiring(idle));
        tokio::time::sleep(LOOK).await;
    }
}

/// Ends processes of Python when no call needs them any more.
async fn retire_python(python: Python, gone: Vec<Left>) {
    let begin = tokio::time::Instant::now();
    while gone.iter().any(Left::is_used) && begin.elapsed() < LONGEST {
        tokio::time::sleep(LOOK).await;
    }
    python.close().await;
}

/// Says which of these servers did not come up.
async fn tell_failures(servers: Vec<Arc<Connection>>) {
    for server in servers {
        if let SourceState::Failed { cause, hint } = server.settled().await {
            let subject = format!("server `{}`", server.label());
            terminal::warn(&[Problem { hint, ..Problem::new(subject, cause) }]);
        }
    }
}
