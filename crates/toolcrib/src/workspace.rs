//! A workspace: a folder with an `mcp.json`, with `tools/` or with `events/`, and what comes of it.

mod servers;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use toolcrib_bus::Bus;
use toolcrib_catalogue::{
    Catalogue, Conflict, Listing, NameStyle, Origin, Problem, Settings, Source, SourceState,
    ToolFilter,
    lock::{Lock, Pinned, Pins, Place, Verdict, Way},
};
use toolcrib_server::{Input, Limit};
use toolcrib_sources::{
    asyncapi::{Care, EventSource},
    mcp::{self, Client, ClientOptions, ConfigFault, Connection, Lists, Lookup, ServerConfig},
    python::{self, Python},
};
use toolcrib_wire::{Spool, text::Masker};

use crate::{data::scratch, guard::read_lock, limits, network::Network, own::Own};
use servers::read_servers;

/// Why a server is not started. Callers hear it, so it does not say what the new way is.
const OTHER_WAY: &str =
    "it is started or reached in another way than was accepted, and so it was not started";

/// A workspace whose files have been read. Nothing has been started yet.
#[derive(Debug)]
pub struct Workspace {
    /// Where it is.
    pub folder: PathBuf,
    /// What is wrong with its files.
    pub problems: Vec<Problem>,
    /// What works in its files, and somebody should know of.
    pub warnings: Vec<Problem>,
    /// Whether there was a `network.yaml` when it was read.
    pub had_network: bool,
    /// Goes on from one reading of the files to the next.
    client: Arc<Client>,
    /// All servers in the order of the file, also those that are disabled or broken: names depend
    /// on the whole list.
    servers: Vec<Server>,
    file: String,
    /// How upstream tools are named, unless their server says otherwise.
    style: NameStyle,
    /// How Python tools are run; nothing where that cannot be known.
    python: Option<python::Settings>,
}

/// One server of the file.
#[derive(Debug, Clone)]
struct Server {
    name: String,
    /// Absent where the entry cannot be used.
    config: Option<ServerConfig>,
    /// How it is started or reached, as the file says it.
    way: Option<Way>,
}

/// Why a folder is not a workspace.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// There is nothing.
    #[error("there is no folder `{0}`")]
    NoFolder(String),
    /// There is nothing in it for us.
    #[error("there is no mcp.json, no tools/ and no events/ in `{0}`")]
    Empty(String),
    /// Its file cannot be read at all.
    #[error("{0}")]
    Unreadable(Problem),
}

impl OpenError {
    /// The same as a problem.
    pub fn problem(self) -> Problem {
        let hint = self.hint();
        match self {
            Self::Unreadable(problem) => problem,
            other => Problem { hint, ..Problem::new("workspace", other.to_string()) },
        }
    }

    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NoFolder(_) => Some("name the folder that holds your mcp.json".to_owned()),
            Self::Empty(_) => {
                let hint = "`toolcrib init` makes a workspace there, `toolcrib import` takes the servers of your clients";
                Some(format!("{hint}; or name another folder"))
            }
            Self::Unreadable(problem) => problem.hint.clone(),
        }
    }
}

impl Workspace {
    /// Takes out of a text whatever is configured as a secret: tokens, headers, what came out of variables.
    pub fn masker(&self, network: &Network) -> Masker {
        let groups = network.access.groups.iter().flat_map(|it| it.tokens.clone());
        let tokens = Masker::new(network.access.token.clone().into_iter().chain(groups));
        let servers = self.servers.iter().filter_map(|it| it.config.as_ref());
        let servers = servers.map(ServerConfig::masker);
        let python = self.python.as_ref().map(|it| it.masker.clone());
        let bus = network.bus.secrets.clone();
        let traces = network.telemetry.as_ref().map(|it| it.masker.clone());
        let scraper = Masker::new(network.access.scraping.token.clone());
        servers.chain(python).chain([bus, scraper]).chain(traces).fold(tokens, Masker::and)
    }

    /// Reads a workspace: a folder, or the `mcp.json` in it.
    pub fn open(path: &Path, lookup: Lookup<'_>, lists: Lists) -> Result<Self, OpenError> {
        let shown = path.display().to_string();
        let (folder, file) = if path.is_file() {
            (path.parent().unwrap_or(Path::new("")).to_owned(), path.to_owned())
        } else if path.is_dir() {
            (path.to_owned(), path.join("mcp.json"))
        } else {
            return Err(OpenError::NoFolder(shown));
        };
        let folder =
            folder.canonicalize().ok().ok_or_else(|| OpenError::NoFolder(shown.clone()))?;
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let config = match read_servers(&file, &name, lookup)? {
            Some(config) => config,
            // Every part is optional, but some part there must be.
            None if has_other_parts(&folder) => mcp::Config::default(),
            None => return Err(OpenError::Empty(shown)),
        };
        let had_network = folder.join("network.yaml").exists();
        let network = Network::read(&folder, lookup);
        // Who serves everything to clients may ask them too.
        let relays = lists == Lists::Everything;
        let spool = relays.then(|| Spool::new(scratch(&folder, "spool")));
        let spool = spool.filter(|it| std::fs::create_dir_all(&it.folder).is_ok());
        let options =
            ClientOptions { lists, relays, spool, ..ClientOptions::with_environment(lookup) };
        let client = Arc::new(Client::new(options));
        let this = Self {
            folder,
            problems: Vec::new(),
            warnings: Vec::new(),
            had_network,
            client,
            servers: Vec::new(),
            file: name,
            style: NameStyle::Prefixed,
            python: network.as_ref().ok().map(|it| it.python.clone()),
        };
        let this = match &network {
            Ok(network) => this.with(config, network).0,
            Err(error) => this.without_network(config, error),
        };
        // Where nobody knows what was asked for, the strictest.
        let pins = network.map_or(Pins::Hold, |it| it.rules.pins);
        this.bar(pins, read_lock(&this.folder).0.as_ref());
        Ok(this)
    }

