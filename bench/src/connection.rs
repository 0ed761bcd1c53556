//! One connection that stays open: a request out, an answer in, and as little work as that can be.

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
    socket: TcpStream,
    sent: Vec<u8>,
    got: Vec<u8>,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    head: &'a str,
    pub(crate) body: &'a [u8],
}

impl Connection {
    pub(crate) async fn open(to: SocketAddr) -> Result<Self, Failure> {
        let socket = TcpStream::connect(to).await?;
        socket.set_nodelay(true)?;
        Ok(Self { socket, sent: Vec::new(), got: Vec::with_capacity(8 * 1024) })
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
        let end = body + length(head(&self.got[..body])?)?;
        self.got.reserve(end.saturating_sub(self.got.len()));
        while self.got.len() < end {
            self.read().await?;
        }
        if end < self.got.len() {
            return Err(Failure::new("more came than the answer"));
        }
        let head = head(&self.got[..body])?;
        Ok(Reply { status: status(head)?, head, body: &self.got[body..] })
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

fn head(bytes: &[u8]) -> Result<&str, Failure> {
    let text = std::str::from_utf8(bytes);
    text.map_err(|error| Failure::new(format!("the head of an answer is no text: {error}")))
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    let fields = head.split("\r\n").filter_map(|it| it.split_once(':'));
    { fields }.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

/// How long the body is. All three say so beforehand.
fn length(head: &str) -> Result<usize, Failure> {
    let length = header(head, "content-length").and_then(|it| it.parse().ok());
    length.ok_or_else(|| Failure::new(format!("an answer without a length:\n{head}")))
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
        assert_eq!(length(text).unwrap(), 12);
        assert_eq!(header(text, "a"), Some("b: c"));
        assert!(length("HTTP/1.1 200 OK\r\n\r\n").is_err());
        assert!(status("HTTP/1.0 200 OK\r\n\r\n").is_err());
    }
}
