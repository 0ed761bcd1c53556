//! The way that nearly every message takes: a POST to `/mcp` with a length, answered whole or by a stream.
//!
//! Such a request is read, and its answer written, by ourselves: of what a call cost, hyper was a quarter
//! (`bench/README.md`). Anything else, whatever is not quite plain about its head, and whoever would be turned away,
//! goes to hyper with every byte that was read, and so does all that follows on that connection. So this way needs no
//! words for what is wrong, and there is one place that says no.

use std::{
    future::poll_fn,
    io::{self, IoSlice},
    pin::Pin,
    task::{Context, Poll, ready},
    time::{Duration, SystemTime},
};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use http::{Response, StatusCode};
use hyper::body::Body as _;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    time::{Instant, Sleep},
};
use tokio_util::sync::WaitForCancellationFuture;
use toolcrib_wire::{Fields, after_others};

use super::{HEAD_TIMEOUT, MAX_HEAD, body::Body};

/// How long a client that was answered may say nothing before its connection is closed.
const IDLE: Duration = Duration::from_secs(75);

/// How much is read at a time: enough for most requests.
const PIECE: usize = 8 * 1024;

/// How much may come before it is asked for, while a request is answered.
const MOST_AHEAD: usize = MAX_HEAD;

/// A body that is no longer goes out together with its head.
const SMALL: usize = 16 * 1024;

/// The most fields in a head.
const MAX_FIELDS: usize = 64;

/// A connection.
#[derive(Debug)]
pub(super) struct Lane<S> {
    stream: S,
    /// What has come and nobody has taken yet.
    got: BytesMut,
    /// Rings when somebody may have been waited for too long. It is set anew only when it rings.
    timer: Pin<Box<Sleep>>,
    /// Whether anything was answered yet.
    known: bool,
    date: Date,
}

/// What comes next on a connection.
pub(super) enum Next {
    /// The head of a message. It stands at the beginning of what was read until it is taken.
    Head(Head),
    /// Something else.
    Other,
    /// Nothing.
    Closed,
}

