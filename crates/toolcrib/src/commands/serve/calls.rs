//! A quiet line for every call, for whoever looks on at a terminal.

use std::{io, ops::ControlFlow, path::PathBuf, time::Duration};

use serde_json::Value;
use toolcrib_server::Records;

use crate::terminal::{self, BOLD, DIM, GREEN, RED, YELLOW, styled};

/// How often it is looked whether calls have ended.
const LOOK: Duration = Duration::from_millis(250);

/// Of more calls than this at once only their number is told.
const MOST_LINES: usize = 20;

/// How much of a cause stands on the line.
const MOST_CAUSE: usize = 120;

/// Tells of calls as the record in `folder` has them, from now on. Ends only where it cannot be read.
pub(super) async fn tell(folder: PathBuf) {
    let Ok((_, mut records)) = Records::last(&folder, 0, |_| false) else { return };
    loop {
        tokio::time::sleep(LOOK).await;
        let read = move || (read(&mut records), records);
        let Ok((Ok(text), rest)) = tokio::task::spawn_blocking(read).await else { return };
        records = rest;
        // A gateway whose terminal is gone serves on.
        if !text.is_empty() && terminal::print(&text).is_err() {
            return;
        }
    }
}

/// What there is to tell of calls that have ended since.
fn read(records: &mut Records) -> io::Result<String> {
    let (mut lines, mut more) = (Vec::new(), 0);
    let each = records.each(|_, record| {
        match record["call"].is_string() {
            true if lines.len() < MOST_LINES => lines.push(line(&record)),
            true => more += 1,
            false => {}
        }
        ControlFlow::Continue(())
    });
    each.map_err(|it| io::Error::other(it.to_string()))?;
    let mut text = lines.concat();
    if 0 < more {
        text.push_str(&styled(DIM, &format!("  … and {more} more calls\n")));
    }
    Ok(text)
}

/// One call: when, how it ended, what was called, how long it took, who asked, and what went wrong.
fn line(record: &Value) -> String {
    let text = |key: &str| record[key].as_str().map(terminal::clean).unwrap_or_default();
    let (ts, outcome) = (text("ts"), text("outcome"));
    let when = ts.get(11..19).unwrap_or("?").to_owned();
    let style = match outcome.as_str() {
        "ok" => GREEN,
        "upstream_error" | "gateway_error" | "held" | "timeout" => RED,
        _ => YELLOW,
    };
    let took = format!("{:.0} ms", record["ms"].as_f64().unwrap_or_default());
    let cause: String = text("cause").chars().take(MOST_CAUSE).collect();
    let cause = if cause.is_empty() { cause } else { format!("  {cause}") };
    format!(
        "  {}  {}  {}  {}{cause}\n",
        styled(DIM, &when),
        styled(style, &outcome),
        styled(BOLD, &text("tool")),
        styled(DIM, &format!("{took}  {}", text("group"))),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(record: &Value, expected: &str) {
        assert_eq!(anstream::adapter::strip_str(&line(record)).to_string(), expected);
    }

    #[test]
    fn a_call_is_one_line_whatever_it_holds() {
        check(
            &json!({ "ts": "2026-01-31T12:00:05.123Z", "call": "1", "outcome": "ok", "tool": "greet",
                "group": "guest", "ms": 12.345 }),
            "  12:00:05  ok  greet  12 ms  guest\n",
        );
        let odd = json!({ "ts": "?", "call": "1", "outcome": "unknown_tool", "tool": "a\n\u{1b}[2Jb",
            "group": "guest", "ms": 0.2, "cause": "x".repeat(500) });
        let cause = "x".repeat(MOST_CAUSE);
        let told = anstream::adapter::strip_str(&line(&odd)).to_string();
        assert_eq!(told.lines().count(), 1, "{told:?}");
        assert!(told.ends_with(&format!("0 ms  guest  {cause}\n")), "{told:?}");
    }
}
