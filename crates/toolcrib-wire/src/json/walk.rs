//! Looking into what was scanned.
//!
//! Nothing is checked again: strings are stepped over, brackets are counted, and nothing is built. A request is
//! looked into a dozen times on its way.

use std::{borrow::Cow, ops::Range, sync::LazyLock};

use memchr::memmem;

use super::{plain, unescape};

/// Where the value of a member of a scanned object stands.
pub fn member(text: &[u8], key: &str) -> Option<Range<usize>> {
    Walk::new(text).find(|(written, _)| written.says(key)).map(|(_, at)| at)
}

/// Where the values of several members of a scanned object stand, found on one way through it.
pub fn pick<const N: usize>(text: &[u8], keys: [&str; N]) -> [Option<Range<usize>>; N] {
    let mut found = [const { None }; N];
    let mut left = N;
    for (written, at) in Walk::new(text) {
        if let Some(place) = keys.iter().position(|key| written.says(key)) {
            found[place] = Some(at);
            left -= 1;
        }
        if left == 0 {
            break;
        }
    }
    found
}

/// A key as it is written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Written<'a> {
    inside: &'a [u8],
    escaped: bool,
}

impl<'a> Written<'a> {
    pub(crate) fn text(&self) -> Cow<'a, str> {
        unescape(self.inside)
    }

    pub(crate) fn says(&self, key: &str) -> bool {
        self.inside == key.as_bytes() || (self.escaped && unescape(self.inside) == key)
    }
}

/// The members of an object that was scanned: each key, and where the value stands.
pub(crate) struct Walk<'a> {
    text: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(text: &'a [u8]) -> Self {
        let begin = skip_space(text, 0);
        let is_object = text.get(begin) == Some(&b'{');
        let at = if is_object { skip_space(text, begin + 1) } else { text.len() };
        Self { text, at }
    }
}

impl<'a> Iterator for Walk<'a> {
    type Item = (Written<'a>, Range<usize>);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.text;
        if text.get(self.at) != Some(&b'"') {
            return None;
        }
        let key = self.at + 1;
        let length = plain(&text[key..]);
        let escaped = text.get(key + length) != Some(&b'"');
        let after = if escaped { skip_string(text, self.at) } else { key + length + 1 };
        let begin = skip_space(text, skip_space(text, after) + 1);
        let end = skip_value(text, begin);
        // Over the comma; after a `}` no string follows.
        self.at = skip_space(text, skip_space(text, end) + 1);
        let inside = text.get(key..after - 1)?;
        Some((Written { inside, escaped }, (begin <= end).then_some(begin..end)?))
    }
}

/// A key that is looked for in every request, and is in few.
#[derive(Debug)]
pub struct Rare {
    key: &'static str,
    finder: memmem::Finder<'static>,
}

impl Rare {
    /// This key.
    pub fn new(key: &'static str) -> Self {
        Self { key, finder: memmem::Finder::new(key) }
    }

    /// Where the value of this member of a scanned object stands.
    pub fn member(&self, text: &[u8]) -> Option<Range<usize>> {
        if self.is_absent(text) { None } else { member(text, self.key) }
    }

    /// Where the value of this member of `_meta` stands in some params.
    pub fn in_meta(&self, params: &[u8]) -> Option<Range<usize>> {
        if self.is_absent(params) {
            return None;
        }
        let meta = member(params, "_meta")?;
        let at = member(&params[meta.clone()], self.key)?;
        Some(meta.start + at.start..meta.start + at.end)
    }

    /// Whether the key, or one that has it in it, stands nowhere. It can be written otherwise, but only with escapes
    /// that few texts have; those for quotes and line ends are in nearly all.
    pub fn is_absent(&self, text: &[u8]) -> bool {
        let is_plain = || memchr::memchr(b'\\', text).is_none();
        self.finder.find(text).is_none()
            && (is_plain() || ESCAPES.iter().all(|it| it.find(text).is_none()))
    }
}

