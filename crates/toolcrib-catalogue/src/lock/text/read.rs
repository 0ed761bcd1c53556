//! Reading a lock file, line by line. What is whole counts; the rest is told.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    UNKEPT, VERSION,
    words::{read_path, words},
};
use crate::{
    Problem,
    lock::{
        Lock, Place, ToolHash, ToolPin, Way,
        canonical::{Ink, Node, push_text},
        shortened,
    },
};

/// A longer file is not read.
const MAX_BYTES: usize = 128 * 1024 * 1024;
/// A longer line is damaged.
const MAX_LINE: usize = 2 * 1024 * 1024;
/// How many problems are told one by one.
const MAX_TOLD: usize = 50;

pub(in crate::lock) fn read(text: &str) -> (Lock, Vec<Problem>) {
    let mut reader = Reader::default();
    if text.len() > MAX_BYTES {
        reader.lock.torn = true;
        let problem = Problem::new("toolcrib.lock", format!("it is larger than {MAX_BYTES} bytes"));
        return (reader.lock, vec![problem.hint("write it anew with `toolcrib lock`")]);
    }
    for (number, line) in text.trim_start_matches('\u{feff}').split('\n').enumerate() {
        reader.number = number + 1;
        reader.line(line.strip_suffix('\r').unwrap_or(line));
        if reader.stage == Stage::Foreign {
            break;
        }
    }
    reader.finish()
}

/// A head line and what stands below it.
struct Entry {
    head: Head,
    number: usize,
    facts: Facts,
    damage: Option<String>,
}

enum Head {
    Source(Place, Option<ToolHash>),
    Tool(Place, String, ToolHash, Kept),
    /// Something that cannot be read.
    Unknown,
}

/// Whether the definition of a tool stands below its line.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

/// Facts as they are gathered, by path.
#[derive(Default)]
struct Facts {
    root: BTreeMap<String, Fact>,
    last: Vec<String>,
}

enum Fact {
    Text(String),
    /// In canonical form.
    Other(String),
    Members(BTreeMap<String, Self>),
}

#[derive(Default)]
struct Reader {
    lock: Lock,
    /// What stands twice with different hashes, and so pins nothing: a source, or a tool of it.
    disputed: BTreeSet<(Place, Option<String>)>,
    problems: Vec<Problem>,
    untold: usize,
    number: usize,
    /// The source whose lines are being read.
    place: Option<Place>,
    entry: Option<Entry>,
    stage: Stage,
    /// Whether the line stands in a merge conflict.
    conflict: bool,
}

/// How far the file has been read.
#[derive(Default, PartialEq, Eq)]
enum Stage {
    /// No version was seen.
    #[default]
    Begun,
    Versioned,
    Ended,
    /// It is of another version.
    Foreign,
}

impl Reader {
    fn line(&mut self, line: &str) {
        if self.marker(line) {
            return;
        }
        if line.trim().is_empty() || (line.starts_with('#') && self.stage == Stage::Begun) {
            return;
        }
        if line.len() > MAX_LINE {
            if !line.starts_with([' ', '\t']) {
                self.close();
            }
            self.damage("the line is too long");
        } else if line.starts_with([' ', '\t']) {
            self.fact(line.trim());
        } else {
            self.close();
            self.head(line);
        }
    }

    /// Whether it is what git leaves where two versions met. Entries that touch such a part count for
    /// nothing: nobody has said which side was accepted.
    fn marker(&mut self, line: &str) -> bool {
        let begins = line.starts_with("<<<<<<<");
        let ends = line.starts_with(">>>>>>>");
        let is_marker =
            begins || ends || line.starts_with("=======") || line.starts_with("|||||||");
        if !is_marker {
            return false;
        }
        if let Some(entry) = &mut self.entry {
            entry.damage.get_or_insert_with(|| "a merge conflict runs through it".to_owned());
        }
        if begins {
            self.lock.torn = true;
            let cure = "settle it, or take one side and run `toolcrib lock`";
            self.tell("a merge conflict is not settled", Some(cure));
        }
        self.conflict = !ends;
        true
    }

    /// The entry that is open is damaged, or the line stands for itself.
    fn damage(&mut self, why: &str) {
        match &mut self.entry {
            Some(entry) => {
                entry.damage.get_or_insert_with(|| format!("line {}: {why}", self.number));
            }
            None => {
                self.lock.torn = true;
                self.tell(why, None);
            }
        }
    }

