//! `toolcrib pack`, as transcripts.

use std::{fs, path::Path};

use serde_json::Value;
use toolcrib_context::Counter;

use crate::kit::{Folder, toolcrib};

fn session() -> Folder {
    let folder = Folder::new();
    let example =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/data/mcp_session.jsonl");
    fs::copy(example, folder.file("session.jsonl")).unwrap();
    folder
}

#[track_caller]
fn see(folder: &Folder, args: &[&str]) -> String {
    toolcrib(folder.path(), &[&["pack"], args].concat()).transcript()
}

#[test]
fn pack_prints_the_prompt() {
    let args = ["session.jsonl", "--phase", "answer", "--query", "invoice status"];
    insta::assert_snapshot!(see(&session(), &args));
}

#[test]
fn pack_explains_what_a_small_budget_leaves_out() {
    let args = ["session.jsonl", "--query", "reminder letter", "--budget", "120", "--explain"];
    insta::assert_snapshot!(see(&session(), &args));
}

#[test]
fn pack_json_says_it_all_and_holds_its_budget_by_every_counter() {
    let session = session();
    for counter in Counter::ALL {
        for budget in ["0", "40", "300", "2000"] {
            let args = [
                "pack",
                "session.jsonl",
                "--json",
                "--budget",
                budget,
                "--counter",
                counter.name(),
            ];
            let pack: Value = serde_json::from_str(&toolcrib(session.path(), &args).out).unwrap();
            let tokens = counter.count(pack["prompt"].as_str().unwrap());
            assert!(tokens <= budget.parse().unwrap(), "{tokens} of {budget} by {counter}");
            assert_eq!(pack["stats"]["tokens"], tokens);
            assert_eq!(pack["items"].as_array().unwrap().len(), 15);
        }
    }
}

#[test]
fn pack_says_what_is_wrong_with_a_session() {
    let folder = session();
    insta::assert_snapshot!(see(&folder, &["missing.jsonl"]));
    fs::write(folder.file("bad.jsonl"), "{\"id\": \"u1\", \"type\": \"user_turn\"}\n{oops\n")
        .unwrap();
    insta::assert_snapshot!(see(&folder, &["bad.jsonl"]));
    let twice = "{\"id\": \"u1\", \"text\": \"x\"}\n".repeat(2);
    fs::write(folder.file("twice.jsonl"), twice).unwrap();
    insta::assert_snapshot!(see(&folder, &["twice.jsonl"]));
    insta::assert_snapshot!(see(&folder, &["session.jsonl", "--counter", "words"]));
}
