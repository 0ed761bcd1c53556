//! What every bus does, asked of each.
//!
//! A check gets a world in which buses can be opened; it knows nothing of what they stand on. Over NATS an
//! event is on its way for a moment after it was appended, and its place in the stream is not the one that
//! was answered: the checks wait for events, and take places from what was read.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures_util::{FutureExt, future::join_all};
use toolcrib_bus::{
    Bus, BusError, ConsumerName, Delivery, Draft, Embedded, Event, Filter, Follow, Outcome, Record,
    Settings, Start, Wish,
};

use crate::kit::Folder;

/// Where buses are opened.
pub(crate) struct World {
    folder: Folder,
    #[cfg(feature = "nats")]
    broker: Option<super::broker::Broker>,
}

impl World {
    fn embedded() -> Self {
        Self {
            folder: Folder::new(),
            #[cfg(feature = "nats")]
            broker: None,
        }
    }

    #[cfg(feature = "nats")]
    fn nats() -> Option<Self> {
        Some(Self { folder: Folder::new(), broker: Some(super::broker::Broker::start()?) })
    }

    /// The bus of this world; one that was open before must be closed.
    fn open(&self) -> Arc<dyn Bus> {
        let path = self.folder.file("events.db");
        #[cfg(feature = "nats")]
        if let Some(broker) = &self.broker {
            return Arc::new(toolcrib_bus::Nats::open(&path, broker.settings()).unwrap());
        }
        Arc::new(Embedded::open(&path, Settings::default()).unwrap())
    }
}

/// Each check on each bus.
macro_rules! on_every_bus {
    ($($check:ident,)*) => {
        mod embedded {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                super::$check(&super::World::embedded()).await;
            })*
        }
        #[cfg(feature = "nats")]
        mod on_nats {
            $(#[tokio::test(flavor = "multi_thread")]
            async fn $check() {
                if let Some(world) = super::World::nats() {
                    super::$check(&world).await;
                }
            })*
        }
    };
}

on_every_bus! {
    events_come_in_order_from_wherever_one_begins,
    only_what_is_asked_for_comes,
    what_is_sent_twice_comes_once,
    what_is_too_large_is_refused_and_the_rest_goes_on,
    whoever_stops_waiting_loses_nothing,
    a_delivery_is_settled_or_comes_again,
    what_cannot_be_dealt_with_is_kept_apart_and_can_be_revived,
    what_is_never_settled_is_given_up,
    consumers_do_not_know_of_each_other,
    those_who_share_a_consumer_share_its_events,
    a_consumer_that_dies_gets_again_what_it_had_not_settled,
    what_is_fetched_for_nobody_goes_back,
    a_consumer_can_ask_for_something_else,
    a_new_consumer_begins_where_it_wishes,
    cursors_outlive_a_restart,
    a_thousand_events_keep_the_order_of_their_senders,
    a_forgotten_consumer_begins_anew,
    a_closed_bus_says_so,
}

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(30);

/// So long nothing comes where nothing is to come.
const A_WHILE: Duration = Duration::from_millis(400);

pub(crate) fn event(name: &str, n: usize) -> Event {
    Draft::new(name, n.to_string()).event().unwrap()
}

fn event_of(id: &str, data: &str) -> Event {
    let mut draft = Draft::new("task.run", data);
    draft.id = Some(id.to_owned());
    draft.event().unwrap()
}

pub(crate) fn number(record: &Record) -> usize {
    record.data().unwrap().get().parse().unwrap()
}

fn numbers(records: &[Arc<Record>]) -> Vec<usize> {
    records.iter().map(|it| number(it)).collect()
}

fn delivered(deliveries: &[Delivery]) -> Vec<(usize, u32)> {
    deliveries.iter().map(|it| (number(&it.record), it.attempt)).collect()
}

async fn append(bus: &dyn Bus, name: &str, range: std::ops::Range<usize>) {
    for n in range {
        bus.append(event(name, n)).await.unwrap();
    }
}

