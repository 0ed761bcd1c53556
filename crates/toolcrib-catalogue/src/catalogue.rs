//! Many lists of tools become one.
//!
//! [`Catalogue::build`] names the tools of all sources, filters them, settles clashes and sorts the
//! rest, so that the same sources give the same bytes from start to start. A name leads to its tool
//! by table, never by taking it apart.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::{
    NameStyle, Problem, Tool, ToolFilter, Verdict,
    name::DEFAULT_NAMESPACE,
    naming::{self, ServerPart},
};

/// The merged list of tools.
#[derive(Debug, Default)]
pub struct Catalogue {
    entries: Vec<Entry>,
    by_name: HashMap<Arc<str>, usize>,
    hidden: Vec<Hidden>,
}

/// One tool that can be called.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What clients call it.
    pub name: Arc<str>,
    /// Which of the listings it comes from.
    pub listing: usize,
    /// The tool.
    pub tool: Arc<Tool>,
    /// How it came by its name.
    pub renamed: Renamed,
}

/// How a tool came by its public name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renamed {
    /// By the plain rule.
    No,
    /// Another server could have been taken for its server.
    LikeServer,
    /// Another tool of its server sanitises alike.
    LikeTool,
    /// The name was too long.
    Cut,
}

/// A tool that is there, but not to be called.
#[derive(Debug, Clone)]
pub struct Hidden {
    /// What it would be called.
    pub name: Arc<str>,
    /// Which of the listings it comes from.
    pub listing: usize,
    /// What its source calls it.
    pub original: String,
    /// Why it is hidden.
    pub because: HiddenBecause,
}

/// Why a tool is hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HiddenBecause {
    /// Its server's `exclude` names it.
    Excluded,
    /// Its server has an `include` that does not name it.
    NotIncluded,
    /// This source has the name already.
    NameTaken(String),
}

/// The tools of one source, before they have names.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Where they come from.
    pub origin: Origin,
    /// How upstream tools are named.
    pub style: NameStyle,
    /// Which of them are taken.
    pub filter: ToolFilter,
    /// The tools.
    pub tools: Arc<[Arc<Tool>]>,
}

/// Where a list of tools comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A server of `mcp.json`, by its name there.
    Upstream(String),
    /// Python functions in `tools/`.
    Workspace,
    /// A mod, by its full name.
    Mod(String),
    /// Operations in `events/`.
    Events,
}

/// What all names share.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What upstream names begin with.
    pub namespace: String,
}

/// Two tools of our own have one name: a mistake that only the author can mend.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "Tool name conflict: '{name}' is defined in both '{first}' and '{second}'. Tool names must be unique."
)]
pub struct Conflict {
    /// The name.
    pub name: String,
    /// Who has it.
    pub first: String,
    /// Who wants it too.
    pub second: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self { namespace: DEFAULT_NAMESPACE.to_owned() }
    }
}

impl Origin {
    fn is_upstream(&self) -> bool {
        matches!(self, Self::Upstream(_))
    }

    /// How a sentence speaks of it: `server git`.
    pub fn subject(&self) -> String {
        match self {
            Self::Upstream(server) => format!("server {server}"),
            Self::Mod(name) => format!("mod {name}"),
            Self::Workspace => "tools/".to_owned(),
            Self::Events => "events/".to_owned(),
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Upstream(server) => write!(f, "server:{server}"),
            Self::Workspace => f.write_str("workspace"),
            Self::Mod(name) => write!(f, "mod:{}", name.rsplit('.').next().unwrap_or_default()),
            Self::Events => f.write_str("event"),
        }
    }
}

impl Catalogue {
    /// Merges `listings`, which stand in the order of their files. Every server of the workspace
    /// must be among them, also one that is down, since names follow from the whole list of servers.
    ///
    /// Fails only where two tools of our own have one name. In any other clash the tool of our own,
    /// then the server that stands earlier, keeps the name, and the other tool is a problem.
    pub fn build(
        listings: &[Listing],
        settings: &Settings,
    ) -> Result<(Self, Vec<Problem>), Conflict> {
        let mut problems = Vec::new();
        let mut named = Vec::with_capacity(listings.iter().map(|it| it.tools.len()).sum());
        let parts = upstream_parts(listings);
        for (at, (listing, part)) in listings.iter().zip(&parts).enumerate() {
            name_listing(at, listing, part.as_ref(), settings, &mut named, &mut problems);
        }
        // Stable, and each listing is sorted already: this merges runs rather than sorting anew.
        named.sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
        let (mut entries, mut hidden) = (Vec::with_capacity(named.len()), Vec::new());
        for (entry, verdict) in named {
            match verdict {
                Verdict::Taken => entries.push(entry),
                Verdict::Excluded => hidden.push(entry.hide(HiddenBecause::Excluded)),
                Verdict::NotIncluded => hidden.push(entry.hide(HiddenBecause::NotIncluded)),
            }
        }
        let entries = settle_clashes(entries, listings, &mut hidden, &mut problems)?;
        let by_name =
            entries.iter().enumerate().map(|(at, it)| (Arc::clone(&it.name), at)).collect();
        Ok((Self { entries, by_name, hidden }, problems))
    }

