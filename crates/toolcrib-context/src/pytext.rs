//! JSON values as Python would write them: `str()`, `repr()` and `json.dumps(sort_keys=True)`.
//!
//! The seed's library is Python, and what it shows of a value (`status: True`, `tags: ['a']`) is what its users
//! compare with. One rule of ours: a number that a Python float would round keeps the digits it came with.
//!
//! Nothing here recurses, so a value may be nested as deeply as it likes.

use std::fmt::Write;

use serde_json::{Map, Number, Value};

/// Whether Python takes `value` for true.
pub(crate) fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(it) => *it,
        Value::Number(it) => it.as_f64().is_none_or(|it| it != 0.0),
        Value::String(it) => !it.is_empty(),
        Value::Array(it) => !it.is_empty(),
        Value::Object(it) => !it.is_empty(),
    }
}

/// `str(value)`.
pub(crate) fn to_str(value: &Value) -> String {
    match value {
        Value::String(it) => it.clone(),
        other => repr(other),
    }
}

/// `repr(value)`.
pub(crate) fn repr(value: &Value) -> String {
    let mut out = String::new();
    walk(value, &PYTHON, &mut |piece| {
        piece.write(&PYTHON, &mut out);
        true
    });
    out
}

/// `str(value)` if it has fewer than `limit` characters; what is longer is not written to its end.
pub(crate) fn short_str(value: &Value, limit: usize) -> Option<String> {
    if let Value::String(it) = value {
        return is_shorter(it, limit).then(|| it.clone());
    }
    let mut out = String::new();
    walk(value, &PYTHON, &mut |piece| {
        // Whatever is written is at least as long as what it stands for.
        if limit <= out.len() / 4 + piece.at_least() {
            return false;
        }
        piece.write(&PYTHON, &mut out);
        is_shorter(&out, limit)
    })
    .then_some(out)
}

/// Whether `text` has fewer than `limit` characters. Looks at no more of it than it must.
pub(crate) fn is_shorter(text: &str, limit: usize) -> bool {
    text.len() < limit || (text.len() < limit * 4 && text.chars().count() < limit)
}

/// `json.dumps(value, sort_keys=True)`: one line of ASCII.
pub(crate) fn sorted_json(value: &Value) -> String {
    dumps(value, &JSON)
}

/// `json.dumps(value, sort_keys=True, separators=(",", ":"))`.
pub(crate) fn compact_json(value: &Value) -> String {
    dumps(value, &COMPACT)
}

/// `dict(value)`: of an object, or of a list of pairs.
pub(crate) fn to_dict(value: &Value) -> Option<Map<String, Value>> {
    let pair = |it: &Value| match it.as_array()?.as_slice() {
        [Value::String(key), value] => Some((key.clone(), value.clone())),
        _ => None,
    };
    match value {
        Value::Object(it) => Some(it.clone()),
        Value::Array(pairs) => pairs.iter().map(pair).collect(),
        Value::String(it) if it.is_empty() => Some(Map::new()),
        _ => None,
    }
}

/// `value.strip()`: Python counts four more characters as blank than Unicode does.
pub(crate) fn strip(text: &str) -> &str {
    text.trim_matches(|it: char| it.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&it))
}

/// How a notation writes what is not a value.
struct Notation {
    null: &'static str,
    yes: &'static str,
    no: &'static str,
    comma: &'static str,
    colon: &'static str,
    quote: fn(&str, &mut String),
    sorted: bool,
}

const PYTHON: Notation = Notation {
    null: "None",
    yes: "True",
    no: "False",
    comma: ", ",
    colon: ": ",
    quote: quote_for_python,
    sorted: false,
};

const JSON: Notation = Notation {
    null: "null",
    yes: "true",
    no: "false",
    comma: ", ",
    colon: ": ",
    quote: quote_for_json,
    sorted: true,
};

const COMPACT: Notation = Notation { comma: ",", colon: ":", ..JSON };

