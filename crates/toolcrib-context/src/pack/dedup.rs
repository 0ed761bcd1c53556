//! Near-duplicates: texts that have most of their words in common.
//!
//! By definition: groups are looked at from the best to the worst, and one goes if each of its items is like
//! some item that was kept before. To compare all pairs would take a hundred seconds for ten thousand items.
//! But two texts that have so many words in common also have one in common among their few rarest, so only
//! items that share such a word are compared.

use hashbrown::HashMap;

use crate::words::likeness;

/// What is compared of an item.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text<'a> {
    /// Its words, sorted.
    pub(super) words: &'a [u32],
    /// Hashes of what came with it; where these differ, nothing is a duplicate.
    pub(super) attachments: &'a [String],
}

/// Of each group whether it goes. Groups are in order, the best first, and name items of `texts`.
pub(super) fn duplicates(
    texts: &[Text<'_>],
    groups: &[Vec<usize>],
    threshold: f64,
    word_count: usize,
) -> Vec<bool> {
    let mut kept = Kept::new(texts, threshold, word_count);
    groups
        .iter()
        .map(|group| {
            let goes = group.iter().all(|it| kept.has_like(*it));
            if !goes {
                group.iter().for_each(|it| kept.add(*it));
            }
            goes
        })
        .collect()
}

struct Kept<'a> {
    texts: &'a [Text<'a>],
    threshold: f64,
    /// In how many texts each word is.
    spread: Vec<u32>,
    /// Which kept texts have a word among their rarest.
    by_rare_word: HashMap<u32, Vec<usize>>,
    /// All kept texts, for a threshold that everything reaches.
    all: Vec<usize>,
    rare: Vec<u32>,
    /// For which text each kept one was looked at last: once is enough.
    looked_at: Vec<usize>,
}

impl<'a> Kept<'a> {
    fn new(texts: &'a [Text<'a>], threshold: f64, word_count: usize) -> Self {
        let mut spread = vec![0_u32; word_count];
        for word in texts.iter().flat_map(|it| it.words) {
            spread[*word as usize] += 1;
        }
        let (by_rare_word, all, rare) = (HashMap::new(), Vec::new(), Vec::new());
        let looked_at = vec![usize::MAX; texts.len()];
        // Below nothing there is nothing.
        let threshold = if threshold < 0.0 { 0.0 } else { threshold };
        Self { texts, threshold, spread, by_rare_word, all, rare, looked_at }
    }

    fn has_like(&mut self, text: usize) -> bool {
        if self.threshold <= 0.0 {
            return self.all.iter().any(|it| self.is_like(text, *it));
        }
        self.find_rare(text);
        for word in &self.rare {
            for other in self.by_rare_word.get(word).map_or(&[][..], Vec::as_slice) {
                if self.looked_at[*other] != text {
                    self.looked_at[*other] = text;
                    if self.is_like(text, *other) {
                        return true;
                    }
                }
            }
        }
        false
    }

    fn add(&mut self, text: usize) {
        if self.threshold <= 0.0 {
            self.all.push(text);
            return;
        }
        self.find_rare(text);
        for word in &self.rare {
            self.by_rare_word.entry(*word).or_default().push(text);
        }
    }

    fn is_like(&self, one: usize, other: usize) -> bool {
        let (one, other) = (self.texts[one], self.texts[other]);
        one.attachments == other.attachments && alike(one.words, other.words, self.threshold)
    }

    /// So many of the rarest words that a text which has none of them cannot be like this one.
    #[expect(clippy::cast_precision_loss, reason = "no text has that many words")]
    fn find_rare(&mut self, text: usize) {
        let words = self.texts[text].words;
        self.rare.clear();
        let common = at_least(self.threshold * words.len() as f64);
        if words.len() < common || words.is_empty() {
            return;
        }
        let count = (words.len() - common + 1).min(words.len());
        self.rare.extend_from_slice(words);
        let spread = &self.spread;
        if count < self.rare.len() {
            self.rare.select_nth_unstable_by_key(count, |it| (spread[*it as usize], *it));
        }
        self.rare.truncate(count);
    }
}

/// Whether two texts have that share of their words in common. Most pairs are told apart by their first words.
#[expect(clippy::cast_precision_loss, reason = "no text has that many words")]
fn alike(one: &[u32], other: &[u32], threshold: f64) -> bool {
    let sum = one.len() + other.len();
    let common = at_least(threshold / (1.0 + threshold) * sum as f64);
    let few = one.len().min(other.len());
    if few < common {
        return false;
    }
    let (mut left, mut right) = (one, other);
    // Of words that only one of them has there may be so many in all.
    let mut lone = sum - 2 * common;
    while let ([x, more @ ..], [y, others @ ..]) = (left, right) {
        if x != y {
            if lone == 0 {
                return false;
            }
            lone -= 1;
        }
        if x <= y {
            left = more;
        }
        if y <= x {
            right = others;
        }
    }
    threshold <= likeness(one, other)
}

/// The number from which on something is reached; rounding must not make it larger than it is.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a share of a small number"
)]
fn at_least(share: f64) -> usize {
    (share - 1e-6).ceil() as usize
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition, word for word.
    fn all_pairs(texts: &[Text<'_>], groups: &[Vec<usize>], threshold: f64) -> Vec<bool> {
        let mut kept: Vec<usize> = Vec::new();
        let mut verdicts = Vec::new();
        for group in groups {
            let goes = group.iter().all(|one| {
                kept.iter().any(|other| {
                    let (one, other) = (texts[*one], texts[*other]);
                    threshold <= likeness(one.words, other.words)
                        && one.attachments == other.attachments
                })
            });
            if !goes {
                kept.extend(group);
            }
            verdicts.push(goes);
        }
        verdicts
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(600))]

        #[test]
        fn few_comparisons_give_what_all_pairs_give(
            base in proptest::collection::vec(proptest::collection::btree_set(0_u32..40, 0..30), 1..25),
            flips in proptest::collection::vec((0_usize..25, 0_u32..40), 0..40),
            threshold in prop_oneof![Just(0.85), Just(0.5), Just(1.0), Just(0.0), Just(-1.0), Just(f64::NAN), 0.05_f64..1.1],
            paired in proptest::collection::vec(any::<bool>(), 70),
        ) {
            // Copies of the base that differ from it in a word or two are what dedup is for.
            let mut sets = base.clone();
            for (at, word) in flips {
                let mut copy = base[at % base.len()].clone();
                if !copy.remove(&word) {
                    copy.insert(word);
                }
                sets.push(copy);
            }
            let words: Vec<Vec<u32>> = sets.into_iter().map(|it| it.into_iter().collect()).collect();
            let texts: Vec<Text<'_>> =
                words.iter().map(|words| Text { words, attachments: &[] }).collect();
            let mut groups: Vec<Vec<usize>> = Vec::new();
            for (at, joins) in (0..texts.len()).zip(paired) {
                match groups.last_mut() {
                    Some(last) if joins && last.len() < 3 => last.push(at),
                    _ => groups.push(vec![at]),
                }
            }
            prop_assert_eq!(
                duplicates(&texts, &groups, threshold, 40),
                all_pairs(&texts, &groups, threshold)
            );
        }
    }
}
