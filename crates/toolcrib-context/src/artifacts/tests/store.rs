//! The folder: what survives, what goes, and who pays for it.

use std::{
    collections::HashMap,
    fs,
    io::Write,
    time::{Duration, SystemTime},
};

use proptest::prelude::*;

use super::{Folder, of};
use crate::artifacts::{
    Artifact, ArtifactId, Limits, New, Quota, ReadLimits, Selector, Store, StoreError,
};

fn small() -> Limits {
    Limits {
        quota_bytes: 1000,
        owner_quota_bytes: 600,
        max_bytes: 500,
        max_count: 8,
        owner_max_count: 6,
        keep: Duration::from_secs(3600),
    }
}

fn text(store: &Store, artifact: &Artifact) -> String {
    let piece = store.read(artifact, &Selector::default(), &ReadLimits::default()).unwrap();
    piece.as_text().unwrap().to_owned()
}

#[test]
fn what_is_stored_is_there_after_a_restart() {
    let folder = Folder::new();
    let (store, said) = Store::open(folder.path(), Limits::default()).unwrap();
    assert!(said.is_empty(), "{said:?}");
    let stored = store.put(of("../../analyst\n"), b"abc").unwrap();
    assert_eq!(
        stored.content_hash,
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    drop(store);
    let (store, said) = Store::open(folder.path(), Limits::default()).unwrap();
    assert!(said.is_empty(), "{said:?}");
    assert_eq!(store.list(None), std::slice::from_ref(&stored));
    assert_eq!(store.find(Some("../../analyst\n"), &stored.id), Some(stored.clone()));
    assert_eq!(store.find(Some("guest"), &stored.id), None);
    assert_eq!(text(&store, &stored), "abc");
    assert_eq!(folder.names(), [format!("{}.data", stored.id), format!("{}.json", stored.id)]);
    assert!(store.remove(&stored.id).unwrap());
    assert!(!store.remove(&stored.id).unwrap());
    assert!(folder.names().is_empty());
}

#[cfg(unix)]
#[test]
fn only_the_owner_of_the_process_can_read_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let inner = folder.path().join("artifacts");
    let (store, _) = Store::open(&inner, Limits::default()).unwrap();
    store.put(of("a"), b"abc").unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&inner), 0o700);
    for entry in fs::read_dir(&inner).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn what_was_not_finished_leaves_nothing() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), small()).unwrap();
    let mut writer = store.begin(of("a")).unwrap();
    writer.write_all(&[b'x'; 400]).unwrap();
    assert!(store.list(None).is_empty());
    let refused: StoreError = writer.write_all(&[b'x'; 101]).unwrap_err().into();
    assert!(matches!(refused, StoreError::TooLarge { limit: 500 }), "{refused}");
    drop(writer);
    assert!(folder.names().is_empty());
    assert_eq!(store.used_bytes(), 0);
}

#[test]
fn a_crash_at_any_moment_is_cleaned_up_and_said() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
    let whole = store.put(of("a"), b"whole").unwrap();
    let ids: Vec<String> =
        (0..5).map(|_| store.put(of("a"), b"half").unwrap().id.to_string()).collect();
    let name = |id: usize, kind: &str| folder.path().join(format!("{}.{kind}", ids[id]));
    // Killed while writing; before naming; between the two names; a disk that lost the content; one that cut it.
    fs::rename(name(0, "data"), name(0, "data.part")).unwrap();
    fs::remove_file(name(0, "json")).unwrap();
    fs::rename(name(1, "data"), name(1, "data.part")).unwrap();
    fs::rename(name(1, "json"), name(1, "json.part")).unwrap();
    fs::rename(name(2, "json"), name(2, "json.part")).unwrap();
    fs::remove_file(name(3, "data")).unwrap();
    fs::write(name(4, "data"), "hal").unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    fs::create_dir(folder.path().join("folder")).unwrap();
    // Whoever only looks changes nothing.
    let before = folder.names();
    let (looking, _) = Store::look(folder.path()).unwrap();
    assert_eq!(looking.list(None), std::slice::from_ref(&whole));
    assert!(matches!(looking.put(of("a"), b""), Err(StoreError::ReadOnly)));
    assert!(matches!(looking.remove(&whole.id), Err(StoreError::ReadOnly)));
    assert_eq!(folder.names(), before);
    let (store, said) = Store::open(folder.path(), Limits::default()).unwrap();
    assert_eq!(store.list(None), std::slice::from_ref(&whole));
    assert_eq!(said.len(), 9, "{said:#?}");
    let mut left = vec![
        format!("{}.damaged", ids[4]),
        format!("{}.data", whole.id),
        format!("{}.json", whole.id),
        "folder".to_owned(),
        "notes.txt".to_owned(),
    ];
    left.sort();
    assert_eq!(folder.names(), left);
    assert_eq!(store.used_bytes(), 5);
}

