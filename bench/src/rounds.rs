//! The measuring: in every round, each load on each way for a short time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::timeout};
use toolcrib_wire::Era;

use crate::{
    answer::Expected,
    connection::Connection,
    failure::Failure,
    figures::Slice,
    request::{Numbers, Template},
    world::{Way, World},
};

/// How long it takes.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) rounds: u32,
    /// What each of the loads gets, in each round, on each way.
    pub(crate) times: [Duration; LOADS.len()],
    pub(crate) warm_up: Duration,
}

/// What is asked, and by how many at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) name: &'static str,
    pub(crate) era: Era,
    pub(crate) what: What,
    pub(crate) connections: usize,
}

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Call,
    List,
}

/// What is measured.
pub(crate) const LOADS: [Load; 5] = [
    load("tools/call, 1 connection", Era::Modern, What::Call, 1),
    load("tools/call, 64 connections", Era::Modern, What::Call, 64),
    load("tools/call, 1 connection, legacy session", Era::Legacy, What::Call, 1),
    load("tools/call, 64 connections, legacy session", Era::Legacy, What::Call, 64),
    load("tools/list of 10,000 tools, 1 connection", Era::Modern, What::List, 1),
];

const fn load(name: &'static str, era: Era, what: What, connections: usize) -> Load {
    Load { name, era, what, connections }
}

/// By load, by way: a slice a round.
pub(crate) type Results = [[Vec<Slice>; 3]; LOADS.len()];

/// No answer takes so long.
const STUCK: Duration = Duration::from_secs(20);

/// Runs the rounds. Who comes first changes, so that nobody always follows the same.
pub(crate) async fn run(world: &World, plan: &Plan) -> Result<Results, Failure> {
    for load in LOADS {
        for way in Way::ALL {
            measure(world, way, load, plan.warm_up).await?;
        }
    }
    let mut results = Results::default();
    for round in 0..plan.rounds as usize {
        for ((load, time), by_way) in LOADS.into_iter().zip(plan.times).zip(&mut results) {
            for turn in 0..Way::ALL.len() {
                let way = Way::ALL[(round + turn) % Way::ALL.len()];
                by_way[way.place()].push(measure(world, way, load, time).await?);
            }
        }
    }
    Ok(results)
}

/// One load on one way for some time.
async fn measure(world: &World, way: Way, load: Load, time: Duration) -> Result<Slice, Failure> {
    let measured = timeout(time + STUCK, measure_patiently(world, way, load, time)).await;
    let measured = measured.unwrap_or_else(|_| Err(Failure::new("an answer does not come")));
    measured.map_err(|failure| failure.at(&format!("{}, {}", way.name(), load.name)))
}

async fn measure_patiently(
    world: &World,
    way: Way,
    load: Load,
    time: Duration,
) -> Result<Slice, Failure> {
    let manner = world.manner(way, load.era);
    let (template, expected) = match load.what {
        What::Call => (Template::echo(manner), Expected::Echo),
        What::List => (Template::list(manner), Expected::List(world.list(way))),
    };
    let template = Arc::new(template);
    let mut askers = Vec::new();
    for _ in 0..load.connections {
        let connection = Connection::open(world.address(way)).await?;
        let (numbers, template) = (Arc::clone(&world.numbers), Arc::clone(&template));
        let mut asker = Asker { numbers, connection, template, expected: expected.clone() };
        // What a new connection costs is not what we want to know.
        asker.ask().await?;
        askers.push(asker);
    }
    let cpu = world.cpu(way)?;
    let begin = Instant::now();
    let mut asking: JoinSet<_> = askers.into_iter().map(|it| it.ask_until(begin + time)).collect();
    let (mut times, mut bytes) = (Vec::new(), 0);
    while let Some(asked) = asking.join_next().await {
        let asked = asked.map_err(|error| Failure::new(error.to_string()))??;
        times.extend(asked.0);
        bytes += asked.1;
    }
    let elapsed = begin.elapsed();
    let cpu = world.cpu(way)?.saturating_sub(cpu);
    Ok(Slice::new(times, elapsed, bytes, cpu))
}

/// Somebody who asks again and again.
struct Asker {
    numbers: Arc<Numbers>,
    connection: Connection,
    template: Arc<Template>,
    expected: Expected,
}

impl Asker {
    /// Asks once: how long it took, and how long the answer was. It is looked at when the clock has
    /// stopped.
    async fn ask(&mut self) -> Result<(Duration, usize), Failure> {
        let number = self.numbers.next();
        let begin = Instant::now();
        let reply = self.connection.ask(&self.template, number).await?;
        let time = begin.elapsed();
        self.expected.check(&reply, number)?;
        Ok((time, reply.body.len()))
    }

    async fn ask_until(mut self, end: Instant) -> Result<(Vec<Duration>, usize), Failure> {
        let (mut times, mut bytes) = (Vec::new(), 0);
        while Instant::now() < end {
            let (time, length) = self.ask().await?;
            times.push(time);
            bytes += length;
        }
        Ok((times, bytes))
    }
}
