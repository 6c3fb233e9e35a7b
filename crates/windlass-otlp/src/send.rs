//! Sends one batch to the collector.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, StatusCode, header};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};

use crate::endpoint::Endpoint;

/// How long one request may take, from the connection to the last byte of the answer.
const REQUEST_MAX: Duration = Duration::from_secs(5);
/// Largest answer that is read: it only says how many spans were refused.
const ANSWER_MAX_BYTES: usize = 64 << 10;

/// How a request ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// The collector accepted the batch, except for this many spans.
    Taken { refused: u64 },
    /// Failed; the same request may succeed later.
    Later(String),
    /// Failed for good.
    Refused(String),
}

/// A client of one collector.
pub(crate) struct Sender {
    endpoint: Endpoint,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Sender {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, client: Client::builder(TokioExecutor::new()).build(HttpConnector::new()) }
    }

    pub(crate) async fn send(&self, body: Bytes) -> Sent {
        match tokio::time::timeout(REQUEST_MAX, self.exchange(body)).await {
            Ok(sent) => sent,
            Err(_) => Sent::Later(format!("no answer within {} s", REQUEST_MAX.as_secs())),
        }
    }

    async fn exchange(&self, body: Bytes) -> Sent {
        let request = Request::builder()
            .method(Method::POST)
            .uri(self.endpoint.uri().clone())
            .header(header::CONTENT_TYPE, "application/json")
            .body(Full::new(body));
        let request = match request {
            Ok(request) => request,
            Err(error) => return Sent::Refused(error.to_string()),
        };
        let response = match self.client.request(request).await {
            Ok(response) => response,
            Err(error) => return Sent::Later(with_source(&error)),
        };
        let status = response.status();
        let answer = Limited::new(response.into_body(), ANSWER_MAX_BYTES).collect().await;
        let answer = answer.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        judge(status, &answer)
    }
}

/// What an answer means, as OTLP defines it.
fn judge(status: StatusCode, answer: &[u8]) -> Sent {
    if status.is_success() {
        return Sent::Taken { refused: refused(answer) };
    }
    match status.as_u16() {
        429 | 502 | 503 | 504 => Sent::Later(format!("answered {status}")),
        _ => Sent::Refused(format!("answered {status}")),
    }
}

/// How many spans the collector refused. The number may be text, as 64-bit numbers are in OTLP's JSON.
fn refused(answer: &[u8]) -> u64 {
    let answer: serde_json::Value = serde_json::from_slice(answer).unwrap_or_default();
    match answer.pointer("/partialSuccess/rejectedSpans") {
        Some(serde_json::Value::String(text)) => text.parse().unwrap_or(0),
        Some(number) => number.as_u64().unwrap_or(0),
        None => 0,
    }
}

fn with_source(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_temporary_errors_are_tried_again() {
        for status in [429, 502, 503, 504] {
            assert!(matches!(judge(StatusCode::from_u16(status).unwrap(), b""), Sent::Later(_)), "{status}");
        }
        for status in [400, 401, 404, 413, 500, 501, 301] {
            assert!(
                matches!(judge(StatusCode::from_u16(status).unwrap(), b""), Sent::Refused(_)),
                "{status}"
            );
        }
    }

    #[test]
    fn spans_that_the_collector_refuses_are_counted() {
        let taken = |answer: &str| judge(StatusCode::OK, answer.as_bytes());
        assert_eq!(taken("{}"), Sent::Taken { refused: 0 });
        assert_eq!(taken(""), Sent::Taken { refused: 0 });
        assert_eq!(taken(r#"{"partialSuccess":{"rejectedSpans":"3"}}"#), Sent::Taken { refused: 3 });
        assert_eq!(taken(r#"{"partialSuccess":{"rejectedSpans":4}}"#), Sent::Taken { refused: 4 });
    }
}
