//! S1: a foreign Host or Origin, or a body that is not JSON, is refused.

use serde_json::json;

use crate::harness::{Api, Setup};
use windlass_server::http::Options;

#[tokio::test]
async fn a_foreign_host_is_refused_on_known_and_unknown_routes() {
    let api = Api::start().await;
    for path in ["/", "/v1/tasks", "/healthz", "/nowhere"] {
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: evil.example:{}\r\nconnection: close", api.address.port());
        let (code, message) = api.raw(&head, b"").await.error(403);
        assert_eq!(code, "forbidden");
        assert!(message.contains("evil.example"), "{message}");
    }
}

#[tokio::test]
async fn loopback_names_with_any_port_and_allowed_names_are_answered() {
    let options = Options { allowed_hosts: vec!["windlass.internal".into()], ..Options::default() };
    let api = Api::with(Setup { options, ..Setup::default() }).await;
    for host in ["localhost", "localhost:1", "127.0.0.1:7878", "[::1]:7878", "windlass.internal"] {
        let answer =
            api.raw(&format!("GET /healthz HTTP/1.1\r\nhost: {host}\r\nconnection: close"), b"").await;
        assert_eq!(answer.status, 200, "{host}");
    }
}

#[tokio::test]
async fn a_missing_a_doubled_and_a_contradicted_host_are_refused() {
    let api = Api::start().await;
    for head in [
        "GET /healthz HTTP/1.1\r\nconnection: close",
        "GET /healthz HTTP/1.0",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\nhost: evil.example\r\nconnection: close",
        "GET http://evil.example/healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close",
    ] {
        assert_eq!(api.raw(head, b"").await.error(403).0, "forbidden", "{head}");
    }
}

#[tokio::test]
async fn a_foreign_origin_changes_nothing() {
    let api = Api::start().await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    for origin in ["https://evil.example", "null", "http://localhost:3000"] {
        let head = format!(
            "POST /v1/tasks/{id}/cancel HTTP/1.1\r\nhost: localhost\r\norigin: {origin}\r\nconnection: close\r\n\
             content-length: 0"
        );
        assert_eq!(api.raw(&head, b"").await.error(403).0, "forbidden", "{origin}");
    }
    assert_eq!(api.get(&format!("/v1/tasks/{id}")).await.json()["state"], "ready");
    let same =
        "GET /healthz HTTP/1.1\r\nhost: localhost:5\r\norigin: http://localhost:5\r\nconnection: close";
    assert_eq!(api.raw(same, b"").await.status, 200);
}

#[tokio::test]
async fn a_body_that_is_not_declared_as_json_is_refused() {
    let api = Api::start().await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    for path in ["/v1/tasks", &format!("/v1/tasks/{id}/cancel"), "/v1/tasks/retry", "/v1/queues/q/pause"] {
        for kind in
            ["", "content-type: text/plain\r\n", "content-type: application/x-www-form-urlencoded\r\n"]
        {
            let head = format!(
                "POST {path} HTTP/1.1\r\nhost: localhost\r\n{kind}connection: close\r\ncontent-length: 2"
            );
            let answer = api.raw(&head, b"{}").await;
            assert_eq!(answer.error(415).0, "unsupported_media_type", "{path} {kind}");
            assert_eq!(answer.hint(), "send content-type: application/json");
        }
    }
    assert_eq!(api.get(&format!("/v1/tasks/{id}")).await.json()["state"], "ready");
}

#[tokio::test]
async fn no_answer_invites_another_origin() {
    let api = Api::start().await;
    let head = "OPTIONS /v1/tasks HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
        access-control-request-method: POST";
    let answer = api.raw(head, b"").await;
    assert_eq!(answer.error(405).0, "method_not_allowed");
    assert!(answer.header("access-control-allow-origin").is_none());
}
