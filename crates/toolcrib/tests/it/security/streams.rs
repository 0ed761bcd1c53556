//! Answers over HTTP that swell, or never end.

use std::{
    fs,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{evil::Evil, evil::noted, is_full};
use crate::{guarded::Client, kit::Folder, serving::Serving};

/// A gateway before the hostile server, and what it took at most.
struct World {
    serving: Serving,
    folder: Folder,
    _evil: Evil,
}

impl World {
    fn start(kind: &str, size: u64) -> Self {
        let folder = Folder::new();
        let evil = Evil::http(&folder);
        let url = evil.url(&format!("/odd/{kind}?n={size}"));
        let server = json!({ "url": url, "timeout": "20s" });
        folder.write("mcp.json", json!({ "mcpServers": { "evil": server } }).to_string());
        let serving = Serving::start(folder.path());
        Self { serving, folder, _evil: evil }
    }

    /// One call: its answer, how long it took, and by how much the process grew at most.
    fn call(&self) -> (Value, Duration, u64) {
        let client = Client::new(&self.serving, None);
        client.names();
        let (before, begin) = (self.peak(), Instant::now());
        let answer = client.call("mcp__evil__headers", &json!({}));
        let (time, grown) = (begin.elapsed(), self.peak() - before);
        // It lives.
        assert_eq!(client.names(), ["mcp__evil__headers", "mcp__evil__param"]);
        (answer, time, grown)
    }

    /// The most memory that the gateway ever had, in bytes.
    fn peak(&self) -> u64 {
        let status = format!("/proc/{}/status", self.serving.child.id());
        let status = fs::read_to_string(status).unwrap();
        let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
    }
}

#[test]
fn e18_what_is_packed_is_not_unpacked() {
    // So many times ten megabytes.
    let world = World::start("gzip", if is_full() { 1_000 } else { 100 });
    let (answer, time, grown) = world.call();
    println!("{time:?}, {grown} bytes more: {answer}");
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert_eq!(answer["result"]["_meta"]["toolcrib/blame"], "upstream", "{answer}");
    assert!(grown < 32 << 20, "{grown} bytes more");
    let heads: Vec<Value> = noted(&world.folder);
    let asked =
        |it: &Value| it["head"].as_str().unwrap().to_lowercase().contains("accept-encoding");
    assert!(!heads.iter().any(asked), "it asked for it");
}

#[test]
fn e19_a_line_without_end_is_given_up() {
    for kind in ["line", "comment"] {
        let world = World::start(kind, 1_000);
        let (answer, time, grown) = world.call();
        println!("{kind}: {time:?}, {grown} bytes more: {answer}");
        assert_eq!(answer["result"]["isError"], true, "{answer}");
        assert!(answer.to_string().contains("limit"), "{answer}");
        // A gigabyte was sent; the limit of a message is a tenth of that.
        assert!(grown < 300_000_000, "{kind}: {grown} bytes more");
    }
}

#[test]
fn e19_events_without_number_cost_nothing() {
    let count = if is_full() { 1_000_000 } else { 50_000 };
    let world = World::start("events", count);
    let (answer, time, grown) = world.call();
    println!("{time:?}, {grown} bytes more");
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    assert!(grown < 32 << 20, "{grown} bytes more");
}

#[test]
fn e19_an_event_of_many_lines_is_one_message() {
    let world = World::start("lines", 100_000);
    let (answer, time, grown) = world.call();
    println!("{time:?}, {grown} bytes more");
    assert_eq!(answer["result"]["content"][0]["text"], "done", "{answer}");
    assert!(grown < 32 << 20, "{grown} bytes more");
}

/// Asked to wait for 30,000 years, a call ends when its time is over.
#[test]
fn e19_nobody_waits_as_long_as_a_server_says() {
    let folder = Folder::new();
    let evil = Evil::http(&folder);
    let url = evil.url("/odd/retry?n=1000000000000000");
    let server = json!({ "url": url, "timeout": "2s" });
    folder.write("mcp.json", json!({ "mcpServers": { "evil": server } }).to_string());
    let serving = Serving::start(folder.path());
    let client = Client::new(&serving, None);
    let begin = Instant::now();
    let answer = client.call("mcp__evil__headers", &json!({}));
    assert_eq!(answer["result"]["isError"], true, "{answer}");
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    // It was called once, and not asked for the rest in a frenzy.
    let asked = noted(&folder)
        .iter()
        .filter(|it| it["head"].as_str().unwrap().contains("last-event-id"))
        .count();
    assert!(asked <= 1, "{asked}");
}
