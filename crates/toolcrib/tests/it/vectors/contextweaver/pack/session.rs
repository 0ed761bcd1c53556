//! A row of `context`: the session it describes, put through our manager.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use toolcrib_context::{
    AboveFloor, Budgets, BuildOptions, Classifier, ContextItem, ContextManager, ContextPack,
    Counter, IngestError, ItemKind, ManagerOptions, Overflow, PackError, Phase, Redaction, Secrets,
    Sensitivity, SessionLimits, ToolResult, drilldown, read_session,
};

/// Why there is no pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Duplicate,
    Overflow,
    Header,
    /// Something in the session is not as it should be, and that was said.
    Refused,
}

/// What became of a session.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) ended: Option<Ended>,
    pub(super) included: BTreeSet<String>,
    pub(super) dropped: BTreeMap<String, String>,
    pub(super) candidates: usize,
    pub(super) prompt: String,
    pub(super) tokens: u64,
    pub(super) budget: u64,
    /// Handles of what came with results.
    pub(super) attachments: Vec<String>,
    /// Results that are short enough to be shown whole.
    pub(super) small_results: BTreeMap<String, String>,
    /// Whether a short result was cut.
    pub(super) cuts_small_results: bool,
    links: Vec<(String, ItemKind, Option<String>)>,
}

impl Outcome {
    /// What the original made of it.
    pub(super) fn of(row: &Value) -> Self {
        let output = &row["output"];
        let pack = if output["pack"].is_object() { &output["pack"] } else { output };
        let stats = &pack["stats"];
        let dropped: BTreeMap<String, String> = list(&stats["dropped_items"])
            .map(|it| (text(&it["item_id"]), text(&it["reason"])))
            .collect();
        let candidates = &output["explanation"]["candidates"];
        let included = match candidates.as_array() {
            Some(all) => all
                .iter()
                .filter(|it| it["included"] == true)
                .map(|it| text(&it["item_id"]))
                .collect(),
            None => all_ids(&row["input"]).filter(|it| !dropped.contains_key(it)).collect(),
        };
        let prompt = text(&pack["prompt"]);
        let events = list(&stats["firewall_events"]);
        let cut = |it: &Value| {
            it["threshold_chars"] == 0
                && it["summary_chars"].as_u64() < it["original_chars"].as_u64()
        };
        Self {
            included,
            dropped,
            tokens: Counter::Heuristic.count(&prompt),
            prompt,
            budget: budget(&row["input"]),
            cuts_small_results: events.into_iter().any(cut),
            links: links(&row["input"]),
            ..Self::default()
        }
    }

    /// Whether every call is with its results, and both with the question before them.
    pub(super) fn is_together(&self) -> bool {
        let known = |id: &Option<String>| {
            self.links.iter().find(|it| Some(&it.0) == id.as_ref()).map(|it| (&it.0, it.1))
        };
        self.links.iter().all(|(id, kind, parent)| {
            let Some((parent, of)) = known(parent) else { return true };
            let (child, parent) = (self.included.contains(id), self.included.contains(parent));
            match (kind, of) {
                (ItemKind::ToolResult, ItemKind::ToolCall) => child == parent,
                (ItemKind::ToolCall, ItemKind::UserTurn) => !child || parent,
                _ => true,
            }
        })
    }

    /// Whether a result with something of its own went as a duplicate of another.
    pub(super) fn loses_attachment(&self, row: &Value) -> bool {
        let ops = list(&row["output"]["ops"]);
        ops.into_iter().any(|it| {
            let kept = list(&it["envelope"]["artifacts"])
                .any(|it| text(&it["handle"]).starts_with("mcp:"));
            kept && self.dropped.get(&text(&it["item"]["id"])).is_some_and(|it| it == "dedup")
        })
    }
}

/// Puts the session of a row through our manager.
pub(super) fn run(input: &Value) -> Outcome {
    let mut outcome = Outcome { links: links(input), ..Outcome::default() };
    match attempt(input, &mut outcome) {
        Ok(pack) => {
            for it in &pack.items {
                match it.reason {
                    None => drop(outcome.included.insert(it.id.clone())),
                    Some(reason) => {
                        drop(outcome.dropped.insert(it.id.clone(), reason.name().to_owned()));
                    }
                }
            }
            outcome.candidates = pack.stats.total_candidates;
            outcome.tokens = Counter::Heuristic.count(&pack.prompt);
            outcome.prompt = pack.prompt;
        }
        Err(ended) => outcome.ended = Some(ended),
    }
    outcome
}

