//! How a server stops.

use serde_json::json;
use tokio::net::TcpStream;
use windlass_server::http::Options;

use crate::{harness::Api, wait::endless};

#[tokio::test]
async fn an_idle_server_ends_at_once_and_closes_idle_connections() {
    let mut api = Api::start().await;
    let mut idle = api.connect().await;
    idle.send(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert_eq!(idle.answer().await.status, 200);
    api.stop();
    assert!(idle.rest().await.is_empty());
    api.ended().await;
}

#[tokio::test]
async fn long_polls_end_with_the_server() {
    let (mut api, mut begins) = endless(Options::default()).await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    let mut waiting = api.connect().await;
    waiting.send(format!("GET /v1/tasks/{id}/wait HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await;
    begins.recv().await.unwrap();
    api.stop();
    let answer = waiting.answer().await;
    assert_eq!((answer.status, &answer.json()["ended"]), (200, &json!([])));
    api.ended().await;
}

#[tokio::test]
async fn shutdown_finishes_requests_and_takes_no_connection() {
    let mut api = Api::start().await;
    let body = br#"{"kind":"a"}"#;
    let mut under_way = api.connect().await;
    let head = format!(
        "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nexpect: 100-continue\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    under_way.send(head.as_bytes()).await;
    // The server has begun to read the body when it sends 100 Continue.
    assert!(under_way.head().await.starts_with("HTTP/1.1 100"));
    let address = api.address;
    api.stop();
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    under_way.send(body).await;
    assert_eq!(under_way.answer().await.status, 201);
    api.ended().await;
}

#[tokio::test]
async fn an_endless_request_does_not_keep_the_server_running() {
    let options = Options { shutdown_max: std::time::Duration::from_millis(20), ..Options::default() };
    let mut api = Api::with(crate::harness::Setup { options, ..Default::default() }).await;
    let mut stuck = api.connect().await;
    let head = "POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
        expect: 100-continue\r\ncontent-length: 9\r\n\r\n";
    stuck.send(head.as_bytes()).await;
    stuck.head().await;
    api.stop();
    api.ended().await;
}
