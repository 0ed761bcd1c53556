//! Where tools come from.
//!
//! One folder per kind of source. [`mcp`]: the servers of an `mcp.json`. [`python`]: the
//! functions in `tools/`, and mods in Python. [`mods`]: mods in Rust.
//! [`asyncapi`]: the operations in `events/`. [`collector`]: all tools of our own.
//!
//! # The seed's names and ours
//!
//! | seed 001 (`orbiter.mcp.execution`) | here |
//! |---|---|
//! | `MCPExecutionError` | [`mcp::ExecutionError`] |
//! | `MCPClientError` | `toolcrib_catalogue::ClientError` |
//! | `substitute_env_vars(value)` | [`mcp::substitute_env_vars`], which takes the environment as an argument; `toolcrib::substitute_env_vars` takes the process's |
//! | `load_mcp_config(path)` | [`mcp::load_mcp_config`], likewise |
//! | `load_mcp_client(path)` | [`mcp::load_mcp_client`], likewise |
//! | `MCPServerConfig` | [`mcp::ServerConfig`] |
//! | `MCPClient`: `server_names`, `add_server`, `connect`, `list_tools`, `call_tool`, `async with` | [`mcp::Client`] with methods of the same names, and [`mcp::Client::close`] |
//! | `MCPServerConnection` | [`mcp::Connection`] |
//! | `call_tool_with_retry(…, max_retries, timeout, backoff_base)` | [`mcp::call_tool_with_retry`] with [`mcp::Retry`] |
//!
//! | seed 003 (`openagents`) | here |
//! |---|---|
//! | `WorkspaceToolLoader(path).load_tools()` | [`collector::WorkspaceToolLoader`] |
//! | `EventToolLoader(path, network).load_tools()` | [`collector::EventToolLoader`]; the network is a `toolcrib_bus::Bus` |
//! | `NetworkToolCollector(network, workspace_path)`: `collect_all_tools`, `filter_tools`, `to_mcp_tools_filtered` | [`collector::NetworkToolCollector`] with methods of the same names |
//! | `AgentTool(name, description, input_schema, func)` | [`mods::AgentTool`]; in Python `toolcrib.AgentTool` and `openagents.models.tool.AgentTool` |
//! | a mod's `get_tools()` | [`mods::Mod::get_tools`]; in Python as in the seed |
//!
//! Seed 000 needs neither processes nor a network; its table stands in `toolcrib-catalogue`.

pub mod mcp;
pub mod python;
pub mod mods;
pub mod asyncapi;
pub mod collector;
