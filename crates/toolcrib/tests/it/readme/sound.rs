//! Whatever stands on a page in a language can be read by whoever reads that language, run or not; and whatever a page
//! points to is there.

use std::{fs, process::Command};

use toolcrib::sources::mcp::plain_json;

use super::{blocks, pages, root};
use crate::kit::run;

/// Why a text is not what it says it is; nothing where it is.
fn fault(language: &str, text: &str) -> Option<String> {
    let asked = |program: &str, args: &[&str]| {
        let run = run(Command::new(program).args(args).arg(text));
        (run.code != 0).then(|| run.transcript())
    };
    match language {
        "sh" => asked("bash", &["-n", "-c"]),
        "console" => {
            let lines = format!("\n{text}");
            let typed: Vec<&str> = lines.split("\n$ ").skip(1).collect();
            let first = |it: &&str| it.lines().next().unwrap_or_default().to_owned();
            let script: Vec<String> = typed.iter().map(first).collect();
            let none = script.is_empty().then(|| "nothing is typed".to_owned());
            none.or_else(|| run_check(&script.join("\n")))
        }
        "python" => asked("python3", &["-c", "import ast, sys; ast.parse(sys.argv[1])"]),
        "json" => plain_json(text.as_bytes()).err().map(|it| it.to_string()),
        "jsonl" => text.lines().find_map(|it| fault("json", it)),
        "yaml" => serde_saphyr::from_str::<serde_json::Value>(text).err().map(|it| it.to_string()),
        "toml" => toml::from_str::<toml::Table>(text).err().map(|it| it.to_string()),
        "rust" | "js" | "text" => None,
        other => Some(format!("nobody knows the language `{other}`")),
    }
}

fn run_check(script: &str) -> Option<String> {
    let run = run(Command::new("bash").args(["-n", "-c", script]));
    (run.code != 0).then(|| run.transcript())
}

#[test]
fn whatever_a_page_shows_can_be_read() {
    let mut seen = 0;
    for page in pages() {
        let markdown = fs::read_to_string(root().join(&page)).unwrap();
        for block in blocks(&markdown) {
            let fault = fault(&block.language, &block.text);
            assert_eq!(fault, None, "{page}:\n{}", block.text);
            seen += 1;
        }
    }
    assert!(80 < seen, "only {seen} blocks");
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = heading.to_lowercase();
    let kept = kept.chars().filter(|it| it.is_alphanumeric() || " -_".contains(*it));
    kept.collect::<String>().trim().replace(' ', "-")
}

#[test]
fn whatever_a_page_points_to_is_there() {
    let mut links = 0;
    let more = ["ARCHITECTURE.md", "CONTRIBUTING.md"].map(str::to_owned);
    for page in pages().into_iter().chain(more) {
        let path = root().join(&page);
        let text = fs::read_to_string(&path).unwrap();
        for part in text.split("](").skip(1) {
            let Some(target) = part.split(')').next().filter(|it| !it.contains([' ', '\n'])) else {
                continue;
            };
            if target.starts_with("http") {
                continue;
            }
            let (file, place) = target.split_once('#').unwrap_or((target, ""));
            let there =
                if file.is_empty() { path.clone() } else { path.parent().unwrap().join(file) };
            // Pictures are made by the tests of the console.
            assert!(there.exists() || file.ends_with(".png"), "{page}: {target}");
            if !place.is_empty() {
                let markdown = fs::read_to_string(&there).unwrap();
                let headings = markdown.lines().filter(|it| it.starts_with('#'));
                let mut anchors = headings.map(|it| anchor(it.trim_start_matches('#')));
                assert!(anchors.any(|it| it == place), "{page}: {target}");
            }
            links += 1;
        }
    }
    assert!(50 < links, "only {links} links");
}
