//! What a path finds in a value that is in memory, one after the other, in the order of RFC 9535.
//!
//! Nothing is collected: whoever asks is told of each value as it is found, and can stop. Work is counted in bytes
//! that are gone over, since a short path (`$..*..*..*`) can ask for very much, and a value may be of any length.

use std::{collections::HashMap, ops::ControlFlow};

use super::{Operand, Pick, Query, Segment, Step, Test, compare::Given, pattern::Patterns};
use crate::artifacts::{
    json::{JsonType, unquoted},
    slice::{Child, Node},
    watch::{Halt, Watch},
};

/// How many bytes are gone over.
const MAX_WORK: u64 = 2 << 30;

/// What a value costs beside its bytes.
const STEP: u64 = 64;

/// After so much work it is time to look at the clock.
const TURN: u64 = 1 << 20;

/// How many values are held, to be turned around or compared.
pub(super) const MAX_HELD: usize = 200_000;

/// Going on, or why not.
pub(in super::super) type Flow = ControlFlow<Stop>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum Stop {
    /// Whoever asked has enough.
    Enough,
    /// It would take too long.
    TooMuch,
    /// It did, or nobody waits for it.
    Halted(Halt),
}

/// Where a value stands below the one that was asked.
#[derive(Debug, Clone, Copy)]
pub(in super::super) enum Place<'a> {
    /// As the key is written.
    Key(&'a [u8]),
    Index(usize),
}

impl Place<'_> {
    pub(in super::super) fn step(&self) -> Step {
        match self {
            Self::Key(raw) => Step::Name(unquoted(raw)),
            Self::Index(index) => Step::Index(i64::try_from(*index).unwrap_or(i64::MAX)),
        }
    }
}

type Visit<'v, 'a> = &'v mut dyn FnMut(&[Place<'a>], Node<'a>) -> Flow;

/// What one question has cost so far, over all documents that it was asked of.
#[derive(Debug)]
pub(in super::super) struct Spent {
    work: u64,
    /// How much of it there may be before the next look at the clock.
    turn: u64,
    watch: Watch,
    pub(super) patterns: Patterns,
}

impl Spent {
    pub(in super::super) fn new(watch: Watch) -> Self {
        Self { work: 0, turn: TURN, watch, patterns: Patterns::default() }
    }

    /// So many bytes of content were read. Who looks at each a few times may go on to the end.
    pub(in super::super) fn earn(&mut self, bytes: u64) {
        self.work = self.work.saturating_sub(bytes.saturating_mul(4));
    }

    /// So many bytes more.
    pub(super) fn charge(&mut self, bytes: u64) -> Flow {
        self.work = self.work.saturating_add(bytes);
        if MAX_WORK < self.work {
            return Flow::Break(Stop::TooMuch);
        }
        if self.turn <= self.work {
            self.turn = self.work + TURN;
            if let Err(halt) = self.watch.check() {
                return Flow::Break(Stop::Halted(halt));
            }
        }
        Flow::Continue(())
    }
}

/// What a path from the root finds, which is the same for every value that a filter looks at.
enum Known<'a> {
    Found(Vec<Node<'a>>),
    Count(u64),
}

/// Looks for what paths find, in one document.
pub(in super::super) struct Eval<'a, 's> {
    root: Node<'a>,
    pub(super) spent: &'s mut Spent,
    /// By the place of the path in memory: one question is asked of an `Eval`, and it stays where it is meanwhile.
    known: HashMap<*const Query, Known<'a>>,
    /// How many members are held to be compared.
    pub(super) held: usize,
}

impl<'a, 's> Eval<'a, 's> {
    pub(in super::super) fn new(root: Node<'a>, spent: &'s mut Spent) -> Self {
        Self { root, spent, known: HashMap::new(), held: 0 }
    }

    /// A value is looked at.
    fn count(&mut self) -> Flow {
        self.spent.charge(STEP)
    }

    /// A child is gone over.
    pub(super) fn pass(&mut self, child: &Child<'_>) -> Flow {
        self.spent.charge(STEP + (child.key.map_or(0, <[u8]>::len) + child.value.0.len()) as u64)
    }

    /// The text of a value is gone over.
    pub(super) fn scan(&mut self, node: Node<'_>) -> Flow {
        self.spent.charge(STEP + node.0.len() as u64)
    }

