//! Workflows: listed, retried, skipped, cancelled.

use serde_json::json;
use windlass_core::Outcome;

use crate::harness::Api;

#[tokio::test]
async fn a_workflow_is_shown_while_it_has_unfinished_steps() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let first = api.enqueue(json!({"kind": "a", "workflow": "w", "on_failure": "skip"})).await;
    let second = api.enqueue(json!({"kind": "a", "workflow": "w"})).await;
    let found = api.get("/v1/workflows/w").await.json();
    assert_eq!((&found["workflow"], &found["on_failure"]), (&json!("w"), &json!("skip")));
    assert_eq!(
        (&found["head"], &found["head_state"], &found["steps"]),
        (&json!(first), &json!("ready"), &json!(2))
    );
    assert!(found.get("blocked_by").is_none(), "{found}");
    let why = api.get(&format!("/v1/tasks/{second}/why")).await.json();
    assert_eq!((&why["code"], &why["state"]), (&json!("workflow"), &json!("waiting")));
    assert!(why["sentence"].as_str().unwrap().contains(&first), "{why}");
    worker.end(Outcome::dead("x")).await;
    worker.end(Outcome::Done(None)).await;
    assert_eq!(api.get("/v1/workflows/w").await.json()["ended"]["done"], 1, "then from the history");
    assert_eq!(api.get("/v1/workflows").await.json(), json!({"workflows": []}));
}

#[tokio::test]
async fn a_blocked_workflow_is_retried_then_skipped() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let first = api.enqueue(json!({"kind": "a", "workflow": "w"})).await;
    let second = api.enqueue(json!({"kind": "a", "workflow": "w"})).await;
    api.enqueue(json!({"kind": "a", "workflow": "v"})).await;
    worker.end(Outcome::dead("x")).await;
    let blocked = api.get("/v1/workflows?blocked=true").await.json();
    assert_eq!(blocked["workflows"].as_array().unwrap().len(), 1);
    assert_eq!(blocked["workflows"][0]["blocked_by"], json!(first));
    let why = api.get(&format!("/v1/tasks/{second}/why")).await.json();
    assert_eq!(why["code"], "workflow_blocked");
    assert!(why["hint"].as_str().unwrap().contains("windlass workflows retry w"), "{why}");
    let retried = api.post_nothing("/v1/workflows/w/retry").await;
    assert_eq!((retried.status, retried.json()), (200, json!({"workflow": "w", "changed": 1})));
    let again = api.post("/v1/workflows/w/retry", "{}").await;
    assert_eq!(again.error(409).0, "conflict");
    assert!(again.hint().contains("blocked"), "{}", again.hint());
    api.post_nothing(&format!("/v1/tasks/{first}/cancel")).await;
    let refused = api.post_nothing("/v1/workflows/w/retry").await;
    assert_eq!(refused.error(409).0, "conflict");
    assert!(refused.hint().contains("skipped"), "{}", refused.hint());
    assert_eq!(api.post_nothing("/v1/workflows/w/skip").await.status, 200);
    assert_eq!(api.get("/v1/workflows/w").await.json()["head"], json!(second));
}

#[tokio::test]
async fn a_cancelled_workflow_ends_its_steps() {
    let api = Api::start().await;
    for _ in 0..3 {
        api.enqueue(json!({"kind": "a", "workflow": "w"})).await;
    }
    assert_eq!(
        api.post_nothing("/v1/workflows/w/cancel").await.json(),
        json!({"workflow": "w", "changed": 3})
    );
    for verb in ["retry", "skip", "cancel"] {
        assert_eq!(api.post_nothing(&format!("/v1/workflows/w/{verb}")).await.error(404).0, "not_found");
    }
}

#[tokio::test]
async fn workflows_come_in_pages_and_wrong_calls_are_refused() {
    let api = Api::start().await;
    for name in ["a", "b", "c"] {
        api.enqueue(json!({"kind": "a", "workflow": name})).await;
    }
    let page = api.get("/v1/workflows?limit=2").await.json();
    assert_eq!((page["workflows"].as_array().unwrap().len(), &page["next"]), (2, &json!("b")));
    let page = api.get("/v1/workflows?limit=2&after=b&blocked=false").await.json();
    assert_eq!(page["workflows"][0]["workflow"], "c");
    assert_eq!(api.get("/v1/workflows?blocked=maybe").await.error(400).0, "invalid");
    assert_eq!(api.post("/v1/workflows/a/skip", r#"{"n":1}"#).await.error(400).0, "invalid");
    let policy = json!({"kind": "a", "workflow": "w", "on_failure": "stop"}).to_string();
    assert_eq!(api.post("/v1/tasks", policy).await.error(400).0, "invalid");
    let alone = json!({"kind": "a", "on_failure": "skip"}).to_string();
    assert!(api.post("/v1/tasks", alone).await.error(400).1.contains("workflow"));
}

#[tokio::test]
async fn steps_are_listed_in_order_with_the_head_and_the_culprit() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(api.enqueue(json!({"kind": "a", "workflow": "w", "max_attempts": 1})).await);
        api.enqueue(json!({"kind": "b", "workflow": "other"})).await;
    }
    let told = api.get("/v1/workflows/w/steps").await.json();
    let steps = told["steps"].as_array().unwrap();
    let told_ids: Vec<_> = steps.iter().map(|step| step["id"].as_str().unwrap()).collect();
    assert_eq!(told_ids, ids);
    let numbers: Vec<_> = steps.iter().map(|step| step["number"].as_u64().unwrap()).collect();
    assert_eq!((numbers, told.get("next")), (vec![1, 2, 3, 4], None));
    let heads: Vec<_> = steps.iter().map(|step| step["head"].as_bool().unwrap()).collect();
    assert_eq!(heads, [true, false, false, false]);
    worker.end(Outcome::Done(None)).await;
    worker.end(Outcome::dead("it rained")).await;
    let steps = api.get("/v1/workflows/w/steps").await.json()["steps"].clone();
    assert_eq!(
        (&steps[0]["state"], &steps[0]["blocks"]),
        (&json!("done"), &json!(false)),
        "from the history"
    );
    assert_eq!((&steps[1]["blocks"], &steps[1]["error"]), (&json!(true), &json!("it rained")));
}

#[tokio::test]
async fn a_page_of_steps_that_is_cut_keeps_the_culprit() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let mut ids = Vec::new();
    for _ in 0..6 {
        ids.push(api.enqueue(json!({"kind": "a", "workflow": "w", "max_attempts": 1})).await);
    }
    worker.end(Outcome::dead("stuck")).await;
    let shown = |page: &serde_json::Value| -> Vec<String> {
        page["steps"].as_array().unwrap().iter().map(|step| step["id"].as_str().unwrap().to_owned()).collect()
    };
    let first = api.get("/v1/workflows/w/steps?limit=2").await.json();
    assert_eq!(first["steps"][0].get("number"), None, "not all steps are known");
    assert!(shown(&first).ends_with(&ids[4..]) && shown(&first).contains(&ids[0]), "{first}");
    let next = first["next"].as_str().unwrap();
    let second = api.get(&format!("/v1/workflows/w/steps?limit=2&after={next}")).await.json();
    assert_eq!(shown(&second), ids[2..4]);
    for bad in ["?limit=0", "?after=x", "?before=x"] {
        assert_eq!(api.get(&format!("/v1/workflows/w/steps{bad}")).await.status, 400, "{bad}");
    }
    assert_eq!(api.get("/v1/workflows/none/steps").await.status, 404);
}
