//! Several servers, connected as they are needed.

use std::{path::Path, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio_util::task::TaskTracker;
use toolcrib_catalogue::{
    CallError, CallTool, ClientError, Json, Outcome, Source, SourceState, Tool, ToolServer,
    ToolServers,
};
use toolcrib_wire::{Identity, Reaper, Spool};

use super::{
    bar::Bar,
    config::{Isolation, ServerConfig},
    connection::Connection,
    env::Lookup,
    isolated::{Handle, Isolated},
    listing::Lists,
    memory::{self, Memory},
};

/// A client of the servers of an `mcp.json`.
///
/// Servers are connected when they are first needed, each once, and stay connected. A client that is
/// no longer needed should be [closed](Client::close), so that its servers end in good order.
///
/// ```no_run
/// use toolcrib_catalogue::Json;
/// use toolcrib_sources::mcp::{Client, ClientOptions, Filled, ServerConfig, Transport};
///
/// # async fn show() -> Result<(), Box<dyn std::error::Error>> {
/// let mut config = ServerConfig::new("time", Transport::Stdio);
/// config.command = Some(Filled::literal("/usr/local/bin/mcp-server-time"));
///
/// let client = Client::new(ClientOptions::default());
/// client.add_server(config)?;
/// assert_eq!(client.server_names(), ["time"]);
///
/// client.connect("time").await?; // not needed: the next line would do it
/// let tools = client.list_tools("time").await?;
/// let arguments = Json::parse(r#"{"timezone": "Europe/Berlin"}"#)?;
/// let outcome = client.call_tool("time", "get_current_time", Some(arguments)).await?;
/// client.close().await;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Client {
    servers: Mutex<Vec<Registered>>,
    options: ClientOptions,
    /// What servers listed the last time.
    memory: Mutex<Memory>,
    reaper: Arc<Reaper>,
    tasks: TaskTracker,
}

#[derive(Debug)]
struct Registered {
    config: ServerConfig,
    connection: Option<Arc<Connection>>,
    /// What it is to a gateway, once that was asked for.
    source: Option<Arc<dyn Source>>,
    bar: Arc<Bar>,
}

/// What all servers of a client share.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// Who we say that we are.
    pub identity: Identity,
    /// What child processes get of our own environment.
    pub inherited: Vec<(String, String)>,
    /// The largest message that is taken.
    pub max_frame: usize,
    /// How calls are tried again.
    pub calls: Calls,
    /// How much servers are asked for.
    pub lists: Lists,
    /// Somebody behind us may answer what servers ask: a model, a person, a client with folders.
    pub relays: bool,
    /// Where large parts of results are put while somebody deals with them. Nowhere, where nothing is said:
    /// then results are kept in memory whole.
    pub spool: Option<Spool>,
}

/// How a call through a connection is tried again.
#[derive(Debug, Clone)]
pub struct Calls {
    /// How often, after the first time.
    pub retries: u32,
    /// The first pause; each one after it is twice as long.
    pub backoff_base: Duration,
    /// When a call is over, all attempts counted.
    pub total: Duration,
}

/// The variables a child process may see without being given them.
const INHERITED: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "XDG_RUNTIME_DIR",
];

/// How often what servers list is kept, if it has changed.
const REMEMBER: Duration = Duration::from_secs(1);

/// How long servers get to end when a client is closed.
const CLOSING: Duration = Duration::from_secs(8);

impl Default for ClientOptions {
    fn default() -> Self {
        let (name, version) = ("toolcrib".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
        Self {
            identity: Identity { name, version },
            inherited: Vec::new(),
            max_frame: 100_000_000,
            calls: Calls {
                retries: 3,
                backoff_base: Duration::from_secs(1),
                total: Duration::from_secs(120),
            },
            lists: Lists::Tools,
            relays: false,
            spool: None,
        }
    }
}

impl ClientOptions {
    /// The usual options, with what child processes need of an environment: a path, a home, a
    /// language, and nothing else.
    pub fn with_environment(lookup: Lookup<'_>) -> Self {
        let pair = |name: &&str| Some(((*name).to_owned(), lookup(name)?));
        Self { inherited: INHERITED.iter().filter_map(pair).collect(), ..Self::default() }
    }
}

impl ClientOptions {
    /// What we say in a handshake that we can do.
    pub(super) fn capabilities(&self) -> &'static [u8] {
        if !self.relays {
            return b"{}";
        }
        br#"{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}},"elicitation":{"form":{},"url":{}}}"#
    }
}