/// What a value is written from.
enum Piece<'a> {
    Mark(&'static str),
    Text(&'a str),
    Number(&'a Number),
}

impl Piece<'_> {
    fn write(&self, notation: &Notation, out: &mut String) {
        match self {
            Self::Mark(it) => out.push_str(it),
            Self::Text(it) => (notation.quote)(it, out),
            Self::Number(it) => write_number(it.as_str(), out),
        }
    }

    /// A count of characters that this will not fall below.
    fn at_least(&self) -> usize {
        match self {
            Self::Text(it) => it.len() / 4,
            Self::Mark(_) | Self::Number(_) => 0,
        }
    }
}

enum Open<'a> {
    Array(std::slice::Iter<'a, Value>),
    Object(serde_json::map::Iter<'a>),
    Sorted(std::vec::IntoIter<(&'a String, &'a Value)>),
}

impl<'a> Open<'a> {
    fn next(&mut self) -> Option<(Option<&'a String>, &'a Value)> {
        match self {
            Self::Array(it) => it.next().map(|value| (None, value)),
            Self::Object(it) => it.next().map(|(key, value)| (Some(key), value)),
            Self::Sorted(it) => it.next().map(|(key, value)| (Some(key), value)),
        }
    }

    fn end(&self) -> &'static str {
        if matches!(self, Self::Array(_)) { "]" } else { "}" }
    }
}

/// Gives the pieces of `value` to `take`, until there are no more or `take` has had enough.
fn walk<'a>(
    value: &'a Value,
    notation: &Notation,
    take: &mut impl FnMut(Piece<'a>) -> bool,
) -> bool {
    let mut stack: Vec<(Open<'a>, bool)> = Vec::new();
    let mut next = Some(value);
    loop {
        if let Some(value) = next.take() {
            let piece = match value {
                Value::Null => Piece::Mark(notation.null),
                Value::Bool(true) => Piece::Mark(notation.yes),
                Value::Bool(false) => Piece::Mark(notation.no),
                Value::Number(it) => Piece::Number(it),
                Value::String(it) => Piece::Text(it),
                Value::Array(it) => {
                    stack.push((Open::Array(it.iter()), true));
                    Piece::Mark("[")
                }
                Value::Object(it) => {
                    stack.push((open(it, notation), true));
                    Piece::Mark("{")
                }
            };
            if !take(piece) {
                return false;
            }
        }
        let Some((open, first)) = stack.last_mut() else { return true };
        let Some((key, value)) = open.next() else {
            let end = open.end();
            stack.pop();
            if !take(Piece::Mark(end)) {
                return false;
            }
            continue;
        };
        if !std::mem::take(first) && !take(Piece::Mark(notation.comma)) {
            return false;
        }
        if let Some(key) = key
            && !(take(Piece::Text(key)) && take(Piece::Mark(notation.colon)))
        {
            return false;
        }
        next = Some(value);
    }
}

fn open<'a>(object: &'a Map<String, Value>, notation: &Notation) -> Open<'a> {
    if !notation.sorted {
        return Open::Object(object.iter());
    }
    let mut members: Vec<_> = object.iter().collect();
    members.sort_unstable_by_key(|(key, _)| *key);
    Open::Sorted(members.into_iter())
}

fn dumps(value: &Value, notation: &Notation) -> String {
    let mut out = String::new();
    walk(value, notation, &mut |piece| {
        piece.write(notation, &mut out);
        true
    });
    out
}

fn quote_for_python(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let escape = |letter: char, out: &mut String| match letter {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\\' => out.push_str("\\\\"),
        '"' | '\'' if letter == quote => out.extend(['\\', letter]),
        '"' | '\'' => out.push(letter),
        it if is_printable(it) => out.push(it),
        it => {
            let code = u32::from(it);
            match code {
                0..=0xff => write!(out, "\\x{code:02x}"),
                0x100..=0xffff => write!(out, "\\u{code:04x}"),
                _ => write!(out, "\\U{code:08x}"),
            }
            .ok();
        }
    };
    out.push(quote);
    write_escaped(text, out, escape);
    out.push(quote);
}

