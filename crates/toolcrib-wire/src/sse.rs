//! Server-sent events, out of a stream of bytes.

use bytes::{Bytes, BytesMut};

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Event {
    /// Its type; empty means `message`.
    pub event: String,
    /// Its data, lines joined by line ends.
    pub data: Bytes,
    /// Its id, if it has one.
    pub id: Option<String>,
    /// How many milliseconds to wait before connecting again, if it says so.
    pub retry: Option<u64>,
}

/// The stream holds more without a line end, or in one event, than we keep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than the limit of {limit} bytes")]
pub struct TooLarge {
    /// The limit.
    pub limit: usize,
}

/// What a stream gives next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// An event. Where some of its data was given before, the rest of it.
    Event(Event),
    /// Some of the data of a large event.
    Data(Bytes),
}

/// What of an event that is not complete has been given away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    Nothing,
    /// Some of its data.
    Data,
    /// Some of its data, and the beginning of this line.
    Line,
}

/// Takes bytes as they come and gives events as they are complete.
#[derive(Debug)]
pub struct Reader {
    buffer: BytesMut,
    /// How much of the buffer is known to have no line end.
    searched: usize,
    begun: bool,
    after_cr: bool,
    event: Event,
    data: Vec<u8>,
    has_data: bool,
    given: Given,
    limit: usize,
}

