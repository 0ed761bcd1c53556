//! `audit: strict` as the kernel sees it: the record is on disk before the answer is on the wire.
//!
//! A kill cannot show that, since what was written and not synced outlives it; the order of the system calls does.

use std::collections::HashSet;

use super::*;
use crate::kit::not_run;

const CALLS: usize = 10;

/// What the gateway did while calls were made one after the other, as lines of strace; nothing where it cannot be used.
fn traced(mode: &str) -> Option<String> {
    let folder = workspace(&format!("audit: {{ mode: {mode}, arguments: on }}"));
    let trace = folder.file("trace");
    let strace = || {
        let mut command = Command::new("strace");
        // The gateway stays our own child, so that it ends with us.
        command.args(["-D", "-f", "-qq", "-y", "-s", "65536", "-e"]);
        command.args(["trace=write,writev,pwrite64,sendto,sendmsg,fsync,fdatasync", "-o"]);
        command.arg(&trace);
        command
    };
    if !strace().arg("true").status().is_ok_and(|it| it.success()) {
        not_run("the order of record and answer, which needs strace");
        return None;
    }
    let mut command = strace();
    command.arg(env!("CARGO_BIN_EXE_toolcrib")).args(["serve", "--listen", "127.0.0.1:0"]);
    let serving = Serving::run(command.current_dir(folder.path()).stderr(Stdio::null()));
    let client = Client::new(&serving, None);
    for n in 0..CALLS {
        client.text("mcp__s__echo", &json!({ "mark": format!("MARK-{n}-") }));
    }
    let last = format!("MARK-{}-", CALLS - 1);
    let text = || String::from_utf8_lossy(&fs::read(&trace).unwrap()).into_owned();
    soon("the trace is whole", || {
        text().lines().any(|it| it.contains("<socket:") && it.contains(&last))
    });
    Some(text())
}

/// How many answers went out after their record was written and synced.
fn in_order(trace: &str) -> usize {
    let (mut written, mut synced) = (HashSet::new(), HashSet::new());
    // By thread: a sync that strace reports in two lines, and what it covers.
    let mut begun: BTreeMap<&str, HashSet<usize>> = BTreeMap::new();
    let mut good = 0;
    for line in trace.lines() {
        let thread = line.split(' ').next().unwrap();
        let of_record = line.contains("/audit-000001.jsonl>");
        let is_sync = line.contains("sync(") || line.contains("sync resumed>");
        if is_sync && line.ends_with("= 0") {
            let covered = match line.contains("resumed>") {
                true => begun.remove(thread),
                false => of_record.then(|| written.clone()),
            };
            synced.extend(covered.unwrap_or_default());
        } else if is_sync && of_record {
            begun.insert(thread, written.clone());
        }
        let marks = (0..CALLS).filter(|n| !is_sync && line.contains(&format!("MARK-{n}-")));
        for n in marks {
            if of_record {
                written.insert(n);
            } else if line.contains("<socket:") {
                good += usize::from(synced.contains(&n));
            }
        }
    }
    good
}

#[test]
fn in_strict_the_record_is_on_disk_before_the_answer_is_on_the_wire() {
    let Some(strict) = traced("strict") else { return };
    assert_eq!(in_order(&strict), CALLS, "{strict}");
    // Else the test could not tell.
    let Some(on) = traced("on") else { return };
    assert!(in_order(&on) < CALLS, "{on}");
}
