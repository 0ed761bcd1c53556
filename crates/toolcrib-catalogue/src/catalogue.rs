//! Many lists of tools become one.
//!
//! [`Catalogue::build`] names the tools of all sources, filters them, settles clashes and sorts the
//! rest, so that the same sources give the same bytes from start to start. A name leads to its tool
//! by table, never by taking it apart.

use std::{fmt, hash::BuildHasher, sync::Arc};

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::{
    NameStyle, Problem, Tool, ToolFilter, Verdict,
    name::DEFAULT_NAMESPACE,
    naming::{self, Name},
};

/// The merged list of tools.
#[derive(Debug, Default)]
pub struct Catalogue {
    entries: Vec<Entry>,
    /// Places in `entries`, by the hash of their names.
    by_name: HashTable<u32>,
    hasher: DefaultHashBuilder,
    hidden: Vec<Hidden>,
}

/// One tool that can be called.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What clients call it.
    pub name: Name,
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
    pub name: Name,
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
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
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
        let tools = listings.iter().map(|it| it.tools.len()).sum();
        let (mut entries, mut hidden) = (Vec::with_capacity(tools), Vec::new());
        let mut namers = namers(listings, settings);
        namers.sort_by(|a, b| a.prefix.cmp(&b.prefix));
        // Servers are nearly always in the order of their names by now, and no name stands twice.
        let mut in_order = true;
        for namer in namers {
            let begin = entries.len();
            let hidden_before = hidden.len();
            in_order &= namer.name_all(&mut entries, &mut hidden);
            // Where each name of the filter hid a tool, none is left to ask about.
            let filter = &namer.listing.filter;
            if !filter.include.is_empty() || filter.exclude.len() != hidden.len() - hidden_before {
                unmatched(namer.listing, &mut problems);
            }
            in_order &=
                begin == 0 || entries.get(begin).is_none_or(|it| entries[begin - 1].name < it.name);
        }
        if !in_order {
            entries.sort_by(|a, b| a.name.cmp(&b.name));
            entries = settle_clashes(entries, listings, &mut hidden, &mut problems)?;
        }
        hidden.sort_by(|a, b| a.name.cmp(&b.name));
        let mut catalogue = Self { entries, hidden, ..Self::default() };
        catalogue.index();
        Ok((catalogue, problems))
    }

    /// Fills the table that leads from a name to its place.
    fn index(&mut self) {
        let (names, hasher) = (&self.entries, &self.hasher);
        let hash = |at: &u32| hasher.hash_one(&*names[*at as usize].name);
        self.by_name.reserve(names.len(), hash);
        for at in 0..u32::try_from(names.len()).unwrap_or(u32::MAX) {
            self.by_name.insert_unique(hash(&at), at, hash);
        }
    }

    /// The tool with this public name.
    pub fn get(&self, name: &str) -> Option<&Entry> {
        let at = self
            .by_name
            .find(self.hasher.hash_one(name), |&at| *self.entries[at as usize].name == *name);
        at.map(|&at| &self.entries[at as usize])
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

/// What is needed to name the tools of one listing.
struct Namer<'a> {
    at: usize,
    listing: &'a Listing,
    /// What their names begin with; empty for bare names.
    prefix: String,
    /// The server that a hash stands for.
    server: &'a str,
    hashed: bool,
}

fn namers<'a>(listings: &'a [Listing], settings: &Settings) -> Vec<Namer<'a>> {
    let server = |it: &'a Listing| match &it.origin {
        Origin::Upstream(server) => Some(server.as_str()),
        _ => None,
    };
    let servers: Vec<&str> = listings.iter().filter_map(server).collect();
    let mut parts = naming::server_parts(&servers).into_iter();
    let namer = |(at, listing): (usize, &'a Listing)| {
        let server = server(listing);
        let part = server.and_then(|_| parts.next());
        let part = part.filter(|_| listing.style == NameStyle::Prefixed);
        let prefix = part.as_ref().map(|it| naming::prefix(&settings.namespace, &it.text));
        Namer {
            at,
            listing,
            prefix: prefix.unwrap_or_default(),
            server: server.unwrap_or_default(),
            hashed: part.is_some_and(|it| it.hashed),
        }
    };
    listings.iter().enumerate().map(namer).collect()
}

