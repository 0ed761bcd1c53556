//! G1, G2 and G4 to G8, and what B9 says of artifacts: results that are kept on disk. B13 is in `context`.

mod running;

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::TcpStream,
    os::unix::fs::{PermissionsExt, symlink},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib_context::artifacts::ArtifactId;
use toolcrib_testkit::{Act, Plan};

use super::{evil::on_stdio, is_full, tokens::check_ids};
use crate::{
    kit::{Folder, entry, not_run, soon, toolcrib},
    python::Caller,
    serving::Serving,
};

const KEEPING: &str = "results: { inline_up_to: 1KB }\n";

fn workspace(network: &str) -> Folder {
    let folder = Folder::new();
    let plan = Plan::legacy().tool("big", Act::Big(100_000)).tool("huge", Act::Big(2_000_000));
    let servers = json!({ "s": entry(&plan), "evil": on_stdio(&folder, json!({})) });
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    folder.write("network.yaml", network);
    folder
}

fn store(folder: &Folder) -> PathBuf {
    folder.file(".toolcrib/artifacts")
}

/// Keeps a result, and says under which id.
fn keep(caller: &mut Caller) -> String {
    let result = caller.call("mcp__s__big", &json!({}));
    let parts = result["content"].as_array().unwrap();
    let link = parts.iter().find(|it| it["type"] == "resource_link");
    let uri = link.unwrap_or_else(|| panic!("{result}"))["uri"].as_str().unwrap();
    uri.strip_prefix("toolcrib://artifact/").unwrap().to_owned()
}

/// Everything below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        if entry.file_type().unwrap().is_dir() {
            found.extend(below(&entry.path()));
        }
        found.push(entry.path());
    }
    found
}

/// A gateway whose opening of files is written down; nothing where that is not possible here.
fn traced(folder: &Folder, row: &str) -> Option<(Serving, PathBuf)> {
    let trace = folder.file("trace");
    let strace = || {
        let mut command = Command::new("strace");
        // The gateway stays our own child, so that it ends with us.
        command.args(["-D", "-f", "-qq", "-s", "300", "-e", "trace=open,openat,openat2", "-o"]);
        command.arg(&trace);
        command
    };
    if !strace().arg("true").status().is_ok_and(|it| it.success()) {
        not_run(&format!("the part of {row} that needs strace"));
        return None;
    }
    let mut command = strace();
    command.arg(env!("CARGO_BIN_EXE_toolcrib")).args(["serve", "--listen", "127.0.0.1:0"]);
    let serving = Serving::run(command.current_dir(folder.path()).stderr(Stdio::null()));
    Some((serving, trace))
}

/// The paths that were opened, or tried, since `from` bytes of the trace.
fn opened(trace: &Path, from: usize) -> Vec<String> {
    let text = fs::read(trace).unwrap();
    let text = String::from_utf8_lossy(&text[from..]).into_owned();
    // `openat(AT_FDCWD, "path", …`
    text.lines().filter_map(|it| it.split('"').nth(1)).map(str::to_owned).collect()
}

fn odd_ids() -> Vec<String> {
    let mut ids: Vec<String> = [
        "../x",
        "..%2fx",
        "..%2Fx.data",
        "%2e%2e/x",
        "%252e%252e%252fx",
        "..\\x",
        "/etc/passwd",
        "//etc/passwd",
        "file:///etc/passwd",
        "./x",
        "x\u{0}",
        "\u{0}",
        "",
        " ",
        ".",
        "..",
        "../../../../../etc/passwd/",
        "..%2f..%2f..%2f..%2fetc/aa",
        "\u{2025}/x",
        "\u{ff0e}\u{ff0e}/x",
        "\u{ff0e}\u{ff0e}\u{ff0f}x",
        "aaaaaaaaaaaaaaaaaaaaaaaaa.",
        "AAAAAAAAAAAAAAAAAAAAAAAAAA",
        "*",
    ]
    .map(str::to_owned)
    .into();
    ids.push("a".repeat(4096));
    ids.push("../".repeat(1365));
    ids
}

