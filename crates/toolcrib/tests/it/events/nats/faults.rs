//! A broker that is killed, paused and deleted from under us while events come.

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicUsize, Ordering},
};

use futures_util::future::join_all;
use nix::sys::signal::Signal;
use toolcrib_bus::{Filter, Follow, Outcome, Start};

use super::*;

const EVENTS: usize = 30_000;

/// So many send at the same time, each so fast that all together take about ten seconds.
const SENDERS: usize = 64;
const PACE: Duration = Duration::from_millis(20);

/// Sends all events, and says how long each took.
async fn send_all(bus: &Arc<Nats>, name: &str, sent: &AtomicUsize) -> Vec<Duration> {
    let sender = |sender: usize| async move {
        let mut took = Vec::new();
        for n in (sender..EVENTS).step_by(SENDERS) {
            let next = tokio::time::Instant::now() + PACE;
            let begin = Instant::now();
            bus.append(event(name, n)).await.unwrap();
            took.push(begin.elapsed());
            sent.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep_until(next).await;
        }
        took
    };
    let mut took = join_all((0..SENDERS).map(sender)).await.concat();
    took.sort_unstable();
    took
}

/// Reads so many events while things befall the broker.
async fn read_all(bus: &Nats, follower: &mut dyn Follow, count: usize) -> Vec<Arc<Record>> {
    let mut records: Vec<Arc<Record>> = Vec::new();
    while records.len() < count {
        let next = tokio::time::timeout(LONG, follower.next()).await;
        let batch = next.unwrap_or_else(|_| panic!("{} came: {:?}", records.len(), bus.state()));
        let batch = batch.unwrap();
        assert_eq!((batch.missed, batch.damaged.len()), (0, 0));
        records.extend(batch.records);
    }
    records
}

/// Says of events that came twice, or not behind each other, which they are.
fn assert_no_repeats(records: &[Arc<Record>]) {
    let mut seen: BTreeMap<&str, &Record> = BTreeMap::new();
    for record in records {
        let place = |it: &Record| (it.seq, number(it));
        if let Some(first) = seen.insert(&record.id, record) {
            panic!("twice: {:?} and {:?}", place(first), place(record));
        }
    }
    for pair in records.windows(2) {
        assert!(pair[0].seq < pair[1].seq, "{} comes before {}", pair[0].seq, pair[1].seq);
    }
}

fn p99(took: &[Duration]) -> Duration {
    took[took.len() * 99 / 100]
}

