//! Keys that are ours to some readers and strangers to others.
//!
//! There are readers of JSON that take `Name` for `name`, and fold even the long s and the sign for kelvin (Go's
//! does, by Unicode's simple folding, in which no other letters become ASCII). What we checked under a key must
//! not be overruled, at a server that reads so, by what stands beside it.

use std::borrow::Cow;

use crate::json::{skip_space, skip_string, skip_value, unescape};

/// The first key of a scanned object that is not one of `keys`, and that a careless reader takes for one.
///
/// ```
/// use toolcrib_wire::misspelt;
///
/// let text = br#"{"name":"a","Name":"b"}"#;
/// assert_eq!(misspelt(text, &["name"]).as_deref(), Some("Name"));
/// assert_eq!(misspelt(br#"{"name":"a","names":1}"#, &["name"]), None);
/// ```
pub fn misspelt<'a>(text: &'a [u8], keys: &[&str]) -> Option<Cow<'a, str>> {
    let mut at = skip_space(text, 0);
    if text.get(at) != Some(&b'{') {
        return None;
    }
    at = skip_space(text, at + 1);
    while text.get(at) == Some(&b'"') {
        let end = skip_string(text, at);
        let inside = text.get(at + 1..end - 1)?;
        let plain = inside.is_ascii() && !inside.contains(&b'\\');
        // Nearly all keys are plain, and are not copied.
        let key = if plain { String::from_utf8_lossy(inside) } else { unescape(inside) };
        let alike = if plain { is_alike(&key, keys) } else { is_alike(&folded(&key), keys) };
        if alike && !keys.contains(&&*key) {
            return Some(key);
        }
        let begin = skip_space(text, skip_space(text, end) + 1);
        at = skip_space(text, skip_space(text, skip_value(text, begin)) + 1);
    }
    None
}

fn is_alike(key: &str, keys: &[&str]) -> bool {
    keys.iter().any(|it| key.eq_ignore_ascii_case(it))
}

fn folded(key: &str) -> String {
    let fold = |c| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c,
    };
    key.chars().map(fold).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let found = misspelt(text.as_bytes(), &["name", "arguments", "task"]);
        assert_eq!(found.as_deref(), expected, "{text}");
    }

    #[test]
    fn keys_are_exact() {
        check(r#"{"name":"NAME","arguments":{"Name":1,"Arguments":[]}}"#, None);
        check(r#"{ "na" : 1 , "names" : "x", "nam\u0065" : {} , "é": 2}"#, None);
        check(r#"{"arguments":[{"a":"}"}], "NAME" :1}"#, Some("NAME"));
        check(r#"{"argument\u017f":1}"#, Some("argument\u{17f}"));
        check("{\"argumentſ\":1}", Some("argumentſ"));
        check("{\"tas\u{212a}\":1}", Some("tas\u{212a}"));
        check(r#"{"\u004eame":1}"#, Some("Name"));
        for text in ["{}", "[]", "7", " { } ", ""] {
            check(text, None);
        }
    }
}
