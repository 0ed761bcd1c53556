//! `toolcrib serve`: the gateway.

mod calls;
mod hands;
mod reload;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
};

use tokio::{
    net::TcpListener,
    runtime::Handle,
    signal::unix::{Signal, SignalKind, signal},
};
use toolcrib::{Claim, Data, Network, NetworkError, OpenError, Own, Owner, Workspace, environment};
use toolcrib_catalogue::{Problem, Source, SourceState};
use toolcrib_server::{
    Access, Caller, Door, Gateway, HttpSettings, Settings, Tls, serve_socket, serve_stdio,
};
use toolcrib_sources::{
    asyncapi::Care,
    mcp::{Connection, Lists},
    python::Python,
};

pub(crate) use self::reload::{Current, Edits};
use self::{hands::Hands, reload::Reloading};
use super::{
    Failure, init,
    keeping::{open_audit, open_bus, open_recorder, open_store},
    lock,
    operating::Operating,
    relay,
};
use crate::terminal::{self, BOLD, CYAN, DIM, styled};

/// How long a command may have the folder.
const BRIEF: std::time::Duration = std::time::Duration::from_secs(3);

/// What was asked for.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) folder: &'a Path,
    pub(crate) listen: Option<&'a str>,
    pub(crate) stdio: bool,
    pub(crate) group: Option<&'a str>,
}

impl From<NetworkError> for Failure {
    fn from(error: NetworkError) -> Self {
        Self::unusable(error.to_string())
    }
}

pub(crate) async fn run(asked: Asked<'_>) -> Result<ExitCode, Failure> {
    let open = || Workspace::open(asked.folder, &environment, Lists::Everything);
    let folder = match open() {
        Err(OpenError::Empty(_)) if !asked.stdio && init::offer(asked.folder)? => open()?.folder,
        opened => opened?.folder,
    };
    let data = match claim(&folder).await {
        Claim::Ours(data) => Some(data),
        Claim::Taken(owner) if asked.stdio => return relay::run(&asked, &folder, owner).await,
        Claim::Taken(owner) => return Err(owned(&folder, &owner)),
        // A workspace that cannot be written is served all the same, only with a shorter memory.
        Claim::Unusable(cause) => {
            tracing::warn!("nothing is kept from run to run: {cause}");
            None
        }
    };
    let running = Running::start(&asked, data).await?;
    // Until everything is closed: what calls began there has to be ended.
    let hands;
    let ended = match running.way.clone() {
        Way::Stdio(caller) => {
            let mut signals = Signals::new()?;
            let mut impatient = Signals::new()?;
            let stopping = async {
                signals.stop(&running.reloading, &running.gateway).await;
                impatient.second(&running.gateway).await;
            };
            tokio::select! {
                () = serve_stdio(&running.gateway, caller) => {}
                // Whoever says it twice does not want to wait.
                () = stopping => {}
            }
            Ok(ExitCode::SUCCESS)
        }
        Way::Http(address) => {
            hands = Hands::start();
            serve_http(asked.folder, &running, address, hands.handles()).await
        }
    };
    running.close().await;
    ended
}

