//! `toolcrib events`, with a gateway and without one.

use std::{
    io::{BufRead, BufReader},
    process::{Command, Stdio},
};

use serde_json::json;

use super::{acknowledge, publish, workspace};
use crate::{
    kit::{Folder, toolcrib},
    serving::Serving,
};

/// Ids and times are never the same twice.
fn steady(text: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let id = word.len() >= 36 && word.matches('-').count() == 4;
        let clock = word.len() == 8 && word.matches(':').count() == 2;
        words.push(if id {
            "ID,".into()
        } else if clock {
            "TIME".into()
        } else {
            word.to_owned()
        });
    }
    words.join(" ")
}

#[test]
fn without_a_gateway_the_file_is_opened_here() {
    let folder = workspace();
    let run = |args: &[&str]| toolcrib(folder.path(), args);
    let first = run(&["events", "publish", "task.done", r#"{"ok": true}"#]);
    assert_eq!(
        steady(&first.out),
        "Event emitted: task.done (id ID, sequence 1)\n"
            .replace("id ID,", "(id")
            .replace("((id", "(id ID,"),
        "{}",
        first.transcript()
    );
    let call =
        run(&["call", "delegate_task", "task_id=t1", "task_type=download", "instructions=go"]);
    assert!(call.out.starts_with("Event emitted: task.delegate (id "), "{}", call.transcript());
    let tail = run(&["events", "tail", "--no-follow"]);
    let lines: Vec<String> = tail.out.lines().map(steady).collect();
    assert_eq!(lines[0], r#"TIME #1 task.done {"ok": true}"#);
    assert_eq!(
        lines[1],
        r#"TIME #2 task.delegate tool delegate_task {"task_id":"t1","task_type":"download","instructions":"go"}"#
    );
    let one = run(&["events", "tail", "task.d*", "--from", "first", "--count", "1", "--json"]);
    assert_eq!(one.json()["sequence"], "1");
    let verified = run(&["events", "verify"]);
    assert_eq!(
        (verified.code, verified.out.as_str()),
        (0, "2 events as they were written, 1 to 2\n")
    );
    assert_eq!(run(&["events", "consumers"]).out, "no consumers\n");
    let twice = ["events", "publish", "a.b", "1", "--id", "x", "--json"];
    assert_eq!(
        (run(&twice).json()["again"].clone(), run(&twice).json()["again"].clone()),
        (json!(false), json!(true))
    );
}

#[test]
fn with_a_gateway_it_is_asked() {
    let folder = workspace();
    let serving = Serving::start(folder.path());
    let run = |args: &[&str]| toolcrib(folder.path(), args);
    let mut tail = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(["events", "tail", "task.*", "--from", "new", "--count", "2"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // What is published before it listens is not for it.
    let mut lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let (sender, shown) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        while let Some(Ok(line)) = lines.next() {
            sender.send(line).ok();
        }
    });
    let begin = std::time::Instant::now();
    let mut n = 0;
    let first = loop {
        n += 1;
        run(&["events", "publish", "task.done", &n.to_string()]);
        if let Ok(line) = shown.recv_timeout(std::time::Duration::from_millis(200)) {
            break line;
        }
        assert!(begin.elapsed().as_secs() < 20, "nothing is shown");
    };
    assert!(first.contains("task.done"), "{first}");
    let call =
        run(&["call", "delegate_task", "task_id=t1", "task_type=download", "instructions=go"]);
    assert!(call.out.starts_with("Event emitted: task.delegate"), "{}", call.transcript());
    assert!(tail.wait().unwrap().success());
    publish(&serving, "task.x", &json!(1));
    serving.get("/events?consumer=w&max=1", &[("Accept", "application/json")]);
    acknowledge(&serving, "w", &[1]);
    let consumers = run(&["events", "consumers"]);
    assert!(consumers.out.contains("guest/w"), "{}", consumers.transcript());
    let unknown = run(&["events", "consumers", "guest/v"]);
    assert!(
        unknown.code == 1 && unknown.err.contains("did you mean `guest/w`?"),
        "{}",
        unknown.transcript()
    );
    let forgotten = run(&["events", "consumers", "guest/w", "--forget"]);
    assert_eq!(forgotten.out, "guest/w is forgotten\n");
    assert_eq!(run(&["events", "verify"]).code, 0);
}

/// A gateway that comes later, and one that ends and comes again, is followed.
#[test]
fn tail_waits_for_a_gateway_and_outlives_it() {
    let folder = workspace();
    let mut tail = Command::new(env!("CARGO_BIN_EXE_toolcrib"))
        .args(["events", "tail", "--from", "first", "--count", "2", "--json"])
        .current_dir(folder.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(tail.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!(said, "no gateway serves this workspace yet; waiting for one\n");
    for n in 1..=2 {
        let serving = Serving::start(folder.path());
        publish(&serving, "a.b", &json!(n));
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    let out = tail.wait_with_output().unwrap();
    let lines = String::from_utf8(out.stdout).unwrap();
    let places: Vec<&str> = lines.lines().map(|it| it.split('"').nth(3).unwrap()).collect();
    assert_eq!(places, ["1", "2"]);
}

#[test]
fn what_was_typed_wrongly_is_said() {
    let folder = Folder::new();
    folder.write("network.yaml", "bus: { retain: soon }\n");
    let run = |args: &[&str]| toolcrib(folder.path(), args);
    let wrong = run(&["events", "publish", "a.b", "1"]);
    assert!(
        wrong.code == 2 && wrong.err.contains("bus: retain: it is a time such as 30d"),
        "{}",
        wrong.transcript()
    );
    folder.write("network.yaml", "bus: { url: 'amqp://x', retian: 1d }\n");
    assert!(run(&["events", "consumers"]).err.contains("bus: url"));
    folder.write("network.yaml", "bus: { retian: 1d }\n");
    assert!(run(&["check"]).out.contains("did you mean `retain`?"));
    for (args, said) in [
        (&["events", "publish", "a b", "1"][..], "must not hold"),
        (&["events", "publish", "a.b", "{"], "the data is not JSON"),
        (&["events", "tail", "--from", "yesterday"], "--from takes first, new or a sequence"),
    ] {
        let wrong = run(args);
        assert!(wrong.code == 2 && wrong.err.contains(said), "{}", wrong.transcript());
    }
}
