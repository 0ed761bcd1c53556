//! `audit` of `network.yaml`: whether calls are on record, how safely, and for how long.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};
use toolcrib_catalogue::Problem;
use toolcrib_server::{AuditMode, AuditSettings, Shown};

use crate::{
    guard::Word,
    network::{NetworkError, unknown},
    python::{Amount, size},
    schema,
    shape::lasting,
};

/// Where the record is, in `.toolcrib/`.
pub const AUDIT_FOLDER: &str = "audit";

/// Less would hold too little to be of use.
const LEAST_SIZE: u64 = 1 << 20;

/// Whether calls are on record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auditing {
    /// They are not.
    Off,
    /// They are, where there is a folder for it; nothing was said about it.
    Default(AuditSettings),
    /// They are: without a record nothing is served.
    Asked(AuditSettings),
}

/// A word, or how.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum WrittenAudit {
    #[schemars(schema_with = "schema::on_strict_off")]
    Word(Word),
    How(WrittenHow),
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct WrittenHow {
    /// Whether there is a record; `strict`: nobody gets an answer before its record is on disk.
    #[schemars(schema_with = "schema::on_strict_off", extend("usual" = "on"))]
    mode: Option<Word>,
    /// How long records are kept.
    #[schemars(schema_with = "schema::time", extend("usual" = "90d"))]
    retain: Option<Amount>,
    /// How much is kept, at least 1MB.
    #[schemars(schema_with = "schema::size", extend("usual" = "1GB"))]
    max_size: Option<Amount>,
    /// Whether arguments are written too, without secrets; else their size and a digest.
    #[schemars(schema_with = "schema::on_off", extend("usual" = "off"))]
    arguments: Option<Word>,
    /// Whether results are written too, without secrets; else their size.
    #[schemars(schema_with = "schema::on_off", extend("usual" = "off"))]
    results: Option<Word>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// What `audit` means.
pub(crate) fn resolve(
    written: Option<WrittenAudit>,
    problems: &mut Vec<Problem>,
) -> Result<Auditing, NetworkError> {
    let mut settings = AuditSettings::default();
    let how = match written {
        None => return Ok(Auditing::Default(settings)),
        Some(WrittenAudit::Word(word)) => WrittenHow { mode: Some(word), ..Default::default() },
        Some(WrittenAudit::How(how)) => how,
    };
    let keys = ["mode", "retain", "max_size", "arguments", "results"];
    unknown(&how.other, "audit: ", &keys, &[], problems);
    settings.retain = lasting(how.retain.as_ref(), settings.retain, "audit: retain")?;
    if let Some(amount) = &how.max_size {
        settings.max_size = match size(amount).filter(|it| LEAST_SIZE <= *it) {
            Some(size) => size,
            None => {
                let cause = "it is a size such as 500MB, at least 1MB".to_owned();
                return Err(NetworkError::Value { key: "audit: max_size".to_owned(), cause });
            }
        };
    }
    settings.arguments = shown(how.arguments.as_ref(), "audit: arguments")?;
    settings.results = shown(how.results.as_ref(), "audit: results")?;
    match how.mode.as_ref().map_or("on", Word::as_str) {
        "off" => return Ok(Auditing::Off),
        "on" => {}
        "strict" => settings.mode = AuditMode::Strict,
        other => return refuse("audit: mode", other, "on, strict, off"),
    }
    Ok(Auditing::Asked(settings))
}

fn shown(written: Option<&Word>, key: &str) -> Result<Shown, NetworkError> {
    match written.map_or("off", Word::as_str) {
        "off" => Ok(Shown::Digest),
        "on" => Ok(Shown::Masked),
        other => refuse(key, other, "on, off"),
    }
}

fn refuse<T>(key: &str, word: &str, known: &str) -> Result<T, NetworkError> {
    let cause = format!("`{}` is none of {known}", word.escape_debug());
    Err(NetworkError::Value { key: key.to_owned(), cause })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(text: &str) -> Result<(Auditing, Vec<Problem>), String> {
        let options = serde_saphyr::options! { strict_booleans: true };
        let written = serde_saphyr::from_str_with_options(text, options).unwrap();
        let mut problems = Vec::new();
        let resolved = resolve(Some(written), &mut problems).map_err(|it| it.to_string())?;
        Ok((resolved, problems))
    }

    #[test]
    fn a_word_or_how() {
        let on = AuditSettings::default();
        let strict = AuditSettings { mode: AuditMode::Strict, ..on.clone() };
        let asked = |it: &AuditSettings| (Auditing::Asked(it.clone()), Vec::new());
        assert_eq!(read("on").unwrap(), asked(&on));
        assert_eq!(read("true").unwrap(), asked(&on));
        assert_eq!(read("strict").unwrap(), asked(&strict));
        assert_eq!(read("off").unwrap().0, Auditing::Off);
        assert_eq!(read("{ mode: off, retain: 90d }").unwrap().0, Auditing::Off);
        let retain = Duration::from_secs(7 * 86_400);
        let whole = AuditSettings {
            retain,
            max_size: 5 << 20,
            arguments: Shown::Masked,
            results: Shown::Masked,
            ..strict.clone()
        };
        let text = "{ mode: strict, retain: 7d, max_size: 5MB, arguments: on, results: on }";
        assert_eq!(read(text).unwrap(), asked(&whole));
        assert_eq!(resolve(None, &mut Vec::new()).unwrap(), Auditing::Default(on));
    }

    #[test]
    fn what_is_not_understood_is_refused_or_said() {
        let cause = read("loud").unwrap_err();
        assert_eq!(cause, "network.yaml: audit: mode: `loud` is none of on, strict, off");
        assert!(read("{ retain: 1s }").unwrap_err().contains("audit: retain"));
        assert!(read("{ max_size: 10KB }").unwrap_err().contains("at least 1MB"));
        assert!(read("{ results: some }").unwrap_err().contains("none of on, off"));
        assert_eq!(read("{ mode: on, reatin: 7d }").unwrap().1.len(), 1);
    }
}
