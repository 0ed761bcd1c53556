//! What can be typed.

mod artifact;
mod audit;
mod first;

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use toolcrib_context::Counter;

pub(crate) use artifact::{ArtifactCommand, ReadArtifact};
pub(crate) use audit::{AuditCommand, Wanted};
pub(crate) use first::{Connect, Doctor, Import, Init, Shell, TokenCommand};

/// One counter between AI agents and every tool they use over MCP
#[derive(Debug, Parser)]
#[command(version, about, propagate_version = true, max_term_width = 100)]
pub(crate) struct Args {
    /// Say more: -v what servers say, -vv what toolcrib does
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// How log lines look
    #[arg(long, global = true, value_enum, default_value_t = LogFormat::Text)]
    pub(crate) log_format: LogFormat,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// A file whose schema there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaFile {
    Network,
    Mcp,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the gateway: one MCP server for everything in the workspace
    #[command(
        after_help = "Routes: /mcp (streamable HTTP), /sse and /messages (old clients), /events, /healthz, /readyz, /metrics, / (the console).\nSIGHUP reads the access rules again; SIGTERM lets calls in flight end."
    )]
    Serve {
        /// The folder with the mcp.json, or with tools/ or events/
        #[arg(default_value = ".")]
        workspace: PathBuf,
        /// Where to listen [default: `listen` of network.yaml, or 127.0.0.1:8700]
        #[arg(long, value_name = "ADDRESS", conflicts_with = "stdio")]
        listen: Option<String>,
        /// Speak MCP on standard input and output: what one puts into a client's mcp.json
        #[arg(long)]
        stdio: bool,
        /// Whom the client on standard input is [default: the default group]
        #[arg(long, requires = "stdio")]
        group: Option<String>,
    },
    /// Make a workspace: files to start from, which `toolcrib serve` runs at once
    #[command(
        after_help = "Examples:\n  toolcrib init\n  toolcrib init my-tools --yes\n\nWhat is there already is never overwritten."
    )]
    Init(Init),
    /// Take over the MCP servers that your clients know already
    #[command(
        after_help = "Examples:\n  toolcrib import --dry-run\n  toolcrib import --from cursor\n  toolcrib import --from ~/old/mcp.json -w my-tools\n\nLooks into the files of Claude Code, Claude Desktop, Cursor, VS Code, Windsurf, Zed and Codex, those of this\nfolder included, and changes none of them. Secrets become references to variables."
    )]
    Import(Import),
    /// Write this gateway into a client's list of MCP servers
    #[command(
        after_help = "Examples:\n  toolcrib connect claude-code\n  toolcrib connect cursor my-tools --group reader\n  toolcrib connect vscode --url http://127.0.0.1:8700/mcp --token-env TOOLCRIB_TOKEN\n  toolcrib connect cursor --undo\n\nWhat the file was before is kept beside it, as FILE.before-toolcrib."
    )]
    Connect(Connect),
    /// Look whether everything is there that a gateway needs: programs, ports, tokens, rights, room
    #[command(
        after_help = "Starts no server: that is what `toolcrib check` does.\nExit code: 0 no error, 1 errors"
    )]
    Doctor(Doctor),
    /// Make, list and take back tokens of groups
    Token {
        #[command(subcommand)]
        what: TokenCommand,
    },
    /// Print what makes a shell complete what one types
    #[command(
        after_help = "Examples:\n  toolcrib completions bash > ~/.local/share/bash-completion/completions/toolcrib\n  toolcrib completions zsh > ~/.zfunc/_toolcrib\n  toolcrib completions fish > ~/.config/fish/completions/toolcrib.fish"
    )]
    Completions {
        /// Which
        #[arg(value_enum)]
        shell: Shell,
    },
    /// Write man pages, one for each command
    #[command(
        after_help = "Example:\n  toolcrib man ~/.local/share/man/man1 && man toolcrib-serve"
    )]
    Man {
        /// The folder they go into; it is made where there is none
        folder: PathBuf,
    },
    /// Print the JSON Schema of a file of the workspace, for editors
    #[command(
        after_help = "Examples:\n  toolcrib schema network > network.schema.json\n  toolcrib schema mcp > mcp.schema.json\n\nAn editor that has it completes keys, shows what they mean and flags those that there are not."
    )]
    Schema {
        /// Which: network.yaml or mcp.json
        #[arg(value_enum)]
        file: SchemaFile,
    },
    /// Write the pages of docs/reference
    #[command(hide = true)]
    Reference {
        /// The folder they go into; it is made where there is none
        folder: PathBuf,
    },
    /// List the tools of all servers as one catalogue
    Tools {
        /// The folder with the mcp.json, or with tools/ or events/
        #[arg(default_value = ".")]
        workspace: PathBuf,
        /// Only what this group of network.yaml sees
        #[arg(long)]
        group: Option<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Call one tool and print its result
    #[command(
        after_help = "Examples:\n  toolcrib call mcp__time__get_current_time timezone=Europe/Berlin\n  toolcrib call mcp__db__query --args '{\"sql\": \"select 1\"}' --json"
    )]
    Call {
        /// The tool, as `toolcrib tools` names it
        name: String,
        /// Arguments; a value is read as the type that the tool's schema gives it
        #[arg(value_name = "KEY=VALUE")]
        arguments: Vec<String>,
        /// The arguments as a JSON object; single ones are added to it
        #[arg(long, value_name = "JSON")]
        args: Option<String>,
        /// Give up after so many seconds, all attempts counted
        #[arg(long, value_name = "SECONDS")]
        timeout: Option<f64>,
        /// The folder with the mcp.json, or with tools/ or events/
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
        /// Print the result as JSON, exactly as the server sent it
        #[arg(long)]
        json: bool,
    },
    /// Find every problem: read the files, start the servers, list their tools, stop them
    #[command(after_help = "Exit code: 0 no problem, 1 problems, 2 the workspace cannot be read")]
    Check {
        /// The folder with the mcp.json, or with tools/ or events/
        #[arg(default_value = ".")]
        workspace: PathBuf,
        /// Show also what could be better about the tools of servers, one by one
        #[arg(long)]
        hints: bool,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Accept the tools of all servers as they are now, in toolcrib.lock
    #[command(
        after_help = "Examples:\n  toolcrib lock\n  toolcrib lock --check\n\nWith `pins: hold` in network.yaml a gateway holds back what is not as it was accepted.\nExit code: 0 done, or nothing differs; 1 something differs, or a server could not be asked"
    )]
    Lock {
        /// The folder with the mcp.json
        #[arg(default_value = ".")]
        workspace: PathBuf,
        /// Write nothing; say what is not as it was accepted
        #[arg(long)]
        check: bool,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// Say why a tool is shown, hidden or renamed; or what became of a call
    #[command(
        after_help = "Examples:\n  toolcrib why mcp__db__query --group analyst\n  toolcrib why --call 5f3a0c9e77d1426b9a0e4c1d8b2f6a35"
    )]
    Why {
        /// A public name, or a server's own name for a tool
        #[arg(required_unless_present = "call", conflicts_with = "call")]
        name: Option<String>,
        /// Say also whether this group of network.yaml sees it
        #[arg(long, conflicts_with = "call")]
        group: Option<String>,
        /// Tell the story of this call: its id stands in the error it brought, in the log and in the audit record
        #[arg(long, value_name = "ID")]
        call: Option<String>,
        /// The folder with the mcp.json, or with tools/ or events/
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
    },
    /// Find tools by what you want to do
    #[command(
        after_help = "Examples:\n  toolcrib search open issues of a repository\n  toolcrib search 'send mail' --top 3 --json\n\nExit code: 0 found, 1 nothing fits"
    )]
    Search {
        /// What you want to do, in your own words
        #[arg(required = true, value_name = "QUERY")]
        query: Vec<String>,
        /// Show so many at most
        #[arg(long, value_name = "K", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=100))]
        top: u16,
        /// Only what this group of network.yaml sees
        #[arg(long)]
        group: Option<String>,
        /// The folder with the mcp.json, or with tools/ or events/
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Look into the event bus: follow it, publish, see who reads
    Events {
        #[command(subcommand)]
        what: EventsCommand,
    },
    /// Make a prompt of a session, under a token budget
    #[command(
        after_help = "Examples:\n  toolcrib pack session.jsonl --phase answer --query 'invoice status'\n  toolcrib pack session.jsonl --query 'invoice status' --budget 800 --explain"
    )]
    Pack(Pack),
    /// Look into stored results: list them, read pieces of them
    Artifact {
        #[command(subcommand)]
        what: ArtifactCommand,
    },
    /// Look into the audit record
    Audit {
        #[command(subcommand)]
        what: AuditCommand,
    },
    /// Say how a running gateway is: its servers, since when, what is wrong
    #[command(
        after_help = "Examples:\n  toolcrib status\n  toolcrib status --url http://127.0.0.1:8700 --token-env ADMIN_TOKEN --json\n\nExit code: 0 it is ready, 1 it is not, or nobody serves the workspace"
    )]
    Status {
        /// The folder that is served
        #[arg(default_value = ".")]
        workspace: PathBuf,
        #[command(flatten)]
        at: At,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
    },
    /// See to the servers of a running gateway
    Servers {
        #[command(subcommand)]
        what: ServersCommand,
    },
    /// Write a file to start from
    New {
        #[command(subcommand)]
        what: New,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Pack {
    /// The session: a JSON object a line; - is standard input
    #[arg(value_name = "SESSION.jsonl")]
    pub(crate) session: PathBuf,
    /// What the prompt is for
    #[arg(long, value_parser = ["route", "call", "interpret", "answer"], default_value = "answer")]
    pub(crate) phase: String,
    /// What is asked: items about it come first
    #[arg(long, default_value = "")]
    pub(crate) query: String,
    /// How many tokens the prompt may be [default: route 2000, call 3000, interpret 4000, answer 6000]
    #[arg(long, value_name = "TOKENS")]
    pub(crate) budget: Option<u64>,
    /// Who counts them: heuristic, or with the feature `tiktoken` cl100k, o200k
    #[arg(long, default_value_t, value_name = "NAME")]
    pub(crate) counter: Counter,
    /// Show of each item why it is in or out, instead of the prompt
    #[arg(long)]
    pub(crate) explain: bool,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
}

/// Where a gateway is that is not of this machine, or of another user.
#[derive(Debug, clap::Args)]
pub(crate) struct At {
    /// Where it is, instead of the workspace's own
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// The variable that holds the token for it
    #[arg(long, value_name = "VARIABLE", requires = "url")]
    pub(crate) token_env: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServersCommand {
    /// End a server and start it anew; calls that it has not answered fail
    Restart {
        /// Its name in mcp.json
        name: String,
        #[command(flatten)]
        at: At,
        /// Print a JSON object
        #[arg(long)]
        json: bool,
        /// The folder that is served
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum New {
    /// A tool in Python, tools/NAME.py, and a test of it
    Tool {
        /// The name of the function, such as search_issues
        name: String,
        /// The folder of the workspace
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum EventsCommand {
    /// Show events as they come
    #[command(
        after_help = "Examples:\n  toolcrib events tail\n  toolcrib events tail 'task.*' --from first --json"
    )]
    Tail(Tail),
    /// Append an event
    #[command(
        after_help = "Examples:\n  toolcrib events publish task.done '{\"task_id\": \"t1\"}'\n  toolcrib events publish task.done '{\"ok\": true}' --correlation-id 0198c1f2"
    )]
    Publish(Publish),
    /// List durable consumers, or what one of them gave up
    Consumers {
        /// Show what this one gave up, such as guest/worker
        name: Option<String>,
        /// Deliver what it gave up again
        #[arg(long, requires = "name", conflicts_with = "forget")]
        revive: bool,
        /// Remove it
        #[arg(long, requires = "name")]
        forget: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        /// The folder of the workspace
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
    },
    /// Read the whole store and say whether every event is as it was written
    #[command(after_help = "Exit code: 0 all good, 1 something is damaged")]
    Verify {
        /// Print a JSON object
        #[arg(long)]
        json: bool,
        /// The folder of the workspace
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct Tail {
    /// Only events of these names: a final * stands for the rest, one inside for a word
    #[arg(value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,
    /// Where to begin: first, new, or a sequence [default: a few before the end]
    #[arg(long, value_name = "WHERE")]
    pub(crate) from: Option<String>,
    /// Look back over so many events
    #[arg(short = 'n', long, default_value_t = 10, conflicts_with = "from")]
    pub(crate) lines: u64,
    /// End when so many have been shown
    #[arg(long, value_name = "NUMBER")]
    pub(crate) count: Option<u64>,
    /// Show what is there and end
    #[arg(long)]
    pub(crate) no_follow: bool,
    /// Print each as a CloudEvent on a line of its own
    #[arg(long)]
    pub(crate) json: bool,
    /// The folder of the workspace
    #[arg(short, long, default_value = ".")]
    pub(crate) workspace: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Publish {
    /// What it is called, such as task.done
    pub(crate) name: String,
    /// What it says: JSON [default: null]
    #[arg(value_name = "JSON")]
    pub(crate) data: Option<String>,
    /// Its id; sending one twice sends nothing twice
    #[arg(long)]
    pub(crate) id: Option<String>,
    /// What it is about
    #[arg(long)]
    pub(crate) subject: Option<String>,
    /// The id of the event that it answers
    #[arg(long, value_name = "ID")]
    pub(crate) correlation_id: Option<String>,
    /// Print a JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// The folder of the workspace
    #[arg(short, long, default_value = ".")]
    pub(crate) workspace: PathBuf,
}
