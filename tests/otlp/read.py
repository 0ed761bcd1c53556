"""Reads an OTLP/HTTP request in JSON with OpenTelemetry's own protobuf definitions, and says what it holds.

OTLP writes ids in hexadecimal where protobuf's JSON has base64; everything else is read as it stands, and an unknown
field is an error.
"""

import base64
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

body = json.load(sys.stdin)
for resource in body["resourceSpans"]:
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:
            for key, size in (("traceId", 16), ("spanId", 8), ("parentSpanId", 8)):
                if key in span:
                    raw = bytes.fromhex(span[key])
                    assert len(raw) == size, (key, span[key])
                    span[key] = base64.b64encode(raw).decode()
            assert isinstance(span["kind"], int), span["kind"]

request = json_format.ParseDict(body, trace_service_pb2.ExportTraceServiceRequest())
for resource in request.resource_spans:
    names = {it.key: it.value.string_value for it in resource.resource.attributes}
    assert names["service.name"] == "crib", names
    for scope in resource.scope_spans:
        for span in scope.spans:
            assert 0 < span.start_time_unix_nano < span.end_time_unix_nano, span
            kind = trace_pb2.Span.SpanKind.Name(span.kind)
            print(kind, span.name, span.trace_state)
