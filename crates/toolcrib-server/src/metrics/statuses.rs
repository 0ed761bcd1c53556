//! How HTTP requests were answered.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::StatusCode;

use super::page::Page;

/// What we answer with. Anything else counts as `other`.
const KNOWN: [u16; 18] =
    [200, 202, 204, 304, 400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 429, 500, 501, 503];

/// Answers, by status.
#[derive(Debug, Default)]
pub(crate) struct Statuses([AtomicU64; KNOWN.len() + 1]);

impl Statuses {
    /// A request was answered.
    pub(crate) fn count(&self, status: StatusCode) {
        let status = status.as_u16();
        let at = KNOWN.iter().position(|it| *it == status).unwrap_or(KNOWN.len());
        self.0[at].fetch_add(1, Relaxed);
    }

    pub(super) fn tell(&self, page: &mut Page, name: &str) {
        let words = KNOWN.iter().map(u16::to_string).chain(["other".to_owned()]);
        for (word, cell) in words.zip(&self.0) {
            page.sample(name, &[("status", &word)], cell.load(Relaxed));
        }
    }
}
