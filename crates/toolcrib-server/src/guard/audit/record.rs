//! What is written of a call, and of an event that matters to security.
//!
//! Lines are put together by hand: one pass into a buffer that is there already. Whatever came from outside is
//! cut to [`MOST_TEXT`] characters and written so that nothing in it ends a line, moves a terminal's cursor or
//! hides from an eye.

use std::net::IpAddr;

use toolcrib_catalogue::Blame;

pub(crate) use crate::words::blame;

/// How much of a text from outside is written.
pub(crate) const MOST_TEXT: usize = 200;

/// How much is written of arguments and of results, where that is asked for.
pub(crate) const MOST_PAYLOAD: usize = 64 * 1024;

/// How many artifacts are named.
const MOST_ARTIFACTS: usize = 20;

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CallRecord<'a> {
    pub(crate) id: &'a str,
    /// Never a token.
    pub(crate) who: &'a str,
    pub(crate) group: &'a str,
    pub(crate) client: Option<IpAddr>,
    /// What was asked for, where it is no call of a tool.
    pub(crate) method: Option<&'static str>,
    /// Its public name; of what is read, the name or the address.
    pub(crate) tool: &'a str,
    pub(crate) source: Option<&'a str>,
    /// The hash of its definition.
    pub(crate) definition: Option<&'a str>,
    pub(crate) arguments: Payload<'a>,
    /// How it ended, in a word.
    pub(crate) outcome: &'static str,
    pub(crate) blame: Option<Blame>,
    pub(crate) code: Option<i64>,
    /// What was said of why it failed.
    pub(crate) cause: Option<&'a str>,
    pub(crate) micros: u64,
    pub(crate) retries: u32,
    /// `hit`, `miss` or `joined`.
    pub(crate) cache: Option<&'a str>,
    pub(crate) result: Payload<'a>,
    pub(crate) artifacts: &'a [String],
    pub(crate) trace: Option<&'a str>,
    /// The rule that decided.
    pub(crate) rule: Option<&'a str>,
}

/// Something that was sent, of which at least the size is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Payload<'a> {
    pub(crate) bytes: usize,
    /// A keyed digest: two that are the same look the same, and nobody without the key can guess.
    pub(crate) digest: Option<[u8; 16]>,
    /// The text without secrets, where that is asked for. JSON.
    pub(crate) masked: Option<&'a str>,
}

/// Something else that matters to security.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct EventRecord<'a> {
    /// `unauthorized`, `drift`, `reload`, …
    pub(crate) event: &'a str,
    pub(crate) who: Option<&'a str>,
    pub(crate) group: Option<&'a str>,
    pub(crate) client: Option<IpAddr>,
    /// What it is about: a tool, a path.
    pub(crate) subject: Option<&'a str>,
    /// The hash of a definition as it was, and as it is.
    pub(crate) before: Option<&'a str>,
    pub(crate) after: Option<&'a str>,
    pub(crate) cause: Option<&'a str>,
    /// How often, where several are told at once.
    pub(crate) times: Option<u64>,
}

impl CallRecord<'_> {
    /// Adds what follows the place in the chain, up to the closing brace.
    pub(crate) fn write(&self, ts: &[u8], out: &mut Vec<u8>) {
        time(ts, out);
        text(out, b",\"call\":", self.id);
        text(out, b",\"who\":", self.who);
        text(out, b",\"group\":", self.group);
        if let Some(client) = self.client {
            address(out, client);
        }
        maybe(out, b",\"method\":", self.method);
        text(out, b",\"tool\":", self.tool);
        maybe(out, b",\"source\":", self.source);
        maybe(out, b",\"definition\":", self.definition);
        self.arguments.write(b",\"arguments\":", out);
        text(out, b",\"outcome\":", self.outcome);
        maybe(out, b",\"blame\":", self.blame.map(blame));
        if let Some(code) = self.code {
            out.extend_from_slice(b",\"code\":");
            if code < 0 {
                out.push(b'-');
            }
            number(out, code.unsigned_abs());
        }
        maybe(out, b",\"cause\":", self.cause);
        out.extend_from_slice(b",\"ms\":");
        number(out, self.micros / 1000);
        let rest = self.micros % 1000;
        let digit = |it: u64| b'0' + u8::try_from(it % 10).unwrap_or_default();
        out.extend_from_slice(&[b'.', digit(rest / 100), digit(rest / 10), digit(rest)]);
        if 0 < self.retries {
            out.extend_from_slice(b",\"retries\":");
            number(out, self.retries.into());
        }
        maybe(out, b",\"cache\":", self.cache);
        self.result.write(b",\"result\":", out);
        for (at, id) in self.artifacts.iter().take(MOST_ARTIFACTS).enumerate() {
            text(out, if at == 0 { b",\"artifacts\":[" } else { b"," }, id);
        }
        if !self.artifacts.is_empty() {
            out.push(b']');
        }
        maybe(out, b",\"trace\":", self.trace);
        maybe(out, b",\"rule\":", self.rule);
        out.push(b'}');
    }
}

