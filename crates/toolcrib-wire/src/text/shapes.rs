//! What looks like a secret, whoever's it is: tokens of known services, keys, passwords in addresses, assignments.
//!
//! One automaton finds where a shape may begin, and a few lines of code see whether it does. Either they bring a place
//! that is taken out, or they look at a bounded piece of text, or at one that no other beginning looks at; that is what
//! keeps all of it linear. Hashes, ids and pictures in base64 have no such beginnings and stay.

use std::{ops::Range, sync::LazyLock};

use aho_corasick::{AhoCorasick, Input, MatchKind};
use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::mask::MASK;

mod assigned;

/// How a secret begins, and what it takes for the rest to make it one.
struct Shape {
    begin: &'static str,
    rest: Rest,
}

enum Rest {
    /// So many characters of a kind, and then none of them.
    Run { of: fn(u8) -> bool, least: usize, most: usize },
    /// So many letters, digits and dashes, and among them a part that nobody would think up.
    Mixed { least: usize },
    /// A JSON web token.
    Jwt,
    /// A private key in lines of base64.
    Pem,
    /// A token behind its scheme.
    Bearer,
    /// User and password behind their scheme.
    Basic,
    /// User and password in an address.
    Userinfo,
    /// A value behind a name that sounds secret.
    Assigned,
}

const fn run(begin: &'static str, of: fn(u8) -> bool, least: usize) -> Shape {
    Shape { begin, rest: Rest::Run { of, least, most: usize::MAX } }
}

const fn exact(begin: &'static str, of: fn(u8) -> bool, length: usize) -> Shape {
    Shape { begin, rest: Rest::Run { of, least: length, most: length } }
}

const fn mixed(begin: &'static str, least: usize) -> Shape {
    Shape { begin, rest: Rest::Mixed { least } }
}

const fn assigned(begin: &'static str) -> Shape {
    Shape { begin, rest: Rest::Assigned }
}

const SHAPES: &[Shape] = &[
    // Ours.
    exact("tc_", dashed, 43),
    // GitHub.
    run("ghp_", word, 30),
    run("gho_", word, 30),
    run("ghu_", word, 30),
    run("ghs_", word, 30),
    run("ghr_", word, 30),
    run("github_pat_", word, 30),
    // GitLab.
    run("glpat-", dotted, 20),
    run("gldt-", dotted, 20),
    run("glrt-", dotted, 20),
    run("glptt-", dotted, 20),
    run("glcbt-", dotted, 20),
    // Models.
    run("sk-ant-", dashed, 20),
    mixed("sk-", 20),
    mixed("xai-", 40),
    mixed("pplx-", 40),
    run("gsk_", letter, 40),
    run("hf_", letter, 30),
    // AWS.
    exact("AKIA", upper, 16),
    exact("ASIA", upper, 16),
    // Google.
    exact("AIza", dashed, 35),
    run("ya29.", dashed, 30),
    run("GOCSPX-", dashed, 24),
    // Slack.
    run("xoxb-", dashed, 20),
    run("xoxa-", dashed, 20),
    run("xoxp-", dashed, 20),
    run("xoxr-", dashed, 20),
    run("xoxs-", dashed, 20),
    run("xoxe-", dashed, 20),
    run("xoxe.", dotted, 20),
    run("xoxc-", dashed, 20),
    run("xoxd-", dashed, 20),
    run("xapp-", dashed, 24),
    run("hooks.slack.com/services/", path, 20),
    // Stripe, and webhooks that are signed as ours are.
    run("sk_live_", letter, 16),
    run("sk_test_", letter, 16),
    run("rk_live_", letter, 16),
    run("rk_test_", letter, 16),
    run("whsec_", base64, 20),
    // Packages.
    run("npm_", letter, 36),
    run("pypi-", dashed, 50),
    // Others.
    run("dop_v1_", letter, 60),
    run("shpat_", letter, 32),
    run("lin_api_", letter, 32),
    run("SG.", dotted, 60),
    run("AGE-SECRET-KEY-1", upper, 50),
    // Not of one service.
    Shape { begin: "eyJ", rest: Rest::Jwt },
    Shape { begin: "-----BEGIN ", rest: Rest::Pem },
    Shape { begin: "bearer ", rest: Rest::Bearer },
    Shape { begin: "basic ", rest: Rest::Basic },
    Shape { begin: "://", rest: Rest::Userinfo },
    Shape { begin: ":\\/\\/", rest: Rest::Userinfo },
    // A word that names of secrets hold; the whole name decides.
    assigned("password"),
    assigned("passwd"),
    assigned("passphrase"),
    assigned("pwd"),
    assigned("_pass"),
    assigned("secret"),
    assigned("token"),
    assigned("credential"),
    assigned("authorization"),
    assigned("cookie"),
    assigned("session_id"),
    assigned("session-id"),
    assigned("sessionid"),
    assigned("api_key"),
    assigned("api-key"),
    assigned("apikey"),
    assigned("access_key"),
    assigned("accesskey"),
    assigned("private_key"),
    assigned("privatekey"),
];

