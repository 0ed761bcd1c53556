//! Ways to look into an artifact that stands in memory, as the original offers and follows them.
//!
//! This is the small form that packs and envelopes carry (`{"type": "lines", "start": 0, "end": 20}`). It keeps to the
//! original's rules, Python's line ends and slices included; large artifacts are read by
//! [`artifacts::read_piece`](crate::artifacts::read_piece), which understands the same selectors.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

use crate::{
    ArtifactRef, ViewSpec,
    envelope::ends_line,
    pytext::{self, compact_json},
};

/// How many keys get a view of their own, and how many a label names.
const KEYS: usize = 10;
const LABELLED: usize = 5;

/// How much of a text the guess at CSV looks at.
const SAMPLE_LINES: usize = 5;
const SAMPLE_BYTES: usize = 64 * 1024;

/// Why a selector cannot be followed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DrilldownError {
    /// There is no such type.
    #[error("there is no selector of type `{0}`; there are head, lines, rows and json_keys")]
    Unknown(String),
    /// A value in it is of the wrong type.
    #[error("`{0}` of the selector must be {1}")]
    Value(&'static str, &'static str),
}

/// The part of a text that a selector asks for.
pub fn drilldown(content: &str, selector: &Map<String, Value>) -> Result<String, DrilldownError> {
    let kind = selector.get("type");
    match kind.and_then(Value::as_str).unwrap_or_default() {
        "head" => {
            let chars = place(selector, "chars", Some(500))?;
            let (_, end) = slice(None, chars, content.chars().count());
            Ok(content.chars().take(end).collect())
        }
        "lines" | "rows" => {
            let lines: Vec<&str> = lines(content).collect();
            let (start, end) = (place(selector, "start", None)?, place(selector, "end", None)?);
            let (start, end) = slice(start, end, lines.len());
            Ok(lines[start..end].join("\n"))
        }
        "json_keys" => json_keys(content, selector),
        _ => Err(DrilldownError::Unknown(kind.map(pytext::to_str).unwrap_or_default())),
    }
}

/// A place in a Python slice.
fn place(
    selector: &Map<String, Value>,
    name: &'static str,
    default: Option<i64>,
) -> Result<Option<i64>, DrilldownError> {
    match selector.get(name) {
        None => Ok(default),
        Some(Value::Null) => Ok(None),
        Some(Value::Bool(it)) => Ok(Some(i64::from(*it))),
        Some(Value::Number(it)) if !it.as_str().contains(['.', 'e', 'E']) => {
            // Farther than that is the end on that side.
            let far = if it.as_str().starts_with('-') { i64::MIN } else { i64::MAX };
            Ok(Some(it.as_i64().unwrap_or(far)))
        }
        Some(_) => Err(DrilldownError::Value(name, "a whole number")),
    }
}

/// Python's `[start:end]` of something with so many parts.
fn slice(start: Option<i64>, end: Option<i64>, length: usize) -> (usize, usize) {
    let at = |place: i64| match usize::try_from(place) {
        Ok(place) => place.min(length),
        Err(_) => {
            length.saturating_sub(usize::try_from(place.unsigned_abs()).unwrap_or(usize::MAX))
        }
    };
    let start = start.map_or(0, at);
    (start, end.map_or(length, at).max(start))
}

/// The members of an object that are asked for; nothing of what is no object.
fn json_keys(content: &str, selector: &Map<String, Value>) -> Result<String, DrilldownError> {
    let keys = match selector.get("keys") {
        None => &[],
        Some(Value::Array(keys)) => keys.as_slice(),
        Some(_) => return Err(DrilldownError::Value("keys", "a list")),
    };
    let Ok(Value::Object(object)) = serde_json::from_str(content) else { return Ok(String::new()) };
    let found =
        |key: &Value| key.as_str().and_then(|it| Some((it.to_owned(), object.get(it)?.clone())));
    let found: Map<String, Value> = keys.iter().filter_map(found).collect();
    Ok(indented(&compact_json(&found.into())))
}

/// Compact JSON as Python's `json.dumps(indent=2)` lays it out.
fn indented(compact: &str) -> String {
    let mut out = String::with_capacity(compact.len() * 2);
    let (mut depth, mut inside, mut escaped) = (0, false, false);
    let mut letters = compact.chars().peekable();
    let line = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", depth));
    };
    while let Some(letter) = letters.next() {
        if inside {
            inside = escaped || letter != '"';
            escaped = letter == '\\' && !escaped;
            out.push(letter);
            continue;
        }
        match letter {
            '{' | '[' if letters.peek().is_some_and(|it| matches!(it, '}' | ']')) => {
                out.push(letter);
                out.extend(letters.next());
            }
            '{' | '[' => {
                depth += 1;
                out.push(letter);
                line(&mut out, depth);
            }
            '}' | ']' => {
                depth -= 1;
                line(&mut out, depth);
                out.push(letter);
            }
            ',' => {
                out.push(letter);
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            _ => {
                inside = letter == '"';
                out.push(letter);
            }
        }
    }
    out
}

