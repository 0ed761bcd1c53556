//! Learns the weights: `scripts/poison-weights` runs this and writes `weights.rs`.
//!
//! Logistic regression by plain descent. A bad definition is as bad as its worst sentence, which is
//! chosen anew in every round; of a good one, every sentence is good. A weight is drawn towards its
//! guess, so that what few examples show does not depend on those few, and it keeps its sign.

use std::{fs, path::PathBuf};

use super::*;
use crate::Json;

const COUNT: usize = FEATURES.len() + 1;
/// How strongly a weight is drawn to its guess.
const PULL: f64 = 1.0;
const ROUNDS: usize = 400;
const STEP: f64 = 0.004;
/// How many good ones a bad one counts for.
const BAD: f64 = 5.0;
/// A weight is at most so many times its guess.
const MOST: f64 = 2.0;
/// The part that is never learned from.
const HELD_OUT: u64 = 5;

struct Example {
    part: u64,
    bad: bool,
    name: String,
    sentences: Vec<(Set, String)>,
}

fn sentences(raw: &Value) -> Vec<(Set, String)> {
    let topic = Topic::of(raw);
    let mut all = Vec::new();
    gather(raw, &mut Vec::new(), &topic, &mut all);
    all
}

fn gather(value: &Value, path: &mut Vec<String>, topic: &Topic, all: &mut Vec<(Set, String)>) {
    match value {
        Value::String(text) if path.first().is_none_or(|it| it != "name" && it != "icons") => {
            let place = match (path.first().map(String::as_str), path.len()) {
                (Some("description"), 1) => Place::Description,
                (Some("inputSchema"), _) => Place::Parameter,
                _ => Place::Elsewhere,
            };
            let words = Words::of(text);
            each_sentence(&words, topic, place, |set, text| all.push((set, text.to_owned())));
        }
        Value::Array(items) => {
            for item in items {
                path.push(String::new());
                gather(item, path, topic, all);
                path.pop();
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                path.push(key.clone());
                gather(member, path, topic, all);
                path.pop();
            }
        }
        _ => (),
    }
}

fn corpus(file: &str, bad: bool) -> Vec<Example> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/poison").join(file);
    let all: Vec<Value> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let plain = |it: &Value| {
        let kinds = it["kinds"].as_array().cloned().unwrap_or_default();
        kinds
            .iter()
            .any(|it| ["instruction", "theft", "conditioning"].iter().any(|kind| it == kind))
    };
    all.iter()
        .filter(|it| it["part"] != HELD_OUT && (!bad || plain(it)))
        .map(|it| {
            // As a gateway gets it: written and read.
            let raw: Value = Json::of(&it["tool"]).unwrap().get().unwrap();
            let name = raw["name"].as_str().unwrap().to_owned();
            Example { part: it["part"].as_u64().unwrap(), bad, name, sentences: sentences(&raw) }
        })
        .collect()
}

fn guesses() -> [f64; COUNT] {
    let mut guesses = [features::BASE_GUESS; COUNT];
    for (guess, feature) in guesses.iter_mut().skip(1).zip(FEATURES) {
        *guess = feature.guess;
    }
    guesses
}

fn worst<'a>(example: &'a Example, weights: &[f64; COUNT]) -> Option<(f64, &'a (Set, String))> {
    let scored = example.sentences.iter().map(|it| (score(it.0, weights), it));
    scored.max_by(|a, b| a.0.total_cmp(&b.0))
}

fn learn(examples: &[&Example]) -> [f64; COUNT] {
    let guesses = guesses();
    let mut weights = guesses;
    for _ in 0..ROUNDS {
        let mut slope = [0.0; COUNT];
        let mut take = |set: Set, by: f64| {
            slope[0] += by;
            for (it, feature) in slope.iter_mut().skip(1).zip(FEATURES) {
                *it += if feature.holds(set) { by } else { 0.0 };
            }
        };
        for example in examples {
            if example.bad {
                if let Some((score, it)) = worst(example, &weights) {
                    take(it.0, BAD * (1.0 - score));
                }
            } else {
                example.sentences.iter().for_each(|it| take(it.0, -score(it.0, &weights)));
            }
        }
        for at in 0..COUNT {
            let moved = weights[at] + STEP * (slope[at] - PULL * (weights[at] - guesses[at]));
            let ends = [0.0, MOST * guesses[at]];
            weights[at] = moved.clamp(ends[0].min(ends[1]), ends[0].max(ends[1]));
        }
    }
    weights.map(|it| (it * 100.0).round() / 100.0)
}

fn report(what: &str, examples: &[&Example], weights: &[f64; COUNT], show: bool) {
    let (mut found, mut bad, mut alarms, mut good) = (0, 0, 0, 0);
    for example in examples {
        let Some((score, it)) = worst(example, weights) else { continue };
        let sure = score >= 0.5;
        *(if example.bad { &mut bad } else { &mut good }) += 1;
        *(if example.bad { &mut found } else { &mut alarms }) += usize::from(sure);
        if show && sure != example.bad {
            let signs: Vec<String> = FEATURES
                .iter()
                .zip(&weights[1..])
                .filter(|(feature, _)| feature.holds(it.0))
                .map(|(feature, weight)| format!("{weight:+.2} {}", feature.says))
                .collect();
            let what = if example.bad { "MISSED" } else { "ALARM" };
            println!(
                "  {what} {score:.2} {} {}: {:?}\n      {signs:?}",
                example.part, example.name, it.1
            );
        }
    }
    println!("{what}: found {found} of {bad}, alarms {alarms} of {good}");
}

/// What each part would have been, had it not been learned from.
#[test]
#[ignore = "prints what is learned"]
fn leave_each_part_out() {
    let all: Vec<Example> =
        corpus("bad.json", true).into_iter().chain(corpus("good.json", false)).collect();
    report("guesses alone", &all.iter().collect::<Vec<_>>(), &guesses(), false);
    for part in (1..=6).filter(|it| *it != HELD_OUT) {
        let (own, others): (Vec<&Example>, Vec<&Example>) =
            all.iter().partition(|it| it.part == part);
        report(&format!("part {part} left out"), &own, &learn(&others), true);
    }
}

#[test]
#[ignore = "writes the table of weights to stdout"]
fn write_weights() {
    let all: Vec<Example> =
        corpus("bad.json", true).into_iter().chain(corpus("good.json", false)).collect();
    let all: Vec<&Example> = all.iter().collect();
    let weights = learn(&all);
    report("all", &all, &weights, false);
    println!("WEIGHT {:.2} // where a sentence begins", weights[0]);
    for (weight, feature) in weights[1..].iter().zip(FEATURES) {
        println!("WEIGHT {weight:.2} // {:?}: {}", feature.kind, feature.says);
    }
}
