//! The servers of an `mcp.json`: reading the file, connecting, staying connected, calling.
//!
//! In reading order: [`env`](substitute_env_vars) fills in variables, `config` reads the file,
//! `connection` keeps one server alive, `client` has several of them, `retry` calls again.

mod env;
mod config;
mod error;
mod backoff;
mod listing;
mod memory;
mod bar;
mod connection;
mod aside;
mod calling;
mod wishes;
mod isolated;
mod port;
mod client;
mod retry;

pub use client::{Calls, Client, ClientOptions};
pub use config::{
    Config, ConfigFault, Isolation, Rate, ServerConfig, Severity, Transport, is_kept_secret,
    is_plain_http, is_this_machine, is_written_secret, load_mcp_client, load_mcp_config,
    mcp_json_schema, plain_json, read_duration, read_mcp_config, read_rate,
};
pub use connection::Connection;
pub use env::{Filled, Lookup, substitute_env_vars};
pub use error::ExecutionError;
pub use listing::Lists;
pub use retry::{Retry, call_tool_with_retry};
pub use toolcrib_wire::Spool;
