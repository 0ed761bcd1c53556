//! Files that are no documents, or almost: each is told with its name, the good one beside it still loads,
//! and nothing takes long or much.

mod cases;

use std::{
    fs,
    os::unix::fs::symlink,
    time::{Duration, Instant},
};

use toolcrib::sources::asyncapi::load;

use self::cases::{
    Case, bombs, meanings, operations, references, schemas, texts, whole, wrong_types, yaml,
};
use crate::kit::Folder;

/// How long one folder may take: far more than it does on a busy machine, far less than for ever.
const TIME: Duration = Duration::from_secs(120);

/// By how much the process may grow at most, over all of them.
const MEMORY_KB: u64 = 400 * 1024;

/// The most memory that this process ever had.
fn peak_kb() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Rows E14 and E15 of the security list, among much else.
#[test]
fn malformed_documents_are_told_and_harm_nobody() {
    let mut cases = Vec::new();
    for add in [wrong_types, bombs, texts, meanings, references, operations, schemas] {
        add(&mut cases);
    }
    let mut kinds: Vec<&str> = cases.iter().map(|it| it.kind).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert!(200 <= cases.len() && 20 <= kinds.len());
    let (begin, before) = (Instant::now(), peak_kb());
    let mut longest = (Duration::ZERO, "");
    let complaints: Vec<String> = cases
        .iter()
        .filter_map(|it| {
            let one = Instant::now();
            let complaint = complaint(it);
            longest = longest.max((one.elapsed(), it.kind));
            complaint
        })
        .collect();
    let grown = peak_kb() - before;
    println!(
        "{} documents of {} kinds in {:?}, {grown} kB",
        cases.len(),
        kinds.len(),
        begin.elapsed()
    );
    println!("the longest: {longest:?}");
    assert!(grown < MEMORY_KB, "{grown} kB");
    assert!(complaints.is_empty(), "{} wrong:\n{}", complaints.len(), complaints.join("\n\n"));
}

/// Nine to the tenth, as the row says it. The process has done nothing before this.
#[test]
fn e14_an_alias_bomb_is_given_up_soon_and_costs_little() {
    let mut text = yaml("", "");
    text.push_str("x0: &x0 [lol]\n");
    for level in 1..=10 {
        let below = format!("*x{}, ", level - 1).repeat(9);
        text.push_str(&format!("x{level}: &x{level} [{below}]\n"));
    }
    let folder = Folder::new();
    folder.write("events/bomb.yaml", text);
    folder.write("events/good.yaml", yaml("enabled: true", "enabled: true, name: good"));
    let (begin, before) = (Instant::now(), peak_kb());
    let loaded = load(folder.path());
    let (took, grown) = (begin.elapsed(), peak_kb() - before);
    println!("given up after {took:?}, {grown} kB");
    assert_eq!(loaded.tools.len(), 1, "{:?}", loaded.tools);
    assert_eq!(loaded.problems.len(), 1, "{:?}", loaded.problems);
    assert!(grown < 128 * 1024, "{grown} kB");
    // The reader is not optimized here.
    let full = std::env::var_os("TOOLCRIB_FULL").is_some();
    assert!(!full || took < Duration::from_secs(10), "{took:?}");
}

/// Loads a bad document beside a good one; what is then not as it should be.
fn complaint(it: &Case) -> Option<String> {
    let folder = Folder::new();
    let bad = format!("events/bad.{}", it.extension);
    folder.write(&bad, &it.bytes);
    folder.write("events/good.yaml", yaml("enabled: true", "enabled: true, name: good"));
    for (name, bytes) in &it.beside {
        folder.write(name, bytes);
    }
    let begin = Instant::now();
    let loaded = load(folder.path());
    let took = begin.elapsed();
    let told = loaded.problems.iter().filter(|it| it.subject.starts_with(&bad)).count();
    let long = loaded.problems.iter().find(|it| 2000 < it.to_string().len());
    let leaked = loaded.problems.iter().find(|it| it.to_string().contains("root:"));
    let what = if TIME < took {
        format!("it took {took:?}")
    } else if !loaded.tools.iter().any(|it| it.name == "good") {
        "the good document did not load".to_owned()
    } else if !(1..=101).contains(&told) {
        format!("{told} problems")
    } else if let Some(problem) = long.or(leaked) {
        format!("this was told: {problem}")
    } else {
        return None;
    };
    let shown = String::from_utf8_lossy(&it.bytes[..it.bytes.len().min(600)]).into_owned();
    Some(format!("{}: {what}\n{shown}", it.kind))
}

#[test]
fn what_is_odd_but_right_loads() {
    let bom = format!("\u{feff}{}", yaml("", ""));
    let merged = yaml("info: {title: t, version: '1'}", "info: {<<: {title: t}, version: '1'}");
    let aliased =
        yaml("{type: object}", "{type: object, properties: {a: &a {type: string}, b: *a}}");
    let ended = format!("%YAML 1.2\n---\n{}...\n", yaml("", ""));
    for text in
        [bom, merged, aliased, ended, yaml("", "").replace('\n', "\r\n"), yaml("3.0.0", "'3.1.0'")]
    {
        let folder = Folder::new();
        folder.write("events/a.yaml", &text);
        let loaded = load(folder.path());
        assert_eq!((loaded.tools.len(), loaded.problems), (1, Vec::new()), "{text}");
    }
    let folder = Folder::new();
    folder.write("events/a.json", whole().to_string());
    let loaded = load(folder.path());
    assert_eq!((loaded.tools.len(), loaded.problems), (1, Vec::new()));
}

/// Links, pipes and folders where files should be.
#[test]
fn what_is_no_file_is_not_waited_for() {
    let outside = Folder::new();
    let target = outside.write("secret.yaml", yaml("", ""));
    let folder = Folder::new();
    folder.write("events/good.yaml", yaml("", ""));
    symlink(&target, folder.file("events/out.yaml")).unwrap();
    symlink("gone.yaml", folder.file("events/dangling.yaml")).unwrap();
    symlink("loop.yaml", folder.file("events/loop.yaml")).unwrap();
    symlink("/dev/zero", folder.file("events/zero.yaml")).unwrap();
    fs::create_dir(folder.file("events/folder.yaml")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.file("events/pipe.yaml")).status();
    assert!(made.unwrap().success());
    // Inside, a link is as good as a file.
    symlink("good.yaml", folder.file("events/link.yml")).unwrap();
    let loaded = load(folder.path());
    assert_eq!(loaded.tools.len(), 2);
    let mut told: Vec<String> = loaded.problems.iter().map(ToString::to_string).collect();
    told.sort();
    insta::assert_snapshot!(told.join("\n"), @"
    events/dangling.yaml: there is no such file
    events/loop.yaml: Too many levels of symbolic links (os error 40)
    events/out.yaml: it is outside of the workspace
    events/pipe.yaml: it is not a regular file
    events/zero.yaml: it is outside of the workspace
    ");
}
