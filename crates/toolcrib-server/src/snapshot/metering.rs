//! What calls of the tools of a snapshot count in.

use std::sync::Arc;

use super::Snapshot;
use crate::metrics::{Meter, Metrics, SourceMeter};

impl Snapshot {
    /// The same, with calls counted.
    pub(crate) fn metered(mut self, metrics: &Metrics) -> Self {
        let tools = self.tools.entries().iter().map(|it| (&*it.name, it.listing));
        let labels: Vec<_> = self.slots.iter().map(|it| Arc::clone(&it.label)).collect();
        self.meters = metrics.meters(tools, &labels);
        self
    }

    /// What calls of a tool count in.
    pub(crate) fn meter(&self, name: &str) -> Option<&Arc<Meter>> {
        let at = self.tools.entries().partition_point(|it| *it.name < *name);
        self.tools.entries().get(at).filter(|it| *it.name == *name)?;
        self.meters.tool(at)
    }

    /// What requests to a source count in.
    pub(crate) fn source_meter(&self, source: usize) -> Option<&Arc<SourceMeter>> {
        self.meters.source(source)
    }

    /// How many tools of a source there are.
    pub(crate) fn count_of(&self, source: usize) -> usize {
        self.tools.entries().iter().filter(|it| it.listing == source).count()
    }
}
