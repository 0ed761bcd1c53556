//! Packs, and what they are made of.
//!
//! Of a pack the rows say which items are in, and why the others are out. Where ours differs, it is because
//! the original did one of four things that ours does not, and the row shows that it did.

mod session;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use toolcrib_context::{
    BuildOptions, ContextItem, ContextManager, Counter, ItemKind, ManagerOptions, Phase, Secrets,
    Sensitivity, ToolResult, detect_sensitivity, extract_facts,
};

use super::Verdict;
use session::{Ended, Outcome};

/// What a row comes to.
pub(super) fn verdict(row: &Value) -> Verdict {
    let input = row["input"].as_str().unwrap_or_default();
    match row["group"].as_str().unwrap_or_default() {
        "tokens" => same(row, &json!(Counter::Heuristic.count(input))),
        "facts" => same(row, &json!(extract_facts(input))),
        "sensitivity" => same(row, &json!(detect_sensitivity(input))),
        "context" => context(row),
        _ => defect(row),
    }
}

fn same(row: &Value, ours: &Value) -> Verdict {
    if row["output"] == *ours { Verdict::Pass } else { Verdict::Other(ours.to_string()) }
}

fn context(row: &Value) -> Verdict {
    let ours = session::run(&row["input"]);
    if let Some(error) = row["error"]["type"].as_str() {
        let expected = match error {
            "DuplicateItemError" => Ended::Duplicate,
            "BudgetOverflowError" => Ended::Overflow,
            // Whatever else the original died of: ours may say no, or do something sensible.
            _ => return accident(&ours),
        };
        return match ours.ended {
            Some(ended) if ended == expected => Verdict::Pass,
            ended => Verdict::Other(format!("{ended:?}")),
        };
    }
    let theirs = Outcome::of(row);
    if ours.ended.is_none() && ours.included == theirs.included && ours.dropped == theirs.dropped {
        return Verdict::Pass;
    }
    // What the original did in this row, and what ours must do instead.
    let (class, held) = if theirs.budget < theirs.tokens {
        ("rendered-budget", within_budget(&ours, &theirs))
    } else if !theirs.is_together() {
        ("together", together(&ours))
    } else if theirs.loses_attachment(row) {
        ("attachments-apart", all_attachments(&ours))
    } else if theirs.cuts_small_results {
        ("whole-results", whole_results(&ours))
    } else {
        return Verdict::Other(format!(
            "{:?} in, {:?} out, {:?}",
            ours.included, ours.dropped, ours.ended
        ));
    };
    Verdict::Class(class, held)
}

fn accident(ours: &Outcome) -> Verdict {
    let sum = ours.included.len() + ours.dropped.len();
    let held = ours.ended.is_some() || sum == ours.candidates;
    Verdict::Class("accident", held.then_some(()).ok_or_else(|| format!("{ours:?}")))
}

fn within_budget(ours: &Outcome, theirs: &Outcome) -> Result<(), String> {
    // Where not even the header fits there is no pack.
    let held = ours.ended == Some(Ended::Header) || ours.tokens <= theirs.budget;
    held.then_some(()).ok_or_else(|| format!("{} tokens of {}", ours.tokens, theirs.budget))
}

fn together(ours: &Outcome) -> Result<(), String> {
    ours.is_together().then_some(()).ok_or_else(|| format!("{:?} are apart", ours.included))
}

fn all_attachments(ours: &Outcome) -> Result<(), String> {
    let missing = ours.attachments.iter().find(|it| !ours.prompt.contains(it.as_str()));
    missing.map_or(Ok(()), |it| Err(format!("{it} is not in {}", ours.prompt)))
}

fn whole_results(ours: &Outcome) -> Result<(), String> {
    let shown = |id: &String| ours.included.contains(id);
    let small = ours.small_results.iter().filter(|(id, _)| shown(id));
    let mut cut = small.filter(|(_, text)| !ours.prompt.contains(text.as_str()));
    cut.next().map_or(Ok(()), |(id, _)| Err(format!("{id} is cut")))
}

/// What the original does wrong, by what the row calls it; the rows have no input that could be run.
fn defect(row: &Value) -> Verdict {
    let name = row["fn"].as_str().unwrap_or_default().to_lowercase();
    let says = |words: &[&str]| words.iter().any(|it| name.contains(it));
    if says(&["route", "browse", "tree", "upstream", "refresh"]) {
        return Verdict::Skip("finding tools: see the tests of `search`");
    }
    if says(&["gateway"]) && !says(&["image", "redact", "secret"]) {
        return Verdict::Skip("the gateway's own: see its tests");
    }
    let held = pictures_are_told_apart()
        .and_then(|()| blobs_are_kept())
        .and_then(|()| secrets_are_scrubbed())
        .and_then(|()| labels_survive())
        .and_then(|()| calls_keep_their_results())
        .and_then(|()| budgets_hold())
        .and_then(|()| small_results_stand_whole());
    Verdict::Class("defect", held)
}

