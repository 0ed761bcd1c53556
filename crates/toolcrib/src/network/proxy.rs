//! A proxy that nobody told us of.

use toolcrib_catalogue::Problem;

use super::Network;

impl Network {
    /// Names of our own on an address that only this machine reaches: a proxy must be in front. Through one that is
    /// not declared everybody looks as if they were here, and without tokens whoever is here is an operator.
    pub fn undeclared_proxy(&self, has_tokens: bool) -> Option<Problem> {
        if has_tokens || self.behind_proxy || self.hosts.is_empty() {
            return None;
        }
        let message = "there are no tokens, so whoever a proxy lets in may do what operators may";
        let warning = Problem::warning("network.yaml: hosts", message);
        Some(
            warning.hint("set `behind_proxy: true`, or tokens; without a proxy, leave it as it is"),
        )
    }
}
