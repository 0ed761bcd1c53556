//! What was written last, in memory: whoever follows closely never goes to the disk.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::Mutex;
use tokio::sync::watch;

use crate::Record;

/// So many events, and so many bytes of them, are at hand.
const MAX_RECORDS: usize = 4096;
const MAX_BYTES: usize = 8 * 1024 * 1024;

/// So many bytes of events are handed out at a time, and one event at least.
pub(crate) const PIECE: usize = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Tail {
    recent: Mutex<Recent>,
    ends: watch::Sender<Ends>,
}

/// The oldest that is kept, and the last there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) closed: bool,
}

#[derive(Debug, Default)]
struct Recent {
    records: VecDeque<Arc<Record>>,
    bytes: usize,
}

impl Tail {
    pub(crate) fn new(first: u64, last: u64) -> Self {
        let ends = watch::Sender::new(Ends { first, last, closed: false });
        Self { recent: Mutex::default(), ends }
    }

    pub(crate) fn ends(&self) -> Ends {
        *self.ends.borrow()
    }

    pub(crate) fn watch(&self) -> watch::Receiver<Ends> {
        self.ends.subscribe()
    }

    /// These are on disk.
    pub(crate) fn push(&self, records: Vec<Arc<Record>>) {
        let Some(last) = records.last().map(|it| it.seq) else { return };
        {
            let mut recent = self.recent.lock();
            for record in records {
                recent.bytes += record.text.len();
                recent.records.push_back(record);
            }
            while MAX_RECORDS < recent.records.len() || MAX_BYTES < recent.bytes {
                let Some(oldest) = recent.records.pop_front() else { break };
                recent.bytes -= oldest.text.len();
            }
        }
        self.ends.send_modify(|it| it.last = last);
    }

    /// Everything before this is gone.
    pub(crate) fn cut(&self, first: u64) {
        let mut recent = self.recent.lock();
        while recent.records.front().is_some_and(|it| it.seq < first) {
            let gone = recent.records.pop_front();
            recent.bytes -= gone.map(|it| it.text.len()).unwrap_or_default();
        }
        drop(recent);
        self.ends.send_if_modified(|it| std::mem::replace(&mut it.first, first) != first);
    }

    /// What is on disk is this, and nothing of it is at hand.
    pub(crate) fn reset(&self, first: u64, last: u64) {
        let mut recent = self.recent.lock();
        (recent.bytes, recent.records) = (0, VecDeque::new());
        drop(recent);
        self.ends.send_modify(|it| (it.first, it.last) = (first, last));
    }

    pub(crate) fn close(&self) {
        self.ends.send_modify(|it| it.closed = true);
    }

    /// So many events behind a place, if they are all at hand.
    pub(crate) fn after(&self, seq: u64, limit: usize) -> Option<Vec<Arc<Record>>> {
        let recent = self.recent.lock();
        let first = recent.records.front()?.seq;
        let skip = usize::try_from((seq + 1).checked_sub(first)?).ok()?;
        let mut bytes = 0;
        let few = |it: &&Arc<Record>| {
            let room = bytes < PIECE;
            bytes += it.text.len();
            room
        };
        Some(recent.records.iter().skip(skip).take(limit).take_while(few).cloned().collect())
    }
}
