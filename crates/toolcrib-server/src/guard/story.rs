//! What is told of a call once it has ended.

use std::sync::{Arc, atomic::AtomicU32};

use toolcrib_catalogue::{Blame, CallError, lock::ToolHash};
use toolcrib_wire::json::member;

use crate::metrics::{Meter, Outcome, SourceMeter};

/// How a call ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Ended {
    /// Whoever called went away.
    #[default]
    Cancelled,
    /// With a result.
    Well,
    /// With a result that says that the tool failed.
    ToolError,
    /// There is no such tool, or not for this caller.
    UnknownTool,
    /// The arguments do not fit.
    InvalidArguments,
    /// The caller may call no more.
    Expelled,
    /// The tool is held back.
    Held,
    /// There were too many calls.
    Limited,
    /// It took too long.
    TimedOut,
    /// Without a result, for another reason.
    Failed,
}

/// One call, as far as it has come.
#[derive(Debug, Clone, Default)]
pub(crate) struct Story {
    /// What the tool's source is called.
    pub(crate) source: Option<Arc<str>>,
    /// What the tool was defined as.
    pub(crate) definition: Option<ToolHash>,
    /// Which rule decided, where one did.
    pub(crate) rule: Option<&'static str>,
    /// Where results are kept, whether this one was: `hit`, `miss`, or `joined` where an equal call ran just then;
    /// `repeat` of a call with the same key.
    pub(crate) cache: Option<&'static str>,
    /// How it ended.
    pub(crate) ended: Ended,
    /// Whose fault that was.
    pub(crate) blame: Option<Blame>,
    /// The code of an error, where it ended with one.
    pub(crate) code: Option<i64>,
    /// What records say of a refusal, where that is less than what the caller hears.
    pub(crate) cause: Option<String>,
    /// How often it was tried again.
    pub(crate) retried: Arc<AtomicU32>,
    /// What was kept of its result.
    pub(crate) artifacts: Vec<String>,
    /// What it counts in: nothing of its own where it calls what is no tool.
    pub(crate) meter: Option<Arc<Meter>>,
    /// What it counts in where it reads.
    pub(crate) served: Option<Arc<SourceMeter>>,
}

impl Story {
    /// A rule decided before anything ran.
    pub(crate) fn refused(&mut self, rule: &'static str, ended: Ended, blame: Blame) {
        (self.rule, self.ended, self.blame) = (Some(rule), ended, Some(blame));
    }

    /// There is a result.
    pub(crate) fn answered(&mut self, result: &[u8]) {
        self.ended_with(member(result, "isError").is_some_and(|at| &result[at] == b"true"));
    }

    /// There is a result, and it says so or so of itself.
    pub(crate) fn ended_with(&mut self, failed: bool) {
        self.ended = if failed { Ended::ToolError } else { Ended::Well };
        self.blame = failed.then_some(Blame::Upstream);
    }

    /// Some of the result was kept, and it says under which names.
    pub(crate) fn keeps(&mut self, result: &[u8]) {
        let text = String::from_utf8_lossy(result);
        for piece in text.split(r#""uri":"toolcrib://artifact/"#).skip(1) {
            let id: String = piece.chars().take_while(char::is_ascii_alphanumeric).collect();
            if !self.artifacts.contains(&id) {
                self.artifacts.push(id);
            }
        }
    }

    /// How it ended, as it is told.
    pub(crate) fn outcome(&self) -> Outcome {
        match self.ended {
            Ended::Cancelled => Outcome::Cancelled,
            Ended::Well => Outcome::Ok,
            Ended::ToolError => Outcome::ToolError,
            Ended::UnknownTool => Outcome::UnknownTool,
            Ended::InvalidArguments => Outcome::InvalidArguments,
            Ended::Expelled => Outcome::Expelled,
            Ended::Held => Outcome::Held,
            Ended::Limited => Outcome::Limited,
            Ended::TimedOut => Outcome::Timeout,
            // An error that the server sent is the server's, whoever is to blame for it.
            Ended::Failed if self.code.is_some() => Outcome::UpstreamError,
            Ended::Failed if self.blame == Some(Blame::Upstream) => Outcome::UpstreamError,
            Ended::Failed => Outcome::GatewayError,
        }
    }

    /// There is none.
    pub(crate) fn failed(&mut self, error: &CallError) {
        self.blame = Some(error.blame());
        self.ended = match error {
            CallError::TimedOut { .. } => Ended::TimedOut,
            _ => Ended::Failed,
        };
        if let CallError::Rpc { code, .. } = error {
            self.code = Some(*code);
        }
    }
}
