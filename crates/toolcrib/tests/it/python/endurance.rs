//! Workers are killed under load: every call has an answer, and nothing is left.

use std::{
    fs,
    process::Command,
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Duration,
};

use serde_json::json;

use super::{Caller, descendants, workspace};
use crate::{kit::soon, serving::Serving};

fn is_python(id: u32) -> bool {
    fs::read_to_string(format!("/proc/{id}/cmdline"))
        .is_ok_and(|it| it.contains("toolcrib._worker"))
}

fn descriptors(id: u32) -> usize {
    fs::read_dir(format!("/proc/{id}/fd")).map_or(0, Iterator::count)
}

#[test]
fn a_hundred_kills_leave_no_call_without_answer() {
    let folder = workspace(
        "import time, asyncio\n@tool\ndef plain(n: int) -> int:\n    time.sleep(0.005)\n    return n\n\
         @tool\nasync def later(n: int) -> int:\n    await asyncio.sleep(0.005)\n    return n\n",
    );
    let serving = Serving::start(folder.path());
    let gateway = serving.child.id();
    Caller::new(&serving).text("plain", &json!({ "n": 1 }));
    Caller::new(&serving).text("later", &json!({ "n": 1 }));
    let (over, answered, lost) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
    let mut before = 0;
    std::thread::scope(|scope| {
        for worker in 0..8 {
            let (serving, over, answered, lost) = (&serving, &over, &answered, &lost);
            scope.spawn(move || {
                let mut caller = Caller::new(serving);
                let tool = if worker % 2 == 0 { "plain" } else { "later" };
                let mut n = 0;
                while !over.load(Ordering::Relaxed) {
                    n += 1;
                    let result = caller.call(tool, &json!({ "n": n }));
                    if result["isError"] == true {
                        lost.fetch_add(1, Ordering::Relaxed);
                    } else {
                        assert_eq!(result["content"][0]["text"], n.to_string());
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let mut killed = 0;
        while killed < 100 {
            std::thread::sleep(Duration::from_millis(150));
            if killed == 20 && before == 0 {
                before = descriptors(gateway);
            }
            let workers: Vec<u32> =
                descendants(gateway).into_iter().filter(|&it| is_python(it)).collect();
            let Some(one) = workers.get(killed % workers.len().max(1)) else { continue };
            Command::new("kill").args(["-KILL", &one.to_string()]).status().unwrap();
            killed += 1;
        }
        over.store(true, Ordering::Relaxed);
    });
    let (answered, lost) = (answered.into_inner(), lost.into_inner());
    println!("{answered} answered, {lost} told that their process was gone");
    assert!(answered > 200, "{answered} answered, {lost} lost");
    assert_eq!(Caller::new(&serving).text("plain", &json!({ "n": 7 })), "7");
    // Two for plain functions and a spare, one for async ones; all others are gone, with their pipes.
    let pythons = || descendants(gateway).into_iter().filter(|&it| is_python(it)).count();
    soon("few processes", || pythons() <= 4);
    soon("few descriptors", || descriptors(gateway) <= before + 4);
}
