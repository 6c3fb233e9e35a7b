//! A request sends its body as it is.

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