fn attempt(input: &Value, outcome: &mut Outcome) -> Result<ContextPack, Ended> {
    let mut manager = ContextManager::with(options(input)?);
    if let Some(jsonl) = input["jsonl"].as_str() {
        replay(&mut manager, jsonl)?;
    }
    for item in list(&input["items"]) {
        let item = item_of(item)?;
        if item.kind == ItemKind::ToolResult && item.text.chars().count() <= 2000 {
            outcome.small_results.insert(item.id.clone(), item.text.clone());
        }
        manager.ingest(item).map_err(|it| ended(&it))?;
    }
    for fact in list(&input["facts"]) {
        manager.remember_fact(&text(&fact[0]), &text(&fact[1]), label(&fact[2])?);
    }
    for episode in list(&input["episodes"]) {
        manager.remember_episode(&text(&episode[1]), label(&episode[2])?);
    }
    for op in list(&input["ops"]) {
        do_op(&mut manager, op, outcome)?;
    }
    let build = &input["build"];
    let tags = list(&build["query_tags"]).chain(list(&build["hints"]));
    let options = BuildOptions {
        budget: build["budget_tokens"].as_u64(),
        query_tags: tags.map(text).collect(),
        header: text(&build["header"]),
        footer: text(&build["footer"]),
    };
    let query =
        if build["query"].is_string() { text(&build["query"]) } else { text(&input["query"]) };
    manager.build_with(phase(input)?, &query, &options).map_err(|it| match it {
        PackError::Header { .. } => Ended::Header,
        PackError::Overflow { .. } => Ended::Overflow,
    })
}

/// The seed's example, to the letter.
fn replay(manager: &mut ContextManager, jsonl: &str) -> Result<(), Ended> {
    let items = read_session(jsonl.as_bytes(), &SessionLimits::default());
    for item in items.ok().ok_or(Ended::Refused)? {
        if item.kind == ItemKind::ToolResult && 2000 < item.text.chars().count() {
            let result = ToolResult {
                tool_call_id: item.parent_id.as_ref().unwrap_or(&item.id),
                raw_output: &item.text,
                tool_name: "mcp_tool",
                ..ToolResult::default()
            };
            manager.ingest_tool_result(result).map_err(|it| ended(&it))?;
        } else {
            manager.ingest(item).map_err(|it| ended(&it))?;
        }
    }
    Ok(())
}

fn do_op(manager: &mut ContextManager, op: &Value, outcome: &mut Outcome) -> Result<(), Ended> {
    let (call, tool) = (text(&op["tool_call_id"]), text(&op["tool_name"]));
    match op["op"].as_str().unwrap_or_default() {
        "tool_result" => {
            let (raw_output, media_type) = (text(&op["raw_output"]), text(&op["media_type"]));
            let result = ToolResult {
                tool_call_id: &call,
                raw_output: &raw_output,
                tool_name: &tool,
                media_type: &media_type,
                sensitivity: Sensitivity::Public,
            };
            manager.ingest_tool_result(result).map_err(|it| ended(&it))?;
        }
        "mcp_result" => {
            let result = manager.ingest_mcp_result(&call, &op["mcp_result"], &tool);
            let (_, envelope) = result.map_err(|it| ended(&it))?;
            outcome.attachments.extend(envelope.artifacts.into_iter().map(|it| it.handle));
        }
        "drilldown" if op["inject"] == true => {
            let (handle, selector) = (text(&op["handle"]), &op["selector"]);
            let bytes = manager.artifacts().get(&handle).unwrap_or_default();
            let how = selector.as_object().cloned().unwrap_or_default();
            let piece = drilldown(&String::from_utf8_lossy(bytes), &how);
            let piece = piece.ok().ok_or(Ended::Refused)?;
            let parent = op["parent_id"].as_str();
            let kind = text(&selector["type"]);
            manager.ingest_piece(&handle, &kind, &piece, parent).map_err(|it| ended(&it))?;
        }
        _ => {}
    }
    Ok(())
}

fn ended(error: &IngestError) -> Ended {
    match error {
        IngestError::Duplicate { .. } => Ended::Duplicate,
        IngestError::NotKept { .. } | IngestError::TooSensitive { .. } => Ended::Refused,
    }
}

