//! The stream of snapshots.

use serde_json::Value;
use windlass_core::Scope;

use crate::{
    access::Guarded,
    harness::{Api, Connection},
    sessions::{PAGE, log_in, send, with},
};

async fn open(api: &Api) -> (Connection, String) {
    open_as(api, "").await
}

/// The same with these headers.
async fn open_as(api: &Api, headers: &str) -> (Connection, String) {
    let mut connection = api.connect().await;
    let request = format!("GET /v1/events HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
    connection.send(request.as_bytes()).await;
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

/// Reads a stream to its end; fails if a few more snapshots come.
async fn ends(mut connection: Connection, why: &str) {
    for _ in 0..4 {
        if chunk(&mut connection).await == "\r\n" {
            return;
        }
    }
    panic!("the stream went on after {why}");
}

#[tokio::test]
async fn a_stream_ends_with_its_session_and_its_token() {
    let server = Guarded::start().await;
    let api = &server.api;
    let admin = server.token(&[Scope::Admin]).await;
    let read = server.token(&[Scope::Read]).await;
    let (out, _) = log_in(api, &admin).await;
    let (ended, session) = log_in(api, &admin).await;
    let bearer = format!("authorization: Bearer {read}\r\n");
    let (of_token, _) = log_in(api, &read).await;
    let mut streams = Vec::new();
    for headers in [with(&out), with(&ended), bearer.clone(), with(&of_token)] {
        let (mut stream, head) = open_as(api, &headers).await;
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        chunk(&mut stream).await;
        streams.push(stream);
    }
    let (mut stays, _) = open_as(api, &format!("authorization: Bearer {admin}\r\n")).await;
    let left = send(api, "POST /v1/logout", &format!("{}{PAGE}", with(&out)), "{}").await;
    let id = session["id"].as_str().unwrap();
    let stopped = server.call_as(&admin, &format!("DELETE /v1/sessions/{id}")).await;
    let revoked = server.call_as(&admin, &format!("DELETE /v1/tokens/{}", &read[3..19])).await;
    assert_eq!((left.status, stopped.status, revoked.status), (200, 200, 200));
    let ways = ["logout", "the end of the session", "the revocation", "the revocation of its token"];
    for (stream, why) in streams.into_iter().zip(ways) {
        ends(stream, why).await;
    }
    for _ in 0..3 {
        assert!(chunk(&mut stays).await.starts_with("event: snapshot"));
    }
}
