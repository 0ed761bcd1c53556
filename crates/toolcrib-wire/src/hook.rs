//! Telling somebody something over HTTP: one POST, and whether it was taken.

use bytes::Bytes;
use http::{HeaderMap, Method};

use crate::{
    error::{ConnectError, RequestError},
    http::{Endpoint, Http, drain, refusal},
};

/// The largest answer that is read.
const MAX_ANSWER: usize = 64 * 1024;

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
        let response = self.0.send(Method::POST, &self.0.url, headers, body).await?;
        if !response.status().is_success() {
            return Err(refusal(response).await);
        }
        drain(response.into_body()).await;
        Ok(())
    }

    /// Closes connections that are no longer used, for as long as it is polled.
    pub async fn keep_tidy(&self) {
        match self.0.keep_tidy().await {}
    }
}
