//! What is told at the end: tables for people, JSON for programs.

use std::{fmt::Write, fs};

use serde_json::{Value, json};

use crate::{
    cases::{Contender, Who},
    figures::{Slice, Spread, added_ratio, float, ratio},
    goals::{self, Bound, Goal},
    growth,
    histogram::Histogram,
    once::Once,
    rounds::{Measured, Outcome},
    table::{Table, figure, spread},
};

/// What was found.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) rounds: u32,
    /// Whether only a part was asked for: what was not measured then goes without saying.
    pub(crate) part: bool,
    pub(crate) measured: Vec<Measured>,
    pub(crate) once: Vec<Once>,
    /// How many answers were checked, warming up included.
    pub(crate) checked: u64,
    /// The load of the machine, before and after.
    pub(crate) busy: [String; 2],
}

impl Report {
    /// The tables; in a file they have headings and the plot.
    pub(crate) fn text(&self) -> String {
        let [before, after] = &self.busy;
        let mut text = format!(
            "{} rounds, {} answers checked, {} cores, load {before} before and {after} after. A ratio is \
             taken within a round; the median of the rounds is told, and the ends.\n\n",
            self.rounds,
            figure(float(self.checked)),
            cores(),
        );
        text.push_str(&self.goals_text());
        for measured in &self.measured {
            write!(text, "\n## {}\n\n{}", measured.case.title, case_text(measured)).ok();
        }
        if !self.once.is_empty() {
            let mut table = Table::new(&["toolcrib by itself", "found", "unit"]);
            for Once { name, unit, found, .. } in &self.once {
                table.row(vec![(*name).to_owned(), spread(Some(*found)), (*unit).to_owned()]);
            }
            write!(text, "\n## Start, memory, size\n\n{}", table.text()).ok();
        }
        text.push_str(&growth::text(&self.measured));
        text
    }

    /// What goes into `results.md`.
    pub(crate) fn page(&self) -> String {
        format!(
            "# What a call costs: figures\n\nWritten by `./scripts/bench`; what they mean stands in \
             [README.md](README.md).\n\n![toolcrib and other gateways, compared with nginx](results.svg)\n\n{}",
            self.text()
        )
    }

    fn goals_text(&self) -> String {
        let mut table = Table::new(&["goal", "found", "wanted", "verdict"]);
        for goal in goals::goals(&self.measured, &self.once) {
            if self.part && goal.found.is_none() {
                continue;
            }
            let verdict = match goal.cpu.filter(|_| goal.is_noisy()) {
                None => goal.verdict().word().to_owned(),
                Some((cpu, most)) => format!(
                    "noisy; by CPU per call, {} × (≤ {}): {}",
                    figure(cpu.median),
                    figure(most),
                    goal.verdict().word()
                ),
            };
            table.row(vec![goal.name.clone(), spread(goal.found), goal.bound.text(), verdict]);
        }
        let mut text = table.text();
        if self.part {
            return text;
        }
        let missing = goals::missing(&self.measured);
        if missing.is_empty() {
            text.push_str("\nThe comparison is met: the crate mcp-proxy and fastmcp took part.\n");
        } else {
            text.push_str("\nComparison not met:\n");
            missing.iter().for_each(|it| text.push_str(&format!("- {it}\n")));
        }
        text
    }

    pub(crate) fn json(&self) -> String {
        let cases: Vec<Value> = self.measured.iter().map(case_json).collect();
        let goals: Vec<Value> =
            goals::goals(&self.measured, &self.once).iter().map(goal_json).collect();
        let once: Vec<Value> = self
            .once
            .iter()
            .map(|it| json!({ "id": it.id, "name": it.name, "unit": it.unit, "found": ends(it.found) }))
            .collect();
        let report = json!({
            "rounds": self.rounds,
            "checked": self.checked,
            "cores": cores(),
            "load_average": self.busy,
            "goals": goals,
            "comparison_not_met": goals::missing(&self.measured),
            "cases": cases,
            "once": once,
        });
        format!("{report:#}\n")
    }
}

fn case_text(measured: &Measured) -> String {
    let base = measured.case.name(measured.case.base);
    let heads = [
        "",
        "p50, µs",
        "p99, µs",
        "answers/s",
        "MB/s",
        "CPU, µs",
        "memory, MB",
        &format!("added p50, × {base}"),
        &format!("p50, × {base}"),
        &format!("answers/s, × {base}"),
        &format!("CPU, × {base}"),
    ];
    let mut table = Table::new(&heads);
    let mut notes = String::new();
    for outcome in &measured.outcomes {
        let name = measured.case.name(outcome.contender);
        if let Some(failure) = &outcome.failure {
            table.row(vec![name.clone(), "not measured".to_owned()]);
            let failure = failure.replace('\n', " ");
            writeln!(notes, "- {name} was not measured: {failure}").ok();
            continue;
        }
        let most = measured.outcomes.iter().map(|it| it.slices.len()).max().unwrap_or_default();
        if outcome.slices.len() < most {
            let rounds = outcome.slices.len();
            writeln!(notes, "- {name} is slow and took part in {rounds} of {most} rounds.").ok();
        }
        table.row(way_cells(measured, outcome));
    }
    let gap = if notes.is_empty() { "" } else { "\n" };
    format!("{}{gap}{notes}", table.text())
}

