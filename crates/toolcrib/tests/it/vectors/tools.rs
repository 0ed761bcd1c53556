//! Seed 003's loader and collector, against what the originals gave.

use serde_json::{Value, json};
use toolcrib::sources::{
    collector::{NetworkToolCollector, WorkspaceToolLoader},
    mods::AgentTool,
    python::Settings,
};
use toolcrib_catalogue::Json;

use super::Verdict;
use crate::kit::Folder;

pub(crate) fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(work)
}

pub(crate) fn folder(row: &Value) -> Folder {
    let folder = Folder::new();
    for (name, text) in row["files"].as_object().unwrap() {
        folder.write(name, text.as_str().unwrap());
    }
    folder
}

pub(crate) fn loader(folder: &Folder) -> WorkspaceToolLoader {
    let path = toolcrib::environment("PATH").unwrap_or_default();
    let env = vec![("PATH".to_owned(), path)];
    WorkspaceToolLoader::with(Settings { env, ..Settings::new(folder.path()) })
}

/// Tools and calls of a row, as the original had them and as ours has them.
pub(crate) fn workspace(row: &Value) -> Verdict {
    let (folder, output) = (folder(row), &row["output"]);
    let loader = loader(&folder);
    let found = wait(async {
        let mut tools = loader.load_tools().await;
        tools.sort_by(|a, b| a.name.cmp(&b.name));
        let mut calls = Vec::new();
        for call in output["calls"].as_array().unwrap() {
            calls.push(called(&tools, call).await);
        }
        let problems = loader.problems().await.len();
        loader.close().await;
        let shown = |it: &AgentTool| json!({ "name": it.name, "description": it.description, "input_schema": it.input_schema });
        let tools: Vec<Value> = tools.iter().map(shown).collect();
        json!({ "tools": tools, "calls": calls, "problems": problems })
    });
    let mut tools = output["tools"].as_array().unwrap().clone();
    tools.sort_by_key(|it| it["name"].as_str().unwrap().to_owned());
    let calls: Vec<Value> = output["calls"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| json!({ "text": it["mcp_text"], "isError": it["isError"] }))
        .collect();
    let problems = output["log_warnings_and_errors"].as_array().unwrap().len();
    let expected = json!({ "tools": tools, "calls": calls, "problems": problems });
    if found == expected { Verdict::Pass } else { Verdict::Other(found.to_string()) }
}

async fn called(tools: &[AgentTool], call: &Value) -> Value {
    let Some(tool) = tools.iter().find(|it| it.name == call["tool"].as_str().unwrap()) else {
        return json!("no such tool");
    };
    let result = tool.execute(Json::of(&call["arguments"]).unwrap()).await;
    let result: Value = result.unwrap().get().unwrap();
    let parts = result["content"].as_array().unwrap();
    let text: Vec<&str> = parts.iter().filter_map(|it| it["text"].as_str()).collect();
    json!({ "text": text.join("\n"), "isError": result["isError"] })
}

pub(crate) fn collector(row: &Value) -> Verdict {
    let (folder, output) = (folder(row), &row["output"]);
    let loader = loader(&folder);
    let list = |key: &str| -> Option<Vec<String>> {
        let list = row[key].as_array()?;
        Some(list.iter().map(|it| it.as_str().unwrap().to_owned()).collect())
    };
    let (exposed, excluded) = (list("exposed_tools"), list("excluded_tools"));
    let mut collector = NetworkToolCollector::new(Vec::new(), loader.clone());
    let all = wait(async {
        let all = collector.collect_all_tools().await;
        loader.close().await;
        all.unwrap()
    });
    let (exposed, excluded) = (exposed.as_deref(), excluded.as_deref());
    let (kept, problems) = collector.filter_tools(exposed, excluded);
    let mut mcp = collector.to_mcp_tools_filtered(exposed, excluded);
    mcp.sort_by_key(|it| it["name"].as_str().unwrap().to_owned());
    let mut expected = output["mcp_tools"].as_array().unwrap().clone();
    expected.sort_by_key(|it| it["name"].as_str().unwrap().to_owned());
    let names = |tools: &[AgentTool]| tools.iter().map(|it| json!(it.name)).collect::<Vec<_>>();
    let sources: serde_json::Map<String, Value> =
        all.iter().map(|it| (it.name.clone(), json!(collector.tool_source(&it.name)))).collect();
    let warnings = output["log_warnings_and_errors"].as_array().unwrap().len();
    let same = json!(names(&all)) == output["tool_names"]
        && Value::from(sources) == output["sources"]
        && json!(names(&kept)) == output["filtered_sorted"]
        && mcp == expected
        && problems.len() == warnings;
    if same { Verdict::Pass } else { Verdict::Other(json!([mcp, problems.len()]).to_string()) }
}