#[test]
fn what_has_expired_is_not_found_and_goes() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), small()).unwrap();
    let mut brief = of("a");
    brief.keep = Some(Duration::ZERO);
    let long = store.put(of("a"), b"long").unwrap();
    let brief = store.put(brief, b"brief").unwrap();
    assert_eq!(store.find(None, &brief.id), None);
    assert_eq!(store.list(None), std::slice::from_ref(&long));
    assert_eq!(store.sweep(SystemTime::now()), 1);
    assert_eq!(store.used_bytes(), 4);
    assert_eq!(store.sweep(SystemTime::now() + Duration::from_secs(3601)), 1);
    assert!(folder.names().is_empty());
}

/// The clock that the store is told is ten years ahead of the one that the artifacts were made by.
#[test]
fn a_clock_that_jumps_takes_a_hundred_or_one_of_a_hundred() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
    for _ in 0..250 {
        store.put(of("a"), b"it").unwrap();
    }
    let later = SystemTime::now() + Duration::from_secs(10 * 365 * 24 * 3600);
    let left = || folder.names().iter().filter(|it| it.ends_with(".data")).count();
    assert_eq!((store.sweep(later), left()), (100, 150));
    // It was a mistake: what is left is there, and whoever stores something sweeps nothing.
    assert_eq!(store.list(None).len(), 150);
    assert_eq!((store.sweep(SystemTime::now()), left()), (0, 150));
    assert_eq!((store.sweep(later), store.sweep(later), left()), (100, 50, 0));
}

#[test]
fn whoever_stores_a_lot_does_not_sweep_each_time() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
    let brief = || New { keep: Some(Duration::ZERO), ..of("a") };
    for _ in 0..20 {
        store.put(brief(), b"it").unwrap();
    }
    assert!(store.list(None).is_empty(), "what has expired is not found");
    let left = folder.names().iter().filter(|it| it.ends_with(".data")).count();
    assert_eq!(left, 20, "and still there");
}

#[test]
fn nobody_pushes_out_what_is_anothers() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), small()).unwrap();
    let others = store.put(of("other"), &[b'o'; 500]).unwrap();
    let mut mine = Vec::new();
    for _ in 0..4 {
        mine.push(store.put(of("me"), &[b'm'; 200]).unwrap());
    }
    // 500 of another's leave room for two of ours.
    assert_eq!(store.list(Some("me")).len(), 2);
    assert_eq!(store.find(None, &mine[0].id), None);
    assert_eq!(store.find(None, &others.id), Some(others));
    let refused = store.put(of("third"), &[b't'; 200]).unwrap_err();
    assert!(
        matches!(refused, StoreError::Full { size: 200, quota: 1000, of: Quota::Bytes }),
        "{refused}"
    );
    // And what does not fit takes nothing with it.
    assert_eq!(store.list(None).len(), 3);
}

#[test]
fn what_has_expired_is_in_nobodys_way() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), small()).unwrap();
    for owner in ["a", "b"] {
        store.put(New { keep: Some(Duration::ZERO), ..of(owner) }, &[b'x'; 500]).unwrap();
    }
    let mine = store.put(of("me"), &[b'm'; 500]).unwrap();
    assert_eq!(store.used_bytes(), 500);
    assert_eq!(folder.names(), [format!("{}.data", mine.id), format!("{}.json", mine.id)]);
}

fn refused(stored: Result<Artifact, StoreError>) -> (Quota, String) {
    match stored.unwrap_err() {
        error @ StoreError::Full { of, .. } => (of, error.to_string()),
        error => panic!("{error}"),
    }
}

#[test]
fn nobody_has_all_places_and_a_refusal_names_its_limit() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), small()).unwrap();
    for _ in 0..20 {
        store.put(of("many"), b"").unwrap();
    }
    assert_eq!(store.list(Some("many")).len(), 6);
    for _ in 0..2 {
        store.put(of("other"), b"").unwrap();
    }
    let (of_what, said) = refused(store.put(of("third"), b""));
    assert_eq!((of_what, said.as_str()), (Quota::Count, "the store holds 8 artifacts at most"));
    let limits = Limits { owner_max_count: 0, ..small() };
    let (none, _) = Store::open(&folder.path().join("none"), limits).unwrap();
    let (of_what, said) = refused(none.put(of("a"), b""));
    assert_eq!(
        (of_what, said.as_str()),
        (Quota::GroupCount, "a group may store 0 artifacts at most")
    );
}

