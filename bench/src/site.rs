//! What the server at the end of every way answers, whether it is asked over HTTP or on a pipe.
//!
//! Everything long is prepared: a result of 10 MB and a list of 10,000 tools cost the server no more than
//! handing over a buffer. It believes whatever it is asked: checking is the client's part here, and the
//! gateway's.

use std::{borrow::Cow, collections::BTreeMap, sync::LazyLock};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use toolcrib_wire::{Revision, revision::META_SERVER};

/// The tool that every call is for.
pub(crate) const ECHO: &str = "echo";

/// The tool that toolcrib is told to hide; it comes on top of the others.
pub(crate) const FORBIDDEN: &str = "forbidden";

/// How many tools a server has where nothing else is said.
pub(crate) const FEW: usize = 10;

/// What a result is filled up with, and how long one line of it is.
static FILLER: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(filler()));
const LINE: usize = 50;
const LINES: usize = 200_000;

/// The answers, made beforehand.
#[derive(Debug)]
pub(crate) struct Site {
    discovered: Bytes,
    initialized: Bytes,
    /// By how many tools there are.
    lists: BTreeMap<usize, Bytes>,
}

/// What is to be said.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Nothing: it was a notification.
    Silence,
    /// These, one after the other.
    Message([Bytes; 3]),
    /// The same, and it begins a session.
    Session([Bytes; 3]),
    /// It was no request.
    Unreadable,
}

#[derive(Deserialize)]
struct Asked<'a> {
    /// A notification has none.
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Cow<'a, str>,
    #[serde(borrow)]
    params: Option<Params<'a>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    arguments: Option<Arguments<'a>>,
}

#[derive(Deserialize)]
struct Arguments<'a> {
    /// What to say, as JSON.
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    /// How much is to follow.
    #[serde(default)]
    size: usize,
}

impl Site {
    pub(crate) fn new(sizes: &[usize]) -> Self {
        let server = json!({ "name": "bench", "version": "1" });
        let discovered = json!({
            "resultType": "complete",
            "supportedVersions": [Revision::V2026_07_28.as_str()],
            "capabilities": { "tools": {} },
            "ttlMs": 0,
            "cacheScope": "public",
            "_meta": { META_SERVER: server },
        });
        let initialized = json!({
            "protocolVersion": Revision::LAST_LEGACY.as_str(),
            "capabilities": { "tools": {} },
            "serverInfo": server,
        });
        Self {
            discovered: discovered.to_string().into(),
            initialized: initialized.to_string().into(),
            lists: sizes.iter().map(|it| (*it, list(*it))).collect(),
        }
    }

