//! The way in: what waits, what it waits for, and what is said meanwhile.

use std::fs;

use nix::sys::signal::Signal;
use toolcrib_bus::{Draft, Filter, Login, Settings, Start};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn events_are_taken_before_there_is_a_broker_and_go_on_when_it_comes() {
    let Some(mut broker) = Broker::stopped() else { return };
    let folder = Folder::new();
    let bus = open(&folder, broker.settings());
    let begin = Instant::now();
    for n in 0..100 {
        bus.append(event("task.run", n)).await.unwrap();
    }
    assert!(begin.elapsed() < Duration::from_secs(10));
    until(&bus, "the reason", |it| it.is_some_and(|it| it.contains("cannot be reached"))).await;
    assert_eq!(bus.state().failing, None);

    // What needs the broker ends soon, and says why.
    let begin = Instant::now();
    let wish = wish("one");
    let (follow, fetch, consumers, dead, forget) = tokio::join!(
        bus.follow(Filter::all(), Start::First),
        bus.fetch(&wish, Duration::from_secs(1)),
        bus.consumers(),
        bus.dead(&wish.consumer, 1),
        bus.forget(&wish.consumer),
    );
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
    let errors =
        [follow.err(), fetch.err(), consumers.err(), dead.err(), forget.err()].map(Option::unwrap);
    for error in errors {
        assert!(error.is_transient() && error.to_string().contains("127.0.0.1"), "{error}");
    }

    broker.run();
    until(&bus, "it flows", |it| it.is_none()).await;
    let found = stored(&broker, 100).await;
    for (n, (subject, _, payload)) in found.iter().enumerate() {
        assert_eq!(subject, "toolcrib.events.task.run");
        assert!(payload.ends_with(&format!(",\"data\":{n}}}")), "{payload}");
    }
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    assert_eq!(numbers(&read(&mut *follower, 100).await), (0..100).collect::<Vec<_>>());
    assert_eq!(bus.state().last, 100);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_restarts_in_an_outage_sends_the_rest() {
    let Some(mut broker) = Broker::start() else { return };
    let folder = Folder::new();
    for round in 0..3 {
        let bus = open(&folder, broker.settings());
        for n in 0..50 {
            if n == 25 {
                broker.kill();
            }
            bus.append(event("a.b", round * 50 + n)).await.unwrap();
        }
        bus.close().await;
        let bus = open(&folder, broker.settings());
        bus.append(event("a.b", 1000 + round)).await.unwrap();
        drop(bus);
        broker.run();
    }
    let bus = open(&folder, broker.settings());
    let found = stored(&broker, 153).await;
    let ids: BTreeSet<_> = found.iter().map(|(_, id, _)| id).collect();
    assert_eq!(ids.len(), 153);
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    let records = read(&mut *follower, 153).await;
    let mut expected: Vec<usize> = Vec::new();
    for round in 0..3 {
        expected.extend(round * 50..(round + 1) * 50);
        expected.push(1000 + round);
    }
    assert_eq!(numbers(&records), expected);
}

/// The outbox is as before anything was sent, and all of it was: as after a crash, later than NATS remembers.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_the_stream_already_is_not_sent_again_however_late() {
    let Some(mut broker) = Broker::start() else { return };
    let window = Duration::from_millis(100);
    made(&broker, stream::Config { duplicate_window: window, ..stream::Config::default() }).await;
    broker.kill();
    let folder = Folder::new();
    let bus = open(&folder, broker.settings());
    let mut order = send(&bus, "a.b", 0..2500).await;
    bus.close().await;
    fs::copy(folder.file("events.db"), folder.file("before.db")).unwrap();

    broker.run();
    let bus = open(&folder, broker.settings());
    let other = Folder::new();
    let neighbour = open(&other, broker.settings());
    send(&neighbour, "c.d", 5000..5050).await;
    stored(&broker, 2550).await;
    bus.close().await;

    let bus = open_at(&folder.file("before.db"), broker.settings());
    order.extend(send(&bus, "a.b", 2500..2510).await);
    stored(&broker, 2560).await;
    let mut follower = bus.follow(Filter::of(["a.*"]).unwrap(), Start::First).await.unwrap();
    let records = read(&mut *follower, 2510).await;
    assert_once(&records, 2510);
    assert_eq!(numbers(&records), order);
}

