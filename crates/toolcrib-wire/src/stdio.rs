//! A server that is a child process: one message a line, on its standard input and output.
//!
//! The child leads a process group of its own, gets no environment but what it is given, and what it
//! says on standard error goes to the log, its last words also into the cause when it dies.

mod words;

use std::{
    io,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use nix::{
    sys::signal::{Signal, killpg},
    unistd::Pid,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    process::{Child, ChildStdin, Command},
    sync::mpsc,
    time::{Instant, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use self::words::LastWords;
use self::words::log_lines;
use crate::{
    board::{Answer, Board},
    client::{Aside, Inbox, Options},
    error::{ConnectError, RequestError},
    frame::one_line,
    incoming::{Later, receive},
    sift::{Message, SiftError, Sifting},
    spool::Spool,
    text::plain,
};

/// How to start a server.
#[derive(Debug, Clone)]
pub struct ServerCommand {
    /// The program.
    pub program: String,
    /// What errors call it, since the program itself may come out of a variable.
    pub shown: String,
    /// Its arguments, as they are: no shell reads them.
    pub args: Vec<String>,
    /// Its whole environment.
    pub env: Vec<(String, String)>,
    /// Where it runs; here if nothing is said.
    pub cwd: Option<PathBuf>,
}

/// How many messages may wait to be written.
const QUEUE: usize = 256;

/// How long a server gets to end by itself, and then again to end on SIGTERM.
const GRACE: Duration = Duration::from_millis(1500);

/// A connection to a child process.
#[derive(Debug)]
pub(crate) struct Pipe {
    out: mpsc::Sender<Bytes>,
    pub(crate) board: Arc<Board>,
    pub(crate) last_words: Arc<LastWords>,
    stop: CancellationToken,
}

impl Pipe {
    /// Starts the server. Nothing has been said to it yet.
    pub(crate) fn start(command: &ServerCommand, options: &Options) -> Result<Self, ConnectError> {
        let Options { name, max_frame, inbox, reaper, tasks, masker, spool, .. } = options.clone();
        let mut child = spawn(command)?;
        let group = child.id().unwrap_or_default();
        reaper.add(group);
        let (out, outgoing) = mpsc::channel(QUEUE);
        let board = Arc::new(Board::default());
        let last_words = Arc::new(LastWords::new(masker));
        let stop = CancellationToken::new();
        let (ended, spoken) = (CancellationToken::new(), CancellationToken::new());
        let (deaf, gone) = (CancellationToken::new(), CancellationToken::new());
        if let Some(stdin) = child.stdin.take() {
            let (stop, deaf) = (stop.clone(), deaf.clone());
            tasks.spawn(async move {
                write_lines(stdin, outgoing, stop).await;
                deaf.cancel();
            });
        }
        if let Some(stderr) = child.stderr.take() {
            let (name, words, spoken) = (name.clone(), Arc::clone(&last_words), spoken.clone());
            let gone = gone.clone();
            tasks.spawn(async move {
                // A child that got away may hold the stream open for ever.
                tokio::select! {
                    () = log_lines(stderr, &name, &words) => {}
                    () = gone.cancelled() => {}
                }
                spoken.cancel();
            });
        }
        if let Some(stdout) = child.stdout.take() {
            let reader = LineReader { spool, ..LineReader::new(stdout, max_frame) };
            let (board, replies) = (Arc::clone(&board), Replies(out.clone(), tasks.clone()));
            let (ended, gone, words) = (ended.clone(), gone.clone(), Arc::clone(&last_words));
            tasks.spawn(async move {
                tokio::select! {
                    () = read_frames(reader, &name, &board, &*inbox, &replies, &words) => {}
                    () = gone.cancelled() => {}
                }
                ended.cancel();
            });
        }
        let (board2, words, stop2) = (Arc::clone(&board), Arc::clone(&last_words), stop.clone());
        tasks.spawn(async move {
            let cause = tokio::select! {
                cause = end_of(&mut child, &ended, &deaf) => cause,
                () = stop2.cancelled() => {
                    // Whoever waits need not wait until the process has ended.
                    board2.close("it was shut down");
                    drop(timeout(GRACE, child.wait()).await);
                    String::new()
                }
            };
            // Its last words may still be in the pipe; a child of its own may hold that open.
            drop(timeout(Duration::from_millis(200), spoken.cancelled()).await);
            board2.close(&words.after(&cause));
            stop2.cancel();
            end_group(&mut child, group).await;
            gone.cancel();
            reaper.remove(group);
        });
        Ok(Self { out, board, last_words, stop })
    }

    pub(crate) async fn request(&self, id: u64, frame: Bytes, aside: Aside) -> Answer {
        let unavailable = |cause| RequestError::NotSent { cause };
        let answer = self.board.wait_for(id, aside).map_err(unavailable)?;
        self.send(frame).await?;
        match answer.await {
            Ok(answer) => answer,
            Err(_) => Err(RequestError::Lost { cause: self.board.closed().await.cause }),
        }
    }

    pub(crate) async fn send(&self, frame: Bytes) -> Result<(), RequestError> {
        if self.out.send(frame).await.is_ok() {
            return Ok(());
        }
        // Nobody takes it: the process is ending, and its supervisor knows why.
        Err(RequestError::NotSent { cause: self.board.closed().await.cause })
    }

    /// Sends if there is room, for notes that nobody waits for.
    pub(crate) fn try_send(&self, frame: Bytes) {
        if self.out.try_send(frame).is_err() {
            tracing::debug!("a note to a server was dropped: its queue is full or closed");
        }
    }

    pub(crate) fn close(&self) {
        self.stop.cancel();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

fn spawn(command: &ServerCommand) -> Result<Child, ConnectError> {
    if let Some(cwd) = command.cwd.as_ref().filter(|it| !it.is_dir()) {
        return Err(ConnectError::WorkingFolder { path: cwd.display().to_string() });
    }
    let mut process = Command::new(&command.program);
    process.args(&command.args).env_clear().envs(command.env.iter().cloned());
    if let Some(cwd) = &command.cwd {
        process.current_dir(cwd);
    }
    process.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    process.process_group(0).kill_on_drop(true);
    process.spawn().map_err(|error| ConnectError::Spawn {
        program: command.shown.clone(),
        not_found: error.kind() == io::ErrorKind::NotFound,
        cause: error.to_string(),
    })
}

/// Waits until the server has ended, or no longer speaks, or no longer listens; says why.
async fn end_of(
    child: &mut Child,
    output_ended: &CancellationToken,
    deaf: &CancellationToken,
) -> String {
    let left = tokio::select! {
        status = child.wait() => {
            // What it wrote before it ended may still be in the pipe.
            drop(timeout(Duration::from_millis(200), output_ended.cancelled()).await);
            return ended(&status);
        }
        () = output_ended.cancelled() => "it closed its output",
        () = deaf.cancelled() => "it closed its input",
    };
    match timeout(GRACE, child.wait()).await {
        Ok(status) => ended(&status),
        Err(_) => left.to_owned(),
    }
}

fn ended(status: &io::Result<ExitStatus>) -> String {
    let Ok(status) = status else { return "it ended".to_owned() };
    if let Some(code) = status.code() {
        return format!("it exited with code {code}");
    }
    let number = std::os::unix::process::ExitStatusExt::signal(status).unwrap_or_default();
    match Signal::try_from(number) {
        Ok(signal) => format!("it was ended by {signal}"),
        Err(_) => format!("it was ended by signal {number}"),
    }
}

/// Ends what is left of the process and of what it started: first kindly, then not.
async fn end_group(child: &mut Child, group: u32) {
    signal(group, Some(Signal::SIGTERM));
    let begin = Instant::now();
    while begin.elapsed() < GRACE {
        // Collected, so that the group is empty once its last process has ended.
        child.try_wait().ok();
        if !signal(group, None) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    signal(group, Some(Signal::SIGKILL));
    child.wait().await.ok();
}

/// Sends a signal to a group, or none at all. Returns whether anybody is there.
fn signal(group: u32, signal: Option<Signal>) -> bool {
    let group = i32::try_from(group).unwrap_or_default();
    1 < group && killpg(Pid::from_raw(group), signal).is_ok()
}

async fn write_lines(
    mut stdin: ChildStdin,
    mut outgoing: mpsc::Receiver<Bytes>,
    stop: CancellationToken,
) {
    let mut batch = Vec::with_capacity(64);
    let mut text = Vec::new();
    loop {
        tokio::select! {
            taken = outgoing.recv_many(&mut batch, 64) => if taken == 0 { return },
            () = stop.cancelled() => return,
        }
        text.clear();
        for frame in batch.drain(..) {
            text.extend_from_slice(&one_line(frame));
            text.push(b'\n');
        }
        let written = tokio::select! {
            written = stdin.write_all(&text) => written,
            () = stop.cancelled() => return,
        };
        if written.is_err() || stdin.flush().await.is_err() {
            return;
        }
        text.shrink_to(64 * 1024);
    }
}

/// Where answers to questions of the server go when they are known.
struct Replies(mpsc::Sender<Bytes>, TaskTracker);

impl Replies {
    fn send_later(&self, answer: Later) {
        let out = self.0.clone();
        self.1.spawn(async move {
            if out.try_send(answer.await).is_err() {
                tracing::debug!("an answer to a server was dropped: its queue is full or closed");
            }
        });
    }
}

/// Hands every message to whom it concerns, until the output ends.
async fn read_frames<R: AsyncRead + Unpin>(
    mut reader: LineReader<R>,
    name: &str,
    board: &Arc<Board>,
    inbox: &dyn Inbox,
    replies: &Replies,
    words: &LastWords,
) {
    let mut garbage = 0_u64;
    loop {
        let message = match reader.next_message(|| board.wants_aside()).await {
            Ok(Some(message)) => message,
            Ok(None) => return,
            Err(error) => {
                board.close(&error.to_string());
                return;
            }
        };
        match receive(&message, None, board, inbox) {
            Ok(answers) => answers.into_iter().for_each(|it| replies.send_later(it)),
            Err(error) => {
                garbage += 1;
                if garbage <= 5 || garbage.is_power_of_two() {
                    // More than is shown is masked: a secret that is cut in two is not known for one.
                    let begin = plain(&message.text[..message.text.len().min(2048)]);
                    let begin = words.masker.mask(&begin);
                    let begin = &begin[..begin.floor_char_boundary(120)];
                    tracing::warn!(server = name, count = garbage, %error, "not a message: {begin}");
                }
            }
        }
    }
}

/// A line, or the beginning of one that is longer than is wanted; that is still in the buffer.
enum Line {
    Whole(Bytes),
    Begun,
}

/// Lines out of a stream of bytes, none longer than a limit.
#[derive(Debug)]
struct LineReader<R> {
    stream: R,
    buffer: BytesMut,
    searched: usize,
    limit: usize,
    /// Where large parts of messages go.
    spool: Option<Spool>,
}

impl<R: AsyncRead + Unpin> LineReader<R> {
    fn new(stream: R, limit: usize) -> Self {
        Self { stream, buffer: BytesMut::new(), searched: 0, limit, spool: None }
    }

    /// The next message; large parts of it are put aside where that is wanted when it turns out to be large, or where
    /// it is too large to be kept: then it alone is refused.
    async fn next_message(&mut self, aside: impl Fn() -> bool) -> io::Result<Option<Message>> {
        let Some(spool) = self.spool.as_ref().filter(|it| it.from < self.limit) else {
            return Ok(self.next_line().await?.map(Message::from));
        };
        let mut line = self.line(spool.from).await;
        if matches!(line, Some(Line::Begun)) && !aside() {
            line = self.line(self.limit).await;
        }
        match line {
            None => Ok(None),
            Some(Line::Whole(line)) => Ok(Some(line.into())),
            Some(Line::Begun) => Box::pin(self.sift()).await.map_err(io::Error::other),
        }
    }

    /// A message of which more than enough has been read to know that it is large.
    async fn sift(&mut self) -> Result<Option<Message>, SiftError> {
        let Some(spool) = &self.spool else { return Ok(None) };
        let mut sifting = Sifting::new(spool, self.limit);
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let rest = self.buffer.split_to(self.searched + at).freeze();
                drop(self.buffer.split_to(1));
                self.searched = 0;
                return sifting.end(rest).await.map(Some);
            }
            sifting = sifting.feed(self.buffer.split().freeze()).await?;
            self.searched = 0;
            self.buffer.reserve(64 * 1024);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return Ok(None),
                Ok(_) => {}
            }
        }
    }

    /// The next line that is not empty, without its end; what stands after the last line end when
    /// the stream ends is no line.
    async fn next_line(&mut self) -> io::Result<Option<Bytes>> {
        match self.line(self.limit).await {
            None => Ok(None),
            Some(Line::Whole(line)) => Ok(Some(line)),
            Some(Line::Begun) => {
                let text = format!("it sent a line of over {} bytes, the limit", self.limit);
                Err(io::Error::other(text))
            }
        }
    }

    async fn line(&mut self, limit: usize) -> Option<Line> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.searched..]) {
                let mut line = self.buffer.split_to(self.searched + at + 1);
                self.searched = 0;
                line.truncate(line.len() - 1);
                if !line.trim_ascii().is_empty() {
                    return Some(Line::Whole(line.freeze()));
                }
                continue;
            }
            self.searched = self.buffer.len();
            if limit < self.buffer.len() {
                return Some(Line::Begun);
            }
            self.buffer.reserve(64 * 1024);
            match self.stream.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    /// Forgets what has been read of a line that is too long.
    async fn skip_line(&mut self) {
        self.buffer.clear();
        self.searched = 0;
        tokio::task::yield_now().await;
    }
}
