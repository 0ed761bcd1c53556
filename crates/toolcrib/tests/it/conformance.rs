//! The official conformance suite, through a gateway, in both directions and both eras.
//!
//! What may fail stands in `tests/conformance/baseline.json`; whatever else fails, and whatever stands there
//! and does not fail, fails here.

use std::{path::Path, process::Command};

use crate::{kit::run, real::installed};

fn suite(direction: &str, revision: &str, more: &[&str]) {
    let Some(tools) = installed() else { return };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/suite.py");
    let mut command = Command::new("python3");
    command.arg(script).arg(direction).arg("--tools").arg(tools);
    command.args(["--gateway", env!("CARGO_BIN_EXE_toolcrib"), "--requirements", revision]);
    let run = run(command.args(more));
    println!("{}", run.out);
    assert_eq!(run.code, 0, "{}", run.transcript());
}

#[test]
fn legacy_clients_of_an_http_server() {
    suite("server", "2025-11-25", &["--upstream", "http"]);
}

#[test]
fn legacy_clients_of_a_server_on_a_pipe() {
    suite("server", "2025-11-25", &["--upstream", "stdio"]);
}

#[test]
fn modern_clients_of_an_http_server() {
    suite("server", "2026-07-28", &["--upstream", "http"]);
}

#[test]
fn modern_clients_of_a_server_on_a_pipe() {
    suite("server", "2026-07-28", &["--upstream", "stdio"]);
}

#[test]
fn legacy_servers() {
    suite("client", "2025-11-25", &[]);
}

#[test]
fn modern_servers() {
    suite("client", "2026-07-28", &[]);
}
