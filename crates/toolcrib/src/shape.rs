//! `results`, `sessions` and `view` of `network.yaml`: what clients get to see of what there is, and what is
//! kept of it.

use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};
use toolcrib_catalogue::Problem;
use toolcrib_server::{GroupShape, Inline, Pattern, Shapes, ViewStyle};

use crate::{
    bus::time,
    network::{NetworkError, unknown},
    python::{Amount, size},
    schema,
};

/// How large results are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Results {
    /// How long.
    pub keep: Duration,
    /// How much of all groups together.
    pub quota: u64,
    /// How much of one group.
    pub group_quota: u64,
}

/// How recorded calls are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sessions {
    /// How long.
    pub keep: Duration,
    /// How much.
    pub quota: u64,
}

impl Default for Results {
    fn default() -> Self {
        Self { keep: 7 * DAY, quota: 2 << 30, group_quota: 1 << 30 }
    }
}

impl Default for Sessions {
    fn default() -> Self {
        Self { keep: 30 * DAY, quota: 1 << 30 }
    }
}

const DAY: Duration = Duration::from_secs(86_400);

/// The least that makes sense: a summary has to fit.
const LEAST_INLINE: u64 = 1 << 10;

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct WrittenResults {
    /// The largest result that goes to clients as it is, at least 1KB; larger ones are stored and summed up. Without it all go as they are.
    #[schemars(schema_with = "schema::inline", extend("examples" = ["16KB"]))]
    inline_up_to: Option<Amount>,
    /// The same for single tools, by their public names; `*` stands for anything.
    #[schemars(schema_with = "schema::inlines")]
    tools: BTreeMap<String, Amount>,
    /// How long stored results are kept.
    #[schemars(schema_with = "schema::time", extend("usual" = "7d"))]
    keep: Option<Amount>,
    /// How much of all groups together is kept.
    #[schemars(schema_with = "schema::size", extend("usual" = "2GB"))]
    quota: Option<Amount>,
    /// How much of one group is kept, and no more than `quota`.
    #[schemars(schema_with = "schema::size", extend("usual" = "1GB"))]
    group_quota: Option<Amount>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// `on`, `off`, or on and how.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum WrittenSessions {
    Is(bool),
    #[schemars(schema_with = "schema::on_off")]
    Word(String),
    How(WrittenKeeping),
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct WrittenKeeping {
    /// How long.
    #[schemars(schema_with = "schema::time", extend("usual" = "30d"))]
    keep: Option<Amount>,
    /// How much.
    #[schemars(schema_with = "schema::size", extend("usual" = "1GB"))]
    quota: Option<Amount>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// What `results` means.
pub(crate) fn resolve_results(
    written: &WrittenResults,
    problems: &mut Vec<Problem>,
) -> Result<(Results, Shapes), NetworkError> {
    let keys = ["inline_up_to", "tools", "keep", "quota", "group_quota"];
    unknown(&written.other, "results: ", &keys, &[], problems);
    let mut shapes = Shapes::default();
    if let Some(amount) = &written.inline_up_to {
        shapes.inline = Some(inline(amount, "results: inline_up_to")?);
    }
    for (tool, amount) in &written.tools {
        let inline = inline(amount, &format!("results: tools: {tool}"))?;
        shapes.tools.push((Pattern(tool.clone()), inline));
    }
    let mut results = Results::default();
    results.keep = lasting(written.keep.as_ref(), results.keep, "results: keep")?;
    results.quota = room(written.quota.as_ref(), results.quota, "results: quota")?;
    let most = results.group_quota.min(results.quota);
    results.group_quota = room(written.group_quota.as_ref(), most, "results: group_quota")?;
    Ok((results, shapes))
}

/// What `sessions` means; nothing where nothing is recorded.
pub(crate) fn resolve_sessions(
    written: Option<WrittenSessions>,
    problems: &mut Vec<Problem>,
) -> Result<Option<Sessions>, NetworkError> {
    let mut sessions = Sessions::default();
    match written {
        None | Some(WrittenSessions::Is(false)) => Ok(None),
        Some(WrittenSessions::Is(true)) => Ok(Some(sessions)),
        Some(WrittenSessions::Word(word)) => match word.as_str() {
            "on" => Ok(Some(sessions)),
            "off" => Ok(None),
            word => refuse("sessions", format!("`{}` is none of on, off", word.escape_debug())),
        },
        Some(WrittenSessions::How(how)) => {
            unknown(&how.other, "sessions: ", &["keep", "quota"], &[], problems);
            sessions.keep = lasting(how.keep.as_ref(), sessions.keep, "sessions: keep")?;
            sessions.quota = room(how.quota.as_ref(), sessions.quota, "sessions: quota")?;
            Ok(Some(sessions))
        }
    }
}

/// The shape of a group.
pub(crate) fn of_group(
    written: Option<&str>,
    pinned: Vec<Pattern>,
    up_to: Option<&Amount>,
    place: &str,
) -> Result<GroupShape, NetworkError> {
    let view = written.map(|it| view(it, place)).transpose()?;
    let inline = up_to.map(|it| inline(it, &format!("{place}: inline_up_to"))).transpose()?;
    Ok(GroupShape { view, pinned, inline, repairs: false })
}

/// What `view` means.
pub(crate) fn view(written: &str, place: &str) -> Result<ViewStyle, NetworkError> {
    match written {
        "all" => Ok(ViewStyle::All),
        "search" => Ok(ViewStyle::Search),
        "auto" => Ok(ViewStyle::Auto),
        other => refuse(
            &format!("{place}: view"),
            format!("`{}` is none of all, search, auto", other.escape_debug()),
        ),
    }
}

fn inline(amount: &Amount, key: &str) -> Result<Inline, NetworkError> {
    if matches!(amount, Amount::Text(text) if text.trim() == "everything") {
        return Ok(Inline::Everything);
    }
    let limit = size(amount).filter(|it| LEAST_INLINE <= *it);
    match limit.and_then(|it| usize::try_from(it).ok()) {
        Some(limit) => Ok(Inline::UpTo(limit)),
        None => refuse(key, "it is a size such as 16KB, at least 1KB, or `everything`".to_owned()),
    }
}

pub(crate) fn lasting(
    amount: Option<&Amount>,
    default: Duration,
    key: &str,
) -> Result<Duration, NetworkError> {
    let Some(amount) = amount else { return Ok(default) };
    match time(amount).filter(|it| Duration::from_secs(60) <= *it) {
        Some(time) => Ok(time),
        None => refuse(key, "it is a time such as 7d or 12h, at least 1m".to_owned()),
    }
}

fn room(amount: Option<&Amount>, default: u64, key: &str) -> Result<u64, NetworkError> {
    let Some(amount) = amount else { return Ok(default) };
    match size(amount).filter(|it| 1 << 20 <= *it) {
        Some(size) => Ok(size),
        None => refuse(key, "it is a size such as 1GB, at least 1MB".to_owned()),
    }
}

fn refuse<T>(key: &str, cause: String) -> Result<T, NetworkError> {
    Err(NetworkError::Value { key: key.to_owned(), cause })
}
