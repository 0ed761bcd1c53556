//! That a message which is sifted is the message that came: as strictly read, and with nothing lost.

use std::{io::Read, path::PathBuf, sync::LazyLock};

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// Where files go in these tests. They have no names, so all share it.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("toolcrib-sift-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
});

/// Parts of more than so many bytes are put aside here.
const PART: usize = 12;

fn spool() -> Spool {
    Spool { part: PART, ..Spool::new(&*FOLDER) }
}

/// What becomes of a text that comes in pieces of these sizes, over and over.
fn sift(text: &[u8], sizes: &[usize]) -> Message {
    let mut sifter = Sifter::new(spool(), 1_000_000);
    let (mut rest, mut sizes) = (text, sizes.iter().cycle());
    while !rest.is_empty() {
        let (piece, left) = rest.split_at((*sizes.next().unwrap()).clamp(1, rest.len()));
        sifter.feed(piece).unwrap();
        rest = left;
    }
    sifter.finish()
}

fn parts(message: &Message) -> &[crate::spool::SpooledPart] {
    match &message.sifted {
        Some(Sifted::Aside(spooled)) => &spooled.parts,
        other => panic!("{other:?}"),
    }
}

fn said(part: &crate::spool::SpooledPart) -> String {
    let mut text = String::new();
    part.open().read_to_string(&mut text).unwrap();
    assert_eq!(part.size, text.len() as u64);
    // In small pieces, too.
    for size in 1..6 {
        let (mut reader, mut piece, mut again) = (part.open(), vec![0; size], Vec::new());
        while let read @ 1.. = reader.read(&mut piece).unwrap() {
            again.extend_from_slice(&piece[..read]);
        }
        assert_eq!(again, text.as_bytes(), "{size}");
    }
    text
}

/// The text of a message, with everything that was put aside in its place again.
fn inflated(message: &Message) -> String {
    let mut whole = message.text.to_vec();
    let result = json::member(&message.text, "result").map_or(0, |it| it.start);
    for part in parts(message).iter().rev() {
        let (begin, length) = match part.place {
            Place::Structure => (result + part.at, 4),
            Place::Content(..) => (result + part.at + 1, 0),
        };
        let mut written = Vec::new();
        part.open_raw().read_to_end(&mut written).unwrap();
        whole.splice(begin..begin + length, written);
    }
    String::from_utf8(whole).unwrap()
}

/// What a part says, according to another reader.
fn said_otherwise(part: &crate::spool::SpooledPart) -> String {
    let mut written = String::new();
    part.open_raw().read_to_string(&mut written).unwrap();
    match part.place {
        Place::Structure => written,
        Place::Content(..) => serde_json::from_str(&format!("\"{written}\"")).unwrap(),
    }
}

