//! The catalogue as it is just now, with the list that each group gets already written.
//!
//! A snapshot never changes; a new one takes its place. A call in flight keeps the one it began with.

mod metering;
mod pricing;
mod sources;
mod writing;

use std::{collections::HashMap, sync::Arc};

use bytes::Bytes;
use toolcrib_catalogue::{Catalogue, Entry, Offers, Resource};
use toolcrib_wire::{Mirrored, json, mirrored};

use crate::{
    access::{Access, Caller, Pattern, Rights},
    built_in::{self, READ_ARTIFACT, SEARCH_TOOLS, SEARCH_VIEW},
    cost,
    guard::{
        Held, Standing,
        cache::{CacheRule, CacheSettings},
        limits::Limits,
    },
    metrics::Meters,
    shape::ViewStyle,
    slot::Slots,
};
pub(crate) use pricing::Price;
use writing::{list, push_named, push_raw, push_tool};

/// What there is to list and to ask for.
#[derive(Debug)]
pub(crate) struct Snapshot {
    /// Who may see what: it and the views belong together, and change together.
    pub(crate) access: Arc<Access>,
    tools: Catalogue,
    /// How each tool stands, in their order.
    standings: Vec<Standing>,
    prompts: Catalogue,
    offers: Vec<Offers>,
    /// The sources it was built from.
    slots: Slots,
    /// Which sources have a resource, by URI.
    resources: HashMap<String, Vec<usize>>,
    /// Which URIs the templates of a source stand for.
    templates: Vec<(Pattern, usize)>,
    /// Which arguments a modern client has to say in headers too, by tool. Few tools want any.
    mirrored: HashMap<String, Vec<Mirrored>>,
    views: Vec<View>,
    /// How often what may be called.
    pub(crate) limits: Limits,
    /// Of which tools results are kept for a while.
    cached: HashMap<Arc<str>, CacheRule>,
    /// What calls of tools, and requests to sources, count in.
    meters: Meters,
}

/// What one group sees.
#[derive(Debug)]
pub(crate) struct View {
    /// Which tools of the catalogue.
    visible: Vec<bool>,
    /// Which sources: those of which it sees a tool. Their prompts and resources come along.
    sources: Vec<bool>,
    /// Which events.
    events: Rights,
    /// Which of the tools that are part of the gateway, by name.
    built_in: Vec<&'static str>,
    /// How large results of each tool of the catalogue may be; empty where there is no rule.
    limits: Vec<Option<usize>>,
    /// What the list of all would cost, and what searching would, where the cheaper one is shown.
    costs: Option<(usize, usize)>,
    pub(crate) lists: Lists,
}

/// The lists of a group, ready to be sent: `"tools":[…]` and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Lists {
    pub(crate) tools: Bytes,
    pub(crate) prompts: Bytes,
    pub(crate) resources: Bytes,
    pub(crate) templates: Bytes,
}

