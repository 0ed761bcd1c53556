//! What is told at the end: a table for people, JSON for programs.

use std::{fmt::Write, fs};

use serde_json::{Value, json};

use crate::{
    figures::{Slice, Spread, cpu_each},
    rounds::{LOADS, Load, Plan, Results, What},
    world::{Way, World},
};

/// What was found.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    plan: &'a Plan,
    results: &'a Results,
    /// How many answers were checked, warming up included.
    checked: u64,
    /// How long a list is, by way.
    list_bytes: [usize; 3],
    /// The load of the machine, before and after.
    busy: [String; 2],
}

/// Something we want to reach.
struct Goal {
    name: &'static str,
    found: Spread,
    at_most: Option<f64>,
    at_least: Option<f64>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(plan: &'a Plan, world: &World, results: &'a Results, before: String) -> Self {
        let checked = world.numbers.count();
        let list_bytes = Way::ALL.map(|way| world.list(way).body.len());
        Self { plan, results, checked, list_bytes, busy: [before, load_average()] }
    }

    pub(crate) fn table(&self) -> String {
        let [before, after] = &self.busy;
        let mut text = format!(
            "{} rounds, {} answers checked, {} cores, load {before} before and {after} after\n",
            self.plan.rounds,
            thousands(self.checked),
            cores(),
        );
        for (load, by_way) in LOADS.iter().zip(self.results) {
            let heads = Way::ALL.map(|it| it.name().to_owned());
            text.push('\n');
            push_row(&mut text, load.name, &heads);
            for (name, cells) in self.rows(load, by_way) {
                push_row(&mut text, &format!("  {name}"), &cells);
            }
        }
        text.push('\n');
        for goal in self.goals() {
            let Spread { median, least, most } = goal.found;
            let verdict = if goal.is_reached() { "reached" } else { "missed" };
            writeln!(
                text,
                "{:<48}{median:>6.2}  ({least:.2} to {most:.2})  goal {}: {verdict}",
                goal.name,
                goal.wanted()
            )
            .ok();
        }
        text
    }

    /// The lines of one load.
    fn rows(&self, load: &Load, by_way: &[Vec<Slice>; 3]) -> Vec<(String, [String; 3])> {
        let spreads = |figure: fn(&Slice) -> f64| {
            Way::ALL.map(|way| Spread::of(by_way[way.place()].iter().map(figure)))
        };
        let (p50, p99) = (spreads(|it| it.p50), spreads(|it| it.p99));
        let mut rows = vec![
            ("p50, µs".to_owned(), p50.map(|it| decimal(it.median))),
            ("  least to most".to_owned(), p50.map(range)),
            ("p99, µs".to_owned(), p99.map(|it| decimal(it.median))),
        ];
        let added = Way::ALL.map(|way| match way {
            Way::Direct => "-".to_owned(),
            Way::Nginx | Way::Toolcrib => decimal(added(by_way, way).median),
        });
        rows.push(("added p50, µs".to_owned(), added));
        let rate = spreads(Slice::rate);
        rows.push(("answers/s".to_owned(), rate.map(|it| whole(it.median))));
        rows.push(("  least to most".to_owned(), rate.map(range)));
        if load.what == What::List {
            rows.push(("MB/s".to_owned(), spreads(Slice::megabytes).map(|it| whole(it.median))));
            let bytes = self.list_bytes.map(|it| thousands(it as u64));
            rows.push(("bytes".to_owned(), bytes));
        }
        let cpu = Way::ALL.map(|way| match way {
            Way::Direct => "-".to_owned(),
            Way::Nginx | Way::Toolcrib => decimal(cpu_each(&by_way[way.place()])),
        });
        rows.push(("its CPU time, µs".to_owned(), cpu));
        rows
    }

    fn goals(&self) -> [Goal; 2] {
        let [one, many, ..] = self.results;
        [
            Goal {
                name: "added p50 at 1 connection, toolcrib ÷ nginx",
                found: ratio(one, |direct, it| it.p50 - direct.p50),
                at_most: Some(2.0),
                at_least: None,
            },
            Goal {
                name: "answers/s at 64 connections, toolcrib ÷ nginx",
                found: ratio(many, |_, it| it.rate()),
                at_most: None,
                at_least: Some(0.6),
            },
        ]
    }

