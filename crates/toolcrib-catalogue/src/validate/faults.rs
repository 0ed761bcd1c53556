//! What is wrong with a value, told so that whoever sent it can mend it in one turn.

use std::fmt;

use super::given::{Given, Kind};

/// How many faults are told.
pub(super) const TOLD: usize = 20;

/// How much of a value is quoted.
const QUOTED: usize = 40;

/// One thing that is wrong with a value.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// Where, as a JSON pointer: `/filter/from`. Of a missing member, where it should be.
    pub path: String,
    /// The keyword of the schema that says so: `maximum`, `required`, `type`.
    pub keyword: &'static str,
    /// What is asked for: `be at most 100`.
    pub expected: String,
    /// What is there instead, cut short.
    pub found: String,
    /// What was probably meant; of several forms, the one that came nearest and what it lacks.
    pub nearest: Option<String>,
}

/// Everything that is wrong with a value, up to a limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Faults {
    pub(super) subject: &'static str,
    pub(super) list: Vec<Fault>,
    pub(super) more: usize,
    pub(super) exhausted: bool,
}

impl Faults {
    /// The faults, in the order of the schema and the value.
    pub fn list(&self) -> &[Fault] {
        &self.list
    }

    /// How many more there are than are listed.
    pub fn more(&self) -> usize {
        self.more
    }

    /// Whether the check was given up because the value and the schema together are too much work;
    /// nothing is then known about the value.
    pub fn is_exhausted(&self) -> bool {
        self.exhausted
    }

    /// What is wrong, without anything of the value itself: for logs and records, which outlive the caller.
    ///
    /// ```
    /// use toolcrib_catalogue::{Formats, Json, Validator};
    ///
    /// let schema = Json::parse(r#"{"properties":{"password":{"pattern":"^[A-Z]"}}}"#)?;
    /// let validator = Validator::read(&schema, Formats::Asserted)?;
    /// let faults = validator.check(&Json::parse(r#"{"password":"hunter2"}"#)?).unwrap_err();
    /// assert_eq!(faults.discreet(), "The arguments do not fit: `password` must match ^[A-Z] (pattern)");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn discreet(&self) -> String {
        let list = self.list.iter().map(|it| Fault {
            found: String::new(),
            nearest: None,
            path: it.known_path().to_owned(),
            ..it.clone()
        });
        let list = list.collect();
        Told { faults: &Self { list, ..*self }, by_parent: true }.to_string()
    }

    /// What is said of arguments whose check did not come to its end: nothing is known of them, and so they do not fit.
    pub fn unknown() -> Self {
        let said = "the check itself failed, and nothing is let through unchecked".to_owned();
        Self::single(super::ARGUMENTS, "check", said)
    }

    pub(super) fn single(subject: &'static str, keyword: &'static str, said: String) -> Self {
        let fault = Fault {
            path: String::new(),
            keyword,
            expected: said,
            found: String::new(),
            nearest: None,
        };
        Self { subject, list: vec![fault], more: 0, exhausted: keyword == "budget" }
    }
}

impl std::error::Error for Faults {}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Told { faults: self, by_parent: false }.fmt(f)
    }
}

/// Faults in words.
struct Told<'f> {
    faults: &'f Faults,
    /// Whether a member that the schema does not know is told by where it stands, not by its name.
    by_parent: bool,
}

impl fmt::Display for Told<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Faults { subject, list, more, exhausted } = self.faults;
        if *exhausted {
            let verb = if subject.ends_with('s') { "are" } else { "is" };
            let why = "too large, or nested too deep, to be checked against the schema";
            return write!(f, "The {subject} {verb} {why}");
        }
        write!(f, "The {subject} do")?;
        f.write_str(if subject.ends_with('s') { " not fit: " } else { "es not fit: " })?;
        for (index, fault) in list.iter().enumerate() {
            if index > 0 {
                f.write_str("; ")?;
            }
            match self.by_parent && fault.is_about_a_name() {
                true => fault.write_nameless(f, subject)?,
                false => fault.write(f, subject)?,
            }
        }
        match more {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(f, "value")
    }
}

