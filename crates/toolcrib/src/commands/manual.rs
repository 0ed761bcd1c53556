//! `toolcrib completions SHELL` and `toolcrib man FOLDER`: made from what can be typed, so that they are never behind it.

use std::{fs, path::Path, process::ExitCode};

use clap::CommandFactory;
use clap_complete::Shell;

use super::{Failure, check::count};
use crate::{cli::Args, terminal};

pub(crate) fn completions(shell: Shell) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "toolcrib", &mut script);
    terminal::print_bytes(&script)?;
    Ok(ExitCode::SUCCESS)
}

pub(crate) fn pages(folder: &Path) -> Result<ExitCode, Failure> {
    let fail = |error: std::io::Error| {
        let hint = "name a folder that you may write".to_owned();
        Failure::unusable(format!("`{}`: {error}", folder.display())).hint(Some(hint))
    };
    fs::create_dir_all(folder).map_err(fail)?;
    let mut command = Args::command();
    // Gives each the name of its page, with those of the commands above: toolcrib-events-tail.
    command.build();
    let pages = write(&command, folder).map_err(fail)?;
    let number = count(pages, "page");
    terminal::print(&format!("wrote {number} to {}\n", folder.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the page of a command, and of those below it; returns how many.
fn write(command: &clap::Command, folder: &Path) -> std::io::Result<usize> {
    clap_mangen::Man::new(command.clone()).generate_to(folder)?;
    let shown = |it: &&clap::Command| it.get_name() != "help" && !it.is_hide_set();
    let below = command.get_subcommands().filter(shown);
    below.map(|it| write(it, folder)).sum::<std::io::Result<usize>>().map(|it| it + 1)
}
