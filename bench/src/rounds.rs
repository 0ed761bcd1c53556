//! The measuring: in every round, each who takes part for a short time.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{task::JoinSet, time::timeout};
use toolcrib_wire::Era;

use crate::{
    answer::Expected,
    cases::{Case, Contender, What},
    connection::{Connection, Reply},
    failure::Failure,
    figures::Slice,
    gateways::{Door, Way},
    histogram::Histogram,
    pipe::Pipe,
    process::{cpu_of, memory_of},
    request::{Manner, Numbers, Template},
    world::World,
};

/// How long it takes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    pub(crate) rounds: u32,
    /// The times of the cases are divided by this.
    pub(crate) hurry: u32,
    pub(crate) warm_up: Duration,
    /// How long somebody else's gateway may keep us in one case; then it sits out the rounds that are left.
    pub(crate) budget: Duration,
}

/// What one case showed.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) case: Case,
    pub(crate) outcomes: Vec<Outcome>,
}

/// What one who took part showed.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) contender: Contender,
    /// One a round.
    pub(crate) slices: Vec<Slice>,
    /// Anonymous memory of the process afterwards, in kilobytes.
    pub(crate) memory: Option<u64>,
    /// Why there is nothing.
    pub(crate) failure: Option<String>,
}

/// No answer takes so long.
const STUCK: Duration = Duration::from_secs(60);

/// Servers close connections on which nothing happens, some of them after five seconds.
const RESTED: Duration = Duration::from_secs(3);

/// Runs one case. Who comes first changes from round to round, so that nobody always follows the same.
pub(crate) async fn run(world: &mut World, plan: &Plan, case: Case) -> Result<Measured, Failure> {
    // All of them first: some take so long to begin that the others' connections would be closed meanwhile.
    let mut ways = Vec::new();
    for contender in &case.contenders {
        ways.push(world.way(*contender).await);
    }
    let mut runners = Vec::new();
    for (contender, way) in case.contenders.iter().zip(ways) {
        let mut runner = Runner::new(*contender, &world.numbers);
        runner.begin(way, &case, plan).await;
        runner.forgive(&case)?;
        runners.push(runner);
    }
    let time = case.time / plan.hurry;
    for round in 0..plan.rounds as usize {
        for turn in 0..runners.len() {
            let at = (round + turn) % runners.len();
            let runner = &mut runners[at];
            runner.take_turn(time, plan.budget).await;
            runner.forgive(&case)?;
        }
    }
    let mut outcomes = Vec::new();
    for runner in runners {
        outcomes.push(runner.end().await);
    }
    Ok(Measured { case, outcomes })
}

/// One who takes part.
struct Runner {
    contender: Contender,
    numbers: Arc<Numbers>,
    way: Option<Way>,
    askers: Vec<Asker>,
    slices: Vec<Slice>,
    spent: Duration,
    /// When its connections were used last.
    used: Instant,
    failure: Option<String>,
}

impl Runner {
    fn new(contender: Contender, numbers: &Arc<Numbers>) -> Self {
        Self {
            contender,
            numbers: Arc::clone(numbers),
            way: None,
            askers: Vec::new(),
            slices: Vec::new(),
            spent: Duration::ZERO,
            used: Instant::now(),
            failure: None,
        }
    }

    /// What went wrong with somebody else's gateway is told; with anything of ours it ends the run.
    fn forgive(&self, case: &Case) -> Result<(), Failure> {
        match &self.failure {
            Some(failure) if !self.contender.who.is_other() => {
                let place = format!("{}, {}", case.name(self.contender), case.id);
                Err(Failure::new(failure.clone()).at(&place))
            }
            _ => Ok(()),
        }
    }

    /// Opens all connections, and warms up.
    async fn begin(&mut self, way: Result<Way, Failure>, case: &Case, plan: &Plan) {
        let way = match way {
            Ok(way) => way,
            Err(failure) => {
                self.failure = Some(failure.to_string());
                return;
            }
        };
        let opened = self.open(&way, case).await;
        self.way = Some(way);
        if let Err(failure) = opened {
            self.failure = Some(failure.to_string());
            return;
        }
        if let Err(failure) = self.measure(plan.warm_up).await {
            self.failure = Some(failure.to_string());
        }
    }