impl Default for Lists {
    fn default() -> Self {
        Self {
            tools: Bytes::from_static(br#""tools":[]"#),
            prompts: Bytes::from_static(br#""prompts":[]"#),
            resources: Bytes::from_static(br#""resources":[]"#),
            templates: Bytes::from_static(br#""resourceTemplates":[]"#),
        }
    }
}

impl Snapshot {
    pub(crate) fn new(
        (tools, standings): (Catalogue, Vec<Standing>),
        prompts: Catalogue,
        offers: Vec<Offers>,
        slots: Slots,
        access: Arc<Access>,
    ) -> Self {
        let mut resources: HashMap<String, Vec<usize>> = HashMap::new();
        let mut templates = Vec::new();
        for (at, offer) in offers.iter().enumerate() {
            for resource in offer.resources.iter() {
                resources.entry(resource.uri.clone()).or_default().push(at);
            }
            templates.extend(offer.templates.iter().map(|it| (any_of(&it.uri), at)));
        }
        let groups = access.groups();
        let views = Vec::new();
        let mirrored = wanted_in_headers(&tools);
        let mut snapshot = Self {
            access,
            tools,
            standings,
            prompts,
            offers,
            slots,
            resources,
            templates,
            mirrored,
            views,
            limits: Limits::default(),
            cached: HashMap::new(),
            meters: Meters::default(),
        };
        snapshot.views = (0..groups).map(|group| View::new(&snapshot, group)).collect();
        snapshot
    }

    /// The same, with calls held to limits, and their results kept.
    pub(crate) fn guarded(mut self, limits: Limits, cache: &CacheSettings) -> Self {
        self.limits = limits;
        if !cache.tools.is_empty() {
            let rule = |it: &Entry| Some((Arc::from(&*it.name), cache.of_tool(&it.name)?));
            self.cached = self.tools.entries().iter().filter_map(rule).collect();
        }
        self
    }

    /// How results of a tool are kept, where they are.
    pub(crate) fn caching(&self, name: &str) -> Option<CacheRule> {
        self.cached.get(name).copied()
    }

    /// What a caller sees; nothing if its group is gone.
    fn view(&self, caller: &Caller) -> Option<&View> {
        self.views.get(self.access.place(&caller.group)?)
    }

    /// The lists of a caller.
    pub(crate) fn lists(&self, caller: &Caller) -> Lists {
        self.view(caller).map(|it| it.lists.clone()).unwrap_or_default()
    }

    /// The tool that a group knows by this name. One that is hidden is as unknown as one that does
    /// not exist.
    pub(crate) fn tool(&self, caller: &Caller, name: &str) -> Option<&Entry> {
        let at = self.tools.entries().partition_point(|it| *it.name < *name);
        let entry = self.tools.entries().get(at).filter(|it| *it.name == *name)?;
        let visible = self.view(caller)?.visible.get(at).copied();
        visible.filter(|it| *it).map(|_| entry)
    }

    /// How a tool stands.
    pub(crate) fn standing(&self, name: &str) -> Option<&Standing> {
        let at = self.tools.entries().partition_point(|it| *it.name < *name);
        self.standings.get(at)
    }

    /// Why a tool that a caller could call otherwise is held back.
    pub(crate) fn held(&self, caller: &Caller, name: &str) -> Option<&str> {
        self.tools.get(name)?;
        let group = self.access.place(&caller.group)?;
        match &self.standing(name)?.held {
            Some(Held::Back(cause)) if self.access.allows(group, name) => Some(cause),
            _ => None,
        }
    }

    /// Whether arguments of a caller that are harmlessly wrong are put right.
    pub(crate) fn repairs(&self, caller: &Caller) -> bool {
        self.access.place(&caller.group).is_some_and(|it| self.access.repairs(it))
    }

    /// The tools that a caller may call.
    pub(crate) fn visible(&self, caller: &Caller) -> impl Iterator<Item = &Entry> {
        let visible = self.view(caller).map(|it| it.visible.as_slice()).unwrap_or_default();
        self.tools.entries().iter().zip(visible).filter(|(_, it)| **it).map(|(it, _)| it)
    }

    /// Whether a caller may read what was kept for its group.
    pub(crate) fn may_read_artifacts(&self, caller: &Caller) -> bool {
        let group = self.access.place(&caller.group);
        group.is_some_and(|it| self.access.spares(it, READ_ARTIFACT)) || caller.is_operator()
    }

    /// How large a result of a tool may be that a caller gets whole.
    pub(crate) fn limit(&self, caller: &Caller, name: &str) -> Option<usize> {
        let limits = &self.view(caller)?.limits;
        if limits.is_empty() {
            return None;
        }
        let at = self.tools.entries().partition_point(|it| *it.name < *name);
        limits.get(at).copied().flatten()
    }

    /// How large all outcomes of several calls may be together.
    pub(crate) fn limit_of_several(&self, caller: &Caller, name: &str) -> Option<usize> {
        let group = self.access.place(&caller.group).filter(|_| name == built_in::CALL_TOOLS)?;
        self.access.limit(group, name)
    }

    /// The definition of a tool as a caller gets it.
    pub(crate) fn definition(&self, caller: &Caller, name: &str) -> Option<String> {
        let view = self.view(caller)?;
        if view.built_in.contains(&name) {
            return Some(built_in::definition(name).to_owned());
        }
        let mut text = Vec::new();
        push_tool(&mut text, self.tool(caller, name)?, self.limit(caller, name).is_none());
        String::from_utf8(text).ok()
    }

    /// The groups whose list is whatever costs less: what all tools cost, and what searching does.
    pub(crate) fn costs(&self) -> Vec<(&str, usize, usize)> {
        let groups = self.access.group_names().zip(&self.views);
        groups.filter_map(|(name, it)| it.costs.map(|(all, few)| (name, all, few))).collect()
    }

    /// What a call has to say in headers too, if its tool wants that.
    pub(crate) fn mirrored(&self, caller: &Caller, params: &Bytes) -> Option<&[Mirrored]> {
        if self.mirrored.is_empty() {
            return None;
        }
        let name: String = serde_json::from_slice(&params[json::member(params, "name")?]).ok()?;
        self.tool(caller, &name)?;
        self.mirrored.get(&name).map(Vec::as_slice)
    }

    /// The prompt that a group knows by this name.
    pub(crate) fn prompt(&self, caller: &Caller, name: &str) -> Option<&Entry> {
        let entry = self.prompts.get(name)?;
        let group = self.access.place(&caller.group)?;
        let seen = self.view(caller)?.sees(entry.listing) || self.access.adds_prompt(group, name);
        seen.then_some(entry)
    }

    /// The source that has a resource a group may read: the one that lists it, or whose template it
    /// fits.
    pub(crate) fn resource(&self, caller: &Caller, uri: &str) -> Option<usize> {
        let view = self.view(caller)?;
        let added = self.access.adds_resource(self.access.place(&caller.group)?, uri);
        // A pattern lets nobody out of the folder that it names.
        let added = added && !climbs(uri);
        let having = self.resources.get(uri).into_iter().flatten().copied();
        let listed = { having }.find(|&at| added || view.sees(at));
        listed.or_else(|| {
            let fits = |(pattern, at): &&(Pattern, usize)| {
                (added || view.sees(*at)) && pattern.matches(uri)
            };
            self.templates.iter().find(fits).map(|(_, at)| *at)
        })
    }

    /// Which events a caller may have.
    pub(crate) fn events(&self, caller: &Caller) -> Rights {
        if caller.is_operator() {
            return Rights::All;
        }
        self.view(caller).map_or(Rights::Some(Vec::new()), |it| it.events.clone())
    }

    /// Whether a caller may use a tool that is part of the gateway.
    pub(crate) fn has_built_in(&self, caller: &Caller, name: &str) -> bool {
        self.view(caller).is_some_and(|it| it.built_in.contains(&name))
    }

    /// Whether a caller sees a source.
    pub(crate) fn shows(&self, caller: &Caller, source: usize) -> bool {
        self.view(caller).is_some_and(|it| it.sees(source))
    }

    /// How many tools there are.
    pub(crate) fn count(&self) -> usize {
        self.tools.entries().len()
    }

    /// The public names of all tools.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.tools.entries().iter().map(|it| &*it.name).collect()
    }
}

impl View {
    fn new(snapshot: &Snapshot, group: usize) -> Self {
        let access = &snapshot.access;
        let entries = snapshot.tools.entries();
        let held = |at: usize| snapshot.standings.get(at).is_some_and(|it| it.held.is_some());
        let allowed = |(at, it): (usize, &Entry)| {
            access.allows(group, &it.name) && !built_in::is_reserved(&it.name) && !held(at)
        };
        let visible: Vec<bool> = entries.iter().enumerate().map(allowed).collect();
        let mut sources = vec![false; snapshot.offers.len()];
        for (entry, _) in entries.iter().zip(&visible).filter(|(_, visible)| **visible) {
            sources[entry.listing] = true;
        }
        // A source without any tool is not hidden by hiding its tools.
        for (at, seen) in sources.iter_mut().enumerate() {
            *seen |= access.sees_all(group) && !entries.iter().any(|it| it.listing == at);
        }
        let events = access.events(group).unwrap_or_else(|| {
            let seen = entries.iter().zip(&visible).filter(|(_, visible)| **visible);
            Rights::OfTools(seen.flat_map(|(it, _)| emitted(&snapshot.offers, it)).collect())
        });
        let stores = access.limits(group);
        let shown = |it: &&str| {
            access.names(group, it) || (*it == READ_ARTIFACT && stores && access.spares(group, it))
        };
        let built_in = built_in::NAMES.into_iter().filter(shown).collect();
        let limits = entries.iter().map(|it| access.limit(group, &it.name));
        let limits = if stores { limits.collect() } else { Vec::new() };
        let lists = Lists::default();
        let mut view = Self { visible, sources, events, built_in, limits, costs: None, lists };
        let tools = view.list_tools(snapshot, group);
        let prompts = snapshot.prompts.entries().iter();
        let prompts =
            prompts.filter(|it| view.sees(it.listing) || access.adds_prompt(group, &it.name));
        let offered = |which: fn(&Offers) -> &[Resource]| {
            let all = snapshot.offers.iter().enumerate();
            let all = all.flat_map(move |(at, it)| which(it).iter().map(move |it| (at, it)));
            let seen = |(at, it): &(usize, &Resource)| {
                view.sees(*at) || access.adds_resource(group, &it.uri)
            };
            all.filter(seen).map(|(_, it)| it).collect::<Vec<_>>()
        };
        view.lists = Lists {
            tools,
            prompts: list("prompts", prompts, push_named),
            resources: list("resources", offered(|it| &it.resources).into_iter(), push_raw),
            templates: list("resourceTemplates", offered(|it| &it.templates).into_iter(), push_raw),
        };
        if view.built_in.contains(&READ_ARTIFACT) {
            view.lists.templates = with_artifacts(&view.lists.templates);
        }
        view
    }

    /// The list of tools in the style of the group: all of them, or those that find the others.
    fn list_tools(&mut self, snapshot: &Snapshot, group: usize) -> Bytes {
        let style = snapshot.access.view(group);
        if style == ViewStyle::All {
            return self.list_all(snapshot);
        }
        let all = (style == ViewStyle::Auto).then(|| self.list_all(snapshot));
        let added = SEARCH_VIEW.into_iter().filter(|it| snapshot.access.spares(group, it));
        let mut built_in: Vec<&str> = self.built_in.iter().copied().chain(added).collect();
        built_in.sort_unstable();
        built_in.dedup();
        let before = std::mem::replace(&mut self.built_in, built_in);
        let few = self.list_few(snapshot, group);
        if let Some(all) = all {
            let count = self.visible.iter().filter(|it| **it).count();
            let costs = (cost::of_list(&all), cost::of_searching(&few, &all, count));
            self.costs = Some(costs);
            if costs.0 <= costs.1 {
                self.built_in = before;
                return all;
            }
        }
        few
    }

    fn list_all(&self, snapshot: &Snapshot) -> Bytes {
        self.list(snapshot, |_| true)
    }

    fn list_few(&self, snapshot: &Snapshot, group: usize) -> Bytes {
        self.list(snapshot, |name| snapshot.access.pins(group, name))
    }

    /// The list of those tools that are wanted, and of all tools of ours.
    fn list(&self, snapshot: &Snapshot, wanted: impl Fn(&str) -> bool) -> Bytes {
        let entries = snapshot.tools.entries().iter().enumerate();
        let shown = entries.filter(|(at, it)| self.visible[*at] && wanted(&it.name));
        let whole = |at: usize| self.limits.get(at).copied().flatten().is_none();
        let mut shown: Vec<Listed<'_>> = shown
            .map(|(at, it)| Listed { name: &it.name, entry: Some(it), whole: whole(at) })
            .collect();
        let own = self.built_in.iter().map(|name| Listed { name, entry: None, whole: true });
        shown.extend(own);
        shown.sort_by_key(|it| it.name);
        let search = built_in::search::definition(&self.origins(snapshot));
        list("tools", shown.into_iter(), |text, listed| match listed.entry {
            Some(entry) => push_tool(text, entry, listed.whole),
            None if listed.name == SEARCH_TOOLS => text.extend_from_slice(search.as_bytes()),
            None => text.extend_from_slice(built_in::definition(listed.name).as_bytes()),
        })
    }

    /// Where the tools come from that the group may call, and how many from each.
    fn origins(&self, snapshot: &Snapshot) -> Vec<(Arc<str>, usize)> {
        let mut counts = vec![0; snapshot.slots.len()];
        for (entry, _) in snapshot.tools.entries().iter().zip(&self.visible).filter(|(_, it)| **it)
        {
            if let Some(count) = counts.get_mut(entry.listing) {
                *count += 1;
            }
        }
        let labels = snapshot.slots.iter().map(|it| Arc::clone(&it.label));
        let named = labels.zip(counts);
        named.filter(|(_, count)| 0 < *count).collect()
    }

    /// Whether the group sees a source.
    fn sees(&self, source: usize) -> bool {
        self.sources.get(source).copied().unwrap_or_default()
    }
}

/// A tool in a list: one of a source, or one of our own.
#[derive(Clone, Copy)]
struct Listed<'a> {
    name: &'a str,
    entry: Option<&'a Entry>,
    /// Whether its results are never too large.
    whole: bool,
}

/// A list of templates, and the one of what is kept.
fn with_artifacts(templates: &Bytes) -> Bytes {
    let begin = &templates[..templates.len() - 1];
    let comma = if begin.ends_with(b"[") { "" } else { "," };
    [begin, comma.as_bytes(), built_in::artifact::TEMPLATE.as_bytes(), b"]"].concat().into()
}

/// The events that come of a tool.
fn emitted<'a>(
    offers: &'a [Offers],
    entry: &'a Entry,
) -> impl Iterator<Item = toolcrib_bus::Pattern> + 'a {
    let events = offers.get(entry.listing).map(|it| it.events.as_ref()).unwrap_or_default();
    let own = events.iter().filter(|it| it.tool == entry.tool.name);
    own.filter_map(|it| toolcrib_bus::Pattern::new(it.pattern.as_str()).ok())
}

