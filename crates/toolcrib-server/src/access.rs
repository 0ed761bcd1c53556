//! Who is asking, and what they may see.
//!
//! A caller has a group: by its token, or the default one. Lists of a group narrow the lists of the
//! workspace. A list that is absent is no rule; an empty one exposes nothing. `excluded` wins. This is
//! the one place that decides, for listing and calling alike, on every door.

mod scraping;
mod settings;

use std::{cell::RefCell, net::IpAddr, sync::Arc};

use subtle::ConstantTimeEq;
use toolcrib_bus::Pattern as EventPattern;

pub use self::{
    scraping::Scraping,
    settings::{AccessSettings, GroupSettings},
};
use crate::shape::{GroupShape, Shapes, ViewStyle};

/// Who may see what.
#[derive(Debug)]
pub struct Access {
    tokens: Vec<Token>,
    groups: Vec<Group>,
    /// Whether somebody without a token is let in.
    open: bool,
    /// Whether a token is needed although nobody may have one.
    closed: bool,
    /// Whether a proxy stands in front of us, so that nobody's address is their own.
    proxied: bool,
    lists: Lists,
    shapes: Shapes,
    /// Who may read `/metrics`, besides operators: everybody, or whoever has this token.
    scraping: (bool, Option<[u8; 32]>),
}

/// Somebody who was let in. Two are the same if they came with the same token into the same group,
/// whatever else has changed meanwhile.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The name of the group.
    pub group: Arc<str>,
    /// Which token, by its digest: a session belongs to the one who opened it.
    token: Option<[u8; 32]>,
    /// Whoever runs the gateway, and came in by its private socket.
    operator: bool,
    /// Where from, if it came over a network.
    pub(crate) address: Option<IpAddr>,
}

impl PartialEq for Caller {
    fn eq(&self, other: &Self) -> bool {
        let same = |it: &Self| (Arc::clone(&it.group), it.token, it.operator);
        same(self) == same(other)
    }
}

impl Eq for Caller {}

/// Why somebody is not let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// There is no token, and one is needed.
    NoToken,
    /// Nobody has this token.
    UnknownToken,
}

/// What is exposed, and what is not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lists {
    /// If there is a list, nothing else is exposed.
    pub exposed: Option<Vec<Pattern>>,
    /// Never exposed.
    pub excluded: Vec<Pattern>,
}

/// A name in which `*` stands for any run of characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(pub String);

#[derive(Debug)]
struct Group {
    name: Arc<str>,
    lists: Lists,
    resources: Vec<Pattern>,
    prompts: Vec<Pattern>,
    events: Option<Vec<EventPattern>>,
    shape: GroupShape,
    operator: bool,
}

impl Group {
    fn new(settings: &GroupSettings) -> Self {
        let GroupSettings { name, lists, resources, prompts, events, shape, operator, .. } =
            settings.clone();
        Self { name: name.into(), lists, resources, prompts, events, shape, operator }
    }
}

struct Token {
    digest: [u8; 32],
    group: usize,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "**** of group {}", self.group)
    }
}

impl Access {
    /// What the settings mean. Tokens are kept as digests only.
    pub fn new(settings: &AccessSettings) -> Self {
        let name = settings.default_group.clone();
        let mut groups = vec![Group::new(&GroupSettings { name, ..GroupSettings::default() })];
        let mut tokens = Vec::new();
        let digest = |token: &str| *blake3::hash(token.as_bytes()).as_bytes();
        if let Some(token) = &settings.token {
            tokens.push(Token { digest: digest(token), group: 0 });
        }
        for group in &settings.groups {
            let id = if group.name == settings.default_group {
                groups[0] = Group::new(group);
                0
            } else {
                groups.push(Group::new(group));
                groups.len() - 1
            };
            let own = group.tokens.iter().map(|it| digest(it)).chain(group.digests.iter().copied());
            tokens.extend(own.map(|digest| Token { digest, group: id }));
        }
        let closed = settings.closed;
        let needless = tokens.is_empty() && !closed;
        let open = needless || (settings.token.is_none() && settings.anonymous);
        let (lists, shapes) = (settings.lists.clone(), settings.shapes.clone());
        let Scraping { open: scraped, token } = &settings.scraping;
        let scraping = (*scraped, token.as_deref().map(digest));
        let proxied = settings.behind_proxy;
        Self { tokens, groups, open, closed, proxied, lists, shapes, scraping }
    }