impl Namer<'_> {
    /// Names the tools, sorts them, and puts each where the filter says. Returns whether no name
    /// stands twice.
    fn name_all(&self, entries: &mut Vec<Entry>, hidden: &mut Vec<Hidden>) -> bool {
        let mut text = String::new();
        let mut named: Vec<Named> = Vec::with_capacity(self.listing.tools.len());
        for (at, tool) in self.listing.tools.iter().enumerate() {
            let begin = text.len();
            let cut = naming::push_name(&mut text, &self.prefix, &tool.name, self.server);
            let renamed = match (cut, self.hashed) {
                (true, _) => Renamed::Cut,
                (false, true) => Renamed::LikeServer,
                (false, false) => Renamed::No,
            };
            named.push(Named::new(&text, begin, self.first(&text[begin..]), at, renamed));
        }
        named.sort_by(|a, b| a.order(b, &text));
        let unique = named.windows(2).all(|pair| pair[0].name(&text) != pair[1].name(&text));
        if !unique {
            self.tell_apart(&mut named, &mut text);
            named.sort_by(|a, b| a.order(b, &text));
        }
        let buffer: Arc<str> = text.into();
        for Named { range, at, renamed, .. } in named {
            let name = Name::slice(&buffer, range);
            let tool = &self.listing.tools[at];
            let entry = Entry { name, listing: self.at, tool: Arc::clone(tool), renamed };
            match self.listing.filter.verdict(&tool.name) {
                Verdict::Taken => entries.push(entry),
                Verdict::Excluded => hidden.push(entry.hide(HiddenBecause::Excluded)),
                Verdict::NotIncluded => hidden.push(entry.hide(HiddenBecause::NotIncluded)),
            }
        }
        unique
    }

    /// The first letters behind the prefix, as a number in the order of the names.
    fn first(&self, name: &str) -> u64 {
        // A prefix so long that names were cut inside it tells nothing of what follows.
        if naming::HEAD_LEN <= self.prefix.len() {
            return 0;
        }
        let rest = &name.as_bytes()[self.prefix.len()..];
        let mut bytes = [0; 8];
        let length = rest.len().min(8);
        bytes[..length].copy_from_slice(&rest[..length]);
        u64::from_be_bytes(bytes)
    }

    /// Adds a hash where different tools have one name.
    fn tell_apart(&self, sorted: &mut [Named], text: &mut String) {
        let original = |it: &Named| &self.listing.tools[it.at].name;
        let mut begin = 0;
        while begin < sorted.len() {
            let name = sorted[begin].name(text).to_owned();
            let length = sorted[begin..].iter().take_while(|it| it.name(text) == name).count();
            let alike = &mut sorted[begin..begin + length];
            begin += length;
            if alike.iter().all(|it| original(it) == original(&alike[0])) {
                continue;
            }
            for it in alike {
                let start = text.len();
                text.push_str(&naming::tell_apart(&name, original(it), self.server));
                *it = Named::new(text, start, self.first(&text[start..]), it.at, Renamed::LikeTool);
            }
        }
    }
}

/// A tool that has a name and not yet a place.
struct Named {
    /// Settles most comparisons without a look at the name.
    first: u64,
    /// Where its name stands in the text of all names.
    range: (u32, u32),
    /// Which of the listing's tools it is.
    at: usize,
    renamed: Renamed,
}

impl Named {
    /// The name is what stands in `text` from `begin` on.
    fn new(text: &str, begin: usize, first: u64, at: usize, renamed: Renamed) -> Self {
        // A source's names are bounded far below 4 GB.
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { first, range: (place(begin), place(text.len())), at, renamed }
    }

    fn name<'a>(&self, text: &'a str) -> &'a str {
        &text[self.range.0 as usize..self.range.1 as usize]
    }

    fn order(&self, other: &Self, text: &str) -> std::cmp::Ordering {
        self.first.cmp(&other.first).then_with(|| self.name(text).cmp(other.name(text)))
    }
}

/// Tells the names in a listing's filter that none of its tools has.
fn unmatched(listing: &Listing, problems: &mut Vec<Problem>) {
    if listing.tools.is_empty() {
        return;
    }
    for name in listing.filter.unmatched(&listing.tools) {
        let list = if listing.filter.include.contains(name) { "include" } else { "exclude" };
        let message = format!("`{list}` names `{name}`, and the server has no such tool");
        let known = listing.tools.iter().map(|it| it.name.as_str());
        let hint = match crate::nearest(name, known) {
            _ if name.contains('*') => "the lists of a server take exact names, without `*`".into(),
            Some(meant) => format!("did you mean `{meant}`?"),
            None => "`toolcrib tools --json` lists the server's own names under `tool`".to_owned(),
        };
        problems.push(Problem::new(listing.origin.subject(), message).hint(hint));
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