    /// With `pins: hold`, keeps servers from being started that are not started as was accepted: what runs has
    /// done its work before anybody looks at its tools.
    pub fn bar(&self, pins: Pins, lock: Option<&Lock>) {
        let pinned = lock.filter(|_| pins == Pins::Hold).map(Pinned::new);
        let is_other = |name: &str, way: &Way| {
            let place = Place::of(&Origin::Upstream(name.to_owned()));
            let verdict = pinned.as_ref().map(|it| it.verdict_on_way(&place, way));
            matches!(verdict, Some(Verdict::Changed { .. } | Verdict::New))
        };
        for server in &self.servers {
            let barred = server.way.as_ref().is_some_and(|it| is_other(&server.name, it));
            self.client.bar(&server.name, barred.then(|| OTHER_WAY.to_owned()));
        }
    }

    /// The names of the servers that can be started.
    pub fn server_names(&self) -> Vec<String> {
        self.client.server_names()
    }

    /// How many servers the file has switched off.
    pub fn disabled(&self) -> Vec<&str> {
        let disabled = |it: &&Server| it.config.as_ref().is_some_and(|it| it.disabled);
        self.servers.iter().filter(disabled).map(|it| it.name.as_str()).collect()
    }

    /// The servers that can be started or reached, as they are configured.
    pub fn configs(&self) -> impl Iterator<Item = &ServerConfig> {
        self.servers.iter().filter_map(|it| it.config.as_ref()).filter(|it| !it.disabled)
    }

    /// The servers whose tools could have this public name; all of them where that cannot be told.
    pub fn candidates(&self, tool: &str) -> Vec<String> {
        let names: Vec<&str> = self.servers.iter().map(|it| it.name.as_str()).collect();
        let parts = toolcrib_catalogue::naming::server_parts(&names);
        let prefix = |part: &str| format!("{}__{part}__", Settings::default().namespace);
        let fits = |name: &str| {
            let at = names.iter().position(|it| *it == name);
            at.is_some_and(|at| tool.starts_with(&prefix(&parts[at].text)))
        };
        let all = self.server_names();
        let fitting: Vec<String> = all.iter().filter(|it| fits(it)).cloned().collect();
        if fitting.is_empty() { all } else { fitting }
    }

    /// Begins to start these servers, all at once.
    pub fn start(&self, names: &[String]) -> Vec<Arc<Connection>> {
        names.iter().filter_map(|it| self.client.connection(it).ok()).collect()
    }