/// The head of a message.
#[derive(Debug)]
pub(super) struct Head {
    pub(super) fields: Fields,
    /// How long it is.
    size: usize,
    /// How long its body is.
    pub(super) length: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Lane<S> {
    pub(super) fn new(stream: S) -> Self {
        let timer = Box::pin(tokio::time::sleep(HEAD_TIMEOUT));
        Self { stream, got: BytesMut::new(), timer, known: false, date: Date::default() }
    }

    /// Waits for the head of a message, until nobody is to come any more.
    pub(super) async fn next(&mut self, mut stop: Pin<&mut WaitForCancellationFuture<'_>>) -> Next {
        let mut since = Instant::now();
        let mut searched = 0;
        loop {
            if let Some(end) = end_of_head(&self.got, searched) {
                let text = Bytes::copy_from_slice(&self.got[..end]);
                return read_head(&text).map_or(Next::Other, Next::Head);
            }
            if !is_begin(&self.got) || MAX_HEAD <= self.got.len() {
                return Next::Other;
            }
            searched = self.got.len();
            let patience = match self.got.is_empty() && self.known {
                true => IDLE,
                false => HEAD_TIMEOUT,
            };
            let silent = self.got.is_empty();
            let Self { stream, got, timer, .. } = self;
            let read = poll_fn(|context| {
                if let Poll::Ready(read) = poll_more(stream, got, context) {
                    return Poll::Ready(read.ok().filter(|read| *read != 0));
                }
                // What has begun may end.
                if silent && stop.as_mut().poll(context).is_ready() {
                    return Poll::Ready(None);
                }
                ready!(poll_late(timer, since + patience, context));
                Poll::Ready(None)
            });
            if read.await.is_none() {
                return Next::Closed;
            }
            if silent {
                since = Instant::now();
            }
        }
    }

    /// The body of a message; nothing where it does not come.
    pub(super) async fn body(&mut self, head: &Head) -> Option<Bytes> {
        self.got.advance(head.size);
        if head.length <= self.got.len() {
            return Some(self.got.split_to(head.length).freeze());
        }
        let mut whole = BytesMut::with_capacity(head.length);
        whole.extend_from_slice(&self.got);
        self.got.clear();
        let end = Instant::now() + HEAD_TIMEOUT;
        let Self { stream, timer, .. } = self;
        poll_fn(|context| {
            while whole.len() < head.length {
                let left = head.length - whole.len();
                let mut room = (&mut whole).limit(left);
                match std::pin::pin!(stream.read_buf(&mut room)).poll(context) {
                    Poll::Ready(Ok(read)) if read != 0 => {}
                    Poll::Ready(_) => return Poll::Ready(None),
                    Poll::Pending => {
                        ready!(poll_late(timer, end, context));
                        return Poll::Ready(None);
                    }
                }
            }
            Poll::Ready(Some(std::mem::take(&mut whole).freeze()))
        })
        .await
    }

    /// What comes of some work, unless the client goes away meanwhile.
    pub(super) async fn unless_gone<T>(&mut self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = std::pin::pin!(work);
        let Self { stream, got, .. } = self;
        poll_fn(|context| {
            if let Poll::Ready(done) = work.as_mut().poll(context) {
                return Poll::Ready(Some(done));
            }
            poll_gone(stream, got, context).map(|()| None)
        })
        .await
    }

    /// Writes an answer. Returns whether the connection stays.
    pub(super) async fn answer(
        &mut self,
        response: Response<Body>,
        last: bool,
    ) -> io::Result<bool> {
        self.known = true;
        let (parts, body) = response.into_parts();
        let length = body.size_hint().exact();
        let mut head = Vec::with_capacity(512 + SMALL.min(body.known()));
        self.begin(&mut head, parts.status);
        for (name, value) in &parts.headers {
            push_field(&mut head, name.as_str(), value.as_bytes());
        }
        if last {
            push_field(&mut head, "connection", b"close");
        }
        match length {
            Some(length) => push_field(&mut head, "content-length", length.to_string().as_bytes()),
            None => push_field(&mut head, "transfer-encoding", b"chunked"),
        }
        head.extend_from_slice(b"\r\n");
        after_others().await;
        if let Some(pieces) = body.pieces() {
            self.write_whole(head, pieces).await?;
            return Ok(!last);
        }
        self.stream.write_all(&head).await?;
        let whole = self.write_chunks(body).await?;
        Ok(whole && !last)
    }

    /// Ends the connection; how that goes is the client's business.
    pub(super) async fn close(&mut self) {
        self.stream.shutdown().await.ok();
    }

    /// Everything that was read and not taken, and the connection.
    pub(super) fn into_rest(self) -> (Bytes, S) {
        (self.got.freeze(), self.stream)
    }

    fn begin(&mut self, head: &mut Vec<u8>, status: StatusCode) {
        head.extend_from_slice(b"HTTP/1.1 ");
        head.extend_from_slice(status.as_str().as_bytes());
        head.push(b' ');
        head.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
        head.extend_from_slice(b"\r\n");
        push_field(head, "date", self.date.now().as_bytes());
    }

    async fn write_whole(&mut self, mut head: Vec<u8>, pieces: &[Bytes]) -> io::Result<()> {
        if pieces.iter().map(Bytes::len).sum::<usize>() <= SMALL {
            pieces.iter().for_each(|it| head.extend_from_slice(it));
            self.stream.write_all(&head).await?;
            return self.stream.flush().await;
        }
        let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(1 + pieces.len());
        slices.push(IoSlice::new(&head));
        slices.extend(pieces.iter().map(|it| IoSlice::new(it)));
        let mut rest = &mut slices[..];
        while !rest.is_empty() {
            match self.stream.write_vectored(rest).await? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => IoSlice::advance_slices(&mut rest, written),
            }
        }
        self.stream.flush().await
    }

    /// Writes a stream as it comes, until it ends or the client is gone. Returns whether it ended.
    async fn write_chunks(&mut self, mut body: Body) -> io::Result<bool> {
        loop {
            // What was said at once goes out at once, and what comes later does not wait for more.
            self.stream.flush().await?;
            let next = poll_fn(|context| Pin::new(&mut body).poll_frame(context));
            let Some(next) = self.unless_gone(next).await else { return Ok(false) };
            let Some(Ok(piece)) = next.map(|it| it.map(|it| it.into_data().unwrap_or_default()))
            else {
                self.stream.write_all(b"0\r\n\r\n").await?;
                self.stream.flush().await?;
                return Ok(true);
            };
            if !piece.is_empty() {
                let size = format!("{:x}\r\n", piece.len());
                let chunk = [size.as_bytes(), &piece, b"\r\n"].concat();
                self.stream.write_all(&chunk).await?;
            }
        }
    }
}

