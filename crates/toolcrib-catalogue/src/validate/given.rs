//! A value as it was given: numbers as they were written, keys in their order, places in the text.
//!
//! `serde_json`'s own value reads an object whose single key is its private name for numbers as a
//! number, so that what is checked would not be what is sent on. Here such an object is an object.

use std::{
    borrow::Cow,
    hash::{BuildHasher, Hash, Hasher},
};

use hashbrown::{DefaultHashBuilder, HashMap, HashSet};
use serde_json::Value;

use super::number::Decimal;

/// How deep a value may be nested, as with the reader of frames.
const DEPTH: usize = 128;

/// How many values one may hold, itself counted: each takes some forty bytes.
const VALUES: u32 = 250_000;

/// Objects with more members than this are looked through for equal keys by hash.
const FEW: usize = 12;

/// One value and where it stands in the text.
#[derive(Debug, Clone)]
pub(crate) struct Given<'a> {
    pub(crate) at: u32,
    pub(crate) end: u32,
    pub(crate) kind: Kind<'a>,
}

#[derive(Debug, Clone)]
pub(crate) enum Kind<'a> {
    Null,
    Bool(bool),
    Number(Cow<'a, str>),
    Text(Cow<'a, str>),
    List(Vec<Given<'a>>),
    Object(Vec<(Cow<'a, str>, Given<'a>)>),
}

/// Why a text is no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it is not JSON (at byte {0})")]
    Syntax(usize),
    #[error("it is nested deeper than {DEPTH} levels")]
    Depth,
    #[error("the key `{0}` stands twice in one object")]
    Twice(String),
    #[error("it holds more than {VALUES} values")]
    TooMuch,
}

impl<'a> Given<'a> {
    pub(crate) fn parse(text: &'a str) -> Result<Self, Unreadable> {
        let mut reader = Reader { text, at: 0, left: VALUES };
        let value = reader.value(0)?;
        reader.space();
        if reader.at == text.len() { Ok(value) } else { Err(reader.fault()) }
    }

    /// The same value, from one that was read already. Its places mean nothing, but for how long it is.
    pub(crate) fn of(value: &'a Value) -> Self {
        let kind = match value {
            Value::Null => Kind::Null,
            Value::Bool(it) => Kind::Bool(*it),
            Value::Number(it) => Kind::Number(it.to_string().into()),
            Value::String(it) => Kind::Text(it.into()),
            Value::Array(list) => Kind::List(list.iter().map(Self::of).collect()),
            Value::Object(map) => {
                Kind::Object(map.iter().map(|(key, it)| (key.into(), Self::of(it))).collect())
            }
        };
        let inside: u32 = match &kind {
            Kind::Text(it) | Kind::Number(it) => u32::try_from(it.len()).unwrap_or(u32::MAX),
            Kind::List(list) => list.iter().map(|it| it.end).fold(0, u32::saturating_add),
            Kind::Object(map) => map.iter().map(|(_, it)| it.end).fold(0, u32::saturating_add),
            Kind::Null | Kind::Bool(_) => 0,
        };
        Self { at: 0, end: inside.saturating_add(2), kind }
    }

    /// Steps that it takes to compare the value with another; texts of different length take none.
    pub(crate) fn comparing(&self) -> usize {
        match self.kind {
            Kind::Text(_) => 0,
            _ => self.length() / 64,
        }
    }

    /// How long the value is as text, more or less.
    pub(crate) fn length(&self) -> usize {
        (self.end - self.at) as usize
    }

    pub(crate) fn to_value(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::Null,
            Kind::Bool(it) => Value::Bool(*it),
            Kind::Number(it) => it.parse().map_or(Value::Null, Value::Number),
            Kind::Text(it) => Value::String(it.to_string()),
            Kind::List(list) => list.iter().map(Given::to_value).collect(),
            Kind::Object(map) => {
                map.iter().map(|(key, it)| (key.to_string(), it.to_value())).collect()
            }
        }
    }

    pub(crate) fn into_owned(self) -> Given<'static> {
        let own = |it: Cow<'a, str>| Cow::Owned(it.into_owned());
        let kind = match self.kind {
            Kind::Null => Kind::Null,
            Kind::Bool(it) => Kind::Bool(it),
            Kind::Number(it) => Kind::Number(own(it)),
            Kind::Text(it) => Kind::Text(own(it)),
            Kind::List(list) => Kind::List(list.into_iter().map(Given::into_owned).collect()),
            Kind::Object(map) => {
                Kind::Object(map.into_iter().map(|(key, it)| (own(key), it.into_owned())).collect())
            }
        };
        Given { at: self.at, end: self.end, kind }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Self> {
        self.members()?.iter().find(|(name, _)| name == key).map(|(_, it)| it)
    }

    pub(crate) fn members(&self) -> Option<&[(Cow<'a, str>, Self)]> {
        match &self.kind {
            Kind::Object(map) => Some(map),
            _ => None,
        }
    }

    pub(crate) fn list(&self) -> Option<&[Self]> {
        match &self.kind {
            Kind::List(list) => Some(list),
            _ => None,
        }
    }

    pub(crate) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Text(it) => Some(it),
            _ => None,
        }
    }

    /// Whether two values are the same to JSON Schema: 1 and 1.0 are, whatever the order of keys.
    pub(crate) fn same(&self, other: &Given<'_>) -> bool {
        match (&self.kind, &other.kind) {
            (Kind::Null, Kind::Null) => true,
            (Kind::Bool(one), Kind::Bool(two)) => one == two,
            (Kind::Number(one), Kind::Number(two)) => {
                one == two || Decimal::read(one) == Decimal::read(two)
            }
            (Kind::Text(one), Kind::Text(two)) => one == two,
            (Kind::List(one), Kind::List(two)) => {
                one.len() == two.len() && one.iter().zip(two).all(|(one, two)| one.same(two))
            }
            (Kind::Object(one), Kind::Object(two)) if one.len() != two.len() => false,
            (Kind::Object(one), Kind::Object(_)) if one.len() <= FEW => {
                one.iter().all(|(key, value)| other.get(key).is_some_and(|it| value.same(it)))
            }
            (Kind::Object(one), Kind::Object(two)) => {
                let two: HashMap<&str, &Given<'_>> =
                    two.iter().map(|(key, it)| (&**key, it)).collect();
                one.iter().all(|(key, value)| two.get(&**key).is_some_and(|it| value.same(it)))
            }
            _ => false,
        }
    }

    /// Two of these values that are the same. By hash: a list may be long.
    pub(crate) fn repeated(list: &[Self]) -> Option<(usize, usize)> {
        let hashing = DefaultHashBuilder::default();
        let hashes = list.iter().enumerate().map(|(index, it)| (it.hash_with(&hashing), index));
        let mut hashes: Vec<(u64, usize)> = hashes.collect();
        hashes.sort_unstable();
        let alike = |pair: &[(u64, usize)]| match *pair {
            [(one, first), (two, second)] if one == two && list[first].same(&list[second]) => {
                Some((first, second))
            }
            _ => None,
        };
        hashes.windows(2).find_map(alike)
    }

    fn hash_with(&self, hashing: &DefaultHashBuilder) -> u64 {
        let mut hasher = hashing.build_hasher();
        match &self.kind {
            Kind::Null => 0_u8.hash(&mut hasher),
            Kind::Bool(it) => (1_u8, it).hash(&mut hasher),
            Kind::Number(it) => (2_u8, Decimal::read(it)).hash(&mut hasher),
            Kind::Text(it) => (3_u8, it).hash(&mut hasher),
            Kind::List(list) => {
                (4_u8, list.len()).hash(&mut hasher);
                list.iter().for_each(|it| it.hash_with(hashing).hash(&mut hasher));
            }
            Kind::Object(map) => {
                let member = |(key, it): &(Cow<'_, str>, Self)| {
                    hashing.hash_one((key, it.hash_with(hashing)))
                };
                // A sum, since the order of keys means nothing.
                let sum = map.iter().map(member).fold(0_u64, u64::wrapping_add);
                (5_u8, map.len(), sum).hash(&mut hasher);
            }
        }
        hasher.finish()
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    left: u32,
}