/// A broker that lost power lost what it had confirmed: the last it wrote was not on disk.
#[tokio::test(flavor = "multi_thread")]
async fn what_the_broker_confirmed_and_lost_is_sent_again() {
    let Some(mut broker) = Broker::start() else { return };
    let folder = Folder::new();
    let bus = open(&folder, broker.settings());
    let other = Folder::new();
    let neighbour = open(&other, broker.settings());
    let mut live = neighbour.follow(Filter::all(), Start::First).await.unwrap();
    let mut order = send(&bus, "a.b", 0..20).await;
    stored(&broker, 20).await;
    broker.kill();
    broker.keep_store();
    broker.run();
    order.extend(send(&bus, "a.b", 20..50).await);
    stored(&broker, 50).await;
    let mut seen = numbers(&read(&mut *live, 50).await);
    bus.close().await;
    broker.kill();
    broker.restore_store();
    broker.run();
    // Who reads finds the end gone before it comes again.
    let nothing = tokio::time::timeout(Duration::from_secs(4), live.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    let bus = open(&folder, broker.settings());
    order.extend(send(&bus, "a.b", 50..51).await);
    stored(&broker, 51).await;
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    assert_eq!(numbers(&read(&mut *follower, 51).await), order);
    seen.extend(numbers(&read(&mut *live, 1).await));
    assert_eq!(seen, order, "who had seen them does not see them again");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_outbox_takes_nothing_more_and_says_since_when() {
    let Some(mut broker) = Broker::stopped() else { return };
    let folder = Folder::new();
    let settings = NatsSettings { max_outbox: 20, ..broker.settings() };
    let bus = open(&folder, settings.clone());
    for n in 0..20 {
        bus.append(event("a.b", n)).await.unwrap();
    }
    let error = bus.append(event("a.b", 20)).await.unwrap_err();
    assert!(error.is_transient());
    let text = error.to_string();
    assert!(
        text.starts_with("the outbox is full: 20 events") && text.contains("since 20"),
        "{text}"
    );
    bus.close().await;

    let store = Settings { max_size: 2000, ..Settings::default() };
    let bus = open(&folder, NatsSettings { max_outbox: 1000, store, ..settings.clone() });
    let error = bus.append(event("a.b", 20)).await.unwrap_err().to_string();
    assert!(error.contains("bytes wait"), "{error}");
    bus.close().await;

    let bus = open(&folder, settings);
    broker.run();
    stored(&broker, 20).await;
    bus.append(event("a.b", 20)).await.unwrap();
    stored(&broker, 21).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_refused_says_so_and_nothing_of_the_password() {
    let Some(mut broker) = Broker::stopped() else { return };
    let login =
        |password: &str| format!("authorization {{\n  user: me\n  password: \"{password}\"\n}}");
    broker.configure(&login("s3cret"));
    broker.run();
    let folder = Folder::new();
    let mut settings = broker.settings();
    settings.url = format!("nats://me:s3cret@127.0.0.1:{}", broker.port);
    let shown = format!("{settings:?}");
    assert!(!shown.contains("s3cret") && shown.contains("127.0.0.1"), "{shown}");
    let bus = open(&folder, settings);
    bus.append(event("a.b", 0)).await.unwrap();
    until(&bus, "it flows", |it| it.is_none()).await;

    broker.configure(&login("0ther"));
    broker.signal(Signal::SIGHUP);
    until(&bus, "refused", |it| it.is_some_and(|it| it.contains("refuses our credentials"))).await;
    bus.append(event("a.b", 1)).await.unwrap();
    let error = bus.follow(Filter::all(), Start::First).await.unwrap_err();
    let told = format!("{bus:?} {error} {error:?} {:?}", bus.state());
    assert!(told.contains("refuses our credentials") && !told.contains("s3cret"), "{told}");

    broker.configure(&login("s3cret"));
    broker.signal(Signal::SIGHUP);
    let begin = Instant::now();
    until(&bus, "it flows", |it| it.is_none()).await;
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    assert_eq!(numbers(&read(&mut *follower, 2).await), [0, 1]);
}

/// A key made for this test.
const SEED: &str = "SUAGXZN2MZYYZNJI5DIRDWAKNT76HEZGHPCK2WYTO3CIEG2VQZLPD6BDOI";
const PUBLIC: &str = "UAOVTLVWDVE4L4MC5GLSGFV6SRSMJDXILUCRPUVKPILPLVYWLIQWH47F";

#[tokio::test(flavor = "multi_thread")]
async fn keys_tokens_and_tls_open_the_door() {
    let Some(mut broker) = Broker::stopped() else { return };
    let folder = Folder::new();
    let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let certificate = folder.write("cert.pem", made.cert.pem());
    let key = folder.write("key.pem", made.signing_key.serialize_pem());
    let tls = format!("tls {{\n  cert_file: {certificate:?}\n  key_file: {key:?}\n}}");
    broker.configure(&format!("{tls}\nauthorization {{\n  users: [ {{ nkey: {PUBLIC} }} ]\n}}"));
    broker.run();
    let mut settings = broker.settings();
    settings.login = Login::Nkey(SEED.to_owned());
    settings.url = settings.url.replace("nats:", "tls:");
    let stranger = open(&Folder::new(), settings.clone());
    until(&stranger, "a reason", |it| it.is_some_and(|it| !it.contains("not been reached yet")))
        .await;
    let told = format!("{:?} {settings:?}", stranger.state());
    assert!(told.contains("cannot be reached") && !told.contains(SEED), "{told}");
    settings.ca = Some(certificate);
    let bus = open(&folder, settings.clone());
    bus.append(event("a.b", 0)).await.unwrap();
    until(&bus, "it flows", |it| it.is_none()).await;
    bus.close().await;

    broker.kill();
    broker.configure("authorization {\n  token: \"t0ken\"\n}");
    broker.run();
    let mut settings = broker.settings();
    settings.login = Login::Token("t0ken".to_owned());
    let bus = open(&folder, settings);
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    assert_eq!(numbers(&read(&mut *follower, 1).await), [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_there_is_taken_or_said_to_be_no_good() {
    let Some(broker) = Broker::start() else { return };
    let config =
        stream::Config { subjects: vec!["other.>".to_owned()], ..stream::Config::default() };
    made(&broker, config).await;
    let folder = Folder::new();
    let bus = open(&folder, broker.settings());
    bus.append(event("a.b", 0)).await.unwrap();
    until(&bus, "the reason", |it| it.is_some_and(|it| it.contains("add that to its subjects")))
        .await;
    let jetstream = broker.jetstream().await;
    let subjects = vec!["toolcrib.events.>".to_owned()];
    let mut config = jetstream.get_stream("TOOLCRIB").await.unwrap().cached_info().config.clone();
    (config.subjects, config.max_message_size) = (subjects, 2000);
    jetstream.update_stream(config.clone()).await.unwrap();
    until(&bus, "it flows", |it| it.is_none()).await;
    // It takes no revived events; whoever wants some hears what to do.
    let wish = wish("one");
    let found = bus.fetch(&wish, LONG).await.unwrap();
    assert_eq!(found.len(), 1);
    let error = bus.revive(&wish.consumer).await.unwrap_err();
    assert!(
        matches!(&error, BusError::Refused(text) if text.contains("toolcrib.again.>")),
        "{error}"
    );

    // What it refuses holds up what comes behind, until it no longer does; nothing is lost.
    bus.append(Draft::new("a.b", format!("{:?}", "x".repeat(3000))).event().unwrap())
        .await
        .unwrap();
    bus.append(event("a.b", 2)).await.unwrap();
    until(&bus, "the reason", |it| it.is_some_and(|it| it.contains("refuses an event"))).await;
    config.max_message_size = -1;
    jetstream.update_stream(config).await.unwrap();
    until(&bus, "it flows", |it| it.is_none()).await;
    let found = stored(&broker, 3).await;
    let ids: BTreeSet<_> = found.iter().map(|(_, id, _)| id).collect();
    assert_eq!(ids.len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_makes_no_sense_is_refused_when_a_bus_is_opened() {
    let folder = Folder::new();
    let refused = |settings: NatsSettings| match Nats::open(&folder.file("events.db"), settings)
        .unwrap_err()
    {
        BusError::Refused(text) => text,
        other => panic!("{other:?}"),
    };
    assert!(refused(NatsSettings::new("http://me:s3cret@x")).contains("`nats://` or `tls://`"));
    assert!(refused(NatsSettings::new("")).contains("no address"));
    let settings = NatsSettings { stream: "a.b".to_owned(), ..NatsSettings::new("nats://x") };
    assert!(refused(settings).contains("`a.b` is no name of a stream"));
}