/// What each tool wants in headers. One that says so wrongly wants nothing.
fn wanted_in_headers(tools: &Catalogue) -> HashMap<String, Vec<Mirrored>> {
    let wanted = |entry: &Entry| {
        let schema = entry.tool.input_schema.as_ref()?;
        let wanted = mirrored(schema.as_bytes()).ok().filter(|it| !it.is_empty())?;
        Some((entry.name.to_string(), wanted))
    };
    tools.entries().iter().filter_map(wanted).collect()
}

/// Whether a URI has segments that mean another place than they say.
fn climbs(uri: &str) -> bool {
    let plain =
        uri.to_ascii_lowercase().replace("%2e", ".").replace("%2f", "/").replace("%5c", "/");
    plain.split(['/', '\\']).any(|it| matches!(it, "." | ".."))
}

/// A URI template as a pattern: whatever stands in braces may be anything.
fn any_of(template: &str) -> Pattern {
    let mut pattern = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        pattern.push_str(before);
        pattern.push('*');
        rest = after.split_once('}').map_or("", |(_, rest)| rest);
    }
    pattern.push_str(rest);
    Pattern(pattern)
}

#[cfg(test)]
mod tests {
    use toolcrib_catalogue::{Json, Listing, NameStyle, Origin, Settings, Tool, ToolFilter};

