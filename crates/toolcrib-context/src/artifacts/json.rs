//! JSON that is read as it streams by: values are gone over or kept as they are written, never taken apart.
//!
//! Numbers, escapes and the order of keys are those of the document, because what is handed on is its text.

use std::io::{self, Read};

use super::{PieceError, text::CHUNK, unescape};

/// How deep values may be nested.
pub(super) const MAX_DEPTH: usize = 256;

/// How long a key is told apart from others.
pub(super) const MAX_KEY: usize = 64 * 1024;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JsonType {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// `1.5`
    Number,
    /// `true` or `false`
    Boolean,
    /// `null`
    Null,
}

impl JsonType {
    /// As people call it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Null => "null",
        }
    }

    /// With its article.
    pub(super) fn a_word(self) -> String {
        let article = if matches!(self, Self::Object | Self::Array) { "an" } else { "a" };
        format!("{article} {}", self.word())
    }

    /// By the first byte of a value.
    pub(super) fn of(first: u8) -> Option<Self> {
        Some(match first {
            b'{' => Self::Object,
            b'[' => Self::Array,
            b'"' => Self::String,
            b'-' | b'0'..=b'9' => Self::Number,
            b't' | b'f' => Self::Boolean,
            b'n' => Self::Null,
            _ => return None,
        })
    }
}

/// Why it cannot be read as JSON.
#[derive(Debug, thiserror::Error)]
pub(super) enum JsonError {
    #[error("byte {at}: {what}")]
    Syntax { at: u64, what: &'static str },
    #[error("byte {at}: nested more than {MAX_DEPTH} deep")]
    Depth { at: u64 },
    #[error("{0}")]
    Io(#[from] io::Error),
}

impl JsonError {
    /// Said to whoever asked for something.
    pub(super) fn of(self, asked: &'static str) -> PieceError {
        match self {
            Self::Io(error) => PieceError::Io(error),
            error => PieceError::Kind { asked, found: format!("it is not JSON at {error}") },
        }
    }
}

/// What is kept of a value that goes by: its text, up to a limit.
#[derive(Debug, Default)]
pub(super) struct Keep {
    pub(super) bytes: Vec<u8>,
    /// How long it was.
    pub(super) length: u64,
    limit: usize,
}

impl Keep {
    /// Not even its length.
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    pub(super) fn up_to(limit: usize) -> Self {
        Self { limit, ..Self::default() }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.limit == 0 {
            return;
        }
        let room = self.limit - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        self.length += bytes.len() as u64;
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.length = 0;
    }

    /// Whether it is the whole value.
    pub(super) fn is_whole(&self) -> bool {
        self.bytes.len() as u64 == self.length
    }
}

/// A value that went by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) kind: JsonType,
    /// How many members or elements it has.
    pub(super) children: u64,
    /// How many bytes it has.
    pub(super) length: u64,
}

/// Goes over JSON.
pub(super) struct Scanner<'a> {
    reader: &'a mut dyn Read,
    buffer: Vec<u8>,
    at: usize,
    filled: usize,
    /// Where in the whole the buffer begins.
    base: u64,
}

type Done<T> = Result<T, JsonError>;

impl<'a> Scanner<'a> {
    /// From where the reader stands, which is byte `base` of the whole.
    pub(super) fn new(reader: &'a mut dyn Read, base: u64) -> Self {
        Self { reader, buffer: vec![0; CHUNK], at: 0, filled: 0, base }
    }

    /// Which byte of the whole comes next.
    pub(super) fn position(&self) -> u64 {
        self.base + self.at as u64
    }

