//! What would take too long is not done, or not to its end.

use std::{
    io::Cursor,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use super::ask;
use crate::artifacts::{
    PieceError, ReadLimits, Selector,
    jsonpath::{Eval, Flow, Query, Spent, Stop},
    read_piece,
    slice::Node,
    watch::{Halt, Watch},
};

fn path(document: &str, path: &str) -> Result<String, PieceError> {
    let selector = Selector::Path { path: path.to_owned(), from: 0 };
    // Work is bounded without a clock, too.
    let deadline = Some(Instant::now() + Duration::from_secs(3600));
    let limits = ReadLimits { deadline, ..ReadLimits::default() };
    let piece = read_piece(&mut Cursor::new(document), "application/json", &selector, &limits)?;
    Ok(piece.as_text().unwrap().to_owned())
}

fn is_too_much(found: &Result<String, PieceError>) -> bool {
    matches!(found, Err(PieceError::Asked(said)) if said.contains("asks for too much at once"))
}

#[test]
fn a_path_from_the_root_is_followed_once_for_all_rows() {
    let row = |id: u32| format!(r#"{{"id":{id},"name":"row {id}","text":"{}"}}"#, "x".repeat(200));
    let rows: Vec<String> = (0..20_000).map(row).collect();
    let document = format!(r#"{{"rows":[{}],"meta":{{"best":777}}}}"#, rows.join(","));
    let rows = [
        ("$.rows[?@.id==$.meta.best].name", r#"["row 777"]"#),
        ("$.rows[?@.id==value($..best)].name", r#"["row 777"]"#),
        ("$.rows[?count($..id) == 20000 && @.id == 5 && $..best].name", r#"["row 5"]"#),
    ];
    for (asked, expected) in rows {
        assert_eq!(path(&document, asked).unwrap(), expected, "{asked}");
    }
}

#[test]
fn work_is_counted_by_what_is_gone_over() {
    // A few hundred values, but each has ten million bytes.
    let nested = format!("{}\"{}\"{}", "[".repeat(250), "x".repeat(10_000_000), "]".repeat(250));
    let found = path(&nested, "$..*[?@.a == 1 && @.b == 2]");
    assert!(is_too_much(&found), "{found:?}");
}

#[test]
fn expressions_are_paid_for_when_they_are_made() {
    let row = |id: u32| format!(r#"{{"t":"{id}","p":"a*{id}"}}"#);
    let document = |many: u32| format!("[{}]", (0..many).map(row).collect::<Vec<_>>().join(","));
    assert_eq!(path(&document(20), "$[?match(@.t, @.p)].t").unwrap().lines().count(), 20);
    // One expression for all rows is made once.
    assert_eq!(path(&document(30_000), "$[?match(@.t, '2999.')].t").unwrap().lines().count(), 10);
    let found = path(&document(30_000), "$[?match(@.t, @.p) && @.t == 'x']");
    assert!(is_too_much(&found), "{found:?}");
    // And what a text costs follows from both.
    let long = format!(r#"[{{"t":"{}"}}]"#, "ab".repeat(5_000_000));
    let found = path(&long, &format!("$[?search(@.t, '{}c')]", "(a|b)?".repeat(300)));
    assert!(is_too_much(&found), "{found:?}");
}

#[test]
fn large_objects_are_compared_in_one_go() {
    let object = |keys: &mut dyn Iterator<Item = u32>| {
        let members: Vec<String> = keys.map(|it| format!(r#""key {it}":{it}"#)).collect();
        format!("{{{}}}", members.join(","))
    };
    let (forth, back) = (object(&mut (0..60_000)), object(&mut (0..60_000).rev()));
    let document = format!(r#"[{{"a":{forth},"b":{back}}},{{"a":{forth},"b":{{}}}}]"#);
    assert_eq!(path(&document, "$[?@.a == @.b].a['key 7']").unwrap(), "[7]");
    assert_eq!(path(&document, "$[?@.a != @.b].a['key 7']").unwrap(), "[7]");
    let huge = object(&mut (0..200_001));
    let found = path(&format!(r#"[{{"a":{huge},"b":{huge}}}]"#), "$[?@.a == @.b].x");
    assert!(is_too_much(&found), "{found:?}");
}

const QUERIES: [&str; 10] = [
    "head=5",
    "tail=5",
    "lines=1:3",
    "rows=0:2",
    "bytes=0:4",
    "keys=$[0]",
    "path=$[0].a",
    "path=$..a",
    "grep=a",
    "sum=a",
];

#[test]
fn a_deadline_holds_for_everything() {
    let document = r#"[{"a": 1}, {"a": 2}]"#;
    for query in QUERIES {
        let selector = Selector::from_query(query).unwrap();
        let read = |limits: &ReadLimits| {
            read_piece(&mut Cursor::new(document), "application/json", &selector, limits)
        };
        assert!(ask(document, "application/json", query).is_ok(), "{query}");
        let late = ReadLimits { deadline: Some(Instant::now()), ..ReadLimits::default() };
        let said = read(&late).unwrap_err();
        assert!(matches!(said, PieceError::TooSlow { .. }), "{query}: {said}");
        assert!(said.to_string().starts_with("this takes too long and was given up; "), "{said}");
        let cancel = Arc::new(AtomicBool::new(false));
        let gone = ReadLimits { cancel: Some(Arc::clone(&cancel)), ..ReadLimits::default() };
        assert!(read(&gone).is_ok(), "{query}");
        cancel.store(true, Ordering::Relaxed);
        let said = read(&gone).unwrap_err();
        assert!(matches!(said, PieceError::Cancelled), "{query}: {said}");
    }
}

#[test]
fn a_deadline_holds_in_memory_too() {
    let document = format!("[{}]", vec!["[1]"; 300_000].join(","));
    let query = Query::parse("$[?@[0] == 2]").unwrap();
    let late = ReadLimits { deadline: Some(Instant::now()), ..ReadLimits::default() };
    let mut spent = Spent::new(Watch::of(&late));
    let node = Node::new(document.as_bytes());
    let found =
        Eval::new(node, &mut spent)
            .walk(node, &query.segments, &mut Vec::new(), &mut |_, _| Flow::Continue(()));
    assert_eq!(found, Flow::Break(Stop::Halted(Halt::Late)));
}
