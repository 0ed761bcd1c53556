//! The page that Prometheus reads: its text format, version 0.0.4.

use std::fmt::{Display, Write};

/// What kind of page this is.
pub(crate) const MEDIA_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Which numbers of a tool are told, and under what name.
#[derive(Debug, Clone, Copy)]
pub(super) enum Series {
    Calls(&'static str),
    Failures(&'static str),
    Cache(&'static str),
    Times(&'static str),
}

/// What becomes of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// How long things took.
    Histogram,
}

/// The page, as far as it is written.
#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    /// Begins a family of numbers. It is there also where nothing has happened yet.
    pub(super) fn family(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    /// One number.
    pub(super) fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            self.0.push_str(label);
            self.0.push_str("=\"");
            self.escaped(text);
            self.0.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        self.line(format_args!("{end} {value}\n"));
    }

    /// A family of one number.
    pub(super) fn single(&mut self, name: &str, kind: Kind, help: &str, value: impl Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }

    pub(super) fn finish(self) -> String {
        self.0
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        // A string takes whatever is written to it.
        self.0.write_fmt(text).ok();
    }

    /// What a server calls itself may be anything.
    fn escaped(&mut self, text: &str) {
        for c in text.chars() {
            match c {
                '\\' => self.0.push_str("\\\\"),
                '"' => self.0.push_str("\\\""),
                '\n' => self.0.push_str("\\n"),
                c => self.0.push(c),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_ends_no_line_and_no_label() {
        let mut page = Page::default();
        page.family("a", Kind::Gauge, "Some.");
        page.sample("a", &[("x", "1\\\"\n"), ("y", "")], 0.5);
        page.single("b", Kind::Counter, "Other.", 7);
        let expected = "# HELP a Some.\n# TYPE a gauge\na{x=\"1\\\\\\\"\\n\",y=\"\"} 0.5\n\
                        # HELP b Other.\n# TYPE b counter\nb 7\n";
        assert_eq!(page.finish(), expected);
    }
}
