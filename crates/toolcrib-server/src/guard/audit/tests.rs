//! Records written, damaged and read.

use std::time::SystemTime;

use serde_json::Value;

use super::{
    chain::{Head, segments},
    *,
};
use crate::guard::ids::CallIds;

struct Scene(PathBuf);

impl Scene {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("toolcrib-audit-{name}-{}", std::process::id()));
        fs::remove_dir_all(&path).ok();
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn folder(&self) -> PathBuf {
        self.0.join("audit")
    }

    fn open_with(&self, mode: AuditMode, largest: u64, retain: Duration) -> Audit {
        let settings = AuditSettings { mode, retain, ..AuditSettings::default() };
        let keeping = Keeping { strict: mode == AuditMode::Strict, retain, largest, most: LARGEST };
        let masker = Masker::new(["hunter22".to_owned()]);
        Audit::start(&self.folder(), &self.0.join("audit.key"), settings, keeping, masker).unwrap()
    }

    fn open(&self) -> Audit {
        self.open_with(AuditMode::On, LARGEST, Duration::from_secs(86_400))
    }

    /// A log of so many calls, between `start` and `stop`.
    fn filled(name: &str, calls: usize) -> Self {
        let scene = Self::new(name);
        let audit = scene.open();
        (0..calls).for_each(|it| call(&audit, &format!("tool_{it}")));
        audit.close();
        scene
    }

    fn file(&self, number: u64) -> PathBuf {
        self.folder().join(chain::segment_name(number))
    }

    fn text(&self) -> String {
        let found = segments(&self.folder()).unwrap();
        found.iter().map(|(_, path)| fs::read_to_string(path).unwrap()).collect()
    }

    fn records(&self) -> Vec<Value> {
        self.text().lines().map(|it| serde_json::from_str(it).unwrap()).collect()
    }

    #[track_caller]
    fn broken(&self) -> Broken {
        verify(&self.folder()).unwrap().broken.expect("it should be broken")
    }

    #[track_caller]
    fn good(&self) -> Verified {
        let found = verify(&self.folder()).unwrap();
        assert_eq!(found.broken, None);
        found
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

fn record<'a>(id: &'a str, tool: &'a str) -> CallRecord<'a> {
    CallRecord {
        id,
        who: "anonymous",
        group: "guest",
        client: None,
        method: None,
        tool,
        source: None,
        definition: None,
        arguments: Payload::default(),
        outcome: "ok",
        blame: None,
        code: None,
        cause: None,
        micros: 1,
        retries: 0,
        cache: None,
        result: Payload::default(),
        artifacts: &[],
        trace: None,
        rule: None,
    }
}

fn next_id() -> String {
    use std::sync::LazyLock;
    static IDS: LazyLock<CallIds> = LazyLock::new(CallIds::default);
    IDS.next()
}

fn call(audit: &Audit, tool: &str) {
    drop(audit.call(&record(&next_id(), tool)));
}

#[test]
fn what_is_recorded_is_read_back_in_order() {
    let scene = Scene::filled("order", 1000);
    let records = scene.records();
    assert_eq!(records.len(), 1002);
    assert_eq!((&records[0]["event"], &records[1001]["event"]), (&"start".into(), &"stop".into()));
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record["seq"], at + 1);
    }
    assert_eq!(records[500]["tool"], "tool_499");
    let found = scene.good();
    assert_eq!((found.records, found.first, found.last, found.files), (1002, 1, 1002, 1));
    let id = records[500]["call"].as_str().unwrap();
    assert_eq!(find_call(&scene.folder(), id).unwrap().unwrap(), records[500]);
    assert_eq!(find_call(&scene.folder(), "0").unwrap(), None);
}

#[test]
fn files_and_folders_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::filled("modes", 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&scene.folder()), 0o700);
    for file in [scene.file(1), scene.folder().join("head.json"), scene.0.join("audit.key")] {
        assert_eq!(mode(&file), 0o600, "{}", file.display());
    }
}

/// Every byte of a log is turned, one after the other: each time the record is named that it is in.
#[test]
fn any_byte_that_turned_is_found_and_its_record_named() {
    let scene = Scene::filled("flip", 6);
    let good = fs::read(scene.file(1)).unwrap();
    let mut seq = 1;
    for at in 0..good.len() {
        let mut bad = good.clone();
        bad[at] ^= 1;
        fs::write(scene.file(1), &bad).unwrap();
        let broken = scene.broken();
        assert_eq!((broken.seq, broken.line), (seq, seq), "byte {at}: {broken:?}");
        if good[at] == b'\n' {
            seq += 1;
        }
    }
}

