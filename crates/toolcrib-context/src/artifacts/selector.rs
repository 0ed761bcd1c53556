//! What to read of an artifact, as a model asks for it, as a URI says it and as it is meant.
//!
//! All three are the same few words with a text each (`lines` with `0:20`, `path` with `$.items`), so there is one
//! reader and one writer of them. The original's selectors (`{"type": "lines", "start": 0, "end": 20}`) are
//! understood too.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How much `head` and `tail` give where nobody says.
const CHARS: u64 = 2000;

/// How many groups are shown where nobody says.
const TOP: u64 = 50;

/// How many measures, and how many tests, are taken at once.
pub(super) const MOST: usize = 16;

/// A stretch of lines, rows or bytes, counted from 0, the end not included. Below 0 counts from the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first.
    pub start: i64,
    /// The one behind the last; to the end where there is none.
    pub end: Option<i64>,
}

/// What to read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Map<String, Value>", into = "Map<String, Value>")]
pub enum Selector {
    /// The first characters.
    Head {
        /// How many.
        chars: u64,
        /// Not from the beginning, but from this byte.
        offset: u64,
    },
    /// The last characters.
    Tail {
        /// How many.
        chars: u64,
    },
    /// Lines.
    Lines {
        /// Which.
        range: Range,
        /// So many bytes of the first are left out: a line may be longer than a piece.
        skip: u64,
    },
    /// Rows of CSV, elements of a JSON array, lines of JSON.
    Rows {
        /// Which; the heading of a CSV is not one of them.
        range: Range,
        /// Where in a JSON document the array is.
        path: Option<String>,
    },
    /// The keys of a JSON object, with what is under each; or the values under some of them.
    Keys {
        /// Where the object is; `$` is the whole.
        path: String,
        /// Those whose values are wanted; all are listed where none is named.
        names: Vec<String>,
        /// The first of them to be shown.
        from: u64,
    },
    /// Values by JSONPath (RFC 9535).
    Path {
        /// Which.
        path: String,
        /// Where the path leads to one place: from this byte of the value on. Else: from this value on.
        from: u64,
    },
    /// Lines that match a regular expression.
    Grep {
        /// The expression.
        pattern: String,
        /// Whether capitals are told apart from small letters.
        ignore_case: bool,
        /// How many lines around each.
        context: u64,
        /// So many matches are left out.
        from: u64,
    },
    /// Counts and sums over rows.
    Aggregate(Aggregate),
    /// Bytes as they are.
    Bytes {
        /// Which.
        range: Range,
    },
}

/// Counts and sums over rows, perhaps for each group of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aggregate {
    /// What is wanted, and of which column; a count may be of none.
    pub measures: Vec<(Measure, Option<String>)>,
    /// For each value of this column.
    pub group_by: Option<String>,
    /// Only rows for which all of these hold.
    pub tests: Vec<Test>,
    /// How many groups are shown, those with the largest first measure first.
    pub top: u64,
    /// So many groups are left out.
    pub from: u64,
    /// Where in a JSON document the array is.
    pub path: Option<String>,
}

/// What can be asked of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// How many rows, or how many in which the column is not empty.
    Count,
    /// The sum of its numbers.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
    /// The mean of its numbers.
    Avg,
}

/// That a column is a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Test {
    /// Which.
    pub column: String,
    /// Whether it has to be, or must not.
    pub equal: bool,
    /// The value.
    pub value: String,
}

/// Why something cannot be asked like that.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectorError {
    /// No such word.
    #[error("there is no selector `{0}`; there are {words}", words = WORDS.join(", "))]
    Unknown(String),
    /// Words that exclude each other.
    #[error("`{0}` and `{1}` cannot be asked for together")]
    Both(String, String),
    /// A word that says nothing without another.
    #[error("`{0}` needs one of {1}")]
    Alone(String, &'static str),
    /// A value that cannot be read.
    #[error("`{word}` takes {takes}, not `{given}`")]
    Value {
        /// Of which word.
        word: String,
        /// What would do.
        takes: &'static str,
        /// What there was.
        given: String,
    },
}

const WORDS: &[&str] = &[
    "head",
    "tail",
    "lines",
    "rows",
    "keys",
    "path",
    "grep",
    "count",
    "sum",
    "min",
    "max",
    "avg",
    "bytes",
    "offset",
    "skip",
    "from",
    "context",
    "ignore_case",
    "group_by",
    "where",
    "top",
];

const MEASURES: [(&str, Measure); 5] = [
    ("count", Measure::Count),
    ("sum", Measure::Sum),
    ("min", Measure::Min),
    ("max", Measure::Max),
    ("avg", Measure::Avg),
];

impl Default for Selector {
    fn default() -> Self {
        Self::Head { chars: CHARS, offset: 0 }
    }
}

impl Measure {
    /// As it is asked for.
    pub fn word(self) -> &'static str {
        MEASURES.iter().find(|(_, it)| *it == self).map_or("count", |(word, _)| word)
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.start)?;
        self.end.map_or(Ok(()), |end| write!(f, "{end}"))
    }
}

