//! F4 to F6, F11, F13 and J8: what files of the workspace ask for, and what they must not.

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt,
    process::Command,
};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use super::evil::Canary;
use crate::{
    kit::{Folder, Run, entry, not_run, run, soon, toolcrib},
    python::Caller,
    serving::Serving,
};

fn check(folder: &Folder, env: &[(&str, &str)]) -> Run {
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    run(command.arg("check").envs(env.iter().copied()).current_dir(folder.path()))
}

fn with_env(env: &Value) -> Value {
    let mut server = entry(&Plan::legacy().tool("env", Act::Env));
    server["env"] = env.clone();
    server
}

#[test]
fn f04_a_variable_that_is_missing_is_named_and_none_is_read_twice() {
    let env = json!({ "A": "${OUTER}", "B": "${MISSING_ONE}", "C": "${MISSING_TWO:-made-up}" });
    let folder = Folder::workspace(&json!({ "s": with_env(&env) }));
    let outer = [("OUTER", "${INNER_VALUE}"), ("INNER_VALUE", "SECRET_INNER")];
    let checked = check(&folder, &outer);
    assert!(checked.out.contains("MISSING_ONE"), "{}", checked.transcript());
    assert!(!checked.out.contains("MISSING_TWO"), "{}", checked.transcript());
    let serving = Serving::start_with(folder.path(), &outer);
    let said = Caller::new(&serving).text("mcp__s__env", &json!({}));
    let lines: Vec<&str> = said.lines().collect();
    for line in ["A=${INNER_VALUE}", "B=", "C=made-up"] {
        assert!(lines.contains(&line), "{line}: {said}");
    }
    assert!(!said.contains("SECRET_INNER"), "{said}");
}

/// Also J7.
#[test]
fn f05_whatever_fails_no_secret_is_told() {
    let folder = Folder::new();
    let servers = json!({
        "url": { "url": "http://me:SECRET_PASSWORD_1@127.0.0.1:1/mcp?key=SECRET_QUERY_22" },
        "header": { "url": "http://127.0.0.1:1/mcp", "headers": { "Authorization": "Bearer SECRET_HEADER_3" } },
        "bad": { "url": "http://127.0.0.1:1/mcp", "headers": { "X-Api-Key": "SECRET_BROKEN_44\nx" } },
        "gone": { "command": "no-such-program", "args": ["--token", "${TOKEN}"], "env": { "API_KEY": "${KEY}" } },
        "ends": { "command": "sh", "args": ["-c", "echo $API_KEY ${TOKEN} >&2; exit 3"],
            "env": { "API_KEY": "${KEY}" } },
    });
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    folder.write(
        "network.yaml",
        "external_access: { auth_token_env: MAIN }\nmetrics: { token_env: SCRAPER }\n\
         telemetry: { otlp: 'http://me:SECRET_COLLECTOR_1@127.0.0.1:1', headers: { x-key: '${KEY}' } }\nbus: { url: 'nats://u:SECRET_NATS_77@127.0.0.1:1' }\n",
    );
    let env = [
        ("TOKEN", "SECRET_TOKEN_55"),
        ("KEY", "SECRET_KEY_666"),
        ("MAIN", "SECRET_MAIN_888"),
        ("SCRAPER", "SECRET_SCRAPER_2"),
    ];
    let checked = check(&folder, &env);
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["-vv", "serve", "--listen", "127.0.0.1:0"]).envs(env);
    let log = folder.file("log");
    command.current_dir(folder.path()).stderr(File::create(&log).unwrap());
    let serving = Serving::run(&mut command);
    serving.request("POST", "/mcp", &[("Authorization", "Bearer SECRET_WRONG_99")], "{}");
    let main = ("Authorization", "Bearer SECRET_MAIN_888");
    let metrics = serving.get("/metrics", &[("Authorization", "Bearer SECRET_SCRAPER_2")]);
    let ready = serving.get("/readyz", &[main]);
    assert_eq!((metrics.status, ready.status), (200, 200), "{ready:?}");
    // A span that nobody takes is told of when the gateway ends.
    crate::observability::call(&serving, &[main], "SECRET_MAIN_888", &json!({}));
    serving.signal("-TERM");
    std::thread::sleep(std::time::Duration::from_millis(500));
    drop(serving);
    let mut said = format!("{}{}", checked.transcript(), fs::read_to_string(&log).unwrap());
    said.push_str(&metrics.body);
    said.push_str(&ready.body);
    for file in fs::read_dir(folder.file(".toolcrib/audit")).into_iter().flatten().flatten() {
        said.push_str(&String::from_utf8_lossy(&fs::read(file.path()).unwrap()));
    }
    let told: Vec<&str> = said.lines().filter(|it| it.contains("SECRET_")).collect();
    assert!(told.is_empty(), "{told:#?}");
    assert!(said.contains("no-such-program"), "{said}");
}

