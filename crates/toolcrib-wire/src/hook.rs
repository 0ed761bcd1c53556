//! Telling somebody something over HTTP: one POST, and whether it was taken; and asking something once.

use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode};

use crate::{
    error::{ConnectError, RequestError},
    http::{Endpoint, Field, Http, collect, drain, refusal},
};

/// The largest answer that is read.
const MAX_ANSWER: usize = 64 * 1024;

/// Asks somebody something: the status of the answer, and what it says, if that is no larger than `most`.
pub async fn ask_once(
    endpoint: &Endpoint,
    method: Method,
    body: Bytes,
    most: usize,
) -> Result<(StatusCode, Bytes), RequestError> {
    let http = Http::new(endpoint, most, None)
        .map_err(|error| RequestError::Unreachable { cause: error.to_string() })?;
    let json = [("content-type", &b"application/json"[..])];
    let said: &[Field<'_>] = if method == Method::POST { &json } else { &[] };
    let response = http.send(method.as_str(), &http.url, [said, &[]], &body).await?;
    Ok((response.status, collect(response.body, most).await?))
}

/// Somebody who is told things by POST.
#[derive(Debug, Clone)]
pub struct Hook(Http);

impl Hook {
    /// Somebody at this address.
    pub fn new(endpoint: &Endpoint) -> Result<Self, ConnectError> {
        Http::new(endpoint, MAX_ANSWER, None).map(Self)
    }

    /// Tells it something. It was taken if the answer is a success; no redirect is followed.
    pub async fn post(&self, body: Bytes, headers: HeaderMap) -> Result<(), RequestError> {
        let fields = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes()));
        let fields: Vec<Field<'_>> = fields.collect();
        let response = self.0.send("POST", &self.0.url, [&fields, &[]], &body).await?;
        if !response.status.is_success() {
            return Err(refusal(response).await);
        }
        drain(response.body).await;
        Ok(())
    }

    /// Closes connections that are no longer used, for as long as it is polled.
    pub async fn keep_tidy(&self) {
        match self.0.keep_tidy().await {}
    }
}