impl Payload<'_> {
    fn write(&self, key: &[u8], out: &mut Vec<u8>) {
        out.extend_from_slice(key);
        out.extend_from_slice(b"{\"bytes\":");
        number(out, self.bytes as u64);
        if let Some(digest) = self.digest {
            out.extend_from_slice(b",\"digest\":\"");
            for byte in digest {
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
            out.push(b'"');
        }
        if let Some(masked) = self.masked {
            out.extend_from_slice(b",\"text\":");
            quoted(out, masked, MOST_PAYLOAD);
        }
        out.push(b'}');
    }
}

impl EventRecord<'_> {
    /// Adds what follows the place in the chain, up to the closing brace.
    pub(crate) fn write(&self, ts: &[u8], out: &mut Vec<u8>) {
        time(ts, out);
        text(out, b",\"event\":", self.event);
        maybe(out, b",\"who\":", self.who);
        maybe(out, b",\"group\":", self.group);
        if let Some(client) = self.client {
            address(out, client);
        }
        maybe(out, b",\"subject\":", self.subject);
        maybe(out, b",\"before\":", self.before);
        maybe(out, b",\"after\":", self.after);
        maybe(out, b",\"cause\":", self.cause);
        if let Some(times) = self.times {
            out.extend_from_slice(b",\"times\":");
            number(out, times);
        }
        out.push(b'}');
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

fn time(ts: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(b"\"ts\":\"");
    out.extend_from_slice(ts);
    out.push(b'"');
}

fn address(out: &mut Vec<u8>, client: IpAddr) {
    use std::io::Write;
    out.extend_from_slice(b",\"client\":\"");
    // Writing into memory cannot fail.
    write!(out, "{client}").ok();
    out.push(b'"');
}

fn text(out: &mut Vec<u8>, key: &[u8], value: &str) {
    out.extend_from_slice(key);
    quoted(out, value, MOST_TEXT);
}

fn maybe(out: &mut Vec<u8>, key: &[u8], value: Option<&str>) {
    if let Some(value) = value {
        text(out, key, value);
    }
}

/// A number in digits.
pub(crate) fn number(out: &mut Vec<u8>, mut value: u64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + u8::try_from(value % 10).unwrap_or_default();
        value /= 10;
        if value == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// A JSON string of at most so many characters.
fn quoted(out: &mut Vec<u8>, value: &str, most: usize) {
    out.push(b'"');
    let mut rest = value;
    if most < rest.len()
        && let Some((end, _)) = rest.char_indices().nth(most)
    {
        rest = &rest[..end];
    }
    let cut = rest.len() < value.len();
    let plain = |it: &u8| matches!(it, b' '..=b'~') & (*it != b'"') & (*it != b'\\');
    // Nearly always all of it, which is found out quickly where nobody asks for the place.
    if rest.as_bytes().iter().fold(true, |all, it| all & plain(it)) {
        out.extend_from_slice(rest.as_bytes());
        rest = "";
    }
    while !rest.is_empty() {
        let end = rest.bytes().position(|it| !plain(&it)).unwrap_or(rest.len());
        out.extend_from_slice(&rest.as_bytes()[..end]);
        rest = &rest[end..];
        let Some(c) = rest.chars().next() else { break };
        character(out, c);
        rest = &rest[c.len_utf8()..];
    }
    if cut {
        out.extend_from_slice("…".as_bytes());
    }
    out.push(b'"');
}

fn character(out: &mut Vec<u8>, c: char) {
    match c {
        '"' | '\\' => out.extend_from_slice(&[b'\\', u8::try_from(c).unwrap_or(b'"')]),
        _ if c.is_control() || is_unseen(c) => {
            for unit in c.encode_utf16(&mut [0; 2]) {
                let nibble = |shift: u16| HEX[usize::from(*unit >> shift & 15)];
                let digits = [12, 8, 4, 0].map(nibble);
                out.extend_from_slice(b"\\u");
                out.extend_from_slice(&digits);
            }
        }
        _ => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Characters that show nothing, or turn round what stands beside them.
fn is_unseen(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn record<'a>(tool: &'a str, artifacts: &'a [String]) -> CallRecord<'a> {
        CallRecord {
            id: "0a1b",
            who: "token:12345678",
            group: "guest",
            client: "::1".parse().ok(),
            method: None,
            tool,
            source: Some("db"),
            definition: Some("ff"),
            arguments: Payload { bytes: 12, digest: Some([0xab; 16]), masked: None },
            outcome: "tool_error",
            blame: Some(Blame::Upstream),
            code: Some(-32602),
            cause: Some("no"),
            micros: 1_234_056,
            retries: 2,
            cache: Some("miss"),
            result: Payload { bytes: 5, ..Payload::default() },
            artifacts,
            trace: Some("00-1-2-01"),
            rule: Some("validate"),
        }
    }

    fn written(record: &CallRecord<'_>) -> String {
        let mut out = vec![b'{'];
        record.write(b"2026-01-31T12:00:00.000Z", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_call_is_one_line_of_json() {
        let artifacts = ["a1".to_owned(), "a2".to_owned()];
        let line = written(&record("mcp__db__query", &artifacts));
        insta::assert_snapshot!(line, @r#"{"ts":"2026-01-31T12:00:00.000Z","call":"0a1b","who":"token:12345678","group":"guest","client":"::1","tool":"mcp__db__query","source":"db","definition":"ff","arguments":{"bytes":12,"digest":"abababababababababababababababab"},"outcome":"tool_error","blame":"upstream","code":-32602,"cause":"no","ms":1234.056,"retries":2,"cache":"miss","result":{"bytes":5},"artifacts":["a1","a2"],"trace":"00-1-2-01","rule":"validate"}"#);
    }

    #[test]
    fn whatever_a_name_holds_the_line_stays_one_and_is_read_back() {
        let names = [
            "a\nb\r\u{1b}[2J\u{9b}\0\u{7f}",
            "\"}\n{\"seq\":1,\"forged\":true}",
            "\\\"\\",
            "\u{202e}\u{e0041}\u{2028}é😀\u{feff}",
            "",
        ];
        for name in names {
            let line = written(&record(name, &[]));
            assert!(line.chars().all(|c| !c.is_control() && !is_unseen(c)), "{line:?}");
            let value: Value = serde_json::from_str(&line).unwrap();
            assert_eq!(value["tool"], name);
            assert_eq!(value.as_object().unwrap().len(), 19);
        }
    }

    #[test]
    fn texts_are_cut() {
        let name = "é".repeat(100_000);
        let value: Value = serde_json::from_str(&written(&record(&name, &[]))).unwrap();
        assert_eq!(value["tool"], "é".repeat(MOST_TEXT) + "…");
        let name = "é".repeat(MOST_TEXT);
        let value: Value = serde_json::from_str(&written(&record(&name, &[]))).unwrap();
        assert_eq!(value["tool"], name);
    }

    #[test]
    fn numbers_are_written_as_they_are() {
        for value in [0, 9, 10, 1234, u64::MAX] {
            let mut out = Vec::new();
            number(&mut out, value);
            assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
        for code in [0, 7, -32_800, i64::MIN, i64::MAX] {
            let record = CallRecord { code: Some(code), ..record("x", &[]) };
            let value: Value = serde_json::from_str(&written(&record)).unwrap();
            assert_eq!(value["code"].as_i64(), Some(code));
        }
    }
}
