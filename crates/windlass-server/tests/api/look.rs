//! Reads: one task, pages, why, and dead tasks by error.

use serde_json::json;
use windlass_core::Outcome;

use crate::harness::{Api, Setup};

#[tokio::test]
async fn a_task_is_shown_with_all_its_fields() {
    let api = Api::start().await;
    let worker = api.worker(&["a"]).await;
    let request = json!({"kind": "a", "queue": "q", "priority": 5, "key": "k", "max_attempts": 2,
        "timeout_ms": 1500});
    let id = api.enqueue(request).await;
    worker.end(Outcome::retry("it rained")).await;
    let task = api.get(&format!("/v1/tasks/{id}")).await.json();
    assert_eq!(task["state"], "scheduled");
    assert_eq!(task["error"], "it rained");
    assert_eq!((&task["attempt"], &task["max_attempts"]), (&json!(1), &json!(2)));
    assert_eq!(
        (&task["timeout_ms"], &task["priority"], &task["key"]),
        (&json!(1500), &json!(5), &json!("k"))
    );
    let attempt = &task["attempts"][0];
    assert_eq!((&attempt["result"], &attempt["error"]), (&json!("retry"), &json!("it rained")));
    assert_eq!(attempt["worker"], worker.id.to_string());
    assert!(task["due_at"].as_str().unwrap().ends_with('Z'));
    assert!(task.get("ended_at").is_none() && task.get("output").is_none());
}

#[tokio::test]
async fn pages_follow_one_another_without_gap_or_repetition() {
    let api = Api::start().await;
    let mut expected = Vec::new();
    for n in 0..7 {
        expected.push(api.enqueue(json!({"kind": "a", "payload": n})).await);
    }
    expected.reverse();
    let (mut found, mut path) = (Vec::new(), "/v1/tasks?limit=3".to_owned());
    loop {
        let page = api.get(&path).await.json();
        for task in page["tasks"].as_array().unwrap() {
            found.push(task["id"].as_str().unwrap().to_owned());
        }
        match page["next"].as_str() {
            Some(next) => path = format!("/v1/tasks?limit=3&after={next}"),
            None => break,
        }
    }
    assert_eq!(found, expected);
}

#[tokio::test]
async fn a_page_stops_at_a_number_of_bytes_and_goes_on_from_there() {
    let api = Api::start().await;
    let big = "x".repeat(1_000_000);
    for _ in 0..12 {
        api.enqueue(json!({"kind": "a", "payload": big})).await;
    }
    let first = api.get("/v1/tasks?limit=1000").await.json();
    let n = first["tasks"].as_array().unwrap().len();
    assert!((8..=9).contains(&n), "{n}");
    let next = first["next"].as_str().unwrap();
    let second = api.get(&format!("/v1/tasks?limit=1000&after={next}")).await.json();
    assert_eq!(second["tasks"].as_array().unwrap().len(), 12 - n);
    assert!(second.get("next").is_none());
}

#[tokio::test]
async fn a_list_is_restricted_by_each_filter() {
    let api = Api::start().await;
    let id = api.enqueue(json!({"kind": "a b", "queue": "mail"})).await;
    api.enqueue(json!({"kind": "c", "delay_ms": 60_000})).await;
    for (query, n) in [
        ("kind=a%20b", 1),
        ("queue=mail", 1),
        ("state=ready", 1),
        ("state=scheduled", 1),
        ("state=dead", 0),
        ("since=2027-01-31T09:30:00Z", 2),
        ("since=2027-01-31T09:31:00Z", 0),
        ("job=j", 0),
        ("workflow=w", 0),
        ("kind=c&queue=mail", 0),
    ] {
        let page = api.get(&format!("/v1/tasks?{query}")).await.json();
        assert_eq!(page["tasks"].as_array().unwrap().len(), n, "{query}");
    }
    assert_eq!(api.get("/v1/tasks?queue=mail").await.json()["tasks"][0]["id"], json!(id));
}

