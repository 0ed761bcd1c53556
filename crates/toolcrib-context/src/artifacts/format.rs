//! What some content is: JSON, JSON lines, a table in CSV, plain text, or none of these.
//!
//! Servers often send JSON as a text of type `text/plain`, so the first bytes are asked as well as the name.

use std::io::{self, Read, SeekFrom};

use super::{
    Content,
    json::{JsonError, Keep, Scanner},
};

/// How much is looked at.
const LOOK: usize = 64 * 1024;

/// How many rows have to agree.
const ROWS: usize = 20;

/// How content is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Json,
    JsonLines,
    /// With this byte between the cells.
    Table(u8),
    Text,
    Binary,
}

impl Format {
    /// By its name, where that says it, else by its first bytes. The reader may stand anywhere afterwards.
    pub(super) fn of(content: &mut dyn Content, media_type: &str) -> io::Result<Self> {
        let name = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        match name.as_str() {
            "application/x-ndjson"
            | "application/jsonl"
            | "application/json-lines"
            | "application/jsonlines"
            | "application/x-jsonlines" => return Ok(Self::JsonLines),
            "text/tab-separated-values" => return Ok(Self::Table(b'\t')),
            _ => {}
        }
        let mut first = Vec::with_capacity(LOOK);
        content.seek(SeekFrom::Start(0))?;
        content.take(LOOK as u64).read_to_end(&mut first)?;
        let more = first.len() == LOOK;
        if name == "application/json" || name.ends_with("+json") {
            return Ok(json(&first, more).unwrap_or(Self::Json));
        }
        if name == "text/csv" {
            return Ok(Self::Table(delimiter(&first, more).unwrap_or(b',')));
        }
        if !is_text(&first, more) {
            return Ok(Self::Binary);
        }
        Ok(json(&first, more)
            .or_else(|| delimiter(&first, more).map(Self::Table))
            .unwrap_or(Self::Text))
    }

    /// What content of that kind is called where nobody has named it well.
    pub(super) fn media_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::JsonLines => "application/x-ndjson",
            Self::Table(b'\t') => "text/tab-separated-values",
            Self::Table(_) => "text/csv",
            Self::Text => "text/plain",
            Self::Binary => "application/octet-stream",
        }
    }

    /// As people call it.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Json => "it is JSON",
            Self::JsonLines => "it is JSON lines",
            Self::Table(_) => "it is a table in CSV",
            Self::Text => "it is plain text",
            Self::Binary => "it is not text",
        }
    }
}

/// Whether content is text to a reader: by its name, where that says it, else by its first bytes. What has another
/// name is text only if nothing is lost by that.
pub(super) fn reads_as_text(content: &mut dyn Content, media_type: &str) -> io::Result<bool> {
    if is_named_text(media_type) {
        return Ok(true);
    }
    let mut first = Vec::with_capacity(LOOK);
    content.seek(SeekFrom::Start(0))?;
    content.take(LOOK as u64).read_to_end(&mut first)?;
    let more = first.len() == LOOK;
    if media_type.is_empty() {
        return Ok(is_text(&first, more));
    }
    let whole = match std::str::from_utf8(&first) {
        Ok(_) => true,
        Err(error) => more && error.error_len().is_none(),
    };
    Ok(whole && memchr::memchr(0, &first).is_none())
}

/// Whether a name says that it is text.
pub(super) fn is_named_text(media_type: &str) -> bool {
    let name = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let plain = [
        "json",
        "xml",
        "x-ndjson",
        "jsonl",
        "json-lines",
        "jsonlines",
        "x-jsonlines",
        "yaml",
        "x-yaml",
        "toml",
        "javascript",
        "ecmascript",
        "sql",
        "x-sh",
        "graphql",
    ];
    name.starts_with("text/")
        || name.ends_with("+json")
        || name.ends_with("+xml")
        || name.ends_with("+yaml")
        || name.strip_prefix("application/").is_some_and(|it| plain.contains(&it))
}

/// Whether these bytes begin a text.
fn is_text(first: &[u8], more: bool) -> bool {
    if memchr::memchr(0, first).is_some() {
        return false;
    }
    match std::str::from_utf8(first) {
        Ok(_) => true,
        Err(error) if more && error.error_len().is_none() => true,
        // A stray byte in a long text is no reason not to show it.
        Err(_) => {
            let broken = first.utf8_chunks().filter(|it| !it.invalid().is_empty()).count();
            broken * 100 < first.len()
        }
    }
}

/// Whether these bytes begin a document of JSON, or several.
fn json(first: &[u8], more: bool) -> Option<Format> {
    let mut reader = first;
    let mut scanner = Scanner::new(&mut reader, 0);
    scanner.skip_mark().ok()?;
    if !matches!(scanner.peek(&mut Keep::nothing()), Ok(Some(b'{' | b'['))) {
        return None;
    }
    match scanner.value(&mut Keep::nothing()) {
        Ok(_) => {}
        // It does not end within what was looked at.
        Err(JsonError::Syntax { at, .. }) if more && first.len() as u64 <= at + 8 => {
            return Some(Format::Json);
        }
        Err(_) => return None,
    }
    let mut between = Keep::up_to(16);
    match scanner.peek(&mut between) {
        Ok(None) => Some(Format::Json),
        Ok(Some(b'{' | b'[')) if between.bytes.contains(&b'\n') => Some(Format::JsonLines),
        _ => None,
    }
}

/// What stands between the cells of a table: it is in every row, and in all as often.
fn delimiter(first: &[u8], more: bool) -> Option<u8> {
    let mut candidates = [b',', b'\t', b';', b'|'].into_iter();
    candidates.find(|delimiter| {
        let mut rest = first;
        let mut widths = Vec::new();
        while !rest.is_empty() && widths.len() < ROWS {
            let length = super::table::record_length(rest, *delimiter);
            // The last one may be cut.
            if more && length == rest.len() {
                break;
            }
            let record = rest[..length].trim_ascii_end();
            if !record.is_empty() {
                widths.push(super::table::cells(record, *delimiter).count());
            }
            rest = &rest[length..];
        }
        2 <= widths.len() && 2 <= widths[0] && widths.iter().all(|it| *it == widths[0])
    })
}
