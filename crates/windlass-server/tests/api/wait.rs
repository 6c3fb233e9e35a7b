//! Long polls.

use serde_json::json;
use tokio::sync::mpsc;
use windlass_core::{Outcome, Payload};
use windlass_server::{Operations, http::Options};

use crate::harness::Api;

#[tokio::test]
async fn an_ended_task_is_answered_at_once_with_its_output() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    worker.end(Outcome::Done(Some(Payload::json(&json!({"n": 1})).unwrap()))).await;
    let answer = api.get(&format!("/v1/tasks/{id}/wait")).await.json();
    assert_eq!(answer["ended"][0]["state"], "done");
    assert_eq!(
        (&answer["ended"][0]["output"], &answer["ended"][0]["output_encoding"]),
        (&json!({"n": 1}), &json!("json"))
    );
}

#[tokio::test]
async fn a_wait_that_runs_out_answers_with_nothing() {
    let api = Api::start().await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    let answer = api.get(&format!("/v1/tasks/{id}/wait?timeout_ms=1")).await;
    assert_eq!((answer.status, answer.json()), (200, json!({"ended": [], "missing": []})));
}

#[tokio::test]
async fn a_wait_ends_when_the_task_ends() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    let path = format!("/v1/tasks/{id}/wait?timeout_ms=60000");
    let (answer, ()) = tokio::join!(api.get(&path), worker.end(Outcome::dead("e")));
    assert_eq!(answer.json()["ended"][0]["state"], "dead");
}

#[tokio::test]
async fn several_tasks_are_waited_for_in_one_call() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let first = api.enqueue(json!({"kind": "a"})).await;
    let second = api.enqueue(json!({"kind": "a"})).await;
    worker.end(Outcome::Done(None)).await;
    let request = json!({"ids": [second, first, "01JD3M8K2ZQ4R"], "timeout_ms": 60_000});
    let answer = api.post("/v1/tasks/wait", request.to_string()).await.json();
    assert_eq!(answer["ended"][0]["id"], json!(first));
    assert_eq!(answer["ended"].as_array().unwrap().len(), 1);
    assert_eq!(answer["missing"], json!(["01JD3M8K2ZQ4R"]));
}

#[tokio::test]
async fn a_wait_beyond_its_bounds_is_refused_with_the_name() {
    let api = Api::start().await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    let (_, message) = api.get(&format!("/v1/tasks/{id}/wait?timeout_ms=60001")).await.error(400);
    assert!(message.contains("timeout_ms is 60001"), "{message}");
    for ids in [json!([]), json!(vec![id.clone(); 1_001])] {
        let (_, message) = api.post("/v1/tasks/wait", json!({"ids": ids}).to_string()).await.error(400);
        assert!(message.contains("ids has"), "{message}");
    }
    assert_eq!(api.post("/v1/tasks/wait", r#"{"ids":["x"]}"#).await.error(400).0, "invalid");
}

/// A server with waits that never end, and a channel that reports each wait that began.
pub async fn endless(options: Options) -> (Api, mpsc::UnboundedReceiver<()>) {
    let (begun, begins) = mpsc::unbounded_channel();
    let api = Api::start().await;
    let operations = Operations::new(api.store.clone()).wait_with(move |_, _| {
        begun.send(()).unwrap();
        std::future::pending()
    });
    (Api::around(api.store.clone(), api.clock.clone(), operations, options).await, begins)
}

#[tokio::test]
async fn a_long_poll_over_the_limit_may_be_repeated() {
    let (api, mut begins) = endless(Options { long_polls_max: 1, ..Options::default() }).await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    let path = format!("/v1/tasks/{id}/wait");
    let mut first = api.connect().await;
    first.send(format!("GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes()).await;
    begins.recv().await.unwrap();
    let refused = api.get(&path).await;
    assert_eq!(refused.error(503).0, "unavailable");
    assert_eq!(refused.header("retry-after"), Some("1"));
}