/// Reads so many events, which must come.
pub(crate) async fn read(follower: &mut dyn Follow, count: usize) -> Vec<Arc<Record>> {
    let mut records = Vec::new();
    while records.len() < count {
        let next = tokio::time::timeout(LONG, follower.next()).await;
        let batch = next.unwrap_or_else(|_| panic!("{} of {count} came", records.len())).unwrap();
        assert_eq!((batch.missed, batch.damaged.len()), (0, 0));
        records.extend(batch.records);
    }
    assert_eq!(records.len(), count, "more came than were sent");
    records
}

async fn nothing_more(follower: &mut dyn Follow) {
    if let Ok(batch) = tokio::time::timeout(A_WHILE, follower.next()).await {
        panic!("there was more: {batch:?}");
    }
}

pub(crate) fn wish(name: &str) -> Wish {
    Wish::new(ConsumerName::new("guest", name).unwrap())
}

/// Fetches until so many were delivered, which must be.
async fn fetch(bus: &dyn Bus, wish: &Wish, count: usize) -> Vec<Delivery> {
    let mut all = Vec::new();
    let end = tokio::time::Instant::now() + LONG;
    while all.len() < count {
        assert!(tokio::time::Instant::now() < end, "{} of {count} were delivered", all.len());
        let asked = Wish { max: count - all.len(), ..wish.clone() };
        all.extend(bus.fetch(&asked, Duration::from_secs(2)).await.unwrap());
    }
    all
}

async fn nothing_for(bus: &dyn Bus, wish: &Wish) {
    let found = bus.fetch(wish, A_WHILE).await.unwrap();
    assert!(found.is_empty(), "{:?}", delivered(&found));
}

async fn settle(bus: &dyn Bus, wish: &Wish, deliveries: &[Delivery], outcome: &Outcome) {
    let outcomes: Vec<_> = deliveries.iter().map(|it| (it.record.seq, outcome.clone())).collect();
    let settled = bus.settle(&wish.consumer, outcomes).await.unwrap();
    assert_eq!((settled.settled.len(), settled.unknown.len()), (deliveries.len(), 0));
}

async fn events_come_in_order_from_wherever_one_begins(world: &World) {
    let bus = world.open();
    let receipts = join_all((0..3).map(|n| bus.append(event("task.run", n)))).await;
    let places: Vec<_> = receipts.into_iter().map(|it| it.unwrap().seq).collect();
    assert_eq!(places, [1, 2, 3]);
    append(&*bus, "task.run", 3..10).await;

    let mut first = bus.follow(Filter::all(), Start::First).await.unwrap();
    let records = read(&mut *first, 10).await;
    assert_eq!(numbers(&records), (0..10).collect::<Vec<_>>());
    assert!(records.windows(2).all(|it| it[0].seq < it[1].seq));
    let one = &records[3];
    let value: serde_json::Value = serde_json::from_str(&one.cloud_event()).unwrap();
    assert_eq!(value["sequence"], one.seq.to_string());
    assert_eq!((one.name.as_str(), &value["id"]), ("task.run", &one.id.as_str().into()));

    let mut at = bus.follow(Filter::all(), Start::At(records[4].seq)).await.unwrap();
    assert_eq!(read(&mut *at, 6).await, records[4..]);
    let mut new = bus.follow(Filter::all(), Start::New).await.unwrap();
    nothing_more(&mut *new).await;
    let mut beyond = bus.follow(Filter::all(), Start::At(1_000_000)).await.unwrap();
    append(&*bus, "task.run", 10..12).await;
    for follower in [&mut first, &mut at, &mut new, &mut beyond] {
        assert_eq!(numbers(&read(&mut **follower, 2).await), [10, 11]);
    }
    assert!(records[9].seq + 2 <= bus.state().last);
}

