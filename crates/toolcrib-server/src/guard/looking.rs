//! Looks at every definition once, and says how the tool stands: served, held back, or not seen by anybody.
//!
//! A definition that has not changed is not looked at again, however often the catalogue is built.

use std::{
    cell::OnceCell,
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use toolcrib_catalogue::{
    Catalogue, Entry, HiddenBecause, Listing, Look, Origin, Tool,
    lock::{Change, ChangeKind, Now, Pinned, Pins, Place, Seen, ToolHash, Verdict, Way, compare},
    poison::{self, Finding, Verdict as Poisoned},
    suspicions,
};

use super::rules::{PoisonRule, Rules};
use crate::slot::Slot;

/// How a tool stands.
#[derive(Debug, Clone)]
pub(crate) struct Standing {
    /// Its definition, looked at.
    pub(crate) look: Arc<Look>,
    /// Why nobody is served with it.
    pub(crate) held: Option<Held>,
    /// Whether it was said already that its results do not fit.
    said: Arc<AtomicBool>,
}

/// Why nobody is served with a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Held {
    /// It is not what was accepted: those who may call it are told so.
    Back(String),
    /// It is as if it did not exist.
    Away(String),
}

/// Something about a definition that somebody should know of.
#[derive(Debug, Clone)]
pub(crate) struct Noticed {
    /// What it is of.
    pub(crate) place: Place,
    /// Which tool.
    pub(crate) tool: String,
    /// What.
    pub(crate) kind: NoticedKind,
    /// In words.
    pub(crate) message: String,
    /// Whether the tool is held back for it.
    pub(crate) held: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoticedKind {
    /// It is another than was accepted.
    Drift { before: Option<ToolHash>, now: ToolHash },
    /// Its server is started or reached in another way than was accepted; no tool is meant.
    Way { before: Option<ToolHash>, now: ToolHash },
    /// It looks poisoned.
    Poison,
    /// Its schema is at fault.
    Schema,
    /// Another has its name.
    Clash,
}

impl Noticed {
    fn of(place: &Place, tool: &str, kind: NoticedKind, message: String, held: bool) -> Self {
        Self { place: place.clone(), tool: tool.to_owned(), kind, message, held }
    }
}

/// What is known of definitions.
#[derive(Debug, Default)]
pub(crate) struct Looking {
    /// By listing, by the name that its source gives a tool.
    known: Vec<HashMap<String, Known>>,
    seen: Seen,
    /// What was said of tools that stand beside others, so that it is said once.
    beside: HashMap<(usize, String), String>,
    /// Whose names others had already, the last time.
    clashed: HashSet<(usize, String)>,
    /// Whose listings these are, and how each was started or reached.
    order: Vec<(Origin, Option<Way>)>,
    /// Of which servers it was said that they are started otherwise, and how they are.
    otherwise: HashMap<Place, ToolHash>,
}

#[derive(Debug)]
struct Known {
    given: Arc<Tool>,
    standing: Standing,
    /// What it means that it is not what its server first listed: it is made out once, and asked for at every build.
    drift: Option<Change>,
    /// Whether somebody was told what is to be known of it.
    told: bool,
}

/// What somebody should hear of now.
type Notices = Vec<Noticed>;

impl Standing {
    /// Whether this is the first result of the tool that does not fit.
    pub(crate) fn is_first_misfit(&self) -> bool {
        !self.said.swap(true, Ordering::Relaxed)
    }
}

impl Known {
    fn new(given: &Arc<Tool>, rules: &Rules) -> Self {
        let look = Arc::new(Look::at(given, rules.faulty));
        let standing = Standing { look, held: None, said: Arc::default() };
        Self { given: Arc::clone(given), standing, drift: None, told: false }
    }

