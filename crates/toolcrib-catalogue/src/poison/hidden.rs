//! Characters that a model reads and a person does not see.
//!
//! Not all of them are wrong: a family emoji is held together by joiners, Persian and Hindi need
//! them to be spelled, Hebrew beside Latin needs marks of direction, a flag of Wales is made of tag
//! characters. So each one is judged by where it stands: by the last character that stays, and by
//! the one that follows. What follows counts only if it is one that stays for certain; that is why
//! cleaning what is clean changes nothing.

use std::borrow::Cow;

use super::{Kind, Role, Signal};

/// An escape sequence that is longer than this is not looked through to its end.
const ESCAPE: usize = 2048;

/// A stretch of text that should not be there.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Hidden {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) kind: Kind,
    pub(super) sort: Sort,
}

/// What it is, as far as that says how bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Tag characters: ASCII that nobody sees.
    Tag,
    /// Selectors of variants with nothing to select, which can carry any bytes.
    Selector,
    /// Characters without width.
    Width,
    /// A mark at the very beginning that editors leave behind.
    ByteOrder,
    /// Overrides of direction: text reads otherwise than it stands.
    Override,
    /// Other marks of direction.
    Direction,
    /// Escape sequences for terminals.
    Escape,
    /// Other control characters.
    Control,
    /// Separators of lines that are no line ends to most programs.
    Separator,
}

impl Sort {
    fn kind(self) -> Kind {
        match self {
            Self::Tag | Self::Selector | Self::Width | Self::ByteOrder => Kind::Invisible,
            Self::Override | Self::Direction => Kind::Direction,
            Self::Escape | Self::Control | Self::Separator => Kind::Control,
        }
    }
}

/// `text` with every hidden character written as an escape, such as `\u{e0041}`.
///
/// ```
/// use toolcrib_catalogue::poison::visible;
///
/// assert_eq!(visible("a\u{200b}b\u{1b}[2J"), r"a\u{200b}b\u{1b}[2J");
/// assert_eq!(visible("line\n👩\u{200d}🚀"), "line\n👩\u{200d}🚀");
/// ```
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    let done = each(text, Some('}'), |before, found| {
        shown.push_str(before);
        for c in text.get(found.start..found.end).unwrap_or_default().chars() {
            match c {
                ' '..='~' => shown.push(c),
                _ => shown.extend(c.escape_unicode()),
            }
        }
    });
    shown.push_str(text.get(done..).unwrap_or_default());
    shown
}

/// `text` without its hidden characters; those that writing needs stay, see [`visible`].
///
/// ```
/// use toolcrib_catalogue::poison::clean;
///
/// assert_eq!(clean("a\u{200b}b\u{1b}[31mc"), "abc");
/// assert_eq!(clean("می\u{200c}خواهم 👩\u{200d}🚀"), "می\u{200c}خواهم 👩\u{200d}🚀");
/// ```
pub fn clean(text: &str) -> Cow<'_, str> {
    let mut kept = String::new();
    let done = each(text, None, |before, _| kept.push_str(before));
    if done == 0 {
        return Cow::Borrowed(text);
    }
    kept.push_str(text.get(done..).unwrap_or_default());
    Cow::Owned(kept)
}

/// Everything hidden in `text`, in order.
pub(super) fn find(text: &str) -> Vec<Hidden> {
    let mut all = Vec::new();
    each(text, None, |_, found| all.push(found));
    all
}

/// Calls `tell` with each hidden stretch and the text between it and the one before; gives back
/// where the last one ends. `instead` is the last character of what the hidden ones become.
fn each<'a>(text: &'a str, instead: Option<char>, mut tell: impl FnMut(&'a str, Hidden)) -> usize {
    if text.bytes().all(|it| matches!(it, b' '..=b'~' | b'\n' | b'\t')) {
        return 0;
    }
    let right_to_left = text.chars().any(is_right_to_left) && keeps_right_to_left(text);
    let (mut at, mut done, mut last) = (0, 0, None);
    while let Some(rest) = text.get(at..).filter(|it| !it.is_empty()) {
        let (size, sort) = judge(rest, last, right_to_left, at == 0);
        match sort {
            Some(sort) => {
                let found = Hidden { start: at, end: at + size, kind: sort.kind(), sort };
                tell(text.get(done..at).unwrap_or_default(), found);
                done = at + size;
                last = instead.or(last);
            }
            None => last = rest.get(..size).and_then(|it| it.chars().next_back()),
        }
        at += size;
    }
    done
}

