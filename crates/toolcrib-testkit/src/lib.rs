//! Fake upstreams on the real wire: a server made to order, faults included.
//!
//! A [`Plan`] says what a server offers and where it fails. The same plan runs as a child process
//! ([`Plan::command`]), over streamable HTTP ([`Running::http`]) and over HTTP+SSE ([`Running::sse`]),
//! in either era of the protocol. Nothing is mocked: there are real processes and real sockets.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test kit fails the test it is used in")]

mod plan;
mod fake;
mod http;
pub mod stdio;

pub use fake::rows;
pub use http::Running;
pub use plan::{Act, Fault, Plan, PlanTool, Speaks};