/// Claims the folder. A command that has it for a moment, and no socket, is waited for.
async fn claim(folder: &Path) -> Claim {
    let begin = std::time::Instant::now();
    loop {
        match Data::claim(folder) {
            Claim::Taken(owner) if owner.connect().await.is_err() && begin.elapsed() < BRIEF => {
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            claim => return claim,
        }
    }
}

fn owned(folder: &Path, owner: &Owner) -> Failure {
    let process = owner.process.map(|it| format!(" (process {it})")).unwrap_or_default();
    let message = format!("another gateway serves `{}`{process}", folder.display());
    let hint = "end that one first; `serve --stdio` would go through it";
    Failure::unusable(message).hint(Some(hint.to_owned()))
}

/// A gateway that runs, and what it stands on.
pub(crate) struct Running {
    pub(crate) gateway: Arc<Gateway>,
    current: Arc<Current>,
    reloading: Arc<Reloading>,
    network: Network,
    servers: Vec<Arc<Connection>>,
    way: Way,
    /// Ends with us; last, so that nobody owns the folder while our servers still run.
    _data: Option<Data>,
}

impl Running {
    /// Starts every server, and the gateway before them.
    pub(crate) async fn start(asked: &Asked<'_>, data: Option<Data>) -> Result<Self, Failure> {
        let workspace = Workspace::open(asked.folder, &environment, Lists::Everything)?;
        let network = Network::read(&workspace.folder, &environment)?;
        terminal::hide(workspace.masker(&network));
        let access = Access::new(&network.access);
        // Whatever is refused is refused before anything runs.
        let way = if asked.stdio {
            let caller = access.local(asked.group);
            Way::Stdio(caller.ok_or_else(|| unknown_group(asked.group, &access))?)
        } else {
            Way::Http(address(&network, asked.listen, &access)?)
        };
        let lists = data.as_ref().map(|it| it.file("lists.json"));
        if let Some(file) = &lists {
            workspace.recall(file);
        }
        let audit = open_audit(&network, &workspace, data.as_ref())?;
        let bus = open_bus(&network, data.as_ref());
        let own = workspace.start_own(true, bus, Care::Tools, &terminal::installing).await;
        terminal::installed();
        let servers = workspace.start(&workspace.server_names());
        terminal::wait_for_python(own.python.as_ref()).await;
        // Two tools of our own with one name: only their author can say which is meant.
        if let Err(conflict) = workspace.catalogue(&[], &own) {
            workspace.close().await;
            own.close().await;
            return Err(conflict.into());
        }
        let settings = Settings {
            name: "toolcrib".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: network.instructions.clone(),
            bus: own.bus.clone(),
            store: open_store(&network, data.as_ref()),
            recorder: open_recorder(&network, &workspace, data.as_ref()),
            rules: lock::rules(&network, &workspace.folder),
            audit,
            traces: network.telemetry.clone().map(|it| it.hiding(workspace.masker(&network))),
        };
        let inputs = workspace.inputs(&servers, &own);
        terminal::warn(&[workspace.problems.as_slice(), &workspace.warnings].concat());
        let gateway = Gateway::start(inputs, access, settings);
        let current = Current::new(workspace, network.clone(), &own);
        gateway.set_operator(Operating::new(&current, data.as_ref()));
        let address = match way {
            Way::Stdio(_) => None,
            Way::Http(address) => Some(address),
        };
        let reloading = Reloading::new(&current, &gateway, address);
        let running = Self { gateway, current, reloading, network, servers, way, _data: data };
        if let Some(file) = lists {
            let workspace = running.current.workspace();
            running.spawn(async move { workspace.remember(&file).await });
        }
        running.reloading.tell_edits(&own);
        if let Some(events) = own.events.clone() {
            let (own, source) = (own.clone(), Arc::clone(&events));
            running.spawn(async move { tell_edits(&own, &*source).await });
            running.spawn(async move { events.follow_edits().await });
        }
        let (gateway, current) = (Arc::clone(&running.gateway), Arc::clone(&running.current));
        running.spawn(async move { lock::follow(&gateway, &current).await });
        let reloading = Arc::clone(&running.reloading);
        running.spawn(async move { reloading.follow().await });
        running.start_webhooks().await;
        running.open_socket();
        Ok(running)
    }

    /// Begins to tell those who want to be told of events.
    async fn start_webhooks(&self) {
        for hook in self.network.bus.webhooks.clone() {
            let name = hook.name.clone();
            if let Err(error) = hook.start(&self.gateway).await {
                let subject = format!("network.yaml: bus: webhooks: {name}");
                terminal::warn(&[Problem::new(subject, error.to_string())]);
            }
        }
    }

    /// Lets further gateways of the workspace in.
    fn open_socket(&self) {
        let Some(data) = &self._data else { return };
        match data.listen() {
            Ok(listener) => {
                let gateway = Arc::clone(&self.gateway);
                self.spawn(async move { serve_socket(&gateway, listener).await });
            }
            Err(error) => tracing::warn!(%error, "further gateways cannot come in"),
        }
    }

    /// Where calls are on record, where they are.
    fn record(&self) -> Option<PathBuf> {
        self._data.as_ref().map(|it| it.file("audit")).filter(|it| it.is_dir())
    }

    /// Does something until the gateway stops.
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.gateway.spawn(work);
    }

    /// Who a client on standard input is.
    pub(crate) fn caller(&self, group: Option<&str>) -> Result<Caller, Failure> {
        let access = self.gateway.access();
        access.local(group).ok_or_else(|| unknown_group(group, &access))
    }

    /// Ends everything.
    pub(crate) async fn close(self) {
        self.gateway.close().await;
        self.current.workspace().close().await;
        self.current.own().close().await;
    }
}