/// Whether a letter that is written from right to left stays; one in an escape sequence does not.
fn keeps_right_to_left(text: &str) -> bool {
    let (mut at, mut last) = (0, None);
    while let Some(rest) = text.get(at..).filter(|it| !it.is_empty()) {
        let (size, sort) = judge(rest, last, true, at == 0);
        if sort.is_none() {
            last = rest.get(..size).and_then(|it| it.chars().next_back());
            if last.is_some_and(is_right_to_left) {
                return true;
            }
        }
        at += size;
    }
    false
}

/// How much of the beginning of `rest` belongs together, and what is wrong with it. `last` is the
/// last character that stays.
fn judge(rest: &str, last: Option<char>, rtl: bool, first: bool) -> (usize, Option<Sort>) {
    let mut chars = rest.chars();
    let Some(c) = chars.next() else { return (1, None) };
    let next = chars.next();
    let size = c.len_utf8();
    let unless = |fine: bool, sort: Sort| if fine { None } else { Some(sort) };
    let sort = match c {
        '\n' | '\t' | ' '..='~' => None,
        '\r' => unless(next == Some('\n'), Sort::Control),
        '\u{1b}' | '\u{9b}' | '\u{9d}' => return (escape_size(rest), Some(Sort::Escape)),
        '\u{2028}' | '\u{2029}' => Some(Sort::Separator),
        _ if c.is_control() => Some(Sort::Control),
        '\u{1f3f4}' => return (size + flag_size(rest.get(size..).unwrap_or_default(), next), None),
        '\u{e0000}'..='\u{e007f}' => Some(Sort::Tag),
        '\u{e0100}'..='\u{e01ef}' => unless(last.is_some_and(is_ideograph), Sort::Selector),
        '\u{fe00}'..='\u{fe0f}' => unless(last.is_some_and(takes_selector), Sort::Selector),
        '\u{202d}' | '\u{202e}' => Some(Sort::Override),
        '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}' => Some(Sort::Direction),
        '\u{200e}' | '\u{200f}' | '\u{61c}' => {
            let again = last.is_some_and(|it| matches!(it, '\u{200e}' | '\u{200f}' | '\u{61c}'));
            unless(rtl && !again, Sort::Direction)
        }
        '\u{feff}' if first => Some(Sort::ByteOrder),
        _ if is_without_width(c) => unless(last.is_some_and(|it| joins(it, c, next)), Sort::Width),
        _ => None,
    };
    (size, sort)
}

/// The size of the escape sequence at the beginning of `rest`, as a terminal would read it.
fn escape_size(rest: &str) -> usize {
    let mut bytes = rest.bytes().enumerate().take(ESCAPE);
    let (first, lead) = match bytes.next().map(|(_, it)| it) {
        // C1 controls are two bytes long, and stand for two characters.
        Some(0xc2) => {
            let second = bytes.next().map(|(_, it)| it);
            (2, if second == Some(0x9b) { Some(b'[') } else { Some(b']') })
        }
        _ => (1, bytes.next().map(|(_, it)| it)),
    };
    let alone = first;
    match lead {
        Some(b'[') => bytes
            .find(|(_, it)| !matches!(it, 0x20..=0x3f))
            .filter(|(_, it)| matches!(it, 0x40..=0x7e))
            .map_or(alone, |(at, _)| at + 1),
        Some(b']' | b'P' | b'^' | b'_') => {
            let mut before = 0;
            for (at, byte) in bytes {
                match (before, byte) {
                    (_, 0x07) | (0x1b, b'\\') | (0xc2, 0x9c) => return at + 1,
                    // The next sequence ends this one, so that no text is looked through twice.
                    (0x1b, _) | (0xc2, 0x9b | 0x9d) => return alone,
                    _ => before = byte,
                }
            }
            alone
        }
        Some(b'(' | b')' | b'#') => bytes
            .next()
            .filter(|(_, it)| it.is_ascii_alphanumeric())
            .map_or(alone, |(at, _)| at + 1),
        Some(b'7' | b'8' | b'c' | b'=' | b'>') if alone == 1 => 2,
        _ => alone,
    }
}

