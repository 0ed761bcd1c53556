//! Words that are nearly the one that was typed.

use super::vocabulary::{Vocabulary, Word, letters};

/// A shorter word has too many neighbours that mean something else.
const MIN_LENGTH: usize = 4;
/// From this length on two slips are forgiven.
const LONG: usize = 8;
/// The most words that one is taken for.
const MAX_MEANT: usize = 4;

/// The terms that a word which nobody uses may have meant: those one slip away, else those two slips away.
pub(super) fn meant(vocabulary: &Vocabulary, word: &str) -> Vec<u32> {
    let mut terms: Vec<u32> = Vec::new();
    for word in closest_words(vocabulary, word, slips(word)) {
        if !terms.contains(&word.term) && terms.len() < MAX_MEANT {
            terms.push(word.term);
        }
    }
    terms
}

/// The word that one which nobody uses most likely meant. A slip more is forgiven than in a search: whoever asks
/// has found nothing.
pub(super) fn closest<'a>(vocabulary: &'a Vocabulary, word: &str) -> Option<&'a str> {
    closest_words(vocabulary, word, slips(word) + 1).first().map(|it| &*it.text)
}

/// How many slips are forgiven in a word.
fn slips(word: &str) -> usize {
    if word.chars().count() < LONG { 1 } else { 2 }
}

fn closest_words<'a>(vocabulary: &'a Vocabulary, word: &str, slips: usize) -> Vec<&'a Word> {
    if word.chars().count() < MIN_LENGTH || word.bytes().any(|it| it.is_ascii_digit()) {
        return Vec::new();
    }
    let typed = letters(word);
    let mut found: Vec<(usize, &Word)> = Vec::new();
    let mut table = Table::new(word);
    for (known, has) in vocabulary.live() {
        // A slip changes at most two letters into others.
        if (typed ^ has).count_ones() as usize <= 2 * slips
            && known.text.len().abs_diff(word.len()) <= 4 * slips
            && let Some(distance) = table.distance(&known.text, slips)
        {
            found.push((distance, known));
        }
    }
    found.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.text.cmp(&b.1.text)));
    let least = found.first().map_or(0, |it| it.0);
    found.into_iter().take_while(|it| it.0 == least).map(|it| it.1).collect()
}

/// What is reused from one comparison to the next.
struct Table {
    typed: Vec<char>,
    known: Vec<char>,
    rows: [Vec<usize>; 3],
}

impl Table {
    fn new(word: &str) -> Self {
        Self { typed: word.chars().collect(), known: Vec::new(), rows: Default::default() }
    }

    /// How many letters must be added, left out, changed, or swapped with their neighbours, if it is at most `most`.
    fn distance(&mut self, known: &str, most: usize) -> Option<usize> {
        self.known.clear();
        self.known.extend(known.chars());
        let (typed, known) = (&self.typed, &self.known);
        if most < typed.len().abs_diff(known.len()) {
            return None;
        }
        let [two_before, before, row] = &mut self.rows;
        before.clear();
        before.extend(0..=known.len());
        two_before.clone_from(before);
        for (i, a) in typed.iter().enumerate() {
            row.clear();
            row.push(i + 1);
            for (j, b) in known.iter().enumerate() {
                let mut cost =
                    (before[j] + usize::from(a != b)).min(before[j + 1] + 1).min(row[j] + 1);
                if 0 < i && 0 < j && *a == known[j - 1] && typed[i - 1] == *b {
                    cost = cost.min(two_before[j - 1] + 1);
                }
                row.push(cost);
            }
            if row.iter().all(|it| most < *it) {
                return None;
            }
            std::mem::swap(two_before, before);
            std::mem::swap(before, row);
        }
        before.last().copied().filter(|it| *it <= most)
    }
}

/// The two words that one was made of, if tools use both: `webhook` is `web hook`.
pub(super) fn parts(vocabulary: &Vocabulary, word: &str) -> Option<[u32; 2]> {
    if !word.is_ascii() {
        return None;
    }
    // The longer first part is the likelier one: `data|base`, not `da|tabase`.
    (3..word.len().saturating_sub(2)).rev().find_map(|at| {
        let (first, second) = word.split_at(at);
        Some([vocabulary.term(first)?, vocabulary.term(second)?])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_is_one_slip() {
        let check = |a: &str, b: &str, expected| {
            assert_eq!(Table::new(a).distance(b, 2), expected, "{a} {b}");
        };
        check("serach", "search", Some(1));
        check("dashbord", "dashboard", Some(1));
        check("notifcatoin", "notification", Some(2));
        check("same", "same", Some(0));
        check("issue", "invoice", None);
        check("", "ab", Some(2));
    }
}
