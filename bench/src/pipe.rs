//! A client on standard input and output: a line out, a line in.

use std::{path::PathBuf, process::Stdio};

use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    process::{Child, ChildStdin, ChildStdout, Command},
};

use crate::{connection::Reply, failure::Failure, request::Template};

/// What to start.
#[derive(Debug, Clone)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) args: Vec<String>,
}

/// A program that runs, and is talked to. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Pipe {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    sent: Vec<u8>,
    got: Vec<u8>,
}

impl Pipe {
    pub(crate) fn open(program: &Program) -> Result<Self, Failure> {
        let mut child = Command::new(&program.path)
            .args(&program.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| Failure::from(error).at(&program.path.display().to_string()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Failure::new("a program without pipes"));
        };
        let output = BufReader::with_capacity(64 * 1024, output);
        Ok(Self { child, input, output, sent: Vec::new(), got: Vec::new() })
    }

    /// Its process.
    pub(crate) fn id(&self) -> Option<u32> {
        self.child.id()
    }

    pub(crate) async fn say(&mut self, template: &Template, number: u64) -> Result<(), Failure> {
        template.write(number, &mut self.sent);
        Ok(self.input.write_all(&self.sent).await?)
    }

    /// Sends the request with this number, and waits for its answer. What comes in between is for somebody
    /// else: a gateway may tell of changes.
    pub(crate) async fn ask(
        &mut self,
        template: &Template,
        number: u64,
    ) -> Result<Reply<'_>, Failure> {
        self.say(template, number).await?;
        loop {
            self.got.clear();
            if self.output.read_until(b'\n', &mut self.got).await? == 0 {
                return Err(Failure::new("the program ended before it answered"));
            }
            if !self.got.starts_with(br#"{"jsonrpc":"2.0","method":"#) {
                break;
            }
        }
        Ok(Reply { status: 200, head: "", body: self.got.trim_ascii_end() })
    }
}
