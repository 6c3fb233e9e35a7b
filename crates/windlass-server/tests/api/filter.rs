//! Lists, groups and bulk changes by cause, worker, key, time and id; lists without payloads.

use std::{sync::Arc, time::Duration};

use serde_json::{Value, json};
use windlass_core::{NewTask, Payload, Store, TaskId, task::Key};
use windlass_server::{Operations, api::TaskFilter};
use windlass_sqlite::{Location, Options, SqliteStore};

use crate::{dead_store::DeadStore, harness::Api};

/// The ids of a list in both forms.
async fn listed(api: &Api, query: &str) -> Vec<String> {
    let ids = |page: Value| {
        let tasks = page["tasks"].as_array().unwrap().clone();
        tasks.iter().map(|task| task["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let whole = ids(api.get(&format!("/v1/tasks?{query}")).await.json());
    let summaries = ids(api.get(&format!("/v1/tasks?{query}&detail=summary")).await.json());
    assert_eq!(whole, summaries, "{query}");
    whole
}

#[tokio::test]
async fn lists_take_cause_worker_key_time_and_ids() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let first = api.dead(&worker, "a", "no user 1").await;
    let second = api.dead(&worker, "a", "no user 22").await;
    api.dead(&worker, "a", "no house 3").await;
    api.clock.advance(Duration::from_mins(1));
    let keyed = api.enqueue(json!({"kind": "b", "key": "50% & more#1"})).await;
    assert_eq!(listed(&api, "cause=no%20user%20%23").await, [second.clone(), first.clone()]);
    assert_eq!(listed(&api, &format!("worker={}", worker.id)).await.len(), 3);
    assert_eq!(listed(&api, "worker=w99").await, Vec::<String>::new());
    assert_eq!(listed(&api, "key=50%25%20%26%20more%231").await, std::slice::from_ref(&keyed));
    assert_eq!(listed(&api, &format!("ids={first},{keyed},{first}")).await, [keyed.clone(), first.clone()]);
    assert_eq!(listed(&api, "until=2027-01-31T09:31:00Z").await.len(), 3);
    assert_eq!(listed(&api, "since=2027-01-31T09:31:00Z").await, [keyed]);
    let groups = api.get(&format!("/v1/dead?ids={first}")).await.json();
    assert_eq!((&groups["looked_at"], &groups["groups"][0]["example"]), (&json!(1), &json!(first)));
}

#[tokio::test]
async fn a_summary_has_no_payload_and_a_short_error() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    api.dead(&worker, "a", &"é".repeat(1_000)).await;
    let page = api.get("/v1/tasks?detail=summary").await.json();
    let task = &page["tasks"][0];
    for absent in ["payload", "payload_encoding", "output", "attempts", "lease"] {
        assert!(task.get(absent).is_none(), "{absent} in {task}");
    }
    let error = task["error"].as_str().unwrap();
    assert_eq!((error.chars().count(), error.chars().last()), (300, Some('…')));
    assert_eq!((&task["state"], &task["worker"]), (&json!("dead"), &json!(worker.id.to_string())));
    assert!(page.get("next").is_none() && page.get("looked_back_to").is_none(), "{page}");
}

#[tokio::test]
async fn a_filter_without_meaning_is_refused() {
    let api = Api::start().await;
    for (query, named) in [
        ("ids=", "ids is empty"),
        ("ids=7", "ids"),
        ("worker=0", "worker"),
        ("until=soon", "until"),
        ("detail=some", "detail"),
        ("cause=x&state=ready", "cause"),
        ("cause=a%00", "cause must have no NUL"),
        ("key=%00", "key must have no NUL"),
    ] {
        let (code, message) = api.get(&format!("/v1/tasks?{query}")).await.error(400);
        assert!(code == "invalid" && message.contains(named), "{query}: {message}");
    }
    let many = vec!["01JD3M8K2ZQ4R"; 1_001];
    for (call, filter, named) in [
        ("cancel", json!({"ids": []}), "ids is empty"),
        ("retry", json!({"ids": many}), "at most 1000"),
        ("cancel", json!({"cause": "x"}), "cause"),
        ("remove", json!({"worker": "seven"}), "worker"),
    ] {
        let request = json!({"filter": filter}).to_string();
        let (code, message) = api.post(&format!("/v1/tasks/{call}"), request).await.error(400);
        assert!(code == "invalid" && message.contains(named), "{call} {filter}: {message}");
    }
}

#[tokio::test]
async fn a_group_of_dead_tasks_is_retried_by_its_cause() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    for error in ["no user 1", "no house 2", "no user 3"] {
        api.dead(&worker, "a", error).await;
    }
    let groups = api.get("/v1/dead").await.json();
    let group = &groups["groups"][0];
    let filter = json!({"cause": group["error"], "kind": group["kind"]});
    let request = json!({"filter": filter, "dry_run": true}).to_string();
    assert_eq!(api.post("/v1/tasks/retry", request).await.json()["matched"], 2);
    let answer = api.post("/v1/tasks/retry", json!({"filter": filter}).to_string()).await.json();
    assert_eq!((&answer["changed"], &answer["refused"]), (&json!(2), &json!(0)), "{answer}");
    let left = api.get("/v1/dead").await.json();
    assert_eq!(left["groups"][0]["error"], "no house #");
}

