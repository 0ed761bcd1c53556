//! The words of an index, and the stems that stand for them.
//!
//! A *word* is what was written, in lower case; a *term* is what its forms have in common, and what tools are
//! found by. Both go when the last tool that uses them goes, so that an index that was changed a thousand times
//! is the same as one made anew.

use std::{collections::BTreeMap, ops::Bound};

use hashbrown::HashMap;
use rust_stemmers::{Algorithm, Stemmer};

use super::Meanings;

/// The fewest letters that can stand for a longer word.
const SHORT: usize = 3;
/// The fewest letters that an abbreviation leaves out.
const LEFT_OUT: usize = 3;
/// The most words that one can be short for.
const MAX_LONGER: usize = 16;

/// A word of the vocabulary.
#[derive(Debug)]
pub(super) struct Word {
    pub(super) text: Box<str>,
    pub(super) term: u32,
    /// Its place in the table of meanings.
    pub(super) meaning: Option<u32>,
    /// How many tools use it.
    tools: u32,
}

/// How much a term weighs in one tool.
#[derive(Debug, Clone, Copy)]
pub(super) struct Posting {
    pub(super) tool: u32,
    /// Between 0 and 1, see [`super::Index`].
    pub(super) impact: f32,
}

/// What the forms of a word have in common.
#[derive(Debug, Default)]
pub(super) struct Term {
    stem: Box<str>,
    /// The tools that have it, in the order of their places.
    pub(super) postings: Vec<Posting>,
    words: u32,
    /// It is a number, or has one in it: it tells one of a series from another, not what they do.
    pub(super) is_number: bool,
}

/// All words of an index.
#[derive(Debug)]
pub(super) struct Vocabulary {
    words: Vec<Word>,
    by_text: HashMap<Box<str>, u32>,
    /// Which letters each word has, to pass over most of them when a slip of the pen is looked up.
    pub(super) letters: Vec<u32>,
    free_words: Vec<u32>,
    pub(super) terms: Vec<Term>,
    /// In order, so that what begins alike stands together.
    by_stem: BTreeMap<Box<str>, u32>,
    free_terms: Vec<u32>,
    stemming: bool,
    meanings: Meanings,
}

impl Vocabulary {
    pub(super) fn new(stemming: bool, meanings: Meanings) -> Self {
        Self {
            words: Vec::new(),
            by_text: HashMap::new(),
            letters: Vec::new(),
            free_words: Vec::new(),
            terms: Vec::new(),
            by_stem: BTreeMap::new(),
            free_terms: Vec::new(),
            stemming,
            meanings,
        }
    }

    /// The place of a word, which is added if it is new. Nobody uses it before [`Self::retain`] says so.
    pub(super) fn intern(&mut self, text: &str) -> u32 {
        if let Some(&word) = self.by_text.get(text) {
            return word;
        }
        let term = self.intern_stem(text);
        self.terms[term as usize].words += 1;
        let meaning = self.meanings.find(text);
        let word = Word { text: text.into(), term, meaning, tools: 0 };
        let at = place(&mut self.free_words, &mut self.words, word);
        if self.letters.len() <= at as usize {
            self.letters.resize(at as usize + 1, 0);
        }
        self.letters[at as usize] = letters(text);
        self.by_text.insert(text.into(), at);
        at
    }

    fn intern_stem(&mut self, text: &str) -> u32 {
        let stem = self.stem(text);
        if let Some(&term) = self.by_stem.get(&*stem) {
            return term;
        }
        let is_number = text.bytes().any(|it| it.is_ascii_digit());
        let term = Term { stem: (*stem).into(), is_number, ..Term::default() };
        let at = place(&mut self.free_terms, &mut self.terms, term);
        self.by_stem.insert(stem.into(), at);
        at
    }

