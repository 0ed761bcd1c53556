//! The port through which tools come in: [`Source`], and how a call through it can fail.
//!
//! A source hands on a method and raw JSON. It does not judge who may call what, and it knows no
//! public names. Dropping the future of a request cancels it.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, atomic::AtomicU32},
    time::{Duration, Instant},
};

use bytes::Bytes;

use crate::{Json, Problem, Tool};

/// A future that a port returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where tools come from.
pub trait Source: Send + Sync + fmt::Debug {
    /// What people call it, such as the name of the server in `mcp.json`.
    fn label(&self) -> &str;

    /// How it is, just now.
    fn state(&self) -> SourceState;

    /// The tools it had when it was last asked; empty before the first answer.
    fn tools(&self) -> Arc<[Arc<Tool>]>;

    /// What else it offers.
    fn offers(&self) -> Offers {
        Offers::default()
    }

    /// Whether it is known what it has: from itself, or from the last time.
    fn has_listed(&self) -> bool {
        true
    }

    /// What was wrong with its last list.
    fn problems(&self) -> Vec<Problem>;

    /// Counts up whenever state, tools or problems change.
    fn version(&self) -> u64;

    /// Waits until the version is another than `version`.
    fn changed_since(&self, version: u64) -> BoxFuture<'_, ()>;

    /// Who hears from now on what the source says of its own accord.
    fn listen(&self, _listener: Arc<dyn Listener>) {}

    /// Tells the source something on behalf of a client.
    fn tell(&self, _method: &'static str, _visitor: &dyn Visitor) {}

    /// Whether all visitors share it. One that they do not share keeps a state for each.
    fn is_shared(&self) -> bool {
        true
    }

    /// Whether its tools may call others: tools of our own do, those of a server do not.
    fn calls_others(&self) -> bool {
        false
    }

    /// What it has counted of itself since it was made.
    fn tally(&self) -> Tally {
        Tally::default()
    }

    /// Sends one request and returns its result.
    ///
    /// `resources/subscribe`, `resources/unsubscribe` and `logging/setLevel` are wishes that stay: a
    /// source that has to connect anew says them again.
    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Json,
        context: CallContext,
    ) -> BoxFuture<'a, Result<Json, CallError>>;
}

/// What a source offers besides tools.
#[derive(Debug, Clone, Default)]
pub struct Offers {
    /// Prompts: they have names and definitions, as tools do.
    pub prompts: Arc<[Arc<Tool>]>,
    /// Resources, by URI.
    pub resources: Arc<[Resource]>,
    /// Templates of resources, by URI template.
    pub templates: Arc<[Resource]>,
    /// Which events its tools emit or wait for.
    pub events: Arc<[Emits]>,
}

/// A tool, and names of events that come of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emits {
    /// The tool, as its source calls it.
    pub tool: String,
    /// Names, in which `*` stands for what only a call says.
    pub pattern: String,
}

/// A resource, or a template of some.
#[derive(Debug, Clone)]
pub struct Resource {
    /// Where it is.
    pub uri: String,
    /// Its definition, as it was given.
    pub raw: Json,
}

/// How a source is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceState {
    /// On the way to its first or next connection.
    Connecting,
    /// Answers.
    Ready,
    /// Does not answer. It is tried again by itself.
    Failed {
        /// Why; never empty.
        cause: String,
        /// What to do about it, if we know.
        hint: Option<String>,
    },
    /// Was shut down.
    Closed,
}

/// What a source counts of itself, for those who watch it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tally {
    /// How often it was reached, or started, and answered.
    pub connects: u64,
    /// How often that ended without anybody asking for it.
    pub losses: u64,
    /// How often it answered what nobody waited for, or asked what nobody could be asked.
    pub strays: u64,
    /// The processes that run its tools, where we keep some for that.
    pub workers: Option<Workers>,
}

/// Processes that run tools.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Workers {
    /// How many there are.
    pub alive: u64,
    /// How many were started.
    pub starts: u64,
    /// How many of those ended in the middle of a call, or had to be ended.
    pub losses: u64,
    /// How many calls wait for one.
    pub waiting: u64,
}

/// What goes along with a request.
#[derive(Debug, Clone, Default)]
pub struct CallContext {
    /// When an answer comes too late, all attempts counted.
    pub deadline: Option<Instant>,
    /// How long one attempt may take.
    pub attempt: Option<Duration>,
    /// How often to try again, where that differs from the source's way.
    pub retries: Option<u32>,
    /// The caller knows that doing this twice does no harm.
    pub repeatable: bool,
    /// Who hears how it goes on, and answers what the source asks meanwhile.
    pub listener: Option<Arc<dyn Listener>>,
    /// The client that asks, if it is one that stays.
    pub visitor: Option<Arc<dyn Visitor>>,
    /// The group of whoever asks.
    pub group: Option<Arc<str>>,
    /// How a tool of our own calls others. Nothing of this ever goes to a server.
    pub others: Option<Arc<dyn Others>>,
    /// The caller deals with large parts of a result that were put aside ([`Json::aside`]). Anybody else
    /// gets results whole.
    pub takes_aside: bool,
    /// Counts how often the source tries again.
    pub retried: Option<Arc<AtomicU32>>,
    /// A name for what this does: done again under the same name, it is done once.
    pub once: Option<Arc<str>>,
}

/// The other tools, as whoever called this one may call them.
pub trait Others: Send + Sync + fmt::Debug {
    /// Calls a tool by its public name, and returns its result as a client would get it.
    fn call(&self, name: &str, arguments: Option<Json>) -> Answering;

