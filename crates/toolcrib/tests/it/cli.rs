//! The command line, as transcripts.

use serde_json::json;
use toolcrib_testkit::{Act, Fault, Plan};

use crate::kit::{Folder, entry, toolcrib};

fn shop() -> Folder {
    let shelf = Plan::legacy().tool("find-item", Act::Echo).tool("break_it", Act::Fail);
    let mut till = entry(
        &Plan::modern()
            .tool("add", Act::Result(r#"{"content":[{"type":"text","text":"7"},{"type":"image","data":"QUJD","mimeType":"image/png"},{"type":"resource_link","uri":"file:///bill","name":"bill"}],"structuredContent":{"sum":7},"isError":false}"#.to_owned()))
            .tool("open", Act::Echo)
            .tool("fail", Act::Error(-32602)),
    );
    till["exclude"] = json!(["open"]);
    Folder::workspace(&json!({ "shelf": entry(&shelf), "till": till }))
}

/// What the user sees, with what changes from machine to machine taken out.
#[track_caller]
fn see(folder: &Folder, args: &[&str]) -> String {
    let path = folder.path().to_string_lossy().into_owned();
    toolcrib(folder.path(), args).transcript().replace(&path, "FOLDER")
}

#[test]
fn tools_shows_a_table() {
    insta::assert_snapshot!(see(&shop(), &["tools"]));
}

#[test]
fn tools_prints_json() {
    insta::assert_snapshot!(see(&shop(), &["tools", "--json"]));
}

#[test]
fn a_workspace_can_be_named_as_folder_or_as_file() {
    let shop = shop();
    let elsewhere = Folder::new();
    let run = |path| toolcrib(elsewhere.path(), &["tools", path]).out;
    let folder = shop.path().to_str().unwrap();
    let file = shop.file("mcp.json");
    assert_eq!(run(folder), run(file.to_str().unwrap()));
}

#[test]
fn call_prints_the_result_by_type() {
    insta::assert_snapshot!(see(&shop(), &["call", "mcp__till__add"]));
}

#[test]
fn call_json_prints_what_the_server_sent_to_the_letter() {
    insta::assert_snapshot!(see(&shop(), &["call", "mcp__till__add", "--json"]));
}

#[test]
fn call_takes_arguments_one_by_one_and_as_json() {
    let args =
        ["call", "mcp__shelf__find_item", "n=7", "word=x=y", "--args", r#"{"n":1,"deep":[1.10]}"#];
    insta::assert_snapshot!(see(&shop(), &args));
}

#[test]
fn call_fails_with_exit_code_1_where_the_tool_says_so() {
    insta::assert_snapshot!(see(&shop(), &["call", "mcp__shelf__break_it"]));
    insta::assert_snapshot!(see(&shop(), &["call", "mcp__till__fail"]));
}

#[test]
fn call_of_an_unknown_tool_says_what_was_meant() {
    insta::assert_snapshot!(see(&shop(), &["call", "mcp__shelf__find_itm"]));
    insta::assert_snapshot!(see(&shop(), &["call", "find-item"]));
}

#[test]
fn call_refuses_arguments_it_cannot_read() {
    let shop = shop();
    insta::assert_snapshot!(see(&shop, &["call", "mcp__till__add", "seven"]));
    insta::assert_snapshot!(see(&shop, &["call", "mcp__till__add", "--args", "[1]"]));
    insta::assert_snapshot!(see(&shop, &["call", "mcp__till__add", "--args", "{"]));
    insta::assert_snapshot!(see(&shop, &["call", "mcp__till__add", "--timeout", "-1"]));
}

#[test]
fn call_gives_up_in_time() {
    let folder = Folder::workspace(&json!({ "s": entry(&Plan::legacy().tool("hang", Act::Hang)) }));
    insta::assert_snapshot!(see(&folder, &["call", "mcp__s__hang", "--timeout", "0.2"]));
}

#[test]
fn call_needs_only_the_server_it_calls() {
    let mut slow = entry(&Plan::legacy().fault(Fault::Mute));
    slow["handshake_timeout"] = json!("60s");
    let quick = entry(&Plan::legacy().tool("echo", Act::Echo));
    let folder = Folder::workspace(&json!({ "slow": slow, "quick": quick }));
    let begin = std::time::Instant::now();
    assert_eq!(toolcrib(folder.path(), &["call", "mcp__quick__echo"]).out, "{}\n");
    assert!(begin.elapsed().as_secs() < 20);
}

#[test]
fn check_is_content_with_a_good_workspace() {
    insta::assert_snapshot!(see(&shop(), &["check"]));
}

#[test]
fn check_tells_every_problem() {
    let mut typo = entry(&Plan::legacy().tool("a", Act::Echo));
    typo["exclude"] = json!(["b*"]);
    typo["comand"] = json!("x");
    typo["env"] = json!({ "TOKEN": "${NO_SUCH_VARIABLE_HERE}" });
    let mut mute = entry(&Plan::legacy().fault(Fault::Mute));
    mute["handshake_timeout"] = json!("300ms");
    let folder = Folder::workspace(&json!({
        "typo": typo,
        "mute": mute,
        "exits": entry(&Plan::legacy().fault(Fault::ExitAtOnce("no config".to_owned()))),
        "missing": { "command": "no-such-program-here" },
        "nowhere": { "url": "http://127.0.0.1:1/mcp" },
        "empty": {},
        "off": { "command": "x", "disabled": true },
    }));
    insta::assert_snapshot!(see(&folder, &["check"]));
    let run = toolcrib(folder.path(), &["check", "--json"]);
    assert_eq!(run.code, 1);
    let report = run.json();
    assert_eq!(report["problems"].as_array().unwrap().len(), 8, "{report:#}");
    assert_eq!(report["tools"], 1);
    assert_eq!(report["disabled"], json!(["off"]));
}

#[test]
fn why_tells_the_story_of_a_name() {
    let shop = shop();
    insta::assert_snapshot!(see(&shop, &["why", "mcp__shelf__find_item"]));
    insta::assert_snapshot!(see(&shop, &["why", "open"]));
    insta::assert_snapshot!(see(&shop, &["why", "mcp__till__opne"]));
}

#[test]
fn a_group_sees_what_it_may_and_why_says_so() {
    let shop = shop();
    let groups = "external_access: { excluded_tools: ['*break*'], groups: { clerk: { exposed_tools: ['mcp__till__*'] } } }";
    shop.write("network.yaml", groups);
    insta::assert_snapshot!(see(&shop, &["tools", "--group", "clerk"]));
    insta::assert_snapshot!(see(&shop, &["tools", "--group", "nobody"]));
    let stories = ["mcp__till__add", "mcp__shelf__find_item", "mcp__shelf__break_it"]
        .map(|name| see(&shop, &["why", name, "--group", "clerk"]));
    insta::assert_snapshot!(stories.join("\n"));
    let shapes = "results: { inline_up_to: 16KB }\nexternal_access: { view: search, groups: { clerk: { pinned_tools: ['*__add'] } } }";
    shop.write("network.yaml", shapes);
    let stories = ["mcp__till__add", "mcp__shelf__find_item"]
        .map(|name| see(&shop, &["why", name, "--group", "clerk"]));
    insta::assert_snapshot!(stories.join("\n"));
}

#[test]
fn network_yaml_decides_on_names_and_its_faults_are_told() {
    let shop = shop();
    shop.write("network.yaml", "names: { upstream: bare }\nlisten_on: x\n");
    insta::assert_snapshot!(see(&shop, &["tools"]));
    insta::assert_snapshot!(see(&shop, &["call", "add"]));
    shop.write("network.yaml", "listen: [\n");
    insta::assert_snapshot!(see(&shop, &["check"]));
}

#[test]
fn why_tells_where_a_hash_comes_from() {
    let tools = Plan::legacy()
        .tool("x.y", Act::Echo)
        .tool("x-y", Act::Echo)
        .tool(&"long".repeat(20), Act::Echo);
    let folder = Folder::workspace(&json!({
        "s-1": entry(&Plan::legacy().tool("a", Act::Echo)),
        "s.1": entry(&Plan::legacy().tool("b", Act::Echo)),
        "t": entry(&tools),
    }));
    insta::assert_snapshot!(see(&folder, &["tools"]));
    for name in ["a", "x.y", &"long".repeat(20)] {
        insta::assert_snapshot!(see(&folder, &["why", name]));
    }
}

#[test]
fn a_folder_that_is_no_workspace_is_said_to_be_none() {
    let folder = Folder::new();
    insta::assert_snapshot!(see(&folder, &["tools"]));
    insta::assert_snapshot!(see(&folder, &["tools", "no/such/folder"]));
    folder.write("mcp.json", "{");
    insta::assert_snapshot!(see(&folder, &["check"]));
    folder.write("mcp.json", r#"{"mcpServers": {}}"#);
    insta::assert_snapshot!(see(&folder, &["tools"]));
}

#[test]
fn help_says_what_there_is() {
    let folder = Folder::new();
    insta::assert_snapshot!(see(&folder, &["--help"]));
    insta::assert_snapshot!(see(&folder, &["call", "--help"]));
    insta::assert_snapshot!(see(&folder, &["tols"]));
}

/// Row D11 of the security list.
#[test]
fn a_hostile_description_cannot_act_on_the_terminal() {
    let plan = Plan::legacy().tool(
        "a\u{1b}[2J",
        Act::Result(
            r#"{"content":[{"type":"text","text":"one\u001b]8;;http:\/\/x\u0007two\nthree"}]}"#
                .to_owned(),
        ),
    );
    let folder = Folder::workspace(&json!({ "s\u{202e}": entry(&plan) }));
    for args in [&["tools"][..], &["why", "a\u{1b}[2J"], &["check"]] {
        let run = toolcrib(folder.path(), args);
        let shown = run.out + &run.err;
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown:?}");
    }
    let listed = toolcrib(folder.path(), &["tools", "--json"]).json();
    let name = listed[0]["name"].as_str().unwrap();
    // A program gets what the server sent; a terminal does not.
    let sent = "one\u{1b}]8;;http://x\u{7}two\nthree\n";
    assert_eq!(toolcrib(folder.path(), &["call", name]).out, sent);
    let command = format!("{} call {name}", env!("CARGO_BIN_EXE_toolcrib"));
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(folder.path());
    let shown = crate::kit::run(&mut script).out;
    assert!(shown.contains("one\\u{1b}]8;;http://x\\u{7}two\r\nthree\r\n"), "{shown:?}");
}

#[test]
fn on_a_terminal_there_is_colour_and_one_sees_who_is_waited_for() {
    let slow = Plan::legacy().fault(Fault::SlowStart(1500)).tool("a", Act::Echo);
    let folder = Folder::workspace(&json!({ "slow": entry(&slow) }));
    let command = format!("{} check", env!("CARGO_BIN_EXE_toolcrib"));
    let mut script = std::process::Command::new("script");
    script.args(["-qec", &command, "/dev/null"]).current_dir(folder.path());
    let shown = crate::kit::run(&mut script).out;
    assert!(shown.contains("0 of 1 servers, 0 s; waiting for slow"), "{shown:?}");
    assert!(shown.contains("\u{1b}[32mready"), "{shown:?}");
    // Into a pipe goes neither.
    let piped = toolcrib(folder.path(), &["check"]);
    assert!(!(piped.out + &piped.err).contains(['\u{1b}', '\r']));
}

/// What works and is better otherwise is told, in words that hold no secret, and does not make the check fail.
#[test]
fn secrets_written_out_and_programs_without_a_version_are_warned_of() {
    let servers = json!({
        "a": { "command": "npx", "args": ["-y", "@scope/pkg", "--api-key", "s3cr3t0a1b2c"], "disabled": false,
               "env": { "DB_PASSWORD": "s3cr3t9z8y7x", "TOKEN": "${TOKEN:-}" } },
        "b": { "url": "http://192.0.2.1:9/mcp", "headers": { "Authorization": "Bearer s3cr3t0a1b2c" } },
        "off": { "command": "uvx", "args": ["pkg"], "disabled": true },
    });
    let folder = Folder::workspace(&servers);
    folder.write("network.yaml", "external_access: { auth_token: s3cr3t-of-ours }\n");
    let workspace = ::toolcrib::Workspace::open(
        folder.path(),
        &|_| None,
        ::toolcrib::sources::mcp::Lists::Tools,
    )
    .unwrap();
    let told: Vec<String> = workspace.warnings.iter().map(ToString::to_string).collect();
    let places: Vec<&str> = told.iter().map(|it| it.split(": a secret").next().unwrap()).collect();
    assert_eq!(workspace.problems, [], "{places:?}");
    assert_eq!(told.len(), 6, "{told:#?}");
    for place in [
        "`env: DB_PASSWORD`",
        "`args: 4`",
        "`@scope/pkg@1.2.3`",
        "`headers: Authorization`",
        "`http://`",
        "auth_token_env",
    ] {
        assert!(told.iter().any(|it| it.contains(place)), "{place}: {told:#?}");
    }
    assert!(!told.concat().contains("s3cr3t"), "{told:#?}");
    assert!(
        workspace.warnings.iter().all(|it| it.severity == ::toolcrib::catalogue::Severity::Warning)
    );
    // Of these a server can be reached, so that nothing but warnings is left.
    let quiet = Folder::workspace(&json!({}));
    quiet.write("network.yaml", "external_access: { auth_token: s3cr3t-of-ours }\n");
    let run = toolcrib(quiet.path(), &["check"]);
    assert_eq!(run.code, 0, "{}", run.transcript());
    assert!(run.out.contains("no problems, 1 warning\n"), "{}", run.transcript());
}
