//! What weighs how much.
//!
//! The figures were chosen with queries at hand, and judged on others that were written afterwards (docs/search.md);
//! they are round where the choice made no difference.

use super::{Meanings, Relations};

/// Where in a tool a word stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Field {
    /// What its source calls it.
    Name,
    /// Its name for people.
    Title,
    /// What it does.
    Description,
    /// What its parameters are called, and the values they may have.
    Parameters,
    /// What is said about its parameters.
    ParameterText,
    /// The server it comes from.
    Server,
    /// Single words about it.
    Tags,
}

/// A part of the search that can be left out, to see what it brings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Part {
    /// `deployments` is found by `deploy`.
    Stemming,
    /// `dashbord` finds `dashboard`.
    Typos,
    /// `roll back` finds `rollback`, and the other way round.
    Compounds,
    /// `repo` finds `repository`.
    Abbreviations,
    /// What only holds a sentence together counts for nothing.
    Fillers,
    /// Nearly identical tools take one place.
    Groups,
    /// Words that mean nearly the same find each other.
    Relations,
    /// What a query and a tool are about counts, whichever words they use.
    Meaning,
}

/// What weighs how much.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// What one use of a word weighs in each field.
    pub weights: [f32; Field::COUNT],
    /// How long each field is expected to be, in words; in a longer one each use weighs less.
    pub lengths: [f32; Field::COUNT],
    /// How much of that is done: 0 not at all, 1 in full.
    pub length_matters: f32,
    /// The weight at which a word has half of the effect it can ever have.
    pub saturation: f32,
    /// What a related word counts for, beside the word itself.
    pub related: f32,
    /// What the nearest related word counts for where no tool has the word itself.
    pub replaced: f32,
    /// What an abbreviation counts for.
    pub abbreviated: f32,
    /// What a word counts for that was meant by a slip of the pen.
    pub misspelt: f32,
    /// How alike two tools of a server are that are taken for one: 1 is the same.
    pub alike: f64,
    /// Which words mean nearly the same.
    pub relations: Relations,
    /// What words are about.
    pub meanings: Meanings,
    /// What it counts for that a query and a tool are about the same.
    pub about: f32,
    /// How alike a query and a tool must be to be about the same, where no word says so.
    pub surely_about: f32,
    off: u8,
}

impl Field {
    /// How many there are.
    pub const COUNT: usize = 7;

    /// Whether it says what the tool does: arguments are details, and tags put it into a drawer.
    pub(super) fn says_what_it_does(self) -> bool {
        matches!(self, Self::Name | Self::Title | Self::Description | Self::Server)
    }
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            //        name title desc. param. text server tags
            weights: [2.0, 1.5, 1.0, 0.5, 0.25, 1.0, 1.0],
            lengths: [3.0, 4.0, 12.0, 8.0, 40.0, 1.0, 4.0],
            length_matters: 0.5,
            saturation: 1.2,
            related: 0.3,
            replaced: 0.5,
            abbreviated: 0.5,
            misspelt: 0.7,
            alike: 0.75,
            relations: Relations::built_in(),
            meanings: Meanings::built_in(),
            about: 4.0,
            surely_about: 0.4,
            off: 0,
        }
    }
}

impl Tuning {
    /// The same, without a part.
    #[must_use]
    pub fn without(mut self, part: Part) -> Self {
        self.off |= 1 << part as u8;
        self
    }

    /// The same, with a field left out.
    #[must_use]
    pub fn without_field(mut self, field: Field) -> Self {
        self.weights[field as usize] = 0.0;
        self
    }

    pub(super) fn has(&self, part: Part) -> bool {
        self.off & (1 << part as u8) == 0
    }

    /// The vectors of words, if they are to be used.
    pub(super) fn meanings(&self) -> Meanings {
        if self.has(Part::Meaning) { self.meanings } else { Meanings::default() }
    }

    pub(super) fn weight(&self, field: Field) -> f32 {
        self.weights[field as usize]
    }

    /// What one use of a word weighs in fields of these lengths.
    pub(super) fn per_use(&self, lengths: &[usize; Field::COUNT]) -> [f32; Field::COUNT] {
        let mut per_use = self.weights;
        for ((weight, expected), length) in per_use.iter_mut().zip(self.lengths).zip(lengths) {
            #[expect(clippy::cast_precision_loss, reason = "no field has a million words")]
            let length = *length as f32 / expected;
            *weight /= 1.0 - self.length_matters + self.length_matters * length;
        }
        per_use
    }
}
