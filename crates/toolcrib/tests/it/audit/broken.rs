//! The record when somebody or something is against it: hands on its files, a kill, a full disk, no folder.

use super::*;
use crate::kit::not_run;

/// A record of some calls, and no gateway any more.
fn filled() -> (Folder, PathBuf) {
    let folder = workspace("audit: strict");
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    for n in 0..20 {
        client.call("mcp__s__echo", &json!({ "n": n }));
    }
    serving.signal("-TERM");
    soon("it has ended", || records(folder.path()).last().unwrap()["event"] == "stop");
    // The head record comes after the last line.
    soon("it is whole", || {
        let head = fs::read_to_string(folder.file(".toolcrib/audit/head.json")).unwrap();
        let head: Value = serde_json::from_str(&head).unwrap();
        head["seq"] == records(folder.path()).last().unwrap()["seq"]
    });
    let file = folder.file(".toolcrib/audit/audit-000001.jsonl");
    (folder, file)
}

/// H4.
#[test]
fn h04_a_record_that_was_touched_is_found_and_named() {
    let (folder, file) = filled();
    let good = fs::read(&file).unwrap();
    let found = verified(folder.path());
    assert_eq!((&found["good"], &found["first"]), (&json!(true), &json!(1)));
    let text = String::from_utf8(good.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let check = |bytes: &[u8], seq: u64| {
        fs::write(&file, bytes).unwrap();
        let run = toolcrib(folder.path(), &["audit", "verify"]);
        assert_eq!(run.code, 1, "{}", run.transcript());
        assert!(
            run.out.contains(&format!("broken at record {seq} (audit-000001.jsonl")),
            "{}",
            run.out
        );
    };
    let mut flipped = good.clone();
    let at = text.lines().take(9).map(|it| it.len() + 1).sum::<usize>() + 120;
    flipped[at] ^= 1;
    check(&flipped, 10);
    let without = [&lines[..11], &lines[12..]].concat().join("\n") + "\n";
    check(without.as_bytes(), 12);
    let cut = lines[..15].join("\n") + "\n";
    check(cut.as_bytes(), 16);
    check(&good[..good.len() - 10], lines.len() as u64);
    fs::write(&file, &good).unwrap();
    assert_eq!(verified(folder.path())["good"], true);
    // A start does not heal what was cut.
    fs::write(&file, &cut).unwrap();
    drop(Serving::start(folder.path()));
    assert_eq!(verified(folder.path())["broken"]["seq"], 16);
}

#[test]
fn a_gateway_that_is_killed_leaves_a_record_that_goes_on() {
    let folder = workspace(RULES);
    let mut answered = 0;
    for round in 0..20 {
        let serving = Serving::start(folder.path());
        let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
        for _ in 0..10 + round {
            client.call("mcp__s__echo", &json!({}));
            answered += 1;
        }
        serving.signal("-KILL");
        drop(serving);
        let found = verified(folder.path());
        assert_eq!(found["good"], true, "round {round}: {found}");
    }
    let found = calls(folder.path()).len();
    println!("{found} of {answered} calls on record after 20 kills");
    // What was answered in the last few milliseconds may be missing, and no more.
    assert!(answered - found <= 20 * 5, "{found} of {answered}");
}

#[test]
fn in_strict_a_kill_loses_nothing_that_was_answered() {
    let folder = workspace(&format!("{RULES}\naudit: strict"));
    let mut answered = 0;
    for _ in 0..5 {
        let serving = Serving::start(folder.path());
        let client = Client::new(&serving, Some("SECRET_TOKEN_A"));
        for _ in 0..20 {
            client.call("mcp__s__echo", &json!({}));
            answered += 1;
            assert_eq!(calls(folder.path()).len(), answered);
        }
        serving.signal("-KILL");
    }
    assert_eq!(verified(folder.path())["good"], true);
}

/// H5.
#[test]
fn h05_nothing_runs_that_cannot_be_recorded() {
    for mode in ["on", "strict"] {
        full_disk(mode);
    }
}

/// The workspace is on a small disk of its own, which fills up.
fn full_disk(mode: &str) {
    let folder = workspace(&format!("audit: {mode}"));
    let notes = folder.file("notes");
    let echo = entry(&Plan::legacy().tool("echo", Act::Echo).notes(&notes));
    folder.write("mcp.json", json!({ "mcpServers": { "s": echo } }).to_string());
    let disk = folder.file("disk");
    fs::create_dir(&disk).unwrap();
    let mount = format!("mount -t tmpfs -o size=4m tmpfs '{}'", disk.display());
    let may = Command::new("unshare").args(["-m", "sh", "-c", &mount]).status();
    if !may.is_ok_and(|it| it.success()) {
        not_run("a disk of one's own needs the right to mount one");
        return;
    }
    let program = env!("CARGO_BIN_EXE_toolcrib");
    let script = format!(
        "{mount} && cp mcp.json network.yaml disk/ && cd disk && exec '{program}' serve --listen 127.0.0.1:0"
    );
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", &script]).current_dir(folder.path()).stderr(Stdio::null());
    let serving = Serving::run(&mut command);
    let client = Client::new(&serving, None);
    let call = || client.call("mcp__s__echo", &json!({ "text": "x".repeat(300) }));
    assert_eq!(call()["result"]["isError"], false);
    let inside = PathBuf::from(format!("/proc/{}/root{}", serving.child.id(), disk.display()));
    let mut ballast = fs::File::create(inside.join("ballast")).unwrap();
    while ballast.write_all(&[0; 4096]).is_ok() {}
    let mut ran = 1;
    let refused = loop {
        let answer = call();
        let text = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        if answer["result"]["isError"] == true {
            break text;
        }
        ran += 1;
        assert!(ran < 1000, "the disk is never full");
    };
    assert!(refused.contains("the disk is full") || refused.contains("not on disk"), "{refused}");
    let before = crate::guarded::calls(&notes);
    for _ in 0..50 {
        let answer = call();
        assert_eq!(answer["result"]["_meta"]["toolcrib/code"], "audit_unavailable", "{answer}");
    }
    assert_eq!(crate::guarded::calls(&notes), before, "nothing ran");
    // Whoever watches sees it.
    let ready = serving.get("/readyz", &[]);
    assert_eq!(ready.status, 503, "{ready:?}");
    assert!(ready.body.contains("the audit record cannot be written"), "{ready:?}");
    let page = serving.get("/metrics", &[]).body;
    assert!(page.contains("\ntoolcrib_audit_writable 0\n"), "{page}");
    drop(ballast);
    fs::remove_file(inside.join("ballast")).unwrap();
    soon("it works again", || call()["result"]["isError"] == false);
    assert_eq!(serving.get("/readyz", &[]).status, 200);
    soon("all is written", || calls(&inside).len() == crate::guarded::calls(&notes));
    let all = records(&inside);
    let told = all.iter().find(|it| it["event"] == "refused").unwrap();
    assert!(50 <= told["times"].as_u64().unwrap(), "{told}");
    soon("it is whole", || toolcrib(&inside, &["audit", "verify"]).code == 0);
}

#[test]
fn without_a_folder_only_who_did_not_ask_for_a_record_is_served() {
    let folder = workspace("audit: on");
    // A file where the folder should be: also root cannot write into it.
    folder.write(".toolcrib", "");
    let run = toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(run.code, 2, "{}", run.transcript());
    assert!(run.err.contains("calls cannot be put on record"), "{}", run.err);
    folder.write("network.yaml", "");
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    assert_eq!(client.call("mcp__s__echo", &json!({}))["result"]["isError"], false);
}

#[test]
fn off_writes_nothing() {
    let folder = workspace("audit: off");
    let serving = Serving::start(folder.path());
    Client::new(&serving, None).call("mcp__s__echo", &json!({}));
    drop(serving);
    assert!(!folder.file(".toolcrib/audit").exists());
    let found = verified(folder.path());
    assert_eq!(found["notes"][0], "nothing has been recorded");
}

/// Files that are anything at all: whoever reads them says so, and neither falls nor hangs.
#[test]
fn fuzz_of_the_reader() {
    let (folder, file) = filled();
    let audit = folder.file(".toolcrib/audit");
    let (good, head) = (fs::read(&file).unwrap(), fs::read(audit.join("head.json")).unwrap());
    let seeds = [good[..good.len().min(2500)].to_vec(), head.clone()];
    let words = ["{\"seq\":1,\"prev\":\"", "call", "event", "gap", "\n", "0000", "seq", "first"];
    let whole = good.clone();
    crate::fuzz::fuzz("audit", &seeds, &words, |input| {
        let is_head = input.starts_with(b"{\"seq\":") && input.len() < 600;
        let (lines, top) = if is_head { (&whole[..], input) } else { (input, &head[..]) };
        fs::write(&file, lines).unwrap();
        fs::write(audit.join("head.json"), top).unwrap();
        let found = toolcrib::server::verify(&audit).unwrap();
        if lines != whole && !is_head {
            assert!(found.broken.is_some() || lines.starts_with(&whole), "{found:?}");
        }
        toolcrib::server::find_call(&audit, "0a").unwrap();
    });
}
