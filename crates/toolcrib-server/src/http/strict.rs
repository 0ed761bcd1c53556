//! Requests that can be read in one way only.
//!
//! hyper also takes what careless software sends: lines that end with LF alone, a length beside chunks, a
//! length given twice. Whoever stands between may read such a request otherwise, and what is a body to
//! them would be a request to us. So heads are looked at before hyper gets them. One that is not plain is
//! spoilt, so that hyper refuses it with 400, and nothing after it is read.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// More than hyper takes for a head or for the size of a chunk.
const MAX_LINE: usize = 128 * 1024;

/// What no head may hold.
const SPOILT: &[u8] = b"\0";

/// A stream of requests.
#[derive(Debug)]
pub(super) struct Strict<S> {
    /// What was read of it already, and is to be read again.
    before: Bytes,
    stream: S,
    framing: Framing,
    refused: bool,
}

/// How far the requests have been read.
#[derive(Debug, Default)]
struct Framing {
    place: Place,
    /// So many bytes are somebody's data, and come before the next line.
    data: u64,
    /// The line so far.
    line: Vec<u8>,
    length: Option<u64>,
    chunked: bool,
}

#[derive(Debug, Default, Clone, Copy)]
enum Place {
    #[default]
    Begin,
    Head,
    Chunk,
    Trailer,
}

impl<S> Strict<S> {
    pub(super) fn new(before: Bytes, stream: S) -> Self {
        Self { before, stream, framing: Framing::default(), refused: false }
    }
}

impl Framing {
    /// Reads on; the error is the place of what has two readings.
    fn take(&mut self, bytes: &[u8]) -> Result<(), usize> {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            if 0 < self.data {
                let skipped = rest.len().min(usize::try_from(self.data).unwrap_or(usize::MAX));
                self.data -= skipped as u64;
                at += skipped;
                continue;
            }
            let end = memchr::memchr(b'\n', rest);
            let piece = end.map_or(rest, |end| &rest[..=end]);
            at += piece.len();
            if end.is_some() && self.line.is_empty() {
                let plain = piece.strip_suffix(b"\r\n").and_then(|it| self.read(it));
                plain.ok_or(at - 1)?;
                continue;
            }
            self.line.extend_from_slice(piece);
            if end.is_some() {
                let mut line = std::mem::take(&mut self.line);
                let plain = line.strip_suffix(b"\r\n").and_then(|it| self.read(it));
                plain.ok_or(at - 1)?;
                line.clear();
                self.line = line;
            } else if MAX_LINE < self.line.len() {
                return Err(at - 1);
            }
        }
        Ok(())
    }

    /// Reads a line; nothing where it has two readings, or none.
    fn read(&mut self, line: &[u8]) -> Option<()> {
        match (self.place, line.is_empty()) {
            (Place::Begin, true) | (Place::Trailer, false) => {}
            (Place::Begin, false) => self.place = Place::Head,
            (Place::Head, false) => self.read_header(line)?,
            (Place::Head, true) => {
                let chunked = std::mem::take(&mut self.chunked);
                self.place = if chunked { Place::Chunk } else { Place::Begin };
                self.data = self.length.take().unwrap_or(0);
            }
            (Place::Trailer, true) => self.place = Place::Begin,
            (Place::Chunk, _) => {
                let size = line.split(|it| matches!(it, b';' | b' ' | b'\t')).next()?;
                match u64::from_str_radix(str::from_utf8(size).ok()?, 16).ok()? {
                    0 => self.place = Place::Trailer,
                    // The data ends with a line end of its own.
                    size => self.data = size.checked_add(2)?,
                }
            }
        }
        Some(())
    }

    fn read_header(&mut self, line: &[u8]) -> Option<()> {
        let (name, value) = line.split_at(memchr::memchr(b':', line)?);
        let sized = name.eq_ignore_ascii_case(b"content-length");
        if !sized && !name.eq_ignore_ascii_case(b"transfer-encoding") {
            return Some(());
        }
        let value = value[1..].trim_ascii();
        if self.chunked || self.length.is_some() {
            return None;
        }
        if sized {
            self.length = Some(str::from_utf8(value).ok()?.parse().ok()?);
        } else {
            self.chunked = value.eq_ignore_ascii_case(b"chunked").then_some(true)?;
        }
        Some(())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Strict<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        while this.refused {
            // Heard, but not handed on, until the client goes or hyper closes.
            let mut ignored = [0; 1024];
            let mut ignored = ReadBuf::new(&mut ignored);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut ignored))?;
            if ignored.filled().is_empty() {
                return Poll::Ready(Ok(()));
            }
        }
        let filled = buffer.filled().len();
        if this.before.is_empty() {
            ready!(Pin::new(&mut this.stream).poll_read(context, buffer))?;
        } else {
            let size = this.before.len().min(buffer.remaining());
            buffer.put_slice(&this.before.split_to(size));
        }
        if let Err(at) = this.framing.take(&buffer.filled()[filled..]) {
            buffer.set_filled(filled + at);
            buffer.put_slice(SPOILT);
            this.refused = true;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Strict<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads a text in pieces of every size; the place of what is wrong does not depend on them.
    #[track_caller]
    fn check(text: &str, wrong: Option<usize>) {
        for size in 1..=text.len() {
            let mut framing = Framing::default();
            let mut found = None;
            for (piece, bytes) in text.as_bytes().chunks(size).enumerate() {
                if let Err(at) = framing.take(bytes) {
                    found = Some(piece * size + at);
                    break;
                }
            }
            assert_eq!(found, wrong, "{text:?} in pieces of {size}");
        }
    }

    const PLAIN: [&str; 4] = [
        "GET / HTTP/1.1\r\nA: b\r\n\r\n",
        "\r\nPOST / HTTP/1.1\r\ncontent-length:3\r\n\r\n\n\nx",
        "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n2;x=y\r\n\n\n\r\nA\r\n0123456789\r\n0\r\nT: u\r\n\r\n",
    ];

    #[test]
    fn what_is_plain_passes_also_one_after_the_other() {
        for first in PLAIN {
            check(first, None);
            for second in PLAIN {
                check(&format!("{first}{second}"), None);
            }
        }
    }

    #[test]
    fn what_has_two_readings_does_not_whatever_came_before() {
        let head = "POST / HTTP/1.1\r\n";
        for (text, wrong) in [
            ("\n", 0),
            ("A: b\n", 4),
            ("\r\n\r\n\n", 4),
            ("no name\r\n", 8),
            ("Content-Length: 1\r\nContent-Length: 1\r\n", 37),
            ("Content-Length: 1\r\nTransfer-Encoding: chunked\r\n", 46),
            ("Transfer-Encoding: chunked\r\nContent-Length: 1\r\n", 46),
            ("Transfer-Encoding: gzip, chunked\r\n", 33),
            ("Content-Length: 1, 1\r\n", 21),
            ("Content-Length: 99999999999999999999\r\n", 37),
            ("Transfer-Encoding: chunked\r\n\r\nx\r\n", 32),
            ("Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n", 47),
            ("Transfer-Encoding: chunked\r\n\r\n1\n", 31),
        ] {
            for before in PLAIN {
                let all = format!("{before}{head}{text}");
                check(&all, Some(before.len() + head.len() + wrong));
            }
        }
    }
}
