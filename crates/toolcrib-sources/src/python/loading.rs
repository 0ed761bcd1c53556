//! Which files there are, and what tools are in them.
//!
//! A first process loads all of them and tells of each. One that takes it down, or keeps it busy for too
//! long, is left out, and the rest is loaded again.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tokio::time::timeout;
use toolcrib_catalogue::{Json, Problem, Tool, Validator};
use toolcrib_wire::text::Masker;

use super::{
    ModSettings, Sandbox, SchemaMode, Settings,
    call::mask_values,
    frames::{Said, Words, read},
    generation::Served,
    process::Starting,
    worker::Worker,
};

/// How long one file may take.
const ONE_FILE: Duration = Duration::from_secs(10);

/// How many files may take a process down before we give up.
const LEFT_OUT: usize = 64;

/// How many files are looked at.
const FILES: usize = 2000;

/// The largest file that is read.
const LARGEST: u64 = 1024 * 1024;

/// What the names of servers' tools begin with.
const SERVERS: &str = "mcp__";

/// The largest frame that tells of a file.
const LARGEST_FRAME: usize = 64 * 1024 * 1024;

/// A file with tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Written {
    /// `tools/search.py`.
    pub(super) file: String,
    pub(super) path: PathBuf,
    /// What stands in it; nothing where that is no UTF-8.
    pub(super) text: Option<String>,
    /// What is run instead: its last good version.
    pub(super) instead: Option<String>,
    /// When it was written, and how long it was.
    pub(super) seen: Seen,
}

/// What tells one version of a file from another.
pub(super) type Seen = (Option<SystemTime>, u64, u64, i64);

pub(super) fn seen(path: &Path) -> Seen {
    fs::metadata(path).map(|it| seen_by(&it)).unwrap_or_default()
}

/// A file that was put in the place of another may have its time and length, and is another all the same.
fn seen_by(about: &fs::Metadata) -> Seen {
    let changed = about.ctime().wrapping_mul(1_000_000_000).wrapping_add(about.ctime_nsec());
    (about.modified().ok(), about.len(), about.ino(), changed)
}

/// What a load brought.
#[derive(Debug, Default)]
pub(super) struct Loaded {
    pub(super) tools: Vec<LoadedTool>,
    pub(super) problems: Vec<Problem>,
    /// Files that gave nothing.
    pub(super) failed: Vec<String>,
    /// The process that loaded them.
    pub(super) worker: Option<Worker>,
    pub(super) python: String,
}

/// A tool, and where it was found.
#[derive(Debug, Clone)]
pub(super) struct LoadedTool {
    /// `tools/search.py`, or the name of a mod.
    pub(super) file: String,
    pub(super) tool: Arc<Tool>,
    pub(super) served: Served,
}

/// The files of `tools/`, in the order of their names, and what is wrong with them.
pub(super) fn files(workspace: &Path) -> (Vec<Written>, Vec<Problem>) {
    let folder = workspace.join("tools");
    let (mut files, mut problems) = (Vec::new(), Vec::new());
    match fs::metadata(&folder) {
        Err(_) => return (files, problems),
        Ok(about) if !about.is_dir() => {
            let problem = Problem::new("tools", "it is not a folder");
            problems.push(problem.hint("tools are the functions in tools/*.py"));
            return (files, problems);
        }
        Ok(_) => {}
    }
    let entries = match fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) => {
            problems.push(Problem::new("tools", error.to_string()));
            return (files, problems);
        }
    };
    let mut paths: Vec<PathBuf> =
        entries.flatten().map(|it| it.path()).filter(|it| is_tools(it)).collect();
    paths.sort();
    if FILES < paths.len() {
        let message = format!("it has more than {FILES} files; the rest is left out");
        problems.push(Problem::new("tools", message));
        paths.truncate(FILES);
    }
    for path in paths {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let file = format!("tools/{name}");
        if path.to_str().is_none() {
            let problem = Problem::new(file, "its path is not UTF-8");
            problems.push(problem.hint("give it another name"));
            continue;
        }
        if is_outside(&path, &folder, workspace) {
            problems.push(Problem::new(file, "it is outside of the workspace"));
            continue;
        }
        let about = fs::metadata(&path);
        if about.as_ref().is_ok_and(|it| LARGEST < it.len()) {
            problems.push(Problem::new(file, "it is larger than 1 MB"));
            continue;
        }
        // Looked at before it is read: what changes in between shows as changed.
        let seen = seen(&path);
        match fs::read(&path) {
            Ok(bytes) => {
                let text = String::from_utf8(bytes).ok();
                files.push(Written { file, path, text, instead: None, seen });
            }
            Err(error) => problems.push(Problem::new(file, error.to_string())),
        }
    }
    (files, problems)
}

