//! What can be typed in the first five minutes: to make a workspace, to fill it, to hand it to a client, to look after it.

use std::path::PathBuf;

use clap::Subcommand;
pub(crate) use clap_complete::Shell;

use crate::clients::Client;

#[derive(Debug, clap::Args)]
pub(crate) struct Init {
    /// The folder; it is made where there is none
    #[arg(default_value = ".")]
    pub(crate) folder: PathBuf,
    /// Answer every question with yes
    #[arg(short, long)]
    pub(crate) yes: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Import {
    /// Only these: claude-code, claude-desktop, cursor, vscode, windsurf, zed, codex; project (the files of this folder);
    /// or a file
    #[arg(long, value_name = "CLIENT|FILE")]
    pub(crate) from: Option<String>,
    /// Show what would be taken, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Write the values of variables into this new file, which only you may read
    #[arg(long, value_name = "FILE", conflicts_with = "dry_run")]
    pub(crate) env_file: Option<PathBuf>,
    /// Do not ask; where there is nobody to ask, nothing is written without it
    #[arg(short, long)]
    pub(crate) yes: bool,
    /// Print a JSON object; with --yes after writing
    #[arg(long)]
    pub(crate) json: bool,
    /// The folder of the workspace
    #[arg(short, long, default_value = ".")]
    pub(crate) workspace: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Connect {
    /// Which
    #[arg(value_enum)]
    pub(crate) client: Client,
    /// The folder of the workspace that it starts [default: this one]
    #[arg(conflicts_with_all = ["url", "undo"])]
    pub(crate) workspace: Option<PathBuf>,
    /// Whom the client is, of the groups of network.yaml
    #[arg(long, conflicts_with_all = ["url", "undo"])]
    pub(crate) group: Option<String>,
    /// Go to a gateway that runs already, such as http://127.0.0.1:8700/mcp
    #[arg(long, conflicts_with = "undo")]
    pub(crate) url: Option<String>,
    /// With --url: the variable in which the client finds its token
    #[arg(long, value_name = "NAME", requires = "url")]
    pub(crate) token_env: Option<String>,
    /// What it is called in the client's list
    #[arg(long, default_value = "toolcrib")]
    pub(crate) name: String,
    /// The client's file, where it is not in its usual place
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Take it out again
    #[arg(long)]
    pub(crate) undo: bool,
    /// Say what would be written, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// The folder of the workspace
    #[arg(default_value = ".")]
    pub(crate) workspace: PathBuf,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make one, and print it: it is not kept, and not shown again
    #[command(after_help = "Example:\n  toolcrib token new reader --note 'the build server'")]
    New {
        /// A group of network.yaml, or the default one
        group: String,
        /// Whose it is, or what for
        #[arg(long)]
        note: Option<String>,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
        /// The folder of the workspace
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
    },
    /// List those that were made
    List {
        /// Print a JSON array
        #[arg(long)]
        json: bool,
        /// The folder of the workspace
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
    },
    /// Take one back; a gateway that runs heeds it within a second
    Revoke {
        /// Which, as `toolcrib token list` names it
        id: String,
        /// The folder of the workspace
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
    },
}