    /// The tool with this public name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        self.by_name.get(name).map(|&at| &self.entries[at])
    }

    /// All tools, sorted by name.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The tools that are there, but not to be called.
    pub fn hidden(&self) -> &[Hidden] {
        &self.hidden
    }
}

impl Entry {
    fn hide(self, because: HiddenBecause) -> Hidden {
        let original = self.tool.name.clone();
        Hidden { name: self.name, listing: self.listing, original, because }
    }
}

/// The server part of each listing that is a server's.
fn upstream_parts(listings: &[Listing]) -> Vec<Option<ServerPart>> {
    let servers: Vec<&str> = listings
        .iter()
        .filter_map(|it| match &it.origin {
            Origin::Upstream(server) => Some(server.as_str()),
            _ => None,
        })
        .collect();
    let mut parts = naming::server_parts(&servers).into_iter();
    listings.iter().map(|it| it.origin.is_upstream().then(|| parts.next()).flatten()).collect()
}

/// Names the tools of one listing and says what its filter says of each.
fn name_listing(
    at: usize,
    listing: &Listing,
    part: Option<&ServerPart>,
    settings: &Settings,
    named: &mut Vec<(Entry, Verdict)>,
    problems: &mut Vec<Problem>,
) {
    let begin = named.len();
    let originals: Vec<&str> = listing.tools.iter().map(|it| it.name.as_str()).collect();
    let shared = naming::shared_tool_parts(&originals);
    for (tool, shared) in listing.tools.iter().zip(shared) {
        let (name, renamed) = match part {
            Some(part) if listing.style == NameStyle::Prefixed => {
                upstream_name(settings, part, &tool.name, shared, &listing.origin)
            }
            _ => {
                let (name, cut) = naming::bare(&tool.name, ["", &tool.name]);
                (name, if cut { Renamed::Cut } else { Renamed::No })
            }
        };
        let verdict = listing.filter.verdict(&tool.name);
        let entry = Entry { name: name.into(), listing: at, tool: Arc::clone(tool), renamed };
        named.push((entry, verdict));
    }
    named[begin..].sort_by(|(a, _), (b, _)| a.name.cmp(&b.name));
    if !listing.tools.is_empty() {
        for name in listing.filter.unmatched(&listing.tools) {
            problems.push(unmatched(listing, name, &originals));
        }
    }
}

fn upstream_name(
    settings: &Settings,
    part: &ServerPart,
    tool: &str,
    shared: Option<String>,
    origin: &Origin,
) -> (String, Renamed) {
    let tool_part = shared.as_deref().map_or_else(|| naming::sanitised(tool), Into::into);
    let server = if let Origin::Upstream(server) = origin { server.as_str() } else { "" };
    let (name, cut) = naming::prefixed(&settings.namespace, &part.text, &tool_part, [server, tool]);
    let renamed = match (cut, shared, part.hashed) {
        (true, ..) => Renamed::Cut,
        (_, Some(_), _) => Renamed::LikeTool,
        (_, None, true) => Renamed::LikeServer,
        (_, None, false) => Renamed::No,
    };
    (name, renamed)
}

fn unmatched(listing: &Listing, name: &str, known: &[&str]) -> Problem {
    let list = if listing.filter.include.contains(name) { "include" } else { "exclude" };
    let message = format!("`{list}` names `{name}`, and the server has no such tool");
    let problem = Problem::new(listing.origin.subject(), message);
    if name.contains('*') {
        return problem.hint("the lists of a server take exact names, without `*`");
    }
    match crate::nearest(name, known.iter().copied()) {
        Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
        None => problem.hint("`toolcrib tools` lists the names; take the part after the server's"),
    }
}

