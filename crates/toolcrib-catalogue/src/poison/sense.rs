//! What a sentence is about, added up.
//!
//! Phrases find sentences that are worded as expected. Here a sentence is the set of what its words
//! are about ([`lexicon`]): who is spoken to, what is to be done, with what, and whether that is
//! what the tool is for. Things that a description has no reason to do ([`features`]) each have a
//! weight; the sum, through the logistic function, is how sure we are. The weights are learned from
//! the definitions in `tests/poison` by `scripts/poison-weights` and are a table ([`weights`]), so
//! that a finding can say what it was made of.
//!
//! The topic matters most: a tool named `summarise_chat` may ask for the chat, one that adds numbers
//! may not.

use std::sync::LazyLock;

use hashbrown::HashSet;
use serde_json::Value;

use super::{
    Kind, names,
    words::{Mark, Word, Words},
};
use features::FEATURES;
#[cfg_attr(not(test), expect(clippy::wildcard_imports, reason = "a vocabulary"))]
use lexicon::*;

mod features;
mod lexicon;
mod weights;
#[cfg(test)]
mod train;

/// A sentence that is longer is looked at in pieces, in words.
const SENTENCE: usize = 40;
/// A sentence so short is read together with the next, in words.
const CALL: usize = 3;
/// How many words further a "not" reaches.
const REACH: u8 = 6;
/// The same where only known words are counted.
const REACH_UNSPACED: u8 = 2;
/// From how sure on we speak.
const TOLD: f64 = 0.35;
/// How sure a sentence alone can make us.
const SUREST: f64 = 0.9;
/// How many signs a finding names.
const SIGNS: usize = 3;

static LEXICON: LazyLock<Lexicon> = LazyLock::new(Lexicon::new);

/// What a tool is for, as its name and the beginning of its description say.
#[derive(Debug, Default)]
pub(super) struct Topic {
    name: Set,
    opening: Set,
    /// Names of its own: of its parameters, and its own.
    own: HashSet<String>,
}

/// Where a text stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The description of the tool; its first sentence says what the tool does.
    Description,
    /// Words about a parameter.
    Parameter,
    /// Anywhere else.
    Elsewhere,
}

/// A sentence that does what it has no reason to do.
#[derive(Debug)]
pub(super) struct Told<'a> {
    pub(super) kind: Kind,
    pub(super) score: f64,
    pub(super) signs: String,
    pub(super) evidence: &'a str,
}

impl Topic {
    /// Parameters of which the name is kept.
    const KEPT: usize = 64;
    /// Words of the first sentence that count.
    const BEGINNING: usize = 12;

    pub(super) fn of(raw: &Value) -> Self {
        let text = |key: &str| raw.get(key).and_then(Value::as_str).unwrap_or_default();
        let name = super::phrases::head(text("name"), 256);
        let mut own = HashSet::from([name.to_lowercase()]);
        let properties = raw.pointer("/inputSchema/properties").and_then(Value::as_object);
        own.extend(properties.into_iter().flatten().take(Self::KEPT).map(|it| it.0.to_lowercase()));
        let about = |words: &Words<'_>| {
            words
                .list
                .iter()
                .filter(|it| it.sentence == 0)
                .take(Self::BEGINNING)
                .fold(0, |set, it| set | concepts(it, words, &HashSet::new()))
        };
        let opening = Words::of(super::phrases::head(text("description"), 512));
        let name = about(&Words::of(&names::pieces(name).join(" ")));
        Self { name, opening: name | about(&opening), own }
    }
}

/// Tells `tell` of every sentence that is surely enough out of place.
pub(super) fn look(words: &Words<'_>, topic: &Topic, place: Place, mut tell: impl FnMut(Told<'_>)) {
    each_sentence(words, topic, place, |set, evidence| {
        let score = score(set, weights::WEIGHTS).min(SUREST);
        if score >= TOLD {
            let (kind, signs) = explain(set);
            tell(Told { kind, score: (score * 100.0).round() / 100.0, signs, evidence });
        }
    });
}

/// How sure we are that a sentence with these concepts is out of place.
fn score(set: Set, weights: &[f64]) -> f64 {
    let sum: f64 = FEATURES
        .iter()
        .zip(weights.iter().skip(1))
        .filter(|it| it.0.holds(set))
        .map(|it| it.1)
        .sum();
    1.0 / (1.0 + (-(sum + weights.first().copied().unwrap_or(0.0))).exp())
}

