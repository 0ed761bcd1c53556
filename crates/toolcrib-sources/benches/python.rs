//! What a call of a no-op Python tool costs at the `Source` port, beside a raw echo of frames over pipes in
//! the same Python: nothing written in Python answers faster.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark speaks on stdout"
)]

use std::{
    fs,
    io::{Read, Write},
    process::{Child, Command, Stdio},
    time::Instant,
};

use toolcrib_catalogue::{CallContext, Json, Source};
use toolcrib_sources::python::{Python, Settings};

const ROUNDS: usize = 15;
const CALLS: u32 = 3000;

const ECHO: &str = r#"
import os
while True:
    data = os.read(0, 65536)
    if not data: break
    size = int.from_bytes(data[:4], "little")
    while len(data) < size + 4: data += os.read(0, 65536)
    os.write(1, len(data[4:]).to_bytes(4, "little") + data[4:])
"#;

fn main() {
    let folder = std::env::temp_dir().join(format!("toolcrib-bench-{}", std::process::id()));
    fs::create_dir_all(folder.join("tools")).unwrap();
    let tool = "from toolcrib import tool\n@tool\ndef noop(text: str) -> str:\n    return text\n";
    fs::write(folder.join("tools/t.py"), tool).unwrap();
    // Two threads, as on a small machine: one waits for Python, one reads what it prints.
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.unwrap();
    let mut echo = Echo::start();
    // On a thread of the runtime, as every call of a gateway is.
    let measuring = async move {
        let (mut ratios, mut ours, mut theirs) = (Vec::new(), Vec::new(), Vec::new());
        let path = std::env::var("PATH").unwrap_or_default();
        let env = vec![("PATH".to_owned(), path)];
        let python = Python::start(Settings { env, workers: 1, ..Settings::new(&folder) }, false);
        python.settled().await;
        let source = python.sources().pop().unwrap();
        for round in 0..=ROUNDS {
            let raw = echo.calls_a_second();
            let begin = Instant::now();
            for _ in 0..CALLS {
                let params = Json::parse(r#"{"name":"noop","arguments":{"text":"x"}}"#).unwrap();
                let result = source.request("tools/call", params, CallContext::default()).await;
                assert!(result.unwrap().as_str().contains(r#""text":"x""#));
            }
            let own = f64::from(CALLS) / begin.elapsed().as_secs_f64();
            // The first round warms up.
            if 0 < round {
                ratios.push(own / raw);
                ours.push(own);
                theirs.push(raw);
            }
        }
        python.close().await;
        (ratios, ours, theirs, folder)
    };
    let measured = runtime.block_on(runtime.spawn(measuring)).unwrap();
    let (mut ratios, mut ours, mut theirs, folder) = measured;
    fs::remove_dir_all(&folder).unwrap();
    let middle = |values: &mut Vec<f64>| {
        values.sort_by(f64::total_cmp);
        (values[0], values[values.len() / 2], values[values.len() - 1])
    };
    let (least, median, most) = middle(&mut ratios);
    println!(
        "no-op calls a second: {:.0} at the port, {:.0} raw; ratio {median:.2} ({least:.2} to {most:.2}; goal: 0.4)",
        middle(&mut ours).1,
        middle(&mut theirs).1,
    );
}

struct Echo(Child);

impl Echo {
    fn start() -> Self {
        let mut command = Command::new("python3");
        command.args(["-I", "-c", ECHO]).stdin(Stdio::piped()).stdout(Stdio::piped());
        Self(command.spawn().unwrap())
    }

    fn calls_a_second(&mut self) -> f64 {
        let text = br#"{"op":"call","id":1,"tool":"noop","group":null,"progress":false,"args":{"text":"x"}}"#;
        let frame = [&u32::try_from(text.len()).unwrap().to_le_bytes()[..], text].concat();
        let (input, output) = (self.0.stdin.as_mut().unwrap(), self.0.stdout.as_mut().unwrap());
        let mut back = vec![0; frame.len()];
        let begin = Instant::now();
        for _ in 0..CALLS {
            input.write_all(&frame).unwrap();
            output.read_exact(&mut back).unwrap();
        }
        f64::from(CALLS) / begin.elapsed().as_secs_f64()
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}