/// Leaves one tool for each name.
fn settle_clashes(
    sorted: Vec<Entry>,
    listings: &[Listing],
    hidden: &mut Vec<Hidden>,
    problems: &mut Vec<Problem>,
) -> Result<Vec<Entry>, Conflict> {
    let rank = |it: &Entry| (listings[it.listing].origin.is_upstream(), it.listing);
    let mut kept: Vec<Entry> = Vec::with_capacity(sorted.len());
    for mut entry in sorted {
        let Some(before) = kept.last_mut().filter(|it| it.name == entry.name) else {
            kept.push(entry);
            continue;
        };
        if rank(&entry) < rank(before) {
            std::mem::swap(before, &mut entry);
        }
        let (first, second) = (&listings[before.listing].origin, &listings[entry.listing].origin);
        if !first.is_upstream() && !second.is_upstream() {
            let (first, second) = (first.to_string(), second.to_string());
            return Err(Conflict { name: entry.name.to_string(), first, second });
        }
        let message = if before.listing == entry.listing {
            format!("tool `{}` is listed twice; the second is left out", entry.tool.name)
        } else {
            let (tool, name, holder) = (&entry.tool.name, &entry.name, first.subject());
            format!("tool `{tool}` is left out: the name `{name}` belongs to {holder}")
        };
        problems.push(Problem::new(second.subject(), message));
        let because = HiddenBecause::NameTaken(first.to_string());
        hidden.push(entry.hide(because));
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Json;

    fn listing(origin: Origin, style: NameStyle, tools: &[&str]) -> Listing {
        let tool = |name: &&str| {
            let raw = serde_json::json!({ "name": name });
            Arc::new(Tool::read(Json::of(&raw).unwrap()).unwrap())
        };
        let tools = tools.iter().map(tool).collect();
        Listing { origin, style, filter: ToolFilter::default(), tools }
    }

    fn upstream(server: &str, tools: &[&str]) -> Listing {
        listing(Origin::Upstream(server.to_owned()), NameStyle::Prefixed, tools)
    }

    /// `name = origin/original` for each tool, then the hidden ones, then the problems.
    fn shown(listings: &[Listing]) -> String {
        let (catalogue, problems) = match Catalogue::build(listings, &Settings::default()) {
            Ok(built) => built,
            Err(conflict) => return conflict.to_string(),
        };
        let entries = catalogue.entries().iter().map(|it| {
            let origin = &listings[it.listing].origin;
            format!("{} = {origin}/{} {:?}", it.name, it.tool.name, it.renamed)
        });
        let hidden = catalogue.hidden().iter().map(|it| format!("- {} {:?}", it.name, it.because));
        let problems = problems.iter().map(|it| format!("! {it}"));
        entries.chain(hidden).chain(problems).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn tools_that_sanitise_alike_all_get_a_hash() {
        insta::assert_snapshot!(shown(&[upstream("s", &["x.y", "x-y", "z"])]), @"
        mcp__s__x_y_25e15ee6 = server:s/x-y LikeTool
        mcp__s__x_y_f12518d7 = server:s/x.y LikeTool
        mcp__s__z = server:s/z No
        ");
    }

    #[test]
    fn names_do_not_depend_on_the_order_of_servers() {
        let a = upstream("s-1", &["a"]);
        let b = upstream("s.1", &["a"]);
        insta::assert_snapshot!(shown(&[a.clone(), b.clone()]), @"
        mcp__s_1_28870c8c__a = server:s.1/a LikeServer
        mcp__s_1_da3b5702__a = server:s-1/a LikeServer
        ");
        assert_eq!(shown(&[a.clone(), b.clone()]), shown(&[b, a]));
    }

    #[test]
    fn of_two_equal_names_the_own_tool_then_the_earlier_server_wins() {
        let bare = |it: &str| listing(Origin::Upstream(it.into()), NameStyle::Bare, &["search"]);
        let own = listing(Origin::Workspace, NameStyle::Prefixed, &["search"]);
        insta::assert_snapshot!(shown(&[bare("a"), bare("b"), own]), @r#"
        search = workspace/search No
        - search NameTaken("server:a")
        - search NameTaken("workspace")
        ! server b: tool `search` is left out: the name `search` belongs to server a
        ! server a: tool `search` is left out: the name `search` belongs to tools/
        "#);
    }

    #[test]
    fn two_own_tools_with_one_name_stop_the_start_with_the_seeds_sentence() {
        let module = Origin::Mod("mods.search_mod".into());
        let own = |origin| listing(origin, NameStyle::Prefixed, &["search"]);
        insta::assert_snapshot!(shown(&[own(module), own(Origin::Workspace)]), @"Tool name conflict: 'search' is defined in both 'mod:search_mod' and 'workspace'. Tool names must be unique.");
    }

    #[test]
    fn a_filter_hides_by_original_name_and_a_slip_in_it_is_told() {
        let mut listing = upstream("s", &["read", "write", "drop"]);
        listing.filter = ToolFilter::new(["read", "write", "wrte"], ["write"]);
        insta::assert_snapshot!(shown(&[listing]), @"
        mcp__s__read = server:s/read No
        - mcp__s__drop NotIncluded
        - mcp__s__write Excluded
        ! server s: `include` names `wrte`, and the server has no such tool (hint: did you mean `write`?)
        ");
    }

    #[test]
    fn a_name_leads_to_its_tool() {
        let listings = [upstream("s", &["b", "a"]), upstream("t", &["a", "a"])];
        let (catalogue, problems) = Catalogue::build(&listings, &Settings::default()).unwrap();
        for entry in catalogue.entries() {
            assert_eq!(catalogue.get(&entry.name).unwrap().tool, entry.tool);
        }
        assert!(catalogue.get("a").is_none());
        insta::assert_snapshot!(problems[0], @"server t: tool `a` is listed twice; the second is left out");
    }
}
