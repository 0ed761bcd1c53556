//! A schema made ready: rules in one list that name one another by number.

use hashbrown::HashMap;
use regex::Regex;

use super::{
    format::Format,
    given::{Given, Kind},
    number::{Decimal, Divisor},
};
use crate::schema::SchemaFault;

pub(crate) type Id = u32;

/// Everything that one schema says. The first rule is the schema itself.
#[derive(Default)]
pub(crate) struct Plan {
    pub(crate) rules: Vec<Rule>,
    /// By resource and name: what a dynamic reference may lead to.
    pub(crate) dynamic: HashMap<(u32, Box<str>), Id>,
    /// Parts of the schema that are not checked.
    pub(crate) unchecked: Vec<SchemaFault>,
}

/// One schema.
#[derive(Default)]
pub(crate) struct Rule {
    /// Where it stands in the schema.
    pub(crate) at: Box<str>,
    /// `Some` for the schemas `true` and `false`.
    pub(crate) verdict: Option<bool>,
    pub(crate) resource: u32,
    pub(crate) types: Option<Types>,
    pub(crate) values: Option<Values>,
    pub(crate) constant: Option<Box<Given<'static>>>,
    pub(crate) numbers: Option<Box<Numbers>>,
    pub(crate) texts: Option<Box<Texts>>,
    pub(crate) objects: Option<Box<Objects>>,
    pub(crate) lists: Option<Box<Lists>>,
    pub(crate) more: Option<Box<More>>,
}

/// The other schemas that are about the same value.
#[derive(Default)]
pub(crate) struct More {
    pub(crate) reference: Option<Id>,
    pub(crate) dynamic: Option<(Box<str>, Id)>,
    pub(crate) all_of: Vec<Id>,
    pub(crate) any_of: Vec<Id>,
    pub(crate) one_of: Vec<Id>,
    pub(crate) not: Option<Id>,
    pub(crate) condition: Option<(Id, Option<Id>, Option<Id>)>,
    pub(crate) dependent: Vec<(Box<str>, Id)>,
    pub(crate) unevaluated_properties: Option<Id>,
    pub(crate) unevaluated_items: Option<Id>,
}

/// The values of `enum`.
pub(crate) struct Values {
    pub(crate) list: Box<[Given<'static>]>,
    /// Steps to look through them.
    pub(crate) cost: usize,
}

/// A regular expression of the linear engine.
#[derive(Clone)]
pub(crate) struct Pattern {
    pub(crate) regex: Regex,
    /// Whether it has many states, each of which may have to be visited for each byte.
    pub(crate) large: bool,
}

impl Pattern {
    /// Steps that a search through a text takes at most.
    pub(crate) fn cost(&self, text: &str) -> usize {
        if self.large { text.len().saturating_mul(LARGE) } else { text.len() / 2 }
    }
}

/// Steps for each byte, in a pattern of many states.
const LARGE: usize = 16;

#[derive(Default)]
pub(crate) struct Numbers {
    pub(crate) minimum: Option<Box<str>>,
    pub(crate) maximum: Option<Box<str>>,
    pub(crate) above: Option<Box<str>>,
    pub(crate) below: Option<Box<str>>,
    pub(crate) multiple: Option<(Box<str>, Divisor)>,
}

#[derive(Default)]
pub(crate) struct Texts {
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) pattern: Option<(Box<str>, Pattern)>,
    pub(crate) format: Option<Format>,
}

#[derive(Default)]
pub(crate) struct Objects {
    pub(crate) properties: HashMap<Box<str>, Id>,
    pub(crate) patterns: Vec<(Pattern, Id)>,
    pub(crate) additional: Option<Id>,
    pub(crate) names: Option<Id>,
    pub(crate) required: Vec<Box<str>>,
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) dependent: Vec<(Box<str>, Vec<Box<str>>)>,
}

#[derive(Default)]
pub(crate) struct Lists {
    pub(crate) first: Vec<Id>,
    pub(crate) rest: Option<Id>,
    pub(crate) contains: Option<Contains>,
    pub(crate) min: Option<u64>,
    pub(crate) max: Option<u64>,
    pub(crate) unique: bool,
}

pub(crate) struct Contains {
    pub(crate) rule: Id,
    pub(crate) min: u64,
    pub(crate) max: Option<u64>,
    /// Since 2020-12, what `contains` matched has been looked at.
    pub(crate) counts: bool,
}

/// A set of JSON's types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Types(u8);

impl Types {
    pub(crate) const NULL: Self = Self(1);
    pub(crate) const BOOLEAN: Self = Self(2);
    pub(crate) const INTEGER: Self = Self(4);
    /// Any number, whole ones too.
    pub(crate) const NUMBER: Self = Self(4 | 8);
    pub(crate) const STRING: Self = Self(16);
    pub(crate) const ARRAY: Self = Self(32);
    pub(crate) const OBJECT: Self = Self(64);
    pub(crate) const ALL: Self = Self(127);

    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOLEAN,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            _ => return None,
        })
    }

    pub(crate) fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub(crate) fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether a value is of one of these types.
    pub(crate) fn take(self, value: &Given<'_>) -> bool {
        match &value.kind {
            Kind::Null => self.has(Self::NULL),
            Kind::Bool(_) => self.has(Self::BOOLEAN),
            Kind::Number(it) => {
                self.has(Self::NUMBER) || self.has(Self::INTEGER) && Decimal::read(it).is_integer()
            }
            Kind::Text(_) => self.has(Self::STRING),
            Kind::List(_) => self.has(Self::ARRAY),
            Kind::Object(_) => self.has(Self::OBJECT),
        }
    }

    /// `a string, a number or null`.
    pub(crate) fn told(self) -> String {
        let mut words = Vec::new();
        for (set, word) in [
            (Self::STRING, "a string"),
            (Self::NUMBER, "a number"),
            (Self::INTEGER, "an integer"),
            (Self::BOOLEAN, "a boolean"),
            (Self::ARRAY, "an array"),
            (Self::OBJECT, "an object"),
            (Self::NULL, "null"),
        ] {
            if self.has(set) && !(set == Self::INTEGER && self.has(Self::NUMBER)) {
                words.push(word);
            }
        }
        match words.split_last() {
            Some((last, [])) => (*last).to_owned(),
            Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
            None => "nothing".to_owned(),
        }
    }
}

impl Rule {
    /// The rules that are about the same value as this one.
    pub(crate) fn beside(&self) -> impl Iterator<Item = Id> + '_ {
        self.more.iter().flat_map(|more| {
            let condition = more.condition.into_iter();
            let condition = condition.flat_map(|(a, b, c)| [Some(a), b, c].into_iter().flatten());
            let lists = [&more.all_of, &more.any_of, &more.one_of].into_iter().flatten().copied();
            let dynamic = more.dynamic.iter().map(|(_, id)| *id);
            let dependent = more.dependent.iter().map(|(_, id)| *id);
            let single = more.reference.into_iter().chain(more.not);
            single.chain(dynamic).chain(lists).chain(condition).chain(dependent)
        })
    }

    /// Whether nothing at all fits.
    pub(crate) fn is_never(&self) -> bool {
        self.verdict == Some(false)
    }
}

impl Plan {
    pub(crate) fn rule(&self, id: Id) -> &Rule {
        &self.rules[id as usize]
    }
}
