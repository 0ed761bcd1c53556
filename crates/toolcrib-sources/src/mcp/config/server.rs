//! One server of an `mcp.json`: what its entry means.

use std::{
    fmt,
    path::{Path, PathBuf},
    time::Duration,
};

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use toolcrib_catalogue::{ClientError, NameStyle, ToolFilter, lock::Way};
use toolcrib_wire::{
    Endpoint, ServerCommand, Target,
    text::{Masker, names_secret},
};

use crate::mcp::env::Filled;

/// How to start or reach one server, and what to take from it. Prints no secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "they are the file's own switches")]
pub struct ServerConfig {
    /// What it is called.
    pub name: String,
    /// How it is spoken to.
    pub transport: Transport,
    /// The program to start.
    pub command: Option<Filled>,
    /// Its arguments.
    pub args: Vec<Filled>,
    /// What is added to its environment. Keys are as written.
    pub env: Vec<(String, Filled)>,
    /// Where it runs.
    pub cwd: Option<Filled>,
    /// Its address.
    pub url: Option<Filled>,
    /// What goes along with every request.
    pub headers: Vec<(String, Filled)>,
    /// Certificates to trust, besides the system's.
    pub ca: Option<Filled>,
    /// How long one attempt of a call may take.
    pub timeout: Duration,
    /// How long it may take to start.
    pub handshake_timeout: Duration,
    /// How long an HTTP+SSE stream may be silent.
    pub sse_read_timeout: Option<Duration>,
    /// Whether an old list of tools will do although the server does not tell of changes.
    pub cache_tools: bool,
    /// It is not to be used.
    pub disabled: bool,
    /// Nothing works without it.
    pub required: bool,
    /// Its hints on tools may be believed: a read-only or idempotent one may be tried again.
    pub trust_hints: bool,
    /// Which of its tools are taken.
    pub filter: ToolFilter,
    /// How its tools are named, where that differs from the workspace's way.
    pub names: Option<NameStyle>,
    /// Whether clients share it.
    pub isolation: Isolation,
    /// How often it may be called.
    pub rate: Option<Rate>,
    /// How many calls of it may run at a time.
    pub concurrent: Option<u32>,
    /// Where the entry stands in its file.
    pub at: (usize, usize),
    /// Whatever came out of a variable.
    pub(crate) secrets: Secrets,
}

/// Values that nobody may see.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Secrets(pub(crate) Vec<String>);

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("****")
    }
}

/// How a server is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A child process.
    Stdio,
    /// HTTP+SSE, the old way.
    Sse,
    /// Streamable HTTP.
    StreamableHttp,
    /// An address, and nothing said about it: streamable HTTP if it speaks that, else HTTP+SSE.
    Url,
}

/// Whether clients share one server.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Isolation {
    /// They do.
    #[default]
    Shared,
    /// Each has its own.
    Session,
}

/// So many calls in so much time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub calls: u32,
    /// In how much time.
    pub per: Duration,
    /// How many at once, after a pause.
    pub burst: u32,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Transport {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stdio => "stdio",
            Self::Sse => "sse",
            Self::StreamableHttp => "streamable_http",
            Self::Url => "url",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "stdio" => Self::Stdio,
            "sse" => Self::Sse,
            "http" | "streamable-http" | "streamable_http" | "streamableHttp" => {
                Self::StreamableHttp
            }
            _ => return None,
        })
    }
}

impl ServerConfig {
    /// Whether a connection made for one will do for the other: both are started or reached and spoken to alike, and
    /// differ at most in which of their tools are taken, how these are named, and how often they may be called.
    pub fn connects_like(&self, other: &Self) -> bool {
        let Self { filter, names, required, rate, concurrent, at, .. } = other.clone();
        *other == Self { filter, names, required, rate, concurrent, at, ..self.clone() }
    }

    /// A server with nothing but a name and a way to speak to it.
    pub fn new(name: &str, transport: Transport) -> Self {
        Self {
            name: name.to_owned(),
            transport,
            command: None,
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            url: None,
            headers: Vec::new(),
            ca: None,
            timeout: Duration::from_secs(30),
            handshake_timeout: Duration::from_secs(30),
            sse_read_timeout: None,
            cache_tools: false,
            disabled: false,
            required: false,
            trust_hints: false,
            filter: ToolFilter::default(),
            names: None,
            isolation: Isolation::Shared,
            rate: None,
            concurrent: None,
            at: (0, 0),
            secrets: Secrets::default(),
        }
    }

    /// Whether the transport has what it needs.
    pub fn validate(&self) -> Result<(), ClientError> {
        let (given, field) = match self.transport {
            Transport::Stdio => (&self.command, "command"),
            _ => (&self.url, "url"),
        };
        if given.as_ref().is_some_and(|it| !it.value().is_empty()) {
            return Ok(());
        }
        let (server, transport) = (self.name.clone(), self.transport.as_str());
        Err(ClientError::Incomplete { server, transport, field })
    }

