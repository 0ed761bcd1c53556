//! That the program the other tests start is there, and answers.

use std::{
    io::{BufRead, BufReader, Write},
    process::{Command, Stdio},
};

use toolcrib_testkit::{Act, Plan};

#[test]
fn a_plan_runs_as_a_child_process() {
    let (program, argument) = Plan::legacy().tool("echo", Act::Echo).command();
    let mut child = Command::new(program)
        .arg(argument)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n").unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains(r#""name":"echo""#), "{line}");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
