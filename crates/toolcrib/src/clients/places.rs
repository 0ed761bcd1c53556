//! Where clients keep their files, on every system.

use std::path::{Path, PathBuf};

use toolcrib_sources::mcp::Lookup;

use super::Client;

/// The systems whose customs we know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum System {
    Linux,
    MacOs,
    Windows,
}

/// The folders of a person, by which everything else is found.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    system: System,
    pub(crate) home: PathBuf,
    /// For settings of programs; on Windows those that follow a person from machine to machine.
    settings: PathBuf,
    /// On Windows, for what stays on the machine.
    local: PathBuf,
    codex: PathBuf,
    claude_code: PathBuf,
}

/// Since 2026 Claude Desktop for Windows is a package, and sees its settings only in here.
const CLAUDE_PACKAGE: &str = "Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude";

impl Folders {
    /// Those of whoever runs us; nothing where there is no home.
    pub(crate) fn here(lookup: Lookup<'_>) -> Option<Self> {
        let system = match std::env::consts::OS {
            "macos" => System::MacOs,
            "windows" => System::Windows,
            _ => System::Linux,
        };
        Self::new(system, lookup)
    }

    fn new(system: System, lookup: Lookup<'_>) -> Option<Self> {
        let folder = |name: &str| {
            let path = PathBuf::from(lookup(name).filter(|it| !it.is_empty())?);
            // One that is not whole would lead elsewhere from each folder it is asked in.
            (system == System::Windows || path.is_absolute()).then_some(path)
        };
        let home = folder(if system == System::Windows { "USERPROFILE" } else { "HOME" })?;
        let settings = match system {
            System::Linux => folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config")),
            System::MacOs => home.join("Library/Application Support"),
            System::Windows => folder("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming")),
        };
        let local = folder("LOCALAPPDATA").unwrap_or_else(|| home.join("AppData/Local"));
        let codex = folder("CODEX_HOME").unwrap_or_else(|| home.join(".codex"));
        let claude_code = folder("CLAUDE_CONFIG_DIR").unwrap_or_else(|| home.clone());
        Some(Self { system, home, settings, local, codex, claude_code })
    }

    /// Where a client may keep the servers of a person. The first that is there is the one it reads; where none is,
    /// it would make the last.
    pub(crate) fn of_user(&self, client: Client) -> Vec<PathBuf> {
        let settings = |name: &str| self.settings.join(name);
        match client {
            Client::ClaudeDesktop => {
                let file = "claude_desktop_config.json";
                let packaged = self.local.join(CLAUDE_PACKAGE).join(file);
                let packaged = (self.system == System::Windows).then_some(packaged);
                packaged.into_iter().chain([settings("Claude").join(file)]).collect()
            }
            Client::ClaudeCode => vec![self.claude_code.join(".claude.json")],
            Client::Cursor => vec![self.home.join(".cursor/mcp.json")],
            Client::VsCode => vec![settings("Code/User/mcp.json")],
            Client::Windsurf => vec![self.home.join(".codeium/windsurf/mcp_config.json")],
            Client::Zed => vec![match self.system {
                System::Linux => settings("zed/settings.json"),
                System::MacOs => self.home.join(".config/zed/settings.json"),
                System::Windows => settings("Zed/settings.json"),
            }],
            Client::Codex => vec![self.codex.join("config.toml")],
        }
    }

    /// The one of these files that a client reads, or would make.
    pub(crate) fn used_by(&self, client: Client) -> PathBuf {
        let all = self.of_user(client);
        // A package that is installed has its folder before it has a file.
        let there = all.iter().find(|it| it.parent().is_some_and(Path::is_dir));
        there.or(all.last()).cloned().unwrap_or_default()
    }

    /// Where a client keeps the servers of a project, if it does.
    pub(crate) fn of_project(client: Client, project: &Path) -> Option<PathBuf> {
        let file = match client {
            Client::ClaudeCode => ".mcp.json",
            Client::Cursor => ".cursor/mcp.json",
            Client::VsCode => ".vscode/mcp.json",
            Client::Zed => ".zed/settings.json",
            Client::Codex => ".codex/config.toml",
            Client::ClaudeDesktop | Client::Windsurf => return None,
        };
        Some(project.join(file))
    }

    /// A path as one reads it best.
    pub(crate) fn shown(&self, path: &Path) -> String {
        let home = self.home.canonicalize().unwrap_or_else(|_| self.home.clone());
        let inside = path.strip_prefix(&self.home).or_else(|_| path.strip_prefix(home));
        match inside {
            Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
            Ok(rest) => format!("~/{}", rest.display()),
            Err(_) => path.display().to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All places, one a line.
    fn places(system: System, env: &[(&str, &str)]) -> String {
        let lookup = |name: &str| {
            let found = env.iter().find(|(it, _)| *it == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let folders = Folders::new(system, &lookup).unwrap();
        let line = |client: Client| {
            let files = folders.of_user(client);
            let files: Vec<String> = files.iter().map(|it| it.display().to_string()).collect();
            format!("{}: {}\n", client.word(), files.join(", "))
        };
        Client::ALL.map(line).concat()
    }

    #[test]
    fn on_linux() {
        insta::assert_snapshot!(places(System::Linux, &[("HOME", "/home/ada")]), @"
    claude-code: /home/ada/.claude.json
    claude-desktop: /home/ada/.config/Claude/claude_desktop_config.json
    cursor: /home/ada/.cursor/mcp.json
    vscode: /home/ada/.config/Code/User/mcp.json
    windsurf: /home/ada/.codeium/windsurf/mcp_config.json
    zed: /home/ada/.config/zed/settings.json
    codex: /home/ada/.codex/config.toml
    ");
        let moved = [
            ("HOME", "/home/ada"),
            ("XDG_CONFIG_HOME", "/cfg"),
            ("CODEX_HOME", "/codex"),
            ("CLAUDE_CONFIG_DIR", "relative/is/no/place"),
        ];
        insta::assert_snapshot!(places(System::Linux, &moved), @"
    claude-code: /home/ada/.claude.json
    claude-desktop: /cfg/Claude/claude_desktop_config.json
    cursor: /home/ada/.cursor/mcp.json
    vscode: /cfg/Code/User/mcp.json
    windsurf: /home/ada/.codeium/windsurf/mcp_config.json
    zed: /cfg/zed/settings.json
    codex: /codex/config.toml
    ");
    }

    #[test]
    fn on_macos() {
        let env = [("HOME", "/Users/ada"), ("XDG_CONFIG_HOME", "/not/heeded")];
        insta::assert_snapshot!(places(System::MacOs, &env), @"
    claude-code: /Users/ada/.claude.json
    claude-desktop: /Users/ada/Library/Application Support/Claude/claude_desktop_config.json
    cursor: /Users/ada/.cursor/mcp.json
    vscode: /Users/ada/Library/Application Support/Code/User/mcp.json
    windsurf: /Users/ada/.codeium/windsurf/mcp_config.json
    zed: /Users/ada/.config/zed/settings.json
    codex: /Users/ada/.codex/config.toml
    ");
    }

    #[test]
    fn on_windows() {
        // There a backslash joins; here a slash does, and Windows takes both.
        let env = [("USERPROFILE", r"C:\Users\ada"), ("HOME", "/not/heeded")];
        insta::assert_snapshot!(places(System::Windows, &env), @r#"
    claude-code: C:\Users\ada/.claude.json
    claude-desktop: C:\Users\ada/AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json, C:\Users\ada/AppData/Roaming/Claude/claude_desktop_config.json
    cursor: C:\Users\ada/.cursor/mcp.json
    vscode: C:\Users\ada/AppData/Roaming/Code/User/mcp.json
    windsurf: C:\Users\ada/.codeium/windsurf/mcp_config.json
    zed: C:\Users\ada/AppData/Roaming/Zed/settings.json
    codex: C:\Users\ada/.codex/config.toml
    "#);
        let roaming = [
            ("USERPROFILE", r"C:\Users\ada"),
            ("APPDATA", r"D:\roaming"),
            ("LOCALAPPDATA", r"D:\local"),
        ];
        insta::assert_snapshot!(places(System::Windows, &roaming), @r#"
    claude-code: C:\Users\ada/.claude.json
    claude-desktop: D:\local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json, D:\roaming/Claude/claude_desktop_config.json
    cursor: C:\Users\ada/.cursor/mcp.json
    vscode: D:\roaming/Code/User/mcp.json
    windsurf: C:\Users\ada/.codeium/windsurf/mcp_config.json
    zed: D:\roaming/Zed/settings.json
    codex: C:\Users\ada/.codex/config.toml
    "#);
    }

    #[test]
    fn without_a_home_there_are_no_places() {
        assert!(Folders::new(System::Linux, &|_| None).is_none());
        assert!(Folders::new(System::Linux, &|_| Some(String::new())).is_none());
    }
}
