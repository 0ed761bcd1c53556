//! The Python tools of a workspace: loaded, kept current, and called.

use std::{
    collections::{HashMap, HashSet},
    fmt,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use arc_swap::{ArcSwap, ArcSwapOption};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolcrib_catalogue::{Origin, Problem, Tool};
use toolcrib_wire::Reaper;

use super::{
    ModSettings, Settings,
    generation::{Generation, Makings},
    interpreter::{self, Interpreter, NoPython},
    loading::{self, Loaded, LoadedTool, Written},
    package,
    places::Places,
    process::Starting,
    watching,
};

/// The Python tools and mods of a workspace.
#[derive(Debug, Clone)]
pub struct Python {
    engine: Arc<Engine>,
}

/// What comes of one origin: `tools/`, or one mod.
#[derive(Debug)]
pub struct PythonSource {
    pub(super) engine: Arc<Engine>,
    /// Where its tools come from.
    pub origin: Origin,
    pub(super) label: String,
}

/// What there is of Python in a workspace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// How many tools.
    pub tools: usize,
    /// In how many files and mods.
    pub files: usize,
    /// Which Python runs them; empty where none does.
    pub python: String,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = |n: usize, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        write!(f, "{} in {}", count(self.tools, "tool"), count(self.files, "file"))?;
        match self.python.as_str() {
            "" => Ok(()),
            version => write!(f, ", Python {version}"),
        }
    }
}

#[derive(Debug)]
pub(super) struct Engine {
    pub(super) settings: Arc<Settings>,
    pub(super) places: Arc<Places>,
    pub(super) current: ArcSwapOption<Generation>,
    pub(super) listed: ArcSwap<Listed>,
    pub(super) version: watch::Sender<u64>,
    pub(super) next_call: AtomicU64,
    /// The last text of each file that gave tools.
    good: Mutex<HashMap<String, String>>,
    interpreter: Mutex<Option<Interpreter>>,
    reaper: Arc<Reaper>,
    pub(super) tasks: TaskTracker,
    pub(super) stop: CancellationToken,
}

/// What is known just now.
#[derive(Debug, Default)]
pub(super) struct Listed {
    pub(super) settled: bool,
    /// Tools by file or mod.
    pub(super) tools: HashMap<String, Arc<[Arc<Tool>]>>,
    pub(super) problems: Vec<Problem>,
    pub(super) failure: Option<NoPython>,
    python: String,
    files: usize,
    /// Which file each tool stands in.
    owners: HashMap<String, String>,
}

/// How `tools/` is called among the mods.
pub(super) const WORKSPACE: &str = "";

impl Python {
    /// Begins to load the tools of a workspace. With `watch`, edits are followed.
    pub fn start(settings: Settings, watch: bool) -> Self {
        let engine = Arc::new(Engine {
            places: Arc::new(Places::new(settings.workers)),
            settings: Arc::new(settings),
            current: ArcSwapOption::empty(),
            listed: ArcSwap::default(),
            version: watch::Sender::new(0),
            next_call: AtomicU64::new(1),
            good: Mutex::default(),
            interpreter: Mutex::default(),
            reaper: Arc::new(Reaper::new()),
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        });
        let running = Arc::clone(&engine);
        engine.tasks.spawn(async move {
            let work = async {
                let seen = loading::fingerprint(&running.settings.workspace);
                let settling = Settling(Arc::clone(&running));
                let worked = running.load().await;
                drop(settling);
                if watch {
                    watching::follow(&running, seen, worked).await;
                }
            };
            tokio::select! {
                () = work => {}
                () = running.stop.cancelled() => {}
            }
        });
        Self { engine }
    }

    /// Whether a workspace has anything for Python.
    pub fn is_needed(settings: &Settings) -> bool {
        !settings.mods.is_empty() || settings.workspace.join("tools").exists()
    }

    /// Waits until everything has been loaded once.
    pub async fn settled(&self) {
        let mut version = self.engine.version.subscribe();
        while !self.engine.listed.load().settled {
            if version.changed().await.is_err() {
                return;
            }
        }
    }

    /// The sources: each mod, then `tools/`.
    pub fn sources(&self) -> Vec<Arc<PythonSource>> {
        let source = |label: &str, origin| {
            Arc::new(PythonSource {
                engine: Arc::clone(&self.engine),
                origin,
                label: label.to_owned(),
            })
        };
        let mods = self.engine.settings.mods.iter();
        mods.map(|it| source(&it.name, Origin::Mod(it.name.clone())))
            .chain([source(WORKSPACE, Origin::Workspace)])
            .collect()
    }

