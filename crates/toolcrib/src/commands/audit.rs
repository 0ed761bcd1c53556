//! `toolcrib audit`, and `toolcrib why --call`: what the audit record says.
//!
//! All of it only reads, and needs nobody's leave: it works beside a running gateway.

mod show;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use serde_json::{Value, json};
use toolcrib::{AUDIT_FOLDER, Workspace};
use toolcrib_server::{Verified, find_call, verify};

use super::{Failure, open};
use crate::{
    cli::AuditCommand,
    terminal::{self, BOLD, GREEN, RED, YELLOW, styled},
};

pub(crate) async fn run(what: AuditCommand) -> Result<ExitCode, Failure> {
    match what {
        AuditCommand::Verify { workspace, json } => check(&workspace, json),
        AuditCommand::Show { wanted, lines, workspace } => {
            show::show(&folder(&open(&workspace)?), &wanted, lines)
        }
        AuditCommand::Tail { wanted, lines, count, workspace } => {
            let folder = folder(&open(&workspace)?);
            show::tail(&folder, &wanted, lines, count).await
        }
    }
}

fn check(workspace: &Path, json: bool) -> Result<ExitCode, Failure> {
    let found = verify(&folder(&open(workspace)?)).map_err(|it| unreadable(&it))?;
    terminal::print(&if json { as_json(&found) } else { in_words(&found) })?;
    Ok(if found.broken.is_none() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn folder(workspace: &Workspace) -> PathBuf {
    workspace.folder.join(".toolcrib").join(AUDIT_FOLDER)
}

fn unreadable(error: &std::io::Error) -> Failure {
    Failure::unusable(format!("the audit record cannot be read: {error}"))
}

fn as_json(found: &Verified) -> String {
    let report = json!({
        "good": found.broken.is_none(), "records": found.records, "files": found.files,
        "first": found.first, "last": found.last, "hash": found.hash,
        "broken": found.broken, "notes": found.notes,
    });
    format!("{report:#}\n")
}

fn in_words(found: &Verified) -> String {
    let mut text = String::new();
    if 0 < found.records {
        let Verified { records, first, last, files, hash, .. } = found;
        text.push_str(&format!(
            "{records} records as they were written, {first} to {last}, in {files} files\n  hash of record {last}: {hash}\n"
        ));
    }
    for note in &found.notes {
        text.push_str(&format!("  {note}\n"));
    }
    if let Some(broken) = &found.broken {
        let line = if broken.line == 0 { String::new() } else { format!(", line {}", broken.line) };
        text.push_str(&format!(
            "{} at record {} ({}{line}): {}\n",
            styled(RED, "broken"),
            broken.seq,
            broken.file,
            broken.cause
        ));
    }
    text
}

/// Tells the story of one call.
pub(crate) fn tell(workspace: &Workspace, id: &str) -> Result<ExitCode, Failure> {
    let record = find_call(&folder(workspace), id).map_err(|it| unreadable(&it))?;
    let Some(record) = record else {
        let message = format!("there is no call `{}` on record", terminal::clean(id));
        let hint = "ids stand in `_meta` of errors as `toolcrib/call`, in the log, and in .toolcrib/audit/; records are kept as long as `audit: retain` says";
        return Err(Failure::said_no(message).hint(Some(hint.to_owned())));
    };
    terminal::print(&Story(&record).tell())?;
    Ok(ExitCode::SUCCESS)
}

struct Story<'a>(&'a Value);

impl Story<'_> {
    fn text(&self, key: &str) -> Option<String> {
        self.0[key].as_str().map(terminal::clean)
    }

    fn said(&self, key: &str) -> String {
        self.text(key).unwrap_or_else(|| "?".to_owned())
    }

    fn tell(&self) -> String {
        let outcome = self.said("outcome");
        let style = match outcome.as_str() {
            "ok" => GREEN,
            "tool_error" | "invalid_arguments" | "unknown_tool" | "limited" | "cancelled" => YELLOW,
            _ => RED,
        };
        let id = self.said("call");
        let head = format!("call {} ended: {}\n", styled(BOLD, &id), styled(style, &outcome));
        let lines = [
            ("when", Some(self.when())),
            ("who", Some(self.who())),
            ("tool", Some(self.tool())),
            ("sent", Some(self.sent())),
            ("checked", Some(self.checked())),
            ("outcome", Some(self.outcome(&outcome))),
            ("cause", self.text("cause")),
            ("result", Some(self.result())),
            ("trace", self.text("trace")),
            ("record", Some(format!("{} of the audit record", self.0["seq"]))),
            ("do", advice(&outcome, self.0["blame"].as_str()).map(str::to_owned)),
        ];
        let lines = lines.into_iter().filter_map(|(key, text)| Some((key, text?)));
        head + &lines.map(|(key, text)| format!("  {key:<8}  {text}\n")).collect::<String>()
    }

    fn when(&self) -> String {
        let retries = match self.0["retries"].as_u64() {
            None | Some(0) => String::new(),
            Some(1) => ", tried once more".to_owned(),
            Some(times) => format!(", tried {times} times more"),
        };
        format!("ended {}, after {} ms{retries}", self.said("ts"), self.0["ms"])
    }

    fn who(&self) -> String {
        let from = self.text("client").map(|it| format!(", from {it}")).unwrap_or_default();
        format!("{} in group {}{from}", self.said("who"), self.said("group"))
    }

    fn tool(&self) -> String {
        let source = match self.text("source") {
            Some(source) => format!(" of {source}"),
            None => ", which led to no source".to_owned(),
        };
        let hash = self.text("definition");
        let hash = hash.and_then(|it| it.get(..16).map(str::to_owned));
        let hash = hash.map(|it| format!(" (definition {it}…)")).unwrap_or_default();
        format!("{}{source}{hash}", self.said("tool"))
    }

    fn sent(&self) -> String {
        let sent = &self.0["arguments"];
        let digest = sent["digest"].as_str().map(terminal::clean).unwrap_or_default();
        let text = sent["text"].as_str().map(|it| format!(": {}", terminal::clean(it)));
        format!("{} bytes of arguments, digest {digest}{}", sent["bytes"], text.unwrap_or_default())
    }

    /// What stood between the caller and the tool, in its order, as far as it came.
    fn checked(&self) -> String {
        let rule = self.text("rule");
        let order = ["request", "access", "pins", "arguments", "idempotency"];
        match rule.as_deref() {
            None => "everything let it through".to_owned(),
            Some(rule) => {
                let limited = self.0["outcome"] == "limited";
                let at = order.iter().position(|it| *it == rule);
                // Limits come last, each under a name of its own.
                let at = if limited { Some(order.len()) } else { at };
                let passed = at.map(|at| order[..at].join(", ")).filter(|it| !it.is_empty());
                let passed = passed.map(|it| format!("{it} let it through; ")).unwrap_or_default();
                format!("{passed}`{rule}` decided")
            }
        }
    }

    fn outcome(&self, outcome: &str) -> String {
        let blame = match self.0["blame"].as_str() {
            Some("caller") => "; the caller's doing",
            Some("upstream") => "; the server's doing",
            Some("gateway") => "; toolcrib's doing",
            _ => "",
        };
        let code = self.0["code"].as_i64().map(|it| format!(", error {it}")).unwrap_or_default();
        let cache = self.text("cache").map(|it| format!(", cache: {it}")).unwrap_or_default();
        format!("{}{code}{cache}{blame}", meaning(outcome))
    }

    fn result(&self) -> String {
        let result = &self.0["result"];
        let kept = self.0["artifacts"].as_array().into_iter().flatten();
        let kept: Vec<String> = kept.filter_map(Value::as_str).map(terminal::clean).collect();
        let kept = if kept.is_empty() {
            String::new()
        } else {
            format!("; stored as {} (`toolcrib artifact read ID`)", kept.join(", "))
        };
        let text = result["text"].as_str().map(|it| format!(": {}", terminal::clean(it)));
        format!("{} bytes{kept}{}", result["bytes"], text.unwrap_or_default())
    }
}

