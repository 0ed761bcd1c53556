//! An event as it travels: the envelope as payload, and what is ours in headers.

use async_nats::{HeaderMap, jetstream::Message};
use serde_json::value::RawValue;

use super::subject;
use crate::{Draft, Record, rfc3339};

/// JetStream takes one message with this id, for as long as it remembers.
pub(crate) const ID: &str = "Nats-Msg-Id";

/// The stream that we think a subject leads to.
pub(crate) const STREAM: &str = "Nats-Expected-Stream";

/// Of an event: which outbox it comes from, its place there, and when it was appended.
pub(crate) const OUTBOX: &str = "Toolcrib-Outbox";

/// Of what was given up: its place, how often it was delivered, and why.
pub(crate) const DEAD: &str = "Toolcrib-Dead";

/// Why it was given up.
pub(crate) const REASON: &str = "Toolcrib-Reason";

/// Of what is not under its own subject: what it is called, and its id.
pub(crate) const NAME: &str = "Toolcrib-Name";

/// And its id.
pub(crate) const EVENT: &str = "Toolcrib-Id";

/// Of what is delivered again: the place it had first.
pub(crate) const PLACE: &str = "Toolcrib-Place";

/// The headers of an event.
pub(crate) fn headers(stream: &str, origin: u64, record: &Record) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(ID, subject::escape(&record.id));
    headers.insert(STREAM, stream);
    headers.insert(OUTBOX, format!("{origin:016x} {} {}", record.seq, record.at));
    headers
}

/// A header's text.
pub(crate) fn text<'a>(headers: Option<&'a HeaderMap>, name: &str) -> Option<&'a str> {
    headers?.get(name).map(async_nats::HeaderValue::as_str)
}

/// A header's numbers.
pub(crate) fn numbers<const N: usize>(headers: Option<&HeaderMap>, name: &str) -> Option<[u64; N]> {
    let mut parts = text(headers, name)?.split(' ');
    let mut found = [0; N];
    for number in &mut found {
        *number = parts.next()?.parse().ok()?;
    }
    Some(found)
}

/// Which outbox an event comes from, its place there, and when it was appended.
pub(crate) fn outbox(headers: Option<&HeaderMap>) -> Option<(u64, u64, u64)> {
    let (origin, rest) = text(headers, OUTBOX)?.split_once(' ')?;
    let (seq, at) = rest.split_once(' ')?;
    Some((u64::from_str_radix(origin, 16).ok()?, seq.parse().ok()?, at.parse().ok()?))
}

/// A message's place, and whether it is an event: what others put on our subjects is one if it is a
/// CloudEvent of that name.
pub(crate) struct Arrived {
    /// The place of the message itself.
    pub(crate) place: u64,
    /// The place of the event: another where it is delivered again.
    pub(crate) seq: u64,
    /// How often it was delivered, this time counted.
    pub(crate) delivered: u64,
    pub(crate) record: Option<Record>,
}

impl Arrived {
    pub(crate) fn read(message: &Message) -> Option<Self> {
        let info = message.info().ok()?;
        let place = info.stream_sequence;
        let headers = message.headers.as_ref();
        let seq = numbers::<1>(headers, PLACE).map_or(place, |[first]| first);
        let at = u64::try_from(info.published.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
        let name = match text(headers, NAME) {
            Some(name) => subject::unescape(name),
            None => subject::name(&message.subject),
        };
        let record = name.and_then(|name| record(name, seq, at, headers, &message.payload));
        let delivered = u64::try_from(info.delivered).unwrap_or(1);
        Some(Self { place, seq, delivered, record })
    }
}

/// The event that a message holds.
pub(crate) fn record(
    name: String,
    seq: u64,
    published: u64,
    headers: Option<&HeaderMap>,
    payload: &[u8],
) -> Option<Record> {
    let text = std::str::from_utf8(payload).ok()?;
    let id = self::text(headers, EVENT).or_else(|| self::text(headers, ID));
    let id = id.and_then(subject::unescape);
    if let (Some((_, _, at)), Some(id)) = (outbox(headers), &id) {
        let one_line = text.starts_with('{') && !text.contains(['\n', '\r']);
        serde_json::from_str::<&RawValue>(text).ok().filter(|_| one_line)?;
        return Some(Record { seq, name, id: id.clone(), at, text: text.to_owned() });
    }
    let mut draft = Draft::read(text).ok().filter(|it| it.name == name)?;
    // Read twice it must be the same event twice.
    draft.id = draft.id.or(id).or_else(|| Some(format!("nats-{seq}")));
    draft.time = draft.time.or_else(|| Some(rfc3339(published)));
    let event = draft.event().ok()?;
    Some(Record { seq, name, id: event.id, at: published, text: event.text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_comes_back_as_it_was_sent() {
        let mut draft = Draft::new("größe.a", r#"{"n":1.10}"#);
        draft.id = Some(" an id % ".into());
        let event = draft.event().unwrap();
        let sent = Record { seq: 7, name: event.name, id: event.id, at: 5, text: event.text };
        let headers = headers("S", 12, &sent);
        assert_eq!(outbox(Some(&headers)), Some((12, 7, 5)));
        let name = subject::name(&subject::subject(&sent.name)).unwrap();
        let found = record(name, 7, 99, Some(&headers), sent.text.as_bytes());
        assert_eq!(found, Some(sent));
    }

    #[test]
    fn what_others_send_is_an_event_or_nothing() {
        let read = |text: &str| record("a.b".into(), 3, 0, None, text.as_bytes());
        let found = read("{\n\"type\":\"a.b\",\"group\":\"admin\",\"data\":[1]}").unwrap();
        assert_eq!((found.id.as_str(), found.seq), ("nats-3", 3));
        assert!(!found.text.contains('\n') && !found.text.contains("admin"), "{}", found.text);
        assert_eq!(read("{\n\"type\":\"a.b\",\"group\":\"admin\",\"data\":[1]}").unwrap(), found);
        for bad in ["", "hello", "{}", r#"{"type":"c"}"#, r#"{"type":"a.b""#] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(record("a".into(), 1, 0, None, b"\xff"), None);
        let mut forged = HeaderMap::new();
        forged.insert(OUTBOX, "0c 1 1");
        forged.insert(ID, "x");
        assert_eq!(record("a".into(), 1, 0, Some(&forged), b"{}\n{}"), None);
    }
}
