//! Rows of a table, and keys of an object.

use std::collections::HashSet;

use super::{
    Content, Piece, PieceError, ReadLimits, Selector,
    format::Format,
    json::{Container, JsonError, JsonType, Keep, MAX_KEY, unquoted},
    jsonpath::{Step, written},
    list::List,
    locate::{Place, locate, scanner, singular},
    piece::Unit,
    selector::Range,
    slice::key_is,
    table::{Cells, Row, Table, Values},
    text::Shown,
};

pub(super) fn rows(
    content: &mut dyn Content,
    media_type: &str,
    range: Range,
    path: Option<&str>,
    limits: &ReadLimits,
) -> Result<Piece, PieceError> {
    let total = if range.needs_total() { Some(count(content, media_type, path)?) } else { None };
    let (start, end) = range.resolve(total);
    let mut table = Table::open(content, media_type, path, "rows")?;
    let mut page = Page::new(&table, limits);
    let (mut row, mut index) = (Row::new(), 0);
    let mut ended = false;
    while index < end {
        if !table.next(&mut row)? {
            ended = true;
            break;
        }
        if start <= index && !page.add(&table, &row, index) {
            break;
        }
        index += 1;
    }
    let more = index < end && !ended;
    let range = Range {
        start: i64::try_from(index).unwrap_or(i64::MAX),
        end: (end != u64::MAX).then(|| i64::try_from(end).unwrap_or(i64::MAX)),
    };
    let next = Selector::Rows { range, path: path.map(str::to_owned) };
    let total = total.or(ended.then_some(index));
    Ok(page.finish(&table).place(start.min(index), index, total).next(more.then_some(next)))
}

/// How many rows there are.
fn count(
    content: &mut dyn Content,
    media_type: &str,
    path: Option<&str>,
) -> Result<u64, PieceError> {
    let mut table = Table::open(content, media_type, path, "rows")?;
    let (mut row, mut count) = (Row::new(), 0);
    while table.next(&mut row)? {
        count += 1;
    }
    Ok(count)
}

/// Rows in the form that they came in.
enum Page {
    /// An array.
    Array(List),
    /// Lines: of CSV below its heading, of JSON.
    Lines { text: String, max: usize, cut: Vec<String>, none: bool },
}

impl Page {
    fn new(table: &Table<'_>, limits: &ReadLimits) -> Self {
        let max = limits.max_bytes;
        let mut text = String::new();
        match table {
            Table::Values(Values { place: Place { documents: false, .. }, .. }) => {
                return Self::Array(List::array(max));
            }
            Table::Values(_) => {}
            Table::Cells(cells) => {
                let heading = Shown::of(&cells.heading, u64::MAX, max / 2, false);
                text = heading.text.trim_end_matches(['\r', '\n']).to_owned() + "\n";
            }
        }
        Self::Lines { text, max, cut: Vec::new(), none: true }
    }

    /// Adds a row; false where there is no room for it.
    fn add(&mut self, table: &Table<'_>, row: &Row, index: u64) -> bool {
        let steps = |values: &Values<'_>| -> Vec<Step> {
            let index = Step::Index(i64::try_from(index).unwrap_or(i64::MAX));
            values.place.steps.iter().cloned().chain([index]).collect()
        };
        match (self, table) {
            (Self::Array(list), Table::Values(values)) => {
                list.push_or_name("", &row.keep.bytes, row.keep.length, &steps(values))
            }
            (Self::Lines { text, max, cut, none }, table) => {
                let line = String::from_utf8_lossy(&row.keep.bytes);
                // A document may be written over several lines; here it is one.
                let line = match table {
                    Table::Values(_) => line.replace(['\n', '\r'], " "),
                    Table::Cells(_) => line.trim_end_matches(['\r', '\n']).to_owned(),
                };
                if row.keep.is_whole() && text.len() + line.len() < *max {
                    text.push_str(&line);
                    text.push('\n');
                    *none = false;
                    return true;
                }
                if !*none {
                    return false;
                }
                // Larger than a piece: its beginning, and where the rest is.
                let room = max.saturating_sub(text.len() + 1);
                text.push_str(&line[..line.floor_char_boundary(room)]);
                text.push('\n');
                *none = false;
                let place = match table {
                    Table::Values(values) => format!("path={}", written(&steps(values))),
                    Table::Cells(_) => format!("offset={}", row.at),
                };
                cut.push(format!(
                    "row {index} has {} bytes and is cut; the whole is at {place}",
                    row.keep.length
                ));
                true
            }
            (Self::Array(_), Table::Cells(_)) => false,
        }
    }

    fn finish(self, table: &Table<'_>) -> Piece {
        match self {
            Self::Array(list) => {
                let note = list.note();
                Piece::text(list.finish(), "application/json", Unit::Rows).note(note)
            }
            Self::Lines { text, cut, .. } => {
                let unclosed = matches!(table, Table::Cells(Cells { unclosed: true, .. }));
                let note = unclosed.then_some("a quote is opened and never closed");
                let media_type = match table {
                    Table::Cells(_) => "text/csv",
                    Table::Values(_) => "application/x-ndjson",
                };
                let mut piece = Piece::text(text, media_type, Unit::Rows).note(note);
                piece.notes.extend(cut);
                piece
            }
        }
    }
}

