//! `limits` and `cache` of `network.yaml`, and `rate` and `concurrent` of groups and servers: how often what
//! may be called, and whose results are kept for a while.
//!
//! What cannot be read refuses the start: a limit that somebody believes in must be there.

use std::{collections::BTreeMap, time::Duration};

use schemars::JsonSchema;
use serde::{Deserialize, de::IgnoredAny};
use toolcrib_catalogue::Problem;
use toolcrib_server::{CacheRule, CacheSettings, Limit, LimitSettings, Pattern, Rate};
use toolcrib_sources::mcp::{self, read_rate};

use crate::{
    bus::time,
    network::{NetworkError, unknown},
    python::{Amount, size},
    schema,
};

/// The largest result that is kept where nothing is said.
const USUAL_SIZE: usize = 1 << 20;

/// Longer nothing is kept.
const LONGEST: Duration = Duration::from_secs(86_400);

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct WrittenLimits {
    /// How often all groups together may call; without it, as often as they like.
    #[schemars(schema_with = "schema::rate", extend("examples" = ["200/s"]))]
    rate: Option<String>,
    /// How many calls may run at a time.
    #[schemars(schema_with = "schema::calls", extend("examples" = [64]))]
    concurrent: Option<Amount>,
    /// For single tools, each by itself, by their public names: a rate, or more than that. `*` stands for anything.
    tools: BTreeMap<String, WrittenLimit>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// A rate, or more than that.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum WrittenLimit {
    #[schemars(schema_with = "schema::rate")]
    Rate(String),
    Both(WrittenBoth),
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
struct WrittenBoth {
    /// How often it may be called.
    #[schemars(schema_with = "schema::rate", extend("examples" = ["1/s"]))]
    rate: Option<String>,
    /// How many calls of it may run at a time.
    #[schemars(schema_with = "schema::calls", extend("examples" = [2]))]
    concurrent: Option<Amount>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize, Default, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub(crate) struct WrittenCache {
    /// How much is kept in all.
    #[schemars(schema_with = "schema::size", extend("usual" = "64MB"))]
    size: Option<Amount>,
    /// Whose results are kept, by their public names, and for how long. `*` stands for anything.
    tools: BTreeMap<String, WrittenKeeping>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// A time, or more than that.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum WrittenKeeping {
    #[schemars(schema_with = "schema::time")]
    Time(Amount),
    Both(WrittenTtl),
}

#[derive(Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
struct WrittenTtl {
    /// How long a result is kept, a day at most.
    #[schemars(schema_with = "schema::time", extend("examples" = ["60s"]))]
    ttl: Amount,
    /// The largest result that is kept.
    #[serde(default)]
    #[schemars(schema_with = "schema::size", extend("usual" = "1MB"))]
    size: Option<Amount>,
    #[serde(flatten)]
    #[schemars(skip)]
    other: BTreeMap<String, IgnoredAny>,
}

/// What `limits` means; groups say for themselves.
pub(crate) fn resolve_limits(
    written: &WrittenLimits,
    problems: &mut Vec<Problem>,
) -> Result<LimitSettings, NetworkError> {
    let keys = ["rate", "concurrent", "tools"];
    unknown(&written.other, "limits: ", &keys, &[], problems);
    let all = limit(written.rate.as_deref(), written.concurrent.as_ref(), "limits")?;
    let mut tools = Vec::new();
    for (name, written) in &written.tools {
        let place = format!("limits: tools: {name}");
        let limit = match written {
            WrittenLimit::Rate(rate) => limit(Some(rate), None, &place)?,
            WrittenLimit::Both(both) => {
                unknown(&both.other, &format!("{place}: "), &keys[..2], &[], problems);
                limit(both.rate.as_deref(), both.concurrent.as_ref(), &place)?
            }
        };
        tools.push((Pattern(name.clone()), limit));
    }
    Ok(LimitSettings { all, groups: Vec::new(), tools })
}

/// What `cache` means.
pub(crate) fn resolve_cache(
    written: &WrittenCache,
    problems: &mut Vec<Problem>,
) -> Result<CacheSettings, NetworkError> {
    unknown(&written.other, "cache: ", &["size", "tools"], &[], problems);
    let mut cache = CacheSettings::default();
    if let Some(amount) = &written.size {
        cache.size = bytes(amount, "cache: size")?;
    }
    for (name, written) in &written.tools {
        let place = format!("cache: tools: {name}");
        let (ttl, size) = match written {
            WrittenKeeping::Time(ttl) => (ttl, None),
            WrittenKeeping::Both(both) => {
                unknown(&both.other, &format!("{place}: "), &["ttl", "size"], &[], problems);
                (&both.ttl, both.size.as_ref())
            }
        };
        let fits = |it: &Duration| !it.is_zero() && *it <= LONGEST;
        let Some(ttl) = time(ttl).filter(fits) else {
            return refuse(&place, "it is a time such as 60s or 5m, at most a day");
        };
        let size = size.map(|it| bytes(it, &format!("{place}: size"))).transpose()?;
        let size = size.unwrap_or(USUAL_SIZE).min(cache.size);
        cache.tools.push((Pattern(name.clone()), CacheRule { ttl, size }));
    }
    Ok(cache)
}

/// What `rate` and `concurrent` mean.
pub(crate) fn limit(
    rate: Option<&str>,
    concurrent: Option<&Amount>,
    place: &str,
) -> Result<Limit, NetworkError> {
    let mut limit = Limit::default();
    if let Some(text) = rate {
        match read_rate(text) {
            Some(rate) => limit.rate = Some(of_source(rate)),
            None => {
                let place = format!("{place}: rate");
                return refuse(&place, "it is a rate such as 10/s, 100/m or 10/s burst 20");
            }
        }
    }
    if let Some(amount) = concurrent {
        let number = match amount {
            Amount::Number(it) if it.fract() == 0.0 && (1.0..1e9).contains(it) => *it as u32,
            _ => {
                let place = format!("{place}: concurrent");
                return refuse(&place, "it is a number of calls such as 4");
            }
        };
        limit.concurrent = Some(number);
    }
    Ok(limit)
}

/// What a server of `mcp.json` is held to.
pub(crate) fn of_server(config: &mcp::ServerConfig) -> Limit {
    Limit { rate: config.rate.map(of_source), concurrent: config.concurrent }
}

fn of_source(mcp::Rate { calls, per, burst }: mcp::Rate) -> Rate {
    Rate { calls, per, burst }
}

fn bytes(amount: &Amount, key: &str) -> Result<usize, NetworkError> {
    match size(amount).filter(|it| 1 << 10 <= *it).and_then(|it| usize::try_from(it).ok()) {
        Some(size) => Ok(size),
        None => refuse(key, "it is a size such as 10MB, at least 1KB"),
    }
}

fn refuse<T>(key: &str, cause: &str) -> Result<T, NetworkError> {
    Err(NetworkError::Value { key: key.to_owned(), cause: cause.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(text: &str) -> Result<LimitSettings, String> {
        let written = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        resolve_limits(&written, &mut Vec::new()).map_err(|error| error.to_string())
    }

    fn cache(text: &str) -> Result<CacheSettings, String> {
        let written = serde_saphyr::from_str(text).map_err(|error| error.to_string())?;
        resolve_cache(&written, &mut Vec::new()).map_err(|error| error.to_string())
    }

    #[test]
    fn limits_of_all_and_of_tools() {
        let found = limits(
            "{rate: 10/s burst 20, concurrent: 4, tools: {a: 100/m, 'b*': {rate: 1/h, concurrent: 1}}}",
        );
        let rate = |calls, per, burst| Rate { calls, per: Duration::from_secs(per), burst };
        let expected = LimitSettings {
            all: Limit { rate: Some(rate(10, 1, 20)), concurrent: Some(4) },
            groups: Vec::new(),
            tools: vec![
                (Pattern("a".into()), Limit { rate: Some(rate(100, 60, 100)), concurrent: None }),
                (Pattern("b*".into()), Limit { rate: Some(rate(1, 3600, 1)), concurrent: Some(1) }),
            ],
        };
        assert_eq!(found.unwrap(), expected);
    }

    #[test]
    fn a_limit_that_makes_no_sense_refuses_the_start() {
        for bad in ["10", "0/s", "-1/s", "10/d", "10/s burst 0", "10/s burst", "a/s", "10/s 20", ""]
        {
            let error = limits(&format!("{{tools: {{x: '{bad}'}}}}")).unwrap_err();
            assert!(error.contains("limits: tools: x: rate"), "{bad}: {error}");
        }
        for bad in ["0", "1.5", "-1", "many", "1e10"] {
            let error = limits(&format!("{{concurrent: {bad}}}")).unwrap_err();
            assert!(error.contains("limits: concurrent"), "{bad}: {error}");
        }
    }

    #[test]
    fn results_are_kept_as_long_as_is_said() {
        let found =
            cache("{size: 4MB, tools: {a: 60s, 'b*': {ttl: 5m, size: 10KB}, c: 90}}").unwrap();
        let rule = |ttl, size| CacheRule { ttl: Duration::from_secs(ttl), size };
        let rules: Vec<_> =
            found.tools.iter().map(|(name, rule)| (name.0.as_str(), *rule)).collect();
        let mb = 1 << 20;
        assert_eq!(rules, [("a", rule(60, mb)), ("b*", rule(300, 10 << 10)), ("c", rule(90, mb))]);
        assert_eq!(found.size, 4 * mb);
        for bad in ["{tools: {a: 0s}}", "{tools: {a: 2d}}", "{tools: {a: soon}}", "{size: 1}"] {
            assert!(cache(bad).unwrap_err().contains("cache: "), "{bad}");
        }
    }
}
