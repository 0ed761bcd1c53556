//! What the audit record costs a call: processor time of the whole process, with and without it, in rounds that take
//! turns. The tool is in the same process and does nothing, so what is compared is the gateway alone.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{fs, path::PathBuf, sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_catalogue::{
    BoxFuture, CallContext, CallError, Json, NameStyle, Origin, Problem, Source, SourceState, Tool,
    ToolFilter,
};
use toolcrib_server::{
    Access, AccessSettings, Audit, AuditMode, AuditSettings, Gateway, Input, Settings,
};

const ROUNDS: usize = 11;
const CALLS: usize = 20_000;

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

fn main() {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("audit-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(async {
        let open = |mode: AuditMode| {
            let (at, settings) =
                (folder.join("audit"), AuditSettings { mode, ..Default::default() });
            Arc::new(Audit::open(&at, &folder.join("key"), settings, Default::default()).unwrap())
        };
        let without = gateway(None);
        let with = gateway(Some(open(AuditMode::On)));
        let (mut off, mut on) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            // Which comes first takes turns.
            if round % 2 == 0 {
                off.push(cost(&without).await);
                on.push(cost(&with).await);
            } else {
                on.push(cost(&with).await);
                off.push(cost(&without).await);
            }
        }
        let more: Vec<f64> = on.iter().zip(&off).map(|(on, off)| on - off).collect();
        println!("a call without the record: {}", told(off));
        println!("a call with it:            {}", told(on));
        println!("the record:                {}", told(more));
        without.close().await;
        with.close().await;
    });
    fs::remove_dir_all(&folder).unwrap();
}

fn gateway(audit: Option<Arc<Audit>>) -> Arc<Gateway> {
    let schema = r#"{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"}},"required":["query"]}"#;
    let tool = format!(r#"{{"name":"search","description":"d","inputSchema":{schema}}}"#);
    let tool = Arc::new(Tool::read(Json::parse(tool).unwrap()).unwrap());
    let input = Input {
        source: Some(Arc::new(Still([tool].into()))),
        origin: Origin::Upstream("still".to_owned()),
        style: NameStyle::Prefixed,
        filter: ToolFilter::default(),
        required: false,
        way: None,
        limit: Default::default(),
    };
    let access = AccessSettings { default_group: "guest".to_owned(), ..Default::default() };
    let settings = Settings { audit, ..Settings::default() };
    Gateway::start(vec![input], Access::new(&access), settings)
}

/// Microseconds of processor time a call, with what is done for it elsewhere.
async fn cost(gateway: &Arc<Gateway>) -> f64 {
    let params = r#"{"name":"mcp__still__search","arguments":{"query":"open issues of the gateway","limit":20}}"#;
    let begin = spent();
    for _ in 0..CALLS {
        let caller = gateway.access().local(None).unwrap();
        gateway.call(caller, Json::parse(params).unwrap(), None, None).await.unwrap();
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
    let median = figures[figures.len() / 2];
    format!("{median:.2} µs (from {least:.2} to {most:.2}, {} rounds)", figures.len())
}
