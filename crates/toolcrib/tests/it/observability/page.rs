//! A reader of Prometheus' text format that lets nothing pass: what it takes, everybody takes.

use std::collections::BTreeMap;

/// A page that was read.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// Families, and of what kind they are.
    pub(super) families: BTreeMap<String, String>,
    samples: BTreeMap<(String, Labels), f64>,
}

type Labels = BTreeMap<String, String>;

impl Page {
    #[track_caller]
    pub(super) fn read(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line has no end");
        let mut page = Self::default();
        let (mut helped, mut family) = (String::new(), String::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap();
                assert!(!help.is_empty() && !help.contains('\\'), "{line}");
                name.clone_into(&mut helped);
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert_eq!(name, helped, "a type without help");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                assert_eq!(name.ends_with("_total"), kind == "counter", "{line}");
                let before = page.families.insert(name.to_owned(), kind.to_owned());
                assert_eq!(before, None, "{name} twice");
                name.clone_into(&mut family);
            } else {
                page.sample(line, &family);
            }
        }
        page.check_histograms();
        page
    }

    fn sample(&mut self, line: &str, family: &str) {
        let (series, value) = line.rsplit_once(' ').unwrap();
        let (name, labels) = match series.split_once('{') {
            Some((name, rest)) => (name, labels(rest.strip_suffix('}').unwrap())),
            None => (series, Labels::new()),
        };
        let histogram = self.families.get(family).is_some_and(|it| it == "histogram");
        let own = match name.strip_prefix(family) {
            Some("") => !histogram,
            Some("_bucket" | "_sum" | "_count") => histogram,
            _ => false,
        };
        assert!(own, "{line} is not of {family}");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(value.is_finite() && 0.0 <= value, "{line}");
        let before = self.samples.insert((name.to_owned(), labels), value);
        assert_eq!(before, None, "{line} twice");
    }

    /// Buckets grow, and the last of them is the count.
    fn check_histograms(&self) {
        let histograms = self.families.iter().filter(|(_, kind)| *kind == "histogram");
        for (family, _) in histograms {
            let of = |suffix: &str| format!("{family}{suffix}");
            let mut counted: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
            for ((_, labels), value) in self.named(&of("_bucket")) {
                let mut labels = labels.clone();
                let le = labels.remove("le").unwrap();
                let le = if le == "+Inf" { f64::INFINITY } else { le.parse().unwrap() };
                counted.entry(labels).or_default().push((le, *value));
            }
            for (labels, mut buckets) in counted {
                buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
                assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{buckets:?}");
                let last = buckets.last().unwrap();
                assert_eq!(last.0, f64::INFINITY);
                let count = self.samples[&(of("_count"), labels.clone())];
                assert_eq!(last.1, count, "{family} {labels:?}");
                assert!(self.samples.contains_key(&(of("_sum"), labels)));
            }
        }
    }

    fn named(&self, name: &str) -> impl Iterator<Item = (&(String, Labels), &f64)> {
        self.samples.iter().filter(move |((it, _), _)| it == name)
    }

    /// The sum of all that have these labels; zero where there are none.
    pub(super) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |it: &Labels| labels.iter().all(|(k, v)| it.get(*k).is_some_and(|it| it == v));
        self.named(name).filter(|((_, it), _)| fits(it)).map(|(_, value)| value).sum()
    }

    /// Whether there is such a line.
    pub(super) fn has(&self, name: &str) -> bool {
        self.named(name).next().is_some()
    }
}

/// `a="b",c="d"`, in which a backslash stands before what would end it.
fn labels(text: &str) -> Labels {
    let mut found = Labels::new();
    let mut rest = text.chars().peekable();
    while rest.peek().is_some() {
        let name: String = rest.by_ref().take_while(|c| *c != '=').collect();
        let plain = |c: char| c.is_ascii_lowercase() || c == '_';
        assert!(!name.is_empty() && name.chars().all(plain), "{text}");
        assert_eq!(rest.next(), Some('"'), "{text}");
        let mut value = String::new();
        loop {
            match rest.next().unwrap_or_else(|| panic!("{text}")) {
                '"' => break,
                '\\' => value.push(match rest.next() {
                    Some('n') => '\n',
                    Some(c @ ('\\' | '"')) => c,
                    _ => panic!("{text}"),
                }),
                c => value.push(c),
            }
        }
        assert_eq!(found.insert(name, value), None, "{text}");
        assert!(matches!(rest.next(), None | Some(',')), "{text}");
    }
    found
}