fn way_cells(measured: &Measured, outcome: &Outcome) -> Vec<String> {
    let slices = &outcome.slices;
    let median = |of: fn(&Slice) -> f64| {
        Spread::of(slices.iter().map(of)).map_or("-".to_owned(), |it| figure(it.median))
    };
    let between = outcome.contender.who != Who::Direct;
    let cpu = if between { median(Slice::cpu) } else { "-".to_owned() };
    let ratios = Ratios::new(measured, outcome);
    vec![
        measured.case.name(outcome.contender),
        median(Slice::p50),
        median(Slice::p99),
        median(Slice::rate),
        median(Slice::megabytes),
        cpu,
        outcome.memory.map_or("-".to_owned(), |it| figure(float(it) / 1024.0)),
        spread(ratios.added),
        spread(ratios.p50),
        spread(ratios.rate),
        spread(ratios.cpu),
    ]
}

/// One who took part, by the one whom all are compared with.
struct Ratios {
    added: Option<Spread>,
    p50: Option<Spread>,
    rate: Option<Spread>,
    cpu: Option<Spread>,
}

impl Ratios {
    fn new(measured: &Measured, outcome: &Outcome) -> Self {
        let base = measured.case.base;
        let by = measured.slices(base).unwrap_or_default();
        let direct = Contender { who: Who::Direct, tools: base.tools };
        let direct = measured.slices(direct).unwrap_or_default();
        let of = &outcome.slices;
        let between = outcome.contender.who != Who::Direct;
        Self {
            added: added_ratio(of, by, direct).filter(|_| between),
            p50: ratio(of, by, Slice::p50),
            rate: ratio(of, by, Slice::rate),
            cpu: ratio(of, by, Slice::cpu).filter(|_| between),
        }
    }
}

fn case_json(measured: &Measured) -> Value {
    let case = &measured.case;
    let ways: Vec<Value> = measured.outcomes.iter().map(|it| way_json(measured, it)).collect();
    json!({
        "id": case.id,
        "title": case.title,
        "connections": case.connections,
        "base": case.name(case.base),
        "ways": ways,
    })
}

fn way_json(measured: &Measured, outcome: &Outcome) -> Value {
    let slices = &outcome.slices;
    let spread = |figure: fn(&Slice) -> f64| Spread::of(slices.iter().map(figure)).map(ends);
    let mut all = Histogram::default();
    slices.iter().for_each(|it| all.add(&it.times));
    let ratios = Ratios::new(measured, outcome);
    let per_mille = [("p50", 500), ("p90", 900), ("p99", 990), ("p999", 999), ("most", 1000)];
    let histogram = per_mille.map(|(name, it)| (name.to_owned(), json!(all.micros(it))));
    json!({
        "name": measured.case.name(outcome.contender),
        "failure": outcome.failure,
        "rounds": slices.len(),
        "answers": all.count(),
        "all_rounds_us": serde_json::Map::from_iter(histogram),
        "p50_us": spread(Slice::p50),
        "p99_us": spread(Slice::p99),
        "answers_per_s": spread(Slice::rate),
        "megabytes_per_s": spread(Slice::megabytes),
        "cpu_us": spread(Slice::cpu),
        "memory_kb": outcome.memory,
        "added_p50_by_base": ratios.added.map(ends),
        "p50_by_base": ratios.p50.map(ends),
        "answers_per_s_by_base": ratios.rate.map(ends),
        "cpu_by_base": ratios.cpu.map(ends),
    })
}

fn goal_json(goal: &Goal) -> Value {
    let (at_most, at_least) = match goal.bound {
        Bound::AtMost(most) => (Some(most), None),
        Bound::AtLeast(least) => (None, Some(least)),
    };
    json!({
        "name": goal.name,
        "found": goal.found.map(ends),
        "at_most": at_most,
        "at_least": at_least,
        "noisy": goal.is_noisy(),
        "cpu": goal.cpu.map(|(cpu, _)| ends(cpu)),
        "cpu_at_most": goal.cpu.map(|(_, most)| most),
        "verdict": goal.verdict().word(),
    })
}

fn ends(spread: Spread) -> Value {
    json!({ "median": spread.median, "least": spread.least, "most": spread.most })
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How busy the machine was in the last minute.
pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