fn ensure(held: bool, what: &str) -> Result<(), String> {
    held.then_some(()).ok_or_else(|| what.to_owned())
}

fn pictures_are_told_apart() -> Result<(), String> {
    let mut manager = ContextManager::new();
    for (call, data) in [("c1", "ZnJhbWUx"), ("c2", "ZnJhbWUy")] {
        let result = json!({ "content": [{ "type": "image", "data": data }] });
        manager.ingest_mcp_result(call, &result, "cam.shot").unwrap();
    }
    let kept = |call: &str| manager.artifacts().get(&format!("mcp:cam.shot:image:0#{call}"));
    ensure(kept("c1") == Some(b"frame1") && kept("c2") == Some(b"frame2"), "one picture for two")
}

fn blobs_are_kept() -> Result<(), String> {
    let mut manager = ContextManager::new();
    let resource = json!({ "uri": "file:///a", "blob": "YmxvYg==" });
    let result = json!({ "content": [{ "type": "resource", "resource": resource }] });
    manager.ingest_mcp_result("c", &result, "t").unwrap();
    let kept = manager.artifacts().get("mcp:t:resource:0#c");
    ensure(kept == Some(b"blob"), "a blob is lost")
}

fn secrets_are_scrubbed() -> Result<(), String> {
    let options = ManagerOptions { secrets: Secrets::Scrub, ..ManagerOptions::default() };
    let mut manager = ContextManager::with(options);
    let result = json!({ "content": [{ "type": "text", "text": "password = hunter22x" }] });
    let (_, envelope) = manager.ingest_mcp_result("c", &result, "t").unwrap();
    ensure(envelope.summary == "password = [REDACTED-SECRET]", "a secret is shown")
}

fn labels_survive() -> Result<(), String> {
    let mut manager = ContextManager::new();
    let raw_output = "row of data\n".repeat(500);
    let sensitivity = Sensitivity::Internal;
    let result = ToolResult {
        tool_call_id: "c",
        raw_output: &raw_output,
        sensitivity,
        ..Default::default()
    };
    let (item, _) = manager.ingest_tool_result(result).unwrap();
    ensure(item.sensitivity == Sensitivity::Internal, "a label is lost")
}

fn linked() -> ContextManager {
    let mut manager = ContextManager::new();
    let items = [
        ("u", ItemKind::UserTurn, "a question of many words ".repeat(10), None),
        ("tc", ItemKind::ToolCall, "look_up(everything='at once') ".repeat(5), Some("u")),
        ("tr", ItemKind::ToolResult, "answer: 42".to_owned(), Some("tc")),
    ];
    for (id, kind, text, parent) in items {
        let parent_id = parent.map(str::to_owned);
        manager.ingest(ContextItem { parent_id, ..ContextItem::new(id, kind, text) }).unwrap();
    }
    manager
}

fn calls_keep_their_results() -> Result<(), String> {
    for budget in 0..200 {
        let options = BuildOptions { budget: Some(budget), ..BuildOptions::default() };
        let pack = linked().build_with(Phase::Answer, "answer", &options).unwrap();
        let of: BTreeMap<&str, bool> =
            pack.items.iter().map(|it| (it.id.as_str(), it.included)).collect();
        let held = of["tc"] == of["tr"] && (of["u"] || !of["tc"]);
        ensure(held, &format!("{of:?} at {budget}"))?;
    }
    Ok(())
}

fn budgets_hold() -> Result<(), String> {
    let mut manager = ContextManager::new();
    for number in 0..400 {
        let item = ContextItem::new(format!("p{number}"), KINDS[number % KINDS.len()], "ok");
        manager.ingest(item).unwrap();
    }
    let options = BuildOptions { budget: Some(80), ..BuildOptions::default() };
    let pack = manager.build_with(Phase::Answer, "ok", &options).unwrap();
    let tokens = Counter::Heuristic.count(&pack.prompt);
    ensure(tokens <= 80 && 1 < pack.stats.total_candidates, &format!("{tokens} tokens of 80"))
}

const KINDS: [ItemKind; 4] =
    [ItemKind::UserTurn, ItemKind::AgentMsg, ItemKind::DocSnippet, ItemKind::Policy];

fn small_results_stand_whole() -> Result<(), String> {
    let mut manager = ContextManager::new();
    let text = "intro\n\nthe real answer is 42";
    manager.ingest(ContextItem::new("r", ItemKind::ToolResult, text)).unwrap();
    let pack = manager.build_sync(Phase::Answer, "answer").unwrap();
    ensure(pack.prompt == format!("[TOOL RESULT]\n{text}"), &pack.prompt)
}