/// How clients come in.
#[derive(Clone)]
enum Way {
    Stdio(Caller),
    Http(SocketAddr),
}

pub(crate) fn unknown_group(group: Option<&str>, access: &Access) -> Failure {
    let known: Vec<&str> = access.group_names().collect();
    let message = format!("there is no group `{}`", group.unwrap_or_default());
    Failure::unusable(message).hint(Some(format!("there are: {}", known.join(", "))))
}

/// Where to listen. An address that others can reach needs a token, and somebody who does TLS.
fn address(
    network: &Network,
    listen: Option<&str>,
    access: &Access,
) -> Result<SocketAddr, Failure> {
    let address = match listen {
        None => network.listen,
        Some(text) => toolcrib::read_address(text).ok_or_else(|| {
            Failure::unusable(format!("`{text}` is not an address such as 127.0.0.1:8700"))
        })?,
    };
    if address.ip().is_loopback() {
        terminal::warn(network.undeclared_proxy(access.has_tokens()).as_slice());
        return Ok(address);
    }
    if !access.has_tokens() {
        let message = format!("{address} can be reached by others, and no token is set");
        let hint = "set `external_access: auth_token_env` in network.yaml, or listen on 127.0.0.1";
        return Err(Failure::unusable(message).hint(Some(hint.to_owned())));
    }
    if !network.behind_proxy && network.tls.is_none() {
        let message = format!("{address} can be reached by others, and nobody encrypts");
        let hint = "set `tls: { cert: …, key: … }` in network.yaml, or let a proxy do TLS and set `behind_proxy: true`";
        return Err(Failure::unusable(message).hint(Some(hint.to_owned())));
    }
    Ok(address)
}

async fn serve_http(
    folder: &Path,
    running: &Running,
    address: SocketAddr,
    hands: Vec<Handle>,
) -> Result<ExitCode, Failure> {
    let Running { gateway, current, reloading, network, servers, .. } = running;
    let listener = TcpListener::bind(address).await.map_err(|error| {
        let hint = "another toolcrib may be running; --listen 127.0.0.1:0 takes a free port";
        Failure::unusable(format!("cannot listen on {address}: {error}"))
            .hint(Some(hint.to_owned()))
    })?;
    let address = listener.local_addr()?;
    let tls = network.tls.as_ref().map(read_tls).transpose()?;
    let encrypted = tls.is_some();
    if let Some(tls) = &tls {
        reloading.keep_current(tls);
    }
    let hosts = network.hosts.clone();
    let http = HttpSettings { hosts, tls, hands, ..HttpSettings::default() };
    let door = Door::new(Arc::clone(gateway), http, address);
    terminal::print(&banner(folder, gateway, address, encrypted))?;
    let mut signals = Signals::new()?;
    let serving = door.serve(listener);
    let telling = async {
        tell_own(&current.own());
        terminal::wait_for(servers).await;
        tell_servers(gateway, servers).await;
        // A person sees who calls what; a program reads the record.
        if let Some(folder) = running.record().filter(|_| terminal::is_watched()) {
            calls::tell(folder).await;
        }
        std::future::pending::<()>().await;
    };
    let running = async {
        tokio::join!(serving, signals.stop(reloading, gateway));
    };
    let mut impatient = Signals::new()?;
    tokio::select! {
        () = running => {}
        () = telling => {}
        // Whoever says it twice does not want to wait.
        () = impatient.second(gateway) => {}
    }
    Ok(ExitCode::SUCCESS)
}

fn banner(folder: &Path, gateway: &Gateway, address: SocketAddr, encrypted: bool) -> String {
    let access = gateway.access();
    let scheme = if encrypted { "https" } else { "http" };
    let url = format!("{scheme}://{address}/mcp");
    let groups: Vec<&str> = access.group_names().collect();
    let who = if access.has_tokens() {
        format!("by token; groups: {}", groups.join(", "))
    } else {
        format!("no token: everybody on this machine is in group {}", groups[0])
    };
    let version = env!("CARGO_PKG_VERSION");
    let line =
        |name: &str, text: &str| format!("  {}  {text}\n", styled(DIM, &format!("{name:<8}")));
    [
        format!("toolcrib {version} serves {}\n", styled(BOLD, &folder.display().to_string())),
        line("address", &styled(CYAN, &url)),
        line("console", &styled(CYAN, &format!("{scheme}://{address}/"))),
        line("access", &who),
        line("connect", &format!("claude mcp add --transport http toolcrib {url}")),
    ]
    .concat()
}

