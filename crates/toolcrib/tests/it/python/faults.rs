//! Whatever a tool does, the gateway goes on, the next call succeeds, and the caller learns what happened.

use std::{
    fs,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use super::{Caller, copy, descendants, workspace};
use crate::{
    kit::{Folder, soon, toolcrib},
    serving::Serving,
};

/// A workspace with faulty tools beside good ones, with a short time for calls.
fn faulty(case: &str) -> Folder {
    let folder = copy(&format!("tests/python/faulty/{case}"));
    let good = super::repository("tests/python/faulty/good/tools/x.py");
    fs::create_dir_all(folder.file("tools")).unwrap();
    fs::copy(good, folder.file("tools/good.py")).unwrap();
    let settings =
        "python: { timeout: 2s, memory: 512MB, env: { TOOL_SECRET: \"${TOOL_SECRET:-}\" } }\n";
    folder.write("network.yaml", settings);
    folder
}

/// Calls faulty tools and checks that good ones still answer.
#[track_caller]
fn fails(case: &str, calls: &[(&str, &str)]) {
    let folder = faulty(case);
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    for (tool, expected) in calls {
        let begin = Instant::now();
        let said = caller.error(tool, &json!({}));
        assert!(said.contains(expected), "{tool}: {said}");
        assert!(begin.elapsed() < Duration::from_secs(15), "{tool} took {:?}", begin.elapsed());
        assert_eq!(caller.text("echo", &json!({ "value": "still here" })), "still here");
        assert_eq!(caller.text("echo_later", &json!({ "value": "here too" })), "here too");
    }
}

#[test]
fn a_loop_without_end_is_interrupted_or_ended() {
    fails("infinite_loop", &[("loop", "no answer within"), ("loop_on", "no answer within")]);
}

#[test]
fn a_sleep_past_the_deadline_is_interrupted_or_ended() {
    fails("sleep", &[("sleep", "no answer within 1 s"), ("sleep_deaf", "no answer within 1 s")]);
}

#[test]
fn an_async_tool_that_blocks_or_will_not_be_cancelled_is_ended() {
    fails("async_block", &[("block", "no answer within")]);
    fails("async_swallow", &[("swallow", "no answer within")]);
}

#[test]
fn a_tool_that_ends_its_process_is_told_by_code_or_signal() {
    fails("exit", &[("leave", "code 3"), ("leave_async", "code"), ("kill", "SIGKILL")]);
    fails("segfault", &[("crash", "SIGSEGV")]);
}

#[test]
fn a_tool_that_takes_too_much_memory_is_told() {
    fails("memory", &[("fill", "out of memory"), ("fill_slowly", "memory")]);
}

#[test]
fn what_json_cannot_carry_is_told_with_its_place() {
    fails("nan", &[("alone", "NaN"), ("inside", "NaN"), ("long_integer", "digits")]);
    fails("big_result", &[("big_text", "too large"), ("deep", "")]);
}

#[test]
fn floods_leave_the_channel_whole() {
    let folder = faulty("flood");
    folder.write("network.yaml", "python: { timeout: 30s }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    for tool in [
        "flood_lines",
        "flood_one_line",
        "flood_at_once",
        "flood_raw",
        "flood_child",
        "flood_errors",
    ] {
        assert_eq!(caller.text(tool, &json!({})), "flooded", "{tool}");
        assert_eq!(caller.text("echo", &json!({ "value": tool })), tool);
    }
    assert!(caller.text("read_input", &json!({})).contains("''"));
}

#[test]
fn secrets_are_masked_and_the_environment_is_what_was_named() {
    let folder = faulty("secret");
    let log = folder.file("log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_toolcrib"));
    command.args(["serve", "-v", "--listen", "127.0.0.1:0"]).current_dir(folder.path());
    command.env("TOOL_SECRET", "hunter2-hunter2").env("OTHER_SECRET", "not-for-tools");
    let serving = Serving::run(command.stderr(Stdio::from(fs::File::create(&log).unwrap())));
    let mut caller = Caller::new(&serving);
    let said = caller.error("tell", &json!({}));
    assert!(said.contains("****") && !said.contains("hunter2"), "{said}");
    caller.call("print_it", &json!({}));
    let variables = caller.text("all_variables", &json!({}));
    assert!(
        variables.contains("TOOL_SECRET") && !variables.contains("OTHER_SECRET"),
        "{variables}"
    );
    soon("the log", || fs::read_to_string(&log).unwrap().contains("****"));
    assert!(!fs::read_to_string(&log).unwrap().contains("hunter2"));
}

