//! Tables that read well in a terminal, and are Markdown.

use std::fmt::Write;

use crate::figures::Spread;

/// Rows of cells; the first row is the head.
#[derive(Debug)]
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    pub(crate) fn new(head: &[&str]) -> Self {
        Self(vec![head.iter().map(|it| (*it).to_owned()).collect()])
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.0.push(cells);
    }

    pub(crate) fn text(&self) -> String {
        let columns = self.0.iter().map(Vec::len).max().unwrap_or_default();
        let width = |column: usize| {
            let lengths = self.0.iter().filter_map(|it| Some(it.get(column)?.chars().count()));
            lengths.max().unwrap_or_default().max(3)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let mut text = String::new();
        for (at, row) in self.0.iter().enumerate() {
            push_row(&mut text, row, &widths);
            if at == 0 {
                let rule = |(column, width): (usize, &usize)| match column {
                    0 => "-".repeat(width + 2),
                    _ => format!("{}:", "-".repeat(width + 1)),
                };
                let rules: Vec<String> = widths.iter().enumerate().map(rule).collect();
                writeln!(text, "|{}|", rules.join("|")).ok();
            }
        }
        text
    }
}

/// The first cell is a name, the others are figures.
fn push_row(text: &mut String, row: &[String], widths: &[usize]) {
    for (column, width) in widths.iter().enumerate() {
        let cell = row.get(column).map_or("", String::as_str);
        let space = " ".repeat(width - cell.chars().count());
        match column {
            0 => write!(text, "| {cell}{space} ").ok(),
            _ => write!(text, "| {space}{cell} ").ok(),
        };
    }
    text.push_str("|\n");
}

/// A figure with as many digits as it deserves.
pub(crate) fn figure(figure: f64) -> String {
    match figure.abs() {
        it if !it.is_finite() => "-".to_owned(),
        it if 1000.0 <= it => thousands(figure),
        it if 100.0 <= it => format!("{figure:.0}"),
        it if 10.0 <= it => format!("{figure:.1}"),
        it if 0.1 <= it || it == 0.0 => format!("{figure:.2}"),
        _ => format!("{figure:.4}"),
    }
}

/// The middle, and the ends where there are any.
pub(crate) fn spread(spread: Option<Spread>) -> String {
    match spread {
        None => "-".to_owned(),
        Some(Spread { median, least, most }) if least == most => figure(median),
        Some(Spread { median, least, most }) => {
            format!("{} ({} to {})", figure(median), figure(least), figure(most))
        }
    }
}

/// `1234567` as `1,234,567`.
fn thousands(number: f64) -> String {
    let digits = format!("{:.0}", number.abs());
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|it| str::from_utf8(it).ok()).collect();
    let sign = if number < 0.0 { "-" } else { "" };
    format!("{sign}{}", groups.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_as_many_digits_as_they_deserve() {
        let figures = [0.0, 0.00123, 0.751, 12.34, 123.4, 1234.5, 1_234_567.0, -4321.0, f64::NAN];
        let texts = figures.map(figure);
        let expected =
            ["0.00", "0.0012", "0.75", "12.3", "123", "1,234", "1,234,567", "-4,321", "-"];
        assert_eq!(texts, expected);
        let ends = Spread { median: 1.0, least: 0.5, most: 12.0 };
        assert_eq!(spread(Some(ends)), "1.00 (0.50 to 12.0)");
        assert_eq!(spread(Some(Spread::once(1.0))), "1.00");
    }

    #[test]
    fn a_table_is_even() {
        let mut table = Table::new(&["name", "µs"]);
        table.row(vec!["a longer one".to_owned(), "1.5".to_owned()]);
        table.row(vec!["short".to_owned()]);
        let expected = "\
| name         |  µs |
|--------------|----:|
| a longer one | 1.5 |
| short        |     |
";
        assert_eq!(table.text(), expected);
    }
}
