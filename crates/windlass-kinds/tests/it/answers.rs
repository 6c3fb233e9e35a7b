//! The outcome of each kind of answer.

use std::{sync::atomic::Ordering, time::Duration};

use http::Method;
use serde_json::json;
use windlass::{Context, Outcome, handler::RawHandler as _};
use windlass_kinds::{Http, HttpOptions};

use crate::support::{Server, answer, call, dead, http, loopback, output, retried, task};

/// A server that answers with the status in the path.
async fn status_server() -> Server {
    Server::start(|request| answer(request.path[1..].parse().unwrap(), &[], "")).await
}

#[tokio::test]
async fn a_status_decides_between_done_retry_and_dead() {
    let (server, http) = (status_server().await, http());
    for status in [200, 201, 202, 204, 206, 299] {
        let outcome = call(&http, &json!({"url": server.url(&format!("/{status}"))})).await;
        assert_eq!(output(outcome)["status"], status);
    }
    for status in [408, 425, 429, 500, 501, 502, 503, 504, 599] {
        let outcome = call(&http, &json!({"url": server.url(&format!("/{status}"))})).await;
        assert!(matches!(outcome, Outcome::Retry { after: None, .. }), "{status}: {outcome:?}");
        assert!(retried(outcome).contains(&status.to_string()));
    }
    // A redirect without a location cannot be followed.
    for status in [300, 301, 302, 303, 304, 305, 307, 308, 400, 401, 403, 404, 409, 410, 422, 499, 600] {
        let outcome = call(&http, &json!({"url": server.url(&format!("/{status}"))})).await;
        assert!(dead(outcome).contains(&status.to_string()), "{status}");
    }
}

#[tokio::test]
async fn a_success_leaves_status_headers_and_body() {
    let server = Server::start(|_| answer(200, &[("content-type", "text/plain")], "grüß dich")).await;
    let output = output(call(&http(), &json!({"url": server.url("/")})).await);
    assert_eq!(
        output,
        json!({
            "status": 200,
            "headers": {"content-type": "text/plain", "content-length": "11"},
            "body": "grüß dich",
            "truncated": false,
        })
    );
}

#[tokio::test]
async fn a_body_is_cut_at_its_limit_and_marked() {
    let server = Server::start(|request| answer(200, &[], "x".repeat(request.path.len()))).await;
    let http = http();
    // The path is as long as the body of the answer.
    for (body_bytes, kept_bytes, truncated) in [(9, 9, false), (10, 10, false), (11, 10, true)] {
        let url = server.url(&format!("/{}", "p".repeat(body_bytes - 1)));
        let output = output(call(&http, &json!({"url": url, "max_body_bytes": 10})).await);
        assert_eq!(output["body"].as_str().unwrap().len(), kept_bytes, "{body_bytes}");
        assert_eq!(output["truncated"], truncated, "{body_bytes}");
    }
}

#[tokio::test]
async fn a_body_is_cut_to_the_store_limit() {
    let server = Server::start(|_| answer(200, &[], "\"".repeat(65536))).await;
    let http = Http::new(HttpOptions { output_max_bytes: 4096, ..loopback() }).unwrap();
    let output = output(call(&http, &json!({"url": server.url("/")})).await);
    assert!(output.to_string().len() <= 4096);
    assert!(output["body"].as_str().unwrap().len() > 1900);
    assert_eq!(output["truncated"], true);
}

#[tokio::test]
async fn a_body_that_is_not_text_comes_as_base64() {
    let server = Server::start(|_| answer(200, &[], vec![0xff, 0x00, 0xfe])).await;
    let output = output(call(&http(), &json!({"url": server.url("/")})).await);
    assert_eq!(output["body_base64"], "/wD+");
    assert_eq!(output.get("body"), None);
}

#[tokio::test]
async fn the_server_sets_the_retry_delay() {
    let server = Server::start(|request| {
        let wait = &request.path[1..];
        answer(503, &[("retry-after", &wait.replace('_', " "))], "")
    })
    .await;
    let http = http();
    for (wait, expected_seconds) in
        [("7", Some(7)), ("86400", Some(3600)), ("Wed,_21_Oct_2099_07:28:00_GMT", Some(3600)), ("soon", None)]
    {
        let outcome = call(&http, &json!({"url": server.url(&format!("/{wait}"))})).await;
        let Outcome::Retry { after, .. } = outcome else { panic!("{wait}: {outcome:?}") };
        assert_eq!(after, expected_seconds.map(Duration::from_secs), "{wait}");
    }
}

#[tokio::test]
async fn a_request_says_which_task_it_belongs_to() {
    let server = Server::start(|_| answer(204, &[], "")).await;
    let payload = json!({
        "url": server.url("/a?b=c"),
        "method": "post",
        "headers": {"X-Mine": "v", "Accept": "text/csv"},
        "json": {"b": [1], "a": null},
    });
    assert_eq!(output(call(&http(), &payload).await)["status"], 204);
    let seen = server.seen().remove(0);
    assert_eq!((seen.method, seen.path.as_str()), (Method::POST, "/a?b=c"));
    let header = |name: &str| std::str::from_utf8(seen.headers[name].as_bytes()).unwrap().to_owned();
    let id = windlass::TaskId::from_raw(123_456_789_012).to_string();
    assert_eq!(header("windlass-task"), id);
    assert_eq!(header("idempotency-key"), id);
    assert_eq!(header("windlass-attempt"), "3");
    assert_eq!(header("windlass-job"), "täglich/example.com");
    assert_eq!(header("windlass-workflow"), "order-42");
    assert_eq!(header("user-agent"), format!("windlass/{}", env!("CARGO_PKG_VERSION")));
    assert_eq!(header("host"), server.address.to_string());
    assert_eq!(header("content-type"), "application/json");
    assert_eq!((header("x-mine"), header("accept")), ("v".into(), "text/csv".into()));
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&seen.body).unwrap(), payload["json"]);
}

#[tokio::test]
async fn a_connection_is_used_again_for_the_same_host() {
    let server = Server::start(|_| answer(200, &[], "x")).await;
    let http = http();
    for _ in 0..5 {
        output(call(&http, &json!({"url": server.url("/")})).await);
    }
    assert_eq!(server.seen().len(), 5);
    assert_eq!(server.connections.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_wrong_payload_is_dead_without_a_request() {
    let server = Server::start(|_| answer(200, &[], "")).await;
    let payload = json!({"url": server.url("/"), "verb": "GET"});
    assert!(dead(call(&http(), &payload).await).contains("unknown field \"verb\""));
    assert_eq!(server.seen().len(), 0);
}

#[tokio::test]
async fn a_traced_task_sends_traceparent_unless_the_payload_does() {
    let server = Server::start(|_| answer(200, &[], "")).await;
    let trace = windlass::trace::TraceContext { trace_id: 0xab, span_id: 0xcd, sampled: true };
    let own = "00-000000000000000000000000000000aa-00000000000000bb-00";
    for (headers, trace) in
        [(json!({}), Some(trace)), (json!({"TraceParent": own}), Some(trace)), (json!({}), None)]
    {
        let payload = windlass::Payload::json(&json!({"url": server.url("/"), "headers": headers})).unwrap();
        let context = Context::detached(windlass::task::Claimed { trace, ..task(payload) });
        output(http().call(context).await);
    }
    let seen: Vec<_> = server
        .seen()
        .iter()
        .map(|seen| seen.headers.get("traceparent").map(|text| text.to_str().unwrap().to_owned()))
        .collect();
    assert_eq!(seen, [Some(trace.to_string()), Some(own.to_owned()), None]);
}
