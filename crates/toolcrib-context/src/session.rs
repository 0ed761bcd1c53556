//! Sessions as files: one JSON object a line, read and written.
//!
//! A line has at least `id`, `type`, and `text` or `content`. What an item has beyond the fields of
//! [`ContextItem`] (`timestamp`, `tool_name`, `args`, anything) is kept in its metadata, so that what was
//! written is what is read. A file is read line by line, and within [`SessionLimits`].

mod recorder;

pub use recorder::{RecordLimits, Recorder};

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
};

use serde::Serialize;
use serde_json::{Map, Value};

use crate::{ArtifactRef, ContextItem, ItemKind, Sensitivity, envelope::ends_line, pytext};

/// Members of a line that are metadata of an item, and stand beside its fields because people look for them there.
const BESIDE: [&str; 3] = ["tool_name", "args", "timestamp"];

/// How much is read of a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionLimits {
    /// Of one line, in bytes.
    pub line_bytes: u64,
    /// Of all, in bytes.
    pub bytes: u64,
    /// How many items.
    pub items: usize,
}

impl Default for SessionLimits {
    /// A result may have 100 MB by default, and more when it is escaped.
    fn default() -> Self {
        Self { line_bytes: 256 << 20, bytes: 1 << 30, items: 1_000_000 }
    }
}

/// Why a session cannot be read. Lines are counted from 1, as editors do.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// There is no such file, or it may not be read.
    #[error("cannot read the session `{}`", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Reading broke off.
    #[error("cannot read on after line {line}")]
    Broken {
        /// The last line that was read.
        line: usize,
        /// What the system says.
        source: io::Error,
    },
    /// Sessions are UTF-8.
    #[error("line {line} is not UTF-8")]
    NotUtf8 {
        /// Where.
        line: usize,
        /// What is wrong with it.
        source: std::str::Utf8Error,
    },
    /// Each line is JSON.
    #[error("line {line} is not JSON")]
    NotJson {
        /// Where.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// Each line is an object.
    #[error("line {line} is not an object")]
    NotAnObject {
        /// Where.
        line: usize,
    },
    /// A member says something that cannot be meant.
    #[error("line {line}: `{member}` must be {expected}")]
    BadMember {
        /// Where.
        line: usize,
        /// The member.
        member: &'static str,
        /// What it could be.
        expected: &'static str,
    },
    /// A line is too long.
    #[error("line {line} is longer than {limit} bytes")]
    LineTooLong {
        /// Where.
        line: usize,
        /// See [`SessionLimits::line_bytes`].
        limit: u64,
    },
    /// The session is too long.
    #[error("the session is longer than {bytes} bytes or {items} items at line {line}")]
    TooLong {
        /// Where that was found.
        line: usize,
        /// See [`SessionLimits::bytes`].
        bytes: u64,
        /// See [`SessionLimits::items`].
        items: usize,
    },
}