    async fn open(&mut self, way: &Way, case: &Case) -> Result<(), Failure> {
        // Where there are many, the first grow old while the last are opened.
        let begin = Instant::now();
        let expected = match (&way.door, case.what) {
            (Door::File(_, _, bytes), _) => Expected::File(Arc::new(bytes.to_vec())),
            (_, What::Call(size)) => Expected::call(size),
            (_, What::List) => Expected::list(way.tools, way.hidden),
        };
        for _ in 0..case.connections {
            let asker = Asker::open(way, case, expected.clone(), &self.numbers);
            let asker = timeout(STUCK, asker).await.unwrap_or_else(|_| Err(stuck()))?;
            self.askers.push(asker);
        }
        self.warm().await?;
        self.used = begin;
        Ok(())
    }

    /// What a new connection costs is not what we want to know. Somebody else's gateway may be so slow that asking
    /// once on each would take as long as a round.
    async fn warm(&mut self) -> Result<(), Failure> {
        if !self.contender.who.is_other() {
            for asker in &mut self.askers {
                asker.ask().await?;
            }
        }
        self.used = Instant::now();
        Ok(())
    }

    /// Connects again where others took their time. Sessions go on.
    async fn refresh(&mut self) -> Result<(), Failure> {
        if self.used.elapsed() < RESTED {
            return Ok(());
        }
        for asker in &mut self.askers {
            asker.reconnect().await?;
        }
        self.warm().await
    }

    async fn take_turn(&mut self, time: Duration, budget: Duration) {
        if self.failure.is_some() || (self.contender.who.is_other() && budget < self.spent) {
            return;
        }
        let begin = Instant::now();
        match self.measure(time).await {
            Ok(slice) => self.slices.push(slice),
            Err(failure) => self.failure = Some(failure.to_string()),
        }
        self.spent += begin.elapsed();
    }

    async fn measure(&mut self, time: Duration) -> Result<Slice, Failure> {
        timeout(STUCK, self.refresh()).await.unwrap_or_else(|_| Err(stuck()))?;
        let cpu = self.cpu()?;
        let askers = std::mem::take(&mut self.askers);
        let begin = Instant::now();
        let asking: JoinSet<_> = askers.into_iter().map(|it| it.ask_until(begin + time)).collect();
        let asked = timeout(time + STUCK, asking.join_all()).await;
        let elapsed = begin.elapsed();
        let (mut times, mut bytes) = (Histogram::default(), 0);
        for asked in asked.unwrap_or_else(|_| vec![Err(stuck())]) {
            let (asker, asked) = asked?;
            self.askers.push(asker);
            asked.iter().for_each(|it| times.record(it.0));
            bytes += asked.iter().map(|it| it.1 as u64).sum::<u64>();
        }
        // The first to be done rest while the others wait for their last answer.
        self.used = begin + time;
        Ok(Slice { times, elapsed, bytes, cpu: self.cpu()?.saturating_sub(cpu) })
    }

    /// The CPU time that whoever stands between has used so far; on a pipe, whoever is at its end.
    fn cpu(&self) -> Result<Duration, Failure> {
        let process = self.way.as_ref().and_then(|it| it.process.as_ref());
        let piped = self.askers.first().and_then(Asker::process);
        match (process, piped) {
            (Some(process), _) => process.cpu(),
            (None, Some(id)) => cpu_of(id),
            (None, None) => Ok(Duration::ZERO),
        }
    }

    fn memory(&self) -> Option<u64> {
        let process = self.way.as_ref().and_then(|it| it.process.as_ref());
        match process {
            Some(process) => process.memory().ok(),
            None => memory_of(self.askers.first()?.process()?).ok(),
        }
    }

    async fn end(self) -> Outcome {
        let memory = self.memory();
        for asker in self.askers.into_iter().filter(|it| it.end.is_some()) {
            timeout(STUCK, asker.end()).await.ok();
        }
        let slices = if self.failure.is_some() { Vec::new() } else { self.slices };
        Outcome { contender: self.contender, slices, memory, failure: self.failure }
    }
}

