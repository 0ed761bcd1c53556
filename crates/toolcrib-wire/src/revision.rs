//! What the protocol's revisions mean on the wire.
//!
//! Two eras: up to 2025-11-25 a connection begins with `initialize` and is a session; from
//! 2026-07-28 on there is no handshake, and every request says in `_meta` who asks and in which
//! revision.

use std::borrow::Cow;

use bytes::Bytes;

use crate::{
    frame::push_string,
    json::{self, Walk},
};

/// A revision of the protocol that we speak.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05: the first; HTTP with server-sent events.
    V2024_11_05,
    /// 2025-03-26: streamable HTTP, batches.
    V2025_03_26,
    /// 2025-06-18: structured output, no batches.
    V2025_06_18,
    /// 2025-11-25: the last with a handshake.
    V2025_11_25,
    /// 2026-07-28: stateless.
    V2026_07_28,
}

/// Whether a connection begins with a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// It does.
    Legacy,
    /// It does not.
    Modern,
}

/// Who we say that we are.
#[derive(Debug, Clone)]
pub struct Identity {
    /// A name.
    pub name: String,
    /// A version.
    pub version: String,
}

impl Revision {
    /// All of them, oldest first.
    pub const ALL: [Self; 5] = [
        Self::V2024_11_05,
        Self::V2025_03_26,
        Self::V2025_06_18,
        Self::V2025_11_25,
        Self::V2026_07_28,
    ];

    /// What we offer in a handshake.
    pub const LAST_LEGACY: Self = Self::V2025_11_25;

    /// The text on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision with this text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.as_str() == text)
    }

    /// Its era.
    pub fn era(self) -> Era {
        if self == Self::V2026_07_28 { Era::Modern } else { Era::Legacy }
    }
}

impl std::fmt::Display for Revision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The key of `_meta` that says which revision a request is in.
pub const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// The key of `_meta` that says who asks.
pub const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
/// The key of `_meta` that says what the asker can do.
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// The key of a notification's `_meta` that says which subscription it belongs to.
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";
/// The key of `_meta` that says which log messages the asker wants.
pub const META_LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// The key of a result's `_meta` that says who answered.
pub const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";

impl Identity {
    pub(crate) fn json(&self) -> Bytes {
        let mut text = br#"{"name":"#.to_vec();
        push_string(&mut text, &self.name);
        text.extend_from_slice(br#","version":"#);
        push_string(&mut text, &self.version);
        text.push(b'}');
        text.into()
    }

    /// The members of `_meta` that every modern request carries.
    pub(crate) fn modern_meta(&self) -> Vec<(&'static str, Bytes)> {
        let mut version = Vec::new();
        push_string(&mut version, &Revision::V2026_07_28.as_str());
        vec![
            (META_VERSION, version.into()),
            (META_CLIENT, self.json()),
            (META_CAPABILITIES, Bytes::from_static(b"{}")),
        ]
    }
}

/// `params` with these members in its `_meta`. A member that is there already stays as it is.
pub fn with_meta<'a>(params: Option<&'a [u8]>, extra: &[(&str, Bytes)]) -> Cow<'a, [u8]> {
    let params = params.filter(|it| it.first() == Some(&b'{')).unwrap_or(b"{}");
    let old = json::member(params, "_meta");
    let old_meta = old.clone().map(|range| &params[range]).filter(|it| it.first() == Some(&b'{'));
    let old_meta = old_meta.unwrap_or(b"{}");
    let is_missing = |key: &str| !Walk::new(old_meta).any(|(it, _)| it.says(key));
    // Nearly always all are there, in this order, and are found on one way.
    let mut wanted = extra.iter().peekable();
    for (key, _) in Walk::new(old_meta) {
        wanted.next_if(|(it, _)| key.says(it));
    }
    if wanted.all(|(key, _)| !is_missing(key)) {
        return Cow::Borrowed(params);
    }
    let mut meta = Vec::with_capacity(old_meta.len() + 256);
    meta.extend_from_slice(&old_meta[..old_meta.len() - 1]);
    let mut empty = meta[1..].trim_ascii().is_empty();
    for (key, value) in extra.iter().filter(|(key, _)| is_missing(key)) {
        if !empty {
            meta.push(b',');
        }
        empty = false;
        push_string(&mut meta, key);
        meta.push(b':');
        meta.extend_from_slice(value);
    }
    meta.push(b'}');
    Cow::Owned(match old {
        Some(range) => [&params[..range.start], &meta, &params[range.end..]].concat(),
        None => {
            let rest = params[1..].trim_ascii_start();
            let comma: &[u8] = if rest == b"}" { b"" } else { b"," };
            [br#"{"_meta":"#, meta.as_slice(), comma, rest].concat()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(params: Option<&str>, expected: &str) {
        let extra = [("a", Bytes::from_static(b"1")), ("b", Bytes::from_static(b"2"))];
        let found = with_meta(params.map(str::as_bytes), &extra);
        assert_eq!(std::str::from_utf8(&found).unwrap(), expected);
    }

    #[test]
    fn meta_is_added_and_what_was_there_stays_to_the_letter() {
        check(None, r#"{"_meta":{"a":1,"b":2}}"#);
        check(Some("{ }"), r#"{"_meta":{"a":1,"b":2}}"#);
        check(Some(r#"{"n": 1.0}"#), r#"{"_meta":{"a":1,"b":2},"n": 1.0}"#);
        check(
            Some(r#"{"n":1e400,"_meta": {"b": 7 },"z":0}"#),
            r#"{"n":1e400,"_meta": {"b": 7 ,"a":1},"z":0}"#,
        );
        check(Some(r#"{"_meta":{}}"#), r#"{"_meta":{"a":1,"b":2}}"#);
    }

    #[test]
    fn revisions_have_one_text_each() {
        for revision in Revision::ALL {
            assert_eq!(Revision::parse(revision.as_str()), Some(revision));
        }
        assert_eq!(Revision::parse("2026-01-01"), None);
    }
}
