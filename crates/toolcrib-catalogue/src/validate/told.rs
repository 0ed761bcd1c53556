//! The words for faults that take more than a bound: what was probably meant, and which of several
//! forms came nearest.

use std::borrow::Cow;

use super::{
    faults::{Fault, Path, Sink, short, text_told, told},
    given::Given,
    plan::{Id, Objects, Plan, Rule, Types},
    run::{Run, fault},
};
use crate::nearest;

/// Choices that are listed, and those that are looked through for the one that was meant.
const LISTED: usize = 12;
const SEARCHED: usize = 64;
/// Longer words than this are not compared: it takes the product of the lengths.
const COMPARED: usize = 32;
/// Forms of which it is found out how near they are.
const FORMS: usize = 24;

/// What it takes to say which form was nearly met.
const FORM_STEPS: usize = 500;

/// How `minItems` and its like are called and counted.
pub(super) type Sizes = (&'static str, &'static str, &'static str);
pub(super) const ITEMS: Sizes = ("minItems", "maxItems", "item");
pub(super) const PROPERTIES: Sizes = ("minProperties", "maxProperties", "property");

pub(super) fn counted(count: u64, word: &str) -> String {
    match (count, word.strip_suffix('y')) {
        (1, _) => format!("1 {word}"),
        (_, Some(stem)) => format!("{count} {stem}ies"),
        (_, None) => format!("{count} {word}s"),
    }
}

pub(super) fn size(
    min: Option<u64>,
    max: Option<u64>,
    length: usize,
    path: &Path<'_>,
    sink: &mut Sink,
    (least, most, word): Sizes,
) -> bool {
    let length = length as u64;
    let enough = sink.test(min.is_none_or(|it| it <= length), path, least, || {
        (format!("have at least {}", counted(min.unwrap_or_default(), word)), length.to_string())
    });
    let few = sink.test(max.is_none_or(|it| length <= it), path, most, || {
        (format!("have at most {}", counted(max.unwrap_or_default(), word)), length.to_string())
    });
    enough && few
}

pub(super) fn not_one_of(
    values: &[Given<'_>],
    value: &Given<'_>,
    path: &Path<'_>,
    guess: bool,
) -> Fault {
    let mut listed: Vec<String> = values.iter().take(LISTED).map(told).collect();
    if values.len() > LISTED {
        listed.push(format!("… ({} in all)", values.len()));
    }
    let choices = || values.iter().filter_map(Given::text);
    let meant = value.text().filter(|_| guess).and_then(|it| meant(it, choices()));
    let expected = match listed.as_slice() {
        [only] => format!("be {only}"),
        _ => format!("be one of {}", listed.join(", ")),
    };
    Fault { nearest: meant.map(text_told), ..fault(path, "enum", expected, told(value)) }
}

pub(super) fn unknown(
    key: &str,
    path: &Path<'_>,
    keyword: &'static str,
    mut names: Vec<&str>,
) -> Fault {
    names.sort_unstable();
    names.dedup();
    let meant = meant(key, names.iter().copied()).map(short);
    let listed: Vec<String> =
        names.iter().take(LISTED).map(|it| format!("`{}`", short(it))).collect();
    let more = if listed.len() < names.len() { ", …" } else { "" };
    let expected = match listed.is_empty() {
        true => String::new(),
        false => format!(", only {}{more}", listed.join(", ")),
    };
    Fault { nearest: meant, ..fault(&path.key(key), keyword, expected, String::new()) }
}

pub(super) fn missing(
    name: &str,
    path: &Path<'_>,
    rule: &Objects,
    map: &[(Cow<'_, str>, Given<'_>)],
    guess: bool,
) -> Fault {
    // Where nothing else is allowed, the misspelt name is told on its own.
    let open = guess && rule.additional.is_none();
    let strangers = map.iter().map(|(key, _)| &**key).take(SEARCHED);
    let strangers = strangers.filter(|it| open && !rule.properties.contains_key(*it));
    let meant = meant(name, strangers).map(short);
    Fault { nearest: meant, ..fault(&path.key(name), "required", String::new(), String::new()) }
}

pub(super) fn needed(name: &str, by: &str, path: &Path<'_>) -> Fault {
    let because = format!(" beside `{}`", short(by));
    fault(&path.key(name), "dependentRequired", because, String::new())
}

pub(super) fn bad_name(path: &Path<'_>, why: &[Fault]) -> Fault {
    let why: Vec<String> = why.iter().map(|it| it.expected.clone()).collect();
    fault(path, "propertyNames", why.join(" and "), String::new())
}

fn meant<'w>(typed: &str, words: impl Iterator<Item = &'w str>) -> Option<&'w str> {
    if typed.len() > COMPARED {
        return None;
    }
    nearest(typed, words.take(SEARCHED).filter(|it| it.len() <= COMPARED))
}

