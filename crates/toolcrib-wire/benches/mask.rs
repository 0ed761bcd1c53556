//! What it costs, in CPU time, to mask 1 MiB of text, ordinary and hostile, and a typical line of a log.
#![expect(clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use toolcrib_wire::text::Masker;

const ROUNDS: usize = 11;

fn main() {
    let values = (0..100).map(|it| format!("configured-secret-number-{it}"));
    let masker = Masker::new(values.chain(["-----BEGIN PRIVATE KEY-----\nabc".repeat(60)]));
    let prose =
        "Search the issues of a project; the token budget is 4096, and the secret is not to ask. ";
    let json =
        r#"{"id": 7, "name": "a name", "list": [1, 2.5, true, null, "text"], "max_tokens": 100}, "#;
    let pieces = [
        ("prose", prose),
        ("JSON", json),
        ("configured values", "configured-secret-number-7 "),
        ("tokens", "ghp_0123456789abcdefABCDEF0123456789abcdef "),
        ("passwords", r#""password": "x", "#),
        ("eyJ-", "eyJ-"),
        ("sk-", "sk-"),
        ("token", "token"),
        ("token=", "token="),
        ("://a:", "://a:"),
        ("quotes", "\\\""),
        ("key lines", "-----BEGIN PRIVATE KEY-----"),
        ("half a value", "configured-secret-number-"),
        ("brackets", "[{"),
    ];
    for (what, piece) in pieces {
        let text = piece.repeat((1 << 20) / piece.len());
        let plain = median(|| drop(masker.mask(&text)));
        let walked = median(|| drop(masker.mask_json(&text)));
        println!("1 MiB of {what}: mask {plain:.1?}, mask_json {walked:.1?}");
    }
    let line = "2026-01-31T12:00:00Z  WARN server=git the call took 12 s, and then the server said: no such branch";
    println!(
        "a line of a log: {:.2?}",
        median(|| (0..1000).for_each(|_| drop(masker.mask(line)))) / 1000
    );
    let arguments =
        r#"{"query": "open issues of the last week", "limit": 20, "filter": {"state": "open"}}"#;
    let many = || (0..1000).for_each(|_| drop(masker.mask_json(arguments)));
    println!("typical arguments: {:.2?}", median(many) / 1000);
}

fn median(work: impl Fn()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = cpu_time();
            work();
            cpu_time() - begin
        })
        .collect();
    times.sort_unstable();
    times[ROUNDS / 2]
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.try_into().unwrap_or_default())
}