    /// Everything that `segments` find from `node` on.
    pub(in super::super) fn walk(
        &mut self,
        node: Node<'a>,
        segments: &[Segment],
        places: &mut Vec<Place<'a>>,
        visit: Visit<'_, 'a>,
    ) -> Flow {
        self.count()?;
        let Some((segment, rest)) = segments.split_first() else { return visit(places, node) };
        if segment.descend {
            return self.descend(node, segment, rest, places, visit);
        }
        for pick in &segment.selectors {
            self.pick(node, pick, rest, places, visit)?;
        }
        Flow::Continue(())
    }

    fn descend(
        &mut self,
        node: Node<'a>,
        segment: &Segment,
        rest: &[Segment],
        places: &mut Vec<Place<'a>>,
        visit: Visit<'_, 'a>,
    ) -> Flow {
        self.count()?;
        for pick in &segment.selectors {
            self.pick(node, pick, rest, places, visit)?;
        }
        for (index, child) in node.children().enumerate() {
            self.pass(&child)?;
            if !matches!(child.value.kind(), Some(JsonType::Object | JsonType::Array)) {
                continue;
            }
            places.push(child.key.map_or(Place::Index(index), Place::Key));
            self.descend(child.value, segment, rest, places, visit)?;
            places.pop();
        }
        Flow::Continue(())
    }

    fn pick(
        &mut self,
        node: Node<'a>,
        pick: &Pick,
        rest: &[Segment],
        places: &mut Vec<Place<'a>>,
        visit: Visit<'_, 'a>,
    ) -> Flow {
        let mut go = |eval: &mut Self, place: Place<'a>, value: Node<'a>| {
            places.push(place);
            let flow = eval.walk(value, rest, places, visit);
            places.pop();
            flow
        };
        match pick {
            Pick::Name(name) => {
                for child in node.children() {
                    self.pass(&child)?;
                    if let Some(key) = child.key
                        && crate::artifacts::slice::key_is(key, name)
                    {
                        return go(self, Place::Key(key), child.value);
                    }
                }
            }
            Pick::Index(index) => {
                if let Some((index, value)) = self.element(node, *index)? {
                    return go(self, Place::Index(index), value);
                }
            }
            Pick::All => {
                for (index, child) in node.children().enumerate() {
                    self.pass(&child)?;
                    go(self, child.key.map_or(Place::Index(index), Place::Key), child.value)?;
                }
            }
            Pick::Slice { start, end, step } => {
                if node.kind() == Some(JsonType::Array) {
                    // Once to count, once to take.
                    self.scan(node)?;
                    self.scan(node)?;
                    let Some(some) = sliced(node, *start, *end, *step) else {
                        return Flow::Break(Stop::TooMuch);
                    };
                    for (index, value) in some {
                        go(self, Place::Index(index), value)?;
                    }
                }
            }
            Pick::Filter(test) => {
                for (index, child) in node.children().enumerate() {
                    self.pass(&child)?;
                    if self.holds(test, child.value)? {
                        go(self, child.key.map_or(Place::Index(index), Place::Key), child.value)?;
                    }
                }
            }
        }
        Flow::Continue(())
    }

    fn element(
        &mut self,
        node: Node<'a>,
        index: i64,
    ) -> ControlFlow<Stop, Option<(usize, Node<'a>)>> {
        if index < 0 {
            self.scan(node)?;
            self.scan(node)?;
            return ControlFlow::Continue(node.element(index));
        }
        if node.kind() == Some(JsonType::Array) {
            for (at, child) in node.children().enumerate() {
                self.pass(&child)?;
                if i64::try_from(at) == Ok(index) {
                    return ControlFlow::Continue(Some((at, child.value)));
                }
            }
        }
        ControlFlow::Continue(None)
    }

    /// Whether a test holds for a value.
    pub(in super::super) fn holds(
        &mut self,
        test: &Test,
        node: Node<'a>,
    ) -> ControlFlow<Stop, bool> {
        self.count()?;
        let holds = match test {
            Test::Any(tests) => {
                for test in tests {
                    if self.holds(test, node)? {
                        return ControlFlow::Continue(true);
                    }
                }
                false
            }
            Test::All(tests) => {
                for test in tests {
                    if !self.holds(test, node)? {
                        return ControlFlow::Continue(false);
                    }
                }
                true
            }
            Test::Not(test) => !self.holds(test, node)?,
            Test::Exists(query) => !self.found(query, node, 1)?.is_empty(),
            Test::Compare(left, relation, right) => {
                let left = self.operand(left, node)?;
                let right = self.operand(right, node)?;
                self.compared(left.as_ref(), *relation, right.as_ref())?
            }
            Test::Matches { text, pattern, whole } => {
                let text = self.operand(text, node)?;
                let pattern = self.operand(pattern, node)?;
                match (self.string(text.as_ref())?, self.string(pattern.as_ref())?) {
                    (Some(text), Some(pattern)) => self.matches(&pattern, *whole, &text)?,
                    _ => false,
                }
            }
        };
        ControlFlow::Continue(holds)
    }

