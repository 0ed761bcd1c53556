//! How items stand in a prompt, and what that costs.
//!
//! A section is `[LABEL]`, a line end and a text; sections are a blank line apart. What is counted is what is
//! written, labels and blank lines too.

use crate::{ContextItem, Counter, ItemKind, tokens::Chars};

/// What stands between two sections.
pub(super) const BETWEEN: &str = "\n\n";
const MOST_HANDLES: usize = 4;
const LONGEST_LABEL: usize = 100;

/// A section as it is written.
pub(super) fn section(item: &ContextItem, handles: &[String]) -> String {
    let label = label(item);
    let mut text = String::with_capacity(label.len() + item.text.len() + 48);
    text.push('[');
    text.push_str(&label);
    for handle in handles.iter().take(MOST_HANDLES) {
        text.push_str(" [");
        text.push_str(handle);
        text.push(']');
    }
    if MOST_HANDLES < handles.len() {
        text.push_str(&format!(" and {} more", handles.len() - MOST_HANDLES));
    }
    text.push_str("]\n");
    push_body(&mut text, item);
    text
}

/// The text, with the name of the function around it or before it, where that is known.
fn push_body(text: &mut String, item: &ContextItem) {
    let name = item.metadata.get("function_name").and_then(|it| it.as_str());
    match (item.kind, name.filter(|it| !it.is_empty())) {
        (ItemKind::ToolCall, Some(name)) => {
            text.extend([name, "(", &item.text, ")"]);
        }
        (ItemKind::ToolResult, Some(name)) => text.extend([name, ": ", &item.text]),
        _ => text.push_str(&item.text),
    }
}

fn label(item: &ContextItem) -> String {
    let own = item.metadata.get("section").and_then(|it| it.as_str()).map(str::trim);
    if let Some(own) = own.filter(|it| !it.is_empty()) {
        let one_line = own.chars().map(|it| if it.is_control() { ' ' } else { it });
        return one_line.take(LONGEST_LABEL).collect();
    }
    let label = match item.kind {
        ItemKind::UserTurn => "USER",
        ItemKind::AgentMsg => "ASSISTANT",
        ItemKind::ToolCall => "TOOL CALL",
        ItemKind::ToolResult => "TOOL RESULT",
        ItemKind::DocSnippet => "DOCUMENT",
        ItemKind::RetrievedDoc => "RETRIEVED",
        ItemKind::MemoryFact => "FACT",
        ItemKind::PlanState => "PLAN",
        ItemKind::Policy => "POLICY",
    };
    label.to_owned()
}

/// What a section costs: characters, which add up, for the heuristic; for a tokenizer the tokens of the
/// section and the blank line after it. The next section begins with a bracket, which no token of a tokenizer
/// joins with the line end before it, so these add up too.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cost {
    chars: Chars,
    tokens: u64,
}

impl Cost {
    /// Of a section that others follow.
    pub(super) fn of(counter: Counter, section: &str) -> Self {
        if counter == Counter::Heuristic {
            let chars = Chars::of(section).plus(Chars::of(BETWEEN));
            return Self { chars, tokens: 0 };
        }
        let tokens = counter.count(&format!("{section}{BETWEEN}"));
        Self { chars: Chars::default(), tokens }
    }

    /// What a caller says that it costs.
    pub(super) fn stated(self, counter: Counter, tokens: u64) -> Self {
        if tokens <= self.tokens(counter) {
            return self;
        }
        match counter {
            Counter::Heuristic => Self { chars: Chars::tokens_of(tokens), ..self },
            #[cfg(feature = "tiktoken")]
            Counter::Cl100k | Counter::O200k => Self { tokens, ..self },
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            chars: self.chars.plus(other.chars),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    pub(super) fn tokens(self, counter: Counter) -> u64 {
        match counter {
            Counter::Heuristic => self.chars.tokens(),
            #[cfg(feature = "tiktoken")]
            Counter::Cl100k | Counter::O200k => self.tokens,
        }
    }

    /// The tokens of a prompt that ends here: no blank line stands after the last section.
    pub(super) fn as_the_last(self, counter: Counter) -> u64 {
        match counter {
            Counter::Heuristic => self.chars.less(BETWEEN.len() as u64).tokens(),
            #[cfg(feature = "tiktoken")]
            Counter::Cl100k | Counter::O200k => self.tokens,
        }
    }
}
