//! Paths and keys.

use std::{
    io::Cursor,
    time::{Duration, Instant},
};

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::{ask, pages};
use crate::artifacts::{ReadLimits, Selector, read_piece};

const SHOP: &str = r#"{"store": {"book": [
  {"category": "reference", "author": "Nigel Rees", "title": "Sayings of the Century", "price": 8.95},
  {"category": "fiction", "author": "Evelyn Waugh", "title": "Sword of Honour", "price": 12.99},
  {"category": "fiction", "author": "Herman Melville", "title": "Moby Dick", "isbn": "0-553-21311-3", "price": 8.99},
  {"category": "fiction", "author": "J. R. R. Tolkien", "title": "The Lord of the Rings", "isbn": "0-395-19395-8", "price": 22.99}
 ], "bicycle": {"color": "red", "price": 399.00}}}"#;

fn path(document: &str, path: &str) -> String {
    let selector = Selector::Path { path: path.to_owned(), from: 0 };
    let mut content = Cursor::new(document);
    // No test depends on how fast it runs.
    let deadline = Some(Instant::now() + Duration::from_secs(3600));
    let limits = ReadLimits { deadline, ..ReadLimits::default() };
    match read_piece(&mut content, "application/json", &selector, &limits) {
        Ok(piece) => piece.as_text().unwrap().replace(",\n", ","),
        Err(error) => error.to_string(),
    }
}

