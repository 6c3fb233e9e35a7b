//! Jobs: set, paused, cancelled, removed, and listed in pages.

use serde_json::json;
use windlass_core::Outcome;

use crate::harness::Api;

#[tokio::test]
async fn a_job_can_be_set_while_its_tasks_run() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let set = api.put("/v1/jobs/site%207", r#"{"concurrency":1}"#).await;
    assert_eq!(set.status, 200, "{}", set.text());
    assert_eq!((&set.json()["job"], &set.json()["concurrency"]), (&json!("site 7"), &json!(1)));
    for _ in 0..3 {
        api.enqueue(json!({"kind": "a", "job": "site 7"})).await;
    }
    let running = worker.claim().await;
    let figures =
        |job: serde_json::Value| (job["running"].clone(), job["ready"].clone(), job["held"].clone());
    let found = api.get("/v1/jobs/site%207").await.json();
    assert_eq!(figures(found), (json!(1), json!(0), json!(2)));
    let raised = api.put("/v1/jobs/site%207", r#"{"concurrency":null,"delay_ms":200}"#).await.json();
    assert!(raised.get("concurrency").is_none(), "{raised}");
    assert_eq!(raised["delay_ms"], 200);
    let raised = api.put("/v1/jobs/site%207", r#"{"delay_ms":null}"#).await.json();
    assert!(raised.get("delay_ms").is_none(), "{raised}");
    assert_eq!(figures(raised), (json!(1), json!(2), json!(0)));
    worker.settle(&running, Outcome::Done(None)).await;
}

#[tokio::test]
async fn a_job_is_paused_resumed_and_cancelled() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let id = api.enqueue(json!({"kind": "a", "job": "j"})).await;
    let paused = api.put("/v1/jobs/j", r#"{"state":"paused"}"#).await.json();
    assert_eq!((&paused["state"], &paused["held"]), (&json!("paused"), &json!(1)));
    let why = api.get(&format!("/v1/tasks/{id}/why")).await.json();
    assert_eq!((&why["code"], &why["hint"]), (&json!("job_paused"), &json!("windlass jobs resume j")));
    assert_eq!(api.put("/v1/jobs/j", r#"{"state":"active"}"#).await.json()["ready"], 1);
    worker.claim().await;
    let waits = api.enqueue(json!({"kind": "a", "job": "j"})).await;
    api.put("/v1/jobs/j", r#"{"state":"cancelled","now":true}"#).await;
    let state = |task: serde_json::Value| task["state"].as_str().unwrap().to_owned();
    assert_eq!(state(api.get(&format!("/v1/tasks/{waits}")).await.json()), "cancelled");
    let asked = api.get(&format!("/v1/tasks/{id}")).await.json();
    assert_eq!(asked["cancel_requested"], "job j is cancelled");
}

#[tokio::test]
async fn a_removed_job_is_gone_when_its_last_task_has_ended() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    api.enqueue(json!({"kind": "a", "job": "j"})).await;
    let running = worker.claim().await;
    api.enqueue(json!({"kind": "a", "job": "j"})).await;
    let removed = api.delete("/v1/jobs/j").await;
    assert_eq!((removed.status, removed.json()), (200, json!({"job": "j", "cancelled": 1, "running": 1})));
    assert_eq!(api.get("/v1/jobs/j").await.json()["state"], "removing");
    assert_eq!(api.put("/v1/jobs/j", r#"{"state":"paused"}"#).await.error(409).0, "conflict");
    api.delete("/v1/jobs/j?now=true").await;
    let asked = api.get(&format!("/v1/tasks/{}", running.id)).await.json();
    assert_eq!(asked["cancel_requested"], "job j was removed");
    worker.settle(&running, Outcome::Done(None)).await;
    assert_eq!(api.get("/v1/jobs/j").await.error(404).0, "not_found");
    assert_eq!(api.delete("/v1/jobs/j").await.error(404).0, "not_found");
}

#[tokio::test]
async fn jobs_are_listed_by_name_in_pages() {
    let api = Api::start().await;
    for name in ["c", "a", "b"] {
        api.put(&format!("/v1/jobs/{name}"), "{}").await;
    }
    let page = api.get("/v1/jobs?limit=2").await.json();
    let names = |page: &serde_json::Value| -> Vec<String> {
        page["jobs"].as_array().unwrap().iter().map(|job| job["job"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!((names(&page), &page["next"]), (vec!["a".to_owned(), "b".to_owned()], &json!("b")));
    let page = api.get("/v1/jobs?limit=2&after=b").await.json();
    assert_eq!(names(&page), ["c"]);
    assert!(page.get("next").is_none(), "{page}");
}

#[tokio::test]
async fn an_invalid_job_change_is_refused_and_changes_nothing() {
    let api = Api::start().await;
    for body in [
        r#"{"concurrency":-1}"#,
        r#"{"concurrency":"3"}"#,
        r#"{"delay_ms":99999999999999}"#,
        r#"{"state":"removing"}"#,
        r#"{"state":"asleep"}"#,
        r#"{"now":true}"#,
        r#"{"limit":3}"#,
        "3",
        "[]",
        "[3]",
    ] {
        assert_eq!(api.put("/v1/jobs/j", body).await.error(400).0, "invalid", "{body}");
    }
    assert_eq!(api.put("/v1/jobs/%20", "{}").await.error(400).0, "invalid");
    assert_eq!(api.get("/v1/jobs?limit=0").await.error(400).0, "invalid");
    assert_eq!(api.get("/v1/jobs?blocked=true").await.error(400).0, "invalid");
    assert_eq!(api.delete("/v1/jobs/j?now=perhaps").await.error(400).0, "invalid");
    assert_eq!(api.post_nothing("/v1/jobs/j").await.error(405).0, "method_not_allowed");
    assert_eq!(api.get("/v1/jobs").await.json(), json!({"jobs": []}));
}
