//! What a change means, in words for the person who has to accept it.
//!
//! Each [`Meaning`] has a weight. In doubt it is the graver one: a keyword that nobody here knows may
//! mean anything. What a tool says of itself counts as power in both directions, since a client asks
//! its user less often about a tool that calls itself read-only.

mod schema;
mod words;

use serde::Serialize;

use super::{
    ToolHash, ToolPin, Way,
    canonical::{self, Ink, Node},
    quoted, shortened,
};
use crate::Tool;

/// How many meanings one change has; the rest is counted.
const MAX_MEANINGS: usize = 40;
/// How much of a value is shown, in characters.
const MAX_SHOWN: usize = 60;

/// How grave a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Weight {
    /// Nothing can be done with the tool that could not be done before.
    Harmless,
    /// A text that a model or a person reads.
    Text,
    /// The tool can do more, or says so, or is trusted more.
    Power,
}

/// One thing that a change means.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Meaning {
    /// How grave it is.
    pub weight: Weight,
    /// What it is: "new optional argument `bcc`". Nothing in it is invisible.
    pub text: String,
}

impl Meaning {
    pub(super) fn new(weight: Weight, text: impl Into<String>) -> Self {
        Self { weight, text: text.into() }
    }
}

/// What it means that a tool, once pinned as `pin`, is now as `tool` says; the gravest first. Empty if
/// nothing changed.
pub fn meanings(pin: &ToolPin, tool: &Tool) -> Vec<Meaning> {
    let now = canonical::definition(tool);
    if now.as_deref().map(ToolHash::of) == Some(pin.hash) {
        return Vec::new();
    }
    let before = pin.definition.as_deref().and_then(Node::read);
    let (Some(before), Some(now)) = (before, now.as_deref().and_then(Node::read)) else {
        let text = "the definition changed, and is too long or too deep to say how";
        return vec![Meaning::new(Weight::Power, text)];
    };
    let mut told = Told::default();
    for key in keys(&before, &now) {
        let (old, new) = (before.get(key), now.get(key));
        if old != new {
            member(&mut told, key, old, new);
        }
    }
    hidden(&mut told, Some(&before), &now);
    told.finish("the definition changed in a way that has no words here")
}

/// What a new tool is, as it says itself.
pub(super) fn of_new(now: Option<&Node<'_>>) -> Vec<Meaning> {
    let Some(now) = now else {
        return vec![Meaning::new(Weight::Power, "its definition is too deep to be read")];
    };
    let schema = now.get("inputSchema");
    let count = schema.and_then(|it| it.get("properties")).map_or(0, |it| it.members().len());
    let arguments = match count {
        0 => "no arguments".to_owned(),
        1 => "1 argument".to_owned(),
        _ => format!("{count} arguments"),
    };
    let mut told = Told::default();
    told.add(Weight::Power, format!("{}, {arguments}", claim(now.get("annotations"))));
    hidden(&mut told, None, now);
    told.finish("")
}

/// What it means that a source is started in another way.
pub(super) fn of_ways(before: &Way, now: &Way) -> Vec<Meaning> {
    let (before, now) = (before.to_string(), now.to_string());
    let mut told = Told::default();
    if let (Some(before), Some(now)) = (Node::read(&before), Node::read(&now)) {
        for key in keys(&before, &now) {
            let (old, new) = (before.get(key), now.get(key));
            if old == new {
                continue;
            }
            let what = match key {
                "args" => "arguments",
                "env" => "variables",
                "cwd" => "folder",
                "url" => "address",
                _ => key,
            };
            let text = match (key, old, new) {
                ("env" | "headers" | "args", Some(old), Some(new)) => {
                    schema::difference(old.items(), new.items())
                }
                _ => None,
            };
            let text = text.unwrap_or_else(|| arrow(old, new));
            told.add(Weight::Power, format!("{}: {text}", shortened(what, MAX_SHOWN)));
        }
    }
    told.finish("it changed in a way that has no words here")
}

/// Meanings as they are gathered.
#[derive(Debug, Default)]
struct Told {
    meanings: Vec<Meaning>,
    untold: usize,
    untold_weight: Option<Weight>,
}

impl Told {
    fn add(&mut self, weight: Weight, text: String) {
        if self.meanings.len() < MAX_MEANINGS {
            self.meanings.push(Meaning { weight, text });
        } else {
            self.untold += 1;
            self.untold_weight = self.untold_weight.max(Some(weight));
        }
    }

    fn finish(mut self, otherwise: &str) -> Vec<Meaning> {
        if self.meanings.is_empty() {
            self.add(Weight::Power, otherwise.to_owned());
        }
        self.meanings.sort_by_key(|it| std::cmp::Reverse(it.weight));
        if let Some(weight) = self.untold_weight {
            self.meanings.push(Meaning { weight, text: format!("and {} more", self.untold) });
        }
        self.meanings
    }
}