impl<'a> Reader<'a> {
    fn fault(&self) -> Unreadable {
        Unreadable::Syntax(self.at)
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn take(&mut self, byte: u8) -> Result<(), Unreadable> {
        if self.peek() != Some(byte) {
            return Err(self.fault());
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str, kind: Kind<'a>) -> Result<Kind<'a>, Unreadable> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.fault());
        }
        self.at += word.len();
        Ok(kind)
    }

    fn value(&mut self, depth: usize) -> Result<Given<'a>, Unreadable> {
        if depth == DEPTH {
            return Err(Unreadable::Depth);
        }
        self.left = self.left.checked_sub(1).ok_or(Unreadable::TooMuch)?;
        self.space();
        let at = self.at;
        let kind = match self.peek() {
            Some(b'"') => Kind::Text(self.string()?),
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.list(depth)?,
            Some(b't') => self.word("true", Kind::Bool(true))?,
            Some(b'f') => self.word("false", Kind::Bool(false))?,
            Some(b'n') => self.word("null", Kind::Null)?,
            _ => Kind::Number(self.number()?.into()),
        };
        let place = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Ok(Given { at: place(at), end: place(self.at), kind })
    }

    fn number(&mut self) -> Result<&'a str, Unreadable> {
        let rest = &self.text[self.at..];
        let end = rest
            .bytes()
            .position(|it| !matches!(it, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        let number = &rest[..end];
        if !Decimal::is_written_well(number) {
            return Err(self.fault());
        }
        self.at += end;
        Ok(number)
    }

    fn list(&mut self, depth: usize) -> Result<Kind<'a>, Unreadable> {
        self.at += 1;
        let mut list = Vec::new();
        self.space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Kind::List(list));
        }
        loop {
            list.push(self.value(depth + 1)?);
            self.space();
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(Kind::List(list));
            }
            self.take(b',')?;
        }
    }

    fn object(&mut self, depth: usize) -> Result<Kind<'a>, Unreadable> {
        self.at += 1;
        let mut map: Vec<(Cow<'a, str>, Given<'a>)> = Vec::new();
        self.space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Kind::Object(map));
        }
        loop {
            self.space();
            let key = self.string()?;
            self.space();
            self.take(b':')?;
            let value = self.value(depth + 1)?;
            map.push((key, value));
            self.space();
            if self.peek() == Some(b'}') {
                self.at += 1;
                break;
            }
            self.take(b',')?;
        }
        match twice(&map) {
            Some(key) => Err(Unreadable::Twice(key.chars().take(60).collect())),
            None => Ok(Kind::Object(map)),
        }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, Unreadable> {
        self.take(b'"')?;
        let begin = self.at;
        let mut read: Option<String> = None;
        let mut from = begin;
        loop {
            match self.peek() {
                Some(b'"') => break,
                Some(b'\\') => {
                    let read = read.get_or_insert_default();
                    read.push_str(&self.text[from..self.at]);
                    self.at += 1;
                    read.push(self.escape()?);
                    from = self.at;
                }
                Some(0..0x20) | None => return Err(self.fault()),
                Some(_) => self.at += 1,
            }
        }
        let last = &self.text[from..self.at];
        self.at += 1;
        Ok(match read {
            Some(mut read) => {
                read.push_str(last);
                read.into()
            }
            None => last.into(),
        })
    }

    fn escape(&mut self) -> Result<char, Unreadable> {
        let byte = self.peek().ok_or_else(|| self.fault())?;
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let mut code = self.four()?;
                if (0xD800..0xDC00).contains(&code) {
                    self.take(b'\\')?;
                    self.take(b'u')?;
                    let low = self.four()?;
                    let low = low.checked_sub(0xDC00).filter(|it| *it < 0x400);
                    code = 0x10000 + ((code - 0xD800) << 10) + low.ok_or_else(|| self.fault())?;
                }
                char::from_u32(code).ok_or_else(|| self.fault())?
            }
            _ => return Err(self.fault()),
        })
    }

    fn four(&mut self) -> Result<u32, Unreadable> {
        let digits = self.text.get(self.at..self.at + 4).filter(|it| !it.starts_with('+'));
        let code = digits.and_then(|it| u32::from_str_radix(it, 16).ok());
        self.at += 4;
        code.ok_or(Unreadable::Syntax(self.at - 4))
    }
}

