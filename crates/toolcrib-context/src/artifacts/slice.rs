//! JSON that is in memory, and known to be well formed: its values are pieces of its text.

use super::json::{JsonType, unquoted};

/// A value: its text, without white space around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Node<'a>(pub(super) &'a [u8]);

/// A child of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct Child<'a> {
    /// As it is written, with quotes; nothing in an array.
    pub(super) key: Option<&'a [u8]>,
    pub(super) value: Node<'a>,
}

impl<'a> Node<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self(text.trim_ascii())
    }

    pub(super) fn kind(self) -> Option<JsonType> {
        self.0.first().and_then(|it| JsonType::of(*it))
    }

    /// Members or elements; none of anything else.
    pub(super) fn children(self) -> Children<'a> {
        let object = self.0.first() == Some(&b'{');
        let none = !object && self.0.first() != Some(&b'[');
        Children { text: self.0, at: if none { self.0.len() } else { 1 }, object }
    }

    pub(super) fn member(self, name: &str) -> Option<Self> {
        let children = self.children();
        children.object.then_some(())?;
        self.children().find(|it| it.key.is_some_and(|key| key_is(key, name))).map(|it| it.value)
    }

    pub(super) fn element(self, index: i64) -> Option<(usize, Self)> {
        if self.kind() != Some(JsonType::Array) {
            return None;
        }
        let index = match usize::try_from(index) {
            Ok(index) => index,
            Err(_) => {
                let count = self.children().count();
                count.checked_sub(usize::try_from(index.unsigned_abs()).ok()?)?
            }
        };
        self.children().nth(index).map(|it| (index, it.value))
    }

    /// What a string says.
    pub(super) fn string(self) -> Option<String> {
        (self.kind() == Some(JsonType::String)).then(|| unquoted(self.0))
    }

    /// The text of it, as a cell of a table would have it: strings without quotes.
    pub(super) fn cell(self) -> String {
        self.string().unwrap_or_else(|| String::from_utf8_lossy(self.0).into_owned())
    }
}

/// Whether a key that is written like this, with quotes, is `name`.
pub(super) fn key_is(raw: &[u8], name: &str) -> bool {
    let inner = raw.get(1..raw.len().saturating_sub(1)).unwrap_or_default();
    if memchr::memchr(b'\\', inner).is_none() {
        inner == name.as_bytes()
    } else {
        unquoted(raw) == name
    }
}

/// The children of a value, one after the other.
#[derive(Debug, Clone)]
pub(super) struct Children<'a> {
    text: &'a [u8],
    at: usize,
    object: bool,
}

impl<'a> Children<'a> {
    fn space(&mut self) -> Option<u8> {
        while let Some(&byte) = self.text.get(self.at) {
            if !matches!(byte, b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') {
                return Some(byte);
            }
            self.at += 1;
        }
        None
    }

    fn value(&mut self) -> Option<&'a [u8]> {
        self.space()?;
        let begin = self.at;
        self.at = end(self.text, begin);
        // Never stands still, whatever the text is.
        (begin < self.at).then(|| &self.text[begin..self.at])
    }
}

impl<'a> Iterator for Children<'a> {
    type Item = Child<'a>;

    fn next(&mut self) -> Option<Child<'a>> {
        if matches!(self.space()?, b'}' | b']') {
            self.at = self.text.len();
            return None;
        }
        let key = if self.object { Some(self.value()?) } else { None };
        Some(Child { key, value: Node(self.value()?) })
    }
}

/// Where the value ends that begins at `at`.
fn end(text: &[u8], at: usize) -> usize {
    match text.get(at) {
        Some(b'"') => string_end(text, at),
        Some(b'{' | b'[') => {
            let (mut at, mut depth) = (at, 0_usize);
            while let Some(&byte) = text.get(at) {
                match byte {
                    b'"' => {
                        at = string_end(text, at);
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return at;
                }
            }
            text.len()
        }
        _ => {
            let stops =
                |it: &u8| matches!(it, b',' | b':' | b'}' | b']') || it.is_ascii_whitespace();
            text.get(at..)
                .and_then(|rest| rest.iter().position(stops))
                .map_or(text.len(), |it| at + it)
        }
    }
}

fn string_end(text: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(found) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += found;
        if text[at] == b'"' {
            return at + 1;
        }
        at += 2;
    }
    text.len()
}
