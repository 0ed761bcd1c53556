//! Phrases that speak to the model instead of describing the tool.
//!
//! A rule ([`table`]) is a row of slots, each a choice of words, with gaps of a few words between
//! them; see [`Rule::pattern`]. All rules are looked for in one walk over the words: a word leads to
//! the rules that begin with it, and from there a rule looks ahead a bounded number of words. So the
//! time is linear whatever the text.
//!
//! No phrase is proof. Each has a weight, and those of different sorts add up: a tool that wants to
//! be called first is bossy, one that also wants the user not to know is poisoned.

use std::sync::LazyLock;

use hashbrown::HashMap;

use super::{
    Kind, Signal,
    words::{Mark, Word, Words},
};

mod table;

/// How many words a gap (`..`) may be long.
const GAP: usize = 7;
/// A sentence that is longer is looked at in pieces, in words.
const SENTENCE: usize = 40;
/// How far back a word is looked for that takes a phrase's meaning away.
const BACK: usize = 12;

/// One phrase to look for.
#[derive(Clone, Copy)]
struct Rule {
    kind: Kind,
    /// What it does, as the beginning of a sentence about the tool.
    says: &'static str,
    weight: f64,
    /// Slots, separated by spaces: `a|b` is a choice of words, `$name` one from the table of
    /// classes, `..` a gap of up to [`GAP`] words in the same sentence, `@url`, `@mail`, `@secret`,
    /// `@name` and `,` what [`Mark`] says. `!x` at the beginning: none of `x` may stand before it.
    /// `&` at the beginning: the slots may stand anywhere in the sentence.
    pattern: &'static str,
}

#[derive(Default)]
struct Compiled {
    written: Vec<Rule>,
    /// The choices that a word is part of.
    choices: HashMap<&'static str, Vec<u16>>,
    names: HashMap<&'static str, u16>,
    rules: Vec<(usize, Vec<Slot>, Option<u16>)>,
    /// Rules whose slots stand in any order.
    loose: Vec<(usize, Vec<u16>)>,
    /// The rules that begin with a choice.
    beginning: HashMap<u16, Vec<usize>>,
}

struct Slot {
    choice: u16,
    gap: usize,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(Compiled::new);

impl Compiled {
    fn new() -> Self {
        let mut all = Self::default();
        for (kind, says, lines) in table::RULES {
            let lines = lines.lines().filter_map(|it| it.split_once(' '));
            all.written.extend(lines.map(|(weight, pattern)| {
                let weight = weight.parse().unwrap_or(0.0);
                Rule { kind: *kind, says, weight, pattern }
            }));
        }
        for number in 0..all.written.len() {
            let Some(rule) = all.written.get(number).copied() else { continue };
            if let Some(loose) = rule.pattern.strip_prefix("& ") {
                let choices = loose.split(' ').map(|it| all.choice(it)).collect();
                all.loose.push((number, choices));
                continue;
            }
            let (mut slots, mut unless, mut gap) = (Vec::new(), None, 0);
            for part in rule.pattern.split(' ') {
                match part.strip_prefix('!') {
                    Some(words) => unless = Some(all.choice(words)),
                    None if part == ".." => gap = GAP,
                    None => {
                        slots.push(Slot { choice: all.choice(part), gap });
                        gap = 0;
                    }
                }
            }
            if let Some(first) = slots.first() {
                all.beginning.entry(first.choice).or_default().push(all.rules.len());
            }
            all.rules.push((number, slots, unless));
        }
        all
    }

    fn choice(&mut self, words: &'static str) -> u16 {
        if let Some(&known) = self.names.get(words) {
            return known;
        }
        let number = u16::try_from(self.names.len()).unwrap_or(u16::MAX);
        self.names.insert(words, number);
        for part in words.split('|') {
            match part.strip_prefix('$') {
                Some(class) => {
                    let lines = table::CLASSES.lines().filter_map(|it| it.split_once(' '));
                    let listed = lines.filter(|(name, _)| *name == class).map(|it| it.1);
                    for word in listed.flat_map(|it| it.split(' ')) {
                        self.choices.entry(word).or_default().push(number);
                    }
                }
                None => self.choices.entry(part).or_default().push(number),
            }
        }
        number
    }

    fn choices_of(&self, word: &Word, words: &Words<'_>) -> &[u16] {
        let key = match word.mark {
            Mark::Plain => words.folded(word),
            Mark::Name => "@name",
            Mark::Url => "@url",
            Mark::Mail => "@mail",
            Mark::Secret => "@secret",
            Mark::Comma => ",",
        };
        self.choices.get(key).map_or(&[], Vec::as_slice)
    }
}

/// Tells `tell` of every phrase in `words`.
pub(super) fn look(words: &Words<'_>, mut tell: impl FnMut(Signal<'_>)) {
    let compiled = &*COMPILED;
    let choices: Vec<&[u16]> =
        words.list.iter().map(|word| compiled.choices_of(word, words)).collect();
    for (at, own) in choices.iter().enumerate() {
        for rule in own.iter().filter_map(|it| compiled.beginning.get(it)).flatten() {
            let Some((number, slots, unless)) = compiled.rules.get(*rule) else { continue };
            let Some(last) = follow(words, &choices, at, slots) else { continue };
            let taken_back = unless.is_some_and(|it| stands_before(words, &choices, at, it));
            let Some(rule) = compiled.written.get(*number).filter(|_| !taken_back) else {
                continue;
            };
            // Whoever quotes a phrase may be speaking about it.
            let quoted = words.list.get(at).is_some_and(|it| it.quoted);
            let weight = if quoted { rule.weight * 0.35 } else { rule.weight };
            let evidence = words.between(at, last);
            tell(Signal { kind: rule.kind, says: rule.says, weight, evidence });
        }
    }
    look_loose(words, &choices, &mut tell);
    look_unspaced(words.text, tell);
}

