//! Large messages, sifted as they come: what is too large goes into files, the rest stays text.
//!
//! A message is large because one text, one piece of base64 or one structure in a result is. Such a part
//! is put aside ([`crate::spool`]); in what is left of the message there stands `""` or `null` in its place,
//! and that is read as any message is. All of it is held to the same rules on the way ([`push`]).
//! Whatever else is large, such as a list of tools, is kept in memory as it always was; so is a part that
//! cannot be put aside, as long as there is room for it.

mod push;
mod sifting;

use std::{io, ops::Range, sync::Arc};

use bytes::Bytes;
use tokio::task::JoinError;

use crate::{
    board::Answer,
    client::Answered,
    error::RequestError,
    frame::{Frame, FrameError, Id, RpcError},
    json::{self, Fault, ScanError},
    spool::{Field, Length, Place, Spool, Spooled, StandIn, Writing},
};

use push::{Push, Stop};
pub(crate) use sifting::Sifting;

/// A message as it came, or what is left of it.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) text: Bytes,
    sifted: Option<Sifted>,
}

/// What became of a message that was sifted.
#[derive(Debug)]
enum Sifted {
    /// These parts are elsewhere.
    Aside(Arc<Spooled>),
    /// It is no JSON; the text is what came before the fault.
    Broken(ScanError),
    /// Parts of it could neither be put aside nor kept, and are lost.
    Lost(String),
}

impl From<Bytes> for Message {
    fn from(text: Bytes) -> Self {
        Self { text, sifted: None }
    }
}

impl Message {
    /// What the message is.
    pub(crate) fn read(&self) -> Result<Frame, FrameError> {
        match &self.sifted {
            Some(Sifted::Broken(error)) => {
                let fault = error.clone().into();
                Err(FrameError { id: id_in(&self.text), fault })
            }
            _ => Frame::read(&self.text),
        }
    }

    /// What the answer in it is to whoever waits for it.
    pub(crate) fn answer(&self, answer: Result<Bytes, RpcError>) -> Answer {
        let result = answer.map_err(RequestError::Rpc)?;
        match &self.sifted {
            None => Ok(result.into()),
            Some(Sifted::Aside(parts)) => {
                let aside = Some(parts).filter(|it| !it.parts.is_empty());
                Ok(Answered { result, aside: aside.cloned() })
            }
            Some(Sifted::Broken(error)) => {
                Err(RequestError::Malformed { cause: error.to_string() })
            }
            Some(Sifted::Lost(cause)) => Err(RequestError::NoRoom { cause: cause.clone() }),
        }
    }
}

/// The id in the beginning of a message, if it stands there.
fn id_in(begin: &[u8]) -> Option<Id> {
    let text = begin.utf8_chunks().next()?.valid().as_bytes();
    let mut id = None;
    // It will fail, since this is only a beginning; what came before is what is wanted.
    json::scan(text, |key, at| {
        if key == "id" {
            id = Id::read(&text[at]);
        }
    })
    .ok();
    id
}

/// Why a message is not taken any further.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SiftError {
    /// It is larger than anybody wants to take.
    #[error("it sent a message of over {limit} bytes, the limit")]
    TooLarge { limit: usize },
    /// Only where we are ending, too.
    #[error("its message was dropped half-way")]
    Dropped(#[from] JoinError),
}

/// Takes a message piece by piece, and puts aside what is large.
#[derive(Debug)]
pub(crate) struct Sifter {
    spool: Spool,
    /// How much may be kept in memory.
    max_kept: usize,
    push: Push,
    /// How much has come.
    seen: usize,
    /// What is left of the message.
    kept: Vec<u8>,
    route: Route,
    /// What of each open container is being read, the outermost first.
    path: [Step; WATCH],
    /// Where the result begins in `kept`.
    result: usize,
    /// Where the part of `content` begins there that is being read.
    part: usize,
    spooled: Spooled,
    /// The file of the parts, once there is one.
    writing: Option<Writing>,
    /// Why nothing more is put aside.
    failed: Option<io::Error>,
    /// Where parts are kept that should have been put aside.
    held: Vec<(Place, Range<usize>)>,
    /// There was no room for those.
    lost: bool,
    broken: Option<ScanError>,
}

/// Containers deeper than this hold nothing that is put aside by itself: those of the message, the result,
/// `content`, a part of it and its `resource` do.
const WATCH: usize = 5;

/// What of a container is being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Result,
    Content,
    Structure,
    Text,
    Data,
    Resource,
    Blob,
    /// Any other member of an object.
    Other,
    /// An element of an array; before the first, none.
    Element(Option<usize>),
}

/// Where the bytes go.
#[derive(Debug)]
enum Route {
    /// They are kept.
    Keep,
    /// They are kept for now, and may turn out to be too many: a part that begins here.
    Watch { place: Place, begin: usize },
    /// They are put aside.
    Aside { place: Place, length: Length },
    /// They are kept, though they are too many: a part that begins here and cannot be put aside.
    Hold { place: Place, begin: usize },
    /// They are lost.
    Drop { place: Place },
}

