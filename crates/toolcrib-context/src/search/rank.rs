//! What fits, the best first.
//!
//! Of the ways in which a tool meets a wish the best counts, not their sum, so that a tool which uses five words
//! for one thing does not win over one that does what was asked.

use std::cmp::Ordering;

use super::{
    Entry, Hit, Index, Part,
    meaning::{self, Direction},
    query::Wish,
    vocabulary::Posting,
};

/// How many tools are ranked, but for equals of the last: so many must do for groups to fill the places.
const MAX_RANKED: usize = 1024;
/// How many uses of words near to one that was asked for are looked at.
const MAX_RELATED: usize = 8192;
/// Up to how many tools each is looked at for what it is about.
const MAX_COMPARED: usize = 8192;
/// How finely scores are told apart to find out which are worth ranking.
const STEPS: usize = 256;

/// How well each tool fits, by its place.
#[derive(Debug, Default)]
pub(super) struct Scores {
    totals: Vec<f32>,
    /// The last wish that was met, and how well.
    met: Vec<(u32, f32)>,
    /// The wish at hand.
    wish: u32,
}

impl Scores {
    fn begin(&mut self, tools: usize) {
        self.totals.clear();
        self.totals.resize(tools, 0.0);
        self.met.resize(tools, (0, 0.0));
        // A wish has a number that none had before, so what was met needs no clearing.
        if u32::MAX / 2 < self.wish {
            self.met.fill((0, 0.0));
            self.wish = 0;
        }
    }

    /// Tools meet the wish at hand, each so well.
    fn meet(&mut self, postings: &[Posting], weight: f32) {
        for posting in postings {
            let at = posting.tool as usize;
            let (Some(met), Some(total)) = (self.met.get_mut(at), self.totals.get_mut(at)) else {
                continue;
            };
            let score = weight * posting.impact;
            let before = if met.0 == self.wish { met.1 } else { 0.0 };
            if before < score {
                *met = (self.wish, score);
                *total += score - before;
            }
        }
    }

    /// A score that not many more than [`MAX_RANKED`] tools reach.
    fn worth_ranking(&self) -> f32 {
        let best = self.totals.iter().copied().fold(0.0, f32::max);
        if self.totals.len() <= MAX_RANKED || best == 0.0 {
            return f32::MIN_POSITIVE;
        }
        #[expect(clippy::cast_precision_loss, reason = "it is 255")]
        let scale = (STEPS - 1) as f32 / best;
        let mut counts = [0_usize; STEPS];
        for total in &self.totals {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 255")]
            let step = (total * scale) as usize;
            counts[step.min(STEPS - 1)] += 1;
        }
        let mut reached = 0;
        let step = (1..STEPS).rev().find(|step| {
            reached += counts[*step];
            MAX_RANKED <= reached
        });
        #[expect(clippy::cast_precision_loss, reason = "it is 255 at most")]
        step.map_or(f32::MIN_POSITIVE, |it| it as f32 / scale)
    }

    /// The tools that reach one score and not the other.
    fn between(&self, least: f32, below: f32) -> Vec<Ranked> {
        let all = (0..).zip(&self.totals).filter(|(_, total)| least <= **total && **total < below);
        all.map(|(tool, &score)| Ranked { score, by_words: score, tool }).collect()
    }
}

/// A tool that fits, and how well.
#[derive(Debug, Clone, Copy)]
struct Ranked {
    score: f32,
    /// What of it is for words alone.
    by_words: f32,
    /// Its place.
    tool: u32,
}