/// Words that together in one sentence say enough, in whatever order.
fn look_loose(words: &Words<'_>, choices: &[&[u16]], mut tell: impl FnMut(Signal<'_>)) {
    let compiled = &*COMPILED;
    let mut seen = vec![false; compiled.names.len()];
    let mut from = 0;
    while let Some(first) = words.list.get(from) {
        let sentence = words.list.iter().skip(from).take(SENTENCE);
        let size = sentence.take_while(|it| it.sentence == first.sentence).count();
        let here = choices.get(from..from + size).unwrap_or_default();
        mark(&mut seen, here, true);
        for (number, all) in &compiled.loose {
            let holds = all.iter().all(|it| seen.get(usize::from(*it)).is_some_and(|it| *it));
            let Some(rule) = compiled.written.get(*number).filter(|_| holds) else { continue };
            let evidence = words.between(from, from + size - 1);
            tell(Signal { kind: rule.kind, says: rule.says, weight: rule.weight, evidence });
        }
        mark(&mut seen, here, false);
        from += size;
    }
}

/// Where the last of `slots` is found, if all are, the first of them being at `at`.
fn follow(words: &Words<'_>, choices: &[&[u16]], at: usize, slots: &[Slot]) -> Option<usize> {
    let sentence = words.list.get(at)?.sentence;
    let mut here = at;
    for slot in slots.iter().skip(1) {
        let mut left = slot.gap + 1;
        loop {
            here += 1;
            let word = words.list.get(here).filter(|it| it.sentence == sentence)?;
            if choices.get(here).is_some_and(|it| it.contains(&slot.choice)) {
                break;
            }
            // A comma is no word; it neither counts nor parts two words.
            if word.mark != Mark::Comma {
                left -= 1;
            }
            if left == 0 {
                return None;
            }
        }
    }
    Some(here)
}

fn stands_before(words: &Words<'_>, choices: &[&[u16]], at: usize, choice: u16) -> bool {
    let Some(sentence) = words.list.get(at).map(|it| it.sentence) else { return false };
    (at.saturating_sub(BACK)..at).rev().any(|it| {
        words.list.get(it).is_some_and(|word| word.sentence == sentence)
            && choices.get(it).is_some_and(|own| own.contains(&choice))
    })
}

fn mark(seen: &mut [bool], choices: &[&[u16]], to: bool) {
    for choice in choices.iter().copied().flatten() {
        if let Some(it) = seen.get_mut(usize::from(*choice)) {
            *it = to;
        }
    }
}

/// Phrases of languages that are written without spaces, or whose words take on endings: two parts
/// that stand near each other, in either order.
fn look_unspaced(text: &str, mut tell: impl FnMut(Signal<'_>)) {
    if text.is_ascii() {
        return;
    }
    for (kind, says, parts, others) in table::PAIRS {
        for part in parts.split(' ') {
            for (at, _) in text.match_indices(part).take(1000) {
                let from = floor(text, at.saturating_sub(table::NEAR));
                let to = floor(text, at + part.len() + table::NEAR);
                let around = text.get(from..to).unwrap_or_default();
                if others.split(' ').any(|it| around.contains(&*it.replace('+', " "))) {
                    tell(Signal { kind: *kind, says, weight: 0.8, evidence: around });
                    break;
                }
            }
        }
    }
}

/// The last boundary of a character at or before `at`.
pub(super) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&it| text.is_char_boundary(it)).unwrap_or(0)
}

/// The beginning of `text`, no longer than `size` bytes.
pub(super) fn head(text: &str, size: usize) -> &str {
    text.get(..floor(text, size)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_table_is_a_rule() {
        for (_, says, lines) in table::RULES {
            for line in lines.lines().filter(|it| !it.is_empty()) {
                let (weight, pattern) = line.split_once(' ').unwrap();
                let weight: f64 = weight.parse().unwrap();
                assert!(0.0 < weight && weight < 1.0, "{says}: {line}");
                for class in pattern.split([' ', '|', '!']).filter_map(|it| it.strip_prefix('$')) {
                    let known =
                        table::CLASSES.lines().any(|it| it.split(' ').next() == Some(class));
                    assert!(known, "no class ${class}: {line}");
                }
            }
        }
    }
}
