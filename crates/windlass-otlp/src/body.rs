//! Spans in the JSON form of OTLP.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value as Json, json};
use windlass_core::trace::{Span, SpanKind, Value};

/// The service that sends spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Service {
    /// Its name, under which people find it in a trace.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A whole request body.
pub(crate) fn body(service: &Service, spans: &[Span]) -> Vec<u8> {
    let resource = [
        attribute("service.name", &Value::Text(service.name.clone())),
        attribute("service.version", &Value::Text(service.version.clone())),
        attribute("process.pid", &Value::Number(std::process::id().into())),
    ];
    let spans: Vec<Json> = spans.iter().map(span).collect();
    json!({"resourceSpans": [{
        "resource": {"attributes": resource},
        "scopeSpans": [{"scope": {"name": "windlass", "version": service.version}, "spans": spans}],
    }]})
    .to_string()
    .into_bytes()
}

fn span(span: &Span) -> Json {
    let mut json = json!({
        "traceId": format!("{:032x}", span.context.trace_id),
        "spanId": format!("{:016x}", span.context.span_id),
        "name": span.name,
        "kind": match span.kind {
            SpanKind::Internal => 1,
            SpanKind::Producer => 4,
            SpanKind::Consumer => 5,
        },
        "startTimeUnixNano": nanos(span.start),
        "endTimeUnixNano": nanos(span.end),
        "attributes": span.attributes.iter().map(|(key, value)| attribute(key, value)).collect::<Vec<_>>(),
        "status": match span.failure {
            Some(failure) => json!({"code": 2, "message": failure}),
            None => json!({}),
        },
    });
    if let (Some(fields), Some(parent)) = (json.as_object_mut(), span.parent) {
        fields.insert("parentSpanId".to_owned(), format!("{parent:016x}").into());
    }
    json
}

fn attribute(key: &str, value: &Value) -> Json {
    let value = match value {
        Value::Text(text) => json!({"stringValue": text}),
        // 64-bit numbers are text in the JSON form of protocol buffers.
        Value::Number(number) => json!({"intValue": number.to_string()}),
    };
    json!({"key": key, "value": value})
}

fn nanos(time: SystemTime) -> String {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos().to_string()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use windlass_core::TraceContext;

    use super::*;

    #[test]
    fn a_span_has_the_form_that_collectors_read() {
        let start = UNIX_EPOCH + Duration::from_nanos(1_700_000_000_123_456_789);
        let span = Span {
            context: TraceContext { trace_id: 0xab, span_id: 0xcd, sampled: true },
            parent: Some(0xef),
            name: "run echo".to_owned(),
            kind: SpanKind::Consumer,
            start,
            end: start + Duration::from_nanos(1),
            attributes: vec![("a", Value::Text("b".to_owned())), ("n", Value::Number(-1))],
            failure: Some("it failed"),
        };
        let first = Span { parent: None, failure: None, ..span.clone() };
        let service = Service { name: "s".to_owned(), version: "1".to_owned() };
        let sent: Json = serde_json::from_slice(&body(&service, &[span, first])).unwrap();
        let group = &sent["resourceSpans"][0];
        assert_eq!(
            group["resource"]["attributes"][0],
            json!({"key": "service.name", "value": {"stringValue": "s"}})
        );
        let spans = &group["scopeSpans"][0]["spans"];
        assert_eq!(
            spans[0],
            json!({
                "traceId": "000000000000000000000000000000ab", "spanId": "00000000000000cd",
                "parentSpanId": "00000000000000ef", "name": "run echo", "kind": 5,
                "startTimeUnixNano": "1700000000123456789", "endTimeUnixNano": "1700000000123456790",
                "attributes": [
                    {"key": "a", "value": {"stringValue": "b"}}, {"key": "n", "value": {"intValue": "-1"}},
                ],
                "status": {"code": 2, "message": "it failed"},
            })
        );
        assert!(spans[1].get("parentSpanId").is_none() && spans[1]["status"] == json!({}));
    }
}
