//! `toolcrib token`: tokens for groups, made, listed and taken back.

use std::process::ExitCode;

use serde_json::json;
use toolcrib::{MadeToken, Network, TOKENS_FILE, Tokens, Workspace, environment};
use toolcrib_server::Access;

use super::{Failure, open, serve};
use crate::{
    cli::TokenCommand,
    terminal::{self, BOLD, clean, styled},
};

/// The longest note.
const MAX_NOTE: usize = 200;

pub(crate) fn run(what: TokenCommand) -> Result<ExitCode, Failure> {
    match what {
        TokenCommand::New { group, note, json, workspace } => {
            make(&open(&workspace)?, &group, note.as_deref().unwrap_or_default(), json)
        }
        TokenCommand::List { json, workspace } => list(&open(&workspace)?, json),
        TokenCommand::Revoke { id, workspace } => revoke(&open(&workspace)?, &id),
    }
}

fn make(
    workspace: &Workspace,
    group: &str,
    note: &str,
    as_json: bool,
) -> Result<ExitCode, Failure> {
    if MAX_NOTE < note.len() || note.chars().any(char::is_control) {
        let message = format!("a note has up to {MAX_NOTE} characters, on one line");
        return Err(Failure::unusable(message));
    }
    let network = Network::read(&workspace.folder, &environment)?;
    let access = Access::new(&network.access);
    access.local(Some(group)).ok_or_else(|| unknown(group, &access))?;
    let (token, made) = Tokens::make(&workspace.folder, group, note).map_err(|it| failed(&it))?;
    if as_json {
        let report = json!({ "token": token, "id": made.id, "group": made.group, "note": made.note, "created": made.created });
        terminal::print_raw(&format!("{report:#}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    // The token alone goes where a script would take it from.
    terminal::print_raw(&format!("{token}\n"))?;
    let id = &made.id;
    terminal::remark(&format!(
        "token {id} of group {group}: it is shown this once; only its digest is kept"
    ));
    if !access.has_tokens() {
        terminal::remark(
            "from now on callers need a token; `anonymous: true` in network.yaml lets others in too",
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn unknown(group: &str, access: &Access) -> Failure {
    let Failure { hint, message, code } = serve::unknown_group(Some(group), access);
    let hint =
        hint.map(|it| format!("{it}; add it under `external_access: groups:` of network.yaml"));
    Failure { hint, message, code }
}

fn list(workspace: &Workspace, as_json: bool) -> Result<ExitCode, Failure> {
    let tokens =
        Tokens::read(&workspace.folder).map_err(|cause| failed(&std::io::Error::other(cause)))?;
    let text = if as_json {
        let line = |it: &MadeToken| json!({ "id": it.id, "group": it.group, "note": it.note, "created": it.created });
        format!("{:#}\n", tokens.list.iter().map(line).collect::<serde_json::Value>())
    } else if tokens.list.is_empty() {
        "there are no tokens but those that network.yaml names\n".to_owned()
    } else {
        let row = |it: &MadeToken| [&it.id, &it.group, &it.created, &it.note].map(|it| clean(it));
        let rows: Vec<[String; 4]> = tokens.list.iter().map(row).collect();
        terminal::table(["ID", "GROUP", "CREATED", "NOTE"], &rows)
    };
    terminal::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn revoke(workspace: &Workspace, id: &str) -> Result<ExitCode, Failure> {
    let Some(gone) = Tokens::revoke(&workspace.folder, id).map_err(|it| failed(&it))? else {
        let message = format!("there is no token `{}`", clean(id));
        let hint = "`toolcrib token list` shows their ids".to_owned();
        return Err(Failure::said_no(message).hint(Some(hint)));
    };
    let (id, group) = (styled(BOLD, &gone.id), clean(&gone.group));
    terminal::print(&format!("token {id} of group {group} is taken back\n"))?;
    let left = Tokens::read(&workspace.folder).is_ok_and(|it| !it.list.is_empty());
    if !left {
        let open = format!("to let everybody in again, remove {TOKENS_FILE} and restart");
        terminal::remark(&format!("that was the last one, and callers still need one; {open}"));
    }
    Ok(ExitCode::SUCCESS)
}

fn failed(error: &std::io::Error) -> Failure {
    let hint = "may you write there? what cannot be read lets nobody in";
    Failure::unusable(format!("`{TOKENS_FILE}`: {error}")).hint(Some(hint.to_owned()))
}
