//! `network.yaml`: where the gateway listens, who may ask, and what they see.
//!
//! Written types, and one function that says what they mean. A fault that could leave the door open (a
//! token that is configured and cannot be had) refuses the start; anything else is a problem.

mod files;
mod proxy;
mod secrets;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Deserializer, de::IgnoredAny};
use toolcrib_catalogue::{NameStyle, Problem, Severity, nearest};
use toolcrib_server::{AccessSettings, GroupSettings, Lists, Pattern, Rules, Shapes};
use toolcrib_sources::{mcp::Lookup, python};
use toolcrib_wire::text::Masker;

use crate::{
    audit::{self, Auditing, WrittenAudit},
    bus::{BusSettings, WrittenBus, resolve as resolve_bus},
    guard::{self, Packages, Word, WrittenValidation},
    limits::{self, WrittenCache, WrittenLimits},
    python::{Amount, WrittenMod, WrittenPython, resolve as resolve_python},
    shape::{self, Results, Sessions, WrittenResults, WrittenSessions},
    tokens::Tokens,
};

use files::{instructions, read_file};
use secrets::{digests, token};

/// What `network.yaml` means.
#[derive(Debug, Clone)]
pub struct Network {
    /// Where the gateway listens.
    pub listen: SocketAddr,
    /// The files of our certificates and of their key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Somebody else does TLS.
    pub behind_proxy: bool,
    /// What clients may call us, besides the address.
    pub hosts: Vec<String>,
    /// Who may see what.
    pub access: AccessSettings,
    /// What agents should know.
    pub instructions: Option<String>,
    /// How upstream tools are named, unless their server says otherwise.
    pub style: NameStyle,
    /// How Python tools are run.
    pub python: python::Settings,
    /// Where events go.
    pub bus: BusSettings,
    /// How large results are kept.
    pub results: Results,
    /// Whether calls are recorded, and for how long.
    pub sessions: Option<Sessions>,
    /// Whether calls are on record, and how.
    pub audit: Auditing,
    /// What tools and calls are held to, but for `toolcrib.lock`.
    pub rules: Rules,
    /// Whether a server may be a program without a version.
    pub packages: Packages,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// What works, and somebody should know of.
    pub warnings: Vec<Problem>,
    /// There is a file, and something in it.
    pub present: bool,
}

/// Why a gateway must not start with this file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// It cannot be read.
    #[error("network.yaml{place}: {cause}")]
    Unreadable {
        /// `:3:7`, where known.
        place: String,
        /// Why.
        cause: String,
    },
    /// A token is configured and cannot be had.
    #[error("network.yaml: {key}: {cause}")]
    Token {
        /// Where it is configured.
        key: String,
        /// Why not.
        cause: String,
    },
    /// The tokens that were made cannot be read, so nobody knows who may come in.
    #[error(".toolcrib/tokens.json: {0}")]
    Tokens(String),
    /// It does not make sense.
    #[error("network.yaml: {key}: {cause}")]
    Value {
        /// Which key.
        key: String,
        /// Why.
        cause: String,
    },
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Written {
    listen: Option<String>,
    tls: Option<WrittenTls>,
    behind_proxy: bool,
    hosts: Vec<String>,
    names: Names,
    external_access: Option<ExternalAccess>,
    python: Option<WrittenPython>,
    mods: Option<Vec<WrittenMod>>,
    bus: Option<WrittenBus>,
    results: Option<WrittenResults>,
    sessions: Option<WrittenSessions>,
    audit: Option<WrittenAudit>,
    validation: Option<WrittenValidation>,
    pins: Option<Word>,
    poison: Option<Word>,
    packages: Option<Word>,
    limits: Option<WrittenLimits>,
    cache: Option<WrittenCache>,
    network: Option<OpenAgents>,
    #[serde(flatten)]
    other: BTreeMap<String, IgnoredAny>,
}