    /// What there is.
    pub fn summary(&self) -> Summary {
        let listed = self.engine.listed.load();
        let tools = listed.tools.values().map(|it| it.len()).sum();
        Summary { tools, files: listed.files, python: listed.python.clone() }
    }

    /// Ends all processes.
    pub async fn close(&self) {
        self.engine.stop.cancel();
        if let Some(generation) = self.engine.current.swap(None) {
            generation.end();
        }
        self.engine.tasks.close();
        tokio::time::timeout(Duration::from_secs(3), self.engine.tasks.wait()).await.ok();
    }
}

/// Whoever waits for the first load does not wait for ever, whatever becomes of it.
struct Settling(Arc<Engine>);

impl Drop for Settling {
    fn drop(&mut self) {
        if self.0.listed.load().settled {
            return;
        }
        let hint = "this is a mistake of ours".to_owned();
        let failure = NoPython { cause: "loading was given up".to_owned(), hint };
        self.0.fail(failure, Vec::new(), 0);
    }
}

impl Engine {
    /// Loads everything anew, and lets the old processes end.
    ///
    /// Says whether that worked; if not, it may the next time although no file has changed.
    pub(super) async fn load(self: &Arc<Self>) -> bool {
        let (mut files, mut problems) = loading::files(&self.settings.workspace);
        problems.extend(self.settings.problems.iter().cloned());
        if files.is_empty() && self.settings.mods.is_empty() {
            self.swap(None, Listed { settled: true, problems, ..Listed::default() });
            return true;
        }
        let how = match self.starting().await {
            Ok(how) => how,
            Err(failure) => {
                self.fail(failure, problems, files.len());
                return false;
            }
        };
        let loaded = match self.load_files(&how, &mut files).await {
            Ok(Some(loaded)) => loaded,
            // An edit broke what others need: everything stays as it was.
            Ok(None) => return true,
            Err(cause) => {
                let hint = "`toolcrib check -v` shows what Python says".to_owned();
                self.fail(NoPython { cause, hint }, problems, files.len());
                return false;
            }
        };
        self.remember(&files, &loaded.failed);
        problems.extend(loaded.problems.iter().cloned());
        self.take(how, files, loaded, problems);
        true
    }

    /// Loads files; one that no longer loads is run as it was when it did. Nothing where even that fails.
    async fn load_files(
        &self,
        how: &Starting,
        files: &mut [Written],
    ) -> Result<Option<Loaded>, String> {
        let first = loading::load(&self.settings, how, files).await?;
        // Of a mod there is no single text to fall back on.
        let now = self.listed.load_full();
        let lost =
            |it: &&ModSettings| now.tools.contains_key(&it.name) && first.failed.contains(&it.name);
        if self.settings.mods.iter().any(|it| lost(&it)) {
            self.tell_only(first.problems);
            return Ok(None);
        }
        let mut replaced = false;
        {
            let good = self.good.lock();
            for file in files.iter_mut().filter(|it| first.failed.contains(&it.file)) {
                file.instead = good.get(&file.file).cloned();
                replaced |= file.instead.is_some();
            }
        }
        if !replaced {
            return Ok(Some(first));
        }
        let mut second = loading::load(&self.settings, how, files).await?;
        let still = |it: &&Written| it.instead.is_some() && second.failed.contains(&it.file);
        if let Some(file) = files.iter().find(still) {
            tracing::warn!("{} no longer loads; all tools stay as they were", file.file);
            self.tell_only(first.problems);
            return Ok(None);
        }
        let stands = |it: Problem| match it.hint {
            Some(hint) => Problem {
                hint: Some(format!("{hint}; until then its last good version runs")),
                ..it
            },
            None => it.hint("its last good version runs until it loads again"),
        };
        second.problems.extend(first.problems.into_iter().map(stands));
        second.problems.dedup();
        Ok(Some(second))
    }

    fn remember(&self, files: &[Written], failed: &[String]) {
        let mut good = self.good.lock();
        good.retain(|name, _| files.iter().any(|it| it.file == *name));
        for file in files.iter().filter(|it| it.instead.is_none() && !failed.contains(&it.file)) {
            if let Some(text) = &file.text {
                good.insert(file.file.clone(), text.clone());
            }
        }
    }

