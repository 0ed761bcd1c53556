//! What a summary shows of a large result: what it is, how much of it, and what is in it.
//!
//! Found in one pass over the content, with little memory. What looks like JSON and turns out not to be is plain text.

use std::io::{self, Read as _, SeekFrom};

use serde::Serialize;

use super::{
    Content,
    format::Format,
    json::{Container, JsonError, JsonType, Keep, MAX_KEY, Passed, unquoted},
    locate::scanner,
    slice::Node,
    table::{Row, Table},
    text::{Shown, scan},
};

/// How many keys or columns are named.
const NAMES: usize = 40;

/// How many rows are looked at for their columns.
const SAMPLE: u64 = 200;

/// How much of the beginning is shown.
const HEAD: u64 = 500;

/// How long a name or a fact may be.
const WORD: usize = 100;

/// What some content is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Shape {
    /// How it is laid out.
    pub kind: Kind,
    /// How large it is.
    pub size_bytes: u64,
    /// What it should be called.
    pub media_type: String,
    /// Its first characters; empty where it is no text.
    pub head: String,
    /// Single values at its top, as `key: value`.
    pub facts: Vec<String>,
}

/// How content is laid out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// A JSON object.
    Object {
        /// Its first keys.
        keys: Vec<Field>,
        /// How many it has.
        total: u64,
    },
    /// A JSON array.
    Array {
        /// How many elements it has.
        items: u64,
        /// What they are, the commonest first.
        of: Vec<JsonType>,
        /// The keys of the first of them that are objects.
        columns: Vec<Field>,
    },
    /// JSON documents, one a line.
    JsonLines {
        /// How many.
        items: u64,
        /// The keys of the first of them.
        columns: Vec<Field>,
    },
    /// CSV.
    Table {
        /// How many rows, without the heading.
        rows: u64,
        /// The heading.
        columns: Vec<String>,
    },
    /// A JSON value that is neither object nor array.
    Value {
        /// What it is.
        of: JsonType,
    },
    /// Plain text.
    Text {
        /// How many lines.
        lines: u64,
    },
    /// No text.
    Binary,
}

/// A key and what is under it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Field {
    /// The key.
    pub name: String,
    /// What is under it.
    #[serde(rename = "type")]
    pub kind: JsonType,
    /// How many members or elements that has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub items: Option<u64>,
}

impl Field {
    fn new(raw: &[u8], passed: Passed) -> Self {
        let name = unquoted(raw).chars().take(WORD).collect();
        let has_items = matches!(passed.kind, JsonType::Array | JsonType::Object);
        Self { name, kind: passed.kind, items: has_items.then_some(passed.children) }
    }

    fn shown(&self) -> String {
        let items = self.items.map_or_else(String::new, |it| format!(" of {it}"));
        format!("{} ({}{items})", self.name, self.kind.word())
    }
}

/// What some content is. `media_type` is what it is said to be.
pub fn describe(content: &mut dyn Content, media_type: &str) -> io::Result<Shape> {
    let mut format = Format::of(content, media_type)?;
    let mut facts = Vec::new();
    let kind = match kind(content, format, &mut facts) {
        Ok(kind) => kind,
        Err(JsonError::Io(error)) => return Err(error),
        // It began like JSON.
        Err(_) => {
            (format, facts) = (Format::Text, Vec::new());
            Kind::Text { lines: scan(content, 0, u64::MAX)?.0 }
        }
    };
    let size_bytes = content.seek(SeekFrom::End(0))?;
    content.seek(SeekFrom::Start(0))?;
    let mut first = Vec::new();
    if format != Format::Binary {
        content.take(4 * HEAD).read_to_end(&mut first)?;
    }
    let head = Shown::of(&first, HEAD, usize::MAX, true).text;
    Ok(Shape { kind, size_bytes, media_type: named(media_type, format), head, facts })
}

/// What it should be called: by what it is, unless its name says as much or more.
fn named(media_type: &str, format: Format) -> String {
    let plain = matches!(media_type, "" | "text/plain" | "application/octet-stream")
        || media_type.starts_with("text/plain;");
    let wrong = media_type == "application/json" && !matches!(format, Format::Json);
    if plain || wrong { format.media_type().to_owned() } else { media_type.to_owned() }
}

fn kind(
    content: &mut dyn Content,
    format: Format,
    facts: &mut Vec<String>,
) -> Result<Kind, JsonError> {
    match format {
        Format::Binary => Ok(Kind::Binary),
        Format::Text => Ok(Kind::Text { lines: scan(content, 0, u64::MAX)?.0 }),
        Format::Table(_) => Ok(table(content, format)?),
        Format::JsonLines => {
            let (items, _, columns) = elements(content, Container::Documents)?;
            Ok(Kind::JsonLines { items, columns })
        }
        Format::Json => {
            let mut scanner = scanner(content, 0)?;
            let first = scanner.peek(&mut Keep::nothing())?;
            drop(scanner);
            match first.and_then(JsonType::of) {
                Some(JsonType::Object) => object(content, facts),
                Some(JsonType::Array) => {
                    let (items, of, columns) = elements(content, Container::Array)?;
                    Ok(Kind::Array { items, of, columns })
                }
                _ => {
                    let mut scanner = self::scanner(content, 0)?;
                    let of = scanner.value(&mut Keep::nothing())?.kind;
                    nothing_follows(&mut scanner)?;
                    Ok(Kind::Value { of })
                }
            }
        }
    }
}

