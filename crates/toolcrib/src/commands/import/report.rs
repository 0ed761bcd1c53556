//! What an import would take, and what it took, in words that hold no secret.

use std::path::Path;

use serde_json::{Map, Value, json};
use toolcrib_wire::text::Masker;

use super::{Plan, Taken};
use crate::{
    cli::Import,
    clients::Folders,
    commands::check::count,
    terminal::{self, BOLD, DIM, YELLOW, clean, styled, word},
};

/// What was found, as a table.
pub(super) fn found(plan: &Plan, folders: &Folders) -> String {
    let mut text = String::new();
    if !plan.taken.is_empty() {
        let row = |it: &Taken| {
            [
                clean(&it.name),
                clean(&it.from),
                runs(&it.entry, folders),
                clean(&it.changes.join("; ")),
            ]
        };
        let rows: Vec<[String; 4]> = plan.taken.iter().map(row).collect();
        text.push_str(&terminal::table(["SERVER", "FROM", "RUNS", "CHANGES"], &rows));
    }
    for left in &plan.left {
        let (name, from, why) = (clean(&left.name), clean(&left.from), clean(&left.why));
        text.push_str(&format!("{}  {name} ({from}): {why}\n", styled(YELLOW, "left out")));
    }
    text
}

/// The command line or the address. A secret that was not known for one may still look like one.
fn runs(entry: &Map<String, Value>, folders: &Folders) -> String {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    let shown = match text("url") {
        Some(url) => url.to_owned(),
        None => {
            let args = entry.get("args").and_then(Value::as_array).into_iter().flatten();
            let words = text("command").into_iter().chain(args.filter_map(Value::as_str));
            let words = words.map(|it| shell_word(&folders.shown(Path::new(it))));
            words.collect::<Vec<_>>().join(" ")
        }
    };
    let shown: String = clean(&Masker::default().mask(&shown)).chars().take(200).collect();
    shown
}

/// A reference to a variable is easier to read without quotes.
fn shell_word(text: &str) -> String {
    if text.contains("${") && !text.contains([' ', '\'']) { text.to_owned() } else { word(text) }
}

/// What was done, and what is to be done.
pub(super) fn done(plan: &Plan, written: bool, asked: &Import) -> String {
    let (values, workspace) = (asked.env_file.as_deref(), asked.workspace.as_path());
    let unread = unread(plan);
    if plan.taken.is_empty() {
        let nothing = match plan.left.is_empty() && plan.problems.is_empty() {
            true => "no client of yours has an MCP server\n".to_owned(),
            false => "there is nothing to take\n".to_owned(),
        };
        return nothing + &unread;
    }
    let file = plan.file.strip_prefix(".").unwrap_or(&plan.file).display().to_string();
    let servers = count(plan.taken.len(), "server");
    if !written {
        let way = match asked.dry_run || terminal::can_ask() {
            true => "",
            false => ", with --yes: there is nobody here to ask",
        };
        return format!("nothing was written; this would add {servers} to {file}{way}\n{unread}");
    }
    let mut text = format!("added {servers} to {}\n", styled(BOLD, &file));
    match values {
        Some(values) => {
            let values = word(&values.to_string_lossy());
            let (count, command) =
                (count(plan.variables.len(), "variable"), format!("set -a; . {values}; set +a"));
            text.push_str(&format!("wrote {count} to {values}; set them with `{command}`\n"));
        }
        None => text.push_str(&to_set(plan)),
    }
    let place = match workspace == Path::new(".") {
        true => String::new(),
        false => format!(" {}", word(&workspace.to_string_lossy())),
    };
    text.push_str(&unread);
    text.push_str(&format!("next: {}\n", styled(BOLD, &format!("toolcrib check{place}"))));
    text
}

/// That this folder has servers as well, which somebody else may have put there.
fn unread(plan: &Plan) -> String {
    if plan.unread.is_empty() {
        return String::new();
    }
    let here = std::env::current_dir().unwrap_or_default();
    let names = plan.unread.iter().map(|it| it.strip_prefix(&here).unwrap_or(it));
    let names: Vec<String> = names.map(|it| clean(&it.display().to_string())).collect();
    let files = names.join(", ");
    format!("not looked into: {files} of this folder; `--from project` does that\n")
}

/// The variables that somebody must set.
fn to_set(plan: &Plan) -> String {
    let unset: Vec<_> = plan.variables.iter().filter(|it| !it.set).collect();
    if unset.is_empty() {
        return String::new();
    }
    let width = unset.iter().map(|it| it.name.len()).max().unwrap_or_default();
    let mut text = "set these variables; their values stay where they were:\n".to_owned();
    for variable in unset {
        let places = styled(DIM, &clean(&variable.places.join(", ")));
        text.push_str(&format!("  {:width$}  {places}\n", variable.name));
    }
    text
}

/// The same for programs.
pub(super) fn listed(plan: &Plan, written: bool) -> String {
    let server = |it: &Taken| json!({ "name": it.name, "from": it.from, "file": it.file, "entry": it.entry, "changes": it.changes });
    let left = plan
        .left
        .iter()
        .map(|it| json!({ "name": it.name, "from": it.from, "file": it.file, "why": it.why }));
    let variable = plan
        .variables
        .iter()
        .map(|it| json!({ "name": it.name, "places": it.places, "set": it.set }));
    let report = json!({
        "servers": plan.taken.iter().map(server).collect::<Vec<_>>(),
        "left_out": left.collect::<Vec<_>>(),
        "variables": variable.collect::<Vec<_>>(),
        "problems": plan.problems,
        "not_looked_into": plan.unread,
        "file": plan.file,
        "written": written,
    });
    format!("{report:#}\n")
}
