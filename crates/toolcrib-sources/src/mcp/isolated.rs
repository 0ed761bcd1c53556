//! A server that keeps a state for whoever talks to it: each visitor gets one of its own.
//!
//! One connection stands in front and answers what is the same for everybody: the lists. One more is kept
//! ready, so that a new visitor need not wait until a server has started.

use std::{collections::HashMap, fmt, sync::Arc};

use parking_lot::Mutex;
use tokio_util::task::TaskTracker;
use toolcrib_catalogue::{
    BoxFuture, CallContext, CallError, Json, Listener, Offers, Problem, Source, SourceState, Tally,
    Tool, Visitor,
};
use toolcrib_wire::Reaper;

use super::{client::ClientOptions, connection::Connection};

/// More visitors than this do not get a server of their own at the same time.
const MAX_OPEN: usize = 64;

/// One server, once for each visitor.
pub(super) struct Isolated {
    front: Arc<Connection>,
    options: ClientOptions,
    reaper: Arc<Reaper>,
    tasks: TaskTracker,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    by_visitor: HashMap<u64, Connection>,
    spare: Option<Connection>,
}

impl Isolated {
    pub(super) fn new(
        front: Arc<Connection>,
        options: ClientOptions,
        reaper: Arc<Reaper>,
        tasks: TaskTracker,
    ) -> Arc<Self> {
        let this = Arc::new(Self { front, options, reaper, tasks, open: Mutex::default() });
        this.open.lock().spare = Some(this.start());
        let shared = Arc::clone(&this.front.shared);
        let weak = Arc::downgrade(&this);
        // Whatever ends the server, or starts it anew, does so with those of all visitors.
        this.tasks.spawn(async move {
            let mut anew = shared.anew.subscribe();
            loop {
                tokio::select! {
                    () = shared.stop.cancelled() => break,
                    _ = anew.changed() => {}
                }
                let Some(this) = weak.upgrade() else { return };
                let open = this.open.lock();
                open.by_visitor.values().chain(&open.spare).for_each(Connection::restart);
            }
            let Some(this) = weak.upgrade() else { return };
            let Open { by_visitor, spare } = std::mem::take(&mut *this.open.lock());
            by_visitor.into_values().chain(spare).for_each(|it| it.close());
        });
        this
    }

    fn start(&self) -> Connection {
        let config = self.front.config().clone();
        let (options, reaper) = (self.options.clone(), Arc::clone(&self.reaper));
        let bar = Arc::clone(&self.front.shared.bar);
        Connection::start(config, options, reaper, &self.tasks, None, bar)
    }

    /// The connection of a visitor; a new one takes the spare.
    fn connection(self: &Arc<Self>, visitor: &Arc<dyn Visitor>) -> Result<Connection, CallError> {
        let mut open = self.open.lock();
        if let Some(found) = open.by_visitor.get(&visitor.key()) {
            return Ok(found.clone());
        }
        let server = self.label();
        if self.front.shared.stop.is_cancelled() {
            let cause = format!("server `{server}` was shut down");
            return Err(CallError::Unavailable { cause });
        }
        if MAX_OPEN <= open.by_visitor.len() {
            let cause =
                format!("server `{server}` serves {MAX_OPEN} clients already, each by itself");
            return Err(CallError::Unavailable { cause });
        }
        let connection = open.spare.take().unwrap_or_else(|| self.start());
        open.spare = Some(self.start());
        open.by_visitor.insert(visitor.key(), connection.clone());
        drop(open);
        connection.welcome(visitor);
        let (weak, key, gone) = (Arc::downgrade(self), visitor.key(), visitor.ended());
        let stop = self.front.shared.stop.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = gone => {}
                () = stop.cancelled() => {}
            }
            let Some(this) = weak.upgrade() else { return };
            let left = this.open.lock().by_visitor.remove(&key);
            if let Some(connection) = left {
                connection.close();
            }
        });
        Ok(connection)
    }
}

/// A handle on one: whoever holds it can start further connections.
#[derive(Debug)]
pub(super) struct Handle(pub(super) Arc<Isolated>);

impl Source for Handle {
    fn label(&self) -> &str {
        self.0.label()
    }

    fn state(&self) -> SourceState {
        self.0.front.state()
    }

    fn tools(&self) -> Arc<[Arc<Tool>]> {
        self.0.front.tools()
    }

    fn offers(&self) -> Offers {
        self.0.front.offers()
    }

    fn has_listed(&self) -> bool {
        self.0.front.has_listed()
    }

    fn problems(&self) -> Vec<Problem> {
        self.0.front.problems()
    }

    fn version(&self) -> u64 {
        self.0.front.version()
    }

    fn tally(&self) -> Tally {
        self.0.front.tally()
    }

    fn changed_since(&self, version: u64) -> BoxFuture<'_, ()> {
        self.0.front.changed_since(version)
    }

    fn listen(&self, listener: Arc<dyn Listener>) {
        self.0.front.listen(listener);
    }

    fn tell(&self, method: &'static str, visitor: &dyn Visitor) {
        if let Some(connection) = self.0.open.lock().by_visitor.get(&visitor.key()) {
            connection.tell_now(method);
        }
    }

    fn is_shared(&self) -> bool {
        false
    }

    fn request<'a>(
        &'a self,
        method: &'a str,
        params: Json,
        context: CallContext,
    ) -> BoxFuture<'a, Result<Json, CallError>> {
        Box::pin(async move {
            match &context.visitor {
                None => self.0.front.request(method, params, context).await,
                // Who has none yet says it to the one it gets.
                Some(visitor)
                    if method == "logging/setLevel"
                        && !self.0.open.lock().by_visitor.contains_key(&visitor.key()) =>
                {
                    Ok(Json::empty_object())
                }
                Some(visitor) => {
                    let connection = self.0.connection(visitor)?;
                    connection.request(method, params, context).await
                }
            }
        })
    }
}

impl Isolated {
    fn label(&self) -> &str {
        self.front.label()
    }
}

impl fmt::Debug for Isolated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let open = self.open.lock().by_visitor.len();
        f.debug_struct("Isolated").field("front", &self.front).field("open", &open).finish()
    }
}
