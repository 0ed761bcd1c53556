//! Masking what is JSON, or nearly: values under names of secrets go too, and JSON stays JSON.
//!
//! The text is gone through once and nothing is built of it, so depth costs nothing. It need not be whole: of a text that
//! was cut off the rest is masked as well.

use std::borrow::Cow;

use super::{
    Masker,
    mask::{MASK, ROUNDS, quoted},
    names_secret,
};
use crate::json::unescape;

/// How often JSON may stand in a string of JSON. What is packed deeper is taken out unseen.
const WRAPPED: usize = 4;

impl Masker {
    /// JSON text with `****` for every secret: those of [`mask`](Self::mask), and whatever stands under a name that
    /// sounds secret ([`names_secret`]), also in JSON that is a string. Valid JSON stays valid.
    pub fn mask_json<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = self.mask_wrapped(text, 0);
        // In what is not quite JSON, taking one thing out may bring another to light.
        for _ in 1..ROUNDS {
            let Cow::Owned(before) = &masked else { break };
            let again = self.mask_wrapped(before, 0).into_owned();
            if again == *before {
                break;
            }
            masked = Cow::Owned(again);
        }
        masked
    }

    fn mask_wrapped<'a>(&self, text: &'a str, wrapped: usize) -> Cow<'a, str> {
        let mut walk = Walk {
            masker: self,
            text,
            wrapped,
            out: String::new(),
            copied: 0,
            objects: Vec::new(),
            secret: None,
            names: false,
            loose: false,
        };
        walk.run();
        let Walk { mut out, copied, loose, .. } = walk;
        let masked = if copied == 0 {
            Cow::Borrowed(text)
        } else {
            out.push_str(&text[copied..]);
            Cow::Owned(out)
        };
        if !loose {
            return masked;
        }
        match masked {
            Cow::Borrowed(text) => self.mask(text),
            Cow::Owned(text) => Cow::Owned(self.mask(&text).into_owned()),
        }
    }
}

/// On the way through a text.
struct Walk<'m, 'a> {
    masker: &'m Masker,
    text: &'a str,
    wrapped: usize,
    out: String,
    /// How much of the text is in `out`, or left out of it.
    copied: usize,
    /// Of each container that is open, whether it is an object.
    objects: Vec<bool>,
    /// How many containers were open where a name said that all below it is secret.
    secret: Option<usize>,
    /// The name before the value that comes next says that it is secret.
    names: bool,
    /// This is not quite JSON.
    loose: bool,
}

impl Walk<'_, '_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        let mut at = 0;
        // In an object, a string that follows `{` or `,` is a name.
        let mut name_next = false;
        while let Some(byte) = bytes.get(at) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' | b':' => at += 1,
                b'{' | b'[' => {
                    if std::mem::take(&mut self.names) && self.secret.is_none() {
                        self.secret = Some(self.objects.len());
                    }
                    name_next = *byte == b'{';
                    self.objects.push(name_next);
                    at += 1;
                }
                b'}' | b']' => {
                    self.loose |= self.objects.pop().is_none();
                    if self.secret.is_some_and(|it| self.objects.len() <= it) {
                        self.secret = None;
                    }
                    self.names = false;
                    at += 1;
                }
                b',' => {
                    name_next = self.objects.last() == Some(&true);
                    self.names = false;
                    at += 1;
                }
                b'"' => {
                    let end = end_of_string(bytes, at);
                    if std::mem::take(&mut name_next) {
                        self.name(at, end);
                    } else {
                        self.string(at, end);
                    }
                    at = end;
                }
                _ => {
                    let end = end_of_scalar(bytes, at);
                    self.scalar(at, end);
                    at = end;
                }
            }
        }
    }

    /// The inside of a string between these places; nothing where it has no closing quote or bad escapes.
    fn inside(&self, begin: usize, end: usize) -> Option<Cow<'_, str>> {
        let inside = self.text.get(begin + 1..end.checked_sub(1)?)?;
        if !self.text[..end].ends_with('"') {
            return None;
        }
        let plain = unescape(inside.as_bytes());
        (plain.is_empty() == inside.is_empty()).then_some(plain)
    }

    fn name(&mut self, begin: usize, end: usize) {
        let Some(name) = self.inside(begin, end) else {
            self.loose = true;
            return;
        };
        let masked = changed(self.masker.mask(&name));
        // What is left of a name counts as well.
        self.names = names_secret(&name) || masked.as_deref().is_some_and(names_secret);
        if let Some(masked) = masked {
            self.put(begin, end, &masked);
        }
    }

    fn string(&mut self, begin: usize, end: usize) {
        if self.is_secret() {
            let told = &self.text[begin..end];
            if told != "\"\"" && told.trim_matches('"') != MASK {
                self.put(begin, end, MASK);
            }
            return;
        }
        let Some(inside) = self.inside(begin, end) else {
            self.loose = true;
            return;
        };
        let packed = inside.trim_start().starts_with(['{', '[', '"']);
        let masked = match packed {
            true if self.wrapped == WRAPPED => Cow::Owned(MASK.to_owned()),
            true => self.masker.mask_wrapped(&inside, self.wrapped + 1),
            false => self.masker.mask(&inside),
        };
        if let Some(masked) = changed(masked) {
            self.put(begin, end, &masked);
        }
    }

    /// A number, a word, or something that does not belong into JSON.
    fn scalar(&mut self, begin: usize, end: usize) {
        let scalar = &self.text[begin..end];
        if matches!(scalar, "true" | "false" | "null") {
            self.names = false;
            return;
        }
        let secret = self.is_secret();
        if serde_json::from_str::<serde_json::Number>(scalar).is_err() {
            self.loose = true;
        } else if secret {
            self.put(begin, end, MASK);
        } else if let Some(masked) = changed(self.masker.mask(scalar)) {
            self.put(begin, end, &masked);
        }
    }

    /// Whether the value that comes now is one.
    fn is_secret(&mut self) -> bool {
        std::mem::take(&mut self.names) || self.secret.is_some()
    }

    /// Writes a string in place of what stands between these places.
    fn put(&mut self, begin: usize, end: usize, text: &str) {
        self.out.push_str(&self.text[self.copied..begin]);
        self.out.push('"');
        self.out.push_str(&quoted(text));
        self.out.push('"');
        self.copied = end;
    }
}

fn changed(masked: Cow<'_, str>) -> Option<String> {
    match masked {
        Cow::Borrowed(_) => None,
        Cow::Owned(masked) => Some(masked),
    }
}

/// The place after the string that begins here, or the end of the text.
fn end_of_string(text: &[u8], begin: usize) -> usize {
    let mut at = begin + 1;
    while let Some(found) = memchr::memchr2(b'"', b'\\', text.get(at..).unwrap_or_default()) {
        if text[at + found] == b'"' {
            return at + found + 1;
        }
        at += found + 2;
    }
    text.len()
}

fn end_of_scalar(text: &[u8], begin: usize) -> usize {
    let ends = |it: &u8| b" \t\n\r:,{}[]\"".contains(it);
    text[begin..].iter().position(ends).map_or(text.len(), |length| begin + length)
}
