//! A process that runs many calls of async tools at once. One task writes to it, one reads what it says.

use std::{
    collections::HashMap,
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    io::AsyncWriteExt,
    process::{ChildStdin, ChildStdout},
    sync::{OwnedSemaphorePermit, mpsc, oneshot, watch},
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    call::{Call, Question},
    frames::{FrameReader, Said, Words, frame, read},
    generation::resident,
    process::{Process, Starting},
    worker::{GRACE, Gone, LOADING, Loading, load},
};

/// How many frames may wait to be written.
const QUEUE: usize = 256;

/// How long a call gets to end before new ones go elsewhere.
const KIND: Duration = Duration::from_millis(200);

/// What is done about a call that does not end.
enum Step {
    Avoid,
    Interrupt,
    End,
}

/// A process for many calls.
#[derive(Debug)]
pub(super) struct Many {
    out: mpsc::Sender<Vec<u8>>,
    waiting: Mutex<HashMap<u64, Arc<Waiting>>>,
    /// Why it is gone.
    gone: watch::Sender<Option<String>>,
    tasks: TaskTracker,
    /// Ends the process.
    stop: CancellationToken,
    interrupts: mpsc::Sender<()>,
    /// How many calls were cancelled and do not end: no new ones come here meanwhile.
    stuck: AtomicUsize,
    calls: AtomicUsize,
    process: i32,
    words: Arc<super::process::Words>,
}

/// One call that runs.
#[derive(Debug)]
struct Waiting {
    call: Arc<Call>,
    answer: Mutex<Option<oneshot::Sender<Bytes>>>,
    clock: Mutex<Clock>,
    /// Given up while it waits for another tool or for a person.
    place: Mutex<Option<OwnedSemaphorePermit>>,
    /// Nobody waits for it any more, or it has ended.
    over: CancellationToken,
}

/// How long people have been thinking about what a call asked.
#[derive(Debug, Default)]
struct Clock {
    asking: u32,
    since: Option<Instant>,
    stood: Duration,
}

impl Many {
    /// Starts a process and waits until it has loaded everything.
    pub(super) async fn start(
        how: &Starting,
        start: &[u8],
        largest: usize,
    ) -> io::Result<Result<Arc<Self>, Gone>> {
        let (mut process, mut input, output) = Process::start(how)?;
        let mut output = FrameReader::new(output, largest);
        let loading = async {
            input.write_all(&frame(start)).await.ok();
            load(&mut output).await
        };
        match timeout(LOADING, loading).await {
            Ok(Loading::Whole) => {}
            Ok(Loading::Broken(cause)) => return Ok(Err(Gone(cause))),
            Ok(Loading::Ended) => return Ok(Err(Gone(process.cause().await))),
            Err(_) => {
                let cause = format!("it did not load within {} s", LOADING.as_secs());
                return Ok(Err(Gone(cause)));
            }
        }
        let (out, outgoing) = mpsc::channel(QUEUE);
        let (interrupts, interrupted) = mpsc::channel(1);
        let this = Arc::new(Self {
            out,
            waiting: Mutex::default(),
            gone: watch::Sender::new(None),
            tasks: how.tasks.clone(),
            stop: CancellationToken::new(),
            interrupts,
            stuck: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            process: process.id(),
            words: Arc::clone(&process.words),
        });
        let running = Arc::clone(&this);
        how.tasks.spawn(async move {
            running.run(process, input, output, outgoing, interrupted).await;
        });
        Ok(Ok(this))
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone.borrow().is_some()
    }

    /// Whether a call keeps it from answering.
    pub(super) fn is_stuck(&self) -> bool {
        self.stuck.load(Ordering::Acquire) != 0
    }

    /// Ends the process.
    pub(super) fn close(&self) {
        self.stop.cancel();
    }

