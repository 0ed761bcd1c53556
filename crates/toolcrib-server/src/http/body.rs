//! Bodies of responses: a whole one, or a stream of events.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CACHE_CONTROL};
use hyper::body::{Body as HyperBody, Frame, SizeHint};
use tokio::sync::mpsc;
use toolcrib_wire::frame::one_line;

use crate::{queue::Receiver, stream::Event};

/// A body.
#[derive(Debug)]
pub(crate) enum Body {
    /// What is there already, in pieces, so that what is long need not be copied.
    Whole([Bytes; 3]),
    /// Messages, each of which becomes an event.
    Events(Receiver<Event>),
    /// Pieces as they are read.
    Chunks(mpsc::Receiver<Bytes>),
}

impl Body {
    pub(crate) fn whole(text: impl Into<Bytes>) -> Self {
        Self::Whole([text.into(), Bytes::new(), Bytes::new()])
    }

    /// What is there already, where that is all.
    pub(crate) fn pieces(&self) -> Option<&[Bytes]> {
        match self {
            Self::Whole(pieces) => Some(pieces),
            Self::Events(_) | Self::Chunks(_) => None,
        }
    }

    /// How long it is, as far as is known.
    pub(crate) fn known(&self) -> usize {
        self.pieces().unwrap_or_default().iter().map(Bytes::len).sum()
    }
}

/// A response that is a stream of events.
pub(crate) fn events(receiver: Receiver<Event>) -> Response<Body> {
    let mut response = super::typed(StatusCode::OK, "text/event-stream", Body::Events(receiver));
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

impl Event {
    fn text(self) -> Bytes {
        match self {
            Self::Message(text) => {
                [b"event: message\ndata: ", &*one_line(text), b"\n\n"].concat().into()
            }
            Self::Named(id, text) => {
                let text = one_line(text);
                [b"id: ", id.as_bytes(), b"\nevent: message\ndata: ", &*text, b"\n\n"]
                    .concat()
                    .into()
            }
            Self::Begin(id) => format!("id: {id}\ndata: \n\n").into(),
            Self::Endpoint(to) => format!("event: endpoint\ndata: {to}\n\n").into(),
            Self::Cloud(seq, text) => format!("id: {seq}\ndata: {text}\n\n").into(),
            Self::At(seq) => format!("id: {seq}\n\n").into(),
            Self::Gap(text) => format!("event: gap\ndata: {text}\n\n").into(),
            Self::KeepAlive => Bytes::from_static(b":\n\n"),
        }
    }
}

impl HyperBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(pieces) => {
                let next = pieces.iter_mut().find(|it| !it.is_empty()).map(std::mem::take);
                Poll::Ready(next.map(|it| Ok(Frame::data(it))))
            }
            Self::Events(events) => {
                events.poll_recv(context).map(|it| it.map(|it| Ok(Frame::data(it.text()))))
            }
            Self::Chunks(chunks) => {
                chunks.poll_recv(context).map(|it| it.map(|it| Ok(Frame::data(it))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(_)) && self.known() == 0
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(_) => SizeHint::with_exact(self.known() as u64),
            Self::Events(_) | Self::Chunks(_) => SizeHint::default(),
        }
    }
}