static BEGINNINGS: LazyLock<Option<AhoCorasick>> = LazyLock::new(|| {
    let mut builder = AhoCorasick::builder();
    builder.match_kind(MatchKind::LeftmostLongest).ascii_case_insensitive(true);
    builder.build(SHAPES.iter().map(|it| it.begin)).ok()
});

/// Where secrets stand in a text, in order. What is masked already is not told again.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // The list above is our own, and small enough for any automaton.
    let Some(beginnings) = BEGINNINGS.as_ref() else { return found };
    let bytes = text.as_bytes();
    let mut at = 0;
    let mut barren = Barren::default();
    while let Some(begin) = beginnings.find(Input::new(text).range(at..)) {
        let shape = &SHAPES[begin.pattern().as_usize()];
        let place = shape.rest.place(shape.begin, bytes, begin.range(), &mut barren);
        // A place before `at` would take out what has been taken out.
        match place.filter(|it| at <= it.start && &bytes[it.clone()] != MASK.as_bytes()) {
            Some(place) => {
                at = place.end;
                found.push(place);
            }
            None => at = next_char(text, begin.start()),
        }
    }
    found
}

/// Up to where a text is known to hold no more of a kind. A run in which every word begins anew is looked through once.
#[derive(Default)]
struct Barren {
    mixed: usize,
    jwt: usize,
    names: usize,
}

/// Whether a text is a token of a known shape, from end to end.
///
/// ```
/// use toolcrib_wire::text::is_token;
///
/// assert!(is_token(&format!("ghp_{}", "a1".repeat(18))));
/// assert!(!is_token("d41d8cd98f00b204e9800998ecf8427e"));
/// ```
pub fn is_token(text: &str) -> bool {
    matches!(find(text).as_slice(), [place] if *place == (0..text.len()))
}

fn next_char(text: &str, at: usize) -> usize {
    text.ceil_char_boundary(at + 1)
}

impl Rest {
    /// What is to be taken out, if this is a secret.
    fn place(
        &self,
        written: &str,
        text: &[u8],
        begin: Range<usize>,
        barren: &mut Barren,
    ) -> Option<Range<usize>> {
        let here = &text[begin.clone()];
        let exact = here == written.as_bytes();
        let free = stands_free(text, begin.start);
        let rest = &text[begin.end..];
        match self {
            Self::Run { of, least, most } if exact && free => {
                let length = rest.iter().take(most.saturating_add(1)).take_while(|it| of(**it));
                let length = length.count();
                (*least <= length && length <= *most).then(|| begin.start..begin.end + length)
            }
            Self::Mixed { least } if exact && free && barren.mixed < begin.end => {
                let length = length(rest, dashed);
                if has_mixed_part(&rest[..length]) {
                    return (*least <= length).then(|| begin.start..begin.end + length);
                }
                barren.mixed = begin.end + length;
                None
            }
            Self::Jwt if exact && free && barren.jwt < begin.end => {
                let (length, whole) = jwt(rest);
                if whole {
                    return Some(begin.start..begin.end + length);
                }
                barren.jwt = begin.end + length;
                None
            }
            Self::Pem if exact => pem(rest).map(|length| begin.start..begin.end + length),
            Self::Bearer if free => {
                let length = length(rest, credential);
                is_random_run(&rest[..length]).then(|| begin.end..begin.end + length)
            }
            Self::Basic if free => {
                let length = length(rest, base64);
                is_user_and_password(&rest[..length]).then(|| begin.end..begin.end + length)
            }
            Self::Userinfo => userinfo(text, &begin),
            Self::Assigned if barren.names < begin.end => {
                assigned::value(text, &begin, &mut barren.names)
            }
            _ => None,
        }
    }
}

