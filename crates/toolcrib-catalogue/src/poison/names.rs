//! What shows only where tools of several servers stand side by side: names that are taken for
//! others, and descriptions that speak of other servers' tools.
//!
//! Names are brought together by what they look like and by what is left of them when one letter is
//! dropped, so that a catalogue of 100,000 tools is not compared pair by pair.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashMap, HashSet};

use super::{Finding, Found, Kind, Signal, hidden, words};
use crate::Tool;

/// Names that are shorter or longer are not looked at for slips of the pen.
const SLIPS: std::ops::RangeInclusive<usize> = 6..=40;
/// Words that are shorter become other words by one letter: `get`, `set`.
const WORD: usize = 6;
/// The same, where the description says which word is meant.
const MEANT: usize = 4;
/// How many tools one name is compared with.
const COMPARED: usize = 8;
/// How much of a description is looked through for names.
const DESCRIPTION: usize = 64 * 1024;

const SAME_LOOK: &str = "is a name that looks like that of another server's tool";
const CASE: &str = "is the name of another server's tool but for capitals";
const SLIP: &str = "is the name of another server's tool but for a letter";
const SHADOW: &str = "says how to use another server's tool";

/// Words by which a sentence takes another's tool over.
const ORDERS: [&str; 33] = [
    "slow",
    "moved",
    "retired",
    "insecure",
    "dangerous",
    "buggy",
    "longer",
    "wrong",
    "fake",
    "compromised",
    "unreliable",
    "must",
    "should",
    "always",
    "never",
    "not",
    "don't",
    "whenever",
    "rather",
    "deprecated",
    "ignore",
    "replace",
    "replaces",
    "redirect",
    "every",
    "bcc",
    "unsafe",
    "broken",
    "outdated",
    "supersedes",
    "stop",
    "recipient",
    "obsolete",
];
/// Words by which it may only say what goes well together.
const ADVICE: [&str; 9] =
    ["before", "after", "instead", "when", "first", "prefer", "only", "avoid", "use"];

/// Looks at tools of several servers together. Each finding comes with the place, in `tools`, of
/// the tool that it is about; what one definition shows by itself is [`super::inspect`]'s.
///
/// ```
/// use toolcrib_catalogue::{Json, Tool, poison::{Kind, inspect_all}};
///
/// let good = Tool::read(Json::parse(r#"{"name": "read_file"}"#)?)?;
/// let bad = Tool::read(Json::parse(r#"{"name": "read_fi1e"}"#)?)?;
/// let found = inspect_all(&[("files", &good), ("new", &bad)]);
/// assert_eq!((found[0].0, found[0].1.kind), (1, Kind::LookAlike));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn inspect_all(tools: &[(&str, &Tool)]) -> Vec<(usize, Finding)> {
    let mut found: HashMap<usize, Found> = HashMap::new();
    let mut tell = |at: usize, place: &str, signal: Signal<'_>| {
        found.entry(at).or_default().add(|| place.to_owned(), signal);
    };
    look_alikes(tools, &mut tell);
    slips(tools, &mut tell);
    shadows(tools, &mut tell);
    let mut all: Vec<(usize, Found)> = found.into_iter().collect();
    all.sort_by_key(|it| it.0);
    all.into_iter().flat_map(|(at, it)| it.sorted().into_iter().map(move |it| (at, it))).collect()
}

/// The pieces of a name: `sendEmail_now` is `send`, `email`, `now`.
pub(super) fn pieces(name: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        let begins = c.is_uppercase() && before.is_lowercase();
        if (begins || !c.is_alphanumeric()) && all.last().is_some_and(|it| !it.is_empty()) {
            all.push(String::new());
        }
        if let Some(last) = all.last_mut().filter(|_| c.is_alphanumeric()) {
            last.extend(c.to_lowercase());
        }
        before = c;
    }
    all.retain(|it| !it.is_empty());
    all
}

/// A name as it looks from afar.
fn look_of(name: &str) -> String {
    let mut look = String::with_capacity(name.len());
    for c in hidden::clean(name).chars().filter(|it| it.is_alphanumeric()) {
        for c in words::fold(c).to_lowercase() {
            look.push(match c {
                '1' | 'i' | 'j' => 'l',
                '0' => 'o',
                c => c,
            });
        }
    }
    look.replace("rn", "m").replace("vv", "w").replace("cl", "d")
}

