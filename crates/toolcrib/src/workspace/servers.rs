//! The servers of a workspace: how they are taken from `mcp.json`, and taken anew when it is edited.

use std::{path::Path, sync::Arc};

use toolcrib_catalogue::{self as catalogue, ClientError, Problem, lock::Way};
use toolcrib_sources::mcp::{
    self, ConfigFault, Connection, ExecutionError, Lookup, ServerConfig, Severity,
};

use super::{OpenError, Server, Workspace, place, problem};
use crate::{
    guard::Packages,
    network::{Network, NetworkError},
};

impl Workspace {
    /// Reads `mcp.json` once more. Servers that are in it as they were go on as they are; connections of those that
    /// are gone, or are reached otherwise now, are handed over, to be ended. What cannot be used is told, and a server
    /// that was there before stays as it was.
    pub fn again(
        &self,
        network: &Network,
        lookup: Lookup<'_>,
    ) -> Result<(Self, Vec<Arc<Connection>>), OpenError> {
        let config = read_servers(&self.folder.join(&self.file), &self.file, lookup)?;
        let had_some = !self.servers.is_empty();
        let config = match config {
            Some(config) => config,
            None if had_some => {
                let gone = Problem::new(&self.file, "it is gone; its servers stay as they were");
                let hint = "to have no servers, write `{ \"mcpServers\": {} }`";
                return Err(OpenError::Unreadable(gone.hint(hint)));
            }
            None => mcp::Config::default(),
        };
        let again = Self {
            folder: self.folder.clone(),
            problems: Vec::new(),
            warnings: Vec::new(),
            client: Arc::clone(&self.client),
            servers: self.servers.clone(),
            file: self.file.clone(),
            python: Some(network.python.clone()),
            ..*self
        };
        Ok(again.with(config, network))
    }

    /// The same with these servers, and connections that nobody needs any more.
    pub(super) fn with(
        mut self,
        config: mcp::Config,
        network: &Network,
    ) -> (Self, Vec<Arc<Connection>>) {
        self.problems = config.faults.iter().map(|it| problem(&self.file, it)).collect();
        self.problems.extend(network.problems.iter().cloned());
        self.warnings = cautions(&config.servers, network.packages, &self.file);
        self.warnings.extend(network.warnings.iter().cloned());
        self.style = network.style;
        let left = self.set_servers(config, network.packages);
        (self, left)
    }

    /// The same with these servers, where `network.yaml` cannot be read.
    pub(super) fn without_network(mut self, config: mcp::Config, error: &NetworkError) -> Self {
        self.problems = config.faults.iter().map(|it| problem(&self.file, it)).collect();
        self.warnings = cautions(&config.servers, Packages::default(), &self.file);
        let told = error.to_string();
        let (place, message) = told.split_once(": ").unwrap_or(("network.yaml", &told));
        self.problems.push(Problem::new(place, message));
        self.set_servers(config, Packages::default());
        self
    }

    /// Takes the servers of a file in place of those it had; what is left of these is returned.
    fn set_servers(&mut self, config: mcp::Config, packages: Packages) -> Vec<Arc<Connection>> {
        let mut before = std::mem::take(&mut self.servers);
        let mut left = Vec::new();
        for mut server in config.servers {
            let way = Some(server.way());
            server.anchor(&self.folder);
            let loose = refusal(&server, packages, &self.file);
            let is_off = server.disabled || loose.is_some();
            self.problems.extend(loose);
            let name = server.name.clone();
            if let Err(error) = if is_off { Ok(()) } else { server.validate() } {
                let place = place(&self.file, server.at, &name);
                self.problems.extend(not_added(&error, &config.faults, place));
                self.servers.push(kept(&mut before, name, way));
                continue;
            }
            let known = self.client.config(&name);
            let goes_on = !is_off && known.is_some_and(|it| it.connects_like(&server));
            if !goes_on {
                left.extend(self.client.take_server(&name));
            }
            if !is_off && !goes_on {
                // It is sound, which is all that is asked of it.
                self.client.add_server(server.clone()).ok();
            }
            before.retain(|it| it.name != name);
            self.servers.push(Server { name, config: Some(server), way });
        }
        for name in config.broken {
            self.servers.push(kept(&mut before, name, None));
        }
        left.extend(before.iter().filter_map(|it| self.client.take_server(&it.name)));
        left
    }
}

/// A server whose entry cannot be used: as it was before, since an entry that an edit broke is no order to end what it
/// was about.
fn kept(before: &mut Vec<Server>, name: String, way: Option<Way>) -> Server {
    let old = before.iter().position(|it| it.name == name).map(|at| before.remove(at));
    old.unwrap_or(Server { name, config: None, way })
}

/// What an `mcp.json` says; nothing where there is none.
pub(super) fn read_servers(
    path: &Path,
    name: &str,
    lookup: Lookup<'_>,
) -> Result<Option<mcp::Config>, OpenError> {
    let config = match mcp::read_mcp_config(path, lookup) {
        Ok(config) => config,
        Err(ExecutionError::NotFound { .. }) => return Ok(None),
        Err(ExecutionError::Config { fault, .. }) => {
            return Err(OpenError::Unreadable(problem(name, &fault)));
        }
        Err(error) => return Err(OpenError::Unreadable(Problem::new(name, error.to_string()))),
    };
    let fatal = |it: &&ConfigFault| it.severity == Severity::Error && it.server.is_none();
    match config.faults.iter().find(fatal) {
        Some(fault) => Err(OpenError::Unreadable(problem(name, fault))),
        None => Ok(Some(config)),
    }
}

/// Why a server cannot be used, unless that has been told: what could not be read is not there either.
fn not_added(error: &ClientError, told: &[ConfigFault], place: String) -> Option<Problem> {
    let ClientError::Incomplete { server, field, .. } = error else {
        return Some(Problem::new(place, error.to_string()));
    };
    let is_it =
        |it: &ConfigFault| it.server.as_ref() == Some(server) && it.field.as_deref() == Some(field);
    let problem = Problem::new(place, format!("it has no `{field}`"));
    (!told.iter().any(is_it)).then(|| problem.hint(format!("add `\"{field}\": \"…\"` to it")))
}

/// What works in the entries of servers, and somebody should know of.
fn cautions(servers: &[ServerConfig], packages: Packages, file: &str) -> Vec<Problem> {
    let told = |it: &ServerConfig| {
        let loose = it.loose_package().filter(|_| packages == Packages::Warn);
        it.cautions().into_iter().chain(loose)
    };
    let severity = catalogue::Severity::Warning;
    let enabled = servers.iter().filter(|it| !it.disabled);
    enabled.flat_map(told).map(|it| Problem { severity, ..problem(file, &it) }).collect()
}

/// Why a server is not started although it could be.
fn refusal(server: &ServerConfig, packages: Packages, file: &str) -> Option<Problem> {
    let strict = packages == Packages::Strict && !server.disabled;
    let mut refusal = problem(file, &strict.then(|| server.loose_package()).flatten()?);
    refusal.message.push_str(", and `packages: strict` does not start it");
    Some(refusal)
}
