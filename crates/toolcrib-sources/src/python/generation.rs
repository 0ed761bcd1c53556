//! The processes that run one version of the files. An edit makes a new generation; calls that run end on
//! the old one.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    sync::{Mutex as AsyncMutex, OwnedSemaphorePermit},
    time::{Instant, timeout, timeout_at},
};
use toolcrib_catalogue::{CallError, Json, Validator};
use toolcrib_wire::json::scan;

use super::{
    ModSettings, Settings,
    call::{Call, Question},
    loading::{self, Written},
    many::Many,
    places::Places,
    process::Starting,
    worker::{Gone, LOADING, Step, Worker},
};

/// After so many calls a process is replaced, whatever it has let leak; but not while it is young: starting
/// one costs as much as thousands of small calls.
const CALLS: u32 = 1000;
const YOUNG: Duration = Duration::from_secs(60);

/// How a tool of this generation is run.
#[derive(Debug, Clone)]
pub(super) struct Served {
    pub(super) name: Arc<str>,
    pub(super) is_async: bool,
    /// How long a call may take, where the author says so.
    pub(super) timeout: Option<Duration>,
    /// Whether a call whose process was lost may be run again.
    pub(super) repeatable: bool,
    /// What its structured results are held against.
    pub(super) output: Option<Arc<Validator>>,
}

/// The processes of one version of the files.
#[derive(Debug)]
pub(super) struct Generation {
    pub(super) tools: HashMap<String, Served>,
    how: Starting,
    settings: Arc<Settings>,
    files: Vec<Written>,
    mods: Vec<ModSettings>,
    places: Arc<Places>,
    idle: Mutex<Vec<Worker>>,
    starting: AtomicUsize,
    many: ArcSwapOption<Many>,
    opening: AsyncMutex<()>,
    retired: AtomicBool,
}

/// What a generation is made of.
#[derive(Debug)]
pub(super) struct Makings {
    pub(super) tools: HashMap<String, Served>,
    pub(super) how: Starting,
    pub(super) settings: Arc<Settings>,
    /// The files that gave tools, and the mods.
    pub(super) files: Vec<Written>,
    pub(super) mods: Vec<ModSettings>,
    pub(super) places: Arc<Places>,
}

/// Why a call brought nothing.
#[derive(Debug)]
pub(super) enum Failed {
    /// Nothing was begun.
    Unavailable(String),
    /// Its process went away meanwhile.
    Lost(String),
    /// It took too long.
    Late,
}

impl Failed {
    pub(super) fn into_error(self, limit: Duration) -> CallError {
        match self {
            Self::Unavailable(cause) => CallError::Unavailable { cause },
            Self::Lost(cause) => CallError::Lost { cause },
            Self::Late => CallError::TimedOut { after: limit, sent: true },
        }
    }
}

impl Generation {
    pub(super) fn new(makings: Makings, first: Option<Worker>) -> Arc<Self> {
        let Makings { tools, how, settings, files, mods, places } = makings;
        let this = Arc::new(Self {
            tools,
            how,
            settings,
            files,
            mods,
            places,
            idle: Mutex::new(first.into_iter().collect()),
            starting: AtomicUsize::new(0),
            many: ArcSwapOption::empty(),
            opening: AsyncMutex::default(),
            retired: AtomicBool::new(false),
        });
        this.replenish();
        if this.tools.values().any(|it| it.is_async) {
            let opening = Arc::clone(&this);
            this.how.tasks.spawn(async move { drop(opening.many().await) });
        }
        this
    }

    /// No new call comes; those that run may end.
    pub(super) fn retire(&self) {
        self.retired.store(true, Ordering::Release);
        self.idle.lock().clear();
        if let Some(many) = self.many.swap(None) {
            many.retire();
        }
    }

    /// Ends everything at once.
    pub(super) fn end(&self) {
        self.retired.store(true, Ordering::Release);
        self.idle.lock().clear();
        if let Some(many) = self.many.swap(None) {
            many.close();
        }
    }

    /// Starts processes until as many stand ready as can be used at once, and one more.
    fn replenish(self: &Arc<Self>) {
        if !self.tools.values().any(|it| !it.is_async) {
            return;
        }
        let missing = {
            let idle = self.idle.lock().len();
            let known = idle + self.starting.load(Ordering::Acquire) + self.places.in_use();
            (self.settings.workers + 1).saturating_sub(known)
        };
        for _ in 0..missing {
            self.starting.fetch_add(1, Ordering::AcqRel);
            let this = Arc::clone(self);
            self.how.tasks.spawn(async move {
                let started = this.start().await;
                this.starting.fetch_sub(1, Ordering::AcqRel);
                match started {
                    Ok(worker) => this.give_back(worker),
                    Err(cause) => tracing::warn!("a Python process did not start: {cause}"),
                }
            });
        }
    }