/// A name without capitals and separators.
fn plain(name: &str) -> String {
    name.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn look_alikes(tools: &[(&str, &Tool)], tell: &mut impl FnMut(usize, &str, Signal<'_>)) {
    let mut alike: HashMap<String, Vec<usize>> = HashMap::new();
    for (at, (_, tool)) in tools.iter().enumerate() {
        alike.entry(look_of(&tool.name)).or_default().push(at);
    }
    for group in alike.values().filter(|it| it.len() > 1) {
        each_other(tools, group, |at, (_, tool), (server, other)| {
            let (name, other) = (&tool.name, &other.name);
            let strange = |it: &str| (!it.is_ascii(), oddity(it));
            let evidence = format!("{name}` beside `{other}` of `{server}");
            let add = |says, weight| Some((says, weight));
            let sign = if plain(name) != plain(other) && strange(name) > strange(other) {
                add(SAME_LOOK, if name.is_ascii() { 0.8 } else { 0.95 })
            } else if name.eq_ignore_ascii_case(other) && capitals(name) > capitals(other) {
                add(CASE, 0.5)
            } else {
                None
            };
            if let Some((says, weight)) = sign {
                tell(
                    at,
                    "name",
                    Signal { kind: Kind::LookAlike, says, weight, evidence: &evidence },
                );
            }
        });
    }
}

fn capitals(name: &str) -> usize {
    name.chars().filter(|it| it.is_uppercase()).count()
}

/// How much of a name is not what one would choose: digits inside words, capitals.
fn oddity(name: &str) -> usize {
    name.chars().filter(|it| it.is_ascii_digit() || it.is_uppercase() || !it.is_ascii()).count() * 4
        + name.matches("rn").count()
        + name.matches("vv").count()
        + name.matches('j').count()
        + name.matches('l').count()
}

/// Calls `compare` for each of `group` with a few tools of other servers that are in it.
fn each_other<'a>(
    tools: &[(&'a str, &'a Tool)],
    group: &[usize],
    mut compare: impl FnMut(usize, (&'a str, &'a Tool), (&'a str, &'a Tool)),
) {
    // One tool for each name and server; there are few, or somebody is playing with us.
    let mut seen = HashSet::new();
    let known =
        group.iter().filter_map(|it| tools.get(*it)).filter(|it| seen.insert((it.0, &*it.1.name)));
    let others: Vec<&(&str, &Tool)> = known.take(COMPARED * 4).collect();
    for &at in group {
        let Some(&own) = tools.get(at) else { continue };
        let different = others.iter().filter(|it| it.0 != own.0 && it.1.name != own.1.name);
        for other in different.take(COMPARED) {
            compare(at, own, **other);
        }
    }
}

fn slips(tools: &[(&str, &Tool)], tell: &mut impl FnMut(usize, &str, Signal<'_>)) {
    let mut left: Vec<(u64, usize)> = Vec::new();
    let state = DefaultHashBuilder::default();
    for (at, (_, tool)) in tools.iter().enumerate() {
        let name = tool.name.as_bytes();
        if !SLIPS.contains(&name.len()) || !name.is_ascii() {
            continue;
        }
        for dropped in 0..=name.len() {
            let mut hasher = state.build_hasher();
            name.iter()
                .enumerate()
                .filter(|it| it.0 != dropped)
                .for_each(|it| hasher.write_u8(it.1.to_ascii_lowercase()));
            left.push((hasher.finish(), at));
        }
    }
    left.sort_unstable();
    left.dedup();
    for group in left.chunk_by(|a, b| a.0 == b.0).filter(|it| it.len() > 1) {
        let group: Vec<usize> = group.iter().map(|it| it.1).collect();
        each_other(tools, &group, |at, (_, tool), (server, other)| {
            let Some((own, meant)) = slip(&tool.name, &other.name) else { return };
            let description = tool.description.as_deref().unwrap_or_default().to_lowercase();
            let says = |word: &str, other: &str| {
                let mut words = description.split(|c: char| !c.is_alphanumeric());
                words.any(|it| {
                    it.starts_with(word) && (other.len() <= word.len() || !it.starts_with(other))
                })
            };
            // Who says `contact` and means it says so again; who writes `serach` does not.
            let weight = match (says(&own, &meant), says(&meant, &own)) {
                (true, _) => return,
                (false, true) => 0.7,
                (false, false) if own.len().min(meant.len()) >= WORD => 0.45,
                (false, false) => return,
            };
            let evidence = format!("{}` beside `{}` of `{server}", tool.name, other.name);
            tell(
                at,
                "name",
                Signal { kind: Kind::LookAlike, says: SLIP, weight, evidence: &evidence },
            );
        });
    }
}

/// The word of `name` that is one of `other`'s but for a slip of the pen, and that word.
fn slip(name: &str, other: &str) -> Option<(String, String)> {
    let (own, others) = (pieces(name), pieces(other));
    if own.len() != others.len() {
        return None;
    }
    let mut different = own.into_iter().zip(others).filter(|(a, b)| a != b);
    let (a, b) = different.next().filter(|_| different.next().is_none())?;
    let letters = |it: &str| it.len() >= MEANT && it.bytes().all(|it| it.is_ascii_alphabetic());
    // Other forms of one word: issue, issues; create, created.
    let form = |long: &str, short: &str| {
        long.strip_prefix(short).is_some_and(|it| matches!(it, "s" | "d" | "r" | "y" | "n"))
    };
    let form = form(&a, &b) || form(&b, &a);
    (letters(&a) && letters(&b) && !form && is_slip(a.as_bytes(), b.as_bytes())).then_some((a, b))
}

/// Whether one letter was dropped, doubled, replaced, or two neighbours changed places.
fn is_slip(a: &[u8], b: &[u8]) -> bool {
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (&a[same..], &b[same..]);
    match (a, b) {
        ([_, x @ ..], [_, y @ ..]) if x == y => true,
        ([x, y, rest @ ..], [v, w, other @ ..]) if x == w && y == v && rest == other => true,
        ([_, x @ ..], y) | (y, [_, x @ ..]) if x == y => true,
        (x, [_, y @ ..]) => x == y,
        _ => false,
    }
}

fn shadows(tools: &[(&str, &Tool)], tell: &mut impl FnMut(usize, &str, Signal<'_>)) {
    let mut owners: HashMap<String, Vec<&str>> = HashMap::new();
    for (server, tool) in tools {
        if tool.name.len() > 5 && pieces(&tool.name).len() > 1 {
            let servers = owners.entry(tool.name.to_lowercase()).or_default();
            if servers.last() != Some(server) {
                servers.push(server);
            }
        }
    }
    for (at, (server, tool)) in tools.iter().enumerate() {
        let Some(description) = &tool.description else { continue };
        let text = super::phrases::head(description, DESCRIPTION);
        for sentence in text.split_inclusive(['!', '?', '\n']).flat_map(|it| it.split(". ")) {
            let named = sentence
                .split(|c: char| !c.is_alphanumeric() && !matches!(c, '_' | '-'))
                .find_map(|it| {
                    let lower = it.to_lowercase();
                    let name = lower.rsplit("__").next().unwrap_or(&lower);
                    let theirs = owners.get(name).filter(|them| !them.contains(server))?;
                    Some((it, *theirs.first()?))
                });
            let Some((name, owner)) = named else { continue };
            let holds = |words: &[&str]| {
                sentence
                    .split(|c: char| !c.is_alphanumeric() && c != '\'')
                    .any(|it| words.iter().any(|word| it.eq_ignore_ascii_case(word)))
            };
            let weight = match (holds(&ORDERS), holds(&ADVICE)) {
                (true, _) => 0.6,
                (false, true) => 0.35,
                (false, false) => continue,
            };
            let evidence = format!("{}` about `{name}` of `{owner}", sentence.trim());
            let evidence = evidence.as_str();
            let signal = Signal { kind: Kind::Shadowing, says: SHADOW, weight, evidence };
            tell(at, "description", signal);
        }
    }
}
