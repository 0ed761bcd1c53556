//! The page of what can be typed, from what `--help` is made from.

use std::fmt::Write;

use clap::{Arg, Command, CommandFactory};

use super::{MADE, code, table};
use crate::cli::Args;

pub(super) fn page() -> String {
    let mut command = Args::command();
    command.build();
    let mut text = format!(
        "{MADE}\n# Commands: every argument and flag\n\n\
         What they print as JSON, and how several clients share one workspace: [commands.md](../commands.md). Exit codes: \
         [errors.md](errors.md#exit-codes).\n\n## For all commands\n\n{}",
        arguments(&command, |it| it.is_global_set() || it.get_id() == "version"),
    );
    for below in command.get_subcommands().filter(|it| is_shown(it)) {
        describe(below, "toolcrib", &mut text);
    }
    text
}

fn is_shown(command: &Command) -> bool {
    command.get_name() != "help" && !command.is_hide_set()
}

/// A command, and those below it.
fn describe(command: &Command, above: &str, text: &mut String) {
    let name = format!("{above} {}", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    write!(text, "\n## {name}\n\n{about}.\n").ok();
    let below: Vec<&Command> = command.get_subcommands().filter(|it| is_shown(it)).collect();
    if below.is_empty() {
        let usage = command.clone().render_usage().to_string();
        let usage = usage.trim_start_matches("Usage: ");
        let own =
            |it: &Arg| !it.is_global_set() && !["help", "version"].contains(&it.get_id().as_str());
        write!(text, "\n```text\n{usage}\n```\n\n{}", arguments(command, own)).ok();
    }
    if let Some(more) = command.get_after_help() {
        write!(text, "\n```text\n{more}\n```\n").ok();
    }
    for below in below {
        describe(below, &name, text);
    }
}

/// What a command takes, as a table.
fn arguments(command: &Command, which: impl Fn(&Arg) -> bool) -> String {
    let rows: Vec<_> = command
        .get_arguments()
        .filter(|it| which(it) && !it.is_hide_set())
        .map(|it| {
            let help = it.get_help().map(ToString::to_string).unwrap_or_default();
            let (help, said) = match help.split_once(" [default: ") {
                Some((help, default)) => (help, default.trim_end_matches(']').to_owned()),
                None => (help.as_str(), String::new()),
            };
            vec![spelled(it), default(it).unwrap_or(said), format!("{help}{}", choices(it))]
        })
        .collect();
    if rows.is_empty() { String::new() } else { table(&["", "default", ""], rows) }
}

/// `-w`, `--workspace WORKSPACE`; `[NAME]`.
fn spelled(arg: &Arg) -> String {
    let values: Vec<String> = match arg.get_value_names() {
        Some(names) => names.iter().map(ToString::to_string).collect(),
        None => vec![arg.get_id().as_str().to_uppercase()],
    };
    let value = values.join(" ");
    let many = if arg.get_num_args().is_some_and(|it| 1 < it.max_values()) { " …" } else { "" };
    if arg.is_positional() {
        let value = format!("{value}{many}");
        return code(if arg.is_required_set() { value } else { format!("[{value}]") });
    }
    let takes = arg.get_action().takes_values();
    let long = arg.get_long().map(|it| match takes {
        true => format!("`--{it} {value}`"),
        false => format!("`--{it}`"),
    });
    let short = arg.get_short().map(|it| format!("`-{it}`"));
    short.into_iter().chain(long).collect::<Vec<_>>().join(", ")
}

fn default(arg: &Arg) -> Option<String> {
    if !arg.get_action().takes_values() {
        return None;
    }
    let values = arg.get_default_values().iter().map(|it| it.to_string_lossy().into_owned());
    let values: Vec<String> = values.filter(|it| !it.is_empty()).map(code).collect();
    (!values.is_empty()).then(|| values.join(" "))
}

fn choices(arg: &Arg) -> String {
    if !arg.get_action().takes_values() {
        return String::new();
    }
    let values = arg.get_possible_values();
    let words: Vec<String> =
        values.iter().filter(|it| !it.is_hide_set()).map(|it| code(it.get_name())).collect();
    if words.is_empty() { String::new() } else { format!(": {}", words.join(", ")) }
}
