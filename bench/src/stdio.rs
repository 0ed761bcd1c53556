//! The same server on a pipe: a message is a line, and so is its answer.

use std::io::{BufRead, Write};

use crate::{
    failure::Failure,
    site::{Answer, FEW, Site},
};

/// The word that makes this program be that server.
pub(crate) const WORD: &str = "stdio-server";

/// Answers until there is nobody left to ask.
pub(crate) fn serve(mut input: impl BufRead, mut output: impl Write) -> Result<(), Failure> {
    let site = Site::new(&[FEW]);
    let mut line = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        match site.answer(&line, FEW) {
            Answer::Silence | Answer::Unreadable => {}
            Answer::Message(pieces) | Answer::Session(pieces) => {
                for piece in pieces {
                    output.write_all(&piece)?;
                }
                output.write_all(b"\n")?;
            }
        }
        output.flush()?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_answered_by_a_line_and_a_notification_by_none() {
        let asked = concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            "\nnot JSON\n",
            r#"{"jsonrpc":"2.0","id":2,"method":"ping"}"#,
            "\n"
        );
        let mut said = Vec::new();
        serve(asked.as_bytes(), &mut said).unwrap();
        let pong = |id: u8| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}\n");
        assert_eq!(String::from_utf8(said).unwrap(), pong(1) + &pong(2));
    }
}
