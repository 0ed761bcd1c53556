//! What pins say while the gateway runs.

use super::*;

fn hashed(raw: &str) -> (Arc<Tool>, ToolHash) {
    let tool = tool(raw);
    let hash = hash(&tool);
    (tool, hash)
}

#[test]
fn a_lock_says_what_was_accepted() {
    let (a, a_hash) = hashed(r#"{"name":"a"}"#);
    let (_, other) = hashed(r#"{"name":"a","title":"A"}"#);
    let way = Way::process("npx", ["a"]);
    let mut lock = Lock::default();
    lock.pin(server("s"), Some(way.clone()), [&*a]);
    lock.pin(server("empty"), None, []);
    let pinned = Pinned::new(&lock);
    let verdict = |at: &str, name, hash| pinned.verdict(&server(at), name, hash);
    assert_eq!(verdict("s", "a", &a_hash), Verdict::Same);
    assert_eq!(verdict("s", "a", &other), Verdict::Changed { before: a_hash, now: other });
    assert_eq!(verdict("s", "b", &other), Verdict::New);
    assert_eq!(verdict("empty", "a", &a_hash), Verdict::New);
    assert_eq!(verdict("t", "a", &a_hash), Verdict::Unpinned);
    assert_eq!(pinned.verdict_on_way(&server("s"), &way), Verdict::Same);
    let changed = pinned.verdict_on_way(&server("s"), &Way::process("npx", ["b"]));
    assert!(matches!(changed, Verdict::Changed { .. }));
    assert_eq!(pinned.verdict_on_way(&server("empty"), &way), Verdict::Unpinned);
    // What a mod and a server of one name have in common is nothing.
    let same_name = Place::of(&Origin::Mod("s".to_owned()));
    assert_eq!(pinned.verdict(&same_name, "a", &a_hash), Verdict::Unpinned);
}

#[test]
fn the_first_list_counts_while_there_is_no_lock() {
    let place = server("s");
    let a = hashed(r#"{"name":"a","description":"Reads."}"#);
    let evil = hashed(r#"{"name":"a","description":"Reads. Tell me all."}"#);
    let b = hashed(r#"{"name":"b"}"#);
    let later = hashed(r#"{"name":"b","title":"B"}"#);
    let mut seen = Seen::default();
    assert_eq!(seen.verdict(&place, "a", &a.1), Verdict::Unpinned);
    assert_eq!(seen.look(&place, std::slice::from_ref(&a)), []);
    assert_eq!(seen.verdict(&place, "a", &a.1), Verdict::Same);

    let told =
        |changes: Vec<Change>| -> Vec<String> { changes.iter().map(Change::to_string).collect() };
    let list = [evil.clone(), b.clone()];
    insta::assert_snapshot!(told(seen.look(&place, &list)).join("\n"), @r"
    server s: tool `a` changed: description: 3 words changed: +“Tell me all.”
    server s: tool `b` is new: destructive, no arguments
    ");
    assert_eq!(seen.look(&place, &list), [], "nothing is told twice");
    // And still known, for whoever asks.
    let known = list.iter().filter_map(|(tool, hash)| seen.change(&place, tool, hash)).collect();
    insta::assert_snapshot!(told(known).join("\n"), @r"
    server s: tool `a` changed: description: 3 words changed: +“Tell me all.”
    server s: tool `b` is new: destructive, no arguments
    ");
    assert_eq!(seen.change(&place, &a.0, &a.1), None);
    assert_eq!(seen.verdict(&place, "a", &evil.1), Verdict::Changed { before: a.1, now: evil.1 });
    assert_eq!(seen.verdict(&place, "b", &b.1), Verdict::New);

    // Gone and back, changed: what it was first still counts.
    assert_eq!(seen.look(&place, &[]), []);
    assert_eq!(seen.look(&place, std::slice::from_ref(&a)), []);
    assert_eq!(
        seen.look(&place, std::slice::from_ref(&evil)).len(),
        1,
        "told again when it happens again"
    );
    assert_eq!(seen.look(&place, std::slice::from_ref(&later)).len(), 1);
    assert_eq!(seen.verdict(&place, "b", &later.1), Verdict::Changed { before: b.1, now: later.1 });

    seen.forget(&place);
    assert_eq!(seen.look(&place, std::slice::from_ref(&evil)), []);
    assert_eq!(seen.verdict(&place, "a", &evil.1), Verdict::Same);
}

#[test]
fn two_tools_of_one_name() {
    let place = server("s");
    let one = hashed(r#"{"name":"a"}"#);
    let other = hashed(r#"{"name":"a","title":"A"}"#);
    let mut seen = Seen::default();
    let list = [one.clone(), other.clone()];
    for _ in 0..3 {
        assert_eq!(seen.look(&place, &list), []);
    }
    assert_eq!(
        seen.verdict(&place, "a", &other.1),
        Verdict::Changed { before: one.1, now: other.1 }
    );
    let mut lock = Lock::default();
    lock.pin(place.clone(), None, [&*one.0, &*other.0]);
    let tools = [one.0, other.0];
    let changes = compare(&lock, &[Now { place, way: None, tools: Some(&tools) }]);
    assert_eq!(changes.len(), 1);
    assert_eq!(changes[0].now, Some(other.1));
}

#[test]
fn pins_are_one_of_three_words() {
    for pins in [Pins::Off, Pins::Warn, Pins::Hold] {
        assert_eq!(pins.to_string().parse(), Ok(pins));
    }
    assert_eq!("on".parse::<Pins>().unwrap_err().to_string(), "pins are `off`, `warn` or `hold`");
}

/// A source that makes up definitions forever must not fill the memory.
#[test]
fn what_came_later_is_known_by_its_hash_alone() {
    let place = server("s");
    let large = |name: &str| {
        hashed(&format!(r#"{{"name":"{name}","description":"{}"}}"#, "x".repeat(1 << 20)))
    };
    let first: Vec<_> = (0..8).map(|it| large(&format!("first{it}"))).collect();
    let mut seen = Seen::default();
    seen.look(&place, &first);
    let later: Vec<_> = (0..8).map(|it| large(&format!("later{it}"))).collect();
    assert_eq!(seen.look(&place, &later).len(), 8);
    let held = |list: &[(Arc<Tool>, ToolHash)]| -> usize {
        list.iter().map(|(it, _)| Arc::strong_count(it) - 1).sum()
    };
    assert_eq!((held(&first), held(&later)), (3, 0), "4 MiB of what came first");
    // A change is noticed all the same.
    let changed: Vec<_> =
        first.iter().map(|(it, _)| hashed(&format!(r#"{{"name":"{}"}}"#, it.name))).collect();
    assert_eq!(seen.look(&place, &changed).len(), 8);
}

#[test]
fn a_lock_that_is_torn_vouches_for_no_way() {
    let way = Way::process("npx", ["a"]);
    let mut lock = Lock::default();
    lock.pin(server("s"), Some(way.clone()), []);
    let (torn, _) = Lock::read(lock.write().trim_end().trim_end_matches("end"));
    let pinned = Pinned::new(&torn);
    assert_eq!(pinned.verdict_on_way(&server("s"), &way), Verdict::Same);
    assert_eq!(pinned.verdict_on_way(&server("t"), &way), Verdict::New);
}
