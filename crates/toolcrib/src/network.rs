//! `network.yaml`: where the gateway listens, who may ask, and what they see.
//!
//! Written types, and one function that says what they mean. A fault that could leave the door open (a
//! token that is configured and cannot be had) refuses the start; anything else is a problem.

mod files;
mod proxy;
mod secrets;
mod access;

use std::{
    collections::BTreeMap,
    hash::{Hash, Hasher},
    net::SocketAddr,
    path::{Path, PathBuf},
};

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;
use toolcrib_catalogue::{NameStyle, Problem, Severity, nearest};
use toolcrib_server::{AccessSettings, Rules, TraceSettings};
use toolcrib_sources::{mcp::Lookup, python};
use toolcrib_wire::text::Masker;

use crate::{
    audit::{self, Auditing, WrittenAudit},
    bus::{BusSettings, WrittenBus, resolve as resolve_bus},
    guard::{self, Packages, Word, WrittenValidation},
    limits::{self, WrittenCache, WrittenLimits},
    python::{WrittenMod, WrittenPython, resolve as resolve_python},
    schema,
    shape::{self, Results, Sessions, WrittenResults, WrittenSessions},
    telemetry::{self, WrittenMetrics, WrittenTelemetry},
    tokens::Tokens,
};

use access::ExternalAccess;
use files::{instructions, read_file};

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
    /// Where traces go, if they go anywhere.
    pub telemetry: Option<TraceSettings>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// What works, and somebody should know of.
    pub warnings: Vec<Problem>,
    /// There is a file, and something in it.
    pub present: bool,
    /// What stands in the sections that only a start heeds, as digests.
    at_start: Sections,
    /// What stands in those that are about Python.
    of_python: Sections,
}

/// Digests of some sections of the file, one after the other.
#[derive(Clone, Default, PartialEq, Eq)]
struct Sections(Vec<u64>);

