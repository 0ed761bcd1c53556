//! Documents, and what becomes of them.

mod payloads;
mod addresses;
mod any;

use std::{
    fs,
    sync::atomic::{AtomicU32, Ordering},
};

use serde_json::json;

use super::*;

/// A workspace that goes away with the test.
struct Folder(PathBuf);

impl Folder {
    fn new(files: &[(&str, &str)]) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("toolcrib-asyncapi-{}-{number}", std::process::id());
        let folder = Self(std::env::temp_dir().join(name));
        fs::create_dir_all(folder.0.join("events")).unwrap();
        for (name, text) in files {
            folder.write(name, text);
        }
        folder
    }

    fn write(&self, name: &str, text: &str) {
        let file = self.0.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn load(&self) -> Loaded {
        load(&self.0)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

/// A document with one channel `c` and one operation `o`, both in YAML.
fn document(channel: &str, operation: &str, rest: &str) -> String {
    format!(
        "asyncapi: 3.0.0\ninfo: {{title: t, version: '1'}}\nchannels:\n  c: {{{channel}}}\noperations:\n  o: {{action: send, channel: {{$ref: '#/channels/c'}}, {operation}}}\n{rest}"
    )
}

const ON: &str = "x-agent-tool: {enabled: true}";

fn load_text(text: &str) -> Loaded {
    Folder::new(&[("events/a.yaml", text)]).load()
}

/// Problems as lines.
fn told(loaded: &Loaded) -> String {
    loaded.problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

/// The one tool of a document that has nothing wrong with it.
#[track_caller]
fn good(text: &str) -> Arc<EventTool> {
    let loaded = load_text(text);
    assert_eq!(told(&loaded), "");
    assert_eq!(loaded.tools.len(), 1);
    Arc::clone(&loaded.tools[0])
}

/// Name and schema of each tool, then the problems.
fn shown(text: &str) -> String {
    let loaded = load_text(text);
    let mut lines: Vec<String> = loaded
        .tools
        .iter()
        .map(|it| format!("{} [{}] {}", it.name, it.address, it.input_schema))
        .collect();
    lines.push(told(&loaded));
    lines.join("\n")
}

/// What a call gives: the name, the data and the headers, or what is wrong.
fn call(tool: &EventTool, arguments: &str) -> String {
    match tool.emission(&Json::parse(arguments.to_owned()).unwrap()) {
        Ok(it) => match it.headers {
            Some(headers) => format!("{} {} {headers}", it.name, it.data),
            None => format!("{} {}", it.name, it.data),
        },
        Err(faults) => format!("refused: {faults}"),
    }
}

#[test]
fn no_folder_and_an_empty_folder_are_nothing() {
    let folder = Folder::new(&[]);
    assert_eq!((folder.load().tools.len(), told(&folder.load())), (0, String::new()));
    fs::remove_dir_all(folder.0.join("events")).unwrap();
    assert_eq!((folder.load().tools.len(), told(&folder.load())), (0, String::new()));
    folder.write("events", "a file");
    assert!(told(&folder.load()).starts_with("events: "));
}

#[test]
fn which_files_are_documents() {
    let text = |name: &str| {
        document("address: a.b", &format!("x-agent-tool: {{enabled: true, name: {name}}}"), "")
    };
    let folder = Folder::new(&[
        ("events/b.yml", &text("two")),
        ("events/a.yaml", &text("one")),
        ("events/_skipped.yaml", &text("hidden")),
        ("events/.hidden.yaml", &text("hidden")),
        ("events/deeper/a.yaml", &text("deeper")),
        ("events/readme.txt", "no document"),
        (
            "events/c.json",
            r##"{"asyncapi": "3.1.0", "info": {"title": "t", "version": "1"}, "channels": {"c": {"address": "a.b"}},
            "operations": {"o": {"action": "receive", "channel": {"$ref": "#/channels/c"}, "x-agent-tool": {"enabled": true, "name": "three"}}}}"##,
        ),
    ]);
    fs::create_dir(folder.0.join("events/d.yaml")).unwrap();
    let loaded = folder.load();
    let names: Vec<&str> = loaded.tools.iter().map(|it| it.name.as_str()).collect();
    assert_eq!((names, told(&loaded)), (vec!["one", "two", "three"], String::new()));
    assert_eq!(loaded.tools[0].file, Path::new("events/a.yaml"));
}

#[test]
fn a_file_that_is_no_document_is_told_with_its_place() {
    let lines = |text: &str| told(&load_text(text));
    insta::assert_snapshot!(lines(""), @"events/a.yaml: it is empty");
    insta::assert_snapshot!(lines("- 1\n"), @"events/a.yaml: it must be a mapping");
    insta::assert_snapshot!(lines("a: [1,\n b: {"), @"events/a.yaml:2:5: unclosed bracket '{'");
    insta::assert_snapshot!(lines("operations: {}\n"), @r#"events/a.yaml: asyncapi: it is missing (hint: write `asyncapi: "3.0.0"`)"#);
    insta::assert_snapshot!(lines("asyncapi: '2.6.0'\n"), @"events/a.yaml: asyncapi: `2.6.0` is none of 3.0 and 3.1");
    insta::assert_snapshot!(lines("asyncapi: 3\n"), @"events/a.yaml: asyncapi: `3` is none of 3.0 and 3.1");
    insta::assert_snapshot!(lines("asyncapi: [3]\n"), @r#"events/a.yaml: asyncapi: it must be text (hint: write it in quotes, with all three numbers: "3.0.0")"#);
    insta::assert_snapshot!(lines("asyncapi: 3.0.0\ninfo: {title: t, version: '1'}\noperations: [1]\n"), @"
    events/a.yaml: operations: not as AsyncAPI 3.0.0 has it: it must be of type object
    events/a.yaml: operations: it must be a mapping
    ");
    let unquoted = document("address: a.b", ON, "").replace("3.0.0", "3.1");
    insta::assert_snapshot!(shown(&unquoted), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: asyncapi: it must be text (hint: write it in quotes, with all three numbers: "3.0.0")
    "#);
    let later = document("address: a.b", ON, "").replace("3.0.0", "3.0.7");
    insta::assert_snapshot!(shown(&later), @r#"o [a.b] {"type":"object","properties":{},"required":[]}"#);
}

#[test]
fn what_the_official_schema_does_not_allow_is_told_and_costs_nothing() {
    let text = "asyncapi: 3.0.0\nchannels:\n  c: {address: 7, bogus: 1}\n  d: {address: a.b}\noperations:\n  o: {action: sned, channel: {$ref: '#/channels/d'}, x-agent-tool: {enabled: true}}\n  p: {channel: '#/channels/d', x-agent-tool: {enabled: true}}\n  q: {action: send}\n";
    insta::assert_snapshot!(shown(text), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    p [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: not as AsyncAPI 3.0.0 has it: `info` is required
    events/a.yaml: channels: c: not as AsyncAPI 3.0.0 has it: `bogus` is not known here
    events/a.yaml: channels: c: address: not as AsyncAPI 3.0.0 has it: it is not of types "null", "string"
    events/a.yaml: operations: o: action: not as AsyncAPI 3.0.0 has it: it must be one of ["send","receive"]
    events/a.yaml: operations: p: not as AsyncAPI 3.0.0 has it: `action` is required
    events/a.yaml: not as AsyncAPI 3.0.0 has it: 2 more
    "#);
}

#[test]
fn only_true_is_true() {
    let one =
        |enabled: &str| shown(&document("address: a.b", &format!("x-agent-tool: {enabled}"), ""));
    for off in ["{enabled: false}", "{}"] {
        assert_eq!(one(off), "");
    }
    assert_eq!(shown(&document("address: a.b", "summary: s", "")), "");
    insta::assert_snapshot!(one("{enabled: 'false'}"), @"events/a.yaml: operations: o: x-agent-tool: enabled: it must be true or false");
    insta::assert_snapshot!(one("{enabled: 1}"), @"events/a.yaml: operations: o: x-agent-tool: enabled: it must be true or false");
    insta::assert_snapshot!(one("{enabled: yes}"), @"events/a.yaml: operations: o: x-agent-tool: enabled: it must be true or false");
    insta::assert_snapshot!(one("true"), @"events/a.yaml: operations: o: x-agent-tool: it must be a mapping (hint: write `x-agent-tool: { enabled: true }`)");
    insta::assert_snapshot!(one("{enabled: true, descripton: d, zzz: 1}"), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: operations: o: x-agent-tool: unknown key `descripton` (hint: did you mean `description`?)
    events/a.yaml: operations: o: x-agent-tool: unknown key `zzz` (hint: it is ignored)
    "#);
}

#[test]
fn names_and_descriptions_fall_back() {
    let one = |id: &str, address: &str, more: &str| {
        let text = document(&format!("address: '{address}'"), more, "")
            .replace("\n  o: ", &format!("\n  {id}: "));
        let loaded = load_text(&text);
        let all: Vec<String> =
            loaded.tools.iter().map(|it| format!("{}: {}", it.name, it.description)).collect();
        let told: Vec<&str> = loaded
            .problems
            .iter()
            .map(|it| it.message.as_str())
            .filter(|it| !it.starts_with("not as"))
            .collect();
        [all.join("\n"), told.join("\n")].concat()
    };
    assert_eq!(one("o", "a.b", "x-agent-tool: {enabled: true, name: n, description: d}"), "n: d");
    assert_eq!(one("o", "a.b", "summary: s, x-agent-tool: {enabled: true, name: a/b}"), "a/b: s");
    assert_eq!(
        one("o", "a.b", "summary: s, x-agent-tool: {enabled: true, name: '', description: ''}"),
        "o: s"
    );
    assert_eq!(
        one("o", "a.b", "description: x, x-agent-tool: {enabled: true, name: null}"),
        "o: Event tool: o"
    );
    assert_eq!(one("'say hi'", "a.{x}/b", ON), "a._x__b: Event tool: a._x__b");
    assert_eq!(one("''", "a.b", ON), "a.b: Event tool: a.b");
    assert_eq!(one("mcp__x", "a.b", ON), "a.b: Event tool: a.b");
    insta::assert_snapshot!(one("o", "a.b", "x-agent-tool: {enabled: true, name: 'a b'}"), @"the tool name `a b` cannot be used: it may have 1 to 128 letters, digits and the characters _ . - /; it is no tool");
    insta::assert_snapshot!(one("o", "a.b", "x-agent-tool: {enabled: true, name: 7}"), @"`name` must be text; it is no tool");
    insta::assert_snapshot!(one("o", "a.b", "x-agent-tool: {enabled: true, name: mcp__a}"), @"names that begin with `mcp__` are those of servers; it is no tool");
    insta::assert_snapshot!(one("o", "a.b", "summary: [s], x-agent-tool: {enabled: true}"), @"o: Event tool: oit must be text");
}

#[test]
fn traits_are_merged_and_the_operation_wins() {
    let rest = "components:\n  operationTraits:\n    tool: {summary: early, x-agent-tool: {enabled: true, name: trait}}\n    late: {summary: late}\n";
    let traits = "traits: [{$ref: '#/components/operationTraits/tool'}, {$ref: '#/components/operationTraits/late'}]";
    let tool = good(&document("address: a.b", traits, rest));
    assert_eq!((tool.name.as_str(), tool.description.as_str()), ("trait", "late"));
    let own = format!("{traits}, summary: own, x-agent-tool: {{name: own}}");
    let tool = good(&document("address: a.b", &own, rest));
    assert_eq!((tool.name.as_str(), tool.description.as_str()), ("own", "own"));
    let gone = format!("traits: [{{$ref: '#/components/operationTraits/gone'}}], {ON}");
    insta::assert_snapshot!(shown(&document("address: a.b", &gone, rest)), @r#"
    o [a.b] {"type":"object","properties":{},"required":[]}
    events/a.yaml: operations: o: traits: `#/components/operationTraits/gone` leads nowhere: there is no `gone`
    "#);
}

#[test]
fn references_lead_over_steps_escapes_and_files() {
    let folder = Folder::new(&[
        (
            "events/a.yaml",
            "asyncapi: 3.0.0\ninfo: {title: t, version: '1'}\nchannels:\n  'a/b~c d': {$ref: '../common/all.yaml#/channels/x'}\noperations:\n  o: {$ref: '#/components/operations/o'}\ncomponents:\n  operations:\n    o: {action: send, channel: {$ref: '#/channels/a~1b~0c%20d'}, messages: [{$ref: '#/channels/a~1b~0c%20d/messages/m'}], x-agent-tool: {enabled: true}}\n",
        ),
        (
            "common/all.yaml",
            "channels:\n  x:\n    address: x.{p}\n    parameters: {p: {$ref: 'parts.json#/p'}}\n    messages: {m: {$ref: './parts.json#/messages/0'}}\n",
        ),
        (
            "common/parts.json",
            r#"{"p": {"enum": ["q"]}, "messages": [{"payload": {"$ref": "deep/schema.yaml"}}]}"#,
        ),
        (
            "common/deep/schema.yaml",
            "type: object\nproperties:\n  tree: {$ref: '#/definitions/Tree'}\ndefinitions:\n  Tree: {type: object, properties: {next: {$ref: '#/definitions/Tree'}}, additionalProperties: false}\n",
        ),
    ]);
    let loaded = folder.load();
    assert_eq!(told(&loaded), "");
    let tool = &loaded.tools[0];
    insta::assert_snapshot!(tool.input_schema, @r##"{"type":"object","properties":{"tree":{"$ref":"#/$defs/Tree"},"p":{"type":"string","enum":["q"]}},"definitions":{"Tree":{"type":"object","properties":{"next":{"$ref":"#/$defs/Tree"}},"additionalProperties":false}},"required":["p"],"$defs":{"Tree":{"type":"object","properties":{"next":{"$ref":"#/$defs/Tree"}},"additionalProperties":false}}}"##);
    assert_eq!(
        call(tool, r#"{"p":"q","tree":{"next":{"next":{}}}}"#),
        r#"x.q {"tree":{"next":{"next":{}}}}"#
    );
    assert!(
        call(tool, r#"{"p":"q","tree":{"next":{"more":1}}}"#)
            .starts_with("refused: /tree/next/more: ")
    );
    let referenced: Vec<String> =
        loaded.referenced.iter().map(|it| it.display().to_string()).collect();
    assert_eq!(referenced, ["common/all.yaml", "common/deep/schema.yaml", "common/parts.json"]);

    let before = fingerprint(&folder.0, &loaded.referenced);
    assert_eq!(before, fingerprint(&folder.0, &loaded.referenced));
    folder.write("common/parts.json", "{}");
    assert_ne!(before, fingerprint(&folder.0, &loaded.referenced));
}

#[test]
fn references_that_lead_nowhere_cost_their_operation() {
    let one = |channel: &str| {
        shown(
            &document("address: a.b", ON, "loop: {$ref: '#/pool'}\npool: {$ref: '#/loop'}\n")
                .replace("'#/channels/c'", &format!("'{channel}'")),
        )
    };
    insta::assert_snapshot!(one("#/channels/nope"), @"
    events/a.yaml: not as AsyncAPI 3.0.0 has it: `loop`, `pool` is not known here
    events/a.yaml: operations: o: channel: `#/channels/nope` leads nowhere: there is no `nope`; it is no tool
    ");
    insta::assert_snapshot!(one("#/loop"), @"
    events/a.yaml: not as AsyncAPI 3.0.0 has it: `loop`, `pool` is not known here
    events/a.yaml: operations: o: channel: `#/pool` leads back to itself; it is no tool
    ");
    insta::assert_snapshot!(one("https://example.com/a.yaml#/c"), @"
    events/a.yaml: not as AsyncAPI 3.0.0 has it: `loop`, `pool` is not known here
    events/a.yaml: operations: o: channel: `https://example.com/a.yaml#/c` leads nowhere: only files of the workspace are read, nothing from a network; it is no tool
    ");
    insta::assert_snapshot!(one("file:///etc/passwd"), @"
    events/a.yaml: not as AsyncAPI 3.0.0 has it: `loop`, `pool` is not known here
    events/a.yaml: operations: o: channel: `file:///etc/passwd` leads nowhere: only files of the workspace are read, nothing from a network; it is no tool
    ");
    insta::assert_snapshot!(one("../../../../../../etc/passwd"), @"
    events/a.yaml: not as AsyncAPI 3.0.0 has it: `loop`, `pool` is not known here
    events/a.yaml: operations: o: channel: `../../../../../../etc/passwd` leads nowhere: it is outside of the workspace; it is no tool
    ");
    insta::assert_snapshot!(one("nope.yaml#/c"), @"
    events/a.yaml: not as AsyncAPI 3.0.0 has it: `loop`, `pool` is not known here
    events/a.yaml: operations: o: channel: `nope.yaml#/c` leads nowhere: there is no such file; it is no tool
    ");
    insta::assert_snapshot!(one("#anchor"), @"
    events/a.yaml: not as AsyncAPI 3.0.0 has it: `loop`, `pool` is not known here
    events/a.yaml: operations: o: channel: `#anchor` leads nowhere: what stands behind `#` must be empty or begin with `/`; it is no tool
    ");
    insta::assert_snapshot!(one("#/info/title"), @"
    events/a.yaml: not as AsyncAPI 3.0.0 has it: `loop`, `pool` is not known here
    events/a.yaml: operations: o: channel: it must lead to a mapping; it is no tool
    ");
}

#[test]
fn a_link_does_not_lead_out_of_the_workspace() {
    let outside = Folder::new(&[("events/out.yaml", &document("address: a.b", ON, ""))]);
    let folder = Folder::new(&[(
        "events/a.yaml",
        &document("address: a.b", ON, "").replace("#/channels/c", "link.yml#/channels/c"),
    )]);
    std::os::unix::fs::symlink(outside.0.join("events/out.yaml"), folder.0.join("events/link.yml"))
        .unwrap();
    let loaded = folder.load();
    assert!(loaded.tools.is_empty());
    let messages: Vec<&str> = loaded
        .problems
        .iter()
        .map(|it| it.message.as_str())
        .filter(|it| it.contains("outside"))
        .collect();
    assert_eq!(messages.len(), 2, "{}", told(&loaded));
}

/// What the official schema costs when it is first needed.
#[test]
fn the_official_schemas_compile() {
    for version in [Version::V3_0, Version::V3_1] {
        let begin = std::time::Instant::now();
        let document =
            json!({ "asyncapi": version.written(), "info": { "title": "t", "version": "1" } });
        assert_eq!(official::misfits(version, &document), (Vec::new(), 0));
        let compiled = begin.elapsed();
        let (misfits, _) = official::misfits(version, &json!({ "asyncapi": version.written() }));
        assert_eq!(misfits.len(), 1);
        println!("{}: {compiled:?}", version.written());
    }
}
