//! B3 to B7: what a group sees, and that the body of a request decides.

use serde_json::{Value, json};

use super::{A, B, World, call, modern_body, modern_headers, request};

fn names(list: &Value) -> Vec<&str> {
    list["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect()
}

#[test]
fn b03_each_group_sees_its_own_tools_in_one_order() {
    let world = World::start();
    let list = request(1, "tools/list", json!({}));
    let both = ["mcp__both__echo", "mcp__both__long", "mcp__both__say", "mcp__both__slow"];
    for (token, own) in [(A, "a"), (B, "b")] {
        let session = world.session(token);
        let first = world.ask(token, &session, &list);
        let own = ["add", "echo", "other"].map(|it| format!("mcp__{own}__{it}"));
        let expected: Vec<&str> = own.iter().map(String::as_str).chain(both).collect();
        assert_eq!(names(&first.json()), expected);
        let modern = world.modern(token, "tools/list", json!({}));
        assert_eq!(names(&modern.json()), expected);
        assert_eq!(modern.json()["result"]["cacheScope"], "private");
        let discovered = world.modern(token, "server/discover", json!({})).json();
        assert_eq!(discovered["result"]["cacheScope"], "private");
        for _ in 0..10 {
            assert_eq!(world.ask(token, &session, &list).body, first.body);
            assert_eq!(world.modern(token, "tools/list", json!({})).body, modern.body);
        }
    }
}

#[test]
fn b04_a_hidden_tool_answers_like_one_that_is_not_there() {
    let world = World::start();
    let session = world.session(A);
    for (hidden, missing) in
        [("mcp__b__echo", "mcp__b__ehco"), ("mcp__x__read", "mcp__q__read"), ("mcp__b__add", "add")]
    {
        let legacy = |name: &str| world.ask(A, &session, &call(1, name));
        let modern = |name: &str| world.modern(A, "tools/call", json!({ "name": name }));
        let answers = [[legacy(hidden), legacy(missing)], [modern(hidden), modern(missing)]];
        for [hidden_answer, missing_answer] in answers {
            let error = &hidden_answer.json()["error"];
            assert_eq!((&error["code"], error.get("data")), (&json!(-32602), None));
            assert_eq!(error["message"], format!("Unknown tool: {hidden}"));
            assert_eq!(hidden_answer.status, missing_answer.status);
            assert_eq!(hidden_answer.body.replace(hidden, missing), missing_answer.body);
        }
    }
    // Nor do bad arguments, or what a tool wants in headers, tell the two apart.
    let odd = |name: &str| {
        let body = request(1, "tools/call", json!({ "name": name, "arguments": [1] }));
        world.ask(A, &session, &body).body.replace(name, "-")
    };
    assert_eq!(odd("mcp__b__echo"), odd("mcp__b__ehco"));
    assert_eq!(world.calls(), 0);
}

const NARROW: &str = "
external_access:
  default_agent_group: guest
  auth_token: SECRET_TOKEN_ADM
  groups:
    a: { auth_token: SECRET_TOKEN_A, exposed_tools: [mcp__x__read], excluded_tools: ['mcp__x__*'] }
    b: { auth_token: SECRET_TOKEN_B, exposed_tools: [mcp__x__read] }
";

/// Everything a client can ask of server `x`, but for calls.
fn questions() -> [(&'static str, Value); 7] {
    let argument = json!({ "name": "who", "value": "" });
    let prompt = json!({ "type": "ref/prompt", "name": "mcp__x__greet" });
    let resource = json!({ "type": "ref/resource", "uri": "test://any/{n}" });
    [
        ("prompts/get", json!({ "name": "mcp__x__greet" })),
        ("resources/read", json!({ "uri": "test://one" })),
        ("resources/read", json!({ "uri": "test://any/2" })),
        ("completion/complete", json!({ "ref": prompt, "argument": argument })),
        ("completion/complete", json!({ "ref": resource, "argument": argument })),
        ("resources/subscribe", json!({ "uri": "test://one" })),
        ("resources/unsubscribe", json!({ "uri": "test://one" })),
    ]
}

#[test]
fn b05_what_is_excluded_is_excluded_by_every_name_and_on_every_way() {
    let world = World::start_with(NARROW);
    let (session, others) = (world.session(A), world.session(B));
    let lists = ["tools", "prompts", "resources", "resourceTemplates"];
    let methods = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    let counts = |token: (&str, &str), session: &str| {
        let zipped = lists.iter().zip(methods);
        let count = |(key, method): (&&str, &str)| {
            let legacy = world.ask(token, session, &request(1, method, json!({}))).json();
            let modern = world.modern(token, method, json!({})).json();
            assert_eq!(legacy["result"][key], modern["result"][key]);
            legacy["result"][key].as_array().unwrap().len()
        };
        zipped.map(count).collect::<Vec<_>>()
    };
    assert_eq!(counts(A, &session), [0, 0, 0, 0], "excluded wins over exposed");
    assert_eq!(counts(B, &others), [1, 1, 1, 1]);
    let unknown = |token: (&str, &str), session: &str, name: &str| {
        let legacy = world.ask(token, session, &call(1, name)).json();
        assert_eq!(legacy["error"]["code"], -32602, "{name}");
    };
    unknown(A, &session, "mcp__x__read");
    let modern = world.modern(A, "tools/call", json!({ "name": "mcp__x__read" })).json();
    assert_eq!(modern["error"]["code"], -32602);
    for name in [
        "MCP__X__READ",
        "mcp__x__Read",
        "ｍcp__x__read",
        "mcp__x__ｒead",
        "mcp__x__re\u{ad}ad",
        "mcp__x__read.",
        "mcp__x__read ",
        " mcp__x__read",
        "mcp__x__read\u{0}",
        "mcp__x__*",
        "mcp__x__touch",
        "mcp.x.read",
        "x__read",
        "x.read",
        "read",
        "",
    ] {
        unknown(A, &session, name);
        unknown(B, &others, name);
    }
    for (method, params) in questions() {
        let legacy = world.ask(A, &session, &request(1, method, params.clone())).json();
        assert!(matches!(legacy["error"]["code"].as_i64(), Some(-32602 | -32002)), "{legacy}");
        let modern = world.modern(A, method, params).json();
        assert!(matches!(modern["error"]["code"].as_i64(), Some(-32602 | -32601)), "{modern}");
        for answer in [legacy, modern] {
            assert!(!answer.to_string().contains("SECRET"), "{answer}");
        }
        assert_eq!(world.asked(method), 0, "{method} reached the server");
    }
    assert_eq!(world.calls(), 0);
    // Whoever may, can.
    for (method, params) in questions() {
        let before = world.asked(method);
        let answer = world.ask(B, &others, &request(1, method, params)).json();
        assert!(answer["result"].is_object(), "{method} {answer}");
        assert_eq!(world.asked(method), before + 1);
    }
    assert!(world.ask(B, &others, &call(1, "mcp__x__read")).json()["result"].is_object());
}

#[test]
fn b06_headers_that_contradict_the_body_reach_no_server() {
    let world = World::start();
    let (allowed, denied) = ("mcp__a__echo", "mcp__b__echo");
    // The same two, in the form for names that do not fit into a header.
    let (good, bad) = ("=?base64?bWNwX19hX19lY2hv?=", "=?base64?bWNwX19iX19lY2hv?=");
    let name = |name| ("Mcp-Name", name);
    let send = |body: &str, names: &[(&str, &str)]| {
        let headers = [&modern_headers("tools/call")[..], &[A], names].concat();
        world.serving.post(&headers, &modern_body("tools/call", json!({ "name": body })))
    };
    for (body, names) in [
        (denied, &[name(allowed)][..]),
        (allowed, &[name(denied)]),
        (allowed, &[name("mcp__a__other")]),
        (allowed, &[name("MCP__A__ECHO")]),
        (allowed, &[]),
        (denied, &[]),
        (allowed, &[name("")]),
        (allowed, &[name(allowed), name(allowed)]),
        (allowed, &[name(allowed), name(denied)]),
        (denied, &[name(allowed), name(denied)]),
        (allowed, &[name("mcp__a__echo, mcp__a__echo")]),
        (allowed, &[name(bad)]),
        (denied, &[name(good)]),
        (allowed, &[name(good), name(good)]),
        (allowed, &[name("=?base64?!?=")]),
        (allowed, &[name("=?base64??=")]),
        (allowed, &[name(good.trim_end_matches("?="))]),
        (allowed, &[name("=?utf-8?bWNwX19hX19lY2hv?=")]),
    ] {
        let answer = send(body, names);
        assert_eq!(answer.status, 400, "{body} {names:?} {answer:?}");
        assert_eq!(answer.json()["error"]["code"], -32020, "{body} {names:?}");
    }
    // The method has two places too.
    for methods in [&["tools/list"][..], &[], &["tools/call", "tools/call"], &["Tools/Call"]] {
        let said: Vec<_> = methods.iter().map(|it| ("Mcp-Method", *it)).collect();
        let [version, _] = modern_headers("");
        let headers = [&[A, version, name(allowed)], said.as_slice()].concat();
        let body = modern_body("tools/call", json!({ "name": allowed }));
        let answer = world.serving.post(&headers, &body);
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32020)));
    }
    assert_eq!(world.calls(), 0);
    // Both say what is denied: it is unknown. Both say what is allowed, in either form: it is done.
    assert_eq!(send(denied, &[name(denied)]).json()["error"]["code"], -32602);
    assert_eq!(send(denied, &[name(bad)]).json()["error"]["code"], -32602);
    assert_eq!(world.calls(), 0);
    for form in [allowed, good] {
        assert_eq!(send(allowed, &[name(form)]).status, 200, "{form}");
    }
    assert_eq!(world.calls(), 2);
}

