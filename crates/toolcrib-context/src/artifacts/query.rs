//! Selectors as JSON objects and in URIs: `toolcrib://artifact/ID?lines=0:20`.

use serde_json::{Map, Value};

use super::{
    ArtifactId, Selector, SelectorError,
    selector::{Range, Words},
};

const PREFIX: &str = "toolcrib://artifact/";

/// The longest text of a selector that is read.
const MAX_TEXT: usize = 16 * 1024;

/// What a resource is called: an artifact, or a piece of it.
pub fn artifact_uri(id: &ArtifactId, selector: Option<&Selector>) -> String {
    match selector.map(Selector::to_query) {
        Some(query) if !query.is_empty() => format!("{PREFIX}{id}?{query}"),
        _ => format!("{PREFIX}{id}"),
    }
}

/// Reads what [`artifact_uri`] writes; nothing where it is another kind of URI.
pub fn parse_artifact_uri(
    uri: &str,
) -> Option<Result<(ArtifactId, Option<Selector>), SelectorError>> {
    let rest = uri.strip_prefix(PREFIX)?;
    let (id, query) = rest.split_once('?').map_or((rest, None), |(id, query)| (id, Some(query)));
    let id = id.parse().ok()?;
    let selector = query.filter(|it| !it.is_empty()).map(Selector::from_query).transpose();
    Some(selector.map(|it| (id, it)))
}

impl Selector {
    /// As the query of a URI.
    pub fn to_query(&self) -> String {
        let pair = |(word, text): (String, String)| format!("{word}={}", escaped(&text));
        self.to_words().into_iter().map(pair).collect::<Vec<_>>().join("&")
    }

    /// From the query of a URI.
    pub fn from_query(query: &str) -> Result<Self, SelectorError> {
        let pair = |pair: &str| {
            let (word, text) = pair.split_once('=').unwrap_or((pair, ""));
            (unescaped(word), unescaped(text))
        };
        if MAX_TEXT < query.len() {
            return Err(too_long("query"));
        }
        Words(query.split('&').filter(|it| !it.is_empty()).map(pair).collect()).read()
    }
}

impl TryFrom<Map<String, Value>> for Selector {
    type Error = SelectorError;

    fn try_from(given: Map<String, Value>) -> Result<Self, SelectorError> {
        if given.contains_key("type") {
            return originals(&given);
        }
        let mut words = Vec::new();
        for (word, value) in given {
            match value {
                Value::Null | Value::Bool(false) => {}
                // Several columns, several tests.
                Value::Array(list) if word != "keys" && !is_range(&word) => {
                    words.extend(list.iter().map(|it| (word.clone(), text(it))));
                }
                Value::Array(list) if is_range(&word) => {
                    let ends: Vec<String> = list.iter().take(3).map(text).collect();
                    words.push((word, ends.join(":")));
                }
                Value::Object(map) if word == "where" => {
                    let test = |(column, value): (&String, &Value)| {
                        (word.clone(), format!("{column}=={}", text(value)))
                    };
                    words.extend(map.iter().map(test));
                }
                value => words.push((word, text(&value))),
            }
        }
        if MAX_TEXT < words.iter().map(|(word, text)| word.len() + text.len()).sum() {
            return Err(too_long("selector"));
        }
        Words(words).read()
    }
}

impl From<Selector> for Map<String, Value> {
    fn from(selector: Selector) -> Self {
        let mut map = Self::new();
        for (word, text) in selector.to_words() {
            match map.get_mut(&word) {
                None => {
                    map.insert(word, Value::String(text));
                }
                Some(Value::Array(list)) => list.push(Value::String(text)),
                Some(first) => *first = Value::from(vec![first.take(), Value::String(text)]),
            }
        }
        map
    }
}

fn too_long(word: &str) -> SelectorError {
    let (word, given) = (word.to_owned(), "…".to_owned());
    SelectorError::Value { word, takes: "16 kB at most", given }
}

fn is_range(word: &str) -> bool {
    matches!(word, "lines" | "rows" | "bytes")
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The original's form of a selector.
fn originals(given: &Map<String, Value>) -> Result<Selector, SelectorError> {
    let number = |word: &str| given.get(word).and_then(Value::as_i64);
    let range = || Range { start: number("start").unwrap_or(0), end: number("end") };
    let names = || {
        let names = given.get("keys").and_then(Value::as_array);
        names.into_iter().flatten().map(text).collect()
    };
    match given.get("type").and_then(Value::as_str).unwrap_or_default() {
        "head" => {
            let chars = number("chars").map_or(500, |it| u64::try_from(it).unwrap_or_default());
            Ok(Selector::Head { chars, offset: 0 })
        }
        "lines" => Ok(Selector::Lines { range: range(), skip: 0 }),
        "rows" => Ok(Selector::Rows { range: range(), path: None }),
        "json_keys" => Ok(Selector::Keys { path: "$".to_owned(), names: names(), from: 0 }),
        other => Err(SelectorError::Unknown(other.to_owned())),
    }
}

/// Whatever is not plain in a query, as `%XX`.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => out.push(char::from(byte)),
            b'-' | b'_' | b'.' | b'~' | b':' | b',' | b'$' | b'*' | b'@' | b'/' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

/// The other way; what is no escape stays as it is.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = (byte == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match code.and_then(|it| u8::from_str_radix(it, 16).ok()) {
            Some(escaped) => {
                out.push(escaped);
                at += 3;
            }
            None => {
                out.push(if byte == b'+' { b' ' } else { byte });
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
