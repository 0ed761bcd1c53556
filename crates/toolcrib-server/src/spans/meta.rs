//! Where a request came from, for those who trace it, and how its trace goes on in `_meta`.

use std::sync::Arc;

use bytes::Bytes;
use toolcrib_wire::{Fields, Id, frame::push_string, json::member};

use super::{Context, LONGEST};
use crate::dispatch::{TRACE_PARENT, TRACE_STATE, replaced, trace};

/// Where a request came from. Made only where somebody traces.
#[derive(Debug, Default)]
pub(crate) struct Came {
    /// The id of the request.
    pub(super) id: Option<String>,
    /// Its session, by a name that opens no door.
    pub(super) session: Option<String>,
    /// The revision of the protocol, where it is known.
    pub(super) revision: Option<&'static str>,
    /// `tcp` or `pipe`.
    pub(super) transport: Option<&'static str>,
    /// The trace that the transport speaks of, and its state.
    pub(super) parent: Option<Context>,
    pub(super) state: Option<String>,
}

impl Came {
    /// Over HTTP.
    pub(crate) fn over_http(id: &Id, headers: &Fields, revision: &'static str) -> Self {
        let text = |name: &str| headers.text(name);
        let parent = text("traceparent").and_then(Context::read);
        let state = text("tracestate").filter(|it| parent.is_some() && it.len() <= 2 * LONGEST);
        Self {
            session: text("mcp-session-id").map(named),
            revision: Some(revision),
            transport: Some("tcp"),
            parent,
            state: state.map(ToOwned::to_owned),
            ..Self::with_id(id)
        }
    }

    /// In a conversation on one stream.
    pub(crate) fn over(transport: &'static str, id: &Id) -> Self {
        Self { transport: Some(transport), ..Self::with_id(id) }
    }

    /// From a tool that calls another, in this trace.
    pub(crate) fn from_within(parent: Option<Context>) -> Self {
        Self { parent, ..Self::default() }
    }

    /// The state of the trace that the transport speaks of.
    pub(crate) fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    fn with_id(id: &Id) -> Self {
        let id: String = id.to_string().trim_matches('"').chars().take(LONGEST).collect();
        Self { id: Some(id), ..Self::default() }
    }
}

/// A session may be entered by whoever knows its id, where there are no tokens: what goes out only tells sessions apart.
fn named(session: &str) -> String {
    blake3::hash(session.as_bytes()).to_hex().chars().take(32).collect()
}

/// What a request carries along for those who trace it. Nothing, where nobody does.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace {
    pub(crate) came: Option<Arc<Came>>,
    /// The span that it belongs to.
    pub(crate) within: Option<Context>,
}

impl Trace {
    pub(crate) fn of(came: Came) -> Self {
        Self { came: Some(Arc::new(came)), within: None }
    }

    /// What a call that is made for this one carries along: it belongs below it.
    pub(crate) fn inner(&self) -> Self {
        let came = self.within.map(|it| Arc::new(Came::from_within(Some(it))));
        Self { came, within: None }
    }

    /// Where a request stands: where its `_meta` says, or else the transport.
    pub(super) fn parent(&self, params: &[u8]) -> Option<Context> {
        let said = trace(params).into_iter().find(|(key, _)| *key == "traceparent");
        let said = said.and_then(|(_, text)| Context::read(&text));
        said.or_else(|| self.came.as_ref()?.parent)
    }

    /// The state that goes on, where `_meta` brings none.
    pub(super) fn state(&self) -> Option<&str> {
        self.came.as_ref()?.state.as_deref()
    }
}

/// Params whose `_meta` says that they belong to this place in a trace. All else in them stays as it is.
pub(crate) fn carrying(params: &Bytes, context: &Context, state: Option<&str>) -> Bytes {
    let parent = context.to_string();
    let said = TRACE_PARENT.in_meta(params);
    if let Some(at) = &said {
        return replaced(params, at, &parent);
    }
    let mut added = br#""traceparent":"#.to_vec();
    push_string(&mut added, &parent);
    if let Some(state) = state.filter(|_| TRACE_STATE.in_meta(params).is_none()) {
        added.extend_from_slice(br#","tracestate":"#);
        push_string(&mut added, state);
    }
    match member(params, "_meta") {
        Some(meta) if params[meta.clone()].starts_with(b"{") => within(params, meta.start, &added),
        // What it says is not what it should be; the server may say so.
        Some(_) => params.clone(),
        None => {
            let begin = params.iter().position(|it| *it == b'{').unwrap_or_default();
            let meta = [br#""_meta":{"#, added.as_slice(), b"}"].concat();
            within(params, begin, &meta)
        }
    }
}

/// A text with further members at the beginning of the object that begins here.
fn within(text: &Bytes, object: usize, members: &[u8]) -> Bytes {
    let (begin, rest) = text.split_at(object + 1);
    let empty = rest.trim_ascii_start().first() == Some(&b'}');
    let comma: &[u8] = if empty { b"" } else { b"," };
    [begin, members, comma, rest].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[track_caller]
    fn check(params: &'static str, state: Option<&str>, expected: &str) {
        let context = Context::read(PARENT).unwrap();
        let found = carrying(&Bytes::from_static(params.as_bytes()), &context, state);
        assert_eq!(std::str::from_utf8(&found).unwrap(), expected.replace("$P", PARENT));
    }

    #[test]
    fn a_trace_goes_on_and_all_else_stays_to_the_letter() {
        check(
            r#"{ "name":"a", "_meta":{"x":1.50,"traceparent":"00-1","tracestate":"s=1"}, "n":1e400}"#,
            Some("t=2"),
            r#"{ "name":"a", "_meta":{"x":1.50,"traceparent":"$P","tracestate":"s=1"}, "n":1e400}"#,
        );
        check(
            r#"{"_meta":{"p":1}}"#,
            Some("t=2"),
            r#"{"_meta":{"traceparent":"$P","tracestate":"t=2","p":1}}"#,
        );
        check(r#"{"_meta":{ },"a":1}"#, None, r#"{"_meta":{"traceparent":"$P" },"a":1}"#);
        check(r#"{"name":"a"}"#, None, r#"{"_meta":{"traceparent":"$P"},"name":"a"}"#);
        check("{}", None, r#"{"_meta":{"traceparent":"$P"}}"#);
        check(r#"{"_meta":null}"#, None, r#"{"_meta":null}"#);
        // Arguments of that name are none of ours.
        check(
            r#"{"arguments":{"traceparent":"x"}}"#,
            None,
            r#"{"_meta":{"traceparent":"$P"},"arguments":{"traceparent":"x"}}"#,
        );
    }
}
