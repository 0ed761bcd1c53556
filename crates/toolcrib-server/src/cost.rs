//! What a list of tools costs the model that reads it, and what finding tools one by one would.
//!
//! A list is read with every prompt. Searching costs the definitions of the searching tools, and for every
//! search an answer, a description and two more turns, in each of which the conversation so far is read
//! again. With tools of ordinary size the two meet near a hundred tools, where published measurements have
//! seen it too.

use toolcrib_context::Counter;

/// How many different tools a task needs.
const SEARCHES: usize = 3;

/// How many cards a search answers.
const CARDS: usize = 5;

/// What a card is, beside a definition: a name and a sentence.
const CARD: usize = 45;

/// What a model writes to search, and to ask for a description.
const ASKING: usize = 80;

/// The turns that a search adds.
const TURNS: usize = 2;

/// What is read again in each: a conversation of middling length.
const CONVERSATION: usize = 2_000;

/// How many tokens a list is.
pub(crate) fn of_list(list: &[u8]) -> usize {
    Counter::Heuristic.count(&String::from_utf8_lossy(list)) as usize
}

/// How many tokens it takes to do the same with this short list, where the long one has so many tools.
pub(crate) fn of_searching(few: &[u8], all: &[u8], count: usize) -> usize {
    let one = of_list(all) / count.max(1);
    let search = ASKING + CARDS * CARD + one + TURNS * CONVERSATION;
    of_list(few) + SEARCHES * search
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tool of ordinary size: 600 bytes, 150 tokens.
    #[test]
    fn the_two_meet_near_a_hundred_tools() {
        let few = vec![b'x'; 2_400];
        let cheaper = |count: usize| {
            let all = vec![b'x'; 600 * count];
            of_list(&all) <= of_searching(&few, &all, count)
        };
        assert!(cheaper(1) && cheaper(80));
        assert!(!cheaper(120) && !cheaper(10_000));
        // Few tools may be large, and many small.
        let all = vec![b'x'; 10 * 20_000];
        assert!(of_searching(&few, &all, 10) < of_list(&all));
    }
}