    /// Answers a message to a server with so many tools.
    pub(crate) fn answer(&self, message: &[u8], tools: usize) -> Answer {
        let Ok(asked) = serde_json::from_slice::<Asked<'_>>(message) else {
            return Answer::Unreadable;
        };
        let Some(id) = asked.id else { return Answer::Silence };
        match &*asked.method {
            "tools/call" => Answer::Message(call(id, asked.params.as_ref())),
            "tools/list" => match self.lists.get(&tools) {
                Some(list) => Answer::Message(result(id, list.clone())),
                None => Answer::Unreadable,
            },
            "server/discover" => Answer::Message(result(id, self.discovered.clone())),
            "initialize" => Answer::Session(result(id, self.initialized.clone())),
            "ping" => Answer::Message(result(id, Bytes::from_static(b"{}"))),
            _ => {
                let begin = [r#"{"jsonrpc":"2.0","id":"#, id.get(), r#","error":"#].concat();
                let error = Bytes::from_static(br#"{"code":-32601,"message":"no such method"}"#);
                Answer::Message([begin.into(), error, Bytes::from_static(b"}")])
            }
        }
    }
}

/// A list of so many tools, and the forbidden one.
fn list(tools: usize) -> Bytes {
    let numbered = (1..tools).map(|it| format!("tool_{it:05}"));
    let names = [ECHO, FORBIDDEN].map(str::to_owned).into_iter().chain(numbered);
    let tools: Vec<_> = names.map(|it| definition(&it)).collect();
    let list = json!({
        "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "public",
    });
    list.to_string().into()
}

/// A tool of ordinary size.
fn definition(name: &str) -> Value {
    json!({
        "name": name,
        "title": "Says it again",
        "description": format!("{name} gives back the text that it is given, as it was given."),
        "inputSchema": {
            "type": "object",
            "properties": {
                "text": { "type": "string", "description": "What is to be said" },
                "size": { "type": "integer", "minimum": 0, "description": "How much is to follow" },
            },
            "required": ["text"],
        },
        "annotations": { "readOnlyHint": true },
    })
}

fn result(id: &RawValue, result: Bytes) -> [Bytes; 3] {
    let begin = [r#"{"jsonrpc":"2.0","id":"#, id.get(), r#","result":"#].concat();
    [begin.into(), result, Bytes::from_static(b"}")]
}

/// The result of a call: the text it came with, and as much more as it asks for.
fn call(id: &RawValue, params: Option<&Params<'_>>) -> [Bytes; 3] {
    let arguments = params.and_then(|it| it.arguments.as_ref());
    let text = arguments.and_then(|it| it.text).map_or(r#""""#, RawValue::get);
    let text = text.strip_suffix('"').unwrap_or("\"");
    let begin = [
        r#"{"jsonrpc":"2.0","id":"#,
        id.get(),
        r#","result":{"resultType":"complete","content":[{"type":"text","text":"#,
        text,
    ];
    let more = arguments.map_or(0, |it| it.size);
    let end = Bytes::from_static(br#""}],"isError":false}}"#);
    [begin.concat().into(), written(more), end]
}

/// So many bytes of filler as they stand in JSON, in whole lines.
fn written(size: usize) -> Bytes {
    if size < LINE { Bytes::new() } else { FILLER.slice(..size.min(LINE * LINES) / LINE * LINE) }
}

/// The same as text.
pub(crate) fn follows(size: usize) -> String {
    let json = [b"\"", &*written(size), b"\""].concat();
    serde_json::from_slice(&json).unwrap_or_default()
}

/// Rows, with quotes and line ends as real results have them: such text has to be looked at, not only copied.
fn filler() -> String {
    (0..LINES).map(|it| format!(r#"{it:07} a row with a \"quoted\" word{:.<12}\n"#, "")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(request: &Value) -> Value {
        let site = Site::new(&[2]);
        match site.answer(request.to_string().as_bytes(), 2) {
            Answer::Message(pieces) | Answer::Session(pieces) => {
                serde_json::from_slice(&pieces.concat()).unwrap()
            }
            Answer::Silence | Answer::Unreadable => Value::Null,
        }
    }

    #[test]
    fn a_call_gives_back_its_text_and_as_much_more_as_it_asks_for() {
        let call = |arguments: Value| {
            let params = json!({ "name": ECHO, "arguments": arguments });
            let request = json!({ "id": 7, "method": "tools/call", "params": params });
            said(&request)["result"]["content"][0]["text"].as_str().unwrap().to_owned()
        };
        assert_eq!(call(json!({ "text": "a \"b\"" })), "a \"b\"");
        let long = call(json!({ "text": "a", "size": 1000 }));
        assert_eq!(long, format!("a{}", follows(1000)));
        assert!(long.ends_with("0000019 a row with a \"quoted\" word............\n"));
    }

    #[test]
    fn filler_has_lines_of_one_length() {
        assert_eq!(filler().len(), LINE * LINES);
        assert_eq!((written(49).len(), written(1049).len()), (0, 1000));
        assert_eq!(written(usize::MAX).len(), LINE * LINES);
    }

    #[test]
    fn a_list_has_so_many_tools_and_the_forbidden_one() {
        let list = said(&json!({ "id": 7, "method": "tools/list" }));
        assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 3);
        assert_eq!(said(&json!({ "id": 1, "method": "x" }))["error"]["code"], -32601);
        assert_eq!(said(&json!({ "method": "notifications/initialized" })), Value::Null);
    }
}
