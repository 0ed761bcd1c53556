//! What stands around the items: what is remembered, and what the caller wants before and after.

use super::{
    BuildOptions, ContextManager, PackError,
    options::AboveFloor,
    render::{BETWEEN, Cost},
};
use crate::{Counter, Phase, Sensitivity, scrub_secrets};

const MOST_EPISODES: usize = 3;
const MOST_FACTS: usize = 64;
const MOST_FACT_CHARS: usize = 2000;

/// Lines of memory: what is shown of it in a phase.
pub(super) struct Memory {
    episodes: Vec<String>,
    facts: Vec<String>,
    /// How many facts are left out.
    omitted: usize,
}

/// What stands before and after the items.
pub(super) struct Frame {
    before: String,
    after: String,
    pub(super) cost: Cost,
    pub(super) tokens: u64,
}

impl Memory {
    pub(super) fn of(manager: &ContextManager, phase: Phase) -> Self {
        if !matches!(phase, Phase::Interpret | Phase::Answer) {
            return Self { episodes: Vec::new(), facts: Vec::new(), omitted: 0 };
        }
        let episodes = manager.episodes.iter().rev();
        let episodes = episodes.filter_map(|it| shown(manager, &it.summary, it.sensitivity));
        let episodes = episodes.take(MOST_EPISODES).map(|it| format!("- {it}")).collect();
        let mut facts: Vec<_> = manager.facts.iter().collect();
        facts.sort_by(|one, other| one.id.cmp(&other.id));
        let facts: Vec<String> = facts
            .into_iter()
            .filter_map(|it| {
                let value = shown(manager, &it.value, it.sensitivity)?;
                Some(format!("- {}: {value}", one_line(&it.key)))
            })
            .collect();
        let mut chars = "[FACTS]".len();
        let fitting = facts.iter().take(MOST_FACTS).take_while(|it| {
            chars += it.chars().count();
            chars <= MOST_FACT_CHARS
        });
        let fitting: Vec<String> = fitting.cloned().collect();
        Self { episodes, omitted: facts.len() - fitting.len(), facts: fitting }
    }

    /// Memory, header and footer, with so little of memory that they fit.
    pub(super) fn frame(
        mut self,
        counter: Counter,
        options: &BuildOptions,
        budget: u64,
    ) -> Result<Frame, PackError> {
        loop {
            let mut before = self.sections();
            if !options.header.is_empty() {
                before.push(options.header.clone());
            }
            let (before, after) = (before.join(BETWEEN), options.footer.clone());
            let needed = counter.count(&join(&before, "", &after));
            if needed <= budget {
                let cost = [&before, &after].into_iter().filter(|it| !it.is_empty());
                let cost = cost.map(|it| Cost::of(counter, it));
                let cost = cost.fold(Cost::default(), Cost::plus);
                return Ok(Frame { before, after, cost, tokens: needed });
            }
            if self.facts.pop().is_some() {
                self.omitted += 1;
            } else if 0 < self.omitted {
                self.omitted = 0;
            } else if self.episodes.pop().is_none() {
                return Err(PackError::Header { needed, budget });
            }
        }
    }

    fn sections(&self) -> Vec<String> {
        let mut sections = Vec::new();
        if !self.episodes.is_empty() {
            sections.push(format!("[EPISODIC MEMORY]\n{}", self.episodes.join("\n")));
        }
        if !self.facts.is_empty() || 0 < self.omitted {
            let mut lines = vec!["[FACTS]".to_owned()];
            lines.extend(self.facts.iter().cloned());
            if 0 < self.omitted {
                lines.push(format!("- ... ({} more facts omitted)", self.omitted));
            }
            sections.push(lines.join("\n"));
        }
        sections
    }
}

impl Frame {
    /// The whole prompt.
    pub(super) fn around(&self, sections: &str) -> String {
        join(&self.before, sections, &self.after)
    }
}

fn join(before: &str, sections: &str, after: &str) -> String {
    let parts: Vec<&str> =
        [before, sections, after].into_iter().filter(|it| !it.is_empty()).collect();
    parts.join(BETWEEN)
}

/// What is shown of something remembered, if anything is.
fn shown(manager: &ContextManager, text: &str, sensitivity: Sensitivity) -> Option<String> {
    if manager.options.floor <= sensitivity {
        return match manager.options.above_floor {
            AboveFloor::Drop => None,
            AboveFloor::Redact(_) => Some("[REDACTED]".to_owned()),
        };
    }
    let text = match manager.options.secrets {
        super::Secrets::Show => text.into(),
        super::Secrets::Scrub => scrub_secrets(text),
    };
    Some(one_line(&text))
}

fn one_line(text: &str) -> String {
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect()
}
