//! `toolcrib token`: shown once, kept as a digest, heeded by a gateway that runs.

use std::{os::unix::fs::PermissionsExt, process::Stdio};

use serde_json::json;

use super::Home;
use crate::{kit::soon, serving::Serving};

fn workspace() -> Home {
    let home = Home::new();
    let groups = "external_access: { groups: { reader: { exposed_tools: [hello] }, nobody: { exposed_tools: [] } } }\n";
    home.write("work/network.yaml", groups);
    home.write(
        "work/tools/hello.py",
        "from toolcrib import tool\n\n@tool\ndef hello() -> str:\n    \"\"\"Greet.\"\"\"\n    return 'hello'\n",
    );
    home
}

/// A new token, and its id.
fn make(home: &Home, group: &str) -> (String, String) {
    let made = home.run(&["token", "new", group, "--json"]).json();
    let text = |key: &str| made[key].as_str().unwrap().to_owned();
    (text("token"), text("id"))
}

#[test]
fn a_token_is_shown_once_and_only_its_digest_is_kept() {
    let home = workspace();
    insta::assert_snapshot!(home.see(&["token", "list"]), @"
    exit 0
    out there are no tokens but those that network.yaml names
    ");
    let run = home.run(&["token", "new", "reader", "--note", "the build server"]);
    let token = run.out.trim_end();
    assert_eq!((token.len(), &token[..3]), (46, "tc_"), "{token}");
    let kept = home.read("work/.toolcrib/tokens.json");
    assert!(!kept.contains(token) && !kept.contains(&token[3..]), "{kept}");
    let file = home.folder.file("work/.toolcrib/tokens.json");
    assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    let listed = home.run(&["token", "list", "--json"]).json();
    let id = listed[0]["id"].as_str().unwrap();
    let steady = |text: String| {
        let created = listed[0]["created"].as_str().unwrap();
        text.replace(token, "TOKEN").replace(id, "1a2b3c4d").replace(created, "THEN")
    };
    insta::assert_snapshot!(steady(home.plain(&run.transcript())), @"
    exit 0
    out TOKEN
    err token 1a2b3c4d of group reader: it is shown this once; only its digest is kept
    err from now on callers need a token; `anonymous: true` in network.yaml lets others in too
    ");
    insta::assert_snapshot!(steady(home.see(&["token", "list"])), @"
    exit 0
    out ID        GROUP   CREATED                   NOTE
    out 1a2b3c4d  reader  THEN  the build server
    ");
    insta::assert_snapshot!(steady(home.see(&["token", "revoke", id])), @"
    exit 0
    out token 1a2b3c4d of group reader is taken back
    err that was the last one, and callers still need one; to let everybody in again, remove .toolcrib/tokens.json and restart
    ");
    insta::assert_snapshot!(steady(home.see(&["token", "revoke", id])), @"
    exit 1
    err error: there is no token `1a2b3c4d`
    err  hint: `toolcrib token list` shows their ids
    ");
    let (other, _) = make(&home, "reader");
    assert_ne!(other, token);
}

#[test]
fn what_cannot_have_a_token_is_said() {
    let home = workspace();
    insta::assert_snapshot!(home.see(&["token", "new", "writer"]), @"
    exit 2
    err error: there is no group `writer`
    err  hint: there are: guest, nobody, reader; add it under `external_access: groups:` of network.yaml
    ");
    insta::assert_snapshot!(home.see(&["token", "new", "reader", "--note", "two\nlines"]), @"
    exit 2
    err error: a note has up to 200 characters, on one line
    ");
    assert!(!home.has("work/.toolcrib/tokens.json"));
    // The default group has no section of its own.
    assert_eq!(home.run(&["token", "new", "guest"]).code, 0);
    let tokens = home.read("work/.toolcrib/tokens.json");
    for bad in
        ["", "{}", "[]", "{\"version\": 2, \"tokens\": []}", &tokens.replace("blake3:", "md5:")]
    {
        home.write("work/.toolcrib/tokens.json", bad);
        for args in [&["token", "list"][..], &["token", "new", "reader"], &["serve"]] {
            let run = home.run(args);
            assert_eq!(run.code, 2, "{bad}: {}", run.transcript());
            assert!(run.err.contains(".toolcrib/tokens.json"), "{bad}: {}", run.transcript());
        }
        assert_eq!(home.read("work/.toolcrib/tokens.json"), bad);
    }
}

#[test]
fn a_gateway_that_runs_heeds_tokens_that_are_made_and_taken_back() {
    for with_file in [true, false] {
        let home = workspace();
        let group = if with_file { "reader" } else { "guest" };
        if !with_file {
            std::fs::remove_file(home.folder.file("work/network.yaml")).unwrap();
        }
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
        let mut serving = Serving::run(command.stderr(Stdio::null()));
        let list = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": { "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": {} } } });
        let modern = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/list"),
            ("Accept", "application/json, text/event-stream"),
        ];
        let ask = |token: Option<&str>| {
            let bearer = token.map(|it| format!("Bearer {it}"));
            let with = bearer.as_deref().map(|it| ("Authorization", it));
            let headers: Vec<_> = modern.iter().copied().chain(with).collect();
            let answer = serving.post(&headers, &list);
            (answer.status, answer.body.contains("hello"))
        };
        assert_eq!(ask(None), (200, true));
        let (first, first_id) = make(&home, group);
        soon("a token is needed", || ask(None).0 == 401);
        assert_eq!(ask(Some(&first)), (200, true));
        assert_eq!(ask(Some(&first.replace("tc_", "tc-"))).0, 401);
        let (second, second_id) = make(&home, group);
        soon("the second is good too", || ask(Some(&second)).0 == 200);
        assert_eq!(home.run(&["token", "revoke", &first_id]).code, 0);
        soon("the first is not", || ask(Some(&first)).0 == 401);
        assert_eq!(ask(Some(&second)), (200, true));
        assert_eq!(home.run(&["token", "revoke", &second_id]).code, 0);
        soon("nor the second", || ask(Some(&second)).0 == 401);
        // Taking the last one back lets nobody in.
        assert_eq!(ask(None).0, 401);
        serving.child.kill().unwrap();
        serving.child.wait().unwrap();
        // Nor does a restart.
        let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
        serving = Serving::run(command.stderr(Stdio::null()));
        assert_eq!(serving.post(&modern, &list).status, 401);
        serving.child.kill().unwrap();
        serving.child.wait().unwrap();
    }
}

#[test]
fn digests_may_stand_in_network_yaml() {
    let home = workspace();
    let (token, _) = make(&home, "reader");
    let kept: serde_json::Value =
        serde_json::from_str(&home.read("work/.toolcrib/tokens.json")).unwrap();
    let digest = kept["tokens"][0]["digest"].as_str().unwrap();
    std::fs::remove_file(home.folder.file("work/.toolcrib/tokens.json")).unwrap();
    let file = |digest: &str| {
        let text = format!(
            "external_access: {{ groups: {{ reader: {{ token_digests: ['{digest}'] }} }} }}\n"
        );
        home.write("work/network.yaml", &text);
    };
    file("blake3:123");
    insta::assert_snapshot!(home.see(&["serve"]), @"
    exit 2
    err error: network.yaml: external_access: groups: reader: token_digests: it is not `blake3:` and 64 hexadecimal digits
    ");
    file(digest);
    let mut command = home.command(&["serve", "--listen", "127.0.0.1:0"]);
    let mut serving = Serving::run(command.stderr(Stdio::null()));
    let status = |token: &str| {
        let bearer = format!("Bearer {token}");
        serving.get("/readyz", &[("Authorization", &bearer)]).status
    };
    assert_eq!([status(&token), status("tc_other")], [200, 401]);
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
}

/// A token of a group that is no more lets nobody in, and is told.
#[test]
fn a_token_of_no_group_is_told() {
    let home = workspace();
    make(&home, "reader");
    home.write("work/network.yaml", "external_access: { groups: {} }\n");
    let check = home.run(&["check"]);
    assert!(check.out.contains("there is no group `reader`"), "{}", check.transcript());
    assert!(check.out.contains("toolcrib token revoke"), "{}", check.transcript());
}
