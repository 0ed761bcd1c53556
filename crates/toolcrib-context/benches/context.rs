//! What it costs to read results, tools and sessions, in CPU time.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{hint::black_box, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};
use toolcrib_context::{
    SessionLimits, mcp_result_to_envelope, mcp_tool_to_selectable, read_session,
};

const ROUNDS: usize = 101;
const MEGABYTE: usize = 1 << 20;

fn main() {
    let long_line = format!("{} time: 10:30, path: /a/b\n", "many words ".repeat(25));
    let texts = [
        ("lines without a fact", "some words on a line that says nothing in particular\n"),
        ("lines that are facts", "status: done\n"),
        ("lines too long for facts", &*long_line),
        ("one line", "some words, and no end of it "),
        ("one line of Chinese", "這是一個很長的句子，它沒有盡頭。"),
    ];
    for (what, piece) in texts {
        let text: String =
            piece.chars().cycle().take(MEGABYTE / piece.len() * piece.chars().count()).collect();
        let result = json!({ "content": [{ "type": "text", "text": text }] });
        measure(&format!("envelope of 1 MB, {what}"), "0.5 ms", || {
            mcp_result_to_envelope(&result, "t")
        });
    }
    let image =
        json!({ "content": [{ "type": "image", "data": "iVBORw0K".repeat(MEGABYTE / 8) }] });
    measure("envelope of a 1 MB image", "none", || mcp_result_to_envelope(&image, "t"));
    let rows: Vec<Value> = (0..10_000)
        .map(|it| json!({ "id": it, "name": "somebody", "note": "a few words on it", "rate": 0.5 }))
        .collect();
    let table = json!({ "structuredContent": { "rows": rows } });
    measure("envelope of a structure with 10,000 rows", "none", || {
        mcp_result_to_envelope(&table, "t")
    });
    let keys: Value = (0..200)
        .map(|it| (format!("key_{it}"), json!({ "value": it, "list": [1, 2.5, "x"] })))
        .collect();
    let structure = json!({ "structuredContent": keys });
    measure("envelope of a structure with 200 keys", "none", || {
        mcp_result_to_envelope(&structure, "t")
    });
    let tool = json!({ "name": "github.create_issue", "description": "Create an issue",
        "inputSchema": { "type": "object", "properties": { "title": { "type": "string" }, "body": {} }, "required": ["title"] } });
    measure("a tool", "none", || mcp_tool_to_selectable(&tool));
    let session: String = (0..10_000)
        .map(|it| format!("{{\"id\":\"i{it}\",\"type\":\"tool_result\",\"text\":\"some words: {it}\",\"parent_id\":\"c{it}\"}}\n"))
        .collect();
    measure("a session of 10,000 items", "none", || {
        read_session(session.as_bytes(), &SessionLimits::default()).unwrap()
    });
}

fn measure<T>(what: &str, goal: &str, run: impl Fn() -> T) {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = cpu_time();
            black_box(run());
            cpu_time() - begin
        })
        .collect();
    times.sort();
    let (median, worst) = (times[ROUNDS / 2], times[ROUNDS - 1]);
    println!("{what}: median {median:.1?}, worst {worst:.1?} of CPU time (goal: {goal})");
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}
