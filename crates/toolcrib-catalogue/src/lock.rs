//! `toolcrib.lock`: what every tool was when somebody accepted it, and what a change means.
//!
//! A server can say one thing while it is looked at and another thing later. The lock keeps, for each
//! source, how it is started and the definition of each of its tools; [`compare`] says what differs, in
//! words; [`Pinned`] answers the gateway, per tool, without looking at the file again.
//!
//! The file keeps the definitions and not only their hashes: the old server is gone when somebody asks
//! what has changed, and a list of hashes would make a `git diff` that nobody can review. Each head line
//! (`tool PLACE NAME HASH`) has the definition below it, one fact a line: one line for each argument,
//! each annotation, each line of a description. A diff then shows the argument that is new and nothing
//! else. Characters that are not shown are written as escapes, so that no diff can hide them.
//!
//! What a reader would get wrong: the definition below a head line must hash to what the line says. An
//! entry that does not is *damaged* and pins nothing, while its source stays pinned: its tool then counts
//! as new, never as accepted. Whatever cannot be read makes the gateway more careful, not less.

mod canonical;
mod place;
mod way;
mod text;
mod meaning;
mod compare;
mod pins;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, fmt};

use crate::{Problem, Tool};

pub use canonical::ToolHash;
pub use compare::{Change, ChangeKind, Now, compare};
pub use meaning::{Meaning, Weight, meanings};
pub use pins::{Pinned, Pins, Seen, UnknownPins, Verdict};
pub use place::Place;
pub use way::Way;

/// A longer definition is pinned by its hash alone: nobody reviews it line by line.
const MAX_KEPT: usize = 64 * 1024;

/// Which tools were accepted, and as what.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Lock {
    sources: BTreeMap<Place, SourcePins>,
    torn: bool,
}

/// What is pinned of one source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourcePins {
    /// How it was started or reached, if that is known.
    pub way: Option<Way>,
    /// Its tools, by the names it gives them.
    pub tools: BTreeMap<String, ToolPin>,
}

/// What is pinned of one tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolPin {
    /// The hash of its definition.
    pub hash: ToolHash,
    /// The definition in canonical form, unless it is very long.
    pub definition: Option<Box<str>>,
}

/// The hash of a tool's definition: BLAKE3 over the canonical form of all of it, as its source gave it. In canonical form keys are sorted by their bytes, there is no white space, texts have no more
/// escapes than they need, and numbers stay as they were written.
///
/// ```
/// use toolcrib_catalogue::{Json, Tool, lock};
///
/// let tool = |text: &'static str| Tool::read(Json::parse(text).unwrap()).unwrap();
/// let one = lock::hash(&tool(r#"{"name": "a", "inputSchema": {"type": "object", "required": []}}"#));
/// let same = lock::hash(&tool(r#"{"inputSchema":{"required":[],"type":"object"},"name":"\u0061"}"#));
/// let other = lock::hash(&tool(r#"{"name":"a","inputSchema":{"required":["x"],"type":"object"}}"#));
/// assert_eq!(one, same);
/// assert_ne!(one, other);
/// ```
pub fn hash(tool: &Tool) -> ToolHash {
    match canonical::definition(tool) {
        Some(text) => ToolHash::of(&text),
        // Nested deeper than anybody should: as it was given is all that can be said.
        None => ToolHash::of(tool.raw.as_str()),
    }
}

/// The hash of any JSON in canonical form, such as the arguments of a call; none where it is nested too
/// deep. Two ways to write the same members are one; two ways to write a number are not.
pub fn digest(text: &str) -> Option<ToolHash> {
    let node = canonical::Node::read(text)?;
    Some(ToolHash::of(&node.written(canonical::Ink::Canonical)))
}

impl ToolPin {
    /// Pins a tool as it is.
    pub fn new(tool: &Tool) -> Self {
        let definition = canonical::definition(tool);
        let hash = definition.as_deref().map_or_else(|| hash(tool), ToolHash::of);
        // A member that stands twice cannot be written as one fact a line.
        let fits = |it: &String| {
            it.len() <= MAX_KEPT && canonical::Node::read(it).is_some_and(|it| it.has_unique_keys())
        };
        Self { hash, definition: definition.filter(fits).map(Into::into) }
    }
}

impl Lock {
    /// Reads a lock file: what can be relied on, and what is wrong with the rest.
    pub fn read(text: &str) -> (Self, Vec<Problem>) {
        text::read(text)
    }

    /// The text of the lock file. Equal locks give equal texts.
    pub fn write(&self) -> String {
        text::write(self)
    }

    /// Accepts a source as it is now, in place of what was pinned of it. Of two tools with one name the
    /// first counts.
    pub fn pin<'a>(
        &mut self,
        place: Place,
        way: Option<Way>,
        tools: impl IntoIterator<Item = &'a Tool>,
    ) {
        let mut pins = SourcePins { way, tools: BTreeMap::new() };
        for tool in tools {
            pins.tools.entry(tool.name.clone()).or_insert_with(|| ToolPin::new(tool));
        }
        self.sources.insert(place, pins);
    }

    /// Takes over what was pinned of a source that cannot be asked now.
    pub fn keep(&mut self, place: Place, pins: SourcePins) {
        self.sources.insert(place, pins);
    }

    /// Forgets a source: it is no longer pinned.
    pub fn unpin(&mut self, place: &Place) {
        self.sources.remove(place);
    }

    /// What is pinned of a source, if it is pinned at all.
    pub fn source(&self, place: &Place) -> Option<&SourcePins> {
        self.sources.get(place)
    }

    /// All sources that are pinned, sorted.
    pub fn sources(&self) -> impl Iterator<Item = (&Place, &SourcePins)> {
        self.sources.iter()
    }

    /// Whether there are parts that could not be read and might have spoken of any source. A source
    /// that is not in such a lock is not known to be unpinned.
    pub fn is_torn(&self) -> bool {
        self.torn
    }
}

/// Whether no object in a JSON text has a member twice.
pub(crate) fn has_unique_keys(text: &str) -> bool {
    canonical::Node::read(text).is_some_and(|it| it.is_unique_throughout())
}

/// Writes `text` between backticks, short, with everything visible.
fn quoted(text: &str, most: usize) -> String {
    format!("`{}`", shortened(text, most))
}

/// `text`, no longer than `most` characters, with everything visible.
fn shortened(text: &str, most: usize) -> impl fmt::Display {
    let mut shown = String::new();
    for (place, c) in text.chars().enumerate() {
        if place == most {
            shown.push('…');
            break;
        }
        canonical::push_visible(&mut shown, c);
    }
    shown
}