pub(super) fn keys(
    content: &mut dyn Content,
    media_type: &str,
    path: &str,
    names: &[String],
    from: u64,
    limits: &ReadLimits,
) -> Result<Piece, PieceError> {
    let asked = "keys";
    let steps = singular(path)?;
    let format = Format::of(content, media_type)?;
    let place = locate(content, format, &steps, asked)?;
    if place.container() != Some(Container::Object) {
        let cure = if place.kind == JsonType::Array { "; `rows` shows its elements" } else { "" };
        let found = format!("at `{}` is {}{cure}", written(&place.steps), place.kind.a_word());
        return Err(PieceError::Kind { asked, found });
    }
    let wrong = |error: JsonError| error.of(asked);
    let next = |names, from| Selector::Keys { path: path.to_owned(), names, from };
    if names.is_empty() {
        let (piece, more) = listed(content, &place, from, limits).map_err(wrong)?;
        let to = piece.to;
        return Ok(piece.next(more.then(|| next(Vec::new(), to))));
    }
    let (piece, left) = values(content, &place, names, limits).map_err(wrong)?;
    Ok(piece.next((!left.is_empty()).then(|| next(left, 0))))
}

/// Each key with what is under it.
fn listed(
    content: &mut dyn Content,
    place: &Place,
    from: u64,
    limits: &ReadLimits,
) -> Result<(Piece, bool), JsonError> {
    let mut list = List::array(limits.max_bytes);
    let mut scanner = scanner(content, place.at)?;
    let mut children = scanner.children(Container::Object)?;
    let (mut key, mut index, mut room) = (Keep::up_to(MAX_KEY), 0, true);
    let mut to = from;
    while children.next(&mut scanner, &mut key)? {
        let passed = scanner.value(&mut Keep::nothing())?;
        if from <= index && room {
            let name: String = unquoted(&key.bytes).chars().take(limits.max_bytes / 20).collect();
            let mut line =
                serde_json::json!({ "key": name, "type": passed.kind, "bytes": passed.length });
            if matches!(passed.kind, JsonType::Array | JsonType::Object) {
                line["items"] = passed.children.into();
            }
            room = list.push(&line.to_string());
            to += u64::from(room);
        }
        index += 1;
    }
    let piece = Piece::text(list.finish(), "application/json", Unit::Keys);
    Ok((piece.place(from.min(index), to.min(index), Some(index)), !room))
}

/// The values under some keys, as an object; and the names that are still to be looked for where it is full.
fn values(
    content: &mut dyn Content,
    place: &Place,
    names: &[String],
    limits: &ReadLimits,
) -> Result<(Piece, Vec<String>), JsonError> {
    let mut list = List::object(limits.max_bytes);
    let mut left: Vec<&String> = Vec::new();
    let mut seen = HashSet::new();
    left.extend(names.iter().filter(|it| seen.insert(*it)));
    let mut scanner = scanner(content, place.at)?;
    let mut children = scanner.children(Container::Object)?;
    let (mut key, mut keep) = (Keep::up_to(MAX_KEY), Keep::up_to(limits.max_bytes));
    let mut full = false;
    while !left.is_empty() && children.next(&mut scanner, &mut key)? {
        keep.clear();
        let Some(at) = left.iter().position(|it| key_is(&key.bytes, it)) else {
            scanner.value(&mut Keep::nothing())?;
            continue;
        };
        scanner.value(&mut keep)?;
        let steps: Vec<Step> =
            place.steps.iter().cloned().chain([Step::Name(left[at].clone())]).collect();
        let prefix = format!("{}: ", String::from_utf8_lossy(&key.bytes));
        full = !list.push_or_name(&prefix, &keep.bytes, keep.length, &steps);
        if full {
            break;
        }
        left.remove(at);
    }
    let (found, note) = (list.count, list.note());
    let piece = Piece::text(list.finish(), "application/json", Unit::Keys);
    if full {
        let said = format!("there is no room for all; {} of those asked for are left", left.len());
        let left = left.into_iter().cloned().collect();
        return Ok((piece.place(0, found, None).note(note).note(Some(said)), left));
    }
    let absent: Vec<&str> = left.iter().take(20).map(|it| it.as_str()).collect();
    let more = if absent.len() < left.len() { ", …" } else { "" };
    let none =
        (!absent.is_empty()).then(|| format!("there are no keys {}{more}", absent.join(", ")));
    Ok((piece.place(0, found, Some(found)).note(note).note(none), Vec::new()))
}
