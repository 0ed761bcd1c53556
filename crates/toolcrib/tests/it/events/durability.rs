//! An event that was acknowledged is there, whatever happens to the process, the disk or the power.

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::json;
use toolcrib_testkit::{Act, Plan};

use super::workspace;
use crate::{
    kit::{Folder, entry, not_run, soon},
    python::Caller,
    serving::{Line, Serving},
};

/// The program that writes events and says of each when it is safe.
fn probe() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_toolcrib")).with_file_name("bus-probe");
    assert!(beside.is_file(), "bus-probe is not built: build the whole workspace");
    beside
}

fn script(name: &str, args: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/crash").join(name);
    let run = Command::new("python3").arg(script).arg(probe()).args(args).output().unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned();
    let wrong = String::from_utf8_lossy(&run.stderr);
    if run.status.code() == Some(77) {
        not_run(&format!("{name} needs strace, which cannot be used here\n{said}{wrong}"));
        return said;
    }
    assert!(run.status.success(), "{name} {args:?}\n{said}\n{wrong}");
    println!("{said}");
    said
}

fn rounds(few: usize, many: usize) -> usize {
    if std::env::var_os("TOOLCRIB_FULL").is_some() { many } else { few }
}

/// A hundred times, the gateway itself is killed while four clients call an event tool.
#[test]
fn killed_gateways_lose_nothing_that_was_acknowledged() {
    let folder = workspace();
    let mut known: HashMap<u64, String> = HashMap::new();
    let mut slowest = Duration::ZERO;
    for round in 0..rounds(100, 300) {
        let begin = Instant::now();
        let mut serving = Serving::start(folder.path());
        slowest = slowest.max(begin.elapsed());
        let session = serving.session(&[], "2025-11-25");
        let pause = Duration::from_millis(5 + (round as u64 * 37) % 60);
        let acked: Vec<(u64, String)> = std::thread::scope(|scope| {
            let callers: Vec<_> = (0..4)
                .map(|caller| {
                    let (serving, session) = (&serving, session.as_str());
                    scope.spawn(move || call_until_killed(serving, session, round * 10 + caller))
                })
                .collect();
            std::thread::sleep(pause);
            let id = serving.child.id().to_string();
            Command::new("kill").args(["-KILL", &id]).status().unwrap();
            callers.into_iter().flat_map(|it| it.join().unwrap()).collect()
        });
        serving.child.wait().unwrap();
        known.extend(acked);
    }
    let read = Command::new(probe()).arg("read").arg(folder.file(".toolcrib")).output().unwrap();
    let read = String::from_utf8(read.stdout).unwrap();
    let mut last = 0;
    let mut found = HashMap::new();
    for line in read.lines().filter_map(|it| it.strip_prefix("event ")) {
        let (seq, id) = line.split_once(' ').unwrap();
        let seq: u64 = seq.parse().unwrap();
        assert_eq!(seq, last + 1, "places count up by one");
        last = seq;
        found.insert(seq, id.to_owned());
    }
    let lost: Vec<_> = known.iter().filter(|(seq, id)| found.get(seq) != Some(id)).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(!read.contains("damaged"), "{read}");
    println!("{} acknowledged, {last} on disk, none lost; slowest start {slowest:?}", known.len());
    assert!(100 < known.len(), "too few to show anything: {}", known.len());
}

/// Calls until there is no answer. Returns what was acknowledged.
fn call_until_killed(serving: &Serving, session: &str, mark: usize) -> Vec<(u64, String)> {
    let mut acked = Vec::new();
    let calling = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let mut line = Line::open(serving);
        for n in 0.. {
            let arguments = json!({ "task_id": format!("{mark}-{n}"), "task_type": "convert", "instructions": "x" });
            let params = json!({ "name": "delegate_task", "arguments": arguments });
            let id = (mark * 100_000 + n) as u64;
            let body =
                json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
            let answer = line.post(session, &body.to_string());
            let result = answer.json()["result"]["structuredContent"].clone();
            acked.push((
                result["sequence"].as_u64().unwrap(),
                result["id"].as_str().unwrap().to_owned(),
            ));
        }
    }));
    assert!(calling.is_err(), "only its death ends it");
    acked
}

/// The same for the store alone, killed at any moment, with many callers and large events.
#[test]
fn killed_writers_leave_whole_events() {
    let folder = Folder::new();
    let store = folder.path().to_str().unwrap();
    let mut known: HashMap<String, String> = HashMap::new();
    let mut slowest = 0;
    for round in 0..rounds(100, 1000) {
        let mut child = Command::new(probe())
            .args([
                "append",
                store,
                "1000000",
                "--callers",
                "16",
                "--size",
                "2000",
                "--checkpoint",
                "50",
            ])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut first = String::new();
        out.read_line(&mut first).unwrap();
        std::thread::sleep(Duration::from_millis((round as u64 * 13) % 50));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        let whole = rest.rfind('\n').map_or("", |end| &rest[..=end]);
        for line in first.lines().chain(whole.lines()) {
            let mut words = line.strip_prefix("acked ").unwrap().split(' ');
            known.insert(words.next().unwrap().to_owned(), words.next().unwrap().to_owned());
        }
        if round % 10 == 0 {
            slowest = slowest.max(read_back(store, &known));
        }
    }
    slowest = slowest.max(read_back(store, &known));
    println!("{} acknowledged, none lost; slowest recovery {slowest} ms", known.len());
    assert!(slowest < 1000, "recovery took {slowest} ms");
}

