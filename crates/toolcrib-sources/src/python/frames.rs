//! What goes over the pipe between us and a Python process: four bytes of length, then one JSON object.

use std::{
    io,
    time::{Duration, Instant},
};

use bytes::{Buf, Bytes, BytesMut};
use rustix::io::Errno;
use serde::Deserialize;
use serde_json::{Value, value::RawValue};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    process::ChildStdout,
};

/// How long we look for a frame without going to sleep.
const AT_ONCE: Duration = Duration::from_micros(60);

/// Reads frames.
#[derive(Debug)]
pub(super) struct FrameReader<R> {
    from: R,
    buffer: BytesMut,
    largest: usize,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    pub(super) fn new(from: R, largest: usize) -> Self {
        Self { from, buffer: BytesMut::with_capacity(16 * 1024), largest }
    }

    /// The next frame; none where the other side has ended. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> io::Result<Option<Bytes>> {
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            if self.from.read_buf(&mut self.buffer).await? == 0 {
                return Ok(None);
            }
        }
    }

    fn take(&mut self) -> io::Result<Option<Bytes>> {
        let Some(&head) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_le_bytes(head) as usize;
        if self.largest < length {
            let fault = format!("a frame of {length} bytes is too large");
            return Err(io::Error::new(io::ErrorKind::InvalidData, fault));
        }
        if self.buffer.len() < 4 + length {
            self.buffer.reserve((4 + length).saturating_sub(self.buffer.len()));
            return Ok(None);
        }
        self.buffer.advance(4);
        Ok(Some(self.buffer.split_to(length).freeze()))
    }
}

impl FrameReader<ChildStdout> {
    /// The next frame, which is expected at once: most calls are over sooner than a thread that sleeps could
    /// be woken, so for a moment we look again and again.
    pub(super) async fn next_at_once(&mut self) -> io::Result<Option<Bytes>> {
        let begin = Instant::now();
        let mut piece = [0; 4096];
        loop {
            if let Some(frame) = self.take()? {
                return Ok(Some(frame));
            }
            match rustix::io::read(&self.from, &mut piece) {
                Ok(0) => return Ok(None),
                Ok(read) => {
                    self.buffer.extend_from_slice(&piece[..read]);
                    continue;
                }
                Err(Errno::AGAIN | Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if AT_ONCE < begin.elapsed() {
                return self.next().await;
            }
            // Others, the process we wait for among them, may need the core.
            std::thread::yield_now();
        }
    }
}

/// `text` as a frame.
pub(super) fn frame(text: &[u8]) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
    [&length, text].concat()
}

/// What a process says.
#[derive(Debug)]
pub(super) enum Said<'a> {
    /// A call has ended with this result.
    Result { id: u64, result: Bytes },
    /// Anything else.
    Other(Box<Words<'a>>),
}

/// The members of all other frames.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Words<'a> {
    pub(super) op: String,
    pub(super) id: Option<u64>,
    // How a call goes on.
    pub(super) ask: Option<u64>,
    pub(super) method: String,
    #[serde(borrow)]
    pub(super) params: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) progress: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(super) total: Option<&'a RawValue>,
    pub(super) message: Option<Value>,
    pub(super) level: Option<Value>,
    #[serde(borrow)]
    pub(super) data: Option<&'a RawValue>,
    pub(super) logger: Option<Value>,
    // How files are loaded.
    pub(super) file: String,
    pub(super) source: String,
    #[serde(borrow)]
    pub(super) tools: Vec<&'a RawValue>,
    pub(super) problems: Vec<Slip>,
    pub(super) line: Option<u32>,
    pub(super) what: String,
    pub(super) cure: Option<String>,
    // Who it is.
    pub(super) python: String,
}

/// Something that is wrong with a file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct Slip {
    pub(super) line: Option<u32>,
    pub(super) what: String,
    pub(super) cure: Option<String>,
}

const RESULT: &[u8] = br#"{"op":"result","id":"#;
const MEMBER: &[u8] = br#","result":"#;

/// Reads a frame. A result is the last member of its frame, and is not looked into here.
pub(super) fn read(frame: &Bytes) -> Result<Said<'_>, serde_json::Error> {
    if let Some((id, begin)) = result_at(frame) {
        return Ok(Said::Result { id, result: frame.slice(begin..frame.len() - 1) });
    }
    serde_json::from_slice(frame).map(|it| Said::Other(Box::new(it)))
}

fn result_at(frame: &[u8]) -> Option<(u64, usize)> {
    let rest = frame.strip_prefix(RESULT)?;
    let digits = rest.iter().take(20).take_while(|it| it.is_ascii_digit()).count();
    let id = std::str::from_utf8(&rest[..digits]).ok()?.parse().ok()?;
    let rest = rest[digits..].strip_prefix(MEMBER)?;
    rest.ends_with(b"}").then_some((id, frame.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn frames_are_read_however_they_are_cut() {
        let text = [frame(b"{}"), frame(b""), frame(&[b'x'; 40_000])].concat();
        let (mut lengths, mut reader) = (Vec::new(), FrameReader::new(text.as_slice(), 50_000));
        while let Some(frame) = reader.next().await.unwrap() {
            lengths.push(frame.len());
        }
        assert_eq!(lengths, [2, 0, 40_000]);
        let mut reader = FrameReader::new(text.as_slice(), 39_999);
        reader.next().await.unwrap();
        reader.next().await.unwrap();
        assert!(reader.next().await.unwrap_err().to_string().contains("too large"));
    }

    #[test]
    fn a_result_is_found_without_being_read() {
        let frame = Bytes::from_static(br#"{"op":"result","id":12,"result":{"content":[]}}"#);
        let Ok(Said::Result { id, result }) = read(&frame) else { panic!("no result") };
        assert_eq!((id, &*result), (12, br#"{"content":[]}"#.as_slice()));
        let other = Bytes::from_static(br#"{"op":"progress","id":3,"progress":0.5,"total":null}"#);
        let Ok(Said::Other(words)) = read(&other) else { panic!("no words") };
        assert_eq!((words.op.as_str(), words.id), ("progress", Some(3)));
        assert!(read(&Bytes::from_static(b"[")).is_err());
    }
}