    /// Who sends this `Authorization`.
    pub fn identify(&self, authorization: Option<&[u8]>) -> Result<Caller, Denied> {
        let Some(header) = authorization else {
            return if self.open { Ok(self.anybody()) } else { Err(Denied::NoToken) };
        };
        if !self.has_tokens() {
            return Ok(self.anybody());
        }
        let given = bearer(header).ok_or(Denied::UnknownToken)?;
        let digest = *blake3::hash(given).as_bytes();
        // All are looked at, so that the time says nothing of which fits.
        let mut found = None;
        for token in &self.tokens {
            if bool::from(token.digest.ct_eq(&digest)) {
                let group = Arc::clone(&self.groups[token.group].name);
                let token = Some(token.digest);
                found = Some(Caller { group, token, operator: false, address: None });
            }
        }
        found.ok_or(Denied::UnknownToken)
    }

    /// Somebody without a token.
    fn anybody(&self) -> Caller {
        let group = Arc::clone(&self.groups[0].name);
        Caller { group, token: None, operator: false, address: None }
    }

    /// Whether somebody who was let in would be let in again, and into the same group.
    pub fn still_good(&self, caller: &Caller) -> bool {
        let group = |at: usize| self.groups[at].name == caller.group;
        match &caller.token {
            _ if caller.operator => true,
            Some(token) => self.tokens.iter().any(|it| it.digest == *token && group(it.group)),
            None => self.open && group(0),
        }
    }

    /// Whether somebody who came over a network would be let in no more. Who was started with us stays.
    pub(crate) fn has_expelled(&self, caller: &Caller) -> bool {
        caller.address.is_some() && !self.still_good(caller)
    }

    /// A caller of this group who needs no token, such as the one who started us.
    pub fn local(&self, group: Option<&str>) -> Option<Caller> {
        let Some(name) = group else { return Some(self.anybody()) };
        let group = self.groups.iter().find(|it| &*it.name == name)?;
        let group = Arc::clone(&group.name);
        Some(Caller { group, token: None, operator: false, address: None })
    }

    /// Whoever runs the gateway.
    pub(crate) fn operator(&self) -> Caller {
        Caller { operator: true, ..self.anybody() }
    }

    /// Whether somebody may do what operators may: by group, or because there are no tokens and they are `local`.
    /// Whoever came without a token where there are some is nobody in particular, whatever the group may.
    pub(crate) fn operates(&self, caller: &Caller, local: bool) -> bool {
        let group = self.place(&caller.group).is_some_and(|it| self.groups[it].operator);
        let known = caller.token.is_some() && self.still_good(caller);
        let local = local && !self.proxied && !self.has_tokens();
        caller.operator || (group && known) || local
    }

    /// Whose share of what is scarce somebody takes: that of a token, or of an address where there is none.
    pub(crate) fn share(caller: &Caller) -> (Option<[u8; 32]>, Option<IpAddr>) {
        (caller.token, caller.address.filter(|_| caller.token.is_none()))
    }

    /// Everybody who has a token.
    pub(crate) fn holders(&self) -> impl Iterator<Item = Caller> {
        self.tokens.iter().map(|it| {
            let group = Arc::clone(&self.groups[it.group].name);
            Caller { group, token: Some(it.digest), operator: false, address: None }
        })
    }

    /// Whether there is any token, or was one that opened no door by going.
    pub fn has_tokens(&self) -> bool {
        self.closed || !self.tokens.is_empty()
    }

    /// How many groups there are.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// The names of all groups, the default one first.
    pub fn group_names(&self) -> impl Iterator<Item = &str> {
        self.groups.iter().map(|it| &*it.name)
    }

    /// The place of a group, if there is one of that name.
    pub(crate) fn place(&self, group: &str) -> Option<usize> {
        self.groups.iter().position(|it| &*it.name == group)
    }

    /// Whether the group in this place may see and call a tool.
    pub(crate) fn allows(&self, group: usize, tool: &str) -> bool {
        let own = self.groups.get(group).is_some_and(|it| it.lists.allows(tool));
        own && self.lists.allows(tool)
    }

    /// Whether the group in this place sees a resource whoever has it.
    pub(crate) fn adds_resource(&self, group: usize, uri: &str) -> bool {
        let group = self.groups.get(group);
        group.is_some_and(|it| it.resources.iter().any(|it| it.matches(uri)))
    }

    /// Whether the group in this place sees a prompt whoever has it.
    pub(crate) fn adds_prompt(&self, group: usize, name: &str) -> bool {
        let group = self.groups.get(group);
        group.is_some_and(|it| it.prompts.iter().any(|it| it.matches(name)))
    }

