//! Enqueue of one task and of several.

use serde_json::json;
use windlass_core::Payload;

use crate::harness::{Api, Setup};

#[tokio::test]
async fn a_task_goes_in_and_is_found_by_its_id() {
    let api = Api::start().await;
    let _worker = api.worker(&["echo"]).await;
    let answer = api.post("/v1/tasks", r#"{"kind":"echo","payload":{"hello":"world"}}"#).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.json()["existing"], false);
    assert_eq!(answer.json()["warnings"], json!([]));
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    let task = api.get(&format!("/v1/tasks/{id}")).await.json();
    assert_eq!(task["payload"], json!({"hello": "world"}));
    assert_eq!((&task["state"], &task["queue"]), (&json!("ready"), &json!("default")));
    assert_eq!(task["enqueued_at"], "2027-01-31T09:30:00.000Z");
}

#[tokio::test]
async fn a_kind_that_no_live_worker_has_is_taken_with_a_warning() {
    let api = Api::start().await;
    let answer = api.post("/v1/tasks", r#"{"kind":"resize"}"#).await;
    assert_eq!(answer.status, 201);
    let warning = "no live worker handles kind \"resize\"; the task waits until one does";
    assert_eq!(answer.json()["warnings"], json!([warning]));
    // A worker that has registered since the warning is seen at once.
    let _worker = api.worker(&["resize"]).await;
    let answer = api.post("/v1/tasks", r#"{"kind":"resize"}"#).await;
    assert_eq!(answer.json()["warnings"], json!([]));
}

#[tokio::test]
async fn a_batch_is_all_or_none_and_says_which_entry_is_wrong() {
    let api = Api::start().await;
    let good = json!({"tasks": [{"kind": "a"}, {"kind": "b", "payload": null}, {"kind": "a"}]});
    let answer = api.post("/v1/tasks", good.to_string()).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.json()["tasks"].as_array().unwrap().len(), 3);
    assert_eq!(answer.json()["warnings"].as_array().unwrap().len(), 2, "one per kind");
    let bad = json!({"tasks": [{"kind": "a"}, {"kind": ""}]});
    let (code, message) = api.post("/v1/tasks", bad.to_string()).await.error(400);
    assert_eq!((code.as_str(), message.as_str()), ("invalid", "tasks[1]: kind must not be empty"));
    assert_eq!(api.get("/v1/tasks").await.json()["tasks"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn the_same_key_gives_one_task_or_a_payload_conflict() {
    let api = Api::start().await;
    let id = api.enqueue(json!({"kind": "a", "payload": 1, "key": "k"})).await;
    let again = api.post("/v1/tasks", r#"{"kind":"a","payload":1,"key":"k"}"#).await;
    assert_eq!(again.status, 200);
    assert_eq!((&again.json()["id"], &again.json()["existing"]), (&json!(id), &json!(true)));
    let other = api.post("/v1/tasks", r#"{"kind":"a","payload":2,"key":"k"}"#).await;
    assert_eq!(other.error(409).0, "key_conflict");
    assert!(other.hint().contains("key_conflict"));
    let ignored = json!({"kind": "a", "payload": 2, "key": "k", "key_conflict": "ignore"});
    let ignored = api.post("/v1/tasks", ignored.to_string()).await;
    assert_eq!((ignored.status, &ignored.json()["id"]), (200, &json!(id)));
}

#[tokio::test]
async fn bytes_come_as_base64_and_are_shown_as_size_and_digest() {
    let api = Api::start().await;
    let id = api.enqueue(json!({"kind": "a", "payload_base64": "YWJj"})).await;
    let task = api.get(&format!("/v1/tasks/{id}")).await.json();
    assert_eq!(task["payload_encoding"], "bytes");
    assert_eq!(task["payload"]["bytes"], 3);
    assert!(task["payload"]["digest"].as_str().unwrap().starts_with("sha256:ba7816bf"));
}

#[tokio::test]
async fn a_payload_that_the_check_finds_wrong_is_refused() {
    let setup = Setup {
        operations: |operations| {
            operations.check_payload(|kind, _| match kind.as_str() {
                "http" => Err("url is missing".into()),
                _ => Ok(()),
            })
        },
        ..Setup::default()
    };
    let api = Api::with(setup).await;
    let (code, message) = api.post("/v1/tasks", r#"{"kind":"http"}"#).await.error(400);
    assert_eq!((code.as_str(), message.as_str()), ("invalid", "payload of kind \"http\": url is missing"));
    assert_eq!(api.post("/v1/tasks", r#"{"kind":"echo"}"#).await.status, 201);
}

#[tokio::test]
async fn secrets_of_a_kind_are_not_shown_in_any_answer() {
    fn hide(mut payload: serde_json::Value) -> serde_json::Value {
        payload["token"] = json!("***");
        payload
    }
    let setup = Setup { operations: |operations| operations.redact_json("http", hide), ..Setup::default() };
    let api = Api::with(setup).await;
    let worker = api.worker(&["http"]).await;
    let id = api.enqueue(json!({"kind": "http", "payload": {"token": "s3cret"}})).await;
    let other = api.enqueue(json!({"kind": "plain", "payload": {"token": "shown"}})).await;
    // A payload that is too deep to be parsed is not shown at all.
    let deep = format!("{{\"s3cret\":{}1{}}}", "[".repeat(127), "]".repeat(127));
    for unbuildable in [deep.as_str(), r#"{"token":"s3cret","n":1e999}"#] {
        let answer = api.post("/v1/tasks", format!(r#"{{"kind":"http","payload":{unbuildable}}}"#)).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
    }
    worker.end(windlass_core::Outcome::Done(Some(Payload::json(&1).unwrap()))).await;
    for path in [format!("/v1/tasks/{id}"), "/v1/tasks".into(), format!("/v1/tasks/{id}/wait?timeout_ms=0")] {
        let answer = api.get(&path).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(!answer.text().contains("s3cret") && answer.text().contains("***"), "{path}");
    }
    assert_eq!(api.get(&format!("/v1/tasks/{other}")).await.json()["payload"]["token"], "shown");
}

#[tokio::test]
async fn tasks_carry_the_callers_trace_and_ignore_an_invalid_one() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let one = r#"{"kind":"a"}"#;
    let many = r#"{"tasks":[{"kind":"a"},{"kind":"a"}]}"#;
    for (headers, body, expected) in [
        (format!("\r\ntraceparent: {good}"), one, vec![Some(good)]),
        (format!("\r\nTRACEPARENT: {good}"), many, vec![Some(good), Some(good)]),
        (format!("\r\ntraceparent: {good}\r\ntraceparent: {good}"), one, vec![None]),
        ("\r\ntraceparent: 00-nonsense".to_owned(), one, vec![None]),
        (String::new(), one, vec![None]),
    ] {
        let head = format!(
            "POST /v1/tasks HTTP/1.1\r\nhost: {}\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {}{headers}",
            api.address,
            body.len()
        );
        assert_eq!(api.raw(&head, body.as_bytes()).await.status, 201, "{headers}");
        for expected in expected {
            let seen = worker.claim().await.trace.map(|trace| trace.to_string());
            assert_eq!(seen.as_deref(), expected, "{headers}");
        }
    }
}
