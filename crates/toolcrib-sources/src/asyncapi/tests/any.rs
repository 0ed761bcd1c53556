//! Whatever may stand in a file: nothing of it does harm.

use proptest::prelude::*;
use serde_json::Value;

use super::*;

/// Anything that could stand in a document, often under names that mean something there.
fn anything() -> impl Strategy<Value = Value> {
    let words = vec![
        "$ref",
        "channel",
        "channels",
        "messages",
        "payload",
        "headers",
        "address",
        "x-agent-tool",
        "enabled",
        "name",
        "traits",
        "reply",
        "wait",
        "parameters",
        "location",
        "schemaFormat",
        "schema",
        "type",
        "object",
        "properties",
        "allOf",
        "items",
        "#/channels/c",
        "#/operations/o",
        "#",
        "#/channels/c/messages/m",
        "a.yaml#/x",
        "{x}",
        "a.{x}.b",
        "10s",
        "enum",
        "default",
    ];
    let word = prop::sample::select(words);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        word.clone().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 6, move |inner| {
        let key = prop_oneof![4 => word.clone().prop_map(str::to_owned), 1 => any::<String>()];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..5)
                .prop_map(|it| Value::Object(it.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Whatever stands where something else should: no panic, and what is a tool has a schema that holds.
    #[test]
    fn any_document(channel in anything(), message in anything(), operation in anything(), rest in anything()) {
        let mut operation = operation;
        if let Some(map) = operation.as_object_mut() {
            map.entry("x-agent-tool").or_insert(json!({ "enabled": true }));
            map.entry("channel").or_insert(json!({ "$ref": "#/channels/c" }));
        }
        let document = json!({ "asyncapi": "3.0.0", "channels": { "c": channel, "d": { "address": "a.{x}", "messages": { "m": message } } },
            "operations": { "o": operation, "p": { "channel": { "$ref": "#/channels/d" }, "x-agent-tool": { "enabled": true } } }, "components": rest });
        let folder = Folder::new(&[("events/a.json", &document.to_string()), ("events/b.yaml", &document.to_string())]);
        let loaded = folder.load();
        for tool in &loaded.tools {
            prop_assert_eq!(&tool.input_schema["type"], "object");
            let schema = Json::of(&tool.input_schema).unwrap();
            prop_assert!(toolcrib_catalogue::Validator::new(&schema).is_ok());
            tool.emission(&Json::parse(r#"{"x":"y","payload":{}}"#).unwrap()).ok();
        }
        for problem in &loaded.problems {
            prop_assert!(problem.subject.starts_with("events/"), "{}", problem);
        }
    }

    /// Text that is hardly a document.
    #[test]
    fn any_text(text in "[a-z:\\-\\[\\]{}&*!|>'\"#%@ \t\n]{0,80}") {
        let folder = Folder::new(&[("events/a.yaml", &text), ("events/b.json", &text)]);
        prop_assert!(!folder.load().problems.is_empty());
    }
}