impl FromStr for Range {
    type Err = ();

    /// `2:5`, `2:`, `:5`, `-5:`, `7` for one alone.
    fn from_str(text: &str) -> Result<Self, ()> {
        let number = |it: &str| it.trim().parse::<i64>().map_err(|_why| ());
        let Some((start, end)) = text.split_once(':') else {
            let start = number(text)?;
            let end = if start == -1 { None } else { Some(start.checked_add(1).ok_or(())?) };
            return Ok(Self { start, end });
        };
        let start = if start.trim().is_empty() { 0 } else { number(start)? };
        let end = if end.trim().is_empty() { None } else { Some(number(end)?) };
        Ok(Self { start, end })
    }
}

impl Range {
    /// From `start` to before `end`.
    pub fn new(start: u64, end: u64) -> Self {
        let end = i64::try_from(end).ok();
        Self { start: i64::try_from(start).unwrap_or(i64::MAX), end }
    }

    /// Whether it counts from the end, so that one must know where that is.
    pub fn needs_total(&self) -> bool {
        self.start < 0 || self.end.is_some_and(|it| it < 0)
    }

    /// First and behind the last, where there are `total`.
    pub fn resolve(&self, total: Option<u64>) -> (u64, u64) {
        let whole = total.unwrap_or(u64::MAX);
        let at = |place: i64| match u64::try_from(place) {
            Ok(place) => place.min(whole),
            Err(_) => whole.saturating_sub(place.unsigned_abs()),
        };
        let start = at(self.start);
        (start, self.end.map_or(whole, at).max(start))
    }
}

impl Test {
    /// `status=open`, `status!=open`.
    fn read(text: &str) -> Option<Self> {
        let (column, value) = text.split_once('=')?;
        let (column, equal) = column.strip_suffix('!').map_or((column, true), |it| (it, false));
        let value = value.strip_prefix('=').unwrap_or(value);
        let column = column.trim();
        (!column.is_empty()).then(|| Self {
            column: column.to_owned(),
            equal,
            value: value.to_owned(),
        })
    }
}

impl fmt::Display for Test {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The second sign keeps a value that begins with one.
        write!(f, "{}{}{}", self.column, if self.equal { "==" } else { "!==" }, self.value)
    }
}

/// Words with their texts, in the order of their being written.
pub(super) struct Words(pub(super) Vec<(String, String)>);

impl Words {
    fn take(&mut self, word: &str) -> Option<String> {
        let at = self.0.iter().position(|(it, _)| it == word)?;
        Some(self.0.remove(at).1)
    }

    fn number(&mut self, word: &str, default: u64) -> Result<u64, SelectorError> {
        let Some(given) = self.take(word) else { return Ok(default) };
        if given.is_empty() {
            return Ok(default);
        }
        given.trim().parse().map_err(|_why| bad(word, "a number", &given))
    }

    fn range(word: &str, given: &str) -> Result<Range, SelectorError> {
        given.parse().map_err(|()| bad(word, "a range such as 0:20", given))
    }

    /// The one thing that is asked for; whatever is left over does not belong to it.
    pub(super) fn read(mut self) -> Result<Selector, SelectorError> {
        if let Some((word, _)) = self.0.iter().find(|(it, _)| !WORDS.contains(&it.as_str())) {
            return Err(SelectorError::Unknown(word.clone()));
        }
        let selector = self.main()?;
        match self.0.first() {
            None => Ok(selector),
            Some((word, _)) => Err(match selector.to_words().first() {
                Some((main, _)) => SelectorError::Both(main.clone(), word.clone()),
                None => SelectorError::Alone(word.clone(), "lines, rows, keys, path or grep"),
            }),
        }
    }

    fn main(&mut self) -> Result<Selector, SelectorError> {
        if self.0.iter().any(|(it, _)| MEASURES.iter().any(|(word, _)| word == it)) {
            return self.aggregate();
        }
        if let Some((word, _)) =
            self.0.iter().find(|(it, _)| matches!(it.as_str(), "group_by" | "where" | "top"))
        {
            return Err(SelectorError::Alone(word.clone(), "count, sum, min, max, avg"));
        }
        if let Some(given) = self.take("lines") {
            let range = Self::range("lines", &given)?;
            return Ok(Selector::Lines { range, skip: self.number("skip", 0)? });
        }
        if let Some(given) = self.take("rows") {
            let range = Self::range("rows", &given)?;
            return Ok(Selector::Rows { range, path: self.take("path") });
        }
        if let Some(given) = self.take("keys") {
            return self.keys(&given);
        }
        if let Some(path) = self.take("path") {
            return Ok(Selector::Path { path, from: self.number("from", 0)? });
        }
        if let Some(pattern) = self.take("grep") {
            let ignore_case = self.take("ignore_case").is_some_and(|it| it != "false");
            let (context, from) = (self.number("context", 0)?, self.number("from", 0)?);
            return Ok(Selector::Grep { pattern, ignore_case, context, from });
        }
        if let Some(given) = self.take("bytes") {
            return Ok(Selector::Bytes { range: Self::range("bytes", &given)? });
        }
        if self.0.iter().any(|(it, _)| it == "tail") {
            return Ok(Selector::Tail { chars: self.number("tail", CHARS)? });
        }
        let chars = self.number("head", CHARS)?;
        Ok(Selector::Head { chars, offset: self.number("offset", 0)? })
    }

