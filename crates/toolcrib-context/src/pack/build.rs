//! One build, from the items to the prompt.

use std::collections::BTreeMap;

use hashbrown::HashSet;

use super::{
    BuildOptions, BuildStats, ContextManager, ContextPack, DropReason, ItemVerdict, Overflow,
    PackError,
    dedup::{self, Text},
    memory::Memory,
    render::{self, BETWEEN},
    score,
    select::{Candidate, Room, Selection},
};
use crate::{ItemKind, Phase};

const MOST_OF_KIND: usize = 50;

pub(super) fn build(
    manager: &ContextManager,
    phase: Phase,
    query: &str,
    options: &BuildOptions,
) -> Result<ContextPack, PackError> {
    let budget = options.budget.unwrap_or_else(|| manager.options.budgets.of(phase));
    let frame = Memory::of(manager, phase).frame(manager.options.counter, options, budget)?;
    let (mut candidates, pairs) = candidates(manager, phase);
    drop_hidden(manager, &mut candidates, &pairs);
    let mut order = rank(manager, phase, query, options, &mut candidates);
    drop_duplicates(manager, phase, &mut candidates, &pairs, &mut order);
    let most = |kind| manager.options.most_of_kind.get(&kind).copied().unwrap_or(MOST_OF_KIND);
    let mut room =
        Room { counter: manager.options.counter, budget, spent: frame.cost, most: &most };
    loop {
        let selection = Selection::run(&manager.entries, &candidates, &pairs, &room, &order);
        let prompt = frame.around(&sections(manager, &candidates, &selection.taken));
        let tokens = manager.options.counter.count(&prompt);
        // Costs add up but for what stands at the seams; a tokenizer may see one token more there.
        if budget < tokens && selection.taken.contains(&true) {
            room.budget = room.budget.saturating_sub((tokens - budget).max(1));
            continue;
        }
        let (taken, reasons) = (selection.taken, selection.reasons);
        refuse_overflow(manager, &candidates, &reasons, budget)?;
        let mut pack = pack(manager, phase, &candidates, &taken, &reasons);
        pack.prompt = prompt;
        pack.stats.tokens = tokens;
        pack.stats.budget = budget;
        pack.stats.header_footer_tokens = frame.tokens;
        return Ok(pack);
    }
}

/// Items of the kinds that a phase is about, and what they follow from, in the order of the session; and of
/// each call its results among them.
fn candidates(manager: &ContextManager, phase: Phase) -> (Vec<Candidate>, Vec<Vec<usize>>) {
    let entries = &manager.entries;
    let parents: Vec<Option<usize>> = entries
        .iter()
        .map(|it| it.item.parent_id.as_ref().and_then(|id| manager.by_id.get(id)).copied())
        .collect();
    let mut inside: Vec<bool> = entries.iter().map(|it| is_for(phase, it.item.kind)).collect();
    let chosen = inside.clone();
    for at in 0..entries.len() {
        let mut up = parents[at].filter(|_| chosen[at]);
        while let Some(parent) = up.filter(|it| !inside[*it]) {
            inside[parent] = true;
            up = parents[parent];
        }
    }
    let mut places = vec![None; entries.len()];
    let members: Vec<usize> = (0..entries.len()).filter(|it| inside[*it]).collect();
    for (place, entry) in members.iter().enumerate() {
        places[*entry] = Some(place);
    }
    let questions = questions(manager, &parents);
    let mut candidates: Vec<Candidate> = members
        .iter()
        .map(|entry| Candidate {
            entry: *entry,
            from_closure: !chosen[*entry],
            parent: parents[*entry].and_then(|it| places[it]),
            question: questions[*entry].and_then(|it| places[it]),
            pair: None,
            score: None,
            dropped: None,
        })
        .collect();
    let pairs = pair_up(manager, &mut candidates);
    (candidates, pairs)
}

