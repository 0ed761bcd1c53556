//! Rows of contextweaver, by group.

mod adapter;
mod artifacts;
mod pack;

use serde_json::Value;

use super::Verdict;

/// What a row comes to.
pub(super) fn verdict(row: &Value) -> Verdict {
    match row["group"].as_str().unwrap_or_default() {
        "namespace" | "tool" | "hash8" | "result" | "session" => adapter::verdict(row),
        "tokens" | "facts" | "sensitivity" | "context" | "defect" => pack::verdict(row),
        "drilldown" | "views" => artifacts::verdict(row),
        _ => Verdict::Skip("for information"),
    }
}
