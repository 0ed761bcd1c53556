//! Sifting beside whoever reads: it takes time, and writes to disk.

use bytes::Bytes;
use tokio::task::spawn_blocking;

use super::{Message, SiftError, Sifter};
use crate::spool::Spool;

/// How much is handed over at a time.
const BATCH: usize = 256 * 1024;

/// How much is looked at at a time: what is copied before it is put aside is no more than that.
const PIECE: usize = 64 * 1024;

/// A message that is being sifted.
#[derive(Debug)]
pub(crate) struct Sifting {
    sifter: Box<Sifter>,
    waiting: Vec<Bytes>,
    size: usize,
}

impl Sifting {
    /// A message of which at most so much may be kept in memory.
    pub(crate) fn new(spool: &Spool, max_kept: usize) -> Self {
        let sifter = Box::new(Sifter::new(spool.clone(), max_kept));
        Self { sifter, waiting: Vec::new(), size: 0 }
    }

    /// With the next piece. Whoever reads waits until there is room for more.
    pub(crate) async fn feed(mut self, piece: Bytes) -> Result<Self, SiftError> {
        self.size += piece.len();
        self.waiting.push(piece);
        if self.size < BATCH {
            return Ok(self);
        }
        let sifted = spawn_blocking(|| {
            self.sift()?;
            Ok(self)
        });
        sifted.await?
    }

    /// With the last piece.
    pub(crate) async fn end(self, piece: Bytes) -> Result<Message, SiftError> {
        self.feed(piece).await?.finish().await
    }

    /// Everything has come.
    pub(crate) async fn finish(mut self) -> Result<Message, SiftError> {
        let sifted = spawn_blocking(|| {
            self.sift()?;
            Ok(self.sifter.finish())
        });
        sifted.await?
    }

    fn sift(&mut self) -> Result<(), SiftError> {
        self.size = 0;
        let pieces = std::mem::take(&mut self.waiting);
        pieces.iter().flat_map(|it| it.chunks(PIECE)).try_for_each(|it| self.sifter.feed(it))
    }
}