/// An id as it stands in an address, byte by byte.
fn encoded(id: &str) -> String {
    id.bytes().map(|it| format!("%{it:02X}")).collect()
}

/// An id as it is, but for what cannot stand in an address.
fn plain(id: &str) -> String {
    let legal = |c: &char| c.is_ascii_graphic() && !matches!(c, '#' | '\\' | '&');
    id.chars().filter(legal).collect()
}

/// `/api/artifact` is one of the ways.
#[test]
fn g01_an_id_is_no_path() {
    let folder = workspace(KEEPING);
    folder.write(".toolcrib/x.data", "SECRET_BESIDE");
    folder.write(".toolcrib/x.json", "{}");
    let running = traced(&folder, "G1");
    let is_traced = running.is_some();
    let (serving, trace) =
        running.unwrap_or_else(|| (Serving::start(folder.path()), folder.write("trace", "")));
    let mut caller = Caller::new(&serving);
    let good = keep(&mut caller);
    let from = fs::read(&trace).unwrap().len();
    for id in odd_ids() {
        for id in [id.clone(), format!("toolcrib://artifact/{id}"), format!("{good}/{id}")] {
            let said = caller.error("read_artifact", &json!({ "id": id }));
            assert!(said.len() < 500 && !said.contains("SECRET"), "{id:?}: {said}");
            let uri = if id.contains("://") { id } else { format!("toolcrib://artifact/{id}") };
            let answer = caller.ask("resources/read", &json!({ "uri": uri }));
            assert!(answer["error"]["code"].is_i64(), "{uri:?}: {answer}");
        }
        for path in [encoded(&id), encoded(&format!("{good}/{id}")), plain(&id)] {
            let answer = serving.get(&format!("/api/artifact?id={path}"), &[]);
            let right = match path.len() {
                0 => matches!(answer.status, 400 | 404),
                // Too long for an address.
                4096.. => matches!(answer.status, 404 | 414 | 431),
                _ => answer.status == 404,
            };
            assert!(right, "{path}: {answer:?}");
            assert!(!answer.body.contains("SECRET"), "{path}: {answer:?}");
        }
        if !id.contains('\u{0}') && !id.is_empty() {
            let run = toolcrib(folder.path(), &["artifact", "read", "--", &id]);
            assert_ne!(run.code, 0, "{}", run.transcript());
            assert!(!run.out.contains("SECRET"), "{}", run.transcript());
        }
    }
    assert_eq!(caller.text("read_artifact", &json!({ "id": good, "head": 3 })), "xxx");
    assert_eq!(serving.get(&format!("/api/artifact?id={good}"), &[]).status, 200);
    if is_traced {
        let opened = opened(&trace, from);
        let own = format!("{good}.data");
        assert!(opened.iter().any(|it| it.contains(&own)), "the trace shows something");
        for it in opened {
            let bad = ["passwd", "/etc", "..", "x.data", "x.json", "AAAA", "aaaaaaaa"];
            assert!(it.contains(&own) || !bad.iter().any(|bad| it.contains(bad)), "{it}");
        }
    }
}

/// Puts the description of an artifact beside what is to be taken for its content.
fn plant(store: &Path, like: &str) -> (String, PathBuf) {
    let id = ArtifactId::random().unwrap().to_string();
    let known = fs::read_to_string(store.join(format!("{like}.json"))).unwrap();
    fs::write(store.join(format!("{id}.json")), known.replace(like, &id)).unwrap();
    (id.clone(), store.join(format!("{id}.data")))
}

