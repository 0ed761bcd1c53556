//! How many tokens a text is.
//!
//! The heuristic is the default: it needs nothing, costs next to nothing, and two machines agree on it. It
//! says of prose within a tenth or two what a real tokenizer says, and of code or base64 far too little.
//! With the feature `tiktoken` there are the tokenizers of OpenAI's models too; their vocabularies are part
//! of the program, so they work offline, and each is unpacked when it is first used.

#[cfg(feature = "tiktoken")]
mod vocabulary;

use std::{fmt, str::FromStr};

/// A way to count tokens.
///
/// ```
/// use toolcrib_context::Counter;
///
/// assert_eq!(Counter::Heuristic.count("hello world"), 2);
/// assert_eq!(Counter::Heuristic.count("こんにちは"), 5);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Counter {
    /// A quarter of the characters, rounded down, and one for each that is East Asian or an emoji.
    #[default]
    Heuristic,
    /// As GPT-3.5 and GPT-4 count.
    #[cfg(feature = "tiktoken")]
    Cl100k,
    /// As GPT-4o and later models count.
    #[cfg(feature = "tiktoken")]
    O200k,
}

impl Counter {
    /// Those that this build has.
    pub const ALL: &[Self] = &[
        Self::Heuristic,
        #[cfg(feature = "tiktoken")]
        Self::Cl100k,
        #[cfg(feature = "tiktoken")]
        Self::O200k,
    ];

    /// What it is called on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Heuristic => "heuristic",
            #[cfg(feature = "tiktoken")]
            Self::Cl100k => "cl100k",
            #[cfg(feature = "tiktoken")]
            Self::O200k => "o200k",
        }
    }

    /// How many tokens `text` is.
    pub fn count(self, text: &str) -> u64 {
        match self {
            Self::Heuristic => Chars::of(text).tokens(),
            #[cfg(feature = "tiktoken")]
            Self::Cl100k => in_pieces(text, &vocabulary::CL100K),
            #[cfg(feature = "tiktoken")]
            Self::O200k => in_pieces(text, &vocabulary::O200K),
        }
    }
}

/// The most bytes that a tokenizer gets at once.
#[cfg(feature = "tiktoken")]
const PIECE: usize = 64 << 10;

/// Counts a long text piece by piece. The tokenizer gives up, and takes the process with it, where white space goes
/// on for a million characters. A cut may part what would be one token: the sum may be one more for each piece.
#[cfg(feature = "tiktoken")]
fn in_pieces(text: &str, tokenizer: &tiktoken_rs::CoreBPE) -> u64 {
    let (mut rest, mut count) = (text, 0);
    while PIECE < rest.len() {
        let (piece, behind) = rest.split_at(rest.floor_char_boundary(PIECE));
        count += tokenizer.count_ordinary(piece) as u64;
        rest = behind;
    }
    count + tokenizer.count_ordinary(rest) as u64
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// There is no counter of this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no token counter `{name}`; there are {}", Self::known())]
pub struct UnknownCounter {
    /// What was asked for.
    pub name: String,
}

impl UnknownCounter {
    fn known() -> String {
        let names: Vec<String> = Counter::ALL.iter().map(|it| format!("`{it}`")).collect();
        let more = if cfg!(feature = "tiktoken") {
            ""
        } else {
            "; a build with the feature `tiktoken` has `cl100k` and `o200k`"
        };
        format!("{}{more}", names.join(", "))
    }
}

impl FromStr for Counter {
    type Err = UnknownCounter;

    fn from_str(name: &str) -> Result<Self, UnknownCounter> {
        let found = Self::ALL.iter().find(|it| it.name() == name);
        found.copied().ok_or_else(|| UnknownCounter { name: name.to_owned() })
    }
}

/// What the heuristic counts. Unlike tokens these add up: a quarter is taken of the sum, not of each part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Chars {
    narrow: u64,
    wide: u64,
}