fn letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn upper(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn word(byte: u8) -> bool {
    letter(byte) || byte == b'_'
}

fn dashed(byte: u8) -> bool {
    word(byte) || byte == b'-'
}

fn dotted(byte: u8) -> bool {
    dashed(byte) || byte == b'.'
}

fn path(byte: u8) -> bool {
    letter(byte) || byte == b'/'
}

fn base64(byte: u8) -> bool {
    letter(byte) || b"+/=-_".contains(&byte)
}

fn credential(byte: u8) -> bool {
    letter(byte) || b"-._~+/=".contains(&byte)
}

fn length(text: &[u8], of: fn(u8) -> bool) -> usize {
    text.iter().take_while(|it| of(**it)).count()
}

/// Whether nothing stands before this place that would make it the middle of a word.
fn stands_free(text: &[u8], at: usize) -> bool {
    let before = &text[..at];
    let Some(last) = before.last() else { return true };
    if !letter(*last) {
        return true;
    }
    // The last letter may be part of an escape: `\n`, `\u000a`, `%20`, or a colour of the terminal.
    let escaped = |back: usize, mark: &[u8]| {
        at.checked_sub(back).is_some_and(|from| text[from..].starts_with(mark))
    };
    escaped(2, b"\\")
        || escaped(6, b"\\u")
        || escaped(3, b"%")
        || *last == b'm' && ends_colour(before)
}

fn ends_colour(before: &[u8]) -> bool {
    let digits = |it: &&u8| it.is_ascii_digit() || **it == b';';
    let inside = before.iter().rev().skip(1).take(12).take_while(digits).count();
    before[..before.len() - 1 - inside].ends_with(b"\x1b[")
}

/// A part of letters and digits, both of them, that is longer than words with numbers are.
fn has_mixed_part(text: &[u8]) -> bool {
    let is_mixed = |part: &[u8]| {
        10 <= part.len()
            && part.iter().any(u8::is_ascii_digit)
            && part.iter().any(u8::is_ascii_alphabetic)
    };
    text.split(|it| !letter(*it)).any(is_mixed)
}

/// Whether a text is rather a token than a word: letters and digits, or many letters of both cases.
pub fn is_random(text: &str) -> bool {
    is_random_run(text.as_bytes())
}

fn is_random_run(text: &[u8]) -> bool {
    let has = |what: fn(&u8) -> bool| text.iter().any(what);
    let both_cases = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    match text.len() {
        0..8 => false,
        8..20 => has(u8::is_ascii_digit) && has(u8::is_ascii_alphabetic),
        _ => has(u8::is_ascii_digit) || both_cases,
    }
}

/// How much of `rest` was looked at for a token whose first letters stand before it, and whether it is one.
fn jwt(rest: &[u8]) -> (usize, bool) {
    let mut parts = 1;
    let first = length(rest, dashed);
    let mut end = first;
    while 8 <= first && rest.get(end) == Some(&b'.') && parts < 5 {
        let part = length(&rest[end + 1..], dashed);
        // Only the signature may be missing.
        if part < 8 && parts < 2 {
            break;
        }
        end += 1 + part;
        parts += 1;
    }
    // What begins in the first part fails as the whole did; the second may begin a token of its own.
    if 3 <= parts { (end, true) } else { (first, false) }
}

/// How much of `rest` belongs to the key whose first line begins before it.
fn pem(rest: &[u8]) -> Option<usize> {
    let label = rest.iter().take(40).take_while(|it| upper(**it) || **it == b' ').count();
    let ends = [&b"PRIVATE KEY"[..], b"PRIVATE KEY BLOCK"];
    if !ends.iter().any(|it| rest[..label].ends_with(it)) || !rest[label..].starts_with(b"-----") {
        return None;
    }
    let body = |byte: u8| base64(byte) || byte.is_ascii_whitespace() || b"\\:,.()".contains(&byte);
    let mut end = label + 5;
    while end < rest.len() && body(rest[end]) && !rest[end..].starts_with(b"-----") {
        end += 1;
    }
    if rest[end..].starts_with(b"-----END ") {
        let last = &rest[end + 9..];
        let label = last.iter().take(40).take_while(|it| upper(**it) || **it == b' ').count();
        return Some(end + 9 + label + if last[label..].starts_with(b"-----") { 5 } else { 0 });
    }
    // Cut off. Whether this is a key, or only speaks of one, its first letters tell.
    let first = rest[label + 5..end].split(|it| !base64(*it)).find(|it| 1 < it.len());
    first.filter(|it| 16 <= it.len()).map(|_| end)
}

/// Whether this is base64 of `user:password`.
fn is_user_and_password(text: &[u8]) -> bool {
    let padding = DecodePaddingMode::Indifferent;
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(padding);
    let engine =
        GeneralPurpose::new(&alphabet::STANDARD, config.with_decode_allow_trailing_bits(true));
    if text.len() < 4 {
        return false;
    }
    let Ok(decoded) = engine.decode(text) else { return false };
    let Ok(decoded) = String::from_utf8(decoded) else { return false };
    decoded.contains(':') && !decoded.chars().any(char::is_control)
}

/// The password in `scheme://user:password@host`, or a user that is a token.
fn userinfo(text: &[u8], begin: &Range<usize>) -> Option<Range<usize>> {
    if !text[..begin.start].last().is_some_and(|it| letter(*it)) {
        return None;
    }
    let rest = &text[begin.end..];
    let inside = |it: &&u8| !it.is_ascii_whitespace() && !b"/?#\"'<>`\\".contains(it);
    let authority = &rest[..rest.iter().take_while(inside).count()];
    let at = authority.iter().rposition(|it| *it == b'@')?;
    let user = authority[..at].iter().position(|it| *it == b':');
    match user {
        Some(user) => (user + 1 < at).then(|| begin.end + user + 1..begin.end + at),
        None => (16 <= at && is_random_run(&authority[..at])).then(|| begin.end..begin.end + at),
    }
}
