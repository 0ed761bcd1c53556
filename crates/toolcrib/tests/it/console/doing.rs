//! What operators do: restart, accept, replay; and the commands that ask the same questions.

use std::{process::Command, time::Duration};

use serde_json::{Value, json};
use toolcrib_testkit::{Act, Plan};

use super::rights::{self, A, BOSS};
use crate::{
    kit::{Folder, entry, run, soon, toolcrib},
    serving::Serving,
};

fn audited(serving: &Folder, event: &str) -> Vec<Value> {
    let folder = serving.file(".toolcrib/audit");
    let files = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
    let text: String = files.map(|it| std::fs::read_to_string(it).unwrap_or_default()).collect();
    let lines = text.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
    lines.filter(|it| it["event"] == event).collect()
}

#[test]
fn a_restart_makes_a_new_process_and_is_on_record() {
    let plan = Plan::legacy().tool("family", Act::Family).tool("hang", Act::Hang);
    let folder = Folder::workspace(&json!({ "a": entry(&plan) }));
    let serving = Serving::start(folder.path());
    let process = || {
        let answer = rights::call(&serving, ("X-None", "x"), "mcp__a__family").json();
        answer["result"]["content"][0]["text"].as_str().map(str::to_owned)
    };
    let before = process().unwrap();
    let row = || serving.get("/api/servers", &[]).json()["servers"][0].clone();
    assert_eq!((&row()["state"], &row()["starts"]), (&json!("ready"), &json!(1)));
    // A call that is not answered fails; nobody waits for a server that is gone.
    let hanging = std::thread::scope(|scope| {
        let hanging = scope.spawn(|| rights::call(&serving, ("X-None", "x"), "mcp__a__hang").body);
        std::thread::sleep(Duration::from_millis(300));
        let answer = serving.request("POST", "/api/servers/restart", &[], r#"{"name":"a"}"#);
        assert_eq!(answer.json(), json!({ "restarted": "a" }));
        hanging.join().unwrap()
    });
    assert!(hanging.contains("gave no result"), "{hanging}");
    soon("it runs anew", || row()["starts"] == 2);
    assert_ne!(process().unwrap(), before);
    soon("it is on record", || audited(&folder, "restart").len() == 1);
    assert_eq!(audited(&folder, "restart")[0]["subject"], "a");
    // From the command line too, by the private socket.
    let run = toolcrib(folder.path(), &["servers", "restart", "a"]);
    assert_eq!((run.code, run.out.as_str()), (0, "a is started anew\n"), "{}", run.transcript());
    soon("and once more", || row()["starts"] == 3);
    let run = toolcrib(folder.path(), &["servers", "restart", "nobody"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("there is no server `nobody` that runs"), "{}", run.err);
}

#[test]
fn a_server_that_failed_is_tried_again_at_once() {
    let folder = Folder::new();
    let script = folder.file("later.sh");
    let servers = json!({ "late": { "command": "sh", "args": [script.to_string_lossy()] } });
    folder.write("mcp.json", json!({ "mcpServers": servers }).to_string());
    let serving = Serving::start(folder.path());
    let row = || serving.get("/api/servers", &[]).json()["servers"][0].clone();
    soon("it has failed", || row()["state"] == "failed");
    assert!(row()["cause"].is_string());
    let (program, argument) = Plan::legacy().tool("echo", Act::Echo).command();
    let plan = folder.write("plan", argument);
    let (program, plan) = (program.display(), plan.display());
    folder.write("later.sh", format!("exec '{program}' \"$(cat '{plan}')\"\n"));
    serving.request("POST", "/api/servers/restart", &[], r#"{"name":"late"}"#);
    soon("it is ready", || row()["state"] == "ready");
    // What went wrong before is still told.
    assert!(row()["last_error"]["cause"].is_string(), "{}", row());
}

#[test]
fn what_is_accepted_is_what_was_shown() {
    let folder = Folder::new();
    let listed = folder.write(
        "listed.json",
        r#"[{"name":"t","description":"one","inputSchema":{"type":"object"}}]"#,
    );
    let plan = Plan::legacy().listed(&listed);
    folder.write("mcp.json", json!({ "mcpServers": { "s": entry(&plan) } }).to_string());
    folder.write("network.yaml", "pins: hold\n");
    let serving = Serving::start(folder.path());
    let pins = || serving.get("/api/pins", &[]).json();
    let accept = |body: &Value| serving.request("POST", "/api/pins/accept", &[], &body.to_string());
    let change = pins()["changes"][0].clone();
    assert_eq!((&change["kind"], &change["source"]), (&json!("unpinned"), &json!("server:s")));
    let body =
        |it: &Value| json!({ "source": it["source"], "tool": it["tool"], "stamp": it["stamp"] });
    // Whoever accepts sees every tool of it.
    assert_eq!(change["tools"][0]["name"], "t");
    assert!(change["tools"][0]["definition"].as_str().unwrap().contains("one"));
    assert_eq!(accept(&body(&change)).status, 200);
    assert_eq!(pins()["changes"], json!([]));
    assert!(folder.file("toolcrib.lock").is_file());
    // It changes: held back until somebody accepts what it is now.
    let restart = || serving.request("POST", "/api/servers/restart", &[], r#"{"name":"s"}"#);
    let turn = |text: &str| {
        folder.write(
            "listed.json",
            format!(r#"[{{"name":"t","description":"{text}","inputSchema":{{"type":"object"}}}}]"#),
        );
        restart();
        soon("the change is seen", || {
            pins()["changes"][0]["definition_now"].as_str().is_some_and(|it| it.contains(text))
        });
        pins()["changes"][0].clone()
    };
    let two = turn("two");
    assert!(two["definition_before"].as_str().unwrap().contains("one"));
    let held =
        || rights::call(&serving, ("X-None", "x"), "mcp__s__t").body.contains("definition_changed");
    assert!(held());
    let three = turn("three");
    // What was shown is no longer what is there.
    let stale = accept(&body(&two));
    assert_eq!(stale.status, 409, "{stale:?}");
    assert!(held());
    assert_eq!(accept(&body(&three)).status, 200);
    soon("it is served", || !held());
    soon("both are on record", || audited(&folder, "accept").len() == 2);
    // The lock is what `toolcrib lock` would have written.
    drop(serving);
    let run = toolcrib(folder.path(), &["lock", "--check"]);
    assert_eq!(run.code, 0, "{}", run.transcript());
}

#[test]
fn a_consumer_gets_everything_again() {
    let folder = rights::folder();
    let serving = Serving::start(folder.path());
    let json = ("Accept", "application/json");
    for at in 1..=3 {
        let body = json!({ "type": "a.b", "data": at }).to_string();
        let answer = serving.request("POST", "/events", &[BOSS], &body);
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    let fetch = || {
        let answer = serving.get("/events?consumer=w&max=10&wait=1s", &[BOSS, json]).json();
        let all = answer["events"].as_array().unwrap().iter();
        all.map(|it| it["sequence"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(fetch(), ["1", "2", "3"]);
    let body = json!({ "consumer": "w", "sequences": [1, 2, 3] }).to_string();
    assert_eq!(serving.request("POST", "/events/ack", &[BOSS], &body).status, 200);
    let state = || serving.get("/api/consumers", &[BOSS]).json()["consumers"][0].clone();
    assert_eq!((&state()["name"], &state()["behind"]), (&json!("boss/w"), &json!(0)));
    assert_eq!(serving.get("/api/consumers", &[A]).json()["consumers"], json!([]));
    let replay = json!({ "consumer": "boss/w", "from": 2 }).to_string();
    assert_eq!(serving.request("POST", "/api/consumers/replay", &[A], &replay).status, 403);
    assert_eq!(serving.request("POST", "/api/consumers/replay", &[BOSS], &replay).status, 200);
    assert_eq!(fetch(), ["2", "3"]);
}

#[test]
fn the_status_says_how_a_gateway_is_wherever_it_is() {
    let folder = rights::folder();
    let run = toolcrib(folder.path(), &["status"]);
    assert_eq!(run.code, 1);
    assert!(run.err.contains("no gateway serves `.`"), "{}", run.err);
    assert!(!folder.file(".toolcrib").exists(), "who only asks leaves nothing behind");
    let serving = Serving::start(folder.path());
    let told = toolcrib(folder.path(), &["status", "--json"]);
    assert_eq!(told.code, 0, "{}", told.transcript());
    let value = told.json();
    assert_eq!((&value["ready"], &value["operator"]), (&json!(true), &json!(true)));
    assert_eq!(value["servers"], json!({ "ready": 2, "connecting": 0, "failed": 0, "off": 0 }));
    let words = toolcrib(folder.path(), &["status"]).out;
    assert!(words.starts_with("toolcrib 0.1.0, ready, up "), "{words}");
    assert!(words.contains("\nSOURCE") && words.contains("\na       ready"), "{words}");
    // At an address, with the token of a group.
    let at = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
        command.args(args).args(["--url", &serving.url("/mcp")]).env("T", "SECRET_TOKEN_A");
        run_in(&mut command, &folder)
    };
    let told = at(&["status", "--token-env", "T", "--json"]);
    let value = told.json();
    assert_eq!((&value["group"], &value["operator"]), (&json!("a"), &json!(false)));
    assert_eq!(value["problems"], Value::Null);
    let refused = at(&["servers", "restart", "a", "--token-env", "T"]);
    assert_eq!(refused.code, 1);
    assert!(refused.err.contains("operator: true"), "{}", refused.err);
    assert!(at(&["status", "--token-env", "NONE"]).err.contains("`NONE` is not set"));
    let nowhere = toolcrib(folder.path(), &["status", "--url", "http://127.0.0.1:1"]);
    assert_eq!(nowhere.code, 1);
    assert_eq!(toolcrib(folder.path(), &["status", "--url", "nonsense"]).code, 2);
}

fn run_in(command: &mut Command, folder: &Folder) -> crate::kit::Run {
    run(command.current_dir(folder.path()))
}
