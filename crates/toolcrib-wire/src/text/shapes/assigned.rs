//! `password=…`, `"api_key": "…"`, `Cookie: …`: a name that sounds secret, and a value.

use std::ops::Range;

use super::{credential, is_random_run, letter};
use crate::text::{mask::MASK, names::names_secret};

/// What may stand between a name and its value.
const GAP: usize = 4;

/// What says how a credential is meant, and is none.
const SCHEMES: [&str; 7] =
    ["bearer ", "basic ", "token ", "digest ", "apikey ", "negotiate ", "bot "];

/// Values that say that there is none.
const NOTHING: [&str; 6] = ["null", "none", "true", "false", "undefined", "nil"];

/// The value that belongs to the name in which `found` stands, if there is one and the name is a secret's.
/// `barren` becomes the end of the name: whatever else begins in it has the same name and the same value.
pub(super) fn value(text: &[u8], found: &Range<usize>, barren: &mut usize) -> Option<Range<usize>> {
    let part = |it: &&u8| letter(**it) || matches!(**it, b'_' | b'-');
    let before = text[..found.start].iter().rev().take_while(part).count();
    let after = text[found.end..].iter().take_while(part).count();
    let name = found.start - before..found.end + after;
    *barren = name.end;
    if !names_secret(std::str::from_utf8(&text[name.clone()]).ok()?) {
        return None;
    }
    let mut at = skip_colours(text, name.end);
    let quoted_name = quote(text, at);
    at = skip_blanks(text, skip_colours(text, quoted_name.as_ref().map_or(at, |it| it.end)));
    let sign = *text.get(at)?;
    let doubled = text.get(at + 1) == Some(&sign);
    at = match sign {
        // `==` compares, and `::` is a path.
        b':' | b'=' if doubled => return None,
        b'=' if text.get(at + 1) == Some(&b'>') => at + 2,
        b':' | b'=' => at + 1,
        b'%' if text[at..].starts_with(b"%3D") || text[at..].starts_with(b"%3d") => at + 3,
        _ => return None,
    };
    at = skip_blanks(text, skip_colours(text, at));
    let begins_query = name.start.checked_sub(1).is_some_and(|it| b"?&".contains(&text[it]));
    let place = match quote(text, at) {
        Some(quote) => {
            let end = closing(text, &quote);
            skip_scheme(text, quote.end)..end
        }
        None => {
            let cookie = text[name.clone()].to_ascii_lowercase().ends_with(b"cookie");
            let from = skip_scheme(text, at);
            let sure = from != at || begins_query || sign != b':' || quoted_name.is_some();
            bare(text, from, cookie && sign == b':', sure)?
        }
    };
    let value = &text[place.clone()];
    let says = !value.is_empty() && value != MASK.as_bytes() && !is_reference(value);
    says.then_some(place)
}

/// A quote, with the backslashes that escape it.
struct Quote {
    mark: u8,
    escapes: usize,
    end: usize,
}

fn quote(text: &[u8], at: usize) -> Option<Quote> {
    let escapes = text.get(at..)?.iter().take(GAP * 4).take_while(|it| **it == b'\\').count();
    let mark = *text.get(at + escapes)?;
    matches!(mark, b'"' | b'\'').then_some(Quote { mark, escapes, end: at + escapes + 1 })
}

/// Where the string ends that this quote begins: before the next such quote, with its escapes; else with the line.
fn closing(text: &[u8], quote: &Quote) -> usize {
    let mut escapes = 0;
    for (at, byte) in text.iter().enumerate().skip(quote.end) {
        match *byte {
            b'\\' => {
                escapes += 1;
                continue;
            }
            b'\n' => return at,
            mark if mark == quote.mark => match quote.escapes {
                0 if escapes % 2 == 0 => return at,
                0 => {}
                outer if escapes <= outer => return at - escapes,
                _ => {}
            },
            _ => {}
        }
        escapes = 0;
    }
    text.len()
}

/// A value without quotes. Where only a colon stands before it, it must look like a secret: prose has colons too.
fn bare(text: &[u8], from: usize, whole_line: bool, sure: bool) -> Option<Range<usize>> {
    let rest = text.get(from..)?;
    if whole_line {
        let length = rest.iter().take_while(|it| !b"\r\n\"".contains(it)).count();
        return Some(from..from + length);
    }
    let ends = |it: &u8| {
        it.is_ascii_whitespace() || it.is_ascii_control() || b"\"'`,;&()<>{}[]|\\".contains(it)
    };
    let length = if sure {
        rest.iter().take_while(|it| !ends(it)).count()
    } else {
        super::length(rest, |it| credential(it) && it != b'=')
    };
    let value = &rest[..length];
    let nothing = NOTHING.iter().any(|it| value.eq_ignore_ascii_case(it.as_bytes()));
    let fits = if sure { !nothing } else { is_random_run(value) };
    fits.then(|| from..from + length)
}

/// `${NAME}`: where a value comes from, and not what it is.
fn is_reference(value: &[u8]) -> bool {
    let name =
        |it: &[u8]| !it.is_empty() && it.iter().all(|it| letter(*it) || b"_:.-".contains(it));
    value.strip_prefix(b"${").and_then(|it| it.strip_suffix(b"}")).is_some_and(name)
}

fn skip_blanks(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    at + rest.iter().take(GAP).take_while(|it| matches!(it, b' ' | b'\t')).count()
}

fn skip_scheme(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let begins = |it: &&&str| {
        rest.get(..it.len()).is_some_and(|here| here.eq_ignore_ascii_case(it.as_bytes()))
    };
    at + SCHEMES.iter().find(begins).map_or(0, |it| it.len())
}

/// Colours of the terminal, which logs put between a name and its value.
fn skip_colours(text: &[u8], mut at: usize) -> usize {
    for _ in 0..GAP {
        let rest = text.get(at..).unwrap_or_default();
        let Some(inside) = rest.strip_prefix(b"\x1b[") else { break };
        let digits = inside.iter().take(12).take_while(|it| it.is_ascii_digit() || **it == b';');
        let digits = digits.count();
        if inside.get(digits) != Some(&b'm') {
            break;
        }
        at += digits + 3;
    }
    at
}
