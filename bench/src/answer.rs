//! Whether an answer is the right one.
//!
//! The first answer of each kind is read in full. Those that follow have to be the same, byte for byte, but
//! for their number; one that is not is read in full again, since a gateway may write each of them anew.

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{Arc, OnceLock},
};

use memchr::memmem;
use serde::Deserialize;

use crate::{connection::Reply, failure::Failure, request::said, site};

/// What a right answer looks like.
#[derive(Debug, Clone)]
pub(crate) enum Expected {
    /// The text that was sent, and this after it.
    Call(Arc<Call>),
    /// A list of so many tools.
    List(Arc<List>),
    /// These bytes.
    File(Arc<Vec<u8>>),
}

/// The answer to a call.
#[derive(Debug)]
pub(crate) struct Call {
    follows: String,
    sample: OnceLock<Sample>,
}

/// The answer to `tools/list`.
#[derive(Debug)]
pub(crate) struct List {
    tools: usize,
    hidden: Option<&'static str>,
    sample: OnceLock<Sample>,
}

/// An answer that was read in full.
#[derive(Debug)]
struct Sample {
    body: Vec<u8>,
    digits: usize,
    /// Where its number stands.
    places: Vec<usize>,
}

#[derive(Deserialize)]
struct Envelope<T> {
    jsonrpc: String,
    id: u64,
    result: T,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct CallResult<'a> {
    #[serde(borrow)]
    content: Vec<Content<'a>>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct Content<'a> {
    #[serde(borrow)]
    text: Cow<'a, str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListResult {
    tools: Vec<Tool>,
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
}

impl Expected {
    pub(crate) fn call(size: usize) -> Self {
        let follows = site::follows(size);
        Self::Call(Arc::new(Call { follows, sample: OnceLock::new() }))
    }

    pub(crate) fn list(tools: usize, hidden: Option<&'static str>) -> Self {
        Self::List(Arc::new(List { tools, hidden, sample: OnceLock::new() }))
    }

    /// Complains about an answer that is not the right one.
    pub(crate) fn check(&self, reply: &Reply<'_>, number: u64) -> Result<(), Failure> {
        let right = match (reply.status, self) {
            (200, Self::Call(call)) => call.fits(reply.body, number),
            (200, Self::List(list)) => list.fits(reply.body, number),
            (200, Self::File(bytes)) if **bytes == reply.body => Ok(()),
            _ => Err("it is".to_owned()),
        };
        right.map_err(|what| {
            let begin = &reply.body[..reply.body.len().min(300)];
            let begin = String::from_utf8_lossy(begin);
            Failure::new(format!("a wrong answer to {number}: {what}: {} {begin}", reply.status))
        })
    }
}

impl Call {
    fn fits(&self, body: &[u8], number: u64) -> Result<(), String> {
        if self.sample.get().is_some_and(|it| it.is_like(body, number)) {
            return Ok(());
        }
        let Envelope { jsonrpc, id, result } =
            serde_json::from_slice::<Envelope<CallResult<'_>>>(body)
                .map_err(|it| it.to_string())?;
        let [content] = result.content.as_slice() else { return Err("its content".to_owned()) };
        let text = said(&number.to_string());
        if jsonrpc != "2.0" || id != number || result.is_error {
            return Err("its envelope".to_owned());
        }
        if content.text.strip_prefix(&text) != Some(&self.follows) {
            return Err("its text".to_owned());
        }
        self.sample.get_or_init(|| Sample::new(body, number));
        Ok(())
    }
}

impl List {
    /// So many tools, each of another name, and not the hidden one among them.
    fn fits(&self, body: &[u8], number: u64) -> Result<(), String> {
        if self.sample.get().is_some_and(|it| it.is_like(body, number)) {
            return Ok(());
        }
        let answer: Envelope<ListResult> =
            serde_json::from_slice(body).map_err(|error| error.to_string())?;
        if answer.id != number || answer.jsonrpc != "2.0" || answer.result.next_cursor.is_some() {
            return Err("its envelope".to_owned());
        }
        let names: HashSet<String> = answer.result.tools.into_iter().map(|it| it.name).collect();
        if names.len() != self.tools || self.hidden.is_some_and(|it| names.contains(it)) {
            return Err(format!("it has {} names", names.len()));
        }
        self.sample.get_or_init(|| Sample::new(body, number));
        Ok(())
    }
}

impl Sample {
    fn new(body: &[u8], number: u64) -> Self {
        let digits = number.to_string();
        let places = memmem::find_iter(body, digits.as_bytes()).collect();
        Self { body: body.to_vec(), digits: digits.len(), places }
    }

    fn is_like(&self, body: &[u8], number: u64) -> bool {
        if body.len() != self.body.len() {
            return false;
        }
        let digits = number.to_string();
        let mut from = 0;
        for &at in &self.places {
            let end = at + self.digits;
            if body[from..at] != self.body[from..at] || body[at..end] != *digits.as_bytes() {
                return false;
            }
            from = end;
        }
        body[from..] == self.body[from..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(expected: &Expected, body: &str, number: u64) -> bool {
        let reply = Reply { status: 200, head: "", body: body.as_bytes() };
        expected.check(&reply, number).is_ok()
    }

    #[test]
    fn an_echo_is_known() {
        let body = |id: u64, text: &str| {
            let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
        };
        let expected = Expected::call(0);
        // Twice: the second time there is a sample.
        for _ in 0..2 {
            assert!(check(&expected, &body(17, "this is number 17"), 17));
            assert!(!check(&expected, &body(17, "this is number 18"), 17));
            assert!(!check(&expected, &body(18, "this is number 17"), 17));
            assert!(!check(&expected, &body(17, "this is number 17 "), 17));
            let error = r#"{"jsonrpc":"2.0","id":17,"error":{"code":1,"message":"no"}}"#;
            assert!(!check(&expected, error, 17));
        }
        assert!(check(&expected, &body(18, "this is number 18").replace(":[", ": ["), 18));
        assert!(!check(&Expected::call(50), &body(17, "this is number 17"), 17));
    }

    #[test]
    fn a_list_is_the_same_but_for_its_number() {
        let list = |id: u64, name: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":"{name}"}}]}}}}"#)
        };
        let expected = Expected::list(1, Some("b"));
        assert!(check(&expected, &list(10, "a"), 10));
        assert!(check(&expected, &list(11, "a"), 11));
        assert!(!check(&expected, &list(11, "a"), 12));
        assert!(!check(&expected, &list(11, "b"), 11));
        assert!(!check(&Expected::list(2, None), &list(10, "a"), 10));
    }

    #[test]
    fn a_sample_forgives_nothing_but_the_number() {
        let sample = Sample::new(b"a 100 b 100 c", 100);
        assert!(sample.is_like(b"a 101 b 101 c", 101));
        for wrong in ["a 101 b 100 c", "a 101 x 101 c", "a 101 b 101 x", "a 101 b 101 c ", ""] {
            assert!(!sample.is_like(wrong.as_bytes(), 101), "{wrong}");
        }
    }
}
