//! What a call costs: straight to a server, through nginx as a plain forwarder, and through toolcrib with
//! a token and a filter on.
//!
//! The three take turns in every round, so that whatever else the machine does meets them alike. Every
//! answer is checked; one that is wrong ends the run. Speed is told, never enforced.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark speaks to a person")]

mod failure;
mod upstream;
mod request;
mod connection;
mod answer;
mod children;
mod world;
mod rounds;
mod figures;
mod report;

use std::{path::PathBuf, process::ExitCode, time::Duration};

use clap::Parser;

use crate::{failure::Failure, report::Report, rounds::Plan, world::World};

/// Compares a direct connection, nginx and toolcrib.
#[derive(Debug, Parser)]
struct Args {
    /// Short rounds: about 20 seconds in all.
    #[arg(long)]
    quick: bool,
    /// Print figures for a program.
    #[arg(long)]
    json: bool,
    /// How often the three take turns.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Which nginx.
    #[arg(long, default_value = "nginx")]
    nginx: PathBuf,
    /// Which toolcrib; the one beside this program if not said.
    #[arg(long)]
    toolcrib: Option<PathBuf>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(text) => {
            print!("{text}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<String, Failure> {
    let beside = || Ok::<_, Failure>(std::env::current_exe()?.with_file_name("toolcrib"));
    let toolcrib = args.toolcrib.clone().map_or_else(beside, Ok)?;
    let plan = if args.quick { quick() } else { whole() };
    let plan = Plan { rounds: args.rounds.unwrap_or(plan.rounds), ..plan };
    // One thread: what the client costs must not grow with what it measures.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut world = World::start(&args.nginx, &toolcrib)?;
        let before = report::load_average();
        world.check().await?;
        let results = rounds::run(&world, &plan).await?;
        let report = Report::new(&plan, &world, &results, before);
        Ok(if args.json { report.json() } else { report.table() })
    })
}

/// Under three minutes.
fn whole() -> Plan {
    let times = [800, 1000, 400, 500, 400].map(Duration::from_millis);
    Plan { rounds: 12, times, warm_up: Duration::from_millis(500) }
}

/// About 20 seconds.
fn quick() -> Plan {
    let times = [150, 200, 50, 100, 100].map(Duration::from_millis);
    Plan { rounds: 10, times, warm_up: Duration::from_millis(100) }
}
