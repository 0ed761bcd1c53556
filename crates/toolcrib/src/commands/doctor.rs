//! `toolcrib doctor`: whether everything is there that a gateway needs, each line with its cure.
//!
//! It looks, and starts none of the servers: whether they work is for `toolcrib check` to say.

mod programs;
mod surroundings;

use std::{path::Path, process::ExitCode};

use serde::Serialize;
use serde_json::json;
use toolcrib::{Network, NetworkError, OpenError, TOKENS_FILE, Workspace, environment};
use toolcrib_catalogue::{Problem, Severity};
use toolcrib_sources::mcp::Lists;

use super::{Failure, check::count};
use crate::{
    cli::Doctor,
    terminal::{self, CYAN, GREEN, RED, YELLOW, clean, styled},
};

/// How something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Warning,
    Error,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Line {
    state: State,
    subject: String,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    cure: Option<String>,
}

impl Line {
    fn new(state: State, subject: &str, message: impl Into<String>) -> Self {
        Self { state, subject: subject.to_owned(), message: message.into(), cure: None }
    }

    fn ok(subject: &str, message: impl Into<String>) -> Self {
        Self::new(State::Ok, subject, message)
    }

    fn warning(subject: &str, message: impl Into<String>) -> Self {
        Self::new(State::Warning, subject, message)
    }

    fn error(subject: &str, message: impl Into<String>) -> Self {
        Self::new(State::Error, subject, message)
    }

    fn cure(self, cure: impl Into<String>) -> Self {
        Self { cure: Some(cure.into()), ..self }
    }
}

impl From<&Problem> for Line {
    fn from(problem: &Problem) -> Self {
        let state = match problem.severity {
            Severity::Problem => State::Error,
            Severity::Warning => State::Warning,
            Severity::Hint => State::Ok,
        };
        let cure = problem.hint.clone();
        Self { cure, ..Self::new(state, &problem.subject, &problem.message) }
    }
}

pub(crate) async fn run(asked: &Doctor) -> Result<ExitCode, Failure> {
    let lines = look(&asked.workspace).await;
    terminal::print(&if asked.json { listed(&lines) } else { shown(&lines) })?;
    let fails = lines.iter().any(|it| it.state == State::Error);
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn look(folder: &Path) -> Vec<Line> {
    let mut lines = programs::ourselves();
    let workspace = match Workspace::open(folder, &environment, Lists::Tools) {
        Ok(workspace) => workspace,
        Err(error) => {
            lines.push(unopened(&error));
            return lines;
        }
    };
    let network = Network::read(&workspace.folder, &environment);
    if let Ok(network) = &network {
        terminal::hide(workspace.masker(network));
    }
    let parts = ["mcp.json", "network.yaml", "tools", "events", "mods"];
    let there = parts.iter().filter(|it| workspace.folder.join(it).exists());
    let there: Vec<&str> = there.copied().collect();
    let place = workspace.folder.display();
    lines.push(Line::ok("workspace", format!("{place} has {}", there.join(", "))));
    let found = workspace.problems.iter().chain(&workspace.warnings);
    // What is wrong with tokens is told with the tokens.
    let told = network.as_ref().err().map(ToString::to_string);
    let found =
        found.filter(|it| told.as_ref() != Some(&format!("{}: {}", it.subject, it.message)));
    lines.extend(found.map(Line::from));
    match &network {
        Ok(network) => lines.extend(configured(&workspace, network).await),
        Err(error) => lines.push(unreadable(error)),
    }
    lines.extend(programs::servers(&workspace).await);
    lines.extend(surroundings::rights(&workspace.folder));
    lines.push(surroundings::room(&workspace.folder));
    lines
}

/// What depends on `network.yaml`.
async fn configured(workspace: &Workspace, network: &Network) -> Vec<Line> {
    let python = programs::python(&network.python).await;
    let address = surroundings::address(workspace, network).await;
    let tokens = surroundings::tokens(network);
    let key = network.tls.as_ref().map(|(_, key)| surroundings::secret_file("tls", key));
    [vec![python, address], tokens, key.into_iter().flatten().collect()].concat()
}

fn unopened(error: &OpenError) -> Line {
    let (subject, message) = match error {
        OpenError::Unreadable(problem) => (problem.subject.as_str(), problem.message.clone()),
        OpenError::NoFolder(_) | OpenError::Empty(_) => ("workspace", error.to_string()),
    };
    Line { cure: error.hint(), ..Line::error(subject, message) }
}

fn unreadable(error: &NetworkError) -> Line {
    match error {
        NetworkError::Token { key, cause } => Line::error(&format!("network.yaml: {key}"), cause)
            .cure("set it before `toolcrib serve`, which refuses to start without it"),
        NetworkError::Tokens(cause) => Line::error(TOKENS_FILE, cause)
            .cure("restore it, or remove it and make new tokens: `toolcrib token new GROUP`"),
        NetworkError::Unreadable { .. } | NetworkError::Value { .. } => {
            let text = error.to_string();
            let (subject, message) = text.split_once(": ").unwrap_or(("network.yaml", &text));
            Line::error(subject, message)
                .cure("put it right; docs/reference/network-yaml.md knows every key")
        }
    }
}

fn shown(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines {
        let mark = match line.state {
            State::Ok => styled(GREEN, "ok     "),
            State::Warning => styled(YELLOW.bold(), "warning"),
            State::Error => styled(RED.bold(), "error  "),
        };
        let (subject, message) = (clean(&line.subject), clean(&line.message));
        text.push_str(&format!("{mark}  {subject}: {message}\n"));
        if let Some(cure) = &line.cure {
            text.push_str(&format!("         {} {}\n", styled(CYAN, "cure:"), clean(cure)));
        }
    }
    let of = |state| lines.iter().filter(|it| it.state == state).count();
    let errors = match of(State::Error) {
        0 => "no errors".to_owned(),
        number => count(number, "error"),
    };
    let warnings = match of(State::Warning) {
        0 => String::new(),
        number => format!(", {}", count(number, "warning")),
    };
    format!("{text}{errors}{warnings}\n")
}

fn listed(lines: &[Line]) -> String {
    let of = |state| lines.iter().filter(|it| it.state == state).count();
    let report = json!({
        "lines": lines,
        "errors": of(State::Error),
        "warnings": of(State::Warning),
    });
    format!("{report:#}\n")
}
