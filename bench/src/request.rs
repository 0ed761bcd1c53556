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

use crate::failure::Failure;

/// The token that gateways want to see. The others get it too: their requests are no shorter.
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
    pub(crate) to: Target<'a>,
    pub(crate) era: Era,
    /// In the legacy era, once there is one.
    pub(crate) session: Option<&'a str>,
    pub(crate) token: Option<&'a str>,
}

/// Where a request goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Target<'a> {
    Http(SocketAddr, &'a str),
    /// A line, and nothing around it.
    Pipe,
}

impl Target<'_> {
    /// The socket behind it.
    pub(crate) fn address(&self) -> Result<SocketAddr, Failure> {
        match self {
            Self::Http(address, _) => Ok(*address),
            Self::Pipe => Err(Failure::new("there is no socket")),
        }
    }
}

impl Template {
    /// A call of a tool that says the number again, and so much more.
    pub(crate) fn call(manner: Manner<'_>, tool: &str, size: usize) -> Self {
        let params = json!({ "name": tool, "arguments": { "text": said(BLANK), "size": size } });
        Self::new(manner, "tools/call", Some(tool), params)
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

    /// What a legacy client says when it has read the answer to `initialize`.
    pub(crate) fn initialized(manner: Manner<'_>) -> Self {
        let body = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        Self::around(manner, "notifications/initialized", None, body)
    }

    /// Reads a file, as any HTTP client does.
    pub(crate) fn file(to: SocketAddr, path: &str) -> Self {
        let text =
            format!("GET {path} HTTP/1.1\r\nHost: {to}\r\nUser-Agent: toolcrib-bench\r\n\r\n");
        Self { text: text.into_bytes(), blanks: Vec::new() }
    }

    /// Ends a session.
    pub(crate) fn end(manner: Manner<'_>) -> Option<Self> {
        let (Target::Http(to, path), Some(session)) = (manner.to, manner.session) else {
            return None;
        };
        let token = manner.token.unwrap_or_default();
        let text = format!(
            "DELETE {path} HTTP/1.1\r\nHost: {to}\r\nAuthorization: Bearer {token}\r\n\
             MCP-Protocol-Version: {}\r\nMcp-Session-Id: {session}\r\nContent-Length: 0\r\n\r\n",
            Revision::LAST_LEGACY.as_str()
        );
        Some(Self { text: text.into_bytes(), blanks: Vec::new() })
    }

    fn new(manner: Manner<'_>, method: &str, name: Option<&str>, mut params: Value) -> Self {
        if manner.era == Era::Modern {
            params["_meta"] = json!({
                META_VERSION: Revision::V2026_07_28.as_str(),
                META_CLIENT: client(),
                META_CAPABILITIES: {},
            });
        }
        let body =
            format!(r#"{{"jsonrpc":"2.0","id":{BLANK},"method":"{method}","params":{params}}}"#);
        Self::around(manner, method, name, &body)
    }

    fn around(manner: Manner<'_>, method: &str, name: Option<&str>, body: &str) -> Self {
        let text = match manner.to {
            Target::Pipe => format!("{body}\n"),
            Target::Http(to, path) => {
                let mut head = format!(
                    "POST {path} HTTP/1.1\r\nHost: {to}\r\nContent-Type: application/json\r\n\
                     Accept: application/json, text/event-stream\r\nUser-Agent: toolcrib-bench\r\n"
                );
                for (name, value) in headers(manner, method, name) {
                    head.push_str(&format!("{name}: {value}\r\n"));
                }
                format!("{head}Content-Length: {}\r\n\r\n{body}", body.len())
            }
        };
        let text = text.into_bytes();
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

/// What MCP wants to see in the head.
fn headers(manner: Manner<'_>, method: &str, name: Option<&str>) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    headers.extend(manner.token.map(|it| ("Authorization", format!("Bearer {it}"))));
    match manner.era {
        Era::Modern => {
            headers.push(("MCP-Protocol-Version", Revision::V2026_07_28.as_str().to_owned()));
            headers.push(("Mcp-Method", method.to_owned()));
            headers.extend(name.map(|it| ("Mcp-Name", it.to_owned())));
        }
        Era::Legacy => {
            headers.push(("MCP-Protocol-Version", Revision::LAST_LEGACY.as_str().to_owned()));
            headers.extend(manner.session.map(|it| ("Mcp-Session-Id", it.to_owned())));
        }
    }
    headers
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
        let to = Target::Http(SocketAddr::from(([127, 0, 0, 1], 8700)), "/mcp");
        let manner = Manner { to, era: Era::Modern, session: None, token: Some(TOKEN) };
        let mut text = Vec::new();
        Template::call(manner, "echo", 1000).write(FIRST + 7, &mut text);
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches("100000007").count(), 2);
        assert!(text.contains("\r\nMcp-Method: tools/call\r\nMcp-Name: echo\r\n"));
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())));
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["params"]["arguments"]["text"], "this is number 100000007");
        assert_eq!(body["params"]["arguments"]["size"], 1000);
    }

    #[test]
    fn a_legacy_request_names_its_session_and_a_line_has_no_head() {
        let to = Target::Http(SocketAddr::from(([127, 0, 0, 1], 8700)), "/mcp");
        let manner = Manner { to, era: Era::Legacy, session: Some("s1"), token: None };
        let mut text = Vec::new();
        Template::initialized(manner).write(FIRST, &mut text);
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains("\r\nMcp-Session-Id: s1\r\n") && !text.contains("Authorization"));
        let mut line = Vec::new();
        Template::list(Manner { to: Target::Pipe, ..manner }).write(FIRST, &mut line);
        assert!(line.starts_with(br#"{"jsonrpc":"2.0","id":100000000,"#) && line.ends_with(b"}\n"));
    }
}