    pub(crate) fn json(&self) -> String {
        let loads: Vec<Value> = LOADS
            .iter()
            .zip(self.results)
            .map(|(load, by_way)| {
                let ways = Way::ALL.map(|way| (way.name().to_owned(), way_json(by_way, way)));
                json!({
                    "load": load.name,
                    "connections": load.connections,
                    "ways": serde_json::Map::from_iter(ways),
                })
            })
            .collect();
        let goals = self.goals().map(|goal| {
            json!({
                "name": goal.name,
                "found": spread_json(goal.found),
                "at_most": goal.at_most,
                "at_least": goal.at_least,
                "reached": goal.is_reached(),
            })
        });
        let report = json!({
            "rounds": self.plan.rounds,
            "checked": self.checked,
            "cores": cores(),
            "load_average": self.busy,
            "list_bytes": self.list_bytes,
            "loads": loads,
            "goals": goals,
        });
        format!("{report:#}\n")
    }
}

impl Goal {
    fn is_reached(&self) -> bool {
        let found = self.found.median;
        self.at_most.is_none_or(|it| found <= it) && self.at_least.is_none_or(|it| it <= found)
    }

    fn wanted(&self) -> String {
        match (self.at_most, self.at_least) {
            (Some(most), _) => format!("≤ {most:.2}"),
            (None, least) => format!("≥ {:.2}", least.unwrap_or_default()),
        }
    }
}

/// What a way adds to the direct one, round by round.
fn added(by_way: &[Vec<Slice>; 3], way: Way) -> Spread {
    let direct = &by_way[Way::Direct.place()];
    Spread::of(by_way[way.place()].iter().zip(direct).map(|(it, direct)| it.p50 - direct.p50))
}

/// toolcrib's figure by nginx's, round by round: what troubles the machine troubles both.
fn ratio(by_way: &[Vec<Slice>; 3], figure: impl Fn(&Slice, &Slice) -> f64) -> Spread {
    let [direct, nginx, toolcrib] = by_way;
    let rounds = direct.iter().zip(nginx).zip(toolcrib);
    Spread::of(rounds.map(|((direct, nginx), it)| figure(direct, it) / figure(direct, nginx)))
}

fn way_json(by_way: &[Vec<Slice>; 3], way: Way) -> Value {
    let slices = &by_way[way.place()];
    let spread = |figure: fn(&Slice) -> f64| spread_json(Spread::of(slices.iter().map(figure)));
    json!({
        "p50_us": spread(|it| it.p50),
        "p99_us": spread(|it| it.p99),
        "added_p50_us": spread_json(added(by_way, way)),
        "answers_per_s": spread(Slice::rate),
        "megabytes_per_s": spread(Slice::megabytes),
        "cpu_us": cpu_each(slices),
        "answers": slices.iter().map(|it| it.answers).sum::<usize>(),
    })
}

fn spread_json(spread: Spread) -> Value {
    json!({ "median": spread.median, "least": spread.least, "most": spread.most })
}

fn push_row(text: &mut String, name: &str, cells: &[String; 3]) {
    let [direct, nginx, toolcrib] = cells;
    writeln!(text, "{name:<46}{direct:>18}{nginx:>18}{toolcrib:>18}").ok();
}

fn decimal(figure: f64) -> String {
    format!("{figure:.1}")
}

fn whole(figure: f64) -> String {
    format!("{figure:.0}")
}

fn range(spread: Spread) -> String {
    format!("{:.0} to {:.0}", spread.least, spread.most)
}

/// `1234567` as `1,234,567`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|it| str::from_utf8(it).ok()).collect();
    groups.join(",")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// How busy the machine was in the last minute.
pub(crate) fn load_average() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_numbers_have_commas() {
        assert_eq!(thousands(7), "7");
        assert_eq!(thousands(1_234_567), "1,234,567");
        assert_eq!(thousands(123_456), "123,456");
    }
}