#[test]
fn a_line_that_is_gone_added_or_moved_is_found() {
    let scene = Scene::filled("lines", 8);
    let text = scene.text();
    let lines: Vec<&str> = text.lines().collect();
    let check = |lines: &[&str], seq: u64, cause: &str| {
        fs::write(scene.file(1), lines.join("\n") + "\n").unwrap();
        let broken = scene.broken();
        assert_eq!((broken.seq, broken.cause.as_str()), (seq, cause));
    };
    let without = |gone: &[usize]| -> Vec<&str> {
        let kept = lines.iter().enumerate().filter(|(at, _)| !gone.contains(at));
        kept.map(|(_, it)| *it).collect()
    };
    check(&without(&[4]), 5, "the record is gone");
    check(&without(&[4, 5]), 5, "records 5 to 6 are gone");
    check(&without(&[0]), 1, "the record is gone");
    check(&without(&[9]), 10, "the end is cut off: records 10 to 10 are gone");
    check(&without(&[7, 8, 9]), 8, "the end is cut off: records 8 to 10 are gone");
    let mut twice = lines.clone();
    twice.insert(4, lines[3]);
    check(&twice, 5, "record 4 stands here once more");
    let mut swapped = lines.clone();
    swapped.swap(4, 5);
    check(&swapped, 5, "the record is gone");
    fs::write(scene.file(1), "").unwrap();
    assert_eq!(scene.broken().cause, "the end is cut off: records 1 to 10 are gone");
    fs::remove_file(scene.file(1)).unwrap();
    assert_eq!(scene.broken().cause, "the end is cut off: records 1 to 10 are gone");
    fs::write(scene.file(1), &text).unwrap();
    scene.good();
    fs::remove_file(scene.folder().join("head.json")).unwrap();
    assert_eq!(scene.broken().cause, "the head record is gone");
}

#[test]
fn a_crash_that_tears_a_line_is_gone_on_from_and_said() {
    let scene = Scene::filled("torn", 5);
    let whole = fs::read(scene.file(1)).unwrap();
    let line = b"{\"seq\":8,\"prev\":\"00";
    for end in 1..line.len() {
        fs::write(scene.file(1), [&whole, &line[..end]].concat()).unwrap();
        let found = scene.good();
        assert_eq!((found.last, found.notes.len()), (7, 1));
    }
    let audit = scene.open();
    call(&audit, "after");
    audit.close();
    let records = scene.records();
    assert_eq!(records[7]["event"], "gap");
    assert_eq!(records[7]["subject"], "torn");
    assert_eq!(records[9]["tool"], "after");
    assert_eq!(scene.good().last, 11);
    let torn = fs::read(scene.file(1).with_extension("torn")).unwrap();
    assert_eq!(torn, &line[..line.len() - 1]);
}

/// A start after somebody cut the end, or took the head away, does not heal it.
#[test]
fn what_was_cut_is_found_after_the_next_start_too() {
    for what in ["cut", "head", "changed", "all"] {
        let scene = Scene::filled(&format!("healed-{what}"), 5);
        let text = scene.text();
        match what {
            "cut" => {
                let kept: String = text.split_inclusive('\n').take(4).collect();
                fs::write(scene.file(1), kept).unwrap();
            }
            "head" => fs::remove_file(scene.folder().join("head.json")).unwrap(),
            "changed" => fs::write(scene.file(1), text.replace("\"stop\"", "\"halt\"")).unwrap(),
            _ => fs::remove_file(scene.file(1)).unwrap(),
        }
        let before = scene.broken();
        let audit = scene.open();
        call(&audit, "after");
        audit.close();
        let after = scene.broken();
        match what {
            "cut" | "all" => assert_eq!(after.seq, before.seq, "{what}: {after:?}"),
            _ => assert_eq!(after.seq, 8, "{what}: {after:?}"),
        }
        // Nothing that was recorded since is lost.
        assert!(scene.text().contains("\"after\""));
    }
}

#[test]
fn files_are_rotated_and_the_chain_goes_on() {
    let scene = Scene::new("rotate");
    let audit = scene.open_with(AuditMode::Strict, 2000, Duration::from_secs(86_400));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for at in 0..40 {
        let id = next_id();
        let receipt = audit.call(&record(&id, &format!("t{at}")));
        runtime.block_on(receipt.safe()).unwrap();
        assert!(scene.text().contains(&id), "it is there before the answer");
    }
    audit.close();
    let files = segments(&scene.folder()).unwrap();
    assert!(4 < files.len(), "{files:?}");
    assert_eq!(scene.good().records, 42);
    let middle = &files[2].1;
    let bytes = fs::read(middle).unwrap();
    fs::remove_file(middle).unwrap();
    let broken = scene.broken();
    assert_eq!(
        (broken.file.as_str(), broken.cause.as_str()),
        ("audit-000003.jsonl", "the file is gone")
    );
    fs::write(middle, bytes).unwrap();
    scene.good();
}

