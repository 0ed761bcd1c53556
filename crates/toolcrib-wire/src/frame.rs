//! One JSON-RPC message: an envelope that is read, and a payload that is not.
//!
//! A frame is scanned once, from end to end ([`crate::json`]). Its payloads are slices of the buffer
//! it came in, and go on as they are.

use std::{borrow::Cow, fmt};

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use crate::json::{self, ScanError};

/// A message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Somebody wants an answer.
    Request {
        /// Which one.
        id: Id,
        /// What is asked.
        method: String,
        /// With what; an object.
        params: Option<Bytes>,
    },
    /// Somebody tells something.
    Notification {
        /// What is told.
        method: String,
        /// The rest of it.
        params: Option<Bytes>,
    },
    /// An answer.
    Response {
        /// To which request; none where the asked could not read the question.
        id: Option<Id>,
        /// The result, or the error object.
        answer: Result<Bytes, RpcError>,
    },
}

/// The id of a request, as the JSON text it came in: `7`, or `"a"`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Id(Bytes);

/// An error object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RpcError {
    /// The code.
    pub code: i64,
    /// The text.
    pub message: String,
    /// `data`, as it came.
    pub data: Option<Bytes>,
}

/// Why some bytes are not a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct FrameError {
    /// The id, where the damage left it readable.
    pub id: Option<Id>,
    /// What is wrong.
    pub fault: FrameFault,
}

/// What can be wrong with a frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// Not JSON that everybody reads alike.
    #[error("not a JSON message: {0}")]
    Json(#[from] ScanError),
    /// JSON, but no JSON-RPC 2.0 message.
    #[error("not a JSON-RPC 2.0 message: {0}")]
    Envelope(&'static str),
}

/// The longest id we keep.
const MAX_ID: usize = 256;

impl Frame {
    /// Reads one message.
    pub fn read(text: &Bytes) -> Result<Self, FrameError> {
        let mut envelope = Envelope::default();
        let object = text.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'{');
        let scanned = json::scan(text, |key, range| {
            let value = text.slice(range);
            match &*key {
                "jsonrpc" => envelope.version = Some(value),
                "id" => envelope.id = Some(value),
                "method" => envelope.method = Some(value),
                "params" => envelope.params = Some(value),
                "result" => envelope.result = Some(value),
                "error" => envelope.error = Some(value),
                _ => {}
            }
        });
        let id = envelope.id.as_ref().and_then(|it| Id::read(it));
        if let Err(error) = scanned {
            return Err(FrameError { id, fault: error.into() });
        }
        if !object {
            let fault = FrameFault::Envelope("it must be an object");
            return Err(FrameError { id: None, fault });
        }
        envelope.into_frame(id.clone()).map_err(|what| {
            let fault = FrameFault::Envelope(what);
            FrameError { id, fault }
        })
    }
}

#[derive(Default)]
struct Envelope {
    version: Option<Bytes>,
    id: Option<Bytes>,
    method: Option<Bytes>,
    params: Option<Bytes>,
    result: Option<Bytes>,
    error: Option<Bytes>,
}

impl Envelope {
    fn into_frame(self, id: Option<Id>) -> Result<Frame, &'static str> {
        if self.version.as_deref() != Some(br#""2.0""#) {
            return Err("`jsonrpc` must be \"2.0\"");
        }
        let params = self.params.filter(|it| &**it != b"null");
        let Some(method) = self.method else {
            let answer = match (self.result, self.error) {
                (Some(result), None) => Ok(result),
                (None, Some(error)) => Err(RpcError::read(&error)),
                (None, None) => return Err("it has neither `method` nor `result` nor `error`"),
                (Some(_), Some(_)) => return Err("it has both `result` and `error`"),
            };
            return Ok(Frame::Response { id, answer });
        };
        let Some(method) = json::string(&method).map(Cow::into_owned) else {
            return Err("`method` must be a string");
        };
        if params.as_ref().is_some_and(|it| !matches!(it.first(), Some(b'{' | b'['))) {
            return Err("`params` must be an object");
        }
        match (self.id, id) {
            (None, _) => Ok(Frame::Notification { method, params }),
            (Some(_), Some(id)) => Ok(Frame::Request { id, method, params }),
            (Some(_), None) => Err("`id` must be a string or a whole number"),
        }
    }
}

impl Id {
    /// An id of ours.
    pub fn number(n: u64) -> Self {
        Self(n.to_string().into())
    }

    /// The number, if it is one of ours.
    pub fn as_number(&self) -> Option<u64> {
        std::str::from_utf8(&self.0).ok()?.parse().ok()
    }

