//! What it costs to check a call's arguments, and to read the schema they are checked against, in CPU time. It fails where
//! a typical call costs more than it may.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{hint::black_box, process::ExitCode, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_catalogue::{Formats, Json, Validator};

const ROUNDS: usize = 41;
/// What a typical call may cost.
const GOAL: Duration = Duration::from_micros(3);
const CALLS: u32 = 20_000;
const READS: u32 = 500;

const SCHEMA: &str = r#"{"type":"object","properties":{
    "query":{"type":"string","minLength":1,"maxLength":200,"description":"What to look for"},
    "limit":{"type":"integer","minimum":1,"maximum":50,"default":10},
    "status":{"type":"string","enum":["active","archived","deleted"]},
    "deep":{"type":"boolean"},
    "tags":{"type":"array","items":{"type":"string"},"maxItems":10}},
    "required":["query","status"],"additionalProperties":false}"#;
const FITS: &str = r#"{"query":"open issues about paging","limit":20,"status":"archived","deep":false,"tags":["a","b"]}"#;
const MISFIT: &str =
    r#"{"querry":"open issues about paging","limit":500,"status":"archive","deep":"no"}"#;

fn main() -> ExitCode {
    let json = |text: &'static str| Json::parse(text).unwrap();
    let (schema, fits, misfit) = (json(SCHEMA), json(FITS), json(MISFIT));
    let validator = Validator::read(&schema, Formats::Asserted).unwrap();
    assert!(validator.check(&fits).is_ok());
    assert_eq!(validator.check(&misfit).unwrap_err().list().len(), 5);
    let typical =
        report("check a typical call (goal: 3 µs)", CALLS, || validator.check(&fits).is_ok());
    report("check one with five faults, and tell them", CALLS / 10, || {
        !validator.check(&misfit).unwrap_err().to_string().is_empty()
    });
    report("read its schema", READS, || Validator::read(&schema, Formats::Asserted).is_ok());
    if typical <= GOAL {
        return ExitCode::SUCCESS;
    }
    println!("a typical call costs more than {GOAL:?}: {typical:.2?}");
    ExitCode::FAILURE
}

/// Measures something, and returns the median of the rounds.
fn report(what: &str, times: u32, mut act: impl FnMut() -> bool) -> Duration {
    let mut rounds: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = cpu_time();
            for _ in 0..times {
                assert!(black_box(act()));
            }
            (cpu_time() - begin) / times
        })
        .collect();
    rounds.sort();
    let (median, worst) = (rounds[ROUNDS / 2], rounds[ROUNDS - 1]);
    println!("{what}: median {median:.2?}, worst {worst:.2?} of CPU time");
    median
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}