/// The problems of a workspace, as `toolcrib check` tells them.
fn problems(folder: &Folder) -> (i32, Vec<Value>) {
    let run = toolcrib(folder.path(), &["check", "--json"]);
    (run.code, run.json()["problems"].as_array().unwrap().clone())
}

#[test]
fn files_that_do_not_load_are_told_with_place_and_cure_and_hide_nothing_else() {
    for (case, subject, message) in [
        ("syntax_error", "tools/x.py:7", "SyntaxError"),
        ("import_error", "tools/x.py", "ModuleNotFoundError"),
        ("exit_on_import", "tools/x.py", "while importing"),
        ("segfault_on_import", "tools/x.py", "SIGSEGV"),
        ("slow_import", "tools/x.py", "more than 10 s"),
        ("circular_broken", "tools/", "ImportError"),
    ] {
        let folder = faulty(case);
        let (code, found) = problems(&folder);
        assert_eq!(code, 1, "{case}");
        let about = |it: &&Value| it["subject"].as_str().unwrap().starts_with(subject);
        let problem = found.iter().find(about).unwrap_or_else(|| panic!("{case}: {found:?}"));
        assert!(problem["message"].as_str().unwrap().contains(message), "{case}: {problem}");
        assert!(problem["hint"].is_string(), "{case}: {problem}");
        let called = toolcrib(folder.path(), &["call", "echo", "value=fine"]);
        assert_eq!(called.out, "fine\n", "{case}: {}", called.transcript());
    }
    let circular = faulty("circular_import");
    assert_eq!(problems(&circular).0, 0);
}

#[test]
fn two_tools_of_one_name_refuse_the_start() {
    let folder = faulty("duplicate_names");
    let run = toolcrib(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(run.code, 2, "{}", run.transcript());
    let sentence = "Tool name conflict: 'search' is defined in both 'workspace' and 'workspace'. Tool names must be unique.";
    assert!(run.err.contains(sentence), "{}", run.err);
}

#[test]
fn without_python_the_rest_works_and_says_so() {
    let folder = workspace("@tool\ndef a() -> str:\n    return 'a'\n");
    folder.write("network.yaml", "python: { interpreter: /nowhere/python3 }\n");
    let plan = toolcrib_testkit::Plan::legacy().tool("echo", toolcrib_testkit::Act::Echo);
    folder
        .write("mcp.json", json!({ "mcpServers": { "s": crate::kit::entry(&plan) } }).to_string());
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    assert_eq!(caller.tools(), ["mcp__s__echo"]);
    caller.call("mcp__s__echo", &json!({}));
    let (code, found) = problems(&folder);
    assert_eq!(code, 1);
    assert!(found[0]["message"].as_str().unwrap().contains("no Python 3.9 or newer"), "{found:?}");
    assert!(found[0]["hint"].as_str().unwrap().contains("interpreter"));
}

#[test]
fn forks_and_threads_give_one_answer() {
    let folder = faulty("fork");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    for tool in ["fork_and_return", "fork_async"] {
        for _ in 0..3 {
            assert_eq!(caller.text(tool, &json!({})), "parent", "{tool}");
        }
    }
    let folder = faulty("threads");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    for tool in ["leave_thread", "report_late", "raise_in_thread", "many_threads"] {
        caller.call(tool, &json!({}));
        assert_eq!(caller.text("echo", &json!({ "value": tool })), tool);
    }
}

#[test]
fn what_tools_start_ends_with_the_gateway() {
    let folder = faulty("grandchild");
    let mut serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let left: u32 = caller.text("leave_behind", &json!({})).trim().parse().unwrap();
    let alive = |id: u32| {
        fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|it| !it.contains(") Z"))
    };
    assert!(alive(left));
    let workers = descendants(serving.child.id());
    assert!(workers.contains(&left));
    serving.signal("-TERM");
    serving.child.wait().unwrap();
    soon("all have ended", || workers.iter().all(|&id| !alive(id)));
}