    /// What is read and not gone over yet; empty at the end only.
    fn rest(&mut self) -> Done<&[u8]> {
        if self.at == self.filled {
            self.base += self.filled as u64;
            (self.at, self.filled) = (0, 0);
            self.filled = loop {
                match self.reader.read(&mut self.buffer) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                    read => break read?,
                }
            };
        }
        Ok(&self.buffer[self.at..self.filled])
    }

    pub(super) fn syntax<T>(&self, what: &'static str) -> Done<T> {
        Err(JsonError::Syntax { at: self.position(), what })
    }

    fn bump(&mut self, keep: &mut Keep) {
        keep.push(&self.buffer[self.at..=self.at]);
        self.at += 1;
    }

    /// Goes over so many bytes of what is read.
    fn pass(&mut self, count: usize, keep: &mut Keep) {
        keep.push(&self.buffer[self.at..self.at + count]);
        self.at += count;
    }

    /// The next byte that is no white space, which is not gone over; nothing at the end.
    pub(super) fn peek(&mut self, keep: &mut Keep) -> Done<Option<u8>> {
        loop {
            let rest = self.rest()?;
            if rest.is_empty() {
                return Ok(None);
            }
            let space = |it: &u8| matches!(it, b' ' | b'\n' | b'\r' | b'\t');
            match rest.iter().position(|it| !space(it)) {
                Some(0) => return Ok(Some(rest[0])),
                Some(at) => {
                    let found = rest[at];
                    self.pass(at, keep);
                    return Ok(Some(found));
                }
                None => {
                    let all = rest.len();
                    self.pass(all, keep);
                }
            }
        }
    }

    /// Goes over one byte that has to come, after white space.
    fn expect(&mut self, byte: u8, what: &'static str, keep: &mut Keep) -> Done<()> {
        if self.peek(keep)? != Some(byte) {
            return self.syntax(what);
        }
        self.bump(keep);
        Ok(())
    }

    /// A mark of order at the beginning is not part of the document.
    pub(super) fn skip_mark(&mut self) -> Done<()> {
        if self.position() == 0 && self.rest()?.starts_with(b"\xEF\xBB\xBF") {
            self.at += 3;
        }
        Ok(())
    }

    fn string(&mut self, keep: &mut Keep) -> Done<()> {
        self.expect(b'"', "expected a string", keep)?;
        loop {
            let rest = self.rest()?;
            if rest.is_empty() {
                return self.syntax("a string that does not end");
            }
            let found = memchr::memchr2(b'"', b'\\', rest);
            let taken = found.unwrap_or(rest.len());
            let quote = found.map(|at| rest[at] == b'"');
            self.pass(taken, keep);
            match quote {
                None => {}
                Some(true) => {
                    self.bump(keep);
                    return Ok(());
                }
                Some(false) => {
                    self.bump(keep);
                    if self.rest()?.is_empty() {
                        return self.syntax("a string that does not end");
                    }
                    self.bump(keep);
                }
            }
        }
    }

    /// A number or a word.
    fn token(&mut self, keep: &mut Keep) -> Done<()> {
        let mut token = [0; 5];
        let mut length = 0;
        loop {
            let rest = self.rest()?;
            let more = |it: &u8| it.is_ascii_alphanumeric() || matches!(it, b'+' | b'-' | b'.');
            let count = rest.iter().position(|it| !more(it)).unwrap_or(rest.len());
            for (place, byte) in token.iter_mut().skip(length).zip(&rest[..count]) {
                *place = *byte;
            }
            let ended = count < rest.len() || rest.is_empty();
            length += count;
            self.pass(count, keep);
            if ended {
                break;
            }
        }
        let number = matches!(token[0], b'-' | b'0'..=b'9');
        let word = token.get(..length).is_some_and(|it| matches!(it, b"true" | b"false" | b"null"));
        if number || word { Ok(()) } else { self.syntax("expected a value") }
    }

    /// A key and its colon; the key as it is written, without quotes.
    pub(super) fn key(&mut self, keep: &mut Keep) -> Done<()> {
        if self.peek(&mut Keep::nothing())? != Some(b'"') {
            return self.syntax("expected a key");
        }
        self.string(keep)?;
        self.expect(b':', "expected a colon", &mut Keep::nothing())
    }

    /// Goes over one value.
    pub(super) fn value(&mut self, keep: &mut Keep) -> Done<Passed> {
        let Some(first) = self.peek(&mut Keep::nothing())? else {
            return self.syntax("expected a value");
        };
        let Some(kind) = JsonType::of(first) else { return self.syntax("expected a value") };
        let begin = self.position();
        let mut open = Vec::new();
        let mut children = 0;
        loop {
            children += u64::from(open.len() == 1);
            if !self.opened(&mut open, keep)? {
                continue;
            }
            if self.closed(&mut open, keep)? {
                let length = self.position() - begin;
                return Ok(Passed { kind, children, length });
            }
        }
    }

    /// Goes over what a value begins with; says whether it ended with that.
    fn opened(&mut self, open: &mut Vec<u8>, keep: &mut Keep) -> Done<bool> {
        let byte = self.peek(keep)?.unwrap_or_default();
        match byte {
            b'"' => self.string(keep)?,
            b'{' | b'[' => {
                if MAX_DEPTH <= open.len() {
                    return Err(JsonError::Depth { at: self.position() });
                }
                self.bump(keep);
                let close = byte + 2;
                if self.peek(keep)? == Some(close) {
                    self.bump(keep);
                } else {
                    open.push(close);
                    if close == b'}' {
                        self.member(keep)?;
                    }
                    return Ok(false);
                }
            }
            _ => self.token(keep)?,
        }
        Ok(true)
    }

    /// Goes over what stands between the end of a value and the next one; says whether all are closed.
    fn closed(&mut self, open: &mut Vec<u8>, keep: &mut Keep) -> Done<bool> {
        while let Some(&close) = open.last() {
            match self.peek(keep)? {
                Some(b',') => {
                    self.bump(keep);
                    if close == b'}' {
                        self.member(keep)?;
                    }
                    return Ok(false);
                }
                Some(byte) if byte == close => {
                    self.bump(keep);
                    open.pop();
                }
                _ => return self.syntax("expected a comma or the end of an object or array"),
            }
        }
        Ok(true)
    }

    fn member(&mut self, keep: &mut Keep) -> Done<()> {
        if self.peek(keep)? != Some(b'"') {
            return self.syntax("expected a key");
        }
        self.string(keep)?;
        self.expect(b':', "expected a colon", keep)
    }

    /// Begins to go over the children of an object or array, or over documents one after the other.
    pub(super) fn children(&mut self, kind: Container) -> Done<Children> {
        if kind != Container::Documents {
            let byte = if kind == Container::Object { b'{' } else { b'[' };
            self.expect(byte, "expected an object or array", &mut Keep::nothing())?;
        }
        Ok(Children { kind, first: true })
    }
}

