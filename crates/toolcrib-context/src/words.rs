//! Which words a text is made of, to tell how alike two texts are.
//!
//! A word is a run of `a-z 0-9 _ . - /` in lower case; one with dots, hyphens or slashes inside counts by its
//! pieces too. An underscore never splits. Words of one letter and the commonest words of English are left
//! out. Writing that has no such letters has no words; for finding tools there is `search`, which does better.

use hashbrown::{HashMap, HashSet};

/// The words of a text, each once, as they are met.
pub(crate) fn words(text: &str, mut each: impl FnMut(&str)) {
    let mut lower = String::new();
    for run in text.split(|it: char| !is_word_char(it)) {
        if run.is_empty() {
            continue;
        }
        lower.clear();
        lower.extend(run.chars().map(|it| it.to_ascii_lowercase()));
        let whole = lower.trim_matches(['.', '-', '/']);
        if keep(whole) {
            each(whole);
        }
        if whole.contains(['.', '-', '/']) {
            whole.split(['.', '-', '/']).filter(|it| keep(it)).for_each(&mut each);
        }
    }
}

fn is_word_char(char: char) -> bool {
    char.is_ascii_alphanumeric() || matches!(char, '_' | '.' | '-' | '/')
}

fn keep(word: &str) -> bool {
    2 <= word.len() && !is_common(word)
}

/// A number for each word that was ever met.
#[derive(Debug, Default)]
pub(crate) struct Lexicon {
    numbers: HashMap<String, u32>,
}

impl Lexicon {
    /// The words of `text` as numbers, sorted, each once; new words get new numbers.
    pub(crate) fn learn(&mut self, text: &str) -> Vec<u32> {
        let mut found = Vec::new();
        words(text, |word| {
            let next = u32::try_from(self.numbers.len()).unwrap_or(u32::MAX);
            let number = *self.numbers.entry_ref(word).or_insert(next);
            found.push(number);
        });
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The words of `text` that are known, and how many different words it has in all.
    pub(crate) fn look_up(&self, text: &str) -> Query {
        let mut unknown = HashSet::new();
        let mut known = HashSet::new();
        words(text, |word| match self.numbers.get(word) {
            Some(number) => {
                known.insert(*number);
            }
            None => {
                unknown.insert(word.to_owned());
            }
        });
        Query { total: known.len() + unknown.len(), known }
    }

    /// How many words there are.
    pub(crate) fn len(&self) -> usize {
        self.numbers.len()
    }
}

/// The words of a question.
#[derive(Debug)]
pub(crate) struct Query {
    known: HashSet<u32>,
    total: usize,
}

impl Query {
    /// What share of their words the question and a text have in common.
    pub(crate) fn likeness(&self, words: &[u32]) -> f64 {
        let common = words.iter().filter(|it| self.known.contains(*it)).count();
        share(common, words.len() + self.total - common)
    }
}

/// What share of their words two texts have in common. Two texts without words have none.
pub(crate) fn likeness(a: &[u32], b: &[u32]) -> f64 {
    let (mut left, mut right, mut common) = (a, b, 0);
    while let ([x, more @ ..], [y, others @ ..]) = (left, right) {
        if x == y {
            common += 1;
        }
        if x <= y {
            left = more;
        }
        if y <= x {
            right = others;
        }
    }
    share(common, a.len() + b.len() - common)
}

#[expect(clippy::cast_precision_loss, reason = "no text has that many words")]
pub(crate) fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

/// Words that say nothing about what a text is about.
fn is_common(word: &str) -> bool {
    matches!(
        word,
        // Articles, pointers, quantities.
        "a" | "an" | "the" | "this" | "that" | "these" | "those" | "such" | "same" | "other" | "own"
        | "all" | "any" | "both" | "each" | "few" | "more" | "most" | "some" | "no" | "only"
        // People and things.
        | "me" | "my" | "myself" | "we" | "us" | "our" | "ours" | "ourselves"
        | "you" | "your" | "yours" | "yourself" | "yourselves"
        | "he" | "him" | "his" | "himself" | "she" | "her" | "hers" | "herself"
        | "it" | "its" | "itself" | "they" | "them" | "their" | "theirs" | "themselves"
        | "who" | "whom" | "which" | "what"
        // Where, when, how.
        | "here" | "there" | "where" | "when" | "why" | "how" | "now" | "then" | "once" | "again"
        | "just" | "too" | "so" | "very" | "further"
        // Joints.
        | "and" | "but" | "or" | "nor" | "not" | "if" | "than" | "because" | "as" | "until" | "while"
        | "of" | "at" | "by" | "for" | "with" | "about" | "against" | "between" | "into" | "through"
        | "during" | "before" | "after" | "above" | "below" | "to" | "from" | "up" | "down" | "in"
        | "out" | "on" | "off" | "over" | "under"
        // Verbs that help others.
        | "am" | "is" | "are" | "was" | "were" | "be" | "been" | "being" | "have" | "has" | "had"
        | "having" | "do" | "does" | "did" | "doing" | "will" | "would" | "should" | "can" | "cannot"
        | "could" | "get"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[&str]) {
        let mut found = Vec::new();
        words(text, |it| found.push(it.to_owned()));
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn compounds_count_whole_and_in_pieces() {
        check("invoices_search variant", &["invoices_search", "variant"]);
        check("crm-deals/list v2.0", &["crm-deals/list", "crm", "deals", "list", "v2.0", "v2"]);
        check("naïve café", &["na", "ve", "caf"]);
        check("user@example.com", &["user", "example.com", "example", "com"]);
        check("A.B.c", &["a.b.c"]);
        check("the and of", &[]);
        check("日本語 テスト", &[]);
        check("End.", &["end"]);
    }

    #[test]
    fn likeness_is_the_share_of_common_words() {
        let mut lexicon = Lexicon::default();
        let a = lexicon.learn("status ok count three");
        let b = lexicon.learn("status ok count four");
        assert!((likeness(&a, &b) - 0.6).abs() < 1e-12);
        assert!((lexicon.look_up("invoice status").likeness(&a) - 0.2).abs() < 1e-12);
        assert!(likeness(&[], &[]).abs() < 1e-12);
    }
}
