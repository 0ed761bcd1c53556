//! What is measured by itself: memory, the start, the size of the program.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::{Map, Value};
use tokio::time::sleep;
use toolcrib_wire::Era;

use crate::{
    answer::Expected,
    connection::Connection,
    failure::Failure,
    figures::{Spread, float},
    gateways::{
        Way,
        toolcrib::{self, Care},
    },
    process::{Folder, Process, cpu_of, forget_peak, resident},
    request::{Manner, TOKEN, Template},
    rounds::open_session,
    site::{ECHO, FEW},
    upstream,
    world::World,
};

/// A figure by itself.
#[derive(Debug)]
pub(crate) struct Once {
    pub(crate) id: &'static str,
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) found: Spread,
}

/// How many servers there are for the idle memory.
const SERVERS: usize = 10;

/// How many sessions are opened at a time, and how many times.
const SESSIONS: u32 = 1_000;
const BATCHES: u32 = 5;

/// How often a gateway is started.
const STARTS: usize = 20;

/// A large result.
const LARGE: usize = 10_000_000;

/// How long memory is given to settle.
const SETTLE: Duration = Duration::from_secs(1);

/// What can be measured.
pub(crate) const IDS: [&str; 5] = ["binary", "start", "idle", "sessions", "peak"];

pub(crate) async fn run(world: &World, id: &str) -> Result<Vec<Once>, Failure> {
    match id {
        "binary" => binary(&world.programs.toolcrib),
        "start" => start(world).await,
        "idle" => idle(world).await,
        "sessions" => sessions(world).await,
        _ => peak(world).await,
    }
}

fn once(id: &'static str, name: &'static str, unit: &'static str, found: Spread) -> Once {
    Once { id, name, unit, found }
}

/// How large the program is without its symbols.
fn binary(program: &Path) -> Result<Vec<Once>, Failure> {
    let folder = Folder::new("binary")?;
    let stripped = folder.path().join("toolcrib");
    let strip = Command::new("strip").arg("-o").arg(&stripped).arg(program).status();
    let strip = strip.map_err(|error| Failure::from(error).at("strip (of binutils)"))?;
    if !strip.success() {
        return Err(Failure::new("strip cannot read the program"));
    }
    let size = float(fs::metadata(&stripped)?.len()) / 1e6;
    Ok(vec![once("binary", "binary, stripped", "MB", Spread::once(size))])
}

/// From the start of the process until it listens, and until it has answered a call.
async fn start(world: &World) -> Result<Vec<Once>, Failure> {
    let servers = toolcrib::by_http(world.upstream, &upstream::path(FEW));
    let program = &world.programs.toolcrib;
    let folder = toolcrib::workspace(program, "start", &servers, Care::All)?;
    let mut figures = [const { Vec::new() }; 4];
    for _ in 0..STARTS {
        let found = start_once(world, folder.path()).await?;
        figures.iter_mut().zip(found).for_each(|(to, it)| to.push(it.as_secs_f64() * 1000.0));
    }
    let names = [
        ("start-cpu", "start to listening, CPU time"),
        ("start-time", "start to listening, time"),
        ("answer-cpu", "start to first answer, CPU time"),
        ("answer-time", "start to first answer, time"),
    ];
    let spreads = figures.into_iter().filter_map(Spread::of);
    Ok(names.into_iter().zip(spreads).map(|((id, name), it)| once(id, name, "ms", it)).collect())
}

/// CPU time and time: until it listens, until the first answer.
async fn start_once(world: &World, folder: &Path) -> Result<[Duration; 4], Failure> {
    let begin = Instant::now();
    let mut command = toolcrib::command(&world.programs.toolcrib, folder);
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = Ended(command.spawn()?);
    let id = child.0.id();
    let out = child.0.stdout.take().ok_or_else(|| Failure::new("toolcrib has no output"))?;
    let address = read_address(std::io::BufReader::new(out))?;
    let listening = [cpu_of(id)?, begin.elapsed()];
    let way = toolcrib::way(address, FEW, Care::All);
    // Its servers may not be there yet; it waits for them by itself.
    if !world.call(&way, ECHO, way.token.as_deref()).await?.1 {
        return Err(Failure::new("the first answer is wrong"));
    }
    let answered = [cpu_of(id)?, begin.elapsed()];
    Ok([listening[0], listening[1], answered[0], answered[1]])
}