    async fn start(&self) -> Result<Worker, String> {
        loop {
            let exact = self.is_edited();
            let start = self.first_words("sync", exact);
            let starting = Worker::start(&self.how, &start, self.largest());
            let started = timeout(LOADING, starting).await;
            let started = started.map_err(|_late| "Python does not answer".to_owned())?;
            let worker = started.map_err(|error| error.to_string())?;
            let mut worker = worker.loaded().await.map_err(|Gone(cause)| cause)?;
            worker.alive = Some(self.places.alive());
            if exact || !self.is_edited() {
                return Ok(worker);
            }
        }
    }

    /// What a process is told first. Where a file is no longer what it was, all get the text that it had:
    /// two processes of one generation must not differ.
    fn first_words(&self, mode: &str, exact: bool) -> Vec<u8> {
        let mut files = self.files.clone();
        if exact {
            files.iter_mut().for_each(|it| it.instead = it.instead.take().or(it.text.take()));
        }
        loading::start(&self.settings, &files, &self.mods, mode, false)
    }

    fn is_edited(&self) -> bool {
        self.files.iter().any(|it| it.instead.is_none() && loading::seen(&it.path) != it.seen)
    }

    fn largest(&self) -> usize {
        self.settings.max_result.saturating_add(1024 * 1024)
    }

    fn give_back(&self, worker: Worker) {
        if self.retired.load(Ordering::Acquire) {
            return;
        }
        let mut idle = self.idle.lock();
        if idle.len() <= self.settings.workers {
            idle.push(worker);
        }
    }

    /// Runs a call, within its time. Dropping the future cancels it.
    pub(super) async fn run(
        self: &Arc<Self>,
        tool: &Served,
        call: Call,
        limit: Duration,
    ) -> Result<Json, Failed> {
        let result = if tool.is_async {
            self.run_among_many(call, limit).await?
        } else {
            self.run_alone(call, limit).await?
        };
        // It came from a process that runs whatever its author wrote: read as strictly as any other frame.
        match scan(&result, |_, _| ()) {
            Ok(()) => Ok(Json::from_scanned(result)),
            Err(fault) => Err(Failed::Lost(format!("its result cannot be used: {fault}"))),
        }
    }

    async fn run_alone(self: &Arc<Self>, call: Call, limit: Duration) -> Result<Bytes, Failed> {
        let mut deadline = Instant::now() + limit;
        let place = self.places.take(deadline).await?;
        let worker = match self.idle() {
            Some(worker) => worker,
            None if !self.places.has_room() => {
                let cause = "busy: too many calls of Python tools wait for others".to_owned();
                return Err(Failed::Unavailable(cause));
            }
            None => {
                let started = timeout_at(deadline, self.start()).await;
                let started = started.map_err(|_late| Failed::Late)?;
                started.map_err(Failed::Unavailable)?
            }
        };
        worker.process.words.begin(call.id, &call.tool);
        let mut hold =
            Hold { generation: self, worker: Some(worker), place: Some(place), id: call.id };
        let Some(worker) = hold.worker.as_mut() else { return Err(Failed::Late) };
        let begun = timeout_at(deadline, worker.write(&call.frame)).await;
        match begun {
            Err(_) => return Err(Failed::Late),
            Ok(Err(Gone(cause))) => return Err(hold.lost(cause)),
            Ok(Ok(())) => {}
        }
        loop {
            let Some(worker) = hold.worker.as_mut() else { return Err(Failed::Late) };
            let step = match timeout_at(deadline, worker.step(&call)).await {
                Err(_) => return Err(Failed::Late),
                Ok(Err(Gone(cause))) => return Err(hold.lost(cause)),
                Ok(Ok(step)) => step,
            };
            match step {
                Step::Result(result) => {
                    hold.done();
                    return Ok(result);
                }
                Step::Cancelled => {
                    hold.done();
                    return Err(Failed::Lost("it was interrupted".to_owned()));
                }
                Step::Asks(question) => {
                    let thought = hold.answer(&call, question, deadline).await?;
                    deadline += thought;
                }
            }
        }
    }

    /// A process that stands ready. One that ended while nobody looked is none.
    fn idle(&self) -> Option<Worker> {
        loop {
            let mut worker = self.idle.lock().pop()?;
            if !worker.is_gone() {
                return Some(worker);
            }
            self.places.lost();
        }
    }

    async fn run_among_many(
        self: &Arc<Self>,
        call: Call,
        limit: Duration,
    ) -> Result<Bytes, Failed> {
        let deadline = Instant::now() + limit;
        let place = self.places.take_among_many(deadline).await?;
        let many = match timeout_at(deadline, self.many()).await {
            Err(_) => return Err(Failed::Late),
            Ok(many) => many.map_err(Failed::Unavailable)?,
        };
        let answer = many.call(call, limit, place).await;
        let worn = self.settings.memory.is_some_and(|limit| many.is_worn(limit));
        if worn && let Some(old) = self.many.compare_and_swap(&many, None).as_ref() {
            // It runs what it has begun; the next call gets a new one.
            old.retire();
        }
        match answer {
            Ok(Some(result)) => Ok(result),
            Ok(None) => Err(Failed::Late),
            Err(Gone(cause)) => Err(Failed::Lost(cause)),
        }
    }