/// Reads what there is.
fn poll_more<S: AsyncRead + Unpin>(
    stream: &mut S,
    got: &mut BytesMut,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    if got.capacity() - got.len() < PIECE / 4 {
        got.reserve(PIECE);
    }
    std::pin::pin!(stream.read_buf(got)).poll(context)
}

/// Whether a client has gone away. What it sends ahead is kept, and no more of it than is fair.
fn poll_gone<S: AsyncRead + Unpin>(
    stream: &mut S,
    got: &mut BytesMut,
    context: &mut Context<'_>,
) -> Poll<()> {
    while got.len() < MOST_AHEAD {
        match ready!(poll_more(stream, got, context)) {
            Ok(read) if read != 0 => {}
            _ => return Poll::Ready(()),
        }
    }
    Poll::Pending
}

/// Whether it is too late. The timer may ring early: it was set for somebody before.
fn poll_late(timer: &mut Pin<Box<Sleep>>, end: Instant, context: &mut Context<'_>) -> Poll<()> {
    if end < timer.deadline() {
        timer.as_mut().reset(end);
    }
    loop {
        ready!(timer.as_mut().poll(context));
        if end <= Instant::now() {
            return Poll::Ready(());
        }
        timer.as_mut().reset(end);
    }
}

/// How a message begins.
const BEGIN: &[u8] = b"POST /mcp HTTP/1.1\r\n";

/// Whether this may become a message, as far as it goes.
fn is_begin(got: &[u8]) -> bool {
    let known = got.len().min(BEGIN.len());
    got[..known] == BEGIN[..known]
}

/// The place after the empty line that ends a head, looked for from where it was not looked for before.
fn end_of_head(got: &[u8], searched: usize) -> Option<usize> {
    let from = searched.saturating_sub(3);
    let mut ends = memchr::memchr_iter(b'\n', &got[from..]).map(|it| from + it + 1);
    ends.find(|at| got[*at..].starts_with(b"\r\n")).map(|at| at + 2)
}

/// Reads the head of a message. Nothing where there is anything about it that somebody might read otherwise, or that
/// takes more than a length and an answer.
fn read_head(text: &Bytes) -> Option<Head> {
    if !text.starts_with(BEGIN) || !has_plain_lines(text) {
        return None;
    }
    let mut fields = [const { std::mem::MaybeUninit::uninit() }; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let parsed = request.parse_with_uninit_headers(text, &mut fields).ok()?;
    if parsed != httparse::Status::Complete(text.len()) {
        return None;
    }
    let mut length = None;
    for field in request.headers.iter() {
        let (is, value) =
            (|name: &str| field.name.eq_ignore_ascii_case(name), field.value.trim_ascii());
        // By their length first: most are none of these.
        match field.name.len() {
            14 if is("content-length") => {
                let digits = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
                let value = str::from_utf8(value).ok().filter(|_| digits && length.is_none())?;
                length = Some(value.parse().ok()?);
            }
            10 if is("connection") && !value.eq_ignore_ascii_case(b"keep-alive") => return None,
            6 | 7 | 17 if is("expect") || is("upgrade") || is("transfer-encoding") => return None,
            _ => {}
        }
    }
    let fields = Fields::of(text.clone(), request.headers);
    Some(Head { fields, size: text.len(), length: length? })
}

/// Whether every line ends with CR LF, and neither stands anywhere else.
fn has_plain_lines(text: &[u8]) -> bool {
    let mut lines = 0;
    let plain = memchr::memchr_iter(b'\n', text).all(|at| {
        lines += 1;
        at.checked_sub(1).is_some_and(|before| text[before] == b'\r')
    });
    plain && lines == memchr::memchr_iter(b'\r', text).count()
}

fn push_field(head: &mut Vec<u8>, name: &str, value: &[u8]) {
    head.extend_from_slice(name.as_bytes());
    head.extend_from_slice(b": ");
    head.extend_from_slice(value);
    head.extend_from_slice(b"\r\n");
}

/// The time as answers tell it; it is the same for a second.
#[derive(Debug, Default)]
struct Date {
    second: u64,
    text: String,
}

impl Date {
    fn now(&mut self) -> &str {
        let now = SystemTime::now();
        let second = now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |it| it.as_secs());
        if self.second != second || self.text.is_empty() {
            (self.second, self.text) = (second, httpdate::fmt_http_date(now));
        }
        &self.text
    }
}

#[cfg(test)]
mod tests;
