//! Somebody who reads from a place on: from memory where that is at hand, else from the file.

use std::{path::PathBuf, sync::Arc};

use parking_lot::Mutex;
use rusqlite::Connection;
use tokio::sync::{Semaphore, watch};

use crate::{
    Batch, BusError, Filter, Follow, Record,
    bus::BoxFuture,
    store,
    tail::{Ends, Tail},
};

/// So many events at a time.
const PAGE: usize = 2048;

/// So many read the file at the same time.
const READERS: usize = 4;

/// Those who read the file.
#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    idle: Mutex<Vec<Connection>>,
    room: Arc<Semaphore>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, idle: Mutex::default(), room: Arc::new(Semaphore::new(READERS)) }
    }

    /// Reads something.
    pub(crate) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, BusError> {
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.map_err(|_closed| BusError::Closed)?;
        let this = Arc::clone(self);
        let reading = tokio::task::spawn_blocking(move || {
            // Held until it is done, also where nobody waits for it any more.
            let _room = room;
            let idle = this.idle.lock().pop();
            let connection = match idle {
                Some(connection) => connection,
                None => store::open_to_read(&this.path)
                    .map_err(|error| BusError::Unavailable(error.to_string()))?,
            };
            let found = work(&connection);
            if found.is_ok() {
                this.idle.lock().push(connection);
            }
            found.map_err(|error| BusError::Unavailable(store::said(&error)))
        });
        reading.await.unwrap_or(Err(BusError::Closed))
    }

    pub(crate) fn close(&self) {
        self.room.close();
        self.idle.lock().clear();
    }
}

#[derive(Debug)]
pub(crate) struct Follower {
    pub(crate) tail: Arc<Tail>,
    pub(crate) readers: Arc<Readers>,
    pub(crate) ends: watch::Receiver<Ends>,
    pub(crate) filter: Filter,
    /// The last that was looked at.
    pub(crate) cursor: u64,
}

impl Follow for Follower {
    fn next(&mut self) -> BoxFuture<'_, Result<Batch, BusError>> {
        Box::pin(self.read())
    }
}

impl Follower {
    async fn read(&mut self) -> Result<Batch, BusError> {
        loop {
            let ends = *self.ends.borrow_and_update();
            if ends.last <= self.cursor {
                if ends.closed || self.ends.changed().await.is_err() {
                    return Err(BusError::Closed);
                }
                continue;
            }
            // The place moves only when nothing more is waited for: whoever drops this loses nothing.
            let mut batch = match self.tail.after(self.cursor, PAGE).filter(|it| !it.is_empty()) {
                Some(records) => Batch {
                    passed: records.last().map_or(self.cursor, |it| it.seq),
                    records,
                    ..Batch::default()
                },
                None => self.read_file().await?,
            };
            self.cursor = batch.passed;
            batch.records.retain(|it| self.filter.matches(&it.name));
            if !batch.records.is_empty() || 0 < batch.missed || !batch.damaged.is_empty() {
                return Ok(batch);
            }
        }
    }

    async fn read_file(&self) -> Result<Batch, BusError> {
        let after = self.cursor;
        let (page, first) =
            self.readers.read(move |connection| store::page(connection, after, PAGE)).await?;
        for places in &page.damaged {
            tracing::error!(?places, "events are damaged on disk and were left out");
        }
        Ok(Batch {
            records: page.records.into_iter().map(Arc::<Record>::new).collect(),
            passed: page.passed,
            missed: first.saturating_sub(after + 1),
            damaged: page.damaged,
        })
    }
}
