//! How a request, and a connection, can fail.

use std::time::Duration;

use bytes::Bytes;

use crate::frame::RpcError;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// It was never sent.
    #[error("{cause}")]
    NotSent {
        /// Why not.
        cause: String,
    },
    /// The server cannot be reached.
    #[error("cannot reach {cause}")]
    Unreachable {
        /// Which address, and why.
        cause: String,
    },
    /// It was sent, and no answer can come any more.
    #[error("{cause}")]
    Lost {
        /// Why not.
        cause: String,
    },
    /// No answer in time; the server was told to stop.
    #[error("no answer within {} ms", .after.as_millis())]
    TimedOut {
        /// How long we waited.
        after: Duration,
        /// Whether it was sent.
        sent: bool,
    },
    /// The server answered with an error.
    #[error("{} (code {})", .0.message, .0.code)]
    Rpc(RpcError),
    /// The answer is not one.
    #[error("{cause}")]
    Malformed {
        /// What is wrong with it.
        cause: String,
    },
    /// The answer is too large to be kept in memory, and we have no place to put it.
    #[error("its answer is large, and cannot be put aside: {cause}")]
    NoRoom {
        /// What the system said.
        cause: String,
    },
    /// The server has forgotten our session; the request was not looked at.
    #[error("the server no longer knows the session")]
    Stale,
    /// The server wants to know who we are.
    #[error("it refused access (HTTP {status})")]
    Unauthorized {
        /// 401 or 403.
        status: u16,
        /// It points to a place to log in.
        oauth: bool,
    },
    /// The server sends us elsewhere, and we do not go.
    #[error("it redirects to {to}, which is not followed")]
    Redirected {
        /// Where to.
        to: String,
    },
    /// Another HTTP status.
    #[error("it answered HTTP {status}")]
    Http {
        /// The status.
        status: u16,
        /// How many seconds to wait, if it says so.
        retry_after: Option<u64>,
        /// The beginning of the body.
        body: Bytes,
    },
}

/// Why there is no connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// The program did not start.
    #[error("cannot start `{program}`: {}", if *.not_found { "there is no such program" } else { .cause })]
    Spawn {
        /// The program.
        program: String,
        /// There is none of that name.
        not_found: bool,
        /// What the system said.
        cause: String,
    },
    /// It cannot run there.
    #[error("the working folder `{path}` is not a folder")]
    WorkingFolder {
        /// Where.
        path: String,
    },
    /// It ended, or its connection did.
    #[error("{cause}")]
    Ended {
        /// Why.
        cause: String,
        /// It had only been asked which revisions it speaks; some servers die of that.
        on_probe: bool,
    },
    /// It said nothing for too long.
    #[error("{cause}")]
    TimedOut {
        /// How long, and what it last said.
        cause: String,
    },
    /// It speaks no revision that we speak.
    #[error("it speaks protocol revision `{offered}`, which toolcrib does not")]
    Version {
        /// What it offered.
        offered: String,
    },
    /// What it sent as its address is none.
    #[error("it sent `{text}` as its address")]
    Address {
        /// What it sent.
        text: String,
    },
    /// Its messages were to go to another host.
    #[error("it wants its messages sent to another host, {to}")]
    ForeignAddress {
        /// Which.
        to: String,
    },
    /// TLS could not be set up.
    #[error("TLS: {cause}")]
    Tls {
        /// Why.
        cause: String,
    },
    /// The file of certificates is no good.
    #[error("`ca` file `{path}`: {cause}")]
    Ca {
        /// Which.
        path: String,
        /// Why.
        cause: String,
    },
    /// A request of the handshake failed.
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl ConnectError {
    /// What a user can do about it, where we know.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Spawn { program, not_found: true, .. } => {
                format!("install `{program}`, or write its full path as `command`")
            }
            Self::WorkingFolder { .. } => "`cwd` must name an existing folder".to_owned(),
            Self::Request(RequestError::Unauthorized { oauth: true, .. }) => {
                "the server wants OAuth, which toolcrib does not do yet; put a token in `headers`: \
                 {\"Authorization\": \"Bearer ${TOKEN}\"}"
                    .to_owned()
            }
            Self::Request(RequestError::Unauthorized { .. }) => {
                "put what the server wants in `headers`: {\"Authorization\": \"Bearer ${TOKEN}\"}"
                    .to_owned()
            }
            Self::Request(RequestError::Redirected { .. }) => {
                "write the final address as `url`, if you trust it".to_owned()
            }
            Self::Request(RequestError::Unreachable { .. }) => {
                "is the server running, and is `url` right?".to_owned()
            }
            Self::Request(RequestError::Http { status: 400 | 404 | 405, .. }) => {
                "is `url` the address of the MCP endpoint? For a server of the old HTTP+SSE kind \
                 write \"type\": \"sse\""
                    .to_owned()
            }
            Self::TimedOut { .. } => {
                "a slow start may need a larger `handshake_timeout`".to_owned()
            }
            _ => return None,
        })
    }
}
