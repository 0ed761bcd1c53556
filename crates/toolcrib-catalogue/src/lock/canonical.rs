//! One form for every way to write a definition, and its hash.
//!
//! This reads JSON by itself and not into `serde_json::Value`: there an object with a certain key
//! becomes a number, and of two equal keys one is lost. A hash that is to notice every change may not
//! overlook those.

use std::{borrow::Cow, fmt};

use serde::{Serialize, Serializer};

use crate::Tool;

/// Nothing that came over the wire is deeper.
const MAX_DEPTH: usize = 128;

/// The hash of a definition. All 256 bits are kept: a server that means ill writes both the definition
/// that is accepted and the one that follows, and could find two that share half a hash.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ToolHash([u8; 32]);

impl ToolHash {
    /// The hash of a text in canonical form.
    pub(super) fn of(canonical: &str) -> Self {
        Self(*blake3::hash(canonical.as_bytes()).as_bytes())
    }

    /// Reads 64 hexadecimal digits.
    pub(super) fn read(text: &str) -> Option<Self> {
        let lower = text.bytes().all(|it| it.is_ascii_digit() || (b'a'..=b'f').contains(&it));
        let hash = blake3::Hash::from_hex(text).ok().filter(|_| lower)?;
        Some(Self(*hash.as_bytes()))
    }

    /// The hash itself.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Display for ToolHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&blake3::Hash::from_bytes(self.0).to_hex())
    }
}

impl Serialize for ToolHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Debug for ToolHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.8}…", blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

/// The canonical form of a tool, all of it, since all of it goes on to clients; none where it is nested too deep.
pub(super) fn definition(tool: &Tool) -> Option<String> {
    let Node::Object(members) = Node::read(tool.raw.as_str())? else { return None };
    let mut text = String::with_capacity(tool.raw.as_str().len());
    Node::Object(members).push(&mut text, Ink::Canonical);
    Some(text)
}