/// Reads the session that is in a file.
///
/// ```
/// use toolcrib_context::{ItemKind, SessionLimits, read_session};
///
/// let session = r#"
/// {"id": "u1", "type": "user_turn", "text": "Search for open invoices"}
/// {"id": "tc1", "type": "tool_call", "text": "invoices.search(status='open')", "parent_id": "u1"}
/// {"id": "tr1", "type": "tool_result", "content": "...", "parent_id": "tc1"}
/// "#;
/// let items = read_session(session.as_bytes(), &SessionLimits::default())?;
/// assert_eq!(items[2].kind, ItemKind::ToolResult);
/// assert_eq!(items[2].text, "...");
/// assert_eq!(items[2].parent_id.as_deref(), Some("tc1"));
/// # Ok::<(), toolcrib_context::SessionError>(())
/// ```
pub fn load_mcp_session_jsonl(path: impl AsRef<Path>) -> Result<Vec<ContextItem>, SessionError> {
    let path = path.as_ref();
    let unreadable = |source| SessionError::Unreadable { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    // A folder can be opened, and shows only then that it cannot be read.
    read_session(BufReader::new(file), &SessionLimits::default()).map_err(|error| match error {
        SessionError::Broken { line: 0, source } => unreadable(source),
        other => other,
    })
}

/// Reads a session from anywhere, see [`load_mcp_session_jsonl`].
pub fn read_session(
    mut from: impl BufRead,
    limits: &SessionLimits,
) -> Result<Vec<ContextItem>, SessionError> {
    let mut reading = Reading { limits: *limits, line: 0, before: None, items: Vec::new() };
    let (mut buffer, mut bytes) = (Vec::new(), 0);
    loop {
        buffer.clear();
        let read = (&mut from)
            .take(limits.line_bytes.saturating_add(1))
            .read_until(b'\n', &mut buffer)
            .map_err(|source| SessionError::Broken { line: reading.line, source })?;
        if read == 0 {
            return Ok(reading.items);
        }
        let line = reading.line + 1;
        if limits.line_bytes < read as u64 {
            return Err(SessionError::LineTooLong { line, limit: limits.line_bytes });
        }
        bytes += read as u64;
        if limits.bytes < bytes {
            return Err(reading.too_long(line));
        }
        let text = std::str::from_utf8(&buffer)
            .map_err(|source| SessionError::NotUtf8 { line, source })?;
        let text = text.strip_prefix('\u{feff}').filter(|_| line == 1).unwrap_or(text);
        let text = text.strip_suffix('\n').unwrap_or(text);
        let text = text.strip_suffix('\r').unwrap_or(text);
        // JSON has no such characters, within texts or without; they can only be line ends of another kind.
        for line in text.split(|it: char| it.is_ascii() && ends_line(it)) {
            reading.line(line)?;
        }
    }
}

struct Reading {
    limits: SessionLimits,
    /// How many lines there were.
    line: usize,
    /// How many of them were before the first that is not blank. Items without an id are numbered from there.
    before: Option<usize>,
    items: Vec<ContextItem>,
}

impl Reading {
    fn line(&mut self, text: &str) -> Result<(), SessionError> {
        let read = serde_json::from_str(pytext::strip(text));
        if read.is_err() && text.contains(ends_line) {
            // U+2028 and its like may stand in a text, and may end a line.
            return text.split(ends_line).try_for_each(|it| self.line(it));
        }
        self.line += 1;
        let line = self.line;
        if pytext::strip(text).is_empty() {
            return Ok(());
        }
        let Value::Object(members) =
            read.map_err(|source| SessionError::NotJson { line, source })?
        else {
            return Err(SessionError::NotAnObject { line });
        };
        if self.items.len() == self.limits.items {
            return Err(self.too_long(line));
        }
        let before = *self.before.get_or_insert(line - 1);
        let read = read_item(members, line - before);
        let item =
            read.map_err(|(member, expected)| SessionError::BadMember { line, member, expected })?;
        self.items.push(item);
        Ok(())
    }

    fn too_long(&self, line: usize) -> SessionError {
        let SessionLimits { bytes, items, .. } = self.limits;
        SessionError::TooLong { line, bytes, items }
    }
}

/// A member, and what it should have been.
type Misfit = (&'static str, &'static str);

fn read_item(mut members: Map<String, Value>, number: usize) -> Result<ContextItem, Misfit> {
    let mut take = |key| members.shift_remove(key);
    let id = take("id").and_then(text_of).unwrap_or_else(|| format!("mcp-line-{number}"));
    let kind = read_kind(take("type"))?;
    let (text, content) = (take("text"), take("content"));
    let text = text.filter(pytext::is_truthy).or(content).map(into_str).unwrap_or_default();
    let token_estimate = read_count(take("token_estimate"))?;
    let sensitivity = read_sensitivity(take("sensitivity"))?;
    let parent_id = take("parent_id").and_then(text_of);
    let artifact_ref = read_reference(take("artifact_ref"))?;
    let metadata = take("metadata").unwrap_or_else(|| Map::new().into());
    let mut metadata = match metadata {
        Value::Object(it) => it,
        other => pytext::to_dict(&other).ok_or(("metadata", "an object"))?,
    };
    for (key, value) in members {
        metadata.entry(key).or_insert(value);
    }
    Ok(ContextItem {
        id,
        kind,
        text,
        token_estimate,
        sensitivity,
        metadata,
        parent_id,
        artifact_ref,
    })
}

fn into_str(value: Value) -> String {
    match value {
        Value::String(it) => it,
        other => pytext::to_str(&other),
    }
}

/// Ids are texts; a number is one too, and nothing is none.
fn text_of(value: Value) -> Option<String> {
    (!value.is_null()).then(|| into_str(value))
}

fn read_kind(value: Option<Value>) -> Result<ItemKind, Misfit> {
    match value {
        Some(Value::Array(_) | Value::Object(_)) => Err(("type", "the name of a kind")),
        // What nobody knows is something that somebody said.
        Some(value @ Value::String(_)) => {
            Ok(serde_json::from_value(value).unwrap_or(ItemKind::UserTurn))
        }
        _ => Ok(ItemKind::UserTurn),
    }
}

/// An unknown label must not become a harmless one.
fn read_sensitivity(value: Option<Value>) -> Result<Sensitivity, Misfit> {
    let value = value.filter(|it| !it.is_null());
    let expected = "`public`, `internal`, `confidential` or `restricted`";
    value.map_or(Ok(Sensitivity::Public), |it| {
        serde_json::from_value(it).ok().ok_or(("sensitivity", expected))
    })
}

/// `int(value)`. What is less than nothing is not known.
fn read_count(value: Option<Value>) -> Result<u64, Misfit> {
    let Some(value) = value else { return Ok(0) };
    let count = match &value {
        Value::Bool(it) => Some(u64::from(*it)),
        Value::Number(it) => whole(it.as_str()).or_else(|| it.as_f64().and_then(truncated)),
        Value::String(it) => whole(&pytext::strip(it).replace('_', "")),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    count.ok_or(("token_estimate", "a number of tokens"))
}

fn whole(text: &str) -> Option<u64> {
    match text.strip_prefix('-') {
        Some(rest) => rest.parse().ok().map(|_: u64| 0),
        None => text.parse().ok(),
    }
}

/// `int` cuts off what is behind the point.
fn truncated(float: f64) -> Option<u64> {
    (float < 1e18).then_some(float.max(0.0) as u64)
}

/// A reference, or the handle alone.
fn read_reference(value: Option<Value>) -> Result<Option<ArtifactRef>, Misfit> {
    let members = match value {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(handle)) => Map::from_iter([("handle".to_owned(), handle.into())]),
        Some(Value::Object(members)) => members,
        Some(_) => return Err(("artifact_ref", "an object with a `handle`")),
    };
    let text = |key| members.get(key).and_then(Value::as_str).map(str::to_owned);
    let handle = text("handle").ok_or(("artifact_ref", "an object with a `handle`"))?;
    Ok(Some(ArtifactRef {
        handle,
        media_type: text("media_type").unwrap_or_else(|| "application/octet-stream".to_owned()),
        size_bytes: members.get("size_bytes").and_then(Value::as_u64).unwrap_or_default(),
        label: text("label").unwrap_or_default(),
        content_hash: text("content_hash"),
    }))
}

impl ContextItem {
    /// That a tool was called, in the way sessions tell of it.
    ///
    /// ```
    /// use serde_json::json;
    /// use toolcrib_context::{ContextItem, write_line};
    ///
    /// let call = ContextItem::tool_call("tc1", "invoices.search", json!({ "status": "open" }))
    ///     .at("2026-01-15T10:00:01Z");
    /// assert_eq!(call.text, "invoices.search(status='open')");
    /// let mut line = Vec::new();
    /// write_line(&mut line, &call)?;
    /// assert_eq!(
    ///     String::from_utf8_lossy(&line),
    ///     concat!(
    ///         r#"{"id":"tc1","type":"tool_call","text":"invoices.search(status='open')","#,
    ///         r#""tool_name":"invoices.search","args":{"status":"open"},"timestamp":"2026-01-15T10:00:01Z"}"#,
    ///         "\n",
    ///     ),
    /// );
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn tool_call(id: impl Into<String>, tool_name: &str, args: Value) -> Self {
        let shown = match &args {
            Value::Null => String::new(),
            Value::Object(args) => {
                let shown: Vec<String> =
                    args.iter().map(|(key, it)| format!("{key}={}", pytext::repr(it))).collect();
                shown.join(", ")
            }
            other => pytext::repr(other),
        };
        let text = format!("{tool_name}({shown})");
        let mut item = Self::new(id.into(), ItemKind::ToolCall, text);
        item.metadata.insert("tool_name".to_owned(), tool_name.into());
        item.metadata.insert("args".to_owned(), args);
        item
    }

    /// What came of a call.
    pub fn tool_result(
        id: impl Into<String>,
        call_id: impl Into<String>,
        text: impl Into<String>,
    ) -> Self {
        let item = Self::new(id.into(), ItemKind::ToolResult, text.into());
        Self { parent_id: Some(call_id.into()), ..item }
    }

    /// The same, at a moment, such as `2026-01-15T10:00:01Z`.
    #[must_use]
    pub fn at(mut self, timestamp: impl Into<String>) -> Self {
        self.metadata.insert("timestamp".to_owned(), timestamp.into().into());
        self
    }
}

/// An item as it stands in a file.
#[derive(Serialize)]
struct SessionLine<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: ItemKind,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_estimate: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sensitivity: Option<Sensitivity>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_ref: Option<&'a ArtifactRef>,
    #[serde(flatten)]
    beside: Map<String, Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
}