    fn is_of(&self, given: &Arc<Tool>) -> bool {
        Arc::ptr_eq(&self.given, given) || self.given.raw.as_bytes() == given.raw.as_bytes()
    }
}

impl Looking {
    /// Forgets every look: the rules have changed. What servers listed first still counts.
    pub(crate) fn forget(&mut self) {
        self.known.clear();
        self.beside.clear();
        self.otherwise.clear();
    }

    /// The listings that follow are of these sources. What is known of one that is there no longer, or is started
    /// otherwise now, is forgotten: whoever edited that has seen it.
    pub(crate) fn follow(&mut self, slots: &[Arc<Slot>]) {
        let order = slots.iter().map(|it| (it.input.origin.clone(), it.input.way.clone()));
        let order: Vec<_> = order.collect();
        if self.order == order {
            return;
        }
        let before = std::mem::replace(&mut self.order, order);
        for (origin, way) in &before {
            let goes_on = |it: &&(Origin, Option<Way>)| it.0 == *origin;
            if self.order.iter().find(goes_on).is_some_and(|it| it.1 != *way) {
                self.seen.forget(&Place::of(origin));
            }
        }
        let mut known: HashMap<Origin, _> =
            before.into_iter().map(|it| it.0).zip(std::mem::take(&mut self.known)).collect();
        let of = |it: &(Origin, Option<Way>)| known.remove(&it.0).unwrap_or_default();
        self.known = self.order.iter().map(of).collect();
        self.beside.clear();
        self.clashed.clear();
    }

    /// Looks at what is listed, and puts the tools as they go on in place of those that came.
    pub(crate) fn look(
        &mut self,
        listings: &mut [Listing],
        ways: &[Option<&Way>],
        rules: &Rules,
    ) -> Notices {
        let pinned = rules.lock.as_ref().map(Pinned::new);
        let mut found = Notices::new();
        let mut before = std::mem::take(&mut self.known).into_iter();
        for (at, listing) in listings.iter_mut().enumerate() {
            let mut known = self.look_at(before.next().unwrap_or_default(), listing, rules);
            // Whoever edits the workspace's own tools is who would have to accept them.
            if rules.pins != Pins::Off && matches!(listing.origin, Origin::Upstream(_)) {
                let way = ways.get(at).copied().flatten();
                self.hold(&mut known, listing, way, pinned.as_ref(), rules, &mut found);
            }
            self.known.push(known);
        }
        if rules.poison != PoisonRule::Off {
            self.find_poison(listings, rules, &mut found);
        }
        for (known, listing) in self.known.iter_mut().zip(&*listings) {
            conclude(known, listing, &mut found);
        }
        for (known, listing) in self.known.iter().zip(listings) {
            let shown =
                |it: &Arc<Tool>| known.get(&it.name).map(|it| Arc::clone(&it.standing.look.tool));
            listing.tools = listing
                .tools
                .iter()
                .map(|it| shown(it).unwrap_or_else(|| Arc::clone(it)))
                .collect();
        }
        found
    }

    /// Tools that want a name which another has, as far as nobody was told yet.
    pub(crate) fn clashes(&mut self, catalogue: &Catalogue, listings: &[Listing]) -> Notices {
        let mut now = HashSet::new();
        let mut found = Notices::new();
        for it in catalogue.hidden() {
            let HiddenBecause::NameTaken(holder) = &it.because else { continue };
            let key = (it.listing, it.original.clone());
            if !self.clashed.contains(&key) {
                let place = Place::of(&listings[it.listing].origin);
                let message = format!("the name `{}` belongs to {holder}", it.name);
                let kind = NoticedKind::Clash;
                found.push(Noticed::of(&place, &it.original, kind, message, true));
            }
            now.insert(key);
        }
        self.clashed = now;
        found
    }

    /// How each tool of a catalogue stands, in its order.
    pub(crate) fn in_order(&self, catalogue: &Catalogue) -> Vec<Standing> {
        let standing = |it: &Entry| {
            let known = self.known.get(it.listing)?.get(&it.tool.name)?;
            Some(known.standing.clone())
        };
        catalogue.entries().iter().filter_map(standing).collect()
    }