/// Says which of several forms a value came nearest to, and what it lacks.
pub(super) fn nearest_form(
    run: &mut Run<'_>,
    keyword: &'static str,
    forms: &[Id],
    value: &Given<'_>,
    path: &Path<'_>,
    sink: &mut Sink,
) {
    // Forms within forms: their words would cost more than all the looking.
    if sink.is_full() || !run.spend(FORM_STEPS) {
        sink.more += 1;
        return;
    }
    let here = path.pointer();
    let mut found: Vec<(usize, Vec<Fault>)> = Vec::new();
    for (index, &form) in forms.iter().enumerate().take(FORMS) {
        let mut inner = Sink::loud();
        run.eval(form, value, path, &mut inner, None);
        found.push((index, inner.faults));
    }
    let wrong_type =
        |faults: &[Fault]| faults.iter().any(|it| it.keyword == "type" && it.path == here);
    if forms.len() <= FORMS && found.iter().all(|(_, faults)| wrong_type(faults)) {
        let either = |types: Types, it: &Id| types.or(asked(run, *it, 0));
        let types = forms.iter().fold(Types::default(), either);
        sink.put(|| fault(path, keyword, format!("be {}", types.told()), told(value)));
        return;
    }
    let Some((index, faults)) =
        found.into_iter().min_by_key(|(index, faults)| (distance(faults, &here), *index))
    else {
        return;
    };
    let single = |it: &Fault| it.path == here && matches!(it.keyword, "enum" | "const");
    if forms.len() == 1 || faults.len() == 1 && faults.iter().all(single) && forms.len() == 2 {
        faults.into_iter().for_each(|it| sink.put(|| it));
        return;
    }
    let lacks: Vec<String> = faults.iter().take(5).map(ToString::to_string).collect();
    let (number, total, lacks) = (index + 1, forms.len(), lacks.join(", and "));
    run.spend(lacks.len() / 8);
    let nearest = Some(format!("form {number}: {lacks}"));
    let expected = format!("fit one of {total} forms");
    sink.put(|| Fault { nearest, ..fault(path, keyword, expected, String::new()) });
}

/// How far a value is from a form: another type is farthest, then another of a set of words.
fn distance(faults: &[Fault], here: &str) -> usize {
    let far = |it: &Fault| match it.keyword {
        "type" if it.path == here => 1000,
        "const" | "enum" => 100,
        "false" | "additionalProperties" | "unevaluatedProperties" => 3,
        "required" => 2,
        _ => 1,
    };
    faults.iter().map(far).sum()
}

/// The types that a rule takes, as far as it says so itself.
pub(super) fn asked(run: &mut Run<'_>, id: Id, depth: usize) -> Types {
    let plan = run.plan;
    let rule = plan.rule(id);
    let own = rule.types.unwrap_or(Types::ALL);
    if depth == 16 || !run.spend(1) {
        return own;
    }
    let Some(more) = rule.more.as_deref() else { return own };
    let mut types = own;
    for it in more.reference.iter().chain(&more.all_of) {
        types = types.and(asked(run, *it, depth + 1));
    }
    for forms in [&more.any_of, &more.one_of].into_iter().filter(|it| !it.is_empty()) {
        let mut either = Types::default();
        for it in forms {
            either = either.or(asked(run, *it, depth + 1));
        }
        types = types.and(either);
    }
    types
}

/// The names that a rule and those beside it know.
pub(super) fn names<'n>(plan: &'n Plan, rule: &'n Rule, depth: usize) -> Vec<&'n str> {
    let own = rule.objects.iter().flat_map(|it| it.properties.keys()).map(|it| &**it);
    let mut all: Vec<&str> = own.take(SEARCHED).collect();
    if depth < 4 {
        for id in rule.beside().take(FORMS) {
            all.extend(names(plan, plan.rule(id), depth + 1));
        }
    }
    all.truncate(SEARCHED);
    all
}