/// A process that does not outlive us.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn read_address(mut out: impl std::io::BufRead) -> Result<std::net::SocketAddr, Failure> {
    let mut banner = String::new();
    while out.read_line(&mut banner)? != 0 {
        if let Some(address) = toolcrib::listening(&banner) {
            return Ok(address);
        }
    }
    Err(Failure::new(format!("toolcrib does not listen: {banner}")))
}

/// What a gateway with ten servers takes while nobody asks.
async fn idle(world: &World) -> Result<Vec<Once>, Failure> {
    let mut servers = Map::new();
    for at in 0..SERVERS {
        let server = match at % 2 {
            0 => toolcrib::by_http(world.upstream, &upstream::path(FEW)),
            _ => toolcrib::by_pipe(&world.programs.itself),
        };
        let mut server = server["bench"].clone();
        server["names"] = "prefixed".into();
        servers.insert(format!("bench{at}"), server);
    }
    let servers = Value::Object(servers);
    let (process, _) = toolcrib::serve(&world.programs.toolcrib, "idle", &servers, Care::All)?;
    sleep(SETTLE).await;
    let memory = float(process.memory()?) / 1024.0;
    let name = "idle memory with 10 servers (5 HTTP, 5 stdio)";
    Ok(vec![once("idle", name, "MB", Spread::once(memory))])
}

/// What a legacy session takes while nobody holds a connection.
async fn sessions(world: &World) -> Result<Vec<Once>, Failure> {
    let (process, way) = fresh(world, "sessions")?;
    let address = way.target().address()?;
    let manner = Manner { to: way.target(), era: Era::Legacy, session: None, token: Some(TOKEN) };
    let mut connection = Connection::open(address).await?;
    let mut each = Vec::new();
    // An allocator takes memory by steps: what the first thousand take, and each further thousand.
    for _ in 0..BATCHES {
        let before = process.memory()?;
        for _ in 0..SESSIONS {
            let opened = open_session(&mut connection, manner, &world.numbers).await?;
            opened.ok_or_else(|| Failure::new("toolcrib opens no session"))?;
        }
        connection.reconnect().await?;
        sleep(SETTLE / 2).await;
        let grown = process.memory()?.saturating_sub(before);
        each.push(float(grown) / f64::from(SESSIONS));
    }
    let name = "memory of an idle legacy session, by the thousand";
    let ends = Spread::of(each.iter().copied());
    // The mean, since one step serves many: most thousands seem to take nothing.
    let mean = each.iter().sum::<f64>() / f64::from(BATCHES);
    let found = ends.map_or(Spread::once(mean), |it| Spread { median: mean, ..it });
    Ok(vec![once("sessions", name, "kB", found)])
}

/// What one large result takes at the most, in parts of its own size.
async fn peak(world: &World) -> Result<Vec<Once>, Failure> {
    let (process, way) = fresh(world, "peak")?;
    let manner = Manner { to: way.target(), era: Era::Modern, session: None, token: Some(TOKEN) };
    let mut connection = Connection::open(way.target().address()?).await?;
    let (small, large) = (Template::call(manner, ECHO, 1_000), Template::call(manner, ECHO, LARGE));
    let expected = [Expected::call(1_000), Expected::call(LARGE)];
    for _ in 0..100 {
        let number = world.numbers.next();
        expected[0].check(&connection.ask(&small, number).await?, number)?;
    }
    let mut most = Vec::new();
    for _ in 0..5 {
        sleep(SETTLE / 5).await;
        forget_peak(process.id())?;
        let before = resident(process.id())?[0];
        let number = world.numbers.next();
        expected[1].check(&connection.ask(&large, number).await?, number)?;
        let grown = resident(process.id())?[1].saturating_sub(before);
        most.push(float(grown) * 1024.0 / float(LARGE as u64));
    }
    // What one call leaves behind, the next does not have to take; so the largest counts.
    let most = most.into_iter().fold(0.0, f64::max);
    let name = "peak memory of a 10 MB result, × its size";
    Ok(vec![once("peak", name, "×", Spread::once(most))])
}

/// A gateway that nobody has asked yet.
fn fresh(world: &World, name: &str) -> Result<(Process, Way), Failure> {
    let servers = toolcrib::by_http(world.upstream, &upstream::path(FEW));
    let (process, address) = toolcrib::serve(&world.programs.toolcrib, name, &servers, Care::All)?;
    Ok((process, toolcrib::way(address, FEW, Care::All)))
}
