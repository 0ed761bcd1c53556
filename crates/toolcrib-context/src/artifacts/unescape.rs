//! The text of a JSON string, written out as it is read: a 100 MB string is never held twice.

use std::io::{self, Write};

/// Writes what a JSON string says, given as it stands in the document, with or without its quotes. Gives how many
/// halves of surrogate pairs stood alone; each is written as `�`.
///
/// An escape that JSON does not have is an error of kind `InvalidData`.
pub fn unescape_json_string(raw: &[u8], out: &mut dyn Write) -> io::Result<u64> {
    let quoted = 2 <= raw.len() && raw.starts_with(b"\"") && raw.ends_with(b"\"");
    let mut rest = if quoted { &raw[1..raw.len() - 1] } else { raw };
    let mut lone = 0;
    while let Some(at) = memchr::memchr(b'\\', rest) {
        out.write_all(&rest[..at])?;
        let (text, length) = escape(&rest[at..]).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "an escape that JSON does not have")
        })?;
        lone += u64::from(text.is_none());
        let mut utf8 = [0; 4];
        out.write_all(text.unwrap_or('�').encode_utf8(&mut utf8).as_bytes())?;
        rest = &rest[at + length..];
    }
    out.write_all(rest)?;
    Ok(lone)
}

/// The escape at the beginning of `text`: what it stands for, nothing where half of a pair is alone, and its length.
pub(super) fn escape(text: &[u8]) -> Option<(Option<char>, usize)> {
    let plain = match text.get(1)? {
        b'u' => return surrogates(text),
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        same @ (b'"' | b'\\' | b'/') => char::from(*same),
        _ => return None,
    };
    Some((Some(plain), 2))
}

fn surrogates(text: &[u8]) -> Option<(Option<char>, usize)> {
    let first = unit(text.get(2..6)?)?;
    if let Some(c) = char::from_u32(first) {
        return Some((Some(c), 6));
    }
    let second = text.get(6..8).filter(|it| *it == b"\\u").and_then(|_| unit(text.get(8..12)?));
    let pair = match (first, second) {
        (0xD800..0xDC00, Some(low @ 0xDC00..0xE000)) => {
            char::from_u32(0x10000 + ((first - 0xD800) << 10) + (low - 0xDC00))
        }
        _ => None,
    };
    Some(pair.map_or((None, 6), |it| (Some(it), 12)))
}

fn unit(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(raw: &str) -> Option<String> {
        let mut out = Vec::new();
        unescape_json_string(raw.as_bytes(), &mut out).ok()?;
        Some(String::from_utf8(out).unwrap())
    }

    #[test]
    fn halves_of_pairs_and_what_is_no_escape() {
        assert_eq!(check(r#""a\ud83d\ude00b""#).unwrap(), "a😀b");
        assert_eq!(check(r"\ud83dx\ude00\ud83d\u0041").unwrap(), "�x��A");
        for bad in [r"\x", r"\u12", r"\u12g4", "\\", r"a\"] {
            assert_eq!(check(bad), None, "{bad}");
        }
    }

    proptest! {
        #[test]
        fn it_reads_what_serde_writes(text in ".*") {
            prop_assert_eq!(check(&serde_json::to_string(&text).unwrap()).unwrap(), text);
        }
    }
}
