//! The programs in which people use MCP servers: where each keeps its list of them, and how it writes an entry.
//!
//! A place is a function of the system and of a few folders, so that those of all systems can be tested on one.

mod places;
mod editing;
mod files;

use clap::ValueEnum;

pub(crate) use editing::{EditError, Form, get, put, read, take};
pub(crate) use files::{backup_of, read_text, remove, replace};
pub(crate) use places::Folders;

/// A program that has a list of MCP servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    #[value(name = "vscode", alias = "vs-code")]
    VsCode,
    Windsurf,
    Zed,
    Codex,
}

impl Client {
    pub(crate) const ALL: [Self; 7] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::VsCode,
        Self::Windsurf,
        Self::Zed,
        Self::Codex,
    ];

    /// What it calls itself.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::VsCode => "VS Code",
            Self::Windsurf => "Windsurf",
            Self::Zed => "Zed",
            Self::Codex => "Codex",
        }
    }

    /// What one types for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Windsurf => "windsurf",
            Self::Zed => "zed",
            Self::Codex => "codex",
        }
    }

    /// The one that is meant by a word.
    pub(crate) fn read(word: &str) -> Option<Self> {
        Self::from_str(word, true).ok()
    }

    /// How its file is written.
    pub(crate) fn form(self) -> Form {
        if self == Self::Codex { Form::Toml } else { Form::Json }
    }

    /// Under what its servers stand.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::VsCode => "servers",
            Self::Zed => "context_servers",
            Self::Codex => "mcp_servers",
            Self::ClaudeCode | Self::ClaudeDesktop | Self::Cursor | Self::Windsurf => "mcpServers",
        }
    }
}
