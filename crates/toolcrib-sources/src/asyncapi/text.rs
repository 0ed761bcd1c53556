//! A text, YAML or JSON, as a tree of bounded size.
//!
//! Nothing goes through the usual reader of JSON values: with numbers of any length it takes an object with
//! a key of its own for a number, and what is checked must be what is sent on.

use std::{cell::Cell, fmt, ops::Range};

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};
use serde_saphyr::options;
use toolcrib_wire::json::{members, position, scan};

use super::references::shorten;

/// How deep a document may be nested.
pub(super) const DEPTH: usize = 64;

/// How many values one document may hold, with what its aliases stand for.
pub(super) const NODES: usize = 250_000;

/// Why a text is no tree, and where it goes wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextFault {
    /// Line and column, from 1.
    pub(super) place: Option<(usize, usize)>,
    pub(super) cause: String,
}

impl TextFault {
    fn at(text: &[u8], offset: usize, cause: String) -> Self {
        Self { place: Some(position(text, offset)), cause }
    }
}

/// Which of the two a text is written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    Yaml,
    Json,
}

/// The tree, and how many values it holds.
pub(super) fn read(
    bytes: &[u8],
    language: Language,
    nodes: usize,
) -> Result<(Value, usize), TextFault> {
    let text = std::str::from_utf8(bytes)
        .map_err(|error| TextFault::at(bytes, error.valid_up_to(), "it is not UTF-8".to_owned()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let left = Cell::new(nodes);
    let tree = match language {
        Language::Yaml => read_yaml(text, &left)?,
        Language::Json => read_json(text.as_bytes(), &left)?,
    };
    Ok((tree, nodes - left.get()))
}

/// The value of a text that was scanned before.
pub(super) fn scanned(text: &[u8]) -> Value {
    let left = Cell::new(usize::MAX);
    build(text, 0..text.len(), usize::MAX, &left).unwrap_or_default()
}

fn read_json(text: &[u8], left: &Cell<usize>) -> Result<Value, TextFault> {
    scan(text, |_, _| ())
        .map_err(|error| TextFault::at(text, error.offset, error.fault.to_string()))?;
    let begin = text.iter().take_while(|it| it.is_ascii_whitespace()).count();
    let end = text.len() - text.iter().rev().take_while(|it| it.is_ascii_whitespace()).count();
    build(text, begin..end, DEPTH, left)
}

/// Counts one more value.
fn take(left: &Cell<usize>) -> Result<(), String> {
    left.set(left.get().checked_sub(1).ok_or("it holds too many values")?);
    Ok(())
}

/// The value that stands at a place of a scanned text.
fn build(
    text: &[u8],
    at: Range<usize>,
    depth: usize,
    left: &Cell<usize>,
) -> Result<Value, TextFault> {
    let begin = at.start;
    take(left).map_err(|cause| TextFault::at(text, begin, cause))?;
    let piece = &text[at];
    let open = piece.first().copied().unwrap_or_default();
    if matches!(open, b'{' | b'[') && depth == 0 {
        return Err(TextFault::at(text, begin, format!("it is nested deeper than {DEPTH}")));
    }
    let within = |it: Range<usize>| begin + it.start..begin + it.end;
    Ok(match open {
        b'{' => {
            let mut map = Map::new();
            for (key, at) in members(piece) {
                map.insert(key.into_owned(), build(text, within(at), depth - 1, left)?);
            }
            Value::Object(map)
        }
        b'[' => {
            let elements = members(piece).into_iter();
            let elements = elements.map(|(_, at)| build(text, within(at), depth - 1, left));
            Value::Array(elements.collect::<Result<_, _>>()?)
        }
        b'"' => Value::String(serde_json::from_slice(piece).unwrap_or_default()),
        b't' => Value::Bool(true),
        b'f' => Value::Bool(false),
        b'n' => Value::Null,
        _ => serde_json::from_slice::<Number>(piece).map_or(Value::Null, Value::Number),
    })
}

fn read_yaml(text: &str, left: &Cell<usize>) -> Result<Value, TextFault> {
    let options = options! {
        // What aliases stand for is counted by us, value by value.
        budget: serde_saphyr::budget! {
            max_depth: DEPTH, max_nodes: NODES, enforce_alias_anchor_ratio: false,
        },
        strict_booleans: true,
        reject_unsupported_tags: true,
        with_snippet: false,
    };
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options, |it| {
        Node { left }.deserialize(it)
    });
    read.map_err(|error| {
        let place = error.location().map(|it| (number(it.line()), number(it.column())));
        let cause = yaml_cause(&error);
        TextFault { place: place.filter(|it| *it != (0, 0)), cause }
    })
}

/// The reader's words, without those that are meant for programmers.
fn yaml_cause(error: &serde_saphyr::Error) -> String {
    let plain = error.without_snippet();
    match plain {
        serde_saphyr::Error::MultipleDocuments { .. } => {
            return "it holds more than one document".to_owned();
        }
        serde_saphyr::Error::RecursiveReferencesRequireWeakTypes { .. } => {
            return "an alias stands in what it stands for".to_owned();
        }
        _ => {}
    }
    let text = plain.to_string();
    if let Some(breach) = text.strip_prefix("budget breached: ") {
        let what = if breach.starts_with("Depth") { "nested too deep" } else { "too large" };
        return format!("it is {what}, with what its aliases stand for");
    }
    let cause = text.lines().next().unwrap_or_default();
    let cause = cause.split(" at line ").next().unwrap_or_default();
    shorten(cause.split(", set ").next().unwrap_or_default())
}

fn number(it: impl TryInto<usize>) -> usize {
    it.try_into().unwrap_or_default()
}

/// A value of a YAML document, counted.
#[derive(Clone, Copy)]
struct Node<'a> {
    left: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        take(self.left).map_err(D::Error::custom)?;
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has too")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_none<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Value, D::Error> {
        from.deserialize_any(self)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Value, E> {
        Ok(Value::Bool(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_u64<E>(self, it: u64) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_i128<E: Error>(self, it: i128) -> Result<Value, E> {
        long(&it.to_string())
    }

    fn visit_u128<E: Error>(self, it: u128) -> Result<Value, E> {
        long(&it.to_string())
    }

    fn visit_f64<E: Error>(self, it: f64) -> Result<Value, E> {
        Number::from_f64(it)
            .map(Value::Number)
            .ok_or_else(|| E::custom("this number is not finite"))
    }

    fn visit_str<E>(self, it: &str) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_string<E>(self, it: String) -> Result<Value, E> {
        Ok(it.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(it) = from.next_element_seed(self)? {
            list.push(it);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut from: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = from.next_key::<String>()? {
            let value = from.next_value_seed(self)?;
            // `1` and `"1"` are two keys to YAML, and one to JSON.
            if map.contains_key(&key) {
                let key = key.escape_debug();
                return Err(A::Error::custom(format_args!("duplicate key `{key}`")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

fn long<E: Error>(digits: &str) -> Result<Value, E> {
    serde_json::from_str::<Number>(digits).map(Value::Number).map_err(E::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn fault(text: &str, language: Language) -> String {
        let fault = read(text.as_bytes(), language, NODES).unwrap_err();
        let place = fault.place.map(|(line, column)| format!("{line}:{column}: "));
        format!("{}{}", place.unwrap_or_default(), fault.cause)
    }

    #[test]
    fn both_languages_give_the_same_tree() {
        let tree = json!({ "b": [1, -2, 2.5, null, true], "a": { "x": "y" } });
        let yaml = "b: [1, -2, 2.5, null, true]\na:\n  x: y\n";
        assert_eq!(read(yaml.as_bytes(), Language::Yaml, NODES), Ok((tree.clone(), 9)));
        let json = "\u{feff} {\"b\": [1, -2, 2.5, null, true], \"a\": {\"x\": \"y\"}}\r\n";
        assert_eq!(read(json.as_bytes(), Language::Json, NODES), Ok((tree, 9)));
    }

    #[test]
    fn words_that_yaml_once_took_for_booleans_are_words() {
        let (tree, _) = read(b"[yes, on, no, true]", Language::Yaml, NODES).unwrap();
        assert_eq!(tree, json!(["yes", "on", "no", true]));
    }

    #[test]
    fn faults_have_a_place() {
        insta::assert_snapshot!(fault("a: [1,\n b: {", Language::Yaml), @"2:5: unclosed bracket '{'");
        insta::assert_snapshot!(fault("a: 1\na: 2\n", Language::Yaml), @"2:1: duplicate mapping key: a");
        insta::assert_snapshot!(fault("1: a\n\"1\": b\n", Language::Yaml), @"duplicate key `1`");
        insta::assert_snapshot!(fault("a: &x [*x]\n", Language::Yaml), @"1:8: an alias stands in what it stands for");
        insta::assert_snapshot!(fault("a: *nobody\n", Language::Yaml), @"1:4: alias references unknown anchor");
        insta::assert_snapshot!(fault("a: .nan\n", Language::Yaml), @"1:4: non-finite float `.nan` rejected by the configured policy");
        insta::assert_snapshot!(fault("a: 1\n---\nb: 2\n", Language::Yaml), @"3:1: it holds more than one document");
        insta::assert_snapshot!(fault("a: !!python/object:os.system x\n", Language::Yaml), @"1:30: unsupported tag `!!python/object:os.system`");
        insta::assert_snapshot!(fault("? [a, b]\n: 1\n", Language::Yaml), @"1:3: expected string scalar");
        insta::assert_snapshot!(fault("a:\n\tb: 1\n", Language::Yaml), @"2:2: tabs disallowed within this context (block indentation)");
        insta::assert_snapshot!(fault(&"[".repeat(5000), Language::Yaml), @"1:256: recursion limit exceeded");
        insta::assert_snapshot!(fault("{\"a\": 1,\n \"a\": 2}", Language::Json), @"2:8: duplicate key `a`");
        insta::assert_snapshot!(fault("{\"a\": 1,}", Language::Json), @"1:9: unexpected `}`");
        insta::assert_snapshot!(fault(&format!("{}{}", "[".repeat(100), "]".repeat(100)), Language::Json), @"1:65: it is nested deeper than 64");
        let latin = read(b"a: b\nc: \xe9\n", Language::Yaml, NODES).unwrap_err();
        assert_eq!(latin.place, Some((2, 4)));
    }

    #[test]
    fn what_aliases_stand_for_is_counted() {
        let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x]\n".to_owned();
        for level in 1..12 {
            let below = format!("*a{}, ", level - 1).repeat(8);
            bomb.push_str(&format!("a{level}: &a{level} [{below}]\n"));
        }
        insta::assert_snapshot!(fault(&bomb, Language::Yaml), @"6:35: it is too large, with what its aliases stand for");
    }

    /// Readers that keep long numbers know them by such a key.
    #[test]
    fn an_object_is_never_taken_for_a_number() {
        let text = br#"{"$serde_json::private::Number": "5"}"#;
        let key = "$serde_json::private::Number";
        assert_eq!(scanned(text).get(key), Some(&json!("5")));
        let (tree, _) = read(text, Language::Yaml, NODES).unwrap();
        assert_eq!(tree.get(key), Some(&json!("5")));
    }
}
