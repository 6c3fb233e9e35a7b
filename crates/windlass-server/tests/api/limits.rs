//! S7: every input has a bound before it costs memory.

use std::{fmt::Write, time::Duration};

use serde_json::json;
use tokio::io::AsyncReadExt;
use windlass_core::Rules;
use windlass_server::http::Options;

use crate::harness::{Api, Connection, Setup};

async fn with(options: Options) -> Api {
    Api::with(Setup { options, ..Setup::default() }).await
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_or_without_length() {
    let api = Api::start().await;
    let big = vec![b' '; (16 << 20) + 1];
    assert_eq!(api.post("/v1/tasks", &big).await.error(413).0, "too_large");
    assert_eq!(api.post("/v1/tasks/cancel", &big[..=64 << 10]).await.error(413).0, "too_large");
    let mut chunked = format!("{:x}\r\n", big.len()).into_bytes();
    chunked.extend_from_slice(&big);
    chunked.extend_from_slice(b"\r\n0\r\n\r\n");
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
        transfer-encoding: chunked";
    assert_eq!(api.raw(head, &chunked).await.error(413).0, "too_large");
}

#[tokio::test]
async fn expect_100_is_refused_before_a_large_body_is_sent() {
    let api = Api::start().await;
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\n\
        expect: 100-continue\r\ncontent-length: 100000000";
    assert_eq!(api.raw(head, b"").await.error(413).0, "too_large");
}

#[tokio::test]
async fn the_largest_payload_is_taken_in_either_form() {
    let rules = Rules { payload_max_bytes: 20 << 20, ..Rules::default() };
    let api = Api::with(Setup { rules, ..Setup::default() }).await;
    let text = "A".repeat((20 << 20) - 2);
    assert_eq!(api.post("/v1/tasks", json!({"kind": "a", "payload": text}).to_string()).await.status, 201);
    let base64 = "AAAA".repeat((20 << 20) / 3);
    assert_eq!(
        api.post("/v1/tasks", json!({"kind": "a", "payload_base64": base64}).to_string()).await.status,
        201
    );
}

#[tokio::test]
async fn a_batch_over_the_limit_is_counted_and_refused() {
    let api = Api::start().await;
    let mut body = String::from(r#"{"tasks":["#);
    for _ in 0..1_000_000 {
        body.push_str(r#"{"kind":"a"},"#);
    }
    body.push_str(r#"{"kind":"a"}]}"#);
    let (code, message) = api.post("/v1/tasks", body).await.error(413);
    assert_eq!(code, "too_large");
    assert_eq!(message, "tasks has 1000001 entries; at most 10000 in one batch");
}

#[tokio::test]
async fn heads_with_too_many_or_too_long_headers_are_refused() {
    let api = Api::start().await;
    let mut many = "GET /healthz HTTP/1.1\r\nhost: localhost".to_owned();
    for n in 0..200 {
        let _ = write!(many, "\r\nx-{n}: 1");
    }
    assert_eq!(api.raw(&many, b"").await.status, 431);
    let long = format!("GET /healthz HTTP/1.1\r\nhost: localhost\r\nx: {}", "y".repeat(1_000_000));
    assert_eq!(api.raw(&long, b"").await.status, 431);
}

#[tokio::test]
async fn a_client_that_never_finishes_its_head_is_dropped() {
    let api = with(Options { head_read_max: Duration::from_millis(20), ..Options::default() }).await;
    let mut slow = api.connect().await;
    slow.send(b"GET /healthz HT").await;
    slow.rest().await;
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let api = with(Options { head_read_max: Duration::from_millis(20), ..Options::default() }).await;
    let mut idle = api.connect().await;
    idle.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert_eq!(idle.answer().await.status, 200);
    assert!(idle.rest().await.is_empty());
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_given_up() {
    let api = with(Options { body_read_max: Duration::from_millis(20), ..Options::default() }).await;
    let head =
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: 50";
    assert_eq!(api.raw(head, b"{\"kind\":").await.error(408).0, "timeout");
}

#[tokio::test]
async fn a_connection_over_the_limit_gets_503_and_a_later_one_works() {
    let api = with(Options { connections_max: 1, ..Options::default() }).await;
    let mut first = api.connect().await;
    first.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert_eq!(first.answer().await.status, 200);
    let mut second = api.connect().await;
    let refused = second.answer().await;
    assert_eq!(refused.error(503).0, "unavailable");
    first.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    first.rest().await;
    // The place becomes free a moment after the close: try again until then.
    loop {
        let mut next = api.connect().await;
        next.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
        if next.rest().await.starts_with(b"HTTP/1.1 200") {
            break;
        }
    }
}

#[tokio::test]
async fn bodies_share_a_budget_of_memory() {
    let api = with(Options { bodies_max_bytes: 4 << 10, ..Options::default() }).await;
    assert_eq!(api.post("/v1/tasks", r#"{"kind":"a"}"#).await.status, 201);
    let refused = api.post("/v1/tasks", " ".repeat(5 << 10)).await;
    assert_eq!(refused.error(503).0, "unavailable");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(api.post("/v1/tasks", r#"{"kind":"a"}"#).await.status, 201);
}

/// Allows this process so many open files. The usual limit of 1024 may be raised up to the hard limit.
fn allow_files(n: u64) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_some_and(|current| current < n) {
        let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(n), ..limit });
        assert!(
            raised.is_ok(),
            "needs {n} open files, and the hard limit is {:?} (`ulimit -Hn`)",
            limit.maximum
        );
    }
}

/// The status of the answer to a request on a connection; `None` if the server closed it without an answer.
async fn status(connection: &mut Connection) -> Option<u16> {
    connection.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let mut line = Vec::new();
    while !line.ends_with(b"\r\n") {
        line.push(connection.0.read_u8().await.ok()?);
    }
    String::from_utf8(line).unwrap().split(' ').nth(1)?.parse().ok()
}

#[tokio::test]
async fn no_more_connections_are_served_than_the_limit() {
    let connections = if std::env::var_os("WINDLASS_LONG").is_some() { 10_000 } else { 500 };
    let places = connections / 10;
    // Both ends of each connection are in this process; a refused one has only the end of the client.
    allow_files((connections + places) as u64 + 200);
    let api = with(Options { connections_max: places, ..Options::default() }).await;
    let (mut served, mut refused) = (Vec::new(), Vec::new());
    for _ in 0..connections {
        let mut connection = api.connect().await;
        match status(&mut connection).await {
            Some(200) => served.push(connection),
            told => {
                assert!(matches!(told, None | Some(503)), "{told:?}");
                refused.push(connection);
            }
        }
    }
    assert_eq!((served.len(), refused.len()), (places, connections - places));
    drop((served, refused));
    // The places become free a moment after the close.
    while status(&mut api.connect().await).await != Some(200) {}
}
