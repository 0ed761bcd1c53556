//! `toolcrib search`: tools by what somebody wants to do.

use std::process::ExitCode;

use serde_json::json;
use toolcrib::{
    Workspace,
    context::search::{Document, Hit, Index},
};
use toolcrib_catalogue::{Catalogue, Entry, Listing};
use toolcrib_sources::asyncapi::Care;

use super::{Failure, Seen, tools, unused};
use crate::terminal;

/// What was typed.
pub(crate) struct Asked {
    pub(crate) query: String,
    pub(crate) top: usize,
    pub(crate) as_json: bool,
}

pub(crate) async fn run(
    workspace: &Workspace,
    seen: Option<&Seen>,
    asked: &Asked,
) -> Result<ExitCode, Failure> {
    let servers = workspace.start(&workspace.server_names());
    let own = workspace.start_own(false, unused(), Care::Tools, &terminal::installing).await;
    terminal::wait_for_python(own.python.as_ref()).await;
    terminal::wait_for(&servers).await;
    let built = workspace.catalogue(&servers, &own);
    workspace.close().await;
    own.close().await;
    let (catalogue, listings, problems) = built?;
    let index = index(&catalogue, &listings, seen);
    let found = Found { hits: index.search(&asked.query, asked.top), catalogue, listings };
    if asked.as_json {
        terminal::print(&found.listed())?;
    } else if !found.hits.is_empty() {
        terminal::print(&found.shown())?;
    }
    terminal::warn(&[workspace.problems.as_slice(), &problems].concat());
    if found.hits.is_empty() {
        let message = format!("no tool fits `{}`", asked.query);
        return Err(Failure::said_no(message).hint(Some(hint(&index, &asked.query))));
    }
    Ok(ExitCode::SUCCESS)
}

/// Only what the group sees is in the index, so that nothing else has a say in how rare a word is.
fn index(catalogue: &Catalogue, listings: &[Listing], seen: Option<&Seen>) -> Index {
    let mut index = Index::default();
    let seen = |it: &&Entry| seen.is_none_or(|seen| seen.objection(&it.name).is_none());
    for entry in catalogue.entries().iter().filter(seen) {
        let document = Document::listed(entry, &listings[entry.listing]);
        index.set((&*entry.name).into(), &document);
    }
    index
}

fn hint(index: &Index, query: &str) -> String {
    let nearest: Vec<String> = index.nearest(query).iter().map(|it| format!("`{it}`")).collect();
    match index.len() {
        0 => "there are no tools here; `toolcrib check` says why".to_owned(),
        count if nearest.is_empty() => {
            format!("of {count} tools none has a word like these; `toolcrib tools` lists them")
        }
        _ => format!("words that tools here use: {}", nearest.join(", ")),
    }
}

/// What was found, and where it comes from.
struct Found {
    hits: Vec<Hit>,
    catalogue: Catalogue,
    listings: Vec<Listing>,
}

impl Found {
    fn listed(&self) -> String {
        let tools: Vec<serde_json::Value> = self
            .entries()
            .map(|(hit, entry)| {
                let (_, server) = tools::source(&self.listings[entry.listing]);
                json!({
                    "name": &*hit.key,
                    // Nobody needs more digits, and they would not be the same on every machine.
                    "score": (hit.score * 1000.0).round() / 1000.0,
                    "description": entry.tool.description.as_deref().unwrap_or_default(),
                    "server": server,
                    "also": hit.also.iter().map(|it| &**it).collect::<Vec<_>>(),
                })
            })
            .collect();
        format!("{:#}\n", serde_json::Value::from(tools))
    }

    fn shown(&self) -> String {
        let rows: Vec<[String; 3]> = self
            .entries()
            .map(|(hit, entry)| {
                let description = entry.tool.description.as_deref().unwrap_or_default().trim();
                let first_line = terminal::clean(description.lines().next().unwrap_or_default());
                let (_, server) = tools::source(&self.listings[entry.listing]);
                let like = match hit.also.len() {
                    0 => String::new(),
                    more => format!(" (and {more} like it)"),
                };
                [hit.key.to_string(), terminal::clean(server), format!("{first_line}{like}")]
            })
            .collect();
        terminal::table(["TOOL", "SERVER", "DESCRIPTION"], &rows)
    }

    fn entries(&self) -> impl Iterator<Item = (&Hit, &Entry)> {
        self.hits.iter().filter_map(|hit| Some((hit, self.catalogue.get(&hit.key)?)))
    }
}
