//! What came of a call, made small: a summary, a few facts, and the rest as artifacts.
//!
//! Handles name the tool and the part (`mcp:shot:image:0`); whoever stores artifacts adds the call, or the
//! second call would overwrite the first. Any result gives an envelope: what is of a wrong type counts as
//! absent, or as the text it looks like.

use std::borrow::Cow;

use base64::{
    Engine,
    alphabet::STANDARD,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use indexmap::IndexMap;
use serde_json::{Map, Value, json};

use crate::{ArtifactRef, ResultEnvelope, Status, pytext};

/// How many characters of a text stand in the summary.
const SUMMARY_CHARS: usize = 500;
/// A line, or a structured value, must be shorter than that to be a fact.
const FACT_CHARS: usize = 200;
const MAX_FACTS: usize = 20;
const OCTETS: &str = "application/octet-stream";

/// Artifacts of a result by their handle, in the order of its parts.
pub type Binaries = IndexMap<String, Binary>;

/// What is to be kept of a part that is not text, or not text alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binary {
    /// What it is made of; of a link, the address.
    pub bytes: Vec<u8>,
    /// What it is, such as `image/png`.
    pub media_type: String,
    /// What people call it.
    pub label: String,
}

/// Takes the result of a call apart: envelope, artifacts by handle, and the whole text.
///
/// Data that claims to be base64 and is not is kept as it came, and its handle stands in
/// `provenance["not_base64"]`.
///
/// ```
/// use serde_json::json;
/// use toolcrib_context::{Status, mcp_result_to_envelope};
///
/// let result = json!({
///     "content": [{ "type": "text", "text": "Found 42 records matching query" }],
///     "isError": false,
/// });
/// let (envelope, binaries, full_text) = mcp_result_to_envelope(&result, "search_database");
/// assert_eq!(envelope.status, Status::Ok);
/// assert_eq!(envelope.summary, "Found 42 records matching query");
/// assert_eq!(full_text, envelope.summary);
/// assert!(binaries.is_empty());
///
/// let result = json!({
///     "content": [{ "type": "text", "text": "query done" }],
///     "structuredContent": { "count": 42, "status": "done" },
/// });
/// let (envelope, binaries, _) = mcp_result_to_envelope(&result, "query");
/// assert_eq!(binaries["mcp:query:structured_content"].bytes, br#"{"count": 42, "status": "done"}"#);
/// assert_eq!(envelope.facts, ["count: 42", "status: done"]);
///
/// let part = json!({ "type": "text", "text": "…", "annotations": { "audience": ["human"], "priority": 0.9 } });
/// let (envelope, ..) = mcp_result_to_envelope(&json!({ "content": [part] }), "tool");
/// assert_eq!(
///     envelope.provenance["content_annotations"],
///     json!([{ "part_index": 0, "audience": ["human"], "priority": 0.9 }]),
/// );
/// ```
pub fn mcp_result_to_envelope(
    result: &Value,
    tool_name: &str,
) -> (ResultEnvelope, Binaries, String) {
    let mut taken = Taken::new(tool_name);
    match result.get("content") {
        Some(Value::Array(parts)) => {
            for (index, part) in parts.iter().enumerate() {
                taken.part(index, part);
            }
        }
        // Not as the protocol has it, but its meaning is plain.
        Some(part @ (Value::Object(_) | Value::String(_))) => taken.part(0, part),
        _ => {}
    }
    if let Some(structure) = result.get("structuredContent").filter(|it| !it.is_null()) {
        taken.structure(structure);
    }
    let is_error = result.get("isError").is_some_and(pytext::is_truthy);
    taken.seal(if is_error { Status::Error } else { Status::Ok })
}

/// What was found so far.
struct Taken<'a> {
    tool: &'a str,
    text: Option<String>,
    artifacts: Vec<ArtifactRef>,
    binaries: Binaries,
    annotations: Vec<Value>,
    not_base64: Vec<Value>,
}

