//! Counts and sums over the rows of a table, exact where the numbers are.

use std::{cmp::Ordering, collections::HashMap};

use serde_json::Value;

use super::{
    Content, Piece, PieceError, ReadLimits, Selector,
    decimal::{Decimal, Number},
    list::List,
    piece::Unit,
    selector::{Aggregate, MOST, Measure},
    table::{Row, Table},
};

/// How many groups are kept apart.
const MAX_GROUPS: usize = 50_000;

/// Bytes of their names and extremes.
const MAX_BYTES: usize = 16 << 20;

/// How much of a value is compared.
const MAX_TEXT: usize = 1000;

const ASKED: &str = "counts and sums";

pub(super) fn read(
    content: &mut dyn Content,
    media_type: &str,
    asked: &Aggregate,
    limits: &ReadLimits,
) -> Result<Piece, PieceError> {
    if MOST < asked.measures.len().max(asked.tests.len()) {
        let said = format!("{MOST} measures and {MOST} tests at most are taken at once");
        return Err(PieceError::Asked(said));
    }
    let mut table = Table::open(content, media_type, asked.path.as_deref(), ASKED)?;
    let measured = asked.measures.iter().filter_map(|(_, column)| column.as_ref());
    let tested = asked.tests.iter().map(|it| &it.column);
    for column in measured.chain(tested).chain(&asked.group_by) {
        table.check(column)?;
    }
    let mut groups = Groups::default();
    let mut row = Row::new();
    let mut cut = 0_u64;
    while table.next(&mut row)? {
        cut += u64::from(!row.keep.is_whole());
        let holds = asked.tests.iter().all(|test| {
            let cell = table.cell(&row, &test.column).unwrap_or_default();
            same(&cell, &test.value) == test.equal
        });
        if holds {
            groups.add(&table, &row, asked)?;
        }
    }
    let mut piece = groups.finish(asked, limits);
    piece.notes.extend(
        (0 < cut).then(|| {
            format!("{cut} rows are too long to be read whole; only their beginnings count")
        }),
    );
    Ok(piece)
}

/// Whether a cell is a value: the same text, or the same number.
fn same(cell: &str, value: &str) -> bool {
    cell == value
        || matches!((Number::read(cell), Number::read(value)), (Some(a), Some(b)) if a.compare(b) == Ordering::Equal)
}

/// What is known of one column in one group.
#[derive(Debug, Clone)]
struct Column {
    count: u64,
    numbers: u64,
    sum: Number,
    /// The smallest and the largest number, as they are written.
    least: Option<String>,
    most: Option<String>,
    /// The first and the last text that is no number.
    first: Option<String>,
    last: Option<String>,
}

impl Default for Column {
    fn default() -> Self {
        let sum = Number::Exact(Decimal::zero());
        Self { count: 0, numbers: 0, sum, least: None, most: None, first: None, last: None }
    }
}

impl Column {
    /// Adds a value; says how many bytes more are kept.
    fn add(&mut self, cell: &str) -> usize {
        let before = self.kept();
        self.look(cell);
        self.kept().saturating_sub(before)
    }

    fn kept(&self) -> usize {
        let kept = [&self.least, &self.most, &self.first, &self.last];
        kept.into_iter().flatten().map(String::len).sum()
    }

    fn look(&mut self, cell: &str) {
        self.count += 1;
        let text = cell.trim();
        let Some(number) = Number::read(text) else {
            let text = &text[..text.floor_char_boundary(MAX_TEXT)];
            replace(&mut self.first, text, |old| text < old);
            replace(&mut self.last, text, |old| old < text);
            return;
        };
        self.numbers += 1;
        self.sum = self.sum.add(number);
        let compared = |old: &str| Number::read(old).map(|old| number.compare(old));
        replace(&mut self.least, text, |old| compared(old) == Some(Ordering::Less));
        replace(&mut self.most, text, |old| compared(old) == Some(Ordering::Greater));
    }

    /// As JSON; a number that was found is given as it was written.
    fn result(&self, measure: Measure) -> String {
        let written = |text: &String| {
            let number = serde_json::from_str::<serde_json::Number>(text).is_ok();
            if number { text.clone() } else { quoted(text) }
        };
        let found = match measure {
            Measure::Count => Some(self.count.to_string()),
            Measure::Sum => Some(self.sum.to_string()),
            Measure::Avg => (0 < self.numbers).then(|| self.sum.over(self.numbers)),
            Measure::Min => self.least.as_ref().or(self.first.as_ref()).map(written),
            Measure::Max => self.most.as_ref().or(self.last.as_ref()).map(written),
        };
        found.unwrap_or_else(|| "null".to_owned())
    }

