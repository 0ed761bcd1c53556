//! Why there are no figures.

use std::io;

/// What went wrong, in words: nobody here branches on it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Failure(String);

impl Failure {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The same, and where it happened.
    pub(crate) fn at(self, place: &str) -> Self {
        Self(format!("{place}: {}", self.0))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self(error.to_string())
    }
}