async fn only_what_is_asked_for_comes(world: &World) {
    let bus = world.open();
    let names = ["task.run", "task.run.now", "tasks.run", "größe.a%b", "x.task", "task.x.done"];
    for (n, name) in names.iter().enumerate() {
        bus.append(event(name, n)).await.unwrap();
    }
    let asked: [(&[&str], &[usize]); 7] = [
        (&[], &[0, 1, 2, 3, 4, 5]),
        (&["task.run"], &[0]),
        (&["task.*"], &[0, 1, 5]),
        (&["task.*.done", "x.*"], &[4, 5]),
        (&["task*"], &[0, 1, 2, 5]),
        (&["größe.*"], &[3]),
        (&["*.run", "task.*"], &[0, 1, 2, 5]),
    ];
    for (patterns, expected) in asked {
        let filter = Filter::of(patterns.iter().copied()).unwrap();
        let mut follower = bus.follow(filter.clone(), Start::First).await.unwrap();
        assert_eq!(numbers(&read(&mut *follower, expected.len()).await), expected, "{patterns:?}");
        let mut wish = wish("patterns");
        wish.filter = Some(filter);
        wish.max = 100;
        let found = fetch(&*bus, &wish, expected.len()).await;
        let found: Vec<_> = found.iter().map(|it| number(&it.record)).collect();
        assert_eq!(found, expected, "{patterns:?}");
        bus.forget(&wish.consumer).await.unwrap();
    }
    let none = Filter { asked: Vec::new(), allowed: Some(Vec::new()) };
    let mut follower = bus.follow(none, Start::First).await.unwrap();
    nothing_more(&mut *follower).await;
}

