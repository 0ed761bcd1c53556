//! One span, from its beginning to its end: also where nobody waited for that.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::Ordering},
    time::{Instant, SystemTime},
};

use toolcrib_catalogue::CallError;

use super::{Context, Trace, Tracer};
use crate::{access::Caller, guard::Story, metrics::Outcome};

/// Whose side of a request a span tells of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Ours: somebody asked us.
    Server,
    /// The server's: we asked it.
    Client,
}

/// What is said of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    Text(Cow<'static, str>),
    Number(i64),
}

/// A span that is over.
#[derive(Debug, Clone)]
pub(super) struct Finished {
    pub(super) context: Context,
    pub(super) parent: Option<[u8; 8]>,
    pub(super) state: Option<String>,
    pub(super) kind: Kind,
    pub(super) name: String,
    /// Nanoseconds since 1970.
    pub(super) begin: u64,
    pub(super) end: u64,
    pub(super) attributes: Vec<(&'static str, Value)>,
    pub(super) failed: bool,
}

/// A span that is not over yet. It is sent when it goes away.
#[derive(Debug)]
pub(crate) struct Span {
    tracer: Arc<Tracer>,
    begin: Instant,
    told: bool,
    it: Finished,
}

impl Span {
    /// A request comes in. Nothing is told of one whose trace nobody keeps, but that stays known.
    pub(crate) fn server(
        tracer: &Arc<Tracer>,
        trace: &mut Trace,
        params: &[u8],
        method: &str,
        caller: &Caller,
    ) -> Option<Box<Self>> {
        let parent = trace.parent(params);
        let context = parent.map_or_else(|| Context::begin(tracer.sample), |it| it.child());
        if !context.sampled {
            trace.within = Some(parent.unwrap_or(context));
            return None;
        }
        trace.within = Some(context);
        let parent = parent.map(|it| it.span);
        let mut span = Self::new(tracer, Kind::Server, context, parent, method);
        span.it.state = trace.state().map(ToOwned::to_owned);
        if let Some(came) = &trace.came {
            span.text("jsonrpc.request.id", came.id.clone());
            span.text("mcp.session.id", came.session.clone());
            span.text("mcp.protocol.version", came.revision);
            span.text("network.transport", came.transport);
        }
        span.text("client.address", caller.address.map(|it| it.to_string()));
        span.text("toolcrib.group", Some(caller.group.to_string()));
        Some(span)
    }

    /// A request goes to a source, for one that is traced.
    pub(crate) fn client(
        tracer: &Arc<Tracer>,
        within: &Context,
        method: &str,
        target: Option<&str>,
        source: Option<&str>,
    ) -> Option<Box<Self>> {
        if !within.sampled {
            return None;
        }
        let mut span = Self::new(tracer, Kind::Client, within.child(), Some(within.span), method);
        if let Some(target) = target {
            span.about(method, target);
        }
        span.text("toolcrib.server", source.map(ToOwned::to_owned));
        Some(span)
    }

    fn new(
        tracer: &Arc<Tracer>,
        kind: Kind,
        context: Context,
        parent: Option<[u8; 8]>,
        method: &str,
    ) -> Box<Self> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let begin = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        let it = Finished {
            context,
            parent,
            state: None,
            kind,
            name: method.to_owned(),
            begin,
            end: begin,
            attributes: Vec::with_capacity(12),
            failed: true,
        };
        let mut span =
            Box::new(Self { tracer: Arc::clone(tracer), begin: Instant::now(), told: false, it });
        span.text("mcp.method.name", Some(method.to_owned()));
        if method == "tools/call" {
            span.text("gen_ai.operation.name", Some("execute_tool"));
        }
        span
    }

    /// Its place in the trace.
    pub(crate) fn context(&self) -> Context {
        self.it.context
    }

    /// What it is about, which exists: that may stand in its name.
    fn about(&mut self, method: &str, target: &str) {
        match method {
            "tools/call" => self.text("gen_ai.tool.name", Some(target.to_owned())),
            "prompts/get" => self.text("gen_ai.prompt.name", Some(target.to_owned())),
            _ => {
                // There are too many of them for names, and they may hold anything.
                let uri = self.tracer.mask(target);
                self.text("mcp.resource.uri", Some(uri));
                return;
            }
        }
        self.it.name = format!("{method} {target}");
    }

    fn text(&mut self, key: &'static str, value: Option<impl Into<Cow<'static, str>>>) {
        if let Some(value) = value {
            self.it.attributes.push((key, Value::Text(value.into())));
        }
    }

    fn number(&mut self, key: &'static str, value: i64) {
        self.it.attributes.push((key, Value::Number(value)));
    }

    /// The request that came in has ended so.
    pub(crate) fn ended(&mut self, story: &Story, id: &str, method: &str, target: &str) {
        self.told = true;
        if story.source.is_some() || story.meter.is_some() {
            self.about(method, target);
        } else if !target.is_empty() {
            // A name that is no tool's may be whatever the caller likes.
            let masked = self.tracer.mask(target);
            let key = match method {
                "tools/call" => "gen_ai.tool.name",
                "prompts/get" => "gen_ai.prompt.name",
                _ => "mcp.resource.uri",
            };
            self.text(key, Some(masked));
        }
        let outcome = story.outcome();
        self.text("toolcrib.call.id", Some(id.to_owned()));
        self.text("toolcrib.server", story.source.as_deref().map(ToOwned::to_owned));
        self.text("toolcrib.outcome", Some(outcome.word()));
        self.text("toolcrib.cache", story.cache);
        let retries = story.retried.load(Ordering::Relaxed);
        if retries != 0 {
            self.number("toolcrib.retries", i64::from(retries));
        }
        self.it.failed = outcome != Outcome::Ok;
        if self.it.failed {
            self.failed_with(outcome.word(), story.code);
        }
    }

    /// The source has answered, or not.
    pub(crate) fn answered(&mut self, error: Option<&CallError>, tool_error: bool) {
        self.told = true;
        let (word, code) = match error {
            None if tool_error => ("tool_error", None),
            None => {
                self.it.failed = false;
                return;
            }
            Some(CallError::Rpc { code, .. }) => ("", Some(*code)),
            Some(CallError::TimedOut { .. }) => ("timeout", None),
            Some(CallError::Unavailable { .. }) => ("unavailable", None),
            Some(CallError::Lost { .. }) => ("lost", None),
            Some(CallError::Malformed { .. }) => ("malformed", None),
            Some(CallError::Client(_) | CallError::Storage { .. }) => ("_OTHER", None),
        };
        self.failed_with(word, code);
    }

    fn failed_with(&mut self, word: &'static str, code: Option<i64>) {
        match code.map(|it| it.to_string()) {
            Some(code) => {
                self.text("error.type", Some(code.clone()));
                self.text("rpc.response.status_code", Some(code));
            }
            None => self.text("error.type", Some(word)),
        }
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if !self.told {
            self.failed_with("cancelled", None);
        }
        let took = u64::try_from(self.begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.it.end = self.it.begin.saturating_add(took);
        self.tracer.take(self.it.clone());
    }
}
