//! `toolcrib schema FILE`: what may stand in a file of the workspace, for editors.

use std::process::ExitCode;

use serde_json::Value;
use toolcrib::network_yaml_schema;
use toolcrib_sources::mcp::mcp_json_schema;

use super::Failure;
use crate::{cli::SchemaFile, terminal};

pub(crate) fn run(file: SchemaFile) -> Result<ExitCode, Failure> {
    terminal::print(&format!("{:#}\n", of(file)))?;
    Ok(ExitCode::SUCCESS)
}

/// The schema of a file.
pub(super) fn of(file: SchemaFile) -> Value {
    match file {
        SchemaFile::Network => network_yaml_schema(),
        SchemaFile::Mcp => mcp_json_schema(),
    }
}
