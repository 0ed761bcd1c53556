//! Events over HTTP: reading, resuming, acknowledging, publishing.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Stream, acknowledge, publish, workspace};
use crate::{kit::soon, serving::Serving};

fn sequences(list: &Value) -> Vec<u64> {
    let list = list["events"].as_array().unwrap();
    list.iter().map(|it| it["sequence"].as_str().unwrap().parse().unwrap()).collect()
}

#[test]
fn whoever_reads_gets_what_matches_and_resumes_where_it_was() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    for n in 1..=5 {
        publish(&serving, if n % 2 == 0 { "even.made" } else { "odd.made" }, &json!(n));
    }
    let mut stream = Stream::open(&serving, "match=odd.*&from=2", &[]);
    assert_eq!([stream.next().unwrap().id, stream.next().unwrap().id], [3, 5]);
    publish(&serving, "even.made", &json!(6));
    publish(&serving, "odd.made", &json!(7));
    assert_eq!(stream.next().unwrap().id, 7);
    drop(stream);
    publish(&serving, "odd.made", &json!(8));
    let mut again = Stream::open(&serving, "match=odd.*", &[("Last-Event-ID", "5")]);
    assert_eq!([again.next().unwrap().id, again.next().unwrap().id], [7, 8]);
    let mut live = Stream::open(&serving, "match=*.made", &[]);
    publish(&serving, "odd.made", &json!(9));
    assert_eq!(live.next().unwrap().id, 9);
    let page = serving.get("/events?max=1&match=even.made", &[("Accept", "application/json, */*")]);
    assert_eq!((sequences(&page.json()), &page.json()["next"]), (vec![2], &json!(4)));
    let page =
        serving.get("/events?from=4&match=even.made&wait=5s", &[("Accept", "application/json")]);
    assert_eq!((sequences(&page.json()), &page.json()["next"]), (vec![4, 6], &json!(10)));
}

/// The gateway ends and starts again: nothing is lost, and places go on.
#[test]
fn an_agent_that_was_away_finds_its_events() {
    let folder = workspace();
    {
        let serving = Serving::start(folder.path());
        publish(&serving, "task.one", &json!(1));
        let mut stream = Stream::open(&serving, "consumer=worker&match=task.*", &[]);
        assert_eq!(stream.next().unwrap().id, 1);
        acknowledge(&serving, "worker", &[1]);
        drop(stream);
        publish(&serving, "task.two", &json!(2));
        publish(&serving, "other.three", &json!(3));
    }
    let serving = Serving::start(folder.path());
    assert_eq!(publish(&serving, "task.four", &json!(4)), 4);
    let mut stream = Stream::open(&serving, "consumer=worker", &[]);
    assert_eq!([stream.next().unwrap().id, stream.next().unwrap().id], [2, 4]);
}

#[test]
fn what_is_not_acknowledged_comes_again_and_what_is_never_does() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    for n in 1..=6 {
        publish(&serving, "task.run", &json!(n));
    }
    let mut killed = Stream::open(&serving, "consumer=worker&max=4", &[]);
    let first: Vec<u64> = (0..4).map(|_| killed.next().unwrap().id).collect();
    assert_eq!(first, [1, 2, 3, 4]);
    // No more than it wants in hand.
    assert!(killed.is_silent(Duration::from_millis(300)));
    assert_eq!(
        acknowledge(&serving, "worker", &[2, 3]),
        json!({ "settled": [2, 3], "unknown": [] })
    );
    assert_eq!([killed.next().unwrap().id, killed.next().unwrap().id], [5, 6]);
    drop(killed);
    let begin = std::time::Instant::now();
    let mut next = Stream::open(&serving, "consumer=worker&max=10", &[]);
    let again: Vec<u64> = (0..4).map(|_| next.next().unwrap().id).collect();
    assert_eq!(again, [1, 4, 5, 6]);
    // At once, and not when the half minute is over that it would have had.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert_eq!(
        acknowledge(&serving, "worker", &[1, 2, 4, 5, 6, 99]),
        json!({ "settled": [1, 4, 5, 6], "unknown": [2, 99] })
    );
    assert!(next.is_silent(Duration::from_millis(300)));
}

#[test]
fn two_workers_share_a_consumer_and_two_consumers_share_nothing() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    let mut a = Stream::open(&serving, "consumer=w&max=1", &[]);
    let mut b = Stream::open(&serving, "consumer=w&max=1", &[]);
    let mut other = Stream::open(&serving, "consumer=x&max=10", &[]);
    publish(&serving, "task.run", &json!(1));
    publish(&serving, "task.run", &json!(2));
    let mut shared = [a.next().unwrap().id, b.next().unwrap().id];
    shared.sort_unstable();
    assert_eq!(shared, [1, 2]);
    assert_eq!([other.next().unwrap().id, other.next().unwrap().id], [1, 2]);
}

