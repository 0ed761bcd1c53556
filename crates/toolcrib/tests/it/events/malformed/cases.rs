//! Files that are no documents, or almost, by kind.

use serde_json::{Value, json};

/// One file that is wrong.
pub(super) struct Case {
    pub(super) kind: &'static str,
    /// Its extension.
    pub(super) extension: &'static str,
    pub(super) bytes: Vec<u8>,
    /// Other files, from the workspace on.
    pub(super) beside: Vec<(&'static str, Vec<u8>)>,
}

fn case(kind: &'static str, extension: &'static str, text: impl Into<Vec<u8>>) -> Case {
    Case { kind, extension, bytes: text.into(), beside: Vec::new() }
}

/// A document that has everything, and nothing wrong.
pub(super) fn whole() -> Value {
    let message = json!({
        "headers": { "type": "object", "properties": { "k": { "type": "string" } } },
        "payload": { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
    });
    json!({
        "asyncapi": "3.0.0",
        "info": { "title": "t", "version": "1" },
        "channels": {
            "c": { "address": "a.{p}", "messages": { "m": message },
                "parameters": { "p": { "description": "d", "enum": ["x"], "default": "x", "location": "$message.payload#/a" } } },
            "r": { "address": "r", "messages": { "m": { "payload": { "type": "object" } } } },
        },
        "operations": { "o": {
            "action": "send", "summary": "s",
            "channel": { "$ref": "#/channels/c" },
            "messages": [{ "$ref": "#/channels/c/messages/m" }],
            "traits": [{ "description": "d" }],
            "reply": { "channel": { "$ref": "#/channels/r" }, "messages": [{ "$ref": "#/channels/r/messages/m" }] },
            "x-agent-tool": { "enabled": true, "name": "n", "description": "d", "wait": "1s" },
        } },
    })
}

/// The same as YAML, with a piece replaced.
pub(super) fn yaml(from: &str, to: &str) -> String {
    let text = "asyncapi: 3.0.0\ninfo: {title: t, version: '1'}\nchannels:\n  c: {address: a.b, messages: {m: {payload: {type: object}}}}\noperations:\n  o:\n    action: send\n    channel: {$ref: '#/channels/c'}\n    x-agent-tool: {enabled: true}\n";
    assert!(text.contains(from), "{from}");
    text.replacen(from, to, 1)
}

/// Where the whole document is taken apart.
const PLACES: [&str; 36] = [
    "/asyncapi",
    "/info",
    "/channels",
    "/channels/c",
    "/channels/c/address",
    "/channels/c/messages",
    "/channels/c/messages/m",
    "/channels/c/messages/m/headers",
    "/channels/c/messages/m/headers/type",
    "/channels/c/messages/m/payload",
    "/channels/c/messages/m/payload/type",
    "/channels/c/messages/m/payload/properties",
    "/channels/c/messages/m/payload/properties/a",
    "/channels/c/messages/m/payload/required",
    "/channels/c/parameters",
    "/channels/c/parameters/p",
    "/channels/c/parameters/p/description",
    "/channels/c/parameters/p/enum",
    "/channels/c/parameters/p/default",
    "/channels/c/parameters/p/location",
    "/channels/r/address",
    "/operations",
    "/operations/o",
    "/operations/o/action",
    "/operations/o/summary",
    "/operations/o/channel",
    "/operations/o/channel/$ref",
    "/operations/o/messages",
    "/operations/o/messages/0",
    "/operations/o/messages/0/$ref",
    "/operations/o/traits",
    "/operations/o/traits/0",
    "/operations/o/reply",
    "/operations/o/reply/channel",
    "/operations/o/x-agent-tool",
    "/operations/o/x-agent-tool/enabled",
];

pub(super) fn wrong_types(cases: &mut Vec<Case>) {
    for place in PLACES {
        for wrong in [json!(7), json!([[1]]), json!([{ "a": [] }])] {
            let mut document = whole();
            *document.pointer_mut(place).unwrap() = wrong;
            cases.push(case("wrong type", "json", document.to_string()));
        }
    }
    for place in ["name", "description", "wait"] {
        for wrong in [json!(-7), json!([1]), json!({ "a": 1 }), json!(true)] {
            let mut document = whole();
            document["operations"]["o"]["x-agent-tool"][place] = wrong;
            cases.push(case("wrong wish", "json", document.to_string()));
        }
    }
    for place in PLACES.iter().filter(|it| !it.contains("/p") && !it.ends_with("enabled")) {
        let mut document = whole();
        *document.pointer_mut(place).unwrap() = json!("\u{0}\u{202e}x\n");
        if !place.ends_with("summary") {
            cases.push(case("odd text", "json", document.to_string()));
        }
    }
}

pub(super) fn bombs(cases: &mut Vec<Case>) {
    for (width, levels) in [(2, 40), (4, 20), (9, 9), (100, 4)] {
        let mut text = "asyncapi: 3.0.0\nx0: &x0 [lol]\n".to_owned();
        for level in 1..levels {
            let below = format!("*x{}, ", level - 1).repeat(width);
            text.push_str(&format!("x{level}: &x{level} [{below}]\n"));
        }
        cases.push(case("alias bomb", "yaml", text.clone()));
        cases.push(case("mapping bomb", "yaml", text.replace('[', "{k: [").replace(']', "]}")));
    }
    let mut merges = "asyncapi: 3.0.0\nx0: &x0 {a: 1}\n".to_owned();
    for level in 1..30 {
        let below = level - 1;
        merges.push_str(&format!(
            "x{level}: &x{level} {{<<: [*x{below}, *x{below}], k{level}: *x{below}}}\n"
        ));
    }
    cases.push(case("merge bomb", "yaml", merges));
    cases.push(case("merge of no mapping", "yaml", yaml("info:", "<<: 7\ninfo:")));
    for depth in [70, 1000, 100_000] {
        cases.push(case("deep", "yaml", format!("a: {}", "[".repeat(depth))));
        cases.push(case(
            "deep",
            "yaml",
            format!("a: {}{}", "{a: ".repeat(depth), "}".repeat(depth)),
        ));
        cases.push(case("deep", "json", format!("{}{}", "[".repeat(depth), "]".repeat(depth))));
        cases.push(case("deep", "json", "{\"a\":".repeat(depth)));
        cases.push(case("deep", "yaml", format!("a: {}x", "- ".repeat(depth))));
    }
    let lines: String = (0..2000).map(|it| format!("{}a:\n", " ".repeat(it))).collect();
    cases.push(case("deep", "yaml", lines));
    cases.push(case("many values", "json", format!("[{}1]", "1,".repeat(1_500_000))));
    cases.push(case("many values", "yaml", format!("[{}1]", "1,".repeat(400_000))));
    cases.push(case(
        "many keys",
        "yaml",
        (0..300_000).map(|it| format!("k{it}: 1\n")).collect::<String>(),
    ));
    cases.push(case("large", "yaml", vec![b'a'; 50 << 20]));
    cases.push(case("large", "json", vec![b' '; (4 << 20) + 1]));
    cases.push(case("long word", "yaml", format!("asyncapi: {}", "3".repeat(3 << 20))));
    cases.push(case("long key", "yaml", format!("{}: 1", "k".repeat(3 << 20))));
    cases.push(case(
        "many anchors",
        "yaml",
        (0..100_000).map(|it| format!("- &a{it} x\n")).collect::<String>(),
    ));
}

pub(super) fn texts(cases: &mut Vec<Case>) {
    for (at, bad) in [(0, 0xff_u8), (9, 0xc3), (40, 0x80), (100, 0xfe)] {
        let mut bytes = yaml("", "").into_bytes();
        bytes[at] = bad;
        cases.push(case("not UTF-8", "yaml", bytes.clone()));
        cases.push(case("not UTF-8", "json", bytes));
    }
    let wide: Vec<u8> = yaml("", "").encode_utf16().flat_map(u16::to_le_bytes).collect();
    cases.push(case("UTF-16", "yaml", [vec![0xff, 0xfe], wide].concat()));
    for text in ["\0", "asyncapi: 3.0.0\n\0", "asyncapi: \"3.0.0\0\"\n", "\u{7f}\u{1}"] {
        cases.push(case("NUL and its like", "yaml", text));
    }
    for text in [
        "\tasyncapi: 3.0.0",
        "asyncapi:\n\t'3.0.0'\nchannels:\n\tc: 1\n",
        "a:\n\t- b: 1\n\t  c: 2\n",
    ] {
        cases.push(case("tabs", "yaml", text));
    }
    for text in ["", "   \n", "# only words\n", "---\n", "...\n", "null", "~"] {
        cases.push(case("nothing", "yaml", text));
    }
    for text in [
        "",
        "null",
        "7",
        "\"x\"",
        "[]",
        "[{}]",
        "{",
        "{\"a\":}",
        "{} {}",
        "{'a': 1}",
        "{\"a\": 01}",
        "nul",
        "{\"a\": \"\\x\"}",
        "{\"a\": \"\\ud800\"}",
    ] {
        cases.push(case("no object", "json", text));
    }
    for text in [
        "just words",
        "- 1\n- 2",
        "[1, 2",
        "{a: 1",
        "a: 'x",
        "a: \"x",
        "a: b: c",
        "a: |\n b\nc",
        "*x",
        "&x",
        "@a",
        "`a",
        "%YAML 9.9\n---\na: 1",
        "a: [1, 2}}",
        "? a\n? b\n: : :",
        "!!map [1]",
        "a: !!int x",
    ] {
        cases.push(case("no mapping", "yaml", text));
    }
}

pub(super) fn meanings(cases: &mut Vec<Case>) {
    for text in [
        yaml("info:", "asyncapi: 3.0.0\ninfo:"),
        yaml("    action: send\n", "    action: send\n    action: send\n"),
        yaml("address: a.b", "address: a.b, address: a.c"),
        "1: a\n'1': b\n".to_owned(),
    ] {
        cases.push(case("a key twice", "yaml", text));
    }
    cases.push(case("a key twice", "json", r#"{"asyncapi":"3.0.0","asyncapi":"3.0.0"}"#));
    cases.push(case("a key twice", "json", r#"{"asyncapi":"3.0.0","\u0061syncapi":"3.0.0"}"#));
    for text in ["a: 1\n---\nb: 2\n", "---\na: 1\n---\n", "--- a\n--- b\n"] {
        cases.push(case("several documents", "yaml", text));
    }
    for tag in [
        "!!python/object/apply:os.system ['id']",
        "!ruby/object:X {}",
        "!include /etc/passwd",
        "!<tag:x,2000:y> z",
        "!!binary '%%%'",
    ] {
        cases.push(case("tags", "yaml", yaml("{title: t, version: '1'}", tag)));
    }
    for text in ["a: &x [*x]\n", "a: &x {b: *x}\n", "a: &x\n  - &y [*x, *y]\n", "a: *gone\n"] {
        cases.push(case("anchors in a circle", "yaml", text));
    }
    for number in [".inf", "-.INF", ".nan", "1e999"] {
        cases.push(case("no finite number", "yaml", yaml("{title: t, version: '1'}", number)));
    }
    for number in [
        "9".repeat(400),
        "-1".to_owned(),
        "3.2".to_owned(),
        "0x3".to_owned(),
        "3.0.".to_owned(),
        "'3.0'".to_owned(),
        "'v3.0.0'".to_owned(),
        "2.6.0".to_owned(),
        "4.0.0".to_owned(),
        "true".to_owned(),
        "[3.0.0]".to_owned(),
        "3.0".to_owned(),
    ] {
        cases.push(case("version", "yaml", yaml("3.0.0", &number)));
    }
    cases.push(case("version", "yaml", yaml("asyncapi: 3.0.0\n", "")));
}

pub(super) fn references(cases: &mut Vec<Case>) {
    let to = |target: &str| yaml("'#/channels/c'", &format!("'{target}'"));
    for target in [
        "#/channels/gone",
        "#/channels",
        "#",
        "#/",
        "#c",
        "#/channels/c/address",
        "#/channels/%ff",
        "#/channels/c~2",
        "channels/c",
        "",
    ] {
        cases.push(case("leads nowhere", "yaml", to(target)));
    }
    for target in [
        "http://127.0.0.1:9/a.yaml",
        "https://example.com/a.yaml#/c",
        "//example.com/a",
        "ftp://x/y",
        "file:///etc/passwd",
        "data:text/plain,x",
        "urn:x:y",
        "HTTP://EXAMPLE.COM",
    ] {
        cases.push(case("network", "yaml", to(target)));
    }
    for target in [
        "/etc/passwd",
        "../../../../../../../../etc/passwd#/c",
        "../../outside.yaml#/channels/c",
        "..",
        ".",
        "%2e%2e/%2e%2e/outside.yaml",
        "/dev/zero",
        "/proc/self/environ",
        "a%00b.yaml",
    ] {
        cases.push(case("outside", "yaml", to(target)));
    }
    for (from, to) in [
        ("c: {address: a.b", "c: {$ref: '#/channels/c', address: a.b"),
        ("  o:\n", "  p: {$ref: '#/operations/q'}\n  q: {$ref: '#/operations/p'}\n  o:\n"),
        ("{type: object}", "{$ref: '#/channels/c/messages/m/payload'}"),
        ("{payload:", "{$ref: '#/channels/c/messages/m', payload:"),
        ("    x-agent", "    traits: [{$ref: '#/operations/o/traits/0'}]\n    x-agent"),
        ("    x-agent", "    reply: {$ref: '#/operations/o/reply'}\n    x-agent"),
    ] {
        cases.push(case("circle", "yaml", yaml(from, to)));
    }
    let others = ["a: [", "[1]", "", "c: {$ref: 'other.yaml#/c'}", "c: 7", "c: {address: 'a b'}"];
    for text in others {
        let bad = case("another file", "yaml", to("../other.yaml#/c"));
        cases.push(Case { beside: vec![("other.yaml", text.as_bytes().to_vec())], ..bad });
    }
    for (text, name) in [(vec![b'x'; 5 << 20], "big.yaml"), (vec![0xff, 0x00], "latin.yaml")] {
        let target = if name == "big.yaml" { "../big.yaml#/c" } else { "../latin.yaml#/c" };
        cases.push(Case { beside: vec![(name, text)], ..case("another file", "yaml", to(target)) });
    }
    let many: String = (0..500).map(|it| format!("    - {{$ref: 'm{it}.yaml'}}\n")).collect();
    cases.push(case(
        "many files",
        "yaml",
        yaml("    x-agent", &format!("    messages:\n{many}    x-agent")),
    ));
}

pub(super) fn operations(cases: &mut Vec<Case>) {
    for address in [
        "''",
        "'a b'",
        "'a..b'",
        "'.a'",
        "'a.'",
        "'*'",
        "'a.>'",
        "'{'",
        "'{}'",
        "'a.{b c}'",
        "toolcrib.x",
        "\"a\\0b\"",
    ] {
        cases.push(case("address", "yaml", yaml("address: a.b", &format!("address: {address}"))));
    }
    cases.push(case(
        "address",
        "yaml",
        yaml("address: a.b", &format!("address: {}", "a".repeat(300))),
    ));
    for wish in [
        "true",
        "7",
        "[]",
        "{enabled: 'false'}",
        "{enabled: yes}",
        "{enabled: 1}",
        "{enabled: null}",
        "{enabled: true, name: 'a b'}",
        "{enabled: true, name: mcp__x}",
        "{enabled: true, wait: 5s}",
        "{enabled: true, enbled: true}",
    ] {
        cases.push(case("x-agent-tool", "yaml", yaml("{enabled: true}", wish)));
    }
}

pub(super) fn schemas(cases: &mut Vec<Case>) {
    for payload in [
        "x",
        "7",
        "[]",
        "{type: strnig}",
        "{type: object, required: a}",
        "{type: object, properties: []}",
        "{pattern: '('}",
        "{$ref: '#/gone'}",
        "{$ref: 7}",
        "{minimum: x}",
        "{schemaFormat: application/vnd.apache.avro, schema: {}}",
        "{schemaFormat: 7, schema: {}}",
        "{$schema: 'https://example.com/own', type: 7}",
        "{$dynamicRef: '#x'}",
    ] {
        cases.push(case("payload", "yaml", yaml("{type: object}", payload)));
    }
    let doubling: String = (0..64)
        .map(|it| {
            format!(
                "    s{it}: {{anyOf: [{{$ref: '#/x/s{n}'}}, {{$ref: '#/x/s{n}'}}]}}\n",
                n = it + 1
            )
        })
        .collect();
    let doubling = format!(
        "{}x:\n{doubling}    s64: {{type: object}}\n",
        yaml("{type: object}", "{$ref: '#/x/s0'}")
    );
    cases.push(case("doubling schema", "yaml", doubling));
    let wide: String = (0..5000).map(|it| format!("p{it}: {{type: string}}, ")).collect();
    cases.push(case(
        "wide schema",
        "yaml",
        yaml("{type: object}", &format!("{{type: object, properties: {{{wide}}}}}")),
    ));
    let many: String = (0..11_000)
        .map(|it| format!("  o{it}: {{action: send, channel: {{$ref: '#/channels/c'}}}}\n"))
        .collect();
    cases.push(case(
        "many operations",
        "yaml",
        yaml("operations:\n", &format!("operations:\n{many}")),
    ));
    let broken: String =
        (0..2000).map(|it| format!("  o{it}: {{x-agent-tool: {{enabled: true}}}}\n")).collect();
    cases.push(case(
        "many broken operations",
        "yaml",
        yaml("operations:\n", &format!("operations:\n{broken}")),
    ));
    let fat = format!("{{type: object, examples: ['{}']}}", "x".repeat(300 * 1024));
    cases.push(case("fat schema", "yaml", yaml("{type: object}", &fat)));
}