/// The original spreads its options over three objects.
fn options(input: &Value) -> Result<ManagerOptions, Ended> {
    let mut options = ManagerOptions::default();
    let asked = |name: &str| {
        let places = [&input["policy"], &input["mgrkw"], &input["scoring"], input];
        places.into_iter().map(|it| &it[name]).find(|it| !it.is_null())
    };
    if let Some(floor) = asked("sensitivity_floor") {
        options.floor = label(floor)?;
    }
    if asked("sensitivity_action").is_some_and(|it| it == "redact") {
        let ways = asked("redaction_hooks").into_iter().flat_map(list);
        let ways = ways.map(|it| text(it).parse::<Redaction>().ok().ok_or(Ended::Refused));
        let ways = ways.collect::<Result<_, _>>()?;
        options.above_floor = AboveFloor::Redact(ways);
    }
    if asked("overflow_action").is_some_and(|it| it == "raise") {
        let kinds = asked("overflow_kinds").map(|it| list(it).map(kind).collect());
        options.overflow = Overflow::Refuse(kinds.transpose()?.unwrap_or_default());
    }
    if asked("redact_secrets").is_some_and(|it| it == true) {
        options.secrets = Secrets::Scrub;
    }
    let classifier = ["sensitivity_classifier", "classifier", "classify"];
    if classifier.iter().any(|it| asked(it).is_some_and(|it| *it != false)) {
        options.classifier = Classifier::ByShape;
    }
    for (name, limit) in
        asked("max_items_per_kind").and_then(Value::as_object).into_iter().flatten()
    {
        let limit = usize::try_from(limit.as_u64().ok_or(Ended::Refused)?).unwrap();
        options.most_of_kind.insert(kind(&Value::from(name.as_str()))?, limit);
    }
    if let Some(budgets) = asked("budget").filter(|it| it.is_object()) {
        let tokens = |name: &str, default: u64| budgets[name].as_u64().unwrap_or(default);
        let usual = options.budgets;
        options.budgets = Budgets {
            route: tokens("route", usual.route),
            call: tokens("call", usual.call),
            interpret: tokens("interpret", usual.interpret),
            answer: tokens("answer", usual.answer),
        };
    }
    let weight = |name: &str, default: f64| asked(name).and_then(Value::as_f64).unwrap_or(default);
    let scoring = &mut options.scoring;
    scoring.recency = weight("recency_weight", scoring.recency);
    scoring.similarity = weight("tag_match_weight", scoring.similarity);
    scoring.kind = weight("kind_priority_weight", scoring.kind);
    scoring.brevity = weight("token_cost_penalty", scoring.brevity);
    scoring.duplicate = weight("dedup_threshold", scoring.duplicate);
    Ok(options)
}

fn item_of(item: &Value) -> Result<ContextItem, Ended> {
    Ok(ContextItem {
        token_estimate: item["token_estimate"].as_u64().unwrap_or_default(),
        sensitivity: label(&item["sensitivity"])?,
        metadata: item["metadata"].as_object().cloned().unwrap_or_default(),
        parent_id: item["parent_id"].as_str().map(str::to_owned),
        ..ContextItem::new(text(&item["id"]), kind(&item["kind"])?, text(&item["text"]))
    })
}

fn phase(input: &Value) -> Result<Phase, Ended> {
    match input["build"]["phase"].as_str() {
        None => Ok(Phase::Answer),
        Some(phase) => serde_json::from_value(Value::from(phase)).ok().ok_or(Ended::Refused),
    }
}

fn budget(input: &Value) -> u64 {
    let budgets = options(input).unwrap_or_default().budgets;
    let of_phase = budgets.of(phase(input).unwrap_or(Phase::Answer));
    input["build"]["budget_tokens"].as_u64().unwrap_or(of_phase)
}

fn kind(kind: &Value) -> Result<ItemKind, Ended> {
    serde_json::from_value(kind.clone()).ok().ok_or(Ended::Refused)
}

fn label(label: &Value) -> Result<Sensitivity, Ended> {
    if label.is_null() {
        return Ok(Sensitivity::Public);
    }
    serde_json::from_value(label.clone()).ok().ok_or(Ended::Refused)
}

fn links(input: &Value) -> Vec<(String, ItemKind, Option<String>)> {
    let items = list(&input["items"]).filter_map(|it| item_of(it).ok());
    items.map(|it| (it.id, it.kind, it.parent_id)).collect()
}

/// The ids that the seed's example gives the items of a session.
fn all_ids(input: &Value) -> impl Iterator<Item = String> {
    let jsonl = text(&input["jsonl"]);
    let items = read_session(jsonl.as_bytes(), &SessionLimits::default()).unwrap_or_default();
    items.into_iter().map(|it| {
        let large = it.kind == ItemKind::ToolResult && 2000 < it.text.chars().count();
        if large { format!("result:{}", it.parent_id.unwrap_or(it.id)) } else { it.id }
    })
}

fn list(value: &Value) -> std::slice::Iter<'_, Value> {
    value.as_array().map_or(&[][..], Vec::as_slice).iter()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