/// A JSON value. Keys of objects are sorted; equal ones stand in the order they had.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node<'a> {
    /// A number as it was written, `true`, `false` or `null`.
    Plain(&'a str),
    /// A text.
    Text(Cow<'a, str>),
    /// An array.
    List(Vec<Self>),
    /// An object.
    Object(Vec<(Cow<'a, str>, Self)>),
}

/// How a value is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    /// No more escapes than needed.
    Canonical,
    /// Characters that are not shown are escaped too.
    Visible,
}

impl<'a> Node<'a> {
    /// Reads one value; none where it is not JSON, or too deep.
    pub(super) fn read(text: &'a str) -> Option<Self> {
        let mut reader = Reader { text, at: 0 };
        let node = reader.value(0)?;
        reader.space();
        (reader.at == text.len()).then_some(node)
    }

    /// A member of an object.
    pub(super) fn get(&self, key: &str) -> Option<&Self> {
        let members = self.members();
        let place = members.binary_search_by(|(it, _)| (**it).cmp(key)).ok()?;
        Some(&members[place].1)
    }

    /// The members of an object; none of anything else.
    pub(super) fn members(&self) -> &[(Cow<'a, str>, Self)] {
        match self {
            Self::Object(members) => members,
            _ => &[],
        }
    }

    /// Whether no key stands twice.
    pub(super) fn has_unique_keys(&self) -> bool {
        self.members().windows(2).all(|pair| pair[0].0 != pair[1].0)
    }

    /// Whether no key stands twice, here or anywhere inside. No deeper than what is read.
    pub(super) fn is_unique_throughout(&self) -> bool {
        let inside = self.members().iter().map(|(_, it)| it).chain(self.items());
        self.has_unique_keys() && { inside }.all(Self::is_unique_throughout)
    }

    /// The elements of an array; none of anything else.
    pub(super) fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// The text, if it is one.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The truth value, if it is one.
    pub(super) fn truth(&self) -> Option<bool> {
        match self {
            Self::Plain("true") => Some(true),
            Self::Plain("false") => Some(false),
            _ => None,
        }
    }

    /// The number, roughly, if it is one.
    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Plain(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Writes the value.
    pub(super) fn push(&self, out: &mut String, ink: Ink) {
        match self {
            Self::Plain(text) => out.push_str(text),
            Self::Text(text) => push_text(out, text, ink),
            Self::List(items) => {
                out.push('[');
                for (place, item) in items.iter().enumerate() {
                    separate(out, place);
                    item.push(out, ink);
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('{');
                for (place, (key, value)) in members.iter().enumerate() {
                    separate(out, place);
                    push_text(out, key, ink);
                    out.push(':');
                    value.push(out, ink);
                }
                out.push('}');
            }
        }
    }

    /// The value as text.
    pub(super) fn written(&self, ink: Ink) -> String {
        let mut text = String::new();
        self.push(&mut text, ink);
        text
    }
}

fn separate(out: &mut String, place: usize) {
    if place > 0 {
        out.push(',');
    }
}

/// Writes a text as JSON.
pub(super) fn push_text(out: &mut String, text: &str, ink: Ink) {
    out.push('"');
    // Most texts are plain, and every list of tools comes through here.
    if ink == Ink::Canonical && !text.bytes().any(is_special) {
        out.push_str(text);
        out.push('"');
        return;
    }
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            _ if c < ' ' || (ink == Ink::Visible && is_hidden(c)) => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(c),
        }
    }
    out.push('"');
}

/// Whether a byte cannot stand for itself in a text.
fn is_special(byte: u8) -> bool {
    byte < b' ' || byte == b'"' || byte == b'\\'
}

/// Writes one character so that a person sees it.
pub(super) fn push_visible(out: &mut String, c: char) {
    if is_hidden(c) {
        out.push_str(&format!("\\u{{{:x}}}", c as u32));
    } else {
        out.push(c);
    }
}

/// Whether a reader would not see that a character is there, or would see others in another order.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{e000}'..='\u{f8ff}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
            | '\u{fffe}' | '\u{ffff}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{10ffff}')
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Option<Node<'a>> {
        if depth > MAX_DEPTH {
            return None;
        }
        self.space();
        match self.peek()? {
            b'"' => self.string().map(Node::Text),
            b'[' => self.list(depth),
            b'{' => self.object(depth),
            _ => self.plain(),
        }
    }

    fn list(&mut self, depth: usize) -> Option<Node<'a>> {
        let mut items = Vec::new();
        self.at += 1;
        if self.take(b']') {
            return Some(Node::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(b']') {
                return Some(Node::List(items));
            }
            self.take(b',').then_some(())?;
        }
    }

    fn object(&mut self, depth: usize) -> Option<Node<'a>> {
        let mut members = Vec::new();
        self.at += 1;
        if self.take(b'}') {
            return Some(Node::Object(members));
        }
        loop {
            self.space();
            let key = self.string()?;
            self.take(b':').then_some(())?;
            members.push((key, self.value(depth + 1)?));
            if self.take(b'}') {
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                return Some(Node::Object(members));
            }
            self.take(b',').then_some(())?;
        }
    }

    fn string(&mut self) -> Option<Cow<'a, str>> {
        if self.peek() != Some(b'"') {
            return None;
        }
        let begin = self.at;
        let mut escaped = false;
        self.at += 1;
        loop {
            self.at +=
                self.text.as_bytes().get(self.at..)?.iter().position(|it| is_special(*it))?;
            match self.peek()? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    self.at += 2;
                }
                _ => return None,
            }
        }
        self.at += 1;
        let token = self.text.get(begin..self.at)?;
        if escaped {
            serde_json::from_str(token).ok().map(Cow::Owned)
        } else {
            token.get(1..token.len() - 1).map(Cow::Borrowed)
        }
    }

    /// A number or a word. What counts as a number is for `serde_json` to say.
    fn plain(&mut self) -> Option<Node<'a>> {
        let rest = &self.text[self.at..];
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
        let word = &rest[..end.unwrap_or(rest.len())];
        self.at += word.len();
        let known = matches!(word, "true" | "false" | "null")
            || serde_json::from_str::<serde_json::Number>(word).is_ok();
        known.then_some(Node::Plain(word))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> bool {
        self.space();
        let there = self.peek() == Some(byte);
        self.at += usize::from(there);
        there
    }
}