    /// Looks at each definition that has not been looked at. Of two tools with one name the first counts.
    fn look_at(
        &self,
        mut before: HashMap<String, Known>,
        listing: &Listing,
        rules: &Rules,
    ) -> HashMap<String, Known> {
        let mut known = HashMap::with_capacity(listing.tools.len());
        for given in listing.tools.iter() {
            if known.contains_key(&given.name) {
                continue;
            }
            let same = before.remove(&given.name).filter(|it| it.is_of(given));
            let mut it = same.unwrap_or_else(|| Known::new(given, rules));
            it.standing.held = None;
            known.insert(given.name.clone(), it);
        }
        known
    }

    /// Finds what is not as it was accepted.
    fn hold(
        &mut self,
        known: &mut HashMap<String, Known>,
        listing: &Listing,
        way: Option<&Way>,
        pinned: Option<&Pinned>,
        rules: &Rules,
        found: &mut Notices,
    ) {
        let place = Place::of(&listing.origin);
        let by_way = pinned.zip(way).map(|(it, way)| (way, it.verdict_on_way(&place, way)));
        let way_differs = matches!(by_way, Some((_, Verdict::Changed { .. })));
        self.tell_way(&place, by_way, rules, found);
        let hashed: Vec<(Arc<Tool>, ToolHash)> =
            known.values().map(|it| (Arc::clone(&it.given), it.standing.look.hash)).collect();
        // A server that has listed nothing yet has not listed for the first time.
        if !hashed.is_empty() {
            self.seen.look(&place, &hashed);
        }
        let compared: OnceCell<Vec<Change>> = OnceCell::new();
        for (name, it) in known {
            let hash = it.standing.look.hash;
            let by_lock = pinned.map_or(Verdict::Unpinned, |it| it.verdict(&place, name, &hash));
            let verdict = match by_lock {
                Verdict::Unpinned => self.seen.verdict(&place, name, &hash),
                pinned => pinned,
            };
            let before = match verdict {
                Verdict::Changed { before, .. } => Some(before),
                Verdict::New => None,
                Verdict::Same | Verdict::Unpinned if way_differs => Some(hash),
                Verdict::Same | Verdict::Unpinned => continue,
            };
            if by_lock == Verdict::Unpinned && it.drift.is_none() {
                it.drift = self.seen.change(&place, &it.given, &hash);
            }
            let changes = compared.get_or_init(|| {
                let now =
                    Now { place: place.clone(), way: way.cloned(), tools: Some(&listing.tools) };
                rules.lock.as_ref().map_or_else(Vec::new, |it| compare(it, &[now]))
            });
            let about = |change: &&Change| change.tool.as_deref() == Some(name.as_str());
            let of_way = |change: &&Change| change.kind == ChangeKind::ChangedWay;
            let drift = it.drift.as_ref().filter(|_| by_lock == Verdict::Unpinned);
            let change = changes.iter().find(about).or(drift);
            let change = change.or_else(|| changes.iter().find(of_way));
            let cause = change
                .map_or_else(|| "it is not what it was".to_owned(), |it| it.problem().message);
            if rules.pins == Pins::Hold {
                // How a server is started is not for whoever calls.
                let told = match change.filter(of_way) {
                    Some(_) => "its server is started or reached in another way".to_owned(),
                    None => cause.clone(),
                };
                it.standing.held = Some(Held::Back(told));
            }
            if !it.told {
                let kind = NoticedKind::Drift { before, now: hash };
                found.push(Noticed::of(&place, name, kind, cause, rules.pins == Pins::Hold));
            }
        }
    }