impl Fault {
    /// The fault after the pointer to its place, for those who put the value into another one.
    pub(super) fn placed(&self) -> String {
        let said = match self.keyword {
            "json" | "budget" | "check" => self.expected.clone(),
            "required" | "dependentRequired" => format!("is missing ({})", self.keyword),
            "additionalProperties" | "unevaluatedProperties" => {
                format!("is not known ({}){}", self.keyword, self.expected)
            }
            _ => {
                let whole = self.to_string();
                whole.split_once(" must ").map_or(whole.clone(), |(_, it)| format!("must {it}"))
            }
        };
        if self.path.is_empty() { said } else { format!("{}: {said}", self.path) }
    }

    /// Whether the last step of its path is a name that whoever sent the value chose.
    fn is_about_a_name(&self) -> bool {
        matches!(self.keyword, "additionalProperties" | "unevaluatedProperties" | "propertyNames")
    }

    /// Its path, without the name that it is about.
    fn known_path(&self) -> &str {
        match self.path.rsplit_once('/') {
            Some((parent, _)) if self.is_about_a_name() => parent,
            _ => &self.path,
        }
    }

    fn place(&self, subject: &str) -> String {
        match self.path.is_empty() {
            true => format!("the {subject}"),
            false => format!("`{}`", dotted(&self.path)),
        }
    }

    fn write_nameless(&self, f: &mut fmt::Formatter<'_>, subject: &str) -> fmt::Result {
        let (place, Self { keyword, expected, .. }) = (self.place(subject), self);
        match *keyword {
            "propertyNames" => write!(f, "a name in {place} must {expected} ({keyword})"),
            _ => write!(f, "there is something unknown in {place} ({keyword}){expected}"),
        }
    }

    fn write(&self, f: &mut fmt::Formatter<'_>, subject: &str) -> fmt::Result {
        let place = self.place(subject);
        let nearest = self.nearest.as_deref();
        match (self.keyword, nearest) {
            ("json" | "budget" | "check", _) => f.write_str(&self.expected),
            ("propertyNames", _) => {
                write!(f, "the name {place} must {} (propertyNames)", self.expected)
            }
            ("anyOf" | "oneOf", Some(form)) => {
                write!(f, "{place} must {} ({}), nearest is {form}", self.expected, self.keyword)
            }
            ("required" | "dependentRequired", None) => {
                write!(f, "{place} is missing ({}{})", self.keyword, self.expected)
            }
            ("required" | "dependentRequired", Some(other)) => {
                write!(f, "{place} is missing ({}), was `{other}` meant to be it?", self.keyword)
            }
            ("additionalProperties" | "unevaluatedProperties", None) => {
                write!(f, "there is no {place}{}", self.expected)
            }
            ("additionalProperties" | "unevaluatedProperties", Some(meant)) => {
                write!(f, "there is no {place}, did you mean `{meant}`?")
            }
            (keyword, _) => {
                write!(f, "{place} must {} ({keyword})", self.expected)?;
                if !self.found.is_empty() {
                    write!(f, ", found {}", self.found)?;
                }
                nearest.map_or(Ok(()), |it| write!(f, ", did you mean {it}?"))
            }
        }
    }
}

/// `/a/0/b` as people write it, `a[0].b`, where every step is a plain name.
fn dotted(pointer: &str) -> String {
    let plain = |it: &str| {
        !it.is_empty() && it.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '$'))
    };
    let steps: Vec<&str> = pointer.split('/').skip(1).collect();
    if !steps.iter().all(|it| plain(it)) {
        return match steps.as_slice() {
            [step] if !step.contains(['~', '`']) => (*step).to_owned(),
            _ => pointer.to_owned(),
        };
    }
    let mut told = String::new();
    for step in steps {
        let index = !told.is_empty() && step.bytes().all(|it| it.is_ascii_digit());
        let (before, after) = match (index, told.is_empty()) {
            (true, _) => ("[", "]"),
            (false, true) => ("", ""),
            (false, false) => (".", ""),
        };
        told.extend([before, step, after]);
    }
    told
}

