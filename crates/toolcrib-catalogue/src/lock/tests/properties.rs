//! What holds of any definition and of any text.

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::*;

/// Texts in which something is hidden, escaped, or taken for a line of the file.
fn text() -> impl Strategy<Value = String> {
    let pieces = vec![
        "a",
        "b ",
        "type",
        "\n",
        "\r\n",
        "\"",
        "\\",
        ".",
        "end",
        "\u{200b}",
        "\u{e0041}",
        "é",
        "  ",
        "#",
        "=======",
        "\u{0}",
        "\u{7f}",
        "\u{2028}",
        "<<<<<<<",
        "name",
        "",
    ];
    let piece =
        prop_oneof![9 => prop::sample::select(pieces).prop_map(String::from), 1 => any::<String>()];
    prop::collection::vec(piece, 0..5).prop_map(|it| it.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|it: f64| json!(it)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..4)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

/// Keywords of schemas, so that all of what is said of them comes up.
fn key() -> impl Strategy<Value = String> {
    let known = vec![
        "properties",
        "required",
        "type",
        "enum",
        "minimum",
        "maxLength",
        "pattern",
        "default",
        "description",
        "items",
        "anyOf",
        "$defs",
        "additionalProperties",
        "readOnlyHint",
        "title",
        "x",
    ];
    prop_oneof![3 => prop::sample::select(known).prop_map(String::from), 1 => text()]
}

fn definition() -> impl Strategy<Value = Map<String, Value>> {
    let member = prop::sample::select(vec![
        "title",
        "description",
        "inputSchema",
        "outputSchema",
        "annotations",
        "icons",
        "_meta",
        "other",
    ]);
    let members = prop::collection::vec((member.prop_map(String::from), value()), 0..7);
    let name = text().prop_filter("a tool has a name", |it| !it.is_empty());
    (name, members).prop_map(|(name, members)| {
        let mut all: Map<String, Value> = members.into_iter().collect();
        all.insert("name".to_owned(), Value::from(name));
        all
    })
}

fn read(definition: &Map<String, Value>) -> Tool {
    Tool::read(Json::of(definition).unwrap()).unwrap()
}

/// The same value with the keys of all objects the other way round, and spaces where they may be.
fn turned(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            members.iter().rev().map(|(key, value)| (key.clone(), turned(value))).collect()
        }
        Value::Array(items) => items.iter().map(turned).collect(),
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn the_order_of_keys_and_spaces_do_not_matter(it in definition()) {
        let other = serde_json::to_string_pretty(&turned(&Value::Object(it.clone()))).unwrap();
        prop_assert_eq!(hash(&read(&it)), hash(&tool(&other)));
        prop_assert_eq!(ToolPin::new(&read(&it)), ToolPin::new(&tool(&other)));
    }

    /// The hash differs if and only if something differs, and then there are words for it.
    #[test]
    fn every_change_is_noticed_and_has_a_meaning(one in definition(), key in 0..8_usize, to in value(), gone: bool) {
        let mut other = one.clone();
        let keys = ["title", "description", "inputSchema", "outputSchema", "annotations", "icons", "_meta", "other"];
        if gone { other.remove(keys[key]); } else { other.insert(keys[key].to_owned(), to); }
        let (before, now) = (read(&one), read(&other));
        let changed = one.get(keys[key]) != other.get(keys[key]);
        prop_assert_eq!(hash(&before) != hash(&now), changed);
        let meanings = meanings(&ToolPin::new(&before), &now);
        prop_assert_eq!(meanings.is_empty(), !changed);
        for it in meanings {
            prop_assert!(!it.text.is_empty() && it.text.chars().count() < 1200, "{}", it.text);
            prop_assert!(!it.text.contains(canonical::is_hidden), "{:?}", it.text);
        }
    }

    #[test]
    fn any_lock_is_read_as_it_was_written(
        sources in prop::collection::vec((text(), prop::collection::vec(definition(), 0..4), any::<bool>()), 0..4),
        turn: bool,
    ) {
        let mut lock = Lock::default();
        for (name, tools, has_way) in &sources {
            let mut tools: Vec<Tool> = tools.iter().map(read).collect();
            tools.sort_by(|a, b| a.name.cmp(&b.name));
            tools.dedup_by(|a, b| a.name == b.name);
            if turn { tools.reverse(); }
            let way = has_way.then(|| Way::process(name, [name, "x"]).variables([name.as_str()]));
            lock.pin(server(name), way, &tools);
        }
        let text = lock.write();
        prop_assert!(!text.replace('\n', "").contains(canonical::is_hidden));
        prop_assert_eq!(Lock::read(&text), (lock, vec![]));
    }

    #[test]
    fn the_order_of_tools_does_not_matter(mut tools in prop::collection::vec(definition(), 0..5)) {
        tools.sort_by_key(|it| it["name"].to_string());
        tools.dedup_by_key(|it| it["name"].to_string());
        let written = |tools: &[Tool]| {
            let mut lock = Lock::default();
            lock.pin(server("s"), None, tools);
            lock.write()
        };
        let mut tools: Vec<Tool> = tools.iter().map(read).collect();
        let before = written(&tools);
        tools.reverse();
        prop_assert_eq!(written(&tools), before);
    }

    #[test]
    fn any_text_can_be_read(lines in prop::collection::vec(prop_oneof![
        any::<String>(),
        text(),
        text().prop_map(|it| format!("tool server:s {it}")),
        text().prop_map(|it| format!("  {it} \"x\"")),
        Just("version 1".to_owned()),
    ], 0..12)) {
        let (lock, _) = Lock::read(&lines.join("\n"));
        let (again, problems) = Lock::read(&lock.write());
        prop_assert_eq!(problems, vec![]);
        prop_assert!(again.sources().eq(lock.sources()));
    }
}
