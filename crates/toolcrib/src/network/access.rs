//! `external_access` of `network.yaml`: who may ask, and what they see.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, de::IgnoredAny};
use toolcrib_catalogue::Problem;
use toolcrib_server::{AccessSettings, GroupSettings, Lists, Pattern, Shapes};
use toolcrib_sources::mcp::Lookup;

use super::{
    NetworkError,
    secrets::{digests, token},
    unknown,
};
use crate::{
    guard::{self, Word},
    python::Amount,
    schema, shape,
};

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(super) struct ExternalAccess {
    /// The group of whoever has the main token, or none where none is needed.
    #[schemars(extend("usual" = "guest"))]
    pub(super) default_agent_group: Option<String>,
    /// The main token, written out. Better: `auth_token_env`.
    #[serde(deserialize_with = "written")]
    pub(super) auth_token: Option<Option<String>>,
    /// The variable that has the main token. Where it is not set, the gateway does not start.
    #[serde(deserialize_with = "written")]
    pub(super) auth_token_env: Option<Option<String>>,
    /// What agents are told when they connect: a text, or a file of the workspace that ends in .md or .txt.
    pub(super) instruction: Option<String>,
    /// Which tools there are for anybody, by their public names; `*` stands for anything. Without it all, with an empty list none.
    pub(super) exposed_tools: Option<Vec<String>>,
    /// Which there are not; it wins over `exposed_tools`.
    pub(super) excluded_tools: Option<Vec<String>>,
    /// Callers without a token are let into the default group although groups have tokens.
    pub(super) anonymous: bool,
    /// What `tools/list` shows to groups that do not say otherwise: all tools, those for searching, or whichever costs fewer tokens.
    #[schemars(schema_with = "schema::view", extend("usual" = "all"))]
    pub(super) view: Option<String>,
    /// Groups of callers, by name.
    pub(super) groups: BTreeMap<String, Option<WrittenGroup>>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(super) struct WrittenGroup {
    /// The token of this group, written out. Better: `auth_token_env`, or `toolcrib token new`.
    #[serde(deserialize_with = "written")]
    auth_token: Option<Option<String>>,
    /// The variable that has the token of this group. Where it is not set, the gateway does not start.
    #[serde(deserialize_with = "written")]
    auth_token_env: Option<Option<String>>,
    /// Digests of further tokens, as `.toolcrib/tokens.json` has them.
    #[schemars(with = "Vec<Digest>")]
    token_digests: Vec<String>,
    /// Which tools this group sees and calls, of those that `external_access` exposes.
    exposed_tools: Option<Vec<String>>,
    /// Which it does not; it wins over `exposed_tools`.
    excluded_tools: Option<Vec<String>>,
    /// URIs of resources that it sees besides those of servers whose tools it sees.
    exposed_resources: Option<Vec<String>>,
    /// Public names of prompts that it sees besides those of servers whose tools it sees.
    exposed_prompts: Option<Vec<String>>,
    /// Names of events that it may read, publish and acknowledge: `task.*`.
    exposed_events: Option<Vec<String>>,
    /// What `tools/list` shows it.
    #[schemars(schema_with = "schema::view")]
    view: Option<String>,
    /// With `view: search`: tools that stay in the list.
    pinned_tools: Option<Vec<String>>,
    /// The largest result that goes to it as it is; `everything` for no limit.
    #[schemars(schema_with = "schema::inline")]
    inline_up_to: Option<Amount>,
    /// Arguments that a model wrote as text are put right where the schema takes no text.
    #[schemars(schema_with = "schema::on_off", extend("usual" = "off"))]
    repairs: Option<Word>,
    /// How often its members together may call.
    #[schemars(schema_with = "schema::rate", extend("examples" = ["10/s burst 20"]))]
    pub(super) rate: Option<String>,
    /// How many of their calls may run at a time.
    #[schemars(schema_with = "schema::calls", extend("examples" = [4]))]
    pub(super) concurrent: Option<Amount>,
    /// It sees other groups' calls in the console, restarts servers and accepts changes.
    operator: bool,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// Tells a key that is there without a value from one that is not there.
fn written<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(value).map(Some)
}

const ACCESS_KEYS: [&str; 9] = [
    "default_agent_group",
    "auth_token",
    "auth_token_env",
    "instruction",
    "exposed_tools",
    "excluded_tools",
    "anonymous",
    "view",
    "groups",
];

const GROUP_KEYS: [&str; 15] = [
    "auth_token",
    "auth_token_env",
    "token_digests",
    "exposed_tools",
    "excluded_tools",
    "exposed_resources",
    "exposed_prompts",
    "exposed_events",
    "view",
    "pinned_tools",
    "inline_up_to",
    "repairs",
    "rate",
    "concurrent",
    "operator",
];

/// How a digest is written.
struct Digest;

impl JsonSchema for Digest {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Digest".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^blake3:[0-9a-fA-F]{64}$" })
    }
}

