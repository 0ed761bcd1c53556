//! Tells of a call when it has ended, however it did: also one whose caller did not wait for it.

use std::{
    ops::Range,
    sync::{Arc, atomic::Ordering},
    time::Instant,
};

use bytes::Bytes;
use serde_json::Value;
use toolcrib_catalogue::Blame;
use toolcrib_wire::{RpcError, json::member};

use super::{
    Ended, Story,
    audit::{Audit, CallRecord, Payload, Receipt, Unwritable},
};
use crate::{
    access::Caller,
    dispatch::{Asked, trace},
    gateway::Gateway,
    metrics::Counting,
    spans::Span,
};

/// How much of a name is kept. It is masked before it is cut to what is written, and a secret must be whole then.
const MOST_NAME: usize = 2048;

/// A call that will be told of.
#[derive(Debug)]
pub(crate) struct Telling {
    audit: Option<Arc<Audit>>,
    /// What it is called, here and in every record of it.
    pub(crate) id: String,
    pub(crate) story: Story,
    caller: Caller,
    tool: String,
    params: Bytes,
    arguments: Option<Range<usize>>,
    begin: Instant,
    told: bool,
    /// What is told of it to those who trace it.
    span: Option<Box<Span>>,
    /// Gone where somebody else tells of it.
    counting: Option<Counting>,
    /// What was asked for, where it is no call of a tool.
    pub(crate) method: Option<&'static str>,
}

impl Telling {
    /// A call begins.
    pub(crate) fn begin(gateway: &Gateway, asked: &mut Asked<'_>) -> Self {
        let span = gateway.tracer.as_ref().and_then(|tracer| {
            let params = asked.params.as_deref().unwrap_or_default();
            Span::server(tracer, &mut asked.trace, params, asked.method, &asked.caller)
        });
        Self {
            span,
            audit: gateway.audit().cloned(),
            id: gateway.ids.next(),
            story: Story::default(),
            caller: asked.caller.clone(),
            tool: String::new(),
            params: asked.params.clone().unwrap_or_default(),
            arguments: None,
            begin: Instant::now(),
            told: false,
            counting: Some(Counting::begin(&gateway.metrics)),
            method: None,
        }
    }

    /// Whether it can be told of; where not, it must not run.
    pub(crate) async fn admit(&mut self) -> Result<(), Unwritable> {
        let Some(audit) = &self.audit else { return Ok(()) };
        let admitted = audit.admit().await;
        // How many were refused is told when there is somebody to tell.
        self.told = admitted.is_err();
        if admitted.is_err() {
            self.unrecorded();
        }
        admitted
    }

    /// It is not made, since nobody could read of it afterwards; those who count and trace hear of it.
    fn unrecorded(&mut self) {
        self.story.refused("audit", Ended::Failed, Blame::Gateway);
        if let Some(counting) = &self.counting {
            counting.unrecorded();
        }
        if let Some(mut span) = self.span.take() {
            span.ended(&self.story, &self.id, self.method.unwrap_or("tools/call"), "");
        }
    }

    /// It is known what is called.
    pub(crate) fn calls(&mut self, tool: &str, params: &Bytes, arguments: Option<Range<usize>>) {
        // A name of megabytes is not kept.
        self.tool = match tool.len() {
            0..MOST_NAME => tool.to_owned(),
            _ => tool.chars().take(MOST_NAME).collect(),
        };
        self.params = params.clone();
        self.arguments = arguments;
    }

    /// Somebody else sees the call to its end, and tells of it; here nothing more is told.
    pub(crate) fn hand_over(&mut self) -> Self {
        Self {
            audit: self.audit.clone(),
            id: self.id.clone(),
            story: std::mem::take(&mut self.story),
            caller: self.caller.clone(),
            tool: std::mem::take(&mut self.tool),
            params: std::mem::take(&mut self.params),
            arguments: self.arguments.take(),
            begin: self.begin,
            told: std::mem::replace(&mut self.told, true),
            span: self.span.take(),
            counting: self.counting.take(),
            method: self.method,
        }
    }

    /// The call has ended. The answer goes out when its record is safe, where that is asked for.
    pub(crate) async fn end(
        mut self,
        answer: Result<Bytes, RpcError>,
    ) -> Result<Result<Bytes, RpcError>, Unwritable> {
        if self.told {
            return Ok(answer);
        }
        let (answer, cause) = self.conclude(answer);
        let size = answer.as_ref().map_or(0, Bytes::len);
        // What quotes the caller is the caller's alone.
        let quotes = self.story.cause.is_some();
        let result = answer.as_ref().ok().filter(|_| !quotes).map_or(&[] as &[u8], |it| it);
        self.told = true;
        if let Some(receipt) = self.tell(cause.as_deref(), size, result) {
            receipt.safe().await?;
        }
        Ok(answer)
    }

