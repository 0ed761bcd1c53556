//! What it costs to read an `mcp.json` of 1,000 servers, in CPU time.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{fmt::Write, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_sources::mcp::read_mcp_config;

const ROUNDS: usize = 30;

fn main() {
    let mut text = String::from("{\n  // a thousand servers\n  \"mcpServers\": {\n");
    for number in 0..1000 {
        let comma = if number == 999 { "" } else { "," };
        write!(
            text,
            r#"    "server-{number}": {{"command": "npx", "args": ["-y", "@scope/package-{number}", "--token", "${{TOKEN}}"],
      "env": {{"API_KEY": "${{TOKEN}}", "MODE": "production", "PLACE": "${{PLACE:-here}}"}},
      "timeout": 30, "exclude": ["drop_{number}"], "rate": "10/s"}}{comma}"#
        )
        .unwrap();
        text.push('\n');
    }
    text.push_str("  }\n}\n");
    let file = std::env::temp_dir().join(format!("toolcrib-bench-{}.json", std::process::id()));
    std::fs::write(&file, &text).unwrap();
    let env = |name: &str| (name == "TOKEN").then(|| "secret-secret".to_owned());
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = cpu_time();
            let config = read_mcp_config(&file, &env).unwrap();
            let time = cpu_time() - begin;
            assert_eq!((config.servers.len(), config.faults.len()), (1000, 0));
            time
        })
        .collect();
    std::fs::remove_file(&file).unwrap();
    times.sort();
    println!(
        "read 1,000 servers ({} kB): median {:.2?}, worst {:.2?} of CPU time (goal: 20 ms)",
        text.len() / 1000,
        times[ROUNDS / 2],
        times[ROUNDS - 1]
    );
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}
