//! That a message which is sifted is the message that came: as strictly read, and with nothing lost.

mod random;

use std::{fs, fs::File, io::Read, path::PathBuf, sync::LazyLock};

use nix::{
    fcntl::{FcntlArg, SealFlag, fcntl},
    sys::memfd::{MFdFlags, memfd_create},
};

use serde_json::{Value, json};

use super::*;

/// Where files go in these tests. They have no names, so all share it.
static FOLDER: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("toolcrib-sift-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    folder
});

/// Parts of more than so many bytes are put aside here.
const PART: usize = 12;

fn spool() -> Spool {
    Spool { part: PART, step: 7, ..Spool::new(&*FOLDER) }
}

/// What becomes of a text that comes in pieces of these sizes, over and over.
fn sift(text: &[u8], sizes: &[usize]) -> Message {
    sift_with(Sifter::new(spool(), 1_000_000), text, sizes).unwrap()
}

fn sift_with(mut sifter: Sifter, text: &[u8], sizes: &[usize]) -> Result<Message, SiftError> {
    let (mut rest, mut sizes) = (text, sizes.iter().cycle());
    while !rest.is_empty() {
        let (piece, left) = rest.split_at((*sizes.next().unwrap()).clamp(1, rest.len()));
        sifter.feed(piece)?;
        rest = left;
    }
    Ok(sifter.finish())
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

/// Every part that was put aside knows in which part of `content` it stood.
fn check_within(message: &Message) {
    let Some(result) = json::member(&message.text, "result") else { return };
    let result = &message.text[result];
    for part in parts(message) {
        let begin = match part.place {
            Place::Structure => json::member(result, "structuredContent").unwrap().start,
            Place::Content(number, _) => {
                let content = json::member(result, "content").unwrap();
                let members = json::members(&result[content.clone()]);
                content.start + members[number].1.start
            }
        };
        assert_eq!(part.within, begin);
        assert!(begin <= part.at);
    }
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
        check_within(&message);
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

const ANSWER: &str = r#"{"jsonrpc":"2.0","result":{"content":[{"text":"0123456789ab"},{"text":"\u00e9\/ cdefghijkl","data":"ABCDEFGHIJKLMNOP"}],"structuredContent":[1,2,3,4,5,6,7],"more":"0123456789abcdef"},"id":7}"#;

/// What is left of it where everything large is lost.
const REST: &str = r#"{"jsonrpc":"2.0","result":{"content":[{"text":""},{"text":"","data":""}],"structuredContent":null,"more":"0123456789abcdef"},"id":7}"#;

/// The key that was read last counts, too.
const SLACK: usize = "structuredContent".len();

/// A sifter whose disk has room for so much.
fn on_a_disk_of(room: u64, max_kept: usize) -> Sifter {
    let file = File::from(memfd_create("disk", MFdFlags::MFD_ALLOW_SEALING).unwrap());
    file.set_len(room).unwrap();
    fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::F_SEAL_GROW)).unwrap();
    let mut sifter = Sifter::new(spool(), max_kept);
    sifter.writing = Some(Writing::on(file, sifter.spool.step));
    sifter
}

fn without_a_folder(max_kept: usize) -> Sifter {
    let gone = Spool { folder: FOLDER.join("gone"), ..spool() };
    Sifter::new(gone, max_kept)
}

#[test]
fn all_parts_of_a_message_share_a_file() {
    let folder = FOLDER.join("share");
    fs::create_dir_all(&folder).unwrap();
    let open = || {
        let open = fs::read_dir("/proc/self/fd").unwrap().flatten();
        let open = open.filter_map(|it| fs::read_link(it.path()).ok());
        open.filter(|it| it.starts_with(&folder)).count()
    };
    let parts_: Vec<Value> =
        (0..300).map(|n| json!({ "text": format!("part number {n:06}") })).collect();
    let text = json!({ "id": 7, "result": { "content": parts_ } }).to_string();
    let sifter = Sifter::new(Spool { folder: folder.clone(), ..spool() }, 1_000_000);
    let message = sift_with(sifter, text.as_bytes(), &[1000]).unwrap();
    assert_eq!((parts(&message).len(), open()), (300, 1));
    let readers: Vec<_> = parts(&message).iter().map(|it| (it.open(), it.open_raw())).collect();
    assert_eq!((readers.len(), open()), (300, 1));
    assert_eq!(said(&parts(&message)[299]), "part number 000299");
    assert_eq!(inflated(&message), text);
    drop((message, readers));
    assert_eq!(open(), 0);
}

/// Wherever the disk is full, and whatever there is room for in memory.
#[test]
fn what_cannot_be_put_aside_stays_in_memory() {
    let disks = (0..70).map(Some).chain([None]);
    for (room, size) in disks.flat_map(|room| [1, 5, 1000].map(|size| (room, size))) {
        let sifter = |max_kept| match room {
            Some(room) => on_a_disk_of(room, max_kept),
            None => without_a_folder(max_kept),
        };
        let message = sift_with(sifter(ANSWER.len() + SLACK), ANSWER.as_bytes(), &[size]).unwrap();
        assert_eq!(inflated(&message), ANSWER, "{room:?} {size}");
        let Ok(Frame::Response { answer, .. }) = message.read() else { panic!() };
        let answered = message.answer(answer).unwrap();
        let aside = answered.aside.map_or(0, |it| it.parts.len());
        // 12 bytes, then 19, 16 and 15.
        let fit = [12, 31, 47, 62].iter().filter(|it| **it <= room.unwrap_or(0)).count();
        assert_eq!(aside, fit, "{room:?} {size}");
    }
}

#[test]
fn where_there_is_no_room_in_memory_either_the_answer_says_so() {
    let causes = [
        (None, "No such file or directory (os error 2)"),
        (Some(0), "Operation not permitted (os error 1)"),
        (Some(20), "Operation not permitted (os error 1)"),
        (Some(50), "Operation not permitted (os error 1)"),
    ];
    for (room, cause) in causes {
        for (max_kept, size) in (0..ANSWER.len()).flat_map(|it| [1, 5, 1000].map(|size| (it, size)))
        {
            let sifter = match room {
                Some(room) => on_a_disk_of(room, max_kept),
                None => without_a_folder(max_kept),
            };
            let message = match sift_with(sifter, ANSWER.as_bytes(), &[size]) {
                Ok(message) => message,
                // A part that may still turn out to be small is kept, too.
                Err(error) => {
                    assert!(
                        max_kept < REST.len() + PART + SLACK,
                        "{error} {room:?} {max_kept} {size}"
                    );
                    continue;
                }
            };
            assert!(message.text.len() <= max_kept);
            let Ok(Frame::Response { id: Some(id), answer }) = message.read() else { panic!() };
            assert_eq!(id, Id::number(7));
            match message.answer(answer) {
                Ok(_) => assert_eq!(inflated(&message), ANSWER),
                Err(error) => {
                    assert_eq!(message.text, REST, "{room:?} {max_kept} {size}");
                    let expected = format!("its answer is large, and cannot be put aside: {cause}");
                    assert_eq!(error.to_string(), expected);
                }
            }
        }
    }
}