impl Client {
    /// A client without servers.
    pub fn new(options: ClientOptions) -> Self {
        let (reaper, tasks) = (Arc::new(Reaper::new()), TaskTracker::new());
        Self { servers: Mutex::default(), options, memory: Mutex::default(), reaper, tasks }
    }

    /// Registers a server. One of the same name is replaced, and disconnected if it was connected.
    pub fn add_server(&self, config: ServerConfig) -> Result<(), ClientError> {
        config.validate()?;
        let added = Registered { config, connection: None, source: None, bar: Arc::default() };
        let mut servers = self.servers.lock();
        match servers.iter_mut().find(|it| it.config.name == added.config.name) {
            Some(old) => close(std::mem::replace(old, added)),
            None => servers.push(added),
        }
        Ok(())
    }

    /// Forgets a server, and disconnects it.
    pub fn remove_server(&self, name: &str) {
        let mut servers = self.servers.lock();
        if let Some(at) = servers.iter().position(|it| it.config.name == name) {
            close(servers.remove(at));
        }
    }

    /// Forgets a server, and hands over the connection that it may have: whoever takes it ends it.
    pub fn take_server(&self, name: &str) -> Option<Arc<Connection>> {
        let mut servers = self.servers.lock();
        let at = servers.iter().position(|it| it.config.name == name)?;
        servers.remove(at).connection
    }

    /// The names of all servers, in the order they were registered.
    pub fn server_names(&self) -> Vec<String> {
        self.servers.lock().iter().map(|it| it.config.name.clone()).collect()
    }

    /// The connections that were begun.
    pub fn connections(&self) -> Vec<Arc<Connection>> {
        self.servers.lock().iter().filter_map(|it| it.connection.clone()).collect()
    }

    /// The configuration of a server.
    pub fn config(&self, name: &str) -> Option<ServerConfig> {
        self.servers.lock().iter().find(|it| it.config.name == name).map(|it| it.config.clone())
    }

    /// The connection to a server, begun if there is none. It need not be ready.
    pub fn connection(&self, name: &str) -> Result<Arc<Connection>, ClientError> {
        let mut servers = self.servers.lock();
        let server = servers.iter_mut().find(|it| it.config.name == name);
        let server = server.ok_or_else(|| ClientError::UnknownServer(name.to_owned()))?;
        let start = || {
            Arc::new(Connection::start(
                server.config.clone(),
                self.options.clone(),
                Arc::clone(&self.reaper),
                &self.tasks,
                self.memory.lock().of(&server.config),
                Arc::clone(&server.bar),
            ))
        };
        Ok(Arc::clone(server.connection.get_or_insert_with(start)))
    }

    /// Keeps a server from being started, for this cause, or lets it. One that runs is ended.
    pub fn bar(&self, name: &str, cause: Option<String>) {
        if let Some(server) = self.servers.lock().iter().find(|it| it.config.name == name) {
            server.bar.set(cause);
        }
    }

    /// Takes from a file what servers listed the last time. Connections begun from now on show that
    /// until their server has listed anew.
    pub fn recall(&self, file: &Path) {
        *self.memory.lock() = Memory::read(file);
    }

    /// Keeps in a file what servers list, until the future is dropped. Never returns.
    pub async fn remember(&self, file: &Path) {
        let mut kept: Vec<u64> = Vec::new();
        loop {
            tokio::time::sleep(REMEMBER).await;
            let connections = self.connections();
            let versions = connections.iter().map(|it| it.version()).collect();
            if kept == versions {
                continue;
            }
            kept = versions;
            let known = connections.iter().filter(|it| it.has_listed());
            let known: Vec<_> =
                known.map(|it| (it.config().clone(), it.shared.listed.load_full())).collect();
            let file = file.to_owned();
            let written = tokio::task::spawn_blocking(move || memory::write(&file, &known)).await;
            if let Ok(Err(error)) = written {
                tracing::warn!(%error, "what servers list cannot be kept");
            }
        }
    }

