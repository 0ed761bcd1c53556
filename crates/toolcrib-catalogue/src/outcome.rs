//! What a call gave back.
//!
//! The result stays as it came ([`Outcome::raw`]); its parts are read out of it by type. A part of
//! a type we do not know is kept whole, and nothing is ever turned into debug text.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::Json;

/// The result of a call that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether the tool says that it failed.
    pub is_error: bool,
    /// The parts of `content`, in order.
    pub parts: Vec<Part>,
    /// `structuredContent`, if there is any.
    pub structured: Option<Json>,
    /// The result as it was given.
    pub raw: Json,
}

/// One part of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// The part as it was given.
    pub raw: Json,
}

/// What a part of a result is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartKind {
    /// Text.
    Text(String),
    /// A picture, in base64.
    Image {
        /// The base64 text.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// Sound, in base64.
    Audio {
        /// The base64 text.
        data: String,
        /// Its media type.
        mime_type: String,
    },
    /// A resource that came along.
    Resource {
        /// Where it comes from.
        uri: String,
        /// Its media type.
        mime_type: Option<String>,
        /// Its text, if it is text.
        text: Option<String>,
        /// Its bytes in base64, if it is not.
        blob: Option<String>,
    },
    /// A resource to be read elsewhere.
    ResourceLink {
        /// Where it is.
        uri: String,
        /// What it is called.
        name: Option<String>,
    },
    /// A type this version does not know, or a known one that is malformed.
    Other,
}

/// Why something is not the result of a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OutcomeFault {
    /// Results are objects.
    #[error("the result of a call must be an object")]
    NotAnObject,
    /// `content` is a list.
    #[error("`content` of a result must be a list")]
    Content,
}

#[derive(Deserialize)]
struct Written<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
    #[serde(borrow, rename = "isError")]
    is_error: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum WrittenPart {
    Text {
        text: String,
    },
    #[serde(rename_all = "camelCase")]
    Image {
        data: String,
        mime_type: String,
    },
    #[serde(rename_all = "camelCase")]
    Audio {
        data: String,
        mime_type: String,
    },
    Resource {
        resource: WrittenResource,
    },
    ResourceLink {
        uri: String,
        name: Option<String>,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WrittenResource {
    uri: String,
    mime_type: Option<String>,
    text: Option<String>,
    blob: Option<String>,
}

impl Outcome {
    /// Reads the `result` of a `tools/call`.
    ///
    /// ```
    /// use toolcrib_catalogue::{Json, Outcome};
    ///
    /// let raw = r#"{"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}"#;
    /// let outcome = Outcome::read(Json::parse(raw)?)?;
    /// assert_eq!(outcome.text(), "a\nb");
    /// assert!(!outcome.is_error);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn read(raw: Json) -> Result<Self, OutcomeFault> {
        let written: Written<'_> = raw.read().ok().ok_or(OutcomeFault::NotAnObject)?;
        let content: Vec<&RawValue> = match written.content {
            Some(it) => serde_json::from_str(it.get()).ok().ok_or(OutcomeFault::Content)?,
            None => Vec::new(),
        };
        Ok(Self {
            is_error: written.is_error.is_some_and(|it| it.get() == "true"),
            parts: content.iter().map(|it| Part::read(raw.piece(it))).collect(),
            structured: written.structured.map(|it| raw.piece(it)).filter(|it| !it.is_null()),
            raw,
        })
    }

    /// The texts of the result, joined by line ends: text parts, and text resources that came along.
    /// Pictures, sound and links have no text; see [`Outcome::parts`].
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self.parts.iter().filter_map(Part::text).collect();
        texts.join("\n")
    }
}

impl Part {
    fn read(raw: Json) -> Self {
        let kind = match raw.read() {
            Ok(WrittenPart::Text { text }) => PartKind::Text(text),
            Ok(WrittenPart::Image { data, mime_type }) => PartKind::Image { data, mime_type },
            Ok(WrittenPart::Audio { data, mime_type }) => PartKind::Audio { data, mime_type },
            Ok(WrittenPart::Resource { resource: it }) => PartKind::Resource {
                uri: it.uri,
                mime_type: it.mime_type,
                text: it.text,
                blob: it.blob,
            },
            Ok(WrittenPart::ResourceLink { uri, name }) => PartKind::ResourceLink { uri, name },
            Err(_) => PartKind::Other,
        };
        Self { kind, raw }
    }

    /// The text of the part, if it has one.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            PartKind::Text(text) => Some(text),
            PartKind::Resource { text, .. } => text.as_deref(),
            _ => None,
        }
    }

    /// The bytes of a picture, a sound or a binary resource; `None` where the base64 is bad.
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let data = match &self.kind {
            PartKind::Image { data, .. } | PartKind::Audio { data, .. } => data,
            PartKind::Resource { blob, .. } => blob.as_ref()?,
            _ => return None,
        };
        STANDARD.decode(data).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(raw: &str) -> Outcome {
        Outcome::read(Json::parse(raw.to_owned()).unwrap()).unwrap()
    }

    #[test]
    fn parts_keep_their_type_and_their_unknown_fields() {
        let outcome = read(
            r#"{"content":[
                {"type":"text","text":"a","annotations":{"priority":1.0}},
                {"type":"image","data":"QUJD","mimeType":"image/png","vendor":7},
                {"type":"resource","resource":{"uri":"file:///a","text":"inner"}},
                {"type":"resource","resource":{"uri":"file:///b","blob":"QUJD"}},
                {"type":"resource_link","uri":"file:///c","name":"c"},
                {"type":"hologram","n":18446744073709551616},
                {"type":"text"}
            ]}"#,
        );
        let kinds: Vec<_> = outcome.parts.iter().map(|it| it.kind.clone()).collect();
        insta::assert_debug_snapshot!(kinds);
        assert_eq!(outcome.text(), "a\ninner");
        assert_eq!(outcome.parts[1].bytes().unwrap(), b"ABC");
        assert_eq!(
            outcome.parts[5].raw.as_str(),
            r#"{"type":"hologram","n":18446744073709551616}"#
        );
    }

    #[test]
    fn structured_content_is_kept_to_the_letter() {
        let outcome = read(r#"{"content":[],"structuredContent":{"n":1.10,"k":1e400},"x":1}"#);
        assert_eq!(outcome.structured.unwrap().as_str(), r#"{"n":1.10,"k":1e400}"#);
        assert_eq!(read(r#"{"content":[],"structuredContent":null}"#).structured, None);
    }

    #[test]
    fn what_is_no_result_is_said_to_be_none() {
        let fault = |raw: &str| Outcome::read(Json::parse(raw.to_owned()).unwrap()).unwrap_err();
        assert_eq!(fault("[]"), OutcomeFault::NotAnObject);
        assert_eq!(fault(r#"{"content":"x"}"#), OutcomeFault::Content);
    }
}