/// Everything here is done by somebody who can write into the folder.
#[test]
fn g02_links_in_the_store_lead_nowhere() {
    let (folder, outside) = (workspace(KEEPING), Folder::new());
    // As large as what it is put in the place of.
    let secret = outside.write("secret", format!("SECRET_{}", "o".repeat(100_000 - 7)));
    let serving = Serving::start(folder.path());
    let (first, later) = {
        let mut caller = Caller::new(&serving);
        (keep(&mut caller), keep(&mut caller))
    };
    drop(serving);
    let store = store(&folder);
    let (by_link, place) = plant(&store, &first);
    symlink(&secret, place).unwrap();
    let (relative, place) = plant(&store, &first);
    symlink(format!("../../../{}/secret", outside.path().file_name().unwrap().display()), place)
        .unwrap();
    let described = ArtifactId::random().unwrap().to_string();
    symlink(&secret, store.join(format!("{described}.json"))).unwrap();
    let sibling =
        folder.write(&format!(".toolcrib/artifacts_evil/{described}.data"), "SECRET_SIBLING");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let up = format!("../artifacts_evil/{described}");
    for id in [&by_link, &relative, &described, &up] {
        let said = caller.error("read_artifact", &json!({ "id": id, "head": 100 }));
        assert!(!said.contains("SECRET"), "{said}");
        let run = toolcrib(folder.path(), &["artifact", "read", id, "--head", "100"]);
        assert!(run.code != 0 && !run.out.contains("SECRET"), "{}", run.transcript());
    }
    assert!(secret.exists() && sibling.exists(), "what a link led to is left alone");
    assert_eq!(caller.text("read_artifact", &json!({ "id": later, "head": 3 })), "xxx");
}

#[test]
fn g04_nobody_keeps_more_than_there_is_room_for() {
    let groups = |it: &str| format!("    {it}: {{ auth_token: token-{it} }}\n");
    let groups: String = ["a", "b", "c", "d", "e"].map(groups).concat();
    let network = format!(
        "results: {{ inline_up_to: 1KB, quota: 3MB, group_quota: 1MB }}\nexternal_access:\n  groups:\n{groups}"
    );
    let folder = workspace(&network);
    let serving = Serving::start(folder.path());
    let used = |group: &str| -> u64 {
        let listed = toolcrib(folder.path(), &["artifact", "list", "--json", "--group", group]);
        listed.json().as_array().unwrap().iter().map(|it| it["size_bytes"].as_u64().unwrap()).sum()
    };
    let on_disk =
        || -> u64 { below(&store(&folder)).iter().map(|it| fs::metadata(it).unwrap().len()).sum() };
    // One object, and what is known of each.
    let (mib, one) = (1024 * 1024, 140_000);
    let mut first = Caller::with(&serving, "token-a");
    let kept: Vec<String> = (0..15).map(|_| keep(&mut first)).collect();
    assert!((mib / 2..=mib + one).contains(&used("a")), "{}", used("a"));
    let gone = first.error("read_artifact", &json!({ "id": kept[0] }));
    assert!(gone.contains("no such artifact"), "the oldest went: {gone}");
    let last = json!({ "id": kept[14], "head": 3 });
    assert_eq!(first.text("read_artifact", &last), "xxx");
    for group in ["b", "c", "d", "e"] {
        let mut caller = Caller::with(&serving, &format!("token-{group}"));
        for _ in 0..15 {
            // Where there is no room it goes on whole: a call never fails for that.
            let result = caller.call("mcp__s__big", &json!({}));
            assert_eq!(result["isError"], false);
        }
        assert!(used(group) <= mib + one && on_disk() <= 3 * mib + one, "{group}: {}", on_disk());
    }
    // Nobody was pushed out by another.
    assert_eq!(first.text("read_artifact", &last), "xxx");
    assert!(2 * mib < on_disk(), "{}", on_disk());
}

/// Changes what is known of an artifact while no gateway runs: its times are moved by so many milliseconds.
fn move_times(folder: &Folder, id: &str, keys: &[&str], by: i64) {
    let file = store(folder).join(format!("{id}.json"));
    let mut known: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    for key in keys {
        known[*key] = json!(known[*key].as_i64().unwrap() + by);
    }
    fs::write(&file, known.to_string()).unwrap();
}

