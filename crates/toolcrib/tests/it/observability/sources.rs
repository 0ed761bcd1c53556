//! What is told of servers, of processes that run tools, of the audit record and of the bus.

use serde_json::json;
use toolcrib_testkit::{Act, Plan};

use super::{call, metrics};
use crate::{
    kit::{Folder, entry, soon},
    serving::Serving,
};

#[test]
fn a_server_that_ends_and_comes_back_shows() {
    let plan = Plan::legacy().tool("echo", Act::Echo).tool("crash", Act::Crash);
    let folder = Folder::workspace(
        &json!({ "s": entry(&plan), "broken": { "command": "no-such-program-here" } }),
    );
    let serving = Serving::start(folder.path());
    let s = [("server", "s")];
    let page = metrics(&serving, &[]);
    let up = |server: &str| page.sum("toolcrib_server_up", &[("server", server)]);
    assert_eq!((up("s"), up("broken")), (1.0, 0.0));
    assert_eq!(page.sum("toolcrib_tools", &s), 2.0);
    assert_eq!(page.sum("toolcrib_server_connects_total", &s), 1.0);
    assert_eq!(page.sum("toolcrib_server_losses_total", &[]), 0.0);
    call(&serving, &[], "mcp__s__crash", &json!({}));
    soon("it is back", || {
        let page = metrics(&serving, &[]);
        page.sum("toolcrib_server_connects_total", &s) == 2.0
            && page.sum("toolcrib_server_losses_total", &s) == 1.0
            && page.sum("toolcrib_server_up", &s) == 1.0
    });
}

#[test]
fn processes_that_run_tools_show_and_so_do_those_that_are_lost() {
    let folder = Folder::workspace(&json!({}));
    folder.write(
        "tools/a.py",
        "import os\nfrom toolcrib import tool\n\n\
         @tool\ndef ends() -> str:\n    os._exit(3)\n\n\
         @tool\ndef well() -> str:\n    return 'well'\n",
    );
    let serving = Serving::start(folder.path());
    let workers = |name: &str| metrics(&serving, &[]).sum(name, &[("server", "tools/")]);
    assert_eq!(call(&serving, &[], "well", &json!({})).json()["result"]["isError"], false);
    soon("some are there", || 1.0 <= workers("toolcrib_workers"));
    assert_eq!(workers("toolcrib_worker_losses_total"), 0.0);
    let before = workers("toolcrib_worker_starts_total");
    call(&serving, &[], "ends", &json!({}));
    assert_eq!(workers("toolcrib_worker_losses_total"), 1.0);
    soon("another is started", || before < workers("toolcrib_worker_starts_total"));
    assert_eq!(workers("toolcrib_worker_queue"), 0.0);
}

#[test]
fn the_record_and_the_bus_show_how_far_they_are() {
    let folder = Folder::workspace(&json!({ "s": entry(&Plan::legacy().tool("echo", Act::Echo)) }));
    let serving = Serving::start(folder.path());
    let sum = |name: &str| metrics(&serving, &[]).sum(name, &[]);
    let before = sum("toolcrib_audit_records_total");
    call(&serving, &[], "mcp__s__echo", &json!({}));
    soon("it is written", || before + 1.0 <= sum("toolcrib_audit_records_total"));
    soon("nothing waits", || sum("toolcrib_audit_queue") == 0.0);
    assert_eq!((sum("toolcrib_audit_writable"), sum("toolcrib_audit_refused_total")), (1.0, 0.0));
    assert_eq!(sum("toolcrib_bus_writable"), 1.0);
    let publish = |name: &str| {
        let event = json!({ "type": name, "data": { "n": 1 } });
        let answer = serving.request("POST", "/events", &[], &event.to_string());
        assert!(answer.status < 300, "{answer:?}");
    };
    publish("order.created");
    let read = serving.get("/events?consumer=w&max=1", &[("Accept", "application/json")]);
    assert_eq!(read.status, 200, "{read:?}");
    publish("order.created");
    publish("order.shipped");
    let page = metrics(&serving, &[]);
    let of = |name: &str| page.sum(name, &[("consumer", "guest/w")]);
    assert_eq!(of("toolcrib_bus_consumer_lag"), 2.0, "{page:?}");
    assert_eq!(of("toolcrib_bus_consumer_pending"), 1.0);
    assert_eq!(of("toolcrib_bus_consumer_dead"), 0.0);
    assert_eq!(page.sum("toolcrib_bus_last_sequence", &[]), 3.0);
}