/// What has children.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Container {
    Object,
    Array,
    /// Documents one after the other, as in JSON lines.
    Documents,
}

/// Stands among the children of something.
#[derive(Debug)]
pub(super) struct Children {
    kind: Container,
    first: bool,
}

impl Children {
    /// Goes to the next child, whose value the caller goes over; `key` becomes its key. False at the end.
    pub(super) fn next(&mut self, scanner: &mut Scanner<'_>, key: &mut Keep) -> Done<bool> {
        let mut space = Keep::nothing();
        let next = scanner.peek(&mut space)?;
        let first = std::mem::take(&mut self.first);
        let close = match self.kind {
            Container::Documents => return Ok(next.is_some()),
            Container::Array => b']',
            Container::Object => b'}',
        };
        if next == Some(close) {
            scanner.bump(&mut space);
            return Ok(false);
        }
        if !first {
            scanner.expect(
                b',',
                "expected a comma or the end of an object or array",
                &mut space,
            )?;
        }
        if self.kind == Container::Object {
            key.clear();
            scanner.key(key)?;
        }
        Ok(true)
    }
}

/// What a string says that is written like this, with quotes.
pub(super) fn unquoted(raw: &[u8]) -> String {
    let mut out = Vec::with_capacity(raw.len());
    if unescape::unescape_json_string(raw, &mut out).is_err() {
        out = raw.to_vec();
    }
    String::from_utf8_lossy(&out).into_owned()
}
