//! What a tool is, and how many lists of tools become one.
//!
//! Pure: no files, no network, no clock, no environment. Tools come in as lists from sources
//! ([`Source`]), get public names that are the same from start to start ([`name`], [`naming`]), pass
//! a filter ([`ToolFilter`]), and become one sorted [`Catalogue`] in which a name leads to the tool
//! it stands for. What goes wrong on the way is a [`Problem`], never a missing answer.
//!
//! # The seed's names and ours
//!
//! | seed 000 (`orbiter.mcp.tools`) | here |
//! |---|---|
//! | `MCPToolError` | [`ToolError`] |
//! | `MCPToolFilter(include, exclude)`, `accepts`, `apply` | [`ToolFilter`], [`ToolFilter::accepts`], [`ToolFilter::apply`] |
//! | `MCPToolWrapper`: `name`, `description`, `parameters`, `original_name`, `server_name`, `execute` | [`McpTool`] with methods of the same names |
//! | `convert_mcp_tools` | [`convert_mcp_tools`] |
//! | `extract_schema` | [`extract_schema`] |
//! | `load_tools_from_connection` | [`load_tools_from_connection`] |
//! | `load_tools_from_client` | [`load_tools_from_client`] |
//! | `namespace_tool_name` | [`namespace_tool_name`] |
//! | `parse_namespaced_name` | [`parse_namespaced_name`] |
//! | the duck-typed connection (`name`, `list_tools`, `call_tool`) | the trait [`ToolServer`] |
//! | the duck-typed client (`server_names`, `connect`) | the trait [`ToolServers`] |
//!
//! Seed 001 (`orbiter.mcp.execution`) needs processes and a network; its table stands in
//! `toolcrib-sources`.

mod json;
mod aside;
mod problem;
mod tool;
mod outcome;
mod source;
pub mod name;
mod filter;
mod schema;
mod validate;
pub mod naming;
pub mod poison;
pub mod lint;
mod catalogue;
pub mod lock;
mod look;
mod wrapper;

pub use aside::{Aside, AsideField, AsidePart, AsidePlace};
pub use catalogue::{
    Catalogue, Conflict, Entry, Hidden, HiddenBecause, Listing, Origin, Renamed, Settings,
};
pub use filter::{ToolFilter, Verdict};
pub use json::Json;
pub use look::{Look, suspicions};
pub use name::{NamespacedName, namespace_tool_name, parse_namespaced_name};
pub use naming::{Name, NameStyle};
pub use outcome::{Outcome, OutcomeFault, Part, PartKind};
pub use problem::{Problem, Severity, nearest};
pub use schema::{OnFault, SchemaFault, extract_schema};
pub use source::{
    Answering, Blame, BoxFuture, CallContext, CallError, ClientError, Emits, Keep, Listener,
    Offers, Others, Resource, Source, SourceState, Tally, Visitor, Workers,
};
pub use tool::{Annotations, Tool, ToolFault};
pub use validate::{Checked, Fault, Faults, Formats, Validator};
pub use wrapper::{
    CallTool, Convert, McpTool, OneServer, ToolError, ToolOutput, ToolServer, ToolServers,
    convert_mcp_tools, load_tools_from_client, load_tools_from_connection,
};
