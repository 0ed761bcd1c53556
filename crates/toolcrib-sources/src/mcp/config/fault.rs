//! What is wrong in an `mcp.json`, and where.

use std::fmt;

/// One thing that is wrong. Never holds the value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// Line and column, from 1; none where the whole file is meant.
    pub at: Option<(usize, usize)>,
    /// Which server.
    pub server: Option<String>,
    /// Which key.
    pub field: Option<String>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
    /// What it costs.
    pub severity: Severity,
}

/// What a fault costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The server, or the file, cannot be used.
    Error,
    /// It can be used, but perhaps not as it was meant.
    Note,
}

impl ConfigFault {
    /// A fault of the whole file.
    pub(crate) fn of_file(message: impl Into<String>) -> Self {
        let message = message.into();
        Self { at: None, server: None, field: None, message, hint: None, severity: Severity::Error }
    }

    pub(crate) fn at(mut self, at: (usize, usize)) -> Self {
        self.at = Some(at);
        self
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    pub(crate) fn note(mut self) -> Self {
        self.severity = Severity::Note;
        self
    }

    /// `line 3, column 7: server `git`: `args``, as far as known.
    pub fn place(&self) -> String {
        let mut parts = Vec::new();
        if let Some((line, column)) = self.at {
            parts.push(format!("line {line}, column {column}"));
        }
        if let Some(server) = &self.server {
            parts.push(format!("server `{server}`"));
        }
        if let Some(field) = &self.field {
            parts.push(format!("`{field}`"));
        }
        parts.join(": ")
    }
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.place();
        let colon = if place.is_empty() { "" } else { ": " };
        write!(f, "{place}{colon}{}", self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}
