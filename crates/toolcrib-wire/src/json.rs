//! JSON text, read once and strictly.
//!
//! A gateway that checks arguments with one reader and forwards them to a server that has another
//! must not let the two see different things. So [`scan`] refuses whatever readers disagree on:
//! equal keys in one object, bad escapes, lone surrogates, invalid UTF-8, deep nesting. What passed
//! goes on as the text it was; nothing is built from it.

mod walk;

use std::{borrow::Cow, fmt, ops::Range};

pub(crate) use self::walk::Walk;
pub use self::walk::{Rare, member, pick, string};

/// How deep arrays and objects may be nested.
pub const MAX_DEPTH: u32 = 127;

/// How many keys may stand in objects that are still open, so that checking them stays bounded.
pub(crate) const MAX_OPEN_KEYS: usize = 4_000_000;

/// What is wrong with a text, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {offset}")]
pub struct ScanError {
    /// What is wrong.
    pub fault: Fault,
    /// How many bytes come before it.
    pub offset: usize,
}

/// What can be wrong with a JSON text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It ends too early.
    End,
    /// This character cannot stand here.
    Unexpected(char),
    /// Not UTF-8.
    NotUtf8,
    /// A control character in a string.
    Control,
    /// A bad escape in a string, or half of a surrogate pair.
    Escape,
    /// Not a number.
    Number,
    /// The same key twice in one object.
    DuplicateKey(String),
    /// Some key twice in one object, in a text too large to keep its keys.
    SomeKeyTwice,
    /// Nested too deep.
    TooDeep,
    /// Too many keys.
    TooManyKeys,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::End => f.write_str("unexpected end"),
            Self::Unexpected(c) if c.is_ascii_graphic() => write!(f, "unexpected `{c}`"),
            Self::Unexpected(c) => write!(f, "unexpected `{}`", c.escape_default()),
            Self::NotUtf8 => f.write_str("invalid UTF-8"),
            Self::Control => f.write_str("control character in a string"),
            Self::Escape => f.write_str("bad escape in a string"),
            Self::Number => f.write_str("malformed number"),
            Self::DuplicateKey(key) => write!(f, "duplicate key `{}`", key.escape_debug()),
            Self::SomeKeyTwice => f.write_str("duplicate key"),
            Self::TooDeep => write!(f, "nested deeper than {MAX_DEPTH}"),
            Self::TooManyKeys => f.write_str("too many keys"),
        }
    }
}

/// Checks `text` from end to end. For each member of the outermost object, or element of the
/// outermost array (with an empty key), `member` gets the key and where the value stands.
///
/// On an error, members that were complete before it have been reported.
pub fn scan<'a>(
    text: &'a [u8],
    member: impl FnMut(Cow<'a, str>, Range<usize>),
) -> Result<(), ScanError> {
    scan_keys(text, Keys::Unique, member)
}

/// Whether one key may stand twice in an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// That is a fault.
    Unique,
    /// The caller looks after it, to say more about it.
    Any,
}

/// Like [`scan`], with a word on equal keys.
pub fn scan_keys<'a>(
    text: &'a [u8],
    keys: Keys,
    member: impl FnMut(Cow<'a, str>, Range<usize>),
) -> Result<(), ScanError> {
    if let Err(error) = std::str::from_utf8(text) {
        return Err(ScanError { fault: Fault::NotUtf8, offset: error.valid_up_to() });
    }
    let unique = keys == Keys::Unique;
    let scanner = Scanner {
        text,
        at: 0,
        depth: 0,
        objects: 0,
        unique,
        keys: Vec::with_capacity(16),
        starts: Vec::with_capacity(8),
        escaped: false,
        in_object: false,
        outer: 0..0,
        fault: None,
    };
    scanner.run(member)
}

/// The members of an object that has been scanned: key, and where the value stands.
pub fn members(text: &[u8]) -> Vec<(Cow<'_, str>, Range<usize>)> {
    let mut members = Vec::new();
    // Scanned before, so it cannot fail; if it did, the members up to there are the right answer.
    scan_keys(text, Keys::Any, |key, range| members.push((key, range))).unwrap_or_default();
    members
}