/// A member of the definition that differs.
fn member(told: &mut Told, key: &str, old: Option<&Node<'_>>, new: Option<&Node<'_>>) {
    match key {
        "description" => words::changed(told, "description", old, new),
        "title" => told.add(Weight::Text, format!("title: {}", arrow(old, new))),
        "inputSchema" => schema::changed(told, schema::Side::Input, old, new),
        "outputSchema" => schema::changed(told, schema::Side::Output, old, new),
        "annotations" => annotations(told, old, new),
        "icons" => told.add(Weight::Harmless, format!("icons: {}", arrow(old, new))),
        _ => {
            let none = Node::Object(Vec::new());
            let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
            if !matches!((old, new), (Node::Object(_), Node::Object(_))) {
                let change = arrow(Some(old), Some(new));
                return told.add(Weight::Text, format!("{key}: {change}"));
            }
            let keys: Vec<String> = keys(old, new)
                .filter(|it| old.get(it) != new.get(it))
                .map(|it| quoted(it, MAX_SHOWN))
                .take(5)
                .collect();
            told.add(Weight::Text, format!("{key} changed: {}", keys.join(", ")));
        }
    }
}

/// What a tool claims to be. Where it is silent, what the protocol says of silence counts.
fn claim(annotations: Option<&Node<'_>>) -> &'static str {
    let hint = |key| annotations.and_then(|it| it.get(key)).and_then(Node::truth);
    match (hint("readOnlyHint"), hint("destructiveHint")) {
        (Some(true), _) => "read-only",
        (_, Some(false)) => "adds and never destroys",
        _ => "destructive",
    }
}

fn annotations(told: &mut Told, old: Option<&Node<'_>>, new: Option<&Node<'_>>) {
    let (before, now) = (claim(old), claim(new));
    if before != now {
        told.add(Weight::Power, format!("{before} → {now}"));
    }
    let none = Node::Object(Vec::new());
    let (old, new) = (old.unwrap_or(&none), new.unwrap_or(&none));
    for key in keys(old, new) {
        let (one, other) = (old.get(key), new.get(key));
        if one == other {
            continue;
        }
        let truth = |it: Option<&Node<'_>>, silent| it.and_then(Node::truth).unwrap_or(silent);
        let weight = match key {
            // Said above.
            "readOnlyHint" | "destructiveHint" if before != now => continue,
            "readOnlyHint" | "destructiveHint" => Weight::Harmless,
            "idempotentHint" if truth(one, false) == truth(other, false) => Weight::Harmless,
            "openWorldHint" if truth(one, true) == truth(other, true) => Weight::Harmless,
            "idempotentHint" | "openWorldHint" => Weight::Power,
            _ => Weight::Text,
        };
        told.add(weight, format!("annotations: {} {}", quoted(key, MAX_SHOWN), arrow(one, other)));
    }
    if !matches!((old, new), (Node::Object(_), Node::Object(_))) {
        told.add(Weight::Text, format!("annotations: {}", arrow(Some(old), Some(new))));
    }
}

/// Characters that nobody sees, anywhere in the definition, if there are others than before.
fn hidden(told: &mut Told, before: Option<&Node<'_>>, now: &Node<'_>) {
    let mut found = Vec::new();
    words::gather_hidden(now, &mut found);
    let mut known = Vec::new();
    if let Some(before) = before {
        words::gather_hidden(before, &mut known);
    }
    if found == known || found.is_empty() {
        return;
    }
    let mut shown = String::new();
    for c in found.iter().take(8) {
        shown.push(' ');
        canonical::push_visible(&mut shown, *c);
    }
    let more = if found.len() > 8 { " …" } else { "" };
    let count = found.len();
    let noun = if count == 1 { "character" } else { "characters" };
    let were = match known.len() {
        0 => String::new(),
        known => format!(" ({known} before)"),
    };
    told.add(Weight::Text, format!("{count} hidden {noun}:{shown}{more}{were}"));
}

/// The keys of two objects, sorted, each once.
fn keys<'a>(one: &'a Node<'_>, other: &'a Node<'_>) -> impl Iterator<Item = &'a str> {
    let members = one.members().iter().chain(other.members());
    let keys: std::collections::BTreeSet<&str> = members.map(|(key, _)| &**key).collect();
    keys.into_iter()
}

/// `old → new`, short.
fn arrow(old: Option<&Node<'_>>, new: Option<&Node<'_>>) -> String {
    let shown = |it: Option<&Node<'_>>| it.map_or_else(|| "none".to_owned(), brief);
    match (shown(old), shown(new)) {
        (old, new) if old == new => format!("{old} → another that begins alike"),
        (old, new) => format!("{old} → {new}"),
    }
}

/// A value, short: a text in backticks, anything else as JSON.
fn brief(value: &Node<'_>) -> String {
    match value {
        Node::Text(text) => quoted(text, MAX_SHOWN),
        other => shortened(&other.written(Ink::Visible), MAX_SHOWN).to_string(),
    }
}
