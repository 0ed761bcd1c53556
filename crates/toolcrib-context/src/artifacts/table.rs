//! Rows: of CSV, of a JSON array, of JSON lines. One after the other, and never more than one in memory.

use std::{
    borrow::Cow,
    io::{self, BufRead, BufReader, SeekFrom},
};

use super::{
    Content, PieceError,
    format::Format,
    json::{Children, Container, JsonError, JsonType, Keep, MAX_KEY, Scanner, unquoted},
    jsonpath::{Step, written},
    locate::{Place, locate, scanner, singular},
    slice::Node,
    text::CHUNK,
};

/// How much of a row is looked at.
pub(super) const MAX_ROW: usize = 1 << 20;

/// Where the record ends that `text` begins with, its line end included; the end of `text` if it does not.
pub(super) fn record_length(text: &[u8], delimiter: u8) -> usize {
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|it| memchr::memchr2(b'\n', b'"', it)) {
        at += found + 1;
        if text[at - 1] == b'\n' {
            return at;
        }
        // A quote opens a cell only where one begins; else it is a character like any other.
        if at == 1 || text[at - 2] == delimiter {
            at += quoted_length(&text[at..]);
        }
    }
    text.len()
}

/// How long the inside of a quoted cell is, with the quote that ends it. Two quotes stand for one.
fn quoted_length(text: &[u8]) -> usize {
    let mut at = 0;
    while let Some(found) = text.get(at..).and_then(|it| memchr::memchr(b'"', it)) {
        at += found + 1;
        if text.get(at) != Some(&b'"') {
            return at;
        }
        at += 1;
    }
    text.len()
}

/// The cells of a record that has no line end.
pub(super) fn cells(record: &[u8], delimiter: u8) -> impl Iterator<Item = Cow<'_, str>> {
    let mut rest = Some(record);
    std::iter::from_fn(move || {
        let text = rest?;
        let quoted = if text.first() == Some(&b'"') { 1 + quoted_length(&text[1..]) } else { 0 };
        let end = memchr::memchr(delimiter, &text[quoted..]).map(|it| it + quoted);
        rest = end.map(|it| &text[it + 1..]);
        let cell = String::from_utf8_lossy(&text[..end.unwrap_or(text.len())]);
        if quoted == 0 {
            return Some(cell);
        }
        let inner = cell.strip_prefix('"').unwrap_or(&cell);
        let inner = inner.strip_suffix('"').unwrap_or(inner);
        Some(Cow::Owned(inner.replace("\"\"", "\"")))
    })
}

/// One row: its text, up to a limit.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) keep: Keep,
    /// Where in the whole it begins.
    pub(super) at: u64,
}

impl Row {
    pub(super) fn new() -> Self {
        Self { keep: Keep::up_to(MAX_ROW), at: 0 }
    }
}

/// Rows of some content.
pub(super) enum Table<'a> {
    Cells(Cells<'a>),
    Values(Values<'a>),
}

impl<'a> Table<'a> {
    /// The rows that there are, in JSON those of the array at `path`. Where no path is given and the document is an
    /// object with one array in it, that is meant.
    pub(super) fn open(
        content: &'a mut dyn Content,
        media_type: &str,
        path: Option<&str>,
        asked: &'static str,
    ) -> Result<Self, PieceError> {
        let format = Format::of(content, media_type)?;
        if let (Format::Table(delimiter), None) = (format, path) {
            return Ok(Self::Cells(Cells::open(content, delimiter)?));
        }
        let steps = path.map(singular).transpose()?;
        let mut place = locate(content, format, steps.as_deref().unwrap_or_default(), asked)?;
        if steps.is_none() && place.kind == JsonType::Object {
            place = only_array(content, format, asked)?;
        }
        if place.kind != JsonType::Array {
            let found = format!("at `{}` is {}", written(&place.steps), place.kind.a_word());
            return Err(PieceError::Kind { asked, found });
        }
        let values = Values::open(content, place).map_err(|error| error.of(asked))?;
        Ok(Self::Values(values))
    }

    /// Reads the next row; false at the end.
    pub(super) fn next(&mut self, row: &mut Row) -> Result<bool, PieceError> {
        row.keep.clear();
        match self {
            Self::Cells(cells) => Ok(cells.next(row)?),
            Self::Values(values) => values.next(row).map_err(|error| error.of("rows")),
        }
    }

    /// What a row has in a column, by the column's name or number; nothing where it has nothing.
    pub(super) fn cell(&self, row: &Row, column: &str) -> Option<String> {
        match self {
            Self::Cells(cells) => {
                let at = cells.column(column)?;
                let record = row.keep.bytes.trim_ascii_end();
                self::cells(record, cells.delimiter)
                    .nth(at)
                    .map(Cow::into_owned)
                    .filter(|it| !it.is_empty())
            }
            Self::Values(_) => {
                let node = Node::new(&row.keep.bytes);
                let found = member(node, column)?;
                (found.kind() != Some(JsonType::Null)).then(|| found.cell())
            }
        }
    }

    /// Whether such a column can be; in JSON that shows row by row.
    pub(super) fn check(&self, column: &str) -> Result<(), PieceError> {
        match self {
            Self::Cells(cells) if cells.column(column).is_none() => {
                let names: Vec<&str> = cells.columns.iter().take(50).map(String::as_str).collect();
                Err(PieceError::Nothing(format!(
                    "column `{column}`; there are {}",
                    names.join(", ")
                )))
            }
            _ => Ok(()),
        }
    }
}

/// A member of a row: by its name, by the names on the way to it, or by its number.
fn member<'a>(node: Node<'a>, column: &str) -> Option<Node<'a>> {
    if node.kind() == Some(JsonType::Array) {
        return node.element(column.parse().ok()?).map(|(_, it)| it);
    }
    node.member(column).or_else(|| {
        let (first, rest) = column.split_once('.')?;
        member(node.member(first)?, rest)
    })
}

