//! What waits for one reader: bounded by how many messages there are, and by what they weigh together.
//!
//! A message that is heavier than everything may be still gets through: it waits until nothing else does.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

/// So many bytes may wait for one reader.
pub(crate) const MAX_WAITING: usize = 1024 * 1024;

/// What has a weight.
pub(crate) trait Weigh {
    /// In bytes.
    fn weight(&self) -> usize;
}

impl Weigh for Bytes {
    fn weight(&self) -> usize {
        self.len()
    }
}

/// Where messages are put.
#[derive(Debug)]
pub(crate) struct Sender<T> {
    items: mpsc::Sender<Item<T>>,
    room: Arc<Semaphore>,
}

/// A message, and the room it takes until somebody has it.
type Item<T> = (T, OwnedSemaphorePermit);

/// Where messages are taken out.
#[derive(Debug)]
pub(crate) struct Receiver<T>(mpsc::Receiver<Item<T>>);

/// There is no room, or nobody reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotTaken;

/// A queue for so many messages.
pub(crate) fn queue<T>(messages: usize) -> (Sender<T>, Receiver<T>) {
    let (items, taken) = mpsc::channel(messages);
    (Sender { items, room: Arc::new(Semaphore::new(MAX_WAITING)) }, Receiver(taken))
}

/// How much room something of this weight takes.
fn share(weight: usize) -> u32 {
    u32::try_from(weight.min(MAX_WAITING)).unwrap_or(u32::MAX)
}

impl<T> Sender<T> {
    /// Whether something of this weight would be taken now.
    pub(crate) fn has_room(&self, weight: usize) -> bool {
        0 < self.items.capacity() && share(weight) as usize <= self.room.available_permits()
    }

    /// Waits until something of this weight would be taken, or nobody reads.
    pub(crate) async fn room(&self, weight: usize) {
        let _bytes = self.room.acquire_many(share(weight)).await;
        drop(self.items.reserve().await);
    }

    /// Resolves when nobody reads any more.
    pub(crate) async fn closed(&self) {
        self.items.closed().await;
    }

    /// Whether nobody reads any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.items.is_closed()
    }
}

impl<T: Weigh> Sender<T> {
    /// Puts something in, where there is room.
    pub(crate) fn try_send(&self, item: T) -> Result<(), NotTaken> {
        let room = Arc::clone(&self.room).try_acquire_many_owned(share(item.weight()));
        self.items.try_send((item, room.map_err(|_gone| NotTaken)?)).map_err(|_gone| NotTaken)
    }

    /// Puts something in as soon as there is room.
    pub(crate) async fn send(&self, item: T) -> Result<(), NotTaken> {
        let room = Arc::clone(&self.room).acquire_many_owned(share(item.weight())).await;
        self.items.send((item, room.map_err(|_gone| NotTaken)?)).await.map_err(|_gone| NotTaken)
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        Self { items: self.items.clone(), room: Arc::clone(&self.room) }
    }
}

impl<T> Receiver<T> {
    pub(crate) async fn recv(&mut self) -> Option<T> {
        self.0.recv().await.map(|(item, _)| item)
    }

    pub(crate) fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<T>> {
        self.0.poll_recv(context).map(|it| it.map(|(item, _)| item))
    }

    /// What is there now; nothing also where nothing will come.
    #[cfg(test)]
    pub(crate) fn try_recv(&mut self) -> Result<T, mpsc::error::TryRecvError> {
        self.0.try_recv().map(|(item, _)| item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: usize) -> Bytes {
        vec![b'x'; bytes].into()
    }

    #[test]
    fn it_is_full_by_number_or_by_weight() {
        let (sender, mut receiver) = queue(3);
        assert!((0..3).all(|_| sender.try_send(of(1)).is_ok()));
        assert!(!sender.has_room(0));
        assert_eq!(sender.try_send(of(0)), Err(NotTaken));
        while receiver.try_recv().is_ok() {}
        assert_eq!(sender.try_send(of(MAX_WAITING - 1)), Ok(()));
        assert!(sender.has_room(1) && !sender.has_room(2));
        assert_eq!(sender.try_send(of(2)), Err(NotTaken));
        assert_eq!(sender.try_send(of(1)), Ok(()));
    }

    #[tokio::test]
    async fn what_is_heavier_than_all_waits_until_it_is_alone() {
        let (sender, mut receiver) = queue(8);
        sender.try_send(of(1)).unwrap();
        assert_eq!(sender.try_send(of(3 * MAX_WAITING)), Err(NotTaken));
        let heavy = sender.send(of(3 * MAX_WAITING));
        tokio::pin!(heavy);
        assert!(futures_util::poll!(&mut heavy).is_pending());
        assert_eq!(receiver.recv().await.unwrap().len(), 1);
        assert_eq!(heavy.await, Ok(()));
        assert!(!sender.has_room(1));
        assert_eq!(receiver.recv().await.unwrap().len(), 3 * MAX_WAITING);
        assert!(sender.has_room(MAX_WAITING));
    }

    #[tokio::test]
    async fn nobody_waits_for_a_reader_that_is_gone() {
        let (sender, receiver) = queue(8);
        sender.try_send(of(MAX_WAITING)).unwrap();
        let waiting = async { tokio::join!(sender.send(of(1)), sender.room(1)) };
        tokio::pin!(waiting);
        assert!(futures_util::poll!(&mut waiting).is_pending());
        drop(receiver);
        assert_eq!(waiting.await.0, Err(NotTaken));
        assert!(sender.is_closed());
    }
}
