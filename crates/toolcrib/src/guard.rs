//! `validation`, `pins`, `poison` and `packages` of `network.yaml`, and `toolcrib.lock`: what tools, calls and servers are
//! held to.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write},
    path::Path,
};

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};
use toolcrib_catalogue::{
    OnFault, Problem,
    lock::{Lock, Pins},
};
use toolcrib_server::{PoisonRule, ResultRule, Rules};

use crate::{
    network::{NetworkError, unknown},
    schema,
};

/// The file that says which tools were accepted.
pub const LOCK_FILE: &str = "toolcrib.lock";

/// A larger lock is none.
const MAX_LOCK: u64 = 256 << 20;

/// What becomes of a server that is fetched when it is started, without a version of it being named.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Packages {
    /// It is started.
    Off,
    /// It is started, and told.
    #[default]
    Warn,
    /// It is not started.
    Strict,
}

/// A word; `on` and `off` may have been read as truth values.
#[derive(Deserialize)]
#[serde(untagged)]
pub(crate) enum Word {
    Is(bool),
    Text(String),
}

impl Word {
    pub(crate) fn as_str(&self) -> &str {
        match self {
            Self::Is(true) => "on",
            Self::Is(false) => "off",
            Self::Text(text) => text,
        }
    }
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct WrittenValidation {
    /// Whether arguments must fit the schema of their tool.
    #[schemars(schema_with = "schema::on_off", extend("usual" = "on"))]
    arguments: Option<Word>,
    /// What becomes of a result that does not fit what its tool promises: `strict` makes an error of it.
    #[schemars(schema_with = "schema::off_warn_strict", extend("usual" = "warn"))]
    results: Option<Word>,
    /// What becomes of a tool whose schema cannot be used.
    #[schemars(schema_with = "schema::permit_refuse", extend("usual" = "permit"))]
    schemas: Option<Word>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// What the three sections mean.
pub(crate) fn resolve(
    written: &WrittenValidation,
    pins: Option<&Word>,
    poison: Option<&Word>,
    problems: &mut Vec<Problem>,
) -> Result<Rules, NetworkError> {
    unknown(&written.other, "validation: ", &["arguments", "results", "schemas"], &[], problems);
    let mut rules = Rules::default();
    let choices = [("on", true), ("off", false)];
    choose(written.arguments.as_ref(), "validation: arguments", choices, &mut rules.arguments)?;
    let choices =
        [("off", ResultRule::Off), ("warn", ResultRule::Warn), ("strict", ResultRule::Strict)];
    choose(written.results.as_ref(), "validation: results", choices, &mut rules.results)?;
    let choices = [("permit", OnFault::RefuseRemote), ("refuse", OnFault::Refuse)];
    choose(written.schemas.as_ref(), "validation: schemas", choices, &mut rules.faulty)?;
    let choices = [("off", Pins::Off), ("warn", Pins::Warn), ("hold", Pins::Hold)];
    choose(pins, "pins", choices, &mut rules.pins)?;
    let choices =
        [("off", PoisonRule::Off), ("warn", PoisonRule::Warn), ("hide", PoisonRule::Hide)];
    choose(poison, "poison", choices, &mut rules.poison)?;
    Ok(rules)
}

/// What `packages` means.
pub(crate) fn packages(written: Option<&Word>) -> Result<Packages, NetworkError> {
    let mut packages = Packages::default();
    let choices = [("off", Packages::Off), ("warn", Packages::Warn), ("strict", Packages::Strict)];
    choose(written, "packages", choices, &mut packages)?;
    Ok(packages)
}

/// What `repairs` of a group means.
pub(crate) fn repairs(written: Option<&Word>, place: &str) -> Result<bool, NetworkError> {
    let mut repairs = false;
    choose(written, &format!("{place}: repairs"), [("on", true), ("off", false)], &mut repairs)?;
    Ok(repairs)
}

fn choose<T: Copy, const N: usize>(
    written: Option<&Word>,
    key: &str,
    choices: [(&str, T); N],
    chosen: &mut T,
) -> Result<(), NetworkError> {
    let Some(word) = written.map(Word::as_str) else { return Ok(()) };
    if let Some((_, it)) = choices.iter().find(|(known, _)| *known == word) {
        *chosen = *it;
        return Ok(());
    }
    let known: Vec<&str> = choices.iter().map(|(known, _)| *known).collect();
    let cause = format!("`{}` is none of {}", word.escape_debug(), known.join(", "));
    Err(NetworkError::Value { key: key.to_owned(), cause })
}

/// Reads the lock of a workspace: nothing where there is none. What cannot be read pins more, not less.
pub fn read_lock(folder: &Path) -> (Option<Lock>, Vec<Problem>) {
    let path = folder.join(LOCK_FILE);
    let text = match fs::metadata(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return (None, Vec::new()),
        Err(error) => Err(error.to_string()),
        Ok(it) if !it.is_file() => Err("it is not a file".to_owned()),
        Ok(it) if MAX_LOCK < it.len() => Err(format!("it has {} bytes", it.len())),
        Ok(_) => fs::read_to_string(&path).map_err(|it| it.to_string()),
    };
    match text {
        Ok(text) => {
            let (lock, problems) = Lock::read(&text);
            (Some(lock), problems)
        }
        Err(cause) => {
            // Of a file that cannot be read nobody knows what it pins.
            let (lock, _) = Lock::read("unreadable");
            let problem = Problem::new(LOCK_FILE, format!("it cannot be read: {cause}"));
            (Some(lock), vec![problem.hint("restore it, or write it anew with `toolcrib lock`")])
        }
    }
}

/// Writes the lock of a workspace, all of it or nothing.
pub fn write_lock(folder: &Path, lock: &Lock) -> io::Result<()> {
    let (path, new) = (folder.join(LOCK_FILE), folder.join("toolcrib.lock.new"));
    let write = || {
        let mut file = fs::File::create(&new)?;
        file.write_all(lock.write().as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&new)))
}