/// Python's `splitlines`.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let end = rest.find(ends_line).unwrap_or(rest.len());
        let (line, behind) = rest.split_at(end);
        let mut letters = behind.chars();
        if letters.next() == Some('\r') && letters.as_str().starts_with('\n') {
            letters.next();
        }
        rest = letters.as_str();
        Some(line)
    })
}

/// The ways to look into some content that are worth offering.
pub fn generate_views(reference: &ArtifactRef, content: &[u8]) -> Vec<ViewSpec> {
    let views = Views { reference };
    match effective(content, &reference.media_type) {
        "application/json" => views.json(&String::from_utf8_lossy(content)),
        "text/csv" => views.stretches(content, "rows", ["head_rows", "tail_rows"], 10),
        text if text.starts_with("text/") => {
            views.stretches(content, "lines", ["head", "tail"], 20)
        }
        _ => {
            let label = format!("Header (128 bytes, {})", reference.media_type);
            vec![views.one("meta", label, json!({ "type": "head", "chars": 128 }))]
        }
    }
}

/// What content is by its name; where that says nothing, by its text.
fn effective<'a>(content: &[u8], media_type: &'a str) -> &'a str {
    if media_type != "application/octet-stream" {
        return media_type;
    }
    let Ok(text) = std::str::from_utf8(content) else { return media_type };
    let text = pytext::strip(text);
    if text.starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok() {
        return "application/json";
    }
    if looks_like_csv(text) { "text/csv" } else { "text/plain" }
}

/// What Python's `csv.Sniffer` makes of the first five lines: quoted cells with something between them, or any
/// character that every line has equally often.
fn looks_like_csv(text: &str) -> bool {
    let sample: Vec<&str> = lines(text).take(SAMPLE_LINES).collect();
    if sample.len() < 2 {
        return false;
    }
    let mut sample = sample.join("\n");
    sample.truncate(sample.floor_char_boundary(SAMPLE_BYTES));
    if has_quoted_cells(&sample) {
        return true;
    }
    let counts = |line: &str| {
        let mut counts = [0_usize; 127];
        for byte in line.bytes().filter(|it| *it < 127) {
            counts[usize::from(byte)] += 1;
        }
        counts
    };
    let mut rows = sample.split('\n').filter(|it| !it.is_empty()).map(counts);
    let Some(mut same) = rows.next() else { return false };
    for row in rows {
        for (same, count) in same.iter_mut().zip(row) {
            *same = if *same == count { count } else { 0 };
        }
    }
    same.iter().any(|it| 0 < *it)
}

/// A cell in quotes with the same character on both sides, or at either end of a line.
fn has_quoted_cells(sample: &str) -> bool {
    let between = |it: char| !(it.is_alphanumeric() || matches!(it, '_' | '\n' | '"' | '\''));
    let letters: Vec<char> = sample.chars().collect();
    let at = |place: usize| letters.get(place).copied();
    // Where a quote is last followed by a character, or by the end of a line.
    let mut closes: BTreeMap<(char, Option<char>), usize> = BTreeMap::new();
    let mut closes_before: BTreeMap<char, usize> = BTreeMap::new();
    for (place, quote) in letters.iter().enumerate().filter(|(_, it)| matches!(it, '"' | '\'')) {
        let next = at(place + 1).filter(|it| *it != '\n');
        closes.insert((*quote, next), place);
        if next.is_some_and(between) {
            closes_before.insert(*quote, place);
        }
    }
    let closed = |quote: char, next: Option<char>, open: usize| {
        closes.get(&(quote, next)).is_some_and(|it| open < *it)
    };
    (0..letters.len()).any(|open| {
        let quote = letters[open];
        if !matches!(quote, '"' | '\'') {
            return false;
        }
        let before = open.checked_sub(1).and_then(at);
        if before.is_none_or(|it| it == '\n')
            && closes_before.get(&quote).is_some_and(|it| open < *it)
        {
            return true;
        }
        // A space may stand between the delimiter and the quote, or be the delimiter.
        let farther = open.checked_sub(2).and_then(at).filter(|_| before == Some(' '));
        [before, farther]
            .into_iter()
            .flatten()
            .filter(|it| between(*it))
            .any(|delimiter| closed(quote, Some(delimiter), open) || closed(quote, None, open))
    })
}

struct Views<'a> {
    reference: &'a ArtifactRef,
}

