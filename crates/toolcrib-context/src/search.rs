//! Tools by what somebody wants to do.
//!
//! An [`Index`] holds the words of tools: what they are called, what they are said to do, what their parameters
//! are called, whose they are. A word weighs more in a name than in a description, more where it is rare, and
//! hardly more the tenth time than the third (BM25F). Lengths are measured against fixed ones, not against the
//! average of the catalogue, so that what a word weighs in a tool follows from that tool alone: adding a tool
//! touches its own words and nothing else, and an index that was changed is the same as one made anew.
//!
//! What a caller may not see must not be in the index: rarity is counted over all that is.

mod words;
mod document;
mod vocabulary;
mod meaning;
mod relations;
mod tuning;
mod query;
mod rank;
mod near;
mod groups;

use std::sync::Arc;

use hashbrown::HashMap;
use parking_lot::Mutex;

pub use document::Document;
pub use meaning::Meanings;
pub use relations::Relations;
pub use tuning::{Field, Part, Tuning};

use document::Said;
use meaning::{Direction, Sum};
use rank::Scores;
use vocabulary::{Posting, Vocabulary, Word, place};
use words::Piece;

/// The most words of one field that are looked at: a text that says everything says nothing.
const MAX_WORDS: usize = 400;
/// The most bytes of one field that are looked at.
const MAX_BYTES: usize = 16 << 10;

/// The words of tools, and where they stand.
#[derive(Debug)]
pub struct Index {
    tuning: Tuning,
    vocabulary: Vocabulary,
    /// By place. Places are given in order and not given again, so that postings stay in order by adding at
    /// their ends; where most are empty, all are given anew.
    tools: Vec<Option<Entry>>,
    /// What each tool is about, by place; empty where that is not to count.
    directions: Vec<Direction>,
    by_key: HashMap<Arc<str>, u32>,
    /// Kept from tool to tool.
    notes: Notes,
    /// Kept from search to search, since clearing what was touched is cheaper than making it anew.
    scores: Mutex<Option<Scores>>,
}

/// A tool that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// What it was added as.
    pub key: Arc<str>,
    /// How well it fits; comparable within one search only.
    pub score: f64,
    /// Others of its server that are nearly the same, and fit no better.
    pub also: Vec<Arc<str>>,
}

/// What the index keeps of a tool.
#[derive(Debug)]
struct Entry {
    key: Arc<str>,
    /// Tools of different servers are different tools, however alike.
    server: u64,
    cost_hint: f64,
    /// Sorted by the place of the term.
    terms: Box<[TermUse]>,
    words: Box<[u32]>,
}

/// That a tool has a term, and where.
#[derive(Debug, Clone, Copy)]
struct TermUse {
    term: u32,
    in_name: bool,
    /// In name, title or description.
    in_text: bool,
}

impl Default for Index {
    fn default() -> Self {
        Self::with(Tuning::default())
    }
}

impl Index {
    /// An index that weighs as it is told.
    pub fn with(tuning: Tuning) -> Self {
        Self {
            vocabulary: Vocabulary::new(tuning.has(Part::Stemming), tuning.meanings()),
            tuning,
            tools: Vec::new(),
            directions: Vec::new(),
            by_key: HashMap::new(),
            notes: Notes::default(),
            scores: Mutex::new(None),
        }
    }

    /// How many tools it has.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// Whether it has this one.
    pub fn contains(&self, key: &str) -> bool {
        self.by_key.contains_key(key)
    }

    /// Adds a tool, or replaces the one of this key.
    pub fn set(&mut self, key: Arc<str>, document: &Document<'_>) {
        self.remove(&key);
        let notes = std::mem::take(&mut self.notes);
        let mut reader = Reader::new(&mut self.vocabulary, &self.tuning, notes);
        reader.read(document);
        let direction = reader.about.direction().unwrap_or(meaning::NOWHERE);
        let mut notes = reader.weigh();
        notes.words.sort_unstable();
        notes.words.dedup();
        for &word in &notes.words {
            self.vocabulary.retain(word);
        }
        let entry = Entry {
            key: Arc::clone(&key),
            server: hash(document.server),
            cost_hint: if document.cost_hint.is_finite() { document.cost_hint } else { 0.0 },
            terms: notes.weights.iter().map(|(it, _)| *it).collect(),
            words: notes.words.as_slice().into(),
        };
        let at = place(&mut Vec::new(), &mut self.tools, Some(entry));
        for (it, weight) in notes.weights.drain(..) {
            let impact = weight / (self.tuning.saturation + weight);
            self.vocabulary.insert(it.term, Posting { tool: at, impact });
        }
        if self.tuning.has(Part::Meaning) {
            self.directions.push(direction);
        }
        self.notes = notes;
        self.by_key.insert(key, at);
    }

    /// Takes a tool out. Returns whether it was there.
    pub fn remove(&mut self, key: &str) -> bool {
        let Some(at) = self.by_key.remove(key) else { return false };
        let Some(entry) = self.tools[at as usize].take() else { return false };
        for it in &entry.terms {
            self.vocabulary.take_out(it.term, at);
        }
        for &word in &entry.words {
            self.vocabulary.release(word);
        }
        if 2 * self.len() + 1024 < self.tools.len() {
            self.close_gaps();
        }
        true
    }

