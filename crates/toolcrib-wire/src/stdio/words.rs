//! What a server says on standard error: some of it goes to the log, the last of it into the cause when the
//! server dies. A server may say as much as it likes; neither memory nor a disk fills up with it.

use std::{collections::VecDeque, time::Duration};

use parking_lot::Mutex;
use tokio::{io::AsyncRead, time::Instant};

use super::LineReader;
use crate::text::{Masker, plain};

/// How much of what a server last said on standard error is kept.
const LAST_WORDS: usize = 2048;

/// The longest line of standard error that is logged whole.
const LOG_LINE: usize = 8192;

/// How much of what a server says on standard error is logged in so long; the rest is counted.
const LOG_ROOM: usize = 64 * 1024;
const LOG_TIME: Duration = Duration::from_secs(10);

/// What a server last said on standard error.
#[derive(Debug)]
pub(crate) struct LastWords {
    lines: Mutex<VecDeque<String>>,
    pub(super) masker: Masker,
}

impl LastWords {
    pub(super) fn new(masker: Masker) -> Self {
        Self { lines: Mutex::default(), masker }
    }

    fn push(&self, line: String) {
        let mut lines = self.lines.lock();
        lines.push_back(line);
        while LAST_WORDS < lines.iter().map(String::len).sum() && 1 < lines.len() {
            lines.pop_front();
        }
    }

    /// `cause`, and what the server last said.
    pub(crate) fn after(&self, cause: &str) -> String {
        let lines = self.lines.lock();
        let last: Vec<&str> = lines.iter().rev().take(3).map(|it| it.trim()).collect();
        if last.is_empty() {
            return cause.to_owned();
        }
        let said: Vec<&str> = last.into_iter().rev().collect();
        let mut said = said.join(" | ");
        if 400 < said.len() {
            let mut begin = said.len() - 400;
            while !said.is_char_boundary(begin) {
                begin += 1;
            }
            said.replace_range(..begin, "…");
        }
        format!("{cause}; it last said: {said}")
    }
}

/// Logs what a server says on standard error, until it says no more.
pub(super) async fn log_lines<R: AsyncRead + Unpin>(stderr: R, name: &str, words: &LastWords) {
    let mut reader = LineReader::new(stderr, LOG_LINE);
    let mut room = Room::new();
    let left_out = |lines: u64| {
        if 0 < lines {
            tracing::warn!(target: "toolcrib::stderr", server = name, lines, "it says too much: some was left out");
        }
    };
    loop {
        let next = tokio::select! {
            next = reader.next_line() => next,
            () = tokio::time::sleep_until(room.end), if 0 < room.left_out => {
                left_out(room.anew());
                continue;
            }
        };
        match next {
            Ok(Some(line)) if line.trim_ascii().is_empty() => {}
            Ok(Some(line)) => {
                let line = words.masker.mask(&plain(&line)).into_owned();
                if room.end <= Instant::now() {
                    left_out(room.anew());
                }
                if room.takes(line.len()) {
                    tracing::info!(target: "toolcrib::stderr", server = name, "{line}");
                }
                words.push(line);
            }
            Ok(None) => break,
            Err(_) => reader.skip_line().await,
        }
    }
    left_out(room.left_out);
}

/// How much more of a server's words the log takes for now: a server that shouts must not fill a disk.
#[derive(Debug)]
struct Room {
    bytes: usize,
    left_out: u64,
    end: Instant,
}

impl Room {
    fn new() -> Self {
        Self { bytes: LOG_ROOM, left_out: 0, end: Instant::now() + LOG_TIME }
    }

    /// Begins a new stretch of time; says how many lines were left out of the last.
    fn anew(&mut self) -> u64 {
        std::mem::replace(self, Self::new()).left_out
    }

    fn takes(&mut self, bytes: usize) -> bool {
        let taken = bytes <= self.bytes;
        if taken {
            self.bytes -= bytes;
        } else {
            self.left_out += 1;
        }
        taken
    }
}
