//! What a caller is told, what is put right, and what hostile schemas come to.

use std::{fmt::Write as _, time::Duration};

use rustix::time::{ClockId, clock_gettime};

use super::*;

mod slow;

fn json(text: &str) -> Json {
    Json::parse(text.to_owned()).unwrap()
}

fn validator(schema: &str) -> Validator {
    Validator::read(&json(schema), Formats::Asserted).unwrap()
}

fn fault(schema: &str) -> SchemaFault {
    Validator::read(&json(schema), Formats::Asserted).unwrap_err()
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}

/// Runs something on as little stack as half of what a worker thread has, and says how long it took.
fn on_a_small_stack<T: Send>(act: impl FnOnce() -> T + Send) -> (T, Duration) {
    std::thread::scope(|scope| {
        let timed = || {
            let begin = cpu_time();
            (act(), cpu_time() - begin)
        };
        let thread = std::thread::Builder::new().stack_size(1024 * 1024);
        thread.spawn_scoped(scope, timed).unwrap().join().unwrap()
    })
}

/// One line for each pair: what is said.
fn table(rows: &[(&str, &str)]) -> String {
    let mut told = String::new();
    for (schema, value) in rows {
        let said = match validator(schema).check(&json(value)) {
            Ok(()) => "fits".to_owned(),
            Err(faults) => faults.to_string(),
        };
        writeln!(told, "{schema}\n  {value}\n  {said}").unwrap();
    }
    told
}