    /// Ends the process when its calls have ended.
    pub(super) fn retire(self: &Arc<Self>) {
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            while !this.waiting.lock().is_empty() && !this.is_gone() {
                sleep(Duration::from_millis(50)).await;
            }
            this.close();
        });
    }

    async fn run(
        self: Arc<Self>,
        mut process: Process,
        input: ChildStdin,
        mut output: FrameReader<ChildStdout>,
        outgoing: mpsc::Receiver<Vec<u8>>,
        mut interrupted: mpsc::Receiver<()>,
    ) {
        let mut writing = std::pin::pin!(write(input, outgoing));
        let cause = loop {
            tokio::select! {
                frame = output.next() => match frame {
                    Ok(Some(frame)) => if let Err(error) = self.take(&frame) {
                        tracing::warn!(%error, "a tool wrote into the pipe between us");
                    },
                    Ok(None) => break process.cause().await,
                    Err(error) => break error.to_string(),
                },
                () = &mut writing => break process.cause().await,
                Some(()) = interrupted.recv() => process.interrupt(),
                () = self.stop.cancelled() => break "it was ended".to_owned(),
            }
        };
        drop(process);
        self.gone.send_replace(Some(cause));
        let waiting = std::mem::take(&mut *self.waiting.lock());
        waiting.into_values().for_each(|it| drop(it.answer.lock().take()));
    }

    fn take(self: &Arc<Self>, text: &Bytes) -> Result<(), serde_json::Error> {
        match read(text)? {
            Said::Result { id, result } => {
                if let Some(waiting) = self.ended(id)
                    && let Some(answer) = waiting.answer.lock().take()
                {
                    answer.send(result).ok();
                }
            }
            Said::Other(words) => self.heard(&words),
        }
        Ok(())
    }

    fn ended(&self, id: u64) -> Option<Arc<Waiting>> {
        self.words.end(id);
        let waiting = self.waiting.lock().remove(&id)?;
        waiting.over.cancel();
        Some(waiting)
    }

    fn heard(self: &Arc<Self>, words: &Words<'_>) {
        let Some(id) = words.id else { return };
        if words.op == "cancelled" {
            drop(self.ended(id).and_then(|it| it.answer.lock().take()));
            return;
        }
        let Some(waiting) = self.waiting.lock().get(&id).cloned() else { return };
        if words.op != "ask" {
            waiting.call.heard(words);
            return;
        }
        let Some(question) = Question::read(words) else { return };
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            let person = question.is_for_a_person();
            // While it waits, others may need the place; afterwards it goes on without one.
            drop(waiting.place.lock().take());
            if person {
                waiting.clock.lock().stop();
            }
            let answered = tokio::select! {
                reply = waiting.call.answer(question) => Some(reply),
                () = this.stop.cancelled() => None,
                () = waiting.over.cancelled() => None,
            };
            if person {
                waiting.clock.lock().go_on();
            }
            if let Some(reply) = answered {
                this.out.send(reply).await.ok();
            }
        });
    }

    /// Runs a call. Dropping the future cancels it.
    pub(super) async fn call(
        self: &Arc<Self>,
        call: Call,
        limit: Duration,
        place: OwnedSemaphorePermit,
    ) -> Result<Option<Bytes>, Gone> {
        let (answer, answered) = oneshot::channel();
        let call = Arc::new(call);
        let waiting = Arc::new(Waiting {
            call: Arc::clone(&call),
            answer: Mutex::new(Some(answer)),
            clock: Mutex::default(),
            place: Mutex::new(Some(place)),
            over: CancellationToken::new(),
        });
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.words.begin(call.id, &call.tool);
        self.waiting.lock().insert(call.id, Arc::clone(&waiting));
        if self.is_gone() {
            self.ended(call.id);
            return Err(self.cause().await);
        }
        let mut unanswered = Unanswered { many: self, waiting: &waiting, done: false };
        let running = async {
            // A process that does not read keeps nobody longer than its answer would.
            self.out.send(call.frame.clone()).await.ok()?;
            answered.await.ok()
        };
        let late = async {
            let begin = Instant::now();
            loop {
                let left = limit.saturating_sub(waiting.clock.lock().ran(begin));
                if left.is_zero() {
                    return;
                }
                // While a person thinks, nothing is left of it.
                sleep(left.max(Duration::from_millis(50))).await;
            }
        };
        let answered = tokio::select! {
            answered = running => Some(answered),
            () = late => None,
        };
        unanswered.done = answered.is_some();
        match answered {
            Some(Some(result)) => Ok(Some(result)),
            Some(None) => Err(self.cause().await),
            None => Ok(None),
        }
    }

    async fn cause(&self) -> Gone {
        let mut gone = self.gone.subscribe();
        let known = timeout(GRACE, gone.wait_for(Option::is_some)).await;
        let cause = known.ok().and_then(Result::ok).and_then(|it| it.clone());
        Gone(cause.unwrap_or_else(|| "it was interrupted".to_owned()))
    }

    /// Cancels a call: kindly, then by a signal, then with the whole process.
    async fn cancel(self: Arc<Self>, waiting: Arc<Waiting>) {
        let id = waiting.call.id;
        let still_runs = || self.waiting.lock().contains_key(&id);
        let note = format!(r#"{{"op":"cancel","id":{id}}}"#);
        self.out.send(frame(note.as_bytes())).await.ok();
        let mut stuck = false;
        for (patience, step) in [(KIND, Step::Avoid), (GRACE, Step::Interrupt), (GRACE, Step::End)]
        {
            let end = Instant::now() + patience;
            while Instant::now() < end && still_runs() && !self.is_gone() {
                sleep(Duration::from_millis(10)).await;
            }
            if !still_runs() || self.is_gone() {
                break;
            }
            match step {
                Step::Avoid => {
                    stuck = true;
                    self.stuck.fetch_add(1, Ordering::AcqRel);
                }
                // Whatever keeps the loop busy is what runs just now: most likely the same call.
                Step::Interrupt => drop(self.interrupts.try_send(())),
                Step::End => self.end_when_all_are_over().await,
            }
        }
        if stuck {
            self.stuck.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl Many {
    /// Ends the process as soon as nobody waits for any of its calls: one that will not be cancelled does
    /// not take others with it.
    async fn end_when_all_are_over(&self) {
        while !self.is_gone() && self.waiting.lock().values().any(|it| !it.over.is_cancelled()) {
            sleep(Duration::from_millis(20)).await;
        }
        self.close();
    }

    /// Whether it keeps four fifths of the memory it may have.
    pub(super) fn is_worn(&self, limit: u64) -> bool {
        self.calls.load(Ordering::Relaxed).is_multiple_of(16)
            && resident(self.process).is_some_and(|it| limit / 5 * 4 < it)
    }
}

impl Clock {
    fn stop(&mut self) {
        self.asking += 1;
        self.since.get_or_insert_with(Instant::now);
    }

    fn go_on(&mut self) {
        self.asking = self.asking.saturating_sub(1);
        if self.asking == 0 {
            self.stood += self.since.take().map(|it| it.elapsed()).unwrap_or_default();
        }
    }

    /// How long a call that began then has run, the thinking of people not counted.
    fn ran(&self, begin: Instant) -> Duration {
        let thinking = self.since.map(|it| it.elapsed()).unwrap_or_default();
        begin.elapsed().saturating_sub(self.stood + thinking)
    }
}

/// A call without an answer; if it goes away like that, the tool is cancelled.
struct Unanswered<'a> {
    many: &'a Arc<Many>,
    waiting: &'a Arc<Waiting>,
    done: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if self.done {
            return;
        }
        self.waiting.over.cancel();
        let (many, waiting) = (Arc::clone(self.many), Arc::clone(self.waiting));
        self.many.tasks.spawn(async move { many.cancel(waiting).await });
    }
}

async fn write(mut input: ChildStdin, mut outgoing: mpsc::Receiver<Vec<u8>>) {
    while let Some(frame) = outgoing.recv().await {
        if input.write_all(&frame).await.is_err() {
            return;
        }
    }
    std::future::pending::<()>().await;
}
