//! `network.yaml`: what the schema says of each key, the reader does. The schema itself says what to try.

use serde_json::{Map, Value, json};
use toolcrib::Network;

use super::{faults, schema};
use crate::kit::Folder;

/// A key, and files with and without it.
struct Tried<'a> {
    /// `external_access: groups: x`.
    place: &'a str,
    key: &'a str,
    schema: &'a Value,
    /// Whether keys that are not known are told here.
    closed: bool,
    /// A file in which the key has a value, or in which it is another key.
    with: &'a dyn Fn(&str, Option<Value>) -> Value,
}

/// Goes through all keys.
fn walk(
    place: &str,
    schema: &Value,
    wrap: &dyn Fn(Value) -> Value,
    visit: &mut dyn FnMut(Tried<'_>),
) {
    if let Some(properties) = schema["properties"].as_object() {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        let base: Map<String, Value> = required
            .iter()
            .filter_map(Value::as_str)
            .map(|it| {
                (it.to_owned(), properties[it]["examples"].get(0).cloned().unwrap_or(json!("x")))
            })
            .collect();
        let with = |key: &str, value: Option<Value>| {
            let more = value.map(|it| (key.to_owned(), it));
            wrap(base.clone().into_iter().chain(more).collect::<Map<_, _>>().into())
        };
        let closed = schema["additionalProperties"] == false;
        for (key, inside) in properties {
            visit(Tried { place, key, schema: inside, closed, with: &with });
            let below = if place.is_empty() { key.clone() } else { format!("{place}: {key}") };
            walk(&below, inside, &|it| with(key, Some(it)), visit);
        }
    }
    if schema["additionalProperties"].is_object() {
        walk(
            &format!("{place}: x"),
            &schema["additionalProperties"],
            &|it| wrap(json!({ "x": it })),
            visit,
        );
    }
    if schema["items"].is_object() {
        walk(&format!("{place}: 1"), &schema["items"], &|it| wrap(json!([it])), visit);
    }
    for choice in schema["anyOf"].as_array().into_iter().flatten() {
        walk(place, choice, wrap, visit);
    }
}

fn read(file: &Value) -> Result<Network, String> {
    let folder = Folder::new();
    folder.write("network.yaml", file.to_string());
    let read = Network::read(folder.path(), &|_| None).map_err(|it| it.to_string());
    read.map(|mut it| {
        // Where it lies is not what it says.
        it.python.workspace = "w".into();
        it.python.home = "h".into();
        it
    })
}

fn told(network: &Network) -> String {
    let all = network.problems.iter().chain(&network.warnings);
    all.map(|it| format!("{}: {} ({:?})\n", it.subject, it.message, it.hint)).collect()
}

/// The words that a key takes, and the truth values.
fn words(schema: &Value) -> Vec<Value> {
    let own = schema["enum"].as_array().cloned().unwrap_or_default();
    let choices = schema["anyOf"].as_array().cloned().unwrap_or_default();
    own.into_iter().chain(choices.iter().flat_map(words)).filter(|it| !it.is_null()).collect()
}

/// Calls it with every key of the schema.
fn each(mut visit: impl FnMut(&Value, Tried<'_>)) {
    let schema = schema("network");
    let mut keys = 0;
    walk("", &schema, &|it| it, &mut |tried| {
        keys += 1;
        visit(&schema, tried);
    });
    assert!(90 < keys, "only {keys} keys");
}

#[test]
fn keys_of_the_schema_are_known_to_the_reader_and_others_are_not() {
    each(|schema, it| {
        let Tried { place, key, .. } = it;
        let passed_over =
            it.schema["description"].as_str().unwrap_or_default().starts_with("Passed");
        assert!(it.schema["description"].is_string(), "{place}: {key} is not described");
        let other = (it.with)("no_such_key_here", Some(json!(1)));
        assert_eq!(faults(schema, &other).is_empty(), !it.closed, "{place}: {other}");
        let seen = read(&other).map(|it| told(&it)).unwrap_or_else(|it| it);
        assert_eq!(seen.contains("no_such_key_here"), it.closed, "{place}: {seen}");
        // Whoever misspells a key is told which was meant. The files of `tls` are refused at once.
        if it.closed && place != "tls" && !passed_over {
            let seen = told(&read(&(it.with)(&format!("{key}_"), Some(json!(1)))).unwrap());
            assert!(seen.contains(&format!("did you mean `{key}`?")), "{place}: {key}: {seen}");
        }
    });
}

#[test]
fn words_of_the_schema_are_those_that_the_reader_takes() {
    let mut tried = 0;
    each(|schema, it| {
        let Tried { place, key, .. } = it;
        let words = words(it.schema);
        for word in &words {
            let file = (it.with)(key, Some(word.clone()));
            assert_eq!(faults(schema, &file), [""; 0], "{place}: {key}: {word}");
            if let Err(error) = read(&file) {
                panic!("{place}: {key}: {word}: {error}");
            }
            tried += 1;
        }
        if !words.is_empty() {
            let file = (it.with)(key, Some(json!("nonsense")));
            assert!(!faults(schema, &file).is_empty(), "{place}: {key}");
            let error = read(&file).unwrap_err();
            let listed = |it: &&Value| it.as_str().is_some_and(|it| !error.contains(it));
            assert_eq!(words.iter().find(listed), None, "{place}: {key}: {error}");
            // `x` is none of a, b, c: there is no d.
            if let Some((_, list)) = error.split_once(" is none of ") {
                let strings = words.iter().filter(|it| it.is_string()).count();
                assert_eq!(list.split(", ").count(), strings, "{place}: {key}: {error}");
            }
        }
    });
    assert!(30 < tried, "only {tried} words");
}

#[test]
fn defaults_of_the_schema_are_what_holds_without_the_key() {
    let mut tried = 0;
    each(|schema, it| {
        let Tried { place, key, .. } = it;
        let default = &it.schema["default"];
        if !default.is_null() {
            let (with, without) = ((it.with)(key, Some(default.clone())), (it.with)(key, None));
            assert_eq!(faults(schema, &with), [""; 0], "{place}: {key}");
            let [with, without] = [with, without].map(|it| format!("{:?}", read(&it).unwrap()));
            assert_eq!(with, without, "{place}: {key}");
            tried += 1;
        }
        for example in it.schema["examples"].as_array().into_iter().flatten() {
            let file = (it.with)(key, Some(example.clone()));
            assert_eq!(faults(schema, &file), [""; 0], "{place}: {key}");
            if let Err(error) = read(&file) {
                panic!("{place}: {key}: {example}: {error}");
            }
        }
    });
    assert!(30 < tried, "only {tried} defaults");
}

#[test]
fn what_is_no_time_size_or_rate_is_flagged_as_it_is_refused() {
    each(|schema, it| {
        if it.schema["pattern"].is_string() {
            let Tried { place, key, .. } = it;
            for bad in ["soon", "12y", "10/d", "", "-1"] {
                let file = (it.with)(key, Some(json!(bad)));
                assert!(!faults(schema, &file).is_empty(), "{place}: {key}: {bad}");
                assert!(read(&file).is_err(), "{place}: {key}: {bad}");
            }
        }
    });
}
