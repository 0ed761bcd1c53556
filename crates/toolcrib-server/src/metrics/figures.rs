//! Everything that is told: the families of `/metrics`, in order. `docs/observability.md` has the same list, and a test
//! holds the two against each other.

use std::{collections::HashSet, sync::Arc, sync::atomic::Ordering::Relaxed, time::Duration};

use toolcrib_catalogue::{Source, SourceState, Workers};

use super::{
    LIMITS, Metrics,
    meter::{Meter, SourceMeter},
    page::{Kind, Page, Series},
};
use crate::gateway::Gateway;

pub(crate) use super::page::MEDIA_TYPE;

/// How long a bus may take to say how far its consumers are.
const PATIENCE: Duration = Duration::from_secs(2);

/// How many sessions of the legacy era are open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionCounts {
    /// On `/mcp`.
    pub(crate) streamable: usize,
    /// On `/sse`.
    pub(crate) sse: usize,
}

/// Writes the whole page.
pub(crate) async fn tell(gateway: &Arc<Gateway>, sessions: SessionCounts) -> String {
    let mut page = Page::default();
    let metrics = &gateway.metrics;
    tell_calls(metrics, &mut page);
    tell_requests(metrics, &mut page);
    tell_clients(gateway, sessions, &mut page);
    tell_sources(gateway, &mut page);
    tell_audit(gateway, &mut page);
    tell_bus(gateway, &mut page).await;
    tell_spans(gateway, &mut page);
    tell_process(gateway, &mut page);
    page.finish()
}

fn tell_calls(metrics: &Metrics, page: &mut Page) {
    let mut all: Vec<Arc<Meter>> = metrics.tools.lock().values().cloned().collect();
    all.extend(metrics.built_in.iter().chain([&metrics.unknown]).cloned());
    let mut family = |series: Series, kind: Kind, help: &str| {
        let (Series::Calls(name)
        | Series::Failures(name)
        | Series::Cache(name)
        | Series::Times(name)) = series;
        page.family(name, kind, help);
        all.iter().for_each(|it| it.tell(page, &series));
    };
    let help = "Calls of tools that have ended, by how they did.";
    family(Series::Calls("toolcrib_calls_total"), Kind::Counter, help);
    let help = "Calls of tools that did not go well, by whose fault that was.";
    family(Series::Failures("toolcrib_call_failures_total"), Kind::Counter, help);
    let help = "Calls of tools whose results are kept, by whether one was there.";
    family(Series::Cache("toolcrib_cache_results_total"), Kind::Counter, help);
    let help = "How long calls of tools took, from end to end.";
    family(Series::Times("toolcrib_call_duration_seconds"), Kind::Histogram, help);
    let running = metrics.running.load(Relaxed);
    page.single(
        "toolcrib_calls_running",
        Kind::Gauge,
        "Calls and reads that are being answered.",
        running,
    );
}

fn tell_requests(metrics: &Metrics, page: &mut Page) {
    let mut sources: Vec<Arc<SourceMeter>> = metrics.sources.lock().values().cloned().collect();
    sources.push(Arc::clone(&metrics.nowhere));
    let name = "toolcrib_reads_total";
    page.family(name, Kind::Counter, "Prompts and resources that were asked for, by how it ended.");
    sources.iter().for_each(|it| it.tell_reads(page, name));
    let name = "toolcrib_source_request_duration_seconds";
    page.family(name, Kind::Histogram, "How long servers took to answer calls and reads.");
    sources.iter().for_each(|it| it.tell_requests(page, name));
    let name = "toolcrib_limited_total";
    page.family(name, Kind::Counter, "Calls and reads that were refused as one too many, by rule.");
    for ((_, word), count) in LIMITS.iter().zip(&metrics.limited) {
        page.sample(name, &[("by", word)], count.load(Relaxed));
    }
    let name = "toolcrib_http_responses_total";
    page.family(name, Kind::Counter, "Answers over HTTP, by status.");
    metrics.statuses.tell(page, name);
}

