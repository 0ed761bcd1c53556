//! The tools of a workspace's own: functions and mods in Python, operations in `events/`.

use std::sync::Arc;

use toolcrib_bus::Bus;
use toolcrib_catalogue::{Origin, Problem, Source, SourceState};
use toolcrib_sources::{asyncapi::EventSource, python::Python};

/// What a workspace brings along itself.
#[derive(Debug, Clone, Default)]
pub struct Own {
    /// What is written in Python.
    pub python: Option<Python>,
    /// What stands in `events/`.
    pub events: Option<Arc<EventSource>>,
    /// Where events go.
    pub bus: Option<Arc<dyn Bus>>,
}

impl Own {
    /// All of it, in the order in which names are given.
    pub fn sources(&self) -> Vec<(Origin, Arc<dyn Source>)> {
        let python = self.python.as_ref().map(Python::sources).unwrap_or_default();
        let python = python.into_iter().map(|it| (it.origin.clone(), it as Arc<dyn Source>));
        let events = self.events.clone().map(|it| (Origin::Events, it as Arc<dyn Source>));
        python.chain(events).collect()
    }

    /// Whether this is the name of one of these tools.
    pub fn has(&self, name: &str) -> bool {
        self.sources().iter().any(|(_, it)| it.tools().iter().any(|it| it.name == name))
    }

    /// What is wrong with it.
    pub fn problems(&self) -> Vec<Problem> {
        self.sources().iter().flat_map(|(origin, it)| problems(origin, &**it)).collect()
    }

    /// Ends it.
    pub async fn close(self) {
        if let Some(python) = self.python {
            python.close().await;
        }
        if let Some(bus) = self.bus {
            bus.close().await;
        }
    }
}

fn problems(origin: &Origin, source: &dyn Source) -> Vec<Problem> {
    let mut problems = source.problems();
    // All of them stand and fall together, and one says it.
    if let (SourceState::Failed { cause, hint }, Origin::Workspace) = (source.state(), origin) {
        problems.push(Problem { hint, ..Problem::new("tools", cause) });
    }
    problems
}