#[tokio::test]
async fn groups_of_dead_tasks_share_a_time_axis() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    api.dead(&worker, "a", "early").await;
    api.clock.advance(Duration::from_hours(1));
    let worker = api.worker(&["a"]).await;
    api.dead(&worker, "a", "late").await;
    api.dead(&worker, "a", "late").await;
    let dead = api.get("/v1/dead").await.json();
    assert_eq!(dead["first_ended_at"], "2027-01-31T09:30:00.000Z");
    assert_eq!(dead["last_ended_at"], "2027-01-31T10:30:00.000Z");
    let (late, early) = (&dead["groups"][0], &dead["groups"][1]);
    assert_eq!(
        (&late["first_ended_at"], &early["last_ended_at"]),
        (&dead["last_ended_at"], &dead["first_ended_at"])
    );
    let counts = |group: &Value| group["counts"].as_array().unwrap().clone();
    assert_eq!((counts(late).len(), counts(late)[23].clone()), (24, json!(2)));
    assert_eq!((counts(early)[0].clone(), counts(early)[23].clone()), (json!(1), json!(0)));
}

/// A store on SQLite looks at a bounded number of tasks for a page, unlike the one in memory.
async fn deep() -> (tempfile::TempDir, Arc<SqliteStore>) {
    let folder = tempfile::tempdir().unwrap();
    let location = Location::File(folder.path().join("w.db"));
    let store = SqliteStore::open(&location, Options::default().min_free(0, 0)).await.unwrap();
    let plain = NewTask::new("a", Payload::json(&1).unwrap()).unwrap();
    let key = Some(Key { text: "old".to_owned(), ignore_conflict: false });
    store.enqueue(vec![NewTask { key, ..plain.clone() }]).await.unwrap();
    for _ in 0..3 {
        store.enqueue(vec![plain.clone(); 7_000]).await.unwrap();
    }
    (folder, store)
}

#[tokio::test]
async fn an_old_task_is_found_by_its_key_in_any_queue() {
    let (_folder, store) = deep().await;
    let operations = Operations::new(store.clone());
    let filter = TaskFilter { key: Some("old".to_owned()), ..TaskFilter::default() };
    let page = operations.summaries(filter, None, None).await.unwrap();
    assert_eq!(page.tasks.len(), 1);
    assert!(page.next.is_some() && page.looked_back_to.is_some(), "{page:?}");
    store.close().await.unwrap();
}

#[tokio::test]
async fn a_bounded_look_says_how_far_back_it_went() {
    let (_folder, store) = deep().await;
    let operations = Operations::new(store.clone());
    let filter = TaskFilter { worker: Some("w7".to_owned()), ..TaskFilter::default() };
    let page = operations.summaries(filter.clone(), None, None).await.unwrap();
    assert_eq!((page.tasks.len(), page.looked_back_to), (0, page.next.map(TaskId::enqueued_at)));
    assert!(page.next.is_some());
    let page = operations.summaries(filter, page.next, None).await.unwrap();
    assert_eq!((page.next, page.looked_back_to), (None, None));
    let page = operations.summaries(TaskFilter::default(), None, Some(10)).await.unwrap();
    assert_eq!((page.tasks.len(), page.looked_back_to), (10, None), "a full page has not looked further");
    store.close().await.unwrap();
}

#[tokio::test]
async fn groups_of_a_narrow_filter_need_few_reads() {
    let store = DeadStore::endless();
    let filter = TaskFilter { cause: Some("rare".to_owned()), ..TaskFilter::default() };
    let groups = Operations::new(store.clone()).dead_groups(filter).await.unwrap();
    assert_eq!((groups.groups.len(), groups.looked_at, groups.more), (0, 0, true));
    assert!(store.reads() <= 20, "{} reads", store.reads());
}