/// The size of what makes a black flag the flag of a region (`gbwls`), if it is well made.
fn flag_size(rest: &str, next: Option<char>) -> usize {
    if !next.is_some_and(|it| matches!(it, '\u{e0061}'..='\u{e007a}')) {
        return 0;
    }
    let mut size = 0;
    for (number, c) in rest.chars().take(7).enumerate() {
        size += c.len_utf8();
        match c {
            '\u{e007f}' if number >= 4 => return size,
            '\u{e0030}'..='\u{e0039}' | '\u{e0061}'..='\u{e007a}' => (),
            _ => return 0,
        }
    }
    0
}

/// Whether `c` has a task between `last` and `next`.
fn joins(last: char, c: char, next: Option<char>) -> bool {
    let stays = |it: char| !is_without_width(it) && !it.is_control();
    match (c, next) {
        ('\u{200d}', Some(next)) if is_pictograph(last) => {
            is_pictograph(next) && next != '\u{fe0f}'
        }
        ('\u{200c}' | '\u{200d}', Some(next)) => is_joining(last) && stays(next),
        ('\u{200c}' | '\u{200d}', None) => is_joining(last),
        ('\u{200b}', Some(next)) => is_unspaced(last) && is_unspaced(next),
        ('\u{ad}', Some(next)) => last.is_alphabetic() && next.is_alphabetic(),
        ('\u{34f}', Some(next)) => is_right_to_left(last) && stays(next),
        _ => false,
    }
}

fn is_without_width(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{2800}' | '\u{3164}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0080}'..='\u{e00ff}' | '\u{e01f0}'..='\u{e0fff}')
}

pub(super) fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{5d0}'..='\u{5f4}' | '\u{620}'..='\u{64a}' | '\u{66e}'..='\u{6ff}' | '\u{700}'..='\u{85f}'
        | '\u{8a0}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}'
        | '\u{1e800}'..='\u{1efff}')
}

/// Letters and marks of scripts in which joiners are part of the spelling: Arabic and its kin,
/// Mongolian, the scripts of India and its neighbours.
fn is_joining(c: char) -> bool {
    matches!(c, '\u{620}'..='\u{8ff}' | '\u{900}'..='\u{dff}' | '\u{f00}'..='\u{109f}' | '\u{1780}'..='\u{18af}'
        | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}')
        && !matches!(c, '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}')
}

/// Scripts that put no space between words, where a break without width may stand for one.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{e01}'..='\u{edf}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17b3}' | '\u{17b6}'..='\u{17ff}')
}

pub(super) fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}

fn takes_selector(c: char) -> bool {
    let symbol = matches!(c, '#' | '*' | '0'..='9' | '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}'
        | '\u{2100}'..='\u{2bff}' | '\u{3030}' | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1000}'..='\u{109f}');
    symbol && c != '\u{2800}' || is_pictograph(c) && !matches!(c, '\u{fe0f}') || is_ideograph(c)
}

/// What emoji are made of: pictures, tones of skin, and the selector that follows a picture.
fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{fe0f}' | '\u{2190}'..='\u{21ff}' | '\u{2300}'..='\u{23ff}' | '\u{2600}'..='\u{27bf}'
        | '\u{2b00}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}')
}

const UNSEEN: &str = "has characters that nobody sees";
const UNSEEN_NAME: &str = "is a name with characters that nobody sees";
const SPELLS: &str = "has invisible characters that spell a text";
const TURNED: &str = "has marks that change the direction of text";
const SENT: &str = "has escape sequences or control characters";

