//! Which tools are nearly the same.
//!
//! Some servers list a tool a dozen times, with a number or a word that all of them share added. The measure is
//! how much of what two tools are said to be they have in common, each term counted by how much it tells: a
//! term of many tools tells little, a number nothing. Only tools of one server are compared: creating an issue
//! here and creating one there are different things.

use super::{Entry, Index, TermUse};

impl Index {
    /// Whether two tools are nearly the same.
    pub(super) fn are_alike(&self, a: &Entry, b: &Entry) -> bool {
        if a.server != b.server {
            return false;
        }
        let in_name = |it: &TermUse| it.in_name;
        let in_text = |it: &TermUse| it.in_text;
        let least = self.tuning.alike;
        self.common(a, b, in_name) >= least && self.common(a, b, in_text) >= least
    }

    /// The share of what two tools tell that both tell.
    fn common(&self, a: &Entry, b: &Entry, counts: impl Fn(&TermUse) -> bool) -> f64 {
        let told = |it: &TermUse| {
            let is_number = self.vocabulary.terms[it.term as usize].is_number;
            if is_number || !counts(it) { 0.0 } else { self.rarity(it.term) }
        };
        let (mut both, mut all) = (0.0, 0.0);
        let (mut left, mut right) = (a.terms.iter().peekable(), b.terms.iter().peekable());
        loop {
            match (left.peek(), right.peek()) {
                (Some(x), Some(y)) if x.term == y.term => {
                    both += told(x).min(told(y));
                    all += told(x).max(told(y));
                    left.next();
                    right.next();
                }
                (Some(x), Some(y)) if y.term < x.term => {
                    all += told(y);
                    right.next();
                }
                (Some(x), _) => {
                    all += told(x);
                    left.next();
                }
                (None, Some(y)) => {
                    all += told(y);
                    right.next();
                }
                (None, None) => break,
            }
        }
        // Two names that are numbers only have nothing to tell them apart here.
        if all == 0.0 { 1.0 } else { both / all }
    }
}