#[test]
fn b07_an_older_version_is_no_way_around_the_rules() {
    let world = World::start();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let session = world.serving.session(&[A], version);
        let kept = [A, ("Mcp-Session-Id", session.as_str())];
        let said = [("MCP-Protocol-Version", version)];
        // What stands in the headers of another era decides nothing.
        let lies = [("Mcp-Method", "tools/list"), ("Mcp-Name", "mcp__a__echo")];
        for headers in [&[][..], &said, &[&said[..], &lies].concat()] {
            let headers = [&kept, headers].concat();
            let answer = world.serving.post(&headers, &call(1, "mcp__b__echo"));
            assert_eq!(answer.json()["error"]["code"], -32602, "{headers:?} {answer:?}");
            let before = world.calls();
            let answer = world.serving.post(&headers, &call(1, "mcp__a__echo")).json();
            assert_eq!(answer["result"]["isError"], false, "{headers:?} {answer}");
            assert_eq!(world.calls(), before + 1);
        }
        // Nor does a batch, or the version without a session.
        let batch = json!([call(1, "mcp__b__echo")]);
        let answer = world.serving.post(&kept, &batch).body;
        assert!(answer.contains("-32602") || answer.contains("-32600"), "{answer}");
        let before = world.calls();
        let answer = world.serving.post(&[A, said[0]], &call(1, "mcp__b__echo"));
        assert_eq!((answer.status, world.calls()), (400, before), "{answer:?}");
    }
    // A modern body under an old header is not taken for an old one.
    let body = modern_body("tools/call", json!({ "name": "mcp__b__echo" }));
    let answer = world.serving.post(&[A, ("MCP-Protocol-Version", "2025-06-18")], &body);
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32020)));
}