/// A key that stands twice: whoever reads on might take the other one.
fn twice<'m>(map: &'m [(Cow<'_, str>, Given<'_>)]) -> Option<&'m str> {
    let mut keys = map.iter().map(|(key, _)| &**key).enumerate();
    if map.len() <= FEW {
        let found = keys.find(|(index, key)| map[..*index].iter().any(|(it, _)| it == key));
        return found.map(|(_, key)| key);
    }
    let mut seen = HashSet::with_capacity(map.len());
    keys.map(|(_, key)| key).find(|key| !seen.insert(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_serde_json_reads() {
        for text in [
            "null",
            " [1, -2.5e+3 ,\"a\\u00e9\\n\"] ",
            r#"{"a":{"b":[{}]},"":false}"#,
            "\"\\ud83d\\ude00\"",
            "[]",
            "{}",
            "1",
            "-0",
            "01",
            "1.",
            ".5",
            "1e",
            "+1",
            "-",
            "tru",
            "[1,]",
            "{\"a\":1,}",
            "{a:1}",
            "\"\\ud800\"",
            "\"\\x\"",
            "\"\u{1}\"",
            "[1 2]",
            "1 2",
            "",
            "\"a",
            "{\"a\"}",
            "\"\\u+123\"",
            "\"\\u12",
        ] {
            let ours = Given::parse(text).map(|it| it.to_value());
            let theirs = serde_json::from_str::<Value>(text);
            assert_eq!(ours.is_ok(), theirs.is_ok(), "{text}: {ours:?} {theirs:?}");
            if let (Ok(ours), Ok(theirs)) = (ours, theirs) {
                assert_eq!(ours, theirs, "{text}");
            }
        }
    }

    #[test]
    fn the_private_name_of_numbers_is_a_key_like_any_other() {
        let read = Given::parse(r#"{"$serde_json::private::Number":"1"}"#).unwrap();
        assert_eq!(read.get("$serde_json::private::Number").and_then(Given::text), Some("1"));
    }

    #[test]
    fn equal_keys_and_depth_are_refused() {
        let many: String = (0..50).map(|it| format!("\"k{it}\":0,")).collect();
        for text in [r#"{"a":1,"\u0061":2}"#.to_owned(), format!("{{{many}\"k7\":1}}")] {
            assert!(matches!(Given::parse(&text), Err(Unreadable::Twice(_))), "{text}");
        }
        let deep = |levels: usize| "[".repeat(levels) + &"]".repeat(levels);
        assert!(Given::parse(&deep(128)).is_ok());
        assert_eq!(Given::parse(&deep(129)).unwrap_err(), Unreadable::Depth);
        assert_eq!(Given::parse(&deep(100_000)).unwrap_err(), Unreadable::Depth);
    }

    #[test]
    fn sameness_is_that_of_numbers_and_sets_of_members() {
        let check = |one: &str, two: &str| {
            let list = format!("[{one},{two}]");
            let list = Given::parse(&list).unwrap();
            let list = list.list().unwrap();
            let same = list[0].same(&list[1]);
            assert_eq!(same, Given::repeated(list).is_some(), "{one} {two}");
            same
        };
        assert!(check("1", "1.0"));
        assert!(check("100", "1e2"));
        assert!(check(r#"{"a":1,"b":[0]}"#, r#"{"b":[0.0],"a":1.00}"#));
        assert!(!check("0", "false"));
        assert!(!check("18446744073709551616", "18446744073709551617"));
        assert!(!check(r#"{"a":1}"#, r#"{"a":1,"b":1}"#));
    }
}
