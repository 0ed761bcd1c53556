//! `mcp.json`: which servers there are, and how to reach them.
//!
//! Reading never stops at the first fault: [`read_mcp_config`] returns the servers that can be used
//! and everything that is wrong, each with its place. The seed's [`load_mcp_config`] turns the first
//! fault that costs a server into an error.

mod caution;
mod document;
mod fault;
mod keys;
mod package;
mod server;
mod entry;

use std::{fs, io, path::Path};

pub use caution::{is_kept_secret, is_plain_http, is_this_machine, is_written_secret};
pub use document::plain_json;
pub use entry::{read_duration, read_rate};
pub use fault::{ConfigFault, Severity};
pub use keys::mcp_json_schema;
pub use server::{Isolation, Rate, ServerConfig, Transport};

use crate::mcp::{Client, ClientOptions, ExecutionError, env::Lookup};

/// The largest file that is read.
const MAX_FILE: u64 = 8 * 1024 * 1024;

/// What an `mcp.json` says.
#[derive(Debug, Default)]
pub struct Config {
    /// The servers, in the order of the file, disabled ones included.
    pub servers: Vec<ServerConfig>,
    /// Names of servers that are in the file but cannot be used.
    pub broken: Vec<String>,
    /// Everything that is wrong.
    pub faults: Vec<ConfigFault>,
}

/// Reads an `mcp.json`: what can be used, and what is wrong with the rest.
///
/// Fails only where there is no file to read.
pub fn read_mcp_config(path: &Path, lookup: Lookup<'_>) -> Result<Config, ExecutionError> {
    let text = match read_file(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ExecutionError::NotFound { path: path.display().to_string() });
        }
        Err(error) => {
            let fault = ConfigFault::of_file(format!("cannot be read: {error}"));
            return Err(config_error(path, fault));
        }
    };
    Ok(document::read(&text, lookup))
}

/// The servers of an `mcp.json`, in its order, without the disabled ones. Variables in string values
/// are filled in.
///
/// ```no_run
/// use std::path::Path;
/// use toolcrib_sources::mcp::load_mcp_config;
///
/// let env = |name: &str| (name == "TOKEN").then(|| "t".to_owned());
/// for server in load_mcp_config(Path::new("mcp.json"), &env)? {
///     let line = format!("Server: {}, Transport: {}", server.name, server.transport);
/// }
/// # Ok::<(), toolcrib_sources::mcp::ExecutionError>(())
/// ```
pub fn load_mcp_config(
    path: &Path,
    lookup: Lookup<'_>,
) -> Result<Vec<ServerConfig>, ExecutionError> {
    let config = read_mcp_config(path, lookup)?;
    for fault in config.faults {
        match fault.severity {
            Severity::Error => return Err(config_error(path, fault)),
            Severity::Note => tracing::warn!("{}: {fault}", path.display()),
        }
    }
    Ok(config.servers.into_iter().filter(|it| !it.disabled).collect())
}

/// A client that knows all servers of an `mcp.json` and is connected to none of them yet.
///
/// ```no_run
/// use std::path::Path;
/// use toolcrib_sources::mcp::{ClientOptions, load_mcp_client};
///
/// # async fn show() -> Result<(), Box<dyn std::error::Error>> {
/// let client = load_mcp_client(Path::new("mcp.json"), &|_| None, ClientOptions::default())?;
/// let tools = client.list_tools("my-server").await?;
/// client.close().await;
/// # Ok(()) }
/// ```
pub fn load_mcp_client(
    path: &Path,
    lookup: Lookup<'_>,
    options: ClientOptions,
) -> Result<Client, ExecutionError> {
    let client = Client::new(options);
    for server in load_mcp_config(path, lookup)? {
        client.add_server(server)?;
    }
    Ok(client)
}

fn config_error(path: &Path, fault: ConfigFault) -> ExecutionError {
    ExecutionError::Config { path: path.display().to_string(), fault: Box::new(fault) }
}

/// Reads a file that may be anything: a pipe would wait for ever, a device would never end.
fn read_file(path: &Path) -> io::Result<Vec<u8>> {
    let about = fs::metadata(path)?;
    if about.is_dir() {
        return Err(io::Error::other("it is a folder"));
    }
    if !about.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    if MAX_FILE < about.len() {
        return Err(io::Error::other(format!("it is larger than {} MB", MAX_FILE >> 20)));
    }
    fs::read(path)
}