#[test]
fn old_files_go_and_the_rest_is_still_whole() {
    let scene = Scene::new("retain");
    let strict = AuditMode::Strict;
    let audit = scene.open_with(strict, 1500, Duration::from_secs(3600));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for at in 0..40 {
        let receipt = audit.call(&record(&next_id(), &format!("t{at}")));
        runtime.block_on(receipt.safe()).unwrap();
    }
    audit.close();
    let files = segments(&scene.folder()).unwrap();
    let old = SystemTime::now() - Duration::from_secs(7200);
    for (_, path) in &files[..3] {
        File::options().append(true).open(path).unwrap().set_modified(old).unwrap();
    }
    for left in [files.len().div_ceil(10), 3] {
        let mut rounds = 0;
        while segments(&scene.folder()).unwrap()[0].0 <= left as u64 && rounds < 5 {
            scene.open_with(strict, 1 << 20, Duration::from_secs(3600)).close();
            rounds += 1;
        }
    }
    let found = scene.good();
    assert_eq!(segments(&scene.folder()).unwrap()[0].0, 4);
    assert!(1 < found.first, "{found:?}");
    assert!(found.notes[0].contains("let go"), "{found:?}");
    assert!(scene.records().iter().any(|it| it["event"] == "retain"));
    // Without the head's word nobody can take away more.
    fs::remove_file(scene.file(4)).unwrap();
    assert_eq!(scene.broken().cause, "the file is gone");
}

