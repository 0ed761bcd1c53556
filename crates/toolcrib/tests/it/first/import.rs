//! `toolcrib import`: a home full of clients.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::Home;

/// Secrets of which none may ever show, in any output or file of ours.
const SECRET: &str = "s3cr3t0a1b2c";

/// Somebody who has tried everything.
fn everybody() -> Home {
    let home = Home::new();
    home.write(
        ".claude.json",
        &format!(
            r#"{{"numStartups": 7, "mcpServers": {{
                "github": {{"type": "stdio", "command": "npx", "args": ["-y", "srv-github"], "env": {{"GITHUB_TOKEN": "ghp_{SECRET}", "LOG": "info"}}}}}},
              "projects": {{"{}/shop": {{"allowedTools": [], "mcpServers": {{"till": {{"command": "./till.py"}}}}}}, "/gone": {{}}}}}}"#,
            home.path().display()
        ),
    );
    home.write(
        ".config/Claude/claude_desktop_config.json",
        r#"{"mcpServers": {"files": {"command": "npx", "args": ["-y", "srv-files", "/data"]}}}"#,
    );
    home.write(
        ".cursor/mcp.json",
        &format!(
            r#"{{ // the same as in Claude Code, and more
              "mcpServers": {{
                "github": {{"command": "npx", "args": ["-y", "srv-github"], "env": {{"GITHUB_TOKEN": "ghp_{SECRET}", "LOG": "info",}},}},
                "search": {{"url": "https://example.com/mcp", "headers": {{"Authorization": "Bearer {SECRET}"}}}},
                "toolcrib": {{"command": "/usr/bin/toolcrib", "args": ["serve", "--stdio", "/w"]}},
                "here": {{"url": "http://localhost:8700/mcp"}},
              }},
            }}"#
        ),
    );
    home.write(
        ".config/Code/User/mcp.json",
        r#"{"inputs": [{"type": "promptString", "id": "pg-password", "password": true}],
            "servers": {"db": {"type": "stdio", "command": "${userHome}/bin/db", "args": ["--root", "${workspaceFolder}"], "env": {"PGPASSWORD": "${input:pg-password}"}, "envFile": ".env"},
                        "remote": {"type": "http", "url": "https://example.com/vs", "headers": {"X-Key": "${env:VS_KEY}"}}}}"#,
    );
    home.write(
        ".codeium/windsurf/mcp_config.json",
        r#"{"mcpServers": {"wind": {"serverUrl": "https://example.com/sse", "disabled": true, "disabledTools": ["drop"]}, "files": {"command": "other"}}}"#,
    );
    home.write(
        ".config/zed/settings.json",
        r#"// Zed settings
        {"theme": "One Dark", "context_servers": {
            "zed-new": {"source": "custom", "enabled": true, "command": "zsrv", "args": ["a b"], "env": {}},
            "zed-old": {"command": {"path": "zold", "args": ["-x"], "env": {"A": 1}}, "settings": {}},
            "from-extension": {"source": "extension", "settings": {"k": 1}}}, /* last */ }"#,
    );
    home.write(
        ".codex/config.toml",
        "model = \"x\"\n[mcp_servers.docs]\ncommand = \"dsrv\"\nenv_vars = [\"DOCS_KEY\"]\nstartup_timeout_sec = 20\nenabled_tools = [\"read\"]\n\n[mcp_servers.figma]\nurl = \"https://example.com/figma\"\nbearer_token_env_var = \"FIGMA_TOKEN\"\nhttp_headers = { \"X-Region\" = \"eu\" }\n",
    );
    home.write(
        "work/.mcp.json",
        r#"{"mcpServers": {"local": {"command": "./srv", "cwd": "sub"}}}"#,
    );
    home
}