#[tokio::test]
async fn a_wrong_query_is_refused_with_its_parameter() {
    let api = Api::start().await;
    for (query, named) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=many", "limit"),
        ("limit=-1", "limit"),
        ("after=here", "after"),
        ("state=asleep", "state"),
        ("since=yesterday", "since"),
        ("kind=", "kind"),
        ("offset=3", "offset"),
        ("limit=1&limit=2", "query"),
    ] {
        let answer = api.get(&format!("/v1/tasks?{query}")).await;
        let (code, message) = answer.error(400);
        assert_eq!(code, "invalid");
        assert!(message.contains(named), "{query}: {message}");
    }
    let near = api.get("/v1/tasks?quee=a").await;
    assert_eq!(near.hint(), "did you mean \"queue\"?");
}

#[tokio::test]
async fn an_unknown_task_is_not_found_and_a_wrong_id_is_invalid() {
    let api = Api::start().await;
    for end in ["", "/why", "/wait?timeout_ms=0"] {
        assert_eq!(api.get(&format!("/v1/tasks/01JD3M8K2ZQ4R{end}")).await.error(404).0, "not_found");
        assert_eq!(api.get(&format!("/v1/tasks/nonsense{end}")).await.error(400).0, "invalid");
    }
    for verb in ["cancel", "retry"] {
        assert_eq!(
            api.post_nothing(&format!("/v1/tasks/01JD3M8K2ZQ4R/{verb}")).await.error(404).0,
            "not_found"
        );
        assert_eq!(api.post_nothing(&format!("/v1/tasks/nonsense/{verb}")).await.error(400).0, "invalid");
    }
    assert_eq!(api.get("/v1/tasks/%ff").await.error(400).0, "invalid");
}

#[tokio::test]
async fn why_names_the_reason_of_each_state() {
    let api = Api::start().await;
    let id = api.enqueue(json!({"kind": "a"})).await;
    let why = format!("/v1/tasks/{id}/why");
    assert_eq!(api.get(&why).await.json()["code"], "no_worker");
    let worker = api.worker(&["a"]).await;
    assert_eq!(api.get(&why).await.json()["code"], "about_to_start");
    api.post_nothing("/v1/queues/default/pause").await;
    let paused = api.get(&why).await.json();
    assert_eq!((&paused["code"], &paused["state"]), (&json!("queue_paused"), &json!("ready")));
    assert_eq!(paused["hint"], "windlass queues resume default");
    api.post_nothing("/v1/queues/default/resume").await;
    let task = worker.claim().await;
    assert_eq!(api.get(&why).await.json()["code"], "running");
    worker.settle(&task, Outcome::dead("no such house")).await;
    let dead = api.get(&why).await.json();
    assert_eq!((&dead["code"], &dead["sentence"]), (&json!("dead"), &json!("dead: no such house")));
}

#[tokio::test]
async fn dead_tasks_are_grouped_by_error_largest_group_first() {
    let api = Api::with(Setup::default()).await;
    let worker = api.worker(&["a", "b"]).await;
    api.dead(&worker, "a", "no user 1").await;
    let newest = api.dead(&worker, "a", "no user 22").await;
    api.dead(&worker, "b", "no user 3").await;
    api.enqueue(json!({"kind": "a"})).await;
    let dead = api.get("/v1/dead").await.json();
    assert_eq!((&dead["looked_at"], &dead["more"]), (&json!(3), &json!(false)));
    let groups = dead["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    assert_eq!((&groups[0]["kind"], &groups[0]["count"]), (&json!("a"), &json!(2)));
    assert_eq!((&groups[0]["error"], &groups[0]["example"]), (&json!("no user #"), &json!(newest)));
    assert_eq!(api.get("/v1/dead?kind=b").await.json()["looked_at"], 1);
    assert_eq!(api.get("/v1/dead?state=ready").await.error(400).0, "invalid");
    assert_eq!(api.get("/v1/dead?limit=5").await.error(400).0, "invalid");
}