/// Writes an item as one line of a session, from which [`read_session`] reads the same item.
pub fn write_line(to: &mut impl Write, item: &ContextItem) -> io::Result<()> {
    let (beside, metadata) =
        item.metadata.clone().into_iter().partition(|(key, _)| BESIDE.contains(&key.as_str()));
    let line = SessionLine {
        id: &item.id,
        kind: item.kind,
        text: &item.text,
        parent_id: item.parent_id.as_deref(),
        token_estimate: Some(item.token_estimate).filter(|it| *it != 0),
        sensitivity: Some(item.sensitivity).filter(|it| *it != Sensitivity::Public),
        artifact_ref: item.artifact_ref.as_ref(),
        beside,
        metadata,
    };
    let mut line = serde_json::to_string(&line)?;
    // Some are line ends for others who read such files, and some are orders to a terminal.
    let odd = |it: char| matches!(it, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}');
    if line.contains(odd) {
        let mut plain = String::with_capacity(line.len());
        for letter in line.chars() {
            match odd(letter) {
                true => plain.push_str(&format!("\\u{:04x}", u32::from(letter))),
                false => plain.push(letter),
            }
        }
        line = plain;
    }
    line.push('\n');
    to.write_all(line.as_bytes())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn read(text: impl AsRef<[u8]>) -> Result<Vec<ContextItem>, SessionError> {
        read_session(text.as_ref(), &SessionLimits::default())
    }

    fn one(line: &str) -> ContextItem {
        let mut items = read(line).unwrap();
        assert_eq!(items.len(), 1);
        items.remove(0)
    }

    #[track_caller]
    fn check_error(text: impl AsRef<[u8]>, expected: &str) {
        assert_eq!(read(text).unwrap_err().to_string(), expected);
    }

    #[test]
    fn labels_references_and_unknown_members_survive() {
        let item = one(concat!(
            r#"{"id":"a","type":"retrieved_doc","text":"x","sensitivity":"internal","artifact_ref":{"handle":"h"},"#,
            r#""timestamp":"t","extra":null,"metadata":{"k":1,"extra":2}}"#
        ));
        assert_eq!((item.kind, item.sensitivity), (ItemKind::RetrievedDoc, Sensitivity::Internal));
        assert_eq!(item.artifact_ref.unwrap().handle, "h");
        assert_eq!(Value::Object(item.metadata), json!({ "k": 1, "extra": 2, "timestamp": "t" }));
    }

    #[test]
    fn lines_may_end_in_many_ways() {
        let ids = |text: &str| -> Vec<String> {
            read(text).unwrap().into_iter().map(|it| it.id).collect()
        };
        assert_eq!(
            ids("\u{feff}{}\r\n{}\r{}\n\n\u{c}{}"),
            ["mcp-line-1", "mcp-line-2", "mcp-line-3", "mcp-line-6"]
        );
        assert_eq!(ids("\n \n{}\u{2028}\u{85}{}"), ["mcp-line-1", "mcp-line-3"]);
        assert_eq!(one("{\"text\":\"a\u{2028}b\"}").text, "a\u{2028}b");
    }

    #[test]
    fn faults_name_their_line() {
        check_error("{}\n\nnope", "line 3 is not JSON");
        check_error("{}\n\u{feff}{}", "line 2 is not JSON");
        check_error("\n[1]", "line 2 is not an object");
        check_error(b"{}\n\xff", "line 2 is not UTF-8");
        check_error(r#"{"type":[]}"#, "line 1: `type` must be the name of a kind");
        check_error(r#"{"metadata":null}"#, "line 1: `metadata` must be an object");
        check_error(
            r#"{"artifact_ref":7}"#,
            "line 1: `artifact_ref` must be an object with a `handle`",
        );
        check_error(
            r#"{"sensitivity":"Secret"}"#,
            "line 1: `sensitivity` must be `public`, `internal`, `confidential` or `restricted`",
        );
        for count in ["null", "\"x\"", "\"\"", "[]", "1e30", "99999999999999999999", "\"1.5\""] {
            check_error(
                format!(r#"{{"token_estimate":{count}}}"#),
                "line 1: `token_estimate` must be a number of tokens",
            );
        }
        check_error(
            format!("{}{}", "[".repeat(200_000), "]".repeat(200_000)),
            "line 1 is not JSON",
        );
        for path in ["no/such/file", "src"] {
            let error = load_mcp_session_jsonl(path).unwrap_err();
            assert_eq!(error.to_string(), format!("cannot read the session `{path}`"));
        }
    }

    #[test]
    fn counts_are_read_as_python_reads_them() {
        for (json, count) in [
            ("12", 12),
            ("\" 1_2 \"", 12),
            ("1.9", 1),
            ("-3", 0),
            ("-0.5", 0),
            ("true", 1),
            ("1e3", 1000),
            ("\"+7\"", 7),
        ] {
            assert_eq!(
                one(&format!(r#"{{"token_estimate":{json}}}"#)).token_estimate,
                count,
                "{json}"
            );
        }
    }

    #[test]
    fn what_is_too_long_is_not_read() {
        let limits = SessionLimits { line_bytes: 10, bytes: 25, items: 3 };
        let error = |text: &str| read_session(text.as_bytes(), &limits).unwrap_err().to_string();
        assert_eq!(error("{}\n{\"id\":\"long\"}"), "line 2 is longer than 10 bytes");
        assert_eq!(
            error("{}\n{}\n{}\n{}"),
            "the session is longer than 25 bytes or 3 items at line 4"
        );
        assert_eq!(
            error(&"         \n".repeat(3)),
            "the session is longer than 25 bytes or 3 items at line 3"
        );
        assert_eq!(read_session("{}\n{}\n{}\n".as_bytes(), &limits).unwrap().len(), 3);
    }

    fn any_item() -> impl Strategy<Value = ContextItem> {
        let reference =
            ("\\PC*", "[a-z/]*", any::<u64>(), "\\PC*", prop::option::of("[a-f0-9]{8}"));
        let fields = (any::<String>(), 0..9_usize, any::<String>(), 0..=u64::MAX, 0..4_usize);
        let metadata = prop::collection::vec(
            (
                prop_oneof![
                    "\\PC{0,5}",
                    Just("args".to_owned()),
                    Just("id".to_owned()),
                    Just("timestamp".to_owned())
                ],
                any::<Option<f32>>(),
            ),
            0..5,
        );
        (fields, metadata, prop::option::of(any::<String>()), prop::option::of(reference)).prop_map(
            |((id, kind, text, token_estimate, label), metadata, parent_id, reference)| {
                let kind = [
                    "user_turn",
                    "agent_msg",
                    "tool_call",
                    "tool_result",
                    "doc_snippet",
                    "retrieved_doc",
                    "memory_fact",
                    "plan_state",
                    "policy",
                ][kind];
                let label = ["public", "internal", "confidential", "restricted"][label];
                ContextItem {
                    id,
                    kind: serde_json::from_value(kind.into()).unwrap(),
                    text,
                    token_estimate,
                    sensitivity: serde_json::from_value(label.into()).unwrap(),
                    metadata: metadata
                        .into_iter()
                        .map(|(key, value)| (key, json!(value)))
                        .collect(),
                    parent_id,
                    artifact_ref: reference.map(
                        |(handle, media_type, size_bytes, label, content_hash)| ArtifactRef {
                            handle,
                            media_type,
                            size_bytes,
                            label,
                            content_hash,
                        },
                    ),
                }
            },
        )
    }

    #[test]
    fn a_line_is_a_line_for_others_too() {
        let mut line = Vec::new();
        let text = "a\nb\rc\u{b}d\u{c}e\u{1c}f\u{85}g\u{2028}h\u{2029}i";
        write_line(&mut line, &ContextItem::tool_result("r", "c", text)).unwrap();
        assert_eq!(one(std::str::from_utf8(&line).unwrap()).text, text);
        let line = String::from_utf8(line).unwrap();
        assert_eq!(line.find(ends_line), Some(line.len() - 1));
    }

    proptest! {
        #[test]
        fn what_was_written_is_what_is_read(items in prop::collection::vec(any_item(), 0..4)) {
            let mut file = Vec::new();
            for item in &items {
                write_line(&mut file, item).unwrap();
            }
            prop_assert_eq!(read(&file).unwrap(), items.clone());
            // Also for a reader that ends lines wherever Python does.
            let lines = String::from_utf8(file).unwrap();
            prop_assert_eq!(lines.split_terminator(ends_line).count(), items.len());
        }
    }
}