/// What we read of an OpenAgents file's own section.
#[derive(Deserialize, Default)]
#[serde(default)]
struct OpenAgents {
    mods: Option<Vec<WrittenMod>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenTls {
    cert: PathBuf,
    key: PathBuf,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Names {
    upstream: Option<String>,
    #[serde(flatten)]
    other: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ExternalAccess {
    default_agent_group: Option<String>,
    #[serde(deserialize_with = "written")]
    auth_token: Option<Option<String>>,
    #[serde(deserialize_with = "written")]
    auth_token_env: Option<Option<String>>,
    instruction: Option<String>,
    exposed_tools: Option<Vec<String>>,
    excluded_tools: Option<Vec<String>>,
    anonymous: bool,
    view: Option<String>,
    groups: BTreeMap<String, Option<WrittenGroup>>,
    #[serde(flatten)]
    other: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct WrittenGroup {
    #[serde(deserialize_with = "written")]
    auth_token: Option<Option<String>>,
    #[serde(deserialize_with = "written")]
    auth_token_env: Option<Option<String>>,
    token_digests: Vec<String>,
    exposed_tools: Option<Vec<String>>,
    excluded_tools: Option<Vec<String>>,
    exposed_resources: Option<Vec<String>>,
    exposed_prompts: Option<Vec<String>>,
    exposed_events: Option<Vec<String>>,
    view: Option<String>,
    pinned_tools: Option<Vec<String>>,
    inline_up_to: Option<Amount>,
    repairs: Option<Word>,
    rate: Option<String>,
    concurrent: Option<Amount>,
    operator: bool,
    #[serde(flatten)]
    other: BTreeMap<String, IgnoredAny>,
}

/// Tells a key that is there without a value from one that is not there.
fn written<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(value).map(Some)
}

const KNOWN: [&str; 19] = [
    "listen",
    "tls",
    "behind_proxy",
    "hosts",
    "names",
    "external_access",
    "python",
    "mods",
    "bus",
    "results",
    "sessions",
    "audit",
    "validation",
    "pins",
    "poison",
    "packages",
    "limits",
    "cache",
    "network",
];

/// What an OpenAgents file also has, and what we have no use for yet.
const LATER: [&str; 3] = ["network_profile", "calls", "service_agents"];

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

/// What is said of a secret that is not in a variable.
pub(crate) const WRITTEN_OUT: &str =
    "a secret stands here, for everybody to read who reads the file";

impl Network {
    /// Reads the file of a workspace; without one, everything has its default.
    pub fn read(folder: &Path, lookup: Lookup<'_>) -> Result<Self, NetworkError> {
        let path = folder.join("network.yaml");
        let text = match read_file(&path) {
            Ok(text) => text,
            Err(cause) => {
                return Err(NetworkError::Unreadable { place: String::new(), cause });
            }
        };
        let text = text.filter(|it| !it.trim().is_empty());
        let present = text.is_some();
        let written = text.as_deref().map(parse).transpose()?.unwrap_or_default();
        let mut network = Self { present, ..resolve(written, folder, lookup)? };
        let made = Tokens::read(folder).map_err(NetworkError::Tokens)?;
        network.warnings.extend(made.join(&mut network.access));
        Ok(network)
    }
}

fn parse(text: &str) -> Result<Written, NetworkError> {
    let options = serde_saphyr::options! { strict_booleans: true, with_snippet: false };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let location = error.location();
        let place = location.map(|it| format!(":{}:{}", it.line(), it.column()));
        let cause = error.without_snippet().to_string();
        // The reader's words may hold a value of the file, and that value may be a token.
        let cause = cause.lines().next().unwrap_or_default();
        let cause = cause.split(" at line ").next().unwrap_or_default();
        let cause = cause.split(", set ").next().unwrap_or_default();
        let cause = Masker::new(tokens_in(text)).mask(cause).into_owned();
        NetworkError::Unreadable { place: place.unwrap_or_default(), cause }
    })
}

/// Whatever stands behind `auth_token:` in a text that could not be read.
fn tokens_in(text: &str) -> impl Iterator<Item = String> {
    text.split("auth_token:").skip(1).map(|rest| {
        let value = rest.trim_start_matches(|c: char| c.is_whitespace() || "[{'\"".contains(c));
        value
            .split(|c: char| c.is_whitespace() || ",]}'\"".contains(c))
            .next()
            .unwrap_or_default()
            .to_owned()
    })
}

fn resolve(written: Written, folder: &Path, lookup: Lookup<'_>) -> Result<Network, NetworkError> {
    let mut problems = Vec::new();
    unknown(&written.other, "", &KNOWN, &LATER, &mut problems);
    unknown(&written.names.other, "names: ", &["upstream"], &["namespace"], &mut problems);
    let listen = written.listen.as_deref().unwrap_or("127.0.0.1:8700");
    let listen = read_address(listen).ok_or_else(|| NetworkError::Value {
        key: "listen".to_owned(),
        cause: format!("`{listen}` is not an address such as 127.0.0.1:8700"),
    })?;
    let style = match written.names.upstream.as_deref() {
        None | Some("prefixed") => NameStyle::Prefixed,
        Some("bare") => NameStyle::Bare,
        Some(other) => {
            let cause = format!("`{other}` is none of prefixed, bare");
            return Err(NetworkError::Value { key: "names: upstream".to_owned(), cause });
        }
    };
    let mods = written.mods.or(written.network.and_then(|it| it.mods)).unwrap_or_default();
    let python = written.python.unwrap_or_default();
    let python = resolve_python(python, mods, folder, lookup, &mut problems)?;
    let bus = resolve_bus(written.bus.unwrap_or_default(), folder, lookup, &mut problems)?;
    let (results, mut shapes) =
        shape::resolve_results(&written.results.unwrap_or_default(), &mut problems)?;
    let sessions = shape::resolve_sessions(written.sessions, &mut problems)?;
    let audit = audit::resolve(written.audit, &mut problems)?;
    let mut rules = guard::resolve(
        &written.validation.unwrap_or_default(),
        written.pins.as_ref(),
        written.poison.as_ref(),
        &mut problems,
    )?;
    rules.limits = limits::resolve_limits(&written.limits.unwrap_or_default(), &mut problems)?;
    rules.cache = limits::resolve_cache(&written.cache.unwrap_or_default(), &mut problems)?;
    let access = written.external_access.unwrap_or_default();
    for (name, group) in access.groups.iter().filter_map(|(name, it)| Some((name, it.as_ref()?))) {
        let place = format!("external_access: groups: {name}");
        let limit = limits::limit(group.rate.as_deref(), group.concurrent.as_ref(), &place)?;
        rules.limits.groups.push((name.clone(), limit));
    }
    if let Some(view) = &access.view {
        shapes.view = shape::view(view, "external_access")?;
    }
    unknown(&access.other, "external_access: ", &ACCESS_KEYS, &[], &mut problems);
    let instructions =
        access.instruction.as_deref().and_then(|it| instructions(it, folder, &mut problems));
    let mut access = resolve_access(access, shapes, lookup, &mut problems)?;
    access.behind_proxy = written.behind_proxy;
    let (warnings, problems) =
        problems.into_iter().partition(|it| it.severity == Severity::Warning);
    Ok(Network {
        listen,
        tls: written.tls.map(|it| (folder.join(it.cert), folder.join(it.key))),
        behind_proxy: written.behind_proxy,
        hosts: written.hosts,
        access,
        instructions,
        style,
        python,
        bus,
        results,
        sessions,
        audit,
        rules,
        packages: guard::packages(written.packages.as_ref())?,
        problems,
        warnings,
        present: true,
    })
}

fn resolve_access(
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
        behind_proxy: false,
        lists: lists(written.exposed_tools, written.excluded_tools),
        groups,
        shapes,
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

pub(crate) fn unknown(
    keys: &BTreeMap<String, IgnoredAny>,
    place: &str,
    known: &[&str],
    later: &[&str],
    problems: &mut Vec<Problem>,
) {
    for key in keys.keys().filter(|it| !later.contains(&it.as_str())) {
        let message = format!("unknown key `{}`", key.escape_debug());
        let problem =
            Problem::new(format!("network.yaml: {place}").trim_end_matches(": "), message);
        problems.push(match nearest(key, known.iter().copied()) {
            Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
            None => problem.hint("it is ignored"),
        });
    }
}

/// `127.0.0.1:8700`, `localhost:8700`, `:8700`.
pub fn read_address(text: &str) -> Option<SocketAddr> {
    let text = text.trim();
    let local = text.strip_prefix("localhost").or(text.starts_with(':').then_some(text));
    match local {
        Some(port) => format!("127.0.0.1{port}").parse().ok(),
        None => text.parse().ok(),
    }
}
