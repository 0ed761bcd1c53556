//! How toolcrib's figures grow with connections, tools, the size of a result, and the number of calls.

use std::fmt::Write;

use crate::{
    cases::{Contender, Who},
    figures::{Slice, Spread, float},
    rounds::Measured,
    table::{Table, figure},
};

/// The small tables, as far as there is anything to put into them.
pub(crate) fn text(measured: &[Measured]) -> String {
    let by_connections = ["call-1", "call-16", "call-64", "call-256"];
    let connections = by_connections.map(|id| (id, Who::Toolcrib));
    let sizes = ["call-1", "result-100k", "result-10m"].map(|id| (id, Who::Toolcrib));
    let lists = ["list-10", "list-1000", "list-10000"].map(|id| (id, Who::Toolcrib));
    let pipes = [("stdio-1", Who::ToolcribToPipe), ("stdio-64", Who::ToolcribToPipe)];
    let parts = [
        ("With connections", by_case(measured, &connections)),
        ("With connections, to a stdio server", by_case(measured, &pipes)),
        ("With the size of a result", by_case(measured, &sizes)),
        ("With the length of the list", by_case(measured, &lists)),
        ("With the number of tools", by_tools(measured)),
        ("With the calls that were made", by_calls(measured)),
    ];
    let mut text = String::new();
    for (title, rows) in parts {
        if rows.len() < 2 {
            continue;
        }
        let head = ["toolcrib", "p50, µs", "p99, µs", "answers/s", "CPU, µs", "memory, MB"];
        let mut table = Table::new(&head);
        rows.into_iter().for_each(|it| table.row(it));
        write!(text, "\n## {title}\n\n{}", table.text()).ok();
    }
    text
}

fn by_case(measured: &[Measured], of: &[(&str, Who)]) -> Vec<Vec<String>> {
    let row = |(id, who): &(&str, Who)| {
        let measured = measured.iter().find(|it| it.case.id == *id)?;
        let contender = Contender { who: *who, tools: measured.case.base.tools };
        cells(measured, contender, measured.case.title.to_owned())
    };
    of.iter().filter_map(row).collect()
}

fn by_tools(measured: &[Measured]) -> Vec<Vec<String>> {
    let Some(measured) = measured.iter().find(|it| it.case.id == "call-tools") else {
        return Vec::new();
    };
    let row = |it: &Contender| cells(measured, *it, format!("{} tools", it.tools));
    measured.case.contenders.iter().filter_map(row).collect()
}

/// One process takes part in most cases; what it holds after each of them says whether it holds on to anything.
fn by_calls(measured: &[Measured]) -> Vec<Vec<String>> {
    let mut calls = 0;
    let mut rows = Vec::new();
    for measured in measured {
        let contender = Contender::few(Who::Toolcrib);
        let Some(slices) = measured.slices(contender) else { continue };
        calls += slices.iter().map(|it| it.times.count()).sum::<u64>();
        let name = format!("{} so far, after {}", figure(float(calls)), measured.case.id);
        rows.extend(cells(measured, contender, name));
    }
    rows
}

fn cells(measured: &Measured, contender: Contender, name: String) -> Option<Vec<String>> {
    let outcome = measured.outcomes.iter().find(|it| it.contender == contender)?;
    let median = |of: fn(&Slice) -> f64| {
        Spread::of(outcome.slices.iter().map(of)).map_or("-".to_owned(), |it| figure(it.median))
    };
    Some(vec![
        name,
        median(Slice::p50),
        median(Slice::p99),
        median(Slice::rate),
        median(Slice::cpu),
        outcome.memory.map_or("-".to_owned(), |it| figure(float(it) / 1024.0)),
    ])
}
