//! `toolcrib audit show` and `tail`: records a line each, all or those that are asked for.

use std::{io, ops::ControlFlow, path::Path, process::ExitCode, time::Duration};

use serde_json::Value;
use toolcrib_bus::{now_ms, rfc3339};
use toolcrib_server::{Pattern, Records};

use super::{Failure, unreadable};
use crate::{
    cli::Wanted,
    terminal::{self, BOLD, CYAN, DIM, GREEN, RED, YELLOW, styled},
};

/// How often it is looked whether something came.
const LOOK: Duration = Duration::from_millis(200);

/// A moment as records write it, without its `Z`.
const SHAPE: &str = "0000-00-00T00:00:00.000";

/// What is asked for, understood.
struct Asked<'a> {
    tool: Option<Pattern>,
    group: Option<&'a str>,
    /// As records write it, so that texts can be compared.
    since: Option<String>,
    outcomes: &'a [String],
    json: bool,
}

/// Shows what there is.
pub(super) fn show(
    folder: &Path,
    wanted: &Wanted,
    lines: Option<usize>,
) -> Result<ExitCode, Failure> {
    let asked = Asked::read(wanted, now_ms())?;
    if !folder.is_dir() {
        let hint = "`toolcrib serve` writes one, unless network.yaml has `audit: off`";
        return Err(Failure::said_no("there is no audit record here").hint(Some(hint.to_owned())));
    }
    match lines {
        Some(lines) => drop(show_last(folder, &asked, lines)?),
        None => drop(show_new(&mut Records::all(folder), &asked, None)?),
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the last, and what comes. Ends only when enough was shown.
pub(super) async fn tail(
    folder: &Path,
    wanted: &Wanted,
    lines: usize,
    count: Option<usize>,
) -> Result<ExitCode, Failure> {
    let asked = Asked::read(wanted, now_ms())?;
    let back = count.map_or(lines, |it| it.min(lines));
    let (shown, mut rest) = show_last(folder, &asked, back)?;
    let mut left = count.map(|it| it.saturating_sub(shown));
    while left != Some(0) {
        let shown = show_new(&mut rest, &asked, left)?;
        left = left.map(|it| it.saturating_sub(shown));
        if left != Some(0) {
            tokio::time::sleep(LOOK).await;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Shows the last so many; says how many there were, and what is to come after them.
fn show_last(folder: &Path, asked: &Asked<'_>, most: usize) -> Result<(usize, Records), Failure> {
    let last = Records::last(folder, most, |it| asked.wants(it));
    let (found, rest) = last.map_err(|it| unreadable(&it))?;
    for (line, record) in &found {
        asked.print(line, record)?;
    }
    Ok((found.len(), rest))
}

/// Shows what was not shown yet, up to so many; says how many.
fn show_new(
    records: &mut Records,
    asked: &Asked<'_>,
    most: Option<usize>,
) -> Result<usize, Failure> {
    let (mut shown, mut printed) = (0, io::Result::Ok(()));
    let each = records.each(|line, record| {
        if asked.wants(&record) {
            printed = asked.print(line, &record);
            shown += 1;
        }
        if printed.is_err() || most == Some(shown) {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    each.map_err(|it| unreadable(&it))?;
    printed?;
    Ok(shown)
}

impl<'a> Asked<'a> {
    fn read(wanted: &'a Wanted, now: u64) -> Result<Self, Failure> {
        let since = wanted.since.as_deref().map(|it| {
            since(it, now).ok_or_else(|| {
                let known = "90s, 30m, 2h, 7d, 2026-01-31 or 2026-01-31T12:00";
                Failure::unusable(format!("--since takes {known}, not `{}`", terminal::clean(it)))
            })
        });
        Ok(Self {
            tool: wanted.tool.clone().map(Pattern),
            group: wanted.group.as_deref(),
            since: since.transpose()?,
            outcomes: &wanted.outcome,
            json: wanted.json,
        })
    }

    fn wants(&self, record: &Value) -> bool {
        let text = |key: &str| record[key].as_str();
        let late = |since: &String| text("ts").is_some_and(|it| since.as_str() <= it);
        self.tool.as_ref().is_none_or(|it| text("tool").is_some_and(|tool| it.matches(tool)))
            && self.group.is_none_or(|it| text("group") == Some(it))
            && self.since.as_ref().is_none_or(late)
            && (self.outcomes.is_empty()
                || self.outcomes.iter().any(|it| text("outcome") == Some(it)))
    }

    fn print(&self, line: &str, record: &Value) -> io::Result<()> {
        terminal::print(&if self.json { format!("{line}\n") } else { shown(record) })
    }
}

/// The moment from which on records are wanted, as they write it. A day or a minute begins when it does.
fn since(text: &str, now: u64) -> Option<String> {
    let unit = |it: char| match it {
        's' => Some(1_000),
        'm' => Some(60_000),
        'h' => Some(3_600_000),
        'd' => Some(86_400_000_u64),
        _ => None,
    };
    if let Some((number, ms)) =
        text.chars().last().and_then(unit).map(|ms| (&text[..text.len() - 1], ms))
    {
        let age = number.parse::<u64>().ok()?.checked_mul(ms)?;
        return Some(rfc3339(now.saturating_sub(age)));
    }
    let text = text.strip_suffix('Z').unwrap_or(text);
    let fits = |(given, shape): (char, char)| match shape {
        '0' => given.is_ascii_digit(),
        mark => given == mark,
    };
    let whole = [10, 16, 19, 23].contains(&text.len());
    (whole && text.chars().zip(SHAPE.chars()).all(fits)).then(|| text.to_owned())
}

/// A record on one line: when, which, how it ended, what it was, who asked, and how long it took.
fn shown(record: &Value) -> String {
    let text = |key: &str| record[key].as_str().map(terminal::clean).unwrap_or_default();
    let ts = text("ts");
    let when = format!("{} {}", ts.get(..10).unwrap_or("?"), ts.get(11..19).unwrap_or("?"));
    let head = format!("{} {}", styled(DIM, &when), styled(CYAN, &format!("#{}", record["seq"])));
    let mut more = Vec::new();
    for key in ["group", "who", "client", "subject"] {
        more.extend(Some(text(key)).filter(|it| !it.is_empty()));
    }
    if let Some(times) = record["times"].as_u64() {
        more.push(format!("{times} times"));
    }
    let more = styled(DIM, &more.join(" "));
    let cause = text("cause");
    let cause = if cause.is_empty() { cause } else { format!(": {cause}") };
    let line = if record["call"].is_string() {
        let outcome = text("outcome");
        let style = match outcome.as_str() {
            "ok" => GREEN,
            "upstream_error" | "gateway_error" | "held" | "timeout" => RED,
            _ => YELLOW,
        };
        let cache = Some(text("cache")).filter(|it| !it.is_empty() && it != "miss");
        let cache = cache.map(|it| format!(", cache: {it}")).unwrap_or_default();
        let (tool, call) = (styled(BOLD, &text("tool")), text("call"));
        let outcome = styled(style, &outcome);
        format!("{outcome} {tool} {more} {} ms{cache} call {call}{cause}", record["ms"])
    } else {
        format!("{} {more}{cause}", styled(YELLOW, &text("event")))
    };
    format!("{head} {}\n", line.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_an_age_or_a_moment() {
        let now = 1_769_860_800_000;
        assert_eq!(rfc3339(now), "2026-01-31T12:00:00.000Z");
        let read = |text: &str| since(text, now).unwrap_or_else(|| "none".to_owned());
        assert_eq!(read("90s"), "2026-01-31T11:58:30.000Z");
        assert_eq!(read("2h"), "2026-01-31T10:00:00.000Z");
        assert_eq!(read("7d"), "2026-01-24T12:00:00.000Z");
        assert_eq!(read("9999999d"), "1970-01-01T00:00:00.000Z");
        assert_eq!(read("2026-01-31"), "2026-01-31");
        assert_eq!(read("2026-01-31T12:00Z"), "2026-01-31T12:00");
        let odd = ["", "d", "-1d", "1w", "99999999999999999999d", "2026-1-31", "2026-01-31T1"];
        for text in odd.into_iter().chain(["2026-01-31T12:00+01:00", "yesterday", "é"]) {
            assert_eq!(read(text), "none", "{text}");
        }
    }
}
