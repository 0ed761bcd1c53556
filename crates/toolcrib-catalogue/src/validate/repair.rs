//! Harmless repairs: what a model wrote as text though the schema asks for something else.
//!
//! Only where the schema takes no text (or no `null`) at that place, and only if the whole then fits.
//! Everything else stays as it was written, byte for byte.

use super::{
    ARGUMENTS, Validator,
    faults::{Path, Sink},
    given::{Given, Kind},
    number::Decimal,
    plan::{Id, Types},
    run::Run,
    told::asked,
};
use crate::Json;

/// How far rules beside a rule are followed in search of what it says about a member.
const FAR: usize = 16;

impl Validator {
    /// The arguments with what was harmlessly wrong put right, and what that was; `None` where
    /// nothing is to be done, or where they would not fit even then.
    ///
    /// ```
    /// use toolcrib_catalogue::{Formats, Json, Validator};
    ///
    /// let schema = Json::parse(r#"{"properties":{"limit":{"type":"integer"},"q":{"type":"string"}}}"#)?;
    /// let validator = Validator::read(&schema, Formats::Asserted)?;
    /// let (repaired, said) = validator.repair(&Json::parse(r#"{ "q": "7", "limit": "5" }"#)?).unwrap();
    /// assert_eq!(repaired.as_str(), r#"{ "q": "7", "limit": 5 }"#);
    /// assert_eq!(said, ["`/limit` was a number given as text"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn repair(&self, arguments: &Json) -> Option<(Json, Vec<String>)> {
        let text = arguments.as_str();
        let value = Given::parse(text).ok()?;
        let mut repair = Repair {
            run: Run::new(&self.0),
            text,
            out: String::with_capacity(text.len()),
            said: Vec::new(),
        };
        repair.value(Some(0), &value, &Path::ROOT);
        if repair.said.is_empty() || repair.run.exhausted {
            return None;
        }
        let repaired = Json::parse(repair.out).ok()?;
        self.check_text(repaired.as_str(), ARGUMENTS).ok()?;
        Some((repaired, repair.said))
    }
}

struct Repair<'r, 't> {
    run: Run<'r>,
    text: &'t str,
    out: String,
    said: Vec<String>,
}

impl Repair<'_, '_> {
    fn copy(&mut self, from: usize, to: usize) {
        self.out.push_str(self.text.get(from..to).unwrap_or_default());
    }

    /// Writes a value, as it should be.
    fn value(&mut self, id: Option<Id>, value: &Given<'_>, path: &Path<'_>) {
        let (at, end) = (value.at as usize, value.end as usize);
        match (&value.kind, id) {
            (Kind::Text(text), Some(id)) => {
                let types = asked(&mut self.run, id, 0);
                match self.meant(types, text) {
                    Some(what) => {
                        self.out.push_str(text.trim());
                        self.said.push(format!("`{}` was {what} given as text", path.pointer()));
                    }
                    None => self.copy(at, end),
                }
            }
            (Kind::Object(_), Some(id)) => self.object(id, value, path),
            (Kind::List(list), Some(id)) => {
                let mut from = at;
                for (index, item) in list.iter().enumerate() {
                    self.copy(from, item.at as usize);
                    let inner = self.item_rule(id, index, 0);
                    self.value(inner, item, &path.index(index));
                    from = item.end as usize;
                }
                self.copy(from, end);
            }
            _ => self.copy(at, end),
        }
    }

    /// What a text was meant to be, where the schema takes no text and takes that.
    fn meant(&mut self, types: Types, text: &str) -> Option<&'static str> {
        if types.has(Types::STRING) || !self.run.spend(text.len() / 8) {
            return None;
        }
        let text = text.trim();
        let read = match text.as_bytes().first()? {
            b'-' | b'0'..=b'9' if !Decimal::is_written_well(text) => return None,
            b'-' | b'0'..=b'9' | b't' | b'f' | b'{' | b'[' => Given::parse(text).ok()?,
            _ => return None,
        };
        types.take(&read).then_some(match read.kind {
            Kind::Number(_) => "a number",
            Kind::Bool(_) => "a boolean",
            Kind::List(_) => "an array",
            _ => "an object",
        })
    }

    fn object(&mut self, id: Id, object: &Given<'_>, path: &Path<'_>) {
        let map = object.members().unwrap_or_default();
        let mut from = object.at as usize + 1;
        let mut begun = false;
        self.out.push('{');
        for (index, (key, value)) in map.iter().enumerate() {
            let last = index + 1 == map.len();
            // Up to the comma after the value, or the brace.
            let rest = self.text.get(value.end as usize..).unwrap_or_default();
            let to = value.end as usize + rest.find(if last { '}' } else { ',' }).unwrap_or(0);
            let inner = self.member_rule(id, key, 0);
            if self.is_absent(id, inner, key, value, path) {
                self.said.push(format!("`{}` was null and is left out", path.key(key).pointer()));
            } else {
                if begun {
                    self.out.push(',');
                }
                begun = true;
                self.copy(from, value.at as usize);
                self.value(inner, value, &path.key(key));
                self.copy(value.end as usize, to);
            }
            from = to + 1;
        }
        if map.is_empty() {
            self.copy(from, object.end as usize - 1);
        }
        self.out.push('}');
    }

    /// Whether a member is `null` where it may be left out and may not be `null`.
    fn is_absent(
        &mut self,
        id: Id,
        inner: Option<Id>,
        key: &str,
        value: &Given<'_>,
        path: &Path<'_>,
    ) -> bool {
        let (Kind::Null, Some(inner)) = (&value.kind, inner) else { return false };
        let fits = self.run.eval(inner, value, &path.key(key), &mut Sink::quiet(), None);
        !fits && !asked(&mut self.run, inner, 0).has(Types::NULL) && !self.requires(id, key, 0)
    }

    fn beside(&mut self, id: Id, depth: usize) -> Vec<Id> {
        if depth == FAR || !self.run.spend(1) {
            return Vec::new();
        }
        self.run.plan.rule(id).beside().collect()
    }

    fn requires(&mut self, id: Id, key: &str, depth: usize) -> bool {
        let objects = self.run.plan.rule(id).objects.as_ref();
        objects.is_some_and(|it| it.required.iter().any(|it| **it == *key))
            || self.beside(id, depth).into_iter().any(|it| self.requires(it, key, depth + 1))
    }

    /// The rule for a member: the only one that speaks of it, or none.
    fn member_rule(&mut self, id: Id, key: &str, depth: usize) -> Option<Id> {
        let objects = self.run.plan.rule(id).objects.as_ref();
        let own = objects.and_then(|it| match it.properties.get(key) {
            Some(id) => Some(*id),
            None if it.patterns.is_empty() => it.additional,
            None => None,
        });
        self.only(id, own, depth, |this, id, depth| this.member_rule(id, key, depth))
    }

    fn item_rule(&mut self, id: Id, index: usize, depth: usize) -> Option<Id> {
        let lists = self.run.plan.rule(id).lists.as_ref();
        let own = lists.and_then(|it| it.first.get(index).copied().or(it.rest));
        self.only(id, own, depth, |this, id, depth| this.item_rule(id, index, depth))
    }

    fn only(
        &mut self,
        id: Id,
        own: Option<Id>,
        depth: usize,
        mut look: impl FnMut(&mut Self, Id, usize) -> Option<Id>,
    ) -> Option<Id> {
        let mut found = own;
        for other in self.beside(id, depth) {
            match (found, look(self, other, depth + 1)) {
                (Some(one), Some(two)) if one != two => return None,
                (None, other) => found = other,
                _ => {}
            }
        }
        found
    }
}
