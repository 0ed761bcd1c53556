//! What nginx is over HTTP, on pipes: a program that hands bytes to the server and back, and looks at none of them.
//! It shows what one more process costs, whatever that process does.

use std::{
    io::{Read, Write, pipe},
    process::{Command, Stdio},
    thread,
};

use crate::{failure::Failure, stdio};

/// The word that makes this program be it.
pub(crate) const WORD: &str = "stdio-forwarder";

/// Starts the server, and forwards until the client is gone.
pub(crate) fn run() -> Result<(), Failure> {
    let (its_input, to_server) = pipe()?;
    let (from_server, its_output) = pipe()?;
    let mut server = Command::new(std::env::current_exe()?)
        .arg(stdio::WORD)
        .stdin(Stdio::from(its_input))
        .stdout(Stdio::from(its_output))
        .spawn()?;
    // A thread for each way, each asleep in its read: no poll, no queue.
    let back = thread::spawn(move || forward(from_server, std::io::stdout().lock()));
    forward(std::io::stdin().lock(), to_server);
    server.wait()?;
    drop(back.join());
    Ok(())
}

fn forward(mut from: impl Read, mut to: impl Write) {
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(size @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..size]).and_then(|()| to.flush()).is_err() {
            return;
        }
    }
}