    fn head(&mut self, line: &str) {
        let (words, readable) = words(line);
        let words: Vec<&str> = words.iter().map(|it| &**it).collect();
        match words[..] {
            ["version", version] if readable => return self.version(version),
            ["end"] if readable && !self.conflict => {
                if self.stage == Stage::Versioned {
                    self.stage = Stage::Ended;
                }
                return;
            }
            // A damaged line that still tells whose it is keeps that source pinned.
            ["source", place, ..] => {
                self.place = Place::read(place);
                if let Some(place) = &self.place {
                    self.lock.sources.entry(place.clone()).or_default();
                }
            }
            _ => {}
        }
        let head = read_head(&words).filter(|_| readable);
        let belongs = match &head {
            Some(Head::Source(..)) => true,
            Some(Head::Tool(place, ..)) => self.place.as_ref() == Some(place),
            Some(Head::Unknown) | None => {
                matches!(words[..], ["source" | "tool", ..]) && self.place.is_some()
            }
        };
        // It may have pinned any source.
        self.lock.torn |= !belongs;
        let mut damage = self.conflict.then(|| "it stands in a merge conflict".to_owned());
        if head.is_none() {
            damage = Some("this line cannot be read".to_owned());
        } else if !belongs {
            damage = Some("it does not stand below the line of its source".to_owned());
        }
        let head = head.unwrap_or(Head::Unknown);
        self.entry = Some(Entry { head, number: self.number, facts: Facts::default(), damage });
    }

    fn version(&mut self, version: &str) {
        self.stage = Stage::Versioned;
        if version != VERSION {
            self.lock.torn = true;
            self.stage = Stage::Foreign;
            let message =
                format!("version `{}` is not one that is known here", shortened(version, 20));
            self.tell(&message, Some("use the toolcrib that wrote it, or run `toolcrib lock`"));
        }
    }

    fn fact(&mut self, line: &str) {
        let Some(entry) = &mut self.entry else {
            self.damage("an indented line needs a line above it that it belongs to");
            return;
        };
        let done = read_path(line).and_then(|(path, value)| entry.facts.add(path, value));
        if done.is_none() {
            self.damage("this fact cannot be read, or contradicts another");
        }
    }

    /// Takes the entry that was open, if it is whole.
    fn close(&mut self) {
        let Some(entry) = self.entry.take() else { return };
        let number = std::mem::replace(&mut self.number, entry.number);
        let damage = match entry.damage {
            Some(damage) => Some(damage),
            None => self.take(entry.head, entry.facts),
        };
        if let Some(damage) = damage {
            let cure = "look at the file's history; `toolcrib lock` writes it anew";
            self.tell(&format!("this entry is damaged and pins nothing: {damage}"), Some(cure));
        }
        self.number = number;
    }

    /// Puts an entry into the lock, or says what is wrong with it.
    fn take(&mut self, head: Head, mut facts: Facts) -> Option<String> {
        match head {
            Head::Unknown => None,
            Head::Source(_, None) if facts.root.is_empty() => None,
            Head::Source(_, None) => Some("there are facts, and no hash".to_owned()),
            Head::Source(place, Some(hash)) => {
                let way = Way::read(&facts.canonical()).filter(|it| it.hash() == hash);
                match way {
                    Some(way) => self.take_way(place, way),
                    None => Some(MISMATCH.to_owned()),
                }
            }
            Head::Tool(place, name, hash, Kept::No) if facts.root.is_empty() => {
                self.take_tool(place, name, ToolPin { hash, definition: None })
            }
            Head::Tool(place, name, hash, kept) => {
                let before = facts.root.insert("name".to_owned(), Fact::Text(name.clone()));
                let definition = facts.canonical();
                if before.is_some() || kept == Kept::No || ToolHash::of(&definition) != hash {
                    return Some(MISMATCH.to_owned());
                }
                self.take_tool(place, name, ToolPin { hash, definition: Some(definition.into()) })
            }
        }
    }

