//! The picture: three figures of every gateway, as multiples of nginx's, on a scale of powers of ten.
//!
//! A point is the median of the rounds, the line through it goes from end to end. Colours and text follow the
//! reader's light or dark theme.

use std::fmt::Write;

use crate::{
    cases::Who,
    figures::{Slice, Spread, added_ratio, ratio},
    rounds::Measured,
    table::figure,
};

/// One of the three parts.
#[derive(Debug)]
pub(crate) struct Panel {
    pub(crate) title: &'static str,
    pub(crate) points: Vec<(&'static str, Spread)>,
}

const WIDTH: f64 = 760.0;
const LEFT: f64 = 170.0;
const RIGHT: f64 = 90.0;
const ROW: f64 = 24.0;
const HEAD: f64 = 44.0;

const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#24292f}.t{font-weight:600}.s{font-size:11px;\
fill:#57606a}.g{stroke:#d0d7de}.o{stroke:#57606a}.b{stroke:#0969da;stroke-width:3}.p{fill:#0969da}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9aa4af}.g{stroke:#373e47}.o{stroke:#9aa4af}\
.b{stroke:#58a6ff}.p{fill:#58a6ff}}";

/// The panels, as far as they were measured.
pub(crate) fn panels(measured: &[Measured]) -> Vec<Panel> {
    let panel = |title, cases: &[&str], of: fn(&Measured, Who) -> Option<Spread>| {
        let gateways = [
            Who::Nginx,
            Who::Toolcrib,
            Who::ToolcribOff,
            Who::McpProxy,
            Who::FastMcp,
            Who::ContextForge,
        ];
        // Whoever does not speak the modern era is shown in the other.
        let find = |who: Who| {
            let cases = cases.iter().filter_map(|id| measured.iter().find(|it| it.case.id == *id));
            let found = { cases }.find_map(|it| of(it, who))?;
            Some((who.name(), found))
        };
        Panel { title, points: gateways.into_iter().filter_map(find).collect() }
    };
    let all = [
        panel(
            "latency that a call gains, 1 connection (less is better)",
            &["call-1", "legacy-1"],
            |it, who| added_ratio(it.of(who)?, it.of(Who::Nginx)?, it.of(Who::Direct)?),
        ),
        panel(
            "answers a second, 64 connections (more is better)",
            &["call-64", "legacy-64"],
            |it, who| ratio(it.of(who)?, it.of(Who::Nginx)?, Slice::rate),
        ),
        panel(
            "CPU time of a call, 64 connections (less is better)",
            &["call-64", "legacy-64"],
            |it, who| ratio(it.of(who)?, it.of(Who::Nginx)?, Slice::cpu),
        ),
    ];
    all.into_iter().filter(|it| !it.points.is_empty()).collect()
}

pub(crate) fn svg(panels: &[Panel]) -> String {
    let rows: usize = panels.iter().map(|it| it.points.len()).sum();
    let count = |number: usize| u32::try_from(number).map_or(0.0, f64::from);
    let height = count(panels.len()) * (HEAD + 20.0) + count(rows) * ROW + 30.0;
    let mut text = format!(
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"><style>{STYLE}</style>"#
    );
    text.push('\n');
    let mut top = 10.0;
    for panel in panels {
        let scale = Scale::new(&panel.points);
        let bottom = top + HEAD + count(panel.points.len()) * ROW;
        writeln!(
            text,
            r#"<text class="t" x="0" y="{:.1}">{}, × nginx</text>"#,
            top + 14.0,
            panel.title
        )
        .ok();
        for power in scale.from..=scale.to {
            let (x, value) = (scale.x(10f64.powi(power)), power_text(power));
            let class = if power == 0 { "o" } else { "g" };
            writeln!(
                text,
                r#"<line class="{class}" x1="{x:.1}" x2="{x:.1}" y1="{:.1}" y2="{bottom:.1}"/><text class="s" x="{x:.1}" y="{:.1}" text-anchor="middle">{value}</text>"#,
                top + HEAD - 8.0,
                top + HEAD - 12.0,
            )
            .ok();
        }
        for (at, (name, found)) in panel.points.iter().enumerate() {
            push_point(&mut text, &scale, top + HEAD + (count(at) + 0.5) * ROW, name, *found);
        }
        top = bottom + 20.0;
    }
    text.push_str("</svg>\n");
    text
}

fn push_point(text: &mut String, scale: &Scale, y: f64, name: &str, found: Spread) {
    let [least, middle, most] = [found.least, found.median, found.most].map(|it| scale.x(it));
    writeln!(
        text,
        r#"<text x="0" y="{:.1}">{name}</text><line class="b" x1="{least:.1}" x2="{most:.1}" y1="{y:.1}" y2="{y:.1}"/><circle class="p" cx="{middle:.1}" cy="{y:.1}" r="5"/><text class="s" x="{WIDTH}" y="{:.1}" text-anchor="end">{}</text>"#,
        y + 4.0,
        y + 4.0,
        figure(found.median),
    )
    .ok();
}

/// Powers of ten from the least to the most.
struct Scale {
    from: i32,
    to: i32,
}

impl Scale {
    fn new(points: &[(&str, Spread)]) -> Self {
        let middles = || points.iter().map(|(_, it)| it.median).filter(|it| 0.0 < *it);
        let least = middles().fold(1.0, f64::min).log10().floor();
        let most = middles().fold(1.0, f64::max).log10().ceil();
        let [from, to] = [least, most].map(|it| it.clamp(-6.0, 6.0));
        #[expect(clippy::cast_possible_truncation, reason = "clamped to a few digits")]
        let (from, to) = (from as i32, to as i32);
        Self { from, to: to.max(from + 1) }
    }

    /// Where a figure goes; what is off the scale stands at its end.
    fn x(&self, value: f64) -> f64 {
        let (from, to) = (f64::from(self.from), f64::from(self.to));
        let power = value.max(1e-9).log10().clamp(from, to);
        LEFT + (power - from) / (to - from) * (WIDTH - LEFT - RIGHT)
    }
}

fn power_text(power: i32) -> String {
    if power < 0 {
        format!("{:.*}", power.unsigned_abs() as usize, 10f64.powi(power))
    } else {
        figure(10f64.powi(power)).trim_end_matches(".00").trim_end_matches(".0").to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panel() -> Panel {
        let spread = |median, least, most| Spread { median, least, most };
        let points = vec![("one", spread(1.0, 0.9, 1.1)), ("two", spread(250.0, 0.0, 9e9))];
        Panel { title: "x", points }
    }

    #[test]
    fn a_scale_goes_from_power_to_power() {
        let scale = Scale::new(&panel().points);
        assert_eq!((scale.from, scale.to), (0, 3));
        assert_eq!((scale.x(1.0), scale.x(1000.0)), (LEFT, WIDTH - RIGHT));
        // Off the scale, and no number at all.
        assert_eq!((scale.x(0.0), scale.x(1e12)), (LEFT, WIDTH - RIGHT));
        assert!((scale.x(1e3f64.sqrt()) - f64::midpoint(LEFT, WIDTH - RIGHT)).abs() < 1e-6);
    }

    #[test]
    fn a_plot_is_well_formed_and_names_everybody() {
        let text = svg(&[panel()]);
        assert!(text.starts_with("<svg ") && text.ends_with("</svg>\n"));
        for part in [">one<", ">two<", ">250<", "prefers-color-scheme:dark", ">1,000<"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(!text.contains("NaN") && !text.contains("inf"));
        assert_eq!(text.matches("<text").count(), text.matches("</text>").count());
    }

    #[test]
    fn powers_are_written_in_full() {
        assert_eq!([-2, -1, 0, 1, 3].map(power_text), ["0.01", "0.1", "1", "10", "1,000"]);
    }
}
