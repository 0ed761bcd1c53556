//! The numbers themselves: of one tool, and of one source.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use toolcrib_catalogue::Blame;

use super::page::{Page, Series};
use crate::words;

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Ok,
    ToolError,
    UnknownTool,
    InvalidArguments,
    Expelled,
    Held,
    Limited,
    Timeout,
    UpstreamError,
    GatewayError,
    Cancelled,
}

/// In a word, in the order above.
const OUTCOMES: [&str; 11] = [
    words::OK,
    words::TOOL_ERROR,
    words::UNKNOWN_TOOL,
    words::INVALID_ARGUMENTS,
    words::EXPELLED_NOW,
    words::HELD,
    words::LIMITED,
    words::TIMEOUT,
    words::UPSTREAM_ERROR,
    words::GATEWAY_ERROR,
    words::CANCELLED_BY_CALLER,
];

const BLAMES: [&str; 3] = ["caller", "upstream", "gateway"];

const CACHE: [&str; 4] = ["hit", "joined", "miss", "repeat"];

const METHODS: [&str; 2] = ["prompts/get", "resources/read"];

/// The upper bounds of the buckets, in microseconds and as they are written.
const BOUNDS: [(u64, &str); 15] = [
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (5_000_000, "5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
    (60_000_000, "60"),
];

impl Outcome {
    /// As records have it.
    pub(crate) fn word(self) -> &'static str {
        OUTCOMES[self as usize]
    }
}

/// How long things took.
#[derive(Debug, Default)]
pub(super) struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    micros: AtomicU64,
}

impl Histogram {
    fn took(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let at = BOUNDS.iter().position(|(bound, _)| micros <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[at].fetch_add(1, Relaxed);
        self.micros.fetch_add(micros, Relaxed);
    }

    /// Writes it under a name. What is read once is told throughout, so that the parts fit each other.
    fn tell(&self, page: &mut Page, name: &str, labels: &[(&str, &str)]) {
        let bounds = BOUNDS.iter().map(|(_, text)| *text).chain(["+Inf"]);
        let mut count = 0;
        for (bucket, bound) in self.buckets.iter().zip(bounds) {
            count += bucket.load(Relaxed);
            let labels: Vec<_> = labels.iter().copied().chain([("le", bound)]).collect();
            page.sample(&format!("{name}_bucket"), &labels, count);
        }
        let seconds = self.micros.load(Relaxed) as f64 / 1e6;
        page.sample(&format!("{name}_sum"), labels, seconds);
        page.sample(&format!("{name}_count"), labels, count);
    }
}

/// What a tool counts in. Most tools of a large catalogue are never called, and take next to nothing.
#[derive(Debug)]
pub(crate) struct Meter {
    tool: Arc<str>,
    server: Arc<str>,
    cells: OnceLock<Box<Cells>>,
}

#[derive(Debug, Default)]
struct Cells {
    outcomes: [AtomicU64; OUTCOMES.len()],
    blames: [AtomicU64; BLAMES.len()],
    cache: [AtomicU64; CACHE.len()],
    time: Histogram,
}

impl Meter {
    pub(super) fn new(tool: Arc<str>, server: Arc<str>) -> Self {
        Self { tool, server, cells: OnceLock::new() }
    }

    /// Whether it was ever called.
    pub(super) fn is_used(&self) -> bool {
        self.cells.get().is_some()
    }

    /// A call of it has ended.
    pub(super) fn called(
        &self,
        outcome: Outcome,
        blame: Option<Blame>,
        cache: Option<&'static str>,
        took: Duration,
    ) {
        let cells = self.cells.get_or_init(Box::default);
        cells.outcomes[outcome as usize].fetch_add(1, Relaxed);
        if let Some(blame) = blame {
            let at = match blame {
                Blame::Caller => 0,
                Blame::Upstream => 1,
                Blame::Gateway => 2,
            };
            cells.blames[at].fetch_add(1, Relaxed);
        }
        if let Some(at) = cache.and_then(|word| CACHE.iter().position(|it| *it == word)) {
            cells.cache[at].fetch_add(1, Relaxed);
        }
        cells.time.took(took);
    }