impl Views<'_> {
    fn one(&self, name: &str, label: String, selector: Value) -> ViewSpec {
        let selector = match selector {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        let view_id = format!("{}:{name}", self.reference.handle);
        ViewSpec { view_id, label, selector, artifact_ref: self.reference.clone() }
    }

    fn json(&self, text: &str) -> Vec<ViewSpec> {
        let mut views = Vec::new();
        if let Ok(object) = serde_json::from_str::<BTreeMap<String, IgnoredAny>>(text) {
            let keys: Vec<&String> = object.keys().collect();
            if !keys.is_empty() {
                let named: Vec<&str> = keys.iter().take(LABELLED).map(|it| it.as_str()).collect();
                let more = if LABELLED < keys.len() { "…" } else { "" };
                let label = format!("JSON keys: {}{more}", named.join(", "));
                views.push(self.one(
                    "json_keys",
                    label,
                    json!({ "type": "json_keys", "keys": keys }),
                ));
            }
            for key in keys.into_iter().take(KEYS) {
                let selector = json!({ "type": "json_keys", "keys": [key] });
                views.push(self.one(&format!("key:{key}"), format!("JSON key '{key}'"), selector));
            }
        } else if let Ok(list) = serde_json::from_str::<Vec<IgnoredAny>>(text) {
            if !list.is_empty() {
                let label = format!("Array head ({} of {} items)", list.len().min(5), list.len());
                views.push(self.one("array_head", label, json!({ "type": "head", "chars": 500 })));
            }
        } else if serde_json::from_str::<IgnoredAny>(text).is_err() {
            return Vec::new();
        }
        if !pytext::is_shorter(text, 201) {
            let selector = json!({ "type": "head", "chars": 500 });
            views.push(self.one("head", "Head (500 chars)".to_owned(), selector));
        }
        views
    }

    /// The first and the last lines or rows.
    fn stretches(
        &self,
        content: &[u8],
        kind: &str,
        names: [&str; 2],
        many: usize,
    ) -> Vec<ViewSpec> {
        let total = lines(&String::from_utf8_lossy(content)).count();
        let shown = total.min(many);
        let label = |end: &str, order: &str| match kind {
            "rows" => format!("{end} rows ({order} {shown} of {total})"),
            _ => format!("{end} ({shown} lines)"),
        };
        let mut views = Vec::new();
        if 0 < total {
            let selector = json!({ "type": kind, "start": 0, "end": shown });
            views.push(self.one(names[0], label("Head", "first"), selector));
        }
        if many < total {
            let selector = json!({ "type": kind, "start": total - many, "end": total });
            views.push(self.one(names[1], label("Tail", "last"), selector));
        }
        views
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn look(content: &str, selector: &Value) -> Result<String, DrilldownError> {
        drilldown(content, selector.as_object().unwrap())
    }

    #[test]
    fn selectors_as_python_reads_them() {
        let rows = [
            ("abcdef", json!({ "type": "head" }), "abcdef"),
            ("abcdef", json!({ "type": "head", "chars": -2 }), "abcd"),
            ("abcdef", json!({ "type": "head", "chars": null }), "abcdef"),
            ("äöü", json!({ "type": "head", "chars": 2 }), "äö"),
            ("a\r\nb\u{2028}c\x0bd", json!({ "type": "lines", "start": 1 }), "b\nc\nd"),
            ("a\nb\nc", json!({ "type": "rows", "start": 2, "end": 1 }), ""),
            ("a\nb\nc", json!({ "type": "lines", "end": -1 }), "a\nb"),
            ("[1]", json!({ "type": "json_keys", "keys": ["a"] }), ""),
            ("{", json!({ "type": "json_keys", "keys": ["a"] }), ""),
            ("{\"a\": 1}", json!({ "type": "json_keys" }), "{}"),
            (
                "{\"b\": {}, \"a\": {\"d\": [], \"c\": \"ä,{\\\"\"}}",
                json!({ "type": "json_keys", "keys": ["b", "a"] }),
                "{\n  \"a\": {\n    \"c\": \"\\u00e4,{\\\"\",\n    \"d\": []\n  },\n  \"b\": {}\n}",
            ),
        ];
        for (content, selector, expected) in rows {
            assert_eq!(look(content, &selector).as_deref(), Ok(expected), "{selector}");
        }
        assert_eq!(look("x", &json!({ "type": 7 })), Err(DrilldownError::Unknown("7".to_owned())));
        assert!(look("x", &json!({ "type": "head", "chars": 1.5 })).is_err());
        assert!(look("x", &json!({ "type": "json_keys", "keys": "a" })).is_err());
    }

    /// Each held against Python 3.11.
    #[test]
    fn csv_as_python_guesses_it() {
        let yes = [
            "a,b\n1,2",
            "hello world\nfoo bar",
            "ab\nac",
            "x,'a',y\nz",
            "'a',\nb",
            "x; \"a\"\nzzz",
            "a\n\na",
        ];
        let no = ["a", "ab\ncd", "one line", "aab\nab c d\nzz", "'a'\nb", "x\"a\"\nz"];
        for text in yes {
            assert!(looks_like_csv(text), "{text:?}");
        }
        for text in no {
            assert!(!looks_like_csv(text), "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn every_view_can_be_followed(content in "([a-z]{0,5}[\n,{}\":]?){0,40}", json in any::<bool>()) {
            let media_type = if json { "application/json" } else { "application/octet-stream" };
            let reference = ArtifactRef {
                handle: "h".to_owned(),
                media_type: media_type.to_owned(),
                size_bytes: content.len() as u64,
                label: String::new(),
                content_hash: None,
            };
            for view in generate_views(&reference, content.as_bytes()) {
                drilldown(&content, &view.selector).unwrap();
            }
        }
    }
}