/// Which parts of a result are put aside, and what they say.
#[track_caller]
fn check(result: &str, expected: &[(Place, &str)]) {
    let text = format!(r#" {{"jsonrpc":"2.0","id":7,"result":{result}}} "#);
    let whole = sift(text.as_bytes(), &[text.len()]);
    for size in 1..text.len() {
        let message = sift(text.as_bytes(), &[size]);
        assert_eq!(message.text, whole.text, "{size}");
        let found: Vec<(Place, String)> =
            parts(&message).iter().map(|it| (it.place, said(it))).collect();
        let expected: Vec<(Place, String)> =
            expected.iter().map(|(place, text)| (*place, (*text).to_owned())).collect();
        assert_eq!(found, expected, "{size}");
        assert_eq!(inflated(&message), text, "{size}");
    }
}

#[test]
fn what_is_large_is_put_aside_wherever_the_pieces_end() {
    let content = |at, field| Place::Content(at, field);
    check(
        r#"{"content":[{"type":"text","text":"0123456789a"},{"text":"0123456789ab"}, {"text":"\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t \u0000"}]}"#,
        &[
            (content(1, Field::Text), "0123456789ab"),
            (content(2, Field::Text), "é😀\"\\/\u{8}\u{c}\n\r\t \u{0}"),
        ],
    );
    check(
        r#"{"content":[{"data":"QUJDREVGR0hJSktM","mimeType":"a/b"},{"resource":{"uri":"a:b","text":"é€😀é€😀é€😀"}},{"resource":{"blob":"QUJDREVGR0hJSktM"}}],"structuredContent":{"rows": [1, 2.50, {"a":"\u00e9"}] } ,"isError":false}"#,
        &[
            (content(0, Field::Data), "QUJDREVGR0hJSktM"),
            (content(1, Field::ResourceText), "é€😀é€😀é€😀"),
            (content(2, Field::ResourceBlob), "QUJDREVGR0hJSktM"),
            (Place::Structure, r#"{"rows": [1, 2.50, {"a":"\u00e9"}] }"#),
        ],
    );
    // Keys in other words; a structure that is no object.
    check(
        r#"{"c\u006fntent":[[],{"t\u0065xt":"0123456789ab"}],"structured\u0043ontent":-12345678901234567890.5e+10}"#,
        &[
            (content(1, Field::Text), "0123456789ab"),
            (Place::Structure, "-12345678901234567890.5e+10"),
        ],
    );
}

#[test]
fn what_stands_elsewhere_is_kept() {
    let long = "0123456789abcdef";
    check(&json!({ "content": { "x": { "text": long }, "text": long } }).to_string(), &[]);
    check(
        &json!({ "content": [[{ "text": long }], long, { "a": { "text": long } }] }).to_string(),
        &[],
    );
    check(&json!({ "content": [{ "text": [long], "blob": long, "name": long }] }).to_string(), &[]);
    check(&json!({ "content": [{ "resource": [{ "text": long }] }] }).to_string(), &[]);
    check(
        &json!({ "content": [{ "resource": { "data": long, "x": { "blob": long } } }] })
            .to_string(),
        &[],
    );
    check(
        &json!({ "a": { "content": [{ "text": long }] }, "text": long, "data": long }).to_string(),
        &[],
    );
    check(&json!({ "a": { "structuredContent": { "a": long } } }).to_string(), &[]);
    check(&json!([{ "content": [{ "text": long }] }]).to_string(), &[]);
    for text in [
        json!({ "jsonrpc": "2.0", "method": "a", "params": { "content": [{ "text": long }] } }),
        json!([{ "jsonrpc": "2.0", "id": 1, "result": { "content": [{ "text": long }] } }]),
        json!({ "content": [{ "text": long }], "structuredContent": { "a": long } }),
    ] {
        let message = sift(text.to_string().as_bytes(), &[5]);
        assert_eq!(message.text, text.to_string());
        assert!(parts(&message).is_empty());
    }
}

#[test]
fn what_comes_after_a_part_is_seen_again() {
    check(
        r#"{"structuredContent":[["0123456789ab"],{"text":"0123456789ab"}],"content":[{"text":"0123456789ab"}]}"#,
        &[
            (Place::Structure, r#"[["0123456789ab"],{"text":"0123456789ab"}]"#),
            (Place::Content(0, Field::Text), "0123456789ab"),
        ],
    );
}

/// What is wrong with a message, and whose it is.
#[track_caller]
fn refused(text: &str, expected: &str) {
    let told = |size: usize| {
        let error = sift(text.as_bytes(), &[size]).read().unwrap_err();
        let id = error.id.as_ref().map_or("nobody".to_owned(), ToString::to_string);
        format!("{id}: {}", error.fault)
    };
    let whole = told(text.len());
    let (what, _) = whole.split_once(" at byte ").unwrap();
    assert_eq!(what.replace("not a JSON message: ", ""), expected);
    for size in [1, 3] {
        assert_eq!(told(size), whole, "{size}");
    }
    assert!(json::scan(text.as_bytes(), |_, _| ()).is_err());
}

#[test]
fn what_is_put_aside_is_read_as_strictly_as_the_rest() {
    let text = |inside: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"text":"0123456789ab{inside}"#)
    };
    refused(&text("\\ud800\"}]}}"), "7: bad escape in a string");
    refused(&text("\\udc00\"}]}}"), "7: bad escape in a string");
    refused(&text("\\x\"}]}}"), "7: bad escape in a string");
    refused(&text("\u{1}\"}]}}"), "7: control character in a string");
    refused(&text("\""), "7: unexpected end");
    refused(&text(""), "7: unexpected end");
    refused(&text("\\"), "7: unexpected end");
    refused(&text("\",\"text\":\"0123456789ab\"}]}}"), "7: duplicate key `text`");
    refused(&text("\"}]},\"result\":{}}"), "7: duplicate key `result`");
    refused(&text("\"}]}} x"), "7: unexpected `x`");

    let structure = |inside: &str| {
        format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"structuredContent":{inside}}}}}"#)
    };
    refused(
        &structure(r#"{"a":{"long enough":1,"long\u0020enough":2}}"#),
        "7: duplicate key `long enough`",
    );
    let many: Vec<String> = (0..50).map(|n| format!(r#""k{n}":{n}"#)).collect();
    let many = structure(&format!(r#"{{{},"k\u0037":1}}"#, many.join(",")));
    refused(&many, "7: duplicate key");
    // Two containers are open around it.
    let deep = |n: usize| structure(&format!("{}{}", "[".repeat(n), "]".repeat(n)));
    assert!(sift(deep(125).as_bytes(), &[10]).read().is_ok());
    refused(&deep(126), "7: nested deeper than 127");
    refused(&structure("[1,2,3,4,5,6,7,8,9,]"), "7: unexpected `]`");
    refused(&structure("1234567890123.e"), "7: malformed number");
}

/// All short texts of what numbers, words and containers are made of: the same verdict as the scanner's.
#[test]
fn every_short_text_is_judged_as_the_scanner_judges_it() {
    let letters = b"01-+.eE[]{},:\" tn";
    let mut texts: Vec<Vec<u8>> = vec![Vec::new()];
    for _ in 0..4 {
        let longer =
            texts.iter().flat_map(|text| letters.map(|it| [text.as_slice(), &[it]].concat()));
        texts = longer.collect();
        for text in &texts {
            let accepted = !matches!(sift(text, &[1]).sifted, Some(Sifted::Broken(_)));
            let expected = json::scan(text, |_, _| ()).is_ok();
            assert_eq!(accepted, expected, "{}", String::from_utf8_lossy(text));
        }
    }
}

#[test]
fn invalid_utf8_is_refused_wherever_the_pieces_end() {
    for bad in [&b"\xff"[..], b"\xc3", b"\xc3(", b"\xed\xa0\x80", b"\xf0\x9f\x98"] {
        let text = [br#"{"result":{"content":[{"text":"0123456789ab"#, bad, b"\"}]}}"].concat();
        for size in 1..text.len() {
            let error = sift(&text, &[size]).read().unwrap_err().to_string();
            assert!(error.contains("invalid UTF-8"), "{size} {error}");
        }
        let cut = &text[..text.len() - 5];
        assert!(sift(cut, &[7]).read().is_err());
    }
}

#[test]
fn a_message_is_bounded_in_memory_and_on_disk() {
    let feed = |spool: Spool, max_kept, text: &str| {
        let mut sifter = Sifter::new(spool, max_kept);
        let fed = text.as_bytes().chunks(100).try_for_each(|it| sifter.feed(it));
        fed.map_err(|error| error.to_string()).map(|()| sifter.kept.len())
    };
    let text = format!(r#"{{"result":{{"content":[{{"text":"{}"}}]}}}}"#, "x".repeat(100_000));
    assert!(feed(spool(), 1000, &text).unwrap() < 100);
    let error = feed(Spool { limit: 50_000, ..spool() }, 1000, &text).unwrap_err();
    assert_eq!(error, "it sent a message of over 50000 bytes, the limit");
    // Elsewhere, and as a key.
    for text in [text.replace("text", "next"), text.replace("\"text\":", "")] {
        let error = feed(spool(), 1000, &text).unwrap_err();
        assert_eq!(error, "it sent a message of over 1000 bytes, the limit");
    }
    let key = format!(r#"{{"result":{{"structuredContent":{{"{}":1}}}}}}"#, "x".repeat(100_000));
    let error = feed(spool(), 1000, &key).unwrap_err();
    assert_eq!(error, "it sent a message of over 1000 bytes, the limit");
}

#[test]
fn where_nothing_can_be_put_aside_the_answer_says_so() {
    let text = r#"{"jsonrpc":"2.0","result":{"content":[{"text":"0123456789ab"}],"structuredContent":[1,2,3,4,5,6,7]},"id":7}"#;
    let gone = Spool { folder: FOLDER.join("gone"), ..spool() };
    let mut sifter = Sifter::new(gone, 1000);
    text.as_bytes().chunks(9).for_each(|it| sifter.feed(it).unwrap());
    let message = sifter.finish();
    let Ok(Frame::Response { id: Some(id), answer }) = message.read() else { panic!() };
    assert_eq!(id, Id::number(7));
    let error = message.answer(answer).unwrap_err().to_string();
    assert_eq!(
        error,
        "its answer is large, and cannot be put aside: No such file or directory (os error 2)"
    );
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_filter("finite", |it| it.is_finite()).prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    let key = || {
        prop_oneof![
            prop::sample::select(vec![
                "result",
                "content",
                "structuredContent",
                "text",
                "data",
                "resource",
                "blob",
                "id",
            ])
            .prop_map(ToOwned::to_owned),
            any::<String>(),
        ]
    };
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::hash_map(key(), inner, 0..12)
                .prop_map(|it| it.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

/// Something that is shaped as answers are, with anything in it.
fn any_answer() -> impl Strategy<Value = Value> {
    let text = || prop_oneof![any_json(), ".{0,40}".prop_map(Into::into)];
    let part = (text(), text(), text(), text()).prop_map(|(text, data, inner, blob)| {
        json!({ "type": "text", "text": text, "data": data,
            "resource": { "uri": "a:b", "text": inner, "blob": blob } })
    });
    let parts = prop_oneof![prop::collection::vec(part, 0..4).prop_map(Value::from), any_json()];
    let result = (parts, any_json(), any_json()).prop_map(|(content, structure, more)| {
        json!({ "more": more, "content": content, "structuredContent": structure })
    });
    let result = prop_oneof![3 => result, 1 => any_json()];
    let answer = result.prop_map(|it| json!({ "jsonrpc": "2.0", "id": 7, "result": it }));
    prop_oneof![4 => answer, 1 => any_json()]
}

/// JSON as some write it: with spaces, and escapes where none are needed.
fn written(value: &Value, pretty: bool, escapes: u8) -> String {
    let text =
        if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    let text = text.unwrap();
    let units = |c: char| -> String {
        let mut units = [0; 2];
        c.encode_utf16(&mut units).iter().map(|it| format!("\\u{it:04X}")).collect()
    };
    let mut after_backslash = false;
    let escape = |c: char| -> String {
        let plain = !std::mem::take(&mut after_backslash);
        after_backslash = plain && c == '\\';
        match c {
            '/' if plain && 0 < escapes => "\\/".to_owned(),
            c if !c.is_ascii() && 0 < escapes => units(c),
            // No word, number or escape has one of these.
            'x' | 'z' if plain && 1 < escapes => units(c).to_lowercase(),
            c => c.to_string(),
        }
    };
    text.chars().map(escape).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Whatever comes, in whatever pieces, is the same when everything is in its place again.
    #[test]
    fn nothing_is_lost(
        value in any_answer(), pretty: bool, escapes in 0_u8..3,
        sizes in prop::collection::vec(1_usize..40, 1..6),
    ) {
        let text = written(&value, pretty, escapes);
        let message = sift(text.as_bytes(), &sizes);
        prop_assert!(matches!(message.sifted, Some(Sifted::Aside(_))), "{:?} {}", message, text);
        prop_assert!(json::scan(&message.text, |_, _| ()).is_ok());
        prop_assert_eq!(inflated(&message), text);
        for part in parts(&message) {
            prop_assert_eq!(said(part), said_otherwise(part));
        }
    }

    /// What is damaged is refused if, and only if, it would be refused whole.
    #[test]
    fn as_strict_as_the_scanner(
        value in any_answer(), pretty: bool, escapes in 0_u8..3,
        damage in prop::collection::vec((any::<prop::sample::Index>(), damage()), 1..3),
        sizes in prop::collection::vec(1_usize..40, 1..6),
    ) {
        let mut text = written(&value, pretty, escapes).into_bytes();
        for (at, damage) in damage {
            let at = at.index(text.len() + 1);
            match damage {
                Damage::Cut => text.truncate(at),
                Damage::Insert(bytes) => drop(text.splice(at..at, bytes)),
                Damage::Replace(byte) => text.iter_mut().skip(at).take(1).for_each(|it| *it = byte),
                Damage::Remove => drop(text.splice(at..(at + 1).min(text.len()), [])),
            }
        }
        let message = sift(&text, &sizes);
        let accepted = !matches!(message.sifted, Some(Sifted::Broken(_)));
        prop_assert_eq!(accepted, json::scan(&text, |_, _| ()).is_ok(), "{:?} {:?}", message, String::from_utf8_lossy(&text));
    }

    #[test]
    fn no_bytes_make_it_panic(text: Vec<u8>, sizes in prop::collection::vec(1_usize..40, 1..6)) {
        let accepted = !matches!(sift(&text, &sizes).sifted, Some(Sifted::Broken(_)));
        prop_assert_eq!(accepted, json::scan(&text, |_, _| ()).is_ok());
    }
}

#[derive(Debug, Clone)]
enum Damage {
    Cut,
    Remove,
    Replace(u8),
    Insert(Vec<u8>),
}

fn damage() -> impl Strategy<Value = Damage> {
    let tokens = [
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\\u",
        "\\ud800",
        "0",
        "-",
        ".",
        "e",
        "\n",
        "\u{1}",
        "null",
        "\"text\":1,",
        "é",
    ];
    prop_oneof![
        Just(Damage::Cut),
        Just(Damage::Remove),
        any::<u8>().prop_map(Damage::Replace),
        prop::sample::select(tokens.to_vec()).prop_map(|it| Damage::Insert(it.into())),
        any::<u8>().prop_map(|it| Damage::Insert(vec![it])),
    ]
}
