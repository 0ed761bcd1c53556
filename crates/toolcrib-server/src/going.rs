//! A request on its way to a source: how long that takes is counted, and told to those who trace it.

use std::{sync::Arc, time::Instant};

use bytes::Bytes;
use toolcrib_catalogue::{CallError, Json};
use toolcrib_wire::json::{member, string};

use crate::{
    dispatch::Asked,
    gateway::Gateway,
    metrics::SourceMeter,
    snapshot::Snapshot,
    spans::{Span, carrying},
};

/// A request that a source has not answered yet. Where nobody waits for that any more, it counts too.
#[derive(Debug)]
pub(crate) struct Going {
    meter: Option<Arc<SourceMeter>>,
    begin: Instant,
    span: Option<Box<Span>>,
}

impl Going {
    /// A request goes to a source, about a tool or prompt that it calls so. Its params say which trace it belongs to,
    /// where somebody traces.
    pub(crate) fn begin(
        (gateway, snapshot): (&Gateway, &Snapshot),
        asked: &Asked<'_>,
        source: usize,
        target: Option<&str>,
        params: Bytes,
    ) -> (Self, Bytes) {
        let meter = snapshot.source_meter(source).cloned();
        let mut going = Self { meter, begin: Instant::now(), span: None };
        let (Some(tracer), Some(within)) = (&gateway.tracer, &asked.trace.within) else {
            return (going, params);
        };
        let label = snapshot.label(source);
        // A prompt goes by the name that its server has for it.
        let prompt = member(&params, "name").filter(|_| asked.method == "prompts/get");
        let prompt = prompt.and_then(|at| string(&params[at]));
        let target = target.or(prompt.as_deref());
        going.span = Span::client(tracer, within, asked.method, target, label.as_deref());
        let context = going.span.as_ref().map_or(*within, |it| it.context());
        let state = asked.trace.came.as_ref().and_then(|it| it.state());
        let params = carrying(&params, &context, state);
        (going, params)
    }

    /// The source has answered.
    pub(crate) fn ended(mut self, result: &Result<Json, CallError>) {
        let Some(span) = &mut self.span else { return };
        let failed = |it: &[u8]| member(it, "isError").is_some_and(|at| &it[at] == b"true");
        let tool_error = result.as_ref().is_ok_and(|it| failed(it.as_bytes()));
        span.answered(result.as_ref().err(), tool_error);
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        if let Some(meter) = &self.meter {
            meter.requested(self.begin.elapsed());
        }
    }
}