    /// Says of a server that it is started otherwise, also where it is not started for that and lists nothing.
    fn tell_way(
        &mut self,
        place: &Place,
        found: Option<(&Way, Verdict)>,
        rules: &Rules,
        notices: &mut Notices,
    ) {
        let (way, before) = match found {
            Some((way, Verdict::Changed { before, .. })) => (way, Some(before)),
            Some((way, Verdict::New)) => (way, None),
            _ => {
                self.otherwise.remove(place);
                return;
            }
        };
        let now = way.hash();
        if self.otherwise.insert(place.clone(), now) == Some(now) {
            return;
        }
        let here = Now { place: place.clone(), way: Some(way.clone()), tools: None };
        let changes = rules.lock.as_ref().map_or_else(Vec::new, |it| compare(it, &[here]));
        let change = changes.iter().find(|it| it.kind == ChangeKind::ChangedWay);
        let message = change.map_or_else(
            || "toolcrib.lock cannot be read in full, and may have accepted another".to_owned(),
            |it| it.problem().message,
        );
        let (kind, held) = (NoticedKind::Way { before, now }, rules.pins == Pins::Hold);
        notices.push(Noticed::of(place, "", kind, message, held));
    }

    /// Finds definitions that look poisoned, by themselves and beside those of other servers.
    fn find_poison(&mut self, listings: &[Listing], rules: &Rules, found: &mut Notices) {
        let upstream = |it: &Listing| matches!(it.origin, Origin::Upstream(_));
        let labels: Vec<String> = listings.iter().map(|it| it.origin.subject()).collect();
        let all = || {
            listings
                .iter()
                .enumerate()
                .flat_map(|(at, it)| it.tools.iter().map(move |tool| (at, tool)))
        };
        let beside: Vec<(&str, &Tool)> =
            all().map(|(at, it)| (labels[at].as_str(), &**it)).collect();
        let mut together: HashMap<usize, Vec<Finding>> = HashMap::new();
        for (at, finding) in poison::inspect_all(&beside) {
            together.entry(at).or_default().push(finding);
        }
        let mut said = HashMap::new();
        for (index, (at, tool)) in all().enumerate() {
            let Some(it) = self.known[at].get_mut(&tool.name).filter(|_| upstream(&listings[at]))
            else {
                continue;
            };
            let more = together.remove(&index).unwrap_or_default();
            if it.standing.look.findings.is_empty() && more.is_empty() {
                continue;
            }
            let findings = [it.standing.look.findings.as_slice(), &more].concat();
            let subject = format!("{}: tool `{}`", labels[at], poison::visible(&tool.name));
            let Some(problem) = suspicions(&findings, &subject) else { continue };
            let hidden =
                rules.poison == PoisonRule::Hide && Poisoned::of(&findings) == Poisoned::Poisoned;
            if hidden {
                it.standing.held = Some(Held::Away(problem.message.clone()));
            }
            let key = (at, tool.name.clone());
            if self.beside.get(&key) != Some(&problem.message) {
                let place = Place::of(&listings[at].origin);
                let message = problem.message.clone();
                let kind = NoticedKind::Poison;
                found.push(Noticed::of(&place, &tool.name, kind, message, hidden));
            }
            said.insert(key, problem.message);
        }
        self.beside = said;
    }
}

/// What is wrong with schemas, and that everything about these tools has been told.
fn conclude(known: &mut HashMap<String, Known>, listing: &Listing, found: &mut Notices) {
    let place = Place::of(&listing.origin);
    for (name, it) in known {
        let refused = it.standing.look.refused();
        if let Some(cause) = refused {
            it.standing.held = Some(Held::Away(cause.to_owned()));
        }
        let subject = format!("{}: tool `{}`", listing.origin.subject(), poison::visible(name));
        let problems = it.standing.look.problems(&subject);
        if let Some(problem) = problems.first().filter(|_| !it.told) {
            let held = refused.is_some();
            let message = problem.message.clone();
            found.push(Noticed::of(&place, name, NoticedKind::Schema, message, held));
        }
        it.told = true;
    }
}
