//! Which files there are, and what stands in them: never more than bounds allow, never outside of the
//! workspace.

use std::{
    collections::{BTreeSet, HashMap},
    fs,
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use serde_json::Value;
use toolcrib_catalogue::Problem;

use super::text::{self, Language, TextFault};

/// The folder, in a workspace.
pub(super) const FOLDER: &str = "events";

/// How many documents are looked at, and how much of them.
const DOCUMENTS: usize = 2000;
const DOCUMENT_BYTES: u64 = 64 << 20;

/// The largest file.
const LARGEST: u64 = 4 << 20;

/// How many other files documents may refer to, and how much may stand in them together.
const OTHERS: usize = 64;
const MISSED: usize = 256;
const OTHER_BYTES: u64 = 16 << 20;
const OTHER_NODES: usize = 500_000;

/// What tells one version of a file from another.
type Seen = (Option<SystemTime>, u64, u64, i64);

/// What tells whether anything that was read has changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fingerprint(Vec<(PathBuf, Seen)>);

/// What a workspace's documents look like now, without reading them: those in `events/`, and the files they
/// were found to refer to ([`super::Loaded::referenced`]).
pub fn fingerprint(workspace: &Path, referenced: &[PathBuf]) -> Fingerprint {
    let entries = fs::read_dir(workspace.join(FOLDER)).into_iter().flatten().flatten();
    let documents = entries.map(|it| it.path()).filter(|it| language(it).is_some());
    let others = referenced.iter().map(|it| workspace.join(it));
    let mut seen: Vec<(PathBuf, Seen)> =
        documents.take(2 * DOCUMENTS).chain(others).map(|it| (it.clone(), seen(&it))).collect();
    seen.sort();
    Fingerprint(seen)
}

/// A file that was put in the place of another may have its time and length, and is another all the same.
fn seen(path: &Path) -> Seen {
    let Ok(about) = fs::metadata(path) else { return Seen::default() };
    let changed = about.ctime().wrapping_mul(1_000_000_000).wrapping_add(about.ctime_nsec());
    (about.modified().ok(), about.len(), about.ino(), changed)
}

/// The language of a document in `events/`, by its name; none where it is no document.
fn language(path: &Path) -> Option<Language> {
    let name = path.file_name()?.to_string_lossy();
    let (stem, extension) = name.rsplit_once('.')?;
    if stem.is_empty() || name.starts_with(['_', '.']) {
        return None;
    }
    by_extension(extension)
}

fn by_extension(extension: &str) -> Option<Language> {
    match extension {
        "yaml" | "yml" => Some(Language::Yaml),
        "json" => Some(Language::Json),
        _ => None,
    }
}

/// A file that was read.
#[derive(Debug)]
pub(super) struct Tree {
    /// `events/a.yaml`.
    pub(super) shown: String,
    /// Where it really is.
    path: PathBuf,
    pub(super) value: Value,
    /// The other files it refers to, as written.
    pub(super) outward: Vec<String>,
}

/// The documents in `events/`, in the order of their names, and what is wrong with the folder.
pub(super) fn documents(workspace: &Path) -> (Vec<PathBuf>, Vec<Problem>) {
    let folder = workspace.join(FOLDER);
    let mut problems = Vec::new();
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return (Vec::new(), problems);
        }
        Err(error) => {
            let problem = Problem::new(FOLDER, error.to_string());
            problems.push(problem.hint("event tools are the operations in events/*.yaml"));
            return (Vec::new(), problems);
        }
    };
    let mut paths: Vec<PathBuf> = entries
        .flatten()
        .map(|it| it.path())
        .filter(|it| language(it).is_some() && !it.is_dir())
        .collect();
    paths.sort();
    if DOCUMENTS < paths.len() {
        let message = format!("it has more than {DOCUMENTS} files; the rest is left out");
        problems.push(Problem::new(FOLDER, message));
        paths.truncate(DOCUMENTS);
    }
    (paths, problems)
}

/// All files that a load reads.
#[derive(Debug)]
pub(super) struct Files {
    root: PathBuf,
    document_bytes: u64,
    other_bytes: u64,
    other_nodes: usize,
    others: HashMap<PathBuf, Result<Arc<Tree>, String>>,
    /// Files that were asked for, there or not, from the workspace on.
    pub(super) referenced: BTreeSet<PathBuf>,
}

