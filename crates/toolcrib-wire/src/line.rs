//! One connection to an HTTP/1.1 server: a request goes out in one piece, an answer comes in.
//!
//! A call spends most of its time in here and in `server::http::lane`, and needs little of what a general client can
//! do; `bench/README.md` has the figures. Heads are read by `httparse`, as hyper does. Whatever has two readings ends
//! the connection after it, so that nobody takes the rest of one answer for the next.

mod chunks;

use std::{
    future::poll_fn,
    io,
    pin::Pin,
    task::{Context, Poll, Waker, ready},
};

use bytes::{BufMut, Bytes, BytesMut};
use http::StatusCode;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    runtime::Handle,
};

use self::chunks::{Chunks, Step};
use crate::Fields;

/// The largest head of an answer.
const MAX_HEAD: usize = 64 * 1024;

/// The most fields in it.
const MAX_FIELDS: usize = 100;

/// How much is read at a time where it is not known how much will come: enough for most answers.
const PIECE: usize = 8 * 1024;

/// The same, of what turned out to be long.
const LONG_PIECE: usize = 64 * 1024;

/// Of a body that nobody wants to the end, no more pieces are passed over.
const MOST_LEFT: usize = 4;

/// A connection.
#[derive(Debug)]
pub(crate) struct Line<S> {
    stream: S,
    /// What has come and nobody has taken yet.
    got: BytesMut,
}

/// What came back, but for its body.
#[derive(Debug)]
pub(crate) struct Head {
    pub(crate) status: StatusCode,
    pub(crate) fields: Fields,
    pub(crate) framing: Framing,
    /// Whether the connection can be used again, once the body is read.
    pub(crate) stays: bool,
}

/// How one knows where a body ends.
#[derive(Debug)]
pub(crate) enum Framing {
    /// After so many bytes.
    Length(u64),
    Chunks(Chunks),
    /// With the connection.
    Close,
}

/// Why a request has no answer.
#[derive(Debug)]
pub(crate) enum SendError {
    /// Nothing of it was written: it can be sent again.
    Unsent(io::Error),
    /// It may have arrived.
    Lost(io::Error),
}

