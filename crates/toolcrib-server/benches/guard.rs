//! What the guards of a call cost, in CPU time: whole calls of a tool that does nothing, without a guard and
//! with each of them.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark speaks on stdout")]

use std::{future::pending, sync::Arc, time::Duration};

use rustix::time::{ClockId, clock_gettime};
use toolcrib_catalogue::{
    BoxFuture, CallContext, CallError, Json, NameStyle, Origin, Problem, Source, SourceState, Tool,
    ToolFilter, lock::Pins,
};
use toolcrib_server::{
    Access, AccessSettings, CacheRule, CacheSettings, Gateway, Input, Limit, LimitSettings,
    Pattern, Rate, ResultRule, Rules, Settings,
};

const ROUNDS: usize = 21;
const CALLS: u32 = 20_000;

const TOOL: &str =
    r#"{"name":"look","inputSchema":{"type":"object","properties":{"query":{"type":"string"}}}}"#;
const PARAMS: &str = r#"{"name":"mcp__s__look","arguments":{"query":"open issues about paging"}}"#;
const KEYED: &str = r#"{"name":"mcp__s__look","arguments":{"query":"open issues about paging"},"_meta":{"toolcrib/idempotencyKey":"k"}}"#;

/// Answers at once.
#[derive(Debug)]
struct Nothing(Arc<[Arc<Tool>]>);

impl Source for Nothing {
    fn label(&self) -> &str {
        "s"
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
        Box::pin(pending())
    }

    fn request<'a>(
        &'a self,
        _method: &'a str,
        _params: Json,
        _context: CallContext,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        let result = Json::from_scanned(bytes::Bytes::from_static(br#"{"content":[]}"#));
        Box::pin(async move { Ok(result) })
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let none = Rules {
            arguments: false,
            results: ResultRule::Off,
            pins: Pins::Off,
            ..Rules::default()
        };
        // High enough that nothing is ever refused.
        let rate = Rate { calls: 1_000_000_000, per: Duration::from_secs(1), burst: 1_000_000_000 };
        let limit = Limit { rate: Some(rate), concurrent: Some(1_000) };
        let limits = LimitSettings {
            all: limit,
            groups: vec![("guest".to_owned(), limit)],
            tools: vec![(Pattern("mcp__s__*".to_owned()), limit)],
        };
        let rule = CacheRule { ttl: Duration::from_secs(3_600), size: 1 << 20 };
        let tools = vec![(Pattern("mcp__s__*".to_owned()), rule)];
        let cache = CacheSettings { tools, ..CacheSettings::default() };
        let free = Limit::default();
        let worlds = [
            ("nothing but the call", gateway(none.clone(), free), PARAMS),
            ("with pins", gateway(Rules { pins: Pins::Warn, ..none.clone() }, free), PARAMS),
            (
                "with four limits of rate and concurrency",
                gateway(Rules { limits, ..none.clone() }, limit),
                PARAMS,
            ),
            ("out of the cache", gateway(Rules { cache, ..none.clone() }, free), PARAMS),
            ("made before, with the same key", gateway(none, free), KEYED),
        ];
        let mut taken = vec![Vec::new(); worlds.len()];
        for _ in 0..ROUNDS {
            for ((_, gateway, params), taken) in worlds.iter().zip(&mut taken) {
                taken.push(round(gateway, params).await);
            }
        }
        for ((what, ..), taken) in worlds.iter().zip(&mut taken) {
            taken.sort();
            let (median, worst) = (taken[ROUNDS / 2], taken[ROUNDS - 1]);
            println!("{what}: median {median:.2?}, worst {worst:.2?} of CPU time a call");
        }
    });
}

fn gateway(rules: Rules, limit: Limit) -> Arc<Gateway> {
    let tool = Tool::read(Json::parse(TOOL).unwrap()).unwrap();
    let input = Input {
        source: Some(Arc::new(Nothing([Arc::new(tool)].into()))),
        origin: Origin::Upstream("s".to_owned()),
        style: NameStyle::Prefixed,
        filter: ToolFilter::default(),
        required: false,
        way: None,
        limit,
    };
    let access = AccessSettings { default_group: "guest".to_owned(), ..Default::default() };
    let settings = Settings { rules, ..Settings::default() };
    Gateway::start(vec![input], Access::new(&access), settings)
}

async fn round(gateway: &Arc<Gateway>, params: &'static str) -> Duration {
    let caller = gateway.access().local(None).unwrap();
    let params = Json::parse(params).unwrap();
    let begin = cpu_time();
    for _ in 0..CALLS {
        let result = gateway.call(caller.clone(), params.clone(), None, None).await.unwrap();
        assert!(!result.as_str().contains("isError"));
    }
    (cpu_time() - begin) / CALLS
}

fn cpu_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap())
}
