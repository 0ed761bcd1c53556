//! One JSON value, kept as the text it came in.
//!
//! A gateway hands on what it was given: numbers of any length, unknown fields, the order of keys.
//! So payloads stay text, share one buffer, and are read only where somebody looks inside.

use std::fmt;

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;

/// The text of one JSON value. Cloning and slicing share the buffer.
// Invariant: valid JSON without surrounding white space, checked by whoever made it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Bytes);

impl Json {
    /// Checks `text` and keeps it.
    ///
    /// ```
    /// use toolcrib_catalogue::Json;
    ///
    /// let big = Json::parse(r#"{"n": 18446744073709551616}"#)?;
    /// assert_eq!(big.as_str(), r#"{"n": 18446744073709551616}"#);
    /// assert!(Json::parse("{").is_err());
    /// # Ok::<(), serde_json::Error>(())
    /// ```
    pub fn parse(text: impl Into<Bytes>) -> Result<Self, serde_json::Error> {
        let text = text.into();
        let raw: &RawValue = serde_json::from_slice(&text)?;
        Ok(Self(text.slice_ref(raw.get().as_bytes())))
    }

    /// Takes text that a frame reader has scanned already, so that nothing is read twice.
    pub fn from_scanned(text: Bytes) -> Self {
        Self(text)
    }

    /// The JSON text of `value`.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|text| Self(text.into()))
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("null")
    }

    /// The text, as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The buffer itself.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Whether this is an object.
    pub fn is_object(&self) -> bool {
        self.0.first() == Some(&b'{')
    }

    /// Whether this is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == b"null"
    }

    /// Reads the value as a `T`.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0)
    }

    /// Reads the value as a `T` that owns what it has, or `None` where it does not fit.
    pub fn get<T: DeserializeOwned>(&self) -> Option<T> {
        serde_json::from_slice(&self.0).ok()
    }

    /// A part of this value, borrowed while reading it, as a value of its own on the same buffer.
    pub(crate) fn piece(&self, part: &RawValue) -> Self {
        Self(self.0.slice_ref(part.get().as_bytes()))
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = self.read().map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}
