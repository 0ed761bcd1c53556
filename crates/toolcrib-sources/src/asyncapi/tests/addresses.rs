//! Addresses, their parameters, and replies.

use super::*;

#[test]
fn what_the_address_leaves_open_is_filled() {
    let channel = "address: 'user.{userId}.{kind}', parameters: {userId: {description: Who}, kind: {enum: [a, b], default: a, examples: [b]}}";
    let tool = good(&document(channel, ON, ""));
    assert_eq!(tool.pattern(), "user.*.*");
    insta::assert_snapshot!(tool.input_schema, @r#"{"type":"object","properties":{"userId":{"type":"string","description":"Who"},"kind":{"type":"string","enum":["a","b"],"default":"a","examples":["b"]}},"required":["userId"]}"#);
    assert_eq!(
        call(&tool, r#"{"userId":"u1","x":18446744073709551616}"#),
        r#"user.u1.a {"x":18446744073709551616}"#
    );
    assert_eq!(call(&tool, r#"{"kind":"b","userId":"é"}"#), "user.é.b {}");
    for bad in ["", "a.b", "a/b", "*", ">", "{x}", " ", "a\\n", "\\u0000"] {
        let found = call(&tool, &format!(r#"{{"userId":"{bad}"}}"#));
        assert!(found.starts_with("refused: /userId: it "), "{bad}: {found}");
    }
    insta::assert_snapshot!(call(&tool, r#"{"kind":"c"}"#), @"refused: /userId: required and not given: it is a part of the event's name; /kind: it must be one of a, b");
    insta::assert_snapshot!(call(&tool, r#"{"userId":7}"#), @"refused: /userId: it must be text, since it becomes a part of the event's name");
    assert!(
        call(&tool, &format!(r#"{{"userId":"{}"}}"#, "a".repeat(255))).contains("longer than 255")
    );
    let tool = good(&document("address: '{x}.y'", ON, ""));
    insta::assert_snapshot!(call(&tool, r#"{"x":"toolcrib"}"#), @"refused: names that begin with `toolcrib.` are the gateway's own");
}

#[test]
fn a_parameter_may_stand_in_the_message() {
    let channel = |address: &str, parameters: &str| {
        format!(
            "address: '{address}', parameters: {{{parameters}}}, messages: {{m: {{headers: {{type: object, properties: {{t: {{type: string}}}}}}, payload: {{type: object, properties: {{id: {{type: integer}}, user: {{type: object}}}}}}}}}}"
        )
    };
    let tool = good(&document(&channel("u.{id}", "id: {}"), ON, ""));
    // One argument serves both, and stays in the data.
    insta::assert_snapshot!(tool.input_schema, @r#"{"type":"object","properties":{"id":{"type":"integer"},"user":{"type":"object"},"headers":{"type":"object","properties":{"t":{"type":"string"}}}},"required":["id"]}"#);
    assert_eq!(call(&tool, r#"{"id":7}"#), r#"u.7 {"id":7}"#);
    let tool = good(&document(
        &channel(
            "u.{n}.{t}",
            "n: {location: '$message.payload#/user/id'}, t: {location: '$message.header#/t'}",
        ),
        ON,
        "",
    ));
    assert_eq!(
        call(&tool, r#"{"user":{"id":"x"},"headers":{"t":"y"}}"#),
        r#"u.x.y {"user":{"id":"x"}} {"t":"y"}"#
    );
    insta::assert_snapshot!(call(&tool, r#"{"user":{}}"#), @"refused: /user/id (of the payload): required and not given: it is a part of the event's name; /t (of the headers): required and not given: it is a part of the event's name");
    insta::assert_snapshot!(shown(&document(&channel("u.{n}", "n: {location: somewhere, enum: [a.b], default: 7}, z: {}"), ON, "")), @r#"
    o [u.{n}] {"type":"object","properties":{"id":{"type":"integer"},"user":{"type":"object"},"n":{"type":"string","enum":["a.b"]},"headers":{"type":"object","properties":{"t":{"type":"string"}}}},"required":["n"]}
    events/a.yaml: channels: c: parameters: n: default: not as AsyncAPI 3.0.0 has it: it must be of type string
    events/a.yaml: channels: c: parameters: n: location: not as AsyncAPI 3.0.0 has it: it does not match "^\$message\.(header|payload)#(\/(([^\/~])|(~[01]))*)*"
    events/a.yaml: operations: o: channel: parameters: z: it does not stand in the address
    events/a.yaml: operations: o: channel: parameters: n: its `default` must be text
    events/a.yaml: operations: o: channel: parameters: n: `a.b` can never be used: it becomes a part of the event's name and must not hold `.`
    events/a.yaml: operations: o: channel: parameters: n: its `location` is neither `$message.payload#/…` nor `$message.header#/…`; it is an argument
    "#);
}

#[test]
fn addresses_are_checked() {
    let one = |channel: &str| shown(&document(channel, ON, ""));
    insta::assert_snapshot!(one("title: no address"), @r#"o [c] {"type":"object","properties":{},"required":[]}"#);
    insta::assert_snapshot!(one("address: null"), @r#"o [c] {"type":"object","properties":{},"required":[]}"#);
    insta::assert_snapshot!(one("address: 7"), @r#"
    events/a.yaml: channels: c: address: not as AsyncAPI 3.0.0 has it: it is not of types "null", "string"
    events/a.yaml: operations: o: channel: its `address` must be text; it is no tool
    "#);
    insta::assert_snapshot!(one("address: 'a b'"), @"events/a.yaml: operations: o: channel: address: `a b`: an event's name must not hold ` `; it is no tool");
    insta::assert_snapshot!(one("address: toolcrib.dead"), @"events/a.yaml: operations: o: channel: address: `toolcrib.dead`: names that begin with `toolcrib.` are the gateway's own; it is no tool");
    insta::assert_snapshot!(one("address: 'a..{b}'"), @"events/a.yaml: operations: o: channel: address: `a..{b}`: something must stand before, after and between the dots; it is no tool");
}

#[test]
fn replies() {
    let rest = "  r: {address: 'r.{id}', messages: {ok: {payload: {type: object, properties: {sum: {type: number}}}}, no: {payload: {type: object, required: [error]}}}}\n  n: {messages: {ok: {payload: {type: string}}}}\n";
    let one = |operation: &str| {
        document("address: a.b", operation, "")
            .replace("operations:", &format!("{rest}operations:"))
    };
    let tool = good(&one(
        "reply: {channel: {$ref: '#/channels/r'}}, x-agent-tool: {enabled: true, wait: 1.5}",
    ));
    let reply = tool.reply.as_ref().unwrap();
    assert_eq!(
        (reply.address.as_deref(), reply.pattern().as_deref(), reply.wait),
        (Some("r.{id}"), Some("r.*"), Some(Duration::from_millis(1500)))
    );
    insta::assert_snapshot!(reply.schema.as_ref().unwrap(), @r#"{"type":"object","anyOf":[{"type":"object","properties":{"sum":{"type":"number"}}},{"type":"object","required":["error"]}]}"#);
    let tool = good(&one(
        "reply: {channel: {$ref: '#/channels/r'}, messages: [{$ref: '#/channels/r/messages/ok'}]}, x-agent-tool: {enabled: true, wait: 500ms}",
    ));
    insta::assert_snapshot!(tool.reply.as_ref().unwrap().schema.as_ref().unwrap(), @r#"{"type":"object","properties":{"sum":{"type":"number"}}}"#);
    let tool = good(&one(
        "reply: {address: {location: '$message.header#/replyTo'}, channel: {$ref: '#/channels/n'}}, x-agent-tool: {enabled: true}",
    ));
    let reply = tool.reply.as_ref().unwrap();
    assert_eq!(
        (&reply.address, reply.pattern(), &reply.schema, reply.wait),
        (&None, None, &None, None)
    );
    let said = |operation: &str| told(&load_text(&one(operation)));
    insta::assert_snapshot!(said("x-agent-tool: {enabled: true, wait: 10s}"), @"events/a.yaml: operations: o: x-agent-tool: wait: there is nothing to wait for (hint: an operation that is answered has a `reply`)");
    for wait in ["0", "-1", "11m", "'1h'", "soon", "[1]"] {
        let found = said(&format!(
            "reply: {{channel: {{$ref: '#/channels/r'}}}}, x-agent-tool: {{enabled: true, wait: {wait}}}"
        ));
        assert!(found.contains("wait: it is no time to wait"), "{wait}: {found}");
    }
    insta::assert_snapshot!(said("reply: {channel: {$ref: '#/channels/gone'}}, x-agent-tool: {enabled: true}"), @"events/a.yaml: operations: o: reply: channel: `#/channels/gone` leads nowhere: there is no `gone`; nobody waits for it");
}

#[test]
fn two_tools_of_one_name_are_both_there() {
    let text = "asyncapi: 3.0.0\ninfo: {title: t, version: '1'}\nchannels: {c: {address: a.b}}\noperations:\n  a: {action: send, channel: {$ref: '#/channels/c'}, x-agent-tool: {enabled: true, name: same}}\n  b: {action: send, channel: {$ref: '#/channels/c'}, x-agent-tool: {enabled: true, name: same}}\n";
    assert_eq!(load_text(text).tools.len(), 2);
}
