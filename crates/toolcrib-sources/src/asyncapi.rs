//! Event tools: the operations in `events/` that say `x-agent-tool: { enabled: true }`.
//!
//! AsyncAPI 3.0 and 3.1, in YAML or JSON. [`load`] reads files and nothing else: no network, no bus, nothing
//! outside of the workspace. What is broken is skipped alone, an operation before its file, and told. A tool
//! knows how the arguments of a call become an event ([`EventTool::emission`]); who sends it on is not
//! decided here.

mod text;
mod files;
mod references;
mod address;
mod parameters;
mod schema;
mod messages;
mod arguments;
mod operation;
mod official;
mod emission;
mod port;
mod watching;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use toolcrib_catalogue::{Json, Problem};

use self::{
    address::Address,
    arguments::Arguments,
    files::{FOLDER, Files, Tree},
    official::Version,
    operation::{Teller, tool},
    references::{Documents, Place, shorten},
};

pub use files::{Fingerprint, fingerprint};
pub use port::EventSource;

/// How many operations of one document are looked at.
const OPERATIONS: usize = 10_000;

/// How many tools there may be in all.
const TOOLS: usize = 10_000;

/// How much text the schemas of all tools may have.
const SCHEMAS: usize = 16 << 20;

/// How many problems of one file are told.
const TOLD: usize = 100;

/// What the documents in `events/` say.
#[derive(Debug, Default)]
pub struct Loaded {
    /// The tools, by file and then as they stand there. Two may have one name.
    pub tools: Vec<Arc<EventTool>>,
    /// What is wrong.
    pub problems: Vec<Problem>,
    /// Files of which nothing can be said, from the workspace on.
    pub broken: Vec<PathBuf>,
    /// Files that are not in `events/` and matter all the same, from the workspace on.
    pub referenced: Vec<PathBuf>,
}

/// An operation that agents can call.
#[derive(Debug)]
pub struct EventTool {
    /// What it is called.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The schema of its arguments: always of type `object`, with nothing left to look up elsewhere.
    pub input_schema: Value,
    /// The address of its channel, as written: `user.{userId}.signup`.
    pub address: String,
    /// The operation's id.
    pub operation: String,
    /// Where it stands: `events/a.yaml`.
    pub file: PathBuf,
    /// What comes back, if anything does.
    pub reply: Option<Reply>,
    template: Address,
    arguments: Arguments,
}

/// What an operation is answered with.
#[derive(Debug)]
pub struct Reply {
    /// The address of its channel; none where only the request knows it.
    pub address: Option<String>,
    /// The schema of its payload, where that is an object.
    pub schema: Option<Value>,
    /// How long to wait for it; without that, nobody does.
    pub wait: Option<Duration>,
    template: Option<Address>,
}

/// An event that a call stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emission {
    /// What it is called: the address with its blanks filled.
    pub name: String,
    /// Its payload, as the caller wrote it.
    pub data: Json,
    /// Its headers, likewise.
    pub headers: Option<Json>,
}

impl EventTool {
    /// The event that a call with these arguments stands for. The error names every fault with its place, so
    /// that whoever called can do better.
    pub fn emission(&self, arguments: &Json) -> Result<Emission, String> {
        emission::emission(&self.template, &self.arguments, arguments)
    }

    /// The names its events can have, as a pattern: `*` stands for each parameter.
    pub fn pattern(&self) -> String {
        self.template.pattern()
    }
}

impl Reply {
    /// The names its events can have, as a pattern; none where only the request knows them.
    pub fn pattern(&self) -> Option<String> {
        self.template.as_ref().map(Address::pattern)
    }
}

/// How closely documents are looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Care {
    /// As far as tools are made of them.
    Tools,
    /// And held against the official schemas of AsyncAPI, which takes a while to begin with.
    Official,
}

/// Reads the documents of a workspace, and holds them against the official schemas. Takes its time: it is not
/// for where others wait.
pub fn load(workspace: &Path) -> Loaded {
    load_with(workspace, Care::Official)
}

/// Reads the documents of a workspace.
pub fn load_with(workspace: &Path, care: Care) -> Loaded {
    let (paths, problems) = files::documents(workspace);
    let mut loading = Loading {
        files: Files::new(workspace),
        loaded: Loaded { problems, ..Loaded::default() },
        room: SCHEMAS,
        care,
    };
    for path in paths {
        let before = loading.loaded.problems.len();
        loading.document(&path);
        let problems = &mut loading.loaded.problems;
        let more = problems.len().saturating_sub(before + TOLD);
        if 0 < more {
            problems.truncate(before + TOLD);
            problems.push(Problem::new(shown(&path), format!("and {more} more problems")));
        }
    }
    let referenced = loading.files.referenced.into_iter();
    Loaded { referenced: referenced.collect(), ..loading.loaded }
}

fn shown(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{FOLDER}/{}", shorten(&name))
}