/// Which kinds a phase is about.
fn is_for(phase: Phase, kind: ItemKind) -> bool {
    match kind {
        ItemKind::UserTurn | ItemKind::PlanState | ItemKind::Policy => true,
        ItemKind::AgentMsg | ItemKind::ToolCall => phase != Phase::Route,
        ItemKind::ToolResult
        | ItemKind::DocSnippet
        | ItemKind::RetrievedDoc
        | ItemKind::MemoryFact => matches!(phase, Phase::Interpret | Phase::Answer),
    }
}

/// Of each entry the nearest turn of the user among its ancestors. Parents may form circles.
fn questions(manager: &ContextManager, parents: &[Option<usize>]) -> Vec<Option<usize>> {
    #[derive(Clone, Copy)]
    enum Known {
        No,
        UnderWay,
        Yes(Option<usize>),
    }
    let mut known = vec![Known::No; parents.len()];
    let mut path = Vec::new();
    for start in 0..parents.len() {
        let mut at = start;
        let found = loop {
            match known[at] {
                Known::Yes(found) => break found,
                Known::UnderWay => break None,
                Known::No => {}
            }
            known[at] = Known::UnderWay;
            path.push(at);
            match parents[at] {
                None => break None,
                Some(parent) if manager.entries[parent].item.kind == ItemKind::UserTurn => {
                    break Some(parent).filter(|it| *it != at);
                }
                Some(parent) => at = parent,
            }
        };
        for at in path.drain(..) {
            known[at] = Known::Yes(found);
        }
    }
    let answer = |it: Known| if let Known::Yes(found) = it { found } else { None };
    known.into_iter().map(answer).collect()
}

/// Puts results to their calls. A list of pairs has the call first.
fn pair_up(manager: &ContextManager, candidates: &mut [Candidate]) -> Vec<Vec<usize>> {
    let kind = |it: &Candidate| manager.entries[it.entry].item.kind;
    let mut pairs = vec![Vec::new(); candidates.len()];
    for at in 0..candidates.len() {
        let call = candidates[at].parent.filter(|_| kind(&candidates[at]) == ItemKind::ToolResult);
        let Some(call) = call.filter(|it| kind(&candidates[*it]) == ItemKind::ToolCall) else {
            continue;
        };
        if pairs[call].is_empty() {
            pairs[call].push(call);
            candidates[call].pair = Some(call);
        }
        pairs[call].push(at);
        candidates[at].pair = Some(call);
    }
    pairs
}

/// What is too sensitive goes, and with it the other half of its call.
fn drop_hidden(manager: &ContextManager, candidates: &mut [Candidate], pairs: &[Vec<usize>]) {
    for candidate in candidates.iter_mut().filter(|it| manager.entries[it.entry].hidden) {
        candidate.dropped = Some(DropReason::Sensitivity);
    }
    for pair in pairs.iter().filter(|it| !it.is_empty()) {
        if pair.iter().any(|it| candidates[*it].dropped.is_some()) {
            for at in pair {
                candidates[*at].dropped.get_or_insert(DropReason::Apart);
            }
        }
    }
}

/// Scores what is left; gives its places, the best first.
fn rank(
    manager: &ContextManager,
    phase: Phase,
    query: &str,
    options: &BuildOptions,
    candidates: &mut [Candidate],
) -> Vec<usize> {
    let scoring = scoring(manager, phase);
    let query = manager.lexicon.look_up(query);
    let tags: HashSet<&str> = options.query_tags.iter().map(String::as_str).collect();
    let mut order: Vec<usize> =
        (0..candidates.len()).filter(|it| candidates[*it].dropped.is_none()).collect();
    for (place, at) in order.iter().enumerate() {
        let entry = &manager.entries[candidates[*at].entry];
        let score = score::score(scoring, entry, (place, order.len()), &query, &tags);
        candidates[*at].score = Some(score);
    }
    let key = |it: usize| {
        let candidate = &candidates[it];
        (candidate.score.unwrap_or_default(), &manager.entries[candidate.entry].item.id)
    };
    order.sort_by(|one, other| {
        let (one, other) = (key(*one), key(*other));
        other.0.total_cmp(&one.0).then_with(|| one.1.cmp(other.1))
    });
    order
}