#[test]
fn every_constraint_of_the_guide_says_what_it_asks_for() {
    insta::assert_snapshot!(table(&[
        (r#"{"properties":{"q":{"type":"string","minLength":1}}}"#, r#"{"q":""}"#),
        (r#"{"properties":{"q":{"type":"string","maxLength":3}}}"#, r#"{"q":"äöüß"}"#),
        (r#"{"properties":{"limit":{"type":"number","minimum":1}}}"#, r#"{"limit":0}"#),
        (r#"{"properties":{"limit":{"type":"number","maximum":50}}}"#, r#"{"limit":51}"#),
        (r#"{"properties":{"status":{"enum":["active","archived"]}}}"#, r#"{"status":"activ"}"#),
        (r#"{"properties":{"status":{"enum":["active",1,null]}}}"#, r#"{"status":["x"]}"#),
        (r#"{"properties":{"id":{"pattern":"^[a-z]+$"}}}"#, r#"{"id":"A1"}"#),
        (r#"{"properties":{"to":{"format":"email"}}}"#, r#"{"to":"nobody"}"#),
        (r#"{"properties":{"endpoint":{"format":"uri"}}}"#, r#"{"endpoint":"no uri"}"#),
        (r#"{"properties":{"q":{"type":"string"}}}"#, r#"{"q":1}"#),
        (r#"{"properties":{"n":{"type":"number"}}}"#, r#"{"n":"1"}"#),
        (r#"{"properties":{"b":{"type":"boolean"}}}"#, r#"{"b":"true"}"#),
        (r#"{"properties":{"a":{"type":"array"}}}"#, r#"{"a":{}}"#),
        (r#"{"properties":{"o":{"type":"object"}}}"#, r#"{"o":[]}"#),
        (
            r#"{"properties":{"params":{"items":{"type":["string","number","boolean"]}}}}"#,
            r#"{"params":["a",1,null]}"#
        ),
        (r#"{"properties":{"q":{}},"required":["q"]}"#, "{}"),
        (r#"{"type":"object"}"#, "[1]"),
    ]));
}

#[test]
fn the_other_keywords_speak_too() {
    insta::assert_snapshot!(table(&[
        (r#"{"properties":{"n":{"exclusiveMinimum":0,"exclusiveMaximum":0}}}"#, r#"{"n":0}"#),
        (r#"{"properties":{"n":{"multipleOf":0.01}}}"#, r#"{"n":1.005}"#),
        (r#"{"properties":{"n":{"const":5}}}"#, r#"{"n":6}"#),
        (r#"{"properties":{"a":{"minItems":2,"uniqueItems":true}}}"#, r#"{"a":[1]}"#),
        (r#"{"properties":{"a":{"maxItems":1,"uniqueItems":true}}}"#, r#"{"a":[1,1.0]}"#),
        (r#"{"properties":{"a":{"contains":{"type":"string"}}}}"#, r#"{"a":[1]}"#),
        (
            r#"{"properties":{"a":{"contains":{"type":"string"},"minContains":2,"maxContains":3}}}"#,
            r#"{"a":["x"]}"#
        ),
        (r#"{"minProperties":1,"maxProperties":1}"#, "{}"),
        (r#"{"minProperties":3,"maxProperties":1}"#, r#"{"a":1,"b":1}"#),
        (r#"{"propertyNames":{"maxLength":2}}"#, r#"{"abc":1}"#),
        (r#"{"dependentRequired":{"card":["address"]}}"#, r#"{"card":1}"#),
        (r#"{"properties":{"x":false}}"#, r#"{"x":1}"#),
        (r#"{"not":{"required":["a"]}}"#, r#"{"a":1}"#),
        (
            r#"{"unevaluatedProperties":false,"allOf":[{"properties":{"query":{}}}]}"#,
            r#"{"querry":1}"#
        ),
        (
            r#"{"properties":{"a/b":{"properties":{"c d":{"type":"null"}}}}}"#,
            r#"{"a/b":{"c d":1}}"#
        ),
        (
            r#"{"properties":{"list":{"items":{"properties":{"n":{"type":"integer"}}}}}}"#,
            r#"{"list":[{"n":1},{"n":1.5}]}"#
        ),
    ]));
}

#[test]
fn what_was_meant_is_said() {
    let search = r#"{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer","maximum":100}},
        "required":["query"],"additionalProperties":false}"#;
    let open = search.replace(",\"additionalProperties\":false", "");
    insta::assert_snapshot!(table(&[
        (search, r#"{"querry":"x","limit":500}"#),
        (search, r#"{"query":"x","zzzzzz":1}"#),
        (&open, r#"{"querry":"x"}"#),
        (&open, r#"{"text":"x"}"#),
    ]));
}

#[test]
fn of_several_forms_the_nearest_is_told() {
    let forms = r#"{"properties":{"filter":{"oneOf":[
        {"type":"object","properties":{"kind":{"const":"range"},"from":{"type":"integer"},"to":{"type":"integer"}},"required":["kind","from"]},
        {"type":"object","properties":{"kind":{"const":"word"},"word":{"type":"string"}},"required":["kind","word"]},
        {"type":"null"}]}}}"#;
    insta::assert_snapshot!(table(&[
        (forms, r#"{"filter":{"kind":"word","word":7}}"#),
        (forms, r#"{"filter":{"kind":"range"}}"#),
        (forms, r#"{"filter":"word"}"#),
        (r#"{"properties":{"n":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}"#, r#"{"n":"5"}"#),
        (
            r#"{"properties":{"n":{"anyOf":[{"enum":["red","green"]},{"type":"null"}]}}}"#,
            r#"{"n":"gren"}"#
        ),
        (r#"{"properties":{"n":{"oneOf":[{"type":"integer"},{"minimum":2}]}}}"#, r#"{"n":5}"#),
    ]));
}

#[test]
fn faults_are_bounded_and_show_no_control_characters() {
    let schema = validator(r#"{"additionalProperties":{"type":"integer"}}"#);
    let many: Vec<String> =
        (0..100).map(|it| format!("\"k{it}\":\"{}\"", "x".repeat(5000))).collect();
    let faults = schema.check(&json(&format!("{{{}}}", many.join(",")))).unwrap_err();
    assert_eq!((faults.list().len(), faults.more()), (20, 80));
    assert!(faults.to_string().len() < 3000, "{}", faults.to_string().len());

    let faults = schema.check(&json("{\"a\\u001b[2J\":\"\\u001b[2J\\u009b\"}")).unwrap_err();
    assert!(!faults.to_string().chars().any(char::is_control), "{faults:?}");
    let broken = json("{\"properties\":{\"a\\u001b\":{\"$ref\":\"#/\\u001b\"}}}");
    let fault = Validator::read(&broken, Formats::Asserted).unwrap_err();
    assert!(!fault.to_string().chars().any(char::is_control), "{fault:?}");
}

#[test]
fn numbers_are_what_is_written() {
    for (schema, value, fits) in [
        (r#"{"type":"integer"}"#, "18446744073709551616", true),
        (r#"{"type":"integer"}"#, "1.0", true),
        (r#"{"type":"integer"}"#, "1e400", true),
        (r#"{"type":"integer"}"#, "1.5", false),
        (r#"{"maximum":18446744073709551615}"#, "18446744073709551616", false),
        (r#"{"maximum":9007199254740992}"#, "9007199254740993", false),
        (r#"{"maximum":1e308}"#, "1e400", false),
        (r#"{"const":9007199254740993}"#, "9007199254740992", false),
        (r#"{"enum":[1]}"#, "1.00", true),
        (r#"{"multipleOf":0.01}"#, "4.35", true),
        (r#"{"multipleOf":0.01}"#, "4.355", false),
        (r#"{"multipleOf":0.1}"#, "0.30000000000000004", false),
    ] {
        assert_eq!(validator(schema).check(&json(value)).is_ok(), fits, "{schema} {value}");
    }
}

#[test]
fn an_object_with_the_private_key_of_serde_json_is_an_object() {
    let given = r#"{"n":{"$serde_json::private::Number":"1"}}"#;
    let schema = validator(r#"{"properties":{"n":{"type":"number"}}}"#);
    insta::assert_snapshot!(schema.check(&json(given)).unwrap_err(), @"The arguments do not fit: `n` must be a number (type), found an object with $serde_json::private::Number");
    assert!(validator(r#"{"properties":{"n":{"type":"object"}}}"#).check(&json(given)).is_ok());
    // And as a name in a schema.
    let schema = validator(r#"{"properties":{"$serde_json::private::Number":{"type":"integer"}}}"#);
    assert!(schema.check(&json(r#"{"$serde_json::private::Number":"1"}"#)).is_err());
}

#[test]
fn doubling_definitions_are_refused_at_once() {
    for levels in [26, 40] {
        let mut definitions = String::new();
        for it in 0..levels {
            let next = it + 1;
            write!(definitions, r##""d{it}":{{"allOf":[{{"$ref":"#/$defs/d{next}"}},{{"$ref":"#/$defs/d{next}"}}]}},"##).unwrap();
        }
        let schema = format!(
            r##"{{"$ref":"#/$defs/d0","$defs":{{{definitions}"d{levels}":{{"type":"string"}}}}}}"##
        );
        let (found, time) = on_a_small_stack(|| fault(&schema));
        assert!(matches!(found, SchemaFault::TooMuchWork(_)), "{found}");
        assert!(time < Duration::from_millis(50), "{time:?}");
    }
}

#[test]
fn chains_depth_and_loops_are_refused() {
    let chain = |length: usize| {
        let steps: String = (0..length)
            .map(|it| format!(r##""d{it}":{{"$ref":"#/$defs/d{}"}},"##, it + 1))
            .collect();
        format!(r##"{{"$ref":"#/$defs/d0","$defs":{{{steps}"d{length}":{{}}}}}}"##)
    };
    let nested = |depth: usize| r#"{"not":"#.repeat(depth) + "{}" + &"}".repeat(depth);
    let check = |schema: &str| on_a_small_stack(|| fault(schema)).0;
    assert!(matches!(check(&chain(50_000)), SchemaFault::TooLarge(_)));
    assert_eq!(check(&chain(5000)), SchemaFault::TooMany);
    assert!(matches!(check(&chain(600)), SchemaFault::Chain(_)));
    assert!(Validator::read(&json(&chain(150)), Formats::Asserted).is_ok());
    assert!(matches!(check(&nested(65)), SchemaFault::TooDeep(_)));
    assert!(Validator::read(&json(&nested(60)), Formats::Asserted).is_ok());
    // Deeper than a text is read at all; such a value comes from a reader of YAML.
    let deep = Json::from_scanned(nested(1000).into());
    let found = on_a_small_stack(|| Validator::read(&deep, Formats::Asserted).unwrap_err()).0;
    assert!(matches!(found, SchemaFault::Unreadable(_)), "{found}");
    for circle in [
        r##"{"$ref":"#"}"##,
        r##"{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}}}"##,
        r##"{"$dynamicAnchor":"a","$dynamicRef":"#a"}"##,
    ] {
        assert!(matches!(check(circle), SchemaFault::Loop(_)), "{circle}");
    }
}

#[test]
fn a_schema_about_itself_costs_no_more_than_the_budget() {
    // Twice the work for each level of the value: no guard that looks at the schema alone can tell.
    let schema = validator(
        r##"{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"a":{"allOf":[{"$ref":"#/$defs/n"},{"$ref":"#/$defs/n"}]}}}}}"##,
    );
    let value = |depth: usize| json(&(r#"{"a":"#.repeat(depth) + "1" + &"}".repeat(depth)));
    assert!(schema.check(&value(8)).is_ok());
    let (found, time) = on_a_small_stack(|| schema.check(&value(120)).unwrap_err());
    assert!(found.is_exhausted(), "{found}");
    assert!(time < Duration::from_millis(100), "{time:?}");
    insta::assert_snapshot!(found, @"The arguments are too large, or nested too deep, to be checked against the schema");
}

#[test]
fn a_tree_as_deep_as_a_text_may_be_is_checked() {
    let schema = validator(
        r##"{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"a":{"anyOf":[{"$ref":"#/$defs/n"},{"type":"null"}]}}}}}"##,
    );
    let value =
        |depth: usize, end: &str| json(&(r#"{"a":"#.repeat(depth) + end + &"}".repeat(depth)));
    assert!(on_a_small_stack(|| schema.check(&value(126, "null"))).0.is_ok());
    let (found, time) = on_a_small_stack(|| schema.check(&value(126, "1")).unwrap_err());
    assert!(!found.is_exhausted() && time < Duration::from_millis(100), "{time:?}");
}

#[test]
fn only_linear_patterns_run_and_the_others_are_told() {
    for pattern in [r"^(a+)+\\1$", "(?=a)b", "((a{1,1000}){1,1000}){1,1000}", "(?<!a)b"] {
        let schema = format!(r#"{{"type":"string","pattern":"{pattern}"}}"#);
        let ((read, said), time) = on_a_small_stack(|| {
            let read = validator(&schema);
            let said = read.unchecked().first().map(ToString::to_string);
            (read, said)
        });
        assert!(said.is_some_and(|it| it.contains("linear time")), "{pattern}");
        assert!(time < Duration::from_millis(100), "{time:?}");
        assert!(read.check(&json("\"x\"")).is_ok() && read.check(&json("1")).is_err());
        let of_names = format!(r#"{{"patternProperties":{{"{pattern}":{{}}}}}}"#);
        assert!(matches!(fault(&of_names), SchemaFault::Pattern { .. }), "{pattern}");
    }
    let slow = validator(r#"{"pattern":"^(a|a|aa)+$"}"#);
    let long = json(&format!("\"{}b\"", "a".repeat(100_000)));
    let (found, time) = on_a_small_stack(|| slow.check(&long));
    assert!(found.is_err() && time < Duration::from_millis(100), "{time:?}");
    // ECMA-262's own: only ASCII digits, control letters.
    assert!(validator(r#"{"pattern":"^\\d$"}"#).check(&json("\"߀\"")).is_err());
    assert!(validator(r#"{"pattern":"^\\cC$"}"#).check(&json("\"\\u0003\"")).is_ok());
}

#[test]
fn nothing_outside_is_referred_to() {
    for schema in [
        r#"{"$ref":"http://127.0.0.1:9/x"}"#,
        r#"{"properties":{"a":{"$ref":"file:///etc/passwd"}}}"#,
        r#"{"items":{"$ref":"other.json#/a"}}"#,
        r#"{"$schema":"https://example.com/own"}"#,
        r#"{"$defs":{"x":{"$id":"x","$schema":"https://example.com/own"}}}"#,
    ] {
        let read = |on_fault| Checked::read(&json(schema), Formats::Asserted, on_fault);
        assert!(fault(schema).is_remote(), "{schema}");
        assert!(matches!(read(OnFault::RefuseRemote), Checked::Refused(_)), "{schema}");
        assert!(matches!(read(OnFault::Permit), Checked::Permissive(_)), "{schema}");
    }
    let broken = json(r#"{"type":"strin"}"#);
    let read = |on_fault| Checked::read(&broken, Formats::Asserted, on_fault);
    assert!(matches!(
        read(OnFault::RefuseRemote),
        Checked::Permissive(SchemaFault::Malformed { .. })
    ));
    assert!(matches!(read(OnFault::Refuse), Checked::Refused(SchemaFault::Malformed { .. })));
}

#[test]
fn what_a_person_is_told_about_a_schema() {
    let mut told = String::new();
    for schema in [
        r#"{"$ref":"https://example.com/a.json"}"#,
        r##"{"properties":{"a":{"$ref":"#/$defs/nope"}}}"##,
        r##"{"$ref":"#"}"##,
        r#"{"type":"strin"}"#,
        r#"{"properties":{"a":{"required":true}}}"#,
        r#"{"patternProperties":{"(?=a)":{}}}"#,
        r#"{"multipleOf":1.2345678901234567890123}"#,
        r#"{"$schema":"https://example.com/own"}"#,
        "5",
    ] {
        writeln!(told, "{schema}\n  {}", fault(schema)).unwrap();
    }
    insta::assert_snapshot!(told);
}

#[test]
fn older_dialects_are_read_as_such() {
    for (schema, value, fits) in [
        // Declares nothing, and is well formed only in draft 7, or in draft 4.
        (r#"{"items":[{"type":"string"}],"additionalItems":false}"#, r#"["a",1]"#, false),
        (r#"{"items":[{"type":"string"}],"additionalItems":false}"#, r#"["a"]"#, true),
        (r#"{"minimum":1,"exclusiveMinimum":true}"#, "1", false),
        // One flag of draft 4 does not make the rest draft 4, in which there is no `const`.
        (
            r#"{"properties":{"a":{"minimum":1,"exclusiveMinimum":true},"b":{"const":1}}}"#,
            r#"{"b":2}"#,
            false,
        ),
        (
            r#"{"properties":{"a":{"minimum":1,"exclusiveMinimum":true},"b":{"const":1}}}"#,
            r#"{"a":1}"#,
            false,
        ),
        // Counts, however they are written.
        (r#"{"maxLength":1e0}"#, r#""ab""#, false),
        (r#"{"maxItems":0.1E1}"#, "[1,2]", false),
        (r#"{"maxItems":2e0}"#, "[1,2]", true),
        (r#"{"minLength":-0}"#, r#""""#, true),
        (
            r#"{"$schema":"http://json-schema.org/draft-04/schema#","maximum":1,"exclusiveMaximum":true}"#,
            "1",
            false,
        ),
        (
            r#"{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":["b"]}}"#,
            r#"{"a":1}"#,
            false,
        ),
        (
            r##"{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","type":"null","definitions":{"a":{}}}"##,
            "1",
            true,
        ),
        (
            r##"{"$schema":"https://json-schema.org/draft/2019-09/schema","$ref":"#/$defs/a","type":"null","$defs":{"a":{}}}"##,
            "1",
            false,
        ),
        (
            r##"{"$schema":"https://json-schema.org/draft/2019-09/schema","properties":{"a":{"$recursiveRef":"#"}},"type":"object"}"##,
            r#"{"a":1}"#,
            false,
        ),
    ] {
        assert_eq!(validator(schema).check(&json(value)).is_ok(), fits, "{schema} {value}");
    }
}

#[test]
fn large_lists_are_quick() {
    let schema = validator(r#"{"type":"array","items":{"type":"integer"},"uniqueItems":true}"#);
    let numbers: Vec<String> = (0..100_000).map(|it: u32| it.to_string()).collect();
    let list = json(&format!("[{}]", numbers.join(",")));
    let (found, time) = on_a_small_stack(|| schema.check(&list));
    assert!(found.is_ok() && time < Duration::from_millis(500), "{found:?} {time:?}");
}

#[test]
fn repairs_touch_only_what_is_wrong() {
    let schema = r##"{"type":"object","required":["n"],"properties":{"n":{"type":"integer"},"x":{"type":"number"},"b":{"type":"boolean"},
        "o":{"$ref":"#/$defs/o"},"l":{"type":"array","items":{"type":"integer"}},"s":{"type":"string"},"any":{},
        "maybe":{"anyOf":[{"type":"integer"},{"type":"null"}]},"both":{"type":["integer","string"]}},
        "$defs":{"o":{"type":"object","properties":{"d":{"type":"number"}}}}}"##;
    let schema = validator(schema);
    let mut told = String::new();
    for given in [
        r#"{ "n" : "5" , "x":1.50, "s":"7" }"#,
        r#"{"n":"1e400","big":18446744073709551616}"#,
        r#"{"n":"1.5"}"#,
        r#"{"n":1,"b":"true","o":"{\"d\": 1.0}","l":"[1,2]"}"#,
        r#"{"n":1,"o":{"d":"2"},"l":["1", 2 ]}"#,
        r#"{"n":1,"maybe":"3"}"#,
        r#"{"n":1,"both":"3","any":"3","s":"true"}"#,
        r#"{"s":null,"n":1}"#,
        r#"{"n":1 , "s":null , "x":2}"#,
        r#"{"s":null, "b":null, "n":1, "x":null}"#,
        r#"{"n":null}"#,
        r#"{"n":1,"maybe":null,"any":null}"#,
        r#"{"n":"5","b":7}"#,
        r#"{"n":"0x5"}"#,
        r#"{"n":"5 6"}"#,
        r#"{"n":1}"#,
        r#"{"n":1,"l":"[1,\"a\"]"}"#,
    ] {
        let repaired = schema.repair(&json(given));
        let repaired = repaired.map(|(to, said)| format!("{to}\n  {}", said.join("; ")));
        writeln!(told, "{given}\n  {}", repaired.as_deref().unwrap_or("nothing")).unwrap();
    }
    insta::assert_snapshot!(told);
}

#[test]
fn output_is_checked_alike() {
    let schema = validator(r#"{"properties":{"rows":{"type":"integer"}},"required":["rows"]}"#);
    insta::assert_snapshot!(schema.check_output(&json("{}")).unwrap_err(), @"The result does not fit: `rows` is missing (required)");
}

/// Whoever gets the schema from us may follow what we do not.
#[test]
fn nothing_leads_outside_wherever_it_stands() {
    let away = r#""$ref":"http://127.0.0.1:9/x""#;
    for schema in [
        format!(r#"{{"$defs":{{"unused":{{{away}}}}}}}"#),
        format!(r#"{{"contentSchema":{{{away}}}}}"#),
        format!(r#"{{"dependencies":{{"a":{{{away}}}}}}}"#),
        format!(r#"{{"x-own":[{{"deep":{{{away}}}}}]}}"#),
        r#"{"$defs":{"a":{"$dynamicRef":"file:///etc/passwd"}}}"#.to_owned(),
        r#"{"$defs":{"a":{"$ref":"other.json"}}}"#.to_owned(),
        r##"{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a",
            "properties":{"b":{"$ref":"http://127.0.0.1:9/x"}},"definitions":{"a":{}}}"##
            .to_owned(),
    ] {
        let found = Validator::read(&json(&schema), Formats::Asserted);
        assert!(found.is_err_and(|it| it.is_remote()), "{schema}");
    }
    for schema in [
        format!(r#"{{"const":{{{away}}}}}"#),
        format!(r#"{{"enum":[{{{away}}}],"default":{{{away}}},"examples":[{{{away}}}]}}"#),
        r#"{"properties":{"$ref":{"type":"string"}}}"#.to_owned(),
        r#"{"x-own":{"$ref":"Name"}}"#.to_owned(),
        r#"{"$id":"http://a/b","$defs":{"c":{"$id":"c"},"d":{"$ref":"http://a/c"}}}"#.to_owned(),
    ] {
        assert!(Validator::read(&json(&schema), Formats::Asserted).is_ok(), "{schema}");
    }
}
