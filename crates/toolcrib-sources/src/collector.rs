//! The seed's loader and collector, for those who embed the crates: all tools of our own in one list.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};
use toolcrib_bus::Bus;
use toolcrib_catalogue::{Annotations, CallContext, Conflict, Json, Origin, Problem, Source};

use crate::{
    asyncapi::{Care, EventSource},
    mods::{AgentTool, Mod},
    python::{Python, Settings},
};

/// Loads the tools in a workspace's `tools/`, and its mods that are written in Python.
///
/// ```no_run
/// # async fn show() {
/// use toolcrib_sources::collector::WorkspaceToolLoader;
///
/// let loader = WorkspaceToolLoader::new("/path/to/workspace");
/// for tool in loader.load_tools().await {
///     let line = format!("{}: {}", tool.name, tool.description);
/// }
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct WorkspaceToolLoader {
    settings: Settings,
    /// Started when it is first needed.
    python: Arc<OnceLock<Python>>,
}

impl WorkspaceToolLoader {
    /// A loader with the usual settings.
    pub fn new(workspace: impl Into<PathBuf>) -> Self {
        Self::with(Settings::new(workspace))
    }

    /// A loader with settings of its own.
    pub fn with(settings: Settings) -> Self {
        Self { settings, python: Arc::default() }
    }

    async fn python(&self) -> &Python {
        let python = self.python.get_or_init(|| Python::start(self.settings.clone(), false));
        python.settled().await;
        python
    }

    /// The tools; a file that does not load gives none, and is among the [problems](Self::problems).
    pub async fn load_tools(&self) -> Vec<AgentTool> {
        let sources = self.python().await.sources();
        sources.into_iter().flat_map(|it| tools_of(&(it as Arc<dyn Source>))).collect()
    }

    /// What is wrong with the files.
    pub async fn problems(&self) -> Vec<Problem> {
        self.python().await.sources().iter().flat_map(|it| it.problems()).collect()
    }

    /// Ends the processes that run the tools.
    pub async fn close(&self) {
        if let Some(python) = self.python.get() {
            python.close().await;
        }
    }
}

/// Loads the tools in a workspace's `events/`. Calling one appends an event to the bus, which is the
/// network here.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use std::sync::Arc;
/// use toolcrib_bus::{Bus, Embedded, Settings};
/// use toolcrib_sources::collector::EventToolLoader;
///
/// let workspace = std::env::temp_dir().join(format!("loader-{}", std::process::id()));
/// std::fs::create_dir_all(workspace.join("events"))?;
/// std::fs::write(workspace.join("events/a.yaml"), "
/// asyncapi: 3.0.0
/// info: { title: Tasks, version: '1' }
/// channels: { c: { address: task.run } }
/// operations: { runTask: { action: send, channel: { $ref: '#/channels/c' }, x-agent-tool: { enabled: true } } }
/// ")?;
/// let network: Arc<dyn Bus> = Arc::new(Embedded::open(&workspace.join("events.db"), Settings::default())?);
/// let loader = EventToolLoader::new(&workspace, Arc::clone(&network));
/// let tools = loader.load_tools();
/// assert_eq!(tools[0].name, "runTask");
/// let result = tools[0].execute(toolcrib_catalogue::Json::empty_object()).await?;
/// assert!(result.as_str().contains("Event emitted: task.run"));
/// assert_eq!(network.state().last, 1);
/// # network.close().await; std::fs::remove_dir_all(&workspace)?; Ok(()) }
/// ```
#[derive(Debug, Clone)]
pub struct EventToolLoader(Arc<EventSource>);

impl EventToolLoader {
    /// A loader whose tools emit to this network.
    pub fn new(workspace: impl AsRef<Path>, network: Arc<dyn Bus>) -> Self {
        Self(EventSource::load(workspace.as_ref(), Ok(network), Care::Official))
    }

    /// The tools; what is no tool is among the [problems](Self::problems).
    pub fn load_tools(&self) -> Vec<AgentTool> {
        tools_of(&(Arc::clone(&self.0) as Arc<dyn Source>))
    }

    /// What is wrong with the files.
    pub fn problems(&self) -> Vec<Problem> {
        self.0.problems()
    }
}