    fn take_way(&mut self, place: Place, way: Way) -> Option<String> {
        let pins = self.lock.sources.entry(place.clone()).or_default();
        if pins.way.as_ref().is_some_and(|before| *before != way) {
            pins.way = None;
            self.disputed.insert((place.clone(), None));
        }
        if self.disputed.contains(&(place, None)) {
            return Some("the source stands there with different hashes; none counts".to_owned());
        }
        pins.way = Some(way);
        None
    }

    fn take_tool(&mut self, place: Place, name: String, pin: ToolPin) -> Option<String> {
        let pins = self.lock.sources.entry(place.clone()).or_default();
        let before = pins.tools.get(&name).map(|it| it.hash);
        let key = (place, Some(name.clone()));
        if before.is_some_and(|it| it != pin.hash) {
            pins.tools.remove(&name);
            self.disputed.insert(key.clone());
        }
        if self.disputed.contains(&key) {
            return Some("the tool stands there with different hashes; none counts".to_owned());
        }
        pins.tools.insert(name, pin);
        if before.is_some() {
            self.tell("the tool stands twice; once will do", None);
        }
        None
    }

    fn tell(&mut self, message: &str, cure: Option<&str>) {
        if self.problems.len() == MAX_TOLD {
            self.untold += 1;
            return;
        }
        let problem = Problem::new(format!("toolcrib.lock:{}", self.number), message);
        self.problems.push(match cure {
            Some(cure) => problem.hint(cure),
            None => problem,
        });
    }

    fn finish(mut self) -> (Lock, Vec<Problem>) {
        self.close();
        let missing = match self.stage {
            Stage::Begun => Some("there is no line `version 1`"),
            Stage::Versioned => Some("the file ends early: there is no line `end`"),
            Stage::Ended | Stage::Foreign => None,
        };
        if let Some(missing) = missing {
            self.lock.torn = true;
            self.tell(
                missing,
                Some("take it from git again, or write it anew with `toolcrib lock`"),
            );
        }
        if self.untold > 0 {
            let message = format!("and {} more problems", self.untold);
            self.problems.push(Problem::new("toolcrib.lock", message));
        }
        (self.lock, self.problems)
    }
}

/// What a head line says.
fn read_head(words: &[&str]) -> Option<Head> {
    Some(match *words {
        ["source", place] => Head::Source(Place::read(place)?, None),
        ["source", place, hash] => Head::Source(Place::read(place)?, Some(ToolHash::read(hash)?)),
        ["tool", place, name, hash] => {
            Head::Tool(Place::read(place)?, name.to_owned(), ToolHash::read(hash)?, Kept::Yes)
        }
        ["tool", place, name, hash, UNKEPT] => {
            Head::Tool(Place::read(place)?, name.to_owned(), ToolHash::read(hash)?, Kept::No)
        }
        _ => return None,
    })
}

const MISMATCH: &str = "what stands below the line does not have its hash";

impl Facts {
    /// Adds a fact; none where there is one already.
    fn add(&mut self, path: Vec<String>, value: &str) -> Option<()> {
        let value = Node::read(value)?;
        let again = path == self.last;
        let (key, folders) = path.split_last()?;
        let mut members = &mut self.root;
        for folder in folders {
            let fact = members.entry(folder.clone());
            let fact = fact.or_insert_with(|| Fact::Members(BTreeMap::new()));
            let Fact::Members(inner) = fact else { return None };
            members = inner;
        }
        match (members.get_mut(key), value) {
            (None, Node::Text(text)) => {
                members.insert(key.clone(), Fact::Text(text.into_owned()));
            }
            (None, other) => {
                members.insert(key.clone(), Fact::Other(other.written(Ink::Canonical)));
            }
            (Some(Fact::Text(before)), Node::Text(text)) if again => before.push_str(&text),
            _ => return None,
        }
        self.last = path;
        Some(())
    }

    fn canonical(&self) -> String {
        let mut out = String::new();
        push_members(&mut out, &self.root);
        out
    }
}

fn push_members(out: &mut String, members: &BTreeMap<String, Fact>) {
    out.push('{');
    for (place, (key, fact)) in members.iter().enumerate() {
        if place > 0 {
            out.push(',');
        }
        push_text(out, key, Ink::Canonical);
        out.push(':');
        match fact {
            Fact::Text(text) => push_text(out, text, Ink::Canonical),
            Fact::Other(text) => out.push_str(text),
            Fact::Members(members) => push_members(out, members),
        }
    }
    out.push('}');
}
