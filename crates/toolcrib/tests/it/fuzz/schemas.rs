//! The guard before schemas under fire, and everything that is made of a schema after it.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use toolcrib_catalogue::{Checked, Formats, Json, Look, OnFault, Tool, Validator};

use super::fuzz;
use crate::kit::within;

/// No check takes longer, in processor time of its thread.
const CHECK: Duration = Duration::from_millis(50);

/// Nor a look at a definition, which reads its two schemas, or one of them alone.
const LOOK: Duration = Duration::from_millis(250);

const WORDS: &[&str] = &[
    "$ref",
    "$defs",
    "$id",
    "$anchor",
    "$dynamicRef",
    "$dynamicAnchor",
    "$schema",
    "#",
    "#/$defs/a",
    "#/$defs/b",
    "#a",
    "other.json",
    "http://127.0.0.1:1/x",
    "urn:x:y",
    "https://json-schema.org/draft/2020-12/schema",
    "http://json-schema.org/draft-07/schema#",
    "properties",
    "patternProperties",
    "additionalProperties",
    "unevaluatedProperties",
    "propertyNames",
    "required",
    "dependencies",
    "dependentSchemas",
    "items",
    "prefixItems",
    "unevaluatedItems",
    "contains",
    "minContains",
    "uniqueItems",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "enum",
    "const",
    "type",
    "object",
    "string",
    "integer",
    "multipleOf",
    "minimum",
    "maxLength",
    "pattern",
    "^(a+)+$",
    "(x?y?z?[a-q]?){1,150}$",
    "((a{1,1000}){1,1000}){1,1000}",
    "(?=a)",
    "\\p{L}+",
    "format",
    "email",
    "uri",
    "date-time",
    "a",
    "b",
    "~1",
    "%25",
];

/// A schema, and below it a value.
fn seeds() -> Vec<Vec<u8>> {
    let tree = json!({ "type": "object", "properties": { "a": { "$ref": "#" }, "b": { "$ref": "#/$defs/a" } },
        "$defs": { "a": { "type": ["string", "null"], "pattern": "^(a+)+$", "maxLength": 9 } },
        "additionalProperties": false, "required": ["b"] });
    let forms = json!({ "oneOf": [{ "type": "integer", "multipleOf": 0.01 }, { "enum": ["a", 1.0] },
        { "not": { "const": null } }], "if": { "type": "object" }, "then": { "unevaluatedProperties": false },
        "else": { "minLength": 2 } });
    let based = json!({ "$id": "http://x/y/", "$ref": "z", "$defs": { "z": { "$id": "z", "$anchor": "a",
        "$dynamicAnchor": "d", "prefixItems": [{ "$dynamicRef": "#d" }, true], "contains": { "$ref": "#a" } } } });
    let old = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "definitions": { "a": { "$id": "#a" } },
        "items": [{ "$ref": "#a" }], "additionalItems": false, "dependencies": { "a": ["b"], "b": {} } });
    let pairs = [
        (tree, json!({ "a": { "b": "aaa" }, "b": null, "c": 1 })),
        (forms, json!({ "a": [1.25, "a", null] })),
        (based, json!([[[]], 1, { "a": 1e2 }])),
        (old, json!([1, 2, { "a": 0 }])),
    ];
    pairs.iter().map(|(schema, value)| format!("{schema}\n{value}").into_bytes()).collect()
}

/// Any schema is read or refused in bounded time, any value checked, and what goes on to clients is no burden to them.
#[test]
fn fuzz_schemas() {
    fuzz("schemas", &seeds(), WORDS, |bytes| {
        let text = String::from_utf8_lossy(bytes);
        let (schema, value) = text.split_once('\n').unwrap_or((&text, "{}"));
        let Ok(schema) = Json::parse(schema.to_owned()) else { return };
        let validator = within(LOOK, || Validator::read(&schema, Formats::Asserted));
        look_at(&schema, validator.is_err());
        let (Ok(validator), Ok(value)) = (validator, Json::parse(value.to_owned())) else { return };
        let found = within(CHECK, || validator.check(&value));
        assert_eq!(within(CHECK, || validator.check_output(&value)).is_ok(), found.is_ok());
        if let Err(faults) = &found {
            let said = faults.to_string();
            assert!(!faults.list().is_empty() && said.len() < 100_000, "{} bytes", said.len());
        }
        if let Some((repaired, said)) = within(2 * CHECK, || validator.repair(&value)) {
            assert!(found.is_err() && !said.is_empty() && validator.check(&repaired).is_ok());
        }
        validator.declares("a");
    });
}

/// The same schema as that of a tool's arguments and of its result.
fn look_at(schema: &Json, is_at_fault: bool) {
    let text = schema.as_str();
    let raw = format!(r#"{{"name":"t","inputSchema":{text},"outputSchema":{text}}}"#);
    let Ok(tool) = Json::parse(raw).map_err(drop).and_then(|it| Tool::read(it).map_err(drop))
    else {
        return;
    };
    let tool = Arc::new(tool);
    let look = within(2 * LOOK, || Look::at(&tool, OnFault::RefuseRemote));
    // What is hidden in it is taken out before it is read.
    let same = look.tool.raw.as_bytes() == tool.raw.as_bytes();
    let strict = matches!(look.input, Checked::Strict(_));
    assert!(!same || schema.as_bytes().first() != Some(&b'{') || strict != is_at_fault, "{text}");
    // A list of tools that is deeper than serde reads would be no message, and its server fails.
    let Ok(shown) = serde_json::from_str::<Value>(look.tool.raw.as_str()) else { return };
    if look.input.fault().is_some_and(|it| it.is_heavy() || it.is_remote()) {
        assert_eq!(shown["inputSchema"], json!({ "type": "object" }));
    }
}
