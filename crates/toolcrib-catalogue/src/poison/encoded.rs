//! Text inside text: base64, hexadecimal, percent signs, entities, escapes, shifted letters.
//!
//! A hash or a key is no text and says nothing; what decodes to sentences was written for a reader
//! that decodes. Whatever comes out is looked at for phrases, once: no text is decoded twice.

use std::borrow::Cow;

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

use super::{Kind, Signal, phrases, words::Words};

/// The shortest run that is worth decoding, in characters.
const RUN: usize = 24;
/// A run of base64 longer than this is odd whatever it holds.
const LONG: usize = 600;
/// How much of a run is decoded.
const DECODED: usize = 16 * 1024;
/// How many runs of one text are decoded.
const RUNS: usize = 256;

const ORDERS: &str = "hides phrases addressed to the model in encoded text";
const TEXT: &str = "holds encoded text";
const BLOB: &str = "holds a long encoded blob";

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);

pub(super) fn look(text: &str, mut tell: impl FnMut(Signal<'_>)) {
    let inside = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '-' | '_');
    let runs = text.split(|c| !inside(c)).filter(|it| it.len() >= RUN);
    for run in runs.take(RUNS) {
        look_run(run, &mut tell);
    }
    for (mark, decode) in ESCAPES {
        if text.matches(mark).take(6).count() == 6 {
            let decoded = decode(phrases::head(text, DECODED));
            let weight = if mark == "%" { 0.3 } else { 0.5 };
            judge(&decoded, text, weight, &mut tell);
        }
    }
    look_shifted(text, &mut tell);
}

