//! `toolcrib check`: everything that is wrong.

mod definitions;

use std::{process::ExitCode, sync::Arc};

use serde_json::json;
use toolcrib::Workspace;
use toolcrib_catalogue::{Problem, Severity, Source, SourceState};
use toolcrib_sources::{
    asyncapi::Care,
    mcp::Connection,
    python::{Python, Summary},
};

use super::{Failure, unused};
use crate::terminal::{self, GREEN, RED, styled};

pub(crate) async fn run(
    workspace: &Workspace,
    as_json: bool,
    all_hints: bool,
) -> Result<ExitCode, Failure> {
    let servers = workspace.start(&workspace.server_names());
    let own = workspace.start_own(false, unused(), Care::Official, &terminal::installing).await;
    terminal::wait_for_python(own.python.as_ref()).await;
    terminal::wait_for(&servers).await;
    let states: Vec<Checked> = servers.iter().map(Checked::of).collect();
    let summary = own.python.as_ref().map(Python::summary).filter(|it| 0 < it.files);
    let built = workspace.catalogue(&servers, &own);
    workspace.close().await;
    own.close().await;
    let (catalogue, listings, found) = built?;
    let looked = definitions::look(workspace, &listings, all_hints || as_json);
    let mut problems =
        [workspace.problems.as_slice(), &workspace.warnings, &found, &looked].concat();
    // The worst first; else in the order of what they are about.
    problems.sort_by_key(|it| it.severity);
    let tools = catalogue.entries().len();
    let text = if as_json {
        listed(&states, summary.as_ref(), &workspace.disabled(), &problems, tools)
    } else {
        shown(&states, summary.as_ref(), &workspace.disabled(), &problems, tools)
    };
    terminal::print(&text)?;
    let fails = problems.iter().any(|it| it.severity == Severity::Problem);
    Ok(if fails { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// How one server was found.
struct Checked {
    name: String,
    ready: bool,
    revision: Option<&'static str>,
    tools: usize,
}

impl Checked {
    fn of(server: &Arc<Connection>) -> Self {
        Self {
            name: server.label().to_owned(),
            ready: server.state() == SourceState::Ready,
            revision: server.greeting().map(|it| it.revision.as_str()),
            tools: server.tools().len(),
        }
    }
}

fn listed(
    states: &[Checked],
    own: Option<&Summary>,
    disabled: &[&str],
    problems: &[Problem],
    tools: usize,
) -> String {
    let servers: Vec<_> = states
        .iter()
        .map(|it| {
            let state = if it.ready { "ready" } else { "failed" };
            json!({ "name": it.name, "state": state, "revision": it.revision, "tools": it.tools })
        })
        .collect();
    let mut report = json!({
        "problems": problems,
        "servers": servers,
        "disabled": disabled,
        "tools": tools,
    });
    if let Some(own) = own {
        report["python"] = json!({ "version": own.python, "files": own.files, "tools": own.tools });
    }
    format!("{report:#}\n")
}

fn shown(
    states: &[Checked],
    own: Option<&Summary>,
    disabled: &[&str],
    problems: &[Problem],
    tools: usize,
) -> String {
    let mut text = String::new();
    if let Some(own) = own {
        let state =
            if own.python.is_empty() { styled(RED, "failed") } else { styled(GREEN, "ready ") };
        text.push_str(&format!("{state}  {own}\n"));
    }
    for server in states {
        let name = terminal::clean(&server.name);
        text.push_str(&match server.revision.filter(|_| server.ready) {
            Some(revision) => {
                let ok = styled(GREEN, "ready ");
                format!("{ok}  {name}: {}, protocol {revision}\n", count(server.tools, "tool"))
            }
            None => format!("{}  {name}\n", styled(RED, "failed")),
        });
    }
    for name in disabled {
        text.push_str(&format!("off     {}\n", terminal::clean(name)));
    }
    text.push_str(&terminal::problems(problems));
    let (servers, found) = (count(states.len(), "server"), found(problems));
    text.push_str(&format!("{servers}, {} in the catalogue, {found}\n", count(tools, "tool")));
    text
}

/// How much was found: `no problems, 2 warnings`.
fn found(problems: &[Problem]) -> String {
    let of = |severity| problems.iter().filter(|it| it.severity == severity).count();
    let told = |severity: Severity| match (severity, of(severity)) {
        (Severity::Problem, 0) => Some("no problems".to_owned()),
        (_, 0) => None,
        (severity, n) => Some(count(n, severity.as_str())),
    };
    Severity::ALL.into_iter().filter_map(told).collect::<Vec<_>>().join(", ")
}

pub(super) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sort_is_counted_and_shown_apart() {
        let of = |severity, what| Problem::of(severity, "here", what).hint("do this");
        let mixed =
            [of(Severity::Hint, "c"), of(Severity::Warning, "b"), of(Severity::Problem, "a")];
        assert_eq!(found(&[]), "no problems");
        assert_eq!(found(&mixed), "1 problem, 1 warning, 1 hint");
        let twice = [mixed[1].clone(), mixed[1].clone(), mixed[0].clone()];
        assert_eq!(found(&twice), "no problems, 2 warnings, 1 hint");
        let text = anstream::adapter::strip_str(&terminal::problems(&mixed)).to_string();
        let expected = "problem: here: a\n   hint: do this\nwarning: here: b\n   hint: do this\n\
                        hint: here: c\n   better: do this\n";
        assert_eq!(text, expected);
    }
}