/// How letters, and the slash, may be written otherwise.
static ESCAPES: LazyLock<[memmem::Finder<'static>; 2]> =
    LazyLock::new(|| [r"\u", r"\/"].map(memmem::Finder::new));

/// What a string of a scanned text says.
pub fn string(value: &[u8]) -> Option<Cow<'_, str>> {
    let inside = value.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
    Some(unescape(inside))
}

#[inline]
pub(crate) fn skip_space(text: &[u8], mut at: usize) -> usize {
    while let Some(b' ' | b'\t' | b'\n' | b'\r') = text.get(at) {
        at += 1;
    }
    at
}

/// A string that is no longer is stepped over more quickly than it is searched.
const SHORT: usize = 32;

/// The place after the string that begins here.
pub(crate) fn skip_string(text: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    loop {
        // Most are short, or have quotes and line ends in them.
        at += plain(text.get(at..text.len().min(at + SHORT)).unwrap_or_default());
        let rest = text.get(at..).unwrap_or_default();
        match rest.first() {
            Some(b'"') => return at + 1,
            Some(b'\\') => {
                at += 2;
                continue;
            }
            _ => {}
        }
        match memchr::memchr2(b'"', b'\\', rest) {
            None => return text.len().max(begin + 2),
            Some(found) if rest[found] == b'"' => return at + found + 1,
            Some(found) => at += found + 2,
        }
    }
}

/// The place after the value that begins here.
pub(crate) fn skip_value(text: &[u8], begin: usize) -> usize {
    let (mut at, mut depth) = (begin, 0_u32);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => at = skip_string(text, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' if depth <= 1 => return at + usize::from(depth == 1),
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b',' | b' ' | b'\t' | b'\n' | b'\r' if depth == 0 => return at,
            _ => at += 1,
        }
        if depth == 0 && *byte == b'"' {
            return at;
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &[u8] =
        br#" { "a" : [1, "}"] , "b\u0063":{"a":2},"long key of thirty-three characters":"x\"y" , "n": 1.50 } "#;

    #[test]
    fn members_are_found_however_they_are_written() {
        let at = |key: &str| member(TEXT, key).map(|at| str::from_utf8(&TEXT[at]).unwrap());
        assert_eq!(at("a"), Some(r#"[1, "}"]"#));
        assert_eq!(at("bc"), Some(r#"{"a":2}"#));
        assert_eq!(at("long key of thirty-three characters"), Some(r#""x\"y""#));
        assert_eq!(at("n"), Some("1.50"));
        assert_eq!((at("b"), member(b"[1]", "a"), member(b"", "a")), (None, None, None));
    }

    #[test]
    fn several_members_are_found_in_whatever_order() {
        let [n, none, bc] = pick(TEXT, ["n", "none", "bc"]);
        assert_eq!((n, none, bc), (member(TEXT, "n"), None, member(TEXT, "bc")));
    }

    #[test]
    fn what_is_rare_is_found_also_with_a_backslash() {
        let token = Rare::new("progressToken");
        let found = |params: &'static str| token.in_meta(params.as_bytes()).map(|at| &params[at]);
        assert_eq!(found(r#"{"name":"a","_meta":{"progressToken":7}}"#), Some("7"));
        assert_eq!(found(r#"{"_meta":{"p\u0072ogressToken":"x"}}"#), Some(r#""x""#));
        assert_eq!(found(r#"{"arguments":{"progressToken":7},"_meta":{}}"#), None);
        assert_eq!(found(r#"{"progressToken":7}"#), None);
        let ours = Rare::new("toolcrib/");
        assert!(ours.is_absent(br#"{"a":"\"quoted\"\n\\"}"#));
        assert!(!ours.is_absent(br#"{"toolcrib\/a":1}"#));
        assert_eq!(token.member(br#"{"progressToken":7}"#), Some(17..18));
    }

    #[test]
    fn what_was_never_scanned_does_no_harm() {
        for end in 0..TEXT.len() {
            for key in ["a", "bc", "n", "none"] {
                if let Some(at) = member(&TEXT[..end], key) {
                    assert!(at.end <= end);
                }
            }
        }
    }
}