    /// The JSON text.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The id that this JSON text is, if it is one.
    pub fn read(value: &[u8]) -> Option<Self> {
        let whole = |rest: &[u8]| !rest.is_empty() && rest.iter().all(u8::is_ascii_digit);
        let legal = match value.first()? {
            b'"' => true,
            b'-' => whole(&value[1..]),
            _ => whole(value),
        };
        // A copy: an id must not keep the whole message in memory.
        (legal && value.len() <= MAX_ID).then(|| Self(Bytes::copy_from_slice(value)))
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl RpcError {
    /// Reads an error object. One that is malformed keeps what can be read of it.
    fn read(text: &Bytes) -> Self {
        #[derive(Deserialize)]
        struct Written<'a> {
            #[serde(borrow)]
            code: Option<&'a serde_json::value::RawValue>,
            #[serde(borrow)]
            message: Option<&'a serde_json::value::RawValue>,
            #[serde(borrow)]
            data: Option<&'a serde_json::value::RawValue>,
        }
        let Ok(written) = serde_json::from_slice::<Written<'_>>(text) else {
            let message = "the error is not an object".to_owned();
            return Self { code: INTERNAL_ERROR, message, data: None };
        };
        let code = written.code.and_then(|it| serde_json::from_str(it.get()).ok());
        let message = written.message.and_then(|it| serde_json::from_str(it.get()).ok());
        let message = message.filter(|it: &String| !it.is_empty());
        Self {
            code: code.unwrap_or(INTERNAL_ERROR),
            message: message.unwrap_or_else(|| "error without a message".to_owned()),
            data: written.data.map(|it| text.slice_ref(it.get().as_bytes())),
        }
    }
}

/// The server itself stumbled.
pub const INTERNAL_ERROR: i64 = -32603;

/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32601;

/// The text of a request.
pub fn request(id: &Id, method: &str, params: Option<&[u8]>) -> Bytes {
    message(Some(id), method, params)
}

/// The text of a notification.
pub fn notification(method: &str, params: Option<&[u8]>) -> Bytes {
    message(None, method, params)
}