#[test]
fn import_shows_what_it_would_take_and_writes_nothing() {
    let home = everybody();
    let seen = home.see(&["import", "--dry-run"]);
    assert!(!seen.contains(SECRET), "{seen}");
    insta::assert_snapshot!(seen, @"
    exit 0
    out SERVER   FROM                 RUNS                       CHANGES
    out github   Claude Code          npx -y srv-github          env: GITHUB_TOKEN is the variable GITHUB_TOKEN
    out till     Claude Code, ~/shop  ./till.py                  runs in ~/shop
    out files    Claude Desktop       npx -y srv-files /data
    out search   Cursor               https://example.com/mcp    headers: Authorization is the variable SEARCH_TOKEN
    out db       VS Code              '~/bin/db' --root '~'      what was asked for as `pg-password` is the variable PG_PASSWORD; what stands in `.env` is to be set in the environment
    out remote   VS Code              https://example.com/vs
    out wind     Windsurf             https://example.com/sse
    out zed-new  Zed                  zsrv 'a b'
    out zed-old  Zed                  zold -x
    out docs     Codex                dsrv
    out figma    Codex                https://example.com/figma
    out left out  github (Cursor): it is the same as that of Claude Code
    out left out  toolcrib (Cursor): it is toolcrib itself
    out left out  here (Cursor): it is this gateway
    out left out  files (Windsurf): Claude Desktop has another one of this name; rename one of them
    out left out  from-extension (Zed): an extension of Zed brings it along
    out nothing was written; this would add 11 servers to mcp.json
    out not looked into: .mcp.json of this folder; `--from project` does that
    ");
    assert!(!home.has("work/mcp.json"));
}

#[test]
fn import_takes_over_servers_without_their_secrets() {
    let home = everybody();
    assert!(home.see(&["import", "--yes"]).contains("out added 11 servers to mcp.json\n"));
    insta::assert_snapshot!(home.plain(&home.read("work/mcp.json")), @r#"
    {
      "mcpServers": {
        "github": {
          "command": "npx",
          "args": ["-y", "srv-github"],
          "env": {
            "GITHUB_TOKEN": "${GITHUB_TOKEN}",
            "LOG": "info"
          }
        },
        "till": {
          "command": "./till.py",
          "cwd": "~/shop"
        },
        "files": {
          "command": "npx",
          "args": ["-y", "srv-files", "/data"]
        },
        "search": {
          "url": "https://example.com/mcp",
          "headers": {
            "Authorization": "Bearer ${SEARCH_TOKEN}"
          }
        },
        "db": {
          "command": "~/bin/db",
          "args": ["--root", "~"],
          "env": {
            "PGPASSWORD": "${PG_PASSWORD}"
          }
        },
        "remote": {
          "type": "http",
          "url": "https://example.com/vs",
          "headers": {
            "X-Key": "${env:VS_KEY}"
          }
        },
        "wind": {
          "url": "https://example.com/sse",
          "exclude": ["drop"],
          "disabled": true
        },
        "zed-new": {
          "command": "zsrv",
          "args": ["a b"]
        },
        "zed-old": {
          "command": "zold",
          "args": ["-x"],
          "env": {
            "A": "1"
          }
        },
        "docs": {
          "command": "dsrv",
          "env": {
            "DOCS_KEY": "${DOCS_KEY}"
          },
          "include": ["read"],
          "handshake_timeout": "20s"
        },
        "figma": {
          "url": "https://example.com/figma",
          "headers": {
            "X-Region": "eu",
            "Authorization": "Bearer ${FIGMA_TOKEN}"
          }
        }
      }
    }
    "#);
}

#[test]
fn import_changes_no_client_is_understood_and_does_nothing_twice() {
    let home = everybody();
    let before = home.read(".cursor/mcp.json");
    home.see(&["import", "--yes"]);
    let made = home.read("work/mcp.json");
    assert!(!made.contains(SECRET), "{made}");
    assert_eq!(home.read(".cursor/mcp.json"), before);
    // What was taken is understood: only variables are not set, and programs are not there.
    let check = home.run(&["tools"]);
    assert!(!check.err.contains("unknown key") && !check.err.contains("must be"), "{}", check.err);
    // Again, there is nothing to do.
    let again = home.see(&["import", "--yes"]);
    assert!(again.contains("out there is nothing to take\n"), "{again}");
    assert_eq!(home.read("work/mcp.json"), made);
}

#[test]
fn import_keeps_what_is_there() {
    let home = everybody();
    let there = "{\n  // mine\n  \"mcpServers\": {\n    \"files\": { \"command\": \"mine\" }, // stays\n  },\n}\n";
    home.write("work/mcp.json", there);
    insta::assert_snapshot!(home.see(&["import", "--from", "claude-desktop"]), @"
    exit 0
    out left out  files (Claude Desktop): mcp.json has another one of this name; rename one of them
    out there is nothing to take
    ");
    assert_eq!(home.read("work/mcp.json"), there);
    insta::assert_snapshot!(home.see(&["import", "--yes", "--from", "zed"]), @"
    exit 0
    out SERVER   FROM  RUNS        CHANGES
    out zed-new  Zed   zsrv 'a b'
    out zed-old  Zed   zold -x
    out left out  from-extension (Zed): an extension of Zed brings it along
    out added 2 servers to mcp.json
    out next: toolcrib check
    ");
    insta::assert_snapshot!(home.read("work/mcp.json"), @r#"
    {
      // mine
      "mcpServers": {
        "files": { "command": "mine" }, // stays
        "zed-new": {
          "command": "zsrv",
          "args": ["a b"],
        },
        "zed-old": {
          "command": "zold",
          "args": ["-x"],
          "env": {
            "A": "1",
          },
        },
      },
    }
    "#);
    home.write("work/mcp.json", "{\"servers\": {}}\n");
    home.run(&["import", "--yes", "--from", "claude-desktop"]);
    assert!(home.read("work/mcp.json").starts_with("{\"servers\": {"));
}

#[test]
fn import_takes_a_file_of_anybody() {
    let home = Home::new();
    home.write("old.json", r#"{"mcpServers": {"a": {"command": "x"}, "b": {"command": 7}, "c": "x", "d": {"type": "ws", "url": "ws://h"}, "e": {}, "": {"command": "x"}, "f": {"command": "x", "args": "-m y"}, "g": {"command": "x", "oauth": {}, "timeout": 5}}}"#);
    insta::assert_snapshot!(home.see(&["import", "--from", "../old.json", "--dry-run"]), @"
    exit 0
    out SERVER  FROM         RUNS  CHANGES
    out a       ../old.json  x
    out g       ../old.json  x     without `oauth`; without `timeout`
    out left out  b (../old.json): its `command` is no text
    out left out  c (../old.json): its entry is no object
    out left out  d (../old.json): toolcrib does not speak `ws`
    out left out  e (../old.json): it has neither a command nor an address
    out left out   (../old.json): its name is empty, too long or holds control characters
    out left out  f (../old.json): its `args` is no list of texts
    out nothing was written; this would add 2 servers to mcp.json
    ");
    insta::assert_snapshot!(home.see(&["import", "--from", "emacs"]), @"
    exit 2
    err error: `emacs` is neither a client nor a file
    err  hint: clients: claude-code, claude-desktop, cursor, vscode, windsurf, zed, codex; or project, for the files of this folder
    ");
}

#[test]
fn import_tells_of_files_that_it_cannot_read_and_goes_on() {
    let home = Home::new();
    home.write(
        ".cursor/mcp.json",
        &format!("{{\"mcpServers\": {{\"a\": {{\"env\": {{\"K\": \"{SECRET}\" oops }}"),
    );
    home.write(".codex/config.toml", &format!("token = {SECRET} oops\n"));
    home.write(".config/zed/settings.json", &"[".repeat(100_000));
    home.folder.write(".claude.json", b"\xff\xfe{\0}\0");
    home.write(
        ".codeium/windsurf/mcp_config.json",
        r#"{"mcpServers": {"good": {"command": "x"}}}"#,
    );
    let seen = home.see(&["import", "--dry-run"]);
    assert!(!seen.contains(SECRET), "{seen}");
    insta::assert_snapshot!(seen, @"
    exit 0
    out SERVER  FROM      RUNS  CHANGES
    out good    Windsurf  x
    out nothing was written; this would add 1 server to mcp.json
    err problem: ~/.claude.json: it is not UTF-8; it is skipped
    err    hint: put it right and import again; the other files are read
    err problem: ~/.cursor/mcp.json: line 1, column 51: not valid JSON: unexpected `o`; it is skipped
    err    hint: put it right and import again; the other files are read
    err problem: ~/.config/zed/settings.json: line 1, column 128: not valid JSON: nested deeper than 127; it is skipped
    err    hint: put it right and import again; the other files are read
    err problem: ~/.codex/config.toml: TOML parse error at line 1, column 9; it is skipped
    err    hint: put it right and import again; the other files are read
    ");
    insta::assert_snapshot!(home.see(&["import", "--from", "cursor"]), @"
    exit 2
    err error: ~/.cursor/mcp.json: line 1, column 51: not valid JSON: unexpected `o`; it is skipped
    err  hint: put it right and import again; the other files are read
    ");
    home.write("work/mcp.json", "{");
    insta::assert_snapshot!(home.see(&["import"]), @"
    exit 2
    err error: `./mcp.json`: line 1, column 2: not valid JSON: unexpected end (hint: a bracket or a quote is not closed)
    err  hint: put it right first; `toolcrib check` says more
    ");
    assert_eq!(home.read("work/mcp.json"), "{");
}

#[test]
fn import_without_anything_to_import() {
    let home = Home::new();
    insta::assert_snapshot!(home.see(&["import"]), @"
    exit 0
    out no client of yours has an MCP server
    ");
    insta::assert_snapshot!(home.see(&["import", "-w", "nowhere"]), @"
    exit 2
    err error: there is no folder `nowhere`
    err  hint: `toolcrib init` makes a workspace
    ");
    let mut nobody = home.command(&["import"]);
    nobody.env_remove("HOME");
    insta::assert_snapshot!(home.plain(&crate::kit::run(&mut nobody).transcript()), @"
    exit 2
    err error: there is no home folder
    err  hint: set HOME, or name a file: --from FILE
    ");
}

#[test]
fn import_prints_json_and_writes_values_where_they_are_wanted() {
    let home = everybody();
    let run = home.run(&["import", "--json", "--yes", "--env-file", "../values"]);
    assert!(!run.out.contains(SECRET), "{}", run.out);
    let report = run.json();
    assert_eq!(report["written"], true);
    assert_eq!(report["servers"][0]["entry"]["env"]["GITHUB_TOKEN"], "${GITHUB_TOKEN}");
    assert_eq!(report["servers"][0]["name"], "github");
    let variables = report["variables"].as_array().unwrap();
    let names: Vec<&str> = variables.iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["GITHUB_TOKEN", "SEARCH_TOKEN"]);
    assert_eq!(variables[0]["places"], json!(["~/.claude.json: github: env: GITHUB_TOKEN"]));
    let values = format!("GITHUB_TOKEN=ghp_{SECRET}\nSEARCH_TOKEN={SECRET}\n");
    assert_eq!(home.read("values"), values);
    let mode = std::fs::metadata(home.folder.file("values")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // It is not overwritten, and then nothing is.
    home.write("work/mcp.json", "{}");
    let again = home.run(&["import", "--yes", "--env-file", "../values"]);
    assert_eq!(again.code, 2);
    assert_eq!(home.read("work/mcp.json"), "{}");
}

#[test]
fn import_writes_nothing_where_nobody_can_be_asked() {
    let home = Home::new();
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"a": {"command": "x"}}}"#);
    insta::assert_snapshot!(home.see(&["import"]), @"
    exit 0
    out SERVER  FROM    RUNS  CHANGES
    out a       Cursor  x
    out nothing was written; this would add 1 server to mcp.json, with --yes: there is nobody here to ask
    ");
    assert_eq!(home.run(&["import", "--json"]).json()["written"], false);
    assert!(!home.has("work/mcp.json"));
}

/// Whoever cloned a repository has not said that its commands may be run.
#[test]
fn files_of_the_folder_are_taken_only_when_somebody_says_so() {
    let home = Home::new();
    let evil = r#"{"mcpServers": {"evil": {"command": "sh", "args": ["-c", "id"]}}}"#;
    home.write("work/.mcp.json", evil);
    home.write("work/.cursor/mcp.json", &evil.replace("evil", "evil2"));
    home.write("work/.vscode/mcp.json", r#"{"servers": {"evil3": {"command": "sh"}}}"#);
    home.write(".cursor/mcp.json", r#"{"mcpServers": {"mine": {"command": "x"}}}"#);
    for args in
        [&["init", "--yes"][..], &["import", "--yes"], &["import", "--yes", "--from", "cursor"]]
    {
        let seen = home.see(args);
        assert!(!home.read("work/mcp.json").contains("evil"), "{seen}");
    }
    assert!(home.read("work/mcp.json").contains("mine"));
    let seen = home.see(&["import", "--dry-run"]);
    let told = "out not looked into: .mcp.json, .cursor/mcp.json, .vscode/mcp.json of this folder; `--from project` does that\n";
    assert!(seen.contains(told), "{seen}");
    let seen = home.see(&["import", "--yes", "--from", "project"]);
    assert!(seen.contains("added 3 servers to mcp.json"), "{seen}");
    home.write("work/mcp.json", "{}");
    home.see(&["import", "--yes", "--from", ".mcp.json"]);
    assert!(home.read("work/mcp.json").contains("evil"));
}

#[test]
fn import_moves_short_passwords_out_too() {
    let home = Home::new();
    let entry = r#"{"mcpServers": {"db": {"command": "x", "args": ["--password=letmein"], "env": {"DB_PASSWORD": "letmein", "DB_USER": "ada"}}}}"#;
    home.write(".cursor/mcp.json", entry);
    let seen = home.see(&["import", "--yes"]);
    let made = home.read("work/mcp.json");
    assert!(!seen.contains("letmein") && !made.contains("letmein"), "{seen}{made}");
    assert!(made.contains(r#""DB_PASSWORD": "${DB_PASSWORD}""#) && made.contains("ada"), "{made}");
}

#[test]
fn import_asks_on_a_terminal() {
    let home = everybody();
    let no = home.see_on_a_terminal("import", "n\n", "never");
    assert!(no.contains("Take 11 servers? [Y/n]") && no.contains("nothing was written"), "{no}");
    assert!(!home.has("work/mcp.json"));
    let yes = home.see_on_a_terminal("import", "y\n", "never");
    assert!(yes.contains("added 11 servers to mcp.json"), "{yes}");
}

#[test]
fn init_offers_the_servers_that_are_there() {
    let home = everybody();
    let seen = home.see(&["init"]);
    let offer = "out found 11 servers of Claude Code, Claude Desktop, Cursor, VS Code, Windsurf, Zed, Codex: `toolcrib import` takes over what you want\n";
    assert!(seen.ends_with(offer), "{seen}");
    let home = everybody();
    let seen = home.see(&["init", "--yes"]);
    assert!(seen.contains("added 11 servers to mcp.json"), "{seen}");
    // The comments of the file that was just made are still there.
    assert!(home.read("work/mcp.json").contains("// The MCP servers you use"));
}
