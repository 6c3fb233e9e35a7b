//! Bulk runs over HTTP.

use serde_json::{Value, json};
use windlass_core::operators::RUNS_MAX;

use crate::harness::Api;

/// Looks until a run has ended. Each look lets the server go on.
async fn ended(api: &Api, id: &Value) -> Value {
    for _ in 0..10_000 {
        let run = api.get(&format!("/v1/runs/{id}")).await.json();
        if run["state"] != "running" {
            return run;
        }
    }
    panic!("run {id} does not end");
}

#[tokio::test]
async fn a_dry_run_says_how_many_and_names_a_few() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let mut newest = String::new();
    for _ in 0..7 {
        newest = api.dead(&worker, "a", "boom").await;
    }
    let request = json!({"action": "retry", "filter": {"kind": "a"}, "over_ms": 600_000, "dry_run": true});
    let answer = api.post("/v1/runs", request.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let preview = answer.json();
    assert_eq!((&preview["matched"], &preview["more"]), (&json!(7), &json!(false)));
    assert_eq!(preview["sample"].as_array().unwrap().len(), 5);
    assert_eq!(preview["sample"][0], json!({"id": newest, "kind": "a", "queue": "default", "state": "dead"}));
    assert_eq!(api.get("/v1/runs").await.json(), json!({"runs": []}));
}

#[tokio::test]
async fn a_run_retries_what_its_filter_matches_and_reports() {
    let api = Api::start().await;
    let worker = api.worker(&["a", "b"]).await;
    for kind in ["a", "b", "a"] {
        api.dead(&worker, kind, "boom").await;
    }
    let answer = api.post("/v1/runs", r#"{"action":"retry","filter":{"kind":"a"}}"#).await;
    assert_eq!(answer.status, 201, "{}", answer.text());
    let run = ended(&api, &answer.json()["id"]).await;
    assert_eq!((&run["state"], &run["matched"], &run["changed"]), (&json!("done"), &json!(2), &json!(2)));
    assert_eq!((&run["by"], &run["filter"]), (&json!("anybody"), &json!({"kind": "a"})));
    assert_eq!(api.get("/v1/runs").await.json()["runs"], json!([run]));
    let dead = api.get("/v1/tasks?state=dead").await.json();
    assert_eq!(dead["tasks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_run_cancels_in_every_state_and_keeps_the_reason() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    api.enqueue(json!({"kind": "a", "delay_ms": 60_000})).await;
    let done = api.enqueue(json!({"kind": "b"})).await;
    worker.claim().await;
    let body = r#"{"action":"cancel","filter":{"kind":"a"},"reason":"not today"}"#;
    let started = api.post("/v1/runs", body).await.json();
    let run = ended(&api, &started["id"]).await;
    assert_eq!(
        (&run["state"], &run["changed"], &run["reason"]),
        (&json!("done"), &json!(2), &json!("not today"))
    );
    assert_eq!(api.get(&format!("/v1/tasks/{id}")).await.json()["cancel_requested"], "not today");
    assert_eq!(api.get(&format!("/v1/tasks/{done}")).await.json()["state"], "ready");
}

#[tokio::test]
async fn a_run_reports_what_it_could_not_change() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    for _ in 0..2 {
        api.enqueue(json!({"kind": "a", "workflow": "w", "on_failure": "block", "max_attempts": 1})).await;
    }
    worker.end(windlass_core::Outcome::dead("boom")).await;
    let started = api.post("/v1/runs", r#"{"action":"remove","filter":{"kind":"a"}}"#).await.json();
    let run = ended(&api, &started["id"]).await;
    assert_eq!((&run["changed"], &run["refused"]), (&json!(0), &json!(1)), "{run}");
    assert!(run["refusals"][0]["error"]["message"].as_str().unwrap().contains('w'), "{run}");
}

#[tokio::test]
async fn a_run_that_makes_no_sense_is_refused() {
    let api = Api::start().await;
    for (body, said) in [
        (r#"{"action":"cancel"}"#, "filter is empty"),
        (r#"{"action":"remove"}"#, "filter is empty"),
        (r#"{"action":"retry","filter":{"state":"done"}}"#, "cannot be retried"),
        (r#"{"action":"remove","filter":{"state":"ready"}}"#, "cannot be removed"),
        (r#"{"action":"cancel","filter":{"state":"dead"}}"#, "has ended"),
        (r#"{"action":"retry","reason":"r"}"#, "reason"),
        (r#"{"action":"retry","over_ms":99999999999999}"#, "over_ms"),
        (r#"{"action":"explode"}"#, ""),
        (r#"{"filter":{"kind":"a"}}"#, "action"),
    ] {
        let (code, message) = api.post("/v1/runs", body).await.error(400);
        assert!(code == "invalid" && message.contains(said), "{body}: {message}");
    }
    assert_eq!(api.get("/v1/runs/x").await.error(400).0, "invalid");
    assert_eq!(api.get("/v1/runs/99").await.error(404).0, "not_found");
    assert_eq!(api.post_nothing("/v1/runs/99/stop").await.error(404).0, "not_found");
}

#[tokio::test]
async fn only_a_few_runs_are_at_work_and_each_can_be_stopped() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    // Each run retries one at once.
    for _ in 0..4 * RUNS_MAX {
        api.dead(&worker, "a", "boom").await;
    }
    let body = r#"{"action":"retry","filter":{"cause":"boom"},"over_ms":36000000}"#;
    for _ in 0..RUNS_MAX {
        assert_eq!(api.post("/v1/runs", body).await.status, 201);
    }
    let refused = api.post("/v1/runs", body).await;
    assert_eq!(refused.error(409).0, "conflict");
    assert!(refused.hint().contains("windlass runs stop"), "{}", refused.text());
    let stopped = api.post_nothing("/v1/runs/1/stop").await.json();
    assert_eq!((&stopped["state"], &stopped["stopped_by"]), (&json!("stopped"), &json!("anybody")));
    api.post_nothing("/v1/runs/1/stop").await.error(409);
    assert_eq!(api.post("/v1/runs", body).await.status, 201);
}
