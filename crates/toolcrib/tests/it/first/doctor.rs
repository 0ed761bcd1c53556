//! `toolcrib doctor`: one line for each thing, and a cure for what is wrong.

use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt, process::Stdio};

use serde_json::Value;

use super::Home;
use crate::serving::Serving;

/// The lines of a report, without what differs from machine to machine.
fn lines(home: &Home, args: &[&str]) -> (i32, Vec<String>) {
    let run = home.run(args);
    let report = run.json();
    let line = |it: &Value| {
        let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
        let cure =
            if it["cure"].is_null() { String::new() } else { format!(" ({})", text("cure")) };
        let differs = ["toolcrib", "python", "disk"].contains(&text("subject").as_str());
        let message = if differs { "…".to_owned() } else { text("message") };
        home.plain(&format!("{} {}: {message}{cure}", text("state"), text("subject")))
    };
    (run.code, report["lines"].as_array().unwrap().iter().map(line).collect())
}

#[test]
fn doctor_is_content_where_everything_is_there() {
    let home = Home::new();
    home.run(&["init", "--yes"]);
    home.write("work/network.yaml", "listen: 127.0.0.1:0\n");
    home.write("work/mcp.json", r#"{"mcpServers": {"sh": {"command": "sh"}, "far": {"url": "https://example.com/mcp"}, "off": {"command": "no-such", "disabled": true}}}"#);
    let (code, lines) = lines(&home, &["doctor", "--json"]);
    insta::assert_snapshot!(lines.join("\n"), @"
    ok toolcrib: …
    ok workspace: ~/work has mcp.json, network.yaml, tools, events
    ok python: …
    ok address: 127.0.0.1:0 is free
    ok tokens: none: everybody on this machine may ask
    ok server sh: /usr/bin/sh
    ok server far: it has an address; `toolcrib check` goes there
    ok rights: only you can change what is run
    ok disk: …
    ");
    assert_eq!(code, 0);
    let shown = home.run(&["doctor"]).out;
    assert!(
        shown.starts_with("ok       toolcrib: 0.1.0, ") && shown.ends_with("\nno errors\n"),
        "{shown}"
    );
    assert!(shown.contains("ok       python: 3."), "{shown}");
}

#[test]
fn doctor_has_a_cure_for_everything() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    home.write(
        "work/mcp.json",
        r#"{"mcpServers": {
        "gone": {"command": "no-such-program"},
        "unset": {"command": "${NO_SUCH_VARIABLE_HERE}"},
        "plain": {"command": "./plain.sh"},
        "nowhere": {"command": "./nowhere.sh", "comand": 1},
        "pathless": {"command": "sh", "env": {"PATH": "/nowhere"}}}}"#,
    );
    home.write("work/plain.sh", "#!/bin/sh\n");
    home.write("work/key.pem", "");
    home.write("work/tools/a.py", "");
    home.write("work/.toolcrib/x", "");
    let mode = |name: &str, mode| {
        fs::set_permissions(home.folder.file(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("work/.toolcrib", 0o755);
    mode("work/tools", 0o777);
    mode("work/key.pem", 0o644);
    let network = format!(
        "listen: 127.0.0.1:{port}\ntls: {{ cert: none.pem, key: key.pem }}\npython: {{ interpreter: no-such-python }}\nexternal_access: {{ auth_token: short }}\n"
    );
    home.write("work/network.yaml", &network);
    let (code, lines) = lines(&home, &["doctor", "--json"]);
    let seen = lines.join("\n").replace(&port.to_string(), "PORT");
    insta::assert_snapshot!(seen, @"
    ok toolcrib: …
    ok workspace: ~/work has mcp.json, network.yaml, tools
    error mcp.json:3:30: server `unset`: `command`: the variable `NO_SUCH_VARIABLE_HERE` is not set (set it, or give a default: ${NO_SUCH_VARIABLE_HERE:-…})
    error mcp.json:5:58: server `nowhere`: unknown key `comand` (did you mean `command`?)
    warning network.yaml: external_access: auth_token: a secret stands here, for everybody to read who reads the file (put it into a variable, and name that: `auth_token_env`)
    error python: … (install Python, or name one: `python: { interpreter: /path/to/python3 }` in network.yaml)
    error address: 127.0.0.1:PORT is in use by another program (end the program that has it, or set another `listen` in network.yaml)
    warning tokens: 1 of them have less than 16 characters (take longer ones: `toolcrib token new GROUP`)
    warning tls: everybody can read `~/work/key.pem` (chmod o-r ~/work/key.pem)
    error server gone: there is no program `no-such-program` (install it, or write its whole path)
    error server plain: `./plain.sh` may not be run (chmod +x ./plain.sh)
    error server nowhere: there is no program `./nowhere.sh` (write the path of a program that is there)
    error server pathless: there is no program `sh` (install it, or write its whole path)
    error ~/work/tools: everybody can change it, and what stands there is run as you (chmod o-w ~/work/tools)
    warning ~/work/.toolcrib: others can look into it (chmod 700 ~/work/.toolcrib)
    ok disk: …
    ");
    assert_eq!(code, 1);
    let without = lines.iter().filter(|it| !it.starts_with("ok") && !it.contains(" ("));
    assert_eq!(without.count(), 0, "each has a cure");
}

#[test]
fn doctor_tells_of_what_keeps_a_gateway_from_starting() {
    let home = Home::new();
    insta::assert_snapshot!(lines(&home, &["doctor", "--json"]).1.join("\n"), @"
    ok toolcrib: …
    error workspace: there is no mcp.json, no tools/ and no events/ in `.` (`toolcrib init` makes a workspace there, `toolcrib import` takes the servers of your clients; or name another folder)
    ");
    home.write("work/mcp.json", "{");
    insta::assert_snapshot!(lines(&home, &["doctor", "--json"]).1.join("\n"), @"
    ok toolcrib: …
    error mcp.json:1:2: not valid JSON: unexpected end (a bracket or a quote is not closed)
    ");
    home.write("work/mcp.json", r#"{"mcpServers": {}}"#);
    let mut seen = String::new();
    for network in [
        "external_access: { auth_token_env: NO_SUCH_VARIABLE_HERE }",
        "listen: [",
        "listen: 0.0.0.0:0",
        "listen: 192.0.2.1:8700\nexternal_access: { auth_token: long-enough-for-me-1234 }",
    ] {
        home.write("work/network.yaml", network);
        let (code, lines) = lines(&home, &["doctor", "--json"]);
        assert_eq!(code, 1, "{network}");
        let bad = lines.into_iter().filter(|it| !it.starts_with("ok"));
        seen.push_str(&format!("-- {network}\n{}\n", bad.collect::<Vec<_>>().join("\n")));
    }
    insta::assert_snapshot!(seen, @"
    -- external_access: { auth_token_env: NO_SUCH_VARIABLE_HERE }
    error network.yaml: external_access: auth_token_env: the variable `NO_SUCH_VARIABLE_HERE` is not set (set it before `toolcrib serve`, which refuses to start without it)
    -- listen: [
    error network.yaml:1:9: expected string scalar (put it right; docs/reference/network-yaml.md knows every key)
    -- listen: 0.0.0.0:0
    error tokens: the address can be reached by others, and there is no token (`toolcrib token new GROUP` makes one; or listen on 127.0.0.1)
    -- listen: 192.0.2.1:8700
    external_access: { auth_token: long-enough-for-me-1234 }
    warning network.yaml: external_access: auth_token: a secret stands here, for everybody to read who reads the file (put it into a variable, and name that: `auth_token_env`)
    error address: 192.0.2.1:8700: Cannot assign requested address (os error 99) (set `listen` in network.yaml to an address of this machine)
    error tls: the address can be reached by others, and nobody encrypts (set `tls` in network.yaml, or `behind_proxy: true` where a proxy does it)
    ");
}

#[test]
fn doctor_knows_its_own_gateway() {
    let home = Home::new();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    home.write("work/mcp.json", r#"{"mcpServers": {}}"#);
    home.write("work/network.yaml", &format!("listen: 127.0.0.1:{port}\n"));
    let mut command = home.command(&["serve"]);
    let mut serving = Serving::run(command.stderr(Stdio::null()));
    let (code, lines) = lines(&home, &["doctor", "--json"]);
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    assert_eq!(code, 0, "{lines:?}");
    let said = "is in use, and a gateway of this workspace runs";
    assert!(lines.iter().any(|it| it.contains(said)), "{lines:?}");
}
