//! A gateway that runs, for whoever runs it: the same `/api` that its console asks, by the private socket of the
//! workspace or at an address.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header::AUTHORIZATION};
use serde_json::Value;
use toolcrib_wire::{Endpoint, ask_once};

use crate::{data::Owner, remote::Remote};

/// The largest answer.
const MAX_ANSWER: usize = 64 << 20;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A way to a gateway that runs.
#[derive(Debug)]
pub struct Desk(Way);

#[derive(Debug)]
enum Way {
    /// By the private socket.
    Socket(Remote),
    /// At an address, with a token where one is needed.
    Address(Uri, HeaderMap),
}

/// Why a gateway did not do what it was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeskError {
    /// The address is none.
    #[error("`{0}` is not an address such as http://127.0.0.1:8700")]
    Address(String),
    /// Nobody answers.
    #[error("{0}")]
    Silent(String),
    /// It says no.
    #[error("{message}")]
    Refused {
        /// The status of HTTP.
        status: u16,
        /// Why.
        message: String,
    },
}

impl Desk {
    /// The gateway that serves a workspace of this machine.
    pub fn of(owner: Owner) -> Self {
        Self(Way::Socket(Remote::of(owner)))
    }

    /// The gateway at an address; the path of its MCP endpoint is left out.
    pub fn at(url: &str, token: Option<&str>) -> Result<Self, DeskError> {
        let wrong = || DeskError::Address(url.to_owned());
        let base = url.trim_end_matches('/');
        let base = base.strip_suffix("/mcp").unwrap_or(base);
        let uri: Uri = base.parse().map_err(|_not_one| wrong())?;
        if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.host().is_none() {
            return Err(wrong());
        }
        let mut headers = HeaderMap::new();
        if let Some(token) = token {
            let value = HeaderValue::try_from(format!("Bearer {token}"));
            let mut value =
                value.map_err(|_odd| DeskError::Silent("the token cannot be sent".to_owned()))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self(Way::Address(uri, headers)))
    }

    /// What the gateway answers to a request.
    pub async fn get(&self, path: &str) -> Result<Value, DeskError> {
        self.ask(Method::GET, path, String::new()).await
    }

    /// What the gateway answers to an order.
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, DeskError> {
        self.ask(Method::POST, path, body.to_string()).await
    }

    async fn ask(&self, method: Method, path: &str, body: String) -> Result<Value, DeskError> {
        let (status, body) = match &self.0 {
            Way::Socket(remote) => {
                let answer = remote.answer(method, path, body, Duration::ZERO).await;
                answer.map_err(|error| DeskError::Silent(error.to_string()))?
            }
            Way::Address(base, headers) => over_http(base, headers, method, path, body).await?,
        };
        let value: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() && !value.is_null() {
            return Ok(value);
        }
        let said = value["error"].as_str().map(str::to_owned);
        let said = said.unwrap_or_else(|| plain(&body));
        Err(DeskError::Refused { status: status.as_u16(), message: said })
    }
}

async fn over_http(
    base: &Uri,
    headers: &HeaderMap,
    method: Method,
    path: &str,
    body: String,
) -> Result<(StatusCode, Bytes), DeskError> {
    let text = base.to_string();
    let text = format!("{}{path}", text.trim_end_matches('/'));
    let url: Uri = text.parse().map_err(|_not_one| DeskError::Address(text.clone()))?;
    let endpoint = Endpoint { url, headers: headers.clone(), ca: None, read_timeout: None };
    let asking = ask_once(&endpoint, method, body.into(), MAX_ANSWER);
    match tokio::time::timeout(PATIENCE, asking).await {
        Ok(answer) => answer.map_err(|error| DeskError::Silent(error.to_string())),
        Err(_) => Err(DeskError::Silent("the gateway does not answer".to_owned())),
    }
}

/// The first line of what was said.
fn plain(body: &Bytes) -> String {
    let text = String::from_utf8_lossy(body);
    let line: String = text.lines().next().unwrap_or_default().chars().take(300).collect();
    if line.is_empty() { "it answers in a way that is not understood".to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_one_or_is_refused() {
        for good in ["http://127.0.0.1:8700", "https://tools.example.com/mcp", "http://x/pre/"] {
            assert!(Desk::at(good, None).is_ok(), "{good}");
        }
        for bad in ["", "127.0.0.1:8700", "ftp://x", "http://", "file:///etc/passwd", "a b"] {
            assert!(Desk::at(bad, None).is_err(), "{bad}");
        }
        assert!(Desk::at("http://x", Some("line\nbreak")).is_err());
        let desk = Desk::at("http://x", Some("hunter2")).unwrap();
        assert!(!format!("{desk:?}").contains("hunter2"));
    }
}