#[test]
fn the_oldest_go_where_all_are_too_large_and_that_is_on_record() {
    let scene = Scene::new("quota");
    let retain = Duration::from_secs(86_400);
    let mode = AuditMode::Strict;
    let settings = AuditSettings { mode, retain, ..AuditSettings::default() };
    let keeping = Keeping { strict: true, retain, largest: 1500, most: 6000 };
    let key = scene.0.join("audit.key");
    let audit = Audit::start(&scene.folder(), &key, settings, keeping, Masker::default()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for at in 0..80 {
        let receipt = audit.call(&record(&next_id(), &format!("t{at}")));
        runtime.block_on(receipt.safe()).unwrap();
    }
    audit.close();
    let size: usize = scene.text().len();
    assert!(size < 10_000, "{size}");
    let found = scene.good();
    assert!(1 < found.first && 80 < found.last, "{found:?}");
}

/// Who takes away the beginning, and says in the head record that this is how it begins.
#[test]
fn a_beginning_that_nobody_let_go_is_missed() {
    let scene = Scene::filled("genesis", 12);
    let text = scene.text();
    let rest: Vec<&str> = text.split_inclusive('\n').skip(9).collect();
    fs::write(scene.file(1), rest.concat()).unwrap();
    let place = chain::Place::read(rest[0].as_bytes()).unwrap();
    let mut head = Head::read(&scene.folder()).unwrap().unwrap();
    head.first = chain::First { file: 1, seq: place.seq, prev: place.prev };
    head.write(&scene.folder()).unwrap();
    let broken = scene.broken();
    assert!(broken.cause.starts_with("the beginning is gone"), "{broken:?}");
    // Nor does a start heal it.
    scene.open().close();
    assert!(scene.broken().cause.starts_with("the beginning is gone"));
}

#[test]
fn a_folder_that_was_emptied_is_missed() {
    let scene = Scene::filled("emptied", 3);
    fs::remove_dir_all(scene.folder()).unwrap();
    let gone = "all records are gone, and `audit.key` is there still";
    assert_eq!(scene.broken().cause, gone);
    scene.open().close();
    assert_eq!(scene.broken().cause, "records were gone when the gateway started");
    // With the key gone too it is as if there had been nothing, which is how one begins anew.
    fs::remove_dir_all(scene.folder()).unwrap();
    fs::remove_file(scene.0.join("audit.key")).unwrap();
    assert_eq!(scene.good().records, 0);
    scene.open().close();
    scene.good();
}

#[test]
fn refused_calls_in_a_flood_are_counted_by_caller() {
    let scene = Scene::new("refused");
    let audit = scene.open();
    for _ in 0..2500 {
        let id = next_id();
        drop(audit.call(&CallRecord { outcome: "unknown_tool", ..record(&id, "x") }));
    }
    call(&audit, "good");
    audit.close();
    let records = scene.records();
    let told = records.iter().filter(|it| it["outcome"] == "unknown_tool").count();
    let counted = records.iter().filter(|it| it["event"] == "calls_refused");
    let counted: u64 = counted.map(|it| it["times"].as_u64().unwrap()).sum();
    assert_eq!(told as u64 + counted, 2500);
    assert!(told <= 2000, "{told}");
    assert!(records.iter().any(|it| it["tool"] == "good"));
    scene.good();
}

#[test]
fn events_in_a_flood_are_counted_and_all_are_there() {
    let scene = Scene::new("flood");
    let audit = scene.open();
    for _ in 0..5000 {
        audit.event("unauthorized", &EventRecord::default());
    }
    audit.close();
    let records = scene.records();
    let denied: Vec<_> = records.iter().filter(|it| it["event"] == "unauthorized").collect();
    let times: u64 = denied.iter().map(|it| it["times"].as_u64().unwrap_or(1)).sum();
    assert_eq!(times, 5000);
    assert!(denied.len() < 1000, "{}", denied.len());
}

#[test]
fn hostile_files_are_refused_and_not_swallowed() {
    let scene = Scene::filled("hostile", 3);
    let good = fs::read(scene.file(1)).unwrap();
    let long = vec![b'x'; chain::MOST_LINE * 3];
    let deep = [b"{\"seq\":6,".as_slice(), &[b'['; 100_000]].concat();
    for more in [long.as_slice(), &deep, b"\xff\xfe", b"{}", b"\0"] {
        fs::write(scene.file(1), [&good, more, b"\n"].concat()).unwrap();
        assert_eq!(scene.broken().seq, 6);
        assert_eq!(find_call(&scene.folder(), "nobody").unwrap(), None);
        scene.open().close();
        assert_eq!(scene.broken().seq, 6);
        fs::remove_dir_all(scene.folder()).unwrap();
        fs::create_dir(scene.folder()).unwrap();
        fs::write(scene.file(1), &good).unwrap();
        let head = Head { seq: 5, ..head_of(&good) };
        head.write(&scene.folder()).unwrap();
        scene.good();
    }
}

fn head_of(bytes: &[u8]) -> Head {
    let mut head = Head::new();
    for line in bytes.split(|it| *it == b'\n').filter(|it| !it.is_empty()) {
        head.hash = chain::link(&head.hash, line);
        head.seq += 1;
    }
    head
}

#[test]
fn texts_are_masked_and_digests_keyed() {
    let scene = Scene::new("masked");
    let settings = AuditSettings { arguments: Shown::Masked, ..AuditSettings::default() };
    let masker = Masker::new(["hunter22".to_owned()]);
    let audit = Audit::open(&scene.folder(), &scene.0.join("key"), settings, masker).unwrap();
    let text = audit.arguments(b"{\"q\":\"hunter22\",\"password\":\"other-33\"}").unwrap();
    assert!(!text.contains("hunter22") && !text.contains("other-33"), "{text}");
    assert_eq!(audit.result(b"{}"), None);
    let large = "x".repeat(MOST_PAYLOAD - 4) + "hunter22" + &"y".repeat(MOST_PAYLOAD);
    let text = audit.arguments(large.as_bytes()).unwrap();
    assert!(text.len() <= MOST_PAYLOAD && !text.contains("hunt"), "{}", text.len());
    let digest = |audit: &Audit| audit.digest(b"{}").digest.unwrap();
    assert_ne!(digest(&audit), *blake3::hash(b"{}").as_bytes().first_chunk::<16>().unwrap());
    let other = Scene::new("other-key");
    assert_ne!(digest(&audit), digest(&other.open()));
    let one = digest(&audit);
    drop(audit);
    let settings = AuditSettings::default();
    let again =
        Audit::open(&scene.folder(), &scene.0.join("key"), settings, Masker::default()).unwrap();
    assert_eq!(digest(&again), one);
    fs::write(scene.0.join("bad"), "short").unwrap();
    let settings = AuditSettings::default();
    Audit::open(&scene.folder(), &scene.0.join("bad"), settings, Masker::default()).unwrap_err();
}

/// What stands before it is masked and so becomes shorter, which moves the cut into sight.
#[test]
fn no_beginning_of_a_secret_is_left_where_a_text_is_cut() {
    let scene = Scene::new("cut");
    let settings = AuditSettings { arguments: Shown::Masked, ..AuditSettings::default() };
    let masker = Masker::new(["planted-secret-value".to_owned()]);
    let key = scene.0.join("audit.key");
    let audit = Audit::open(&scene.folder(), &key, settings, masker).unwrap();
    for short in 0..20 {
        let begin = r#"{"password":""#;
        let middle = r#"","z":""#;
        let pad = 2 * MOST_PAYLOAD - begin.len() - middle.len() - short;
        let text = format!(r#"{begin}{}{middle}planted-secret-value and more"}}"#, "p".repeat(pad));
        let shown = audit.arguments(text.as_bytes()).unwrap();
        assert!(!shown.contains("plan"), "{short}: {shown}");
    }
    let small = audit.arguments(br#"{"z":"all of it"}"#).unwrap();
    assert_eq!(small, r#"{"z":"all of it"}"#);
}
