//! What an HTTP message says of itself in its head, by name.
//!
//! A call is asked for a dozen names and carries about as many, so they are looked for one after the other, in the
//! text they came in.

use bytes::Bytes;
use http::HeaderMap;

/// The fields of a head.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    text: Bytes,
    places: Vec<Place>,
}

/// Where a field stands: its name, and its value.
#[derive(Debug, Clone, Copy)]
struct Place {
    name: (u32, u32),
    value: (u32, u32),
}

impl Fields {
    /// Those of a head, which were found in this text.
    pub fn of(text: Bytes, found: &[httparse::Header<'_>]) -> Self {
        let begin = text.as_ptr().addr();
        let place = |part: &[u8]| {
            let at = part.as_ptr().addr().wrapping_sub(begin);
            (u32::try_from(at).unwrap_or(u32::MAX), u32::try_from(part.len()).unwrap_or(u32::MAX))
        };
        let both = |it: &httparse::Header<'_>| Place {
            name: place(it.name.as_bytes()),
            value: place(it.value.trim_ascii()),
        };
        let places = found.iter().map(both).collect();
        Self { text, places }
    }

    /// All values of this name.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &[u8]> {
        let named = |it: &&Place| {
            it.name.1 as usize == name.len()
                && self.part(it.name).eq_ignore_ascii_case(name.as_bytes())
        };
        self.places.iter().filter(named).map(|it| self.part(it.value))
    }

    /// The first value of this name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The first value of this name, if it is plain text.
    pub fn text(&self, name: &str) -> Option<&str> {
        let plain = |it: &&[u8]| it.iter().all(|it| matches!(it, b'\t' | b' '..=b'~'));
        str::from_utf8(self.get(name).filter(plain)?).ok()
    }

    /// Whether the message is of this media type.
    pub fn has_media_type(&self, expected: &str) -> bool {
        let value = self.get("content-type").unwrap_or_default();
        let media_type = value.split(|it| *it == b';').next().unwrap_or_default();
        media_type.trim_ascii().eq_ignore_ascii_case(expected.as_bytes())
    }

    fn part(&self, (at, length): (u32, u32)) -> &[u8] {
        let at = at as usize;
        self.text.get(at..at.saturating_add(length as usize)).unwrap_or_default()
    }
}

impl From<&HeaderMap> for Fields {
    fn from(headers: &HeaderMap) -> Self {
        let mut text = Vec::new();
        let mut add = |part: &[u8]| {
            let place = (text.len() as u32, part.len() as u32);
            text.extend_from_slice(part);
            place
        };
        let places = headers.iter().map(|(name, value)| Place {
            name: add(name.as_str().as_bytes()),
            value: add(value.as_bytes()),
        });
        let places = places.collect();
        Self { text: text.into(), places }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_their_case_and_wherever_they_come_from() {
        let text = Bytes::from_static(
            b"HTTP/1.1 200 OK\r\nA: 1\r\ncontent-TYPE:  Text/Event-Stream ; x\r\na:\r\nB: \xe9\r\n\r\n",
        );
        let mut found = [httparse::EMPTY_HEADER; 8];
        let mut answer = httparse::Response::new(&mut found);
        assert!(answer.parse(&text).unwrap().is_complete());
        let read = Fields::of(text.clone(), answer.headers);
        let mut map = HeaderMap::new();
        for field in answer.headers.iter() {
            let value = http::HeaderValue::from_bytes(field.value).unwrap();
            map.append(http::HeaderName::from_bytes(field.name.as_bytes()).unwrap(), value);
        }
        for fields in [read, Fields::from(&map)] {
            assert_eq!(fields.all("a").collect::<Vec<_>>(), [&b"1"[..], b""]);
            assert_eq!(
                (fields.text("A"), fields.text("b"), fields.get("c")),
                (Some("1"), None, None)
            );
            assert_eq!(fields.get("b"), Some(&b"\xe9"[..]));
            assert!(fields.has_media_type("text/event-stream"));
            assert!(!fields.has_media_type("text/event"));
        }
    }
}
