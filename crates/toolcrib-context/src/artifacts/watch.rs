//! A reader does not wait for ever, and may go away: whatever goes over content asks here whether to go on.
//!
//! All scanning goes through [`Watched`], which asks before each read. Only what works in memory has to ask itself.

use std::{
    io::{self, Read, Seek, SeekFrom},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::{Content, PieceError, ReadLimits, Selector};

/// How long a piece may take where nobody says.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why it was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum Halt {
    #[error("it takes too long")]
    Late,
    #[error("it was cancelled")]
    Cancelled,
}

impl From<Halt> for io::Error {
    fn from(halt: Halt) -> Self {
        Self::new(io::ErrorKind::TimedOut, halt)
    }
}

/// Until when to go on.
#[derive(Debug, Clone)]
pub(super) struct Watch {
    until: Instant,
    cancel: Option<Arc<AtomicBool>>,
}

impl Watch {
    pub(super) fn of(limits: &ReadLimits) -> Self {
        let until = limits.deadline.unwrap_or_else(|| Instant::now() + PATIENCE);
        Self { until, cancel: limits.cancel.clone() }
    }

    pub(super) fn check(&self) -> Result<(), Halt> {
        if self.cancel.as_ref().is_some_and(|it| it.load(Ordering::Relaxed)) {
            return Err(Halt::Cancelled);
        }
        if self.until <= Instant::now() { Err(Halt::Late) } else { Ok(()) }
    }
}

/// Content that is read under watch.
pub(super) struct Watched<'a> {
    pub(super) content: &'a mut dyn Content,
    pub(super) watch: &'a Watch,
}

impl Read for Watched<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.watch.check()?;
        self.content.read(buffer)
    }
}

impl Seek for Watched<'_> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.content.seek(to)
    }
}

/// What is said where something was given up; any other error stays what it is.
pub(super) fn said(error: PieceError, selector: &Selector) -> PieceError {
    let PieceError::Io(error) = error else { return error };
    match error.downcast::<Halt>() {
        Ok(Halt::Late) => PieceError::TooSlow { cure: cure(selector) },
        Ok(Halt::Cancelled) => PieceError::Cancelled,
        Err(error) => PieceError::Io(error),
    }
}

/// What to ask for instead.
fn cure(selector: &Selector) -> &'static str {
    match selector {
        Selector::Path { .. } => {
            "name more of the path, or ask for less of an array, such as [0:1000]"
        }
        Selector::Grep { .. } => {
            "a simpler expression may do; `head` with `offset` reads any place"
        }
        Selector::Rows { .. } | Selector::Aggregate(_) | Selector::Keys { .. } => {
            "what is near the beginning comes at once; `head` with `offset` reads any place"
        }
        Selector::Lines { .. } => "`tail`, or `head` with `offset`, read any place at once",
        Selector::Head { .. } | Selector::Tail { .. } | Selector::Bytes { .. } => {
            "try again, or ask for less"
        }
    }
}
