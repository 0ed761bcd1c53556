//! What somebody wants.
//!
//! A query falls into wishes, one for each word that matters. A wish is met by the word itself, by a form of it,
//! or, for less, by a word that is near to it.

use std::collections::HashSet;

use super::{
    Index, Part,
    meaning::{Direction, Sum},
    near,
    words::{self, Piece},
};

/// The most of a query that is read.
const MAX_BYTES: usize = 2 << 10;
/// The most wishes of one query.
const MAX_WISHES: usize = 32;

/// A word of a query: the terms that meet it, each with how well.
#[derive(Debug, Default)]
pub(super) struct Wish {
    pub(super) terms: Vec<(u32, f32)>,
}

impl Index {
    /// The words of the vocabulary nearest to those of a query that no tool has: what may have been meant.
    pub fn nearest(&self, query: &str) -> Vec<&str> {
        let folded = words::fold(&query[..query.floor_char_boundary(MAX_BYTES)]);
        let mut found = Vec::new();
        let mut scratch = String::new();
        for chunk in words::chunks(&folded).take(MAX_WISHES) {
            scratch.clear();
            scratch.push_str(&chunk.text.to_lowercase());
            if self.vocabulary.term(&scratch).is_none() {
                found.extend(near::closest(&self.vocabulary, &scratch));
            }
        }
        found.dedup();
        found
    }

    /// What a query wants.
    pub(super) fn wishes(&self, query: &str) -> Vec<Wish> {
        let folded = words::fold(&query[..query.floor_char_boundary(MAX_BYTES)]);
        let words = self.written(&folded);
        // A question of fillers alone may still be the name of a tool: `who am i`.
        let matters = |it: &&String| !self.tuning.has(Part::Fillers) || !words::is_filler(it);
        let some_matter = words.iter().any(|it| matters(&it));
        let mut seen = HashSet::new();
        let chosen = words.iter().filter(|it| !some_matter || matters(it));
        let fresh = chosen.filter(|it| seen.insert(it.as_str()));
        let wishes = fresh.take(MAX_WISHES).flat_map(|it| self.wish(it));
        wishes.filter(|it| !it.terms.is_empty()).collect()
    }

    /// The words of a query, those that are one word to us written as one.
    fn written(&self, folded: &str) -> Vec<String> {
        let mut written: Vec<String> = Vec::new();
        let mut scratch = String::new();
        let mut before: Option<&str> = None;
        for chunk in words::chunks(folded) {
            let begin = written.len();
            let mut joined = None;
            words::pieces(chunk.text, &mut scratch, |word, piece| match piece {
                Piece::Word => written.push(word.to_owned()),
                Piece::Joined if self.vocabulary.term(word).is_some() => {
                    joined = Some(word.to_owned());
                }
                Piece::Joined => {}
            });
            if let Some(joined) = joined.filter(|_| chunk.text.is_ascii()) {
                let whole = joined.len() == chunk.text.len();
                written.truncate(if whole { begin } else { written.len() });
                written.push(joined);
            }
            if let Some(before) = before.filter(|_| self.tuning.has(Part::Compounds)) {
                words::join(before, chunk.text, &mut scratch);
                if self.vocabulary.term(&scratch).is_some() {
                    written.push(scratch.clone());
                }
            }
            before = Some(chunk.text);
        }
        written
    }

    fn wish(&self, word: &str) -> Vec<Wish> {
        let mut wish = Wish::default();
        let known = self.vocabulary.term(word);
        wish.terms.extend(known.map(|it| (it, 1.0)));
        if known.is_none()
            && self.tuning.has(Part::Compounds)
            && let Some(parts) = near::parts(&self.vocabulary, word)
        {
            return parts.map(|it| Wish { terms: vec![(it, 1.0)] }).into();
        }
        if self.tuning.has(Part::Abbreviations) {
            let longer = self.vocabulary.abbreviated(word);
            wish.terms.extend(longer.into_iter().map(|it| (it, self.tuning.abbreviated)));
        }
        if self.tuning.has(Part::Relations) {
            wish.terms.extend(self.related(word, known.is_some()));
        }
        if wish.terms.is_empty() && self.tuning.has(Part::Typos) {
            let meant = near::meant(&self.vocabulary, word);
            wish.terms.extend(meant.into_iter().map(|it| (it, self.tuning.misspelt)));
        }
        vec![wish]
    }

    /// The terms related to a word. Where no tool has the word itself, the nearest of them must be what is meant.
    fn related(&self, word: &str, is_known: bool) -> Vec<(u32, f32)> {
        let related = self.tuning.relations.of(word);
        let known = related.filter_map(|(it, near)| Some((self.vocabulary.term(it)?, near)));
        let mut terms: Vec<(u32, f32)> = known.collect();
        let nearest = terms.iter().map(|it| it.1).fold(0.0, f32::max);
        let scale = if is_known { self.tuning.related } else { self.tuning.replaced / nearest };
        for (_, weight) in &mut terms {
            *weight *= scale;
        }
        terms
    }

    /// What a query is about.
    pub(super) fn direction(&self, query: &str) -> Option<Direction> {
        let meanings = self.tuning.meanings();
        let folded = words::fold(&query[..query.floor_char_boundary(MAX_BYTES)]);
        let mut sum = Sum::new();
        for word in self.written(&folded).iter().filter(|it| !words::is_filler(it)) {
            if let Some(at) = meanings.find(word) {
                sum.add(meanings, at);
            }
        }
        sum.direction()
    }
}
