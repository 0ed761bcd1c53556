//! What differs between a lock and what is there now.

use std::{fmt, sync::Arc};

use hashbrown::HashSet;
use serde::Serialize;

use super::{
    Lock, Meaning, Place, SourcePins, ToolHash, ToolPin, Way, Weight,
    canonical::{self, Node},
    hash, meaning, quoted, shortened,
};
use crate::{Problem, Tool};

/// A source as it is now.
#[derive(Debug, Clone)]
pub struct Now<'a> {
    /// Which one.
    pub place: Place,
    /// How it is started or reached, where that is pinned too.
    pub way: Option<Way>,
    /// Its tools; none while it cannot be asked, which says nothing about them.
    pub tools: Option<&'a [Arc<Tool>]>,
}

/// One thing that is not as it was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Change {
    /// The source.
    #[serde(rename = "source")]
    pub place: Place,
    /// The tool, by the name its source gives it; none where it is about the source.
    pub tool: Option<String>,
    /// What happened to it.
    pub kind: ChangeKind,
    /// The hash of what was accepted.
    pub before: Option<ToolHash>,
    /// The hash of what is there now.
    pub now: Option<ToolHash>,
    /// What it means, the gravest first.
    pub meanings: Vec<Meaning>,
}

/// What happened to a tool or a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ChangeKind {
    /// A pinned source has a tool that was not accepted.
    NewTool,
    /// A tool is what it was not.
    ChangedTool,
    /// A tool is no longer there.
    GoneTool,
    /// A source is started or reached in another way.
    ChangedWay,
    /// A source is there that the lock says nothing of; its tools are not looked at.
    Unpinned,
    /// A source is no longer there.
    GoneSource,
}

/// What differs between `lock` and `now`, sorted by source and tool.
///
/// ```
/// use std::{fmt, sync::Arc};
/// use toolcrib_catalogue::{Json, Origin, Tool, lock::{Lock, Now, Place, compare}};
///
/// let tool = |text: &'static str| Arc::new(Tool::read(Json::parse(text).unwrap()).unwrap());
/// let mail = Place::of(&Origin::Upstream("mail".to_owned()));
/// let mut lock = Lock::default();
/// lock.pin(mail.clone(), None, [&*tool(r#"{"name":"send","inputSchema":{}}"#)]);
///
/// let now = [tool(r#"{"name":"send","inputSchema":{"properties":{"bcc":{"type":"string"}}}}"#)];
/// let changes = compare(&lock, &[Now { place: mail, way: None, tools: Some(&now) }]);
/// assert_eq!(changes[0].to_string(), "server mail: tool `send` changed: new optional argument `bcc` (string)");
/// ```
pub fn compare(lock: &Lock, now: &[Now<'_>]) -> Vec<Change> {
    let mut changes = Vec::new();
    let mut there = HashSet::new();
    for source in now {
        there.insert(&source.place);
        match lock.source(&source.place) {
            Some(pins) => compare_source(pins, source, &mut changes),
            None => {
                let meaning = Meaning::new(Weight::Power, "nothing of it is pinned");
                changes.push(Change::of_source(&source.place, ChangeKind::Unpinned, meaning));
            }
        }
    }
    for (place, _) in lock.sources().filter(|(place, _)| !there.contains(place)) {
        let meaning = Meaning::new(Weight::Harmless, "the source is no longer there");
        changes.push(Change::of_source(place, ChangeKind::GoneSource, meaning));
    }
    changes.sort_by(|a, b| (&a.place, &a.tool).cmp(&(&b.place, &b.tool)));
    changes
}

fn compare_source(pins: &SourcePins, now: &Now<'_>, changes: &mut Vec<Change>) {
    if let (Some(before), Some(way)) = (&pins.way, &now.way)
        && before != way
    {
        changes.push(Change {
            before: Some(before.hash()),
            now: Some(way.hash()),
            meanings: meaning::of_ways(before, way),
            ..Change::bare(&now.place, None, ChangeKind::ChangedWay)
        });
    }
    let Some(tools) = now.tools else { return };
    let mut there = HashSet::new();
    for tool in tools {
        let first = there.insert(tool.name.as_str());
        let hash = hash(tool);
        match pins.tools.get(&tool.name) {
            Some(pin) if pin.hash == hash => {}
            Some(pin) => changes.push(Change::changed_tool(&now.place, pin, tool, hash)),
            None if first => changes.push(Change::new_tool(&now.place, tool, hash)),
            None => {}
        }
    }
    for (name, pin) in pins.tools.iter().filter(|(name, _)| !there.contains(name.as_str())) {
        changes.push(Change {
            before: Some(pin.hash),
            meanings: vec![Meaning::new(Weight::Harmless, "the tool is gone")],
            ..Change::bare(&now.place, Some(name), ChangeKind::GoneTool)
        });
    }
}

impl Change {
    /// The gravest of what it means.
    pub fn weight(&self) -> Weight {
        self.meanings.iter().map(|it| it.weight).max().unwrap_or(Weight::Power)
    }

    /// The change as a problem, with what to do about it.
    pub fn problem(&self) -> Problem {
        let cure = match self.kind {
            ChangeKind::Unpinned => "pin it with `toolcrib lock`",
            _ => "if that is what you want, accept it with `toolcrib lock`",
        };
        Problem::new(self.subject(), self.message()).hint(cure)
    }

    fn subject(&self) -> String {
        shortened(&self.place.origin().subject(), 100).to_string()
    }

    fn message(&self) -> String {
        let name = self.tool.as_deref().map(|it| quoted(it, 100)).unwrap_or_default();
        let what = match self.kind {
            ChangeKind::NewTool => format!("tool {name} is new"),
            ChangeKind::ChangedTool => format!("tool {name} changed"),
            ChangeKind::GoneTool => return format!("tool {name} is gone"),
            ChangeKind::ChangedWay => "it is started or reached in another way".to_owned(),
            ChangeKind::Unpinned => return "it is not in toolcrib.lock".to_owned(),
            ChangeKind::GoneSource => return "it is no longer there".to_owned(),
        };
        let meanings: Vec<&str> = self.meanings.iter().map(|it| it.text.as_str()).collect();
        format!("{what}: {}", meanings.join("; "))
    }

    fn bare(place: &Place, tool: Option<&str>, kind: ChangeKind) -> Self {
        let tool = tool.map(str::to_owned);
        Self { place: place.clone(), tool, kind, before: None, now: None, meanings: Vec::new() }
    }

    fn of_source(place: &Place, kind: ChangeKind, meaning: Meaning) -> Self {
        Self { meanings: vec![meaning], ..Self::bare(place, None, kind) }
    }

    pub(super) fn new_tool(place: &Place, tool: &Tool, now: ToolHash) -> Self {
        let definition = canonical::definition(tool);
        let node = definition.as_deref().and_then(Node::read);
        Self {
            now: Some(now),
            meanings: meaning::of_new(node.as_ref()),
            ..Self::bare(place, Some(&tool.name), ChangeKind::NewTool)
        }
    }

    pub(super) fn changed_tool(place: &Place, pin: &ToolPin, tool: &Tool, now: ToolHash) -> Self {
        Self {
            before: Some(pin.hash),
            now: Some(now),
            meanings: meaning::meanings(pin, tool),
            ..Self::bare(place, Some(&tool.name), ChangeKind::ChangedTool)
        }
    }
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject(), self.message())
    }
}