    /// `$.a` for the keys there; `a,b` or `["a", "b"]` for the values under those; nothing for all.
    fn keys(&mut self, given: &str) -> Result<Selector, SelectorError> {
        let mut path = self.take("path").unwrap_or_else(|| "$".to_owned());
        let mut names = Vec::new();
        if given.starts_with('$') {
            path = given.to_owned();
        } else if given.starts_with('[') {
            names = serde_json::from_str(given)
                .map_err(|_why| bad("keys", "a list of names", given))?;
        } else if !matches!(given, "" | "*" | "true") {
            names = given.split(',').map(|it| it.trim().to_owned()).collect();
        }
        Ok(Selector::Keys { path, names, from: self.number("from", 0)? })
    }

    fn aggregate(&mut self) -> Result<Selector, SelectorError> {
        let mut measures = Vec::new();
        for (word, measure) in MEASURES {
            while let Some(given) = self.take(word) {
                let column = Some(given).filter(|it| !matches!(it.as_str(), "" | "*" | "true"));
                if column.is_none() && measure != Measure::Count {
                    return Err(bad(word, "a column", ""));
                }
                add(&mut measures, (measure, column), word)?;
            }
        }
        let mut tests = Vec::new();
        while let Some(given) = self.take("where") {
            let test = Test::read(&given).ok_or_else(|| bad("where", "column=value", &given))?;
            add(&mut tests, test, "where")?;
        }
        Ok(Selector::Aggregate(Aggregate {
            measures,
            group_by: self.take("group_by"),
            tests,
            top: self.number("top", TOP)?.max(1),
            from: self.number("from", 0)?,
            path: self.take("path"),
        }))
    }
}

/// Adds one that is not there yet, where there is room.
fn add<T: PartialEq>(list: &mut Vec<T>, one: T, word: &str) -> Result<(), SelectorError> {
    if list.contains(&one) {
        return Ok(());
    }
    if MOST <= list.len() {
        return Err(bad(
            word,
            "sixteen of its kind at most; ask for the others by themselves",
            "…",
        ));
    }
    list.push(one);
    Ok(())
}

fn bad(word: &str, takes: &'static str, given: &str) -> SelectorError {
    let given = given.chars().take(100).collect();
    SelectorError::Value { word: word.to_owned(), takes, given }
}

impl Selector {
    /// As words with a text each; the main one comes first.
    pub(super) fn to_words(&self) -> Vec<(String, String)> {
        let mut words = Vec::new();
        let mut add = |word: &str, text: String| words.push((word.to_owned(), text));
        match self {
            Self::Head { chars, offset } => {
                add("head", chars.to_string());
                some(&mut add, "offset", *offset);
            }
            Self::Tail { chars } => add("tail", chars.to_string()),
            Self::Lines { range, skip } => {
                add("lines", range.to_string());
                some(&mut add, "skip", *skip);
            }
            Self::Rows { range, path } => {
                add("rows", range.to_string());
                if let Some(path) = path {
                    add("path", path.clone());
                }
            }
            Self::Keys { path, names, from } => {
                if names.is_empty() {
                    add("keys", path.clone());
                } else {
                    add("keys", Value::from(names.clone()).to_string());
                    add("path", path.clone());
                }
                some(&mut add, "from", *from);
            }
            Self::Path { path, from } => {
                add("path", path.clone());
                some(&mut add, "from", *from);
            }
            Self::Grep { pattern, ignore_case, context, from } => {
                add("grep", pattern.clone());
                if *ignore_case {
                    add("ignore_case", "true".to_owned());
                }
                some(&mut add, "context", *context);
                some(&mut add, "from", *from);
            }
            Self::Aggregate(it) => it.add_words(&mut add),
            Self::Bytes { range } => add("bytes", range.to_string()),
        }
        words
    }
}

impl Aggregate {
    fn add_words(&self, add: &mut impl FnMut(&str, String)) {
        for (measure, column) in &self.measures {
            add(measure.word(), column.clone().unwrap_or_else(|| "*".to_owned()));
        }
        for (word, text) in [("group_by", &self.group_by), ("path", &self.path)] {
            if let Some(text) = text {
                add(word, text.clone());
            }
        }
        for test in &self.tests {
            add("where", test.to_string());
        }
        if self.top != TOP {
            add("top", self.top.to_string());
        }
        some(add, "from", self.from);
    }
}

/// Adds a number that is not the usual 0.
fn some(add: &mut impl FnMut(&str, String), word: &str, number: u64) {
    if number != 0 {
        add(word, number.to_string());
    }
}