fn nothing_follows(scanner: &mut super::json::Scanner<'_>) -> Result<(), JsonError> {
    match scanner.peek(&mut Keep::nothing())? {
        None => Ok(()),
        Some(_) => scanner.syntax("expected the end"),
    }
}

fn table(content: &mut dyn Content, format: Format) -> io::Result<Kind> {
    let other = |error: super::PieceError| io::Error::other(error.to_string());
    let mut table = Table::open(content, format.media_type(), None, "rows").map_err(other)?;
    let (mut row, mut rows) = (Row::new(), 0);
    while table.next(&mut row).map_err(other)? {
        rows += 1;
    }
    let columns = match &table {
        Table::Cells(cells) => {
            cells.columns.iter().take(NAMES).map(|it| it.chars().take(WORD).collect()).collect()
        }
        Table::Values(_) => Vec::new(),
    };
    Ok(Kind::Table { rows, columns })
}

fn object(content: &mut dyn Content, facts: &mut Vec<String>) -> Result<Kind, JsonError> {
    let mut scanner = scanner(content, 0)?;
    let mut children = scanner.children(Container::Object)?;
    let (mut key, mut keep) = (Keep::up_to(MAX_KEY), Keep::up_to(2 * WORD));
    let (mut keys, mut total) = (Vec::new(), 0);
    while children.next(&mut scanner, &mut key)? {
        keep.clear();
        let passed = scanner.value(&mut keep)?;
        total += 1;
        if keys.len() < NAMES {
            let field = Field::new(&key.bytes, passed);
            if field.items.is_none() && keep.is_whole() && facts.len() < 20 {
                let value: String = Node::new(&keep.bytes).cell();
                facts.push(format!("{}: {value}", field.name));
            }
            keys.push(field);
        }
    }
    nothing_follows(&mut scanner)?;
    Ok(Kind::Object { keys, total })
}

type Elements = (u64, Vec<JsonType>, Vec<Field>);

fn elements(content: &mut dyn Content, container: Container) -> Result<Elements, JsonError> {
    let mut scanner = scanner(content, 0)?;
    let mut children = scanner.children(container)?;
    let (mut items, mut types, mut nothing) = (0, [0_u64; 6], Keep::nothing());
    let (mut columns, mut keep): (Vec<Field>, _) = (Vec::new(), Keep::up_to(MAX_KEY));
    while children.next(&mut scanner, &mut Keep::nothing())? {
        let sampled = items < SAMPLE;
        keep.clear();
        let passed =
            if sampled { scanner.value(&mut keep)? } else { scanner.value(&mut nothing)? };
        types[passed.kind as usize] += 1;
        items += 1;
        if sampled && keep.is_whole() && passed.kind == JsonType::Object {
            add_columns(&mut columns, Node::new(&keep.bytes));
        }
    }
    nothing_follows(&mut scanner)?;
    let all = [
        JsonType::Object,
        JsonType::Array,
        JsonType::String,
        JsonType::Number,
        JsonType::Boolean,
        JsonType::Null,
    ];
    let mut of: Vec<JsonType> = all.into_iter().filter(|it| 0 < types[*it as usize]).collect();
    of.sort_by_key(|it| std::cmp::Reverse(types[*it as usize]));
    Ok((items, of, columns))
}

/// Keys that were not seen before; one that was `null` so far is what it turns out to be.
fn add_columns(columns: &mut Vec<Field>, node: Node<'_>) {
    for child in node.children().take(10 * NAMES) {
        let (Some(key), Some(kind)) = (child.key, child.value.kind()) else { continue };
        let name: String = unquoted(key).chars().take(WORD).collect();
        if let Some(known) = columns.iter_mut().find(|it| it.name == name) {
            if known.kind == JsonType::Null {
                known.kind = kind;
            }
        } else if columns.len() < NAMES {
            columns.push(Field { name, kind, items: None });
        }
    }
}

impl Shape {
    /// One line for a reader: `JSON array of 1200 objects with id (number), name (string); 48213 bytes`.
    pub fn line(&self) -> String {
        let fields =
            |fields: &[Field]| fields.iter().map(Field::shown).collect::<Vec<_>>().join(", ");
        let with =
            |fields: String| if fields.is_empty() { fields } else { format!(" with {fields}") };
        let what = match &self.kind {
            Kind::Object { keys, total } => {
                let more = if (keys.len() as u64) < *total { ", …" } else { "" };
                format!("JSON object of {total} keys{}{more}", with(fields(keys)))
            }
            Kind::Array { items, of, columns } => {
                let of = match of.as_slice() {
                    [] => String::new(),
                    [one] => format!(" ({}s)", one.word()),
                    many => format!(
                        " ({})",
                        many.iter().map(|it| it.word()).collect::<Vec<_>>().join(", ")
                    ),
                };
                format!("JSON array of {items} elements{of}{}", with(fields(columns)))
            }
            Kind::JsonLines { items, columns } => {
                format!("{items} JSON lines{}", with(fields(columns)))
            }
            Kind::Table { rows, columns } => {
                format!("CSV table of {rows} rows{}", with(columns.join(", ")))
            }
            Kind::Value { of } => format!("JSON {}", of.word()),
            Kind::Text { lines } => format!("text of {lines} lines"),
            Kind::Binary => self.media_type.clone(),
        };
        format!("{what}; {} bytes", self.size_bytes)
    }
}