    /// The events that the group in this place may have; nothing where the tools it may call decide.
    pub(crate) fn events(&self, group: usize) -> Option<Rights> {
        match self.groups.get(group)?.events.clone() {
            Some(patterns) => Some(Rights::Some(patterns)),
            None if self.has_tokens() => None,
            None => Some(Rights::All),
        }
    }

    /// Whether the group in this place may use a tool that is there for nobody who does not name it.
    pub(crate) fn names(&self, group: usize, tool: &str) -> bool {
        let own = self.groups.get(group).and_then(|it| it.lists.exposed.as_ref());
        let mut lists = own.into_iter().chain(&self.lists.exposed).flatten();
        lists.any(|it| it.0 == tool) && self.allows(group, tool)
    }

    /// Whether nothing says by its very name that the group in this place may not use a tool of ours.
    pub(crate) fn spares(&self, group: usize, tool: &str) -> bool {
        let own = self.groups.get(group).map(|it| &it.lists.excluded);
        let mut lists = own.into_iter().chain([&self.lists.excluded]).flatten();
        !lists.any(|it| it.0 == tool)
    }

    /// What the list of tools shows the group in this place.
    pub(crate) fn view(&self, group: usize) -> ViewStyle {
        let own = self.groups.get(group).and_then(|it| it.shape.view);
        own.unwrap_or(self.shapes.view)
    }

    /// Whether the group in this place is always shown a tool.
    pub(crate) fn pins(&self, group: usize, tool: &str) -> bool {
        let group = self.groups.get(group);
        group.is_some_and(|it| it.shape.pinned.iter().any(|it| it.matches(tool)))
    }

    /// How large a result of a tool may be for the group in this place.
    pub(crate) fn limit(&self, group: usize, tool: &str) -> Option<usize> {
        self.shapes.limit(&self.groups.get(group)?.shape, tool)
    }

    /// Whether the group in this place has its arguments put right.
    pub(crate) fn repairs(&self, group: usize) -> bool {
        self.groups.get(group).is_some_and(|it| it.shape.repairs)
    }

    /// Whether some result may be too large for the group in this place.
    pub(crate) fn limits(&self, group: usize) -> bool {
        self.groups.get(group).is_some_and(|it| self.shapes.limits(&it.shape))
    }

    /// Whether the group in this place sees whatever it is not told not to see.
    pub(crate) fn sees_all(&self, group: usize) -> bool {
        let own = self.groups.get(group).is_some_and(|it| it.lists.exposed.is_none());
        own && self.lists.exposed.is_none()
    }

    /// Why a group may not see a tool; nothing where it may.
    pub fn objection(&self, group: &str, tool: &str) -> Option<String> {
        let group = &self.groups[self.place(group)?];
        let of_group = format!(" of group {}", group.name);
        let lists = [(&self.lists, " of external_access"), (&group.lists, of_group.as_str())];
        lists.into_iter().find_map(|(lists, whose)| {
            if let Some(pattern) = lists.excluded.iter().find(|it| it.matches(tool)) {
                return Some(format!("`excluded_tools`{whose} names it: `{}`", pattern.0));
            }
            let exposed = lists.exposed.as_ref()?;
            let named = exposed.iter().any(|it| it.matches(tool));
            (!named).then(|| format!("`exposed_tools`{whose} does not name it"))
        })
    }

    /// In what shape a group gets a tool that it may call; nothing where it simply lists it and gets results whole.
    pub fn shape(&self, group: &str, tool: &str) -> Vec<String> {
        let Some(group) = self.place(group) else { return Vec::new() };
        let view = match self.view(group) {
            _ if self.pins(group, tool) => None,
            ViewStyle::All => None,
            ViewStyle::Search => Some("found with search_tools, not listed (`view: search`)"),
            ViewStyle::Auto => {
                Some("listed, or found with search_tools, whichever costs less (`view: auto`)")
            }
        };
        let limit = self.limit(group, tool);
        let limit = limit.map(|it| format!("results over {it} bytes are stored (`inline_up_to`)"));
        view.map(str::to_owned).into_iter().chain(limit).collect()
    }

    /// Patterns that none of these names matches: probably slips of the pen.
    pub fn unmatched<'a>(&'a self, names: &[&str]) -> Vec<&'a str> {
        let lists = std::iter::once(&self.lists).chain(self.groups.iter().map(|it| &it.lists));
        let patterns = lists.flat_map(|it| it.exposed.iter().flatten().chain(it.excluded.iter()));
        let pinned = self.groups.iter().flat_map(|it| &it.shape.pinned);
        let patterns = patterns.chain(pinned).chain(self.shapes.tools.iter().map(|(it, _)| it));
        let slips = patterns.filter(|it| !names.iter().any(|name| it.matches(name)));
        slips.map(|it| it.0.as_str()).collect()
    }
}