    fn stem<'a>(&self, text: &'a str) -> std::borrow::Cow<'a, str> {
        let is_english = text.bytes().all(|it| it.is_ascii_lowercase());
        if self.stemming && is_english && 2 < text.len() {
            return Stemmer::create(Algorithm::English).stem(text);
        }
        text.into()
    }

    /// The term of a word that some tool has, perhaps in another form.
    pub(super) fn term(&self, text: &str) -> Option<u32> {
        match self.by_text.get(text) {
            Some(&word) => Some(self.words[word as usize].term),
            None => self.by_stem.get(&*self.stem(text)).copied(),
        }
    }

    /// The terms that a word may be short for, or the other way round: `repo` and `repository`. What is left
    /// out must be some letters, else `use` were short for `user`.
    pub(super) fn abbreviated(&self, text: &str) -> Vec<u32> {
        let stem = self.stem(text);
        if !stem.is_ascii() || stem.len() < SHORT {
            return Vec::new();
        }
        let longer = self.by_stem.range::<str, _>((Bound::Excluded(&*stem), Bound::Unbounded));
        let longer = longer
            .take_while(|(it, _)| it.starts_with(&*stem))
            .filter(|(it, _)| stem.len() + LEFT_OUT <= it.len())
            .map(|(_, &term)| term);
        let shorter = (SHORT..=stem.len().saturating_sub(LEFT_OUT))
            .filter_map(|end| self.by_stem.get(&stem[..end]).copied());
        longer.take(MAX_LONGER).chain(shorter).collect()
    }

    /// A tool has a term. Its place is behind those of all others.
    pub(super) fn insert(&mut self, term: u32, posting: Posting) {
        self.terms[term as usize].postings.push(posting);
    }

    /// The tools have new places, in the same order.
    pub(super) fn renumber(&mut self, places: &[u32]) {
        for posting in self.terms.iter_mut().flat_map(|it| &mut it.postings) {
            posting.tool = places[posting.tool as usize];
        }
    }

    /// A tool has a term no longer.
    pub(super) fn take_out(&mut self, term: u32, tool: u32) {
        let postings = &mut self.terms[term as usize].postings;
        if let Ok(at) = postings.binary_search_by_key(&tool, |it| it.tool) {
            postings.remove(at);
        }
    }

    /// How many tools have a term.
    pub(super) fn tools_with(&self, term: u32) -> usize {
        self.terms[term as usize].postings.len()
    }

    pub(super) fn word(&self, at: u32) -> &Word {
        &self.words[at as usize]
    }

    /// The words that some tool uses, with their letters.
    pub(super) fn live(&self) -> impl Iterator<Item = (&Word, u32)> {
        self.words.iter().zip(self.letters.iter().copied()).filter(|(it, _)| 0 < it.tools)
    }

    /// One more tool uses a word.
    pub(super) fn retain(&mut self, word: u32) {
        self.words[word as usize].tools += 1;
    }

    /// One tool less uses a word, whose term has lost its postings already.
    pub(super) fn release(&mut self, at: u32) {
        let word = &mut self.words[at as usize];
        word.tools = word.tools.saturating_sub(1);
        if word.tools != 0 {
            return;
        }
        let (term, text) = (word.term, std::mem::take(&mut word.text));
        self.by_text.remove(&text);
        self.free_words.push(at);
        let entry = &mut self.terms[term as usize];
        entry.words -= 1;
        if entry.words == 0 {
            self.by_stem.remove(&entry.stem);
            *entry = Term::default();
            self.free_terms.push(term);
        }
    }
}

/// Puts something where there is room.
pub(super) fn place<T>(free: &mut Vec<u32>, all: &mut Vec<T>, new: T) -> u32 {
    if let Some(at) = free.pop() {
        all[at as usize] = new;
        return at;
    }
    all.push(new);
    // Four billion words or tools do not fit into memory.
    u32::try_from(all.len() - 1).unwrap_or(u32::MAX)
}

/// Which letters a word has: a bit for each of `a` to `z`, one for digits, five for all others.
pub(super) fn letters(text: &str) -> u32 {
    text.chars().fold(0, |letters, it| {
        let bit = match it {
            'a'..='z' => it as u32 - 'a' as u32,
            '0'..='9' => 26,
            _ => 27 + it as u32 % 5,
        };
        letters | 1 << bit
    })
}