fn read_tls(files: &(PathBuf, PathBuf)) -> Result<Tls, Failure> {
    let (certificates, key) = reload::read_pair(files).map_err(Failure::unusable)?;
    let tls = Tls::new(&certificates, &key);
    tls.map_err(|cause| Failure::unusable(format!("network.yaml: tls: {cause}")))
}

/// What there is of the workspace's own, and what is wrong with it.
fn tell_own(own: &Own) {
    let summary = own.python.as_ref().map(Python::summary);
    if let Some(summary) = summary.filter(|it| 0 < it.files) {
        terminal::print(&format!("  {}  {summary}\n", styled(DIM, "python  "))).ok();
    }
    let events = own.events.as_ref().map(|it| it.tools().len()).unwrap_or_default();
    if 0 < events {
        let tools = if events == 1 { "1 tool".to_owned() } else { format!("{events} tools") };
        terminal::print(&format!("  {}  {tools}\n", styled(DIM, "events  "))).ok();
    }
    terminal::warn(&own.problems());
}

/// Tells what is wrong with an edit as soon as it has been loaded. Never returns.
async fn tell_edits(own: &Own, source: &dyn Source) {
    let mut known = own.problems();
    loop {
        let version = source.version();
        source.changed_since(version).await;
        let now = own.problems();
        let new: Vec<_> = now.iter().filter(|it| !known.contains(it)).cloned().collect();
        terminal::warn(&new);
        known = now;
    }
}

/// How the servers came up, once they have.
async fn tell_servers(gateway: &Arc<Gateway>, servers: &[Arc<Connection>]) {
    let found = apart(gateway, Gateway::rebuild).await;
    let ready = servers.iter().filter(|it| it.state() == SourceState::Ready).count();
    let by_server: Vec<String> =
        servers.iter().map(|it| format!("{} {}", it.label(), it.tools().len())).collect();
    let tools = gateway.count();
    let said = match servers.len() {
        0 => format!("none; tools in all: {tools}"),
        all => format!("{ready} of {all} ready, {tools} tools ({})", by_server.join(", ")),
    };
    let text = format!("  {}  {said}\n", styled(DIM, "servers "));
    // A gateway whose terminal is gone serves on.
    terminal::print(&text).ok();
    let problems: Vec<_> = servers.iter().flat_map(|it| it.problems()).chain(found).collect();
    terminal::warn(&problems);
    for server in servers {
        if let SourceState::Failed { cause, hint } = server.state() {
            let subject = format!("server `{}`", server.label());
            let problem = Problem { hint, ..Problem::new(subject, cause) };
            terminal::warn(&[problem]);
        }
    }
}

/// The signals we heed.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> Result<Self, Failure> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the word to stop, and passes it on. SIGHUP reads the files again.
    async fn stop(&mut self, reloading: &Reloading, gateway: &Arc<Gateway>) {
        loop {
            tokio::select! {
                _ = self.terminate.recv() => break,
                _ = self.interrupt.recv() => break,
                _ = self.hangup.recv() => {
                    reloading.read_again().await;
                }
            }
        }
        gateway.stop();
    }

    /// Waits for the second word to stop.
    async fn second(&mut self, gateway: &Gateway) {
        gateway.stopped().await;
        // The first may reach this one too, a little late.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        while futures_now(&mut self.terminate) || futures_now(&mut self.interrupt) {}
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// Takes a signal that has come already.
fn futures_now(signal: &mut Signal) -> bool {
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    matches!(signal.poll_recv(&mut context), std::task::Poll::Ready(Some(())))
}

/// Does something that takes a while with many tools, where nobody is kept waiting for it.
pub(super) async fn apart<T: Send + Default + 'static>(
    gateway: &Arc<Gateway>,
    work: impl FnOnce(&Gateway) -> T + Send + 'static,
) -> T {
    let gateway = Arc::clone(gateway);
    tokio::task::spawn_blocking(move || work(&gateway)).await.unwrap_or_default()
}