/// Does to the broker what befalls brokers, as the events come.
fn befall(mut broker: Broker, sent: &Arc<AtomicUsize>) -> std::thread::JoinHandle<Broker> {
    let sent = Arc::clone(sent);
    let reached = move |count: usize| {
        while sent.load(Ordering::Relaxed) < count {
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    std::thread::spawn(move || {
        for count in [2000, 5000, 7000] {
            reached(count);
            broker.kill();
            std::thread::sleep(Duration::from_millis(300));
            broker.run();
        }
        // Shorter than we wait for an answer, and longer.
        for (count, pause) in [(10_000, 1000), (13_000, 6500)] {
            reached(count);
            broker.signal(Signal::SIGSTOP);
            std::thread::sleep(Duration::from_millis(pause));
            broker.signal(Signal::SIGCONT);
        }
        reached(25_000);
        broker.kill();
        reached(EVENTS);
        broker.run();
        broker
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_killed_and_paused_loses_and_doubles_nothing_and_nobody_waits() {
    let Some(broker) = Broker::start() else { return };
    let folder = Folder::new();
    let bus = open(&folder, broker.settings());
    let mut follower = bus.follow(Filter::of(["with.*"]).unwrap(), Start::First).await.unwrap();
    let without = send_all(&bus, "without.faults", &AtomicUsize::new(0)).await;

    let sent = Arc::new(AtomicUsize::new(0));
    let faults = befall(broker, &sent);
    let (with, records) =
        tokio::join!(send_all(&bus, "with.faults", &sent), read_all(&bus, &mut *follower, EVENTS));
    let broker = faults.join().unwrap();
    let (slow, fast) = (p99(&with), p99(&without));
    let (slowest, before) = (with.last().unwrap(), without.last().unwrap());
    println!(
        "appending: p99 {fast:?}, at most {before:?}; with faults p99 {slow:?}, at most {slowest:?}"
    );
    assert!(*slowest < Duration::from_secs(2), "an append waited: {slowest:?}");

    let jetstream = broker.jetstream().await;
    let state = jetstream.get_stream("TOOLCRIB").await.unwrap().cached_info().state.clone();
    println!("in the stream: {state:?}; the bus: {:?}", bus.state());
    assert_no_repeats(&records);
    assert_once(&records, EVENTS);
    let mut last = [0; SENDERS];
    for n in numbers(&records) {
        let before = std::mem::replace(&mut last[n % SENDERS], n);
        assert!(before <= n, "the events of one sender keep their order: {before} before {n}");
    }
    assert_eq!(state.messages, 2 * EVENTS as u64);
    assert_eq!(bus.state().waiting, None);
}

/// JetStream forgets within a moment what it had; whatever is uncertain then must be looked up.
#[tokio::test(flavor = "multi_thread")]
async fn a_broker_that_is_killed_again_and_again_doubles_nothing_even_if_it_forgets() {
    let Some(mut broker) = Broker::start() else { return };
    let window = Duration::from_millis(100);
    made(&broker, stream::Config { duplicate_window: window, ..stream::Config::default() }).await;
    let folder = Folder::new();
    let bus = open(&folder, broker.settings());
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    let sending = async {
        let mut order = Vec::new();
        for thousand in 0..10 {
            order.extend(send(&bus, "a.b", thousand * 1000..(thousand + 1) * 1000).await);
        }
        order
    };
    let killing = async {
        for round in 0..12 {
            tokio::time::sleep(Duration::from_millis(40 + round * 23 % 120)).await;
            tokio::task::block_in_place(|| {
                broker.kill();
                std::thread::sleep(Duration::from_millis(150));
                broker.run();
            });
        }
    };
    let (order, (), live) = tokio::join!(sending, killing, read_all(&bus, &mut *follower, 10_000));
    assert_no_repeats(&live);
    assert_eq!(numbers(&live), order);
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    let records = read(&mut *follower, 10_000).await;
    assert_eq!(records, live);
    let jetstream = broker.jetstream().await;
    let found = jetstream.get_stream("TOOLCRIB").await.unwrap().cached_info().state.messages;
    assert_eq!(found, 10_000);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_deleted_is_made_anew_and_followers_and_consumers_go_on() {
    let Some(broker) = Broker::start() else { return };
    let folder = Folder::new();
    let bus = open(&folder, broker.settings());
    let mut follower = bus.follow(Filter::all(), Start::New).await.unwrap();
    let wish = wish("one");
    for n in 0..10 {
        bus.append(event("a.b", n)).await.unwrap();
    }
    assert_eq!(numbers(&read(&mut *follower, 10).await), (0..10).collect::<Vec<_>>());
    let found = bus.fetch(&wish, LONG).await.unwrap();
    broker.jetstream().await.delete_stream("TOOLCRIB").await.unwrap();
    // Nothing is sent: those who read notice it.
    let noticed = tokio::time::timeout(Duration::from_secs(3), follower.next()).await;
    assert!(noticed.is_err(), "{noticed:?}");
    broker.jetstream().await.get_stream("TOOLCRIB").await.unwrap();
    let settled = bus.settle(&wish.consumer, vec![(found[0].record.seq, Outcome::Done)]).await;
    assert!(settled.unwrap().settled.is_empty());
    for n in 10..20 {
        bus.append(event("a.b", n)).await.unwrap();
    }
    assert_eq!(numbers(&read(&mut *follower, 10).await), (10..20).collect::<Vec<_>>());
    let mut had = Vec::new();
    while had.len() < 10 {
        had.extend(bus.fetch(&wish, LONG).await.unwrap().iter().map(|it| number(&it.record)));
    }
    assert_eq!(had, (10..20).collect::<Vec<_>>());

    // And with nobody who reads, whoever sends notices.
    drop(follower);
    broker.jetstream().await.delete_stream("TOOLCRIB").await.unwrap();
    for n in 20..25 {
        bus.append(event("a.b", n)).await.unwrap();
    }
    stored(&broker, 5).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_broker_holds_nobody_up_for_long() {
    let Some(broker) = Broker::start() else { return };
    let folder = Folder::new();
    let bus = open(&folder, broker.settings());
    let wish = wish("one");
    bus.append(event("a.b", 0)).await.unwrap();
    let found = bus.fetch(&wish, LONG).await.unwrap();
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    broker.signal(Signal::SIGSTOP);
    bus.append(event("a.b", 1)).await.unwrap();
    let begin = Instant::now();
    let outcome = vec![(found[0].record.seq, Outcome::Done)];
    let (settled, fetched, followed, consumers) = tokio::join!(
        bus.settle(&wish.consumer, outcome.clone()),
        bus.fetch(&wish, Duration::from_secs(1)),
        bus.follow(Filter::all(), Start::New),
        bus.consumers(),
    );
    assert!(begin.elapsed() < Duration::from_secs(25), "{:?}", begin.elapsed());
    let errors =
        [settled.err(), fetched.err(), followed.err(), consumers.err()].map(Option::unwrap);
    assert!(errors.iter().all(BusError::is_transient), "{errors:?}");
    until(&bus, "the reason", |it| it.is_some_and(|it| it.contains("not answer"))).await;

    broker.signal(Signal::SIGCONT);
    let begin = Instant::now();
    assert_eq!(numbers(&read(&mut *follower, 2).await), [0, 1]);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    bus.settle(&wish.consumer, outcome).await.unwrap();
    assert_eq!(number(&bus.fetch(&wish, LONG).await.unwrap()[0].record), 1);
    stored(&broker, 2).await;
}