/// Which events somebody may read, publish and acknowledge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rights {
    All,
    Some(Vec<EventPattern>),
    /// Those that come of tools: what a call fills in is never more than one word.
    OfTools(Vec<EventPattern>),
}

impl Rights {
    /// Whether these events are among them.
    pub(crate) fn allow(&self, name: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(patterns) => patterns.iter().any(|it| it.matches(name)),
            Self::OfTools(patterns) => patterns.iter().any(|it| it.matches_words(name)),
        }
    }

    /// Patterns among which all of them are; nothing where there is no rule.
    pub(crate) fn patterns(&self) -> Option<Vec<EventPattern>> {
        match self {
            Self::All => None,
            Self::Some(patterns) | Self::OfTools(patterns) => Some(patterns.clone()),
        }
    }
}

impl Caller {
    /// A name for whoever has this token, which says nothing to those who do not have the salt.
    pub(crate) fn mark(&self, salt: &[u8; 32]) -> String {
        thread_local! {
            /// The last one, and what it was made of: one caller makes many calls.
            static LAST: RefCell<([u8; 32], [u8; 32], String)> = RefCell::default();
        }
        let token = self.token.unwrap_or_default();
        LAST.with_borrow_mut(|(of, with, mark)| {
            if (&*of, &*with) != (&token, salt) || mark.is_empty() {
                *mark = blake3::keyed_hash(salt, &token).to_hex()[..8].to_owned();
                (*of, *with) = (token, *salt);
            }
            mark.clone()
        })
    }

    /// Who this is, without saying the token.
    pub(crate) fn name(&self, salt: &[u8; 32]) -> String {
        match self.token {
            _ if self.operator => "operator".to_owned(),
            Some(_) => format!("token:{}", self.mark(salt)),
            None if self.address.is_some() => "anonymous".to_owned(),
            None => "local".to_owned(),
        }
    }

    /// The same, from there.
    pub(crate) fn at(self, address: IpAddr) -> Self {
        Self { address: Some(address), ..self }
    }

    /// One name for all that comes with the same token into the same group.
    pub(crate) fn principal(&self) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key("toolcrib caller");
        hasher.update(&self.token.unwrap_or_default()).update(&[self.operator.into()]);
        *hasher.update(self.group.as_bytes()).finalize().as_bytes()
    }

    /// Whether this is whoever runs the gateway.
    pub(crate) fn is_operator(&self) -> bool {
        self.operator
    }
}

impl Lists {
    fn allows(&self, name: &str) -> bool {
        let listed = |list: &[Pattern]| list.iter().any(|it| it.matches(name));
        self.exposed.as_deref().is_none_or(listed) && !listed(&self.excluded)
    }
}

impl Pattern {
    /// Whether the pattern stands for `name`.
    pub fn matches(&self, name: &str) -> bool {
        let mut pieces = self.0.split('*');
        let head = pieces.next().unwrap_or_default();
        let Some(mut rest) = name.strip_prefix(head) else { return false };
        let Some(tail) = pieces.next_back() else { return rest.is_empty() };
        for piece in pieces {
            // The leftmost match leaves the most room for the pieces after it.
            let Some((_, after)) = rest.split_once(piece) else { return false };
            rest = after;
        }
        rest.ends_with(tail)
    }
}