/// What a load has, and how much it may still take.
struct Loading {
    files: Files,
    loaded: Loaded,
    room: usize,
    care: Care,
}

impl Loading {
    fn document(&mut self, path: &Path) {
        let subject = shown(path);
        let mut tree = match self.files.document(path) {
            Ok(tree) => tree,
            Err(fault) => {
                let subject = match fault.place {
                    Some((line, column)) => format!("{subject}:{line}:{column}"),
                    None => subject,
                };
                self.loaded.broken.push(PathBuf::from(shown(path)));
                return self.loaded.problems.push(Problem::new(subject, fault.cause));
            }
        };
        let Some(version) = self.version(&subject, &mut tree) else {
            return self.loaded.broken.push(PathBuf::from(subject));
        };
        let (misfits, more) = match self.care {
            Care::Tools => (Vec::new(), 0),
            Care::Official => official::misfits(version, &tree.value),
        };
        for it in misfits {
            let subject = format!("{subject}: {}", it.place);
            let message = format!("not as AsyncAPI {} has it: {}", version.written(), it.what);
            self.loaded.problems.push(Problem::new(subject.trim_end_matches(": "), message));
        }
        if 0 < more {
            let message = format!("not as AsyncAPI {} has it: {more} more", version.written());
            self.loaded.problems.push(Problem::new(&*subject, message));
        }
        let documents = Documents::gather(tree, &mut self.files);
        self.operations(&subject, &documents);
    }

    /// Which AsyncAPI this is; none where it is none that we know, which is told.
    fn version(&mut self, subject: &str, tree: &mut Tree) -> Option<Version> {
        let problems = &mut self.loaded.problems;
        let mut tell = |place: &str, message: String, hint: Option<&str>| {
            let problem = Problem::new(format!("{subject}{place}"), message);
            problems.push(Problem { hint: hint.map(str::to_owned), ..problem });
        };
        let Some(root) = tree.value.as_object_mut() else {
            let empty = tree.value.is_null();
            let message = if empty { "it is empty" } else { "it must be a mapping" };
            tell("", message.to_owned(), None);
            return None;
        };
        let place = ": asyncapi";
        let quote = "write it in quotes, with all three numbers: \"3.0.0\"";
        let version = match root.get("asyncapi") {
            None => {
                tell(place, "it is missing".to_owned(), Some("write `asyncapi: \"3.0.0\"`"));
                return None;
            }
            Some(Value::String(it)) => known(it),
            Some(Value::Number(it)) => {
                let version = known(&format!("{it}.0"));
                if version.is_some() {
                    tell(place, "it must be text".to_owned(), Some(quote));
                }
                version
            }
            Some(_) => {
                tell(place, "it must be text".to_owned(), Some(quote));
                return None;
            }
        };
        let Some(version) = version else {
            let written = root.get("asyncapi").map(Value::to_string).unwrap_or_default();
            let written = shorten(written.trim_matches('"'));
            let message = format!("`{written}` is none of 3.0 and 3.1");
            tell(place, message, None);
            return None;
        };
        // The official schema knows one text; which third number it is makes no difference.
        root.insert("asyncapi".to_owned(), version.written().into());
        Some(version)
    }

    fn operations(&mut self, subject: &str, documents: &Documents) {
        let Some(place) = documents.root().get("operations").filter(|it| !it.value.is_null())
        else {
            return;
        };
        let place = match documents.follow(place) {
            Ok(place) => place,
            Err(fault) => {
                let subject = format!("{subject}: operations");
                return self.loaded.problems.push(Problem::new(subject, fault));
            }
        };
        let Some(operations) = place.mapping() else {
            let problem = Problem::new(format!("{subject}: operations"), "it must be a mapping");
            return self.loaded.problems.push(problem);
        };
        for (at, (id, value)) in operations.iter().enumerate() {
            if at == OPERATIONS || self.loaded.tools.len() == TOOLS {
                let message = "there are too many; the rest is left out";
                let subject = format!("{subject}: operations");
                return self.loaded.problems.push(Problem::new(subject, message));
            }
            let mut teller = Teller {
                subject: format!("{subject}: operations: {}", shorten(id)),
                problems: &mut self.loaded.problems,
            };
            let place = Place { value, ..place };
            if let Some(tool) = tool(documents, id, place, &mut self.room, &mut teller) {
                self.loaded.tools.push(Arc::new(tool));
            }
        }
    }
}

/// The version that a text names: `3.0.0`, `3.1.2`.
fn known(written: &str) -> Option<Version> {
    let patch = |it: &str| it.starts_with(|c: char| c.is_ascii_digit());
    match (written.strip_prefix("3.0."), written.strip_prefix("3.1.")) {
        (Some(rest), _) if patch(rest) => Some(Version::V3_0),
        (_, Some(rest)) if patch(rest) => Some(Version::V3_1),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
