//! What every bus does, asked of each.
//!
//! A check gets a world in which buses can be opened; it knows nothing of what they stand on. Over NATS an
//! event is on its way for a moment after it was appended, and its place in the stream is not the one that
//! was answered: the checks wait for events, and take places from what was read.

mod consumers;

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

use self::consumers::{
    a_consumer_can_ask_for_something_else, a_consumer_that_dies_gets_again_what_it_had_not_settled,
    a_delivery_is_settled_or_comes_again, a_forgotten_consumer_begins_anew,
    a_new_consumer_begins_where_it_wishes, consumers_do_not_know_of_each_other,
    those_who_share_a_consumer_share_its_events,
    what_cannot_be_dealt_with_is_kept_apart_and_can_be_revived,
    what_is_fetched_for_nobody_goes_back, what_is_never_settled_is_given_up,
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

/// Row J5 of the security list.
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
