//! MCP as it travels.
//!
//! Frames are read once into an envelope and raw payloads ([`frame`], [`json`]); two eras of the
//! protocol ([`revision`]) go over three transports (child processes, streamable HTTP, HTTP+SSE), and a
//! [`Peer`] is a connection on which all of that is settled. Nothing here knows what a catalogue, a
//! group or a workspace is.

pub mod json;
pub mod frame;
pub mod revision;
pub mod modern;
pub mod sse;
pub mod text;
mod error;
mod spelling;
mod spool;
mod sift;
mod board;
mod reaper;
mod stdio;
mod standard;
mod fields;
mod line;
mod pool;
mod http;
mod hook;
mod streamable;
mod legacy_sse;
mod mirror;
mod client;
mod incoming;
mod handshake;

pub use board::Ending;
pub use client::{Answered, Aside, Ask, Greeting, Inbox, Options, Peer, Reply, Target};
pub use error::{ConnectError, RequestError};
pub use fields::Fields;
pub use frame::{Frame, FrameError, FrameFault, Id, RpcError};
pub use hook::{Hook, ask_once};
pub use http::Endpoint;
pub use line::after_others;
pub use mirror::{Mirrored, mirrored};
pub use reaper::Reaper;
pub use revision::{Era, Identity, Revision};
pub use spelling::spelt;
pub use spool::{Field, Place, Spool, Spooled, SpooledPart};
pub use standard::{standard_input, standard_output};
pub use stdio::ServerCommand;
