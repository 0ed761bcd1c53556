//! What is to be reached, and whether it was.

use crate::{
    cases::{Contender, OTHERS, Who},
    figures::{Slice, Spread, added_ratio, ratio},
    once::Once,
    rounds::{Measured, Outcome},
};

/// Something to reach.
#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) name: String,
    /// Nothing if it was not measured.
    pub(crate) found: Option<Spread>,
    pub(crate) bound: Bound,
    /// CPU time of a call by that of the one it is compared with, and what it may be: decides where the ends lie far
    /// apart.
    pub(crate) cpu: Option<(Spread, f64)>,
}

/// How much it may be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// Whether it was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Reached,
    Missed,
    NotMeasured,
}

/// Ends that lie further apart than this say that the machine was too noisy for times.
pub(crate) const NOISY: f64 = 0.15;

/// What CPU time may be, by that of nginx.
const CPU: f64 = 2.0;

impl Goal {
    /// Whether the ends lie so far apart that CPU time has to decide.
    pub(crate) fn is_noisy(&self) -> bool {
        self.cpu.is_some() && self.found.is_some_and(|it| NOISY < it.width())
    }

    pub(crate) fn verdict(&self) -> Verdict {
        let (found, bound) = match (self.found, self.cpu) {
            (None, _) => return Verdict::NotMeasured,
            (Some(_), Some((cpu, most))) if self.is_noisy() => (cpu, Bound::AtMost(most)),
            (Some(found), _) => (found, self.bound),
        };
        let reached = match bound {
            Bound::AtMost(most) => found.median <= most,
            Bound::AtLeast(least) => least <= found.median,
        };
        if reached { Verdict::Reached } else { Verdict::Missed }
    }
}

impl Bound {
    pub(crate) fn text(self) -> String {
        match self {
            Self::AtMost(most) => format!("≤ {most}"),
            Self::AtLeast(least) => format!("≥ {least}"),
        }
    }
}

impl Verdict {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Reached => "reached",
            Self::Missed => "missed",
            Self::NotMeasured => "not measured",
        }
    }
}

/// All of them, as far as they were measured.
pub(crate) fn goals(measured: &[Measured], once: &[Once]) -> Vec<Goal> {
    let by_nginx =
        |case, figure: fn(&Slice) -> f64| pair(measured, case, Who::Toolcrib, Who::Nginx, figure);
    let cpu = |case| by_nginx(case, Slice::cpu);
    let single = |id: &str| once.iter().find(|it| it.id == id).map(|it| it.found);
    let stdio = |figure: fn(&Slice) -> f64| {
        pair(measured, "stdio-64", Who::ToolcribToPipe, Who::Toolcrib, figure)
    };
    let list = |figure: fn(&Slice) -> f64| {
        pair(measured, "list-10000", Who::Toolcrib, Who::NginxFile, figure)
    };
    let pipe = pair(measured, "pipe", Who::ToolcribPipe, Who::Pipe, Slice::rate);
    vec![
        most("latency added at 1 connection, p50, × nginx", added(measured), 1.6)
            .or_cpu(cpu("call-1"), CPU),
        least("throughput at 64 connections, × nginx", by_nginx("call-64", Slice::rate), 0.75)
            .or_cpu(cpu("call-64"), CPU),
        best_other(measured),
        most("CPU per call at 1 connection, × nginx", cpu("call-1"), CPU),
        most("CPU per call at 64 connections, × nginx", cpu("call-64"), CPU),
        least("HTTP to stdio, 64 connections, throughput, × HTTP to HTTP", stdio(Slice::rate), 0.8)
            .or_cpu(stdio(Slice::cpu), 1.0 / 0.8),
        least("stdio to stdio, throughput, × the server itself", pipe, 0.5),
        most("list of 10,000 tools, p50, × nginx serving it as a file", list(Slice::p50), 2.0)
            .or_cpu(list(Slice::cpu), 2.0),
        least("result of 10 MB, throughput, × nginx", by_nginx("result-10m", Slice::rate), 0.5)
            .or_cpu(cpu("result-10m"), 1.0 / 0.5),
        most("result of 10 MB, peak memory, × its size", single("peak"), 3.0),
        most("idle memory with 10 servers, MB", single("idle"), 15.0),
        most("memory of an idle legacy session, kB", single("sessions"), 4.0),
        most("start to listening, CPU time, ms", single("start-cpu"), 15.0),
        most("binary, stripped, MB", single("binary"), 25.0),
    ]
}

fn most(name: &str, found: Option<Spread>, most: f64) -> Goal {
    goal(name, found, Bound::AtMost(most))
}

