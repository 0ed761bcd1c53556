//! Asking a server for all its tools.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;
use toolcrib_catalogue::{Json, Problem, Tool};
use toolcrib_wire::{Ask, Mirrored, Peer, RequestError, mirrored};

/// More tools than this of one server are left out.
const MAX_TOOLS: usize = 20_000;

/// More pages than this are not asked for.
const MAX_PAGES: usize = 2_000;

/// The tools of one server, and what was wrong with some of them.
#[derive(Debug, Default, Clone)]
pub(crate) struct Listed {
    pub(crate) tools: Arc<[Arc<Tool>]>,
    pub(crate) problems: Vec<Problem>,
    /// What a modern server wants in headers, by tool. Most want nothing.
    pub(crate) mirrored: HashMap<String, Vec<Mirrored>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow)]
    tools: Vec<&'a RawValue>,
    next_cursor: Option<String>,
}

/// Asks for all pages. A server without tools has an empty list.
pub(crate) async fn list_tools(
    peer: &Peer,
    server: &str,
    deadline: Instant,
) -> Result<Listed, RequestError> {
    let mut tools = Vec::new();
    let mut problems = Vec::new();
    let mut cursor: Option<String> = None;
    let mut seen = HashSet::new();
    for page_number in 0.. {
        let params = cursor.as_ref().map(|it| serde_json::json!({ "cursor": it }).to_string());
        let ask = Ask {
            method: "tools/list",
            params: params.as_deref().map(str::as_bytes),
            deadline: Some(deadline),
            ..Ask::default()
        };
        let result = match peer.request(ask).await {
            Ok(result) => Json::from_scanned(result),
            Err(RequestError::Rpc(error)) if error.code == -32601 && page_number == 0 => break,
            Err(error) => return Err(error),
        };
        let page: Page<'_> = result.read().map_err(|error| RequestError::Malformed {
            cause: format!("its list of tools is none: {error}"),
        })?;
        for raw in page.tools {
            take(raw, server, &mut tools, &mut problems);
        }
        cursor = page.next_cursor.filter(|it| !it.is_empty());
        let Some(cursor) = &cursor else { break };
        let limit = if MAX_TOOLS <= tools.len() {
            format!("it lists more than {MAX_TOOLS} tools; the rest is left out")
        } else if !seen.insert(cursor.clone()) {
            "its list of tools goes round in a circle; what came twice is left out".to_owned()
        } else if MAX_PAGES <= page_number {
            format!("its list of tools has more than {MAX_PAGES} pages; the rest is left out")
        } else {
            continue;
        };
        problems.push(Problem::new(format!("server {server}"), limit));
        break;
    }
    tools.truncate(MAX_TOOLS);
    let mut wanted = HashMap::new();
    if peer.mirrors() {
        tools.retain(|tool| mirrors(tool, server, &mut wanted, &mut problems));
    }
    Ok(Listed { tools: tools.into(), problems, mirrored: wanted })
}

fn take(raw: &RawValue, server: &str, tools: &mut Vec<Arc<Tool>>, problems: &mut Vec<Problem>) {
    // A copy: one tool must not keep the whole page in memory.
    let text = raw.get().to_owned();
    match Tool::read(Json::from_scanned(text.into())) {
        Ok(tool) => tools.push(Arc::new(tool)),
        Err(fault) if problems.len() < 20 => {
            let place = format!("server {server}: tool {}", tools.len() + 1);
            problems.push(Problem::new(place, format!("{fault}; it is left out")));
        }
        Err(_) => {}
    }
}

/// Notes what a tool wants in headers. One that says so wrongly is left out, as the protocol demands.
fn mirrors(
    tool: &Tool,
    server: &str,
    wanted: &mut HashMap<String, Vec<Mirrored>>,
    problems: &mut Vec<Problem>,
) -> bool {
    let schema = tool.input_schema.as_ref().map(Json::as_bytes).unwrap_or_default();
    match mirrored(schema) {
        Ok(none) if none.is_empty() => {}
        Ok(some) => {
            wanted.insert(tool.name.clone(), some);
        }
        Err(fault) => {
            let place = format!("server {server}: tool {}", tool.name.escape_debug());
            problems.push(Problem::new(place, format!("{fault}; it is left out")));
            return false;
        }
    }
    true
}
