//! Toolcrib: one counter between AI agents and every tool they use over MCP.
//!
//! This crate is the binary `toolcrib` and, as a library, the front door to the others. What each of
//! them is for:
//!
//! * [`catalogue`]: what a tool is, and how many lists of tools become one;
//! * [`sources`]: where tools come from;
//! * [`server`]: who may ask, and how;
//! * [`context`]: what the model gets to see;
//! * [`events`]: append, follow, acknowledge;
//! * [`wire`]: MCP as it travels.
//!
//! The functions here are those of the seed that look into the process's environment; everything else
//! takes the environment as an argument.

pub use toolcrib_bus as events;
pub use toolcrib_catalogue as catalogue;
pub use toolcrib_context as context;
pub use toolcrib_server as server;
pub use toolcrib_sources as sources;
pub use toolcrib_wire as wire;

mod audit;
mod bus;
mod config;
mod data;
mod desk;
mod guard;
mod limits;
mod network;
mod own;
mod panics;
mod python;
mod remote;
mod schema;
mod shape;
mod telemetry;
mod tokens;
mod workspace;

pub use audit::{AUDIT_FOLDER, Auditing};
pub use bus::BusSettings;
pub use config::{environment, load_mcp_client, load_mcp_config, substitute_env_vars};
pub use data::{Claim, Data, Owner};
pub use desk::{Desk, DeskError};
pub use guard::{LOCK_FILE, Packages, read_lock, write_lock};
pub use network::{Network, NetworkError, network_yaml_schema, read_address};
pub use own::Own;
pub use panics::tell_panics;
pub use remote::Remote;
pub use schema::{INLINE, RATE, SHORT_TIME, SIZE, TIME};
pub use shape::{Results, Sessions};
pub use tokens::{MadeToken, TOKENS_FILE, Tokens};
pub use workspace::{OpenError, Workspace};