#[test]
fn a_killed_gateway_leaves_no_python_behind() {
    let folder = workspace("@tool\ndef a() -> str:\n    return 'a'\n");
    let mut serving = Serving::start(folder.path());
    Caller::new(&serving).text("a", &json!({}));
    let workers = descendants(serving.child.id());
    assert!(!workers.is_empty());
    serving.child.kill().unwrap();
    serving.child.wait().unwrap();
    let alive = |id: u32| {
        fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|it| !it.contains(") Z"))
    };
    soon("all have ended", || workers.iter().all(|&id| !alive(id)));
}

#[test]
fn a_call_that_uses_too_much_time_of_the_processor_is_told() {
    let folder = workspace(
        "@tool\ndef burn() -> str:\n    while True:\n        pass\n@tool\ndef a() -> str:\n    return 'a'\n",
    );
    folder.write("network.yaml", "python: { cpu: 1s, timeout: 30s }\n");
    let serving = Serving::start(folder.path());
    let mut caller = Caller::new(&serving);
    let said = caller.error("burn", &json!({}));
    assert!(said.contains("CPU time"), "{said}");
    assert_eq!(caller.text("a", &json!({})), "a");
}

#[test]
fn a_call_that_is_given_up_disturbs_no_other() {
    let folder = faulty("infinite_loop");
    let serving = Serving::start(folder.path());
    std::thread::scope(|scope| {
        let mut looping = Caller::new(&serving);
        let given_up = scope.spawn(move || looping.error("loop_on", &json!({})));
        let mut caller = Caller::new(&serving);
        while !given_up.is_finished() {
            assert_eq!(caller.text("echo", &json!({ "value": "x" })), "x");
            assert_eq!(caller.text("echo_later", &json!({ "value": "y" })), "y");
        }
        assert!(given_up.join().unwrap().contains("no answer within"));
    });
}

/// Only where a group of processes can be bounded. Nothing of the kind is ever run without that.
#[test]
fn a_fork_bomb_stays_in_its_group() {
    let group =
        std::path::PathBuf::from(format!("/sys/fs/cgroup/pids/toolcrib-{}", std::process::id()));
    if fs::create_dir(&group).is_err() || !group.join("pids.max").exists() {
        fs::remove_dir(&group).ok();
        println!("NOT RUN: no group of processes can be bounded here, so no fork bomb is tried");
        return;
    }
    fs::write(group.join("pids.max"), "100").unwrap();
    let folder = workspace(
        "import os\n@tool\ndef bomb() -> str:\n    for _ in range(12):\n        try:\n            os.fork()\n        \
         except OSError:\n            pass\n    import time\n    time.sleep(60)\n    return ''\n",
    );
    folder.write("network.yaml", "python: { timeout: 2s }\n");
    let mut command = Command::new("sh");
    let script = format!(
        "echo $$ > {}/cgroup.procs; exec {} serve --listen 127.0.0.1:0",
        group.display(),
        env!("CARGO_BIN_EXE_toolcrib")
    );
    command.args(["-c", &script]).current_dir(folder.path()).stderr(Stdio::null());
    let serving = Serving::run(&mut command);
    Caller::new(&serving).error("bomb", &json!({}));
    soon("all have ended", || descendants(serving.child.id()).len() < 10);
    drop(serving);
    soon("the group is empty", || fs::remove_dir(&group).is_ok());
}
