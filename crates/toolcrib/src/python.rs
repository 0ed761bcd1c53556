//! `python` and `mods` of `network.yaml`: how the tools of a workspace that are written in Python are run.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};
use serde_json::Value;
use toolcrib_catalogue::{Json, Problem, nearest};
use toolcrib_sources::{
    mcp::{ClientOptions, Filled, Lookup, is_written_secret, read_duration},
    python::{ModSettings, Sandbox, SchemaMode, Settings},
};
use toolcrib_wire::text::Masker;

use crate::{
    network::{NetworkError, WRITTEN_OUT},
    schema,
};

/// The section as it is written.
#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct WrittenPython {
    /// The Python that runs the tools: a name, or a path seen from the workspace. Without it `.venv`, the one that is switched on, or `python3`.
    #[schemars(with = "Option<String>")]
    interpreter: Option<PathBuf>,
    /// How many calls of plain functions run at once, each in a process of its own.
    #[schemars(range(min = 1, max = 64), extend("usual" = 2))]
    workers: Option<usize>,
    /// What the schemas of tools say: a type and a description, or everything that the signature tells.
    #[schemars(schema_with = "schema::seed_full", extend("usual" = "seed"))]
    schema: Option<String>,
    /// How much memory a process may have, at least 64MB.
    #[schemars(schema_with = "schema::size", extend("usual" = "1GB"))]
    memory: Option<Amount>,
    /// How much CPU time a call of a plain function may use; without it, any.
    #[schemars(schema_with = "schema::short_time", extend("examples" = ["60s"]))]
    cpu: Option<Amount>,
    /// How long a call may take where the tool does not say.
    #[schemars(schema_with = "schema::short_time", extend("usual" = "30s"))]
    timeout: Option<Amount>,
    /// What tools find in their environment; `${NAME}` is filled in.
    env: BTreeMap<String, String>,
    /// Whether tools reach only the files that they need.
    #[schemars(schema_with = "schema::on_off", extend("usual" = "off"))]
    sandbox: Option<Value>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// A number, or one with a unit.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Amount {
    Number(f64),
    Text(String),
}

/// One entry of `mods`: a name, or a name with what belongs to it.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum WrittenMod {
    Name(String),
    Whole(WholeMod),
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct WholeMod {
    /// As it is imported: `mods.search_mod`.
    name: String,
    /// `false` leaves it out.
    #[serde(default = "yes")]
    enabled: bool,
    /// What it is given.
    #[serde(default)]
    config: Value,
}

fn yes() -> bool {
    true
}

const KEYS: [&str; 8] =
    ["interpreter", "workers", "schema", "memory", "cpu", "timeout", "env", "sandbox"];

/// What pip and uv are told by, which is nothing for tools.
const INSTALLERS: [&str; 18] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "XDG_CACHE_HOME",
    "PIP_INDEX_URL",
    "PIP_EXTRA_INDEX_URL",
    "PIP_TRUSTED_HOST",
    "PIP_CONFIG_FILE",
    "PIP_FIND_LINKS",
    "PIP_NO_INDEX",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "UV_CACHE_DIR",
];

/// The most processes for plain functions.
const MOST_WORKERS: usize = 64;

/// What the sections mean for a workspace.
pub(crate) fn resolve(
    written: WrittenPython,
    mods: Vec<WrittenMod>,
    folder: &Path,
    lookup: Lookup<'_>,
    problems: &mut Vec<Problem>,
) -> Result<Settings, NetworkError> {
    let refuse = |key: &str, cause: &str| {
        Err(NetworkError::Value { key: format!("python: {key}"), cause: cause.to_owned() })
    };
    let mut settings = Settings::new(folder);
    settings.schema = match written.schema.as_deref() {
        None | Some("seed") => SchemaMode::Seed,
        Some("full") => SchemaMode::Full,
        Some(_) => return refuse("schema", "it is `seed` or `full`"),
    };
    match written.workers {
        None => {}
        Some(workers @ 1..=MOST_WORKERS) => settings.workers = workers,
        Some(_) => return refuse("workers", "it is a number from 1 to 64"),
    }
    match written.memory.as_ref().map(bytes) {
        None => {}
        Some(Some(memory)) => settings.memory = Some(memory),
        Some(None) => {
            return refuse("memory", "it is an amount such as 512MB or 1GB, at least 64MB");
        }
    }
    for (key, amount) in [("cpu", &written.cpu), ("timeout", &written.timeout)] {
        let Some(amount) = amount else { continue };
        let text = match amount {
            Amount::Number(number) => number.to_string(),
            Amount::Text(text) => text.clone(),
        };
        match (key, read_duration(&text)) {
            (_, None) => return refuse(key, "it is a time such as 500ms, 30s or 2m"),
            ("cpu", time) => settings.cpu = time,
            (_, Some(time)) => settings.timeout = time,
        }
    }
    match &written.sandbox {
        None | Some(Value::Bool(false)) => {}
        Some(Value::Bool(true)) => settings.sandbox = Sandbox::On,
        Some(word) if word == "on" => settings.sandbox = Sandbox::On,
        Some(word) if word == "files" => settings.sandbox = Sandbox::Files,
        Some(word) if word == "off" => {}
        Some(_) => return refuse("sandbox", "it is on, files or off"),
    }
    for key in written.other.keys() {
        let problem = Problem::new("network.yaml: python", format!("unknown key `{key}`"));
        problems.push(match nearest(key, KEYS) {
            Some(meant) => problem.hint(format!("did you mean `{meant}`?")),
            None => problem.hint("it is ignored"),
        });
    }
    settings.interpreters = interpreters(written.interpreter, folder, lookup);
    set_environment(&mut settings, written.env, lookup, problems);
    let whole = |it: WrittenMod| match it {
        WrittenMod::Name(name) => WholeMod { name, enabled: true, config: Value::Null },
        WrittenMod::Whole(whole) => whole,
    };
    for written in mods.into_iter().map(whole).filter(|it| it.enabled) {
        let name = written.name.trim();
        if name.is_empty() || name == "tools" || name.contains(['\0', ':']) {
            let message = format!("`{}` is the name of no module", name.escape_debug());
            let problem = Problem::new("network.yaml: mods", message);
            problems.push(problem.hint("a mod is named as it is imported: mods.search_mod"));
            continue;
        }
        settings.mods.push(used(written));
    }
    Ok(settings)
}

