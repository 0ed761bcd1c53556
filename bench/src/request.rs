//! Requests, written once and sent many times: only their number changes, and it is always as long.

use std::{
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
};

use memchr::memmem;
use serde_json::{Value, json};
use toolcrib_wire::{
    Era, Revision,
    revision::{META_CAPABILITIES, META_CLIENT, META_VERSION},
};

use crate::upstream::ECHO;

/// The token that toolcrib wants to see. The others get it too: their requests are no shorter.
pub(crate) const TOKEN: &str = "the-token-of-the-benchmark";

/// Where the number goes.
const BLANK: &str = "000000000";

/// The first number; all that follow have as many digits.
const FIRST: u64 = 100_000_000;

/// Numbers for requests, each of them once.
#[derive(Debug, Default)]
pub(crate) struct Numbers(AtomicU64);

impl Numbers {
    pub(crate) fn next(&self) -> u64 {
        FIRST + self.0.fetch_add(1, Ordering::Relaxed)
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A request in which the number is left blank.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    text: Vec<u8>,
    blanks: Vec<usize>,
}

/// To whom, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Manner<'a> {
    pub(crate) to: SocketAddr,
    pub(crate) era: Era,
    /// In the legacy era, once there is one.
    pub(crate) session: Option<&'a str>,
    pub(crate) token: Option<&'a str>,
}

impl Template {
    /// A call of a tool that says the number again.
    pub(crate) fn call(manner: Manner<'_>, tool: &str) -> Self {
        let params = json!({ "name": tool, "arguments": { "text": said(BLANK) } });
        Self::new(manner, "tools/call", Some(tool), params)
    }

    pub(crate) fn echo(manner: Manner<'_>) -> Self {
        Self::call(manner, ECHO)
    }

    pub(crate) fn list(manner: Manner<'_>) -> Self {
        Self::new(manner, "tools/list", None, json!({}))
    }

    pub(crate) fn initialize(manner: Manner<'_>) -> Self {
        let params = json!({
            "protocolVersion": Revision::LAST_LEGACY.as_str(),
            "capabilities": {},
            "clientInfo": client(),
        });
        Self::new(manner, "initialize", None, params)
    }

    fn new(manner: Manner<'_>, method: &str, name: Option<&str>, mut params: Value) -> Self {
        let Manner { to, era, session, token } = manner;
        let mut head = format!(
            "POST /mcp HTTP/1.1\r\nHost: {to}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nUser-Agent: toolcrib-bench\r\n"
        );
        let mut line = |name: &str, value: &str| head.push_str(&format!("{name}: {value}\r\n"));
        if let Some(token) = token {
            line("Authorization", &format!("Bearer {token}"));
        }
        match era {
            Era::Modern => {
                params["_meta"] = json!({
                    META_VERSION: Revision::V2026_07_28.as_str(),
                    META_CLIENT: client(),
                    META_CAPABILITIES: {},
                });
                line("MCP-Protocol-Version", Revision::V2026_07_28.as_str());
                line("Mcp-Method", method);
                name.into_iter().for_each(|it| line("Mcp-Name", it));
            }
            Era::Legacy => {
                line("MCP-Protocol-Version", Revision::LAST_LEGACY.as_str());
                session.into_iter().for_each(|it| line("Mcp-Session-Id", it));
            }
        }
        let params = params.to_string();
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{BLANK},"method":"{method}","params":{params}}}"#);
        line("Content-Length", &body.len().to_string());
        let text = format!("{head}\r\n{body}").into_bytes();
        let blanks = memmem::find_iter(&text, BLANK).collect();
        Self { text, blanks }
    }

    /// Writes the request with this number.
    pub(crate) fn write(&self, number: u64, to: &mut Vec<u8>) {
        to.clear();
        to.extend_from_slice(&self.text);
        let digits = number.to_string();
        for &at in &self.blanks {
            to[at..at + BLANK.len()].copy_from_slice(digits.as_bytes());
        }
    }
}

/// What the tool is to say.
pub(crate) fn said(number: &str) -> String {
    format!("this is number {number}")
}

fn client() -> Value {
    json!({ "name": "toolcrib-bench", "version": "1" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_number_changes() {
        let to = SocketAddr::from(([127, 0, 0, 1], 8700));
        let manner = Manner { to, era: Era::Modern, session: None, token: Some(TOKEN) };
        let mut text = Vec::new();
        Template::echo(manner).write(FIRST + 7, &mut text);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches("100000007").count(), 2);
        assert!(text.contains("\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n"));
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["params"]["arguments"]["text"], "this is number 100000007");
    }
}