impl Sifter {
    pub(crate) fn new(spool: Spool, max_kept: usize) -> Self {
        let mut push = Push::new();
        push.watch = WATCH as u32;
        Self {
            spool,
            max_kept,
            push,
            seen: 0,
            kept: Vec::new(),
            route: Route::Keep,
            path: [Step::Other; WATCH],
            result: 0,
            part: 0,
            spooled: Spooled::default(),
            writing: None,
            failed: None,
            held: Vec::new(),
            lost: false,
            broken: None,
        }
    }

    /// Takes the next piece.
    pub(crate) fn feed(&mut self, piece: &[u8]) -> Result<(), SiftError> {
        let begin = self.seen;
        self.seen = self.seen.saturating_add(piece.len());
        if self.spool.limit < self.seen {
            return Err(SiftError::TooLarge { limit: self.spool.limit });
        }
        if self.broken.is_some() {
            return Ok(());
        }
        let taken = self.push.look(piece).and_then(|()| self.take(piece));
        if let Err((at, fault)) = taken {
            self.broken = Some(ScanError { fault, offset: begin + at });
        }
        if self.max_kept < self.kept.len() + self.push.held() && self.failed.is_some() {
            self.lose();
        }
        if self.max_kept < self.kept.len() + self.push.held() {
            return Err(SiftError::TooLarge { limit: self.max_kept });
        }
        Ok(())
    }

    fn take(&mut self, piece: &[u8]) -> Result<(), (usize, Fault)> {
        let mut at = 0;
        while at < piece.len() {
            let step = self.push.step(&piece[at..]);
            let (read, stop) = step.map_err(|(more, fault)| (at + more, fault))?;
            self.pass(&piece[at..at + read], stop);
            at += read;
            match stop {
                Stop::Dry => {}
                Stop::Begin => self.begin(piece.get(at).copied().unwrap_or_default()),
                Stop::Key => self.key(),
                Stop::End => self.end(),
            }
        }
        Ok(())
    }

    /// Everything has come.
    pub(crate) fn finish(mut self) -> Message {
        if self.broken.is_none()
            && let Err(fault) = self.push.end()
        {
            self.broken = Some(ScanError { fault, offset: self.seen });
        }
        let sifted = match (self.broken, self.failed) {
            (Some(error), _) => Sifted::Broken(error),
            (None, Some(error)) if self.lost => Sifted::Lost(error.to_string()),
            (None, _) => Sifted::Aside(Arc::new(self.spooled)),
        };
        Message { text: self.kept.into(), sifted: Some(sifted) }
    }

    /// A value begins with this byte.
    fn begin(&mut self, first: u8) {
        let depth = self.push.depth as usize;
        if let Some(Step::Element(at)) = self.step_mut(depth) {
            *at = Some(at.map_or(0, |it| it + 1));
        }
        match first {
            b'{' => self.enter(depth + 1, Step::Other),
            b'[' => self.enter(depth + 1, Step::Element(None)),
            _ => {}
        }
        if depth == 1 && self.path[0] == Step::Result {
            self.result = self.kept.len();
        }
        if let [Step::Result, Step::Content, Step::Element(_)] = self.path[..depth.min(WATCH)] {
            self.part = self.kept.len();
        }
        let place = self.place(depth, first);
        if let (Some(place), Route::Keep) = (place, &self.route) {
            // The quote stays.
            let begin = self.kept.len() + usize::from(place != Place::Structure);
            self.route = Route::Watch { place, begin };
            // Nothing inside is of interest until it ends.
            self.push.watch = self.push.depth;
        }
    }

    /// What stands here, if it is something that may be put aside.
    fn place(&self, depth: usize, first: u8) -> Option<Place> {
        use Step::{Blob, Content, Data, Element, Resource, Result, Structure, Text};
        let string = |at, field| (first == b'"').then_some(Place::Content(at, field));
        match self.path.get(..depth)? {
            [Result, Structure] => Some(Place::Structure),
            [Result, Content, Element(Some(at)), Text] => string(*at, Field::Text),
            [Result, Content, Element(Some(at)), Data] => string(*at, Field::Data),
            [Result, Content, Element(Some(at)), Resource, Text] => {
                string(*at, Field::ResourceText)
            }
            [Result, Content, Element(Some(at)), Resource, Blob] => {
                string(*at, Field::ResourceBlob)
            }
            _ => None,
        }
    }

    fn key(&mut self) {
        let depth = self.push.depth as usize;
        let step = match (depth, &*self.push.last_key()) {
            (1, "result") => Step::Result,
            (2, "content") => Step::Content,
            (2, "structuredContent") => Step::Structure,
            (4 | 5, "text") => Step::Text,
            (4, "data") => Step::Data,
            (4, "resource") => Step::Resource,
            (5, "blob") => Step::Blob,
            _ => Step::Other,
        };
        self.enter(depth, step);
    }

    fn enter(&mut self, depth: usize, step: Step) {
        if let Some(it) = self.step_mut(depth) {
            *it = step;
        }
    }

