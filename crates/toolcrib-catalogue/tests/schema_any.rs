//! Any schema and any value: no panic, no check that takes long, no memory that stays, and the same
//! verdict as that of the `jsonschema` crate.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test says what it found, and how many pairs it takes depends on the run"
)]

use std::{fmt::Write as _, fs, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_catalogue::{Formats, Json, Validator};

const QUICK: usize = 10_000;
const FULL: usize = 1_000_000;
/// Values for each schema.
const VALUES: usize = 10;
const LONGEST: Duration = Duration::from_millis(50);
/// A schema is read once for all calls, and patterns are made ready then, here by an engine that is not optimized.
const READING: Duration = Duration::from_millis(200);
const GROWTH: usize = 64 * 1024 * 1024;

/// SplitMix64: the same pairs in every run.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut it = self.0;
        it = (it ^ (it >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        it = (it ^ (it >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        it ^ (it >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }

    fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    fn of<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }

    fn list(&mut self, most: usize, mut make: impl FnMut(&mut Self) -> String) -> String {
        let items: Vec<String> = (0..=self.below(most)).map(|_| make(self)).collect();
        items.join(",")
    }
}

const NAMES: [&str; 5] = ["a", "b", "cc", "x-y", "é"];
const NUMBERS: [&str; 10] = ["0", "1", "-1", "2", "3.5", "0.01", "1.0", "1e2", "10", "-0.5"];
const TEXTS: [&str; 8] = ["", "a", "ab", "aé", "2026-01-31", "x@y.org", "http://x.y/", "127.0.0.1"];
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

fn value(dice: &mut Dice, depth: usize) -> String {
    let kinds = if depth == 0 { 5 } else { 9 };
    match dice.below(kinds) {
        0 => "null".to_owned(),
        1 => dice.of(&["true", "false"]).to_owned(),
        2 | 3 => dice.of(&NUMBERS).to_owned(),
        4 => format!("\"{}\"", dice.of(&TEXTS)),
        5 | 6 if dice.one_in(6) => "[]".to_owned(),
        5 | 6 => format!("[{}]", dice.list(4, |dice| value(dice, depth - 1))),
        _ => {
            let mut members = Vec::new();
            for name in NAMES {
                if dice.one_in(3) {
                    members.push(format!("\"{name}\":{}", value(dice, depth - 1)));
                }
            }
            format!("{{{}}}", members.join(","))
        }
    }
}

fn schema(dice: &mut Dice, depth: usize) -> String {
    if dice.one_in(12) {
        return dice.of(&["true", "false", "{}"]).to_owned();
    }
    let mut keywords = std::collections::BTreeMap::new();
    for _ in 0..=dice.below(3) {
        let (key, held) = keyword(dice, depth);
        keywords.insert(key, held);
    }
    let members: Vec<String> =
        keywords.iter().map(|(key, held)| format!("\"{key}\":{held}")).collect();
    format!("{{{}}}", members.join(","))
}

fn keyword(dice: &mut Dice, depth: usize) -> (&'static str, String) {
    let count = dice.below(4).to_string();
    if depth == 0 || dice.one_in(2) {
        return match dice.below(9) {
            0 => ("type", format!("\"{}\"", dice.of(&TYPES))),
            1 => ("type", {
                let first = dice.below(7);
                let second = (first + 1 + dice.below(6)) % 7;
                format!("[\"{}\",\"{}\"]", TYPES[first], TYPES[second])
            }),
            2 => ("enum", format!("[{}]", dice.list(3, |dice| value(dice, 1)))),
            3 => ("const", value(dice, 1)),
            4 => (
                ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"][dice.below(4)],
                dice.of(&NUMBERS).to_owned(),
            ),
            5 => ("multipleOf", dice.of(&["1", "2", "0.5", "10"]).to_owned()),
            6 => (
                [
                    "minLength",
                    "maxLength",
                    "minItems",
                    "maxItems",
                    "minProperties",
                    "maxProperties",
                ][dice.below(6)],
                count,
            ),
            7 => {
                ("pattern", format!("\"{}\"", dice.of(&["^a", "é$", "^[a-z]*$", "\\\\d+", "a|b"])))
            }
            _ => ("format", format!("\"{}\"", dice.of(&["date", "email", "uri", "ipv4", "odd"]))),
        };
    }
    let one = |dice: &mut Dice| schema(dice, depth - 1);
    match dice.below(14) {
        0 | 1 => ("properties", map(dice, &NAMES, one)),
        2 => ("patternProperties", map(dice, &["^a", "^[b-z]", "é"], one)),
        3 => (
            ["additionalProperties", "propertyNames", "unevaluatedProperties"][dice.below(3)],
            one(dice),
        ),
        4 => ("required", format!("[\"{}\"]", dice.of(&NAMES))),
        5 => ("dependentRequired", format!("{{\"a\":[\"{}\"]}}", dice.of(&NAMES))),
        6 => (["items", "contains", "unevaluatedItems"][dice.below(3)], one(dice)),
        7 => ("prefixItems", format!("[{}]", dice.list(2, one))),
        8 => ("uniqueItems", dice.of(&["true", "false"]).to_owned()),
        9 => (["allOf", "anyOf", "oneOf"][dice.below(3)], format!("[{}]", dice.list(3, one))),
        10 => (["not", "if", "then", "else"][dice.below(4)], one(dice)),
        11 => ("dependentSchemas", map(dice, &NAMES, one)),
        _ => ("$ref", format!("\"{}\"", dice.of(&["#", "#/$defs/p", "#/$defs/q"]))),
    }
}

fn map(dice: &mut Dice, names: &[&str], mut make: impl FnMut(&mut Dice) -> String) -> String {
    let mut text = String::from("{");
    for name in names {
        if dice.one_in(2) {
            let comma = if text.len() > 1 { "," } else { "" };
            write!(text, "{comma}\"{name}\":{}", make(dice)).unwrap();
        }
    }
    text + "}"
}

/// Something large: wide, deep, or long.
fn large(dice: &mut Dice) -> String {
    let inner = value(dice, 2);
    match dice.below(5) {
        0 => format!("[{}]", vec![inner; 3000].join(",")),
        1 => "{\"a\":".repeat(100) + &inner + &"}".repeat(100),
        2 => "[".repeat(100) + &inner + &"]".repeat(100),
        3 => format!("\"{}\"", "ab1é".repeat(50_000)),
        _ => {
            let members: Vec<String> = (0..3000).map(|it| format!("\"k{it}\":{inner}")).collect();
            format!("{{{}}}", members.join(","))
        }
    }
}

#[test]
fn no_pair_panics_takes_long_or_leaves_anything_behind() {
    let pairs = if std::env::var_os("TOOLCRIB_FULL").is_some() { FULL } else { QUICK };
    let mut dice = Dice(7);
    let (mut longest, mut slowest) = (Duration::ZERO, Duration::ZERO);
    let (mut made, mut read, mut checked, mut fitting) = (0, 0, 0, 0);
    let before = resident();
    // Only a value that met its schema is a pair.
    while checked < pairs {
        made += 1;
        let base = schema(&mut dice, 4);
        let (p, q) = (schema(&mut dice, 3), schema(&mut dice, 3));
        let text = match base.strip_prefix('{') {
            Some("}") => format!("{{\"$defs\":{{\"p\":{p},\"q\":{q}}}}}"),
            Some(rest) => format!("{{\"$defs\":{{\"p\":{p},\"q\":{q}}},{rest}"),
            None => base,
        };
        let json = Json::parse(text.clone()).unwrap();
        let (validator, time) = timed(|| Validator::read(&json, Formats::Asserted));
        assert!(time <= READING, "read in {time:?}\n{text}");
        slowest = slowest.max(time);
        assert!(made < pairs, "hardly any schema can be read: {read} of {made}");
        let Ok(validator) = validator else { continue };
        read += 1;
        // Theirs is slow to build; what it agrees on is seen in a part of the pairs.
        let theirs = (read % 4 == 1).then(|| {
            let options = jsonschema::options().with_draft(jsonschema::Draft::Draft202012);
            let schema = serde_json::from_str(&text).unwrap();
            options.should_validate_formats(true).build(&schema).unwrap()
        });
        for _ in 0..VALUES {
            let huge = dice.one_in(40);
            let value = if huge { large(&mut dice) } else { value(&mut dice, 4) };
            let given = Json::parse(value.clone()).unwrap();
            let (found, time) =
                timed(|| validator.check(&given).map_err(|it| (it.to_string(), it)));
            assert!(time <= LONGEST, "{time:?}\n{text}\n{}", &value[..value.len().min(300)]);
            longest = longest.max(time);
            fitting += usize::from(found.is_ok());
            if let Err((said, faults)) = &found {
                assert!(!faults.list().is_empty() && said.len() < 40_000, "{said}\n{text}");
            }
            if let (false, Some(theirs)) = (huge, &theirs) {
                let value = serde_json::from_str(&value).unwrap();
                assert_eq!(found.is_ok(), theirs.is_valid(&value), "{text}\n{value}\n{found:?}");
            }
            validator.repair(&given);
            checked += 1;
        }
    }
    let growth = resident().saturating_sub(before);
    eprintln!(
        "{checked} pairs checked, {read} of {made} schemas read, {fitting} values fit; longest check {longest:?}, longest reading {slowest:?}, growth {} KiB",
        growth / 1024
    );
    assert!(read > made / 2 && fitting > pairs / 10, "the pairs say too little");
    assert!(growth <= GROWTH, "{growth}");
}

fn timed<T>(act: impl FnOnce() -> T) -> (T, Duration) {
    let now = || {
        let now = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
    };
    let begin = now();
    let done = act();
    (done, now() - begin)
}

/// Bytes of memory in use; nothing where the system does not tell.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    let kilobytes = line.and_then(|it| it.trim().trim_end_matches(" kB").parse::<usize>().ok());
    kilobytes.unwrap_or_default() * 1024
}