/// The text of an answer.
pub fn response(id: &Id, answer: Result<&[u8], &RpcError>) -> Bytes {
    let mut text = Vec::with_capacity(64 + answer.map_or(0, <[u8]>::len));
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    text.extend_from_slice(id.as_bytes());
    match answer {
        Ok(result) => {
            text.extend_from_slice(br#","result":"#);
            text.extend_from_slice(result);
        }
        Err(error) => {
            text.extend_from_slice(br#","error":{"code":"#);
            text.extend_from_slice(error.code.to_string().as_bytes());
            text.extend_from_slice(br#","message":"#);
            push_string(&mut text, &error.message);
            if let Some(data) = &error.data {
                text.extend_from_slice(br#","data":"#);
                text.extend_from_slice(data);
            }
            text.push(b'}');
        }
    }
    text.push(b'}');
    text.into()
}

/// The text of an answer, in pieces: a result that is long need not be copied.
pub fn response_pieces(id: &Id, result: Bytes) -> [Bytes; 3] {
    let begin = [br#"{"jsonrpc":"2.0","id":"#, id.as_bytes(), br#","result":"#].concat();
    [begin.into(), result, Bytes::from_static(b"}")]
}

/// A message on one line, as streams of lines and of events need it. Outside strings a line end is mere
/// white space, and inside them it cannot stand, so nothing is lost; but whoever could put one there could
/// put a message of his own between the lines.
pub fn one_line(text: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &text).is_none() {
        return text;
    }
    let flat = text.iter().map(|&b| if matches!(b, b'\n' | b'\r') { b' ' } else { b });
    flat.collect()
}

fn message(id: Option<&Id>, method: &str, params: Option<&[u8]>) -> Bytes {
    let mut text = Vec::with_capacity(64 + method.len() + params.map_or(0, <[u8]>::len));
    text.extend_from_slice(br#"{"jsonrpc":"2.0","#);
    if let Some(id) = id {
        text.extend_from_slice(br#""id":"#);
        text.extend_from_slice(id.as_bytes());
        text.push(b',');
    }
    text.extend_from_slice(br#""method":"#);
    push_name(&mut text, method);
    if let Some(params) = params {
        text.extend_from_slice(br#","params":"#);
        text.extend_from_slice(params);
    }
    text.push(b'}');
    text.into()
}

/// Appends a name as JSON: nearly always letters, of which none has to be written otherwise.
pub fn push_name(text: &mut Vec<u8>, name: &str) {
    if name.bytes().all(|it| matches!(it, b' '..=b'~') && !matches!(it, b'"' | b'\\')) {
        text.push(b'"');
        text.extend_from_slice(name.as_bytes());
        text.push(b'"');
    } else {
        push_string(text, name);
    }
}

/// Appends `value` as JSON. Strings and our own structs cannot fail to serialise.
pub fn push_string(text: &mut Vec<u8>, value: &(impl Serialize + ?Sized)) {
    if serde_json::to_writer(&mut *text, value).is_err() {
        text.extend_from_slice(b"null");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(text: &str) -> Result<Frame, FrameError> {
        Frame::read(&Bytes::from(text.to_owned()))
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match read(text) {
            Ok(Frame::Request { id, method, params }) => {
                format!("request {id} {method} {params:?}")
            }
            Ok(Frame::Notification { method, params }) => {
                format!("notification {method} {params:?}")
            }
            Ok(Frame::Response { id, answer }) => {
                let id = id.map_or("none".to_owned(), |it| it.to_string());
                let answer =
                    answer.map_err(|it| format!("{} {} {:?}", it.code, it.message, it.data));
                format!("response {id} {answer:?}")
            }
            Err(error) => match &error.id {
                Some(id) => format!("id {id}: {error}"),
                None => error.to_string(),
            },
        };
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn a_name_is_written_as_any_string() {
        for name in ["", "tools/call", "a\"b", "a\\", "é\n\u{7f}", " ~"] {
            let [mut short, mut long] = [const { Vec::new() }; 2];
            push_name(&mut short, name);
            push_string(&mut long, name);
            assert_eq!(short, long, "{name:?}");
        }
    }

    #[test]
    fn an_answer_in_pieces_is_the_same() {
        for (id, result) in [("7", "{}"), (r#""a\"b""#, r#"{"content":[ ]}"#)] {
            let id = Id::read(id.as_bytes()).unwrap();
            let pieces = response_pieces(&id, Bytes::from_static(result.as_bytes()));
            assert_eq!(pieces.concat(), response(&id, Ok(result.as_bytes())));
        }
    }

    #[test]
    fn envelopes() {
        check(
            r#"{"jsonrpc":"2.0","id":1,"method":"a","params":{"n": 1.0}}"#,
            r#"request 1 a Some(b"{\"n\": 1.0}")"#,
        );
        check(r#"{"jsonrpc":"2.0","method":"a","params":null}"#, "notification a None");
        check(r#"{"id":"x","result":{},"jsonrpc":"2.0"}"#, r#"response "x" Ok(b"{}")"#);
        check(
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no","data":[1]}}"#,
            r#"response none Err("-32700 no Some(b\"[1]\")")"#,
        );
        check(
            r#"{"jsonrpc":"2.0","id":3,"error":"broken"}"#,
            r#"response 3 Err("-32603 the error is not an object None")"#,
        );
    }

    #[test]
    fn what_is_no_message() {
        check("[]", "not a JSON-RPC 2.0 message: it must be an object");
        check(r#"{"id":1}"#, "id 1: not a JSON-RPC 2.0 message: `jsonrpc` must be \"2.0\"");
        check(
            r#"{"jsonrpc":"2.0","id":1.5,"method":"a"}"#,
            "not a JSON-RPC 2.0 message: `id` must be a string or a whole number",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":1,"a":2}}"#,
            "id 1: not a JSON message: duplicate key `a` at byte 45",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#,
            "id 1: not a JSON-RPC 2.0 message: it has both `result` and `error`",
        );
        check(
            r#"{"jsonrpc":"2.0","id":1}"#,
            "id 1: not a JSON-RPC 2.0 message: it has neither `method` nor `result` nor `error`",
        );
    }

    #[test]
    fn a_message_on_one_line_is_the_same_message() {
        let text = "{\"a\":\n[1,\r\n\"x\\n\"]}";
        assert_eq!(&*one_line(text.into()), b"{\"a\": [1,  \"x\\n\"]}");
    }

    #[test]
    fn what_is_written_can_be_read() {
        let id = Id::number(9);
        let text = request(&id, "a/\"b\"", Some(br#"{"x":1}"#));
        assert!(matches!(Frame::read(&text), Ok(Frame::Request { id: it, .. }) if it == id));
        let error = RpcError { code: -1, message: "é\n".into(), data: Some("7".into()) };
        let text = response(&id, Err(&error));
        let expected = Frame::Response { id: Some(id), answer: Err(error) };
        assert_eq!(Frame::read(&text), Ok(expected));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(text: Vec<u8>) {
            Frame::read(&text.into()).ok();
        }
    }
}
