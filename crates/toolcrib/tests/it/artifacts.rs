//! `toolcrib artifact`, as transcripts.

use std::time::Duration;

use serde_json::{Value, json};
use toolcrib_context::artifacts::{Artifact, Limits, New, Store};

use crate::kit::{Folder, Run, toolcrib};

/// A workspace with what somebody's tools have given.
struct Shelf {
    folder: Folder,
    store: Store,
}

impl Shelf {
    fn new() -> Self {
        let folder = Folder::workspace(&json!({}));
        let inner = folder.file(".toolcrib/artifacts");
        let (store, _) = Store::open(&inner, Limits::default()).unwrap();
        Self { folder, store }
    }

    fn put(&self, media_type: &str, content: impl AsRef<[u8]>) -> Artifact {
        let new = New {
            owner: "analyst".to_owned(),
            tool: "mcp__db__query".to_owned(),
            call: "7".to_owned(),
            handle: "mcp:query:structured_content".to_owned(),
            label: "structured content from query".to_owned(),
            media_type: media_type.to_owned(),
            keep: Some(Duration::from_secs(3600 * 5 + 1800)),
        };
        self.store.put(new, content.as_ref()).unwrap()
    }

    fn run(&self, args: &[&str]) -> Run {
        toolcrib(self.folder.path(), args)
    }

    /// What the user sees, with what changes each time taken out.
    fn see(&self, it: &Artifact, args: &[&str]) -> String {
        let mut all = vec!["artifact", "read", it.id.as_str()];
        all.extend(args);
        self.run(&all).transcript().replace(it.id.as_str(), "ID")
    }
}

fn orders() -> String {
    let order = |it: u64| json!({ "id": it, "city": if it.is_multiple_of(3) { "Paris" } else { "Berlin" }, "price": it as f64 / 10.0 });
    json!({ "total": 5, "orders": (1..=5).map(order).collect::<Vec<_>>() }).to_string()
}