#[test]
fn what_cannot_be_done_ends_among_the_dead_letters_and_can_be_tried_again() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    publish(&serving, "task.run", &json!(1));
    publish(&serving, "task.run", &json!(2));
    let poll = |query: &str| {
        let answer = serving.get(&format!("/events?{query}"), &[("Accept", "application/json")]);
        sequences(&answer.json())
    };
    let query = "consumer=w&patience=200ms&attempts=2&max=1&wait=2s";
    assert_eq!(poll(query), [1]);
    let body =
        json!({ "consumer": "w", "sequences": [1], "outcome": "dead", "reason": "no such file" });
    serving.request("POST", "/events/ack", &[], &body.to_string());
    // The second is never settled: twice it is delivered, and no more.
    assert_eq!([poll(query), poll(query)], [[2], [2]]);
    assert_eq!(poll("consumer=w&patience=200ms&attempts=2&wait=1s"), [0; 0]);
    let dead = serving.get("/events/dead?consumer=w", &[]).json();
    assert_eq!(
        (&dead["dead"][0]["sequence"], &dead["dead"][0]["reason"]),
        (&json!(1), &json!("no such file"))
    );
    assert_eq!(
        (&dead["dead"][1]["attempts"], &dead["dead"][1]["event"]["data"]),
        (&json!(2), &json!(2))
    );
    let revived = serving.request("POST", "/events/dead?consumer=w", &[], "");
    assert_eq!(revived.json(), json!({ "revived": 2 }));
    assert_eq!(poll("consumer=w&wait=2s"), [1, 2]);
    let body =
        json!({ "consumer": "w", "sequences": [1], "outcome": "retry", "delay_seconds": 0.3 });
    serving.request("POST", "/events/ack", &[], &body.to_string());
    assert_eq!(poll("consumer=w&wait=5s"), [1]);
    let state = serving.get("/events/consumers", &[]).json()["consumers"][0].clone();
    assert_eq!(
        (&state["name"], &state["pending"], &state["dead"]),
        (&json!("w"), &json!(2), &json!(0))
    );
    let gone = serving.request("DELETE", "/events/consumers?consumer=w", &[], "");
    assert_eq!(gone.json(), json!({ "forgotten": true }));
    assert_eq!(poll("consumer=w&from=new"), [0; 0]);
}

#[test]
fn an_event_that_is_sent_twice_is_there_once() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    let send = |data: u32| {
        let body =
            json!({ "type": "a.b", "id": "order-7", "source": "/shop", "data": data }).to_string();
        let kind = [("Content-Type", "application/cloudevents+json")];
        serving.request("POST", "/events", &kind, &body)
    };
    assert_eq!((send(1).status, send(1).status), (201, 200));
    assert_eq!(send(1).json(), json!({ "id": "order-7", "sequence": 1, "again": true }));
    let taken = send(2);
    assert_eq!((taken.status, taken.body.as_str()), (409, "another event has the id `order-7`\n"));
    assert_eq!(publish(&serving, "a.b", &json!(3)), 2);
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    let post = |body: &str| {
        let answer = serving.request("POST", "/events", &[], body);
        (answer.status, answer.body)
    };
    assert_eq!(post("{}"), (400, "`type` is required: the event's name\n".to_owned()));
    assert_eq!(post(r#"{"type":"a b"}"#).0, 400);
    assert_eq!(
        post(r#"{"type":"toolcrib.x"}"#),
        (400, "names that begin with `toolcrib.` are the gateway's own\n".to_owned())
    );
    // Whoever reads the first of two equal keys must not see another event than we did.
    assert_eq!(post(r#"{"type":"a.b","type":"c.d"}"#).0, 400);
    assert_eq!(post(r#"{"type":"a.b","data":{"x":1,"x":2}}"#).0, 400);
    assert_eq!(post("not json").0, 400);
    let large = format!(r#"{{"type":"a.b","data":"{}"}}"#, "x".repeat(2 << 20));
    assert_eq!(post(&large).0, 413);
    for bad in ["mach=a", "from=x", "consumer=a/b", "consumer=&wait=1s", "max=1000", "match=a%20b"]
    {
        assert_eq!(serving.get(&format!("/events?{bad}"), &[]).status, 400, "{bad}");
    }
    let ack = |body: &str| serving.request("POST", "/events/ack", &[], body).status;
    let beyond = r#"{"sequences":[18446744073709551615]}"#;
    let beyond = serving.request("POST", "/events/ack", &[], beyond).json();
    assert_eq!(beyond["unknown"], json!([u64::MAX]));
    assert_eq!([ack("{}"), ack(r#"{"sequences":[]}"#), ack(r#"{"sequences":["x"]}"#)], [400; 3]);
    assert_eq!(serving.request("PUT", "/events", &[], "").status, 405);
    assert_eq!(serving.get("/events/nothing", &[]).status, 404);
    assert_eq!(
        serving.request("POST", "/events", &[("Content-Type", "text/plain")], "{}").status,
        415
    );
    assert_eq!(publish(&serving, "a.b", &json!(1)), 1);
}

/// A reader that takes nothing holds up nobody, and many go away without a trace.
#[test]
fn slow_readers_and_many_of_them_hold_up_nobody() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    let descriptors =
        || std::fs::read_dir(format!("/proc/{}/fd", serving.child.id())).unwrap().count();
    publish(&serving, "a.b", &json!(0));
    let before = descriptors();
    let slow: Vec<Stream> = (0..50).map(|_| Stream::open(&serving, "from=first", &[])).collect();
    let data = json!("x".repeat(100_000));
    for _ in 0..40 {
        publish(&serving, "a.b", &data);
    }
    let mut quick = Stream::open(&serving, "from=41", &[]);
    assert_eq!(quick.next().unwrap().id, 41);
    drop((slow, quick));
    soon("they are gone", || descriptors() <= before + 4);
}