    /// The first so many that a path finds; how many is the same whenever that path is asked.
    fn found(
        &mut self,
        query: &Query,
        node: Node<'a>,
        many: usize,
    ) -> ControlFlow<Stop, Vec<Node<'a>>> {
        if let Some(Known::Found(found)) = self.known.get(&std::ptr::from_ref(query)) {
            return ControlFlow::Continue(found.clone());
        }
        let from = if query.absolute { self.root } else { node };
        let mut found = Vec::new();
        let flow = self.walk(from, &query.segments, &mut Vec::new(), &mut |_, it| {
            found.push(it);
            if found.len() < many { Flow::Continue(()) } else { Flow::Break(Stop::Enough) }
        });
        if let Flow::Break(stop @ (Stop::TooMuch | Stop::Halted(_))) = flow {
            return ControlFlow::Break(stop);
        }
        if query.absolute {
            self.known.insert(query, Known::Found(found.clone()));
        }
        ControlFlow::Continue(found)
    }

    /// How many a path finds.
    fn counted(&mut self, query: &Query, node: Node<'a>) -> ControlFlow<Stop, u64> {
        if let Some(Known::Count(count)) = self.known.get(&std::ptr::from_ref(query)) {
            return ControlFlow::Continue(*count);
        }
        let mut count = 0;
        let from = if query.absolute { self.root } else { node };
        self.walk(from, &query.segments, &mut Vec::new(), &mut |_, _| {
            count += 1;
            Flow::Continue(())
        })?;
        if query.absolute {
            self.known.insert(query, Known::Count(count));
        }
        ControlFlow::Continue(count)
    }

    fn operand(
        &mut self,
        operand: &Operand,
        node: Node<'a>,
    ) -> ControlFlow<Stop, Option<Given<'a>>> {
        let given = match operand {
            Operand::Literal(text) => Some(Given::Made(text.clone())),
            Operand::Value(query) => self.found(query, node, 1)?.pop().map(Given::Node),
            Operand::Only(query) => {
                let mut found = self.found(query, node, 2)?;
                if found.len() == 1 { found.pop().map(Given::Node) } else { None }
            }
            Operand::Count(query) => Some(Given::Made(self.counted(query, node)?.to_string())),
            Operand::Length(operand) => match self.operand(operand, node)? {
                Some(given) => {
                    self.scan(given.node())?;
                    given.length()
                }
                None => None,
            },
        };
        ControlFlow::Continue(given)
    }
}

/// What a slice of an array is, by the rules of RFC 9535 (2.3.4.2.2); nothing where it would take too much memory.
fn sliced<'a>(
    node: Node<'a>,
    start: Option<i64>,
    end: Option<i64>,
    step: i64,
) -> Option<Box<dyn Iterator<Item = (usize, Node<'a>)> + 'a>> {
    let values = || node.children().map(|it| it.value).enumerate();
    let length = i64::try_from(node.children().count()).unwrap_or(i64::MAX);
    let at = |place: i64| if place < 0 { length + place } else { place };
    let place = |it: i64| usize::try_from(it).unwrap_or_default();
    let by = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
    if 0 < step {
        let start = place(at(start.unwrap_or(0)).clamp(0, length));
        let end = place(at(end.unwrap_or(length)).clamp(0, length));
        let some = values().skip(start).take(end.saturating_sub(start)).step_by(by);
        return Some(Box::new(some));
    }
    let last = length - 1;
    let start = place(at(start.unwrap_or(last)).clamp(-1, last) + 1);
    let end = place(end.map_or(-1, |it| at(it).clamp(-1, last)) + 1);
    if step == 0 || start <= end {
        return Some(Box::new(std::iter::empty()));
    }
    // Backwards they have to be held.
    let some: Vec<_> = values().skip(end).take((start - end).min(MAX_HELD + 1)).collect();
    (some.len() <= MAX_HELD).then(|| Box::new(some.into_iter().rev().step_by(by)) as Box<_>)
}
