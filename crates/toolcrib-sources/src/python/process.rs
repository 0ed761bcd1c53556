//! One Python process: how it is started, what it says on standard error, and how it is ended.
//!
//! It leads a process group of its own and gets no environment but what it is given. Whatever tools print
//! arrives on its standard error and becomes log lines.

use std::{
    collections::{HashMap, VecDeque},
    io,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use super::package;
use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};
use parking_lot::Mutex;
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, BufReader},
    process::{Child, ChildStderr, ChildStdin, ChildStdout, Command},
    time::timeout,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use toolcrib_wire::{
    Reaper,
    text::{Masker, plain},
};

/// The longest line that is logged whole.
const LONGEST_LINE: usize = 8192;

/// How many lines of one process are logged in a second; more are counted.
const LINES_A_SECOND: u32 = 200;

/// How many of its last lines tell why a process ended.
const LAST_LINES: usize = 6;

/// How to start a process.
#[derive(Debug, Clone)]
pub(super) struct Starting {
    pub(super) interpreter: PathBuf,
    /// The folder of our package.
    pub(super) package: PathBuf,
    /// Where compiled modules are kept.
    pub(super) compiled: PathBuf,
    pub(super) workspace: PathBuf,
    pub(super) env: Vec<(String, String)>,
    pub(super) masker: Masker,
    pub(super) reaper: Arc<Reaper>,
    pub(super) tasks: TaskTracker,
}

/// A process. It ends, with all that it started in its group, when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    group: i32,
    pub(super) words: Arc<Words>,
    reaper: Arc<Reaper>,
    /// A child that got away may hold standard error open for ever.
    gone: CancellationToken,
}

/// What a process says on standard error, and for which tool.
#[derive(Debug, Default)]
pub(super) struct Words {
    last: Mutex<VecDeque<String>>,
    running: Mutex<Running>,
    masker: Masker,
}

/// Which calls run, and which ran last: a line may come a moment after its call has ended.
#[derive(Debug, Default)]
struct Running {
    tools: HashMap<u64, Arc<str>>,
    ended: Option<(u64, Arc<str>)>,
}

impl Process {
    pub(super) fn start(how: &Starting) -> io::Result<(Self, ChildStdin, ChildStdout)> {
        // Somebody may have tidied up.
        package::unpack_at(&how.package)?;
        let mut command = Command::new(&how.interpreter);
        command.arg("-I").arg("-X").arg(option("pycache_prefix", &how.compiled));
        command.arg("-c").arg(BEGIN).arg(&how.package);
        command.env_clear().envs(how.env.iter().cloned()).current_dir(&how.workspace);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.process_group(0).kill_on_drop(true).spawn()?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("it has no pipes"));
        };
        let id = child.id().unwrap_or_default();
        how.reaper.add(id);
        let words = Arc::new(Words { masker: how.masker.clone(), ..Words::default() });
        let listening = Arc::clone(&words);
        let gone = CancellationToken::new();
        let ended = gone.clone();
        how.tasks.spawn(async move {
            tokio::select! {
                () = listening.listen(stderr) => {}
                () = ended.cancelled() => {}
            }
        });
        let group = i32::try_from(id).unwrap_or_default();
        Ok((Self { child, group, words, reaper: Arc::clone(&how.reaper), gone }, stdin, stdout))
    }

    /// Interrupts what runs just now. Nothing happens where nothing runs.
    pub(super) fn interrupt(&self) {
        if 1 < self.group {
            kill(Pid::from_raw(self.group), Signal::SIGINT).ok();
        }
    }

    /// Resolves when it has ended.
    pub(super) async fn ended(&mut self) {
        self.child.wait().await.ok();
    }

    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    pub(super) fn id(&self) -> i32 {
        self.group
    }

    /// Why it has ended, or is about to.
    pub(super) async fn cause(&mut self) -> String {
        let status = timeout(Duration::from_secs(1), self.child.wait()).await;
        let cause = match status {
            Ok(Ok(status)) => ended(status),
            _ => "it closed its pipe".to_owned(),
        };
        // Its last words may still be in the pipe.
        tokio::time::sleep(Duration::from_millis(20)).await;
        match self.words.last() {
            Some(words) => format!("{cause}: {words}"),
            None => cause,
        }
    }
}

/// The first thing that runs; the package is named by the only argument.
const BEGIN: &str =
    "import sys; sys.path.insert(0, sys.argv.pop()); from toolcrib._worker import main; main()";

fn option(name: &str, value: &Path) -> std::ffi::OsString {
    let mut text = std::ffi::OsString::from(format!("{name}="));
    text.push(value);
    text
}

fn ended(status: ExitStatus) -> String {
    if let Some(code) = status.code() {
        return format!("it ended with code {code}");
    }
    let number = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or_default();
    match Signal::try_from(number) {
        Ok(signal) => format!("it was ended by {signal}"),
        Err(_) => format!("it was ended by signal {number}"),
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if 1 < self.group {
            killpg(Pid::from_raw(self.group), Signal::SIGKILL).ok();
            self.reaper.remove(u32::try_from(self.group).unwrap_or_default());
        }
        self.gone.cancel();
    }
}

