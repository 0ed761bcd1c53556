//! The dashboard, the documentation and the gateway speak of the same numbers.

use std::{collections::BTreeSet, fs, path::Path};

use serde_json::{Value, json};

use super::{Page, metrics};
use crate::{kit::Folder, serving::Serving};

fn repository(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path)).unwrap()
}

fn exported() -> Page {
    let folder = Folder::workspace(&json!({}));
    metrics(&Serving::start(folder.path()), &[])
}

/// All expressions of a dashboard, also those that fill its menus.
fn expressions(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (key, value) in members {
                match value {
                    Value::String(text) if ["expr", "definition"].contains(&key.as_str()) => {
                        found.push(text.clone());
                    }
                    value => expressions(value, found),
                }
            }
        }
        Value::Array(list) => list.iter().for_each(|it| expressions(it, found)),
        _ => {}
    }
}

/// The names of ours in an expression, without what a histogram adds to them.
fn names(text: &str, page: &Page) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    let ours = words.filter(|it| it.starts_with("toolcrib_") || it.starts_with("process_"));
    let family = |it: &str| {
        let suffixes = ["_bucket", "_sum", "_count"];
        let bare = suffixes.iter().find_map(|suffix| it.strip_suffix(suffix));
        let histogram =
            bare.filter(|it| page.families.get(*it).is_some_and(|it| it == "histogram"));
        histogram.unwrap_or(it).to_owned()
    };
    ours.map(family).collect()
}

#[test]
fn the_dashboard_asks_for_what_there_is_and_for_all_of_it() {
    let page = exported();
    let dashboard: Value =
        serde_json::from_str(&repository("packaging/grafana-dashboard.json")).unwrap();
    assert!(39 <= dashboard["schemaVersion"].as_u64().unwrap());
    let mut all = Vec::new();
    expressions(&dashboard, &mut all);
    assert!(30 < all.len(), "{all:?}");
    let used: BTreeSet<String> = all.iter().flat_map(|it| names(it, &page)).collect();
    let known: BTreeSet<String> = page.families.keys().cloned().collect();
    assert_eq!(used, known);
    for text in &all {
        let count = |c: char| text.matches(c).count();
        for (open, close) in [('(', ')'), ('{', '}'), ('[', ']')] {
            assert_eq!(count(open), count(close), "{text}");
        }
    }
    let ids: Vec<&Value> =
        dashboard["panels"].as_array().unwrap().iter().map(|it| &it["id"]).collect();
    let different: BTreeSet<String> = ids.iter().map(ToString::to_string).collect();
    assert_eq!(ids.len(), different.len());
}

#[test]
fn the_table_of_the_documentation_is_the_page() {
    let page = exported();
    let text = repository("docs/observability.md");
    let row = |line: &str| {
        let mut cells = line.strip_prefix("| `")?.split('|');
        let name = cells.next()?.trim().trim_end_matches('`').to_owned();
        let kind = cells.next()?.trim().to_owned();
        ["counter", "gauge", "histogram"].contains(&kind.as_str()).then_some((name, kind))
    };
    let documented: Vec<(String, String)> = text.lines().filter_map(row).collect();
    let mut sorted = documented.clone();
    sorted.sort();
    let found: Vec<(String, String)> =
        page.families.iter().map(|(name, kind)| (name.clone(), kind.clone())).collect();
    assert_eq!(sorted, found);
}
