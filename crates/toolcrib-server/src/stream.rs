//! What goes out to one client on one stream of events, before and after somebody reads it.
//!
//! A stream of the legacy era numbers its events and keeps them for a while: a client whose connection
//! broke comes back and names the last one it saw. A stream of the modern era keeps nothing that was read.

use std::{collections::VecDeque, time::Duration};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use crate::queue::{MAX_WAITING, Receiver, Sender, Weigh, queue};

/// How many messages may wait for a slow reader; `queue` says how many bytes.
const QUEUE: usize = 64;

/// How much of a stream is kept for a client that comes back.
const KEPT_EVENTS: usize = 256;
const KEPT_BYTES: usize = MAX_WAITING;

/// How long a client may be away before it is given up.
const AWAY: Duration = Duration::from_secs(30);

/// How often a silent stream says that it is alive.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What goes into a stream of events.
#[derive(Debug, Clone)]
pub(crate) enum Event {
    Message(Bytes),
    /// A message with a name by which a client can say that it has seen it.
    Named(String, Bytes),
    /// Nothing but such a name.
    Begin(String),
    /// The address of the old transport.
    Endpoint(String),
    /// An event of the bus, and its place.
    Cloud(u64, String),
    /// Nothing but a place.
    At(u64),
    /// Events that should have come here and are gone.
    Gap(String),
    /// Nothing, so that nobody in between thinks the stream is dead.
    KeepAlive,
}

impl Weigh for Event {
    fn weight(&self) -> usize {
        match self {
            Self::Message(text) | Self::Named(_, text) => text.len(),
            Self::Cloud(_, text) | Self::Gap(text) => text.len(),
            Self::Begin(_) | Self::Endpoint(_) | Self::At(_) | Self::KeepAlive => 0,
        }
    }
}

/// How a stream is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Until it has been read.
    Unread,
    /// For a client that may come back. `begin` is whether it takes a first event without a message.
    Numbered {
        /// Whether the stream begins with such an event.
        begin: bool,
    },
}

/// One stream.
#[derive(Debug)]
pub(crate) struct Stream {
    id: u64,
    keeping: Keeping,
    state: Mutex<State>,
    spoke: Notify,
}

#[derive(Debug)]
struct State {
    log: VecDeque<(u64, Bytes)>,
    bytes: usize,
    next: u64,
    /// The first that no reader has been given.
    unread: u64,
    reader: Option<Sender<Event>>,
    /// Whether only the last word is still to come.
    ending: bool,
    /// When the last word was said.
    done: Option<Instant>,
}

