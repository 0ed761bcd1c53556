//! Tokens in `network.yaml`: written out, named by a variable, or as digests.

use toolcrib_catalogue::Problem;
use toolcrib_sources::mcp::Lookup;

use super::{NetworkError, WRITTEN_OUT};
use crate::tokens::read_digest;

/// A token that is configured must be there: an open door because of a typing error is not.
pub(super) fn token(
    direct: Option<Option<String>>,
    variable: Option<Option<String>>,
    place: &str,
    lookup: Lookup<'_>,
    problems: &mut Vec<Problem>,
) -> Result<Option<String>, NetworkError> {
    // `null` is how a file says that there is none; a value that was forgotten looks the same.
    for (key, value) in [("auth_token", &direct), ("auth_token_env", &variable)] {
        if *value == Some(None) {
            let place = format!("network.yaml: {place}: {key}");
            let problem = Problem::new(place, "it has no value, so it sets no token");
            problems.push(problem.hint("take the key out, or give it a value"));
        }
    }
    let (direct, variable) = (direct.flatten(), variable.flatten());
    let refuse = |key: &str, cause: String| {
        Err(NetworkError::Token { key: format!("{place}: {key}"), cause })
    };
    if let Some(token) = direct {
        if token.trim().is_empty() {
            return refuse("auth_token", "it is empty".to_owned());
        }
        let place = format!("network.yaml: {place}: auth_token");
        let hint = "put it into a variable, and name that: `auth_token_env`";
        problems.push(Problem::warning(place, WRITTEN_OUT).hint(hint));
        return Ok(Some(token));
    }
    let Some(variable) = variable else { return Ok(None) };
    match lookup(&variable).filter(|it| !it.trim().is_empty()) {
        Some(token) => Ok(Some(token)),
        None => refuse("auth_token_env", format!("the variable `{variable}` is not set")),
    }
}

/// Tokens of which the file has only the digests.
pub(super) fn digests(written: &[String], place: &str) -> Result<Vec<[u8; 32]>, NetworkError> {
    let read = |text: &String| {
        read_digest(text).ok_or_else(|| NetworkError::Token {
            key: format!("{place}: token_digests"),
            cause: "it is not `blake3:` and 64 hexadecimal digits".to_owned(),
        })
    };
    written.iter().map(read).collect()
}
