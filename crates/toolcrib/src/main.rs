//! The `toolcrib` command.

mod cli;
mod clients;
mod commands;
mod terminal;

use std::process::ExitCode;

use clap::Parser;

// A call makes some forty small pieces and lets them go again: with the system's allocator that is a sixth
// of what it costs.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = cli::Args::parse();
    let serves = matches!(args.command, cli::Command::Serve { .. });
    terminal::log_to_stderr(args.verbose, serves, args.log_format);
    // In the log secrets are masked.
    toolcrib::tell_panics(|what| tracing::error!("{what}"));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // A call is one task from socket to socket. With a thread for every core it wanders from one to the other: on two
    // cores, one thread took a quarter less CPU time a call than two. The other cores are for `serve::hands`.
    let threads = std::thread::available_parallelism().map_or(1, |it| it.get().div_ceil(2));
    let runtime = match runtime.worker_threads(threads).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            terminal::complain(&format!("cannot start: {error}"), None);
            return ExitCode::from(2);
        }
    };
    let ended = runtime.block_on(commands::run(args.command));
    // Whatever still runs has been told to end; nobody waits for it twice.
    runtime.shutdown_background();
    match ended {
        Ok(code) => code,
        Err(failure) => failure.tell(),
    }
}
