//! The table of `README.md` is true: every row of the list is in it once, every test that it names is there
//! and says which row it shows, and no test of a row is left out.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// How many rows each group of the list has.
const ROWS: [(char, usize); 10] = [
    ('A', 14),
    ('B', 18),
    ('C', 8),
    ('D', 17),
    ('E', 19),
    ('F', 13),
    ('G', 8),
    ('H', 8),
    ('I', 6),
    ('J', 8),
];

/// What needs OAuth, JWT, or the bridge between the eras.
const ASIDE: [&str; 5] = ["B14", "B18", "C5", "C6", "C7"];

/// Rows of which something is still to be shown. They go as their tests come.
const NOT_YET: [&str; 0] = [];

/// One line of the table.
struct Row {
    id: String,
    tests: Vec<String>,
    remark: String,
}

fn table() -> Vec<Row> {
    let text = include_str!("README.md");
    let lines = text.lines().filter(|it| it.starts_with("| ") && !it.starts_with("| row "));
    lines
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
            let [id, tests, remark] = cells[..] else { panic!("three columns: {line}") };
            let tests = tests.split('`').skip(1).step_by(2).map(str::to_owned).collect();
            Row { id: id.to_owned(), tests, remark: remark.to_owned() }
        })
        .collect()
}

fn all_ids() -> Vec<String> {
    let rows = |(group, count): (char, usize)| (1..=count).map(move |it| format!("{group}{it}"));
    ROWS.into_iter().flat_map(rows).collect()
}

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `deputy::c01_…` is in `deputy.rs` beside this, `crate::siege::…` in `siege.rs` above.
fn file_of(test: &str) -> (PathBuf, &str) {
    let (module, name) = test.rsplit_once("::").unwrap_or_else(|| panic!("`{test}` has no module"));
    let it = crates().join("toolcrib/tests/it");
    let file = match module.strip_prefix("crate::") {
        Some(above) => it.join(above.replace("::", "/")),
        None => it.join("security").join(module.replace("::", "/")),
    };
    (file.with_extension("rs"), name)
}

/// The lines of comments and attributes right above a function.
fn above(text: &str, name: &str) -> Option<String> {
    let found = text.find(&format!("fn {name}("))?;
    let begin = text[..found].rfind('\n')?;
    let before: Vec<&str> = text[..begin].lines().collect();
    let said = |it: &&&str| it.starts_with("///") || it.starts_with("#[");
    Some(before.iter().rev().take_while(said).copied().collect::<Vec<_>>().join("\n"))
}

/// `a01_…` shows A1.
fn row_of(name: &str) -> Option<String> {
    let (group, rest) = (name.chars().next()?, name.get(1..3)?);
    let number: usize = rest.parse().ok().filter(|_| name[3..].starts_with('_'))?;
    ('a'..='j').contains(&group).then(|| format!("{}{number}", group.to_ascii_uppercase()))
}

#[test]
fn every_row_of_the_list_stands_in_the_table_once() {
    let ids: Vec<String> = table().into_iter().map(|it| it.id).collect();
    assert_eq!(ids, all_ids());
}

#[test]
fn every_row_has_a_test_or_a_reason() {
    let (mut aside, mut not_yet) = (Vec::new(), Vec::new());
    for row in table() {
        let late = row.remark.starts_with("not yet");
        if row.remark.starts_with("aside: ") {
            assert!(row.tests.is_empty(), "{}: it stands aside and has a test", row.id);
            aside.push(row.id);
        } else {
            assert!(late || !row.tests.is_empty(), "{}: neither a test nor a reason", row.id);
            not_yet.extend(late.then_some(row.id));
        }
    }
    assert_eq!(aside, ASIDE);
    assert_eq!(not_yet, NOT_YET);
}

/// A remark is a sentence for whoever reads it, or a dash; a word that somebody meant to replace is neither.
fn is_said(remark: &str) -> bool {
    let placeholder =
        |it: &str| matches!(it, "TODO" | "TBD" | "FIXME" | "XXX" | "MEM" | "TIME" | "?");
    let words: Vec<&str> = remark.split(' ').collect();
    remark == "–" || (1 < words.len() && !words.iter().any(|it| placeholder(it.trim_matches(':'))))
}

#[test]
fn every_remark_says_something() {
    for Row { id, remark, .. } in table() {
        assert!(is_said(&remark), "{id}: `{remark}`");
    }
    for nothing in ["", "MEM", "-", "TODO: write it", "as XXX"] {
        assert!(!is_said(nothing), "{nothing}");
    }
}

#[test]
fn every_test_that_is_named_is_there_and_names_its_row() {
    for Row { id, tests, .. } in table() {
        for test in &tests {
            let (file, name) = file_of(test);
            let text = fs::read_to_string(&file);
            let text = text.unwrap_or_else(|_| panic!("{id}: no file {}", file.display()));
            let said = above(&text, name).unwrap_or_else(|| panic!("{id}: no test `{test}`"));
            let words = said.split(|c: char| !c.is_alphanumeric());
            let by_comment = words.collect::<BTreeSet<_>>().contains(id.as_str());
            assert!(
                row_of(name).as_ref() == Some(&id) || by_comment,
                "{id}: `{test}` is of another row"
            );
            // What is checked on every bus is called by a macro.
            let runs = said.contains("#[test]") || said.contains("#[tokio::test");
            assert!(runs || text.contains(&format!("    {name},\n")), "{id}: `{test}` is no test");
        }
    }
}

#[test]
fn every_test_of_a_row_is_named() {
    let named: BTreeSet<(PathBuf, String)> = table()
        .iter()
        .flat_map(|it| it.tests.clone())
        .map(|it| {
            let (file, name) = file_of(&it);
            (file, name.to_owned())
        })
        .collect();
    let mut files = vec![crates().join("toolcrib/tests/it")];
    let mut missing = Vec::new();
    while let Some(path) = files.pop() {
        if path.is_dir() {
            files.extend(fs::read_dir(path).unwrap().map(|it| it.unwrap().path()));
            continue;
        }
        if path.extension().is_none_or(|it| it != "rs") {
            continue;
        }
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|it| it.trim_start_matches("async "));
        let names = lines.filter_map(|it| it.strip_prefix("fn ")?.split('(').next());
        for name in names.filter(|it| row_of(it).is_some()) {
            if !named.contains(&(path.clone(), name.to_owned())) {
                missing.push(format!("{}: {name}", path.display()));
            }
        }
    }
    assert!(missing.is_empty(), "not in the table: {missing:#?}");
}