    /// A server as a source of tools: one connection for everybody, or one for each visitor, as its
    /// configuration says.
    pub fn source(&self, name: &str) -> Result<Arc<dyn Source>, ClientError> {
        let front = self.connection(name)?;
        if front.config().isolation == Isolation::Shared {
            return Ok(front);
        }
        let make = || {
            let (options, reaper) = (self.options.clone(), Arc::clone(&self.reaper));
            let isolated = Isolated::new(front, options, reaper, self.tasks.clone());
            Arc::new(Handle(isolated)) as Arc<dyn Source>
        };
        let mut servers = self.servers.lock();
        let server = servers.iter_mut().find(|it| it.config.name == name);
        let server = server.ok_or_else(|| ClientError::UnknownServer(name.to_owned()))?;
        Ok(Arc::clone(server.source.get_or_insert_with(make)))
    }

    /// The connection to a server, ready to be used. One that has failed is tried again at once.
    pub async fn connect(&self, name: &str) -> Result<Arc<Connection>, ClientError> {
        let connection = self.connection(name)?;
        if let SourceState::Failed { .. } = connection.state() {
            connection.hurry();
        }
        ready(connection, name).await
    }

    /// Connects to all servers at the same time. What failed says so; the others are ready.
    pub async fn connect_all(&self) -> Vec<(String, Result<Arc<Connection>, ClientError>)> {
        let names = self.server_names();
        for name in &names {
            drop(self.connection(name));
        }
        let mut connected = Vec::with_capacity(names.len());
        for name in names {
            let settled = match self.connection(&name) {
                Ok(connection) => ready(connection, &name).await,
                Err(error) => Err(error),
            };
            connected.push((name, settled));
        }
        connected
    }

    /// Ends the connection to a server. The next use makes a new one.
    pub fn disconnect(&self, name: &str) {
        let mut servers = self.servers.lock();
        let server = servers.iter_mut().find(|it| it.config.name == name);
        let Some(server) = server else { return };
        server.source = None;
        if let Some(connection) = server.connection.take() {
            connection.close();
        }
    }

    /// All tools of a server, which is connected if need be.
    pub async fn list_tools(&self, server: &str) -> Result<Vec<Arc<Tool>>, CallError> {
        self.connect(server).await?.list_tools().await
    }

    /// Calls a tool of a server, which is connected if need be.
    pub async fn call_tool(
        &self,
        server: &str,
        tool: &str,
        arguments: Option<Json>,
    ) -> Result<Outcome, CallError> {
        CallTool::call_tool(self, server, tool, arguments).await
    }

    /// Ends all connections and waits until every server has ended.
    pub async fn close(&self) {
        for server in self.servers.lock().drain(..) {
            close(server);
        }
        self.tasks.close();
        if tokio::time::timeout(CLOSING, self.tasks.wait()).await.is_err() {
            tracing::warn!("some servers did not end in time");
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        for server in self.servers.lock().drain(..) {
            close(server);
        }
    }
}

/// The connection, once it has come up.
async fn ready(connection: Arc<Connection>, name: &str) -> Result<Arc<Connection>, ClientError> {
    let cause = match connection.settled().await {
        SourceState::Ready | SourceState::Connecting => return Ok(connection),
        SourceState::Failed { cause, .. } => cause,
        SourceState::Closed => "it was shut down".to_owned(),
    };
    Err(ClientError::Connect { server: name.to_owned(), cause })
}

fn close(server: Registered) {
    if let Some(connection) = server.connection {
        connection.close();
    }
}

impl ToolServers for Client {
    type Server = Connection;

    fn server_names(&self) -> Vec<String> {
        Self::server_names(self)
    }

    async fn connect(&self, server: &str) -> Result<Arc<Connection>, ClientError> {
        Self::connect(self, server).await
    }
}

impl CallTool for Client {
    async fn call_tool(
        &self,
        server: &str,
        tool: &str,
        arguments: Option<Json>,
    ) -> Result<Outcome, CallError> {
        let connection = self.connection(server)?;
        // A server that is down fails at once, and is tried again for whoever calls next.
        if let SourceState::Failed { cause, .. } = connection.state() {
            connection.hurry();
            let cause = format!("server `{server}` is down: {cause}");
            return Err(CallError::Unavailable { cause });
        }
        CallTool::call_tool(&*connection, server, tool, arguments).await
    }
}
