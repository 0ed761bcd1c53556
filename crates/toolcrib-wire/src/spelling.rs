//! Keys that are ours to some readers and strangers to others.
//!
//! There are readers of JSON that take `Name` for `name`, and fold even the long s and the sign for kelvin (Go's
//! does, by Unicode's simple folding, in which no other letters become ASCII). What we checked under a key must
//! not be overruled, at a server that reads so, by what stands beside it.

use std::{borrow::Cow, ops::Range};

use crate::json::Walk;

/// Where the values of several members of a scanned object stand; or the first of its keys that is not one of `keys`,
/// and that a careless reader takes for one.
///
/// ```
/// use toolcrib_wire::spelt;
///
/// assert_eq!(spelt(br#"{"name":"a","Name":"b"}"#, ["name"]).unwrap_err(), "Name");
/// assert_eq!(spelt(br#"{"name":"a","names":1}"#, ["name"]), Ok([Some(8..11)]));
/// ```
pub fn spelt<'a, const N: usize>(
    text: &'a [u8],
    keys: [&str; N],
) -> Result<[Option<Range<usize>>; N], Cow<'a, str>> {
    let mut found = [const { None }; N];
    for (written, at) in Walk::new(text) {
        if let Some(place) = keys.iter().position(|key| written.says(key)) {
            found[place] = Some(at);
            continue;
        }
        let key = written.text();
        // Nearly all keys are plain, and are not copied.
        let alike =
            if key.is_ascii() { is_alike(&key, &keys) } else { is_alike(&folded(&key), &keys) };
        if alike {
            return Err(key);
        }
    }
    Ok(found)
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
        let found = spelt(text.as_bytes(), ["name", "arguments", "task"]);
        assert_eq!(found.err().as_deref(), expected, "{text}");
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