    /// Begins to load the tools of the workspace's own. Events go to `bus`, if they can; `care` is how
    /// closely their documents are looked at.
    pub async fn start_own(
        &self,
        watch: bool,
        bus: Result<Arc<dyn Bus>, String>,
        care: Care,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Own {
        let python = self.start_python(watch, tell).await;
        let (folder, there) = (self.folder.clone(), bus.as_ref().ok().cloned());
        let load = move || {
            let needed = watch || EventSource::is_needed(&folder);
            needed.then(|| EventSource::load(&folder, bus, care))
        };
        let events = tokio::task::spawn_blocking(load).await.ok().flatten();
        Own { python, events, bus: there }
    }

    /// Begins to load the tools that are written in Python; nothing where there are none and nobody
    /// watches for some to come.
    ///
    /// Whoever watches also gets what the tools need installed, and `tell` hears how that goes on.
    async fn start_python(&self, watch: bool, tell: &(dyn Fn(&str) + Sync)) -> Option<Python> {
        self.run_python(self.python.clone()?, watch, tell).await
    }

    /// The same, run as these settings say.
    pub async fn run_python(
        &self,
        mut settings: python::Settings,
        watch: bool,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Option<Python> {
        if !watch && !Python::is_needed(&settings) {
            return None;
        }
        if Python::is_needed(&settings) {
            settings.home = scratch(&self.folder, "python");
            python::prepare(&mut settings, watch, tell).await;
        }
        Some(Python::start(settings, watch))
    }

    /// Takes from a file what servers listed the last time.
    pub fn recall(&self, file: &Path) {
        self.client.recall(file);
    }

    /// Keeps in a file what servers list. Never returns.
    pub async fn remember(&self, file: &Path) {
        self.client.remember(file).await;
    }

    /// The connections that were begun.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.client.connections()
    }

    /// What the file of its servers is called.
    pub fn file(&self) -> &str {
        &self.file
    }

    /// The connection to a server, if it was started.
    pub fn connection(&self, server: &str) -> Option<Arc<Connection>> {
        self.client.connection(server).ok()
    }

    /// What all servers listed so far make together.
    pub fn catalogue(
        &self,
        started: &[Arc<Connection>],
        own: &Own,
    ) -> Result<(Catalogue, Vec<Listing>, Vec<Problem>), Conflict> {
        let listing = |server: &Server| {
            let connection = started.iter().find(|it| it.label() == server.name);
            let config = server.config.as_ref();
            Listing {
                origin: Origin::Upstream(server.name.clone()),
                style: config.and_then(|it| it.names).unwrap_or(self.style),
                filter: config.map(|it| it.filter.clone()).unwrap_or_default(),
                tools: connection.map(|it| it.tools()).unwrap_or_default(),
            }
        };
        let ours = |(origin, source): (Origin, Arc<dyn Source>)| Listing {
            origin,
            style: NameStyle::Bare,
            filter: ToolFilter::default(),
            tools: source.tools(),
        };
        let sources = own.sources().into_iter().map(ours);
        let listings: Vec<Listing> = sources.chain(self.servers.iter().map(listing)).collect();
        let (catalogue, mut problems) = Catalogue::build(&listings, &Settings::default())?;
        problems.extend(own.problems());
        for connection in started {
            if let SourceState::Failed { cause, hint } = connection.state() {
                let place = place(&self.file, connection.config().at, connection.label());
                problems.push(Problem { hint, ..Problem::new(place, cause) });
            }
            problems.extend(connection.problems());
        }
        self.mask(&mut problems);
        Ok((catalogue, listings, problems))
    }

    /// Takes the values of variables out of problems.
    fn mask(&self, problems: &mut [Problem]) {
        let configs = self.servers.iter().filter_map(|it| it.config.as_ref());
        let masker = configs.map(ServerConfig::masker).fold(Masker::default(), Masker::and);
        for problem in problems {
            problem.message = masker.mask(&problem.message).into_owned();
            problem.hint = problem.hint.as_ref().map(|it| masker.mask(it).into_owned());
        }
    }

    /// What a gateway over these servers takes in.
    pub fn inputs(&self, started: &[Arc<Connection>], own: &Own) -> Vec<Input> {
        let ours = |(origin, source): (Origin, Arc<dyn Source>)| Input {
            required: false,
            origin,
            source: Some(source),
            style: NameStyle::Bare,
            filter: ToolFilter::default(),
            way: None,
            limit: Limit::default(),
        };
        let own = own.sources().into_iter().map(ours);
        let input = |server: &Server| {
            let connection = started.iter().find(|it| it.label() == server.name);
            let config = server.config.as_ref();
            Input {
                required: config.is_some_and(|it| it.required && !it.disabled),
                source: connection.and_then(|it| self.client.source(it.label()).ok()),
                origin: Origin::Upstream(server.name.clone()),
                style: config.and_then(|it| it.names).unwrap_or(self.style),
                filter: config.map(|it| it.filter.clone()).unwrap_or_default(),
                way: server.way.clone(),
                limit: config.map(limits::of_server).unwrap_or_default(),
            }
        };
        own.chain(self.servers.iter().map(input)).collect()
    }

    /// All servers of the file, and how they are started or reached.
    pub fn ways(&self) -> Vec<(String, Option<Way>)> {
        self.servers.iter().map(|it| (it.name.clone(), it.way.clone())).collect()
    }

    /// The line of `mcp.json` in which a server stands.
    pub fn line_of(&self, server: &str) -> Option<usize> {
        let config = self.servers.iter().find(|it| it.name == server)?.config.as_ref()?;
        Some(config.at.0)
    }

    /// Ends all servers.
    pub async fn close(&self) {
        self.client.close().await;
    }
}

/// Every part is optional; these make a workspace too.
fn has_other_parts(folder: &Path) -> bool {
    let parts = ["tools", "events"];
    folder.join("network.yaml").is_file() || parts.iter().any(|it| folder.join(it).is_dir())
}

fn place(file: &str, (line, column): (usize, usize), server: &str) -> String {
    format!("{file}:{line}:{column}: server `{server}`")
}

fn problem(file: &str, fault: &ConfigFault) -> Problem {
    let mut subject = file.to_owned();
    if let Some((line, column)) = fault.at {
        subject.push_str(&format!(":{line}:{column}"));
    }
    let names = [
        fault.server.as_ref().map(|it| format!("server `{it}`")),
        fault.field.as_ref().map(|it| format!("`{it}`")),
    ];
    for name in names.into_iter().flatten() {
        subject.push_str(&format!(": {name}"));
    }
    Problem { hint: fault.hint.clone(), ..Problem::new(subject, &fault.message) }
}