    /// How it ended, where nobody has said so yet; and a result of ours that says which call it was.
    fn conclude(
        &mut self,
        answer: Result<Bytes, RpcError>,
    ) -> (Result<Bytes, RpcError>, Option<String>) {
        let story = &mut self.story;
        if story.ended == Ended::Cancelled {
            // It did not get as far as any rule: the request itself was wrong.
            story.refused("request", Ended::InvalidArguments, Blame::Caller);
        }
        let ours = !matches!(story.ended, Ended::Well | Ended::ToolError);
        match answer {
            Err(error) => {
                story.code = story.code.or(Some(error.code));
                let cause = error.message.clone();
                (Err(error), Some(cause))
            }
            Ok(result) if ours => {
                let cause = story.cause.clone().or_else(|| said(&result));
                // A tool that exists has a name that may be logged; any other name is what the caller likes.
                let tool = self.story.source.as_ref().map(|_| self.tool.as_str());
                let ended = self.story.outcome().word();
                tracing::info!(call = self.id, tool, ended, "a call failed");
                (Ok(named(&result, &self.id)), cause)
            }
            Ok(result) => (Ok(result), None),
        }
    }

    fn tell(&mut self, cause: Option<&str>, size: usize, result: &[u8]) -> Option<Receipt> {
        if let Some(mut span) = self.span.take() {
            span.ended(&self.story, &self.id, self.method.unwrap_or("tools/call"), &self.tool);
        }
        let took = self.begin.elapsed();
        if let Some(counting) = &self.counting {
            counting.ended(&self.story, self.method, took);
        }
        let audit = self.audit.as_ref()?;
        let story = &self.story;
        let arguments = self.arguments.clone().or_else(|| member(&self.params, "arguments"));
        let arguments = arguments.map_or(&b"{}"[..], |at| &self.params[at]);
        let (given, got) = (audit.arguments(arguments), audit.result(result));
        let trace = trace(&self.params).into_iter().find(|(key, _)| *key == "traceparent");
        let trace = trace.map(|(_, it)| it).filter(|it| is_trace(it));
        // The name of a tool that exists is no secret; any other may hold whatever the caller likes.
        let unknown = story.source.is_none() || self.method.is_some();
        let masked = unknown.then(|| audit.mask(&self.tool));
        let definition =
            story.definition.map(|it| blake3::Hash::from_bytes(*it.as_bytes()).to_hex());
        let cause = cause.map(|it| audit.mask(it));
        Some(audit.call(&CallRecord {
            id: &self.id,
            who: &self.caller.name(audit.salt()),
            group: &self.caller.group,
            client: self.caller.address,
            method: self.method,
            tool: masked.as_deref().unwrap_or(&self.tool),
            source: story.source.as_deref(),
            definition: definition.as_deref(),
            arguments: Payload { masked: given.as_deref(), ..audit.digest(arguments) },
            outcome: story.outcome().word(),
            blame: story.blame,
            code: story.code,
            cause: cause.as_deref(),
            micros: u64::try_from(took.as_micros()).unwrap_or(u64::MAX),
            retries: story.retried.load(Ordering::Relaxed),
            cache: story.cache,
            result: Payload { bytes: size, digest: None, masked: got.as_deref() },
            artifacts: &story.artifacts,
            trace: trace.as_deref(),
            rule: story.rule,
        }))
    }
}

impl Drop for Telling {
    /// Nobody waited for the answer.
    fn drop(&mut self) {
        if !self.told {
            (self.story.ended, self.story.blame) = (Ended::Cancelled, Some(Blame::Caller));
            drop(self.tell(None, 0, b""));
        }
    }
}

/// Whether a text is a trace as W3C has it: anything else might be anything.
fn is_trace(text: &str) -> bool {
    let digits = |it: &str| it.bytes().all(|it| it.is_ascii_hexdigit());
    let parts: Vec<&str> = text.split('-').take(5).collect();
    parts.iter().map(|it| it.len()).eq([2, 32, 16, 2]) && parts.iter().all(|it| digits(it))
}

/// What a result of ours says.
fn said(result: &[u8]) -> Option<String> {
    let value: Value = serde_json::from_slice(result).ok()?;
    value["content"][0]["text"].as_str().map(str::to_owned)
}

/// A result of ours that says which call it is of.
fn named(result: &Bytes, id: &str) -> Bytes {
    let name = format!(r#""toolcrib/call":"{id}""#);
    let (at, before, after) = match member(result, "_meta") {
        Some(meta) if result[meta.clone()].starts_with(b"{\"") => (meta.start + 1, "", ","),
        None if result.starts_with(b"{\"") => (1, r#""_meta":{"#, "},"),
        _ => return result.clone(),
    };
    let (begin, rest) = result.split_at(at);
    [begin, before.as_bytes(), name.as_bytes(), after.as_bytes(), rest].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(result: &'static str, expected: &str) {
        let named = named(&Bytes::from_static(result.as_bytes()), "07");
        assert_eq!(std::str::from_utf8(&named).unwrap(), expected);
    }

    #[test]
    fn a_trace_is_one_or_is_not_written() {
        assert!(is_trace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"));
        for bad in
            ["", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x", "my-password"]
        {
            assert!(!is_trace(bad), "{bad}");
        }
    }

    #[test]
    fn a_result_of_ours_says_which_call_it_is_of() {
        check(
            r#"{"content":[],"_meta":{"toolcrib/blame":"caller"}}"#,
            r#"{"content":[],"_meta":{"toolcrib/call":"07","toolcrib/blame":"caller"}}"#,
        );
        check(
            r#"{"content":[],"isError":true}"#,
            r#"{"_meta":{"toolcrib/call":"07"},"content":[],"isError":true}"#,
        );
        check("{}", "{}");
    }
}
