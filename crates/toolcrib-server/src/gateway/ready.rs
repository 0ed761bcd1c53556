//! Whether calls can be made, and what is missing where they cannot.

use std::sync::{Arc, atomic::Ordering};

use toolcrib_catalogue::SourceState;

use super::{Gateway, Input, label};

/// Something without which the gateway is not ready.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    /// An open door: it is stopping.
    Open,
    /// A record of calls: it cannot be written, for this reason.
    Record(String),
    /// This source, which has not been heard of yet.
    Started(Arc<str>),
    /// A catalogue of what is listed now.
    Catalogue,
    /// This server, which is required and is not ready, for this reason.
    Required(Arc<str>, String),
}

impl Gateway {
    /// Whether nothing is missing.
    pub fn is_ready(&self) -> bool {
        self.missing().is_empty()
    }

    /// What is missing. Servers that are not required are waited for once, when the gateway starts: one that comes
    /// and goes later takes its own tools away and nothing else.
    pub(crate) fn missing(&self) -> Vec<Missing> {
        let mut missing = Vec::new();
        if self.stop.is_cancelled() {
            missing.push(Missing::Open);
        }
        missing.extend(self.audit().and_then(|it| it.broken()).map(Missing::Record));
        let settled = self.settled.load(Ordering::Relaxed) || self.is_settled();
        if settled {
            self.settled.store(true, Ordering::Relaxed);
        } else {
            let before = missing.len();
            missing.extend(self.inputs().iter().filter_map(starting));
            if missing.len() == before {
                missing.push(Missing::Catalogue);
            }
        }
        missing.extend(self.inputs().iter().filter_map(|it| required(it, settled)));
        missing
    }
}

fn starting(input: &Input) -> Option<Missing> {
    let source = input.source.as_ref()?;
    let starting = source.state() == SourceState::Connecting;
    starting.then(|| Missing::Started(label(&input.origin)))
}

fn required(input: &Input, settled: bool) -> Option<Missing> {
    if !input.required {
        return None;
    }
    let cause = match input.source.as_ref().map(|it| it.state()) {
        Some(SourceState::Ready) => return None,
        // It has been named already.
        Some(SourceState::Connecting) if !settled => return None,
        Some(SourceState::Connecting) => "it is being reached anew".to_owned(),
        Some(SourceState::Failed { cause, .. }) => cause,
        Some(SourceState::Closed) => "it was shut down".to_owned(),
        None => "its entry in mcp.json cannot be used".to_owned(),
    };
    Some(Missing::Required(label(&input.origin), cause))
}