fn tools_of(source: &Arc<dyn Source>) -> Vec<AgentTool> {
    let tool = |it: &Arc<toolcrib_catalogue::Tool>| {
        let (source, name) = (Arc::clone(source), it.name.clone());
        AgentTool {
            name: it.name.clone(),
            description: it.description.clone().unwrap_or_default(),
            input_schema: it.input_schema.clone().unwrap_or_else(Json::empty_object),
            // The seed's form of a tool has none.
            annotations: Annotations::default(),
            func: Arc::new(move |arguments: Json, context: CallContext| {
                let (source, name) = (Arc::clone(&source), Value::from(name.as_str()).to_string());
                Box::pin(async move {
                    let params = format!(r#"{{"name":{name},"arguments":{}}}"#, arguments.as_str());
                    let params = Json::from_scanned(params.into());
                    source.request("tools/call", params, context).await
                })
            }),
        }
    };
    source.tools().iter().map(tool).collect()
}

/// Collects the tools of mods, of a workspace and of its events, filters them, and turns them into MCP's form.
#[derive(Debug)]
pub struct NetworkToolCollector {
    mods: Vec<Arc<dyn Mod>>,
    loader: WorkspaceToolLoader,
    events: Option<EventToolLoader>,
    tools: BTreeMap<String, (AgentTool, Origin)>,
}

impl NetworkToolCollector {
    /// A collector over mods in Rust and a workspace.
    pub fn new(mods: Vec<Arc<dyn Mod>>, loader: WorkspaceToolLoader) -> Self {
        Self { mods, loader, events: None, tools: BTreeMap::new() }
    }

    /// The same, with the tools in `events/`.
    #[must_use]
    pub fn with_events(mut self, events: EventToolLoader) -> Self {
        self.events = Some(events);
        self
    }

    /// Collects everything: mods first, then the workspace, then events. Two tools of one name are refused.
    pub async fn collect_all_tools(&mut self) -> Result<Vec<AgentTool>, Conflict> {
        self.tools.clear();
        let rust = self.mods.iter().flat_map(|it| {
            let origin = Origin::Mod(it.name().to_owned());
            it.get_tools().into_iter().map(move |tool| (tool, origin.clone()))
        });
        let python = self.loader.python().await.sources();
        let python = python.into_iter().flat_map(|it| {
            let origin = it.origin.clone();
            let tools = tools_of(&(it as Arc<dyn Source>));
            tools.into_iter().map(move |tool| (tool, origin.clone()))
        });
        let events = self.events.iter().flat_map(EventToolLoader::load_tools);
        let events = events.map(|tool| (tool, Origin::Events));
        for (tool, origin) in rust.chain(python).chain(events).collect::<Vec<_>>() {
            if let Some((_, first)) = self.tools.get(&tool.name) {
                let (first, second) = (first.to_string(), origin.to_string());
                return Err(Conflict { name: tool.name, first, second });
            }
            self.tools.insert(tool.name.clone(), (tool, origin));
        }
        Ok(self.tools.values().map(|(tool, _)| tool.clone()).collect())
    }

    /// Where a tool was found: `workspace`, `mod:search_mod`.
    pub fn tool_source(&self, name: &str) -> Option<String> {
        self.tools.get(name).map(|(_, origin)| origin.to_string())
    }

    /// What remains: of all tools, those that are exposed, without those that are excluded. A list that is
    /// absent is no rule. A name that no tool has is a problem.
    pub fn filter_tools(
        &self,
        exposed: Option<&[String]>,
        excluded: Option<&[String]>,
    ) -> (Vec<AgentTool>, Vec<Problem>) {
        let mut problems = Vec::new();
        for (key, list) in [("exposed_tools", exposed), ("excluded_tools", excluded)] {
            let list = list.unwrap_or_default().iter();
            let mut unknown: Vec<&String> =
                list.filter(|it| !self.tools.contains_key(*it)).collect();
            unknown.sort();
            unknown.dedup();
            for name in unknown {
                problems.push(Problem::new(key, format!("`{name}` is the name of no tool")));
            }
        }
        let shown = |name: &String| {
            exposed.is_none_or(|it| it.contains(name))
                && !excluded.is_some_and(|it| it.contains(name))
        };
        let tools = self.tools.values().map(|(tool, _)| tool).filter(|it| shown(&it.name));
        (tools.cloned().collect(), problems)
    }

    /// The definitions of what remains, each with its source.
    pub fn to_mcp_tools_filtered(
        &self,
        exposed: Option<&[String]>,
        excluded: Option<&[String]>,
    ) -> Vec<Value> {
        let (tools, _) = self.filter_tools(exposed, excluded);
        let with_source = |it: &AgentTool| {
            let mut definition = it.to_mcp();
            definition["source"] = json!(self.tool_source(&it.name));
            definition
        };
        tools.iter().map(with_source).collect()
    }
}