    /// Puts what was loaded into use.
    fn take(
        self: &Arc<Self>,
        how: Starting,
        files: Vec<Written>,
        mut loaded: Loaded,
        mut problems: Vec<Problem>,
    ) {
        // The first time, two tools of one name refuse the start; later the one that was found first stays.
        let now = self.listed.load();
        if now.settled {
            hold_back(&mut loaded.tools, &now.owners, &mut problems);
        }
        let owners =
            loaded.tools.iter().map(|it| (it.tool.name.clone(), it.file.clone())).collect();
        let mut tools: HashMap<String, Vec<Arc<Tool>>> = HashMap::new();
        for it in &loaded.tools {
            let is_mod = self.settings.mods.iter().any(|known| known.name == it.file);
            let key = if is_mod { it.file.as_str() } else { WORKSPACE };
            tools.entry(key.to_owned()).or_default().push(Arc::clone(&it.tool));
        }
        let served = loaded.tools.iter().map(|it| (it.tool.name.clone(), it.served.clone()));
        let count = files.len() + self.settings.mods.len();
        let files: Vec<Written> =
            files.into_iter().filter(|it| !loaded.failed.contains(&it.file)).collect();
        let mods = self.settings.mods.iter().cloned();
        let mods: Vec<_> = mods.filter(|it| !loaded.failed.contains(&it.name)).collect();
        let makings = Makings {
            tools: served.collect(),
            how,
            settings: Arc::clone(&self.settings),
            files,
            mods,
            places: Arc::clone(&self.places),
        };
        let listed = Listed {
            settled: true,
            tools: tools.into_iter().map(|(key, tools)| (key, tools.into())).collect(),
            problems,
            failure: None,
            python: loaded.python,
            files: count,
            owners,
        };
        self.swap(Some(Generation::new(makings, loaded.worker)), listed);
    }

    fn swap(&self, generation: Option<Arc<Generation>>, mut listed: Listed) {
        self.mask(&mut listed.problems);
        let old = self.current.swap(generation);
        self.listed.store(Arc::new(listed));
        self.version.send_modify(|it| *it += 1);
        if let Some(old) = old {
            old.retire();
        }
    }

    /// Whatever files say of themselves, they do not say our secrets.
    fn mask(&self, problems: &mut [Problem]) {
        let masker = &self.settings.masker;
        for problem in problems {
            problem.message = masker.mask(&problem.message).into_owned();
            problem.hint = problem.hint.as_ref().map(|it| masker.mask(it).into_owned());
        }
    }

    /// Something is wrong with Python itself. What runs goes on running.
    fn fail(&self, failure: NoPython, mut problems: Vec<Problem>, files: usize) {
        *self.interpreter.lock() = None;
        if self.current.load().is_none() {
            let failure = Some(failure);
            self.swap(
                None,
                Listed { settled: true, problems, files, failure, ..Listed::default() },
            );
            return;
        }
        problems.push(Problem::new("tools", failure.cause).hint(failure.hint));
        self.tell_only(problems);
    }

    /// Tells what is wrong, and leaves everything else as it is.
    fn tell_only(&self, mut problems: Vec<Problem>) {
        self.mask(&mut problems);
        let now = self.listed.load();
        let listed = Listed {
            settled: true,
            tools: now.tools.clone(),
            problems,
            failure: now.failure.clone(),
            python: now.python.clone(),
            files: now.files,
            owners: now.owners.clone(),
        };
        self.listed.store(Arc::new(listed));
        self.version.send_modify(|it| *it += 1);
    }

    async fn starting(&self) -> Result<Starting, NoPython> {
        let known = self.interpreter.lock().clone();
        let interpreter = match known {
            Some(known) => known,
            None => interpreter::find(&self.settings.interpreters, &self.settings.env).await?,
        };
        *self.interpreter.lock() = Some(interpreter.clone());
        let unpacked = package::unpack(&self.settings.home).map_err(|error| NoPython {
            cause: format!("`{}` cannot be written: {error}", self.settings.home.display()),
            hint: "Python tools need a place for our package: make the folder writable".to_owned(),
        })?;
        Ok(Starting {
            interpreter: interpreter.path,
            compiled: unpacked.parent().unwrap_or(&unpacked).join("compiled"),
            package: unpacked,
            workspace: self.settings.workspace.clone(),
            env: self.settings.env.clone(),
            masker: self.settings.masker.clone(),
            reaper: Arc::clone(&self.reaper),
            tasks: self.tasks.clone(),
        })
    }
}

/// Leaves out tools whose name another has.
fn hold_back(
    tools: &mut Vec<LoadedTool>,
    owners: &HashMap<String, String>,
    problems: &mut Vec<Problem>,
) {
    // Who has a name keeps it.
    tools.sort_by_key(|it| owners.get(&it.tool.name) != Some(&it.file));
    let mut taken: HashSet<String> = HashSet::new();
    tools.retain(|it| {
        let free = taken.insert(it.tool.name.clone());
        if !free {
            let message = format!("the name `{}` is taken by another tool", it.tool.name);
            problems.push(Problem::new(&it.file, message).hint("give one of them another name"));
        }
        free
    });
}
