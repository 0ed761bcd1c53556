//! The console: a page to look at the gateway with, and what the page asks for besides MCP (`/api`).
//!
//! The page is an MCP client like any other: it calls tools, reads resources and takes calls back over `/mcp`, so
//! whoever looks sees and does what their group may. `/api` is for what MCP does not have. What concerns other
//! groups, and whatever changes how the gateway runs, is for operators: a group with `operator: true`, whoever
//! comes in by the private socket, and everybody on this machine where there are no tokens. Nothing here takes a
//! command to run.

mod files;
mod routes;
mod catalogue;
mod calls;
mod servers;
mod pins;
mod events;
mod keeping;
mod since;
mod room;

use std::{
    fmt, io,
    sync::{Arc, OnceLock},
};

use bytes::Bytes;
use http::{Response, StatusCode};
use parking_lot::Mutex;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use toolcrib_catalogue::{Problem, lock::Lock};

use self::room::Room;
pub(crate) use self::{
    files::{RESOURCE_POLICY, is_file, serve},
    routes::{Caught, answer, endpoints},
    since::Since,
};
use crate::{
    access::Caller,
    http::{Body, decoded, typed},
};

/// What only whoever started the gateway can do. The server knows no files of the workspace, and no way to start
/// anything.
pub trait Operator: Send + Sync + fmt::Debug {
    /// Starts a source anew; whether there is one of this name that can be.
    fn restart(&self, source: &str) -> bool;

    /// What is wrong with the files of the workspace, and with what was started. Without secrets.
    fn problems(&self) -> Vec<Problem>;

    /// What was accepted, as it is on disk.
    fn read_lock(&self) -> Option<Lock>;

    /// Keeps what is accepted.
    fn write_lock(&self, lock: &Lock) -> io::Result<()>;

    /// The sessions that were recorded, newest first.
    fn sessions(&self) -> Vec<Recorded>;

    /// The lines of one of them.
    fn session(&self, name: &str) -> io::Result<Vec<u8>>;

    /// What the process takes of the machine.
    fn usage(&self) -> Usage {
        Usage::default()
    }
}

/// What the process takes of the machine, as far as it is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Memory in use, in bytes.
    pub memory: Option<u64>,
    /// Open files and sockets.
    pub files: Option<u64>,
}

/// A session that was recorded.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Recorded {
    /// What its file is called.
    pub name: String,
    /// How large it is.
    pub bytes: u64,
}

/// What the console keeps.
#[derive(Debug)]
pub(crate) struct Console {
    /// What was wrong with the catalogue when it was last built.
    pub(crate) problems: Mutex<Vec<Problem>>,
    operator: OnceLock<Arc<dyn Operator>>,
    room: Arc<Room>,
    /// When the gateway began, in milliseconds since 1970.
    begin: u64,
    /// Two who accept at once would undo each other's work.
    accepting: Mutex<()>,
}

impl Console {
    pub(crate) fn new() -> Self {
        Self {
            problems: Mutex::default(),
            operator: OnceLock::new(),
            room: Arc::default(),
            begin: toolcrib_bus::now_ms(),
            accepting: Mutex::default(),
        }
    }

    /// Who does what only the one who started the gateway can do. The first counts.
    pub(crate) fn set_operator(&self, operator: Arc<dyn Operator>) {
        drop(self.operator.set(operator));
    }

    /// When the gateway began, in milliseconds since 1970.
    pub(crate) fn begin(&self) -> u64 {
        self.begin
    }

    /// What the process takes of the machine.
    pub(crate) fn usage(&self) -> Usage {
        self.operator.get().map(|it| it.usage()).unwrap_or_default()
    }

    fn operator(&self) -> Result<&dyn Operator, Fault> {
        let operator = self.operator.get().map(|it| &**it);
        operator
            .ok_or_else(|| Fault::new(StatusCode::NOT_IMPLEMENTED, "this gateway cannot do that"))
    }
}

/// One request of the page.
#[derive(Debug)]
struct Asked {
    caller: Caller,
    /// Whether it came straight from a program of this machine.
    local: bool,
    /// Whether the caller may do what operators may, as things are now.
    operates: bool,
    query: Vec<(String, String)>,
    body: Bytes,
}

impl Asked {
    fn get(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|(it, _)| it == key).map(|(_, value)| value.as_str())
    }

    fn need(&self, key: &str) -> Result<&str, Fault> {
        self.get(key).ok_or_else(|| Fault::wrong(format!("`{key}` is required")))
    }

    /// A number between these.
    fn number(&self, key: &str, most: usize, usual: usize) -> Result<usize, Fault> {
        let Some(text) = self.get(key) else { return Ok(usual) };
        let number = text.parse().ok().filter(|it| (1..=most).contains(it));
        number.ok_or_else(|| Fault::wrong(format!("`{key}` must be between 1 and {most}")))
    }

    fn body<T: DeserializeOwned>(&self) -> Result<T, Fault> {
        serde_json::from_slice(&self.body)
            .map_err(|error| Fault::wrong(format!("the body does not fit: {error}")))
    }
}

/// What stands behind the `?`.
fn read_query(text: &str) -> Result<Vec<(String, String)>, Fault> {
    let pairs = text.split('&').filter(|it| !it.is_empty());
    let pairs = pairs.map(|it| {
        let (key, value) = it.split_once('=').unwrap_or((it, ""));
        let value = decoded(value).map_err(|error| Fault::wrong(error.to_string()))?;
        Ok((key.to_owned(), value))
    });
    pairs.collect()
}

/// Why something is not answered.
#[derive(Debug)]
struct Fault {
    status: StatusCode,
    message: String,
}

impl Fault {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn wrong(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    fn unknown(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, message)
    }

    /// It is not as it was when the page showed it.
    fn stale(message: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, message)
    }

    fn unavailable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, message)
    }

    fn response(&self) -> Response<Body> {
        let text = json!({ "error": self.message }).to_string();
        typed(self.status, "application/json", Body::whole(text))
    }
}

/// A name in a body.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

fn ok(value: &Value) -> Response<Body> {
    whole(value.to_string())
}

fn whole(text: String) -> Response<Body> {
    typed(StatusCode::OK, "application/json", Body::whole(text))
}
