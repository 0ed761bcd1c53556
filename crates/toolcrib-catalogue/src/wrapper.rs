//! A tool of an MCP server as a thing that can be called: the library side of the seed.
//!
//! [`ToolServer`] is a connection to one server, [`ToolServers`] a client that has several. Both are
//! traits, so that a caller's own connection, or one in a test, works as well as ours.

use std::{future::Future, sync::Arc};

use serde::Serialize;

use crate::{
    CallError, ClientError, Json, Outcome, Part, Tool, ToolFilter, extract_schema,
    name::DEFAULT_NAMESPACE, namespace_tool_name,
};

/// A connection to one MCP server.
pub trait ToolServer: Send + Sync {
    /// The server's name in the configuration.
    fn name(&self) -> &str;

    /// All tools of the server.
    fn list_tools(&self) -> impl Future<Output = Result<Vec<Arc<Tool>>, CallError>> + Send;

    /// Calls a tool by its own name.
    fn call_tool(
        &self,
        tool: &str,
        arguments: Option<Json>,
    ) -> impl Future<Output = Result<Outcome, CallError>> + Send;
}

/// A client that knows several servers.
pub trait ToolServers: Send + Sync {
    /// What it has for a connection.
    type Server: ToolServer;

    /// The names of its servers, in the order of the configuration.
    fn server_names(&self) -> Vec<String>;

    /// The connection to one of them, made if there is none.
    fn connect(
        &self,
        server: &str,
    ) -> impl Future<Output = Result<Arc<Self::Server>, ClientError>> + Send;
}

/// Something a tool can be called through: a client, which needs the server's name, or one
/// connection, which does not ask for it.
pub trait CallTool: Send + Sync {
    /// Calls `tool` of `server`.
    fn call_tool(
        &self,
        server: &str,
        tool: &str,
        arguments: Option<Json>,
    ) -> impl Future<Output = Result<Outcome, CallError>> + Send;
}

/// Any [`ToolServer`] as something to call through.
#[derive(Debug)]
pub struct OneServer<'a, S>(pub &'a S);

impl<S: ToolServer> CallTool for OneServer<'_, S> {
    async fn call_tool(
        &self,
        _server: &str,
        tool: &str,
        arguments: Option<Json>,
    ) -> Result<Outcome, CallError> {
        self.0.call_tool(tool, arguments).await
    }
}

/// Why a tool could not be made or used.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ToolError {
    /// Not `namespace__server__tool`.
    #[error("Invalid namespaced tool name '{0}': expected format 'namespace__server__tool'")]
    InvalidName(String),
    /// The call brought no result.
    #[error("MCP tool '{tool}' on server '{server}' failed: {source}")]
    Failed {
        /// The tool's own name.
        tool: String,
        /// Its server.
        server: String,
        /// Why.
        source: CallError,
    },
    /// The tool says that it failed.
    #[error("MCP tool '{tool}' returned error: {}", .outcome.text())]
    Returned {
        /// The tool's own name.
        tool: String,
        /// What it said.
        outcome: Box<Outcome>,
    },
    /// A server could not be asked for its tools.
    #[error("Failed to list tools from server '{server}': {source}")]
    List {
        /// The server.
        server: String,
        /// Why.
        source: CallError,
    },
    /// Arguments that are no JSON object.
    #[error("the arguments of a tool must be a JSON object")]
    Arguments,
}

/// What a tool gave back: the joined text, and everything else by type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    /// The texts, joined by line ends.
    pub text: String,
    /// The structured result, if there is one.
    pub structured: Option<Json>,
    /// All parts, pictures and resources among them.
    pub parts: Vec<Part>,
}

/// A tool of an MCP server, named for a catalogue and ready to be executed.
///
/// ```
/// # use std::sync::Arc;
/// # use toolcrib_catalogue::*;
/// struct Echo;
///
/// impl ToolServer for Echo {
///     fn name(&self) -> &str {
///         "my-server"
///     }
///     async fn list_tools(&self) -> Result<Vec<Arc<Tool>>, CallError> {
///         Ok(vec![Arc::new(Tool::read(Json::parse(r#"{"name":"echo"}"#).unwrap()).unwrap())])
///     }
///     async fn call_tool(&self, _: &str, arguments: Option<Json>) -> Result<Outcome, CallError> {
///         let text = arguments.unwrap_or(Json::empty_object()).to_string();
///         let result = serde_json::json!({ "content": [{ "type": "text", "text": text }] });
///         Ok(Outcome::read(Json::of(&result).unwrap()).unwrap())
///     }
/// }
///
/// # tokio::runtime::Runtime::new().unwrap().block_on(async {
/// let tools = load_tools_from_connection(Arc::new(Echo), &Convert::default()).await?;
/// assert_eq!(tools[0].name(), "mcp__my_server__echo");
/// assert_eq!(tools[0].description(), "MCP tool: echo");
/// assert_eq!(tools[0].parameters().as_str(), r#"{"type":"object","properties":{}}"#);
/// assert_eq!((tools[0].original_name(), tools[0].server_name()), ("echo", "my-server"));
///
/// let output = tools[0].execute(&serde_json::json!({ "q": 1 })).await?;
/// assert_eq!(output.text, r#"{"q":1}"#);
/// # Ok::<(), ToolError>(())
/// # }).unwrap();
/// ```
#[derive(Debug)]
pub struct McpTool<S> {
    name: String,
    description: String,
    parameters: Json,
    tool: Arc<Tool>,
    server: Arc<S>,
}