#[test]
fn one_that_writes_much_leaves_room_for_others_to_write() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), small()).unwrap();
    let begin = |owner: &str| store.begin(of(owner)).unwrap();
    let full = |error: std::io::Error| refused(Err(error.into())).0;
    let (mut first, mut second, mut other) = (begin("a"), begin("a"), begin("b"));
    first.write_all(&[b'x'; 400]).unwrap();
    assert_eq!(full(second.write_all(&[b'x'; 201]).unwrap_err()), Quota::GroupBytes);
    second.write_all(&[b'x'; 200]).unwrap();
    other.write_all(&[b'x'; 400]).unwrap();
    let mut third = begin("c");
    assert_eq!(full(third.write_all(b"x").unwrap_err()), Quota::Writing);
    drop((first, second));
    third.write_all(&[b'x'; 400]).unwrap();
    assert_eq!(store.list(None).len(), 0);
}

#[test]
fn parts_of_one_result_do_not_push_each_other_out() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), small()).unwrap();
    let part = |call: &str| New { call: call.to_owned(), ..of("me") };
    let old = store.put(part("1"), &[b'x'; 250]).unwrap();
    let first = store.put(part("2"), &[b'x'; 250]).unwrap();
    let second = store.put(part("2"), &[b'x'; 250]).unwrap();
    assert_eq!(store.find(None, &old.id), None);
    let (of_what, said) = refused(store.put(part("2"), &[b'x'; 250]));
    assert_eq!(of_what, Quota::GroupBytes);
    assert_eq!(said, "a group may store 600 bytes at most, and 250 more would not fit");
    let ids: Vec<ArtifactId> = [&first, &second].map(|it| it.id.clone()).into();
    assert_eq!(store.list(None).len(), 2);
    store.forget(&ids);
    assert!(store.list(None).is_empty() && folder.names().is_empty());
    // Calls without a name are not one call.
    for _ in 0..5 {
        store.put(part(""), &[b'x'; 250]).unwrap();
    }
    assert_eq!(store.list(None).len(), 2);
}

#[cfg(unix)]
#[test]
fn a_folder_that_was_removed_is_made_again() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = Folder::new();
    let inner = folder.path().join("data").join("artifacts");
    let (store, _) = Store::open(&inner, small()).unwrap();
    store.put(of("a"), &[b'x'; 500]).unwrap();
    fs::remove_dir_all(folder.path().join("data")).unwrap();
    let again = store.put(of("b"), &[b'x'; 500]).unwrap();
    assert_eq!(fs::metadata(&inner).unwrap().permissions().mode() & 0o777, 0o700);
    // What was in the old one takes no room.
    assert_eq!(store.list(None), std::slice::from_ref(&again));
    assert_eq!(store.used_bytes(), 500);
    assert_eq!(text(&store, &again), "x".repeat(500));
}

#[test]
fn many_write_at_once() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8_u8 {
            let store = store.clone();
            scope.spawn(move || {
                for turn in 0..10_u8 {
                    let owner = format!("owner {}", thread % 3);
                    let mut writer = store.begin(of(&owner)).unwrap();
                    for _ in 0..50 {
                        writer.write_all(&[b'a' + thread; 7]).unwrap();
                    }
                    if turn % 3 != 0 {
                        writer.finish().unwrap();
                    }
                }
            });
        }
    });
    assert_eq!(store.list(None).len(), 8 * 6);
    assert_eq!(store.used_bytes(), 8 * 6 * 350);
    for artifact in store.list(None) {
        let text = text(&store, &artifact);
        assert_eq!(text, text[..1].repeat(350));
    }
    assert_eq!(folder.names().len(), 2 * 8 * 6);
}

/// Not a test: what the one below starts, and kills.
#[test]
#[ignore = "writes until it is killed"]
fn writes_until_it_is_killed() {
    if !std::path::Path::new("kill me").exists() {
        return;
    }
    let (store, _) = Store::open(std::path::Path::new("."), Limits::default()).unwrap();
    for turn in 0_usize.. {
        let mut writer = store.begin(of("a")).unwrap();
        for _ in 0..turn % 40 {
            writer.write_all(&[b'x'; 5000]).unwrap();
        }
        println!("stored {}", writer.finish().unwrap().id);
    }
}

#[test]
fn what_was_acknowledged_outlives_a_kill() {
    use std::process::{Command, Stdio};
    let this = std::env::current_exe().unwrap();
    let folder = Folder::new();
    fs::write(folder.path().join("kill me"), "").unwrap();
    let mut known = Vec::new();
    for turn in 0..8 {
        let mut child = Command::new(&this)
            .args(["--ignored", "--nocapture", "--exact"])
            .arg("artifacts::tests::store::writes_until_it_is_killed")
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(100 + turn * 37));
        child.kill().unwrap();
        let said = child.wait_with_output().unwrap().stdout;
        let said = String::from_utf8(said).unwrap();
        // The last line may be cut.
        let whole = &said[..said.rfind('\n').map_or(0, |it| it + 1)];
        known.extend(whole.lines().filter_map(|it| it.strip_prefix("stored ")).map(str::to_owned));
        let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
        for id in &known {
            let artifact = store.find(Some("a"), &id.parse().unwrap());
            let artifact = artifact.unwrap_or_else(|| panic!("{id} is gone"));
            let length = store.content(&artifact).unwrap().metadata().unwrap().len();
            assert_eq!(length, artifact.size_bytes);
        }
        assert_eq!(folder.names().len(), 1 + 2 * store.list(None).len(), "{:?}", folder.names());
    }
    assert!(!known.is_empty());
}

