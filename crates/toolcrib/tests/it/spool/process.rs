//! The same in a process of its own, whose memory, files and disk nobody else uses.

use std::{
    env, fs,
    io::Read,
    process::{Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use toolcrib::{
    catalogue::CallContext,
    sources::mcp::{Filled, ServerConfig, Spool, Transport},
};
use toolcrib_testkit::{Act, Plan, rows};

use super::{LARGE, client_with, over_http, request};
use crate::kit::{Folder, at, not_run, text};

/// What the process below is to do.
const ORDER: &str = "TOOLCRIB_TEST_READER";

/// Reads a large result in a process of its own, whose memory nobody else uses, and tells what it took.
#[tokio::test]
#[ignore = "run by the tests below, as a process of their own"]
async fn reader() {
    let Ok(order) = env::var(ORDER) else { return };
    let order: Value = serde_json::from_str(&order).unwrap();
    let word = |key: &str| order[key].as_str().unwrap_or_default();
    let mut config = match word("transport") {
        "stdio" => ServerConfig::new("s", Transport::Stdio),
        "http" => at("s", Transport::StreamableHttp, word("url")),
        _ => at("s", Transport::Sse, word("url")),
    };
    if word("transport") == "stdio" {
        config.command = Some(Filled::literal(word("program")));
        config.args = vec![Filled::literal(word("argument"))];
    }
    config.timeout = Duration::from_secs(100);
    let max_frame = order["max_frame"].as_u64().unwrap_or(100_000_000);
    let client = client_with(config, Spool::new(word("folder")), max_frame as usize);
    assert_eq!(text(&client, "echo").await, "{}");
    let context = CallContext {
        takes_aside: order["whole"] != true,
        retries: Some(0),
        ..CallContext::default()
    };
    let (before, begin) = (peak(), Instant::now());
    let told = match request(&client, "large", context).await {
        Ok(result) => {
            let took = begin.elapsed().as_millis();
            let aside = result.aside().map(Arc::clone);
            let sums: Vec<_> = (0..aside.as_ref().map_or(0, |it| it.parts().len()))
                .map(|part| json!(sum(&mut *aside.as_ref().unwrap().open(part).unwrap())))
                .collect();
            json!({ "grew": peak() - before, "ms": took, "rest": result.as_str().len(), "sums": sums })
        }
        Err(error) => json!({ "error": error.to_string() }),
    };
    assert_eq!(text(&client, "echo").await, "{}");
    client.close().await;
    println!("told {told}");
}

/// The most memory that this process ever had, in kB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|it| it.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// How much there is to read, and something that differs if any of it does.
fn sum(from: &mut dyn Read) -> (u64, u64) {
    let (mut size, mut sum) = (0, 0_u64);
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = from.read(&mut piece).unwrap();
        if read == 0 {
            return (size, sum);
        }
        for byte in &piece[..read] {
            sum = sum.wrapping_mul(31).wrapping_add(u64::from(*byte));
        }
        size += read as u64;
    }
}

fn run_reader(order: &Value, command: &mut Command) -> Value {
    let output = command.env(ORDER, order.to_string()).stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let told = said.lines().find_map(|it| it.split_once("told ").map(|(_, told)| told.to_owned()));
    serde_json::from_str(&told.unwrap_or_else(|| panic!("{said}"))).unwrap()
}

fn reader_command() -> (std::path::PathBuf, [&'static str; 4]) {
    (env::current_exe().unwrap(), ["spool::process::reader", "--exact", "--ignored", "--nocapture"])
}

/// 100 MB, and 64 MiB: what the process may grow by.
#[tokio::test]
async fn a_result_of_100_mb_takes_little_memory() {
    let size = 100_000_000;
    let structure = rows(size);
    for (act, expected) in [
        (Act::Big(size), sum(&mut std::io::repeat(b'x').take(size as u64))),
        (Act::Rows(size), sum(&mut structure.as_bytes())),
    ] {
        let plan = Plan::legacy().tool("echo", Act::Echo).tool("large", act);
        let (_, running) = over_http(&plan).await;
        let (program, argument) = plan.command();
        let mut orders =
            vec![json!({ "transport": "stdio", "program": program, "argument": argument })];
        orders.extend(
            running
                .iter()
                .zip(["http", "http", "sse"])
                .map(|(it, transport)| json!({ "transport": transport, "url": it.url })),
        );
        for mut order in orders {
            let folder = Folder::new();
            order["folder"] = json!(folder.path());
            let told = tokio::task::spawn_blocking(move || {
                let (program, arguments) = reader_command();
                let told = run_reader(&order, Command::new(program).args(arguments));
                drop(folder);
                println!("{} {told}", order["transport"]);
                told
            });
            let told = told.await.unwrap();
            assert_eq!(told["sums"], json!([expected]));
            assert!(told["rest"].as_u64().unwrap() < 1000, "{told}");
            assert!(told["grew"].as_u64().unwrap() < 64 * 1024, "{told}");
        }
    }
}

/// Few files may be open, and a result has more large parts than that.
#[tokio::test]
async fn a_result_of_many_large_parts_takes_one_file() {
    let (count, size) = (300, 70_000);
    let text = "x".repeat(size);
    let parts = vec![format!(r#"{{"type":"text","text":"{text}"}}"#); count].join(",");
    let result = format!(r#"{{"content":[{parts}]}}"#);
    let line = format!(r#"{{"jsonrpc":"2.0","id":$ID,"result":{result}}}"#);
    let plan = Plan::legacy().tool("echo", Act::Echo).tool("large", Act::Line(line));
    let (_, running) = over_http(&plan).await;
    for (it, transport) in running.iter().zip(["http", "http", "sse"]) {
        for whole in [false, true] {
            let folder = Folder::new();
            let order = json!({
                "transport": transport, "url": it.url, "folder": folder.path(), "whole": whole,
            });
            let told = tokio::task::spawn_blocking(move || {
                let (reader, arguments) = reader_command();
                let reader = reader.display();
                let script = format!("ulimit -n 256 && exec '{reader}' {}", arguments.join(" "));
                let told = run_reader(&order, Command::new("sh").args(["-c", &script]));
                drop(folder);
                told
            });
            let told = told.await.unwrap();
            let one = sum(&mut text.as_bytes());
            let expected = if whole { vec![] } else { vec![one; count] };
            assert_eq!(told["sums"], json!(expected), "{}", told["error"]);
            if whole {
                assert_eq!(told["rest"], json!(result.len()));
            }
        }
    }
}

/// The folder is on a small disk of its own: what does not fit there stays in memory, or the call fails.
#[test]
fn a_full_disk_fails_the_call_at_most_and_nothing_else() {
    let folder = Folder::new();
    let mount = format!("mount -t tmpfs -o size=4m tmpfs '{}'", folder.path().display());
    let may = Command::new("unshare").args(["-m", "sh", "-c", &mount]).status();
    if !may.is_ok_and(|it| it.success()) {
        not_run("a disk of one's own needs the right to mount one");
        return;
    }
    let plan = Plan::legacy().tool("echo", Act::Echo).tool("large", Act::Big(LARGE));
    let (program, argument) = plan.command();
    let (reader, arguments) = reader_command();
    let script = format!("{mount} && exec '{}' {}", reader.display(), arguments.join(" "));
    let read = |max_frame: usize| {
        let order = json!({
            "transport": "stdio", "program": program, "argument": argument,
            "folder": folder.path(), "max_frame": max_frame,
        });
        run_reader(&order, Command::new("unshare").args(["-m", "sh", "-c", &script]))
    };
    let told = read(20_000_000);
    assert_eq!(told["sums"], json!([]), "{told}");
    let rest = r#"{"content":[{"type":"text","text":""}],"isError":false}"#.len();
    assert_eq!(told["rest"], json!(LARGE + rest));
    let expected = "server `s`: its answer is large, and cannot be put aside: No space left on device (os error 28)";
    assert_eq!(read(10_000_000), json!({ "error": expected }));
}