impl std::fmt::Debug for Sections {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Sections")
    }
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

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, transform = passing_over)]
struct Written {
    /// Where the gateway listens: `127.0.0.1:8700`, `localhost:8700` or `:8700`. `--listen` goes before it.
    #[schemars(extend("usual" = "127.0.0.1:8700"))]
    listen: Option<String>,
    /// Our certificate and its key, to speak HTTPS; without it, plain HTTP.
    tls: Option<WrittenTls>,
    /// Somebody in front of us does TLS. An address that others can reach needs this or `tls`.
    behind_proxy: bool,
    /// What clients may call us besides the address, such as `tools.example.com`.
    hosts: Vec<String>,
    /// How tools of servers are named.
    names: Names,
    /// Who may ask, and what they see.
    external_access: Option<ExternalAccess>,
    /// How tools that are written in Python are run.
    python: Option<WrittenPython>,
    /// Python modules that bring tools along: a name, or a name with what belongs to it.
    mods: Option<Vec<WrittenMod>>,
    /// Where events go, how long they are kept, and who is told of them.
    bus: Option<WrittenBus>,
    /// How large a result may be before it is stored and summed up.
    results: Option<WrittenResults>,
    /// Whether the calls of each client are recorded for `toolcrib pack`: a word, or for how long and how much.
    #[schemars(extend("usual" = "off"))]
    sessions: Option<WrittenSessions>,
    /// Whether calls are on record, and how: a word, or more than that.
    audit: Option<WrittenAudit>,
    /// What arguments, results and schemas are held to.
    validation: Option<WrittenValidation>,
    /// What becomes of a tool that is not what was accepted in `toolcrib.lock`.
    #[schemars(schema_with = "schema::off_warn_hold", extend("usual" = "warn"))]
    pins: Option<Word>,
    /// What becomes of a tool whose description looks as if it gave orders to the model.
    #[schemars(schema_with = "schema::off_warn_hide", extend("usual" = "warn"))]
    poison: Option<Word>,
    /// What becomes of a server that is fetched when it is started, without an exact version: `strict` does not start it.
    #[schemars(schema_with = "schema::off_warn_strict", extend("usual" = "warn"))]
    packages: Option<Word>,
    /// How often what may be called.
    limits: Option<WrittenLimits>,
    /// Whose results are kept for a while.
    cache: Option<WrittenCache>,
    /// Where traces go.
    telemetry: Option<WrittenTelemetry>,
    /// Who may read `/metrics` besides operators.
    metrics: Option<WrittenMetrics>,
    /// The section of an OpenAgents file. Of it `mods` is read where there is no `mods` above; the rest is passed over.
    network: Option<OpenAgents>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// What we read of an OpenAgents file's own section.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
struct OpenAgents {
    /// As `mods` of the file itself.
    mods: Option<Vec<WrittenMod>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WrittenTls {
    /// The file of our certificates, seen from the workspace.
    #[schemars(with = "String", extend("examples" = ["cert.pem"]))]
    cert: PathBuf,
    /// The file of their key.
    #[schemars(with = "String", extend("examples" = ["key.pem"]))]
    key: PathBuf,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields, transform = passing_over_namespace)]
struct Names {
    /// `mcp__server__tool`, or as the server names them. `names` of a server in mcp.json goes before it.
    #[schemars(schema_with = "schema::name_style", extend("usual" = "prefixed"))]
    upstream: Option<String>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

fn passing_over(schema: &mut Schema) {
    schema::passed_over(schema, &LATER);
}

fn passing_over_namespace(schema: &mut Schema) {
    schema::passed_over(schema, &["namespace"]);
}

/// The JSON Schema of `network.yaml`.
pub fn network_yaml_schema() -> Value {
    let about =
        "Where a Toolcrib gateway listens, who may ask, and what they see. Every key is optional.";
    schema::schema_of::<Written>("network.yaml", about)
}

const KNOWN: [&str; 21] = [
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
    "telemetry",
    "metrics",
    "network",
];

/// What an OpenAgents file also has, and what we have no use for yet.
const LATER: [&str; 3] = ["network_profile", "calls", "service_agents"];

/// Sections that say how the gateway stands: edits of them wait for the next start.
const AT_START: [&str; 8] =
    ["listen", "tls", "hosts", "behind_proxy", "bus", "sessions", "audit", "telemetry"];

/// Sections that say how Python tools and mods are run: edits of them start these anew.
const OF_PYTHON: [&str; 3] = ["python", "mods", "network"];

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
        let text = text.as_deref().unwrap_or_default();
        let (at_start, of_python) = (digests_of(text, &AT_START), digests_of(text, &OF_PYTHON));
        let resolved = resolve(written, folder, lookup)?;
        let mut network = Self { present, at_start, of_python, ..resolved };
        let made = Tokens::read(folder).map_err(NetworkError::Tokens)?;
        network.warnings.extend(made.join(&mut network.access));
        Ok(network)
    }

    /// What is not as it was `before`, and takes effect with the next start only.
    pub fn waits_for_start(&self, before: &Self) -> Vec<Problem> {
        let differs = |at: &usize| self.at_start.0.get(*at) != before.at_start.0.get(*at);
        let problem = |at: usize| {
            let message = "it has changed, and takes effect with the next start";
            Problem::warning(format!("network.yaml: {}", AT_START[at]), message)
        };
        (0..AT_START.len()).filter(differs).map(problem).collect()
    }

    /// Whether Python tools and mods are run otherwise than `before`.
    pub fn runs_python_like(&self, before: &Self) -> bool {
        self.of_python == before.of_python
    }
}

/// A digest of each of these sections: whether it has changed, and nothing of what it holds.
fn digests_of(text: &str, keys: &[&str]) -> Sections {
    let all: Value = serde_saphyr::from_str(text).unwrap_or_default();
    let digest = |key: &&str| {
        let mut hasher = std::hash::DefaultHasher::new();
        all[*key].to_string().hash(&mut hasher);
        hasher.finish()
    };
    Sections(keys.iter().map(digest).collect())
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
    access.tell_unknown(&mut problems);
    let instructions =
        access.instruction.as_deref().and_then(|it| instructions(it, folder, &mut problems));
    let mut access = access::resolve(access, shapes, lookup, &mut problems)?;
    access.behind_proxy = written.behind_proxy;
    access.scraping = telemetry::resolve_metrics(written.metrics, lookup, &mut problems)?;
    let telemetry = telemetry::resolve(written.telemetry, folder, lookup, &mut problems)?;
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
        telemetry,
        problems,
        warnings,
        present: true,
        at_start: Sections::default(),
        of_python: Sections::default(),
    })
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
