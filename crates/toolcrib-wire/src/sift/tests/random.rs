//! The same for whatever comes, in whatever pieces.

use proptest::prelude::*;

use super::*;

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
        check_within(&message);
        for part in parts(&message) {
            prop_assert_eq!(said(part), said_otherwise(part));
        }
    }

    /// Nor is anything where the disk is full.
    #[test]
    fn nothing_is_lost_on_a_full_disk(
        value in any_answer(), pretty: bool, escapes in 0_u8..3, room in 0_u64..200,
        sizes in prop::collection::vec(1_usize..40, 1..6),
    ) {
        let text = written(&value, pretty, escapes);
        let message = sift_with(on_a_disk_of(room, 2 * text.len() + SLACK), text.as_bytes(), &sizes).unwrap();
        prop_assert_eq!(inflated(&message), text);
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