/// What a value is, in a few words and never at length.
pub(super) fn told(value: &Given<'_>) -> String {
    match &value.kind {
        Kind::Null => "null".to_owned(),
        Kind::Bool(it) => it.to_string(),
        Kind::Number(it) => short(it),
        Kind::Text(it) => text_told(it),
        Kind::List(list) if list.is_empty() => "an empty array".to_owned(),
        Kind::List(list) => format!("an array of {}", list.len()),
        Kind::Object(map) if map.is_empty() => "an empty object".to_owned(),
        Kind::Object(map) => {
            let keys: Vec<String> = map.iter().take(3).map(|(key, _)| short(key)).collect();
            let more = if map.len() > 3 { ", …" } else { "" };
            format!("an object with {}{more}", keys.join(", "))
        }
    }
}

/// A text in quotes.
pub(super) fn text_told(text: &str) -> String {
    format!("\"{}\"", short(text))
}

/// The beginning of a text, and nothing of it that a terminal would act on.
pub(super) fn short(text: &str) -> String {
    let mut told = String::new();
    for (index, c) in text.chars().enumerate() {
        if index == QUOTED {
            told.push('…');
            break;
        }
        match c.is_control() {
            true => told.extend(c.escape_default()),
            false => told.push(c),
        }
    }
    told
}

/// The way to a value, from the inside out.
#[derive(Clone, Copy)]
pub(super) struct Path<'p> {
    pub(super) parent: Option<&'p Self>,
    pub(super) step: Step<'p>,
}

#[derive(Clone, Copy)]
pub(super) enum Step<'p> {
    Root,
    Key(&'p str),
    Index(usize),
}

impl Path<'_> {
    pub(super) const ROOT: Path<'static> = Path { parent: None, step: Step::Root };

    pub(super) fn key<'n>(&'n self, key: &'n str) -> Path<'n> {
        Path { parent: Some(self), step: Step::Key(key) }
    }

    pub(super) fn index(&self, index: usize) -> Path<'_> {
        Path { parent: Some(self), step: Step::Index(index) }
    }

    pub(super) fn pointer(&self) -> String {
        let mut steps = Vec::new();
        let mut here = Some(self);
        while let Some(path) = here {
            steps.push(path.step);
            here = path.parent;
        }
        let mut pointer = String::new();
        for step in steps.into_iter().rev() {
            match step {
                Step::Root => {}
                Step::Key(key) => {
                    pointer.push('/');
                    pointer.push_str(&short(key).replace('~', "~0").replace('/', "~1"));
                }
                Step::Index(index) => pointer.push_str(&format!("/{index}")),
            }
        }
        pointer
    }
}

/// Where faults go. A quiet one only wants to know whether there are any.
#[derive(Default)]
pub(super) struct Sink {
    pub(super) loud: bool,
    pub(super) faults: Vec<Fault>,
    pub(super) more: usize,
    /// Faults put into words, those that were told already too.
    made: usize,
}

impl Sink {
    pub(super) fn quiet() -> Self {
        Self::default()
    }

    pub(super) fn loud() -> Self {
        Self { loud: true, ..Self::default() }
    }

    pub(super) fn put(&mut self, make: impl FnOnce() -> Fault) {
        if !self.loud {
            return;
        }
        if !self.is_full() {
            self.made += 1;
            let fault = make();
            // Two schemas may say the same about the same value.
            if !self.faults.contains(&fault) {
                self.faults.push(fault);
            }
        } else {
            self.more += 1;
        }
    }

    /// Whether no more are told.
    pub(super) fn is_full(&self) -> bool {
        TOLD <= self.faults.len() || 2 * TOLD <= self.made
    }

    /// Notes a fault unless `fits`; says whether it does.
    pub(super) fn test(
        &mut self,
        fits: bool,
        path: &Path<'_>,
        keyword: &'static str,
        say: impl FnOnce() -> (String, String),
    ) -> bool {
        if !fits {
            self.put(|| {
                let (expected, found) = say();
                Fault { path: path.pointer(), keyword, expected, found, nearest: None }
            });
        }
        fits
    }
}