#[test]
fn f06_what_makes_a_program_run_other_code_is_refused_unless_it_is_allowed() {
    for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "NODE_OPTIONS", "PYTHONSTARTUP"] {
        let mut server = with_env(&json!({ name: "/nowhere" }));
        let folder = Folder::workspace(&json!({ "s": server }));
        let checked = toolcrib(folder.path(), &["check"]);
        assert!(checked.code == 1 && checked.out.contains(name), "{}", checked.transcript());
        assert_eq!(toolcrib(folder.path(), &["tools", "--json"]).json(), json!([]), "{name}");
        server["allow_dangerous_env"] = json!(true);
        let folder = Folder::workspace(&json!({ "s": server }));
        let tools = toolcrib(folder.path(), &["tools", "--json"]).json();
        assert_eq!(tools[0]["name"], "mcp__s__env", "{name}");
    }
}

#[test]
fn f11_in_a_sandbox_tools_reach_no_more_than_they_need() {
    let (folder, canary) = (Folder::new(), Canary::new());
    folder.write("beside.txt", "beside");
    folder.write(
        "tools/t.py",
        "import os, socket, subprocess, tempfile\nfrom toolcrib import tool\n\
         @tool\ndef read(path: str) -> str:\n    return open(path).read()[:20]\n\
         @tool\ndef write(path: str) -> str:\n    open(path, 'w').write('x')\n    return 'written'\n\
         @tool\ndef connect(host: str, port: int) -> str:\n    socket.create_connection((host, port), 2)\n    return 'connected'\n\
         @tool\ndef child(path: str) -> int:\n    return subprocess.run(['cat', path], capture_output=True).returncode\n\
         @tool\ndef scratch() -> str:\n    with tempfile.NamedTemporaryFile('w+') as it:\n        it.write('kept')\n        it.seek(0)\n        return it.read()\n",
    );
    folder.write("network.yaml", "python: { sandbox: on }\n");
    let home = Folder::new();
    let serving = Serving::start_with(folder.path(), &[("HOME", &home.path().to_string_lossy())]);
    let mut caller = Caller::new(&serving);
    let at = |name: &str| folder.file(name).to_string_lossy().into_owned();
    assert_eq!(caller.text("read", &json!({ "path": at("beside.txt") })), "beside");
    assert_eq!(caller.text("scratch", &json!({})), "kept");
    let out = home.file("x").to_string_lossy().into_owned();
    let own = at(".toolcrib/lock");
    for (tool, arguments) in [
        ("read", json!({ "path": "/etc/shadow" })),
        ("read", json!({ "path": own })),
        ("write", json!({ "path": out })),
        ("write", json!({ "path": at("beside.txt") })),
        ("connect", json!({ "host": "127.0.0.1", "port": canary.port })),
    ] {
        let said = caller.error(tool, &arguments);
        assert!(said.contains("Permission denied"), "{tool} {arguments}: {said}");
    }
    assert_ne!(caller.text("child", &json!({ "path": "/etc/shadow" })), "0");
    canary.assert_alone();
    assert!(!home.file("x").exists());
    // Each is on record, as the tool's error that it is.
    let failed = || {
        let all = crate::audit::records(folder.path()).into_iter();
        let failed = all.filter(|it| it["outcome"] == "tool_error");
        failed.map(|it| it["tool"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    soon("they are on record", || 5 <= failed().len());
    assert_eq!(failed(), ["read", "read", "write", "write", "connect"]);
}

/// Where only files are asked for, the kernel still takes the network away if it can: here it can.
#[test]
fn a_sandbox_of_files_is_one_too_and_a_word_that_says_nothing_refuses_the_start() {
    let (folder, canary) = (Folder::new(), Canary::new());
    folder.write(
        "tools/t.py",
        "import socket\nfrom toolcrib import tool\n\
         @tool\ndef read(path: str) -> str:\n    return open(path).read()[:20]\n\
         @tool\ndef connect(host: str, port: int) -> str:\n    socket.create_connection((host, port), 2)\n    return 'connected'\n",
    );
    folder.write("network.yaml", "python: { sandbox: files }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let shadow = caller.error("read", &json!({ "path": "/etc/shadow" }));
    assert!(shadow.contains("Permission denied"), "{shadow}");
    let said = caller.error("connect", &json!({ "host": "127.0.0.1", "port": canary.port }));
    assert!(said.contains("Permission denied"), "{said}");
    canary.assert_alone();
    drop(serving);
    folder.write("network.yaml", "python: { sandbox: perhaps }\n");
    let refused = toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    assert!(refused.err.contains("it is on, files or off"), "{}", refused.err);
}

/// Packages with and without a version, and what starts them: it writes down that it was.
fn packages(folder: &Folder) -> String {
    for name in ["npx", "uvx"] {
        let started = folder.file("started");
        let text = format!("#!/bin/sh\necho {name} \"$@\" >> '{}'\nexit 1\n", started.display());
        let file = folder.write(&format!("bin/{name}"), text);
        fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let servers = json!({
        "loose": { "command": "npx", "args": ["-y", "some-server"] },
        "loose-too": { "command": "uvx", "args": ["some-server"] },
        "fixed": { "command": "npx", "args": ["-y", "@scope/some-server@1.2.3"] },
    });
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    format!("{}:{}", folder.file("bin").display(), std::env::var("PATH").unwrap())
}

/// Whether something is said of a server, beyond that it failed.
fn is_told(checked: &Run, severity: &str, server: &str) -> bool {
    let named = format!("server `{server}`: `args`");
    checked.out.lines().any(|it| it.starts_with(severity) && it.contains(&named))
}

#[test]
fn f13_programs_without_a_version_are_told() {
    for (word, told) in [("", true), ("packages: warn\n", true), ("packages: off\n", false)] {
        let folder = Folder::new();
        let path = packages(&folder);
        folder.write("network.yaml", word);
        let checked = check(&folder, &[("PATH", &path)]);
        for name in ["loose", "loose-too"] {
            assert_eq!(is_told(&checked, "warning:", name), told, "{}", checked.transcript());
        }
        assert!(!is_told(&checked, "warning:", "fixed"), "{}", checked.transcript());
        let started = fs::read_to_string(folder.file("started")).unwrap();
        assert!(started.contains("npx -y some-server\n"), "{started}");
    }
}

#[test]
fn f13_where_that_is_wanted_programs_without_a_version_are_not_started() {
    let folder = Folder::new();
    let path = packages(&folder);
    folder.write("network.yaml", "packages: strict\n");
    let checked = check(&folder, &[("PATH", &path)]);
    assert_eq!(checked.code, 1, "{}", checked.transcript());
    for name in ["loose", "loose-too"] {
        assert!(is_told(&checked, "problem:", name), "{}", checked.transcript());
    }
    assert!(checked.out.contains("`packages: strict` does not start it"));
    assert!(checked.out.contains("name the version: `some-server@1.2.3`"));
    assert!(!is_told(&checked, "", "fixed"), "{}", checked.transcript());
    drop(Serving::start_with(folder.path(), &[("PATH", &path)]));
    let started = fs::read_to_string(folder.file("started")).unwrap();
    assert!(
        started.contains("some-server@1.2.3") && !started.contains("some-server\n"),
        "{started}"
    );
    folder.write("network.yaml", "packages: stric\n");
    let refused = toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    assert!(
        refused.err.contains("`stric` is none of off, warn, strict"),
        "{}",
        refused.transcript()
    );
}

#[test]
fn j08_events_leave_this_machine_in_the_clear_only_where_that_is_allowed() {
    let folder = Folder::workspace(&json!({}));
    folder.write("network.yaml", "bus: { url: 'nats://192.0.2.1:4222' }\n");
    let refused = toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 2, "{}", refused.transcript());
    assert!(refused.err.contains("allow_plaintext"), "{}", refused.transcript());
    // On this machine nothing has to be allowed.
    folder.write("network.yaml", "bus: { url: 'nats://127.0.0.1:1' }\n");
    drop(Serving::start(folder.path()));
    // Where it is allowed it starts, and here in a network of its own, from which nothing gets out.
    let apart = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rn", "sh", "-c", &format!("ip link set lo up && {script}")]);
        command
    };
    if !apart("true").output().is_ok_and(|it| it.status.success()) {
        not_run("the part of j08 that needs `unshare -rn` and `ip`");
        return;
    }
    folder.write("network.yaml", "bus: { url: 'nats://192.0.2.1:4222', allow_plaintext: true }\n");
    let program = env!("CARGO_BIN_EXE_toolcrib");
    let mut command = apart(&format!("exec '{program}' serve --listen 127.0.0.1:0"));
    let log = folder.file("log");
    command.current_dir(folder.path()).stderr(File::create(&log).unwrap());
    drop(Serving::run(&mut command));
    let log = fs::read_to_string(log).unwrap();
    assert!(!log.contains("allow_plaintext"), "{log}");
}
