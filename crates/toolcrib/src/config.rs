//! The only place that looks into the process's environment.

use std::path::Path;

use toolcrib_sources::mcp::{self, Client, ClientOptions, ExecutionError, ServerConfig};

/// The value of a variable of this process's environment; none where it is not UTF-8.
pub fn environment(name: &str) -> Option<String> {
    // A name with these makes the standard library panic.
    if name.is_empty() || name.contains(['=', '\0']) {
        return None;
    }
    #[expect(clippy::disallowed_methods, reason = "this is the place that may")]
    std::env::var(name).ok()
}

/// `value` with every `${NAME}` replaced by the value of that environment variable, or by nothing.
///
/// ```
/// assert_eq!(toolcrib::substitute_env_vars("no variable"), "no variable");
/// assert_eq!(toolcrib::substitute_env_vars("${NO_SUCH_VARIABLE_HERE}"), "");
/// ```
pub fn substitute_env_vars(value: &str) -> String {
    mcp::substitute_env_vars(value, &environment)
}

/// The servers of an `mcp.json`, with variables from this process's environment.
///
/// ```no_run
/// for server in toolcrib::load_mcp_config("mcp.json")? {
///     let line = format!("Server: {}, Transport: {}", server.name, server.transport);
/// }
/// # Ok::<(), toolcrib::sources::mcp::ExecutionError>(())
/// ```
pub fn load_mcp_config(path: impl AsRef<Path>) -> Result<Vec<ServerConfig>, ExecutionError> {
    mcp::load_mcp_config(path.as_ref(), &environment)
}

/// A client of the servers of an `mcp.json`, connected to none of them yet.
///
/// ```no_run
/// # async fn show() -> Result<(), Box<dyn std::error::Error>> {
/// let client = toolcrib::load_mcp_client("mcp.json")?;
/// let tools = client.list_tools("my-server").await?;
/// client.close().await;
/// # Ok(()) }
/// ```
pub fn load_mcp_client(path: impl AsRef<Path>) -> Result<Client, ExecutionError> {
    let options = ClientOptions::with_environment(&environment);
    mcp::load_mcp_client(path.as_ref(), &environment, options)
}
