//! The adapter from end to end: tools become items to choose from, a session becomes a prompt.
//!
//!     cargo run -p toolcrib-context --example mcp_adapter_demo [SESSION.jsonl]
#![expect(clippy::print_stdout, reason = "a demo shows something")]

use std::{error::Error, fmt::Write};

use serde_json::json;
use toolcrib_context::{
    ContextManager, ItemKind, Phase, ToolResult, load_mcp_session_jsonl, mcp_tool_to_selectable,
};

const SESSION: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/data/mcp_session.jsonl");

fn main() -> Result<(), Box<dyn Error>> {
    let session = std::env::args().nth(1).unwrap_or_else(|| SESSION.to_owned());
    println!("{}", demo(&session)?);
    Ok(())
}

fn demo(session: &str) -> Result<String, Box<dyn Error>> {
    let mut shown = String::new();
    for name in ["invoices.search", "letters.draft"] {
        let tool = json!({ "name": name, "inputSchema": { "type": "object" } });
        let tool = mcp_tool_to_selectable(&tool)?;
        writeln!(shown, "tool {}: of {}", tool.id, tool.namespace)?;
    }

    let items = load_mcp_session_jsonl(session)?;
    let mut manager = ContextManager::new();
    for item in items {
        let beginning: String = item.text.chars().take(60).collect();
        writeln!(shown, "{:?} {}: {beginning:?}", item.kind, item.id)?;
        if item.kind == ItemKind::ToolResult && 2000 < item.text.chars().count() {
            manager.ingest_tool_result(ToolResult {
                tool_call_id: item.parent_id.as_ref().unwrap_or(&item.id),
                raw_output: &item.text,
                tool_name: "mcp_tool",
                ..ToolResult::default()
            })?;
        } else {
            manager.ingest(item)?;
        }
    }

    let pack = manager.build_sync(Phase::Answer, "invoice status")?;
    let stats = &pack.stats;
    writeln!(
        shown,
        "\n{} tokens of {}, {} items:\n",
        stats.tokens, stats.budget, stats.included_count
    )?;
    shown.push_str(&pack.prompt);
    Ok(shown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_shows_the_session_in_order_and_the_large_result_by_its_beginning() {
        let shown = demo(SESSION).unwrap();
        assert!(shown.starts_with("tool invoices:search: of invoices\n"), "{shown}");
        let (_, prompt) = shown.split_once(" items:\n\n").unwrap();
        let places: Vec<Option<usize>> = [
            "[POLICY]\nSend nothing",
            "[USER]\nWhich invoices",
            "[TOOL CALL]\ninvoices.search(status='open')",
            "[TOOL RESULT [artifact:result:tc1]]\nstatus: ok\ncount: 60\n",
            "[TOOL RESULT]\ninvoice: INV-26014",
            "note: the school pays",
            "[ASSISTANT]\nThe reminder is drafted",
        ]
        .map(|it| prompt.find(it))
        .to_vec();
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{places:?}\n{prompt}");
        assert!(!prompt.contains("INV-26059"), "{prompt}");
    }
}
