//! One connection that stays open: a request out, an answer in, and as little work as that can be.
//!
//! Some gateways say beforehand how long an answer is, some send it in chunks, some as an event of a stream;
//! whoever measures them has to read them all.

use std::net::SocketAddr;

use memchr::memmem;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{failure::Failure, request::Template};

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    to: SocketAddr,
    socket: TcpStream,
    sent: Vec<u8>,
    got: Vec<u8>,
    /// What was in the chunks of an answer.
    joined: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    pub(crate) head: &'a str,
    pub(crate) body: &'a [u8],
}

/// How one knows where a body ends.
#[derive(Debug, PartialEq)]
enum Framing {
    Length(usize),
    Chunks,
}

impl Connection {
    pub(crate) async fn open(to: SocketAddr) -> Result<Self, Failure> {
        let socket = connect(to).await?;
        let got = Vec::with_capacity(8 * 1024);
        Ok(Self { to, socket, sent: Vec::new(), got, joined: Vec::new() })
    }

    /// The same with a new socket.
    pub(crate) async fn reconnect(&mut self) -> Result<(), Failure> {
        self.socket = connect(self.to).await?;
        Ok(())
    }

    /// Sends the request with this number, and waits for all of the answer.
    pub(crate) async fn ask(
        &mut self,
        template: &Template,
        number: u64,
    ) -> Result<Reply<'_>, Failure> {
        template.write(number, &mut self.sent);
        self.socket.write_all(&self.sent).await?;
        self.got.clear();
        let body = loop {
            self.read().await?;
            if let Some(end) = memmem::find(&self.got, b"\r\n\r\n") {
                break end + 4;
            }
        };
        let framing = framing(head(&self.got[..body])?)?;
        match framing {
            Framing::Length(length) => self.read_length(body + length).await?,
            Framing::Chunks => self.read_chunks(body).await?,
        }
        let head = head(&self.got[..body])?;
        let whole = match framing {
            Framing::Length(_) => &self.got[body..],
            Framing::Chunks => &self.joined[..],
        };
        let events = header(head, "content-type").is_some_and(|it| it.starts_with("text/event-s"));
        let body = if events { last_event(whole).unwrap_or_default() } else { whole };
        Ok(Reply { status: status(head)?, head, body })
    }

    async fn read_length(&mut self, end: usize) -> Result<(), Failure> {
        self.got.reserve(end.saturating_sub(self.got.len()));
        while self.got.len() < end {
            self.read().await?;
        }
        self.nothing_after(end)
    }

    async fn read_chunks(&mut self, mut at: usize) -> Result<(), Failure> {
        self.joined.clear();
        loop {
            let Some(chunk) = next_chunk(&self.got[at..])? else {
                self.read().await?;
                continue;
            };
            let (begin, size) = (at + chunk.begin, chunk.size);
            self.joined.extend_from_slice(&self.got[begin..begin + size]);
            at = begin + size + 2;
            if size == 0 {
                return self.nothing_after(at);
            }
        }
    }

    fn nothing_after(&self, end: usize) -> Result<(), Failure> {
        if self.got.len() == end {
            return Ok(());
        }
        Err(Failure::new("more came than the answer"))
    }

    async fn read(&mut self) -> Result<(), Failure> {
        match self.socket.read_buf(&mut self.got).await? {
            0 => Err(Failure::new("the connection was closed before the answer")),
            _ => Ok(()),
        }
    }
}

impl Reply<'_> {
    /// What a header says.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }
}

async fn connect(to: SocketAddr) -> Result<TcpStream, Failure> {
    let socket = TcpStream::connect(to).await?;
    socket.set_nodelay(true)?;
    Ok(socket)
}

/// Where a chunk begins, and how long it is.
#[derive(Debug, PartialEq)]
struct Chunk {
    begin: usize,
    size: usize,
}

