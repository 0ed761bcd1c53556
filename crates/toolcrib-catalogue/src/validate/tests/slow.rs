//! Pairs that would take long, were it not for the budget.

use std::time::Duration;

use super::{json, on_a_small_stack, validator};

// What is not optimised takes several times as long.
const LONGEST: Duration = Duration::from_millis(if cfg!(debug_assertions) { 200 } else { 50 });

fn text(what: &str, times: usize) -> String {
    format!("\"{}\"", what.repeat(times))
}

fn list(what: &str, times: usize) -> String {
    format!("[{}]", vec![what; times].join(","))
}

fn object(members: impl Iterator<Item = String>) -> String {
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

/// Whether the check was given up, after a time that is not long.
fn check(what: &str, schema: &str, value: &str) -> bool {
    let (validator, reading) = on_a_small_stack(|| validator(schema));
    let value = json(value);
    let (found, time) =
        on_a_small_stack(|| validator.check(&value).map_err(|it| (it.to_string(), it)));
    let given_up = found.is_err_and(|(_, it)| it.is_exhausted());
    println!("{what}: read in {reading:?}, checked in {time:?}, given up: {given_up}");
    assert!(time <= LONGEST && reading <= LONGEST, "{what}: {reading:?} {time:?}");
    given_up
}

/// Texts just short enough to be searched: what a byte is charged must be what it costs.
#[test]
fn no_search_takes_long() {
    let large = r#"{"pattern":"(x?y?z?[a-q]?){1,150}$"}"#;
    assert!(!check("many states", large, &text("abcxyz", 2400)));
    assert!(!check("letters", r#"{"pattern":"^(\\p{L}{1,20}\\p{N}?){1,4}$"}"#, &text("aé", 4800)));
    assert!(!check("few states", r#"{"pattern":"(a|b|ab)*c$"}"#, &text("ab", 220_000)));
    assert!(check("too long", large, &text("abcxyz", 100_000)));
}

#[test]
fn no_comparison_takes_long() {
    let numbers: Vec<String> = (0..120_000).map(|it: u32| it.to_string()).collect();
    let numbers = numbers.join(",");
    assert!(!check("unique", r#"{"uniqueItems":true}"#, &format!("[{numbers}]")));
    let often = format!(r#"{{"allOf":{}}}"#, list(r#"{"uniqueItems":true}"#, 1000));
    assert!(check("unique often", &often, &format!("[[{numbers}],1]")));
    let stems: Vec<String> = (0..100).map(|it| format!("\"{}{it}\"", "x".repeat(2000))).collect();
    let stems = stems.join(",");
    let choices = format!(r#"{{"items":{{"enum":[{stems}]}}}}"#);
    check("long choices", &choices, &list(&text("x", 2001), 2000));
    let many = object((0..50_000).map(|it| format!("\"{it}\":0")));
    check("required", &format!(r#"{{"required":[{stems}]}}"#), &many);
    let reversed = object((0..50_000).rev().map(|it| format!("\"{it}\":0")));
    assert!(!check("objects", r#"{"uniqueItems":true}"#, &format!("[{many},{reversed}]")));
    let zeros = "0".repeat(900);
    let ones = format!("[{},2]", vec!["1"; 900].join(","));
    let written = format!("[{},3]", vec![format!("1.{zeros}"); 900].join(","));
    let constants = format!(r#"{{"allOf":{}}}"#, list(&format!(r#"{{"const":{ones}}}"#), 100));
    check("numbers in constants", &constants, &written);
    let digits = format!(r#"{{"allOf":{}}}"#, list(r#"{"multipleOf":7,"minimum":1}"#, 1000));
    check("digits", &digits, &"1".repeat(1_000_000));
    let each = r#"{"items":{"allOf":[{"type":"integer"},{"minimum":0},{"maximum":9}]}}"#;
    check("values", each, &list("5", 200_000));
    let dependent = object((0..1500).map(|it| format!("\"k{it}\":{{}}")));
    check("dependent", &format!(r#"{{"dependentSchemas":{dependent}}}"#), &many);
}

#[test]
fn nothing_takes_long_to_say() {
    let forms = |form: &str| format!(r#"{{"anyOf":[{}]}}"#, vec![form; 20].join(","));
    let long = "n".repeat(28);
    let names = object((0..60).map(|it| format!("\"{long}{it:02}\":{{}}")));
    let closed =
        format!(r#"{{"type":"object","properties":{names},"additionalProperties":false}}"#);
    let strangers = object((0..5000).map(|it| format!("\"{long}{it:04}\":1")));
    check("names", &closed, &strangers);
    check("names in forms", &forms(&closed), &strangers);
    let inner = forms(r#"{"required":["a"],"properties":{"b":{"type":"null"}}}"#);
    check("forms in forms", &forms(&inner), r#"{"b":1,"aa":2}"#);
}

#[test]
fn no_format_takes_long() {
    let all = "date date-time time duration email idn-email hostname idn-hostname ipv4 ipv6 uri uri-reference \
        uri-template iri iri-reference uuid json-pointer relative-json-pointer regex";
    for format in all.split(' ') {
        let schema = format!(r#"{{"format":"{format}"}}"#);
        for piece in ["a", "a.", "é", "http://a/%41", "{a}", "(", "xn--a.", "/a~0", "1"] {
            // As long as each kind of format is looked at.
            for length in [2000, 16_000, 800_000] {
                let value = text(piece, length / piece.len());
                assert!(!check(format, &schema, &value), "{format} {piece} {length}");
            }
        }
    }
}