/// Tells `tell` of what is hidden in `text`.
pub(super) fn look(text: &str, role: Role, mut tell: impl FnMut(Signal<'_>)) {
    let found = find(text);
    for (kind, says) in
        [(Kind::Invisible, UNSEEN), (Kind::Direction, TURNED), (Kind::Control, SENT)]
    {
        let own: Vec<&Hidden> = found.iter().filter(|it| it.kind == kind).collect();
        let Some(first) = own.first() else { continue };
        let weight = weigh(text, &own);
        // A stray one in a sentence may come from a copied page; nobody copies a name from there.
        let (says, weight) = match role {
            Role::Name => {
                (if kind == Kind::Invisible { UNSEEN_NAME } else { says }, weight.max(0.85))
            }
            Role::Text => (says, weight),
        };
        let from = super::phrases::floor(text, first.start.saturating_sub(20));
        tell(Signal { kind, says, weight, evidence: text.get(from..).unwrap_or_default() });
    }
    let spelled = spell(text, &found);
    if spelled.chars().count() > 3 {
        tell(Signal { kind: Kind::Invisible, says: SPELLS, weight: 0.95, evidence: &spelled });
    }
}

/// How bad all of one kind are together.
fn weigh(text: &str, found: &[&Hidden]) -> f64 {
    let mut counts: Vec<(Sort, usize)> = Vec::new();
    for it in found {
        match counts.iter_mut().find(|(sort, _)| *sort == it.sort) {
            Some((_, count)) => *count += 1,
            None => counts.push((it.sort, 1)),
        }
    }
    let count = |sort: Sort| counts.iter().find(|it| it.0 == sort).map_or(0, |it| it.1);
    let steps = |count: usize, one: f64, few: f64, many: f64| match count {
        0 => 0.0,
        1 => one,
        2..=3 => few,
        _ => many,
    };
    let within = |it: &&&Hidden| {
        let before = text.get(..it.start).and_then(|it| it.chars().next_back());
        let after = text.get(it.end..).and_then(|it| it.chars().next());
        [before, after].iter().all(|it| it.is_some_and(|it| it.is_ascii_alphabetic()))
    };
    let rtl = text.chars().any(is_right_to_left);
    let in_words = found.iter().filter(|it| it.sort == Sort::Width).any(|it| within(&it));
    [
        steps(count(Sort::Tag), 0.8, 0.9, 0.95),
        steps(count(Sort::Selector), 0.3, 0.6, 0.85),
        steps(count(Sort::Width), if in_words { 0.6 } else { 0.3 }, 0.6, 0.8),
        steps(count(Sort::ByteOrder), 0.1, 0.1, 0.1),
        steps(count(Sort::Override), 0.85, 0.9, 0.9),
        if rtl {
            steps(count(Sort::Direction), 0.1, 0.2, 0.3)
        } else {
            steps(count(Sort::Direction), 0.5, 0.6, 0.7)
        },
        steps(count(Sort::Escape), 0.85, 0.9, 0.9),
        steps(count(Sort::Control), 0.55, 0.7, 0.8),
        steps(count(Sort::Separator), 0.1, 0.2, 0.3),
    ]
    .into_iter()
    .fold(0.0, f64::max)
}

/// What tag characters and selectors say to whoever can read them.
fn spell(text: &str, found: &[Hidden]) -> String {
    let hidden = found.iter().filter(|it| matches!(it.sort, Sort::Tag | Sort::Selector)).take(512);
    let bytes: Vec<u8> = hidden
        .filter_map(|it| text.get(it.start..it.end)?.chars().next())
        .map(|it| match u32::from(it) {
            it @ 0xe0000..=0xe007f => it - 0xe0000,
            it @ 0xe0100..=0xe01ef => it - 0xe0100 + 16,
            it => it - 0xfe00,
        })
        .filter_map(|it| u8::try_from(it).ok())
        .collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