impl Reader {
    /// A reader that refuses events larger than `limit`.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: BytesMut::new(),
            searched: 0,
            begun: false,
            after_cr: false,
            event: Event::default(),
            data: Vec::new(),
            has_data: false,
            given: Given::Nothing,
            limit,
        }
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event; `None` where more bytes are needed.
    pub fn next_event(&mut self) -> Result<Option<Event>, TooLarge> {
        Ok(self.next_part(usize::MAX)?.and_then(|it| match it {
            Part::Event(event) => Some(event),
            Part::Data(_) => None,
        }))
    }

    /// Like [`Reader::next_event`], but of an event with more data than `large` the data is given piece by
    /// piece, as it comes.
    pub(crate) fn next_part(&mut self, large: usize) -> Result<Option<Part>, TooLarge> {
        while let Some(line) = self.line() {
            if self.given == Given::Line {
                self.given = Given::Data;
                self.data.extend_from_slice(&line);
            } else if line.is_empty() {
                if let Some(event) = self.finish() {
                    return Ok(Some(Part::Event(event)));
                }
            } else {
                self.field(&line);
            }
            if self.given == Given::Data && !self.data.is_empty() {
                return Ok(Some(self.piece()));
            }
            if self.limit < self.data.len() {
                return Err(TooLarge { limit: self.limit });
            }
        }
        if self.given != Given::Nothing || large < self.data.len() + self.buffer.len() {
            self.take_from_line();
            if !self.data.is_empty() {
                return Ok(Some(self.piece()));
            }
        }
        if self.limit < self.buffer.len() {
            return Err(TooLarge { limit: self.limit });
        }
        Ok(None)
    }

    fn piece(&mut self) -> Part {
        if self.given == Given::Nothing {
            self.given = Given::Data;
        }
        Part::Data(std::mem::take(&mut self.data).into())
    }

    /// Takes what has come of a line of data that has not ended.
    fn take_from_line(&mut self) {
        if self.given != Given::Line {
            // One more, since a blank after the colon is not part of the data.
            let [b'd', b'a', b't', b'a', b':', next, ..] = *self.buffer else { return };
            drop(self.buffer.split_to(if next == b' ' { 6 } else { 5 }));
            self.begin_data();
            self.given = Given::Line;
        }
        self.data.extend_from_slice(&self.buffer);
        self.buffer.clear();
        self.searched = 0;
    }

    fn begin_data(&mut self) {
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
    }

    /// The next line, without its end: LF, CR, or both.
    fn line(&mut self) -> Option<Bytes> {
        if !self.begun && 3 <= self.buffer.len() {
            self.begun = true;
            if self.buffer.starts_with(b"\xef\xbb\xbf") {
                drop(self.buffer.split_to(3));
                self.searched = 0;
            }
        }
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer[0] == b'\n' {
                drop(self.buffer.split_to(1));
            }
        }
        let Some(at) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            return None;
        };
        let line = self.buffer.split_to(self.searched + at).freeze();
        self.after_cr = self.buffer.split_to(1)[0] == b'\r';
        self.searched = 0;
        Some(line)
    }

    fn field(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line).unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let text = || String::from_utf8_lossy(value).into_owned();
        match &line[..colon] {
            b"data" => {
                self.begin_data();
                self.data.extend_from_slice(value);
            }
            b"event" => self.event.event = text(),
            b"id" if !value.contains(&0) => self.event.id = Some(text()),
            b"retry" => self.event.retry = text().parse().ok(),
            _ => {}
        }
    }

    /// The event that an empty line ends, if there is anything in it.
    fn finish(&mut self) -> Option<Event> {
        let mut event = std::mem::take(&mut self.event);
        event.data = std::mem::take(&mut self.data).into();
        let said = std::mem::take(&mut self.has_data);
        self.given = Given::Nothing;
        (said || event.id.is_some() || event.retry.is_some()).then_some(event)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What a reader makes of `text` if it comes in pieces of `size` bytes.
    fn read(text: &[u8], size: usize) -> Result<Vec<Event>, TooLarge> {
        let mut reader = Reader::new(64);
        let mut events = Vec::new();
        for piece in text.chunks(size) {
            reader.feed(piece);
            while let Some(event) = reader.next_event()? {
                events.push(event);
            }
        }
        Ok(events)
    }

    #[test]
    fn events_are_the_same_however_the_bytes_come() {
        let text = "\u{feff}: comment\nevent: endpoint\r\ndata: /messages\r\n\r\nid: 7\rdata:a\rdata\r\rretry: 5\n\ndata: b".as_bytes();
        let whole = read(text, text.len()).unwrap();
        insta::assert_debug_snapshot!(whole);
        for size in 1..text.len() {
            assert_eq!(read(text, size).unwrap(), whole, "{size}");
        }
    }

    /// Large events, put together again from their pieces.
    fn read_pieces(text: &[u8], size: usize, large: usize) -> (Vec<Event>, usize) {
        let mut reader = Reader::new(1000);
        let (mut events, mut begun, mut pieces) = (Vec::new(), Vec::new(), 0);
        for piece in text.chunks(size) {
            reader.feed(piece);
            while let Some(part) = reader.next_part(large).unwrap() {
                match part {
                    Part::Data(data) => {
                        begun.extend_from_slice(&data);
                        pieces += 1;
                    }
                    Part::Event(mut event) => {
                        begun.extend_from_slice(&event.data);
                        event.data = std::mem::take(&mut begun).into();
                        events.push(event);
                    }
                }
            }
            assert!(reader.buffer.len() + reader.data.len() <= large.max(8) + 8);
        }
        (events, pieces)
    }

    #[test]
    fn a_large_event_comes_in_pieces_and_is_the_same_event() {
        let text = "\u{feff}data: 0123456789\r\ndata:\r\ndata\r\nid: 7\r\ndata:  abc\r\n\r\ndata:x\n\ndata: \n\nid: 8\n\ndata:0123456789012345678901234567890123456789\revent: e\r\rdata: end\n\n".as_bytes();
        let mut reader = Reader::new(1000);
        reader.feed(text);
        let whole: Vec<Event> = std::iter::from_fn(|| reader.next_event().unwrap()).collect();
        assert_eq!(whole.len(), 6);
        for size in 1..text.len() {
            for large in [0, 1, 5, 10, 20] {
                let (events, pieces) = read_pieces(text, size, large);
                assert_eq!(events, whole, "{size} {large}");
                assert!(0 < pieces || 20 < size, "{size} {large}");
            }
            assert_eq!(read_pieces(text, size, 100).1, 0);
        }
    }

    #[test]
    fn what_follows_a_large_event_comes_whole() {
        let mut reader = Reader::new(1000);
        reader.feed(b"data: 0123456789\ndata: 0123456789");
        assert!(matches!(reader.next_part(5), Ok(Some(Part::Data(_)))));
        reader.feed(b"\n\ndata: a\ndata: b\n\n");
        assert!(matches!(reader.next_part(5), Ok(Some(Part::Event(_)))));
        let Ok(Some(Part::Event(event))) = reader.next_part(5) else { panic!() };
        assert_eq!(event.data, "a\nb");
    }

    #[test]
    fn a_line_and_an_event_are_bounded() {
        assert_eq!(read(&[b'x'; 100], 10), Err(TooLarge { limit: 64 }));
        assert_eq!(read(&b"data: 0123456789\n".repeat(10), 17), Err(TooLarge { limit: 64 }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text: Vec<u8>, size in 1_usize..20) {
            read(&text, size).ok();
        }
    }
}
