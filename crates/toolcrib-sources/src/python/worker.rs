//! A process that runs one call at a time. Whoever calls has it for himself meanwhile, and reads what it
//! says; between calls nobody does.

use std::{io, time::Duration};

use bytes::Bytes;
use tokio::{
    io::AsyncWriteExt,
    process::{ChildStdin, ChildStdout},
    time::{Instant, timeout, timeout_at},
};

use super::{
    call::{Call, Question},
    frames::{FrameReader, Said, frame, read},
    places::Alive,
    process::{Process, Starting},
};

/// How long a process gets to load the files that are known to load.
pub(super) const LOADING: Duration = Duration::from_secs(60);

/// How long a call that was interrupted gets to end.
pub(super) const GRACE: Duration = Duration::from_secs(1);

/// A process that was told what to load.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) process: Process,
    input: ChildStdin,
    output: FrameReader<ChildStdout>,
    /// How many calls it has run.
    pub(super) calls: u32,
    /// When it was started.
    pub(super) begin: Instant,
    /// Counts it.
    pub(super) alive: Option<Alive>,
}

/// How a call went.
#[derive(Debug)]
pub(super) enum Step {
    /// It is over, with this result.
    Result(Bytes),
    /// It asks something, and waits.
    Asks(Question),
    /// It was interrupted.
    Cancelled,
}

/// How loading went.
pub(super) enum Loading {
    Whole,
    /// A file that loaded before does not load now.
    Broken(String),
    Ended,
}

/// Reads until everything is loaded.
pub(super) async fn load(output: &mut FrameReader<ChildStdout>) -> Loading {
    let mut broken = None;
    while let Ok(Some(frame)) = output.next().await {
        let Ok(Said::Other(words)) = read(&frame) else { continue };
        match (words.op.as_str(), broken.take()) {
            ("failed", _) => broken = Some(format!("{}: {}", words.file, words.what)),
            ("ready", None) => return Loading::Whole,
            ("ready", Some(cause)) => return Loading::Broken(cause),
            (_, known) => broken = known,
        }
    }
    Loading::Ended
}

/// Why a process brought nothing.
#[derive(Debug)]
pub(super) struct Gone(pub(super) String);

impl Worker {
    /// Starts a process and tells it what to load.
    pub(super) async fn start(how: &Starting, start: &[u8], largest: usize) -> io::Result<Self> {
        let (process, mut input, output) = Process::start(how)?;
        // One that dies at once is heard of when it is read.
        input.write_all(&frame(start)).await.ok();
        let output = FrameReader::new(output, largest);
        Ok(Self { process, input, output, calls: 0, begin: Instant::now(), alive: None })
    }

    /// The next thing it says; none where it has ended.
    pub(super) async fn next(&mut self) -> Option<Bytes> {
        self.output.next().await.ok().flatten()
    }

    /// Waits until it has loaded everything.
    pub(super) async fn loaded(mut self) -> Result<Self, Gone> {
        match timeout(LOADING, load(&mut self.output)).await {
            Ok(Loading::Whole) => Ok(self),
            Ok(Loading::Broken(cause)) => Err(Gone(cause)),
            Ok(Loading::Ended) => Err(Gone(self.process.cause().await)),
            Err(_) => Err(Gone(format!("it did not load within {} s", LOADING.as_secs()))),
        }
    }

    /// Whether it has ended while nobody looked.
    pub(super) fn is_gone(&mut self) -> bool {
        self.process.has_ended()
    }

    pub(super) async fn write(&mut self, frame: &[u8]) -> Result<(), Gone> {
        match self.input.write_all(frame).await {
            Ok(()) => Ok(()),
            Err(_) => Err(Gone(self.process.cause().await)),
        }
    }

    /// Reads what a call says until something has to be done.
    pub(super) async fn step(&mut self, call: &Call) -> Result<Step, Gone> {
        loop {
            let frame = match self.output.next_at_once().await {
                Ok(Some(frame)) => frame,
                Ok(None) => return Err(Gone(self.process.cause().await)),
                Err(error) => return Err(Gone(error.to_string())),
            };
            match read(&frame) {
                Ok(Said::Result { id, result }) if id == call.id => {
                    return Ok(Step::Result(result));
                }
                Ok(Said::Other(words)) if words.id == Some(call.id) => match words.op.as_str() {
                    "cancelled" => return Ok(Step::Cancelled),
                    "ask" => {
                        if let Some(question) = Question::read(&words) {
                            return Ok(Step::Asks(question));
                        }
                    }
                    _ => call.heard(&words),
                },
                // Of a call that was over before.
                Ok(_) => {}
                Err(error) => tracing::warn!(%error, "a tool wrote into the pipe between us"),
            }
        }
    }

    /// Interrupts a call, and gives it a moment to end.
    pub(super) async fn interrupt(&mut self, id: u64) {
        self.process.interrupt();
        let end = Instant::now() + GRACE;
        while let Ok(Some(frame)) = timeout_at(end, self.next()).await {
            match read(&frame) {
                Ok(Said::Result { id: ended, .. }) if ended == id => return,
                Ok(Said::Other(words)) if words.id == Some(id) && words.op == "cancelled" => return,
                Ok(_) | Err(_) => {}
            }
        }
    }
}
