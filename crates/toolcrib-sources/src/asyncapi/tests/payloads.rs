//! Payloads and headers: what is published of them, and what a call makes of them.

use super::*;

#[test]
fn a_payload_is_published_as_it_is_written() {
    let messages = |payload: &str| format!("address: a.b, messages: {{m: {{payload: {payload}}}}}");
    let rest = "components:\n  schemas:\n    User: {type: object, properties: {name: {type: string}, boss: {$ref: '#/components/schemas/User'}}}\n    Alias: {$ref: '#/components/schemas/User'}\n    Loop: {$ref: '#/components/schemas/Pool'}\n    Pool: {$ref: '#/components/schemas/Loop'}\n";
    let one = |payload: &str| shown(&document(&messages(payload), ON, rest));
    insta::assert_snapshot!(one("{required: [a], type: object, properties: {a: {type: string, example: {$ref: x}}}, examples: [{$ref: y}]}"), @r#"o [a.b] {"required":["a"],"type":"object","properties":{"a":{"type":"string","example":{"$ref":"x"}}},"examples":[{"$ref":"y"}]}"#);
    insta::assert_snapshot!(one("{$ref: '#/components/schemas/Alias'}"), @r##"o [a.b] {"type":"object","properties":{"name":{"type":"string"},"boss":{"$ref":"#/$defs/User"}},"$defs":{"User":{"type":"object","properties":{"name":{"type":"string"},"boss":{"$ref":"#/$defs/User"}}}}}"##);
    insta::assert_snapshot!(one("{allOf: [{$ref: '#/components/schemas/User'}, {required: [name]}]}"), @r##"o [a.b] {"type":"object","allOf":[{"$ref":"#/$defs/User"},{"required":["name"]}],"$defs":{"User":{"type":"object","properties":{"name":{"type":"string"},"boss":{"$ref":"#/$defs/User"}}}}}"##);
    insta::assert_snapshot!(one("{$ref: '#/components/schemas/User', description: with more}"), @r##"o [a.b] {"type":"object","description":"with more","allOf":[{"$ref":"#/$defs/User"}],"$defs":{"User":{"type":"object","properties":{"name":{"type":"string"},"boss":{"$ref":"#/$defs/User"}}}}}"##);
    insta::assert_snapshot!(one("{$id: 'https://x/y', type: [object, 'null'], properties: {a: {$ref: '#/definitions/A'}}, definitions: {A: {type: integer}}}"), @r##"o [a.b] {"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},"definitions":{"A":{"type":"integer"}},"$defs":{"A":{"type":"integer"}}}"##);
    insta::assert_snapshot!(one("{type: object, properties: {a: {type: array, items: [{type: string}]}}}"), @r#"o [a.b] {"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"array","items":[{"type":"string"}]}}}"#);
    insta::assert_snapshot!(one("{type: object, dependencies: {a: [b]}}"), @r#"o [a.b] {"$schema":"http://json-schema.org/draft-07/schema#","type":"object","dependencies":{"a":["b"]}}"#);
    insta::assert_snapshot!(one("true"), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: channels: c: messages: m: payload: not as AsyncAPI 3.0.0 has it: it must be of type object
    "#);
    insta::assert_snapshot!(one("{type: strnig}"), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: channels: c: messages: m: payload: type: not as AsyncAPI 3.0.0 has it: it must be one of ["array","boolean","integer","null","number","object","string"]
    events/a.yaml: operations: o: message m: payload: no valid JSON Schema: at `#/type` the schema is not well formed: `"strnig"` cannot stand there; any object is taken
    "#);
    insta::assert_snapshot!(one("x"), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: channels: c: messages: m: payload: not as AsyncAPI 3.0.0 has it: it is not of types "boolean", "object"
    events/a.yaml: channels: c: messages: m: payload: not as AsyncAPI 3.0.0 has it: it must be of type object
    events/a.yaml: operations: o: message m: payload: a schema must be a mapping; any object is taken
    "#);
    insta::assert_snapshot!(one("{$ref: '#/components/schemas/Nope'}"), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: operations: o: message m: payload: `#/components/schemas/Nope` leads nowhere: there is no `Nope`; any object is taken
    "#);
    insta::assert_snapshot!(one("{type: object, properties: {a: {$ref: '#/components/schemas/Loop'}}}"), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: operations: o: message m: payload: `#/components/schemas/Pool` leads back to itself; any object is taken
    "#);
    insta::assert_snapshot!(one("{$ref: 7}"), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: channels: c: messages: m: payload: $ref: not as AsyncAPI 3.0.0 has it: it must be of type string
    events/a.yaml: operations: o: message m: payload: no valid JSON Schema: at `#/allOf/0/$ref` the schema is not well formed: 7 is not of type "string"; any object is taken
    "#);
    insta::assert_snapshot!(one("{type: object, properties: {a: {$dynamicRef: '#x'}}}"), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: operations: o: message m: payload: `$dynamicRef` is not understood; any object is taken
    "#);
}

#[test]
fn formats_that_are_json_schema_are_taken_for_it() {
    let one = |format: &str| {
        shown(&document(
            &format!(
                "address: a.b, messages: {{m: {{payload: {{schemaFormat: '{format}', schema: {{type: object, properties: {{a: {{type: string}}}}}}}}}}}}"
            ),
            ON,
            "",
        ))
    };
    for format in [
        "application/vnd.aai.asyncapi;version=3.0.0",
        "application/vnd.aai.asyncapi+yaml;version=3.0.0",
        "application/vnd.oai.openapi+json;version=3.0.0",
    ] {
        assert_eq!(
            one(format),
            "o [a.b] {\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\"}}}\n"
        );
    }
    insta::assert_snapshot!(one("application/schema+json;version=draft-07"), @r#"o [a.b] {"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"string"}}}"#);
    insta::assert_snapshot!(one("application/vnd.apache.avro;version=1.9.0"), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: channels: c: messages: m: payload: schema: type: not as AsyncAPI 3.0.0 has it: it must be one of ["null","boolean","int","long","float","double","bytes","string"]
    events/a.yaml: operations: o: message m: payload: schemas in the format `application/vnd.apache.avro;version=1.9.0` are not understood; any object is taken
    "#);
}

#[test]
fn a_payload_that_is_no_object_is_an_argument() {
    let messages = |payload: &str| format!("address: a.b, messages: {{m: {{payload: {payload}}}}}");
    let tool = good(&document(&messages("{type: string, minLength: 2}"), ON, ""));
    insta::assert_snapshot!(tool.input_schema, @r#"{"type":"object","properties":{"payload":{"type":"string","minLength":2}},"required":["payload"],"additionalProperties":false}"#);
    assert_eq!(call(&tool, r#"{"payload": "héy"}"#), r#"a.b "héy""#);
    insta::assert_snapshot!(call(&tool, r#"{"payload": 1, "x": 2}"#), @"refused: /x: there is no such argument; /payload: must be a string (type), found 1");
    insta::assert_snapshot!(call(&tool, "{}"), @"refused: /payload: required and not given");
    let tool = good(&document(&messages("{oneOf: [{type: string}, {type: array}]}"), ON, ""));
    assert_eq!(call(&tool, r#"{"payload":[1]}"#), "a.b [1]");
    let tool = good(&document(&messages("{oneOf: [{type: string}, {type: object}]}"), ON, ""));
    assert_eq!(call(&tool, r#"{"x":[1]}"#), r#"a.b {"x":[1]}"#);
}

#[test]
fn several_messages_are_alternatives() {
    let channel = "address: a.b, messages: {x: {payload: {type: object, properties: {x: {type: integer}}, required: [x]}}, y: {payload: {type: object, properties: {y: {type: integer}}, required: [y]}}, same: {payload: {type: object, properties: {y: {type: integer}}, required: [y]}}, text: {payload: {type: string}}, any: {name: any}}";
    let one = |names: &[&str]| {
        let list: Vec<String> =
            names.iter().map(|it| format!("{{$ref: '#/channels/c/messages/{it}'}}")).collect();
        good(&document(channel, &format!("messages: [{}], {ON}", list.join(", ")), ""))
    };
    let tool = one(&["x", "y"]);
    insta::assert_snapshot!(tool.input_schema, @r#"{"type":"object","oneOf":[{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},{"type":"object","properties":{"y":{"type":"integer"}},"required":["y"]}]}"#);
    // Both fit, and that is no fault.
    assert_eq!(call(&tool, r#"{"x":1,"y":2}"#), r#"a.b {"x":1,"y":2}"#);
    insta::assert_snapshot!(call(&tool, r#"{"z":1}"#), @"refused: none of the messages `x`, `y` fits; to be `x`: /x: is missing (required)");
    insta::assert_snapshot!(one(&["y", "same"]).input_schema, @r#"{"type":"object","properties":{"y":{"type":"integer"}},"required":["y"]}"#);
    insta::assert_snapshot!(one(&["x", "text"]).input_schema, @r#"{"type":"object","properties":{"payload":{"oneOf":[{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]},{"type":"string"}]}},"required":["payload"],"additionalProperties":false}"#);
    insta::assert_snapshot!(one(&["x", "any"]).input_schema, @r#"{"type":"object","properties":{},"required":[]}"#);
    insta::assert_snapshot!(good(&document("address: a.b", ON, "")).input_schema, @r#"{"type":"object","properties":{},"required":[]}"#);
    let list = format!("messages: {{x: 1}}, {ON}");
    insta::assert_snapshot!(shown(&document(channel, &list, "")), @"
    events/a.yaml: operations: o: messages: not as AsyncAPI 3.0.0 has it: it must be of type array
    events/a.yaml: operations: o: messages: `messages` must be a list; it is no tool
    ");
    insta::assert_snapshot!(shown(&document("address: a.b, messages: {a: {$ref: '#/gone'}, b: {payload: {type: object, required: [b]}}}", ON, "")), @r#"
    o [a.b] {"type":"object","required":["b"]}
    events/a.yaml: operations: o: message a: `#/gone` leads nowhere: there is no `gone`
    "#);
}

#[test]
fn headers_are_an_argument_of_their_own() {
    let message = |payload: &str| {
        format!(
            "address: a.b, messages: {{m: {{headers: {{type: object, properties: {{k: {{type: string}}}}, required: [k]}}, traits: [{{$ref: '#/components/messageTraits/t'}}], payload: {payload}}}}}"
        )
    };
    let rest = "components: {messageTraits: {t: {headers: {type: object, properties: {n: {type: integer}}}}}}\n";
    let tool = good(&document(
        &message("{type: object, additionalProperties: false, properties: {a: {type: string}}}"),
        ON,
        rest,
    ));
    insta::assert_snapshot!(tool.input_schema, @r#"{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"},"headers":{"type":"object","allOf":[{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},{"type":"object","properties":{"n":{"type":"integer"}}}]}},"required":["headers"]}"#);
    assert_eq!(
        call(&tool, r#"{"headers": {"k": "v", "n": 1.0e0}, "a": "b"}"#),
        r#"a.b {"a":"b"} {"k": "v", "n": 1.0e0}"#
    );
    insta::assert_snapshot!(call(&tool, r#"{"a": "b"}"#), @"refused: /headers: required and not given");
    insta::assert_snapshot!(call(&tool, r#"{"headers": {"n": "x"}, "b": 1}"#), @r#"refused: /b: is not known (additionalProperties), only `a`; /headers/k: is missing (required); /headers/n: must be an integer (type), found "x""#);
    let tool = good(&document(
        &message("{type: object, properties: {headers: {type: string}}}"),
        ON,
        rest,
    ));
    assert_eq!(
        call(&tool, r#"{"headers":"own","message_headers":{"k":"v"}}"#),
        r#"a.b {"headers":"own"} {"k":"v"}"#
    );
    // What takes no further properties anywhere inside cannot have them beside its own.
    let tool = good(&document(
        &message(
            "{type: object, allOf: [{type: object, additionalProperties: false, properties: {a: {type: string}}}]}",
        ),
        ON,
        rest,
    ));
    insta::assert_snapshot!(tool.input_schema, @r#"{"type":"object","properties":{"payload":{"type":"object","allOf":[{"type":"object","additionalProperties":false,"properties":{"a":{"type":"string"}}}]},"headers":{"type":"object","allOf":[{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},{"type":"object","properties":{"n":{"type":"integer"}}}]}},"required":["payload","headers"],"additionalProperties":false}"#);
    assert_eq!(
        call(&tool, r#"{"payload":{"a":"b"},"headers":{"k":"v"}}"#),
        r#"a.b {"a":"b"} {"k":"v"}"#
    );
}

#[test]
fn schemas_that_would_take_for_ever_are_refused() {
    let level = |it: usize| {
        format!(
            "    s{it}: {{allOf: [{{$ref: '#/components/schemas/s{}'}}, {{$ref: '#/components/schemas/s{}'}}]}}\n",
            it + 1,
            it + 1
        )
    };
    let doubling: String = (0..40).map(level).collect();
    let rest = format!("components:\n  schemas:\n{doubling}    s40: {{type: object}}\n");
    let text = document(
        "address: a.b, messages: {m: {payload: {$ref: '#/components/schemas/s0'}}}",
        ON,
        &rest,
    );
    insta::assert_snapshot!(shown(&text), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: operations: o: messages: its references lead to too many schemas; any object is taken
    "#);
    // A schema that is itself could never be checked.
    let text = document(
        "address: a.b, messages: {m: {payload: {allOf: [{$ref: '#/components/schemas/s'}]}}}",
        ON,
        "components: {schemas: {s: {anyOf: [{$ref: '#/components/schemas/s'}]}}}\n",
    );
    insta::assert_snapshot!(shown(&text), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: operations: o: message m: payload: no valid JSON Schema: at `#/allOf/0/$ref/anyOf/0` references go round in a circle without looking at anything: nothing could ever be checked; any object is taken
    "#);
    // Two ways at each step down.
    let node = "components: {schemas: {n: {type: object, additionalProperties: false, properties: {x: {oneOf: [{$ref: '#/components/schemas/n'}, {allOf: [{$ref: '#/components/schemas/n'}, {required: [y]}]}]}}}}}\n";
    let tool = good(&document(
        "address: a.b, messages: {m: {payload: {$ref: '#/components/schemas/n'}}}",
        ON,
        node,
    ));
    let deep = |levels: usize, end: &str| {
        format!("{}{end}{}", r#"{"x":"#.repeat(levels), "}".repeat(levels))
    };
    assert!(call(&tool, &deep(8, "{}")).starts_with("a.b "));
    insta::assert_snapshot!(call(&tool, &deep(60, "{}")), @"refused: /: it does not fit the schema, nested too deep to say where");
    insta::assert_snapshot!(call(&tool, &deep(60, "1")), @"refused: /: it does not fit the schema, nested too deep to say where");
}

#[test]
fn long_chains_of_references_are_followed_or_refused() {
    let chain = |length: usize| {
        let step = |it: usize| {
            format!(
                "    s{it}: {{type: object, properties: {{x: {{$ref: '#/components/schemas/s{}'}}}}}}\n",
                it + 1
            )
        };
        let steps: String = (0..length).map(step).collect();
        let rest = format!("components:\n  schemas:\n{steps}    s{length}: {{type: object}}\n");
        document(
            "address: a.b, messages: {m: {payload: {$ref: '#/components/schemas/s0'}}}",
            ON,
            &rest,
        )
    };
    assert_eq!(call(&good(&chain(200)), r#"{"x":{"x":{}}}"#), r#"a.b {"x":{"x":{}}}"#);
    assert!(shown(&chain(900)).contains("too many schemas"));
}
