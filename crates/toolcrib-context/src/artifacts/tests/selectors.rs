//! Selectors in all their forms.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::artifacts::{
    Aggregate, ArtifactId, Measure, Range, Selector, Test, artifact_uri, parse_artifact_uri,
};

fn any_selector() -> impl Strategy<Value = Selector> {
    let range = || {
        (any::<i32>(), any::<Option<i32>>())
            .prop_map(|(start, end)| Range { start: start.into(), end: end.map(i64::from) })
    };
    let path = || "\\$(\\.[a-zä]{1,3}|\\['[^'\\\\]{0,3}'\\]){0,3}";
    let column = || "[a-z&=%+ ]{1,5}x";
    let test = (column(), any::<bool>(), ".{0,5}").prop_map(|(column, equal, value)| Test {
        column: column.replace('=', "-").trim().to_owned(),
        equal,
        value,
    });
    let measures = prop_oneof![
        Just((Measure::Count, None)),
        column().prop_map(|it| (Measure::Count, Some(it))),
        column().prop_map(|it| (Measure::Sum, Some(it))),
        column().prop_map(|it| (Measure::Avg, Some(it))),
    ];
    prop_oneof![
        (any::<u64>(), any::<u64>()).prop_map(|(chars, offset)| Selector::Head { chars, offset }),
        any::<u64>().prop_map(|chars| Selector::Tail { chars }),
        (range(), any::<u64>()).prop_map(|(range, skip)| Selector::Lines { range, skip }),
        (range(), prop::option::of(path()))
            .prop_map(|(range, path)| Selector::Rows { range, path }),
        (path(), prop::collection::vec(".{0,4}", 0..3), any::<u64>())
            .prop_map(|(path, names, from)| Selector::Keys { path, names, from }),
        (path(), any::<u64>()).prop_map(|(path, from)| Selector::Path { path, from }),
        (".{0,9}", any::<bool>(), any::<u64>(), any::<u64>()).prop_map(
            |(pattern, ignore_case, context, from)| Selector::Grep {
                pattern,
                ignore_case,
                context,
                from
            }
        ),
        range().prop_map(|range| Selector::Bytes { range }),
        (
            prop::collection::vec(measures, 1..4),
            prop::option::of(column()),
            prop::collection::vec(test, 0..3),
            1_u64..99,
            any::<u64>()
        )
            .prop_map(|(mut measures, group_by, mut tests, top, from)| {
                measures.sort();
                measures.dedup();
                // Said twice, it is meant once.
                if tests.first() == tests.last() {
                    tests.truncate(1);
                }
                Selector::Aggregate(Aggregate { measures, group_by, tests, top, from, path: None })
            }),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(selector in any_selector()) {
        prop_assert_eq!(Selector::from_query(&selector.to_query()), Ok(selector.clone()));
        let json = serde_json::to_value(&selector).unwrap();
        prop_assert_eq!(serde_json::from_value::<Selector>(json).unwrap(), selector.clone());
        let id = ArtifactId::random().unwrap();
        let uri = artifact_uri(&id, Some(&selector));
        prop_assert!(uri.is_ascii() && !uri.contains([' ', '"', '<', '#']));
        prop_assert_eq!(parse_artifact_uri(&uri), Some(Ok((id, Some(selector)))));
    }

    #[test]
    fn nothing_is_too_strange(query in ".{0,40}", word in "(head|lines|rows|keys|path|grep|where|top|sum)", text in ".{0,10}") {
        Selector::from_query(&query).ok();
        Selector::from_query(&format!("{word}={text}&{query}")).ok();
        Selector::try_from(Map::from_iter([(word, Value::from(text))])).ok();
        parse_artifact_uri(&query);
    }
}

#[test]
fn as_a_model_asks() {
    let read =
        |it: Value| serde_json::from_value::<Selector>(it).map_err(|error| error.to_string());
    let lines = |start, end| Ok(Selector::Lines { range: Range { start, end }, skip: 0 });
    assert_eq!(read(json!({ "lines": "0:20" })), lines(0, Some(20)));
    assert_eq!(read(json!({ "lines": [5, 7], "path": null })), lines(5, Some(7)));
    assert_eq!(read(json!({ "lines": "-3:" })), lines(-3, None));
    assert_eq!(read(json!({ "lines": 7 })), lines(7, Some(8)));
    assert_eq!(read(json!({ "type": "lines", "start": 1, "end": 3 })), lines(1, Some(3)));
    assert_eq!(read(json!({})), Ok(Selector::default()));
    assert_eq!(read(json!({ "head": 100 })), Ok(Selector::Head { chars: 100, offset: 0 }));
    assert_eq!(
        read(json!({ "keys": ["a", "b"] })),
        Ok(Selector::Keys {
            path: "$".to_owned(),
            names: vec!["a".to_owned(), "b".to_owned()],
            from: 0
        })
    );
    let Ok(Selector::Aggregate(sums)) = read(
        json!({ "sum": ["price", "tax"], "count": true, "group_by": "city", "where": { "year": 2024 } }),
    ) else {
        panic!("no aggregate");
    };
    assert_eq!(sums.measures.len(), 3);
    assert_eq!(
        sums.tests,
        [Test { column: "year".to_owned(), equal: true, value: "2024".to_owned() }]
    );
    let columns = |many: usize| (0..many).map(|it| format!("c{it}")).collect::<Vec<_>>();
    let Ok(Selector::Aggregate(sums)) = read(json!({
        "sum": vec!["price"; 50], "count": columns(15), "where": vec!["a=1"; 50],
    })) else {
        panic!("no aggregate");
    };
    assert_eq!((sums.measures.len(), sums.tests.len()), (16, 1));
    let tests: Vec<String> = columns(17).iter().map(|it| format!("{it}=1")).collect();
    let rows = [
        (json!({ "sum": "a", "count": columns(16) }), "`sum` takes sixteen of its kind at most"),
        (json!({ "sum": "a", "where": tests }), "`where` takes sixteen of its kind at most"),
        (json!({ "lnes": "0:20" }), "there is no selector `lnes`; there are head, tail,"),
        (json!({ "lines": "0-20" }), "`lines` takes a range such as 0:20, not `0-20`"),
        (json!({ "lines": "0:2", "grep": "x" }), "`lines` and `grep` cannot be asked for together"),
        (json!({ "group_by": "x" }), "`group_by` needs one of count, sum"),
        (json!({ "sum": "" }), "`sum` takes a column, not ``"),
        (json!({ "sum": "a", "where": "b" }), "`where` takes column=value, not `b`"),
        (json!({ "type": "zip" }), "there is no selector `zip`"),
        (json!({ "grep": "x".repeat(20_000) }), "`selector` takes 16 kB at most"),
    ];
    for (given, expected) in rows {
        let error = read(given).unwrap_err();
        assert!(error.starts_with(expected), "{error}");
    }
}