    /// How many values a measure leaves out.
    fn left_out(&self, measure: Measure) -> u64 {
        match measure {
            Measure::Count => 0,
            Measure::Min | Measure::Max if self.numbers == 0 => 0,
            _ => self.count - self.numbers,
        }
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Puts in a text where there is none, or where the old one gives way.
fn replace(place: &mut Option<String>, text: &str, gives_way: impl Fn(&str) -> bool) {
    if place.as_deref().is_none_or(gives_way) {
        *place = Some(text.to_owned());
    }
}

#[derive(Default)]
struct Groups {
    /// By their value; the place tells which came first.
    groups: HashMap<Option<String>, (usize, Group)>,
    bytes: usize,
    rows: u64,
}

#[derive(Debug, Clone, Default)]
struct Group {
    rows: u64,
    columns: Vec<Column>,
}

impl Groups {
    fn add(&mut self, table: &Table<'_>, row: &Row, asked: &Aggregate) -> Result<(), PieceError> {
        self.rows += 1;
        let mut name = asked.group_by.as_ref().and_then(|it| table.cell(row, it));
        if let Some(name) = &mut name {
            name.truncate(name.floor_char_boundary(MAX_TEXT));
        }
        let next = self.groups.len();
        let many = || {
            let column = asked.group_by.as_deref().unwrap_or_default();
            PieceError::Asked(format!(
                "`{column}` has more than {next} different values; `where` leaves fewer, or count without groups"
            ))
        };
        if !self.groups.contains_key(&name) {
            self.bytes += name.as_ref().map_or(0, String::len) + 200 * (asked.measures.len() + 1);
            if MAX_GROUPS <= next || MAX_BYTES < self.bytes {
                return Err(many());
            }
        }
        let columns = vec![Column::default(); asked.measures.len()];
        let (_, group) = self.groups.entry(name).or_insert((next, Group { rows: 0, columns }));
        group.rows += 1;
        for ((_, column), known) in asked.measures.iter().zip(&mut group.columns) {
            if let Some(cell) = column.as_ref().and_then(|it| table.cell(row, it)) {
                self.bytes += known.add(&cell);
            }
        }
        // Of one group what is kept is bounded by its columns.
        if MAX_BYTES < self.bytes && 1 < next { Err(many()) } else { Ok(()) }
    }

    fn finish(mut self, asked: &Aggregate, limits: &ReadLimits) -> Piece {
        if asked.group_by.is_none() {
            let columns = vec![Column::default(); asked.measures.len()];
            let (_, group) = self.groups.remove(&None).unwrap_or((0, Group { rows: 0, columns }));
            let piece = Piece::text(group.shown(None, asked), "application/json", Unit::Rows);
            return notes(piece.place(0, self.rows, Some(self.rows)), asked, [&group].into_iter());
        }
        let mut groups: Vec<(Option<String>, usize, Group)> =
            self.groups.into_iter().map(|(name, (place, group))| (name, place, group)).collect();
        let key = |group: &Group| {
            let (measure, column) = &asked.measures[0];
            Number::read(&group.value(0, *measure, column.as_ref()))
        };
        groups.sort_by_cached_key(|(_, place, group)| Ordered(key(group), *place));
        let total = groups.len() as u64;
        let shown = groups.iter().skip(asked.from as usize).take(asked.top as usize);
        let mut list = List::array(limits.max_bytes);
        for (name, _, group) in shown {
            if !list.push(&group.shown(Some(name.as_deref()), asked)) {
                break;
            }
        }
        let from = asked.from.min(total);
        let to = from + list.count;
        let next = Selector::Aggregate(Aggregate { from: to, ..asked.clone() });
        let more = to < total && from < to;
        let piece = Piece::text(list.finish(), "application/json", Unit::Groups)
            .place(from, to, Some(total))
            .next(more.then_some(next));
        notes(piece, asked, groups.iter().map(|(_, _, group)| group))
    }
}

/// Largest first; what is no number last; else as they came.
#[derive(PartialEq)]
struct Ordered(Option<Number>, usize);

impl Eq for Ordered {}

impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Ordering {
        let numbers = match (self.0, other.0) {
            (Some(a), Some(b)) => b.compare(a),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (None, None) => Ordering::Equal,
        };
        numbers.then(self.1.cmp(&other.1))
    }
}

impl Group {
    fn value(&self, at: usize, measure: Measure, column: Option<&String>) -> String {
        match column.and_then(|_| self.columns.get(at)) {
            None => self.rows.to_string(),
            Some(column) => column.result(measure),
        }
    }

    fn shown(&self, name: Option<Option<&str>>, asked: &Aggregate) -> String {
        let mut members = Vec::new();
        if let (Some(name), Some(column)) = (name, &asked.group_by) {
            let name = name.map_or_else(|| "null".to_owned(), quoted);
            members.push(format!("{}:{name}", quoted(column)));
        }
        for (at, (measure, column)) in asked.measures.iter().enumerate() {
            let word = match column {
                None => "count".to_owned(),
                Some(column) => format!("{}({column})", measure.word()),
            };
            members.push(format!(
                "{}:{}",
                quoted(&word),
                self.value(at, *measure, column.as_ref())
            ));
        }
        format!("{{{}}}", members.join(","))
    }
}

/// What was left out, and what is not exact.
fn notes<'a>(
    mut piece: Piece,
    asked: &Aggregate,
    groups: impl Iterator<Item = &'a Group>,
) -> Piece {
    let mut left_out = vec![0; asked.measures.len()];
    let mut rounded = vec![false; asked.measures.len()];
    for group in groups {
        for (at, column) in group.columns.iter().enumerate() {
            left_out[at] += column.left_out(asked.measures[at].0);
            let sums = matches!(asked.measures[at].0, Measure::Sum | Measure::Avg);
            rounded[at] |= sums && !column.sum.is_exact();
        }
    }
    for (at, (measure, column)) in asked.measures.iter().enumerate() {
        let name = format!("{}({})", measure.word(), column.as_deref().unwrap_or("*"));
        if 0 < left_out[at] {
            piece
                .notes
                .push(format!("{name}: {} values are no numbers and are left out", left_out[at]));
        }
        if rounded[at] {
            piece.notes.push(format!(
                "{name}: some numbers are too large or too fine to be added exactly; it is rounded"
            ));
        }
    }
    piece
}