/// The one array among the members of the document.
fn only_array(
    content: &mut dyn Content,
    format: Format,
    asked: &'static str,
) -> Result<Place, PieceError> {
    let arrays = arrays(content).map_err(|error| error.of(asked))?;
    match arrays.as_slice() {
        [one] => locate(content, format, std::slice::from_ref(one), asked),
        [] => Err(PieceError::Kind {
            asked,
            found: "it is an object without an array in it".to_owned(),
        }),
        many => {
            let paths: Vec<String> =
                many.iter().take(10).map(|it| written(std::slice::from_ref(it))).collect();
            let found =
                format!("there are several arrays; say which by `path`: {}", paths.join(", "));
            Err(PieceError::Kind { asked, found })
        }
    }
}

fn arrays(content: &mut dyn Content) -> Result<Vec<Step>, JsonError> {
    let mut scanner = scanner(content, 0)?;
    let mut children = scanner.children(Container::Object)?;
    let (mut key, mut arrays) = (Keep::up_to(MAX_KEY), Vec::new());
    while children.next(&mut scanner, &mut key)? {
        if scanner.value(&mut Keep::nothing())?.kind == JsonType::Array && arrays.len() < 100 {
            arrays.push(Step::Name(unquoted(&key.bytes)));
        }
    }
    Ok(arrays)
}

/// Elements of an array, or documents.
pub(super) struct Values<'a> {
    scanner: Scanner<'a>,
    children: Children,
    pub(super) place: Place,
}

impl<'a> Values<'a> {
    fn open(content: &'a mut dyn Content, place: Place) -> Result<Self, JsonError> {
        let mut scanner = scanner(content, place.at)?;
        let container = if place.documents { Container::Documents } else { Container::Array };
        let children = scanner.children(container)?;
        Ok(Self { scanner, children, place })
    }

    fn next(&mut self, row: &mut Row) -> Result<bool, JsonError> {
        if !self.children.next(&mut self.scanner, &mut Keep::nothing())? {
            return Ok(false);
        }
        self.scanner.peek(&mut Keep::nothing())?;
        row.at = self.scanner.position();
        self.scanner.value(&mut row.keep)?;
        Ok(true)
    }
}

/// Records of CSV.
pub(super) struct Cells<'a> {
    reader: BufReader<&'a mut dyn Content>,
    delimiter: u8,
    /// The first record, as it is written.
    pub(super) heading: Vec<u8>,
    pub(super) columns: Vec<String>,
    at: u64,
    /// A quote was opened and never closed.
    pub(super) unclosed: bool,
}

impl<'a> Cells<'a> {
    fn open(content: &'a mut dyn Content, delimiter: u8) -> io::Result<Self> {
        content.seek(SeekFrom::Start(0))?;
        let reader = BufReader::with_capacity(CHUNK, content);
        let (heading, columns) = (Vec::new(), Vec::new());
        let mut cells = Self { reader, delimiter, heading, columns, at: 0, unclosed: false };
        let mut row = Row::new();
        cells.next(&mut row)?;
        let record = row.keep.bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&row.keep.bytes);
        cells.columns =
            self::cells(record.trim_ascii_end(), delimiter).map(Cow::into_owned).collect();
        cells.heading = record.to_vec();
        Ok(cells)
    }

    fn column(&self, column: &str) -> Option<usize> {
        let named = self.columns.iter().position(|it| it == column);
        let trimmed = || self.columns.iter().position(|it| it.trim() == column.trim());
        let numbered = || column.parse().ok().filter(|it| *it < self.columns.len());
        named.or_else(trimmed).or_else(numbered)
    }

    /// The next record that is not empty.
    fn next(&mut self, row: &mut Row) -> io::Result<bool> {
        loop {
            row.keep.clear();
            row.at = self.at;
            self.record(&mut row.keep)?;
            self.at += row.keep.length;
            if row.keep.length == 0 {
                return Ok(false);
            }
            if !row.keep.bytes.trim_ascii().is_empty() {
                return Ok(true);
            }
        }
    }

    /// One record, with its line end.
    fn record(&mut self, keep: &mut Keep) -> io::Result<()> {
        let mut inside = Inside::Start;
        loop {
            let buffer = self.reader.fill_buf()?;
            if buffer.is_empty() {
                return Ok(());
            }
            let mut used = buffer.len();
            for (at, byte) in buffer.iter().enumerate() {
                inside = inside.then(*byte, self.delimiter);
                // A quote that is never closed must not make one row of all that follows.
                let lost = *byte == b'\n' && MAX_ROW as u64 <= keep.length + at as u64;
                if inside == Inside::End || lost {
                    self.unclosed |= inside != Inside::End;
                    (used, inside) = (at + 1, Inside::End);
                    break;
                }
            }
            keep.push(&buffer[..used]);
            self.reader.consume(used);
            if inside == Inside::End {
                return Ok(());
            }
        }
    }
}

/// Where in a record one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    /// At the beginning of a cell.
    Start,
    Plain,
    Quoted,
    /// Behind a quote in quotes: the end of them, or the first of two.
    Quote,
    /// Behind the end of the record.
    End,
}

impl Inside {
    fn then(self, byte: u8, delimiter: u8) -> Self {
        match (self, byte) {
            (Self::Quoted, b'"') => Self::Quote,
            (Self::Start | Self::Quote, b'"') | (Self::Quoted, _) => Self::Quoted,
            (_, b'\n') => Self::End,
            (_, byte) if byte == delimiter => Self::Start,
            _ => Self::Plain,
        }
    }
}
