//! The seed's loader and collector, for those who embed the crates: all tools of our own in one list.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use serde_json::{Value, json};
use toolcrib_catalogue::{CallContext, Conflict, Json, Origin, Problem, Source};

use crate::{
    mods::{AgentTool, Mod},
    python::{Python, PythonSource, Settings},
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
        self.python().await.sources().iter().flat_map(tools_of).collect()
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

fn tools_of(source: &Arc<PythonSource>) -> Vec<AgentTool> {
    let tool = |it: &Arc<toolcrib_catalogue::Tool>| {
        let (source, name) = (Arc::clone(source), it.name.clone());
        AgentTool {
            name: it.name.clone(),
            description: it.description.clone().unwrap_or_default(),
            input_schema: it.input_schema.clone().unwrap_or_else(Json::empty_object),
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

/// Collects the tools of mods and of a workspace, filters them, and turns them into MCP's form.
#[derive(Debug)]
pub struct NetworkToolCollector {
    mods: Vec<Arc<dyn Mod>>,
    loader: WorkspaceToolLoader,
    tools: BTreeMap<String, (AgentTool, Origin)>,
}

impl NetworkToolCollector {
    /// A collector over mods in Rust and a workspace.
    pub fn new(mods: Vec<Arc<dyn Mod>>, loader: WorkspaceToolLoader) -> Self {
        Self { mods, loader, tools: BTreeMap::new() }
    }

    /// Collects everything: mods first, then the workspace. Two tools of one name are refused.
    pub async fn collect_all_tools(&mut self) -> Result<Vec<AgentTool>, Conflict> {
        self.tools.clear();
        let rust = self.mods.iter().flat_map(|it| {
            let origin = Origin::Mod(it.name().to_owned());
            it.get_tools().into_iter().map(move |tool| (tool, origin.clone()))
        });
        let python = self.loader.python().await.sources();
        let python = python.iter().flat_map(|it| {
            let origin = it.origin.clone();
            tools_of(it).into_iter().map(move |tool| (tool, origin.clone()))
        });
        for (tool, origin) in rust.chain(python).collect::<Vec<_>>() {
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
