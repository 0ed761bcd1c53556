//! What is better than in the original, and what must hold of every pack.

use std::task::{Context, Poll, Waker};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Counter, ItemKind, Status};

fn item(id: &str, kind: ItemKind, text: &str, parent: Option<&str>) -> ContextItem {
    ContextItem { parent_id: parent.map(str::to_owned), ..ContextItem::new(id, kind, text) }
}

fn filled(items: impl IntoIterator<Item = ContextItem>) -> ContextManager {
    let mut manager = ContextManager::new();
    for item in items {
        manager.ingest(item).unwrap();
    }
    manager
}

fn invoices() -> Vec<ContextItem> {
    vec![
        item("u1", ItemKind::UserTurn, "Search for open invoices", None),
        item("tc1", ItemKind::ToolCall, "invoices.search(status='open')", Some("u1")),
        item("tr1", ItemKind::ToolResult, "status: ok\n\nthe answer is 42", Some("tc1")),
        item("a1", ItemKind::AgentMsg, "Found three open invoices", None),
    ]
}

fn budget(tokens: u64) -> BuildOptions {
    BuildOptions { budget: Some(tokens), ..BuildOptions::default() }
}

fn included(pack: &ContextPack) -> Vec<&str> {
    pack.items.iter().filter(|it| it.included).map(|it| it.id.as_str()).collect()
}

fn reason(pack: &ContextPack, id: &str) -> Option<DropReason> {
    pack.items.iter().find(|it| it.id == id).unwrap().reason
}

