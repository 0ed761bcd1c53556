//! Durable consumers, on every bus.

use std::time::Duration;

use futures_util::future::join_all;
use toolcrib_bus::{ConsumerName, Filter, Outcome, Start, Wish};

use super::{
    LONG, World, append, delivered, event, fetch, nothing_for, nothing_more, numbers, read, settle,
    wish,
};

pub(super) async fn a_delivery_is_settled_or_comes_again(world: &World) {
    let bus = world.open();
    append(&*bus, "a.b", 0..5).await;
    let wish = wish("one");
    let all = fetch(&*bus, &wish, 5).await;
    assert_eq!(delivered(&all), [(0, 1), (1, 1), (2, 1), (3, 1), (4, 1)]);
    nothing_for(&*bus, &wish).await;

    settle(&*bus, &wish, &all[..2], &Outcome::Done).await;
    let seq = all[0].record.seq;
    let twice = bus.settle(&wish.consumer, vec![(seq, Outcome::Done), (999, Outcome::Done)]).await;
    assert_eq!(twice.unwrap().unknown, [seq, 999]);

    let begin = tokio::time::Instant::now();
    settle(&*bus, &wish, &all[2..3], &Outcome::Again(Duration::from_millis(700))).await;
    settle(&*bus, &wish, &all[3..4], &Outcome::Unseen).await;
    settle(&*bus, &wish, &all[4..], &Outcome::Again(Duration::ZERO)).await;
    let mut early = delivered(&fetch(&*bus, &wish, 2).await);
    early.sort_unstable();
    assert_eq!(early, [(3, 1), (4, 2)], "what was given back unseen was no attempt");
    let late = fetch(&*bus, &wish, 1).await;
    assert_eq!(delivered(&late), [(2, 2)]);
    assert!(Duration::from_millis(650) < begin.elapsed(), "{:?}", begin.elapsed());
    settle(&*bus, &wish, &all[2..], &Outcome::Done).await;
    nothing_for(&*bus, &wish).await;
    let state = bus.consumers().await.unwrap().remove(0);
    assert_eq!((state.name.as_str(), state.pending, state.behind), ("guest/one", 0, 0));
}

pub(super) async fn what_cannot_be_dealt_with_is_kept_apart_and_can_be_revived(world: &World) {
    let bus = world.open();
    append(&*bus, "a.b", 0..3).await;
    let wish = wish("one");
    for round in 1..=2 {
        let all = fetch(&*bus, &wish, 3).await;
        assert_eq!(delivered(&all), [(0, 1), (1, 1), (2, 1)], "round {round}");
        let reason = format!("no good: \u{e4}\n{round}");
        settle(&*bus, &wish, &all, &Outcome::Dead(reason.clone())).await;
        nothing_for(&*bus, &wish).await;

        let letters = bus.dead(&wish.consumer, 2).await.unwrap();
        assert_eq!(letters.len(), 2);
        let letters = bus.dead(&wish.consumer, 100).await.unwrap();
        for (letter, delivery) in letters.iter().zip(&all) {
            assert_eq!(letter.record.as_ref(), Some(&delivery.record));
            assert_eq!((letter.seq, letter.attempts), (delivery.record.seq, 1));
            assert_eq!(letter.reason, reason);
        }
        let state = bus.consumers().await.unwrap().remove(0);
        assert_eq!((state.dead, state.pending), (3, 0));
        assert_eq!(bus.revive(&wish.consumer).await.unwrap(), 3);
        assert!(bus.dead(&wish.consumer, 100).await.unwrap().is_empty());
    }
    let all = fetch(&*bus, &wish, 3).await;
    assert_eq!(delivered(&all), [(0, 1), (1, 1), (2, 1)]);
    settle(&*bus, &wish, &all, &Outcome::Done).await;
    assert_eq!(bus.revive(&wish.consumer).await.unwrap(), 0);
    // Nobody else hears of what was revived.
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    assert_eq!(numbers(&read(&mut *follower, 3).await), [0, 1, 2]);
    nothing_more(&mut *follower).await;
}