impl<'a> Taken<'a> {
    fn new(tool: &'a str) -> Self {
        Self {
            tool,
            text: None,
            artifacts: Vec::new(),
            binaries: Binaries::new(),
            annotations: Vec::new(),
            not_base64: Vec::new(),
        }
    }

    fn part(&mut self, index: usize, part: &Value) {
        if let Value::String(text) = part {
            self.say(text);
        }
        let Value::Object(part) = part else { return };
        match part.get("type").map_or(Some("text"), Value::as_str) {
            Some("text") => match part.get("text") {
                Some(Value::String(text)) => self.say(text),
                Some(other) if !other.is_null() => self.say(&pytext::to_str(other)),
                _ => self.say(""),
            },
            Some("image") => self.media("image", "image/png", index, part),
            Some("audio") => self.media("audio", "audio/wav", index, part),
            Some("resource") => self.resource(index, part),
            Some("resource_link") => self.link(index, part),
            _ => {}
        }
        let annotations = part.get("annotations").and_then(Value::as_object);
        if let Some(said) = annotations.filter(|it| !it.is_empty()) {
            let mut annotated = Map::from_iter([("part_index".to_owned(), json!(index))]);
            annotated.extend(said.iter().map(|(key, value)| (key.clone(), value.clone())));
            self.annotations.push(Value::Object(annotated));
        }
    }

    fn say(&mut self, text: &str) {
        match &mut self.text {
            None => self.text = Some(text.to_owned()),
            Some(all) => {
                all.reserve(text.len() + 1);
                all.push('\n');
                all.push_str(text);
            }
        }
    }

    fn media(&mut self, kind: &str, usual: &str, index: usize, part: &Map<String, Value>) {
        let handle = format!("mcp:{}:{kind}:{index}", self.tool);
        let bytes = self.decode(&handle, part.get("data"));
        let media_type = said(part, "mimeType").unwrap_or(usual).to_owned();
        let label = format!("{kind} from {}", self.tool);
        self.keep(handle, &media_type.clone(), Binary { bytes, media_type, label });
    }

    /// A resource is text or a blob; one that is both is kept as both.
    fn resource(&mut self, index: usize, part: &Map<String, Value>) {
        let nothing = Map::new();
        let resource = part.get("resource").and_then(Value::as_object).unwrap_or(&nothing);
        let handle = format!("mcp:{}:resource:{index}", self.tool);
        let media_type = said(resource, "mimeType").unwrap_or(OCTETS).to_owned();
        let label = said(resource, "uri")
            .map_or_else(|| format!("resource from {}", self.tool), str::to_owned);
        let text = resource.get("text").filter(|it| pytext::is_truthy(it)).map(pytext::to_str);
        let blob = resource.get("blob").filter(|it| pytext::is_truthy(it));
        if let Some(text) = text {
            self.say(&text);
            let (bytes, media_type, label) = (text.into_bytes(), media_type.clone(), label.clone());
            self.keep(handle.clone(), &media_type.clone(), Binary { bytes, media_type, label });
            if blob.is_none() {
                return;
            }
        }
        let handle = if self.binaries.contains_key(&handle) { handle + ":blob" } else { handle };
        let bytes = self.decode(&handle, blob);
        self.keep(handle, &media_type.clone(), Binary { bytes, media_type, label });
    }

    /// What is behind a link is for the caller to fetch; the artifact is the address.
    fn link(&mut self, index: usize, part: &Map<String, Value>) {
        let handle = format!("mcp:{}:resource_link:{index}", self.tool);
        let uri =
            part.get("uri").filter(|it| !it.is_null()).map(pytext::to_str).unwrap_or_default();
        let label = said(part, "name").or(Some(&*uri).filter(|it| !it.is_empty()));
        let label =
            label.map_or_else(|| format!("resource link from {}", self.tool), str::to_owned);
        let media_type = "text/uri-list".to_owned();
        let target = said(part, "mimeType").unwrap_or(OCTETS);
        self.keep(handle, target, Binary { bytes: uri.into_bytes(), media_type, label });
    }