impl Chars {
    pub(crate) fn of(text: &str) -> Self {
        if text.is_ascii() {
            return Self { narrow: text.len() as u64, wide: 0 };
        }
        let mut chars = Self::default();
        for char in text.chars() {
            if is_wide(char) {
                chars.wide += 1;
            } else {
                chars.narrow += 1;
            }
        }
        chars
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self {
            narrow: self.narrow.saturating_add(other.narrow),
            wide: self.wide.saturating_add(other.wide),
        }
    }

    pub(crate) fn tokens(self) -> u64 {
        (self.narrow / 4).saturating_add(self.wide)
    }

    /// So many characters that they are `tokens`.
    pub(crate) fn tokens_of(tokens: u64) -> Self {
        Self { narrow: 0, wide: tokens }
    }

    /// Without so many narrow characters.
    pub(crate) fn less(self, narrow: u64) -> Self {
        Self { narrow: self.narrow.saturating_sub(narrow), ..self }
    }
}

/// Whether a character is about a token by itself: Han, kana, Hangul, full-width forms, emoji.
fn is_wide(char: char) -> bool {
    matches!(u32::from(char),
        0x1100..=0x11FF      // Hangul jamo
        | 0x2E80..=0x303F    // radicals, CJK punctuation
        | 0x3040..=0x30FF    // kana
        | 0x3100..=0x33FF    // bopomofo, compatibility jamo, enclosed and squared forms
        | 0x3400..=0x4DBF    // Han, extension A
        | 0x4E00..=0x9FFF    // Han
        | 0xA960..=0xA97F | 0xAC00..=0xD7FF // Hangul
        | 0xF900..=0xFAFF    // Han, compatibility
        | 0xFF00..=0xFFEF    // full-width and half-width forms
        | 0x1F300..=0x1FAFF  // emoji
        | 0x20000..=0x3FFFF  // Han, further extensions
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_characters_are_counted_together() {
        for (text, tokens) in [
            ("", 0),
            ("abc", 0),
            ("abcd", 1),
            ("hello world", 2),
            ("éééééééé", 2),
            ("こんにちは", 5),
            ("hello 世界", 3),
            ("안녕", 2),
            ("😀😀", 2),
            ("ａｂ", 2),
        ] {
            assert_eq!(Counter::Heuristic.count(text), tokens, "{text}");
        }
    }

    #[test]
    fn a_sum_of_parts_is_the_whole() {
        let parts = ["abc", "de", "世", "f"];
        let sum = parts.iter().fold(Chars::default(), |sum, it| sum.plus(Chars::of(it)));
        assert_eq!(sum.tokens(), Counter::Heuristic.count(&parts.concat()));
    }

    #[cfg(feature = "tiktoken")]
    #[test]
    fn real_tokenizers_need_no_network() {
        let text = "The quick brown fox jumps over the lazy dog. <|endoftext|> 東京";
        assert_eq!(Counter::Cl100k.count("hello world"), 2);
        assert_eq!(Counter::O200k.count("hello world"), 2);
        // Names of special tokens are text like any other.
        assert!(10 < Counter::O200k.count(text) && Counter::O200k.count(text) < 30);
    }

    #[cfg(feature = "tiktoken")]
    #[test]
    fn no_text_is_too_long_for_a_tokenizer() {
        let spaces = " ".repeat(1_000_001) + "x";
        let count = Counter::Cl100k.count(&spaces);
        assert!(0 < count && count < 1_000_001, "{count}");
        // Pieces end between characters, and change little.
        let prose = "Größe ist 東京 und mehr. ".repeat(5_000);
        let (many, half) =
            (Counter::O200k.count(&prose), Counter::O200k.count(&prose[..prose.len() / 2]));
        assert!(many.abs_diff(2 * half) <= 16, "{many} and {half}");
    }

    #[test]
    fn a_counter_goes_by_its_name() {
        for counter in Counter::ALL {
            assert_eq!(counter.name().parse(), Ok(*counter));
        }
        let error = "gpt".parse::<Counter>().unwrap_err();
        assert!(error.to_string().contains("`heuristic`"), "{error}");
    }
}