fn least(name: &str, found: Option<Spread>, least: f64) -> Goal {
    goal(name, found, Bound::AtLeast(least))
}

fn goal(name: &str, found: Option<Spread>, bound: Bound) -> Goal {
    Goal { name: name.to_owned(), found, bound, cpu: None }
}

impl Goal {
    /// What CPU time may be where the times are noisy.
    fn or_cpu(self, cpu: Option<Spread>, most: f64) -> Self {
        Self { cpu: cpu.map(|it| (it, most)), ..self }
    }
}

/// One figure of one by another's, in a case that has both.
pub(crate) fn pair(
    measured: &[Measured],
    case: &str,
    of: Who,
    by: Who,
    figure: impl Fn(&Slice) -> f64,
) -> Option<Spread> {
    let measured = measured.iter().find(|it| it.case.id == case)?;
    ratio(measured.of(of)?, measured.of(by)?, figure)
}

fn added(measured: &[Measured]) -> Option<Spread> {
    let measured = measured.iter().find(|it| it.case.id == "call-1")?;
    let [of, by, direct] = [Who::Toolcrib, Who::Nginx, Who::Direct].map(|it| measured.of(it));
    added_ratio(of?, by?, direct?)
}

/// Against the best of the other gateways, in the era in which it is best.
fn best_other(measured: &[Measured]) -> Goal {
    let found =
        |who, case| Some((who, case, pair(measured, case, Who::Toolcrib, who, Slice::rate)?));
    let all = OTHERS.iter().flat_map(|who| ["call-64", "legacy-64"].map(|case| found(*who, case)));
    let best = all.flatten().min_by(|a, b| a.2.median.total_cmp(&b.2.median));
    let who = best.map_or("the best other gateway", |(who, ..)| who.name());
    let cpu = best.and_then(|(who, case, _)| pair(measured, case, Who::Toolcrib, who, Slice::cpu));
    let name = format!("throughput at 64 connections, × {who}");
    least(&name, best.map(|it| it.2), 2.4).or_cpu(cpu, 1.0 / 2.4)
}

/// The gateways without which nothing was compared, and which are not there; with the reason.
pub(crate) fn missing(measured: &[Measured]) -> Vec<String> {
    let mut missing = Vec::new();
    for who in [Who::McpProxy, Who::FastMcp] {
        let outcomes: Vec<&Outcome> = measured
            .iter()
            .flat_map(|it| &it.outcomes)
            .filter(|it| it.contender.who == who)
            .collect();
        if outcomes.iter().all(|it| it.slices.is_empty()) {
            let reason = outcomes.iter().find_map(|it| it.failure.clone());
            let reason = reason.unwrap_or_else(|| "it was not asked".to_owned());
            missing.push(format!("{}: {reason}", who.name()));
        }
    }
    missing
}

impl Measured {
    /// The slices of one who took part.
    pub(crate) fn of(&self, who: Who) -> Option<&[Slice]> {
        let tools = self.case.base.tools;
        self.slices(Contender { who, tools })
    }

    pub(crate) fn slices(&self, contender: Contender) -> Option<&[Slice]> {
        let outcome = self.outcomes.iter().find(|it| it.contender == contender)?;
        Some(outcome.slices.as_slice()).filter(|it| !it.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_reached_missed_or_not_measured() {
        let check = |found: Option<f64>, bound| goal("x", found.map(Spread::once), bound).verdict();
        assert_eq!(check(Some(1.5), Bound::AtMost(1.5)), Verdict::Reached);
        assert_eq!(check(Some(1.6), Bound::AtMost(1.5)), Verdict::Missed);
        assert_eq!(check(Some(0.7), Bound::AtLeast(0.75)), Verdict::Missed);
        assert_eq!(check(None, Bound::AtLeast(0.75)), Verdict::NotMeasured);
    }

    #[test]
    fn where_times_are_noisy_cpu_time_decides() {
        let noisy = Spread { median: 1.0, least: 0.9, most: 1.2 };
        let calm = Spread { median: 1.0, least: 0.95, most: 1.05 };
        let verdict = |found, cpu| {
            let goal = goal("x", Some(found), Bound::AtMost(1.5));
            goal.or_cpu(Some(Spread::once(cpu)), CPU).verdict()
        };
        assert_eq!(verdict(noisy, 2.5), Verdict::Missed);
        assert_eq!(verdict(noisy, 1.5), Verdict::Reached);
        assert_eq!(verdict(calm, 2.5), Verdict::Reached);
    }

    #[test]
    fn what_was_not_asked_is_missing() {
        assert_eq!(missing(&[]).len(), 2);
    }
}
