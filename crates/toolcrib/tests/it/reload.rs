//! Edits of `mcp.json` and `network.yaml` take effect while the gateway runs: servers come, go and change, calls in
//! flight end where they began, and an edit that is wrong leaves everything as it was.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

use serde_json::{Value, json};
use toolcrib::sources::mcp::{Filled, Transport};
use toolcrib_testkit::{Act, Plan};

use crate::{
    guarded::Client,
    kit::{Folder, at, client, entry, soon, toolcrib},
    serving::Serving,
};

const TOOLS: &str = "
import os, time
from toolcrib import tool

@tool
def who() -> int:
    return os.getpid()

@tool
def slow() -> str:
    time.sleep(3)
    return 'done'
";

const MOD: &str = "
from toolcrib import AgentTool

class HelloMod:
    def __init__(self, config):
        pass

    def get_tools(self):
        return [AgentTool('greet', 'Greet.', {'type': 'object'}, lambda: 'hello')]
";

fn counter() -> Plan {
    Plan::legacy().tool("count", Act::Count)
}

/// Puts other servers into the file, in one moment.
fn edit(folder: &Folder, servers: &Value) {
    let new = folder.write("mcp.new", format!("{:#}", json!({ "mcpServers": servers })));
    fs::rename(new, folder.file("mcp.json")).unwrap();
}

/// A gateway whose log is in a file.
fn serve(folder: &Folder) -> Serving {
    let log = fs::File::create(folder.file("log")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(folder.path());
    Serving::run(command.stdin(Stdio::null()).stderr(log))
}

fn log(folder: &Folder) -> String {
    fs::read_to_string(folder.file("log")).unwrap()
}

/// How many servers the gateway runs as child processes.
fn processes(serving: &Serving) -> usize {
    let id = serving.child.id().to_string();
    let found = Command::new("pgrep").args(["-f", "-P", &id, "fake-upstream"]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().lines().count()
}

#[test]
fn servers_come_and_go_and_the_others_run_on() {
    let folder = Folder::workspace(&json!({ "a": entry(&counter()) }));
    let serving = serve(&folder);
    let client = Client::new(&serving, None);
    assert_eq!(client.text("mcp__a__count", &json!({})), "1");
    edit(&folder, &json!({ "b": entry(&counter()), "a": entry(&counter()) }));
    soon("b is there", || client.names() == ["mcp__a__count", "mcp__b__count"]);
    // The same process as before.
    assert_eq!(client.text("mcp__a__count", &json!({})), "2");
    assert_eq!(client.text("mcp__b__count", &json!({})), "1");
    edit(&folder, &json!({ "b": entry(&counter()) }));
    soon("a is gone", || client.names() == ["mcp__b__count"]);
    assert_eq!(client.text("mcp__b__count", &json!({})), "2");
    soon("its process has ended", || processes(&serving) == 1);
    let gone = client.call("mcp__a__count", &json!({}));
    assert_eq!(gone["error"]["code"], -32602, "{gone}");
    edit(&folder, &json!({ "b": entry(&counter()), "a": entry(&counter()) }));
    soon("a is there again", || client.names().len() == 2);
    assert_eq!(client.text("mcp__a__count", &json!({})), "1");
    assert!(log(&folder).contains("mcp.json: new: b"), "{}", log(&folder));
    assert!(log(&folder).contains("mcp.json: taken out: a"), "{}", log(&folder));
    let audit = toolcrib(folder.path(), &["audit", "show", "--json"]);
    assert!(audit.out.contains("mcp.json: taken out: a"), "{}", audit.out);
}

#[test]
fn a_call_in_flight_ends_where_it_began() {
    let old = Plan::legacy().tool("slow", Act::Sleep(4_000)).tool("old", Act::Count);
    let folder = Folder::workspace(&json!({ "a": entry(&old), "b": entry(&counter()) }));
    let serving = serve(&folder);
    let client = Client::new(&serving, None);
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| Client::new(&serving, None).call("mcp__a__slow", &json!({})));
        // It is under way when its server is taken out.
        std::thread::sleep(Duration::from_millis(500));
        let new = Plan::legacy().tool("new", Act::Count);
        edit(&folder, &json!({ "a": entry(&new), "b": entry(&counter()) }));
        soon("the new one is there", || client.names() == ["mcp__a__new", "mcp__b__count"]);
        assert_eq!(processes(&serving), 3, "the old one is needed still");
        assert!(!slow.is_finished(), "nothing was shown");
        let answer = slow.join().unwrap();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    });
    soon("the old one has ended", || processes(&serving) == 2);
    assert_eq!(client.text("mcp__a__new", &json!({})), "1");
}

