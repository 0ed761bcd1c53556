//! Rows, sums, searches and shapes.

use std::{collections::BTreeMap, io::Cursor};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{ask, pages};
use crate::artifacts::{Kind, Range, ReadLimits, Selector, describe};

const SALES: &str = "city,item,price,note\nBerlin,\"nut, small\",0.10,\nBerlin,bolt,0.20,\"two\nlines\"\nParis,nut,1e1,n/a\n\nParis,\"a \"\"quoted\"\" one\",7,x\n";

fn text(content: &str, media_type: &str, query: &str) -> String {
    match ask(content, media_type, query) {
        Ok(piece) => {
            let notes: String = piece.notes.iter().map(|it| format!("\n# {it}")).collect();
            format!("{}{notes}", piece.as_text().unwrap())
        }
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn rows_of_csv_stand_below_their_heading() {
    assert_eq!(
        text(SALES, "text/csv", "rows=1:3"),
        "city,item,price,note\nBerlin,bolt,0.20,\"two\nlines\"\nParis,nut,1e1,n/a\n"
    );
    assert_eq!(
        text(SALES, "text/plain", "rows=-1:"),
        "city,item,price,note\nParis,\"a \"\"quoted\"\" one\",7,x\n"
    );
    assert_eq!(text("a\tb\n1\t2\n", "text/plain", "rows=0:"), "a\tb\n1\t2\n");
    assert_eq!(
        text("just text", "text/plain", "rows=0:"),
        "error: rows cannot be read here: it is plain text"
    );
    let piece = ask(SALES, "text/csv", "rows=2:9").unwrap();
    assert_eq!((piece.from, piece.to, piece.total, piece.next), (2, 4, Some(4), None));
}

#[test]
fn groups_are_sorted_whatever_their_numbers() {
    let mut table = "group,value\n".to_owned();
    for n in 0..200_u64 {
        let whole = 17_014_118_346_046_923_173_168_730_372_u128 + u128::from(n * 7919 % 200);
        table.push_str(&format!("a{n},{whole}\n"));
        table.push_str(&format!("b{n},17014118346046923173168730371.58841{:05}\n", n * 7919 % 500));
        table.push_str(&format!("c{n},{whole}.5e{}\n", n % 3));
    }
    let piece = ask(&table, "text/csv", "sum=value&group_by=group&top=1000").unwrap();
    assert_eq!(piece.total, Some(600));
}

#[test]
fn rows_of_json() {
    let document = json!({ "total": 3, "items": [{ "a": 1 }, { "a": 2 }, "three"] }).to_string();
    assert_eq!(text(&document, "text/plain", "rows=1:"), "[{\"a\":2},\n\"three\"]");
    assert_eq!(text(&document, "text/plain", "rows=1:&path=$.items"), "[{\"a\":2},\n\"three\"]");
    assert_eq!(text("{\"a\": 1}\n{\"a\": 2}\n", "text/plain", "rows=1:"), "{\"a\": 2}\n");
    let two = r#"{"a": [1], "b": [2]}"#;
    assert_eq!(
        text(two, "application/json", "rows=0:"),
        "error: rows cannot be read here: there are several arrays; say which by `path`: $.a, $.b"
    );
    let large = json!([1, "x".repeat(20_000), 3]).to_string();
    assert_eq!(
        text(&large, "application/json", "rows=0:"),
        "[1,\n\"… 20002 bytes, path=$[1]\",\n3]\n# 1 values are too large for a piece: read them by the path that stands for them"
    );
}

#[test]
fn a_quote_that_is_never_closed_ends_somewhere() {
    let lines = "x,1\n".repeat(600_000);
    let table = format!("a,b\n\"open,1\n{lines}");
    let piece = ask(&table, "text/csv", "count=").unwrap();
    assert_eq!(piece.as_text().unwrap(), "{\"count\":337858}");
    let Kind::Table { rows, .. } = describe(&mut Cursor::new(&table), "text/csv").unwrap().kind
    else {
        panic!()
    };
    assert_eq!(rows, 337_858);
}

#[test]
fn sums() {
    assert_eq!(
        text(SALES, "text/csv", "count=&sum=price&min=price&max=price&avg=price"),
        "{\"count\":4,\"sum(price)\":17.3,\"min(price)\":0.10,\"max(price)\":1e1,\"avg(price)\":4.325}"
    );
    assert_eq!(
        text(SALES, "text/csv", "sum=price&group_by=city"),
        "[{\"city\":\"Paris\",\"sum(price)\":17},\n{\"city\":\"Berlin\",\"sum(price)\":0.3}]"
    );
    assert_eq!(text(SALES, "text/csv", "count=&where=city=Paris&where=price!=10"), "{\"count\":1}");
    assert_eq!(
        text(SALES, "text/csv", "count=note&sum=note&max=item"),
        "{\"count(note)\":3,\"sum(note)\":0,\"max(item)\":\"nut, small\"}\n# sum(note): 3 values are no numbers and are left out"
    );
    assert_eq!(
        text(SALES, "text/csv", "sum=cost"),
        "error: there is nothing at column `cost`; there are city, item, price, note"
    );
    let big = r#"[{"n": 9007199254740993, "d": {"x": 1}}, {"n": 1, "d": {"x": 2}}, {"n": null}, {"n": "7"}]"#;
    assert_eq!(
        text(big, "application/json", "sum=n&count=n&sum=d.x"),
        "{\"count(n)\":3,\"sum(n)\":9007199254741001,\"sum(d.x)\":3}"
    );
    assert_eq!(
        text("[]", "application/json", "sum=n&avg=n&count="),
        "{\"count\":0,\"sum(n)\":0,\"avg(n)\":null}"
    );
    assert!(
        text(r#"[{"n": 1e300}, {"n": 1}]"#, "application/json", "sum=n").contains("it is rounded")
    );
    let many: Vec<Value> = (0..60_000).map(|it| json!({ "g": it })).collect();
    let many = Value::from(many).to_string();
    assert!(text(&many, "application/json", "count=&group_by=g").contains("different values"));
    let piece = ask(&many, "application/json", "count=&group_by=g&where=g=5").unwrap();
    assert_eq!(piece.as_text().unwrap(), "[{\"g\":\"5\",\"count\":1}]");
}

#[test]
fn lines_that_match() {
    let log = "one\ntwo error\nthree\nfour\nfive\nsix\nseven Error\neight\n";
    assert_eq!(text(log, "text/plain", "grep=error"), "1: two error\n");
    assert_eq!(
        text(log, "text/plain", "grep=error&ignore_case=true&context=1"),
        "0- one\n1: two error\n2- three\n--\n5- six\n6: seven Error\n7- eight\n"
    );
    let piece = ask(log, "text/plain", "grep=e$&from=1").unwrap();
    assert_eq!((piece.from, piece.to, piece.total), (1, 3, Some(3)));
    assert_eq!(piece.as_text().unwrap(), "2: three\n4: five\n");
    assert!(text(log, "text/plain", "grep=(").starts_with("error: `grep`: regex parse error"));
    assert!(text(log, "text/plain", "grep=(a{1000}){1000}").contains("exceeds size limit"));
    // One line without end: what stands around the match, and where.
    let long = format!("{}needle{}", "a".repeat(200_000), "b".repeat(200_000));
    let found = text(&long, "text/plain", "grep=needle");
    assert!(found.starts_with("0: (byte 199800) …aaa") && found.contains("aneedleb"), "{found}");
    assert!(found.len() < 900, "{}", found.len());
    let head = text(&long, "text/plain", "head=6&offset=200000");
    assert_eq!(head, "needle");
    // Also where it lies on the border of two stretches.
    for at in [65_530, 65_533, 65_536, 64_512 + 65_530] {
        let long = format!("{}needle{}", "a".repeat(at), "b".repeat(100_000));
        let piece = ask(&long, "text/plain", "grep=needle").unwrap();
        assert_eq!((piece.total, piece.to), (Some(1), 1), "{at}");
    }
}

fn line(content: impl AsRef<[u8]>, media_type: &str) -> String {
    let shape = describe(&mut Cursor::new(content.as_ref()), media_type).unwrap();
    format!("{} [{}] {}", shape.line(), shape.media_type, shape.facts.join(" | "))
}

#[test]
fn shapes() {
    let rows = [
        (
            SALES.to_owned(),
            "text/plain",
            "CSV table of 4 rows with city, item, price, note; 124 bytes [text/csv] ",
        ),
        (
            r#"{"count": 2, "ok": true, "name": "x", "items": [1, 2]}"#.to_owned(),
            "text/plain",
            "JSON object of 4 keys with count (number), ok (boolean), name (string), items (array of 2); 54 bytes [application/json] count: 2 | ok: true | name: x",
        ),
        (
            r#"[{"id": 1, "n": null}, {"id": 2, "n": "x"}, 3]"#.to_owned(),
            "",
            "JSON array of 3 elements (object, number) with id (number), n (string); 46 bytes [application/json] ",
        ),
        (
            "{\"a\": 1}\n{\"a\": 2}\n".to_owned(),
            "text/plain",
            "2 JSON lines with a (number); 18 bytes [application/x-ndjson] ",
        ),
        (
            "one\ntwo".to_owned(),
            "text/plain; charset=utf-8",
            "text of 2 lines; 7 bytes [text/plain] ",
        ),
        (
            "{\"a\": 1} and more".to_owned(),
            "application/json",
            "text of 1 lines; 17 bytes [text/plain] ",
        ),
        ("{\"a\": ".to_owned(), "application/json", "text of 1 lines; 6 bytes [text/plain] "),
        ("7".to_owned(), "application/json", "JSON number; 1 bytes [application/json] "),
        ("\0\u{1}".to_owned(), "", "application/octet-stream; 2 bytes [application/octet-stream] "),
        (
            "# Title\n\ntext, and more".to_owned(),
            "text/markdown",
            "text of 3 lines; 23 bytes [text/markdown] ",
        ),
        (String::new(), "text/plain", "text of 0 lines; 0 bytes [text/plain] "),
    ];
    for (content, media_type, expected) in rows {
        assert_eq!(line(&content, media_type), expected, "{content}");
    }
    let long = json!({ "items": vec!["x".repeat(100); 3000] }).to_string();
    assert_eq!(
        line(&long, "text/plain"),
        format!(
            "JSON object of 1 keys with items (array of 3000); {} bytes [application/json] ",
            long.len()
        )
    );
}

fn cell() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{0,3}", "[a-c,\"\n ]{0,5}", any::<i16>().prop_map(|it| it.to_string())]
}

fn quoted(cell: &str) -> String {
    if cell.contains(['"', ',', '\n']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell.to_owned()
    }
}

proptest! {
    #[test]
    fn pages_of_csv_are_all_rows(rows in prop::collection::vec((cell(), cell()), 0..12), max in 60_usize..200) {
        let lines: Vec<String> = rows.iter().map(|(a, b)| format!("k{},{}\n", quoted(a).trim_start_matches('"').replace(['"', ',', '\n'], ""), quoted(b))).collect();
        let table = format!("a,b\n{}", lines.concat());
        let limits = ReadLimits { max_bytes: max, ..ReadLimits::default() };
        let first = Selector::Rows { range: Range::default(), path: None };
        let pages = pages(&mut Cursor::new(&table), "text/csv", first, &limits);
        let joined: String = pages.iter().map(|it| it.as_text().unwrap().strip_prefix("a,b\n").unwrap()).collect();
        prop_assert_eq!(joined, lines.concat());
        prop_assert_eq!(pages.last().unwrap().total, Some(rows.len() as u64));
    }

    #[test]
    fn pages_of_an_array_are_all_elements(rows in prop::collection::vec("[a-z\"]{0,9}", 0..20), max in 40_usize..90) {
        let document = json!({ "deep": { "rows": rows } }).to_string();
        let limits = ReadLimits { max_bytes: max, ..ReadLimits::default() };
        let first = Selector::Rows { range: Range::default(), path: Some("$.deep.rows".to_owned()) };
        let pages = pages(&mut Cursor::new(&document), "application/json", first, &limits);
        let mut found: Vec<String> = Vec::new();
        for page in &pages {
            prop_assert_eq!(page.from, found.len() as u64);
            found.extend(serde_json::from_str::<Vec<String>>(page.as_text().unwrap()).unwrap());
        }
        prop_assert_eq!(found, rows);
    }

    #[test]
    fn sums_are_those_of_a_simple_reckoning(rows in prop::collection::vec((0_u8..4, any::<i32>()), 0..30)) {
        let table = rows.iter().fold("g,n\n".to_owned(), |table, (g, n)| table + &format!("g{g},{n}\n"));
        let document = json!(rows.iter().map(|(g, n)| json!({ "g": format!("g{g}"), "n": n })).collect::<Vec<_>>()).to_string();
        let mut expected: BTreeMap<String, (u64, i64, i32, i32)> = BTreeMap::new();
        for (g, n) in &rows {
            let known = expected.entry(format!("g{g}")).or_insert((0, 0, i32::MAX, i32::MIN));
            *known = (known.0 + 1, known.1 + i64::from(*n), known.2.min(*n), known.3.max(*n));
        }
        for (content, media_type) in [(table, "text/csv"), (document, "application/json")] {
            let piece = ask(&content, media_type, "count=&sum=n&min=n&max=n&group_by=g").unwrap();
            let groups: Vec<Value> = serde_json::from_str(piece.as_text().unwrap()).unwrap();
            let counts: Vec<u64> = groups.iter().map(|it| it["count"].as_u64().unwrap()).collect();
            prop_assert!(counts.is_sorted_by(|a, b| a >= b));
            let found: BTreeMap<String, (u64, i64, i32, i32)> = groups.iter().map(|it| {
                let n = |word: &str| it[word].as_i64().unwrap();
                (it["g"].as_str().unwrap().to_owned(), (it["count"].as_u64().unwrap(), n("sum(n)"), n("min(n)") as i32, n("max(n)") as i32))
            }).collect();
            prop_assert_eq!(&found, &expected);
        }
    }

    #[test]
    fn matches_are_those_of_a_simple_search(lines in prop::collection::vec("[ab]{0,4}", 0..20), pattern in "[ab]{1,2}", max in 30_usize..60) {
        let content = lines.join("\n");
        let limits = ReadLimits { max_bytes: max, ..ReadLimits::default() };
        let first = Selector::Grep { pattern: pattern.clone(), ignore_case: false, context: 0, from: 0 };
        let pages = pages(&mut Cursor::new(&content), "text/plain", first, &limits);
        let found: String = pages.iter().map(|it| it.as_text().unwrap()).collect();
        let expected: String = lines.iter().enumerate().filter(|(_, it)| it.contains(&pattern)).map(|(at, it)| format!("{at}: {it}\n")).collect();
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn anything_has_a_shape_and_can_be_asked(bytes in prop::collection::vec(any::<u8>(), 0..80), text in "[\\[{\"a1,:;\t\n|}\\]]{0,60}", which in 0_usize..12) {
        let queries = ["rows=0:", "rows=-2:", "keys=", "keys=a", "path=$..*", "path=$[*]", "grep=a&context=2", "count=&group_by=0", "sum=a", "tail=5", "lines=-3:", "bytes=1:"];
        for content in [bytes.as_slice(), text.as_bytes()] {
            for media_type in ["", "application/json", "text/csv", "application/x-ndjson"] {
                describe(&mut Cursor::new(content), media_type).unwrap();
                ask(content, media_type, queries[which]).ok();
            }
        }
    }
}
