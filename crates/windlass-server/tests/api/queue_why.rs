//! Why the tasks of a queue wait.

use std::time::Duration;

use serde_json::{Value, json};
use windlass_core::Outcome;

use crate::harness::Api;

/// Codes of the causes with their counts, sorted by code.
async fn causes(api: &Api, queue: &str) -> Vec<(String, u64)> {
    let told = api.get(&format!("/v1/queues/{queue}/why")).await.json();
    let cause =
        |cause: &Value| (cause["code"].as_str().unwrap().to_owned(), cause["count"].as_u64().unwrap());
    let mut causes: Vec<_> = told["causes"].as_array().unwrap().iter().map(cause).collect();
    causes.sort();
    causes
}

fn of(causes: &[(&str, u64)]) -> Vec<(String, u64)> {
    causes.iter().map(|(code, n)| ((*code).to_owned(), *n)).collect()
}

#[tokio::test]
async fn each_cause_is_told_once_for_each_state() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    for _ in 0..3 {
        api.enqueue(json!({"kind": "a", "queue": "mail", "delay_ms": 60_000})).await;
        api.enqueue(json!({"kind": "a", "queue": "mail", "job": "j", "job_concurrency": 1})).await;
        api.enqueue(json!({"kind": "b", "queue": "mail"})).await;
        api.enqueue(json!({"kind": "a", "queue": "mail", "workflow": "w", "max_attempts": 1})).await;
    }
    assert_eq!(
        causes(&api, "mail").await,
        of(&[("about_to_start", 2), ("job_limit", 2), ("no_worker", 3), ("not_due", 3), ("workflow", 2)])
    );
    let first = worker.claim().await;
    let second = worker.claim().await;
    for task in [first, second] {
        let outcome = if task.workflow.is_some() { Outcome::dead("no") } else { Outcome::Done(None) };
        worker.settle(&task, outcome).await;
    }
    // The next task of the job has its turn a moment later.
    let its_turn = async {
        while !causes(&api, "mail").await.contains(&("about_to_start".to_owned(), 1)) {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), its_turn).await.expect("the turn of the next task");
    let told = api.get("/v1/queues/mail/why").await.json();
    let blocked = told["causes"].as_array().unwrap().iter().find(|cause| cause["code"] == "workflow_blocked");
    assert_eq!(blocked.unwrap()["hint"], "windlass workflows ls --blocked");
    assert_eq!((&told["paused"], &told["looked_at"]), (&json!(false), &json!(10)));
    api.post_nothing("/v1/queues/mail/pause").await;
    // Tasks of a job keep no room of it while their queue is paused: two are held and three are ready.
    assert_eq!(
        causes(&api, "mail").await,
        of(&[("not_due", 3), ("queue_paused", 2), ("queue_paused", 3), ("workflow_blocked", 2)])
    );
}

#[tokio::test]
async fn the_sample_of_a_large_queue_is_bounded() {
    let api = Api::start().await;
    let tasks: Vec<_> = (0..300).map(|_| json!({"kind": "a"})).collect();
    assert_eq!(api.post("/v1/tasks", json!({"tasks": tasks}).to_string()).await.status, 201);
    let told = api.get("/v1/queues/default/why").await.json();
    assert_eq!((&told["looked_at"], &told["depth"]["ready"]), (&json!(50), &json!(300)));
    assert_eq!(causes(&api, "default").await, of(&[("no_worker", 50)]));
}

#[tokio::test]
async fn jobs_beyond_the_bound_are_said_not_to_be_looked_at() {
    let api = Api::start().await;
    api.worker(&["a"]).await;
    for job in 0..45 {
        for _ in 0..2 {
            let task = json!({"kind": "a", "job": format!("j{job}"), "job_concurrency": 1});
            api.enqueue(task).await;
        }
    }
    let told = causes(&api, "default").await;
    let not_looked_at = told.iter().find(|(code, _)| code == "not_looked_at").unwrap().1;
    assert!(not_looked_at > 0, "{told:?}");
    assert_eq!(told.iter().map(|(_, n)| n).sum::<u64>(), 90);
}

#[tokio::test]
async fn a_queue_without_tasks_is_not_found_unless_it_is_paused() {
    let api = Api::start().await;
    assert_eq!(api.get("/v1/queues/none/why").await.status, 404);
    api.post_nothing("/v1/queues/none/pause").await;
    let told = api.get("/v1/queues/none/why").await.json();
    assert_eq!((&told["paused"], &told["causes"], &told["looked_at"]), (&json!(true), &json!([]), &json!(0)));
}
