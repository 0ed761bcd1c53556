//! What a call costs: straight to a server, through nginx as a plain forwarder, through toolcrib, and through
//! the gateways that one would take instead.
//!
//! Whoever takes part in a case takes turns in every round, so that whatever else the machine does meets all
//! alike. Every answer is checked; one of ours that is wrong ends the run. Speed is told, never enforced.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a benchmark speaks to a person")]

mod failure;
mod site;
mod upstream;
mod stdio;
mod request;
mod connection;
mod pipe;
mod answer;
mod process;
mod gateways;
mod cases;
mod world;
mod rounds;
mod once;
mod histogram;
mod figures;
mod forward;
mod goals;
mod table;
mod growth;
mod plot;
mod report;

use std::{
    fs,
    path::PathBuf,
    process::ExitCode,
    time::{Duration, Instant},
};

use clap::{Parser, Subcommand};

use crate::{
    cases::{Case, Quick, Who},
    failure::Failure,
    gateways::Programs,
    report::Report,
    rounds::Plan,
    world::World,
};

/// Compares a direct connection, nginx, toolcrib and other gateways.
#[derive(Debug, Parser)]
struct Args {
    /// Fewer cases and short rounds: a minute and a half at most.
    #[arg(long)]
    quick: bool,
    /// Print figures for a program.
    #[arg(long)]
    json: bool,
    /// Measure only what has this word in its name, such as `call-64`, `list` or `start`.
    #[arg(long, value_name = "WORD")]
    only: Option<String>,
    /// How often those who take part take turns.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// Write results.md and results.svg into this folder.
    #[arg(long, value_name = "FOLDER")]
    write: Option<PathBuf>,
    /// Which nginx.
    #[arg(long, default_value = "nginx")]
    nginx: PathBuf,
    /// Which toolcrib; the one beside this program if not said.
    #[arg(long)]
    toolcrib: Option<PathBuf>,
    /// Where other gateways are installed.
    #[arg(long, default_value = ".tools/bench")]
    tools: PathBuf,
    #[command(subcommand)]
    role: Option<Role>,
}

/// What this program is besides.
#[derive(Debug, Subcommand)]
enum Role {
    /// An MCP server on standard input and output.
    #[command(name = stdio::WORD, hide = true)]
    StdioServer,
    /// Bytes to such a server and back.
    #[command(name = forward::WORD, hide = true)]
    Forward,
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = match args.role {
        Some(Role::StdioServer) => serve_stdio().map(|()| String::new()),
        Some(Role::Forward) => forward::run().map(|()| String::new()),
        None => run(&args),
    };
    match done {
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

fn serve_stdio() -> Result<(), Failure> {
    stdio::serve(std::io::stdin().lock(), std::io::BufWriter::new(std::io::stdout().lock()))
}

fn run(args: &Args) -> Result<String, Failure> {
    let itself = std::env::current_exe()?;
    let toolcrib = args.toolcrib.clone().unwrap_or_else(|| itself.with_file_name("toolcrib"));
    let toolcrib = fs::canonicalize(&toolcrib)
        .map_err(|error| Failure::from(error).at(&toolcrib.display().to_string()))?;
    let tools = std::path::absolute(&args.tools)?;
    let programs = Programs { nginx: args.nginx.clone(), toolcrib, tools, itself };
    // One thread: what the client costs must not grow with what it measures.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(measure(args, programs))?;
    if let Some(folder) = &args.write {
        fs::write(folder.join("results.md"), report.page())?;
        fs::write(folder.join("results.svg"), plot::svg(&plot::panels(&report.measured)))?;
    }
    Ok(if args.json { report.json() } else { report.text() })
}

async fn measure(args: &Args, programs: Programs) -> Result<Report, Failure> {
    let plan = if args.quick { quick() } else { whole() };
    let plan = Plan { rounds: args.rounds.unwrap_or(plan.rounds), ..plan };
    let word = args.only.as_deref().unwrap_or_default();
    let is_wanted = |it: &Case| it.is_meant(word) && (!args.quick || it.quick == Quick::Yes);
    let cases: Vec<Case> = cases::all().into_iter().filter(is_wanted).collect();
    let singles: Vec<&str> = once::IDS.into_iter().filter(|it| it.contains(word)).collect();
    if cases.is_empty() && singles.is_empty() {
        return Err(Failure::new(format!("nothing is called `{word}`")));
    }
    let (before, begin) = (report::load_average(), Instant::now());
    let tell = |what: &str| eprintln!("== {:>4.0} s  {what}", begin.elapsed().as_secs_f64());
    let too_long = (Who::ContextForge, "left out of a quick run: it takes too long to begin");
    let mut world = World::start(programs, args.quick.then_some(too_long))?;
    let (mut measured, mut once) = (Vec::new(), Vec::new());
    for id in singles {
        tell(id);
        once.extend(once::run(&world, id).await.map_err(|failure| failure.at(id))?);
    }
    for case in cases {
        tell(case.title);
        measured.push(rounds::run(&mut world, &plan, case).await?);
    }
    let checked = world.numbers.count();
    let busy = [before, report::load_average()];
    let part = args.only.is_some();
    Ok(Report { rounds: plan.rounds, part, measured, once, checked, busy })
}

/// Ten minutes at most.
fn whole() -> Plan {
    let (warm_up, budget) = (Duration::from_millis(300), Duration::from_secs(6));
    Plan { rounds: 10, hurry: 1, warm_up, budget }
}

/// A minute and a half at most.
fn quick() -> Plan {
    let (warm_up, budget) = (Duration::from_millis(50), Duration::from_millis(1500));
    Plan { rounds: 10, hurry: 5, warm_up, budget }
}
