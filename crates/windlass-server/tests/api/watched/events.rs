//! The stream of snapshots.

use serde_json::Value;
use windlass_core::Scope;

use crate::{
    access::Guarded,
    harness::{Api, Connection},
};

async fn open(api: &Api) -> (Connection, String) {
    let mut connection = api.connect().await;
    connection.send(b"GET /v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let head = connection.head().await;
    (connection, head)
}

/// One chunk of the body, whole.
async fn chunk(connection: &mut Connection) -> String {
    use tokio::io::AsyncReadExt;
    let mut size = String::new();
    while !size.ends_with("\r\n") {
        size.push(connection.0.read_u8().await.unwrap().into());
    }
    let mut chunk = vec![0; usize::from_str_radix(size.trim(), 16).unwrap() + 2];
    connection.0.read_exact(&mut chunk).await.unwrap();
    String::from_utf8(chunk).unwrap()
}

#[tokio::test]
async fn snapshots_come_as_events_and_the_first_at_once() {
    let api = Api::start().await;
    let (mut connection, head) = open(&api).await;
    assert!(
        head.contains("content-type: text/event-stream") && head.contains("cache-control: no-store"),
        "{head}"
    );
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let event = chunk(&mut connection).await;
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).unwrap().to_owned();
        let snapshot: Value = serde_json::from_str(&field("data: ")).unwrap();
        assert_eq!((field("event: ").as_str(), &snapshot["store"]["ok"]), ("snapshot", &Value::Bool(true)));
        numbers.push(field("id: ").parse::<u64>().unwrap());
    }
    assert!(numbers[0] < numbers[1], "{numbers:?}");
}

#[tokio::test]
async fn the_stream_ends_when_the_server_stops() {
    let mut api = Api::start().await;
    let (mut connection, _) = open(&api).await;
    chunk(&mut connection).await;
    api.stop();
    assert!(connection.rest().await.ends_with(b"0\r\n\r\n"));
    api.ended().await;
}

#[tokio::test]
async fn only_a_token_that_may_read_gets_events() {
    let server = Guarded::start().await;
    for call in ["GET /v1/events", "GET /v1/snapshot", "GET /v1/series"] {
        for scope in [Scope::Enqueue, Scope::Work] {
            let token = server.token(&[scope]).await;
            assert_eq!(server.call_as(&token, call).await.status, 403, "{scope} for {call}");
        }
        let token = server.token(&[Scope::Read]).await;
        assert_eq!(server.call_as(&token, call).await.status, 200, "{call}");
        assert_eq!(server.call(call, "").await.status, 401, "{call}");
    }
}