    /// Gives all tools new places, in the order of the old ones.
    fn close_gaps(&mut self) {
        let mut places = vec![0; self.tools.len()];
        let used = places.iter_mut().zip(&self.tools).filter(|(_, it)| it.is_some());
        for (new, (place, _)) in (0..).zip(used) {
            *place = new;
        }
        let mut tools = self.tools.iter();
        self.directions.retain(|_| tools.next().is_some_and(Option::is_some));
        self.tools.retain(Option::is_some);
        self.vocabulary.renumber(&places);
        for at in self.by_key.values_mut() {
            *at = places[*at as usize];
        }
    }

    /// The tools that fit a query best, at most `top`, the best first. Nothing where nothing fits.
    ///
    /// ```
    /// use toolcrib_context::search::{Document, Index};
    ///
    /// let mut index = Index::default();
    /// let document = |name, description| Document { name, description, ..Document::default() };
    /// index.set("issues".into(), &document("list_issues", "List the open issues of a repository"));
    /// index.set("mail".into(), &document("sendMail", "Send an e-mail"));
    /// assert_eq!(&*index.search("issues that are open", 5)[0].key, "issues");
    /// assert_eq!(&*index.search("sending emails", 5)[0].key, "mail");
    /// assert_eq!(index.search("weather", 5), []);
    /// ```
    pub fn search(&self, query: &str, top: usize) -> Vec<Hit> {
        self.find(query, top, None)
    }
}

/// What is noted of a tool while it is read.
#[derive(Debug, Default)]
struct Notes {
    words: Vec<u32>,
    /// Each use of a term, with its field.
    uses: Vec<(u32, Field)>,
    /// What each term weighs, in the order of the terms.
    weights: Vec<(TermUse, f32)>,
    scratch: String,
}

/// Reads a document into what the words of it weigh.
struct Reader<'a> {
    vocabulary: &'a mut Vocabulary,
    tuning: &'a Tuning,
    notes: Notes,
    lengths: [usize; Field::COUNT],
    about: Sum,
}

impl<'a> Reader<'a> {
    fn new(vocabulary: &'a mut Vocabulary, tuning: &'a Tuning, mut notes: Notes) -> Self {
        notes.words.clear();
        notes.uses.clear();
        Self { vocabulary, tuning, notes, lengths: [0; Field::COUNT], about: Sum::new() }
    }

    fn read(&mut self, document: &Document<'_>) {
        self.text(Field::Name, document.name);
        self.text(Field::Title, document.title);
        self.text(Field::Description, document.description);
        self.text(Field::Server, document.server);
        for tag in &document.tags {
            self.text(Field::Tags, tag);
        }
        if let Some(schema) = document.schema {
            document::read_schema(schema, &mut |said, text| match said {
                Said::Name => self.text(Field::Parameters, text),
                Said::Text => self.text(Field::ParameterText, text),
            });
        }
    }

    fn text(&mut self, field: Field, text: &str) {
        if self.tuning.weight(field) == 0.0 || MAX_WORDS <= self.lengths[field as usize] {
            return;
        }
        let text = &text[..text.floor_char_boundary(MAX_BYTES)];
        let folded = words::fold(text);
        let mut scratch = std::mem::take(&mut self.notes.scratch);
        let mut before: Option<&str> = None;
        for chunk in words::chunks(&folded) {
            if MAX_WORDS <= self.lengths[field as usize] {
                break;
            }
            words::pieces(chunk.text, &mut scratch, |word, piece| self.word(field, word, piece));
            if let Some(before) = before.filter(|_| chunk.hyphened) {
                words::join(before, chunk.text, &mut scratch);
                self.word(field, &scratch, Piece::Joined);
            }
            before = Some(chunk.text);
        }
        self.notes.scratch = scratch;
    }

    fn word(&mut self, field: Field, text: &str, piece: Piece) {
        // In a name even these may mean something: `who_am_i`.
        if field != Field::Name && words::is_filler(text) {
            return;
        }
        let word = self.vocabulary.intern(text);
        self.notes.words.push(word);
        let Word { term, meaning, .. } = *self.vocabulary.word(word);
        self.notes.uses.push((term, field));
        if piece == Piece::Word {
            self.lengths[field as usize] += 1;
            if let Some(meaning) = meaning.filter(|_| field.says_what_it_does()) {
                self.about.add(self.tuning.meanings, meaning);
            }
        }
    }

    /// Puts the uses of each term together.
    fn weigh(mut self) -> Notes {
        let per_use = self.tuning.per_use(&self.lengths);
        let Notes { uses, weights, .. } = &mut self.notes;
        uses.sort_unstable();
        weights.clear();
        for &(term, field) in &*uses {
            if weights.last().is_none_or(|(it, _)| it.term != term) {
                weights.push((TermUse { term, in_name: false, in_text: false }, 0.0));
            }
            if let Some((it, weight)) = weights.last_mut() {
                *weight += per_use[field as usize];
                it.in_name |= field == Field::Name;
                it.in_text |= matches!(field, Field::Name | Field::Title | Field::Description);
            }
        }
        self.notes
    }
}

/// A number for a server's name (FNV-1a). Two servers that share one would have their like tools grouped.
fn hash(text: &str) -> u64 {
    let step = |hash: u64, it: u8| (hash ^ u64::from(it)).wrapping_mul(0x0100_0000_01b3);
    text.bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests;
