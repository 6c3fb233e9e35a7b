//! A request states the length of its body once, and the body is not encoded.

use serde_json::json;

use crate::harness::Api;

const BODY: &str = r#"{"kind":"a"}"#;

async fn count(api: &Api) -> usize {
    api.get("/v1/tasks").await.json()["tasks"].as_array().unwrap().len()
}

fn head(more: &str) -> String {
    format!("POST /v1/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n{more}")
}

#[tokio::test]
async fn an_encoded_body_is_refused() {
    let api = Api::start().await;
    let length = BODY.len();
    for coding in ["gzip", "br", "deflate", "identity, gzip", "GZIP", "x"] {
        let head =
            head(&format!("connection: close\r\ncontent-encoding: {coding}\r\ncontent-length: {length}"));
        let answer = api.raw(&head, BODY.as_bytes()).await;
        assert_eq!(answer.error(415).0, "unsupported_media_type", "{coding}");
    }
    let twice = format!(
        "connection: close\r\ncontent-encoding: identity\r\ncontent-encoding: gzip\r\ncontent-length: {length}"
    );
    assert_eq!(api.raw(&head(&twice), BODY.as_bytes()).await.status, 415);
    assert_eq!(count(&api).await, 0);
    for coding in ["identity", "Identity", ""] {
        let head =
            head(&format!("connection: close\r\ncontent-encoding: {coding}\r\ncontent-length: {length}"));
        assert_eq!(api.raw(&head, BODY.as_bytes()).await.status, 201, "{coding}");
    }
}

/// The headers of requests that state two lengths, for a chunked body of this many bytes.
fn two_lengths(length: usize) -> [String; 4] {
    [
        format!("content-length: {length}\r\ntransfer-encoding: chunked"),
        format!("transfer-encoding: chunked\r\ncontent-length: {length}"),
        "transfer-encoding: chunked\r\ncontent-length: 0".to_owned(),
        "Content-Length: 5\r\nx: y\r\nTransfer-Encoding: Chunked\r\nContent-Length: 5".to_owned(),
    ]
}

fn whole() -> String {
    format!("{}\r\n\r\n{BODY}", head(&format!("content-length: {}", BODY.len())))
}

fn chunked() -> String {
    format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len())
}

#[tokio::test]
async fn two_lengths_of_a_body_are_refused() {
    let api = Api::start().await;
    for lengths in two_lengths(chunked().len()) {
        let mut connection = api.connect().await;
        let (first, next) = (chunked(), whole());
        connection.send(format!("{}\r\n\r\n{first}{next}", head(&lengths)).as_bytes()).await;
        assert_eq!(connection.answer().await.status, 400, "{lengths}");
        assert_eq!(connection.rest().await, b"", "closed after {lengths}");
    }
    assert_eq!(count(&api).await, 0);
}

#[tokio::test]
async fn two_lengths_are_refused_on_a_kept_connection() {
    let api = Api::start().await;
    for lengths in two_lengths(chunked().len()) {
        let mut connection = api.connect().await;
        connection.send(whole().as_bytes()).await;
        assert_eq!(connection.answer().await.status, 201);
        connection.send(format!("{}\r\n\r\n{}{}", head(&lengths), chunked(), whole()).as_bytes()).await;
        assert_eq!(connection.answer().await.status, 400, "{lengths}");
        assert_eq!(connection.rest().await, b"", "closed after {lengths}");
    }
    assert_eq!(count(&api).await, 4);
}

#[tokio::test]
async fn two_lengths_are_refused_in_a_pipeline() {
    let api = Api::start().await;
    for lengths in two_lengths(chunked().len()) {
        let mut connection = api.connect().await;
        let (first, next) = (whole(), chunked());
        let all = format!("{first}\r\n{first}{}\r\n\r\n{next}{first}", head(&lengths));
        connection.send(all.as_bytes()).await;
        assert_eq!(connection.answer().await.status, 201);
        assert_eq!(connection.answer().await.status, 201);
        assert_eq!(connection.answer().await.status, 400, "{lengths}");
        assert_eq!(connection.rest().await, b"", "closed after {lengths}");
    }
    assert_eq!(count(&api).await, 8);
}

#[tokio::test]
async fn two_lengths_are_refused_if_the_head_comes_in_pieces() {
    let api = Api::start().await;
    for lengths in two_lengths(chunked().len()) {
        let mut connection = api.connect().await;
        let head = format!("{}\r\n\r\n", head(&lengths));
        let (most, last) = head.split_at(head.len() - 1);
        for byte in most.bytes() {
            connection.send(&[byte]).await;
        }
        // Send the end together with the body: nothing may arrive after the answer.
        connection.send(format!("{last}{}", chunked()).as_bytes()).await;
        assert_eq!(connection.answer().await.status, 400, "{lengths}");
        assert_eq!(connection.rest().await, b"", "closed after {lengths}");
    }
}

#[tokio::test]
async fn a_chunked_request_is_the_last_of_its_connection() {
    let api = Api::start().await;
    let chunked = format!("{:x}\r\n{BODY}\r\n0\r\n\r\n", BODY.len());
    let next = format!("{}\r\n\r\n{BODY}", head(&format!("content-length: {}", BODY.len())));
    let mut connection = api.connect().await;
    connection
        .send(format!("{}\r\n\r\n{chunked}{next}", head("transfer-encoding: chunked")).as_bytes())
        .await;
    let answer = connection.answer().await;
    assert_eq!((answer.status, answer.header("connection")), (201, Some("close")));
    assert_eq!(connection.rest().await, b"");
    assert_eq!(count(&api).await, 1);
}

#[tokio::test]
async fn an_out_of_range_error_names_the_range() {
    let api = Api::start().await;
    for at in ["9999-12-31T23:59:59Z", "10000-01-01T00:00:00Z"] {
        let (code, message) =
            api.post("/v1/tasks", json!({"kind": "a", "run_at": at}).to_string()).await.error(400);
        assert_eq!(code, "invalid");
        assert!(message.contains("from -009999-01-02T01:59:59Z to 9999-12-30T22:00:00Z"), "{message}");
    }
}
