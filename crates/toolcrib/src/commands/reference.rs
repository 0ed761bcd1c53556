//! `toolcrib reference FOLDER`, which nobody is shown: writes the pages of `docs/reference` from what the program itself
//! goes by, so that they cannot say anything else. A test compares them with those that are committed.

mod typed;
mod keys;

use std::{fmt::Write, fs, io, path::Path, process::ExitCode};

use toolcrib_server::{
    BLAMES, CODES, Endpoint, META_KEYS, Meaning, OUTCOMES, RPC_CODES, Who, endpoints,
};

use super::{EXIT_CODES, Failure, schema};
use crate::cli::SchemaFile;

pub(crate) fn run(folder: &Path) -> Result<ExitCode, Failure> {
    let write = || {
        fs::create_dir_all(folder)?;
        pages().into_iter().try_for_each(|(name, text)| fs::write(folder.join(name), text))
    };
    let fail = |error: io::Error| Failure::unusable(format!("`{}`: {error}", folder.display()));
    write().map_err(fail)?;
    Ok(ExitCode::SUCCESS)
}

fn pages() -> [(&'static str, String); 5] {
    [
        ("commands.md", typed::page()),
        ("network-yaml.md", keys::page(&NETWORK, &schema::of(SchemaFile::Network))),
        ("mcp-json.md", keys::page(&MCP, &schema::of(SchemaFile::Mcp))),
        ("http.md", http()),
        ("errors.md", errors()),
    ]
}

/// What every page begins with.
const MADE: &str =
    "<!-- Made from the code by `toolcrib reference`; a test says so when it is stale. -->";

const NETWORK: keys::About = keys::About {
    title: "network.yaml: every key",
    text: "What the sections are for and how they work together: [network.yaml](../network-yaml.md). \
           For editors: [a JSON Schema](../schema/network.schema.json), which `toolcrib schema network` prints.",
};

const MCP: keys::About = keys::About {
    title: "mcp.json: every key",
    text: "How names come about, and what variables do: [mcp.json](../mcp-json.md). \
           For editors: [a JSON Schema](../schema/mcp.schema.json), which `toolcrib schema mcp` prints.",
};

/// A table of Markdown. A bar in a cell would end it.
fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let line = |cells: Vec<String>| {
        let cells: Vec<String> = cells.iter().map(|it| it.replace('|', "\\|")).collect();
        format!("| {} |\n", cells.join(" | "))
    };
    let mut text = line(head.iter().map(|it| (*it).to_owned()).collect());
    text.push_str(&format!("|{}\n", "---|".repeat(head.len())));
    text.extend(rows.into_iter().map(line));
    text
}

fn code(text: impl std::fmt::Display) -> String {
    format!("`{text}`")
}

fn http() -> String {
    let row = |it: Endpoint| {
        let who = match it.who {
            Who::Public => "everybody",
            Who::Admitted => "whoever is let in",
            Who::Operators => "operators",
        };
        vec![code(it.method), code(it.path), who.to_owned(), it.about.to_owned()]
    };
    let (api, door): (Vec<_>, Vec<_>) =
        endpoints().into_iter().partition(|it| it.path.starts_with("/api"));
    let head = ["method", "path", "who", "what"];
    format!(
        "{MADE}\n# HTTP: every endpoint\n\n\
         Whoever is let in has a token, as `Authorization: Bearer TOKEN`, or comes to a gateway that asks for none \
         ([who is asking](../network-yaml.md#who-is-asking)). Operators have a token of a group with `operator: true`, or are on \
         this machine where there are no tokens. Anything else is answered with 404, another method with 405, a `Host` or \
         `Origin` that is not ours with 403, a missing or unknown token with 401, too many unknown ones with 429.\n\n\
         {}\n## What the console asks for\n\n\
         It may change with the [page](../console.md); scripts are better off with the [commands](commands.md). Answers are \
         JSON, and a refusal has `error`.\n\n{}",
        table(&head, door.into_iter().map(row)),
        table(&head, api.into_iter().map(row)),
    )
}

fn errors() -> String {
    let words = |list: &[Meaning]| {
        let rows: Vec<_> =
            list.iter().map(|(it, about)| vec![code(it), (*about).to_owned()]).collect();
        table(&["word", "means"], rows)
    };
    let numbers = RPC_CODES.iter().map(|(it, about)| vec![code(it), (*about).to_owned()]);
    let exits = EXIT_CODES.iter().map(|(it, about)| vec![code(it), (*about).to_owned()]);
    let mut text = format!(
        "{MADE}\n# Errors: every code and word\n\n\
         A tool that fails, and a call that is refused, bring a *result* with `isError: true` and a text that a model can act \
         on. Only what is no call of a known tool brings an *error* of JSON-RPC. `toolcrib why --call ID` tells the story of a \
         call ([audit.md](../audit.md)).\n"
    );
    let mut section = |title: &str, about: &str, table: &str| {
        write!(text, "\n## {title}\n\n{about}\n\n{table}").ok();
    };
    let meta = "What toolcrib adds to `_meta` of a result. What a server sends under names of ours is taken out.";
    section("In a result", meta, &words(&META_KEYS));
    section(
        "`toolcrib/blame`",
        "Whose fault it was; the audit record says it too.",
        &words(&BLAMES),
    );
    section("`toolcrib/code`", "Why toolcrib refused a call.", &words(&CODES));
    let outcome = "How a call ended, in the [audit record](../audit.md), in the console, and for `toolcrib audit show --outcome`.";
    section("Outcomes", outcome, &words(&OUTCOMES));
    let rpc = "Those that toolcrib itself sends. Errors of servers are handed on as they are.";
    section("Errors of JSON-RPC", rpc, &table(&["code", "means"], numbers));
    let exit = "Of every command; each says more in its [`--help`](commands.md).";
    section("Exit codes", exit, &table(&["code", "means"], exits));
    text
}
