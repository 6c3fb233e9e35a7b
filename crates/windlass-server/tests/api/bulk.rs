//! Cancel and retry, of one task and of many.

use serde_json::json;
use windlass_core::Outcome;

use crate::harness::Api;

#[tokio::test]
async fn a_task_that_has_not_started_is_cancelled_with_the_reason() {
    let api = Api::start().await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    let answer = api.post(&format!("/v1/tasks/{id}/cancel"), r#"{"reason":"not needed"}"#).await;
    assert_eq!((answer.status, &answer.json()["state"]), (200, &json!("cancelled")));
    let task = api.get(&format!("/v1/tasks/{id}")).await.json();
    assert_eq!((&task["state"], &task["error"]), (&json!("cancelled"), &json!("not needed")));
}

#[tokio::test]
async fn cancelling_a_running_task_asks_and_an_ended_one_conflicts() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    let task = worker.claim().await;
    assert_eq!(api.post_nothing(&format!("/v1/tasks/{id}/cancel")).await.json()["state"], "running");
    let shown = api.get(&format!("/v1/tasks/{id}")).await.json();
    assert_eq!(shown["cancel_requested"], "cancelled by request");
    worker.settle(&task, Outcome::Done(None)).await;
    assert_eq!(api.post_nothing(&format!("/v1/tasks/{id}/cancel")).await.error(409).0, "conflict");
}

#[tokio::test]
async fn a_dead_task_is_retried_and_another_is_a_conflict() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let id = api.dead(&worker, "a", "e").await;
    let answer = api.post(&format!("/v1/tasks/{id}/retry"), r#"{"delay_ms":1000}"#).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let task = api.get(&format!("/v1/tasks/{id}")).await.json();
    assert_eq!((&task["state"], &task["due_at"]), (&json!("scheduled"), &json!("2027-01-31T09:30:01.000Z")));
    assert_eq!(api.post_nothing(&format!("/v1/tasks/{id}/retry")).await.error(409).0, "conflict");
}

#[tokio::test]
async fn a_dry_run_counts_and_changes_nothing() {
    let api = Api::start().await;
    api.enqueue(json!({"kind": "a"})).await;
    let request = json!({"filter": {"kind": "a"}, "dry_run": true});
    let answer = api.post("/v1/tasks/cancel", request.to_string()).await.json();
    assert_eq!(
        (&answer["matched"], &answer["changed"], &answer["dry_run"]),
        (&json!(1), &json!(0), &json!(true))
    );
    assert_eq!(api.get("/v1/tasks?state=ready").await.json()["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn every_unfinished_task_of_a_filter_is_cancelled_and_no_other() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    api.dead(&worker, "a", "e").await;
    for _ in 0..150 {
        api.enqueue(json!({"kind": "a"})).await;
    }
    api.enqueue(json!({"kind": "a", "delay_ms": 5000})).await;
    let other = api.enqueue(json!({"kind": "b"})).await;
    let answer = api.post("/v1/tasks/cancel", r#"{"filter":{"kind":"a"},"reason":"stop"}"#).await.json();
    assert_eq!(
        (&answer["matched"], &answer["changed"], &answer["refused"]),
        (&json!(151), &json!(151), &json!(0))
    );
    assert_eq!(api.get(&format!("/v1/tasks/{other}")).await.json()["state"], "ready");
    assert_eq!(api.get("/v1/tasks?state=dead").await.json()["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_bulk_operation_stops_at_its_limit_and_says_so() {
    let api = Api::start().await;
    for _ in 0..5 {
        api.enqueue(json!({"kind": "a"})).await;
    }
    let request = json!({"filter": {"kind": "a"}, "limit": 3});
    let answer = api.post("/v1/tasks/cancel", request.to_string()).await.json();
    assert_eq!((&answer["changed"], &answer["more"]), (&json!(3), &json!(true)));
    let answer = api.post("/v1/tasks/cancel", request.to_string()).await.json();
    assert_eq!((&answer["changed"], &answer["more"]), (&json!(2), &json!(false)));
}

#[tokio::test]
async fn retries_are_spread_evenly_over_the_time_that_was_asked_for() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    for _ in 0..4 {
        api.dead(&worker, "a", "e").await;
    }
    let answer = api.post("/v1/tasks/retry", r#"{"over_ms":4000}"#).await.json();
    assert_eq!((&answer["matched"], &answer["changed"]), (&json!(4), &json!(4)), "{answer}");
    let tasks = api.get("/v1/tasks").await.json();
    let mut due: Vec<_> = tasks["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["due_at"].as_str().unwrap().to_owned())
        .collect();
    due.sort();
    let seconds: Vec<_> = due.iter().map(|due| &due[17..]).collect();
    assert_eq!(seconds, ["00.000Z", "01.000Z", "02.000Z", "03.000Z"]);
}

#[tokio::test]
async fn an_invalid_bulk_operation_is_refused() {
    let api = Api::start().await;
    for (path, body, named) in [
        ("cancel", "{}", "filter is empty"),
        ("cancel", r#"{"filter":{"state":"done"}}"#, "state done"),
        ("cancel", r#"{"filter":{"kind":"a"},"over_ms":1}"#, "over_ms"),
        ("cancel", r#"{"filter":{"kind":"a"},"limit":0}"#, "limit"),
        ("retry", r#"{"filter":{"state":"ready"}}"#, "state ready"),
        ("retry", r#"{"reason":"r"}"#, "reason"),
        ("retry", r#"{"limit":100001}"#, "limit"),
        ("retry", r#"{"over_ms":99999999999999}"#, "over_ms"),
        ("retry", r#"{"filter":{"stat":"dead"}}"#, "stat"),
    ] {
        let (code, message) = api.post(&format!("/v1/tasks/{path}"), body).await.error(400);
        assert_eq!(code, "invalid");
        assert!(message.contains(named), "{body}: {message}");
    }
}
