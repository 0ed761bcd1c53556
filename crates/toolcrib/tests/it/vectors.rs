//! What the originals did, row by row: `pass ID`, `differs ID` where we mean to, `FAIL ID` otherwise.
//!
//! The folder is `tests/vectors`, or the one that `TOOLCRIB_VECTORS` names.

mod orbiter;
mod openagents;
mod tools;
mod events;
mod contextweaver;

use std::{
    fs,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use serde::Deserialize;
use serde_json::Value;

/// What a row came to.
pub(crate) enum Verdict {
    /// As the original.
    Pass,
    /// Not as the original, and meant to: the class, and whether what it asserts holds.
    Class(&'static str, Result<(), String>),
    /// Not as the original; what ours gave.
    Other(String),
    /// Not of our concern.
    Skip(&'static str),
}

#[derive(Deserialize)]
struct Differs {
    class: Vec<DiffersClass>,
    id: Vec<DiffersId>,
}

#[derive(Deserialize)]
struct DiffersClass {
    file: String,
    name: String,
}

#[derive(Deserialize)]
struct DiffersId {
    file: String,
    id: String,
    ours: String,
}

fn own_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/vectors")
}

fn folder() -> PathBuf {
    std::env::var_os("TOOLCRIB_VECTORS").map_or_else(own_folder, PathBuf::from)
}

/// Runs every row of a file and prints a line for each.
pub(crate) fn run(file: &str, rows: &[Value], verdict: impl Fn(&Value) -> Verdict) {
    let differs = fs::read_to_string(own_folder().join("differs.toml")).unwrap();
    let differs: Differs = toml::from_str(&differs).unwrap();
    let (mut failed, mut used) = (Vec::new(), Vec::new());
    for row in rows {
        let id = row["id"].as_str().unwrap();
        let verdict = catch_unwind(AssertUnwindSafe(|| verdict(row)))
            .unwrap_or_else(|_| Verdict::Other("it panicked".to_owned()));
        let line = match verdict {
            Verdict::Pass => format!("pass {id}"),
            Verdict::Skip(why) => format!("skip {id} {why}"),
            Verdict::Class(class, held) => {
                let known = differs.class.iter().any(|it| it.file == file && it.name == class);
                match held {
                    Ok(()) if known => format!("differs {id} {class}"),
                    Ok(()) => format!("FAIL {id} class {class} is not in differs.toml"),
                    Err(found) => format!("FAIL {id} {class}: {found}"),
                }
            }
            Verdict::Other(found) => {
                match differs.id.iter().find(|it| it.file == file && it.id == id) {
                    Some(row) if row.ours == found => {
                        used.push(id.to_owned());
                        format!("differs {id} {found}")
                    }
                    Some(row) => format!("FAIL {id} expected {:?}, found {found:?}", row.ours),
                    None => format!("FAIL {id} found {found:?}, the original {}", row["output"]),
                }
            }
        };
        println!("{line}");
        if line.starts_with("FAIL") {
            failed.push(line);
        }
    }
    assert!(failed.is_empty(), "\n{}", failed.join("\n"));
    if folder() == own_folder() {
        for row in differs.id.iter().filter(|it| it.file == file) {
            assert!(used.contains(&row.id), "{} no longer differs: take it out", row.id);
        }
    }
}

#[test]
fn vectors_of_openagents() {
    let vectors = read("openagents.json");
    let live = &vectors["shared_inputs"]["live_http"];
    let rows = vectors["vectors"].as_array().unwrap();
    run("openagents", rows, |row| openagents::verdict(row, live));
}

fn read(name: &str) -> Value {
    let file = folder().join(name);
    let text =
        fs::read_to_string(&file).unwrap_or_else(|_| panic!("there is no {}", file.display()));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn vectors_of_orbiter() {
    let vectors = read("orbiter.json");
    run("orbiter", vectors["vectors"].as_array().unwrap(), orbiter::verdict);
}

#[test]
fn vectors_of_contextweaver() {
    let vectors = read("contextweaver.json");
    run("contextweaver", vectors["vectors"].as_array().unwrap(), contextweaver::verdict);
}