/// The chunk that these bytes begin with, once all of it is there.
fn next_chunk(bytes: &[u8]) -> Result<Option<Chunk>, Failure> {
    let Some(line) = memmem::find(bytes, b"\r\n") else { return Ok(None) };
    let text = std::str::from_utf8(&bytes[..line]).unwrap_or_default();
    let digits = text.split(';').next().unwrap_or_default().trim();
    let size = usize::from_str_radix(digits, 16)
        .map_err(|error| Failure::new(format!("not the size of a chunk: {error}")))?;
    let begin = line + 2;
    let whole = begin.saturating_add(size).saturating_add(2);
    Ok((whole <= bytes.len()).then_some(Chunk { begin, size }))
}

/// What the last event of a stream says: an answer comes after whatever else there is to say.
fn last_event(stream: &[u8]) -> Option<&[u8]> {
    let at = memmem::rfind(stream, b"\ndata:").map(|it| it + 1);
    let at = at.or_else(|| stream.starts_with(b"data:").then_some(0))?;
    let data = &stream[at + 5..];
    let end = memchr::memchr2(b'\r', b'\n', data).unwrap_or(data.len());
    Some(data[..end].trim_ascii_start())
}

fn head(bytes: &[u8]) -> Result<&str, Failure> {
    let text = std::str::from_utf8(bytes);
    text.map_err(|error| Failure::new(format!("the head of an answer is no text: {error}")))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.split("\r\n").filter_map(|it| it.split_once(':'));
    { fields }.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

fn framing(head: &str) -> Result<Framing, Failure> {
    if let Some(length) = header(head, "content-length") {
        let length = length.parse().map_err(|error| Failure::new(format!("a length: {error}")))?;
        return Ok(Framing::Length(length));
    }
    if header(head, "transfer-encoding").is_some_and(|it| it.eq_ignore_ascii_case("chunked")) {
        return Ok(Framing::Chunks);
    }
    match status(head)? {
        202 | 204 => Ok(Framing::Length(0)),
        _ => Err(Failure::new(format!("an answer without an end:\n{head}"))),
    }
}

fn status(head: &str) -> Result<u16, Failure> {
    let code = head.strip_prefix("HTTP/1.1 ").and_then(|it| it.get(..3)?.parse().ok());
    code.ok_or_else(|| Failure::new(format!("not an answer in HTTP/1.1:\n{head}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read() {
        let text = "HTTP/1.1 401 Unauthorized\r\ncontent-LENGTH: 12\r\nA: b: c\r\n\r\n";
        assert_eq!(status(text).unwrap(), 401);
        assert_eq!(framing(text).unwrap(), Framing::Length(12));
        assert_eq!(header(text, "a"), Some("b: c"));
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(framing(chunked).unwrap(), Framing::Chunks);
        assert_eq!(framing("HTTP/1.1 202 Accepted\r\n\r\n").unwrap(), Framing::Length(0));
        assert!(framing("HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(status("HTTP/1.0 200 OK\r\n\r\n").is_err());
    }

    #[test]
    fn a_chunk_is_taken_once_it_is_whole() {
        assert_eq!(next_chunk(b"5\r\nhello\r\nrest").unwrap(), Some(Chunk { begin: 3, size: 5 }));
        assert_eq!(next_chunk(b"0\r\n\r\n").unwrap(), Some(Chunk { begin: 3, size: 0 }));
        assert_eq!(next_chunk(b"a;x=y\r\n0123456789\r\n").unwrap().unwrap().size, 10);
        for part in ["", "5", "5\r\nhello", "5\r\nhello\r"] {
            assert_eq!(next_chunk(part.as_bytes()).unwrap(), None, "{part:?}");
        }
        assert!(next_chunk(b"xyz\r\n").is_err());
        assert_eq!(next_chunk(b"ffffffffffffffff\r\n").unwrap(), None);
    }

    #[test]
    fn the_last_event_of_a_stream_is_the_answer() {
        let stream = b"event: message\r\ndata: {\"a\":1}\r\n\r\nid: 7\r\ndata: {\"b\":2}\r\n\r\n";
        assert_eq!(last_event(stream), Some(&b"{\"b\":2}"[..]));
        assert_eq!(last_event(b"data:x\n\n"), Some(&b"x"[..]));
        assert_eq!(last_event(b": ping\n\n"), None);
    }
}
