//! Calls with a key: what is remembered of them, and of how many.

use super::*;
use crate::access::{Access, AccessSettings, GroupSettings};

fn key(text: &str) -> RepeatKey {
    RepeatKey::read(text).unwrap()
}

const ADA: [u8; 32] = [1; 32];
const BOB: [u8; 32] = [2; 32];
const PAY: [u8; 32] = [7; 32];

fn ending(size: usize) -> Ending {
    Ok(vec![b'x'; size].into())
}

#[track_caller]
fn claim(repeats: &Arc<Repeats>, caller: [u8; 32], name: &str, now: Instant) -> Claim {
    match repeats.look(caller, &key(name), (PAY, 0), now) {
        Ok(Known::First(claim)) => claim,
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_second_call_gets_what_the_first_one_got() {
    let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
    claim(&repeats, ADA, "k", now).settle(&ending(5));
    let again = repeats.look(ADA, &key("k"), (PAY, 0), now).unwrap();
    assert!(matches!(again, Known::Ended(Ok(it)) if it.len() == 5));
    assert!(matches!(repeats.look(ADA, &key("k"), ([8; 32], 0), now), Ok(Known::Other)));
    // A key is its sender's own.
    drop(claim(&repeats, BOB, "k", now));
    let error = RpcError { code: -1, message: "no".to_owned(), data: None };
    claim(&repeats, ADA, "e", now).settle(&Err(error.clone()));
    let again = repeats.look(ADA, &key("e"), (PAY, 0), now).unwrap();
    assert!(matches!(again, Known::Ended(Err(it)) if it == error));
}

#[test]
fn a_call_that_was_not_made_leaves_its_key_free() {
    let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
    for _ in 0..1_000 {
        drop(claim(&repeats, ADA, "k", now));
    }
    let own = &repeats.0.lock().callers[&ADA];
    assert_eq!((own.known.len(), own.order.len(), own.bytes), (0, 0, 0));
}

#[test]
fn a_large_outcome_is_remembered_as_such() {
    let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
    claim(&repeats, ADA, "k", now).settle(&ending(MAX_OUTCOME + 1));
    assert!(matches!(repeats.look(ADA, &key("k"), (PAY, 0), now), Ok(Known::Gone)));
    assert_eq!(repeats.0.lock().callers[&ADA].bytes, OVERHEAD);
}

#[test]
fn outcomes_are_forgotten_after_a_day_and_the_oldest_first() {
    let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
    claim(&repeats, BOB, "old", now).settle(&ending(1));
    claim(&repeats, ADA, "k", now).settle(&ending(1));
    let almost = now + KEPT - Duration::from_secs(1);
    assert!(matches!(repeats.look(ADA, &key("k"), (PAY, 0), almost), Ok(Known::Ended(_))));
    drop(claim(&repeats, ADA, "k", now + KEPT));
    // Nothing is left of a caller who does not come any more.
    drop(claim(&repeats, [3; 32], "k", now + KEPT));
    assert!(!repeats.0.lock().callers.contains_key(&BOB));
}

#[test]
fn keys_are_not_remembered_without_end() {
    let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
    // One that never ends does not keep the others.
    let running = claim(&repeats, ADA, "running", now);
    for number in 0..2 * MAX_KEYS {
        claim(&repeats, ADA, &format!("k{number}"), now).settle(&ending(1));
    }
    let count = || repeats.0.lock().callers[&ADA].known.len();
    assert!(count() <= MAX_KEYS);
    for number in 0..40 {
        claim(&repeats, ADA, &format!("large{number}"), now).settle(&ending(MAX_OUTCOME));
    }
    {
        let all = repeats.0.lock();
        let own = &all.callers[&ADA];
        assert!(own.bytes <= MAX_BYTES && own.known.len() == own.order.len());
    }
    assert!(matches!(repeats.look(ADA, &key("large39"), (PAY, 0), now), Ok(Known::Ended(_))));
    assert!(repeats.look(ADA, &key("running"), (PAY, 0), now).is_err());
    drop(running);
}

#[tokio::test]
async fn whoever_comes_meanwhile_waits() {
    let repeats = Arc::new(Repeats::default());
    let access = Access::new(&AccessSettings::default());
    let caller = access.local(None).unwrap();
    let first = repeats.find(&caller, &key("k"), (PAY, 0)).await;
    let Known::First(first) = first else { panic!("{first:?}") };
    let wait = || {
        let (repeats, caller) = (Arc::clone(&repeats), caller.clone());
        #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
        tokio::spawn(async move { repeats.find(&caller, &key("k"), (PAY, 0)).await })
    };
    let (mut one, mut two) = (wait(), wait());
    tokio::task::yield_now().await;
    assert!(!one.is_finished() && !two.is_finished());
    // It was not made: the next one makes it.
    drop(first);
    let (next, other) = tokio::select! {
        next = &mut one => (next.unwrap(), two),
        next = &mut two => (next.unwrap(), one),
    };
    let Known::First(next) = next else { panic!("nobody makes it") };
    tokio::task::yield_now().await;
    assert!(!other.is_finished());
    next.settle(&ending(3));
    assert!(matches!(other.await.unwrap(), Known::Ended(Ok(it)) if it.len() == 3));
}

#[test]
fn keys_are_short_and_printable() {
    assert_eq!(RepeatKey::of_header(b" \"a b\" ").unwrap(), key("a b"));
    assert_eq!(RepeatKey::of_header(b"a").unwrap(), key("a"));
    for bad in [&b""[..], b"\"\"", b"\xff", "x".repeat(256).as_bytes()] {
        assert!(RepeatKey::of_header(bad).is_err());
    }
    let of = |text: &str| RepeatKey::of_params(text.as_bytes());
    assert_eq!(of(r#"{"_meta":{"toolcrib/idempotencyKey":"\u0061"}}"#), Ok(Some(key("a"))));
    assert_eq!(of(r#"{"_meta":{"other":"a"}}"#), Ok(None));
    assert!(of(r#"{"_meta":{"toolcrib/idempotencyKey":7}}"#).is_err());
    assert!(of(r#"{"_meta":{"toolcrib/idempotencyKey":"a\u000ab"}}"#).is_err());
}

#[test]
fn a_key_of_a_header_joins_the_params() {
    let among = |text: &'static str| {
        let params = key("k\"").among(&Bytes::from_static(text.as_bytes()));
        String::from_utf8(params.to_vec()).unwrap()
    };
    let own = r#""toolcrib/idempotencyKey":"k\"""#;
    assert_eq!(among("{ }"), format!(r#"{{"_meta":{{{own}}} }}"#));
    assert_eq!(among(r#"{"name":1.0}"#), format!(r#"{{"_meta":{{{own}}},"name":1.0}}"#));
    assert_eq!(among(r#"{"a":1,"_meta":{}}"#), format!(r#"{{"a":1,"_meta":{{{own}}}}}"#));
    assert_eq!(among(r#"{"_meta":{"b":2}}"#), format!(r#"{{"_meta":{{{own},"b":2}}}}"#));
    for same in [r#"{"_meta":{"toolcrib/idempotencyKey":"x"}}"#, r#"{"_meta":7}"#] {
        assert_eq!(among(same), same);
    }
}

#[test]
fn what_is_done_once_has_one_name() {
    let group = |name: &str, token: &str| GroupSettings {
        name: name.to_owned(),
        tokens: vec![token.to_owned()],
        ..GroupSettings::default()
    };
    let groups = vec![group("a", "ta"), group("b", "tb")];
    let settings = AccessSettings { groups, ..AccessSettings::default() };
    let caller = |token: &str| {
        let header = format!("Bearer {token}");
        Access::new(&settings).identify(Some(header.as_bytes())).unwrap()
    };
    let name = once(&caller("ta"), &key("k"), "t");
    assert_eq!(name, once(&caller("ta"), &key("k"), "t"));
    let others = [
        once(&caller("tb"), &key("k"), "t"),
        once(&caller("ta"), &key("l"), "t"),
        once(&caller("ta"), &key("k"), "u"),
        once(&caller("ta"), &key("k").inner(0), "t"),
    ];
    assert!(!others.contains(&name) && name.len() == 32);
}

/// They go on when their clients are gone, so their number is bounded by nothing else.
#[test]
fn no_more_than_so_many_run() {
    let (repeats, now) = (Arc::new(Repeats::default()), Instant::now());
    let full = |caller: [u8; 32], size: usize| {
        matches!(repeats.look(caller, &key("one more"), (PAY, size), now), Ok(Known::Full))
    };
    let mut own: Vec<Claim> =
        (0..MAX_RUNNING).map(|it| claim(&repeats, ADA, &it.to_string(), now)).collect();
    assert!(full(ADA, 0) && !full(BOB, 0));
    // One that runs is waited for, however many there are.
    assert!(repeats.look(ADA, &key("0"), (PAY, 0), now).is_err());
    own.pop().unwrap().settle(&ending(3));
    assert!(!full(ADA, 0));
    drop(own);
    let all = |at: usize| {
        let mut caller = [9; 32];
        caller[..8].copy_from_slice(&(at / MAX_RUNNING).to_le_bytes());
        claim(&repeats, caller, &at.to_string(), now)
    };
    let all: Vec<Claim> = (0..MAX_RUNNING_IN_ALL).map(all).collect();
    assert!(full(BOB, 0));
    drop(all);
    let large = repeats.look(ADA, &key("large"), (PAY, MAX_RUNNING_BYTES + 1), now);
    assert!(matches!(large, Ok(Known::First(_))) && full(BOB, 1));
    drop(large);
    assert!(!full(BOB, 1));
    let state = repeats.0.lock();
    assert_eq!((state.running, state.bytes), (0, 0));
}
