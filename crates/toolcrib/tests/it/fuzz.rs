//! Readers under fire: seeds, changed byte by byte and value by value, for 3 seconds, or for ten minutes each in
//! the full run (`TOOLCRIB_FULL`). A target asserts what must hold of anything it is given.
//!
//! No coverage guides this, so it needs neither nightly Rust nor instrumentation. What it lacks in cunning it makes
//! up by knowing what the readers read: it changes JSON as JSON, and has their words at hand.

mod adapter;
mod masker;
mod schemas;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// Inputs do not grow beyond that.
const MAX_BYTES: usize = 1 << 13;

/// What readers of all kinds stumble over.
const ODDITIES: &[&str] = &[
    "\u{2028}",
    "\u{85}",
    "\r\n",
    "\u{feff}",
    "\u{0}",
    "é",
    "😀",
    "\u{301}",
    "\\ud800",
    "\\u0000",
    "NaN",
    "-0",
    "1e400",
    "18446744073709551616",
    "0.1",
    "null",
    "[]",
    "{}",
    "\"",
    "\\",
    ",",
    ":",
    "]",
    "}",
    "true",
    "=",
    "-",
    "_",
    " ",
    "\n",
];

/// Throws changed `seeds` at `target` until the time is up. `words` are put in where a text or a key may stand.
pub(crate) fn fuzz(name: &str, seeds: &[Vec<u8>], words: &[&str], target: impl Fn(&[u8])) {
    let full = std::env::var_os("TOOLCRIB_FULL").is_some();
    let time = Duration::from_secs(if full { 600 } else { 3 });
    // The short run is the same every time; the long one is another each time, and says which.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = if full { now.subsec_nanos().into() } else { 7 };
    let mut fire = Fire { rng: Rng::with_seed(seed), words, inputs: seeds.to_vec() };
    let (begin, mut rounds) = (Instant::now(), 0_u64);
    while begin.elapsed() < time {
        let input = fire.next();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(&input))) {
            let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fuzz-{name}"));
            fs::write(&file, &input).unwrap();
            println!("seed {seed}, round {rounds}: the input is in {}", file.display());
            std::panic::resume_unwind(panic);
        }
        rounds += 1;
    }
    println!("fuzz {name}: {rounds} inputs in {time:?}, seed {seed}");
    assert!(100 < rounds, "{name} is too slow: {rounds} inputs in {time:?}");
}

struct Fire<'a> {
    rng: Rng,
    words: &'a [&'a str],
    /// The seeds, and lately what became of them.
    inputs: Vec<Vec<u8>>,
}

impl Fire<'_> {
    fn next(&mut self) -> Vec<u8> {
        let mut input = match self.rng.u8(..10) {
            0 => serde_json::to_vec(&self.value(6)).unwrap(),
            _ => self.inputs[self.rng.usize(..self.inputs.len())].clone(),
        };
        for _ in 0..=self.rng.usize(..4) {
            if self.rng.bool() {
                self.change_json(&mut input);
            } else {
                self.change_bytes(&mut input);
            }
        }
        input.truncate(MAX_BYTES);
        // A place for descendants, so that changes add up; seeds are replaced too, and live on in them.
        if self.inputs.len() < 500 {
            self.inputs.push(input.clone());
        } else if self.rng.u8(..20) == 0 {
            let place = self.rng.usize(..self.inputs.len());
            self.inputs[place].clone_from(&input);
        }
        input
    }

    fn change_bytes(&mut self, input: &mut Vec<u8>) {
        let at = self.rng.usize(..=input.len());
        let end = at + self.rng.usize(..=(input.len() - at).min(32));
        match self.rng.u8(..6) {
            0 if at < input.len() => input[at] ^= 1 << self.rng.u8(..8),
            1 => drop(input.drain(at..end)),
            2 => {
                let piece = input[at..end].repeat(self.rng.usize(1..40));
                input.splice(at..at, piece);
            }
            3 => {
                let word = self.word();
                input.splice(at..end, word.into_bytes());
            }
            4 => {
                let other = &self.inputs[self.rng.usize(..self.inputs.len())];
                let from = self.rng.usize(..=other.len());
                input.truncate(at);
                input.extend_from_slice(&other[from..]);
            }
            _ => input.insert(at, self.rng.u8(..)),
        }
    }

    /// Changes one value in one line, if that is JSON.
    fn change_json(&mut self, input: &mut Vec<u8>) {
        let mut lines: Vec<Vec<u8>> = input.split(|it| *it == b'\n').map(<[u8]>::to_vec).collect();
        let line = self.rng.usize(..lines.len());
        let Ok(mut value) = serde_json::from_slice::<Value>(&lines[line]) else { return };
        self.change(&mut value, 0);
        lines[line] = serde_json::to_vec(&value).unwrap();
        if self.rng.u8(..4) == 0 {
            lines.insert(line, lines[line].clone());
        }
        *input = lines.join(&b'\n');
    }

    fn change(&mut self, value: &mut Value, depth: usize) {
        let deeper = depth < 60 && self.rng.u8(..5) != 0;
        match value {
            Value::Array(list) if deeper && !list.is_empty() => {
                let at = self.rng.usize(..list.len());
                self.change(&mut list[at], depth + 1);
            }
            Value::Object(members) if deeper && !members.is_empty() => {
                let key = members.keys().nth(self.rng.usize(..members.len())).unwrap().clone();
                match self.rng.u8(..8) {
                    0 => drop(members.shift_remove(&key)),
                    1 => drop(members.insert(self.word(), self.value(2))),
                    _ => self.change(members.get_mut(&key).unwrap(), depth + 1),
                }
            }
            _ => {
                *value = match self.rng.u8(..8) {
                    0 => json!([value.take()]),
                    1 => json!({ self.word(): value.take() }),
                    2 => json!([value.clone(), value.take()]),
                    _ => self.value(3),
                }
            }
        }
    }

    fn value(&mut self, depth: usize) -> Value {
        let kinds = if depth == 0 { 5 } else { 7 };
        match self.rng.u8(..kinds) {
            0 => Value::Null,
            1 => Value::Bool(self.rng.bool()),
            2 => json!(self.rng.i64(..)),
            3 => json!(f64::from_bits(self.rng.u64(..))),
            4 => {
                let words = self.rng.usize(..4);
                let text: String = (0..words).map(|_| self.word()).collect();
                text.repeat(if self.rng.u8(..20) == 0 { 300 } else { 1 }).into()
            }
            5 => (0..self.rng.usize(..4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let members =
                    (0..self.rng.usize(..4)).map(|_| (self.word(), self.value(depth - 1)));
                Value::Object(members.collect::<Map<_, _>>())
            }
        }
    }

    fn word(&mut self) -> String {
        let words = if self.rng.u8(..4) == 0 { ODDITIES } else { self.words };
        words[self.rng.usize(..words.len())].to_owned()
    }
}
