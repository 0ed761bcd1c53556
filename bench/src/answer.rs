//! Whether an answer is the right one.

use std::{borrow::Cow, collections::HashSet, ops::Range, sync::Arc};

use memchr::memmem;
use serde::Deserialize;

use crate::{connection::Reply, failure::Failure, request::said};

/// What a right answer looks like.
#[derive(Debug, Clone)]
pub(crate) enum Expected {
    /// The text that was sent.
    Echo,
    /// This list, whose number stands in this place.
    List(Arc<Sample>),
}

/// A list that was read in full. Later ones have to be the same, byte for byte, but for their number.
#[derive(Debug)]
pub(crate) struct Sample {
    pub(crate) body: Vec<u8>,
    number: Range<usize>,
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
    /// Complains about an answer that is not the right one.
    pub(crate) fn check(&self, reply: &Reply<'_>, number: u64) -> Result<(), Failure> {
        let right = reply.status == 200
            && match self {
                Self::Echo => is_echo(reply.body, number),
                Self::List(sample) => sample.is_like(reply.body, number),
            };
        if right {
            return Ok(());
        }
        let begin = &reply.body[..reply.body.len().min(400)];
        let begin = String::from_utf8_lossy(begin);
        Err(Failure::new(format!("a wrong answer to {number}: {} {begin}", reply.status)))
    }
}

fn is_echo(body: &[u8], number: u64) -> bool {
    let Ok(answer) = serde_json::from_slice::<Envelope<CallResult<'_>>>(body) else { return false };
    let Envelope { jsonrpc, id, result } = answer;
    let [content] = result.content.as_slice() else { return false };
    let text = said(&number.to_string());
    jsonrpc == "2.0" && id == number && !result.is_error && content.text == text
}

impl Sample {
    /// Reads a list in full: so many tools, each of another name, and not this one among them.
    pub(crate) fn read(
        body: &[u8],
        number: u64,
        tools: usize,
        hidden: Option<&str>,
    ) -> Result<Self, Failure> {
        let fail = |what: &str| Failure::new(format!("a wrong list: {what}"));
        let answer: Envelope<ListResult> =
            serde_json::from_slice(body).map_err(|error| fail(&error.to_string()))?;
        if answer.id != number || answer.jsonrpc != "2.0" || answer.result.next_cursor.is_some() {
            return Err(fail("its envelope"));
        }
        let names: HashSet<String> = answer.result.tools.into_iter().map(|it| it.name).collect();
        if names.len() != tools || hidden.is_some_and(|it| names.contains(it)) {
            return Err(fail(&format!("it has {} names", names.len())));
        }
        let digits = number.to_string();
        let begin = memmem::find(body, digits.as_bytes()).ok_or_else(|| fail("no number"))?;
        Ok(Self { body: body.to_vec(), number: begin..begin + digits.len() })
    }

    fn is_like(&self, body: &[u8], number: u64) -> bool {
        let (before, after) = (..self.number.start, self.number.end..);
        body.len() == self.body.len()
            && body[before] == self.body[before]
            && body[self.number.clone()] == *number.to_string().as_bytes()
            && body[after.clone()] == self.body[after]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_is_known() {
        let body = |id: u64, text: &str| {
            let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#).into_bytes()
        };
        assert!(is_echo(&body(7, "this is number 7"), 7));
        assert!(!is_echo(&body(7, "this is number 8"), 7));
        assert!(!is_echo(&body(8, "this is number 7"), 7));
        assert!(!is_echo(br#"{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"no"}}"#, 7));
    }

    #[test]
    fn a_list_is_the_same_but_for_its_number() {
        let list = |id: u64, name: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"tools":[{{"name":"{name}"}}]}}}}"#)
        };
        let sample = Sample::read(list(10, "a").as_bytes(), 10, 1, Some("b")).unwrap();
        assert!(sample.is_like(list(11, "a").as_bytes(), 11));
        assert!(!sample.is_like(list(11, "a").as_bytes(), 12));
        assert!(!sample.is_like(list(11, "b").as_bytes(), 11));
        assert!(Sample::read(list(10, "b").as_bytes(), 10, 1, Some("b")).is_err());
        assert!(Sample::read(list(10, "a").as_bytes(), 10, 2, None).is_err());
    }
}