    fn step_mut(&mut self, depth: usize) -> Option<&mut Step> {
        self.path.get_mut(depth.checked_sub(1)?)
    }

    /// Bytes go where they belong.
    fn pass(&mut self, bytes: &[u8], stop: Stop) {
        match &mut self.route {
            Route::Keep | Route::Hold { .. } => self.kept.extend_from_slice(bytes),
            Route::Watch { place, begin } => {
                self.kept.extend_from_slice(bytes);
                let (place, begin) = (*place, *begin);
                if self.spool.part < self.kept.len().saturating_sub(begin) {
                    self.divert(place, begin, stop);
                }
            }
            Route::Aside { place, length } => {
                let place = *place;
                let quote = if stop == Stop::End { quote(place).len() } else { 0 };
                let (bytes, quote) = bytes.split_at(bytes.len() - quote);
                match place {
                    Place::Structure => length.size += bytes.len() as u64,
                    Place::Content(..) => length.add(bytes),
                }
                if let Some(Err(error)) = self.writing.as_mut().map(|it| it.put(bytes)) {
                    self.take_back(place, error);
                    self.pass(quote, stop);
                }
            }
            Route::Drop { .. } => {}
        }
    }

    /// A part has turned out to be too large to be kept.
    fn divert(&mut self, place: Place, begin: usize, stop: Stop) {
        if self.failed.is_none() && self.writing.is_none() {
            match Writing::begin(&self.spool) {
                Ok(writing) => self.writing = Some(writing),
                Err(error) => self.fail(error),
            }
        }
        if self.failed.is_some() && !self.lost {
            self.route = Route::Hold { place, begin };
            return;
        }
        let gathered = self.kept.split_off(begin);
        self.route = if self.lost {
            Route::Drop { place }
        } else {
            Route::Aside { place, length: Length::default() }
        };
        self.pass(&gathered, stop);
    }

    /// A value has ended.
    fn end(&mut self) {
        // Of what lies inside a part nobody hears, so it is the part itself.
        let route = std::mem::replace(&mut self.route, Route::Keep);
        self.push.watch = WATCH as u32;
        match route {
            Route::Keep | Route::Watch { .. } => {}
            Route::Hold { place, begin } => {
                self.held.push((place, begin..self.kept.len() - quote(place).len()));
            }
            Route::Drop { place } => self.kept.extend_from_slice(rest_of_stand_in(place)),
            Route::Aside { place, length } => self.end_aside(place, length.size),
        }
    }

    fn end_aside(&mut self, place: Place, size: u64) {
        // The quote that opened a string is there still.
        let at = self.kept.len().saturating_sub(self.result + quote(place).len());
        let within = match place {
            Place::Structure => at,
            Place::Content(..) => self.part.saturating_sub(self.result),
        };
        let Some(writing) = &mut self.writing else { return };
        match writing.end(StandIn { place, at, within }, size) {
            Ok(part) => {
                self.spooled.parts.push(part);
                self.kept.extend_from_slice(rest_of_stand_in(place));
            }
            Err(error) => {
                self.take_back(place, error);
                self.pass(quote(place), Stop::End);
                self.end();
            }
        }
    }

    /// The part that was being put aside goes on in memory, if there is room.
    fn take_back(&mut self, place: Place, error: io::Error) {
        self.fail(error);
        let begin = self.kept.len();
        self.route = Route::Hold { place, begin };
        let Some(writing) = &mut self.writing else { return };
        if writing.take_back(&mut self.kept, self.max_kept).is_err() {
            self.lose();
        }
    }

    fn fail(&mut self, error: io::Error) {
        tracing::warn!(%error, "what is large in a message stays in memory: it cannot be put aside");
        self.failed = Some(error);
    }

    /// There is no room for what should have been put aside. What is left is the message without it, which
    /// still says whose answer it is.
    fn lose(&mut self) {
        self.lost = true;
        self.spooled.parts.clear();
        self.writing = None;
        if let Route::Hold { place, begin } = self.route {
            self.kept.truncate(begin);
            self.route = Route::Drop { place };
        }
        let (mut left, mut done) = (Vec::new(), 0);
        for (place, range) in self.held.drain(..) {
            left.extend_from_slice(&self.kept[done..range.start]);
            if place == Place::Structure {
                left.extend_from_slice(rest_of_stand_in(place));
            }
            done = range.end;
        }
        left.extend_from_slice(&self.kept[done..]);
        if let Route::Watch { begin, .. } = &mut self.route {
            *begin -= self.kept.len() - left.len();
        }
        self.kept = left;
    }
}

/// What stands before and after a part.
fn quote(place: Place) -> &'static [u8] {
    match place {
        Place::Structure => b"",
        Place::Content(..) => b"\"",
    }
}

/// What is put in the place of a part that has gone: of a string the first quote has stayed.
fn rest_of_stand_in(place: Place) -> &'static [u8] {
    match place {
        Place::Structure => b"null",
        Place::Content(..) => b"\"",
    }
}

#[cfg(test)]
mod tests;
