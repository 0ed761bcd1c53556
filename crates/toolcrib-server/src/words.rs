//! The words and numbers by which a call that brought nothing says why: in `_meta` of results, in the audit record, in the
//! errors of JSON-RPC. Whoever writes a program against the gateway branches on them, so they stand in one place, and the
//! reference is made from it.

use toolcrib_catalogue::Blame;
use toolcrib_wire::{
    frame::{INTERNAL_ERROR, METHOD_NOT_FOUND},
    modern::{HEADER_MISMATCH, UNSUPPORTED_VERSION},
};

/// A word, and what it means.
pub type Meaning = (&'static str, &'static str);

/// There were too many calls.
pub(crate) const RATE_LIMITED: &str = "rate_limited";
/// Something is wrong with the idempotency key.
pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency_key";
/// The tool is not what was accepted.
pub(crate) const DEFINITION_CHANGED: &str = "definition_changed";
/// There can be no record.
pub(crate) const AUDIT_UNAVAILABLE: &str = "audit_unavailable";

/// Every `toolcrib/code`.
pub const CODES: [Meaning; 4] = [
    (
        RATE_LIMITED,
        "a limit is reached, or there is no room just now; `toolcrib/retryAfter` says how many seconds to wait. Nothing was done",
    ),
    (
        IDEMPOTENCY_KEY,
        "the key cannot be used: it stands for other arguments, or its call has not ended, or nobody knows how it ended",
    ),
    (
        DEFINITION_CHANGED,
        "the tool is not what was accepted in `toolcrib.lock`, and `pins` is `hold`. Nothing was done",
    ),
    (AUDIT_UNAVAILABLE, "there can be no audit record, and what cannot be recorded is not done"),
];

/// Every key that we put into `_meta` of a result.
pub const META_KEYS: [Meaning; 10] = [
    ("toolcrib/call", "the id of the call, for `toolcrib why --call ID` and the audit record"),
    ("toolcrib/blame", "whose fault it was"),
    ("toolcrib/code", "why it was refused, in a word"),
    (
        "toolcrib/faults",
        "what of the arguments does not fit: `path`, `keyword`, `expected`, `found`, `nearest`",
    ),
    ("toolcrib/retryAfter", "how many seconds to wait"),
    ("toolcrib/cache", "`hit` or `joined`, where the result was not made for this call"),
    ("toolcrib/age", "of a result out of the cache: how many seconds old it is"),
    ("toolcrib/next", "of a piece of a stored result: how to read on"),
    ("toolcrib/total", "of a piece of a stored result: how many bytes, lines, rows the whole has"),
    ("toolcrib/size", "of a piece of a stored result: how many bytes the whole has"),
];

/// The word for whose fault it was.
pub(crate) fn blame(blame: Blame) -> &'static str {
    match blame {
        Blame::Caller => "caller",
        Blame::Upstream => "upstream",
        Blame::Gateway => "gateway",
    }
}

/// Whose fault a failed call can be.
pub const BLAMES: [Meaning; 3] = [
    ("caller", "whoever called: the arguments, the rate, the token"),
    ("upstream", "the server or the tool that was called"),
    ("gateway", "toolcrib itself, or the machine it runs on"),
];

pub(crate) const OK: &str = "ok";
pub(crate) const TOOL_ERROR: &str = "tool_error";
pub(crate) const INVALID_ARGUMENTS: &str = "invalid_arguments";
pub(crate) const UNKNOWN_TOOL: &str = "unknown_tool";
pub(crate) const LIMITED: &str = "limited";
pub(crate) const HELD: &str = "held";
pub(crate) const EXPELLED_NOW: &str = "expelled";
pub(crate) const CANCELLED_BY_CALLER: &str = "cancelled";
pub(crate) const TIMEOUT: &str = "timeout";
pub(crate) const UPSTREAM_ERROR: &str = "upstream_error";
pub(crate) const GATEWAY_ERROR: &str = "gateway_error";

/// Every way in which a call can end, as the audit record, the console and `toolcrib audit show --outcome` say it.
pub const OUTCOMES: [Meaning; 11] = [
    (OK, "it brought a result"),
    (TOOL_ERROR, "the tool ran and said that it failed: a result with `isError`"),
    (INVALID_ARGUMENTS, "the arguments do not fit; nothing ran"),
    (UNKNOWN_TOOL, "there is no such tool, or not for this caller"),
    (LIMITED, "a limit was reached; nothing ran"),
    (HELD, "the tool is not what was accepted; nothing ran"),
    (EXPELLED_NOW, "the token was taken away meanwhile"),
    (CANCELLED_BY_CALLER, "whoever called did not wait for the answer"),
    (TIMEOUT, "it took too long"),
    (UPSTREAM_ERROR, "the server gave no result, or an error of its own"),
    (GATEWAY_ERROR, "toolcrib could not do it"),
];

/// What was sent is no JSON.
pub(crate) const PARSE_ERROR: i64 = -32700;
/// What was sent is JSON and no request.
pub(crate) const INVALID_REQUEST: i64 = -32600;
/// What was asked for does not fit, or is not there.
pub(crate) const INVALID_PARAMS: i64 = -32602;
/// There is no such resource.
pub(crate) const RESOURCE_NOT_FOUND: i64 = -32002;
/// The caller may ask no more.
pub(crate) const EXPELLED: i64 = -32001;
/// A limit is reached, for what is no call of a tool.
pub(crate) const TOO_OFTEN: i64 = -32029;
/// The client took the request back.
pub(crate) const CANCELLED: i64 = -32800;

/// Every code of an error of JSON-RPC that comes from toolcrib itself; those of servers are handed on as they are.
pub const RPC_CODES: [(i64, &str); 11] = [
    (PARSE_ERROR, "it is no JSON, or JSON that is refused: a key twice, a bad escape, too deep"),
    (INVALID_REQUEST, "it is JSON and no request, or one that is not taken here, such as a batch"),
    (METHOD_NOT_FOUND, "there is no such method"),
    (
        INVALID_PARAMS,
        "an unknown tool or prompt, or one that the caller's group does not see; parameters that do not fit",
    ),
    (INTERNAL_ERROR, "toolcrib failed; the log says more"),
    (EXPELLED, "the token was taken away meanwhile; nothing was done"),
    (RESOURCE_NOT_FOUND, "there is no such resource (revisions before 2026-07-28)"),
    (HEADER_MISMATCH, "2026-07-28: a header is missing, or does not say what the body says"),
    (UNSUPPORTED_VERSION, "2026-07-28: this revision of the protocol is not spoken here"),
    (TOO_OFTEN, "`resources/read` or `prompts/get` over a limit; `data` has the seconds to wait"),
    (CANCELLED, "the client took the request back"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_stands_for_two_things() {
        let words = CODES.iter().chain(&OUTCOMES).chain(&BLAMES).map(|it| it.0);
        let mut all: Vec<&str> = words.collect();
        let mut codes: Vec<i64> = RPC_CODES.iter().map(|it| it.0).collect();
        let (words, numbers) = (all.len(), codes.len());
        all.sort_unstable();
        all.dedup();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!((all.len(), codes.len()), (words, numbers));
        for it in [Blame::Caller, Blame::Upstream, Blame::Gateway] {
            assert!(BLAMES.iter().any(|(word, _)| *word == blame(it)), "{it:?}");
        }
    }
}
