//! What operators do with ended tasks and with whole queues: repeat, remove, purge. Also the warning for an
//! enqueue to a cancelled job.

use serde_json::json;
use tonic::Code;
use windlass_core::Outcome;
use windlass_proto::v1::{self, tasks_client::TasksClient};

use crate::{harness::Api, wire::Wire};

#[tokio::test]
async fn an_enqueue_to_a_cancelled_job_is_answered_with_a_warning() {
    let api = Api::start().await;
    let _worker = api.worker(&["a"]).await;
    api.put("/v1/jobs/j", r#"{"state":"cancelled"}"#).await;
    let one = api.post("/v1/tasks", r#"{"kind":"a","job":"j"}"#).await;
    assert_eq!((one.status, &one.json()["cancelled"]), (201, &json!(true)), "{}", one.text());
    let warning = one.json()["warnings"][0].as_str().unwrap().to_owned();
    assert!(
        warning.contains("\"j\" is cancelled") && warning.contains("`windlass jobs resume j`"),
        "{warning}"
    );
    let many = api
        .post("/v1/tasks", r#"{"tasks":[{"kind":"a"},{"kind":"a","job":"j"},{"kind":"a","job":"j"}]}"#)
        .await;
    let told: Vec<_> =
        many.json()["tasks"].as_array().unwrap().iter().map(|task| task["cancelled"].clone()).collect();
    assert_eq!(told, [false, true, true]);
    assert_eq!(many.json()["warnings"].as_array().unwrap().len(), 1, "one for the job: {}", many.text());
}

#[tokio::test]
async fn a_batch_that_is_only_checked_adds_nothing() {
    let api = Api::start().await;
    let checked = api.post("/v1/tasks", r#"{"tasks":[{"kind":"a"}],"dry_run":true}"#).await;
    assert_eq!((checked.status, &checked.json()["tasks"]), (201, &json!([])), "{}", checked.text());
    let bad = api.post("/v1/tasks", r#"{"tasks":[{"kind":"a"},{"kind":""}],"dry_run":true}"#).await;
    assert!(bad.error(400).1.contains("tasks[1]"), "{}", bad.text());
    assert_eq!(api.get("/v1/tasks").await.json()["tasks"], json!([]));
}

#[tokio::test]
async fn a_done_task_is_repeated_once_and_both_name_each_other() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let task = json!({"kind": "a", "payload": {"n": 1}, "queue": "q", "priority": 3, "max_attempts": 2,
        "timeout_ms": 500, "key": "k"});
    let id = api.enqueue(task).await;
    worker.end(Outcome::Done(None)).await;
    let again = api.post_nothing(&format!("/v1/tasks/{id}/retry")).await.json();
    assert_eq!((&again["repeats"], &again["state"]), (&json!(id), &json!("ready")), "{again}");
    let new = again["id"].as_str().unwrap();
    let copy = api.get(&format!("/v1/tasks/{new}")).await.json();
    for (field, value) in [
        ("kind", json!("a")),
        ("payload", json!({"n": 1})),
        ("queue", json!("q")),
        ("priority", json!(3)),
        ("max_attempts", json!(2)),
        ("timeout_ms", json!(500)),
        ("repeats", json!(id)),
    ] {
        assert_eq!(copy[field], value, "{field}: {copy}");
    }
    assert_eq!(api.get(&format!("/v1/tasks/{id}")).await.json()["repeated_by"], new);
    let twice = api.post_nothing(&format!("/v1/tasks/{id}/retry")).await;
    assert!(twice.error(409).1.contains(new), "{}", twice.text());
    assert!(twice.hint().contains(&format!("windlass tasks retry {new}")), "{}", twice.text());
    worker.end(Outcome::Done(None)).await;
    let third = api.post_nothing(&format!("/v1/tasks/{new}/retry")).await.json();
    assert_eq!(third["repeats"], new, "what repeats can be repeated");
    let running = api.enqueue(json!({"kind": "b"})).await;
    let refused = api.post_nothing(&format!("/v1/tasks/{running}/retry")).await;
    assert!(refused.error(409).1.contains("is ready"), "{}", refused.text());
}

#[tokio::test]
async fn a_task_that_has_ended_is_repeated_over_grpc() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let (wire, origin) = Wire::connect(&format!("http://{}", api.address)).await;
    let mut tasks = TasksClient::with_origin(wire, origin);
    let mut repeat = async |id: &str, delay_ms: u64| {
        let request = v1::RepeatTaskRequest { task_id: id.to_owned(), delay_ms };
        tasks.repeat_task(request).await.map(tonic::Response::into_inner)
    };
    let done = api.enqueue(json!({"kind": "a", "queue": "q", "payload": {"n": 1}})).await;
    worker.end(Outcome::Done(None)).await;
    let again = repeat(&done, 0).await.unwrap();
    assert_eq!(again.state(), v1::TaskState::Ready);
    let copy = api.get(&format!("/v1/tasks/{}", again.task_id)).await.json();
    assert_eq!(
        (&copy["repeats"], &copy["queue"], &copy["payload"]),
        (&json!(done), &json!("q"), &json!({"n": 1}))
    );
    let twice = repeat(&done, 0).await.unwrap_err();
    assert_eq!(twice.code(), Code::FailedPrecondition);
    assert!(twice.message().contains(&again.task_id), "{twice:?}");
    let early = repeat(&again.task_id, 0).await.unwrap_err();
    assert!(early.message().contains("is ready"), "{early:?}");
    worker.end(Outcome::Done(None)).await;
    assert_eq!(repeat(&again.task_id, 60_000).await.unwrap().state(), v1::TaskState::Scheduled);
    let dead = api.dead(&worker, "a", "no").await;
    let told = repeat(&dead, 0).await.unwrap_err();
    assert!(told.message().contains("is dead"), "{told:?}");
    let cancelled = api.enqueue(json!({"kind": "a"})).await;
    api.post_nothing(&format!("/v1/tasks/{cancelled}/cancel")).await;
    assert_eq!(repeat(&cancelled, 0).await.unwrap().state(), v1::TaskState::Ready);
    assert_eq!(repeat("no id", 0).await.unwrap_err().code(), Code::InvalidArgument);
    assert_eq!(repeat(&cancelled, u64::MAX).await.unwrap_err().code(), Code::InvalidArgument);
}

#[tokio::test]
async fn dead_tasks_are_removed_by_id_and_by_filter() {
    let api = Api::start().await;
    let worker = api.worker(&["a", "b"]).await;
    let one = api.dead(&worker, "a", "boom").await;
    api.dead(&worker, "a", "boom").await;
    api.dead(&worker, "b", "boom").await;
    assert_eq!(api.delete(&format!("/v1/tasks/{one}")).await.json(), json!({"removed": one}));
    assert_eq!(api.get(&format!("/v1/tasks/{one}")).await.status, 404);
    assert_eq!(api.delete(&format!("/v1/tasks/{one}")).await.status, 404);
    let looked = api.post("/v1/tasks/remove", r#"{"filter":{"state":"dead"},"dry_run":true}"#).await.json();
    assert_eq!((&looked["matched"], &looked["changed"]), (&json!(2), &json!(0)));
    let gone = api.post("/v1/tasks/remove", r#"{"filter":{"kind":"a"}}"#).await.json();
    assert_eq!((&gone["matched"], &gone["changed"]), (&json!(1), &json!(1)));
    for body in ["{}", r#"{"filter":{"state":"done"}}"#, r#"{"filter":{"kind":"a"},"reason":"r"}"#] {
        assert_eq!(api.post("/v1/tasks/remove", body).await.status, 400, "{body}");
    }
}

#[tokio::test]
async fn a_purge_cancels_waiting_and_removes_dead_tasks_only() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    for _ in 0..2 {
        api.dead(&worker, "a", "boom").await;
    }
    let running = api.enqueue(json!({"kind": "a"})).await;
    worker.claim().await;
    let other = api.enqueue(json!({"kind": "a", "queue": "other"})).await;
    let waits = api.enqueue(json!({"kind": "a"})).await;
    let later = api.enqueue(json!({"kind": "a", "delay_ms": 60_000})).await;
    let figures = |answer: &serde_json::Value, what: &str| {
        (answer["cancelled"][what].as_u64().unwrap(), answer["removed"][what].as_u64().unwrap())
    };
    let looked = api.post("/v1/queues/default/purge", r#"{"dry_run":true}"#).await.json();
    assert_eq!((figures(&looked, "matched"), figures(&looked, "changed")), ((2, 2), (0, 0)), "{looked}");
    let purged = api.post_nothing("/v1/queues/default/purge").await.json();
    assert_eq!(figures(&purged, "changed"), (2, 2), "{purged}");
    let state = async |id: &str| api.get(&format!("/v1/tasks/{id}")).await.json()["state"].clone();
    assert_eq!((state(&waits).await, state(&later).await), (json!("cancelled"), json!("cancelled")));
    assert_eq!((state(&running).await, state(&other).await), (json!("running"), json!("ready")));
    assert_eq!(api.get(&format!("/v1/tasks/{waits}")).await.json()["error"], "its queue was purged");
    assert_eq!(api.post_nothing("/v1/queues/typo/purge").await.status, 404);
}

#[tokio::test]
async fn a_workflow_whose_steps_have_ended_is_shown_from_the_history() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        ids.push(api.enqueue(json!({"kind": "a", "workflow": "w", "on_failure": "skip"})).await);
    }
    worker.end(Outcome::Done(None)).await;
    worker.end(Outcome::dead("boom")).await;
    assert_eq!(api.get("/v1/workflows/w").await.json()["steps"], 1, "not over yet");
    worker.end(Outcome::Done(None)).await;
    let over = api.get("/v1/workflows/w").await.json();
    assert_eq!(
        (&over["steps"], &over["ended"]["done"], &over["ended"]["dead"]),
        (&json!(0), &json!(2), &json!(1)),
        "{over}"
    );
    assert_eq!(over["ended"]["more"], false);
    assert_eq!(api.get("/v1/workflows/v").await.status, 404);
    assert_eq!(
        api.get("/v1/workflows").await.json()["workflows"],
        json!([]),
        "the list has those that go on"
    );
}