/// The token in `Bearer TOKEN`.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = header.split_at_checked(7)?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(exposed: Option<&[&str]>, excluded: &[&str]) -> Lists {
        let read = |list: &[&str]| list.iter().map(|it| Pattern((*it).to_owned())).collect();
        Lists { exposed: exposed.map(read), excluded: read(excluded) }
    }

    fn group(name: &str, tokens: &[&str]) -> GroupSettings {
        let tokens = tokens.iter().map(ToString::to_string).collect();
        GroupSettings { name: name.to_owned(), tokens, ..GroupSettings::default() }
    }

    #[track_caller]
    fn check(settings: &AccessSettings, header: Option<&str>, expected: Result<usize, Denied>) {
        let found = Access::new(settings).identify(header.map(str::as_bytes));
        let place = |it: Caller| Access::new(settings).place(&it.group).unwrap();
        assert_eq!(found.map(place), expected, "{header:?}");
    }

    #[test]
    fn the_seeds_table() {
        let none = AccessSettings { default_group: "guest".into(), ..Default::default() };
        check(&none, None, Ok(0));
        check(&none, Some("Bearer anything"), Ok(0));
        let main = AccessSettings { token: Some("secret".into()), ..none };
        check(&main, Some("Bearer secret"), Ok(0));
        check(&main, Some("bEARER  secret "), Ok(0));
        check(&main, None, Err(Denied::NoToken));
        for bad in ["Bearer secreT", "Bearer secret2", "Bearer ", "Basic secret", "secret", ""] {
            check(&main, Some(bad), Err(Denied::UnknownToken));
        }
    }

    #[test]
    fn group_tokens_lead_to_their_groups() {
        let groups = vec![group("a", &["ta", "ta2"]), group("guest", &["tg"])];
        let mut settings =
            AccessSettings { default_group: "guest".into(), groups, ..Default::default() };
        check(&settings, Some("Bearer ta2"), Ok(1));
        check(&settings, Some("Bearer tg"), Ok(0));
        check(&settings, None, Err(Denied::NoToken));
        settings.anonymous = true;
        check(&settings, None, Ok(0));
        check(&settings, Some("Bearer x"), Err(Denied::UnknownToken));
        settings.token = Some("main".into());
        check(&settings, None, Err(Denied::NoToken));
    }

    #[test]
    fn a_digest_will_do_and_the_last_token_that_goes_leaves_the_door_shut() {
        let mut clerk = group("clerk", &[]);
        clerk.digests = vec![*blake3::hash(b"tc_secret").as_bytes()];
        let mut settings = AccessSettings {
            default_group: "guest".into(),
            groups: vec![clerk],
            closed: true,
            ..Default::default()
        };
        check(&settings, Some("Bearer tc_secret"), Ok(1));
        check(&settings, Some("Bearer tc_other"), Err(Denied::UnknownToken));
        check(&settings, None, Err(Denied::NoToken));
        settings.groups[0].digests.clear();
        check(&settings, Some("Bearer tc_secret"), Err(Denied::UnknownToken));
        check(&settings, None, Err(Denied::NoToken));
        assert!(Access::new(&settings).has_tokens());
        settings.anonymous = true;
        check(&settings, None, Ok(0));
    }

    #[test]
    fn a_group_is_narrowed_and_an_empty_list_exposes_nothing() {
        let mut a = group("a", &[]);
        a.lists = lists(Some(&["mcp__db__*"]), &["mcp__db__drop"]);
        let mut b = group("b", &[]);
        b.lists = lists(Some(&[]), &[]);
        let settings = AccessSettings {
            lists: lists(Some(&["mcp__db__*", "search"]), &["*secret*"]),
            groups: vec![a, b],
            ..Default::default()
        };
        let access = Access::new(&settings);
        let seen = |group| {
            let names = ["mcp__db__read", "mcp__db__drop", "mcp__db__secret_x", "search", "other"];
            names.iter().filter(|it| access.allows(group, it)).copied().collect::<Vec<_>>()
        };
        assert_eq!(seen(0), ["mcp__db__read", "mcp__db__drop", "search"]);
        assert_eq!(seen(1), ["mcp__db__read"]);
        assert_eq!(seen(2), [""; 0]);
        for group in 0..3 {
            for name in ["mcp__db__read", "mcp__db__drop", "mcp__db__secret_x", "search", "other"] {
                let group_name = access.group_names().nth(group).unwrap();
                let allowed = access.objection(group_name, name).is_none();
                assert_eq!(allowed, access.allows(group, name), "{group} {name}");
            }
        }
        assert_eq!(access.unmatched(&["mcp__db__read", "search"]), ["*secret*", "mcp__db__drop"]);
    }

    #[test]
    fn a_caller_stays_the_same_while_other_groups_come_and_go() {
        let access = |names: &[&str]| {
            let groups = names.iter().map(|it| group(it, &[&format!("t-{it}")])).collect();
            Access::new(&AccessSettings {
                default_group: "guest".into(),
                groups,
                ..Default::default()
            })
        };
        let before = access(&["beta", "zeta"]);
        let zeta = before.identify(Some(b"Bearer t-zeta")).unwrap();
        let after = access(&["alpha", "zeta"]);
        assert_eq!(after.identify(Some(b"Bearer t-zeta")).unwrap(), zeta);
        assert!(after.still_good(&zeta));
        let beta = before.identify(Some(b"Bearer t-beta")).unwrap();
        assert!(!after.still_good(&beta));
    }

    #[test]
    fn a_token_is_never_shown() {
        let settings = AccessSettings { token: Some("hunter22".into()), ..Default::default() };
        assert!(!format!("{:?}", Access::new(&settings)).contains("hunter22"));
    }
}