fn stuck() -> Failure {
    Failure::new("an answer does not come")
}

/// What a request goes out by.
enum Line {
    Http(Connection),
    Pipe(Box<Pipe>),
}

impl Line {
    async fn ask(&mut self, template: &Template, number: u64) -> Result<Reply<'_>, Failure> {
        match self {
            Self::Http(connection) => connection.ask(template, number).await,
            Self::Pipe(pipe) => pipe.ask(template, number).await,
        }
    }
}

/// Somebody who asks again and again.
struct Asker {
    numbers: Arc<Numbers>,
    line: Line,
    template: Template,
    expected: Expected,
    /// How it ends its session, if it has one.
    end: Option<Template>,
}

impl Asker {
    /// Connects, and opens a session in the legacy era.
    async fn open(
        way: &Way,
        case: &Case,
        expected: Expected,
        numbers: &Arc<Numbers>,
    ) -> Result<Self, Failure> {
        let token = way.token.as_deref();
        let manner = Manner { to: way.target(), era: case.era, session: None, token };
        let mut line = match &way.door {
            Door::Http(address, _) | Door::File(address, ..) => {
                Line::Http(Connection::open(*address).await?)
            }
            Door::Pipe(program) => Line::Pipe(Box::new(Pipe::open(program)?)),
        };
        let session = match (case.era, &mut line) {
            (Era::Legacy, Line::Http(connection)) => {
                open_session(connection, manner, numbers).await?
            }
            _ => None,
        };
        let manner = Manner { session: session.as_deref(), ..manner };
        let template = match (&way.door, case.what) {
            (Door::File(address, path, _), _) => Template::file(*address, path),
            (_, What::Call(size)) => Template::call(manner, &way.tool, size),
            (_, What::List) => Template::list(manner),
        };
        let (numbers, end) = (Arc::clone(numbers), Template::end(manner));
        Ok(Self { numbers, line, template, expected, end })
    }

    async fn reconnect(&mut self) -> Result<(), Failure> {
        match &mut self.line {
            Line::Http(connection) => connection.reconnect().await,
            Line::Pipe(_) => Ok(()),
        }
    }

    /// Asks once: how long it took, and how long the answer was. It is looked at when the clock has
    /// stopped.
    async fn ask(&mut self) -> Result<(Duration, usize), Failure> {
        let number = self.numbers.next();
        let begin = Instant::now();
        let reply = self.line.ask(&self.template, number).await?;
        let time = begin.elapsed();
        self.expected.check(&reply, number)?;
        Ok((time, reply.body.len()))
    }

    async fn ask_until(mut self, end: Instant) -> Result<(Self, Vec<(Duration, usize)>), Failure> {
        let mut asked = Vec::new();
        while Instant::now() < end {
            asked.push(self.ask().await?);
        }
        Ok((self, asked))
    }

    fn process(&self) -> Option<u32> {
        match &self.line {
            Line::Http(_) => None,
            Line::Pipe(pipe) => pipe.id(),
        }
    }

    async fn end(mut self) -> Result<(), Failure> {
        if let Some(end) = &self.end {
            self.line.ask(end, 0).await?;
        }
        Ok(())
    }
}

/// Opens a legacy session as a client does: its id, if the server keeps sessions.
pub(crate) async fn open_session(
    connection: &mut Connection,
    manner: Manner<'_>,
    numbers: &Numbers,
) -> Result<Option<String>, Failure> {
    let reply = connection.ask(&Template::initialize(manner), numbers.next()).await?;
    let session = reply.header("mcp-session-id").map(str::to_owned);
    if reply.status != 200 {
        let body = String::from_utf8_lossy(&reply.body[..reply.body.len().min(300)]);
        return Err(Failure::new(format!("no session: {} {body}", reply.status)));
    }
    let manner = Manner { session: session.as_deref(), ..manner };
    let reply = connection.ask(&Template::initialized(manner), 0).await?;
    match reply.status {
        200 | 202 | 204 => Ok(session),
        status => Err(Failure::new(format!("a session does not begin: {status}"))),
    }
}
