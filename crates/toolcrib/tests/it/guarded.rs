//! What a call passes before anything runs: that its arguments fit, and that its tool is what was accepted.

mod arguments;
mod expelled;
mod pins;
mod reading;
mod secrets;
mod why;

use std::path::Path;

use serde_json::{Value, json};

use crate::serving::{Answer, Serving};

/// A client of a running gateway, in a legacy session.
pub(crate) struct Client<'a> {
    serving: &'a Serving,
    session: String,
    token: Option<&'a str>,
}

impl<'a> Client<'a> {
    pub(crate) fn new(serving: &'a Serving, token: Option<&'a str>) -> Self {
        let mut client = Self { serving, session: String::new(), token };
        let headers = client.headers();
        let headers: Vec<_> = headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
        client.session = serving.session(&headers, "2025-11-25");
        client
    }

    fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![("Accept", "application/json, text/event-stream".to_owned())];
        headers.extend(self.token.map(|it| ("Authorization", format!("Bearer {it}"))));
        if !self.session.is_empty() {
            headers.push(("Mcp-Session-Id", self.session.clone()));
        }
        headers
    }

    pub(crate) fn ask(&self, method: &str, params: &Value) -> Value {
        let answer = self.answer(method, params);
        // On a stream the answer is what is said last.
        match answer.body.rfind("data: {") {
            Some(at) if !answer.body.starts_with('{') => {
                let mut said =
                    serde_json::Deserializer::from_str(&answer.body[at + 6..]).into_iter();
                said.next().unwrap().unwrap()
            }
            _ => answer.json(),
        }
    }

    pub(crate) fn answer(&self, method: &str, params: &Value) -> Answer {
        let headers = self.headers();
        let headers: Vec<_> = headers.iter().map(|(k, v)| (*k, v.as_str())).collect();
        let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
        self.serving.post(&headers, &body)
    }

    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    pub(crate) fn text(&self, tool: &str, arguments: &Value) -> String {
        let answer = self.call(tool, arguments);
        let text = answer["result"]["content"][0]["text"].as_str();
        text.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    pub(crate) fn tools(&self) -> Vec<Value> {
        self.ask("tools/list", &json!({}))["result"]["tools"].as_array().unwrap().clone()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let name = |it: &Value| it["name"].as_str().unwrap().to_owned();
        self.tools().iter().map(name).collect()
    }
}

/// How many calls of tools a fake server has noted.
pub(crate) fn calls(notes: &Path) -> usize {
    let notes = std::fs::read_to_string(notes).unwrap_or_default();
    notes.lines().filter(|it| it.contains(r#""tools/call""#)).count()
}
