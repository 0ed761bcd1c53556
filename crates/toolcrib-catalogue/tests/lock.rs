//! `toolcrib.lock` under fire: files changed line by line and byte by byte, for 3 seconds, or for ten
//! minutes in the full run (`TOOLCRIB_FULL`). Whatever is read: no panic, and nothing is pinned but
//! under a hash that stands in the file.
#![expect(clippy::unwrap_used, clippy::disallowed_methods, reason = "these are tests")]

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use fastrand::Rng;
use toolcrib_catalogue::{
    Json, Origin, Tool,
    lock::{Lock, Now, Pinned, Place, Verdict, Way, compare, hash},
};

const ODDITIES: &[&str] = &[
    "\n",
    "\r\n",
    " ",
    "  ",
    "\"",
    "\\",
    ".",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "#",
    "\u{0}",
    "\u{feff}",
    "\u{2028}",
    "é",
    "\\ud800",
    "1e999",
    "-0",
    "null",
    "end",
    "version 1",
    "version 2",
    "source ",
    "tool server:git ",
    "unkept",
    "<<<<<<< a\n",
    "=======\n",
    ">>>>>>> b\n",
    "  description \"x\"\n",
    "  name \"x\"\n",
    "workspace",
];

fn tool(raw: &str) -> Arc<Tool> {
    Arc::new(Tool::read(Json::parse(raw.to_owned()).unwrap()).unwrap())
}

fn server() -> Place {
    Place::of(&Origin::Upstream("git".to_owned()))
}

fn tools() -> Vec<Arc<Tool>> {
    let long = format!(r#"{{"name":"long","description":"{}"}}"#, "x".repeat(70_000));
    vec![
        tool(
            r#"{"name":"a","description":"One.\nTwo.","inputSchema":{"properties":{"b c":{"enum":[1,"2"]}}}}"#,
        ),
        tool(
            r#"{"name":"b","annotations":{"readOnlyHint":true},"outputSchema":{"$defs":{"X":{}}}}"#,
        ),
        tool(r#"{"name":"ä\u200b","title":"\udb40\udc41","_meta":{"x":[[{}]]}}"#),
        tool(r#"{"name":"d"}"#),
        tool(&long),
    ]
}

/// One change, of a byte or of a line.
fn change(rng: &mut Rng, text: &mut String) {
    let place = |rng: &mut Rng, text: &str| {
        let mut at = rng.usize(..=text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let (one, other) = (place(rng, text), place(rng, text));
    let (begin, end) = (one.min(other), one.max(other));
    match rng.u8(..8) {
        0 => text.truncate(begin),
        1 if begin < text.len() => drop(text.remove(begin)),
        2 if end - begin < 200 => text.replace_range(begin..end, ""),
        3 => {
            let piece = text[begin..end].chars().take(100).collect::<String>();
            text.insert_str(place(rng, text).min(begin), &piece);
        }
        4 | 5 => {
            let mut lines: Vec<&str> = text.split('\n').collect();
            let (from, to) = (rng.usize(..lines.len()), rng.usize(..lines.len()));
            match rng.u8(..3) {
                0 => lines.swap(from, to),
                1 => drop(lines.remove(from)),
                _ => lines.insert(to, lines[from]),
            }
            *text = lines.join("\n");
        }
        _ => text.insert_str(begin, ODDITIES[rng.usize(..ODDITIES.len())]),
    }
}

fn check(text: &str, tools: &[Arc<Tool>]) {
    let (lock, problems) = Lock::read(text);
    assert!(problems.len() <= 51);
    for (_, pins) in lock.sources() {
        for pin in pins.tools.values() {
            assert!(text.contains(&pin.hash.to_string()), "a hash that nobody wrote");
        }
    }
    let (again, problems) = Lock::read(&lock.write());
    assert_eq!(problems, []);
    assert!(again.sources().eq(lock.sources()));
    let pinned = Pinned::new(&lock);
    let evil = hash(&tool(r#"{"name":"a","description":"Another."}"#));
    assert_ne!(pinned.verdict(&server(), "a", &evil), Verdict::Same);
    compare(
        &lock,
        &[Now { place: server(), way: Some(Way::process("x", ["y"])), tools: Some(tools) }],
    );
}

#[test]
fn fuzz_lock() {
    let full = std::env::var_os("TOOLCRIB_FULL").is_some();
    let time = Duration::from_secs(if full { 600 } else { 3 });
    // The short run is the same every time; the long one is another each time, and says which.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let seed = if full { now.subsec_nanos().into() } else { 7 };
    let mut rng = Rng::with_seed(seed);
    let tools = tools();
    let mut lock = Lock::default();
    let way = Way::process("npx", ["-y", "x"]).variables(["A"]);
    lock.pin(server(), Some(way), tools.iter().map(|it| &**it));
    lock.pin(Place::of(&Origin::Workspace), None, tools.iter().take(2).map(|it| &**it));
    let whole = lock.write();
    let (begin, mut rounds) = (Instant::now(), 0_u64);
    while begin.elapsed() < time {
        let mut text = whole.clone();
        for _ in 0..=rng.usize(..4) {
            change(&mut rng, &mut text);
        }
        if catch_unwind(AssertUnwindSafe(|| check(&text, &tools[..4]))).is_err() {
            panic!("seed {seed}, round {rounds}: {text}");
        }
        rounds += 1;
    }
    println!("fuzz lock: {rounds} inputs in {time:?}, seed {seed}");
    assert!(100 < rounds, "too slow: {rounds} inputs in {time:?}");
}