/// Whether this is a file whose functions are tools.
fn is_tools(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".py") && !name.starts_with(['_', '.']) && path.is_file()
}

/// Whether a link leads to what is not ours. What cannot be read would be shown in a problem, line by line.
/// `tools` itself may be a link: that is how somebody wants it.
fn is_outside(path: &Path, folder: &Path, workspace: &Path) -> bool {
    let Ok(real) = fs::canonicalize(path) else { return false };
    let inside = |it: &Path| fs::canonicalize(it).is_ok_and(|it| real.starts_with(it));
    !inside(folder) && !inside(workspace)
}

/// All files that matter, and what tells their versions.
pub(super) type Fingerprint = Vec<(PathBuf, Seen)>;

/// What tells whether any file that matters has changed.
pub(super) fn fingerprint(workspace: &Path) -> Fingerprint {
    let mut found = Vec::new();
    for folder in ["tools", "mods"] {
        look(&workspace.join(folder), 0, &mut found);
    }
    found.sort();
    found
}

fn look(folder: &Path, depth: usize, found: &mut Fingerprint) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        if 2 * FILES < found.len() {
            return;
        }
        let path = entry.path();
        // A link to a folder may lead anywhere, and is not followed.
        let Ok(link) = fs::symlink_metadata(&path) else { continue };
        let Ok(about) = fs::metadata(&path) else { continue };
        if about.is_dir() && link.is_symlink() {
            continue;
        }
        let name = entry.file_name();
        let hidden = name.to_string_lossy().starts_with(['.', '_']) && about.is_dir();
        if about.is_dir() && depth < 4 && !hidden {
            look(&path, depth + 1, found);
        } else if path.extension().is_some_and(|it| it == "py") {
            found.push((path, seen_by(&about)));
        }
    }
}

/// What a process is told first.
pub(super) fn start(
    settings: &Settings,
    files: &[Written],
    mods: &[ModSettings],
    mode: &str,
    list: bool,
) -> Vec<u8> {
    let files: Vec<Value> = files
        .iter()
        .map(|it| json!({ "file": it.file, "path": it.path, "source": it.instead }))
        .collect();
    let mods: Vec<Value> =
        mods.iter().map(|it| json!({ "name": it.name, "config": it.config })).collect();
    let schema = match settings.schema {
        SchemaMode::Seed => "seed",
        SchemaMode::Full => "full",
    };
    let sandbox = (settings.sandbox != Sandbox::Off).then(|| settings.home.join("tmp"));
    let start = json!({
        "op": "start", "mode": mode, "workspace": settings.workspace, "schema": schema,
        "files": files, "mods": mods, "memory": settings.memory,
        "cpu": settings.cpu.map(|it| it.as_secs_f64()), "max_result": settings.max_result,
        "list": list, "sandbox": sandbox, "network": settings.sandbox == Sandbox::On,
    });
    start.to_string().into_bytes()
}

/// Loads files and mods.
pub(super) async fn load(
    settings: &Settings,
    how: &Starting,
    files: &[Written],
) -> Result<Loaded, String> {
    let mut files = files.to_vec();
    let mut mods = settings.mods.clone();
    let mut left_out: Vec<(String, String)> = Vec::new();
    loop {
        match attempt(settings, how, &files, &mods).await? {
            Attempt::Whole(mut loaded) => {
                for (file, what) in left_out {
                    let hint = "what it does on import belongs into its functions";
                    loaded.problems.push(Problem::new(&file, what).hint(hint));
                    loaded.failed.push(file);
                }
                return Ok(*loaded);
            }
            Attempt::Stuck(file, what) => {
                files.retain(|it| it.file != file);
                mods.retain(|it| it.name != file);
                left_out.push((file, what));
                if LEFT_OUT < left_out.len() {
                    return Err("too many files end the process that loads them".to_owned());
                }
            }
        }
    }
}

enum Attempt {
    Whole(Box<Loaded>),
    /// This file ended the process, or keeps it busy.
    Stuck(String, String),
}