/// Writes stretches of plain characters at once, and hands the others to `escape`.
fn write_escaped(mut text: &str, out: &mut String, escape: impl Fn(char, &mut String)) {
    let plain = |it: u8| matches!(it, b' '..=b'~') && !matches!(it, b'"' | b'\'' | b'\\');
    while let Some(at) = text.bytes().position(|it| !plain(it)) {
        let (front, rest) = text.split_at(at);
        out.push_str(front);
        let mut letters = rest.chars();
        letters.next().into_iter().for_each(|it| escape(it, out));
        text = letters.as_str();
    }
    out.push_str(text);
}

/// Python's `isprintable`, which leaves out the same classes of characters as Rust's debug text does. A mark
/// that joins the letter before it is printable; it stands after one here, since Rust escapes it at the front.
fn is_printable(letter: char) -> bool {
    let mut buffer = [b'a', 0, 0, 0, 0];
    let length = letter.encode_utf8(&mut buffer[1..]).len();
    let after_a_letter = std::str::from_utf8(&buffer[..=length]).unwrap_or("a");
    after_a_letter.escape_debug().nth(1) == Some(letter)
}

fn quote_for_json(text: &str, out: &mut String) {
    let escape = |letter: char, out: &mut String| match letter {
        '\'' => out.push('\''),
        '"' => out.push_str("\\\""),
        '\\' => out.push_str("\\\\"),
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        '\u{8}' => out.push_str("\\b"),
        '\u{c}' => out.push_str("\\f"),
        it => {
            for unit in it.encode_utf16(&mut [0; 2]) {
                write!(out, "\\u{unit:04x}").ok();
            }
        }
    };
    out.push('"');
    write_escaped(text, out, escape);
    out.push('"');
}

fn write_number(text: &str, out: &mut String) {
    if !text.contains(['.', 'e', 'E']) {
        // There is no negative zero among Python's integers.
        return out.push_str(if text == "-0" { "0" } else { text });
    }
    let float: f64 = text.parse().unwrap_or(f64::NAN);
    let written = float_repr(float);
    let kept = float.is_finite() && decimal(text) == decimal(&written);
    out.push_str(if kept { &written } else { text });
}