    /// The process for async tools. It is started apart from the call: one whose time is short does not take
    /// it away from the next.
    async fn many(self: &Arc<Self>) -> Result<Arc<Many>, String> {
        if let Some(many) = self.current_many() {
            return Ok(many);
        }
        let this = Arc::clone(self);
        let opening = self.how.tasks.spawn(async move { this.open_many().await });
        opening.await.unwrap_or_else(|_| Err("it was not started".to_owned()))
    }

    /// How many processes for many calls there are.
    pub(super) fn count_many(&self) -> u64 {
        u64::from(self.many.load().as_ref().is_some_and(|it| !it.is_gone()))
    }

    fn current_many(&self) -> Option<Arc<Many>> {
        self.many.load_full().filter(|it| !it.is_gone() && !it.is_stuck())
    }

    async fn open_many(&self) -> Result<Arc<Many>, String> {
        let opening = self.opening.lock().await;
        if let Some(many) = self.current_many() {
            return Ok(many);
        }
        let many = loop {
            let exact = self.is_edited();
            let start = self.first_words("async", exact);
            let started = Many::start(&self.how, &start, self.largest()).await;
            let many = started.map_err(|error| error.to_string())?.map_err(|Gone(cause)| cause)?;
            if exact || !self.is_edited() {
                break many;
            }
            many.close();
        };
        let old = if self.retired.load(Ordering::Acquire) {
            Some(Arc::clone(&many))
        } else {
            self.many.swap(Some(Arc::clone(&many)))
        };
        self.places.started();
        if let Some(old) = old {
            if old.is_gone() || old.is_stuck() {
                self.places.lost();
            }
            old.retire();
        }
        // It may have become the past meanwhile.
        if self.retired.load(Ordering::Acquire)
            && let Some(old) = self.many.swap(None)
        {
            old.retire();
        }
        drop(opening);
        Ok(many)
    }

    /// Whether a process should run no further call.
    fn is_worn(&self, worker: &Worker) -> bool {
        let old = CALLS <= worker.calls && YOUNG <= worker.begin.elapsed();
        let Some(limit) = self.settings.memory.filter(|_| worker.calls.is_multiple_of(16)) else {
            return old;
        };
        let held = resident(worker.process.id()).unwrap_or_default();
        // One that keeps four fifths of what it may have will not do the next call well.
        old || limit / 5 * 4 < held
    }
}

/// How much memory a process has in use.
pub(super) fn resident(process: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{process}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * 4096)
}

/// A process that runs a call. If the call is given up, it is interrupted and ended.
struct Hold<'a> {
    generation: &'a Arc<Generation>,
    worker: Option<Worker>,
    place: Option<OwnedSemaphorePermit>,
    id: u64,
}

impl Hold<'_> {
    /// The call is over, and the process can run the next.
    fn done(&mut self) {
        let Some(mut worker) = self.worker.take() else { return };
        worker.process.words.end(self.id);
        worker.calls += 1;
        if !self.generation.is_worn(&worker) {
            self.generation.give_back(worker);
        }
        self.place = None;
        self.generation.replenish();
    }

    /// The process is gone.
    fn lost(&mut self, cause: String) -> Failed {
        self.worker = None;
        self.place = None;
        self.generation.places.lost();
        self.generation.replenish();
        Failed::Lost(cause)
    }

    /// Answers what the tool asks. Returns how long a person thought about it.
    async fn answer(
        &mut self,
        call: &Call,
        question: Question,
        deadline: Instant,
    ) -> Result<Duration, Failed> {
        let begin = Instant::now();
        let person = question.is_for_a_person();
        // While it waits, others may need the place; afterwards it goes on without one.
        self.place = None;
        let Some(worker) = self.worker.as_mut() else { return Err(Failed::Late) };
        let answering = async {
            // A person has a time of his own.
            if person {
                return Ok(call.answer(question).await);
            }
            timeout_at(deadline, call.answer(question)).await.map_err(|_late| Failed::Late)
        };
        let reply = tokio::select! {
            reply = answering => Some(reply?),
            () = worker.process.ended() => None,
        };
        let Some(reply) = reply else {
            let cause = worker.process.cause().await;
            return Err(self.lost(cause));
        };
        let thought = if person { begin.elapsed() } else { Duration::ZERO };
        match timeout_at(deadline + thought, worker.write(&reply)).await {
            Ok(Ok(())) => Ok(thought),
            Ok(Err(Gone(cause))) => Err(self.lost(cause)),
            Err(_) => Err(Failed::Late),
        }
    }
}

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        let Some(mut worker) = self.worker.take() else { return };
        let (generation, place, id) = (Arc::clone(self.generation), self.place.take(), self.id);
        self.generation.how.tasks.spawn(async move {
            // It is asked first, so that it can clean up; then it goes, with all that it started. Whatever
            // it was in the middle of, no further call is to find.
            worker.interrupt(id).await;
            drop(worker);
            generation.places.lost();
            drop(place);
            generation.replenish();
        });
    }
}