    use super::*;
    use crate::{access::AccessSettings, slot::of_servers};

    #[track_caller]
    fn check(raw: &str, expected: &str) {
        let tool = Tool::read(Json::parse(raw.to_owned()).unwrap()).unwrap();
        let listing = Listing {
            origin: Origin::Upstream("s".into()),
            style: NameStyle::Prefixed,
            filter: ToolFilter::default(),
            tools: [Arc::new(tool)].into(),
        };
        let (catalogue, _) = Catalogue::build(&[listing], &Settings::default()).unwrap();
        let access = Arc::new(Access::new(&AccessSettings::default()));
        let offers = vec![Offers::default()];
        let snapshot = Snapshot::new(
            (catalogue, Vec::new()),
            Catalogue::default(),
            offers,
            of_servers(&["s"]),
            Arc::clone(&access),
        );
        let tools = snapshot.lists(&access.local(None).unwrap()).tools;
        assert_eq!(std::str::from_utf8(&tools).unwrap(), format!(r#""tools":[{expected}]"#));
    }

    #[test]
    fn a_definition_goes_on_as_it_came_but_for_its_name() {
        check(
            r#"{"vendor": {"z":1.10}, "name":"a","inputSchema":{"type":"object", "x":1e400},"icons":[]}"#,
            r#"{"vendor":{"z":1.10},"name":"mcp__s__a","inputSchema":{"type":"object", "x":1e400},"icons":[]}"#,
        );
    }

    #[test]
    fn a_schema_that_clients_choke_on_is_mended() {
        check(r#"{"name":"a"}"#, r#"{"name":"mcp__s__a","inputSchema":{"type":"object"}}"#);
        check(
            r#"{"name":"a","inputSchema":[]}"#,
            r#"{"name":"mcp__s__a","inputSchema":{"type":"object"}}"#,
        );
        check(
            r#"{"name":"a","inputSchema":{ "properties":{}}}"#,
            r#"{"name":"mcp__s__a","inputSchema":{"type":"object","properties":{}}}"#,
        );
    }

    #[test]
    fn a_template_stands_for_every_uri_of_its_shape() {
        let pattern = any_of("test://{kind}/{id}/data{?q}");
        assert!(pattern.matches("test://a/1/data"));
        assert!(!pattern.matches("test://a/1/other"));
        assert_eq!(any_of("file:///{+path}").0, "file:///*");
        assert_eq!(any_of("a{").0, "a*");
    }

    /// Two servers with one resource, the first of them hidden from a group; and one without tools.
    #[test]
    fn a_resource_leads_to_a_server_that_the_caller_sees() {
        let listing = |server: &str, tools: &[&str]| {
            let tool = |name: &&str| {
                let raw = serde_json::json!({ "name": name });
                Arc::new(Tool::read(Json::of(&raw).unwrap()).unwrap())
            };
            Listing {
                origin: Origin::Upstream(server.into()),
                style: NameStyle::Prefixed,
                filter: ToolFilter::default(),
                tools: tools.iter().map(tool).collect(),
            }
        };
        let listings = [listing("a", &["x"]), listing("b", &["y"]), listing("none", &[])];
        let (tools, _) = Catalogue::build(&listings, &Settings::default()).unwrap();
        let offer = |uri: &str| Offers {
            resources: [Resource { uri: uri.into(), raw: Json::empty_object() }].into(),
            ..Offers::default()
        };
        let offers = vec![offer("shared://"), offer("shared://"), offer("alone://")];
        let group = |name: &str, exposed: Option<&str>| crate::GroupSettings {
            name: name.into(),
            tokens: Vec::new(),
            lists: crate::Lists {
                exposed: exposed.map(|it| vec![Pattern(it.into())]),
                excluded: vec![Pattern("mcp__a__*".into())],
            },
            ..Default::default()
        };
        let mut more = group("more", Some("none"));
        more.resources = vec![Pattern("shared:*".into())];
        let groups = vec![group("narrow", Some("mcp__b__*")), group("wide", None), more];
        let settings =
            AccessSettings { default_group: "guest".into(), groups, ..Default::default() };
        let access = Arc::new(Access::new(&settings));
        let snapshot = Snapshot::new(
            (tools, Vec::new()),
            Catalogue::default(),
            offers,
            of_servers(&[]),
            Arc::clone(&access),
        );
        let found =
            |group: &str, uri: &str| snapshot.resource(&access.local(Some(group)).unwrap(), uri);
        assert_eq!(found("guest", "shared://"), Some(0));
        assert_eq!(found("narrow", "shared://"), Some(1));
        assert_eq!((found("guest", "alone://"), found("wide", "alone://")), (Some(2), Some(2)));
        assert_eq!(found("narrow", "alone://"), None);
        assert_eq!(found("guest", "nowhere://"), None);
        assert_eq!((found("more", "shared://"), found("more", "alone://")), (Some(0), None));
        assert!(
            climbs("file:///reports/../x")
                && climbs("file:///a/%2E%2e%2fx")
                && !climbs("a://b/c..d")
        );
    }
}
