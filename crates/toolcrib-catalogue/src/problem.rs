//! What is wrong, where, and what to do about it.
//!
//! Loading never fails as a whole: it returns what works plus a list of these.

use std::fmt;

use serde::Serialize;

/// One thing that is wrong with a workspace. They sort the worst first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Problem {
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: `mcp.json:4:12: server git: args`, or `server git`.
    pub subject: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it, if we know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// How much a problem matters. Only the first makes `toolcrib check` fail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something does not work, or not as it is written.
    #[default]
    Problem,
    /// It works, and somebody should know what that may cost.
    Warning,
    /// It could be better, which is a matter of taste.
    Hint,
}

impl Severity {
    /// All of them, the worst first.
    pub const ALL: [Self; 3] = [Self::Problem, Self::Warning, Self::Hint];

    /// As it is printed.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Problem => "problem",
            Self::Warning => "warning",
            Self::Hint => "hint",
        }
    }
}

impl Problem {
    /// A problem without a hint.
    pub fn new(subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(Severity::Problem, subject, message)
    }

    /// Something to be told that does not make `toolcrib check` fail.
    pub fn warning(subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self::of(Severity::Warning, subject, message)
    }

    /// One that matters this much.
    pub fn of(severity: Severity, subject: impl Into<String>, message: impl Into<String>) -> Self {
        Self { severity, subject: subject.into(), message: message.into(), hint: None }
    }

    /// The same problem, with what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.subject, self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

/// The word of `known` that `typed` was probably meant to be, for a "did you mean".
///
/// ```
/// use toolcrib_catalogue::nearest;
///
/// assert_eq!(nearest("comand", ["command", "args"]), Some("command"));
/// assert_eq!(nearest("zzz", ["command", "args"]), None);
/// ```
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (typed.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|word| (edits(typed, word), word))
        .filter(|&(edits, _)| edits <= limit)
        .min()
        .map(|(_, word)| word)
}

/// How many letters to insert, drop or replace to get from `a` to `b`; case does not count.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().flat_map(char::to_lowercase).collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().flat_map(char::to_lowercase).enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &y) in b.iter().enumerate() {
            let replace = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replace.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
