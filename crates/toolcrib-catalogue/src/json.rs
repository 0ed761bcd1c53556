//! One JSON value, kept as the text it came in.
//!
//! A gateway hands on what it was given: numbers of any length, unknown fields, the order of keys.
//! So payloads stay text, share one buffer, and are read only where somebody looks inside.

use std::{
    fmt,
    hash::{Hash, Hasher},
    io,
    sync::Arc,
};

use bytes::Bytes;
use serde::{Deserialize, Serialize, Serializer, de::DeserializeOwned};
use serde_json::value::RawValue;

use crate::aside::{Aside, inflate, write_part};

/// The text of one JSON value. Cloning and slicing share the buffer.
///
/// The text of a very large result may be without some of its parts; see [`Json::aside`].
// Invariant: valid JSON without surrounding white space, checked by whoever made it.
#[derive(Clone)]
// What was put aside is rare, and takes one word of every value.
pub struct Json(Bytes, Option<Box<Arc<dyn Aside>>>);

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
        Ok(Self(text.slice_ref(raw.get().as_bytes()), None))
    }

    /// Takes text that a frame reader has scanned already, so that nothing is read twice.
    pub fn from_scanned(text: Bytes) -> Self {
        Self(text, None)
    }

    /// The JSON text of `value`.
    pub fn of(value: &impl Serialize) -> Result<Self, serde_json::Error> {
        serde_json::to_vec(value).map(|text| Self(text.into(), None))
    }

    /// `{}`.
    pub fn empty_object() -> Self {
        Self(Bytes::from_static(b"{}"), None)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or("null")
    }

    /// The text, as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// What was put aside of this value; the text is without it. Only whoever said so in
    /// [`crate::CallContext::takes_aside`] ever gets such a value.
    pub fn aside(&self) -> Option<&Arc<dyn Aside>> {
        self.1.as_deref()
    }

    /// The value of which this text is what is left, and `aside` the rest.
    #[must_use]
    pub fn with_aside(self, aside: Arc<dyn Aside>) -> Self {
        Self(self.0, Some(Box::new(aside)))
    }

    /// The value whole, if its text is then no longer than `limit`
    /// ([`io::ErrorKind::FileTooLarge`] where it is). Reads what was put aside, which may take a while.
    pub fn inflate(&self, limit: usize) -> io::Result<Self> {
        match &self.1 {
            Some(aside) => inflate(self, &***aside, limit),
            None => Ok(self.clone()),
        }
    }

    /// Writes the text of one part of the `content` of this result, counted from 0, with everything that was
    /// put aside of it in its place, to the byte ([`io::ErrorKind::NotFound`] where there is no such part).
    /// Never holds more than a small piece of what was put aside, so a part may be of any size.
    pub fn write_part(&self, number: usize, out: &mut dyn io::Write) -> io::Result<()> {
        write_part(self, number, out)
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
        Self(self.0.slice_ref(part.get().as_bytes()), None)
    }
}

/// Equal texts, and the same parts put aside, if any: those are not read for it.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        let same_aside = match (&self.1, &other.1) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        };
        same_aside && self.0 == other.0
    }
}

impl Eq for Json {}

impl Hash for Json {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())?;
        match &self.1 {
            Some(aside) => write!(f, " and {} parts aside", aside.parts().len()),
            None => Ok(()),
        }
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
