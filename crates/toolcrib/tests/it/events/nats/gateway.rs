//! Two gateways, each with a workspace of its own, and NATS between them.

use serde_json::json;

use super::super::{Stream, acknowledge, broker::Broker, task, workspace};
use crate::{
    kit::{Folder, toolcrib},
    python::Caller,
    serving::Serving,
};

fn on(broker: &Broker) -> Folder {
    let folder = workspace();
    folder.write("network.yaml", format!("bus: {{ url: 'nats://127.0.0.1:{}' }}\n", broker.port));
    folder
}

#[test]
fn what_one_gateway_emits_another_delivers_also_after_an_outage() {
    let Some(mut broker) = Broker::start() else { return };
    let (here, there) = (on(&broker), on(&broker));
    let (sender, reader) = (Serving::start(here.path()), Serving::start(there.path()));
    let mut caller = Caller::new(&sender);
    caller.text("delegate_task", &task("one"));
    let mut stream = Stream::open(&reader, "consumer=worker&match=task.*", &[]);
    let told = stream.next().unwrap();
    assert_eq!(
        (&told.event["data"]["task_id"], &told.event["group"]),
        (&json!("one"), &json!("guest"))
    );
    assert_eq!(acknowledge(&reader, "worker", &[told.id])["settled"], json!([told.id]));
    broker.kill();
    // Nobody waits for NATS.
    let text = caller.text("delegate_task", &task("two"));
    assert!(text.starts_with("Event emitted: task.delegate"), "{text}");
    broker.run();
    let begin = std::time::Instant::now();
    let again = loop {
        // The reader's stream may have ended with the broker; whoever reads comes back.
        match stream.next() {
            Some(told) => break told,
            None => stream = Stream::open(&reader, "consumer=worker&match=task.*", &[]),
        }
        assert!(begin.elapsed().as_secs() < 60, "it does not come");
    };
    assert_eq!(again.event["data"]["task_id"], "two");
    let listed = toolcrib(there.path(), &["events", "consumers", "--json"]).json();
    assert_eq!(listed[0]["name"], "guest/worker", "{listed}");
}

/// Row J7 of the security list.
#[test]
fn how_nats_is_reached_is_checked_and_no_password_is_told() {
    let folder = Folder::new();
    for (bus, said) in [
        (
            "{ url: 'nats://${NOT_SET_ANYWHERE}:4222' }",
            "bus: url: the variable `NOT_SET_ANYWHERE` is not set",
        ),
        (
            "{ url: 'nats://h:4222', token_env: NOT_SET_ANYWHERE }",
            "bus: token_env: the variable `NOT_SET_ANYWHERE` is not set",
        ),
        ("{ url: 'nats://h:4222', replicas: 9 }", "bus: replicas: it is a number from 1 to 5"),
        ("{ url: 'amqp://me:hunter22@h' }", "bus: url: it is `embedded`, `nats://…` or `tls://…`"),
        ("{ url: 'nats://me:hunter22@h:4222' }", "`allow_plaintext: true`"),
        ("{ url: 'nats://127.0.0.1:1,nats://me:hunter22@h' }", "`allow_plaintext: true`"),
        ("{ url: 'nats://me:hunter22@h:99999' }", "is no address of NATS"),
        ("{ url: 'nats://me:hunter22@127.0.0.1:1', stream: 'a b' }", "is no name of a stream"),
    ] {
        folder.write("network.yaml", format!("bus: {bus}\n"));
        let run = toolcrib(folder.path(), &["events", "publish", "a.b", "1"]);
        assert!(run.code != 0 && run.err.contains(said), "{bus}: {}", run.transcript());
        assert!(!run.transcript().contains("hunter22"), "{}", run.transcript());
    }
}