#[test]
fn items_stand_in_the_order_of_the_session_and_small_results_stand_whole() {
    let pack = filled(invoices()).build_sync(Phase::Answer, "invoice status").unwrap();
    insta::assert_snapshot!(pack.prompt, @"
    [USER]
    Search for open invoices

    [TOOL CALL]
    invoices.search(status='open')

    [TOOL RESULT]
    status: ok

    the answer is 42

    [ASSISTANT]
    Found three open invoices
    ");
    assert_eq!(pack.stats.tokens, Counter::Heuristic.count(&pack.prompt));
}

#[test]
fn a_build_that_is_awaited_is_ready_at_once() {
    let manager = filled(invoices());
    let future = std::pin::pin!(manager.build(Phase::Answer, "invoice status"));
    let mut context = Context::from_waker(Waker::noop());
    let Poll::Ready(pack) = future.poll(&mut context) else { panic!("it waits") };
    assert_eq!(pack, manager.build_sync(Phase::Answer, "invoice status"));
}

#[test]
fn a_call_and_its_result_come_with_their_question_or_not_at_all() {
    let question = "a long question ".repeat(20);
    let manager = filled([
        item("u", ItemKind::UserTurn, &question, None),
        item("tc", ItemKind::ToolCall, "look_up()", Some("u")),
        item("tr", ItemKind::ToolResult, "answer: 42", Some("tc")),
    ]);
    let pack = manager.build_with(Phase::Answer, "answer", &budget(60)).unwrap();
    assert_eq!(included(&pack), Vec::<&str>::new());
    assert_eq!(reason(&pack, "tr"), Some(DropReason::Budget));
    let pack = manager.build_with(Phase::Answer, "answer", &budget(120)).unwrap();
    assert_eq!(included(&pack), ["u", "tc", "tr"]);
}

#[test]
fn a_call_whose_result_does_not_fit_stays_out() {
    let manager = filled([
        item("tc", ItemKind::ToolCall, "look_up()", None),
        item("tr", ItemKind::ToolResult, &"a long result ".repeat(40), Some("tc")),
    ]);
    let pack = manager.build_with(Phase::Answer, "look_up", &budget(60)).unwrap();
    assert_eq!(included(&pack), Vec::<&str>::new());
    assert_eq!(reason(&pack, "tc"), Some(DropReason::Budget));
}

#[test]
fn of_a_long_chain_the_end_comes_with_the_question() {
    let mut items = vec![item("u", ItemKind::UserTurn, "the question", None)];
    let mut last = "u".to_owned();
    for step in 0..40 {
        let (call, result) = (format!("c{step}"), format!("r{step}"));
        items.push(item(&call, ItemKind::ToolCall, &format!("step{step}()"), Some(&last)));
        let text = format!("outcome{step} {}", format!("word{step} ").repeat(20));
        items.push(item(&result, ItemKind::ToolResult, &text, Some(&call)));
        last = result;
    }
    let pack = filled(items).build_with(Phase::Answer, "outcome39", &budget(300)).unwrap();
    let included = included(&pack);
    assert!(included.starts_with(&["u"]) && included.ends_with(&["c39", "r39"]), "{included:?}");
}

#[test]
fn equal_results_of_different_calls_are_both_kept() {
    let manager = filled([
        item("c1", ItemKind::ToolCall, "list(folder='alpha')", None),
        item("r1", ItemKind::ToolResult, "nothing found anywhere", Some("c1")),
        item("c2", ItemKind::ToolCall, "list(folder='beta')", None),
        item("r2", ItemKind::ToolResult, "nothing found anywhere", Some("c2")),
        item("c3", ItemKind::ToolCall, "list(folder='beta')", None),
        item("r3", ItemKind::ToolResult, "nothing found anywhere", Some("c3")),
    ]);
    let pack = manager.build_sync(Phase::Answer, "folder").unwrap();
    // Call 2 was made again, with the same outcome; call 1 was another call.
    assert_eq!(included(&pack), ["c1", "r1", "c3", "r3"]);
    assert_eq!(reason(&pack, "r2"), Some(DropReason::Dedup));
}

#[test]
fn large_results_are_kept_aside_with_their_label() {
    let text = format!("header: big\n{}", "row of data with values 1 2 3\n".repeat(120));
    let large = ContextItem {
        sensitivity: Sensitivity::Internal,
        ..item("tr", ItemKind::ToolResult, &text, None)
    };
    let manager = filled([large]);
    let pack = manager.build_sync(Phase::Answer, "data").unwrap();
    assert!(
        pack.prompt.starts_with("[TOOL RESULT [artifact:tr]]\nheader: big\n"),
        "{}",
        pack.prompt
    );
    assert!(pack.prompt.chars().count() < 540);
    assert_eq!(pack.items[0].sensitivity, Sensitivity::Internal);
    assert_eq!(manager.artifacts().get("artifact:tr"), Some(text.as_bytes()));
    assert_eq!(pack.envelopes[0].facts, ["header: big"]);
}

#[test]
fn a_result_of_exactly_the_threshold_is_shown_whole() {
    for (chars, whole) in [(2000, true), (2001, false)] {
        let text = "ä".repeat(chars);
        let mut manager = ContextManager::new();
        let result = ToolResult { tool_call_id: "c", raw_output: &text, ..ToolResult::default() };
        let (item, envelope) = manager.ingest_tool_result(result).unwrap();
        assert_eq!(item.text == text, whole);
        assert_eq!(item.id, "result:c");
        assert_eq!(envelope.artifacts[0].handle, "artifact:result:c");
        assert_eq!(manager.artifacts().get("artifact:result:c"), Some(text.as_bytes()));
    }
}

#[test]
fn every_picture_is_kept_and_none_is_a_duplicate_of_another() {
    let shot = |data: &str| json!({ "content": [{ "type": "image", "data": data }] });
    let mut manager = ContextManager::new();
    manager.ingest_mcp_result("c1", &shot("YQ=="), "shot").unwrap();
    manager.ingest_mcp_result("c2", &shot("Yg=="), "shot").unwrap();
    manager.ingest_mcp_result("c3", &shot("Yg=="), "shot").unwrap();
    assert_eq!(manager.artifacts().get("mcp:shot:image:0#c1"), Some(&b"a"[..]));
    assert_eq!(manager.artifacts().get("mcp:shot:image:0#c2"), Some(&b"b"[..]));
    let pack = manager.build_sync(Phase::Answer, "picture").unwrap();
    assert_eq!(included(&pack), ["result:c1", "result:c3"]);
    assert!(pack.prompt.contains("[TOOL RESULT [mcp:shot:image:0#c1]]"), "{}", pack.prompt);
}

#[test]
fn a_large_mcp_result_has_one_summary_and_all_its_artifacts() {
    let text = format!("header: big\n{}", "row\n".repeat(1000));
    let result = json!({
        "content": [{ "type": "text", "text": text }, { "type": "image", "data": "YQ==" }],
        "isError": true,
    });
    let mut manager = ContextManager::new();
    let (item, envelope) = manager.ingest_mcp_result("c", &result, "t").unwrap();
    assert_eq!(envelope.status, Status::Error);
    assert_eq!(envelope.facts, ["header: big"]);
    let handles: Vec<&str> = envelope.artifacts.iter().map(|it| it.handle.as_str()).collect();
    assert_eq!(handles, ["mcp:t:image:1#c", "artifact:result:c"]);
    assert_eq!(item.text.chars().count(), 501);
    assert!(envelope.artifacts.iter().all(|it| it.content_hash.is_some()));
}

#[test]
fn tags_do_not_silence_words() {
    let tagged = |id: &str, text: &str, tags: Value| ContextItem {
        metadata: [("tags".to_owned(), tags)].into_iter().collect(),
        ..ContextItem::new(id, ItemKind::UserTurn, text)
    };
    let manager = filled([
        tagged("words", "invoice status", json!([])),
        tagged("tags", "another thing", json!(["billing"])),
        tagged("neither", "weather report", json!(["crm"])),
    ]);
    let options =
        BuildOptions { query_tags: vec!["billing".to_owned()], ..BuildOptions::default() };
    let pack = manager.build_with(Phase::Answer, "invoice status", &options).unwrap();
    let score = |at: usize| pack.items[at].score.unwrap();
    // One is a third of the session older than the next; that alone would be 0.1.
    assert!(score(2) < score(0) && score(2) < score(1), "{:?}", pack.items);
}

#[test]
fn what_is_too_sensitive_takes_its_other_half_along() {
    let mut items = invoices();
    items[2].sensitivity = Sensitivity::Restricted;
    let pack = filled(items).build_sync(Phase::Answer, "invoices").unwrap();
    assert_eq!(included(&pack), ["u1", "a1"]);
    assert_eq!(reason(&pack, "tr1"), Some(DropReason::Sensitivity));
    assert_eq!(reason(&pack, "tc1"), Some(DropReason::Apart));
    assert_eq!(pack.items[2].score, None);
}

#[test]
fn redaction_keeps_the_place_and_nothing_else() {
    let secret = "the secret plan, in many words ".repeat(100);
    for ways in [vec![], vec![Redaction::Mask]] {
        let mut manager = ContextManager::with(ManagerOptions {
            above_floor: AboveFloor::Redact(ways),
            ..ManagerOptions::default()
        });
        let item = ContextItem {
            sensitivity: Sensitivity::Confidential,
            ..item("r", ItemKind::ToolResult, &secret, None)
        };
        manager.ingest(item).unwrap();
        manager.remember_fact("plan", "secret", Sensitivity::Restricted);
        let pack = manager.build_sync(Phase::Answer, "plan").unwrap();
        let whole = serde_json::to_string(&pack).unwrap();
        assert!(pack.prompt.contains("[TOOL RESULT]\n[REDACTED: confidential]"), "{}", pack.prompt);
        assert!(!whole.contains("secret"), "{whole}");
    }
}

#[test]
fn a_classifier_reads_the_whole_and_only_raises() {
    let mut manager = ContextManager::with(ManagerOptions {
        classifier: Classifier::ByShape,
        ..ManagerOptions::default()
    });
    // The secret is far behind what is shown of the result.
    let text = format!("{}\n\npassword = hunter22x", "row of data\n".repeat(300));
    manager.ingest(item("r", ItemKind::ToolResult, &text, None)).unwrap();
    let labelled = ContextItem {
        sensitivity: Sensitivity::Restricted,
        ..item("u", ItemKind::UserTurn, "harmless", None)
    };
    manager.ingest(labelled).unwrap();
    let pack = manager.build_sync(Phase::Answer, "data").unwrap();
    assert_eq!(included(&pack), Vec::<&str>::new());
    assert!(pack.items.iter().all(|it| it.sensitivity == Sensitivity::Restricted));
    assert!(pack.envelopes.is_empty());
}

#[test]
fn scrubbing_reaches_results_and_their_facts() {
    let mut manager = ContextManager::with(ManagerOptions {
        secrets: Secrets::Scrub,
        ..ManagerOptions::default()
    });
    let raw_output = "password = hunter22x";
    let result = ToolResult { tool_call_id: "c1", raw_output, ..ToolResult::default() };
    let (_, envelope) = manager.ingest_tool_result(result).unwrap();
    let content = json!({ "content": [{ "type": "text", "text": raw_output }] });
    let (_, other) = manager.ingest_mcp_result("c2", &content, "t").unwrap();
    let pack = manager.build_sync(Phase::Answer, "password").unwrap();
    let shown = format!("{}{envelope:?}{other:?}{:?}", pack.prompt, pack.envelopes);
    assert!(!shown.contains("hunter22x"), "{shown}");
    assert!(pack.prompt.contains("password = [REDACTED-SECRET]"));
    assert_eq!(manager.artifacts().get("artifact:result:c1"), Some(raw_output.as_bytes()));
}

#[test]
fn memory_stands_first_and_gives_way_to_a_small_budget() {
    let mut manager = filled(invoices());
    for number in 0..70 {
        manager.remember_fact(&format!("k{number:02}"), "value", Sensitivity::Public);
    }
    manager.remember_episode("hush", Sensitivity::Confidential);
    for number in 0..4 {
        manager.remember_episode(&format!("episode {number}"), Sensitivity::Public);
    }
    let pack = manager.build_sync(Phase::Answer, "open").unwrap();
    let begins =
        "[EPISODIC MEMORY]\n- episode 3\n- episode 2\n- episode 1\n\n[FACTS]\n- k00: value";
    assert!(pack.prompt.starts_with(begins), "{}", pack.prompt);
    assert!(pack.prompt.contains("- ... (6 more facts omitted)\n\n[USER]"), "{}", pack.prompt);
    let pack = manager.build_sync(Phase::Route, "open").unwrap();
    assert!(pack.prompt.starts_with("[USER]"), "{}", pack.prompt);
    for tokens in 0..60 {
        let pack = manager.build_with(Phase::Answer, "open", &budget(tokens)).unwrap();
        assert!(Counter::Heuristic.count(&pack.prompt) <= tokens);
    }
}

#[test]
fn a_header_that_does_not_fit_is_an_error() {
    let options = BuildOptions { header: "word ".repeat(100), ..budget(20) };
    let error = filled(invoices()).build_with(Phase::Answer, "q", &options).unwrap_err();
    assert_eq!(error, PackError::Header { needed: 125, budget: 20 });
}

#[test]
fn nothing_is_left_out_where_that_is_refused() {
    let refusing = |kinds: Vec<ItemKind>| {
        let mut manager = ContextManager::with(ManagerOptions {
            overflow: Overflow::Refuse(kinds),
            ..ManagerOptions::default()
        });
        invoices().into_iter().for_each(|it| manager.ingest(it).unwrap());
        manager.build_with(Phase::Answer, "q", &budget(15))
    };
    assert_eq!(refusing(vec![]).unwrap_err(), PackError::Overflow { count: 3, budget: 15 });
    assert!(refusing(vec![ItemKind::ToolCall]).is_err());
    assert!(refusing(vec![ItemKind::Policy]).is_ok());
}

#[test]
fn an_id_is_taken_once() {
    let mut manager = filled(invoices());
    let error = manager.ingest(item("u1", ItemKind::UserTurn, "again", None)).unwrap_err();
    assert_eq!(error, IngestError::Duplicate { id: "u1".to_owned() });
    assert_eq!(manager.items().count(), 4);
}

#[test]
fn pieces_inherit_the_label_of_what_they_are_pieces_of() {
    let mut manager = ContextManager::new();
    let text = "line\n".repeat(600);
    for (call, sensitivity) in [("c1", Sensitivity::Internal), ("c2", Sensitivity::Restricted)] {
        let result = ToolResult {
            tool_call_id: call,
            raw_output: &text,
            sensitivity,
            ..ToolResult::default()
        };
        manager.ingest_tool_result(result).unwrap();
    }
    let piece = manager.ingest_piece("artifact:result:c1", "lines", "line", None).unwrap();
    assert_eq!(piece.id, "drilldown:artifact:result:c1:lines:2");
    assert_eq!(piece.sensitivity, Sensitivity::Internal);
    let refused = manager.ingest_piece("artifact:result:c2", "lines", "line", None);
    assert!(matches!(refused, Err(IngestError::TooSensitive { .. })));
    let missing = manager.ingest_piece("artifact:none", "lines", "line", None);
    assert!(matches!(missing, Err(IngestError::NotKept { .. })));
}

const KINDS: [ItemKind; 9] = [
    ItemKind::UserTurn,
    ItemKind::AgentMsg,
    ItemKind::ToolCall,
    ItemKind::ToolResult,
    ItemKind::DocSnippet,
    ItemKind::RetrievedDoc,
    ItemKind::MemoryFact,
    ItemKind::PlanState,
    ItemKind::Policy,
];

/// The item before, whichever that is.
const BEFORE: usize = usize::MAX;

/// Sessions of every shape: circles, parents that are not there, texts of no words, results of calls.
fn sessions() -> impl Strategy<Value = Vec<ContextItem>> {
    let text = prop_oneof![
        "[ -~\n]{0,40}",
        "\\PC{0,30}",
        (1_usize..60).prop_map(|it| "word ".repeat(it)),
        (0_usize..6).prop_map(|it| format!("the same text for number {it}")),
        Just("long line of a result\n".repeat(120)),
    ];
    // Calls and results are what it is about, and most items follow from the one before.
    let kind = prop_oneof![0_usize..9, 2_usize..4];
    let parent = prop_oneof![
        (0_usize..30).prop_map(Some),
        Just(None),
        Just(Some(BEFORE)),
        Just(Some(BEFORE)),
    ];
    let one = (kind, text, parent, 0_u64..20, 0_usize..8);
    proptest::collection::vec(one, 0..25).prop_map(|items| {
        let build = |(at, (kind, text, parent, estimate, label)): (
            usize,
            (usize, String, Option<usize>, u64, usize),
        )| ContextItem {
            token_estimate: estimate.saturating_sub(12) * 10,
            sensitivity: if label == 0 { Sensitivity::Restricted } else { Sensitivity::Public },
            parent_id: parent
                .map(|it| if it == BEFORE { at.wrapping_sub(1) } else { it })
                .map(|it| format!("i{it}")),
            ..ContextItem::new(format!("i{at}"), KINDS[kind], format!("<{at}> {text}"))
        };
        items.into_iter().enumerate().map(build).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_holds_of_every_pack(
        items in sessions(),
        tokens in 0_u64..400,
        phase in prop_oneof![Just(Phase::Route), Just(Phase::Call), Just(Phase::Interpret), Just(Phase::Answer)],
        header in "\\PC{0,30}",
        footer in "[ -~\n]{0,30}",
        counter in proptest::sample::select(Counter::ALL),
    ) {
        let mut manager = ContextManager::with(ManagerOptions { counter, ..ManagerOptions::default() });
        for item in &items {
            manager.ingest(item.clone()).unwrap();
        }
        manager.remember_fact("a fact", "and its value", Sensitivity::Public);
        let options = BuildOptions { header, footer, budget: Some(tokens), ..BuildOptions::default() };
        let pack = match manager.build_with(phase, "the same text", &options) {
            Ok(pack) => pack,
            Err(PackError::Header { needed, budget }) => {
                prop_assert!(budget < needed);
                return Ok(());
            }
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert!(counter.count(&pack.prompt) <= tokens, "{} of {tokens}", counter.count(&pack.prompt));
        prop_assert_eq!(pack.stats.tokens, counter.count(&pack.prompt));
        let stats = &pack.stats;
        prop_assert_eq!(stats.included_count + stats.dropped_count, stats.total_candidates);
        prop_assert_eq!(stats.dropped_reasons.values().sum::<usize>(), stats.dropped_count);
        let verdict = |id: &str| pack.items.iter().find(|it| it.id == id);
        let mut last = 0;
        for it in &pack.items {
            prop_assert_eq!(it.included, it.reason.is_none());
            let item = manager.items().find(|item| item.id == it.id).unwrap();
            let parent = item.parent_id.as_deref().and_then(verdict);
            let pair = parent.filter(|parent| it.kind == ItemKind::ToolResult && parent.kind == ItemKind::ToolCall);
            if let Some(call) = pair {
                prop_assert_eq!(it.included, call.included, "{} and its call {}", it.id, call.id);
            }
            let question = parent.filter(|it| it.kind == ItemKind::UserTurn && it.reason == Some(DropReason::Budget));
            prop_assert!(!it.included || question.is_none(), "{} without its question", it.id);
            if it.included {
                let place = pack.prompt.find(&format!("]\n<{}> ", &it.id[1..])).unwrap();
                prop_assert!(last <= place);
                last = place;
            }
        }
    }
}
