//! What can be typed after `toolcrib artifact`.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum ArtifactCommand {
    /// List what is stored, newest first
    List {
        /// Only what belongs to this group
        #[arg(long)]
        group: Option<String>,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
        /// The folder of the workspace
        #[arg(short, long, default_value = ".")]
        workspace: PathBuf,
    },
    /// Read a piece of one
    #[command(
        after_help = "Examples:\n  toolcrib artifact read ID --lines 0:20\n  toolcrib artifact read ID --path '$.items[?@.id == 7].name'\n  toolcrib artifact read ID --sum price --group-by city --where year=2026\n  toolcrib artifact read ID --out result.json\n\nRanges count from 0 and leave out their end; below 0 counts from the end (-20: is the last twenty)."
    )]
    Read(Box<ReadArtifact>),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReadArtifact {
    /// Which, as `toolcrib artifact list` names it; or its URI, with the piece that this names
    pub(crate) id: String,
    /// The first characters [default: 2000]
    #[arg(long, value_name = "N")]
    pub(crate) head: Option<u64>,
    /// With --head: from this byte on
    #[arg(long, value_name = "BYTE")]
    pub(crate) offset: Option<u64>,
    /// The last characters
    #[arg(long, value_name = "N")]
    pub(crate) tail: Option<u64>,
    /// Lines
    #[arg(long, value_name = "A:B", allow_hyphen_values = true)]
    pub(crate) lines: Option<String>,
    /// With --lines: leave out so many bytes of the first
    #[arg(long, value_name = "BYTES")]
    pub(crate) skip: Option<u64>,
    /// Rows of CSV, elements of a JSON array (the one at --path), JSON lines
    #[arg(long, value_name = "A:B", allow_hyphen_values = true)]
    pub(crate) rows: Option<String>,
    /// Bytes as they are
    #[arg(long, value_name = "A:B", allow_hyphen_values = true)]
    pub(crate) bytes: Option<String>,
    /// The keys of the JSON object at a path, or the values under some names: '$.a', or 'a,b'
    #[arg(long, value_name = "KEYS", num_args = 0..=1, default_missing_value = "$")]
    pub(crate) keys: Option<String>,
    /// Values by JSONPath (RFC 9535)
    #[arg(long, value_name = "JSONPATH")]
    pub(crate) path: Option<String>,
    /// Lines that match a regular expression
    #[arg(long, value_name = "REGEX")]
    pub(crate) grep: Option<String>,
    /// With --grep: capitals are the same as small letters
    #[arg(long)]
    pub(crate) ignore_case: bool,
    /// With --grep: so many lines around each
    #[arg(long, value_name = "N")]
    pub(crate) context: Option<u64>,
    /// Count the rows, or those in which a column is not empty
    #[arg(long, value_name = "COLUMN", num_args = 0..=1, default_missing_value = "*")]
    pub(crate) count: Vec<String>,
    /// The sum of a column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) sum: Vec<String>,
    /// The smallest value of a column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) min: Vec<String>,
    /// The largest value of a column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) max: Vec<String>,
    /// The mean of a column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) avg: Vec<String>,
    /// For each value of a column
    #[arg(long, value_name = "COLUMN")]
    pub(crate) group_by: Option<String>,
    /// Only rows where a column is a value, or is not one (COLUMN!=VALUE)
    #[arg(long = "where", value_name = "COLUMN=VALUE")]
    pub(crate) tests: Vec<String>,
    /// So many groups [default: 50]
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<u64>,
    /// Leave out so many matches, values or groups; with --path to one value, so many bytes of it
    #[arg(long, value_name = "N")]
    pub(crate) from: Option<u64>,
    /// Write it to a file; the whole, where no piece is asked for
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub(crate) out: Option<PathBuf>,
    /// Print a JSON object: the piece, its place in the whole, and how to go on
    #[arg(long)]
    pub(crate) json: bool,
    /// The folder of the workspace
    #[arg(short, long, default_value = ".")]
    pub(crate) workspace: PathBuf,
}
