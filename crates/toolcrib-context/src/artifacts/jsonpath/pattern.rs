//! Expressions of `match` and `search`: made once each, and paid for.

use std::{collections::HashMap, ops::ControlFlow};

use regex::{Regex, RegexBuilder};

use super::eval::{Eval, Stop};

/// The largest automaton that an expression may become.
const MAX_REGEX: usize = 1 << 20;

/// How many expressions are kept ready.
const MAX_KEPT: usize = 16;

/// What it costs to make one, in bytes gone over, and what each of its characters adds.
const MAKING: u64 = 200_000;
const CHARACTER: u64 = 2_000;

/// What a byte of text costs: the more, the longer the expression.
const MATCHING: u64 = 4;

/// Expressions that were made, by how they are written.
#[derive(Debug, Default)]
pub(super) struct Patterns(HashMap<String, Option<Regex>>);

impl Eval<'_, '_> {
    /// Whether a text matches a pattern, as a whole or somewhere. What is no pattern matches nothing.
    pub(super) fn matches(
        &mut self,
        pattern: &str,
        whole: bool,
        text: &str,
    ) -> ControlFlow<Stop, bool> {
        let key = format!("{}{pattern}", if whole { 'm' } else { 's' });
        let size = pattern.len() as u64;
        if !self.spent.patterns.0.contains_key(&key) {
            self.spent.charge(MAKING + CHARACTER * size)?;
            if MAX_KEPT <= self.spent.patterns.0.len() {
                self.spent.patterns.0.clear();
            }
            self.spent.patterns.0.insert(key.clone(), made(pattern, whole));
        }
        self.spent.charge(text.len() as u64 * (MATCHING + size / 4))?;
        let regex = self.spent.patterns.0.get(&key).and_then(Option::as_ref);
        ControlFlow::Continue(regex.is_some_and(|it| it.is_match(text)))
    }
}

fn made(pattern: &str, whole: bool) -> Option<Regex> {
    let text = dots(pattern);
    let text = if whole { format!("^(?:{text})$") } else { text };
    RegexBuilder::new(&text).size_limit(MAX_REGEX).dfa_size_limit(MAX_REGEX).build().ok()
}

/// In a pattern of RFC 9485 a dot stands for anything but a line feed or a carriage return.
fn dots(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let (mut escaped, mut class) = (false, false);
    for c in pattern.chars() {
        match c {
            '.' if !escaped && !class => out.push_str("[^\\n\\r]"),
            c => out.push(c),
        }
        class = if escaped { class } else { (class || c == '[') && c != ']' };
        escaped = c == '\\' && !escaped;
    }
    out
}