impl ExternalAccess {
    /// Tells keys that there are not.
    pub(super) fn tell_unknown(&self, problems: &mut Vec<Problem>) {
        unknown(&self.other, "external_access: ", &ACCESS_KEYS, &[], problems);
    }
}

/// What the section means.
pub(super) fn resolve(
    written: ExternalAccess,
    shapes: Shapes,
    lookup: Lookup<'_>,
    problems: &mut Vec<Problem>,
) -> Result<AccessSettings, NetworkError> {
    let place = "external_access";
    let main = token(written.auth_token, written.auth_token_env, place, lookup, problems)?;
    let mut groups = Vec::new();
    for (name, group) in written.groups {
        let group = group.unwrap_or_default();
        let place = format!("external_access: groups: {name}");
        unknown(&group.other, &format!("{place}: "), &GROUP_KEYS, &[], problems);
        let token = token(group.auth_token, group.auth_token_env, &place, lookup, problems)?;
        let lists = lists(group.exposed_tools, group.excluded_tools);
        let events = group.exposed_events.map(|it| event_patterns(it, &place)).transpose()?;
        let mut shape = shape::of_group(
            group.view.as_deref(),
            patterns(group.pinned_tools.unwrap_or_default()),
            group.inline_up_to.as_ref(),
            &place,
        )?;
        shape.repairs = guard::repairs(group.repairs.as_ref(), &place)?;
        groups.push(GroupSettings {
            name,
            tokens: token.into_iter().collect(),
            digests: digests(&group.token_digests, &place)?,
            lists,
            resources: patterns(group.exposed_resources.unwrap_or_default()),
            prompts: patterns(group.exposed_prompts.unwrap_or_default()),
            events,
            shape,
            operator: group.operator,
        });
    }
    let mut all: Vec<&String> = groups.iter().flat_map(|it| &it.tokens).chain(&main).collect();
    all.sort();
    if all.windows(2).any(|pair| pair[0] == pair[1]) {
        let cause = "two groups have the same token".to_owned();
        return Err(NetworkError::Token { key: place.to_owned(), cause });
    }
    Ok(AccessSettings {
        default_group: written.default_agent_group.unwrap_or_else(|| "guest".to_owned()),
        token: main,
        anonymous: written.anonymous,
        closed: false,
        lists: lists(written.exposed_tools, written.excluded_tools),
        groups,
        shapes,
        ..AccessSettings::default()
    })
}

/// A pattern that makes no sense must not open more than was meant, nor less without a word.
fn event_patterns(
    list: Vec<String>,
    place: &str,
) -> Result<Vec<toolcrib_bus::Pattern>, NetworkError> {
    let read = list.into_iter().map(toolcrib_bus::Pattern::new).collect::<Result<_, _>>();
    read.map_err(|error| NetworkError::Value {
        key: format!("{place}: exposed_events"),
        cause: error.to_string(),
    })
}

fn patterns(list: Vec<String>) -> Vec<Pattern> {
    list.into_iter().map(Pattern).collect()
}

fn lists(exposed: Option<Vec<String>>, excluded: Option<Vec<String>>) -> Lists {
    Lists { exposed: exposed.map(patterns), excluded: excluded.map(patterns).unwrap_or_default() }
}