#[test]
fn g05_what_has_expired_is_gone_and_stays_gone() {
    const DAY: i64 = 24 * 3600 * 1000;
    let folder = workspace(KEEPING);
    let kept = {
        let serving = Serving::start(folder.path());
        let mut caller = Caller::new(&serving);
        [(); 3].map(|()| keep(&mut caller))
    };
    let [soon_gone, gone, ahead] = &kept;
    // It is kept for a week; all but some seconds of that have passed, for the second all of it. The third
    // was made by a clock that was ten years ahead: no reason to delete it.
    move_times(&folder, soon_gone, &["created", "expires"], -7 * DAY + 8_000);
    move_times(&folder, gone, &["created", "expires"], -8 * DAY);
    move_times(&folder, ahead, &["created", "expires"], 3650 * DAY);
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let look = |id: &str| json!({ "id": id, "head": 3 });
    assert_eq!(caller.text("read_artifact", &look(soon_gone)), "xxx");
    assert_eq!(caller.text("read_artifact", &look(ahead)), "xxx");
    assert!(caller.error("read_artifact", &look(gone)).contains("expired"));
    let file = |id: &str| store(&folder).join(format!("{id}.data"));
    assert!(!file(gone).exists(), "it was swept away");
    soon("it expires", || caller.call("read_artifact", &look(soon_gone))["isError"] == true);
    let uri = format!("toolcrib://artifact/{soon_gone}");
    let answer = caller.ask("resources/read", &json!({ "uri": uri }));
    assert_eq!(answer["error"]["code"], -32002, "{answer}");
    drop(serving);
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    assert!(caller.error("read_artifact", &look(soon_gone)).contains("expired"));
    assert!(!file(soon_gone).exists() && file(ahead).exists());
}

#[test]
fn g06_a_link_in_a_result_is_never_opened() {
    let folder = workspace(KEEPING);
    let secret = folder.write("secret.txt", "SECRET_FILE");
    let uris = json!([
        "file:///etc/passwd",
        format!("file://{}", secret.display()),
        "secret.txt",
        "toolcrib://artifact/../../secret.txt",
    ]);
    let running = traced(&folder, "G6");
    let is_traced = running.is_some();
    let (serving, trace) =
        running.unwrap_or_else(|| (Serving::start(folder.path()), folder.write("trace", "")));
    let mut caller = Caller::new(&serving);
    let from = fs::read(&trace).unwrap().len();
    let result = caller.call("mcp__evil__link", &json!({ "uris": uris }));
    let passed: Vec<&Value> = result["content"].as_array().unwrap().iter().collect();
    assert_eq!(passed.len(), 5, "{result}");
    for (part, uri) in passed.iter().zip(uris.as_array().unwrap()) {
        assert_eq!((&part["type"], &part["uri"]), (&json!("resource_link"), uri), "{result}");
    }
    for uri in uris.as_array().unwrap() {
        let answer = caller.ask("resources/read", &json!({ "uri": uri }));
        assert!(answer["error"]["code"].is_i64() && !answer.to_string().contains("SECRET"));
        assert!(!answer.to_string().contains("root:"), "{answer}");
    }
    if is_traced {
        for it in opened(&trace, from) {
            assert!(!it.contains("passwd") && !it.contains("secret.txt"), "{it}");
        }
    }
}

/// Calls and calls, until the gateway is gone.
fn call_until_it_ends(serving: &Serving) {
    let session = serving.session(&[], "2025-11-25");
    let body = super::call(1, "mcp__s__huge").to_string();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nMcp-Session-Id: {session}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        serving.address,
        body.len()
    );
    let mut socket = TcpStream::connect(&serving.address).unwrap();
    let mut buffer = [0; 65536];
    while socket.write_all(format!("{head}{body}").as_bytes()).is_ok()
        && socket.read(&mut buffer).is_ok_and(|read| 0 < read)
    {}
}

