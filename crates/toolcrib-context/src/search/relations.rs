//! Which words mean nearly the same, from a table that is part of the program.
//!
//! The table is read where it lies: nothing is unpacked at the start, and a look-up is a binary search. It is
//! made by `scripts/relations` from what docs/search.md names, and holds, all numbers little-endian:
//!
//! | what | size |
//! |---|---|
//! | how many words (`n`), how many lists (`m`) | 2 × u32 |
//! | where each word ends in the text of words | n × u32 |
//! | the list of each word | n × u16 |
//! | where each list ends | m × u32 |
//! | the lists: each entry a word's number and how near it is, 255 being the same | entries × (u16, u8) |
//! | the words, sorted, one behind the other | the rest |

/// Endings of forms, and what base forms have instead.
const ENDINGS: &[(&str, &str)] = &[
    ("ies", "y"),
    ("ied", "y"),
    ("s", ""),
    ("es", ""),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
];

/// Words that mean nearly the same.
#[derive(Debug, Clone, Copy, Default)]
pub struct Relations {
    bytes: &'static [u8],
}

#[cfg(feature = "relations")]
static TABLE: &[u8] = include_bytes!("../../../../vendor/wordnet/relations.bin");

impl Relations {
    /// The table that comes with the program, if it was built with it.
    pub fn built_in() -> Self {
        #[cfg(feature = "relations")]
        return Self { bytes: TABLE };
        #[cfg(not(feature = "relations"))]
        Self::default()
    }

    /// A table of one's own. One that is damaged has fewer words.
    pub fn read(bytes: &'static [u8]) -> Self {
        Self { bytes }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words() == 0
    }

    /// The words related to one in lower case, and how near each is: 1 is the same.
    pub fn of(&self, word: &str) -> impl Iterator<Item = (&'static str, f32)> {
        let table = *self;
        let place = table.find(word).or_else(|| table.find_base(word));
        let entries = place.and_then(|at| table.entries(at)).unwrap_or_default();
        entries.chunks_exact(3).filter_map(move |it| {
            let number = usize::from(u16::from_le_bytes([it[0], it[1]]));
            Some((table.word(number)?, f32::from(it[2]) / 255.0))
        })
    }

    fn words(self) -> usize {
        self.number(0).unwrap_or_default()
    }

    fn lists(self) -> usize {
        self.number(4).unwrap_or_default()
    }

    fn number(self, at: usize) -> Option<usize> {
        let bytes = self.bytes.get(at..at.checked_add(4)?)?;
        usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
    }

    /// The `at`th of the stretches whose ends stand from `ends` on.
    fn stretch(self, ends: usize, at: usize) -> Option<(usize, usize)> {
        let begin = if at == 0 { 0 } else { self.number(ends + 4 * (at - 1))? };
        Some((begin, self.number(ends + 4 * at)?))
    }

    fn word(self, at: usize) -> Option<&'static str> {
        if self.words() <= at {
            return None;
        }
        let lists = 8 + 6 * self.words();
        let entries = lists + 4 * self.lists();
        let text = entries + 3 * self.number(entries.checked_sub(4)?)?;
        let (begin, end) = self.stretch(8, at)?;
        std::str::from_utf8(self.bytes.get(text..)?.get(begin..end)?).ok()
    }

    fn find(self, word: &str) -> Option<usize> {
        let (mut low, mut high) = (0, self.words());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.word(middle)?.cmp(word) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }

    /// The word that one is a form of: the table holds base forms, and those that no rule leads from.
    fn find_base(self, form: &str) -> Option<usize> {
        let bases = ENDINGS.iter().filter_map(|(ending, base)| {
            let stem = form.strip_suffix(ending).filter(|it| 2 <= it.len())?;
            let doubled = stem.as_bytes()[stem.len() - 1] == stem.as_bytes()[stem.len() - 2];
            let single = if doubled && base.is_empty() { stem.get(..stem.len() - 1) } else { None };
            let found = self.find(&[stem, base].concat());
            found.or_else(|| single.and_then(|it| self.find(it)))
        });
        bases.into_iter().next()
    }

    fn entries(self, word: usize) -> Option<&'static [u8]> {
        let at = 8 + 4 * self.words() + 2 * word;
        let list = self.bytes.get(at..at + 2)?;
        let list = usize::from(u16::from_le_bytes(list.try_into().ok()?));
        let ends = 8 + 6 * self.words();
        let (begin, end) = self.stretch(ends, list)?;
        self.bytes.get(ends + 4 * self.lists()..)?.get(3 * begin..3 * end)
    }
}