    fn structure(&mut self, structure: &Value) {
        let handle = format!("mcp:{}:structured_content", self.tool);
        let bytes = pytext::sorted_json(structure).into_bytes();
        let label = format!("structured content from {}", self.tool);
        let media_type = "application/json".to_owned();
        self.keep(handle, &media_type.clone(), Binary { bytes, media_type, label });
        for (key, value) in structure.as_object().into_iter().flatten() {
            if let Some(value) = pytext::short_str(value, FACT_CHARS) {
                self.say(&format!("{key}: {value}"));
            }
        }
    }

    fn keep(&mut self, handle: String, media_type: &str, binary: Binary) {
        self.artifacts.push(ArtifactRef {
            handle: handle.clone(),
            media_type: media_type.to_owned(),
            size_bytes: binary.bytes.len() as u64,
            label: binary.label.clone(),
            content_hash: None,
        });
        self.binaries.insert(handle, binary);
    }

    fn decode(&mut self, handle: &str, data: Option<&Value>) -> Vec<u8> {
        let data = match data {
            None | Some(Value::Null) => return Vec::new(),
            Some(Value::String(data)) => Cow::Borrowed(data.as_str()),
            Some(other) => Cow::Owned(pytext::to_str(other)),
        };
        decode(&data).unwrap_or_else(|| {
            self.not_base64.push(handle.into());
            data.into_owned().into_bytes()
        })
    }

    fn seal(self, status: Status) -> (ResultEnvelope, Binaries, String) {
        let text = self.text.unwrap_or_else(|| "(no content)".to_owned());
        let mut provenance = Map::new();
        provenance.insert("tool".to_owned(), self.tool.into());
        provenance.insert("protocol".to_owned(), "mcp".into());
        for (key, list) in
            [("content_annotations", self.annotations), ("not_base64", self.not_base64)]
        {
            if !list.is_empty() {
                provenance.insert(key.to_owned(), list.into());
            }
        }
        let envelope = ResultEnvelope {
            status,
            summary: beginning(&text).to_owned(),
            facts: facts(&text),
            artifacts: self.artifacts,
            views: Vec::new(),
            provenance,
        };
        (envelope, self.binaries, text)
    }
}

/// A member that is a text and says something.
fn said<'v>(object: &'v Map<String, Value>, key: &str) -> Option<&'v str> {
    object.get(key).and_then(Value::as_str).filter(|it| !it.is_empty())
}

/// Standard alphabet and full padding, bits left over not looked at; Python's strict reading.
fn decode(data: &str) -> Option<Vec<u8>> {
    const PLAIN: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::RequireNone),
    );
    let digits = data.trim_end_matches('=');
    let padded = match (digits.len() % 4, data.len() - digits.len()) {
        // Padding that nothing needs is let pass, as long as there is something.
        (0, padding) => padding == 0 || !digits.is_empty(),
        (2, padding) => padding == 2,
        (3, padding) => padding == 1,
        _ => false,
    };
    if padded { PLAIN.decode(digits).ok() } else { None }
}

fn beginning(text: &str) -> &str {
    text.char_indices().nth(SUMMARY_CHARS).map_or(text, |(end, _)| &text[..end])
}

/// The first short lines with a colon in them.
fn facts(text: &str) -> Vec<String> {
    let bytes = text.as_bytes();
    let mut facts = Vec::new();
    let mut begin = 0;
    while facts.len() < MAX_FACTS {
        let Some(colon) = memchr::memchr(b':', &bytes[begin..]) else { break };
        let colon = begin + colon;
        // A line that has its line end in front is the same line: the end is blank, and stripped.
        let start = begin + last_break(&bytes[begin..colon]).unwrap_or(0);
        let end = first_break(&bytes[colon..]).map_or(text.len(), |at| colon + at);
        let line = pytext::strip(&text[start..end]);
        if pytext::is_shorter(line, FACT_CHARS) {
            facts.push(line.to_owned());
        }
        // Not to be found again when the next line is looked for.
        begin = end + bytes[end..].iter().take_while(|it| matches!(it, b'\n' | b'\r')).count();
    }
    facts
}

