//! The official JSON Schema test suite, through our entry point, with the caps on.
//!
//! It is not ours to carry: it is read from `$TOOLCRIB_DATA` (by default `../shared`).
#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test says what it did not run, and is told where its data is"
)]

use std::{
    fs,
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::value::RawValue;
use toolcrib_catalogue::{Formats, Json, SchemaFault, Validator};

#[derive(Deserialize)]
struct Group {
    description: String,
    schema: Box<RawValue>,
    tests: Vec<Test>,
}

#[derive(Deserialize)]
struct Test {
    description: String,
    data: Box<RawValue>,
    valid: bool,
}

/// A folder of the suite, its dialect, and what in it is remote: how many tests, of which groups.
const DRAFTS: [(&str, &str, usize, &[&str]); 2] = [
    ("draft2020-12", "https://json-schema.org/draft/2020-12/schema", 53, &REMOTE_2020),
    ("draft7", "http://json-schema.org/draft-07/schema#", 27, &REMOTE_7),
];

/// What refers to another document: the meta-schema, or one of the files that the suite serves itself. 53 tests. Whatever
/// is not here has all that it refers to inside of itself, and must be read.
const REMOTE_2020: [&str; 24] = [
    "defs: validate definition against metaschema",
    "dynamicRef: strict-tree schema, guards against misspelled properties",
    "dynamicRef: tests for implementation dynamic anchor and reference link",
    "dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first",
    "dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first",
    "dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor",
    "ref: remote ref, containing refs itself",
    "refRemote: remote ref",
    "refRemote: fragment within remote ref",
    "refRemote: anchor within remote ref",
    "refRemote: ref within remote ref",
    "refRemote: base URI change",
    "refRemote: base URI change - change folder",
    "refRemote: base URI change - change folder in subschema",
    "refRemote: root ref in remote ref",
    "refRemote: remote ref with ref to defs",
    "refRemote: Location-independent identifier in remote ref",
    "refRemote: retrieved nested refs resolve relative to their URI not $id",
    "refRemote: remote HTTP ref with different $id",
    "refRemote: remote HTTP ref with different URN $id",
    "refRemote: remote HTTP ref with nested absolute ref",
    "refRemote: $ref to $ref finds detached $anchor",
    "vocabulary: schema that uses custom metaschema with with no validation vocabulary",
    "vocabulary: ignore unrecognized optional vocabulary",
];

/// The same in draft 7: 27 tests.
const REMOTE_7: [&str; 13] = [
    "definitions: validate definition against metaschema",
    "ref: remote ref, containing refs itself",
    "refRemote: remote ref",
    "refRemote: fragment within remote ref",
    "refRemote: ref within remote ref",
    "refRemote: base URI change",
    "refRemote: base URI change - change folder",
    "refRemote: base URI change - change folder in subschema",
    "refRemote: root ref in remote ref",
    "refRemote: remote ref with ref to definitions",
    "refRemote: Location-independent identifier in remote ref",
    "refRemote: retrieved nested refs resolve relative to their URI not $id",
    "refRemote: $ref to $ref finds location-independent $id",
];

#[derive(Default)]
struct Tally {
    agree: usize,
    remote: usize,
    remote_groups: Vec<String>,
    differ: Vec<String>,
}

#[test]
fn every_test_agrees_but_for_what_is_remote() {
    let Some(folder) = folder() else { return };
    for (draft, dialect, tests, groups) in DRAFTS {
        for (files, formats, known) in [
            (folder.join(draft), Formats::Annotated, (tests, groups)),
            (folder.join(draft).join("optional/format"), Formats::Asserted, (0, &[][..])),
        ] {
            let tally = run(&files, dialect, formats);
            let Tally { agree, remote, remote_groups, differ } = tally;
            eprintln!("{draft}, formats {formats:?}: {agree} agree, {remote} refused as remote");
            assert!(differ.is_empty(), "{draft} {formats:?}: {} differ: {differ:#?}", differ.len());
            assert!(agree > 300, "hardly anything ran");
            assert_eq!((remote, &remote_groups[..]), (known.0, &owned(known.1)[..]), "{draft}");
        }
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|it| (*it).to_owned()).collect()
}

fn folder() -> Option<PathBuf> {
    let root = std::env::var_os("TOOLCRIB_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let folder = root.unwrap_or(beside).join("data/json-schema-tests");
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("NOT RUN: the JSON Schema test suite; there is no {}", folder.display());
    assert!(std::env::var_os("TOOLCRIB_FULL").is_none(), "the full run needs its data");
    None
}

fn run(files: &Path, dialect: &str, formats: Formats) -> Tally {
    let mut tally = Tally::default();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(files).unwrap().map(|it| it.unwrap().path()).collect();
    paths.sort();
    for path in paths.into_iter().filter(|it| it.extension().is_some_and(|it| it == "json")) {
        let text = fs::read_to_string(&path).unwrap();
        let groups: Vec<Group> = serde_json::from_str(&text).unwrap();
        let file = path.file_stem().unwrap().to_string_lossy();
        for group in &groups {
            run_group(group, &file, dialect, formats, &mut tally);
        }
    }
    tally
}

fn run_group(group: &Group, file: &str, dialect: &str, formats: Formats, tally: &mut Tally) {
    let about = format!("{file}: {}", group.description);
    match Validator::read(&schema(group, dialect), formats) {
        Ok(validator) => {
            for test in &group.tests {
                let data = Json::parse(test.data.get().to_owned()).unwrap();
                let found = validator.check(&data);
                if found.is_ok() == test.valid {
                    tally.agree += 1;
                } else {
                    tally.differ.push(format!("{about}: {}: {found:?}", test.description));
                }
                assert_eq!(validator.check_output(&data).is_ok(), found.is_ok(), "{about}");
                let value = serde_json::from_str(test.data.get()).unwrap();
                assert_eq!(validator.fits(&value), found.is_ok(), "{about}");
            }
        }
        Err(fault @ (SchemaFault::Remote { .. } | SchemaFault::RemoteDialect { .. })) => {
            tally.remote += group.tests.len();
            eprintln!("  {about}: {fault}");
            tally.remote_groups.push(about);
        }
        Err(fault) => tally.differ.push(format!("{about}: {fault}")),
    }
}

/// The schema as a tool would have it: one that does not say its dialect gets the folder's.
fn schema(group: &Group, dialect: &str) -> Json {
    let text = group.schema.get();
    let written = match text.strip_prefix('{') {
        Some(rest) if !text.contains("\"$schema\"") => {
            let comma = if rest.trim_start().starts_with('}') { "" } else { "," };
            format!("{{\"$schema\":\"{dialect}\"{comma}{rest}")
        }
        _ => text.to_owned(),
    };
    Json::parse(written).unwrap()
}