/// How tools are converted.
#[derive(Debug, Clone)]
pub struct Convert {
    /// What their names begin with.
    pub namespace: String,
    /// Which are taken, by original name.
    pub filter: ToolFilter,
}

impl Default for Convert {
    fn default() -> Self {
        Self { namespace: DEFAULT_NAMESPACE.to_owned(), filter: ToolFilter::default() }
    }
}

impl<S: ToolServer> McpTool<S> {
    /// Wraps one tool of `server`.
    pub fn new(tool: Arc<Tool>, server: Arc<S>, namespace: &str) -> Self {
        let description = tool.description.clone().filter(|it| !it.is_empty());
        Self {
            name: namespace_tool_name(&tool.name, server.name(), namespace),
            description: description.unwrap_or_else(|| format!("MCP tool: {}", tool.name)),
            parameters: extract_schema(&tool),
            tool,
            server,
        }
    }

    /// `namespace__server__tool`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the tool does.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// The schema of its arguments.
    pub fn parameters(&self) -> &Json {
        &self.parameters
    }

    /// What its server calls it.
    pub fn original_name(&self) -> &str {
        &self.tool.name
    }

    /// Its server.
    pub fn server_name(&self) -> &str {
        self.server.name()
    }

    /// The whole definition.
    pub fn tool(&self) -> &Tool {
        &self.tool
    }

    /// Calls the tool. `arguments` must serialise to an object; an empty one is sent as none.
    pub async fn execute(&self, arguments: &impl Serialize) -> Result<ToolOutput, ToolError> {
        let arguments = Json::of(arguments).ok().filter(Json::is_object);
        let arguments = arguments.ok_or(ToolError::Arguments)?;
        let arguments = Some(arguments).filter(|it| it.as_bytes() != b"{}");
        let tool = || self.tool.name.clone();
        let outcome = self.server.call_tool(&self.tool.name, arguments).await;
        let outcome = outcome.map_err(|source| ToolError::Failed {
            tool: tool(),
            server: self.server.name().to_owned(),
            source,
        })?;
        if outcome.is_error {
            return Err(ToolError::Returned { tool: tool(), outcome: Box::new(outcome) });
        }
        let (text, structured) = (outcome.text(), outcome.structured);
        Ok(ToolOutput { text, structured, parts: outcome.parts })
    }

    /// The shape in which model interfaces take functions.
    ///
    /// ```
    /// # use toolcrib_catalogue::{McpTool, ToolServer};
    /// # fn show<S: ToolServer>(tool: &McpTool<S>) {
    /// let schema = tool.to_schema();
    /// assert_eq!(schema["type"], "function");
    /// assert_eq!(schema["function"]["name"], tool.name());
    /// # }
    /// ```
    pub fn to_schema(&self) -> serde_json::Value {
        serde_json::json!({
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters.get::<serde_json::Value>(),
            },
        })
    }
}

/// Wraps the tools that pass the filter, in the order given.
///
/// ```
/// # use std::sync::Arc;
/// # use toolcrib_catalogue::*;
/// # fn show<S: ToolServer>(server: Arc<S>, tools: &[Arc<Tool>]) {
/// let only_search = Convert { filter: ToolFilter::new(["search"], [""; 0]), ..Default::default() };
/// for tool in convert_mcp_tools(tools, &server, &only_search) {
///     assert_eq!(tool.original_name(), "search");
/// }
/// # }
/// ```
pub fn convert_mcp_tools<S: ToolServer>(
    tools: &[Arc<Tool>],
    server: &Arc<S>,
    convert: &Convert,
) -> Vec<McpTool<S>> {
    let taken = tools.iter().filter(|it| convert.filter.accepts(&it.name));
    taken.map(|it| McpTool::new(Arc::clone(it), Arc::clone(server), &convert.namespace)).collect()
}

/// Asks one server for its tools and wraps them. For an example see [`McpTool`].
pub async fn load_tools_from_connection<S: ToolServer>(
    server: Arc<S>,
    convert: &Convert,
) -> Result<Vec<McpTool<S>>, ToolError> {
    let tools = server.list_tools().await.map_err(|source| list_error(server.name(), source))?;
    Ok(convert_mcp_tools(&tools, &server, convert))
}

/// Asks every server of a client for its tools, one after the other, and wraps them all. Stops at
/// the first server that fails; a catalogue does not, see [`crate::Catalogue`].
///
/// ```
/// # use toolcrib_catalogue::*;
/// # async fn show<C: ToolServers>(client: &C) -> Result<(), ToolError> {
/// let without = ToolFilter { exclude: ["dangerous_tool".to_owned()].into(), ..Default::default() };
/// let convert = Convert { filter: without, ..Default::default() };
/// for tool in load_tools_from_client(client, &convert).await? {
///     let line = format!("{}: {}", tool.name(), tool.description());
/// }
/// # Ok(()) }
/// ```
pub async fn load_tools_from_client<C: ToolServers>(
    client: &C,
    convert: &Convert,
) -> Result<Vec<McpTool<C::Server>>, ToolError> {
    let mut all = Vec::new();
    for name in client.server_names() {
        let server = client.connect(&name).await;
        let server = server.map_err(|source| list_error(&name, source.into()))?;
        all.extend(load_tools_from_connection(server, convert).await?);
    }
    Ok(all)
}

fn list_error(server: &str, source: CallError) -> ToolError {
    ToolError::List { server: server.to_owned(), source }
}