/// Whether a character ends a line for Python's `splitlines`.
pub(crate) fn ends_line(letter: char) -> bool {
    matches!(
        letter,
        '\n'..='\r' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// The same, of the character that begins at a place in UTF-8.
fn ends_line_at(bytes: &[u8], at: usize) -> bool {
    match bytes[at] {
        b'\n'..=b'\r' | 0x1c..=0x1e => true,
        0xc2 => bytes.get(at + 1) == Some(&0x85),
        0xe2 => matches!(bytes.get(at + 1..at + 3), Some([0x80, 0xa8 | 0xa9])),
        _ => false,
    }
}

/// How much is looked at in one go.
const CHUNK: usize = 64;

/// Whether a line end may begin in here. No branches, so that the compiler makes vectors of it: most of a text is
/// passed over as fast as it is copied.
fn may_end_line(chunk: &[u8]) -> bool {
    let Ok(chunk): Result<&[u8; CHUNK], _> = chunk.try_into() else { return true };
    let mut any = 0;
    for &it in chunk {
        let control = u8::from(it.wrapping_sub(b'\n') < 4) | u8::from(it.wrapping_sub(0x1c) < 3);
        any |= control | u8::from(it == 0xc2) | u8::from(it == 0xe2);
    }
    any != 0
}

fn first_break(bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).step_by(CHUNK).find_map(|from| {
        let to = bytes.len().min(from + CHUNK);
        let mut places = from..to;
        may_end_line(&bytes[from..to]).then(|| places.find(|it| ends_line_at(bytes, *it)))?
    })
}

fn last_break(bytes: &[u8]) -> Option<usize> {
    (0..bytes.len()).step_by(CHUNK).find_map(|behind| {
        let to = bytes.len() - behind;
        let from = to.saturating_sub(CHUNK);
        let mut places = from..to;
        may_end_line(&bytes[from..to]).then(|| places.rfind(|it| ends_line_at(bytes, *it)))?
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn envelope(result: &Value) -> (ResultEnvelope, Binaries, String) {
        mcp_result_to_envelope(result, "t")
    }

    /// What the definition says, line by line.
    fn plain_facts(text: &str) -> Vec<String> {
        text.split(ends_line)
            .map(pytext::strip)
            .filter(|it| it.contains(':') && it.chars().count() < FACT_CHARS)
            .take(MAX_FACTS)
            .map(str::to_owned)
            .collect()
    }

    proptest! {
        #[test]
        fn facts_are_what_their_definition_says(
            pieces in prop::collection::vec(
                prop_oneof![
                    "[a-z: ]{0,80}", "\\PC{0,40}",
                    Just("\n".to_owned()), Just("\u{85}".to_owned()), Just("\u{2028}".to_owned()),
                    Just("\u{1d}".to_owned()), Just("é—".repeat(60)), Just(" ".repeat(90)), Just("k: v\r\n".to_owned()),
                ],
                0..60,
            )
        ) {
            let text = pieces.concat();
            prop_assert_eq!(facts(&text), plain_facts(&text));
        }
    }

    #[test]
    fn a_fact_is_shorter_than_its_limit() {
        for (length, count) in [(199, 1), (200, 0)] {
            for letter in ["v", "é", "😀"] {
                let line = format!("k:{}", letter.repeat(length - 2));
                assert_eq!(facts(&line).len(), count, "{length} {letter}");
            }
        }
    }

    /// What `base64.b64decode(…, validate=True)` of Python 3.11 gives.
    #[test]
    fn base64_is_read_as_strictly_as_python_does() {
        for (data, expected) in [
            ("", Some("")),
            ("YQ==", Some("a")),
            ("YR==", Some("a")),
            ("YWI=", Some("ab")),
            ("YWJj", Some("abc")),
            ("YWJj=", Some("abc")),
            ("YWJj====", Some("abc")),
            ("=", None),
            ("====", None),
            ("YQ", None),
            ("YQ=", None),
            ("YQ===", None),
            ("YWI", None),
            ("YWI==", None),
            ("YWJj=YWJj", None),
            ("YQ==YQ==", None),
            ("Y", None),
            ("YWJjY", None),
            ("Y=Q=", None),
            ("YQ=\n=", None),
            ("YW Jj", None),
            ("_-_-", None),
            ("é", None),
        ] {
            assert_eq!(decode(data), expected.map(|it| it.as_bytes().to_vec()), "{data}");
        }
    }

    #[test]
    fn bad_base64_is_kept_and_flagged() {
        let (envelope, binaries, _) = envelope(&json!({ "content": [
            { "type": "image", "data": "YQ==" }, { "type": "audio", "data": "no such thing" }, { "type": "image", "data": 12345 },
            { "type": "image", "data": 1234 },
        ] }));
        assert_eq!(envelope.provenance["not_base64"], json!(["mcp:t:audio:1", "mcp:t:image:2"]));
        assert_eq!(binaries["mcp:t:audio:1"].bytes, b"no such thing");
        assert_eq!(binaries["mcp:t:image:2"].bytes, b"12345");
        assert_eq!(binaries["mcp:t:image:3"].bytes.len(), 3);
    }

    #[test]
    fn blobs_are_kept() {
        let (envelope, binaries, text) = envelope(&json!({ "content": [
            { "type": "resource", "resource": { "uri": "file:///a", "blob": "AAEC", "mimeType": "x/y" } },
            { "type": "resource", "resource": { "text": "both", "blob": "AAEC" } },
            { "type": "resource", "resource": { "blob": "%" } },
        ] }));
        let sizes: Vec<_> =
            envelope.artifacts.iter().map(|it| (it.handle.as_str(), it.size_bytes)).collect();
        assert_eq!(
            sizes,
            [
                ("mcp:t:resource:0", 3),
                ("mcp:t:resource:1", 4),
                ("mcp:t:resource:1:blob", 3),
                ("mcp:t:resource:2", 1)
            ]
        );
        assert_eq!(
            binaries["mcp:t:resource:0"],
            Binary {
                bytes: vec![0, 1, 2],
                media_type: "x/y".to_owned(),
                label: "file:///a".to_owned()
            }
        );
        assert_eq!(binaries["mcp:t:resource:1"].bytes, b"both");
        assert_eq!(envelope.provenance["not_base64"], json!(["mcp:t:resource:2"]));
        assert_eq!(text, "both");
    }

    #[test]
    fn what_is_of_a_wrong_type_is_read_as_well_as_it_can_be() {
        for (result, text) in [
            (json!(null), "(no content)"),
            (json!([1]), "(no content)"),
            (json!({ "content": 7 }), "(no content)"),
            (json!({ "content": "plain" }), "plain"),
            (json!({ "content": { "type": "text", "text": "one" } }), "one"),
            (json!({ "content": ["a", 7, null, { "text": "b" }] }), "a\nb"),
            (json!({ "content": [{ "type": "text", "text": null }] }), ""),
            (json!({ "content": [{ "type": "text", "text": 5 }] }), "5"),
            (json!({ "content": [{ "type": null, "text": "x" }] }), "(no content)"),
            (json!({ "content": [{ "type": "resource", "resource": null }] }), "(no content)"),
            (json!({ "content": [{ "type": "resource_link", "uri": null }] }), "(no content)"),
            (json!({ "content": [], "structuredContent": [1] }), "(no content)"),
        ] {
            assert_eq!(envelope(&result).2, text, "{result}");
        }
    }

    #[test]
    fn a_summary_is_cut_at_characters() {
        for letter in ["a", "é", "😀"] {
            let (envelope, _, text) =
                envelope(&json!({ "content": [{ "type": "text", "text": letter.repeat(501) }] }));
            assert_eq!(envelope.summary, letter.repeat(500));
            assert_eq!(text.chars().count(), 501);
        }
    }
}
