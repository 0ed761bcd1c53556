//! A piece of an artifact: bounded, placed in the whole, and with the way on.

use std::{
    io,
    sync::{Arc, atomic::AtomicBool},
    time::Instant,
};

use serde::{Serialize, Serializer};

use super::{
    Content, Selector, aggregate, grep, path, rows, text,
    watch::{self, Watch, Watched},
};

/// How large a piece may be, and how long it may take.
#[derive(Debug, Clone)]
pub struct ReadLimits {
    /// Bytes of a piece.
    pub max_bytes: usize,
    /// Bytes of the part of a JSON document that is held in memory, to be looked through by a path.
    pub max_held: usize,
    /// When it is given up; ten seconds after it was asked for where none is set.
    pub deadline: Option<Instant>,
    /// Given up as soon as this is true: nobody waits for it any more.
    pub cancel: Option<Arc<AtomicBool>>,
}

impl Default for ReadLimits {
    fn default() -> Self {
        Self { max_bytes: 16 * 1024, max_held: 24 << 20, deadline: None, cancel: None }
    }
}

/// What a piece holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Text.
    Text(String),
    /// Bytes that are none.
    Bytes(Vec<u8>),
}

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Lines.
    Lines,
    /// Rows of a table.
    Rows,
    /// Keys of an object.
    Keys,
    /// Values that a path leads to.
    Values,
    /// Lines that match.
    Matches,
    /// Groups of rows.
    Groups,
}

/// A piece of an artifact.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Piece {
    /// What it holds; bytes as base64.
    #[serde(flatten, serialize_with = "body")]
    pub body: Body,
    /// What that is.
    pub media_type: String,
    /// What `from`, `to` and `total` count.
    pub unit: Unit,
    /// The first.
    pub from: u64,
    /// The one behind the last.
    pub to: u64,
    /// How many there are, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What to ask for to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<Selector>,
    /// What the reader should know of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

fn body<S: Serializer>(body: &Body, serializer: S) -> Result<S::Ok, S::Error> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde::ser::SerializeMap as _;
    let mut map = serializer.serialize_map(Some(1))?;
    match body {
        Body::Text(text) => map.serialize_entry("text", text)?,
        Body::Bytes(bytes) => map.serialize_entry("blob", &STANDARD.encode(bytes))?,
    }
    map.end()
}

impl Piece {
    pub(super) fn text(text: String, media_type: &str, unit: Unit) -> Self {
        let (body, media_type) = (Body::Text(text), media_type.to_owned());
        Self { body, media_type, unit, from: 0, to: 0, total: None, next: None, notes: Vec::new() }
    }

    pub(super) fn place(mut self, from: u64, to: u64, total: Option<u64>) -> Self {
        (self.from, self.to, self.total) = (from, to, total);
        self
    }

    pub(super) fn next(mut self, next: Option<Selector>) -> Self {
        self.next = next;
        self
    }

    pub(super) fn note(mut self, note: Option<impl Into<String>>) -> Self {
        self.notes.extend(note.map(Into::into));
        self
    }

    /// Its text; nothing of bytes.
    pub fn as_text(&self) -> Option<&str> {
        match &self.body {
            Body::Text(text) => Some(text),
            Body::Bytes(_) => None,
        }
    }
}

/// Why there is no such piece.
#[derive(Debug, thiserror::Error)]
pub enum PieceError {
    /// What was asked for cannot be understood.
    #[error("{0}")]
    Asked(String),
    /// The content is not of a kind that this can be asked of.
    #[error("{asked} cannot be read here: {found}")]
    Kind {
        /// What was asked for.
        asked: &'static str,
        /// What there is instead.
        found: String,
    },
    /// There is nothing at that place.
    #[error("there is nothing at {0}")]
    Nothing(String),
    /// It would take more memory than there is for it.
    #[error("{what} is larger than {limit} bytes; {cure}")]
    TooLarge {
        /// What.
        what: String,
        /// How large it may be.
        limit: usize,
        /// What to ask for instead.
        cure: String,
    },
    /// It took longer than there was time for.
    #[error("this takes too long and was given up; {cure}")]
    TooSlow {
        /// What to ask for instead.
        cure: &'static str,
    },
    /// Whoever asked no longer waits for it.
    #[error("nobody waits for this any more")]
    Cancelled,
    /// The file would not.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
}

/// A piece of some content.
pub fn read_piece(
    content: &mut dyn Content,
    media_type: &str,
    selector: &Selector,
    limits: &ReadLimits,
) -> Result<Piece, PieceError> {
    let watch = Watch::of(limits);
    let mut watched = Watched { content, watch: &watch };
    let asked = Asked { media_type, limits, watch: &watch };
    selected(&mut watched, selector, &asked).map_err(|error| watch::said(error, selector))
}

/// How something is asked for.
pub(super) struct Asked<'a> {
    pub(super) media_type: &'a str,
    pub(super) limits: &'a ReadLimits,
    pub(super) watch: &'a Watch,
}

fn selected(
    content: &mut dyn Content,
    selector: &Selector,
    asked: &Asked<'_>,
) -> Result<Piece, PieceError> {
    let Asked { media_type, limits, .. } = *asked;
    match selector {
        Selector::Head { chars, offset } => {
            text::head(content, media_type, *chars, *offset, limits)
        }
        Selector::Tail { chars } => text::tail(content, media_type, *chars, limits),
        Selector::Lines { range, skip } => text::lines(content, media_type, *range, *skip, limits),
        Selector::Bytes { range } => text::bytes(content, media_type, *range, limits),
        Selector::Rows { range, path } => {
            rows::rows(content, media_type, *range, path.as_deref(), limits)
        }
        Selector::Keys { path, names, from } => {
            rows::keys(content, media_type, path, names, *from, limits)
        }
        Selector::Path { path, from } => path::read(content, path, *from, asked),
        Selector::Grep { pattern, ignore_case, context, from } => {
            let (ignore_case, context, from) = (*ignore_case, *context, *from);
            grep::read(content, &grep::Asked { pattern, ignore_case, context, from }, limits)
        }
        Selector::Aggregate(asked) => aggregate::read(content, media_type, asked, limits),
    }
}