/// `repr(float)`: the fewest digits that say it, with an exponent where it is far from one.
fn float_repr(float: f64) -> String {
    let shortest = format!("{float:e}");
    let Some((digits, exponent)) = shortest.split_once('e') else { return shortest };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..16).contains(&exponent) {
        let plain = format!("{float}");
        return if plain.contains('.') { plain } else { plain + ".0" };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

/// A number without the liberties of its notation: sign, digits, and the place of the first of them.
fn decimal(text: &str) -> (bool, String, i64) {
    let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(i64::MAX / 2);
    let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{part}");
    let digits = all.trim_start_matches('0');
    let leading = i64::try_from(all.len() - digits.len()).unwrap_or_default();
    let digits = digits.trim_end_matches('0').to_owned();
    let place = i64::try_from(whole.len()).unwrap_or_default();
    let place = if digits.is_empty() { 0 } else { exponent.saturating_add(place - leading) };
    (negative, digits, place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(json: &str, python: &str, dumped: &str) {
        let value: Value = serde_json::from_str(json).unwrap();
        assert_eq!(repr(&value), python);
        assert_eq!(sorted_json(&value), dumped);
    }

    /// What Python 3.11 writes of the same text.
    #[test]
    fn values_look_as_in_python() {
        check("null", "None", "null");
        check("[true, false, {}, []]", "[True, False, {}, []]", "[true, false, {}, []]");
        check(
            r#"{"b": 1, "a": {"z": [1, "x"], "y": null}}"#,
            "{'b': 1, 'a': {'z': [1, 'x'], 'y': None}}",
            r#"{"a": {"y": null, "z": [1, "x"]}, "b": 1}"#,
        );
        check(r#""it's""#, r#""it's""#, r#""it's""#);
        check(r#""it's \"so\"""#, r#"'it\'s "so"'"#, r#""it's \"so\"""#);
        check(
            r#""a\\b\n\t\r\u0007\u007f""#,
            r"'a\\b\n\t\r\x07\x7f'",
            r#""a\\b\n\t\r\u0007\u007f""#,
        );
        check(
            r#""é😀\u00a0\u200b\u2028\u00ad""#,
            r"'é😀\xa0\u200b\u2028\xad'",
            r#""\u00e9\ud83d\ude00\u00a0\u200b\u2028\u00ad""#,
        );
        // A mark that joins the letter before it, first in its text.
        check("\"\u{301}e\u{301}\"", "'\u{301}e\u{301}'", r#""\u0301e\u0301""#);
        check(
            "\"\u{e0001}\u{10ffff}\"",
            r"'\U000e0001\U0010ffff'",
            r#""\udb40\udc01\udbff\udfff""#,
        );
    }

    #[test]
    fn numbers_look_as_in_python() {
        for (json, python) in [
            ("1", "1"),
            ("-0", "0"),
            ("-0.0", "-0.0"),
            ("1.0", "1.0"),
            ("1.50", "1.5"),
            ("1e2", "100.0"),
            ("1E+15", "1000000000000000.0"),
            ("1e16", "1e+16"),
            ("123456789012345680.0", "1.2345678901234568e+17"),
            ("1e20", "1e+20"),
            ("0.0001", "0.0001"),
            ("0.00001", "1e-05"),
            ("1e-7", "1e-07"),
            ("1.5e-300", "1.5e-300"),
            ("5e-324", "5e-324"),
            ("1.7976931348623157e308", "1.7976931348623157e+308"),
            ("0e5", "0.0"),
            ("100000000000000000000000000000000001", "100000000000000000000000000000000001"),
        ] {
            check(json, python, python);
        }
    }

    #[test]
    fn a_number_that_would_be_rounded_keeps_its_digits() {
        for json in [
            "0.12345678901234567890",
            "1e+400",
            "-1e+400",
            "1e-400",
            "1e+99999999999999999999",
            "0.1e-99999999999999999999",
        ] {
            check(json, json, json);
        }
    }

    #[test]
    fn a_short_text_is_shorter_than_the_limit() {
        let value = serde_json::json!(["é".repeat(10), 1]);
        let whole = repr(&value);
        let length = whole.chars().count();
        assert_eq!(short_str(&value, length), None);
        assert_eq!(short_str(&value, length + 1), Some(whole));
        assert_eq!(short_str(&Value::from("x".repeat(200)), 200), None);
        assert_eq!(short_str(&Value::from("é".repeat(199)), 200).unwrap().chars().count(), 199);
    }

    #[test]
    fn depth_costs_no_stack() {
        let mut value = Value::Null;
        for _ in 0..5000 {
            value = Value::Array(vec![value]);
        }
        assert_eq!(repr(&value).len(), 5000 * 2 + 4);
        assert_eq!(sorted_json(&value).len(), 5000 * 2 + 4);
    }

    #[test]
    fn what_python_takes_for_true() {
        for (json, truthy) in [
            ("null", false),
            ("0", false),
            ("0.0", false),
            ("-0", false),
            ("\"\"", false),
            ("[]", false),
            ("{}", false),
            ("false", false),
            ("\"false\"", true),
            ("1e-400", false),
            ("1e400", true),
            ("[0]", true),
            ("-1", true),
        ] {
            assert_eq!(is_truthy(&serde_json::from_str(json).unwrap()), truthy, "{json}");
        }
    }
}
