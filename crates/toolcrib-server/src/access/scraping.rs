//! Who may read `/metrics`, besides operators. Nobody of them is let in anywhere else by that.

use subtle::ConstantTimeEq;

use super::{Access, bearer};

/// Who may read `/metrics`, besides operators.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Scraping {
    /// Everybody who reaches the gateway.
    pub open: bool,
    /// Whoever has this token, which is good for nothing else.
    pub token: Option<String>,
}

impl std::fmt::Debug for Scraping {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let token = self.token.as_ref().map(|_| "****");
        f.debug_struct("Scraping").field("open", &self.open).field("token", &token).finish()
    }
}

impl Access {
    /// Whether whoever sends this `Authorization` may read `/metrics`, without being anybody else.
    pub(crate) fn lets_scrape(&self, authorization: Option<&[u8]>) -> bool {
        let (open, token) = &self.scraping;
        let given = authorization.and_then(bearer).map(|it| *blake3::hash(it).as_bytes());
        let fits = given.zip(*token).is_some_and(|(given, token)| given.ct_eq(&token).into());
        *open || fits
    }
}