    /// Emits an event on behalf of the tool, and returns where it stands once it is safe.
    fn emit(&self, name: &str, data: Json) -> Answering;

    /// Keeps something for whoever called the tool, and returns how to ask for it.
    fn store(&self, keep: Keep) -> Answering;
}

/// Something that a tool wants kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keep {
    /// What it is.
    pub content: Bytes,
    /// Of what kind, such as `text/csv`, if the tool says so.
    pub media_type: Option<String>,
    /// What people call it, if it has a name.
    pub label: Option<String>,
}

/// Hears what a source says, and answers what it asks. Must not block.
pub trait Listener: Send + Sync + fmt::Debug {
    /// A notification.
    fn notified(&self, method: &str, params: Option<Json>);

    /// The source asks something. Nothing where nobody can answer that.
    fn asked(&self, _method: &str, _params: Option<Json>) -> Option<Answering> {
        None
    }
}

/// The answer to something that a source asked, when it comes.
pub type Answering = BoxFuture<'static, Result<Json, CallError>>;

/// A client that stays for a while: it asks more than once, and can be told and asked things in between.
pub trait Visitor: Listener {
    /// Which one this is; no other has the same.
    fn key(&self) -> u64;

    /// Resolves when it is gone.
    fn ended(&self) -> BoxFuture<'static, ()>;

    /// Whether it has folders to show.
    fn has_roots(&self) -> bool;

    /// How much it wants to hear of what sources log, if it has said so.
    fn level(&self) -> Option<&'static str>;

    /// What it said that it can do: an object of the protocol. Nothing where each request says it.
    fn capabilities(&self) -> Option<Json>;
}

/// Whose fault it is that a call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Blame {
    /// The one who called.
    Caller,
    /// The server that was called.
    Upstream,
    /// Us.
    Gateway,
}

/// Why a client cannot be used as asked. Trying again would not help.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// No such server.
    #[error("No server registered with name '{0}'")]
    UnknownServer(String),
    /// The configuration lacks what the transport needs.
    #[error("Server '{server}': {transport} transport requires '{field}'")]
    Incomplete {
        /// Its name.
        server: String,
        /// What it is said to speak.
        transport: &'static str,
        /// What is missing.
        field: &'static str,
    },
    /// The server did not come up.
    #[error("Failed to connect to server '{server}': {cause}")]
    Connect {
        /// Its name.
        server: String,
        /// Why; never empty.
        cause: String,
    },
    /// Anything else that a caller's own connection finds wrong with the call itself.
    #[error("{0}")]
    Refused(String),
}

/// Why a call brought no result.
///
/// A tool that says it failed is not among these: that is an [`crate::Outcome`] with `is_error`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// The client cannot do it.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The server is not there; the request was never sent.
    #[error("{cause}")]
    Unavailable {
        /// Why not; never empty.
        cause: String,
    },
    /// The request was sent, or partly sent, and no answer can come any more.
    #[error("{cause}")]
    Lost {
        /// Why not; never empty.
        cause: String,
    },
    /// No answer in time. The server was told to stop.
    #[error("no answer within {}", crate::source::seconds(*after))]
    TimedOut {
        /// How long we waited.
        after: Duration,
        /// Whether the request had been sent.
        sent: bool,
    },
    /// The server answered with a protocol error.
    #[error("{message} (code {code})")]
    Rpc {
        /// The JSON-RPC code.
        code: i64,
        /// Its text.
        message: String,
        /// Its data.
        data: Option<Json>,
    },
    /// The answer is not one.
    #[error("{cause}")]
    Malformed {
        /// What is wrong with it.
        cause: String,
    },
    /// The answer came, and we have no place to put it.
    #[error("{cause}")]
    Storage {
        /// Why not; never empty.
        cause: String,
    },
}

impl CallError {
    /// Whose fault it is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::Client(ClientError::Connect { .. }) => Blame::Upstream,
            Self::Client(ClientError::Incomplete { .. }) | Self::Storage { .. } => Blame::Gateway,
            Self::Client(_) => Blame::Caller,
            Self::Rpc { code: -32700..=-32600, .. } if !self.is_transient() => Blame::Caller,
            _ => Blame::Upstream,
        }
    }

    /// Whether the same call might go well the next time.
    pub fn is_transient(&self) -> bool {
        match self {
            // A disk that is full now will be full in a second.
            Self::Client(_) | Self::Malformed { .. } | Self::Storage { .. } => false,
            Self::Unavailable { .. } | Self::Lost { .. } | Self::TimedOut { .. } => true,
            // An answer is an answer, unless it says that the server itself stumbled.
            Self::Rpc { code, .. } => matches!(code, -32603 | -32019..=-32000),
        }
    }

    /// Whether the server may have done what was asked, although no answer came.
    pub fn may_have_run(&self) -> bool {
        match self {
            Self::Client(_) | Self::Unavailable { .. } => false,
            Self::TimedOut { sent, .. } => *sent,
            Self::Lost { .. }
            | Self::Rpc { .. }
            | Self::Malformed { .. }
            | Self::Storage { .. } => true,
        }
    }
}

/// `1.5 s`, `20 ms`.
pub(crate) fn seconds(time: Duration) -> String {
    if time < Duration::from_millis(995) {
        // To the nearest ten: nobody waits to the millisecond.
        return format!("{} ms", (time.as_millis() + 5) / 10 * 10);
    }
    format!("{} s", (time.as_secs_f64() * 10.0).round() / 10.0)
}
