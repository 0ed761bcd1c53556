//! `toolcrib connect`: into every client's file, and out again without a trace.

use std::{fs, os::unix::fs::PermissionsExt};

use super::Home;

const CLIENTS: [(&str, &str); 7] = [
    ("claude-code", ".claude.json"),
    ("claude-desktop", ".config/Claude/claude_desktop_config.json"),
    ("cursor", ".cursor/mcp.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("zed", ".config/zed/settings.json"),
    ("codex", ".codex/config.toml"),
];

fn somebody() -> Home {
    let home = Home::new();
    home.write("work/mcp.json", "{\"mcpServers\": {}}");
    home
}

#[test]
fn connect_says_what_it_does() {
    let home = somebody();
    let there = "{\n    // mine\n    \"mcpServers\": {\n        \"git\": { \"command\": \"x\" }, // good\n    },\n}\n";
    home.write(".cursor/mcp.json", there);
    insta::assert_snapshot!(home.see(&["connect", "cursor", "--dry-run"]), @r#"
    exit 0
    out nothing was written; this would go into ~/.cursor/mcp.json:
    out {
    out   "mcpServers": {
    out     "toolcrib": {
    out       "command": "BIN/toolcrib",
    out       "args": ["serve", "--stdio", "~/work"]
    out     }
    out   }
    out }
    "#);
    assert_eq!(home.read(".cursor/mcp.json"), there);
    insta::assert_snapshot!(home.see(&["connect", "cursor"]), @"
    exit 0
    out wrote `toolcrib` into ~/.cursor/mcp.json
    out as it was before: ~/.cursor/mcp.json.before-toolcrib
    out start Cursor anew to see it; `toolcrib connect cursor --undo` takes it out again
    ");
    insta::assert_snapshot!(home.plain(&home.read(".cursor/mcp.json")), @r#"
    {
        // mine
        "mcpServers": {
            "git": { "command": "x" }, // good
            "toolcrib": {
                "command": "BIN/toolcrib",
                "args": ["serve", "--stdio", "~/work"],
            },
        },
    }
    "#);
    assert_eq!(home.read(".cursor/mcp.json.before-toolcrib"), there);
    insta::assert_snapshot!(home.see(&["connect", "cursor"]), @"
    exit 0
    out ~/.cursor/mcp.json has it already
    ");
    insta::assert_snapshot!(home.see(&["connect", "cursor", "--undo", "--dry-run"]), @"
    exit 0
    out nothing was written; otherwise: ~/.cursor/mcp.json is as it was before
    ");
    insta::assert_snapshot!(home.see(&["connect", "cursor", "--undo"]), @"
    exit 0
    out ~/.cursor/mcp.json is as it was before
    ");
    assert_eq!(home.read(".cursor/mcp.json"), there);
    assert!(!home.has(".cursor/mcp.json.before-toolcrib"));
    insta::assert_snapshot!(home.see(&["connect", "cursor", "--undo"]), @"
    exit 0
    out there is no `toolcrib` in ~/.cursor/mcp.json
    ");
}

/// Each client's file as it comes about where there was none, and that it goes away again.
#[test]
fn connect_makes_the_file_of_every_client() {
    let home = somebody();
    let mut made = String::new();
    for (client, file) in CLIENTS {
        let run = home.run(&["connect", client]);
        assert_eq!(run.code, 0, "{}", run.transcript());
        made.push_str(&format!("-- {file}\n{}", home.plain(&home.read(file))));
        let undo = home.run(&["connect", client, "--undo"]);
        assert_eq!(undo.code, 0, "{}", undo.transcript());
        assert!(!home.has(file), "{file}");
    }
    insta::assert_snapshot!(made, @r#"
    -- .claude.json
    {
      "mcpServers": {
        "toolcrib": {
          "type": "stdio",
          "command": "BIN/toolcrib",
          "args": ["serve", "--stdio", "~/work"]
        }
      }
    }
    -- .config/Claude/claude_desktop_config.json
    {
      "mcpServers": {
        "toolcrib": {
          "command": "BIN/toolcrib",
          "args": ["serve", "--stdio", "~/work"]
        }
      }
    }
    -- .cursor/mcp.json
    {
      "mcpServers": {
        "toolcrib": {
          "command": "BIN/toolcrib",
          "args": ["serve", "--stdio", "~/work"]
        }
      }
    }
    -- .config/Code/User/mcp.json
    {
      "servers": {
        "toolcrib": {
          "type": "stdio",
          "command": "BIN/toolcrib",
          "args": ["serve", "--stdio", "~/work"]
        }
      }
    }
    -- .codeium/windsurf/mcp_config.json
    {
      "mcpServers": {
        "toolcrib": {
          "command": "BIN/toolcrib",
          "args": ["serve", "--stdio", "~/work"]
        }
      }
    }
    -- .config/zed/settings.json
    {
      "context_servers": {
        "toolcrib": {
          "source": "custom",
          "command": "BIN/toolcrib",
          "args": ["serve", "--stdio", "~/work"]
        }
      }
    }
    -- .codex/config.toml
    [mcp_servers.toolcrib]
    command = "BIN/toolcrib"
    args = ["serve", "--stdio", "~/work"]
    "#);
}

#[test]
fn connect_by_address() {
    let home = somebody();
    let url = "http://127.0.0.1:8700/mcp";
    let mut seen = String::new();
    for (client, _) in CLIENTS {
        let args = ["connect", client, "--url", url, "--token-env", "CRIB_TOKEN", "--dry-run"];
        seen.push_str(&home.see(&args));
    }
    insta::assert_snapshot!(seen, @r#"
    exit 0
    out nothing was written; this would go into ~/.claude.json:
    out {
    out   "mcpServers": {
    out     "toolcrib": {
    out       "type": "http",
    out       "url": "http://127.0.0.1:8700/mcp",
    out       "headers": {
    out         "Authorization": "Bearer ${CRIB_TOKEN}"
    out       }
    out     }
    out   }
    out }
    exit 2
    err error: Claude Desktop takes no addresses in its file
    err  hint: leave out --url: it starts `toolcrib serve --stdio`, which goes through a gateway that runs already
    exit 0
    out nothing was written; this would go into ~/.cursor/mcp.json:
    out {
    out   "mcpServers": {
    out     "toolcrib": {
    out       "url": "http://127.0.0.1:8700/mcp",
    out       "headers": {
    out         "Authorization": "Bearer ${env:CRIB_TOKEN}"
    out       }
    out     }
    out   }
    out }
    exit 0
    out nothing was written; this would go into ~/.config/Code/User/mcp.json:
    out {
    out   "servers": {
    out     "toolcrib": {
    out       "type": "http",
    out       "url": "http://127.0.0.1:8700/mcp",
    out       "headers": {
    out         "Authorization": "Bearer ${env:CRIB_TOKEN}"
    out       }
    out     }
    out   }
    out }
    exit 0
    out nothing was written; this would go into ~/.codeium/windsurf/mcp_config.json:
    out {
    out   "mcpServers": {
    out     "toolcrib": {
    out       "serverUrl": "http://127.0.0.1:8700/mcp",
    out       "headers": {
    out         "Authorization": "Bearer ${env:CRIB_TOKEN}"
    out       }
    out     }
    out   }
    out }
    exit 2
    err error: Zed reads no variables in its file
    err  hint: leave out --url, or write the header into its file by hand
    exit 0
    out nothing was written; this would go into ~/.codex/config.toml:
    out [mcp_servers.toolcrib]
    out url = "http://127.0.0.1:8700/mcp"
    out bearer_token_env_var = "CRIB_TOKEN"
    "#);
    insta::assert_snapshot!(home.see(&["connect", "cursor", "--url", "127.0.0.1:8700"]), @"
    exit 2
    err error: `127.0.0.1:8700` is no address
    err  hint: such as http://127.0.0.1:8700/mcp
    ");
    assert_eq!(home.run(&["connect", "zed", "--url", url]).code, 0);
    insta::assert_snapshot!(home.see(&["connect", "zed", "--undo"]), @"
    exit 0
    out removed ~/.config/zed/settings.json, in which nothing else stood
    ");
}

#[test]
fn connect_as_a_group_that_there_is() {
    let home = somebody();
    home.write(
        "work/network.yaml",
        "external_access: { groups: { reader: { exposed_tools: [] } } }\n",
    );
    insta::assert_snapshot!(home.see(&["connect", "cursor", "--group", "writer"]), @"
    exit 2
    err error: there is no group `writer`
    err  hint: there are: guest, reader
    ");
    home.run(&["connect", "cursor", "--group", "reader"]);
    assert!(home.read(".cursor/mcp.json").contains("\"--group\", \"reader\""));
    // Brought up to date in its place; the way back stays.
    home.run(&["connect", "cursor"]);
    assert!(!home.read(".cursor/mcp.json").contains("--group"));
    home.run(&["connect", "cursor", "--undo"]);
    assert!(!home.has(".cursor/mcp.json"));
}

#[test]
fn undo_takes_out_only_what_is_ours() {
    let home = somebody();
    home.write(".codex/config.toml", "# mine\nmodel = \"x\"\n");
    home.run(&["connect", "codex"]);
    // Somebody else writes into the file meanwhile.
    let more = home.read(".codex/config.toml").replace("model = \"x\"", "model = \"y\" # better");
    home.write(".codex/config.toml", &more);
    insta::assert_snapshot!(home.see(&["connect", "codex", "--undo"]), @"
    exit 0
    out took `toolcrib` out of ~/.codex/config.toml; the rest stays as it is
    ");
    assert_eq!(home.read(".codex/config.toml"), "# mine\nmodel = \"y\" # better\n");
    assert!(!home.has(".codex/config.toml.before-toolcrib"));
    let other = "{\"mcpServers\": {\"toolcrib\": {\"command\": \"something-else\"}}}";
    home.write(".cursor/mcp.json", other);
    insta::assert_snapshot!(home.see(&["connect", "cursor"]), @"
    exit 2
    err error: ~/.cursor/mcp.json has another server named `toolcrib`
    err  hint: nothing was written; choose another name: --name NAME
    ");
    insta::assert_snapshot!(home.see(&["connect", "cursor", "--undo"]), @"
    exit 2
    err error: `toolcrib` in ~/.cursor/mcp.json is not toolcrib
    err  hint: nothing was written; take it out by hand if you do not want it
    ");
    assert_eq!(home.read(".cursor/mcp.json"), other);
    home.run(&["connect", "cursor", "--name", "crib"]);
    assert!(home.read(".cursor/mcp.json").contains("\"crib\""));
    home.run(&["connect", "cursor", "--name", "crib", "--undo"]);
    assert_eq!(home.read(".cursor/mcp.json"), other);
}

#[test]
fn a_file_that_cannot_be_read_is_left_alone() {
    let home = somebody();
    let bad = "{\"mcpServers\": {\"a\": {\"env\": {\"K\": \"hunter22\" oops";
    home.write(".cursor/mcp.json", bad);
    home.write(".config/zed/settings.json", "{\"context_servers\": []}");
    home.write(".codex/config.toml", "a = hunter22 hunter22\n");
    fs::create_dir_all(home.folder.file(".claude.json")).unwrap();
    let mut seen = String::new();
    for client in ["cursor", "zed", "codex", "claude-code"] {
        for undo in [&["connect", client][..], &["connect", client, "--undo"]] {
            seen.push_str(&home.see(undo));
        }
    }
    assert!(!seen.contains("hunter22"), "{seen}");
    insta::assert_snapshot!(seen, @"
    exit 2
    err error: ~/.cursor/mcp.json: line 1, column 47: not valid JSON: unexpected `o`
    err  hint: nothing was written; put the file right and try again
    exit 2
    err error: ~/.cursor/mcp.json: line 1, column 47: not valid JSON: unexpected `o`
    err  hint: nothing was written; put the file right and try again
    exit 2
    err error: ~/.config/zed/settings.json: `context_servers` in it is no object
    err  hint: nothing was written; put the file right and try again
    exit 2
    err error: ~/.config/zed/settings.json: `context_servers` in it is no object
    err  hint: nothing was written; put the file right and try again
    exit 2
    err error: ~/.codex/config.toml: TOML parse error at line 1, column 5
    err  hint: nothing was written; put the file right and try again
    exit 2
    err error: ~/.codex/config.toml: TOML parse error at line 1, column 5
    err  hint: nothing was written; put the file right and try again
    exit 2
    err error: ~/.claude.json: it is not a regular file
    err  hint: nothing was written; may you read and write this file? --file FILE names another
    exit 2
    err error: ~/.claude.json: it is not a regular file
    err  hint: nothing was written; may you read and write this file? --file FILE names another
    ");
    assert_eq!(home.read(".cursor/mcp.json"), bad);
    let left = fs::read_dir(home.folder.file(".cursor")).unwrap().count();
    assert_eq!(left, 1, "nothing is left behind");
    let empty = Home::new();
    insta::assert_snapshot!(empty.see(&["connect", "cursor"]), @"
    exit 2
    err error: there is no mcp.json, no tools/ and no events/ in `.`
    err  hint: `toolcrib init` makes a workspace there, `toolcrib import` takes the servers of your clients; or name another folder
    ");
    assert!(!empty.has(".cursor"));
}

#[test]
fn rights_and_links_stay() {
    let home = somebody();
    home.write("dotfiles/mcp.json", "{}\n");
    let real = home.folder.file("dotfiles/mcp.json");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(home.folder.file(".cursor")).unwrap();
    let link = home.folder.file(".cursor/mcp.json");
    std::os::unix::fs::symlink(&real, &link).unwrap();
    home.run(&["connect", "cursor"]);
    assert!(home.read("dotfiles/mcp.json").contains("toolcrib"));
    assert!(link.symlink_metadata().unwrap().is_symlink());
    let mode =
        |name: &str| fs::metadata(home.folder.file(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!([mode("dotfiles/mcp.json"), mode("dotfiles/mcp.json.before-toolcrib")], [0o640; 2]);
    home.run(&["connect", "cursor", "--undo"]);
    assert_eq!(home.read("dotfiles/mcp.json"), "{}\n");
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(mode("dotfiles/mcp.json"), 0o640);
}

/// What is written is what a client can start: it speaks MCP.
#[test]
fn a_client_that_reads_its_file_reaches_the_gateway() {
    let home = Home::new();
    home.run(&["init", "--yes"]);
    home.run(&["connect", "claude-desktop"]);
    let file = home.read(".config/Claude/claude_desktop_config.json");
    let entry: serde_json::Value = serde_json::from_str(&file).unwrap();
    let folder = crate::kit::Folder::workspace(&entry["mcpServers"]);
    let tools = crate::kit::toolcrib(folder.path(), &["tools"]);
    assert!(tools.out.contains("mcp__toolcrib__hello"), "{}", tools.transcript());
}
