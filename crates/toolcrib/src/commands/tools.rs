//! `toolcrib tools`: the merged catalogue.

use std::process::ExitCode;

use serde_json::json;
use toolcrib::Workspace;
use toolcrib_catalogue::{Entry, Listing, Origin, extract_schema};
use toolcrib_sources::asyncapi::Care;

use super::{Failure, Seen, unused};
use crate::terminal;

pub(crate) async fn run(
    workspace: &Workspace,
    seen: Option<&Seen>,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    let servers = workspace.start(&workspace.server_names());
    let own = workspace.start_own(false, unused(), Care::Tools, &terminal::installing).await;
    terminal::wait_for_python(own.python.as_ref()).await;
    terminal::wait_for(&servers).await;
    let built = workspace.catalogue(&servers, &own);
    workspace.close().await;
    own.close().await;
    let (catalogue, listings, problems) = built?;
    let seen = |it: &&Entry| seen.is_none_or(|seen| seen.objection(&it.name).is_none());
    let entries: Vec<&Entry> = catalogue.entries().iter().filter(seen).collect();
    let text = if as_json { listed(&entries, &listings) } else { shown(&entries, &listings) };
    terminal::print(&text)?;
    terminal::warn(&[workspace.problems.as_slice(), &problems].concat());
    Ok(ExitCode::SUCCESS)
}

/// The kind of source, and which one of its kind.
pub(super) fn source(listing: &Listing) -> (&'static str, &str) {
    match &listing.origin {
        Origin::Upstream(server) => ("mcp", server),
        Origin::Workspace => ("python", "tools"),
        Origin::Mod(name) => ("mod", name),
        Origin::Events => ("event", "events"),
    }
}

fn listed(entries: &[&Entry], listings: &[Listing]) -> String {
    let tools: Vec<serde_json::Value> = entries
        .iter()
        .map(|it| {
            let (source, server) = source(&listings[it.listing]);
            let mut tool = json!({
                "name": &*it.name,
                "source": source,
                "server": server,
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

fn shown(entries: &[&Entry], listings: &[Listing]) -> String {
    if entries.is_empty() {
        return "no tools\n".to_owned();
    }
    let rows: Vec<[String; 3]> = entries
        .iter()
        .map(|it| {
            let description = it.tool.description.as_deref().unwrap_or_default().trim();
            let first_line = description.lines().next().unwrap_or_default();
            let (_, server) = source(&listings[it.listing]);
            [it.name.to_string(), terminal::clean(server), terminal::clean(first_line)]
        })
        .collect();
    terminal::table(["TOOL", "SERVER", "DESCRIPTION"], &rows)
}