fn look_run(run: &str, tell: &mut impl FnMut(Signal<'_>)) {
    if run.bytes().all(|it| it.is_ascii_hexdigit()) {
        let decoded = unhex(run);
        return judge(&decoded, run, 0.5, tell);
    }
    let mixed = run.bytes().any(|it| it.is_ascii_uppercase())
        && run.bytes().any(|it| it.is_ascii_lowercase());
    // A path or a long name is made of the same letters.
    let separators = run.matches(['/', '-', '_']).count();
    if !mixed || separators * 8 > run.len() {
        return;
    }
    let standard: Vec<u8> = run
        .bytes()
        .take(DECODED)
        .map(|it| match it {
            b'-' => b'+',
            b'_' => b'/',
            it => it,
        })
        .collect();
    // A run may have lost its last letters to a neighbour; whole groups of four decode anyway.
    let whole = standard.get(..standard.len() / 4 * 4).unwrap_or_default();
    let decoded = BASE64.decode(&standard).or_else(|_| BASE64.decode(whole)).unwrap_or_default();
    let decoded = String::from_utf8_lossy(&decoded);
    if run.len() > LONG {
        tell(Signal {
            kind: Kind::Encoded,
            says: BLOB,
            weight: 0.55,
            evidence: phrases::head(run, 80),
        });
    }
    // Tokens of the web are JSON in base64, and examples of them are common.
    let weight = if decoded.starts_with('{') { 0.2 } else { 0.5 };
    judge(&decoded, run, weight, tell);
}

/// Says what is wrong with `decoded`, if it is text. `weight` is how odd text is there at all.
fn judge(decoded: &str, run: &str, weight: f64, tell: &mut impl FnMut(Signal<'_>)) {
    if !is_text(decoded) {
        return;
    }
    let found = worst(decoded);
    if found >= 0.3 {
        let weight = 0.6 + found * 0.3;
        return tell(Signal { kind: Kind::Encoded, says: ORDERS, weight, evidence: decoded });
    }
    // A short greeting is what examples of encoders hold.
    if decoded.split_whitespace().count() > 5 && decoded != run {
        tell(Signal { kind: Kind::Encoded, says: TEXT, weight, evidence: decoded });
    }
}

/// The weight of the worst phrase in `text`.
fn worst(text: &str) -> f64 {
    let mut worst = 0.0_f64;
    phrases::look(&Words::of(text), |it| worst = worst.max(it.weight));
    worst
}

/// Whether nearly all of it is what people write, with words in it.
fn is_text(decoded: &str) -> bool {
    let all = decoded.chars().count();
    let fine = decoded
        .chars()
        .filter(|it| it.is_alphanumeric() || matches!(it, ' '..='~' | '\n' | '\t'))
        .count();
    let strange = decoded.chars().filter(|it| *it == '\u{fffd}').count();
    all >= 12 && fine * 20 >= all * 19 && strange * 20 < all && decoded.contains(' ')
}

fn unhex(run: &str) -> String {
    let digit =
        |it: u8| char::from(it).to_digit(16).and_then(|it| u8::try_from(it).ok()).unwrap_or(0);
    let pairs = run.as_bytes().chunks_exact(2).take(DECODED);
    let bytes: Vec<u8> = pairs.map(|it| digit(it[0]) << 4 | digit(it[1])).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

type Decode = fn(&str) -> String;

/// Ways to write one character by its number, and the mark each begins with.
const ESCAPES: [(&str, Decode); 4] = [
    ("%", |it| numbered(it, "%", 16, 2, "")),
    ("\\x", |it| numbered(it, "\\x", 16, 2, "")),
    ("\\u", |it| numbered(it, "\\u", 16, 4, "")),
    ("&#", |it| numbered(&it.replace("&#x", "&#0x"), "&#", 10, 7, ";")),
];

/// `text` with every number after `mark` as the character it stands for. A number has `digits`
/// digits, or as many as stand before `end`.
fn numbered(text: &str, mark: &str, radix: u32, digits: usize, end: &str) -> String {
    let mut parts = text.split(mark);
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let size = if end.is_empty() {
            digits
        } else {
            part.find(end).filter(|it| *it <= digits).unwrap_or(0)
        };
        let written = part.get(..size).unwrap_or_default();
        let number = match written.strip_prefix("0x") {
            Some(it) => u32::from_str_radix(it, 16),
            None => u32::from_str_radix(written, radix),
        };
        match number {
            Ok(number) if digits == 2 => bytes.push(u8::try_from(number).unwrap_or(b'?')),
            Ok(number) => {
                bytes.extend(char::from_u32(number).unwrap_or('?').to_string().as_bytes());
            }
            Err(_) => bytes.extend_from_slice(mark.as_bytes()),
        }
        let rest = if number.is_ok() { part.get(size + end.len()..) } else { Some(part) };
        bytes.extend_from_slice(rest.unwrap_or_default().as_bytes());
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Letters moved by thirteen places, or text that runs backwards. Cheap signs first: the common
/// little words of English, so dressed.
fn look_shifted(text: &str, tell: &mut impl FnMut(Signal<'_>)) {
    let head = phrases::head(text, DECODED);
    let lower = head.to_ascii_lowercase();
    let holds = |words: [&str; 6]| {
        lower.split_whitespace().filter(|it| words.contains(it)).take(2).count() == 2
    };
    let decoded: Cow<'_, str> = if holds(["gur", "naq", "lbh", "gb", "abg", "hfre"]) {
        Cow::Owned(head.chars().map(rot13).collect())
    } else if holds(["eht", "dna", "uoy", "ton", "resu", "lla"]) {
        Cow::Owned(head.chars().rev().collect())
    } else {
        return;
    };
    if worst(&decoded) >= 0.3 {
        tell(Signal { kind: Kind::Encoded, says: ORDERS, weight: 0.85, evidence: &decoded });
    }
}

fn rot13(c: char) -> char {
    let turn = |base: u8, c: char| {
        u8::try_from(c).map_or(c, |it| char::from((it - base + 13) % 26 + base))
    };
    match c {
        'a'..='z' => turn(b'a', c),
        'A'..='Z' => turn(b'A', c),
        _ => c,
    }
}
