//! Spans as OTLP has them, in JSON: `ExportTraceServiceRequest` of the protobuf definitions, with ids in hexadecimal,
//! numbers of 64 bits as strings and enums as numbers.

use bytes::Bytes;
use serde_json::{Value as Json, json};

use super::{
    context::hex,
    span::{Finished, Kind, Value},
};

/// Who sends spans.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) service: String,
    pub(super) version: String,
    /// Which process it is.
    pub(super) instance: String,
}

/// A request that brings these spans.
pub(super) fn request(sender: &Sender, spans: &[Finished]) -> Bytes {
    let Sender { service, version, instance } = sender;
    let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
    let resource = json!({ "attributes": [
        text("service.name", service),
        text("service.version", version),
        text("service.instance.id", instance),
        text("telemetry.sdk.name", "toolcrib"),
        text("telemetry.sdk.language", "rust"),
        text("telemetry.sdk.version", version),
    ] });
    let spans: Vec<Json> = spans.iter().map(span).collect();
    let scope = json!({ "scope": { "name": "toolcrib", "version": version }, "spans": spans });
    let request = json!({ "resourceSpans": [{ "resource": resource, "scopeSpans": [scope] }] });
    request.to_string().into()
}

fn span(it: &Finished) -> Json {
    let kind = match it.kind {
        Kind::Server => 2,
        Kind::Client => 3,
    };
    let attribute = |(key, value): &(&str, Value)| {
        let value = match value {
            Value::Text(text) => json!({ "stringValue": text }),
            Value::Number(number) => json!({ "intValue": number.to_string() }),
        };
        json!({ "key": key, "value": value })
    };
    let attributes: Vec<Json> = it.attributes.iter().map(attribute).collect();
    let mut span = json!({
        "traceId": hex(&it.context.trace),
        "spanId": hex(&it.context.span),
        "flags": 1,
        "name": it.name,
        "kind": kind,
        "startTimeUnixNano": it.begin.to_string(),
        "endTimeUnixNano": it.end.to_string(),
        "attributes": attributes,
        "status": if it.failed { json!({ "code": 2 }) } else { json!({}) },
    });
    if let Some(parent) = &it.parent {
        span["parentSpanId"] = json!(hex(parent));
    }
    if let Some(state) = &it.state {
        span["traceState"] = json!(state);
    }
    span
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spans::Context;

    #[test]
    fn a_span_is_written_as_the_definitions_have_it() {
        let parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        let it = Finished {
            context: Context::read(parent).unwrap(),
            parent: Some([1; 8]),
            state: Some("a=1".to_owned()),
            kind: Kind::Client,
            name: "tools/call x".to_owned(),
            begin: 1_700_000_000_000_000_000,
            end: u64::MAX,
            attributes: vec![("n", Value::Number(-7)), ("t", Value::Text("\"\n".into()))],
            failed: true,
        };
        let expected = json!({
            "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "b7ad6b7169203331",
            "parentSpanId": "0101010101010101", "traceState": "a=1", "flags": 1,
            "name": "tools/call x", "kind": 3,
            "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "18446744073709551615",
            "attributes": [
                { "key": "n", "value": { "intValue": "-7" } },
                { "key": "t", "value": { "stringValue": "\"\n" } },
            ],
            "status": { "code": 2 },
        });
        assert_eq!(span(&it), expected);
        let plain = span(&Finished { parent: None, state: None, failed: false, ..it });
        assert_eq!((&plain["parentSpanId"], &plain["status"]), (&Json::Null, &json!({})));
    }
}