fn scoring(manager: &ContextManager, phase: Phase) -> &super::Scoring {
    manager.options.scoring_in.get(&phase).unwrap_or(&manager.options.scoring)
}

fn drop_duplicates(
    manager: &ContextManager,
    phase: Phase,
    candidates: &mut [Candidate],
    pairs: &[Vec<usize>],
    order: &mut Vec<usize>,
) {
    let texts: Vec<Text<'_>> = candidates
        .iter()
        .map(|it| &manager.entries[it.entry])
        .map(|it| Text { words: &it.words, attachments: &it.attachments })
        .collect();
    let mut seen = vec![false; candidates.len()];
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for at in order.iter().copied() {
        if !seen[at] {
            let group = candidates[at].pair.map_or_else(|| vec![at], |it| pairs[it].clone());
            group.iter().for_each(|it| seen[*it] = true);
            groups.push(group);
        }
    }
    let threshold = scoring(manager, phase).duplicate;
    let goes = dedup::duplicates(&texts, &groups, threshold, manager.lexicon.len());
    for (group, _) in groups.iter().zip(goes).filter(|(_, goes)| *goes) {
        group.iter().for_each(|it| candidates[*it].dropped = Some(DropReason::Dedup));
    }
    order.retain(|it| candidates[*it].dropped.is_none());
}

fn sections(manager: &ContextManager, candidates: &[Candidate], taken: &[bool]) -> String {
    let taken = candidates.iter().zip(taken).filter(|(_, taken)| **taken);
    let sections: Vec<String> = taken
        .map(|(it, _)| &manager.entries[it.entry])
        .map(|it| render::section(&it.item, &it.handles))
        .collect();
    sections.join(BETWEEN)
}

fn refuse_overflow(
    manager: &ContextManager,
    candidates: &[Candidate],
    reasons: &[Option<DropReason>],
    budget: u64,
) -> Result<(), PackError> {
    let Overflow::Refuse(kinds) = &manager.options.overflow else {
        return Ok(());
    };
    let counts =
        |it: &Candidate| kinds.is_empty() || kinds.contains(&manager.entries[it.entry].item.kind);
    let over = candidates.iter().zip(reasons);
    let over = over.filter(|(it, reason)| **reason == Some(DropReason::Budget) && counts(it));
    match over.count() {
        0 => Ok(()),
        count => Err(PackError::Overflow { count, budget }),
    }
}

/// Everything about a build but its prompt.
fn pack(
    manager: &ContextManager,
    phase: Phase,
    candidates: &[Candidate],
    taken: &[bool],
    reasons: &[Option<DropReason>],
) -> ContextPack {
    let counter = manager.options.counter;
    let mut stats = BuildStats {
        counter: counter.to_string(),
        total_candidates: candidates.len(),
        ..BuildStats::default()
    };
    let mut sections = BTreeMap::new();
    let (mut items, mut envelopes) = (Vec::with_capacity(candidates.len()), Vec::new());
    for (at, candidate) in candidates.iter().enumerate() {
        let entry = &manager.entries[candidate.entry];
        let tokens = entry.cost.tokens(counter);
        if taken[at] {
            stats.included_count += 1;
            *sections.entry(entry.item.kind).or_default() += tokens;
            envelopes.extend(entry.envelope.clone());
        } else if let Some(reason) = reasons[at] {
            stats.dropped_count += 1;
            *stats.dropped_reasons.entry(reason).or_default() += 1;
        }
        stats.dependency_closures += usize::from(candidate.from_closure);
        items.push(ItemVerdict {
            id: entry.item.id.clone(),
            kind: entry.item.kind,
            sensitivity: entry.item.sensitivity,
            score: candidate.score,
            tokens,
            included: taken[at],
            reason: reasons[at].filter(|_| !taken[at]),
            from_closure: candidate.from_closure,
        });
    }
    stats.tokens_per_section = sections;
    ContextPack { prompt: String::new(), phase, stats, items, envelopes }
}