impl Words {
    pub(super) fn begin(&self, call: u64, tool: &Arc<str>) {
        self.running.lock().tools.insert(call, Arc::clone(tool));
    }

    pub(super) fn end(&self, call: u64) {
        let mut running = self.running.lock();
        if let Some(tool) = running.tools.remove(&call) {
            running.ended = Some((call, tool));
        }
    }

    /// The last line that says something.
    fn last(&self) -> Option<String> {
        self.last.lock().back().cloned()
    }

    /// The tool that a line belongs to: by the mark that our own writer puts before it, or because only
    /// one runs.
    fn whose<'a>(&self, line: &'a [u8]) -> (Option<Arc<str>>, &'a [u8]) {
        let running = self.running.lock();
        let marked = line.strip_prefix(b"\x1e").and_then(|it| {
            let end = it.iter().take(20).position(|it| *it == b'\x1f')?;
            let call: u64 = std::str::from_utf8(&it[..end]).ok()?.parse().ok()?;
            Some((call, &it[end + 1..]))
        });
        if let Some((call, rest)) = marked {
            let ended = running.ended.as_ref().filter(|(id, _)| *id == call).map(|(_, it)| it);
            return (running.tools.get(&call).or(ended).cloned(), rest);
        }
        let only = Some(&running.tools).filter(|it| it.len() == 1);
        let only = only.and_then(|it| it.values().next());
        let last = running.ended.as_ref().map(|(_, it)| it);
        (only.or(last.filter(|_| running.tools.is_empty())).cloned(), line)
    }

    async fn listen(&self, stderr: ChildStderr) {
        let mut reader = BufReader::with_capacity(16 * 1024, stderr);
        let mut line = Vec::new();
        let (mut second, mut logged, mut left_out) = (Instant::now(), 0, 0_u64);
        while let Ok(true) = next_line(&mut reader, &mut line).await {
            if Duration::from_secs(1) < second.elapsed() {
                if 0 < left_out {
                    tracing::info!("{left_out} lines of a tool were left out");
                }
                (second, logged, left_out) = (Instant::now(), 0, 0);
            }
            logged += 1;
            if LINES_A_SECOND < logged {
                left_out += 1;
                continue;
            }
            self.take(&line);
        }
    }

    fn take(&self, line: &[u8]) {
        let (tool, text) = self.whose(line);
        let text = plain(text);
        let text = self.masker.mask(&text);
        if text.trim().is_empty() {
            return;
        }
        match tool {
            Some(tool) => tracing::info!(tool = &*tool, "{text}"),
            None => tracing::info!("{text}"),
        }
        let mut last = self.last.lock();
        if last.len() == LAST_LINES {
            last.pop_front();
        }
        last.push_back(text.into_owned());
    }
}

/// Reads a line, or as much of one as may be logged at once. Says whether there was any.
async fn next_line<R: AsyncBufRead + Unpin>(
    reader: &mut R,
    line: &mut Vec<u8>,
) -> io::Result<bool> {
    line.clear();
    loop {
        let found = reader.fill_buf().await?;
        if found.is_empty() {
            return Ok(!line.is_empty());
        }
        let end = memchr::memchr(b'\n', found);
        let room = LONGEST_LINE - line.len();
        let taken = end.unwrap_or(found.len()).min(room);
        line.extend_from_slice(&found[..taken]);
        let whole = end.is_some_and(|it| it == taken);
        reader.consume(taken + usize::from(whole));
        if whole || LONGEST_LINE <= line.len() {
            return Ok(true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_belongs_to_the_tool_that_wrote_it() {
        let words = Words::default();
        let tool = |line: &str| words.whose(line.as_bytes()).0.map(|it| it.to_string());
        assert_eq!(tool("x"), None);
        words.begin(7, &"a".into());
        assert_eq!(tool("x").as_deref(), Some("a"));
        words.begin(8, &"b".into());
        assert_eq!(tool("x"), None, "it may be of either");
        assert_eq!(tool("\x1e8\x1fx").as_deref(), Some("b"));
        words.end(8);
        assert_eq!(tool("\x1e8\x1flate").as_deref(), Some("b"));
        assert_eq!(words.whose(b"\x1e8\x1flate").1, b"late");
        assert_eq!(words.whose(b"\x1enothing").1, b"\x1enothing");
    }

    #[tokio::test]
    async fn a_line_without_an_end_is_taken_in_pieces() {
        let text = [vec![b'x'; LONGEST_LINE + 3], b"\n\nlast".to_vec()].concat();
        let mut reader = BufReader::new(text.as_slice());
        let (mut line, mut lengths) = (Vec::new(), Vec::new());
        while next_line(&mut reader, &mut line).await.unwrap() {
            lengths.push(line.len());
        }
        assert_eq!(lengths, [LONGEST_LINE, 3, 0, 4]);
    }
}