#[test]
fn rules_about_a_server_change_without_starting_it_anew() {
    let plan = counter().tool("secret", Act::Echo);
    let folder = Folder::workspace(&json!({ "a": entry(&plan) }));
    let serving = serve(&folder);
    let client = Client::new(&serving, None);
    assert_eq!(client.text("mcp__a__count", &json!({})), "1");
    let mut other = entry(&plan);
    other["exclude"] = json!(["secret"]);
    edit(&folder, &json!({ "a": other }));
    soon("one is hidden", || client.names() == ["mcp__a__count"]);
    assert_eq!(client.text("mcp__a__count", &json!({})), "2");
    other["names"] = json!("bare");
    edit(&folder, &json!({ "a": other }));
    soon("it has another name", || client.names() == ["count"]);
    assert_eq!(client.text("count", &json!({})), "3");
    assert_eq!(processes(&serving), 1);
}

#[test]
fn an_edit_that_is_wrong_leaves_what_was() {
    let mut a = entry(&counter().tool("hidden", Act::Echo));
    a["exclude"] = json!(["hidden"]);
    let folder = Folder::workspace(&json!({ "a": a, "b": entry(&counter()) }));
    let serving = serve(&folder);
    let client = Client::new(&serving, None);
    let all = ["mcp__a__count", "mcp__b__count"];
    folder.write("mcp.json", r#"{ "mcpServers": { "a": "#);
    soon("it is told", || log(&folder).contains("servers stay as they were"));
    assert_eq!(client.names(), all);
    fs::remove_file(folder.file("mcp.json")).unwrap();
    soon("it is told", || log(&folder).contains("it is gone"));
    assert_eq!(client.names(), all);
    // One entry is broken: its server stays as it was, the others are as the file says.
    let entries = json!({ "a": { "command": 5 }, "c": entry(&counter()) });
    edit(&folder, &entries);
    soon("c is there", || client.names() == ["mcp__a__count", "mcp__c__count"]);
    assert_eq!(client.text("mcp__a__count", &json!({})), "1");
    let told = log(&folder);
    assert!(told.contains("mcp.json:") && told.contains("`command`"), "{told}");
    // So does one that lacks what it needs.
    edit(&folder, &json!({ "a": {}, "c": entry(&counter()) }));
    soon("it is told", || log(&folder).contains("it has no `command`"));
    // What was hidden of it stays hidden.
    assert_eq!(client.names(), ["mcp__a__count", "mcp__c__count"]);
    assert_eq!(client.text("mcp__a__count", &json!({})), "2");
    // One that does not start hides nobody.
    let missing = json!({ "command": "/nowhere/to/be/found" });
    edit(&folder, &json!({ "a": a, "d": missing }));
    soon("it is told", || log(&folder).contains("server `d`"));
    assert_eq!(client.names(), ["mcp__a__count"]);
    assert_eq!(client.text("mcp__a__count", &json!({})), "3");
}

#[test]
fn sighup_reads_everything_at_once() {
    let folder = Folder::workspace(&json!({ "a": entry(&counter()) }));
    folder.write("network.yaml", "audit: on\n");
    let serving = serve(&folder);
    let client = Client::new(&serving, None);
    edit(&folder, &json!({ "a": entry(&counter()), "b": entry(&counter()) }));
    let text =
        "audit: on\nlisten: 127.0.0.1:1\nexternal_access: { excluded_tools: [mcp__a__count] }\n";
    folder.write("network.yaml", text);
    serving.signal("-HUP");
    soon("both are heeded", || client.names() == ["mcp__b__count"]);
    let told = log(&folder);
    assert!(told.contains("network.yaml: listen: it has changed"), "{told}");
    assert!(!told.contains("network.yaml: audit"), "{told}");
}

#[test]
fn python_is_run_anew_where_it_is_run_otherwise_and_a_mod_comes_along() {
    let folder = Folder::new();
    folder.write("tools/who.py", TOOLS);
    folder.write("mods/hello.py", MOD);
    let serving = serve(&folder);
    let client = Client::new(&serving, None);
    soon("they are there", || client.names() == ["slow", "who"]);
    let first = client.text("who", &json!({}));
    std::thread::scope(|scope| {
        let slow = scope.spawn(|| Client::new(&serving, None).text("slow", &json!({})));
        std::thread::sleep(Duration::from_millis(300));
        folder.write("network.yaml", "python: { workers: 1 }\nmods: [{ name: mods.hello }]\n");
        soon("the mod is there", || client.names() == ["greet", "slow", "who"]);
        assert!(!slow.is_finished(), "nothing was shown");
        assert_eq!(slow.join().unwrap(), "done");
    });
    assert_eq!(client.text("greet", &json!({})), "hello");
    assert_ne!(client.text("who", &json!({})), first);
    // What would make two tools of one name is not taken.
    folder.write("mods/hello.py", MOD.replace("greet", "who"));
    folder.write("network.yaml", "python: { workers: 2 }\nmods: [{ name: mods.hello }]\n");
    soon("it is told", || log(&folder).contains("Tool name conflict"));
    assert!(!client.text("slow", &json!({})).is_empty());
}

#[test]
fn d04_a_server_that_was_not_accepted_is_not_started_by_an_edit() {
    let folder = Folder::workspace(&json!({ "a": entry(&counter()) }));
    folder.write("network.yaml", "pins: hold\n");
    assert_eq!(toolcrib(folder.path(), &["lock"]).code, 0);
    let serving = serve(&folder);
    let client = Client::new(&serving, None);
    assert_eq!(client.names(), ["mcp__a__count"]);
    let marker = folder.file("marker");
    let other = counter().notes(&marker);
    edit(&folder, &json!({ "a": entry(&other) }));
    soon("it is told", || log(&folder).contains("another way than was accepted"));
    std::thread::sleep(Duration::from_millis(300));
    assert!(!marker.exists(), "it was started");
    assert_eq!(toolcrib(folder.path(), &["lock"]).code, 0);
    soon("accepted, it runs", || client.names() == ["mcp__a__count"] && marker.exists());
}

#[tokio::test]
async fn a_certificate_that_is_renewed_is_shown_and_a_wrong_one_is_not() {
    let folder = Folder::workspace(&json!({ "a": entry(&counter()) }));
    let renew = |name: &str| {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        folder.write("key.pem", made.signing_key.serialize_pem());
        folder.write("cert.pem", made.cert.pem());
        folder.write(name, made.cert.pem())
    };
    let first = renew("first.pem");
    folder.write("network.yaml", "tls: { cert: cert.pem, key: key.pem }\n");
    let serving = serve(&folder);
    let url = serving.url("/mcp").replace("http:", "https:");
    let trusts = async |certificate: &Path| {
        let mut config = at("s", Transport::StreamableHttp, &url);
        config.ca = Some(Filled::literal(certificate.to_string_lossy()));
        let client = client(config);
        let is_trusted = client.connect("s").await.is_ok();
        client.close().await;
        is_trusted
    };
    assert!(trusts(&first).await);
    let second = renew("second.pem");
    for round in 0.. {
        assert!(round < 50, "the second is not shown: {}", log(&folder));
        tokio::time::sleep(Duration::from_millis(200)).await;
        if trusts(&second).await {
            break;
        }
    }
    assert!(!trusts(&first).await);
    folder.write("cert.pem", "no certificate");
    soon("it is told", || log(&folder).contains("certificates stay as they were"));
    assert!(trusts(&second).await);
}
