//! A collector that is away, slow or mad costs spans and never a call.

use std::{
    fs::File,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;

use super::{
    call,
    collector::{Collector, Manner},
    metrics,
    traces::{KEY, folder},
};
use crate::{
    kit::{Folder, soon},
    serving::{Line, Serving},
};

/// A gateway whose log goes to a file.
fn serve(folder: &Folder) -> Serving {
    let log = File::create(folder.file("log")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).envs(KEY).current_dir(folder.path());
    Serving::run(command.stderr(Stdio::from(log)))
}

fn told(folder: &Folder) -> usize {
    let log = std::fs::read_to_string(folder.file("log")).unwrap();
    assert!(!log.contains("SECRET_KEY"), "{log}");
    log.matches("the collector takes no traces").count()
}

fn spans(serving: &Serving, result: &str) -> f64 {
    metrics(serving, &[]).sum("toolcrib_spans_total", &[("result", result)])
}

/// Calls go through as if nothing were, and the gateway ends in time.
#[track_caller]
fn calls_go_well(serving: &Serving) {
    let begin = Instant::now();
    for _ in 0..20 {
        let answer = call(serving, &[], "mcp__s__echo", &json!({ "n": 1 }));
        assert_eq!(answer.json()["result"]["isError"], false, "{answer:?}");
    }
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

#[track_caller]
fn ends_in_time(mut serving: Serving) {
    serving.signal("-TERM");
    let begin = Instant::now();
    while serving.child.try_wait().unwrap().is_none() {
        assert!(begin.elapsed() < Duration::from_secs(10), "it does not end");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_collector_that_refuses_is_told_of_once() {
    let refuses = "HTTP/1.1 500 Oh\r\nContent-Length: 22\r\n\r\nSECRET_KEY is <b>wrong";
    let collector = Collector::start(Manner::Answers(refuses));
    let folder = folder(&collector.url);
    let serving = serve(&folder);
    for round in 1..=2 {
        calls_go_well(&serving);
        let all = f64::from(round * 40);
        soon("they are given up", || spans(&serving, "failed") == all);
    }
    assert_eq!(collector.requests().len(), 2);
    assert_eq!(told(&folder), 1);
    ends_in_time(serving);
}

#[test]
fn what_is_no_answer_is_a_refusal() {
    for garbage in
        ["\0\u{1}\u{2} what is this", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n{"]
    {
        let collector = Collector::start(Manner::Answers(garbage));
        let folder = folder(&collector.url);
        let serving = serve(&folder);
        calls_go_well(&serving);
        soon("it was tried", || !collector.requests().is_empty());
        calls_go_well(&serving);
        ends_in_time(serving);
    }
}

#[test]
fn nobody_there_at_all_is_no_harm() {
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let folder = folder(&format!("http://{address}"));
    let serving = serve(&folder);
    calls_go_well(&serving);
    ends_in_time(serving);
    assert_eq!(told(&folder), 1);
}

/// It takes connections and requests, and says nothing. What waits for it is bounded.
#[test]
fn a_collector_that_never_answers_costs_spans_and_no_memory() {
    let collector = Collector::start(Manner::NeverAnswers);
    let folder = folder(&collector.url);
    let serving = serve(&folder);
    let session = serving.session(&[], "2025-11-25");
    let mut line = Line::open(&serving);
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "mcp__s__nothing", "arguments": {} } });
    // A batch of 512 is on its way, and 4,096 wait.
    for _ in 0..5_200 {
        assert_eq!(line.post(&session, &body.to_string()).status, 200);
    }
    let waiting = metrics(&serving, &[]).sum("toolcrib_span_queue", &[]);
    assert!((4_000.0..=4_608.0).contains(&waiting), "{waiting}");
    let dropped = spans(&serving, "dropped");
    assert_eq!(waiting + dropped, 5_200.0);
    calls_go_well(&serving);
    ends_in_time(serving);
}
