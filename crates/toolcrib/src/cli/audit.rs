//! What can be typed after `toolcrib audit`.

use std::path::PathBuf;

use clap::Subcommand;
use toolcrib_server::OUTCOMES;

#[derive(Debug, Subcommand)]
pub(crate) enum AuditCommand {
    /// Read the whole record and say whether it is as it was written
    #[command(
        after_help = "Exit code: 0 all good, 1 something was changed, removed or added, 2 it cannot be read"
    )]
    Verify {
        /// The folder of the workspace
        #[arg(default_value = ".")]
        workspace: PathBuf,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Show what is on record, the oldest first
    #[command(
        after_help = "Examples:\n  toolcrib audit show --since 1h --outcome tool_error\n  toolcrib audit show --tool 'mcp__db__*' --json | jq .ms"
    )]
    Show {
        #[command(flatten)]
        wanted: Wanted,
        /// Only the last so many
        #[arg(short = 'n', long, value_name = "NUMBER")]
        lines: Option<usize>,
        /// The folder of the workspace
        #[arg(default_value = ".")]
        workspace: PathBuf,
    },
    /// Show the last records, and those that come
    Tail {
        #[command(flatten)]
        wanted: Wanted,
        /// Look back over so many
        #[arg(short = 'n', long, value_name = "NUMBER", default_value_t = 10)]
        lines: usize,
        /// End when so many have been shown
        #[arg(long, value_name = "NUMBER")]
        count: Option<usize>,
        /// The folder of the workspace
        #[arg(default_value = ".")]
        workspace: PathBuf,
    },
}

/// Which records.
#[derive(Debug, clap::Args)]
pub(crate) struct Wanted {
    /// Only calls of this tool; * stands for anything
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// Only what concerns this group
    #[arg(long)]
    pub(crate) group: Option<String>,
    /// Only what is younger than 90s, 30m, 2h or 7d, or came since 2026-01-31 or 2026-01-31T12:00 (UTC)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Only calls that ended so; may be said several times
    #[arg(long, value_parser = outcomes())]
    pub(crate) outcome: Vec<String>,
    /// Print each record as it is written, an object a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// How a call can end.
fn outcomes() -> [&'static str; OUTCOMES.len()] {
    OUTCOMES.map(|(word, _)| word)
}