fn tell_clients(gateway: &Gateway, sessions: SessionCounts, page: &mut Page) {
    let name = "toolcrib_sessions";
    page.family(name, Kind::Gauge, "Sessions of the legacy era over HTTP, by transport.");
    page.sample(name, &[("transport", "streamable")], sessions.streamable);
    page.sample(name, &[("transport", "sse")], sessions.sse);
    let help = "Clients that stay for a while, over whatever transport.";
    page.single("toolcrib_clients", Kind::Gauge, help, gateway.clients());
    let (entries, bytes) = gateway.cache.size();
    let help = "Results that are kept for a while.";
    page.single("toolcrib_cache_entries", Kind::Gauge, help, entries);
    page.single("toolcrib_cache_bytes", Kind::Gauge, "How large they are together.", bytes);
}

/// A source, under a name that no other has here: a mod may be called as a server is.
fn sources(gateway: &Gateway) -> Vec<(Arc<str>, usize, Arc<dyn Source>)> {
    let snapshot = gateway.snapshot();
    let mut seen = HashSet::new();
    let slots = snapshot.slots().iter().enumerate();
    let all = slots.filter_map(|(at, it)| Some((Arc::clone(&it.label), at, it.source()?.clone())));
    all.filter(|(label, _, _)| seen.insert(Arc::clone(label))).collect()
}

fn tell_sources(gateway: &Gateway, page: &mut Page) {
    let (snapshot, all) = (gateway.snapshot(), sources(gateway));
    let name = "toolcrib_tools";
    page.family(name, Kind::Gauge, "Tools in the catalogue.");
    for (label, at, _) in &all {
        page.sample(name, &[("server", label)], snapshot.count_of(*at));
    }
    let help = "How often the catalogue was built.";
    page.single(
        "toolcrib_catalogue_builds_total",
        Kind::Counter,
        help,
        *gateway.changes().borrow(),
    );
    let name = "toolcrib_server_up";
    page.family(name, Kind::Gauge, "Whether a server, or what else has tools, is ready.");
    for (label, _, source) in &all {
        let up = u8::from(source.state() == SourceState::Ready);
        page.sample(name, &[("server", label)], up);
    }
    let name = "toolcrib_server_connects_total";
    page.family(name, Kind::Counter, "How often a server was reached, or started, and answered.");
    let servers = || all.iter().map(|(label, _, it)| (label, it.tally()));
    for (label, tally) in servers().filter(|(_, it)| it.workers.is_none()) {
        page.sample(name, &[("server", label)], tally.connects);
    }
    let name = "toolcrib_server_losses_total";
    page.family(name, Kind::Counter, "How often that ended without anybody asking for it.");
    for (label, tally) in servers().filter(|(_, it)| it.workers.is_none()) {
        page.sample(name, &[("server", label)], tally.losses);
    }
    let name = "toolcrib_server_strays_total";
    let help =
        "Answers of a server that nobody waited for, and questions that nobody could be asked.";
    page.family(name, Kind::Counter, help);
    for (label, tally) in servers().filter(|(_, it)| it.workers.is_none()) {
        page.sample(name, &[("server", label)], tally.strays);
    }
    let mut family = |name: &str, kind: Kind, help: &str, which: fn(Workers) -> u64| {
        page.family(name, kind, help);
        for (label, workers) in servers().filter_map(|(label, it)| Some((label, it.workers?))) {
            page.sample(name, &[("server", label)], which(workers));
        }
    };
    let help = "Processes that run tools of the workspace.";
    family("toolcrib_workers", Kind::Gauge, help, |it| it.alive);
    let help = "How many of them were started.";
    family("toolcrib_worker_starts_total", Kind::Counter, help, |it| it.starts);
    let help = "How many of them ended by themselves, or had to be ended in the middle of a call.";
    family("toolcrib_worker_losses_total", Kind::Counter, help, |it| it.losses);
    let help = "Calls that wait for one of them.";
    family("toolcrib_worker_queue", Kind::Gauge, help, |it| it.waiting);
}