/// Tools that are nearly the same, the best of them having come first.
#[derive(Debug)]
struct Group<'a> {
    best: (Ranked, &'a Entry),
    also: Vec<(Ranked, &'a Entry)>,
}

impl Index {
    /// As [`Index::search`], among the tools that are allowed. How rare a word is, is still counted over all.
    pub fn search_where(
        &self,
        query: &str,
        top: usize,
        allowed: impl Fn(&str) -> bool,
    ) -> Vec<Hit> {
        self.find(query, top, Some(&allowed))
    }

    pub(super) fn find(
        &self,
        query: &str,
        top: usize,
        allowed: Option<&dyn Fn(&str) -> bool>,
    ) -> Vec<Hit> {
        if top == 0 {
            return Vec::new();
        }
        let mut scores = self.scores.lock().take().unwrap_or_default();
        scores.begin(self.tools.len());
        for wish in &self.wishes(query) {
            self.score(wish, &mut scores);
        }
        let is_allowed = |at: u32| {
            allowed.is_none_or(|allowed| self.entry(at).is_some_and(|it| allowed(&it.key)))
        };
        let wanted = self.direction(query);
        let mut ranked = self.by_words(&scores, &is_allowed);
        if let Some(wanted) = &wanted {
            self.add_meaning(wanted, &scores, &is_allowed, &mut ranked);
        }
        *self.scores.lock() = Some(scores);
        self.best(ranked, top)
    }

    fn entry(&self, at: u32) -> Option<&Entry> {
        self.tools.get(at as usize)?.as_ref()
    }

    /// How much it tells that a tool has a term.
    pub(super) fn rarity(&self, term: u32) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "counts of tools are far below 2^52")]
        let (with, all) = (self.vocabulary.tools_with(term) as f64, self.len() as f64);
        ((all - with + 0.5) / (with + 0.5)).ln_1p()
    }

    fn score(&self, wish: &Wish, scores: &mut Scores) {
        scores.wish += 1;
        // A rare word that is only related must not outweigh the word that was asked for.
        let direct = wish.terms.iter().find(|it| it.1 == 1.0).map(|it| self.rarity(it.0));
        let mut looked_at = 0;
        for &(term, weight) in &wish.terms {
            let rarity = self.rarity(term).min(direct.unwrap_or(f64::INFINITY));
            let postings = &self.vocabulary.terms[term as usize].postings;
            // In a large catalogue, near words that many tools have tell nothing, and cost the most.
            if weight < 1.0 {
                looked_at += postings.len();
                if MAX_RELATED < looked_at {
                    continue;
                }
            }
            #[expect(clippy::cast_possible_truncation, reason = "a score needs no more")]
            scores.meet(postings, rarity as f32 * weight);
        }
    }

    /// The tools that have words of the query, or words near to them; of very many only the best.
    fn by_words(&self, scores: &Scores, is_allowed: &impl Fn(u32) -> bool) -> Vec<Ranked> {
        let worth = scores.worth_ranking();
        let mut ranked = scores.between(worth, f32::INFINITY);
        ranked.retain(|it| is_allowed(it.tool));
        if ranked.len() < MAX_RANKED {
            let others = scores.between(f32::MIN_POSITIVE, worth);
            ranked.extend(others.into_iter().filter(|it| is_allowed(it.tool)));
        }
        if MAX_RANKED < ranked.len() {
            ranked.select_nth_unstable_by(MAX_RANKED, |a, b| b.score.total_cmp(&a.score));
            // Which of equals come first must not depend on how the index came about.
            let least = ranked[MAX_RANKED].score;
            ranked.retain(|it| least <= it.score);
        }
        ranked
    }

    /// Adds what it is worth that a tool is about the same as the query. In a catalogue of usual size that may
    /// be all that speaks for a tool; in a very large one only the best by words are looked at.
    fn add_meaning(
        &self,
        wanted: &Direction,
        scores: &Scores,
        is_allowed: &impl Fn(u32) -> bool,
        ranked: &mut Vec<Ranked>,
    ) {
        let alike = |at: u32| {
            let direction = self.directions.get(at as usize);
            direction.map_or(0.0, |it| meaning::alike(wanted, it))
        };
        if self.len() <= MAX_COMPARED {
            for (tool, _) in (0..).zip(&scores.totals).filter(|(_, total)| **total == 0.0) {
                if self.tuning.surely_about <= alike(tool) && is_allowed(tool) {
                    ranked.push(Ranked { score: 0.0, by_words: 0.0, tool });
                }
            }
        }
        for it in ranked {
            it.score += self.tuning.about * alike(it.tool).max(0.0);
        }
    }

    /// The best of them, those that are nearly the same as a better one put with it.
    fn best(&self, mut ranked: Vec<Ranked>, top: usize) -> Vec<Hit> {
        let order = |a: &Ranked, b: &Ranked| self.order(a, b);
        let mut groups: Vec<Group<'_>> = Vec::new();
        let mut sorted = 0;
        let mut batch = (4 * top).max(64);
        while sorted < ranked.len() && groups.len() < top {
            let rest = &mut ranked[sorted..];
            let length = batch.min(rest.len());
            if length < rest.len() {
                rest.select_nth_unstable_by(length, order);
            }
            rest[..length].sort_unstable_by(order);
            for it in &rest[..length] {
                self.put(*it, top, &mut groups);
            }
            sorted += length;
            batch *= 8;
        }
        groups.into_iter().map(Group::hit).collect()
    }

    fn put<'a>(&'a self, ranked: Ranked, top: usize, groups: &mut Vec<Group<'a>>) {
        let Some(entry) = self.entry(ranked.tool) else { return };
        let is_alike = |it: &&mut Group<'_>| self.are_alike(it.best.1, entry);
        let group = groups.iter_mut().find(|it| self.tuning.has(Part::Groups) && is_alike(it));
        if let Some(group) = group {
            group.also.push((ranked, entry));
        } else if groups.len() < top {
            groups.push(Group { best: (ranked, entry), also: Vec::new() });
        }
    }

    /// The better first; of equals the cheaper, then the one whose name comes first.
    fn order(&self, a: &Ranked, b: &Ranked) -> Ordering {
        b.score.total_cmp(&a.score).then_with(|| {
            let rank = |it: &Ranked| self.entry(it.tool).map(|it| (it.cost_hint, &it.key));
            match (rank(a), rank(b)) {
                (Some(a), Some(b)) => a.0.total_cmp(&b.0).then_with(|| a.1.cmp(b.1)),
                _ => Ordering::Equal,
            }
        })
    }
}

impl Group<'_> {
    /// They are all about the same; the one that says least beyond what was asked stands for them, which is the
    /// one that words alone fit best.
    fn hit(mut self) -> Hit {
        let score = self.best.0.score;
        for other in &mut self.also {
            if self.best.0.by_words < other.0.by_words {
                std::mem::swap(&mut self.best, other);
            }
        }
        let also = self.also.iter().map(|(_, it)| it.key.clone()).collect();
        Hit { key: self.best.1.key.clone(), score: f64::from(score), also }
    }
}
