//! Why a configuration cannot be had, or a call brought nothing after all attempts.

use toolcrib_catalogue::{CallError, ClientError};

use crate::mcp::ConfigFault;

/// Why an `mcp.json` cannot be used, or a call with retries failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExecutionError {
    /// The file is not there.
    #[error("MCP config file not found: {path}")]
    NotFound {
        /// Which.
        path: String,
    },
    /// Something in the file is wrong.
    #[error("Failed to parse MCP config '{path}': {fault}")]
    Config {
        /// Which file.
        path: String,
        /// What is wrong, and where.
        fault: Box<ConfigFault>,
    },
    /// A server cannot be used as configured, or does not exist. Not tried again.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// All attempts failed.
    #[error("MCP tool '{tool}' on '{server}' failed after {attempts} attempts: {cause}")]
    Exhausted {
        /// The tool.
        tool: String,
        /// The server.
        server: String,
        /// How often it was tried.
        attempts: u32,
        /// Why the last attempt failed; never empty.
        cause: String,
    },
    /// The server answered, and the answer is no. Not tried again.
    #[error("MCP tool '{tool}' on '{server}' failed: {source}")]
    Answered {
        /// The tool.
        tool: String,
        /// The server.
        server: String,
        /// What it said.
        source: CallError,
    },
}
