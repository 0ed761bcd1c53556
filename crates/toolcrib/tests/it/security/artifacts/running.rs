//! G2 and G5 once more: links that are put there, and a clock that jumps, while the gateway runs.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command, time::Instant};

use serde_json::json;

use super::{KEEPING, below, keep, move_times, opened, store, traced, workspace};
use crate::{
    kit::{Folder, toolcrib},
    python::Caller,
    serving::Serving,
};

/// What the trace says of opening this file, with what came of it.
fn tries(trace: &Path, name: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(&fs::read(trace).unwrap()).into_owned();
    text.lines().filter(|it| it.contains(name)).map(str::to_owned).collect()
}

/// The same while the gateway runs, which has seen the store as it was.
#[test]
fn g02_links_that_are_put_there_while_it_runs_lead_nowhere() {
    let (folder, outside) = (workspace(KEEPING), Folder::new());
    let text = format!("SECRET_{}", "o".repeat(100_000 - 7));
    let secret = outside.write("secret", &text);
    let running = traced(&folder, "G2");
    let is_traced = running.is_some();
    let (serving, trace) =
        running.unwrap_or_else(|| (Serving::start(folder.path()), folder.write("trace", "")));
    let mut caller = Caller::new(&serving);
    let [by_link, by_name, to_pipe, to_folder, good] = [(); 5].map(|()| keep(&mut caller));
    let place = |id: &str| store(&folder).join(format!("{id}.data"));
    for id in [&by_link, &by_name, &to_pipe, &to_folder] {
        assert_eq!(caller.text("read_artifact", &json!({ "id": id, "head": 3 })), "xxx");
        fs::remove_file(place(id)).unwrap();
    }
    let from = fs::read(&trace).unwrap().len();
    symlink(&secret, place(&by_link)).unwrap();
    fs::hard_link(&secret, place(&by_name)).unwrap();
    assert!(Command::new("mkfifo").arg(place(&to_pipe)).status().unwrap().success());
    symlink(outside.path(), place(&to_folder)).unwrap();
    for id in [&by_link, &by_name, &to_pipe, &to_folder] {
        let said = caller.error("read_artifact", &json!({ "id": id, "head": 100 }));
        assert!(!said.contains("SECRET") && !said.contains("oooo"), "{said}");
        let uri = format!("toolcrib://artifact/{id}");
        let answer = caller.ask("resources/read", &json!({ "uri": uri }));
        assert!(answer["error"]["code"].is_i64(), "{answer}");
        let run = toolcrib(folder.path(), &["artifact", "read", id, "--head", "100"]);
        assert!(run.code != 0 && !run.out.contains("SECRET"), "{}", run.transcript());
    }
    if is_traced {
        assert!(!opened(&trace, from).iter().any(|it| it.contains("/secret")));
        let tries = tries(&trace, &format!("{by_link}.data"));
        assert!(tries.iter().any(|it| it.contains("ELOOP")), "{tries:?}");
    }
    // What comes and goes beside them goes on, and what a link leads to is left alone.
    assert_eq!(caller.text("read_artifact", &json!({ "id": good, "head": 3 })), "xxx");
    let next = keep(&mut caller);
    assert_eq!(caller.text("read_artifact", &json!({ "id": next, "head": 3 })), "xxx");
    drop(serving);
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    assert_eq!(caller.text("read_artifact", &json!({ "id": good, "head": 3 })), "xxx");
    assert_eq!(fs::read_to_string(&secret).unwrap(), text);
}

/// For the gateway it is the same whether its clock is ten years ahead or what it kept was made ten years ago.
#[test]
fn g05_a_clock_that_jumps_takes_no_more_than_a_hundred_at_a_time() {
    const YEARS: i64 = 10 * 365 * 24 * 3600 * 1000;
    let folder = workspace(KEEPING);
    let count = 260;
    let kept: Vec<String> = {
        let serving = Serving::start(folder.path());
        let mut caller = Caller::new(&serving);
        (0..count).map(|_| keep(&mut caller)).collect()
    };
    let on_disk = || {
        let all = below(&store(&folder));
        all.iter().filter(|it| it.extension().is_some_and(|it| it == "data")).count()
    };
    let is_there = |id: &&String| store(&folder).join(format!("{id}.data")).exists();
    kept.iter().for_each(|id| move_times(&folder, id, &["created", "expires"], -YEARS));
    {
        let (serving, begin) = (Serving::start(folder.path()), Instant::now());
        let mut caller = Caller::new(&serving);
        // The next sweep is a minute later.
        let sweeps = || 1 + begin.elapsed().as_secs() as usize / 55;
        assert!(on_disk() < count && count - 100 * sweeps() <= on_disk(), "{}", on_disk());
        // All have expired, whether they are still on the disk or not; and storing sweeps no more of them.
        for id in &kept {
            let uri = format!("toolcrib://artifact/{id}");
            let answer = caller.ask("resources/read", &json!({ "uri": uri }));
            assert_eq!(answer["error"]["code"], -32002, "{answer}");
        }
        for _ in 0..3 {
            keep(&mut caller);
        }
        assert!(count + 3 - 100 * sweeps() <= on_disk(), "{}", on_disk());
    }
    // The clock is put right.
    let left: Vec<&String> = kept.iter().filter(is_there).collect();
    left.iter().for_each(|id| move_times(&folder, id, &["created", "expires"], YEARS));
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    for id in &left {
        assert_eq!(caller.text("read_artifact", &json!({ "id": id, "head": 3 })), "xxx");
    }
    assert_eq!(left.len() + 3, on_disk());
}