impl Stream {
    pub(crate) fn new(id: u64, keeping: Keeping) -> Self {
        let log = VecDeque::new();
        let state =
            State { log, bytes: 0, next: 1, unread: 1, reader: None, ending: false, done: None };
        Self { id, keeping, state: Mutex::new(state), spoke: Notify::new() }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Says something. What is not `needed` is left out where the reader is too slow.
    pub(crate) fn say(&self, text: Bytes, needed: bool) -> bool {
        let mut state = self.state.lock();
        if state.ending || state.done.is_some() {
            return false;
        }
        let full = state.reader.as_ref().is_some_and(|it| !it.has_room(text.len()));
        if full && !needed {
            return false;
        }
        self.put(&mut state, text);
        drop(state);
        self.spoke.notify_one();
        true
    }

    /// Says the last word.
    pub(crate) fn finish(&self, text: Option<Bytes>) {
        let mut state = self.state.lock();
        if let Some(text) = text {
            self.put(&mut state, text);
        }
        state.done = Some(Instant::now());
        state.reader = None;
        drop(state);
        self.spoke.notify_one();
    }

    fn put(&self, state: &mut State, text: Bytes) {
        let number = state.next;
        state.next += 1;
        let reader = state.reader.take();
        // A reader that does not keep up is cut off; who can come back gets the rest then.
        let taken = reader.filter(|it| it.try_send(self.event(number, text.clone())).is_ok());
        if taken.is_some() {
            state.unread = state.next;
        }
        // What is too large to be kept is kept only until somebody has it.
        let large = KEPT_BYTES < text.len();
        let kept = taken.is_none() || (self.keeping != Keeping::Unread && !large);
        state.reader = taken;
        if !kept {
            return;
        }
        state.bytes += text.len();
        state.log.push_back((number, text));
        while 1 < state.log.len() && (KEPT_EVENTS < state.log.len() || KEPT_BYTES < state.bytes) {
            let gone = state.log.pop_front();
            state.bytes -= gone.map_or(0, |(_, text)| text.len());
        }
    }

    fn event(&self, number: u64, text: Bytes) -> Event {
        match self.keeping {
            Keeping::Unread => Event::Message(text),
            Keeping::Numbered { .. } => Event::Named(self.name(number), text),
        }
    }

    fn name(&self, number: u64) -> String {
        format!("{}-{number}", self.id)
    }

    /// Whether anything has been said.
    pub(crate) fn has_spoken(&self) -> bool {
        1 < self.state.lock().next
    }

    /// Resolves when something is said.
    pub(crate) async fn spoken(&self) {
        self.spoke.notified().await;
    }

    /// Begins to read: after the event that was last seen, or what nobody has read. Whoever read before
    /// reads no more.
    pub(crate) fn read(&self, seen: Option<u64>) -> Receiver<Event> {
        let mut state = self.state.lock();
        let after = seen.map_or(state.unread, |it| it.saturating_add(1));
        let left = state.log.iter().filter(|(number, _)| after <= *number);
        let left: Vec<Event> = left.map(|(n, text)| self.event(*n, text.clone())).collect();
        let (sender, receiver) = queue(QUEUE + 1 + left.len());
        if seen.is_none() && self.keeping == (Keeping::Numbered { begin: true }) {
            let name = self.name(after - 1);
            sender.try_send(Event::Begin(name)).ok();
        }
        for event in left {
            // There is room for all of them: no more is kept than may wait.
            sender.try_send(event).ok();
        }
        state.unread = state.next;
        if self.keeping == Keeping::Unread {
            state.log.clear();
            state.bytes = 0;
        }
        state.reader = state.done.is_none().then_some(sender);
        receiver
    }

    /// Resolves when nobody reads any more and, on a stream that can be taken up again, nobody has come
    /// back in time. Shows now and then that the stream is alive.
    pub(crate) async fn abandoned(&self) {
        loop {
            let reader = self.state.lock().reader.clone();
            if let Some(reader) = reader {
                tokio::select! {
                    () = reader.closed() => {}
                    () = sleep(KEEP_ALIVE) => {
                        reader.try_send(Event::KeepAlive).ok();
                        continue;
                    }
                }
            }
            if self.keeping == Keeping::Unread {
                return;
            }
            sleep(AWAY).await;
            let read = self.state.lock().reader.as_ref().is_some_and(|it| !it.is_closed());
            if !read {
                return;
            }
        }
    }

    /// Whether the last word has been said.
    pub(crate) fn is_finished(&self) -> bool {
        self.state.lock().done.is_some()
    }

    /// Says the last word as soon as the reader has room for it, or is gone. Nothing comes in between.
    pub(crate) async fn end(&self, text: Option<Bytes>) {
        let reader = {
            let mut state = self.state.lock();
            state.ending = true;
            state.reader.clone()
        };
        if let Some(reader) = reader {
            reader.room(text.as_ref().map_or(0, Bytes::len)).await;
        }
        self.finish(text);
    }

    /// Nobody is read to any more.
    pub(crate) fn cut(&self) {
        self.state.lock().reader = None;
    }

    /// A stream that ends before it begins.
    pub(crate) fn ended() -> Receiver<Event> {
        queue(1).1
    }

    /// Whether it has ended, and so long ago that nobody will ask for it.
    pub(crate) fn is_over(&self) -> bool {
        self.state.lock().done.is_some_and(|it| AWAY < it.elapsed())
    }

    /// Where a client says that it has been: the stream, and the last event on it.
    pub(crate) fn place(name: &str) -> Option<(u64, u64)> {
        let (stream, event) = name.split_once('-')?;
        Some((stream.parse().ok()?, event.parse().ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(receiver: &mut Receiver<Event>) -> Vec<String> {
        let mut texts = Vec::new();
        while let Ok(event) = receiver.try_recv() {
            texts.push(match event {
                Event::Named(name, text) => format!("{name} {}", String::from_utf8_lossy(&text)),
                Event::Message(text) => String::from_utf8_lossy(&text).into_owned(),
                Event::Begin(name) => format!("{name} begins"),
                other => format!("{other:?}"),
            });
        }
        texts
    }

    #[test]
    fn a_client_that_comes_back_gets_what_it_missed() {
        let stream = Stream::new(3, Keeping::Numbered { begin: true });
        stream.say("a".into(), false);
        let mut first = stream.read(None);
        stream.say("b".into(), false);
        assert_eq!(texts(&mut first), ["3-0 begins", "3-1 a", "3-2 b"]);
        drop(first);
        stream.say("c".into(), false);
        stream.finish(Some("end".into()));
        assert_eq!(texts(&mut stream.read(Some(1))), ["3-2 b", "3-3 c", "3-4 end"]);
        assert_eq!(Stream::place("3-4"), Some((3, 4)));
        assert_eq!(Stream::place("3"), None);
    }

    #[test]
    fn what_was_read_on_a_modern_stream_is_gone() {
        let stream = Stream::new(0, Keeping::Unread);
        stream.say("a".into(), false);
        let mut first = stream.read(None);
        stream.say("b".into(), false);
        assert_eq!(texts(&mut first), ["a", "b"]);
        assert_eq!(texts(&mut stream.read(Some(0))), [""; 0]);
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let stream = Stream::new(0, Keeping::Numbered { begin: false });
        for _ in 0..1_000 {
            stream.say(vec![b'x'; 8 * 1024].into(), true);
        }
        let state = stream.state.lock();
        assert!(state.bytes <= KEPT_BYTES && state.log.len() <= KEPT_EVENTS);
    }

    #[test]
    fn a_slow_reader_misses_what_is_not_needed_and_is_cut_off_by_what_is() {
        let stream = Stream::new(1, Keeping::Numbered { begin: false });
        let mut slow = stream.read(None);
        while stream.say("note".into(), false) {}
        assert!(stream.say("question".into(), true));
        let read = texts(&mut slow);
        assert!(!read.iter().any(|it| it.ends_with("question")), "{read:?}");
        let last = read.len() as u64;
        assert!(matches!(
            slow.try_recv(),
            Err(tokio::sync::mpsc::error::TryRecvError::Disconnected)
        ));
        assert_eq!(texts(&mut stream.read(Some(last))), [format!("1-{} question", last + 1)]);
    }

    /// One who comes back gets all that is kept, and a last word that is larger than what may wait.
    #[tokio::test]
    async fn the_last_word_waits_for_its_reader_however_large_it_is() {
        for keeping in [Keeping::Unread, Keeping::Numbered { begin: true }] {
            let stream = Stream::new(1, keeping);
            let mut reader = stream.read(None);
            while stream.say(vec![b'x'; 100_000].into(), false) {}
            let ending = stream.end(Some(vec![b'y'; 3 * MAX_WAITING].into()));
            tokio::pin!(ending);
            assert!(futures_util::poll!(&mut ending).is_pending());
            assert!(!stream.say("late".into(), true), "nothing comes between");
            let waiting = texts(&mut reader);
            assert!(waiting.iter().map(String::len).sum::<usize>() <= MAX_WAITING + 1_000);
            ending.await;
            let last = texts(&mut reader);
            assert!(last.len() == 1 && 3 * MAX_WAITING <= last[0].len());
        }
    }
}