async fn attempt(
    settings: &Settings,
    how: &Starting,
    files: &[Written],
    mods: &[ModSettings],
) -> Result<Attempt, String> {
    let start = start(settings, files, mods, "sync", true);
    let started = timeout(ONE_FILE, Worker::start(how, &start, LARGEST_FRAME)).await;
    let started = started.map_err(|_late| "Python does not answer".to_owned())?;
    let mut worker = started.map_err(|error| error.to_string())?;
    let mut loaded = Loaded::default();
    let mut current: Option<String> = None;
    loop {
        let frame = match timeout(ONE_FILE, worker.next()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => {
                let cause = worker.process.cause().await;
                let file = current.ok_or_else(|| format!("Python ended: {cause}"))?;
                return Ok(Attempt::Stuck(
                    file,
                    format!("Python ended while importing it: {cause}"),
                ));
            }
            Err(_) => {
                let file = current.ok_or("Python does not answer")?;
                let what = format!("importing it takes more than {} s", ONE_FILE.as_secs());
                return Ok(Attempt::Stuck(file, what));
            }
        };
        let Ok(Said::Other(words)) = read(&frame) else { continue };
        match words.op.as_str() {
            "loading" => current = Some(words.file),
            "loaded" => loaded.take(&words, &settings.masker),
            "failed" => loaded.fail(*words),
            "ready" => {
                loaded.python = words.python;
                loaded.worker = Some(worker);
                return Ok(Attempt::Whole(Box::new(loaded)));
            }
            _ => {}
        }
    }
}

impl Loaded {
    fn take(&mut self, words: &Words<'_>, masker: &Masker) {
        for slip in &words.problems {
            self.problem(&words.file, slip.line, slip.what.clone(), slip.cure.clone());
        }
        for raw in &words.tools {
            match tool(raw.get(), masker) {
                Ok((tool, served, fault)) => {
                    if let Some(fault) = fault {
                        let what =
                            format!("{}: its output schema cannot be used: {fault}", tool.name);
                        let cure = "results are not held against it".to_owned();
                        self.problem(&words.file, None, what, Some(cure));
                    }
                    let (file, tool) = (words.file.clone(), Arc::new(tool));
                    self.tools.push(LoadedTool { file, tool, served });
                }
                Err(cause) => self.problem(&words.file, None, cause, None),
            }
        }
    }

    fn fail(&mut self, words: Words<'_>) {
        self.problem(&words.file, words.line, words.what, words.cure);
        self.failed.push(words.file);
    }

    fn problem(&mut self, file: &str, line: Option<u32>, what: String, cure: Option<String>) {
        let subject = line.map_or_else(|| file.to_owned(), |line| format!("{file}:{line}"));
        self.problems.push(Problem { hint: cure, ..Problem::new(subject, what) });
    }
}

/// A definition as clients get it, and what only we need of it.
fn tool(text: &str, masker: &Masker) -> Result<(Tool, Served, Option<String>), String> {
    let raw = Json::parse(text.to_owned()).map_err(|error| error.to_string())?;
    let mut value: Value = raw.get().unwrap_or_default();
    let object = value.as_object_mut().ok_or("a tool must be an object")?;
    let is_async = object.shift_remove("async").is_some_and(|it| it == true);
    let timeout = object.shift_remove("timeout_ms").and_then(|it| it.as_u64());
    let checks = object.shift_remove("checks").and_then(|it| Json::of(&it).ok());
    for key in ["description", "title"] {
        if let Some(text) = value.get_mut(key) {
            mask_values(text, masker);
        }
    }
    let raw = Json::of(&value).map_err(|error| error.to_string())?;
    let tool = Tool::read(raw).map_err(|fault| fault.to_string())?;
    let tool = Tool { checks, ..tool };
    if tool.name.starts_with(SERVERS) {
        let name = &tool.name;
        return Err(format!(
            "`{name}`: names that begin with `{SERVERS}` are those of servers; it is left out"
        ));
    }
    let schema: Value = tool.input_schema.as_ref().and_then(Json::get).unwrap_or_default();
    if schema.get("type").is_some_and(|it| it != "object") {
        let name = &tool.name;
        return Err(format!("{name}: its input schema must be of type `object`; it is left out"));
    }
    let hints = tool.annotations;
    let output = tool.output_schema.as_ref().map(Validator::new).transpose();
    let fault = output.as_ref().err().cloned();
    let served = Served {
        name: tool.name.as_str().into(),
        is_async,
        timeout: timeout.map(Duration::from_millis),
        // What an author says of a tool of the workspace is believed.
        repeatable: hints.idempotent_hint == Some(true) || hints.read_only_hint == Some(true),
        output: output.ok().flatten().map(Arc::new),
    };
    Ok((tool, served, fault))
}
