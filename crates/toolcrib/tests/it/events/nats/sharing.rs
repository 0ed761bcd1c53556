//! The way out: several gateways, one stream.

use std::time::Duration;

use toolcrib_bus::{Draft, Filter, Outcome, Start};

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn gateways_see_one_order_and_share_consumers() {
    let Some(broker) = Broker::start() else { return };
    let folders = [Folder::new(), Folder::new()];
    let buses = folders.each_ref().map(|it| open(it, broker.settings()));
    let sending = |gateway: usize| {
        let (bus, numbers) = (&buses[gateway], gateway * 200..(gateway + 1) * 200);
        async move { send(bus, &format!("from.g{gateway}"), numbers).await }
    };
    let working = |gateway: usize| {
        let bus = &buses[gateway];
        async move {
            let wish = Wish { max: 9, ..wish("shared") };
            let mut had = Vec::new();
            loop {
                let found = bus.fetch(&wish, Duration::from_secs(3)).await.unwrap();
                if found.is_empty() {
                    return had;
                }
                let outcomes = found.iter().map(|it| (it.record.seq, Outcome::Done)).collect();
                let settled = bus.settle(&wish.consumer, outcomes).await.unwrap();
                assert_eq!(settled.settled.len(), found.len());
                had.extend(found.into_iter().map(|it| it.record));
            }
        }
    };
    let (first, second, one, two) = tokio::join!(sending(0), sending(1), working(0), working(1));
    assert!(!one.is_empty() && !two.is_empty(), "{} and {}", one.len(), two.len());
    let mut had = [one, two].concat();
    had.sort_by_key(|it| it.seq);
    assert_once(&had, 400);

    let mut seen = Vec::new();
    for bus in &buses {
        let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
        seen.push(read(&mut *follower, 400).await);
    }
    assert_eq!(seen[0], seen[1], "all gateways see one order");
    assert_eq!(seen[0], had);
    for (gateway, order) in [first, second].into_iter().enumerate() {
        let name = format!("from.g{gateway}");
        let own = seen[0].iter().filter(|it| it.name == name).map(|it| number(it));
        assert_eq!(own.collect::<Vec<_>>(), order, "each gateway's own keep their order");
    }

    // What one gateway gives up, the other can revive.
    let wish = wish("shared");
    let late = buses[0].append(event("late.one", 999)).await.unwrap();
    let found = buses[0].fetch(&wish, LONG).await.unwrap();
    assert_eq!(found[0].record.id, late.id);
    let outcome = vec![(found[0].record.seq, Outcome::Dead("no".to_owned()))];
    buses[0].settle(&wish.consumer, outcome).await.unwrap();
    assert_eq!(buses[1].dead(&wish.consumer, 9).await.unwrap()[0].reason, "no");
    assert_eq!(buses[1].revive(&wish.consumer).await.unwrap(), 1);
    let found = buses[0].fetch(&wish, LONG).await.unwrap();
    assert_eq!((found[0].record.id.as_str(), found[0].attempt), (late.id.as_str(), 1));

    // The same event through both is one.
    let draft = Draft { id: Some("twice".to_owned()), ..Draft::new("a.b", "1") };
    for bus in &buses {
        assert!(!bus.append(draft.clone().event().unwrap()).await.unwrap().again);
    }
    let mut follower = buses[0].follow(Filter::of(["a.*"]).unwrap(), Start::First).await.unwrap();
    read(&mut *follower, 1).await;
    assert!(tokio::time::timeout(Duration::from_secs(1), follower.next()).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_put_on_the_subjects_is_an_event_or_told_of() {
    let Some(broker) = Broker::start() else { return };
    let folder = Folder::new();
    let bus = open(&folder, broker.settings());
    bus.append(event("a.b", 0)).await.unwrap();
    stored(&broker, 1).await;
    let jetstream = broker.jetstream().await;
    let sent = [
        ("toolcrib.events.a.b", "no event at all".to_owned()),
        ("toolcrib.events.a.b", r#"{"type":"a.b","id":"x","data":7}"#.to_owned()),
        ("toolcrib.events.a.b", r#"{"type":"c.d","id":"y","data":8}"#.to_owned()),
    ];
    for (subject, payload) in sent {
        jetstream.publish(subject, payload.into()).await.unwrap().await.unwrap();
    }
    let mut follower = bus.follow(Filter::all(), Start::First).await.unwrap();
    let (mut records, mut damaged) = (Vec::new(), Vec::new());
    while records.len() < 2 || damaged.len() < 2 {
        let batch = tokio::time::timeout(LONG, follower.next()).await.unwrap().unwrap();
        records.extend(batch.records);
        damaged.extend(batch.damaged);
    }
    assert_eq!((numbers(&records), damaged), (vec![0, 7], vec![2..=2, 4..=4]));
    let wish = wish("one");
    let mut found = Vec::new();
    while found.len() < 2 {
        found.extend(bus.fetch(&wish, LONG).await.unwrap());
    }
    bus.fetch(&wish, Duration::from_millis(500)).await.unwrap();
    let letters = bus.dead(&wish.consumer, 9).await.unwrap();
    let letters: Vec<_> = letters.iter().map(|it| (it.seq, it.reason.as_str())).collect();
    assert_eq!(letters, [(2, "it is no event"), (4, "it is no event")]);
}

/// JetStream writes down later what was acknowledged; killed before, it forgets.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_stays_done_when_the_broker_is_killed() {
    let Some(mut broker) = Broker::start() else { return };
    let folder = Folder::new();
    let bus = open(&folder, broker.settings());
    let wish = Wish { max: 50, patience: Duration::from_secs(1), ..wish("one") };
    for round in 0..3 {
        send(&bus, "a.b", round * 50..(round + 1) * 50).await;
        let mut found = Vec::new();
        while found.len() < 50 {
            let asked = Wish { max: 50 - found.len(), ..wish.clone() };
            found.extend(bus.fetch(&asked, LONG).await.unwrap_or_default());
        }
        let numbers: BTreeSet<_> = found.iter().map(|it| number(&it.record)).collect();
        assert_eq!(numbers, (round * 50..(round + 1) * 50).collect());
        let outcomes = found.iter().map(|it| (it.record.seq, Outcome::Done)).collect();
        assert_eq!(bus.settle(&wish.consumer, outcomes).await.unwrap().settled.len(), 50);
        broker.kill();
        broker.run();
    }
    until(&bus, "it flows", |it| it.is_none()).await;
    let more = bus.fetch(&wish, Duration::from_secs(4)).await.unwrap();
    assert!(more.is_empty(), "{more:?}");
}
