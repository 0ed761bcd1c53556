//! House rules that neither rustc nor clippy can hold.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Which crates of ours each crate may depend on. A new arrow is a change to this table.
const MAY_USE: &[(&str, &[&str])] = &[
    ("toolcrib-catalogue", &[]),
    ("toolcrib-wire", &[]),
    ("toolcrib-bus", &[]),
    ("toolcrib-context", &["toolcrib-catalogue"]),
    ("toolcrib-sources", &["toolcrib-bus", "toolcrib-catalogue", "toolcrib-wire"]),
    (
        "toolcrib-server",
        &["toolcrib-bus", "toolcrib-catalogue", "toolcrib-context", "toolcrib-wire"],
    ),
    ("toolcrib-testkit", &["toolcrib-bus", "toolcrib-wire"]),
    (
        "toolcrib",
        &[
            "toolcrib-bus",
            "toolcrib-catalogue",
            "toolcrib-context",
            "toolcrib-server",
            "toolcrib-sources",
            "toolcrib-wire",
        ],
    ),
];

/// What a crate may not depend on at all, so that it stays what it is.
const MAY_NOT_USE: &[(&str, &[&str])] = &[
    ("toolcrib-catalogue", &["tokio", "hyper", "tracing", "http"]),
    ("toolcrib-sources", &["hyper", "clap"]),
    ("toolcrib-context", &["tokio", "hyper", "http", "tracing", "clap"]),
];

const MAX_CODE_LINES: usize = 500;

#[test]
fn dependencies_point_one_way() {
    for folder in fs::read_dir(crates()).unwrap() {
        let krate = folder.unwrap().file_name().into_string().unwrap();
        let manifest = fs::read_to_string(crates().join(&krate).join("Cargo.toml")).unwrap();
        let (_, dependencies) = manifest.split_once("\n[dependencies]").unwrap_or_default();
        let own_section = dependencies.split("\n[").next().unwrap_or_default();
        let used: Vec<&str> =
            own_section.lines().filter_map(|line| line.split(['.', ' ', '=']).next()).collect();
        let row = MAY_USE.iter().find(|(name, _)| *name == krate);
        let (_, may_use) = row.unwrap_or_else(|| panic!("{krate} is not in the table"));
        for ours in used.iter().filter(|it| it.starts_with("toolcrib-")) {
            assert!(may_use.contains(ours), "{krate} may not depend on {ours}");
        }
        for (_, banned) in MAY_NOT_USE.iter().filter(|(name, _)| *name == krate) {
            let found = used.iter().find(|it| banned.contains(it));
            assert_eq!(found, None, "{krate} may not depend on it");
        }
    }
}

#[test]
fn files_open_with_their_purpose_and_stay_short() {
    let mut complaints = Vec::new();
    for file in rust_files(&crates()) {
        let text = fs::read_to_string(&file).unwrap();
        let code = text.split("\n#[cfg(test)]\nmod tests").next().unwrap_or_default();
        if !text.starts_with("//!") {
            complaints.push(format!("{}: no `//!` on the first line", file.display()));
        }
        if MAX_CODE_LINES < code.lines().count() {
            complaints.push(format!("{}: over {MAX_CODE_LINES} lines", file.display()));
        }
    }
    assert!(complaints.is_empty(), "\n{}", complaints.join("\n"));
}

#[test]
fn only_one_place_reads_the_environment() {
    // Cargo tells build scripts by it what they are to do.
    let allowed = ["toolcrib/src/config.rs", "/build.rs"];
    for file in rust_files(&crates()) {
        let path = file.to_string_lossy().into_owned();
        let test =
            path.contains("/tests/") || path.contains("testkit") || path.contains("/benches/");
        if test || allowed.iter().any(|it| path.ends_with(it)) {
            continue;
        }
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains("env::var"), "{path} reads the environment");
    }
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn rust_files(dir: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") {
            files.push(path);
        }
    }
    files
}
