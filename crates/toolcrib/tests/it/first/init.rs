//! `toolcrib init`, and what somebody sees who starts without anything.

use super::Home;

#[test]
fn init_makes_a_workspace_that_runs_at_once() {
    let home = Home::new();
    insta::assert_snapshot!(home.see(&["init", "crib"]), @"
    exit 0
    out made  crib/mcp.json          the MCP servers you use
    out made  crib/network.yaml      where it listens, who may ask
    out made  crib/tools/hello.py    a tool in Python
    out made  crib/events/note.yaml  an event, which is a tool too
    out 
    out try it:  toolcrib call -w crib hello name=World
    out run it:  toolcrib serve crib
    ");
    let check = crate::readme::any_python(&home.see(&["check", "crib"]));
    insta::assert_snapshot!(check, @"
    exit 0
    out ready   1 tool in 1 file, Python 3.x
    out 0 servers, 2 tools in the catalogue, no problems
    ");
    insta::assert_snapshot!(home.see(&["call", "-w", "crib", "hello", "name=World", "times=2"]), @"
    exit 0
    out Hello, World! Hello, World!
    ");
    let noted = home.run(&["call", "-w", "crib", "take_note", "text=milk"]);
    assert_eq!(noted.code, 0, "{}", noted.transcript());
    let events = home.run(&["events", "tail", "-w", "crib", "--no-follow"]);
    assert!(events.out.contains("note.taken") && events.out.contains("milk"), "{}", events.out);
}

#[test]
fn init_overwrites_nothing() {
    let home = Home::new();
    home.write("work/mcp.json", r#"{"mcpServers": {"mine": {"command": "x", "disabled": true}}}"#);
    home.write("work/tools/other.py", "# not ours\n");
    insta::assert_snapshot!(home.see(&["init", "--yes"]), @"
    exit 0
    out kept  mcp.json          it is there already
    out made  network.yaml      where it listens, who may ask
    out kept  tools/hello.py    not made, since its folder is there already
    out made  events/note.yaml  an event, which is a tool too
    out 
    out run it:  toolcrib serve
    ");
    assert!(home.read("work/mcp.json").contains("mine"));
    assert!(!home.has("work/tools/hello.py"));
    home.write("work/network.yaml", "listen: 127.0.0.1:1\n");
    insta::assert_snapshot!(home.see(&["init"]), @"
    exit 0
    out kept  mcp.json          it is there already
    out kept  network.yaml      it is there already
    out kept  tools/hello.py    not made, since its folder is there already
    out kept  events/note.yaml  it is there already
    out 
    out run it:  toolcrib serve
    ");
    assert_eq!(home.read("work/network.yaml"), "listen: 127.0.0.1:1\n");
}

#[test]
fn init_says_where_it_cannot_write() {
    let home = Home::new();
    home.write("work/file", "");
    insta::assert_snapshot!(home.see(&["init", "file"]), @"
    exit 2
    err error: `file` is no folder
    err  hint: name another one
    ");
    insta::assert_snapshot!(home.see(&["init", "file/below"]), @"
    exit 2
    err error: `file/below/mcp.json`: Not a directory (os error 20)
    err  hint: is there room, and may you write there?
    ");
    // A name that a shell would take apart is shown as one types it.
    let made = home.run(&["init", "it's mine"]).out;
    assert!(made.ends_with("run it:  toolcrib serve 'it'\\''s mine'\n"), "{made}");
}

#[test]
fn a_first_start_without_configuration_explains_itself() {
    let home = Home::new();
    insta::assert_snapshot!(home.see(&["serve"]), @"
    exit 2
    err error: there is no mcp.json, no tools/ and no events/ in `.`
    err  hint: `toolcrib init` makes a workspace there, `toolcrib import` takes the servers of your clients; or name another folder
    ");
    insta::assert_snapshot!(home.see(&["serve", "--stdio"]), @"
    exit 2
    err error: there is no mcp.json, no tools/ and no events/ in `.`
    err  hint: `toolcrib init` makes a workspace there, `toolcrib import` takes the servers of your clients; or name another folder
    ");
    let serve = "serve --listen 127.0.0.1:0";
    let no = home.see_on_a_terminal(serve, "n\n", "never");
    assert!(no.contains("There is no workspace in `.` yet. Make one? [Y/n]"), "{no}");
    assert!(no.contains("error: there is no mcp.json"), "{no}");
    assert!(!home.has("work/mcp.json"));
    let yes = home.see_on_a_terminal(serve, "\n", "tools in all");
    assert!(yes.contains("made  tools/hello.py"), "{yes}");
    assert!(yes.contains("serves ."), "{yes}");
    assert!(home.has("work/mcp.json"));
}