pub(super) async fn what_is_never_settled_is_given_up(world: &World) {
    let bus = world.open();
    append(&*bus, "a.b", 0..1).await;
    let wish = Wish { patience: Duration::from_millis(200), attempts: 3, ..wish("one") };
    for attempt in 1..=3 {
        assert_eq!(delivered(&fetch(&*bus, &wish, 1).await), [(0, attempt)]);
    }
    let end = tokio::time::Instant::now() + LONG;
    while bus.dead(&wish.consumer, 9).await.unwrap().is_empty() {
        assert!(tokio::time::Instant::now() < end);
        nothing_for(&*bus, &wish).await;
    }
    let letters = bus.dead(&wish.consumer, 9).await.unwrap();
    assert_eq!((letters.len(), letters[0].attempts), (1, 3));
    assert_eq!(letters[0].reason, "not settled after 3 deliveries");
}

pub(super) async fn consumers_do_not_know_of_each_other(world: &World) {
    let bus = world.open();
    append(&*bus, "a.b", 0..4).await;
    let (one, mut two) = (wish("one"), wish("two"));
    two.filter = Some(Filter::of(["a.*"]).unwrap());
    let first = fetch(&*bus, &one, 4).await;
    settle(&*bus, &one, &first, &Outcome::Done).await;
    let second = fetch(&*bus, &two, 4).await;
    assert_eq!(delivered(&second), [(0, 1), (1, 1), (2, 1), (3, 1)]);
    settle(&*bus, &two, &second[..1], &Outcome::Dead("no".to_owned())).await;
    let states = bus.consumers().await.unwrap();
    let found: Vec<_> = states.iter().map(|it| (it.name.as_str(), it.pending, it.dead)).collect();
    assert_eq!(found, [("guest/one", 0, 0), ("guest/two", 3, 1)]);
    assert_eq!(Some(&states[1].filter), two.filter.as_ref());
    assert!(states.iter().all(|it| it.missed == 0 && 0 < it.seen && it.behind == 0));
    let other = Wish::new(ConsumerName::new("other", "one").unwrap());
    assert_eq!(fetch(&*bus, &other, 4).await.len(), 4, "another's of the same name");
}

pub(super) async fn those_who_share_a_consumer_share_its_events(world: &World) {
    let bus = world.open();
    let sending = async {
        for hundred in 0..3 {
            let numbers = hundred * 100..(hundred + 1) * 100;
            join_all(numbers.map(|n| bus.append(event("a.b", n)))).await;
        }
    };
    let worker = || async {
        let mut had = Vec::new();
        let wish = Wish { max: 7, ..wish("shared") };
        loop {
            let found = bus.fetch(&wish, Duration::from_secs(2)).await.unwrap();
            if found.is_empty() {
                return had;
            }
            settle(&*bus, &wish, &found, &Outcome::Done).await;
            had.extend(delivered(&found));
        }
    };
    let (one, two, three, ()) = tokio::join!(worker(), worker(), worker(), sending);
    let mut all: Vec<_> = [one, two, three].concat();
    all.sort_unstable();
    assert_eq!(all, (0..300).map(|n| (n, 1)).collect::<Vec<_>>());
}

pub(super) async fn a_consumer_that_dies_gets_again_what_it_had_not_settled(world: &World) {
    let bus = world.open();
    append(&*bus, "a.b", 0..6).await;
    let wish = Wish { patience: Duration::from_secs(2), ..wish("one") };
    let all = fetch(&*bus, &wish, 6).await;
    settle(&*bus, &wish, &all[..4], &Outcome::Done).await;
    bus.close().await;

    let bus = world.open();
    assert_eq!(delivered(&fetch(&*bus, &wish, 2).await), [(4, 2), (5, 2)]);
    nothing_for(&*bus, &wish).await;
}

