//! Asking a server for all that it lists.

use std::{
    collections::{HashMap, HashSet},
    ops::Range,
    sync::Arc,
};

use bytes::Bytes;
use tokio::time::Instant;
use toolcrib_catalogue::{Json, Offers, Problem, Resource, Tool};
use toolcrib_wire::{Ask, Mirrored, Peer, RequestError, json, mirrored};

/// More tools than this of one server are left out.
const MAX_TOOLS: usize = 20_000;

/// More pages than this are not asked for.
const MAX_PAGES: usize = 2_000;

/// How much a server is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lists {
    /// Its tools.
    #[default]
    Tools,
    /// Its prompts and resources too.
    Everything,
}

/// What one server lists, and what was wrong with some of it.
#[derive(Debug, Default, Clone)]
pub(crate) struct Listed {
    pub(crate) tools: Arc<[Arc<Tool>]>,
    pub(crate) offers: Offers,
    pub(crate) problems: Vec<Problem>,
    /// What a modern server wants in headers, by tool. Most want nothing.
    pub(crate) mirrored: HashMap<String, Vec<Mirrored>>,
}

/// Asks for everything a server lists. Without tools the server is no use; what else it fails to list
/// is a problem.
pub(crate) async fn list(
    peer: &Peer,
    server: &str,
    deadline: Instant,
    lists: Lists,
) -> Result<Listed, RequestError> {
    let mut problems = Vec::new();
    let mut tools = Vec::new();
    for raw in all_pages(peer, server, "tools/list", "tools", deadline, &mut problems).await? {
        take(raw, server, &mut tools, &mut problems);
    }
    let mut wanted = HashMap::new();
    if peer.mirrors() {
        tools.retain(|tool| mirrors(tool, server, &mut wanted, &mut problems));
    }
    let offers = match lists {
        Lists::Tools => Offers::default(),
        Lists::Everything => list_offers(peer, server, deadline, &mut problems).await,
    };
    Ok(Listed { tools: tools.into(), offers, problems, mirrored: wanted })
}

async fn list_offers(
    peer: &Peer,
    server: &str,
    deadline: Instant,
    problems: &mut Vec<Problem>,
) -> Offers {
    let declared = |what: &str| json::member(&peer.greeting().capabilities, what).is_some();
    let mut lists: [Vec<Json>; 3] = Default::default();
    let asked = [
        ("prompts", "prompts/list", "prompts"),
        ("resources", "resources/list", "resources"),
        ("resources", "resources/templates/list", "resourceTemplates"),
    ];
    for (list, (capability, method, member)) in lists.iter_mut().zip(asked) {
        if !declared(capability) {
            continue;
        }
        match all_pages(peer, server, method, member, deadline, problems).await {
            Ok(found) => *list = found,
            Err(error) => {
                let message = format!("`{method}` failed: {error}");
                problems.push(Problem::new(format!("server {server}"), message));
            }
        }
    }
    let [prompts, resources, templates] = lists;
    let prompt = |raw: Json| Tool::read(raw).ok().map(Arc::new);
    let resource = |key: &'static str| {
        move |raw: Json| {
            let at = json::member(raw.as_bytes(), key)?;
            let uri = serde_json::from_slice(&raw.as_bytes()[at]).ok()?;
            Some(Resource { uri, raw })
        }
    };
    Offers {
        prompts: prompts.into_iter().filter_map(prompt).collect(),
        resources: resources.into_iter().filter_map(resource("uri")).collect(),
        templates: templates.into_iter().filter_map(resource("uriTemplate")).collect(),
        ..Offers::default()
    }
}

/// All pages of a list. A server that does not know the method has an empty one.
async fn all_pages(
    peer: &Peer,
    server: &str,
    method: &str,
    member: &str,
    deadline: Instant,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Json>, RequestError> {
    let mut found = Vec::new();
    let mut cursor: Option<String> = None;
    let mut seen = HashSet::new();
    for page_number in 0.. {
        let params = cursor.as_ref().map(|it| serde_json::json!({ "cursor": it }).to_string());
        let ask = Ask {
            method,
            params: params.as_deref().map(str::as_bytes),
            deadline: Some(deadline),
            ..Ask::default()
        };
        let page = match peer.request(ask).await {
            // Of a list nothing is ever put aside.
            Ok(answered) => answered.result,
            Err(RequestError::Rpc(error)) if error.code == -32601 && page_number == 0 => break,
            Err(error) => return Err(error),
        };
        let list = json::member(&page, member).map(|at| page.slice(at));
        let list = list.filter(|it| it.first() == Some(&b'['));
        let list = list.ok_or_else(|| RequestError::Malformed {
            cause: format!("its answer to `{method}` holds no list of {member}"),
        })?;
        // Copies: one element must not keep the whole page in memory.
        let element =
            |(_, at): (_, Range<usize>)| Json::from_scanned(Bytes::copy_from_slice(&list[at]));
        found.extend(json::members(&list).into_iter().map(element));
        let next = json::member(&page, "nextCursor").map(|at| &page[at]);
        cursor = next
            .and_then(|it| serde_json::from_slice(it).ok())
            .filter(|it: &String| !it.is_empty());
        let what = member_words(member);
        let limit = if MAX_TOOLS < found.len() + usize::from(cursor.is_some()) {
            format!("it lists more than {MAX_TOOLS} {what}; the rest is left out")
        } else if let Some(cursor) = &cursor
            && !seen.insert(cursor.clone())
        {
            format!("its list of {what} goes round in a circle; what came twice is left out")
        } else if cursor.is_some() && MAX_PAGES <= page_number {
            format!("its list of {what} has more than {MAX_PAGES} pages; the rest is left out")
        } else if cursor.is_some() {
            continue;
        } else {
            break;
        };
        problems.push(Problem::new(format!("server {server}"), limit));
        break;
    }
    found.truncate(MAX_TOOLS);
    Ok(found)
}

fn member_words(member: &str) -> &str {
    if member == "resourceTemplates" { "resource templates" } else { member }
}

fn take(raw: Json, server: &str, tools: &mut Vec<Arc<Tool>>, problems: &mut Vec<Problem>) {
    match Tool::read(raw) {
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