/// Everything that was acknowledged is there. Returns how long opening took, in milliseconds.
fn read_back(store: &str, known: &HashMap<String, String>) -> u64 {
    let read = Command::new(probe()).args(["read", store]).output().unwrap();
    assert!(read.status.success(), "{}", String::from_utf8_lossy(&read.stdout));
    let read = String::from_utf8(read.stdout).unwrap();
    let found: HashMap<&str, &str> =
        read.lines().filter_map(|it| it.strip_prefix("event ")?.split_once(' ')).collect();
    let lost = known.iter().filter(|(seq, id)| found.get(seq.as_str()) != Some(&id.as_str()));
    assert_eq!(lost.count(), 0);
    let time = read.lines().last().unwrap();
    time.split(' ').nth(2).unwrap().parse().unwrap()
}

/// What a power cut leaves: everything that was not synced may be there, torn, out of order, or not at all.
#[test]
fn a_power_cut_loses_nothing_that_was_acknowledged() {
    let images = rounds(450, 5000).to_string();
    script("replay.py", &["--images", &images, "--seed", "1"]);
    // What the test is worth: without the sync, and with an answer before it, it must fail.
    script(
        "replay.py",
        &["--images", "60", "--seed", "2", "--expect-loss", "--", "--synchronous", "normal"],
    );
    script("replay.py", &["--images", "60", "--seed", "3", "--expect-loss", "--", "--early"]);
}

#[test]
fn a_disk_that_fails_or_fills_up_loses_nothing_that_was_acknowledged() {
    script("faults.py", &[]);
}

/// One bit at a time is turned in a store: nothing comes out that never went in, and `verify` sees it.
#[test]
fn a_bit_that_turned_is_never_served() {
    let folder = Folder::new();
    let store = folder.path().to_str().unwrap();
    let run = |args: &[&str]| {
        let run = Command::new(probe()).args(args).output().unwrap();
        let said = String::from_utf8_lossy(&run.stdout).into_owned();
        assert!(run.status.success(), "{args:?}: {said}");
        said
    };
    run(&["append", store, "300", "--callers", "8"]);
    let said = run(&["flips", store, &rounds(400, 5000).to_string(), "11"]);
    println!("{said}");
    let hurt: usize = said.split(' ').nth(3).unwrap().parse().unwrap();
    assert!(100 < hurt, "{said}");
}

/// The workspace is on a small disk of its own, which fills up: events fail and say why, everything else goes on,
/// and when there is room again they work without anybody's doing.
#[test]
fn a_full_disk_fails_the_event_and_nothing_else() {
    let folder = workspace();
    let echo = entry(&Plan::legacy().tool("echo", Act::Echo));
    folder.write("mcp.json", json!({ "mcpServers": { "s": echo } }).to_string());
    // What cannot be recorded would not run.
    folder.write("network.yaml", "audit: off");
    let disk = folder.file("disk");
    std::fs::create_dir(&disk).unwrap();
    let mount = format!("mount -t tmpfs -o size=8m tmpfs '{}'", disk.display());
    let may = Command::new("unshare").args(["-m", "sh", "-c", &mount]).status();
    if !may.is_ok_and(|it| it.success()) {
        not_run("a disk of one's own needs the right to mount one");
        return;
    }
    let program = env!("CARGO_BIN_EXE_toolcrib");
    let script = format!(
        "{mount} && cp -r events mcp.json network.yaml disk/ && cd disk && exec '{program}' serve --listen 127.0.0.1:0"
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(folder.path()).stderr(Stdio::null());
    let serving = Serving::run(&mut command);
    let mut caller = Caller::new(&serving);
    let arguments =
        json!({ "task_id": "t", "task_type": "analyze", "instructions": "x".repeat(50_000) });
    assert!(caller.text("delegate_task", &arguments).starts_with("Event emitted"));
    let inside =
        PathBuf::from(format!("/proc/{}/root{}/ballast", serving.child.id(), disk.display()));
    let mut ballast = std::fs::File::create(&inside).unwrap();
    while std::io::Write::write_all(&mut ballast, &[0; 4096]).is_ok() {}
    let mut acked = 1;
    let refused = loop {
        let result = caller.call("delegate_task", &arguments);
        if result["isError"] == true {
            break result["content"][0]["text"].as_str().unwrap().to_owned();
        }
        acked += 1;
        assert!(acked < 1000, "the disk is never full");
    };
    assert_eq!(refused, "The event was not emitted: the disk is full");
    assert!(caller.text("mcp__s__echo", &json!({ "still": "here" })).contains("here"));
    drop(ballast);
    std::fs::remove_file(inside).unwrap();
    let caller = std::cell::RefCell::new(caller);
    soon("it works again", || {
        caller.borrow_mut().call("delegate_task", &arguments)["isError"] == false
    });
    let page = serving.get("/events?max=100", &[("Accept", "application/json")]).json();
    assert!(acked < page["events"].as_array().unwrap().len() || 100 <= acked, "{acked}");
}
