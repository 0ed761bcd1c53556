//! What a change of a schema means.

use super::{MAX_SHOWN, Told, Weight, arrow, brief, keys, quoted, shortened, words};
use crate::lock::canonical::Node;

/// Which schema it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// Of the arguments.
    Input,
    /// Of the result.
    Output,
}

/// A schema that differs.
pub(super) fn changed(told: &mut Told, side: Side, old: Option<&Node<'_>>, new: Option<&Node<'_>>) {
    if side == Side::Output {
        match (old, new) {
            (None, _) => return told.add(Weight::Harmless, "output schema is new".to_owned()),
            (_, None) => return told.add(Weight::Harmless, "output schema is gone".to_owned()),
            _ => {}
        }
    }
    let none = Node::Object(Vec::new());
    let mut diff = Diff { told, side, path: Vec::new() };
    diff.schema(old.unwrap_or(&none), new.unwrap_or(&none));
}

struct Diff<'a, 'b> {
    told: &'a mut Told,
    side: Side,
    /// The way to where we are, as a person would write it.
    path: Vec<&'b str>,
}

type Part<'b> = Option<&'b Node<'b>>;

impl<'b> Diff<'_, 'b> {
    fn schema(&mut self, old: &'b Node<'b>, new: &'b Node<'b>) {
        if !matches!((old, new), (Node::Object(_), Node::Object(_))) {
            return self
                .say(Weight::Power, format!("{}: {}", self.name(), arrow(Some(old), Some(new))));
        }
        for key in keys(old, new) {
            let (one, other) = (old.get(key), new.get(key));
            if one != other {
                self.keyword(key, one, other, (old, new));
            }
        }
    }

    fn keyword(
        &mut self,
        key: &'b str,
        old: Part<'b>,
        new: Part<'b>,
        whole: (&'b Node<'b>, &'b Node<'b>),
    ) {
        let change = || arrow(old, new);
        match key {
            "properties" => self.properties(old, new, whole.1),
            "required" => self.required(old, new, whole),
            "type" => self.types(old, new),
            "enum" => self.choices(old, new),
            "minimum" | "exclusiveMinimum" | "minLength" | "minItems" | "minProperties" => {
                self.bound(key, old, new, |old, new| old <= new);
            }
            "maximum" | "exclusiveMaximum" | "maxLength" | "maxItems" | "maxProperties" => {
                self.bound(key, old, new, |old, new| new <= old);
            }
            "pattern" | "format" | "const" | "multipleOf" => {
                // A rule where there was none lets less through.
                let weight = if old.is_none() { Weight::Harmless } else { Weight::Power };
                self.of(weight, key, &change());
            }
            "default" => self.of(Weight::Power, key, &change()),
            "description" if self.path.is_empty() => {
                self.text("description of the arguments", old, new);
            }
            "description" => self.text(&format!("description of {}", self.name()), old, new),
            "title" | "examples" => self.of(Weight::Text, key, &change()),
            "$schema" | "$id" | "$comment" | "deprecated" | "readOnly" | "writeOnly" => {
                self.of(Weight::Harmless, key, &change());
            }
            "additionalProperties" | "unevaluatedProperties" => self.others(key, old, new),
            "items" | "contains" | "not" | "if" | "then" | "else" | "propertyNames" => {
                self.inner(key, old, new);
            }
            "anyOf" | "oneOf" | "allOf" | "prefixItems" => self.list(key, old, new),
            "$defs" | "definitions" | "patternProperties" => self.named(key, old, new),
            _ => self.of(Weight::Power, key, &change()),
        }
    }

    fn properties(&mut self, old: Part<'b>, new: Part<'b>, whole: &Node<'_>) {
        let (Some(old), Some(new)) = (objects(old), objects(new)) else {
            return self.of(Weight::Power, "properties", &arrow(old, new));
        };
        for key in keys(old, new) {
            match (old.get(key), new.get(key)) {
                (None, Some(schema)) => {
                    let need = if requires(whole, key) { "required" } else { "optional" };
                    let kind = kind(schema).map(|it| format!(" ({it})")).unwrap_or_default();
                    let name = self.name_of(key);
                    self.say(Weight::Power, format!("new {need} {} {name}{kind}", self.noun()));
                }
                (Some(_), None) => {
                    let name = self.name_of(key);
                    self.say(Weight::Harmless, format!("{} {name} is gone", self.noun()));
                }
                (Some(old), Some(new)) if old != new => {
                    self.path.push(key);
                    self.schema(old, new);
                    self.path.pop();
                }
                _ => {}
            }
        }
    }

    /// Who is required of those that are there before and after; for the others it is said elsewhere.
    fn required(&mut self, old: Part<'b>, new: Part<'b>, whole: (&Node<'_>, &Node<'_>)) {
        let list = |it: Part<'b>| it.map(Node::items).unwrap_or_default();
        let has = |whole: &Node<'_>, key: &str| {
            whole.get("properties").and_then(|it| it.get(key)).is_some()
        };
        let mut said = false;
        for key in list(new).iter().filter(|it| !list(old).contains(it)).filter_map(Node::text) {
            said = true;
            let name = self.name_of(key);
            match (has(whole.0, key), has(whole.1, key)) {
                (true, true) => self.say(Weight::Harmless, format!("{name}: optional → required")),
                (_, false) => {
                    self.say(Weight::Power, format!("{name} is required now, and not described"));
                }
                (false, true) => {}
            }
        }
        for key in list(old).iter().filter(|it| !list(new).contains(it)).filter_map(Node::text) {
            said = true;
            if has(whole.1, key) || !has(whole.0, key) {
                let name = self.name_of(key);
                self.say(Weight::Harmless, format!("{name}: required → optional"));
            }
        }
        if !said {
            self.of(Weight::Harmless, "required", &arrow(old, new));
        }
    }

    fn types(&mut self, old: Part<'b>, new: Part<'b>) {
        let (Some(before), Some(now)) = (types(old), types(new)) else {
            return self.of(Weight::Power, "type", &arrow(old, new));
        };
        if before == now {
            return self.of(Weight::Harmless, "type", "written in another way");
        }
        let covers = |it: &&str| {
            let like = if *it == "integer" { "number" } else { it };
            before.is_empty() || before.contains(it) || before.contains(&like)
        };
        let narrower = !now.is_empty() && now.iter().all(covers) || before.is_empty();
        let shown = |it: &[&str]| match it {
            [] => "any".to_owned(),
            _ => shortened(&it.join(" or "), MAX_SHOWN).to_string(),
        };
        let weight = if narrower { Weight::Harmless } else { Weight::Power };
        self.of(weight, "type", &format!("{} → {}", shown(&before), shown(&now)));
    }

    fn choices(&mut self, old: Part<'b>, new: Part<'b>) {
        let (Some(Node::List(before)), Some(Node::List(now))) = (old, new) else {
            let weight = if old.is_none() { Weight::Harmless } else { Weight::Power };
            return self.of(weight, "enum", &arrow(old, new));
        };
        let wider = now.iter().any(|it| !before.contains(it));
        let text = difference(before, now).unwrap_or_else(|| "another order".to_owned());
        self.of(if wider { Weight::Power } else { Weight::Harmless }, "enum", &text);
    }

    /// A bound; `narrower` says whether the second lets less through than the first, or the same.
    fn bound(&mut self, key: &str, old: Part<'b>, new: Part<'b>, narrower: fn(f64, f64) -> bool) {
        let narrow = match (old, new.and_then(Node::number)) {
            (None, Some(_)) => true,
            (Some(old), Some(new)) => old.number().is_some_and(|old| narrower(old, new)),
            _ => false,
        };
        let weight = if narrow { Weight::Harmless } else { Weight::Power };
        self.say(weight, format!("{}: {key} {}", self.name(), arrow(old, new)));
    }

    /// Whether it takes what it does not name.
    fn others(&mut self, key: &'b str, old: Part<'b>, new: Part<'b>) {
        let open = |it: Part<'b>| it.is_none_or(|it| it.truth() == Some(true));
        let shut = |it: Part<'b>| it.is_some_and(|it| it.truth() == Some(false));
        let whose = match self.path.is_empty() {
            true => format!("{}s that it does not name", self.noun()),
            false => format!("fields of {} that it does not name", self.name()),
        };
        if open(old) && open(new) {
            self.of(Weight::Harmless, key, &arrow(old, new));
        } else if shut(new) {
            self.say(Weight::Harmless, format!("{whose} are refused now"));
        } else if open(new) {
            self.say(Weight::Power, format!("{whose} are taken now"));
        } else if matches!((old, new), (Some(Node::Object(_)), Some(Node::Object(_)))) {
            self.inner("*", old, new);
        } else {
            let weight = if open(old) { Weight::Harmless } else { Weight::Power };
            self.say(weight, format!("{whose}: {}", arrow(old, new)));
        }
    }

    /// A schema inside of this one.
    fn inner(&mut self, key: &'b str, old: Part<'b>, new: Part<'b>) {
        match (old, new) {
            (Some(old @ Node::Object(_)), Some(new @ Node::Object(_))) => {
                self.path.push(if key == "items" { "[]" } else { key });
                self.schema(old, new);
                self.path.pop();
            }
            (None, _) => self.of(Weight::Harmless, key, &arrow(old, new)),
            _ => self.of(Weight::Power, key, &arrow(old, new)),
        }
    }

    fn list(&mut self, key: &'b str, old: Part<'b>, new: Part<'b>) {
        let (Some(Node::List(before)), Some(Node::List(now))) = (old, new) else {
            return self.of(Weight::Power, key, &arrow(old, new));
        };
        if before.len() != now.len() {
            let text = format!("{} → {} schemas", before.len(), now.len());
            return self.of(Weight::Power, key, &text);
        }
        self.path.push(key);
        for (old, new) in before.iter().zip(now).filter(|(old, new)| old != new) {
            self.schema(old, new);
        }
        self.path.pop();
    }

    /// Schemas by name, which others refer to.
    fn named(&mut self, key: &'b str, old: Part<'b>, new: Part<'b>) {
        let (Some(old), Some(new)) = (objects(old), objects(new)) else {
            return self.of(Weight::Power, key, &arrow(old, new));
        };
        self.path.push(key);
        for name in keys(old, new) {
            self.path.push(name);
            match (old.get(name), new.get(name)) {
                (Some(old), Some(new)) if old != new => self.schema(old, new),
                (None, _) => self.say(Weight::Power, format!("{} is new", self.name())),
                (_, None) => self.say(Weight::Harmless, format!("{} is gone", self.name())),
                _ => {}
            }
            self.path.pop();
        }
        self.path.pop();
    }

    fn text(&mut self, what: &str, old: Part<'b>, new: Part<'b>) {
        match self.side {
            Side::Input => words::changed(self.told, what, old, new),
            Side::Output => words::changed(self.told, &format!("output: {what}"), old, new),
        }
    }

    /// Says something of a keyword here.
    fn of(&mut self, weight: Weight, key: &str, change: &str) {
        let key = shortened(key, MAX_SHOWN);
        self.say(weight, format!("{key} of {}: {change}", self.name()));
    }

    fn say(&mut self, weight: Weight, text: String) {
        match self.side {
            Side::Input => self.told.add(weight, text),
            // What comes back gives a tool no power; texts in it are still read.
            Side::Output if weight == Weight::Text => {
                self.told.add(weight, format!("output: {text}"));
            }
            Side::Output => self.told.add(Weight::Harmless, format!("output: {text}")),
        }
    }

    fn noun(&self) -> &'static str {
        if self.side == Side::Input && self.path.is_empty() { "argument" } else { "field" }
    }

    fn name(&self) -> String {
        match (self.path.is_empty(), self.side) {
            (true, Side::Input) => "the arguments".to_owned(),
            (true, Side::Output) => "the result".to_owned(),
            (false, _) => quoted(&join(&self.path), MAX_SHOWN),
        }
    }

    fn name_of(&self, key: &str) -> String {
        let mut path = self.path.clone();
        path.push(key);
        quoted(&join(&path), MAX_SHOWN)
    }
}

