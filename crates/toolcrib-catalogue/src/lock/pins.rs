//! What pins say of the tools that are there now.
//!
//! [`Pinned`] speaks for a `toolcrib.lock`. Without one, [`Seen`] remembers what each source listed
//! first while the gateway runs, and notices what differs later.

use std::{fmt, str::FromStr, sync::Arc};

use hashbrown::{HashMap, HashSet};

use super::{Change, Lock, Place, ToolHash, ToolPin, Way};
use crate::Tool;

/// How many tools [`Seen`] remembers of one source that were not in its first list. A source that
/// makes up new names forever must not fill the memory.
const MAX_LATER: usize = 20_000;

/// How many bytes of definitions it remembers of one source, so that a change can be told in words. Of the rest it
/// knows the hashes alone.
const MAX_KEPT: usize = 4 << 20;

/// What happens to a tool that is not what was accepted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pins {
    /// Nothing; nobody looks.
    Off,
    /// It is told, and works.
    #[default]
    Warn,
    /// It is told, and held back until somebody accepts it.
    Hold,
}

/// What pins say of one tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// It is what was accepted.
    Same,
    /// Its source is pinned, and the tool is not among what was accepted.
    New,
    /// It was accepted as something else.
    Changed {
        /// The hash of what was accepted.
        before: ToolHash,
        /// The hash of what it is.
        now: ToolHash,
    },
    /// Its source is not pinned.
    Unpinned,
}

/// What a lock says, ready to be asked. Answers in constant time.
#[derive(Debug, Clone, Default)]
pub struct Pinned {
    sources: HashMap<Place, HashMap<Box<str>, ToolHash>>,
    ways: HashMap<Place, ToolHash>,
    torn: bool,
}

/// What each source listed first, for as long as the gateway runs.
#[derive(Debug, Default)]
pub struct Seen {
    sources: HashMap<Place, HashMap<Box<str>, SeenTool>>,
}

#[derive(Debug)]
struct SeenTool {
    /// The definition, where there was room for it.
    tool: Option<Arc<Tool>>,
    hash: ToolHash,
    /// Whether it stood in the first list.
    first: bool,
    /// What was told of it last, so that nothing is told twice.
    told: ToolHash,
}

impl Pinned {
    /// What `lock` says.
    pub fn new(lock: &Lock) -> Self {
        let mut pinned = Self { torn: lock.is_torn(), ..Self::default() };
        for (place, pins) in lock.sources() {
            let tools = pins.tools.iter().map(|(name, pin)| (name.as_str().into(), pin.hash));
            pinned.sources.insert(place.clone(), tools.collect());
            if let Some(way) = &pins.way {
                pinned.ways.insert(place.clone(), way.hash());
            }
        }
        pinned
    }

    /// What the lock says of a tool: its source, the name its source gives it, and its
    /// [`hash`](super::hash), which the caller keeps beside the definition.
    pub fn verdict(&self, place: &Place, name: &str, now: &ToolHash) -> Verdict {
        match self.sources.get(place) {
            Some(tools) => verdict(tools.get(name), now),
            // The part that cannot be read may have pinned it.
            None if self.torn => Verdict::New,
            None => Verdict::Unpinned,
        }
    }

    /// What the lock says of how a source is started. A source that was pinned without it is unpinned
    /// in this respect.
    pub fn verdict_on_way(&self, place: &Place, way: &Way) -> Verdict {
        match self.ways.get(place) {
            Some(before) => verdict(Some(before), &way.hash()),
            // The part that cannot be read may have pinned it.
            None if self.torn && !self.sources.contains_key(place) => Verdict::New,
            None => Verdict::Unpinned,
        }
    }
}

fn verdict(before: Option<&ToolHash>, now: &ToolHash) -> Verdict {
    match before {
        Some(before) if before == now => Verdict::Same,
        Some(before) => Verdict::Changed { before: *before, now: *now },
        None => Verdict::New,
    }
}

