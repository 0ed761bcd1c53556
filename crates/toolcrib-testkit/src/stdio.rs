//! A fake server as a child process.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use serde_json::json;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    sync::{Mutex, mpsc},
};

use crate::{
    fake::{Fake, Reaction},
    plan::{Fault, Plan},
};

/// Where the program is that runs a plan: beside the tests.
pub fn program() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.ancestors().find(|it| it.join("fake-upstream").is_file());
    let folder = folder.unwrap_or_else(|| panic!("run `cargo build -p toolcrib-testkit` first"));
    folder.join("fake-upstream")
}

/// Runs a plan on standard input and output until the input ends.
pub async fn run(plan: Plan) {
    for fault in &plan.faults {
        match fault {
            Fault::SlowStart(time) => tokio::time::sleep(Duration::from_millis(*time)).await,
            Fault::ExitAtOnce(words) => {
                let mut err = tokio::io::stderr();
                err.write_all(format!("{words}\n").as_bytes()).await.unwrap();
                err.flush().await.unwrap();
                return;
            }
            _ => {}
        }
    }
    let (mute, stubborn) = (plan.has(&Fault::Mute), plan.has(&Fault::Stubborn));
    let fake = Fake::new(plan);
    let out = Arc::new(Mutex::new(tokio::io::stdout()));
    let (aside, mut notes) = mpsc::channel::<Bytes>(64);
    let out2 = Arc::clone(&out);
    let speaking = async move {
        while let Some(note) = notes.recv().await {
            say(&out2, &note).await;
        }
    };
    let listening = async move {
        let mut lines = BufReader::new(tokio::io::stdin()).split(b'\n');
        let mut answering = tokio::task::JoinSet::new();
        while let Some(line) = lines.next_segment().await.unwrap() {
            if mute {
                continue;
            }
            let (fake, aside, out) = (Arc::clone(&fake), aside.clone(), Arc::clone(&out));
            answering.spawn(async move {
                match fake.take(&line.into(), &json!({}), &aside).await {
                    Reaction::Send(text) => say(&out, &text).await,
                    Reaction::SendRaw(text) => say(&out, &text).await,
                    Reaction::Begin(text) => {
                        let mut out = out.lock().await;
                        out.write_all(&text).await.ok();
                        out.flush().await.ok();
                    }
                    Reaction::SendAndEnd(text) => {
                        let mut out = out.lock().await;
                        out.write_all(&text).await.unwrap();
                        out.flush().await.unwrap();
                        end();
                    }
                    Reaction::Nothing | Reaction::Silence => {}
                }
            });
        }
        if stubborn {
            std::future::pending::<()>().await;
        }
    };
    tokio::select! {
        () = speaking => {}
        () = listening => {}
    }
}

async fn say(out: &Mutex<tokio::io::Stdout>, text: &[u8]) {
    let mut out = out.lock().await;
    // Nobody may be listening any more.
    out.write_all(&[text, b"\n"].concat()).await.ok();
    out.flush().await.ok();
}

#[expect(clippy::exit, reason = "a crash is what was ordered")]
fn end() -> ! {
    std::process::exit(7)
}
