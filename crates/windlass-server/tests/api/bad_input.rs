//! Wrong input: one line that says what is wrong, and no effect.

use serde_json::json;
use windlass_core::Rules;

use crate::harness::{Api, Setup};

async fn nothing_was_stored(api: &Api) -> bool {
    api.get("/v1/tasks").await.json()["tasks"] == json!([])
}

#[tokio::test]
async fn wrong_json_is_refused_in_one_line() {
    let api = Api::start().await;
    for body in [
        "",
        "{",
        "[]",
        "null",
        "5",
        "\"task\"",
        "{}",
        r#"{"kind":5}"#,
        r#"{"kind":"a"} x"#,
        "{'kind':'a'}",
        r#"{"tasks":[]}"#,
        r#"{"tasks":{}}"#,
        r#"{"tasks":[{"kind":"a"}],"kind":"b"}"#,
        r#"{"kind":"a","kind":"b"}"#,
        r#"{"kind":"a","payload":{]}"#,
        r#"{"kind":"a","priority":99999999999}"#,
    ] {
        let (code, message) = api.post("/v1/tasks", body).await.error(400);
        assert_eq!(code, "invalid", "{body}");
        assert!(!message.contains('\n') && !message.is_empty(), "{body}: {message}");
    }
    assert!(nothing_was_stored(&api).await);
}

#[tokio::test]
async fn an_unknown_field_is_refused_with_the_nearest_known_one() {
    let api = Api::start().await;
    let answer = api.post("/v1/tasks", r#"{"kind":"a","priorty":1}"#).await;
    assert_eq!(answer.error(400), ("invalid".into(), "unknown field \"priorty\"".into()));
    assert_eq!(answer.hint(), "did you mean \"priority\"?");
    let nested = api.post("/v1/tasks", r#"{"tasks":[{"kind":"a","retry":{"max":1}}]}"#).await;
    assert_eq!(nested.error(400).1, "unknown field \"max\"");
    assert_eq!(nested.hint(), "did you mean \"max_ms\"?");
    assert!(nothing_was_stored(&api).await);
}

#[tokio::test]
async fn json_of_a_hundred_thousand_levels_is_refused() {
    let api = Api::start().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let (code, message) =
        api.post("/v1/tasks", format!(r#"{{"kind":"a","payload":{deep}}}"#)).await.error(400);
    assert_eq!((code.as_str(), message.contains("128 levels")), ("invalid", true), "{message}");
    for body in
        [deep.clone(), format!(r#"{{"kind":{deep}}}"#), format!(r#"{{"tasks":{deep}}}"#), "[".repeat(100_000)]
    {
        assert_eq!(api.post("/v1/tasks", body).await.error(400).0, "invalid");
    }
    assert_eq!(api.post("/v1/tasks/retry", &deep[..60_000]).await.error(400).0, "invalid");
    assert!(nothing_was_stored(&api).await);
}

#[tokio::test]
async fn the_deepest_payload_that_is_taken_is_also_shown() {
    let api = Api::start().await;
    let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
    let answer = api.post("/v1/tasks", format!(r#"{{"kind":"a","payload":{deep}}}"#)).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    assert!(api.get("/v1/tasks").await.text().contains(&deep));
}

#[tokio::test]
async fn invalid_utf_8_is_refused_and_says_where() {
    let api = Api::start().await;
    let (code, message) = api.post("/v1/tasks", b"{\"kind\":\"a\",\"payload\":\"\xff\"}").await.error(400);
    assert_eq!(code, "invalid");
    assert!(message.contains("UTF-8 (at byte 23)"), "{message}");
    assert!(nothing_was_stored(&api).await);
}

#[tokio::test]
async fn an_escaped_nul_is_kept_in_a_payload_and_refused_in_a_name() {
    let api = Api::start().await;
    let answer = api.post("/v1/tasks", r#"{"kind":"a","payload":"x\u0000y"}"#).await;
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(api.get(&format!("/v1/tasks/{id}")).await.json()["payload"], "x\0y");
    for field in ["kind", "queue", "job", "workflow", "key"] {
        let mut task = json!({"kind": "a"});
        task[field] = json!("x\0y");
        assert_eq!(api.post("/v1/tasks", task.to_string()).await.error(400).0, "invalid", "{field}");
    }
    let reason = api.post(&format!("/v1/tasks/{id}/cancel"), r#"{"reason":"x\u0000y"}"#).await;
    assert_eq!(reason.status, 200);
    assert_eq!(api.get(&format!("/v1/tasks/{id}")).await.json()["error"], "x\u{fffd}y");
}

#[tokio::test]
async fn a_payload_over_the_limit_is_too_large_and_is_not_quoted() {
    let rules = Rules { payload_max_bytes: 100, ..Rules::default() };
    let api = Api::with(Setup { rules, ..Setup::default() }).await;
    let task = json!({"kind": "a", "payload": "s3cret".repeat(30)});
    let answer = api.post("/v1/tasks", task.to_string()).await;
    let (code, message) = answer.error(413);
    assert_eq!(code, "too_large");
    assert_eq!(message, "payload is 182 bytes; payload_max_bytes is 100");
    assert!(!answer.text().contains("s3cret"));
}

#[tokio::test]
async fn unknown_routes_and_methods_are_answered_in_json() {
    let api = Api::start().await;
    for path in ["/v1", "/v2/tasks", "/v1/tasks/", "/v1/tasks/a/b/c", "/metrics", "/%00", "/v1/../etc/passwd"]
    {
        assert_eq!(api.get(path).await.error(404).0, "not_found", "{path}");
    }
    for (method, path, allowed) in [
        ("DELETE", "/v1/tasks", "GET,HEAD,POST"),
        ("PUT", "/v1/info", "GET,HEAD"),
        ("GET", "/v1/tasks/wait", "POST"),
    ] {
        let answer =
            api.raw(&format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close"), b"").await;
        assert_eq!(answer.error(405).0, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some(allowed), "{method} {path}");
    }
}
