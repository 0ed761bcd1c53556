//! Calling a tool again until it answers: the seed's explicit way.
//!
//! Whoever calls [`call_tool_with_retry`] says that calling twice does no harm. The gateway, which
//! cannot know that, is more careful; see [`crate::mcp::Connection::call`].

use std::time::Duration;

use tokio::time::{Instant, sleep, timeout};
use toolcrib_catalogue::{CallError, CallTool, Json, Outcome};

use super::error::ExecutionError;

/// How to try again.
#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// How often, after the first attempt.
    pub max_retries: u32,
    /// How long one attempt may take; for as long as it likes where nothing is said.
    pub timeout: Option<Duration>,
    /// The pause after the first failed attempt. After attempt n, counted from 0, it is
    /// `backoff_base * 2^n`.
    pub backoff_base: Duration,
    /// When it is all over, pauses included.
    pub total: Option<Duration>,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_retries: 3, timeout: None, backoff_base: Duration::from_secs(1), total: None }
    }
}

/// Calls a tool, and again while it fails for reasons that may pass. A client that cannot do what is
/// asked, and a server that answered, are not asked again; a tool that says it failed has answered.
///
/// ```
/// # use toolcrib_catalogue::*;
/// use std::time::Duration;
/// use toolcrib_sources::mcp::{ExecutionError, Retry, call_tool_with_retry};
///
/// # async fn show(client: &toolcrib_sources::mcp::Client) -> Result<(), ExecutionError> {
/// let retry = Retry { max_retries: 2, timeout: Some(Duration::from_secs(10)), ..Retry::default() };
/// let arguments = Json::parse(r#"{"query": "hello"}"#).ok();
/// let outcome = call_tool_with_retry(client, "my-server", "search", arguments, &retry).await?;
/// # Ok(()) }
/// ```
pub async fn call_tool_with_retry(
    target: &impl CallTool,
    server: &str,
    tool: &str,
    arguments: Option<Json>,
    retry: &Retry,
) -> Result<Outcome, ExecutionError> {
    let end = retry.total.and_then(|it| Instant::now().checked_add(it));
    let mut attempt: u32 = 0;
    loop {
        let limit = remaining(end, retry.timeout);
        let call = target.call_tool(server, tool, arguments.clone());
        let answer = match limit {
            Some(limit) => match timeout(limit, call).await {
                Ok(answer) => answer,
                Err(_) => Err(CallError::TimedOut { after: limit, sent: true }),
            },
            None => call.await,
        };
        let error = match answer {
            Ok(outcome) => return Ok(outcome),
            Err(CallError::Client(error)) => return Err(error.into()),
            Err(error) if !error.is_transient() => {
                let (tool, server) = (tool.to_owned(), server.to_owned());
                return Err(ExecutionError::Answered { tool, server, source: error });
            }
            Err(error) => error,
        };
        let pause =
            retry.backoff_base.saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX));
        attempt += 1;
        let late = end.is_some_and(|end| end.saturating_duration_since(Instant::now()) <= pause);
        if retry.max_retries < attempt || late {
            return Err(ExecutionError::Exhausted {
                tool: tool.to_owned(),
                server: server.to_owned(),
                attempts: attempt,
                cause: error.to_string(),
            });
        }
        sleep(pause).await;
    }
}

/// The shorter of one attempt's time and what is left of all.
fn remaining(end: Option<Instant>, timeout: Option<Duration>) -> Option<Duration> {
    let left = end.map(|it| it.saturating_duration_since(Instant::now()));
    match (left, timeout) {
        (Some(left), Some(timeout)) => Some(left.min(timeout)),
        (left, timeout) => left.or(timeout),
    }
}