#[test]
fn list_shows_what_there_is() {
    let shelf = Shelf::new();
    let nothing = shelf.run(&["artifact", "list"]);
    insta::assert_snapshot!(nothing.transcript(), @"
    exit 0
    out nothing is stored
    ");
    let stored = shelf.put("application/json", orders());
    let listed = shelf.run(&["artifact", "list"]).transcript().replace(stored.id.as_str(), "ID");
    let listed = listed.replace(" 1 s ", " 0 s ").replace(" 2 s ", " 0 s ");
    insta::assert_snapshot!(listed.replace(&" ".repeat(24), ""), @"
    exit 0
    out ID  SIZE   AGE  LEFT  TYPE              TOOL            GROUP    LABEL
    out ID  206 B  0 s  5 h   application/json  mcp__db__query  analyst  structured content from query
    ");
    let list: Value =
        serde_json::from_str(&shelf.run(&["artifact", "list", "--json"]).out).unwrap();
    assert_eq!(list[0]["id"], stored.id.as_str());
    assert_eq!(list[0]["uri"], format!("toolcrib://artifact/{}", stored.id));
    assert_eq!(list[0]["content_hash"], stored.content_hash);
    assert!(list[0]["expires"].as_str().unwrap().ends_with('Z'));
    let others = shelf.run(&["artifact", "list", "--json", "--group", "guest"]);
    assert_eq!(others.out, "[]\n");
}

#[test]
fn a_folder_that_has_stored_nothing_is_no_error() {
    let folder = Folder::workspace(&json!({}));
    insta::assert_snapshot!(toolcrib(folder.path(), &["artifact", "list"]).transcript(), @"
    exit 0
    out nothing is stored
    ");
    let absent = toolcrib(folder.path(), &["artifact", "list", "-w", "nowhere"]);
    insta::assert_snapshot!(absent.transcript(), @"
    exit 2
    err error: there is no folder `nowhere`
    ");
    assert!(!folder.file(".toolcrib").exists());
}

#[test]
fn pieces_of_json() {
    let shelf = Shelf::new();
    let it = shelf.put("application/json", orders());
    insta::assert_snapshot!(shelf.see(&it, &["--path", "$.orders[?@.city == 'Paris'].price"]), @"
    exit 0
    out [0.3]
    err values 0 to 1 of 1
    ");
    insta::assert_snapshot!(shelf.see(&it, &["--path", "$.orders[-1]"]), @r#"
    exit 0
    out {"id":5,"city":"Berlin","price":0.5}
    err bytes 0 to 36 of 36
    "#);
    insta::assert_snapshot!(shelf.see(&it, &["--rows", "1:3"]), @r#"
    exit 0
    out [{"id":2,"city":"Berlin","price":0.2},
    out {"id":3,"city":"Paris","price":0.3}]
    err rows 1 to 3
    "#);
    insta::assert_snapshot!(shelf.see(&it, &["--keys"]), @r#"
    exit 0
    out [{"key":"total","type":"number","bytes":1},
    out {"key":"orders","type":"array","bytes":185,"items":5}]
    err keys 0 to 2 of 2
    "#);
    insta::assert_snapshot!(shelf.see(&it, &["--keys", "total"]), @r#"
    exit 0
    out {"total": 5}
    err keys 0 to 1 of 1
    "#);
    insta::assert_snapshot!(shelf.see(&it, &["--count", "--sum", "price", "--group-by", "city"]), @r#"
    exit 0
    out [{"city":"Berlin","count":4,"sum(price)":1.2},
    out {"city":"Paris","count":1,"sum(price)":0.3}]
    err groups 0 to 2 of 2
    "#);
    insta::assert_snapshot!(shelf.see(&it, &["--max", "price", "--where", "city=Berlin", "--json"]), @r#"
    exit 0
    out {
    out   "text": "{\"max(price)\":0.5}",
    out   "media_type": "application/json",
    out   "unit": "rows",
    out   "from": 0,
    out   "to": 4,
    out   "total": 4
    out }
    "#);
}

#[test]
fn pieces_of_text() {
    let shelf = Shelf::new();
    let it = shelf.put("text/plain", "one\ntwo\nthree\nfour\n");
    insta::assert_snapshot!(shelf.see(&it, &["--lines", "1:3"]), @"
    exit 0
    out two
    out three
    err lines 1 to 3 of 4
    ");
    insta::assert_snapshot!(shelf.see(&it, &["--lines", "-1:"]), @"
    exit 0
    out four
    err lines 3 to 4 of 4
    ");
    insta::assert_snapshot!(shelf.see(&it, &["--head", "5"]), @"
    exit 0
    out one
    out t
    err bytes 0 to 5 of 19
    err more at toolcrib://artifact/ID?head=5&offset=5
    ");
    insta::assert_snapshot!(shelf.see(&it, &["--tail", "5"]), @"
    exit 0
    out four
    err bytes 14 to 19 of 19
    ");
    insta::assert_snapshot!(shelf.see(&it, &["--grep", "O", "--ignore-case", "--context", "1"]), @"
    exit 0
    out 0: one
    out 1: two
    out 2- three
    out 3: four
    err matches 0 to 3 of 3
    ");
    let whole = shelf.run(&["artifact", "read", it.id.as_str(), "--out", "whole.txt"]);
    assert_eq!((whole.code, whole.out.as_str()), (0, ""));
    assert_eq!(std::fs::read(shelf.folder.file("whole.txt")).unwrap(), b"one\ntwo\nthree\nfour\n");
    let lines =
        shelf.run(&["artifact", "read", it.id.as_str(), "--lines", "1:2", "--out", "two.txt"]);
    assert_eq!(lines.code, 0);
    assert_eq!(std::fs::read(shelf.folder.file("two.txt")).unwrap(), b"two\n");
}

#[test]
fn what_cannot_be_read_says_why() {
    let shelf = Shelf::new();
    let it = shelf.put("text/plain", "one\ntwo\n");
    insta::assert_snapshot!(shelf.see(&it, &["--path", "$.a"]), @"
    exit 1
    err error: a path cannot be read here: it is plain text
    ");
    insta::assert_snapshot!(shelf.see(&it, &["--path", "a"]), @"
    exit 2
    err error: the path cannot be read at character 0: a path begins with `$`
    ");
    insta::assert_snapshot!(shelf.see(&it, &["--lines", "x"]), @"
    exit 2
    err error: `lines` takes a range such as 0:20, not `x`
    ");
    insta::assert_snapshot!(shelf.see(&it, &["--lines", "0:1", "--grep", "x"]), @"
    exit 2
    err error: `lines` and `grep` cannot be asked for together
    ");
    insta::assert_snapshot!(shelf.run(&["artifact", "read", "nope"]).transcript(), @"
    exit 2
    err error: `nope`: an artifact's id is 26 letters a-z and digits 2-7
    ");
    let gone = it.id.to_string();
    shelf.store.remove(&it.id).unwrap();
    let gone = shelf.run(&["artifact", "read", &gone]).transcript().replace(&gone, "ID");
    insta::assert_snapshot!(gone, @"
    exit 1
    err error: there is no artifact `ID`
    err  hint: `toolcrib artifact list` shows what is stored; what has expired is gone
    ");
}

/// A value in 5 MB of JSON, by its path.
#[test]
fn one_value_of_many() {
    let shelf = Shelf::new();
    let rows: Vec<Value> = (0..60_000)
        .map(|it| json!({ "id": it, "name": format!("row number {it}"), "more": "x".repeat(40) }))
        .collect();
    let document = json!({ "rows": rows }).to_string();
    assert!(5_000_000 < document.len());
    let it = shelf.put("text/plain", &document);
    let read = shelf.run(&["artifact", "read", it.id.as_str(), "--path", "$.rows[59321].name"]);
    assert_eq!(read.out, "\"row number 59321\"\n");
    let json: Value = serde_json::from_str(
        &shelf
            .run(&[
                "artifact",
                "read",
                it.id.as_str(),
                "--path",
                "$.rows[?@.id > 59990].id",
                "--json",
            ])
            .out,
    )
    .unwrap();
    assert_eq!(
        (&json["from"], &json["to"], &json["unit"]),
        (&json!(0), &json!(9), &json!("values"))
    );
}