impl<S: AsyncRead + AsyncWrite + Unpin> Line<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, got: BytesMut::new() }
    }

    /// Whether nothing has come that nobody asked for, such as the end. Nobody is woken by what is found out here.
    pub(crate) fn is_quiet(&mut self) -> bool {
        let mut byte = [0; 1];
        let mut byte = ReadBuf::new(&mut byte);
        let mut context = Context::from_waker(Waker::noop());
        self.got.is_empty()
            && Pin::new(&mut self.stream).poll_read(&mut context, &mut byte).is_pending()
    }

    /// Sends a request, which comes in two pieces, and reads the head of its answer.
    pub(crate) async fn ask(&mut self, first: &[u8], rest: &[u8]) -> Result<Head, SendError> {
        after_others().await;
        let mut written = 0;
        let whole = match self.write(first, rest, &mut written).await {
            Ok(whole) => whole,
            Err(error) if written == 0 => return Err(SendError::Unsent(error)),
            // It may have said why before it closed.
            Err(error) => {
                let answered = self.head().await.ok();
                return answered
                    .map(|it| Head { stays: false, ..it })
                    .ok_or(SendError::Lost(error));
            }
        };
        let answer = self.head().await.map_err(SendError::Lost)?;
        Ok(Head { stays: answer.stays && whole, ..answer })
    }

    /// Writes two pieces, one after the other. Whoever answers before all of it has come does not want the rest: then
    /// it says that not all was written.
    async fn write(&mut self, first: &[u8], rest: &[u8], written: &mut usize) -> io::Result<bool> {
        let Self { stream, got } = self;
        poll_fn(|context| {
            while *written < first.len() + rest.len() {
                let piece = match written.checked_sub(first.len()) {
                    None => &first[*written..],
                    Some(at) => &rest[at..],
                };
                match Pin::new(&mut *stream).poll_write(context, piece) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(more)) => *written += more,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        ready!(poll_more(stream, got, PIECE, context))?;
                        return Poll::Ready(Ok(false));
                    }
                }
            }
            // What is encrypted may still lie in a buffer of ours.
            Pin::new(&mut *stream).poll_flush(context).map_ok(|()| true)
        })
        .await
    }

    /// Reads the head of an answer. What is only said in between (100, 103) is passed over.
    async fn head(&mut self) -> io::Result<Head> {
        let mut searched = 0;
        loop {
            let Some(end) = end_of_head(&self.got, searched) else {
                searched = self.got.len();
                if MAX_HEAD < searched {
                    return Err(malformed("the head of its answer is too large"));
                }
                if self.more(PIECE).await? == 0 {
                    let cause = "it closed the connection before it answered";
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, cause));
                }
                continue;
            };
            searched = 0;
            let text = self.got.split_to(end).freeze();
            let head = read_head(&text)?;
            match head.status.as_u16() {
                101 => return Err(malformed("it switched to another protocol")),
                100..200 => {}
                _ => return Ok(head),
            }
        }
    }

    /// The next piece of a body; nothing at its end.
    pub(crate) async fn piece(&mut self, framing: &mut Framing) -> io::Result<Option<Bytes>> {
        loop {
            let step = match framing {
                Framing::Length(0) => return Ok(None),
                Framing::Length(left) => Step::Data(left),
                Framing::Close if self.got.is_empty() => {
                    return Ok(
                        (self.more(LONG_PIECE).await? != 0).then(|| self.got.split().freeze())
                    );
                }
                Framing::Close => return Ok(Some(self.got.split().freeze())),
                Framing::Chunks(chunks) => chunks.step(&mut self.got)?,
            };
            match step {
                Step::End => return Ok(None),
                Step::Data(left) if !self.got.is_empty() => {
                    let size = usize::try_from(*left).unwrap_or(usize::MAX).min(self.got.len());
                    *left -= size as u64;
                    return Ok(Some(self.got.split_to(size).freeze()));
                }
                Step::Data(_) | Step::More => {
                    if self.more(LONG_PIECE).await? == 0 {
                        return Err(ended());
                    }
                }
            }
        }
    }

    /// The whole of a body of which it is known how long it is, in one buffer.
    pub(crate) async fn exactly(&mut self, length: usize) -> io::Result<Bytes> {
        if length <= self.got.len() {
            return Ok(self.got.split_to(length).freeze());
        }
        let mut whole = BytesMut::with_capacity(length);
        whole.extend_from_slice(&self.got);
        self.got.clear();
        while whole.len() < length {
            let left = length - whole.len();
            if self.stream.read_buf(&mut (&mut whole).limit(left)).await? == 0 {
                return Err(ended());
            }
        }
        Ok(whole.freeze())
    }

    /// Whether a body has ended, as far as can be told without waiting; of what is left of it nothing is kept.
    pub(crate) fn has_ended(&mut self, framing: &mut Framing) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        for _ in 0..MOST_LEFT {
            let next = match framing {
                Framing::Length(0) => return true,
                Framing::Close => return false,
                _ => std::pin::pin!(self.piece(framing)).poll(&mut context),
            };
            match next {
                Poll::Ready(Ok(None)) => return true,
                Poll::Ready(Ok(Some(_))) => {}
                Poll::Ready(Err(_)) | Poll::Pending => return false,
            }
        }
        false
    }

    /// Gives up what it has for reading, until there is something to read.
    pub(crate) fn rest_if_empty(&mut self) {
        if self.got.is_empty() {
            self.got = BytesMut::new();
        }
    }

    async fn more(&mut self, room: usize) -> io::Result<usize> {
        self.got.reserve(room);
        self.stream.read_buf(&mut self.got).await
    }
}

