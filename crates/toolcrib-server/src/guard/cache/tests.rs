//! The cache: what is kept, for how long, and who waits for whom.

use super::*;

const ROOM: usize = 10_000;
const SECOND: Duration = Duration::from_secs(1);
const RULE: CacheRule = CacheRule { ttl: SECOND, size: 4_000 };

fn key(number: u8) -> Key {
    Key([number; 32])
}

fn text(size: usize) -> Bytes {
    vec![b'x'; size].into()
}

#[track_caller]
fn lead(cache: &Arc<Cache>, number: u8, now: Instant) -> Lead {
    match cache.look(key(number), now) {
        Ok(Found::Lead(lead)) => lead,
        other => panic!("{other:?}"),
    }
}

fn has(cache: &Arc<Cache>, number: u8, now: Instant) -> bool {
    matches!(cache.look(key(number), now), Ok(Found::Hit(..)))
}

#[test]
fn a_key_is_of_one_group_tool_definition_and_arguments() {
    let tool = |text: &'static str| {
        let raw = toolcrib_catalogue::Json::parse(text).unwrap();
        lock::hash(&toolcrib_catalogue::Tool::read(raw).unwrap())
    };
    let hash = tool(r#"{"name":"t","inputSchema":{"type":"object"}}"#);
    let other = tool(r#"{"name":"t","inputSchema":{"type":"object"},"description":"new"}"#);
    let of = |group, tool, hash, arguments: &str| {
        Key::new(group, tool, hash, arguments.as_bytes(), b"{}", (Era::Legacy, None)).unwrap()
    };
    let one = of("a", "t", &hash, r#"{"x": 1, "y": "ä"}"#);
    assert_eq!(one, of("a", "t", &hash, r#"{"y":"\u00e4","x":1}"#));
    let others = [
        of("b", "t", &hash, r#"{"x": 1, "y": "ä"}"#),
        of("at", "", &hash, r#"{"x": 1, "y": "ä"}"#),
        of("a", "u", &hash, r#"{"x": 1, "y": "ä"}"#),
        of("a", "t", &other, r#"{"x": 1, "y": "ä"}"#),
        of("a", "t", &hash, r#"{"x": 2, "y": "ä"}"#),
        of("a", "t", &hash, r#"{"x": "1", "y": "ä"}"#),
    ];
    assert!(!others.contains(&one));
}

#[test]
fn a_result_is_kept_for_its_time() {
    let (cache, now) = (Arc::new(Cache::default()), Instant::now());
    lead(&cache, 1, now).keep_at(&text(5), RULE, ROOM, now);
    let later = now + SECOND / 2;
    match cache.look(key(1), later) {
        Ok(Found::Hit(result, age)) => assert_eq!((result, age), (text(5), SECOND / 2)),
        other => panic!("{other:?}"),
    }
    assert!(!has(&cache, 1, now + SECOND));
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn what_was_used_longest_ago_goes_first() {
    let (cache, now) = (Arc::new(Cache::default()), Instant::now());
    for number in 1..=3 {
        lead(&cache, number, now).keep_at(&text(3_000), RULE, ROOM, now);
    }
    assert!(has(&cache, 1, now));
    lead(&cache, 4, now).keep_at(&text(3_000), RULE, ROOM, now);
    assert_eq!([1, 3, 4].map(|it| has(&cache, it, now)), [true; 3]);
    assert!(!has(&cache, 2, now));
    assert_eq!(cache.bytes(), 3 * (3_000 + OVERHEAD));
}

#[test]
fn many_results_take_no_more_than_their_room() {
    let (cache, now) = (Arc::new(Cache::default()), Instant::now());
    for number in 0..100_000_u32 {
        let key = Key(*blake3::hash(&number.to_le_bytes()).as_bytes());
        let Ok(Found::Lead(lead)) = cache.look(key, now) else { panic!("{number}") };
        lead.keep_at(&text(10), RULE, ROOM, now);
    }
    let state = cache.0.lock();
    assert!(state.bytes <= ROOM && state.slots.len() == state.used.len());
    assert_eq!(state.slots.len(), ROOM / (10 + OVERHEAD));
}

#[test]
fn what_is_too_large_is_not_kept() {
    let (cache, now) = (Arc::new(Cache::default()), Instant::now());
    lead(&cache, 1, now).keep_at(&text(4_001), RULE, ROOM, now);
    assert!(!has(&cache, 1, now));
    let large = CacheRule { size: usize::MAX, ..RULE };
    lead(&cache, 2, now).keep_at(&text(ROOM), large, ROOM, now);
    assert!(!has(&cache, 2, now));
    assert_eq!(cache.bytes(), 0);
}

#[test]
fn a_result_does_not_hold_on_to_the_buffer_it_came_in() {
    let (cache, now) = (Arc::new(Cache::default()), Instant::now());
    let buffer = text(1 << 20);
    lead(&cache, 1, now).keep_at(&buffer.slice(..10), RULE, ROOM, now);
    assert!(buffer.is_unique());
}

#[test]
fn what_was_running_when_all_was_thrown_away_is_not_kept() {
    let (cache, now) = (Arc::new(Cache::default()), Instant::now());
    let old = lead(&cache, 1, now);
    lead(&cache, 2, now).keep_at(&text(5), RULE, ROOM, now);
    cache.clear();
    assert!(!has(&cache, 2, now));
    let new = lead(&cache, 1, now);
    old.keep_at(&text(5), RULE, ROOM, now);
    new.keep_at(&text(6), RULE, ROOM, now);
    assert!(matches!(cache.look(key(1), now), Ok(Found::Hit(it, _)) if it.len() == 6));
}

/// A call that waits for the one that runs.
async fn waiting(cache: &Arc<Cache>) -> tokio::task::JoinHandle<Found> {
    let cache = Arc::clone(cache);
    #[expect(clippy::disallowed_methods, reason = "the test waits for it")]
    let waiting = tokio::spawn(async move { cache.find(key(1)).await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    waiting
}

#[tokio::test]
async fn equal_calls_wait_for_the_one_that_runs() {
    let cache = Arc::new(Cache::default());
    let lead = lead(&cache, 1, Instant::now());
    let waiters = [waiting(&cache).await, waiting(&cache).await];
    // Too large to be kept, and theirs all the same.
    lead.keep(&text(5_000), RULE, ROOM);
    for waiter in waiters {
        assert!(matches!(waiter.await.unwrap(), Found::Joined(it) if it.len() == 5_000));
    }
    assert!(!has(&cache, 1, Instant::now()));
}

#[tokio::test]
async fn where_it_is_given_up_the_next_one_calls() {
    let cache = Arc::new(Cache::default());
    let lead = lead(&cache, 1, Instant::now());
    let (mut one, mut two) = (waiting(&cache).await, waiting(&cache).await);
    drop(lead);
    let (next, other) = tokio::select! {
        next = &mut one => (next.unwrap(), two),
        next = &mut two => (next.unwrap(), one),
    };
    let Found::Lead(next) = next else { panic!("nobody calls") };
    tokio::task::yield_now().await;
    assert!(!other.is_finished());
    next.keep(&text(5), RULE, ROOM);
    assert!(matches!(other.await.unwrap(), Found::Joined(..)));
}

#[tokio::test]
async fn where_it_fails_they_go_their_own_way() {
    let cache = Arc::new(Cache::default());
    let lead = lead(&cache, 1, Instant::now());
    let waiters = [waiting(&cache).await, waiting(&cache).await];
    lead.fail();
    for waiter in waiters {
        assert!(matches!(waiter.await.unwrap(), Found::Alone));
    }
    assert!(matches!(cache.find(key(1)).await, Found::Lead(_)));
}

#[test]
fn what_goes_along_with_the_arguments_counts() {
    let raw = toolcrib_catalogue::Json::parse(r#"{"name":"t"}"#).unwrap();
    let hash = lock::hash(&toolcrib_catalogue::Tool::read(raw).unwrap());
    let of = |meta: &str| {
        Key::new("a", "t", &hash, b"{}", meta.as_bytes(), (Era::Legacy, None)).unwrap()
    };
    assert_ne!(of(r#"{"user":"ada"}"#), of(r#"{"user":"bob"}"#));
    assert_eq!(of(r#"{"a":1,"b":2}"#), of(r#"{"b":2, "a":1}"#));
}

#[test]
fn who_must_not_wait_calls_alone() {
    let (cache, now) = (Arc::new(Cache::default()), Instant::now());
    let running = lead(&cache, 1, now);
    assert!(matches!(cache.find_now(key(1)), Found::Alone));
    running.keep_at(&text(5), RULE, ROOM, now);
    assert!(matches!(cache.find_now(key(1)), Found::Hit(..)));
}