/// The examples of RFC 9535.
#[test]
fn the_bookstore() {
    let rows = [
        (
            "$.store.book[*].author",
            r#"["Nigel Rees","Evelyn Waugh","Herman Melville","J. R. R. Tolkien"]"#,
        ),
        ("$..author", r#"["Nigel Rees","Evelyn Waugh","Herman Melville","J. R. R. Tolkien"]"#),
        ("$.store..price", "[8.95,12.99,8.99,22.99,399.00]"),
        ("$..book[2].title", r#"["Moby Dick"]"#),
        ("$..book[-1].title", r#"["The Lord of the Rings"]"#),
        ("$..book[0,1].title", r#"["Sayings of the Century","Sword of Honour"]"#),
        ("$..book[:2].title", r#"["Sayings of the Century","Sword of Honour"]"#),
        ("$.store.book[?@.isbn].title", r#"["Moby Dick","The Lord of the Rings"]"#),
        ("$..book[?@.price<10].title", r#"["Sayings of the Century","Moby Dick"]"#),
        ("$.store.bicycle.price", "399.00"),
        ("$['store']['bicycle'][\"color\"]", "\"red\""),
        ("$.store.book[?match(@.isbn, '0-5.*')].price", "[8.99]"),
        ("$.store.book[?search(@.author, 'el|ol') && @.price > 9].price", "[12.99,22.99]"),
        ("$.store.book[?!(@.category == 'fiction')].price", "[8.95]"),
        ("$.store.book[?@.price == $.store.book[2].price].title", r#"["Moby Dick"]"#),
        ("$.store.book[?length(@.title) == 9].title", r#"["Moby Dick"]"#),
        ("$.store[?count(@.*) > 2].color", "[]"),
        ("$.store[?count(@.*) == 2].color", r#"["red"]"#),
        ("$.store.book[::2].price", "[8.95,8.99]"),
        ("$.store.book[::-2].price", "[22.99,12.99]"),
        ("$.store.book[1:3].price", "[12.99,8.99]"),
        ("$.store.book[?@.price >= 8.99 && @.price <= 12.990].price", "[12.99,8.99]"),
        ("$.store.book[?value(@..isbn) == '0-553-21311-3'].price", "[8.99]"),
        ("$.store.book[-2].price", "8.99"),
    ];
    for (asked, expected) in rows {
        assert_eq!(path(SHOP, asked), expected, "{asked}");
    }
}

/// The tables of RFC 9535, parts 2.3.5.3 and 2.4.
#[test]
fn filters() {
    let document = r#"{"a":[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}],"o":{"p":1,"q":2,"r":3,"s":5,"t":{"u":6}},"e":"f"}"#;
    let rows = [
        ("$.a[?@.b == 'kilo']", r#"[{"b":"kilo"}]"#),
        ("$.a[?(@.b == 'kilo')]", r#"[{"b":"kilo"}]"#),
        ("$.a[?@>3.5]", "[5,4,6]"),
        ("$.a[?@.b]", r#"[{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}]"#),
        (
            "$[?@.*]",
            r#"[[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}],{"p":1,"q":2,"r":3,"s":5,"t":{"u":6}}]"#,
        ),
        ("$[?@[?@.b]]", r#"[[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}]]"#),
        ("$.o[?@<3, ?@<3]", "[1,2,1,2]"),
        ("$.a[?@<2 || @.b == \"k\"]", r#"[1,{"b":"k"}]"#),
        ("$.a[?match(@.b, \"[jk]\")]", r#"[{"b":"j"},{"b":"k"}]"#),
        ("$.a[?search(@.b, \"[jk]\")]", r#"[{"b":"j"},{"b":"k"},{"b":"kilo"}]"#),
        ("$.o[?@>1 && @<4]", "[2,3]"),
        // Nothing is equal to nothing, and what has no order is never less.
        ("$.o[?@.x <= $.y && @ < 2]", "[1]"),
        ("$.o[?@.x < $.y || true > false]", "[]"),
        ("$.o[?@.u || @.x]", r#"[{"u":6}]"#),
        ("$.a[?@.b == $.x]", "[3,5,1,2,4,6]"),
        ("$.a[?@ == @]", r#"[3,5,1,2,4,6,{"b":"j"},{"b":"k"},{"b":{}},{"b":"kilo"}]"#),
    ];
    for (asked, expected) in rows {
        assert_eq!(path(document, asked), expected, "{asked}");
    }
}

#[test]
fn what_is_no_path_is_told_where() {
    let bad = [
        "",
        "a",
        "$.",
        "$..",
        "$a",
        "$ .a ",
        "$[",
        "$[]",
        "$[01]",
        "$[-0]",
        "$[1.0]",
        "$['a",
        "$['\\x']",
        "$[?]",
        "$[?1]",
        "$[?'a']",
        "$[?@.a ==]",
        "$[?@.* == 1]",
        "$[?count(1) == 1]",
        "$[?length(@.a)]",
        "$[?match(@.a, 'b') == true]",
        "$[?nope(@)]",
        "$.a[9007199254740992]",
        "$.a b",
        "$[?@.a=1]",
        "$[?(@.a]",
        "$['\\ud800']",
        "$.1a",
        "$[1,]",
        "$[?@==01]",
        "$[?@..a==1]",
    ];
    for text in bad {
        let found = path("{}", text);
        assert!(found.starts_with("the path cannot be read at character"), "{text:?}: {found}");
    }
    let deep = format!("$[?{}@.a{}]", "(".repeat(100), ")".repeat(100));
    assert!(path("{}", &deep).contains("nested too deep"));
    let deep = format!("$[?@{}{}]", "[?@".repeat(31), "]".repeat(31));
    assert!(path("{}", &deep).contains("too deep") || path("{}", &deep) == "[]");
    assert!(path("{}", &format!("${}", ".a".repeat(65))).contains("too many steps"));
}

#[test]
fn what_is_not_there_is_told_with_what_is() {
    let rows = [
        ("$.shop", "there is nothing at `$.shop`: the object at `$` has the keys store"),
        (
            "$.store.book[4].price",
            "there is nothing at `$.store.book[4]`: the array at `$.store.book` has 4 elements",
        ),
        (
            "$.store.bicycle.color.x",
            "there is nothing at `$.store.bicycle.color.x`: at `$.store.bicycle.color` is a string",
        ),
        (
            "$.store[0]",
            "there is nothing at `$.store[0]`: at `$.store` is an object; its members have names",
        ),
        (
            "$.store.book.title",
            "there is nothing at `$.store.book.title`: at `$.store.book` is an array; its elements have numbers",
        ),
    ];
    for (asked, expected) in rows {
        assert_eq!(path(SHOP, asked), expected);
    }
}

#[test]
fn a_short_path_that_asks_for_too_much_is_refused() {
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let wide = format!("[{}{deep}]", format!("{deep},").repeat(20));
    let found = path(&wide, "$..*..*..*..*[?@ == 5]");
    assert!(found.contains("asks for too much at once"), "{found}");
    let deeper = "[".repeat(100_000);
    assert!(path(&deeper, "$[0][0]..a").contains("nested more than"), "{}", path(&deeper, "$..a"));
    assert!(path(&deeper, "$..a").contains("nested more than"));
}

#[test]
fn numbers_and_text_stay_as_they_are_written() {
    let document = r#"{"n": [1.0, 1E5, -0, 12345678901234567890.123456789012345678, 1e999], "t": "\u00e4\/\ud83d\ude00"}"#;
    assert_eq!(
        path(document, "$.n"),
        "[1.0, 1E5, -0, 12345678901234567890.123456789012345678, 1e999]"
    );
    assert_eq!(path(document, "$.n[3]"), "12345678901234567890.123456789012345678");
    assert_eq!(
        path(document, "$.n[?@ > 12345678901234567890.123456789012345677]"),
        "[12345678901234567890.123456789012345678]"
    );
    assert_eq!(path(document, "$.t"), r#""\u00e4\/\ud83d\ude00""#);
    assert_eq!(path(document, "$[?@ == 'ä/😀']"), r#"["\u00e4\/\ud83d\ude00"]"#);
}

#[test]
fn keys_and_the_values_under_some() {
    let text = |query: &str| {
        ask(SHOP, "application/json", query).map(|it| it.as_text().unwrap().to_owned())
    };
    assert_eq!(
        text("keys=").unwrap(),
        r#"[{"key":"store","type":"object","bytes":509,"items":2}]"#
    );
    assert_eq!(
        text("keys=$.store").unwrap(),
        "[{\"key\":\"book\",\"type\":\"array\",\"bytes\":453,\"items\":4},\n{\"key\":\"bicycle\",\"type\":\"object\",\"bytes\":33,\"items\":2}]"
    );
    assert_eq!(text("keys=color,x&path=$.store.bicycle").unwrap(), r#"{"color": "red"}"#);
    assert_eq!(
        text("keys=$.store.book").unwrap_err(),
        "keys cannot be read here: at `$.store.book` is an array; `rows` shows its elements"
    );
    let large = json!({ "a": "x".repeat(20_000), "b": 1 }).to_string();
    let piece = ask(&large, "application/json", "keys=a,b").unwrap();
    assert_eq!(piece.as_text().unwrap(), "{\"a\": \"… 20002 bytes, path=$.a\",\n\"b\": 1}");
    assert!(piece.notes[0].contains("too large for a piece"), "{:?}", piece.notes);
}

#[test]
fn no_value_that_was_asked_for_is_dropped() {
    let document: Map<String, Value> =
        (0..600).map(|it| (format!("key {it}"), json!("x".repeat(40)))).collect();
    let document = Value::from(document).to_string();
    let mut names: Vec<String> = (0..600).map(|it| format!("key {it}")).collect();
    names.extend(["absent".to_owned(), "key 5".to_owned()]);
    let first = Selector::Keys { path: "$".to_owned(), names, from: 0 };
    let mut content = Cursor::new(&document);
    let pages = pages(&mut content, "application/json", first, &ReadLimits::default());
    let mut found = Map::new();
    for page in &pages {
        let values: Map<String, Value> = serde_json::from_str(page.as_text().unwrap()).unwrap();
        assert_eq!(values.len() as u64, page.to);
        found.extend(values);
    }
    assert_eq!(Value::from(found).to_string(), document);
    assert_eq!(pages.len(), 3);
    assert!(pages[0].notes[0].starts_with("there is no room for all; "), "{:?}", pages[0].notes);
    assert_eq!(pages[2].notes, ["there are no keys absent"]);
}

#[test]
fn json_lines_are_an_array() {
    let lines = "{\"a\": 1}\n\n{\"a\": [2]}\n{\"a\": 3}\n";
    let text = |query: &str| {
        ask(lines, "text/plain", query).map(|it| it.as_text().unwrap().replace(",\n", ","))
    };
    assert_eq!(text("path=$[1].a").unwrap(), "[2]");
    assert_eq!(text("path=$[-1].a").unwrap(), "3");
    assert_eq!(text("path=$[*].a").unwrap(), "[1,[2],3]");
    assert_eq!(text("path=$..a").unwrap(), "[1,[2],2,3]".replace(",2,", ","));
    assert_eq!(text("path=$").unwrap(), r#"[{"a": 1},{"a": [2]},{"a": 3}]"#);
}

#[test]
fn a_value_that_is_too_large_to_hold_is_refused_with_a_way_out() {
    let document = json!({ "a": { "b": vec!["x".repeat(50); 100] }, "c": 1 }).to_string();
    let limits = ReadLimits { max_bytes: 1000, max_held: 4000, ..ReadLimits::default() };
    let read = |path: &str| {
        let selector = Selector::Path { path: path.to_owned(), from: 0 };
        let mut content = Cursor::new(&document);
        read_piece(&mut content, "application/json", &selector, &limits)
    };
    let refused = read("$.a..b").unwrap_err().to_string();
    assert!(
        refused.starts_with("the value at `$.a` is larger than 4000 bytes; `keys` with `$.a`"),
        "{refused}"
    );
    // One by one they need not be held together.
    let first = read("$.a.b[*]").unwrap();
    assert_eq!((first.from, first.to, first.total), (0, 18, None));
    assert_eq!(first.next, Some(Selector::Path { path: "$.a.b[*]".to_owned(), from: 18 }));
}

/// JSON of all kinds, with keys that are hard to write.
fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z\"\\\\\n😀ä]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[ab\"'\\\\.\n😀 ]{0,3}", inner), 0..6)
                .prop_map(|it| Value::Object(it.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Every place of a document, with a path to it.
fn places(value: &Value, path: &str, all: &mut Vec<(String, Value)>) {
    all.push((path.to_owned(), value.clone()));
    match value {
        Value::Array(list) => {
            for (index, it) in list.iter().enumerate() {
                let index =
                    if index % 2 == 0 { index as i64 } else { index as i64 - list.len() as i64 };
                places(it, &format!("{path}[{index}]"), all);
            }
        }
        Value::Object(map) => {
            for (key, it) in map {
                places(it, &format!("{path}[{}]", Value::from(key.as_str())), all);
            }
        }
        _ => {}
    }
}

proptest! {
    #[test]
    fn every_place_is_found(document in any_json(), pretty in any::<bool>()) {
        let text = if pretty { format!("{document:#}") } else { document.to_string() };
        let mut all = Vec::new();
        places(&document, "$", &mut all);
        for (asked, expected) in all {
            let found = path(&text, &asked);
            prop_assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), expected, "{}", asked);
        }
    }

    #[test]
    fn everything_is_found_once_below_the_root(document in any_json(), max in 60_usize..300) {
        let mut all = Vec::new();
        places(&document, "$", &mut all);
        let limits = ReadLimits { max_bytes: max, ..ReadLimits::default() };
        let text = document.to_string();
        for asked in ["$..*", "$[*]"] {
            let first = Selector::Path { path: asked.to_owned(), from: 0 };
            let pages = pages(&mut Cursor::new(&text), "application/json", first, &limits);
            let last = pages.last().unwrap();
            prop_assert_eq!(last.total, Some(last.to));
            let expected = match (&document, asked) {
                (Value::Array(list), "$[*]") => list.len(),
                (Value::Object(map), "$[*]") => map.len(),
                (_, "$[*]") => 0,
                _ => all.len() - 1,
            };
            prop_assert_eq!(last.to, expected as u64);
            for page in &pages {
                let text = page.as_text().unwrap();
                prop_assert!(text.len() <= max);
                let list: Vec<Value> = serde_json::from_str(text).unwrap();
                // What does not even have room for its name is left out.
                prop_assert!(list.len() as u64 <= page.to - page.from);
            }
        }
    }

    #[test]
    fn a_large_value_comes_in_pieces(document in any_json(), max in 4_usize..50) {
        let text = document.to_string();
        let limits = ReadLimits { max_bytes: max, ..ReadLimits::default() };
        let first = Selector::Path { path: "$".to_owned(), from: 0 };
        let pages = pages(&mut Cursor::new(&text), "application/json", first, &limits);
        let joined: String = pages.iter().map(|it| it.as_text().unwrap()).collect();
        prop_assert_eq!(joined, text);
    }

    #[test]
    fn no_path_and_no_document_is_too_strange(
        asked in "\\$([.\\[\\]*?@$()'\"!=<>&|:,a0-9 -]|\\.\\.|count\\(|match\\(|length\\(){0,20}",
        document in "[\\[\\]{}\":,a0-9\\\\ .e-]{0,40}",
    ) {
        path(&document, &asked);
        path(SHOP, &asked);
    }
}