/// Lets everybody run who can, once. What all of them have to write is then written in one go, so that whoever reads it
/// is woken once and not for each: at 64 connections, waking others was a sixth of what a call cost. Only where one
/// thread does all the work: of several, each that gives way would wake another to help.
pub async fn after_others() {
    let alone = Handle::try_current().is_ok_and(|it| it.metrics().num_workers() == 1);
    let mut yielded = !alone;
    poll_fn(|context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Reads what there is, without waiting for it to be asked for.
fn poll_more<S: AsyncRead + Unpin>(
    stream: &mut S,
    got: &mut BytesMut,
    room: usize,
    context: &mut Context<'_>,
) -> Poll<io::Result<usize>> {
    got.reserve(room);
    let mut reading = std::pin::pin!(stream.read_buf(got));
    reading.as_mut().poll(context)
}

fn ended() -> io::Error {
    let cause = "it closed the connection before its answer had ended";
    io::Error::new(io::ErrorKind::UnexpectedEof, cause)
}

fn malformed(cause: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, cause.to_owned())
}

/// The place after the empty line that ends a head, looked for from where it was not looked for before.
fn end_of_head(got: &[u8], searched: usize) -> Option<usize> {
    let from = searched.saturating_sub(3);
    let mut ends = memchr::memchr_iter(b'\n', &got[from..]).map(|it| from + it + 1);
    ends.find_map(|at| match &got[at..] {
        [b'\n', ..] => Some(at + 1),
        [b'\r', b'\n', ..] => Some(at + 2),
        _ => None,
    })
}

/// Reads a head that is whole.
fn read_head(text: &Bytes) -> io::Result<Head> {
    let mut fields = [const { std::mem::MaybeUninit::uninit() }; MAX_FIELDS];
    let mut answer = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut answer,
        text,
        &mut fields,
    );
    match parsed {
        Ok(httparse::Status::Complete(end)) if end == text.len() => {}
        Err(error) => return Err(malformed(&format!("its answer is no HTTP: {error}"))),
        Ok(_) => return Err(malformed("its answer is no HTTP")),
    }
    let status = answer.code.and_then(|it| StatusCode::from_u16(it).ok());
    let status = status.ok_or_else(|| malformed("its answer has no status"))?;
    let (mut length, mut chunked, mut coded) = (None, false, false);
    let mut stays = answer.version == Some(1);
    for field in answer.headers.iter() {
        let (name, value) = (field.name, field.value.trim_ascii());
        if name.eq_ignore_ascii_case("content-length") {
            let given = digits(value).ok_or_else(|| malformed("its answer has no sound length"))?;
            if length.is_some_and(|it| it != given) {
                return Err(malformed("its answer has two lengths"));
            }
            length = Some(given);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            (chunked, coded) = (value.eq_ignore_ascii_case(b"chunked") && !coded, true);
        } else if name.eq_ignore_ascii_case("connection") {
            let closes = |it: &[u8]| it.trim_ascii().eq_ignore_ascii_case(b"close");
            stays &= !value.split(|it| *it == b',').any(closes);
        }
    }
    if coded && !chunked {
        return Err(malformed("its answer is encoded in a way that was not asked for"));
    }
    // A length beside chunks has two readings.
    stays &= !(coded && length.is_some());
    let framing = match (status.as_u16(), chunked, length) {
        (204 | 304, ..) => Framing::Length(0),
        (_, true, _) => Framing::Chunks(Chunks::default()),
        (_, false, Some(length)) => Framing::Length(length),
        (_, false, None) => Framing::Close,
    };
    stays &= !matches!(framing, Framing::Close);
    let fields = Fields::of(text.clone(), answer.headers);
    Ok(Head { status, fields, framing, stays })
}

/// A number in digits and nothing else.
fn digits(value: &[u8]) -> Option<u64> {
    let plain = value.iter().all(u8::is_ascii_digit);
    str::from_utf8(value).ok().filter(|_| plain)?.parse().ok()
}

#[cfg(test)]
mod tests;
