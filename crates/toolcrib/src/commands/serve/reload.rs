//! Files that are edited while a gateway runs take effect, and what would be wrong is told and left.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use toolcrib::{Network, TOKENS_FILE, Workspace, environment};
use toolcrib_server::{Access, Gateway};

use super::{super::lock, apart};
use crate::terminal;

/// How often files are looked at.
const POLL: Duration = Duration::from_millis(500);

/// Files, and how they were when they were last looked at.
#[derive(Debug)]
pub(crate) struct Edits {
    paths: Vec<PathBuf>,
    known: Vec<Option<(SystemTime, u64)>>,
}

impl Edits {
    /// From now on.
    pub(crate) fn of(folder: &Path, names: &[&str]) -> Self {
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

/// Heeds edits of the access rules. Never returns.
pub(super) async fn follow(
    workspace: &Workspace,
    gateway: &Arc<Gateway>,
    address: Option<SocketAddr>,
) {
    let mut edits = Edits::of(&workspace.folder, &["network.yaml", TOKENS_FILE]);
    loop {
        edits.next().await;
        read_again(workspace, gateway, address).await;
    }
}

pub(super) async fn read_again(
    workspace: &Workspace,
    gateway: &Arc<Gateway>,
    address: Option<SocketAddr>,
) {
    if let Err(why) = reload(workspace, gateway, address).await {
        gateway.reload_refused(&why);
        terminal::complain(&format!("{why}; access stays as it was"), None);
    }
}

/// Reads the access rules again. What would open the door is refused: an editor may just be writing.
async fn reload(
    workspace: &Workspace,
    gateway: &Arc<Gateway>,
    address: Option<SocketAddr>,
) -> Result<(), String> {
    let network = Network::read(&workspace.folder, &environment).map_err(|it| it.to_string())?;
    if !network.present && workspace.had_network {
        return Err("network.yaml is gone or empty".to_owned());
    }
    let access = Access::new(&network.access);
    if gateway.access().has_tokens() && !access.has_tokens() {
        return Err("network.yaml no longer sets a token; restart to let everybody in".to_owned());
    }
    let public = address.is_some_and(|it| !it.ip().is_loopback());
    if public && !network.behind_proxy && network.tls.is_none() {
        return Err("network.yaml no longer says who encrypts".to_owned());
    }
    let masker = workspace.masker(&network);
    terminal::hide(masker.clone());
    gateway.set_masker(&masker);
    let rules = lock::rules(&network, &workspace.folder);
    workspace.bar(rules.pins, rules.lock.as_ref());
    let Network { instructions, problems: told, .. } = network;
    let problems = apart(gateway, move |gateway| {
        // Who may ask goes first: a right that is taken away is gone at once.
        let problems = gateway.set_access(access, instructions);
        gateway.set_rules(rules);
        problems
    });
    let problems = problems.await;
    terminal::warn(&[told, problems].concat());
    Ok(())
}