pub(super) async fn what_is_fetched_for_nobody_goes_back(world: &World) {
    let bus = world.open();
    let wish = Wish { patience: Duration::from_secs(60), ..wish("one") };
    for n in 0..20 {
        // Whoever asked goes away at some moment around that at which the event comes.
        let patience = Duration::from_micros(n as u64 * 400);
        let (asked, appended) = tokio::join!(
            tokio::time::timeout(patience, bus.fetch(&wish, Duration::from_secs(1))),
            bus.append(event("a.b", n)),
        );
        appended.unwrap();
        let found = match asked {
            Ok(found) if !found.as_ref().unwrap().is_empty() => found.unwrap(),
            _ => fetch(&*bus, &wish, 1).await,
        };
        assert_eq!(delivered(&found), [(n, 1)]);
        settle(&*bus, &wish, &found, &Outcome::Done).await;
    }
}

pub(super) async fn a_consumer_can_ask_for_something_else(world: &World) {
    let bus = world.open();
    for (n, name) in ["a.x", "b.x", "a.y", "b.y"].iter().enumerate() {
        bus.append(event(name, n)).await.unwrap();
    }
    let filter = |pattern| Some(Filter::of([pattern]).unwrap());
    let a = Wish { filter: filter("a.*"), ..wish("one") };
    let found = fetch(&*bus, &a, 2).await;
    assert_eq!(delivered(&found), [(0, 1), (2, 1)]);
    settle(&*bus, &a, &found, &Outcome::Done).await;
    // What has been passed over stays so.
    nothing_for(&*bus, &a).await;
    let b = Wish { filter: filter("b.*"), ..a.clone() };
    nothing_for(&*bus, &b).await;
    append(&*bus, "a.z", 4..5).await;
    append(&*bus, "b.z", 5..6).await;
    let found = fetch(&*bus, &b, 1).await;
    assert_eq!(delivered(&found), [(5, 1)]);
    settle(&*bus, &b, &found, &Outcome::Done).await;
    let same = Wish { filter: None, ..a };
    nothing_for(&*bus, &same).await;
    assert_eq!(bus.consumers().await.unwrap()[0].filter, b.filter.unwrap());
}

pub(super) async fn a_new_consumer_begins_where_it_wishes(world: &World) {
    let bus = world.open();
    append(&*bus, "a.b", 0..4).await;
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    let records = read(&mut *follower, 4).await;
    let at = Wish { start: Start::At(records[2].seq), ..wish("at") };
    let beyond = Wish { start: Start::At(1_000_000), ..wish("beyond") };
    let new = Wish { start: Start::New, ..wish("new") };
    assert_eq!(delivered(&fetch(&*bus, &at, 2).await), [(2, 1), (3, 1)]);
    nothing_for(&*bus, &beyond).await;
    nothing_for(&*bus, &new).await;
    append(&*bus, "a.b", 4..5).await;
    for wish in [&at, &beyond, &new] {
        assert_eq!(delivered(&fetch(&*bus, wish, 1).await), [(4, 1)]);
    }
}

pub(super) async fn a_forgotten_consumer_begins_anew(world: &World) {
    let bus = world.open();
    append(&*bus, "a.b", 0..2).await;
    let wish = wish("one");
    assert!(!bus.forget(&wish.consumer).await.unwrap());
    let found = fetch(&*bus, &wish, 2).await;
    settle(&*bus, &wish, &found[..1], &Outcome::Dead("no".to_owned())).await;
    assert!(bus.forget(&wish.consumer).await.unwrap());
    assert!(!bus.forget(&wish.consumer).await.unwrap());
    assert!(bus.dead(&wish.consumer, 9).await.unwrap().is_empty());
    assert!(bus.consumers().await.unwrap().is_empty());
    assert_eq!(bus.revive(&wish.consumer).await.unwrap(), 0);
    let unknown = bus.settle(&wish.consumer, vec![(found[1].record.seq, Outcome::Done)]).await;
    assert_eq!(unknown.unwrap().unknown, [found[1].record.seq]);
    let found = fetch(&*bus, &wish, 2).await;
    assert_eq!(delivered(&found), [(0, 1), (1, 1)]);
    settle(&*bus, &wish, &found[..1], &Outcome::Dead("no".to_owned())).await;
    assert_eq!(bus.dead(&wish.consumer, 9).await.unwrap().len(), 1);
}