async fn what_is_sent_twice_comes_once(world: &World) {
    let bus = world.open();
    let first = bus.append(event_of("one %", r#"{"n":1}"#)).await.unwrap();
    let again = bus.append(event_of("one %", r#"{"n":1}"#)).await.unwrap();
    assert_eq!((first.again, again.again, first.seq), (false, true, again.seq));
    let taken = bus.append(event_of("one %", r#"{"n":2}"#)).await.unwrap_err();
    assert_eq!(taken, BusError::IdTaken("one %".to_owned()));
    bus.append(event_of(" one %", "3")).await.unwrap();
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    let records = read(&mut *follower, 2).await;
    assert_eq!((records[0].id.as_str(), records[1].id.as_str()), ("one %", " one %"));
    nothing_more(&mut *follower).await;
}

async fn what_is_too_large_is_refused_and_the_rest_goes_on(world: &World) {
    let bus = world.open();
    let large = |size: usize| Draft::new("a.b", format!("{:?}", "x".repeat(size))).event().unwrap();
    let error = bus.append(large(1 << 20)).await.unwrap_err();
    assert!(matches!(error, BusError::TooLarge { .. }) && !error.is_transient(), "{error}");
    bus.append(large(1_000_000)).await.unwrap();
    append(&*bus, "a.b", 1..2).await;
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    let records = read(&mut *follower, 2).await;
    assert_eq!((1_000_000 < records[0].text.len(), number(&records[1])), (true, 1));
}

async fn whoever_stops_waiting_loses_nothing(world: &World) {
    let bus = world.open();
    let mut follower = bus.follow(Filter::all(), Start::New).await.unwrap();
    let sender = Arc::clone(&bus);
    let sending = tokio::spawn(async move { append(&*sender, "a.b", 0..100).await });
    let mut found = Vec::new();
    let end = tokio::time::Instant::now() + LONG;
    while found.len() < 100 && tokio::time::Instant::now() < end {
        let patience = Duration::from_micros(found.len() as u64 * 37 % 900);
        if let Ok(batch) = tokio::time::timeout(patience, follower.next()).await {
            found.extend(numbers(&batch.unwrap().records));
        }
    }
    sending.await.unwrap();
    assert_eq!(found, (0..100).collect::<Vec<_>>());
}

async fn a_delivery_is_settled_or_comes_again(world: &World) {
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

async fn what_cannot_be_dealt_with_is_kept_apart_and_can_be_revived(world: &World) {
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

async fn what_is_never_settled_is_given_up(world: &World) {
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

async fn consumers_do_not_know_of_each_other(world: &World) {
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

async fn those_who_share_a_consumer_share_its_events(world: &World) {
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

async fn a_consumer_that_dies_gets_again_what_it_had_not_settled(world: &World) {
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

async fn what_is_fetched_for_nobody_goes_back(world: &World) {
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

async fn a_consumer_can_ask_for_something_else(world: &World) {
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

async fn a_new_consumer_begins_where_it_wishes(world: &World) {
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

async fn cursors_outlive_a_restart(world: &World) {
    let bus = world.open();
    append(&*bus, "a.b", 0..6).await;
    let wish = wish("one");
    let found = fetch(&*bus, &wish, 3).await;
    settle(&*bus, &wish, &found, &Outcome::Done).await;
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    let before = read(&mut *follower, 6).await;
    bus.close().await;

    let bus = world.open();
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    assert_eq!(read(&mut *follower, 6).await, before);
    assert_eq!(delivered(&fetch(&*bus, &wish, 3).await), [(3, 1), (4, 1), (5, 1)]);
    append(&*bus, "a.b", 6..7).await;
    assert_eq!(numbers(&read(&mut *follower, 1).await), [6]);
}

async fn a_thousand_events_keep_the_order_of_their_senders(world: &World) {
    let bus = world.open();
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    let bus = &bus;
    let senders = (0..20).map(|sender| async move {
        append(&**bus, &format!("from.s{sender}"), sender * 50..(sender + 1) * 50).await;
    });
    join_all(senders).await;
    let records = read(&mut *follower, 1000).await;
    let mut by_sender: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for record in &records {
        by_sender.entry(&record.name).or_default().push(number(record));
    }
    assert_eq!(by_sender.len(), 20);
    assert!(by_sender.values().all(|it| it.len() == 50 && it.is_sorted()));
    let ids: BTreeSet<_> = records.iter().map(|it| &it.id).collect();
    assert_eq!(ids.len(), 1000);
    assert!(records.windows(2).all(|it| it[0].seq < it[1].seq));
    let wish = Wish { max: 200, ..wish("all") };
    let mut had = Vec::new();
    while had.len() < 1000 {
        let found = fetch(&**bus, &wish, 200).await;
        settle(&**bus, &wish, &found, &Outcome::Done).await;
        had.extend(found.into_iter().map(|it| it.record));
    }
    assert_eq!(had, records);
}

async fn a_forgotten_consumer_begins_anew(world: &World) {
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

async fn a_closed_bus_says_so(world: &World) {
    let bus = world.open();
    let mut follower = bus.follow(Filter::all(), Start::New).await.unwrap();
    let wish = wish("one");
    nothing_for(&*bus, &wish).await;
    let waiting = Arc::clone(&bus);
    let asked = wish.clone();
    let fetching = tokio::spawn(async move { waiting.fetch(&asked, LONG).await });
    assert!(follower.next().now_or_never().is_none());
    tokio::time::sleep(Duration::from_millis(50)).await;
    bus.close().await;
    assert_eq!(follower.next().await.unwrap_err(), BusError::Closed);
    assert_eq!(fetching.await.unwrap().unwrap_err(), BusError::Closed);
    assert_eq!(bus.append(event("a.b", 1)).await.unwrap_err(), BusError::Closed);
    let settled = bus.settle(&wish.consumer, vec![(1, Outcome::Done)]).await;
    assert!(matches!(settled, Err(BusError::Closed)) || settled.unwrap().unknown == [1]);
    assert_eq!(bus.fetch(&wish, Duration::ZERO).await.unwrap_err(), BusError::Closed);
}
