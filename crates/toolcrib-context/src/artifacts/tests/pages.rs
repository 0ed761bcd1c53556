//! Pages, one after the other, are the whole.

use std::io::Cursor;

use proptest::prelude::*;

use super::{ask, pages};
use crate::artifacts::{Body, Range, ReadLimits, Selector};

fn joined(bytes: &[u8], first: Selector, max_bytes: usize) -> String {
    let limits = ReadLimits { max_bytes, ..ReadLimits::default() };
    let pages = pages(&mut Cursor::new(bytes), "text/plain", first, &limits);
    let mut whole = String::new();
    for (at, page) in pages.iter().enumerate() {
        let text = page.as_text().unwrap();
        assert!(text.len() <= max_bytes, "a page of {} bytes", text.len());
        assert!(at == 0 || !text.is_empty(), "a page with nothing on it");
        if 0 < at {
            assert_eq!(page.from, pages[at - 1].to);
        }
        whole.push_str(text);
    }
    whole
}

#[test]
fn what_is_read_whole_is_what_it_was() {
    let json = r#"{"a": 1}"#;
    for (query, kind) in [
        ("", "application/json"),
        ("lines=0:", "application/json"),
        ("tail=99", "application/json"),
        ("head=3", "text/plain"),
        ("tail=3", "text/plain"),
    ] {
        let piece = ask(json, "application/json", query).unwrap();
        assert_eq!(piece.media_type, kind, "{query}");
        assert!(piece.as_text().is_some());
    }
    assert_eq!(ask("<p>", "text/html", "").unwrap().media_type, "text/html");
    assert_eq!(ask("x", "", "").unwrap().media_type, "text/plain");
    let pdf = b"%PDF-1.7\n\xe2\xe3\xcf\xd3\n1 0 obj\n".as_slice();
    let piece = ask(pdf, "application/pdf", "").unwrap();
    assert_eq!(
        (piece.body, piece.media_type.as_str()),
        (Body::Bytes(pdf.to_vec()), "application/pdf")
    );
    assert_eq!(piece.notes, ["this is not text: its bytes are given as they are"]);
    // A text in another encoding is text still.
    let latin = ask(b"caf\xe9".as_slice(), "text/plain", "").unwrap();
    assert_eq!(latin.as_text(), Some("caf�"));
}

proptest! {
    #[test]
    fn no_text_comes_as_it_is(bytes in prop::collection::vec(any::<u8>(), 0..60), chars in 1_u64..9, text in "[a-z]{0,70}") {
        // Also where only a later page shows that it is none.
        let whole = [text.repeat(2000).as_bytes(), &bytes].concat();
        let limits = ReadLimits { max_bytes: 70_000, ..ReadLimits::default() };
        let first = Selector::Head { chars: chars * 10_000, offset: 0 };
        let pages = pages(&mut Cursor::new(&whole), "image/png", first, &limits);
        let parts = pages.iter().map(|it| match &it.body {
            Body::Bytes(bytes) => bytes.as_slice(),
            Body::Text(text) => text.as_bytes(),
        });
        prop_assert_eq!(parts.collect::<Vec<_>>().concat(), whole);
    }

    #[test]
    fn lines(text in "([a-zäß😀]{0,9}\n?){0,12}", max in 8_usize..40) {
        let all = Selector::Lines { range: Range::default(), skip: 0 };
        prop_assert_eq!(joined(text.as_bytes(), all, max), text);
    }

    #[test]
    fn head(text in "[a-zäß😀\n]{0,60}", chars in 1_u64..9, max in 4_usize..40) {
        let all = Selector::Head { chars, offset: 0 };
        prop_assert_eq!(joined(text.as_bytes(), all, max), text);
    }

    #[test]
    fn some_lines(text in "([a-z]{0,4}\n?){0,12}", start in -14_i64..14, end in -14_i64..14) {
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let range = Range { start, end: Some(end) };
        let place = |at: i64| if at < 0 { lines.len().saturating_sub(at.unsigned_abs() as usize) } else { (at as usize).min(lines.len()) };
        let expected = lines[place(start)..place(end).max(place(start))].concat();
        prop_assert_eq!(joined(text.as_bytes(), Selector::Lines { range, skip: 0 }, 100), expected);
    }

    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..60), max in 4_usize..20) {
        let limits = ReadLimits { max_bytes: max, ..ReadLimits::default() };
        let all = Selector::Bytes { range: Range::default() };
        let pages = pages(&mut Cursor::new(&bytes), "image/png", all, &limits);
        let parts = pages.iter().map(|it| match &it.body {
            Body::Bytes(bytes) => bytes.as_slice(),
            Body::Text(_) => panic!("text"),
        });
        prop_assert_eq!(parts.collect::<Vec<_>>().concat(), bytes);
    }

    #[test]
    fn anything_can_be_shown(bytes in prop::collection::vec(any::<u8>(), 0..60), max in 4_usize..20) {
        let whole = String::from_utf8_lossy(&bytes);
        for first in [Selector::Head { chars: 5, offset: 0 }, Selector::Lines { range: Range::default(), skip: 0 }] {
            let shown = joined(&bytes, first, max);
            // A cut may show broken characters one by one; what is whole is the same.
            let valid = |text: &str| text.replace('�', "");
            prop_assert_eq!(valid(&shown), valid(&whole));
        }
    }

    #[test]
    fn the_tail_is_the_end(text in "[a-zäß😀\n]{0,60}", chars in 0_u64..70) {
        let piece = ask(&text, "text/plain", &format!("tail={chars}")).unwrap();
        let many = text.chars().count();
        let expected: String = text.chars().skip(many.saturating_sub(chars as usize)).collect();
        prop_assert_eq!(piece.as_text().unwrap(), expected.as_str());
        prop_assert_eq!(&text[piece.from as usize..], expected.as_str());
    }
}
