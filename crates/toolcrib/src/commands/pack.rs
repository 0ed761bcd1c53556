//! `toolcrib pack`: a session becomes a prompt.

use std::{
    error::Error,
    io::{self, IsTerminal},
    path::Path,
    process::ExitCode,
};

use toolcrib_context::{
    BuildOptions, ContextItem, ContextManager, ContextPack, DropReason, ItemVerdict,
    ManagerOptions, Phase, SessionError, SessionLimits, load_mcp_session_jsonl, read_session,
};

use super::Failure;
use crate::{cli::Pack, terminal};

pub(crate) fn run(asked: &Pack) -> Result<ExitCode, Failure> {
    let name = terminal::clean(&asked.session.to_string_lossy());
    let items = read(&asked.session).map_err(|error| unreadable(&name, &error))?;
    let options = ManagerOptions { counter: asked.counter, ..ManagerOptions::default() };
    let mut manager = ContextManager::with(options);
    for item in items {
        manager.ingest(item).map_err(|error| Failure::unusable(format!("{name}: {error}")))?;
    }
    let options = BuildOptions { budget: asked.budget, ..BuildOptions::default() };
    let pack = manager
        .build_with(phase(&asked.phase), &asked.query, &options)
        .map_err(|error| Failure::said_no(error.to_string()))?;
    if asked.json {
        let json = serde_json::to_string_pretty(&pack).map_err(io::Error::other)?;
        terminal::print_raw(&json_for(json, terminal::is_watched()))?;
    } else if asked.explain {
        terminal::print(&explanation(&pack))?;
    } else {
        terminal::print_raw(&prompt_for(&pack.prompt, terminal::is_watched()))?;
        if io::stderr().is_terminal() {
            terminal::remark(&account(&pack));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The prompt. A person gets nothing that a terminal would take for an order; a program gets it as it is.
fn prompt_for(prompt: &str, watched: bool) -> String {
    if watched { format!("{}\n", terminal::clean_lines(prompt)) } else { format!("{prompt}\n") }
}

fn json_for(json: String, watched: bool) -> String {
    let json = if watched { terminal::clean_json(&json) } else { json };
    format!("{json}\n")
}

fn read(session: &Path) -> Result<Vec<ContextItem>, SessionError> {
    if session == Path::new("-") {
        return read_session(io::stdin().lock(), &SessionLimits::default());
    }
    load_mcp_session_jsonl(session)
}

fn unreadable(name: &str, error: &SessionError) -> Failure {
    let mut message = match error {
        SessionError::Unreadable { .. } => error.to_string(),
        _ => format!("{name}: {error}"),
    };
    if let Some(cause) = error.source() {
        message.push_str(&format!(": {cause}"));
    }
    let hint = match error {
        SessionError::Unreadable { .. } => "name a file of JSON lines, or - for standard input",
        SessionError::Broken { .. } => "what was read so far is not used: try again",
        SessionError::LineTooLong { .. } | SessionError::TooLong { .. } => {
            "pack a part of it, such as its last lines: tail -n 1000 SESSION.jsonl | toolcrib pack -"
        }
        _ => {
            r#"a session has a JSON object a line, such as {"id": "u1", "type": "user_turn", "text": "hello"}"#
        }
    };
    Failure::unusable(message).hint(Some(hint.to_owned()))
}

/// The parser of arguments lets nothing else through.
fn phase(name: &str) -> Phase {
    match name {
        "route" => Phase::Route,
        "call" => Phase::Call,
        "interpret" => Phase::Interpret,
        _ => Phase::Answer,
    }
}

/// What became of the session, in a line.
fn account(pack: &ContextPack) -> String {
    let stats = &pack.stats;
    let mut text = format!(
        "{} of {} tokens ({}); {} items in",
        stats.tokens, stats.budget, stats.counter, stats.included_count
    );
    if 0 < stats.dropped_count {
        let reasons = stats.dropped_reasons.iter();
        let reasons: Vec<String> =
            reasons.map(|(reason, count)| format!("{count} {}", why(*reason))).collect();
        text.push_str(&format!(", {} out: {}", stats.dropped_count, reasons.join(", ")));
    }
    text
}

fn why(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Sensitivity => "too sensitive",
        DropReason::Dedup => "said elsewhere",
        DropReason::KindLimit => "too many of the kind",
        DropReason::Budget => "no room",
        DropReason::Apart => "the other half may not be shown",
    }
}

fn explanation(pack: &ContextPack) -> String {
    let rows: Vec<[String; 3]> = pack.items.iter().map(row).collect();
    let table = terminal::table(["ITEM", "KIND", "WHY"], &rows);
    format!("{table}\n{}\n", account(pack))
}

fn row(item: &ItemVerdict) -> [String; 3] {
    let kind = serde_json::to_value(item.kind).ok();
    let kind = kind.as_ref().and_then(|it| it.as_str()).unwrap_or_default().to_owned();
    let verdict = match item.reason {
        None => "in".to_owned(),
        Some(reason) => format!("out, {}", why(reason)),
    };
    let score = item.score.map(|it| format!(", score {it:.3}")).unwrap_or_default();
    let closure = if item.from_closure { ", others follow from it" } else { "" };
    let why = format!("{verdict} ({} tokens{score}{closure})", item.tokens);
    [terminal::clean(&item.id), kind, why]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_no_orders() {
        let prompt = "a\u{1b}]0;title\u{7}\nb\u{9b}2J";
        assert_eq!(prompt_for(prompt, false), format!("{prompt}\n"));
        assert_eq!(prompt_for(prompt, true), "a\\u{1b}]0;title\\u{7}\nb\\u{9b}2J\n");
        let json = serde_json::json!({ "a b": prompt, "c": "\u{202e}ä\u{e0001}\t" });
        let shown = json_for(format!("{json:#}"), true);
        assert!(shown.chars().all(|c| c == '\n' || !c.is_control()), "{shown:?}");
        assert!(shown.contains("\\u202eä\\udb40\\udc01"), "{shown}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), json);
    }
}
