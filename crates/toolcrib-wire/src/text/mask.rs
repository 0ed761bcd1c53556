//! Takes secrets out of what is logged, recorded or told.
//!
//! Two sorts of secrets are known: values that are configured, in each form in which a text may hold them, and what has
//! the shape of a token, whoever's it is ([`shapes`]). A masked text may be masked again and stays as it is, so nobody
//! needs to know whether somebody else has masked it before.
//!
//! Everything here takes time in proportion to the text, whatever the text is.

use std::{
    borrow::Cow,
    fmt::{self, Write},
    ops::Range,
    sync::{Arc, OnceLock},
};

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD},
};

use super::{plain, shapes};

/// What stands where a secret stood.
pub(super) const MASK: &str = "****";

/// Anything shorter is no secret, and would take half a text with it.
const SHORTEST_SECRET: usize = 6;

/// A shorter piece of something encoded may be anything.
const SHORTEST_ENCODED: usize = 8;

/// No token of a known shape is longer, but for keys of many lines.
const LONGEST_SHAPE: usize = 8 * 1024;

/// How often a text is gone through. Taking one thing out may bring another to light; more than twice is contrived.
pub(super) const ROUNDS: usize = 8;

/// Takes secrets out of a text. Cheap to clone.
#[derive(Clone, Default)]
pub struct Masker(Option<Arc<Known>>);

/// The configured values.
struct Known {
    values: Vec<String>,
    /// Made when it is first needed: maskers are put together from many.
    finder: OnceLock<Option<AhoCorasick>>,
}

impl fmt::Debug for Masker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Masker({} values)", self.values().len())
    }
}

impl Masker {
    /// A masker that knows these values.
    pub fn new(values: impl IntoIterator<Item = String>) -> Self {
        let long = |it: &String| SHORTEST_SECRET <= it.len();
        let mut values: Vec<String> = values.into_iter().filter(long).collect();
        values.sort_unstable();
        values.dedup();
        let known = Known { values, finder: OnceLock::new() };
        Self((!known.values.is_empty()).then(|| Arc::new(known)))
    }

    /// A masker that knows what either of two does.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (&self.0, &other.0) {
            (_, None) => self,
            (None, _) => other,
            _ => Self::new(self.values().iter().chain(other.values()).cloned()),
        }
    }

    /// `text` with `****` for every configured value and for whatever looks like a token.
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = self.mask_known(text);
        for _ in 0..ROUNDS {
            let found = shapes::find(&masked);
            if found.is_empty() {
                break;
            }
            let next = replaced(&masked, &found);
            masked = Cow::Owned(self.mask_known(&next).into_owned());
        }
        masked
    }

    /// `text` with `****` for every configured value, and else as it is: for what goes to clients, which may well
    /// speak of tokens.
    pub fn mask_known<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let mut masked = Cow::Borrowed(text);
        let Some(known) = &self.0 else { return masked };
        let Some(finder) = known.finder() else { return Cow::Borrowed(MASK) };
        // A value may itself hold stars, and then appear where another was taken out.
        for _ in 0..ROUNDS {
            let found: Vec<Range<usize>> =
                finder.find_iter(&*masked).map(|it| it.range()).collect();
            if found.is_empty() {
                break;
            }
            masked = Cow::Owned(replaced(&masked, &found));
        }
        masked
    }

    /// So much at the end of a text that was cut off may be the beginning of a secret, which nobody would know.
    pub fn margin(&self) -> usize {
        // A form has at most six bytes for one.
        let longest = self.values().iter().map(|it| 6 * it.len()).max().unwrap_or_default();
        longest.max(LONGEST_SHAPE)
    }

    fn values(&self) -> &[String] {
        self.0.as_ref().map_or(&[], |it| &it.values)
    }
}

impl Known {
    /// Finds the values. Nothing where there are too many to look for, and then no text can be shown at all.
    fn finder(&self) -> Option<&AhoCorasick> {
        let build = || {
            let mut forms: Vec<String> = self.values.iter().flat_map(|it| forms(it)).collect();
            forms.retain(|it| SHORTEST_SECRET <= it.len());
            forms.sort_unstable();
            forms.dedup();
            // A key of some kilobytes would be megabytes as a table of all transitions.
            let kind = Some(AhoCorasickKind::ContiguousNFA);
            let mut builder = AhoCorasick::builder();
            builder.match_kind(MatchKind::LeftmostLongest).kind(kind).build(forms).ok()
        };
        self.finder.get_or_init(build).as_ref()
    }
}

/// How a value may stand in a text.
fn forms(value: &str) -> Vec<String> {
    // What is masked comes line by line, and made plain.
    let lines = value.lines().map(|line| plain(line.trim().as_bytes()));
    let mut forms: Vec<String> = lines.collect();
    let quoted = quoted(value);
    forms.extend([
        plain(value.as_bytes()),
        quoted.replace('/', "\\/"),
        ascii(&quoted),
        // JSON in a string of JSON.
        self::quoted(&quoted),
        value.escape_debug().to_string(),
        percent(value, "%20", char::to_ascii_uppercase),
        percent(value, "%20", char::to_ascii_lowercase),
        percent(value, "+", char::to_ascii_uppercase),
        quoted,
        value.to_owned(),
    ]);
    forms.extend(encoded(value));
    forms
}

/// How a value may be encoded: in hexadecimal, all of it with `%`, and in base64, also as a part of something longer,
/// such as `user:password`.
fn encoded(value: &str) -> impl Iterator<Item = String> {
    let bytes = value.as_bytes();
    let each =
        |before: &str| -> String { bytes.iter().map(|it| format!("{before}{it:02x}")).collect() };
    let hex = ["", "%"].map(each);
    let upper = hex.each_ref().map(|it| it.to_uppercase());
    let parts = (0..3).flat_map(move |before: usize| {
        let whole = [&[0; 2][..before], bytes].concat();
        // Letters that are of the value alone: none that hold bits of what stands before or after.
        let begin = (before * 8).div_ceil(6);
        let end = whole.len() * 8 / 6;
        let part = move |it: String| it.get(begin..end).map(str::to_owned);
        [STANDARD_NO_PAD.encode(&whole), URL_SAFE_NO_PAD.encode(&whole)]
            .into_iter()
            .filter_map(part)
    });
    let parts: Vec<String> = parts.collect();
    let all = hex.into_iter().chain(upper).chain(parts);
    all.filter(|it| SHORTEST_ENCODED <= it.len())
}

/// As JSON writes it, without the quotes.
pub(super) fn quoted(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// As JSON writes it for whoever reads ASCII only.
fn ascii(quoted: &str) -> String {
    let mut out = String::with_capacity(quoted.len());
    for c in quoted.chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            write!(out, "\\u{unit:04x}").ok();
        }
    }
    out
}

/// As it stands in an address.
fn percent(text: &str, space: &str, case: fn(&char) -> char) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else if byte == b' ' {
            out.push_str(space);
        } else {
            out.push('%');
            out.extend(format!("{byte:02x}").chars().map(|it| case(&it)));
        }
    }
    out
}

/// `text` with the mask in these places, which are in order and do not overlap.
fn replaced(text: &str, places: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for place in places {
        out.push_str(text.get(at..place.start).unwrap_or_default());
        out.push_str(MASK);
        at = place.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}