fn used(written: WholeMod) -> ModSettings {
    let config = if written.config.is_object() { Json::of(&written.config).ok() } else { None };
    ModSettings { name: written.name, config: config.unwrap_or_else(Json::empty_object) }
}

/// The Python that a person would expect: the one that is named, the workspace's own, the one that is
/// switched on, the system's.
fn interpreters(named: Option<PathBuf>, folder: &Path, lookup: Lookup<'_>) -> Vec<PathBuf> {
    if let Some(named) = named.filter(|it| !it.as_os_str().is_empty()) {
        // A bare word is looked for on the path; anything else is a file of the workspace or a whole path.
        let bare = named.components().count() == 1;
        return vec![if bare { named } else { folder.join(named) }];
    }
    let inside = |it: PathBuf| it.join("bin").join("python");
    let own = inside(folder.join(".venv"));
    let active = lookup("VIRTUAL_ENV").map(|it| inside(PathBuf::from(it)));
    let there = [Some(own), active].into_iter().flatten().filter(|it| it.exists());
    there.chain(["python3", "python"].map(PathBuf::from)).collect()
}

/// Tools see what every child process sees, and what `env` names.
fn set_environment(
    settings: &mut Settings,
    written: BTreeMap<String, String>,
    lookup: Lookup<'_>,
    problems: &mut Vec<Problem>,
) {
    let mut env = ClientOptions::with_environment(lookup).inherited;
    let mut secrets = Vec::new();
    for (name, text) in written {
        let value = Filled::new(&text, lookup);
        for unset in &value.unset {
            let place = format!("network.yaml: python: env: {name}");
            problems.push(Problem::new(place, format!("the variable `{unset}` is not set")));
        }
        if is_written_secret(&name, &text) {
            let place = format!("network.yaml: python: env: {name}");
            let hint = "put it into a variable, and write ${NAME}";
            problems.push(Problem::warning(place, WRITTEN_OUT).hint(hint));
        }
        let value = value.value().to_owned();
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let place = "network.yaml: python: env";
            let message = format!("`{}` cannot be a variable", name.escape_debug());
            problems.push(Problem::new(place, message).hint("it is left out"));
            continue;
        }
        env.retain(|(known, _)| *known != name);
        // In an error a value stands as JSON writes it.
        let quoted = Value::from(value.as_str()).to_string();
        secrets.extend([value.clone(), quoted[1..quoted.len() - 1].to_owned()]);
        env.push((name, value));
    }
    settings.env = env;
    let pair = |name: &&str| Some(((*name).to_owned(), lookup(name)?));
    settings.install_env = INSTALLERS.iter().filter_map(pair).collect();
    settings.masker = Masker::new(secrets);
}

/// An amount of memory that Python starts with.
fn bytes(amount: &Amount) -> Option<u64> {
    size(amount).filter(|it| 64 << 20 <= *it)
}

/// `1GB`, `512 MB`, `1073741824`.
pub(crate) fn size(amount: &Amount) -> Option<u64> {
    let (number, unit) = match amount {
        Amount::Number(number) => (*number, 1),
        Amount::Text(text) => {
            let text = text.trim().to_ascii_uppercase();
            let units = [("KB", 1_u64 << 10), ("MB", 1 << 20), ("GB", 1 << 30), ("B", 1)];
            let found =
                units.into_iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit)));
            let (number, unit) = found.unwrap_or((&text, 1));
            (number.trim().parse().ok()?, unit)
        }
    };
    let whole = (number * unit as f64).round();
    (0.0 <= whole && whole <= (1_u64 << 50) as f64).then_some(whole as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_of_memory_have_units() {
        let read = |text: &str| bytes(&Amount::Text(text.to_owned()));
        assert_eq!(read("1GB"), Some(1 << 30));
        assert_eq!(read("512 mb"), Some(512 << 20));
        assert_eq!(read("0.5GB"), Some(512 << 20));
        assert_eq!(read("134217728"), Some(128 << 20));
        assert_eq!(read("1MB"), None, "no Python starts with that");
        assert_eq!(read("lots"), None);
        assert_eq!(bytes(&Amount::Number(f64::NAN)), None);
    }
}