/// The kind that most of the weight is of, and the signs that weigh most.
fn explain(set: Set) -> (Kind, String) {
    let mut held: Vec<(f64, Kind, &str)> = FEATURES
        .iter()
        .zip(weights::WEIGHTS.iter().skip(1))
        .filter(|(it, weight)| **weight > 0.0 && it.holds(set))
        .map(|(it, weight)| (*weight, it.kind, it.says))
        .collect();
    held.sort_by(|a, b| b.0.total_cmp(&a.0));
    let of = |kind: Kind| held.iter().filter(|it| it.1 == kind).map(|it| it.0).sum::<f64>();
    let kinds = [Kind::Instruction, Kind::Theft, Kind::Conditioning];
    let kind = kinds.into_iter().max_by(|a, b| of(*a).total_cmp(&of(*b)));
    let kind = kind.unwrap_or(Kind::Instruction);
    let mut signs: Vec<&str> = Vec::new();
    for (_, _, says) in &held {
        if signs.len() < SIGNS && !signs.contains(says) {
            signs.push(says);
        }
    }
    (kind, signs.join(", "))
}

/// Calls `with` for each sentence, with its concepts.
fn each_sentence(words: &Words<'_>, topic: &Topic, place: Place, mut with: impl FnMut(Set, &str)) {
    let mut from = 0;
    while let Some(first) = words.list.get(from) {
        let sentence = words.list.iter().skip(from).take(SENTENCE);
        let mut size = sentence.clone().take_while(|it| it.sentence == first.sentence).count();
        if size <= CALL && from > 0 {
            // "Hello assistant!" belongs to what follows.
            let next = words.list.get(from + size).map(|it| it.sentence);
            size += sentence.skip(size).take_while(|it| Some(it.sentence) == next).count();
        }
        let own = words.list.get(from..from + size).unwrap_or_default();
        let opens = place == Place::Description && first.sentence == 0;
        let mut reading = Reading::new(REACH);
        for (at, word) in own.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|it| own.get(it));
            if word.mark == Mark::Comma {
                reading.pause();
                continue;
            }
            let about = concepts(word, words, &topic.own);
            // What a user has not done is no order.
            let past = reading.set & USER != 0
                && before
                    .is_some_and(|it| ["did", "has", "have", "had"].contains(&words.folded(it)));
            reading.take(if past { about & !NOT } else { about });
            reading.set |= manner(word, before, words);
        }
        with(reading.finish(topic, place, opens), words.between(from, from + size - 1));
        from += size;
    }
    if !words.text.is_ascii() {
        each_unspaced(words.text, topic, place, with);
    }
}

/// The same for writing without spaces between words.
fn each_unspaced(text: &str, topic: &Topic, place: Place, mut with: impl FnMut(Set, &str)) {
    for (number, sentence) in text.split(['。', '！', '？', '；', '\n']).enumerate() {
        let mut reading = Reading::new(REACH_UNSPACED);
        let mut rest = sentence;
        while let Some(c) = rest.chars().next() {
            let known = if c.is_ascii() { None } else { LEXICON.of_unspaced(rest) };
            let (set, size) = known.unwrap_or((0, c.len_utf8()));
            match c {
                '，' | '、' | '：' | ',' => reading.pause(),
                _ if set != 0 => reading.take(set),
                _ => (),
            }
            rest = rest.get(size..).unwrap_or_default();
        }
        if reading.set != 0 {
            let opens = place == Place::Description && number == 0;
            with(reading.finish(topic, place, opens), sentence);
        }
    }
}

/// What a word is about.
fn concepts(word: &Word, words: &Words<'_>, own: &HashSet<String>) -> Set {
    let text = words.folded(word);
    let set = match word.mark {
        Mark::Plain => LEXICON.of(text),
        Mark::Name if own.contains(text) => OWN,
        Mark::Name if ["_key", "_token", "secret", "passw"].iter().any(|it| text.contains(it)) => {
            SECRET
        }
        Mark::Name => NAMED,
        Mark::Url | Mark::Mail => ADDRESS,
        Mark::Secret => SECRET,
        Mark::Comma => 0,
    };
    match word.quoted {
        true if own.contains(text) => OWN,
        true => QUOTED | set & (SECRET | NAMED | ADDRESS),
        false => set,
    }
}