fn meaning(outcome: &str) -> &str {
    match outcome {
        "ok" => "the tool answered",
        "tool_error" => "the tool said that it failed",
        "invalid_arguments" => "the arguments did not fit, nothing ran",
        "unknown_tool" => "there was no such tool for this caller, nothing ran",
        "denied" => "a rule forbade it, nothing ran",
        "limited" => "there were too many calls, nothing ran",
        "held" => "the tool's definition is not what was accepted, nothing ran",
        "cancelled" => "the caller did not wait for the answer",
        "timeout" => "no answer came in time",
        "too_large" => "the result was larger than may be",
        "upstream_error" => "the server gave no result",
        "gateway_error" => "toolcrib could not do it",
        other => other,
    }
}

fn advice(outcome: &str, blame: Option<&str>) -> Option<&'static str> {
    Some(match outcome {
        "invalid_arguments" => "`toolcrib tools --json` shows what the tool takes",
        "unknown_tool" => "`toolcrib why NAME --group GROUP` says why a tool is hidden",
        "denied" => "look at the rules of the group in network.yaml",
        "limited" => "call less often, or raise the limit in network.yaml",
        "held" => "`toolcrib check` shows what changed; `toolcrib lock` accepts it",
        "timeout" => "give the server more time with `timeout` in mcp.json, if it is only slow",
        "too_large" => "ask for less, or set `results: inline_up_to` in network.yaml",
        "upstream_error" if blame == Some("caller") => {
            "the server did not take the request as it was"
        }
        "upstream_error" => "`toolcrib check` says whether the server works",
        "gateway_error" => "the log of the gateway says more, under this call's id",
        _ => return None,
    })
}
