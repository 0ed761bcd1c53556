//! What the audit record costs a call, and what the record, limits and pins cost together: processor time of the whole
//! process, with them and without, in rounds that take turns. The tool is in the same process and does nothing, so what
//! is compared is the gateway alone. It fails where they cost more than they may.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::Duration,
};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_catalogue::{
    BoxFuture, CallContext, CallError, Json, NameStyle, Origin, Problem, Source, SourceState, Tool,
    ToolFilter,
    lock::{Lock, Pins, Place},
};
use toolcrib_server::{
    Access, AccessSettings, Audit, AuditMode, AuditSettings, Gateway, Input, Limit, LimitSettings,
    Pattern, Rate, ResultRule, Rules, Settings,
};

const ROUNDS: usize = 21;
const CALLS: usize = 20_000;

/// Microseconds that limits, record and pins may cost a call together.
const GOAL: f64 = 5.0;

#[derive(Debug)]
struct Still(Arc<[Arc<Tool>]>);

impl Source for Still {
    fn label(&self) -> &str {
        "still"
    }

    fn state(&self) -> SourceState {
        SourceState::Ready
    }

    fn tools(&self) -> Arc<[Arc<Tool>]> {
        Arc::clone(&self.0)
    }

    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    fn version(&self) -> u64 {
        1
    }

    fn changed_since(&self, _version: u64) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }

    fn request<'a>(
        &'a self,
        _method: &'a str,
        _params: Json,
        _context: CallContext,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        let result = r#"{"content":[{"type":"text","text":"done"}],"isError":false}"#;
        Box::pin(async move { Ok(Json::parse(result).unwrap()) })
    }
}

fn main() -> ExitCode {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("audit-{}", std::process::id()));
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let together = runtime.block_on(compare(&folder));
    fs::remove_dir_all(&folder).unwrap();
    if together <= GOAL {
        return ExitCode::SUCCESS;
    }
    println!("limits, record and pins together cost more than {GOAL} µs a call: {together:.2}");
    ExitCode::FAILURE
}

/// Prints what things cost; returns what they cost together.
async fn compare(folder: &Path) -> f64 {
    let open = |name: &str| {
        let at = folder.join(name);
        fs::create_dir_all(&at).unwrap();
        let settings = AuditSettings { mode: AuditMode::On, ..Default::default() };
        let audit = Audit::open(&at.join("audit"), &at.join("key"), settings, Default::default());
        Some(Arc::new(audit.unwrap()))
    };
    let bare = || Rules {
        arguments: false,
        results: ResultRule::Off,
        pins: Pins::Off,
        ..Rules::default()
    };
    let guarded = Rules { limits: limits(), pins: Pins::Hold, lock: Some(lock()), ..bare() };
    let worlds = [
        gateway(bare(), Limit::default(), None),
        gateway(bare(), Limit::default(), open("alone")),
        gateway(guarded, limit(), open("together")),
    ];
    let mut taken = worlds.each_ref().map(|_| Vec::new());
    for round in 0..ROUNDS {
        // Which comes first takes turns.
        for at in (0..worlds.len()).map(|it| (it + round) % worlds.len()) {
            taken[at].push(cost(&worlds[at]).await);
        }
    }
    for world in &worlds {
        world.close().await;
    }
    let [bare, record, together] = taken;
    let more =
        |than: &[f64]| -> Vec<f64> { than.iter().zip(&bare).map(|(it, bare)| it - bare).collect() };
    let (own, all) = (more(&record), more(&together));
    println!("a call with nothing but the call: {}", told(bare.clone()));
    println!("a call with the record:           {}", told(record));
    println!("a call with limits, record, pins: {}", told(together));
    println!("the record:                       {}", told(own));
    println!("limits, record and pins together: {}", told(all.clone()));
    median(all)
}

/// High enough that nothing is ever refused.
fn limit() -> Limit {
    let rate = Rate { calls: 1_000_000_000, per: Duration::from_secs(1), burst: 1_000_000_000 };
    Limit { rate: Some(rate), concurrent: Some(1_000) }
}

/// A limit of each kind; that of the server comes with it.
fn limits() -> LimitSettings {
    LimitSettings {
        all: limit(),
        groups: vec![("guest".to_owned(), limit())],
        tools: vec![(Pattern("mcp__still__*".to_owned()), limit())],
    }
}

fn tool() -> Arc<Tool> {
    let schema = r#"{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}"#;
    let tool = format!(r#"{{"name":"search","description":"d","inputSchema":{schema}}}"#);
    Arc::new(Tool::read(Json::parse(tool).unwrap()).unwrap())
}

fn origin() -> Origin {
    Origin::Upstream("still".to_owned())
}

/// The tool, accepted as it is.
fn lock() -> Lock {
    let mut lock = Lock::default();
    lock.pin(Place::of(&origin()), None, [&*tool()]);
    lock
}

fn gateway(rules: Rules, limit: Limit, audit: Option<Arc<Audit>>) -> Arc<Gateway> {
    let input = Input {
        source: Some(Arc::new(Still([tool()].into()))),
        origin: origin(),
        style: NameStyle::Prefixed,
        filter: ToolFilter::default(),
        required: false,
        way: None,
        limit,
    };
    let access = AccessSettings { default_group: "guest".to_owned(), ..Default::default() };
    let settings = Settings { audit, rules, ..Settings::default() };
    Gateway::start(vec![input], Access::new(&access), settings)
}

/// Microseconds of processor time a call, with what is done for it elsewhere.
async fn cost(gateway: &Arc<Gateway>) -> f64 {
    let params = r#"{"name":"mcp__still__search","arguments":{"query":"open issues of the gateway","limit":20}}"#;
    let begin = spent();
    for _ in 0..CALLS {
        let caller = gateway.access().local(None).unwrap();
        let result = gateway.call(caller, Json::parse(params).unwrap(), None, None).await.unwrap();
        assert!(result.as_str().contains(r#""isError":false"#), "{}", result.as_str());
    }
    // The writer is to have written all of it.
    tokio::time::sleep(Duration::from_millis(50)).await;
    (spent() - begin).as_secs_f64() * 1e6 / CALLS as f64
}

fn spent() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

fn told(mut figures: Vec<f64>) -> String {
    figures.sort_by(f64::total_cmp);
    let (least, most) = (figures[0], figures[figures.len() - 1]);
    let median = median(figures.clone());
    format!("{median:.2} µs (from {least:.2} to {most:.2}, {} rounds)", figures.len())
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