fn join(path: &[&str]) -> String {
    let mut text = String::new();
    for part in path {
        if !text.is_empty() && *part != "[]" {
            text.push('.');
        }
        text.push_str(part);
    }
    text
}

/// An object, or an empty one where there is none.
fn objects<'b>(part: Part<'b>) -> Option<&'b Node<'b>> {
    static NONE: Node<'static> = Node::Object(Vec::new());
    match part {
        None => Some(&NONE),
        Some(it @ Node::Object(_)) => Some(it),
        Some(_) => None,
    }
}

fn requires(schema: &Node<'_>, key: &str) -> bool {
    let required = schema.get("required").map(Node::items).unwrap_or_default();
    required.iter().any(|it| it.text() == Some(key))
}

/// The types that are allowed, empty where nothing is said; none where that makes no sense.
fn types<'b>(part: Part<'b>) -> Option<Vec<&'b str>> {
    match part {
        None => Some(Vec::new()),
        Some(Node::Text(one)) => Some(vec![one]),
        Some(Node::List(items)) if !items.is_empty() => items.iter().map(Node::text).collect(),
        Some(_) => None,
    }
}

/// A word for what a schema takes.
fn kind(schema: &Node<'_>) -> Option<String> {
    if let Some(choices) = schema.get("enum") {
        return Some(format!("one of {}", brief(choices)));
    }
    let types = types(schema.get("type")).filter(|it| !it.is_empty())?;
    Some(shortened(&types.join(" or "), MAX_SHOWN).to_string())
}

/// `+ a, − b`: what is only in one of two lists; none where both have the same.
pub(super) fn difference(old: &[Node<'_>], new: &[Node<'_>]) -> Option<String> {
    const MOST: usize = 8;
    let only = |here: &[Node<'_>], there: &[Node<'_>], sign: &str| -> Vec<String> {
        here.iter()
            .filter(|it| !there.contains(it))
            .map(|it| format!("{sign} {}", brief(it)))
            .collect()
    };
    let mut parts = only(new, old, "+");
    parts.extend(only(old, new, "−"));
    if parts.len() > MOST {
        let more = parts.len() - MOST;
        parts.truncate(MOST);
        parts.push(format!("and {more} more"));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}
