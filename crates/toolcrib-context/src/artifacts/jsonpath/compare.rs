//! Values compared with each other, by the rules of RFC 9535 (2.3.5.2.2).

use std::{cmp::Ordering, collections::HashMap, ops::ControlFlow};

use super::{
    Relation,
    eval::{Eval, MAX_HELD, Stop},
};
use crate::artifacts::{
    decimal::Number,
    json::{JsonType, MAX_DEPTH, unquoted},
    slice::Node,
};

/// A value that is compared.
pub(super) enum Given<'a> {
    Node(Node<'a>),
    /// JSON that is not in the document.
    Made(String),
}

impl Given<'_> {
    pub(super) fn node(&self) -> Node<'_> {
        match self {
            Self::Node(node) => *node,
            Self::Made(text) => Node(text.as_bytes()),
        }
    }

    pub(super) fn length(&self) -> Option<Self> {
        let node = self.node();
        let length = match node.kind()? {
            JsonType::String => node.string()?.chars().count(),
            JsonType::Array | JsonType::Object => node.children().count(),
            _ => return None,
        };
        Some(Self::Made(length.to_string()))
    }
}

type Told = ControlFlow<Stop, bool>;

impl Eval<'_, '_> {
    /// What a value says, if it is a string.
    pub(super) fn string(
        &mut self,
        given: Option<&Given<'_>>,
    ) -> ControlFlow<Stop, Option<String>> {
        let Some(given) = given else { return ControlFlow::Continue(None) };
        self.scan(given.node())?;
        ControlFlow::Continue(given.node().string())
    }

    pub(super) fn compared(
        &mut self,
        left: Option<&Given<'_>>,
        relation: Relation,
        right: Option<&Given<'_>>,
    ) -> Told {
        let (Some(left), Some(right)) = (left, right) else {
            // Nothing is equal to nothing, and has no order.
            let equal = left.is_none() && right.is_none();
            return ControlFlow::Continue(match relation {
                Relation::Equal | Relation::LessOrEqual | Relation::GreaterOrEqual => equal,
                Relation::Unequal => !equal,
                Relation::Less | Relation::Greater => false,
            });
        };
        let (left, right) = (left.node(), right.node());
        let told = match relation {
            Relation::Equal => self.equal(left, right, 0)?,
            Relation::Unequal => !self.equal(left, right, 0)?,
            Relation::Less => self.less(left, right)?,
            Relation::LessOrEqual => self.less(left, right)? || self.equal(left, right, 0)?,
            Relation::Greater => self.less(right, left)?,
            Relation::GreaterOrEqual => self.less(right, left)? || self.equal(left, right, 0)?,
        };
        ControlFlow::Continue(told)
    }

    fn less(&mut self, a: Node<'_>, b: Node<'_>) -> Told {
        let less = match (a.kind(), b.kind()) {
            (Some(JsonType::Number), Some(JsonType::Number)) => {
                self.scan(a)?;
                self.scan(b)?;
                let less = |a: Number, b: Number| a.compare(b) == Ordering::Less;
                number(a).zip(number(b)).is_some_and(|(a, b)| less(a, b))
            }
            (Some(JsonType::String), Some(JsonType::String)) => {
                self.scan(a)?;
                self.scan(b)?;
                a.string() < b.string()
            }
            _ => false,
        };
        ControlFlow::Continue(less)
    }

    /// Whether two values are the same, whatever the order of their keys.
    fn equal(&mut self, a: Node<'_>, b: Node<'_>, depth: usize) -> Told {
        if a.kind() != b.kind() || MAX_DEPTH < depth {
            return ControlFlow::Continue(false);
        }
        match a.kind() {
            Some(JsonType::Array) => self.equal_arrays(a, b, depth),
            Some(JsonType::Object) => {
                let before = self.held;
                let told = self.equal_objects(a, b, depth);
                self.held = before;
                told
            }
            kind => {
                self.scan(a)?;
                self.scan(b)?;
                ControlFlow::Continue(match kind {
                    Some(JsonType::Number) => match (number(a), number(b)) {
                        (Some(a), Some(b)) => a.compare(b) == Ordering::Equal,
                        _ => a.0 == b.0,
                    },
                    Some(JsonType::String) => a.0 == b.0 || a.string() == b.string(),
                    _ => a.0 == b.0,
                })
            }
        }
    }

    fn equal_arrays(&mut self, a: Node<'_>, b: Node<'_>, depth: usize) -> Told {
        let (mut ours, mut theirs) = (a.children(), b.children());
        loop {
            match (ours.next(), theirs.next()) {
                (None, None) => return ControlFlow::Continue(true),
                (Some(a), Some(b)) => {
                    self.pass(&a)?;
                    self.pass(&b)?;
                    if !self.equal(a.value, b.value, depth + 1)? {
                        return ControlFlow::Continue(false);
                    }
                }
                _ => return ControlFlow::Continue(false),
            }
        }
    }

    /// Each member of one is looked up among those of the other, which are held for that.
    fn equal_objects(&mut self, a: Node<'_>, b: Node<'_>, depth: usize) -> Told {
        let mut members = HashMap::new();
        let mut many = 0_usize;
        for child in b.children() {
            self.pass(&child)?;
            self.held += 1;
            many += 1;
            if MAX_HELD < self.held {
                return ControlFlow::Break(Stop::TooMuch);
            }
            // Where a key is there twice, the first counts, as it does in a path.
            members.entry(child.key.map(unquoted)).or_insert(child.value);
        }
        for child in a.children() {
            self.pass(&child)?;
            let Some(rest) = many.checked_sub(1) else { return ControlFlow::Continue(false) };
            many = rest;
            let theirs = members.get(&child.key.map(unquoted)).copied();
            let same = match theirs {
                Some(theirs) => self.equal(child.value, theirs, depth + 1)?,
                None => false,
            };
            if !same {
                return ControlFlow::Continue(false);
            }
        }
        ControlFlow::Continue(many == 0)
    }
}

fn number(node: Node<'_>) -> Option<Number> {
    Number::read(std::str::from_utf8(node.0).ok()?)
}
