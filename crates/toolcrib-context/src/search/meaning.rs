//! What a text is about, as a direction in space: texts about the same point the same way.
//!
//! The table that is part of the program gives the frequent words of English a vector each (GloVe; see
//! docs/search.md). It is read where it lies. A text points where the sum of its words points. All numbers
//! little-endian:
//!
//! | what | size |
//! |---|---|
//! | how many words (`n`) | u32 |
//! | where each word ends in the text of words | n × u32 |
//! | what one step of each vector is worth | n × f32 |
//! | the vectors | n × [`DIMENSIONS`] × i8 |
//! | the words, sorted, one behind the other | the rest |

/// How many numbers a vector has.
pub(super) const DIMENSIONS: usize = 96;

/// The vectors of words.
#[derive(Debug, Clone, Copy, Default)]
pub struct Meanings {
    bytes: &'static [u8],
}

#[cfg(feature = "relations")]
static TABLE: &[u8] = include_bytes!("../../../../vendor/glove/meanings.bin");

/// Where a text points so far.
#[derive(Debug, Clone)]
pub(super) struct Sum([f32; DIMENSIONS]);

/// Where a text points, as unit vector of steps of 1/127.
pub(super) type Direction = [i8; DIMENSIONS];

/// What a text of unknown words is about.
pub(super) const NOWHERE: Direction = [0; DIMENSIONS];

impl Meanings {
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

    /// The place of a word in lower case.
    pub(super) fn find(self, word: &str) -> Option<u32> {
        let (mut low, mut high) = (0, self.words());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.word(middle)?.cmp(word.as_bytes()) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return u32::try_from(middle).ok(),
            }
        }
        None
    }

    fn words(self) -> usize {
        self.number(0).unwrap_or_default()
    }

    fn number(self, at: usize) -> Option<usize> {
        usize::try_from(u32::from_le_bytes(self.four(at)?)).ok()
    }

    fn four(self, at: usize) -> Option<[u8; 4]> {
        self.bytes.get(at..at.checked_add(4)?)?.try_into().ok()
    }

    fn word(self, at: usize) -> Option<&'static [u8]> {
        let text = 4 + (8 + DIMENSIONS) * self.words();
        let begin = if at == 0 { 0 } else { self.number(4 * at)? };
        self.bytes.get(text..)?.get(begin..self.number(4 + 4 * at)?)
    }

    /// The vector of the word at a place, and what one step of it is worth.
    fn vector(self, at: u32) -> Option<(&'static [u8], f32)> {
        let (at, words) = (at as usize, self.words());
        let step = f32::from_le_bytes(self.four(4 + 4 * words + 4 * at)?);
        let begin = 4 + 8 * words + DIMENSIONS * at;
        Some((self.bytes.get(begin..begin + DIMENSIONS)?, step))
    }
}

impl Sum {
    pub(super) fn new() -> Self {
        Self([0.0; DIMENSIONS])
    }

    /// One more word.
    pub(super) fn add(&mut self, meanings: Meanings, word: u32) {
        let Some((vector, step)) = meanings.vector(word) else { return };
        for (sum, it) in self.0.iter_mut().zip(vector) {
            *sum += f32::from(it.cast_signed()) * step;
        }
    }

    /// Where it points; nothing if no word is known.
    pub(super) fn direction(&self) -> Option<Direction> {
        let length = self.0.iter().map(|it| it * it).sum::<f32>().sqrt();
        if !length.is_normal() {
            return None;
        }
        #[expect(clippy::cast_possible_truncation, reason = "no part of a unit vector is above 1")]
        let part = |it: f32| (it / length * 127.0).round() as i8;
        Some(self.0.map(part))
    }
}

/// How alike two directions are, from -1 to 1.
pub(super) fn alike(a: &Direction, b: &Direction) -> f32 {
    let products = a.iter().zip(b.iter()).map(|(a, b)| i32::from(*a) * i32::from(*b));
    #[expect(clippy::cast_precision_loss, reason = "at most 96 × 127², which f32 has exactly")]
    let sum = products.sum::<i32>() as f32;
    sum / (127.0 * 127.0)
}