    /// Writes what one series has of it. Which tools were never called is not told.
    pub(super) fn tell(&self, page: &mut Page, series: &Series) {
        let Some(cells) = self.cells.get() else { return };
        let labels = [("server", &*self.server), ("tool", &*self.tool)];
        match *series {
            Series::Calls(name) => each(page, name, &labels, "outcome", &OUTCOMES, &cells.outcomes),
            Series::Failures(name) => each(page, name, &labels, "blame", &BLAMES, &cells.blames),
            Series::Cache(name) => each(page, name, &labels, "result", &CACHE, &cells.cache),
            Series::Times(name) => cells.time.tell(page, name, &labels),
        }
    }
}

/// What a source counts in: requests that went to it, and what was read of it.
#[derive(Debug)]
pub(crate) struct SourceMeter {
    label: Arc<str>,
    requests: Histogram,
    reads: [[AtomicU64; OUTCOMES.len()]; METHODS.len()],
}

impl SourceMeter {
    pub(super) fn new(label: Arc<str>) -> Self {
        Self { label, requests: Histogram::default(), reads: Default::default() }
    }

    /// It has answered, or was given up.
    pub(crate) fn requested(&self, took: Duration) {
        self.requests.took(took);
    }

    /// Something was read of it.
    pub(super) fn read(&self, method: &str, outcome: Outcome) {
        if let Some(at) = METHODS.iter().position(|it| *it == method) {
            self.reads[at][outcome as usize].fetch_add(1, Relaxed);
        }
    }

    pub(super) fn tell_requests(&self, page: &mut Page, name: &str) {
        if self.requests.buckets.iter().any(|it| it.load(Relaxed) != 0) {
            self.requests.tell(page, name, &[("server", &self.label)]);
        }
    }

    pub(super) fn tell_reads(&self, page: &mut Page, name: &str) {
        for (method, cells) in METHODS.iter().zip(&self.reads) {
            let labels = [("method", *method), ("server", &self.label)];
            each(page, name, &labels, "outcome", &OUTCOMES, cells);
        }
    }
}

/// One line for each number that is not zero.
fn each<const N: usize>(
    page: &mut Page,
    name: &str,
    labels: &[(&str, &str)],
    label: &str,
    words: &[&str; N],
    cells: &[AtomicU64; N],
) {
    for (word, cell) in words.iter().zip(cells) {
        let count = cell.load(Relaxed);
        if count != 0 {
            let labels: Vec<_> = labels.iter().copied().chain([(label, *word)]).collect();
            page.sample(name, &labels, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_on_a_bound_is_within_it_and_buckets_add_up() {
        let meter = Meter::new("x".into(), "s".into());
        for micros in [0, 1_000, 1_001, 60_000_000, 60_000_001] {
            meter.called(Outcome::Ok, None, Some("hit"), Duration::from_micros(micros));
        }
        let mut page = Page::default();
        meter.tell(&mut page, &Series::Times("t"));
        let text = page.finish();
        let line = |le: &str| text.lines().find(|it| it.contains(&format!("le=\"{le}\""))).unwrap();
        assert!(line("0.001").ends_with(" 2"), "{text}");
        assert!(line("0.0025").ends_with(" 3"), "{text}");
        assert!(line("60").ends_with(" 4"), "{text}");
        assert!(line("+Inf").ends_with(" 5"), "{text}");
        assert!(text.contains("t_sum{server=\"s\",tool=\"x\"} 120.002002"), "{text}");
        assert!(text.contains("t_count{server=\"s\",tool=\"x\"} 5"), "{text}");
    }

    #[test]
    fn what_never_happened_has_no_line() {
        let meter = Meter::new("x".into(), "s".into());
        let told = |meter: &Meter, series: &Series| {
            let mut page = Page::default();
            meter.tell(&mut page, series);
            page.finish()
        };
        assert_eq!(told(&meter, &Series::Calls("c")), "");
        let took = Duration::from_millis(1);
        meter.called(Outcome::Timeout, Some(Blame::Upstream), None, took);
        let calls = "c{server=\"s\",tool=\"x\",outcome=\"timeout\"} 1\n";
        assert_eq!(told(&meter, &Series::Calls("c")), calls);
        let failures = "f{server=\"s\",tool=\"x\",blame=\"upstream\"} 1\n";
        assert_eq!(told(&meter, &Series::Failures("f")), failures);
        assert_eq!(told(&meter, &Series::Cache("k")), "");
    }
}