/// Fifty rounds in the full run.
#[test]
fn g07_a_kill_in_the_middle_of_writing_leaves_whole_artifacts() {
    let rounds = if is_full() { 50 } else { 6 };
    let folder = workspace(KEEPING);
    let mut known = Vec::new();
    for round in 0..rounds {
        let serving = Serving::start(folder.path());
        let parts = |it: &PathBuf| it.to_string_lossy().ends_with(".part");
        assert!(!below(&store(&folder)).iter().any(parts), "what was half written is swept");
        let id = serving.child.id().to_string();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                let serving = &serving;
                scope.spawn(move || {
                    call_until_it_ends(serving);
                });
            }
            std::thread::sleep(Duration::from_millis(500 + 41 * (round % 11)));
            Command::new("kill").args(["-KILL", &id]).status().unwrap();
        });
        drop(serving);
        let listed = toolcrib(folder.path(), &["artifact", "list", "--json"]).json();
        for it in listed.as_array().unwrap() {
            let id = it["id"].as_str().unwrap();
            let summed =
                Command::new("sha256sum").arg(store(&folder).join(format!("{id}.data"))).output();
            let summed = String::from_utf8(summed.unwrap().stdout).unwrap();
            assert_eq!(summed.split(' ').next(), it["content_hash"].as_str(), "{it}");
        }
        known.push(listed.as_array().unwrap().len());
    }
    println!("artifacts after each round: {known:?}");
    assert!(known.is_sorted() && 0 < known[known.len() - 1], "{known:?}");
}

#[test]
fn g08_what_is_kept_is_for_its_owner_alone() {
    let folder = workspace(&format!("{KEEPING}sessions: on\n"));
    folder.write(
        "tools/t.py",
        "from toolcrib import tool\n\n@tool\ndef t() -> str:\n    \"\"\"T.\"\"\"\n    return 't'\n",
    );
    folder.write("events/tasks.yaml", crate::events::TASKS);
    // As careless as a shell can be.
    let program = env!("CARGO_BIN_EXE_toolcrib");
    let mut command = Command::new("sh");
    command.args(["-c", &format!("umask 000; exec {program} serve --listen 127.0.0.1:0")]);
    let serving = Serving::run(
        command.current_dir(folder.path()).stderr(File::create(folder.file("log")).unwrap()),
    );
    let mut caller = Caller::new(&serving);
    keep(&mut caller);
    caller.text("t", &json!({}));
    let task = json!({ "task_id": "1", "task_type": "download", "instructions": "go" });
    caller.text("delegate_task", &task);
    let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder.file(".toolcrib")), 0o700);
    assert_eq!(mode(&store(&folder)), 0o700);
    let kept = below(&store(&folder));
    assert_eq!(kept.len(), 2, "{kept:?}");
    for path in kept {
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn b09_artifact_ids_are_128_bits_of_chance() {
    let folder = workspace(KEEPING);
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let minted: Vec<String> = (0..100).map(|_| keep(&mut caller)).collect();
    check_ids(&minted.iter().map(|it| hex(it)).collect::<Vec<_>>(), 0.3);
    // Ten thousand from where those come from: each that is kept is synced to the disk.
    let many = (0..10_000).map(|_| hex(ArtifactId::random().unwrap().as_str()));
    check_ids(&many.collect::<Vec<_>>(), 0.05);
}

/// An id as a number: five bits for each of 25 digits, and three for the last.
fn hex(id: &str) -> String {
    let digits =
        id.bytes().map(|it| u128::from(if it < b'a' { it - b'2' + 26 } else { it - b'a' }));
    let digits: Vec<u128> = digits.collect();
    let (last, first) = digits.split_last().unwrap();
    assert!(first.len() == 25 && *last < 8, "{id}");
    let number = first.iter().fold(0_u128, |number, it| number << 5 | it) << 3 | last;
    format!("{number:032x}")
}
