//! Whether calls can be made, and what is missing where they cannot.

use std::sync::{Arc, atomic::Ordering};

use toolcrib_catalogue::SourceState;

use super::Gateway;
use crate::slot::Slot;

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
        let (mut missing, slots) = (Vec::new(), self.slots());
        if self.stop.is_cancelled() {
            missing.push(Missing::Open);
        }
        missing.extend(self.audit().and_then(|it| it.broken()).map(Missing::Record));
        let settled = self.settled.load(Ordering::Relaxed) || self.is_settled();
        if settled {
            self.settled.store(true, Ordering::Relaxed);
        } else {
            let before = missing.len();
            missing.extend(slots.iter().filter_map(|it| starting(it)));
            if missing.len() == before {
                missing.push(Missing::Catalogue);
            }
        }
        missing.extend(slots.iter().filter_map(|it| required(it, settled)));
        missing
    }
}

fn starting(slot: &Slot) -> Option<Missing> {
    let starting = slot.source()?.state() == SourceState::Connecting;
    starting.then(|| Missing::Started(Arc::clone(&slot.label)))
}

fn required(slot: &Slot, settled: bool) -> Option<Missing> {
    if !slot.input.required {
        return None;
    }
    let cause = match slot.source().map(|it| it.state()) {
        Some(SourceState::Ready) => return None,
        // It has been named already.
        Some(SourceState::Connecting) if !settled => return None,
        Some(SourceState::Connecting) => "it is being reached anew".to_owned(),
        Some(SourceState::Failed { cause, .. }) => cause,
        Some(SourceState::Closed) => "it was shut down".to_owned(),
        None => "its entry in mcp.json cannot be used".to_owned(),
    };
    Some(Missing::Required(Arc::clone(&slot.label), cause))
}
