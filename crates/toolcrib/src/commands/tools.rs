//! `toolcrib tools`: the merged catalogue.

use std::process::ExitCode;

use serde_json::json;
use toolcrib::Workspace;
use toolcrib_catalogue::{Catalogue, Listing, Origin, extract_schema};

use super::Failure;
use crate::terminal;

pub(crate) async fn run(workspace: &Workspace, as_json: bool) -> Result<ExitCode, Failure> {
    let servers = workspace.start(&workspace.server_names());
    terminal::wait_for(&servers).await;
    let built = workspace.catalogue(&servers);
    workspace.close().await;
    let (catalogue, listings, problems) = built?;
    let text = if as_json { listed(&catalogue, &listings) } else { shown(&catalogue, &listings) };
    terminal::print(&text)?;
    terminal::warn(&[workspace.problems.as_slice(), &problems].concat());
    Ok(ExitCode::SUCCESS)
}

fn server(listing: &Listing) -> &str {
    match &listing.origin {
        Origin::Upstream(server) => server,
        _ => "",
    }
}

fn listed(catalogue: &Catalogue, listings: &[Listing]) -> String {
    let tools: Vec<serde_json::Value> = catalogue
        .entries()
        .iter()
        .map(|it| {
            let mut tool = json!({
                "name": &*it.name,
                "source": "mcp",
                "server": server(&listings[it.listing]),
                "tool": it.tool.name,
                "description": it.tool.description.as_deref().unwrap_or_default(),
                "inputSchema": extract_schema(&it.tool),
            });
            if let Some(schema) = &it.tool.output_schema {
                tool["outputSchema"] = json!(schema);
            }
            tool
        })
        .collect();
    format!("{:#}\n", serde_json::Value::from(tools))
}

fn shown(catalogue: &Catalogue, listings: &[Listing]) -> String {
    if catalogue.entries().is_empty() {
        return "no tools\n".to_owned();
    }
    let rows: Vec<[String; 3]> = catalogue
        .entries()
        .iter()
        .map(|it| {
            let description = it.tool.description.as_deref().unwrap_or_default().trim();
            let first_line = description.lines().next().unwrap_or_default();
            let server = server(&listings[it.listing]);
            [it.name.to_string(), terminal::clean(server), terminal::clean(first_line)]
        })
        .collect();
    terminal::table(["TOOL", "SERVER", "DESCRIPTION"], &rows)
}