impl Seen {
    /// Takes note of a list of tools. The first list of a source is accepted as it is; of a later one
    /// the tools that are new or changed are told, each time they become something else, and what they
    /// first were stays what counts. Of two tools with one name the first counts.
    pub fn look(&mut self, place: &Place, tools: &[(Arc<Tool>, ToolHash)]) -> Vec<Change> {
        let Some(seen) = self.sources.get_mut(place) else {
            let mut seen = HashMap::with_capacity(tools.len());
            let mut room = MAX_KEPT;
            for (tool, hash) in tools {
                let size = tool.raw.as_bytes().len();
                let fits = size <= room;
                room -= if fits { size } else { 0 };
                let it = || SeenTool::new(Some(tool).filter(|_| fits), hash, true);
                seen.entry(tool.name.as_str().into()).or_insert_with(it);
            }
            self.sources.insert(place.clone(), seen);
            return Vec::new();
        };
        let mut names = HashSet::with_capacity(tools.len());
        let mut later = seen.values().filter(|it| !it.first).count();
        let mut changes = Vec::new();
        for (tool, hash) in tools.iter().filter(|(tool, _)| names.insert(tool.name.as_str())) {
            if let Some(before) = seen.get_mut(tool.name.as_str()) {
                changes.extend(before.look(place, tool, hash));
            } else {
                changes.push(Change::new_tool(place, tool, *hash));
                if later < MAX_LATER {
                    later += 1;
                    // Nobody has accepted it, so nobody needs to hear what it was before.
                    seen.insert(tool.name.as_str().into(), SeenTool::new(None, hash, false));
                }
            }
        }
        changes
    }

    /// What it says of a tool; see [`Pinned::verdict`].
    pub fn verdict(&self, place: &Place, name: &str, now: &ToolHash) -> Verdict {
        let Some(seen) = self.sources.get(place) else { return Verdict::Unpinned };
        match seen.get(name) {
            Some(it) if it.hash == *now && !it.first => Verdict::New,
            Some(it) => verdict(Some(&it.hash), now),
            None => Verdict::New,
        }
    }

    /// What it means that a tool is not what it first was; nothing where it is. [`Seen::look`] tells it once, and this
    /// as often as somebody asks.
    pub fn change(&self, place: &Place, tool: &Tool, now: &ToolHash) -> Option<Change> {
        let seen = self.sources.get(place)?.get(tool.name.as_str());
        match (self.verdict(place, &tool.name, now), seen) {
            (Verdict::Changed { .. }, Some(before)) => Some(before.changed(place, tool, now)),
            (Verdict::New, _) => Some(Change::new_tool(place, tool, *now)),
            _ => None,
        }
    }

    /// Forgets a source, since it was configured anew or somebody accepted what it has become. Its next
    /// list is a first one.
    pub fn forget(&mut self, place: &Place) {
        self.sources.remove(place);
    }
}

impl SeenTool {
    fn new(tool: Option<&Arc<Tool>>, hash: &ToolHash, first: bool) -> Self {
        Self { tool: tool.cloned(), hash: *hash, first, told: *hash }
    }

    fn look(&mut self, place: &Place, tool: &Tool, hash: &ToolHash) -> Option<Change> {
        if self.told == *hash {
            return None;
        }
        self.told = *hash;
        // Back to what it was: nothing to tell.
        if self.hash == *hash {
            return None;
        }
        Some(self.changed(place, tool, hash))
    }

    fn changed(&self, place: &Place, tool: &Tool, hash: &ToolHash) -> Change {
        let before = match &self.tool {
            Some(before) => ToolPin::new(before),
            None => ToolPin { hash: self.hash, definition: None },
        };
        Change::changed_tool(place, &before, tool, *hash)
    }
}

impl Pins {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Warn => "warn",
            Self::Hold => "hold",
        }
    }
}

impl fmt::Display for Pins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a word says nothing about pins.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("pins are `off`, `warn` or `hold`")]
pub struct UnknownPins;

impl FromStr for Pins {
    type Err = UnknownPins;

    fn from_str(word: &str) -> Result<Self, UnknownPins> {
        let all = [Self::Off, Self::Warn, Self::Hold];
        all.into_iter().find(|it| it.as_str() == word).ok_or(UnknownPins)
    }
}
