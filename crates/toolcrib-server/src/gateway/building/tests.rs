//! A catalogue that takes long to build keeps nobody waiting.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tokio::sync::watch;
use toolcrib_catalogue::{
    BoxFuture, CallContext, CallError, ClientError, Json, NameStyle, Origin, Problem, Source,
    SourceState, Tool, ToolFilter,
};

use crate::{Access, AccessSettings, Gateway, Input, Limit, Settings};

/// A source whose list is given out only while the gate is open, as if it took that long to look at.
#[derive(Debug)]
struct Slow {
    version: watch::Sender<u64>,
    open: Mutex<bool>,
    opened: Condvar,
    /// Who waits at the gate.
    waiting: AtomicUsize,
    /// Who has waited for so long that nobody can have opened it.
    given_up: AtomicUsize,
    built: AtomicU64,
}

impl Slow {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            version: watch::Sender::new(0),
            open: Mutex::new(true),
            opened: Condvar::new(),
            waiting: AtomicUsize::new(0),
            given_up: AtomicUsize::new(0),
            built: AtomicU64::new(0),
        })
    }

    fn set_open(&self, open: bool) {
        *self.open.lock() = open;
        self.opened.notify_all();
    }

    fn change(&self) {
        self.version.send_modify(|it| *it += 1);
    }
}

impl Source for Slow {
    fn label(&self) -> &str {
        "slow"
    }

    fn state(&self) -> SourceState {
        SourceState::Ready
    }

    fn tools(&self) -> Arc<[Arc<Tool>]> {
        let mut open = self.open.lock();
        if !*open {
            self.waiting.fetch_add(1, Ordering::SeqCst);
            self.opened.wait_while_for(&mut open, |it| !*it, Duration::from_secs(10));
            self.given_up.fetch_add(usize::from(!*open), Ordering::SeqCst);
        }
        self.built.fetch_add(1, Ordering::SeqCst);
        let count = *self.version.borrow();
        let tool = |at: u64| {
            let text = format!(r#"{{"name":"tool_{at}","inputSchema":{{"type":"object"}}}}"#);
            Arc::new(Tool::read(Json::parse(text).unwrap()).unwrap())
        };
        (0..count).map(tool).collect()
    }

    fn problems(&self) -> Vec<Problem> {
        Vec::new()
    }

    fn version(&self) -> u64 {
        *self.version.borrow()
    }

    fn changed_since(&self, version: u64) -> BoxFuture<'_, ()> {
        let mut changes = self.version.subscribe();
        Box::pin(async move {
            changes.wait_for(|it| *it != version).await.ok();
        })
    }

    fn request<'a>(
        &'a self,
        _method: &'a str,
        _params: Json,
        _context: CallContext,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        Box::pin(async { Err(CallError::Client(ClientError::Refused("it only lists".to_owned()))) })
    }
}

fn start(sources: &[Arc<Slow>]) -> Arc<Gateway> {
    let input = |(at, source): (usize, &Arc<Slow>)| Input {
        source: Some(Arc::clone(source) as Arc<dyn Source>),
        origin: Origin::Upstream(format!("s{at}")),
        style: NameStyle::Prefixed,
        filter: ToolFilter::default(),
        required: false,
        way: None,
        limit: Limit::default(),
    };
    let access = AccessSettings { default_group: "guest".to_owned(), ..Default::default() };
    let inputs = sources.iter().enumerate().map(input).collect();
    Gateway::start(inputs, Access::new(&access), Settings::default())
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let soon = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(20), soon).await.is_ok(), "{what}");
}

/// There is one thread here: whoever keeps it keeps everybody waiting, the one who opens the gate too.
#[tokio::test(flavor = "current_thread")]
async fn others_go_on_while_a_catalogue_is_built() {
    let source = Slow::new();
    let gateway = start(std::slice::from_ref(&source));
    source.set_open(false);
    source.change();
    until("it is being built", || source.waiting.load(Ordering::SeqCst) == 1).await;
    // What requests look at is there meanwhile, as it was.
    assert_eq!(gateway.count(), 0);
    assert!(!gateway.is_settled());
    drop(tokio::time::timeout(Duration::from_millis(20), gateway.first_lists()).await);
    // A change that comes meanwhile is not lost.
    source.change();
    source.set_open(true);
    until("it is built", || gateway.count() == 2 && gateway.is_settled()).await;
    assert_eq!(source.given_up.load(Ordering::SeqCst), 0, "the thread was kept");
    gateway.stop();
    gateway.close().await;
}

#[tokio::test(flavor = "current_thread")]
async fn changes_that_come_together_are_built_together() {
    let sources: Vec<Arc<Slow>> = (0..50).map(|_| Slow::new()).collect();
    let gateway = start(&sources);
    until("everybody follows", || sources.iter().all(|it| 0 < it.version.receiver_count())).await;
    let before = sources[0].built.load(Ordering::SeqCst);
    sources[0].set_open(false);
    sources.iter().for_each(|it| it.change());
    until("one is being built", || sources[0].waiting.load(Ordering::SeqCst) == 1).await;
    sources[0].set_open(true);
    until("all are listed", || gateway.count() == 50).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let built = sources[0].built.load(Ordering::SeqCst) - before;
    assert!(built <= 3, "built {built} times");
    gateway.stop();
    gateway.close().await;
}
