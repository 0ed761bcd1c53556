//! Which of the candidates are taken: the best first, each with what it cannot be without.
//!
//! Those are, for a call, its results; for a result, its call and the call's other results; and for each the
//! question it follows from, the nearest turn of the user among its ancestors. The ancestors between come
//! along where there is room for all of them. (To demand them always would mean that of a long chain either
//! everything is taken or nothing.)

use super::{Entry, render::Cost};
use crate::{Counter, ItemKind, pack::DropReason};

/// Further up than this an item does not bring its ancestors.
const MOST_ANCESTORS: usize = 64;
const KINDS: usize = 9;

/// A candidate: what it is, and how it hangs together with others. Places are places among the candidates.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// Its place among the entries.
    pub(super) entry: usize,
    pub(super) from_closure: bool,
    pub(super) parent: Option<usize>,
    /// The nearest turn of the user among its ancestors.
    pub(super) question: Option<usize>,
    /// The call of a result; of a call, itself if it has results here.
    pub(super) pair: Option<usize>,
    pub(super) score: Option<f64>,
    /// Why it is out already.
    pub(super) dropped: Option<DropReason>,
}

pub(super) struct Room<'a> {
    pub(super) counter: Counter,
    /// What may be spent.
    pub(super) budget: u64,
    /// What is spent before the first item.
    pub(super) spent: Cost,
    /// How many there may be of each kind.
    pub(super) most: &'a dyn Fn(ItemKind) -> usize,
}

pub(super) struct Selection<'a> {
    entries: &'a [Entry],
    candidates: &'a [Candidate],
    /// The results of each call, and the call itself.
    pairs: &'a [Vec<usize>],
    room: &'a Room<'a>,
    spent: Cost,
    of_kind: [usize; KINDS],
    /// In which try each item was added to a unit last.
    tried: Vec<usize>,
    tries: usize,
    pub(super) taken: Vec<bool>,
    pub(super) reasons: Vec<Option<DropReason>>,
}

impl<'a> Selection<'a> {
    /// Takes what fits of `order`, which is from the best to the worst.
    pub(super) fn run(
        entries: &'a [Entry],
        candidates: &'a [Candidate],
        pairs: &'a [Vec<usize>],
        room: &'a Room<'a>,
        order: &[usize],
    ) -> Self {
        let mut selection = Self {
            entries,
            candidates,
            pairs,
            room,
            spent: room.spent,
            of_kind: [0; KINDS],
            tried: vec![0; candidates.len()],
            tries: 0,
            taken: vec![false; candidates.len()],
            reasons: candidates.iter().map(|it| it.dropped).collect(),
        };
        for at in order {
            if !selection.taken[*at] {
                selection.reasons[*at] = selection.take(*at).err();
            }
        }
        selection
    }

    fn take(&mut self, at: usize) -> Result<(), DropReason> {
        let needed = self.unit(at, Ancestors::Question)?;
        let unit = self.unit(at, Ancestors::All).unwrap_or(needed);
        for at in &unit.members {
            self.taken[*at] = true;
            self.reasons[*at] = None;
        }
        (self.spent, self.of_kind) = (unit.spent, unit.of_kind);
        Ok(())
    }

    /// What comes with an item and is not in yet, itself included, if there is room for all of it.
    fn unit(&mut self, at: usize, ancestors: Ancestors) -> Result<Unit, DropReason> {
        self.tries += 1;
        let mut unit = Unit { members: Vec::new(), spent: self.spent, of_kind: self.of_kind };
        self.add(&mut unit, at)?;
        let mut next = 0;
        while let Some(at) = unit.members.get(next).copied() {
            next += 1;
            let candidate = &self.candidates[at];
            let pair = candidate.pair.map_or(&[][..], |it| &self.pairs[it]);
            let up = match ancestors {
                Ancestors::Question => candidate.question,
                Ancestors::All => candidate.parent,
            };
            for other in pair.iter().copied().chain(up) {
                self.add(&mut unit, other)?;
            }
            if ancestors == Ancestors::All && MOST_ANCESTORS < unit.members.len() {
                return Err(DropReason::Budget);
            }
        }
        Ok(unit)
    }

    /// Adds an item to a unit, unless it is in it already, or in the prompt, or out for good.
    fn add(&mut self, unit: &mut Unit, at: usize) -> Result<(), DropReason> {
        let candidate = &self.candidates[at];
        if candidate.dropped.is_some() || self.taken[at] || self.tried[at] == self.tries {
            return Ok(());
        }
        self.tried[at] = self.tries;
        let entry = &self.entries[candidate.entry];
        let kind = entry.item.kind;
        unit.members.push(at);
        unit.of_kind[kind as usize] += 1;
        if (self.room.most)(kind) < unit.of_kind[kind as usize] {
            return Err(DropReason::KindLimit);
        }
        unit.spent = unit.spent.plus(entry.cost);
        if self.room.budget < unit.spent.as_the_last(self.room.counter) {
            return Err(DropReason::Budget);
        }
        Ok(())
    }
}

/// Items that come together, and what is spent if they do.
struct Unit {
    members: Vec<usize>,
    spent: Cost,
    of_kind: [usize; KINDS],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ancestors {
    /// Only the question.
    Question,
    /// All of them.
    All,
}
