//! `call_tools`: several calls in one request.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{World, text};

const NETWORK: &str = "
limits: { tools: { '*__count': 2/h } }
external_access:
  groups:
    a: { auth_token: token-a, exposed_tools: ['*', call_tools] }
    b: { auth_token: token-b }
    c: { auth_token: token-c, exposed_tools: ['*__echo', '*__large', call_tools], inline_up_to: 4KB }
";

#[test]
fn all_outcomes_come_in_order_each_with_its_own_error() {
    let world = World::new(NETWORK);
    let mut a = world.client("token-a");
    let calls = json!([
        { "name": "mcp__s__slow", "arguments": { "n": 1 } },
        { "name": "mcp__s__echo", "arguments": { "n": 2 } },
        { "name": "mcp__s__fail" },
        { "name": "mcp__s__error" },
        { "name": "nothing" },
        { "name": "mcp__s__count" },
        { "name": "mcp__s__count" },
        { "name": "mcp__s__count" },
    ]);
    let result = a.call("call_tools", &json!({ "calls": calls }));
    assert_eq!(result["isError"], false, "{result}");
    let outcomes = result["structuredContent"]["outcomes"].as_array().unwrap();
    let names: Vec<&Value> = outcomes.iter().map(|it| &it["name"]).collect();
    let asked: Vec<&Value> = calls.as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, asked);
    assert!(text(&outcomes[1]["result"]).contains("\"n\":2"), "{}", outcomes[1]);
    assert_eq!(outcomes[2]["result"]["isError"], true);
    assert_eq!(outcomes[3]["error"]["code"], -32050);
    assert_eq!(outcomes[4]["error"]["code"], -32602);
    assert_ne!(outcomes[6]["result"]["isError"], true);
    assert!(text(&outcomes[7]["result"]).contains("2 times an hour"), "{}", outcomes[7]);
    let told: Value = serde_json::from_str(text(&result)).unwrap();
    assert_eq!(told, result["structuredContent"]);
}

#[test]
fn calls_run_one_by_one_or_side_by_side() {
    let world = World::new(NETWORK);
    let mut a = world.client("token-a");
    let slow = |n: u32| json!({ "name": "mcp__s__slow", "arguments": { "n": n } });
    let mut took = |parallel: u32| {
        let begin = Instant::now();
        let calls = json!({ "calls": [slow(1), slow(2), slow(3)], "parallel": parallel });
        let result = a.call("call_tools", &calls);
        assert_eq!(result["structuredContent"]["outcomes"].as_array().unwrap().len(), 3);
        begin.elapsed()
    };
    let (one_by_one, side_by_side) = (took(1), took(3));
    assert!(Duration::from_millis(2_100) <= one_by_one);
    assert!(side_by_side < one_by_one);
}

#[test]
fn it_is_there_for_those_who_name_it_and_does_not_call_itself() {
    let world = World::new(NETWORK);
    let (mut a, mut b) = (world.client("token-a"), world.client("token-b"));
    let one = json!({ "calls": [{ "name": "mcp__s__echo" }] });
    let params = json!({ "name": "call_tools", "arguments": one });
    assert_eq!(b.answer(&[], &params).json()["error"]["code"], -32602);
    let many: Vec<Value> = (0..51).map(|_| json!({ "name": "mcp__s__echo" })).collect();
    for (bad, told) in [
        (json!({ "calls": [{ "name": "call_tools", "arguments": one }] }), "does not call itself"),
        (json!({ "calls": many }), "1 to 50 calls"),
        (json!({ "calls": [] }), "1 to 50 calls"),
        (json!({ "calls": [{ "name": "x", "n": 1 }] }), "unknown field `n`"),
        (json!({ "calls": [{ "name": "mcp__s__echo" }], "parallel": 0 }), "between 1 and 16"),
        (json!({}), "missing field `calls`"),
    ] {
        let result = a.call("call_tools", &bad);
        assert!(result["isError"] == true && text(&result).contains(told), "{bad}: {result}");
    }
    assert_eq!(world.reached("echo"), 0);
}

#[test]
fn all_outcomes_together_are_bounded_as_one_result_is() {
    let world = World::new(NETWORK);
    let mut c = world.client("token-c");
    let large = json!({ "name": "mcp__s__large" });
    let result = c.call("call_tools", &json!({ "calls": [large, large, large] }));
    assert!(result.to_string().len() < 6_000, "{}", result.to_string().len());
    assert!(result.to_string().contains("toolcrib://artifact/"), "{result}");
    assert_eq!(world.reached("large"), 3);
}