impl Files {
    pub(super) fn new(workspace: &Path) -> Self {
        Self {
            root: workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned()),
            document_bytes: DOCUMENT_BYTES,
            other_bytes: OTHER_BYTES,
            other_nodes: OTHER_NODES,
            others: HashMap::new(),
            referenced: BTreeSet::new(),
        }
    }

    /// Reads a document of `events/`.
    pub(super) fn document(&mut self, path: &Path) -> Result<Tree, TextFault> {
        let plain = |cause: String| TextFault { place: None, cause };
        let name = path.file_name().and_then(|it| it.to_str());
        let name = name.ok_or_else(|| plain("its name is not UTF-8".to_owned()))?;
        let path = self.inside(path).map_err(plain)?;
        let bytes = bytes(&path, self.document_bytes).map_err(plain)?;
        self.document_bytes -= bytes.len() as u64;
        let language = language(Path::new(name)).unwrap_or(Language::Yaml);
        let (value, _) = text::read(&bytes, language, text::NODES)?;
        Ok(Tree { shown: format!("{FOLDER}/{name}"), path, outward: outward(&value), value })
    }

    /// The file that a reference in another one names.
    pub(super) fn other(&mut self, from: &Tree, target: &str) -> Result<Arc<Tree>, String> {
        if has_scheme(target) {
            return Err("only files of the workspace are read, nothing from a network".to_owned());
        }
        let target = unescape(target).ok_or("its escapes are not UTF-8")?;
        if target.contains('\0') {
            return Err("its path holds a NUL".to_owned());
        }
        let beside = from.path.parent().unwrap_or(&self.root).join(&target);
        let plain = lexical(&beside);
        if let Ok(within) = plain.strip_prefix(&self.root) {
            if MISSED < self.referenced.len() && !self.referenced.contains(within) {
                return Err(TOO_MANY.to_owned());
            }
            self.referenced.insert(within.to_owned());
        }
        let path = self.inside(&beside)?;
        if let Some(known) = self.others.get(&path) {
            return known.clone();
        }
        if OTHERS <= self.others.len() {
            return Err(TOO_MANY.to_owned());
        }
        let tree = self.read_other(&path).map(Arc::new);
        self.others.insert(path, tree.clone());
        tree
    }

    fn read_other(&mut self, path: &Path) -> Result<Tree, String> {
        let bytes = bytes(path, self.other_bytes)?;
        self.other_bytes -= bytes.len() as u64;
        let extension = path.extension().unwrap_or_default().to_string_lossy();
        let language = by_extension(&extension).unwrap_or(Language::Yaml);
        let nodes = text::NODES.min(self.other_nodes);
        let (value, used) =
            text::read(&bytes, language, nodes).map_err(|fault| match fault.place {
                Some((line, column)) => format!("{line}:{column}: {}", fault.cause),
                None => fault.cause,
            })?;
        self.other_nodes -= used;
        let shown = path.strip_prefix(&self.root).unwrap_or(path).to_string_lossy().into_owned();
        Ok(Tree { shown, path: path.to_owned(), outward: outward(&value), value })
    }

    /// Where a file really is, which must be in the workspace.
    fn inside(&self, path: &Path) -> Result<PathBuf, String> {
        match path.canonicalize() {
            Ok(it) if it.starts_with(&self.root) => Ok(it),
            // Whether there is a file out there is nobody's business.
            _ if !lexical(path).starts_with(&self.root) => Err(OUTSIDE.to_owned()),
            Ok(_) => Err(OUTSIDE.to_owned()),
            Err(error) => Err(cause(&error)),
        }
    }
}

const OUTSIDE: &str = "it is outside of the workspace";
const TOO_MANY: &str = "the documents refer to too many other files";

/// What stands in a file, if that is not too much.
fn bytes(path: &Path, left: u64) -> Result<Vec<u8>, String> {
    let about = fs::metadata(path).map_err(|error| cause(&error))?;
    if !about.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if LARGEST < about.len() {
        return Err(format!("it is larger than {} MB", LARGEST >> 20));
    }
    if left < about.len() {
        return Err("together with the files before it, it is too large".to_owned());
    }
    let file = fs::File::open(path).map_err(|error| cause(&error))?;
    let mut bytes = Vec::new();
    // It may grow while it is read.
    file.take(about.len()).read_to_end(&mut bytes).map_err(|error| cause(&error))?;
    Ok(bytes)
}

fn cause(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
        _ => error.to_string(),
    }
}

/// A path without `.` and `..`, whatever links there are.
fn lexical(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                plain.pop();
            }
            std::path::Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}

/// Whether this is an address rather than a path: `https://…`, `//…`, `file:…`.
fn has_scheme(target: &str) -> bool {
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    target.starts_with("//")
        || scheme.is_some_and(|it| {
            it.starts_with(|c: char| c.is_ascii_alphabetic())
                && it.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
        })
}

/// Text with `%20` and the like undone; none where that is no UTF-8.
pub(super) fn unescape(text: &str) -> Option<String> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let hex = |at: usize| more.get(at).and_then(|it| char::from(*it).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                plain.push(u8::try_from(high * 16 + low).ok()?);
                rest = &more[2..];
            }
            _ => {
                plain.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8(plain).ok()
}

/// The other files that a tree refers to.
fn outward(tree: &Value) -> Vec<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![tree];
    while let Some(it) = open.pop() {
        match it {
            Value::Array(list) => open.extend(list),
            Value::Object(map) => {
                open.extend(map.values());
                if let Some(Value::String(target)) = map.get("$ref") {
                    let file = target.split('#').next().unwrap_or_default();
                    if !file.is_empty() {
                        found.insert(file.to_owned());
                    }
                }
            }
            _ => {}
        }
    }
    found.into_iter().collect()
}