fn tell_audit(gateway: &Gateway, page: &mut Page) {
    let told = gateway.audit().map(|it| it.figures());
    let mut family = |name: &str, kind: Kind, help: &str, value: Option<u64>| {
        page.family(name, kind, help);
        if let Some(value) = value {
            page.sample(name, &[], value);
        }
    };
    let help = "Lines of the audit record that were written since the start.";
    family("toolcrib_audit_records_total", Kind::Counter, help, told.map(|it| it.written));
    let help =
        "Lines of the audit record that wait to be written; large ones count more than once.";
    family("toolcrib_audit_queue", Kind::Gauge, help, told.map(|it| it.waiting));
    let help = "Whether the audit record can be written.";
    family("toolcrib_audit_writable", Kind::Gauge, help, told.map(|it| u64::from(it.writable)));
    let help = "Calls and reads that were refused because they could not be recorded.";
    let refused = gateway.metrics.unrecorded.load(Relaxed);
    family("toolcrib_audit_refused_total", Kind::Counter, help, Some(refused));
}

async fn tell_bus(gateway: &Gateway, page: &mut Page) {
    let bus = gateway.bus().ok();
    let state = bus.map(|it| it.state());
    let name = "toolcrib_bus_last_sequence";
    page.family(name, Kind::Gauge, "The place of the last event.");
    if let Some(state) = &state {
        page.sample(name, &[], state.last);
    }
    let name = "toolcrib_bus_writable";
    page.family(name, Kind::Gauge, "Whether events can be appended.");
    if let Some(state) = &state {
        page.sample(name, &[], u8::from(state.failing.is_none()));
    }
    let consumers = match bus {
        // A bus that is away keeps nobody waiting who looks at all else.
        Some(bus) => tokio::time::timeout(PATIENCE, bus.consumers()).await.ok(),
        None => None,
    };
    let consumers = consumers.and_then(Result::ok).unwrap_or_default();
    let mut family = |name: &str, help: &str, which: fn(&toolcrib_bus::ConsumerState) -> u64| {
        page.family(name, Kind::Gauge, help);
        for consumer in &consumers {
            page.sample(name, &[("consumer", &consumer.name)], which(consumer));
        }
    };
    let help = "Events that came since what a durable consumer has read.";
    family("toolcrib_bus_consumer_lag", help, |it| it.behind);
    let help = "Events that a durable consumer was given and has not acknowledged.";
    family("toolcrib_bus_consumer_pending", help, |it| it.pending);
    let help = "Events that a durable consumer could not deal with.";
    family("toolcrib_bus_consumer_dead", help, |it| it.dead);
}

fn tell_spans(gateway: &Gateway, page: &mut Page) {
    let counts = gateway.tracer.as_ref().map(|it| &it.counts);
    let name = "toolcrib_spans_total";
    page.family(name, Kind::Counter, "Spans, by what became of them.");
    if let Some(counts) = counts {
        let all =
            [("sent", &counts.sent), ("dropped", &counts.dropped), ("failed", &counts.failed)];
        for (word, count) in all {
            page.sample(name, &[("result", word)], count.load(Relaxed));
        }
    }
    let name = "toolcrib_span_queue";
    page.family(name, Kind::Gauge, "Spans that wait to be sent.");
    if let Some(counts) = counts {
        page.sample(name, &[], counts.waiting.load(Relaxed));
    }
}

fn tell_process(gateway: &Gateway, page: &mut Page) {
    let ready = u8::from(gateway.is_ready());
    page.single("toolcrib_ready", Kind::Gauge, "Whether /readyz says so.", ready);
    let name = "toolcrib_build_info";
    page.family(name, Kind::Gauge, "Which version this is.");
    page.sample(name, &[("version", &gateway.settings().version)], 1);
    let begin = gateway.console.begin() as f64 / 1e3;
    let help = "When the gateway began, in seconds since 1970.";
    page.single("process_start_time_seconds", Kind::Gauge, help, begin);
    let usage = gateway.console.usage();
    let name = "process_resident_memory_bytes";
    page.family(name, Kind::Gauge, "How much memory the gateway itself has in use.");
    if let Some(bytes) = usage.memory {
        page.sample(name, &[], bytes);
    }
    let name = "process_open_fds";
    page.family(name, Kind::Gauge, "How many files and sockets it has open.");
    if let Some(files) = usage.files {
        page.sample(name, &[], files);
    }
}
