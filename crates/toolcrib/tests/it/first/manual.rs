//! Completions and man pages name every command.

use super::Home;

/// All commands, as `--help` lists them, with what stands above each.
fn commands(home: &Home, above: &[String]) -> Vec<Vec<String>> {
    let args: Vec<&str> = above.iter().map(String::as_str).chain(["--help"]).collect();
    let help = home.run(&args).out;
    let Some((_, list)) = help.split_once("Commands:\n") else { return Vec::new() };
    let lines = list.lines().take_while(|it| !it.is_empty());
    // A description that goes on stands further to the right.
    let names = lines.filter(|it| it.starts_with("  ") && !it.starts_with("   "));
    let names = names.filter_map(|it| it.split_whitespace().next()).filter(|it| *it != "help");
    let mut all = Vec::new();
    for name in names {
        let path: Vec<String> = above.iter().cloned().chain([name.to_owned()]).collect();
        all.push(path.clone());
        all.extend(commands(home, &path));
    }
    all
}

#[test]
fn man_pages_are_there_for_every_command() {
    let home = Home::new();
    let all = commands(&home, &[]);
    assert!(20 < all.len(), "{all:?}");
    let run = home.run(&["man", "pages"]);
    assert_eq!(run.out, format!("wrote {} pages to pages\n", all.len() + 1));
    let above = home.read("work/pages/toolcrib.1");
    for path in all {
        let page = home.read(&format!("work/pages/toolcrib-{}.1", path.join("-")));
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{path:?}");
        if path.len() == 1 {
            assert!(
                above.contains(&format!("toolcrib\\-{}(1)", path[0].replace('-', "\\-"))),
                "{path:?}"
            );
        }
    }
    assert_eq!(home.run(&["man", "pages/toolcrib.1"]).code, 2);
}

#[test]
fn completions_know_every_command() {
    let home = Home::new();
    let all = commands(&home, &[]);
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let run = home.run(&["completions", shell]);
        assert_eq!(run.code, 0);
        for name in all.iter().filter_map(|it| it.last()) {
            assert!(run.out.contains(name.as_str()), "{shell}: {name}");
        }
    }
    // Where there is a bash, it understands them, and completes.
    home.write("work/c.bash", &home.run(&["completions", "bash"]).out);
    let script = "source c.bash; COMP_WORDS=(toolcrib conn); COMP_CWORD=1; _toolcrib toolcrib conn toolcrib; echo \"${COMPREPLY[*]}\"";
    let mut bash = std::process::Command::new("bash");
    home.at_home(&mut bash);
    let said = crate::kit::run(bash.args(["--norc", "-c", script]));
    assert_eq!(said.out, "connect\n", "{}", said.transcript());
}