/// The line and column of a byte in a text, both counted from 1.
pub fn position(text: &[u8], offset: usize) -> (usize, usize) {
    let before = &text[..offset.min(text.len())];
    let line = memchr::memchr_iter(b'\n', before).count() + 1;
    let begin = memchr::memrchr(b'\n', before).map_or(0, |at| at + 1);
    (line, String::from_utf8_lossy(&before[begin..]).chars().count() + 1)
}

/// It is no JSON; the scanner knows why. Nothing else goes up and down with every value.
struct Failed;

struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
    /// Bit n is set if the container at depth n is an object.
    objects: u128,
    unique: bool,
    /// The keys of all open objects, outermost first.
    keys: Vec<Range<usize>>,
    /// Where the keys of each open object begin.
    starts: Vec<usize>,
    /// Whether any key so far is written with a backslash.
    escaped: bool,
    /// Whether the innermost open container is an object.
    in_object: bool,
    /// The key of the outermost member that is being read.
    outer: Range<usize>,
    /// What is wrong.
    fault: Option<Fault>,
}

impl<'a> Scanner<'a> {
    fn run(mut self, member: impl FnMut(Cow<'a, str>, Range<usize>)) -> Result<(), ScanError> {
        let read = self.read(member);
        read.map_err(|Failed| ScanError {
            fault: self.fault.take().unwrap_or(Fault::End),
            offset: self.at,
        })
    }

    fn read(&mut self, mut member: impl FnMut(Cow<'a, str>, Range<usize>)) -> Result<(), Failed> {
        let mut begin = 0;
        loop {
            self.space();
            if self.depth == 1 {
                begin = self.at;
            }
            // A value begins here; an opening bracket that is not closed at once leads to the next.
            let opened = self.open_or_scalar()?;
            if opened {
                if self.in_object {
                    self.key()?;
                }
                continue;
            }
            // A value ended here; so may the containers around it.
            loop {
                if self.depth == 0 {
                    self.space();
                    return if self.at == self.text.len() { Ok(()) } else { self.unexpected() };
                }
                if self.depth == 1 {
                    let key = std::mem::replace(&mut self.outer, 0..0);
                    member(unescape(&self.text[key]), begin..self.at);
                }
                self.space();
                match (self.peek(), self.in_object) {
                    (Some(b','), object) => {
                        self.at += 1;
                        if object {
                            self.key()?;
                        }
                        break;
                    }
                    (Some(b'}'), true) | (Some(b']'), false) => self.close()?,
                    _ => return self.unexpected(),
                }
            }
        }
    }

    /// Reads a scalar or an empty container whole (false), or steps into a container (true).
    fn open_or_scalar(&mut self) -> Result<bool, Failed> {
        match self.peek() {
            Some(open @ (b'{' | b'[')) => {
                self.open(open == b'{')?;
                self.space();
                let closing = if open == b'{' { b'}' } else { b']' };
                if self.peek() != Some(closing) {
                    return Ok(true);
                }
                self.close()?;
            }
            Some(b'"') => {
                self.string()?;
            }
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b't') => self.word(b"true")?,
            Some(b'f') => self.word(b"false")?,
            Some(b'n') => self.word(b"null")?,
            _ => return self.unexpected(),
        }
        Ok(false)
    }

    fn open(&mut self, object: bool) -> Result<(), Failed> {
        if self.depth == MAX_DEPTH {
            return self.fail(Fault::TooDeep);
        }
        self.at += 1;
        self.depth += 1;
        let bit = 1_u128 << self.depth;
        self.in_object = object;
        if object {
            self.objects |= bit;
            self.starts.push(self.keys.len());
        } else {
            self.objects &= !bit;
        }
        Ok(())
    }

    fn close(&mut self) -> Result<(), Failed> {
        if self.in_object {
            let start = self.starts.pop().unwrap_or_default();
            if !self.unique {
                self.keys.truncate(start);
            } else if let Some(key) = duplicate(self.text, &self.keys[start..], self.escaped) {
                return self.fail(Fault::DuplicateKey(key));
            }
            self.keys.truncate(start);
        }
        self.at += 1;
        self.depth -= 1;
        self.in_object = self.objects >> self.depth & 1 == 1;
        Ok(())
    }

    /// Reads `"key":`, and notes it where it is one of an outermost member.
    fn key(&mut self) -> Result<(), Failed> {
        self.space();
        if self.peek() != Some(b'"') {
            return self.unexpected();
        }
        let (range, escaped) = self.string()?;
        self.escaped |= escaped;
        if self.keys.len() == MAX_OPEN_KEYS {
            return self.fail(Fault::TooManyKeys);
        }
        self.keys.push(range.clone());
        self.space();
        if self.peek() != Some(b':') {
            return self.unexpected();
        }
        self.at += 1;
        if self.depth == 1 {
            self.outer = range;
        }
        Ok(())
    }

    /// Reads a string; returns where its inside stands, and whether it is written with a backslash.
    fn string(&mut self) -> Result<(Range<usize>, bool), Failed> {
        self.at += 1;
        let begin = self.at;
        let mut escaped = false;
        loop {
            self.at += plain(&self.text[self.at..]);
            match self.peek() {
                None => return self.fail(Fault::End),
                Some(b'"') => {
                    self.at += 1;
                    return Ok((begin..self.at - 1, escaped));
                }
                Some(b'\\') => {
                    escaped = true;
                    self.escape()?;
                }
                Some(0..=0x1f) => return self.fail(Fault::Control),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<(), Failed> {
        match self.text.get(self.at + 1) {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => self.at += 2,
            Some(b'u') => {
                let paired = match self.hex(self.at) {
                    Some(0xd800..0xdc00) => {
                        let low = self.hex(self.at + 6);
                        if !matches!(low, Some(0xdc00..0xe000)) {
                            return self.fail(Fault::Escape);
                        }
                        true
                    }
                    Some(0xdc00..0xe000) | None => return self.fail(Fault::Escape),
                    Some(_) => false,
                };
                self.at += if paired { 12 } else { 6 };
            }
            _ => return self.fail(Fault::Escape),
        }
        Ok(())
    }

    /// The code unit of the `\uXXXX` that begins at `at`.
    fn hex(&self, at: usize) -> Option<u32> {
        let digits = self.text.get(at..at + 6)?.strip_prefix(b"\\u")?;
        let value = |sum: u32, &b: &u8| Some(sum * 16 + char::from(b).to_digit(16)?);
        digits.iter().try_fold(0, value)
    }

    fn number(&mut self) -> Result<(), Failed> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let zero = self.peek() == Some(b'0');
        let whole = self.digits();
        if whole == 0 || (zero && whole != 1) {
            return self.fail(Fault::Number);
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return self.fail(Fault::Number);
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return self.fail(Fault::Number);
            }
        }
        Ok(())
    }

    fn digits(&mut self) -> usize {
        let begin = self.at;
        while self.peek().is_some_and(|b| b.is_ascii_digit()) {
            self.at += 1;
        }
        self.at - begin
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Failed> {
        for &letter in word {
            if self.peek() != Some(letter) {
                return self.unexpected();
            }
            self.at += 1;
        }
        Ok(())
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    #[cold]
    fn unexpected<T>(&mut self) -> Result<T, Failed> {
        let rest = String::from_utf8_lossy(&self.text[self.at..(self.at + 4).min(self.text.len())]);
        match rest.chars().next() {
            Some(c) => self.fail(Fault::Unexpected(c)),
            None => self.fail(Fault::End),
        }
    }

    #[cold]
    fn fail<T>(&mut self, fault: Fault) -> Result<T, Failed> {
        self.fault = Some(fault);
        Err(Failed)
    }
}

/// A key that stands twice among `keys`, escapes resolved.
fn duplicate(text: &[u8], keys: &[Range<usize>], escaped: bool) -> Option<String> {
    let same = |a: &Cow<'_, str>, b: &Cow<'_, str>| a == b;
    // Few keys are the rule, and comparing them all is quicker than sorting them.
    if keys.len() <= 8 && !escaped {
        for (at, a) in keys.iter().enumerate() {
            let a = &text[a.clone()];
            if keys[..at].iter().any(|b| b.len() == a.len() && text[b.clone()] == *a) {
                return Some(unescape(a).into_owned());
            }
        }
        return None;
    }
    let mut plain: Vec<Cow<'_, str>> = keys.iter().map(|it| unescape(&text[it.clone()])).collect();
    plain.sort_unstable();
    plain.windows(2).find(|pair| same(&pair[0], &pair[1])).map(|pair| pair[0].clone().into_owned())
}

/// How many bytes from the first on are plain inside a string: no quote, no backslash, no control character.
fn plain(text: &[u8]) -> usize {
    let is_plain = |b: u8| (b >= 0x20) & (b != b'"') & (b != b'\\');
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    const LONG: usize = 64;
    let mut at = 0;
    // In words, which is what keys need; what turns out to be long, in pieces that the machine looks at in one go.
    while let Some(word) = text.get(at..).and_then(<[u8]>::first_chunk::<8>) {
        let word = u64::from_le_bytes(*word);
        // The lowest byte that is marked is one: a borrow can only come from below it.
        let zero = |word: u64| word.wrapping_sub(ONES) & !word;
        let low = word.wrapping_sub(ONES * 0x20) & !word;
        let found = (low | zero(word ^ (ONES * 0x22)) | zero(word ^ (ONES * 0x5c))) & HIGH;
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
        while LONG <= at
            && let Some(piece) = text.get(at..).and_then(<[u8]>::first_chunk::<32>)
            && piece.iter().fold(true, |all, b| all & is_plain(*b))
        {
            at += 32;
        }
    }
    at + text[at..].iter().take_while(|it| is_plain(**it)).count()
}

/// The text that the inside of a scanned string stands for.
pub(crate) fn unescape(inside: &[u8]) -> Cow<'_, str> {
    if memchr::memchr(b'\\', inside).is_none() {
        return std::str::from_utf8(inside).map_or(Cow::Borrowed(""), Cow::Borrowed);
    }
    let quoted = [b"\"", inside, b"\""].concat();
    Cow::Owned(serde_json::from_slice(&quoted).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = scan(text.as_bytes(), |_, _| ()).map_err(|it| it.to_string());
        assert_eq!(found.err().as_deref().unwrap_or("ok"), expected, "{text}");
    }

    proptest! {
        #[test]
        fn plain_bytes_are_counted_to_the_first_that_is_not(
            before in 0..200_usize,
            special in prop::sample::select(vec![b'"', b'\\', 0, 0x1f, b'\n']),
            filling in prop::sample::select(vec![b'a', b' ', 0x7f, 0x80, 0xff, b'!', b'#', b'[', b']']),
            after in 0..40_usize,
        ) {
            let text = [vec![filling; before], vec![special; 1], vec![filling; after]].concat();
            prop_assert_eq!(plain(&text), before);
            prop_assert_eq!(plain(&text[..before]), before);
        }
    }

    #[test]
    fn what_readers_disagree_on_is_refused() {
        check(r#"{"a":{"b":1,"b":2}}"#, "duplicate key `b` at byte 17");
        check(r#"{"a":1,"\u0061":2}"#, "duplicate key `a` at byte 17");
        check(r#"{"a":1,"A":2}"#, "ok");
        check(r#"["\ud800"]"#, "bad escape in a string at byte 2");
        check(r#"["\ud83d\ude00","\u0000"]"#, "ok");
        check("[\"\u{1}\"]", "control character in a string at byte 2");
        check("1 2", "unexpected `2` at byte 2");
        check("\u{feff}1", "unexpected `\\u{feff}` at byte 0");
        check("[1,]", "unexpected `]` at byte 3");
        check("01", "malformed number at byte 2");
        check("1.", "malformed number at byte 2");
        check("-", "malformed number at byte 1");
        check("", "unexpected end at byte 0");
        check("{\"a\"", "unexpected end at byte 4");
        check("1e400", "ok");
        check("nul", "unexpected end at byte 3");
        check("NaN", "unexpected `N` at byte 0");
    }

    #[test]
    fn a_duplicate_among_many_keys_is_found() {
        let keys = |last: &str| {
            let keys: Vec<String> = (0..50).map(|n| format!(r#""k{n}":{n}"#)).collect();
            format!("{{{},{last}}}", keys.join(","))
        };
        check(&keys(r#""new":1"#), "ok");
        let text = keys(r#""k\u0037":1"#);
        check(&text, &format!("duplicate key `k7` at byte {}", text.len() - 1));
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        check(&nested(127), "ok");
        check(&nested(128), "nested deeper than 127 at byte 127");
        check(&"[".repeat(100_000), "nested deeper than 127 at byte 127");
    }

    #[test]
    fn invalid_utf8_is_refused() {
        let error = scan(b"[\"\xff\"]", |_, _| ()).unwrap_err();
        assert_eq!((error.fault, error.offset), (Fault::NotUtf8, 2));
    }

    #[test]
    fn members_of_the_outermost_object_are_reported() {
        let text = br#" {"id": 7 ,"\u006d":{"x":[1,{}]},"e":[]} "#;
        let found: Vec<String> = members(text)
            .into_iter()
            .map(|(key, at)| format!("{key}={}", String::from_utf8_lossy(&text[at])))
            .collect();
        assert_eq!(found, ["id=7", r#"m={"x":[1,{}]}"#, "e=[]"]);
        assert_eq!(members(b"[1, [2]]").len(), 2);
    }

    fn any_json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_filter("finite", |it| it.is_finite()).prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(6, 64, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::hash_map(any::<String>(), inner, 0..6)
                    .prop_map(|it| it.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        /// The short way to a member finds what the long way finds.
        #[test]
        fn a_member_is_found_where_it_stands(
            pairs in prop::collection::btree_map("[a-c\\PC]{0,3}", "[0-9]|\"[^\"\\\\\\p{Cc}]{0,4}\"|\\[\\{\\}, \"\\]\"\\]", 0..5),
            space in "[ \n]{0,2}",
        ) {
            let members: Vec<String> = pairs
                .iter()
                .map(|(key, value)| {
                    format!("{space}{}{space}:{space}{value}{space}", serde_json::to_string(key).unwrap())
                })
                .collect();
            let text = format!("{space}{{{space}{}}}", members.join(","));
            prop_assert!(scan(text.as_bytes(), |_, _| ()).is_ok(), "{text}");
            for (key, range) in super::members(text.as_bytes()) {
                prop_assert_eq!(member(text.as_bytes(), &key), Some(range), "{}", text);
            }
            prop_assert_eq!(member(text.as_bytes(), "absent"), None);
        }

        /// Nor does it stumble over what was never scanned.
        #[test]
        fn looking_for_a_member_never_panics(text: Vec<u8>) {
            if let Some(range) = member(&text, "a") {
                prop_assert!(range.end <= text.len());
            }
        }
    }

    proptest! {
        /// Whatever serde_json writes passes; so does its pretty form.
        #[test]
        fn every_value_passes(value in any_json()) {
            prop_assert_eq!(scan(value.to_string().as_bytes(), |_, _| ()), Ok(()));
            let pretty = serde_json::to_string_pretty(&value).unwrap();
            prop_assert_eq!(scan(pretty.as_bytes(), |_, _| ()), Ok(()));
        }

        /// On a damaged text the scanner never says yes where serde_json says no.
        #[test]
        fn no_more_lenient_than_serde_json(value in any_json(), at: prop::sample::Index, byte: u8) {
            let mut text = value.to_string().into_bytes();
            let at = at.index(text.len());
            text[at] = byte;
            if scan(&text, |_, _| ()).is_ok() {
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&text).is_ok());
            }
        }

        #[test]
        fn no_bytes_make_it_panic(text: Vec<u8>) {
            scan(&text, |_, _| ()).ok();
        }
    }
}
