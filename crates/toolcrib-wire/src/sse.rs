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
            limit,
        }
    }

    /// Takes the next bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete event; `None` where more bytes are needed.
    pub fn next_event(&mut self) -> Result<Option<Event>, TooLarge> {
        while let Some(line) = self.line() {
            if line.is_empty() {
                if let Some(event) = self.finish() {
                    return Ok(Some(event));
                }
            } else {
                self.field(&line);
            }
            if self.limit < self.data.len() {
                return Err(TooLarge { limit: self.limit });
            }
        }
        if self.limit < self.buffer.len() {
            return Err(TooLarge { limit: self.limit });
        }
        Ok(None)
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
                if self.has_data {
                    self.data.push(b'\n');
                }
                self.has_data = true;
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
