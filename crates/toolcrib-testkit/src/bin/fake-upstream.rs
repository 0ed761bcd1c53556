//! Runs the plan in its first argument as an MCP server on standard input and output.
#![expect(clippy::unwrap_used, reason = "it only runs in tests")]

use toolcrib_testkit::{Fault, Plan};

fn main() {
    let plan: Plan = serde_json::from_str(&std::env::args().nth(1).unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        if plan.faults.contains(&Fault::Stubborn) {
            let mut term =
                tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).unwrap();
            let mut deaf = tokio::task::JoinSet::new();
            deaf.spawn(async move { while term.recv().await.is_some() {} });
            toolcrib_testkit::stdio::run(plan).await;
        } else {
            toolcrib_testkit::stdio::run(plan).await;
        }
    });
    // Standard input is read on a thread that may never come back.
    runtime.shutdown_background();
}
