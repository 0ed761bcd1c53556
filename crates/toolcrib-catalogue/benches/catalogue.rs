//! What it costs to name, filter, merge and look up 100,000 tools, in CPU time.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_catalogue::{Catalogue, Json, Listing, NameStyle, Origin, Settings, Tool, ToolFilter};

const SERVERS: usize = 100;
const TOOLS: usize = 1000;
const ROUNDS: usize = 15;

fn main() {
    let listings: Vec<Listing> = (0..SERVERS).map(listing).collect();
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = cpu_time();
            let (catalogue, problems) = Catalogue::build(&listings, &Settings::default()).unwrap();
            let time = cpu_time() - begin;
            assert_eq!(problems, []);
            assert_eq!(catalogue.entries().len(), SERVERS * (TOOLS - 1));
            time
        })
        .collect();
    times.sort();
    let (catalogue, _) = Catalogue::build(&listings, &Settings::default()).unwrap();
    let names: Vec<String> =
        catalogue.entries().iter().step_by(7).map(|it| it.name.to_string()).collect();
    let begin = cpu_time();
    for name in &names {
        assert!(catalogue.get(name).is_some());
    }
    let look_up = (cpu_time() - begin) / u32::try_from(names.len()).unwrap();
    println!(
        "name, filter and merge 100,000 tools: median {:.2?}, worst {:.2?} of CPU time (goal: 50 ms)",
        times[ROUNDS / 2],
        times[ROUNDS - 1]
    );
    println!("look one up: {look_up:.0?}");
}

/// The tools of one server: names of several shapes, out of order, one of them excluded.
fn listing(server: usize) -> Listing {
    let tools = (0..TOOLS).map(|number| {
        let number = number * 7919 % TOOLS;
        let name = match number % 4 {
            0 => format!("get_item_{number}"),
            1 => format!("search-items.v{number}"),
            2 => format!("listAllThings{number}"),
            _ => format!("a_rather_long_name_for_a_tool_that_does_one_small_thing_{number}"),
        };
        let raw = serde_json::json!({ "name": name, "inputSchema": { "type": "object" } });
        Arc::new(Tool::read(Json::of(&raw).unwrap()).unwrap())
    });
    Listing {
        origin: Origin::Upstream(format!("server-{server}")),
        style: NameStyle::Prefixed,
        filter: ToolFilter::new([""; 0], ["get_item_0"]),
        tools: tools.collect(),
    }
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}
