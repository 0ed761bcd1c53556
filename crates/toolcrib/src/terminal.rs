//! How things look: colour where a person reads, plain text where a program does.

use std::{
    io::{self, BufRead, IsTerminal, Read, Write},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anstyle::{AnsiColor, Style};
use parking_lot::RwLock;
use toolcrib_catalogue::{Problem, Severity, Source, SourceState};
use toolcrib_sources::{mcp::Connection, python::Python};
use toolcrib_wire::text::Masker;
use tracing_subscriber::{
    filter::{LevelFilter, filter_fn},
    layer::SubscriberExt,
    util::SubscriberInitExt,
};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::cli::LogFormat;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const RED: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Red)));
pub(crate) const GREEN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Green)));
pub(crate) const CYAN: Style = Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Cyan)));
pub(crate) const YELLOW: Style =
    Style::new().fg_color(Some(anstyle::Color::Ansi(AnsiColor::Yellow)));

/// `text` in a style, which is taken out again where nobody sees it.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Whether everything on stderr is to be a line of JSON.
static LOG: AtomicBool = AtomicBool::new(false);

fn is_log() -> bool {
    LOG.load(Ordering::Relaxed)
}

/// Log lines go to stderr; stdout is for results.
/// A gateway, which nobody watches, says what goes wrong without being asked.
pub(crate) fn log_to_stderr(verbose: u8, serves: bool, format: LogFormat) {
    let level = match verbose {
        0 if serves => LevelFilter::WARN,
        0 => LevelFilter::ERROR,
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    let log = tracing_subscriber::fmt().with_max_level(level);
    let log = log.with_writer(move || MaskedLog { json: format == LogFormat::Json });
    // The client of NATS calls every lost connection an error, and the bus says it in its own words.
    let ours = filter_fn(move |it| 1 < verbose || !it.target().starts_with("async_nats"));
    // A second subscriber can only be set in tests, and then the first will do.
    match format {
        LogFormat::Text => {
            let log = log.with_ansi(io::stderr().is_terminal()).with_target(false);
            log.finish().with(ours).try_init().ok();
        }
        LogFormat::Json => {
            LOG.store(true, Ordering::Relaxed);
            log.json().finish().with(ours).try_init().ok();
        }
    }
}

/// What must not stand on stderr, as far as it is known yet.
static SECRETS: LazyLock<RwLock<Masker>> = LazyLock::new(RwLock::default);

/// From now on these secrets are masked too, in the log and in whatever else is told on stderr.
pub(crate) fn hide(secrets: Masker) {
    let mut known = SECRETS.write();
    *known = std::mem::take(&mut *known).and(secrets);
}

/// `text` without secrets.
pub(crate) fn masked(text: &str) -> String {
    let secrets = SECRETS.read().clone();
    secrets.mask(text).into_owned()
}

/// The log, without secrets. It is given line by line, each as a whole.
struct MaskedLog {
    json: bool,
}

impl Write for MaskedLog {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let secrets = SECRETS.read().clone();
        let masked = if self.json { secrets.mask_json(&text) } else { secrets.mask(&text) };
        io::stderr().lock().write_all(masked.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

/// Prints results. A reader that has seen enough and closed the pipe is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints text for a program: byte for byte.
pub(crate) fn print_raw(text: &str) -> io::Result<()> {
    print_bytes(text.as_bytes())
}

/// Prints what may be no text.
pub(crate) fn print_bytes(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Whether a person looks at what is printed.
pub(crate) fn is_watched() -> bool {
    io::stdout().is_terminal()
}

/// Whether there is somebody who could answer.
pub(crate) fn can_ask() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Asks a person; nothing where there is nobody to answer. Enter alone is a yes.
pub(crate) fn ask(question: &str) -> Option<bool> {
    if !can_ask() {
        return None;
    }
    let mut err = anstream::stderr().lock();
    write!(err, "{} [Y/n] ", styled(BOLD, question)).and_then(|()| err.flush()).ok()?;
    let mut line = Vec::new();
    // A line of which there is no end is no answer.
    io::stdin().lock().take(1024).read_until(b'\n', &mut line).ok()?;
    let answer = String::from_utf8_lossy(&line).trim().to_lowercase();
    // Whoever closes the terminal has not said yes.
    Some(line.ends_with(b"\n") && ["", "y", "yes"].contains(&answer.as_str()))
}

/// Says what went wrong, and what to do about it.
pub(crate) fn complain(message: &str, hint: Option<&str>) {
    if is_log() {
        return tracing::error!(hint, "{message}");
    }
    let mut text = format!("{} {message}\n", styled(RED.bold(), "error:"));
    if let Some(hint) = hint {
        text.push_str(&format!(" {} {}\n", styled(CYAN, "hint:"), clean(hint)));
    }
    // If not even stderr takes it, there is nobody to tell.
    anstream::stderr().lock().write_all(masked(&text).as_bytes()).ok();
}

/// Problems, one below the other, the worst first, each followed by what to do about it.
pub(crate) fn problems(problems: &[Problem]) -> String {
    let mut text = String::new();
    for severity in Severity::ALL {
        // What is itself a hint is followed by what would be better.
        let (colour, cure) = match severity {
            Severity::Problem => (RED, "hint:"),
            Severity::Warning => (YELLOW, "hint:"),
            Severity::Hint => (CYAN, "better:"),
        };
        let mark = styled(colour.bold(), &format!("{}:", severity.as_str()));
        for problem in problems.iter().filter(|it| it.severity == severity) {
            let (subject, message) = (clean(&problem.subject), clean(&problem.message));
            text.push_str(&format!("{mark} {subject}: {message}\n"));
            if let Some(hint) = &problem.hint {
                text.push_str(&format!("   {} {}\n", styled(CYAN, cure), clean(hint)));
            }
        }
    }
    text
}

/// Tells the problems on stderr. Matters of taste are for `toolcrib check`.
pub(crate) fn warn(list: &[Problem]) {
    let told = list.iter().filter(|it| it.severity != Severity::Hint);
    let told: Vec<Problem> = told.cloned().collect();
    if is_log() {
        for Problem { subject, message, hint, .. } in &told {
            tracing::warn!(subject, hint, "{message}");
        }
        return;
    }
    anstream::stderr().lock().write_all(masked(&problems(&told)).as_bytes()).ok();
}

/// Says something in passing, on stderr.
pub(crate) fn remark(text: &str) {
    if is_log() {
        return tracing::info!("{text}");
    }
    let line = format!("{}\n", styled(DIM, text));
    anstream::stderr().lock().write_all(line.as_bytes()).ok();
}

/// A word as one would type it into a shell.
pub(crate) fn word(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:@%,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Text from a server, fit for a terminal.
pub(crate) fn clean(text: &str) -> String {
    toolcrib_wire::text::plain(text.as_bytes())
}

/// The same of several lines.
pub(crate) fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

/// JSON, fit for a terminal, and the same JSON still: what is not fit stands in strings, and can be escaped there.
pub(crate) fn clean_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let fit = c == '\n' || c == ' ' || clean(c.encode_utf8(&mut [0; 4])).starts_with(c);
        if fit {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

/// Waits until no server is on its way any more; shows who is awaited while a person looks on.
pub(crate) async fn wait_for(servers: &[Arc<Connection>]) {
    let begin = Instant::now();
    let live = io::stderr().is_terminal();
    let mut painted = false;
    for server in servers {
        loop {
            let settled = tokio::time::timeout(Duration::from_millis(100), server.settled()).await;
            if settled.is_ok() {
                break;
            }
            if live && Duration::from_millis(300) < begin.elapsed() {
                painted = true;
                paint(&progress(servers, begin.elapsed()));
            }
        }
    }
    if painted {
        paint("");
    }
}

/// Shows how an installation goes on: on one line while a person looks on, else its beginning only.
pub(crate) fn installing(line: &str) {
    if io::stderr().is_terminal() {
        paint(&cut(line, width().saturating_sub(1)));
    } else if line.starts_with("installing ") {
        anstream::eprintln!("{line}");
    }
}

/// Takes that line away again.
pub(crate) fn installed() {
    if io::stderr().is_terminal() {
        paint("");
    }
}

/// Waits until the tools of the workspace have been loaded; says so where that takes a while.
pub(crate) async fn wait_for_python(python: Option<&Python>) {
    let Some(python) = python else { return };
    let patience = Duration::from_millis(500);
    if tokio::time::timeout(patience, python.settled()).await.is_ok() {
        return;
    }
    let live = io::stderr().is_terminal();
    if live {
        paint("loading tools/ …");
    }
    python.settled().await;
    if live {
        paint("");
    }
}

fn progress(servers: &[Arc<Connection>], time: Duration) -> String {
    let waiting = |it: &&Arc<Connection>| it.state() == SourceState::Connecting;
    let names: Vec<&str> = servers.iter().filter(waiting).map(|it| it.label()).collect();
    let done = servers.len() - names.len();
    let text = format!(
        "{done} of {} servers, {} s; waiting for {}",
        servers.len(),
        time.as_secs(),
        names.join(", ")
    );
    cut(&text, width().saturating_sub(1))
}

/// Replaces the last line of the terminal.
fn paint(line: &str) {
    let mut err = io::stderr().lock();
    write!(err, "\r\x1b[2K{line}").and_then(|()| err.flush()).ok();
}

/// How many columns the terminal has.
fn width() -> usize {
    terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0))
}

/// `text` in at most so many columns.
fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    let mut taken = 0;
    let fits = |c: &char| {
        taken += c.width().unwrap_or(0);
        taken < columns
    };
    let mut cut: String = text.chars().take_while(fits).collect();
    cut.push('…');
    cut
}

/// Rows below a heading, columns aligned. On a terminal the last column ends at its edge.
pub(crate) fn table<const N: usize>(heading: [&str; N], rows: &[[String; N]]) -> String {
    let mut widths = heading.map(UnicodeWidthStr::width);
    for row in rows {
        for (column, cell) in row.iter().enumerate() {
            widths[column] = widths[column].max(cell.width());
        }
    }
    let before: usize = widths[..N - 1].iter().map(|it| it + 2).sum();
    let last = if io::stdout().is_terminal() {
        width().saturating_sub(before).max(20)
    } else {
        usize::MAX
    };
    let pad = |text: &str, column: usize| match column + 1 {
        column if column == N => cut(text, last),
        _ => format!("{text}{}", " ".repeat(widths[column].saturating_sub(text.width()))),
    };
    let head: Vec<String> = heading.iter().enumerate().map(|(at, it)| pad(it, at)).collect();
    let mut text = format!("{}\n", styled(DIM, head.join("  ").trim_end()));
    for row in rows {
        let cell = |(column, cell): (usize, &String)| match column {
            0 => styled(BOLD, &pad(cell, 0)),
            1 => styled(CYAN, &pad(cell, 1)),
            column => pad(cell, column),
        };
        let line: Vec<String> = row.iter().enumerate().map(cell).collect();
        text.push_str(line.join("  ").trim_end());
        text.push('\n');
    }
    text
}