/// What the place of a word says: an order, in the form for orders, where a sentence or a part of it
/// begins; a duty, where something "is to" or "has to" be done.
fn manner(word: &Word, before: Option<&Word>, words: &Words<'_>) -> Set {
    const LEADS: [&str; 14] = [
        "", "and", "then", "please", "kindly", "also", "first", "always", "just", "never", "do",
        "dont", "or", "simply",
    ];
    const OUGHT: [&str; 8] = ["has", "have", "had", "is", "are", "be", "am", "not"];
    let text = words.folded(word);
    let lead = before.map_or("", |it| words.folded(it));
    if word.mark != Mark::Plain {
        0
    } else if LEADS.contains(&lead) && LEXICON.is_order(text)
        || lead.is_empty() && ["do", "dont", "never"].contains(&text)
    {
        ORDER
    } else if text == "to" && OUGHT.contains(&lead) {
        DUTY
    } else {
        0
    }
}

/// A sentence as it is read, word by word.
#[derive(Debug)]
struct Reading {
    set: Set,
    /// How many words further a "not" reaches.
    reach: u8,
    /// For how many words more a "not" holds.
    denied: u8,
}

impl Reading {
    const fn new(reach: u8) -> Self {
        Self { set: 0, reach, denied: 0 }
    }

    fn take(&mut self, word: Set) {
        if word & NOT != 0 {
            // Two of them come to none: "never … without asking".
            self.denied = if word & DOUBLE != 0 && self.denied > 0 { 0 } else { self.reach };
            self.set |= word;
            return;
        }
        if word & DOUBLE != 0 {
            self.denied = 0;
        }
        let mut seen = word;
        if self.denied > 0 {
            for (plain, denied) in [
                (TELL, NOT_TELL),
                (KNOW, NOT_KNOW),
                (ASK, NOT_ASK),
                (ACTS, NOT_ACT),
                (OBEY | RULES, NOT_OBEY),
            ] {
                if word & plain != 0 {
                    seen |= denied;
                }
            }
            if word & (SECRET | PRIVATE) != 0 {
                seen |= NOT_ACT;
            }
            seen &= !(TELL | KNOW | ASK | ACTS | SECRET | PRIVATE);
        }
        self.denied = self.denied.saturating_sub(1);
        self.set |= seen;
    }

    /// A comma: what was denied before it says nothing of what comes after.
    fn pause(&mut self) {
        if self.denied < self.reach {
            self.denied = 0;
        }
    }

    /// All that can be said of the sentence once it is read.
    fn finish(self, topic: &Topic, place: Place, opens: bool) -> Set {
        let mut set = self.set;
        if set & SKIP != 0 && set & ASK != 0 {
            set |= NOT_ASK;
        }
        if set & (ASK | TELL) != 0
            && set & USER != 0
            && set & (NOT_TELL | NOT_KNOW | NOT_ASK | HIDE | LIE | IGNORE) == 0
        {
            set |= CARE;
        }
        let about = if opens { topic.name } else { topic.opening };
        for (plain, off) in [
            (CHAT, OFF_CHAT),
            (SECRET, OFF_SECRET),
            (PRIVATE, OFF_PRIVATE),
            (FILES, OFF_FILES),
            (MONEY, OFF_MONEY),
            (RULES, OFF_RULES),
            (MODEL, OFF_MODEL),
            (POWER, OFF_POWER),
            (ANSWER, OFF_ANSWER),
            (TALK, OFF_TALK),
        ] {
            if set & plain != 0 && about & plain == 0 {
                set |= off;
            }
        }
        if opens {
            set |= OPENING;
        }
        if place == Place::Parameter {
            set |= IN_PARAM;
        }
        set
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_feature_has_a_weight_of_its_sign() {
        assert_eq!(weights::WEIGHTS.len(), FEATURES.len() + 1);
        for (feature, weight) in FEATURES.iter().zip(&weights::WEIGHTS[1..]) {
            assert!(feature.guess * weight >= 0.0, "{}: {weight}", feature.says);
        }
    }
}
