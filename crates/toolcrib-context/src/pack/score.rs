//! What speaks for an item.

use hashbrown::HashSet;
use serde_json::Value;

use super::{Entry, Scoring};
use crate::words::{Query, share};

/// How much speaks for the item at place `place` of `count`.
pub(super) fn score(
    scoring: &Scoring,
    entry: &Entry,
    (place, count): (usize, usize),
    query: &Query,
    tags: &HashSet<&str>,
) -> f64 {
    // Tags that fit speak for an item as much as words do; they do not silence the words.
    let similarity = query.likeness(&entry.words).max(tag_likeness(entry, tags));
    scoring.recency * share(place + 1, count)
        + scoring.similarity * similarity
        + scoring.kind * scoring.of_kind(entry.item.kind)
        + scoring.brevity * brevity(entry.item.token_estimate)
}

#[expect(clippy::cast_precision_loss, reason = "an estimate of that size is a mistake anyway")]
fn brevity(token_estimate: u64) -> f64 {
    1.0 / (1.0 + token_estimate as f64 / 500.0)
}

/// What share of their tags the question and an item have in common.
fn tag_likeness(entry: &Entry, tags: &HashSet<&str>) -> f64 {
    let Some(Value::Array(own)) = entry.item.metadata.get("tags").filter(|_| !tags.is_empty())
    else {
        return 0.0;
    };
    let own: HashSet<&str> = own.iter().filter_map(Value::as_str).collect();
    let common = own.intersection(tags).count();
    share(common, own.len() + tags.len() - common)
}