#[test]
fn what_it_is_shows_when_it_is_there() {
    let folder = Folder::new();
    let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
    let mut writer = store.begin(of("a")).unwrap();
    writer.write_all(b"[1, 2, 3]").unwrap();
    let (artifact, shape) = writer.finish_described().unwrap();
    assert_eq!(artifact.media_type, "application/json");
    assert_eq!(shape.line(), "JSON array of 3 elements (numbers); 9 bytes");
    assert_eq!(store.describe(&artifact).unwrap(), shape);
    let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
    assert_eq!(store.list(None), [artifact]);
}

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u16),
    Abandon(u8, u16),
    Remove(u8),
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u8..3, 0_u16..520).prop_map(|(owner, size)| Step::Put(owner, size)),
        1 => (0_u8..3, 0_u16..400).prop_map(|(owner, size)| Step::Abandon(owner, size)),
        2 => any::<u8>().prop_map(Step::Remove),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn the_quota_holds_whatever_happens(steps in prop::collection::vec(step(), 1..40)) {
        let folder = Folder::new();
        let mut store = Store::open(folder.path(), small()).unwrap().0;
        for step in steps {
            let before: Vec<Artifact> = store.list(None);
            let mut by = None;
            match step {
                Step::Put(owner, size) => {
                    let owner = format!("o{owner}");
                    store.put(of(&owner), &vec![b'x'; usize::from(size)]).ok();
                    by = Some(owner);
                }
                Step::Abandon(owner, size) => {
                    let mut writer = store.begin(of(&format!("o{owner}"))).unwrap();
                    writer.write_all(&vec![b'x'; usize::from(size)]).ok();
                }
                Step::Remove(which) if !before.is_empty() => {
                    let id = &before[usize::from(which) % before.len()].id;
                    by = Some(before[usize::from(which) % before.len()].owner.clone());
                    store.remove(id).unwrap();
                }
                Step::Remove(_) => {}
                Step::Restart => {
                    drop(store);
                    let (opened, said) = Store::open(folder.path(), small()).unwrap();
                    prop_assert!(said.is_empty(), "{said:?}");
                    store = opened;
                }
            }
            let now = store.list(None);
            let mut owners: HashMap<&str, u64> = HashMap::new();
            for it in &now {
                *owners.entry(&it.owner).or_default() += it.size_bytes;
            }
            let sum: u64 = owners.values().sum();
            prop_assert_eq!(sum, store.used_bytes());
            let most = now.iter().map(|a| now.iter().filter(|b| a.owner == b.owner).count()).max();
            prop_assert!(most.unwrap_or_default() <= 6);
            prop_assert!(sum <= 1000 && now.len() <= 8 && owners.values().all(|it| *it <= 600));
            for it in before.iter().filter(|it| by.as_ref() != Some(&it.owner)) {
                prop_assert!(now.contains(it), "another's went: {it:?}");
            }
            prop_assert_eq!(folder.names().len(), 2 * now.len());
        }
    }

    #[test]
    fn no_folder_is_too_damaged(
        damage in prop::collection::vec((0_usize..6, prop::collection::vec(any::<u8>(), 0..40)), 0..8),
    ) {
        let folder = Folder::new();
        let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
        for _ in 0..3 {
            store.put(of("a"), b"content").unwrap();
        }
        let names = folder.names();
        for (which, bytes) in damage {
            let mut text = fs::read(folder.path().join(&names[which])).unwrap_or_default();
            let keep = bytes.first().map_or(0, |it| usize::from(*it) % (text.len() + 1));
            text.truncate(keep);
            text.extend(bytes);
            fs::write(folder.path().join(&names[which]), text).unwrap();
        }
        let (store, _) = Store::open(folder.path(), Limits::default()).unwrap();
        for artifact in store.list(None) {
            text(&store, &artifact);
            prop_assert_eq!(store.content(&artifact).unwrap().metadata().unwrap().len(), 7);
        }
        let (_, said) = Store::open(folder.path(), Limits::default()).unwrap();
        prop_assert!(said.is_empty(), "the second time: {said:?}");
    }
}
