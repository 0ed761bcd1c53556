//! `toolcrib status` and `toolcrib servers`: how a running gateway is, and seeing to its servers.

use std::{path::Path, process::ExitCode};

use serde_json::{Value, json};
use toolcrib::{Claim, Data, Desk, DeskError, environment};

use super::Failure;
use crate::{
    cli::{At, ServersCommand},
    terminal::{self, BOLD, DIM, GREEN, RED, YELLOW, styled},
};

pub(crate) async fn run(workspace: &Path, at: &At, as_json: bool) -> Result<ExitCode, Failure> {
    let desk = reach(workspace, at)?;
    let told = desk.get("/api/status").await.map_err(|it| failed(&it, at))?;
    if as_json {
        let text = format!("{told:#}\n");
        let watched = terminal::is_watched();
        terminal::print_raw(&if watched { terminal::clean_json(&text) } else { text })?;
    } else {
        terminal::print(&in_words(&told))?;
    }
    let ready = told["ready"] == true;
    Ok(if ready { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

pub(crate) async fn servers(what: ServersCommand) -> Result<ExitCode, Failure> {
    let ServersCommand::Restart { name, at, json: as_json, workspace } = what;
    let desk = reach(&workspace, &at)?;
    let body = json!({ "name": name });
    let told = desk.post("/api/servers/restart", &body).await.map_err(|it| failed(&it, &at))?;
    let text = match as_json {
        true => format!("{told:#}\n"),
        false => format!("{} {}\n", terminal::clean(&name), styled(GREEN, "is started anew")),
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The gateway at an address, or the one that owns the workspace.
fn reach(workspace: &Path, at: &At) -> Result<Desk, Failure> {
    if let Some(url) = &at.url {
        let token = at.token_env.as_ref().map(|variable| {
            let unset = format!("the variable `{variable}` is not set");
            environment(variable).ok_or_else(|| Failure::unusable(unset))
        });
        let token = token.transpose()?;
        return Desk::at(url, token.as_deref()).map_err(|it| Failure::unusable(it.to_string()));
    }
    let folder = if workspace.is_file() { workspace.parent() } else { Some(workspace) };
    let folder = folder.and_then(|it| it.canonicalize().ok());
    let missing = || Failure::unusable(format!("there is no folder `{}`", workspace.display()));
    let folder = folder.ok_or_else(missing)?;
    // A folder in which nobody ever served is left as it is.
    let claim = folder.join(".toolcrib").is_dir().then(|| Data::claim(&folder));
    match claim {
        Some(Claim::Taken(owner)) => Ok(Desk::of(owner)),
        Some(Claim::Ours(_) | Claim::Unusable(_)) | None => {
            let message = format!("no gateway serves `{}`", workspace.display());
            let hint = "start one with `toolcrib serve`, or name one elsewhere with --url";
            Err(Failure::said_no(message).hint(Some(hint.to_owned())))
        }
    }
}

fn failed(error: &DeskError, at: &At) -> Failure {
    let hint = match error {
        DeskError::Refused { status: 401, .. } if at.token_env.is_none() => {
            Some("name the variable that holds the token: --token-env")
        }
        DeskError::Refused { status: 403, .. } => Some("use the token of such a group"),
        DeskError::Silent(_) => Some("is it running? `toolcrib serve` says where it listens"),
        _ => None,
    };
    Failure::said_no(error.to_string()).hint(hint.map(str::to_owned))
}

fn in_words(told: &Value) -> String {
    let text = |key: &str| terminal::clean(told[key].as_str().unwrap_or_default());
    let ready = match told["ready"] == true {
        true => styled(GREEN, "ready"),
        false => styled(YELLOW, "not ready"),
    };
    let up = span(told["uptime_s"].as_u64().unwrap_or_default());
    let line =
        |name: &str, said: &str| format!("  {}  {said}\n", styled(DIM, &format!("{name:<8}")));
    let mut all =
        format!("{} {}, {ready}, up {up}\n", styled(BOLD, &text("name")), text("version"));
    let group = match told["operator"] == true {
        true => format!("{} tools for group {}", told["tools"], text("group")),
        false => {
            format!("{} tools for group {}, which is no operator", told["tools"], text("group"))
        }
    };
    all.push_str(&line("tools", &group));
    if let Some(clients) = told["clients"].as_u64() {
        all.push_str(&line("clients", &clients.to_string()));
    }
    let sources = told["sources"].as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: Vec<[String; 5]> = sources.iter().map(row).collect();
    if !rows.is_empty() {
        all.push_str(&terminal::table(["SOURCE", "STATE", "FOR", "TOOLS", "LAST ERROR"], &rows));
    }
    let problems = told["problems"].as_array().map(Vec::as_slice).unwrap_or_default();
    for it in problems.iter().filter(|it| it["severity"] != "hint") {
        let text = |key: &str| terminal::clean(it[key].as_str().unwrap_or_default());
        let mark = match it["severity"] == "problem" {
            true => styled(RED, "problem"),
            false => styled(YELLOW, "warning"),
        };
        all.push_str(&format!("{mark}: {}: {}\n", text("subject"), text("message")));
        if it["hint"].is_string() {
            all.push_str(&format!("  {}\n", text("hint")));
        }
    }
    all
}

fn row(it: &Value) -> [String; 5] {
    let text = |value: &Value| terminal::clean(value.as_str().unwrap_or_default());
    let since = it["since_s"].as_u64().map(span).unwrap_or_default();
    let tools = it["tools"].as_u64().unwrap_or_default().to_string();
    let cause = if it["cause"].is_string() { &it["cause"] } else { &it["last_error"]["cause"] };
    [text(&it["name"]), text(&it["state"]), since, tools, text(cause)]
}

/// Seconds for a person.
fn span(seconds: u64) -> String {
    match seconds {
        0..120 => format!("{seconds} s"),
        120..7_200 => format!("{} min", seconds / 60),
        7_200..172_800 => format!("{} h", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}