    /// Where the server is, in the words of the wire. `inherited` is what a child process gets of
    /// our own environment.
    pub fn target(&self, inherited: &[(String, String)]) -> Result<Target, ClientError> {
        self.validate()?;
        let value = |it: &Option<Filled>| it.as_ref().map(|it| it.value().to_owned());
        if self.transport == Transport::Stdio {
            let env = self.env.iter().map(|(key, it)| (key.clone(), it.value().to_owned()));
            return Ok(Target::Command(ServerCommand {
                program: value(&self.command).unwrap_or_default(),
                shown: self.command.as_ref().map(ToString::to_string).unwrap_or_default(),
                args: self.args.iter().map(|it| it.value().to_owned()).collect(),
                env: inherited.iter().cloned().chain(env).collect(),
                cwd: value(&self.cwd).map(PathBuf::from),
            }));
        }
        let refused =
            |what: &str| ClientError::Connect { server: self.name.clone(), cause: what.to_owned() };
        let url = value(&self.url).unwrap_or_default();
        let endpoint = Endpoint {
            url: read_url(&url).map_err(|fault| refused(&format!("`url`: {fault}")))?,
            headers: self
                .header_map()
                .map_err(|key| refused(&format!("header `{key}` is illegal")))?,
            ca: value(&self.ca).map(PathBuf::from),
            read_timeout: self.sse_read_timeout,
        };
        Ok(match self.transport {
            Transport::Sse => Target::Sse(endpoint),
            Transport::StreamableHttp => Target::Streamable(endpoint),
            Transport::Stdio | Transport::Url => Target::Url(endpoint),
        })
    }

    pub(super) fn header_map(&self) -> Result<HeaderMap, String> {
        let mut headers = HeaderMap::new();
        for (key, value) in &self.headers {
            let name = HeaderName::try_from(key.as_str()).ok().ok_or_else(|| key.clone())?;
            let mut value = HeaderValue::try_from(value.value()).ok().ok_or_else(|| key.clone())?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }

    /// Reads relative paths as seen from `folder`, and runs the server there if nothing else is said.
    pub fn anchor(&mut self, folder: &Path) {
        let anchored = |path: &Filled| path.meaning(folder.join(path.value()).to_string_lossy());
        self.cwd = Some(
            self.cwd.as_ref().map_or_else(|| Filled::literal(folder.to_string_lossy()), anchored),
        );
        self.ca = self.ca.as_ref().map(anchored);
    }

    /// How the server is started or reached, as it is written: with the names of variables, not their values.
    /// To be asked before paths are [anchored](Self::anchor): where a workspace lies is not a part of it.
    pub fn way(&self) -> Way {
        let written = |it: &Option<Filled>| it.as_ref().map(ToString::to_string);
        if self.transport != Transport::Stdio {
            let url = written(&self.url).unwrap_or_default();
            let way = Way::address(self.transport.as_str(), &url);
            return way.headers(self.headers.iter().map(|(key, _)| key.as_str()));
        }
        let args = self.args.iter().map(ToString::to_string);
        let way = Way::process(&written(&self.command).unwrap_or_default(), args);
        let way = way.variables(self.env.iter().map(|(key, _)| key.as_str()));
        match written(&self.cwd) {
            Some(folder) => way.within(&folder),
            None => way,
        }
    }

    /// What must not stand in a log or an error: whatever came out of a variable, every header, and
    /// what stands in the environment under a name that sounds like a secret.
    pub fn masker(&self) -> Masker {
        let texts = self.args.iter().chain(&self.command).chain(&self.cwd).chain(&self.url);
        let texts = texts.chain(&self.ca);
        let pairs = self.env.iter().chain(&self.headers);
        let secrets = texts.chain(pairs.map(|(_, it)| it)).flat_map(|it| it.secrets.clone());
        let secrets = secrets.chain(self.secrets.0.iter().cloned());
        let named = self.env.iter().filter(|(key, _)| sounds_secret(key));
        let whole = named.chain(&self.headers).flat_map(|(_, it)| {
            let value = it.value();
            let bare = value.split_once(' ').map_or(value, |(_, token)| token);
            [value.to_owned(), bare.to_owned()]
        });
        Masker::new(secrets.chain(whole))
    }
}

/// Whether a variable of this name probably holds a secret. What is masked here is the value, wherever it stands; so
/// in doubt it is one.
fn sounds_secret(key: &str) -> bool {
    let lower = key.to_ascii_lowercase();
    let hints = ["token", "key", "secret", "passw", "auth", "cred"];
    names_secret(key) || hints.iter().any(|it| lower.contains(it))
}

/// What is wrong with an address, or the address.
pub(super) fn read_url(text: &str) -> Result<Uri, &'static str> {
    let url: Uri = text.parse().ok().ok_or("it is not an address")?;
    match url.scheme_str() {
        Some("http" | "https") => {}
        Some(_) => return Err("it must begin with http:// or https://"),
        None => return Err("it must be a whole address, with http:// or https://"),
    }
    match url.authority() {
        Some(authority) if authority.as_str().contains('@') => {
            Err("it must not hold a user or password; use `headers`")
        }
        Some(authority) if authority.host().is_empty() => Err("it has no host"),
        Some(_) => Ok(url),
        None => Err("it has no host"),
    }
}
